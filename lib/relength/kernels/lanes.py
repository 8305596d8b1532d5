"""Vectors of eight numbers, one of each of eight samples, for loops that Numba compiles.

A loop over one sample adds up its vectors in the end, and has to know that no two of its arrays
overlap before it may use vectors at all. Eight samples side by side need neither: what is written
for one number is done for eight. A machine without vectors so wide takes two or more of its own.

The last axis of an array is then LANES long, and :func:`get` and :func:`put` take one place of the
axis before. ``+``, ``-``, ``*`` and ``/`` are those of numbers; a single number stands for eight.
Without Numba's compiler the functions are those of NumPy, on arrays of eight numbers.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

from relength.kernels.jit import OPTIONS

LANES = 8
FLAGS = tuple(OPTIONS["fastmath"])


def get(rows, place):
    """Eight numbers of an array (·, LANES)."""
    return rows[place].copy()


def put(rows, place, numbers):
    """Write eight numbers into an array (·, LANES)."""
    rows[place] = numbers


def eight(x):
    """One number, eight times."""
    return np.full(LANES, x)


def larger(a, b):
    """The larger one of each pair, and the second one where one of them is no number."""
    return np.where(b < a, a, b)


def if_less(a, b, then, otherwise):
    """``then`` where a < b, ``otherwise`` elsewhere."""
    return np.where(a < b, then, otherwise)


def if_at_most(a, b, then, otherwise):
    """``then`` where a ≤ b, ``otherwise`` elsewhere."""
    return np.where(a <= b, then, otherwise)


def root(x):
    """Square roots."""
    return np.sqrt(x)


def nearest(x):
    """Whole numbers next to x, as numbers of the same kind."""
    return np.rint(x)


def two_to(x):
    """2^x of float32 that are whole numbers from -126 to 127; 0 of -127."""
    return np.where(x < -126, np.float32(0), np.exp2(x))


def exponential(x):
    """exp of float64, by the C library, one number after the other."""
    return np.exp(x)


class Lanes(types.Type):
    """Numba's type of eight numbers of a kind."""

    def __init__(self, dtype: types.Float):
        self.dtype = dtype
        super().__init__(f"lanes({dtype})")


REALS = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}
KINDS = {dtype: Lanes(dtype) for dtype in REALS}


def _vector(kind: Lanes) -> ir.Type:
    return ir.VectorType(REALS[kind.dtype], LANES)


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes):
        super().__init__(manager, kind, _vector(kind))


def _rows(rows: Any) -> bool:
    """Tell whether an array may be one of eight numbers a row; that they are eight is trusted."""
    known = isinstance(rows, types.Array) and rows.dtype in KINDS
    return known and rows.ndim == 2 and rows.layout == "C"


def _pointer(context: Any, builder: Any, rows: types.Array, array: Any, place: Any) -> Any:
    """Where the eight numbers at a place lie."""
    data = cgutils.create_struct_proxy(rows)(context, builder, array).data
    first = builder.mul(place, ir.Constant(place.type, LANES))
    start = builder.gep(data, [first], inbounds=True)
    return builder.bitcast(start, _vector(KINDS[rows.dtype]).as_pointer())


@intrinsic
def _load(typing: Any, rows: Any, place: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        start = _pointer(context, builder, rows, *values)
        return builder.load(start, align=rows.dtype.bitwidth // 8)

    return KINDS[rows.dtype](rows, types.intp), build


@intrinsic
def _store(typing: Any, rows: Any, place: Any, numbers: Any) -> Any:
    kind = KINDS[rows.dtype]

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        wide = _wide(context, builder, values[2], numbers, kind)
        start = _pointer(context, builder, rows, *values[:2])
        builder.store(wide, start, align=rows.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(rows, types.intp, numbers), build


@overload(get)
def _get(rows, place):
    return (lambda rows, place: _load(rows, place)) if _rows(rows) else None


@overload(put)
def _put(rows, place, numbers):
    return (lambda rows, place, numbers: _store(rows, place, numbers)) if _rows(rows) else None


def _wide(context: Any, builder: Any, value: Any, given: types.Type, kind: Lanes) -> Any:
    """The value itself if it is of this kind, else eight times the number that it is."""
    if given == kind:
        return value
    value = context.cast(builder, value, given, kind.dtype)
    vector = ir.Constant(_vector(kind), ir.Undefined)
    for lane in range(LANES):
        vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), lane))
    return vector


@intrinsic
def _eight(typing: Any, x: Any) -> Any:
    kind = KINDS[x]
    return kind(x), lambda context, builder, _, values: _wide(context, builder, *values, x, kind)


@overload(eight)
def _spread(x):
    return (lambda x: _eight(x)) if x in KINDS else None


Emit = Callable[..., Any]


def _fit(*given: Any) -> bool:
    """Tell whether arguments are lanes and numbers, or numbers of one kind."""
    return any(isinstance(x, Lanes) for x in given) or {*given} <= {given[0]} & {*KINDS}


def _lowered(emit: Emit, given: tuple[Any, ...]) -> Any:
    """Signature and instructions of a function of lanes and numbers, or of numbers of one kind.

    emit  the instructions, from a builder and the arguments, as vectors if one is
    """
    kind = next((x for x in given if isinstance(x, Lanes)), given[0])

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pairs = zip(values, given, strict=True)
        return emit(builder, *(_wide(context, builder, value, x, kind) for value, x in pairs))

    return kind(*given), build


def _of_one(function: Callable[..., Any], emit: Emit) -> None:
    """Have Numba compile a function of eight numbers."""

    @intrinsic
    def instructions(typing, x):
        return _lowered(emit, (x,))

    @overload(function)
    def chosen(x):
        return (lambda x: instructions(x)) if _fit(x) else None


def _of_two(function: Callable[..., Any], emit: Emit) -> None:
    """Have Numba compile a function of two times eight numbers."""

    @intrinsic
    def instructions(typing, a, b):
        return _lowered(emit, (a, b))

    @overload(function)
    def chosen(a, b):
        return (lambda a, b: instructions(a, b)) if _fit(a, b) else None


def _choice(function: Callable[..., Any], comparison: str) -> None:
    """Have Numba compile a choice by a comparison, false of what is not a number."""

    def emit(builder: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
        return builder.select(builder.fcmp_ordered(comparison, a, b), then, otherwise)

    @intrinsic
    def instructions(typing, a, b, then, otherwise):
        return _lowered(emit, (a, b, then, otherwise))

    @overload(function)
    def chosen(a, b, then, otherwise):
        if not _fit(a, b, then, otherwise):
            return None
        return lambda a, b, then, otherwise: instructions(a, b, then, otherwise)


def _library(name: str) -> Emit:
    """A function that LLVM knows by a name."""

    def emit(builder: Any, x: Any) -> Any:
        many = f"v{LANES}" if isinstance(x.type, ir.VectorType) else ""
        full = f"llvm.{name}.{many}{getattr(x.type, 'element', x.type).intrinsic_name}"
        kind = ir.FunctionType(x.type, [x.type])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, full), [x])

    return emit


def _two_to(builder: Any, x: Any) -> Any:
    """A float32 that has this exponent and no fraction."""
    many, whole = isinstance(x.type, ir.VectorType), ir.IntType(32)
    if many:
        whole = ir.VectorType(whole, LANES)
    bias, fraction = (ir.Constant(whole, [bits] * LANES if many else bits) for bits in (127, 23))
    exponent = builder.add(builder.fptosi(x, whole), bias)
    return builder.bitcast(builder.shl(exponent, fraction), x.type)


for name, instruction in (
    ("add", ir.IRBuilder.fadd),
    ("sub", ir.IRBuilder.fsub),
    ("mul", ir.IRBuilder.fmul),
    ("truediv", ir.IRBuilder.fdiv),
):
    for operation in (getattr(operator, name), getattr(operator, "i" + name)):
        _of_two(operation, partial(instruction, flags=FLAGS))
_of_two(larger, lambda builder, a, b: builder.select(builder.fcmp_ordered("<", b, a), a, b))
_of_one(operator.neg, lambda builder, x: builder.fneg(x))
_of_one(root, _library("sqrt"))
_of_one(nearest, _library("rint"))
_of_one(exponential, _library("exp"))
_of_one(two_to, _two_to)
_choice(if_less, "<")
_choice(if_at_most, "<=")
