"""Evaluation by length: as training sees it, and free-running."""

from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch

from relength.tasks.base import Task
from relength.tasks.batch import Batch
from relength.tasks.metrics import Metrics

BATCH_SIZE = 256


class Measured(NamedTuple):
    """Mean score and mean loss of a set of samples, as training sees them."""

    accuracy: float
    loss: float


def by_length(data: Batch) -> list[Batch]:
    """The samples in batches of similar input length, to spend little on padding."""
    order = data.input_lengths.argsort(stable=True)
    return [data.select(chunk) for chunk in order.split(BATCH_SIZE)]


@torch.no_grad()
def validate(model: torch.nn.Module, batches: list[Batch], task: Task) -> Measured:
    """Accuracy and mean loss of the outputs that training sees, without a free decoder."""
    hits, items, loss = 0.0, 0, 0.0
    for batch in batches:
        outputs = model(batch)
        hits += float(task.right(outputs, batch).sum())
        items += len(batch)
        loss += float(task.loss(outputs, batch)) * len(batch)
    return Measured(hits / items, loss / items)


def free_running(model: torch.nn.Module, batches: list[Batch], task: Task) -> Metrics:
    """The task's metrics of what a model writes up to the longest target of the whole set.

    The released code decodes to the longest target of the batch; the whole set is used here so that
    the edit distance does not depend on how samples are batched. Exact match is the same either
    way.
    """
    steps = max(batch.targets.shape[1] for batch in batches)
    answers = [(batch, model.generate(batch, steps)[0].cpu()) for batch in batches]
    return task.score([(batch.to("cpu"), written) for batch, written in answers])


def unchanged(model: torch.nn.Module) -> AbstractContextManager[None]:
    """Context in which no weight of a model changes, so that it may keep what it has computed.

    A model that can has a method of the same name; for others nothing happens.
    """
    return model.unchanged() if hasattr(model, "unchanged") else nullcontext()
