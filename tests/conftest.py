"""Shared by all tests: no network, one thread, repeatable examples, and very small runs.

What takes a second to import, fixtures do: the process that hands out tests needs none of it.
"""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock
from hypothesis import settings

from relength.paths import RESULTS, ROOT

if TYPE_CHECKING:
    from relength.runs.store import Store
    from relength.specs.spec import RunSpec

if not os.environ.get("RELENGTH_DATA"):
    os.environ["RELENGTH_OFFLINE"] = "1"

# Started by a hook of git, the tests' own repositories would be the one that the hook names.
for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
    os.environ.pop(name, None)

os.fsync = lambda _: None  # what a test records need not outlast the machine
os.environ["OMP_NUM_THREADS"] = "1"  # for PyTorch, here and in processes that tests start
gc.disable()  # until the tests are collected: thousands of them, and libraries, all of which stay

settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, max_examples=500)  # new examples each time
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


# The files that take longest (two minutes to six seconds), the longest first. One is a notebook.
LONGEST = (
    *("test_browser", "test_run", "test_guides", "test_stack", "test_notebook", "test_cli"),
    *("test_models", "test_cluster", "test_report", "test_engine", "test_bench", "test_recurrence"),
    *("test_kept", "test_tasks", "test_reading", "test_contributions", "test_panm"),
    *("test_transformers", "test_bookbuild", "test_constrained_dnc", "test_landing"),
    *("test_stack_rnn", "test_house", "test_state_space", "test_agenda", "test_networks"),
    *("test_notebook_numbers", "test_pointers", "test_verify", "panm_cost"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, and skip what needs a GPU or a browser where there is none.

    Processes that test at the same time take whole files, in this order: with a long one at the
    end, one core would work on it and the others wait.
    """
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONGEST)))

    here = {
        "gpu": (has_gpu, "no GPU here"),
        "browser": (
            has_browser,
            "Chromium is not installed (on Debian: apt-get install chromium), so nobody has looked "
            "at the book in a browser",
        ),
    }
    for marker, (there, reason) in here.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if marked and not there():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


def has_gpu() -> bool:
    """Tell whether PyTorch can compute on a GPU here."""
    import torch

    return torch.cuda.is_available()


def has_browser() -> bool:
    """Tell whether pages can be opened here."""
    from browser import CHROMIUM

    return CHROMIUM is not None


def pytest_collection_finish() -> None:
    """Spare the collector what stays until the end: libraries, and five thousand tests."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collect garbage again, in the process that hands out tests, too, which collects none."""
    gc.enable()


def pytest_sessionfinish() -> None:
    """Look at the last garbage once: pytest does so five times, at all that the tests have read."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a GPU, whatever this one has."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture(scope="session")
def tiny() -> "Callable[..., RunSpec]":
    """Makes specs of runs that train in a fraction of a second."""
    from relength.specs.spec import make_spec

    def make(
        task: str = "copy",
        model: str = "OneStepAttn",
        arm: str = "released",
        seed: int = 0,
        **training,
    ) -> "RunSpec":
        sizes = {"train_size": 24, "dev_size": 8, "test_size": 8, "validation_size": 8}
        return make_spec(
            task={"name": task, **sizes},
            model={"name": model, "arm": arm, "embedding_size": 6, "hidden_size": 8},
            training={"name": "epochs", "epochs": 3, "batch_size": 8, **training},
            scale="smoke",
            seed=seed,
        )

    return make


@pytest.fixture(scope="session")
def table_2():
    """The one experiment that a store of tiny runs belongs to."""
    from relength.specs.experiments import experiments

    return experiments()["mla_table2"]


@pytest.fixture(scope="module")
def chromium():
    """A browser for all tests of a file."""
    from browser import CHROMIUM, OFFLINE
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[OFFLINE])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def book(tmp_path_factory) -> Path:
    """The folder of pages: those of `make book`, unless something has changed since."""
    from pages import is_current

    from relength.book import build as bookbuild

    if is_current(bookbuild.BUILD / "html", RESULTS):
        return bookbuild.BUILD / "html"
    every = tmp_path_factory.getbasetemp()  # of all processes that test at the same time
    every = every.parent if os.environ.get("PYTEST_XDIST_WORKER") else every
    with FileLock(every / "book.lock"):
        if not is_current(every / "book" / "html", RESULTS):
            bookbuild.render(RESULTS, every / "book", say=lambda _: None)
    return every / "book" / "html"


@pytest.fixture(
    scope="module",
    params=["few claims", pytest.param("all claims", marks=pytest.mark.weekly)],
)
def claimed(request) -> Iterator[int]:
    """Choose how many claims are judged: about twenty in the place of a thousand, and weekly
    all.
    """
    import handmade

    from relength.verdicts import claims

    load, written = claims.load, claims.written
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "few claims":
            patch.setattr(claims, "load", lambda *a: [c for c in load(*a) if c.id in handmade.FEW])
            # What is kept on disk has the name of the claims that were judged, never of all.
            patch.setattr(claims, "written", lambda *a: written(*a) + b"few claims")
        yield sum(len(claims.load(paper)) for paper in claims.papers())


@pytest.fixture
def store(tmp_path: Path) -> "Store":
    """A store that does not exist yet."""
    from relength.runs.store import Store

    return Store(tmp_path / "results")


@pytest.fixture
def make_record() -> Callable[..., dict[str, Any]]:
    """Makes valid records; a number tells them apart."""
    import handmade

    from relength.specs.spec import make_spec

    def make(number: int = 0, **changes: Any) -> dict[str, Any]:
        fields = {"task": "copy", "model": "OneStepAttn", "training": "epochs"}
        spec = make_spec(**fields, scale="smoke", seed=number)
        record = handmade.record(spec, lambda *_: 0.5)
        apart = {"items": 8, "exact_match_true_length": 0.625, "edit_distance": 1.5}
        tests = record["checkpoints"]["selected"]["tests"]
        tests = {test: metrics | apart for test, metrics in tests.items()}
        return (
            record
            | {
                "run_id": f"{number:016x}",
                "checkpoints": {"selected": {"epoch": 2, "tests": tests}},
                "curve": [record["curve"][0] | {"epoch": epoch} for epoch in range(3)],
                "attention": None,
                "cost": {"steps": 9, "training_seconds": 1.0, "evaluation_seconds": 0.5},
            }
            | changes
        )

    return make


@pytest.fixture(scope="session")
def python() -> Callable[..., subprocess.Popen]:
    """Starts Python on this checkout, output captured."""

    def start(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.Popen:
        variables = {"PYTHONPATH": str(ROOT / "lib"), "COLUMNS": "200"}
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=cwd,
            env=os.environ | variables | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start
