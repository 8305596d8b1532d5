"""Tell how the runs of a paper's tables ended, beside what it prints: the findings count from
it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from relength.report import exhibits, figures
from relength.report.exhibits import Exhibit, badges
from relength.report.runs import Runs
from relength.report.scoreboard import SCALES, Survey
from relength.report.style import LIGHT, Layout, frameless
from relength.report.tables import comparison
from relength.specs import registry
from relength.specs.experiments import experiment
from relength.specs.margins import load_margins

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTHING = "*Nothing is recorded yet.*\n"
ROW = 0.34  # inches of a row of marks
FOOT = 0.3  # inches below the last row of marks, for the scale of percent


def tabled() -> list[str]:
    """The papers whose main table has an experiment, and that so have a chapter of findings."""
    return [name for name, paper in registry.papers().items() if paper.main]


def main_table(paper: str) -> str:
    """The experiment of a paper's main table."""
    return registry.papers()[paper].main


def busiest(survey: Survey, name: str) -> Runs:
    """An experiment's first seeds at the scale that has most runs."""
    own = survey.runs[survey.runs["experiment"] == name].drop_duplicates("run_id")
    counts = own["scale"].value_counts()
    scale = max(reversed(SCALES), key=lambda s: counts.get(s, 0))
    return Runs.read(experiment(name), scale, load_margins().least_seeds, survey.store)


def main_runs(paper: str, survey: Survey) -> Runs:
    """The runs of the main table, with those of a reading that it does not have."""
    runs, further = busiest(survey, main_table(paper)), registry.papers()[paper].further
    if further is None:
        return runs
    name, arm = further
    more = Runs.read(experiment(name), runs.scale, load_margins().least_seeds, survey.store)
    return replace(
        runs,
        specs=runs.specs + tuple(spec for spec in more.specs if spec.model.arm == arm),
        records=runs.records
        + tuple(record for record in more.records if record["spec"]["model"]["arm"] == arm),
        states={**runs.states, **more.states},
    )


def ends(runs: Runs) -> pd.DataFrame:
    """A row per run: its accuracy on the lengths trained on and at the longest, in percent.

    Columns: task, model, arm, seed, known, test (name of the longest), longest, state (the longest
    by the levels of the margins file: "solved", "failed" or "between").
    """
    rows = []
    for model, arm in runs.rows:
        for task, tests in runs.tests.items():
            pairs = zip(
                runs.cell(model, arm, task),
                runs.values(model, arm, task, tests[0]),
                runs.values(model, arm, task, tests[-1]),
                strict=True,
            )
            for record, known, longest in pairs:
                seed = record["spec"]["seed"]
                rows.append(
                    (task, model, arm, seed, known, tests[-1], longest, level_name(longest))
                )
    names = ["task", "model", "arm", "seed", "known", "test", "longest", "state"]
    return pd.DataFrame(rows, columns=names)


def level_name(value: float) -> str:
    """The level of the margins file that holds a percentage, or "between" if none does."""
    for name, level in load_margins().levels.items():
        if level.holds(value):
            return name
    return "between"


def beside_printed(runs: Runs) -> pd.DataFrame:
    """The printed cells that have runs, each reading in its own row, and whether ours are near."""
    data = comparison(runs)
    data = data[data["paper"].notna() & (data["seeds"] > 0)]
    return data.assign(near=data["apart"].eq(False))


def beyond_next(runs: Runs, data: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of data that are of tests beyond L+1, the first unseen length."""
    far = [row.test not in runs.tests[row.task][:2] for row in data.itertuples()]
    return data[np.array(far, dtype=bool)]


def cells_have(count: int) -> str:
    """The subject and verb of a sentence about so many cells."""
    return "One cell has" if count == 1 else f"{count} cells have"


def few_seeds(seeds: pd.Series) -> str:
    """A warning where a cell has fewer seeds than verdicts take."""
    if seeds.min() >= load_margins().least_seeds:
        return ""
    least = load_margins().least_seeds
    return (
        f" (Some cells have fewer seeds than the {least} that a verdict takes, at least "
        f"{seeds.min()}: there it may be chance.)"
    )


def rows_of(data: pd.DataFrame, model: str, arm: str) -> pd.DataFrame:
    """The rows of one reading of a model."""
    return data[(data["model"] == model) & (data["arm"] == arm)]


def percent_axis(axes: "Axes", top: float, bottom: float) -> None:
    """Rows of marks over a scale of percent."""
    axes.patch.set_visible(False)
    axes.set(xlim=(-3, 103), ylim=(bottom, top))
    axes.set_yticks([])
    axes.set_xticks([0, 50, 100], ["0", "50", "100 %"])
    axes.tick_params(length=0, labelsize=7, labelcolor=LIGHT.muted)
    frameless(axes)
    for value in (0, 50, 100):
        axes.axvline(value, color=LIGHT.rule, linewidth=0.6, zorder=0)


def exhibit(
    draw: Callable[[Layout], "Figure"],
    name: str,
    caption: str,
    alt: str,
    data: pd.DataFrame,
    runs: Runs,
) -> Exhibit:
    """A figure among the prose of a page, with the data behind it and the specs of its runs."""
    return figures.drawn(
        draw,
        name,
        caption,
        alt,
        data,
        1,
        runs.page,
        exhibits.specs(name, runs.records),
        kind=badges(runs.scale, runs.freshness),
        prose=True,
    )
