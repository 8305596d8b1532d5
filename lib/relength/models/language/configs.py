"""Sizes and arms of the models that read facts and a question."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from relength.models.config import WithHeads
from relength.specs.fields import added
from relength.specs.kinds import FACTS, Kind

NAMED = "pretrained model, by its name or folder"
INVERSES = {"paper": "exact", "released": "iterated", "repaired": "ridge"}


class LanguageConfig(WithHeads):
    """Sizes of a Transformer; the paper's have pretrained weights and hundreds of millions."""

    kind: ClassVar[Kind] = FACTS

    width: int = Field(64, gt=0, description="d, of a word's vector and a layer's output")
    heads: int = Field(4, gt=0)
    inner_size: int = Field(256, gt=0, description="hidden units of a layer's feed-forward part")


USUAL_DECODER = "openai-community/gpt2-large"  # Section 4.1
LARGER_QWEN = "Qwen/Qwen2.5-1.5B"  # Section 4.2


class MemReasonerConfig(LanguageConfig):
    """Sizes and arm.

    The paper's encoder is BERT-large, its decoder GPT2-large; D is 768 and K is 512 there. Where an
    encoder and a decoder are named, it is made of these, and all of it is trained; widths, heads
    and layers are then the networks' own. The authors' code is not public. The arms differ in how
    the memory's pseudo-inverses are computed and in how a latent reaches the decoder.

    paper     as the text: exact inverses; one past position per layer
    released  as in IBM/larimar, which it is built on: an iteration of 15 steps, after which small
              singular values are nearly 0; the latent is added to every word's vector, too
    repaired  as the text, with inverses that bound what small singular values become
    """

    name: Literal["MemReasoner"] = "MemReasoner"
    arm: Literal["paper", "released", "repaired"] = "paper"
    encoder_layers: int = Field(2, gt=0)
    decoder_layers: int = Field(2, gt=0, description="L")
    latent_size: int = Field(96, gt=0, multiple_of=2, description="D")
    slots: int = Field(64, gt=0, description="K, rows of the memory")
    inverse: Literal["exact", "iterated", "ridge"] = Field(
        default_factory=lambda fields: INVERSES[fields.get("arm", "paper")],
        description="the pseudo-inverse: by singular values; Larimar's iteration; or ridge",
    )
    iterations: int = Field(15, gt=0, description="steps of the iterated one; released")
    first_step: float = Field(5e-4, gt=0, description="times the transpose: the iterated one's "
                              "start; released")  # fmt: skip
    ridge: float = Field(1e-3, gt=0, description="added to squared singular values; ours")
    conditioning: Literal["past", "past_and_words"] = Field(
        default_factory=lambda fields: (
            "past_and_words" if fields.get("arm") == "released" else "past"
        ),
        description="where a latent enters the decoder; the second is released alone",
    )
    temporal: Literal["bigru", "gru", "sinusoid", "sinusoid_from_end", "none"] = Field(
        "bigru", description="what puts lines in order"
    )
    hops: int = Field(1, gt=0, description="reads, at most; 1 for task 1, 2 for task 2")
    threshold: float | None = Field(
        None, gt=0, description="tau: reading ends once two readouts are closer; none: after hops"
    )
    update: float = Field(1.0, ge=0, description="alpha of the query update in training")
    test_update: float = Field(8.0, ge=0, description="alpha at test")
    noise: float = Field(1e-6, ge=0, description="sd of the noise of writing and reading while "
                         "training; Larimar's")  # fmt: skip
    encoder: str = added("", before="", description=f"{NAMED}, such as BERT; empty for a small one")
    decoder: str = added("", before="", description=f"{NAMED} that writes; empty for a small one")

    @model_validator(mode="after")
    def _both_or_none(self) -> "MemReasonerConfig":
        check_both(self.encoder, self.decoder)
        return self

    @staticmethod
    def row(model: Mapping[str, Any]) -> str:
        """The model's name, with a decoder that is not the usual one."""
        return _row(model, USUAL_DECODER)


class GPTConfig(LanguageConfig):
    """Sizes: as many parameters as MemReasoner has, and of the same kind.

    A stand-in for the decoders that the paper fine-tunes on answers (Qwen2.5, Appendix A.4). Like
    these it knows positions by rotation.
    """

    name: Literal["GPT"] = "GPT"
    arm: Literal["paper"] = "paper"
    width: int = Field(96, gt=0, description="d")
    inner_size: int = Field(448, gt=0, description="hidden units of a layer's feed-forward part")
    layers: int = Field(3, gt=0)
    window: int = Field(2_048, gt=0, description="words that it can read, question included")
    decoder: str = added("", before="", description=f"{NAMED} that is this decoder, whose sizes "
                         "are its own; empty for a small one")  # fmt: skip

    @staticmethod
    def row(model: Mapping[str, Any]) -> str:
        """The model's name, with a decoder that is not the larger of the paper's two."""
        return _row(model, LARGER_QWEN)


def _row(model: Mapping[str, Any], usual: str) -> str:
    decoder = model.get("decoder") or usual
    short = decoder.rstrip("/").rpartition("/")[2]  # without its owner
    return model["name"] + ("" if decoder == usual else f" ({short})")


def check_both(encoder: str, decoder: str) -> None:
    """Raise ValueError where one of two networks is pretrained and the other is not."""
    if bool(encoder) != bool(decoder):
        raise ValueError(
            f"encoder {encoder!r} and decoder {decoder!r}: name pretrained models for both, or "
            "for none"
        )
