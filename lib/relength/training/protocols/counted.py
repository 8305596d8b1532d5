"""The base of protocols that train for a number of steps."""

from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, model_validator

from relength.training.protocols.base import Protocol

if TYPE_CHECKING:
    from relength.tasks.base import Task


class CountedSteps(Protocol):
    """A number of optimiser steps, and an evaluation after every so many of them."""

    budget: ClassVar[tuple[str, ...]] = ("steps", *Protocol.budget)

    steps: int = Field(gt=0, description="optimiser steps, whole intervals of them")
    validate_every: int = Field(gt=0, description="steps of an interval")

    @model_validator(mode="after")
    def _whole_intervals(self) -> Self:
        if self.steps % self.validate_every:
            raise ValueError(
                f"{self.steps} steps are no whole number of intervals of {self.validate_every}"
            )
        return self

    @property
    def intervals(self) -> int:
        return self.steps // self.validate_every

    @property
    def interval_steps(self) -> int:
        return self.validate_every

    def most_steps(self, task: "Task") -> int:
        return self.steps
