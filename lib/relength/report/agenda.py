"""Rank the missing runs: what stage two of a claim lacks, then what stage one lacks.

A claim that stage one speaks against has failed in every seed of a part: the runs that stage two
lacks of that part can contradict it, so they come first. One such part is enough.

A claim can leave *inconclusive* once every cell that it speaks of has the five seeds of stage one
at one scale. What a run is worth depends on what else is missing. So both rankings take, again and
again, the set of missing runs that completes the most claims per hour of the device, at prices
measured there. Runs that nothing is known of have no price; sets with such runs come last, most
claims first.

Left out are claims that are decided, that nothing can decide, and whose data are not on this
machine. So are claims that five seeds of a scale cannot decide any more: a seed of one part fails,
and no part fails in all of its seeds.

After them comes everything else that some page wants: other readings, what goes beyond the papers,
and the many seeds of a success rate. Last are the runs whose data or weights are not here.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pandas as pd

from relength.report.markdown import plain, table
from relength.report.scoreboard import SCALES, Survey, survey
from relength.runs import plan
from relength.runs.plan import Run
from relength.runs.prices import Device, Prices, cell, own_runs, timed
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.verdicts import claims
from relength.verdicts.claim_models import Claim
from relength.verdicts.wording import plural

SHOWN = 40  # steps on the page


class Step(NamedTuple):
    """The missing runs of one cell at one scale.

    runs    lowest seeds first
    hours   of the device; None where no price is known
    claims  those that have all their runs once this step and every one before it are done
    waited  whether an open claim waits for these runs
    fails   claims of stage two that wait for them: they fail in every seed so far
    lacks   in a word, what these runs take and this machine has not: data or weights
    """

    runs: tuple[Run, ...]
    hours: float | None
    claims: tuple[str, ...]
    waited: bool = True
    fails: tuple[str, ...] = ()
    lacks: str = ""

    @property
    def label(self) -> str:
        """Model, arm, task and scale."""
        spec = self.runs[0].spec
        return f"{spec.row}/{spec.model.arm} on {spec.task.name} ({spec.scale})"

    @property
    def seeds(self) -> str:
        """The seeds of its runs, those in a row as a range: *0, 2–4*."""
        numbers = enumerate(run.spec.seed for run in self.runs)
        rows = [[seed for _, seed in row] for _, row in groupby(numbers, lambda n: n[1] - n[0])]
        return ", ".join(f"{row[0]}–{row[-1]}" if row[1:] else str(row[0]) for row in rows)

    @property
    def why(self) -> str:
        """Say what the runs are for: *stage two: 3 numbers fail in every seed*."""
        if self.fails:
            return (
                f"stage two: {named(self.fails, most=1)} fail{'s' * (len(self.fails) == 1)} in "
                "every seed"
            )
        if self.lacks:
            return f"not here: {self.lacks}"
        return "stage one" if self.waited else "no claim waits"


class Wish(NamedTuple):
    """A claim at one scale, and what it still lacks: cells in stage one, keys in stage two."""

    claim: str
    cells: frozenset[str]


def agenda(store: Store, device: Device | None, scales: Sequence[str] = SCALES) -> list[Step]:
    """The steps in the order in which they are worth running.

    device  where prices are those of; None for none at all. Runs like none of its own have the
            prices of the most recorded one of its kind that has trained such
    """
    recorded = own_runs(store)
    prices = Prices(recorded, device, instead(store, device), timed(store))
    grids = {
        (name, scale): {
            (spec.row, spec.model.arm, spec.task.name): cell(spec)
            for spec in experiment.specs(scale, [0])
        }
        for name, experiment in experiments().items()
        for scale in scales
    }
    judged = survey(store).ledger
    known = {cell(s) for scale in scales for s in _at_hand(scale)}
    second = _stage_two(judged, grids, known, store, prices)
    placed = {run.spec.key for step in second for run in step.runs}
    few: dict[str, list[Run]] = {}
    many: dict[str, list[Run]] = {}  # more seeds than stage one takes
    enough = plan.least_seeds()
    away: dict[str, list[Run]] = {}  # what they are trained on, or begin with, is not here
    for scale in scales:
        everything = plan.choose((), scale, None)
        there = {run.spec.key for run in plan.at_hand(everything)[0]}
        for run in plan.missing(everything, store):
            if run.spec.key not in placed:
                kind = few if run.spec.seed < enough else many
                kind = kind if run.spec.key in there else away
                kind.setdefault(cell(run.spec), []).append(run)
    wishes = list(_wishes(judged, grids, few, known))
    cost = {name: prices.total(run.spec for run in todo) for name, todo in few.items()}
    completed = dict(_ordered(wishes, cost))
    steps = [
        Step(tuple(few[name]), _hours(prices, few[name]), tuple(done))
        for name, done in completed.items()
    ]
    rest = [*(todo for name, todo in few.items() if name not in completed), *many.values()]
    others = [Step(tuple(todo), _hours(prices, todo), (), waited=False) for todo in rest]
    absent = [
        Step(
            *(tuple(todo), _hours(prices, todo), ()),
            waited=False,
            lacks=todo[0].spec.task.lacks().partition(":")[0],
        )
        for todo in away.values()
    ]
    return [*second, *steps, *sorted(others, key=_late), *absent]


def _stage_two(
    judged: pd.DataFrame,
    grids: dict[tuple[str, str], dict[tuple[str, str, str], str]],
    known: set[str],
    store: Store,
    prices: Prices,
) -> list[Step]:
    """The steps that stage two lacks of claims that fail in every seed of some part."""
    wanted: dict[tuple[str, str, int], dict[str, list[Run]]] = {}
    wishes: list[Wish] = []
    runs: dict[str, Run] = {}
    every = claims.by_id()
    for row in judged.itertuples():
        if row.outcome != "inconclusive":
            continue
        for one in row.parts:
            claim = every.get(row.claim)
            if claim is None or not one.stage_two:
                continue
            source = claim.source
            cells = grids.get((source.experiment, one.scale), {})
            key = source.experiment, one.scale, one.stage_two
            if cells and key not in wanted:
                wanted[key] = _first_seeds(*key, store)
            pairs = {pair for sample in one.part.samples for pair in sample}
            needed = {cells[m, source.arm_of(m), task] for m, task in pairs} if cells else set()
            lacking = [run for name in needed for run in wanted[key].get(name, ())]
            if lacking and needed <= known:
                runs |= {run.spec.key: run for run in lacking}
                wishes.append(Wish(row.claim, frozenset(run.spec.key for run in lacking)))
    cost = {key: prices.total([run.spec]) for key, run in runs.items()}
    ordered = [(runs[key], done) for key, done in _ordered(wishes, cost)]
    steps = []
    for _, group in groupby(ordered, lambda pair: cell(pair[0].spec)):
        rows = list(group)
        todo = sorted((run for run, _ in rows), key=lambda run: run.spec.seed)
        keys = {run.spec.key for run in todo}
        waiting = dict.fromkeys(wish.claim for wish in wishes if wish.cells & keys)
        done = tuple(claim for _, completed in rows for claim in completed)
        steps.append(Step(tuple(todo), _hours(prices, todo), done, fails=tuple(waiting)))
    return steps


def _first_seeds(experiment: str, scale: str, seeds: int, store: Store) -> dict[str, list[Run]]:
    """{cell of an experiment: missing runs among its first seeds}"""
    found: dict[str, list[Run]] = {}
    for run in plan.missing(plan.choose((experiment,), scale, seeds), store):
        found.setdefault(cell(run.spec), []).append(run)
    return found


def _hours(prices: Prices, todo: Iterable[Run]) -> float | None:
    seconds, unpriced = prices.total(run.spec for run in todo)
    return None if unpriced else seconds / 3600


def _late(step: Step) -> tuple:
    """The order of what no claim waits for: reduced first, then first seeds, then cheap ones."""
    spec = step.runs[0].spec
    return SCALES.index(spec.scale), spec.seed, step.hours is None, step.hours or 0.0


def _at_hand(scale: str) -> Iterable:
    return (run.spec for run in plan.at_hand(plan.choose((), scale, 1))[0])


def _wishes(
    judged: pd.DataFrame,
    grids: dict[tuple[str, str], dict[tuple[str, str, str], str]],
    missing: dict[str, list[Run]],
    known: set[str],
) -> Iterable[Wish]:
    state = judged.set_index("claim")
    for paper in claims.papers():
        for claim in claims.load(paper):
            row = state.loc[claim.id]
            if row["outcome"] in (*claims.DECIDED, "not testable"):
                continue
            for (experiment, scale), cells in grids.items():
                if experiment != claim.source.experiment or _settled(row, scale):
                    continue
                needed = _cells(claim, cells)
                if not needed <= known:  # its data are not here
                    continue
                if lacking := needed & missing.keys():
                    yield Wish(claim.id, frozenset(lacking))


def _cells(claim: Claim, cells: dict[tuple[str, str, str], str]) -> set[str]:
    return {cells[model, claim.source.arm_of(model), task] for model, task in claim.cells}


def _settled(row: pd.Series, scale: str) -> bool:
    """Tell whether five seeds at a scale can neither reproduce a claim nor all fail in a part."""
    votes = [part for part in row["parts"] if part.scale == scale and part.agree is not None]
    if row["seeds"] == 0 or len(votes) < len(row["parts"]):
        return False  # without runs there, or with parts that are no votes, everything is open
    holds = all(part.agree == part.seeds for part in votes)
    return not holds and all(part.agree > 0 for part in votes)


def _ordered(
    wishes: Sequence[Wish], cost: dict[str, tuple[float, int]]
) -> Iterable[tuple[str, list[str]]]:
    """Cells in the order in which they are worth running, each with the claims it completes."""
    names = sorted({name for wish in wishes for name in wish.cells})
    place = {name: i for i, name in enumerate(names)}
    sets = list(dict.fromkeys(wish.cells for wish in wishes))
    lacks = np.zeros((len(sets), len(names)), dtype=np.float32)
    for i, cells in enumerate(sets):
        lacks[i, [place[name] for name in cells]] = 1
    of_set: dict[frozenset[str], list[str]] = {}
    for wish in wishes:
        of_set.setdefault(wish.cells, []).append(wish.claim)
    hours = np.array([cost[name][0] for name in names]) / 3600
    unpriced = np.array([cost[name][1] for name in names], dtype=float)
    open_claims = {wish.claim for wish in wishes}
    shared = lacks @ lacks.T  # cells that two sets have in common
    while sets:
        worth = np.array([sum(c in open_claims for c in of_set[cells]) for cells in sets])
        alive = (worth > 0) & (lacks.sum(1) > 0)
        sets = [cells for cells, is_alive in zip(sets, alive, strict=True) if is_alive]
        lacks, worth, shared = lacks[alive], worth[alive], shared[alive][:, alive]
        if not sets:
            return
        # A set completes every claim whose lacking cells are all among its own.
        sizes = lacks.sum(1)
        inside = shared == sizes[None, :]
        gain = inside @ worth
        unknown = lacks @ unpriced > 0
        per_hour = np.where(unknown, -1.0, gain / np.maximum(lacks @ hours, 1e-6))
        best = max(range(len(sets)), key=lambda i: (per_hour[i], gain[i], -sizes[i]))
        chosen = [names[j] for j in np.flatnonzero(lacks[best])]
        chosen.sort(key=lambda name: cost[name][0])
        done = np.flatnonzero(inside[best])
        completed = [c for i in done for c in of_set[sets[i]] if c in open_claims]
        open_claims -= set(completed)
        for name in chosen[:-1]:
            yield name, []
        yield chosen[-1], list(dict.fromkeys(completed))
        columns = [place[name] for name in chosen]
        shared -= lacks[:, columns] @ lacks[:, columns].T
        lacks[:, columns] = 0


def named(completed: Sequence[str], most: int | None = None) -> str:
    """Claims in short: those in words by name, at most so many, the rest and numbers counted."""
    words = [claim for claim in completed if "/" not in claim]
    numbers, more = len(completed) - len(words), len(words[most:]) if most else 0
    counted = [f"{more} more"] * (more > 0) + [plural(numbers, "number")] * (numbers > 0)
    return ", ".join([*words[: len(words) - more], *counted]) or "–"


def most_recorded(store: Store, kinds: Sequence[str] = ("cpu", "cuda")) -> Device | None:
    """The device of one of these kinds that most records are from; None without any."""
    made = (Device.of(record) for record in store.usable())
    counts = Counter(device for device in made if device.kind in kinds)
    return counts.most_common(1)[0][0] if counts else None


def instead(store: Store, device: Device | None) -> list[Device]:
    """The devices whose prices stand for what a device has never run, the most recorded last."""
    made = Counter(Device.of(record) for record in store.usable())
    kind = None if device is None else device.kind
    return [other for other, _ in reversed(made.most_common()) if other.kind == kind]


class Missing(NamedTuple):
    """Cells that lack runs.

    deciding  those that could decide a claim
    priced    those of them that have a price
    others    those that no open claim waits for
    absent    those of the others whose data or weights are not here
    """

    deciding: int
    priced: int
    others: int
    absent: int


def missing(every: Sequence[Step]) -> Missing:
    """Count the steps of an :func:`agenda`."""
    steps = [step for step in every if step.waited]
    priced = sum(step.hours is not None for step in steps)
    absent = sum(bool(step.lacks) for step in every)
    return Missing(len(steps), priced, len(every) - len(steps), absent)


def to_run_next(survey: Survey) -> str:
    """The first steps of the agenda, for the page of that name."""
    device = most_recorded(survey.store)
    every = agenda(survey.store, device)
    steps, counts = [step for step in every if step.waited], missing(every)
    if not steps:
        return "Nothing is missing that could decide a claim.\n"
    rows, hours, count = [], 0.0, 0
    for number, step in enumerate(steps[:SHOWN], start=1):
        hours, count = hours + (step.hours or 0.0), count + len(step.claims)
        rows.append(
            (
                *(number, plain(step.label), step.seeds, plain(step.why)),
                "unknown" if step.hours is None else f"{step.hours:.2f}",
                *(len(step.claims), count, f"{hours:.2f}"),
            )
        )
    second = sum(bool(step.fails) for step in steps)
    words = (
        f"{counts.deciding:,} cells lack runs that could decide a claim, {second:,} of them for "
        "stage two: a claim fails in every seed there, and these runs may contradict it. "
        f"{counts.priced:,} of all "
        f"have a measured price{f' on {device}' if device else ''}. No open claim waits for the "
        f"{counts.others:,} cells after them; of {counts.absent:,} of these, data or weights are "
        "not on this machine. `relength plan` lists all cells.\n\n"
    )
    heads = (
        *("", "cell", "seed", "what for"),
        *("hours", "claims completed", "claims so far", "hours so far"),
    )
    return words + table(
        heads,
        rows,
        name="tab-next",
        caption=f"The first {len(rows)} cells to run. *Hours* are those of the device, or of "
        "another of its kind where only that has trained such runs. *Seed* is the number "
        "of the run's seed, counted from 0. *Claims completed* counts the claims, printed numbers "
        "among them, that then have the seeds of their stage and so can be decided.",
        numbers=(*heads[:1], *heads[4:]),
    )


PASSAGES = {"next": to_run_next}
