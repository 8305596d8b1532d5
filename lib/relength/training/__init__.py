"""Training: one run alone, or many as one program, from specs to trained checkpoints.

What trains imports PyTorch, so it is loaded when it is asked for.
"""

from importlib import import_module
from typing import Any

HOMES = {"Stack": "stack", "Trained": "alone", "stacks": "grouping", "train": "alone"}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
