"""Beyond the paper's tables: how errors add up over a thousand symbols, and how many seeds get it.

If every written symbol were wrong with the same chance e, whatever came before, outputs of n
symbols would be right with chance (1 - e)^n. Solved for e at each test length, that tells two ways
of failing apart: an e that stays the same is noise, one that grows with the length is drift. And
within the outputs of one length, the place of their first errors tells whether the chance grows as
they go on.
"""

from functools import cache
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from relength.report import exhibits, figures
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.grid import NOT_COUNTED, NOT_RUN, Grid
from relength.report.runs import Runs
from relength.report.style import LIGHT, Layout, beside, canvas, colour, frameless, title
from relength.report.wording import from_to
from relength.specs.margins import load_margins
from relength.tasks import TASKS
from relength.verdicts import stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED = "100"  # the longest test of the paper's tables
DRAWN = 200  # samples that tell how long an output is


@cache
def symbols(task: str, test: str) -> float:
    """Return the mean number of symbols in an output of a test, its end included.

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
    """Return e if `right` of `items` outputs of `length` symbols are right.

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


def of_median_seed(data: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of the median seed of each task, model and arm, and its number of seeds.

    data: of :func:`errors`. The column ``seeds`` is added.
    """
    kept = [
        cell[cell["seed"] == _median_seed(cell)].assign(seeds=cell["seed"].nunique())
        for _, cell in data.groupby(["task", "model", "arm"], sort=False)
    ]
    return pd.concat(kept, ignore_index=True) if kept else data.assign(seeds=0)


def errors_table(runs: Runs) -> Exhibit:
    """A row per model and task: the error per symbol at each length, of the median seed."""
    data = errors(runs)
    tests = list(dict.fromkeys(test for names in runs.tests.values() for test in names[1:]))
    columns = {"task": "text", "model": "text", "seeds": "number"}
    columns |= dict.fromkeys(tests, "number")
    rows: list[tuple[str, ...]] = []
    waiting: dict[str, list[str]] = {}
    median = of_median_seed(data)
    for task in runs.tasks:
        for model, arm in (row for row in runs.rows if runs.plans(*row, task)):
            own = median.query("task == @task and model == @model and arm == @arm")
            if own.empty:
                waiting.setdefault(runs.label(model, arm), []).append(title(task))
                continue
            shown = dict.fromkeys(tests, "–") | {row.test: _shown(row) for row in own.itertuples()}
            seeds = str(own["seeds"].iloc[0])
            rows.append((title(task), runs.label(model, arm), seeds, *shown.values()))
    said = "; ".join(f"{label}, on {', '.join(tasks)}" for label, tasks in waiting.items())
    rest = f" Not run yet: {said}." if waiting else ""
    caption = (
        f"<b>Chance of a wrong symbol, in percent.</b> {badges(runs.scale, runs.freshness)} If "
        "errors were independent, this chance would give the exact match that was measured. Small: "
        "its 95 % interval. A row shows one seed, the median by its share of right outputs. Where "
        "all outputs are right or none is, only one end of the interval is known; a test with "
        f"fewer outputs bounds it less.{rest}"
    )
    name = f"{runs.page}-errors"
    if not runs.records:
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    return Exhibit(html, f"{len(rows)} rows, {data['seed'].count()} errors per symbol.", data)


def _median_seed(cell: pd.DataFrame) -> int:
    """The seed with the median share of right outputs over all its rows; of two, the worse."""
    shares = (cell["right"] / cell["items"]).groupby(cell["seed"]).mean().sort_values()
    return int(shares.index[(len(shares) - 1) // 2])


def _shown(row) -> str:
    """Word a cell of the table, with its interval below."""
    said, _, interval = str(Error(row.chance, row.low, row.high)).partition(" (")
    return escape(said) + (f"<br><small>{interval.rstrip(')')}</small>" if interval else "")


def still_right(runs: Runs) -> pd.DataFrame:
    """Tabulate the outputs without an error yet, over their course: a row per run, test and tenth.

    The end apart: an output that is right but for its end is right here. Columns: task, model, arm,
    seed, test, symbols (of an output, on average, without its end), items, part (tenths of the
    output that are written, 0 to 10) and right (outputs without an error so far). Records made
    before first errors were counted are left out.
    """
    rows = []
    for model, arm in runs.rows:
        for task, tests in runs.tests.items():
            for record in runs.cell(model, arm, task):
                for test in tests[1:]:
                    found = record["checkpoints"]["selected"]["tests"][test]
                    if "first_errors" not in found:
                        continue
                    items = found["items"]
                    right = items - np.cumsum([0, *found["first_errors"]])
                    right[-1] = round(items * found["exact_match_true_length"])
                    who = (task, model, arm, record["spec"]["seed"], test)
                    length = symbols(task, test) - 1
                    rows += [(*who, length, items, part, n) for part, n in enumerate(right)]
    names = ["task", "model", "arm", "seed", "test", "symbols", "items", "part", "right"]
    return pd.DataFrame(rows, columns=names)


def still_right_at_longest(runs: Runs) -> pd.Series:
    """Percent of outputs of the longest test without an error: medians over seeds.

    By model, arm, task and part (tenths that are written).
    """
    data = still_right(runs)
    longest = data[data["test"] == data["task"].map(lambda task: runs.tests[task][-1])]
    percent = 100 * longest["right"] / longest["items"]
    return percent.groupby([longest[name] for name in ("model", "arm", "task", "part")]).median()


def course_figure(runs: Runs, number: int) -> Exhibit:
    """The share of outputs that are still right, from their first symbol to their last.

    At the longest test, and at the longest one that the paper has.
    """
    data = still_right(runs)

    def draw(layout: Layout) -> "Figure":
        key = [("line", "longest test, a line per seed"), ("thin", f"length {PRINTED}")]
        grid = Grid(runs, layout, key)
        for j in range(len(runs.tasks)):
            grid.ticks(j, (0.13, 0.89), ("start", "end"), "output")
        for i, j, records in runs.panels():
            (model, arm), task = runs.rows[i], runs.tasks[j]
            own = data[(data["model"] == model) & (data["arm"] == arm) & (data["task"] == task)]
            if own.empty:
                grid.not_run(i, j, NOT_COUNTED if records else NOT_RUN)
            for (test, _), line in own.groupby(["test", "seed"]):
                x, y = grid.points(i, j, line["part"] / 10, line["right"] / line["items"])
                if test == runs.tests[task][-1]:
                    grid.axes.plot(x, y, color=colour(model), lw=1.3, zorder=2)
                elif test == PRINTED:
                    grid.axes.plot(x, y, color=LIGHT.ink, lw=0.8, zorder=3)
        return grid.figure

    caption = (
        "Still right. A line shows the percent of outputs without an error so far, from their "
        "first symbol (left) to the last one before the end (right). If every symbol is wrong with "
        "the same chance, the line falls steeply at first and then ever less. If the focus drifts, "
        "it holds and then falls. An empty panel is not part of the grid."
    )
    medians = still_right_at_longest(runs)
    said = [
        f"{runs.label(model, arm).replace(', ', ' ')} on {title(task)} "
        f"{medians[model, arm, task, 5]:.0f} and {medians[model, arm, task, 10]:.0f}"
        for model, arm, task in medians.index.droplevel("part").unique()
    ]
    alt = (
        "Grid of the share of outputs without an error so far against the share of the output that "
        "is written, a column per task and a row per model. Percent after half of the outputs of "
        f"the longest test, and at their end, medians of seeds: {'; '.join(said) or NOT_RUN}."
    )
    return figures.exhibit(runs, number, draw, "course", caption, alt, data)


def halves(runs: Runs) -> pd.DataFrame:
    """The chance of a wrong symbol in the first half of an output and in the second.

    Of outputs without an error before that half, and the end apart. Columns: task, model, arm,
    seed, test, half ("first" or "second"), right (outputs that get through it), items (that come to
    it), chance, low, high. A half that no output comes to has no row.
    """
    rows = []
    middle = still_right(runs).query("part in (0, 5, 10)")
    for who, course in middle.groupby(["task", "model", "arm", "seed", "test"], sort=False):
        counts, length = course["right"].tolist(), course["symbols"].iloc[0] / 2
        for half, items, right in zip(("first", "second"), counts, counts[1:], strict=False):
            if items:
                rows.append((*who, half, right, items, *error_per_symbol(right, items, length)))
    names = ["task", "model", "arm", "seed", "test", "half", "right", "items", *Error._fields]
    return pd.DataFrame(rows, columns=names)


def with_errors(data: pd.DataFrame) -> dict[tuple[str, str, str, str], pd.DataFrame]:
    """The :func:`halves` of each (task, model, arm, test) at which some seed errs."""
    cells = data.groupby(["task", "model", "arm", "test"], sort=False)
    return {place: cell for place, cell in cells if (cell["chance"] > 0).any()}


def halves_table(runs: Runs) -> Exhibit:
    """A row per model, task and test that errors are seen at: both halves, of the median seed."""
    data = halves(runs)
    rows = []
    for (task, model, arm, test), cell in with_errors(data).items():
        own = cell[cell["seed"] == _median_seed(cell)]
        shown = {"first": "–", "second": "–"} | {row.half: _shown(row) for row in own.itertuples()}
        seeds = str(cell["seed"].nunique())
        rows.append((title(task), runs.label(model, arm), test, seeds, *shown.values()))
    caption = (
        f"<b>Does the chance grow on the way?</b> {badges(runs.scale, runs.freshness)} The table "
        "has the chance of a wrong symbol, in percent, in the first half of an output and in the "
        "second. Only outputs that are right until then count. Small: the 95 % interval. The end "
        "of an output is left out, because a model can miss it without losing its way. Rows show "
        "the median seed; tests without any error have no row. A dash: no output comes so far."
    )
    name = f"{runs.page}-halves"
    if not runs.records:
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    columns = {"task": "text", "model": "text", "length": "number", "seeds": "number"}
    columns |= {"first half": "number", "second half": "number"}
    body = rows_table(columns, rows)
    if not rows:
        none = "No output has an error before its end." if len(data) else "Errors were not counted."
        body = f"<p>{none}</p>"
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    html = exhibits.table(body, caption, name, links)
    return Exhibit(html, f"{len(rows)} rows, {len(data)} halves.", data)


def success(runs: Runs) -> pd.DataFrame:
    """Count the seeds that solve the longest test. Columns: task, model, arm, seeds, solved, low,
    high.

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

    def draw(layout: Layout) -> "Figure":
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
        frameless(axes)
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
    caption = (
        "How many seeds solve the longest test of Table 2? A seed solves it at "
        f"{level:g} % or more. A dot is the share of seeds, the bar its exact 95 % interval. "
        "Filled: the released code. Hollow: the text's equations. A row has "
        f"{from_to(data['seeds'].min(), data['seeds'].max())} of "
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
