"""Metrics of decoded tokens, worked out by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from relength.papers.mla.experiments import TASKS as MLA_TASKS
from relength.tasks import TASKS
from relength.tasks.base import EOS, PAD, SOS
from relength.tasks.batch import pad_tokens
from relength.tasks.metrics import token_metrics, tokens_right
from relength.training.evaluate import BATCH_SIZE, by_length, free_running, validate

A, B, C = 4, 5, 6


def scored(prediction: list[int], target: list[int]):
    batch = pad_tokens([[A]], [[*target, EOS]], PAD)
    return numbers(token_metrics([(batch, torch.tensor([prediction]))], EOS))


def numbers(metrics) -> tuple:
    return tuple(metrics.model_dump().values())


def first_error(*tenths: int) -> list[int]:
    """As many outputs as there are numbers, each with its first error in that tenth."""
    return [tenths.count(part) for part in range(10)]


@pytest.mark.parametrize(
    ("prediction", "target", "exact", "true_length", "tokens", "prefix", "edits"),
    [
        ([A, B, EOS, C, C], [A, B], 1, 1, 3 / 3, 3 / 3, 0),  # what follows the end does not count
        ([A, B, C, EOS, C], [A, B], 0, 1, 2 / 3, 2 / 3, 1),  # right, but it does not stop
        ([A, B, C, C, C], [A, B], 0, 1, 2 / 3, 2 / 3, 3),  # it never stops
        ([A, EOS, C, C, C], [A, B], 0, 0, 1 / 3, 1 / 3, 1),  # stops too early
        ([EOS, B, EOS, C, C], [A, B], 0, 0, 2 / 3, 0, 2),  # right afterwards is no prefix
        ([B, A, EOS, C, C], [A, B], 0, 0, 1 / 3, 0, 2),
        ([C, A, B, EOS, C], [A, B], 0, 0, 0 / 3, 0, 1),  # one insertion shifts everything
        ([A, PAD, EOS, C, C], [A, B], 0, 0, 2 / 3, 1 / 3, 1),  # special tokens are wrong tokens
    ],
)
def test_one_output(prediction, target, exact, true_length, tokens, prefix, edits):
    *means, errors = scored(prediction, target)
    assert means == pytest.approx([1, exact, true_length, tokens, prefix, edits])
    # Of three symbols the first error is at the beginning, one third in, or two thirds in.
    assert errors == (first_error() if exact else first_error((0, 3, 6)[round(3 * prefix)]))


@pytest.mark.parametrize(
    ("prediction", "target", "exact", "tokens", "prefix", "edits"),
    [
        ([1, 2, 3], [1, 2, 3], 1, 3 / 3, 3 / 3, 0),
        ([1, 2, 2], [1, 2, 3], 0, 2 / 3, 2 / 3, 1),  # digit 2 is no end token here
        ([0, 2, 3], [2, 2, 3], 0, 2 / 3, 0 / 3, 1),
        ([2, 3, 1], [1, 2, 3], 0, 0 / 3, 0 / 3, 2),
    ],
)
def test_without_an_end_token_every_token_counts_and_nothing_ends(
    prediction, target, exact, tokens, prefix, edits
):
    batch = pad_tokens([[A]], [target], PAD)
    *means, errors = numbers(token_metrics([(batch, torch.tensor([prediction]))], end=None))
    assert means == pytest.approx([1, exact, exact, tokens, prefix, edits])
    assert errors == (first_error() if exact else first_error((0, 3, 6)[round(3 * prefix)]))


def test_samples_of_unequal_length_in_several_batches():
    first = pad_tokens([[A], [A, B]], [[A, EOS], [A, B, C, EOS]], PAD)
    second = pad_tokens([[B]], [[EOS]], PAD)
    steps = [[A, EOS, B, B], [A, B, B, EOS]], [[EOS, A, A, A]]
    answers = [(b, torch.tensor(p)) for b, p in zip((first, second), steps, strict=True)]
    metrics = token_metrics(answers, EOS)
    assert metrics.items == 3
    assert metrics.exact_match == pytest.approx(2 / 3)
    assert metrics.exact_match_true_length == pytest.approx(2 / 3)
    assert metrics.token_accuracy == pytest.approx((2 + 3 + 1) / (2 + 4 + 1))  # a share of tokens
    assert metrics.correct_prefix == pytest.approx((1 + 2 / 4 + 1) / 3)  # a mean over samples
    assert metrics.edit_distance == pytest.approx(1 / 3)
    assert metrics.first_errors == first_error(5)  # two symbols of four are right


tokens = st.lists(st.sampled_from([PAD, SOS, EOS, A, B]), min_size=6, max_size=6)


@given(prediction=tokens, target=st.lists(st.sampled_from([A, B]), max_size=5))
def test_metrics_agree_with_each_other(prediction, target):
    items, exact, true_length, share, prefix, edits, errors = scored(prediction, target)
    output = prediction[: prediction.index(EOS)] if EOS in prediction else prediction
    assert exact == (output == target and EOS in prediction)
    assert true_length == (prediction[: len(target)] == target)
    assert exact <= true_length and prefix <= share + 1e-6 and items == 1
    assert (exact == 1) == (share == 1) == (prefix == 1)
    assert abs(len(output) - len(target)) <= edits <= max(len(output), len(target))
    assert exact == 0 or edits == 0
    assert sum(errors) == items - exact
    assert errors == first_error() or errors.index(1) <= 10 * prefix < errors.index(1) + 1


class Echo(torch.nn.Module):
    """Answers with scores that depend on the previous target token, or generates the source."""

    def forward(self, batch):
        right = torch.nn.functional.one_hot(batch.targets, 14).double()
        wrong = batch.inputs[:, :1] == A  # samples that begin with A get their last token wrong
        last = batch.target_lengths - 1
        right[torch.arange(len(batch)), last] = torch.where(
            wrong,
            right[torch.arange(len(batch)), last].roll(1, 1),
            right[torch.arange(len(batch)), last],
        )
        return right * math.log(27)  # p = 27/40 for the favourite of 14

    def generate(self, batch, steps):
        padded = torch.nn.functional.pad(batch.inputs, (0, steps), value=B)[:, :steps]
        ended = torch.arange(steps) == batch.input_lengths[:, None]
        return padded.masked_fill(ended, EOS), None


def test_accuracy_counts_whole_samples_or_tokens_of_each_and_loss_counts_tokens():
    batch = pad_tokens([[A], [B], [C, C]], [[A, EOS], [B, EOS], [C, C, EOS]], PAD)
    accuracy, loss = validate(Echo(), [batch], TASKS["copy"]())
    assert accuracy == pytest.approx(2 / 3)
    shares = tokens_right(Echo()(batch), batch)
    assert shares.tolist() == pytest.approx([1 / 2, 1, 1])
    surprise = [-math.log(27 / 40 + 1e-9)] * 6 + [-math.log(1 / 40 + 1e-9)]
    assert loss == pytest.approx(sum(surprise) / 7)


@pytest.mark.parametrize("name", MLA_TASKS)
def test_batches_by_length_hold_every_sample_once(name):
    sizes = {"train_size": 300, "test_size": 300, "dev_size": 300}
    data = TASKS[name](**sizes).dataset("train", 0)
    batches = by_length(data)
    assert all(len(batch) <= BATCH_SIZE for batch in batches)
    lengths = torch.cat([batch.input_lengths for batch in batches])
    assert torch.equal(lengths, data.input_lengths.sort().values)
    rows = [
        tuple(r[:n])
        for b in batches
        for r, n in zip(b.inputs.tolist(), b.input_lengths, strict=True)
    ]
    expected = [tuple(r[:n]) for r, n in zip(data.inputs.tolist(), data.input_lengths, strict=True)]
    assert sorted(rows) == sorted(expected)


def test_free_running_scores_what_is_generated():
    # An echo solves Copy and nothing else; it is decoded up to the longest target of the whole set.
    copy = TASKS["copy"](test_size=300)
    metrics = free_running(Echo(), by_length(copy.dataset("iid", 0)), copy)
    assert numbers(metrics) == (300, 1.0, 1.0, 1.0, 1.0, 0.0, first_error())
    reverse = TASKS["reverse_copy"](test_size=300)
    assert free_running(Echo(), by_length(reverse.dataset("iid", 0)), reverse).exact_match < 0.05
