"""Attention weights of one decoded sample as heat maps."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from relength.report.grid import NOT_RUN, say_not_run
from relength.report.style import LIGHT, Layout, beside, canvas, colour, title

if TYPE_CHECKING:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

HEAD = 0.62  # inches above a panel: model, task, source tokens

# source, target, prediction: tokens; weights: (steps, source) attention; spans: first and last
# position of the answer, per step; none where they are not known
Sample = dict
Panels = dict[tuple[str, str], Sample | None]  # (task, model): what was recorded
Naming = Callable[[str], str]  # what the head of a panel calls a task


def draw(panels: Panels, layout: Layout, naming: Naming = title) -> "Figure":
    """A row per task, a panel per model; on a narrow page long sources get a row of their own."""
    tasks = list(dict.fromkeys(task for task, _ in panels))
    rows = []
    for task in tasks:
        cells = [cell for cell in panels if cell[0] == task]
        long = any(panels[cell] and len(panels[cell]["source"]) > 30 for cell in cells)
        rows += [[cell] for cell in cells] if long and layout.narrow else [cells]
    heights = [_height([panels[cell] for cell in row], layout) for row in rows]
    total = sum(heights) + HEAD * len(rows) + 0.03
    figure = canvas(layout, total)
    left, top = (0.24 if layout.narrow else 0.42), 0.0
    for row, height in zip(rows, heights, strict=True):
        top += HEAD
        pitch = layout.width / len(row)
        for k, cell in enumerate(row):
            box = np.array([k * pitch + left, total - top - height, pitch - left - 0.04, height])
            axes = figure.add_axes(box / [layout.width, total, layout.width, total])
            _panel(axes, naming(cell[0]), cell, panels[cell])
        top += height
    return figure


def _height(samples: list[Sample | None], layout: Layout) -> float:
    steps = max((len(sample["target"]) for sample in samples if sample), default=10)
    return steps * (0.078 if steps > 30 else 0.092 if layout.narrow else 0.1)


def weights(panels: Panels) -> pd.DataFrame:
    """One row per step and source position with some weight, for download."""
    rows = [
        (
            task,
            model,
            t,
            _at(sample["target"], t),
            _at(sample["prediction"], t),
            i,
            sample["source"][i],
            w,
        )
        for (task, model), sample in panels.items()
        if sample
        for t, row in enumerate(sample["weights"])
        for i, w in enumerate(row)
        if w > 0
    ]
    columns = ("task", "model", "step", "target", "prediction", "position", "source", "weight")
    return pd.DataFrame(rows, columns=columns)


def _panel(axes, name: str, cell: tuple[str, str], sample: Sample | None) -> None:
    model = cell[1]
    axes.set_facecolor(LIGHT.surface)
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color=LIGHT.rule, linewidth=0.6)
    head = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}
    axes.annotate(model, (0, 1), (0, 21), color=colour(model), weight="bold", size=8.2, **head)
    if sample is None:
        axes.annotate(name, (0, 1), (0, 12), color=LIGHT.muted, size=7, **head)
        say_not_run(axes)
        return
    from matplotlib.collections import LineCollection

    source, target = sample["source"], sample["target"]
    written = _until_end(sample["prediction"])
    shown = np.array(sample["weights"])[: len(target)]
    shown[len(written) :] = 0  # what it looks at after its own end of sequence means nothing
    axes.imshow(shown, cmap=_from_nothing(colour(model)), vmin=0, vmax=1, aspect="auto",
                interpolation="none")  # fmt: skip
    right = sum(a == b for a, b in zip(written, target, strict=False))
    words = f"{name}: {right} of {len(target)} right"
    axes.annotate(words, (0, 1), (0, 12), color=LIGHT.muted, size=6.3, **head)
    spans = sample["spans"]
    boxes = [_box(first, last, rows) for (first, last), rows in _consecutive(spans)]
    axes.add_collection(LineCollection(boxes, colors=LIGHT.muted, linewidths=0.5))
    places = {span: sum(span) / 2 for span in [(0, 0), *spans]}
    for (first, _), place in places.items():
        axes.text(
            place,
            -0.7,
            _letter(source[first]),
            ha="center",
            va="bottom",
            size=5.4,
            color=LIGHT.muted,
        )
    for t, token in enumerate(target):
        given = written[t] if t < len(written) else "·"
        wrong = given != token
        look = (
            {"size": 6, "weight": "bold", "color": LIGHT.warning}
            if wrong
            else {"size": 5.4, "color": LIGHT.muted}
        )
        beside(axes, _letter(given), (0, t), -3, va="center_baseline", **look)


def _consecutive(spans: list[tuple[int, int]]) -> list[tuple[tuple[int, int], list[int]]]:
    groups: list[tuple[tuple[int, int], list[int]]] = []
    for t, span in enumerate(spans):
        if groups and groups[-1][0] == span:
            groups[-1][1].append(t)
        else:
            groups.append((span, [t]))
    return groups


def _box(first: int, last: int, rows: list[int]) -> np.ndarray:
    x0, x1, y0, y1 = first - 0.5, last + 0.5, rows[0] - 0.5, rows[-1] + 0.5
    return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)])


def _from_nothing(shade: str) -> "LinearSegmentedColormap":
    """Colour map from transparent to a model's colour."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    return LinearSegmentedColormap.from_list("weight", [to_rgba(shade, 0.0), to_rgba(shade, 1.0)])


def _until_end(tokens: Sequence[str]) -> list[str]:
    tokens = list(tokens)
    return tokens[: tokens.index("EOS") + 1] if "EOS" in tokens else tokens


def _letter(token: str) -> str:
    return {"START": "S", "END": "E", "EOS": "E"}.get(token, token)


def _at(tokens: Sequence[str], t: int) -> str:
    return tokens[t] if t < len(tokens) else ""


def in_words(task: str, model: str, sample: Sample | None, naming: Naming = title) -> str:
    """Describe a panel for readers who do not see it."""
    name = f"{model} on {naming(task)}"
    if sample is None:
        return f"{name}: {NOT_RUN}"
    if not (spans := sample["spans"]):
        return name
    on = sum(
        first <= int(np.argmax(weights)) <= last
        for (first, last), weights in zip(spans, sample["weights"], strict=False)
    )
    return f"{name}: looks at the answer in {on} of {len(spans)} steps"
