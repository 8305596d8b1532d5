"""A CPU's recurrent loops: values and gradients of the readable code, in a fraction of its time.

Autograd keeps a node for each operation of each step, and forms each weight's gradient anew at
every step. Here a whole loop is one node: its backward pass is written out, what lies between two
matrix products is compiled (:mod:`relength.kernels.compiled`), and the gradient of whatever is
multiplied at every step is one product over all steps. Loops are time-major. Models remain readable
without this file: it is a switch (``fused``), and tests compare both sides of it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from relength.kernels.hashing import least_kept, row_hashes
from relength.kernels.late import compiled

# PyTorch's own product is MKL's, which is slow on AMD's processors: there, from about this many
# multiplications on, oneDNN's in float32 takes half the time, and less; below, its longer call is
# not worth it. On Intel's, MKL's is never slower, and it needs no copy of a transposed factor.
WORTH_ONEDNN = 2_000_000
CPUINFO = Path("/proc/cpuinfo")
_ONEDNN = (
    torch.backends.mkldnn.is_available()
    and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    and CPUINFO.exists()
    and "AuthenticAMD" in CPUINFO.read_text()
)


def _worth_onednn(multiplications: int) -> bool:
    return _ONEDNN and multiplications >= WORTH_ONEDNN


def product(a: Tensor, b: Tensor) -> Tensor:
    """a (M, K) times b (K, N), without a gradient."""
    worth = _worth_onednn(a.numel() * b.shape[1])
    if worth and a.dtype == torch.float32 and a.device.type == "cpu":
        return torch.ops.mkldnn._linear_pointwise(_dense(a), _dense(b).T, None, "none", [], "")
    return a @ b


def affine(bias: Tensor, x: Tensor, weight: Tensor, out: Tensor) -> None:
    """out = bias + x·weight for x (B, K), weight (K, N); or for D of each side by side."""
    if x.ndim == 3 and len(x) > 1 and not _worth_onednn(x[0].numel() * weight.shape[2]):
        torch.baddbmm(bias, x, weight, out=out)
    elif x.ndim == 3:
        for parts in zip(bias, x, weight, out, strict=True):
            affine(*parts)
    elif not _worth_onednn(x.numel() * weight.shape[1]):
        torch.addmm(bias, x, weight, out=out)
    else:
        torch.add(product(x, weight), bias, out=out)


def _dense(x: Tensor) -> Tensor:
    """x without gaps, in either order: with gaps, oneDNN falls back to code 500 times slower."""
    return x if x.is_contiguous() or x.T.is_contiguous() else x.contiguous()


def dropout_mask(shape: torch.Size, rate: float, key: Tensor) -> Tensor:
    """relength.kernels.hashing.dropout_mask, bit for bit: a keep-mask (B, S, C) in one pass."""
    mask = torch.empty(shape, dtype=torch.bool)
    rows = row_hashes(shape, key).flatten().numpy()
    compiled.keep(rows, least_kept(rate), mask.view(len(rows), -1).numpy())
    return mask


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """torch.nn.functional.linear: x (..., K), weight (N, K), bias (N,)."""
    return _Linear.apply(x, weight, bias)


class _Linear(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.biased = bias is not None
        out = product(x.flatten(0, -2), weight.T)
        if bias is not None:
            out += bias
        return out.view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        flat = grad.reshape(-1, grad.shape[-1])
        return (
            product(flat, weight).view(x.shape) if ctx.needs_input_grad[0] else None,
            product(flat.T, x.flatten(0, -2)) if ctx.needs_input_grad[1] else None,
            flat.sum(0) if ctx.biased else None,
        )


def firsts(steps: Tensor, counts: Sequence[int] | None) -> Sequence[Tensor]:
    """Keep the first ``counts[t]`` samples of each step t of (T, …, B, c), or all of them."""
    if counts is None:
        return steps.unbind()
    return [step.narrow(-2, 0, n) for step, n in zip(steps.unbind(), counts, strict=True)]


def rows(steps: Tensor, counts: Sequence[int] | None) -> Tensor:
    """Those samples of (T, B, c) below each other: (rows, c)."""
    if counts is None or counts[-1] == steps.shape[1]:
        return steps.flatten(0, 1)
    return torch.cat(firsts(steps, counts))


class Gates:
    """The gates of a GRU at every step: activations going forwards, gradients coming back.

    x_gates  (T, …, 3·d), input bias included
    states   (T + 1, …, d), of which the first is given
    counts   how many samples of (T, B, …) take part in each step, ever fewer; None if all do
    """

    def __init__(self, x_gates: Tensor, states: Tensor, counts: Sequence[int] | None = None):
        d = states.shape[-1]
        shape = x_gates.shape[:-1]
        self.states, self.h_gates, self.counts = states, torch.empty_like(x_gates), counts
        self.rz, self.n = x_gates.new_empty(*shape, 2 * d), x_gates.new_empty(*shape, d)
        # Views of every step, made at once: taking them one by one costs as much as computing.
        every = (self.h_gates[..., : 2 * d], self.h_gates[..., 2 * d :], self.rz)
        every += (self.rz[..., :d], self.rz[..., d:], self.n, states[:-1], states[1:])
        self.steps = list(zip(*(firsts(x, counts) for x in every), strict=True))

    def split(self, x_gates: Tensor) -> tuple[Tensor, Tensor]:
        """The part of gates r and z, (..., 2·d), and that of n, (..., d)."""
        d = self.n.shape[-1]
        return x_gates.split_with_sizes((2 * d, d), dim=-1)

    def forwards(self, t: int, x_rz: Tensor, x_n: Tensor) -> None:
        """relength.models.recurrence.gru_update of step t, from h_gates[t], into states[t + 1].

        x_rz, x_n: this step's input gates, see :meth:`split`
        """
        h_rz, h_n, rz, r, z, n, h, new = self.steps[t]
        torch.add(x_rz, h_rz, out=rz).sigmoid_()
        torch.addcmul(x_n, r, h_n, out=n).tanh_()
        torch.lerp(n, h, z, out=new)

    def turn(self, grads: Tensor) -> None:
        """Get ready for steps in reverse order; grads (T, …, d) of the states."""
        d = self.states.shape[-1]
        self.x_grads, self.h_grads = torch.empty_like(self.h_gates), torch.empty_like(self.h_gates)
        self.direct, self.carried = torch.empty_like(grads[0]), torch.zeros_like(grads[0])
        fixed = (grads, self.rz, self.n, self.h_gates, self.states, self.x_grads, self.h_grads)
        self.arrays = [x.view(len(x), -1, x.shape[-1]).numpy() for x in fixed]
        self.carried_array, self.direct_array = (
            x.view(-1, d).numpy() for x in (self.carried, self.direct)
        )

    def backwards(self, t: int) -> None:
        """From ``carried``, the gradient of the state of step t, to x_grads, h_grads, direct."""
        n = None if self.counts is None else self.counts[t]
        compiled.gate_gradients(t, self.carried_array[:n], *self.arrays, self.direct_array)


def scan(
    x_gates: Tensor,
    weight: Tensor,
    bias: Tensor,
    first: Tensor | None = None,
    counts: Sequence[int] | None = None,
) -> Tensor:
    """States (S, D, B, d) of D independent GRUs.

    x_gates (S, D, B, 3·d), input bias included; weight (D, 3·d, d); bias (D, 3·d); first (D, B, d)
    are the states before, zero if not given

    counts  how many of the samples take each step, ever fewer, of a single GRU; all if not given.
            States of the others are zero
    """
    return _Scan.apply(x_gates, weight, bias, first, counts)


class _Scan(Function):
    @staticmethod
    def forward(
        ctx: Any,
        x_gates: Tensor,
        weight: Tensor,
        bias: Tensor,
        first: Tensor | None,
        counts: Sequence[int] | None,
    ) -> Tensor:
        length, directions, batch, _ = x_gates.shape
        states = x_gates.new_zeros(length + 1, directions, batch, weight.shape[2])
        if first is not None:
            states[0] = first
        gates = Gates(x_gates := x_gates.contiguous(), states, counts)
        weight_t, bias = weight.transpose(1, 2), bias[:, None]
        every = (*gates.split(x_gates), states[:-1], gates.h_gates)
        inputs = zip(*(firsts(x, counts) for x in every), strict=True)
        for t, (x_rz, x_n, h, h_gates) in enumerate(inputs):
            affine(bias, h, weight_t, h_gates)
            gates.forwards(t, x_rz, x_n)
        ctx.gates = gates
        ctx.save_for_backward(weight)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor | None, ...]:
        (weight,) = ctx.saved_tensors
        gates, counts = ctx.gates, ctx.gates.counts
        gates.turn(grads.contiguous())
        for t in range(len(grads) - 1, -1, -1):
            gates.backwards(t)
            n = None if counts is None else counts[t]
            affine(gates.direct[:, :n], gates.h_grads[t][:, :n], weight, gates.carried[:, :n])
        per_direction = [
            product(rows(h_grads, counts).T, rows(before, counts))
            for h_grads, before in zip(
                gates.h_grads.unbind(1), gates.states[:-1].unbind(1), strict=True
            )
        ]
        first_grad = gates.carried if ctx.needs_input_grad[3] else None
        bias_grads = [rows(h_grads, counts).sum(0) for h_grads in gates.h_grads.unbind(1)]
        for t, n in enumerate(counts or ()):
            gates.x_grads[t, :, n:] = 0
        both = torch.stack(per_direction), torch.stack(bias_grads)
        return gates.x_grads, *both, first_grad, None


class Kernel(Protocol):
    """One attention module over one batch, forwards and backwards, a step at a time.

    tensors  whatever the weights depend on and a gradient is wanted for
    weights  (T, B, S), written by :meth:`attend`
    """

    tensors: list[Tensor]
    weights: np.ndarray

    def start(self, steps: int) -> None:
        """Make room for so many steps."""

    def attend(self, t: int, h: Tensor) -> None:
        """Weights of step t for the decoder state h (B, d)."""

    def turn(self) -> None:
        """Called once between the two passes."""

    def retreat(self, t: int, h: Tensor, grad: np.ndarray, h_grad: Tensor) -> None:
        """Add the gradient of h to h_grad (B, d), from that of the weights (B, S) of step t.

        Steps come in reverse order.
        """

    def gradients(self, states: Tensor) -> Sequence[Tensor | None]:
        """Gradients of ``tensors`` after the last step; states (T, B, d) are the h of all steps."""


def decode(
    kernel: Kernel,
    h: Tensor,
    token_gates: Tensor,
    values: Tensor,
    from_values: Tensor,
    weight: Tensor,
    bias: Tensor,
) -> tuple[Tensor, Tensor]:
    """States (T, B, d) of a GRU decoder that attends at every step, from its first state h (B, d).

    Also gives the attention weights (T, B, S).

    token_gates  (T, B, 3·d) the previous token's share of the input gates, input bias included
    values       (B, S, v) what is attended;  from_values (3·d, v) maps it to input gates
    weight, bias (3·d, d), (3·d,) recurrent
    """
    # The map from values to gates is linear: it acts before attending where that is less work.
    if values.shape[1] <= len(token_gates):
        values, from_values = linear(values, from_values), None
    return _Decode.apply(kernel, h, token_gates, values, from_values, weight, bias, *kernel.tensors)


class _Decode(Function):
    @staticmethod
    def forward(
        ctx: Any,
        kernel: Kernel,
        h: Tensor,
        token_gates: Tensor,
        values: Tensor,
        from_values: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        *tensors: Tensor,
    ) -> tuple[Tensor, Tensor]:
        steps = len(token_gates)
        states = h.new_empty(steps + 1, *h.shape)
        states[0] = h
        gates = Gates(token_gates, states)
        values, weight_t = values.contiguous(), weight.T
        attended = h.new_empty(steps, *values[:, 0].shape)
        nothing, x_gates = torch.zeros_like(values[:, 0]).numpy(), torch.empty_like(token_gates[0])
        rows, token_rows, value_rows = attended.numpy(), token_gates.numpy(), values.numpy()
        if from_values is None:  # what is attended is the input of the gates
            inputs = list(zip(*gates.split(attended), strict=True))
        else:
            inputs = [gates.split(x_gates)] * steps  # written anew at every step
        kernel.start(steps)
        for t in range(steps):
            h = states[t]
            kernel.attend(t, h)
            if from_values is None:
                compiled.retrieve(t, kernel.weights, value_rows, token_rows[t], rows[t])
            else:
                compiled.retrieve(t, kernel.weights, value_rows, nothing, rows[t])
                affine(token_gates[t], attended[t], from_values.T, x_gates)
            affine(bias, h, weight_t, gates.h_gates[t])
            gates.forwards(t, *inputs[t])
        ctx.kernel, ctx.gates, ctx.attended = kernel, gates, attended
        ctx.save_for_backward(values, from_values, weight)
        ctx.set_materialize_grads(False)
        return states[1:], torch.from_numpy(kernel.weights)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grads: Tensor | None, attention_grads: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        values, from_values, weight = ctx.saved_tensors
        kernel, gates = ctx.kernel, ctx.gates
        grads = torch.zeros_like(gates.states[1:]) if grads is None else grads.contiguous()
        gates.turn(grads)
        kernel.turn()
        value_grads = gates.x_grads
        if from_values is not None:
            value_grads = torch.empty_like(ctx.attended)
        value_rows, value_grad_rows = values.numpy(), value_grads.numpy()
        weight_grad = np.empty_like(kernel.weights[0])
        for t in range(len(grads) - 1, -1, -1):
            gates.backwards(t)
            if from_values is not None:
                value_grads[t] = product(gates.x_grads[t], from_values)
            compiled.retrieved_gradient(t, kernel.weights, value_rows, value_grad_rows, weight_grad)
            if attention_grads is not None:
                weight_grad += attention_grads[t].numpy()
            affine(gates.direct, gates.h_grads[t], weight, gates.carried)
            kernel.retreat(t, gates.states[t], weight_grad, gates.carried)
        flat = gates.h_grads.flatten(0, 1)
        before = gates.states[:-1]
        from_values_grad = None
        if from_values is not None:
            x_grads = gates.x_grads.flatten(0, 1)
            from_values_grad = product(x_grads.T, ctx.attended.flatten(0, 1))
        weights = torch.from_numpy(kernel.weights)
        return (
            None,
            gates.carried,
            gates.x_grads,
            weights.permute(1, 2, 0) @ value_grads.transpose(0, 1),
            from_values_grad,
            product(flat.T, before.flatten(0, 1)),
            flat.sum(0),
            *kernel.gradients(before),
        )
