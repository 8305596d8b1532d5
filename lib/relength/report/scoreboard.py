"""Survey what of the papers is recorded and judged, and what it cost.

A *cell* is a distinct (row, task) pair of an artifact that needs a run. ``min_seeds`` is the
minimum over the cells of successful seeds of the arm that the claims judge; runs count when their
spec is the experiment's own, so a re-run with other hyperparameters adds nothing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from relength.errors import RelengthError
from relength.kept import kept
from relength.report import computed
from relength.runs import plan
from relength.runs.executors import gpu_here
from relength.runs.prices import Device, Prices, own_runs, timed
from relength.runs.store import Record, Store, device_seconds
from relength.specs import registry
from relength.specs.experiments import Experiment, experiments
from relength.specs.published import artifacts as published_artifacts
from relength.specs.spec import row_name
from relength.tasks.data import downloads
from relength.training.provenance import device_name
from relength.verdicts import claim_history, claims, judged
from relength.verdicts.judged import own_records
from relength.verdicts.wording import plural

BEGUN = ("partly", "recorded", "decided")  # states of an artifact that has runs
SCALES = ("reduced", "paper")  # smoke proves a code path and counts for nothing
CODE = (  # that a survey follows from
    *("report", "papers", "verdicts", "runs", "training", "models", "tasks", "specs"),
    *("git", "stopping", "streams"),
)


class Survey(NamedTuple):
    """Everything the overview pages show, computed once: see the functions of the same names."""

    board: pd.DataFrame
    ledger: pd.DataFrame
    costs: pd.DataFrame
    runs: pd.DataFrame
    store: Store


def survey(store: Store) -> Survey:
    """The state of all papers in a store; RelengthError for claims of a paper that is not here."""
    every = united([*(judged.ledger(paper, store) for paper in known_papers()), _computed(store)])

    def make() -> tuple[pd.DataFrame, pd.DataFrame]:
        return board(store, every), costs(store.records())

    state, spent = kept(store.named("survey"), make, *_given(store), code=CODE)
    return Survey(state, every, spent, runs(store), store)


def known_papers() -> list[str]:
    """The papers that have claims; RelengthError for claims of a paper that is not here."""
    if unknown := sorted({*claims.papers()} - {*registry.papers()}):
        raise RelengthError(
            f"book/claims/{unknown[0]}.yml has the claims of a paper that is not here: make the "
            f"folder lib/relength/papers/{unknown[0]} with a PAPER in it, and name it in PAPERS of "
            "lib/relength/specs/registry.py."
        )
    return claims.papers()


def _given(store: Store) -> tuple[bytes, ...]:
    return store.digest(), claims.written(), claim_history.state()


def _computed(store: Store) -> pd.DataFrame:
    """The claims that no run decides: of a store they read what was measured, and no runs."""
    given = (store.measured(), claims.written(), claim_history.state())
    return kept(store.named("computed"), lambda: computed.ledger(store), *given, code=CODE)


def status(store: Store) -> dict[str, Any]:
    """State of every artifact, as ``relength status --json`` prints it.

    ``{"device": {"kind": "cpu", "name": …}, "artifacts": {"<paper>-table-2": {"paper": …,
    "cells": 48, "min_seeds": {"reduced": 3, "paper": 0}, "runs": {"reduced": 320, …}, "rest":
    {"reduced": {"runs": 128, "hours": 2.5, "unpriced": 8}, …}, "verdicts": {"inconclusive": 17}},
    …}}``; an artifact without an experiment has 0 cells.

    runs, rest  of five seeds of all that it is made from, other readings included; what is missing
                of them costs ``hours`` on this machine's device, and ``unpriced`` of its runs have
                no known price
    """
    device = "cuda" if gpu_here() else "cpu"
    given = (device, device_name(device), store.digest(), claims.written(), claim_history.state())
    return kept(store.named("status"), lambda: _status(store, device), *given, code=CODE)


def _status(store: Store, device: str) -> dict[str, Any]:
    prices = Prices.on(device, own_runs(store), timed(store))
    wanted = {
        (name, scale): plan.choose((name,), scale, plan.least_seeds())
        for name in experiments()
        for scale in SCALES
    }
    every = plan.missing([run for runs in wanted.values() for run in runs], store)
    missing = {run.spec.key for run in every}
    return {
        "device": {"kind": device, "name": device_name(device)},
        "artifacts": {
            row.artifact: {
                "paper": row.paper,
                "cells": row.cells,
                "min_seeds": row.min_seeds,
                **_rest(row.artifact, wanted, missing, prices),
                "verdicts": row.verdicts,
            }
            for row in survey(store).board.itertuples()
        },
    }


def _rest(
    artifact: str,
    wanted: dict[tuple[str, str], list[plan.Run]],
    missing: set[str],
    prices: Prices,
) -> dict[str, Any]:
    """Count the runs an artifact is made from, those that are missing, and what they cost.

    wanted: all runs of each experiment and scale; missing: keys of those that are not recorded
    """
    makers = [found for found in experiments().values() if artifact in found.artifacts]
    if not makers:
        return {"runs": dict.fromkeys(SCALES, 0), "rest": {}}
    runs, rest = {}, {}
    for scale in SCALES:
        specs = [
            run.spec
            for found in makers
            for run in wanted[found.name, scale]
            if found.makes(artifact, run.spec)
        ]
        left = [spec for spec in specs if spec.key in missing]
        seconds, unpriced = prices.total(left)
        runs[scale] = len(specs)
        rest[scale] = {"runs": len(left), "hours": seconds / 3600, "unpriced": unpriced}
    return {"runs": runs, "rest": rest}


def board(store: Store, every: pd.DataFrame) -> pd.DataFrame:
    """One row per artifact of all papers, in the order of the registry.

    every  the :func:`ledger`

    Columns: artifact, paper, kind, title, needs, printed (whether the paper's text has it),
    experiment (the first that has runs of it; empty without one), cells, trained (cells with at
    least one seed), without_data (tasks without a run that train on a data set which is fetched),
    min_seeds (dict, by scale), verdicts (dict of counts), state:
    *absent* (not printed), *untouched* (no experiment), *shown* (none, but on a page:
    ``Paper.without_runs``), *planned* (no runs yet), *partly* (some cells), *recorded* (every
    cell), *decided* (a claim is reproduced or contradicted).
    """
    counts = every.groupby("artifact")["verdict"].agg(Counter).to_dict()
    own = {name: own_records(experiment, store) for name, experiment in experiments().items()}
    rows = []
    for artifact in published_artifacts().itertuples():
        name = artifact.artifact
        makers = [e for e in experiments().values() if name in e.artifacts]
        seeds = {
            scale: {
                cell: count
                for maker in makers
                for cell, count in cell_seeds(maker, own[maker.name], scale, name).items()
            }
            for scale in SCALES
        }
        verdicts = dict(counts.get(name, {}))
        rows.append(
            {
                "artifact": name,
                "paper": artifact.paper,
                "kind": artifact.kind,
                "title": artifact.title,
                "needs": artifact.needs,
                "printed": bool(artifact.metric) and not pd.isna(artifact.metric),
                "experiment": makers[0].name if makers else "",
                "cells": len(seeds["reduced"]),
                "trained": len({c for s in seeds.values() for c, n in s.items() if n}),
                "without_data": _without_data(seeds.values()),
                "min_seeds": {s: min(seeds[s].values(), default=0) for s in SCALES},
                "verdicts": verdicts,
            }
        )
    table = pd.DataFrame(rows)
    table["state"] = [_state(row) for row in table.itertuples()]
    order = registry.PAPERS.index
    return table.sort_values("paper", key=lambda p: p.map(order), kind="stable", ignore_index=True)


def _without_data(seeds: Iterable[dict[tuple[str, str], int]]) -> list[str]:
    """Tasks that nothing is recorded of, and that train on a data set which is fetched."""
    runs = Counter()
    for cells in seeds:
        for (_, task), count in cells.items():
            runs[task] += count
    return sorted(task for task, count in runs.items() if not count and task in downloads())


def cell_seeds(
    experiment: Experiment, own: Iterable[Record], scale: str, artifact: str | None = None
) -> dict[tuple[str, str], int]:
    """Successful seeds of the judged arm in every (row, task) cell of an experiment.

    own       its :func:`own_records`
    artifact  only the cells that this one is made from
    """
    seeds = dict.fromkeys(experiment.cells(scale, artifact), 0)
    for record in own:
        spec = record["spec"]
        cell = row_name(spec["model"]), spec["task"]["name"]
        judged = experiment.judges(cell[0], spec["model"]["arm"])
        if spec["scale"] == scale and judged and cell in seeds:
            seeds[cell] += 1
    return seeds


def _state(row: Any) -> str:
    if not row.printed:
        return "absent"
    if not row.experiment:
        return "shown" if row.artifact in registry.papers()[row.paper].without_runs else "untouched"
    if any(verdict in row.verdicts for verdict in claims.DECIDED):
        return "decided"
    if any(row.min_seeds.values()):
        return "recorded"
    return "partly" if row.trained else "planned"


def ledger(store: Store, paper: str = "") -> pd.DataFrame:
    """One row per claim of every paper that has claims, or of one, with today's verdict.

    The columns are :data:`relength.verdicts.claims.COLUMNS`, ``prose``: whether the paper makes the
    claim in words (True) or prints it as one cell of a table (False), and for claims that no run
    decides ``page`` and ``unit`` (:mod:`relength.report.computed`), else empty. RelengthError for a
    paper without claims.
    """
    if not paper:
        return survey(store).ledger
    if paper not in known_papers():
        if (of := paper.partition("-")[0]) in known_papers():
            raise RelengthError(f"{paper} names a claim and no paper: ask for those of {of}.")
        known = ", ".join(known_papers())
        raise RelengthError(f"There are no claims of {paper!r}: choose from {known}.")
    tables = [judged.ledger(paper, store)]
    if registry.papers()[paper].computed:
        whole = _computed(store)
        tables.append(whole[whole["paper"] == paper])
    return united(tables)


def runs(store: Store) -> pd.DataFrame:
    """The usable runs of every experiment's own specs (:func:`relength.runs.store.frame`).

    A run that two experiments want is there once for each of them.
    """
    tables = [judged.runs(paper, store) for paper in registry.papers()]
    return pd.concat([t for t in tables if len(t)] or tables[:1], ignore_index=True)


def united(ledgers: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """One :func:`ledger` of several, paper by paper."""
    tables = [one if "page" in one else one.assign(page="", unit="") for one in ledgers]
    table = pd.concat(tables, ignore_index=True)
    table = table.sort_values("paper", key=lambda p: p.map(registry.PAPERS.index), kind="stable")
    return table.assign(prose=table["where"] != "").reset_index(drop=True)


def costs(
    records: Iterable[Record], by: Sequence[str] = ("experiment", "scale", "device", "torch")
) -> pd.DataFrame:
    """Trainings, failures, optimiser steps and hours of records, summed by what they share.

    by  of experiment, scale, device and torch
    """
    rows = [
        {
            "experiment": record["experiment"],
            "scale": record["spec"]["scale"],
            "device": Device.of(record).name,
            "torch": record["provenance"]["torch"],
            "trainings": int(record["status"] == "ok"),
            "failed": int(record["status"] == "failed"),
            "steps": record.get("cost", {}).get("steps", 0),
            "hours": device_seconds(record) / 3600,
        }
        for record in records
    ]
    sums = ["trainings", "failed", "steps", "hours"]
    return pd.DataFrame(rows, columns=[*by, *sums]).groupby([*by], as_index=False)[sums].sum()


def priced(known: str, unpriced: int, runs: int) -> str:
    """Word the price of runs, as far as it is known: *3.2*, *3.2 + 4 runs unknown*, *unknown*."""
    if runs and unpriced == runs:
        return "unknown"
    return f"{known} + {plural(unpriced, 'run')} unknown" if unpriced else known
