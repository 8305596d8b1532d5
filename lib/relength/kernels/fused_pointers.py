"""Pointer units in one loop on a CPU: see relength.kernels.fused for why and how.

Samples of all units are one axis, N = H·B, where arrays are handed to compiled code.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from relength.kernels.fused import Gates, affine, product
from relength.kernels.late import compiled


def point(
    cell: tuple[Tensor, Tensor, Tensor, Tensor],
    keys: Tensor,
    scores: Tensor,
    addresses: Tensor,
    first: Tensor,
    steps: int,
    cosine: bool,
) -> Tensor:
    """Weights (T, H, B, S) of the loop in relength.models.pointers.attention.Pointing.forward.

    cell       the GRUs' weight_ih (H, 3·d, b), weight_hh (H, 3·d, d), bias_ih, bias_hh (H, 1, 3·d)
    keys       (H, B, S, d) times the state, divided by the state's length if ``cosine``, and
    scores     (H, B, S) make the scores; -inf where masked
    addresses  (B, S, b) whose mean is the next pointer;  first (H, B, b)
    """
    return _Point.apply(*cell, keys, scores, addresses, first, steps, cosine)


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
        steps: int,
        cosine: bool,
    ) -> Tensor:
        units, batch, places, d = keys.shape
        states = keys.new_zeros(steps + 1, units, batch, d)
        gates = Gates(keys.new_empty(steps, units, batch, 3 * d), states)
        pointers = first.new_empty(steps + 1, *first.shape)
        pointers[0] = first
        addresses = addresses.expand(units, *addresses.shape).flatten(0, 1).contiguous()
        lengths = keys.new_ones(steps, units * batch)
        weights = keys.new_empty(steps, units * batch, places)
        rows = keys.flatten(0, 1).contiguous()
        shares, nothing = scores.flatten(0, 1), torch.zeros_like(first).flatten(0, 1)
        arrays = [x.numpy() for x in (rows, shares.contiguous(), lengths, weights)]
        address_array, nothing, weight_array = addresses.numpy(), nothing.numpy(), weights.numpy()
        for t in range(steps):
            x_gates = torch.baddbmm(bias_ih, pointers[t], weight_ih.mT)
            affine(bias_hh, states[t], weight_hh.mT, gates.h_gates[t])
            gates.forwards(t, *gates.split(x_gates))
            compiled.attend(t, states[t + 1].flatten(0, 1).numpy(), *arrays, cosine)
            new = pointers[t + 1].flatten(0, 1).numpy()
            compiled.retrieve(t, weight_array, address_array, nothing, new)
        ctx.gates, ctx.cosine, ctx.shape = gates, cosine, keys.shape
        ctx.save_for_backward(weight_ih, weight_hh, rows, addresses, lengths, weights, pointers)
        return weights.view(steps, units, batch, places)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor | None, ...]:
        weight_ih, weight_hh, keys, addresses, lengths, weights, pointers = ctx.saved_tensors
        gates, (units, batch, places, _) = ctx.gates, ctx.shape
        grads = grads.reshape(weights.shape)
        gates.turn(torch.zeros_like(gates.states[1:]))
        score_grads = torch.empty_like(weights)
        fed_back = torch.zeros_like(weights[0])
        arrays = [x.numpy() for x in (keys, lengths, weights, score_grads)]
        address_array, weight_array, fed_array = (x.numpy() for x in (addresses, weights, fed_back))
        for t in range(len(grads) - 1, -1, -1):
            grad = (grads[t] + fed_back).numpy()
            h, carried = (x.flatten(0, 1).numpy() for x in (gates.states[t + 1], gates.carried))
            compiled.attend_gradient(t, grad, h, *arrays, carried, ctx.cosine)
            gates.backwards(t)
            if t > 0:
                affine(gates.direct, gates.h_grads[t], weight_hh, gates.carried)
                pointer_grad = torch.bmm(gates.x_grads[t], weight_ih).flatten(0, 1)
                compiled.retrieved_gradient(
                    0, weight_array[t - 1 : t], address_array, pointer_grad[None].numpy(), fed_array
                )

        def per_unit(grad: Tensor, given: Tensor, times: Any) -> Tensor:
            pairs = zip(grad.unbind(1), given[:-1].unbind(1), strict=True)
            return torch.stack([times(g.flatten(0, 1).T, x.flatten(0, 1)) for g, x in pairs])

        asked = gates.states[1:].flatten(1, 2) / lengths[:, :, None]  # (T, N, d)
        key_grads = torch.bmm(score_grads.permute(1, 2, 0), asked.transpose(0, 1))
        return (
            per_unit(gates.x_grads, pointers, torch.mm),  # for so few bits oneDNN is slow
            per_unit(gates.h_grads, gates.states, product),
            gates.x_grads.sum(2).sum(0)[:, None],
            gates.h_grads.sum(2).sum(0)[:, None],
            key_grads.view(ctx.shape),
            score_grads.sum(0).view(units, batch, places),
            *(None,) * 4,
        )
