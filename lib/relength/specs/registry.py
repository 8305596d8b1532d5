"""Registries by name: what a spec or a record names is found here, and loaded when it is asked for.

Rooms above this one are named as text, so that nothing is imported before it is needed and no
arrow points upwards.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relength.errors import RelengthError

if TYPE_CHECKING:
    from relength.models import Model
    from relength.specs.paper import Paper
    from relength.tasks.base import Task
    from relength.tasks.metrics import Metric

# Folders of relength.papers in the order of the book, a line per paper.
PAPERS = (
    "mla",
    "panm",
    "dnc",
    "memreasoner",
)
ACCURACY = "accuracy"  # the column of the metric that a run's task is measured by


@cache
def papers() -> dict[str, "Paper"]:
    """Every paper by its short name, in the order of the book.

    Raises RelengthError for a folder that is not there, that has no Paper of its name, or that is
    not listed.
    """
    found = {name: _paper(name) for name in PAPERS}
    folders = {file.parent.name for file in (Path(__file__).parents[1] / "papers").glob("*/*.py")}
    if forgotten := sorted(folders - {*PAPERS}):
        raise RelengthError(
            f"lib/relength/papers/{forgotten[0]} is in no line of PAPERS in "
            "lib/relength/specs/registry.py: add one, or move the folder away."
        )
    return found


def _paper(name: str) -> "Paper":
    from relength.specs.paper import Paper  # which imports this module

    folder = f"lib/relength/papers/{name}"
    try:
        found = getattr(import_module(f"relength.papers.{name}"), "PAPER", None)
    except ModuleNotFoundError as error:
        if error.name != f"relength.papers.{name}":
            raise
        found = None
    if not isinstance(found, Paper) or found.name != name:
        raise RelengthError(
            f"{folder}/__init__.py has no PAPER named {name!r}: give it one, or take the name out "
            "of PAPERS in lib/relength/specs/registry.py."
        )
    return found


def united(field: str) -> dict[str, Any]:
    """One mapping made from those that all papers have in a field.

    Raises RelengthError where two papers say different things of one name.
    """
    found: dict[str, Any] = {}
    for paper in papers().values():
        for name, value in getattr(paper, field).items():
            if found.setdefault(name, value) != value:
                raise RelengthError(
                    f"Two papers give {name!r} different {field}: let lib/relength/papers/"
                    f"{paper.name}/__init__.py say what the other says, or nothing."
                )
    return found


@cache
def metrics() -> tuple[str, ...]:
    """The metrics that papers read from what their records keep beside the usual ones."""
    return tuple(name for paper in papers().values() for name in paper.metrics)


def _with_papers(room: str, kind: str) -> dict[str, Any]:
    """Collect what a room registers, and what papers bring of the same kind.

    Raises RelengthError where a paper brings a name that is taken.
    """
    name = kind.upper()
    found = getattr(import_module(room), name)
    for paper in papers().values():
        if kind not in paper.brings:
            continue
        brought = paper.load(f"{kind}:{name}")
        for taken in found.keys() & brought.keys():
            raise RelengthError(
                f"The {kind.removesuffix('s')} {taken!r} of lib/relength/papers/{paper.name}/"
                f"{kind} is registered already: give it another name."
            )
        found = found | brought
    return found


def tasks() -> "dict[str, type[Task]]":
    """Every task by name."""
    return _with_papers("relength.tasks", "tasks")


def refused(task: str) -> str:
    """Say why there is no task of this name, if one of its family could be meant; else nothing."""
    return import_module("relength.tasks").refused(task)


def models() -> "dict[str, Model]":
    """Every model by name: its ``config``, and its ``module``, which is imported when asked for."""
    return _with_papers("relength.models", "models")


def protocols() -> dict[str, type]:
    """Every protocol by name."""
    return _with_papers("relength.training.protocols", "protocols")


def test_metrics() -> "dict[str, Metric]":
    """Every metric that tests give, and what is known of it."""
    return _known(tuple(dict.fromkeys(task.metrics for task in tasks().values())))


@cache
def _known(kinds: tuple[Any, ...]) -> "dict[str, Metric]":
    return {name: metric for kind in kinds for name, metric in kind.known().items()}


def metric(name: str) -> "Metric":
    """The facts about a column of the store's frame: a metric that tests give, one that a paper
    reads from its records, or ``accuracy``, what the task of a run is measured by.

    RelengthError lists the known ones.
    """
    known = test_metrics()
    if name in known:
        return known[name]
    if name not in (ACCURACY, *metrics()):
        raise RelengthError(
            f"There is no metric {name!r}: choose one of {', '.join((*known, *metrics()))}, or add "
            "a field to the metrics class of a task, as lib/relength/tasks/metrics.py describes."
        )
    return import_module("relength.tasks.metrics").percentage(name.replace("_", " "))
