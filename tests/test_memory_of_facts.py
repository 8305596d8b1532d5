"""The episodic memory: written and read by pseudo-inverse, in three readings of that word."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from relength.errors import RelengthError
from relength.models.language import memory
from relength.models.language.configs import MemReasonerConfig
from relength.models.language.order import reversal, sinusoids, turned

STEPS, START = 15, 5e-4
INVERSES = {
    "exact": memory.exact,
    "ridge": lambda a: memory.ridge(a, 1e-3),
    "iterated": lambda a: memory.iterated(a, STEPS, START),
}
every_inverse = pytest.mark.parametrize("name", INVERSES)


def drawn(seed: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def with_singular_values(values: list[float], rows: int, seed: int = 0) -> torch.Tensor:
    """A matrix (rows, n) with these singular values and random directions."""
    n = len(values)
    left, right = (torch.linalg.qr(drawn(seed + i, size, n))[0] for i, size in enumerate((rows, n)))
    return left @ torch.diag(torch.tensor(values, dtype=torch.float64)) @ right.T


# --- write and read -------------------------------------------------------------------------------


def test_two_lines_by_hand():
    """M_0 = 2·I, so W = Z/2; Z is invertible, so M̂ = W⁻¹·Z = 2·I, whatever the lines are."""
    codes = torch.tensor([[[1.0, 1.0], [0.0, 2.0]]], dtype=torch.float64)
    first = 2 * torch.eye(2, dtype=torch.float64)
    written = memory.write(codes, first, memory.exact)
    torch.testing.assert_close(written, 2 * torch.eye(2, dtype=torch.float64)[None])
    query = torch.tensor([[3.0, -1.0]], dtype=torch.float64)
    torch.testing.assert_close(memory.read(query, written, memory.exact(written)), query)


def test_one_line_by_hand():
    """Z = (3, 4), M_0 = I: W = Z, W† = Zᵀ/25, M̂ = Zᵀ·Z/25. A query of (5, 0) is projected on the
    line: (5·3/25)·(3, 4) = (1.8, 2.4)."""
    codes = torch.tensor([[[3.0, 4.0]]], dtype=torch.float64)
    written = memory.write(codes, torch.eye(2, dtype=torch.float64), memory.exact)
    torch.testing.assert_close(
        written, torch.tensor([[[9.0, 12.0], [12.0, 16.0]]], dtype=torch.float64) / 25
    )
    query = torch.tensor([[5.0, 0.0]], dtype=torch.float64)
    found = memory.read(query, written, memory.exact(written))
    torch.testing.assert_close(found, torch.tensor([[1.8, 2.4]], dtype=torch.float64))
    noise = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    more = memory.read(query, written, memory.exact(written), noise)
    torch.testing.assert_close(more - found, written[:, 0])


@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(0, 2**20))
def test_few_lines_are_read_back_exactly(lines, seed):
    """As many slots as lines, or more: a query that is one of the lines finds it."""
    codes = drawn(seed, 2, lines, 8)
    written = memory.write(codes, torch.eye(6, 8, dtype=torch.float64), memory.exact)
    for line in codes.unbind(1):
        found = memory.read(line, written, memory.exact(written))
        torch.testing.assert_close(found, line, atol=1e-6, rtol=1e-6)


@every_inverse
def test_a_row_of_zeros_writes_nothing(name):
    codes, first = drawn(0, 2, 5, 8), drawn(1, 6, 8)
    padded = torch.cat([codes, torch.zeros(2, 3, 8, dtype=torch.float64)], dim=1)
    ours, theirs = (memory.write(z, first, INVERSES[name]) for z in (codes, padded))
    torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-7)


@every_inverse
def test_the_order_of_lines_does_not_matter_to_the_memory(name):
    codes, first = drawn(2, 1, 7, 8), drawn(3, 6, 8)
    written = memory.write(codes, first, INVERSES[name])
    again = memory.write(codes.flip(1), first, INVERSES[name])
    torch.testing.assert_close(written, again, atol=1e-9, rtol=1e-7)


def test_an_episode_without_lines_is_refused():
    with pytest.raises(RelengthError, match="without a line"):
        memory.write(torch.zeros(1, 0, 8), torch.eye(4, 8), memory.exact)


# --- the three pseudo-inverses --------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5)])
def test_the_exact_one_has_the_four_properties_of_moore_and_penrose(shape):
    a = drawn(4, *shape)
    x = memory.exact(a)
    torch.testing.assert_close(a @ x @ a, a)
    torch.testing.assert_close(x @ a @ x, x)
    torch.testing.assert_close((a @ x).T, a @ x)
    torch.testing.assert_close((x @ a).T, x @ a)


@pytest.mark.parametrize("rows", [4, 9])
def test_small_singular_values_in_the_three_readings(rows):
    """The exact inverse makes 1/σ of a singular value σ, ridge σ/(σ² + λ), and the iteration
    (1 - (1 - c·σ²)^(2^15))/σ: 8·10⁻⁸ of it is missing at σ² = 1, 0.19 at 0.1, 0.85 at 0.01."""
    values = [1.0, 0.1**0.5, 0.1, 0.001]
    for tall in (True, False):
        a = with_singular_values(values, rows)
        a = a if tall else a.T
        found = {name: torch.linalg.svdvals(inverse(a)) for name, inverse in INVERSES.items()}
        sigma = torch.tensor(values, dtype=torch.float64)
        left = (1 - START * sigma**2) ** (2**STEPS)
        wanted = {
            "exact": 1 / sigma,
            "ridge": sigma / (sigma**2 + 1e-3),
            "iterated": (1 - left) / sigma,
        }
        for name, singular in found.items():
            torch.testing.assert_close(
                singular, wanted[name].sort(descending=True).values, atol=1e-8, rtol=1e-6
            )
        assert left.tolist() == pytest.approx([7.7e-8, 0.194, 0.849, 0.99998], rel=0.05)


def test_the_iteration_starts_from_a_scaled_transpose_and_says_when_it_diverges():
    a = drawn(5, 3, 5)
    torch.testing.assert_close(memory.iterated(a, 1, START), 2 * START * a.T - START**2 * (
        a.T @ a @ a.T))  # fmt: skip
    within, beyond = (with_singular_values([s, 1.0], 3) for s in (63.0, 64.0))  # (2/c)^½ = 63.2
    assert memory.iterated(within, STEPS, START).isfinite().all()
    with pytest.raises(RelengthError, match=r"largest singular value is 64, .* may be 63\.25"):
        memory.iterated(beyond, 30, START)


@pytest.mark.parametrize("shape", [3, 70])
@pytest.mark.parametrize("sigma", [63.26, 63.28, 63.29])
def test_an_iteration_that_has_only_begun_to_diverge_is_told(sigma, shape):
    """Its numbers are finite, and wrong: the inverse of the largest is 1 / 63."""
    a = with_singular_values([sigma, 1.0, 0.5], shape)
    with pytest.raises(memory.Diverged, match="largest singular value is 63"):
        memory.iterated(a, STEPS, START)
    just = with_singular_values([63.24, 1.0, 0.5], shape)
    found = torch.linalg.svdvals(memory.iterated(just, STEPS, START))
    assert found.max() <= (2**STEPS * START) ** 0.5


@every_inverse
def test_slopes_of_write_and_read_are_those_of_finite_differences(name):
    codes, first, query = drawn(6, 2, 3, 6), drawn(7, 4, 6), drawn(8, 2, 6)
    inverse = INVERSES[name]

    def found(codes, first, query):
        written = memory.write(codes, first, inverse)
        return memory.read(query, written, inverse(written))

    inputs = tuple(x.requires_grad_() for x in (codes, first, query))
    assert gradcheck(found, inputs, eps=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("arm", "inverse", "conditioning"),
    [
        ("paper", "exact", "past"),
        ("released", "iterated", "past_and_words"),
        ("repaired", "ridge", "past"),
    ],
)
def test_an_arm_is_a_reading_of_inverse_and_decoder(arm, inverse, conditioning):
    config = MemReasonerConfig(arm=arm)
    assert (config.inverse, config.conditioning) == (inverse, conditioning)
    a = drawn(9, 4, 6)
    torch.testing.assert_close(memory.pseudo_inverse(config)(a), INVERSES[inverse](a))


# --- order ----------------------------------------------------------------------------------------


def test_turning_round_twice_is_no_turn_and_leaves_padding():
    x, lengths = drawn(10, 2, 5, 3), torch.tensor([3, 5])
    back = reversal(lengths, 5)
    assert back.tolist() == [[2, 1, 0, 3, 4], [4, 3, 2, 1, 0]]
    assert (turned(turned(x, back), back) == x).all()


def test_sinusoids_by_hand():
    found = sinusoids(torch.tensor([0, 1]), 4)
    wanted = [[0, 1, 0, 1], [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)]]
    torch.testing.assert_close(found, torch.tensor(wanted, dtype=found.dtype))


@pytest.mark.parametrize("shape", [(2, 70, 8), (2, 8, 70), (70, 8)])
def test_the_iteration_of_a_long_matrix_is_that_of_the_text(shape):
    """In single precision at least as exact as the text's own steps, whatever side is long."""
    a = drawn(7, *shape).float()
    a = a * 40 / torch.linalg.matrix_norm(a, ord=2).max()

    def plain(a: torch.Tensor) -> torch.Tensor:
        x = START * a.mT
        for _ in range(STEPS):
            x = 2 * x - x @ a @ x
        return x

    exact, found = plain(a.double()), memory.iterated(a, STEPS, START)
    assert found.dtype == a.dtype
    torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-6)


def test_the_matrices_that_diverge_are_told():
    a = drawn(7, 3, 70, 8)
    a = (
        a
        / torch.linalg.matrix_norm(a, ord=2)[:, None, None]
        * torch.tensor([40, 70, 50.0])[:, None, None]
    )
    with pytest.raises(memory.Diverged) as told:
        memory.iterated(a, 30, START)
    assert told.value.samples.tolist() == [False, True, False]
