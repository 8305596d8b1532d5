"""From specs to records: load what is recorded, train the rest only when asked."""

import ctypes
import multiprocessing
import os
import platform
import signal
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from relength import provenance
from relength.engine import train
from relength.engine.training import Trained
from relength.errors import RelengthError
from relength.papers import Experiment
from relength.spec import RunSpec
from relength.store import Record, Store
from relength.tasks.base import SPECIALS

SIGNIFICANT_DIGITS = 6
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


def run_or_load(
    specs: Iterable[RunSpec],
    store: Store,
    experiment: Experiment,
    *,
    train: bool = False,
    refresh: bool = False,
    device: str = "cpu",
    workers: int | None = None,
    on_record: Callable[[Record], None] | None = None,
) -> list[Record]:
    """The usable records of these specs; specs without one are simply missing from the result.

    Trains nothing unless ``train`` is true; then what is missing is trained and appended to the store as
    it finishes. ``refresh`` trains every spec again and appends, it overwrites nothing. ``workers`` is the
    number of processes (default: one per core on a CPU); 1 trains in this process.

    Raises RelengthError when the device does not exist, before anything is trained.
    """
    specs = list(specs)
    wanted = {spec.key for spec in specs}
    if train:
        check_device(device)
        missing = specs if refresh else pending(specs, store, experiment)
        workers = min(workers or default_workers(device), max(1, len(missing)))
        with executor(workers) as pool:
            for record in execute_all(missing, experiment, store, pool, workers, device):
                if on_record is not None:
                    on_record(record)
    return [record for record in store.usable(experiment.name) if record["key"] in wanted]


def pending(specs: Iterable[RunSpec], store: Store, experiment: Experiment) -> list[RunSpec]:
    """The specs without a successful record, in the order given."""
    done = {record["key"] for record in store.usable(experiment.name)}
    return [spec for spec in specs if spec.key not in done]


def default_workers(device: str) -> int:
    """One process per core on a CPU, one process on a GPU."""
    return (os.cpu_count() or 1) if torch.device(device).type == "cpu" else 1


def check_device(device: str) -> None:
    """Raise RelengthError unless tensors can be put on ``device``."""
    try:
        kind = torch.device(device).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda"):
        raise RelengthError(f"Unknown device {device!r}: choose cpu, cuda or cuda:<number>.")
    if kind == "cuda" and not torch.cuda.is_available():
        raise RelengthError(
            f"Device {device!r} was asked for, but PyTorch {torch.__version__} finds no GPU here: use "
            "-p device cpu (or --device cpu), or run on a machine with a CUDA build of PyTorch."
        )


def execute_all(
    specs: list[RunSpec],
    experiment: Experiment,
    store: Store,
    pool: Executor,
    workers: int,
    device: str,
) -> Iterator[Record]:
    """Train the specs on a pool and append each record as it finishes; this process is the only writer."""
    checkpoints = store.path / ".checkpoints"
    queue, running = iter(specs), set()
    try:
        while True:
            # No more than the workers can hold: an executor that works on submission records as it goes.
            for spec in islice(queue, workers - len(running)):
                running.add(pool.submit(execute, spec, experiment.name, device, checkpoints))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                record = future.result()
                store.append(experiment.paper, record)
                yield record
    except BrokenProcessPool:
        raise RelengthError(
            "A training process was ended from outside (often for want of memory): run the same command "
            "again, finished runs are recorded and unfinished ones resume."
        ) from None


def execute(spec: RunSpec, experiment: str, device: str, checkpoints: Path) -> Record:
    """Train one spec and describe it as a record; a run that raises is a record with its traceback."""
    started = time.perf_counter()
    record: Record = {
        "schema": 1,
        "key": spec.key,
        "run_id": uuid.uuid4().hex[:16],
        "experiment": experiment,
        "status": "ok",
        "spec": spec.model_dump(mode="json"),
    }
    try:
        with small_numbers_are_zero():
            result = train(spec, device, checkpoints / f"{spec.key}.pt")
            record |= {
                "checkpoints": result.checkpoints,
                "parameters": result.parameters,
                "curve": result.curve,
                "first_losses": result.probe.pop("losses"),
                "probe": result.probe,
                "attention": attention_sample(spec, result, device),
                "cost": result.cost,
            }
        data = spec.task.provenance()
    except Exception:  # the grid goes on; whatever went wrong is in the record
        record |= {"status": "failed", "error": traceback.format_exc()}
        record["cost"] = {"seconds": time.perf_counter() - started}
        data = {"source": "unknown"}
    record["provenance"] = provenance.collect(device, data)
    return rounded(record)


def attention_sample(spec: RunSpec, result: Trained, device: str) -> dict[str, Any] | None:
    """Where the selected checkpoint looks while it decodes the first sample of the shortest unseen length."""
    tests = [name for name in spec.task.tests if name != "iid"]
    if not tests:
        return None
    batch = spec.task.dataset(tests[0], spec.seed).select(slice(0, 1)).to(device)
    tokens, weights = result.model.generate(batch, batch.targets.shape[1], keep_weights=True)
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
        libc.mallopt(M_MMAP_THRESHOLD, 2**30)


class SerialExecutor(Executor):
    """Does the work in this process, at the moment it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def executor(workers: int) -> Iterator[Executor]:
    """One single-threaded process per worker, or this process when one worker is enough."""
    if workers < 1:
        raise RelengthError(f"{workers} workers cannot train anything: ask for at least one.")
    if workers == 1:
        yield SerialExecutor()
        return
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(os.getpid(),),
    )
    try:
        yield pool
    finally:
        # An interrupted campaign does not wait for its runs: they resume from their checkpoints.
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _start_worker(parent: int) -> None:
    """One thread per process, memory that is kept once it was used, no process that outlives its parent."""
    torch.set_num_threads(1)
    keep_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
