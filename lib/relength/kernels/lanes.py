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
from itertools import product
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, models, register_model, type_callable

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


def _pointer(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Where eight numbers lie, from an array and a place in it."""
    (rows, kind, *_), (array, place, *_) = signature.args, values
    data = cgutils.create_struct_proxy(rows)(context, builder, array).data
    place = context.cast(builder, place, kind, types.intp)
    start = builder.gep(data, [builder.mul(place, ir.Constant(place.type, LANES))], inbounds=True)
    return builder.bitcast(start, _vector(KINDS[rows.dtype]).as_pointer())


@type_callable(get)
def _type_of_get(_: Any) -> Any:
    def found(rows, place):
        return KINDS[rows.dtype] if _rows(rows) and isinstance(place, types.Integer) else None

    return found


@lower_builtin(get, types.Array, types.Integer)
def _load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    rows = signature.args[0]
    start = _pointer(context, builder, signature, values)
    return builder.load(start, align=rows.dtype.bitwidth // 8)


@type_callable(put)
def _type_of_put(_: Any) -> Any:
    def found(rows, place, numbers):
        fits = _rows(rows) and numbers in (KINDS[rows.dtype], rows.dtype)
        return types.none if fits and isinstance(place, types.Integer) else None

    return found


@lower_builtin(put, types.Array, types.Integer, Lanes)
@lower_builtin(put, types.Array, types.Integer, types.Float)
def _store(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    rows, _, numbers = signature.args
    wide = _wide(builder, values[2], numbers, KINDS[rows.dtype])
    start = _pointer(context, builder, signature, values)
    builder.store(wide, start, align=rows.dtype.bitwidth // 8)
    return context.get_dummy_value()


def _wide(builder: Any, value: Any, given: types.Type, kind: types.Type) -> Any:
    """The value itself if it is of this kind, else eight times the number that it is."""
    if given == kind:
        return value
    vector = ir.Constant(_vector(kind), ir.Undefined)
    for lane in range(LANES):
        vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), lane))
    return vector


@type_callable(eight)
def _type_of_eight(_: Any) -> Any:
    return lambda x: KINDS.get(x)


@lower_builtin(eight, types.Float)
def _eight(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return _wide(builder, values[0], signature.args[0], signature.return_type)


Emit = Callable[..., Any]


def _kind(*given: types.Type) -> types.Type | None:
    """Return the kind of a result: lanes if any are given, else numbers; None for mixed kinds."""
    kinds = {getattr(x, "dtype", x) for x in given}
    if len(kinds) > 1 or not kinds <= {*KINDS}:
        return None
    return next((x for x in given if isinstance(x, Lanes)), given[0])


def _known(function: Callable[..., Any], count: int, emit: Emit, alone: bool = True) -> None:
    """Have Numba compile a function of ``count`` arguments that are lanes or numbers of one kind.

    emit   the instructions, from a builder and the arguments, all as vectors if one is
    alone  whether it takes numbers only, too: operators of these are Numba's own
    """

    def kind(*given):
        found = _kind(*given)
        return found if alone or isinstance(found, Lanes) else None

    # Numba asks for the names of arguments.
    of_one, of_two = (lambda x: kind(x)), (lambda a, b: kind(a, b))
    of_four = lambda a, b, then, otherwise: kind(a, b, then, otherwise)  # noqa: E731
    type_callable(function)(lambda _: {1: of_one, 2: of_two, 4: of_four}[count])

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = signature.return_type
        pairs = zip(values, signature.args, strict=True)
        return emit(builder, *(_wide(builder, value, x, kind) for value, x in pairs))

    for given in product((Lanes, types.Float), repeat=count):
        if alone or Lanes in given:
            lower_builtin(function, *given)(build)


def _choice(comparison: str) -> Emit:
    """A choice by a comparison, false of what is no number."""

    def emit(builder: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
        return builder.select(builder.fcmp_ordered(comparison, a, b), then, otherwise)

    return emit


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
        _known(operation, 2, partial(instruction, flags=FLAGS), alone=False)
_known(operator.neg, 1, lambda builder, x: builder.fneg(x), alone=False)
_known(larger, 2, lambda builder, a, b: builder.select(builder.fcmp_ordered("<", b, a), a, b))
_known(if_less, 4, _choice("<"))
_known(if_at_most, 4, _choice("<="))
_known(root, 1, _library("sqrt"))
_known(nearest, 1, _library("rint"))
_known(exponential, 1, _library("exp"))
_known(two_to, 1, _two_to)
