"""The page on terms of the loss: what it counts from records made by hand, and its runs."""

import re

import handmade
import pytest
from handmade import amounts

from relength.papers.memreasoner import codes, losses
from relength.papers.memreasoner.experiments import LOSSES, terms_of, with_all_terms
from relength.report import appendix
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs.experiments import experiment

FOUND = experiment("memreasoner_losses")
# What a run loses from each length to the next, in hundredths, by its terms.
STEEP = {"all terms": 10, "without ordering": 12, "answer and ordering": 2}
STEEP |= {"all terms, repaired": 9, "answer and ordering, repaired": 3}


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
        ("order", "text"),
        ("facts", "autoencoded", "text"),
        ("facts", "autoencoded", "order"),
        ("order",),
        ("facts", "autoencoded", "order", "text"),
        ("order",),
    ]
    assert len({spec.key for spec in specs}) == len(LOSSES)
    assert [spec.model.arm for spec in specs] == ["paper"] * 7 + ["repaired"] * 2


def test_with_all_terms_it_is_a_run_of_table_2_and_no_other_is():
    table = experiment("memreasoner_babilong")
    for spec in FOUND.specs("reduced", [0, 4]):
        whole = with_all_terms(terms_of(spec))
        assert table.wants(spec) == (terms_of(spec) == whole)
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
    assert len(said) == 1 + len(LOSSES) - 2  # a line says beside what; all terms have none
    terms = {line.split(":")[0].strip(): amounts(line.replace("+", " ")) for line in said}
    # At 1k, better in 3 of 3; the mean of the steps 5 to 8, from 16k on.
    assert terms["answer and ordering"][:4] == [8, 3, 3, 52]
    assert terms["without ordering"][:4] == [-2, 0, 3, -13]
    assert terms["answer and ordering, repaired"][:4] == [6, 3, 3, 39]  # beside all terms, repaired
    waits = losses.outcome(runs_of(tmp_path, 2, "all terms", "all terms, repaired"))
    assert waits.startswith("Not run") and not amounts(waits)


def test_a_seed_that_lacks_a_length_is_compared_with_none(three):
    """Means over unequal lengths would be apart where every length is equal."""
    data, lengths = losses.accuracies(three), ["16k", "32k"]
    data.loc[data["length"].isin(lengths), "accuracy"] = data["length"].map({"16k": 50, "32k": 10})
    lacks = (data["terms"] == "without facts") & (data["seed"] == 1) & (data["length"] == "32k")
    assert dict(losses.gains(data[~lacks], "without facts", lengths)) == {0: 0.0, 2: 0.0}


def test_numbers_on_the_page_are_those_of_the_medians(three):
    lines = losses.numbers(three).splitlines()
    own = [line for line in lines if re.match("  answer and ordering +3", line)]
    assert own[0].split()[3:] == own[1].split()[3:] == ["3", *(str(99 - 2 * k) for k in range(9))]
    assert len(own) == 3 and own[2].split()[3] == "3"  # of both


@pytest.mark.parametrize("seeds", [0, pytest.param(1, marks=pytest.mark.weekly), 3])
def test_every_exhibit_can_be_shown_with_and_without_runs(seeds, tmp_path):
    runs = runs_of(tmp_path, seeds, "without facts")
    for shown in (losses.figure(runs, number=1), losses.table(runs), appendix.costs(runs)):
        assert shown.html and "\n\n" not in repr(shown)
    drawn, table = losses.figure(runs, number=1), losses.table(runs)
    assert drawn.waits == table.waits == (not seeds)
    if seeds:
        assert drawn.html.count("<svg") == 2
        assert NOT_RUN in drawn.html and NOT_RUN in table.html  # the choice that was left out
        lines = losses.numbers(runs).splitlines()
        assert ["without", "facts", "0", *"–" * 9] in [line.split() for line in lines]


# --- how codes lie --------------------------------------------------------------------------------


def trace(test: str, wanted: float, text: float) -> dict:
    lie = {"facts_spread": 2.0, "text_spread": 4.0, "between": 6.0}
    lie |= {"facts_dimensions": 5.0, "text_dimensions": 9.0}
    if test == "0k":
        return {"test": test, "codes": {"facts_spread": 2.0}, "room": []}
    quantiles = [share * text / wanted for share in (0.1, 0.5, 1, 2, 9)]
    return {"test": test, "codes": lie, "room": [quantiles]}


@pytest.fixture(scope="module")
def traced(tmp_path_factory) -> Runs:
    """Three seeds with all terms; of the last the first run has no traces. Seed 0 without facts."""
    store = Store(tmp_path_factory.mktemp("store"))
    for spec in FOUND.specs("reduced", range(3)):
        if terms_of(spec) not in ("all terms", "without facts"):
            continue
        record = handmade.record(spec, accuracy, experiment=FOUND.name)
        if terms_of(spec) == "all terms" or spec.seed == 0:
            if spec.seed == 2:
                store.append("memreasoner", record)
                record = handmade.record(spec, accuracy, experiment=FOUND.name)
            text = 3.0 + spec.seed if terms_of(spec) == "all terms" else 0.5
            record["reads"] = [
                trace("0k", 1.0, 9.0),
                trace("1k", 1.0, text),
                trace("4k", 2.0, text),
            ]
        store.append("memreasoner", record)
    return Runs.read(FOUND, "reduced", 3, store)


def test_room_is_the_distance_of_the_novel_per_distance_of_the_wanted_line(traced):
    data = codes.codes(traced)
    assert set(data["test"]) == {"1k", "4k"}  # at 0k there is no novel
    own = data[data["terms"] == "all terms"].set_index(["test", "seed"])["room"]
    assert own["1k"].to_dict() == {0: 3.0, 1: 4.0, 2: 5.0}
    assert own["4k"].to_dict() == {0: 1.5, 1: 2.0, 2: 2.5}
    assert codes.medians(traced, "room").loc["without facts"].tolist() == [0.5, 0.25]
    lie = data.iloc[0]
    assert (lie["between"], lie["spread"]) == (3.0, 2.0)
    assert (lie["facts_dimensions"], lie["text_dimensions"]) == (5.0, 9.0)


def test_how_codes_lie_is_shown_or_waits(traced, three):
    assert "4.00" in codes.numbers(traced)
    assert not codes.figure(traced, number=2).waits and not codes.table(traced).waits
    assert len(codes.table(traced).data) == 8
    assert codes.codes(three).empty
    assert codes.figure(three, number=2).waits and codes.table(three).waits
