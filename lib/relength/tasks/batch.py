"""The shapes in which tasks hand their samples to models: a dataclass per kind of task."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Self

from relength.specs.kinds import CHANNELS, CLASSES, TOKENS, Kind

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Samples padded to common lengths; every field is a tensor, batch first.

    A subclass is one kind of task. It says in LENGTHS which fields are padded along their second
    axis: their name, and the field (B,) that counts their valid positions.
    """

    kind: ClassVar[Kind]
    LENGTHS: ClassVar[dict[str, str]]

    def __len__(self) -> int:
        return len(self.tensors[0])

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
