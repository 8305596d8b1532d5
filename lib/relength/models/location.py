"""Attention by location: a Gaussian around a centre of focus that moves by steps.

Source: "Monotonic Location Attention for Length Generalization", Sections 4.3, 5.3 and 5.4
(location attention itself: Dubois et al., 2020).

| paper | here |
| --- | --- |
| s, norm(i) | ``memory.length``, ``memory.position`` |
| stepsize = 1 / max(1, s - 1) | ``memory.step`` |
| l_t = f_l(h_{t-1}) | ``self.hidden`` |
| f_σ, f_step, f_b, f_g | rows of ``self.heads``, one vector each, without bias |
| pa_{t-1} | ``past``, the state between tokens; 0 before the first |
| μ_t, σ_t, λ'_t | ``centre``, ``width``, the returned weights |
"""

from abc import abstractmethod
from functools import partial

import torch
from torch import Tensor, nn

from relength.models.attention import Attention, Memory, lay_out
from relength.models.fused import Kernel
from relength.models.fused_attention import FocusKernel, focus

LEAK = 0.01  # m of Eq. 8
TEMPERATURE = 20.0  # τ of Eq. 14
BETA = 5.0  # β of Eqs. 16 and 17; the released code also scales step activations with it


def clamp(centre: Tensor) -> Tensor:
    """Keep a centre of focus in [0, 1], with a leak outside (Eq. 8).

    >>> clamp(torch.tensor([-1.0, 0.5, 2.0]))
    tensor([-0.0100,  0.5000,  1.0200])
    """
    return torch.maximum(LEAK * centre, torch.minimum(1 + LEAK * centre, centre))


def softstair(x: Tensor) -> Tensor:
    """Push towards an integer: ⌊x⌋ + σ(τ·(x - ⌊x⌋ - 0.5)) (Eq. 14)."""
    floor = x.floor()
    return floor + torch.sigmoid(TEMPERATURE * (x - floor - 0.5))


class LocationAttention(Attention):
    """Gaussian weights around a centre that a subclass moves (Eqs. 5-11).

    heads: how many scalars per token are read from l_t; the first gives σ_t, the others go to
    :meth:`centre`. clamped: whether Eq. 6 clamps the centre.
    """

    def __init__(self, hidden_size: int, min_sigma: float, heads: int, clamped: bool):
        super().__init__()
        self.hidden = nn.Linear(hidden_size, hidden_size)  # f_l
        self.heads = nn.Linear(hidden_size, heads, bias=False)
        self.min_sigma, self.clamped = min_sigma, clamped

    @abstractmethod
    def centre(self, heads: list[Tensor], past: Tensor, step: Tensor) -> Tensor:
        """Centre of focus μ_t (..., B) from a token's scalars (..., B), elementwise (Eq. 11)."""

    def aim(self, memory: Memory, heads: list[Tensor], past: Tensor) -> tuple[Tensor, Tensor]:
        """Centre and width (..., B) of the focus."""
        spread, *moves = heads
        width = (torch.relu(spread) + self.min_sigma) / memory.length  # Eq. 10
        centre = self.centre(moves, past, memory.step)
        return clamp(centre) if self.clamped else centre, width

    def prepare(self, encodings: Tensor, lengths: Tensor, steps: int) -> Memory:
        # heads(f_l(h)) is one linear map of h: composed once per sequence, applied once per token.
        weight = (self.heads.weight @ self.hidden.weight).T  # (d, heads)
        bias = self.heads.weight @ self.hidden.bias  # (heads,)
        return lay_out(encodings, lengths)._replace(readout=(weight, bias))

    def forward(self, query, t, memory, state):
        weight, bias = memory.readout
        centre, width = self.aim(memory, (query @ weight + bias).unbind(1), state)
        weights, _ = focus(memory.position, memory.mask, centre, width)
        return weights, (weights * memory.position).sum(1)

    def kernel(self, memory: Memory) -> Kernel:
        shared = (self.hidden.weight, self.hidden.bias, self.heads.weight)
        own = [p for p in self.parameters() if all(p is not q for q in shared)]
        aim = partial(self.aim, memory)
        return FocusKernel(memory.position, memory.mask, memory.readout, aim, own)


class LocAttn(LocationAttention):
    """Location attention as refined in Section 4.3: gated past plus a freely chosen position.

    μ_t = g_t·pa_{t-1} + b_t + stepsize·softstair(f_step(l_t))   (Eqs. 11-13)
    """

    def __init__(self, hidden_size: int, min_sigma: float):
        super().__init__(hidden_size, min_sigma, heads=4, clamped=True)

    def centre(self, heads, past, step):
        r, gate, chosen = heads
        return softstair(r) * step + torch.sigmoid(gate) * past + torch.sigmoid(chosen)


class OneStepAttn(LocationAttention):
    """At most one step forward from where it looked last, over e^dir (Section 5.3).

    paper      μ_t = pa_{t-1} + stepsize·σ(f_step(l_t)), clamped
    released   σ(5·f_step(l_t)), not clamped
    """

    bidirectional = True

    def __init__(self, hidden_size: int, min_sigma: float, arm: str):
        super().__init__(hidden_size, min_sigma, heads=2, clamped=arm == "paper")
        self.sharpness = 1.0 if arm == "paper" else BETA

    def centre(self, heads, past, step):
        return past + step * torch.sigmoid(self.sharpness * heads[0])


class MonoAttn(LocationAttention):
    """Any number of steps forward, between a sigmoid and a ReLU, over e^dir (Section 5.4).

    paper      steps = g·σ(r) + (1 - g)·ReLU(r), g = σ(p), p learned from ``gate_start`` (Eq. 19),
               clamped
    released   steps = g·ReLU(r) + (1 - g)·σ(5·r) with p = 20: g is exactly 1 in float32 and its
               gradient exactly 0, so the gate never learns and the module is a ReLU; not clamped
    """

    bidirectional = True

    def __init__(self, hidden_size: int, min_sigma: float, arm: str, gate_start: float):
        super().__init__(hidden_size, min_sigma, heads=2, clamped=arm == "paper")
        self.gate = nn.Parameter(torch.tensor(gate_start))  # p
        self.arm = arm

    def centre(self, heads, past, step):
        (r,) = heads
        g = torch.sigmoid(self.gate)
        if self.arm == "paper":
            steps = g * torch.sigmoid(r) + (1 - g) * torch.relu(r)
        else:
            steps = g * torch.relu(r) + (1 - g) * torch.sigmoid(BETA * r)
        return past + step * steps
