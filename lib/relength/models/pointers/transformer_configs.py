"""Sizes and arms of PANM together with a Transformer."""

from typing import Any, Literal

from pydantic import Field, model_validator

from relength.models.transformers.configs import LayerSizes

TEMPERATURES = {"paper": 1.0, "repaired": 0.1}
# name -> whether positions of the encoder are relative; the decoder is that of TRM (Section 3.3)
BACKBONES = {"PANM on TRM": False, "PANM on TRM+RPE": True}


class TransformerPANMConfig(LayerSizes):
    """Reading and sizes of a PANM on a Transformer.

    paper     the equations as printed
    repaired  the same with a temperature below 1, so that its softmaxes can point sharply

    The controller is as wide as the memory, since its first state is the sum of the memory; the
    text gives it 256 units, as it does the pointer units.
    """

    name: Literal[tuple(BACKBONES)]
    arm: Literal[tuple(TEMPERATURES)] = "paper"
    relative: bool = Field(description="positions as distances, in the encoder")
    decoder_layers: int = Field(2, gt=0, description="one less than TRM has (Appendix D.3)")
    n_mode1: int = Field(2, ge=0, le=3, description="H^a")
    n_mode2: int = Field(1, ge=0, description="H^c")
    bits: int = Field(10, gt=0, le=30, description="of an address")
    pointer_size: int = Field(256, gt=0, description="of the pointer units (Appendix C)")
    mlp_size: int = Field(128, gt=0, description="hidden layer of g^a, g^c and g^o")
    temperature: float = Field(gt=0, description="of both softmaxes; the text has none, 1")
    base_in_tests: Literal["zero", "random"] = Field(
        "zero", description="base address in tests; the text says that it can be 0"
    )

    @model_validator(mode="before")
    @classmethod
    def _of_name_and_arm(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        known = {}
        if isinstance(name := fields.get("name"), str):
            known["relative"] = BACKBONES.get(name, False)
        if isinstance(arm := fields.get("arm", "paper"), str):
            known["temperature"] = TEMPERATURES.get(arm, 1.0)
        return known | fields

    @model_validator(mode="after")
    def _is_what_its_name_says(self) -> "TransformerPANMConfig":
        if self.relative != BACKBONES[self.name]:
            raise ValueError(
                f"{self.name} has relative={BACKBONES[self.name]}: choose another name"
            )
        return self

    @model_validator(mode="after")
    def _possible(self) -> "TransformerPANMConfig":
        if self.n_mode2 and not self.n_mode1:
            raise ValueError(
                "Mode-2 pointers ask with Mode-1 values: n_mode2 needs an n_mode1 above 0"
            )
        if self.temperature != 1 and self.arm == "paper":
            raise ValueError("arm paper has no temperature, only repaired has one")
        return self
