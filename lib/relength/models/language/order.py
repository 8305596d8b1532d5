"""Temporal encodings of an episode's latents, which tell a memory when a line was said.

Source: "MemReasoner", Section 3.3. Episodes are padded at the right here, and padding has no
influence on lines.
"""

import math

import torch
from torch import Tensor, nn

from relength.models.recurrence import GRU


class Recurrent(nn.Module):
    """z̃_i is the output of a GRU at line i; of two directions each gives half of it."""

    def __init__(self, size: int, directions: int):
        super().__init__()
        self.units = nn.ModuleList(GRU(size, size // directions) for _ in range(directions))

    def forward(self, latents: Tensor, lengths: Tensor, fused: bool) -> Tensor:
        """Ordered latents (B, E, D) of latents (B, E, D); lengths (B,) are the episodes' lines."""
        from torch.nn import functional as F

        back = reversal(lengths, latents.shape[1])
        found = []
        for unit, backwards in zip(self.units, (False, True), strict=False):
            x = turned(latents, back) if backwards else latents
            gates = F.linear(x, unit.weight_ih, unit.bias_ih)
            states = unit.fast_scan(gates) if fused else unit.scan(gates)
            found.append(turned(states, back) if backwards else states)
        return torch.cat(found, dim=-1)


def reversal(lengths: Tensor, width: int) -> Tensor:
    """Indices (B, width) that turn round the first ``lengths`` places and leave the others."""
    place = torch.arange(width, device=lengths.device)
    turned_round = lengths[:, None] - 1 - place
    return torch.where(turned_round >= 0, turned_round, place)


def turned(x: Tensor, index: Tensor) -> Tensor:
    """The rows of x (B, E, D) at the places of an index (B, E)."""
    return x.gather(1, index[:, :, None].expand_as(x))


def sinusoids(places: Tensor, size: int) -> Tensor:
    """Sines and cosines (…, size) of places (…), as Vaswani et al. (2017) have them."""
    rates = torch.exp(torch.arange(0, size, 2, device=places.device) * (-math.log(10_000.0) / size))
    angles = places[..., None].to(rates.dtype) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
