"""One piece of work, a run or a stack of runs, from specs to records: what workers execute."""

import ctypes
import os
import platform
import sys
import time
import traceback
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from relength.errors import RelengthError
from relength.paths import ROOT
from relength.runs.pace import step_seconds
from relength.runs.store import Record
from relength.specs.spec import RunSpec
from relength.stopping import time_is_up
from relength.training import Stack, Trained, arithmetic, provenance, train
from relength.training.course import CHECKPOINT_SECONDS
from relength.training.device import on_own_stream, out_of_memory, release_memory
from relength.training.stack import Unstackable

SIGNIFICANT_DIGITS = 6
# Exceptions that tell of the machine or its environment, never of the training.
OF_THE_MACHINE = (OSError, ImportError)
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


@dataclass(frozen=True)
class Job:
    """Runs to train together, or one alone.

    checkpoints  folder of the states of unfinished runs
    deadline     seconds since the epoch at which to stop and leave what is unfinished to a resume,
                 or None
    sharing      how many jobs share the device, each with all of it for a while
    handed_on    whether a job that is given back half done can go on elsewhere: whether the states
                 in ``checkpoints`` outlast it
    """

    specs: tuple[RunSpec, ...]
    experiment: str
    device: str
    checkpoints: Path
    deadline: float | None = None
    sharing: int = 1
    handed_on: bool = True

    def halves(self) -> "tuple[Job, Job]":
        middle = len(self.specs) // 2
        return replace(self, specs=self.specs[:middle]), replace(self, specs=self.specs[middle:])


def execute(job: Job) -> list[Record]:
    """Train a job and describe each of its runs as a record; none of them when its time is up.

    A stack is given back when half of it is finished: its other runs have saved their states, and
    are no part of the answer.

    A run that raises is a record with its traceback. A stack that does not fit into the device's
    memory is split, and goes on from where it was. A single run is a stack of one on a GPU, where
    graphs make it faster, unless its model cannot be one.

    Raises RelengthError when this machine is at fault, so that there is nothing to record: it lacks
    the data, a library, or access to a file.
    """
    if time_is_up(job.deadline):
        return []
    for task in {spec.task for spec in job.specs}:
        task.provenance()  # of the machine that trains, which need not be the campaign's own
    with small_numbers_are_zero(), on_own_stream(job.device):
        if _as_loop(job):
            return [record] if (record := _alone(job)) else []
        try:
            return _stacked(job)
        except OF_THE_MACHINE as error:
            raise _not_started(error) from error
        except Exception as error:  # the grid goes on; whatever went wrong is in the record
            problem, crowded = _problem(), out_of_memory(error)
            unbatched = isinstance(error, Unstackable)
        if unbatched and len(job.specs) == 1:
            return [record] if (record := _alone(job)) else []
        if not crowded or len(job.specs) == 1:
            return [_failed(job, spec, problem) for spec in job.specs]
        # Not before here: an exception that is being handled holds the stack it was raised in.
        release_memory()
        return [record for half in job.halves() for record in execute(half)]


def warm_up(job: Job) -> float:
    """Seconds of the device per step of one of a job's runs; nothing is kept of the training."""
    with small_numbers_are_zero(), on_own_stream(job.device):
        return step_seconds(job.specs, job.device) / job.sharing


def _as_loop(job: Job) -> bool:
    return len(job.specs) == 1 and torch.device(job.device).type == "cpu"


def _alone(job: Job) -> Record | None:
    (spec,) = job.specs
    try:
        result = train(spec, job.device, job.checkpoints / f"{spec.key}.pt", job.deadline)
        return None if result is None else _done(job, spec, result)
    except OF_THE_MACHINE as error:
        raise _not_started(error) from error
    except Exception:  # the grid goes on; whatever went wrong is in the record
        return _failed(job, spec, _problem())


def _not_started(error: Exception) -> RelengthError:
    return RelengthError(
        f"This machine cannot train the run, of which nothing is recorded ({type(error).__name__}: "
        f"{error}): mend that and run the same command again."
    )


def _problem() -> str:
    """The traceback of the error at hand. It is published with its record, so files are named from
    the checkout or the folder of packages on, and not from the machine's root.
    """
    said = traceback.format_exc()
    for folder in sorted({str(ROOT), *sys.path, os.path.expanduser("~")}, key=len, reverse=True):
        said = said.replace(f"{folder}{os.sep}", "") if len(folder) > 1 else said
    return said


def _stacked(job: Job) -> list[Record]:
    with arithmetic.policy(job.specs[0].training, job.device):
        stack = Stack(job.specs, job.device)
        stack.load(job.checkpoints)
        saved = time.monotonic()
        while not _given_back(job, stack):
            stack.run_epoch()
            late = time_is_up(job.deadline)
            if late or _given_back(job, stack) or time.monotonic() - saved > CHECKPOINT_SECONDS:
                stack.save(job.checkpoints)
                saved = time.monotonic()
            if late:
                return []
        results, failures = stack.results(), stack.failures
    records = [_done(job, s, results[s.key]) for s in job.specs if s.key in results]
    return records + [_failed(job, s, failures[s.key]) for s in job.specs if s.key in failures]


def _given_back(job: Job, stack: Stack) -> bool:
    return stack.half_empty if job.handed_on else stack.finished


def _head(job: Job, spec: RunSpec, status: str) -> Record:
    return {
        "schema": 1,
        "key": spec.key,
        "run_id": uuid.uuid4().hex[:16],
        "experiment": job.experiment,
        "status": status,
        "spec": spec.model_dump(mode="json"),
    }


def _done(job: Job, spec: RunSpec, result: Trained) -> Record:
    probe = dict(result.probe)
    return rounded(
        _head(job, spec, "ok")
        | {
            "checkpoints": result.checkpoints,
            "parameters": result.parameters,
            "curve": result.curve,
            "first_losses": probe.pop("losses"),
            "probe": probe,
            "attention": None,
            **spec.training.traces(spec, result.model, job.device),
            **({"refused": result.refused} if result.refused else {}),
            "cost": result.cost | ({"sharing": job.sharing} if job.sharing > 1 else {}),
            "provenance": provenance.collect(
                job.device, spec.task.provenance(), job.experiment, result.origin, result.places
            ),
        }
    )


def _failed(job: Job, spec: RunSpec, error: str) -> Record:
    origin = provenance.collect(job.device, {"source": "unknown"}, job.experiment)
    return _head(job, spec, "failed") | {"error": error, "provenance": origin}


def without_results(record: Record, error: str) -> Record:
    """Convert a success that cannot be serialised into a failed record."""
    head = ("schema", "key", "run_id", "experiment", "spec", "provenance")
    return {name: record[name] for name in head} | {"status": "failed", "error": error}


def rounded(value: Any) -> Any:
    """Floats to six significant digits: records are read by people and compared in diffs."""
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return value


@contextmanager
def small_numbers_are_zero() -> Iterator[None]:
    """Treat denormal floats as zero, as GPUs do: the tails of a Gaussian focus are full of them."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def keep_memory() -> None:
    """Tell glibc not to hand freed memory back: each step would fault in the same pages anew."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_TRIM_THRESHOLD, 2**30)
        libc.mallopt(M_MMAP_THRESHOLD, 2**25)  # the most that glibc accepts
