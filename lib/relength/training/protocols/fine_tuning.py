"""AdamW with a warm-up and a cosine, for some passes over fixed samples; the last weights count."""

import math
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from relength.specs.fields import added
from relength.training.protocols.base import Clip, Selection
from relength.training.protocols.fixed_steps import FixedSteps
from relength.training.protocols.optimiser import AdamW, OptimiserOrAdamW, Settings

if TYPE_CHECKING:
    from relength.training.course import Progress

WEIGHT_DECAY = 0.01


class FineTuning(FixedSteps):
    """Fine-tuning of language models: AdamW, whose rate rises and then falls to zero.

    Defaults follow Appendix D.5 of its paper: four accumulated batches of 8 are one of 32 here, and
    three passes over 100,000 samples are 9,375 steps. The paper names no limit of gradients, so
    they are not clipped. The rate changes after an interval, not after a step: that is ours.
    """

    name: Literal["fine_tuning"] = "fine_tuning"
    steps: int = Field(9_375, gt=0, description="optimiser steps, whole intervals of them")
    validate_every: int = Field(25, gt=0, description="steps of an interval")
    batch_size: int = Field(32, gt=0)
    optimiser: OptimiserOrAdamW = added("adamw", before="adamw")
    learning_rate: float = Field(3.75e-5, gt=0, description="of the first interval")
    highest_rate: float = Field(3e-4, gt=0, description="after the warm-up")
    clip_norm: float | None = Field(None, gt=0, description="global gradient norm")
    weight_decay: float = Field(WEIGHT_DECAY, ge=0, description="of adamw; others bring their own")
    warm_up: int = Field(100, ge=0, description="steps before the rate is the highest")
    decay: Literal["cosine", "linear"] = Field("cosine", description="of the rate, to zero")
    curve_every: int = Field(375, gt=0, description="steps between points of the learning curve")

    @model_validator(mode="after")
    def _settings_of_their_optimiser(self) -> Self:
        if self.optimiser != "adamw" and self.weight_decay != WEIGHT_DECAY:
            raise ValueError("weight_decay is adamw's here: give it inside optimiser")
        return self

    @property
    def moves(self) -> Settings:
        if self.optimiser == "adamw":
            return AdamW(weight_decay=self.weight_decay)
        return self.optimiser

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
