"""Losses that several tasks share."""

import torch
from torch import Tensor
from torch.nn import functional as F

from relength.tasks.batch import Sequences


def token_loss(logits: Tensor, batch: Sequences) -> Tensor:
    """Mean of -log(p + 1e-9) over the target tokens of a batch, from scores (B, T, vocabulary).

    The 1e-9 is the released Monotonic Location Attention code's; it bounds the loss of a token at
    20.7.
    """
    p = torch.softmax(logits, 2).gather(2, batch.targets[:, :, None]).squeeze(2)
    return -((p + 1e-9).log() * batch.mask).sum() / batch.mask.sum()


def cross_entropy(logits: Tensor, batch: Sequences) -> Tensor:
    """Mean of -log p over the target tokens of a batch, from scores (B, T, classes)."""
    losses = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), reduction="none")
    return (losses * batch.mask.flatten()).sum() / batch.mask.sum()


def squared_errors(outputs: Tensor, batch: Sequences) -> Tensor:
    """Mean squared error (B,) of each sample's outputs (B, T, K) over channels and target steps."""
    errors = (outputs - batch.targets).square().mean(-1) * batch.mask
    return errors.sum(-1) / batch.mask.sum(-1)
