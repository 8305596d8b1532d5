"""Fresh samples, a loss beyond the training lengths that selects, and close states where asked for.

Source: Ofner and Kern, "State-Space Constraints Improve the Generalization of the Differentiable
Neural Computer in some Algorithmic Tasks", Section III-D and Supplement B.
"""

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from relength.errors import RelengthError
from relength.tasks.state_space import StateSpaceTask
from relength.training.protocols.base import Clip, Retest, Selection
from relength.training.protocols.fresh import FreshSamples

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from relength.models.config import ModelConfig
    from relength.specs.spec import RunSpec
    from relength.tasks.base import Task
    from relength.tasks.batch import Batch

EXTENDED = "extended"  # the selected checkpoint with a larger memory


class StateSpace(FreshSamples):
    """Adam on fresh samples; the lowest running mean of the loss on longer ones selects.

    Defaults: the paper's. What it leaves open is a field, too: the threshold of the clipping (50 is
    that of the code that the authors extended), and where the selection begins (at the first
    whole running mean; a loss on longer inputs is lowest before anything is learned). The term for
    close states counts each pair of steps once, decoding included.
    """

    name: Literal["state_space"] = "state_space"
    steps: int = Field(300_000, gt=0, description="optimiser steps, whole intervals of them")
    validate_every: int = Field(10, gt=0, description="steps of an interval")
    batch_size: int = Field(64, gt=0)
    learning_rate: float = Field(1e-3, gt=0)
    clip_norm: float = Field(50.0, gt=0, description="global gradient norm; not in the paper")
    mean_of: int = Field(500, gt=0, description="evaluations in the running mean that selects")
    select_from: int = Field(5_000, ge=0, description="steps before a checkpoint may be selected")
    curve_every: int = Field(1_000, gt=0, description="steps between points of the learning curve")
    alpha: float = Field(0.9, gt=0, le=1, description="weight of the task's loss; the rest is for "
                         "close states, in models that are regularised")  # fmt: skip
    pairs: int = Field(5, gt=0, description="closest pairs of states that are drawn together, K")
    test_slots: int | None = Field(
        500, gt=0, description="slots of the larger memory that is tested, too; none for no such"
    )

    @model_validator(mode="after")
    def _selects_and_shows(self) -> Self:
        if self.select_from > self.steps:
            raise ValueError(
                f"nothing could be selected from step {self.select_from} on, of {self.steps}"
            )
        if self.curve_every % self.validate_every:
            raise ValueError(
                f"curve_every is a multiple of validate_every, which is {self.validate_every}"
            )
        return self

    @property
    def clip(self) -> Clip:
        return Clip("norm", self.clip_norm)

    @property
    def selection(self) -> Selection:
        first = max(-(-self.select_from // self.validate_every) - 1, 0)
        return Selection("dev", "loss", self.mean_of, first=first)

    @property
    def curve_steps(self) -> int:
        return self.curve_every

    def check(self, task: "Task", model: "ModelConfig") -> None:
        if not isinstance(task, StateSpaceTask):
            raise ValueError(
                f"protocol {self.name} trains tasks that are read whole and then written, and "
                f"{task.name} is none"
            )
        longest = task.train_lengths[1]
        if model.enlarges and longest > model.slots:
            raise ValueError(
                f"train_lengths: a memory of {model.slots} slots has no room for inputs of length "
                f"{longest}: train on shorter ones, or give the model more slots"
            )
        if self.test_slots is not None and not model.enlarges:
            raise ValueError(
                f"test_slots: model {model.name} has no memory that can be enlarged for a test: "
                "leave test_slots empty"
            )
        if self.test_slots is not None and self.test_slots < model.slots:
            raise ValueError(
                f"test_slots: a memory of {model.slots} slots can be enlarged for a test, and not "
                f"become one of {self.test_slots}"
            )
        if model.regularised:
            steps = task.least_steps(task.train_lengths[0])
            if why := _too_few(steps, self.pairs):
                raise ValueError(why)

    def loss(self, task: "Task", model: "Module", batch: "Batch", key: "Tensor | None") -> "Tensor":
        """The task's loss, or in regularised models its weighted mean with that of close states."""
        if not getattr(model, "regularised", False):
            return super().loss(task, model, batch, key)
        outputs, states = model.with_states(batch, key)
        close = closest_pairs(states, batch.input_lengths, self.pairs)
        return self.alpha * task.loss(outputs, batch) + (1 - self.alpha) * close

    def retests(self, task: "Task") -> dict[str, Retest]:
        """The extended memory (Section IV-C)."""
        if self.test_slots is None or not task.extended_lengths:
            return {}
        return {EXTENDED: Retest(lambda model: model.enlarge(self.test_slots), task.extended_tests)}

    def traces(self, spec: "RunSpec", model: "Module", device: str) -> dict[str, Any]:
        from relength.training.traces import memory

        return {"memory": memory(spec, model, device)}


def closest_pairs(states: "Tensor", lengths: "Tensor", pairs: int) -> "Tensor":
    """L_state: 1 less the mean of the ``pairs`` largest cosines of two states of a sample.

    Each pair x < y counts once. The mean over the batch; vmap can batch it.

    states   (B, S, H)
    lengths  (B,) the steps of each sample; what follows them is padding

    Raises RelengthError when there are fewer pairs.
    """
    import torch
    from torch.nn import functional as F

    steps = states.shape[-2]
    if why := _too_few(steps, pairs):
        raise RelengthError(f"{why}.")
    unit = F.normalize(states, dim=-1)
    cosines = unit @ unit.transpose(-1, -2)  # (B, S, S)
    step = torch.arange(steps, device=states.device)
    counted = (step[:, None] < step) & (step < lengths[..., None, None])  # x < y < length
    closest = cosines.masked_fill(~counted, -2).flatten(-2).topk(pairs, sorted=False).values
    return 1 - closest.mean()


def _too_few(steps: int, pairs: int) -> str:
    """Say that a sequence has fewer pairs of states than are asked for; nothing if it has not."""
    there = steps * (steps - 1) // 2
    if pairs <= there:
        return ""
    return (
        f"A sequence of {steps} steps has {there} pairs of states, and the {pairs} closest are "
        "asked for: lower pairs, or train on longer inputs"
    )
