"""Sizes of the baselines that read facts and a question: about as many parameters as MemReasoner.

Most of these parameters are vectors of words, as they are MemReasoner's.
"""

from typing import ClassVar, Literal

from pydantic import Field

from relength.models.config import ModelConfig
from relength.models.language.configs import LanguageConfig, MemReasonerConfig
from relength.specs.kinds import FACTS, Kind


class LarimarConfig(MemReasonerConfig):
    """Sizes and arm: MemReasoner's, without order of lines and with one read."""

    name: Literal["Larimar"] = "Larimar"
    temporal: Literal["none"] = "none"
    hops: Literal[1] = 1


class RMTConfig(LanguageConfig):
    """Sizes, and an arm: what the memory is that a segment hands on.

    paper     what the layers give, as Bulatov et al. write it; nothing rescales it from segment to
              segment
    released  the same after the last norm, as RMT's code on GPT-2 has it

    The paper fine-tunes RMTs on GPT-2 with 137 and 770 million parameters. Its segments have 64
    tokens on task 1 and 128 on task 2.
    """

    name: Literal["RMT"] = "RMT"
    arm: Literal["paper", "released"] = "paper"
    width: int = Field(128, gt=0, description="d")
    inner_size: int = Field(256, gt=0, description="hidden units of a layer's feed-forward part")
    layers: int = Field(2, gt=0)
    segment: int = Field(64, gt=0, description="words of a segment; 64 on task 1, 128 on task 2")
    memory: int = Field(8, gt=0, description="memory tokens; not in the paper, 16 in BABILong's")


class MambaConfig(ModelConfig):
    """Sizes.

    The paper fine-tunes Mambas of 130 million and 1.4 billion parameters, whose states have 16
    numbers per channel.
    """

    kind: ClassVar[Kind] = FACTS

    name: Literal["Mamba"] = "Mamba"
    arm: Literal["paper"] = "paper"
    width: int = Field(128, gt=0, description="D, of a word's vector and a layer's output")
    layers: int = Field(2, gt=0)
    expansion: int = Field(2, gt=0, description="E; a layer has E·D channels")
    state_size: int = Field(8, gt=0, description="N, numbers that a channel keeps; 16 in Mamba")
    taps: int = Field(4, gt=1, description="words that a layer's convolution sees")
    rank: int = Field(8, gt=0, description="of the map to step sizes; D/16 in Mamba")


class MemN2NConfig(ModelConfig):
    """Sizes. The paper gives none."""

    kind: ClassVar[Kind] = FACTS

    name: Literal["MemN2N"] = "MemN2N"
    arm: Literal["paper"] = "paper"
    width: int = Field(56, gt=0, description="d, of a sentence's vectors")
    hops: int = Field(3, gt=0, description="K, reads")
    lines: int = Field(128, gt=0, description="lines that it can read, at most")
