"""Claims that no training decides: what pages simulate or measure for them, as rows of the ledger.

The pages show the same decisions; tests hold the two together.
"""

from functools import cache
from typing import NamedTuple

import pandas as pd

from relength import claims, rules
from relength.papers import published
from relength.report import exposure, overhead
from relength.report.grid import NOT_RUN
from relength.store import Store


class Computed(NamedTuple):
    """A claim, the page that decides it, and what comes of it; None where nothing is measured.

    unit   what stands in the place of a seed
    scope  how it was decided, and what that leaves out
    """

    claim: str
    page: str
    unit: str
    scope: str
    decision: rules.Decision | None
    seen: str


@cache
def _exposed() -> list[exposure.Checked]:
    return exposure.checked(exposure.simulate(), exposure.in_training())


def decided(store: Store) -> list[Computed]:
    """Every claim that a page decides. The simulations take some seconds, once."""
    simulated = [
        Computed(one.claim, exposure.PAGE, one.unit, "", one.decision, one.computed)
        for one in _exposed()
    ]
    measured = [
        Computed(
            claim,
            overhead.PAGE,
            "calculation" if claim == overhead.SIZED else "round",
            overhead.SCOPES.get(claim, ""),
            decision,
            overhead.judged(decision)[0],
        )
        for claim, decision in overhead.decisions(overhead.latest(store))
    ]
    return simulated + measured


HOW = {
    "round": overhead.MEASURED_HERE,
    "simulation": "Simulated on a page of its own: no training decides this.",
    "calculation": "Calculated on a page of its own: no training decides this.",
}


def ledger(store: Store) -> pd.DataFrame:
    """A row per claim, with the columns of :func:`relength.claims.ledger`, `page` and `unit`."""
    prose = published.prose_claims().set_index("claim_id")
    return pd.DataFrame([_row(one, prose.loc[one.claim]) for one in decided(store)])


def _row(one: Computed, said: pd.Series) -> dict[str, object]:
    outcome = NOT_RUN if one.decision is None else one.decision.outcome
    row = dict.fromkeys(claims.COLUMNS, "") | {
        **{"paper": said["paper"], "claim": one.claim, "kind": said["kind"]},
        **{"statement": said["claim"], "where": said["where"]},
        **dict.fromkeys(("verdict", "label", "outcome"), outcome),
        **{"seen": one.seen, "parts": (), "margins_changed": None},
        "scope": one.scope or HOW[one.unit],
        "needed": "" if one.decision else "relength bench --pointers",
        "seeds": one.decision.n if one.decision else 0,
        "p": one.decision.p_for if one.decision else float("nan"),
        "q": float("nan"),
    }
    return row | {"page": one.page, "unit": one.unit}
