"""SRNN: a recurrent network that reads and writes the top of a stack of numbers.

Source: Suzgun et al., "Memory-Augmented Recurrent Neural Networks Can Learn Generalized Dyck
Languages" (2019), Section 4.1, in the form that its code gives the stack: a fixed number of rows.

| paper | here | shape |
| --- | --- | --- |
| h_t, s_t | ``StackState.h``, ``.stack`` | (B, H), (B, N, m) |
| h̃_{t-1} = h_{t-1} + W_sh·s_{t-1}[0] + b_sh | ``h_bar`` | (B, H) |
| h_t = tanh(W_ih·x_t + b_ih + W_hh·h̃_{t-1} + b_hh) | ``StackRNN.step`` | (B, H) |
| a_t = softmax(W_a·h_t + b_a) | ``push``, ``pop`` | (B, 1, 1) each |
| n_t = σ(W_n·h_t + b_n) | ``new`` | (B, m) |
| y_t = σ(W_y·h_t + b_y) | ``output`` | (B, K) |
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.models.free_running import FreeRunning
from relength.models.memory.configs import SRNNConfig
from relength.models.recurrence import Linear
from relength.tasks.batch import Batch


class StackState(NamedTuple):
    """The state that the network carries from step to step; the top of the stack is row 0."""

    h: Tensor
    stack: Tensor


def update(stack: Tensor, push: Tensor, pop: Tensor, new: Tensor) -> Tensor:
    """The stack (B, N, m) after a step: pushed and popped to the degree of two weights (B, 1, 1).

    s_t[0] = push·n_t + pop·s_{t-1}[1];  s_t[i] = push·s_{t-1}[i - 1] + pop·s_{t-1}[i + 1], where a
    row below the last one is zero. What is pushed off the last row is lost.

    >>> stack, new = torch.tensor([[[0.5], [1.0], [0.0]]]), torch.tensor([[2.0]])
    >>> push, pop = torch.tensor([[[0.75]]]), torch.tensor([[[0.25]]])
    >>> update(stack, push, pop, new).flatten().tolist()
    [1.75, 0.375, 0.75]
    """
    pushed = torch.cat([new[:, None], stack[:, :-1]], dim=1)
    popped = F.pad(stack[:, 1:], (0, 0, 0, 1))
    return push * pushed + pop * popped


class StackRNN(nn.Module):
    """The recurrent part: hidden states of all steps."""

    def __init__(self, input_size: int, hidden_size: int, slots: int, width: int):
        super().__init__()
        self.hidden_size, self.slots, self.width = hidden_size, slots, width
        self.weight_ih = nn.Parameter(torch.empty(hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(hidden_size, hidden_size))
        self.bias_ih = nn.Parameter(torch.empty(hidden_size))
        self.bias_hh = nn.Parameter(torch.empty(hidden_size))
        self.to_hidden = nn.Linear(width, hidden_size)  # W_sh
        self.action = nn.Linear(hidden_size, 2)  # W_a: push, pop
        self.element = nn.Linear(hidden_size, width)  # W_n

    def initial(self, name: str, random: np.random.Generator) -> np.ndarray:
        """The recurrent cell as PyTorch draws one: ±1/√hidden."""
        bound = 1 / math.sqrt(self.hidden_size)
        return random.uniform(-bound, bound, self.get_parameter(name).shape)

    def start(self, batch: int, slots: int) -> StackState:
        """Zeros."""
        like = self.weight_hh
        stack = like.new_zeros(batch, slots, self.width)
        return StackState(like.new_zeros(batch, self.hidden_size), stack)

    def step(self, x_part: Tensor, state: StackState, linear: Linear = F.linear) -> StackState:
        """The next state, from W_ih·x_t + b_ih (B, H)."""
        h_bar = state.h + linear(state.stack[:, 0], self.to_hidden.weight, self.to_hidden.bias)
        h = torch.tanh(x_part + linear(h_bar, self.weight_hh, self.bias_hh))
        actions = torch.softmax(linear(h, self.action.weight, self.action.bias), dim=1)
        push, pop = actions[:, :, None, None].unbind(1)
        new = torch.sigmoid(linear(h, self.element.weight, self.element.bias))
        return StackState(h, update(state.stack, push, pop, new))

    def forward(self, x: Tensor) -> Tensor:
        """States h_t (B, T, H) for inputs (B, T, C).

        After t steps, rows below the t-th are zero: no more of them are carried along than there
        are steps.
        """
        batch, steps = x.shape[:2]
        state, states = self.start(batch, min(self.slots, steps)), []
        for x_part in F.linear(x, self.weight_ih, self.bias_ih).unbind(1):
            state = self.step(x_part, state)
            states.append(state.h)
        return torch.stack(states, dim=1)


class SRNN(FreeRunning):
    """The network alone: after each symbol a number from 0 to 1 for each that may follow."""

    def __init__(self, config: SRNNConfig, channels: int, outputs: int):
        super().__init__()
        self.config = config
        self.core = StackRNN(channels, config.hidden_size, config.slots, config.width)
        self.output = nn.Linear(config.hidden_size, outputs)

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        return torch.sigmoid(self.output(self.core(step_by_step(inputs, steps))))

    @torch.no_grad()
    def generate(
        self, batch: Batch, steps: int, keep_weights: bool = False
    ) -> tuple[Tensor, dict[str, Tensor] | None]:
        """Outputs (B, T, K), as training sees them."""
        return self(batch), {} if keep_weights else None


def step_by_step(inputs: Tensor, steps: int) -> Tensor:
    """Return inputs (B, T, C) if T is the number of outputs; else RelengthError."""
    if inputs.shape[1] != steps:
        raise RelengthError(
            f"A model that answers after every symbol gives {inputs.shape[1]} outputs for "
            f"{inputs.shape[1]} symbols, and {steps} are wanted: choose a task with one target per "
            "input."
        )
    return inputs
