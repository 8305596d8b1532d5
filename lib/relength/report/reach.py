"""Draw how far beyond their training lengths the models reach: the picture on the landing page.

Its panels, accuracy against length with a line per model, also make figures of notebooks.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.seeds import swarm
from relength.report.style import (
    LAYOUTS,
    LIGHT,
    Layout,
    colour,
    frameless,
    grid_of_panels,
    spaced,
    style,
    svg,
    title,
)
from relength.report.tables import comparison, flat
from relength.report.wording import capital
from relength.specs import registry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTES: dict[str, str] = registry.united("task_notes")
CROWDED = 5  # tests per panel, beyond which four panels in a row are too narrow
HEAD, FOOT, LABELS = 0.5, 0.26, 1.06  # inches above, below and at the right of a panel
TALL = 1.7  # inches of a panel
LETTER = 0.058  # inches of a letter of a label, about
APART = 1.7  # percent between lines that would lie on each other
LINE = 8.6  # percent between two labels


def reach(runs: Runs, artifact: str, tasks: Sequence[str]) -> Exhibit:
    """Accuracy against length for a few tasks: our median and seeds, the paper's value a ring.

    Only the arm that claims judge is shown. Raises KeyError for a task the runs do not have.
    """
    data, shown = judged(runs, artifact, tasks), judged_runs(runs, tasks)
    name = "reach"
    drawings = {}
    with style():
        for layout in LAYOUTS:
            drawings[layout.name] = svg(draw(runs, data, tasks, layout), f"{name}-{layout.name}")
    measure = runs.measured
    about = f", the {measure.about}" if measure.about else ""
    caption = (
        f"<b>How far do they reach?</b> {badges(shown.scale, shown.freshness)} "
        f"{capital(measure.words)}{about}, by length. The models are trained on the shaded "
        "lengths; the question is what comes after. Lines: the median of our seeds (of two seeds, "
        "both), each seed a dot. Rings: what the paper prints. A ring with its line in it is a "
        "number that came out the same. "
        f"{apart(data)}"
    )
    page = f"executed/{runs.experiment.name}.html"
    links = [
        exhibits.csv(name, flat(data)),
        exhibits.specs(name, shown.records),
        exhibits.drawn_from(runs.experiment.name, __name__),
        f'<a href="{page}#{runs.experiment.name}-accuracy">all tasks and readings</a>',
    ]
    html = exhibits.figure(drawings, in_words(data, tasks), caption, name, links, 1)
    return Exhibit(html, f"Figure 1. {in_words(data, tasks)}", data)


def judged(runs: Runs, artifact: str | None, tasks: Sequence[str]) -> pd.DataFrame:
    """The :func:`relength.report.tables.comparison` of some tasks, each row in its judged arm."""
    data = runs.judged_rows(comparison(runs, artifact))
    return data[data["task"].isin(tasks)]


def judged_runs(runs: Runs, tasks: Sequence[str]) -> Runs:
    """Keep the runs of which :func:`judged` shows the outcome."""
    return runs.of([row for row in runs.rows if runs.experiment.judges(*row)], tasks)


def draw(runs: Runs, data: pd.DataFrame, tasks: Sequence[str], layout: Layout) -> "Figure":
    """A panel per task: what :func:`judged` gives, one line per model."""
    most = max(len(runs.tests[task]) for task in tasks)
    across = 1 if layout.narrow else len(tasks) if most <= CROWDED else 2
    room = max(LABELS, LETTER * max(len(_ending(*row)) for row in _ends_of(data)))
    around = {"head": HEAD, "foot": FOOT, "left": 0.36, "right": room}
    figure, places, _ = grid_of_panels(layout, len(tasks), across, TALL, **around)
    for axes, task in zip(places, tasks, strict=True):
        _panel(axes, task, data[data["task"] == task], runs)
    return figure


def _panel(axes: "Axes", task: str, data: pd.DataFrame, runs: Runs) -> None:
    tests = runs.tests[task]
    axes.patch.set_visible(False)
    axes.set(xlim=(-0.35, len(tests) - 0.75), ylim=(-7, 107))
    axes.axvspan(-0.35, 0.35, color=LIGHT.surface, linewidth=0, zorder=0)
    for level in (0, 50, 100):
        axes.axhline(level, color=LIGHT.rule, linewidth=0.6, zorder=0)
    axes.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    axes.set_xticks(range(len(tests)), [runs.test_label(task, test) for test in tests])
    axes.tick_params(length=0, labelsize=7, labelcolor=LIGHT.muted)
    frameless(axes)
    above = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}
    axes.annotate(title(task), (0, 1), (-4, 17), size=9, weight="bold", color=LIGHT.ink, **above)
    axes.annotate(NOTES.get(task, ""), (0, 1), (-4, 6), size=7.2, color=LIGHT.muted, **above)
    ends = {}
    models = list(dict.fromkeys(data["model"]))
    for model, lift in zip(models, lifts(len(models)), strict=True):
        ends[model] = _line(axes, data[data["model"] == model], lift)
    labels(axes, ends, len(tests) - 1)


def lifts(models: int) -> list[float]:
    """Compute how far above its numbers each of the models of a panel is drawn, in points."""
    step = APART * min(1.0, 5 / models)
    return [step * (k - (models - 1) / 2) for k in range(models)]


def furthest(data: pd.DataFrame) -> float:
    """Return how many points a line may stand above or below its numbers, so that none hides
    another.
    """
    return max(lifts(int(data.groupby("task")["model"].nunique().max())))


def apart(data: pd.DataFrame) -> str:
    """The remark of a caption that lines do not stand exactly where their numbers are."""
    marks = "rings and dots" if data["paper"].notna().any() else "dots"
    return (
        f"Lines and their {marks} are drawn up to {furthest(data):.1f} points above or below their "
        "numbers, so that none hides another."
    )


def _line(axes: "Axes", rows: pd.DataFrame, lift: float) -> tuple[float, bool]:
    """Draw one model; returns the height at which it ends, and whether there are runs."""
    shade = colour(rows["model"].iloc[0])
    x, medians = np.arange(len(rows)), rows["median"].to_numpy()
    printed = rows["paper"].to_numpy()
    rings = {"facecolors": "none", "edgecolors": shade, "linewidths": 0.9, "zorder": 4}
    axes.scatter(x, printed + lift, s=30, alpha=0.85, clip_on=False, **rings)
    if not rows["seeds"].any():
        return float(np.nan_to_num(printed[-1], nan=50.0)) + lift, False  # nothing is known
    lines = zip(*rows["values"], strict=True) if set(rows["seeds"]) == {2} else [medians]
    for line in lines:  # two seeds have no median: a line each
        thick = 1.5 if line is medians else 0.8
        axes.plot(x, np.array(line) + lift, color=shade, linewidth=thick, zorder=2, clip_on=False)
    places = np.repeat(x, [len(values) for values in rows["values"]])
    dots = np.concatenate(rows["values"].to_list()) + lift
    swarm(axes, dots, places, shade, size=2.65, orient="v", bar=None, clip_on=False)
    return float(medians[-1] + lift), True


def _ends_of(data: pd.DataFrame) -> list[tuple[str, bool]]:
    """Every model in every panel, and whether it has runs there."""
    cells = data.groupby(["model", "task"], sort=False)["seeds"].max()
    return [(model, bool(seeds)) for (model, _), seeds in cells.items()]


def _ending(model: str, has_runs: bool) -> str:
    """Word what stands beside the end of a line."""
    return model if has_runs else f"{model}, {NOT_RUN}"


def labels(
    axes: "Axes", ends: dict[str, tuple[float, bool]], last: float, gap: float = 0.42
) -> None:
    """Every model's name at the right, beside the end of its line, none on top of another.

    ends  {model: height at which its line ends, and whether it has runs}
    last  where lines end; gap: how far to the right of that names begin
    """
    order = sorted(ends, key=lambda model: ends[model][0])
    wanted = [ends[model][0] for model in order]
    for model, height in zip(order, spaced(wanted, LINE), strict=True):
        end, has_runs = ends[model]
        words = _ending(model, has_runs)
        axes.annotate(
            words,
            (last, end),
            (last + gap, height),
            annotation_clip=False,
            va="center",
            size=7.4,
            weight="bold" if has_runs else "normal",
            color=colour(model) if has_runs else LIGHT.muted,
            arrowprops={
                "arrowstyle": "-",
                "color": colour(model),
                "linewidth": 0.5,
                "alpha": 0.6,
                "shrinkA": 1,
                "shrinkB": 4,
                "relpos": (0, 0.5),
            },
        )


def in_words(data: pd.DataFrame, tasks: Sequence[str]) -> str:
    """The ends of the lines, for readers who do not see them."""
    parts = []
    for task in tasks:
        rows = data[data["task"] == task]
        ends = rows.groupby("model", sort=False).last()
        done = [f"{m} {v:.0f} %" for m, v in ends["median"].items() if not np.isnan(v)]
        said = ", ".join(done) or NOT_RUN
        parts.append(f"{title(task)} at length {rows['test'].iloc[-1]}: {said}")
    return f"Accuracy against length, a panel per task. Medians of our seeds: {'; '.join(parts)}."
