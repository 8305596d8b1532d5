"""The pages on deviations and contradictions, one per paper: MyST Markdown from data and store."""

from functools import partial
from typing import NamedTuple

import pandas as pd

from relength.report import recounts
from relength.report.markdown import plain, slug
from relength.report.scoreboard import Survey
from relength.report.style import title
from relength.report.tables import signed
from relength.report.wording import span
from relength.specs import registry
from relength.specs.margins import load_margins
from relength.verdicts import deviations
from relength.verdicts.deviations import Deviation, Effect
from relength.verdicts.wording import plural, verb

NOT_MEASURED = "Not measured yet."
SECTIONS = {
    "contradiction": (
        "Where the paper contradicts its code, or itself",
        "Text and released code are two readings of one model. Where both are trained, the "
        "entry says so. Text and tables can also disagree among themselves. Code does "
        "their sums and means again from the printed cells.",
    ),
    "deviation": (
        "What we do differently",
        "Differences from the runs behind the paper's numbers, as far as we know these.",
    ),
    "omission": (
        "What only the released code says",
        "The text is silent; the code decides, and we follow it.",
    ),
    "assumption": (
        "Assumptions",
        "Neither text nor released code says it. Each of these is our choice. Each has a name, so "
        "that a result can be traced to it.",
    ),
}


def page(paper: str, survey: Survey) -> str:
    """Every entry of a paper, in sections by kind, with what the store says of its effect."""
    entries = deviations.load(paper)
    effects = {entry.title: measured(entry, survey.runs) for entry in entries}
    parts = []
    for kind, (heading, opening) in SECTIONS.items():
        chosen = [entry for entry in entries if entry.kind == kind]
        if chosen:
            parts.append(f"## {heading}\n\n{opening}\n")
            parts += [_entry(paper, entry, effects[entry.title]) for entry in chosen]
    return "\n".join([_opening(entries, effects), *parts])


def _opening(entries: list[Deviation], effects: dict[str, str]) -> str:
    counts = {kind: sum(entry.kind == kind for entry in entries) for kind in SECTIONS}
    named = [plural(n, kind) for kind, n in counts.items() if n]
    measured = sum(effect != NOT_MEASURED for effect in effects.values())
    recounted = sum(entry.recount is not None for entry in entries)
    return (
        f"{len(entries)} entries: {', '.join(named)}. For {recounted or 'none'} of them the "
        f"arithmetic is done again here. For {measured or 'none'} the effect is measured in "
        "recorded runs.\n"
    )


def anchor(paper: str, entry: Deviation) -> str:
    """The label by which pages refer to an entry."""
    return f"{entry.kind}-{paper}-{slug(entry.title)}"


def _entry(paper: str, entry: Deviation, effect: str) -> str:
    where = f" [{plain(entry.where)}]{{.where}}" if entry.where else ""
    sides = [
        ("Paper says", _said(entry.paper)),
        ("Released code does", _said(entry.released)),
        ("We do", f"{_said(entry.here)} [{plain(entry.why)}]{{.aside}}"),
        _effect(entry, effect),
    ]
    definitions = "\n\n".join(f"{term}\n: {text}" for term, text in sides)
    recount = (
        f"\n:::{{container}} recount\n**Recounted.** "
        f"{plain(recounts.recount(paper, entry.recount))}\n:::\n"
        if entry.recount
        else ""
    )
    return (
        f"({anchor(paper, entry)})=\n### {plain(entry.title)}\n\n"
        f"[Applies to: {plain(entry.applies)}.]{{.applies}}{where}\n\n"
        f":::{{container}} sides\n{definitions}\n:::\n{recount}"
    )


def _said(text: str) -> str:
    return plain(" ".join(text.split()))


def measured(entry: Deviation, runs: pd.DataFrame) -> str:
    """Word what the recorded runs say of an entry's effect."""
    found = (deviations.effect(measure, runs) for measure in entry.measures)
    return plain(" ".join(in_words(effect) for effect in found if effect)) or NOT_MEASURED


class Moves(NamedTuple):
    """The effect of a difference at the longest test, over pairs of runs.

    pairs              {scale: pairs}
    same, more, fewer  pairs that stay within the margin, rise and fall
    median, low, high  of the differences, in the unit of the metric
    seeds              by cell: scale, model, arm and task
    most               the row of the largest difference at any test
    """

    pairs: dict[str, int]
    same: int
    more: int
    fewer: int
    median: float
    low: float
    high: float
    seeds: pd.Series
    most: pd.Series

    def lacking(self, least: int) -> int:
        """Cells with fewer seeds than that."""
        return int((self.seeds < least).sum())


def moves(found: Effect) -> Moves:
    """Count the pairs that a difference moves at the longest test, which way and how far."""
    margin = load_margins().measures[registry.metric(found.measure.judged).margin]
    far = found.longest["difference"]
    moved = far.abs() > found.longest["first"].map(margin.around)
    return Moves(
        pairs=found.longest["scale"].value_counts().to_dict(),
        same=int((~moved).sum()),
        more=int((moved & (far > 0)).sum()),
        fewer=int((moved & (far < 0)).sum()),
        median=far.median(),
        low=far.min(),
        high=far.max(),
        seeds=found.longest.groupby(["scale", "model", "arm", "task"])["seed"].nunique(),
        most=found.table.loc[found.table["difference"].abs().idxmax()],
    )


def in_words(found: Effect) -> str:
    """:func:`moves` in words."""
    counts, total = moves(found), len(found.longest)
    unit = registry.metric(found.measure.judged).change
    spread = f", from {signed(counts.low)} to {signed(counts.high)}" if total > 1 else ""
    said = (
        f"From {found.measure.first} to {found.measure.second}: {_pairs(counts.pairs)}, "
        f"{_seeds(counts.seeds)}. At the longest test {counts.same} "
        f"{verb(counts.same, 'agree')} within the margin, {counts.more} "
        f"{verb(counts.more, 'rise')} and {counts.fewer} {verb(counts.fewer, 'fall')}. The "
        f"median change is {signed(counts.median)} {unit}{spread}."
    )
    most = counts.most
    if most["difference"]:
        said += (
            f" The largest change at any test is {signed(most['difference'])}: {most['model']} on "
            f"{title(most['task'])}, test {most['test']}, seed {most['seed']}."
        )
    return said + _caution(counts)


def _caution(counts: Moves) -> str:
    """A sentence with a space before it where a cell has fewer seeds than a verdict needs."""
    least = load_margins().least_seeds
    few = counts.lacking(least)
    if not few:
        return ""
    if few == len(counts.seeds):
        return f" There are fewer than {least} seeds, so this may be chance."
    cells = f"{few} of {len(counts.seeds)} cells have"
    return f" {cells} fewer than {least} seeds, so what they show may be chance."


def _pairs(pairs: dict[str, int]) -> str:
    """Word the number of pairs, and their scale where runs of both are among them."""
    counted = plural(sum(pairs.values()), "pair") + " of runs"
    if len(pairs) == 1:
        return counted
    return f"{counted} ({', '.join(f'{n} at scale {scale}' for scale, n in pairs.items())})"


def _seeds(seeds: pd.Series) -> str:
    """Word the number of seeds of a model on a task at one scale: *5 seeds*, *1 to 5 seeds per
    cell*.
    """
    return span(seeds, "seed") + " per cell" * (seeds.nunique() > 1)


def _effect(entry: Deviation, effect: str) -> tuple[str, str]:
    """The last row of an entry: the expected effect, and the measured one if runs can show it."""
    if not entry.measures:
        return "Expected effect", _said(entry.effect)
    return "Measured effect", f"{effect} [Expected: {_said(entry.effect)}]{{.aside}}"


PASSAGES = {f"deviations_{paper}": partial(page, paper) for paper in deviations.papers()}
