"""Sizes and arms of the models that find a span in a text."""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from relength.models.config import ModelConfig
from relength.models.language.causal_configs import TEMPERATURES
from relength.specs.kinds import SPANS, Kind


class BertConfig(ModelConfig):
    """BERT, pretrained (``weights``; all of it is trained on) or from scratch with these sizes."""

    kind: ClassVar[Kind] = SPANS

    name: Literal["BERT"] = "BERT"
    arm: Literal["paper"] = "paper"
    weights: str = Field("", description="pretrained model, by its name or folder; empty for none")
    width: int = Field(64, gt=0, description="d, of a token's vector")
    heads: int = Field(4, gt=0)
    inner_size: int = Field(128, gt=0, description="hidden units of a layer's feed-forward part")
    layers: int = Field(2, gt=0)
    positions: int = Field(512, gt=0, description="tokens that are read, at most")

    @model_validator(mode="after")
    def _heads_divide(self) -> "BertConfig":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of the {self.heads} heads")
        return self


class BertPANMConfig(BertConfig):
    """The same, with PANM's controller in place of the layer that scores places.

    paper     the equations as printed
    repaired  the same with a temperature below 1, so that its softmaxes can point sharply

    How a controller predicts a place is not said (Section 3.4, Appendix D.4). Here it takes two
    steps, one for the first token and one for the last; what it writes is compared with the vector
    of every place, by a dot product.
    """

    name: Literal["PANM on BERT"] = "PANM on BERT"
    arm: Literal[tuple(TEMPERATURES)] = "paper"
    n_mode1: int = Field(2, ge=1, le=3, description="H^a")
    n_mode2: int = Field(1, ge=0, description="H^c")
    bits: int = Field(10, gt=0, le=30, description="of an address")
    pointer_size: int = Field(256, gt=0, description="of the pointer units (Appendix C)")
    mlp_size: int = Field(128, gt=0, description="hidden layer of g^a, g^c and g^o")
    temperature: float = Field(gt=0, description="of both softmaxes; the text has none, 1")

    @model_validator(mode="before")
    @classmethod
    def _of_the_arm(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and isinstance(arm := fields.get("arm", "paper"), str):
            return {"temperature": TEMPERATURES.get(arm, 1.0)} | fields
        return fields

    @model_validator(mode="after")
    def _printed_has_no_temperature(self) -> "BertPANMConfig":
        if self.temperature != 1 and self.arm == "paper":
            raise ValueError("arm paper has no temperature, only repaired has one")
        return self
