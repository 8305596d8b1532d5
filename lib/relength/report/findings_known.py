"""Set what runs of a paper's main table know of the lengths trained on beside the longest test.

Like :mod:`relength.report.findings`, it counts and judges nothing.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from relength.report.exhibits import Exhibit
from relength.report.findings_counts import known, known_by_reading
from relength.report.markdown import raw
from relength.report.outcomes import (
    FOOT,
    NOTHING,
    ROW,
    busiest,
    ends,
    exhibit,
    main_table,
    percent_axis,
    rows_of,
)
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import LIGHT, Layout, beside, canvas, colour
from relength.report.wording import capital
from relength.specs import registry
from relength.specs.margins import load_margins

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STRIP = 0.19  # inches of the dots in a row


def known_is_not_enough(paper: str, survey: Survey) -> str:
    """Show what success on the lengths trained on says about the longest test, counted and
    drawn.
    """
    runs = busiest(survey, main_table(paper))
    data = ends(runs)
    if data.empty:
        return NOTHING
    figure = raw(_strips(runs, data).html)
    return "\n\n".join([*_known(runs), figure])


def _known(runs: Runs) -> list[str]:
    """Count the runs that know the lengths trained on, and say what they are worth at the longest.

    A paragraph on the readings that are judged, and, where there are others, one on those.
    """
    judged, others = known_by_reading(runs)
    parts = [(judged, f"At scale *{runs.scale}*, of ")]
    if len(others):
        parts.append((others, "In other readings, of "))
    paper = registry.papers()[runs.experiment.paper]
    told = paper.load(paper.known) if paper.known else _outputs_in_words
    return [told(part, start, runs) for part, start in parts]


def _outputs_in_words(data: pd.DataFrame, start: str, runs: Runs) -> str:
    """Word the counts of runs that know their lengths."""
    level, counts = load_margins().levels["solved"].at_least, known(data)
    said = (
        f"{start}{len(data)} runs, {counts.knows} know the lengths they were trained on: they have "
        f"{level:g} % {runs.measured.words} there, or more."
    )
    if not counts.perfect or not counts.flawed:
        return f"{said} Of these, {_counted(counts.states)}."
    said += (
        f" {counts.perfect} of them make no error there, and **{counts.perfect_solve}** of these "
        f"solve the longest test. {counts.flawed} make one or more, and "
        f"**{counts.flawed_solve}** of these solve it."
    )
    within = [
        f"{solve} of {of} {which}"
        for which, (solve, of) in (
            ("without an error", counts.perfect_where_solved),
            ("with one", counts.flawed_where_solved),
        )
        if of
    ]
    if within:
        said += f" In the cells that some seed solves, {' and '.join(within)} solve it."
    return said


def _counted(counts: dict[str, int]) -> str:
    words = {
        "solved": "solved the longest test",
        "failed": "failed at it",
        "between": "ended in between",
    }
    return ", ".join(f"**{counts.get(name, 0)}** {said}" for name, said in words.items())


def _strips(runs: Runs, data: pd.DataFrame) -> Exhibit:
    """A row per model: a dot per run, once on known lengths and once at the longest."""
    name = f"findings-{runs.experiment.paper}-ends"
    rows = [row for row in runs.rows if len(rows_of(data, *row))]

    def draw(layout: Layout) -> "Figure":
        panels = (("known", "lengths trained on"), ("longest", "longest test"))
        tall = len(rows) * ROW + 0.2
        down = 2 if layout.narrow else 1
        height = down * (tall + FOOT + 0.2)
        figure = canvas(layout, height)
        left, right = (1.25, 0.65) if layout.narrow else (1.5, 1.0)
        wide = layout.width - left - right
        wide = wide if layout.narrow else (wide - 0.35) / 2
        for k, (column, head) in enumerate(panels):
            x = left if layout.narrow else left + k * (wide + 0.35)
            y = (down - 1 - (k if layout.narrow else 0)) * (tall + FOOT + 0.2) + FOOT
            axes = figure.add_axes(
                (x / layout.width, y / height, wide / layout.width, tall / height)
            )
            named = layout.narrow or k == 0
            _panel(axes, runs, data, rows, column, head, named)
        return figure

    measured = runs.measured.words
    outcomes = data.groupby(["model", "arm"], sort=False)["state"]
    enough = f"{load_margins().levels['solved'].at_least:g} %"
    alt = (
        f"{capital(measured)} of every run on the lengths trained on and at the "
        f"longest test. Runs with at least {enough} there: "
        + "; ".join(
            f"{runs.label(model, arm)} {(states == 'solved').sum()} of {len(states)}"
            for (model, arm), states in outcomes
        )
    )
    caption = (
        f"Right on what it knows. A dot is the {measured} of one run, on the "
        "lengths that it was trained on and at the longest test of its task. The numbers at the "
        f"right count the runs with at least {enough} there."
    )
    return exhibit(draw, name, caption, f"{alt}.", data, runs)


def _panel(axes: "Axes", runs: Runs, data, rows, column: str, head: str, named: bool) -> None:
    percent_axis(axes, top=-0.9, bottom=len(rows) - 0.4)
    axes.text(0, -0.62, head, size=8, weight="bold", color=LIGHT.ink, va="center")
    for i, (model, arm) in enumerate(rows):
        own = rows_of(data, model, arm).sort_values(column, kind="stable")
        values = own[column].to_numpy()
        axes.scatter(
            values,
            i + _jitter(values),
            s=13,
            color=colour(model),
            alpha=0.6,
            linewidth=0,
            clip_on=False,
        )
        if named:
            words = runs.label(model, arm).replace(", ", "\n")
            look = {"color": colour(model), "weight": "bold", "multialignment": "right"}
            beside(axes, words, (0, i), -9, size=7.2, **look)
        if column == "longest":
            solved = int((own["state"] == "solved").sum())
            beside(axes, f"{solved} of {len(own)}", (1, i), 7, color=LIGHT.muted, size=7.2)


def _jitter(values: np.ndarray) -> np.ndarray:
    """Heights that keep equal values apart: the k-th of n, spread over a strip of fixed height."""
    heights = np.zeros(len(values))
    groups = np.round(values / 4)
    for group in np.unique(groups):
        inside = np.flatnonzero(groups == group)
        if len(inside) > 1:
            heights[inside] = np.linspace(-1, 1, len(inside))
    return heights * STRIP / ROW / 1.4
