"""Sizes and arms of the baselines."""

from typing import Literal

from pydantic import Field, model_validator

from relength.models.config import ModelConfig

POSITIONS = 128


class LSTMConfig(ModelConfig):
    """Size, the paper's and the released code's."""

    name: Literal["LSTM"] = "LSTM"
    arm: Literal["released"] = "released"
    hidden_size: int = Field(512, gt=0, description="units")


class TransformerConfig(ModelConfig):
    """Sizes and arm.

    The text of PANM gives 512 units and one layer; the released code has 256 and two. Everything
    else is the released code's, with one exception: its two layers start from equal weights, ours
    from different ones.
    """

    name: Literal["Transformer"] = "Transformer"
    arm: Literal["released", "paper"] = "released"
    hidden_size: int = Field(
        default_factory=lambda fields: 512 if fields.get("arm") == "paper" else 256,
        gt=0,
        multiple_of=2,
        description="d: 256 released, 512 in the paper's text",
    )
    layers: int = Field(
        default_factory=lambda fields: 1 if fields.get("arm") == "paper" else 2,
        gt=0,
        description="2 released, 1 in the paper's text",
    )
    heads: int = Field(8, gt=0, description="h; released, not in the paper")
    inner_size: int = Field(512, gt=0, description="rows of W_1; released, not in the paper")
    dropout: float = Field(0.2, ge=0, lt=1, description="released, not in the paper")

    @model_validator(mode="after")
    def _heads_divide(self) -> "TransformerConfig":
        if self.hidden_size % self.heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of the {self.heads} heads"
            )
        return self


class ContentAttentionConfig(ModelConfig):
    """Size and arm.

    paper      Bahdanau's equations with d = 512: 2.7 million parameters, as the text of PANM says
               ("around 1-3 millions")
    released   the authors' public code: a linear embedding, encoder states of both directions
               (512 each) added, ReLU instead of tanh, and the last state of the forward encoder
               as the decoder's first. It has 6.3 million parameters, of which a sixth multiply
               zero or nothing: those are left out here
    """

    name: Literal["Content Attention"] = "Content Attention"
    arm: Literal["released", "paper"] = "released"
    hidden_size: int = Field(512, gt=0, multiple_of=2, description="d")


class LocationAttentionConfig(ModelConfig):
    """Sizes; the paper gives the first."""

    name: Literal["Location Attention"] = "Location Attention"
    arm: Literal["paper"] = "paper"
    hidden_size: int = Field(512, gt=0, multiple_of=2, description="d")
    positions: int = Field(
        POSITIONS,
        gt=0,
        description="rows of W_a, not in the paper; its longest test has 83 positions",
    )


class HybridAttentionConfig(ModelConfig):
    """Sizes; the paper gives the first."""

    name: Literal["Hybrid Attention"] = "Hybrid Attention"
    arm: Literal["paper"] = "paper"
    hidden_size: int = Field(512, gt=0, multiple_of=2, description="d")
    positions: int = Field(
        POSITIONS, gt=0, description="rows of W_a of the location score, not in the paper"
    )


class PtrNetConfig(ModelConfig):
    """Sizes; the paper gives the first."""

    name: Literal["PtrNet"] = "PtrNet"
    arm: Literal["paper"] = "paper"
    hidden_size: int = Field(512, gt=0, multiple_of=2, description="d")
    least_probability: float = Field(
        1e-9, gt=0, description="added before the logarithm; not in the paper"
    )
