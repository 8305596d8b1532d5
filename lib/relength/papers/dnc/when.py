"""The time when generalisation comes: accuracy at four lengths over training. No paper has it.

A point of a learning curve, every thousandth step, has the accuracy at length 15, the longest that
is trained on, at 30, which selects the checkpoint, and at 20 and 45, which select nothing.

A run *arrives* at a length at the first of three points in a row above 95 %. The first point alone
could be luck: at length 15 and 30 it is measured on 16 samples. To stay above until training ends
would be too much: accuracy has spikes, and one near the end would undo what came long before. The
step from which a run stays stands beside it.
"""

from collections.abc import Iterable, Sequence
from html import escape
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relength.papers.dnc.by_length import ABOVE, MEASURES
from relength.papers.dnc.recounts import CONSTRAINED, STATEFUL
from relength.report import exhibits, figures
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import (
    LIGHT,
    Layout,
    aligned,
    beside,
    canvas,
    colour,
    frameless,
    grid_of_panels,
    title,
)
from relength.runs.store import Record
from relength.specs.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HELD = 3  # points in a row
NEVER = np.inf  # not within the budget
NOT_WITHIN = "not within"
MARKERS = (("o", False), ("s", False), ("o", True), ("D", True))  # of lengths, filled or not


def lengths_of(spec: RunSpec) -> tuple[int, ...]:
    """The lengths whose accuracy a learning curve has, ascending."""
    return tuple(sorted({spec.task.iid_length, spec.task.dev_length, *spec.task.watched}))


def courses(runs: Runs) -> pd.DataFrame:
    """Accuracy over training. Columns: task, model, seed, length, step, accuracy (percent)."""
    specs = {spec.key: spec for spec in runs.specs}
    parts = [
        course_of(specs[record["key"]], record).assign(
            task=task, model=model, seed=record["spec"]["seed"]
        )
        for task in runs.tasks
        for model, arm in runs.rows
        for record in runs.cell(model, arm, task)
    ]
    columns = ["task", "model", "seed", "length", "step", "accuracy"]
    data = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    kinds = {"seed": int, "length": int, "step": int, "accuracy": float}
    return data[columns].astype(kinds)


def course_of(spec: RunSpec, record: Record) -> pd.DataFrame:
    """The learning curve of a run. Columns: length, step, accuracy (percent)."""
    rows = [
        (length, point["step"], 100 * reached)
        for point in record["curve"]
        for length, reached in _measured(spec, point).items()
    ]
    return pd.DataFrame(rows, columns=["length", "step", "accuracy"])


def _measured(spec: RunSpec, point: dict[str, Any]) -> dict[int, float]:
    """{length: accuracy} of a point of a learning curve."""
    watched = point.get("watched_accuracy")
    if watched is not None and not isinstance(watched, dict):
        watched = {spec.task.watched[0]: watched}
    found = {int(test): reached for test, reached in (watched or {}).items()}
    found |= {spec.task.dev_length: point["dev_accuracy"]}
    return found | {spec.task.iid_length: point["iid_accuracy"]}


def arrival(steps: Sequence[int], above: Sequence[bool]) -> float:
    """The first of HELD points in a row at which a curve is above a level; infinite for none.

    >>> arrival([1, 2, 3, 4, 5, 6], [True, False, True, True, True, False])
    3.0
    """
    for start in range(len(above) - HELD + 1):
        if all(above[start : start + HELD]):
            return float(steps[start])
    return NEVER


def stays(steps: Sequence[int], above: Sequence[bool]) -> float:
    """The first of HELD points or more from which a curve is above a level to its end; infinite
    for none.

    >>> stays([1, 2, 3, 4, 5], [True, False, True, True, True])
    3.0
    >>> stays([1, 2, 3, 4, 5], [True, True, True, False, True])
    inf
    """
    below = [place for place, over in enumerate(above) if not over]
    start = below[-1] + 1 if below else 0
    return float(steps[start]) if start + HELD <= len(above) else NEVER


def arrivals(runs: Runs) -> pd.DataFrame:
    """Steps at which each run arrives at each length, infinite where it does not.

    Columns: task, model, seed, length, first (the arrival), stays.
    """
    rows = []
    for cell, course in courses(runs).groupby(["task", "model", "seed", "length"], sort=False):
        course = course.sort_values("step")
        steps, above = course["step"].tolist(), (course["accuracy"] > ABOVE).tolist()
        rows.append((*cell, arrival(steps, above), stays(steps, above)))
    columns = ["task", "model", "seed", "length", "first", "stays"]
    return pd.DataFrame(rows, columns=columns).astype({"first": float, "stays": float})


def medians(runs: Runs) -> pd.DataFrame:
    """A row per task and controller, those without runs included.

    Columns: task, model, seeds; of each length the median of the arrivals, ``first_30``, and of the
    steps from which runs stay, ``stays_30``; ``reached_30``, the runs that arrive; lag (the median
    of the runs' own steps from the training lengths to the length that selects, of those that know
    the former), lags (how many runs have both).

    A median is infinite where half of the runs or more do not arrive.
    """
    data, rows = arrivals(runs), []
    first = runs.specs[0]
    known, further = first.task.iid_length, first.task.dev_length
    for task in runs.tasks:
        for model, _ in runs.rows:
            own = data[(data["task"] == task) & (data["model"] == model)]
            wide = own.pivot(index="seed", columns="length", values="first")
            found: dict[str, Any] = {"task": task, "model": model, "seeds": len(wide)}
            for length in lengths_of(first):
                at = own[own["length"] == length]
                found |= {
                    f"first_{length}": _median(at["first"]),
                    f"stays_{length}": _median(at["stays"]),
                    f"reached_{length}": int(np.isfinite(at["first"]).sum()),
                }
            knowing = wide[np.isfinite(wide[known])] if len(wide) else wide
            gaps = (knowing[further] - knowing[known]).tolist() if len(knowing) else []
            found |= {"lag": _median(gaps), "lags": int(np.isfinite(gaps).sum())}
            rows.append(found)
    return pd.DataFrame(rows)


def leads(runs: Runs) -> pd.DataFrame:
    """Compare each constrained controller with the stateful one over training, where both have
    runs: medians of runs at the length that selects.

    Columns: task, model, points (that are compared), ahead (how many have the controller ahead),
    since (the step from which all do, infinite for none).
    """
    data, rows = courses(runs), []
    further = runs.specs[0].task.dev_length
    for task, own in data[data["length"] == further].groupby("task", sort=False):
        middle = own.pivot_table(index="step", columns="model", values="accuracy", aggfunc="median")
        if STATEFUL not in middle:
            continue
        for model in CONSTRAINED:
            if model in middle:
                both = middle[[STATEFUL, model]].dropna()
                ahead = (both[model] > both[STATEFUL]).tolist()
                since = stays(both.index.tolist(), ahead)
                rows.append((task, model, len(both), sum(ahead), since))
    return pd.DataFrame(rows, columns=["task", "model", "points", "ahead", "since"])


def _median(steps: Iterable[float]) -> float:
    """The median with steps that are never; NaN of nothing."""
    values = list(steps)
    return float(median(values)) if values else np.nan


# Figures


LABEL, ROW, GAP, HEAD, FOOT = 1.42, 0.42, 0.15, 0.5, 0.16  # inches


def figure(runs: Runs, number: int) -> Exhibit:
    """Accuracy over training: a block per task, a row per controller, a column per length."""
    data = courses(runs)
    found = medians(runs)
    tasks = list(dict.fromkeys(data["task"]))
    budget = int(data["step"].max()) if len(data) else 0

    def draw(layout: Layout) -> "Figure":
        from matplotlib.collections import LineCollection, PolyCollection

        lengths, left = lengths_of(runs.specs[0]), 0.34 if layout.narrow else LABEL
        pitch = (layout.width - left - 0.1) / len(lengths)
        wide, gap = pitch - 0.12, GAP + 0.14 * layout.narrow
        block = HEAD + len(runs.rows) * (ROW + gap) + FOOT
        figure = canvas(layout, len(tasks) * block)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, layout.width), ylim=(len(tasks) * block, 0))
        axes.axis("off")
        grounds, levels, marks = [], [], []
        lines: dict[str, list[np.ndarray]] = {}
        curves = dict(list(data.groupby(["task", "model", "length"], sort=False)))
        for t, task in enumerate(tasks):
            top = t * block + HEAD
            axes.text(0.02, top - 0.34, title(task), size=9, weight="bold", color=LIGHT.ink)
            for c, length in enumerate(lengths):
                x = left + c * pitch
                axes.text(x, top - 0.09, f"length {length}", size=7.5, color=LIGHT.muted)
            for r, (model, _) in enumerate(runs.rows):
                bottom = top + r * (ROW + gap) + ROW + 0.14 * layout.narrow
                middle = (0.02, bottom - ROW / 2, "center")
                place = (left, bottom - ROW - 0.03, "bottom") if layout.narrow else middle
                look = {"weight": "bold", "size": 7.2, "color": colour(model)}
                axes.text(*place[:2], model, va=place[2], **look)
                axes.text(left - 0.05, bottom, "0", size=6, color=LIGHT.muted, ha="right",
                          va="center")  # fmt: skip
                axes.text(left - 0.05, bottom - ROW, "100", size=6, color=LIGHT.muted, ha="right",
                          va="center")  # fmt: skip
                for c, length in enumerate(lengths):
                    x = left + c * pitch
                    grounds.append([(x, bottom), (x + wide, bottom),
                                    (x + wide, bottom - ROW), (x, bottom - ROW)])  # fmt: skip
                    over = bottom - ROW * ABOVE / 100
                    levels.append([(x, over), (x + wide, over)])
                    own = curves.get((task, model, length))
                    if own is None:
                        words = {"ha": "center", "va": "center", "style": "italic", "size": 6.5}
                        axes.text(x + wide / 2, bottom - ROW / 2, NOT_RUN, color=LIGHT.muted,
                                  **words)  # fmt: skip
                        continue
                    for _, run in own.groupby("seed"):
                        across = x + run["step"].to_numpy() / budget * wide
                        height = bottom - run["accuracy"].to_numpy() / 100 * ROW
                        lines.setdefault(model, []).append(np.column_stack([across, height]))
                    cell = found[(found["task"] == task) & (found["model"] == model)]
                    arrives = float(cell[f"first_{length}"].iloc[0])
                    if np.isfinite(arrives):
                        place = x + arrives / budget * wide
                        marks.append([(place, bottom), (place, bottom - ROW)])
            under = top + len(runs.rows) * (ROW + gap) - gap + 0.05 + 0.14 * layout.narrow
            for c in range(len(lengths)):
                x = left + c * pitch
                last = f"{budget // 1000}k" if layout.narrow else f"{budget:,} steps"
                small = {"size": 6.3, "color": LIGHT.muted, "va": "top"}
                axes.text(x, under, "0", **small)
                axes.text(x + wide, under, last, ha="right", **small)
        ground = {"facecolors": LIGHT.surface, "linewidths": 0, "zorder": -1}
        axes.add_collection(PolyCollection(grounds, **ground))
        rule = {"colors": LIGHT.rule, "linewidths": 0.6, "zorder": 0}
        axes.add_collection(LineCollection(levels, **rule))
        axes.add_collection(LineCollection(marks, colors=LIGHT.ink, linewidths=1.1, zorder=3))
        for model, drawn in lines.items():
            thin = {"linewidths": 0.55, "alpha": 0.85, "zorder": 2}
            axes.add_collection(LineCollection(drawn, colors=colour(model), **thin))
        return figure

    caption = (
        f"When does it come? Accuracy over training in percent ({MEASURES}), at lengths that a "
        "network is trained on (up to 15) and that it is not. Every "
        f"seed is a thin line; the grey rule is {ABOVE:.0f} percent. Read along a row: the bar "
        f"stands where the median run has arrived, the first of {HELD} points in a row above "
        f"{ABOVE:.0f} percent, and usually moves to the right as inputs get longer. No bar: half "
        f"of the runs or more do not arrive within the training.{_without(runs, tasks)}"
    )
    return figures.exhibit(runs, number, draw, "when", caption, _in_words(runs, found), data)


def _without(runs: Runs, tasks: Sequence[str]) -> str:
    """Name the tasks that a figure leaves out, for a caption."""
    others = [title(task) for task in runs.tasks if task not in tasks]
    return f" Not run: {', '.join(others)}." if others else ""


def _in_words(runs: Runs, found: pd.DataFrame) -> str:
    parts = []
    for task, cells in found[found["seeds"] > 0].groupby("task", sort=False):
        said = [
            f"{cell.model} "
            + ", ".join(
                f"{n}: {steps_in_words(getattr(cell, f'first_{n}'))}" for n in _lengths(runs)
            )
            for cell in cells.itertuples()
        ]
        parts.append(f"{title(task)}: {'; '.join(said)}")
    told = ". ".join(parts) or NOT_RUN
    return f"Accuracy over training, a line per seed. Median step of arrival at a length. {told}."


def _lengths(runs: Runs) -> tuple[int, ...]:
    return lengths_of(runs.specs[0])


def arrivals_figure(runs: Runs, number: int) -> Exhibit:
    """A line per run, from its arrival at the training lengths to those at longer inputs."""
    data = arrivals(runs)
    tasks = list(dict.fromkeys(data["task"]))
    budget = max((record["curve"][-1]["step"] for record in runs.records), default=1)

    def draw(layout: Layout) -> "Figure":
        across, row = 1 if layout.narrow else 2, 0.085
        seeds = max(1, data.groupby(["task", "model"])["seed"].nunique().max())
        tall = len(runs.rows) * (seeds * row + 0.12)
        around = {"head": 0.4, "foot": 0.34, "left": 1.42, "right": 0.3, "top": 0.2}
        figure, places, height = grid_of_panels(layout, len(tasks), across, tall, **around)
        for axes, task in zip(places, tasks, strict=True):
            _arrivals_panel(axes, runs, task, data[data["task"] == task], budget, seeds)
        _key(figure, layout, height, _lengths(runs))
        return figure

    caption = (
        "From knowing to generalising. A line is a run. Its marks are the steps at which it "
        "arrives at each length, from the first, which it is trained on. A line that ends in an "
        f"arrow does not arrive at the longest within the training; without a mark, at none."
        f"{_without(runs, tasks)}"
    )
    alt = _in_words(runs, medians(runs))
    return figures.exhibit(runs, number, draw, "arrivals", caption, alt, data)


def _key(figure: "Figure", layout: Layout, height: float, lengths: Sequence[int]) -> None:
    axes = figure.add_axes((0, 1 - 0.2 / height, 1, 0.2 / height))
    axes.set(xlim=(0, layout.width), ylim=(0, 0.2))
    axes.axis("off")
    for i, length in enumerate(lengths):
        x = (0.06 if layout.narrow else 1.42) + 0.78 * i
        marker, full = MARKERS[i % len(MARKERS)]
        shade = LIGHT.muted
        axes.plot(
            [x + 0.05], [0.1], marker, ms=4, mew=0.9, mec=shade, mfc=shade if full else "none"
        )
        words = {"va": "center", "size": 7, "color": LIGHT.muted}
        axes.text(x + 0.13, 0.1, f"length {length}", **words)


def _arrivals_panel(
    axes: "Axes", runs: Runs, task: str, data: pd.DataFrame, budget: int, seeds: int
) -> None:
    group = seeds + 0.12 / 0.085  # rows of a controller, and the room after it
    axes.patch.set_visible(False)
    axes.set(xlim=(0, budget * 1.02), ylim=(len(runs.rows) * group, -0.5), yticks=[])
    axes.set_xticks([0, budget / 2, budget], ["0", f"{budget / 2:,.0f}", f"{budget:,} steps"])
    axes.tick_params(length=0, labelsize=6.5, labelcolor=LIGHT.muted)
    axes.grid(axis="x", color=LIGHT.rule, linewidth=0.6)
    axes.set_axisbelow(True)
    frameless(axes)
    axes.set_title(title(task), loc="left", size=9, weight="bold", color=LIGHT.ink, pad=4)
    for r, (model, _) in enumerate(runs.rows):
        shade, own = colour(model), data[data["model"] == model]
        label = {"size": 7.2, "weight": "bold", "color": shade}
        if own.empty:
            label |= {"weight": "normal", "color": LIGHT.muted}
        middle = r * group + (seeds - 1) / 2
        beside(axes, model, (0, middle), -6, **label)
        if own.empty:
            beside(axes, NOT_RUN, (0, middle), 6, color=LIGHT.muted, size=6.5, style="italic")
        for s, (_, run) in enumerate(own.groupby("seed")):
            steps = run.sort_values("length")["first"].to_numpy()
            place, reached = r * group + s, steps[np.isfinite(steps)]
            late = not np.isfinite(steps[-1])
            ends = [reached.min(initial=budget), budget if late else reached.max(initial=0)]
            axes.plot(ends, [place, place], color=shade, linewidth=0.9, alpha=0.7, zorder=2)
            if late:
                axes.plot([budget], [place], ">", ms=3.2, mew=0, color=shade, clip_on=False)
            for i, step in enumerate(steps):
                marker, full = MARKERS[i % len(MARKERS)]
                face = {"mfc": shade if full else LIGHT.page, "mec": shade, "mew": 0.9, "ms": 3.6}
                if np.isfinite(step):
                    axes.plot([step], [place], marker, zorder=3, **face)


# In numbers and in words


def steps_in_words(step: float) -> str:
    """A step of arrival; NaN for no run, infinite for none within the training."""
    if np.isnan(step):
        return NOT_RUN
    return f"{step:,.0f}" if np.isfinite(step) else NOT_WITHIN


def arrivals_table(runs: Runs) -> Exhibit:
    """The median step of arrival of every controller on every task, at every length."""
    found, lengths, each = medians(runs), _lengths(runs), arrivals(runs)
    known, further = runs.specs[0].task.iid_length, runs.specs[0].task.dev_length
    caption = (
        f"<b>Steps to each length.</b> {badges(runs.scale, runs.freshness)} The median over runs "
        f"of the step at which accuracy is above {ABOVE:.0f} % for the first of {HELD} points in a "
        "row; in brackets how many runs arrive at all. Below, smaller: the median step from which "
        f"runs stay above. {NOT_WITHIN.capitalize()}: half of the runs or more are not there when "
        f"training ends. The last column is the median of each run's own steps between {known} and "
        f"{further}, of the runs that know {known}. Point at a cell to see each run's own."
    )
    name = f"{runs.page}-steps"
    if not runs.records:
        return exhibits.waiting(caption, name, exhibits.training(runs), each)
    columns = {"task": "text", "controller": "text", "runs": "number"}
    columns |= {f"length {n}": "number" for n in lengths} | {f"{known} to {further}": "number"}
    rows, nothing = [], f"<small>{NOT_RUN}</small>"
    begun = found.groupby("task")["seeds"].transform("sum") > 0
    for cell in found[begun].itertuples():
        own = each[(each["task"] == cell.task) & (each["model"] == cell.model)]
        row = [title(cell.task), escape(cell.model), str(cell.seeds)]
        if not cell.seeds:
            rows.append([*row, *[nothing] * (len(lengths) + 1)])
            continue
        for n in lengths:
            hint = ", ".join(
                map(steps_in_words, own[own["length"] == n].sort_values("seed")["first"])
            )
            first, later = (steps_in_words(getattr(cell, f"{of}_{n}")) for of in ("first", "stays"))
            reached = f"({getattr(cell, f'reached_{n}')}/{cell.seeds})"
            row.append(f'<b title="{hint}">{first}</b> {reached}<br><small>{later}</small>')
        rows.append([*row, "–" if np.isnan(cell.lag) else steps_in_words(cell.lag)])
    for task in found.loc[~begun, "task"].unique():
        rows.append([title(task), "all", "0", *[nothing] * (len(lengths) + 1)])
    links = [exhibits.csv(name, each), exhibits.notebook(runs.page)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    done = int((found["seeds"] > 0).sum())
    return Exhibit(html, f"{name}: {done} of {len(found)} cells have runs.", each)


def numbers(runs: Runs) -> str:
    """The medians as plain text, a line each; in brackets how many runs arrive."""
    found, lengths = medians(runs), _lengths(runs)
    lines = [f"Steps to {ABOVE:.0f} %, {runs.scale} scale: median arrival (runs that arrive)"]
    for task, cells in found.groupby("task", sort=False):
        rows = [[title(task), "runs", *(f"length {n}" for n in lengths)]]
        for cell in cells.itertuples():
            shown = [
                f"{steps_in_words(getattr(cell, f'first_{n}'))} ({getattr(cell, f'reached_{n}')})"
                if cell.seeds
                else NOT_RUN
                for n in lengths
            ]
            rows.append([f"  {cell.model}", str(cell.seeds), *shown])
        lines += ["", *aligned(*rows)]
    return "\n".join(lines)


def lags(runs: Runs) -> str:
    """Say how many steps lie between knowing the training lengths and the length that selects."""
    first = runs.specs[0].task
    known, further = first.iid_length, first.dev_length
    found = medians(runs)
    found = found[found["seeds"] > 0]
    if found.empty:
        return "Not run yet: a controller on a task."
    lines = [f"From length {known}, which is trained on, to length {further}; medians over runs:"]
    for task, cells in found.groupby("task", sort=False):
        lines.append(title(task))
        for cell in cells.itertuples():
            there = getattr(cell, f"reached_{known}")
            start = steps_in_words(getattr(cell, f"first_{known}"))
            if not there:
                lines.append(f"  {cell.model}: does not know length {known}.")
            elif np.isfinite(cell.lag):
                lines.append(
                    f"  {cell.model}: {known} at step {start}, {further} at "
                    f"{steps_in_words(getattr(cell, f'first_{further}'))}; a run needs "
                    f"{steps_in_words(cell.lag)} from one to the other; "
                    f"{cell.lags} of {cell.seeds} arrive."
                )
            else:
                lines.append(
                    f"  {cell.model}: {known} at step {start}, {further} not within the training; "
                    f"{cell.lags} of {cell.seeds} arrive."
                )
    return "\n".join(lines)
