"""Computed passages of the book: MyST Markdown made from the store, included by the pages."""

from collections.abc import Callable

from relength.report import (
    against_print,
    agenda,
    boxes,
    deviations,
    environment,
    expenses,
    findings,
    findings_readings,
    landing,
    ledger,
    margins,
    overviews,
    run_index,
    self_checks,
    speeds,
)
from relength.report.markdown import artifact_link, table
from relength.report.scoreboard import BEGUN, SCALES, Survey
from relength.report.style import title as title_of
from relength.specs import registry
from relength.specs.experiments import page_of
from relength.specs.margins import load_margins
from relength.verdicts.claims import counted
from relength.verdicts.false_verdicts import false_verdict_rates

STATES = {
    "absent": "not in the paper's text",
    "untouched": "not begun",
    "shown": "on a page that needs no runs of its own",
    "planned": "set up, no runs yet",
    "partly": "some cells have runs",
    "recorded": "every cell has runs",
    "decided": "some claims decided",
}
REPEATS = 1000  # simulated claims per situation: half a minute in all, kept on disk


def scoreboard_tables(survey: Survey) -> str:
    """One folded table per paper, every artifact in it."""
    parts = []
    for name, paper in registry.papers().items():
        rows = survey.board[survey.board.paper == name]
        begun = int(rows.state.isin(BEGUN).sum())
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
                    artifact_link(row.artifact, page_of(row.artifact, row.experiment)),
                    row.title,
                    STATES[row.state]
                    + "".join(f"; {title_of(task)} *not run: data*" for task in row.without_data),
                    row.cells or "",
                    *(row.min_seeds[s] if row.cells else "" for s in SCALES),
                    counted(row.verdicts),
                )
                for row in rows.itertuples()
            ),
            name=f"tab-scoreboard-{name}",
            caption=f"{paper.title}: every table and figure with results. *Seeds* is the smallest "
            "number of seeds in any cell, per scale.",
            numbers=("cells", "seeds, reduced", "seeds, paper"),
            classes="sortable ids",
        )
        parts.append(
            f"````{{dropdown}} {paper.title}: {begun} of {len(rows)} have runs\n\n{body}````\n"
        )
    return "\n".join(parts)


def error_rates(survey: Survey) -> str:
    """Simulated rates of wrong verdicts, of each rule in stage one and of both stages together."""
    seeds = load_margins().least_seeds
    rates = false_verdict_rates(repeats=REPEATS)
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
        caption=f"How often a false verdict comes out, in {REPEATS:,} simulated claims a row. "
        f"Rules are simulated with the {seeds} seeds of stage one; *two stages* is the whole "
        "procedure at scale reduced, for claims of so many parts. *Promised* rows keep 5 %, most "
        "at their worst case; in the others the seeds hide the truth, or the printed number is "
        f"itself a draw: no rule can promise anything. Another {REPEATS:,} claims would move a "
        f"rate of 5 % by {200 * (0.05 * 0.95 / REPEATS) ** 0.5:.1f} points or less, 19 times in "
        "20.",
        numbers=("rate",),
    )


PASSAGES: dict[str, Callable[[Survey], str]] = {
    "error_rates": error_rates,  # first, since it takes longest where nothing is kept
    **landing.PASSAGES,
    **against_print.PASSAGES,
    **overviews.PASSAGES,
    "scoreboard": scoreboard_tables,
    "claims": ledger.claims_list,
    "margin_history": margins.versions,
    **agenda.PASSAGES,
    **deviations.PASSAGES,
    **boxes.PASSAGES,
    **findings.PASSAGES,
    **findings_readings.PASSAGES,
    **expenses.PASSAGES,
    **speeds.PASSAGES,
    **environment.PASSAGES,
    **run_index.PASSAGES,
    **self_checks.PASSAGES,
    "margins": margins.in_force,
    **{
        name: passage
        for paper in registry.papers().values()
        for text in paper.passages
        for name, passage in paper.load(text).items()
    },
}
