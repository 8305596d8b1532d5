"""Transformer that reads the source and the empty places of the answer at once.

Source: Vaswani et al., "Attention is all you need" (2017), the encoder (Section 3.1): each layer is

x' = LayerNorm(x + MultiHead(x, x, x));  x'' = LayerNorm(x' + W_2·max(0, W_1·x' + b_1) + b_2)
MultiHead: Attention(Q, K, V) = softmax(Q·Kᵀ/√(d/h))·V in each of h heads (Eq. 1), then W^O

As in the released code, there is no decoder: the n source vectors are followed by as many zero
vectors as the answer has tokens, every position attends to every other, and the answer is read at
the zero vectors. Positions are sinusoids (Section 3.5); sines and cosines come one after the other
instead of in turns, which to a network with random first weights is the same.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.kernels.hashing import dropout_mask, fork
from relength.models.baselines.configs import TransformerConfig
from relength.models.free_running import FreeRunning
from relength.models.recurrence import Linear
from relength.models.seq2seq.attention import sinusoid


class Layer(nn.Module):
    """Self-attention and a feed-forward network, each with a shortcut and a normalisation."""

    SITES = 4  # dropout: attention weights, both shortcuts, inside the feed-forward network

    def __init__(self, config: TransformerConfig):
        super().__init__()
        d = config.hidden_size
        self.heads, self.rate = config.heads, config.dropout
        self.query_key_value = nn.Linear(d, 3 * d)
        self.attended = nn.Linear(d, d)  # W^O
        self.inner = nn.Linear(d, config.inner_size)
        self.outer = nn.Linear(config.inner_size, d)
        self.norm_attention, self.norm_forward = nn.LayerNorm(d), nn.LayerNorm(d)

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Draw as PyTorch's own layer does: attention weights Xavier uniform, its biases 0."""
        if name == "query_key_value.weight":
            shape = self.query_key_value.weight.shape
            bound = np.sqrt(6 / sum(shape))
            return random.uniform(-bound, bound, shape)
        if name in ("query_key_value.bias", "attended.bias"):
            return np.zeros(self.get_parameter(name).shape)
        return NotImplemented

    def forward(self, x: Tensor, keys: list[Tensor | None], linear: Linear) -> Tensor:
        """New vectors (B, S, d); keys: one per dropout site, None when evaluating."""
        attended = drop(self.attend(x, keys[0], linear), self.rate, keys[1])
        x = self.norm_attention(x + attended)
        inner = torch.relu(linear(x, self.inner.weight, self.inner.bias))
        outer = linear(drop(inner, self.rate, keys[2]), self.outer.weight, self.outer.bias)
        return self.norm_forward(x + drop(outer, self.rate, keys[3]))

    def attend(self, x: Tensor, key: Tensor | None, linear: Linear) -> Tensor:
        """MultiHead(x, x, x), (B, S, d)."""
        batch, length, d = x.shape
        heads = linear(x, self.query_key_value.weight, self.query_key_value.bias)
        heads = heads.view(batch, length, 3, self.heads, d // self.heads)
        query, keys, values = heads.permute(2, 0, 3, 1, 4)  # each (B, h, S, d/h)
        scores = query @ keys.mT / math.sqrt(d // self.heads)
        weights = torch.softmax(scores, dim=3)  # (B, h, S, S)
        if key is not None and self.rate > 0:
            # One channel per key and head, so that an element's fate does not depend on S.
            keep = dropout_mask((batch, length, length * self.heads), self.rate, key)
            keep = keep.view(batch, length, length, self.heads).permute(0, 3, 1, 2)
            weights = weights * keep / (1 - self.rate)
        attended = (weights @ values).transpose(1, 2).reshape(batch, length, d)
        return linear(attended, self.attended.weight, self.attended.bias)


def drop(x: Tensor, rate: float, key: Tensor | None) -> Tensor:
    """Dropout of elements (B, S, C), the kept ones scaled up; nothing happens without a key."""
    if key is None or rate == 0:
        return x
    return x * dropout_mask(x.shape, rate, key) / (1 - rate)


class Transformer(FreeRunning):
    """Embedding, positions, layers, output."""

    def __init__(self, config: TransformerConfig, input_size: int, classes: int):
        super().__init__()
        self.config = config
        self.embedding = nn.Linear(input_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.output = nn.Linear(config.hidden_size, classes)

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Draw as released: embedding and output weights uniform in ±0.1, output bias 0."""
        if name in ("embedding.weight", "output.weight"):
            return random.uniform(-0.1, 0.1, self.get_parameter(name).shape)
        return np.zeros(self.output.bias.shape) if name == "output.bias" else NotImplemented

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        x = self.embedding(F.pad(inputs, (0, 0, 0, steps)))  # (B, S + steps, d)
        places = torch.arange(x.shape[1], device=x.device)
        x = x + sinusoid(places, self.config.hidden_size).to(x.dtype)
        sites = 1 + Layer.SITES * len(self.layers)
        keys = [None if key is None else fork(key, site) for site in range(sites)]
        x = drop(x, self.config.dropout, keys[0])
        for i, layer in enumerate(self.layers):
            x = layer(x, keys[1 + Layer.SITES * i :][: Layer.SITES], self.linear)
        return self.output(x[:, -steps:])
