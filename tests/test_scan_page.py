"""The page of SCAN with cut-offs: what its table and pictures show of recorded runs."""

import re

import handmade
import pytest
from handmade import amounts

from relength.papers.panm import scan_budget, scan_figures
from relength.papers.panm.scan_experiments import CUT_OFFS, EXPERIMENTS
from relength.report import tables
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs import published
from relength.specs.experiments import experiment

FOUND, LONGER = experiment("panm_scan"), experiment("panm_scan_budget")
SEEN = {22: 0.2, 24: 0.5, 25: 0.9, 26: 1.0}


def beyond(spec, test: str) -> float:
    """PANM is as in SEEN beyond a cut-off, others are at 10 %; held-out commands are known."""
    if test != "length":
        return 1.0
    return SEEN[spec.task.cut_off] if spec.model.name == "PANM on TRM" else 0.1


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    store = Store(tmp_path_factory.mktemp("store"))
    for spec in FOUND.specs("reduced", range(2)):
        named = spec.model.name in ("PANM on TRM", "TRM+RPE") and spec.model.arm != "repaired"
        if named and spec.task.cut_off in SEEN:
            store.append("panm", handmade.record(spec, beyond, experiment=FOUND.name))
    return Runs.read(FOUND, "reduced", 2, store)


def test_the_grid_has_every_printed_cell_and_the_telling_ones_first():
    cells = {(spec.row, spec.task.name) for spec in FOUND.grid("reduced", 0)}
    printed = published.table("panm-table-4").query("not task.str.startswith('math')")
    assert {*zip(printed["model"], printed["task"], strict=True)} == cells
    assert len(printed) == len(cells) == 55 and EXPERIMENTS[0] is FOUND
    first = FOUND.grid("reduced", 0)[:9]
    assert {spec.task.cut_off for spec in first} == {24, 25, 26}
    assert {spec.row for spec in first} == {"TRM+RPE", "U. TRM+RPE", "PANM on TRM"}
    assert len({spec.key for spec in FOUND.specs("reduced", range(3))}) == 3 * 66


def test_scale_paper_has_the_papers_steps():
    (training,) = {spec.training for spec in FOUND.grid("paper", 0)}
    assert (training.steps, training.batch_size, training.learning_rate) == (50_000, 256, 1e-3)
    assert (training.clip.by, training.clip.most) == ("norm", 5.0)
    sizes = {(spec.model.width, spec.model.heads, spec.model.inner_size)
             for spec in FOUND.grid("paper", 0)}  # fmt: skip
    assert sizes == {(128, 8, 256)}


def test_tables_have_cut_offs_in_ascending_order(runs):
    assert runs.tasks == [f"scan_{n}" for n in sorted(CUT_OFFS)]
    text = tables.numbers(runs)
    heads = [int(n) for n in re.findall(r"^SCAN (\d+)", text, re.MULTILINE)]
    assert heads == sorted(CUT_OFFS)


def test_the_table_puts_ours_above_the_printed_numbers(runs):
    data = tables.comparison(runs).query("test == 'length'").set_index(["model", "task"])
    for n, share in SEEN.items():
        ours = data.loc[("PANM on TRM", f"scan_{n}")]
        assert ours["ours"] == pytest.approx(100 * share)
    assert data.loc[("PANM on TRM", "scan_24"), "paper"] == 47
    assert data.loc[("U. TRM+RPE", "scan_25"), "paper"] == 71
    html = tables.side_by_side(runs, "panm-table-4").html
    assert "place value" not in html.lower()  # mathematics is not on this page


def test_the_picture_by_cut_off_has_each_median(runs):
    made = scan_figures.by_cut_off(runs, number=1)
    (pointers,) = re.findall(r"PANM on TRM: ([^;]*);", made.text)
    assert amounts(pointers) == [20, 22, 50, 24, 90, 25, 100, 26]  # accuracy and cut-off
    assert len(made.data) == 2 * 2 * len(SEEN)


def test_the_picture_over_training_has_the_end_of_each_curve(runs):
    made = scan_figures.over_steps(runs, number=2)
    ends = made.data.groupby("cut_off")["beyond"].max()
    for record in runs.records:
        spec = record["spec"]
        if spec["model"]["name"] == "PANM on TRM":
            last = 100 * record["curve"][-1]["watched_accuracy"]
            assert ends[int(spec["task"]["cut_off"])] == pytest.approx(last)
    assert set(made.data["cut_off"]) == set(scan_figures.DRAWN)
    assert "cut-off 26 paper" in made.text


def test_without_runs_both_pictures_wait(tmp_path):
    empty = Runs.read(FOUND, "reduced", 1, Store(tmp_path))
    for draw in (scan_figures.by_cut_off, scan_figures.over_steps):
        assert "<svg" not in draw(empty, number=1).html


def test_one_cut_off_is_trained_twice_as_long_and_shares_the_usual_runs():
    specs = LONGER.specs("reduced", range(5))
    assert [(s.row, s.task.cut_off, s.training.steps, s.seed) for s in specs] == [
        (row, 26, steps, 0) for steps in (3_000, 6_000) for row in ("TRM+RPE", "PANM on TRM")
    ]
    keepers = {spec.training.steps: LONGER.keeper(spec).name for spec in specs}
    assert keepers == {3_000: "panm_scan", 6_000: "panm_scan_budget"}


def more_seeds(folder) -> Store:
    """Three seeds of the usual steps at the cut-off of the longer runs, in two readings."""
    store = Store(folder / "usual")
    for spec in FOUND.specs("reduced", range(3)):
        if spec.task.cut_off == 26 and spec.row in ("TRM+RPE", "PANM on TRM"):
            far = 0.9 if spec.model.arm == "repaired" else 0.2 + 0.1 * spec.seed
            store.append(
                "panm",
                handmade.record(
                    spec,
                    lambda _, test, far=far: far if test == "length" else 1.0,
                    experiment=FOUND.name,
                ),
            )
    return store


def test_twice_the_steps_are_compared_once_both_runs_are_there(tmp_path):
    store = Store(tmp_path)
    for spec in LONGER.specs("reduced", [0]):
        if spec.row == "PANM on TRM" or spec.training.steps == 3_000:
            far = 0.25 if spec.training.steps == 3_000 else 0.75
            made = handmade.record(
                spec,
                lambda _, test, far=far: far if test == "length" else 1.0,
                experiment=FOUND.name,
            )
            store.append("panm", made)
    runs = Runs.read(LONGER, "reduced", 5, store)
    data = scan_budget.by_steps(runs).set_index(["model", "steps"])
    assert data.loc[("PANM on TRM", 6_000), "beyond"] == 75
    assert data.loc[("TRM+RPE", 3_000), "known"] == 100
    assert data["beyond"].notna().sum() == 3
    every = Runs.read(FOUND, "reduced", 5, more_seeds(tmp_path))
    said = scan_budget.numbers(runs, every).splitlines()
    spans = [amounts(line) for line in said if "3 seeds" in line]
    # seeds and steps; held out, beyond, and beyond and stopped, from the least to the most
    assert spans == [[3, 3_000, 100, 100, 20, 40, 20, 40]] * 2
    said = said[: -len(spans)]
    of = {
        model: [x for x in said if x.startswith(f"{model},")]
        for model in ("TRM+RPE", "PANM on TRM")
    }
    assert [line.endswith("not run.") for line in of["TRM+RPE"]] == [True] * 3
    assert ["+50.0" in line for line in of["PANM on TRM"]] == [False, True, True]
    assert not scan_budget.table(runs).waits
    assert scan_budget.table(Runs.read(LONGER, "reduced", 5, Store(tmp_path / "empty"))).waits
