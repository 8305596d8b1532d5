"""The page of MemReasoner's first table, where one model cannot read the longest inputs."""

import handmade
import pytest

from relength.models import MODELS
from relength.papers.memreasoner import PAPER, split
from relength.report import figures, tables
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.verdicts import judged

FOUND = experiment("memreasoner_babilong")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    store = Store(tmp_path_factory.mktemp("store"))
    for spec in FOUND.specs("reduced", range(3)):
        store.append("memreasoner", handmade.record(spec, lambda *_: 0.7, experiment=FOUND.name))
    return Runs.read(FOUND, "reduced", 3, store)


def test_columns_are_those_of_the_model_with_most_tests(runs):
    (tests,) = runs.tests.values()
    assert tests[-1] == "128k"
    task = runs.tasks[0]
    assert runs.tested("GPT", "paper", task) == tests[: len(runs.tested("GPT", "paper", task))]
    data = tables.comparison(runs)
    assert set(data[data["model"] == "MemReasoner"]["test"]) == set(tests)
    for short in ("GPT", "MemN2N"):
        assert set(data[data["model"] == short]["test"]) == {"babi", "0k", "1k", "2k"}


def test_the_code_of_a_row_as_in_the_code_is_larimars(runs):
    said = tables.side_by_side(runs, "memreasoner-table-2").html
    assert "Larimar's public code" in said.replace("&#39;", "'") and "the released code" not in said


def test_curves_of_held_out_samples_alone_promise_no_gap_to_longer_ones(runs):
    """Development and validation set are one here, so that both lines are."""
    made = figures.learning(runs, 1)
    assert {n for s in runs.specs for n in s.task.dev_splits} == {"validation"}
    assert len(made.data) and "gap between" not in made.html


def test_what_a_model_cannot_read_is_a_dash(runs):
    for name, dashes in (("GPT", 6), ("MemN2N", 6), ("RMT", 0), ("Mamba", 0), ("Larimar", 0)):
        (line,) = (x for x in tables.numbers(runs).splitlines() if x.startswith(f"  {name} "))
        assert line.split().count("–") == dashes, line
    html = tables.side_by_side(runs, "memreasoner-table-2").html
    assert html.count('title="longer than this model can read"') == 12
    assert "GPT" in figures.accuracy(runs, "memreasoner-table-2", number=1).text


# The paper's sentence says otherwise than its table (deviations/memreasoner.yml).
CONTRADICTORY = {"memreasoner-009", "memreasoner-020"}


def verdicts_of(found, accuracy, store: Store):
    """The verdict of each claim on five seeds of runs that have these accuracies."""
    for spec in found.specs("reduced", range(5)):
        record = handmade.record(spec, accuracy, experiment=found.keeper(spec).name)
        store.append("memreasoner", record)
    return Runs.read(found, "reduced", 5, store).ledger.set_index("claim")["verdict"]


@pytest.mark.parametrize(
    "name",
    [
        *("memreasoner_babi", "memreasoner_babilong", "memreasoner_two_facts"),
        *("memreasoner_hops", "memreasoner_memory_network"),
    ],
)
def test_runs_that_are_as_printed_reproduce_what_is_judged(name, tmp_path):
    """Every claim that is not on other models holds of the printed numbers.

    But for sentences that contradict the table beside them: these fail.
    """
    found = experiment(name)
    # Claims on both tasks in a novel are judged where the runs of both are.
    paper = tables.printed(*found.tables, "memreasoner-table-2", "memreasoner-table-3")
    store = Store(tmp_path)

    def accuracy(spec, test):
        # Other arms are as the one that is printed; GPT, which is not, is as bad as Qwen2.5.
        usual = 100.0 if test in ("0k", "babi") else 50.0
        return paper.get((spec.row, spec.task.name, test), usual) / 100

    verdicts = verdicts_of(found, accuracy, store)
    judged = verdicts[verdicts != "not testable"]
    right = judged.str.startswith("reproduced")
    wrong = CONTRADICTORY & set(judged.index)
    assert len(judged) > 2 and set(judged.index[~right]) == wrong, judged[~right].to_dict()


# These say that a model fails, and ask nothing else of it.
OF_FAILURE = {"memreasoner-021", "memreasoner-035"}


@pytest.mark.parametrize(
    "guess",
    [
        ("MemReasoner",),
        pytest.param(("RMT", "Mamba", "Larimar"), marks=pytest.mark.weekly),
        pytest.param(("alpha=",), marks=pytest.mark.weekly),
    ],
)
def test_no_comparison_holds_of_models_that_learned_nothing(guess, tmp_path):
    """Some guess one of six places everywhere, and all others answer nothing at all."""
    store, specs = Store(tmp_path), {}
    for found in PAPER.experiments:
        specs |= {spec.key: (found.keeper(spec), spec) for spec in found.specs("reduced", range(5))}
    for found, spec in specs.values():
        share = 1 / 6 if spec.row.startswith(guess) else 0.0
        record = handmade.record(spec, lambda *_, share=share: share, experiment=found.name)
        store.append(PAPER.name, record)
    verdicts = judged.ledger(PAPER.name, store).set_index("claim")["verdict"]
    assert (verdicts != "not run").sum() > 60
    held = {claim for claim, said in verdicts.items() if said.startswith("reproduced")}
    assert {claim for claim in held if "/" not in claim} <= OF_FAILURE


def test_task_2_is_read_twice_and_its_runs_are_kept_once():
    babi, long = experiment("memreasoner_babi"), experiment("memreasoner_two_facts")
    for spec in long.specs("reduced", [0]):
        assert babi.wants(spec) and long.keeper(spec) is babi
    for name in ("memreasoner_two_facts", "memreasoner_hops"):
        for spec in experiment(name).specs("reduced", [0]):
            assert spec.model.name != "MemReasoner" or spec.model.hops == 2
    one = {s.key for s in FOUND.specs("reduced", [0])}
    assert one <= {s.key for s in babi.specs("reduced", [0])}


def test_questions_fall_into_parts_by_what_is_read_and_answered(tmp_path):
    """6 of 10 questions are answered and 7 read, 5 of them both: 1 from another line, 2 read only,
    2 neither. Baselines tell nothing of what they read.
    """
    store = Store(tmp_path)
    for spec in FOUND.specs("reduced", range(2)):
        record = handmade.record(spec, lambda *_: 0.6, experiment=FOUND.name)
        for found in record["checkpoints"]["selected"]["tests"].values():
            found |= {"facts_found": 0.7, "answer_and_facts": 0.5}
            if spec.model.name != "MemReasoner":
                found |= {"facts_found": None, "answer_and_facts": None}
        store.append("memreasoner", record)
    runs = Runs.read(FOUND, "reduced", 2, store)
    data = split.shares(runs)
    assert set(data["model"]) == {"MemReasoner"}
    assert len(data) == 3 * 2 * len(runs.tests[runs.tasks[0]])  # arms, seeds
    for row in data[list(split.PARTS)].to_numpy():
        assert row == pytest.approx([50, 10, 20, 20, 0])
    assert split.numbers(runs).count(" 50") == 3 * len(runs.tests[runs.tasks[0]])
    assert split.figure(runs, 1).html.count("<svg") == 2


def test_a_memory_that_diverges_is_no_wrong_read(tmp_path):
    """3 of 10 questions are read and answered, 6 have no memory, 1 is read elsewhere."""
    store = Store(tmp_path)
    for spec in FOUND.specs("reduced", range(2)):
        if spec.model.name != "MemReasoner":
            continue
        record = handmade.record(spec, lambda *_: 0.3, experiment=FOUND.name)
        lost = 0.6 if spec.model.arm == "released" else 0.0
        for found in record["checkpoints"]["selected"]["tests"].values():
            found |= {"facts_found": 0.3, "answer_and_facts": 0.3, "diverged": lost}
        store.append("memreasoner", record)
    runs = Runs.read(FOUND, "reduced", 2, store)
    data = split.shares(runs).set_index("arm")[list(split.PARTS)]
    assert data.loc["released"].iloc[0].tolist() == pytest.approx([30, 0, 0, 10, 60])
    assert data.loc["paper"].iloc[0].tolist() == pytest.approx([30, 0, 0, 70, 0])
    words = split.PARTS["diverged"].words
    assert split.numbers(runs).count(words) == 1  # of the reading that has any
    assert words in split.figure(runs, 1).html


def test_without_runs_nothing_is_split(tmp_path):
    runs = Runs.read(FOUND, "reduced", 2, Store(tmp_path))
    assert split.shares(runs).empty and split.means(runs).empty
    assert "Not run" in split.numbers(runs)
    assert "<svg" not in split.figure(runs, 1).html


def test_baselines_learn_from_answers_and_larimar_from_other_text_as_well():
    for name in ("memreasoner_babilong", "memreasoner_two_facts"):
        weights = {
            spec.row: spec.training.weights
            for spec in experiment(name).specs("reduced", [0])
            if spec.row != "MemReasoner"
        }
        assert weights["Larimar"] == {"text": 1.0}
        assert list(weights) == ["GPT", "RMT", "Mamba", "Larimar", "MemN2N"]
        # The others have no terms that could be weighed.
        assert not any(has_terms(row) for row in weights if row != "Larimar")


def has_terms(row: str) -> bool:
    return MODELS[row].module.supervised


def test_segments_are_those_of_the_paper():
    for name, size in (("memreasoner_babilong", 64), ("memreasoner_two_facts", 128)):
        for rmt in (s for s in experiment(name).specs("reduced", [0]) if s.row == "RMT"):
            assert rmt.model.segment == size and rmt.training.shortest_first


def test_table_15_has_no_runs_of_its_own():
    found = experiment("memreasoner_memory_network")
    specs = found.specs("reduced", [0])
    assert {(spec.row, spec.task.name) for spec in specs} == {
        (row, task)
        for row in ("MemReasoner", "MemN2N")
        for task in ("babi_one_fact", "babi_two_facts", "babi_two_facts_then_one")
    }
    assert all(found.keeper(spec) is not found for spec in specs)
