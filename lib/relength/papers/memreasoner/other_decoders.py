"""Tables 8, 9, 11 and 12: decoders that the paper sets beside MemReasoner.

Everything here is computed from what the paper prints. Our plain decoder, which stands in for
Qwen2.5, has its runs on the pages of Tables 2, 3 and 5.
"""

from statistics import fmean
from typing import NamedTuple

import pandas as pd

from relength.report.style import aligned
from relength.report.tables import short, signed
from relength.report.wording import grid

OURS = "MemReasoner-1.4B (bAbi)"
LARGER = "MemReasoner (GPTJ-6B decoder)"
# Table, its columns of one test setting, and what that is.
QWEN = (
    ("memreasoner-table-8", "task 1"),
    ("memreasoner-table-9", "task 2"),
    ("memreasoner-table-11", "task 2, asked for one fact"),
)
# Columns of Table 12, and the table that has the same with the usual decoder.
GPTJ = (("babilong/task1", "memreasoner-table-2"), ("babilong/task2", "memreasoner-table-3"))
AVERAGES = ("avg<=8k", "avg>=16k")


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
        most = max(lead.points, key=lambda length: abs(lead.points[length]))
        side, mean = "against" if fmean(points) > 0 else "for", short(abs(fmean(points)))
        said.append(
            f"On {lead.setting} MemReasoner with GPTJ-6B is ahead at {sum(p < 0 for p in points)} "
            f"of {len(points)} lengths; the mean difference is {mean} points {side} it, the "
            f"largest {short(abs(lead.points[most]))} at {most}."
        )
    return "\n".join(said)
