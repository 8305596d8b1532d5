"""SQuAD by length: official scores, places of answers, and BERT with PANM's controller on it."""

import gzip
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
    right = task.score([(batch, batch.targets)])
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
    first, last = written.unbind(1)
    assert (batch.begins <= first).all() and (first <= last).all()
    assert (last < batch.input_lengths - 1).all() and (last - first < 30).all()
    for i in (0, 5):
        alone = batch.select(slice(i, i + 1))
        size = alone.inputs.shape[1]
        torch.testing.assert_close(model(alone)[0], together[i, :, :size])
        assert model.generate(alone, 2)[0][0].equal(written[i])


@at_hand
@every_model
def test_what_is_written_is_the_best_of_all_spans_by_a_loop(name):
    model, batch = built(name), TASKS["squad_80"](**SIZES).dataset("validation", 0)
    scores, (written, _) = model(batch).detach(), model.generate(batch, 2)
    for i in range(len(batch)):
        places = range(int(batch.begins[i]), int(batch.input_lengths[i]) - 1)
        spans = [(a, b) for a in places for b in places if a <= b < a + 30]
        best = max(spans, key=lambda s: float(scores[i, 0, s[0]] + scores[i, 1, s[1]]))
        assert best == tuple(written[i].tolist())


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
        assert first.task.lacks().startswith("weights: google-bert/bert-base-uncased")


@at_hand
def test_three_passes_are_as_many_steps_as_the_grid_says():
    for run in squad("paper", 0):
        passes = PASSES[run.task.name] * 16 / len(run.task._places("train"))
        assert passes == pytest.approx(3, abs=0.05)
