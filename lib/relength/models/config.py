"""The base of all models' configurations."""

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

Reads = Literal["tokens", "channels"]


class ModelConfig(BaseModel):
    """Sizes and reading of a model: frozen and checked. Every field enters the key of a run.

    A configuration imports no torch, so that recorded runs can be read without it; its module lies
    in another file.

    reads  what its batches hold
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    reads: ClassVar[Reads] = "channels"
