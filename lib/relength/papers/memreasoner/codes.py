"""Beyond the paper: why terms of the loss decide what is left in long contexts.

A question finds its line among those of a novel if the line is nearer to what was read than any
other. Traces of reads (:mod:`relength.training.traces_of_reads`) have the distance to the nearest
line of either kind, and how the codes in the memory lie: how far lines of the novel are from those
of bAbI, and along how many axes either spread.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relength.papers.memreasoner.experiments import LOSSES, terms_of, with_all_terms
from relength.papers.memreasoner.hops_read import HALF, again
from relength.papers.memreasoner.losses import every_seed, in_panels
from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.figures import exhibit
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import LIGHT, Layout, aligned
from relength.report.wording import span
from relength.specs.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TICKS = (0.5, 1, 2)
# What the table has, and the heads of its columns; its caption says in what units.
MEASURES = {
    "room": "room",
    "between": "apart",
    "spread": "spread",
    "facts_dimensions": "axes",
    "text_dimensions": "novel axes",
}


def codes(runs: Runs) -> pd.DataFrame:
    """A row per run that recorded how its codes lie, and test with lines of novels.

    Columns: terms, seed, test, and those of :data:`MEASURES`. Where a spec was run more than once,
    the first run that recorded it counts.
    """
    rows = []
    for spec, traces in _traced(runs):
        for trace in traces:
            lie, room = trace["codes"], trace["room"]
            if room and {"between", "facts_spread"} <= set(lie):
                rows.append((terms_of(spec), spec.seed, trace["test"], *_measured(lie, room[0])))
    data = pd.DataFrame(rows, columns=["terms", "seed", "test", *MEASURES])
    return data.astype({"seed": int, **dict.fromkeys(MEASURES, float)})


def _traced(runs: Runs) -> Iterator[tuple[RunSpec, list[dict[str, Any]]]]:
    done = set()
    for record in (*runs.records, *runs.further):
        traces = record.get("reads") or ()
        if record["key"] not in done and any("room" in trace for trace in traces):
            done.add(record["key"])
            yield RunSpec.recorded(record["spec"]), [t for t in traces if "room" in t]


def _measured(lie: dict[str, float], room: list[float]) -> tuple[float, ...]:
    unit = lie["facts_spread"]
    return (
        room[HALF],
        lie["between"] / unit,
        lie.get("text_spread", np.nan) / unit,
        lie["facts_dimensions"],
        lie.get("text_dimensions", np.nan),
    )


def medians(runs: Runs, of: str) -> pd.DataFrame:
    """Medians over seeds, a row per choice of terms that has traces, a column per length."""
    found = codes(runs).groupby(["terms", "test"], sort=False)[of].median().unstack(sort=False)
    return found.loc[[terms for terms in LOSSES if terms in found.index]]


def figure(runs: Runs, number: int) -> Exhibit:
    """Draw the room that the wanted line has, against length: a panel per choice."""
    data, middle = codes(runs), medians(runs, "room")
    caption = (
        "How much room does a line have? Distance of what the first hop reads to the nearest line "
        "of the novel, per distance to the wanted line, against the length of the context in "
        "thousand tokens, as the median over questions; titles name what is left out, or what is "
        "kept. Below the dashed line the novel is nearer in half of the questions or more. A thin "
        "line with dots is a run, the thick one their median. The grey line is the median with all "
        "terms in the same reading of the memory."
    )
    if data.empty:
        return exhibits.waiting(caption, f"{runs.page}-room", again(runs), data)
    tests = list(middle.columns)
    seeds = data.groupby("terms")["seed"].nunique()
    caption += f" Each choice has traces of {span(seeds, 'run')}."

    def draw(layout: Layout) -> "Figure":
        return in_panels(
            layout,
            lambda axes, terms: _panel(axes, terms, data[data["terms"] == terms], middle, tests),
        )

    told = "; ".join(
        f"{terms}: " + ", ".join(f"{test} {value:.2g}" for test, value in row.items())
        for terms, row in middle.iterrows()
    )
    alt = f"Distance of the nearest line of a novel per distance of the wanted line. {told}."
    return exhibit(runs, number, draw, "room", caption, alt, data)


def _panel(
    axes: "Axes", terms: str, data: pd.DataFrame, middle: pd.DataFrame, tests: list[str]
) -> None:
    x = np.arange(len(tests))
    axes.set_yscale("log", base=2)
    axes.set(xlim=(-0.3, len(tests) - 0.7), ylim=(TICKS[0] / 1.3, TICKS[-1] * 1.3))
    for level in TICKS:
        axes.axhline(level, color=LIGHT.rule, linewidth=0.6, zorder=0)
    axes.axhline(1, color=LIGHT.muted, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.minorticks_off()
    axes.set_xticks(x, [test.removesuffix("k") for test in tests])
    whole = with_all_terms(terms)
    if whole in middle.index:
        axes.plot(x, middle.loc[whole], color=LIGHT.muted, lw=1.2, alpha=0.6, zorder=2)
    every_seed(axes, data, "test", "room", tests)


def table(runs: Runs) -> Exhibit:
    """Say how codes lie at the shortest length with lines of novels, a row per choice of terms."""
    data = codes(runs)
    first = data["test"].iloc[0] if len(data) else "1k"
    seeds = data.groupby("terms")["seed"].nunique()
    over = span(seeds, "run") if len(seeds) else "runs"
    caption = (
        f"<b>How codes lie.</b> {badges(runs.scale, runs.freshness)} Codes of lines as they stand "
        f"in the memory, contexts of {first} tokens: medians over questions, then over {over}. "
        "<em>Room</em>: from what was read to the nearest line of the novel, per distance to the "
        "wanted line. <em>Apart</em>: from the mean of the facts to that of the novel's lines; "
        "<em>spread</em>: of the novel's lines; both per spread of the facts. "
        "<em>Axes</em>: along how many the codes of facts spread, <em>novel axes</em>: those of "
        "the novel's lines; (Σλ)² / Σλ² of the eigenvalues λ of the covariance."
    )
    name = f"{runs.page}-codes"
    if data.empty:
        return exhibits.waiting(caption, name, again(runs), data)
    columns = {"terms": "text", **dict.fromkeys(MEASURES.values(), "number")}
    rows = [(terms, *_cells(data, terms, first, f"<small>{NOT_RUN}</small>")) for terms in LOSSES]
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    return Exhibit(html, f"{len(seeds)} of {len(LOSSES)} choices of terms have traces.", data)


def _cells(data: pd.DataFrame, terms: str, test: str, lacking: str) -> list[str]:
    own = data[(data["terms"] == terms) & (data["test"] == test)]
    if own.empty:
        return [lacking] * len(MEASURES)
    return [f"{own[name].median():.2g}" for name in MEASURES]


def numbers(runs: Runs) -> str:
    """Write the room that the wanted line has as plain text, by length."""
    middle = medians(runs, "room")
    if middle.empty:
        return "Not run yet: runs that record how codes lie."
    seeds = codes(runs).groupby("terms")["seed"].nunique()
    rows = [["nearest novel line / wanted line", "seeds", *middle.columns]]
    rows += [
        [f"  {terms}", str(seeds[terms]), *(f"{value:.2f}" for value in row)]
        for terms, row in middle.iterrows()
    ]
    return "\n".join(aligned(*rows))
