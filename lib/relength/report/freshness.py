"""Does today's code still make the runs that an exhibit shows?

A record counts as checked when it was made by exactly the code that is here now, or when `relength
verify` replayed it, or one that stands for it, with that code. Records that failed the check are
*stale*; tables and figures leave them out (:func:`relength.runs.store.usable`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from relength.runs.store import Record, Store
from relength.training.provenance import code_fingerprint

State = Literal["fresh", "earlier", "unchecked"]
EARLIER = "replayed with an earlier version"


class Freshness(NamedTuple):
    """Counts of the runs that are shown, and of those that code was seen to reproduce.

    fresh    made by today's code, or reproduced by it
    earlier  reproduced by an earlier version of the code, and not looked at since
    """

    runs: int
    fresh: int
    earlier: int

    @classmethod
    def of(cls, states: Iterable[State]) -> "Freshness":
        """Counted."""
        counts = Counter(states)
        return cls(counts.total(), counts["fresh"], counts["earlier"])

    @property
    def words(self) -> str:
        """A badge's text."""
        if self.fresh == self.runs:
            return "fresh"
        if self.fresh:
            return f"{self.fresh} of {self.runs} fresh"
        if self.earlier == self.runs:
            return EARLIER
        return f"{self.earlier} of {self.runs} {EARLIER}" if self.earlier else "not replayed yet"

    @property
    def hint(self) -> str:
        """Explain the badge in a sentence."""
        said = (
            f"{self.fresh} of {self.runs} runs were made by the training code as it is now, or "
            "their first steps were replayed with it by relength verify"
        )
        return f"{said}; {self.earlier} with an earlier version" if self.earlier else said


def freshness(store: Store, records: Iterable[Record]) -> Freshness:
    """Count the records that are known to be what today's code gives."""
    return freshness_of(store, made_by(records))


def freshness_of(store: Store, made: Mapping[str, str]) -> Freshness:
    """Count the runs of {run_id: fingerprint of the code} that today's code gives."""
    return Freshness.of(states(store, made).values())


def made_by(records: Iterable[Record]) -> dict[str, str]:
    """{run_id: fingerprint of the code that made it}"""
    return {record["run_id"]: record["provenance"]["code"] for record in records}


def states(store: Store, made: Mapping[str, str]) -> dict[str, State]:
    """Map each run_id to what is known of its run, from {run_id: fingerprint of the code}."""
    replayed, today = _replayed(store), code_fingerprint()
    current = verified_with(store) == today
    return {
        run_id: "fresh"
        if code == today or (current and run_id in replayed)
        else "earlier"
        if run_id in replayed
        else "unchecked"
        for run_id, code in made.items()
    }


def verified_with(store: Store) -> str | None:
    """The fingerprint of the code that runs were last replayed with; None if they never were."""
    return store.replayed()["code"]


def outdated(store: Store) -> bool:
    """Tell whether records were replayed, and the training code has changed since."""
    return verified_with(store) not in (None, code_fingerprint())


def _replayed(store: Store) -> frozenset[str]:
    """Run ids whose probe passed at the last verification."""
    return frozenset(
        run_id
        for probe in store.replayed()["probes"]
        if probe["outcome"] == "fresh"
        for run_id in probe["run_ids"]
    )
