"""The overview page of a paper: facts at its head, and the results that the paper itself prints."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import pandas as pd

from relength.report import landing
from relength.report.markdown import table
from relength.report.scoreboard import BEGUN, Survey
from relength.specs import published, registry
from relength.specs.published import name_of
from relength.verdicts.claims import counted
from relength.verdicts.wording import number

COLUMNS = registry.united("columns")


def facts(paper: str, survey: Survey) -> str:
    """List what the paper has, what of it is begun here, how its claims stand, and the other
    pages.
    """
    made = published.prose_claims().query("paper == @paper")
    judged = survey.ledger[survey.ledger["prose"] & (survey.ledger["paper"] == paper)]
    board = survey.board[survey.board["paper"] == paper]
    begun, states = int(board["state"].isin(BEGUN).sum()), Counter(board["state"])
    rest = {"planned": "are set up", "shown": "stand on pages that need no runs of their own"}
    more = [f"{states[state]} more {said}" for state, said in rest.items() if states[state]]
    kinds = Counter(board["kind"])
    size = ", ".join(f"{kinds[kind]} {kind}s" for kind in ("table", "figure") if kinds[kind])
    source, *pages = landing.links(paper)
    entries = [
        ("The paper", source),
        ("Its results", f"{size}, {len(made)} claims in words"),
        ("Begun here", "; ".join([f"{begun} of {len(board)} tables and figures", *more])),
        ("Claims judged", (counted(Counter(judged["verdict"])) or "none yet") + _fragile(judged)),
        ("Also here", ", ".join(pages) or "no page yet"),
    ]
    listed = "\n\n".join(f"{term}\n: {text}" for term, text in entries)
    return f":::{{container}} card-facts\n{listed}\n:::\n"


def _fragile(judged: pd.DataFrame) -> str:
    count = int(judged["fragile"].eq(True).sum())
    return f"; {count} of them {{ref}}`fragile <fragile>`" if count else ""


def headline(paper: str, survey: Survey) -> str:
    """The paper's main results as it prints them, from the package's own data."""
    parts = []
    for artifact in registry.papers()[paper].headlines:
        cells = published.table(artifact)
        entry = published.artifacts().set_index("artifact").loc[artifact]
        values = cells.pivot(index="row", columns="column", values="value")
        values = values.loc[cells["row"].unique(), cells["column"].unique()]
        heads = [_head(column) for column in values.columns]
        rows = ((row, *map(number, values.loc[row])) for row in values.index)
        parts.append(
            table(
                ("", *heads),
                rows,
                name=f"tab-headline-{artifact}",
                caption=f"As printed, {name_of(artifact)} of the paper. {entry['title']}: "
                f"{entry['metric']}.",
                numbers=heads,
                classes="sortable ids",
            )
        )
    return "\n".join(parts)


def _head(column: str) -> str:
    last = column.rsplit("/", 1)[-1]
    return COLUMNS.get(last, last)


PASSAGES: dict[str, Callable[[Survey], str]] = {
    **{f"facts_{paper}": partial(facts, paper) for paper in registry.PAPERS},
    **{
        f"headline_{name}": partial(headline, name)
        for name, paper in registry.papers().items()
        if paper.headlines
    },
}
