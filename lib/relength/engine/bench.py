"""How fast training is here, as ratios of what was measured side by side in one run."""

import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch

from relength import provenance
from relength.engine.baseline import PlainLoop
from relength.engine.training import Trainer
from relength.spec import make_spec
from relength.store import Store
from relength.streams import stream

ROUNDS = 5
SECONDS = 4.0
WARM_UP = 5
BATCH_SIZE = 32


def measure(
    task: str, rounds: int = ROUNDS, seconds: float = SECONDS, workers: int = 2
) -> dict[str, Any]:
    """Steps per second of OneStepAttn on ``task``: the frozen loop, ours on one core, ours on all.

    The three take turns, ``rounds`` times, so that a noisy machine disturbs them alike. Returns the
    median rates, and the median over rounds of each round's ratio to the frozen loop.
    """
    rates: dict[str, list[float]] = {"baseline": [], "one core": [], f"{workers} cores": []}
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_ours, [task] * workers, [0.1] * workers))  # imports and builds, not timed
        for _ in range(rounds):
            rates["baseline"].append(_plain(task, seconds))
            rates["one core"].append(pool.submit(_ours, task, seconds).result())
            both = pool.map(_ours, [task] * workers, [seconds] * workers)
            rates[f"{workers} cores"].append(sum(both))
    return {
        "task": task,
        "model": "OneStepAttn",
        "batch_size": BATCH_SIZE,
        "rounds": rounds,
        "baseline_threads": torch.get_num_threads(),
        "steps_per_second": {name: statistics.median(r) for name, r in rates.items()},
        "ratio_to_baseline": {
            name: statistics.median(a / b for a, b in zip(r, rates["baseline"], strict=True))
            for name, r in rates.items()
        },
    }


def keep(store: Store, outcome: dict[str, Any]) -> None:
    """Add a measurement, with the machine it was made on, to the store."""
    origin = {**provenance.collect("cpu", {}), "threads": outcome["baseline_threads"]}
    store.append_benchmark({**outcome, "provenance": origin})


def _plain(task: str, seconds: float) -> float:
    trainer = _trainer(task)
    loop = PlainLoop(len(trainer.spec.task.vocabulary))
    return _rate(trainer, loop.train_step, seconds)


def _ours(task: str, seconds: float) -> float:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    trainer = _trainer(task)
    return _rate(trainer, trainer.train_step, seconds)


def _trainer(task: str) -> Trainer:
    spec = make_spec(
        task={"name": task, "dev_size": 1, "validation_size": 1},
        model="OneStepAttn",
        scale="smoke",
        seed=0,
    )
    return Trainer(spec)


def _rate(trainer: Trainer, train_step: Callable[[Any], Any], seconds: float) -> float:
    order = torch.from_numpy(stream(0, "order", 0).permutation(len(trainer.data)))
    batches = [trainer.data.select(chunk) for chunk in order.split(BATCH_SIZE)]
    for batch in batches[:WARM_UP]:
        train_step(batch)
    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        train_step(batches[steps % len(batches)])
        steps += 1
    return steps / (time.perf_counter() - started)
