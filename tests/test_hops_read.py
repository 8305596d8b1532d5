"""Figures of what goes wrong first, and of how near hops come to lines."""

import handmade
import pytest

from relength.papers.memreasoner import hops_read
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs.experiments import experiment

FOUND = experiment("memreasoner_two_facts")
KEEPER = experiment("memreasoner_babi").name


def trace(test: str) -> dict:
    """Ten questions. At 64k the first read is wrong in eight: four times a sentence of the novel,
    twice another line about the same, once about another, and once the memory diverges; one of
    those answers is right.
    """
    near = {"wanted": [1, 1, 2, 3, 3], "same": [4] * 5, "fact": [6] * 5}
    first = {"wanted": [10, 0]}
    if test == "64k":
        near["text"] = [0.5, 1, 1.5, 2, 2]
        first = {"wanted": [1, 1], "text": [1, 3], "same": [0, 2]}
        first |= {"fact": [0, 1], "none": [0, 1]}
    return {"test": test, "items": 10, "first": first, "distances": [near, near]}


def runs_of(folder, traced: bool) -> Runs:
    store = Store(folder)
    for spec in FOUND.specs("reduced", range(2)):
        record = handmade.record(spec, lambda *_: 0.6, experiment=KEEPER)
        if traced and spec.model.name == "MemReasoner":
            record["reads"] = [trace("0k"), trace("64k")]
        store.append("memreasoner", record)
    return Runs.read(FOUND, "reduced", 2, store)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    return runs_of(tmp_path_factory.mktemp("traced"), traced=True)


def test_questions_fall_into_parts_by_what_goes_wrong_first(runs):
    data = hops_read.firsts(runs)
    assert len(data) == 3 * 2 * 2  # arms, seeds, tests
    assert data[list(hops_read.PARTS)].sum(axis=1).tolist() == pytest.approx([100] * len(data))
    for _, row in data[data["test"] == "64k"].iterrows():
        assert [row[name] for name in hops_read.PARTS] == pytest.approx([10, 10, 20, 10, 40, 10])
        assert row["lucky"] == pytest.approx(10)
    told = hops_read.numbers(runs)
    assert told.count("retrieval: a line of the novel") == told.count("memory diverged") == 3
    figure = hops_read.first_figure(runs, 1)
    assert figure.html.count("<svg") == 2 and "40 retrieval: a line of the novel" in figure.text


def test_distances_have_a_panel_per_reading_and_hop(runs):
    data = hops_read.distances(runs)
    assert len(data) == 3 * 2 * 2 * (3 + 4)  # arms, seeds, hops; kinds at 0k, and at 64k
    (half,) = data.query("kind == 'text'")["half"].unique()
    assert half == 1.5
    figure = hops_read.distance_figure(runs, 2)
    assert figure.html.count("<svg") == 2 and figure.text.count("hop 2") == 3
    assert "the wanted line 2 at 0k and 2 at 64k" in figure.text


def test_runs_without_traces_wait_for_others(tmp_path):
    runs = runs_of(tmp_path, traced=False)
    assert hops_read.numbers(runs) == hops_read.NO_TRACES
    for figure in (hops_read.first_figure, hops_read.distance_figure):
        shown = figure(runs, 1)
        assert shown.waits and "<svg" not in shown.html
