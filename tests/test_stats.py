"""The statistics, against numbers worked out by hand and against SciPy and statsmodels."""

from math import comb
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from relength.verdicts import stats
from relength.verdicts.stats import Summary

accuracies = st.lists(st.sampled_from([0.0, 12.5, 50.0, 99.9, 100.0]), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("successes", "n", "p"), [(5, 5, 1 / 32), (7, 8, 9 / 256), (4, 5, 6 / 32), (0, 5, 1)]
)
def test_majority_by_hand(successes, n, p):
    assert stats.majority_p(successes, n) == pytest.approx(p)


@pytest.mark.parametrize(
    ("n", "majority"), [(4, None), (5, 5), (7, 7), (8, 7), (9, 8), (10, 9), (15, 12), (20, 15)]
)
def test_smallest_majority(n, majority):
    assert stats.smallest_majority(n) == majority


@given(st.integers(1, 40), st.data())
def test_a_majority_for_and_one_against_never_meet(n, data):
    successes = data.draw(st.integers(0, n))
    assert stats.majority_p(successes, n) + stats.majority_p(n - successes, n) >= 1


def test_welch_interval_equals_scipy_on_the_samples():
    ours, theirs = np.array([98.0, 99.5, 97.0, 100.0, 96.5]), np.array([90.0, 99.0, 85.0])
    expected = scipy_stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    interval = stats.welch_difference(Summary.of(ours), Summary.of(theirs))
    assert interval[:2] == pytest.approx((expected.low, expected.high))


def test_equivalence_equals_statsmodels_on_the_samples():
    ours, theirs = np.array([98.0, 99.5, 97.0, 100.0, 96.5]), np.array([95.0, 99.0, 94.0, 97.0])
    compare = CompareMeans(DescrStatsW(ours), DescrStatsW(theirs))
    expected, *_ = compare.ttost_ind(-5, 5, usevar="unequal")
    test = stats.welch_equivalence(Summary.of(ours), Summary.of(theirs), margin=5)
    assert test.p_inside == pytest.approx(expected)


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


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_equal_statsmodels(p):
    with patch("gc.collect"):  # which statsmodels calls every time, and which takes half a second
        assert stats.holm(p) == pytest.approx(multipletests(p, method="holm")[1])
        assert stats.benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1])


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


@given(st.integers(1, 30), st.data())
def test_rate_interval_equals_scipy(n, data):
    k = data.draw(st.integers(0, n))
    expected = scipy_stats.binomtest(k, n).proportion_ci(0.95, method="exact")
    assert stats.rate_interval(k, n)[:2] == pytest.approx((expected.low, expected.high), abs=1e-9)
