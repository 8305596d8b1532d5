"""Measure what each contradiction between PANM's text and code is worth: runs that differ in
one.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from relength.papers.panm import pointers
from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import ARM_LABELS, title
from relength.report.tables import printed, short, signed
from relength.verdicts.deviations import Measure, effect

MAIN, SECOND = "panm_algorithmic", "panm_readings"
PAGE = "panm_readings"
FIRST_TASKS = ["panm_copy", "panm_reverse", "panm_id_sort"]


class Contrast(NamedTuple):
    """Two readings of one thing, and the runs that have the one or the other."""

    what: str
    first: dict[str, str]  # columns of the store's frame: experiment and arm
    second: dict[str, str]
    tasks: list[str]

    @property
    def measure(self) -> Measure:
        where = {"model": ["PANM"], "task": self.tasks}
        arms = {"arm": [self.first["arm"]]} if self.first["arm"] == self.second["arm"] else {}
        sides = [
            {name: value for name, value in side.items() if name not in arms}
            for side in (self.first, self.second)
        ]
        return Measure.model_validate(
            {"from": sides[0], "to": sides[1], "metric": "token_accuracy", "where": where | arms}
        )


def _runs(experiment: str, arm: str) -> dict[str, str]:
    return {"experiment": experiment, "arm": arm}


ALL_CHANGED = FIRST_TASKS[:2]  # where every change is tried
SIX_TASKS = [*FIRST_TASKS, "panm_mix", "panm_priority_sort", "panm_dynamic_recall"]
CONTRASTS = (
    Contrast(
        "a temperature of 0.1 in both softmaxes, instead of none",
        _runs(MAIN, "paper"),
        _runs(MAIN, "repaired"),
        SIX_TASKS,
    ),
    Contrast(
        "the released code, instead of the text's equations",
        _runs(MAIN, "paper"),
        _runs(MAIN, "released"),
        SIX_TASKS,
    ),
    Contrast(
        "the code's pointers read from their own sample, instead of across the batch",
        _runs(MAIN, "released"),
        _runs(SECOND, "mended"),
        SIX_TASKS,
    ),
    *(
        Contrast(what, _runs(MAIN, "released"), _runs(SECOND, arm), ALL_CHANGED)
        for arm, what in (
            ("contentless", "the code's controller without attention to content"),
            ("one-way", "the code's encoder from the beginning only, instead of both ways"),
            ("undropped", "the code without dropout of Mode-2 weights"),
            ("ten-bit", "the code with addresses of 10 bits, instead of 8"),
            ("wide", "the code with 256 units, instead of 128"),
        )
    ),
    Contrast(
        "a random base address in tests, instead of 0 (repaired)",
        _runs(MAIN, "repaired"),
        _runs(SECOND, "repaired"),
        ALL_CHANGED,
    ),
    Contrast(
        "base address 0 in tests, instead of a random one (released)",
        _runs(MAIN, "released"),
        _runs(SECOND, "released"),
        ALL_CHANGED,
    ),
    Contrast(
        "base address 0 in training, too, instead of a random one (repaired)",
        _runs(MAIN, "repaired"),
        _runs(SECOND, "fixed-base"),
        ALL_CHANGED,
    ),
    *(
        Contrast(f"{what} ({arm})", _runs(MAIN, arm), _runs(SECOND, arm), [task])
        for what, task in (
            ("the rule of Mix as in its example, instead of the text's", "panm_mix"),
            ("all tokens in Dynamic Recall, instead of one", "panm_dynamic_recall"),
        )
        for arm in ("released", "repaired")
    ),
)
LENGTHS = ("L", "L+1", "2(L+1)", "4(L+1)", "8(L+1)")
COLUMNS = ("what", "task", "test", "seeds", "first", "second", "median", "low", "high")


def differences(main: Runs, second: Runs) -> pd.DataFrame:
    """One row per contrast, task and test: what changes when the second reading takes its place.

    Columns: what, task, test, seeds (pairs of equal seed), first and second (medians), median, low
    and high of the differences, in points of token accuracy. NaN where no pair is recorded.
    """
    runs = pd.concat([main.selected, second.selected], ignore_index=True)
    rows = []
    for contrast in CONTRASTS:
        found = effect(contrast.measure, runs.assign(scale=_shown_scale(main)))
        for task in contrast.tasks:
            for test in main.tests[task]:
                pairs = pd.DataFrame() if found is None else found.table
                if len(pairs):
                    pairs = pairs[(pairs["task"] == task) & (pairs["test"] == test)]
                cell = [contrast.what, task, test, len(pairs)]
                if len(pairs):
                    apart = pairs["difference"]
                    cell += [pairs["first"].median(), pairs["second"].median()]
                    cell += [apart.median(), apart.min(), apart.max()]
                else:
                    cell += [float("nan")] * 5
                rows.append(cell)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _shown_scale(runs: Runs) -> str:
    """The scale as `effect` is told it: it passes over smoke runs, which a smoke page shows."""
    return "reduced" if runs.scale == "smoke" else runs.scale


def _span(cell: Any) -> str:
    """The smallest and the largest difference of several pairs."""
    if cell.seeds < 2:
        return ""
    return f"<br><small>{signed(cell.low)} to {signed(cell.high)}</small>"


def table(main: Runs, second: Runs) -> Exhibit:
    """A row per contrast and task, the difference at each test length across."""
    data = differences(main, second)
    tests = max(map(len, main.tests.values()))
    heads = LENGTHS[:tests]
    columns = {"changed": "prose wide", "task": "text", "pairs": "number"}
    columns |= dict.fromkeys(heads, "number")
    rows = []
    for (what, task), cells in data.groupby(["what", "task"], sort=False):
        shown = [
            f"<b>{signed(cell.median)}</b>{_span(cell)}" if cell.seeds else f"<i>{NOT_RUN}</i>"
            for cell in cells.itertuples()
        ]
        rows.append((what, title(task), str(cells["seeds"].max()), *shown))
    name = f"{PAGE}-differences"
    caption = (
        f"<b>What each difference is worth.</b> {badges(main.scale, main.freshness)} One thing is "
        "changed between two runs of equal seed. A cell has the points of token accuracy that this "
        "gains or loses: the median over the pairs, and below it, where there are several, the "
        "smallest and the largest."
    )
    if not (main.records and second.records):
        return exhibits.waiting(caption, name, exhibits.training(main, second), data)
    links = [exhibits.csv(name, data), exhibits.notebook(PAGE)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    measured = int((data.groupby(["what", "task"])["seeds"].max() > 0).sum())
    return Exhibit(html, f"{measured} of {len(rows)} contrasts have pairs of runs.", data)


def numbers(main: Runs, second: Runs) -> str:
    """The median differences as plain text, a line per contrast and task."""
    heads = "".join(f"{words:>12}" for words in LENGTHS)
    lines = [
        f"Differences, {main.scale} scale: median over pairs of seeds, points",
        f"{'task and pairs, at length':<23}{heads}",
    ]
    for what, of_one in differences(main, second).groupby("what", sort=False):
        lines.append(f"\n{what}")
        for task, cells in of_one.groupby("task", sort=False):
            shown = [signed(c.median) if c.seeds else NOT_RUN for c in cells.itertuples()]
            head = f"  {title(task):<18}{cells['seeds'].max():>3}"
            lines.append(head + "".join(f"{words:>12}" for words in shown))
    return "\n".join(lines)


PRINTED = "printed"
NAMES = {  # of the readings that differ in base addresses; the others go by their arm
    (MAIN, "repaired"): "repaired, base 0 in tests",
    (SECOND, "repaired"): "repaired, random base in tests",
    (SECOND, "fixed-base"): "repaired, base 0 in training and tests",
    (MAIN, "released"): "as in the code, random base in tests",
    (SECOND, "released"): "as in the code, base 0 in tests",
}


def beside_printed(main: Runs, second: Runs) -> pd.DataFrame:
    """One row per task, reading and test: the printed number, or the mean of a reading's seeds.

    Of each task the printed row first, then the readings from the nearest to the furthest. Columns:
    task, reading, test, seeds, percent (of tokens) and away: how far a reading is from print on
    average over the tests beyond L+1, in points.
    """
    paper = printed(*main.experiment.tables)
    rows = [
        (task, PRINTED, test, 0, paper["PANM", task, test], 0.0)
        for task in ALL_CHANGED
        for test in main.tests[task]
    ]
    runs = pd.concat([main.selected, second.selected], ignore_index=True)
    runs = runs[(runs["model"] == "PANM") & runs["task"].isin(ALL_CHANGED)]
    for (task, name, arm), cell in runs.groupby(["task", "experiment", "arm"]):
        means = cell.groupby("test")["token_accuracy"].mean()
        far = main.tests[task][2:]
        away = sum(abs(means[test] - paper["PANM", task, test]) for test in far) / len(far)
        reading = NAMES.get((name, arm), ARM_LABELS[arm])
        seeds = cell["seed"].nunique()
        rows += [(task, reading, test, seeds, means[test], away) for test in main.tests[task]]
    data = pd.DataFrame(rows, columns=["task", "reading", "test", "seeds", "percent", "away"])
    return data.sort_values(["task", "away"], kind="stable", ignore_index=True)


def nearness(main: Runs, second: Runs) -> Exhibit:
    """Every reading of Copy and Reverse beside the printed row, nearest first."""
    data = beside_printed(main, second)
    heads = LENGTHS[: max(map(len, main.tests.values()))]
    columns = {"task": "text", "reading": "prose", "seeds": "number"}
    columns |= dict.fromkeys((*heads, "away"), "number")
    rows = [
        (
            title(task),
            f"<b>{reading}</b>" if reading == PRINTED else reading,
            "" if reading == PRINTED else str(cells["seeds"].iloc[0]),
            *map(short, cells["percent"]),
            "" if reading == PRINTED else f"{cells['away'].iloc[0]:.1f}",
        )
        for (task, reading), cells in data.groupby(["task", "reading"], sort=False)
    ]
    name = f"{PAGE}-nearness"
    caption = (
        f"<b>Which reading is near the printed row?</b> {badges(main.scale, main.freshness)} "
        "Percent of right tokens, mean over seeds. <i>Away</i> is the distance from print in "
        "points, on average over the three tests beyond L+1. The nearest reading comes first."
    )
    if not (main.records and second.records):
        return exhibits.waiting(caption, name, exhibits.training(main, second), data)
    links = [exhibits.csv(name, data), exhibits.notebook(PAGE)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    return Exhibit(html, nearest(main, second), data)


def nearest(main: Runs, second: Runs) -> str:
    """Name for each task the readings that are nearest to print and furthest from it."""
    said = []
    for task, data in beside_printed(main, second).groupby("task", sort=False):
        ours = data[data["reading"] != PRINTED].drop_duplicates("reading")
        if len(ours) > 1:
            ends = [
                f"{row.reading} ({row.away:.1f} points away, seeds: {row.seeds})"
                for row in (ours.iloc[0], ours.iloc[-1])
            ]
            said.append(f"{title(task)}: nearest {ends[0]},\n  furthest {ends[1]}")
    return "\n".join(said)


def sharpness(main: Runs, number: int) -> Exhibit:
    """The bound on a softmax of cosines, and how sharp trained pointers are."""
    return pointers.sharpness(replace(main, page=PAGE), number)
