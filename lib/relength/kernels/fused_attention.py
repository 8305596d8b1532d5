"""Attention inside the fused decoding loop: by score, linear or additive, by focus, by both."""

import numpy as np
import torch
from torch import Tensor

from relength.kernels.late import compiled


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
        self.keys, self.scores = keys.detach().contiguous(), scores.detach()
        if self.relative:
            self.tensors += [distance_keys, distance_scores]
            self.distance_keys = distance_keys.detach()
            self.distance_scores = distance_scores.detach()

    def start(self, steps: int) -> None:
        self.weights = np.empty_like(self.scores.numpy(), shape=(steps, *self.scores.shape))

    def _window(self, t: int) -> slice:
        width = self.scores.shape[1]
        first = len(self.distance_keys) - width - t  # row of the distance 0 - t
        return slice(first, first + width)

    def attend(self, t: int, h: Tensor) -> None:
        scores = self.scores
        if self.relative:
            window = self._window(t)
            distance = torch.addmm(self.distance_scores[window], h, self.distance_keys[window].T)
            scores = scores + distance
        compiled.softmax(t, h.numpy(), self.keys.numpy(), scores.numpy(), self.weights)

    def turn(self) -> None:
        self.score_grads = torch.empty(self.weights.shape, dtype=self.scores.dtype)
        if self.relative:
            self.distance_grads = torch.zeros_like(self.distance_keys)
            self.bias_grads = torch.zeros_like(self.distance_scores)

    def retreat(self, t: int, h: Tensor, grad: np.ndarray, h_grad: Tensor) -> None:
        compiled.softmax_gradient(
            t, grad, self.weights, self.keys.numpy(), self.score_grads.numpy(), h_grad.numpy()
        )
        if self.relative:
            window, score_grad = self._window(t), self.score_grads[t]
            h_grad.addmm_(score_grad, self.distance_keys[window])
            self.distance_grads[window].addmm_(score_grad.T, h)
            self.bias_grads[window] += score_grad.sum(0)

    def gradients(self, states: Tensor) -> list[Tensor]:
        grads = self.score_grads.transpose(0, 1)  # (B, T, S)
        found = [states.permute(1, 2, 0) @ grads, grads.sum(1)]
        return [*found, self.distance_grads, self.bias_grads] if self.relative else found


class RotaryKernel(SoftmaxKernel):
    """Scores whose map from the decoder state, turned (T, d, d), depends on the step."""

    def __init__(self, keys: Tensor, scores: Tensor, turned: Tensor):
        super().__init__(keys, scores)
        self.tensors.append(turned)
        self.turned = turned.detach()

    def start(self, steps: int) -> None:
        super().start(steps)
        self.asked = self.turned.new_empty(steps, len(self.keys), self.turned.shape[2])

    def attend(self, t: int, h: Tensor) -> None:
        super().attend(t, torch.mm(h, self.turned[t], out=self.asked[t]))

    def turn(self) -> None:
        super().turn()
        self.asked_grads = torch.zeros_like(self.asked)

    def retreat(self, t: int, h: Tensor, grad: np.ndarray, h_grad: Tensor) -> None:
        super().retreat(t, self.asked[t], grad, self.asked_grads[t])
        h_grad.addmm_(self.asked_grads[t], self.turned[t].T)

    def gradients(self, states: Tensor) -> list[Tensor]:
        return [*super().gradients(self.asked), states.mT @ self.asked_grads]


class AdditiveKernel:
    """Scores v·max(0, W·h + memory) and their softmax, as in the PANM paper's released code.

    memory (B, S, d) mapped already, bias included;  scores (B, S) to add, -inf where masked;
    weight: W (d, hidden);  v (d,)
    """

    def __init__(self, memory: Tensor, scores: Tensor, weight: Tensor, v: Tensor):
        self.tensors = [memory, scores, weight, v]
        self.memory, self.scores, self.v = (
            x.detach().contiguous().numpy() for x in (memory, scores, v)
        )
        self.weight = weight.detach()

    def start(self, steps: int) -> None:
        batch, places, d = self.memory.shape
        self.asked = self.weight.new_empty(steps, batch, d)
        self.weights = np.empty((steps, batch, places), dtype=self.memory.dtype)

    def attend(self, t: int, h: Tensor) -> None:
        asked = torch.mm(h, self.weight.T, out=self.asked[t]).numpy()
        compiled.additive(t, asked, self.memory, self.v, self.scores, self.weights)

    def turn(self) -> None:
        self.asked_grads = torch.empty_like(self.asked)
        self.score_grads = np.empty_like(self.weights)
        self.memory_grad, self.v_grad = np.zeros_like(self.memory), np.zeros_like(self.v)

    def retreat(self, t: int, h: Tensor, grad: np.ndarray, h_grad: Tensor) -> None:
        compiled.additive_gradient(
            t,
            grad,
            self.asked[t].numpy(),
            self.memory,
            self.v,
            self.weights,
            self.score_grads,
            self.asked_grads.numpy(),
            self.memory_grad,
            self.v_grad,
        )
        h_grad.addmm_(self.asked_grads[t], self.weight)

    def gradients(self, states: Tensor) -> list[Tensor]:
        asked = self.asked_grads.flatten(0, 1).T @ states.flatten(0, 1)
        memory, scores, v = map(
            torch.from_numpy, (self.memory_grad, self.score_grads.sum(0), self.v_grad)
        )
        return [memory, scores, asked, v]


class FocusKernel:
    """A Gaussian focus; centre and width are elementwise in a linear readout and the past.

    readout  weight (d, k) and bias (k,)
    aim      (list of k scalars (..., B), past (..., B)) -> centre, width (..., B); any elementwise
             code, which may use ``parameters``. Its derivatives come from autograd, for all steps
             at once.
    before   the past at the first step
    """

    def __init__(self, position, mask, readout, aim, parameters, before=0.0):
        self.position, self.mask, self.aim, self.parameters = position, mask, aim, parameters
        self.before = before
        self.weight, self.bias = (tensor.detach().contiguous() for tensor in readout)
        self.tensors = [*readout, *parameters]

    def start(self, steps: int) -> None:
        batch, scalars = len(self.position), len(self.bias)
        self.readouts = self.position.new_empty(steps, batch, scalars)
        self.pasts = self.position.new_full((steps + 1, batch), self.before)  # before each step
        self.widths = self.position.new_empty(steps, batch)
        self.weights, self.distances = (
            self.position.new_empty(steps, *self.position.shape).numpy() for _ in range(2)
        )
        self.position_array, self.mask_array = self.position.numpy(), self.mask.numpy()
        self.past_array = self.pasts.numpy()

    def attend(self, t: int, h: Tensor) -> None:
        readout = torch.addmm(self.bias, h, self.weight, out=self.readouts[t])
        centre, width = self.aim(readout.unbind(1), self.pasts[t])
        self.widths[t] = width
        compiled.focus(
            t,
            self.position_array,
            self.mask_array,
            centre.numpy(),
            width.numpy(),
            self.weights,
            self.distances,
            self.past_array,
        )

    @torch.enable_grad()
    def turn(self) -> None:
        readouts = self.readouts.clone().requires_grad_()  # (T, B, k)
        pasts = self.pasts[:-1].clone().requires_grad_()  # (T, B)
        self.aims = self.aim(readouts.unbind(2), pasts)
        (centre_slope, past_slope), (width_slope, _) = (
            torch.autograd.grad(
                x.sum(), (readouts, pasts), retain_graph=True, materialize_grads=True
            )
            for x in self.aims
        )
        self.slopes = [x.contiguous().numpy() for x in (centre_slope, width_slope, past_slope)]
        self.past_grad = np.zeros_like(self.past_array[0])
        self.centre_grads, self.width_grads = (torch.empty_like(self.widths) for _ in range(2))
        self.readout_grads = torch.empty_like(self.readouts)
        self.written = [
            x.numpy() for x in (self.centre_grads, self.width_grads, self.readout_grads)
        ]

    def retreat(self, t: int, h: Tensor, grad: np.ndarray, h_grad: Tensor) -> None:
        compiled.focus_gradient(
            t,
            grad,
            self.position_array,
            self.weights,
            self.distances,
            self.widths.numpy(),
            self.past_grad,
            *self.slopes,
            self.weight.numpy(),
            *self.written,
            h_grad.numpy(),
        )

    def gradients(self, states: Tensor) -> list[Tensor]:
        flat = self.readout_grads.flatten(0, 1)
        found = [states.flatten(0, 1).T @ flat, flat.sum(0)]
        if self.parameters:
            # As one number: given gradients of tensors, PyTorch first imports SymPy, which takes
            # as long as hundreds of steps.
            grads = (self.centre_grads, self.width_grads)
            with torch.enable_grad():
                both = sum((aim * grad).sum() for aim, grad in zip(self.aims, grads, strict=True))
            found += torch.autograd.grad(both, self.parameters, materialize_grads=True)
        return found


class MixKernel:
    """A focus and a softmax side by side; a gate on the decoder state weighs them.

    mix        weight (d,) and bias (1,): σ of that map is the share of the focus
    own_past   the focus moves on from where it looked itself, not from where the mixture did
    """

    def __init__(
        self, located: FocusKernel, by_content: SoftmaxKernel, mix: tuple[Tensor, Tensor], own_past
    ):
        self.located, self.by_content, self.own_past = located, by_content, own_past
        self.weight, self.bias = (tensor.detach() for tensor in mix)
        self.tensors = [*located.tensors, *by_content.tensors, *mix]
        self.position = located.position.numpy()

    def start(self, steps: int) -> None:
        self.located.start(steps)
        self.by_content.start(steps)
        self.weights = np.empty_like(self.located.weights)
        self.shares = self.weight.new_empty(steps, len(self.position))

    def attend(self, t: int, h: Tensor) -> None:
        self.located.attend(t, h)
        self.by_content.attend(t, h)
        share = torch.sigmoid(torch.addmv(self.bias, h, self.weight), out=self.shares[t])
        located, by_content = self.located.weights[t], self.by_content.weights[t]
        self.weights[t] = by_content + share.numpy()[:, None] * (located - by_content)
        if not self.own_past:
            self.located.past_array[t + 1] = (self.weights[t] * self.position).sum(1)

    def turn(self) -> None:
        self.located.turn()
        self.by_content.turn()
        self.mix_grads = torch.empty_like(self.shares)

    def retreat(self, t: int, h: Tensor, grad: np.ndarray, h_grad: Tensor) -> None:
        if not self.own_past:  # the gradient of the past passes through the mixture
            grad = grad + self.located.past_grad[:, None] * self.position
            self.located.past_grad[:] = 0
        share = self.shares[t].numpy()
        difference = self.located.weights[t] - self.by_content.weights[t]
        mix_grad = (grad * difference).sum(1) * share * (1 - share)
        self.mix_grads[t] = torch.from_numpy(mix_grad)
        h_grad.addr_(self.mix_grads[t], self.weight)
        self.located.retreat(t, h, share[:, None] * grad, h_grad)
        self.by_content.retreat(t, h, (1 - share)[:, None] * grad, h_grad)

    def gradients(self, states: Tensor) -> list[Tensor]:
        return [
            *self.located.gradients(states),
            *self.by_content.gradients(states),
            states.flatten(0, 1).T @ self.mix_grads.flatten(),
            self.mix_grads.sum().reshape(1),
        ]


def focus(position: Tensor, mask: Tensor, centre: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (B, S) of a Gaussian focus (Eqs. 5, 6, 9), scaled distances (B, S) to its centre."""
    distance = (position - centre[:, None]) / width[:, None]
    density = torch.exp(-0.5 * distance * distance) * mask
    return density / (density.sum(1, keepdim=True) + 1e-20), distance
