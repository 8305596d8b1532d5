"""Sizes and arms of PANM together with a Transformer."""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from relength.models.pointers.plugin_configs import PlugInConfig
from relength.models.transformers.configs import LayerSizes

# name -> whether positions of the encoder are relative; the decoder is that of TRM (Section 3.3)
BACKBONES = {"PANM on TRM": False, "PANM on TRM+RPE": True}


class TransformerPANMConfig(PlugInConfig, LayerSizes):
    """Reading and sizes of a PANM on a Transformer.

    The controller is as wide as the memory, since its first state is the sum of the memory; the
    text gives it 256 units, as it does the pointer units.
    """

    marks: ClassVar[int] = 2

    name: Literal[tuple(BACKBONES)]
    relative: bool = Field(description="positions as distances, in the encoder")
    decoder_layers: int = Field(2, gt=0, description="one less than TRM has (Appendix D.3)")
    base_in_tests: Literal["zero", "random"] = Field(
        "zero", description="base address in tests; the text says that it can be 0"
    )

    @model_validator(mode="before")
    @classmethod
    def _positions_of_the_name(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and isinstance(name := fields.get("name"), str):
            return {"relative": BACKBONES.get(name, False)} | fields
        return fields

    @model_validator(mode="after")
    def _is_what_its_name_says(self) -> "TransformerPANMConfig":
        if self.relative != BACKBONES[self.name]:
            raise ValueError(
                f"{self.name} has relative={BACKBONES[self.name]}: choose another name"
            )
        return self
