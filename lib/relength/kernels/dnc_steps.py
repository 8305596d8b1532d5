"""One step of a DNC's memory and its gradient, compiled by Numba for fixed sizes.

The equations are those of relength.models.memory.dnc_memory under its rules DEEPMIND. Eight samples
lie side by side (:mod:`relength.kernels.lanes`), so that a line that is written for one sample
computes eight; N, W and R are constants of the machine code. A batch is groups of eight; places of
the last one that no sample has hold numbers that nobody reads.

| array | numbers of a step of a group | what |
| --- | --- | --- |
| memory, norms | W·N, N | M_t word position by word position, and lengths of its words |
| usage, precedence | N, N | u_t, p_t |
| link | L·N | L_t; L is N rounded up to a multiple of 4, and rows from N on are zero |
| writing, reading | L, R·L | w^w_t, w^{r,i}_t; numbers from N on are zero |
| orders | W·R + 3·W + 5·R + 3 | ξ_t |
| allocation, products | L, L | a_t, and the products of usages in it |
| behind, ahead | R·N, R·L | b^i_t, f^i_t |
| similar, content | (1 + R)·N | cosines and weightings by content, the write head first |

The first four lines are states: ``before`` and ``after`` are their places in time. The others have
one place a step, ``at``. The group is the second axis of all of them. What a batch leaves behind is
larger than a processor's cache, and to fetch it takes as long as to compute: so each step begins
with the group that the step before ended with.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from relength.kernels.jit import compiled
from relength.kernels.lanes import (
    LANES,
    eight,
    exponential,
    get,
    if_at_most,
    if_less,
    larger,
    nearest,
    put,
    root,
    two_to,
)

# Looking for a zero before every division would keep loops from becoming vector instructions.
fast = partial(compiled, error_model="numpy")

EPSILON = 1e-6
BLOCK = 4  # rows of links that are in registers together
STRAIGHT = 20  # from here on softplus is the identity, as in PyTorch


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


# exp of float32 as vectors: 2^n times a polynomial (Cephes, expf) in what is left. The C library's
# exp is called for one number after the other.
FAR, LOG2_E, LN2 = np.float32(88), np.float32(math.log2(math.e)), np.float32(math.log(2))
E1, E2, E3, E4, E5, E6, E7 = (
    np.float32(x)
    for x in (
        1,
        5.0000001201e-1,
        1.6666665459e-1,
        4.1665795894e-2,
        8.3334519073e-3,
        1.3981999507e-3,
        1.9875691500e-4,
    )
)


@fast
def exp32(x):
    """exp of a float32, or of lanes, up to 88; of larger numbers that of 88.

    Its relative error is below 2^-22 between ±20, and below 2^-21 from -87 on. Below -87.7 it is 0.
    """
    x = if_less(x, -FAR, -FAR, if_less(FAR, x, FAR, x))
    whole = nearest(x * LOG2_E)
    x = x - whole * LN2
    power = ((((E7 * x + E6) * x + E5) * x + E4) * x + E3) * x + E2
    power = power * x * x + x + E1
    return power * two_to(whole)


@fast
def _softplus(x):
    return math.log1p(math.exp(x)) if x <= STRAIGHT else x


@cache
def cell(single: bool) -> Callable[..., None]:
    """The gates of a constrained LSTM, in float32 if ``single``, else in float64."""
    one: Any = np.float32(1) if single else np.float64(1)

    @fast
    def forwards(t, at, bias, gates, cells, squashed, h, compressed, clip):
        """One step of relength.models.memory.constrained.GatedController, after its product.

        gates     (S, B, 4·H) i, f, o and the candidate without their bias (4·H), activated here;
                  ``at`` is their place
        cells     (S + 1, B, H) c_t, from c_0 on;  h (S, B, H) written
        squashed  (S, B, H) tanh of the sum that makes c_t; where that is c_t, it is cells[1:]
        """
        samples, d = h.shape[1], h.shape[2]
        limit = h.dtype.type(clip)
        # Loops that write one array each: of more, the compiler would fear that they overlap.
        for b in range(samples):
            for j in range(3 * d):
                x = -gates[at, b, j] - bias[j]
                gates[at, b, j] = one / (one + (exp32(x) if single else math.exp(x)))
            for j in range(3 * d, 4 * d):
                x = -gates[at, b, j] - bias[j]
                x += x
                x = one / (one + (exp32(x) if single else math.exp(x)))
                gates[at, b, j] = x + x - one
            for j in range(d):
                new = gates[at, b, j] * gates[at, b, 3 * d + j]
                cells[t + 1, b, j] = gates[at, b, d + j] * cells[t, b, j] + new
            for j in range(d):
                x = -cells[t + 1, b, j] - cells[t + 1, b, j]
                x = one / (one + (exp32(x) if single else math.exp(x)))
                h[t, b, j] = x + x - one
            for j in range(d):
                squashed[t, b, j] = h[t, b, j]
            for j in range(d):
                h[t, b, j] *= gates[at, b, 2 * d + j]
            if not compressed:
                for j in range(d):
                    cells[t + 1, b, j] = min(max(cells[t + 1, b, j], -limit), limit)

    return forwards


@fast
def gate_gradients(t, h_grad, gates, cells, squashed, carried, compressed, clip):
    """One step back through the cell of a constrained LSTM.

    h_grad    (B, H) of h_t
    gates     (S, B, 4·H) activations i, f, o and of the candidate; replaced by the gradients of
              what they were before their activation
    cells     (S + 1, B, H) c_t, from c_0 on;  squashed (S, B, H) tanh of the sum that makes c_t
    carried   (B, H) of c_t from later steps; replaced by that of c_{t-1} through the forget gate
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
            gates[t, b, j] = grad * g * (i - i * i)
            gates[t, b, d + j] = grad * cells[t, b, j] * (f - f * f)
            gates[t, b, 2 * d + j] = h_grad[b, j] * s * (o - o * o)
            gates[t, b, 3 * d + j] = grad * i * (one - g * g)
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
    L, exp = linked(N), exp32 if single else exponential
    KEYS, STRENGTHS, KEY, STRENGTH, ERASE, WRITE, FREE, ALLOCATE, GATE, MODES, END = offsets(W, R)

    @fast
    def look(asked, key, strength, memory, norms, similar, content, here):
        """A head looks for its key: cosines and weightings from place ``here`` on.

        key, strength  where in ``asked`` they are
        """
        length = eight(tiny)
        for w in range(W):
            length += get(asked, key + w) * get(asked, key + w)
        length = root(length)
        most = eight(-one)
        for n in range(0, N, 2):
            m = min(n + 1, N - 1)  # two slots at a time; the last of an odd number twice
            x, y = eight(zero), eight(zero)
            for w in range(W):
                part = get(asked, key + w)
                x += part * get(memory, w * N + n)
                y += part * get(memory, w * N + m)
            x /= length * get(norms, n) + tiny
            y /= length * get(norms, m) + tiny
            put(similar, here + n, x)
            put(similar, here + m, y)
            most = larger(most, larger(x, y))
        factor, total = get(asked, strength), eight(zero)
        for n in range(N):
            e = exp(factor * (get(similar, here + n) - most))
            put(content, here + n, e)
            total += e
        scale = one / total
        for n in range(N):
            put(content, here + n, get(content, here + n) * scale)

    @fast
    def forwards(
        at, before, after, emitted, bias, orders, memory, norms, usage, precedence, link, writing,
        reading, allocation, products, behind, ahead, similar, content, reads,
    ):  # fmt: skip
        """One step of all samples.

        emitted  (B, ·) ξ_t before it is squashed, without its bias
        reads    (B, R·W), written
        """
        samples = len(emitted)
        raised = np.zeros((L, LANES), memory.dtype)
        read_words = np.zeros((R * W, LANES), memory.dtype)
        groups = memory.shape[1]
        for group in range(groups):
            g = group if before % 2 else groups - 1 - group  # begin with what was touched last
            asked, alike, found = orders[at, g], similar[at, g], content[at, g]
            was_memory, now, lengths = memory[before, g], memory[after, g], norms[after, g]
            read, wrote, write = reading[before, g], writing[before, g], writing[after, g]
            first, follow = precedence[before, g], precedence[after, g]
            reads_now, was_used, is_used = reading[after, g], usage[before, g], usage[after, g]
            free, product_of = allocation[at, g], products[at, g]
            was, links, back, on = link[before, g], link[after, g], behind[at, g], ahead[at, g]
            here = min(LANES, samples - g * LANES)
            for s in range(here):
                b = g * LANES + s
                for k in range(END):
                    asked[k, s] = emitted[b, k] + bias[k]
                for k in range(STRENGTHS, STRENGTHS + R):
                    asked[k, s] = _softplus(asked[k, s])
                asked[STRENGTH, s] = _softplus(asked[STRENGTH, s])
            for k in range(ERASE, ERASE + W):
                put(asked, k, one / (one + exp(-get(asked, k))))
            for k in range(FREE, FREE + R + 2):  # and both gates
                put(asked, k, one / (one + exp(-get(asked, k))))
            for k in range(MODES, MODES + 3 * R, 3):
                x, y, z = get(asked, k), get(asked, k + 1), get(asked, k + 2)
                most = larger(larger(x, y), z)
                x, y, z = exp(x - most), exp(y - most), exp(z - most)
                total = x + y + z
                put(asked, k, x / total)
                put(asked, k + 1, y / total)
                put(asked, k + 2, z / total)

            # Usage.
            for n in range(N):
                x, y = get(was_used, n), get(wrote, n)
                used = x + y - x * y
                for r in range(R):
                    used *= one - get(asked, FREE + r) * get(read, r * L + n)
                put(is_used, n, used)
                put(raised, n, tiny + (one - tiny) * used)

            # Allocation: a slot is taken as far as those that are used less are in use.
            for n in range(0, N, 2):  # two at a time; what follows an odd number is not read
                used, p = get(raised, n), eight(one)
                next_used, q = get(raised, n + 1), if_at_most(used, get(raised, n + 1), used, one)
                if n + 1 < N:
                    p *= if_less(next_used, used, next_used, one)
                for m in range(n):
                    x = get(raised, m)
                    p *= if_at_most(x, used, x, one)
                    q *= if_at_most(x, next_used, x, one)
                for m in range(n + 2, N):
                    x = get(raised, m)
                    p *= if_less(x, used, x, one)
                    q *= if_less(x, next_used, x, one)
                put(product_of, n, p)
                put(product_of, n + 1, q)
                put(free, n, (one - used) * p)
                put(free, n + 1, (one - next_used) * q)

            # The write head.
            look(asked, KEY, STRENGTH, was_memory, norms[before, g], alike, found, 0)
            gate = get(asked, GATE)
            new = gate * get(asked, ALLOCATE)
            old, written = gate - new, eight(zero)
            for n in range(N):
                weight = new * get(free, n) + old * get(found, n)
                put(write, n, weight)
                written += weight
            for n in range(N):
                put(follow, n, (one - written) * get(first, n) + get(write, n))
            for n in range(N):
                put(lengths, n, tiny)
            for w in range(W):
                erased, word = get(asked, ERASE + w), get(asked, WRITE + w)
                for n in range(N):
                    weight = get(write, n)
                    x = get(was_memory, w * N + n) * (one - weight * erased) + weight * word
                    put(now, w * N + n, x)
                    put(lengths, n, get(lengths, n) + x * x)
            for n in range(N):
                put(lengths, n, root(get(lengths, n)))

            # Links, and where they lead, four rows at a time.
            for n in range(R * N):
                put(back, n, zero)
            for i in range(0, L, BLOCK):
                for k in range(i, i + BLOCK):
                    weight = get(write, k)
                    rest = one - weight
                    for j in range(N):
                        x = (rest - get(write, j)) * get(was, k * N + j) + weight * get(first, j)
                        put(links, k * N + j, x)
                    if k < N:
                        put(links, k * N + k, zero)
                a, b, c, d = i * N, (i + 1) * N, (i + 2) * N, (i + 3) * N
                for r in range(R):
                    led = r * L + i
                    s0, s1, s2, s3 = (
                        get(read, led), get(read, led + 1), get(read, led + 2), get(read, led + 3)
                    )  # fmt: skip
                    t0, t1, t2, t3 = eight(zero), eight(zero), eight(zero), eight(zero)
                    for j in range(N):
                        x0, x1 = get(links, a + j), get(links, b + j)
                        x2, x3 = get(links, c + j), get(links, d + j)
                        there = get(read, r * L + j)
                        t0 += x0 * there
                        t1 += x1 * there
                        t2 += x2 * there
                        t3 += x3 * there
                        x = get(back, r * N + j) + s0 * x0 + s1 * x1 + s2 * x2 + s3 * x3
                        put(back, r * N + j, x)
                    put(on, led, t0)
                    put(on, led + 1, t1)
                    put(on, led + 2, t2)
                    put(on, led + 3, t3)

            # The read heads.
            for r in range(R):
                start = (1 + r) * N
                look(asked, KEYS + r * W, STRENGTHS + r, now, lengths, alike, found, start)
                x, y, z = (
                    get(asked, MODES + 3 * r),
                    get(asked, MODES + 3 * r + 1),
                    get(asked, MODES + 3 * r + 2),
                )
                for n in range(N):
                    weight = x * get(back, r * N + n) + y * get(found, start + n)
                    put(reads_now, r * L + n, weight + z * get(on, r * L + n))
                for w in range(0, W, 2):
                    v = min(w + 1, W - 1)
                    x, y = eight(zero), eight(zero)
                    for n in range(N):
                        weight = get(reads_now, r * L + n)
                        x += weight * get(now, w * N + n)
                        y += weight * get(now, v * N + n)
                    put(read_words, r * W + w, x)
                    put(read_words, r * W + v, y)
            for s in range(here):
                for k in range(R * W):
                    reads[g * LANES + s, k] = read_words[k, s]

    return forwards


def _backwards(N: int, W: int, R: int, single: bool) -> Callable[..., None]:
    real: Any = np.float32 if single else np.float64
    zero, one, tiny = real(0), real(1), real(EPSILON)
    L, exp = linked(N), exp32 if single else exponential
    KEYS, STRENGTHS, KEY, STRENGTH, ERASE, WRITE, FREE, ALLOCATE, GATE, MODES, END = offsets(W, R)
    # Rows of what is needed only here.
    WRITE_GRAD, DOT_GRAD, NORM_GRAD, LATER, LINKS = 0, L, 2 * L, 3 * L, 4 * L
    READ_GRAD, BACK_GRAD, ON_GRAD, OLD_GRAD, ROOM = (
        (4 * L + BLOCK * N + k * R * L) for k in range(5)
    )
    RAISED, AFTER = DOT_GRAD, NORM_GRAD  # which are free again by then
    READS, ORDERS = 0, R * W

    @fast
    def looked(
        asked, key, strength, memory, norms, similar, content, here, rows, grads, scale, mean,
        order_grads, memory_grad,
    ):  # fmt: skip
        """Gradients of a key, a strength and the memory, from those of a weighting by content.

        grads        where in ``rows`` those of the weighting begin, which count ``scale`` times
        mean         the weighting's mean of them
        order_grads, memory_grad  are written, and added to
        """
        square, factor = eight(tiny), get(asked, strength)
        for w in range(W):
            square += get(asked, key + w) * get(asked, key + w)
        length = root(square)
        strength_grad, length_grad = eight(zero), eight(zero)
        for n in range(N):
            alike, norm = get(similar, here + n), get(norms, n)
            grad = get(content, here + n) * scale * (get(rows, grads + n) - mean)
            strength_grad += grad * alike
            grad *= factor / (length * norm + tiny)
            put(rows, DOT_GRAD + n, grad)
            grad *= alike
            put(rows, NORM_GRAD + n, -grad * length / norm)
            length_grad -= grad * norm
        put(order_grads, ORDERS + strength, strength_grad * (one - exp(-factor)))
        length_grad /= length
        for w in range(0, W, 2):
            v = min(w + 1, W - 1)
            w_part, v_part = get(asked, key + w), get(asked, key + v)
            w_grad, v_grad = length_grad * w_part, length_grad * v_part
            for n in range(N):
                dot, norm = get(rows, DOT_GRAD + n), get(rows, NORM_GRAD + n)
                word = get(memory, w * N + n)
                w_grad += dot * word
                x = get(memory_grad, w * N + n) + dot * w_part + norm * word
                put(memory_grad, w * N + n, x)
                if w < v:
                    word = get(memory, v * N + n)
                    v_grad += dot * word
                    x = get(memory_grad, v * N + n) + dot * v_part + norm * word
                    put(memory_grad, v * N + n, x)
            put(order_grads, ORDERS + key + v, v_grad)
            put(order_grads, ORDERS + key + w, w_grad)

    @fast
    def backwards(
        at, before, after, orders, memory, norms, usage, precedence, link, writing, reading,
        allocation, products, behind, ahead, similar, content,
        read_grads, emitted_grads, memory_grad, usage_grad, precedence_grad, link_grad,
        reading_grad,
    ):  # fmt: skip
        """One step back, from the gradients of what this step gave to those of what it was given.

        read_grads     (B, R·W) of its reads
        emitted_grads  (S, B, ·) of ξ_t before it was squashed, written
        the others     of the states ``after``, replaced by those of the states ``before``; no
                       gradient goes to the write weighting before, as usage does not learn
        """
        samples = len(read_grads)
        rows = np.zeros((ROOM, LANES), memory.dtype)
        grads = np.zeros((ORDERS + END, LANES), memory.dtype)  # of the reads, then of ξ_t
        groups = memory.shape[1]
        for group in range(groups):
            g = group if before % 2 else groups - 1 - group
            asked, now, write = orders[at, g], memory[after, g], writing[after, g]
            read, found, alike = reading[before, g], content[at, g], similar[at, g]
            back, on, reads_now = behind[at, g], ahead[at, g], reading[after, g]
            was, link_grads = link[before, g], link_grad[g]
            first, first_grads = precedence[before, g], precedence_grad[g]
            was_memory, memory_grads = memory[before, g], memory_grad[g]
            reading_grads = reading_grad[g]
            free_slots, product_of = allocation[at, g], products[at, g]
            was_used, is_used, use_grads = usage[before, g], usage[after, g], usage_grad[g]
            wrote = writing[before, g]
            here = min(LANES, samples - g * LANES)
            for s in range(here):
                for k in range(R * W):
                    grads[READS + k, s] = read_grads[g * LANES + s, k]

            # Reads.
            for r in range(R):
                for n in range(N):
                    put(rows, READ_GRAD + r * N + n, get(reading_grads, r * L + n))
                for w in range(0, W, 2):
                    v = min(w + 1, W - 1)
                    w_grad, v_grad = get(grads, READS + r * W + w), get(grads, READS + r * W + v)
                    for n in range(N):
                        weight = get(reads_now, r * L + n)
                        x = get(rows, READ_GRAD + r * N + n) + w_grad * get(now, w * N + n)
                        put(memory_grads, w * N + n, get(memory_grads, w * N + n) + w_grad * weight)
                        if w < v:
                            x += v_grad * get(now, v * N + n)
                            y = get(memory_grads, v * N + n) + v_grad * weight
                            put(memory_grads, v * N + n, y)
                        put(rows, READ_GRAD + r * N + n, x)

            # Modes, and looking for the keys of the read heads.
            for r in range(R):
                modes = MODES + 3 * r
                x, y, z = get(asked, modes), get(asked, modes + 1), get(asked, modes + 2)
                x_grad, y_grad, z_grad = eight(zero), eight(zero), eight(zero)
                for n in range(N):
                    grad = get(rows, READ_GRAD + r * N + n)
                    x_grad += grad * get(back, r * N + n)
                    y_grad += grad * get(found, (1 + r) * N + n)
                    z_grad += grad * get(on, r * L + n)
                    put(rows, BACK_GRAD + r * N + n, x * grad)
                    put(rows, ON_GRAD + r * L + n, z * grad)
                mean = x * x_grad + y * y_grad + z * z_grad
                put(grads, ORDERS + modes, x * (x_grad - mean))
                put(grads, ORDERS + modes + 1, y * (y_grad - mean))
                put(grads, ORDERS + modes + 2, z * (z_grad - mean))
                looked(
                    asked, KEYS + r * W, STRENGTHS + r, now, norms[after, g], alike, found,
                    (1 + r) * N, rows, READ_GRAD + r * N, y, y_grad, grads, memory_grads,
                )  # fmt: skip

            # Links.
            whole, written = eight(zero), eight(zero)
            for n in range(N):
                written += get(write, n)
            rest = one - written
            for n in range(N):
                grad = get(first_grads, n)
                whole -= grad * get(first, n)
                put(rows, WRITE_GRAD + n, grad)
                put(first_grads, n, rest * grad)
            for n in range(R * L):
                put(rows, OLD_GRAD + n, zero)
            for i in range(0, L, BLOCK):
                # Links as they were made: to make them again is cheaper than to fetch them.
                for k in range(i, i + BLOCK):
                    weight = get(write, k)
                    rest, to = one - weight, LINKS + (k - i) * N
                    for j in range(N):
                        x = (rest - get(write, j)) * get(was, k * N + j) + weight * get(first, j)
                        put(rows, to + j, x)
                    if k < N:
                        put(rows, to + k, zero)
                a, b, c, d = i * N, (i + 1) * N, (i + 2) * N, (i + 3) * N
                for r in range(R):
                    led, to = r * L + i, ON_GRAD + r * L + i
                    s0, s1, s2, s3 = (
                        get(read, led), get(read, led + 1), get(read, led + 2), get(read, led + 3)
                    )  # fmt: skip
                    l0, l1, l2, l3 = (
                        get(rows, to), get(rows, to + 1), get(rows, to + 2), get(rows, to + 3)
                    )  # fmt: skip
                    t0, t1, t2, t3 = eight(zero), eight(zero), eight(zero), eight(zero)
                    for j in range(N):
                        x0, x1 = get(rows, LINKS + j), get(rows, LINKS + N + j)
                        x2, x3 = get(rows, LINKS + 2 * N + j), get(rows, LINKS + 3 * N + j)
                        there, grad = get(read, r * L + j), get(rows, BACK_GRAD + r * N + j)
                        t0 += grad * x0
                        t1 += grad * x1
                        t2 += grad * x2
                        t3 += grad * x3
                        x = get(rows, OLD_GRAD + r * L + j) + l0 * x0 + l1 * x1 + l2 * x2 + l3 * x3
                        put(rows, OLD_GRAD + r * L + j, x)
                        put(link_grads, a + j, get(link_grads, a + j) + l0 * there + s0 * grad)
                        put(link_grads, b + j, get(link_grads, b + j) + l1 * there + s1 * grad)
                        put(link_grads, c + j, get(link_grads, c + j) + l2 * there + s2 * grad)
                        put(link_grads, d + j, get(link_grads, d + j) + l3 * there + s3 * grad)
                    to = OLD_GRAD + led
                    put(rows, to, get(rows, to) + t0)
                    put(rows, to + 1, get(rows, to + 1) + t1)
                    put(rows, to + 2, get(rows, to + 2) + t2)
                    put(rows, to + 3, get(rows, to + 3) + t3)
                for k in range(i, min(i + BLOCK, N)):
                    put(link_grads, k * N + k, zero)
                s0, s1, s2, s3 = (
                    get(write, i), get(write, i + 1), get(write, i + 2), get(write, i + 3)
                )  # fmt: skip
                t0, t1, t2, t3 = eight(zero), eight(zero), eight(zero), eight(zero)
                for j in range(N):
                    l0, l1 = get(link_grads, a + j), get(link_grads, b + j)
                    l2, l3 = get(link_grads, c + j), get(link_grads, d + j)
                    x0, x1 = l0 * get(was, a + j), l1 * get(was, b + j)
                    x2, x3 = l2 * get(was, c + j), l3 * get(was, d + j)
                    x = get(first, j)
                    t0 += l0 * x - x0
                    t1 += l1 * x - x1
                    t2 += l2 * x - x2
                    t3 += l3 * x - x3
                    x = get(rows, WRITE_GRAD + j) - (x0 + x1 + x2 + x3)
                    put(rows, WRITE_GRAD + j, x)
                    x = get(first_grads, j) + l0 * s0 + l1 * s1 + l2 * s2 + l3 * s3
                    put(first_grads, j, x)
                    rest = one - get(write, j)
                    put(link_grads, a + j, l0 * (rest - s0))
                    put(link_grads, b + j, l1 * (rest - s1))
                    put(link_grads, c + j, l2 * (rest - s2))
                    put(link_grads, d + j, l3 * (rest - s3))
                to = WRITE_GRAD + i
                put(rows, to, get(rows, to) + t0)
                put(rows, to + 1, get(rows, to + 1) + t1)
                put(rows, to + 2, get(rows, to + 2) + t2)
                put(rows, to + 3, get(rows, to + 3) + t3)
            for n in range(N):
                put(rows, WRITE_GRAD + n, get(rows, WRITE_GRAD + n) + whole)

            # Write.
            for w in range(W):
                erased, word = get(asked, ERASE + w), get(asked, WRITE + w)
                erase_grad, word_grad = eight(zero), eight(zero)
                for n in range(N):
                    grad, old = get(memory_grads, w * N + n), get(was_memory, w * N + n)
                    weighted = grad * get(write, n)
                    x = get(rows, WRITE_GRAD + n) + grad * (word - old * erased)
                    put(rows, WRITE_GRAD + n, x)
                    erase_grad -= weighted * old
                    word_grad += weighted
                    put(memory_grads, w * N + n, grad - weighted * erased)
                put(grads, ORDERS + ERASE + w, erase_grad * erased * (one - erased))
                put(grads, ORDERS + WRITE + w, word_grad)

            # Gates, and looking for the key of the write head.
            gate, new = get(asked, GATE), get(asked, ALLOCATE)
            gate_grad, new_grad, mean = eight(zero), eight(zero), eight(zero)
            for n in range(N):
                grad = get(rows, WRITE_GRAD + n)
                x, y = get(free_slots, n), get(found, n)
                gate_grad += grad * (new * x + (one - new) * y)
                new_grad += grad * (x - y)
                mean += grad * y
                put(rows, LATER + n, gate * new * grad * x)
            put(grads, ORDERS + GATE, gate_grad * gate * (one - gate))
            put(grads, ORDERS + ALLOCATE, new_grad * gate * new * (one - new))
            looked(
                asked, KEY, STRENGTH, was_memory, norms[before, g], alike, found,
                0, rows, WRITE_GRAD, gate * (one - new), mean, grads, memory_grads,
            )  # fmt: skip

            # Allocation: a slot that is used more is taken less, and those after it more.
            for n in range(N):
                put(rows, RAISED + n, tiny + (one - tiny) * get(is_used, n))
            for n in range(0, N, 2):
                used, next_used = get(rows, RAISED + n), get(rows, RAISED + n + 1)
                p = if_at_most(used, next_used, get(rows, LATER + n + 1), zero)
                q = if_less(next_used, used, get(rows, LATER + n), zero)
                for m in range(n):
                    x, y = get(rows, RAISED + m), get(rows, LATER + m)
                    p += if_less(used, x, y, zero)
                    q += if_less(next_used, x, y, zero)
                for m in range(n + 2, N):
                    x, y = get(rows, RAISED + m), get(rows, LATER + m)
                    p += if_at_most(used, x, y, zero)
                    q += if_at_most(next_used, x, y, zero)
                put(rows, AFTER + n, p)
                put(rows, AFTER + n + 1, q)
            for n in range(N):
                grad = gate * new * get(rows, WRITE_GRAD + n) * get(product_of, n)
                grad = get(rows, AFTER + n) / get(rows, RAISED + n) - grad
                put(use_grads, n, get(use_grads, n) + (one - tiny) * grad)

            # Usage.
            for r in range(R):
                put(grads, ORDERS + FREE + r, zero)
            for n in range(N):
                x, y, grad = get(was_used, n), get(wrote, n), get(use_grads, n)
                kept = eight(one)
                for r in range(R):
                    free = get(asked, FREE + r)
                    others = grad * (x + y - x * y)
                    for q in range(R):
                        if q != r:
                            others *= one - get(asked, FREE + q) * get(read, q * L + n)
                    old = get(read, r * L + n)
                    put(grads, ORDERS + FREE + r, get(grads, ORDERS + FREE + r) - others * old)
                    put(reading_grads, r * L + n, get(rows, OLD_GRAD + r * L + n) - others * free)
                    kept *= one - free * old
                put(use_grads, n, grad * kept * (one - y))
            for r in range(R):
                free = get(asked, FREE + r)
                grad = get(grads, ORDERS + FREE + r) * free * (one - free)
                put(grads, ORDERS + FREE + r, grad)

            for s in range(here):
                for k in range(END):
                    emitted_grads[at, g * LANES + s, k] = grads[ORDERS + k, s]

    return backwards
