"""SQuAD by length: official scores, places of answers, and BERT with PANM's controller on it."""

import gzip
import hashlib
import json

import pytest
import torch

from relength.errors import RelengthError
from relength.kernels.hashing import step_key
from relength.models import MODELS
from relength.papers.panm.squad_experiments import PASSES, squad
from relength.streams import dropout_key, stream
from relength.tasks import TASKS
from relength.tasks import squad as data
from relength.tasks.span_batch import Spans, spans

QUESTIONS = 98_169  # of both files of SQuAD
SIZES = {"train_size": 60, "test_size": 12, "validation_size": 8, "words": 300, "positions": 120}
at_hand = pytest.mark.skipif(bool(data.lacks()), reason="RELENGTH_DATA has no SQuAD")


# --- the official rules


@pytest.mark.parametrize(
    ("given", "answers", "f1", "exact"),
    [
        ("Denver Broncos", ("Denver Broncos",), 1, 1),
        ("the Denver Broncos!", ("Denver Broncos",), 1, 1),
        ("DENVER  broncos", ("Carolina Panthers", "a Denver Broncos"), 1, 1),
        ("Broncos", ("Denver Broncos",), 2 / 3, 0),  # 1 of 1, and 1 of 2
        ("in Santa Clara, California", ("Santa Clara",), 2 / 3, 0),  # 2 of 4, and 2 of 2
        ("Levi's Stadium", ("Levis Stadium",), 1, 1),  # an apostrophe is punctuation
        ("theatre", ("theatre",), 1, 1),  # begins like an article
        ("1 1 1", ("1",), 1 / 2, 0),  # a word counts as often as both have it
        ("Panthers", ("Denver Broncos", "Carolina Panthers"), 2 / 3, 0),
        ("Panthers", ("Broncos",), 0, 0),
        ("", ("Broncos",), 0, 0),
        ("the", ("a",), 0, 1),  # nothing is left of either: equal, and without a common word
    ],
)
def test_worked_examples_of_f1_and_exact_match(given, answers, f1, exact):
    assert data.f1(given, answers) == pytest.approx(f1)
    assert data.exact(given, answers) == exact


# --- the questions


@at_hand
def test_longer_paragraphs_are_tested_and_shorter_ones_trained_on():
    for name, share in (("squad_80", 0.8), ("squad_50", 0.5)):
        task = TASKS[name]()
        lengths = {
            s: [len(data.questions()[i].context) for i in task._places(s)] for s in task.splits()
        }
        assert max(lengths["train"]) <= min(lengths["length"])
        known = len(lengths["train"]) + len(lengths["validation"])
        assert known == int(10_570 * share) and known + len(lengths["length"]) == 10_570
        assert not {*task._places("train")} & {*task._places("validation")}


@at_hand
def test_the_target_of_a_question_is_its_answer_in_the_text():
    task = TASKS["squad_80"](**SIZES)
    batch = task.dataset("train", 0)
    assert batch.mask.all()
    right = task.score([(batch, Spans(batch.targets, torch.zeros(len(batch))))])
    assert right.f1 > 0.98 and right.items == len(batch)
    for number, begin, (first, last) in zip(
        batch.numbers.tolist(), batch.begins.tolist(), batch.targets.tolist(), strict=True
    ):
        question = data.questions()[number]
        assert question.answers[0] in task.answer(number, first, last, begin)


@at_hand
def test_an_answer_that_is_cut_off_is_not_trained_on_and_is_wrong_in_a_test():
    task = TASKS["squad_80"](**(SIZES | {"positions": 40}))
    trained, tested = task.dataset("train", 0), task.dataset("length", 0)
    assert len(trained) < 60 and trained.mask.all()
    assert len(tested) == 12 and not tested.mask.all()
    assert trained.inputs.shape[1] <= 40 and tested.inputs.shape[1] <= 40
    lost = ~tested.mask[:, 0]
    outputs = torch.zeros(12, 2, tested.inputs.shape[1])
    outputs[:, :, 0] = 9  # where the targets of what is lost are
    assert not task.right(outputs, tested)[lost].any()


@at_hand
def test_a_seed_has_its_own_order_and_tests_belong_to_the_task():
    task = TASKS["squad_50"](**SIZES)
    numbers = [task.dataset("train", seed).numbers.tolist() for seed in (0, 1)]
    assert sorted(numbers[0]) == sorted(numbers[1]) and numbers[0] != numbers[1]
    assert task.dataset("length", 0).inputs.equal(task.dataset("length", 1).inputs)


def test_a_file_that_is_missing_or_another_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path))
    assert "which has no squad/" in TASKS["squad_80"]().lacks()
    with pytest.raises(RelengthError, match=r"SQuAD has no data: RELENGTH_DATA names .*no squad/"):
        data.questions()
    path = tmp_path / data.FILE
    path.parent.mkdir()
    path.write_bytes(gzip.compress(json.dumps({"data": []}).encode()))
    with pytest.raises(RelengthError, match="damaged or another version"):
        data.questions()
    # Whoever lists or plans runs of other tasks is not stopped by it.
    assert {split.size for split in TASKS["squad_80"]().splits().values()} == {1}
    monkeypatch.delenv("RELENGTH_DATA")
    assert TASKS["squad_80"]().lacks().startswith("RELENGTH_DATA is not set")


# --- the models


def built(name: str, **fields):
    pytest.importorskip("transformers", reason="the extra `language` is not installed")
    more = {"pointer_size": 5, "mlp_size": 6} if "PANM" in name else {}
    sizes = {"width": 16, "heads": 2, "inner_size": 12, "layers": 1}
    config = MODELS[name].config(**(sizes | more | fields))
    model = MODELS[name].module(config, *TASKS["squad_80"](**SIZES).shape).initialise(1)
    for i, weight in enumerate(model.parameters()):
        weight.data += 0.2 * torch.from_numpy(stream(i, "data").normal(size=weight.shape)).float()
    return model.double()


every_model = pytest.mark.parametrize("name", ["BERT", "PANM on BERT"])


@at_hand
@every_model
def test_a_span_lies_in_its_paragraph_and_a_question_does_not_feel_the_others(name):
    model, batch = built(name), TASKS["squad_80"](**SIZES).dataset("validation", 0)
    together, (written, _) = model(batch), model.generate(batch, 2)
    first, last = written.tokens.unbind(1)
    assert (batch.begins <= first).all() and (first <= last).all()
    assert (last < batch.input_lengths - 1).all() and (last - first < 30).all()
    for i in (0, 5):
        alone = batch.select(slice(i, i + 1))
        size = alone.inputs.shape[1]
        torch.testing.assert_close(model(alone)[0], together[i, :, :size])
        assert model.generate(alone, 2)[0].tokens[0].equal(written.tokens[i])


@at_hand
@every_model
def test_what_is_written_is_the_best_of_all_spans_by_a_loop(name):
    model, batch = built(name), TASKS["squad_80"](**SIZES).dataset("validation", 0)
    scores, (written, _) = model(batch).detach(), model.generate(batch, 2)
    for i in range(len(batch)):
        places = range(int(batch.begins[i]), int(batch.input_lengths[i]) - 1)
        spans = [(a, b) for a in places for b in places if a <= b < a + 30]
        best = max(spans, key=lambda s: float(scores[i, 0, s[0]] + scores[i, 1, s[1]]))
        assert best == tuple(written.tokens[i].tolist())
        assert float(written.scores[i]) == float(scores[i, 0, best[0]] + scores[i, 1, best[1]])


@at_hand
def test_a_controller_has_base_addresses_of_its_own_in_training():
    model, batch = built("PANM on BERT"), TASKS["squad_80"](**SIZES).dataset("validation", 0)
    key = step_key(dropout_key(0, "encodings"), 0)
    inside = torch.isfinite(model(batch))
    assert not torch.allclose(model(batch, key)[inside], model(batch)[inside])


@at_hand
def test_a_text_beyond_the_table_of_positions_is_one_sentence():
    batch = TASKS["squad_80"](**SIZES).dataset("validation", 0)
    with pytest.raises(RelengthError, match=r"does not fit into 16 positions: lower the task's"):
        built("BERT", positions=16)(batch)


def test_weights_that_are_not_here_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    (first, *_) = squad("paper", 0)
    with pytest.raises(RelengthError, match="bert-base-uncased is not on this machine: fetch it"):
        built("BERT", weights=first.model.weights)
    if not data.lacks():
        assert first.task.lacks().startswith("missing file: ")
        alone = first.task.model_copy(update={"part": "development"})
        assert alone.lacks().startswith("weights: google-bert/bert-base-uncased")


def test_three_passes_are_as_many_steps_as_the_grid_says():
    for run in squad("paper", 0):
        trained = QUESTIONS * run.task.percent // 100 - run.task.validation_size
        assert PASSES[run.task.name] * 16 / trained == pytest.approx(3, abs=0.005)
        assert (run.task.part, run.task.positions, run.task.stride) == ("all", 384, 128)


# --- the training set, and windows

PARAGRAPH = "One two three four five six seven eight nine ten eleven twelve"
ASKED = ("Which?", ("nine ten",))


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Both files as published, with two questions in each; the training set tells places."""

    def file(name: str, starts: bool, *asked) -> str:
        rows = [
            {"question": question, "answers": [{"text": a} for a in answers]}
            for question, answers in asked
        ]
        for row in rows if starts else ():
            row["answers"][0]["answer_start"] = PARAGRAPH.rindex(row["answers"][0]["text"])
        text = json.dumps({"data": [{"paragraphs": [{"context": PARAGRAPH, "qas": rows}]}]})
        content = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
        return hashlib.sha256(content).hexdigest()

    sums = {
        data.TRAINING: file(data.TRAINING, True, ASKED, ("Who?", ("e",))),
        data.FILE: file(data.FILE, False, ("What?", ("One two",)), ("When?", ("e",))),
    }
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path))
    monkeypatch.setitem(data.FILES, "all", sums)
    data._read.cache_clear()
    data._vocabulary.cache_clear()
    yield tmp_path
    data._read.cache_clear()
    data._vocabulary.cache_clear()


def test_both_published_sets_are_sorted_as_one_and_places_are_those_of_the_file(published):
    found = {q.question: q for q in data.questions("all")}
    assert [*found] == sorted(["Which?", "Who?", "What?", "When?"])
    assert found["Who?"].start == PARAGRAPH.rindex("e") and found["When?"].start == -1
    task = TASKS["squad_50"](part="all", validation_size=1)
    (row,), (other,) = (task.windows(found[name], 0) for name in ("Who?", "When?"))
    words = PARAGRAPH.split()
    assert row.span == (row.begin + words.index("twelve"),) * 2
    assert other.span == (other.begin + words.index("One"),) * 2  # where it is first


def test_a_training_set_that_is_missing_is_one_sentence_with_the_way_out(published):
    task = TASKS["squad_80"](part="all", validation_size=1)
    assert task.lacks() == "" and {*task.provenance()["sha256"]} == {data.TRAINING, data.FILE}
    (published / data.TRAINING).unlink()
    assert task.lacks().startswith("missing file: ") and data.TRAINING_URL in task.lacks()
    assert task.splits()["train"].size == 1  # nobody can count
    with pytest.raises(RelengthError, match="train-v1") as caught:
        task.dataset("train", 0)
    assert ". " not in str(caught.value)


def test_windows_of_a_long_paragraph_are_a_worked_example(published):
    (question,) = (q for q in data.questions("all") if q.question == "Which?")
    # Three tokens of the head (mark, "which", "?"), one mark after it, one at the end: 6 of 11.
    task = TASKS["squad_50"](part="all", positions=11, stride=3, validation_size=1)
    rows = task.windows(question, 7)
    assert [row.skipped for row in rows] == [0, 3, 6]
    assert {row.begin for row in rows} == {4} and {row.number for row in rows} == {7}
    whole = TASKS["squad_50"](part="all", validation_size=1).windows(question, 7)[0].tokens
    for row in rows:
        assert row.tokens == [*whole[:4], *whole[4 + row.skipped :][:6], whole[-1]]
    # "nine ten" are words 8 and 9, counted from 0: outside, cut in two, inside.
    assert [row.span for row in rows] == [(0, 0), (0, 0), (4 + 2, 4 + 3)]
    cut_off = task.model_copy(update={"stride": 0}).windows(question, 7)
    assert [row.span for row in cut_off] == [None]
    assert len(cut_off[0].tokens) == 11


def test_of_all_windows_of_a_question_the_best_span_answers_it(published):
    task = TASKS["squad_50"](part="all", positions=11, stride=3, validation_size=1)
    numbers = [i for i, q in enumerate(data.questions("all")) if q.question == "Which?"]
    rows = task.windows(data.questions("all")[numbers[0]], numbers[0])
    batch = spans(rows, 0)
    found = torch.tensor([[4, 5], [4, 4], [6, 7]])
    right = task.score([(batch, Spans(found, torch.tensor([1.0, 2.0, 3.0])))])
    assert (right.items, right.exact_match) == (1, 1)
    wrong = task.score([(batch, Spans(found, torch.tensor([3.0, 2.0, 1.0])))])
    assert wrong.exact_match == 0
    halves = [(batch.select(slice(a, b)), Spans(found[a:b], torch.arange(3.0)[a:b]))
              for a, b in ((0, 2), (2, 3))]  # fmt: skip
    assert task.score(halves) == right
    assert task.answer(numbers[0], 6, 7, batch.begins[2] - batch.skipped[2]) == "nine ten"


def test_every_window_of_a_test_is_asked_and_questions_are_counted_once(published):
    task = TASKS["squad_50"](part="all", positions=11, stride=3, validation_size=1)
    asked = task.dataset("length", 0)
    assert len(set(asked.numbers.tolist())) == 2 and len(asked) == 6
    outputs = torch.zeros(6, 2, 11).scatter_(2, asked.targets[:, :, None], 9.0)
    assert task.right(outputs, asked).all() and asked.mask.all()
