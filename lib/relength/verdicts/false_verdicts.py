"""Simulate how often the verdict rules are wrong, on seeds that behave as those of this field do.

At long lengths seeds tend to end at 0 or at 100, so the situations are coin tosses, certain cells
and a few smooth ones. In each the truth is known, hence which verdicts would be false. Most are
worst cases: the truth sits exactly on the line that the rule asks about, and one step to the right
side of it the rate falls.

The rules are simulated with the seeds of stage one, and then the whole procedure of two stages, for
claims of several parts. A claim is true if all of its parts are. A part that asks whether seeds
solve a test is true where more than half of all seeds do, and false where fewer do. At exactly half
either verdict counts as false.

A rule promises at most 5 % where its test does. It cannot promise it where the seeds hide the truth
(a failure that only one seed in twenty shows) or where the printed number is itself a draw; those
situations are listed too, with `promised` False, because a reader of the book should know them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relength.kept import kept
from relength.specs.margins import Margins, load_margins
from relength.verdicts import rules, stats

CODE = (
    *("verdicts.false_verdicts", "verdicts.rules", "verdicts.stats", "verdicts.wording"),
    "specs.margins",
)

Draw = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Situation:
    """A rule, a known truth, and the verdicts that are false there."""

    rule: str
    seeds: str  # what the seeds do, for the reader
    false: tuple[rules.Outcome, ...]
    decide: Callable[[np.random.Generator, int, Margins], rules.Decision]
    promised: bool = True  # at most 5 % of each


def coin(solved: float) -> Draw:
    """Seeds that end at 100 with this probability, else at 0."""
    return lambda rng, n: 100.0 * (rng.random(n) < solved)


def bell(mean: float, sd: float) -> Draw:
    """Seeds around a mean."""
    return lambda rng, n: rng.normal(mean, sd, n)


def anywhere(rng: np.random.Generator, n: int) -> np.ndarray:
    """Seeds that end anywhere between 0 and 100."""
    return rng.uniform(0.0, 100.0, n)


def _solves(seeds: Draw) -> Callable[..., rules.Decision]:
    return lambda rng, n, m: rules.majority(
        [m.levels["solved"].holds(value) for value in seeds(rng, n)], m
    )


def _median(seeds: Draw, printed: float | Draw) -> Callable[..., rules.Decision]:
    def decide(rng: np.random.Generator, n: int, m: Margins) -> rules.Decision:
        target = float(np.median(printed(rng, 5))) if callable(printed) else printed
        return rules.median_value(seeds(rng, n), target, m.measures["accuracy"], m)

    return decide


def _mean(seeds: Draw, theirs: Draw) -> Callable[..., rules.Decision]:
    def decide(rng: np.random.Generator, n: int, m: Margins) -> rules.Decision:
        printed = stats.Summary.of(theirs(rng, 5))
        return rules.mean_value(seeds(rng, n), printed, m.measures["accuracy"], m)

    return decide


def _order(first: Draw, second: Draw, relation: rules.Relation) -> Callable[..., rules.Decision]:
    return lambda rng, n, m: rules.order(
        first(rng, n), second(rng, n), relation, m.measures["accuracy"], m
    )


def _cost(edge: float) -> Callable[..., rules.Decision]:
    """Repeats whose ratio is as often inside the margin of 2 as outside."""
    return lambda rng, n, m: rules.cost(rng.normal(edge, 0.05, n), 2.0, m.measures["cost_ratio"], m)


def _claim(
    parts: list[Draw], decide: Callable[..., rules.Decision], test: rules.Test = "votes"
) -> Callable[..., rules.Decision]:
    """The whole procedure at scale reduced, for a claim whose parts draw their seeds anew."""

    def both_stages(rng: np.random.Generator, n: int, m: Margins) -> rules.Decision:
        enough = rules.seeds_for_parts(len(parts), m, "reduced", test)
        drawn = [part(rng, enough) for part in parts]
        rule = [lambda first, seeds=seeds: decide(seeds[:first], m) for seeds in drawn]
        return rules.staged(rule, [enough] * len(parts), m).whole

    return both_stages


def _all_solve(*solved: float) -> Callable[..., rules.Decision]:
    """A claim that every part is solved; seeds of each end at 100 with this probability."""
    return _claim(
        [coin(share) for share in solved],
        lambda seeds, m: rules.majority([m.levels["solved"].holds(v) for v in seeds], m),
    )


def _all_printed(printed: float, *seeds: Draw) -> Callable[..., rules.Decision]:
    """A claim that every part has the same printed median."""
    return _claim(
        [*seeds],
        lambda values, m: rules.median_value(values, printed, m.measures["accuracy"], m),
    )


def _all_better(parts: int, first: Draw, second: Draw) -> Callable[..., rules.Decision]:
    """A claim that in every part one model is better than another."""

    def both(rng: np.random.Generator, n: int) -> np.ndarray:
        return np.stack([first(rng, n), second(rng, n)], axis=1)

    return _claim(
        [both] * parts,
        lambda seeds, m: rules.order(*seeds.T, "better", m.measures["accuracy"], m),
        "better",
    )


BOTH: tuple[rules.Outcome, ...] = ("reproduced", "contradicted")
REPRODUCED, CONTRADICTED = BOTH[:1], BOTH[1:]

PARTS = (1, 2, 4, 8)  # of simulated claims


def _of_parts(n: int) -> Iterator[Situation]:
    """Situations of claims of n parts, judged in two stages."""
    rule = f"two stages, {n} part{'s' * (n > 1)}"
    for seeds, false, decide in (
        ("in each part half of the seeds at 100, half at 0", BOTH, _all_solve(*[0.5] * n)),
        ("in each part six of ten seeds at 100", CONTRADICTED, _all_solve(*[0.6] * n)),
        ("in each part four of ten seeds at 100", REPRODUCED, _all_solve(*[0.4] * n)),
        ("all at 100", CONTRADICTED, _all_solve(*[1.0] * n)),
        ("all at 0", REPRODUCED, _all_solve(*[0.0] * n)),
        (
            "printed 60 in each part; around 65, on the margin",
            BOTH,
            _all_printed(60.0, *[bell(65, 3)] * n),
        ),
    ):
        yield Situation(rule, seeds, false, decide)
    equal, often_tied = (0.5, 0.5), (0.95, 0.8)
    for (first, second), false, words, promised in (
        (equal, BOTH, "better in each part; both half at 0, half at 100", True),
        (
            often_tied,
            CONTRADICTED,
            "better in each part; one in twenty against one in five at 0: often all at 100, a tie",
            False,
        ),
    ):
        if n in (PARTS[0], PARTS[-1]):  # between them nothing turns
            yield Situation(rule, words, false, _all_better(n, coin(first), coin(second)), promised)
    if n > 1:
        certain = [1.0] * (n - 1)
        half = "one part half at 100, half at 0; the others at 100"
        yield Situation(rule, half, BOTH, _all_solve(*certain, 0.5))
        less = "one part four of ten at 100; the others at 100"
        yield Situation(rule, less, REPRODUCED, _all_solve(*certain, 0.4))


SITUATIONS = (
    Situation("solves", "half of the seeds at 100, half at 0", BOTH, _solves(coin(0.5))),
    Situation("solves", "nine of ten seeds at 100, one at 0", CONTRADICTED, _solves(coin(0.9))),
    Situation("solves", "all at 100", CONTRADICTED, _solves(coin(1.0))),
    Situation("solves", "all at 0", REPRODUCED, _solves(coin(0.0))),
    Situation("median", "printed 0; half at 0, half at 100", BOTH, _median(coin(0.5), 0.0)),
    Situation("median", "printed 0; all at 0", CONTRADICTED, _median(coin(0.0), 0.0)),
    Situation("median", "printed 0; all at 100", REPRODUCED, _median(coin(1.0), 0.0)),
    Situation("median", "printed 60; around 65, on the margin", BOTH, _median(bell(65, 3), 60.0)),
    Situation(
        "median",
        "printed 60; half at 0, half at 100, so that 60 is a median",
        CONTRADICTED,
        _median(coin(0.5), 60.0),
        promised=False,
    ),
    Situation(
        "median",
        "printed median is of five seeds like ours; half at 0, half at 100",
        CONTRADICTED,
        _median(coin(0.5), coin(0.5)),
    ),
    Situation(
        "median",
        "printed median is of five seeds like ours; anywhere from 0 to 100",
        CONTRADICTED,
        _median(anywhere, anywhere),
        promised=False,
    ),
    Situation("mean ± sd", "five points apart, sd 3", BOTH, _mean(bell(65, 3), bell(60, 3))),
    Situation("mean ± sd", "both all at 100", CONTRADICTED, _mean(coin(1.0), coin(1.0))),
    Situation(
        "mean ± sd", "both half at 0, half at 100", CONTRADICTED, _mean(coin(0.5), coin(0.5))
    ),
    Situation(
        "mean ± sd",
        "theirs all at 100, one in twenty of ours at 0",
        REPRODUCED,
        _mean(coin(0.95), coin(1.0)),
        promised=False,
    ),
    Situation(
        "better", "both half at 0, half at 100", BOTH, _order(coin(0.5), coin(0.5), "better")
    ),
    Situation(
        "better",
        "both around 60, sd 10",
        BOTH,
        _order(bell(60, 10), bell(60, 10), "better"),
    ),
    Situation(
        "better", "all at 100 against all at 0", CONTRADICTED, _order(coin(1), coin(0), "better")
    ),
    Situation(
        "better",
        "one in twenty against one in five at 0: often all at 100, a tie",
        CONTRADICTED,
        _order(coin(0.95), coin(0.8), "better"),
        promised=False,
    ),
    Situation(
        "on par",
        "both half at 0, half at 100",
        CONTRADICTED,
        _order(coin(0.5), coin(0.5), "on_par"),
    ),
    Situation(
        "on par",
        "both around 60, sd 10",
        CONTRADICTED,
        _order(bell(60, 10), bell(60, 10), "on_par"),
    ),
    Situation(
        "on par", "all at 100 against all at 0", REPRODUCED, _order(coin(1), coin(0), "on_par")
    ),
    Situation("cost", "as often inside the margin as outside", BOTH, _cost(2.5)),
    *(situation for parts in PARTS for situation in _of_parts(parts)),
)


def false_verdict_rates(repeats: int = 2000) -> pd.DataFrame:
    """Simulated rates of false verdicts, the same on every call; computed once and kept.

    repeats: simulated claims per situation.

    Columns: rule, situation, verdict (the false one), rate (a fraction), promised (the procedure
    keeps it at or below the level).
    """
    margins = load_margins()
    given = (str(repeats), margins.model_dump_json())
    return kept("error-rates", lambda: _simulated(repeats, margins), *given, code=CODE)


def _simulated(repeats: int, margins: Margins) -> pd.DataFrame:
    rows = []
    for number, situation in enumerate(SITUATIONS):
        rng = np.random.default_rng(number)
        outcomes = [
            situation.decide(rng, margins.least_seeds, margins).outcome for _ in range(repeats)
        ]
        rows += [
            {
                "rule": situation.rule,
                "situation": situation.seeds,
                "verdict": verdict,
                "rate": outcomes.count(verdict) / repeats,
                "promised": situation.promised,
            }
            for verdict in situation.false
        ]
    return pd.DataFrame(rows)
