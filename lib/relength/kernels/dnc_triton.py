"""One step of a DNC's memory as a Triton kernel, forwards and backwards, for a GPU.

The equations are those of relength.models.memory.dnc_memory.access, whose names are used here; a
test compares values and gradients. One program computes one sample: its memory and its rows of N
numbers stay in registers, and links are read and written in blocks of rows. PyTorch needs about a
hundred kernels for the same step.

No slots are sorted. What is allocated to slot n is (1 - u[n]) times the product of u[m] over all
slots m that come before n, so a product over the N × N relation "comes before" gives it.

The step backwards computes what it needs of the step forwards once more, so that nothing but the
states is kept between the two.

Triton's interpreter (``TRITON_INTERPRET=1`` before this module is imported) runs the same without a
GPU, slowly.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd import Function

from relength.kernels.dnc_steps import offsets

# Where the parts of an order begin that follow the read keys; and its size.
PARTS = (
    "STRENGTHS",
    "KEY",
    "STRENGTH",
    "ERASE",
    "WRITE",
    "FREE",
    "ALLOCATE",
    "GATE",
    "MODES",
    "SIZE",
)
BLOCK = 4096  # numbers of links, or of links times heads, that a program holds at once

# B samples, N slots, W numbers in a slot, R read heads; BN, BW and BR are these, padded to powers
# of two, and BI rows of links are one block. An order is a part of the interface vector, and orders
# lie one behind the other as relength.models.memory.dnc_memory.Interface has them.


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def _rows_of(x, rows, n):
    """x[rows] for x (BN,): (BI,)."""
    return tl.sum(tl.where(rows[:, None] == n[None, :], x[None, :], 0.0), 1)


@triton.jit
def _at_rows(x, rows, n):
    """(BN,) with x (BI,) at the places ``rows``, and zeros."""
    return tl.sum(tl.where(rows[:, None] == n[None, :], x[:, None], 0.0), 0)


@triton.jit
def _heads_at_rows(x, rows, n):
    """(BR, BN) with x (BR, BI) of each head at the places ``rows``, and zeros."""
    return tl.sum(tl.where(rows[None, :, None] == n[None, None, :], x[:, :, None], 0.0), 1)


@triton.jit
def _before(raised, rows, n, N: tl.constexpr):
    """Tell which slots ``rows`` come before slot n (BI, BN), and how far they are used (BI, 1)."""
    used = _rows_of(raised, rows, n)[:, None]
    first = (used == raised[None, :]) & (rows[:, None] < n[None, :])
    return ((used < raised[None, :]) | first) & (rows[:, None] < N), used


@triton.jit
def _used_before(raised, n, N: tl.constexpr, BI: tl.constexpr):
    """Products (BN,) of how far the slots that come before each slot are used."""
    product = raised * 0.0 + 1.0
    for start in range(0, N, BI):
        before, used = _before(raised, start + tl.arange(0, BI), n, N)
        product *= tl.reduce(tl.where(before, used, 1.0), 0, _times)
    return product


@triton.jit
def _used_before_gradient(grad, raised, product, n, N: tl.constexpr, BI: tl.constexpr):
    """Gradient (BN,) of the usage, from that of the products."""
    found = raised * 0.0
    for start in range(0, N, BI):
        rows = start + tl.arange(0, BI)
        before, used = _before(raised, rows, n, N)
        share = tl.sum(tl.where(before, (grad * product)[None, :] / used, 0.0), 1)
        found += _at_rows(share, rows, n)
    return found


@triton.jit
def _lengths(x):
    """Lengths of the rows of x (·, BW), as cosines take them."""
    return tl.sqrt(tl.sum(x * x, 1) + 1e-6)


@triton.jit
def _content(memory, keys, strengths, there, epsilon):
    """Weightings, cosines (BR, BN) and lengths of rows (BN,) and keys (BR,), for keys (BR, BW)."""
    norms, lengths = _lengths(memory), _lengths(keys)
    dots = tl.sum(keys[:, None, :] * memory[None, :, :], 2)
    cosines = dots / (lengths[:, None] * norms[None, :] + epsilon)
    scores = tl.where(there[None, :], strengths[:, None] * cosines, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    return weights / tl.sum(weights, 1)[:, None], cosines, norms, lengths


@triton.jit
def _content_gradient(grad, weights, cosines, norms, lengths, memory, keys, strengths, epsilon):
    """Gradients of memory (BN, BW), keys (BR, BW) and strengths (BR,) from that of weightings."""
    scores = weights * (grad - tl.sum(weights * grad, 1)[:, None])
    dots = scores * strengths[:, None] / (lengths[:, None] * norms[None, :] + epsilon)
    products = -dots * cosines
    of_norms = tl.sum(products * lengths[:, None], 0) / norms
    of_lengths = tl.sum(products * norms[None, :], 1) / lengths
    of_memory = tl.sum(dots[:, :, None] * keys[:, None, :], 0) + of_norms[:, None] * memory
    of_keys = tl.sum(dots[:, :, None] * memory[None, :, :], 1) + of_lengths[:, None] * keys
    return of_memory, of_keys, tl.sum(scores * cosines, 1)


@triton.jit
def _kept(reading, free, h, R: tl.constexpr):
    """ψ (BN,): the product over heads of 1 - f·w^r."""
    left = tl.where(h[:, None] < R, 1.0 - free[:, None] * reading, 1.0)
    return left, tl.reduce(left, 0, _times)


@triton.jit
def _places(
    N: tl.constexpr, W: tl.constexpr, R: tl.constexpr,
    BN: tl.constexpr, BW: tl.constexpr, BR: tl.constexpr,
):  # fmt: skip
    """Numbers of slots, of places in them and of heads; where arrays have them, and which exist."""
    n, w, h = tl.arange(0, BN), tl.arange(0, BW), tl.arange(0, BR)
    in_n, in_w, in_h = n < N, w < W, h < R
    return (
        n,
        w,
        h,
        in_n,
        n[:, None] * W + w[None, :],
        h[:, None] * N + n[None, :],
        h[:, None] * W + w[None, :],
        in_n[:, None] & in_w[None, :],
        in_h[:, None] & in_n[None, :],
        in_h[:, None] & in_w[None, :],
    )


@triton.jit
def _orders(
    orders, w, h, hw, in_hw, W: tl.constexpr, R: tl.constexpr,
    STRENGTHS: tl.constexpr, KEY: tl.constexpr, STRENGTH: tl.constexpr, ERASE: tl.constexpr,
    WRITE: tl.constexpr, FREE: tl.constexpr, ALLOCATE: tl.constexpr, GATE: tl.constexpr,
    MODES: tl.constexpr,
):  # fmt: skip
    """The orders of a sample, in their order; the one key and strength of writing have a head's
    axis, and read modes are three.
    """
    one, in_w, in_h, modes = tl.arange(0, 1), w < W, h < R, orders + MODES + 3 * h
    return (
        tl.load(orders + hw, in_hw, 0.0),
        tl.load(orders + STRENGTHS + h, in_h, 0.0),
        tl.load(orders + KEY + one[:, None] * W + w[None, :], in_w[None, :], 0.0),
        tl.load(orders + STRENGTH + one),
        tl.load(orders + ERASE + w, in_w, 0.0),
        tl.load(orders + WRITE + w, in_w, 0.0),
        tl.load(orders + FREE + h, in_h, 0.0),
        tl.load(orders + ALLOCATE),
        tl.load(orders + GATE),
        tl.load(modes, in_h, 0.0),
        tl.load(modes + 1, in_h, 0.0),
        tl.load(modes + 2, in_h, 0.0),
    )


@triton.jit
def _slots(array, b, n, N: tl.constexpr):
    """A number of each slot of sample b (BN,)."""
    return tl.load(array + b * N + n, n < N, 0.0)


@triton.jit
def _forwards(
    orders_in, memory_in, usage_in, precedence_in, link_in, writing_in, reading_in,
    reads_out, memory_out, usage_out, precedence_out, link_out, writing_out, reading_out,
    epsilon,
    STRENGTHS: tl.constexpr, KEY: tl.constexpr, STRENGTH: tl.constexpr, ERASE: tl.constexpr,
    WRITE: tl.constexpr, FREE: tl.constexpr, ALLOCATE: tl.constexpr, GATE: tl.constexpr,
    MODES: tl.constexpr, SIZE: tl.constexpr,
    N: tl.constexpr, W: tl.constexpr, R: tl.constexpr,
    BN: tl.constexpr, BW: tl.constexpr, BR: tl.constexpr, BI: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    n, w, h, there, nw, hn, hw, in_nw, in_hn, in_hw = _places(N, W, R, BN, BW, BR)
    orders_in += b * SIZE
    memory_in, memory_out = memory_in + b * N * W, memory_out + b * N * W
    link_in, link_out = link_in + b * N * N, link_out + b * N * N
    reading_in, reading_out = reading_in + b * R * N, reading_out + b * R * N

    keys, strengths, key, strength, erase, write, free, allocate, gate, back, look, on = _orders(
        orders_in, w, h, hw, in_hw, W, R,
        STRENGTHS, KEY, STRENGTH, ERASE, WRITE, FREE, ALLOCATE, GATE, MODES,
    )  # fmt: skip

    memory = tl.load(memory_in + nw, in_nw, 0.0)
    used, wrote, precedence = (
        _slots(usage_in, b, n, N),
        _slots(writing_in, b, n, N),
        _slots(precedence_in, b, n, N),
    )
    reading = tl.load(reading_in + hn, in_hn, 0.0)

    _, kept = _kept(reading, free, h, R)
    used = (used + wrote - used * wrote) * kept
    raised = 1e-6 + (1.0 - 1e-6) * used
    allocation = (1.0 - raised) * _used_before(raised, n, N, BI)
    found, _, _, _ = _content(memory, key, strength, there, epsilon)
    content = tl.sum(found, 0)
    writing = tl.where(there, gate * (allocate * allocation + (1.0 - allocate) * content), 0.0)
    memory = memory * (1.0 - writing[:, None] * erase[None, :]) + writing[:, None] * write[None, :]

    ahead, behind = reading * 0.0, reading * 0.0
    for start in range(0, N, BI):
        rows = start + tl.arange(0, BI)
        ij = rows[:, None] * N + n[None, :]
        inside = (rows < N)[:, None] & there[None, :]
        weight = _rows_of(writing, rows, n)[:, None]
        link = tl.load(link_in + ij, inside, 0.0)
        link = (1.0 - weight - writing[None, :]) * link + weight * precedence[None, :]
        link = tl.where(inside & (rows[:, None] != n[None, :]), link, 0.0)
        tl.store(link_out + ij, link, inside)
        in_rows = (h < R)[:, None] & (rows < N)[None, :]
        there_read = tl.load(reading_in + h[:, None] * N + rows[None, :], in_rows, 0.0)
        behind += tl.sum(there_read[:, :, None] * link[None, :, :], 1)
        ahead += _heads_at_rows(tl.sum(reading[:, None, :] * link[None, :, :], 2), rows, n)

    content, _, _, _ = _content(memory, keys, strengths, there, epsilon)
    reading = back[:, None] * behind + look[:, None] * content + on[:, None] * ahead
    reads = tl.sum(reading[:, :, None] * memory[None, :, :], 1)
    precedence = (1.0 - tl.sum(writing, 0)) * precedence + writing

    tl.store(reads_out + b * R * W + hw, reads, in_hw)
    tl.store(memory_out + nw, memory, in_nw)
    tl.store(usage_out + b * N + n, used, there)
    tl.store(precedence_out + b * N + n, precedence, there)
    tl.store(writing_out + b * N + n, writing, there)
    tl.store(reading_out + hn, reading, in_hn)


@triton.jit
def _backwards(
    orders_in, memory_in, usage_in, precedence_in, link_in, writing_in, reading_in,
    reads_of, memory_of, usage_of, precedence_of, link_of, writing_of, reading_of,
    orders_out, memory_out, usage_out, precedence_out, link_out, writing_out, reading_out,
    epsilon,
    LEARNS: tl.constexpr,
    STRENGTHS: tl.constexpr, KEY: tl.constexpr, STRENGTH: tl.constexpr, ERASE: tl.constexpr,
    WRITE: tl.constexpr, FREE: tl.constexpr, ALLOCATE: tl.constexpr, GATE: tl.constexpr,
    MODES: tl.constexpr, SIZE: tl.constexpr,
    N: tl.constexpr, W: tl.constexpr, R: tl.constexpr,
    BN: tl.constexpr, BW: tl.constexpr, BR: tl.constexpr, BI: tl.constexpr,
):  # fmt: skip
    """``…_in`` as forwards; gradients ``…_of`` what that gives, ``…_out`` of what it is given."""
    b = tl.program_id(0).to(tl.int64)
    n, w, h, there, nw, hn, hw, in_nw, in_hn, in_hw = _places(N, W, R, BN, BW, BR)
    orders_in, orders_out = orders_in + b * SIZE, orders_out + b * SIZE
    memory_in, memory_of, memory_out = (
        memory_in + b * N * W, memory_of + b * N * W, memory_out + b * N * W
    )  # fmt: skip
    link_in, link_of, link_out = link_in + b * N * N, link_of + b * N * N, link_out + b * N * N
    reading_in, reading_of, reading_out = (
        reading_in + b * R * N, reading_of + b * R * N, reading_out + b * R * N
    )  # fmt: skip

    keys, strengths, key, strength, erase, write, free, allocate, gate, back, look, on = _orders(
        orders_in, w, h, hw, in_hw, W, R,
        STRENGTHS, KEY, STRENGTH, ERASE, WRITE, FREE, ALLOCATE, GATE, MODES,
    )  # fmt: skip

    # The step forwards once more.
    old = tl.load(memory_in + nw, in_nw, 0.0)
    used, wrote, precedence = (
        _slots(usage_in, b, n, N),
        _slots(writing_in, b, n, N),
        _slots(precedence_in, b, n, N),
    )
    reading = tl.load(reading_in + hn, in_hn, 0.0)
    left, kept = _kept(reading, free, h, R)
    raised = 1e-6 + (1.0 - 1e-6) * (used + wrote - used * wrote) * kept
    product = _used_before(raised, n, N, BI)
    allocation = (1.0 - raised) * product
    found, found_cosines, found_norms, found_length = _content(old, key, strength, there, epsilon)
    mixed = allocate * allocation + (1.0 - allocate) * tl.sum(found, 0)
    writing = tl.where(there, gate * mixed, 0.0)
    memory = old * (1.0 - writing[:, None] * erase[None, :]) + writing[:, None] * write[None, :]
    content, cosines, norms, lengths = _content(memory, keys, strengths, there, epsilon)

    # Reads, and looking for the keys of the read heads.
    reads_grad = tl.load(reads_of + b * R * W + hw, in_hw, 0.0)
    new_grad = tl.load(reading_of + hn, in_hn, 0.0)
    new_grad += tl.sum(reads_grad[:, None, :] * memory[None, :, :], 2)
    content_grad = look[:, None] * new_grad
    memory_grad = tl.load(memory_of + nw, in_nw, 0.0)
    of_memory, keys_grad, strengths_grad = _content_gradient(
        content_grad, content, cosines, norms, lengths, memory, keys, strengths, epsilon
    )
    memory_grad += of_memory

    # Links, and what follows them.
    ahead, behind, reading_grad = reading * 0.0, reading * 0.0, reading * 0.0
    writing_grad = _slots(writing_of, b, n, N)
    after = _slots(precedence_of, b, n, N)
    precedence_grad = (1.0 - tl.sum(writing, 0)) * after
    writing_grad += after - tl.sum(after * precedence, 0)
    behind_grad = back[:, None] * new_grad
    for start in range(0, N, BI):
        rows = start + tl.arange(0, BI)
        ij = rows[:, None] * N + n[None, :]
        inside = (rows < N)[:, None] & there[None, :]
        others = inside & (rows[:, None] != n[None, :])
        weight = _rows_of(writing, rows, n)[:, None]
        scale = 1.0 - weight - writing[None, :]
        before = tl.load(link_in + ij, inside, 0.0)
        link = tl.where(others, scale * before + weight * precedence[None, :], 0.0)
        in_rows = (h < R)[:, None] & (rows < N)[None, :]
        there_read = tl.load(reading_in + h[:, None] * N + rows[None, :], in_rows, 0.0)
        there_ahead = on[:, None] * tl.sum(
            tl.where(rows[None, :, None] == n[None, None, :], new_grad[:, None, :], 0.0), 2
        )
        behind += tl.sum(there_read[:, :, None] * link[None, :, :], 1)
        ahead += _heads_at_rows(tl.sum(reading[:, None, :] * link[None, :, :], 2), rows, n)
        reading_grad += tl.sum(there_ahead[:, :, None] * link[None, :, :], 1)
        reading_grad += _heads_at_rows(
            tl.sum(behind_grad[:, None, :] * link[None, :, :], 2), rows, n
        )
        grad = tl.load(link_of + ij, inside, 0.0)
        grad += tl.sum(there_ahead[:, :, None] * reading[:, None, :], 0)
        grad += tl.sum(there_read[:, :, None] * behind_grad[:, None, :], 0)
        grad = tl.where(others, grad, 0.0)
        tl.store(link_out + ij, scale * grad, inside)
        changed = grad * before
        precedence_grad += tl.sum(weight * grad, 0)
        writing_grad -= tl.sum(changed, 0)
        writing_grad += _at_rows(tl.sum(grad * precedence[None, :] - changed, 1), rows, n)
    modes = orders_out + MODES + 3 * h
    tl.store(modes, tl.sum(new_grad * behind, 1), h < R)
    tl.store(modes + 1, tl.sum(new_grad * content, 1), h < R)
    tl.store(modes + 2, tl.sum(new_grad * ahead, 1), h < R)

    # Reads need the new weightings, which are known only now.
    new = back[:, None] * behind + look[:, None] * content + on[:, None] * ahead
    memory_grad += tl.sum(new[:, :, None] * reads_grad[:, None, :], 0)

    # Writing.
    change = write[None, :] - old * erase[None, :]
    writing_grad += tl.sum(memory_grad * change, 1)
    writing_grad = tl.where(there, writing_grad, 0.0)
    tl.store(orders_out + ERASE + w, -tl.sum(memory_grad * writing[:, None] * old, 0), w < W)
    tl.store(orders_out + WRITE + w, tl.sum(memory_grad * writing[:, None], 0), w < W)
    memory_grad *= 1.0 - writing[:, None] * erase[None, :]
    tl.store(
        orders_out + ALLOCATE, gate * tl.sum(writing_grad * (allocation - tl.sum(found, 0)), 0)
    )
    tl.store(orders_out + GATE, tl.sum(writing_grad * mixed, 0))
    of_memory, key_grad, strength_grad = _content_gradient(
        (gate * (1.0 - allocate) * writing_grad)[None, :],
        found, found_cosines, found_norms, found_length, old, key, strength, epsilon,
    )  # fmt: skip
    memory_grad += of_memory

    # Allocation and usage.
    grad = gate * allocate * writing_grad
    raised_grad = -grad * product
    raised_grad += _used_before_gradient(grad * (1.0 - raised), raised, product, n, N, BI)
    used_grad = _slots(usage_of, b, n, N) + (1.0 - 1e-6) * raised_grad
    kept_grad = used_grad * (used + wrote - used * wrote)
    wrote_grad = used * 0.0
    if LEARNS:
        wrote_grad = used_grad * kept * (1.0 - used)
    free_grad = free * 0.0
    for r in tl.static_range(R):
        others_left = tl.reduce(tl.where((h == r)[:, None], 1.0, left), 0, _times)
        share = -kept_grad * others_left
        mine = tl.sum(tl.where((h == r)[:, None], reading, 0.0), 0)
        free_grad += tl.where(h == r, tl.sum(share * mine, 0), 0.0)
        reading_grad += tl.where((h == r)[:, None], free[:, None] * share[None, :], 0.0)

    tl.store(orders_out + hw, keys_grad, in_hw)
    tl.store(orders_out + STRENGTHS + h, strengths_grad, h < R)
    tl.store(
        orders_out + KEY + tl.arange(0, 1)[:, None] * W + w[None, :], key_grad, (w < W)[None, :]
    )
    tl.store(orders_out + STRENGTH + tl.arange(0, 1), strength_grad)
    tl.store(orders_out + FREE + h, free_grad, h < R)
    tl.store(memory_out + nw, memory_grad, in_nw)
    tl.store(usage_out + b * N + n, used_grad * kept * (1.0 - wrote), there)
    tl.store(precedence_out + b * N + n, precedence_grad, there)
    tl.store(writing_out + b * N + n, wrote_grad, there)
    tl.store(reading_out + hn, reading_grad, in_hn)


def access(
    orders: Tensor, state: tuple[Tensor, ...], usage_learns: bool, cosine_epsilon: float
) -> tuple[Tensor, ...]:
    """Free, allocate, write, link, read: read vectors (B, R, W), then the six parts of the state.

    orders  (B, W·R + 3·W + 5·R + 3), every part in its domain
    state   memory (B, N, W), usage (B, N), precedence (B, N), link (B, N, N), write weighting
            (B, N) and read weightings (B, R, N) of the step before

    For the other two see relength.models.memory.dnc_memory.Rules. torch.func.vmap can batch it.
    """
    return _Access.apply(orders, *state, usage_learns, cosine_epsilon)


def _sizes(state: Sequence[Tensor]) -> dict[str, int]:
    """Sizes for a kernel, and its warps, for states as in :func:`access`."""
    (_, slots, width), heads = state[0].shape, state[5].shape[1]
    padded = {"BN": slots, "BW": width, "BR": heads}
    padded = {name: triton.next_power_of_2(size) for name, size in padded.items()}
    rows = max(1, BLOCK // (padded["BN"] * padded["BR"]))
    size = {"N": slots, "W": width, "R": heads}
    places = dict(zip(PARTS, offsets(width, heads)[1:], strict=True))  # read keys begin at 0
    warps = 4 if padded["BN"] <= 64 else 8
    return size | places | padded | {"BI": min(rows, padded["BN"], 16), "num_warps": warps}


def folded(
    function: type[Function], info: Any, in_dims: tuple[int | None, ...], given: tuple[Any, ...]
) -> tuple[Any, int]:
    """Apply a function to a batch of batches, which it takes as one."""
    tensors = []
    for x, place in zip(given, in_dims, strict=True):
        if isinstance(x, Tensor):
            whole = x.expand(info.batch_size, *x.shape) if place is None else x.movedim(place, 0)
            x = whole.flatten(0, 1)
        tensors.append(x)
    outputs = function.apply(*tensors)
    apart = (info.batch_size, -1)
    if isinstance(outputs, Tensor):
        return outputs.unflatten(0, apart), 0
    return tuple(x.unflatten(0, apart) for x in outputs), 0


class _Access(Function):
    @staticmethod
    def forward(orders: Tensor, *given: Any) -> tuple[Tensor, ...]:
        *state, _, epsilon = given
        state = [x.contiguous() for x in state]
        memory, reading = state[0], state[5]
        reads = memory.new_empty(len(memory), reading.shape[1], memory.shape[2])
        made = [torch.empty_like(x) for x in state]
        _forwards[(len(memory),)](
            orders.contiguous(), *state, reads, *made, epsilon,
            **_sizes(state),
        )  # fmt: skip
        return reads, *made

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, learns, epsilon = inputs
        ctx.rules = learns, epsilon
        ctx.save_for_backward(*tensors)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Any, int]:
        return folded(_Access, info, in_dims, given)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *_AccessBackward.apply(*ctx.saved_tensors, *grads, *ctx.rules), None, None


class _AccessBackward(Function):
    @staticmethod
    def forward(*given: Any) -> tuple[Tensor, ...]:
        *tensors, learns, epsilon = given
        tensors = [x.contiguous() for x in tensors]
        inputs, grads = tensors[:7], tensors[7:]
        made = [torch.empty_like(x) for x in inputs]
        _backwards[(len(inputs[0]),)](*inputs, *grads, *made, epsilon, learns, **_sizes(inputs[1:]))
        return tuple(made)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Any, int]:
        return folded(_AccessBackward, info, in_dims, given)
