"""A CPU's selective scan: Mamba's recurrence as one node, with its backward pass written out.

relength.models.language.mamba.scan is the same, word by word.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from relength.kernels.late import selective_steps

CACHED = 2**17  # numbers that a core keeps close at hand


def selective_scan(
    x: Tensor, step: Tensor, rates: Tensor, write: Tensor, read: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs (B, S, C) and the last state (B, N, C).

    h_t = exp(Δ_t·A)·h_{t-1} + Δ_t·B_t·x_t;  y_t = C_t·h_t

    x, step      (B, S, C)
    rates        (N, C) A, its transpose
    write, read  (B, S, N) B and C
    state        (B, N, C) h_0
    """
    return _SelectiveScan.apply(
        *(part.contiguous() for part in (x, step, rates, write, read, state))
    )


class _SelectiveScan(Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, step: Tensor, rates: Tensor, write: Tensor, read: Tensor, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        outputs, last = torch.zeros_like(x), state.clone()
        if not any(ctx.needs_input_grad):
            _read(x, step, rates, write, read, last, outputs)
            return outputs, last
        # PyTorch's exponential takes many numbers at once, which Numba's does not.
        kept = (step[:, :, None] * rates).exp_()  # (B, S, N, C)
        states = torch.empty_like(kept)
        arrays = (x, step, kept, write, read, last, states, outputs)
        selective_steps.forwards(*(array.detach().numpy() for array in arrays))
        ctx.save_for_backward(x, step, rates, write, read, state, kept, states)
        return outputs, last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, last_grad: Tensor) -> tuple[Tensor, ...]:
        x, step, rates, write, read, state, kept, states = ctx.saved_tensors
        grads = [torch.zeros_like(part) for part in (x, step, rates, write, read)]
        carried = last_grad.clone()
        selective_steps.backwards(
            *(part.numpy() for part in (x, step, rates, write, read, state, kept, states)),
            grad.contiguous().numpy(),
            *(part.numpy() for part in grads),
            carried.numpy(),
        )
        return (*grads, carried)


def _read(
    x: Tensor, step: Tensor, rates: Tensor, write: Tensor, read: Tensor, last: Tensor, out: Tensor
) -> None:
    """Write outputs and the last state, some words at a time: what is between stays in cache."""
    words = x.shape[1]
    some = min(max(CACHED // rates.numel(), 1), words)
    between = x.new_empty(1, some, *rates.shape)
    arrays = [part.numpy() for part in (x, step, write, read, out)]
    for b in range(len(x)):
        for start in range(0, words, some):
            now = slice(start, min(start + some, words))
            kept = between[:, : now.stop - start]
            torch.mul(step[b, now, None], rates, out=kept[0]).exp_()
            x_now, step_now, writes, reads, outputs = (array[b : b + 1, now] for array in arrays)
            selective_steps.forwards_only(
                x_now, step_now, kept.numpy(), writes, reads, last[b : b + 1].numpy(), outputs
            )
