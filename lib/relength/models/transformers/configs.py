"""Sizes of the Transformers for sequences, and the four kinds that are one configuration."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from relength.models.config import WithHeads
from relength.specs.kinds import TOKENS, Kind

# name -> positions that are relative, one layer for all
VARIANTS: dict[str, dict[str, bool]] = {
    "TRM": {"relative": False, "universal": False},
    "TRM+RPE": {"relative": True, "universal": False},
    "U. TRM": {"relative": False, "universal": True},
    "U. TRM+RPE": {"relative": True, "universal": True},
}


class LayerSizes(WithHeads):
    """Sizes of the layers: those of the cited code for SCAN."""

    kind: ClassVar[Kind] = TOKENS

    width: int = Field(128, gt=0, multiple_of=2, description="d, of a token's vector")
    heads: int = Field(8, gt=0)
    inner_size: int = Field(256, gt=0, description="hidden units of a layer's feed-forward part")
    encoder_layers: int = Field(3, gt=0)
    decoder_layers: int = Field(3, gt=0)
    dropout: float = Field(
        0.1, ge=0, lt=1, description="share set to zero of attention weights, of hidden units, and "
        "of what a part adds to a vector"
    )  # fmt: skip

    @staticmethod
    def row(model: Mapping[str, Any]) -> str:
        """A model's name in tables; one of fewer than the three usual layers is a row of its own.

        >>> LayerSizes.row({"name": "TRM", "encoder_layers": 2})
        'TRM, 2 layers'
        """
        layers = model.get("encoder_layers", 3)
        few = f", {layers} layer{'s' if layers > 1 else ''}" if layers < 3 else ""
        return model["name"] + few


class TransformerSeq2SeqConfig(LayerSizes):
    """Encoder and decoder, as Csordás et al. (2021) train them.

    relative   whether positions are distances inside self-attention (RPE); else they are added to
               the first vectors
    universal  whether one layer is applied again and again; no halting
    """

    name: Literal[tuple(VARIANTS)]
    arm: Literal["released"] = "released"
    relative: bool
    universal: bool

    @model_validator(mode="before")
    @classmethod
    def _of_the_name(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and isinstance(name := fields.get("name"), str):
            return VARIANTS.get(name, {}) | fields
        return fields

    @model_validator(mode="after")
    def _is_what_its_name_says(self) -> "TransformerSeq2SeqConfig":
        if {"relative": self.relative, "universal": self.universal} != VARIANTS[self.name]:
            raise ValueError(f"{self.name} has {VARIANTS[self.name]}: choose another name")
        return self
