"""Fork the kernels of notebooks from one process that has imported already what they import.

To start Python and to import pandas, scipy and matplotlib costs more than most notebooks compute.
Each kernel is still a process of its own, and sees nothing of the others. Processes that write
passages of pages come from there, too.
"""

import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

IMPORTED = ["ipykernel.kernelapp", "relength.book.notebook", "relength.report.passages"]
IMPORTED += ["matplotlib.backends.backend_svg", "seaborn"]  # for figures: almost every page has one
RECORDS = "relength.book.warm_records"

MOST = 8  # processes beside the kernels; each takes some hundred megabytes
Item, Made = TypeVar("Item"), TypeVar("Made")

_ONE = threading.Lock()  # threads execute notebooks; multiprocessing counts on one that starts


def share_records() -> None:
    """Let the project's records be read once for all kernels; it pays for several notebooks."""
    if RECORDS not in IMPORTED:
        IMPORTED.append(RECORDS)


def available() -> bool:
    """Tell whether processes can be forked from a warm one here."""
    return "forkserver" in multiprocessing.get_all_start_methods()


def on_all_cores(
    work: Callable[[Item], Made], items: Iterable[Item], begin: Callable[..., None], *given: Any
) -> list[Made]:
    """Apply ``work`` to each item, in a process per core that first calls ``begin(*given)``."""
    processes = min(os.cpu_count() or 1, MOST)
    pool = ProcessPoolExecutor(processes, _context(), begin, given)
    with pool, ended_with_the_command(pool):
        with _ONE:
            futures = [pool.submit(work, item) for item in items]
        return [future.result() for future in futures]


@contextmanager
def ended_with_the_command(pool: Executor) -> Iterator[None]:
    """When somebody stops the command (Ctrl-C, SIGTERM), end kernels and processes at once.

    After an error the pool begins nothing more, and what it is at is waited for.
    """
    try:
        yield
    except Exception:
        pool.shutdown(cancel_futures=True)
        raise
    except BaseException:
        # What waits in a pool of processes is given up with them; cancelled, it would complain.
        for process in multiprocessing.active_children():
            process.kill()
        raise


def _context() -> BaseContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context


class WarmKernelManager(AsyncKernelManager):
    """A manager of kernels that are forked."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.provisioner = WarmProvisioner(
            parent=self, kernel_id=self.kernel_id, kernel_spec=self.kernel_spec
        )


class WarmProvisioner(LocalProvisioner):
    """Starts a kernel with what its command would get: arguments, folder, environment."""

    async def launch_kernel(self, cmd: list[str], **options: Any) -> dict[str, Any]:
        self.process = Forked(cmd[cmd.index("-f") :], options.get("cwd"), options["env"])
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class Forked:
    """A kernel's process, with the methods of subprocess.Popen that a provisioner calls."""

    stdin = stdout = stderr = None

    def __init__(self, arguments: list[str], folder: str | None, environment: dict[str, str]):
        process = _context().Process(target=_kernel, args=(arguments, folder, environment))
        with _ONE:
            process.start()
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        with _ONE:
            return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self.poll()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def _kernel(arguments: list[str], folder: str | None, environment: dict[str, str]) -> None:
    """Be a kernel until it is shut down."""
    from ipykernel.kernelapp import IPKernelApp

    sys.modules["debugpy"] = None  # nobody debugs a page, and its import takes long
    gc.disable()  # it ends soon, and its memory with it
    os.setsid()  # a signal to the kernel reaches the processes that it starts
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder or ".")
    # It ends when the process that it was forked from does, however that comes.
    sys.argv[1:] = arguments = [*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]
    IPKernelApp.launch_instance(arguments)
