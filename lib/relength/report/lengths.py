"""Beyond the paper's tables: how errors add up over a thousand symbols, and how many seeds get it.

If every written symbol were wrong with the same chance e, whatever came before, outputs of n
symbols would be right with chance (1 - e)^n. Solved for e at each test length, that tells two ways
of failing apart: an e that stays the same is noise, one that grows with the length is drift.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from relength import stats
from relength.margins import load_margins
from relength.report import exhibits, figures
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import LIGHT, Layout, beside, canvas, colour, title
from relength.tasks import TASKS

DRAWN = 200  # samples that tell how long an output is


@cache
def symbols(task: str, test: str) -> float:
    """How many symbols an output of a test has on average, its end included.

    test  a length, as the tests beyond the training lengths are called
    """
    random = np.random.default_rng(0)
    drawn = (TASKS[task]().draw(random, int(test)) for _ in range(DRAWN))
    return float(np.mean([len(pair.target) for pair in drawn])) + 1


class Error(NamedTuple):
    """The chance of a wrong symbol, with its 95 % interval.

    Where all outputs are right the chance is 0 and the interval tells how large it may be; where
    none is, it is only known to be at least ``low``.
    """

    chance: float
    low: float
    high: float

    def __str__(self) -> str:
        low, high = f"{100 * self.low:.2g}", f"{100 * self.high:.2g}"
        if self.low == 0:
            return f"< {high}"
        return f"> {low}" if self.high == 1 else f"{100 * self.chance:.2g} ({low}–{high})"


def error_per_symbol(right: int, items: int, length: float) -> Error:
    """What e is if `right` of `items` outputs of `length` symbols are right.

    The interval is that of the share, which is exact (Clopper and Pearson), turned into chances.

    >>> str(error_per_symbol(700, 1000, 100))
    '0.36 (0.32–0.4)'
    >>> str(error_per_symbol(0, 200, 100)), str(error_per_symbol(200, 200, 100))
    ('> 3.9', '< 0.018')
    """
    rate = stats.rate_interval(right, items)
    chance, low, high = (1 - s ** (1 / length) for s in (right / items, rate.high, rate.low))
    return Error(chance, max(low, 0.0), high)


def errors(runs: Runs) -> pd.DataFrame:
    """Columns: task, model, arm, seed, test, symbols, right (outputs), items, chance, low, high."""
    rows = []
    for model, arm in runs.rows:
        for task, tests in runs.tests.items():
            for record in runs.cell(model, arm, task):
                found = record["checkpoints"]["selected"]["tests"]
                for test in tests[1:]:
                    length = symbols(task, test)
                    items = found[test]["items"]
                    right = round(found[test]["exact_match"] * items)
                    seed = record["spec"]["seed"]
                    error = error_per_symbol(right, items, length)
                    rows.append((task, model, arm, seed, test, length, right, items, *error))
    names = ["task", "model", "arm", "seed", "test", "symbols", "right", "items", *Error._fields]
    return pd.DataFrame(rows, columns=names)


def errors_table(runs: Runs) -> Exhibit:
    """A row per model and task: the median over seeds of the error per symbol at each length."""
    data = errors(runs)
    tests = list(dict.fromkeys(test for names in runs.tests.values() for test in names[1:]))
    columns = {"task": "text", "model": "text", "seeds": "number"}
    columns |= dict.fromkeys(tests, "number")
    rows = []
    for task in runs.tasks:
        for model, arm in (row for row in runs.rows if runs.plans(*row, task)):
            cell = data.query("task == @task and model == @model and arm == @arm")
            shown = [_median_error(cell[cell["test"] == test]) for test in tests]
            seeds = str(cell["seed"].nunique()) if len(cell) else NOT_RUN
            rows.append((title(task), runs.label(model, arm), seeds, *shown))
    caption = (
        f"<b>Chance of a wrong symbol, in percent.</b> {badges(runs.scale, runs.freshness)} What "
        "exact match at each length would be if errors were independent, solved for the chance of "
        "one, with its 95 % interval; of the median seed. Where all or none of its outputs were "
        "right, only the one end of the interval that is not trivial."
    )
    name = f"{runs.page}-errors"
    if not runs.records:
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    return Exhibit(html, f"{len(rows)} rows, {data['seed'].count()} errors per symbol.", data)


def _median_error(cell: pd.DataFrame) -> str:
    if cell.empty:
        return "–"
    middle = cell.sort_values("chance").iloc[(len(cell) - 1) // 2]
    return str(Error(*middle[list(Error._fields)]))


def success(runs: Runs) -> pd.DataFrame:
    """How many seeds solve the longest test. Columns: task, model, arm, seeds, solved, low, high.

    low, high: exact 95 % interval of the share, in percent; NaN without seeds.
    """
    level = load_margins().levels["solved"]
    rows = []
    for task, tests in runs.tests.items():
        for model, arm in (row for row in runs.rows if runs.plans(*row, task)):
            values = runs.values(model, arm, task, tests[-1])
            solved = sum(map(level.holds, values))
            ends = (np.nan, np.nan)
            if values:
                rate = stats.rate_interval(solved, len(values))
                ends = (100 * rate.low, 100 * rate.high)
            rows.append((task, model, arm, len(values), solved, *ends))
    return pd.DataFrame(rows, columns=["task", "model", "arm", "seeds", "solved", "low", "high"])


def success_figure(runs: Runs, number: int) -> Exhibit:
    """Share of seeds that solve the longest test, with its interval: a row per task and reading."""
    data = success(runs)

    def draw(layout: Layout) -> Figure:
        row, gap, head, foot = 0.2, 0.16, 0.1, 0.3
        tasks = list(data["task"].unique())
        places, y = [], head
        for task in tasks:
            for _ in range(int((data["task"] == task).sum())):
                places.append(y + row / 2)
                y += row
            y += gap
        tall = y + foot
        figure = canvas(layout, tall)
        left = (2.05 if layout.narrow else 2.9) / layout.width
        axes = figure.add_axes((left, foot / tall, 0.86 - left, 1 - foot / tall))
        axes.patch.set_visible(False)
        axes.set(xlim=(-2, 102), ylim=(y, 0), yticks=[])
        axes.set_xticks([0, 50, 100], ["0", "50", "100 %"])
        axes.tick_params(length=0, labelsize=7, labelcolor=LIGHT.muted)
        axes.grid(axis="x", color=LIGHT.rule, linewidth=0.6)
        axes.set_axisbelow(True)
        for spine in axes.spines.values():
            spine.set_visible(False)
        previous = ""
        for place, cell in zip(places, data.itertuples(), strict=True):
            shade = colour(cell.model)
            label = runs.label(cell.model, cell.arm).replace(", as in the text", ", text")
            beside(axes, label, (0, place), -6, color=shade, size=7.2)
            if cell.task != previous:
                words = title(cell.task).replace("Reverse", "Rev.")
                away = -72 * left * layout.width
                beside(axes, words, (0, place), away, color=LIGHT.ink, size=7.5, weight="bold",
                       ha="left")  # fmt: skip
                previous = cell.task
            words = f"{cell.solved} of {cell.seeds}" if cell.seeds else NOT_RUN
            beside(axes, words, (1, place), 6, color=LIGHT.muted, size=7)
            if cell.seeds:
                axes.hlines(place, cell.low, cell.high, color=shade, linewidth=1.2, alpha=0.55)
                share = 100 * cell.solved / cell.seeds
                filled = shade if runs.experiment.judges(cell.model, cell.arm) else LIGHT.page
                axes.scatter([share], [place], s=22, color=filled, edgecolors=shade, zorder=3)
        return figure

    level = load_margins().levels["solved"].at_least
    fewest, most = data["seeds"].min(), data["seeds"].max()
    caption = (
        f"How many seeds solve the longest test of Table 2, at {level:g} % or more: the share, and "
        "its exact 95 % interval. Filled: the released code. Hollow: the text's equations. A row "
        f"has {fewest if fewest == most else f'{fewest} to {most}'} of "
        f"{len({spec.seed for spec in runs.specs})} seeds so far."
    )
    said = "; ".join(
        f"{runs.label(r.model, r.arm).replace(', ', ' ')} on {title(r.task)}: "
        + (f"{r.solved} of {r.seeds}" if r.seeds else NOT_RUN)
        for r in data.itertuples()
    )
    alt = f"Share of seeds that solve the longest test, a row per task and model. {said}."
    return figures.exhibit(runs, number, draw, "success", caption, alt, data)


def numbers(runs: Runs) -> str:
    """The success rates as plain text."""
    lines = [f"{'task':<20}{'model':<28}{'seeds':>6}{'solved':>8}{'95 % interval':>18}"]
    for row in success(runs).itertuples():
        ends = f"{row.low:.0f}-{row.high:.0f} %" if row.seeds else NOT_RUN
        label = runs.label(row.model, row.arm)
        lines.append(f"{title(row.task):<20}{label:<28}{row.seeds:>6}{row.solved:>8}{ends:>18}")
    return "\n".join(lines)
