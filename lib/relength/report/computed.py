"""Claims that no training decides: what pages simulate or measure for them, as rows of the ledger.

The pages show the same decisions; tests hold the two together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from relength.report import exhibits
from relength.report.exhibits import Exhibit, titled
from relength.report.grid import NOT_RUN
from relength.report.html import fill
from relength.report.style import verdict_kind
from relength.runs.store import Store
from relength.specs import published, registry
from relength.verdicts import claims, rules, wording

HOW = {
    "round": "Measured on a core with this code, not on a GPU with the authors'.",
    "simulation": "Simulated on a page of its own: no training decides this.",
    "calculation": "Calculated on a page of its own: no training decides this.",
}


class Computed(NamedTuple):
    """A claim, the page that decides it, and what comes of it; None where nothing is measured.

    quote   the sentence of the paper that makes the claim
    unit    what stands in the place of a seed: a key of HOW
    scope   how it was decided, and what that leaves out, where HOW does not say so
    needed  the command that would decide it
    """

    claim: str
    quote: str
    page: str
    unit: str
    decision: rules.Decision | None
    seen: str
    scope: str = ""
    needed: str = ""
    changed: tuple[str, ...] = ()  # of the claim, after it was first decided: its rule


def decided(store: Store) -> list[Computed]:
    """Every claim that a page decides, paper by paper."""
    return [
        one
        for paper in registry.papers().values()
        if paper.computed
        for one in paper.load(paper.computed)(store)
    ]


def ledger(store: Store) -> pd.DataFrame:
    """A row per claim, with the columns of :func:`relength.verdicts.claims.ledger`, `page` and
    `unit`.
    """
    prose = published.prose_claims().set_index("claim_id")
    return pd.DataFrame(
        [_row(one, prose.loc[one.claim]) for one in decided(store)],
        columns=[*claims.COLUMNS, "page", "unit"],
    )


class Seen(NamedTuple):
    """A claim, what was seen of it, and the verdict."""

    claim: str
    seen: str
    verdict: str

    def __str__(self) -> str:
        return f"{self.claim}: {self.verdict} ({self.seen})"


def verdicts(found: Sequence[Seen], how: str, page: str, caption: str, kind: str) -> Exhibit:
    """Tabulate the verdicts of a page that decides claims itself.

    how      the head of what was seen: "seen" or "computed"
    caption  HTML, whose beginning is the title
    kind     the badge of the table: exhibits.COMPUTED or MEASURED
    """
    said = published.prose_claims().set_index("claim_id")["claim"]
    columns = {"claim": "text", "what the paper says": "prose wide", how: "prose"}
    columns |= {"verdict": "text"}
    rows = [
        one._asdict() | {"statement": said[one.claim], "looks": verdict_kind(one.verdict)}
        for one in found
    ]
    data = pd.DataFrame(rows, columns=["claim", "statement", "seen", "verdict"])
    data, name = data.rename(columns={"seen": how}), f"{page}-verdicts"
    links = [exhibits.csv(name, data), exhibits.notebook(page)]
    body = fill("decided", columns=columns, rows=rows)
    html = exhibits.table(body, titled(caption, kind), name, links)
    return Exhibit(html, "\n".join(map(str, found)), data)


def _row(one: Computed, said: pd.Series) -> dict[str, object]:
    outcome = NOT_RUN if one.decision is None else one.decision.outcome
    row = dict.fromkeys(claims.COLUMNS, "") | {
        **{"paper": said["paper"], "claim": one.claim, "kind": said["kind"]},
        **{"statement": said["claim"], "where": said["where"]},
        "quote": one.quote,
        **dict.fromkeys(("verdict", "label", "outcome"), outcome),
        **{"seen": one.seen, "parts": (), "margins_changed": None},
        "claim_changed": wording.dated(one.changed) if one.decision else "",
        "scope": one.scope or HOW[one.unit],
        "needed": "" if one.decision else one.needed,
        "seeds": one.decision.n if one.decision else 0,
        "p": one.decision.p_for if one.decision else float("nan"),
        "q": float("nan"),
        **dict.fromkeys(("severity", "rivals", "one_symbol", "hardly", "between")),
        **{"repeated": 0, "fragile": False},
    }
    return row | {"page": one.page, "unit": one.unit}
