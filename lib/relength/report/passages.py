"""Computed passages of the book: MyST Markdown made from the store, included by the pages."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import pandas as pd

from relength.claims import VERDICTS, counted, summary
from relength.false_verdicts import false_verdict_rates
from relength.margins import Margin, load_margins
from relength.papers import EXPERIMENTS
from relength.paths import NOTEBOOKS
from relength.report.scoreboard import PAPERS, SCALES, Survey
from relength.report.style import verdict_kind

STATES = {
    "untouched": "not begun",
    "planned": "set up, no runs yet",
    "partly": "some cells have runs",
    "recorded": "every cell has runs",
    "decided": "claims decided",
}
REPEATS = 500  # simulated claims per situation: some seconds in all


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    name: str,
    caption: str,
    numbers: Sequence[str] = (),
    classes: str = "sortable",
) -> str:
    """A numbered Markdown table that readers can sort; numbers: columns aligned at the right."""
    lines = [
        "| " + " | ".join(columns) + " |",
        "| " + " | ".join("---:" if c in numbers else "---" for c in columns) + " |",
        *("| " + " | ".join(_cell(value) for value in row) + " |" for row in rows),
    ]
    head = f"```{{table}} {caption}\n:name: {name}\n:class: {classes}\n"
    return head + "\n" + "\n".join(lines) + "\n```\n"


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text.replace("|", "\\|").replace("\n", " ").strip() or "–"


def badge(verdict: str) -> str:
    """A verdict as an inline badge: coloured, and readable without colour."""
    return f"[{verdict}]{{.verdict .verdict-{verdict_kind(verdict)}}}"


def at_a_glance(survey: Survey) -> str:
    """The landing page's first screen: how the claims stand, and a map of all artifacts."""
    board, judged, costs = survey.board, survey.ledger, survey.costs
    prose, cells = judged[judged["prose"]], judged[~judged["prose"]]
    counts = Counter(prose["verdict"])
    tally = "".join(
        f'<li class="verdict-{verdict_kind(v)}"><b>{counts[v]}</b><span>{v}</span></li>'
        for v in VERDICTS
        if counts[v] or v in ("reproduced", "inconclusive", "not run")
    )
    rows = "".join(_map_row(paper, board[board.paper == paper]) for paper in PAPERS)
    key = "".join(f'<li><i class="tile {s}"></i>{text}</li>' for s, text in STATES.items())
    trainings, hours = int(costs.trainings.sum()), costs.hours.sum()
    begun = int((board.state != "untouched").sum())
    made = (
        f"Computed from {trainings:,} recorded trainings ({hours:,.0f} hours)"
        if trainings
        else "Since nothing has been run, the store being empty"
    )
    papers = " and ".join(f"*{PAPERS[paper]}*" for paper in judged["paper"].unique())
    return (
        f"**{len(prose)} claims** that the text of {papers} makes are written down so far. "
        f"{made}, they stand like this:\n\n"
        f'```{{raw}} html\n<ul class="tally">{tally}</ul>\n```\n\n'
        f"Of the **{len(cells)} printed numbers** of {', '.join(cells['artifact'].unique())}: "
        f"{counted(Counter(cells['verdict']))}. "
        "Verdicts need five seeds; until then a claim is inconclusive, whatever they agree on. "
        "What is not reached or exceeded at reduced scale is not decided either.\n\n"
        f"**{begun} of {len(board)}** tables and figures of the four papers are begun. "
        "Squares are tables, circles figures:\n\n"
        f'```{{raw}} html\n<div class="map">{rows}<ul class="map-key">{key}</ul></div>\n```\n\n'
        + _one_by_one(prose)
    )


def _one_by_one(prose: pd.DataFrame) -> str:
    order = {verdict: i for i, verdict in enumerate(VERDICTS)}
    ranked = prose.sort_values("verdict", key=lambda v: v.map(order), kind="stable")
    body = table(
        ("claim", "verdict", "seen"),
        ((row.statement, badge(row.label), row.seen) for row in ranked.itertuples()),
        name="tab-claims-at-a-glance",
        caption="The claims in short. The {doc}`ledger </claims_ledger>` has the details.",
        classes="sortable glance",
    )
    return f"````{{dropdown}} What held and what did not, claim by claim\n\n{body}````\n"


def _map_row(paper: str, board: pd.DataFrame) -> str:
    tiles = "".join(
        f'<i class="tile {row.kind} {row.state}" title="{row.artifact}: {escape(row.title)} — '
        f'{STATES[row.state]}"></i>'
        for row in board.itertuples()
    )
    begun = int((board.state != "untouched").sum())
    share = f"{begun} of {len(board)} begun"
    return (
        f'<div class="map-row"><div class="map-name">{PAPERS[paper]}<small>{share}</small></div>'
        f'<div class="tiles" role="img" aria-label="{PAPERS[paper]}: {share}">{tiles}</div></div>'
    )


def scoreboard_tables(survey: Survey) -> str:
    """One folded table per paper, every artifact in it; papers already begun are unfolded."""
    parts = []
    for paper, title in PAPERS.items():
        rows = survey.board[survey.board.paper == paper]
        begun = int((rows.state != "untouched").sum())
        body = table(
            (
                "artifact",
                "what it shows",
                "state",
                "cells",
                *(f"seeds, {s}" for s in SCALES),
                "claims",
            ),
            (
                (
                    _link(row.artifact, row.experiment),
                    row.title,
                    STATES[row.state],
                    row.cells or "",
                    *(row.min_seeds[s] if row.cells else "" for s in SCALES),
                    counted(row.verdicts),
                )
                for row in rows.itertuples()
            ),
            name=f"tab-scoreboard-{paper}",
            caption=f"{title}: every table and figure with results. *Seeds* is the smallest number "
            "of seeds in any cell, per scale.",
            numbers=("cells", "seeds, reduced", "seeds, paper"),
            classes="sortable ids",
        )
        opened = ":open:\n" if begun else ""
        parts.append(
            f"````{{dropdown}} {title}: {begun} of {len(rows)} begun\n{opened}\n{body}````\n"
        )
    return "\n".join(parts)


def _link(artifact: str, experiment: str | None) -> str:
    if experiment and (NOTEBOOKS / f"{experiment}.ipynb").exists():
        return f"{{doc}}`{artifact} </executed/{experiment}>`"
    return artifact


def claims_table(survey: Survey) -> str:
    """The ledger: claims of the text with all that is known of them, then the printed numbers."""
    judged = survey.ledger
    prose, cells = judged[judged["prose"]], judged[~judged["prose"]]
    words = table(
        (
            *("id", "claim", "verdict", "seen", "what would decide it", "seeds", "scale"),
            *("kind", "arm", "other arms", "q", "where", "artifact"),
        ),
        (
            (
                *(row.claim, _worded(row), badge(row.label), _seen(row), row.needed, row.seeds),
                *(row.scale, row.kind, row.arm, row.others),
                *("" if pd.isna(row.q) else f"{row.q:.3f}", row.where, row.artifact),
            )
            for row in prose.itertuples()
        ),
        name="tab-ledger",
        caption="Claims of the text. Click a column to sort by it. *q* is the false-discovery rate "
        "of claims about order.",
        numbers=("seeds", "q"),
        classes="sortable ids ledger",
    )
    numbers = table(
        ("artifact", "number", "verdict", "seen", "seeds", "scale", "arm", "other arms"),
        (
            (
                *(row.artifact, row.statement, badge(row.label), _seen(row), row.seeds, row.scale),
                *(row.arm, row.others),
            )
            for row in cells.itertuples()
        ),
        name="tab-ledger-numbers",
        caption="Printed numbers: each is a claim of its own, that our runs give the same within "
        "the margin.",
        numbers=("seeds",),
        classes="sortable ids ledger",
    )
    return (
        f"{summary(judged)}\n\n{words}\n"
        f"````{{dropdown}} All {len(cells)} printed numbers, one by one\n\n{numbers}````\n"
    )


def _worded(row: Any) -> str:
    """The claim in our words, then the paper's own sentence, then what of it is left out here."""
    parts = [row.statement]
    if row.quote:
        parts.append(f"[“{_plain(row.quote)}”]{{.quote}}")
    if row.scope:
        parts.append(f"[Here: {_plain(row.scope)}]{{.quote}}")
    return " ".join(parts)


def _plain(text: str) -> str:
    """Text in which nothing is markup."""
    return re.sub(r"([\\`*_{}\[\]$<>])", r"\\\1", text)


def _seen(row: Any) -> str:
    return row.seen + ("; the margins changed since these runs" if row.margins_changed else "")


def cost(survey: Survey) -> str:
    """What was executed where, and how well repeated executions agree."""
    costs, repeats = survey.costs, survey.repeats
    if costs.empty:
        return "*Not run*: the store is empty.\n"
    artifacts = {e.name: ", ".join(e.artifacts) for e in EXPERIMENTS.values()}
    parts = [
        table(
            ("artifacts", "scale", "device", "PyTorch", "trainings", "failed", "steps", "hours"),
            (
                (
                    artifacts.get(row.experiment, row.experiment),
                    row.scale,
                    row.device,
                    row.torch,
                    f"{row.trainings:,}",
                    row.failed,
                    f"{row.steps:,}",
                    f"{row.hours:,.1f}",
                )
                for row in costs.itertuples()
            ),
            name="tab-cost",
            caption="Recorded trainings by artifact, scale and device: "
            f"{int(costs.trainings.sum()):,} trainings, {costs.hours.sum():,.1f} hours in all.",
            numbers=("trainings", "failed", "steps", "hours"),
        )
    ]
    if repeats.empty:
        parts.append("No spec has been executed more than once yet.\n")
    else:
        parts.append(
            table(
                ("spec", "model", "task", "seed", "executions", "difference"),
                (
                    (
                        f"`{r.key}`",
                        r.model,
                        r.task,
                        r.seed,
                        r.executions,
                        f"{r.largest_difference:.1f}",
                    )
                    for r in repeats.itertuples()
                ),
                name="tab-repeats",
                caption="Specs executed more than once: the largest difference in exact match "
                "between executions, in points, over all test lengths.",
                numbers=("seed", "executions", "difference"),
            )
        )
    return "\n".join(parts)


def speed(survey: Survey) -> str:
    """How fast training is, as ratios measured side by side."""
    if survey.speed.empty:
        return "Nothing has been measured yet: `relength bench` measures and keeps the result.\n"
    return table(
        ("task", "device", "PyTorch", "trainer", "steps/s", "ratio to the frozen loop", "commit"),
        (
            (
                row.task,
                row.device,
                row.torch,
                row.trainer,
                f"{row.steps_per_second:.0f}",
                f"{row.ratio:.2f}",
                f"`{(row.commit or 'unknown')[:8]}`",
            )
            for row in survey.speed.itertuples()
        ),
        name="tab-speed",
        caption="Training steps of OneStepAttn per second, batch 32. The frozen loop is the plain "
        "way to write the same training; ratios are medians over rounds in which the trainers took "
        "turns, so a busy machine disturbs them alike.",
        numbers=("steps/s", "ratio to the frozen loop"),
    )


def margins(survey: Survey) -> str:
    """The margins in force, from ``book/claims/margins.yml``."""
    fixed = load_margins()
    rows = [(m.replace("_", " "), _margin(m, margin)) for m, margin in fixed.measures.items()]
    for word, level in fixed.levels.items():
        bound = f"≥ {level.at_least:g} %" if level.at_least is not None else f"< {level.below:g} %"
        rows.append((f'"{word}"', f"exact match {bound}"))
    rows.append(("standard deviations", f"counted as at least {fixed.sd_floor:g} points"))
    return table(
        ("measure", "margin"),
        rows,
        name="tab-margins",
        caption="What counts as the same value, and what the words mean.",
    )


def _margin(measure: str, margin: Margin) -> str:
    unit = " points" if measure == "accuracy" else ""
    parts = [f"± {margin.absolute:g}{unit}"] if margin.absolute else []
    parts += [f"± {100 * margin.relative:g} %"] if margin.relative else []
    if not parts:
        return "none: the same or not the same"
    return " or ".join(parts) + (", whichever is larger" if len(parts) > 1 else "")


def error_rates(survey: Survey) -> str:
    """Simulated rates of wrong verdicts with as many seeds as first decide anything."""
    seeds = load_margins().least_seeds
    rates = false_verdict_rates(seeds=(seeds,), repeats=REPEATS)
    rates = rates.sort_values("promised", ascending=False, kind="stable")
    return table(
        ("rule", "what the seeds do", "false verdict", "rate", "promised"),
        (
            (
                *(row.rule, row.situation, row.verdict, f"{100 * row.rate:.1f} %"),
                "≤ 5 %" if row.promised else "no",
            )
            for row in rates.itertuples()
        ),
        name="tab-error-rates",
        caption=f"How often a rule gives a false verdict, in {REPEATS:,} simulated claims of "
        f"{seeds} seeds a row. *Promised* rows are worst cases of a test that keeps 5 %; in the "
        "others the seeds hide the truth, or the printed number is itself a draw: no rule can "
        "promise anything.",
        numbers=("rate",),
    )


PASSAGES: dict[str, Callable[[Survey], str]] = {
    "at_a_glance": at_a_glance,
    "scoreboard": scoreboard_tables,
    "claims": claims_table,
    "cost": cost,
    "speed": speed,
    "margins": margins,
    "error_rates": error_rates,
}
