"""The one shape in which every task hands its samples to every model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Samples padded to a common length, batch first.

    inputs          (B, S) int64 tokens, or (B, S, C) real channels
    targets         (B, T) int64 tokens
    mask            (B, T) bool, True where a target counts
    input_lengths   (B,) int64, valid input positions per sample
    target_lengths  (B,) int64, valid target positions per sample (an end token included)
    """

    inputs: "Tensor"
    targets: "Tensor"
    mask: "Tensor"
    input_lengths: "Tensor"
    target_lengths: "Tensor"

    def __len__(self) -> int:
        return len(self.inputs)

    def select(self, indices: "Tensor | slice") -> "Batch":
        """The samples at ``indices``, padded no further than the longest of them needs."""
        input_lengths, target_lengths = self.input_lengths[indices], self.target_lengths[indices]
        s, t = int(input_lengths.max()), int(target_lengths.max())
        return Batch(
            self.inputs[indices, :s],
            self.targets[indices, :t],
            self.mask[indices, :t],
            input_lengths,
            target_lengths,
        )

    def chunks(self, size: int) -> "list[Batch]":
        """The samples in order, ``size`` at a time."""
        return [self.select(slice(i, i + size)) for i in range(0, len(self), size)]

    def to(self, device: "torch.device | str") -> "Batch":
        return Batch(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


def pad_tokens(inputs: list[list[int]], targets: list[list[int]], padding: int) -> Batch:
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
    return Batch(source, target, mask, input_lengths, target_lengths)
