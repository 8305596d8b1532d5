"""Kinds of batches: what a task gives and a model takes, so that a spec can tell who fits whom."""

from typing import NamedTuple


class Kind(NamedTuple):
    """One kind: what is read, and what is written."""

    reads: str
    writes: str


TOKENS = Kind("tokens", "tokens")
CLASSES = Kind("channels", "classes")
CHANNELS = Kind("channels", "channels")
FACTS = Kind("facts and a question", "an answer")
SPANS = Kind("tokens", "a span of them")
