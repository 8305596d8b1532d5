"""Tell of a campaign on a terminal or in a log: outlook, a line per finished run, outcome."""

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from relength.runs.store import accuracies
from relength.specs.spec import row_name

if TYPE_CHECKING:
    from relength.runs.campaign import Campaign


TOLD = 8  # tests of a run, at most, that its line in a log tells of


def clock(seconds: float) -> str:
    """A duration in the unit that fits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def outlook(campaign: "Campaign", chosen: int) -> str:
    """Say what is to be done, and what it costs as far as that is known."""
    runs = len(campaign.runs)
    text = f"{runs} of {chosen} runs to train, recorded in {campaign.store.path}"
    seconds, unknown = campaign.seconds()
    if not runs or campaign.cluster is not None:
        return text
    if unknown == runs:
        return f"{text}\nWhat they cost here is unknown: none like them is recorded on this device."
    unit = "one core" if campaign.device == "cpu" else "the device"
    text += f"\nAbout {clock(seconds)} of {unit}, by runs recorded on this device"
    return f"{text}, and {unknown} runs of unknown price." if unknown else f"{text}."


def follow(campaign: "Campaign", console: Console) -> int:
    """Train; a bar with the time left on a terminal, one line per finished run everywhere.

    Returns how many runs failed.
    """
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        _Left(campaign),
    )
    failed = 0
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("training", total=len(campaign.runs))
        for record in campaign.records():
            failed += record["status"] == "failed"
            bar.advance(task)
            bar.console.print(line(record), soft_wrap=True, highlight=False, markup=False)
    return failed


class _Left(ProgressColumn):
    """The time left, by the prices of what is left."""

    max_refresh = 1.0

    def __init__(self, campaign: "Campaign"):
        super().__init__()
        self.campaign = campaign

    def render(self, task: Task) -> Text:
        left = None if task.finished else self.campaign.left()
        return Text("" if left is None else f"about {clock(left)} left")


def line(record: dict[str, Any]) -> str:
    """One finished run as one line of a log."""
    spec = record["spec"]
    model = f"{row_name(spec['model'])}/{spec['model']['arm']}"
    name = f"{model} {spec['task']['name']} seed {spec['seed']}"
    if record["status"] == "failed":
        return f"{record['key']} {name}: failed, {record['error'].strip().splitlines()[-1]}"
    found = list(accuracies(record).items())
    found = found[:: -(-len(found) // TOLD)]
    accuracy = ", ".join(f"{test} {100 * a:.1f}" for test, a in found)
    cost = record["cost"]
    seconds = cost["training_seconds"] + cost["evaluation_seconds"]
    took = f"{cost['steps']:,} steps, {seconds:.0f} s"
    anew = (
        f", started anew: its saved state {refused}" if (refused := record.get("refused")) else ""
    )
    return f"{record['key']} {name}: {accuracy} ({took}{anew})"


def outcome(campaign: "Campaign", stopped: bool, left_out: int = 0) -> str:
    """Say what was done of it, how many runs were left out for want of data, and how it goes on."""
    done, runs, saved = campaign.done, len(campaign.runs), campaign.saved()
    if done == runs:
        said = "The run is recorded." if runs == 1 else f"All {runs} runs are recorded."
        said = said if runs else "Nothing is left to train."
        return f"{said} Left out for want of data: {left_out}." if left_out else said
    kept = f", and {saved} more begun and saved" if saved else ""
    go_on = "the same command continues with the rest."
    if stopped:
        return f"Stopped with {done} of {runs} runs recorded{kept}; {go_on}"
    if done or saved:
        return f"The budget is spent, with {done} of {runs} runs recorded{kept}; {go_on}"
    least = campaign.least()
    needed = f": an epoch of the shortest takes about {clock(least)}" if least else ""
    return (
        f"The budget of {clock(campaign.budget)} is too short for anything{needed}. Nothing was "
        "trained."
    )
