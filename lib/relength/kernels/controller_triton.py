"""Triton kernels, forwards and backwards, for the parts of a DNC's step around its memory.

They are the gates of a controller (relength.models.memory.constrained.GatedController) and the
domains of its orders to the memory (relength.models.memory.dnc_memory.interface); tests compare
values and gradients. Alone, each equation is a kernel of a few thousand numbers, and a GPU takes
longer to start one than to compute it. One program computes one sample.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd import Function

from relength.kernels.dnc_steps import offsets
from relength.kernels.dnc_triton import folded

LINEAR_FROM = 20.0  # where PyTorch's softplus(x) is x


@triton.jit
def _tanh(x):
    """tanh(x); near 0, where the difference has no digits left, its series."""
    square = x * x
    near = x * (1.0 - square * (1.0 / 3 - square * (2.0 / 15 - square * (17.0 / 315))))
    return tl.where(tl.abs(x) < 0.02, near, 2.0 * tl.sigmoid(2.0 * x) - 1.0)


@triton.jit
def _log_of_1_and(x):
    """log(1 + x) for x in [0, 1], with all digits of a small x (Kahan)."""
    whole = 1.0 + x
    return tl.where(whole == 1.0, x, tl.log(whole) * x / tl.where(whole == 1.0, 1.0, whole - 1.0))


def _wide(x: Tensor) -> Tensor:
    """Numbers in single precision or double: autocast hands over shorter ones."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


# --- the domains of orders ------------------------------------------------------------------------


@triton.jit
def _modes(vector, i, of_modes, MODES: tl.constexpr):
    """Softmax over the three read modes of a head: the three weights, each (BS,), for numbers i."""
    first = vector + MODES + (i - MODES) // 3 * 3
    back, look, on = (
        tl.load(first, of_modes, 0.0),
        tl.load(first + 1, of_modes, 0.0),
        tl.load(first + 2, of_modes, 0.0),
    )
    most = tl.maximum(tl.maximum(back, look), on)
    back, look, on = tl.exp(back - most), tl.exp(look - most), tl.exp(on - most)
    total = back + look + on
    return back / total, look / total, on / total


@triton.jit
def _parts(
    i,
    STRENGTHS: tl.constexpr, KEY: tl.constexpr, STRENGTH: tl.constexpr, ERASE: tl.constexpr,
    WRITE: tl.constexpr, FREE: tl.constexpr, MODES: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Tell which of the numbers i are strengths, which are gates, and which are read modes."""
    strengths = ((i >= STRENGTHS) & (i < KEY)) | ((i >= STRENGTH) & (i < ERASE))
    gates = ((i >= ERASE) & (i < WRITE)) | ((i >= FREE) & (i < MODES))
    return strengths, gates, (i >= MODES) & (i < SIZE)


@triton.jit
def _interface_forwards(
    vector, out, least, far,
    STRENGTHS: tl.constexpr, KEY: tl.constexpr, STRENGTH: tl.constexpr, ERASE: tl.constexpr,
    WRITE: tl.constexpr, FREE: tl.constexpr, MODES: tl.constexpr, SIZE: tl.constexpr,
    BS: tl.constexpr,
):  # fmt: skip
    b, i = tl.program_id(0).to(tl.int64), tl.arange(0, BS)
    vector += b * SIZE
    strengths, gates, modes = _parts(i, STRENGTHS, KEY, STRENGTH, ERASE, WRITE, FREE, MODES, SIZE)
    x = tl.load(vector + i, i < SIZE, 0.0)
    softplus = tl.maximum(x, 0.0) + _log_of_1_and(tl.exp(-tl.abs(x)))
    y = tl.where(strengths, least + tl.where(x > far, x, softplus), x)
    y = tl.where(gates, tl.sigmoid(x), y)
    back, look, on = _modes(vector, i, modes, MODES)
    which = (i - MODES) % 3
    y = tl.where(modes, tl.where(which == 0, back, tl.where(which == 1, look, on)), y)
    tl.store(out + b * SIZE + i, y, i < SIZE)


@triton.jit
def _interface_backwards(
    vector, grad, out, far,
    STRENGTHS: tl.constexpr, KEY: tl.constexpr, STRENGTH: tl.constexpr, ERASE: tl.constexpr,
    WRITE: tl.constexpr, FREE: tl.constexpr, MODES: tl.constexpr, SIZE: tl.constexpr,
    BS: tl.constexpr,
):  # fmt: skip
    b, i = tl.program_id(0).to(tl.int64), tl.arange(0, BS)
    vector, grad = vector + b * SIZE, grad + b * SIZE
    strengths, gates, modes = _parts(i, STRENGTHS, KEY, STRENGTH, ERASE, WRITE, FREE, MODES, SIZE)
    x, g = tl.load(vector + i, i < SIZE, 0.0), tl.load(grad + i, i < SIZE, 0.0)
    squashed = tl.sigmoid(x)
    slope = tl.where(strengths & (x <= far), squashed, 1.0)
    slope = tl.where(gates, squashed * (1.0 - squashed), slope)
    back, look, on = _modes(vector, i, modes, MODES)
    which, first = (i - MODES) % 3, grad + MODES + (i - MODES) // 3 * 3
    mean = back * tl.load(first, modes, 0.0)
    mean += look * tl.load(first + 1, modes, 0.0)
    mean += on * tl.load(first + 2, modes, 0.0)
    weight = tl.where(which == 0, back, tl.where(which == 1, look, on))
    tl.store(out + b * SIZE + i, tl.where(modes, weight * (g - mean), slope * g), i < SIZE)


def interface(vector: Tensor, width: int, read_heads: int, least_strength: float) -> Tensor:
    """ξ_t with every part in its domain, (B, W·R + 3·W + 5·R + 3); torch.func.vmap can batch it.

    least_strength  as in relength.models.memory.dnc_memory.Rules
    """
    return _Interface.apply(_wide(vector), width, read_heads, least_strength)


def _places(width: int, heads: int) -> dict[str, int]:
    _, strengths, key, strength, erase, write, free, _, _, modes, size = offsets(width, heads)
    return {
        **{"STRENGTHS": strengths, "KEY": key, "STRENGTH": strength, "ERASE": erase},
        **{"WRITE": write, "FREE": free, "MODES": modes, "SIZE": size},
        "BS": triton.next_power_of_2(size),
    }


class _Interface(Function):
    """The node of ``interface`` in the graph of autograd."""

    @staticmethod
    def forward(vector: Tensor, width: int, heads: int, least: float) -> Tensor:
        vector = vector.contiguous()
        out = torch.empty_like(vector)
        _interface_forwards[(len(vector),)](
            vector, out, least, LINEAR_FROM, **_places(width, heads)
        )
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        vector, *ctx.sizes, _ = inputs
        ctx.save_for_backward(vector)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Any, int]:
        return folded(_Interface, info, in_dims, given)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _InterfaceBackward.apply(*ctx.saved_tensors, grad, *ctx.sizes), None, None, None


class _InterfaceBackward(Function):
    """Its gradient, a node of its own so that torch.func.vmap can batch it."""

    @staticmethod
    def forward(vector: Tensor, grad: Tensor, width: int, heads: int) -> Tensor:
        vector = vector.contiguous()
        out = torch.empty_like(vector)
        _interface_backwards[(len(vector),)](
            vector, grad.contiguous(), out, LINEAR_FROM, **_places(width, heads)
        )
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Any, int]:
        return folded(_InterfaceBackward, info, in_dims, given)


# --- the gates of a controller --------------------------------------------------------------------


@triton.jit
def _four(gates, h, H: tl.constexpr):
    """i, f, o and the candidate of a sample, (BH,) each, squashed."""
    there = h < H
    return (
        tl.sigmoid(tl.load(gates + h, there, 0.0)),
        tl.sigmoid(tl.load(gates + H + h, there, 0.0)),
        tl.sigmoid(tl.load(gates + 2 * H + h, there, 0.0)),
        _tanh(tl.load(gates + 3 * H + h, there, 0.0)),
    )


@triton.jit
def _gates_forwards(
    gates, cells, h_out, c_out, new_out, clip,
    COMPRESSED: tl.constexpr, H: tl.constexpr, BH: tl.constexpr,
):  # fmt: skip
    b, h = tl.program_id(0).to(tl.int64), tl.arange(0, BH)
    i, f, o, candidate = _four(gates + b * 4 * H, h, H)
    new = f * tl.load(cells + b * H + h, h < H, 0.0) + i * candidate
    squashed = _tanh(new)
    c = tl.minimum(tl.maximum(new, -clip), clip)
    if COMPRESSED:
        c = squashed
    tl.store(h_out + b * H + h, o * squashed, h < H)
    tl.store(c_out + b * H + h, c, h < H)
    tl.store(new_out + b * H + h, new, h < H)


@triton.jit
def _gates_backwards(
    gates, cells, h_of, c_of, new_of, gates_out, cells_out, clip,
    COMPRESSED: tl.constexpr, H: tl.constexpr, BH: tl.constexpr,
):  # fmt: skip
    """The step forwards once more, then gradients ``…_out`` from ``…_of`` what it gives."""
    b, h = tl.program_id(0).to(tl.int64), tl.arange(0, BH)
    there, at = h < H, b * H + h
    i, f, o, candidate = _four(gates + b * 4 * H, h, H)
    last = tl.load(cells + at, there, 0.0)
    new = f * last + i * candidate
    squashed = _tanh(new)
    of_h, of_c = tl.load(h_of + at, there, 0.0), tl.load(c_of + at, there, 0.0)
    slope = 1.0 - squashed * squashed
    passed = tl.where((new >= -clip) & (new <= clip), 1.0, 0.0)
    if COMPRESSED:
        passed = slope
    grad = tl.load(new_of + at, there, 0.0) + of_h * o * slope + of_c * passed
    out = gates_out + b * 4 * H + h
    tl.store(out, grad * candidate * i * (1.0 - i), there)
    tl.store(out + H, grad * last * f * (1.0 - f), there)
    tl.store(out + 2 * H, of_h * squashed * o * (1.0 - o), there)
    tl.store(out + 3 * H, grad * i * (1.0 - candidate * candidate), there)
    tl.store(cells_out + at, grad * f, there)


def gates(raw: Tensor, cells: Tensor, compressed: bool, clip: float) -> tuple[Tensor, ...]:
    """h_t, c_t and c̃_t (B, H) from the raw gates i, f, o, candidate (B, 4·H) and c_{t-1} (B, H).

    compressed, clip  as in relength.models.memory.constrained.GatedController; vmap can batch it
    """
    return _Gates.apply(_wide(raw), cells, compressed, clip)


def _hidden(cells: Tensor, compressed: bool) -> dict[str, Any]:
    size = cells.shape[1]
    return {"COMPRESSED": compressed, "H": size, "BH": triton.next_power_of_2(size)}


class _Gates(Function):
    """The node of ``gates`` in the graph of autograd."""

    @staticmethod
    def forward(raw: Tensor, cells: Tensor, compressed: bool, clip: float) -> tuple[Tensor, ...]:
        raw, cells = raw.contiguous(), cells.contiguous()
        made = [torch.empty_like(cells) for _ in range(3)]
        _gates_forwards[(len(cells),)](raw, cells, *made, clip, **_hidden(cells, compressed))
        return tuple(made)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        raw, cells, *ctx.rules = inputs
        ctx.save_for_backward(raw, cells)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Any, int]:
        return folded(_Gates, info, in_dims, given)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *_GatesBackward.apply(*ctx.saved_tensors, *grads, *ctx.rules), None, None


class _GatesBackward(Function):
    """Its gradient, a node of its own so that torch.func.vmap can batch it."""

    @staticmethod
    def forward(raw: Tensor, cells: Tensor, *given: Any) -> tuple[Tensor, ...]:
        *grads, compressed, clip = given
        raw, cells = raw.contiguous(), cells.contiguous()
        made = torch.empty_like(raw), torch.empty_like(cells)
        _gates_backwards[(len(cells),)](
            raw, cells, *(grad.contiguous() for grad in grads), *made, clip,
            **_hidden(cells, compressed),
        )  # fmt: skip
        return made

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Any, int]:
        return folded(_GatesBackward, info, in_dims, given)
