"""When generalisation comes: arrivals on curves that are drawn by hand."""

from functools import partial

import handmade
import numpy as np
import pytest
from handmade import amounts
from hypothesis import given
from hypothesis import strategies as st

from relength.papers.dnc import budget, when
from relength.papers.dnc.experiments import EXPERIMENTS
from relength.report import tables
from relength.report.runs import Runs
from relength.runs.store import Store

FOUND, WHEN = EXPERIMENTS[0], EXPERIMENTS[2]
SEEDS, POINTS = 3, 50
# The point, counted from 1, from which a length is known; None: never. A row per seed.
KNOWN = {
    ("dnc_sort", "COMPR"): {15: (4, 5, 6), 20: (10, 20, 40), 30: (20, 30, None), 45: (None,) * 3},
    ("dnc_sort", "STATEFUL-BASELINE"): {15: (8, 8, None), 20: (40, None, None), 30: (None,) * 3,
                                        45: (None,) * 3},
    ("dnc_copy", "REG"): {15: (None,) * 3, 20: (None,) * 3, 30: (None,) * 3, 45: (None,) * 3},
}  # fmt: skip


def curve(spec) -> list[dict]:
    """Accuracy is 0.5, and 0.97 from the known point on; at point 47 all of it drops once."""

    def reached(length: int, point: int) -> float:
        since = KNOWN[spec.task.name, spec.row][length][spec.seed]
        return 0.97 if since is not None and point >= since and point != 47 else 0.5

    return [
        {
            **{"epoch": 100 * point - 1, "step": 1000 * point, "train_loss": 0.1},
            **{"learning_rate": 1e-3, "iid_accuracy": reached(15, point)},
            "dev_accuracy": reached(30, point),
            "watched_accuracy": {"20": reached(20, point), "45": reached(45, point)},
        }
        for point in range(1, POINTS + 1)
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    store = Store(tmp_path_factory.mktemp("store"))
    for spec in FOUND.specs("reduced", range(SEEDS)):
        if (spec.task.name, spec.row) in KNOWN:
            made = handmade.record(spec, lambda *_: 0.5, experiment=FOUND.name)
            store.append("dnc", made | {"curve": curve(spec)})
    return Runs.read(FOUND, "reduced", 5, store)


@pytest.fixture(scope="module")
def nothing(tmp_path_factory) -> Runs:
    return Runs.read(FOUND, "reduced", 5, Store(tmp_path_factory.mktemp("nothing")))


@pytest.mark.parametrize(
    ("above", "first", "stays"),
    [
        ("......", np.inf, np.inf),
        ("xxxxxx", 1, 1),
        (".x.xxx", 4, 4),
        ("xx.xxx", 4, 4),
        ("xxx.xxx", 1, 5),
        ("xxx.xx", 1, np.inf),  # two points are too few to say
        (".xxx..", 2, np.inf),
        ("....xx", np.inf, np.inf),
        ("", np.inf, np.inf),
    ],
)
def test_an_arrival_is_the_first_of_three_in_a_row_and_staying_lasts_to_the_end(
    above, first, stays
):
    steps, marks = range(1, len(above) + 1), [mark == "x" for mark in above]
    assert when.arrival(steps, marks) == first
    assert when.stays(steps, marks) == stays


@given(st.lists(st.booleans(), max_size=30))
def test_nobody_stays_before_arriving(above):
    steps = range(1, len(above) + 1)
    first, stays = when.arrival(steps, above), when.stays(steps, above)
    assert first <= stays
    if first < np.inf:
        assert all(above[int(first) - 1 :][: when.HELD])


def test_arrivals_are_read_off_the_curves(runs):
    found = when.arrivals(runs).set_index(["task", "model", "seed", "length"])
    assert len(found) == 3 * SEEDS * 4
    for (task, model), lengths in KNOWN.items():
        for length, points in lengths.items():
            for seed, point in enumerate(points):
                row = found.loc[task, model, seed, length]
                assert row["first"] == (np.inf if point is None else 1000 * point)
                assert row["stays"] == (np.inf if point is None else 48_000)  # after the drop


def test_medians_count_runs_that_do_not_arrive_as_later_than_all(runs):
    table = when.medians(runs).set_index(["task", "model"])
    assert len(table) == 35
    cell = table.loc["dnc_sort", "COMPR"]
    assert [cell[f"first_{n}"] for n in (15, 20, 30, 45)] == [5000, 20_000, 30_000, np.inf]
    assert [cell[f"reached_{n}"] for n in (15, 20, 30, 45)] == [3, 3, 2, 0]
    assert cell["lag"] == 25_000 and cell["lags"] == 2  # of 16,000, 25,000 and never
    stateful = table.loc["dnc_sort", "STATEFUL-BASELINE"]
    assert (stateful["first_15"], stateful["first_20"]) == (8000, np.inf)
    assert stateful["lag"] == np.inf and stateful["lags"] == 0
    assert np.isnan(table.loc["dnc_copy", "REG"]["lag"])  # it does not even know length 15
    assert table.loc["dnc_add", "REG"]["seeds"] == 0
    assert np.isnan(table.loc["dnc_add", "REG"]["first_15"])


def test_half_of_the_runs_are_not_enough_for_a_median():
    assert when._median([1000, np.inf]) == np.inf
    assert when._median([1000, 2000, np.inf]) == 2000


def test_courses_have_every_point_of_every_length_in_percent(runs):
    data = when.courses(runs)
    assert len(data) == 3 * SEEDS * POINTS * 4
    assert set(data["accuracy"]) == {50.0, 97.0} and set(data["length"]) == {15, 20, 30, 45}
    assert data["task"].drop_duplicates().tolist() == ["dnc_sort", "dnc_copy"]


def test_words_and_numbers_say_what_the_curves_say(runs, nothing):
    said = when.lags(runs).splitlines()
    found = {line.split(":")[0].strip(): amounts(line) for line in said}
    # lengths and steps, and those of a run from one to the other; 2 of 3 arrive
    assert found["COMPR"] == [15, 5000, 30, 30_000, 25_000, 2, 3]
    assert found["STATEFUL-BASELINE"] == [15, 8000, 30, 0, 3]
    assert found["REG"] == [15]  # not even that
    line = next(line for line in when.numbers(runs).splitlines() if line.startswith("  COMPR "))
    assert line.split() == ["COMPR", "3", "5,000", "(3)", "20,000", "(3)", "30,000", "(2)", "not",
                            "within", "(0)"]  # fmt: skip
    assert when.lags(nothing).startswith("Not run yet")
    assert when.numbers(nothing).count("not run") == 4 * 35


def test_every_seed_is_drawn_and_nothing_where_there_are_no_runs(runs, nothing):
    drawn = [partial(figure, number=1) for figure in (when.figure, when.arrivals_figure)]
    made = []
    for make in (*drawn, when.arrivals_table):
        full, empty = make(runs), make(nothing)
        assert not full.waits and empty.waits and "Not run yet" in empty.html
        made.append(full)
    figure, _, arrivals = made
    assert len(figure.data) == 3 * SEEDS * POINTS * 4
    stateful = figure.text[figure.text.index("STATEFUL-BASELINE") :]
    assert amounts(stateful)[:3] == [15, 8000, 20]
    table = arrivals.html
    assert table.index("Sort") < table.index("Copy") < table.index("Differentiation")
    assert "COMPR&amp;REG" in table and "COMPR&REG" not in table


def test_a_length_that_is_watched_alone_is_a_number_and_not_a_table(runs):
    spec = runs.specs[0]
    alone = spec.model_copy(update={"task": spec.task.model_copy(update={"watched": (20,)})})
    point = {"watched_accuracy": 0.7, "dev_accuracy": 0.5, "iid_accuracy": 0.9}
    assert when._measured(alone, point) == {20: 0.7, 30: 0.5, 15: 0.9}
    assert when.lengths_of(alone) == (15, 20, 30)


def test_the_page_is_about_no_claim(runs):
    from dataclasses import replace

    page = replace(runs, artifacts=(), page="dnc_when")
    assert amounts(tables.verdict_counts(page)) == []


def test_budgets_are_half_once_and_twice_the_steps_and_the_middle_is_the_main_pages():
    specs = WHEN.specs("reduced", range(5))
    assert [(s.row, s.training.steps, s.training.select_from) for s in specs] == [
        (row, steps, steps // 2)
        for steps in (25_000, 50_000, 100_000)
        for row in ("STATEFUL-BASELINE", "COMPR")
    ]
    assert [WHEN.keeper(spec).name for spec in specs] == [
        "dnc_when" if spec.training.steps != 50_000 else "dnc_generalization" for spec in specs
    ]


def test_budgets_are_compared_by_what_each_run_reaches(tmp_path):
    store = Store(tmp_path)
    for spec in WHEN.specs("reduced", [0]):
        if spec.row == "COMPR" and spec.training.steps < 100_000:
            far = 20 if spec.training.steps == 25_000 else 40
            made = handmade.record(
                spec, lambda _, test, far=far: float(int(test) <= far), experiment="dnc_when"
            )
            origin = made["provenance"] | {"device_name": f"processor {far}"}
            store.append("dnc", made | {"curve": curve(spec), "provenance": origin})
    runs = Runs.read(WHEN, "reduced", 5, store)
    data = budget.by_steps(runs).set_index(["model", "steps"])
    assert len(data) == 6 and data["mean"].notna().sum() == 2
    half, usual = data.loc["COMPR", 25_000], data.loc["COMPR", 50_000]
    assert (half["longest"], usual["longest"]) == (20, 40)
    assert half["mean"] == pytest.approx(100 * 19 / 44)  # of lengths 2 to 45
    assert (usual["first_15"], usual["first_45"]) == (4000, np.inf)
    assert "COMPR" in budget.table(runs).html and budget.table(nothing_of(WHEN, tmp_path)).waits
    assert amounts(budget.elsewhere(runs)) == [25_000, 20, 50_000, 40]
    assert budget.elsewhere(nothing_of(WHEN, tmp_path)) == ""
    assert [line.split()[0] for line in budget.ahead(runs).splitlines()] == [
        *("25,000", "50,000", "100,000")
    ]


def nothing_of(experiment, folder) -> Runs:
    return Runs.read(experiment, "reduced", 5, Store(folder / "nothing"))
