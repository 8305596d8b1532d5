"""Metrics by length: exact match and its relatives, teacher-forced and free-running."""

from typing import NamedTuple

import torch
from rapidfuzz.distance import Levenshtein
from torch import Tensor

from relength.batch import Batch
from relength.losses import token_loss
from relength.tasks.base import EOS

BATCH_SIZE = 256


class Metrics(NamedTuple):
    """What one checkpoint does on one test set, decoding greedily from its own tokens.

    items                    samples
    exact_match              share of outputs equal to the target, end token included
    exact_match_true_length  the same when decoding is stopped at the target's true length
    token_accuracy           share of target tokens (end included) that are right at their place
    correct_prefix           mean share of a target that is right before the first error
    edit_distance            mean Levenshtein distance of output and target, both without end token
    """

    items: int
    exact_match: float
    exact_match_true_length: float
    token_accuracy: float
    correct_prefix: float
    edit_distance: float


def by_length(data: Batch) -> list[Batch]:
    """The samples in batches of similar input length, to spend little on padding."""
    order = data.input_lengths.argsort(stable=True)
    return [data.select(chunk) for chunk in order.split(BATCH_SIZE)]


@torch.no_grad()
def teacher_forced(model: torch.nn.Module, batches: list[Batch]) -> tuple[float, float]:
    """Exact match and mean loss when every step sees the true previous token."""
    hits, items, loss = 0, 0, 0.0
    for batch in batches:
        right, mean = right_and_loss(model(batch), batch)
        hits += int(right)
        items += len(batch)
        loss += float(mean) * len(batch)
    return hits / items, loss / items


def right_and_loss(logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """How many outputs are right to the last token, and the mean loss of a target token."""
    right = (logits.argmax(2) == batch.targets) | ~batch.mask
    return right.all(1).sum(), token_loss(logits, batch)


def free_running(model: torch.nn.Module, batches: list[Batch]) -> Metrics:
    """Greedy decoding up to the longest target of the whole set, cut at the model's own end token.

    The released code decodes to the longest target of the batch; the whole set is used here so that
    the edit distance does not depend on how samples are batched. Exact match is the same either
    way.
    """
    steps = max(batch.targets.shape[1] for batch in batches)
    predictions = [(batch, model.generate(batch, steps)[0].cpu()) for batch in batches]
    return score([(batch.to("cpu"), tokens) for batch, tokens in predictions])


def score(predictions: list[tuple[Batch, Tensor]]) -> Metrics:
    """Metrics of decoded tokens (B, steps) against the targets of their batches."""
    items = exact = true_length = 0
    right_tokens = all_tokens = edits = 0
    prefix = 0.0
    for batch, tokens in predictions:
        items += len(batch)
        width = batch.targets.shape[1]
        right = (tokens[:, :width] == batch.targets) & batch.mask
        exact += int((right | ~batch.mask).all(1).sum())
        body = batch.mask & (batch.targets != EOS)
        true_length += int((right | ~body).all(1).sum())
        right_tokens += int(right.sum())
        all_tokens += int(batch.mask.sum())
        first_error = (right | ~batch.mask).int().cumprod(1).mul(batch.mask).sum(1)
        prefix += float((first_error / batch.target_lengths).sum())
        for given, wanted, n in zip(
            tokens.tolist(), batch.targets.tolist(), batch.target_lengths.tolist(), strict=True
        ):
            given = given[: given.index(EOS)] if EOS in given else given
            edits += Levenshtein.distance(given, wanted[: n - 1])
    return Metrics(
        items,
        exact / items,
        true_length / items,
        right_tokens / all_tokens,
        prefix / items,
        edits / items,
    )
