"""Price a run on a device: from what was measured there, or not known.

A run's price is the seconds it keeps a core busy, or its share of a GPU: seconds per optimiser
step, evaluation included, times the steps that runs of its kind took. The pace is, whichever is
known first,

1. that of the fastest recorded run of the same task, model and batch size; the fastest, because
   clocks also count the time for which other programs had the core;
2. that of the few steps which ``relength bench --experiment`` has timed;
3. that of other tasks of the same family whose texts are about as long, such as those cut off
   elsewhere: the median of these, and of an even number the slower of the middle two. It is an
   estimate, good enough for an order and a table, so what has no other is still timed where time is
   spent on that.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from statistics import median, median_high
from typing import NamedTuple

from relength.runs.store import Record, Store, device_seconds
from relength.specs.experiments import Experiment, experiments
from relength.specs.spec import RunSpec, spec_of_key, text_sizes
from relength.training.provenance import device_kind, device_name

Key = tuple[str, ...]
TIMED = "steps of a run"  # the kind of benchmark that times a few steps


class Device(NamedTuple):
    """The device that runs are made on, as their provenance names it."""

    kind: str
    name: str

    @classmethod
    def of(cls, record: Record) -> "Device":
        """The device that a record was made on; of kind ``several`` if there were two or more."""
        made = record["provenance"]
        if others := [*made.get("other_devices", ()), *filter(None, [made.get("tested_on")])]:
            return cls("several", " and ".join([*others, made["device_name"]]))
        return cls(made["device"], made["device_name"])

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


class Timed(NamedTuple):
    """A run whose pace was measured on a device, whole or for a few steps."""

    device: Device
    spec: RunSpec
    pace: Pace


class Prices:
    """Prices on one device.

    records  usable ones (:func:`own_runs`); those of other devices tell how many steps runs take
    device   None for none at all: everything is unknown
    instead  whose paces are taken where the device has none of the same work, as plans do that need
             an order; of several the last that has one
    few      runs of which a few steps were timed (:func:`timed`)
    """

    def __init__(
        self,
        records: Iterable[OwnRun],
        device: Device | None,
        instead: Sequence[Device] = (),
        few: Iterable[Timed] = (),
    ):
        steps: dict[str, list[int]] = {}
        made: dict[Device, list[Timed]] = {}
        for spec, record in records:
            steps.setdefault(cell(spec), []).append(record["cost"]["steps"])
            # A smoke run is over before its pace is that of a real one.
            by, pace = Device.of(record), pace_of(record)
            if by in (device, *instead) and pace is not None and spec.scale != "smoke":
                made.setdefault(by, []).append(Timed(by, spec, pace))
        self._steps = {kind: int(median(taken)) for kind, taken in steps.items()}
        self._paces: dict[Key, Pace] = {}
        few = [one for one in few if one.spec.scale != "smoke"]
        for one in (*instead, device):
            # What is known better comes later, and replaces what is known less well.
            of_few = _fastest(measured for measured in few if measured.device == one)
            fastest = of_few | _fastest(made.get(one, []))
            self._paces |= _of_families(fastest.values())
            self._paces |= {work: measured.pace for work, measured in fastest.items()}

    @classmethod
    def on(cls, device: str, records: Iterable[OwnRun], few: Iterable[Timed] = ()) -> "Prices":
        """Prices on a device of this machine."""
        return cls(records, Device(device_kind(device), device_name(device)), few=few)

    def note(self, spec: RunSpec, pace: Pace) -> None:
        """Take over what has just been measured for runs like this one."""
        self._paces[_work(spec)] = pace
        self._paces.setdefault(_family(spec), pace)

    def knows(self, spec: RunSpec) -> bool:
        """Tell whether the pace of equal work is known, and not an estimate."""
        return _work(spec) in self._paces

    def pace(self, spec: RunSpec) -> Pace | None:
        """Return how fast runs like this one train here; None where nothing was measured."""
        return self._paces.get(_work(spec)) or self._paces.get(_family(spec))

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
        for experiment in experiments().values():
            for run in own(experiment, store.usable(*experiment.files)):
                found.setdefault(run.spec.key, run)
    return list(found.values())


def timed(store: Store) -> list[Timed]:
    """The runs of which a few steps were timed, and whose spec can still be made."""
    found = []
    for outcome in store.benchmarks():
        if outcome.get("kind") == TIMED:
            with suppress(ValueError):
                spec = spec_of_key(outcome["spec"], outcome["key"])
                pace = Pace(outcome["seconds"])
                found.append(Timed(Device.of(outcome), spec, pace))
    return found


def measured_on(
    wanted: Collection[Experiment], records: Iterable[Record], few: Iterable[Timed]
) -> list[Device]:
    """The devices that made some records, or timed a few steps of runs of some experiments."""
    real = (one for one in few if one.spec.scale != "smoke")
    of_few = (one.device for one in real if any(w.wants(one.spec) for w in wanted))
    return list(dict.fromkeys([*map(Device.of, records), *of_few]))


def own(experiment: Experiment, records: Iterable[Record]) -> Iterator[OwnRun]:
    """Keep the records that are of an experiment's own specs."""
    for record in records:
        if (spec := experiment.spec_of(record)) is not None:
            yield OwnRun(spec, record)


@cache  # plans ask for it again and again, of ten thousands of runs
def cell(spec: RunSpec) -> str:
    """The key that runs share which differ in the seed only."""
    return spec.model_copy(update={"seed": 0}).key


@cache
def _work(spec: RunSpec) -> Key:
    """Describe the work of a step: runs of equal work train equally fast."""
    return (spec.task.model_dump_json(), *_trained(spec))


@cache
def _family(spec: RunSpec) -> Key:
    """Describe the work of a step on any task of a family, which has a module of its own.

    Lengths of texts are rounded to powers of two.
    """
    lengths = (str(round(math.log2(n + 1))) for size in text_sizes(spec.task) for n in size)
    return (type(spec.task).__module__, *lengths, *_trained(spec))


def _trained(spec: RunSpec) -> Key:
    training = spec.training
    return (
        spec.model.model_dump_json(),
        training.moves.model_dump_json(),
        *(training.name, str(training.batch_size), training.precision, training.products),
    )


def _fastest(measured: Iterable[Timed]) -> dict[Key, Timed]:
    """{work of a step: the fastest of the runs that share it}"""
    found: dict[Key, Timed] = {}
    for one in measured:
        work = _work(one.spec)
        if work not in found or one.pace < found[work].pace:
            found[work] = one
    return found


def _of_families(measured: Iterable[Timed]) -> dict[Key, Pace]:
    """{family: the median of the paces of its tasks}"""
    found: dict[Key, list[Pace]] = {}
    for one in measured:
        found.setdefault(_family(one.spec), []).append(one.pace)
    return {family: median_high(paces) for family, paces in found.items()}


def pace_of(record: Record) -> Pace | None:
    """Return how fast a recorded run was trained; None if its seconds are those of two devices."""
    if Device.of(record).kind == "several":
        return None
    cost = record["cost"]
    return Pace(device_seconds(record) / cost["steps"], cost.get("stacked", 1))
