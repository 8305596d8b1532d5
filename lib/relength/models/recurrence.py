"""Gated recurrent units, readable: the reference that relength.models.fused must equal.

Sequences of unequal length need no packing: each direction reads from the left, and the backward
one gets its input already reversed per sample.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.models import fused as fast


def gru_update(x_gates: Tensor, h_gates: Tensor, h: Tensor) -> Tensor:
    """New state of a GRU from its two gate pre-activations (Cho et al., 2014; PyTorch's variant).

    r, z = σ(x_r + h_r), σ(x_z + h_z);  n = tanh(x_n + r·h_n);  h' = (1 - z)·n + z·h

    x_gates, h_gates  (..., 3·d), biases included, in the order r, z, n
    h                 (..., d)
    """
    d = h.shape[-1]
    x_rz, x_n = x_gates.split((2 * d, d), dim=-1)
    h_rz, h_n = h_gates.split((2 * d, d), dim=-1)
    r, z = torch.sigmoid(x_rz + h_rz).chunk(2, dim=-1)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


class GRU(nn.Module):
    """Parameters of one direction of a single-layer GRU, named and shaped as in PyTorch."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.hidden_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size))
        self.bias_ih = nn.Parameter(torch.empty(3 * hidden_size))
        self.bias_hh = nn.Parameter(torch.empty(3 * hidden_size))

    @property
    def bound(self) -> float:
        """PyTorch draws every GRU parameter uniformly from ±1/√hidden."""
        return 1 / math.sqrt(self.hidden_size)

    def step(self, x_gates: Tensor, h: Tensor) -> Tensor:
        """One step from input gates (B, 3·d) and state (B, d)."""
        return gru_update(x_gates, F.linear(h, self.weight_hh, self.bias_hh), h)

    def scan(self, x_gates: Tensor) -> Tensor:
        """States (B, S, d) for input gates (B, S, 3·d), input bias included, from a zero state."""
        h, states = x_gates.new_zeros(len(x_gates), self.hidden_size), []
        for x_t in x_gates.unbind(1):
            h = self.step(x_t, h)
            states.append(h)
        return torch.stack(states, dim=1)


def reversal(lengths: Tensor, width: int) -> Tensor:
    """Indices (B, S) that reverse the first ``lengths`` positions of each row; padding stays."""
    i = torch.arange(width, device=lengths.device)
    n = lengths[:, None]
    return torch.where(i < n, n - 1 - i, i)


def take(sequence: Tensor, indices: Tensor) -> Tensor:
    """Rows of (B, S, d) picked per sample by indices (B, K): (B, K, d)."""
    batch, width, d = sequence.shape
    first = torch.arange(0, batch * width, width, device=indices.device)
    flat = sequence.reshape(batch * width, d).index_select(0, (indices + first[:, None]).flatten())
    return flat.view(batch, -1, d)


class BiGRU(nn.Module):
    """Two GRUs, one per direction, on token sequences of unequal length padded at the right."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.forwards = GRU(input_size, hidden_size)
        self.backwards = GRU(input_size, hidden_size)

    def forward(
        self, table: Tensor, tokens: Tensor, lengths: Tensor, fused: bool
    ) -> tuple[Tensor, Tensor]:
        """Encodings (B, S, 2·hidden) and the two final states side by side (B, 2·hidden).

        table   (V, input) embedding of every token; the input map acts on it once, not per position
        tokens  (B, S) rows of the table
        """
        batch, width = tokens.shape
        turned = reversal(lengths, width)
        grus = (self.forwards, self.backwards)
        tables = [F.linear(table, gru.weight_ih, gru.bias_ih) for gru in grus]
        sequences = (tokens, tokens.gather(1, turned))
        if fused:
            rows = torch.stack([sequences[0].T, sequences[1].T + len(table)], dim=1)  # (S, 2, B)
            states = fast.scan(
                F.embedding(rows, torch.cat(tables)),
                torch.stack([gru.weight_hh for gru in grus]),
                torch.stack([gru.bias_hh for gru in grus]),
            )
            # Back to batch first, and each sample's backward states turned round, in one look-up.
            places = torch.stack(
                [torch.arange(width).expand_as(turned), turned], dim=2
            )  # (B, S, 2)
            rows = (places * 2 + torch.arange(2)) * batch + torch.arange(batch)[:, None, None]
            encodings = states.flatten(0, 2).index_select(0, rows.flatten()).view(batch, width, -1)
        else:
            left, right = (
                gru.scan(F.embedding(sequence, gates))
                for gru, gates, sequence in zip(grus, tables, sequences, strict=True)
            )
            encodings = torch.cat([left, take(right, turned)], dim=2)
        d = self.forwards.hidden_size
        last = take(encodings, (lengths - 1)[:, None])[:, 0, :d]
        return encodings, torch.cat([last, encodings[:, 0, d:]], dim=1)
