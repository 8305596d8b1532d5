"""The house: arrows go down, a paper is one folder, the book of the others stands without it."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
import yaml
from importlinter.application.use_cases import create_report, read_user_options
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from relength.errors import RelengthError
from relength.models import MODELS
from relength.paths import ROOT
from relength.report import style
from relength.specs import registry
from relength.specs.paper import Paper
from relength.tasks import TASKS
from relength.training import provenance

LIB = ROOT / "lib" / "relength"
# Where names of models and tasks are at home.
OWN_NAMES = ("papers", "models", "tasks", "kernels")
PAPER = "mla"


def against_the_arrows(config: Path) -> list[str]:
    """A sentence for each way that goes against the order of rooms in a pyproject.toml.

    A way is an import, or several in a row.
    """
    if lint_imports(config_filename=str(config), no_cache=True) == EXIT_STATUS_SUCCESS:
        return []
    found = set()
    report = create_report(read_user_options(str(config)), cache_dir=None)
    for _, check in report.get_contracts_and_checks():
        told = check.metadata
        routes = [way for pair in told.get("invalid_dependencies", ()) for way in pair["routes"]]
        routes += [way for pair in told.get("invalid_chains", ()) for way in pair["chains"]]
        for way in (route["chain"] for route in routes):
            one, other = way[0]["importer"], way[-1]["imported"]
            found.add(
                f"{one} ({one.split('.')[1]}) may not import {other} ({other.split('.')[1]}): "
                "the order of rooms is in pyproject.toml"
            )
        found |= {
            f"{module} is in no room: the rooms are in pyproject.toml"
            for module in told.get("undeclared_modules", ())
        }
    return sorted(found) or ["import-linter could not look: its output says why"]


def test_arrows_between_rooms_go_down(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = against_the_arrows(ROOT / "pyproject.toml")
    assert not found, "\n".join(found)


def test_an_import_against_the_arrows_is_told_in_a_sentence(tmp_path, monkeypatch):
    files = {
        "house/__init__.py": "",
        "house/attic/__init__.py": "",
        "house/attic/roof.py": "",
        "house/cellar/__init__.py": "",
        "house/cellar/stone.py": "from house.attic import roof\n",
        "house/shed.py": "",
        "pyproject.toml": """
            [tool.importlinter]
            root_package = "house"
            [[tool.importlinter.contracts]]
            name = "Arrows between rooms go down"
            type = "layers"
            containers = ["house"]
            exhaustive = true
            layers = ["attic", "cellar"]
        """,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert against_the_arrows(tmp_path / "pyproject.toml") == [
        "house.cellar.stone (cellar) may not import house.attic.roof (attic): "
        "the order of rooms is in pyproject.toml",
        "house.shed is in no room: the rooms are in pyproject.toml",
    ]


def modules() -> dict[str, str]:
    """The library outside of the papers: {path: text}."""
    files = {path.relative_to(LIB).as_posix(): path for path in LIB.rglob("*.py")}
    return {
        name: path.read_text()
        for name, path in sorted(files.items())
        if name.split("/")[0] not in OWN_NAMES
    }


def test_only_the_registry_names_a_paper():
    titles = [re.escape(paper.title) for paper in registry.papers().values()]
    named = re.compile("|".join((*registry.PAPERS, *titles)), re.IGNORECASE)  # in any word
    found = {name for name, text in modules().items() if named.search(text)}
    assert found == {"specs/registry.py"}


def test_nobody_else_names_a_model_or_a_task_of_a_paper():
    papers = registry.papers().values()
    models = {model for paper in papers for model in (*paper.colours, *paper.variants)}
    tasks = {style.title(task) for task in registry.tasks()} | {*registry.tasks()}
    # Words of everyday English and of programming, which say nothing of a paper.
    common = {"content", "relative", "copy", "reverse", "mix", "-step"}
    common |= {"add", "search", "sort", "shift", "logic"}
    names = [name for name in sorted(models | tasks) if name.lower() not in common]
    named = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, names))})(?!\w)", re.IGNORECASE)
    found = {name: set(named.findall(text)) for name, text in modules().items()}
    # Three papers are named like their model.
    assert {name: names for name, names in found.items() if names} == {
        "specs/registry.py": {"panm", "dnc", "memreasoner"}
    }


def test_a_metric_is_named_by_its_task_alone():
    quoted = re.compile(rf"""["']({"|".join(registry.test_metrics())})["']""")
    found = {name: quoted.findall(text) for name, text in modules().items()}
    # A margin may be named like the one metric that it is for.
    assert {name: names for name, names in found.items() if names} == {
        "specs/margins.py": ["edit_distance"]
    }


def test_papers_are_imported_by_name_alone():
    imported = re.compile(r"^\s*(from|import) relength\.papers", re.MULTILINE)
    assert not [name for name, text in modules().items() if imported.search(text)]


def test_what_a_paper_names_as_text_is_there():
    for paper in registry.papers().values():
        speed = (paper.speed.spec, paper.speed.loop) if paper.speed else ()
        hooks = (paper.recounts, paper.shares, paper.computed, paper.spans)
        for text in (
            *hooks,
            paper.benchmark,
            paper.pairs,
            paper.known,
            paper.near,
            *paper.passages,
            *speed,
        ):
            assert not text or paper.load(text) is not None
        assert {paper.main, *paper.borrowed} - {""} <= {
            *(found.name for found in paper.experiments), *paper.borrowed
        }  # fmt: skip


def test_a_folder_without_a_paper_is_named(monkeypatch):
    monkeypatch.setattr(registry, "PAPERS", ("nobody",))
    with pytest.raises(RelengthError, match=r"papers/nobody.*PAPERS"):
        registry.papers.__wrapped__()


def test_a_paper_without_a_line_in_the_registry_is_named(monkeypatch):
    *others, last = registry.PAPERS
    monkeypatch.setattr(registry, "PAPERS", tuple(others))
    with pytest.raises(RelengthError, match=rf"papers/{last}.*PAPERS"):
        registry.papers.__wrapped__()


def test_what_a_paper_brings_is_registered_beside_the_rest(monkeypatch, tmp_path):
    folder = tmp_path / "relength_made_up"
    folder.mkdir()
    (folder / "tasks.py").write_text("TASKS = {'own': int}")
    monkeypatch.syspath_prepend(tmp_path)

    class Bringing(Paper):
        def load(self, text):
            module, _, name = text.partition(":")
            return getattr(importlib.import_module(f"relength_made_up.{module}"), name)

    plain = {"title": "", "short": "", "idea": "", "cited": ""}
    paper = Bringing(name="made_up", brings=("tasks",), **plain)
    monkeypatch.setattr(registry, "papers", lambda: {"made_up": paper})
    assert registry.tasks() == {**TASKS, "own": int}
    assert registry.models() == MODELS
    sys.modules["relength_made_up.tasks"].TASKS["copy"] = int
    with pytest.raises(RelengthError, match=r"'copy' of lib/relength/papers/made_up/tasks is"):
        registry.tasks()


@pytest.mark.parametrize(
    "file, trains",
    [
        ("tasks/base.py", True),
        ("papers/pointing/tasks.py", True),
        ("papers/pointing/models/summary.py", True),
        ("papers/pointing/protocols.py", True),
        ("papers/pointing/experiments.py", False),
        ("papers/tasks.py", False),
        ("report/tables.py", False),
    ],
)
def test_a_paper_s_own_tasks_models_and_protocols_are_training_code(file, trains):
    assert provenance.trains(PurePosixPath(file)) == trains


def test_two_papers_cannot_colour_one_model_differently(monkeypatch):
    plain = {"title": "", "short": "", "idea": "", "cited": ""}
    pair = [Paper(name=shade, colours={"Both": shade}, **plain) for shade in ("red", "blue")]
    monkeypatch.setattr(registry, "papers", lambda: {paper.name: paper for paper in pair})
    with pytest.raises(RelengthError, match="'Both' different colours"):
        registry.united("colours")
    assert len(set(style.MODEL_COLOURS.values())) == len(style.MODEL_COLOURS)


@pytest.fixture(scope="module")
def without(tmp_path_factory) -> Path:
    """A copy of the project from which one paper was taken out, as somebody would by hand."""
    copy = tmp_path_factory.mktemp("without") / "relength"
    ignore = shutil.ignore_patterns("executed", "*.egg-info")  # what is compiled goes along
    for name in ("lib", "book", "notebooks", "results"):
        shutil.copytree(ROOT / name, copy / name, ignore=ignore)
    for path in ROOT.glob("*.*"):
        if path.is_file():
            shutil.copy(path, copy)
    shutil.rmtree(copy / "lib" / "relength" / "papers" / PAPER)
    shutil.rmtree(copy / "results" / PAPER, ignore_errors=True)
    gone = [
        *(copy / "notebooks").glob(f"{PAPER}_*.ipynb"),
        *(path for path in (copy / "book").rglob("*") if PAPER in re.split(r"[_.]", path.name)),
    ]
    for path in gone:
        path.unlink()
    names = copy / "lib" / "relength" / "specs" / "registry.py"
    names.write_text(names.read_text().replace(f'    "{PAPER}",\n', ""))
    toc = copy / "book" / "_toc.yml"
    pages = yaml.safe_load(toc.read_text())
    for part in pages["parts"]:
        part["chapters"] = [
            page for page in part["chapters"] if PAPER not in re.split(r"[_/]", page["file"])
        ]
    pages["parts"] = [part for part in pages["parts"] if part["chapters"]]
    toc.write_text(yaml.safe_dump(pages, sort_keys=False))
    return copy


ALL_OF_IT = f"""
import importlib, pkgutil, sys
from pathlib import Path
import relength
for module in pkgutil.walk_packages(relength.__path__, "relength."):
    if module.name != "relength.__main__" and not module.name.endswith("_triton"):  # need Triton
        importlib.import_module(module.name)
from relength.report.coverage import notes, rows
from relength.report.scoreboard import status, survey
from relength.runs.store import Store
store = Store(Path(sys.argv[1]))
assert "{PAPER}" not in set(survey(store).ledger["paper"])
assert rows(status(store), every=True) and list(notes(status(store), every=True))
"""


def run(copy: Path, *command: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=copy,
        env={**__import__("os").environ, "PYTHONPATH": str(copy / "lib"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def test_the_library_stands_without_a_paper(without, tmp_path):
    run(without, "-c", ALL_OF_IT, tmp_path / "nothing")


@pytest.mark.slow
@pytest.mark.weekly
def test_the_book_of_the_others_builds_without_a_paper(without, tmp_path):
    run(without, "-m", "relength.cli.main", "render", "--out", tmp_path / "book")
    index = (tmp_path / "book" / "html" / "intro.html").read_text()
    assert registry.papers()["panm"].title in index
    assert registry.papers()[PAPER].title not in index
    passages = {path.stem for path in (without / "book" / "executed").glob("*.md")}
    assert {"outcomes", "length_content", "findings_panm_reading"} <= passages
    assert f"facts_{PAPER}" not in passages
