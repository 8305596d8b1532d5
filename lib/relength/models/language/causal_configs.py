"""Sizes and arms of causal language models, with and without PANM on top."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from relength.models.config import ModelConfig
from relength.models.pointers.plugin_configs import PlugInConfig
from relength.specs.kinds import TOKENS, Kind


class CausalConfig(ModelConfig):
    """A causal language model of transformers, pretrained or not, that is trained on answers.

    With ``weights`` it is that model, whichever it is, with adapters of low rank (LoRA) on its
    queries and values, or on the one map that has them with its keys; nothing else of it is
    trained, and sizes are the model's own. Without, it is Llama's network of the sizes below, whose
    weights start at random.
    """

    kind: ClassVar[Kind] = TOKENS

    name: Literal["Llama"] = "Llama"
    arm: Literal["paper"] = "paper"
    weights: str = Field("", description="pretrained model, by its name or folder; empty for none")
    lora_rank: int = Field(8, gt=0, description="of the adapters (Appendix D.5)")
    lora_alpha: int = Field(8, gt=0, description="of the adapters (Appendix D.5)")
    width: int = Field(128, gt=0, description="d, of a token's vector")
    heads: int = Field(4, gt=0)
    inner_size: int = Field(352, gt=0, description="hidden units of a layer's feed-forward part")
    layers: int = Field(4, gt=0)
    positions: int = Field(4_096, gt=0, description="tokens that are read and written, at most")

    @model_validator(mode="after")
    def _heads_divide(self) -> "CausalConfig":
        if self.width % (2 * self.heads):
            raise ValueError(
                f"width {self.width} is not a multiple of twice the {self.heads} heads, which "
                "turn pairs of numbers"
            )
        return self

    def cannot(self, read: int, written: int) -> str:
        size = read + written - 1  # the last token is written and not read
        if size <= self.positions:
            return ""
        return (
            f"a text of {size:,} tokens does not fit into {self.positions:,} positions, so choose "
            "shorter tests, or more positions"
        )


class PretrainedConfig(CausalConfig):
    """The same network in a row of its own: tested as published, without any fine-tuning.

    Section 3.5 calls it the pretrained model. Its adapters stay at their first values, which change
    nothing, as protocol *untrained* moves no weight.
    """

    only_protocol: ClassVar[str] = "untrained"

    name: Literal["Pretrained Llama"] = "Pretrained Llama"


class CausalPANMConfig(PlugInConfig, CausalConfig):
    """A causal model with PANM in the place of the layer that scores the tokens.

    Where PANM sits is not said more closely than "on top of the final attention layer" (Section
    3.5): its memory is the last vectors of the prompt, its decoder the language model itself.
    """

    name: Literal["PANM on Llama"] = "PANM on Llama"
    n_mode1: int = Field(2, ge=1, le=3, description="H^a")
    bits: int = Field(12, gt=0, le=30, description="of an address; 12 for as many as Llama reads")
    base_in_tests: Literal["zero", "random"] = Field(
        "zero", description="base address in tests; the text says that it can be 0"
    )
