"""What closes a notebook: deviations from the paper's runs, costs, and the price of a rebuild."""

from html import escape

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from relength.errors import RelengthError
from relength.paths import BOOK
from relength.report import exhibits
from relength.report.exhibits import Exhibit, csv, rows_table
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import row_label, title
from relength.report.tables import number
from relength.spec import RunSpec
from relength.store import Record

FOLDER = BOOK / "deviations"


class Deviation(BaseModel):
    """One difference from the paper's runs; the fields are described in the files themselves."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    title: str = Field(min_length=1)
    applies: str = Field(min_length=1)
    paper: str = Field(min_length=1)
    released: str = Field(min_length=1)
    here: str = Field(min_length=1)
    why: str = Field(min_length=1)
    effect: str = Field(min_length=1)


def load_deviations(paper: str) -> list[Deviation]:
    """The deviations of a paper's runs, from ``book/deviations/<paper>.yml``."""
    path = FOLDER / f"{paper}.yml"
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
        return TypeAdapter(list[Deviation]).validate_python(entries)
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise RelengthError(
            f"The deviations cannot be read: {error}. They belong in {path}."
        ) from None


def deviations(paper: str) -> Exhibit:
    """Every known deviation: what text and code of the paper do, what we do and why."""
    entries = load_deviations(paper)
    columns = dict.fromkeys(("what", "the paper", "here, and why", "expected effect"), "prose")
    rows = [
        (
            f"<b>{escape(e.title)}</b><br><small>{escape(e.applies)}</small>",
            "".join(
                f"<p>{source}: {escape(says)}</p>"
                for source, says in (("Text", e.paper), ("Code", e.released))
                if says != "Nothing."
            ),
            f"<p>{escape(e.here)}</p><p><small>{escape(e.why)}</small></p>",
            escape(e.effect),
        )
        for e in entries
    ]
    data = pd.DataFrame([e.model_dump() for e in entries])
    name = f"{paper}-deviations"
    caption = f"<b>What we do differently, {len(entries)} points.</b>"
    html = exhibits.table(rows_table(columns, rows), caption, name, [csv(name, data)])
    return Exhibit(html, f"{len(entries)} deviations from the paper's runs.", data)


def costs(runs: Runs) -> Exhibit:
    """What is recorded, by scale and device, and what a complete grid would take."""
    recorded = _recorded(runs.every)
    rows = [
        (
            f"recorded, {row.scale}",
            escape(row.device),
            f"{row.trainings:,}",
            str(row.failed),
            f"{row.steps:,}",
            _hours(row.hours),
        )
        for row in recorded.itertuples()
    ]
    for scale, seeds in (("reduced", 5), ("paper", 5)):
        estimate = rebuild(runs, scale, seeds)
        rows.append(
            (
                f"<i>to rebuild, {scale}, {seeds} seeds</i>",
                "one core, at the speed recorded",
                f"{estimate['trainings']:,}",
                "–",
                f"{estimate['steps']:,}",
                _hours(estimate["hours"]),
            )
        )
    columns = {"what": "text", "device": "text"} | dict.fromkeys(
        ("trainings", "failed", "steps", "hours"), "number"
    )
    name = f"{runs.experiment.name}-costs"
    caption = (
        "<b>Trainings and their price.</b> Hours are those of single processes added up, "
        "evaluation included. The lines <i>to rebuild</i> multiply the steps of a complete grid "
        "by the recorded seconds per step of each model and task; at scale reduced, runs count "
        "with the epochs they took. Divide by the number of cores."
    )
    html = exhibits.table(rows_table(columns, rows), caption, name, [csv(name, recorded)])
    trainings = int(recorded["trainings"].sum())
    return Exhibit(html, f"{trainings:,} trainings, {recorded['hours'].sum():.1f} hours.", recorded)


def _recorded(records: tuple[Record, ...]) -> pd.DataFrame:
    by = ["scale", "device"]
    sums = ["trainings", "failed", "steps", "hours"]
    rows = [
        {
            "scale": record["spec"]["scale"],
            "device": record["provenance"]["device_name"],
            "trainings": int(record["status"] == "ok"),
            "failed": int(record["status"] == "failed"),
            "steps": record.get("cost", {}).get("steps", 0),
            "hours": seconds(record) / 3600,
        }
        for record in records
    ]
    return pd.DataFrame(rows, columns=[*by, *sums]).groupby(by, as_index=False)[sums].sum()


def seconds(record: Record) -> float:
    """Wall-clock seconds of a run, evaluation included; 0 for one that failed."""
    cost = record.get("cost", {})  # a run that failed has none
    return cost.get("training_seconds", 0.0) + cost.get("evaluation_seconds", 0.0)


def rebuild(runs: Runs, scale: str, seeds: int) -> dict[str, float]:
    """Trainings, steps and hours on one core for a complete grid; hours are NaN without a record to
    go by.

    A cell's seconds per step are the median of its recorded runs, or of all runs where it has none.
    """
    told = [r for r in runs.every if r["status"] == "ok" and r["spec"]["scale"] != "smoke"]
    known = pd.DataFrame(
        [
            {
                "cell": _cell(
                    r["spec"]["model"]["name"], r["spec"]["model"]["arm"], r["spec"]["task"]["name"]
                ),
                "scale": r["spec"]["scale"],
                "steps": r["cost"]["steps"],
                "pace": seconds(r) / r["cost"]["steps"],
            }
            for r in told
        ],
        columns=["cell", "scale", "steps", "pace"],
    )
    pace = known.groupby("cell")["pace"].median()
    taken = known[known["scale"] == scale].groupby("cell")["steps"].median()
    steps, hours = 0, 0.0
    grid = runs.experiment.specs(scale, range(seeds))
    for spec in grid:
        cell = _cell(spec.model.name, spec.model.arm, spec.task.name)
        most = _most_steps(spec)
        here = int(taken.get(cell, most)) if spec.training.solved_accuracy is not None else most
        steps += here
        hours += here * pace.get(cell, known["pace"].median()) / 3600
    return {"trainings": len(grid), "steps": steps, "hours": hours}


def _cell(model: str, arm: str, task: str) -> str:
    return f"{model}/{arm}/{task}"


def _most_steps(spec: RunSpec) -> int:
    return spec.training.epochs * -(-spec.task.train_size // spec.training.batch_size)


def _hours(hours: float) -> str:
    return "unknown" if hours != hours else f"{hours:,.1f}"


def cap_check(runs: Runs) -> Exhibit:
    """Equal seeds trained at both scales: does the shorter training change the answer?"""
    pairs: dict[tuple, dict[str, Record]] = {}
    for record in runs.every:
        spec = record["spec"]
        if record["status"] == "ok" and spec["scale"] != "smoke":
            who = (spec["task"]["name"], spec["model"]["name"], spec["model"]["arm"], spec["seed"])
            pairs.setdefault(who, {}).setdefault(spec["scale"], record)
    rows, numbers = [], []
    for (task, model, arm, seed), both in sorted(pairs.items()):
        if set(both) != {"reduced", "paper"}:
            continue
        cells = []
        for test in both["reduced"]["checkpoints"]["selected"]["tests"]:
            values = {scale: _exact(record, test) for scale, record in both.items()}
            cells.append(f"{number(values['reduced'])} | {number(values['paper'])}")
            numbers.append(dict(task=task, model=model, arm=arm, seed=seed, test=test, **values))
        label = row_label(model, arm, runs.experiment.judged_arm)
        epochs = " | ".join(str(len(both[scale]["curve"])) for scale in ("reduced", "paper"))
        rows.append((title(task), label, str(seed), epochs, *cells))
    columns = {"task": "text", "model": "text", "seed": "number"} | dict.fromkeys(
        ("epochs", "IID", "short", "middle", "long"), "number"
    )
    name = f"{runs.experiment.name}-cap"
    caption = (
        "<b>Does the shorter training matter?</b> The same seed trained at both scales, reduced "
        "on the left of each bar and the paper's on the right: epochs, then exact match in "
        "percent at the test lengths, shortest first."
    )
    body = (
        rows_table(columns, rows)
        if rows
        else f"<p><i>{NOT_RUN}</i>: no seed has been trained at both.</p>"
    )
    data = pd.DataFrame(
        numbers, columns=["task", "model", "arm", "seed", "test", "reduced", "paper"]
    )
    html = exhibits.table(body, caption, name, [csv(name, data)] if rows else [])
    return Exhibit(html, f"{len(rows)} runs trained at both scales.", data)


def _exact(record: Record, test: str) -> float:
    return 100 * record["checkpoints"]["selected"]["tests"][test]["exact_match"]
