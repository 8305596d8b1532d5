"""Errors per symbol and success rates: numbers with known answers."""

import handmade
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relength.papers.mla import experiments as mla
from relength.papers.mla import lengths
from relength.report import tables
from relength.report.grid import NOT_COUNTED
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.specs.margins import load_margins

ERROR = 0.002


def runs_of(name, accuracy, folder, seeds=5, models=None) -> Runs:
    found, store = experiments()[name], Store(folder)
    for spec in found.specs("reduced", range(seeds)):
        if models is None or spec.model.name in models:
            store.append("mla", handmade.record(spec, accuracy, experiment=name))
    return Runs.read(found, "reduced", seeds, store, models=models)


@given(st.integers(1, 199), st.floats(2, 3000))
def test_the_chance_lies_in_its_interval_and_gives_the_share_back(right, length):
    error = lengths.error_per_symbol(right, 200, length)
    assert 0 < error.low < error.chance < error.high < 1
    assert (1 - error.chance) ** length == pytest.approx(right / 200)


def test_the_interval_covers_independent_errors_as_often_as_it_says():
    random = np.random.default_rng(0)
    drawn = random.binomial(200, (1 - ERROR) ** 300, size=2000)
    found = [lengths.error_per_symbol(int(right), 200, 300) for right in drawn]
    assert np.mean([error.low <= ERROR <= error.high for error in found]) >= 0.95


def test_none_or_all_right_bounds_the_chance_on_one_side():
    none, every = (lengths.error_per_symbol(right, 200, 100) for right in (0, 200))
    assert none.high == none.chance == 1 and every.low == every.chance == 0
    # At the bound, what was seen has one chance in forty.
    assert (1 - (1 - none.low) ** 100) ** 200 == pytest.approx(0.025)
    assert (1 - every.high) ** (100 * 200) == pytest.approx(0.025)


def test_outputs_are_as_long_as_the_rules_make_them():
    assert lengths.symbols("copy", "500") == 501  # the end is written, too
    # Four digits are repeated once, three three times and three five times.
    assert lengths.symbols("recopy", "1000") / 1000 == pytest.approx(2.8, rel=0.02)


def test_an_error_that_is_the_same_at_every_symbol_gives_a_level_row(tmp_path):
    def noise(spec, test):
        return 1.0 if test == "iid" else (1 - ERROR) ** lengths.symbols(spec.task.name, test)

    runs = runs_of("mla_lengths", noise, tmp_path, seeds=2)
    data = lengths.errors(runs)
    assert len(data) > 200 and (data["low"] <= ERROR).all() and (data["high"] >= ERROR).all()
    shown = lengths.of_median_seed(data)
    assert set(shown["seeds"]) == {2} and "1000" in set(shown["test"])
    assert len(lengths.errors_table(runs).data) == len(data)


def placed(chances, items=20_000, length=1000) -> list[int]:
    """First errors by tenth, as expected where a symbol in that tenth is wrong with its chance."""
    left, counts = float(items), []
    for chance in chances:
        through = left * (1 - chance) ** (length / 10)
        counts.append(round(left - through))
        left = through
    return counts


def with_errors(folder, counts, only_end=0) -> Runs:
    """One run of OneStepAttn on Copy whose longest test has these first errors.

    only_end  how many of them are outputs that are right but for their end
    """
    found, store = experiments()["mla_lengths"], Store(folder)
    spec = next(
        spec
        for spec in found.specs("reduced", range(1))
        if (spec.row, spec.model.arm, spec.task.name) == ("OneStepAttn", "released", "copy")
    )
    record = handmade.record(spec, lambda *_: 1.0, experiment="mla_lengths")
    items = 20_000
    tests = record["checkpoints"]["selected"]["tests"]
    tests["1000"] = tests["1000"] | {
        "items": items,
        "exact_match": 1 - sum(counts) / items,
        "exact_match_true_length": 1 - (sum(counts) - only_end) / items,
        "first_errors": counts,
    }
    store.append("mla", record)
    return Runs.read(found, "reduced", 1, store)


def test_an_error_that_is_the_same_at_every_symbol_is_the_same_in_both_halves(tmp_path):
    runs = with_errors(tmp_path, placed([ERROR] * 10))
    first, second = lengths.halves(runs).query("test == '1000'").itertuples()
    assert first.chance == pytest.approx(ERROR, rel=0.01)
    assert second.chance == pytest.approx(ERROR, rel=0.01)
    assert second.items == first.right < first.items == 20_000
    course = lengths.still_right(runs).query("test == '1000'")["right"].to_numpy()
    expected = 20_000 * (1 - ERROR) ** (1000 * np.arange(11) / 10)
    assert course == pytest.approx(expected, rel=1e-3)


def test_a_chance_that_grows_on_the_way_is_seen_in_the_second_half(tmp_path):
    runs = with_errors(tmp_path, placed([0.0] * 5 + [ERROR] * 5))
    first, second = lengths.halves(runs).query("test == '1000'").itertuples()
    assert first.chance == first.low == 0 and second.chance == pytest.approx(ERROR, rel=0.01)
    assert second.low > first.high
    html = lengths.halves_table(runs).html
    assert html.count("<tr>") == 2  # tests without an error are left out
    assert list(lengths.with_errors(lengths.halves(runs))) == [
        ("copy", "OneStepAttn", "released", "1000")
    ]
    assert first.high == pytest.approx(3.7e-7, rel=0.01)
    course = lengths.still_right_at_longest(runs)["OneStepAttn", "released", "copy"]
    assert course[5] == 100 and course[10] == pytest.approx(100 * np.exp(-1), abs=0.5)


def test_outputs_that_all_go_wrong_at_once_have_no_second_half(tmp_path):
    runs = with_errors(tmp_path, [20_000, *[0] * 9])
    assert lengths.halves(runs).query("test == '1000'")["half"].tolist() == ["first"]
    assert lengths.halves_table(runs).html.count("<tr>") == 2


def test_a_missed_end_is_no_error_on_the_way(tmp_path):
    runs = with_errors(tmp_path, [0] * 9 + [5_000], only_end=5_000)
    assert (lengths.halves(runs)["chance"] == 0).all()
    assert lengths.with_errors(lengths.halves(runs)) == {}
    assert set(lengths.still_right_at_longest(runs)) == {100}


def test_records_that_do_not_say_where_outputs_fail_are_left_out(tmp_path):
    runs = with_errors(tmp_path, [0] * 10)
    del runs.records[0]["checkpoints"]["selected"]["tests"]["1000"]["first_errors"]
    assert lengths.still_right(runs).empty and lengths.halves(runs).empty
    assert lengths.halves_table(runs).html
    assert NOT_COUNTED in lengths.course_figure(runs, 1).html


def test_a_row_is_of_one_seed_whatever_its_length(tmp_path):
    """Seed 0 is the worst at 200 and the best at 1,000; seed 1 is in the middle in the mean."""
    shares = {
        0: {"200": 0.2, "1000": 0.7},
        1: {"200": 0.6, "1000": 0.5},
        2: {"200": 1, "1000": 0.4},
    }

    def accuracy(spec, test):
        return shares[spec.seed].get(test, 1.0)

    runs = runs_of("mla_lengths", accuracy, tmp_path, seeds=3, models=("Relative",))
    shown = lengths.of_median_seed(lengths.errors(runs)).query("task == 'copy'")
    assert set(shown["seed"]) == {1} and set(shown["seeds"]) == {3}
    for test in ("200", "1000"):
        (row,) = shown[shown["test"] == test].itertuples()
        right = round(2001 * shares[1][test])
        error = lengths.error_per_symbol(right, 2001, lengths.symbols("copy", test))
        assert (row.chance, row.low, row.high) == error


def test_every_task_without_lookup_that_is_printed_as_solved_is_asked_for():
    level = load_margins().levels["solved"]
    solved = {
        (model, task)
        for (model, task, test), value in tables.printed("mla-table-2").items()
        if test == "100" and level.holds(value)
    }
    asked = {(model, task) for model, tasks in mla.FAR_TASKS.items() for task in tasks}
    assert asked == solved


def test_success_counts_seeds_with_an_exact_interval(tmp_path):
    runs = runs_of(
        "mla_table2",
        lambda spec, test: float(spec.seed < 7 or spec.task.name == "copy"),
        tmp_path,
        seeds=10,
        models=("OneStepAttn",),
    )
    rates = lengths.success(runs).set_index(["task", "arm"])
    assert rates.loc[("recopy", "released"), ["seeds", "solved"]].tolist() == [10, 7]
    low, high = rates.loc[("recopy", "paper"), ["low", "high"]]
    assert (low, high) == (pytest.approx(34.75, abs=0.01), pytest.approx(93.33, abs=0.01))
    assert rates.loc[("copy", "paper"), "high"] == 100
    assert lengths.success_figure(runs, 1).html and lengths.numbers(runs)


def test_without_runs_the_page_says_so(tmp_path):
    runs = Runs.read(experiments()["mla_lengths"], "reduced", 5, Store(tmp_path))
    assert lengths.errors_table(runs).waits and lengths.halves_table(runs).waits
    assert lengths.success_figure(runs, 1).waits and lengths.course_figure(runs, 1).waits
