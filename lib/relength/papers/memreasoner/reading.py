"""Right line and right answer: two ways in which a question about facts goes wrong.

Records keep, of each test, the share of answers that are right, of reads that found their lines,
and of questions in which both are so.
"""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
import pandas as pd

from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import aligned, title
from relength.report.tables import short
from relength.specs.spec import RunSpec

HEADS = ("right answers", "right lines", "answered there")


class Shares(NamedTuple):
    """Percent of the questions of a test: answered right, read at the right lines, both."""

    right: float
    found: float
    both: float

    @property
    def answered(self) -> float:
        """Of questions read at the right lines, percent answered right; NaN if there are none."""
        return 100 * self.both / self.found if self.found else np.nan


def shares(runs: Runs) -> pd.DataFrame:
    """A row per run and test: model, task, test, seed, and what :class:`Shares` has.

    Runs of models that do not tell what they read are left out.
    """
    rows = []
    for record in runs.records:
        spec = RunSpec.recorded(record["spec"])
        for test, found in record["checkpoints"]["selected"]["tests"].items():
            if found.get("facts_found") is None:
                continue
            names = ("answer_accuracy", "facts_found", "answer_and_facts")
            own = Shares(*(100 * found[name] for name in names))
            label = runs.label(spec.row, spec.model.arm)
            rows.append((label, spec.task.name, test, spec.seed, *own, own.answered))
    columns = ["model", "task", "test", "seed", *Shares._fields, "answered"]
    return pd.DataFrame(rows, columns=columns)


def _lines(runs: Runs, tests: Sequence[str]) -> list[tuple[str, ...]]:
    """The cells of both forms of the table: a line per task, model and test."""
    data, lines = shares(runs), []
    cells = ((row, arm, task) for task in runs.tasks for row, arm in runs.rows)
    for row, arm, task in (cell for cell in cells if runs.plans(*cell)):
        for test in (test for test in tests if test in runs.tested(row, arm, task)):
            own = data[
                (data[["model", "task", "test"]] == [runs.label(row, arm), task, test]).all(axis=1)
            ]
            numbers = [NOT_RUN] * len(HEADS)
            if len(own):
                known = (own["right"], own["found"], own["answered"].dropna())
                numbers = [short(median(values)) if len(values) else "–" for values in known]
            lines.append((title(task), runs.label(row, arm), test, str(len(own)), *numbers))
    return lines


def table(runs: Runs, tests: Sequence[str]) -> Exhibit:
    """Medians over seeds of right answers, right lines, and answers given at right lines."""
    data, lines = shares(runs), _lines(runs, tests)
    caption = (
        f"<b>Right lines, right answers.</b> {badges(runs.scale, runs.freshness)} Medians over "
        "seeds, in percent: questions answered, questions of which every told read found its line, "
        "and of the latter those answered."
    )
    name = f"{runs.page}-reading"
    if data.empty:
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    columns = {"task": "text", "model": "text", "test": "text", "seeds": "number"}
    columns |= dict.fromkeys(HEADS, "number")
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    html = exhibits.table(rows_table(columns, lines), caption, name, links)
    return Exhibit(html, f"{len(data)} tests of runs: right lines, right answers.", data)


def numbers(runs: Runs, tests: Sequence[str]) -> str:
    """The same as plain text."""
    head = f"Right lines and right answers, {runs.scale} scale: medians over seeds, percent"
    named = [(f"{task}, {model}, {test}", *own) for task, model, test, *own in _lines(runs, tests)]
    return "\n".join([head, *aligned(("", "seeds", *HEADS), *named)])
