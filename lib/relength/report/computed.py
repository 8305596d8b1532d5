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

    unit  what stands in the place of a seed
    """

    claim: str
    page: str
    unit: str
    decision: rules.Decision | None
    seen: str


@cache
def _exposed() -> list[exposure.Checked]:
    return exposure.checked(exposure.simulate(), exposure.in_training())


def decided(store: Store) -> list[Computed]:
    """Every claim that a page decides. The simulations take some seconds, once."""
    simulated = [
        Computed(
            one.claim, exposure.PAGE, _unit(one.decision, "simulation"), one.decision, one.computed
        )
        for one in _exposed()
    ]
    measured = [
        Computed(
            claim, overhead.PAGE, _unit(decision, "round"), decision, overhead.judged(decision)[0]
        )
        for claim, decision in overhead.decisions(overhead.latest(store))
    ]
    return simulated + measured


def _unit(decision: rules.Decision | None, repeated: str) -> str:
    """What is repeated, unless it is arithmetic, which is done once."""
    return "calculation" if decision and decision.n == 1 else repeated


def ledger(store: Store) -> pd.DataFrame:
    """A row per claim, with the columns of :func:`relength.claims.ledger`, `page` and `unit`."""
    prose = published.prose_claims().set_index("claim_id")
    return pd.DataFrame([_row(one, prose.loc[one.claim]) for one in decided(store)])


def _row(one: Computed, said: pd.Series) -> dict[str, object]:
    outcome = NOT_RUN if one.decision is None else one.decision.outcome
    verb = {"round": "Measured", "simulation": "Simulated", "calculation": "Counted"}[one.unit]
    row = dict.fromkeys(claims.COLUMNS, "") | {
        **{"paper": said["paper"], "claim": one.claim, "kind": said["kind"]},
        **{"statement": said["claim"], "where": said["where"]},
        **dict.fromkeys(("verdict", "label", "outcome"), outcome),
        **{"seen": one.seen, "parts": (), "margins_changed": None},
        "scope": f"{verb} on a page of its own: no training decides this.",
        "needed": "" if one.decision else "relength bench --pointers",
        "seeds": one.decision.n if one.decision else 0,
        "p": one.decision.p_for if one.decision else float("nan"),
        "q": float("nan"),
    }
    return row | {"page": one.page, "unit": one.unit}
