"""One piece of work, a run or a stack of runs, from specs to records: what workers execute."""

import ctypes
import platform
import time
import traceback
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from relength import provenance
from relength.engine import Stack, Trained, train
from relength.engine.course import CHECKPOINT_SECONDS
from relength.spec import RunSpec
from relength.store import Record
from relength.tasks.base import SPECIALS

SIGNIFICANT_DIGITS = 6
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


@dataclass(frozen=True)
class Job:
    """Runs to train together, or one alone.

    checkpoints  folder of the states of unfinished runs
    deadline     seconds since the epoch at which to stop and leave what is unfinished to a resume,
                 or None
    """

    specs: tuple[RunSpec, ...]
    experiment: str
    device: str
    checkpoints: Path
    deadline: float | None = None

    def halves(self) -> "tuple[Job, Job]":
        middle = len(self.specs) // 2
        return replace(self, specs=self.specs[:middle]), replace(self, specs=self.specs[middle:])


def execute(job: Job) -> list[Record]:
    """Train a job and describe each of its runs as a record; fewer when the deadline came first.

    A run that raises is a record with its traceback. A stack that does not fit into the device's
    memory is split, and goes on from where it was.
    """
    with small_numbers_are_zero(), own_stream(job.device):
        if len(job.specs) == 1 and torch.device(job.device).type == "cpu":
            return [record] if (record := _alone(job)) else []
        try:
            return _stacked(job)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            if len(job.specs) == 1:
                return [_failed(job, job.specs[0], traceback.format_exc())]
            return [record for half in job.halves() for record in execute(half)]


def _alone(job: Job) -> Record | None:
    (spec,) = job.specs
    try:
        result = train(spec, job.device, job.checkpoints / f"{spec.key}.pt", job.deadline)
        return None if result is None else _done(job, spec, result)
    except Exception:  # the grid goes on; whatever went wrong is in the record
        return _failed(job, spec, traceback.format_exc())


def _stacked(job: Job) -> list[Record]:
    try:
        stack = Stack(job.specs, job.device)
        stack.load(job.checkpoints)
        saved = time.monotonic()
        while not stack.finished:
            stack.run_epoch()
            late = job.deadline is not None and time.time() > job.deadline
            if late or time.monotonic() - saved > CHECKPOINT_SECONDS:
                stack.save(job.checkpoints)
                saved = time.monotonic()
            if late and not stack.finished:
                return []
        results = stack.results()
        records = [_done(job, s, results[s.key]) for s in job.specs if s.key in results]
        records += [
            _failed(job, s, stack.failures[s.key]) for s in job.specs if s.key not in results
        ]
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return [_failed(job, spec, traceback.format_exc()) for spec in job.specs]
    return records


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
            "attention": attention_sample(spec, result, job.device),
            "cost": result.cost,
            "provenance": provenance.collect(job.device, spec.task.provenance()),
        }
    )


def _failed(job: Job, spec: RunSpec, error: str) -> Record:
    origin = provenance.collect(job.device, {"source": "unknown"})
    return _head(job, spec, "failed") | {"error": error, "provenance": origin}


def attention_sample(spec: RunSpec, result: Trained, device: str) -> dict[str, Any] | None:
    """Where the selected checkpoint looks, decoding the shortest unseen length's first sample."""
    tests = [name for name in spec.task.tests if name != "iid"]
    if not tests:
        return None
    batch = spec.task.dataset(tests[0], spec.seed).select(slice(0, 1))
    steps = batch.targets.shape[1]
    tokens, weights = result.model.generate(batch.to(device), steps, keep_weights=True)
    vocabulary = spec.task.vocabulary
    return {
        "test": tests[0],
        "source": ["START", *(vocabulary[i] for i in batch.inputs[0]), "END"],
        "target": [_symbol(vocabulary[i]) for i in batch.targets[0]],
        "prediction": [_symbol(vocabulary[i]) for i in tokens[0]],
        "weights": [[round(w, 3) for w in row] for row in weights[0].tolist()],
    }


def _symbol(symbol: str) -> str:
    return symbol.strip("<>").upper() if symbol in SPECIALS else symbol


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
def own_stream(device: str) -> Iterator[None]:
    """On a GPU, a stream of this job's own, so that jobs of several threads run side by side."""
    if torch.device(device).type == "cpu":
        yield
        return
    with torch.cuda.stream(torch.cuda.Stream(device)):
        yield


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
