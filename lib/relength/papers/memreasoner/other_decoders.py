"""Tables 8 to 12: decoders that the paper sets beside MemReasoner.

What compares them is computed from what the paper prints. Our plain decoder, which stands in for
Qwen2.5, has its runs on the pages of Tables 2 to 5; here they stand below the printed rows. Nothing
is judged: ours has the size of our MemReasoner and says nothing of a pretrained decoder.
"""

from statistics import fmean, median
from typing import NamedTuple

import numpy as np
import pandas as pd

from relength.papers.memreasoner.recounts import LONG, OURS, SHORT, WITH_QWEN
from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import aligned, title
from relength.report.tables import matrix, short, signed
from relength.report.wording import grid, words
from relength.runs.store import Store
from relength.specs import published
from relength.specs.experiments import experiment
from relength.specs.published import name_of
from relength.specs.spec import Scale

PAGE = "memreasoner_other_decoders"

LARGER = "MemReasoner (GPTJ-6B decoder)"
# Table, its columns of one test setting, and what that is.
QWEN = (
    ("memreasoner-table-8", "task 1"),
    ("memreasoner-table-9", "task 2"),
    ("memreasoner-table-11", "task 2, asked for one fact"),
)
# Columns of Table 12, and the table that has the same with the usual decoder.
GPTJ = (("babilong/task1", "memreasoner-table-2"), ("babilong/task2", "memreasoner-table-3"))
AVERAGES = (SHORT, LONG)
# Tables with Qwen2.5, and whose runs are the same with our models.
RUNS = "memreasoner_babilong", "memreasoner_two_facts", "memreasoner_locations", "memreasoner_hops"
BESIDE = dict(zip(WITH_QWEN, RUNS, strict=True))
OF_EQUAL_SIZE = ("GPT", "MemReasoner")
PRINTED, TRAINED = "printed", "ours, of equal size"


class Lead(NamedTuple):
    """MemReasoner's printed accuracy less another row's, in points, length by length."""

    setting: str
    row: str
    points: dict[str, float]

    @property
    def ahead(self) -> int:
        """At how many lengths MemReasoner is ahead."""
        return sum(points > 0 for points in self.points.values())


def _cells(artifact: str, prefix: str = "") -> pd.DataFrame:
    """A printed table with the lengths as columns."""
    cells = grid(artifact)
    kept = [name for name in cells if name.startswith(prefix)]
    cells = cells[kept].rename(columns=lambda column: column.rpartition("/")[2])
    return cells.drop(columns=[name for name in AVERAGES if name in cells])


def leads() -> list[Lead]:
    """Read every row that is not MemReasoner, in Tables 8, 9 and 11."""
    found = []
    for artifact, setting in QWEN:
        cells = _cells(artifact)
        for row in cells.index.drop(OURS):
            points = (cells.loc[OURS] - cells.loc[row]).dropna()
            found.append(Lead(setting, row, points.to_dict()))
    return found


def with_gptj() -> list[Lead]:
    """Divide MemReasoner with the usual decoder by that with GPTJ-6B, on both tasks."""
    found = []
    for columns, artifact in GPTJ:
        usual, larger = _cells(artifact).loc[OURS], _cells("memreasoner-table-12", columns)
        points = (usual - larger.loc[LARGER]).dropna()
        found.append(Lead(columns.rpartition("/")[2].replace("task", "task "), LARGER,
                          points.to_dict()))  # fmt: skip
    return found


def numbers() -> str:
    """MemReasoner's lead over each row as plain text, in points; a dash for what is not printed."""
    lines = ["Printed accuracy of MemReasoner less that of another row, in points"]
    lengths = list(_cells("memreasoner-table-2").columns)
    rows = [("", *lengths, "ahead at")]
    for lead in (*leads(), *with_gptj()):
        cells = [signed(lead.points[n]) if n in lead.points else "–" for n in lengths]
        rows.append((f"{lead.row}, {lead.setting}", *cells, f"{lead.ahead} of {len(lead.points)}"))
    return "\n".join([*lines, "", *aligned(*rows)])


def gptj_in_words() -> str:
    """Say how far both decoders are apart."""
    said = []
    for lead in with_gptj():
        points = list(lead.points.values())
        side, mean = "against" if fmean(points) > 0 else "for", short(abs(fmean(points)))
        ends = (min(points), "ahead"), (max(points), "behind")
        far = [
            f"{short(abs(most))} {where} (at "
            f"{words(length for length, p in lead.points.items() if p == most)})"
            for most, where in ends
        ]
        said.append(
            f"On {lead.setting} MemReasoner with GPTJ-6B is ahead at {sum(p < 0 for p in points)} "
            f"of {len(points)} lengths; the mean difference is {mean} points {side} it. At most it "
            f"is {words(far)}."
        )
    return "\n".join(said)


def rows_beside(artifact: str, runs: Runs) -> pd.DataFrame:
    """The cells of a table with Qwen2.5, and of our two models where they have runs.

    Columns: row, source ("printed" or "ours, of equal size"), task, test, value (percent; of ours
    the median; NaN without any), seeds (0 where it is printed).
    """
    said = published.table(artifact)
    said = said[~said["test"].isin(AVERAGES)]
    rows = [(one.row, PRINTED, one.task, one.test, one.value, 0) for one in said.itertuples()]
    arms = runs.experiment.judged_arms
    columns = said[["task", "test"]].drop_duplicates()
    for model in OF_EQUAL_SIZE:
        for task, test in columns.itertuples(index=False, name=None):
            read = test in runs.tested(model, arms[model], task)
            values = runs.values(model, arms[model], task, test) if read else []
            middle = median(values) if values else np.nan
            rows.append((model, TRAINED, task, test, middle, len(values)))
    return pd.DataFrame(rows, columns=["row", "source", "task", "test", "value", "seeds"])


def runs_beside(artifact: str, scale: Scale, seeds: int, store: Store) -> Runs:
    """The runs of our models on what a table with Qwen2.5 asks."""
    return Runs.read(experiment(BESIDE[artifact]), scale, seeds, store)


def beside(artifact: str, runs: Runs) -> Exhibit:
    """A table with Qwen2.5 as printed, with our plain decoder and our MemReasoner below."""
    data = rows_beside(artifact, runs)
    cells = data.set_index(["row", "source", "task", "test"])
    tests = data.groupby("task", sort=False)["test"].agg(lambda names: tuple(dict.fromkeys(names)))
    rows = [
        (row, f"{row}, {source}", source)
        for row, source in data[["row", "source"]].drop_duplicates().itertuples(index=False)
    ]

    def cell(row: str, source: str, task: str, test: str) -> tuple[str, str, float]:
        found = cells.loc[row, source, task, test]
        if np.isnan(found["value"]):
            return '<b class="none">–</b>', "printed as a dash" if source == PRINTED else "", np.nan
        hint = f"median of {found['seeds']} seeds" if source == TRAINED else "printed"
        return f"<b>{short(found['value'])}</b>", hint, found["value"]

    caption = (
        f"<b>{name_of(artifact)} of the paper, with ours below.</b> "
        f"{badges(runs.scale, runs.freshness)} Percent. <i>Printed</i> rows are pretrained models. "
        "<i>Ours, of equal size</i>, are medians over seeds: GPT is a plain decoder with as many "
        "parameters as our MemReasoner, both from scratch. A dash stands where a context is longer "
        "than a model can read, and where nothing is printed or run. Nothing is judged here: ours "
        "say nothing of Qwen2.5."
    )
    name = f"{artifact}-beside"
    links = [exhibits.csv(name, data), exhibits.notebook(PAGE)]
    html = exhibits.table(matrix(rows, tests.to_dict(), cell), caption, name, links)
    return Exhibit(html, f"{name}: {len(rows)} rows, printed and ours.", data)


def numbers_beside(artifact: str, runs: Runs) -> str:
    """Write the rows as plain text."""
    data = rows_beside(artifact, runs)
    lines = [f"{name_of(artifact)}, printed, and ours at {runs.scale} scale: medians, percent"]
    for task, part in data.groupby("task", sort=False):
        lengths = list(dict.fromkeys(part["test"]))
        rows = [(title(task), "seeds", *lengths)]
        for (row, source), one in part.groupby(["row", "source"], sort=False):
            values = map(short, one["value"])
            seeds = "" if source == PRINTED else f"{one['seeds'].max() or NOT_RUN}"
            rows.append((f"  {row}, {source}", seeds, *values))
        lines += ["", *aligned(*rows)]
    return "\n".join(lines)
