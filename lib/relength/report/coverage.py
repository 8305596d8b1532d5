"""Print `relength status`: the artifacts that are begun, and in a line each paper's rest."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from relength.report.scoreboard import SCALES
from relength.runs.progress import clock
from relength.specs import registry
from relength.verdicts.claims import counted


def table(state: dict[str, Any], every: bool) -> Iterator[RenderableType]:
    """The state of the artifacts (:func:`relength.report.scoreboard.status`) for a terminal.

    every  list also those that are not begun
    """
    artifacts = state["artifacts"]
    begun = {name: row for name, row in artifacts.items() if row["cells"]}
    lines = Table("artifact", "scale", "runs", "seeds", "rest", "verdicts")
    lines.columns[0].no_wrap = True
    for name, row in (artifacts if every else begun).items():
        verdicts = counted(row["verdicts"]) or "–"
        if name not in begun:
            lines.add_row(name, "–", "–", "–", "–", verdicts)
            continue
        for scale in SCALES:
            last = scale == SCALES[-1]
            first = (name, verdicts) if scale == SCALES[0] else ("", "")
            runs, rest = row["runs"][scale], row["rest"][scale]
            lines.add_row(
                *(first[0], scale, f"{runs - rest['runs']}/{runs}", str(row["min_seeds"][scale])),
                *(price(rest), first[1]),
                end_section=last,
            )
    yield lines
    yield (
        "Runs: recorded, of five seeds of everything; those that two experiments share count in "
        "both. Seeds: the fewest in any cell of the judged "
        f"arm. Rest: what is missing, as time of {_device(**state['device'])}, by runs recorded "
        "on it."
    )
    waiting = {
        paper: sum(row["paper"] == paper for name, row in artifacts.items() if name not in begun)
        for paper in registry.PAPERS
    }
    if not every and any(waiting.values()):
        listed = ", ".join(f"{paper} {n}" for paper, n in waiting.items() if n)
        yield f"Tables and figures not begun: {listed}; --all lists them."


def _device(kind: str, name: str) -> str:
    return f"one core of this machine ({name})" if kind == "cpu" else f"this machine's {name}"


def price(rest: dict[str, Any]) -> str:
    """Word what runs cost, as far as it is known."""
    if not rest["runs"]:
        return "nothing"
    if rest["unpriced"] == rest["runs"]:
        return "unknown"
    known = clock(3600 * rest["hours"])
    return f"{known} + {rest['unpriced']} runs unknown" if rest["unpriced"] else known
