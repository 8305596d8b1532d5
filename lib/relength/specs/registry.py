"""Registries by name: what a spec or a record names is found here, and loaded when it is asked for.

Rooms above this one are named as text, so that nothing is imported before it is needed and no
arrow points upwards.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relength.models import Model
    from relength.specs.paper import Paper
    from relength.tasks.base import Task

PAPERS = ("mla", "panm", "dnc", "memreasoner")  # folders of relength.papers: a line per paper


@cache
def papers() -> dict[str, "Paper"]:
    """Every paper by its short name, in the order of the book."""
    return {name: import_module(f"relength.papers.{name}").PAPER for name in PAPERS}


def tasks() -> "dict[str, type[Task]]":
    """Every task by name."""
    return import_module("relength.tasks").TASKS


def models() -> "dict[str, Model]":
    """Every model by name: its ``config``, and its ``module``, which is imported when asked for."""
    return import_module("relength.models").MODELS
