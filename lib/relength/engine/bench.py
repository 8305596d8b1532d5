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
from relength.engine.stack import Stack
from relength.engine.training import Trainer
from relength.spec import RunSpec, make_spec
from relength.store import Store
from relength.streams import stream

ROUNDS = 5
SECONDS = 4.0
WARM_UP = 5
BATCH_SIZE = 32
STACKS = {"cpu": (8,), "cuda": (1, 5, 10, 40)}


def measure(
    task: str,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    workers: int = 2,
    device: str = "cpu",
) -> dict[str, Any]:
    """Run-steps per second of OneStepAttn on ``task``: what trains one step of one run counts one.

    The frozen loop, our trainer on one core and on several, and stacks of runs on the device take
    turns, ``rounds`` times, so that a noisy machine disturbs them alike. Returns the median rates,
    and the median over rounds of each round's ratio to the frozen loop.
    """
    stacks = _stacks(task, device)
    rates: dict[str, list[float]] = {}

    def note(name: str, rate: float) -> None:
        rates.setdefault(name, []).append(rate)

    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_ours, [task] * workers, [0.1] * workers))  # imports and builds, not timed
        for _ in range(rounds):
            note("baseline", _plain(task, seconds))
            note("one core", pool.submit(_ours, task, seconds).result())
            together = pool.map(_ours, [task] * workers, [seconds] * workers)
            note(f"{workers} cores", sum(together))
            for name, stack in stacks.items():
                note(name, _stacked(stack, seconds))
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


def _stacks(task: str, device: str) -> dict[str, Stack]:
    """Stacks of several sizes by name; on a GPU with and without graphs."""
    kind = torch.device(device).type
    return {
        f"stack of {size} on {kind}{', without graphs' if kind == 'cuda' and not graphs else ''}": (
            Stack([_spec(task, seed) for seed in range(size)], device, graphs)
        )
        for size in STACKS[kind]
        for graphs in ((True, False) if kind == "cuda" else (False,))
    }


def _stacked(stack: Stack, seconds: float) -> float:
    """Run-steps per second of a stack on one thread; the first steps warm up and capture."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        stack.run_steps(WARM_UP)
        _wait(stack.device)
        steps, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            steps += stack.run_steps(WARM_UP)
            _wait(stack.device)
        return len(stack.courses) * steps / (time.perf_counter() - started)
    finally:
        torch.set_num_threads(threads)


def _wait(device: str) -> None:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def keep(store: Store, outcome: dict[str, Any], device: str = "cpu") -> None:
    """Add a measurement, with the machine it was made on, to the store."""
    origin = {**provenance.collect(device, {}), "threads": outcome["baseline_threads"]}
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
    return Trainer(_spec(task, 0))


def _spec(task: str, seed: int) -> RunSpec:
    return make_spec(
        task={"name": task, "dev_size": 1, "validation_size": 1},
        model="OneStepAttn",
        scale="smoke",
        seed=seed,
    )


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
