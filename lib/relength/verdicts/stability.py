"""Does a verdict depend on which execution of a run is taken? Judge it by the others, too.

A run that is trained again may end elsewhere. Verdicts take the earliest usable execution of each
run; here they are recomputed with the latest of each, and with each first one left out, so that the
next takes its place. A verdict that changes is *fragile*.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pandas as pd

from relength.verdicts.claim_models import Claim
from relength.verdicts.evidence import CELL, Evidence

Choice = frozenset[str]  # run_ids that take the place of the first executions of their keys
Judge = Callable[[Claim, Evidence], str]  # the verdict of a claim's judged arm, as it is shown


class Stability(NamedTuple):
    """Verdicts that other executions of the same runs would give.

    repeated  runs behind a verdict that have more than one usable execution
    latest    the verdict with the latest execution of each
    without   {key: verdict}, where it changes when the run's first execution is left out
    """

    repeated: int
    latest: str
    without: dict[str, str]

    def fragile(self, verdict: str) -> bool:
        """Tell whether today's verdict is another one with other executions."""
        return bool({self.latest, *self.without.values()} - {verdict})

    def words(self, verdict: str) -> str:
        """Say what else the verdict would be, and by which choice; empty where it stays."""
        if self.repeated == 1 and self.latest != verdict:
            return f"{self.latest} with the latest execution of one run"
        said = [] if self.latest == verdict else [f"{self.latest} with the latest executions"]
        for other, times in Counter(self.without.values()).items():
            runs = "one run" if times == 1 else f"any one of {times} runs"
            said.append(f"{other} with the next execution of {runs}")
        return "; ".join(said)


class Judged(NamedTuple):
    """A claim, its verdict today, and the runs behind it: their cells, and where these are found.

    cells: (scale, model, arm, task)
    """

    claim: Claim
    verdict: str
    cells: tuple[tuple[str, str, str, str], ...]
    evidence: Evidence


def stability(judged: Sequence[Judged], further: pd.DataFrame, judge: Judge) -> list[Stability]:
    """Judge claims again by further executions of their runs. Those without any cost nothing.

    further: later usable executions, as :func:`relength.runs.store.frame` has them; those of runs
    that are not among the evidence change nothing
    """
    if further.empty:
        return [Stability(0, one.verdict, {}) for one in judged]
    swaps = _Swaps(further)
    return [_of_claim(one, swaps, judge) for one in judged]


def _of_claim(one: Judged, swaps: "_Swaps", judge: Judge) -> Stability:
    executions = swaps.executions_behind(one)
    if not executions:
        return Stability(0, one.verdict, {})

    def verdict(*choice: str) -> str:
        return judge(one.claim, swaps.evidence(one, frozenset(choice)))

    latest = verdict(*(later[-1] for later in executions.values()))
    if list(map(len, executions.values())) == [1]:  # the latest is the next
        alone = dict.fromkeys(executions, latest)
    else:
        alone = {key: verdict(later[0]) for key, later in executions.items()}
    changed = {key: found for key, found in alone.items() if found != one.verdict}
    return Stability(len(executions), latest, changed)


class _Swaps:
    """Evidence in which some runs have another execution; each choice is made once."""

    def __init__(self, further: pd.DataFrame):
        further = further.sort_values("created", kind="stable")
        self._rows = dict(iter(further.groupby(["experiment", "checkpoint"], sort=False)))
        self._cells: dict[tuple[str, ...], dict[str, list[str]]] = {}
        for (*cell, key), runs in further.groupby(["experiment", *CELL, "key"])["run_id"]:
            self._cells.setdefault(tuple(cell), {})[key] = runs.drop_duplicates().to_list()
        self._made: dict[tuple[Evidence, Choice], Evidence] = {}

    def executions_behind(self, one: Judged) -> dict[str, list[str]]:
        """{key: run_ids of its further executions, in time}, of the runs behind a verdict."""
        found: dict[str, list[str]] = {}
        for cell in one.cells:
            if repeated := self._cells.get((one.claim.source.experiment, *cell)):
                used = set(one.evidence.runs(*cell)["key"])
                found |= {key: runs for key, runs in repeated.items() if key in used}
        return found

    def evidence(self, one: Judged, choice: Choice) -> Evidence:
        """The evidence of a claim with the chosen executions in place of the first ones."""
        if (one.evidence, choice) not in self._made:
            rows = self._rows[one.claim.source.experiment, one.claim.source.checkpoint]
            chosen = rows[rows["run_id"].isin(choice)]
            self._made[one.evidence, choice] = one.evidence.with_executions(chosen)
        return self._made[one.evidence, choice]
