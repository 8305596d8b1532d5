"""Mamba: a recurrence whose steps depend on the word, and whose state never grows.

Source: Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces" (2023),
Sections 3.2 to 3.4, Algorithm 2.

============= ==================== ==========================================
the paper     here                 shape
============= ==================== ==========================================
x             ``x``                (B, S, C) channels, after the convolution
Δ             ``step``             (B, S, C)
B, C          ``write``, ``read``  (B, S, N)
A             ``rates``            (N, C), negative
D             ``direct``           (C,)
h             ``state``            (B, N, C)
z             ``gate``             (B, S, C)
============= ==================== ==========================================
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.kernels.selective import selective_scan
from relength.models.language.baseline_configs import MambaConfig
from relength.models.language.texts import ending_together, parts
from relength.models.language.transformer import LanguageModel
from relength.tasks.base import PAD
from relength.tasks.batch import Answered, FactsToAnswer

SLOWEST, FASTEST = 1e-3, 1e-1  # step sizes that channels begin with
AT_ONCE = 1024  # words that are read at once, of all texts, when nothing is learned


class State(NamedTuple):
    """The state of a layer after the words that it has read.

    recent  (B, K - 1, C) the last inputs of its convolution
    state   (B, N, C)
    """

    recent: Tensor
    state: Tensor


def scan(
    x: Tensor, step: Tensor, rates: Tensor, write: Tensor, read: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs (B, S, C) and the last state (B, N, C), word by word.

    h_t = exp(Δ_t·A)·h_{t-1} + Δ_t·B_t·x_t;  y_t = C_t·h_t

    :func:`relength.kernels.selective.selective_scan` is the same in a fraction of the time.
    """
    outputs = []
    for t in range(x.shape[1]):
        kept = torch.exp(step[:, t, None] * rates)  # (B, N, C)
        new = write[:, t, :, None] * (step[:, t] * x[:, t])[:, None]
        state = kept * state + new
        outputs.append((state * read[:, t, :, None]).sum(1))
    return torch.stack(outputs, dim=1), state


class Selective(nn.Module):
    """One layer: a short convolution, a selective state space, and a gate."""

    def __init__(self, config: MambaConfig):
        super().__init__()
        self.config = config
        d, channels, n = config.width, config.expansion * config.width, config.state_size
        self.before = nn.RMSNorm(d)
        self.to_channels = nn.Linear(d, channels, bias=False)
        self.to_gate = nn.Linear(d, channels, bias=False)
        self.taps = nn.Parameter(torch.empty(config.taps, channels))
        self.tap_bias = nn.Parameter(torch.empty(channels))
        self.to_selection = nn.Linear(channels, config.rank + 2 * n, bias=False)
        self.to_step = nn.Linear(config.rank, channels)
        self.log_rates = nn.Parameter(torch.arange(1.0, n + 1).log()[:, None].repeat(1, channels))
        self.direct = nn.Parameter(torch.ones(channels))
        self.back = nn.Linear(channels, d, bias=False)

    def start(self, batch: int) -> State:
        """The state (B, …) before the first word."""
        taps, channels = self.taps.shape
        new = self.direct.new_zeros
        return State(new(batch, taps - 1, channels), new(batch, *self.log_rates.shape))

    def forward(
        self, x: Tensor, there: Tensor, before: State, fused: bool, last: int | None = None
    ) -> tuple[Tensor, State]:
        """Outputs (B, S, d) for inputs (B, S, d), and the state after them.

        there  (B, S) False for padding, which stands at the left
        last   how many words at the end have outputs, if not all
        """
        n, taps = self.config.state_size, len(self.taps)
        normed, there = self.before(x), there[:, :, None]
        sources = torch.cat([before.recent, self.to_channels(normed) * there], dim=1)
        mixed = self.tap_bias
        for k in range(taps):
            mixed = torch.addcmul(mixed, sources[:, k : k + x.shape[1]], self.taps[k])
        channels = F.silu(mixed) * there  # so that padding writes nothing
        rank, write, read = self.to_selection(channels).split([self.config.rank, n, n], dim=2)
        step = F.softplus(self.to_step(rank))
        rates = -self.log_rates.exp()
        run = selective_scan if fused else scan
        found, state = run(channels, step, rates, write, read, before.state)
        after = State(sources[:, x.shape[1] :], state)
        if last is not None:
            start = x.shape[1] - last
            x, normed, found, channels = (v[:, start:] for v in (x, normed, found, channels))
        found = (found + self.direct * channels) * F.silu(self.to_gate(normed))
        return x + self.back(found), after


class Mamba(LanguageModel):
    """Words of lines, question, prompt and answer in one sequence."""

    def __init__(self, config: MambaConfig, words: int):
        super().__init__()
        self.config = config
        self.words = nn.Embedding(words, config.width)
        self.layers = nn.ModuleList(Selective(config) for _ in range(config.layers))
        self.final = nn.RMSNorm(config.width)

    def _initial(self, name: str, random: np.random.Generator) -> np.ndarray | None:
        """Draw Mamba's start: taps as PyTorch's convolutions, step sizes even in the logarithm."""
        shape = self.get_parameter(name).shape
        match name.rpartition(".")[2]:
            case "taps" | "tap_bias":
                bound = 1 / math.sqrt(self.config.taps)
                return random.uniform(-bound, bound, shape)
        if name.endswith("to_step.bias"):
            step = np.exp(random.uniform(math.log(SLOWEST), math.log(FASTEST), shape))
            return step + np.log(-np.expm1(-step))  # softplus of it is the step
        return super()._initial(name, random)

    def start(self, batch: int) -> list[State]:
        """The states of all layers before the first word."""
        return [layer.start(batch) for layer in self.layers]

    def run(self, tokens: Tensor, states: list[State], last: int) -> tuple[Tensor, list[State]]:
        """Outputs (B, last, d) of the last of words (B, S), and the states after them."""
        x, there, after = self.words(tokens), tokens != PAD, []
        *lower, top = self.layers
        for layer, state in zip(lower, states[:-1], strict=True):
            x, state = layer(x, there, state, self.fused)
            after.append(state)
        x, state = top(x, there, states[-1], self.fused, last)
        return x, [*after, state]

    def scores(self, outputs: Tensor) -> Tensor:
        """Scores (B, T, words) of the words after these outputs (B, T, d)."""
        return F.linear(self.final(outputs), self.words.weight)

    def forward(self, batch: FactsToAnswer, key: Tensor | None = None) -> Tensor:
        return self.by_length(batch, self._scores_of)

    def _scores_of(self, batch: FactsToAnswer) -> Tensor:
        """Scores (B, T, words) of the targets."""
        tokens = torch.cat([ending_together(batch), batch.targets[:, :-1]], dim=1)
        outputs, _ = self.run(tokens, self.start(len(tokens)), batch.targets.shape[1])
        return self.scores(outputs)

    @torch.no_grad()
    def generate(
        self, batch: FactsToAnswer, steps: int, keep_weights: bool = False
    ) -> tuple[Answered, None]:
        return Answered(torch.cat([self._written(part, steps) for part in parts(batch)])), None

    def _written(self, batch: FactsToAnswer, steps: int) -> Tensor:
        tokens = ending_together(batch)
        states = self.start(len(tokens))
        for words in tokens[:, :-1].split(max(AT_ONCE // len(tokens), 1), dim=1):
            _, states = self.run(words, states, last=0)
        word, written = tokens[:, -1:], []
        for _ in range(steps):
            outputs, states = self.run(word, states, last=1)
            word = self.scores(outputs).argmax(2)  # (B, 1)
            written.append(word)
        return torch.cat(written, dim=1)
