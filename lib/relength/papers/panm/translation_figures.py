"""Figures of translation: the lowest perplexity by layers, and perplexity over epochs."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from relength.papers.panm.courses import courses, epochs_below, head_of, lines, name_lines
from relength.papers.panm.translation_experiments import LAYERS, SPLITS
from relength.report.exhibits import Exhibit
from relength.report.figures import exhibit, of_means
from relength.report.grid import NOT_RUN, say_not_run
from relength.report.runs import Runs
from relength.report.seeds import swarm
from relength.report.style import LIGHT, Layout, canvas, colour, grid_of_panels, over_percent, title

# Of a logarithmic axis, and their tens: the first ones that are few enough.
MARKS = ((1, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 2, 5), (1,))
MOST_MARKS = 7

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def perplexities(runs: Runs) -> pd.DataFrame:
    """One row per point of the learning curves, with perplexities in place of losses.

    Columns of :func:`relength.papers.panm.courses.courses`, and test, the perplexity on sentences
    of other lengths, and trained, that of training.
    """
    data = courses(runs)
    return data.assign(
        test=np.exp(data["test_loss"].astype(float)),
        trained=np.exp(data["train_loss"].astype(float)),
    )


def tested(runs: Runs) -> pd.DataFrame:
    """One row per run, with the perplexity of its tested weights on sentences of other lengths.

    They are those of the epoch with the lowest loss, and tables show it. Columns: model, arm, task,
    seed, lowest.
    """
    rows = runs.selected[runs.selected["test"] == "length"]
    names = ["model", "arm", "task", "seed", "lowest"]
    return rows.rename(columns={"perplexity": "lowest"})[names].reset_index(drop=True)


def _apart(runs: Runs) -> str:
    """Say how far the perplexity of tested weights is from the lowest of their curve, if known."""
    own = ["model", "arm", "task", "seed"]
    curves = np.exp(courses(runs).groupby(own)["best"].min().astype(float))
    more = 100 * (tested(runs).set_index(own)["lowest"] / curves - 1)
    ends = dict.fromkeys(f"{end:+.0f}" for end in (more.min(), more.max()))
    return "" if more.empty else f", which changes it by {' to '.join(ends)} %"


def by_layers(runs: Runs, number: int) -> Exhibit:
    """Figure 3b, left: the lowest perplexity on longer sentences, by layers, a panel per split."""
    part = runs.part("panm-fig-3b-left")
    lowest = tested(part)
    depth = lowest["model"].str.extract(r"(\d) layer")[0].fillna("3").astype(int)
    lowest = lowest.assign(layers=depth, family=lowest["model"].str.split(",").str[0])

    def draw(layout: Layout) -> "Figure":
        around = {"head": 0.35, "foot": 0.35, "left": 0.45, "right": 0.15}
        figure, panels, _ = grid_of_panels(layout, len(SPLITS), len(SPLITS), tall=1.4, **around)
        for axes, task in zip(panels, SPLITS, strict=True):
            over_percent(axes)
            axes.set_title(title(task), loc="left", size=7.5, color=LIGHT.ink)
            axes.set_xlim(0.5, 3.5)
            axes.set_xticks(sorted(LAYERS), [f"{n} layer{'s' * (n > 1)}" for n in sorted(LAYERS)])
            own = lowest[lowest["task"] == task]
            _heights(axes, own["lowest"])
            for k, (model, seeds) in enumerate(own.groupby("family", sort=False)):
                shift = 0.12 * (2 * k - 1)
                judged, shade = seeds["arm"] != "repaired", colour(model)
                swarm(
                    axes, seeds["lowest"], seeds["layers"] + shift,
                    np.where(judged, shade, "none"), size=3.5, orient="v", bar=None,
                    edgecolor=shade, linewidth=0.7,
                )  # fmt: skip
                medians = seeds[judged].groupby("layers")["lowest"].median()
                axes.plot(medians.index + shift, medians, lw=1, color=shade)
        return figure

    caption = (
        "The lowest perplexity on the longer sentences, that of the epoch with the lowest loss on "
        "them, by the number of layers of encoder and decoder: purple PANM, brown the Transformer. "
        "Dots are seeds, the line joins medians; rings are PANM repaired. Lower is better. The two "
        f"splits have other vocabularies, so their heights are not to be compared.{of_means(part)}"
    )
    said = [
        f"{title(task)}, {part.label(model, arm)}: {seeds['lowest'].median():.1f}"
        for (task, model, arm), seeds in lowest.groupby(["task", "model", "arm"], sort=False)
    ]
    alt = f"Lowest perplexities. Medians: {'; '.join(said) or NOT_RUN}."
    return exhibit(part, number, draw, "by-layers", caption, alt, lowest)


def over_epochs(runs: Runs, number: int, artifact: str, tested: str) -> Exhibit:
    """Figures 3b and 7, right: perplexity over epochs, on a logarithmic axis.

    tested  what the test's sentences are: *longer*, which the figure is named after, too
    """
    part = runs.part(artifact)
    data = perplexities(part)

    def draw(layout: Layout) -> "Figure":
        head = head_of(part, layout)
        height = 2.1 + head
        figure = canvas(layout, height)
        name_lines(figure, part, layout, height)
        box = np.array((0.5, 0.35, layout.width - 0.65, height - head - 0.45))
        axes = figure.add_axes(box / ([layout.width, height] * 2))
        over_percent(axes)
        _heights(axes, pd.concat([data["test"], data["trained"]]))
        if data.empty:
            epochs_below(axes, 2)
        else:
            lines(axes, data, part, ["test", "trained"])
        return figure

    caption = (
        f"Perplexity over epochs, a line per seed, on a logarithmic axis. Strong: the {tested} "
        "sentences, from a loss that is averaged over batches; tables average it over tokens"
        f"{_apart(part)}. Thin: training, which dropout raises. Lower is better."
    )
    ends = data[data["epoch"] == data.groupby(["model", "arm", "seed"])["epoch"].transform("max")]
    said = [
        f"{part.label(model, arm)}: {np.exp(seeds['best'].median()):.1f} at the lowest, "
        f"{seeds['test'].median():.1f} at the end"
        for (model, arm), seeds in ends.groupby(["model", "arm"], sort=False)
    ]
    alt = f"Perplexity over epochs. Medians: {'; '.join(said) or NOT_RUN}."
    return exhibit(part, number, draw, f"{tested}-sentences", caption, alt, data)


def _heights(axes: "Axes", values: pd.Series) -> None:
    """A logarithmic axis around values, marked at round numbers; a word where there are none."""
    if values.empty:
        say_not_run(axes)
        axes.set_yticks([])
        return
    low, high = 0.9 * float(values.min()), 1.1 * float(values.max())
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    every = [
        [m * 10**k for k in range(300) for m in digits if low <= m * 10.0**k <= high]
        for digits in MARKS
    ]
    marks = next((found for found in every if len(found) <= MOST_MARKS), [])
    if len(marks) < 2:  # a narrow range
        marks = [round(low + share * (high - low)) for share in (0.1, 0.5, 0.9)]
    axes.set_yticks(marks, [f"{mark:g}" for mark in marks])
    axes.minorticks_off()
