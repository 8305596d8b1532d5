"""A DNC over a whole sequence as one node of autograd, for a CPU.

The plain form, relength.models.memory.constrained, is a few hundred operations a step, each too
small for what it takes to call it. Here a step is two products, a few operations for the gates, and
one compiled call for the memory (:mod:`relength.kernels.dnc_steps`); the backward pass is written
out, and a weight's gradient is one product over all steps. Without gradients no history is kept.

Memories agree with the plain form in what is read, never slot by slot: slots that nothing was
written to are equally free up to rounding, and rounding decides which of them is taken.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from relength.kernels.late import dnc_steps


def _into(out: Tensor, a: Tensor, b: Tensor) -> None:
    """out = a·b, of the few rows of one step, for which oneDNN's call would be too long."""
    torch.mm(a, b, out=out)


class Size(NamedTuple):
    """Sizes of a memory: slots N, word width W, read heads R."""

    slots: int
    width: int
    heads: int


class Control(ABC):
    """A controller over one batch, forwards and backwards, a step at a time.

    tensors  its parameters, which get gradients
    h        (S, B, H) outputs
    cells    (S + 1, B, H) cell states, the first before all steps; of width 0 without any
    """

    tensors: list[Tensor]
    h: Tensor
    cells: Tensor

    @abstractmethod
    def start(self, inputs: Tensor, reads: int, keep: bool) -> None:
        """Get ready for inputs (S, B, X) and ``reads`` = R·W numbers read from the memory.

        keep: whether a backward pass will follow
        """

    @abstractmethod
    def forwards(self, t: int, reads: Tensor) -> Tensor:
        """Output h_t (B, H) from the input of step t and the reads (B, R·W) before it."""

    @abstractmethod
    def turn(self) -> None:
        """Called once between the two passes."""

    @abstractmethod
    def backwards(self, t: int, h_grad: Tensor, cell_grad: Tensor | None) -> Tensor:
        """Gradient (B, R·W) of the reads before step t, from those of h_t and of the cells.

        Steps come in reverse order.
        """

    @abstractmethod
    def gradients(self, inputs_too: bool) -> tuple[Tensor | None, list[Tensor]]:
        """Gradients after the last step: of the inputs, None unless asked for, and ``tensors``."""


class Gated(Control):
    """relength.models.memory.constrained.GatedController, whose parameters and fields these are.

    A row that the gates see is [x_t, r_{t-1}, h_{t-1} or c_{t-1}].

    first_h  None where the cell state is fed back instead: then it is a peephole LSTM
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor,
        first_c: Tensor,
        first_h: Tensor | None,
        compressed: bool,
        clip: float,
    ):
        self.weight, self.bias, self.compressed, self.clip = weight, bias, compressed, clip
        self.first_c, self.first_h = first_c, first_h
        self.tensors = [weight, bias, first_c] + ([] if first_h is None else [first_h])

    def start(self, inputs: Tensor, reads: int, keep: bool) -> None:
        steps, batch, x = inputs.shape
        d, places = len(self.first_c), steps if keep else 1
        self.keep, self.x, self.reads = keep, x, reads
        self.fed = inputs.new_empty(places, batch, x + reads + d)
        self.gates = inputs.new_empty(places, batch, 4 * d)
        self.h = inputs.new_empty(steps, batch, d)
        self.cells = inputs.new_empty(steps + 1, batch, d)
        self.cells[0] = self.first_c
        self.squashed = self.cells[1:] if self.compressed else torch.empty_like(self.h)
        self.state = self.cells[0] if self.first_h is None else self.first_h.expand(batch, -1)
        self.activate = dnc_steps.cell(inputs.dtype == torch.float32)
        arrays = self.bias, self.gates, self.cells, self.squashed, self.h
        self.arrays = [x.numpy() for x in arrays]
        # Views of every step, made at once: taking them one by one costs as much as computing.
        parts = self.gates, self.fed, *self.fed.split_with_sizes((x, reads, d), dim=2)
        self.places = list(zip(*parts, strict=True))
        states = self.cells[1:] if self.first_h is None else self.h
        self.steps = list(zip(inputs, self.h, states, strict=True))

    def forwards(self, t: int, reads: Tensor) -> Tensor:
        at = t if self.keep else 0
        inputs, h, state = self.steps[t]
        gates, fed, fed_inputs, fed_reads, fed_state = self.places[at]
        fed_inputs.copy_(inputs)
        fed_reads.copy_(reads)
        fed_state.copy_(self.state)
        _into(gates, fed, self.weight.T)
        self.activate(t, at, *self.arrays, self.compressed, self.clip)
        self.state = state
        return h

    def turn(self) -> None:
        _, batch, d = self.h.shape
        self.carried = torch.zeros_like(self.cells[0])  # gradient of the cells
        self.fed_grad = self.h.new_zeros(batch, self.reads + d)
        self.read_grad, self.state_grad = self.fed_grad.split((self.reads, d), dim=1)
        self.back, self.gate_places = self.weight[:, self.x :], self.gates.unbind()
        kept = (self.gates, self.cells, self.squashed, self.carried)
        self.arrays = [x.numpy() for x in kept]

    def backwards(self, t: int, h_grad: Tensor, cell_grad: Tensor | None) -> Tensor:
        (self.carried if self.first_h is None else h_grad).add_(self.state_grad)
        if cell_grad is not None:
            self.carried.add_(cell_grad)
        dnc_steps.gate_gradients(t, h_grad.numpy(), *self.arrays, self.compressed, self.clip)
        _into(self.fed_grad, self.gate_places[t], self.back)
        return self.read_grad

    def gradients(self, inputs_too: bool) -> tuple[Tensor | None, list[Tensor]]:
        flat = self.gates.flatten(0, 1)
        weight_grad = (self.fed.flatten(0, 1).T @ flat).T  # faster than the other way round
        if self.first_h is None:
            firsts = [(self.carried + self.state_grad).sum(0)]
        else:
            firsts = [self.carried.sum(0), self.state_grad.sum(0)]
        inputs_grad = self.gates @ self.weight[:, : self.x] if inputs_too else None
        return inputs_grad, [weight_grad, flat.sum(0), *firsts]


class Feedforward(Control):
    """relength.models.memory.constrained.FeedforwardController, whose parameters these are.

    tensors  weight and bias of the first layer, of the second, of the third
    """

    def __init__(self, tensors: list[Tensor], clip: float):
        self.tensors, self.clip = tensors, clip

    def start(self, inputs: Tensor, reads: int, keep: bool) -> None:
        steps, batch, self.x = inputs.shape
        places = steps if keep else 1
        self.inputs, self.keep, self.reads = inputs, keep, reads
        sizes = [self.x + reads, *map(len, self.tensors[::2])]
        # What each layer gets, and at last what leaves the third.
        self.layers = [inputs.new_empty(places, batch, size) for size in sizes[:-1]]
        self.h = inputs.new_empty(steps, batch, sizes[-1])
        self.cells = inputs.new_empty(steps + 1, batch, 0)

    def forwards(self, t: int, reads: Tensor) -> Tensor:
        fed, first, second = (x[t if self.keep else 0] for x in self.layers)
        w1, b1, w2, b2, w3, b3 = self.tensors
        fed[:, : self.x] = self.inputs[t]
        fed[:, self.x :] = reads
        _into(first, fed, w1.T)
        first.add_(b1).tanh_()
        _into(second, first, w2.T)
        second.add_(b2).tanh_()
        h = self.h[t]
        _into(h, second, w3.T)
        return h.add_(b3).clamp_(-self.clip, self.clip)

    def turn(self) -> None:
        _, first, second = self.layers
        self.grads = [torch.empty_like(x) for x in (first, second, self.h)]
        self.back = self.tensors[0][:, self.x :].contiguous()
        self.read_grad = self.h.new_empty(self.h.shape[1], self.reads)

    def backwards(self, t: int, h_grad: Tensor, cell_grad: Tensor | None) -> Tensor:
        first_grad, second_grad, third_grad = (x[t] for x in self.grads)
        _, first, second = (x[t] for x in self.layers)
        torch.mul(h_grad, self.h[t].abs() < self.clip, out=third_grad)
        for grad, to, weight, squashed in (
            (third_grad, second_grad, self.tensors[4], second),
            (second_grad, first_grad, self.tensors[2], first),
        ):
            _into(to, grad, weight)
            torch.ops.aten.tanh_backward.grad_input(to, squashed, grad_input=to)
        _into(self.read_grad, first_grad, self.back)
        return self.read_grad

    def gradients(self, inputs_too: bool) -> tuple[Tensor | None, list[Tensor]]:
        found = []
        for grads, fed in zip(self.grads, self.layers, strict=True):
            flat = grads.flatten(0, 1)
            found += [flat.T @ fed.flatten(0, 1), flat.sum(0)]
        inputs_grad = self.grads[0] @ self.tensors[0][:, : self.x] if inputs_too else None
        return inputs_grad, found


class _Memory:
    """The memory of one batch: its states, and what a backward pass needs of every step."""

    def __init__(self, size: Size, steps: int, like: Tensor, batch: int, keep: bool):
        n, w, r = size
        rows, end = dnc_steps.linked(n), dnc_steps.offsets(w, r).end
        self.keep, self.times = keep, steps
        self.steps = dnc_steps.steps(n, w, r, like.dtype == torch.float32)
        states, places = (steps + 1, steps) if keep else (2, 1)
        self.room, self.groups = like.new_empty, -(-batch // dnc_steps.LANES)

        self.orders = self._zeros(places, end)
        self.states = (
            self._from(0, states, w * n), self._from(dnc_steps.EPSILON**0.5, states, n),
            self._from(0, states, n), self._from(0, states, n), self._from(0, states, rows * n),
            self._zeros(states, rows), self._zeros(states, r * rows),
        )  # fmt: skip
        self.places = tuple(
            self._from(0, places, numbers)
            for numbers in (rows, rows, r * n, r * rows, (1 + r) * n, (1 + r) * n)
        )
        self.carries = w * n, n, n, rows * n, r * rows
        self.emitted, self.reads = self.room(batch, end), self.room(steps, batch, r * w)
        self.emitted_array, self.read_array = self.emitted.numpy(), self.reads.numpy()

    def _from(self, first: float, count: int, numbers: int) -> np.ndarray:
        """Room for numbers of every time, group and sample, filled at the first time."""
        found = self.room(count, self.groups, numbers, dnc_steps.LANES)
        found[0] = first
        return found.numpy()

    def _zeros(self, *shape: int) -> np.ndarray:
        """All zero, as loops leave what pads these."""
        return self.room(*shape[:-1], self.groups, shape[-1], dnc_steps.LANES).zero_().numpy()

    def forwards(self, t: int, h: Tensor, weight: Tensor, bias: np.ndarray) -> Tensor:
        """Reads (B, R·W) of step t, which the controller's output h (B, H) asks for."""
        at, before, after = (t, t, t + 1) if self.keep else (0, t % 2, (t + 1) % 2)
        _into(self.emitted, h, weight.T)
        self.steps.forwards(
            at, before, after, self.emitted_array, bias, self.orders, *self.states, *self.places,
            self.read_array[t],
        )  # fmt: skip
        return self.reads[t]

    def turn(self) -> None:
        """Get ready for steps in reverse order."""
        self.carried = [self._zeros(numbers) for numbers in self.carries]
        self.emitted_grads = self.room(self.times, *self.emitted.shape)
        self.emitted_grad_array = self.emitted_grads.numpy()
        self.emitted_places = self.emitted_grads.unbind()

    def backwards(self, t: int, read_grad: Tensor) -> Tensor:
        """Gradient of ξ_t before it was squashed, (B, ·), from that of the reads (B, R·W)."""
        self.steps.backwards(
            t, t, t + 1, self.orders, *self.states, *self.places, read_grad.numpy(),
            self.emitted_grad_array, *self.carried,
        )  # fmt: skip
        return self.emitted_places[t]


def sequence(
    control: Control, size: Size, inputs: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Controller outputs (S, B, H), reads (S, B, R·W) and cell states (S, B, H) of all steps.

    inputs        (S, B, X), time first
    weight, bias  of the map from the controller's output to ξ_t
    """
    tensors = (inputs, weight, bias, *control.tensors)
    keep = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    return _Sequence.apply(keep, control, size, *tensors)


class _Sequence(Function):
    @staticmethod
    def forward(
        ctx: Any,
        keep: bool,
        control: Control,
        size: Size,
        inputs: Tensor,
        weight: Tensor,
        bias: Tensor,
        *tensors: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        steps, batch, _ = inputs.shape
        memory = _Memory(size, steps, weight, batch, keep)
        control.start(inputs, size.width * size.heads, keep)
        reads, constant = torch.zeros_like(memory.reads[0]), bias.numpy()
        for t in range(steps):
            reads = memory.forwards(t, control.forwards(t, reads), weight, constant)
        ctx.control, ctx.memory = control, memory
        ctx.save_for_backward(weight, *tensors)  # of which none may change until then
        ctx.set_materialize_grads(False)
        # Views, as a node that kept its own outputs would keep itself alive.
        return control.h[:], memory.reads[:], control.cells[1:]

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, h_grads: Tensor | None, read_grads: Tensor | None, cell_grads: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        weight = ctx.saved_tensors[0]
        control, memory, ctx.control, ctx.memory = ctx.control, ctx.memory, None, None
        if control is None:
            raise RuntimeError(
                "The buffers of this sequence were given up on the way back: compute its outputs "
                "again before you go back a second time."
            )
        control.turn()
        memory.turn()
        steps, later = len(memory.reads), torch.zeros_like(memory.reads[0])
        read_grad, h_grad = torch.empty_like(later), torch.empty_like(control.h[0])
        h_parts, read_parts, cell_parts = (
            [None] * steps if x is None else x.unbind() for x in (h_grads, read_grads, cell_grads)
        )
        for t in range(steps - 1, -1, -1):
            if read_parts[t] is None:
                read_grad.copy_(later)
            else:
                torch.add(later, read_parts[t], out=read_grad)
            _into(h_grad, memory.backwards(t, read_grad), weight)
            if h_parts[t] is not None:
                h_grad += h_parts[t]
            later = control.backwards(t, h_grad, cell_parts[t])
        inputs_grad, grads = control.gradients(ctx.needs_input_grad[3])
        flat = memory.emitted_grads.flatten(0, 1)
        weight_grad = flat.T @ control.h.flatten(0, 1)
        return None, None, None, inputs_grad, weight_grad, flat.sum(0), *grads
