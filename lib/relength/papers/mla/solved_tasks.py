"""Count the tasks that each model solves, as printed and in our runs, for the findings."""

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from relength.report.exhibits import Exhibit
from relength.report.markdown import raw, table
from relength.report.outcomes import (
    NOTHING,
    ROW,
    beside_printed,
    busiest,
    exhibit,
    few_seeds,
    main_table,
    rows_of,
)
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import LIGHT, Layout, beside, canvas, colour, title
from relength.specs.margins import load_margins

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = "mla"


def solved_by_reading(runs: Runs, data: pd.DataFrame) -> pd.DataFrame:
    """Tasks that each reading solves at every length. data: the printed cells that have runs.

    Columns: model, arm, printed (as the paper prints it), ours (by our means or medians), alone
    (a number per seed), tasks (with runs).
    """
    level, rows = load_margins().levels["solved"], []
    for (model, arm), own in data.groupby(["model", "arm"], sort=False):
        solved = own[["paper", "ours"]].map(level.holds).groupby(own["task"]).all()
        alone = list(_solved_alone(runs, model, arm, own))
        counts = int(solved["paper"].sum()), int(solved["ours"].sum())
        rows.append((model, arm, *counts, alone, len(solved)))
    return pd.DataFrame(rows, columns=["model", "arm", "printed", "ours", "alone", "tasks"])


def _solved_alone(runs: Runs, model: str, arm: str, cells: pd.DataFrame) -> pd.Series:
    """Count the tasks that a seed solves in all these cells, for each seed that every task has."""
    level, tasks = load_margins().levels["solved"], []
    for task, tests in cells.groupby("task")["test"]:
        seeds = [record["spec"]["seed"] for record in runs.cell(model, arm, task)]
        values = zip(*(runs.values(model, arm, task, test) for test in tests), strict=True)
        tasks.append(pd.Series([all(map(level.holds, of)) for of in values], index=seeds))
    return pd.concat(tasks, axis=1, join="inner").sum(axis=1).sort_index()


def tasks_solved(survey: Survey) -> str:
    """Count the tasks each reading solves at every length: as printed, by our medians, by seed."""
    runs = busiest(survey, main_table(PAPER))
    data = beside_printed(runs)
    if data.empty:
        return NOTHING
    level, kind = load_margins().levels["solved"], runs.experiment.statistic
    counts = solved_by_reading(runs, data)
    rows = [
        (runs.label(r.model, r.arm), r.printed, r.ours, "; ".join(map(str, r.alone)), r.tasks)
        for r in counts.itertuples()
    ]
    said = [
        f"{r.model} {r.ours} of {r.tasks} (printed {r.printed})"
        for r in counts.itertuples()
        if runs.experiment.judges(r.model, r.arm)
    ]
    body = table(
        ("model", "printed", f"our {kind}s", "seed by seed", "tasks with runs"),
        rows,
        name=f"tab-findings-{PAPER}-solved",
        caption=f"Tasks with runs that are solved: {level.at_least:g} % or more are right at every "
        f"test. Counted by the printed numbers, by the {kind}s of our seeds, and in each seed.",
        numbers=("printed", f"our {kind}s", "tasks with runs"),
    )
    ours = f" By {kind}s, at {level.at_least:g} % or more: {', '.join(said)}." if said else ""
    return (
        f"Solved tasks can be counted by the {kind} of the seeds, as in the printed tables, or in "
        f"each seed alone, as our verdicts do.{ours}{few_seeds(data['seeds'])} "
        f"{{numref}}`tab-findings-{PAPER}-solved` has both counts for all readings. "
        f"{{numref}}`fig-findings-{PAPER}-seeds` has the seeds, task by task.\n\n{body}\n"
        f"{raw(_solved_map(runs, data).html)}"
    )


def _solved_map(runs: Runs, data: pd.DataFrame) -> Exhibit:
    """A cell per row and task: seeds that solve the longest test, framed if it is printed so."""
    name, level = f"findings-{runs.experiment.paper}-seeds", load_margins().levels["solved"]
    data = data[data["test"] == data["task"].map(lambda task: runs.tests[task][-1])]
    rows = [row for row in runs.rows if len(rows_of(data, *row))]
    tasks = [task for task in runs.tasks if task in set(data["task"])]

    def draw(layout: Layout) -> "Figure":
        from matplotlib.patches import Rectangle

        left, head, turned = (1.15, 1.05, 70) if layout.narrow else (2.1, 0.85, 45)
        wide = min(layout.width - left - 0.35, 0.62 * len(tasks))
        height = head + len(rows) * ROW + 0.05
        figure = canvas(layout, height)
        box = (left, 0.05, wide, len(rows) * ROW)
        size = (layout.width, height) * 2
        axes = figure.add_axes(tuple(a / b for a, b in zip(box, size, strict=True)))
        axes.set(xlim=(0, len(tasks)), ylim=(len(rows), 0))
        axes.axis("off")
        for j, task in enumerate(tasks):
            look = {
                "rotation": turned,
                "ha": "left",
                "va": "bottom",
                "size": 7.2,
                "color": LIGHT.ink,
            }
            axes.text(j + 0.35, -0.15, title(task), **look)
        for i, row in enumerate(rows):
            shade = colour(row[0])
            words = runs.label(*row).replace(", ", "\n" if layout.narrow else ", ")
            look = {"color": shade, "weight": "bold", "multialignment": "right", "size": 7.2}
            beside(axes, words, (0, i + 0.5), -6, **look)
            for cell in rows_of(data, *row).itertuples():
                j = tasks.index(cell.task)
                share = cell.solved / cell.seeds
                tile = partial(Rectangle, (j + 0.05, i + 0.08), 0.9, 0.84, clip_on=False)
                axes.add_patch(tile(facecolor=shade, alpha=0.04 + 0.5 * share, linewidth=0))
                if level.holds(cell.paper):
                    axes.add_patch(tile(fill=False, edgecolor=LIGHT.ink, linewidth=1))
                count = str(cell.solved) if cell.seeds == most else f"{cell.solved}/{cell.seeds}"
                look = {"color": LIGHT.ink if cell.solved else LIGHT.muted, "size": 7.5}
                axes.text(j + 0.5, i + 0.5, count, ha="center", va="center", **look)
        return figure

    most = int(data["seeds"].max())
    alt = "; ".join(
        f"{runs.label(*row)}: "
        + ", ".join(
            f"{title(cell.task)} {cell.solved} of {cell.seeds}"
            + " (printed as solved)" * level.holds(cell.paper)
            for cell in rows_of(data, *row).itertuples()
        )
        for row in rows
    )
    caption = (
        f"Who solves the longest test? A cell counts the seeds, of {most}, with at least "
        f"{level.at_least:g} % of a task's outputs right to the last symbol at its longest test. "
        "Cells with fewer seeds say how many. Framed: the paper prints as much."
    )
    return exhibit(draw, name, caption, f"Seeds that solve the longest test. {alt}.", data, runs)
