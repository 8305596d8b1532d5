"""Dask workers as an executor: processes of this machine, or those of a running scheduler.

The seam is the standard library's executor protocol, so everything else is the same on one core and
on a hundred machines. A job whose worker is lost is given to another one, which resumes it from its
saved state where the machines share that folder. Needs the extra ``cluster``.
"""

import asyncio
import logging
import pickle
import re
import socket
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from relength.errors import RelengthError, warn_in_notes
from relength.runs.execute import Job, keep_memory
from relength.runs.executors import THIS_MACHINE, check_device
from relength.training import provenance

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

CONNECT_SECONDS = 5.0
# Dask serves its dashboard and its metrics to the whole network unless it is told where.
LOOPBACK = "127.0.0.1"
# How often Dask looks at itself: by default a worker's profiler stops the training a hundred times
# a second, its health check fifty times, and two idle workers take a tenth of a core.
UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}


@contextmanager
def dask_executor(place: str, workers: int, device: str = "cpu") -> Iterator[Executor]:
    """An executor of Dask workers; jobs that are not finished on leaving it are given up.

    place    ``local`` for workers on this machine that live as long as the executor, or the
             address of a scheduler, as in ``tcp://host:8786``
    workers  how many of them, if they are on this machine

    Raises RelengthError when Dask is not installed, the scheduler does not answer or goes away,
    or one job has ended several workers.
    """
    try:
        from distributed import KilledWorker
        from distributed.utils import silence_logging_cmgr
    except ImportError as error:
        raise RelengthError(
            f"Dask is not installed ({error}): install the extra with `python -m pip install "
            "--editable '.[cluster]'`, or leave out --executor dask."
        ) from None
    try:
        with ExitStack() as stack:
            # A lost worker is replaced, and what is final is raised here: no need of a log as well.
            stack.enter_context(silence_logging_cmgr(logging.CRITICAL))
            if place == THIS_MACHINE:
                address = stack.enter_context(_local_cluster(workers, device)).scheduler_address
            else:
                address = place
                _check_scheduler(address)
            jobs = _Jobs(stack.enter_context(_client(address)))
            stack.callback(jobs.shutdown, wait=False)
            yield jobs
    except KilledWorker as error:
        raise RelengthError(
            f"One run has ended {error.allowed_failures + 1} Dask workers, the last one at "
            f"{error.last_worker.address} (often for want of memory): give each worker more, then "
            "run the same command again, finished runs are recorded and unfinished ones resume."
        ) from None
    except ModuleNotFoundError as error:
        raise RelengthError(
            f"A Dask worker has no module {error.name!r}: install this version of the project in "
            "the environment that the workers are started from, and start them again."
        ) from None
    except CancelledError:
        raise RelengthError(
            "The Dask scheduler has gone away: start it and its workers again, then run the same "
            "command again, finished runs are recorded and unfinished ones resume."
        ) from None


class _Jobs(Executor):
    """Hands jobs to the workers of a client."""

    def __init__(self, client: "Client"):
        self._client = client
        # Two equal jobs are two jobs: a run that is trained again must not be answered from memory.
        self._executor = client.get_executor(pure=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        (job,) = args
        with suppress(OSError):  # the store says it better when it cannot write
            job.checkpoints.mkdir(parents=True, exist_ok=True)
        call = (on_worker, (provenance.code_fingerprint(), fn, job))
        return self._executor.submit(_opaque(), pickle.dumps(call))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._client.status == "running":
            self._executor.shutdown(wait=wait and not cancel_futures)


def _opaque() -> Callable[[bytes], Any]:
    """Return a function that is pickled by value and runs a pickled call.

    A scheduler then needs no copy of this package, and a worker without one says so. Pickled by
    name, a call that cannot be read would end the worker's connection, and the job would wait
    forever.
    """

    def relength_job(call: bytes) -> Any:
        import pickle

        function, arguments = pickle.loads(call)
        return function(*arguments)

    return relength_job


@contextmanager
def _local_cluster(workers: int, device: str) -> Iterator["LocalCluster"]:
    """Single-threaded processes reachable from this machine only; on a GPU one with threads."""
    import dask
    from distributed import LocalCluster

    on_cpu = torch.device(device).type == "cpu"
    # In force as long as the cluster lives: lost workers are replaced.
    with (
        dask.config.set(UNWATCHED),
        LocalCluster(
            n_workers=workers if on_cpu else 1,
            threads_per_worker=1 if on_cpu else workers,
            host=LOOPBACK,
            dashboard_address=None,
            scheduler_kwargs={"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"},
            memory_limit=None,  # what fits is the operating system's business, as elsewhere
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster


def _client(address: str) -> "Client":
    from distributed import Client

    return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)


def _check_scheduler(address: str) -> None:
    """Raise RelengthError unless a Dask scheduler answers soon.

    Asked before there is a client: one that cannot start takes long to end.
    """
    try:
        # In a thread of its own, as a notebook has an event loop in this one.
        with ThreadPoolExecutor(1) as thread:
            kind = thread.submit(asyncio.run, _identity(address)).result()
        if kind != "Scheduler":
            raise ValueError(f"it is a Dask {kind.lower()}")
    except Exception as error:  # there may be anything at that address, and it may say anything
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        if isinstance(error, TimeoutError):
            reason = f"no answer within {CONNECT_SECONDS:.0f} s"
        raise RelengthError(
            f"No Dask scheduler answers at {address!r} ({reason}): start one with `dask scheduler` "
            "and name the address that it prints, as in --scheduler tcp://host:8786."
        ) from None


async def _identity(address: str) -> str:
    from distributed import Security, rpc

    if not re.fullmatch(r"(tcp|tls)://.+:\d+", address):
        raise ValueError("an address is written tcp://host:port or tls://host:port")
    arguments = Security().get_connection_args("client")
    async with rpc(address, timeout=CONNECT_SECONDS, connection_args=arguments) as scheduler:
        return (await asyncio.wait_for(scheduler.identity(), CONNECT_SECONDS))["type"]


def on_worker(code: str, work: Callable[[Job], Any], job: Job) -> Any:
    """Work on a job on a worker: ``work``, under the conditions of every other executor.

    code  fingerprint of the code that the campaign was started with

    Raises RelengthError when this machine has other code, or no such device.
    """
    _prepare()
    torch.set_num_threads(1)
    if provenance.code_fingerprint() != code:
        raise RelengthError(
            f"The Dask worker on {socket.gethostname()} has other code "
            f"({provenance.code_fingerprint()}; the campaign was started with {code}): bring both "
            "to one version, start the workers again, then run the same command again."
        )
    check_device(job.device)
    if job.checkpoints.is_dir():
        return work(job)
    # The folder of another machine, which made it before it sent the job: not shared with this one.
    with tempfile.TemporaryDirectory(prefix="relength-") as folder:
        return work(replace(job, checkpoints=Path(folder), handed_on=False))


@cache
def _prepare() -> None:
    warn_in_notes()
    keep_memory()
    provenance.pin()
