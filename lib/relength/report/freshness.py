"""Does today's code still make the runs that an exhibit shows?

A record counts as checked when it was made by exactly the code that is here now, or when `relength
verify` replayed it, or one that stands for it, with that code. Records that failed the check are
*stale*; tables and figures leave them out (:func:`relength.store.usable`).
"""

import json
from collections.abc import Iterable
from typing import NamedTuple

from relength.provenance import code_fingerprint
from relength.store import Record, Store


class Freshness(NamedTuple):
    """runs: how many are shown; fresh: how many of them today's code is known to reproduce."""

    runs: int
    fresh: int

    @property
    def words(self) -> str:
        """A badge's text."""
        if self.fresh == self.runs:
            return "fresh"
        return f"{self.fresh} of {self.runs} fresh" if self.fresh else "not replayed yet"

    @property
    def hint(self) -> str:
        """What the badge means, in a sentence."""
        return (
            f"{self.fresh} of {self.runs} runs were made by the training code as it is now, or "
            "their first steps were replayed with it by relength verify"
        )


def freshness(store: Store, records: Iterable[Record]) -> Freshness:
    """How many of some records are known to be what today's code gives."""
    return freshness_of(store, ((r["run_id"], r["provenance"]["code"]) for r in records))


def freshness_of(store: Store, made: Iterable[tuple[str, str]]) -> Freshness:
    """The same for runs of which only these are at hand: the run_id and the code's fingerprint."""
    made = list(made)
    replayed, today = _replayed(store), code_fingerprint()
    fresh = sum(code == today or run_id in replayed for run_id, code in made)
    return Freshness(len(made), fresh)


def _replayed(store: Store) -> frozenset[str]:
    """The run_ids that stand behind a probe that today's code reproduced."""
    if not store.freshness.exists():
        return frozenset()
    state = json.loads(store.freshness.read_text())
    if state["code"] != code_fingerprint():
        return frozenset()
    return frozenset(
        run_id
        for probe in state["probes"]
        if probe["outcome"] == "fresh"
        for run_id in probe["run_ids"]
    )
