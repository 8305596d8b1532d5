"""The scoreboard counts what its definition says; the book is made from nothing but the store."""

import importlib.util
import itertools
import json
import os
import re
from collections import Counter
from functools import partial
from pathlib import Path

import handmade
import nbformat
import pytest
from docutils import nodes
from docutils.core import publish_doctree
from handmade import in_a_row
from pages import is_current

from relength.book import build as bookbuild
from relength.book import warm
from relength.book.notebook import CHECKED, refresh
from relength.errors import RelengthError
from relength.paths import BOOK
from relength.report import expenses, markdown, passages, scoreboard
from relength.report.passages import PASSAGES
from relength.report.style import verdict_kind
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.specs.published import artifacts
from relength.verdicts import claims

pytestmark = pytest.mark.usefixtures("claimed")

TABLE_2 = experiments()["mla_table2"]
RUN_IDS = itertools.count()


def record(spec, exact_match=1.0, status="ok", seconds=36.0):
    """A record made by hand, of an execution of its own."""
    own = {"run_id": f"{next(RUN_IDS):016x}"}
    if status == "failed":
        return handmade.failed(spec) | own
    cost = {"steps": 100, "training_seconds": seconds, "evaluation_seconds": 0.0}
    return handmade.record(spec, lambda *_: exact_match) | own | {"cost": cost}


def write(folder, records):
    """All records in one go: Store.append locks and syncs for each, which takes its time."""
    file = Store(folder).file(TABLE_2.paper, TABLE_2.name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(r) + "\n" for r in records))
    return Store(folder)


def judged(scale, seeds):
    specs = TABLE_2.specs(scale, seeds)
    return [spec for spec in specs if spec.model.arm == TABLE_2.judged_arm]


def min_seeds(store):
    own = scoreboard.own_records(TABLE_2, store)
    return {s: min(scoreboard.cell_seeds(TABLE_2, own, s).values()) for s in scoreboard.SCALES}


@pytest.fixture(scope="module")
def no_verdicts(tmp_path_factory, claimed):
    """The ledger of an empty store: judging takes its time and has tests of its own."""
    return scoreboard.ledger(Store(tmp_path_factory.mktemp("empty")))


@pytest.fixture(autouse=True)
def nothing_executed(tmp_path, monkeypatch):
    """The book's own executed notebooks may be in the making, for the tests in a browser."""
    monkeypatch.setattr(expenses, "EXECUTED", tmp_path / "no notebooks")


def test_an_empty_store_shows_every_artifact_and_no_seed(tmp_path):
    state = scoreboard.status(Store(tmp_path / "nothing"))["artifacts"]
    assert list(state) != [] and set(state) == set(artifacts()["artifact"])
    assert state["mla-table-2"]["cells"] == 48
    assert set(state["mla-table-2"]["verdicts"]) <= {"not run", "not testable"}
    assert sum(state["mla-table-2"]["verdicts"].values()) > 0
    for name, row in state.items():
        assert row["min_seeds"] == {"reduced": 0, "paper": 0}, name
        if not any(name in e.artifacts for e in experiments().values()):
            # What is said of a table that borrows all of its runs has no cells of its own.
            said = sum(c.artifact == name for p in claims.papers() for c in claims.load(p))
            assert row["cells"] == 0 and sum(row["verdicts"].values()) == said, name
            assert set(row["verdicts"]) <= {"not run", "not testable"}, name
    assert json.loads(json.dumps(state)) == state


def test_min_seeds_is_the_number_of_seeds_that_every_cell_has(tmp_path):
    records = [record(spec) for spec in judged("reduced", range(3))]
    assert min_seeds(write(tmp_path, records)) == {"reduced": 3, "paper": 0}
    assert min_seeds(write(tmp_path, records[:-1]))["reduced"] == 2
    assert min_seeds(write(tmp_path, records[:47]))["reduced"] == 0


def test_scales_are_counted_apart_and_smoke_not_at_all(tmp_path):
    records = [record(s) for s in (*judged("smoke", range(5)), *judged("paper", range(1)))]
    assert min_seeds(write(tmp_path, records)) == {"reduced": 0, "paper": 1}


def test_what_is_not_a_seed_of_the_judged_arm_adds_nothing(tmp_path):
    complete = judged("reduced", range(2))
    gap = complete.pop()
    cell = (gap.model.name, gap.task.name)
    others = [
        s
        for s in TABLE_2.specs("reduced", range(2))
        if s.model.arm != TABLE_2.judged_arm and (s.model.name, s.task.name) == cell
    ]
    slower = gap.model_copy(
        update={"training": gap.training.model_copy(update={"learning_rate": 1e-4})}
    )
    first = next(s for s in complete if (s.model.name, s.task.name) == cell)
    extra = [
        *(record(s) for s in others),
        record(slower),
        record(gap, status="failed"),
        record(first),
        record(first),
    ]
    store = write(tmp_path, [*(record(s) for s in complete), *extra])
    assert others and min_seeds(store)["reduced"] == 1
    store = write(tmp_path, [*(record(s) for s in (*complete, gap)), *extra])
    assert min_seeds(store)["reduced"] == 2


def test_states_of_an_artifact_follow_its_runs(tmp_path, no_verdicts):
    def state(records):
        board = scoreboard.board(write(tmp_path, records), no_verdicts).set_index("artifact")
        assert board.loc["memreasoner-table-6", "state"] == "shown"
        return board.loc["mla-table-2", "state"], board.loc["panm-table-10", "state"]

    specs = judged("reduced", range(1))
    assert state([]) == ("planned", "absent")
    assert state([record(specs[0])]) == ("partly", "absent")
    assert state([record(s) for s in specs]) == ("recorded", "absent")

    def with_verdict(verdict):
        changed = no_verdicts.copy()
        changed.loc[changed["artifact"] == "mla-table-2", "verdict"] = verdict
        board = scoreboard.board(write(tmp_path, [record(s) for s in specs]), changed)
        return board.set_index("artifact").loc["mla-table-2", "state"]

    assert [with_verdict(v) for v in ("reproduced", "contradicted")] == ["decided"] * 2
    for open_verdict in (claims.NOT_REACHED, claims.EXCEEDED, "inconclusive"):
        assert with_verdict(open_verdict) == "recorded"


def test_verdict_counts_of_an_artifact_are_those_of_the_ledger(tmp_path):
    store = write(tmp_path, [record(s) for s in judged("reduced", range(1))[:8]])
    ledger = scoreboard.ledger(store)
    counts = Counter(ledger.loc[ledger["artifact"] == "mla-table-2", "verdict"])
    assert counts["inconclusive"] and counts["not run"]
    row = scoreboard.status(store)["artifacts"]["mla-table-2"]
    assert row["verdicts"] == dict(counts) and row["min_seeds"] == min_seeds(store)


def test_costs_add_up_over_everything_that_was_executed(tmp_path):
    specs = judged("reduced", range(1))[:3]
    records = [record(s) for s in specs] + [record(specs[0]), record(specs[1], status="failed")]
    (row,) = scoreboard.costs(write(tmp_path, records).records()).itertuples()
    assert (row.trainings, row.failed, row.steps) == (4, 1, 400)
    assert row.hours == pytest.approx(4 * 36 / 3600)


@pytest.mark.weekly  # of what is recorded, every build tells
def test_no_two_passages_have_a_label_in_common(tmp_path, no_verdicts):
    """Whatever is recorded: here a run at both scales, one of them executed twice."""
    (short, *_), (long, *_) = (judged(scale, range(1)) for scale in ("reduced", "paper"))
    later = record(short, 0.95)
    later["provenance"] = later["provenance"] | {"created": "2027-01-01T00:00:00Z"}
    state = scoreboard.survey(write(tmp_path, [record(short), later, record(long)]))
    text = {name: passage(state) for name, passage in PASSAGES.items() if name != "error_rates"}
    assert "tab-again" in text["self_checks_again"] and "tab-scales" in text["self_checks_scales"]
    labels = re.findall(r"^:name: (.+)$", "\n".join(text.values()), re.MULTILINE)
    assert sorted(labels) == sorted(set(labels))


def test_passages_from_an_empty_store_say_that_nothing_was_run(tmp_path, monkeypatch):
    monkeypatch.setattr(passages, "REPEATS", 2)  # the simulation has tests of its own
    written = bookbuild.write_fragments(tmp_path / "nothing", tmp_path / "out")
    text = {path.stem: path.read_text() for path in written}
    assert set(text) == set(PASSAGES) and all(t.strip() for t in text.values())
    assert "with no runs yet" in text["outcomes"]
    assert "Not run" in text["spent"] and "Not run" in text["runs"]
    decided = re.findall(r"f-verdict-reproduced.*\n\n(?:.*\n)*?(?=::::::\n)", text["claims"])
    assert "not run" in text["claims"] and decided
    assert all("no training decides this" in claim for claim in decided)
    for artifact in artifacts()["artifact"]:
        assert artifact in text["scoreboard"]


def test_only_the_passage_on_notebooks_waits_for_them(tmp_path, monkeypatch):
    assert bookbuild.OF_NOTEBOOKS in PASSAGES
    order: list[str] = []
    three = {
        name: lambda state, name=name: order.append(name) or name
        for name in ("before", bookbuild.OF_NOTEBOOKS, "after")
    }
    monkeypatch.setattr(bookbuild, "PASSAGES", three)
    bookbuild.write_fragments(
        tmp_path / "nothing", tmp_path / "out", executed=lambda: order.append("executed")
    )
    assert order == ["before", "after", "executed", bookbuild.OF_NOTEBOOKS]


def test_work_on_all_cores_comes_back_in_order_and_fails_as_in_one_process(tmp_path):
    """The functions are those that a new process can import; each process begins as it is told."""
    there = tmp_path / "there"
    begin = partial(os.makedirs, exist_ok=True)  # each process does
    made = warm.on_all_cores(Path.exists, [tmp_path, there, tmp_path / "no"], begin, there)
    assert made == [True, True, False]
    with pytest.raises(IsADirectoryError):
        warm.on_all_cores(Path.read_text, [tmp_path], os.getcwd)


# Work for minutes on all cores, as a command that a signal ends.
WORKING = """
import signal, sys, time
from relength.book import warm
warm.IMPORTED.clear()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
warm.on_all_cores(time.sleep, [600] * 9, print, "working")
"""


def test_a_command_that_is_stopped_waits_for_no_process_and_leaves_none_behind(python):
    command = python("-u", "-c", WORKING, PYTHONUNBUFFERED="1")
    assert "working" in command.stdout.readline()
    command.terminate()
    # What is printed ends when every process that could print has ended.
    said, errors = command.communicate(timeout=60)
    assert (command.returncode, set(said.split()) - {"working"}, errors) == (143, set(), "")


def test_passages_count_the_runs_that_are_recorded(tmp_path, no_verdicts):
    records = [record(s, seconds=3600) for s in judged("reduced", range(1))]
    store = write(tmp_path, records)
    state = scoreboard.Survey(
        scoreboard.board(store, no_verdicts),
        no_verdicts,
        scoreboard.costs(store.records()),
        scoreboard.runs(store),
        store,
    )
    for name in ("outcomes", "spent"):
        assert in_a_row([48, 48], PASSAGES[name](state))  # trainings, hours


def test_every_verdict_has_a_place_in_the_tally_and_a_style_of_its_own():
    css = (BOOK / "assets" / "book.css").read_text()
    for verdict in claims.VERDICTS:
        kind = verdict_kind(verdict)
        assert re.search(rf"\.verdict-{kind}[ ,]", css), verdict
        assert markdown.badge(verdict) == f"[{verdict}]{{.verdict .verdict-{kind}}}"
    assert verdict_kind("reproduced (reduced)") == "reproduced"
    kinds = [verdict_kind(verdict) for verdict in claims.VERDICTS]
    assert len(set(kinds)) == len(kinds)


def test_cells_of_a_table_cannot_break_it():
    text = markdown.table(("a", "b"), [("x | y\nz", "")], name="t", caption="c")
    assert "| x \\| y z | – |" in text.splitlines()


def notebook(path, *sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = ["parameters"]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path.parent.mkdir(exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


def test_notebooks_are_executed_on_the_results_that_are_named(tmp_path, monkeypatch):
    notebook(tmp_path / "notebooks" / "a.ipynb", 'results: str = "results"', "print(results)")
    monkeypatch.setattr(bookbuild, "NOTEBOOKS", tmp_path / "notebooks")
    (made,) = bookbuild.execute_notebooks(tmp_path / "mine", tmp_path / "out")
    shown = nbformat.read(made, 4).cells[-1].outputs[0]["text"]
    assert shown.strip() == str(tmp_path / "mine")


def test_a_notebook_that_fails_is_named_with_its_error(tmp_path, monkeypatch):
    notebook(tmp_path / "notebooks" / "a.ipynb", "results: str = ''", "raise ValueError('no way')")
    monkeypatch.setattr(bookbuild, "NOTEBOOKS", tmp_path / "notebooks")
    with pytest.raises(RelengthError, match=r"a\.ipynb failed with ValueError: no way"):
        bookbuild.execute_notebooks(tmp_path, tmp_path / "out")


def test_refresh_stores_what_a_cell_prints_and_leaves_a_notebook_that_fails(tmp_path):
    path = tmp_path / "notebooks" / "a.ipynb"
    notebook(path, "results: str = ''", "print(len(results))")
    made = nbformat.read(path, 4)
    made.cells[1].metadata["tags"] = [CHECKED]
    nbformat.write(made, path)
    refresh([path])
    declared, shown = nbformat.read(path, 4).cells
    assert declared.source == "results: str = ''" and declared.outputs == []
    assert shown.outputs[0]["text"] == "0\n"
    notebook(path, "results: str = ''", "raise ValueError('no way')")
    before = path.read_bytes()
    with pytest.raises(RelengthError, match=r"a\.ipynb failed with ValueError: no way"):
        refresh([path])
    assert path.read_bytes() == before
    notebook(tmp_path / "other" / "a.ipynb", "results: str = ''")
    with pytest.raises(RelengthError, match=r"2 notebooks are named a\.ipynb"):
        refresh([path, tmp_path / "other" / "a.ipynb"])
    assert path.read_bytes() == before


def test_a_notebook_that_cannot_be_given_results_is_refused(tmp_path, monkeypatch):
    notebook(tmp_path / "notebooks" / "a.ipynb", "seeds: int = 1")
    monkeypatch.setattr(bookbuild, "NOTEBOOKS", tmp_path / "notebooks")
    with pytest.raises(RelengthError, match="no parameter 'results'"):
        bookbuild.execute_notebooks(tmp_path, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page.html", '<script defer src="https://example.org/x.js"></script>'),
        ("page.html", '<link rel="stylesheet" href="//example.org/x.css"/>'),
        ("page.html", '<img alt="" src="x.png" srcset="https://example.org/x.png 2x">'),
        ("page.html", "<video poster='https://example.org/x.png'></video>"),
        ("page.html", "<style>@import 'https://example.org/x.css';</style>"),
        ("style.css", "@font-face { src: url(https://example.org/x.woff2); }"),
    ],
)
def test_a_page_that_would_use_the_network_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(RelengthError, match=name):
        bookbuild.check_offline(tmp_path)


def test_what_the_book_has_itself_and_what_readers_may_follow_is_fine(tmp_path):
    (tmp_path / "page.html").write_text(
        '<link rel="canonical" href="https://example.org/"><script src="x.js"></script>'
        '<a href="https://example.org">a link</a><svg xmlns="http://www.w3.org/2000/svg"></svg>'
    )
    (tmp_path / "style.css").write_text("a { background: url(data:image/png;base64,AA==); }")
    bookbuild.check_offline(tmp_path)


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A folder for each kind of thing that a book is made from."""
    for name in ("results", "notebooks", "book/executed", "package"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "_config.yml").write_text("title: t\n")
    monkeypatch.setattr(bookbuild, "ROOT", tmp_path)
    monkeypatch.setattr(bookbuild, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(bookbuild, "BOOK", tmp_path / "book")
    monkeypatch.setattr(bookbuild, "EXECUTED", tmp_path / "book" / "executed")
    monkeypatch.setattr(bookbuild, "PACKAGE", tmp_path / "package")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "current"),
    [
        ("results/mla/a.runs.jsonl", False),
        ("notebooks/a.ipynb", False),
        ("book/assets/book.css", False),
        ("package/models/a.py", False),
        ("_config.yml", False),
        ("book/executed/a.ipynb", True),
        ("results/mla/.a.runs.jsonl.lock", True),
        ("package/__pycache__/a.pyc", True),
    ],
)
def test_a_book_is_current_until_something_changes_that_it_is_made_from(sources, changed, current):
    html, results = sources / "html", sources / "results"
    html.mkdir()
    assert not is_current(html, results)
    (html / bookbuild.SOURCES).write_text(bookbuild.fingerprint(results))
    assert is_current(html, results)
    (sources / changed).parent.mkdir(parents=True, exist_ok=True)
    (sources / changed).write_text("changed")
    assert is_current(html, results) == current


@pytest.mark.parametrize(("part", "word"), [(0.5, "within"), (1, "within"), (1.5, "over")])
def test_a_build_says_how_long_it_took_beside_what_it_should_take(part, word):
    said = bookbuild.pace(part * bookbuild.BUDGET)
    assert word in said and f"the {bookbuild.BUDGET} s" in said


def test_a_book_with_a_broken_reference_is_not_built_and_the_old_one_stays(tmp_path, monkeypatch):
    book, out = tmp_path / "book", tmp_path / "out"
    for folder in (book, out / "html"):
        folder.mkdir(parents=True)
    (out / "html" / "index.html").write_text("yesterday's")
    (tmp_path / "_config.yml").write_text("title: t\nonly_build_toc_files: true\n")
    (book / "_toc.yml").write_text("format: jb-book\nroot: intro\n")
    (book / "intro.md").write_text("# Title\n\n{doc}`nowhere`\n")
    monkeypatch.setattr(bookbuild, "BOOK", book)
    with pytest.raises(RelengthError, match="nowhere"):
        bookbuild.build(out)
    assert (out / "html" / "index.html").read_text() == "yesterday's"


def extension(name: str):
    found = importlib.util.spec_from_file_location(name, BOOK / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("words", "tied"),
    [
        ("of :math:`x`, :math:`y`, and (:math:`z`).", ["x,", "y,", "(z)."]),
        ("of :math:`x` and more", []),
        ("(``seed``: whose)", ["(seed:"]),
        ("(``relength run --scale smoke``) is long", []),
    ],
)
def test_no_line_begins_with_the_comma_behind_a_formula(words, tied):
    document = publish_doctree(words)
    extension("accessible")._tie_signs(None, document)
    shown = [part.astext() for part in document.findall(nodes.inline) if "tied" in part["classes"]]
    assert shown == tied
    assert document.astext() == publish_doctree(words).astext()


def test_a_percent_sign_stays_with_its_number_except_in_code():
    document = publish_doctree("To 50 %, *100 %* and ``5 % 3``.")
    extension("accessible")._tie_signs(None, document)
    assert document.astext() == "To 50\N{NO-BREAK SPACE}%, 100\N{NO-BREAK SPACE}% and 5 % 3."


def test_a_notebook_page_says_how_it_was_made_without_paths_of_this_machine(tmp_path):
    run_stamp = extension("run_stamp")
    title = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Title"}
    injected = {"cell_type": "code", "id": "b", "metadata": {"tags": ["injected-parameters"]}}
    injected["source"] = []
    papermill = {
        "version": "2.7.0",
        "input_path": str(tmp_path / "notebooks" / "a.ipynb"),
        "duration": 1.0,
        "end_time": "2026-11-20T17:30:00",
        "parameters": {"results": str(tmp_path / "results"), "other": str(tmp_path.parent / "x")},
    }
    verdict = {"cell_type": "markdown", "id": "c", "metadata": {}, "source": ["## Verdict\n", "x"]}
    cells = [title, injected, verdict]
    text = [json.dumps({"cells": cells, "metadata": {"papermill": papermill}})]

    class App:
        confdir = tmp_path / "book"

        class env:
            doc2path = staticmethod(lambda name: tmp_path / "book" / f"{name}.ipynb")

    short = tmp_path / "book" / "executed" / "short_a.md"
    short.parent.mkdir(parents=True)
    short.write_text("In short")
    run_stamp._on_source_read(App, "executed/a", text)
    cells = json.loads(text[0])["cells"]
    assert cells.pop(1)["source"] == "In short"
    assert cells[-1]["source"] == "(a-verdict)=\n## Verdict\nx"
    assert "remove-cell" in cells[2]["metadata"]["tags"]
    assert (
        "`results = 'results'`" in cells[1]["source"] and "2026-11-20 17:30" in cells[1]["source"]
    )
    assert str(tmp_path) not in cells[1]["source"]
