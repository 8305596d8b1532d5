"""Attention by content: where to look follows from what is there.

Source: Bahdanau, Cho and Bengio, "Neural machine translation by jointly learning to align and
translate" (2015), Section 3 and Appendix A.1.2:

e_tj = v·tanh(W_a·s_{t-1} + U_a·h_j);  α_tj = exp(e_tj) / Σ_k exp(e_tk)

| paper | here |
| --- | --- |
| W_a, U_a, v_a | ``from_state``, ``from_annotation``, ``weight`` |
"""

import numpy as np
import torch
from torch import Tensor, nn

from relength.models.baselines.attention_decoder import (
    AttentionDecoder,
    BidirectionalEncoder,
    Encoder,
    Score,
    both_ways,
)
from relength.models.baselines.configs import ContentAttentionConfig
from relength.models.recurrence import GRU, Linear


class AdditiveScore(Score):
    """α_t = softmax_j(v·tanh(W_a·s_{t-1} + U_a·h_j)), or with another ``activation``.

    First weights as released: W_a, U_a and their bias as one linear map from [s; h], v likewise.
    """

    def __init__(self, hidden_size: int, activation: str = "tanh"):
        super().__init__()
        self.from_state = nn.Linear(hidden_size, hidden_size, bias=False)
        self.from_annotation = nn.Linear(hidden_size, hidden_size)
        self.weight = nn.Parameter(torch.empty(hidden_size))
        self.activation = getattr(torch, activation)

    def initial(self, name: str, random: np.random.Generator) -> np.ndarray:
        bound = 1 / np.sqrt(len(self.weight))
        return random.uniform(-bound, bound, len(self.weight))

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        bound = 1 / np.sqrt(2 * len(self.weight))
        return random.uniform(-bound, bound, self.get_parameter(name).shape)

    def prepare(self, annotations: Tensor, linear: Linear) -> Tensor:
        return linear(annotations, self.from_annotation.weight, self.from_annotation.bias)

    def forward(self, state: Tensor, prepared: Tensor, linear: Linear) -> Tensor:
        asked = linear(state, self.from_state.weight, None)[:, None]
        energies = self.activation(asked + prepared) @ self.weight
        return torch.softmax(energies, dim=1)


class SummedEncoder(Encoder):
    """The released encoder: embedded inputs, two GRUs of d units, their states added."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.embedding = nn.Linear(input_size, hidden_size)
        self.forwards, self.backwards = GRU(hidden_size, hidden_size), GRU(hidden_size, hidden_size)

    def forward(self, inputs: Tensor, linear: Linear) -> tuple[Tensor, Tensor]:
        left, right = both_ways(self.forwards, self.backwards, self.embedding(inputs), linear)
        return left + right, left[:, -1]


class ContentAttention(AttentionDecoder):
    """The frame of relength.models.baselines.attention_decoder with an additive score."""

    def __init__(self, config: ContentAttentionConfig, input_size: int, classes: int):
        released = config.arm == "released"
        encoder = SummedEncoder if released else BidirectionalEncoder
        d = config.hidden_size
        score = AdditiveScore(d, "relu" if released else "tanh")
        super().__init__(encoder(input_size, d), {"content": score}, d, classes)
        self.config = config
