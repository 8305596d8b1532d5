"""The pages on deviations and contradictions, one per paper: MyST Markdown from data and store."""

from functools import partial

import pandas as pd

from relength.report import recounts
from relength.report.markdown import plain, slug
from relength.report.scoreboard import Survey
from relength.report.style import title
from relength.report.tables import signed
from relength.specs.margins import load_margins
from relength.verdicts import deviations
from relength.verdicts.claims import plural
from relength.verdicts.deviations import Deviation, Effect

NOT_MEASURED = "Not measured yet."
SECTIONS = {
    "contradiction": (
        "Where the paper contradicts its code, or itself",
        "Text and released code are two readings of one model; where it may matter they are two "
        "arms. Text and tables can also disagree among themselves. Sums and means were done again "
        "by code from the printed cells.",
    ),
    "deviation": (
        "What we do differently",
        "Differences from the runs behind the paper's numbers, as far as these are known.",
    ),
    "omission": (
        "What only the released code says",
        "The text is silent; the code decides, and we follow it.",
    ),
    "assumption": (
        "Assumptions",
        "Neither text nor released code says it. Each of these is a choice of ours, and each has a "
        "name, so that a result can be traced to it.",
    ),
}


def page(paper: str, survey: Survey) -> str:
    """Every entry of a paper, in sections by kind, with what the store says of its effect."""
    entries = deviations.load(paper)
    parts = []
    for kind, (heading, opening) in SECTIONS.items():
        chosen = [entry for entry in entries if entry.kind == kind]
        if chosen:
            parts.append(f"## {heading}\n\n{opening}\n")
            parts += [_entry(paper, entry, survey.runs) for entry in chosen]
    return "\n".join([_opening(entries, survey.runs), *parts])


def _opening(entries: list[Deviation], runs: pd.DataFrame) -> str:
    counts = {kind: sum(entry.kind == kind for entry in entries) for kind in SECTIONS}
    named = [f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items() if n]
    measured = sum(bool(_effects(entry, runs)) for entry in entries)
    recounted = sum(entry.recount is not None for entry in entries)
    return (
        f"{len(entries)} entries: {', '.join(named)}. {recounted} of them rest on arithmetic that "
        f"is done again here, {measured} on effects measured in recorded runs.\n"
    )


def anchor(paper: str, entry: Deviation) -> str:
    """The label by which pages refer to an entry."""
    return f"{entry.kind}-{paper}-{slug(entry.title)}"


def _entry(paper: str, entry: Deviation, runs: pd.DataFrame) -> str:
    where = f" [{plain(entry.where)}]{{.where}}" if entry.where else ""
    sides = [
        ("Paper says", _said(entry.paper)),
        ("Released code does", _said(entry.released)),
        ("We do", f"{_said(entry.here)} [{plain(entry.why)}]{{.aside}}"),
        _effect(entry, runs),
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
    """What the recorded runs say of an entry's effect, in words."""
    return plain(" ".join(map(in_words, _effects(entry, runs)))) or NOT_MEASURED


def _effects(entry: Deviation, runs: pd.DataFrame) -> list[Effect]:
    found = (deviations.effect(measure, runs) for measure in entry.measures)
    return [effect for effect in found if effect is not None]


def in_words(found: Effect) -> str:
    """How many pairs a difference moves at the longest test, which way and how far."""
    margins = load_margins()
    measure = "edit_distance" if found.measure.metric == "edit_distance" else "accuracy"
    unit = "edits" if measure == "edit_distance" else "points"
    margin, far = margins.measures[measure], found.longest["difference"]
    moved = far.abs() > found.longest["first"].map(margin.around)
    said = (
        f"From {found.measure.first} to {found.measure.second}, {_pairs(found.longest)}, "
        f"{_seeds(found.longest)}. At the longest test {(~moved).sum()} stay within the margin of "
        f"the verdicts, {(moved & (far > 0)).sum()} rise and {(moved & (far < 0)).sum()} fall: "
        f"{signed(far.median())} {unit} in the median"
    )
    if len(far) > 1:
        said += f", {signed(far.min())} to {signed(far.max())}"
    most = found.table.loc[found.table["difference"].abs().idxmax()]
    if most["difference"]:
        said += (
            f". The largest at any test is {signed(most['difference'])}: {most['model']} on "
            f"{title(most['task'])}, test {most['test']}, seed {most['seed']}"
        )
    return f"{said}.{_caution(found.longest, margins.least_seeds)}"


def _caution(longest: pd.DataFrame, least: int) -> str:
    """A sentence with a space before it where a cell has fewer seeds than a verdict needs."""
    few = _cells(longest) < least
    if not few.any():
        return ""
    some = "" if few.all() else f" in {few.sum()} of {len(few)} cells"
    return f" Fewer than {least} seeds{some}: {'there ' if some else ''}it may be chance."


def _pairs(longest: pd.DataFrame) -> str:
    """How many pairs, and of which scale where runs of both are among them."""
    counted = plural(len(longest), "pair") + " of runs"
    scales = longest["scale"].value_counts()
    if len(scales) == 1:
        return counted
    return f"{counted} ({', '.join(f'{n} at scale {scale}' for scale, n in scales.items())})"


def _seeds(longest: pd.DataFrame) -> str:
    """How many seeds a model has on a task at one scale: *5 seeds*, *1 to 5 seeds per cell*."""
    seeds = _cells(longest)
    most = plural(seeds.max(), "seed")
    return most if seeds.min() == seeds.max() else f"{seeds.min()} to {most} per cell"


def _cells(longest: pd.DataFrame) -> pd.Series:
    return longest.groupby(["scale", "model", "arm", "task"])["seed"].nunique()


def _effect(entry: Deviation, runs: pd.DataFrame) -> tuple[str, str]:
    """Of a difference that runs can show what they do, beside what is expected; else the latter."""
    if not entry.measures:
        return "Expected effect", _said(entry.effect)
    return "Measured effect", f"{measured(entry, runs)} [Expected: {_said(entry.effect)}]{{.aside}}"


PASSAGES = {f"deviations_{paper}": partial(page, paper) for paper in deviations.papers()}
