"""From recorded runs to a book: execute notebooks, write generated passages, run Jupyter Book.

Nothing here trains. Everything generated goes to ``book/executed/`` and ``_build/``, which are not
tracked, so a build never changes a file of the repository.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from relength.book import execution, warm
from relength.errors import RelengthError
from relength.paths import BOOK, EXECUTED, NOTEBOOKS, ROOT
from relength.report import run_index
from relength.report.passages import PASSAGES
from relength.report.scoreboard import Survey, survey
from relength.runs.store import Store
from relength.training import provenance

PACKAGE = Path(__file__).parents[1]
BUILD = ROOT / "_build"
# What a browser fetches when it opens a page. Links that a reader may follow are not meant, nor is
# the address that a page gives as its own.
REMOTE = re.compile(
    r"""<(?:script|link|img|iframe|source|audio|video|embed|object)\b(?![^>]*\brel=["']?canonical)"""
    r"""[^>]*\b(?:src|srcset|href|data|poster)=["'](?:https?:)?//"""
    r"""|@import\s+["'](?:https?:)?//|\burl\(\s*["']?(?:https?:)?//"""
)
BUDGET = 180  # seconds that a build should take, where nothing else runs
OF_NOTEBOOKS = "notebooks"  # the passage that is made from what papermill left
DATA = "data of the page of provenance"  # are written as passages are
SOURCES = ".sources"  # beside pages and executed notebooks: what they were made from, as a hash
SHOWN = re.compile(r"^~~~.+?^~~~$", re.MULTILINE | re.DOTALL)
INCLUDED = re.compile(r"```\{include\} (?:\.\./)?executed/(\w+)\.md")


def render(results: Path, out: Path = BUILD, say: Callable[[str], None] = print) -> Path:
    """Execute, write and build; returns the path of the book's ``index.html``.

    results: a folder of recorded runs; empty or missing, it gives a book that says *not run*.
    out: where the folder ``html`` goes, replacing the one of an earlier build.
    Raises RelengthError when a notebook fails or the book does not build without a warning.
    """
    began = time.monotonic()
    sources = fingerprint(results)
    say("Executing the notebooks from the recorded runs, and writing the tables of other pages")
    (EXECUTED / SOURCES).unlink(missing_ok=True)
    with ThreadPoolExecutor(max_workers=1) as aside:
        notebooks = aside.submit(execute_notebooks, results)
        write_fragments(results, executed=notebooks.result, everywhere=True)
    (EXECUTED / SOURCES).write_text(sources)
    say("Building the book")
    index = build(out)
    index.with_name(SOURCES).write_text(sources)
    say(pace(time.monotonic() - began))
    return index


def pace(seconds: float) -> str:
    """Say how long a build took, beside what one should take.

    It is said and not asserted: how busy a machine is, is no fact about the book.
    """
    compared = "within" if seconds <= BUDGET else "over"
    return f"Built in {seconds:.0f} s, {compared} the {BUDGET} s that a build should take"


def fingerprint(results: Path) -> str:
    """Everything a book is made from, as a hash: records, notebooks, prose, package, commit."""
    folders = {"results": results, "notebooks": NOTEBOOKS, "book": BOOK, "package": PACKAGE}
    digest = hashlib.sha256((ROOT / "_config.yml").read_bytes())
    digest.update(str(provenance.commit()["commit"]).encode())
    for name, folder in folders.items():
        for path in sorted(folder.rglob("*")):
            place = path.relative_to(folder)
            left_out = any(part.startswith((".", "__pycache__")) for part in place.parts)
            if left_out or path.is_relative_to(EXECUTED) or not path.is_file():
                continue
            digest.update(f"\0{name}/{place.as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def execute_notebooks(results: Path, out: Path = EXECUTED) -> list[Path]:
    """Let papermill execute every notebook on the records in ``results``; returns what it wrote."""
    return execution.execute_all(sorted(NOTEBOOKS.glob("*.ipynb")), out, results)


def write_fragments(
    results: Path,
    out: Path = EXECUTED,
    executed: Callable[[], object] = lambda: None,
    everywhere: bool = False,
) -> list[Path]:
    """Write the passages that pages include, and the data of the page of provenance.

    executed    waits until the notebooks are; called before the passage that tells how long they
                took
    everywhere  in processes of their own, on all cores
    """
    state = survey(Store(results))
    out.mkdir(parents=True, exist_ok=True)
    names = [DATA, *(name for name in PASSAGES if name != OF_NOTEBOOKS)]
    if everywhere and warm.available():
        warm.share_records()
        written = warm.on_all_cores(_write, names, _begin, state, out)
    else:
        _begin(state, out)
        written = [_write(name) for name in names]
    executed()
    written = [*filter(None, written), out / f"{OF_NOTEBOOKS}.md"]
    written[-1].write_text(PASSAGES[OF_NOTEBOOKS](state), encoding="utf-8")
    for name in sorted(set(included()) - PASSAGES.keys()):  # of a paper that is not here
        written.append(out / f"{name}.md")
        written[-1].write_text("", encoding="utf-8")
    return written


_state: Survey
_out: Path


def _begin(state: Survey, out: Path) -> None:
    """Note in this process what passages are made from, and the folder that they are written to."""
    global _state, _out
    _state, _out = state, out


def _write(name: str) -> Path | None:
    """Write a passage and return its path; None for the data of the page of provenance.

    A process that is asked for several of them does together only once what they share.
    """
    if name == DATA:
        run_index.write(_state.store, _out / "static")
        return None
    path = _out / f"{name}.md"
    path.write_text(PASSAGES[name](_state), encoding="utf-8")
    return path


def included() -> list[str]:
    """List the passages that pages include, but not those of pages that a guide shows."""
    pages = (page for page in BOOK.rglob("*.md") if not page.is_relative_to(EXECUTED))
    texts = (SHOWN.sub("", page.read_text(encoding="utf-8")) for page in pages)
    return [name for text in texts for name in INCLUDED.findall(text)]


def build(out: Path = BUILD) -> Path:
    """Run Jupyter Book on ``book/`` from scratch, warnings being errors; returns ``index.html``.

    The pages replace ``out/html`` only when all of them are built.
    """
    with tempfile.TemporaryDirectory(prefix="relength-") as folder:
        pages = jupyter_book(Path(folder), "html")
        check_offline(pages)
        shutil.rmtree(out / "html", ignore_errors=True)
        out.mkdir(parents=True, exist_ok=True)
        shutil.move(pages, out / "html")
    return out / "html" / "index.html"


def jupyter_book(folder: Path, builder: str) -> Path:
    """Let a builder of Jupyter Book's set ``book/`` below ``folder``; returns where its pages are.

    Raises RelengthError with every warning when there is one.
    """
    command = Path(sys.executable).with_name("jupyter-book")
    if not command.exists():
        raise RelengthError(
            "Jupyter Book is not installed beside this Python: run `make book`, or install the "
            "package with its extra, `pip install 'relength[book]'`."
        )
    options = ["--path-output", folder, "--builder", builder, "--warningiserror", "--keep-going"]
    done = subprocess.run(
        [command, "build", BOOK, *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        complaints = [line for line in lines if "WARNING" in line or "ERROR" in line]
        raise RelengthError("The book did not build:\n" + "\n".join(complaints or lines[-15:]))
    return folder / "_build" / builder


def check_offline(html: Path) -> None:
    """Raise RelengthError if opening a page would ask the network for something.

    Reads pages and style sheets; what a script may fetch only a browser can tell (the tests do).
    """
    for page in sorted([*html.rglob("*.html"), *html.rglob("*.css")]):
        if found := REMOTE.search(page.read_text(encoding="utf-8")):
            raise RelengthError(
                f"Page {page.relative_to(html)} would load something from the network "
                f"({found.group()}…): serve it from book/assets instead."
            )
