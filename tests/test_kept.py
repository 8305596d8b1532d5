"""Values kept on disk are computed once and never out of date, and nothing depends on them."""

import ast
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import handmade
import pytest

from relength import kept as module
from relength.kept import kept
from relength.papers.panm import covering
from relength.report.runs import Runs
from relength.runs import store as records
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.tasks import books
from relength.verdicts import claims, judged

PACKAGE = module.PACKAGE


@pytest.fixture
def folder(monkeypatch, tmp_path) -> Path:
    """A place of its own to keep things in."""
    monkeypatch.setattr(module, "FOLDER", tmp_path / "kept")
    return tmp_path / "kept"


@pytest.fixture
def made(folder):
    """A function that keeps a list and counts how often it is made."""
    calls = []

    def ask(*given: str, code: tuple[str, ...] = ("streams",)) -> list[int]:
        return kept("test", lambda: calls.append(given) or [1, 2], *given, code=code)

    ask.calls = calls
    return ask


OTHER = """
import sys
from pathlib import Path
from relength import kept
kept.FOLDER = Path(sys.argv[1])
def make():
    print("begun", flush=True)
    sys.stdin.readline()
    return ["of the other"]
kept.kept("test", make, "a", code=("streams",))
"""


def test_a_value_is_computed_once_for_what_it_follows_from(made):
    assert made("a") == made("a") == [1, 2]
    assert made("b") == [1, 2]
    assert made("a", "b") == made("ab") == [1, 2]  # not the same: parts are told apart
    assert made.calls == [("a",), ("b",), ("a", "b"), ("ab",)]


def test_each_reader_gets_a_value_of_its_own(made):
    made("a").append(3)
    assert made("a") == [1, 2]


@pytest.mark.parametrize("content", [b"", b"damaged", b"\x80\x04."])
def test_a_damaged_file_is_computed_again(made, content):
    made("a")
    (file,) = module.FOLDER.iterdir()
    whole = file.read_bytes()
    file.write_bytes(content)
    assert made("a") == [1, 2] and len(made.calls) == 2
    assert file.read_bytes() == whole


def test_where_nothing_can_be_written_it_is_computed_each_time(made, folder):
    folder.write_text("a file where the folder would be")
    assert made("a") == made("a") == [1, 2] and len(made.calls) == 2


def test_what_may_be_read_and_not_written_is_used(made, monkeypatch):
    made("a")

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "utime", refuse)
    assert made("a") == [1, 2] and len(made.calls) == 1


def test_the_values_of_a_name_that_were_used_last_are_kept_and_older_ones_removed(made, folder):
    kept("test-other", lambda: 5, code=("streams",))
    for number, given in enumerate("abcd"):
        made(given)
        for file in folder.iterdir():
            os.utime(file, (number, number)) if file.stat().st_mtime > 100 else None
        if given == "c":
            made("a")  # which has been read since, and b has not
    assert len(list(folder.iterdir())) == 1 + module.LATEST
    made.calls.clear()
    for given in "acd":
        made(given)
    assert made.calls == []
    made("b")
    assert made.calls == [("b",)]


def test_what_another_process_computes_is_waited_for_and_read(folder, python, made):
    """The other says when it has begun, and ends when it is told to."""
    other = python("-c", OTHER, str(folder))
    assert other.stdout.readline() == "begun\n", other.stderr.read()
    with ThreadPoolExecutor(1) as aside:
        mine = aside.submit(made, "a")
        with pytest.raises(TimeoutError):
            mine.result(timeout=0.2)
        other.communicate("on\n")
        assert mine.result(timeout=60) == ["of the other"] and made.calls == []
    assert list(folder.with_name("locks").iterdir()) == []


def test_who_waits_too_long_computes_it_himself(folder, python, made, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    other = python("-c", OTHER, str(folder))
    assert other.stdout.readline() == "begun\n", other.stderr.read()
    assert made("a") == [1, 2] and made.calls == [("a",)]
    other.communicate("on\n")


# --- code ---------------------------------------------------------------------------------------


def test_only_changed_code_that_it_may_run_computes_anew(made, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "package")
    # A new process asks anew.
    monkeypatch.setattr(module, "code_digest", module.code_digest.__wrapped__)
    for name in ("room/a.py", "room/inner/b.csv", "papers/x/c.py", "papers/y/c.py", "leaf.py"):
        file = tmp_path / "package" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
    code = ("room", "papers.*.c", "leaf")
    made(code=code)
    (tmp_path / "package" / "room" / "note.txt").write_text("no code")
    (tmp_path / "package" / "papers" / "x" / "d.py").write_text("not named")
    made(code=code)
    assert len(made.calls) == 1
    for number, name in enumerate(("room/inner/b.csv", "papers/y/c.py", "leaf.py"), start=2):
        (tmp_path / "package" / name).write_text("2")
        made(code=code)
        assert len(made.calls) == number


# {what is kept: work that makes it, in a process that does nothing else}
WORK = {
    "error-rates": "from relength.verdicts.false_verdicts import *; false_verdict_rates(1)",
    "claims-panm": "from relength.verdicts import claims; claims.load('panm')",
    "claims-then-panm": """
from relength.verdicts import claim_history
claim_history.changed("panm-001", "panm", claim_history.Origin("", None, "unknown"))
""",
    "runs-panm-elsewhere": "from relength.verdicts import judged; judged.runs('panm', store)",
    "ledger-panm-elsewhere": "from relength.verdicts import judged; judged.ledger('panm', store)",
    "valid-panm_long_to_short.runs": "Store(RESULTS).records('panm_long_to_short')",
    "movement": """
import numpy
from relength.papers.dnc import states
from relength.training import traces
kept = traces.small_integers(numpy.random.default_rng(0).normal(size=(2, 20, 3)))
states.movement(kept | {"read_steps": 12, "read": ["0123456789ab"] * 2, "portraits": {}})
""",
    "computed-elsewhere": "from relength.report import scoreboard; scoreboard.survey(store)",
    "survey-elsewhere": "from relength.report import scoreboard; scoreboard.survey(store)",
    "status-elsewhere": "from relength.report import scoreboard; scoreboard.status(store)",
}
# The others are steps on the way to these, or do more; each takes two seconds to eight.
OFTEN = ("error-rates", "ledger-panm-elsewhere", "valid-panm_long_to_short.runs", "movement")
STORE = """
from relength.paths import RESULTS
from relength.runs.store import Store
store = Store(sys.argv[1])
"""
PROBE = """
import json
import sys
from pathlib import Path
from types import ModuleType
from relength import kept as module
asked = {}
def made(name, make, *given, code):
    asked[name] = code
    return make()
def remember(name, value, *given, code):
    asked[name] = code
module.kept, module.remember, module.recall = made, remember, lambda *given, **code: None
%s
ours = [m for name, m in sys.modules.items() if name.startswith("relength.")]
loaded = {Path(m.__file__) for m in ours if type(m) is ModuleType}  # others wait to be loaded
print(json.dumps({
    name: [str(file.relative_to(module.PACKAGE)) for file in loaded.difference(module.files(code))]
    for name, code in asked.items()
}))
"""
# Anything imports these, and they compute nothing.
LEAVES = {"errors.py", "kept.py", "paths.py"}


def is_empty(file: Path) -> bool:
    """A module that has a docstring at most."""
    return all(isinstance(node, ast.Expr) for node in ast.parse(file.read_text()).body)


@pytest.fixture(scope="module")
def imports(python, tmp_path_factory) -> Callable[[str], dict[str, list[str]]]:
    """Does some work in a new process, once; returns {what is kept: modules not in its code}."""
    folder = tmp_path_factory.mktemp("imports") / "store"
    found = experiment("panm_algorithmic")
    spec = next(s for s in found.specs("reduced", [0]) if s.model.name == "PANM")
    Store(folder).append("panm", handmade.record(spec, lambda *_: 0.5, experiment=found.name))

    @cache
    def do(work: str) -> dict[str, list[str]]:
        work = STORE + work if "store" in work.lower() else work
        process = python("-c", PROBE % work, str(folder))
        said, errors = process.communicate()
        assert process.returncode == 0, errors
        return json.loads(said)

    return do


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in OFTEN else pytest.mark.weekly) for name in WORK],
)
def test_the_code_that_a_value_is_kept_by_is_all_that_it_imports(name, imports):
    kept_here = imports(WORK[name])
    (files,) = (files for full, files in kept_here.items() if full.startswith(name))
    forgotten = {line for line in files if not is_empty(PACKAGE / line)}
    assert forgotten <= LEAVES


def imported(name: str) -> set[str]:
    """The modules of the package that a module imports, and those that they import."""
    found, waiting = set(), [name]
    while waiting:
        module_name = waiting.pop()
        if module_name in found:
            continue
        found.add(module_name)
        for node in ast.walk(
            ast.parse((PACKAGE / f"{module_name.replace('.', '/')}.py").read_text())
        ):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("relength."):
                waiting.append(node.module.removeprefix("relength."))
    return found


def test_counts_of_books_follow_from_their_code_and_from_the_texts_that_are_given():
    """Where the texts come from makes no difference: they are part of the name."""
    files = {f"{name.replace('.', '/')}.py" for name in imported("tasks.bpe") | {"tasks.books"}}
    assert {file.relative_to(PACKAGE).as_posix() for file in module.files(books.CODE)} == files


def test_the_simulations_of_exposure_follow_from_their_code_alone():
    """Importing them imports the paper that they belong to, too, which they do not ask."""
    files = {f"{name.replace('.', '/')}.py" for name in imported("papers.panm.covering")}
    named = {file.relative_to(PACKAGE).as_posix() for file in module.files(covering.CODE)}
    assert named and files <= named | LEAVES


# --- what is kept -------------------------------------------------------------------------------


def recorded(folder: Path, *names: str) -> Store:
    """A store with one run of each of these experiments."""
    store = Store(folder)
    for number, name in enumerate(names):
        found = experiment(name)
        record = handmade.record(found.specs("reduced", [0])[0], lambda *_: 0.5, experiment=name)
        store.append(found.paper, record | {"run_id": f"{number:016x}"})
    return store


def test_a_new_record_of_one_paper_judges_no_other_one_again(folder, monkeypatch, tmp_path):
    made, judge = [], claims.ledger
    monkeypatch.setattr(claims, "ledger", lambda *given: made.append(1) or judge(*given))
    monkeypatch.setattr(claims, "load", lambda paper: [])
    store = recorded(tmp_path / "results", "mla_table2", "panm_algorithmic")
    for _ in range(2):
        judged.ledger("mla", store), judged.ledger("panm", store)
        assert len(made) == 2
    record = store.records("panm_algorithmic")[0] | {"run_id": "f" * 16}
    store.append("panm", record)
    judged.ledger("mla", store)
    assert len(made) == 2
    judged.ledger("panm", store)
    assert len(made) == 3
    store.freshness.write_text(json.dumps({"code": None, "stale": ["f" * 16], "probes": []}))
    judged.ledger("panm", store)
    assert len(made) == 4


CELL = "Content", "copy"


def test_a_page_of_all_runs_shows_rows_of_the_papers_ledger(folder, monkeypatch, tmp_path):
    found = experiment("mla_table2")
    store = Store(tmp_path / "results")
    specs = [s for s in found.specs("reduced", (0, 1)) if (s.row, s.task.name) == CELL]
    for number, spec in enumerate(specs):
        record = handmade.record(spec, lambda *_: 0.5) | {"run_id": f"{number:016x}"}
        store.append("mla", record)
    every = Runs.read(found, "reduced", 2, store)
    whole = judged.ledger("mla", store).set_index("claim")
    with monkeypatch.context() as patch:
        patch.setattr(claims, "ledger", None)  # it judges nothing again
        shown = every.ledger.set_index("claim")
    assert len(shown) > 100 and shown["seen"].equals(whole.loc[shown.index, "seen"])
    fewer = Runs.read(found, "reduced", 1, store)
    assert shown["seeds"].max() == 2 and fewer.ledger["seeds"].max() == 1


def test_a_line_that_was_found_valid_is_not_validated_again_while_it_stays(
    folder, monkeypatch, tmp_path
):
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    store = recorded(tmp_path / "results", "mla_table2")
    (file,) = store.files()
    seen, check = [], records._check

    def read() -> int:
        seen.clear()
        monkeypatch.setattr(records, "_known", {})  # as a new process begins
        return len(list(records.read(file)))

    monkeypatch.setattr(records, "_check", lambda *given: seen.append(1) or check(*given))
    assert read() == 1 and len(seen) == 1
    assert read() == 1 and not seen
    store.append("mla", store.records()[0] | {"run_id": "e" * 16})
    assert read() == 2 and len(seen) == 1
    lines = file.read_text().splitlines()
    broken = json.loads(lines[0]) | {"status": "unheard of"}
    file.write_text("".join(f"{line}\n" for line in (json.dumps(broken), *lines[1:])))
    with pytest.raises(Exception, match=r"line 1, is not a valid record"):
        read()
