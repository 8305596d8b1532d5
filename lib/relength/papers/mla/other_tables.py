"""Count the numbers of the paper's further tables that come out, for the chapter of findings."""

from collections.abc import Iterator

import pandas as pd

from relength.report.findings_readings import counts_in_words, near_counts
from relength.report.markdown import table
from relength.report.outcomes import (
    NOTHING,
    beside_printed,
    busiest,
    few_seeds,
    level_name,
    main_table,
)
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import title
from relength.report.tables import printed, short
from relength.specs import published
from relength.specs.experiments import experiment, experiments

PAPER = "mla"


def beside_other_tables(survey: Survey) -> Iterator[tuple[Runs, pd.DataFrame]]:
    """Runs of each further table, and its printed numbers that the main table does not have."""
    main = {cell[:2] for cell in printed(*experiment(main_table(PAPER)).tables)}
    for name, found in experiments().items():
        if found.paper != PAPER or not found.tables or found.shows or name == main_table(PAPER):
            continue
        runs = busiest(survey, name)
        data = beside_printed(runs)
        data = data[[cell not in main for cell in zip(data["model"], data["task"], strict=True)]]
        if len(data):
            yield runs, data


def opposite(data: pd.DataFrame) -> pd.DataFrame:
    """Per cell and reading the tests that only one, print or we, solves, and the other fails.

    Columns: task, model, arm, tests, paper and ours (lists) and seeds (the fewest).
    """
    states = [{level_name(row.paper), level_name(row.ours)} for row in data.itertuples()]
    data = data[[state == {"solved", "failed"} for state in states]]
    rows = [
        (*who, list(cells["test"]), list(cells["paper"]), list(cells["ours"]), cells["seeds"].min())
        for who, cells in data.groupby(["task", "model", "arm"], sort=False)
    ]
    names = ["task", "model", "arm", "tests", "paper", "ours", "seeds"]
    return pd.DataFrame(rows, columns=names)


def other_tables(survey: Survey) -> str:
    """Say how many numbers of the other tables come out, and where ours say the opposite of
    print.
    """
    said, opposed, seeds = [], [], []
    for runs, data in beside_other_tables(survey):
        numbers = " and ".join(map(published.name_of, runs.experiment.tables))
        page = f"{{doc}}`{numbers} </executed/{runs.page}>`"
        said.append(f"- {page} (scale *{runs.scale}*): {counts_in_words(near_counts(data))}")
        seeds.append(data["seeds"])
        opposed.extend(
            (
                title(row.task),
                runs.label(row.model, row.arm),
                "; ".join(row.tests),
                "; ".join(map(short, row.paper)),
                "; ".join(map(short, row.ours)),
                str(row.seeds),
            )
            for row in opposite(data).itertuples()
        )
    if not said:
        return NOTHING
    lines = "\n".join(said)
    told = (
        "These numbers are not in the main table. So many of them come out within the margin:"
        f"{few_seeds(pd.concat(seeds))}\n\n{lines}\n"
    )
    if not opposed:
        return f"{told}\nNowhere do ours fail where the paper succeeds, or the other way round.\n"
    name = f"tab-findings-{PAPER}-opposed"
    body = table(
        ("task", "model", "tests", "printed", "ours", "seeds"),
        opposed,
        name=name,
        caption="Where ours fail and the printed numbers succeed, or the other way round, percent.",
    )
    where = f"{{numref}}`{name}` has the tests at which one succeeds and the other fails."
    return f"{told}\n{where}\n\n{body}"
