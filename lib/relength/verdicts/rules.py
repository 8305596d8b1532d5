"""The verdict rules, on bare numbers: one per kind of claim.

Every rule takes what the seeds gave (one number or one yes/no per seed) and returns a
:class:`Decision`. Where the numbers come from is :mod:`relength.verdicts.claims`' business; how
often the rules err is simulated in :mod:`relength.verdicts.false_verdicts`. Fewer seeds than
`Margins.least_seeds` never decide anything.

A claim that is trained is judged in two stages (:func:`staged`). Stage one can reproduce it, and
stage two can contradict it. The seeds of both are fixed in advance.

What speaks against a claim may be results below it or above it: a decision says which it is. Cut
training can cause either.
"""

from collections.abc import Callable, Sequence
from math import comb
from statistics import median
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from relength.specs.margins import ROUNDING, Margin, Margins
from relength.verdicts import stats
from relength.verdicts.wording import number, plural

Outcome = Literal["reproduced", "contradicted", "inconclusive"]
Relation = Literal["better", "on_par"]
Scale = Literal["paper", "reduced"]
Test = Literal["votes", "mean", "better", "on_par"]  # seeds that say yes or no, Welch, permutation


class Decision(NamedTuple):
    """The answer of one rule to one part of a claim."""

    outcome: Outcome
    n: int  # seeds; the smaller sample where two are compared
    p_for: float  # small: beyond chance in favour of the claim
    p_against: float  # small: beyond chance against it
    seen: str  # half a sentence
    agree: int | None = None  # seeds that satisfy the claim, where each is a yes or a no
    exceeds: bool = False  # contradicted by results that are better, not worse, than claimed
    leans: bool = True  # whether p_for could be the smaller; not where "on par" is no tie


def majority(yes: ArrayLike, margins: Margins, exceeds: bool = False) -> Decision:
    """Thresholds, "solves", trends, properties: does a majority of the seeds satisfy the claim?

    yes: one bool per seed; exceeds: whether a seed that says no does so by being better. Exact
    binomial test against one half, one-sided, in both directions.
    """
    yes = np.asarray(yes, dtype=bool)
    agree, n = int(yes.sum()), yes.size
    return _decide(
        n,
        stats.majority_p(agree, n),
        stats.majority_p(n - agree, n),
        f"{agree} of {n} agree",
        margins,
        agree=agree,
        exceeds=exceeds,
    )


def fact(holds: bool) -> Decision:
    """Decide by arithmetic: chance has no part in it, so there is nothing to repeat."""
    outcome: Outcome = "reproduced" if holds else "contradicted"
    return Decision(outcome, 1, float(not holds), float(holds), "", agree=int(holds))


def median_value(
    values: ArrayLike, printed: ArrayLike, margin: Margin, margins: Margins
) -> Decision:
    """A value printed as a median, or several of one run: is a majority within the margin?

    values: (seeds, tests); printed: (tests,). A seed agrees when all its tests do. Contradicted
    when a majority is outside and all seeds that are lie on the same side. Higher numbers are
    better.
    """
    values, printed = _two_dimensional(values), np.atleast_1d(np.asarray(printed, dtype=float))
    room = np.array([margin.around(value) for value in printed])
    low = (values < printed - room).any(axis=1)
    high = (values > printed + room).any(axis=1)
    inside = ~low & ~high
    decision = majority(inside, margins)
    one_side = not (low.any() and high.any())
    p_against = decision.p_against if one_side else 1.0
    target = ", ".join(number(value) for value in printed)
    seen = f"{decision.seen} ({_middle(values)}; printed {target})"
    exceeds = bool(one_side and high.any())
    return _decide(
        decision.n, decision.p_for, p_against, seen, margins, agree=decision.agree, exceeds=exceeds
    )


def inside(
    values: ArrayLike, low: float, high: float, margin: Margin, margins: Margins
) -> Decision:
    """One number per seed that the claim puts between two bounds: do a majority lie there?

    The margin widens the range on both sides. Contradicted when a majority is outside and all seeds
    that are lie on the same side. Higher numbers are better.
    """
    values = np.asarray(values, dtype=float)
    below = values < low - margin.around(low)
    above = values > high + margin.around(high)
    decision = majority(~below & ~above, margins)
    one_side = not (below.any() and above.any())
    target = number(low) if low == high else f"{number(low)} to {number(high)}"
    rooms = [margin.around(end) for end in (low, high)]
    if max(rooms) > 2 * ROUNDING:  # a margin that is only for rounding is none
        target += f", give or take {' and '.join(dict.fromkeys(map(number, rooms)))}"
    seen = f"{decision.seen} ({_middle(values)}; claimed {target})"
    return _decide(
        decision.n,
        decision.p_for,
        decision.p_against if one_side else 1.0,
        seen,
        margins,
        agree=decision.agree,
        exceeds=bool(one_side and above.any()),
    )


def mean_value(
    values: ArrayLike, printed: stats.Summary, margin: Margin, margins: Margins
) -> Decision:
    """A value printed as mean ± sd: two one-sided Welch tests on the two summaries.

    values: one number per seed, higher ones are better. Contradicted when the 95 % interval of the
    difference lies outside the margin.
    """
    values = np.asarray(values, dtype=float)
    if values.size < margins.least_seeds:
        seen = f"mean {number(values.mean())}; printed {number(printed.mean)}"
        return _decide(values.size, 1.0, 1.0, seen, margins)
    ours, room = stats.Summary.of(values), margin.around(printed.mean)
    test = stats.welch_equivalence(ours, printed, room, margins.sd_floor)
    seen = (
        f"mean {number(ours.mean)} ± {number(ours.sd)}, printed {number(printed.mean)} ± "
        f"{number(printed.sd)}; 95 % interval of the difference {number(test.interval.low)} to "
        f"{number(test.interval.high)}"
    )
    exceeds = test.difference > 0
    return _decide(values.size, test.p_inside, test.p_outside, seen, margins, exceeds=exceeds)


def order(
    first: ArrayLike,
    second: ArrayLike,
    relation: Relation,
    margin: Margin,
    margins: Margins,
    best: float | None = None,
    lower_is_better: bool = False,
) -> Decision:
    """Is the first better than the second, or on par with it?

    best: the best number there can be, if there is one: what has it cannot be bettered.

    Exact permutation test on independent samples. When all values of both are within the margin of
    each other it is a tie, whatever the test says: that reproduces "on par" and contradicts
    "better". A difference in either direction contradicts "on par", so its p value is doubled.
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    seen = f"{_sample(first)} against {_sample(second)}"
    if lower_is_better:
        first, second, best = -first, -second, None if best is None else -best
    pooled = np.concatenate([first, second])
    tie = pooled.max() - pooled.min() <= margin.around(float(pooled.max()))
    p = stats.permutation_order(first, second)
    seen += ", a tie" if tie else ""
    # A tie is a rule, not a test. 0 and 1 let it pass through Holm's correction as the certainty it
    # is.
    if relation == "better":
        p_for, p_against = (1.0, 0.0) if tie else (p.p_greater, p.p_less)
        exceeds = best is not None and bool(np.median(second) >= best - margin.around(best))
    else:
        p_for, p_against = (0.0, 1.0) if tie else (1.0, min(1.0, 2 * min(p)))
        exceeds = p.p_greater < p.p_less
    n, leans = min(first.size, second.size), relation == "better" or bool(tie)
    decision = _decide(n, p_for, p_against, seen, margins, exceeds=exceeds)
    return decision._replace(leans=leans)


def cost(ratios: ArrayLike, printed: float, margin: Margin, margins: Margins) -> Decision:
    """A ratio of costs: do all side-by-side repeats lie within the margin, or all outside?

    The p values are those of the exact binomial test, but only a unanimous sample decides. Cheaper
    is better.
    """
    ratios = np.asarray(ratios, dtype=float)
    if ratios.size == 0:
        return _decide(0, 1.0, 1.0, "no repeats side by side on one device", margins)
    inside = np.abs(ratios - printed) <= margin.around(printed)
    agree, n = int(inside.sum()), inside.size
    return _decide(
        n,
        stats.majority_p(agree, n) if agree == n else 1.0,
        stats.majority_p(n - agree, n) if agree == 0 else 1.0,
        f"{agree} of {n} within the margin ({_middle(ratios)}; printed {number(printed)})",
        margins,
        agree=agree,
        exceeds=bool(np.median(ratios) < printed),
    )


class Staged(NamedTuple):
    """Judge a claim by both stages.

    parts    of stage two where it has judged one, else of stage one
    lost     places of the parts that their rule, alone, speaks against in all seeds judged so far
    waiting  those of them that lack seeds of stage two
    given    places of the parts that the claim takes for granted
    """

    whole: Decision
    parts: tuple[Decision, ...]
    lost: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    given: tuple[int, ...] = ()


def staged(
    parts: Sequence[Callable[[int], Decision]],
    enough: Sequence[int],
    margins: Margins,
    given: tuple[int, ...] = (),
) -> Staged:
    """Judge the parts of a claim in two stages.

    parts   for each, its rule applied to its first n seeds, or to all that it has if they are fewer
    enough  for each, the seeds of stage two (:func:`seeds_for_parts`)
    given   places of the parts that the claim takes for granted, which never contradict it

    Stage one reads `Margins.least_seeds` seeds: the claim is reproduced if every part is. A part
    whose rule speaks against it there enters stage two. The claim is contradicted if such a part
    still is with the seeds of stage two, after Holm's correction over all parts. So a true claim is
    contradicted in at most `Margins.level` of all cases, and a false one is reproduced in at most
    as many, whatever made others run more seeds.
    """
    first = [part(margins.least_seeds) for part in parts]
    for i in given:
        if first[i].outcome == "contradicted":
            first[i] = first[i]._replace(p_against=1.0, outcome="inconclusive", exceeds=False)
    entered = [i for i, one in enumerate(first) if one.outcome == "contradicted"]
    now = [parts[i](enough[i]) if i in entered else one for i, one in enumerate(first)]
    lost = tuple(i for i in entered if now[i].outcome == "contradicted")
    waiting = tuple(i for i in lost if now[i].n < enough[i])
    # A part that lacks seeds of stage two contradicts nothing yet.
    counted = [
        one._replace(p_against=1.0, outcome="inconclusive") if i in waiting else one
        for i, one in enumerate(now)
    ]
    whole = conjunction(counted, margins)._replace(
        seen=now[0].seen if len(now) == 1 else _together(now),
        exceeds=any(now[i].exceeds for i in lost),
    )
    return Staged(whole, tuple(now), lost, waiting, given)


def conjunction(parts: Sequence[Decision], margins: Margins, unit: str = "seed") -> Decision:
    """Several parts: reproduced if every one is, contradicted if one is after Holm's correction.

    p_for is the largest of the parts (all must hold), p_against the smallest corrected one. It
    exceeds when one of the parts that contradict it does.

    unit: what votes, for the words alone
    """
    if len(parts) == 1:
        return parts[0]
    p_for = max(part.p_for for part in parts)
    corrected = stats.holm([part.p_against for part in parts])
    n = min(part.n for part in parts)
    against = [part for part, p in zip(parts, corrected, strict=True) if p <= margins.level]
    exceeds = any(part.exceeds for part in against)
    p_against = float(min(corrected))
    return _decide(n, p_for, p_against, _together(parts, unit), margins, exceeds=exceeds)


def seeds_for_parts(
    parts: int, margins: Margins, scale: Scale = "paper", test: Test = "votes"
) -> int:
    """Seeds of stage two: the fewest with which one part of so many can contradict a claim.

    test: what judges the part; where seeds vote, all of so many are against it
    """
    n = max(margins.least_seeds, margins.stage_two.get(scale, 0))
    while parts * _smallest_p(test, n) > margins.level:
        n += 1
    return n


def _smallest_p(test: Test, n: int) -> float:
    """The smallest p value that a test of n seeds (against as many) can have."""
    match test:
        case "votes":
            return stats.majority_p(n, n)
        case "better":
            return 1 / comb(2 * n, n)
        case "on_par":
            return 2 / comb(2 * n, n)
        case "mean":
            return 0.0


def _decide(
    n: int,
    p_for: float,
    p_against: float,
    seen: str,
    margins: Margins,
    agree: int | None = None,
    exceeds: bool = False,
) -> Decision:
    outcome: Outcome = "inconclusive"
    if n >= margins.least_seeds:
        if p_for <= margins.level:
            outcome = "reproduced"
        elif p_against <= margins.level:
            outcome = "contradicted"
    return Decision(
        outcome, n, p_for, p_against, seen, agree, exceeds and outcome == "contradicted"
    )


def _together(parts: Sequence[Decision], unit: str = "seed") -> str:
    votes = [part for part in parts if part.agree is not None]
    if len(votes) == len(parts):
        unanimous = sum(part.agree == part.n for part in parts)
        if unanimous == len(parts):
            fewest, most = (limit(part.n for part in parts) for limit in (min, max))
            if most == 1:
                return f"the only {unit} agrees in each of {len(parts)} parts"
            if fewest == most:
                return f"{most} of {most} {unit}s agree in each of {len(parts)} parts"
            return f"all {unit}s, {fewest} to {most}, agree in each of {len(parts)} parts"
        against = sum(part.agree == 0 for part in parts)
        if against == len(parts):
            return f"no {unit} agrees in any of {len(parts)} parts"
        if not unanimous:
            words = f"in none of {len(parts)} parts do all {unit}s agree"
            return f"{words}; in {against} no {unit} does" if against else words
        words = f"all {unit}s agree in {unanimous} of {len(parts)} parts"
        return f"{words} and no {unit} in {against}" if against else words
    held = sum(part.outcome == "reproduced" for part in parts)
    lost = sum(part.outcome == "contradicted" for part in parts)
    if held or lost:
        return (
            f"taken alone, {held or 'none'} of {len(parts)} parts would be reproduced and "
            f"{lost or 'none'} contradicted"
        )
    asked = [part for part in parts if part.leans]
    apart = len(parts) - len(asked)
    if not asked:
        return f"the {unit}s are on par in none of {apart} parts"
    leaning = sum(part.p_for < part.p_against for part in asked)
    alone = max(part.n for part in parts) == 1
    who = f"one {unit} alone leans" if alone else f"the {unit}s lean"
    words = f"{who} towards the claim in {leaning or 'none'} of {plural(len(asked), 'part')}"
    others = plural(apart, "other")
    spread = "claimed to be on par, values lie further apart than the margin"
    return f"{words}; in {others}, {spread}" if apart else words


def _two_dimensional(values: ArrayLike) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    return values[:, None] if values.ndim == 1 else values


def _sample(values: np.ndarray) -> str:
    listed = ", ".join(number(value) for value in np.sort(values)[::-1])
    return f"{_middle(values)} ({listed})" if len(values) != 2 else f"values {listed}"


def middle(values: ArrayLike) -> list[list[float]]:
    """The median over seeds, test by test; both of two seeds, since these have no middle."""
    seeds = _two_dimensional(values).tolist()
    return sorted(seeds) if len(seeds) == 2 else [[*map(median, zip(*seeds, strict=True))]]


def _middle(values: ArrayLike) -> str:
    lines = middle(values)
    listed = " and ".join(", ".join(map(number, line)) for line in lines)
    return listed if len(lines) == 2 else f"median {listed}"
