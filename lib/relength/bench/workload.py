"""Choose the run that is timed on a task, and what it is measured against, as the papers say."""

from typing import Any

from relength.errors import RelengthError
from relength.specs import registry
from relength.specs.paper import Paper
from relength.specs.spec import RunSpec, Scale


def timed(task: str, scale: Scale, seed: int) -> RunSpec:
    """The run that is timed on a task, as its paper says (:func:`_paper`)."""
    paper = _paper(task)
    return paper.load(paper.speed.spec)(task, scale, seed)


def plain_loop(task: str) -> type[Any]:
    """The class of the frozen loop that the run is measured against."""
    paper = _paper(task)
    return paper.load(paper.speed.loop)


def _paper(task: str) -> Paper:
    """Return the first paper that trains on a task, else the first whose speed is measured.

    Raises RelengthError for a task or a paper that is not there.
    """
    if task not in (known := registry.tasks()):
        raise RelengthError(f"There is no task {task!r}: choose one of {', '.join(known)}.")
    papers = [paper for paper in registry.papers().values() if paper.speed]
    if not papers:
        raise RelengthError("No paper says which model is timed: give one a `speed`.")
    own = (paper for paper in papers if _trains_on(paper, task))
    return next(own, papers[0])


def _trains_on(paper: Paper, task: str) -> bool:
    specs = (spec for found in paper.experiments for spec in found.specs("smoke", [0]))
    return any(spec.task.name == task for spec in specs)
