"""Figures of what a run's test does while it trains: accuracy, and loss, over epochs."""

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import pandas as pd

from relength.report.exhibits import Exhibit
from relength.report.figures import exhibit
from relength.report.grid import NOT_RUN, say_not_run
from relength.report.runs import Runs
from relength.report.seeds import seed_lines
from relength.report.style import LIGHT, Layout, colour, grid_of_panels, over_percent, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What panels show: a strong line, and a thin one.
MEASURES = {"accuracy": ("accuracy", "held_out"), "loss": ("test_loss", "train_loss")}


def courses(runs: Runs) -> pd.DataFrame:
    """One row per point of a learning curve.

    Columns: model, arm, task, seed, epoch (from 1); in percent, accuracy on the test of other
    lengths and held_out; test_loss, train_loss (with dropout); best, the lowest test_loss so far.
    """
    rows = []
    for model, arm in runs.rows:
        for task in runs.tasks:
            for record in runs.cell(model, arm, task):
                best = math.inf
                for point in record["curve"]:
                    best = min(best, point["dev_loss"])
                    rows.append(
                        (model, arm, task, record["spec"]["seed"], point["epoch"] + 1,
                         100 * point["dev_accuracy"], 100 * point["iid_accuracy"],
                         point["dev_loss"], point["train_loss"], best)
                    )  # fmt: skip
    names = ["model", "arm", "task", "seed", "epoch", "accuracy", "held_out"]
    return pd.DataFrame(rows, columns=[*names, "test_loss", "train_loss", "best"])


def accuracy_and_loss(runs: Runs, number: int, artifact: str, beyond: str) -> Exhibit:
    """Both over epochs: a row of panels per task, a column per measure.

    beyond  what the test has that training has not: *longer stories*
    """
    part = runs.part(artifact)
    data = courses(part)

    def draw(layout: Layout) -> "Figure":
        around = {"head": 0.36, "foot": 0.3, "left": 0.45, "right": 0.15}
        around["top"] = head_of(part, layout)
        shown = list(product(part.tasks, MEASURES.items()))
        figure, panels, height = grid_of_panels(layout, len(shown), 2, tall=1.04, **around)
        name_lines(figure, part, layout, height)
        for axes, (task, (measure, columns)) in zip(panels, shown, strict=True):
            own = data[data["task"] == task]
            over_percent(axes)
            axes.set_title(f"{title(task)}: {measure}", loc="left", size=7.5, color=LIGHT.ink)
            lines(axes, own, part, columns)
            if measure == "loss":
                most = math.ceil(max(1.0, own["test_loss"].max() if len(own) else 1.0))
                axes.set_ylim(0, most)
                axes.set_yticks(range(most + 1), [str(n) for n in range(most + 1)])
        return figure

    caption = (
        f"Learning curves, a line per seed. Strong: {beyond}. Thin: on the left what was held out "
        "of the lengths trained on, on the right the training loss, which dropout raises. Loss is "
        "the cross-entropy of a right answer. Nothing is selected on these curves."
    )
    alt = f"Accuracy and loss over epochs. Medians at the end: {ends(part, data)}."
    return exhibit(part, number, draw, "over-epochs", caption, alt, data)


def ends(runs: Runs, data: pd.DataFrame) -> str:
    """Say where the curves of each cell end."""
    last = data[data["epoch"] == data.groupby(["model", "arm", "task", "seed"])["epoch"]
                .transform("max")]  # fmt: skip
    said = [
        f"{title(task)}, {runs.label(model, arm)}: accuracy {cell['accuracy'].median():.0f} %, "
        f"loss {cell['test_loss'].median():.2f}, the lowest {cell['best'].median():.2f}"
        for (task, model, arm), cell in last.groupby(["task", "model", "arm"], sort=False)
    ]
    return "; ".join(said) or NOT_RUN


def dashes(runs: Runs, model: str, arm: str) -> str:
    """Lines of readings that no claim judges are dashed."""
    return "-" if runs.experiment.judges(model, arm) else "--"


def head_of(runs: Runs, layout: Layout) -> float:
    """Height in inches of the names at the top: on a narrow page one below the other."""
    return 0.1 + 0.15 * (len(runs.rows) if layout.narrow else 1)


def name_lines(figure: "Figure", runs: Runs, layout: Layout, height: float) -> None:
    """Write the rows at the top, each in the colour of its lines."""
    for k, (model, arm) in enumerate(runs.rows):
        across, down = (0, k) if layout.narrow else (k / len(runs.rows), 0)
        dashed = " (dashed)" if dashes(runs, model, arm) == "--" else ""
        figure.text(
            0.02 + 0.97 * across, 1 - (0.12 + 0.15 * down) / height,
            runs.label(model, arm) + dashed, size=7.5, weight="bold", color=colour(model),
            va="center",
        )  # fmt: skip


def epochs_below(axes: "Axes", last: int) -> None:
    """Mark the first and the last epoch, the latter inside the panel's width."""
    axes.set_xlim(1, max(last, 2))
    axes.set_xticks([1, last], ["1", f"epoch {last}"])
    axes.get_xticklabels()[-1].set_ha("right")


def lines(axes: "Axes", own: pd.DataFrame, runs: Runs, columns: Sequence[str]) -> None:
    """Draw a strong line of the first column and a thin one of the second per run."""
    if own.empty:
        say_not_run(axes)
        axes.set_xticks([])
        return
    strong, *thin = columns
    for (model, arm), seeds in own.groupby(["model", "arm"], sort=False):
        shade, dashed = colour(model), dashes(runs, model, arm)
        for column in thin:
            seed_lines(axes, seeds, "epoch", column, shade, width=0.5, alpha=0.6, linestyle=dashed)
        seed_lines(axes, seeds, "epoch", strong, shade, width=1.2, linestyle=dashed)
    epochs_below(axes, int(own["epoch"].max()))
