"""Attention by location: a Gaussian around a centre of focus that moves by steps.

Source: "Monotonic Location Attention for Length Generalization", Sections 4.3, 5.3 and 5.4, and
Appendix B.1 (location attention itself: Dubois et al., 2020).

Its many variants are made of five parts, and a :class:`Motion` says which: a reference position, a
number of steps from there, a clamp, the encodings it moves over, and whether attention by content
is mixed in. All are listed in relength.models.seq2seq.attentions.

| paper | here |
| --- | --- |
| s, norm(i) | ``memory.length``, ``memory.position`` |
| stepsize = 1 / max(1, s - 1) | ``memory.step`` |
| l_t = f_l(h_{t-1}) | ``self.hidden`` |
| f_σ, f_step, f_b, f_g | rows of ``self.heads``, one vector each, without bias |
| pa_{t-1} | ``past``, the state between tokens; 0 before the first |
| ref_t, steps_t | one of ``REFERENCES``, one of ``STEPS`` |
| μ_t, σ_t, λ'_t | ``centre``, ``width``, the returned weights |
| mix_t | ``self.mix`` |
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from relength.kernels.fused import Kernel
from relength.kernels.fused_attention import FocusKernel, MixKernel, SoftmaxKernel, focus
from relength.models.seq2seq.attention import Attention, ContentAttention, Memory, lay_out
from relength.models.seq2seq.attentions import Motion

LEAK = 0.01  # m of Eq. 8
TEMPERATURE = 20.0  # τ of Eq. 14
BETA = 5.0  # β of Eqs. 16 and 17; the released code also scales step activations with it
BEFORE = -1.0  # stands for the past position where there is none yet and it matters


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


class Reference(NamedTuple):
    """The position from which steps are counted.

    scalars: how many are read from l_t; compute: ref_t from pa_{t-1} and those; before: pa_0
    """

    scalars: int
    compute: Callable[..., Tensor]
    before: float = 0.0


def gated(past: Tensor, gate: Tensor, chosen: Tensor) -> Tensor:
    """ref_t = g_t·pa_{t-1} + b_t (Eq. 12)."""
    return torch.sigmoid(gate) * past + torch.sigmoid(chosen)


def chosen_once(past: Tensor, chosen: Tensor) -> Tensor:
    """ref_t = b_t for the first token and pa_{t-1} from then on (Appendix B.1)."""
    return torch.where(past == BEFORE, torch.sigmoid(chosen), past)


REFERENCES = {
    "gated": Reference(2, gated),
    "chosen once": Reference(1, chosen_once, BEFORE),
    "last": Reference(0, lambda past: past),  # ref_t = pa_{t-1}
}


def sigmoid_or_relu(r: Tensor, sharpness: float, g: Tensor, arm: str) -> Tensor:
    """Between one step and many, by a gate that belongs to the model.

    paper      g·σ(r) + (1 - g)·ReLU(r) (Eq. 19)
    released   g·ReLU(r) + (1 - g)·σ(5·r)
    """
    one, many = torch.sigmoid(sharpness * r), torch.relu(r)
    return g * one + (1 - g) * many if arm == "paper" else g * many + (1 - g) * one


STEPS: dict[str, Callable[..., Tensor]] = {
    "softstair": lambda r, *_: softstair(r),
    "sigmoid": lambda r, sharpness, *_: torch.sigmoid(sharpness * r),
    "relu": lambda r, *_: torch.relu(r),
    "sigmoid or relu": sigmoid_or_relu,
    "free": lambda r, *_: r,
}


class LocationAttention(Attention):
    """Gaussian weights around μ_t = ref_t + stepsize·steps_t (Eqs. 5-15), moved as ``motion`` says.

    paper      one step is σ(r), Eq. 6 clamps every centre, and content gets the share
               mix_t = σ(β·f_mix(h_{t-1})) of the weights (Eqs. 15, 16)
    released   one step is σ(5·r); centres are clamped only where the motion says so; *location*
               gets the share σ(f_mix(h_{t-1}))
    repaired   as released, for models in which released configurations switch content off, and
               with a gate_start at which MonoAttn's gate learns

    gate_start is the first value of p, for steps "sigmoid or relu". Released with p = 20, g = σ(p)
    is exactly 1 in float32 and its gradient exactly 0: the gate never learns, and steps are ReLU.
    """

    def __init__(
        self, hidden_size: int, motion: Motion, arm: str, min_sigma: float, gate_start: float
    ):
        super().__init__()
        self.motion, self.arm, self.min_sigma = motion, arm, min_sigma
        self.bidirectional = motion.bidirectional
        self.reference, self.steps = REFERENCES[motion.reference], STEPS[motion.steps]
        self.sharpness = 1.0 if arm == "paper" else BETA
        self.clamped = arm == "paper" or motion.clamped
        self.hidden = nn.Linear(hidden_size, hidden_size)  # f_l
        # f_σ, f_step, then what the reference asks for
        self.heads = nn.Linear(hidden_size, 2 + self.reference.scalars, bias=False)
        if motion.steps == "sigmoid or relu":
            self.gate = nn.Parameter(torch.tensor(gate_start))  # p
        if motion.mixed:
            self.content = ContentAttention(hidden_size)
            self.mix = nn.Linear(hidden_size, 1)  # f_mix

    def centre(self, heads: list[Tensor], past: Tensor, step: Tensor) -> Tensor:
        """Centre of focus μ_t (..., B), before the clamp, from a token's scalars (..., B)."""
        r, *others = heads
        g = torch.sigmoid(self.gate) if self.motion.steps == "sigmoid or relu" else None
        steps = self.steps(r, self.sharpness, g, self.arm)
        return self.reference.compute(past, *others) + step * steps

    def aim(self, memory: Memory, heads: list[Tensor], past: Tensor) -> tuple[Tensor, Tensor]:
        """Centre and width (..., B) of the focus."""
        spread, *moves = heads
        width = (torch.relu(spread) + self.min_sigma) / memory.length  # Eq. 10
        centre = self.centre(moves, past, memory.step)
        return clamp(centre) if self.clamped else centre, width

    def share(self, query: Tensor) -> Tensor:
        """The location part's share (B, 1) of mixed weights."""
        return torch.sigmoid(self.mix(query) * (-BETA if self.arm == "paper" else 1.0))

    def prepare(self, encodings: Tensor, lengths: Tensor, steps: int) -> Memory:
        # heads(f_l(h)) is one linear map of h: composed once per sequence, applied once per token.
        weight = (self.heads.weight @ self.hidden.weight).T  # (d, heads)
        bias = self.heads.weight @ self.hidden.bias  # (heads,)
        mixed = self.motion.mixed
        memory = (
            self.content.prepare(encodings, lengths, steps)
            if mixed
            else lay_out(encodings, lengths)
        )
        return memory._replace(readout=(weight, bias))

    def start(self, memory: Memory) -> Tensor:
        return torch.full_like(memory.step, self.reference.before)

    def forward(self, query, t, memory, state):
        weight, bias = memory.readout
        centre, width = self.aim(memory, (query @ weight + bias).unbind(1), state)
        located, _ = focus(memory.position, memory.mask, centre, width)
        weights = located
        if self.motion.mixed:
            share = self.share(query)
            by_content, _ = self.content(query, t, memory, state)
            weights = share * located + (1 - share) * by_content
        tracked = located if self.motion.own_past else weights
        return weights, (tracked * memory.position).sum(1)

    def kernel(self, memory: Memory) -> Kernel:
        aim = partial(self.aim, memory)
        gate = [self.gate] if self.motion.steps == "sigmoid or relu" else []
        located = FocusKernel(
            memory.position, memory.mask, memory.readout, aim, gate, self.reference.before
        )
        if not self.motion.mixed:
            return located
        scale = -BETA if self.arm == "paper" else 1.0
        mix = (self.mix.weight[0] * scale, self.mix.bias * scale)
        return MixKernel(
            located, SoftmaxKernel(memory.keys, memory.scores), mix, self.motion.own_past
        )
