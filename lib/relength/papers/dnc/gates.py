"""Histograms of a memory's gates, which say how it is written and read: Figures 6 to 9.

Values are those of length 15, the longest that is trained on, and of all samples of its test.
"""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pandas as pd

from relength.papers.dnc import states
from relength.papers.dnc.by_length import TRAINED
from relength.papers.dnc.experiments import GATES
from relength.papers.dnc.portraits import BEST, EMPTY, WORST, chosen, numbers, stacked
from relength.papers.dnc.states import mean_accuracy
from relength.report import figures, reach
from relength.report.exhibits import Exhibit
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import LIGHT, Layout, aligned, canvas, colour, title
from relength.runs.store import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Gate = Literal["write", "read"]


class Shown(NamedTuple):
    """The words of a gate's histogram: its name, and what its ends mean."""

    name: str
    low: str
    high: str


SHOWN: dict[Gate, Shown] = {
    "write": Shown("allocation gate", "by content", "by allocation"),
    "read": Shown("content part of the read modes", "along the links", "by content"),
}
PRINTED: dict[tuple[str, Gate], int] = {
    ("dnc_sort", "write"): 6,
    ("dnc_sort", "read"): 7,
    ("dnc_copy", "write"): 8,
    ("dnc_copy", "read"): 9,
}
ARTIFACTS = tuple(GATES)


def histograms(runs: Runs, task: str, gate: Gate, number: int) -> Exhibit:
    """A gate's values while reading, upwards, and while writing, downwards: best and worst runs."""
    runs = reach.judged_runs(runs.with_later_seeds(), [task])
    shown = {row: chosen(runs.cell(*row, task)) for row in runs.rows}
    across = max((len(records) for records in shown.values()), default=0) or 1

    def draw(layout: Layout) -> "Figure":
        left = 0.1 if layout.narrow else 1.6
        columns = min(across, 3) if layout.narrow else max(across, 4)
        pitch = (layout.width - left) / columns
        side, line, head = 0.36, 0.3, 0.3 if layout.narrow else 0.08
        blocks = -(-across // columns)
        down = blocks * (2 * side + line) + head
        top = 0.4
        heights = [down if shown[row] else EMPTY for row in runs.rows]
        tops, height = stacked(top, heights)
        figure = canvas(layout, height)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, layout.width), ylim=(height, 0))
        axes.axis("off")
        words = {"size": 7, "color": LIGHT.muted}
        axes.text(left, 0.12, "above: reading; below: writing", **words)
        low, high = SHOWN[gate].low, SHOWN[gate].high
        axes.text(left, 0.27, f"left: {low}; right: {high}", **words)
        for row, y in zip(runs.rows, tops, strict=True):
            place = (left, y + 0.16) if layout.narrow else (left - 0.15, y + 0.3)
            align = {"ha": "left" if layout.narrow else "right", "color": colour(row[0])}
            axes.text(*place, row[0], size=8, weight="bold", **align)
            if not shown[row]:
                axes.text(left + 0.1, y + 0.3, NOT_RUN, **words)
            for k, record in enumerate(shown[row]):
                block, column = divmod(k, columns)
                corner = left + column * pitch, y + head + block * (2 * side + line)
                _histogram(axes, record, gate, row[0], (*corner, pitch * 0.88, side))
        return figure

    def said(records: list[Record]) -> str:
        names = [f"{gate}_gate_{phase}" for phase in states.PHASES.values()]
        return ", ".join(
            f"{mean_accuracy(record):.0f} percent, "
            + " and ".join(f"{_numbers(record)[name]:.0f}" for name in names)
            for record in records
        )

    words = "; ".join(f"{row[0]}: {said(records)}" for row, records in shown.items() if records)
    caption = (
        f"How the memory is {'written' if gate == 'write' else 'read'}: {title(task)}, histograms "
        f"of the {SHOWN[gate].name} (the paper's Figure {PRINTED[task, gate]}). A panel is a run, "
        f"from the best to the worst of its row (at most {BEST} and {WORST}). Bars up: while it "
        "reads its input. Bars down: while it writes its answer. Below: the run's mean accuracy "
        f"over lengths {TRAINED.span}. The highest bar of a histogram has the full height."
    )
    alt = (
        f"Histograms of the {SHOWN[gate].name} in {title(task)}, a row per controller. Mean "
        f"accuracy of each run shown, and the gate's mean while reading and while writing, in "
        f"percent: {words or NOT_RUN}."
    )
    data = bins(runs, task, gate)
    return figures.exhibit(runs, number, draw, f"{task}-{gate}", caption, alt, data)


def _numbers(record: Record) -> dict[str, float]:
    return states.gates(record["memory"]["modes"])


def _histogram(
    axes: "Axes", record: Record, gate: Gate, model: str, box: tuple[float, float, float, float]
) -> None:
    """Both histograms of a run in a box: its upper left corner, its width, half of its height."""
    x, y, width, side = box
    for phase, sign in (("encoding", -1), ("decoding", 1)):
        counts = np.array(record["memory"]["modes"][gate][phase], dtype=float)
        heights = counts / counts.max() * side * 0.92
        edges = np.linspace(x, x + width, len(counts) + 1)
        look = {"color": colour(model), "alpha": 0.9 if sign < 0 else 0.5, "linewidth": 0}
        axes.stairs(y + side + sign * heights, edges, baseline=y + side, fill=True, **look)
    axes.plot([x, x + width], [y + side] * 2, color=LIGHT.muted, linewidth=0.6)
    words = {"size": 7, "color": LIGHT.ink, "ha": "center", "va": "top"}
    axes.text(x + width / 2, y + 2 * side + 0.03, f"{mean_accuracy(record):.0f} %", **words)


def bins(runs: Runs, task: str, gate: Gate) -> pd.DataFrame:
    """Counts of every bin of every run. Columns: model, seed, accuracy, phase, from, to, count."""
    rows = []
    for model, arm in runs.rows:
        for record in runs.cell(model, arm, task):
            for phase, name in states.PHASES.items():
                counts = record["memory"]["modes"][gate][phase]
                who = model, record["spec"]["seed"], mean_accuracy(record), name
                each = enumerate(counts)
                rows += [(*who, k / len(counts), (k + 1) / len(counts), n) for k, n in each]
    columns = ["model", "seed", "accuracy", "phase", "from", "to", "count"]
    return pd.DataFrame(rows, columns=columns)


def table(runs: Runs, tasks: tuple[str, ...] = ("dnc_sort", "dnc_copy")) -> str:
    """Medians of the gates' numbers as plain text, a line per task and controller."""
    names = {
        **{"write_gate_reading": "write, reading", "write_gate_writing": "write, writing"},
        **{"read_gate_reading": "read, reading", "read_gate_writing": "read, writing"},
        "gates_peaked": "peaked",
    }
    data = numbers(runs)
    lines = [f"Gates at length 15, {runs.scale} scale: medians of our runs, percent"]
    for task in (task for task in tasks if task in runs.tasks):
        cells = [[title(task), "runs", *names.values()]]
        for model, _ in runs.rows:
            own = data[(data["task"] == task) & (data["model"] == model)]
            medians = [f"{own[name].median():.0f}" if len(own) else "–" for name in names]
            cells.append([f"  {model}", str(len(own)), *medians])
        lines += ["", *aligned(*cells)]
    return "\n".join(lines)
