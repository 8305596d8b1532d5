"""The pages on deviations and contradictions, one per paper: MyST Markdown from data and store."""

from functools import partial

import pandas as pd

from relength import deviations, recounts
from relength.deviations import Deviation
from relength.report.markdown import plain, slug
from relength.report.scoreboard import Survey

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
    for kind, (title, opening) in SECTIONS.items():
        chosen = [entry for entry in entries if entry.kind == kind]
        if chosen:
            parts.append(f"## {title}\n\n{opening}\n")
            parts += [_entry(paper, entry, survey.runs) for entry in chosen]
    return "\n".join([_opening(entries, survey.runs), *parts])


def _opening(entries: list[Deviation], runs: pd.DataFrame) -> str:
    counts = {kind: sum(entry.kind == kind for entry in entries) for kind in SECTIONS}
    named = [f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items() if n]
    measured = sum(
        entry.measure is not None and deviations.effect(entry.measure, runs) is not None
        for entry in entries
    )
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
        ("Measured effect", _effect(entry, runs)),
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
    found = deviations.effect(entry.measure, runs) if entry.measure else None
    return plain(str(found)) if found else NOT_MEASURED


def _effect(entry: Deviation, runs: pd.DataFrame) -> str:
    return f"{measured(entry, runs)} [Expected: {_said(entry.effect)}]{{.aside}}"


PASSAGES = {f"deviations_{paper}": partial(page, paper) for paper in deviations.papers()}
