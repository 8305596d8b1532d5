"""Adam over fixed samples, a few at a time, and nothing else."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from relength.training.protocols.base import Selection
from relength.training.protocols.fixed import FixedSamples
from relength.training.protocols.optimiser import Adam, Optimiser

if TYPE_CHECKING:
    from relength.models.config import ModelConfig
    from relength.tasks.base import Task


class PlainEpochs(FixedSamples):
    """Passes over fixed samples without schedule, clip or early end; the training data select.

    The epoch with the highest accuracy on the training data is kept. Defaults: the paper that it
    was written for, and the code that its appendix names: one sample per step, in double precision,
    at a learning rate of 0.01.
    """

    name: Literal["plain_epochs"] = "plain_epochs"
    epochs: int = Field(5, gt=0, description="passes over the training data")
    batch_size: int = Field(1, gt=0)
    optimiser: Optimiser = Adam()  # not `added`: every record of this protocol names it
    learning_rate: float = Field(0.01, gt=0)
    precision: Literal["float32", "float64"] = "float64"

    @property
    def selection(self) -> Selection:
        return Selection(called="the training data")

    def check(self, task: "Task", model: "ModelConfig") -> None:
        if tuple(task.dev_splits) != ("train",):
            raise ValueError(
                f"plain_epochs selects on training data, and {task.name} has development sets of "
                "its own: choose the protocol epochs"
            )
