"""The runs and the ledger of one paper, kept by what they follow from.

A new record of one paper does not judge the others again, and pages, commands and kernels share
what was judged once.
"""

import pandas as pd

from relength.kept import kept
from relength.runs.store import Record, Store, frame
from relength.specs import registry
from relength.specs.experiments import Experiment, experiments
from relength.verdicts import claim_history, claims


def own_records(experiment: Experiment, store: Store) -> list[Record]:
    """Usable records of an experiment's own specs, without re-runs with other hyperparameters."""
    return experiment.own(store.usable(*experiment.files))


def runs(paper: str, store: Store) -> pd.DataFrame:
    """The usable runs of the own specs of a paper's experiments (relength.runs.store.frame).

    A run that two experiments want is there once for each of them.
    """

    def make() -> pd.DataFrame:
        mine = [found for found in experiments().values() if found.paper == paper]
        return frame(record for found in mine for record in own_records(found, store))

    return kept(store.named(f"runs-{paper}"), make, store.digest(paper), code=code())


def further(paper: str, store: Store) -> pd.DataFrame:
    """Later usable executions of these runs, in the same columns."""
    mine = [found for found in experiments().values() if found.paper == paper]
    return frame(r for found in mine for r in found.own(store.further(*found.files)))


def ledger(paper: str, store: Store) -> pd.DataFrame:
    """A paper's claims with the verdicts that its runs give, see relength.verdicts.claims.ledger.

    Kept by its records, its claims with their history, and the margins.
    """

    def make() -> pd.DataFrame:
        return claims.ledger(claims.load(paper), runs(paper, store), further(paper, store))

    given = (store.digest(paper), claims.written(paper), claim_history.state())
    return kept(store.named(f"ledger-{paper}"), make, *given, code=code())


def code() -> tuple[str, ...]:
    """The code that both follow from, with the metrics that papers read from their records."""
    papers = registry.papers().values()
    homes = [f"papers.{p.name}.{p.shares.partition(':')[0]}" for p in papers if p.shares]
    return (*claims.CODE, "training.traces", *homes)
