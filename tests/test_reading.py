"""Reading is light: commands, pages and notebooks that show recorded runs import no PyTorch."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from relength.paths import NOTEBOOKS, RESULTS, ROOT

# What a new process runs before the rest: an import of PyTorch fails, as where it is not installed.
WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("something imports torch", name="torch")
sys.meta_path.insert(0, NoTorch())
"""
EXAMPLES = ("mla_edit_distance",)  # the others take two minutes


def run(program: str, *arguments: str) -> str:
    """Run a program that cannot import PyTorch, and return what it prints."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "lib"), "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH + textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "command",
    [
        *("list", "status --json"),
        *(pytest.param(c, marks=pytest.mark.weekly) for c in ("claims mla", "plan --most 3")),
    ],
)
def test_a_command_that_reads_needs_no_torch(command):
    program = "from relength.cli.main import main; sys.argv[0] = 'relength'; main()"
    assert run(program, *command.split()).strip()


@pytest.mark.weekly
def test_every_computed_passage_of_the_book_needs_no_torch():
    program = """
    from pathlib import Path
    from relength.report.passages import PASSAGES
    from relength.report.scoreboard import survey
    from relength.runs.store import Store
    state = survey(Store(Path(sys.argv[1])))
    print(sum(len(passage(state)) > 0 for passage in PASSAGES.values()))
    """
    assert int(run(program, str(RESULTS))) > 30


def sources(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_what_notebooks_import_needs_no_torch():
    """Nor does a look at what is loaded: a kernel that starts asks each module for its file."""
    lines = {
        line
        for notebook in NOTEBOOKS.glob("*.ipynb")
        for source in sources(notebook)
        for line in source.splitlines()
        if line.startswith(("from ", "import "))
    }
    assert any("notebook" in line for line in lines)
    program = """
    from importlib import import_module
    from relength.book import warm
    warm.share_records()
    exec(sys.argv[1])
    loaded = [*map(import_module, warm.IMPORTED), *sys.modules.values()]
    print(sum(bool(getattr(module, "__file__", None)) for module in loaded))
    """
    assert int(run(program, "\n".join(sorted(lines)))) > 500


@pytest.mark.parametrize(
    "notebook",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in EXAMPLES else pytest.mark.weekly)
        for path in sorted(NOTEBOOKS.glob("*.ipynb"))
    ],
)
def test_the_cells_of_a_notebook_that_shows_recorded_runs_need_no_torch(notebook):
    program = """
    import json
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance(history_length=0)
    for source in json.loads(sys.argv[1]):
        shell.run_cell(source, store_history=True).raise_error()
    """
    run(program, json.dumps(sources(notebook)))
