"""Does today's code still give the recorded runs?

Probes replay their first steps; a full check trains again.

A record keeps its first training losses and a small evaluation right after them. It is *fresh*
while today's code reproduces these numbers. Some models magnify the rounding of a single step ten
thousand times within ten steps, so that two equal programs drift apart; a replay with other numbers
is therefore made again, from weights that are some rounding errors larger, and numbers count until
the two part. One record per task, model and arm stands for all that the same code made.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from relength.errors import RelengthError
from relength.runs.plan import Run
from relength.runs.store import Record, Store, accuracies, cause, on_generated_data, usable
from relength.specs.experiments import experiment
from relength.specs.margins import load_margins
from relength.specs.spec import RunSpec
from relength.training.provenance import code_fingerprint

TOLERANCE = 1e-3  # relative
PARTING = TOLERANCE / 100  # from here on a replay differs from a twin by more than rounding
# Rounding errors by which the first weights of a replay's twins are larger. A run that magnifies
# rounding may keep close to one twin by chance. Only runs that seem stale have twins.
TWINS = (1, 2, 4)


@dataclass(frozen=True)
class Probe:
    """One replayed record.

    difference  largest relative difference of a loss; None where nothing can be said: the record
                was made from other data than can be found here, or in an arithmetic that a CPU
                does not have
    run_ids     all records that this probe stands for
    """

    key: str
    label: str
    recorded_with: str
    difference: float | None
    run_ids: tuple[str, ...]

    @property
    def outcome(self) -> str:
        """``fresh``, ``stale``, or ``not comparable``."""
        if self.difference is None:
            return "not comparable"
        return "fresh" if self.difference <= TOLERANCE else "stale"


def replay(record: Record) -> float | None:
    """Largest relative difference of today's first losses, on this CPU, from the recorded ones.

    None when the record was made from other data than can be found here, in an arithmetic that only
    a GPU has, or when rounding alone changes its first loss or keeps it from being computed.
    """
    from torch.linalg import LinAlgError

    spec = RunSpec.recorded(record["spec"])
    if not _comparable(spec, record):
        return None
    then = [*record["first_losses"], record["probe"]["validation_loss"]]
    try:  # rounding alone can keep a pseudo-inverse from converging
        now = first_numbers(spec)
    except LinAlgError:
        return None
    if len(then) != len(now):
        return float("inf")
    count, found, twins = len(now), float(differences(now, then).max()), 0
    for larger_by in TWINS:
        if found <= TOLERANCE:  # twins could only leave fewer losses to compare
            break
        try:
            twin = first_numbers(spec, larger_by)
        except LinAlgError:
            continue
        twins += 1
        apart = differences(twin, now) > PARTING
        count = min(count, int(apart.argmax()) if apart.any() else len(now))
        if not count:
            return None
        found = float(differences(now[:count], then[:count]).max())
    return found if twins or found <= TOLERANCE else None


def first_numbers(spec: RunSpec, larger_by: int = 0) -> list[float]:
    """A run's first losses and the evaluation after them, as a record keeps them.

    larger_by: how many rounding errors (relative) to add to every first weight
    """
    import torch

    from relength.runs.execute import small_numbers_are_zero
    from relength.training.alone import Trainer
    from relength.training.course import PROBE_STEPS

    torch.set_num_threads(1)  # as the runs were; more threads only wait for each other
    trainer = Trainer(spec)
    with torch.no_grad():
        for weight in trainer.model.parameters():
            weight.mul_(1 + larger_by * torch.finfo(weight.dtype).eps)
    with small_numbers_are_zero():
        trainer.run_steps(PROBE_STEPS)
    return [*trainer.progress.probe["losses"], trainer.progress.probe["validation_loss"]]


def differences(ours: list[float], theirs: list[float]) -> np.ndarray:
    """Relative differences, number by number."""
    return np.abs(np.subtract(ours, theirs)) / np.maximum(np.abs(theirs), 1e-6)


def probes(records: Iterable[Record]) -> Iterator[tuple[int, int, Probe]]:
    """Replay a record per task, model, arm and code version; yield (number, of how many, probe).

    Only records of the experiments' own specs count: the others enter no table. Those that
    :func:`without_data` has are left out.
    """
    groups: dict[tuple[str, ...], list[Record]] = {}
    for spec, record in _of_tables(records):
        if not spec.task.lacks():
            code = record["provenance"]["code"]
            kind = (spec.task.name, spec.model.name, spec.model.arm, code)
            groups.setdefault(kind, []).append(record)
    for number, records in enumerate(groups.values(), start=1):
        spec = RunSpec.recorded(records[0]["spec"])
        yield (
            number,
            len(groups),
            Probe(
                key=records[0]["key"],
                label=spec.label,
                recorded_with=records[0]["provenance"]["code"],
                difference=replay(records[0]),
                run_ids=tuple(record["run_id"] for record in records),
            ),
        )


def without_data(records: Iterable[Record]) -> list[Record]:
    """The records of experiments' own specs whose task lacks its data here."""
    return [record for spec, record in _of_tables(records) if spec.task.lacks()]


def _of_tables(records: Iterable[Record]) -> Iterator[tuple[RunSpec, Record]]:
    for record in records:
        spec = experiment(record["experiment"]).spec_of(record)
        if spec is not None:
            yield spec, record


def write(store: Store, done: Iterable[Probe], left_out: Iterable[Record] = ()) -> Path:
    """Keep the outcome beside the records, where tables and badges find it.

    left_out: records that could not be replayed here, which keep their earlier outcome
    """
    done = [*done, *_earlier(store, {record["run_id"] for record in left_out})]
    file = store.freshness
    file.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "code": code_fingerprint(),
        "tolerance": TOLERANCE,
        "stale": sorted(run_id for p in done if p.outcome == "stale" for run_id in p.run_ids),
        "probes": [asdict(p) | {"outcome": p.outcome} for p in done],
    }
    file.write_text(json.dumps(state, indent=1) + "\n")
    return file


def _earlier(store: Store, run_ids: Collection[str]) -> Iterator[Probe]:
    """The last probes of some records: with other code than today's a stale one stays stale, and of
    the others nothing is known.
    """
    last = store.replayed()
    same = last["code"] == code_fingerprint()
    for known in last["probes"]:
        if kept := tuple(run_id for run_id in known["run_ids"] if run_id in run_ids):
            values = {name: known[name] for name in ("key", "label", "recorded_with", "difference")}
            probe = Probe(**values, run_ids=kept)
            yield probe if same or probe.outcome == "stale" else replace(probe, difference=None)


def _comparable(spec: RunSpec, record: Record) -> bool:
    """Tell whether this CPU can make the run again: from the same data, in the same arithmetic."""
    if spec.task.lacks():
        return False
    here, there = spec.task.provenance().get("sha256"), record["provenance"]["data"].get("sha256")
    return here == there and spec.training.products == "exact"


def sample(
    store: Store, how_many: int, choose: Callable[[Record], bool] = lambda record: True
) -> list[Record]:
    """Some records of the experiments' own specs, drawn anew each day, so that all come around.

    Runs that were executed least often come first.
    """
    executions = Counter(record["key"] for record in store.records())
    records = [
        record
        for record in usable(store.records())
        if choose(record)
        and (spec := experiment(record["experiment"]).spec_of(record)) is not None
        and _comparable(spec, record)
    ]
    random = np.random.default_rng(int(time.time() // 86400))
    drawn = [records[i] for i in random.permutation(len(records))]
    return sorted(drawn, key=lambda record: executions[record["key"]])[:how_many]


def of_key(store: Store, key: str) -> list[Record]:
    """The recorded executions of one run. Raises RelengthError when there is none."""
    records = [r for r in store.records() if r["key"] == key and r["status"] == "ok"]
    if not records:
        raise RelengthError(
            f"No run of key {key} is recorded in {store.path}: the book's page of provenance lists "
            "the keys, and --results names another folder."
        )
    return records


@dataclass(frozen=True)
class Comparison:
    """A later execution of a run beside an earlier one, both as recorded.

    The earlier one ended well; the later one may have failed.
    """

    earlier: Record
    later: Record

    @property
    def points(self) -> dict[str, float]:
        """Name of a test -> by how many points the later execution is better; empty if it failed.

        Of the tests that both have: those of a later version may be more.
        """
        if self.later["status"] != "ok":
            return {}
        then, now = accuracies(self.earlier), accuracies(self.later)
        return {test: 100 * (now[test] - value) for test, value in then.items() if test in now}

    @property
    def agrees(self) -> bool:
        """True when every test differs by at most the margin for accuracies."""
        margin = load_margins().measures["accuracy"].around(0)
        points = self.points.values()
        return bool(points) and all(abs(difference) <= margin for difference in points)

    @property
    def identical(self) -> bool:
        """True when both took the same way: each epoch's loss and accuracies, and the results."""
        return (
            self.agrees
            and self.earlier["curve"] == self.later["curve"]
            and not any(self.points.values())
        )

    @property
    def elsewhere(self) -> bool:
        """True when the two were made on different devices or with different versions of
        PyTorch.
        """
        place = ("device", "device_name", "torch")
        then, now = self.earlier["provenance"], self.later["provenance"]
        return any(then[name] != now[name] for name in place)

    @property
    def sentence(self) -> str:
        """The outcome as a line of a log."""
        spec = RunSpec.recorded(self.earlier["spec"])
        label = f"{spec.key} {spec.label}"
        if self.later["status"] != "ok":
            return f"{label}: failed when it was trained again ({cause(self.later)})"
        verdict = "agrees with" if self.agrees else "differs from"
        listed = ", ".join(f"{test} {points:+.1f}" for test, points in self.points.items())
        created = self.earlier["provenance"]["created"]
        return f"{label}: {verdict} its record of {created[:10]} (points: {listed})"


def repeats(store: Store) -> list[Comparison]:
    """Every further execution that ended well beside the first of its run, as time went on.

    Those on generated data are compared with each other only: the others learnt something else.
    """
    first: dict[tuple[str, bool], Record] = {}
    found = []
    good = [record for record in store.records() if record["status"] == "ok"]
    for record in sorted(good, key=lambda r: r["provenance"]["created"]):
        earlier = first.setdefault((record["key"], on_generated_data(record)), record)
        if earlier is not record:
            found.append(Comparison(earlier, record))
    return found


def retrain(store: Store, records: Iterable[Record]) -> Iterator[Comparison]:
    """Train runs again on this machine's CPUs, each spec once, and compare with their records.

    The new executions are recorded in the store. Tables use the first that is not stale.

    Raises RelengthError when a run was made from other data than can be found here, or in an
    arithmetic that only a GPU has.
    """
    from relength.runs.campaign import Campaign

    then: dict[str, list[Record]] = {}
    runs = []
    for record in records:
        spec = RunSpec.recorded(record["spec"])
        if not _comparable(spec, record):
            raise RelengthError(
                f"Run {spec.key} cannot be made again here: its record names other data than can "
                "be found (RELENGTH_DATA names a folder), or an arithmetic that needs a GPU."
            )
        if spec.key not in then:
            runs.append(Run(experiment(record["experiment"]), spec))
        then.setdefault(spec.key, []).append(record)
    for again in Campaign(runs, store, ranked=True).records():
        for record in then[again["key"]]:
            yield Comparison(record, again)
