"""Recurrent units, readable: the reference that relength.kernels.fused must equal.

Sequences of unequal length need no packing: each direction reads from the left, and the backward
one gets its input already reversed per sample.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.kernels import fused as fast

# torch.nn.functional.linear or an equal of it, such as relength.kernels.fused.linear.
Linear = Callable[[Tensor, Tensor, Tensor | None], Tensor]


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

    def step(self, x_gates: Tensor, h: Tensor, linear: Linear = F.linear) -> Tensor:
        """One step from input gates (B, 3·d) and state (B, d)."""
        return gru_update(x_gates, linear(h, self.weight_hh, self.bias_hh), h)

    def scan(self, x_gates: Tensor, h: Tensor | None = None, linear: Linear = F.linear) -> Tensor:
        """States (B, S, d) for input gates (B, S, 3·d), input bias included; h is zero at first."""
        if h is None:
            h = x_gates.new_zeros(len(x_gates), self.hidden_size)
        states = []
        for x_t in x_gates.unbind(1):
            h = self.step(x_t, h, linear)
            states.append(h)
        return torch.stack(states, dim=1)

    def fast_scan(
        self, x_gates: Tensor, h: Tensor | None = None, counts: Sequence[int] | None = None
    ) -> Tensor:
        """Compute what :meth:`scan` does, faster, on a CPU and not under vmap.

        counts  how many of the samples take each step, ever fewer; states of the others are zero
        """
        first = None if h is None else h[None]
        gates = x_gates.transpose(0, 1)[:, None]
        states = fast.scan(gates, self.weight_hh[None], self.bias_hh[None], first, counts)
        return states[:, 0].transpose(0, 1)


class LSTMState(NamedTuple):
    """Output and cell (B, d) of an LSTM."""

    h: Tensor
    c: Tensor


class LSTM(nn.Module):
    """Parameters of one direction of a single-layer LSTM, named and shaped as in PyTorch."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.hidden_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        self.bias_ih = nn.Parameter(torch.empty(4 * hidden_size))
        self.bias_hh = nn.Parameter(torch.empty(4 * hidden_size))

    @property
    def bound(self) -> float:
        """PyTorch draws every LSTM parameter uniformly from ±1/√hidden."""
        return 1 / math.sqrt(self.hidden_size)

    def step(self, x_gates: Tensor, state: LSTMState, linear: Linear = F.linear) -> LSTMState:
        """One step from input gates (B, 4·d), input bias included, in the order i, f, g, o.

        i, f, o = σ(x + h);  g = tanh(x_g + h_g);  c' = f·c + i·g;  h' = o·tanh(c')
        """
        h, c = state
        gates = x_gates + linear(h, self.weight_hh, self.bias_hh)
        i, f, g, o = gates.chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return LSTMState(torch.sigmoid(o) * torch.tanh(c), c)

    def scan(
        self, x_gates: Tensor, state: LSTMState | None = None, linear: Linear = F.linear
    ) -> tuple[Tensor, LSTMState]:
        """Outputs (B, S, d) and the last state for input gates (B, S, 4·d); zero state at first."""
        if state is None:
            state = LSTMState(*x_gates.new_zeros(2, len(x_gates), self.hidden_size))
        outputs = []
        for x_t in x_gates.unbind(1):
            state = self.step(x_t, state, linear)
            outputs.append(state.h)
        return torch.stack(outputs, dim=1), state


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
        return encodings, self._summary(encodings, lengths)

    def above(self, below: Tensor, lengths: Tensor, fused: bool) -> tuple[Tensor, Tensor]:
        """Encode as a further layer: it reads the encodings (B, S, input) of the layer below."""
        turned = reversal(lengths, below.shape[1])
        left, right = (
            (gru.fast_scan if fused else gru.scan)(F.linear(inputs, gru.weight_ih, gru.bias_ih))
            for gru, inputs in ((self.forwards, below), (self.backwards, take(below, turned)))
        )
        encodings = torch.cat([left, take(right, turned)], dim=2)
        return encodings, self._summary(encodings, lengths)

    def _summary(self, encodings: Tensor, lengths: Tensor) -> Tensor:
        d = self.forwards.hidden_size
        last = take(encodings, (lengths - 1)[:, None])[:, 0, :d]
        return torch.cat([last, encodings[:, 0, d:]], dim=1)
