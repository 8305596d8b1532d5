"""Pointer-Augmented Neural Memory as the authors' code has it, in the parts that differ.

Source: github.com/thaihungle/PANM, baselines/panm.py. It computes otherwise than the text says in
these respects; weights that it never uses, or that only ever see zeros, are left out here.

* the encoder is a bidirectional GRU, its directions are added; the controller starts from the last
  state of the forward one;
* addresses have 8 bits; a base address is minus a number from 0 to 2^b *inclusive*, so that 0 is
  twice as likely as any other, and it is as random in tests as in training;
* keys and values of attention are learned linear maps of addresses and memory, scores are scaled
  dot products: PyTorch's multi-head attention with one head;
* the new pointer is read from a table whose axes are confused, :meth:`Pointing.read_back`;
* the controller also attends to the memory by content (Bahdanau et al., 2015), and Mode-2 values
  bypass it: they go to the output only;
* Mode-2 weights are dropped out while training; heads share one attention and differ in the query;
* maps have no hidden layer, the output neither.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.kernels import fused as fast
from relength.kernels.fused_attention import AdditiveKernel
from relength.kernels.hashing import dropout_mask, fork
from relength.models.pointers.attention import (
    AddressBank,
    Linears,
    Pointing,
    linears,
    masked_softmax,
    quick,
)
from relength.models.pointers.panm import PANM, STARTS, Mode1, Reading, side_by_side, starts
from relength.models.recurrence import GRU, Linear


class Projection(Linears):
    """Linear maps inside multi-head attention: Xavier uniform, biases zero.

    fan_out  of all maps that PyTorch keeps in one tensor, where that is more than this one's
    """

    def __init__(self, n: int, inputs: int, outputs: int, fan_out: int | None = None):
        super().__init__(n, inputs, outputs)
        self.fan_out = fan_out or outputs

    def initial(self, name: str, random: np.random.Generator) -> np.ndarray:
        parameter = getattr(self, name)
        if name == "bias":
            return np.zeros(parameter.shape)
        bound = math.sqrt(6 / (parameter.shape[2] + self.fan_out))
        return random.uniform(-bound, bound, parameter.shape)


class OutProjection(Linears):
    """The map that ends multi-head attention: a linear layer's weight, bias zero."""

    def initial(self, name: str, random: np.random.Generator) -> np.ndarray:
        numbers = super().initial(name, random)
        return np.zeros_like(numbers) if name == "bias" else numbers


def retrieved(
    weights: Tensor, memory: Tensor, value: Linears, output: Linears, fused: bool
) -> Tensor:
    """output(Σ weights·value(memory)), (H, B, T, d), for weights (H, B, T, L), memory (B, L, d).

    Both maps act as one, and on the L slots instead of on the T sums.
    """
    matrix, constant = output.weight @ value.weight, value.bias @ output.weight.mT
    values = linears(memory.flatten(0, 1)[None], matrix, constant, fused)
    return weights @ values.unflatten(1, memory.shape[:2]) + output.bias[:, None]


class ReleasedPointerUnit(Pointing):
    """Pointer units with scaled dot products.

    mended  whether a pointer is read from its own sample's addresses. The code reshapes the table
            (L, B, b) to (B, L, b) where it should transpose it, so that a pointer is a mean of
            other samples' addresses; nearly noise, as their bases are unrelated.
    """

    cosine = False

    def __init__(self, units: int, bits: int, hidden_size: int, memory_size: int, mended: bool):
        super().__init__(units, bits, hidden_size)
        self.mended = mended
        self.address = Linears(units, bits, bits)
        self.key = Projection(units, bits, memory_size)
        self.state = Linears(units, hidden_size, memory_size)
        self.ask = Projection(units, memory_size, memory_size)

    def keys(self, bank: Tensor) -> Tensor:
        keys = self.key(self.address(bank.flatten(0, 1)[None]))
        return keys.unflatten(1, bank.shape[:2])

    def query(self, h: Tensor) -> Tensor:
        query = self.ask(self.state(h))
        return query / math.sqrt(query.shape[2])

    def folded(self, bank: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and queries are linear maps of addresses and states: so are their products."""
        ask, state, key, address = self.ask, self.state, self.key, self.address
        query = ask.weight @ state.weight / math.sqrt(ask.weight.shape[1])  # (H, d, hidden)
        constant = ask(state.bias) / math.sqrt(ask.weight.shape[1])  # (H, 1, d)
        matrix, bias = key.weight @ address.weight, key(address.bias)  # (H, d, b), (H, 1, d)
        every = torch.cat([query, constant.mT], dim=2).mT  # (H, hidden + 1, d)
        rows = torch.matmul(bank.flatten(0, 1)[None], (every @ matrix).mT) + (every @ bias.mT).mT
        folded, shares = rows.unflatten(1, bank.shape[:2]).split((query.shape[2], 1), dim=3)
        return folded, shares.squeeze(3)

    def read_back(self, bank: Tensor) -> Tensor:
        return bank if self.mended else bank.transpose(0, 1).reshape(bank.shape)


class ReleasedMode1(Mode1):
    """Dereference: what is read is a learned map of the memory, one per pointer unit."""

    def __init__(self, units: int, memory_size: int):
        super().__init__()
        self.value = Projection(units, memory_size, memory_size)
        self.output = OutProjection(units, memory_size, memory_size)

    def forward(self, weights: Tensor, memory: Tensor) -> Tensor:
        fused = quick(self.value, memory)
        return side_by_side(retrieved(weights, memory, self.value, self.output, fused))


class ReleasedMode2(nn.Module):
    """Relational access: scaled dot products of mapped memory, whose weights are dropped out."""

    def __init__(self, heads: int, inputs: int, memory_size: int, dropout: float):
        super().__init__()
        d, self.dropout = memory_size, dropout
        self.query = Linears(heads, inputs, d)
        self.ask, self.key, self.value = (Projection(1, d, d, fan_out=3 * d) for _ in range(3))
        self.output = OutProjection(1, d, d)

    def forward(
        self, mode1: Tensor, memory: Tensor, mask: Tensor | None, key: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        ask, to_key, fused = self.ask, self.key, quick(self.value, memory)
        scale = math.sqrt(memory.shape[2])
        matrix, constant = ask.weight @ self.query.weight / scale, ask(self.query.bias) / scale
        # The map of keys acts on what is compared with them, of which there is less; their bias is
        # the same share of all slots.
        rows = mode1.flatten(0, 1)[None]
        q = linears(rows, to_key.weight.mT @ matrix, constant @ to_key.weight, fused)
        shares = torch.matmul(rows, (to_key.bias @ matrix).mT) + to_key.bias @ constant.mT
        mask = None if mask is None else mask[:, None]
        q, shares = (x.unflatten(1, mode1.shape[:2]) for x in (q, shares))
        weights = masked_softmax(q @ memory.mT + shares, mask)
        if key is not None and self.dropout > 0:
            keep = [
                dropout_mask(head.shape, self.dropout, fork(key, i))
                for i, head in enumerate(weights)
            ]
            weights = weights * torch.stack(keep) / (1 - self.dropout)
        read = retrieved(weights, memory, self.value, self.output, fused)
        return side_by_side(read), weights


class ContentAttention(nn.Module):
    """Scores v·max(0, W·[h; m] + b) of the memory, for the state h that asks."""

    def __init__(self, hidden_size: int, memory_size: int):
        super().__init__()
        self.map = nn.Linear(hidden_size + memory_size, memory_size)
        self.v = nn.Parameter(torch.empty(memory_size))

    def initial(self, name: str, random: np.random.Generator) -> np.ndarray:
        bound = 1 / math.sqrt(len(self.v))
        return random.uniform(-bound, bound, self.v.shape)

    def prepare(self, memory: Tensor, linear: Linear = F.linear) -> Tensor:
        """The memory's share of what the scores are made of, (B, L, d)."""
        return linear(memory, self.map.weight[:, -memory.shape[2] :], self.map.bias)

    def forward(self, h: Tensor, prepared: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Read (B, d) for the state h (B, hidden)."""
        asked = F.linear(h, self.map.weight[:, : h.shape[1]])
        weights = masked_softmax(torch.relu(prepared + asked[:, None]) @ self.v, mask)
        return (weights[:, None] @ memory).squeeze(1)

    def kernel(self, prepared: Tensor, mask: Tensor | None, hidden: int) -> AdditiveKernel:
        """Make the form of this attention that the fused decoding loop takes."""
        shares = prepared.new_zeros(prepared.shape[:2])
        if mask is not None:
            shares = shares.masked_fill(~mask, -math.inf)
        return AdditiveKernel(prepared, shares, self.map.weight[:, :hidden], self.v)


class ReleasedController(nn.Module):
    """A GRU that reads the Mode-1 values and what it finds by content; linear maps write.

    content  whether it attends to the memory by content; if not, it reads Mode-1 values alone
    """

    fused = True

    def __init__(
        self,
        mode1: int,
        mode2: int,
        extra: int,
        memory_size: int,
        classes: int,
        content: bool = True,
    ):
        super().__init__()
        d = memory_size
        found = d if content else 0
        self.attention = ContentAttention(d, d) if content else None
        self.gru = GRU(mode1 + extra + found, d)
        self.mix = nn.Linear(d + found, d)
        self.output = nn.Linear(d + mode1 + mode2, classes)

    def forward(self, reading: Reading, z: Tensor | None, h: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (B, T, classes) and the last state (B, d), from the state before."""
        x = reading.mode1 if z is None else torch.cat([z, reading.mode1], dim=2)
        linear = fast.linear if quick(self, x) else F.linear
        if self.attention is None:
            scan = self.gru.fast_scan if quick(self, x) else self.gru.scan
            read = states = scan(linear(x, self.gru.weight_ih, self.gru.bias_ih), h)
        else:
            states, contexts = self._attend(reading, x, h, linear)
            read = torch.cat([states, contexts], dim=2)
        written = linear(read, self.mix.weight, self.mix.bias)
        scores = self.output(torch.cat([written, reading.mode1, reading.mode2], dim=2))
        return scores, states[:, -1]

    def _attend(
        self, reading: Reading, x: Tensor, h: Tensor, linear: Linear
    ) -> tuple[Tensor, Tensor]:
        """States and what each finds by content, both (B, T, d), for what is read, x (B, T, …)."""
        memory, gru = reading.memory, self.gru
        from_values, from_context = gru.weight_ih.split((x.shape[2], memory.shape[2]), dim=1)
        prepared, mask = self.attention.prepare(memory, linear), reading.mask
        if quick(self, x):
            shares = linear(x.transpose(0, 1), from_values, gru.bias_ih)  # (T, B, 3d)
            kernel = self.attention.kernel(prepared, mask, h.shape[1])
            loop = shares, memory, from_context, gru.weight_hh, gru.bias_hh
            states, weights = (x.transpose(0, 1) for x in fast.decode(kernel, h, *loop))
            return states, weights @ memory
        kept = []
        for share in F.linear(x, from_values, gru.bias_ih).unbind(1):
            context = self.attention(h, prepared, memory, mask)
            h = gru.step(share + context @ from_context.T, h)
            kept.append((h, context))
        states, contexts = (torch.stack(x, dim=1) for x in zip(*kept, strict=True))
        return states, contexts


class ReleasedPANM(PANM):
    """The released wiring between an encoder and, if wanted, a decoder.

    encoder      gives the memory (B, L, d) and the controller's first state (B, d)
    single_from  where a pointer begins that is the only one; several begin at the base, the end,
                 the base again
    mended       see :class:`ReleasedPointerUnit`
    content      see :class:`ReleasedController`

    Raises what :class:`PANM` raises.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module | None = None,
        n_mode1: int = 2,
        n_mode2: int = 1,
        bits: int = 8,
        *,
        memory_size: int,
        classes: int,
        decoder_size: int = 0,
        single_from: str = STARTS[0],
        dropout: float = 0.5,
        mended: bool = False,
        content: bool = True,
    ):
        nn.Module.__init__(self)
        self.memory_size = d = memory_size
        self.encoder, self.decoder, self.bank = encoder, decoder, AddressBank(bits)
        self.starts = starts(n_mode1, n_mode2, single_from, every=("base", "end", "base"))
        self.pointers = self.mode1 = self.mode2 = None
        if n_mode1:
            self.pointers = ReleasedPointerUnit(n_mode1, bits, d, d, mended)
            self.mode1 = ReleasedMode1(n_mode1, d)
        if n_mode2:
            self.mode2 = ReleasedMode2(n_mode2, n_mode1 * d, d, dropout)
        sizes = n_mode1 * d, n_mode2 * d, decoder_size, d, classes
        self.controller = ReleasedController(*sizes, content)

    def encode(self, x: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        given = self.encoder(x)
        if isinstance(given, Tensor) or len(given) != 2:
            raise RelengthError(
                "The encoder of the released PANM must give two tensors, the memory (batch, "
                "length, size) and the controller's first state (batch, size): return both."
            )
        memory, state = given
        return self.fitting(memory, x), state
