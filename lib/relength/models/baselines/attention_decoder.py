"""An encoder, a decoder, and attention of any kind between them.

Four baselines of PANM share it and differ in how they score the source: Content Attention, Location
Attention, Hybrid Attention and PtrNet. The frame is that of Bahdanau et al., "Neural machine
translation by jointly learning to align and translate" (2015), Section 3 and Appendix A.2:

| paper | here | shape |
| --- | --- | --- |
| h_j, annotations | ``annotations`` | (B, S, d) |
| s_0 = tanh(W_s·←h_1) | ``first``, second result of an encoder | (B, d) |
| α_tj | what a :class:`Score` returns | (B, S) |
| c_t = Σ_j α_tj·h_j (Eq. 5) | ``context`` | (B, d) for each score |
| s_t = f(s_{t-1}, c_t) | ``decoder``, a GRU | (B, d) |
| p(y_t) = g(s_t, c_t) | ``output``, linear | (B, T, classes) |

The previous token, which f and g get in the paper, is zero here, and left out.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from relength.models.free_running import FreeRunning
from relength.models.recurrence import GRU, Linear


class Encoder(nn.Module, ABC):
    """Base of encoders."""

    @abstractmethod
    def forward(self, inputs: Tensor, linear: Linear) -> tuple[Tensor, Tensor]:
        """Annotations (B, S, d) of inputs (B, S, C), and the decoder's first state (B, d).

        linear: torch.nn.functional.linear or an equal of it
        """


class BidirectionalEncoder(Encoder):
    """Two GRUs of d/2 units, side by side: h_j = [→h_j; ←h_j] (Section 3.2)."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.forwards = GRU(input_size, hidden_size // 2)
        self.backwards = GRU(input_size, hidden_size // 2)
        self.first = nn.Linear(hidden_size // 2, hidden_size, bias=False)  # W_s

    def forward(self, inputs: Tensor, linear: Linear) -> tuple[Tensor, Tensor]:
        left, right = both_ways(self.forwards, self.backwards, inputs, linear)
        return torch.cat([left, right], dim=2), torch.tanh(self.first(right[:, 0]))


def both_ways(forwards: GRU, backwards: GRU, x: Tensor, linear: Linear) -> tuple[Tensor, Tensor]:
    """States →h_j and ←h_j, each (B, S, d), of x (B, S, C) read from the left and the right."""
    left, right = (
        gru.scan(linear(sequence, gru.weight_ih, gru.bias_ih), linear=linear)
        for gru, sequence in ((forwards, x), (backwards, x.flip(1)))
    )
    return left, right.flip(1)


class Score(nn.Module, ABC):
    """Base of attentions: ``prepare`` once per source, then weights for one state after another."""

    @abstractmethod
    def prepare(self, annotations: Tensor, linear: Linear) -> Tensor:
        """Whatever does not depend on the decoder, from annotations (B, S, d)."""

    @abstractmethod
    def forward(self, state: Tensor, prepared: Tensor, linear: Linear) -> Tensor:
        """Weights α_t (B, S) for the state s_{t-1} (B, d)."""


class Attending(FreeRunning):
    """Encodes, then attends at every step of the decoder; how tokens follow is left to subclasses.

    scores: name -> attention. Their contexts stand side by side where there are several.
    """

    def __init__(self, encoder: Encoder, scores: dict[str, Score], hidden_size: int):
        super().__init__()
        self.encoder = encoder
        self.scores = nn.ModuleDict(scores)
        self.decoder = GRU(hidden_size * len(scores), hidden_size)

    def attend(self, inputs: Tensor, steps: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Features [s_t; c_t] (B, steps, ·) and the weights (B, steps, S) of every attention."""
        linear = self.linear
        annotations, state = self.encoder(inputs, linear)
        scores = [(score, score.prepare(annotations, linear)) for score in self.scores.values()]
        features, weights = [], []
        for _ in range(steps):
            now = [score(state, prepared, linear) for score, prepared in scores]
            weights.append(torch.stack(now, dim=1))  # (B, scores, S)
            context = (weights[-1] @ annotations).flatten(1)  # (B, scores · d)
            gates = linear(context, self.decoder.weight_ih, self.decoder.bias_ih)
            state = self.decoder.step(gates, state, linear)
            features.append(torch.cat([state, context], dim=1))
        by_score = torch.stack(weights, dim=2).unbind(1)  # (B, steps, S) each
        return torch.stack(features, dim=1), dict(zip(self.scores, by_score, strict=True))

    @torch.no_grad()
    def trace(self, inputs: Tensor, steps: int) -> dict[str, Tensor]:
        return self.attend(inputs, steps)[1]


class AttentionDecoder(Attending):
    """Writes from the decoder's state and what it attends to."""

    def __init__(self, encoder: Encoder, scores: dict[str, Score], hidden_size: int, classes: int):
        super().__init__(encoder, scores, hidden_size)
        self.output = nn.Linear(hidden_size * (1 + len(scores)), classes)

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        return self.output(self.attend(inputs, steps)[0])
