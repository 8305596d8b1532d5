"""Gated recurrent units and products that repeat at every step: a plain form, and a fused one as a switch.

The plain form is what PyTorch's autograd makes of the readable code; vmap can batch it. The fused form has
the same values and gradients (tests compare them) and is what training on a CPU uses: it writes the GRU's
gradient out by hand and forms each weight's gradient once per sequence instead of once per step.

Sequences of unequal length need no packing: each direction reads from the left, and the backward one gets
its input already reversed per sample.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def gru_update(x_gates: Tensor, h_gates: Tensor, h: Tensor) -> Tensor:
    """New state of a GRU from its two gate pre-activations (Cho et al., 2014; PyTorch's variant).

    r, z = σ(x_r + h_r), σ(x_z + h_z);  n = tanh(x_n + r·h_n);  h' = (1 - z)·n + z·h

    x_gates, h_gates  (..., 3·d), biases included, in the order r, z, n
    h                 (..., d)
    """
    return _gates(x_gates, h_gates, h)[0]


def _gates(x_gates: Tensor, h_gates: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """New state, and what its gradient needs: r and z side by side, n, and h_n."""
    d = h.shape[-1]
    x_rz, x_n = x_gates.split((2 * d, d), dim=-1)
    h_rz, h_n = h_gates.split((2 * d, d), dim=-1)
    rz = torch.sigmoid(x_rz + h_rz)
    r, z = rz.chunk(2, dim=-1)
    n = torch.tanh(torch.addcmul(x_n, r, h_n))
    return torch.lerp(n, h, z), rz, n, h_n


def _gate_gradients(
    grad: Tensor, rz: Tensor, n: Tensor, h_n: Tensor, h: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of both gate pre-activations (..., 3·d) from the gradient of the new state (..., d)."""
    d = h.shape[-1]
    r, z = rz.chunk(2, dim=-1)
    x_grad = torch.empty(*h.shape[:-1], 3 * d, dtype=h.dtype, device=h.device)
    n_grad = x_grad[..., 2 * d :]
    # h' = n + z·(h - n): the share of n is 1 - z, and tanh' = 1 - n².
    torch.mul(grad - grad * z, torch.addcmul(torch.ones((), dtype=n.dtype), n, n, value=-1), out=n_grad)
    rz_grad = x_grad[..., : 2 * d]
    torch.mul(n_grad, h_n, out=rz_grad[..., :d])
    torch.mul(grad, h - n, out=rz_grad[..., d:])
    rz_grad.mul_(torch.addcmul(rz, rz, rz, value=-1))  # σ' = σ - σ²
    h_grad = x_grad.clone()
    h_grad[..., 2 * d :].mul_(r)
    return x_grad, h_grad


class _FusedUpdate(Function):
    """:func:`gru_update` with its gradient written out."""

    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, h_gates: Tensor, h: Tensor) -> Tensor:
        new, rz, n, h_n = _gates(x_gates, h_gates, h)
        ctx.save_for_backward(rz, n, h_n, h)
        return new

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rz, n, h_n, h = ctx.saved_tensors
        x_grad, h_grad = _gate_gradients(grad, rz, n, h_n, h)
        return x_grad, h_grad, grad * rz[..., h.shape[-1] :]


class _FusedScan(Function):
    """All states (D, B, S, d) of D independent GRUs that start at zero.

    x_gates (D, B, S, 3·d), input bias included; weight (D, 3·d, d); bias (D, 3·d)
    """

    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        directions, batch, length, _ = x_gates.shape
        d = weight.shape[2]
        x_steps = x_gates.transpose(0, 2).transpose(1, 2).contiguous()  # (S, D, B, 3d)
        weight_t, bias = weight.transpose(1, 2), bias[:, None]
        h = x_gates.new_zeros(directions, batch, d)
        kept = []
        states = x_gates.new_empty(length + 1, directions, batch, d)
        states[0] = 0
        for t in range(length):
            h, *inner = _gates(x_steps[t], torch.baddbmm(bias, h, weight_t), h)
            states[t + 1] = h
            kept.append(inner)
        ctx.kept = kept
        ctx.save_for_backward(states, weight)
        return states[1:].permute(1, 2, 0, 3).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        states, weight = ctx.saved_tensors
        length, (directions, batch, d) = len(states) - 1, states.shape[1:]
        grads = grads.permute(2, 0, 1, 3).contiguous()  # (S, D, B, d)
        x_grads = grads.new_empty(length, directions, batch, 3 * d)
        h_grads = grads.new_empty(length, directions, batch, 3 * d)
        carried = torch.zeros_like(grads[0])
        for t in range(length - 1, -1, -1):
            rz, n, h_n = ctx.kept[t]
            grad = grads[t] + carried
            x_grads[t], h_grads[t] = _gate_gradients(grad, rz, n, h_n, states[t])
            carried = torch.baddbmm(grad * rz[..., d:], h_grads[t], weight)
        before = states[:-1].transpose(0, 1).reshape(directions, length * batch, d)
        flat = h_grads.transpose(0, 1).reshape(directions, length * batch, 3 * d)
        return x_grads.permute(1, 2, 0, 3), flat.transpose(1, 2) @ before, flat.sum(1)


class Repeated:
    """A linear map that is applied to a row vector at every step: y_t = x_t M + b.

    M is (n, m) with x (B, n) and an optional bias (m,), or one matrix per sample, (B, n, m), without bias.
    Fused, the gradients of M and b are formed once, from all steps together, when the backward pass has
    been through all of them.
    """

    def __init__(self, matrix: Tensor, fused: bool, bias: Tensor | None = None):
        self.fused = fused and torch.is_grad_enabled()
        self.pairs: list[tuple[Tensor, Tensor]] = []  # (x_t, gradient of y_t)
        self.matrix, self.bias = matrix, bias
        if self.fused:
            self.matrix, self.bias = _Gather.apply(matrix, bias, self.pairs)

    def __call__(self, x: Tensor) -> Tensor:
        if self.fused:
            return _Apply.apply(x, self.matrix, self.bias, self.pairs)
        return _product(x, self.matrix, self.bias)


def _product(x: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    if matrix.ndim == 2:
        return x @ matrix if bias is None else torch.addmm(bias, x, matrix)
    # PyTorch's batched product is ten times faster as row × matrix than as matrix × column.
    return torch.bmm(x[:, None], matrix).squeeze(1)


class _Apply(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, bias: Tensor | None, pairs: list) -> Tensor:
        ctx.pairs = pairs
        ctx.save_for_backward(x, matrix)
        return _product(x, matrix, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        x, matrix = ctx.saved_tensors
        ctx.pairs.append((x, grad))
        return _product(grad, matrix.mT), None, None, None


class _Gather(Function):
    """Passes a map on; backward runs after every use of it and sums their outer products."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, bias: Tensor | None, pairs: list) -> tuple:
        ctx.pairs, ctx.batched, ctx.biased = pairs, matrix.ndim == 3, bias is not None
        ctx.set_materialize_grads(False)
        return matrix.view_as(matrix), None if bias is None else bias.view_as(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *_: None) -> tuple[Tensor, Tensor | None, None]:
        inputs, grads = zip(*ctx.pairs, strict=True)
        ctx.pairs.clear()
        if ctx.batched:
            return torch.stack(inputs, dim=1).mT @ torch.stack(grads, dim=1), None, None
        grads = torch.cat(grads)
        return torch.cat(inputs).T @ grads, grads.sum(0) if ctx.biased else None, None


class GRU(nn.Module):
    """Parameters of one direction of a single-layer GRU, named and shaped as in PyTorch."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.hidden_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size))
        self.bias_ih = nn.Parameter(torch.empty(3 * hidden_size))
        self.bias_hh = nn.Parameter(torch.empty(3 * hidden_size))

    @property
    def bound(self) -> float:
        """PyTorch draws every GRU parameter uniformly from ±1/√hidden."""
        return 1 / math.sqrt(self.hidden_size)

    def update(self, x_gates: Tensor, h_gates: Tensor, h: Tensor, fused: bool) -> Tensor:
        """One step, see :func:`gru_update`."""
        return _FusedUpdate.apply(x_gates, h_gates, h) if fused else gru_update(x_gates, h_gates, h)


def scan(grus: list[GRU], sequences: list[Tensor], fused: bool) -> list[Tensor]:
    """States (B, S, d) of each GRU over its own sequence (B, S, input), from a zero state."""
    x_gates = torch.stack(
        [nn.functional.linear(x, g.weight_ih, g.bias_ih) for g, x in zip(grus, sequences, strict=True)]
    )  # (D, B, S, 3d)
    weight = torch.stack([g.weight_hh for g in grus])
    bias = torch.stack([g.bias_hh for g in grus])
    if fused:
        return list(_FusedScan.apply(x_gates, weight, bias).unbind(0))
    h = x_gates.new_zeros(*x_gates.shape[:2], grus[0].hidden_size)
    states = []
    for x_t in x_gates.unbind(2):
        h = gru_update(x_t, torch.baddbmm(bias[:, None], h, weight.transpose(1, 2)), h)
        states.append(h)
    return list(torch.stack(states, dim=2).unbind(0))


def reversal(lengths: Tensor, width: int) -> Tensor:
    """Indices (B, S) that reverse the first ``lengths`` positions of each row and leave padding in place."""
    i = torch.arange(width, device=lengths.device)
    n = lengths[:, None]
    return torch.where(i < n, n - 1 - i, i)


def take(sequence: Tensor, indices: Tensor) -> Tensor:
    """Rows of (B, S, d) picked per sample by indices (B, K): (B, K, d)."""
    return sequence.gather(1, indices[:, :, None].expand(-1, -1, sequence.shape[2]))


class BiGRU(nn.Module):
    """Two GRUs, one per direction, on sequences of unequal length padded at the right."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.forwards = GRU(input_size, hidden_size)
        self.backwards = GRU(input_size, hidden_size)

    def forward(self, x: Tensor, lengths: Tensor, fused: bool = True) -> tuple[Tensor, Tensor]:
        """Encodings (B, S, 2·hidden) and the two final states side by side (B, 2·hidden)."""
        turned = reversal(lengths, x.shape[1])
        left, right = scan([self.forwards, self.backwards], [x, take(x, turned)], fused)
        last = (lengths - 1)[:, None]
        final = torch.cat([take(left, last), take(right, last)], dim=2).squeeze(1)
        return torch.cat([left, take(right, turned)], dim=2), final
