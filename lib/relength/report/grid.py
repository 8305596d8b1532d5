"""Small multiples on one canvas: a column per task, a row per model.

Sixty-four separate axes would take ten times as long to draw.
"""

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from relength.report.runs import Runs
from relength.report.style import LIGHT, NEUTRAL, Layout, canvas, colour, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOT_RUN, FAILED = "not run", "failed"
NOT_COUNTED = "not counted"  # in runs of an older version
LETTER = 0.07  # inches of a letter above a column, about
NAME = 0.076  # inches of a letter of a row's name, which is larger and bold
BAND = 4.2  # points; broader than a dot, so that it shows behind them


def word_for_none(runs: Runs, model: str, arm: str, task: str) -> str:
    """Word a cell without results: all runs that were made of it failed, or none was made."""
    return FAILED if (model, arm, task) in runs.broken else NOT_RUN


def say_not_run(axes: "Axes", **look: Any) -> None:
    """Write into the middle of a panel that it has no runs."""
    usual = {"ha": "center", "va": "center", "size": 7, "style": "italic", "color": LIGHT.muted}
    axes.text(0.5, 0.5, NOT_RUN, transform=axes.transAxes, **usual | look)


class Grid:
    """Panels in inches on one canvas: a column per task, a row per model; y runs from 0 to 1
    upwards.

    On a narrow page the tasks come in blocks of at most four, one below the other.
    """

    def __init__(self, runs: Runs, layout: Layout, key: Sequence[tuple[str, str]]):
        self.runs, self.narrow = runs, layout.narrow
        tasks, rows = len(runs.tasks), len(runs.rows)
        self.across = min(4, tasks) if self.narrow else tasks
        blocks = -(-tasks // self.across)
        names = [runs.label(model, arm).partition(", ")[0] for model, arm in runs.rows]
        # Beside the panels stand the names of the rows, and between the two 0 and 100.
        self.left = 0.3 if self.narrow else max(1.42, NAME * max(map(len, names), default=0) + 0.2)
        pitch = (layout.width - self.left) / self.across
        self.gap, self.width = 0.1, pitch - 0.1
        self.height, self.between = (0.4, 0.29) if self.narrow else (0.47, 0.19)
        self.head, self.foot = (0.5, 0.19) if self.narrow else (0.42, 0.1)
        self.block = self.head + rows * (self.height + self.between) + self.foot
        top = 0.24
        height = top + blocks * self.block
        self.figure = canvas(layout, height)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, layout.width), ylim=(height, 0))
        self.axes.axis("off")
        self.top = top
        self._frame(rows)
        self._key(key)

    def corner(self, row: int, column: int) -> tuple[float, float]:
        """Lower left corner of a panel, in inches from the upper left of the canvas."""
        block, place = divmod(column, self.across)
        x = self.left + place * (self.width + self.gap)
        y = (
            self.top
            + block * self.block
            + self.head
            + row * (self.height + self.between)
            + self.height
        )
        return x, y

    def points(self, row: int, column: int, x, y) -> tuple[np.ndarray, np.ndarray]:
        """Panel coordinates (0 to 1, 0 to 1) as inches on the canvas."""
        x0, y0 = self.corner(row, column)
        return x0 + np.asarray(x) * self.width, y0 - np.asarray(y) * self.height

    def text(self, x: float, y: float, words: str, **options) -> None:
        self.axes.text(x, y, words, **{"color": LIGHT.muted, "size": 7.5, **options})

    def ticks(
        self, column: int, places: Sequence[float], labels: Sequence[str], before: str = "length"
    ) -> None:
        """Labels below the last row of a column, and before the first column what they are."""
        if column % self.across == 0 and not self.narrow:
            x, y = self.points(len(self.runs.rows) - 1, column, 0, 0)
            self.text(float(x) - 0.14, float(y) + 0.09, before, ha="right", va="top", size=6.5)
        for place, label in zip(places, labels, strict=True):
            x, y = self.points(len(self.runs.rows) - 1, column, place, 0)
            self.text(float(x), float(y) + 0.09, label, ha="center", va="top", size=6.5)

    def not_run(self, row: int, column: int, words: str = "") -> None:
        """Say so, in a panel of the grid of runs; one that the grid does not have stays empty.

        words  in place of those of :func:`word_for_none`
        """
        cell = (*self.runs.rows[row], self.runs.tasks[column])
        if not self.runs.plans(*cell):
            return
        words = words or word_for_none(self.runs, *cell)
        x, y = self.points(row, column, 0.5, 0.5)
        # On a ground of its own: a printed number may be drawn in the middle of the panel.
        ground = {"facecolor": LIGHT.surface, "edgecolor": "none", "pad": 0.8}
        look = {"ha": "center", "va": "center", "size": 6.5, "style": "italic", "zorder": 4}
        self.text(float(x), float(y), words, bbox=ground, **look)

    def _frame(self, rows: int) -> None:
        panels, lines = [], []
        for j, task in enumerate(self.runs.tasks):
            for i in range(rows):
                x, y = self.points(i, j, [0, 1, 1, 0], [-0.09, -0.09, 1.09, 1.09])
                panels.append(np.column_stack([x, y]))
                for level in (0, 1):
                    x, y = self.points(i, j, [0, 1], [level, level])
                    lines.append(np.column_stack([x, y]))
            x, y = self.corner(0, j)
            y = y - self.height - (0.3 if self.narrow else 0.12)
            most = int((self.width + self.gap) / LETTER)
            self.text(
                x,
                y,
                "\n".join(wrap(title(task), most, break_long_words=False)),
                va="bottom",
                weight="bold",
                color=LIGHT.ink,
                size=7.2,
                linespacing=1.1,
            )
            if j % self.across:
                continue
            for i, (model, arm) in enumerate(self.runs.rows):
                x, y = self.corner(i, j)
                self._row_label(self.runs.label(model, arm), colour(model), x, y)
        from matplotlib.collections import LineCollection, PolyCollection

        ground = {"facecolors": LIGHT.surface, "linewidths": 0, "clip_on": False}
        self.axes.add_collection(PolyCollection(panels, zorder=-1, **ground))
        self.axes.add_collection(
            LineCollection(lines, colors=LIGHT.rule, linewidths=0.6, zorder=0, clip_on=False)
        )

    def _row_label(self, label: str, shade: str, x: float, y: float) -> None:
        for level, word in ((0, "0"), (1, "100")):
            self.text(x - 0.05, y - level * self.height, word, ha="right", va="center", size=6)
        name, _, reading = label.partition(", ")
        if self.narrow:
            self.text(
                x, y - self.height - 0.06, name, va="bottom", weight="bold", color=shade, size=7
            )
            if reading:
                beside = x + 0.066 * len(name) + 0.06
                self.text(beside, y - self.height - 0.06, reading, va="bottom", size=7)
            return
        middle, place = y - self.height / 2, "bottom" if reading else "center"
        self.text(0.0, middle, name, va=place, weight="bold", color=shade, size=8.2)
        if reading:
            self.text(0.0, middle + 0.03, reading, va="top", size=7)

    def _key(self, entries: Sequence[tuple[str, str]]) -> None:
        """Explain the marks in one line at the top. entries: (mark, meaning)."""
        x, y = (0.06 if self.narrow else self.left), 0.09
        shades = [colour(model) for model, _ in self.runs.rows]
        # A swatch in grey, one model's colour, would look like the marks that belong to none.
        shown = next((shade for shade in shades if shade != NEUTRAL), LIGHT.muted)
        for mark, meaning in entries:
            shade = LIGHT.ink if mark in ("bar", "thin") else shown
            if mark == "dot":
                self.axes.plot([x + 0.06], [y], "o", ms=3.4, mew=0, color=shade, clip_on=False)
            else:
                width, alpha = {"bar": (BAND, 0.3), "thin": (0.8, 1.0)}.get(mark, (1.6, 1.0))
                self.axes.plot(
                    [x, x + 0.14], [y, y], lw=width, alpha=alpha, color=shade, solid_capstyle="butt"
                )
            self.text(x + 0.2, y, meaning, va="center_baseline", size=7)
            x += 0.2 + 0.062 * len(meaning) + 0.16
