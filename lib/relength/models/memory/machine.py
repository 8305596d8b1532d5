"""Machines: models that read a sequence one vector at a time, and then answer.

LSTM, NTM, DNC, Neural Stack and NRAM share this protocol (Graves et al., 2014): the source comes
in, one vector per step; then the input is zero, and the output of every further step counts.
"""

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.models.free_running import FreeRunning
from relength.models.recurrence import LSTM, Linear, LSTMState


class Machine(FreeRunning):
    """A recurrent model that answers after it has read.

    A subclass defines ``start`` and ``step``, and ``output``, a linear map from features to scores.
    """

    output: nn.Linear

    @abstractmethod
    def start(self, batch: int) -> Any:
        """State before the first vector."""

    @abstractmethod
    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Features (B, F) that the output is read from, and the next state, from x (B, C)."""

    def turn(self, state: Any) -> Any:
        """State in which answering begins, from that in which reading ended; mostly the same."""
        return state

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        """Scores (B, steps, classes) after reading inputs (B, S, C)."""
        state, features = self.start(len(inputs)), []
        for x in inputs.unbind(1):
            _, state = self.step(x, state)
        state, nothing = self.turn(state), torch.zeros_like(inputs[:, 0])
        for _ in range(steps):
            feature, state = self.step(nothing, state)
            features.append(feature)
        return self.output(torch.stack(features, dim=1))


class LSTMController(nn.Module):
    """An LSTM that starts from zeros."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.lstm = LSTM(input_size, hidden_size)

    def start(self, batch: int) -> LSTMState:
        """States h and c (B, d) before the first step."""
        nothing = self.lstm.weight_hh.new_zeros(batch, self.lstm.hidden_size)
        return LSTMState(nothing, nothing)

    def step(
        self, x: Tensor, state: LSTMState, linear: Linear = F.linear
    ) -> tuple[Tensor, LSTMState]:
        """Output h (B, d) and next state from an input (B, C)."""
        x_gates = linear(x, self.lstm.weight_ih, self.lstm.bias_ih)
        state = self.lstm.step(x_gates, state, linear)
        return state.h, state


class LearnedLSTMController(LSTMController):
    """An LSTM that starts from learned states, as in the released LSTM and NTM baselines.

    First weights as released: matrices uniform in ±5/√(input + hidden), biases 0, first states
    normal with standard deviation 0.05.
    """

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__(input_size, hidden_size)
        self.first_h = nn.Parameter(torch.empty(hidden_size))
        self.first_c = nn.Parameter(torch.empty(hidden_size))
        self.bound = 5 / np.sqrt(input_size + hidden_size)

    def initial(self, name: str, random: np.random.Generator) -> np.ndarray:
        return random.normal(0, 0.05, self.lstm.hidden_size)

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        shape = self.get_parameter(name).shape
        if name.startswith("lstm.bias"):
            return np.zeros(shape)
        return random.uniform(-self.bound, self.bound, shape)

    def start(self, batch: int) -> LSTMState:
        return LSTMState(self.first_h.expand(batch, -1), self.first_c.expand(batch, -1))
