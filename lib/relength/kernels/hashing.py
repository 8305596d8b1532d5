"""Random numbers inside a step: stateless hashes of the step's key and an element's place.

Keys come from :func:`relength.streams.dropout_key`, one per site of a run.
"""

import math

import torch
from torch import Tensor

# Odd multipliers below 2**31, so that int32 products wrap around the same way on CPU and GPU.
GOLDEN, MIX_A, MIX_B = 0x1E3779B1, 0x045D9F3B, 0x119DE1F3
LOW_BITS = 0x0000FFFF
LONGEST = 8192  # positions of a sequence that have hashes of their own


def _scramble(x: Tensor) -> Tensor:
    """Bijective 32-bit mixer (multiply, xor of the high half into the low half, twice)."""
    x = (x ^ ((x >> 16) & LOW_BITS)) * MIX_A
    x = (x ^ ((x >> 16) & LOW_BITS)) * MIX_B
    return x ^ ((x >> 16) & LOW_BITS)


def dropout_mask(shape: torch.Size, rate: float, key: Tensor) -> Tensor:
    """Keep-mask (B, S, C) from a stateless hash of (key, batch, position, channel).

    ``key`` is a scalar int32 tensor that already mixes seed, site and step (:func:`step_key`). An
    element's value does not depend on how far the batch is padded, so padding never changes a run.
    """
    return _element_hashes(shape, key) >= least_kept(rate)


def _element_hashes(shape: torch.Size, key: Tensor) -> Tensor:
    """Hash batch, position and channel: int32 (B, S, C)."""
    # Each axis is scrambled before the next is added: a plain linear index would leave lattices.
    channel = torch.arange(shape[2], dtype=torch.int32, device=key.device)
    return _scramble(row_hashes(shape, key)[:, :, None] + channel * GOLDEN)


def row_hashes(shape: torch.Size, key: Tensor) -> Tensor:
    """Hash batch and position of a mask (B, S, C): int32 (B, S)."""
    row = torch.arange(shape[0], dtype=torch.int32, device=key.device) * LONGEST
    position = torch.arange(shape[1], dtype=torch.int32, device=key.device)
    return _scramble((row[:, None] + position) * GOLDEN + key)


def least_kept(rate: float) -> int:
    """The smallest int32 hash that is kept: a share ``rate`` of all int32 lies below."""
    return max(-(2**31), min(int((rate - 0.5) * 2**32), 2**31 - 1))


def step_key(key: int | Tensor, step: int | Tensor) -> Tensor:
    """int32 tensor that mixes dropout keys with the optimiser step; a scalar, or one per key."""
    step = torch.as_tensor(step, dtype=torch.int32)
    return _scramble(step * GOLDEN + key)


def fork(key: Tensor, site: int) -> Tensor:
    """The key of one of several places of a model that draw inside a step."""
    return _scramble(key + site * GOLDEN)


def hashed_integers(count: int, below: int, key: Tensor) -> Tensor:
    """(count,) int64, uniform over 0 … below - 1, from a stateless hash of (key, place)."""
    place = torch.arange(count, dtype=torch.int32, device=key.device)
    bits = _scramble(_scramble(place * GOLDEN + key) + GOLDEN).long() & 0xFFFFFFFF
    return (bits * below) >> 32


def hashed_normal(shape: torch.Size, key: Tensor) -> Tensor:
    """Normal numbers (B, S, C) in float64 from a stateless hash of (key, batch, position, channel).

    Box and Muller's transform of two uniform numbers per element.
    """

    def uniform(site: int) -> Tensor:
        """Between 0 and 1, neither of them included."""
        bits = _element_hashes(shape, fork(key, site))
        return ((bits.long() & 0xFFFFFFFF).double() + 0.5) / 2**32

    return (-2 * uniform(0).log()).sqrt() * (2 * math.pi * uniform(1)).cos()
