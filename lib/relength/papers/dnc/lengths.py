"""Reachable input lengths, ours beside the printed ones: Figures 1, 2, 5, Tables 2, 3, 5, 6."""

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from relength.papers.dnc.by_length import (
    ABOVE,
    EXTENDED,
    LAST,
    MEASURES,
    TRAINED,
    Memory,
    curves,
    gains,
    summaries,
)
from relength.papers.dnc.recounts import CONSTRAINED, STATEFUL
from relength.report import exhibits, figures, reach
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.grid import NOT_RUN, say_not_run
from relength.report.runs import Runs
from relength.report.seeds import seed_lines
from relength.report.style import (
    LIGHT,
    VARIANTS,
    Layout,
    aligned,
    colour,
    frameless,
    grid_of_panels,
    title,
)
from relength.report.tables import short
from relength.specs import published
from relength.specs.spec import RunSpec
from relength.verdicts.wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEAD, TALL, FOOT, LEFT = 0.36, 1.7, 0.34, 0.36  # inches of a panel and around it
LABELS = {"task": 1.55, "constraint": 1.75}  # at its right, by what there is a panel of
BROKEN = (0, (5, 1.5))  # a line of long dashes; the slots of a memory have short ones

CONSTRAINTS = {
    "none": "No constraint",
    "compression": "Compression",
    "regularisation": "Regularisation",
    "both": "Both",
}

# Figures 1, 2 and 5


def figure_1(runs: Runs, number: int) -> Exhibit:
    """Accuracy against length, a panel per task: every run a thin line, the median thick."""
    caption = (
        f"How long may an input get? Accuracy after rounding in percent ({MEASURES}) against "
        "length. A thin line is a run, a thick one the median of a controller's runs. Shaded: the "
        "lengths trained on. Dashed: the "
        f"{TRAINED.slots(runs.specs[0])} slots of the memory. Rings stand at {ABOVE:.0f} percent, "
        "at the longest input that the paper prints above it."
    )
    return _figure(runs, number, TRAINED, caption)


def figure_2(runs: Runs, number: int) -> Exhibit:
    """Draw Figure 2: the larger memory, on a logarithmic axis; dots are the lengths tested."""
    few, many = _slots(runs)
    caption = (
        "What does a larger memory give? Accuracy in percent against length, on a logarithmic "
        f"axis, of the networks of Figure 1 with {many} slots in place of {few} and no further "
        "training. A thin line is a run, with a dot at each length that was tested; a thick one "
        "the median of a controller's runs. Shaded: the lengths trained on. Dashed: "
        f"{few} slots and {many}. Rings stand at {ABOVE:.0f} percent, at the longest input that "
        "the paper prints above it; where it prints 0 there is none."
    )
    return _figure(runs, number, EXTENDED, caption)


def figure_5(runs: Runs, number: int) -> Exhibit:
    """Draw Figure 5: a panel per constraint, with both kinds of LSTM under it."""
    caption = (
        "Does a constraint need the Peephole LSTM? Accuracy after rounding in percent on "
        f"{title(runs.tasks[0])} against length, a panel per constraint. A thin line is a run, a "
        "thick one the median of a controller's runs. Solid: the LSTM of the paper's other "
        "experiments, with peepholes wherever there is a constraint; broken: the other kind. "
        f"Shaded: the lengths trained on. Dashed: the {TRAINED.slots(runs.specs[0])} slots of the "
        f"memory. Rings stand at {ABOVE:.0f} percent, at the longest input that the paper prints "
        "above it."
    )
    return _figure(runs, number, TRAINED, caption, "constraint")


def _slots(runs: Runs) -> tuple[int, int]:
    """Slots of the memory trained with, and of the larger one."""
    return TRAINED.slots(runs.specs[0]), EXTENDED.slots(runs.specs[0])


def _figure(runs: Runs, number: int, memory: Memory, caption: str, panel: str = "task") -> Exhibit:
    """panel: what each has one of, "task" or "constraint"."""
    data, table = (
        found.assign(constraint=found["model"].map(_constraints(runs)))
        for found in (curves(runs, memory), summaries(runs, memory))
    )
    panels = table[panel].unique()

    def draw(layout: Layout) -> "Figure":
        across = 1 if layout.narrow else min(2, len(panels))
        around = {"head": HEAD, "foot": FOOT, "left": LEFT, "right": LABELS[panel]}
        figure, places, _ = grid_of_panels(layout, len(panels), across, TALL, **around)
        for axes, name in zip(places, panels, strict=True):
            own = [part[part[panel] == name] for part in (data, table)]
            spec = next(s for s in runs.specs if s.task.name == own[1]["task"].iloc[0])
            heading = CONSTRAINTS[name] if panel == "constraint" else title(name)
            _panel(axes, heading, spec, memory, *own)
        return figure

    name = "lengths" if memory is TRAINED else f"lengths-{memory.checkpoint}"
    return figures.exhibit(runs, number, draw, name, caption, _in_words(table), data)


def _constraints(runs: Runs) -> dict[str, str]:
    """The constraint of each controller."""
    return {spec.row: spec.model.constraint for spec in runs.specs}


def _panel(
    axes: "Axes",
    heading: str,
    spec: RunSpec,
    memory: Memory,
    data: pd.DataFrame,
    table: pd.DataFrame,
) -> None:
    tested, coarse = memory.tested(spec), memory is not TRAINED
    shortest, last = min(tested), max(tested)
    axes.patch.set_visible(False)
    axes.set(ylim=(-3, 105))
    if coarse:
        axes.set_xscale("log")
        axes.set_xlim(0.9 * shortest, last)
    else:
        axes.set_xlim(shortest - 1, last)
    low, high = spec.task.train_lengths
    axes.axvspan(low - 0.5, high + 0.5, color=LIGHT.surface, linewidth=0, zorder=0)
    for slots in {spec.model.slots, memory.slots(spec)}:
        axes.axvline(slots, color=LIGHT.muted, linewidth=0.6, linestyle=(0, (4, 3)))
    for level in (0, 50, 100):
        axes.axhline(level, color=LIGHT.rule, linewidth=0.6, zorder=0)
    axes.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    marked = (5, 15, 50, 150, 500, 1000) if coarse else (5, 15, 30, 50, 75, 100)
    ticks = [n for n in marked if shortest <= n <= last]
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.set_xticks([], minor=True)
    axes.tick_params(length=0, labelsize=7, labelcolor=LIGHT.muted)
    frameless(axes)
    axes.set_title(heading, loc="left", size=9, weight="bold", color=LIGHT.ink, pad=5)
    ends: dict[str, tuple[float, bool]] = {}
    nothing = not table["seeds"].any()
    if nothing:
        say_not_run(axes, va="bottom")
    for cell in table.itertuples():
        shade = colour(cell.model)
        if not np.isnan(cell.printed) and shortest <= cell.printed <= last:
            ring = {"facecolors": "none", "edgecolors": shade, "linewidths": 0.9}
            axes.scatter([cell.printed], [ABOVE], s=26, alpha=0.85, zorder=4, **ring)
        own = data[data["model"] == cell.model]
        marks = {"marker": "o" if coarse else "", "markersize": 1.3, "markeredgewidth": 0}
        look = {"width": 0.45, "median": 1.6, "alpha": 0.6}
        if cell.model in VARIANTS:  # it has the colour of the controller beside it
            look |= {"width": 0.9, "linestyle": BROKEN}
        seed_lines(axes, own, "length", "accuracy", shade, **look, **marks)
        at_end = own.loc[own["length"] == own["length"].max(), "accuracy"]
        height = float(at_end.median()) if cell.seeds else 50.0
        ends[cell.model] = height, nothing or bool(cell.seeds)
    gap = last * ((last / shortest) ** 0.04 - 1) if coarse else 0.04 * (last - shortest)
    reach.labels(axes, ends, last, gap=gap)


def _in_words(table: pd.DataFrame) -> str:
    parts = []
    for task, cells in table.groupby("task", sort=False):
        done = [
            f"{cell.model} {cell.longest:.0f} (printed {number(cell.printed)})"
            for cell in cells.itertuples()
            if cell.seeds
        ]
        parts.append(f"{title(task)}: {', '.join(done) or NOT_RUN}")
    return (
        "Accuracy against input length, a panel per task and a line per controller. Longest input "
        f"with a median above {ABOVE:.0f} percent: {'; '.join(parts)}."
    )


# Tables 2, 3, 5 and 6


def printed_table(memory: Memory = TRAINED) -> Exhibit:
    """The printed table of longest inputs: tasks down and controllers across."""
    artifact = memory.longest
    data = published.table(artifact)
    cells = data.pivot(index="task", columns="row", values="value")
    cells = cells.loc[data["task"].unique(), data["row"].unique()]
    rows = [
        (title(task), *map(number, row))
        for task, row in zip(cells.index, cells.to_numpy(), strict=True)
    ]
    columns = {"task": "text", **dict.fromkeys(map(escape, cells.columns), "number")}
    caption = (
        f"<b>{published.name_of(artifact)} of the paper, as printed.</b> The longest input with a "
        f"median above {ABOVE:.0f} %, of ten trials; 0 for none."
    )
    name = f"{artifact}-printed"
    html = exhibits.table(rows_table(columns, rows), caption, name, [exhibits.csv(name, data)])
    return Exhibit(html, f"{artifact}: {len(data)} printed lengths.", data)


def table_2(runs: Runs) -> Exhibit:
    """The longest input with a median above 95 %, ours beside the printed one."""
    return _longest_table(runs, TRAINED, "")


def table_5(runs: Runs) -> Exhibit:
    """Draw Table V: the longest inputs that are solved with the larger memory."""
    return _longest_table(runs, EXTENDED, f"{_grid_in_words(runs)} ")


def _longest_table(runs: Runs, memory: Memory, remark: str) -> Exhibit:
    caption = (
        f"<b>{published.name_of(memory.longest)} of the paper, side by side.</b> {{}} The longest "
        f"input whose median over runs is above {ABOVE:.0f} %, 0 for none; {remark}below, smaller: "
        "what the paper prints. Point at a cell to see each run's own."
    )

    def cell(row: Any) -> tuple[str, str, str]:
        return number(row.longest), ", ".join(map(str, row.each)), number(row.printed)

    return _side_by_side(runs, memory, memory.longest, caption, cell)


def _grid_in_words(runs: Runs) -> str:
    """Say which lengths were tested with the larger memory, for a caption."""
    lengths = EXTENDED.tested(runs.specs[0])
    return (
        f"only {len(lengths)} lengths from {min(lengths)} to {max(lengths)} were tested, so "
        "a number stands for all up to the next of them;"
    )


def table_3(runs: Runs) -> Exhibit:
    """Means over lengths: what the runs are like, ours beside the printed ones."""
    return _means_table(runs, TRAINED, "")


def table_6(runs: Runs) -> Exhibit:
    """Draw Table VI: mean accuracies with the larger memory."""
    remark = "Each length that was tested counts once; which those of the paper are is not printed."
    return _means_table(runs, EXTENDED, f" {remark}")


def _means_table(runs: Runs, memory: Memory, remark: str) -> Exhibit:
    low, high = memory.ends(runs.specs[0])
    caption = (
        f"<b>{published.name_of(memory.means)} of the paper, side by side.</b> {{}} Each run's "
        f"mean over lengths {low} to {high}, in percent: the median over runs (in brackets the "
        "best), then mean ± standard deviation; below, smaller: what the paper prints, of ten "
        f"runs.{remark} Point at a cell to see each run's own."
    )

    def shown(median: float, best: float, mean: float, sd: float) -> str:
        spread = "" if np.isnan(sd) else f" ± {short(sd)}"
        return f"{short(median)} ({short(best)}), {short(mean)}{spread}"

    def cell(row: Any) -> tuple[str, str, str]:
        ours = shown(row.median, row.max, row.mean, row.sd)
        theirs = shown(row.printed_median, row.printed_max, row.printed_mean, row.printed_sd)
        return ours, ", ".join(map(short, row.means)), theirs

    return _side_by_side(runs, memory, memory.means, caption, cell)


Cell = Callable[[Any], tuple[str, str, str]]


def _side_by_side(runs: Runs, memory: Memory, artifact: str, caption: str, cell: Cell) -> Exhibit:
    """Tasks down and controllers across. cell: row of summaries -> (ours, each run's, printed)."""
    table = summaries(runs, memory)
    data = table.assign(**{c: table[c].map(_listed) for c in ("each", "means")})
    return _grid(runs, f"{artifact}-side-by-side", caption, table, data, cell)


def _grid(
    runs: Runs, name: str, caption: str, table: pd.DataFrame, data: pd.DataFrame, cell: Cell
) -> Exhibit:
    """table: a row per task and controller; data: the same for download."""
    caption = caption.format(badges(runs.scale, runs.freshness))
    if not runs.records:
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    rows = []
    for task, cells in table.groupby("task", sort=False):
        row = [title(task)]
        for one in cells.itertuples():
            ours, each, theirs = cell(one)
            hint = escape(each, quote=True)
            top = f'<b title="{hint}">{ours}</b>' if one.seeds else f"<small>{NOT_RUN}</small>"
            row.append(f"{top}<br><small>{theirs}</small>")
        rows.append(row)
    columns = {"task": "text", **dict.fromkeys((escape(model) for model, _ in runs.rows), "number")}
    html = exhibits.table(
        rows_table(columns, rows),
        caption,
        name,
        [exhibits.csv(name, data), exhibits.notebook(runs.page)],
    )
    done = int((table["seeds"] > 0).sum())
    return Exhibit(html, f"{name}: {done} of {len(table)} cells have runs.", data)


def gains_table(runs: Runs) -> Exhibit:
    """Longest inputs with the larger memory over those with the small one, ours and printed."""
    table, (few, many) = gains(runs), _slots(runs)
    caption = (
        "<b>How much length does the memory give?</b> {} The longest input above "
        f"{ABOVE:.0f} % with {many} slots, divided by that with {few}, of the medians over runs; "
        "below, both lengths. [a, b) means a or more and less than b, the next length that was "
        f"tested; ≥ stands at the longest. {_times(many / few)} would be as much as the memory "
        "grew. Last: the same of Tables 2 and 5 of the paper. Point at a cell to see each run's "
        "own ratio."
    )

    def cell(row: Any) -> tuple[str, str, str]:
        small, large = _reached(row.small, row.small_below), _reached(row.large, row.large_below)
        printed = f"{number(row.printed_small)} to {number(row.printed_large)}"
        ours = f"{_times(row.ratio)}<br><small>{small} to {large}</small>"
        theirs = f"{_times(row.printed_ratio)}, {printed}"
        return ours, ", ".join(map(_times, row.each)), theirs

    data = table.assign(each=table["each"].map(_listed))
    return _grid(runs, f"{runs.page}-gains", caption, table, data, cell)


def _times(ratio: float) -> str:
    return "–" if np.isnan(ratio) else f"×{ratio:.1f}"


def _reached(length: float, below: float) -> str:
    """The longest input of a grid, as what it stands for: 46, [150, 200), ≥ 1000.

    below: the next length that was tested, infinite for none
    """
    if not length or np.isnan(length) or below == length + 1:
        return number(length)
    return f"[{length:.0f}, {below:.0f})" if np.isfinite(below) else f"≥ {length:.0f}"


def _listed(values: Sequence[float]) -> str:
    return " ".join(f"{value:.6g}" for value in values)


# In words


def numbers(runs: Runs, memory: Memory = TRAINED) -> str:
    """Both tables as plain text, a line per task and controller; in brackets the paper's values."""
    table = summaries(runs, memory)
    names = " and ".join(published.name_of(name) for name in (memory.longest, memory.means))
    names = names.replace(" and Table ", " and ").replace("Table", "Tables", 1)
    if memory.longest not in runs.experiment.artifacts:
        names = f"{published.name_of(runs.experiment.artifacts[0])} in the numbers of {names}"
    head = f"{names}, {runs.scale} scale: of our seeds (paper's value), lengths and percent"
    lines = [head]
    for task, cells in table.groupby("task", sort=False):
        averaged = "{}-{}".format(*memory.ends(runs.specs[0]))
        rows = [[title(task), "seeds", "longest", f"median {averaged}", f"mean {averaged}"]]
        for cell in cells.itertuples():
            ours = [cell.longest, cell.median, cell.mean]
            theirs = [cell.printed, cell.printed_median, cell.printed_mean]
            shown = [
                f"{number(mine) if cell.seeds else NOT_RUN} ({number(said)})"
                for mine, said in zip(ours, theirs, strict=True)
            ]
            rows.append([f"  {cell.model}", str(cell.seeds), *shown])
        lines += ["", *aligned(*rows)]
    return "\n".join(lines)


def gained(runs: Runs) -> str:
    """The gains as plain text, a line per task and controller."""
    few, many = (f"{slots} slots" for slots in _slots(runs))
    lines = [f"Longest input above {ABOVE:.0f} % with {few}, with {many}, their ratio (printed):"]
    for task, cells in gains(runs).groupby("task", sort=False):
        rows = [[title(task), "seeds", few, many, "ratio"]]
        for cell in cells.itertuples():
            lengths = (cell.small, cell.small_below), (cell.large, cell.large_below)
            ours = [*(_reached(*length) for length in lengths), _times(cell.ratio)]
            theirs = [number(cell.printed_small), number(cell.printed_large)]
            shown = [
                f"{mine if cell.seeds else NOT_RUN} ({said})"
                for mine, said in zip(ours, [*theirs, _times(cell.printed_ratio)], strict=True)
            ]
            rows.append([f"  {cell.model}", str(cell.seeds), *shown])
        lines += ["", *aligned(*rows)]
    return "\n".join(lines)


class Beside(NamedTuple):
    """The stateful baseline and constrained controllers on a task, by the means of their runs."""

    baseline: float  # median over runs
    seeds: int
    rivals: pd.DataFrame  # of those with runs: a row per model, with median and seeds


def beside_stateful(runs: Runs, memory: Memory = TRAINED) -> dict[str, Beside]:
    """Set constrained controllers beside the baseline, by task, where both have runs."""
    found = {}
    for task, cells in summaries(runs, memory).groupby("task", sort=False):
        cells = cells.set_index("model")[["median", "seeds"]].dropna()
        rivals = cells[cells.index.isin(CONSTRAINED)]
        if STATEFUL in cells.index and len(rivals):
            own = cells.loc[STATEFUL]
            found[task] = Beside(own["median"], int(own["seeds"]), rivals)
    return found


def catching_up(runs: Runs) -> str:
    """Say how the stateful baseline ends beside the constrained controllers, trained as long."""
    said, at_the_end = [], beside_stateful(runs, LAST)
    for task, selected in beside_stateful(runs).items():
        both = {"selected weights": selected, "last weights": at_the_end[task]}
        for which, one in both.items():
            medians = one.rivals["median"]
            others = ", ".join(f"{model} {short(mean)}" for model, mean in medians.items())
            said.append(
                f"{title(task)}, {which}: {STATEFUL} {short(one.baseline)} against {others}; "
                f"{int((medians > one.baseline).sum())} of {len(medians)} are ahead of it."
            )
    if not said:
        return "Not run yet: a task with the stateful baseline and a constrained controller."
    head = f"Means over lengths {TRAINED.span} after equal training, medians of runs:"
    return "\n".join([head, *said])
