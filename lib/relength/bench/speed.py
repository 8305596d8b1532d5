"""Measure how fast training is here, as ratios within one side-by-side run.

Beside the rates stands how far a device could go: the matrix products of a step and the bytes that
its optimiser must move, both counted on the model, over what the device was seen to multiply and
copy per second. Nothing here is taken from a data sheet.
"""

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from relength.bench import STACKS
from relength.bench.workload import plain_loop, timed
from relength.runs.store import Store
from relength.training import provenance
from relength.training.alone import Trainer
from relength.training.device import wait
from relength.training.stack import Stack

ROUNDS = 5
SECONDS = 4.0
LIMIT_SECONDS = 1.0  # for each of what limits a device
WARM_UP = 5
COUNTED = 20  # batches of which the matrix products are counted
# Steps of a stack in one call, which begins like an epoch: with an order to draw and to upload.
IN_A_CALL = {"cpu": WARM_UP, "cuda": 100}
PRODUCT_SIZE = {"cpu": 1024, "cuda": 8192}  # of square matrices, to see what a device multiplies
COPIED = {"cpu": 2**28, "cuda": 2**32}  # bytes, to see what it copies
OPTIMISER_TRAFFIC = 6  # AdamW reads and writes each weight and its two moments once per step

Step = Callable[[], Any]


class Way(NamedTuple):
    """One way to train: the frozen plain loop, a run alone, or a stack of runs."""

    name: str
    device: str
    loop: Literal["plain", "alone", "stack"]
    replicas: int = 1
    graphs: bool = False


def ways(device: str) -> list[Way]:
    """Everything that is measured with a device of this machine, one process each."""
    found = [Way("baseline", "cpu", "plain"), Way("one core", "cpu", "alone")]
    kind = torch.device(device).type
    if kind == "cuda":
        found.append(Way("baseline on cuda", device, "plain"))
        found.append(Way("alone on cuda", device, "alone"))
    for size in STACKS[kind]:
        if kind == "cuda":
            found.append(Way(f"stack of {size} on cuda", device, "stack", size, graphs=True))
            found.append(Way(f"stack of {size} on cuda, without graphs", device, "stack", size))
        else:
            found.append(Way(f"stack of {size} on cpu", device, "stack", size))
    return found


def measure(
    task: str,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    workers: int | None = None,
    device: str = "cpu",
) -> dict[str, Any]:
    """Measure run-steps per second on ``task``: one step of one run counts one.

    The model is that of the paper whose task it is (``Paper.speed``). All ways take turns,
    ``rounds`` times, so that a noisy machine disturbs them alike. Returns the median rates, the
    median over rounds of each round's ratio to the frozen loop on the same kind of device, the
    memory of each way, and what limits the device (:func:`limits`).

    workers  processes that train at once (default: one per core)

    Raises RelengthError, before anything is measured, as :func:`check_task` does.
    """
    check_task(task)
    workers, spec = workers or os.cpu_count() or 1, timed(task, "smoke", 0)
    rates: dict[str, list[float]] = {}
    several = f"{workers} cores"
    with ExitStack() as stack:
        trainers = {way.name: stack.enter_context(_trainer(way, task)) for way in ways(device)}
        others = [
            stack.enter_context(_trainer(Way(several, "cpu", "alone"), task))
            for _ in range(workers - 1)
        ]
        for _ in range(rounds):
            for name, trainer in trainers.items():
                rates.setdefault(name, []).append(trainer.submit(_rate, seconds).result())
            together = [t.submit(_rate, seconds) for t in (trainers["one core"], *others)]
            rates.setdefault(several, []).append(sum(f.result() for f in together))
        memory = {name: trainer.submit(_memory).result() for name, trainer in trainers.items()}
        memory[several] = workers * memory["one core"]
    return {
        "task": task,
        "model": spec.model.name,
        "batch_size": spec.training.batch_size,
        "rounds": rounds,
        "baseline_threads": torch.get_num_threads(),
        "steps_per_second": {name: statistics.median(r) for name, r in rates.items()},
        "ratio_to_baseline": {
            name: statistics.median(a / b for a, b in zip(r, rates[yardstick(name)], strict=True))
            for name, r in rates.items()
        },
        "memory_bytes": memory,
        "limits": limits(task, device),
    }


def check_task(task: str) -> None:
    """Raise RelengthError unless there is such a task, and its data can be found."""
    timed(task, "smoke", 0).task.provenance()


def yardstick(name: str) -> str:
    """The frozen loop on the kind of device that a way uses."""
    return "baseline on cuda" if "cuda" in name else "baseline"


def keep(store: Store, outcome: dict[str, Any], device: str = "cpu") -> None:
    """Add a measurement, with the machine it was made on, to the store."""
    origin = {**provenance.collect(device, {}), "threads": outcome["baseline_threads"]}
    store.append_benchmark({**outcome, "provenance": origin})


# --- limits ---------------------------------------------------------------------------------------


def limits(task: str, device: str = "cpu") -> dict[str, Any]:
    """Compute the least work of a step; measure what one core and the device do in a second.

    Keys: flops_per_step (of the matrix products), bytes_per_step (weights and moments, read and
    written once), flops_per_second and bytes_per_second by kind of device.
    """
    trainer = Trainer(timed(task, "smoke", 0))
    trainer.model.fused = False  # kernels of our own are not seen by the counter
    batches = islice(trainer.batches(), COUNTED)
    return limits_of([partial(trainer.train_step, batch) for batch in batches], trainer, device)


def limits_of(steps: Sequence[Step], trainer: Trainer, device: str = "cpu") -> dict[str, Any]:
    """:func:`limits` of a step of training, a mean over some that a trainer takes."""
    with FlopCounterMode(display=False) as counter:
        for step in steps:
            step()
    weights = sum(p.numel() * p.element_size() for p in trainer.model.parameters())
    devices = {"cpu": "cpu", torch.device(device).type: device}
    return {
        "flops_per_step": counter.get_total_flops() / len(steps),
        "bytes_per_step": OPTIMISER_TRAFFIC * weights,
        "flops_per_second": {kind: _multiplied(place) for kind, place in devices.items()},
        "bytes_per_second": {kind: _copied(place) for kind, place in devices.items()},
    }


def _multiplied(device: str) -> float:
    """Floating-point operations per second in a product of large matrices; one thread on a CPU."""
    n = PRODUCT_SIZE[torch.device(device).type]
    a, b = torch.rand(2, n, n, device=device)
    out = torch.empty_like(a)
    with one_thread():
        return 2 * n**3 * repeated(lambda: torch.mm(a, b, out=out), LIMIT_SECONDS, device)


def _copied(device: str) -> float:
    """Bytes read and written per second while copying; one thread on a CPU."""
    source = torch.ones(COPIED[torch.device(device).type] // 4, device=device)
    target = torch.empty_like(source)
    size = 2 * source.numel() * source.element_size()
    with one_thread():
        return size * repeated(lambda: target.copy_(source), LIMIT_SECONDS, device)


@contextmanager
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


# --- a process for each way -----------------------------------------------------------------------

_way: Way
_step: Step


@contextmanager
def _trainer(way: Way, task: str) -> Iterator[ProcessPoolExecutor]:
    """A process that trains in one way, ready to be timed."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=_build, initargs=(way, task)) as process:
        process.submit(_rate, 0.0).result()  # imports, builds and warms up, not timed
        yield process


def _build(way: Way, task: str) -> None:
    global _way, _step
    _way = way
    if way.loop != "plain":
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
    if way.loop == "stack":
        stack = Stack(
            [timed(task, "smoke", r) for r in range(way.replicas)], way.device, way.graphs
        )
        _step = lambda: stack.run_steps(_in_a_call(way))  # noqa: E731
        return
    trainer = Trainer(timed(task, "smoke", 0), way.device)
    train_step = trainer.train_step
    batches = cycle(list(trainer.batches()))
    if way.loop == "plain":
        if way.device != "cpu":  # of which the frozen loops know nothing; it slows every operation
            torch.set_default_device(way.device)
        train_step = plain_loop(task)(*trainer.spec.task.shape).train_step
    _step = lambda: train_step(next(batches))  # noqa: E731


def _rate(seconds: float) -> float:
    """Run-steps per second of this process."""
    if _way.loop != "stack":
        return repeated(_step, seconds, _way.device)
    steps = _in_a_call(_way) * _way.replicas
    return steps * repeated(_step, seconds, _way.device, warm_up=1)


def _in_a_call(way: Way) -> int:
    return IN_A_CALL[torch.device(way.device).type]


def repeated(call: Step, seconds: float, device: str, warm_up: int = WARM_UP) -> float:
    """Calls per second, after some that warm up; the device has finished when the clock stops."""
    for _ in range(warm_up):
        call()
    wait(device)
    calls, started = 0, time.perf_counter()
    while not calls or time.perf_counter() - started < seconds:
        call()
        calls += 1
    wait(device)
    return calls / (time.perf_counter() - started)


def _memory() -> int:
    """Bytes at most: of this process on a CPU, of its tensors on a GPU.

    Linux counts afresh in a new program; what ``getrusage`` says includes the parent's.
    """
    if torch.device(_way.device).type == "cuda":
        return torch.cuda.max_memory_allocated(_way.device)
    return most_held()


def most_held() -> int:
    """Bytes of memory that this process has held at most."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * int(status["VmHWM"].split()[0])
