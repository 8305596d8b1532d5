"""Differentiable Neural Computer: a controller around the memory of
relength.models.memory.dnc_memory.

Source: Graves et al., "Hybrid computing using a neural network with dynamic external memory",
Nature 538 (2016), Methods.

| paper | here |
| --- | --- |
| [x_t; r^1_{t-1}; …; r^R_{t-1}] -> h_t | ``controller`` |
| ξ_t = W_ξ·h_t | ``to_interface`` |
| y_t = W_y·h_t + W_r·[r^1_t; …; r^R_t] | ``output``, both matrices side by side |
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.kernels import fused as fast
from relength.models.memory import dnc_memory
from relength.models.memory.configs import DNCConfig
from relength.models.memory.dnc_memory import EQUATIONS, Interface, MemoryState, Rules
from relength.models.memory.machine import LSTMController, Machine
from relength.models.recurrence import Linear


class Controller(Protocol):
    """Any network, recurrent or not, that a DNC can be built around."""

    def start(self, batch: int) -> Any:
        """State before the first step."""

    def step(self, x: Tensor, state: Any, linear: Linear) -> tuple[Tensor, Any]:
        """Output h_t (B, d) and next state from an input (B, X + R·W).

        linear: torch.nn.functional.linear or an equal of it
        """


class DNCState(NamedTuple):
    """The state that a DNC carries from step to step.

    controller  the controller's own state
    fed         (B, R·W) the read vectors that the controller gets next
    reads       (B, R·W) the last read vectors
    memory      see relength.models.memory.dnc_memory
    """

    controller: Any
    fed: Tensor
    reads: Tensor
    memory: MemoryState


class DNCCore(nn.Module):
    """One step of a DNC, around any controller whose output has hidden_size numbers."""

    def __init__(
        self,
        controller: nn.Module,
        hidden_size: int,
        width: int,
        read_heads: int,
        rules: Rules = EQUATIONS,
    ):
        super().__init__()
        self.controller: Controller = controller
        self.width, self.read_heads, self.rules = width, read_heads, rules
        size = dnc_memory.interface_size(width, read_heads)
        self.to_interface = nn.Linear(hidden_size, size)

    def start(self, batch: int, slots: int) -> DNCState:
        """Empty memory of N = ``slots`` rows, which training and test may choose differently."""
        weight = self.to_interface.weight
        nothing = weight.new_zeros(batch, self.read_heads * self.width)
        memory = dnc_memory.empty(weight, batch, slots, self.width, self.read_heads)
        return DNCState(self.controller.start(batch), nothing, nothing, memory)

    def interface(self, h: Tensor) -> Interface:
        """ξ_t in parts, from the controller's output (B, d)."""
        vector = self.to_interface(h)
        return dnc_memory.orders_of(vector, self.width, self.read_heads, self.rules)

    def step(self, x: Tensor, state: DNCState, fused: bool) -> tuple[Tensor, DNCState]:
        """[h_t; r_t] (B, d + R·W), which the output is linear in, and the next state.

        fused: take faster ways to the same numbers, which vmap cannot batch
        """
        linear, seen = fast.linear if fused else F.linear, torch.cat([x, state.fed], dim=1)
        h, controller = self.controller.step(seen, state.controller, linear)
        reads, memory = dnc_memory.access(self.interface(h), state.memory, fused, self.rules)
        reads = reads.flatten(1)
        return torch.cat([h, reads], dim=1), DNCState(controller, reads, reads, memory)


class ReleasedCore(DNCCore):
    """A DNC's step as the released PANM baseline computes it; DNCConfig has the differences."""

    def interface(self, h: Tensor) -> Interface:
        raw = dnc_memory.split(self.to_interface(h), self.width, self.read_heads)
        return dnc_memory.interface(raw)._replace(
            read_keys=torch.tanh(raw.read_keys),
            read_strengths=F.softplus(raw.read_strengths) / self.width,
            write_key=torch.tanh(raw.write_key),
            write_strength=F.softplus(raw.write_strength) / self.width,
            write_vector=torch.tanh(raw.write_vector),
            read_modes=torch.softmax(raw.read_modes, dim=1),
        )

    def step(self, x: Tensor, state: DNCState, fused: bool) -> tuple[Tensor, DNCState]:
        features, following = super().step(x, state, fused)
        return features, following._replace(fed=state.fed)


class DNC(Machine):
    """The DNC as a baseline of PANM.

    Its controller starts from zeros; the released one from numbers in ±√(6 / (d·(B + 1))), about
    0.01, that are drawn anew for every batch.
    """

    def __init__(self, config: DNCConfig, input_size: int, classes: int):
        super().__init__()
        self.config = config
        d, reads = config.hidden_size, config.read_heads * config.width
        core = ReleasedCore if config.arm == "released" else DNCCore
        controller = LSTMController(input_size + reads, d)
        self.core = core(controller, d, config.width, config.read_heads)
        self.output = nn.Linear(d + reads, classes)

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Draw as released: a random orthogonal output matrix, the rest as PyTorch does."""
        if name != "output.weight":
            return NotImplemented
        rows, columns = self.output.weight.shape
        q, r = np.linalg.qr(random.normal(size=(max(rows, columns), min(rows, columns))))
        q *= np.sign(np.diag(r))  # all orthogonal matrices are equally likely
        return q if rows >= columns else q.T

    def start(self, batch: int) -> DNCState:
        return self.core.start(batch, self.config.slots)

    def step(self, x: Tensor, state: DNCState) -> tuple[Tensor, DNCState]:
        return self.core.step(x, state, self.fused)

    def turn(self, state: DNCState) -> DNCState:
        return state._replace(fed=state.reads)
