"""Temporal links of a DNC as one node of autograd, for a CPU.

Links are the largest thing that a DNC computes: N numbers for each slot, read and rewritten at
every step. The equations in relength.models.memory.dnc_memory make a dozen copies of them in a step
and back; here there are a few. Values and gradients are equal, and a test says so.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def link_and_follow(
    link: Tensor, weighting: Tensor, precedence: Tensor, reading: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute what relength.models.memory.dnc_memory.link_and_follow does, in one pass."""
    return _LinkAndFollow.apply(link, weighting, precedence, reading)


def _scale(weighting: Tensor) -> Tensor:
    """1 - w[i] - w[j], (B, N, N)."""
    return (1 - weighting)[:, :, None] - weighting[:, None]


class _LinkAndFollow(Function):
    @staticmethod
    def forward(
        ctx: Any, link: Tensor, weighting: Tensor, precedence: Tensor, reading: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        new = _scale(weighting).mul_(link).baddbmm_(weighting[:, :, None], precedence[:, None])
        new.diagonal(dim1=1, dim2=2).zero_()
        ctx.save_for_backward(link, weighting, precedence, reading, new)
        return new, reading @ new.mT, reading @ new

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad: Tensor, forward_grad: Tensor, backward_grad: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        link, weighting, precedence, reading, new = ctx.saved_tensors
        reading_grad = forward_grad @ new + backward_grad @ new.mT
        rows = torch.cat([forward_grad, reading], dim=1)  # (B, 2·R, N)
        columns = torch.cat([reading, backward_grad], dim=1)
        grad = torch.baddbmm(grad, rows.mT, columns)
        grad.diagonal(dim1=1, dim2=2).zero_()
        changed = grad * link
        weighting_grad = (grad @ precedence[:, :, None]).squeeze(2) - changed.sum(2)
        weighting_grad -= changed.sum(1)
        precedence_grad = (weighting[:, None] @ grad).squeeze(1)
        return grad.mul_(_scale(weighting)), weighting_grad, precedence_grad, reading_grad
