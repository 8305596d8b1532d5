"""The common part of PANM's configurations on top of other networks."""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from relength.models.config import ModelConfig

TEMPERATURES = {"paper": 1.0, "repaired": 0.1}


class PlugInConfig(ModelConfig):
    """Pointers and controller of a PANM on another network.

    paper     the equations as printed
    repaired  the same with a temperature below 1, so that its softmaxes can point sharply
    """

    marks: ClassVar[int] = 0  # slots beside those of a source's tokens

    arm: Literal[tuple(TEMPERATURES)] = "paper"
    n_mode1: int = Field(2, ge=0, le=3, description="H^a")
    n_mode2: int = Field(1, ge=0, description="H^c")
    bits: int = Field(10, gt=0, le=30, description="of an address")
    pointer_size: int = Field(256, gt=0, description="of the pointer units (Appendix C)")
    mlp_size: int = Field(128, gt=0, description="hidden layer of g^a, g^c and g^o")
    temperature: float = Field(gt=0, description="of both softmaxes; the text has none, 1")

    @model_validator(mode="before")
    @classmethod
    def _temperature_of_the_arm(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and isinstance(arm := fields.get("arm", "paper"), str):
            return {"temperature": TEMPERATURES.get(arm, 1.0)} | fields
        return fields

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.n_mode2 and not self.n_mode1:
            raise ValueError(
                "Mode-2 pointers ask with Mode-1 values: n_mode2 needs an n_mode1 above 0"
            )
        if self.temperature != 1 and self.arm == "paper":
            raise ValueError("arm paper has no temperature, only repaired has one")
        return self

    def cannot(self, read: int, written: int) -> str:
        return beyond_addresses(read + self.marks, self.bits) or super().cannot(read, written)


def beyond_addresses(slots: int, bits: int) -> str:
    """Why a memory of so many slots is too large for addresses of so many bits, if it is."""
    if slots <= 2**bits:
        return ""
    return (
        f"a memory of {slots:,} slots does not fit into {2**bits:,} addresses of {bits} bits, so "
        "choose more bits, or shorter tests"
    )
