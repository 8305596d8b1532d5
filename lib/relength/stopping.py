"""Decide when training stops: the time is up, or somebody asks.

A campaign that is asked to stop (SIGTERM, Ctrl-C) goes on to the end of the current epoch of each
run and saves it. Who asks twice gets the usual, immediate end.
"""

import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SENTENCE = (
    b"Stopping: each run goes on to the end of its epoch and is saved. "
    b"A second signal stops at once.\n"
)
# The number of the signal that asked, or 0. This process shares it with its workers: setting it
# needs no lock, so that a signal handler may, and no message that a busy worker would have to read.
_asked: Any = multiprocessing.RawValue(ctypes.c_int, 0)


def asked() -> bool:
    """Tell whether somebody has asked this process, or the one it works for, to stop."""
    return bool(_asked.value)


def exit_code(left: int) -> int:
    """Return the exit code of a command with ``left`` things undone: 0 unless it was stopped.

    128 and the signal's number, as a shell has it: 130 for Ctrl-C, 143 for SIGTERM.
    """
    return 128 + _asked.value if left and asked() else 0


def time_is_up(deadline: float | None) -> bool:
    """Tell whether a run should save itself and end: asked to, or past ``deadline`` (epoch
    seconds).
    """
    return asked() or (deadline is not None and time.time() >= deadline)


def shared() -> Any:
    """Return what a worker process needs to hear of it, see :func:`listen`; only for its start."""
    return _asked


def listen(flag: Any) -> None:
    """In a worker process: stop when the parent is asked to, and leave signals to the parent."""
    global _asked
    _asked = flag
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def on_signals() -> Iterator[None]:
    """Take SIGTERM and Ctrl-C as a request to stop; only in the main thread of a command."""

    def ask(number: int, _: FrameType | None) -> None:
        if _asked.value:
            raise SystemExit(128 + number)
        _asked.value = number
        os.write(2, SENTENCE)  # printing is not safe where another print may be under way

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _asked.value = 0
