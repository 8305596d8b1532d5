"""Long short-term memory, the baseline without any external memory.

Source: Hochreiter and Schmidhuber, "Long short-term memory" (1997), with the forget gate of Gers et
al. (2000), as in PyTorch:

i, f, o = σ(W_i·[x_t; h_{t-1}] + b_i), σ(W_f·[…] + b_f), σ(W_o·[…] + b_o);  g = tanh(W_g·[…] + b_g)
c_t = f·c_{t-1} + i·g;  h_t = o·tanh(c_t);  y_t = W_y·h_t + b_y

It reads the source, then gets zeros, and every further output counts. Text and released code agree.
"""

from torch import Tensor, nn
from torch.nn import functional as F

from relength.models.baselines.configs import LSTMConfig
from relength.models.memory.machine import LearnedLSTMController, Machine
from relength.models.recurrence import LSTMState


class LSTMBaseline(Machine):
    """One layer, with learned first states."""

    def __init__(self, config: LSTMConfig, input_size: int, classes: int):
        super().__init__()
        self.config = config
        self.controller = LearnedLSTMController(input_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, classes)

    def start(self, batch: int) -> LSTMState:
        return self.controller.start(batch)

    def step(self, x: Tensor, state: LSTMState) -> tuple[Tensor, LSTMState]:
        return self.controller.step(x, state, self.linear)

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        # Nothing happens between the steps, so all of them are one scan.
        lstm, padded = self.controller.lstm, F.pad(inputs, (0, 0, 0, steps))
        x_gates = self.linear(padded, lstm.weight_ih, lstm.bias_ih)
        states, _ = lstm.scan(x_gates, self.start(len(inputs)), self.linear)
        return self.output(states[:, -steps:])
