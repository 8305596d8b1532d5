"""The page of MemReasoner's first table, where one model cannot read the longest inputs."""

import handmade
import pytest

from relength.report import figures, tables
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs.experiments import experiment

FOUND = experiment("memreasoner_babilong")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    store = Store(tmp_path_factory.mktemp("store"))
    for spec in FOUND.specs("reduced", range(3)):
        store.append("memreasoner", handmade.record(spec, lambda *_: 0.7, experiment=FOUND.name))
    return Runs.read(FOUND, "reduced", 3, store)


def test_columns_are_those_of_the_model_with_most_tests(runs):
    (tests,) = runs.tests.values()
    assert tests[-1] == "128k"
    task = runs.tasks[0]
    assert runs.tested("GPT", "paper", task) == tests[: len(runs.tested("GPT", "paper", task))]
    data = tables.comparison(runs)
    assert set(data[data["model"] == "MemReasoner"]["test"]) == set(tests)
    assert set(data[data["model"] == "GPT"]["test"]) == {"babi", "0k", "1k", "2k"}


def test_what_a_model_cannot_read_is_a_dash(runs):
    (line,) = (x for x in tables.numbers(runs).splitlines() if x.startswith("  GPT"))
    assert line.split().count("–") == 6
    html = tables.side_by_side(runs, "memreasoner-table-2").html
    assert html.count('title="longer than this model can read"') == 6
    assert "GPT" in figures.accuracy(runs, "memreasoner-table-2", number=1).text
