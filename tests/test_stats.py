"""The statistics, against numbers worked out by hand worked examples of papers and SciPy."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from relength.verdicts import stats
from relength.verdicts.stats import Summary

accuracies = st.lists(st.sampled_from([0.0, 12.5, 50.0, 99.9, 100.0]), min_size=1, max_size=5)
at_least_two = accuracies.filter(lambda values: len(values) > 1)  # as SciPy's test asks for


@pytest.mark.parametrize(
    ("successes", "n", "p"), [(5, 5, 1 / 32), (7, 8, 9 / 256), (4, 5, 6 / 32), (0, 5, 1)]
)
def test_majority_by_hand(successes, n, p):
    assert stats.majority_p(successes, n) == pytest.approx(p)


@given(st.integers(1, 40), st.data())
def test_a_majority_for_and_one_against_never_meet(n, data):
    successes = data.draw(st.integers(0, n))
    assert stats.majority_p(successes, n) + stats.majority_p(n - successes, n) >= 1


def test_welch_interval_equals_scipy_on_the_samples():
    ours, theirs = np.array([98.0, 99.5, 97.0, 100.0, 96.5]), np.array([90.0, 99.0, 85.0])
    expected = scipy_stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    interval = stats.welch_difference(Summary.of(ours), Summary.of(theirs))
    assert interval[:2] == pytest.approx((expected.low, expected.high))


# Student (1908), The probable error of a mean: additional hours of sleep after either drug.
SLEEP = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)


def test_equivalence_on_the_data_of_student():
    # R's t.test prints t = -1.8608, 17.776 degrees of freedom, interval -3.3654832 to 0.2054832.
    first, second = map(Summary.of, SLEEP)
    test = stats.welch_equivalence(first, second, margin=0.5)
    assert test.difference == pytest.approx(-1.58)
    assert test.interval[:2] == pytest.approx((-3.3654832, 0.2054832), abs=1e-6)
    # The standard error is 1.58 / 1.8608, so the two t are -1.08 and -2.08 over it.
    error = 1.58 / 1.8608
    assert test.p_inside == pytest.approx(scipy_stats.t.sf(-1.08 / error, 17.776), abs=1e-4)
    assert test.p_inside == pytest.approx(0.89, abs=0.01)  # R's TOSTER


@given(st.floats(-8, 8), st.floats(0.5, 4), st.integers(2, 12))
def test_inside_exactly_when_the_interval_at_twice_the_level_lies_inside(difference, sd, n):
    ours, theirs = Summary(60 + difference, sd, n), Summary(60, 2.0, 5)
    test = stats.welch_equivalence(ours, theirs, margin=5)
    low, high, _ = stats.welch_difference(ours, theirs, confidence=0.90)
    if min(abs(low + 5), abs(high - 5)) > 1e-6:
        assert (test.p_inside < 0.05) == (low > -5 and high < 5)


@pytest.mark.parametrize("difference", [-40.0, -9.0, -7.0, 0.0, 6.0, 8.0, 30.0])
def test_outside_exactly_when_the_interval_lies_outside(difference):
    ours, theirs = Summary(60 + difference, 1.5, 5), Summary(60, 2.0, 5)
    test = stats.welch_equivalence(ours, theirs, margin=5)
    outside = test.interval.low > 5 or test.interval.high < -5
    assert (test.p_outside <= 0.05) == outside


def test_seeds_that_all_agree_keep_half_a_point_of_doubt():
    certain = Summary(100, 0, 5)
    test = stats.welch_equivalence(certain, certain, margin=5)
    # Equal samples with sd 0.5 have 8 degrees of freedom: t(0.975) = 2.306, times 0.5 * sqrt(2 / 5)
    assert test.interval.high == pytest.approx(2.306 * 0.5 * np.sqrt(0.4), abs=1e-3)
    assert test.p_inside < 1e-6


def test_permutation_by_hand():
    # 3 against 3, fully separated: 1 of 20 splits is as extreme.
    assert stats.permutation_order([4, 5, 6], [1, 2, 3]) == pytest.approx((1 / 20, 1))
    # 5 against 5 of two kinds: the best of 252.
    assert stats.permutation_order([100] * 5, [0] * 5).p_greater == pytest.approx(1 / 252)
    # [1, 0] against [0, 0]: two of four places for the 1 are in the first sample.
    assert stats.permutation_order([1, 0], [0, 0]) == pytest.approx((0.5, 1))
    # One against three: the one is the second largest of four.
    assert stats.permutation_order([3], [1, 2, 4]) == pytest.approx((0.5, 0.75))
    assert stats.permutation_order([1, 2, 4], [3]) == pytest.approx((0.75, 0.5))


def in_fractions(a, b) -> tuple[float, float]:
    """Both p values of values with one decimal, without rounding."""
    tenths = [round(10 * value) for value in (*a, *b)]
    whole, first = sum(tenths), len(a)

    def difference(total: int) -> Fraction:
        return Fraction(total, first) - Fraction(whole - total, len(b))

    given = difference(sum(tenths[:first]))
    splits = [difference(sum(chosen)) for chosen in combinations(tenths, first)]
    above, below = sum(s >= given for s in splits), sum(s <= given for s in splits)
    return above / len(splits), below / len(splits)


def test_splits_that_are_equal_count_as_equal_however_large_the_values():
    a, b = [99.3, 99.3, 99.9, 99.9, 100], [98.8, 99.1, 99.2, 99.5, 99.7]
    assert stats.permutation_order(a, b) == pytest.approx((14 / 252, 244 / 252), abs=1e-3)
    a, b = [99.2, 99.7, 99.7], [98.9, 99.1, 99.2]
    assert stats.permutation_order(a, b).p_greater == pytest.approx(2 / 20)


decimals = st.lists(st.integers(0, 1000).map(lambda n: n / 10), min_size=2, max_size=5)


@settings(max_examples=60, deadline=None)
@given(decimals, decimals)
def test_listing_all_splits_gives_the_shares_of_exact_arithmetic(a, b):
    assert stats.permutation_order(a, b) == pytest.approx(in_fractions(a, b))


@pytest.mark.equality
@settings(max_examples=30, deadline=None)
@given(at_least_two, at_least_two)
def test_listing_all_splits_is_scipys_permutation_test(a, b):
    def p(alternative):
        return scipy_stats.permutation_test(
            (np.sort(a), np.sort(b)),
            lambda x, y, axis: (x.mean(axis=axis) - y.mean(axis=axis)).round(9),
            vectorized=True,
            alternative=alternative,
        ).pvalue

    assert stats.permutation_order(a, b) == pytest.approx((p("greater"), p("less")))


def test_where_there_are_too_many_splits_random_ones_come_close(monkeypatch):
    low, high = [0.0, 1.0, 2.0, 3.0, 3.5], [2.5, 4.0, 5.0, 6.0]
    all_splits = stats.permutation_order(high, low)
    monkeypatch.setattr(stats, "EXACT_SPLITS", 100)
    stats._permutation_order.cache_clear()
    assert stats.permutation_order(high, low) == pytest.approx(all_splits, abs=0.05)
    assert stats.permutation_order(high, low) != all_splits
    stats._permutation_order.cache_clear()


def test_equal_seeds_have_no_order():
    assert stats.permutation_order([100] * 5, [100] * 5) == (1, 1)


@settings(max_examples=30, deadline=None)
@given(accuracies, accuracies)
def test_swapping_the_samples_swaps_the_directions(a, b):
    there, back = stats.permutation_order(a, b), stats.permutation_order(b, a)
    assert there.p_greater == pytest.approx(back.p_less)
    assert there.p_less == pytest.approx(back.p_greater)
    assert there.p_greater >= 1 / comb(len(a) + len(b), len(a)) - 1e-12


def test_holm_by_hand():
    # 0.01 * 3, 0.02 * 2, and 0.03, which may not fall below 0.04.
    assert stats.holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])


# Benjamini and Hochberg (1995), section 3.2: thrombolysis after myocardial infarction.
INFARCTION = (0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344)
INFARCTION += (0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000)


def test_corrections_reject_what_benjamini_and_hochberg_say_they_reject():
    q, corrected = stats.benjamini_hochberg(INFARCTION), stats.holm(INFARCTION)
    assert (q <= 0.05).sum() == 4  # their procedure
    assert (corrected <= 0.05).sum() == 3  # those that control the chance of any false rejection
    # The fourth is 0.0095 * 15 / 4 in the one and 0.0095 * 12 in the other.
    assert (q[3], corrected[3]) == pytest.approx((0.035625, 0.114))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.999))
def test_holm_rejects_as_its_steps_do(p, level):
    rejected = 0
    for k, smallest in enumerate(sorted(p)):  # Holm (1979): go on until one is too large
        if smallest * (len(p) - k) > level:
            break
        rejected += 1
    assert (stats.holm(p) <= level).sum() == rejected


def test_nothing_to_correct():
    assert len(stats.holm([])) == len(stats.benjamini_hochberg([])) == 0


def test_median_interval_of_few_seeds_is_the_range_and_says_so():
    assert stats.median_interval([3, 1, 5, 2, 4]) == (1, 5, pytest.approx(0.9375))
    assert stats.median_interval([7.0]) == (7, 7, 0)


@pytest.mark.parametrize("n", [6, 8, 9, 10, 15, 20, 31])
def test_median_interval_equals_scipy_where_scipy_has_one(n):
    values = np.random.default_rng(n).normal(size=n)
    expected = scipy_stats.quantile_test(values, q=0, p=0.5).confidence_interval(0.95)
    interval = stats.median_interval(values)
    assert interval[:2] == pytest.approx((expected.low, expected.high))
    assert interval.confidence >= 0.95


def test_rate_interval_by_hand():
    # Clopper-Pearson of n of n: the lower end is (0.025) ** (1 / n).
    low, high, _ = stats.rate_interval(5, 5)
    assert (low, high) == pytest.approx((0.025 ** (1 / 5), 1))
    assert stats.rate_interval(0, 5)[:2] == pytest.approx((0, 1 - low))


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0000, 0.1684),
        (1, 29, 0.0009, 0.1776),
    ],
)
def test_rate_interval_of_the_examples_of_newcombe(successes, n, low, high):
    """Newcombe (1998), Two-sided confidence intervals for the single proportion, Table I."""
    assert stats.rate_interval(successes, n)[:2] == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 30), st.data())
def test_rate_interval_equals_scipy(n, data):
    k = data.draw(st.integers(0, n))
    expected = scipy_stats.binomtest(k, n).proportion_ci(0.95, method="exact")
    assert stats.rate_interval(k, n)[:2] == pytest.approx((expected.low, expected.high), abs=1e-9)
