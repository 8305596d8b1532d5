"""The statistics of the verdicts, from SciPy: exact where an exact test exists.

Nothing here knows of claims, models or margins files; the rules that use it are in
:mod:`relength.verdicts.rules`.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

# Splits of the pooled values up to which the permutation test lists all of them (10 against 10:
# 184,756).
EXACT_SPLITS = 200_000
# Relative to the values: differences that only rounding tells apart. SciPy's own room is relative
# to the difference, and so misses equal splits of values near 100.
TIE = 100 * np.finfo(float).eps
CONFIDENCE = 0.95  # of intervals


class Summary(NamedTuple):
    """Mean, standard deviation (n - 1 in the denominator) and size of a sample."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, values: ArrayLike) -> "Summary":
        """Summary of at least two values."""
        values = np.asarray(values, dtype=float)
        return cls(float(values.mean()), float(values.std(ddof=1)), values.size)


class Interval(NamedTuple):
    """Closed interval and the confidence that it has at least."""

    low: float
    high: float
    confidence: float


class Equivalence(NamedTuple):
    """Two one-sided Welch tests: is the difference of two means within ±margin?"""

    p_inside: float  # small: the difference lies within the margin
    p_outside: float  # small: it does not (two-sided; ≤ 0.05 when the 95 % interval lies outside)
    difference: float
    interval: Interval  # 95 %, of the difference


@cache
def majority_p(successes: int, n: int) -> float:
    """One-sided exact binomial p value of `successes` of `n` against one half.

    Small when a majority is beyond chance: 5 of 5 gives 1/32, 7 of 8 gives 9/256.
    """
    return float(scipy.stats.binomtest(successes, n, 0.5, alternative="greater").pvalue)


def welch_difference(ours: Summary, theirs: Summary, confidence: float = 0.95) -> Interval:
    """Confidence interval of `ours.mean - theirs.mean`, unequal variances (Welch-Satterthwaite)."""
    a, b = ours.sd**2 / ours.n, theirs.sd**2 / theirs.n
    freedom = (a + b) ** 2 / (a**2 / (ours.n - 1) + b**2 / (theirs.n - 1))
    half = scipy.stats.t.ppf((1 + confidence) / 2, freedom) * np.sqrt(a + b)
    difference = ours.mean - theirs.mean
    return Interval(float(difference - half), float(difference + half), confidence)


@lru_cache(maxsize=10_000)
def welch_equivalence(
    ours: Summary, theirs: Summary, margin: float, sd_floor: float = 0.5
) -> Equivalence:
    """Two one-sided Welch tests from summaries (Schuirmann 1987).

    Both standard deviations are raised to `sd_floor`, in the unit of the means: seeds that all end
    at 100.0 would otherwise leave no uncertainty at all. Each sample needs n ≥ 2.
    """
    ours = ours._replace(sd=max(ours.sd, sd_floor))
    theirs = theirs._replace(sd=max(theirs.sd, sd_floor))

    def one_sided(shift: float, alternative: str) -> float:
        test = scipy.stats.ttest_ind_from_stats(
            ours.mean + shift,
            ours.sd,
            ours.n,
            theirs.mean,
            theirs.sd,
            theirs.n,
            equal_var=False,
            alternative=alternative,
        )
        return float(test.pvalue)

    inside = max(one_sided(margin, "greater"), one_sided(-margin, "less"))
    outside = min(one_sided(-margin, "greater"), one_sided(margin, "less"))
    return Equivalence(
        p_inside=inside,
        p_outside=min(1.0, 2 * outside),
        difference=ours.mean - theirs.mean,
        interval=welch_difference(ours, theirs),
    )


class Order(NamedTuple):
    """One-sided p values of the two directions."""

    p_greater: float
    p_less: float


def permutation_order(a: ArrayLike, b: ArrayLike) -> Order:
    """Exact permutation test of the difference in means of two independent samples.

    Above :data:`EXACT_SPLITS` splits, that many random ones are drawn from a fixed seed.
    """
    return _permutation_order(tuple(np.sort(a)), tuple(np.sort(b)))


@lru_cache(maxsize=10_000)
def _permutation_order(a: tuple[float, ...], b: tuple[float, ...]) -> Order:
    if min(a) == max(a) == min(b) == max(b):
        return Order(1.0, 1.0)  # every split gives the same difference
    if (
        min(len(a), len(b)) == 1
    ):  # SciPy wants two values in each; here a split is the choice of one
        alone, pool, sign = (a[0], a + b, 1) if len(a) == 1 else (b[0], a + b, -1)
        above = float(np.mean([sign * value >= sign * alone for value in pool]))
        below = float(np.mean([sign * value <= sign * alone for value in pool]))
        return Order(above, below)

    if comb(len(a) + len(b), len(a)) > EXACT_SPLITS:
        return Order(*(_drawn_p(a, b, alternative) for alternative in ("greater", "less")))
    pooled = np.array([*a, *b])[_splits(len(a), len(b))]
    differences = pooled[:, : len(a)].mean(axis=1) - pooled[:, len(a) :].mean(axis=1)
    given, room = differences[0], TIE * np.abs(pooled[0]).max()
    above, below = differences >= given - room, differences <= given + room
    return Order(float(above.mean()), float(below.mean()))


@lru_cache(maxsize=20)
def _splits(first: int, second: int) -> np.ndarray:
    """All splits of a pool into two samples, as places in it; row 0 is the given split."""
    chosen = np.array(list(combinations(range(first + second), first)), dtype=np.uint8)
    left = np.ones((len(chosen), first + second), dtype=bool)
    np.put_along_axis(left, chosen, False, axis=1)
    return np.hstack([chosen, left.nonzero()[1].reshape(-1, second).astype(np.uint8)])


def _drawn_p(a: tuple[float, ...], b: tuple[float, ...], alternative: str) -> float:
    """One-sided p value of the permutation test, from random splits."""
    test = scipy.stats.permutation_test(
        (np.array(a), np.array(b)),
        lambda x, y, axis: (x.mean(axis=axis) - y.mean(axis=axis)).round(9),  # equal is equal
        permutation_type="independent",
        vectorized=True,
        n_resamples=EXACT_SPLITS,
        alternative=alternative,
        rng=0,
    )
    return float(test.pvalue)


def holm(p: Sequence[float]) -> np.ndarray:
    """p values corrected by Holm's method: the chance of any false rejection stays at the level."""
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    return corrected.clip(max=1.0)


def benjamini_hochberg(p: Sequence[float]) -> np.ndarray:
    """q values of Benjamini and Hochberg: the expected share of false ones among those accepted."""
    return scipy.stats.false_discovery_control(p, method="bh") if len(p) else np.array([])


def median_interval(values: ArrayLike) -> Interval:
    """Distribution-free interval of a median: the k-th smallest to the k-th largest value.

    The largest k whose exact confidence, P(k ≤ B ≤ n - k) for B ~ Binomial(n, ½), is at least
    95 %. With fewer than six values there is no such interval: what comes back is the range, with
    the smaller confidence that it really has (five values: 93.75 %).
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    n = ordered.size
    if n == 0:
        raise ValueError("a median needs at least one value")
    k, real = _median_ranks(n)
    return Interval(float(ordered[k - 1]), float(ordered[n - k]), real)


@cache
def _median_ranks(n: int) -> tuple[int, float]:
    """The rank k of :func:`median_interval` in a sample of n, and its exact confidence."""
    k = max(1, int(scipy.stats.binom.ppf((1 - CONFIDENCE) / 2, n, 0.5)))
    real = 1 - 2 * scipy.stats.binom.cdf(k - 1, n, 0.5)
    return k, float(max(real, 0.0))


@cache  # SciPy takes longest to look at its arguments, and tables ask for few different ones
def rate_interval(successes: int, n: int) -> Interval:
    """Clopper-Pearson interval of a success rate, a fraction: 5 of 5 gives 0.478 to 1."""
    # The quantiles themselves: binomtest(...).proportion_ci searches for them, ten times as slowly.
    tail = (1 - CONFIDENCE) / 2
    low = scipy.stats.beta.ppf(tail, successes, n - successes + 1) if successes else 0.0
    high = scipy.stats.beta.isf(tail, successes + 1, n - successes) if successes < n else 1.0
    return Interval(float(low), float(high), CONFIDENCE)
