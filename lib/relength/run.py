"""From specs to records: load what is recorded, train the rest only when asked."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Any

import torch

from relength import provenance
from relength.engine import stacks
from relength.errors import RelengthError
from relength.execute import Job, execute, keep_memory
from relength.papers import Experiment
from relength.spec import RunSpec
from relength.store import Record, Store

# Replicas that are trained as one program: what fills a large GPU; on a CPU stacking does not pay.
STACK = {"cpu": 1, "cuda": 40}
GPU_STREAMS = 4
THIS_MACHINE = "local"  # in place of a scheduler's address


def run_or_load(
    specs: Iterable[RunSpec],
    store: Store,
    experiment: Experiment,
    *,
    train: bool = False,
    refresh: bool = False,
    device: str = "cpu",
    workers: int | None = None,
    stack: int | None = None,
    budget: float | None = None,
    cluster: str | None = None,
    on_record: Callable[[Record], None] | None = None,
) -> list[Record]:
    """The usable records of these specs; specs without one are simply missing from the result.

    Trains nothing unless ``train`` is true; then what is missing is trained and appended to the
    store as it finishes.

    refresh  train every spec again and append: nothing is overwritten
    workers  processes (default: one per core) or, on a GPU, threads; 1 trains in this process
    stack    runs trained as one program (default: 1 on a CPU, 40 on a GPU)
    budget   seconds after which unfinished runs are left to a resume
    cluster  train on Dask workers: ``local`` for some on this machine, or a scheduler's address

    Raises RelengthError, before anything is trained, when the device does not exist or the
    scheduler does not answer.
    """
    specs = list(specs)
    wanted = {spec.key for spec in specs}
    if train:
        check_device(device, elsewhere=cluster not in (None, THIS_MACHINE))
        provenance.pin()
        for task in {spec.task for spec in specs}:
            task.provenance()  # missing or damaged data are found before anything is trained
        missing = specs if refresh else pending(specs, store, experiment)
        jobs = [
            Job(
                tuple(group),
                experiment.name,
                device,
                store.checkpoints,
                None if budget is None else time.time() + budget,
            )
            for group in stacks(missing, stack or STACK[torch.device(device).type])
        ]
        if jobs:
            workers = min(workers or default_workers(device), len(jobs))
            # A scheduler is given everything at once: its workers come and go, and it knows them.
            ahead = workers if cluster is None else len(jobs)
            with _place(cluster, workers, device) as pool:
                for record in execute_all(jobs, experiment, store, pool, ahead):
                    if on_record is not None:
                        on_record(record)
    return [record for record in store.usable(experiment.name) if record["key"] in wanted]


def pending(specs: Iterable[RunSpec], store: Store, experiment: Experiment) -> list[RunSpec]:
    """The specs without a successful record, in the order given."""
    done = {record["key"] for record in store.usable(experiment.name)}
    return [spec for spec in specs if spec.key not in done]


def default_workers(device: str) -> int:
    """One process per core on a CPU; on a GPU as many threads as stacks that should run at once."""
    return (os.cpu_count() or 1) if torch.device(device).type == "cpu" else GPU_STREAMS


def check_device(device: str, *, elsewhere: bool = False) -> None:
    """Raise RelengthError unless tensors can be put on ``device``.

    elsewhere  only ask whether there are such devices: it is not this machine that will use it
    """
    try:
        kind = torch.device(device).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda"):
        raise RelengthError(f"Unknown device {device!r}: choose cpu, cuda or cuda:<number>.")
    if elsewhere:
        return
    if kind == "cuda" and torch.cuda.is_available():
        number, found = torch.device(device).index or 0, torch.cuda.device_count()
        if number >= found:
            raise RelengthError(
                f"Device {device!r} was asked for, but there are {found} GPUs here: choose "
                f"cuda:0 to cuda:{found - 1}."
            )
    elif kind == "cuda":
        raise RelengthError(
            f"Device {device!r} was asked for, but PyTorch {torch.__version__} finds no GPU here: "
            "use -p device cpu (or --device cpu), or run on a machine with a CUDA build of PyTorch."
        )


def execute_all(
    jobs: list[Job], experiment: Experiment, store: Store, pool: Executor, ahead: int
) -> Iterator[Record]:
    """Work through the jobs and append each record as it comes; this process is the only writer.

    ahead  how many jobs are given to the pool before one of them has finished
    """
    checkpoints = store.checkpoints
    recorded: set[str] = set()
    queue, running = iter(jobs), set()
    try:
        while True:
            # No more than workers hold: an executor that works on submission records as it goes.
            for job in islice(queue, ahead - len(running)):
                if job.deadline is None or time.time() < job.deadline:
                    running.add(pool.submit(execute, job))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                for record in future.result():
                    if record["key"] in recorded:  # completed twice, which changes nothing
                        continue
                    recorded.add(record["key"])
                    store.append(experiment.paper, record)
                    # Only now: a kill before this line costs no training.
                    (checkpoints / f"{record['key']}.pt").unlink(missing_ok=True)
                    yield record
    except BrokenProcessPool:
        raise RelengthError(
            "A training process was ended from outside (often for want of memory): run the same "
            "command again, finished runs are recorded and unfinished ones resume."
        ) from None


def _place(cluster: str | None, workers: int, device: str) -> AbstractContextManager[Executor]:
    if cluster is None:
        return executor(workers, device)
    from relength.cluster import dask_executor  # only here: it needs an optional dependency

    return dask_executor(cluster, workers, device)


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
def executor(workers: int, device: str = "cpu") -> Iterator[Executor]:
    """This process when one worker is enough; else single-threaded processes, or threads of a GPU.

    Stacks on a GPU run side by side on streams of one process: processes of their own would take
    turns on the device instead.
    """
    if workers < 1:
        raise RelengthError(f"{workers} workers cannot train anything: ask for at least one.")
    if workers == 1:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # as in a process of its own: these models gain nothing from more
        try:
            yield SerialExecutor()
        finally:
            torch.set_num_threads(threads)
        return
    if torch.device(device).type == "cuda":
        with ThreadPoolExecutor(workers) as threads:
            yield threads
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
    """One thread per process, memory kept once it was used, no process that outlives its parent."""
    torch.set_num_threads(1)
    keep_memory()
    provenance.pin()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
