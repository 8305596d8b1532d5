"""Ask which reading gives the printed numbers of models that mix content into location attention.

Three could. The released configurations of Mix OneStepAttn, Mix MonoAttn and Mix RMonoAttn, with PR
or without, switch content off, and a mixture without content is its unmixed model (tests compare
them), so that runs of that model stand for this reading. Repaired, they are mixed; and as in the
text, they are mixed by its equations. Mix MonoAttn has a fourth: with the switch turned and nothing
else its gate stays frozen, which makes it Mix RMonoAttn, whose repaired runs stand for it.
"""

from typing import NamedTuple

import pandas as pd

from relength.models.seq2seq.attentions import BY_LOCATION, MENDED
from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.tables import comparison, printed
from relength.specs import published
from relength.specs.margins import load_margins
from relength.verdicts.wording import plural

TABLE = "mla-table-7"
SOURCES = {
    "released": "as released, unmixed",
    "frozen": "switch turned alone",
    "repaired": "repaired",
    "paper": "as in the text",
}


def unmixed(model: str) -> str:
    """The model that a mixed one computes as released, in the row of Table 2.

    >>> unmixed("Mix OneStepAttn PR"), unmixed("Mix RMonoAttn")
    ('OneStepAttn', 'MonoAttn')
    """
    name = model.removeprefix("Mix ").removesuffix(" PR")
    return "MonoAttn" if name == "RMonoAttn" else name  # as released, both step by a ReLU


def standing_for(model: str, source: str) -> tuple[str, str] | None:
    """Name the row and arm whose runs stand for a mixed model in a reading; None if none do.

    >>> standing_for("Mix MonoAttn PR", "frozen"), standing_for("Mix OneStepAttn", "frozen")
    (('Mix RMonoAttn PR', 'repaired'), None)
    """
    if source == "released":
        return unmixed(model), source
    if source == "frozen":  # a gate is all that is repaired beside the switch
        gated = model.startswith("Mix MonoAttn")
        return (model.replace("MonoAttn", "RMonoAttn"), "repaired") if gated else None
    return model, source


def beside_printed(runs: Runs) -> pd.DataFrame:
    """One row per printed number of such a model and reading that has runs of it.

    Columns: model, task, test, paper, source (of SOURCES), seeds, ours, away (points from the
    printed number), near (within the margin) and shared: whether every reading that has runs of the
    model has this number.
    """
    data = comparison(runs, TABLE)
    data = data[data["seeds"] > 0].set_index(["model", "arm", "task", "test"])
    margin = load_margins().measures["accuracy"].around
    rows = []
    for (model, task, test), paper in printed(TABLE).items():
        if model not in BY_LOCATION or BY_LOCATION[model].arms != MENDED:
            continue
        readings = {source: standing_for(model, source) for source in SOURCES}
        for source, stands in readings.items():
            if stands and (row := (*stands, task, test)) in data.index:
                ours, seeds = data.loc[row, "ours"], data.loc[row, "seeds"]
                away = abs(ours - paper)  # the mixed row's number, which an unmixed model has not
                rows.append(
                    (model, task, test, paper, source, seeds, ours, away, away <= margin(paper))
                )
    names = ["model", "task", "test", "paper", "source", "seeds", "ours", "away", "near"]
    found = pd.DataFrame(rows, columns=names)
    there = found.groupby(["model", "task", "test"])["source"].transform("nunique")
    return found.assign(shared=there == found.groupby("model")["source"].transform("nunique"))


def table(runs: Runs) -> Exhibit:
    """A row per mixed model: how many printed numbers each reading gives, and how far it is."""
    data = beside_printed(runs)
    columns = {"model": "text", "numbers": "number"} | dict.fromkeys(SOURCES.values(), "number")
    rows = []
    for model, cells in data[data["shared"]].groupby("model", sort=False):
        by_source = {source: own for source, own in cells.groupby("source")}
        shown = (
            f"{own['near'].sum()} <small>({own['away'].mean():.1f})</small>"
            if (own := by_source.get(source)) is not None
            else f"<i>{NOT_RUN}</i>"
            if standing_for(model, source)
            else "–"
            for source in SOURCES
        )
        rows.append((model, str(len(cells) // len(by_source)), *shown))
    caption = (
        f"<b>Did they mix?</b> {badges(runs.scale, runs.freshness)} A cell counts the printed "
        f"numbers that the {published.statistic(TABLE)} of our seeds meets within the margin. "
        "Small: how many points it is away from them on average. Only numbers count for which "
        "every reading with runs of the model has some. A dash: the same as repaired, which frees "
        "the gate in Mix MonoAttn alone, with PR or without."
    )
    name = f"{runs.page}-mixed"
    if data.empty:
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    return Exhibit(html, f"{len(rows)} mixed models with runs.", data)


def comparable(runs: Runs) -> pd.DataFrame:
    """Keep those rows of :func:`beside_printed` whose model has two readings or more."""
    data = beside_printed(runs)
    return data[data["shared"] & (data.groupby("model")["source"].transform("nunique") > 1)]


def nearest(data: pd.DataFrame) -> dict[str, list[str]]:
    """{source: mixed models whose printed numbers it is the fewest points away from, on average}.

    data: of :func:`comparable`
    """
    away = data.groupby(["model", "source"], sort=False)["away"].mean().unstack()
    best = away.idxmin(axis=1)
    found = {source: list(best.index[best == source]) for source in SOURCES}
    return {source: models for source, models in found.items() if models}


class Source(NamedTuple):
    """Printed numbers that one source of ours is compared with, and how near it comes."""

    near: int
    numbers: int
    away: float  # points, on average
    seeds: int  # the fewest in a cell


def near_by_source(data: pd.DataFrame) -> dict[str, Source]:
    """{source: how near it comes}; data: of :func:`comparable`."""
    cells = {source: data[data["source"] == source] for source in SOURCES}
    return {
        source: Source(int(own["near"].sum()), len(own), own["away"].mean(), own["seeds"].min())
        for source, own in cells.items()
        if len(own)
    }


def _part_of(own: pd.DataFrame, data: pd.DataFrame) -> str:
    """Name the models that a reading's rows are of, if it is not of all."""
    models = own["model"].unique()
    return f" (of {' and '.join(models)})" if len(models) < data["model"].nunique() else ""


def in_words(runs: Runs) -> str:
    """The sum over all mixed models, and which reading comes nearest to which; or ""."""
    data = comparable(runs)
    if data.empty:
        return ""
    said = "; ".join(
        f"{SOURCES[source]}{_part_of(data[data['source'] == source], data)} {of.near} of "
        f"{of.numbers}, {of.away:.0f} points away ({plural(of.seeds, 'seed')} or more per cell)"
        for source, of in near_by_source(data).items()
    )
    models = plural(data["model"].nunique(), "mixed model")
    near = (f"{SOURCES[source]}, to {', '.join(to)}" for source, to in nearest(data).items())
    return (
        f"Printed numbers of {models} that come out: {said}. Nearest on average: {'; '.join(near)}."
    )
