"""From recorded runs to a book: execute notebooks, write generated passages, run Jupyter Book.

Nothing here trains. Everything generated goes to ``book/executed/`` and ``_build/``, which are not
tracked, so a build never changes a file of the repository.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from relength.errors import RelengthError
from relength.paths import BOOK, NOTEBOOKS, ROOT
from relength.report.passages import PASSAGES
from relength.report.scoreboard import survey
from relength.store import Store

EXECUTED = BOOK / "executed"
BUILD = ROOT / "_build"
# What a browser fetches when it opens a page. Links that a reader may follow are not meant.
REMOTE = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["'](?:https?:)?//"""
)


def render(results: Path, out: Path = BUILD, say: Callable[[str], None] = print) -> Path:
    """Execute, write and build; returns the path of the book's ``index.html``.

    results: a folder of recorded runs; empty or missing, it gives a book that says *not run*.
    out: where the folder ``html`` goes, replacing the one of an earlier build.
    Raises RelengthError when a notebook fails or the book does not build without a warning.
    """
    say("Executing the notebooks from the recorded runs")
    execute_notebooks(results)
    say("Writing the scoreboard, the ledger and the cost table")
    write_fragments(results)
    say("Building the book")
    return build(out)


def execute_notebooks(results: Path, out: Path = EXECUTED) -> list[Path]:
    """Let papermill execute every notebook on the records in ``results``; returns what it wrote."""
    sources = sorted(NOTEBOOKS.glob("*.ipynb"))
    targets = [out / source.name for source in sources]
    out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(_execute, sources, targets, [results.resolve()] * len(sources)))
    return targets


def _execute(source: Path, target: Path, results: Path) -> None:
    from jupyter_core.utils import ensure_event_loop

    papermill = _papermill()
    if "results" not in papermill.inspect_notebook(str(source)):
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
                parameters={"results": str(results)},
                engine_name="relength",
                sockets=os.path.join(sockets, "kernel"),
                kernel_name="python3",
                cwd=str(source.parent),
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


def _papermill():
    """papermill, with an engine whose kernels use sockets in the file system."""
    import papermill
    from papermill.engines import NBClientEngine, papermill_engines
    from traitlets.config import Config

    class FileSocketEngine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, sockets, **options):
            config = Config(KernelManager={"transport": "ipc", "ip": sockets})
            # A kernel logs the interrupt that shuts it down as an error; cells report their own.
            config.NotebookClient.extra_arguments = ["--IPKernelApp.log_level=50"]
            return super().execute_managed_notebook(nb_man, kernel_name, config=config, **options)

    papermill_engines.register("relength", FileSocketEngine)
    return papermill


def write_fragments(results: Path, out: Path = EXECUTED) -> list[Path]:
    """Write the passages that pages include: scoreboard, claims, cost, margins, error rates."""
    state = survey(Store(results))
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, passage in PASSAGES.items():
        written.append(out / f"{name}.md")
        written[-1].write_text(passage(state), encoding="utf-8")
    return written


def build(out: Path = BUILD) -> Path:
    """Run Jupyter Book on ``book/`` from scratch, warnings being errors; returns ``index.html``.

    The pages replace ``out/html`` only when all of them are built.
    """
    command = Path(sys.executable).with_name("jupyter-book")
    if not command.exists():
        raise RelengthError(
            "Jupyter Book is not installed beside this Python: run `make book`, or install the "
            "package with its extra, `pip install 'relength[book]'`."
        )
    with tempfile.TemporaryDirectory(prefix="relength-") as folder:
        done = subprocess.run(
            [command, "build", BOOK, "--path-output", folder, "--warningiserror", "--keep-going"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            lines = (done.stdout + done.stderr).splitlines()
            complaints = [line for line in lines if "WARNING" in line or "ERROR" in line]
            raise RelengthError("The book did not build:\n" + "\n".join(complaints or lines[-15:]))
        check_offline(Path(folder) / "_build" / "html")
        shutil.rmtree(out / "html", ignore_errors=True)
        out.mkdir(parents=True, exist_ok=True)
        shutil.move(Path(folder) / "_build" / "html", out / "html")
    return out / "html" / "index.html"


def check_offline(html: Path) -> None:
    """Raise RelengthError if opening a page would ask the network for something."""
    for page in sorted(html.rglob("*.html")):
        if found := REMOTE.search(page.read_text(encoding="utf-8")):
            raise RelengthError(
                f"Page {page.relative_to(html)} would load something from the network "
                f"({found.group()}…): serve it from book/assets instead."
            )
