"""PANM's pages: what pointers do is counted right, and every page can be shown from any store."""

import json
import re
from itertools import pairwise
from pathlib import Path

import handmade
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from relength.models.pointers.attention import masked_softmax
from relength.papers.panm import address_bits, pointers, pointing, readings
from relength.papers.panm import experiments as panm
from relength.papers.panm.means import means
from relength.report import appendix, figures, tables
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import spaced
from relength.runs.store import Store, frame
from relength.specs.experiments import experiment
from relength.tasks import TASKS
from relength.training.alone import build

ALGORITHMIC, HEADS = experiment("panm_algorithmic"), experiment("panm_pointer_heads")
SHORT, READINGS = experiment("panm_long_to_short"), experiment("panm_readings")
BITS = experiment("panm_address_bits")
FIGURE_2 = ("panm-fig-2c", "panm-fig-2d")


def accuracy(spec, test: str) -> float:
    """Everybody knows the first length; PANM loses a tenth per test, the others half."""
    step = spec.task.tests.index(test)
    if spec.model.arm == "mended":
        return 1.0
    return round((1 - 0.1 * step) if spec.model.name == "PANM" else 0.5**step, 4)


def test_no_row_of_the_second_readings_has_the_name_of_another_one(tmp_path):
    """A row differs from that of the main table with the same task, model and arm, and says so."""
    main, second = (Runs.read(e, "reduced", 1, Store(tmp_path)) for e in (ALGORITHMIC, READINGS))

    def rows(runs: Runs, task: str) -> list[str]:
        own = (spec for spec in runs.specs if spec.task.name == task)
        return [runs.label(spec.row, spec.model.arm, task) for spec in own]

    for task in second.tasks:
        names = [*rows(main, task), *rows(second, task)]
        assert len(set(names)) == len(names)
    assert "PANM, the rule of the example" in rows(second, "panm_mix")
    shown = tables.numbers(Runs.read(READINGS, "reduced", 1, store_of(tmp_path / "some", 1)))
    assert "PANM, repaired, random base in tests" in shown


def store_of(folder: Path, seeds: int) -> Store:
    store = Store(folder)
    for found in (ALGORITHMIC, HEADS, SHORT, READINGS, BITS):
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
    for n in (10, 82):
        best = masked_softmax(torch.tensor([1.0] + [-1.0] * (n - 1)), None).max()
        assert pointers.bound(n) == pytest.approx(float(best), abs=1e-6)
    assert pointers.bound(10) == pytest.approx(0.45, abs=0.01)
    assert pointers.bound(82) == pytest.approx(0.08, abs=0.01)
    assert pointers.bound(82, 0.1) > 0.99


# Bits of addresses


@given(first=st.integers(0, 10**6), count=st.integers(1, 300))
def test_that_many_addresses_tell_a_row_apart_and_half_as_many_do_not(first, count):
    most = pointing.told_apart(count)
    row = np.arange(first, first + count)
    assert len(set(row % most)) == count
    if count > 1:
        assert len(set(row % (most // 2))) < count


def test_the_prediction_is_what_the_experiment_says():
    grid = BITS.specs("reduced", [0])
    assert [s.task.train_lengths for s in grid] == [(1, n) for n in panm.LONGEST_TRAINED]
    counts = [pointing.told_apart(n) for n in panm.LONGEST_TRAINED]
    assert counts == [4, 8, 8, 16, 16, 32]
    assert all(s.task.tests[2:] == ("20", "40", "80") for s in grid)
    assert {BITS.keeper(s).name for s in grid} == {BITS.name, ALGORITHMIC.name}  # 9 is the table's


def walker(arm: str, task: str, change=lambda slots: slots) -> dict:
    """A record of PANM whose walking pointer is right, but for a change to its slots."""
    (spec,) = [
        s
        for s in ALGORITHMIC.specs("reduced", [0])
        if (s.model.name, s.model.arm, s.task.name) == ("PANM", arm, task)
    ]
    record = handmade.record(spec, accuracy)
    for trace in record["traces"]:
        for name, slots in trace["slots"].items():
            if pointing.WALKS[task] in name:
                trace["slots"][name] = change(np.array(slots)).tolist()
    return record


@pytest.mark.parametrize("arm", panm.PANM_ARMS)
@pytest.mark.parametrize("task", list(pointing.WALKS))
def test_a_pointer_that_walks_has_every_bit_right(arm, task):
    record = walker(arm, task)
    found = pointing.wrong_bits(record)
    assert list(found) == ["10", "20"]
    bits = record["spec"]["model"]["bits"]
    assert found["20"].shape == (16, 20, bits) and not any(w.any() for w in found.values())


@pytest.mark.parametrize("task", list(pointing.WALKS))
def test_a_pointer_that_counts_to_sixteen_has_the_fifth_bit_wrong_and_no_other(task):
    found = pointing.wrong_bits(walker("repaired", task, lambda slots: slots % 16))["20"]
    assert found.any((0, 1)).tolist() == [False] * 4 + [True] + [False] * 5
    assert found[0, :, 4].sum() == 4  # slots 16 to 19
    assert not pointing.wrong_bits(walker("repaired", task, lambda slots: slots % 16))["10"].any()


def test_bits_are_those_of_addresses_and_not_of_slots():
    """From a random base on, one slot further can change any bit, but always the lowest."""
    found = pointing.wrong_bits(walker("released", "panm_copy", lambda slots: slots + 1))["20"]
    assert found[..., 0].all() and found[..., 5].any() and found.any((0, 1)).all()


@pytest.mark.parametrize("arm", ["released", "repaired"])
@pytest.mark.parametrize("base", ["zero", "random"])
def test_bases_are_those_that_the_model_has_in_tests(arm, base):
    fields = {"name": "PANM", "arm": arm, "base_in_tests": base}
    spec = panm.spec("smoke", 0, fields, "panm_copy")
    inputs = spec.task.dataset("20", 0).select(slice(0, 16)).inputs
    bases = build(spec).base(inputs, None).expand(16)
    assert pointing.bases(spec, 16).tolist() == bases.tolist()
    assert (len(set(bases.tolist())) > 1) == (base == "random")


def test_tasks_and_models_without_a_walking_pointer_have_no_bits():
    for spec in ALGORITHMIC.specs("reduced", [0]):
        found = pointing.wrong_bits(handmade.record(spec, accuracy))
        assert bool(found) == (spec.model.name == "PANM" and spec.task.name in pointing.WALKS)


def test_reading_one_of_the_slots_that_look_alike_knows_a_step_per_look():
    for most, length in ((4, 20), (16, 40), (16, 80), (32, 80), (100, 20)):
        accuracy = address_bits.expected(most, length)
        assert address_bits.steps_right(accuracy, length) == pytest.approx(min(most, length))
    assert address_bits.expected(16, 20) == pytest.approx(82)
    assert address_bits.steps_right(10, 80) == pytest.approx(0)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 20])
def test_the_most_frequent_of_several_symbols_is_a_good_guess(k):
    counts = np.random.default_rng(k).multinomial(k, [0.1] * 10, size=100_000)
    guess = address_bits._most_frequent(k)
    assert guess == pytest.approx(counts.max(1).mean() / k, abs=0.003)
    assert guess >= address_bits._any_of(k) - 1e-12
    assert k > 2 or guess == pytest.approx(address_bits._any_of(k))


def test_a_pointer_that_counts_to_sixteen_is_told_from_one_that_is_lost(tmp_path):
    """Steps 17 to 20 of 20 are wrong, in four bits right; the text's pointer stands still."""
    records = [
        walker("repaired", "panm_copy", lambda slots: slots % 16),
        walker("paper", "panm_copy", lambda slots: slots * 0),
    ]
    file = Store(tmp_path).file("panm", ALGORITHMIC.name)
    file.parent.mkdir(parents=True)
    file.write_text(
        "".join(f"{json.dumps(r | {'experiment': ALGORITHMIC.name})}\n" for r in records)
    )
    faults = address_bits.faults(runs_of(ALGORITHMIC, Store(tmp_path))).set_index("arm")
    assert list(faults.index) == ["repaired", "paper"]
    assert faults.loc["repaired", ["wrong", "low", "single"]].tolist() == [20, 100, 100]
    # Of steps 17 to 20 each has one other slot, of 19, that looks alike.
    assert faults.loc["repaired", "low_chance"] == pytest.approx(100 / 19)
    one_bit = [sum((a ^ b).bit_count() == 1 for b in range(20)) for a in range(16, 20)]
    assert faults.loc["repaired", "single_chance"] == pytest.approx(100 * np.mean(one_bit) / 19)
    assert faults.loc["paper", "wrong"] == 95  # all but the first slot
    assert faults.loc["paper", "low"] == pytest.approx(100 / 19)  # slot 16 alone looks like 0


def test_models_without_pointers_are_passed_over(stores):
    """A store with baselines gives the same numbers and figures as one of PANM alone."""
    alone = runs_of(ALGORITHMIC, stores[2], models=("PANM",))
    among = runs_of(ALGORITHMIC, stores[2])
    assert len(among.records) > len(alone.records)
    assert address_bits.wrong(among).equals(address_bits.wrong(alone))
    assert address_bits.faults(among).equals(address_bits.faults(alone))


def test_the_outcome_of_the_prediction_is_counted(tmp_path):
    """All know sixteen steps, whatever they were trained on."""
    file = Store(tmp_path).file("panm", BITS.name)
    file.parent.mkdir(parents=True)
    lines = (
        json.dumps(handmade.record(spec, lambda _, test: known(int(test)), experiment=BITS.name))
        for spec in BITS.specs("reduced", [0, 1])
        if (spec.task.train_lengths[1], spec.seed) in ((8, 0), (8, 1), (16, 0))
    )
    file.write_text("".join(f"{line}\n" for line in lines))
    runs = runs_of(BITS, Store(tmp_path))
    found = address_bits.tested(runs)
    assert (found.runs, found.fewest, found.most) == (3, 1, 2)
    assert found.agree == {20: 1, 40: 1, 80: 1}
    assert found.right == {
        (8, 8): pytest.approx([16, 16], abs=1e-4),
        (16, 16): pytest.approx([16], abs=1e-4),
    }
    told = re.findall(r"\d+", address_bits.outcome(runs))
    assert told[:9] == ["3", "1", "2", "1", "20", "1", "40", "1", "80"]
    assert told[9:] == ["8", "16", "16", "8", "16", "16", "16"]  # trained, right, predicted
    assert address_bits.tested(runs_of(BITS, Store(tmp_path / "none"))) is None
    assert address_bits._nearest(19.8, {4, 8, 16, 32}, 20) == 20, "all that there are"
    data = address_bits.counted(runs)
    assert set(data.loc[data["test"] >= 17, "right"].round(4)) == {16}
    assert set(data["test"]) == {9, 17, 20, 40, 80}


def known(length: int) -> float:
    return min(1.0, address_bits.expected(16, length) / 100 + 1e-9)


# Pages


@pytest.mark.parametrize("seeds", [0, pytest.param(2, marks=pytest.mark.weekly)])
def test_every_exhibit_of_every_page_can_be_shown(stores, seeds):
    store = stores[seeds]
    main, figure_2 = runs_of(ALGORITHMIC, store), runs_of(ALGORITHMIC, store, artifacts=FIGURE_2)
    heads, short, second, lengths = (
        runs_of(found, store) for found in (HEADS, SHORT, READINGS, BITS)
    )
    own = runs_of(ALGORITHMIC, store, models=("PANM",))
    exhibits = [
        means(main, "panm-table-3"),
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
        pointers.over_time(heads, number=2),
        tables.details(heads),
        tables.verdicts(short),
        figures.cost(short, number=1),
        readings.table(own, second),
        readings.sharpness(own, number=1),
        readings.nearness(own, second),
        address_bits.bits(own, number=1),
        address_bits.what_is_left(own),
        address_bits.table(own),
        address_bits.steps(lengths, number=2),
        address_bits.bits_by_length(lengths, number=3),
        appendix.costs(lengths),
    ]
    for shown in exhibits:
        assert shown.html and "\n\n" not in repr(shown)
        assert seeds or shown.waits or NOT_RUN in shown.html, shown.text
    for shown in exhibits:
        if 'role="img"' in shown.html:
            assert shown.html.count("<svg") == 2 and "var(--rl-" in shown.html
            assert "data (CSV" in shown.html, shown.text


def test_the_model_of_the_main_table_is_watched_in_its_first_seed_alone():
    main = {spec.key for spec in ALGORITHMIC.specs("reduced", [0, 1])}
    for seed, common in ((0, 0), (1, 6)):
        specs = HEADS.specs("reduced", [seed])
        unwatched = [spec for spec in specs if spec.task.watched is None]
        assert {spec.key for spec in specs} & main == {spec.key for spec in unwatched}
        assert len(unwatched) == common


def test_figures_of_pointers_say_whose_accuracy_they_show(stores, tmp_path):
    """Every PANM has 80 % at the third test, and its course goes there from nothing."""
    runs = runs_of(HEADS, stores[2])
    shown = pointers.heads(runs, number=1)
    assert set(shown.data["accuracy"]) == {80.0}
    assert {"0", "1", pointers.FROM_THE_END} <= set(shown.data["pointers"])
    course = pointers.over_time(runs, number=2)
    of = course.data.groupby("step")["accuracy"]
    assert (of.nunique() == 1).all() and of.first().is_monotonic_increasing
    assert of.first().iloc[0] == 0 and 50 < of.first().iloc[-1] < 80
    sorts = course.data.query("task == 'panm_id_sort' and pointers == '2' and arm == 'repaired'")
    assert set(sorts["artifact"]) == {"panm-fig-9-id-sort"}
    seeds = course.data.groupby(["artifact", "pointers"])["seed"].nunique()
    assert seeds["panm-fig-8-copy", "2"] == 2
    assert seeds["panm-fig-9-copy", "1"] == 1, "the other seed is of the main table"
    store = Store(tmp_path)
    for spec in HEADS.specs("paper", [0]):
        if spec.model.arm == "repaired":
            store.append("panm", handmade.record(spec, accuracy, experiment=HEADS.name))
    at_paper = pointers.over_time(Runs.read(HEADS, "paper", 1, store), number=2)
    assert ">50,000 steps<" in at_paper.html and ">100,000 steps<" in at_paper.html


@given(st.lists(st.floats(0, 100), max_size=6).map(sorted))
def test_labels_of_lines_keep_their_order_and_a_distance_and_stay_inside(heights):
    placed = spaced(heights, 14.0)
    assert all(b - a >= 14 - 1e-9 for a, b in pairwise(placed))
    assert all(-4 <= height <= 104 for height in placed)
    if all(b - a >= 14 for a, b in pairwise(heights)):
        assert placed == heights


def test_rows_of_the_judged_readings_have_no_remark_and_come_first(stores):
    rows = runs_of(ALGORITHMIC, stores[2])
    labels = [rows.label(*row) for row in rows.rows]
    assert labels[:3] == ["PANM", "LSTM", "Location Attention"]
    assert labels[-2:] == ["PANM, repaired", "PANM, as in the text"]


def test_a_table_has_its_own_task_and_says_what_is_not_run(stores):
    runs = runs_of(ALGORITHMIC, stores[2])
    shown = tables.side_by_side(runs, "panm-table-18")
    assert set(shown.data["task"]) == {"panm_id_sort"}
    nram = shown.data.query("model == 'NRAM'")
    assert len(nram) == 5 and set(nram["seeds"]) == {0}
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
    assert '<b class="apart"><small>4/5</small> 80' in shown


def test_what_was_run_at_another_scale_only_says_at_which(tmp_path):
    specs = [s for s in ALGORITHMIC.specs("paper", [0]) if s.task.name == "panm_copy"]
    file = Store(tmp_path).file("panm", ALGORITHMIC.name)
    file.parent.mkdir(parents=True)
    record = handmade.record(specs[0], accuracy, experiment=ALGORITHMIC.name)
    file.write_text(json.dumps(record) + "\n")
    runs = runs_of(ALGORITHMIC, Store(tmp_path))
    row = specs[0].row, specs[0].model.arm
    assert runs.elsewhere(*row, "panm_copy") == {"paper": 1}
    assert set(tables.side_by_side(runs, "panm-table-13").data["seeds"]) == {0}


def test_table_3_is_made_as_the_paper_makes_it(stores):
    """PANM: 100, 90, 80, 70, 60; everybody else 100, 50, 25, 12.5, 6.25."""
    data = means(runs_of(ALGORITHMIC, stores[2]), "panm-table-3").data
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
    cells = [cell for _, cell in data.groupby(["task", "test", "row"], sort=False)]
    lines = [line.split() for line in pointers.numbers(runs).splitlines()]
    lines = [line for line in lines if line[:1] in (["PANM"], ["PANM,"])]
    assert len(lines) == len(cells) > 0
    for line, cell in zip(lines, cells, strict=True):
        assert float(line[-1]) == pytest.approx(cell["accuracy"].median(), abs=0.005)
        first = line[-1 - len(pointers.SAYS)]
        assert float(first) == pytest.approx(cell[next(iter(pointers.SAYS))].median(), abs=0.005)


def test_a_grid_with_holes_leaves_them_empty(stores):
    """No run without Mode 1 sorts anything: such cells are no gaps of the store."""
    runs = runs_of(HEADS, stores[2])
    assert not runs.plans("PANM 0+0", "released", "panm_id_sort")
    assert NOT_RUN not in tables.numbers(runs)
    assert NOT_RUN not in figures.learning(runs, number=1).html


def test_a_contrast_compares_equal_seeds_of_the_two_readings(stores):
    main = runs_of(ALGORITHMIC, stores[2], models=("PANM",))
    data = readings.differences(main, runs_of(READINGS, stores[2]))
    mended = data[data["what"].str.contains("across the batch")]
    assert set(mended["seeds"]) == {2}
    copied = mended[mended["task"] == "panm_copy"]
    assert copied["median"].tolist() == pytest.approx([0, 10, 20, 30, 40])
    rest = data.drop(mended.index)
    assert (rest["median"].abs() < 1e-9).all()  # hand-made runs of all other readings are alike
    told = " ".join(readings.numbers(main, runs_of(READINGS, stores[2])).split())
    assert "Copy 2 0 +10.0 +20.0 +30.0 +40.0" in told


def test_readings_stand_beside_the_printed_row_nearest_first(stores):
    """Print has 84, 52 and 36 % of Copy at the lengths where mended has all, and others less."""
    main, second = (runs_of(found, stores[2]) for found in (ALGORITHMIC, READINGS))
    data = readings.beside_printed(main, second)
    copied = data[data["task"] == "panm_copy"].drop_duplicates("reading")
    assert copied["reading"].iloc[0] == readings.PRINTED and (copied["seeds"][1:] == 2).all()
    assert copied["reading"].is_unique and len(copied) == 1 + 3 + 9  # main arms, further readings
    away = copied.set_index("reading")["away"]
    assert away["mended"] == pytest.approx((16 + 48 + 64) / 3)
    assert away["no dropout"] == away["as in the text"] == pytest.approx((4 + 18 + 24) / 3)
    assert away.is_monotonic_increasing and away.index[-1] == "mended"
    told = readings.nearest(main, second)
    assert 0 < told.index("(15.3 points") < told.index("(42.7 points")
    main, second = (runs_of(found, stores[0]) for found in (ALGORITHMIC, READINGS))
    assert readings.nearest(main, second) == ""


def test_a_cell_counts_when_the_row_is_in_the_arm_it_is_judged_in():
    cells = ALGORITHMIC.cells("reduced")
    assert len(cells) == 12 * 6
    assert len(ALGORITHMIC.cells("reduced", "panm-table-13")) == 12
    assert ALGORITHMIC.cells("reduced", "panm-fig-2d") == [("PANM", "panm_id_sort")]
    rows = {row for row, _ in HEADS.cells("reduced", "panm-fig-9-copy")}
    assert rows == {"PANM 2+0", "PANM", "PANM 2+2"}
    assert ALGORITHMIC.judged_arms["NRAM"] == "paper"
    assert not ALGORITHMIC.judges("PANM", "paper")
