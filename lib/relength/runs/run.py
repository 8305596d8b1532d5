"""From specs to records: load what is recorded, train the rest only when asked."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from relength.runs.plan import at_hand, missing, wanted
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
    fetch: bool = False,
    watch: Callable[[Iterator[Record], int], Iterable[Record]] = lambda records, total: records,
    **resources: Any,
) -> list[Record]:
    """The usable records of these specs; specs without one are simply missing from the result.

    Trains nothing unless ``train`` is true; then what is missing is trained and appended to the
    store as it finishes. Prints which runs cannot be trained here for want of data.

    refresh    train every spec again and append: nothing is overwritten
    fetch      download data that are not here
    watch      passes on the records of runs as they end, of so many, to show how far it is
    resources  where, and how long: see :class:`relength.runs.campaign.Campaign`

    Raises RelengthError, before anything is trained, when the device does not exist or the
    scheduler does not answer.
    """
    specs = list(specs)
    if train:
        from relength.runs.campaign import Campaign

        asked, without = at_hand(wanted((experiment, spec) for spec in specs), fetch)
        for reason in without:
            print(f"Not trained for want of data, {reason}.")
        runs = asked if refresh else missing(asked, store)
        for _ in watch(Campaign(runs, store, **resources).records(), len(runs)):
            pass
    keys = {spec.key for spec in specs}
    return [record for record in store.usable(*experiment.files) if record["key"] in keys]
