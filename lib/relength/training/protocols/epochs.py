"""Epochs over fixed samples."""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from relength.specs.fields import added
from relength.training.protocols.base import Clip, Selection
from relength.training.protocols.fixed import FixedSamples
from relength.training.protocols.optimiser import AdamW, OptimiserOrAdamW, Settings

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from relength.tasks.base import Task
    from relength.tasks.batch import Batch
    from relength.training.course import Progress

# torch.optim.lr_scheduler.ReduceLROnPlateau's own: by how much, relatively, a score must be better.
PLATEAU_THRESHOLD = 1e-4


class Epochs(FixedSamples):
    """Epochs over fixed samples, with a schedule and an early end.

    Defaults: the appendix and the released configuration of the paper that it was written for.
    """

    budget: ClassVar[tuple[str, ...]] = (
        *("solved_accuracy", "solved_epochs"),
        *FixedSamples.budget,
    )

    name: Literal["epochs"] = added("epochs", before="epochs")
    epochs: int = Field(100, gt=0, description="most passes over the training data")
    batch_size: int = Field(32, gt=0)
    optimiser: OptimiserOrAdamW = "adamw"
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.0, ge=0, description="of adamw; others bring their own")
    clip_norm: float = Field(5.0, gt=0, description="global gradient norm")
    plateau_factor: float = Field(0.5, gt=0, lt=1)
    plateau_patience: int = Field(4, ge=0, description="bad epochs before the rate is cut")
    patience: int = Field(50, gt=0, description="epochs without a new best before training stops")
    tie: float = Field(
        1e-5,
        ge=0,
        description="dev scores (fractions) that differ by less count as equal, and the later "
        "checkpoint wins; the released code compares percentages with 0.001",
    )
    solved_accuracy: float | None = Field(
        None,
        ge=0,
        le=1,
        description="dev accuracy that counts as solved, if training may end early",
    )
    solved_epochs: int = Field(10, gt=0, description="solved epochs in a row that end training")
    short_batch: Literal["mean", "part"] = added(
        "mean",
        before="mean",
        description="the loss of a batch with fewer samples than batch_size: its mean, or that "
        "divided by batch_size // samples. The released trainer takes such a batch for one of the "
        "equal parts that a whole batch is cut into, and takes a step on it alone all the same",
    )

    @model_validator(mode="after")
    def _settings_of_their_optimiser(self) -> "Epochs":
        if self.optimiser != "adamw" and self.weight_decay:
            raise ValueError("weight_decay is adamw's here: give it inside optimiser")
        return self

    def course(self, measure: str) -> str:
        early = ", ended early where a run counted as solved"
        return super().course(measure) + (early if self.solved_accuracy is not None else "")

    @property
    def moves(self) -> Settings:
        return (
            AdamW(weight_decay=self.weight_decay) if self.optimiser == "adamw" else self.optimiser
        )

    @property
    def clip(self) -> Clip:
        return Clip("norm", self.clip_norm)

    @property
    def selection(self) -> Selection:
        return Selection(tie=self.tie)

    def loss(self, task: "Task", model: "Module", batch: "Batch", key: "Tensor | None") -> "Tensor":
        """Return what a step minimises; of a short last batch as ``short_batch`` says."""
        loss = super().loss(task, model, batch, key)
        return loss / (self.batch_size // len(batch)) if self.short_batch == "part" else loss

    def schedule(self, progress: "Progress", score: float) -> None:
        """Cut the rate if the score has not improved for more than ``plateau_patience`` epochs.

        As released, the first epoch does not count.
        """
        if progress.epoch == 0:
            return
        if score > progress.plateau_best * (1 + PLATEAU_THRESHOLD):
            progress.plateau_best, progress.bad_epochs = score, 0
        else:
            progress.bad_epochs += 1
        if progress.bad_epochs > self.plateau_patience:
            progress.rate *= self.plateau_factor
            progress.bad_epochs = 0

    def ends_early(self, progress: "Progress", score: float) -> bool:
        """Tell whether patience is at an end, or the task has been solved for long enough."""
        solved = self.solved_accuracy is not None and score >= self.solved_accuracy
        progress.solved = progress.solved + 1 if solved else 0
        return progress.impatience > self.patience or progress.solved >= self.solved_epochs
