"""Adam over fixed samples for a number of steps; the last weights are tested."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from relength.streams import stream
from relength.training.protocols.base import Clip, Selection
from relength.training.protocols.counted import CountedSteps

if TYPE_CHECKING:
    from relength.specs.spec import RunSpec
    from relength.tasks.batch import Batch


class FixedSteps(CountedSteps):
    """Steps over fixed samples, pass after pass, without schedule, early end or selection.

    All batches have ``batch_size`` samples: what is left of a pass begins the next pass's first
    batch. Defaults follow the code that the paper cites, and its 50,000 steps. The interval between
    evaluations is ours.
    """

    fresh: ClassVar[bool] = False

    name: Literal["fixed_steps"] = "fixed_steps"
    steps: int = Field(50_000, gt=0, description="optimiser steps, whole intervals of them")
    validate_every: int = Field(2_500, gt=0, description="steps of an interval")
    batch_size: int = Field(256, gt=0)
    learning_rate: float = Field(1e-3, gt=0)
    clip_norm: float = Field(5.0, gt=0, description="global gradient norm")

    @property
    def clip(self) -> Clip:
        return Clip("norm", self.clip_norm)

    @property
    def selection(self) -> Selection:
        """The last weights."""
        return Selection(by="last")

    def order(self, spec: "RunSpec", data: "Batch", interval: int) -> Iterator[np.ndarray]:
        """Cut one pass after the other, each in an order of the seed's own, into equal batches."""
        size, first = self.batch_size, interval * self.validate_every * self.batch_size
        passes = _passes(spec.seed, len(data), first)
        waiting = np.empty(0, dtype=np.int64)
        for _ in range(self.validate_every):
            while len(waiting) < size:
                waiting = np.concatenate([waiting, next(passes)])
            yield waiting[:size]
            waiting = waiting[size:]


def _passes(seed: int, samples: int, first: int) -> Iterator[np.ndarray]:
    """Positions of samples from the ``first`` that is taken on, a pass at a time."""
    number, begun = divmod(first, samples)
    while True:
        yield stream(seed, "order", number).permutation(samples)[begun:]
        number, begun = number + 1, 0
