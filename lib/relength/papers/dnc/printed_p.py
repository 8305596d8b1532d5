"""Learn from the printed p values of Tables 4 and 7 how they were made; no run is needed.

The paper names a Mann-Whitney U test and a correction by the false discovery rate (Benjamini and
Hochberg), and not whether the test is one- or two-sided, nor which comparisons are corrected
together. Its numbers do. Of ten runs against ten, none equal, U is a whole number from 0 to 100, so
a p value is one of a few. The correction takes the k-th smallest of m to p m/k, or to the corrected
value of a larger one if that is smaller. So the last of the cells that print one number is p m/k
itself, and m/k is known. A reading in which no such p gives the printed number is not what the
authors did.

Where both approaches print a best run of 100 % two runs may be equal, and U may be anything. A
number that such a cell prints is not counted.
"""

from functools import cache
from math import comb
from typing import Any

import numpy as np
import pandas as pd
import scipy
from markupsafe import Markup

from relength.papers.dnc.by_length import EXTENDED, TRAINED
from relength.papers.dnc.recounts import SIGNIFICANT, statistic
from relength.report import exhibits
from relength.report.exhibits import Exhibit, rows_table
from relength.report.wording import from_to, grid, words
from relength.specs.published import name_of

ROUNDED = 0.005  # a printed number stands for what is at most so far from it
PERFECT = 100.0
TABLES = {"dnc-table-4": TRAINED, "dnc-table-7": EXTENDED}
TESTS = {
    "one-sided, normal": ("one", "asymptotic"),  # SciPy's default before version 1.7
    "one-sided, exact": ("one", "exact"),
    "two-sided, normal": ("two", "asymptotic"),
    "two-sided, exact": ("two", "exact"),
}
FAMILIES = {  # what is corrected together
    "none": "not corrected",
    "task": "per task",
    "pair": "per pair",
    "table": "whole table",
}
MOST_SEEDS = 10


@cache
def possible(sides: str, method: str, runs: int = 10) -> tuple[float, ...]:
    """The p values that the test can have of so many runs against as many, none of them equal.

    sides   one: the smaller of the two directions, as SciPy gave it before version 1.7; or two
    method  asymptotic (the normal approximation, continuity corrected) or exact, as SciPy has it
    """
    found = []
    for u in range(runs * runs // 2, runs * runs + 1):
        first, second = _samples(u, runs)
        side = {"one": "greater", "two": "two-sided"}[sides]
        p = float(scipy.stats.mannwhitneyu(first, second, alternative=side, method=method).pvalue)
        # In the very middle the approximation of old did not tell the directions apart.
        found.append(min(p, 1 - p) if (sides, method) == ("one", "asymptotic") else p)
    return tuple(found)


def _samples(u: int, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Two samples without equal values, of whose pairs the first is larger in ``u``."""
    beaten = np.full(runs, u // runs) + (np.arange(runs) < u % runs)
    return beaten - 0.5 + np.arange(runs) / (2 * runs), np.arange(runs, dtype=float)


def impossible(artifact: str, test: str, family: str) -> tuple[list[float], int]:
    """The printed numbers that a reading cannot give, and how many were looked at.

    A number counts once in each group of comparisons that are corrected together.
    """
    printed, equal = grid(artifact), _maybe_equal(artifact)
    lattice = np.array(possible(*TESTS[test]))
    wrong, looked_at = [], 0
    for values, ties in _groups(printed, equal, family):
        for value in np.unique(values[values > ROUNDED]):
            if ties[values == value].any():
                continue
            rank = int((values <= value).sum()) if family != "none" else values.size
            corrected = np.minimum(lattice * values.size / rank, 1)
            looked_at += 1
            if not (abs(corrected - value) <= ROUNDED + 1e-9).any():
                wrong.append(float(value))
    return wrong, looked_at


def _groups(
    printed: pd.DataFrame, equal: pd.DataFrame, family: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numbers that are corrected together, and which may be of equal runs."""
    if family == "task":
        return [(printed[task].to_numpy(), equal[task].to_numpy()) for task in printed]
    if family == "pair":
        return [(printed.loc[p].to_numpy(), equal.loc[p].to_numpy()) for p in printed.index]
    return [(printed.to_numpy().ravel(), equal.to_numpy().ravel())]


def _maybe_equal(artifact: str) -> pd.DataFrame:
    """Tell whether runs of a pair may be equal: both have a best run of 100 %, as it is printed."""
    best, pairs = statistic(TABLES[artifact].means, "max") == PERFECT, grid(artifact).index
    return pd.DataFrame(
        [best.loc[first] & best.loc[second] for first, second in map(split, pairs)], index=pairs
    )


def split(pair: str) -> tuple[str, str]:
    """The two approaches of a row of Tables 4 and 7."""
    first, _, second = pair.partition(" vs ")
    return first, second


def readings() -> pd.DataFrame:
    """A row per table, test and family: numbers that cannot be, and those that were looked at."""
    return pd.DataFrame(
        [
            {
                **{"artifact": artifact, "test": test, "family": family},
                **{"impossible": len(wrong), "numbers": looked_at},
                "which": " ".join(f"{value:.2f}" for value in wrong),
            }
            for artifact in TABLES
            for test in TESTS
            for family in FAMILIES
            for wrong, looked_at in [impossible(artifact, test, family)]
        ]
    )


def readings_table() -> Exhibit:
    """Tabulate how many printed numbers each reading of the test and its correction cannot give."""
    data = readings()
    caption = (
        f"<b>Which test was it?</b> {exhibits.COMPUTED} For each reading: how many of the printed "
        "numbers it cannot give. Numbers that say nothing are not counted. <i>Normal</i> is the "
        "approximation with a correction for continuity, <i>exact</i> counts orders. Corrected "
        "together are the ten comparisons of a task, the seven of a pair of approaches, or all "
        "seventy. 0.00 says nothing, and neither does a number of two approaches that both have a "
        "run at 100 %. Point at a cell to see which numbers."
    )
    columns = {"test": "text", "corrected together": "text"}
    columns |= {name_of(artifact): "number" for artifact in TABLES}
    found = {(row.test, row.family, row.artifact): _counted(row) for row in data.itertuples()}
    rows = [
        [test, FAMILIES[family], *(found[test, family, artifact] for artifact in TABLES)]
        for test in TESTS
        for family in FAMILIES
    ]
    name = "dnc-p-values-readings"
    html = exhibits.table(rows_table(columns, rows), caption, name, [exhibits.csv(name, data)])
    none = data[data["impossible"] == 0]
    return Exhibit(html, f"{len(none)} of {len(data)} readings give all printed numbers.", data)


def _counted(row: Any) -> str:
    form = '<span title="{}">{} of {}</span>' if row.impossible else '<b title="{}">{} of {}</b>'
    return Markup(form).format(row.which, row.impossible, row.numbers)


def readings_in_words() -> str:
    """Say which reading the printed numbers allow, and which they do not."""
    data = readings().groupby(["test", "family"], sort=False)[["impossible", "numbers"]].sum()
    lines = ["Printed numbers of both tables that a reading cannot give:"]
    for (test, family), row in data.sort_values("impossible", kind="stable").iterrows():
        found = f"{row['impossible']} of {row['numbers']}"
        lines.append(f"  {test + ', ' + FAMILIES[family]:<34}{found:>10}")
    return "\n".join(lines)


def two_sided() -> str:
    """Count the significant differences as printed, and those that remain if p is doubled.

    A p value of one direction is half of that of both, before the correction and after it.
    """
    lines = []
    for artifact in TABLES:
        cells = grid(artifact).stack()
        significant = cells[cells <= SIGNIFICANT]
        surely = significant[2 * (significant + ROUNDED) <= SIGNIFICANT]
        perhaps = significant[2 * (significant - ROUNDED) <= SIGNIFICANT]
        lines.append(
            f"{name_of(artifact)}: {len(significant)} of {len(cells)} are at most {SIGNIFICANT}. "
            f"Twice as large, {from_to(len(surely), len(perhaps))} of these are."
        )
        for task, gone in significant.drop(perhaps.index).groupby(level=1, sort=False):
            named = [f"{short_pair(pair)} ({p:.2f})" for (pair, _), p in gone.items()]
            lines.append(f"  no longer in {task}: {words(named)}")
    return "\n".join(lines)


def short_pair(pair: str) -> str:
    """A pair without what both baselines are called."""
    return pair.replace("-BASELINE", "")


def directions() -> str:
    """Count the significant differences whose printed medians and means name the same winner."""
    lines = []
    for artifact in TABLES:
        signs = {}
        for name in ("median", "mean"):
            values = statistic(TABLES[artifact].means, name)
            signs[name] = pd.DataFrame(
                {
                    pair: np.sign(values.loc[split(pair)[0]] - values.loc[split(pair)[1]])
                    for pair in grid(artifact).index
                }
            ).T.stack()
        cells = grid(artifact).stack()
        kept = cells.index[cells <= SIGNIFICANT]
        median, mean = (signs[name][kept] for name in ("median", "mean"))
        both = int(((median == mean) & (median != 0)).sum())
        equal = int(((median == 0) | (mean == 0)).sum())
        lines.append(
            f"{name_of(artifact)}: of {len(kept)} significant differences, printed median and mean "
            f"name the same winner in {both} and different ones in {len(kept) - both - equal}; in "
            f"{equal} one of the two is a tie."
        )
    return "\n".join(lines)


def least(first: int, second: int) -> float:
    """Compute the least one-sided p of so many runs: all of one approach above all others.

    >>> least(3, 3)
    0.05
    """
    return 1 / comb(first + second, first)


def reach_table() -> Exhibit:
    """The smallest p of so many seeds, and the separated pairs that a correction needs."""
    data = pd.DataFrame(
        [
            {
                **{"seeds": n, "one_sided": least(n, n), "two_sided": min(1.0, 2 * least(n, n))},
                **{
                    f"{sides}_of_{family}": separated(sides * least(n, n), family)
                    for sides in (1, 2)
                    for family in (10, 70)
                },
            }
            for n in range(1, MOST_SEEDS + 1)
        ]
    )
    columns = {
        "seeds of each": "number",
        "least p, one-sided": "number",
        "two-sided": "number",
        "separated of 10, one-sided": "number",
        "of 70": "number",
        "separated of 10, two-sided": "number",
        "of 70 ": "number",
    }
    rows = [
        [str(row.seeds), *map(p_value, (row.one_sided, row.two_sided)), *map(_needed, row[4:])]
        for row in data.itertuples()
    ]
    caption = (
        f"<b>What can so many seeds show?</b> {exhibits.COMPUTED} The least p of the exact test, "
        "where every run of one approach is above every run of the other. Then how many pairs of "
        "10 (a task) or of 70 (the table) have to be separated like that, for each of them to be "
        f"significant at {SIGNIFICANT} after the correction."
    )
    name = "dnc-p-values-reach"
    html = exhibits.table(rows_table(columns, rows), caption, name, [exhibits.csv(name, data)])
    return Exhibit(html, f"The least p of 1 to {MOST_SEEDS} seeds.", data)


def separated(p: float, family: int) -> float:
    """Count the p values of a family that have to be so small to stay significant; NaN for none.

    The correction takes k equal ones, the smallest of m, to p m/k.
    """
    needed = int(np.ceil(p * family / SIGNIFICANT - 1e-9))
    return max(needed, 1) if needed <= family else np.nan


def _needed(count: float) -> str:
    return "–" if np.isnan(count) else f"{count:.0f}"


def p_value(p: float) -> str:
    """A p value with three digits after the point: 0.050, <0.001."""
    return "<0.001" if p < 0.0005 else f"{p:.3f}"
