"""One step of a DNC's memory and its gradient, compiled by Numba for fixed sizes.

The equations are those of relength.models.memory.dnc_memory under its rules DEEPMIND. An array's
last axis is flat, and N, W and R are constants of the machine code: so the compiler knows every
offset, and turns the inner loops into vector instructions. Rows over slots are padded to P numbers,
a multiple of a vector; what pads a row is zero. Memory and keys lie word position by word position,
(W, P): sums over a word then run over slots side by side.

| array | shape of a step of a sample | what |
| --- | --- | --- |
| memory, norms | (W, P), (P) | M_t, lengths of its words |
| usage, precedence, link | (P), (P), (N, P), N rounded up to 4 | u_t, p_t, L_t |
| writing, reading | (P), (R, P) | w^w_t, w^{r,i}_t |
| order | (N) | φ_t, slots from least to most used |
| orders | (W·R + 3·W + 5·R + 3) | ξ_t |
| allocation, behind, ahead | (P), (R, P), (R, P) | a_t, b^i_t, f^i_t |
| similar, content | (1 + R, P) | cosines and weightings by content, the write head first |

The first four lines are states: ``before`` and ``after`` are their places in time, and the third
axis of their arrays is what the table says. The others have one place a step, ``at``.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from relength.kernels.jit import compiled

# Looking for a zero before every division would keep loops from becoming vector instructions.
fast = partial(compiled, error_model="numpy")

EPSILON = 1e-6
VECTOR = 8  # numbers; the float32 of a vector of AVX2
BLOCK = 4  # rows of links that are in a vector's registers together
STRAIGHT = 20  # from here on softplus is the identity, as in PyTorch


def padded(slots: int) -> int:
    """P: the slots, rounded up to whole vectors."""
    return -(-slots // VECTOR) * VECTOR


def linked(slots: int) -> int:
    """Rows of the links, which are taken several at a time: the slots, rounded up."""
    return -(-slots // BLOCK) * BLOCK


class Offsets(NamedTuple):
    """Places of the parts of ξ_t, in the order of relength.models.memory.dnc_memory.Interface."""

    read_keys: int
    read_strengths: int
    write_key: int
    write_strength: int
    erase: int
    write: int
    free: int
    allocation_gate: int
    write_gate: int
    modes: int
    end: int


def offsets(width: int, heads: int) -> Offsets:
    """The first place of each part, and the length of the whole."""
    w, r = width, heads
    sizes = (w * r, r, w, 1, w, w, r, 1, 1, 3 * r)
    return Offsets(*(sum(sizes[:i]) for i in range(len(sizes) + 1)))


# exp of a float32 as the compiler can make vector instructions of it: 2^n times a polynomial
# (Cephes, expf) in what is left. The C library's exp is called for one number after the other.
ONE, HALF, FAR = np.float32(1), np.float32(0.5), np.float32(88)
LOG2_E, LN2 = np.float32(math.log2(math.e)), np.float32(math.log(2))
E2, E3, E4, E5, E6, E7 = (
    np.float32(x)
    for x in (
        5.0000001201e-1,
        1.6666665459e-1,
        4.1665795894e-2,
        8.3334519073e-3,
        1.3981999507e-3,
        1.9875691500e-4,
    )
)
BIAS, FRACTION = 127, 23  # of a float32: what is added to its exponent, bits of its mantissa


@fast
def exp32(x):
    """exp of a float32 between ±88, and beyond that as at the ends.

    Its relative error is below 2^-22 between ±20, and below 2^-21 everywhere.
    """
    x = min(max(x, -FAR), FAR)
    scaled = x * LOG2_E
    n = np.int32(scaled + (HALF if scaled >= 0 else -HALF))
    whole = np.float32(n)
    x = x - whole * LN2
    power = ((((E7 * x + E6) * x + E5) * x + E4) * x + E3) * x + E2
    power = power * x * x + x + ONE
    return power * np.int32((n + BIAS) << FRACTION).view(np.float32)


@fast
def _sigmoid(x):
    return 1 / (1 + math.exp(-x))


@fast
def _softplus(x):
    return math.log1p(math.exp(x)) if x <= STRAIGHT else x


@cache
def cell(single: bool) -> Callable[..., None]:
    """The gates of a constrained LSTM, in float32 if ``single``, else in float64."""
    one: Any = np.float32(1) if single else np.float64(1)

    @fast
    def forwards(t, at, gates, cells, squashed, h, compressed, clip):
        """One step of relength.models.memory.constrained.GatedController, after its product.

        gates     (S, B, 4·H) i, f, o and the candidate, activated here;  ``at`` is their place
        cells     (S + 1, B, H) c_t, from c_0 on;  h (S, B, H) written
        squashed  (S, B, H) tanh of the sum that makes c_t; where that is c_t, it is cells[1:]
        """
        samples, d = h.shape[1], h.shape[2]
        limit = h.dtype.type(clip)
        # Loops that write one array each: of more, the compiler would fear that they overlap.
        for b in range(samples):
            for j in range(3 * d):
                x = -gates[at, b, j]
                gates[at, b, j] = one / (one + (exp32(x) if single else math.exp(x)))
            for j in range(3 * d, 4 * d):
                x = -gates[at, b, j] - gates[at, b, j]
                x = one / (one + (exp32(x) if single else math.exp(x)))
                gates[at, b, j] = x + x - one
            for j in range(d):
                new = gates[at, b, j] * gates[at, b, 3 * d + j]
                cells[t + 1, b, j] = gates[at, b, d + j] * cells[t, b, j] + new
            for j in range(d):
                x = -cells[t + 1, b, j] - cells[t + 1, b, j]
                x = one / (one + (exp32(x) if single else math.exp(x)))
                squashed[t, b, j] = x + x - one
            for j in range(d):
                h[t, b, j] = gates[at, b, 2 * d + j] * squashed[t, b, j]
            if not compressed:
                for j in range(d):
                    cells[t + 1, b, j] = min(max(cells[t + 1, b, j], -limit), limit)

    return forwards


@fast
def gate_gradients(t, h_grad, gates, cells, squashed, gate_grads, carried, compressed, clip):
    """One step back through the cell of a constrained LSTM.

    h_grad      (B, H) of h_t
    gates       (S, B, 4·H) activations i, f, o and of the candidate
    cells       (S + 1, B, H) c_t, from c_0 on;  squashed (S, B, H) tanh of the sum that makes c_t
    gate_grads  (S, B, 4·H), written: of the gates before their activation
    carried     (B, H) of c_t from later steps; replaced by that of c_{t-1} through the forget gate
    """
    samples, d = carried.shape
    one = gates.dtype.type(1)
    limit = gates.dtype.type(clip)
    for b in range(samples):
        for j in range(d):
            i, f, o, g = (
                gates[t, b, j], gates[t, b, d + j], gates[t, b, 2 * d + j], gates[t, b, 3 * d + j]
            )  # fmt: skip
            s, past = squashed[t, b, j], carried[b, j]
            through = h_grad[b, j] * o
            if compressed:
                grad = (through + past) * (one - s * s)
            else:
                inside = abs(cells[t + 1, b, j]) < limit
                grad = through * (one - s * s) + (past if inside else one - one)
            gate_grads[t, b, j] = grad * g * (i - i * i)
            gate_grads[t, b, d + j] = grad * cells[t, b, j] * (f - f * f)
            gate_grads[t, b, 2 * d + j] = h_grad[b, j] * s * (o - o * o)
            gate_grads[t, b, 3 * d + j] = grad * i * (one - g * g)
            carried[b, j] = grad * f


class Steps(NamedTuple):
    """Both directions, for fixed sizes."""

    forwards: Callable[..., None]
    backwards: Callable[..., None]


@cache
def steps(slots: int, width: int, heads: int, single: bool) -> Steps:
    """The two functions for memories of these sizes, in float32 if ``single``, else in float64."""
    return Steps(_forwards(slots, width, heads, single), _backwards(slots, width, heads, single))


def _forwards(N: int, W: int, R: int, single: bool) -> Callable[..., None]:
    real: Any = np.float32 if single else np.float64  # a bare 1 would turn float32 into float64
    zero, one, tiny = real(0), real(1), real(EPSILON)
    P, L = padded(N), linked(N)
    KEYS, STRENGTHS, KEY, STRENGTH, ERASE, WRITE, FREE, ALLOCATE, GATE, MODES, END = offsets(W, R)
    # Rows that loops write to lie in one array at fixed places, so that none can be another.
    RAISED, WRITING, PRECEDENCE, READING = 0, P, 2 * P, 3 * P
    AHEAD, BEHIND, ROOM = (3 + R) * P, (3 + 2 * R) * P, (3 + 3 * R) * P

    @fast
    def forwards(
        at, before, after, bias, orders, memory, norms, usage, precedence, link, writing, reading,
        order, allocation, behind, ahead, similar, content, reads,
    ):  # fmt: skip
        """One step of all samples.

        orders  without its bias at first, then squashed
        reads   (B, R·W), written
        """
        samples = orders.shape[1]
        row = usage.shape[2]  # P; a loop this short would be unrolled if its end were a constant
        rows = np.zeros(ROOM, orders.dtype)
        for b in range(samples):
            for k in range(END):
                orders[at, b, k] += bias[k]
            for k in range(STRENGTHS, STRENGTHS + R):
                orders[at, b, k] = _softplus(orders[at, b, k])
            orders[at, b, STRENGTH] = _softplus(orders[at, b, STRENGTH])
            for k in range(ERASE, ERASE + W):
                orders[at, b, k] = _sigmoid(orders[at, b, k])
            for k in range(FREE, FREE + R + 2):  # and both gates
                orders[at, b, k] = _sigmoid(orders[at, b, k])
            for r in range(R):
                most = orders[at, b, MODES + 3 * r]
                for k in range(1, 3):
                    most = max(most, orders[at, b, MODES + 3 * r + k])
                total = zero
                for k in range(3):
                    e = math.exp(orders[at, b, MODES + 3 * r + k] - most)
                    orders[at, b, MODES + 3 * r + k] = e
                    total += e
                for k in range(3):
                    orders[at, b, MODES + 3 * r + k] /= total

            # Usage.
            for n in range(P):
                used, wrote = usage[before, b, n], writing[before, b, n]
                rows[RAISED + n] = used + wrote - used * wrote
                rows[PRECEDENCE + n] = precedence[before, b, n]
            for r in range(R):
                free = orders[at, b, FREE + r]
                for n in range(P):
                    rows[READING + r * P + n] = reading[before, b, r * P + n]
                    rows[RAISED + n] *= one - free * rows[READING + r * P + n]
            for n in range(P):
                usage[after, b, n] = rows[RAISED + n]
                rows[RAISED + n] = tiny + (one - tiny) * rows[RAISED + n]

            # Slots from least to most used, beginning with the order of the step before.
            for k in range(N):
                n = order[before, b, k]
                used = rows[RAISED + n]
                j = k
                while j > 0:
                    m = order[after, b, j - 1]
                    if rows[RAISED + m] < used or (rows[RAISED + m] == used and m < n):
                        break
                    order[after, b, j] = m
                    j -= 1
                order[after, b, j] = n
            product = one
            for k in range(N):
                n = order[after, b, k]
                allocation[at, b, n] = (one - rows[RAISED + n]) * product
                product *= rows[RAISED + n]

            # The write head looks for its key.
            length = tiny
            for n in range(P):
                similar[at, b, n] = zero
            for w in range(W):
                key = orders[at, b, KEY + w]
                length += key * key
                for n in range(P):
                    similar[at, b, n] += key * memory[before, b, w * P + n]
            length = real(math.sqrt(length))
            for n in range(P):
                similar[at, b, n] /= length * norms[before, b, n] + tiny
            strength = orders[at, b, STRENGTH]
            most = similar[at, b, 0]
            for n in range(N):
                most = max(most, similar[at, b, n])
            total = zero
            for n in range(N):
                x = strength * (similar[at, b, n] - most)
                e = exp32(x) if single else math.exp(x)
                content[at, b, n] = e
                total += e
            gate = orders[at, b, GATE]
            new = gate * orders[at, b, ALLOCATE]
            found = gate - new
            written = zero
            for n in range(N):
                content[at, b, n] /= total
                weight = new * allocation[at, b, n] + found * content[at, b, n]
                writing[after, b, n] = weight
                rows[WRITING + n] = weight
                written += weight

            # Write.
            for n in range(P):
                norms[after, b, n] = tiny
                precedence[after, b, n] = (one - written) * rows[PRECEDENCE + n] + rows[WRITING + n]
            for w in range(W):
                erase, write = orders[at, b, ERASE + w], orders[at, b, WRITE + w]
                for n in range(P):
                    weight = rows[WRITING + n]
                    x = memory[before, b, w * P + n] * (one - weight * erase) + weight * write
                    memory[after, b, w * P + n] = x
                    norms[after, b, n] += x * x
            for n in range(P):
                norms[after, b, n] = math.sqrt(norms[after, b, n])

            # Link, and follow the links, four rows at a time.
            for n in range(R * P):
                rows[BEHIND + n] = zero
            for i in range(0, L, BLOCK):
                for k in range(i, i + BLOCK):
                    weight = rows[WRITING + k]
                    for j in range(P):
                        scale = one - weight - rows[WRITING + j]
                        link[after, b, k * P + j] = (
                            scale * link[before, b, k * P + j] + weight * rows[PRECEDENCE + j]
                        )
                    link[after, b, k * P + k] = zero
                a = i * P
                for r in range(R):
                    seen = READING + r * P
                    s0, s1, s2, s3 = (
                        rows[seen + i], rows[seen + i + 1], rows[seen + i + 2], rows[seen + i + 3]
                    )  # fmt: skip
                    t0, t1, t2, t3 = zero, zero, zero, zero
                    for j in range(P):
                        x0, x1 = link[after, b, a + j], link[after, b, a + P + j]
                        x2, x3 = link[after, b, a + 2 * P + j], link[after, b, a + 3 * P + j]
                        there = rows[seen + j]
                        t0 += x0 * there
                        t1 += x1 * there
                        t2 += x2 * there
                        t3 += x3 * there
                        rows[BEHIND + r * P + j] += s0 * x0 + s1 * x1 + s2 * x2 + s3 * x3
                    led = AHEAD + r * P + i
                    rows[led], rows[led + 1], rows[led + 2], rows[led + 3] = t0, t1, t2, t3

            # The read heads look for their keys, and read.
            for r in range(R):
                here = (1 + r) * P
                length = tiny
                for n in range(P):
                    similar[at, b, here + n] = zero
                for w in range(W):
                    key = orders[at, b, KEYS + r * W + w]
                    length += key * key
                    for n in range(P):
                        similar[at, b, here + n] += key * memory[after, b, w * P + n]
                length = real(math.sqrt(length))
                for n in range(P):
                    similar[at, b, here + n] /= length * norms[after, b, n] + tiny
                strength = orders[at, b, STRENGTHS + r]
                most = similar[at, b, here]
                for n in range(N):
                    most = max(most, similar[at, b, here + n])
                total = zero
                for n in range(N):
                    x = strength * (similar[at, b, here + n] - most)
                    e = exp32(x) if single else math.exp(x)
                    content[at, b, here + n] = e
                    total += e
                for n in range(N):
                    content[at, b, here + n] /= total
                back, key, on = (
                    orders[at, b, MODES + 3 * r],
                    orders[at, b, MODES + 3 * r + 1],
                    orders[at, b, MODES + 3 * r + 2],
                )
                for n in range(P):
                    behind[at, b, r * P + n] = rows[BEHIND + r * P + n]
                    ahead[at, b, r * P + n] = rows[AHEAD + r * P + n]
                    rows[READING + r * P + n] = (
                        back * rows[BEHIND + r * P + n]
                        + key * content[at, b, here + n]
                        + on * rows[AHEAD + r * P + n]
                    )
                    reading[after, b, r * P + n] = rows[READING + r * P + n]
                for w in range(W):
                    total = zero
                    for n in range(row):
                        total += rows[READING + r * P + n] * memory[after, b, w * P + n]
                    reads[b, r * W + w] = total

    return forwards


def _backwards(N: int, W: int, R: int, single: bool) -> Callable[..., None]:
    real: Any = np.float32 if single else np.float64
    zero, one, tiny = real(0), real(1), real(EPSILON)
    P, L = padded(N), linked(N)
    KEYS, STRENGTHS, KEY, STRENGTH, ERASE, WRITE, FREE, ALLOCATE, GATE, MODES, _ = offsets(W, R)
    # Values of the step before, and of this one; then gradients.
    RAISED, WRITING, PRECEDENCE, READING = 0, P, 2 * P, 3 * P
    WRITING_GRAD, PRECEDENCE_GRAD, NORM_GRAD, DOT_GRAD = ((3 + R + k) * P for k in range(4))
    AHEAD_GRAD, BEHIND_GRAD, OLD_GRAD, NEW_GRAD = ((7 + (1 + k) * R) * P for k in range(4))
    ROOM = (7 + 5 * R) * P

    @fast
    def backwards(
        at, before, after, orders, memory, norms, usage, precedence, link, writing, reading,
        order, allocation, behind, ahead, similar, content,
        read_grads, order_grads, memory_grad, usage_grad, precedence_grad, link_grad, reading_grad,
    ):  # fmt: skip
        """One step back, from the gradients of what this step gave to those of what it was given.

        read_grads   (B, R·W) of its reads
        order_grads  (S, B, ·) of ξ_t before it was squashed, written
        the others   of the states ``after``, replaced by those of the states ``before``; no
                     gradient goes to the write weighting before, as usage does not learn
        """
        samples = orders.shape[1]
        rows = np.zeros(ROOM, orders.dtype)
        for b in range(samples):
            written = zero
            for n in range(P):
                rows[WRITING + n] = writing[after, b, n]
                rows[PRECEDENCE + n] = precedence[before, b, n]
                rows[NORM_GRAD + n] = zero
                written += rows[WRITING + n]
            for n in range(R * P):
                rows[READING + n] = reading[before, b, n]
                rows[NEW_GRAD + n] = reading_grad[b, n]
                rows[OLD_GRAD + n] = zero

            # Reads.
            for r in range(R):
                for w in range(W):
                    grad = read_grads[b, r * W + w]
                    for n in range(P):
                        rows[NEW_GRAD + r * P + n] += grad * memory[after, b, w * P + n]
                    for n in range(P):
                        memory_grad[b, w * P + n] += grad * reading[after, b, r * P + n]

            # Modes, and looking for the keys of the read heads.
            for r in range(R):
                here = (1 + r) * P
                back, key, on = (
                    orders[at, b, MODES + 3 * r],
                    orders[at, b, MODES + 3 * r + 1],
                    orders[at, b, MODES + 3 * r + 2],
                )
                back_grad, key_grad, on_grad = zero, zero, zero
                for n in range(P):
                    grad = rows[NEW_GRAD + r * P + n]
                    back_grad += grad * behind[at, b, r * P + n]
                    key_grad += grad * content[at, b, here + n]
                    on_grad += grad * ahead[at, b, r * P + n]
                for n in range(P):
                    grad = rows[NEW_GRAD + r * P + n]
                    rows[BEHIND_GRAD + r * P + n] = back * grad
                    rows[AHEAD_GRAD + r * P + n] = on * grad
                mean = back * back_grad + key * key_grad + on * on_grad
                order_grads[at, b, MODES + 3 * r] = back * (back_grad - mean)
                order_grads[at, b, MODES + 3 * r + 1] = key * (key_grad - mean)
                order_grads[at, b, MODES + 3 * r + 2] = on * (on_grad - mean)

                strength, square = orders[at, b, STRENGTHS + r], tiny
                for w in range(W):
                    square += orders[at, b, KEYS + r * W + w] * orders[at, b, KEYS + r * W + w]
                length = real(math.sqrt(square))
                strength_grad, length_grad = zero, zero
                for n in range(P):
                    grad = content[at, b, here + n] * key
                    grad *= rows[NEW_GRAD + r * P + n] - key_grad
                    alike, norm = similar[at, b, here + n], norms[after, b, n]
                    strength_grad += grad * alike
                    grad *= strength / (length * norm + tiny)
                    rows[DOT_GRAD + n] = grad
                    rows[NORM_GRAD + n] -= grad * alike * length
                    length_grad -= grad * alike * norm
                order_grads[at, b, STRENGTHS + r] = strength_grad * (1 - math.exp(-strength))
                length_grad /= length
                for w in range(W):
                    key = orders[at, b, KEYS + r * W + w]
                    grad = length_grad * key
                    for n in range(P):
                        grad += rows[DOT_GRAD + n] * memory[after, b, w * P + n]
                        memory_grad[b, w * P + n] += rows[DOT_GRAD + n] * key
                    order_grads[at, b, KEYS + r * W + w] = grad
            for n in range(P):
                rows[NORM_GRAD + n] /= norms[after, b, n]

            # Links.
            whole = zero
            for n in range(P):
                grad = precedence_grad[b, n]
                whole -= grad * rows[PRECEDENCE + n]
                rows[WRITING_GRAD + n] = grad
                rows[PRECEDENCE_GRAD + n] = (one - written) * grad
            for i in range(0, L, BLOCK):
                a = i * P
                for r in range(R):
                    seen, led, back = READING + r * P, AHEAD_GRAD + r * P + i, BEHIND_GRAD + r * P
                    s0, s1, s2, s3 = (
                        rows[seen + i], rows[seen + i + 1], rows[seen + i + 2], rows[seen + i + 3]
                    )  # fmt: skip
                    l0, l1, l2, l3 = rows[led], rows[led + 1], rows[led + 2], rows[led + 3]
                    t0, t1, t2, t3 = zero, zero, zero, zero
                    for j in range(P):
                        x0, x1 = link[after, b, a + j], link[after, b, a + P + j]
                        x2, x3 = link[after, b, a + 2 * P + j], link[after, b, a + 3 * P + j]
                        there, grad = rows[seen + j], rows[back + j]
                        rows[OLD_GRAD + r * P + j] += l0 * x0 + l1 * x1 + l2 * x2 + l3 * x3
                        t0 += grad * x0
                        t1 += grad * x1
                        t2 += grad * x2
                        t3 += grad * x3
                        link_grad[b, a + j] += l0 * there + s0 * grad
                        link_grad[b, a + P + j] += l1 * there + s1 * grad
                        link_grad[b, a + 2 * P + j] += l2 * there + s2 * grad
                        link_grad[b, a + 3 * P + j] += l3 * there + s3 * grad
                    old = OLD_GRAD + r * P + i
                    rows[old] += t0
                    rows[old + 1] += t1
                    rows[old + 2] += t2
                    rows[old + 3] += t3
                for k in range(i, i + BLOCK):
                    link_grad[b, k * P + k] = zero
                    weight, total = rows[WRITING + k], zero
                    for j in range(P):
                        grad = link_grad[b, k * P + j]
                        changed = grad * link[before, b, k * P + j]
                        total += grad * rows[PRECEDENCE + j] - changed
                        rows[WRITING_GRAD + j] -= changed
                        rows[PRECEDENCE_GRAD + j] += grad * weight
                        link_grad[b, k * P + j] = grad * (one - weight - rows[WRITING + j])
                    rows[WRITING_GRAD + k] += total
            for n in range(P):
                rows[WRITING_GRAD + n] += whole
                precedence_grad[b, n] = rows[PRECEDENCE_GRAD + n]

            # Write; and the share of the words' lengths.
            for w in range(W):
                erase, write = orders[at, b, ERASE + w], orders[at, b, WRITE + w]
                erase_grad, write_grad = zero, zero
                for n in range(P):
                    grad = memory_grad[b, w * P + n]
                    grad += rows[NORM_GRAD + n] * memory[after, b, w * P + n]
                    weighted, old = grad * rows[WRITING + n], memory[before, b, w * P + n]
                    rows[WRITING_GRAD + n] += grad * (write - old * erase)
                    erase_grad -= weighted * old
                    write_grad += weighted
                    memory_grad[b, w * P + n] = grad - weighted * erase
                order_grads[at, b, ERASE + w] = erase_grad * erase * (one - erase)
                order_grads[at, b, WRITE + w] = write_grad

            # Gates, and looking for the key of the write head.
            gate, new = orders[at, b, GATE], orders[at, b, ALLOCATE]
            gate_grad, new_grad, mean = zero, zero, zero
            for n in range(N):
                grad = rows[WRITING_GRAD + n]
                a, c = allocation[at, b, n], content[at, b, n]
                gate_grad += grad * (new * a + (one - new) * c)
                new_grad += grad * (a - c)
                mean += grad * c
            order_grads[at, b, GATE] = gate_grad * gate * (one - gate)
            order_grads[at, b, ALLOCATE] = new_grad * gate * new * (one - new)
            strength, square = orders[at, b, STRENGTH], tiny
            for w in range(W):
                square += orders[at, b, KEY + w] * orders[at, b, KEY + w]
            length = real(math.sqrt(square))
            strength_grad, length_grad = zero, zero
            found = gate * (one - new)
            for n in range(P):
                grad = content[at, b, n] * found * (rows[WRITING_GRAD + n] - mean)
                alike, norm = similar[at, b, n], norms[before, b, n]
                strength_grad += grad * alike
                grad *= strength / (length * norm + tiny)
                rows[DOT_GRAD + n] = grad
                rows[NORM_GRAD + n] = -grad * alike * length / norm
                length_grad -= grad * alike * norm
            order_grads[at, b, STRENGTH] = strength_grad * (1 - math.exp(-strength))
            length_grad /= length
            for w in range(W):
                key = orders[at, b, KEY + w]
                grad = length_grad * key
                for n in range(P):
                    word = memory[before, b, w * P + n]
                    grad += rows[DOT_GRAD + n] * word
                    memory_grad[b, w * P + n] += (
                        rows[DOT_GRAD + n] * key + rows[NORM_GRAD + n] * word
                    )
                order_grads[at, b, KEY + w] = grad

            # Allocation: DOT_GRAD now holds the products of the less used slots.
            product = one
            for k in range(N):
                n = order[after, b, k]
                rows[RAISED + n] = tiny + (one - tiny) * usage[after, b, n]
                rows[DOT_GRAD + n] = product
                product *= rows[RAISED + n]
            share, later = gate * new, zero
            for k in range(N - 1, -1, -1):
                n = order[after, b, k]
                grad = share * rows[WRITING_GRAD + n]
                raised_grad = later / rows[RAISED + n] - grad * rows[DOT_GRAD + n]
                later += grad * allocation[at, b, n]
                usage_grad[b, n] += (one - tiny) * raised_grad

            # Usage: NEW_GRAD now holds the products of the heads before.
            for n in range(P):
                used, wrote = usage[before, b, n], writing[before, b, n]
                rows[RAISED + n] = one
                rows[NORM_GRAD + n] = usage_grad[b, n] * (used + wrote - used * wrote)
                rows[DOT_GRAD + n] = one
            for r in range(R):
                free = orders[at, b, FREE + r]
                for n in range(P):
                    rows[NEW_GRAD + r * P + n] = rows[RAISED + n]
                    rows[RAISED + n] *= one - free * rows[READING + r * P + n]
            for n in range(P):
                usage_grad[b, n] *= rows[RAISED + n] * (one - writing[before, b, n])
            for r in range(R - 1, -1, -1):
                free, free_grad = orders[at, b, FREE + r], zero
                for n in range(P):
                    grad = rows[NORM_GRAD + n] * rows[NEW_GRAD + r * P + n] * rows[DOT_GRAD + n]
                    old = rows[READING + r * P + n]
                    free_grad -= grad * old
                    reading_grad[b, r * P + n] = rows[OLD_GRAD + r * P + n] - grad * free
                    rows[DOT_GRAD + n] *= one - free * old
                order_grads[at, b, FREE + r] = free_grad * free * (one - free)

    return backwards
