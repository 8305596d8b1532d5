"""The contract of a protocol: all that one way of training decides.

A run asks its protocol and knows no other: :mod:`relength.training.alone` and
:mod:`relength.training.stack` are the same for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from relength.errors import RelengthError
from relength.specs.fields import added
from relength.training.protocols.optimiser import Adam, Optimiser, Settings

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from relength.models.config import ModelConfig
    from relength.specs.spec import RunSpec
    from relength.tasks.base import Task
    from relength.tasks.batch import Batch
    from relength.training.course import Progress


class Selection(NamedTuple):
    """The rule that selects a checkpoint.

    split    ``dev``, the task's development sets, as a rule longer than training; or ``iid``, its
             validation set in distribution
    by       ``accuracy``, the higher the better; ``loss``, the lower the better; or ``last``, the
             last weights whatever they score
    mean_of  how many of the latest evaluations the deciding number is the mean of
    tie      numbers that differ by less count as equal, and the later checkpoint wins
    first    the first interval whose checkpoint may be selected, counted from 0
    called   what the samples are called, if the split's usual name is wrong
    """

    split: Literal["dev", "iid"] = "dev"
    by: Literal["accuracy", "loss", "last"] = "accuracy"
    mean_of: int = 1
    tie: float = 1e-9  # rounding
    first: int = 0
    called: str = ""

    @property
    def words(self) -> str:
        """Say what the selected checkpoint has: *the highest accuracy on the development set*."""
        if self.by == "last":
            return "the longest training"
        best = "highest accuracy" if self.by == "accuracy" else "lowest loss"
        usual = "the development set" if self.split == "dev" else "the lengths trained on"
        where = self.called or usual
        over = f", as a mean over {self.mean_of} evaluations" if self.mean_of > 1 else ""
        return f"the {best} on {where}{over}"


class Clip(NamedTuple):
    """The limit on gradients before a step: on their global norm, or on the size of each
    element.
    """

    by: Literal["norm", "value"]
    most: float


class Retest(NamedTuple):
    """Further tests of the selected checkpoint, after a change; a checkpoint of its own in records.

    change  what is done to the model
    tests   {name of a test in the record: split of the task}
    """

    change: "Callable[[Module], None]"
    tests: "Mapping[str, str]"


class Protocol(BaseModel, ABC):
    """One way of training: a frozen config whose fields, ``name`` included, enter a run's key.

    An *interval* is what lies between two evaluations. What a subclass does not define stays as
    here: Adam, a constant learning rate, no clipping, selection by accuracy on the development
    sets, the task's loss alone, no change before the tests, traces of the model's attention, a
    learning curve with a point per interval.

    fresh   whether samples are drawn afresh at every step, by :meth:`drawn`; else :meth:`order`
            chooses from the split ``train`` of a task
    budget  the fields in which scales differ: how long training may last, how large batches are
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    fresh: ClassVar[bool]
    budget: ClassVar[tuple[str, ...]] = ("batch_size",)

    name: str
    batch_size: int = Field(gt=0)
    learning_rate: float = Field(gt=0, description="of the first interval")
    optimiser: Optimiser = added(Adam(), before={"name": "adam", "weight_decay": 0.0})
    precision: Literal["float32", "float64"] = "float32"
    products: Literal["exact", "tf32", "bfloat16"] = added(
        "exact",
        before="exact",
        description="what matrix products compute in; exact is the precision above, the others "
        "need a GPU",
    )

    @model_validator(mode="after")
    def _one_arithmetic(self) -> "Protocol":
        if self.precision == "float64" and self.products != "exact":
            raise ValueError(f"products in {self.products} make no sense with precision float64")
        return self

    @property
    @abstractmethod
    def intervals(self) -> int:
        """The number of evaluations during training, at most."""

    @property
    def interval_steps(self) -> int | None:
        """Optimiser steps of an interval; None where it is a pass over the training data."""
        return None

    @property
    def curve_steps(self) -> int | None:
        """Optimiser steps between points of the learning curve, a multiple of ``interval_steps``.

        Watched tests and samples in distribution are looked at for these points alone, unless the
        latter select the checkpoint. A point's training loss is the mean over all intervals since
        the last one. The last interval always is a point.
        """
        return self.interval_steps

    @abstractmethod
    def most_steps(self, task: "Task") -> int:
        """Optimiser steps if training does not end early."""

    def course(self, measure: str) -> str:
        """Word what learning curves show: a measure, how often, and what ends a run early."""
        often = f"every {self.curve_steps:,} steps" if self.curve_steps else "after every epoch"
        return f"{measure} {often}"

    @property
    def moves(self) -> Settings:
        """The optimiser and its settings."""
        return self.optimiser

    @property
    def clip(self) -> Clip | None:
        """The limit on gradients before a step; None for none."""
        return None

    @property
    def selection(self) -> Selection:
        """The rule that selects the checkpoint which tables show."""
        return Selection()

    def order(self, spec: "RunSpec", data: "Batch", interval: int) -> Iterator[np.ndarray]:
        """Choose the samples of each step of an interval: positions (B,) in the training data.

        As many steps, of equal sizes, for all seeds: stacked runs take them together.
        """
        raise RelengthError(f"Protocol {self.name} chooses no samples: give it a method `order`.")

    def drawn(self, spec: "RunSpec", interval: int) -> Iterator[Any]:
        """Draw the samples of each step of an interval, in the form that ``task.encode`` takes.

        As many steps, of equal shapes, for all seeds: stacked runs take them together.
        """
        raise RelengthError(f"Protocol {self.name} draws no samples: give it a method `drawn`.")

    def schedule(self, progress: "Progress", score: float) -> None:
        """Change ``progress.rate`` after an interval; the higher its score, the better."""

    def ends_early(self, progress: "Progress", score: float) -> bool:
        """Tell whether training ends after an interval that is not its last."""
        return False

    def loss(self, task: "Task", model: "Module", batch: "Batch", key: "Tensor | None") -> "Tensor":
        """Return what a step minimises: the task's loss, and the extra term if there is one.

        key  of what is drawn inside this step (relength.streams)
        """
        outputs = model(batch, key)
        loss = task.loss(outputs, batch)
        extra = self.extra_loss(model, batch, outputs)
        return loss if extra is None else loss + extra

    def extra_loss(self, model: "Module", batch: "Batch", outputs: "Tensor") -> "Tensor | None":
        """A term that is added to the task's loss; vmap must be able to batch it."""
        return None

    def before_test(self, model: "Module") -> None:
        """Change a trained model before it is tested, in the same way for all seeds."""

    def retests(self, task: "Task") -> dict[str, Retest]:
        """{checkpoint's name: tests of a changed model}, beside the usual tests."""
        return {}

    def check(self, task: "Task", model: "ModelConfig") -> None:
        """Raise ValueError where this way of training is impossible for a task or a model."""

    def traces(self, spec: "RunSpec", model: "Module", device: str) -> dict[str, Any]:
        """Fields of a record beyond metrics, from the selected checkpoint: by default attention."""
        from relength.training.traces import attention

        return attention(spec, model, device)
