"""How long an input may get: Figure 1, Tables II and III, ours beside the printed numbers.

A run is tested at every length from 2 to 100. Table II has the longest of them at which the median
over runs is above 95 %, Table III what the runs' means over lengths 2 to 45 are like.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from relength.papers.dnc.recounts import CONSTRAINED, STATEFUL
from relength.papers.dnc.states import AVERAGED
from relength.report import exhibits, figures, reach
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import LIGHT, Layout, aligned, canvas, colour, title
from relength.report.tables import number, short
from relength.runs.store import accuracies
from relength.specs import published

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ABOVE = 95.0  # percent, Table II
HEAD, TALL, FOOT, LEFT, LABELS = 0.36, 1.7, 0.34, 0.36, 1.4  # inches of a panel and around it


def curves(runs: Runs) -> pd.DataFrame:
    """The accuracy of each run at each length. Columns: task, model, seed, length, accuracy (%)."""
    rows = [
        (task, model, record["spec"]["seed"], int(test), 100 * share)
        for task in runs.tasks
        for model, arm in runs.rows
        for record in runs.cell(model, arm, task)
        for test, share in accuracies(record).items()
    ]
    data = pd.DataFrame(rows, columns=["task", "model", "seed", "length", "accuracy"])
    return data.astype({"seed": int, "length": int, "accuracy": float})


def longest(curve: pd.Series, above: float = ABOVE) -> int:
    """The longest length of a curve, accuracy by length, that is above a level; 0 for none."""
    return int(max(curve.index[curve > above], default=0))


def summaries(runs: Runs) -> pd.DataFrame:
    """What the runs of a controller and task are like, a row each; NaN where there are none.

    longest   of the median over runs, as Table II has it
    each      the same of every run, in the order of seeds
    means     every run's mean over lengths 2 to 45
    printed   of Table II; the others of Table III
    """
    data = curves(runs)
    lengths, averages = _printed("dnc-table-2"), _printed("dnc-table-3")
    rows = []
    for task in runs.tasks:
        for model, _ in runs.rows:
            own = data[(data["task"] == task) & (data["model"] == model)]
            runs_of = own.pivot(index="length", columns="seed", values="accuracy")
            means = runs_of[runs_of.index.isin(range(AVERAGED[0], AVERAGED[1] + 1))].mean()
            rows.append(
                {
                    "task": task,
                    "model": model,
                    "seeds": runs_of.shape[1],
                    "longest": longest(runs_of.median(axis=1)) if len(own) else np.nan,
                    "each": [longest(runs_of[seed]) for seed in runs_of],
                    "means": means.tolist(),
                    "median": means.median(),
                    "max": means.max(),
                    "mean": means.mean(),
                    "sd": means.std(),
                    "printed": lengths.get((model, task, ""), np.nan),
                    **{
                        f"printed_{name}": averages.get((model, task, name), np.nan)
                        for name in ("median", "max", "mean", "sd")
                    },
                }
            )
    return pd.DataFrame(rows)


@cache
def _printed(artifact: str) -> dict[tuple[str, str, str], float]:
    """{(row, task, statistic): value}; the spread of a mean is its sd."""
    found = {}
    for cell in published.table(artifact).itertuples():
        found[cell.row, cell.task, cell.statistic] = cell.value
        if cell.statistic == "mean":
            found[cell.row, cell.task, "sd"] = cell.spread
    return found


# Figure 1


def figure_1(runs: Runs, number: int) -> Exhibit:
    """Accuracy against length, a panel per task: every run a thin line, the median thick."""
    data, table = curves(runs), summaries(runs)

    def draw(layout: Layout) -> "Figure":
        across = 1 if layout.narrow else 2
        down = -(-len(runs.tasks) // across)
        pitch, block = layout.width / across, HEAD + TALL + FOOT
        size = np.array([layout.width, down * block] * 2)
        figure = canvas(layout, down * block)
        for k, task in enumerate(runs.tasks):
            row, column = divmod(k, across)
            corner = column * pitch + LEFT, (down - 1 - row) * block + FOOT
            axes = figure.add_axes(np.array([*corner, pitch - LEFT - LABELS, TALL]) / size)
            _panel(axes, runs, task, data, table)
        return figure

    caption = (
        "How long may an input get? Accuracy after rounding in percent (search: hit rate, logic: "
        "truth values) against length. A thin line is a run, a thick one the median of a "
        "controller's runs. Shaded: the lengths trained on. Dashed: the 50 slots of the memory. "
        "Rings stand at 95 percent, at the longest input that the paper prints above it."
    )
    return figures.exhibit(runs, number, draw, "lengths", caption, _in_words(table), data)


def _panel(axes: "Axes", runs: Runs, task: str, data: pd.DataFrame, table: pd.DataFrame) -> None:
    spec = next(spec for spec in runs.specs if spec.task.name == task)
    shortest, last = spec.task.test_lengths
    axes.patch.set_visible(False)
    axes.set(xlim=(shortest - 1, last), ylim=(-3, 105))
    low, high = spec.task.train_lengths
    axes.axvspan(low - 0.5, high + 0.5, color=LIGHT.surface, linewidth=0, zorder=0)
    axes.axvline(spec.model.slots, color=LIGHT.muted, linewidth=0.6, linestyle=(0, (4, 3)))
    for level in (0, 50, 100):
        axes.axhline(level, color=LIGHT.rule, linewidth=0.6, zorder=0)
    axes.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    ticks = [n for n in (5, 15, 30, 50, 75, 100) if shortest <= n <= last]
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.tick_params(length=0, labelsize=7, labelcolor=LIGHT.muted)
    axes.spines[:].set_visible(False)
    axes.set_title(title(task), loc="left", size=9, weight="bold", color=LIGHT.ink, pad=5)
    ends: dict[str, tuple[float, bool]] = {}
    for cell in table[table["task"] == task].itertuples():
        shade = colour(cell.model)
        if not np.isnan(cell.printed) and shortest <= cell.printed <= last:
            ring = {"facecolors": "none", "edgecolors": shade, "linewidths": 0.9}
            axes.scatter([cell.printed], [ABOVE], s=26, alpha=0.85, zorder=4, **ring)
        own = data[(data["task"] == task) & (data["model"] == cell.model)]
        lines = own.pivot(index="length", columns="seed", values="accuracy")
        for seed in lines:
            axes.plot(lines.index, lines[seed], color=shade, linewidth=0.45, alpha=0.6, zorder=2)
        if cell.seeds > 2:
            axes.plot(lines.index, lines.median(axis=1), color=shade, linewidth=1.6, zorder=3)
        height = float(lines.iloc[-1].median()) if cell.seeds else 50.0
        ends[cell.model] = height, bool(cell.seeds)
    reach.labels(axes, ends, last, gap=0.04 * (last - shortest))


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
        f"with a median above 95 percent: {'; '.join(parts)}."
    )


# Tables II and III


def printed_table() -> Exhibit:
    """Table II as printed: tasks down and controllers across."""
    artifact = "dnc-table-2"
    data = published.table(artifact)
    cells = data.pivot(index="task", columns="row", values="value")
    cells = cells.loc[data["task"].unique(), data["row"].unique()]
    rows = [
        (title(task), *map(number, row))
        for task, row in zip(cells.index, cells.to_numpy(), strict=True)
    ]
    columns = {"task": "text", **dict.fromkeys(cells.columns, "number")}
    caption = (
        "<b>Table 2 of the paper, as printed.</b> The longest input with a median above 95 %, of "
        "ten trials; 0 for none."
    )
    name = f"{artifact}-printed"
    html = exhibits.table(rows_table(columns, rows), caption, name, [exhibits.csv(name, data)])
    return Exhibit(html, f"{artifact}: {len(data)} printed lengths.", data)


def table_2(runs: Runs) -> Exhibit:
    """The longest input with a median above 95 %, ours beside the printed one."""
    caption = (
        "<b>Table 2 of the paper, side by side.</b> {} The longest input whose median over runs is "
        "above 95 %, 0 for none; below, smaller: what the paper prints. Point at a cell to see "
        "each run's own."
    )

    def cell(row) -> tuple[str, str, str]:
        return number(row.longest), ", ".join(map(str, row.each)), number(row.printed)

    return _side_by_side(runs, "dnc-table-2", caption, cell)


def table_3(runs: Runs) -> Exhibit:
    """Means over lengths 2 to 45: what the runs are like, ours beside the printed ones."""
    caption = (
        "<b>Table 3 of the paper, side by side.</b> {} Each run's mean over lengths 2 to 45, in "
        "percent: the median over runs (in brackets the best), then mean ± standard deviation; "
        "below, smaller: what the paper prints, of ten runs. Point at a cell to see each run's own."
    )

    def shown(median: float, best: float, mean: float, sd: float) -> str:
        spread = "" if np.isnan(sd) else f" ± {short(sd)}"
        return f"{short(median)} ({short(best)}), {short(mean)}{spread}"

    def cell(row) -> tuple[str, str, str]:
        ours = shown(row.median, row.max, row.mean, row.sd)
        theirs = shown(row.printed_median, row.printed_max, row.printed_mean, row.printed_sd)
        return ours, ", ".join(map(short, row.means)), theirs

    return _side_by_side(runs, "dnc-table-3", caption, cell)


def _side_by_side(runs: Runs, artifact: str, caption: str, cell) -> Exhibit:
    """Tasks down and controllers across. cell: row of summaries -> (ours, each run's, printed)."""
    table = summaries(runs)
    name = f"{artifact}-side-by-side"
    caption = caption.format(badges(runs.scale, runs.freshness))
    data = table.assign(**{c: table[c].map(_listed) for c in ("each", "means")})
    if not runs.records:
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    rows = []
    for task, cells in table.groupby("task", sort=False):
        row = [title(task)]
        for one in cells.itertuples():
            ours, each, theirs = cell(one)
            top = f'<b title="{each}">{ours}</b>' if one.seeds else f"<small>{NOT_RUN}</small>"
            row.append(f"{top}<br><small>{theirs}</small>")
        rows.append(row)
    columns = {"task": "text", **dict.fromkeys((model for model, _ in runs.rows), "number")}
    html = exhibits.table(
        rows_table(columns, rows),
        caption,
        name,
        [exhibits.csv(name, data), exhibits.notebook(runs.page)],
    )
    done = int((table["seeds"] > 0).sum())
    return Exhibit(html, f"{artifact}: {done} of {len(table)} cells have runs.", data)


def _listed(values: Sequence[float]) -> str:
    return " ".join(f"{value:.6g}" for value in values)


# In words


def numbers(runs: Runs) -> str:
    """Both tables as plain text, a line per task and controller; in brackets the paper's values."""
    table = summaries(runs)
    head = f"Tables 2 and 3, {runs.scale} scale: of our seeds (paper's value), lengths and percent"
    lines = [head]
    for task, cells in table.groupby("task", sort=False):
        rows = [[title(task), "seeds", "longest", "median 2-45", "mean 2-45"]]
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


def catching_up(runs: Runs) -> str:
    """Say how the stateful baseline ends beside the constrained controllers, trained as long."""
    table = summaries(runs)
    said = []
    for task, cells in table.groupby("task", sort=False):
        means = cells.set_index("model")["median"].dropna()
        rivals = means[means.index.isin(CONSTRAINED)]
        if STATEFUL not in means or rivals.empty:
            continue
        ahead = [model for model, mean in rivals.items() if mean > means[STATEFUL]]
        others = ", ".join(f"{model} {short(mean)}" for model, mean in rivals.items())
        said.append(
            f"{title(task)}: {STATEFUL} {short(means[STATEFUL])} against {others}; "
            f"{len(ahead)} of {len(rivals)} are ahead of it."
        )
    if not said:
        return "Not run yet: a task with the stateful baseline and a constrained controller."
    return "\n".join(["Means over lengths 2 to 45 after equal training, medians of runs:", *said])
