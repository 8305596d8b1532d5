"""Price a run on a device: from the runs recorded there, or not known. Never a guess.

A run's price is the seconds it keeps a core busy, or its share of a GPU: seconds per optimiser
step, evaluation included, of the fastest recorded run of the same task, model and batch size,
times the steps that runs of its kind took. The fastest, because clocks also count the time for
which other programs had the core.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from statistics import median
from typing import NamedTuple

from relength.runs.store import Record, Store
from relength.specs.experiments import Experiment, experiments
from relength.specs.spec import RunSpec
from relength.training.provenance import device_kind, device_name

Key = tuple[str, ...]


class Device(NamedTuple):
    """The device that runs are made on, as their provenance names it."""

    kind: str
    name: str

    @classmethod
    def of(cls, record: Record) -> "Device":
        """The device that a record was made on."""
        return cls(record["provenance"]["device"], record["provenance"]["device_name"])

    def __str__(self) -> str:
        return f"a core of {self.name}" if self.kind == "cpu" else self.name


class OwnRun(NamedTuple):
    """A record of an experiment's own spec."""

    spec: RunSpec
    record: Record


class Pace(NamedTuple):
    """The training speed of a kind of run.

    seconds   of the device, per step of one run
    together  how many runs were trained as one program when it was measured
    """

    seconds: float
    together: int = 1


class Prices:
    """Prices on one device.

    records  usable ones (:func:`own_runs`); those of other devices tell how many steps runs take
    device   None for none at all: everything is unknown
    instead  whose paces are taken where the device has none, as plans do that need an order; of
             several the last that has one
    """

    def __init__(
        self, records: Iterable[OwnRun], device: Device | None, instead: Sequence[Device] = ()
    ):
        steps: dict[str, list[int]] = {}
        made: dict[Device, dict[Key, list[Record]]] = {}
        for spec, record in records:
            steps.setdefault(cell(spec), []).append(record["cost"]["steps"])
            # A smoke run is over before its pace is that of a real one.
            if (by := Device.of(record)) in (device, *instead) and spec.scale != "smoke":
                made.setdefault(by, {}).setdefault(_work(spec), []).append(record)
        self._steps = {kind: int(median(taken)) for kind, taken in steps.items()}
        self._paces = {
            work: min(map(pace_of, mine))
            for one in (*instead, device)
            for work, mine in made.get(one, {}).items()
        }

    @classmethod
    def on(cls, device: str, records: Iterable[OwnRun]) -> "Prices":
        """Prices on a device of this machine."""
        return cls(records, Device(device_kind(device), device_name(device)))

    def note(self, spec: RunSpec, pace: Pace) -> None:
        """Take over what has just been measured for runs like this one."""
        self._paces[_work(spec)] = pace

    def pace(self, spec: RunSpec) -> Pace | None:
        """Return how fast runs like this one train here; None where nothing was measured."""
        return self._paces.get(_work(spec))

    def steps(self, spec: RunSpec) -> int:
        """Estimate the optimiser steps of a run.

        That is the median of recorded runs that differ in the seed only; without any, the most
        that the protocol allows.
        """
        return self._steps.get(cell(spec)) or spec.training.most_steps(spec.task)

    def seconds(self, spec: RunSpec) -> float | None:
        """Price of a run; None where nothing was measured."""
        pace = self.pace(spec)
        return None if pace is None else pace.seconds * self.steps(spec)

    def total(self, specs: Iterable[RunSpec]) -> tuple[float, int]:
        """Seconds of all runs whose price is known, and how many have none."""
        prices = [self.seconds(spec) for spec in specs]
        return sum(p for p in prices if p is not None), prices.count(None)


def own_runs(*stores: Store) -> list[OwnRun]:
    """The usable records of all experiments' own specs, each spec once."""
    found: dict[str, OwnRun] = {}
    for store in stores:
        records = store.usable()
        for experiment in experiments().values():
            for run in own(experiment, records):
                found.setdefault(run.spec.key, run)
    return list(found.values())


def own(experiment: Experiment, records: Iterable[Record]) -> Iterator[OwnRun]:
    """Keep the records that are of an experiment's own specs."""
    for record in records:
        if (spec := experiment.spec_of(record)) is not None:
            yield OwnRun(spec, record)


def device_seconds(record: Record) -> float:
    """Return the seconds that a run took of a core, or its share of a GPU's; 0 if it failed.

    Evaluation is included.
    """
    cost = record.get("cost", {})
    seconds = cost.get("training_seconds", 0.0) + cost.get("evaluation_seconds", 0.0)
    return seconds / cost.get("sharing", 1)


@cache  # plans ask for it again and again, of ten thousands of runs
def cell(spec: RunSpec) -> str:
    """Return what runs have in common that differ in the seed only."""
    return spec.model_copy(update={"seed": 0}).key


@cache
def _work(spec: RunSpec) -> Key:
    """Describe the work of a step: runs of equal work train equally fast."""
    training = spec.training
    return (
        spec.task.model_dump_json(),
        spec.model.model_dump_json(),
        training.moves.model_dump_json(),
        *(training.name, str(training.batch_size), training.precision, training.products),
    )


def pace_of(record: Record) -> Pace:
    """Return how fast a recorded run was trained."""
    cost = record["cost"]
    return Pace(device_seconds(record) / cost["steps"], cost.get("stacked", 1))
