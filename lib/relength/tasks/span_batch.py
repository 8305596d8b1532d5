"""Batches of texts in which a span is looked for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

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
    skipped  (B,) int64, tokens of that part that lie before the window that is read
    """

    kind: ClassVar[Kind] = SPANS

    begins: "Tensor"
    numbers: "Tensor"
    skipped: "Tensor"


class Window(NamedTuple):
    """A row of such a batch: its span is None where it is not in the tokens."""

    tokens: list[int]
    begin: int
    span: tuple[int, int] | None
    number: int
    skipped: int = 0


@dataclass(frozen=True)
class Spans:
    """The answers of a model: first and last token (B, 2) int64, and their scores (B,)."""

    tokens: "Tensor"
    scores: "Tensor"

    def cpu(self) -> "Spans":
        return Spans(self.tokens.cpu(), self.scores.cpu())


def spans(rows: list[Window], padding: int) -> TokensToSpan:
    """A batch of windows, padded at the right."""
    import torch

    lengths = torch.tensor([len(row.tokens) for row in rows])
    inputs = torch.full((len(rows), int(lengths.max())), padding)
    for i, row in enumerate(rows):
        inputs[i, : len(row.tokens)] = torch.tensor(row.tokens)
    targets = torch.tensor([row.span or (0, 0) for row in rows])
    there = torch.tensor([row.span is not None for row in rows])
    return TokensToSpan(
        inputs,
        targets,
        there[:, None].expand(-1, 2).clone(),
        lengths,
        torch.full_like(lengths, 2),
        torch.tensor([row.begin for row in rows]),
        torch.tensor([row.number for row in rows]),
        torch.tensor([row.skipped for row in rows]),
    )
