"""Compare the readings of a paper with its printed numbers: text, code, repaired, side by side.

Like :mod:`relength.report.findings`, it counts and judges nothing.
"""

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import scipy

from relength.report.exhibits import Exhibit
from relength.report.markdown import raw, table
from relength.report.outcomes import (
    FOOT,
    NOTHING,
    beside_printed,
    beyond_next,
    busiest,
    cells_have,
    ends,
    exhibit,
    few_seeds,
    main_runs,
    main_table,
    percent_axis,
    tabled,
)
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import ARM_LABELS, LIGHT, MARKS, Layout, beside, canvas, colour, title
from relength.report.tables import printed, short
from relength.report.wording import capital
from relength.specs import registry
from relength.specs.experiments import experiment
from relength.specs.margins import load_margins
from relength.verdicts.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def which_reading(paper: str, survey: Survey) -> str:
    """Readings of a model side by side with the printed number, at the longest test."""
    runs = main_runs(paper, survey)
    data = ends(runs)
    frame = at_the_longest(runs, data)
    if frame.empty:
        return NOTHING
    near = near_at_the_longest(frame)
    counts = [
        f"{ARM_LABELS[arm]} in {some}, alone in {alone}" for arm, (some, alone) in near.arms.items()
    ]
    kind = runs.experiment.statistic
    words = (
        f"{cells_have(near.cells)} runs of more than one reading. The {kind} of our seeds is the "
        f"printed number within the margin at the longest test, {'; '.join(counts)}."
        f"{few_seeds(frame['values'].map(len))}"
    )
    solved = counts_in_words(solve_the_longest(data))
    words = f"{near_by_reading(runs)} {words} Runs that solve the longest test: {solved}.".strip()
    return f"{words}\n\n{drawn(runs, frame)}\n{_apart(paper, data)}"


class NearReadings(NamedTuple):
    """Cells of several readings, and {arm: (cells where it is near print, where it alone is)}."""

    cells: int
    arms: dict[str, tuple[int, int]]


def near_at_the_longest(frame: pd.DataFrame) -> NearReadings:
    """Count by reading where ours are near print; frame: of :func:`at_the_longest`."""
    near = frame.pivot(index=["task", "model"], columns="arm", values="near")
    near = near[near.notna().sum(axis=1) > 1].eq(True)
    alone = near[near.sum(axis=1) == 1]
    arms = {a: (int(near[a].sum()), int(alone[a].sum())) for a in ARM_LABELS if a in near}
    return NearReadings(len(near), arms)


def solve_the_longest(data: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """{arm: (runs that solve the longest test, runs)} of models with several readings."""
    both = _of_two_readings(data)
    solved = (both["state"] == "solved").groupby(both["arm"]).agg(["sum", "size"]).astype(int)
    return {arm: tuple(map(int, solved.loc[arm])) for arm in ARM_LABELS if arm in solved.index}


def _of_two_readings(data: pd.DataFrame) -> pd.DataFrame:
    """The runs of models of which more than one reading has runs."""
    arms = data.groupby("model")["arm"].nunique()
    return data[data["model"].isin(arms.index[arms > 1])]


def at_the_longest(runs: Runs, data: pd.DataFrame) -> pd.DataFrame:
    """A row per task, model of several readings, and reading: our seeds and the printed number.

    data: the :func:`relength.report.outcomes.ends` of the runs. Columns: task, model, test, arm,
    paper, values, near.
    """
    said, kind = printed(*runs.experiment.tables), runs.experiment.statistic
    margin, shown = load_margins().measures["accuracy"], []
    cells = _of_two_readings(data).groupby(["task", "model", "test"], sort=False)
    for (task, model, test), cell in cells:
        value = said.get((model, task, test), np.nan)
        for arm, own in cell.groupby("arm", sort=False):
            ours = own["longest"].agg(kind)
            near = bool(abs(ours - value) <= margin.around(value))
            shown.append((task, model, test, arm, value, tuple(own["longest"]), near))
    names = ["task", "model", "test", "arm", "paper", "values", "near"]
    return pd.DataFrame(shown, columns=names).dropna(subset="paper")


def drawn(runs: Runs, frame: pd.DataFrame) -> str:
    """The figure of what :func:`at_the_longest` gives, for a page."""
    return raw(_readings(runs, frame).html)


def beyond_at_full_scale(paper: str, survey: Survey) -> pd.DataFrame:
    """Printed numbers beyond L+1 beside runs at the paper's own scale, of several readings each."""
    least = load_margins().least_seeds
    runs = Runs.read(experiment(main_table(paper)), "paper", least, survey.store)
    data = beyond_next(runs, beside_printed(runs))
    return data[data.groupby(["model", "task"])["arm"].transform("nunique") > 1]


def at_full_scale(paper: str, survey: Survey) -> str:
    """:func:`beyond_at_full_scale` in words; empty where the table itself is of that scale."""
    data = beyond_at_full_scale(paper, survey)
    if data.empty or busiest(survey, main_table(paper)).scale == "paper":
        return ""
    parts = []
    for (model, task), cells in data.groupby(["model", "task"], sort=False):
        tests = cells.drop_duplicates("test")
        arms = "; ".join(
            f"{ARM_LABELS[arm]} {', '.join(map(short, own['ours']))} "
            f"({plural(int(own['seeds'].min()), 'seed')})"
            for arm, own in cells.groupby("arm", sort=False)
        )
        parts.append(
            f"{model} on {title(task)} at {', '.join(tests['test'])}: {arms}; printed "
            f"{', '.join(map(short, tests['paper']))}"
        )
    return f"Runs at the paper's own scale give, in percent, for {'. For '.join(parts)}."


def of_several_readings(runs: Runs, seeds: int) -> pd.DataFrame:
    """The printed cells in which more than one reading has the seeds; a row per reading."""
    data = beside_printed(runs)
    data = data[data["seeds"] >= seeds]
    return data[data.groupby(["model", "task", "test"])["arm"].transform("nunique") > 1]


def near_by_reading(runs: Runs) -> str:
    """Say how many printed numbers come out with each reading that has the seeds of a verdict."""
    seeds = load_margins().least_seeds
    data = of_several_readings(runs, seeds)
    if data.empty:
        return ""
    models = " or ".join(dict.fromkeys(data["model"]))
    said = (
        f"Several readings of {models} have {seeds} seeds for some printed numbers. "
        f"So many are within the margin: {counts_in_words(near_counts(data))}."
    )
    paper = registry.papers()[runs.experiment.paper]
    return f"{said} {paper.load(paper.near)(data, runs)}" if paper.near else said


def near_counts(data: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """{arm: (rows near the printed numbers, rows)} of each reading, in the order of labels."""
    near = data.groupby("arm")["near"].agg(["sum", "size"]).astype(int)
    return {
        arm: (int(near["sum"][arm]), int(near["size"][arm]))
        for arm in ARM_LABELS
        if arm in near.index
    }


def counts_in_words(counts: dict[str, tuple[int, int]]) -> str:
    """Counts by reading: *as in the code 3 of 5, repaired 2 of 5*."""
    return ", ".join(f"{ARM_LABELS[arm]} {some} of {of}" for arm, (some, of) in counts.items())


class Apart(NamedTuple):
    """Cells whose readings differ in how many seeds solve the longest test.

    cells   with seeds in every reading
    differ  a row per cell that differs: task, model, p and for each arm (solve, seeds)
    seeds   the fewest in any cell
    enough  seeds that must solve it, against 0, to be beyond chance; None if none do
    """

    cells: int
    differ: pd.DataFrame
    seeds: int
    enough: int | None


def apart(data: pd.DataFrame) -> Apart:
    """Compare readings cell by cell; data: :func:`relength.report.outcomes.ends`."""
    solves = (data["state"] == "solved").groupby([data["task"], data["model"], data["arm"]])
    counts = solves.agg(["sum", "size"]).unstack("arm").dropna()
    arms = [arm for arm in ARM_LABELS if ("sum", arm) in counts]
    differ = counts[counts["sum"].nunique(axis=1) > 1].astype(int)
    rows = []
    for (task, model), row in differ.iterrows():
        tables = [[row["sum", arm], row["size", arm] - row["sum", arm]] for arm in arms]
        p = min(float(scipy.stats.fisher_exact(pair).pvalue) for pair in combinations(tables, 2))
        both = {arm: (int(row["sum", arm]), int(row["size", arm])) for arm in arms}
        rows.append({"task": task, "model": model, "p": p, **both})
    level = load_margins().level
    seeds = int(counts["size"].to_numpy().min()) if len(counts) else 0
    enough = [
        k
        for k in range(seeds + 1)
        if scipy.stats.fisher_exact([[0, seeds], [k, seeds - k]])[1] <= level
    ]
    found = pd.DataFrame(rows, columns=["task", "model", "p", *arms])
    return Apart(len(counts), found, seeds, enough[0] if enough else None)


def _apart(paper: str, data: pd.DataFrame) -> str:
    """:func:`apart` in words, with a table of its cells; empty where none differs."""
    found = apart(data)
    if found.differ.empty:
        return ""
    arms = [arm for arm in ARM_LABELS if arm in found.differ]
    body = table(
        ("task", "model", *(ARM_LABELS[arm] for arm in arms), "p"),
        (
            (
                title(row["task"]),
                row["model"],
                *(f"{row[arm][0]} of {row[arm][1]}" for arm in arms),
                f"{row['p']:.2f}",
            )
            for row in found.differ.to_dict("records")
        ),
        name=f"tab-findings-{paper}-apart",
        caption="Cells in which the readings differ in how many seeds solve the longest test. "
        "*p* is that of Fisher's exact test, two-sided, of that cell alone.",
    )
    least, seeds = found.differ["p"].min(), plural(found.seeds, "seed")
    beyond = "At least one" if least <= load_margins().level else "None"
    power = (
        f"With {seeds} no difference can be."
        if found.enough is None
        else f"With {seeds} that takes 0 against {found.enough}."
    )
    return (
        f"In {len(found.differ)} of {found.cells} cells one reading has more seeds that solve the "
        f"longest test than another. {beyond} of these differences is beyond chance by itself "
        f"(smallest p {least:.2f}). {power}\n\n{body}"
    )


def _readings(runs: Runs, frame: pd.DataFrame) -> Exhibit:
    name = f"findings-{runs.experiment.paper}-readings"
    models = list(dict.fromkeys(frame["model"]))
    tasks = [task for task in runs.tasks if task in set(frame["task"])]

    def draw(layout: Layout) -> "Figure":
        row, head = 0.3, 0.34
        across = 1 if layout.narrow else len(models)
        block = len(tasks) * row + head + FOOT
        height = block * (len(models) if layout.narrow else 1)
        figure = canvas(layout, height)
        left, gap = 1.3, 0.4
        wide = (layout.width - left - 0.2 - gap * (across - 1)) / across
        for k, model in enumerate(models):
            x = left if layout.narrow else left + k * (wide + gap)
            y = (len(models) - 1 - k) * block + FOOT if layout.narrow else FOOT
            box = (x / layout.width, y / height, wide / layout.width, len(tasks) * row / height)
            axes = figure.add_axes(box)
            _reading_panel(axes, frame[frame["model"] == model], tasks, layout.narrow or k == 0)
            axes.set_title(model, size=8.5, weight="bold", color=colour(model), loc="left", pad=9)
        return figure

    arms = [arm for arm in MARKS if arm in set(frame["arm"])]
    measured = runs.measured.words
    key = ", ".join(f"{MARKS[arm].sign} {ARM_LABELS[arm]}" for arm in arms)
    caption = (
        f"Which reading gives the printed numbers? "
        f"{capital(measured)} at the longest test of each task. A mark is a seed ({key}), the "
        "bar what the paper prints."
    )
    told = "; ".join(
        f"{row.model} on {title(row.task)}, {row.arm}: "
        f"{', '.join(map(short, row.values))}, printed {row.paper:g}"
        for row in frame[["model", "task", "arm", "paper"]]
        .assign(values=frame["values"])
        .itertuples(index=False, name="Row")
    )
    shown = runs.of([row for row in runs.rows if row[0] in models], tasks)
    return exhibit(draw, name, caption, f"Readings against the paper. {told}.", frame, shown)


def _reading_panel(axes: "Axes", frame: pd.DataFrame, tasks: Sequence[str], named: bool) -> None:
    percent_axis(axes, top=-0.5, bottom=len(tasks) - 0.5)
    for i, task in enumerate(tasks):
        cells = frame[frame["task"] == task]
        for row in cells.to_dict("records"):
            shade = colour(row["model"])
            mark = MARKS[row["arm"]]
            axes.scatter(
                row["values"],
                np.full(len(row["values"]), i + mark.shift),
                s=17,
                marker=mark.marker,
                facecolors=shade if mark.filled else "none",
                edgecolors=shade,
                linewidths=1.1 * (not mark.filled),
                clip_on=False,
                zorder=3,
            )
        bar = {"color": LIGHT.ink, "linewidth": 2, "zorder": 2, "clip_on": False}
        for value in cells["paper"].dropna().unique():
            axes.plot([value, value], [i - 0.34, i + 0.34], **bar)
        if named:
            beside(axes, title(task), (0, i), -9, color=LIGHT.ink, size=7.2)


PASSAGES = {f"findings_{paper}_reading": partial(which_reading, paper) for paper in tabled()}
