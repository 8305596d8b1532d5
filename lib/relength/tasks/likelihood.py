"""The likelihood that a model gives the right tokens, each after the right ones before it.

Such a test lets a model read targets as training does, and writes nothing. A task whose metrics
are computed here is trained with a protocol that asks for it (epochs_by_length).
"""

import math
from typing import TYPE_CHECKING

from relength.errors import RelengthError

if TYPE_CHECKING:
    from torch import Tensor

    from relength.tasks.batch import Sequences


def scored(outputs: "Tensor", batch: "Sequences") -> "Tensor":
    """Return for each target token (B, T, 2) -log p, and whether no other has a higher score.

    outputs  scores (B, T, vocabulary)
    """
    import torch
    from torch.nn import functional as F

    losses = F.cross_entropy(outputs.flatten(0, 1), batch.targets.flatten(), reduction="none")
    right = outputs.argmax(2) == batch.targets
    return torch.stack([losses.view(right.shape), right.to(losses.dtype)], dim=2)


def means(task: str, answers: "list[tuple[Sequences, Tensor]]") -> tuple[int, float, float, float]:
    """Samples; mean -log p, and share that is right, of their tokens; share of samples with all
    tokens right.

    Raises RelengthError for answers that a model wrote on its own.
    """
    items, tokens, loss, right, whole = 0, 0, 0.0, 0, 0
    for batch, found in answers:
        if found.ndim != 3:
            raise RelengthError(
                f"Task {task} asks how likely the right tokens are, which only some protocols "
                "let a model tell: choose the protocol epochs_by_length."
            )
        hits = found[..., 1].bool() & batch.mask
        items += len(batch)
        tokens += int(batch.mask.sum())
        loss += float(found[..., 0].double()[batch.mask].sum())  # padding may be impossible
        right += int(hits.sum())
        whole += int((hits | ~batch.mask).all(1).sum())
    return items, loss / tokens, right / tokens, whole / items


def perplexity(loss: float) -> float:
    """e to the power of a mean -log p; what is beyond 10^300 is 10^300.

    >>> round(perplexity(math.log(5)), 9), perplexity(1e9)
    (5.0, 1e+300)
    """
    return math.exp(min(loss, 300 * math.log(10)))
