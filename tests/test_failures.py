"""Failures and paths of attention: what is read off records is what is in them."""

import json

import handmade
import numpy as np
import pytest

from relength.papers.mla import failures, focus
from relength.papers.mla.focusing import divergence
from relength.papers.mla.spans import answer_spans
from relength.report.grid import NOT_COUNTED, NOT_RUN
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.tasks import TASKS

FAILURES, PATHS = experiment("mla_failures"), experiment("mla_attention_paths")
MODELS = ("LocAttn", "OneStepAttn")


def runs_of(folder, found, change=lambda record: record, seeds=1) -> Runs:
    """Runs of two models, made by hand and changed; they are kept with those of Table 2."""
    store = Store(folder)
    file = store.file("mla", "mla_table2")
    file.parent.mkdir(parents=True, exist_ok=True)
    wanted = [spec for spec in found.specs("reduced", range(seeds)) if spec.model.name in MODELS]
    records = (change(handmade.record(spec, lambda *_: 1.0)) for spec in wanted if seeds)
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return Runs.read(found, "reduced", max(seeds, 1), store, models=MODELS)


# The first divergence


@pytest.mark.parametrize(
    ("prediction", "found"),
    [
        ("1 2 3 EOS", None),
        ("1 2 3 EOS 7 7", None),  # what comes after the end means nothing
        ("9 2 3 EOS", (0, "wrong symbol")),
        ("1 2 9 EOS", (2, "wrong symbol")),
        ("1 2 EOS EOS", (2, "ends too early")),
        ("EOS", (0, "ends too early")),
        ("1 2 3 3", (3, "goes on")),
        ("1 2", (2, "wrong symbol")),
    ],
)
def test_the_first_divergence(prediction, found):
    assert divergence(["1", "2", "3", "EOS"], prediction.split()) == found


def test_the_papers_examples_diverge_where_they_were_counted_to():
    examples = failures.printed()
    assert list(examples["task"]) == ["inv_recopy"] * 2 + ["reverse_lookup"] * 2
    for row in examples.itertuples():
        found = divergence(row.target, row.prediction)
        assert found.right == row.correct_prefix_length
        assert len(row.target) == row.oracle_length + 1
        assert len(row.prediction) == row.prediction_length + 1
    assert len(failures.examples().data) == 4


def test_the_papers_lookup_examples_follow_from_the_published_tables():
    from relength.tasks.lookup import compose

    sources = ("t4 t4 t1 t6 t5 t2 t6 t3 t4 100", "t4 t4 t2 t6 t5 t4 t2 t2 t3 110")
    for source, oracle in zip(sources, failures.printed()["target"][2:], strict=True):
        *names, bits = source.split()
        assert compose(bits, tuple(reversed(names))).target == oracle[:-1]


# Over all failing samples


def test_the_share_right_before_the_first_error_is_that_of_failing_samples_alone(tmp_path):
    """Half of the outputs are right; the others are right to a fifth, a tenth but for the end."""

    def half(record):
        for test in record["checkpoints"]["selected"]["tests"].values():
            test |= {"exact_match": 0.5, "exact_match_true_length": 0.55, "correct_prefix": 0.6}
        return record

    data = failures.shares(runs_of(tmp_path, FAILURES, half))
    assert set(data["test"]) == {"15", "30", "100", "7", "9", "11"}
    assert data["failing"].unique() == pytest.approx(50)
    assert data["right_before"].unique() == pytest.approx(20)
    assert data["only_end"].unique() == pytest.approx(10)


def test_independent_errors_are_told_from_the_shortest_test_that_has_any():
    """Against draws: each symbol is right with chance 0.97, whatever came before."""
    lengths, random = {"15": 16, "30": 31, "100": 101}, np.random.default_rng(0)
    tests, drawn = {}, {}
    for test, n in lengths.items():
        right = random.random((200_000, n)) < 0.97
        before = np.where(right.all(axis=1), n, right.argmin(axis=1)) / n
        drawn[test] = 100 * before[before < 1].mean()
        shares = {"correct_prefix": before.mean(), "exact_match": (before == 1).mean()}
        tests[test] = {"items": 2_000, **shares}
    record = {"checkpoints": {"selected": {"tests": tests}}}
    found = failures.if_independent(record, lengths)
    assert found == pytest.approx(drawn, abs=0.3)
    tests["15"] |= {"correct_prefix": 0.9999, "exact_match": 0.9999}  # too little to tell from
    assert failures.if_independent(record, lengths) == pytest.approx(
        {test: drawn[test] for test in ("30", "100")}, abs=0.3
    )
    tests["15"] |= {"correct_prefix": 0.0, "exact_match": 0.0}
    assert failures.if_independent(record, lengths) == dict.fromkeys(lengths, 0.0)


def test_where_nothing_fails_there_is_nothing_to_expect(tmp_path):
    def solved_again(record):
        tests = record["checkpoints"]["selected"]["tests"]
        tests["7" if "7" in tests else "15"] |= {"exact_match": 0.5, "correct_prefix": 0.75}
        return record

    data = failures.shares(runs_of(tmp_path, FAILURES, solved_again))
    fails = data["test"].isin(["7", "15"])
    assert data[fails]["if_independent"].notna().all()
    assert data[~fails][["right_before", "if_independent"]].isna().all(axis=None)


def test_where_nothing_fails_nothing_is_said_to(tmp_path):
    runs = runs_of(tmp_path, FAILURES)
    assert failures.shares(runs)["right_before"].isna().all()
    assert failures.NONE_FAILS in failures.where(runs, number=1).html
    assert failures.right_at_longest(runs).isna().all()
    assert failures.diverging(runs).empty
    assert failures.without_errors(runs) == failures.NONE_FAILS
    for shown in (failures.numbers(runs), failures.samples(runs).html):
        assert failures.NONE_FAILS in shown and NOT_RUN not in shown


def test_an_output_of_which_only_the_end_is_wrong_is_right_to_just_below_all_of_it():
    target = [*"4798", "EOS"]
    found = divergence(target, [*"4798", "8"])
    assert found.kind == "goes on" and found.right / len(target) == 4 / 5


def test_a_failing_sample_is_shown_with_its_divergence(tmp_path):
    def cut(record):
        sample = record["attention"]
        if record["spec"]["task"]["name"] == "copy":
            sample["prediction"] = [*sample["target"][:5], "EOS"]
        return record

    runs = runs_of(tmp_path, FAILURES, cut, seeds=2)
    data = failures.diverging(runs)
    assert len(data) == 2 * len(runs.rows) and set(data["task"]) == {"copy"}
    assert set(data["right"]) == {5} and set(data["of"]) == {16}
    assert set(data["then"]) == {"ends too early"}
    shown = failures.samples(runs)
    assert shown.html.count("<td") == 7 * len(runs.rows)  # one row per cell, the lowest seed
    assert len(shown.data) == len(data)


@pytest.mark.parametrize("seeds", [0, 2])
def test_both_pages_can_be_shown_from_any_store(tmp_path, seeds):
    wrong = runs_of(tmp_path, FAILURES, lambda r: r, seeds)
    paths = runs_of(tmp_path, PATHS, lambda r: r, seeds)
    exhibits = [
        *(failures.where(wrong, number=1), failures.where_exactly(wrong, number=2)),
        *(failures.samples(wrong), failures.examples()),
        *(focus.paths(paths, number=1), focus.table(paths), focus.ways(paths, number=2)),
    ]
    for shown in exhibits:
        assert shown.html and "\n\n" not in repr(shown)
        if 'role="img"' in shown.html:
            assert shown.html.count("<svg") == 2 and "var(--rl-" in shown.html
    for text in (failures.numbers(wrong), focus.numbers(paths)):
        assert (NOT_RUN in text) == (seeds == 0)


def test_first_errors_are_counted_along_the_output(tmp_path):
    """LocAttn on Copy errs in the first tenth and in the last, other runs nowhere."""

    def counted(record):
        spec = record["spec"]
        errs = (spec["model"]["name"], spec["task"]["name"]) == ("LocAttn", "copy")
        for test in record["checkpoints"]["selected"]["tests"].values():
            test["first_errors"] = [0] * 10
        if errs:
            test |= {"exact_match": 1601 / 2001, "first_errors": [300, *[0] * 8, 100]}
        return record

    runs = runs_of(tmp_path, FAILURES, counted)
    data = failures.tenths(runs)
    own = data.query("task == 'copy' and model == 'LocAttn'")
    assert own["failed"].tolist() == [0, *[75] * 9, 100] and set(own["test"]) == {"100"}
    others = data.drop(own.index)
    assert others["failed"].isna().all() and len(others) == 11 * (len(runs.records) - 1)
    half = failures.failed_by_middle(data)
    assert half["LocAttn", "released"] == 75
    assert half.drop(("LocAttn", "released")).isna().all()


def test_first_errors_are_taken_from_the_execution_that_counted_them(tmp_path):
    """The first execution of a run is of an older version; the second one has the counts."""
    runs = runs_of(tmp_path, FAILURES, lambda record: record)
    assert failures.tenths(runs).empty
    assert NOT_COUNTED in failures.where_exactly(runs, 1).html
    again = json.loads(json.dumps(runs.records[0])) | {"run_id": "f" * 16}
    again["provenance"]["created"] = "2027-01-01T00:00:00Z"
    for test in again["checkpoints"]["selected"]["tests"].values():
        test["first_errors"] = [0] * 10
    Store(tmp_path).append("mla", again)
    later = Runs.read(FAILURES, "reduced", 1, Store(tmp_path), models=MODELS)
    assert len(failures.tenths(later)) == 11 and len(later.records) == len(runs.records)


# Paths


@pytest.mark.parametrize("task", [*TASKS][:8])
def test_every_symbol_can_be_read_where_its_path_is(task):
    """Copied digits stand there; a lookup's table stands there; the end is at an end."""
    config = TASKS[task](test_size=20)
    for pair in config.pairs(config.tests[1], 0):
        source, target = ["START", *pair.source, "END"], [*pair.target, "EOS"]
        way = focus.path(task, source, target)
        assert way.shape == (len(target), 2) and (way[:, 0] <= way[:, 1]).all()
        for symbol, (first, last) in zip(target[:-1], way[:-1], strict=True):
            there = set(source[first : last + 1])
            assert there == {symbol} or ("lookup" in task and len(there) == 1)
        order = np.diff(way.mean(1))
        assert (order <= 0).all() if "reverse_" in task and "inv" not in task else True
        assert way.min() >= 0 and way.max() <= len(source) - 1


def test_answers_of_the_two_further_tasks_stand_where_the_boxes_are():
    for task in ("dedupe", "posretrieve"):
        config = TASKS[task](test_size=5)
        batch = config.dataset("15", 0)
        for row in range(5):
            source, target = config.shown(batch.select(slice(row, row + 1)), 0)
            spans = answer_spans(task, source, target)
            assert len(spans) == len(target)
            for symbol, (first, last) in zip(target[:-1], spans, strict=False):
                if symbol not in (":", ";", "n/a"):
                    assert set(source[first : last + 1]) == {symbol}


def test_lookup_reads_the_input_first_and_then_a_table_a_step():
    source = ["START", "010", "t3", "t4", ".", "END"]
    assert focus.path("lookup", source, ["010", "011", "010", "EOS"])[:, 0].tolist() == [1, 2, 3, 4]
    turned = ["START", "t4", "t3", "010", ".", "END"]
    way = focus.path("reverse_lookup", turned, ["010", "011", "010", "EOS"])
    assert way[:, 0].tolist() == [3, 2, 1, 0]


def sample(weights, prediction="4 7 EOS") -> dict:
    return {
        **{"source": ["START", "4", "7", "END"], "target": ["4", "7", "EOS"]},
        **{"prediction": prediction.split(), "weights": weights},
    }


def test_the_centre_is_the_mean_position_up_to_the_models_own_end():
    weights = [[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 1]]
    assert focus.centre(sample(weights)).tolist() == [1, 1, 3]
    assert focus.centre(sample(weights, "4 EOS EOS")).tolist() == [1, 1]


def test_a_model_that_turns_its_source_is_measured_in_the_direction_it_takes():
    backwards = sample(np.eye(4)[[2, 1, 0]].tolist())
    turned = focus.wanted("OneStepAttn", "copy", backwards, focus.centre(backwards))
    assert turned[:, 0].tolist() == [2, 1, 0]
    straight = focus.wanted("LocAttn", "copy", backwards, focus.centre(backwards))
    assert straight[:, 0].tolist() == [1, 2, 3]


def test_seeds_that_turn_differently_are_drawn_along_one_path(tmp_path):
    def either(record):
        found = record["attention"]
        places = np.arange(len(found["target"])) + 1
        turned = record["spec"]["seed"] == 1 and record["spec"]["model"]["name"] == "OneStepAttn"
        where = len(found["source"]) - 1 - places if turned else places
        found["weights"] = np.eye(len(found["source"]))[where].tolist()
        return record

    runs = runs_of(tmp_path, PATHS, lambda r: either(r) if is_copy(r) else r, seeds=2)
    data = focus.paths(runs, number=1).data.query("task == 'copy' and model == 'OneStepAttn'")
    assert set(data.groupby("seed")["turned"].first()) == {False, True}
    for (_, _), step in data.groupby(["arm", "step"]):
        assert step["centre"].nunique() == step["first"].nunique() == 1
        assert (step["centre"] == step["first"]).all()


def is_copy(record) -> bool:
    return record["spec"]["task"]["name"] == "copy"


def test_a_focus_beside_the_answer_is_on_the_path_and_a_lame_one_is_not(tmp_path):
    def shifted(record):
        found = record["attention"]
        steps, places = len(found["target"]), len(found["source"])
        pace = 1 if record["spec"]["model"]["name"] == "OneStepAttn" else 0.4
        centres = np.minimum(2 + pace * np.arange(steps), places - 1)
        low, weights = centres.astype(int), np.zeros((steps, places))
        weights[np.arange(steps), low] = 1 - centres % 1
        weights[np.arange(steps), np.minimum(low + 1, places - 1)] += centres % 1
        found["weights"] = weights.tolist()
        return record

    data = focus.steps(runs_of(tmp_path, PATHS, shifted)).query("task == 'copy'")
    one, lame = (data[data["model"] == name].iloc[0] for name in ("OneStepAttn", "LocAttn"))
    assert (one["offset"], one["taken"], one["needed"]) == pytest.approx((1, 1, 1))
    assert one["on_path"] > 90 and lame["on_path"] < 40
    assert lame["taken"] == pytest.approx(0.4)
    assert one["spread"] == pytest.approx(0)


def test_the_spread_of_attention_is_a_standard_deviation_in_positions():
    even = sample([[0.25] * 4, [0, 0.5, 0, 0.5], [0, 0, 1, 0]])
    assert focus.spread(even).tolist() == pytest.approx([1.25**0.5, 1, 0])


def test_a_focus_walks_the_way_that_most_of_its_steps_go(tmp_path):
    """A seed reads Copy from its beginning, one jumps to the end and comes back, one waits."""

    def walking(record):
        found = record["attention"]
        places = np.arange(len(found["target"])) + 1
        way = {0: places, 1: places[::-1], 2: np.ones_like(places)}[record["spec"]["seed"]]
        found["weights"] = np.eye(len(found["source"]))[way].tolist()
        return record

    runs = runs_of(tmp_path, PATHS, lambda r: walking(r) if is_copy(r) else r, seeds=3)
    data = focus.walks(runs).query("task == 'copy' and model == 'LocAttn'")
    assert data["way"].tolist() == ["forward", "back", "neither"]
    assert data["ahead"].tolist() == [15, 0, 0] and data["back"].tolist() == [0, 15, 0]
    assert data["peak"].tolist() == [16, 16, 1] and set(data["end"]) == {16}
    assert set(focus.walks(runs)["model"]) == {"LocAttn", "OneStepAttn"}  # those with a focus
    # In the tasks with repetitions the records made by hand go less than ROOM a step.
    counts = focus.by_way(focus.walks(runs))
    assert counts["LocAttn", "released"] == {"forward": 16, "back": 1, "neither": 7}
    assert focus.without_a_walk(runs) == []
    assert ">Inv ReCopy<" in focus.ways(runs, number=1).html
    copies = runs.of(runs.rows, ["copy"])
    assert focus.without_a_walk(copies) == runs.tasks[1:]
    assert ">Inv ReCopy<" not in focus.ways(copies, number=1).html
