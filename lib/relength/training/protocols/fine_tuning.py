"""AdamW with a warm-up and a cosine, for some passes over fixed samples; the last weights count."""

import math
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from relength.training.protocols.base import Clip, Selection
from relength.training.protocols.fixed_steps import FixedSteps
from relength.training.protocols.optimiser import AdamW, Settings

if TYPE_CHECKING:
    from relength.training.course import Progress


class FineTuning(FixedSteps):
    """The way language models are fine-tuned: AdamW, its rate rising and then falling to zero.

    Defaults: Appendix D.5 of the paper that it was written for, whose four accumulated batches of 8
    are one of 32 here, and whose three passes over 100,000 samples are 9,375 steps. The rate
    changes after an interval, and not after a step, which is ours. Gradients are not clipped: the
    paper names no limit.
    """

    name: Literal["fine_tuning"] = "fine_tuning"
    steps: int = Field(9_375, gt=0, description="optimiser steps, whole intervals of them")
    validate_every: int = Field(25, gt=0, description="steps of an interval")
    batch_size: int = Field(32, gt=0)
    learning_rate: float = Field(3.75e-5, gt=0, description="of the first interval")
    highest_rate: float = Field(3e-4, gt=0, description="after the warm-up")
    clip_norm: float | None = Field(None, gt=0, description="global gradient norm")
    weight_decay: float = Field(0.01, ge=0)
    warm_up: int = Field(100, ge=0, description="steps before the rate is the highest")
    decay: Literal["cosine", "linear"] = Field("cosine", description="of the rate, to zero")
    curve_every: int = Field(375, gt=0, description="steps between points of the learning curve")

    @property
    def moves(self) -> Settings:
        return AdamW(weight_decay=self.weight_decay)

    @property
    def clip(self) -> Clip | None:
        return None if self.clip_norm is None else Clip("norm", self.clip_norm)

    @property
    def selection(self) -> Selection:
        """The last weights."""
        return Selection(by="last")

    @property
    def curve_steps(self) -> int:
        return self.curve_every

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0: a line up, then a line or a cosine down."""
        if step < self.warm_up:
            return self.highest_rate * (step + 1) / self.warm_up
        done = (step - self.warm_up) / max(self.steps - self.warm_up, 1)
        done = min(done, 1.0)
        left = 1 - done if self.decay == "linear" else (1 + math.cos(math.pi * done)) / 2
        return self.highest_rate * left

    def schedule(self, progress: "Progress", score: float) -> None:
        """Set the rate of the next interval to that of its middle."""
        progress.rate = self.rate(progress.step + self.validate_every // 2)
