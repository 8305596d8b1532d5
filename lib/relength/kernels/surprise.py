"""A CPU's cross-entropy over many words: scores become their own gradient where they are.

The scores of a few hundred words against thousands are the largest thing of a step of MemReasoner.
PyTorch writes as many numbers three times more: log-probabilities, a gradient of these that is 0
but for one number a row, and the gradient of the scores.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from relength.errors import RelengthError

CACHED = 2**18  # numbers that a core keeps close at hand


def surprises(scores: Tensor, words: Tensor) -> Tensor:
    """-ln p (N,) of words (N,) under scores (N, vocabulary), which are overwritten.

    As ``F.cross_entropy`` with ``reduction="none"``. Nothing else may need the scores; what has
    computed them may not need them for its own gradient. Raises RelengthError for scores that are
    parameters.
    """
    if scores.requires_grad and scores.is_leaf:
        raise RelengthError(
            "These scores are a parameter, which would be overwritten: use F.cross_entropy."
        )
    return _Surprises.apply(scores, words)


class _Surprises(Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, words: Tensor) -> Tensor:
        said = scores.gather(1, words[:, None])[:, 0]
        most, sums = said.new_empty(len(said)), said.new_empty(len(said))
        some = max(CACHED // scores.shape[1], 1)
        for rows, top, total in zip(*(t.split(some) for t in (scores, most, sums)), strict=True):
            torch.amax(rows, dim=1, out=top)
            torch.sum(rows.sub_(top[:, None]).exp_(), dim=1, out=total)
        ctx.save_for_backward(scores.detach(), words, sums)
        return sums.log() - (said - most)  # in this order, or a large score would round the sum

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        chances, words, sums = ctx.saved_tensors
        # Where they are: PyTorch refuses to go back a second time through what has changed.
        chances.mul_((grad / sums)[:, None])
        return chances.scatter_add_(1, words[:, None], -grad[:, None]), None
