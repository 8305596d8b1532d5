"""Say what results cost: prices of artifacts, hours spent, notebooks' times.

Hours are a core's, or a GPU's: what a run took there, evaluation included, or its share where
several shared the device. Prices come from what was measured on the device
(:mod:`relength.runs.prices`) and from nowhere else: what was never measured there is *unknown*.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from relength.paths import EXECUTED
from relength.report.markdown import table
from relength.report.scoreboard import SCALES, Survey, priced
from relength.runs import plan
from relength.runs.plan import Run
from relength.runs.prices import (
    Device,
    OwnRun,
    Prices,
    Timed,
    measured_on,
    own_runs,
    timed,
)
from relength.runs.progress import clock
from relength.runs.store import Record, Store, device_seconds
from relength.specs import registry
from relength.specs.experiments import Experiment, anchor_of, experiments
from relength.verdicts import claims
from relength.verdicts.claim_models import Cell
from relength.verdicts.wording import noun_for

# --- prices of artifacts --------------------------------------------------------------------------


def prices(survey: Survey) -> str:
    """Tabulate what a full set of runs costs, what is spent of it and what is missing, per device;
    and what the judged runs take at the paper's own scale.
    """
    recorded = own_runs(survey.store)
    own = {
        experiment: [run.record for run in recorded if experiment.wants(run.spec)]
        for experiment in experiments().values()
        if not experiment.borrows
    }
    few = timed(survey.store)
    known = {device: Prices(recorded, device, few=few) for device in _devices(recorded, few)}
    devices = {
        experiment: measured_on([experiment], mine, few) or _estimating(experiment, known) or [None]
        for experiment, mine in own.items()
    }
    claimed = _claimed()
    rows = [
        _price(experiment, scale, device, survey.store, mine, known[device], claimed)
        for experiment, mine in own.items()
        for scale in SCALES
        for device in devices[experiment]
    ]
    hours = ("spent (h)", "missing (h)", "in all (h)")
    each = table(
        ("rebuilds", "scale", "trainings", "judged", "recorded", "device", *hours),
        rows,
        name="tab-prices",
        caption=f"The price of each artifact: {plan.least_seeds()} seeds of every run of its "
        "experiment, with all readings. Runs that another experiment's file keeps are *shared* and "
        "count in both. *Judged* are the runs of cells that claims judge; *recorded* are those "
        "made on whatever device. *Spent* is the "
        "wall-clock time of the runs recorded on this device, with any other work that it did. "
        "*Missing* and *in all* multiply the runs' steps by the seconds per step of the fastest "
        "run of the same kind there; a kind that was never trained there has the pace of a few "
        "steps that were timed, or the median pace of the same model on other tasks of the "
        "family. They take every training to run to its last epoch, though many end early.",
        numbers=("trainings", "judged", "recorded", *hours),
    )
    whole = table(
        ("rebuilds", "trainings", "steps", "device", "time (h)", "without a price"),
        [
            _at_the_papers_scale(experiment, device, known[device])
            for experiment, found in devices.items()
            for device in found
            if device is not None
        ],
        name="tab-papers-scale",
        caption="The trainings at the paper's own scale in the readings that claims judge, "
        f"{plan.least_seeds()} seeds of each, and how long one device takes for those that have a "
        "price there.",
        numbers=("trainings", "steps", "time (h)", "without a price"),
    )
    return f"{each}\n{whole}"


def _at_the_papers_scale(experiment: Experiment, device: Device, known: Prices) -> tuple:
    """A row of the table of :func:`at_the_papers_scale`."""
    found = at_the_papers_scale(experiment, known)
    return (
        rebuilds(experiment),
        f"{found.trainings:,}",
        f"{found.steps:,}",
        str(device),
        _hours(found.seconds) if found.unpriced < found.trainings else "unknown",
        f"{found.unpriced:,}",
    )


class Price(NamedTuple):
    """The price of some trainings on a device: those without a price add no seconds."""

    trainings: int
    steps: int
    seconds: float
    unpriced: int


def at_the_papers_scale(experiment: Experiment, known: Prices) -> Price:
    """The price of the arms that claims judge, at the paper's scale, by prices on a device."""
    runs = plan.choose((experiment.name,), "paper", plan.least_seeds())
    specs = [r.spec for r in runs if experiment.judges(r.spec.row, r.spec.model.arm)]
    return Price(len(specs), sum(map(known.steps, specs)), *known.total(specs))


def rebuilds(experiment: Experiment) -> str:
    """Name what an experiment rebuilds, as readers know it: ABC Tables 3, 13; Figures 2a, 2b.

    With what is made from its runs alone, on whichever page.
    """
    paper = registry.papers()[experiment.paper].short
    if any(anchor_of(name, experiment.name) != name for name in experiment.artifacts):
        return f"{paper} {experiment.heading}"  # a part of a table
    named: dict[str, list[str]] = {}
    borrowers = [e for e in experiments().values() if e.borrows == experiment.name]
    for artifact in (name for e in (experiment, *borrowers) for name in e.artifacts):
        _, kind, *number = artifact.split("-")
        named.setdefault({"fig": "Figure"}.get(kind, kind.capitalize()), []).append(
            " ".join(number)
        )
    listed = [f"{noun_for(len(n), kind)} {', '.join(n)}" for kind, n in named.items()]
    return f"{paper} {'; '.join(listed)}" if listed else f"{paper}, {experiment.heading}"


def _devices(recorded: Iterable[OwnRun], few: Iterable[Timed]) -> list[Device | None]:
    """Every device on which anything was measured; None stands for no device."""
    made = (Device.of(run.record) for run in recorded)
    return list(dict.fromkeys([*made, *(one.device for one in few), None]))


def _estimating(experiment: Experiment, known: dict[Device | None, Prices]) -> list[Device]:
    """The devices on which other work of the family tells an experiment's price."""
    specs = [spec for scale in SCALES for spec in experiment.specs(scale, [0])]
    return [
        device
        for device, prices in known.items()
        if device is not None and any(prices.pace(spec) for spec in specs)
    ]


def _price(
    experiment: Experiment,
    scale: str,
    device: Device | None,
    store: Store,
    mine: Iterable[Record],
    known: Prices,
    claimed: dict[str, set[Cell]],
) -> tuple:
    """A row of the table of prices.

    mine     the experiment's records
    known    prices on the device
    claimed  the cells that claims judge, by experiment
    """
    here = [r for r in mine if r["spec"]["scale"] == scale and Device.of(r) == device]
    runs = plan.choose((experiment.name,), scale, plan.least_seeds())
    left = plan.missing(runs, store)
    lacking = {run.spec.key for run in left}
    judged = plan.least_seeds() * len({*experiment.cells(scale)} & claimed[experiment.name])
    return (
        rebuilds(experiment),
        scale,
        _of_these(runs, experiment),
        f"{judged:,}",
        _of_these([run for run in runs if run.spec.key not in lacking], experiment),
        "" if device is None else str(device),
        _hours(sum(map(device_seconds, here))) if here else "",
        _worth(known.total(run.spec for run in left), len(left)),
        _worth(known.total(run.spec for run in runs), len(runs)),
    )


def _claimed() -> dict[str, set[Cell]]:
    """The cells that claims judge, {experiment: {(model, task)}}."""
    found: dict[str, set[Cell]] = defaultdict(set)
    for paper in claims.papers():
        for claim in claims.load(paper):
            found[claim.source.experiment].update(claim.cells)
    return found


def _of_these(runs: list[Run], experiment: Experiment) -> str:
    """Word the number of runs, and how many of them the file of another experiment keeps."""
    shared = sum(run.experiment != experiment for run in runs)
    return f"{len(runs):,} ({shared:,} shared)" if shared else f"{len(runs):,}"


def _worth(total: tuple[float, int], runs: int) -> str:
    seconds, unknown = total
    return priced(_hours(seconds), unknown, runs) if runs else "0"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:,.1f}"


# --- what was executed ----------------------------------------------------------------------------


def spent(survey: Survey) -> str:
    """Every execution in the store, by what it was for and where it was made."""
    made = survey.costs
    if made.empty:
        return "*Not run*: the store is empty.\n"
    names = {experiment.name: rebuilds(experiment) for experiment in experiments().values()}
    return table(
        ("rebuilds", "scale", "device", "PyTorch", "trainings", "failed", "steps", "hours"),
        (
            (
                *(names.get(row.experiment, row.experiment), row.scale, row.device, row.torch),
                *(f"{row.trainings:,}", row.failed, f"{row.steps:,}", f"{row.hours:,.1f}"),
            )
            for row in made.itertuples()
        ),
        name="tab-cost",
        caption=f"Everything in the store: {int(made.trainings.sum()):,} trainings, "
        f"{made.hours.sum():,.1f} hours in all. Runs whose settings no experiment has any longer "
        "are among them.",
        numbers=("trainings", "failed", "steps", "hours"),
    )


def notebooks(survey: Survey) -> str:
    """Tabulate how long papermill took for each notebook of this book, and for its slowest cell."""
    rows = list(_executed())
    if not rows:
        return "No notebook has been executed for this book.\n"
    total = sum(seconds for *_, seconds in rows)
    return table(
        ("notebook", "executed", "seconds", "slowest cell", "its seconds"),
        (
            (f"{{doc}}`/executed/{name}`", when, f"{seconds:.1f}", f"`{cell}`", f"{slowest:.1f}")
            for name, when, cell, slowest, seconds in rows
        ),
        name="tab-notebooks",
        caption=f"The notebooks of this book, as papermill executed them from recorded runs: "
        f"{clock(total)} in all, on the machine that built it. Several run at a time. That makes "
        "each slower, and the sum longer than the build. None of them trained anything.",
        numbers=("seconds", "its seconds"),
    )


def _executed() -> Iterator[tuple[str, str, str, float, float]]:
    """Name, time, slowest cell and its seconds, and all seconds, of the executed notebooks."""
    for path in sorted(EXECUTED.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        made = notebook["metadata"]["papermill"]
        cells = [
            (cell["metadata"]["papermill"]["duration"], _last_line(cell["source"]))
            for cell in notebook["cells"]
            if cell["cell_type"] == "code" and "papermill" in cell["metadata"]
        ]
        slowest, source = max((c for c in cells if c[0] is not None), default=(0.0, ""))
        yield path.stem, made["end_time"][:10], source, slowest, made["duration"]


def _last_line(source: list[str] | str) -> str:
    lines = "".join(source).strip().splitlines() or [""]
    return lines[-1].replace("`", "'")


PASSAGES = {
    "prices": prices,
    "spent": spent,
    "notebooks": notebooks,
}
