"""Variants of MemReasoner: those of its ablations, one that answers hop by hop, one that copies."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from relength.models.language.configs import NAMED, GPTConfig, MemReasonerConfig, check_both
from relength.specs.fields import added

SUPERVISION = {"every": "", "last": "MemReasoner (weak)"}
# What trains less than the whole budget, as Table 20 names it.
EPOCHS = {"whole": "", "half": "epochs=100", "quarter": "epochs=50"}
LAYERS = {1: "1-layer", 2: "2-layer"}
# The value at test that MemReasoner has; another one makes a row of Table 18, or of our own.
USUAL_UPDATE = 8.0
BOTH_PATHS = "Both paths to the decoder"  # a row of our own


class VariantConfig(MemReasonerConfig):
    """Changes to MemReasoner, which make a row of Tables 17 to 20; without any it is itself.

    What the paper calls positional encoding is here the sinusoid that counts from the first line,
    which it describes first; the one that counts from the last line is a row of its own.
    """

    name: Literal["MemReasoner variant"] = "MemReasoner variant"
    arm: Literal["paper"] = "paper"
    recurrent_layers: Literal[1, 2] = Field(
        1, description="layers of the recurrent temporal encoding"
    )
    supervised: Literal["every", "last"] = Field(
        "every", description="the reads that the loss tells which line to find"
    )
    trained: Literal["whole", "half", "quarter"] = Field(
        "whole", description="share of the epochs; their number is the protocol's"
    )

    @model_validator(mode="after")
    def _fits(self) -> "VariantConfig":
        if self.recurrent_layers > 1 and self.temporal not in ("gru", "bigru"):
            raise ValueError(
                f"temporal encoding {self.temporal} has no recurrent layers: choose gru or bigru"
            )
        if self.supervised == "last" and self.inverse == "iterated":
            raise ValueError(
                "an iterated inverse may diverge, which supervision of the last read alone does "
                "not provide for: choose exact or ridge"
            )
        return self

    @staticmethod
    def row(model: Mapping[str, Any]) -> str:
        """Name the model as the paper's tables do, or in their manner."""
        named = [SUPERVISION[model["supervised"]] or EPOCHS[model["trained"]]]
        if model["test_update"] != USUAL_UPDATE:
            named.append(f"alpha={model['test_update']:g}")
        if own := " ".join(filter(None, named)):
            return own
        if model["conditioning"] == "past_and_words":
            return BOTH_PATHS
        layers = LAYERS[model["recurrent_layers"]]
        match model["temporal"]:
            case "bigru":
                return f"{layers} bi-directional GRU"
            case "gru":
                return f"{layers} uni-directional GRU"
            case "sinusoid":
                return "Positional Encoding"
            case "sinusoid_from_end":
                return "Positional Encoding from the end"
        return "No temporal encoding"


class EachHopConfig(MemReasonerConfig):
    """MemReasoner that writes a name from every hop (Appendix A.6), on either reading of its task.

    paper  chains as the text words them
    ruler  chains as RULER's public code draws them; the model is the same
    """

    name: Literal["MemReasoner each hop"] = "MemReasoner each hop"
    arm: Literal["paper", "ruler"] = "paper"
    inverse: Literal["exact", "iterated", "ridge"] = Field(
        "exact", description="the pseudo-inverse; exact as in the text"
    )

    @staticmethod
    def row(model: Mapping[str, Any]) -> str:
        """It is the paper's one model."""
        return "MemReasoner"


class CopyingConfig(MemReasonerConfig):
    """MemReasoner with a decoder of our own, which points at words of the line that was read.

    repaired  no text has it; everything else is as in the text
    """

    name: Literal["MemReasoner copying"] = "MemReasoner copying"
    arm: Literal["repaired"] = "repaired"
    inverse: Literal["exact", "iterated", "ridge"] = Field(
        "exact", description="the pseudo-inverse; exact as in the text"
    )

    @model_validator(mode="after")
    def _small(self) -> "CopyingConfig":
        if self.encoder:
            raise ValueError(
                "a decoder that copies has the encoder's words, which are not those of a "
                "pretrained one: name no networks"
            )
        return self


class WindowsConfig(MemReasonerConfig):
    """MemReasoner itself, which learns to write short windows of text with words of every kind.

    repaired  no text has it; the windows are the task's
    """

    name: Literal["MemReasoner windows"] = "MemReasoner windows"
    arm: Literal["repaired"] = "repaired"
    inverse: Literal["exact", "iterated", "ridge"] = Field(
        "exact", description="the pseudo-inverse; exact as in the text"
    )


class WithoutMemoryConfig(GPTConfig):
    """Sizes of MemReasoner without its memory (Appendix A.8.1): a plain decoder and an encoder.

    Decoder and window are those of the plain decoder beside it, the encoder MemReasoner's.
    """

    name: Literal["MemReasoner without memory"] = "MemReasoner without memory"
    encoder_layers: int = Field(2, gt=0)
    latent_size: int = Field(96, gt=0, description="D")
    encoder: str = added("", before="", description=f"{NAMED}, such as BERT; empty for a small one")

    @model_validator(mode="after")
    def _both_or_none(self) -> "WithoutMemoryConfig":
        check_both(self.encoder, self.decoder)
        return self

    @staticmethod
    def row(model: Mapping[str, Any]) -> str:
        """Name the model as Table 16 does."""
        return "MemReasoner\\memory"
