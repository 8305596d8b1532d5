"""The interface of attention modules to the decoder; attention by content and by relative distance.

Source: "Monotonic Location Attention for Length Generalization", Sections 4.1, 4.2 and 5.2, and
Appendix B.1.

An attention module works in two parts: ``prepare`` runs once per sequence and does everything that
does not depend on the decoder, ``forward`` runs once per token. ``kernel`` is the same for the
fused loop.
"""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from relength.kernels.fused import Kernel
from relength.kernels.fused_attention import RotaryKernel, SoftmaxKernel


class Memory(NamedTuple):
    """One encoded batch, seen through an attention module.

    mask      (B, S) bool, True at valid positions
    position  (B, S) norm(i) of Eq. 7: 0 at the first position, 1 at the last valid one
    step      (B,) the distance between neighbours, 1 / max(1, s - 1)
    length    (B,) s as floating point
    keys      (B, d, S), multiplied with the decoder state at every step, or None
    scores    (B, S) the part of the score that the state does not enter, -inf where masked, or None
    distance_keys, distance_scores   (S + T, d), (S + T,), row j for the distance j - T, or None
    turned    (T, d, d) the map from the decoder state of step t to its query, or None
    readout   weight (d, k) and bias (k,) of the map from the state to the scalars that move a
              focus, or None
    """

    mask: Tensor
    position: Tensor
    step: Tensor
    length: Tensor
    keys: Tensor | None = None
    scores: Tensor | None = None
    distance_keys: Tensor | None = None
    distance_scores: Tensor | None = None
    turned: Tensor | None = None
    readout: tuple[Tensor, Tensor] | None = None


def lay_out(encodings: Tensor, lengths: Tensor) -> Memory:
    """Positions and masks of a batch of encodings (B, S, d) with valid lengths (B,)."""
    i = torch.arange(encodings.shape[1], device=encodings.device)
    # Encodings made by products in bfloat16 have that type: too coarse to tell places apart.
    length = lengths.to(torch.promote_types(encodings.dtype, torch.float32))
    step = 1 / (length - 1).clamp(min=1)
    return Memory(i < lengths[:, None], i * step[:, None], step, length)


class Attention(nn.Module, ABC):
    """Base of all attention modules.

    bidirectional: whether the module attends to e^dir (Eq. 18) instead of e.
    """

    bidirectional = False

    @abstractmethod
    def prepare(self, encodings: Tensor, lengths: Tensor, steps: int) -> Memory:
        """Memory for at most ``steps`` decoding steps over encodings (B, S, d)."""

    def start(self, memory: Memory) -> Tensor:
        """State before the first token: the previously attended position pa_0 = 0, shape (B,)."""
        return torch.zeros_like(memory.step)

    @abstractmethod
    def forward(
        self, query: Tensor, t: int, memory: Memory, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Weights (B, S) of decoding step ``t`` (from 0) and the next state (B,).

        query  (B, d) decoder state h_{t-1}
        """

    @abstractmethod
    def kernel(self, memory: Memory) -> Kernel:
        """Make the form of this attention that the fused decoding loop takes."""


class ContentAttention(Attention):
    """Scaled dot product of query and keys, Eqs. 1 and 2.

    q = W_q h, k_i = W_k e_i, c_ti = <q, k_i> / √d. The query projection is moved to the keys,
    once per sequence: <W_q h, k_i> = <h, W_qᵀ k_i>.
    """

    def __init__(self, hidden_size: int, bidirectional: bool = False):
        super().__init__()
        self.bidirectional = bidirectional
        self.query = nn.Linear(hidden_size, hidden_size, bias=False)
        self.key = nn.Linear(hidden_size, hidden_size, bias=False)
        self.scale = 1 / math.sqrt(hidden_size)

    def prepare(self, encodings: Tensor, lengths: Tensor, steps: int) -> Memory:
        memory = lay_out(encodings, lengths)
        keys = self.key(encodings) @ (self.query.weight * self.scale)  # (B, S, d)
        scores = torch.zeros_like(memory.position).masked_fill(~memory.mask, -torch.inf)
        return memory._replace(keys=keys.mT, scores=scores)

    def forward(self, query, t, memory, state):
        scores = memory.scores + torch.bmm(query[:, None], memory.keys).squeeze(1)  # (B, S)
        return torch.softmax(scores, dim=1), state

    def kernel(self, memory: Memory) -> Kernel:
        return SoftmaxKernel(memory.keys, memory.scores)


class RelativeAttention(Attention):
    """Content plus relative distance, Eqs. 3 and 4 (after Dai et al., 2019).

    c_ti = (<q + b_1, k_i> + <q + b_2, W_r pe_{i-t}>) / √d, with i from 0 at the start vector and
    t from 0. The linear map W_r of the frozen sinusoid is in the released code, not in the paper.
    """

    def __init__(self, hidden_size: int, bidirectional: bool = False):
        super().__init__()
        self.bidirectional = bidirectional
        self.query = nn.Linear(hidden_size, hidden_size, bias=False)
        self.key = nn.Linear(hidden_size, hidden_size, bias=False)
        self.distance = nn.Linear(hidden_size, hidden_size, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(hidden_size))  # b_1
        self.position_bias = nn.Parameter(torch.zeros(hidden_size))  # b_2
        self.scale = 1 / math.sqrt(hidden_size)

    def prepare(self, encodings: Tensor, lengths: Tensor, steps: int) -> Memory:
        memory = lay_out(encodings, lengths)
        keys = self.key(encodings)  # (B, S, d)
        distances = torch.arange(-steps, encodings.shape[1], device=encodings.device)
        embedded = sinusoid(distances, encodings.shape[2]).to(encodings.dtype)
        far = self.distance(embedded)  # (T + S, d)
        query = self.query.weight * self.scale
        scores = (keys @ self.content_bias * self.scale).masked_fill(~memory.mask, -torch.inf)
        return memory._replace(
            keys=(keys @ query).mT,
            scores=scores,
            distance_keys=far @ query,
            distance_scores=far @ self.position_bias * self.scale,
        )

    def forward(self, query, t, memory, state):
        width = memory.mask.shape[1]
        first = len(memory.distance_keys) - width - t  # row of the distance 0 - t
        window = slice(first, first + width)
        content = torch.bmm(query[:, None], memory.keys).squeeze(1)
        distance = query @ memory.distance_keys[window].T + memory.distance_scores[window]
        return torch.softmax(memory.scores + content + distance, dim=1), state

    def kernel(self, memory: Memory) -> Kernel:
        return SoftmaxKernel(
            memory.keys, memory.scores, memory.distance_keys, memory.distance_scores
        )


class RotaryAttention(ContentAttention):
    """Content whose query and keys are turned by their positions (Su et al., 2021).

    c_ti = <R_t q, R_i k_i> / √d, over e^dir; i from 0 at the start vector, t from 0. R_p turns the
    plane of the coordinates (j, j + d/2) by p·10000^(-2j/d), so c_ti depends on i - t.
    """

    def prepare(self, encodings: Tensor, lengths: Tensor, steps: int) -> Memory:
        memory = lay_out(encodings, lengths)
        i = torch.arange(encodings.shape[1], device=encodings.device)
        t = torch.arange(steps, device=encodings.device)
        query = (self.query.weight * self.scale).T.expand(steps, -1, -1)  # (T, d, d), from states
        scores = torch.zeros_like(memory.position).masked_fill(~memory.mask, -torch.inf)
        return memory._replace(
            keys=rotate(self.key(encodings), i).mT,
            scores=scores,
            turned=rotate(query, t[:, None]),
        )

    def forward(self, query, t, memory, state):
        asked = query @ memory.turned[t]
        scores = memory.scores + torch.bmm(asked[:, None], memory.keys).squeeze(1)  # (B, S)
        return torch.softmax(scores, dim=1), state

    def kernel(self, memory: Memory) -> Kernel:
        return RotaryKernel(memory.keys, memory.scores, memory.turned)


def rotate(x: Tensor, positions: Tensor) -> Tensor:
    """R_p x for vectors (..., d) and integer positions that broadcast with (...)."""
    first, second = x.chunk(2, dim=-1)
    angles = positions[..., None] * frequencies(x)
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)


def sinusoid(positions: Tensor, size: int) -> Tensor:
    """Sinusoidal embedding (N, size) of integers, sines then cosines (Dai et al., 2019)."""
    angles = positions[:, None] * frequencies(positions.new_empty(size))
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def frequencies(x: Tensor) -> Tensor:
    """10000^(-2j/d) for j < d/2, where d is the last size of x."""
    size = x.shape[-1]
    return 10000 ** (-torch.arange(0, size, 2, device=x.device) / size)
