"""The six algorithmic tasks of the PANM paper do what their rules and examples say."""

import re
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from relength.errors import RelengthError
from relength.specs import published
from relength.specs.spec import make_spec
from relength.streams import stream
from relength.tasks import TASKS
from relength.tasks.algorithmic import (
    AlgorithmicTask,
    Copy,
    Drawn,
    DynamicRecall,
    IDSort,
    Mix,
    PrioritySort,
    Reverse,
)

NAMES = [name for name, task in TASKS.items() if issubclass(task, AlgorithmicTask)]
every_task = pytest.mark.parametrize("name", NAMES)
LENGTHS = st.integers(1, 40)
SEEDS = st.integers(0, 2**32)
# The paper's tables: task, and how its columns begin.
TABLES = {
    "panm_copy": ("panm-table-13", "copy"),
    "panm_reverse": ("panm-table-14", "reverse"),
    "panm_mix": ("panm-table-15", "mix"),
    "panm_dynamic_recall": ("panm-table-16", "drecall"),
    "panm_priority_sort": ("panm-table-17", "psort"),
    "panm_id_sort": ("panm-table-18", "idsort"),
}


def drawn(task: AlgorithmicTask, seed: int, length: int, size: int = 4) -> Drawn:
    return task.draw(stream(seed, "data"), size, length)


def written(sample: Drawn) -> np.ndarray:
    return np.take_along_axis(sample.tokens, sample.places, 1)


# --- every task ---------------------------------------------------------------------------------


def test_the_six_tasks_of_the_paper_are_there():
    assert set(NAMES) == set(TABLES)


@every_task
def test_tests_have_the_lengths_that_the_tables_print(name):
    artifact, short = TABLES[name]
    columns = dict.fromkeys(published.table(artifact)["column"])
    assert [f"{short}/{test}" for test in TASKS[name]().tests] == list(columns)


@every_task
def test_training_ends_at_the_first_test_and_selects_the_checkpoint_at_the_second(name):
    task = TASKS[name]()
    longest, unseen = map(int, task.tests[:2])
    splits = task.splits()
    assert task.train_lengths == (1, longest) and unseen == longest + 1
    assert splits["dev"][:2] == (unseen, unseen) and splits["validation"][:2] == (longest, longest)
    assert "train" not in splits and {split.size for split in splits.values()} == {1280}


@every_task
@pytest.mark.parametrize("flags", [False, True])
@settings(max_examples=15)
@given(seed=SEEDS, length=LENGTHS)
def test_an_encoded_batch_holds_what_was_drawn_and_nothing_else(name, flags, seed, length):
    task = TASKS[name](flags=flags)
    sample = drawn(task, seed, length)
    batch = task.encode(sample)
    inputs = batch.inputs.numpy()
    channels, classes = task.shape
    assert inputs.shape[2] == channels == 10 + task.feature_size + 2 * flags and classes == 10
    if flags:
        start, end = np.eye(channels)[[-2, -1]]
        assert (inputs[:, 0] == start).all() and (inputs[:, -1] == end).all()
        assert (inputs[:, 1:-1, -2:] == 0).all()
        inputs = inputs[:, 1:-1, :-2]
    assert (inputs[:, :, :10] == np.eye(10)[sample.tokens]).all()
    assert (inputs[:, :, 10:] == sample.features.astype(np.float32)).all()
    assert (batch.targets.numpy() == written(sample)).all()
    assert batch.mask.all() and (batch.target_lengths == sample.places.shape[1]).all()
    assert (batch.input_lengths == batch.inputs.shape[1]).all()


@every_task
@settings(max_examples=10)
@given(seeds=st.lists(SEEDS, min_size=1, max_size=3), length=LENGTHS)
def test_samples_of_several_runs_are_encoded_together_as_they_are_alone(name, seeds, length):
    task = TASKS[name](flags=True)
    samples = [drawn(task, seed, length) for seed in seeds]
    together = task.encode(Drawn(*(np.stack(part) for part in zip(*samples, strict=True))))
    for r, sample in enumerate(samples):
        alone = task.encode(sample)
        for field in (part.name for part in fields(alone)):
            assert torch.equal(getattr(together, field)[r], getattr(alone, field))


@every_task
@given(seed=SEEDS, length=LENGTHS)
def test_every_token_that_is_written_was_read(name, seed, length):
    sample = drawn(TASKS[name](), seed, length)
    assert sample.places.min() >= 0 and sample.places.max() < length


@every_task
def test_equal_streams_mean_equal_samples_whatever_marks_stand_around_them(name):
    plain, marked = (drawn(TASKS[name](flags=flags), 3, 7) for flags in (False, True))
    other = drawn(TASKS[name](), 4, 7)
    assert all((a == b).all() for a, b in zip(plain, marked, strict=True))
    assert (plain.tokens != other.tokens).any()


@every_task
def test_evaluation_sets_are_fixed_and_differ_from_each_other(name):
    task = TASKS[name](dev_size=50, test_size=50)
    unseen = task.tests[1]
    assert torch.equal(task.dataset("dev", 0).inputs, task.dataset("dev", 1).inputs)
    assert not torch.equal(task.dataset("dev", 0).inputs, task.dataset(unseen, 0).inputs)


@every_task
@pytest.mark.parametrize("length", [0, -3, "30", 2.5, True, None, (5, 10)], ids=repr)
def test_an_impossible_length_is_refused_by_name(name, length):
    said = re.escape(f"{name} has no samples of length {length!r}: choose lengths from 1")
    with pytest.raises(RelengthError, match=said):
        TASKS[name]().sample(stream(0, "data"), 2, length)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("train_lengths", [5, 2], "shortest"),
        ("train_lengths", [0, 2], "greater than 0"),
        ("lengths", [9], "at least 2"),
        ("flags", "perhaps", "boolean"),
    ],
)
def test_impossible_lengths_of_a_spec_are_refused(field, value, complaint):
    with pytest.raises(RelengthError) as refusal:
        make_spec(
            task={"name": "panm_copy", field: value},
            model="PANM",
            training={"name": "streaming", "steps": 200},
            scale="smoke",
            seed=0,
        )
    assert field in str(refusal.value)
    assert complaint in str(refusal.value)


@every_task
def test_digits_are_uniform(name):
    tokens = drawn(TASKS[name](), 0, 20, size=2000).tokens[:, :20]
    counts = np.bincount(tokens.ravel(), minlength=10)
    assert len(counts) == 10 and (abs(counts - 4000) < 5 * 60).all()  # binomial error: 60


@every_task
def test_a_sample_as_figures_print_it(name):
    task = TASKS[name](flags=True)
    sample = drawn(task, 1, 5)
    shown = task.shown(task.encode(sample), 2)
    assert shown.source == ("START", *map(str, sample.tokens[2]), "END")
    assert shown.target == tuple(map(str, written(sample)[2])) == task.spelled(written(sample)[2])
    bare = TASKS[name]()
    assert bare.shown(bare.encode(sample), 2).source == shown.source[1:-1]


# --- permuting ----------------------------------------------------------------------------------


@given(st.text("0123456789", min_size=1, max_size=30))
def test_copy_and_reverse_undo_themselves(digits):
    assert Copy().answer(digits) == digits
    assert Reverse().answer(digits) == digits[::-1]


@given(st.text("0123456789", min_size=1, max_size=30))
def test_mix_takes_the_middle_and_the_first_or_the_first_and_its_own(digits):
    n = len(digits)
    middle = digits[(n + 1) // 2 - 1]  # the paper counts from one
    text, example = Mix().answer(digits), Mix(rule="example").answer(digits)
    for t in range(1, n + 1):
        assert text[t - 1] == (middle if t % 2 else digits[0])
        assert example[t - 1] == (digits[0] if t % 2 else digits[t - 1])


# --- dynamic recall -----------------------------------------------------------------------------


@given(
    digits=st.text("0123456789", min_size=1, max_size=12),
    at=st.integers(0, 11),
    odd=st.sampled_from(["after", "before"]),
)
def test_recall_is_the_neighbour_of_the_first_such_token_round_a_ring(digits, at, odd):
    n = len(digits)
    query = digits[at % n]
    other = "before" if odd == "after" else "after"
    side = odd if n % 2 else other
    ring = digits[-1] + digits + digits[0]
    place = digits.index(query) + 1  # in the ring
    expected = ring[place + 1] if side == "after" else ring[place - 1]
    assert DynamicRecall(odd=odd).answer(digits + query) == expected
    everything = DynamicRecall(odd=odd, writes="all").answer(digits + query)
    assert everything[0] == expected and sorted(everything) == sorted(digits)
    assert everything in (digits + digits)


@given(seed=SEEDS, length=LENGTHS)
def test_the_query_is_one_of_the_tokens(seed, length):
    tokens = drawn(DynamicRecall(), seed, length, size=20).tokens
    assert tokens.shape == (20, length + 1)
    assert (tokens[:, :-1] == tokens[:, -1:]).any(1).all()


def test_every_place_is_asked_for_equally_often():
    tokens = drawn(DynamicRecall(), 0, 5, size=5000).tokens
    distinct = tokens[[len(set(row[:5])) == 5 for row in tokens.tolist()]]
    counts = np.bincount((distinct[:, :5] == distinct[:, 5:]).argmax(1), minlength=5)
    assert (abs(counts - len(distinct) / 5) < 5 * np.sqrt(len(distinct) * 0.16)).all()


# --- sorting ------------------------------------------------------------------------------------


@given(seed=SEEDS, length=LENGTHS)
def test_priorities_ascend_over_what_is_written(seed, length):
    sample = drawn(PrioritySort(), seed, length)
    scores = np.take_along_axis(sample.features[:, :, 0], sample.places, 1)
    assert (np.diff(scores, axis=1) >= 0).all()
    assert (np.sort(sample.places, axis=1) == np.arange(length)).all()


def test_scores_and_ids_are_standard_normal():
    for task in (PrioritySort(), IDSort()):
        numbers = drawn(task, 0, 2, size=20_000).features
        if isinstance(task, IDSort):
            assert (numbers[:, 0] == numbers[:, 1]).all()  # two tokens share their id
            numbers = numbers[:, 0]
        assert abs(numbers.mean()) < 0.03 and abs(numbers.var() - 1) < 0.06


@given(seed=SEEDS, length=LENGTHS)
def test_partners_share_an_id_and_name_each_other(seed, length):
    sample = drawn(IDSort(), seed, length)
    partners = np.take_along_axis(sample.features, sample.places[:, :, None], 1)
    assert (partners == sample.features).all()
    back = np.take_along_axis(sample.places, sample.places, 1)
    assert (back == np.arange(length)).all()


@given(seed=SEEDS, length=LENGTHS)
def test_one_token_of_an_odd_number_is_left_over_and_answers_itself(seed, length):
    sample = drawn(IDSort(), seed, length)
    own = (sample.places == np.arange(length)).sum(1)
    assert (own == length % 2).all()
    kinds = [len({tuple(v) for v in row}) for row in sample.features]
    assert kinds == [(length + 1) // 2] * 4


def test_every_pairing_occurs():
    places = drawn(IDSort(), 0, 4, size=3000).places
    kinds, counts = np.unique(places, axis=0, return_counts=True)
    assert len(kinds) == 3 and (abs(counts - 1000) < 5 * 26).all()
