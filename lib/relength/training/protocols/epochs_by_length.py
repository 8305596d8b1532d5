"""Epochs over fixed samples, in batches of similar length; the curve shows the loss of a test."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from relength.streams import EVALUATION_SEED, stream
from relength.training.protocols.base import Clip, Selection
from relength.training.protocols.fixed import FixedSamples

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from relength.specs.spec import RunSpec
    from relength.tasks.batch import Batch
    from relength.training.course import Progress


class LastOfLosses(Selection):
    """A rule that selects the last weights, and still has the losses measured for the curve."""

    @property
    def words(self) -> str:
        """Name the last weights as any protocol does."""
        return Selection(by="last").words


class EpochsByLength(FixedSamples):
    """Passes over fixed samples, each batch of samples that are about as long as each other.

    A pass puts its samples in the order of their lengths, equal ones at random, and cuts that into
    batches; the batches follow at random. Which lengths come when is the same for all seeds.
    After each pass the development set of the task is measured, its loss, too. Tests ask how likely
    the right tokens are (relength.tasks.likelihood), and let nothing be written. Defaults follow
    the code that the paper cites, as far as it can be followed here.
    """

    name: Literal["epochs_by_length"] = "epochs_by_length"
    epochs: int = Field(100, gt=0, description="passes over the training data")
    batch_size: int = Field(128, gt=0)
    learning_rate: float = Field(6e-4, gt=0, description="of the first passes")
    clip_norm: float = Field(5.0, gt=0, description="global gradient norm")
    halve_below: float = Field(
        0.0, ge=0, description="the mean loss of a pass below which the rate is halved, once; 0 "
        "for never"
    )  # fmt: skip
    tested: Literal["last", "lowest"] = Field(
        "last",
        description="the weights that are tested: the last ones, or those with the lowest loss on "
        "the development set",
    )

    @property
    def clip(self) -> Clip:
        return Clip("norm", self.clip_norm)

    @property
    def selection(self) -> Selection:
        """The loss on the development set; where the last weights are tested, of the last pass."""
        if self.tested == "lowest":
            return Selection(by="loss")
        return LastOfLosses(by="loss", first=self.epochs - 1)

    def schedule(self, progress: "Progress", score: float) -> None:
        """Halve the rate, once, when training has a low loss."""
        if progress.rate == self.learning_rate:
            low = progress.curve[-1]["train_loss"] < self.halve_below
            progress.rate = self.learning_rate * (0.5 if low else 1.0)

    def order(self, spec: "RunSpec", data: "Batch", interval: int) -> Iterator[np.ndarray]:
        """Every sample of the pass once, in batches of similar length."""
        lengths = data.input_lengths.cpu().numpy()
        order = stream(spec.seed, "order", interval).permutation(len(lengths))
        order = order[np.argsort(lengths[order], kind="stable")]
        starts = np.arange(0, len(order), self.batch_size)
        # Sizes of batches have to follow each other in one order, or runs could not be stacked.
        random = stream(EVALUATION_SEED, "lengths", len(order), self.batch_size, interval)
        for start in random.permutation(starts):
            yield order[start : start + self.batch_size]

    def before_test(self, model: "Module") -> None:
        """Let a model tell how likely the right tokens are, in place of writing its own.

        Where weights of attention are asked for, it writes.
        """
        from relength.tasks.likelihood import scored

        written = model.generate

        def generate(
            batch: "Batch", steps: int, keep_weights: bool = False
        ) -> "tuple[Tensor, dict[str, Tensor] | None]":
            if keep_weights:
                return written(batch, steps, keep_weights)
            import torch

            with torch.no_grad():
                return scored(model(batch), batch), None

        model.generate = generate
