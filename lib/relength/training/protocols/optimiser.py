"""Settings of the optimisers, a class each; :mod:`relength.training.optimisers` computes them.

The learning rate is none of them: it belongs to the protocol, whose schedule may change it.
"""

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny


class Settings(BaseModel):
    """Settings of one optimiser, by its ``name``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    name: str


class Adam(Settings):
    """Adam (Kingma and Ba, 2015), with PyTorch's averages; weight decay joins the gradient."""

    name: Literal["adam"] = "adam"
    weight_decay: float = Field(0.0, ge=0)


class AdamW(Settings):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2019)."""

    name: Literal["adamw"] = "adamw"
    weight_decay: float = Field(0.0, ge=0)


class RMSprop(Settings):
    """RMSprop (Hinton's lecture, PyTorch's variant)."""

    name: Literal["rmsprop"] = "rmsprop"
    smoothing: float = Field(0.99, ge=0, lt=1, description="of the squared gradient, alpha")
    momentum: float = Field(0.0, ge=0, lt=1)


OPTIMISERS = {kind.model_fields["name"].default: kind for kind in Settings.__subclasses__()}


def _settings(value: Any, flat: str | None = None) -> Any:
    """The settings that a name, or fields with a name, stand for.

    flat  the optimiser that stands as its bare name, because its settings are the protocol's own
    """
    if isinstance(value, Settings):
        return value
    fields = {"name": value} if isinstance(value, str) else value
    name = fields.get("name") if isinstance(fields, dict) else fields
    if not isinstance(name, str) or name not in OPTIMISERS:
        known = ", ".join(map(repr, OPTIMISERS))
        raise ValueError(f"unknown optimiser {name!r}: choose one of {known}")
    if name != flat:
        return OPTIMISERS[name].model_validate(fields)
    if value != name:
        raise ValueError(f"give {name!r} as its name alone: its settings stand beside it")
    return value


Optimiser = Annotated[SerializeAsAny[Settings], BeforeValidator(_settings)]
# Records have these two as names, and their settings beside them.
OptimiserOrAdamW = Annotated[
    Literal["adamw"] | SerializeAsAny[Settings], BeforeValidator(partial(_settings, flat="adamw"))
]
OptimiserOrRMSprop = Annotated[
    Literal["rmsprop"] | SerializeAsAny[Settings],
    BeforeValidator(partial(_settings, flat="rmsprop")),
]
