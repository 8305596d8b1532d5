"""A CPU's recurrent loops: values and gradients of the readable code, in a fraction of its time.

Autograd keeps a node for each operation of each step, and forms each weight's gradient anew at
every step. Here a whole loop is one node: its backward pass is written out, and the gradient of
whatever is multiplied at every step is one product over all steps. Models remain readable without
this file: it is a switch (``fused``), and tests compare both sides of it.
"""

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

Saved = tuple[Tensor, Tensor, Tensor]


def gates(x_gates: Tensor, h_gates: Tensor, h: Tensor) -> tuple[Tensor, Saved]:
    """relength.models.recurrence.gru_update, and what its gradient needs: (r, z), n and h_n."""
    d = h.shape[-1]
    h_n = h_gates[..., 2 * d :]
    rz = torch.sigmoid(x_gates[..., : 2 * d] + h_gates[..., : 2 * d])
    n = torch.addcmul(x_gates[..., 2 * d :], rz[..., :d], h_n).tanh_()
    return torch.lerp(n, h, rz[..., d:]), (rz, n, h_n)


def gate_gradients(grad: Tensor, saved: Saved, h: Tensor, x_grad: Tensor, h_grad: Tensor) -> Tensor:
    """Fill gradients (..., 3·d) of both gate pre-activations; return h's direct one, z·grad."""
    rz, n, h_n = saved
    d = h.shape[-1]
    direct = grad * rz[..., d:]
    n_grad, rz_grad = x_grad[..., 2 * d :], x_grad[..., : 2 * d]
    remainder = grad - direct  # (1 - z)·grad, the share of n
    torch.addcmul(remainder, remainder * n, n, value=-1, out=n_grad)  # tanh' = 1 - n²
    torch.mul(n_grad, h_n, out=rz_grad[..., :d])
    torch.mul(grad, h - n, out=rz_grad[..., d:])
    rz_grad.mul_(torch.addcmul(rz, rz, rz, value=-1))  # σ' = σ - σ²
    h_grad[..., : 2 * d] = rz_grad
    torch.mul(n_grad, rz[..., :d], out=h_grad[..., 2 * d :])
    return direct


def scan(x_gates: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """States (D, B, S, d) of D independent GRUs from zero states.

    x_gates (D, B, S, 3·d), input bias included; weight (D, 3·d, d); bias (D, 3·d)
    """
    return _Scan.apply(x_gates, weight, bias)


class _Scan(Function):
    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        directions, batch, length, _ = x_gates.shape
        x_steps = x_gates.permute(2, 0, 1, 3).contiguous()  # (S, D, B, 3d)
        states = x_gates.new_zeros(length + 1, directions, batch, weight.shape[2])
        weight_t, bias, kept = weight.transpose(1, 2), bias[:, None], []
        for t in range(length):
            h = states[t]
            states[t + 1], saved = gates(x_steps[t], torch.baddbmm(bias, h, weight_t), h)
            kept.append(saved)
        ctx.kept = kept
        ctx.save_for_backward(states, weight)
        return states[1:].permute(1, 2, 0, 3)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        states, weight = ctx.saved_tensors
        grads = grads.permute(2, 0, 1, 3).contiguous()  # (S, D, B, d)
        length, directions, batch, d = grads.shape
        x_grads = grads.new_empty(length, directions, batch, 3 * d)
        h_grads = torch.empty_like(x_grads)
        carried = torch.zeros_like(grads[0])
        for t in range(length - 1, -1, -1):
            grad = grads[t] + carried
            direct = gate_gradients(grad, ctx.kept[t], states[t], x_grads[t], h_grads[t])
            carried = torch.baddbmm(direct, h_grads[t], weight)
        before = states[:-1].transpose(0, 1).reshape(directions, length * batch, d)
        flat = h_grads.transpose(0, 1).reshape(directions, length * batch, 3 * d)
        return x_grads.permute(1, 2, 0, 3), flat.transpose(1, 2) @ before, flat.sum(1)


class Kernel(Protocol):
    """One attention module over one batch, forwards and backwards, a step at a time.

    tensors  whatever the weights depend on and a gradient is wanted for
    """

    tensors: list[Tensor]

    def attend(self, t: int, h: Tensor) -> Tensor:
        """Weights (B, S) of step t for the decoder state h (B, d)."""

    def turn(self) -> None:
        """Called once between the two passes."""

    def retreat(self, t: int, h: Tensor, grad: Tensor) -> Tensor:
        """Gradient (B, d) of h from that of the weights of step t; steps come in reverse order."""

    def gradients(self, states: Tensor) -> list[Tensor]:
        """Gradients of ``tensors`` after the last step; states (T, B, d) are the h of all steps."""


def decode(
    kernel: Kernel,
    h: Tensor,
    token_gates: Tensor,
    values: Tensor,
    from_values: Tensor,
    weight: Tensor,
    bias: Tensor,
) -> Tensor:
    """States (B, T, d) of a GRU decoder that attends at every step, from its first state h (B, d).

    token_gates  (B, T, 3·d) the previous token's share of the input gates, input bias included
    values       (B, S, d) what is attended;  from_values (3·d, d) maps it to input gates
    weight, bias (3·d, d), (3·d,) recurrent
    """
    # The map from values to gates is linear: it acts before attending where that is less work.
    if values.shape[1] <= token_gates.shape[1]:
        values, from_values = values @ from_values.T, None
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
    ) -> Tensor:
        steps = token_gates.transpose(0, 1).contiguous()  # (T, B, 3d)
        states = h.new_empty(len(steps) + 1, *h.shape)
        states[0] = h
        weight_t, kept, attention, attended = weight.T, [], [], []
        for t, token_gate in enumerate(steps):
            h = states[t]
            weights = kernel.attend(t, h)
            if from_values is None:
                # A batched product of single rows is fastest as row × matrix.
                x_gates = torch.baddbmm(token_gate[:, None], weights[:, None], values).squeeze(1)
            else:
                attended.append(torch.bmm(weights[:, None], values).squeeze(1))
                x_gates = torch.addmm(token_gate, attended[t], from_values.T)
            states[t + 1], saved = gates(x_gates, torch.addmm(bias, h, weight_t), h)
            kept.append(saved)
            attention.append(weights)
        ctx.kernel, ctx.kept, ctx.attention, ctx.attended = kernel, kept, attention, attended
        ctx.save_for_backward(states, values, from_values, weight)
        return states[1:].transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor | None, ...]:
        states, values, from_values, weight = ctx.saved_tensors
        kernel, values_t = ctx.kernel, values.mT
        grads = grads.transpose(0, 1).contiguous()  # (T, B, d)
        length, batch, d = grads.shape
        x_grads = grads.new_empty(length, batch, 3 * d)
        h_grads = torch.empty_like(x_grads)
        value_grads = x_grads if from_values is None else torch.empty_like(grads)
        carried = torch.zeros_like(grads[0])
        kernel.turn()
        for t in range(length - 1, -1, -1):
            h = states[t]
            grad = grads[t] + carried
            direct = gate_gradients(grad, ctx.kept[t], h, x_grads[t], h_grads[t])
            if from_values is not None:
                torch.mm(x_grads[t], from_values, out=value_grads[t])
            weight_grad = torch.bmm(value_grads[t][:, None], values_t).squeeze(1)
            carried = torch.addmm(direct, h_grads[t], weight)
            carried += kernel.retreat(t, h, weight_grad)
        flat = h_grads.view(-1, 3 * d)
        before = states[:-1].reshape(-1, d)
        from_values_grad = None
        if from_values is not None:
            from_values_grad = x_grads.view(-1, 3 * d).T @ torch.cat(ctx.attended)
        return (
            None,
            carried,
            x_grads.transpose(0, 1),
            torch.stack(ctx.attention, dim=1).mT @ value_grads.transpose(0, 1),
            from_values_grad,
            flat.T @ before,
            flat.sum(0),
            *kernel.gradients(states[:-1]),
        )


def softmax_gradient(weights: Tensor, grad: Tensor) -> Tensor:
    """Gradient of the scores from that of their softmax (B, S)."""
    weighted = weights * grad
    return torch.addcmul(weighted, weights, weighted.sum(1, keepdim=True), value=-1)


class SoftmaxKernel:
    """Scores that are linear in the decoder state, and their softmax.

    keys (B, d, S); scores (B, S) the part without the state, -inf where masked; and, for attention
    by relative distance, distance_keys (S + T, d) and distance_scores (S + T,): row j belongs to
    the distance j - T.
    """

    def __init__(
        self,
        keys: Tensor,
        scores: Tensor,
        distance_keys: Tensor | None = None,
        distance_scores: Tensor | None = None,
    ):
        self.relative = distance_keys is not None
        self.tensors = [keys, scores]
        if self.relative:
            self.tensors += [distance_keys, distance_scores]
        self.keys, self.scores, self.weights = keys.detach(), scores.detach()[:, None], []
        if self.relative:
            self.distance_keys, self.distance_scores = (
                distance_keys.detach(),
                distance_scores.detach(),
            )

    def _window(self, t: int) -> slice:
        width = self.scores.shape[2]
        first = len(self.distance_keys) - width - t  # row of the distance 0 - t
        return slice(first, first + width)

    def attend(self, t: int, h: Tensor) -> Tensor:
        scores = torch.baddbmm(self.scores, h[:, None], self.keys).squeeze(1)
        if self.relative:
            window = self._window(t)
            scores += torch.addmm(self.distance_scores[window], h, self.distance_keys[window].T)
        self.weights.append(torch.softmax(scores, dim=1))
        return self.weights[t]

    def turn(self) -> None:
        self.score_grads: list[Tensor] = []
        if self.relative:
            self.distance_grads = torch.zeros_like(self.distance_keys)
            self.bias_grads = torch.zeros_like(self.distance_scores)

    def retreat(self, t: int, h: Tensor, grad: Tensor) -> Tensor:
        grad = softmax_gradient(self.weights[t], grad)
        self.score_grads.append(grad)
        h_grad = torch.bmm(grad[:, None], self.keys.mT).squeeze(1)
        if self.relative:
            window = self._window(t)
            h_grad.addmm_(grad, self.distance_keys[window])
            self.distance_grads[window].addmm_(grad.T, h)
            self.bias_grads[window] += grad.sum(0)
        return h_grad

    def gradients(self, states: Tensor) -> list[Tensor]:
        grads = torch.stack(self.score_grads[::-1], dim=1)  # (B, T, S)
        found = [states.permute(1, 2, 0) @ grads, grads.sum(1)]
        return [*found, self.distance_grads, self.bias_grads] if self.relative else found


class FocusKernel:
    """A Gaussian focus; centre and width are elementwise in a linear readout and the past.

    readout  weight (d, k) and bias (k,)
    aim      (list of k scalars (..., B), past (..., B)) -> centre, width (..., B); any elementwise
             code, which may use ``parameters``. Its derivatives come from autograd, for all steps
             at once.
    """

    def __init__(self, position, mask, readout, aim, parameters):
        self.position, self.mask, self.aim, self.parameters = position, mask, aim, parameters
        self.weight, self.bias = (tensor.detach() for tensor in readout)
        self.tensors = [*readout, *parameters]
        self.past = torch.zeros_like(position[:, 0])
        # Per step, in the order of the forward pass.
        self.readouts, self.pasts, self.widths = [], [], []
        self.weights, self.distances = [], []

    def attend(self, t: int, h: Tensor) -> Tensor:
        readout = torch.addmm(self.bias, h, self.weight)
        centre, width = self.aim(readout.unbind(1), self.past)
        weights, distance = focus(self.position, self.mask, centre, width)
        self.readouts.append(readout)
        self.pasts.append(self.past)
        self.widths.append(width)
        self.weights.append(weights)
        self.distances.append(distance)
        self.past = (weights * self.position).sum(1)
        return weights

    @torch.enable_grad()
    def turn(self) -> None:
        readouts = torch.stack(self.readouts).requires_grad_()  # (T, B, k)
        pasts = torch.stack(self.pasts).requires_grad_()  # (T, B)
        self.aims = self.aim(readouts.unbind(2), pasts)
        (self.centre_slope, self.past_slope), (self.width_slope, _) = (
            torch.autograd.grad(
                x.sum(), (readouts, pasts), retain_graph=True, materialize_grads=True
            )
            for x in self.aims
        )
        self.past_grad = torch.zeros_like(self.past)
        self.centre_grads = torch.empty_like(pasts)
        self.width_grads = torch.empty_like(pasts)
        self.readout_grads = torch.empty_like(readouts)

    def retreat(self, t: int, h: Tensor, grad: Tensor) -> Tensor:
        distance, width = self.distances[t], self.widths[t]
        grad = torch.addcmul(grad, self.past_grad[:, None], self.position)
        moved = softmax_gradient(self.weights[t], grad) * distance
        centre_grad = torch.div(moved.sum(1), width, out=self.centre_grads[t])
        width_grad = torch.div((moved * distance).sum(1), width, out=self.width_grads[t])
        readout_grad = torch.mul(
            centre_grad[:, None], self.centre_slope[t], out=self.readout_grads[t]
        )
        readout_grad.addcmul_(width_grad[:, None], self.width_slope[t])
        self.past_grad = centre_grad * self.past_slope[t]
        return readout_grad @ self.weight.T

    def gradients(self, states: Tensor) -> list[Tensor]:
        flat = self.readout_grads.flatten(0, 1)
        found = [states.flatten(0, 1).T @ flat, flat.sum(0)]
        if self.parameters:
            outputs = (self.centre_grads, self.width_grads)
            found += torch.autograd.grad(
                self.aims, self.parameters, outputs, materialize_grads=True
            )
        return found


def focus(position: Tensor, mask: Tensor, centre: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (B, S) of a Gaussian focus (Eqs. 5, 6, 9), scaled distances (B, S) to its centre."""
    distance = (position - centre[:, None]) / width[:, None]
    density = torch.exp(-0.5 * distance * distance) * mask
    return density / (density.sum(1, keepdim=True) + 1e-20), distance
