"""Commands that write pages: the book, and what notebooks keep of their outputs."""

import os
from pathlib import Path
from typing import Annotated

import typer

from relength.cli.app import Results, console, store_of
from relength.errors import RelengthError
from relength.paths import RESULTS, ROOT


def render(
    results: Results = RESULTS,
    out: Annotated[
        Path, typer.Option(help="Folder for the built book.", show_default="_build/")
    ] = (ROOT / "_build"),
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Also print it as one PDF, with Chromium.")
    ] = False,
    archive: Annotated[
        bool, typer.Option("--archive", help="Also pack its pages into one file, with a checksum.")
    ] = False,
) -> None:
    """Execute every notebook from the recorded runs and build the book; trains nothing."""
    from relength.book import build as bookbuild
    from relength.book import editions

    if out.exists() and not out.is_dir():
        raise RelengthError(f"{out} is a file: name a folder for the book with --out.")
    if pdf:
        editions.chromium()  # missing, it is said now and not when all else is done
    index = bookbuild.render(store_of(results).path, Path(out))
    console.print(f"The book is at {index}", soft_wrap=True)
    if pdf:
        console.print(f"The PDF is at {editions.pdf(Path(out))}", soft_wrap=True)
    if archive:
        packed = editions.archive(index.parent, Path(out))
        console.print(f"The archive is at {packed}", soft_wrap=True)


def refresh(
    notebooks: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Notebook files.", exists=True, dir_okay=False, show_default="all of notebooks/"
        ),
    ] = None,
) -> None:
    """Bring committed files up to date with results/: notebooks' outputs, exports for others.

    Part of every merge; tests compare them.
    """
    from relength.book import exports
    from relength.book.notebook import refresh as store_outputs
    from relength.paths import NOTEBOOKS
    from relength.runs.store import Store

    chosen = notebooks or sorted(NOTEBOOKS.glob("*.ipynb"))
    for path in chosen:  # before any of them is executed
        if path.suffix != ".ipynb":
            raise RelengthError(f"{path} is no notebook: name files of notebooks/.")
        if not os.access(path, os.W_OK):
            raise RelengthError(f"{path} is read-only: refresh it in a checkout of your own.")
    store_outputs(chosen)
    for path in (*chosen, *exports.write(Store(RESULTS))):
        console.print(f"Refreshed {path}", soft_wrap=True)
