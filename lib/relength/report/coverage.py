"""Print `relength status`: the artifacts that are begun, and in a line each paper's rest."""

from collections.abc import Iterator
from typing import Any

from relength.report.scoreboard import SCALES, priced
from relength.runs.progress import clock
from relength.specs import registry
from relength.verdicts.claims import counted

HEADERS = ("artifact", "scale", "runs", "seeds", "rest", "verdicts")


def rows(state: dict[str, Any], every: bool) -> list[tuple[str, ...]]:
    """The state of the artifacts (:func:`relength.report.scoreboard.status`), a row per scale.

    every  list also those that are not begun
    """
    found = []
    for name, row in state["artifacts"].items():
        verdicts = counted(row["verdicts"]) or "–"
        if not row["cells"]:
            if every:
                found.append((name, "–", "–", "–", "–", verdicts))
            continue
        for scale in SCALES:
            runs, rest = row["runs"][scale], row["rest"][scale]
            done = f"{runs - rest['runs']}/{runs}"
            found.append((name, scale, done, str(row["min_seeds"][scale]), price(rest), verdicts))
            verdicts = ""  # of both scales, in the first of the two rows
    return found


def notes(state: dict[str, Any], every: bool) -> Iterator[str]:
    """Sentences below the rows: what their columns mean, and what they leave out."""
    yield (
        "Runs: recorded, of five seeds of everything; those that two experiments share count in "
        "both. Seeds: the fewest in any cell of the judged "
        f"reading. Rest: what is missing, as time of {_device(**state['device'])}, by runs "
        "recorded on it."
    )
    artifacts = state["artifacts"].values()
    waiting = {
        paper: sum(row["paper"] == paper and not row["cells"] for row in artifacts)
        for paper in registry.PAPERS
    }
    if not every and any(waiting.values()):
        listed = ", ".join(f"{paper} {n}" for paper, n in waiting.items() if n)
        yield f"Tables and figures without runs of their own: {listed}; --all lists them."


def _device(kind: str, name: str) -> str:
    return f"one core of this machine ({name})" if kind == "cpu" else f"this machine's {name}"


def price(rest: dict[str, Any]) -> str:
    """Word what runs cost, as far as it is known."""
    if not rest["runs"]:
        return "nothing"
    return priced(clock(3600 * rest["hours"]), rest["unpriced"], rest["runs"])
