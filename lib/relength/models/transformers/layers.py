"""Layers of a Transformer's encoder and decoder, and stacks of them.

Each part adds to a vector, and the sum is normalised (Vaswani et al. 2017, Section 3.1):
x ← LayerNorm(x + Part(x)), the parts being attention and W_2·max(0, W_1·x + b_1) + b_2.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from relength.kernels.hashing import fork
from relength.models.seq2seq.attention import sinusoid
from relength.models.transformers.attention import MultiHead, Past, Remembered, Switched
from relength.models.transformers.configs import LayerSizes
from relength.tasks.base import SOS

Keys = list[Tensor | None]  # one per dropout site of a layer, None when evaluating


class FeedForward(Switched):
    """W_2·max(0, W_1·x + b_1) + b_2, dropout before W_2."""

    def __init__(self, sizes: LayerSizes):
        super().__init__()
        self.rate = sizes.dropout
        self.inner = nn.Linear(sizes.width, sizes.inner_size)
        self.outer = nn.Linear(sizes.inner_size, sizes.width)

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Weights as released: Xavier uniform, times √2 before the ReLU."""
        if not name.endswith("weight"):
            return NotImplemented
        shape = self.get_parameter(name).shape
        bound = math.sqrt(6 / sum(shape)) * (math.sqrt(2) if name.startswith("inner") else 1)
        return random.uniform(-bound, bound, shape)

    def forward(self, x: Tensor, key: Tensor | None) -> Tensor:
        inner = torch.relu(self.linear(x, self.inner))
        return self.linear(self.drop(inner, self.rate, key), self.outer)


class EncoderLayer(Switched):
    """Self-attention and a feed-forward network."""

    SITES = 4  # of dropout: attention weights, inside the network, both sums

    def __init__(self, sizes: LayerSizes, relative: bool):
        super().__init__()
        self.rate = sizes.dropout
        self.attention = MultiHead(sizes.width, sizes.heads, sizes.dropout, relative)
        self.forwards = FeedForward(sizes)
        self.norm_attention, self.norm_forward = (nn.LayerNorm(sizes.width) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor, keys: Keys) -> Tensor:
        """New vectors (B, S, d); mask (B, 1, 1, S), True where there is a token."""
        found = self.attention(x, self.attention.remember(x), mask, keys[0])
        x = self.norm_attention(x + self.drop(found, self.rate, keys[1]))
        return self.norm_forward(x + self.drop(self.forwards(x, keys[2]), self.rate, keys[3]))


class DecoderLayer(Switched):
    """Self-attention to what is written, attention to the source, a feed-forward network.

    Positions of the source are never relative to those of the target.
    """

    SITES = 6  # of dropout: both attentions' weights, inside the network, the three sums

    def __init__(self, sizes: LayerSizes, relative: bool):
        super().__init__()
        self.rate = sizes.dropout
        self.attention = MultiHead(sizes.width, sizes.heads, sizes.dropout, relative)
        self.source_attention = MultiHead(sizes.width, sizes.heads, sizes.dropout)
        self.forwards = FeedForward(sizes)
        self.norm_attention, self.norm_source, self.norm_forward = (
            nn.LayerNorm(sizes.width) for _ in range(3)
        )

    def forward(
        self,
        x: Tensor,
        source: Remembered,
        source_mask: Tensor,
        mask: Tensor | None,
        keys: Keys,
        past: Past | None = None,
    ) -> Tensor:
        """New vectors (B, T, d).

        mask  (1, 1, T, T) of the places that a place sees; None where it sees all
        past  what is written before x, which joins it
        """
        first, there = 0, self.attention.remember(x)
        if past is not None:
            first, there = past.count, past(there)
        found = self.attention(x, there, mask, keys[0], first)
        x = self.norm_attention(x + self.drop(found, self.rate, keys[1]))
        found = self.source_attention(x, source, source_mask, keys[2])
        x = self.norm_source(x + self.drop(found, self.rate, keys[3]))
        return self.norm_forward(x + self.drop(self.forwards(x, keys[4]), self.rate, keys[5]))


class Stacked(Switched):
    """Embedded tokens and the layers above them.

    depth      how many layers are applied
    universal  whether they are all the same one
    """

    layer: type[EncoderLayer | DecoderLayer]

    def __init__(self, sizes: LayerSizes, depth: int, tokens: int, relative: bool, universal: bool):
        super().__init__()
        self.depth, self.relative = depth, relative
        self.embedding = nn.Embedding(tokens, sizes.width)
        count = 1 if universal else depth
        self.layers = nn.ModuleList(self.layer(sizes, relative) for _ in range(count))

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Draw as released: embeddings Kaiming normal if positions are added, else Xavier."""
        if name != "embedding.weight":
            return NotImplemented
        tokens, width = shape = self.embedding.weight.shape
        if self.relative:
            bound = math.sqrt(6 / (tokens + width))
            return random.uniform(-bound, bound, shape)
        return random.normal(0, math.sqrt(2 / width), shape)

    def embedded(self, tokens: Tensor, first: int = 0) -> Tensor:
        """Vectors (B, T, d) of tokens at the places from ``first`` on.

        Sinusoids are added unless positions are relative, divided by √d as the embeddings are.
        """
        x = self.embedding(tokens)
        if self.relative:
            return x
        places = torch.arange(first, first + tokens.shape[1], device=tokens.device)
        width = x.shape[2]
        return x + sinusoid(places, width).to(x.dtype) / math.sqrt(width)

    def applied(self, key: Tensor | None) -> Iterator[tuple[int, Keys]]:
        """The number of the layer that is applied next, and its keys of dropout."""
        sites = self.layer.SITES
        for i in range(self.depth):
            keys = [None if key is None else fork(key, i * sites + site) for site in range(sites)]
            yield i % len(self.layers), keys


class Encoder(Stacked):
    """Source tokens to one vector each."""

    layer = EncoderLayer

    def forward(self, tokens: Tensor, mask: Tensor, key: Tensor | None) -> Tensor:
        """Vectors (B, S, d) of tokens (B, S); mask (B, 1, 1, S), True where there is one."""
        x = self.embedded(tokens)
        for i, keys in self.applied(key):
            x = self.layers[i](x, mask, keys)
        return x


class Written(NamedTuple):
    """Everything that the next step of a decoder needs.

    source  keys and values of the source, one per layer
    mask    (B, 1, 1, S)
    pasts   what each application of a layer has seen
    """

    source: list[Remembered]
    mask: Tensor
    pasts: list[Past]


class Decoder(Stacked):
    """Target tokens, and the vectors of a source, to one vector per place."""

    layer = DecoderLayer

    def source(self, memory: Tensor) -> list[Remembered]:
        """Keys and values (B, h, S, e) of the source's vectors (B, S, d), one pair per layer."""
        return [layer.source_attention.remember(memory) for layer in self.layers]

    def forward(self, targets: Tensor, memory: Tensor, mask: Tensor, key: Tensor | None) -> Tensor:
        """Vectors (B, T, d) at the places of targets (B, T), each made of those before it."""
        written = torch.nn.functional.pad(targets[:, :-1], (1, 0), value=SOS)
        x, source = self.embedded(written), self.source(memory)
        places = torch.arange(x.shape[1], device=x.device)
        seen = (places <= places[:, None])[None, None]
        for i, keys in self.applied(key):
            x = self.layers[i](x, source[i], mask, seen, keys)
        return x

    def start(self, memory: Tensor, mask: Tensor, steps: int) -> Written:
        """The state before the first of ``steps`` tokens."""
        return Written(self.source(memory), mask, [Past(steps) for _ in range(self.depth)])

    def step(self, token: Tensor, state: Written) -> Tensor:
        """The vector (B, 1, d) after one more token (B,), which the state takes in."""
        x = self.embedded(token[:, None], first=state.pasts[0].count)
        for (i, keys), past in zip(self.applied(None), state.pasts, strict=True):
            x = self.layers[i](x, state.source[i], state.mask, None, keys, past)
        return x
