"""Eight numbers side by side are computed as NumPy computes them, whatever they are."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

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

WORDS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 1e30]


def rows(dtype, count: int = 6) -> np.ndarray:
    """Ordinary numbers, and two rows of those on which functions tend to differ."""
    random = np.random.default_rng(0)
    found = random.normal(scale=3, size=(count, LANES)).astype(dtype)
    found[:2] = WORDS, WORDS[::-1]
    return found


def calculate(a, b, number, out):
    for k in range(len(a)):
        x, y = get(a, k), get(b, k)
        put(out, 10 * k, x + y)
        put(out, 10 * k + 1, x - number)
        put(out, 10 * k + 2, number * y)
        put(out, 10 * k + 3, x / y)
        put(out, 10 * k + 4, -x)
        put(out, 10 * k + 5, root(x * x))
        put(out, 10 * k + 6, if_less(x, y, x, number))
        put(out, 10 * k + 7, if_at_most(x, number, number, y))
        put(out, 10 * k + 8, nearest(x))
        put(out, 10 * k + 9, number)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_are_computed_as_numpy_does(dtype):
    a, b, number = rows(dtype), rows(dtype)[::-1].copy(), dtype(1.5)
    ours, expected = (np.zeros((10 * len(a), LANES), dtype) for _ in range(2))
    njit(calculate)(a, b, number, ours)
    with np.errstate(all="ignore"):
        calculate(a, b, number, expected)
    np.testing.assert_allclose(ours, expected, rtol=4 * np.finfo(dtype).eps)


def test_the_larger_one_of_two_numbers_is_chosen_in_every_place():
    a, b = rows(np.float32), rows(np.float32)[::-1].copy()

    @njit
    def chosen(a, b, out):
        for k in range(len(a)):
            put(out, k, larger(get(a, k), get(b, k)))

    out = np.zeros_like(a)
    chosen(a, b, out)
    np.testing.assert_array_equal(out, np.where(np.isnan(a), b, np.maximum(a, b)))


def test_exponentials_of_float64_are_those_of_the_library_and_powers_of_two_are_exact():
    @njit
    def exponentials(numbers, out):
        put(out, 0, exponential(get(numbers, 0)))

    numbers, out = rows(np.float64)[3:4], np.zeros((1, LANES))
    exponentials(numbers, out)
    np.testing.assert_allclose(out, np.exp(numbers), rtol=1e-15)

    @njit
    def powers(numbers, out):
        put(out, 0, two_to(get(numbers, 0)))

    whole = np.array([[-126, -1, 0, 1, 2, 30, 100, 127]], np.float32)
    out = np.zeros_like(whole)
    powers(whole, out)
    np.testing.assert_array_equal(out, 2.0**whole)


def test_a_number_becomes_eight_and_numbers_alone_are_computed_as_well():
    @njit
    def spread(number, out):
        put(out, 0, eight(number))
        out[1, 0] = larger(number, -number)
        out[1, 1] = if_less(number, -number, number, -number)
        out[1, 2] = nearest(number)

    out = np.zeros((2, LANES), np.float32)
    spread(np.float32(-2.25), out)
    assert out.tolist() == [[-2.25] * 8, [2.25, -2.25, -2, 0, 0, 0, 0, 0]]


def test_only_rows_of_eight_numbers_that_lie_side_by_side_are_taken():
    whole, apart = np.zeros((2, LANES), np.int64), np.zeros((4, 2 * LANES), np.float32)[:, ::2]
    for wrong in (whole, apart, np.zeros((2, 2, LANES)), np.zeros(LANES)):
        with pytest.raises(TypingError):
            njit(lambda rows: put(rows, 0, get(rows, 1)))(wrong)
