"""Claims that no training decides: what pages simulate or measure for them, as rows of the ledger.

The pages show the same decisions; tests hold the two together.
"""

from functools import cache
from typing import NamedTuple

import pandas as pd

from relength.papers.panm import exposure
from relength.papers.panm import overhead_page as overhead
from relength.report.grid import NOT_RUN
from relength.runs.store import Store
from relength.specs import published
from relength.verdicts import claims, rules


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


QUOTES = {  # the sentence of the paper that makes the claim
    "panm-013": "This ensures any address in the address space will eventually appear between the "
    "base and end addresses.",
    "panm-015": "When L_max → ∞, the expected number of samples required for exposing all "
    "addresses is O(n log n) where n = L_max/L (we can formulate this problem as Coupon "
    "collector's problem).",
    "panm-016": "For example, in even an extreme address range of L_max = 10⁶ (in practice we "
    "rarely need that big range) to train input sequences of length 10, we only need to sample "
    "10⁵ log 10⁵ sequences, which is often smaller than the size of the training datasets.",
    "panm-017": "Empirically, in our experiments, we always train our method with the same number "
    "of batch size and training steps as other baselines to ensure a fair comparison, and we "
    "realize that it is always possible to expose all the addresses to our model during training.",
    "panm-018": "The memory's address space has b = 10 bits, corresponding to a maximum of 1024 "
    "unique addresses, which is greater than any sequence length in the experiments.",
    "panm-039": "The hidden state dimension for these models are set to 512, which results in "
    "around 1-3 millions parameters.",
    "panm-074": "Computational Complexity: PANM introduces additional computational overhead, "
    "particularly when used with smaller models like LSTMs, where complexity can increase by "
    "20-30%.",
    "panm-076": "Overall, with 2 Mode-1 pointers and 1 Mode-2 pointer, PANM operates at 70-80% of "
    "the speed of the backbone model.",
    "panm-077": "For instance, in the Copy task, PANM achieves 15 iterations per second compared "
    "to LSTM's 20 iterations per second.",
    "panm-078": "When using a Transformer Encoder, PANM runs at 77 iterations per second, whereas "
    "the Transformer runs at 90 iterations per second.",
    "panm-080": "Notably, the larger the backbone, the smaller the difference in running time.",
    "panm-090": "Using more H^c and H^a can still be beneficial in exchange for slower "
    "computation (see Appendix D.6).",
}


def ledger(store: Store) -> pd.DataFrame:
    """A row per claim, with the columns of :func:`relength.verdicts.claims.ledger`, `page` and
    `unit`.
    """
    prose = published.prose_claims().set_index("claim_id")
    return pd.DataFrame([_row(one, prose.loc[one.claim]) for one in decided(store)])


def _row(one: Computed, said: pd.Series) -> dict[str, object]:
    outcome = NOT_RUN if one.decision is None else one.decision.outcome
    row = dict.fromkeys(claims.COLUMNS, "") | {
        **{"paper": said["paper"], "claim": one.claim, "kind": said["kind"]},
        **{"statement": said["claim"], "where": said["where"]},
        "quote": QUOTES[one.claim],
        **dict.fromkeys(("verdict", "label", "outcome"), outcome),
        **{"seen": one.seen, "parts": (), "margins_changed": None},
        "scope": one.scope or HOW[one.unit],
        "needed": "" if one.decision else "relength bench --pointers",
        "seeds": one.decision.n if one.decision else 0,
        "p": one.decision.p_for if one.decision else float("nan"),
        "q": float("nan"),
    }
    return row | {"page": one.page, "unit": one.unit}
