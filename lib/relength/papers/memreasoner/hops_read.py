"""Tell what goes wrong first, retrieval, order or writing, and how near hops come to which lines.

Records keep traces of reads (:mod:`relength.training.traces_of_reads`): of every hop and length the
kind of line that is read, and the distance to the nearest line of each kind. Of runs from before
there were such traces a later execution counts, as ``relength run --refresh`` makes it; without
one they are left out. No figure of the paper shows either.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from relength.papers.memreasoner.split import (
    Part,
    cells,
    framed,
    in_a_grid,
    places_of_key,
    stacked,
)
from relength.report import exhibits
from relength.report.exhibits import Exhibit
from relength.report.figures import exhibit
from relength.report.grid import NOT_RUN
from relength.report.runs import Record, Runs
from relength.report.style import LIGHT, Layout, aligned, colour, title
from relength.report.tables import short
from relength.specs.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Quantiles over questions, as traces have them: a tenth, a quarter, half, ...
QUARTER, HALF, THREE_QUARTERS = 1, 2, 3
PARTS = {
    "answered": Part("read and answered", None, 1.0),
    "writing": Part("read, but another place written", LIGHT.second, 0.85),
    "order": Part("order: another line about the same", None, 0.4),
    "fact": Part("retrieval: a fact about another", LIGHT.muted, 0.7),
    "text": Part("retrieval: a line of the novel", LIGHT.rule, 1.0),
    "diverged": Part("memory diverged", LIGHT.ink, 1.0),
}
WRONG = {"same": "order", "fact": "fact", "text": "text", "none": "diverged"}
NO_TRACES = "Not run yet: runs that record what each hop reads."


class Line(NamedTuple):
    """The look of the distance to a kind of line."""

    words: str
    colour: str | None  # None: the model's
    dashes: str


KINDS = {
    "wanted": Line("the wanted line", None, "-"),
    "same": Line("another line about the same", None, ":"),
    "fact": Line("a fact about another", LIGHT.second, "--"),
    "text": Line("a line of the novel", LIGHT.muted, "-"),
}


def traced(runs: Runs) -> Iterator[tuple[tuple[str, str, str, int], list[dict[str, Any]]]]:
    """((model, arm, task, seed), its traces) of the runs that have any, in the order of the page.

    A run's first usable execution that has traces counts.
    """
    for cell, (record, executed) in _executions(runs):
        yield (*cell, RunSpec.recorded(record["spec"]).seed), executed["reads"]


def _executions(runs: Runs) -> Iterator[tuple[tuple[str, str, str], tuple[Record, Record]]]:
    """((model, arm, task), (the run that tables have, its execution with traces)), in order."""
    found: dict[str, Record] = {}
    for record in (*runs.records, *runs.further):
        if record.get("reads"):
            found.setdefault(record["key"], record)
    for model, arm in runs.rows:
        for task in runs.tasks:
            for record in runs.cell(model, arm, task):
                if executed := found.get(record["key"]):
                    yield (model, arm, task), (record, executed)


def counted(runs: Runs) -> str:
    """Say how many runs of the readings shown have traces: *1 of 5*; and of which execution."""
    found = list(_executions(runs))
    said = f"{len(found)} of {sum(len(runs.cell(*cell)) for cell in {cell for cell, _ in found})}"
    later = [pair for _, pair in found if pair[0] is not pair[1]]
    if not later:
        return said
    apart = max(_apart(*pair) for pair in later)
    return (
        f"{said}, {len(later)} of them from a later execution than the tables have, with "
        f"accuracies up to {short(apart)} points apart"
    )


def _apart(first: Record, later: Record) -> float:
    """The largest difference of two executions' accuracies at a test, in points."""
    tests, again = (one["checkpoints"]["selected"]["tests"] for one in (first, later))
    name = "answer_accuracy"
    return max(100 * abs(tests[test][name] - again[test][name]) for test in tests)


def again(runs: Runs) -> str:
    """The command that trains runs with traces, also those that are recorded without any."""
    return exhibits.training(runs) + (" --refresh" if runs.records else "")


def firsts(runs: Runs) -> pd.DataFrame:
    """Tabulate the percent of questions of each kind, by traced run and test.

    Columns: model, arm, task, seed, test; the :data:`PARTS`, which sum to 100; and ``lucky``,
    answered though not read.
    """
    rows = []
    for who, traces in traced(runs):
        for trace in traces:
            share = 100 / trace["items"]
            found, lucky = dict.fromkeys(PARTS, 0.0), 0.0
            for kind, (right, wrong) in trace["first"].items():
                if kind == "wanted":
                    found |= {"answered": share * right, "writing": share * wrong}
                else:
                    found[WRONG[kind]] += share * (right + wrong)
                    lucky += share * right
            rows.append((*who, trace["test"], *found.values(), lucky))
    columns = ["model", "arm", "task", "seed", "test", *PARTS, "lucky"]
    kinds = {"seed": int, **dict.fromkeys([*PARTS, "lucky"], float)}
    return pd.DataFrame(rows, columns=columns).astype(kinds)


def means(runs: Runs) -> pd.DataFrame:
    """Means of :func:`firsts` over seeds, by (model, arm, task, test), in the order of the page."""
    data = firsts(runs)
    where = ["model", "arm", "task", "test"]
    return data.groupby(where, sort=False)[[*PARTS, "lucky"]].mean()


def first_figure(runs: Runs, number: int) -> Exhibit:
    """Draw what goes wrong first, against the length of the context: a panel per reading."""
    data, middle = firsts(runs), means(runs)
    caption = (
        "What goes wrong first? Percent of questions by their first wrong read, against the length "
        "of the context in thousand tokens. An error of order reads another line about the same "
        "person or thing, an error of retrieval any other line. Where all reads are right, the "
        "answer can still be written wrongly."
    )
    if data.empty:
        return exhibits.waiting(caption, f"{runs.page}-first", again(runs), data)
    caption += f" Means over the runs with traces of their reads: {counted(runs)}."
    told = "; ".join(
        f"{runs.label(*cell)} at {test}: "
        + ", ".join(f"{row[name]:.0f} {PARTS[name].words}" for name in PARTS if row[name])
        for cell, part in cells(middle)
        for test, row in [*part.iterrows()][-1:]
    )
    alt = f"Shares of questions by what goes wrong first. Percent at the longest length: {told}."
    shown = {name: part for name, part in PARTS.items() if data[name].any()}
    draw = partial(stacked, runs, middle, shown)
    return exhibit(runs, number, draw, "first", caption, alt, data)


def distances(runs: Runs) -> pd.DataFrame:
    """Distances of the nearest line of a kind to what a hop reads: quantiles over questions.

    Columns: model, arm, task, seed, test, hop (from 1), kind, quarter, half, three_quarters.
    """
    rows = [
        (*who, trace["test"], hop, kind, *(found[q] for q in (QUARTER, HALF, THREE_QUARTERS)))
        for who, traces in traced(runs)
        for trace in traces
        for hop, near in enumerate(trace["distances"], start=1)
        for kind, found in near.items()
    ]
    columns = ["model", "arm", "task", "seed", "test", "hop", "kind"]
    values = ["quarter", "half", "three_quarters"]
    kinds = {"seed": int, "hop": int, **dict.fromkeys(values, float)}
    return pd.DataFrame(rows, columns=[*columns, *values]).astype(kinds)


def distance_figure(runs: Runs, number: int) -> Exhibit:
    """Distances against the length of the context, a panel per reading and hop."""
    data = distances(runs)
    caption = (
        "How near does a hop come? Distance of what is read from the memory to the nearest line of "
        "each kind, against the length of the context in thousand tokens. The line of the smallest "
        "distance is the one that is read. Medians over questions; shaded, the middle half of them."
    )
    if data.empty:
        return exhibits.waiting(caption, f"{runs.page}-near", again(runs), data)
    caption += f" Medians over the runs with traces of their reads: {counted(runs)}."
    where = ["model", "arm", "task", "hop", "kind", "test"]
    middle = data.groupby(where, sort=False)[["quarter", "half", "three_quarters"]].median()
    panels = {
        panel: {kind: lines.set_index("test") for kind, lines in part.groupby("kind")}
        for panel, part in middle.reset_index().groupby(where[:4], sort=False)
    }
    tests = list(dict.fromkeys(data["test"]))

    def draw(layout: Layout) -> "Figure":
        lines = len(KINDS) if layout.narrow else 1
        drawing, places, height = in_a_grid(layout, len(panels), lines)
        for axes, (panel, near) in zip(places, panels.items(), strict=True):
            _panel(axes, _named(runs, panel, list(panels)), panel[0], near, tests)
        _key(drawing, layout, height, next(iter(panels))[0])
        return drawing

    told = "; ".join(
        f"{_named(runs, panel, list(panels))}: "
        + ", ".join(
            f"{line.words} {near[kind]['half'].iloc[0]:.3g} at {near[kind].index[0]} and "
            f"{near[kind]['half'].iloc[-1]:.3g} at {near[kind].index[-1]}"
            for kind, line in KINDS.items()
            if kind in near
        )
        for panel, near in panels.items()
    )
    alt = f"Median distances to the nearest line of each kind. {told or NOT_RUN}."
    return exhibit(runs, number, draw, "near", caption, alt, data)


def _named(runs: Runs, panel: tuple[Any, ...], panels: list[tuple[Any, ...]]) -> str:
    model, arm, task, hop = panel
    said = runs.label(model, arm, task)
    said += f", {title(task)}" * (len(runs.tasks) > 1)
    return said + f", hop {hop}" * (max(p[3] for p in panels) > 1)


def _panel(
    axes: "Axes", words: str, model: str, near: dict[str, pd.DataFrame], tests: list[str]
) -> None:
    axes.patch.set_visible(False)
    for kind, line in KINDS.items():
        if kind not in near:
            continue
        part, shade = near[kind], line.colour or colour(model)
        x = [tests.index(test) for test in part.index]
        axes.fill_between(
            x, part["quarter"], part["three_quarters"], color=shade, alpha=0.12, linewidth=0
        )
        axes.plot(x, part["half"], line.dashes, color=shade, linewidth=1.4)
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(len(tests)), [test.removesuffix("k") for test in tests])
    axes.grid(axis="y", color=LIGHT.rule, linewidth=0.6)
    framed(axes, words)


def _key(drawing: "Figure", layout: Layout, height: float, model: str) -> None:
    """Strokes with words above all panels, side by side; one below the other on a phone."""
    from matplotlib.lines import Line2D

    places = places_of_key(layout, height, len(KINDS))
    for line, (x, y) in zip(KINDS.values(), places, strict=True):
        stroke = np.array([x, x + 0.28]) / layout.width
        look = {"linestyle": line.dashes, "color": line.colour or colour(model), "linewidth": 1.4}
        drawing.add_artist(Line2D(stroke, [y, y], **look))
        drawing.text(
            (x + 0.34) / layout.width, y, line.words, color=LIGHT.muted, size=7.5, va="center"
        )


def numbers(runs: Runs) -> str:
    """Write what goes wrong first as plain text, a block per reading and a line per part."""
    middle = means(runs)
    if middle.empty:
        return NO_TRACES
    lines = [
        f"What goes wrong first, {runs.scale} scale: percent of questions, means over the runs",
        f"with traces of their reads, {counted(runs)}",
    ]
    for cell, part in cells(middle):
        rows = [[runs.label(*cell), *part.index]]
        shown = {**{n: p.words for n, p in PARTS.items()}, "lucky": "answered though not read"}
        rows += [
            [f"  {words}", *(f"{value:.0f}" for value in part[name])]
            for name, words in shown.items()
            if name in ("answered", "writing", "order", "text") or part[name].any()
        ]
        lines += ["", *aligned(*rows)]
    return "\n".join(lines)
