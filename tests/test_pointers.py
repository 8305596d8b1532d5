"""PANM's pages: what pointers do is counted right, and every page can be shown from any store."""

import json
import re
from pathlib import Path

import handmade
import numpy as np
import pytest

from relength import pointing
from relength.models.pointers import masked_softmax
from relength.papers import experiment, panm
from relength.report import appendix, figures, pointers, readings, tables
from relength.report.runs import Runs
from relength.store import Store, frame
from relength.tasks import TASKS

ALGORITHMIC, HEADS = experiment("panm_algorithmic"), experiment("panm_pointer_heads")
SHORT, READINGS = experiment("panm_long_to_short"), experiment("panm_readings")
FIGURE_2 = ("panm-fig-2c", "panm-fig-2d")


def accuracy(spec, test: str) -> float:
    """Everybody knows the first length; PANM loses a tenth per test, the others half."""
    step = spec.task.tests.index(test)
    if spec.model.arm == "mended":
        return 1.0
    return round((1 - 0.1 * step) if spec.model.name == "PANM" else 0.5**step, 4)


def store_of(folder: Path, seeds: int) -> Store:
    store = Store(folder)
    for found in (ALGORITHMIC, HEADS, SHORT, READINGS):
        if seeds:
            file = store.file("panm", found.name)
            file.parent.mkdir(parents=True, exist_ok=True)
            lines = (
                json.dumps(handmade.record(spec, accuracy, experiment=found.name))
                for spec in found.specs("reduced", range(seeds))
                if not (found is ALGORITHMIC and spec.model.name == "NRAM")
            )
            file.write_text("".join(f"{line}\n" for line in lines))
    return store


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> dict[int, Store]:
    return {n: store_of(tmp_path_factory.mktemp(f"seeds{n}"), n) for n in (0, 2)}


def runs_of(found, store: Store, **options) -> Runs:
    return Runs.read(found, "reduced", 2, store, **options)


# Counting


@pytest.mark.parametrize("task", panm.TASKS)
@pytest.mark.parametrize("flags", [False, True])
def test_places_are_where_the_written_tokens_are_read(task, flags):
    config = TASKS[task](flags=flags, test_size=20)
    test = config.tests[1]
    batch = config.dataset(test, 0).select(slice(0, 4))
    places = pointing.places(config, test, 4)
    tokens = batch.inputs[..., :10].argmax(2).numpy()
    assert (np.take_along_axis(tokens, places, 1) == batch.targets.numpy()).all()


def test_perfect_pointers_advance_and_find_at_every_step():
    for spec in ALGORITHMIC.specs("reduced", [0]):
        if spec.model.name == "PANM" and spec.task.name in ("panm_copy", "panm_id_sort"):
            found = pointing.shares(handmade.record(spec, accuracy, experiment="x"))
            assert list(found) == list(spec.task.tests[1:3])
            assert all(share == 100 for test in found.values() for share in test.values())


def test_a_pointer_that_stands_still_or_blurs_is_seen():
    (spec,) = [
        s
        for s in ALGORITHMIC.specs("reduced", [0])
        if (s.model.name, s.model.arm, s.task.name) == ("PANM", "paper", "panm_copy")
    ]
    record = handmade.record(spec, accuracy)
    trace = record["traces"][0]
    trace["slots"][pointers.BASE] = [[3] * 10] * 16
    trace["weights"][pointers.BASE] = [[0.1] * 10] * 10
    found = pointing.shares(record)["10"]
    assert (found["pointer_advances"], found["pointer_sharp"]) == (0, 0)
    assert found["partner_found"] == 100
    row = frame([record]).query("checkpoint == 'selected' and test == '10'").iloc[0]
    assert row["pointer_advances"] == 0 and row["accuracy"] == row["token_accuracy"] == 90


def test_models_without_pointers_have_no_shares():
    spec = next(s for s in ALGORITHMIC.specs("reduced", [0]) if s.model.name == "LSTM")
    assert pointing.shares(handmade.record(spec, accuracy)) == {}


def test_the_bound_is_reached_by_opposite_cosines_and_never_passed():
    import torch

    for n in (10, 82):
        best = masked_softmax(torch.tensor([1.0] + [-1.0] * (n - 1)), None).max()
        assert pointers.bound(n) == pytest.approx(float(best), abs=1e-6)
    assert pointers.bound(10) == pytest.approx(0.45, abs=0.01)
    assert pointers.bound(82) == pytest.approx(0.08, abs=0.01)
    assert pointers.bound(82, 0.1) > 0.99


# Pages


@pytest.mark.parametrize("seeds", [0, 2])
def test_every_exhibit_of_every_page_can_be_shown(stores, seeds):
    store = stores[seeds]
    main, figure_2 = runs_of(ALGORITHMIC, store), runs_of(ALGORITHMIC, store, artifacts=FIGURE_2)
    heads, short, second = (runs_of(found, store) for found in (HEADS, SHORT, READINGS))
    own = runs_of(ALGORITHMIC, store, models=("PANM",))
    exhibits = [
        tables.means(main, "panm-table-3"),
        *(tables.side_by_side(main, name) for name in ALGORITHMIC.tables),
        tables.details(main),
        figures.by_length(main, ("panm_copy", "panm_id_sort"), number=1),
        figures.accuracy(main, number=2),
        figures.learning(main, number=3),
        appendix.cap_check(main),
        appendix.costs(main),
        pointers.slots(figure_2, number=1),
        pointers.steps(figure_2),
        pointers.heads(heads, number=1),
        figures.learning(heads, number=2),
        tables.details(heads),
        tables.verdicts(short),
        figures.cost(short, number=1),
        readings.table(own, second),
        readings.sharpness(own, number=1),
    ]
    for shown in exhibits:
        assert shown._repr_html_() and "\n\n" not in repr(shown)
        assert seeds or re.search("not run|Not run yet|No run is recorded", shown.html), shown.text
    for shown in exhibits:
        if 'role="img"' in shown.html:
            assert shown.html.count("<svg") == 2 and "var(--rl-" in shown.html
            assert "data (CSV" in shown.html, shown.text


def test_rows_of_the_judged_readings_have_no_remark_and_come_first(stores):
    rows = runs_of(ALGORITHMIC, stores[0])
    labels = [rows.label(*row) for row in rows.rows]
    assert labels[:3] == ["PANM", "LSTM", "Location Attention"]
    assert labels[-2:] == ["PANM, repaired", "PANM, as in the text"]


def test_a_table_has_its_own_task_and_says_what_is_not_run(stores):
    runs = runs_of(ALGORITHMIC, stores[2])
    shown = tables.side_by_side(runs, "panm-table-18")
    assert set(shown.data["task"]) == {"panm_id_sort"}
    assert shown.html.count('<b class="none">not run</b>') == 5  # NRAM, five lengths
    text = tables.numbers(runs)
    line = next(line for line in text.splitlines() if line.startswith("  PANM "))
    assert line.split()[:5] == ["PANM", "2", "100", "(100)", "90"]


def test_where_the_paper_prints_means_ours_are_means(tmp_path):
    """Four seeds that solve Copy and one that fails have the median 100 and the mean 80."""
    specs = [
        spec
        for spec in ALGORITHMIC.specs("reduced", range(5))
        if (spec.row, spec.task.name, spec.model.arm) == ("PANM", "panm_copy", "released")
    ]
    file = Store(tmp_path).file("panm", ALGORITHMIC.name)
    file.parent.mkdir(parents=True)
    made = (
        handmade.record(spec, lambda spec, _: float(spec.seed > 0), experiment=ALGORITHMIC.name)
        for spec in specs
    )
    file.write_text("".join(f"{json.dumps(record)}\n" for record in made))
    runs = Runs.read(ALGORITHMIC, "reduced", 5, Store(tmp_path))
    cell = tables.comparison(runs, "panm-table-13").dropna(subset="ours").iloc[0]
    assert (cell["ours"], cell["mean"], cell["median"], cell["paper"]) == (80, 80, 100, 100)
    shown = tables.side_by_side(runs, "panm-table-13").html
    assert "above: our mean" in shown and '<b class="apart">80' in shown
    assert "mean of our seeds" in tables.numbers(runs)


def test_what_was_run_at_another_scale_only_says_at_which(tmp_path):
    specs = [s for s in ALGORITHMIC.specs("paper", [0]) if s.task.name == "panm_copy"]
    file = Store(tmp_path).file("panm", ALGORITHMIC.name)
    file.parent.mkdir(parents=True)
    record = handmade.record(specs[0], accuracy, experiment=ALGORITHMIC.name)
    file.write_text(json.dumps(record) + "\n")
    html = tables.side_by_side(runs_of(ALGORITHMIC, Store(tmp_path)), "panm-table-13").html
    assert html.count("paper only") == 5 and "1 seeds at scale paper" in html


def test_table_3_is_made_as_the_paper_makes_it(stores):
    """PANM: 100, 90, 80, 70, 60; everybody else 100, 50, 25, 12.5, 6.25."""
    data = tables.means(runs_of(ALGORITHMIC, stores[2]), "panm-table-3").data
    ours = data.set_index(["row", "task"])
    assert ours.loc[("PANM", "panm_copy"), "ours"] == pytest.approx(80)
    assert ours.loc[("Other Max", "panm_copy"), "ours"] == pytest.approx(38.75)
    assert ours.loc[("Other Max", "panm_copy"), "models"] == 10  # of 11, NRAM has no runs
    assert ours.loc[("PANM", "panm_copy"), "paper"] == 74.8
    assert np.isnan(ours.loc[("PANM, repaired", "panm_copy"), "paper"])


def test_pages_of_pointers_show_the_runs_of_panm_alone(stores):
    runs = runs_of(ALGORITHMIC, stores[2], artifacts=FIGURE_2)
    assert {spec.model.name for spec in runs.specs} == {"PANM"}
    assert set(runs.ledger["claim"]) == {"panm-025", "panm-026", "panm-029", "panm-030"}
    assert runs.page == "panm_pointers"
    data = pointers.shares(runs)
    assert (data[["pointer_advances", "partner_found"]] == 100).all(axis=None)
    assert "100" in pointers.numbers(runs)


def test_a_grid_with_holes_leaves_them_empty(stores):
    """No run without Mode 1 sorts anything: such cells are no gaps of the store."""
    runs = runs_of(HEADS, stores[2])
    assert not runs.plans("PANM 0+0", "released", "panm_id_sort")
    assert "not run" not in tables.numbers(runs)
    assert "not run" not in figures.learning(runs, number=1).html


def test_a_contrast_compares_equal_seeds_of_the_two_readings(stores):
    main = runs_of(ALGORITHMIC, stores[2], models=("PANM",))
    data = readings.differences(main, runs_of(READINGS, stores[2]))
    mended = data[data["what"].str.contains("across the batch")]
    assert set(mended["seeds"]) == {2}
    copied = mended[mended["task"] == "panm_copy"]
    assert copied["median"].tolist() == pytest.approx([0, 10, 20, 30, 40])
    rest = data.drop(mended.index)
    assert (rest["median"].abs() < 1e-9).all()  # hand-made runs of all other readings are alike
    assert "+40.0" in readings.numbers(main, runs_of(READINGS, stores[2]))


def test_a_cell_counts_when_the_row_is_in_the_arm_it_is_judged_in():
    cells = ALGORITHMIC.cells("reduced")
    assert len(cells) == 12 * 6
    assert len(ALGORITHMIC.cells("reduced", "panm-table-13")) == 12
    assert ALGORITHMIC.cells("reduced", "panm-fig-2d") == [("PANM", "panm_id_sort")]
    rows = {row for row, _ in HEADS.cells("reduced", "panm-fig-9-copy")}
    assert rows == {"PANM 2+0", "PANM", "PANM 2+2"}
    assert ALGORITHMIC.judged_arms["NRAM"] == "paper"
    assert not ALGORITHMIC.judges("PANM", "paper")
