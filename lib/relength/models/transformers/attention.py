"""Attention in several heads, with positions of distances where they are relative.

| source | here |
| --- | --- |
| Q, K, V; h heads of size e = d/h (Vaswani et al. 2017, Section 3.2.2) | ``query``, ``key_value`` |
| W^O | ``merged`` |
| R_{i-j}, W_{k,R} (Dai et al. 2019, Section 3.3) | ``sinusoid``, ``distance`` |
| u, v | ``content_bias``, ``distance_bias`` |

Without relative positions a score is q·k/√e. With them it is, for a query at place i and a key at
place j, ((q + u)·k + (q + v)·W_{k,R} R_{i-j})/√e. No map has a bias.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.kernels import fused as fast
from relength.kernels.hashing import dropout_mask
from relength.models.seq2seq.attention import sinusoid

SCORES = 2**26  # that are held at once when nothing is learned: a quarter of a GiB


class Remembered(NamedTuple):
    """Keys and values (B, h, S, e) of what may be attended to."""

    keys: Tensor
    values: Tensor


class Past:
    """Keys and values of the places that are written already, for ``steps`` places at most."""

    def __init__(self, steps: int):
        self.steps, self.count = steps, 0
        self.all: Remembered | None = None

    def __call__(self, new: Remembered) -> Remembered:
        """Everything up to now, ``new`` included."""
        if self.all is None:
            shape = (*new.keys.shape[:2], self.steps, new.keys.shape[3])
            self.all = Remembered(*(part.new_zeros(shape) for part in new))
        first, self.count = self.count, self.count + new.keys.shape[2]
        for whole, part in zip(self.all, new, strict=True):
            whole[:, :, first : self.count] = part
        return Remembered(*(whole[:, :, : self.count] for whole in self.all))


class Switched(nn.Module):
    """A part of a model with a faster way to the same numbers that vmap cannot batch."""

    fused = True

    def linear(self, x: Tensor, layer: nn.Linear) -> Tensor:
        function = fast.linear if self.quick(x) else F.linear
        return function(x, layer.weight, layer.bias)

    def drop(self, x: Tensor, rate: float, key: Tensor | None) -> Tensor:
        """Dropout of elements (B, S, C), the kept ones scaled up; nothing without a key."""
        return x if key is None or rate == 0 else x * self.kept(x, x.shape, rate, key)

    def kept(self, like: Tensor, shape: tuple[int, ...], rate: float, key: Tensor) -> Tensor:
        """Factors (B, S, C) of dropout: 0, or what makes up for the zeros."""
        mask = fast.dropout_mask if self.quick(like) else dropout_mask
        return mask(shape, rate, key).to(like.dtype) / (1 - rate)

    def quick(self, x: Tensor) -> bool:
        return self.fused and x.device.type == "cpu"


class MultiHead(Switched):
    """Attention of vectors (B, T, d) to others (B, S, d), or to themselves."""

    def __init__(self, width: int, heads: int, rate: float, relative: bool = False):
        super().__init__()
        self.heads, self.rate, self.relative = heads, rate, relative
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.merged = nn.Linear(width, width, bias=False)
        if relative:
            self.distance = nn.Linear(width, width, bias=False)
            self.content_bias = nn.Parameter(torch.zeros(heads, 1, width // heads))
            self.distance_bias = nn.Parameter(torch.zeros(heads, 1, width // heads))

    def initial(self, name: str, random: np.random.Generator) -> None:
        """u and v start at zero."""

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Xavier uniform, as released; keys and values are two maps."""
        if not name.endswith("weight"):
            return NotImplemented
        shape = self.get_parameter(name).shape
        bound = math.sqrt(6 / (2 * shape[1]))
        return random.uniform(-bound, bound, shape)

    def remember(self, x: Tensor) -> Remembered:
        """Map vectors (B, S, d) to their keys and values."""
        both = self.linear(x, self.key_value).unflatten(2, (2, self.heads, -1))
        return Remembered(*both.permute(2, 0, 3, 1, 4).unbind(0))

    def forward(
        self, x: Tensor, there: Remembered, mask: Tensor | None, key: Tensor | None, first: int = 0
    ) -> Tensor:
        """Return what (B, T, d) the vectors x find among ``there``.

        mask   True where attention may go, broadcastable with (B, h, T, S)
        key    of the dropout of weights, None for none
        first  place of x's first vector, where those of ``there`` are counted from 0
        """
        q = self.linear(x, self.query).unflatten(2, (self.heads, -1)).transpose(1, 2)
        dropped = key is not None and self.rate > 0
        # The library's attention has no place for distances, and would draw dropout from a stream
        # that no run owns. Nothing is lost by that: on one core, forward and backward, it takes
        # 1.4 (11 places), 1.2 (33), 1.0 (90) and 1.0 (160) times as long with a dropout of its own
        # as the lines below with ours. Without dropout it takes 0.4 to 1.0 times as long.
        if self.quick(x) and not self.relative and not dropped:
            found = F.scaled_dot_product_attention(q, *there, attn_mask=mask)
        else:
            # What learns keeps the scores of all samples anyway, and dropout counts samples.
            parts = _parts(q, there, mask, whole=torch.is_grad_enabled() or dropped)
            found = [self._found(*part, first, key if dropped else None) for part in parts]
            found = torch.cat(found) if len(found) > 1 else found[0]
        return self.linear(found.transpose(1, 2).flatten(2), self.merged)

    def _found(
        self, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, first: int,
        key: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """Means (B, h, T, e) of values (B, h, S, e), weighted for each query."""
        weights = self.weights(q, keys, mask, first)
        return (weights if key is None else self._dropped(weights, key)) @ values

    def weights(self, q: Tensor, keys: Tensor, mask: Tensor | None, first: int) -> Tensor:
        """Softmax of scores (B, h, T, S) of queries (B, h, T, e) and keys (B, h, S, e)."""
        shrink = 1 / math.sqrt(q.shape[3])  # of the queries, which are smaller than the scores
        if self.relative:
            far = self.distances(q.shape[2], keys.shape[2], first)
            near = skewed((q + self.distance_bias) * shrink @ far, keys.shape[2])
            scores = (q + self.content_bias) * shrink @ keys.mT + near
        else:
            scores = q * shrink @ keys.mT
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return torch.softmax(scores, dim=3)

    def distances(self, steps: int, size: int, first: int) -> Tensor:
        """W_{k,R} R of all distances there are (h, e, T + S - 1), the largest one first."""
        weight = self.distance.weight
        far = torch.arange(first + steps - 1, first - size, -1, device=weight.device)
        vectors = sinusoid(far, weight.shape[1]).to(weight.dtype)  # (T + S - 1, d)
        return self.linear(vectors, self.distance).unflatten(1, (self.heads, -1)).permute(1, 2, 0)

    def _dropped(self, weights: Tensor, key: Tensor) -> Tensor:
        # One channel per key and head, so that an element's fate does not depend on S.
        batch, heads, steps, size = weights.shape
        kept = self.kept(weights, (batch, steps, size * heads), self.rate, key)
        return weights * kept.view(batch, steps, size, heads).permute(0, 3, 1, 2)


def _parts(
    q: Tensor, there: Remembered, mask: Tensor | None, whole: bool
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor | None]]:
    """Queries, keys, values and masks, of all samples at once or of as many as memory holds."""
    samples, heads, steps = q.shape[:3]
    most = max(SCORES // (heads * steps * there.keys.shape[2]), 1)
    if whole or samples <= most:
        yield q, *there, mask
        return
    for start in range(0, samples, most):
        some = slice(start, start + most)
        # A mask that is the same for all samples has no sample of its own.
        own = mask is not None and mask.dim() == q.dim() and len(mask) == samples
        yield q[some], there.keys[some], there.values[some], mask[some] if own else mask


def skewed(scores: Tensor, size: int) -> Tensor:
    """Scores by place (…, T, S) of those by distance (…, T, T + S - 1), the largest one first.

    At step t the distance to place j is column T - 1 - t + j: each row begins a column earlier.
    """
    steps, columns = scores.shape[-2:]
    if steps == 1:
        return scores
    rows = scores.flatten(-2)[..., steps - 1 : steps - 1 + steps * (columns - 1)]
    return rows.unflatten(-1, (steps, columns - 1))[..., :size]
