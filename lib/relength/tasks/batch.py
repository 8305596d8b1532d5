"""The shapes in which tasks hand their samples to models: a dataclass per kind of task."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Self

from relength.specs.kinds import CHANNELS, CLASSES, FACTS, TOKENS, Kind

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Samples padded to common lengths; every field is a tensor, batch first.

    A subclass is one kind of task. It says in LENGTHS which fields are padded along their second
    axis: their name, and the field (B,) that counts their valid positions. A field in SHARED
    belongs to all samples, and is the same whichever of them are selected.
    """

    kind: ClassVar[Kind]
    LENGTHS: ClassVar[dict[str, str]]
    SHARED: ClassVar[tuple[str, ...]] = ()

    def __len__(self) -> int:
        return len(getattr(self, next(name for name in self.names() if name not in self.SHARED)))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of its fields, in order."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def counts(cls) -> tuple[str, ...]:
        """The fields that count valid positions, each once."""
        return tuple(dict.fromkeys(cls.LENGTHS.values()))

    @property
    def tensors(self) -> "tuple[Tensor, ...]":
        """All fields in order; the class makes a batch of them again."""
        return tuple(getattr(self, name) for name in self.names())

    def select(self, indices: "Tensor | slice") -> Self:
        """The samples at ``indices``, padded no further than the longest of them needs."""
        widths = {lengths: int(getattr(self, lengths)[indices].max()) for lengths in self.counts()}

        def chosen(name: str) -> "Tensor":
            if name in self.SHARED:
                return getattr(self, name)
            if name in self.LENGTHS:
                return getattr(self, name)[indices, : widths[self.LENGTHS[name]]]
            return getattr(self, name)[indices]

        return type(self)(*map(chosen, self.names()))

    def chunks(self, size: int) -> list[Self]:
        """The samples in order, ``size`` at a time."""
        return [self.select(slice(i, i + size)) for i in range(0, len(self), size)]

    def to(self, device: "torch.device | str") -> Self:
        return self.map(lambda tensor: tensor.to(device))

    def map(self, function: "Callable[[Tensor], Tensor]") -> Self:
        """The batch whose fields are a function of this one's."""
        return type(self)(*map(function, self.tensors))


@dataclass(frozen=True)
class Sequences(Batch):
    """A sequence read and a sequence written per sample, of lengths of their own.

    mask            (B, T) bool, True where a target counts
    input_lengths   (B,) int64, valid input positions per sample
    target_lengths  (B,) int64, valid target positions per sample (an end token included)
    """

    LENGTHS: ClassVar[dict[str, str]] = {
        "inputs": "input_lengths",
        "targets": "target_lengths",
        "mask": "target_lengths",
    }

    inputs: "Tensor"
    targets: "Tensor"
    mask: "Tensor"
    input_lengths: "Tensor"
    target_lengths: "Tensor"


@dataclass(frozen=True)
class TokensToTokens(Sequences):
    """Inputs (B, S) and targets (B, T) are int64 tokens."""

    kind: ClassVar[Kind] = TOKENS


@dataclass(frozen=True)
class ChannelsToClasses(Sequences):
    """Inputs (B, S, C) are real channels, targets (B, T) int64 classes."""

    kind: ClassVar[Kind] = CLASSES


@dataclass(frozen=True)
class ChannelsToChannels(Sequences):
    """Inputs (B, S, C) and targets (B, T, K) are real channels."""

    kind: ClassVar[Kind] = CHANNELS


@dataclass(frozen=True)
class FactsToAnswer(Batch):
    """An episode of lines, a question and an answer per sample.

    A line is given as a row of ``sentences``, so that each distinct sentence is there once.

    sentences       (N, L) int64, the words of each distinct sentence, padded at the right with 0;
                    an empty line has none
    inputs          (B, E) int64, the rows of an episode's lines, in their order
    questions       (B,) int64, the row of each question
    supports        (B, H) int64, the places in ``inputs`` of the facts that answer the question,
                    in the order in which they are to be found
    prompts         (B, P) int64, the words that an answer begins with, which are given; padded at
                    the left with 0
    targets         (B, T) int64, the words that follow, an end token included
    mask            (B, T) bool, True where a target counts
    texts           (B,) int64, the row of a sentence of other text, one beside each sample, or
                    (B, W) of W pieces
    input_lengths   (B,) int64, lines of each episode
    target_lengths  (B,) int64
    """

    kind: ClassVar[Kind] = FACTS
    LENGTHS: ClassVar[dict[str, str]] = {
        "inputs": "input_lengths",
        "targets": "target_lengths",
        "mask": "target_lengths",
    }
    SHARED: ClassVar[tuple[str, ...]] = ("sentences",)

    sentences: "Tensor"
    inputs: "Tensor"
    questions: "Tensor"
    supports: "Tensor"
    prompts: "Tensor"
    targets: "Tensor"
    mask: "Tensor"
    texts: "Tensor"
    input_lengths: "Tensor"
    target_lengths: "Tensor"

    @property
    def for_decoder(self) -> "Tensor":
        """The distinct sentences (N, L) as a decoder has them."""
        return self.sentences


@dataclass(frozen=True)
class SpokenFacts(FactsToAnswer):
    """Facts for an encoder and a decoder that each cut texts in their own way.

    spoken  (N, L') int64, each sentence in the decoder's tokens; ``sentences`` are the encoder's
    """

    SHARED: ClassVar[tuple[str, ...]] = ("sentences", "spoken")

    spoken: "Tensor"

    @property
    def for_decoder(self) -> "Tensor":
        return self.spoken


@dataclass(frozen=True)
class Answered:
    """The answers that a model has written for facts and questions.

    tokens  (B, T) int64
    read    (B, H) int64, the places of the lines that it read on the way; None if it does not tell
    """

    tokens: "Tensor"
    read: "Tensor | None" = None

    def cpu(self) -> "Answered":
        return Answered(self.tokens.cpu(), None if self.read is None else self.read.cpu())


def pad_tokens(inputs: list[list[int]], targets: list[list[int]], padding: int) -> TokensToTokens:
    """Batch of token sequences of unequal length, padded at the right with ``padding``."""
    import torch

    def padded(rows: list[list[int]]) -> "tuple[Tensor, Tensor]":
        lengths = torch.tensor([len(row) for row in rows])
        tokens = torch.full((len(rows), int(lengths.max())), padding)
        tokens[torch.arange(tokens.shape[1]) < lengths[:, None]] = torch.tensor(
            [token for row in rows for token in row]
        )
        return tokens, lengths

    source, input_lengths = padded(inputs)
    target, target_lengths = padded(targets)
    mask = torch.arange(target.shape[1]) < target_lengths[:, None]
    return TokensToTokens(source, target, mask, input_lengths, target_lengths)
