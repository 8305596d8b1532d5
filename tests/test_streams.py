"""Random numbers are functions of what they are for, and of nothing else."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from relength.kernels.hashing import dropout_mask, fork, hashed_integers, step_key
from relength.streams import dropout_key, stream

SEEDS = st.integers(0, 2**32)
PATHS = st.lists(st.one_of(st.integers(0, 10**6), st.text("ab1[,", max_size=5)), max_size=3)
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(1, 9))


def mask(shape, rate=0.5, seed=0, site="encodings", step=0) -> torch.Tensor:
    return dropout_mask(torch.Size(shape), rate, step_key(dropout_key(seed, site), step))


def standardised(kept: torch.Tensor) -> np.ndarray:
    """±1 at rate ½: mean 0, variance 1."""
    return kept.numpy() * 2.0 - 1.0


# --- streams ------------------------------------------------------------------------------------


@given(SEEDS, PATHS)
def test_a_stream_gives_the_same_numbers_whenever_it_is_asked(seed, path):
    first = stream(seed, "data", *path).integers(0, 2**60, 8)
    assert (stream(seed, "data", *path).integers(0, 2**60, 8) == first).all()


@given(SEEDS)
def test_draws_from_one_stream_leave_the_others_alone(seed):
    undisturbed = [stream(seed, "data", i).random(4) for i in range(3)]
    streams = [stream(seed, "data", i) for i in range(3)]
    interleaved = np.array([[streams[i].random() for i in (2, 0, 1)] for _ in range(4)])
    assert (interleaved == np.array([undisturbed[i] for i in (2, 0, 1)]).T).all()


@given(st.tuples(SEEDS, st.sampled_from(["data", "order"]), PATHS), SEEDS, PATHS)
def test_another_seed_purpose_or_path_is_another_stream(name, seed, path):
    other = (seed, "data", path)
    if other != name:
        ours, theirs = (stream(s, p, *rest).integers(0, 2**60, 2) for s, p, rest in (name, other))
        assert (ours != theirs).any()


def test_paths_are_told_apart_by_their_parts_and_types():
    names = [
        (0, "a", "bc"),
        (0, "ab", "c"),
        (0, "a", "b", "c"),
        (0, "a", 1),
        (0, "a", "1"),
        (1, "a"),
    ]
    first = {int(stream(*name).integers(0, 2**60)) for name in names}
    assert len(first) == len(names)


def test_numbers_of_a_stream_never_change():
    # Recorded runs rest on these numbers: Philox and SHA-256 are the same on every machine.
    assert stream(7, "data", "copy", "train").integers(0, 10, 12).tolist() == [
        2,
        3,
        7,
        0,
        8,
        2,
        9,
        2,
        8,
        4,
        1,
        7,
    ]
    assert dropout_key(7, "encodings") == 359614677
    kept = mask((1, 2, 8), seed=7, step=3).int()
    assert kept[0].tolist() == [[1, 0, 0, 0, 0, 1, 1, 1], [1, 0, 1, 1, 0, 0, 0, 0]]


# --- the dropout mask ---------------------------------------------------------------------------


@given(SHAPES, SHAPES, SEEDS, st.integers(0, 2**31 - 1))
def test_padding_leaves_the_mask_of_what_was_there_unchanged(small, more, seed, step):
    b, s, c = small
    padded = mask([n + m for n, m in zip(small, more, strict=True)], seed=seed, step=step)
    assert torch.equal(padded[:b, :s, :c], mask(small, seed=seed, step=step))


@given(SEEDS, st.integers(0, 2**20))
def test_the_mask_is_the_same_whenever_it_is_asked(seed, step):
    assert torch.equal(
        mask((2, 8, 16), seed=seed, step=step), mask((2, 8, 16), seed=seed, step=step)
    )


@given(SEEDS, st.integers(0, 2**20))
def test_step_site_and_seed_each_change_half_of_the_mask(seed, step):
    shape = (4, 16, 64)
    ours = mask(shape, seed=seed, step=step)
    for other in (
        mask(shape, seed=seed, step=step + 1),
        mask(shape, seed=seed + 1, step=step),
        mask(shape, seed=seed, step=step, site="decoder"),
    ):
        assert 0.4 < (ours ^ other).float().mean() < 0.6  # 4,096 elements: ± 12 standard errors


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
def test_the_share_of_dropped_elements_is_the_rate(rate):
    dropped = ~torch.stack([mask((32, 20, 128), rate, step=step) for step in range(8)])
    error = (rate * (1 - rate) / dropped.numel()) ** 0.5
    assert abs(float(dropped.double().mean()) - rate) < 4 * error
    # ... for every channel, every position and every sample on its own, too.
    for axes in ((0, 1, 2), (0, 1, 3), (0, 2, 3)):
        shares = dropped.double().mean(axes)
        error = (rate * (1 - rate) * len(shares) / dropped.numel()) ** 0.5
        assert (shares - rate).abs().max() < 5 * error


def test_at_rate_zero_everything_is_kept():
    assert mask((8, 16, 32), rate=0.0).all()


@settings(max_examples=5)
@given(SEEDS, st.integers(0, 2**20))
def test_neighbours_in_any_direction_are_uncorrelated(seed, step):
    x = standardised(torch.stack([mask((16, 16, 64), seed=seed, step=step + i) for i in range(4)]))
    for shift in np.ndindex(2, 3, 4, 5):  # along steps, samples, positions, channels
        if any(shift):
            here = x[tuple(slice(None, -n or None) for n in shift)]
            there = x[tuple(slice(n, None) for n in shift)]
            correlation = (here * there).mean()
            assert abs(correlation) * here.size**0.5 < 6, shift


@settings(max_examples=5)
@given(SEEDS, st.integers(0, 2**20))
def test_no_frequency_stands_out_of_the_mask(seed, step):
    # A lattice puts its energy into few frequencies; the largest of N independent ones has log N.
    x = standardised(mask((32, 32, 128), seed=seed, step=step))
    power = np.abs(np.fft.fftn(x)) ** 2 / x.size
    assert power.max() < np.log(x.size) + 12


def test_rows_of_a_mask_are_all_different():
    rows = torch.cat([mask((32, 12, 128), step=step).flatten(0, 1) for step in range(20)])
    assert len(torch.unique(rows, dim=0)) == len(rows)


# --- numbers drawn inside a step ----------------------------------------------------------------


@settings(max_examples=20)
@given(seed=SEEDS, step=st.integers(0, 2**20), below=st.integers(1, 40))
def test_hashed_integers_are_uniform_and_depend_on_the_key_alone(seed, step, below):
    key = step_key(dropout_key(seed, "base"), step)
    numbers = hashed_integers(4000, below, key)
    assert torch.equal(numbers[:7], hashed_integers(7, below, key))
    counts = torch.bincount(numbers, minlength=below).numpy()
    assert len(counts) == below and numbers.min() >= 0
    expected = 4000 / below
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < below - 1 + 7 * (2 * below) ** 0.5 + 7


@given(seed=SEEDS, step=st.integers(0, 2**20))
def test_the_sites_of_a_model_draw_apart_from_each_other(seed, step):
    key = step_key(dropout_key(seed, "base"), step)
    forks = [fork(key, site) for site in range(6)]
    assert len({int(k) for k in (key, *forks)}) == 7
    draws = [hashed_integers(1000, 2, k).double() for k in forks]
    for i, a in enumerate(draws):
        for b in draws[:i]:
            assert abs(float(torch.corrcoef(torch.stack([a, b]))[0, 1])) < 0.2


@pytest.mark.gpu
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_mask_is_the_same_on_a_gpu(rate):
    key = step_key(dropout_key(3, "encodings"), 12)
    shape = torch.Size((16, 40, 128))
    assert torch.equal(dropout_mask(shape, rate, key.cuda()).cpu(), dropout_mask(shape, rate, key))
