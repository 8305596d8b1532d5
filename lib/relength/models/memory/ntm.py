"""Neural Turing Machine.

Source: Graves, Wayne and Danihelka, "Neural Turing Machines" (2014).

| paper | here | shape |
| --- | --- | --- |
| M_t, r_t | ``memory``, ``read`` | (B, N, W), (B, W) |
| w_t of the read head, of the write head | ``weightings`` | (B, 2, N) |
| k_t, β_t, g_t, s_t, γ_t | ``key``, ``strength``, ``gate``, ``shift``, ``sharpness`` | (B, 2, ·) |
| e_t, a_t | ``erase``, ``add`` | (B, W) |

What the paper leaves open is the released code's: an LSTM controller with learned first states,
one read head and one write head, shifts by -1, 0 and 1, weightings that start at zero, and a memory
that starts from small random numbers which are never trained. Both heads look at the memory before
it is written. In the released code these numbers are the run's own; here all runs share one draw.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.models.addressing import content_weighting
from relength.models.memory.configs import NTMConfig
from relength.models.memory.machine import LearnedLSTMController, Machine
from relength.models.recurrence import LSTMState
from relength.streams import stream

SHIFTS = (-1, 0, 1)


class NTMState(NamedTuple):
    """The state that an NTM carries from step to step; symbols and shapes in the table above."""

    controller: LSTMState
    memory: Tensor
    read: Tensor
    weightings: Tensor


def interpolate(content: Tensor, previous: Tensor, gate: Tensor) -> Tensor:
    """w^g = g·w^c + (1 - g)·w_{t-1} (Eq. 7)."""
    return gate * content + (1 - gate) * previous


def rotate(weighting: Tensor, shift: Tensor) -> Tensor:
    """w̃(i) = Σ_j w(i - j)·s(j), indices modulo N (Eq. 8).

    shift (..., 3): the shares of moving by -1, 0 and 1.

    >>> rotate(torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0.1, 0.2, 0.7]))
    tensor([0.7000, 0.1000, 0.2000])
    """
    moved = [torch.roll(weighting, by, dims=-1) for by in SHIFTS]
    return sum(shift[..., j, None] * w for j, w in enumerate(moved))


def sharpen(weighting: Tensor, sharpness: Tensor) -> Tensor:
    """w(i) = w̃(i)^γ / Σ_j w̃(j)^γ (Eq. 9); 1e-16 below the line as released."""
    powers = weighting**sharpness
    return powers / (powers.sum(-1, keepdim=True) + 1e-16)


def write(memory: Tensor, weighting: Tensor, erase: Tensor, add: Tensor) -> Tensor:
    """M_t(i) = M_{t-1}(i)·(1 - w(i)·e) + w(i)·a (Eqs. 3 and 4)."""
    w = weighting[:, :, None]
    return memory * (1 - w * erase[:, None]) + w * add[:, None]


class NTM(Machine):
    """Controller, two heads, memory."""

    def __init__(self, config: NTMConfig, input_size: int, classes: int):
        super().__init__()
        self.config = config
        d, width = config.hidden_size, config.width
        self.addressing = [width, 1, 1, len(SHIFTS), 1]  # k, β, g, s, γ
        self.controller = LearnedLSTMController(input_size + width, d)
        self.read_head = nn.Linear(d, sum(self.addressing))
        self.write_head = nn.Linear(d, sum(self.addressing) + 2 * width)
        self.output = nn.Linear(d + width, classes)
        random = stream(0, "initialisation", "memory of the NTM")
        bound = 1 / np.sqrt(config.slots + width)
        first = torch.from_numpy(random.uniform(-bound, bound, (config.slots, width)))
        self.register_buffer("first_memory", first.float(), persistent=False)
        read = torch.from_numpy(random.normal(0, 0.01, width))
        self.register_buffer("first_read", read.float(), persistent=False)

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Draw as released: Xavier uniform (gain 1.4 in the heads), biases normal with 0.01."""
        if name.startswith("controller"):
            return NotImplemented
        shape = self.get_parameter(name).shape
        if name.endswith("bias"):
            return random.normal(0, 0.01, shape)
        bound = (1 if name == "output.weight" else 1.4) * np.sqrt(6 / sum(shape))
        return random.uniform(-bound, bound, shape)

    def start(self, batch: int) -> NTMState:
        return NTMState(
            self.controller.start(batch),
            self.first_memory.expand(batch, -1, -1),
            self.first_read.expand(batch, -1),
            self.first_memory.new_zeros(batch, 2, self.config.slots),
        )

    def step(self, x: Tensor, state: NTMState) -> tuple[Tensor, NTMState]:
        seen = torch.cat([x, state.read], dim=1)
        h, controller = self.controller.step(seen, state.controller, self.linear)
        writing, erase, add = self.write_head(h).split(
            [sum(self.addressing), self.config.width, self.config.width], dim=1
        )
        heads = torch.stack([self.read_head(h), writing], dim=1)  # (B, 2, W + 6)
        weightings = self.address(heads, state)
        read = (weightings[:, :1] @ state.memory).squeeze(1)  # r_t = Σ_i w(i)·M(i) (Eq. 2)
        memory = write(state.memory, weightings[:, 1], torch.sigmoid(erase), add)
        return torch.cat([h, read], dim=1), NTMState(controller, memory, read, weightings)

    def address(self, heads: Tensor, state: NTMState) -> Tensor:
        """Weightings (B, 2, N) of both heads from what the controller emits for them."""
        key, strength, gate, shift, sharpness = heads.split(self.addressing, dim=2)
        content = content_weighting(state.memory, key, F.softplus(strength).squeeze(2))
        mixed = interpolate(content, state.weightings, torch.sigmoid(gate))
        moved = rotate(mixed, torch.softmax(shift, dim=2))
        return sharpen(moved, 1 + F.softplus(sharpness))
