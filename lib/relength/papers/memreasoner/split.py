"""Reading or writing: an answer needs the right line, and a decoder that names the place in it.

Each question of a recorded run falls into one of four parts, by whether its facts were read and
whether its answer is right, or into a fifth: its memory diverged, so that nothing was read and
nothing answered. A model that does not tell what it reads has no such split.
"""

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from relength.report.exhibits import Exhibit
from relength.report.figures import exhibit
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import LIGHT, Layout, aligned, colour, frameless, grid_of_panels, title
from relength.report.wording import capital, words
from relength.specs.spec import RunSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Tests that are no context of some length, by the beginning of their names.
OTHER_TESTS = {
    "babi": "babi is bAbI's own test",
    "moved": "moved the same with places that training never names",
    "one-fact": "one-fact are questions of task 1",
}
LONGEST = 5  # letters of a test's name that stand below its bar; longer ones are turned


class Part(NamedTuple):
    """A part of the questions: what is said of it, and how it is drawn."""

    words: str
    colour: str | None  # None: the model's
    alpha: float


PARTS = {
    "both": Part("read and answered", None, 1.0),
    "answer": Part("answered from another line", None, 0.4),
    "read": Part("read, but answered wrongly", LIGHT.second, 0.85),
    "neither": Part("another line read, wrong", LIGHT.rule, 1.0),
    "diverged": Part("memory diverged, no answer", LIGHT.ink, 1.0),
}


def shares(runs: Runs) -> pd.DataFrame:
    """Tabulate the parts of the questions, by test and by run that tells what it reads.

    Columns: model, arm, task, seed, test, and the :data:`PARTS` in percent, which sum to 100.
    """
    rows = []
    for model, arm in runs.rows:
        for task in runs.tasks:
            for record in runs.cell(model, arm, task):
                who = model, arm, task, RunSpec.recorded(record["spec"]).seed
                tests = record["checkpoints"]["selected"]["tests"]
                for test in runs.tests[task]:
                    if (found := tests.get(test)) and found.get("facts_found") is not None:
                        rows.append((*who, test, *_parts(found)))
    columns = ["model", "arm", "task", "seed", "test", *PARTS]
    kinds = {"seed": int, **dict.fromkeys(PARTS, float)}
    return pd.DataFrame(rows, columns=columns).astype(kinds)


def _parts(found: dict[str, float]) -> tuple[float, ...]:
    """Percent of the questions in each of :data:`PARTS`, in that order."""
    both, right, read = (found[n] for n in ("answer_and_facts", "answer_accuracy", "facts_found"))
    diverged = found.get("diverged") or 0.0
    neither = 1 - right - read + both - diverged
    return tuple(100 * part for part in (both, right - both, read - both, neither, diverged))


def shown(middle: pd.DataFrame) -> dict[str, Part]:
    """The parts that a page shows: the fifth one only where a memory diverged."""
    return {name: part for name, part in PARTS.items() if name != "diverged" or middle[name].any()}


def means(runs: Runs) -> pd.DataFrame:
    """Means of the parts over seeds, by (model, arm, task, test), in the order of the page."""
    data = shares(runs)
    return data.groupby(["model", "arm", "task", "test"], sort=False)[list(PARTS)].mean()


def figure(runs: Runs, number: int) -> Exhibit:
    """Stacked shares against the length of the context, a panel per reading of the model."""
    middle = means(runs)
    caption = (
        "Reading or writing? Percent of questions by whether the wanted line was read and the "
        "answer is right: means over seeds, against the length of the context in thousand tokens. "
        "An answer from another line may be right since that line names the same place, or by "
        "chance."
    )
    others = [OTHER_TESTS[start] for start in OTHER_TESTS if _asks(middle, start)]
    if others:
        caption += f" {capital(words(others))}."
    if "diverged" in shown(middle):
        caption += (
            " Where a memory diverged, as Larimar's iteration of the pseudo-inverse can, nothing "
            "was read and nothing answered."
        )
    told = "; ".join(
        f"{label(runs, *cell)}: "
        + ", ".join(f"{test} {row['both']:.0f}/{row['read']:.0f}" for test, row in part.iterrows())
        for cell, part in cells(middle)
    )
    alt = (
        "Shares of questions by whether the line was read and the answer is right. Percent read "
        f"and answered, then read but wrongly answered: {told or NOT_RUN}."
    )
    draw = partial(stacked, runs, middle, shown(middle))
    return exhibit(runs, number, draw, "split", caption, alt, shares(runs))


def _asks(middle: pd.DataFrame, start: str) -> bool:
    """Tell whether a test of such a name is among those shown."""
    return middle.index.get_level_values("test").str.startswith(start).any()


def label(runs: Runs, model: str, arm: str, task: str) -> str:
    """Return the name of a cell: its row, and its task where there are several."""
    beside = f", {title(task)}" if len(runs.tasks) > 1 else ""
    return runs.label(model, arm, task) + beside


def cells(middle: pd.DataFrame) -> "Iterator[tuple[tuple[str, str, str], pd.DataFrame]]":
    """((model, arm, task), its rows by test) of means by (model, arm, task, test), in order."""
    for cell in dict.fromkeys((model, arm, task) for model, arm, task, _ in middle.index):
        yield cell, middle.loc[cell]


def stacked(runs: Runs, middle: pd.DataFrame, parts: dict[str, Part], layout: Layout) -> "Figure":
    """Shares by (model, arm, task, test) that sum to 100, a panel per model, arm and task."""
    panels = list(cells(middle))
    beside = 1 if layout.narrow else min(len(parts), 4)  # squares of the key in a line
    lines = -(-len(parts) // beside)
    upright = any(len(test) > LONGEST for *_, test in middle.index)
    foot = 0.7 if upright else 0.28
    drawing, places, height = in_a_grid(layout, len(panels), lines, foot=foot)
    for axes, (cell, part) in zip(places, panels, strict=True):
        # The task stands below the row: side by side they are wider than a panel.
        below = f"\n{title(cell[2])}" if len(runs.tasks) > 1 else ""
        _panel(axes, runs.label(*cell) + below, cell[0], part, parts)
        axes.tick_params(axis="x", labelrotation=90 if upright else 0)
    _key(drawing, layout, height, panels[0][0][0], parts, beside)
    return drawing


def in_a_grid(
    layout: Layout, count: int, lines: int, across: int = 3, foot: float = 0.28
) -> "tuple[Figure, list[Axes], float]":
    """Make a figure with a grid of panels, see :func:`relength.report.style.grid_of_panels`.

    lines   lines of the key above all panels
    across  panels in a row; on a phone there is one
    foot    inches below each panel
    """
    across = 1 if layout.narrow else min(count, across)
    around = {"head": 0.48, "foot": foot, "left": 0.42, "right": 0.2, "top": 0.1 + 0.18 * lines}
    return grid_of_panels(layout, count, across, tall=1.35, **around)


def framed(axes: "Axes", words: str) -> None:
    """Give a panel its title and small labels, and no frame."""
    axes.tick_params(length=0, labelsize=7, labelcolor=LIGHT.muted)
    frameless(axes)
    axes.set_title(words, loc="left", size=8.6, weight="bold", color=LIGHT.ink, pad=5)


def places_of_key(layout: Layout, height: float, entries: int) -> "Iterator[tuple[float, float]]":
    """Yield the places of a key's entries above all panels: x in inches, y a share of the height.

    They stand side by side, on a phone one below the other.
    """
    beside = 1 if layout.narrow else entries
    for k in range(entries):
        below, column = divmod(k, beside)
        yield (
            0.42 + column * (layout.width - 0.42) / beside,
            (height - 0.12 - 0.18 * below) / height,
        )


def _panel(
    axes: "Axes", words: str, model: str, middle: pd.DataFrame, parts: dict[str, Part]
) -> None:
    x, below = np.arange(len(middle)), np.zeros(len(middle))
    axes.patch.set_visible(False)
    axes.set(xlim=(-0.6, len(middle) - 0.4), ylim=(0, 100))
    for name, part in parts.items():
        shade = part.colour or colour(model)
        axes.bar(x, middle[name], 0.82, below, color=shade, alpha=part.alpha, linewidth=0)
        below += middle[name].to_numpy()
    axes.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    axes.set_xticks(x, [test.removesuffix("k") for test in middle.index])
    framed(axes, words)


def _key(
    drawing: "Figure",
    layout: Layout,
    height: float,
    model: str,
    parts: dict[str, Part],
    beside: int,
) -> None:
    """Squares with words above all panels, so many side by side."""
    from matplotlib.patches import Rectangle

    for k, part in enumerate(parts.values()):
        line, column = divmod(k, beside)
        x = 0.42 + column * (layout.width - 0.42) / beside
        y = height - 0.17 - 0.18 * line
        place = x / layout.width, y / height
        shade = {"facecolor": part.colour or colour(model), "alpha": part.alpha, "linewidth": 0}
        square = Rectangle(place, 0.11 / layout.width, 0.11 / height, **shade)
        drawing.add_artist(square)
        drawing.text(
            place[0] + 0.16 / layout.width, place[1], part.words, color=LIGHT.muted, size=7.5
        )


def numbers(runs: Runs) -> str:
    """The means as plain text, a block per reading and a line per part of the questions."""
    middle = means(runs)
    if middle.empty:
        return "Not run yet: a model that tells what it reads."
    lines = []
    for cell, part in cells(middle):
        rows = [[label(runs, *cell), *part.index]]
        rows += [
            [f"  {said.words}", *(f"{value:.0f}" for value in part[name])]
            for name, said in shown(part).items()
        ]
        lines += ["", *aligned(*rows)]
    head = f"Questions by what was read and what was answered, {runs.scale} scale: means, percent"
    return "\n".join([head, *lines])
