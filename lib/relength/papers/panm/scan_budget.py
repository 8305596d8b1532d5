"""The effect of twice the steps on two models, at one cut-off of SCAN."""

from html import escape

import numpy as np
import pandas as pd

from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import aligned
from relength.report.tables import short, signed
from relength.verdicts.wording import plural

MEASURES = {"known": "held out", "beyond": "beyond", "stopped": "beyond, stopped"}


def by_steps(runs: Runs) -> pd.DataFrame:
    """A row per model and number of steps, in percent; NaN where there is no run.

    Columns: model, arm, cut_off, steps, seed, known (commands within the cut-off that were held
    out), beyond (commands beyond it), stopped (the same, decoding stopped at the true length).
    """
    found = {record["key"]: record for record in runs.records}
    rows = []
    for spec in runs.specs:
        row = {"model": spec.row, "arm": spec.model.arm, "cut_off": spec.task.cut_off}
        row |= {"steps": spec.training.steps, "seed": spec.seed}
        record = found.get(spec.key)
        if record is not None:
            tests = record["checkpoints"]["selected"]["tests"]
            row |= {"known": 100 * tests["iid"]["exact_match"]}
            row |= {"beyond": 100 * tests["length"]["exact_match"]}
            row |= {"stopped": 100 * tests["length"]["exact_match_true_length"]}
        rows.append(row)
    return pd.DataFrame(rows, columns=["model", "arm", "cut_off", "steps", "seed", *MEASURES])


def _shown(row: pd.Series) -> list[str]:
    if np.isnan(row["beyond"]):
        return [NOT_RUN, *[""] * (len(MEASURES) - 1)]
    return [short(row[name]) for name in MEASURES]


def table(runs: Runs) -> Exhibit:
    """Both models after both numbers of steps."""
    data, name = by_steps(runs), "panm-scan-budget"
    command = exhibits.training(runs)
    caption = (
        f"<b>What do twice the steps change?</b> {badges(runs.scale, runs.freshness)} Cut-off "
        f"{data['cut_off'].iloc[0]}, a seed each. Exact match in percent on commands within the "
        "cut-off that were held out, on those beyond it, and on these once more with decoding "
        f"stopped at the true length. The runs are <code>{command} --seeds 1</code>."
    )
    if not runs.records:
        return exhibits.waiting(caption, name, f"{command} --seeds 1", data)
    columns = {"model": "text", **dict.fromkeys(("steps", *MEASURES.values()), "number")}
    rows = [[escape(r["model"]), f"{r['steps']:,}", *_shown(r)] for _, r in data.iterrows()]
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    done = int(data["beyond"].notna().sum())
    return Exhibit(html, f"{name}: {done} of {len(data)} cells have runs.", data)


def numbers(runs: Runs, usual: Runs) -> str:
    """Write the table as plain text, and what the second half of the training changed.

    usual  all runs of the page, whose further seeds say how much a seed changes
    """
    data = by_steps(runs)
    rows = [["model", "steps", *MEASURES.values()]]
    rows += [[r["model"], f"{r['steps']:,}", *_shown(r)] for _, r in data.iterrows()]
    return "\n".join([*map(str.rstrip, aligned(*rows)), "", *_changes(data), *_seeds(data, usual)])


def _seeds(data: pd.DataFrame, usual: Runs) -> list[str]:
    """Say between which numbers the seeds of the usual number of steps lie."""
    every, lines = by_steps(usual).dropna(subset="beyond"), []
    every = every[every["cut_off"].isin(data["cut_off"]) & every["steps"].isin(data["steps"])]
    every = every[every["arm"] == every["model"].map(usual.experiment.judged_arms)]
    for (model, steps), cells in every.groupby(["model", "steps"], sort=False):
        if model in set(data["model"]) and len(cells) > 1:
            said = "; ".join(
                f"{words} {short(cells[name].min())} to {short(cells[name].max())}"
                for name, words in MEASURES.items()
            )
            seeds = plural(cells["seed"].nunique(), "seed")
            lines.append(f"{model}, {seeds} of {steps:,} steps: {said}.")
    return lines


def _changes(data: pd.DataFrame) -> list[str]:
    lines = []
    for model, cells in data.sort_values("steps").groupby("model", sort=False):
        first, last = cells.iloc[0], cells.iloc[-1]
        for name, words in MEASURES.items():
            change = last[name] - first[name]
            said = NOT_RUN if np.isnan(change) else f"{signed(change)} points"
            steps = f"{last['steps']:,} steps for {first['steps']:,}"
            lines.append(f"{model}, {words}, {steps}: {said}.")
    return lines
