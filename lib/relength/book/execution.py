"""Execute notebooks with papermill; every notebook that the library executes goes through here."""

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import ModuleType

from relength.errors import RelengthError


def execute_all(sources: Sequence[Path], folder: Path, results: Path | None = None) -> list[Path]:
    """Execute notebooks on all cores, see :func:`execute`; return what is written.

    Raises RelengthError for two notebooks of one name, which would be one file.
    """
    for name, times in Counter(source.name for source in sources).items():
        if times > 1:
            raise RelengthError(
                f"{times} notebooks are named {name}: execute them one after another."
            )
    from relength.book import warm

    warm.share_records()
    targets = [folder / source.name for source in sources]
    folder.mkdir(parents=True, exist_ok=True)
    # One more than cores: a kernel that starts or ends mostly waits.
    workers = (os.cpu_count() or 1) + 1
    with ThreadPoolExecutor(workers) as pool, warm.ended_with_the_command(pool):
        list(pool.map(execute, sources, targets, [results] * len(sources)))
    return targets


def execute(source: Path, target: Path, results: Path | None = None) -> None:
    """Execute one notebook into another file.

    results: the folder of records that the notebook reads; None leaves the notebook's own.
    Raises RelengthError if a cell fails, or if the notebook cannot be given ``results``.
    """
    from jupyter_core.utils import ensure_event_loop

    papermill = _papermill()
    if results is not None and "results" not in papermill.inspect_notebook(str(source)):
        raise RelengthError(
            f"Notebook {source.name} has no parameter 'results', so it cannot be executed on other "
            "records: declare it in the cell tagged 'parameters'."
        )
    # Kernels talk through files in a folder of their own: no ports, nothing in the working folder.
    with tempfile.TemporaryDirectory(prefix="relength-") as sockets:
        try:
            papermill.execute_notebook(
                str(source),
                str(target),
                parameters={} if results is None else {"results": str(results.resolve())},
                engine_name="relength",
                request_save_on_cell_execute=False,  # written at its end, or when a cell fails
                sockets=os.path.join(sockets, "kernel"),
                # papermill's own `cwd` would move this whole process, other threads included.
                resources={"metadata": {"path": str(source.parent)}},
                kernel_name="python3",
                progress_bar=False,
            )
        except papermill.PapermillExecutionError as error:
            raise RelengthError(
                f"Notebook {source.name} failed with {error.ename}: {error.evalue} "
                f"The traceback is in {target}."
            ) from error
        finally:
            # The event loop that the kernel's client made for this thread; nobody else closes it.
            ensure_event_loop().close()


@cache
def _papermill() -> ModuleType:
    """papermill, with an engine whose kernels use sockets in the file system."""
    import papermill
    from papermill.engines import NBClientEngine, papermill_engines
    from traitlets.config import Config

    from relength.book import warm

    class FileSocketEngine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, sockets, **options):
            config = Config(KernelManager={"transport": "ipc", "ip": sockets})
            if warm.available():
                config.NotebookClient.kernel_manager_class = warm.WarmKernelManager
            # A kernel logs the interrupt that shuts it down as an error; cells report their own.
            config.NotebookClient.extra_arguments = ["--IPKernelApp.log_level=50"]
            return super().execute_managed_notebook(nb_man, kernel_name, config=config, **options)

    papermill_engines.register("relength", FileSocketEngine)
    return papermill
