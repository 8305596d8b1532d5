"""Table 3 of the paper: means over tests, beside the best of all other models."""

from collections.abc import Sequence
from math import isnan

import numpy as np
import pandas as pd

from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.tables import matrix, printed, short
from relength.specs.published import name_of
from relength.verdicts.wording import number

OURS, OTHERS = "PANM", "Other Max"  # rows of Table 3


def means(runs: Runs, artifact: str) -> Exhibit:
    """A table of means over the tests: PANM in every arm, and the best of the rest at each test.

    As the paper makes it: means over seeds, at each test the best of the other models that have
    runs, then the mean over the tests. Cells are empty (*not run*) until a model has runs at every
    test.
    """
    paper = printed(artifact)
    tasks = tuple(dict.fromkeys(task for _, task, _ in paper))
    rivals = [pair for pair in runs.rows if pair[0] != OURS and runs.experiment.judges(*pair)]
    rows = [(OURS, runs.label(*pair), pair[1]) for pair in runs.rows if pair[0] == OURS]
    rows.append((OTHERS, OTHERS, ""))
    found = []
    for name, label, arm in rows:
        for task in tasks:
            pairs = rivals if name == OTHERS else [(name, arm)]
            best, behind = _best_mean(runs, pairs, task)
            said = [v for (r, t, _), v in paper.items() if r.startswith(name) and t == task]
            own = name == OTHERS or runs.experiment.judges(name, arm)
            value = said[0] if said and own else np.nan
            found.append(dict(row=label, task=task, ours=best, models=behind, paper=value))
    data = pd.DataFrame(found)
    cells = data.set_index(["row", "task"]).to_dict("index")

    def cell(name: str, arm: str, task: str, _: str) -> tuple[str, str, float]:
        ours = cells[OTHERS if name == OTHERS else runs.label(name, arm), task]
        below = "" if isnan(ours["paper"]) else f"<i>{number(ours['paper'])}</i>"
        if isnan(ours["ours"]):
            return f'<b class="none">{NOT_RUN}</b>{below}', NOT_RUN, np.nan
        hint = f"best of {ours['models']} of {len(rivals)} models" if name == OTHERS else ""
        return f"<b>{short(ours['ours'])}</b>{below}", hint, ours["ours"]

    caption = (
        f"<b>{name_of(artifact)} of the paper, side by side.</b> "
        f"{badges(runs.scale, runs.freshness)} Mean over the test lengths of the mean over seeds, "
        "in percent; below, smaller: what the paper prints. <i>Other Max</i> takes the best other "
        "model anew at each length, among those that have runs: point at a cell to see how many."
    )
    if not runs.records:
        name = f"{artifact}-side-by-side"
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    html = exhibits.table(
        matrix(rows, dict.fromkeys(tasks, ("",)), cell),
        caption,
        f"{artifact}-side-by-side",
        [exhibits.csv(f"{artifact}-ours", data), exhibits.notebook(runs.page)],
    )
    done = int(data["ours"].notna().sum())
    return Exhibit(html, f"{artifact}: {done} of {len(data)} means have runs.", data)


def _best_mean(runs: Runs, pairs: Sequence[tuple[str, str]], task: str) -> tuple[float, int]:
    """Mean over tests of the best mean over seeds, and how many of the (model, arm) have runs."""
    of_models = [
        [np.mean(runs.values(model, arm, task, test)) for test in runs.tests[task]]
        for model, arm in pairs
        if runs.cell(model, arm, task)
    ]
    if not of_models:
        return np.nan, 0
    return float(np.max(of_models, axis=0).mean()), len(of_models)
