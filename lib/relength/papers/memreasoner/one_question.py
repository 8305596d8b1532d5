"""Draw how far every line of one question's context is from what each hop reads.

Records of MemReasoner keep these distances for the first question at two lengths
(:mod:`relength.training.traces_of_reads`). No figure of the paper shows them.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from relength.papers.memreasoner.hops_read import again, traced
from relength.papers.memreasoner.split import framed, in_a_grid, places_of_key
from relength.report import exhibits
from relength.report.exhibits import Exhibit
from relength.report.figures import exhibit
from relength.report.runs import Runs
from relength.report.style import LIGHT, Layout, colour
from relength.training.traces import decoded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Dot(NamedTuple):
    """The look of a line of a kind; colour: None for the model's."""

    words: str
    colour: str | None
    size: float
    filled: bool = True


KINDS = {
    "text": Dot("a line of the novel", LIGHT.muted, 5),
    "fact": Dot("a fact about another", LIGHT.second, 13),
    "same": Dot("another line about the same", None, 16, filled=False),
    "wanted": Dot("the wanted line", None, 34),
}


def distances(kept: Any) -> np.ndarray:
    """Distances (H, E) as a record keeps them: hop by hop; of the first records all at once."""
    if isinstance(kept, dict):
        return decoded(kept)
    return np.stack([hop["nearest"] + decoded(hop) for hop in kept])


def lines(runs: Runs) -> pd.DataFrame:
    """A row per line of the question, of the first run that has traces.

    Columns: model, arm, task, seed, test, question, hop (from 1), line (from 1), kind (KINDS), text
    (of a fact), distance.
    """
    rows = []
    for who, traces in traced(runs):
        rows = [
            (*who, trace["test"], *line)
            for trace in traces
            if (whole := trace.get("whole"))
            for line in _lines(whole)
        ]
        if rows:
            break
    names = ["model", "arm", "task", "seed", "test", "question", "hop", "line", "kind", "text"]
    return pd.DataFrame(rows, columns=[*names, "distance"])


def _lines(whole: dict[str, Any]) -> list[tuple[Any, ...]]:
    facts = {row: (text, kinds) for row, text, kinds in whole["facts"]}
    found = []
    for hop, apart in enumerate(distances(whole["distances"])):
        for row, distance in enumerate(apart.tolist()):
            text, kinds = facts.get(row, ("", None))
            kind = kinds[hop] if kinds else "text"
            found.append((whole["question"], hop + 1, row + 1, kind, text, distance))
    return found


def figure(runs: Runs, number: int) -> Exhibit:
    """Every line of a question at its distance, a panel per length and hop."""
    data = lines(runs)
    question = "" if data.empty else f" ({data['question'].iloc[0]!r}, seed {data['seed'].iloc[0]})"
    caption = (
        f"Which lines are near? The first question of the test{question}, with its facts among "
        "lines of a novel: the distance of every line to what a hop reads from the memory, in the "
        "order of the lines. The lowest one, with a stroke to it, is read. Each panel has a scale "
        "of its own."
    )
    if data.empty:
        return exhibits.waiting(caption, f"{runs.page}-lines", again(runs), data)
    panels = list(data.groupby(["test", "hop"], sort=False))
    hops = data["hop"].nunique()

    def draw(layout: Layout) -> "Figure":
        drawing, places, height = in_a_grid(
            layout, len(panels), len(KINDS) if layout.narrow else 1, across=hops
        )
        for axes, ((test, hop), part) in zip(places, panels, strict=True):
            _panel(axes, f"{test}, hop {hop}" if hops > 1 else str(test), part)
        _key(drawing, layout, height, data["model"].iloc[0])
        return drawing

    told = "; ".join(f"{test}, hop {hop}: {_told(part)}" for (test, hop), part in panels)
    alt = f"Distance of every line to what is read. Nearest and wanted line: {told}."
    return exhibit(runs, number, draw, "lines", caption, alt, data)


def _told(part: pd.DataFrame) -> str:
    nearest = part.loc[part["distance"].idxmin()]
    wanted = part[part["kind"] == "wanted"]["distance"]
    said = f"{KINDS[nearest['kind']].words} at {nearest['distance']:.3g}"
    return said + (f", wanted at {wanted.min():.3g}" if len(wanted) else "")


def _panel(axes: "Axes", words: str, part: pd.DataFrame) -> None:
    axes.patch.set_visible(False)
    model = part["model"].iloc[0]
    for kind, dot in KINDS.items():
        some, shade = part[part["kind"] == kind], dot.colour or colour(model)
        face = shade if dot.filled else "none"
        axes.scatter(
            some["line"], some["distance"], s=dot.size, facecolors=face, edgecolors=shade,
            linewidths=0 if dot.filled else 1.0, clip_on=False, zorder=3,
        )  # fmt: skip
    nearest = part.loc[part["distance"].idxmin()]
    low, high = part["distance"].min(), part["distance"].max()
    room = 0.12 * (high - low) or 1.0
    axes.set(xlim=(0, len(part) + 1), ylim=(low - room, high + room / 2))
    axes.vlines(nearest["line"], low - room, nearest["distance"], color=LIGHT.ink, linewidth=0.8)
    axes.grid(axis="y", color=LIGHT.rule, linewidth=0.6)
    framed(axes, words)


def _key(drawing: "Figure", layout: Layout, height: float, model: str) -> None:
    """A dot of each kind with its words above the panels; one below the other on a phone."""
    from matplotlib.lines import Line2D

    places = places_of_key(layout, height, len(KINDS))
    for dot, (x, y) in zip(KINDS.values(), places, strict=True):
        shade = dot.colour or colour(model)
        look = {"markerfacecolor": shade if dot.filled else "none", "markeredgecolor": shade}
        size = max(dot.size**0.5, 2.5)
        drawing.add_artist(
            Line2D([x / layout.width], [y], marker="o", linestyle="", markersize=size, **look)
        )
        drawing.text(
            (x + 0.12) / layout.width, y, dot.words, color=LIGHT.muted, size=7.5, va="center"
        )
