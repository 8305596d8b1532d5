"""Work on jobs in this process, in processes of their own, in threads of a GPU, or through Dask."""

import multiprocessing
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from typing import Any

from relength import stopping
from relength.errors import RelengthError, warn_in_notes
from relength.specs.spec import Scale
from relength.training import provenance

GPU_STREAMS = 4
# What there is where a GPU can be used: NVIDIA, NVIDIA under Windows's Linux, AMD.
DRIVERS = ("/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg", "/dev/kfd")
DEVICE = re.compile(r"(?:cpu(?::0)?|cuda(?::(\d+))?)")
THIS_MACHINE = "local"  # in place of a scheduler's address


def check_device(device: str, *, elsewhere: bool = False) -> None:
    """Raise RelengthError unless tensors can be put on ``device``.

    elsewhere  only ask whether there are such devices: it is not this machine that will use it
    """
    named = DEVICE.fullmatch(device)
    if not named:
        raise RelengthError(f"Unknown device {device!r}: choose cpu, cuda or cuda:<number>.")
    if elsewhere:
        return
    from relength.kernels import late

    late.check_triton(provenance.device_kind(device))
    if provenance.device_kind(device) == "cpu":
        return
    import torch

    if torch.cuda.is_available():
        number, found = int(named[1] or 0), torch.cuda.device_count()
        if number >= found:
            raise RelengthError(
                f"Device {device!r} was asked for, but there are {found} GPUs here: choose "
                f"cuda:0 to cuda:{found - 1}."
            )
    else:
        raise RelengthError(
            f"Device {device!r} was asked for, but PyTorch {torch.__version__} finds no GPU here: "
            "use -p device cpu (or --device cpu), or run on a machine with a CUDA build of PyTorch."
        )


def gpu_here() -> bool:
    """Tell whether PyTorch finds a GPU. Without a driver it does not: then PyTorch is not
    imported.
    """
    if not any(map(os.path.exists, DRIVERS)) and shutil.which("nvidia-smi") is None:
        return False
    import torch

    return torch.cuda.is_available()


def default_workers(device: str, scales: Iterable[Scale]) -> int:
    """One process per core on a CPU; on a GPU as many threads as stacks that should run at once.

    Runs that are all of scale smoke get one process: it has trained a dozen of them by the time
    that another has started.
    """
    if provenance.device_kind(device) != "cpu":
        return GPU_STREAMS
    return 1 if set(scales) <= {"smoke"} else os.cpu_count() or 1


def place(cluster: str | None, workers: int, device: str) -> AbstractContextManager[Executor]:
    """An executor on this machine, or of Dask workers (``local`` or a scheduler's address)."""
    if cluster is None:
        return executor(workers, device)
    from relength.runs.cluster import dask_executor

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
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # as in a process of its own: these models gain nothing from more
        try:
            yield SerialExecutor()
        finally:
            torch.set_num_threads(threads)
        return
    if provenance.device_kind(device) == "cuda":
        with ThreadPoolExecutor(workers) as threads:
            yield threads
        return
    pool = ProcessPoolExecutor(
        workers,
        mp_context=_processes(),
        initializer=_start_worker,
        initargs=(dict(os.environ), stopping.shared()),
    )
    try:
        yield pool
    finally:
        # A campaign that was cut short does not wait for its runs: they resume from saved states.
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        for process in processes:
            process.join()


def _processes() -> BaseContext:
    """The way in which worker processes are started.

    On Linux they are forked from a process that has loaded PyTorch already. Elsewhere it is not
    safe to fork such a process, so that each worker starts afresh, as where temporary files have
    no room for a socket.
    """
    if sys.platform == "linux":
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["relength.runs.warm"])
        with suppress(OSError), _same_modules():
            forkserver.ensure_running()
            return context
    return multiprocessing.get_context("spawn")


@contextmanager
def _same_modules() -> Iterator[None]:
    """Let a Python that starts meanwhile look for modules where this one does, and nowhere else."""
    before = dict(os.environ)
    places = [os.path.abspath(place) for place in sys.path]
    os.environ |= {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(places)}
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


def _start_worker(environment: dict[str, str], flag: Any) -> None:
    """Set a worker up: one thread, memory kept once used, warnings as the command prints them.

    environment  the campaign's: that of the process it is forked from may be older. What Numba
                 and other libraries have read when they were loaded stays as it was

    The process ends with the campaign's.
    """
    import numpy
    import torch

    from relength.runs.execute import keep_memory

    _set_environment(environment)
    numpy.random.seed()  # or all workers would draw the same
    stopping.listen(flag)
    warn_in_notes()
    torch.set_num_threads(1)
    keep_memory()
    provenance.pin()

    def watch() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
