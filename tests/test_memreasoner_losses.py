"""The page on terms of the loss: what it counts from records made by hand, and its runs."""

import handmade
import pytest

from relength.papers.memreasoner import losses
from relength.papers.memreasoner.experiments import LOSSES, terms_of
from relength.report import appendix
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs.experiments import experiment

FOUND = experiment("memreasoner_losses")
# What a run loses from each length to the next, in hundredths, by its terms.
STEEP = {"all terms": 10, "without ordering": 12, "answer and ordering": 2}


def accuracy(spec, test: str) -> float:
    """Falls evenly with length, in seed 1 a point lower throughout."""
    if test == "babi":
        return 1.0
    steps = spec.task.lengths.index(test)
    return (100 - STEEP.get(terms_of(spec), 5) * steps - spec.seed) / 100


def runs_of(folder, seeds: int, *left_out: str) -> Runs:
    store = Store(folder)
    for spec in FOUND.specs("reduced", range(seeds)):
        if terms_of(spec) not in left_out:
            store.append("memreasoner", handmade.record(spec, accuracy, experiment=FOUND.name))
    return Runs.read(FOUND, "reduced", 3, store)


@pytest.fixture(scope="module")
def three(tmp_path_factory) -> Runs:
    return runs_of(tmp_path_factory.mktemp("store"), 3)


def test_each_run_leaves_out_what_it_is_called_after():
    specs = FOUND.specs("reduced", [0])
    assert [terms_of(spec) for spec in specs] == list(LOSSES)
    assert [tuple(spec.training.weights) for spec in specs] == [
        ("facts", "autoencoded", "order", "text"),
        ("autoencoded", "order", "text"),
        ("facts", "order", "text"),
        ("facts", "autoencoded", "text"),
        ("facts", "autoencoded", "order"),
        ("order",),
    ]
    assert len({spec.key for spec in specs}) == len(LOSSES)
    assert {spec.model.arm for spec in specs} == {"paper"}


def test_with_all_terms_it_is_the_run_of_table_2_and_no_other_is():
    table = experiment("memreasoner_babilong")
    for spec in FOUND.specs("reduced", [0, 4]):
        assert table.wants(spec) == (terms_of(spec) == "all terms")
        assert FOUND.keeper(spec) is (table if table.wants(spec) else FOUND)
        assert FOUND.remark(spec) == ("" if table.wants(spec) else terms_of(spec))


def test_medians_are_over_seeds_by_terms_and_length(three):
    middle = losses.medians(three)
    assert list(middle.index) == list(LOSSES)
    assert list(middle.columns) == list(three.specs[0].task.lengths)
    for terms in LOSSES:
        for step, value in enumerate(middle.loc[terms]):
            assert value == pytest.approx(100 - STEEP.get(terms, 5) * step - 1)


def test_a_choice_of_terms_is_compared_with_all_terms_seed_by_seed(three, tmp_path):
    said = losses.outcome(three).splitlines()
    assert len(said) == len(LOSSES)
    assert (
        "answer and ordering: +8 points at 1k (better in 3 of 3 seeds), +64 points at" in said[-1]
    )
    assert "without ordering: -2 points at 1k (better in 0 of 3 seeds), -16 points" in said[3]
    assert "Not run yet" in losses.outcome(runs_of(tmp_path, 2, "all terms"))


def test_numbers_on_the_page_are_those_of_the_medians(three):
    lines = losses.numbers(three).splitlines()
    own = [line for line in lines if line.startswith("  answer and ordering")]
    assert own[0].split()[3:] == own[1].split()[3:] == ["3", *(str(99 - 2 * k) for k in range(9))]


@pytest.mark.parametrize("seeds", [0, 1, 3])
def test_every_exhibit_can_be_shown_with_and_without_runs(seeds, tmp_path):
    runs = runs_of(tmp_path, seeds, "without facts")
    for shown in (losses.figure(runs, number=1), losses.table(runs), appendix.costs(runs)):
        assert shown._repr_html_() and "\n\n" not in repr(shown)
    drawn, table = losses.figure(runs, number=1), losses.table(runs)
    assert drawn.waits == table.waits == (not seeds)
    if seeds:
        assert drawn.html.count("<svg") == 2
        assert NOT_RUN in drawn.html and NOT_RUN in table.html  # the choice that was left out
        lines = losses.numbers(runs).splitlines()
        assert ["without", "facts", "0", *"–" * 9] in [line.split() for line in lines]
