"""Committed notebooks show what they print today.

The outputs of the cells that are compared are those that papermill gets from today's code and
records: `make book` has just executed every notebook, so its outputs are used, unless something has
changed since. `pytest --nbval-lax notebooks` compares the same with kernels of its own.
"""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from pages import is_current

from relength.book import execution
from relength.book.notebook import CHECKED, normalise
from relength.paths import EXECUTED, NOTEBOOKS, RESULTS

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))


def tagged(cell: nbformat.NotebookNode, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


@pytest.fixture(scope="module")
def executed(tmp_path_factory) -> Callable[[Path], nbformat.NotebookNode]:
    """Reads a notebook as `make book` has left it, or executes it now."""
    folder = EXECUTED
    if not is_current(EXECUTED, RESULTS):
        folder = tmp_path_factory.mktemp("executed")

    def read(path: Path) -> nbformat.NotebookNode:
        if not (folder / path.name).exists():
            execution.execute(path, folder / path.name, RESULTS)
        notebook = nbformat.read(folder / path.name, as_version=4)
        notebook.cells = [
            cell for cell in notebook.cells if not tagged(cell, "injected-parameters")
        ]
        return notebook

    return read


def compared(notebook: nbformat.NotebookNode) -> list[tuple[str, list]]:
    """Source and outputs of the cells that are compared, in the form that is committed."""
    normalise(notebook)
    return [(cell.source, cell.outputs) for cell in notebook.cells if tagged(cell, CHECKED)]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_stored_outputs_are_what_the_notebook_prints_today(path, executed):
    stored, today = nbformat.read(path, as_version=4), executed(path)
    assert [cell.source for cell in stored.cells] == [cell.source for cell in today.cells]
    assert compared(stored) == compared(today), "run `relength refresh` and commit what it changes"


def test_an_output_that_differs_in_one_letter_is_noticed(executed):
    other = executed(PATHS[0])
    output = next(cell for cell in other.cells if tagged(cell, CHECKED)).outputs[0]
    output.text = output.text[:-2] + "?" + output.text[-1:]
    assert compared(other) != compared(executed(PATHS[0]))
