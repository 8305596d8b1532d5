"""The page of provenance: a row per recorded run, and all that is known of each in a data file.

The page itself holds the table only, whose rows are the anchors ``run-<key>``. Details lie in one
script per experiment, which ``book/assets/runs.js`` loads when a reader opens a run: that works
from a folder as from a server, and a thousand records weigh nothing until they are asked for.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from relength.report.expenses import rebuilds
from relength.report.freshness import State, made_by, outdated, states, verified_with
from relength.report.html import fill
from relength.report.markdown import raw
from relength.report.scoreboard import Survey
from relength.report.style import title
from relength.runs.plan import least_seeds
from relength.runs.store import Record, Store, accuracies, cause, epochs_of
from relength.specs import registry
from relength.specs.experiments import Experiment, experiments
from relength.specs.spec import row_name
from relength.training.provenance import code_fingerprint
from relength.verdicts.wording import plural

FOLDER = "runs"  # below the book's static files
POINTS = 40  # of a learning curve, at most
COLUMNS = (
    *(
        "key",
        "model",
        "arm",
        "task",
        "scale",
        "seed",
        "longest",
        "used by",
        "date",
        "code",
        "device",
    ),
)


def index(survey: Survey) -> str:
    """The table of all recorded runs, and the place where the script shows one of them."""
    records = survey.store.records()
    seen = states(survey.store, made_by(records))
    rows = [_row(survey.store, key, list(made), seen) for key, made in _by_key(records)]
    if not rows:
        return "*Not run*: the store is empty.\n"
    return (
        _outdated(survey.store)
        + _notes(survey.store)
        + raw(fill("runs", columns=COLUMNS, runs=rows))
    )


def _outdated(store: Store) -> str:
    """A warning where the code has changed since runs were replayed.

    No test asks that it has not: whoever changes the training code may commit that, and replay the
    runs, which takes a while, in another commit. Until then every badge says *earlier version*, and
    this is why.
    """
    if not outdated(store):
        return ""
    return (
        ":::{admonition} The code has changed since the runs were replayed\n:class: warning\n"
        f"`relength verify` last replayed them with the training code {verified_with(store)}, and "
        f"today's is {code_fingerprint()}: only a new replay tells whether it still gives them.\n"
        ":::\n\n"
    )


def _notes(store: Store) -> str:
    """Count what is known of some records beyond their lines."""
    lines = [
        f"- {plural(sum(n.about(record) for record in store.records()), 'record')}: {n.said}\n"
        for n in store.notes()
    ]
    if not lines:
        return ""
    head = "Lines of records are never edited. What is known of some beyond them:"
    return f":::{{note}}\n{head}\n\n{''.join(lines)}:::\n\n"


def _by_key(records: Iterable[Record]) -> Iterator[tuple[str, Iterator[Record]]]:
    """Executions of one spec together, experiments and cells in order."""

    def place(record: Record) -> tuple:
        spec = record["spec"]
        cell = (row_name(spec["model"]), spec["model"]["arm"], spec["task"]["name"])
        return record["experiment"], *cell, spec["scale"], spec["seed"], record["key"]

    ordered = sorted(records, key=lambda r: (*place(r), r["provenance"]["created"]))
    return groupby(ordered, key=lambda record: record["key"])


def _row(store: Store, key: str, made: list[Record], seen: Mapping[str, State]) -> dict[str, Any]:
    first, last = made[0], made[-1]
    spec = first["spec"]
    cells = (
        _name(first),
        spec["model"]["arm"],
        title(spec["task"]["name"]),
        spec["scale"],
        spec["seed"],
        _longest(first),
        _used_by(first),
        last["provenance"]["created"][:10],
        _fresh(store, last, seen),
        last["provenance"]["device_name"],
    )
    return {"key": key, "times": len(made), "experiment": first["experiment"], "cells": cells}


def _name(record: Record) -> str:
    """Name a run's row, and what it has otherwise than others of that name."""
    found = experiments().get(record["experiment"])
    spec = found.spec_of(record) if found else None
    remark = found.remark(spec) if spec else ""
    return ", ".join(filter(None, (row_name(record["spec"]["model"]), remark)))


def _used_by(record: Record) -> str:
    """List what is made from runs of this spec; nothing, where no experiment has its settings
    now.
    """
    return "; ".join(map(rebuilds, _users(record))) or "nothing"


def _users(record: Record) -> list[Experiment]:
    keeper = experiments().get(record["experiment"])
    theirs = [e for e in experiments().values() if keeper is None or e.paper == keeper.paper]
    return [e for e in theirs if e.owns(record) and not e.borrows]


def _longest(record: Record) -> str:
    """Accuracy at the last test, the longest as a rule, which is what most claims are about."""
    if record["status"] != "ok":
        return "failed"
    *_, last = accuracies(record).values()
    return f"{100 * last:.1f} %"


def _fresh(store: Store, record: Record, seen: Mapping[str, State]) -> str:
    """Say whether today's code is known to give a record again."""
    if record["run_id"] in store.stale:
        return "stale"
    state = seen[record["run_id"]]
    return "replayed earlier" if state == "earlier" else state


# --- data files -----------------------------------------------------------------------------------


def write(store: Store, folder: Path) -> list[Path]:
    """Write the details of all records below a folder of static files, a script per experiment.

    Each script adds to ``relengthRuns``: ``{experiment: {key: {spec, commands, executions}}}``.
    """
    by_experiment: dict[str, dict[str, Any]] = {}
    records = store.records()
    seen = states(store, made_by(records))
    for key, made in _by_key(records):
        executions = list(made)
        experiment = executions[0]["experiment"]
        by_experiment.setdefault(experiment, {})[key] = {
            "spec": executions[0]["spec"],
            "commands": commands(executions[0]),
            "executions": [_execution(store, record, seen) for record in executions],
        }
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    (folder / FOLDER).mkdir(parents=True)
    written = []
    for experiment, runs in by_experiment.items():
        data = json.dumps(runs, ensure_ascii=False, separators=(",", ":"))
        written.append(folder / FOLDER / f"{experiment}.js")
        written[-1].write_text(
            f"(window.relengthRuns ??= {{}})[{json.dumps(experiment)}] = {data};\n",
            encoding="utf-8",
        )
    return written


def commands(record: Record) -> dict[str, str]:
    """Return what to type: ``compare`` trains the run again beside its record, ``record`` adds to
    it.

    A run with settings that no experiment has any longer can be compared, and not recorded anew.
    """
    found = {"compare": f"relength verify --full {record['key']}"}
    if not (users := _users(record)):
        return found
    scale, seed = record["spec"]["scale"], record["spec"]["seed"]
    seeds = f" --seeds {seed + 1}" if seed >= (1 if scale == "smoke" else least_seeds()) else ""
    device = " --device cuda" if record["provenance"]["device"] == "cuda" else ""
    return found | {
        "record": f"relength run {users[0].name} --scale {scale}{seeds} --key {record['key']} "
        f"--refresh{device}"
    }


def _execution(store: Store, record: Record, seen: Mapping[str, State]) -> dict[str, Any]:
    """One execution as the script shows it; tests as lists, in the order of ``metrics``.

    metrics  [name in tables, whether it is a share], each
    """
    shown: dict[str, Any] = {
        "run_id": record["run_id"],
        "status": record["status"],
        "provenance": record["provenance"],
        "note": store.note_of(record),
        "freshness": _fresh(store, record, seen),
        "code_now": code_fingerprint(),
    }
    if record["status"] != "ok":
        return shown | {"error": cause(record)}
    curve = _thinned(record["curve"])
    names = registry.tasks()[record["spec"]["task"]["name"]].metrics.known()
    return shown | {
        "metrics": [[metric.words, metric.share] for metric in names.values()],
        "cost": record["cost"],
        "parameters": record["parameters"],
        "epochs": epochs_of(record),
        "curve": {
            name: [point[name] for point in curve]
            for name in ("epoch", "train_loss", "dev_accuracy", "iid_accuracy")
        },
        "checkpoints": {
            checkpoint: {
                "epoch": kept["epoch"],
                # A list, as a script would put names that are numbers first.
                "tests": [
                    [test, metrics["items"], *(metrics[name] for name in names)]
                    for test, metrics in kept["tests"].items()
                ],
            }
            for checkpoint, kept in record["checkpoints"].items()
        },
    }


def _thinned(curve: list[dict[str, float]]) -> list[dict[str, float]]:
    """Some points of a curve, evenly, first and last among them."""
    if len(curve) <= POINTS:
        return curve
    return [curve[round(i * (len(curve) - 1) / (POINTS - 1))] for i in range(POINTS)]


PASSAGES = {"runs": index}
