"""Epochs over questions about facts, with a loss of five terms.

Source: "A Memory-Augmented LLM Architecture for Multi-Hop Reasoning" (anonymous, under review),
Eqs. 1 and 2, Section 4.1.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from relength.errors import RelengthError
from relength.specs.fields import added
from relength.training.protocols.base import Clip, Selection
from relength.training.protocols.fixed import FixedSamples

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from relength.models.config import ModelConfig
    from relength.specs.spec import RunSpec
    from relength.tasks.base import Task
    from relength.tasks.batch import Batch
    from relength.training.course import Progress

Stage = Annotated[tuple[int, int], Field(strict=False)]  # most lines of a sample, epochs


class Facts(FixedSamples):
    """Adam over fixed samples for a number of epochs; the last weights are tested.

    Defaults: the paper's. It leaves the weights of the terms open; 1 each is assumed. Their names
    are the paper's. A sequence's loss is the mean over its words, which is assumed, too. A model
    that has no such terms is trained on answers alone.
    """

    budget: ClassVar[tuple[str, ...]] = ("solved_accuracy", *FixedSamples.budget)

    name: Literal["facts"] = "facts"
    epochs: int = Field(200, gt=0, description="passes over the training data")
    batch_size: int = Field(10, gt=0)
    learning_rate: float = Field(5e-6, gt=0)
    clip_norm: float | None = Field(None, gt=0, description="global gradient norm; not in the "
                                    "paper")  # fmt: skip
    solved_accuracy: float | None = Field(
        None,
        ge=0,
        le=1,
        description="validation accuracy at which training ends early; none: after all epochs. The "
        "paper trains baselines until they are near 100 %",
    )
    alpha: float = Field(1.0, ge=0, description="weight of the facts, from what was read; assumed")
    beta: float = Field(1.0, ge=0, description="weight of the facts, from their codes; assumed")
    delta: float = Field(1.0, ge=0, description="weight of the ordering loss; assumed")
    rho: float = Field(1.0, ge=0, description="weight of the other text; assumed")

    shortest_first: Annotated[tuple[Stage, ...] | None, Field(strict=False)] = added(
        None,
        before=None,
        description="stages at the beginning, (most lines, epochs) each: samples with more lines "
        "wait; none: all samples from the first epoch on. The paper trains one baseline so",
    )

    @model_validator(mode="after")
    def _stages_grow_and_end(self) -> "Facts":
        stages = self.shortest_first or ()
        lines = [most for most, _ in stages]
        if any(a >= b for a, b in pairwise(lines)) or any(min(stage) < 1 for stage in stages):
            raise ValueError(f"stages have more and more lines, and an epoch each: not {stages}")
        if (early := sum(epochs for _, epochs in stages)) >= self.epochs:
            raise ValueError(
                f"stages of {early} epochs leave none of the {self.epochs} to all samples"
            )
        return self

    @property
    def clip(self) -> Clip | None:
        return None if self.clip_norm is None else Clip("norm", self.clip_norm)

    @property
    def selection(self) -> Selection:
        """The last weights, as in the paper."""
        return Selection(by="last")

    @property
    def weights(self) -> dict[str, float]:
        """{term: its weight} of the terms beside the answer's that have one."""
        every = {
            "facts": self.alpha,
            "autoencoded": self.beta,
            "order": self.delta,
            "text": self.rho,
        }
        return {term: weight for term, weight in every.items() if weight}

    def kept(self, order: np.ndarray, data: "Batch", interval: int) -> np.ndarray:
        """Leave out what has too many lines for the stage.

        Raises RelengthError where nothing is left.
        """
        for most, epochs in self.shortest_first or ():
            if interval < epochs:
                short = order[data.input_lengths.cpu().numpy()[order] <= most]
                if not len(short):
                    raise RelengthError(
                        f"No training sample has {most} lines or fewer: let the first stage of "
                        "shortest_first have more."
                    )
                return short
            interval -= epochs
        return order

    def ends_early(self, progress: "Progress", score: float) -> bool:
        return self.solved_accuracy is not None and score >= self.solved_accuracy

    def loss(self, task: "Task", model: "Module", batch: "Batch", key: "Tensor | None") -> "Tensor":
        """Eq. 1, as a sum that is minimised; of a model without further terms its first alone."""
        if not getattr(model, "supervised", False):
            return super().loss(task, model, batch, key)
        outputs, terms = model.with_terms(batch, key, tuple(self.weights))
        loss = task.loss(outputs, batch)
        for term, weight in self.weights.items():
            loss = loss + weight * getattr(terms, term)
        return loss

    def check(self, task: "Task", model: "ModelConfig") -> None:
        """Raise ValueError where a task is cut for other pretrained networks than a model has."""
        for part in ("encoder", "decoder"):
            cut, has = getattr(task, part, ""), getattr(model, part, "")
            if cut != has:
                raise ValueError(
                    f"task {task.name} is cut for the {part} {cut!r}, and model {model.name} has "
                    f"{has!r}: give both the same"
                )

    def before_test(self, model: "Module") -> None:
        """Give the query update its strength at test (Section 4.1)."""
        if getattr(model, "supervised", False):
            model.for_test()

    def traces(self, spec: "RunSpec", model: "Module", device: str) -> dict[str, Any]:
        """Trace what each hop of a memory reads, by length, if the model has one and tells."""
        from relength.training.traces_of_reads import reads

        return reads(spec, model, device)
