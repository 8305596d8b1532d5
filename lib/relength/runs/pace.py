"""Measure how long a step of a run takes on a device, before its training begins."""

import time
from collections.abc import Callable
from typing import Any

import torch

from relength.specs.spec import RunSpec
from relength.training import arithmetic
from relength.training.alone import Trainer
from relength.training.course import Course
from relength.training.device import wait
from relength.training.stack import Stack

PACED = 10  # steps that tell the pace of a run, after as many that warm up
SLOW = 30.0  # seconds that need no warm-up before them, which would take as long
SAMPLED = 1_000  # samples of a split that tell what evaluating all of them takes
PER_TASK = 200  # questions of each of a corpus's tasks, where splits have no sizes of their own


def step_seconds(specs: tuple[RunSpec, ...], device: str) -> float:
    """Measure the seconds per step of one run when these runs are trained as one program.

    They include the run's share of evaluations, and not its tests. Measured on copies of the runs
    whose steps are the same, with less to train on and fewer samples to evaluate: an evaluation of
    all of them takes longer in proportion. One run on a CPU is trained alone.
    """
    small = [_small(spec) for spec in specs]
    with arithmetic.policy(specs[0].training, device):
        alone = len(specs) == 1 and torch.device(device).type == "cpu"
        runner = Trainer(small[0], device) if alone else Stack(small, device)
        step = _timed(lambda: runner.run_steps(PACED), device) / min(PACED, _interval(small[0]))
        evaluation = _timed(runner.evaluate, device) / _interval(specs[0])
    more = _evaluated(specs[0]) / _evaluated(small[0])
    return (step + evaluation * more) / len(specs)


def _interval(spec: RunSpec) -> int:
    """Steps between two evaluations."""
    return spec.training.most_steps(spec.task) // spec.training.intervals


def _timed(call: Callable[[], Any], device: str) -> float:
    """Seconds that a call takes, after one that warms up; of a slow one the first time counts."""
    for _ in range(2):
        started = time.perf_counter()
        call()
        wait(device)
        seconds = time.perf_counter() - started
        if seconds > SLOW:
            break
    return seconds


def _small(spec: RunSpec) -> RunSpec:
    most = {"train_size": PACED * spec.training.batch_size}
    most |= dict.fromkeys(("dev_size", "validation_size", "test_size"), SAMPLED)
    most["per_task"] = PER_TASK
    sizes = spec.task.model_dump(include=set(most))
    cut = {name: min(size, most[name]) for name, size in sizes.items()}
    return spec.model_copy(update={"task": spec.task.model_copy(update=cut)})


def _evaluated(spec: RunSpec) -> int:
    """Samples that the evaluation after the first interval looks at."""
    task, course = spec.task, Course(spec)
    names = {*task.dev_splits, *["validation"] * course.asks_iid}
    names.update(task.watched_splits if course.shown else ())
    return sum(task.splits()[name].size for name in names)
