"""Computed passages of the book: MyST Markdown made from the store, included by the pages."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import pandas as pd

from relength.margins import Margin, load_margins
from relength.papers import EXPERIMENTS
from relength.paths import NOTEBOOKS
from relength.report import scoreboard
from relength.report.scoreboard import DECIDED, PAPERS, SCALES
from relength.store import Store

STATES = {
    "untouched": "not begun",
    "planned": "set up, no runs yet",
    "partly": "some cells have runs",
    "recorded": "every cell has runs",
    "judged": "claims decided",
}
VERDICTS = ("reproduced", *DECIDED[1:], "inconclusive", "not run", "not testable")


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    name: str,
    caption: str,
    numbers: Sequence[str] = (),
    classes: str = "sortable",
) -> str:
    """A numbered Markdown table that readers can sort. numbers: the columns to align at the right."""
    lines = [
        "| " + " | ".join(columns) + " |",
        "| " + " | ".join("---:" if c in numbers else "---" for c in columns) + " |",
        *("| " + " | ".join(_cell(value) for value in row) + " |" for row in rows),
    ]
    head = f"```{{table}} {caption}\n:name: {name}\n:class: {classes}\n"
    return head + "\n" + "\n".join(lines) + "\n```\n"


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ").strip() or "–"


def badge(verdict: str) -> str:
    """A verdict as an inline badge: coloured, and readable without colour."""
    return f"[{verdict}]{{.verdict .verdict-{_kind(verdict)}}}"


def _kind(verdict: str) -> str:
    return "not-reached" if verdict.startswith("not reached") else verdict.replace(" ", "-")


def counted(verdicts: dict[str, int]) -> str:
    """Verdict counts in a fixed order: *3 reproduced, 2 not run*."""
    known = [v for v in VERDICTS if v in verdicts] + sorted(set(verdicts) - set(VERDICTS))
    return ", ".join(f"{verdicts[v]} {v}" for v in known)


def at_a_glance(store: Store) -> str:
    """The landing page's first screen: how the claims stand, and a map of all artifacts."""
    board, costs = scoreboard.board(store), scoreboard.costs(store)
    judged = scoreboard.ledger(store)
    counts = Counter(judged["verdict"])
    tally = "".join(
        f'<li class="verdict-{_kind(v)}"><b>{counts[v]}</b><span>{v}</span></li>'
        for v in VERDICTS
        if counts[v] or v in ("reproduced", "inconclusive", "not run")
    )
    rows = "".join(_map_row(paper, board[board.paper == paper]) for paper in PAPERS)
    key = "".join(f'<li><i class="tile {s}"></i>{text}</li>' for s, text in STATES.items())
    trainings, hours = int(costs.trainings.sum()), costs.hours.sum()
    begun = int((board.state != "untouched").sum())
    made = (
        f"from {trainings:,} recorded trainings ({hours:,.0f} hours)"
        if trainings
        else "from an empty store: nothing has been run"
    )
    return (
        f"**{len(judged)} claims** of {judged['paper'].nunique()} paper are written down so far. "
        f"Computed {made}, they stand like this:\n\n"
        f'```{{raw}} html\n<ul class="tally">{tally}</ul>\n```\n\n'
        f"**{begun} of {len(board)}** tables and figures are covered. Squares are tables, circles "
        "figures:\n\n"
        f'```{{raw}} html\n<div class="map">{rows}<ul class="map-key">{key}</ul></div>\n```\n\n'
        + _one_by_one(judged)
    )


def _one_by_one(judged: pd.DataFrame) -> str:
    order = {verdict: i for i, verdict in enumerate(VERDICTS)}
    ranked = judged.sort_values("verdict", key=lambda v: v.map(order), kind="stable")
    body = table(
        ("claim", "verdict", "seen"),
        ((row.statement, badge(row.verdict), row.seen) for row in ranked.itertuples()),
        name="tab-claims-at-a-glance",
        caption="The claims in short. The {doc}`ledger </claims_ledger>` has the details.",
    )
    return f"````{{dropdown}} What held and what did not, claim by claim\n\n{body}````\n"


def _map_row(paper: str, board: pd.DataFrame) -> str:
    tiles = "".join(
        f'<i class="tile {row.kind} {row.state}" title="{row.artifact}: {escape(row.title)} — '
        f'{STATES[row.state]}"></i>'
        for row in board.itertuples()
    )
    begun = int((board.state != "untouched").sum())
    covered = f"{begun} of {len(board)} covered"
    return (
        f'<div class="map-row"><div class="map-name">{PAPERS[paper]}<small>{covered}</small></div>'
        f'<div class="tiles" role="img" aria-label="{PAPERS[paper]}: {covered}">{tiles}</div></div>'
    )


def scoreboard_tables(store: Store) -> str:
    """One folded table per paper, every artifact in it; papers already begun are unfolded."""
    board = scoreboard.board(store)
    parts = []
    for paper, title in PAPERS.items():
        rows = board[board.paper == paper]
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
            f"````{{dropdown}} {title}: {begun} of {len(rows)} covered\n{opened}\n{body}````\n"
        )
    return "\n".join(parts)


def _link(artifact: str, experiment: str | None) -> str:
    if experiment and (NOTEBOOKS / f"{experiment}.ipynb").exists():
        return f"{{doc}}`{artifact} </executed/{experiment}>`"
    return artifact


def claims_table(store: Store) -> str:
    """The ledger: every claim with its verdict, what was seen, and what chance alone would give."""
    judged = scoreboard.ledger(store)
    decided = int(judged["verdict"].isin(DECIDED).sum())
    head = (
        f"{len(judged)} claims, {decided} of them decided. If chance alone were at work, about "
        f"{0.05 * decided:.1f} of {decided} decisions at 5 % would be wrong.\n\n"
    )
    return head + table(
        ("id", "artifact", "claim", "kind", "arm", "scale", "verdict", "seen", "seeds"),
        (
            (
                row.id,
                row.artifact,
                row.statement,
                row.kind,
                row.arm,
                row.scale,
                badge(row.verdict),
                row.seen,
                row.seeds,
            )
            for row in judged.itertuples()
        ),
        name="tab-ledger",
        caption="All claims and their verdicts. Click a column to sort by it.",
        numbers=("seeds",),
        classes="sortable ids",
    )


def cost(store: Store) -> str:
    """What was executed where, and how well repeated executions agree."""
    costs, repeats = scoreboard.costs(store), scoreboard.repeats(store)
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


def margins(store: Store) -> str:
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
        caption="What counts as the same value, and what the words mean. Claims that need another "
        "margin say so.",
    )


def _margin(measure: str, margin: Margin) -> str:
    unit = " points" if measure == "accuracy" else ""
    parts = [f"± {margin.absolute:g}{unit}"] if margin.absolute else []
    parts += [f"± {100 * margin.relative:g} %"] if margin.relative else []
    if not parts:
        return "none: the same or not the same"
    return " or ".join(parts) + (", whichever is larger" if len(parts) > 1 else "")


def error_rates(store: Store) -> str:
    """Simulated rates of wrong verdicts."""
    raise NotImplementedError


PASSAGES: dict[str, Callable[[Store], str]] = {
    "at_a_glance": at_a_glance,
    "scoreboard": scoreboard_tables,
    "claims": claims_table,
    "cost": cost,
    "margins": margins,
    "error_rates": error_rates,
}
