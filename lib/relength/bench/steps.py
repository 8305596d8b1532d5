"""Time a few steps of runs that have no price on a device, so that they get one."""

from collections.abc import Iterable, Iterator

from relength.bench import speed
from relength.runs.pace import step_seconds
from relength.runs.plan import Run
from relength.runs.prices import TIMED, Pace, Prices, own_runs, timed
from relength.runs.store import Store
from relength.specs.spec import RunSpec


def measure(runs: Iterable[Run], store: Store) -> Iterator[tuple[RunSpec, Pace, float]]:
    """Time steps of runs on one core, and keep each pace at once; yields run, pace, price.

    A run that has a price is left out. One run stands for its seeds, and for the same model on
    other tasks of the family with texts about as long.

    price  seconds of the whole run
    """
    prices = Prices.on("cpu", own_runs(store), timed(store))
    for run in runs:
        if prices.pace(run.spec) is None:
            with speed.one_thread():
                pace = Pace(step_seconds((run.spec,), "cpu"))
            fields = {"key": run.spec.key, "spec": run.spec.model_dump(mode="json")}
            outcome = {"kind": TIMED, **fields, "seconds": pace.seconds, "baseline_threads": 1}
            speed.keep(store, outcome)
            prices.note(run.spec, pace)
            yield run.spec, pace, prices.seconds(run.spec)
