"""Temporal encodings of an episode's latents, which tell a memory when a line was said.

Source: "MemReasoner", Section 3.3. Episodes are padded at the right here, and padding has no
influence on lines.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from relength.kernels import fused as fast
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
        gates = [
            F.linear(turned(latents, back) if backwards else latents, unit.weight_ih, unit.bias_ih)
            for unit, backwards in zip(self.units, (False, True), strict=False)
        ]
        if fused:
            states = _side_by_side(self.units, gates)
        else:
            states = [unit.scan(own) for unit, own in zip(self.units, gates, strict=True)]
        return torch.cat([states[0], *(turned(s, back) for s in states[1:])], dim=-1)


def _side_by_side(units: Sequence[GRU], gates: list[Tensor]) -> list[Tensor]:
    """The states (B, E, d) of each unit for its input gates (B, E, 3·d), as its scan has them."""
    states = fast.scan(
        torch.stack([own.transpose(0, 1) for own in gates], dim=1),  # (E, units, B, 3·d)
        torch.stack([unit.weight_hh for unit in units]),
        torch.stack([unit.bias_hh for unit in units]),
    )
    return [own.transpose(0, 1) for own in states.unbind(1)]


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
