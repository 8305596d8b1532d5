"""Pages about PANM's pointers: where they point, how sharply, and how many it takes.

Everything is read from the traces that records of PANM keep (:mod:`relength.papers.panm.pointing`).
"""

from collections.abc import Iterator, Sequence
from math import exp
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from relength.papers.panm import pointing
from relength.report import attention as heatmaps
from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.figures import exhibit, of_means
from relength.report.grid import NOT_RUN, say_not_run
from relength.report.runs import Runs
from relength.report.seeds import seed_lines, swarm
from relength.report.style import (
    ARM_LABELS,
    LIGHT,
    Layout,
    aligned,
    canvas,
    colour,
    frameless,
    grid_of_panels,
    over_percent,
    spaced,
    title,
)
from relength.runs.store import Record
from relength.specs.spec import RunSpec
from relength.verdicts.wording import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BASE, RELATION = "mode 1, pointer 1 from the base", "mode 2, pointer 1"
# What Figure 2 shows, and what the claims say of it.
SHOWN = {"panm_copy": (BASE,), "panm_id_sort": (BASE, RELATION)}
MODES = {BASE: "Mode 1", RELATION: "Mode 2"}
SAYS = {
    "pointer_advances": "one slot further",
    "pointer_sharp": "over half on one slot",
    "partner_found": "Mode 2 at the answer",
}


# Where they point (Figure 2c and d)


def slots(runs: Runs, number: int) -> Exhibit:
    """Weights of pointers over the slots of memory, step by step: the lowest seed of each arm."""
    arms = [pair for pair in runs.rows if pair[0] == "PANM"]
    panels = {
        (f"{title(task)}, {MODES[pointer]}", runs.label(*pair)): _sample(
            runs.cell(*pair, task)[:1], pointer
        )
        for task, pointers in SHOWN.items()
        for pointer in pointers
        for pair in arms
    }

    def draw(layout: Layout) -> "Figure":
        return heatmaps.draw(panels, layout, naming=str)

    caption = (
        "Where the pointers point on the first test sample of length L+1. Each panel shows the "
        "lowest seed recorded. Slots of memory run from left to right; S and E are the marks that "
        "the released code puts around an input. Decoding steps run from top to bottom, with what "
        "was written at the left; wrong digits stand out. Depth of colour is weight. Boxes mark "
        "where the paper says the pointer is: in Mode 1 one slot further at each step, in Mode 2 "
        "at the token with the same id."
    )
    said = "; ".join(heatmaps.in_words(*cell, s, naming=str) for cell, s in panels.items())
    alt = f"Pointer weights as heat maps, a panel per task, kind of pointer and reading. {said}."
    shown = runs.only(r for pair in arms for task in SHOWN for r in runs.cell(*pair, task)[:1])
    return exhibit(shown, number, draw, "slots", caption, alt, heatmaps.weights(panels))


def _sample(records: Sequence[Record], pointer: str) -> heatmaps.Sample | None:
    """The first trace of a run as the heat maps take it; None if there is none."""
    if not records or not records[0].get("traces"):
        return None
    trace, task = records[0]["traces"][0], RunSpec.recorded(records[0]["spec"]).task
    wanted = pointing.places(task, trace["test"], 1)[0]
    if pointer == BASE:
        wanted = np.arange(len(wanted)) + task.flags
    spans = [(int(place), int(place)) for place in wanted]
    return trace | {"weights": trace["weights"][pointer], "spans": spans}


# Whether they increment by one


def steps(runs: Runs) -> Exhibit:
    """Per arm, task and test: the shares of steps that relength.papers.panm.pointing counts, every
    seed.
    """
    data = shares(runs)
    columns = {"task": "text", "length": "number", "reading": "text", "seeds": "number"}
    columns |= dict.fromkeys((*SAYS.values(), "tokens right"), "number")
    rows = []
    for (task, test, label), cell in data.groupby(["task", "test", "row"], sort=False):
        measured = cell.dropna(subset="accuracy")
        found = [_every(measured[metric]) for metric in (*SAYS, "accuracy")]
        rows.append((title(task), test, label, str(len(measured)), *found))
    caption = (
        f"<b>Does the pointer move on by one?</b> {badges(runs.scale, runs.freshness)} Percent of "
        "decoding steps, every seed. <i>One slot further</i>: the pointer that began at the base "
        "address moved on by one. <i>Over half on one slot</i>: it has more than half of its "
        "weight there. <i>Mode 2 at the answer</i>: the Mode-2 pointer is at the token to be "
        "written. The last column has the tokens right at that length."
    )
    name = f"{runs.page}-steps"
    if not runs.records:
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    return Exhibit(html, f"{len(rows)} cells with traced pointers.", data)


def shares(runs: Runs) -> pd.DataFrame:
    """One row per arm, task, traced test and seed; an empty row where nothing is recorded.

    Columns: task, test, row, seed, the metrics of relength.papers.panm.pointing and accuracy, in
    percent.
    """
    rows = []
    for task in (task for task in SHOWN if task in runs.tests):
        for test in runs.tests[task][1:3]:
            for model, arm in runs.rows:
                cell = {"task": task, "test": test, "row": runs.label(model, arm)}
                records = runs.cell(model, arm, task)
                rows += [{**cell, "seed": None}] if not records else []
                for record in records:
                    tokens = record["checkpoints"]["selected"]["tests"][test]
                    right = 100 * tokens[runs.experiment.measure]
                    found = pointing.shares(record).get(test, {})
                    rows.append(
                        {**cell, "seed": record["spec"]["seed"], **found, "accuracy": right}
                    )
    return pd.DataFrame(rows, columns=["task", "test", "row", "seed", *SAYS, "accuracy"])


def _every(values: pd.Series) -> str:
    if values.empty:
        return NOT_RUN
    kept = values.dropna()
    return ", ".join(map(number, kept)) if len(kept) else "–"


def numbers(runs: Runs) -> str:
    """The medians of :func:`shares` as plain text."""
    data = shares(runs)
    heads = dict(zip("abcd", (*SAYS.values(), "tokens right"), strict=True))
    lines = [f"Pointers, {runs.scale} scale: median over seeds, percent of steps"]
    lines += [f"  {letter}  {head}" for letter, head in heads.items()]
    for (task, test), cells in data.groupby(["task", "test"], sort=False):
        rows = [[f"{title(task)}, length {test}", "seeds", *heads]]
        for label, cell in cells.groupby("row", sort=False):
            measured = cell.dropna(subset="accuracy")
            shown = (_median(measured[metric]) for metric in (*SAYS, "accuracy"))
            rows.append([f"  {label}", str(len(measured)), *shown])
        lines += ["", *aligned(*rows)]
    return "\n".join(lines)


def _median(values: pd.Series) -> str:
    if values.empty:
        return NOT_RUN
    return number(float(values.median())) if values.notna().any() else "–"


# How sharply they can point


def bound(slots: float | np.ndarray, temperature: float = 1.0) -> float | np.ndarray:
    """The largest weight that a softmax of cosines over a temperature can give one of n slots.

    Cosines lie between -1 and 1, so it is e^(1/τ) / (e^(1/τ) + (n - 1)·e^(-1/τ)); Eq. 2 has τ = 1.
    """
    return 1 / (1 + (slots - 1) * exp(-2 / temperature))


BOUNDS = {1.0: "bound of Eq. 2", 0.1: "bound at temperature 0.1"}  # temperature: words


def sharpness(runs: Runs, number: int) -> Exhibit:
    """Largest weight of the Mode-1 pointer, measured, beside what a softmax of cosines allows."""
    data = _peaks(runs)
    n = np.geomspace(2, 128, 60)
    bounds = pd.concat(
        pd.DataFrame({"row": BOUNDS[t], "slots": n, "weight": 100 * bound(n, t)}) for t in BOUNDS
    )
    labels = {runs.label(*pair): pair[1] for pair in runs.rows if pair[0] == "PANM"}
    marks = dict(zip(labels, "os^D", strict=False))

    def draw(layout: Layout) -> "Figure":
        figure = canvas(layout, 2.9)
        left, right = (0.42, 0.2) if layout.narrow else (0.6, 1.6)
        size = (1 - (left + right) / layout.width, 0.72)
        axes = figure.add_axes((left / layout.width, 0.17, *size))
        axes.patch.set_visible(False)
        places = ((14, 100 * bound(14) + 4), (2.1, 102))
        for (words, line), shade, (x, y) in zip(
            bounds.groupby("row", sort=False), (LIGHT.second, LIGHT.first), places, strict=True
        ):
            axes.plot(line["slots"], line["weight"], color=shade, lw=1.4)
            axes.text(x, y, words, color=shade, size=7.5)
        for label, group in data.groupby("row", sort=False):
            look = {"marker": marks[label], "s": 20, "linewidth": 0, "alpha": 0.8}
            axes.scatter(group["slots"], group["weight"], color=colour("PANM"), **look)
        for i, label in enumerate(labels):
            x, y = (0.04, 0.10 + 0.08 * i) if layout.narrow else (1.04, 0.9 - 0.1 * i)
            place = {"transform": axes.transAxes, "clip_on": False}
            axes.scatter([x], [y], color=colour("PANM"), marker=marks[label], s=20, **place)
            none = "" if (data["row"] == label).any() else f", {NOT_RUN}"
            axes.text(
                x + 0.03, y, f"{label}{none}", size=7.2, va="center", color=LIGHT.muted, **place
            )
        axes.set(xscale="log", xlim=(2, 128), ylim=(0, 109))
        axes.set_xticks([2, 10, 20, 40, 80], ["2", "10", "20", "40", "80"])
        axes.set_xticks([], minor=True)
        axes.set_yticks([0, 50, 100], ["0", "50", "100 %"])
        axes.tick_params(colors=LIGHT.muted, labelsize=7, length=3)
        axes.grid(axis="y", color=LIGHT.rule, linewidth=0.6)
        axes.text(1, -0.17, "slots of memory", ha="right", size=7, color=LIGHT.muted,
                  transform=axes.transAxes)  # fmt: skip
        frameless(axes, base=True)
        return figure

    caption = (
        "How sharp a pointer can be, and how sharp it is. A line is the largest weight that a "
        "softmax of cosines can give one slot. One line is without a temperature, as printed; the "
        "other has that of the repaired reading. Training cannot cross them. Scaled dot products "
        "have no such line. A mark is the largest weight of the Mode-1 pointer from the base, its "
        "median over the steps of one sample. There is one mark per seed, task and length."
    )
    limits = ", ".join(f"{100 * bound(n):.0f} % of {n} slots" for n in (10, 20, 40, 80))
    medians = data.groupby("row", sort=False)["weight"].median()
    measured = "; ".join(f"{row} {w:.0f} %" for row, w in medians.items()) or NOT_RUN
    alt = f"Largest pointer weight against slots. Bound of Eq. 2: {limits}. Measured: {measured}."
    rows = pd.concat([bounds, data])
    shown = runs.of([pair for pair in runs.rows if pair[0] == "PANM"], runs.tasks)
    return exhibit(shown, number, draw, "sharpness", caption, alt, rows, waits=False)


def _peaks(runs: Runs) -> pd.DataFrame:
    """Median over steps of the largest Mode-1 weight: a row per run and traced test."""
    rows = [
        {
            **{"row": runs.label(model, arm), "task": task, "test": trace["test"]},
            "seed": record["spec"]["seed"],
            "slots": len(trace["source"]),
            "weight": 100 * float(np.median(np.max(trace["weights"][BASE], axis=1))),
        }
        for model, arm, task, record in _of_panm(runs)
        for trace in record.get("traces") or ()
        if BASE in trace["weights"]
    ]
    return pd.DataFrame(rows, columns=["row", "task", "test", "seed", "slots", "weight"])


def _of_panm(runs: Runs) -> Iterator[tuple[str, str, str, Record]]:
    for model, arm in runs.rows:
        if model == "PANM":
            for task in runs.tasks:
                for record in runs.cell(model, arm, task):
                    yield model, arm, task, record


# How many it takes (Figures 8 and 9)


def heads(runs: Runs, number: int) -> Exhibit:
    """Token accuracy at 2(L+1) against the number of pointers: a panel per task, both arms."""
    panels = _panels_of(runs)
    arms = list(dict.fromkeys(arm for _, arm in runs.rows))
    data = _by_heads(runs, panels)

    def draw(layout: Layout) -> "Figure":
        across = 2 if layout.narrow else len(panels)
        around = {"head": 0.48, "foot": 0.62, "left": 0.34, "right": 0.1, "top": 0.1}
        figure, places, _ = grid_of_panels(layout, len(panels), across, tall=1.35, **around)
        for axes, (artifact, task, (what, _)) in zip(places, panels, strict=True):
            own = data[data["artifact"] == artifact]
            _heads_panel(axes, own, arms, _counts(artifact))
            axes.set_title(title(task), loc="left", size=8.2, weight="bold", color=LIGHT.ink)
            first, second = what.split(", ")
            axes.set_xlabel(f"{first},\n{second}", size=6.5, color=LIGHT.muted, loc="left")
        return figure

    caption = (
        "How many pointers it takes. A dot is a seed's share of right tokens at length 2(L+1), the "
        "bar the median of the seeds. Filled dots: the released code. Rings: the repaired "
        "equations. A number of pointers without a dot has no run. A single pointer begins at the "
        "base, or at the end where its label says so. The paper plots these runs over training "
        f"time, as the next figure does.{of_means(runs)}"
    )
    parts = [
        f"{title(task)}, {count} ({kind}), {ARM_LABELS[arm]}: {cell.median():.0f} %"
        for (kind, task, count, arm), cell in data.groupby(
            ["kind", "task", "pointers", "arm"], sort=False
        )["accuracy"]
    ]
    alt = f"Accuracy against the number of pointers. {'; '.join(parts) or NOT_RUN}."
    return exhibit(runs, number, draw, "heads", caption, alt, data)


KINDS = (("Mode-1 pointers, no Mode 2", "{}+0"), ("Mode-2 pointers, two of Mode 1", "2+{}"))


def _panels_of(runs: Runs) -> list[tuple[str, str, tuple[str, str]]]:
    """The panels of both figures: artifact, task, what is counted and how such rows are named."""
    return [
        (artifact, task, KINDS[0 if "fig-8" in artifact else 1])
        for artifact in runs.artifacts
        for task in runs.tasks
        if artifact.endswith(task.removeprefix("panm_").replace("_", "-"))
    ]


def _by_heads(runs: Runs, panels: Sequence[tuple]) -> pd.DataFrame:
    rows = []
    for artifact, task, (what, pattern) in panels:
        test = runs.tests[task][2]
        for model, arm in runs.rows:
            for count in _counts(artifact):
                if model == _row_of(pattern, count):
                    records = runs.cell(model, arm, task)
                    values = runs.values(model, arm, task, test)
                    rows += [
                        dict(artifact=artifact, task=task, kind=what, pointers=count, arm=arm,
                             seed=record["spec"]["seed"], accuracy=value)
                        for record, value in zip(records, values, strict=True)
                    ]  # fmt: skip
    columns = ["artifact", "task", "kind", "pointers", "arm", "seed", "accuracy"]
    return pd.DataFrame(rows, columns=columns)


FROM_THE_END = "1 end"


def _counts(artifact: str) -> tuple[str, ...]:
    """The numbers of pointers of a panel: of Mode 1 in Figure 8, of Mode 2 in Figure 9."""
    return ("0", "1", FROM_THE_END, "2", "3") if "fig-8" in artifact else ("0", "1", "2")


def _row_of(pattern: str, count: str) -> str:
    """Return the name that tables give the model with so many pointers."""
    name = "PANM " + pattern.format(count[0])
    return "PANM" if name == "PANM 2+1" else name + " from the end" * (count == FROM_THE_END)


def over_time(runs: Runs, number: int) -> Exhibit:
    """Figures 8 and 9: token accuracy at 2(L+1) over training steps, by number of pointers."""
    panels = _panels_of(runs)
    arms = list(dict.fromkeys(arm for _, arm in runs.rows))
    data = _watched(runs, panels)
    steps = {spec.task.name: spec.training.steps for spec in runs.specs}

    def draw(layout: Layout) -> "Figure":
        across = len(arms)
        pitch, block = layout.width / across, 1.55
        height = len(panels) * block + 0.45
        figure = canvas(layout, height)
        for i, (artifact, task, _) in enumerate(panels):
            for j, arm in enumerate(arms):
                left, bottom = j * pitch + 0.36, height - 0.4 - (i + 1) * block + 0.34
                box = np.array((left, bottom, pitch - 0.84, block - 0.58))
                axes = figure.add_axes(box / ([layout.width, height] * 2))
                own = data[(data["artifact"] == artifact) & (data["arm"] == arm)]
                _over_time_panel(axes, own, _counts(artifact), steps[task])
                head = f"{title(task)} ({_figure(artifact)})" if j == 0 else ""
                axes.set_title(head, loc="left", size=8.2, weight="bold", color=LIGHT.ink)
                if i == 0:
                    where = {"transform": axes.transAxes, "size": 7.5, "color": LIGHT.muted}
                    axes.text(0, 1.34, ARM_LABELS[arm], **where)
        return figure

    counted = {_figure(artifact): what for artifact, _, (what, _) in panels}
    caption = (
        "How pointers learn. A thin line is one seed: the share of right tokens at length 2(L+1) "
        "over training steps. A strong line is the median where more than two seeds have a course "
        "recorded. The number at the lines counts their pointers: "
        f"{'; '.join(f'{what} ({figure})' for figure, what in counted.items())}.{of_means(runs)}"
    )
    ends = data[data["step"] == data.groupby("artifact")["step"].transform("max")]
    parts = [
        f"{title(task)} ({_figure(artifact)}) with {count}, {ARM_LABELS[arm]}: {middle:.0f} %"
        for (artifact, task, count, arm), middle in ends.groupby(
            ["artifact", "task", "pointers", "arm"], sort=False
        )["accuracy"].median().items()
    ]  # fmt: skip
    alt = f"Accuracy at 2(L+1) over training. Medians at the end: {'; '.join(parts) or NOT_RUN}."
    return exhibit(runs, number, draw, "over-time", caption, alt, data)


def _figure(artifact: str) -> str:
    """The figure that an artifact is a part of: *Figure 8*."""
    return f"Figure {artifact.split('-')[2]}"


def _watched(runs: Runs, panels: Sequence[tuple]) -> pd.DataFrame:
    rows = []
    for artifact, task, (_, pattern) in panels:
        for count in _counts(artifact):
            for model, arm in runs.rows:
                if model != _row_of(pattern, count):
                    continue
                for record in runs.cell(model, arm, task):
                    seed = record["spec"]["seed"]
                    rows += [
                        (artifact, task, count, arm, seed, point["step"],
                         100 * point["watched_accuracy"])
                        for point in record["curve"]
                        if "watched_accuracy" in point
                    ]  # fmt: skip
    names = ["artifact", "task", "pointers", "arm", "seed", "step", "accuracy"]
    return pd.DataFrame(rows, columns=names)


def _over_time_panel(axes, data: pd.DataFrame, counts: Sequence[str], steps: int) -> None:
    axes.set_xlim(0, steps)
    axes.set_xticks([0, steps], ["0", f"{steps:,} steps"])
    over_percent(axes)
    if data.empty:
        say_not_run(axes)
        return
    from matplotlib.colors import to_hex

    depths = dict(zip(counts, np.linspace(0.4, 1, len(counts)), strict=True))
    ends = []
    for count, own in data.groupby("pointers"):
        shade = to_hex((colour("PANM"), depths[count]), keep_alpha=True)
        seed_lines(axes, own, "step", "accuracy", shade, width=0.8, median=1.8)
        last = own.loc[own["step"] == own["step"].max(), "accuracy"]
        ends.append((float(last.median()), count))
    heights = spaced(sorted(y for y, _ in ends), 14.0)
    for (_, count), height in zip(sorted(ends), heights, strict=True):
        axes.text(steps * 1.02, height, count, size=6.8, va="center", color=LIGHT.ink)


def _heads_panel(axes, data: pd.DataFrame, arms: Sequence[str], counts: Sequence[str]) -> None:
    axes.set_xlim(-0.6, len(counts) - 0.4)
    axes.set_xticks(range(len(counts)), [count.replace(" ", "\n") for count in counts])
    over_percent(axes)
    shade = colour("PANM")
    middle = data["arm"].map({arm: k - (len(arms) - 1) / 2 for k, arm in enumerate(arms)})
    places = data["pointers"].map(counts.index) + 0.34 * middle
    shades = np.where(data["arm"] == arms[0], shade, "none")
    look = {"size": 3.4, "edgecolor": shade, "linewidth": 0.9, "clip_on": False}
    swarm(axes, data["accuracy"], places, shades, orient="v", bar=0.13, **look)
    if data.empty:
        say_not_run(axes)
