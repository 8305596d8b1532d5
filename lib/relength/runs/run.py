"""From specs to records: load what is recorded, train the rest only when asked."""

from collections.abc import Iterable
from typing import Any

from relength.runs.plan import missing, wanted
from relength.runs.store import Record, Store
from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec


def run_or_load(
    specs: Iterable[RunSpec],
    store: Store,
    experiment: Experiment,
    *,
    train: bool = False,
    refresh: bool = False,
    **resources: Any,
) -> list[Record]:
    """The usable records of these specs; specs without one are simply missing from the result.

    Trains nothing unless ``train`` is true; then what is missing is trained and appended to the
    store as it finishes.

    refresh    train every spec again and append: nothing is overwritten
    resources  where, and how long: see :class:`relength.runs.campaign.Campaign`

    Raises RelengthError, before anything is trained, when the device does not exist or the
    scheduler does not answer.
    """
    specs = list(specs)
    if train:
        from relength.runs.campaign import Campaign

        runs = wanted((experiment, spec) for spec in specs)
        list(Campaign(runs if refresh else missing(runs, store), store, **resources).records())
    keys = {spec.key for spec in specs}
    return [record for record in store.usable(*experiment.files) if record["key"] in keys]
