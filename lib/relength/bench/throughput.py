"""What Dask costs beside plain processes: the same runs through both executors, in turns.

``relength bench --executors`` measures it on this machine and keeps it beside the records.
"""

import statistics
import tempfile
import time
from typing import Any

from relength.errors import RelengthError
from relength.runs.executors import THIS_MACHINE
from relength.runs.plan import Run
from relength.runs.store import Record, Store
from relength.specs.experiments import experiment
from relength.specs.spec import RunSpec, make_spec

KIND = "executors"  # what tells these measurements from those of training speed
PLACES = {"processes": None, "Dask": THIS_MACHINE}
# Half a minute or more each, as handing out shorter runs is not what either is for.
EXPERIMENT, TASK, MODEL, EPOCHS = "mla_table2", "lookup", "OneStepAttn", 5


def specs(runs: int) -> list[RunSpec]:
    """Short runs that differ in their seeds."""
    chosen = {"task": TASK, "model": MODEL, "scale": "reduced", "training": {"epochs": EPOCHS}}
    return [make_spec(**chosen, seed=seed) for seed in range(runs)]


def measure(rounds: int, workers: int = 2, runs: int = 8) -> dict[str, Any]:
    """Seconds from the first run to the last record, start and end of the workers included.

    The executors change their order from round to round. Returns ``{"kind": "executors", "seconds":
    {"processes": [130.2, …], "Dask": [135.1, …]}, "training_seconds": {…}, …}``, the latter being
    those that the runs spent training and testing, by the clocks of their workers.

    Raises RelengthError when a run fails.
    """
    from relength.runs.campaign import Campaign

    wanted = [Run(experiment(EXPERIMENT), spec) for spec in specs(runs)]
    walls: dict[str, list[float]] = {name: [] for name in PLACES}
    inside: dict[str, list[float]] = {name: [] for name in PLACES}
    for number in range(rounds):
        for name in sorted(PLACES, reverse=bool(number % 2)):
            with tempfile.TemporaryDirectory(prefix="relength-") as folder:
                started = time.perf_counter()
                campaign = Campaign(
                    wanted, Store(folder), ranked=True, workers=workers, cluster=PLACES[name]
                )
                records = list(campaign.records())
                walls[name].append(time.perf_counter() - started)
            inside[name].append(sum(map(_seconds, records)))
    return {
        "kind": KIND,
        "task": TASK,
        "model": MODEL,
        "epochs": EPOCHS,
        "runs": runs,
        "workers": workers,
        "rounds": rounds,
        "seconds": walls,
        "training_seconds": inside,
    }


def _seconds(record: Record) -> float:
    if record["status"] != "ok":
        reason = record["error"].strip().splitlines()[-1]
        raise RelengthError(
            f"A run failed while executors were timed ({reason}), so that nothing can be said of "
            "them: mend that, then measure again."
        )
    return record["cost"]["training_seconds"] + record["cost"]["evaluation_seconds"]


def shares(outcome: dict[str, Any]) -> list[float]:
    """Runs per second through Dask over those through processes, round by round."""
    seconds = outcome["seconds"]
    return [plain / dask for plain, dask in zip(seconds["processes"], seconds["Dask"], strict=True)]


def share(outcome: dict[str, Any]) -> float:
    """The median of :func:`shares`."""
    return statistics.median(shares(outcome))
