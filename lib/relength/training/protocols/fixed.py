"""The base of protocols that pass over fixed samples again and again."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from relength.streams import stream
from relength.training.protocols.base import Protocol

if TYPE_CHECKING:
    from relength.specs.spec import RunSpec
    from relength.tasks.base import Task
    from relength.tasks.batch import Batch


class FixedSamples(Protocol):
    """A number of passes over a training set, each in an order of its own."""

    fresh: ClassVar[bool] = False
    budget: ClassVar[tuple[str, ...]] = ("epochs", *Protocol.budget)

    epochs: int = Field(gt=0, description="passes over the training data")
    batch_size: int = Field(gt=0)

    @property
    def intervals(self) -> int:
        return self.epochs

    def most_steps(self, task: "Task") -> int:
        return self.epochs * -(-task.splits()["train"].size // self.batch_size)

    def order(self, spec: "RunSpec", data: "Batch", interval: int) -> Iterator[np.ndarray]:
        """Every sample of the interval once, in an order of the seed's own."""
        order = stream(spec.seed, "order", interval).permutation(len(data))
        order = self.kept(order, data, interval)
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]

    def kept(self, order: np.ndarray, data: "Batch", interval: int) -> np.ndarray:
        """The positions, in their order, of the samples that an interval trains on: all of them."""
        return order
