"""Transformer layers, small enough to read: shared by encoders, decoders and a plain GPT.

Source: Vaswani et al. (2017), with the norms before the parts (Radford et al., 2019) and, where
asked for, positions by rotation (Su et al., 2021).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.models.recurrence import GRU
from relength.streams import stream
from relength.tasks.batch import Answered, FactsToAnswer

PRETRAINED = ("reader.", "writer.network.", "writer.scoring.")  # see networks.py
SMALL = 0.02  # sd of the first values of BERT and GPT-2


class Layer(nn.Module):
    """Self-attention and a feed-forward part, each added to what it reads."""

    def __init__(self, width: int, heads: int, inner_size: int):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_inner = nn.LayerNorm(width), nn.LayerNorm(width)
        self.to_heads = nn.Linear(width, 3 * width)
        self.from_heads = nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, inner_size), nn.Linear(inner_size, width)

    def forward(
        self,
        x: Tensor,
        seen: Tensor | None = None,
        causal: bool = False,
        past: Tensor | None = None,
        rotation: tuple[Tensor, Tensor] | None = None,
        only: Tensor | None = None,
    ) -> Tensor:
        """Outputs (B, S, d) for inputs (B, S, d), or (B, T, d) of some positions.

        seen      (B, 1, S, S') True where a query sees a key
        causal    each position sees itself and those before it; not beside ``seen`` or ``only``
        past      (B, d) one more position, key and value at once, before all others
        rotation  cosines and sines (S, d/heads) of each position
        only      (B, T) or (T,) positions that have outputs, if not all; ``seen`` has rows for
                  these alone. Of the others keys and values are computed
        """
        split = (len(x), -1, self.heads, x.shape[-1] // self.heads)
        normed = self.before_attention(x)
        if only is None:
            projected, query_turns = self.to_heads(normed).chunk(3, dim=-1), rotation
        else:
            assert not causal, "which keys the positions see is for `seen` to say"
            d, weight, bias = x.shape[-1], self.to_heads.weight, self.to_heads.bias
            queries = F.linear(at(normed, only), weight[:d], bias[:d])
            projected = (queries, *F.linear(normed, weight[d:], bias[d:]).chunk(2, dim=-1))
            x = at(x, only)
            query_turns = rotation and tuple(turn[only] for turn in rotation)
        q, k, v = (part.view(split) for part in projected)  # (B, S, h, d/h)
        if rotation is not None:
            q, k = _rotated(q, *query_turns), _rotated(k, *rotation)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))  # (B, h, S, d/h)
        if past is not None:
            first = past.view(split).transpose(1, 2)  # (B, h, 1, d/h)
            k, v = torch.cat([first, k], dim=2), torch.cat([first, v], dim=2)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, is_causal=causal)
        x = x + self.from_heads(attended.transpose(1, 2).flatten(2))
        return x + self.outer(F.gelu(self.inner(self.before_inner(x))))


def at(vectors: Tensor, places: Tensor) -> Tensor:
    """Vectors (B, T, d) at places (B, T) or (T,) of vectors (B, S, d)."""
    if places.ndim == 1:
        return vectors.index_select(1, places)
    return vectors.gather(1, places[:, :, None].expand(-1, -1, vectors.shape[2]))


def rotations(positions: int, size: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines (positions, size) by which keys and queries are turned."""
    rates = 10_000.0 ** (-torch.arange(0, size, 2) / size)
    angles = torch.outer(torch.arange(positions), rates).repeat(1, 2)
    return angles.cos(), angles.sin()


def _rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Vectors (B, S, h, d) turned in pairs: of element i and the one half a vector further.

    cosine, sine  (S, d) or (B, S, d)
    """
    half = x.shape[-1] // 2
    left, right = sine.chunk(2, dim=-1)
    crossed = torch.cat([-left, right], dim=-1).unsqueeze(-2)
    return torch.addcmul(x * cosine.unsqueeze(-2), x.roll(half, -1), crossed)


def alike(lengths: Tensor) -> tuple[Tensor, ...]:
    """Split samples by length: in a group the longest is less than twice as long as the shortest.

    To compute padding takes as long as to compute words.

    Returns the indices of each group; every sample, given its length (B,), is in one.
    """
    lengths = lengths.clamp(min=1)
    # How often the longest of all can be halved and is still as long.
    halved = (lengths.max() / lengths).log2().floor()
    return tuple((halved == times).nonzero()[:, 0] for times in halved.unique())


def in_batch_order(parts: list[Tensor], groups: tuple[Tensor, ...]) -> Tensor:
    """The rows that were computed for groups of samples, in the order of the samples."""
    if len(groups) == 1:
        return parts[0]
    return torch.cat(parts).index_select(0, torch.cat(groups).argsort())


class LanguageModel(nn.Module, ABC):
    """A model of episodes: scores (B, T, words) of the words of an answer.

    supervised  whether it has loss terms beside the answer's, see :meth:`with_terms`
    fused       whether a faster way to the same numbers may be taken, one that vmap cannot batch
    small       the vectors that start small
    """

    supervised = False
    fused = True
    small: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def forward(self, batch: FactsToAnswer, key: Tensor | None = None) -> Tensor:
        """Scores (B, T, words) of every word of the targets, given those before it.

        key: of what is drawn inside this optimiser step, None when evaluating
        """

    @abstractmethod
    def generate(
        self, batch: FactsToAnswer, steps: int, keep_weights: bool = False
    ) -> tuple[Answered, None]:
        """The likeliest words (B, steps), each chosen after those before it."""

    def by_length(self, batch: FactsToAnswer, scores: Callable[[FactsToAnswer], Tensor]) -> Tensor:
        """Scores (B, T, words) of a batch, computed for like numbers of lines at a time.

        A GPU computes all at once: many small products take it longer than padding does.
        """
        groups = alike(batch.input_lengths) if self.fused else ()
        if len(groups) < 2:
            return scores(batch)
        parts = []
        for some in groups:
            # All have the longest target's width, so that their scores have it, too.
            answers = {"targets": batch.targets[some], "mask": batch.mask[some]}
            parts.append(scores(replace(batch.select(some), **answers)))
        return in_batch_order(parts, groups)

    def initialise(self, seed: int) -> "LanguageModel":
        """Draw all weights from the run's own streams, one per parameter.

        Vectors of words and positions from N(0, 1/d), those in ``small`` from N(0, 0.02²), as BERT
        and GPT-2 start; linear maps and recurrent units as PyTorch draws them; all else stays as it
        is constructed, and pretrained networks as they are.
        """
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.startswith(PRETRAINED):
                    continue
                numbers = self._initial(name, stream(seed, "initialisation", name))
                if numbers is not None:
                    parameter.copy_(torch.from_numpy(np.asarray(numbers)))
        return self

    def _initial(self, name: str, random: np.random.Generator) -> np.ndarray | None:
        path, _, _ = name.rpartition(".")
        owner, parameter = self.get_submodule(path), self.get_parameter(name)
        match owner:
            case nn.LayerNorm():
                return None
            case nn.Linear():
                bound = 1 / math.sqrt(owner.in_features)
            case GRU():
                bound = owner.bound
            case nn.Embedding():
                sd = SMALL if name in self.small else 1 / math.sqrt(parameter.shape[1])
                return random.normal(0, sd, parameter.shape)
            case _:
                return None
        return random.uniform(-bound, bound, parameter.shape)
