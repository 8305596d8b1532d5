"""Portraits of states and histograms of gates, drawn from runs made by hand."""

import copy
import re

import handmade
import numpy as np
import pytest

from relength.papers.dnc import gates, portraits, states
from relength.papers.dnc.experiments import EXPERIMENTS, GATES, PORTRAITS
from relength.report.runs import Runs
from relength.runs.store import Store, frame
from relength.specs import published
from relength.training.traces import small_integers
from relength.verdicts import claims

FOUND = EXPERIMENTS[0]
SEEDS = 7
# More for later seeds, so that runs have an order.
ABILITY = {"STATEFUL-BASELINE": 0.3, "COMPR": 0.93, "REG": 0.6, "COMPR&REG": 0.9}


def accuracy(spec, test: str) -> float:
    return ABILITY.get(spec.row, 0.94) + spec.seed / 100


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    store = Store(tmp_path_factory.mktemp("store"))
    for spec in FOUND.specs("reduced", range(SEEDS)):
        if spec.task.name == "dnc_sort" and spec.row != "REG":
            store.append("dnc", handmade.record(spec, accuracy, experiment=FOUND.name))
    return Runs.read(FOUND, "reduced", SEEDS, store)


@pytest.fixture
def nothing(tmp_path) -> Runs:
    return Runs.read(FOUND, "reduced", SEEDS, Store(tmp_path))


def test_every_figure_of_states_and_gates_has_its_task():
    printed = published.artifacts().query("paper == 'dnc'").set_index("artifact")["title"]
    for figures, ours in ((portraits.PRINTED, PORTRAITS), (gates.PRINTED, GATES)):
        assert {f"dnc-fig-{n}": task for (task, _), n in figures.items()} == ours
    for (task, kind), number in (portraits.PRINTED | gates.PRINTED).items():
        words = printed[f"dnc-fig-{number}"].lower()
        assert task.removeprefix("dnc_") in words
        assert {"encoding": "encod", "decoding": "decod"}.get(kind, kind) in words


def test_the_three_best_and_the_three_worst_are_shown_and_all_of_few(runs):
    records = runs.cell("COMPR", "paper", "dnc_sort")
    found = [record["spec"]["seed"] for record in portraits.chosen(records)]
    assert found == [6, 5, 4, 2, 1, 0]
    assert len(portraits.chosen(records[:5])) == 5
    assert states.mean_accuracy(records[0]) == pytest.approx(93)


def test_numbers_stand_beside_the_mean_accuracy_of_each_run(runs):
    data = portraits.numbers(runs).set_index(["model", "seed"])
    assert len(data) == 4 * SEEDS
    assert data.loc[("STATELESS-BASELINE", 0)].isna()["state_returns"]
    # all states of these runs are corners of a star, one per numeral
    assert (data.loc["COMPR"]["state_symbols"] > 99).all()
    together = data["loops_accompany"].dropna()
    generalises = data["accuracy"][together.index] >= states.GENERALISES
    loops = data["state_returns"][together.index] >= states.LOOPS
    assert ((together == 100) == (generalises == loops)).all() and loops.all()


def test_runs_that_say_nothing_of_loops_are_no_seeds_of_claims_on_them(runs):
    """The states of the first of five runs move on, and it does not generalise."""
    records = copy.deepcopy(runs.cell("COMPR", "paper", "dnc_sort")[:5])
    drift = np.cumsum(np.ones((2, 31, 5)), axis=1)
    quiet = records[0]
    quiet["memory"]["states"] |= small_integers(np.concatenate([drift, drift], axis=1))
    for test in quiet["checkpoints"]["selected"]["tests"].values():
        test["digit_accuracy"] = 0.5
    (claim,) = (c for c in claims.load("dnc") if c.id == "dnc-043")
    verdict = claims.judge(claim, frame(records))
    assert (verdict.seeds, verdict.outcome) == (4, "inconclusive")


def test_a_portrait_has_a_panel_per_run_and_its_numbers(runs, nothing):
    exhibit = portraits.portraits(runs, "dnc_sort", "encoding", number=1)
    panels = re.findall(r">(\d+) %, \d+<", exhibit.html)
    assert len(panels) == 2 * 3 * 6  # widths, controllers with runs and states, runs
    assert panels[:3] == ["36", "35", "34"] and panels[6:12] == ["99", "98", "97", "95", "94", "93"]
    assert portraits.portraits(nothing, "dnc_sort", "decoding", number=1).waits


def test_loops_are_counted_in_words(runs, nothing):
    exhibit = portraits.loops(runs, number=1)
    together = re.findall(r"together in (\d+) of (\d+)", exhibit.text)
    assert (str(SEEDS), str(SEEDS)) in together and "0" in dict(together)
    assert portraits.loops(nothing, number=1).waits
    assert len(portraits.numbers(nothing)) == 0


def test_tables_have_a_line_per_controller(runs, nothing):
    assert portraits.table(runs).count("COMPR&REG") == 1  # sort alone has runs
    assert portraits.table(nothing).splitlines()[1:] == ["  not run"]
    line = next(x for x in portraits.table(runs).splitlines() if x.startswith("  COMPR "))
    assert line.split()[1:3] == [str(SEEDS), "96"]  # the median seed is the fourth
    line = next(x for x in gates.table(runs).splitlines() if x.startswith("  COMPR "))
    assert line.split()[2:6] == ["98", "2", "2", "98"]
    assert "–" in gates.table(nothing)


def test_histograms_list_every_bin(runs, nothing):
    exhibit = gates.histograms(runs, "dnc_sort", "write", number=1)
    data = exhibit.data
    assert len(data) == 4 * SEEDS * 2 * 20
    assert data.groupby(["model", "seed", "phase"])["count"].sum().eq(90).all()
    assert np.allclose(data["to"] - data["from"], 0.05)
    assert gates.histograms(nothing, "dnc_copy", "read", number=1).waits
