"""Time a few steps of runs that have no price on a device, so that they get one."""

from collections.abc import Iterator, Sequence

from relength.bench import speed
from relength.runs import plan
from relength.runs.prices import TIMED, Pace, Prices, own_runs, timed
from relength.runs.store import Store
from relength.specs.spec import RunSpec, Scale
from relength.training.pace import step_seconds


def measure(
    asked: Sequence[str], scale: Scale, device: str, store: Store
) -> Iterator[tuple[RunSpec, Pace, float]]:
    """Time steps of the runs of experiments, and keep each pace at once; yields run, pace, price.

    A run that has a price is left out, and so is one whose data or weights are not here. One run
    stands for its seeds, and for the same model on other tasks of the family.

    price  seconds of the whole run
    """
    prices = Prices.on(device, own_runs(store), timed(store))
    runs, _ = plan.at_hand(plan.choose(asked, scale, 1))
    for run in runs:
        if prices.pace(run.spec) is None:
            pace = Pace(step_seconds((run.spec,), device))
            fields = {"key": run.spec.key, "spec": run.spec.model_dump(mode="json")}
            outcome = {"kind": TIMED, **fields, "seconds": pace.seconds, "baseline_threads": 1}
            speed.keep(store, outcome, device)
            prices.note(run.spec, pace)
            yield run.spec, pace, prices.seconds(run.spec)
