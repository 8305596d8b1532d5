"""Batches of texts in which a span is looked for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from relength.specs.kinds import SPANS, Kind
from relength.tasks.batch import Sequences

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TokensToSpan(Sequences):
    """Inputs (B, S) are int64 tokens, targets (B, 2) the places of a span's first and last token.

    mask     (B, 2), False where the span is not in the inputs
    begins   (B,) int64, where the part begins in which a span may lie, up to the last token but one
    numbers  (B,) int64, of the question in its data set
    """

    kind: ClassVar[Kind] = SPANS

    begins: "Tensor"
    numbers: "Tensor"


def spans(
    rows: list[tuple[list[int], int, tuple[int, int] | None, int]], padding: int
) -> TokensToSpan:
    """A batch of tokens, begins, spans (None for one that is not there) and numbers."""
    import torch

    lengths = torch.tensor([len(tokens) for tokens, *_ in rows])
    inputs = torch.full((len(rows), int(lengths.max())), padding)
    for row, (tokens, *_) in enumerate(rows):
        inputs[row, : len(tokens)] = torch.tensor(tokens)
    targets = torch.tensor([span or (0, 0) for _, _, span, _ in rows])
    there = torch.tensor([span is not None for _, _, span, _ in rows])
    return TokensToSpan(
        inputs,
        targets,
        there[:, None].expand(-1, 2).clone(),
        lengths,
        torch.full_like(lengths, 2),
        torch.tensor([begin for _, begin, _, _ in rows]),
        torch.tensor([number for *_, number in rows]),
    )
