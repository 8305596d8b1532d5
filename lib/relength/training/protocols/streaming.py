"""Samples drawn afresh at every step, for RMSprop."""

from typing import Literal

from pydantic import Field, model_validator

from relength.specs.fields import added
from relength.training.protocols.base import Clip
from relength.training.protocols.fresh import FreshSamples
from relength.training.protocols.optimiser import OptimiserOrRMSprop, RMSprop, Settings

SMOOTHING, MOMENTUM = 0.95, 0.9


class Streaming(FreshSamples):
    """RMSprop on samples drawn afresh, gradients clipped by value, no schedule, no early end.

    Defaults: the released code of the paper that it was written for.
    """

    name: Literal["streaming"] = added("streaming", before="streaming")
    validate_every: int = Field(200, gt=0, description="steps of an interval")
    batch_size: int = Field(128, gt=0)
    optimiser: OptimiserOrRMSprop = "rmsprop"
    learning_rate: float = Field(1e-4, gt=0)
    smoothing: float = Field(SMOOTHING, ge=0, lt=1, description="of the squared gradient, alpha")
    momentum: float = Field(MOMENTUM, ge=0, lt=1)
    clip_value: float = Field(10.0, gt=0, description="largest element of a gradient")

    @model_validator(mode="after")
    def _settings_of_their_optimiser(self) -> "Streaming":
        usual = (self.smoothing, self.momentum) == (SMOOTHING, MOMENTUM)
        if self.optimiser != "rmsprop" and not usual:
            raise ValueError("smoothing and momentum are rmsprop's here: leave them as they are")
        return self

    @property
    def moves(self) -> Settings:
        if self.optimiser == "rmsprop":
            return RMSprop(smoothing=self.smoothing, momentum=self.momentum)
        return self.optimiser

    @property
    def clip(self) -> Clip:
        return Clip("value", self.clip_value)
