"""Portraits of a controller's states, and how often they return: Figures 3, 4 and 10 to 19.

The portraits are t-SNE projections that were made when a run ended. The numbers beside them are
read from the states themselves: :mod:`relength.papers.dnc.states` says how.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from relength.papers.dnc import states
from relength.papers.dnc.by_length import TRAINED
from relength.papers.dnc.experiments import PORTRAITS
from relength.papers.dnc.states import mean_accuracy
from relength.report import figures, reach
from relength.report.exhibits import Exhibit
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import (
    LIGHT,
    Layout,
    aligned,
    canvas,
    colour,
    frameless,
    grid_of_panels,
    title,
)
from relength.runs.store import Record
from relength.specs import registry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Phase = Literal["encoding", "decoding"]
# Figure of the paper by task and phase. Answers to search and logic have no portrait in print.
PRINTED: dict[tuple[str, Phase], int] = {
    ("dnc_sort", "encoding"): 3,
    ("dnc_copy", "encoding"): 4,
    ("dnc_sort", "decoding"): 10,
    ("dnc_copy", "decoding"): 11,
    ("dnc_differentiation", "encoding"): 12,
    ("dnc_differentiation", "decoding"): 13,
    ("dnc_shift", "encoding"): 14,
    ("dnc_shift", "decoding"): 15,
    ("dnc_add", "encoding"): 16,
    ("dnc_add", "decoding"): 17,
    ("dnc_search", "encoding"): 18,
    ("dnc_logic", "encoding"): 19,
}
ARTIFACTS = tuple(PORTRAITS)
BEST, WORST = 3, 3  # runs of a controller in a portrait
DRAWN = 10  # samples of a run that are drawn
EMPTY = 0.5  # inches of a row without runs
SHADES = 10  # steps of the colour from the first step to the last
WORDS: dict[Phase, str] = {"encoding": "reads", "decoding": "writes"}


def with_states(runs: Runs) -> list[tuple[str, str]]:
    """The rows whose controllers have a state: (model, arm)."""
    stateful = {spec.row for spec in runs.specs if spec.model.controller != "ffnn"}
    return [(model, arm) for model, arm in runs.rows if model in stateful]


def numbers(runs: Runs) -> pd.DataFrame:
    """The numbers of every run that keeps states or gates, a row each, with its mean accuracy."""
    rows = []
    for task in runs.tasks:
        for model, arm in runs.rows:
            for record in runs.cell(model, arm, task):
                found = {k: v for test in states.shares(record).values() for k, v in test.items()}
                who = {"task": task, "model": model, "seed": record["spec"]["seed"]}
                rows.append({**who, "accuracy": mean_accuracy(record), **found})
    columns = ["task", "model", "seed", "accuracy", *registry.papers()["dnc"].metrics]
    return pd.DataFrame(rows, columns=columns)


# Portraits


def chosen(records: Sequence[Record]) -> list[Record]:
    """The best three and the worst three of some runs, best first; all if there are fewer."""
    ranked = sorted(records, key=mean_accuracy, reverse=True)
    return ranked if len(ranked) <= BEST + WORST else ranked[:BEST] + ranked[-WORST:]


def portraits(runs: Runs, task: str, phase: Phase, number: int) -> Exhibit:
    """Paths of the states of the best and the worst runs while they read, or while they write."""
    runs = reach.judged_runs(runs.with_later_seeds(), [task])
    rows = with_states(runs)
    shown = {row: chosen(runs.cell(*row, task)) for row in rows}
    across = max((len(records) for records in shown.values()), default=0) or 1

    def draw(layout: Layout) -> "Figure":
        left = 0.1 if layout.narrow else 1.6
        columns = min(across, 3) if layout.narrow else max(across, 4)
        pitch = (layout.width - left) / columns
        head, line = 0.3, 0.36
        blocks = -(-across // columns)
        down = blocks * (pitch + line) + (head if layout.narrow else 0.1)
        tops, height = stacked(head, [down if shown[row] else EMPTY for row in rows])
        figure = canvas(layout, height)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, layout.width), ylim=(height, 0))
        axes.axis("off")
        _key(axes, left)
        for row, top in zip(rows, tops, strict=True):
            place = (left, top + 0.16) if layout.narrow else (left - 0.15, top + 0.25)
            side = {"ha": "left" if layout.narrow else "right", "color": colour(row[0])}
            axes.text(*place, row[0], size=8, weight="bold", **side)
            if not shown[row]:
                axes.text(left + 0.1, top + 0.3, NOT_RUN, color=LIGHT.muted, size=7.5)
            for k, record in enumerate(shown[row]):
                block, column = divmod(k, columns)
                x = left + column * pitch
                y = top + (head if layout.narrow else 0.1) + block * (pitch + line)
                _portrait(axes, record, phase, (x, y, pitch * 0.92))
        return figure

    done = {model: records for (model, _), records in shown.items() if records}
    said = "; ".join(
        f"{model}: "
        + ", ".join(f"{mean_accuracy(r):.0f} percent, {_returns(r, phase):.0f}" for r in records)
        for model, records in done.items()
    )
    printed = PRINTED[task, phase]
    caption = (
        f"States on their way: {title(task)}, as the controller {WORDS[phase]} (the paper's "
        f"Figure {printed}). A panel is a run, from the best to the worst of its row (at most "
        f"{BEST} and {WORST}); a line is one of {DRAWN} inputs of length 30, projected by t-SNE. "
        f"Below: the run's mean accuracy over lengths {TRAINED.span}, and its returns (100: as "
        "many as in a shuffled order). Distances between panels mean nothing."
    )
    alt = (
        f"Portraits of states in {title(task)}, a row per controller, while it {WORDS[phase]}. "
        f"Mean accuracy and returns of the runs shown: {said or NOT_RUN}."
    )
    name = f"{task}-{phase}"
    return figures.exhibit(runs, number, draw, name, caption, alt, numbers(runs))


def stacked(first: float, heights: Sequence[float]) -> tuple[list[float], float]:
    """Places at which rows below each other begin, from `first` on, and the end of the last."""
    ends = first + np.cumsum(heights)
    return [first, *ends[:-1].tolist()], float(ends[-1])


def _returns(record: Record, phase: Phase) -> float:
    name = "state_returns" if phase == "encoding" else "state_returns_writing"
    return states.shares(record)[record["memory"]["states"]["test"]].get(name, np.nan)


def _shades() -> list[Any]:
    from matplotlib import colormaps

    return [colormaps["plasma"](x) for x in np.linspace(0.2, 0.82, SHADES)]


def _key(axes: "Axes", left: float) -> None:
    """The first step's colour to the last one's."""
    for k, shade in enumerate(_shades()):
        axes.plot([left + 0.36 + 0.09 * k] * 2, [0.08, 0.15], color=shade, linewidth=6)
    words = {"size": 7, "color": LIGHT.muted, "va": "center"}
    axes.text(left, 0.115, "first", **words)
    axes.text(left + 0.48 + 0.09 * SHADES, 0.115, "last step", **words)


def _portrait(axes: "Axes", record: Record, phase: Phase, box: tuple[float, float, float]) -> None:
    """The paths of one run in a square box: its upper left corner, and its side."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    x, y, side = box
    kept = record["memory"]["states"]["portraits"].get(phase)
    if kept is None:
        axes.text(x + side / 2, y + side / 2, "no path", color=LIGHT.muted, size=7, ha="center")
        return
    places = states.decoded(kept)[:DRAWN]
    low, high = places.min((0, 1)), places.max((0, 1))
    places = (places - low) / np.maximum(high - low, 1e-9).max() * side + (x, y)
    steps = places.shape[1] - 1
    for k, shade in enumerate(_shades()):
        first, last = round(k * steps / SHADES), round((k + 1) * steps / SHADES)
        part = places[:, first : last + 1]
        if part.shape[1] < 2:
            continue
        codes = ([Path.MOVETO] + [Path.LINETO] * (part.shape[1] - 1)) * len(part)
        path = Path(part.reshape(-1, 2), codes)
        look = {"facecolor": "none", "edgecolor": shade, "linewidth": 0.45, "alpha": 0.85}
        axes.add_patch(PathPatch(path, **look))
    words = f"{mean_accuracy(record):.0f} %, {_returns(record, phase):.0f}"
    axes.text(x + side / 2, y + side + 0.16, words, size=7, color=LIGHT.ink, ha="center")


# Loops and generalisation


def loops(runs: Runs, number: int) -> Exhibit:
    """Every run's returns against its mean accuracy: do loops accompany generalisation?"""
    data = numbers(runs)
    rows = [model for model, _ in with_states(runs)]
    tasks = [t for t in runs.tasks if len(data) and (data["task"] == t).any()] or runs.tasks[:2]

    def draw(layout: Layout) -> "Figure":
        across = min(len(tasks), 1 if layout.narrow else 2)
        around = {"head": 0.35, "foot": 0.5, "left": 0.5, "right": 1.25}
        figure, places, _ = grid_of_panels(layout, len(tasks), across, tall=1.65, **around)
        for axes, task in zip(places, tasks, strict=True):
            _loops_panel(axes, task, data, rows)
        return figure

    caption = (
        "Do loops accompany generalisation? A dot is a run: its mean accuracy over lengths "
        f"{TRAINED.span} against how often its states return while it reads, in percent of a "
        "shuffled order. The claims ask for the shaded corner, loops and generalisation; runs at "
        "the lower left have neither and say nothing."
    )
    return figures.exhibit(runs, number, draw, "loops", caption, _loops_in_words(data), data)


def _loops_panel(axes: "Axes", task: str, data: pd.DataFrame, rows: list[str]) -> None:
    axes.patch.set_visible(False)
    own = data[data["task"] == task]
    right = max(120.0, float(own["state_returns"].max()) + 8 if len(own) else 0)
    axes.set(xlim=(-6, right), ylim=(0, 104))
    look = {"color": LIGHT.surface, "linewidth": 0, "zorder": 0}
    axes.fill_between([states.LOOPS, right], states.GENERALISES, 104, **look)
    frameless(axes)
    axes.tick_params(length=0, labelsize=7, labelcolor=LIGHT.muted)
    axes.set_xticks([0, 50, 100], ["0", "50", "100 %"])
    axes.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    for level in (0, 50, 100):
        axes.axhline(level, color=LIGHT.rule, linewidth=0.6, zorder=0)
    axes.set_title(title(task), loc="left", size=9, weight="bold", color=LIGHT.ink, pad=5)
    axes.set_xlabel("returns of states", size=7, color=LIGHT.muted)
    ends = {}
    for model in rows:
        dots = own[own["model"] == model]
        axes.scatter(
            dots["state_returns"], dots["accuracy"],
            s=26, color=colour(model), alpha=0.85, linewidths=0, zorder=3,
        )  # fmt: skip
        if len(dots):
            rightmost = dots.loc[dots["state_returns"].idxmax()]  # its name is nearest to the right
            ends[model] = float(rightmost["accuracy"]), True
    reach.labels(axes, ends, right - 6, gap=6)


def _loops_in_words(data: pd.DataFrame) -> str:
    parts = []
    for (task, model), runs_of in data.groupby(["task", "model"], sort=False):
        if runs_of["state_returns"].notna().any():
            together = int((runs_of["loops_accompany"] == 100).sum())
            parts.append(
                f"{title(task)}, {model}: returns {_listed(runs_of['state_returns'])}, accuracy "
                f"{_listed(runs_of['accuracy'])}, together in {together} of {len(runs_of)}"
            )
    return f"Returns of states against mean accuracy, per run. {'; '.join(parts) or NOT_RUN}."


def _listed(values: pd.Series) -> str:
    return "/".join(f"{value:.0f}" for value in values)


# In words


MEASURES = {
    "state_returns": "returns",
    "state_return_time": "return time",
    "state_symbols": "by symbol",
    "state_neighbours": "neighbours",
    "state_ends": "at flag",
    "state_returns_writing": "written",
    "state_moves": "moves",
}


def table(runs: Runs) -> str:
    """Medians of the numbers of states as plain text, a line per controller and task with runs.

    *Written* are returns while writing, as *moves* are; the others are of reading.
    """
    data = numbers(runs)
    lines = [f"States at length 30, {runs.scale} scale: medians of our runs, percent"]
    lines += [f"  {NOT_RUN}"] * data.empty
    for task in (task for task in runs.tasks if (data["task"] == task).any()):
        cells = [[title(task), "runs", "accuracy", *MEASURES.values()]]
        for model, _ in with_states(runs):
            own = data[(data["task"] == task) & (data["model"] == model)]
            medians = [
                f"{own[name].median():.0f}" if name in own and own[name].notna().any() else "–"
                for name in ("accuracy", *MEASURES)
            ]
            cells.append([f"  {model}", str(len(own)), *medians])
        lines += ["", *aligned(*cells)]
    return "\n".join(lines)
