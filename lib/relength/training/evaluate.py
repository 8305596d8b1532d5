"""Metrics by length: exact match and its relatives, while training and free-running."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from rapidfuzz.distance import Levenshtein
from torch import Tensor

from relength.tasks.base import EOS
from relength.tasks.batch import Batch
from relength.training.recorded import PARTS

BATCH_SIZE = 256

Measure = Literal["exact_match", "token_accuracy"]
Criterion = Callable[[Tensor, Batch], Tensor]


class Metrics(NamedTuple):
    """What one checkpoint does on one test set, decoding greedily from its own tokens.

    Where the length of a target is given there is no end token to count or to stop at.

    items                    samples
    exact_match              share of outputs equal to the target, end token included
    exact_match_true_length  the same when decoding is stopped at the target's true length
    token_accuracy           share of target tokens (end included) that are right at their place
    correct_prefix           mean share of a target that is right before the first error
    edit_distance            mean Levenshtein distance of output and target, both without end token
    first_errors             outputs that are wrong, by the tenth of the target with the first error
    """

    items: int
    exact_match: float
    exact_match_true_length: float
    token_accuracy: float
    correct_prefix: float
    edit_distance: float
    first_errors: tuple[int, ...]


def by_length(data: Batch) -> list[Batch]:
    """The samples in batches of similar input length, to spend little on padding."""
    order = data.input_lengths.argsort(stable=True)
    return [data.select(chunk) for chunk in order.split(BATCH_SIZE)]


@torch.no_grad()
def validate(model: torch.nn.Module, batches: list[Batch], measure: Measure) -> tuple[float, float]:
    """Accuracy and mean loss of the scores that training sees, without a free decoder."""
    hits, items, loss = 0.0, 0, 0.0
    for batch in batches:
        right, mean = judge(model(batch), batch, model.criterion, measure)
        hits += float(right)
        items += len(batch)
        loss += float(mean) * len(batch)
    return hits / items, loss / items


def judge(
    scores: Tensor, batch: Batch, criterion: Criterion, measure: Measure
) -> tuple[Tensor, Tensor]:
    """Samples that are right (their share of right tokens, if that is the measure), mean loss."""
    right = (scores.argmax(2) == batch.targets) & batch.mask
    if measure == "exact_match":
        hits = (right | ~batch.mask).all(1).sum()
    else:
        hits = (right.sum(1).double() / batch.mask.sum(1)).sum()
    return hits, criterion(scores, batch)


def free_running(model: torch.nn.Module, batches: list[Batch], end: int | None = EOS) -> Metrics:
    """Greedy decoding up to the longest target of the whole set, cut at the model's own end token.

    end  the task's end token; None where the length of a target is given

    The released code decodes to the longest target of the batch; the whole set is used here so that
    the edit distance does not depend on how samples are batched. Exact match is the same either
    way.
    """
    steps = max(batch.targets.shape[1] for batch in batches)
    predictions = [(batch, model.generate(batch, steps)[0].cpu()) for batch in batches]
    return score([(batch.to("cpu"), tokens) for batch, tokens in predictions], end)


def score(predictions: list[tuple[Batch, Tensor]], end: int | None = EOS) -> Metrics:
    """Metrics of decoded tokens (B, steps) against the targets of their batches."""
    items = exact = true_length = 0
    right_tokens = all_tokens = edits = 0
    prefix, parts = 0.0, torch.zeros(PARTS, dtype=torch.long)
    for batch, tokens in predictions:
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
    return Metrics(
        items,
        exact / items,
        true_length / items,
        right_tokens / all_tokens,
        prefix / items,
        edits / items,
        tuple(parts.tolist()),
    )
