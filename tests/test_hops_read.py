"""Figures of what goes wrong first, and of how near hops come to lines."""

import re

import handmade
import numpy as np
import pandas as pd
import pytest
from handmade import amounts

from relength.papers.memreasoner import hops_read, one_question
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.specs.spec import RunSpec
from relength.training.traces import small_integers

FOUND = experiment("memreasoner_two_facts")
KEEPER = experiment("memreasoner_babi").name

# Five lines, of which the second is the first hop's and the fourth the second's.
APART = np.array([[8.0, 4.0, 5.0, 7.0, 3.0], [40.0, 31.0, 38.0, 30.0, 36.0]])
FACTS = [
    [1, "Mary took the milk.", ["wanted", "same"]],
    [3, "Mary went to the office.", ["fact", "wanted"]],
]


def kept(apart: np.ndarray) -> list[dict]:
    return [{"nearest": hop.min(), **small_integers(hop - hop.min())} for hop in apart]


WHOLE = {"question": "where is the milk ?", "facts": FACTS, "distances": kept(APART)}


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
    found = {"test": test, "items": 10, "first": first, "distances": [near, near]}
    return found | ({"whole": WHOLE} if test == "64k" else {})


def runs_of(folder, traced: int) -> Runs:
    """Runs of two seeds; of the first ``traced`` of them MemReasoner's have traces."""
    store = Store(folder)
    for spec in FOUND.specs("reduced", range(2)):
        record = handmade.record(spec, lambda *_: 0.6, experiment=KEEPER)
        if spec.seed < traced and spec.model.name == "MemReasoner":
            record["reads"] = [trace("0k"), trace("64k")]
        store.append("memreasoner", record)
    return Runs.read(FOUND, "reduced", 2, store)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    return runs_of(tmp_path_factory.mktemp("traced"), traced=2)


def test_questions_fall_into_parts_by_what_goes_wrong_first(runs):
    data = hops_read.firsts(runs)
    assert len(data) == 3 * 2 * 2  # arms, seeds, tests
    assert hops_read.counted(runs) == "6 of 6"
    assert data[list(hops_read.PARTS)].sum(axis=1).tolist() == pytest.approx([100] * len(data))
    for _, row in data[data["test"] == "64k"].iterrows():
        assert [row[name] for name in hops_read.PARTS] == pytest.approx([10, 10, 20, 10, 40, 10])
        assert row["lucky"] == pytest.approx(10)
    told = hops_read.numbers(runs)
    assert told.count("retrieval: a line of the novel") == told.count("memory diverged") == 3
    figure = hops_read.first_figure(runs, 1)
    assert figure.html.count("<svg") == 2 and (f"40 {hops_read.PARTS['text'].words}" in figure.text)


def test_distances_have_a_panel_per_reading_and_hop(runs):
    data = hops_read.distances(runs)
    assert len(data) == 3 * 2 * 2 * (3 + 4)  # arms, seeds, hops; kinds at 0k, and at 64k
    (half,) = data.query("kind == 'text'")["half"].unique()
    assert half == 1.5
    figure = hops_read.distance_figure(runs, 2)
    assert figure.html.count("<svg") == 2 and figure.text.count("hop 2") == 3
    nearest = re.findall(
        rf"{hops_read.KINDS['wanted'].words} (\S+) at 0k and (\S+) at", figure.text
    )
    assert nearest.count(("2", "2")) >= 3  # by reading


def test_traces_of_a_later_execution_are_told_apart(tmp_path):
    """Each reading's first seed has traces from the start, the second from a later execution."""
    runs_of(tmp_path, traced=1)
    store = Store(tmp_path)
    for record in list(store.records()):
        if record["spec"]["model"]["name"] == "MemReasoner" and record["spec"]["seed"] == 1:
            again = handmade.record(RunSpec.recorded(record["spec"]), lambda *_: 0.62)
            again |= {"run_id": f"f{record['run_id'][1:]}", "experiment": record["experiment"]}
            store.append("memreasoner", again | {"reads": [trace("0k"), trace("64k")]})
    runs = Runs.read(FOUND, "reduced", 2, Store(tmp_path))
    # traces, of runs; from later executions; how far these are apart in points
    assert amounts(hops_read.counted(runs)) == [6, 6, 3, 2]


def test_means_of_some_runs_say_of_how_many(tmp_path):
    runs = runs_of(tmp_path, traced=1)
    assert hops_read.counted(runs) == "3 of 6"
    assert "3 of 6" in hops_read.first_figure(runs, 1).html
    assert "3 of 6" in hops_read.distance_figure(runs, 2).html
    assert "3 of 6" in hops_read.numbers(runs)


def test_runs_without_traces_wait_for_others(tmp_path):
    runs = runs_of(tmp_path, traced=0)
    assert hops_read.numbers(runs) == hops_read.NO_TRACES
    for figure in (hops_read.first_figure, hops_read.distance_figure, one_question.figure):
        shown = figure(runs, 1)
        assert shown.waits and "<svg" not in shown.html and "--refresh" in shown.html


def test_a_later_execution_gives_the_traces_that_the_first_one_lacks(runs, tmp_path):
    store = Store(tmp_path)
    for spec in FOUND.specs("reduced", range(2)):
        for time in (1, 2):
            record = handmade.record(spec, lambda *_: 0.6, f"2026-01-0{time}T00:00:00Z", KEEPER)
            record["run_id"] = f"{spec.key}{time:04}"
            if time == 2 and spec.model.name == "MemReasoner":
                record["reads"] = [trace("0k"), trace("64k")]
            store.append("memreasoner", record)
    again = Runs.read(FOUND, "reduced", 2, store)
    assert not any("reads" in record for record in again.records) and again.further
    for table in (hops_read.firsts, hops_read.distances, one_question.lines):
        pd.testing.assert_frame_equal(table(again), table(runs))


def test_every_line_of_a_question_stands_at_its_distance_with_its_kind(runs):
    data = one_question.lines(runs)
    assert len(data) == 2 * 5 and set(data["arm"]) == {"paper"} and set(data["seed"]) == {0}
    for hop, kinds in ((1, ["text", "wanted", "text", "fact", "text"]),
                       (2, ["text", "same", "text", "wanted", "text"])):  # fmt: skip
        part = data[data["hop"] == hop]
        assert part["kind"].to_list() == kinds
        np.testing.assert_allclose(part["distance"], APART[hop - 1], atol=0.05)
    figure = one_question.figure(runs, 1)
    assert figure.html.count("<svg") == 2
    assert amounts(figure.text)[-6:] == [1, 3, 3.98, 2, 30, 30]  # hop, nearest and wanted line


def test_distances_of_the_first_records_have_one_unit_for_all_hops():
    whole = one_question.distances(small_integers(APART))
    np.testing.assert_allclose(whole, APART, atol=40 / 127)
    np.testing.assert_allclose(one_question.distances(kept(APART)), APART, atol=10 / 127)
