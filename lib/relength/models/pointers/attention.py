"""Physical addresses and the units that point to them (PANM, Sections 2.2 and 2.3.1).

| paper | here |
| --- | --- |
| b, 2^b | ``AddressBank.bits``, ``AddressBank.size`` |
| a_B, A | ``base`` (B,), ``bank`` (B, L, b) |
| PU_h, H^a | :class:`PointerUnit` holds all of them, along a leading axis (H, …) |
| h^a_t, p^a_t, w^a_t | ``h`` (H, B, d), ``p`` (H, B, b), ``weights`` (H, B, T, L) |
| g^a | ``PointerUnit.key`` |

Nothing here sees the input, only its length: that is the paper's second principle, and it lets all
pointers of a sequence be computed before the first token is written.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.kernels import fused as fast
from relength.kernels.fused_pointers import point
from relength.kernels.hashing import hashed_integers, step_key
from relength.models.recurrence import gru_update
from relength.streams import EVALUATION_SEED, dropout_key


class AddressBank:
    """A: consecutive b-bit addresses, one per slot, from a base address on and modulo 2^b.

    Raises RelengthError without bits.
    """

    def __init__(self, bits: int):
        if bits < 1:
            raise RelengthError(f"{bits} bits make no address: give at least one.")
        self.bits = bits

    @property
    def size(self) -> int:
        """Number of addresses there are."""
        return 2**self.bits

    def __call__(self, base: Tensor, length: int) -> Tensor:
        """The addresses a_B, a_B + 1, …: (B, length, b) zeros and ones for base (B,).

        Raises RelengthError when there are more slots than addresses.
        """
        if length > self.size:
            raise RelengthError(
                f"A memory of {length} slots does not fit into {self.size} addresses of "
                f"{self.bits} bits: shorten the sequence, or give the model more bits."
            )
        slots = torch.arange(length, device=base.device)
        return self.binary(base[:, None] + slots)

    def binary(self, address: Tensor) -> Tensor:
        """Whole numbers (…) modulo 2^b as bits (…, b), lowest first."""
        places = torch.arange(self.bits, device=address.device)
        return (address[..., None] >> places) & 1

    def random_base(self, count: int, key: Tensor, draws: int | None = None) -> Tensor:
        """Base addresses (count,), uniform over all 2^b; from a hash of the key, not a generator.

        draws  number of equally likely outcomes, if it is another: they wrap around, too
        """
        return hashed_integers(count, draws or self.size, key) % self.size


def evaluation_key(device: torch.device) -> Tensor:
    """Key of base addresses that are drawn in tests: the same for every run and checkpoint."""
    return step_key(dropout_key(EVALUATION_SEED, "base address"), 0).to(device)


def quick(module: nn.Module, x: Tensor) -> bool:
    """Tell whether a CPU's faster way to the same numbers may be taken, one that vmap cannot
    batch.
    """
    return module.fused and x.device.type == "cpu"


class Linears(nn.Module):
    """n linear maps side by side: (n, N, in) or (1, N, in) to (n, N, out); one map takes any n."""

    fused = True

    def __init__(self, n: int, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n, outputs, inputs))
        self.bias = nn.Parameter(torch.empty(n, 1, outputs))

    def forward(self, x: Tensor) -> Tensor:
        return linears(x, self.weight, self.bias, quick(self, x))

    def initial(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Each map as PyTorch draws a linear layer."""
        bound = 1 / math.sqrt(self.weight.shape[2])
        return random.uniform(-bound, bound, getattr(self, name).shape)


def mlps(n: int, inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """n multilayer perceptrons side by side, with one hidden layer as in Section 3."""
    return nn.Sequential(Linears(n, inputs, hidden), nn.ReLU(), Linears(n, hidden, outputs))


def linears(x: Tensor, weight: Tensor, bias: Tensor, fused: bool) -> Tensor:
    """Linear maps side by side: weight (n, out, in), bias (n, 1, out); see Linears for x."""
    if not fused:
        return torch.matmul(x, weight.mT) + bias
    if len(weight) == 1:
        return fast.linear(x, weight[0], bias[0, 0])
    parts = zip(x.expand(len(weight), -1, -1), weight, bias, strict=True)
    return torch.stack([fast.linear(x_i, w, b[0]) for x_i, w, b in parts])


class GRUs(nn.Module):
    """n GRU cells side by side."""

    def __init__(self, n: int, input_size: int, hidden_size: int):
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(n, 3 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(n, 3 * hidden_size, hidden_size))
        self.bias_ih = nn.Parameter(torch.empty(n, 1, 3 * hidden_size))
        self.bias_hh = nn.Parameter(torch.empty(n, 1, 3 * hidden_size))

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        """New states (n, B, d) from inputs (n, B, in) and states (n, B, d)."""
        x_gates = torch.baddbmm(self.bias_ih, x, self.weight_ih.mT)
        return gru_update(x_gates, torch.baddbmm(self.bias_hh, h, self.weight_hh.mT), h)

    def initial(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Draw as PyTorch does for a GRU: uniform in ±1/√hidden."""
        bound = 1 / math.sqrt(self.weight_hh.shape[2])
        return random.uniform(-bound, bound, getattr(self, name).shape)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Attention weights along the last axis; mask (broadcastable, True where there is a slot)."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1)


class Pointing(nn.Module, ABC):
    """All pointer units of a model: a GRU turns each pointer into the next by address attention.

    A subclass says what a state is compared with, and of which addresses a pointer is the mean.

    cosine  whether a query is the state divided by its length; else it is a linear map of the state
    """

    fused = True
    cosine: ClassVar[bool]

    def __init__(self, units: int, bits: int, hidden_size: int):
        super().__init__()
        self.hidden_size = hidden_size
        self.gru = GRUs(units, bits, hidden_size)

    @abstractmethod
    def keys(self, bank: Tensor) -> Tensor:
        """Map addresses (B, L, b) to keys (H, B, L, d), with which queries are compared."""

    @abstractmethod
    def query(self, h: Tensor) -> Tensor:
        """Map states (H, B, d) to queries (H, B, d), which are compared with the keys."""

    def folded(self, bank: Tensor) -> tuple[Tensor, Tensor]:
        """Keys (H, B, L, d) and shares (H, B, L): query(h)·keys(bank) is h·keys + shares.

        But for the state's length, if that is a cosine.
        """
        keys = self.keys(bank)
        return keys, keys.new_zeros(keys.shape[:3])

    def read_back(self, bank: Tensor) -> Tensor:
        """The addresses (B, L, b) whose mean is the new pointer."""
        return bank

    def forward(
        self,
        bank: Tensor,
        first: Tensor,
        steps: int,
        mask: Tensor | None,
        counts: Sequence[int] | None = None,
    ) -> Tensor:
        """Weights w^a (H, B, T, L) of all steps.

        bank (B, L, b);  first: p^a_0 (H, B, b);  mask (B, L), True where there is a slot, or
        (B, T, L) if that differs from step to step

        counts  how many of the samples take each step, ever fewer, where :func:`quick`; all if not
                given. Weights of the others are zero
        """
        addresses, growing = self.read_back(bank), mask is not None and mask.ndim == 3
        if quick(self, bank) and not growing:
            keys, shares = self.folded(bank)
            if mask is not None:
                shares = shares.masked_fill(~mask, -math.inf)
            cell = self.gru.weight_ih, self.gru.weight_hh, self.gru.bias_ih, self.gru.bias_hh
            counts = counts or [len(bank)] * steps
            weights = point(cell, keys, shares, addresses, first, counts, self.cosine)
            return weights.transpose(1, 2)
        keys = self.keys(bank).mT
        p, h, kept = first, first.new_zeros(*first.shape[:2], self.hidden_size), []
        for t in range(steps):
            h = self.gru.step(p, h)  # Eq. 1
            scores = self.query(h)[:, :, None] @ keys  # (H, B, 1, L)
            weights = masked_softmax(scores.squeeze(2), mask[:, t] if growing else mask)  # Eq. 2
            p = (weights[:, :, None] @ addresses).squeeze(2)  # Eq. 3
            kept.append(weights)
        return torch.stack(kept, dim=2)


class PointerUnit(Pointing):
    """Eqs. 1-3 as printed: the cosine of state and mapped address, through a softmax.

    temperature  divides the cosine. The paper has none (1): then no weight exceeds
                 e²/(e² + L - 1), 0.45 of 10 slots and 0.08 of 82.
    """

    cosine = True

    def __init__(
        self, units: int, bits: int, hidden_size: int, mlp_size: int, temperature: float = 1.0
    ):
        super().__init__(units, bits, hidden_size)
        self.temperature = positive(temperature)
        self.key = mlps(units, bits, mlp_size, hidden_size)

    def keys(self, bank: Tensor) -> Tensor:
        keys = self.key(bank.flatten(0, 1)[None])  # (H, B·L, d)
        return (F.normalize(keys, dim=2) / self.temperature).unflatten(1, bank.shape[:2])

    def query(self, h: Tensor) -> Tensor:
        return F.normalize(h, dim=2)


def positive(temperature: float) -> float:
    """The temperature; RelengthError unless it is above 0."""
    if not temperature > 0:
        raise RelengthError(
            f"A temperature of {temperature} divides by nothing or turns attention round: choose "
            "one above 0, 1 for the equations as printed."
        )
    return temperature
