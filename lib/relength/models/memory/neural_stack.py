"""Neural Stack: a controller with a stack whose items are there to a degree.

Source: Grefenstette et al., "Learning to transduce with unbounded memory" (2015), Section 3.

| paper | here | shape |
| --- | --- | --- |
| V_t, s_t | ``values``, ``strengths`` | (B, t, m), (B, t) |
| d_t, u_t, v_t | push, pop, value | (B, 1), (B, 1), (B, m) |
| r_t | ``read`` | (B, m) |

The controller gets [x_t; r_{t-1}] and emits o'_t, of which d_t, u_t = σ(W·o'_t + b),
v_t, o_t = tanh(W·o'_t + b); scores are linear in o_t. No code was released.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from relength.models.memory.configs import NeuralStackConfig
from relength.models.memory.machine import LearnedLSTMController, Machine
from relength.models.recurrence import LSTMState


class NeuralStackState(NamedTuple):
    """The state that the model carries from step to step; symbols and shapes in the table above."""

    controller: LSTMState
    values: Tensor
    strengths: Tensor
    read: Tensor


def above(strengths: Tensor) -> Tensor:
    """Sum the strengths on top of each item: Σ_{j>i} s[j]."""
    return strengths.flip(1).cumsum(1).flip(1) - strengths


def update(strengths: Tensor, pop: Tensor, push: Tensor) -> Tensor:
    """Strengths (B, t + 1) after popping u from the top and pushing with strength d, both (B, 1).

    s_t[i] = max(0, s_{t-1}[i] - max(0, u_t - Σ_{j=i+1}^{t-1} s_{t-1}[j])) for i < t;  s_t[t] = d_t

    >>> strengths = torch.tensor([[0.7, 0.5]])
    >>> update(strengths, torch.tensor([[0.9]]), torch.tensor([[0.9]]))
    tensor([[0.3000, 0.0000, 0.9000]])
    """
    left = torch.relu(strengths - torch.relu(pop - above(strengths)))
    return torch.cat([left, push], dim=1)


def top(values: Tensor, strengths: Tensor) -> Tensor:
    """Read the topmost items, up to a total strength of 1: r_t (B, m).

    r_t = Σ_i min(s_t[i], max(0, 1 - Σ_{j=i+1}^{t} s_t[j]))·V_t[i]

    >>> top(torch.tensor([[[1.0], [10.0], [100.0]]]), torch.tensor([[0.3, 0.0, 0.9]]))
    tensor([[90.1000]])
    """
    share = torch.minimum(strengths, torch.relu(1 - above(strengths)))
    return (share[:, None] @ values).squeeze(1)


class NeuralStack(Machine):
    """Controller and stack."""

    def __init__(self, config: NeuralStackConfig, input_size: int, classes: int):
        super().__init__()
        self.config = config
        d, m = config.hidden_size, config.value_size
        self.controller = LearnedLSTMController(input_size + m, d)
        self.gates = nn.Linear(d, 2)  # d_t, u_t
        self.value = nn.Linear(d, m)  # v_t
        self.answer = nn.Linear(d, d)  # o_t
        self.output = nn.Linear(d, classes)

    def start(self, batch: int) -> NeuralStackState:
        m, like = self.config.value_size, self.output.weight
        values, strengths = like.new_zeros(batch, 0, m), like.new_zeros(batch, 0)
        read = like.new_zeros(batch, m)
        return NeuralStackState(self.controller.start(batch), values, strengths, read)

    def step(self, x: Tensor, state: NeuralStackState) -> tuple[Tensor, NeuralStackState]:
        seen = torch.cat([x, state.read], dim=1)
        h, controller = self.controller.step(seen, state.controller, self.linear)
        push, pop = torch.sigmoid(self.gates(h)).split(1, dim=1)
        value = torch.tanh(self.value(h))
        strengths = update(state.strengths, pop, push)
        values = torch.cat([state.values, value[:, None]], dim=1)
        read = top(values, strengths)
        return torch.tanh(self.answer(h)), NeuralStackState(controller, values, strengths, read)
