"""Sizes and arms of PANM together with a stack network."""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from relength.models.config import ModelConfig
from relength.models.pointers.plugin_configs import beyond_addresses
from relength.specs.kinds import CHANNELS, Kind

LIKE_SRNN = {"memory_size": 8, "pointer_size": 8, "mlp_size": 8}
ARMS: dict[str, dict[str, Any]] = {
    "paper": {"temperature": 1.0, **LIKE_SRNN},
    "repaired": {"temperature": 0.1, **LIKE_SRNN},
    "encoder": {"temperature": 0.1, **LIKE_SRNN},
    "large": {"temperature": 0.1, "memory_size": 256, "pointer_size": 256, "mlp_size": 128},
}
SHARP = ("repaired", "encoder", "large")


class StackPANMConfig(ModelConfig):
    """Reading and sizes of a PANM with SRNN.

    paper     SRNN is the decoder, and the memory holds the symbols themselves (Section 3.2); as
              many units everywhere as SRNN has, since sizes are said to be similar (Section 3)
    repaired  the same with a temperature below 1, so that its softmaxes can point sharply

    and the repaired equations with one thing as the appendix has it:

    encoder   SRNN is the encoder, and its states are the memory (Appendix D.2)
    large     256 units in the pointer units and the controller (Appendix C)
    """

    kind: ClassVar[Kind] = CHANNELS

    name: Literal["PANM on SRNN"] = "PANM on SRNN"
    arm: Literal[tuple(ARMS)] = "paper"
    n_mode1: int = Field(2, ge=0, le=3, description="H^a")
    n_mode2: int = Field(1, ge=0, description="H^c")
    bits: int = Field(10, gt=0, le=30, description="of an address")
    memory_size: int = Field(gt=0, description="d, of a slot and of the controller")
    pointer_size: int = Field(gt=0, description="of the pointer units")
    mlp_size: int = Field(gt=0, description="hidden layer of g^a, g^c and g^o")
    temperature: float = Field(gt=0, description="of both softmaxes; the text has none, 1")
    base_in_tests: Literal["zero", "random"] = Field(
        "zero", description="base address in tests; the text says that it can be 0"
    )
    stack_hidden: int = Field(8, gt=0, description="units of SRNN")
    stack_slots: int = Field(104, gt=0, description="rows of its stack")
    stack_width: int = Field(5, gt=0, description="numbers per row")

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_arm(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and isinstance(arm := fields.get("arm", "paper"), str):
            return ARMS.get(arm, {}) | fields
        return fields

    def cannot(self, read: int, written: int) -> str:
        return beyond_addresses(read, self.bits) or super().cannot(read, written)

    @model_validator(mode="after")
    def _possible(self) -> "StackPANMConfig":
        if self.n_mode2 and not self.n_mode1:
            raise ValueError(
                "Mode-2 pointers ask with Mode-1 values: n_mode2 needs an n_mode1 above 0"
            )
        if self.temperature != 1 and self.arm not in SHARP:
            raise ValueError(f"arm {self.arm} has no temperature, only {', '.join(SHARP)} have one")
        return self
