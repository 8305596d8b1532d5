"""Scores that several tasks share: of single samples while training, of whole test sets after."""

from typing import TYPE_CHECKING

import torch
from rapidfuzz.distance import Levenshtein
from torch import Tensor

from relength.tasks.metrics import PARTS, TokenMetrics

if TYPE_CHECKING:
    from relength.tasks.batch import Sequences


def exactly_right(scores: Tensor, batch: "Sequences") -> Tensor:
    """Samples (B,) whose every token has the highest of the scores (B, T, classes)."""
    return (_right(scores, batch) | ~batch.mask).all(1)


def tokens_right(scores: Tensor, batch: "Sequences") -> Tensor:
    """Share (B,) of each sample's tokens that have the highest of the scores (B, T, classes)."""
    return _right(scores, batch).sum(1).double() / batch.mask.sum(1)


def _right(scores: Tensor, batch: "Sequences") -> Tensor:
    return (scores.argmax(2) == batch.targets) & batch.mask


def token_metrics(answers: "list[tuple[Sequences, Tensor]]", end: int | None) -> TokenMetrics:
    """Metrics of decoded tokens (B, steps) against the targets of their batches.

    end  the task's end token; None where the length of a target is given
    """
    items = exact = true_length = 0
    right_tokens = all_tokens = edits = 0
    prefix, parts = 0.0, torch.zeros(PARTS, dtype=torch.long)
    for batch, tokens in answers:
        items += len(batch)
        width = batch.targets.shape[1]
        right = (tokens[:, :width] == batch.targets) & batch.mask
        exact += int((right | ~batch.mask).all(1).sum())
        body = batch.mask if end is None else batch.mask & (batch.targets != end)
        true_length += int((right | ~body).all(1).sum())
        right_tokens += int(right.sum())
        all_tokens += int(batch.mask.sum())
        before = (right | ~batch.mask).int().cumprod(1).mul(batch.mask).sum(1)  # the first error
        prefix += float((before / batch.target_lengths).sum())
        wrong = before < batch.target_lengths
        place = PARTS * before[wrong] // batch.target_lengths[wrong]
        parts += place.bincount(minlength=PARTS)
        for given, wanted, n in zip(
            tokens.tolist(), batch.targets.tolist(), batch.target_lengths.tolist(), strict=True
        ):
            given = given[: given.index(end)] if end in given else given
            edits += Levenshtein.distance(given, wanted[:n] if end is None else wanted[: n - 1])
    return TokenMetrics(
        items=items,
        exact_match=exact / items,
        exact_match_true_length=true_length / items,
        token_accuracy=right_tokens / all_tokens,
        correct_prefix=prefix / items,
        edit_distance=edits / items,
        first_errors=parts.tolist(),
    )
