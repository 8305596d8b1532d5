"""Does today's code still give the recorded runs?

Probes replay their first steps; a full check trains again.

A record keeps its first training losses and a small evaluation right after them. It is *fresh*
while today's code reproduces these numbers. One record per task, model and arm stands for all that
the same code made.
"""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from relength.engine.course import PROBE_STEPS
from relength.engine.training import Trainer, train
from relength.execute import small_numbers_are_zero
from relength.margins import load_margins
from relength.papers import experiment
from relength.provenance import code_fingerprint
from relength.spec import RunSpec
from relength.store import Record, Store, usable

TOLERANCE = 1e-3  # relative


@dataclass(frozen=True)
class Probe:
    """One replayed record.

    difference  largest relative difference of a loss; None when the record was made from other data
                than can be found here, so that nothing can be said
    run_ids     all records that this probe stands for
    """

    key: str
    label: str
    recorded_with: str
    difference: float | None
    run_ids: tuple[str, ...]

    @property
    def outcome(self) -> str:
        """``fresh``, ``stale``, or ``other data``."""
        if self.difference is None:
            return "other data"
        return "fresh" if self.difference <= TOLERANCE else "stale"


def replay(record: Record) -> float | None:
    """Largest relative difference of today's first losses, on this CPU, from the recorded ones.

    None when the record was made from other data than can be found here.
    """
    spec = RunSpec.recorded(record["spec"])
    if spec.task.provenance().get("sha256") != record["provenance"]["data"].get("sha256"):
        return None
    torch.set_num_threads(1)  # as the runs were; more threads only wait for each other
    trainer = Trainer(spec)
    with small_numbers_are_zero():
        trainer.run_steps(PROBE_STEPS)
    then = [*record["first_losses"], record["probe"]["validation_loss"]]
    now = [*trainer.progress.probe["losses"], trainer.progress.probe["validation_loss"]]
    if len(then) != len(now):
        return float("inf")
    return float(np.max(np.abs(np.subtract(now, then)) / np.maximum(np.abs(then), 1e-6)))


def probes(
    store: Store, choose: Callable[[Record], bool] = lambda record: True
) -> Iterable[tuple[int, int, Probe]]:
    """Replay a record per task, model, arm and code version; yield (number, of how many, probe).

    Only records of the experiments' own specs count: the others enter no table.
    """
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in usable(store.records()):
        spec, code = record["spec"], record["provenance"]["code"]
        if choose(record) and experiment(record["experiment"]).owns(record):
            kind = (spec["task"]["name"], spec["model"]["name"], spec["model"]["arm"], code)
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


def write(store: Store, done: Iterable[Probe]) -> Path:
    """Keep the outcome beside the records, where tables and badges find it."""
    done = list(done)
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


def retrain(
    store: Store, how_many: int, choose: Callable[[Record], bool] = lambda record: True
) -> Iterable[str]:
    """Train a random sample of records again and compare every test's exact match, a line for each.

    Two executions of one spec agree when every test differs by at most the margin for accuracies.
    Which records are drawn depends on the day, so that repeated checks come around.
    """
    margin = load_margins().measures["accuracy"].absolute / 100
    records = [
        record
        for record in usable(store.records())
        if choose(record) and experiment(record["experiment"]).owns(record)
    ]
    random = np.random.default_rng(int(time.time() // 86400))
    for i in random.permutation(len(records))[:how_many]:
        spec = RunSpec.recorded(records[i]["spec"])
        with small_numbers_are_zero():
            now = train(spec).checkpoints["selected"]["tests"]
        then = records[i]["checkpoints"]["selected"]["tests"]
        apart = {test: now[test]["exact_match"] - then[test]["exact_match"] for test in then}
        verdict = "agrees with" if all(abs(d) <= margin for d in apart.values()) else "differs from"
        listed = ", ".join(f"{test} {100 * d:+.1f}" for test, d in apart.items())
        yield f"{spec.key} {spec.label}: {verdict} its record (points: {listed})"
