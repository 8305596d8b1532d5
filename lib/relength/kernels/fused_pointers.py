"""Pointer units in one loop on a CPU: see relength.kernels.fused for why and how.

Units share nothing but the addresses, so that each has its loop.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from relength.kernels.fused import Gates, affine, firsts, product, rows
from relength.kernels.late import compiled


def point(
    cell: tuple[Tensor, Tensor, Tensor, Tensor],
    keys: Tensor,
    scores: Tensor,
    addresses: Tensor,
    first: Tensor,
    counts: Sequence[int],
    cosine: bool,
) -> Tensor:
    """Weights (H, T, B, S) of the loop in relength.models.pointers.attention.Pointing.forward.

    cell       the GRUs' weight_ih (H, 3·d, b), weight_hh (H, 3·d, d), bias_ih, bias_hh (H, 1, 3·d)
    keys       (H, B, S, d) times the state, divided by the state's length if ``cosine``, and
    scores     (H, B, S) make the scores; -inf where masked
    addresses  (B, S, b) whose mean is the next pointer;  first (H, B, b)
    counts     how many of the samples take each of the T steps, ever fewer; weights of the others
               are zero
    """
    return _Point.apply(*cell, keys, scores, addresses, first, counts, cosine)


class _Point(Function):
    @staticmethod
    def forward(
        ctx: Any,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
        keys: Tensor,
        scores: Tensor,
        addresses: Tensor,
        first: Tensor,
        counts: Sequence[int],
        cosine: bool,
    ) -> Tensor:
        (units, batch, places, d), steps = keys.shape, len(counts)
        keys, addresses = keys.contiguous(), addresses.contiguous()
        weights = keys.new_zeros(units, steps, batch, places)
        lengths = keys.new_ones(units, steps, batch)
        pointers = first.new_zeros(units, steps + 1, *first.shape[1:])
        pointers[:, 0] = first
        gates = []
        nothing, read = torch.zeros_like(first[0]).numpy(), addresses.numpy()
        for u in range(units):
            states = keys.new_zeros(steps + 1, batch, d)
            gates.append(Gates(keys.new_empty(steps, batch, 3 * d), states, counts))
            state_array, pointer_array = states.numpy(), pointers[u].numpy()
            asked, shares = keys[u].numpy(), scores[u].contiguous().numpy()
            length_array, weight_array = lengths[u].numpy(), weights[u].numpy()
            matrices = bias_ih[u], weight_ih[u].T, bias_hh[u], weight_hh[u].T
            before = (firsts(x, counts) for x in (pointers[u, :-1], states[:-1], gates[u].h_gates))
            for t, (n, p, h, h_gates) in enumerate(zip(counts, *before, strict=True)):
                x_gates = torch.addmm(matrices[0], p, matrices[1])
                affine(matrices[2], h, matrices[3], h_gates)
                gates[u].forwards(t, *gates[u].split(x_gates))
                new, aim = state_array[t + 1], pointer_array[t + 1]
                compiled.attend(t, new, asked[:n], shares, length_array, weight_array, cosine)
                compiled.retrieve(t, weight_array, read[:n], nothing, aim)
        ctx.gates, ctx.cosine = gates, cosine
        ctx.save_for_backward(weight_ih, weight_hh, keys, addresses, lengths, weights, pointers)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor | None, ...]:
        weight_ih, weight_hh, keys, addresses, lengths, weights, pointers = ctx.saved_tensors
        read, score_grads = addresses.numpy(), torch.zeros_like(weights)
        per_unit = []
        for u, gates in enumerate(ctx.gates):
            gates.turn(torch.zeros_like(gates.states[1:]))
            fed_back = torch.zeros_like(weights[u, 0])
            fed_array, state_array = fed_back.numpy(), gates.states.numpy()
            asked, weight_array = keys[u].numpy(), weights[u].numpy()
            arrays = lengths[u].numpy(), weight_array, score_grads[u].numpy()
            for t, n in reversed(list(enumerate(gates.counts))):
                grad, h = (grads[u, t] + fed_back).numpy(), state_array[t + 1]
                carried = gates.carried_array
                compiled.attend_gradient(t, grad, h, asked[:n], *arrays, carried, ctx.cosine)
                gates.backwards(t)
                if t > 0:
                    h_grads, x_grads = gates.h_grads[t, :n], gates.x_grads[t, :n]
                    affine(gates.direct[:n], h_grads, weight_hh[u], gates.carried[:n])
                    pointer_grad = torch.mm(x_grads, weight_ih[u])[None].numpy()
                    before = weight_array[t - 1 : t]
                    compiled.retrieved_gradient(0, before, read[:n], pointer_grad, fed_array)
            x_rows, h_rows = (rows(x, gates.counts) for x in (gates.x_grads, gates.h_grads))
            seen, states = (rows(x, gates.counts) for x in (pointers[u, :-1], gates.states[:-1]))
            times = torch.mm(x_rows.T, seen), product(h_rows.T, states)  # few bits: oneDNN is slow
            asked = gates.states[1:] / lengths[u, :, :, None]  # (T, B, d)
            key_grads = torch.bmm(score_grads[u].permute(1, 2, 0), asked.transpose(0, 1))
            per_unit.append((*times, x_rows.sum(0)[None], h_rows.sum(0)[None], key_grads))
        of_cell_and_keys = (torch.stack(given) for given in zip(*per_unit, strict=True))
        return *of_cell_and_keys, score_grads.sum(1), *(None,) * 4
