"""Pointer-Augmented Neural Memory, as its text describes it (Section 2.3, Algorithm 1, Figure 4).

Source: Le et al., "Plug, Play, and Generalize: Length Extrapolation with Pointer-Augmented Neural
Memory". What the authors' code does otherwise is in :mod:`relength.models.pointers.panm_released`.

| paper | here |
| --- | --- |
| M = Encoder(X) | ``memory`` (B, L, d) |
| w^a_t, w^c_t | ``Reading.mode1_weights``, ``Reading.mode2_weights`` |
| *p^a_t, all heads | ``mode1`` (B, T, H^a·d) |
| *p^c_t, all heads | ``mode2`` (B, T, H^c·d) |
| z_t = Decoder(y_t-) | ``z`` (B, T, e) |
| h^c_t | ``h`` (B, d) |
| g^c, g^o | ``Mode2.query``, ``Controller.inner`` and ``.output`` |

Pointers depend on addresses only, Mode-1 values on pointers and memory, Mode-2 values on those:
nothing of it on what has been written. So all of it is computed for all steps at once, and only the
controller goes step by step.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.kernels import fused as fast
from relength.models.pointers.attention import (
    AddressBank,
    PointerUnit,
    masked_softmax,
    mlps,
    positive,
    quick,
)
from relength.models.recurrence import GRU

STARTS = ("base", "end", "middle")  # where Mode-1 pointers begin (Appendices C and D.6)


class Mode1(nn.Module):
    """Pointer dereference: *p^a_t = M·w^a_t (Section 2.3.2)."""

    def forward(self, weights: Tensor, memory: Tensor) -> Tensor:
        """Values (B, T, H·d) for weights (H, B, T, L) and memory (B, L, d)."""
        return side_by_side(weights @ memory)


class Mode2(nn.Module):
    """Relational access, Eqs. 4-6: memory that resembles a query made of the Mode-1 values."""

    def __init__(
        self, heads: int, inputs: int, memory_size: int, mlp_size: int, temperature: float = 1.0
    ):
        super().__init__()
        self.temperature = positive(temperature)
        self.query = mlps(heads, inputs, mlp_size, memory_size)

    def forward(
        self,
        mode1: Tensor,
        memory: Tensor,
        mask: Tensor | None,
        key: Tensor | None,
        writing: "Writing | None" = None,
    ) -> tuple[Tensor, Tensor]:
        """Values (B, T, H·d) and weights (H, B, T, L) for mode1 (B, T, inputs).

        mask: (B, L), or (B, T, L) if it differs from step to step
        """
        q = everywhere(self.query(where_written(mode1, writing)[None]), mode1, writing)  # Eq. 4
        cosine = F.normalize(q, dim=3) @ F.normalize(memory, dim=2).mT
        mask = mask[:, None] if mask is not None and mask.ndim == 2 else mask
        weights = masked_softmax(cosine / self.temperature, mask)  # Eq. 5
        return side_by_side(weights @ memory), weights  # Eq. 6


def side_by_side(values: Tensor) -> Tensor:
    """Heads next to each other: (H, B, T, d) as (B, T, H·d)."""
    return values.permute(1, 2, 0, 3).flatten(2)


class Controller(nn.Module):
    """Eq. 7 and the output: a GRU reads the values of both modes, and g^o writes from all three."""

    fused = True

    def __init__(self, inputs: int, extra: int, memory_size: int, mlp_size: int, classes: int):
        super().__init__()
        self.gru = GRU(inputs + extra, memory_size)
        self.inner = nn.Linear(inputs + memory_size, mlp_size)  # g^o, with the next
        self.output = nn.Linear(mlp_size, classes)

    def forward(
        self, reading: "Reading", z: Tensor | None, h: Tensor, writing: "Writing | None" = None
    ) -> tuple[Tensor, Tensor]:
        """Scores (B, T, classes) and the last state (B, d), from the state before."""
        values = [where_written(x, writing) for x in (reading.mode1, reading.mode2)]
        fed_back = [] if z is None else [where_written(z, writing)]
        fused = quick(self, h)
        linear = fast.linear if fused else F.linear
        x_gates = linear(
            torch.cat([*values, *fed_back], dim=1), self.gru.weight_ih, self.gru.bias_ih
        )
        x_gates = everywhere(x_gates, reading.mode1, writing)
        if fused:
            counts = None if writing is None else writing.counts
            states = self.gru.fast_scan(x_gates, h, counts)  # Eq. 7
        else:
            states = self.gru.scan(x_gates, h)
        read_and_state = torch.cat([*values, where_written(states, writing)], dim=1)
        inner = torch.relu(linear(read_and_state, self.inner.weight, self.inner.bias))
        scores = linear(inner, self.output.weight, self.output.bias)
        return everywhere(scores, reading.mode1, writing), states[:, -1]


class Writing(NamedTuple):
    """Which samples of a batch write at which steps, those that write longest first.

    counts  at each of T steps, how many
    places  (R,) where they are among the B·T places of the batch
    """

    counts: list[int]
    places: Tensor

    @classmethod
    def of(cls, steps: Tensor) -> "Writing":
        """For samples that write so many steps (B,), in descending order."""
        going_on = torch.arange(int(steps[0]), device=steps.device) < steps[:, None]  # (B, T)
        return cls(going_on.sum(0).tolist(), going_on.flatten().nonzero()[:, 0])


def where_written(x: Tensor, writing: Writing | None) -> Tensor:
    """Rows (R, c) of x (B, T, c): those of places where something is written, or all."""
    rows = x.flatten(0, 1)
    return rows if writing is None else rows.index_select(0, writing.places)


def everywhere(rows: Tensor, like: Tensor, writing: Writing | None) -> Tensor:
    """Rows (…, R, k) of :func:`where_written` as (…, B, T, k) for ``like`` (B, T, c), else zero."""
    size = like.shape[:2]
    if writing is not None:
        every = rows.new_zeros(*rows.shape[:-2], size.numel(), rows.shape[-1])
        rows = every.index_copy(-2, writing.places, rows)
    return rows.unflatten(-2, size)


def summed(memory: Tensor, mask: Tensor) -> Tensor:
    """The controller's first state (B, d): the sum of a memory's valid slots.

    memory (B, L, d);  mask (B, L), True for those slots
    """
    return (memory * mask[:, :, None]).sum(1)


class Reading(NamedTuple):
    """Everything that the pointers of all steps read, and the weights with which they read it.

    Weights are (H, B, T, L) with the heads of their mode; mask (B, L) is None without padding, and
    (B, T, L) of a memory that grows.
    """

    memory: Tensor
    mask: Tensor | None
    mode1: Tensor
    mode2: Tensor
    mode1_weights: Tensor
    mode2_weights: Tensor

    def at(self, t: int) -> "Reading":
        """Keep one step of it."""
        step = slice(t, t + 1)
        return self._replace(
            mode1=self.mode1[:, step],
            mode2=self.mode2[:, step],
            mode1_weights=self.mode1_weights[:, :, step],
            mode2_weights=self.mode2_weights[:, :, step],
        )


class PANM(nn.Module):
    """Memory with pointers between any encoder and, if wanted, any decoder.

    encoder       gives the memory (B, L, d) for an input (B, L, …)
    decoder       gives z (B, t, e) for the tokens (B, t) that have been written; without one
                  nothing of them is fed back (z = 0)
    n_mode1       H^a: 1 begins at the base address, 2 also at the end, 3 also in the middle. With 0
                  the controller is a plain GRU that sees the sum of the memory and nothing else
    single_from   where a pointer begins that is the only one: "base", or "end" (Appendix D.6)
    n_mode2       H^c, which need Mode-1 values to ask with
    bits          b: memories have up to 2^b slots
    memory_size   d;  classes: that a token is one of;  decoder_size: e
    hidden_size   of the pointer units;  mlp_size: hidden layer of g^a, g^c and g^o
    temperature   of both softmaxes; the paper has none, 1
    grows         whether the memory gets one slot more per step, so that step t sees slots 1 to t
                  (Section 3.2). The first step's memory is one slot: all pointers begin there, and
                  it is the controller's first state

    Raises RelengthError when a number is impossible, when the encoder gives no (B, L, d) of the
    input's B and L and this memory_size, and when a memory is longer than the address space.
    """

    grows = False

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module | None = None,
        n_mode1: int = 2,
        n_mode2: int = 1,
        bits: int = 10,
        *,
        memory_size: int,
        classes: int,
        decoder_size: int = 0,
        single_from: str = STARTS[0],
        hidden_size: int = 256,
        mlp_size: int = 128,
        temperature: float = 1.0,
        grows: bool = False,
    ):
        super().__init__()
        self.grows = grows
        self.encoder, self.decoder, self.bank = encoder, decoder, AddressBank(bits)
        self.starts, self.memory_size = starts(n_mode1, n_mode2, single_from), memory_size
        mode1, mode2 = n_mode1 * memory_size, n_mode2 * memory_size
        self.pointers = self.mode1 = self.mode2 = None
        if n_mode1:
            self.pointers = PointerUnit(n_mode1, bits, hidden_size, mlp_size, temperature)
            self.mode1 = Mode1()
        if n_mode2:
            self.mode2 = Mode2(n_mode2, mode1, memory_size, mlp_size, temperature)
        self.controller = Controller(mode1 + mode2, decoder_size, memory_size, mlp_size, classes)

    def forward(
        self,
        x: Tensor,
        steps: int,
        base: Tensor,
        *,
        written: Tensor | None = None,
        lengths: Tensor | None = None,
        key: Tensor | None = None,
    ) -> Tensor:
        """Scores (B, steps, classes) of all steps.

        base     (B,) base addresses, see AddressBank.random_base; (1,) if all have the same
        written  (B, steps) tokens before each step (teacher forcing), if there is a decoder
        lengths  (B,) valid slots of each memory, if some are padded
        key      of what is drawn inside a training step
        """
        if self.decoder is not None and written is None:
            raise RelengthError(
                "This PANM has a decoder, which reads what has been written: give written."
            )
        reading, state = self.read(x, steps, base, lengths=lengths, key=key)
        z = None if self.decoder is None else self.decoder(written)
        return self.controller(reading, z, state)[0]

    def read(
        self,
        x: Tensor,
        steps: int,
        base: Tensor,
        *,
        lengths: Tensor | None = None,
        key: Tensor | None = None,
    ) -> tuple[Reading, Tensor]:
        """All that does not depend on what is written, and the controller's first state (B, d)."""
        memory, state = self.encode(x, lengths)
        slots = torch.arange(memory.shape[1], device=x.device)
        mask = None if lengths is None else slots < lengths[:, None]
        if self.grows:
            seen = (slots <= torch.arange(steps, device=x.device)[:, None])[None]  # (1, T, L)
            mask = seen if mask is None else seen & mask[:, None]
        return self.look(memory, mask, base, steps, lengths, key), state

    def look(
        self,
        memory: Tensor,
        mask: Tensor | None,
        base: Tensor,
        steps: int,
        lengths: Tensor | None,
        key: Tensor | None = None,
        writing: Writing | None = None,
    ) -> Reading:
        """Read a memory (B, L, d) with the pointers of all steps; see Reading for its mask.

        writing  leaves out, where :func:`quick`, steps of samples that have ended
        """
        length = memory.shape[1]
        bank = self.bank(base, length).to(memory.dtype)
        last = 0 if self.grows else (length if lengths is None else lengths) - 1
        offsets = {"base": 0, "end": last, "middle": last // 2}
        none = (
            memory.new_zeros(len(memory), steps, 0),
            memory.new_zeros(0, len(memory), steps, length),
        )
        (mode1, mode1_weights), (mode2, mode2_weights) = none, none
        if self.pointers is not None:
            first = torch.stack([self.bank.binary(base + offsets[s]) for s in self.starts])
            counts = None if writing is None else writing.counts
            mode1_weights = self.pointers(bank, first.to(memory.dtype), steps, mask, counts)
            mode1 = self.mode1(mode1_weights, memory)
        if self.mode2 is not None:
            fewer = {} if writing is None else {"writing": writing}  # the released one reads all
            mode2, mode2_weights = self.mode2(mode1, memory, mask, key, **fewer)
        return Reading(memory, mask, mode1, mode2, mode1_weights, mode2_weights)

    def written(
        self, memory: Tensor, mask: Tensor, base: Tensor, z: Tensor, steps: Tensor
    ) -> Tensor:
        """Scores (B, T, classes) of as many steps (B,) of each sample, zero behind; where quick.

        The same numbers as from read and controller, but nothing is computed of samples that have
        ended: where targets are of unequal length, those are most of all steps.

        memory (B, L, d);  mask (B, L);  base (B,);  z (B, T, e)
        """
        order = steps.argsort(descending=True, stable=True)
        writing = Writing.of(steps[order])
        memory, mask, base, z = (x[order] for x in (memory, mask, base, z))
        longest, lengths = len(writing.counts), mask.sum(1)
        reading = self.look(memory, mask, base, longest, lengths, writing=writing)
        scores, _ = self.controller(reading, z[:, :longest], summed(memory, mask), writing)
        return F.pad(scores, (0, 0, 0, z.shape[1] - longest))[order.argsort()]

    def encode(self, x: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Memory (B, L, d) and the controller's first state (B, d): the sum of the memory."""
        memory = self.fitting(self.encoder(x), x)
        if self.grows:
            return memory, memory[:, 0]
        if lengths is None:
            return memory, memory.sum(1)
        mask = torch.arange(memory.shape[1], device=x.device) < lengths[:, None]
        return memory, summed(memory, mask)

    def fitting(self, memory: Tensor, x: Tensor) -> Tensor:
        """Return an encoder's output for x (B, L, …) if it is (B, L, d); else RelengthError."""
        wanted = (*x.shape[:2], self.memory_size)
        given = tuple(memory.shape) if isinstance(memory, Tensor) else type(memory).__name__
        if given != wanted:
            raise RelengthError(
                f"The encoder of a PANM must give one vector of {self.memory_size} numbers (its "
                f"memory_size) per input position, a tensor of shape {wanted}, (batch, length, "
                f"size), and gave {given}: keep its last layer's states of all positions."
            )
        return memory

    @torch.no_grad()
    def generate(
        self,
        x: Tensor,
        steps: int,
        base: Tensor,
        start: Tensor,
        *,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Greedy decoding (Algorithm 1): tokens (B, steps), each fed back through the decoder.

        Where the algorithm stops at an end token, this goes on for all steps: samples of a batch
        end at different times, and what stands behind an end token is for the caller to cut.

        start  (B,) tokens that stand before the first one
        """
        reading, state = self.read(x, steps, base, lengths=lengths)
        written = start[:, None]
        for t in range(steps):
            z = None if self.decoder is None else self.decoder(written)[:, -1:]
            scores, state = self.controller(reading.at(t), z, state)
            written = torch.cat([written, scores[:, -1].argmax(1, keepdim=True)], dim=1)
        return written[:, 1:]


def starts(
    n_mode1: int, n_mode2: int, single_from: str = STARTS[0], every: Sequence[str] = STARTS
) -> Sequence[str]:
    """Return the slots where Mode-1 pointers begin; RelengthError when the numbers do not fit.

    every  where they begin one after the other, if there are several
    """
    if not 0 <= n_mode1 <= len(STARTS) or n_mode2 < 0:
        raise RelengthError(
            f"{n_mode1} Mode-1 and {n_mode2} Mode-2 pointers are not possible: Mode-1 pointers "
            f"begin at the base, the end and the middle, so choose 0 to {len(STARTS)} of them, and "
            "0 or more of Mode 2."
        )
    if n_mode2 and not n_mode1:
        raise RelengthError(
            f"{n_mode2} Mode-2 pointers have nothing to ask with: they need at least one Mode-1 "
            "pointer, so choose n_mode1 of 1 or more, or n_mode2 of 0."
        )
    if single_from not in STARTS:
        raise RelengthError(
            f"A pointer cannot begin at {single_from!r}: choose one of {', '.join(STARTS)}."
        )
    return (single_from,) if n_mode1 == 1 else every[:n_mode1]
