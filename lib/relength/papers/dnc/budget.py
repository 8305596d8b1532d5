"""Show what the length of training changes: half, once and twice the steps of a scale, on sort."""

from html import escape

import numpy as np
import pandas as pd

from relength.papers.dnc.by_length import ABOVE, TRAINED, longest
from relength.papers.dnc.when import HELD, arrival, course_of, steps_in_words
from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import aligned
from relength.report.tables import short
from relength.report.wording import words
from relength.runs.store import Record
from relength.specs.spec import RunSpec


def by_steps(runs: Runs) -> pd.DataFrame:
    """A row per controller, number of steps and seed; NaN where there is no run.

    Columns: model, steps, seed, processor, selected (the step whose weights are tested), longest
    (input above 95 %), mean (accuracy over the lengths of Table III), and of each length of the
    learning curve the step of arrival, ``first_30``, infinite for none.
    """
    found = {record["key"]: record for record in runs.records}
    rows = []
    for spec in sorted(runs.specs, key=lambda spec: spec.training.steps):
        row = {"model": spec.row, "steps": spec.training.steps, "seed": spec.seed}
        record = found.get(spec.key)
        if record is not None:
            reached = pd.Series(TRAINED.accuracies(record))
            low, high = TRAINED.averaged
            row |= {"processor": record["provenance"]["device_name"]}
            row |= {"selected": _selected_at(spec, record)}
            row |= {"longest": longest(reached), "mean": reached.loc[low:high].mean()}
            for length, course in course_of(spec, record).groupby("length"):
                above = (course["accuracy"] > ABOVE).tolist()
                row[f"first_{length}"] = arrival(course["step"].tolist(), above)
        rows.append(row)
    columns = ["model", "steps", "seed", "processor", "selected", "longest", "mean"]
    data = pd.DataFrame(rows)
    lengths = sorted(set(data.columns) - set(columns), key=lambda name: int(name[6:]))
    return data.reindex(columns=[*columns, *lengths])


def _selected_at(spec: RunSpec, record: Record) -> int:
    intervals = record["checkpoints"]["selected"]["epoch"] + 1  # counted from 0
    return intervals * spec.training.validate_every


def elsewhere(runs: Runs) -> str:
    """Say which numbers of steps were trained on which processor; empty where it is one alone."""
    made = by_steps(runs).dropna(subset="mean").groupby("processor", sort=False)["steps"]
    if len(made) < 2:
        return ""
    who = words(
        f"{words(f'{count:,}' for count in sorted(own.unique()))} steps on {name}"
        for name, own in made
    )
    return (
        f"Processors differ ({who}). They round differently, and the same seed soon takes another "
        "course, so that numbers of two processors are of two trainings."
    )


def _shown(row: pd.Series) -> list[str]:
    if np.isnan(row["mean"]):
        return [NOT_RUN]
    arrivals = [steps_in_words(row[name]) for name in row.index if name.startswith("first_")]
    return [f"{row['selected']:,.0f}", f"{row['longest']:.0f}", short(row["mean"]), *arrivals]


def _heads(data: pd.DataFrame) -> list[str]:
    lengths = [name[6:] for name in data.columns if name.startswith("first_")]
    return ["selected at", "longest", f"mean {TRAINED.span}", *(f"length {n}" for n in lengths)]


def table(runs: Runs) -> Exhibit:
    """Every controller after each number of steps."""
    data = by_steps(runs)
    caption = (
        f"<b>What would other budgets have shown?</b> {badges(runs.scale, runs.freshness)} Sort, "
        "a seed each, trained for so many steps. Then the step whose weights the rule selects, "
        f"the longest input above {ABOVE:.0f} %, the mean accuracy over lengths {TRAINED.span}, "
        f"and the step at which accuracy at a length is above {ABOVE:.0f} % for the first of "
        f"{HELD} points in a row. {elsewhere(runs)}"
    )
    name = "dnc-budget"
    if not runs.records:
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    heads = _heads(data)
    columns = {"controller": "text", **dict.fromkeys(("steps", *heads), "number")}
    rows = []
    for _, row in data.iterrows():
        shown = _shown(row)
        shown += [""] * (len(heads) - len(shown))
        rows.append([escape(row["model"]), f"{row['steps']:,}", *shown])
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    done = int(data["mean"].notna().sum())
    return Exhibit(html, f"{name}: {done} of {len(data)} cells have runs.", data)


def numbers(runs: Runs) -> str:
    """Write the table as plain text, a line per controller and number of steps."""
    data = by_steps(runs)
    rows = [["controller", "steps", *_heads(data)]]
    rows += [[row["model"], f"{row['steps']:,}", *_shown(row)] for _, row in data.iterrows()]
    width = max(map(len, rows))
    lines = aligned(*(row + [""] * (width - len(row)) for row in rows))
    return "\n".join(map(str.rstrip, lines))


def ahead(runs: Runs) -> str:
    """Say which controller leads after each number of steps, by its mean accuracy."""
    lines = []
    for steps, cells in by_steps(runs).groupby("steps"):
        cells = cells.dropna(subset="mean").sort_values("mean", ascending=False)
        if len(cells) < 2:
            lines.append(f"{steps:,} steps: not run yet.")
            continue
        means = ", ".join(f"{row.model} {short(row.mean)}" for row in cells.itertuples())
        lines.append(f"{steps:,} steps: {means}.")
    return "\n".join(lines)
