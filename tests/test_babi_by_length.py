"""bAbI by length: what falls into which part, and what an answer is."""

import math
import re
from collections import Counter
from itertools import pairwise

import handmade
import numpy as np
import pytest
import torch
from handmade import amounts
from test_claims import cells_of

from relength.errors import RelengthError
from relength.papers.panm import courses
from relength.papers.panm.babi_experiments import EXPERIMENTS, LONG_STORIES
from relength.report import tables
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs import published
from relength.specs.experiments import experiment
from relength.specs.spec import make_spec
from relength.tasks import TASKS, data
from relength.tasks.babi_by_length import (
    LONGEST,
    LONGEST_OTHER,
    Babi50,
    Babi80,
    _stories,
    told,
    words,
)
from relength.tasks.batch import pad_tokens
from relength.tasks.likelihood import means, perplexity, scored
from relength.training import train
from relength.training.protocols.epochs_by_length import EpochsByLength
from relength.verdicts import claims

needs_data = pytest.mark.skipif(bool(why := Babi80().lacks()), reason=f"bAbI: {why}")
FEW = {"per_task": 40, "without": LONG_STORIES, "validation_size": 30, "test_size": 50}
CONSTANT = {4: 16, 15: 44, 16: 41, 19: 40}  # bAbI's tasks whose stories all have this length


def story(pair) -> int:
    """Length of a sample's story: all but the last sentence, which is the question."""
    text = list(pair.source)
    assert text[-1] == "?"
    return max((i + 1 for i, word in enumerate(text) if word == "."), default=0)


# --- without data ---------------------------------------------------------------------------------


def test_a_question_follows_its_story_and_has_one_symbol_as_its_answer():
    lines = ("Mary moved to the park.", "She took the milk there.")
    pair, length = told(lines, "What is Mary carrying?", "milk,apple")
    assert pair.source[:length] == (
        *("mary", "moved", "to", "the", "park", "."),
        *("she", "took", "the", "milk", "there", "."),
    )
    assert pair.source[length:] == ("what", "is", "mary", "carrying", "?")
    assert pair.target == ("milk,apple",) and length == story(pair) == 12
    assert words("Wolves are afraid of mice.") == ("wolves", "are", "afraid", "of", "mice", ".")


def test_sizes_are_known_without_the_files(monkeypatch):
    """20 tasks of 11,000 questions, but for the 9,000 of task 3 that are missing."""
    monkeypatch.delenv("RELENGTH_DATA", raising=False)
    sizes = {name: split.size for name, split in Babi80().splits().items()}
    assert sizes["length"] == sizes["dev"] == (19 * 11_000 + 2_000) // 5 == 42_200
    assert sizes["train"] + sizes["validation"] == 168_800 and sizes["iid"] == 1_000
    assert Babi50().splits()["length"].size == 105_500
    assert "RELENGTH_DATA is not set" in Babi80().lacks()


def test_missing_files_are_said_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path))
    assert "has no babi/tasks_1-20_v1-2_en.zip" in Babi80().lacks()
    monkeypatch.delenv("RELENGTH_DATA")
    monkeypatch.setenv("RELENGTH_OFFLINE", "1")
    data._find.cache_clear()
    with pytest.raises(RelengthError, match=r"^bAbI has no data: .*; let RELENGTH_DATA name"):
        Babi80().provenance()
    data._find.cache_clear()


@pytest.mark.parametrize("fields", [{"without": (21,)}, {"without": "3"}, {"sorted_within": "x"}])
def test_impossible_settings_are_refused(fields):
    with pytest.raises(RelengthError, match=next(iter(fields))):
        make_spec(
            task={"name": "babi_80", **fields}, model="TRM", training={"name": "epochs_by_length"},
            scale="smoke", seed=0,
        )  # fmt: skip


# --- how likely the right tokens are --------------------------------------------------------------


@pytest.mark.parametrize("k", [9, 40, 1000])
def test_perplexity_of_a_guess_among_k_equal_symbols_is_k(k):
    batch = pad_tokens([[1, 2, 3], [4]], [[5, 6, 7], [8]], padding=0)
    items, loss, *_ = means("x", [(batch, scored(torch.zeros(2, 3, k), batch))])
    assert items == 2 and perplexity(loss) == pytest.approx(k, rel=1e-6)


def test_means_are_over_tokens_and_not_over_batches():
    """Three tokens at 1/2 and one at 1/8: (3·ln 2 + ln 8)/4 = 1.5·ln 2, however they are cut."""
    whole = pad_tokens([[1], [1]], [[5, 5, 5], [6]], padding=0)
    outputs = torch.tensor([[[0, 0, 0, 0, 0, 0.5, 0.5]] * 3, [[0, 0, 0, 0, 0.5, 0.375, 0.125]] * 3])
    found = scored(outputs.log(), whole)
    for cut in (whole.chunks(2), whole.chunks(1)):
        rows = np.cumsum([0] + [len(part) for part in cut])
        answers = [
            (part, found[a:b, : part.targets.shape[1]])
            for part, (a, b) in zip(cut, pairwise(rows), strict=True)
        ]
        items, loss, right, every = means("x", answers)
        assert (items, right, every) == (2, 0.75, 0.5)
        assert loss == pytest.approx(1.5 * math.log(2), rel=1e-6)


def test_what_a_model_writes_on_its_own_has_no_likelihood():
    batch = pad_tokens([[1]], [[5]], padding=0)
    with pytest.raises(RelengthError, match=r"babi_80 asks how likely.*epochs_by_length"):
        Babi80().score([(batch, torch.tensor([[5]]))])


# --- the protocol ---------------------------------------------------------------------------------


def order(seed: int, lengths: list[int], interval: int = 0, size: int = 4) -> list[np.ndarray]:
    sources = [[5] * n for n in lengths]
    batch = pad_tokens(sources, [[5]] * len(lengths), padding=0)
    protocol = EpochsByLength(epochs=3, batch_size=size)
    spec = make_spec(task="copy", model="TRM", training={"name": "epochs_by_length"},
                     scale="smoke", seed=seed)  # fmt: skip
    return list(protocol.order(spec, batch, interval))


def test_a_pass_has_every_sample_once_in_batches_of_neighbours_in_length():
    lengths = np.random.default_rng(0).integers(1, 9, 30)
    for interval in (0, 1):
        steps = order(0, lengths.tolist(), interval)
        assert sorted(np.concatenate(steps)) == list(range(30))
        spans = sorted((lengths[s].min(), lengths[s].max()) for s in steps)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert [s.tolist() for s in order(0, lengths.tolist(), 0)] != [s.tolist() for s in steps]


def test_seeds_share_the_sizes_of_batches_and_nothing_else():
    one, other = order(0, [3] * 30), order(1, [3] * 30)
    assert [len(s) for s in one] == [len(s) for s in other]
    assert np.concatenate(one).tolist() != np.concatenate(other).tolist()


def test_the_last_or_the_lowest_is_tested_and_pages_say_so():
    assert EpochsByLength().selection.words == "the longest training"
    assert EpochsByLength().selection.first == 99
    assert "lowest loss" in EpochsByLength(tested="lowest").selection.words


@needs_data
@pytest.mark.parametrize(
    ("tested", "epoch"), [("last", 3), pytest.param("lowest", None, marks=pytest.mark.weekly)]
)
def test_the_curve_has_losses_and_the_tested_weights_have_theirs(tested, epoch):
    """Perplexity of the test is that of the curve's point, as the two have the same samples."""
    run = train(spec(tested=tested, epochs=4, learning_rate=0.01, halve_below=100.0))
    losses = [point["dev_loss"] for point in run.curve]
    selected = run.checkpoints["selected"]
    assert selected["epoch"] == (int(np.argmin(losses)) if epoch is None else epoch)
    test = selected["tests"]["length"]
    assert math.log(test["perplexity"]) == pytest.approx(losses[selected["epoch"]], rel=1e-5)
    assert test["exact_match"] == run.curve[selected["epoch"]]["dev_accuracy"]
    assert [point["learning_rate"] for point in run.curve] == [0.01, 0.005, 0.005, 0.005]


def spec(model: str = "TRM", seed: int = 0, **training):
    return make_spec(
        task={"name": "babi_80", **FEW},
        model={"name": model, "width": 8, "heads": 2, "inner_size": 8},
        training={"name": "epochs_by_length", "epochs": 2, "batch_size": 32} | training,
        scale="smoke",
        seed=seed,
    )


# --- the data -------------------------------------------------------------------------------------


@needs_data
def test_the_vocabulary_has_every_symbol_of_bAbI_and_no_other():
    task = Babi80()
    assert len(task.vocabulary) == task.shape[0]
    batch = Babi80(**FEW).dataset("length", 0)
    assert int(batch.inputs.max()) < task.shape[0] and (batch.targets >= 4).all()


@needs_data
def test_a_question_is_as_long_as_the_task_says():
    task = Babi80()
    read = {n: max(len(pair.source) for pair, _ in task.kept(n)) for n in task.numbers}
    assert {n: size for n, size in read.items() if size > LONGEST_OTHER} == LONGEST
    assert task.text_sizes() == ((max(read.values()), 1),)
    assert max(size for n, size in read.items() if n not in LONGEST) == LONGEST_OTHER
    assert Babi80(without=(2, 3, 5)).text_sizes() == ((LONGEST_OTHER, 1),)


@needs_data
@pytest.mark.parametrize("name", ["babi_80", "babi_50"])
def test_each_task_is_cut_between_two_lengths(name):
    """No longer story is shorter than a shorter one of its own task; parts have their shares."""
    task = TASKS[name](per_task=200, validation_size=100)
    parts = {split: task.samples(split) for split in ("train", "validation", "length")}
    shorter = parts["train"] + parts["validation"]
    assert Counter(k for k, _ in shorter) == dict.fromkeys(range(1, 21), 2 * task.shorter)
    for number in range(1, 21):
        below = [story(pair) for k, pair in shorter if k == number]
        above = [story(pair) for k, pair in parts["length"] if k == number]
        assert max(below) <= min(above)
        if number in CONSTANT:
            assert set(below + above) == {CONSTANT[number]}
    assert task.samples("iid") == parts["validation"] and task.samples("dev") == parts["length"]


@needs_data
def test_sorted_together_the_longest_fifth_has_no_task_of_short_stories():
    task = Babi80(per_task=200, sorted_within="all")
    below = [story(pair) for _, pair in task.samples("train")]
    above = [story(pair) for _, pair in task.samples("length")]
    assert max(below) <= min(above)
    assert not {4, 15, 16, 17, 19} & {k for k, _ in task.samples("length")}


@needs_data
@pytest.mark.parametrize("shorter", [80, 50])
def test_both_readings_have_the_same_questions_and_names_of_their_own(shorter):
    few = {"per_task": 50, "validation_size": 20}
    each, joined = (TASKS[f"babi_{name}{shorter}"](**few) for name in ("", "joined_"))
    assert each.splits() == joined.splits()
    parts = ("train", "validation", "length")
    found = [Counter(pair for s in parts for pair in task.samples(s)) for task in (each, joined)]
    assert found[0] == found[1]
    below = [story(pair) for s in parts[:2] for _, pair in joined.samples(s)]
    assert max(below) <= min(story(pair) for _, pair in joined.samples("length"))
    assert Counter(k for k, _ in each.samples("length")) != Counter(
        k for k, _ in joined.samples("length")
    )


def test_the_second_reading_is_an_experiment_that_no_claim_is_judged_on():
    found = experiment("panm_babi_joined")
    specs = found.specs("reduced", [0])
    assert [(s.row, s.task.name) for s in specs] == [
        (row, f"babi_joined_{part}") for part in (80, 50) for row in ("TRM", "PANM on TRM")
    ]
    assert not found.artifacts and not found.borrows
    assert {s.training for s in specs} == {
        s.training for s in experiment("panm_babi").specs("reduced", [0])
    }


@needs_data
def test_what_the_deviations_say_of_questions_that_are_in_both_parts():
    """Counted in the files themselves, where a question has its lines, itself and its answer."""
    asked = {k: _stories(k) for k in range(1, 21)}
    length = {k: [sum(len(words(line)) for line in lines) for lines, *_ in found]
              for k, found in asked.items()}  # fmt: skip
    for percent, known in ((80, (1_601, 42_200)), (50, (3_063, 105_500))):
        twice, longer = Counter(), 0
        for k, found in asked.items():
            order = np.argsort(length[k], kind="stable")
            cut = len(found) * percent // 100
            below = {found[i] for i in order[:cut]}
            twice[k] = sum(found[i] in below for i in order[cut:])
            longer += len(found) - cut
        assert (twice.total(), longer) == known
        assert twice[4] > 0.98 * twice.total()
    every = [(n, k, found[2]) for k in asked for n, found in zip(length[k], asked[k], strict=True)]
    order = sorted(every, key=lambda sample: sample[0])
    cut = len(order) * 80 // 100
    assert set(asked) - {k for _, k, _ in order[cut:]} == {4, 15, 16, 17, 19}
    half = len(order) // 2
    answers = {answer for *_, answer in order[:half]}
    assert sum(answer not in answers for *_, answer in order[half:]) == 11_000


@needs_data
def test_seeds_share_all_samples_and_left_out_tasks_are_left_out():
    task = Babi80(**FEW)
    assert {k for k, _ in task.samples("train")} == set(range(1, 21)) - set(LONG_STORIES)
    one, other = task.dataset("train", 0), task.dataset("train", 1)
    assert torch.equal(one.inputs, other.inputs) and len(one) == task.splits()["train"].size


# --- the experiment -------------------------------------------------------------------------------


def test_the_grid_has_every_printed_cell_and_panm_beside_its_backbone_first():
    cells = {
        (s.row, s.task.name) for s in EXPERIMENTS[0].grid("reduced", 0) if s.model.arm != "repaired"
    }
    printed = published.table("panm-table-5")
    assert set(zip(printed["model"], printed["task"], strict=True)) == cells and len(cells) == 6
    value = printed.set_index(["model", "task"])["value"]
    assert (value["PANM on TRM", "babi_80"], value["TRM", "babi_50"]) == (85, 76)
    first = EXPERIMENTS[0].grid("reduced", 0)[:2]
    assert [(s.row, s.task.name) for s in first] == [("TRM", "babi_80"), ("PANM on TRM", "babi_80")]
    layers = {s.row: s.model.decoder_layers for s in EXPERIMENTS[0].grid("paper", 0)}
    assert layers == {"TRM": 3, "PANM on TRM": 2, "U. TRM+RPE": 3}
    # The other tables' Transformer is another network.
    assert "Transformer" in set(published.table("panm-table-13")["model"])


def test_the_figure_tells_where_each_curve_ends(tmp_path):
    store = Store(tmp_path)
    for own in EXPERIMENTS[0].specs("reduced", [0, 1]):
        if own.model.arm != "repaired" and own.task.name == "babi_80":
            record = handmade.record(own, lambda s, test: 0.5, experiment=EXPERIMENTS[0].name)
            low = 1.0 if own.model.name == "TRM" else 0.8
            record["curve"] = [
                {"epoch": e, "step": e, "train_loss": 1 / (e + 1), "dev_accuracy": 0.5,
                 "iid_accuracy": 0.6, "learning_rate": 1.0, "dev_loss": low + 0.25 * e}
                for e in range(3)
            ]  # fmt: skip
            store.append("panm", record)
    runs = Runs.read(EXPERIMENTS[0], "reduced", 2, store)
    made = courses.accuracy_and_loss(runs, 1, "panm-fig-5-right", "longer stories")
    ends = sorted(amounts(end)[:3] for end in re.split(r"TRM:", made.text)[1:])
    assert ends == [[50, 1.3, 0.8], [50, 1.5, 1]]  # accuracy; loss at the end and at the lowest
    assert set(made.data["model"]) == {"TRM", "PANM on TRM"} and len(made.data) == 2 * 2 * 3
    assert "exact match" in tables.side_by_side(runs, "panm-table-5").html.lower()


@pytest.mark.parametrize(
    ("claim_id", "transformer", "panm", "outcome"),
    [
        ("panm-059", {80: 79, 50: 76}, {80: 85, 50: 81}, "reproduced"),  # as printed
        ("panm-059", {80: 79, 50: 76}, {80: 79, 50: 70}, "contradicted"),
        ("panm-060", {80: 3.0, 50: 3.0}, {80: 2.0, 50: 2.0}, "reproduced"),
        ("panm-060", {80: 2.0, 50: 3.0}, {80: 3.0, 50: 2.0}, "contradicted"),  # in one split
    ],
)
def test_claims_on_babi_hold_and_fail_as_they_say(claim_id, transformer, panm, outcome):
    (claim,) = [c for c in claims.load("panm") if c.id == claim_id]

    def value(model: str, task: str, test: str) -> float:
        assert test == "length"
        return (panm if model == "PANM on TRM" else transformer)[int(task.removeprefix("babi_"))]

    seeds = 5 if outcome == "reproduced" else 10
    assert claims.judge(claim, cells_of(claim, value, spread=0.05, seeds=seeds)).outcome == outcome


def test_printed_cells_of_table_5_are_claims():
    made = {c.id for c in claims.load("panm") if c.id.startswith("panm-table-5/")}
    assert len(made) == 6 and "panm-table-5/Transformer/babi_80/length" in made
