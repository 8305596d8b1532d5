"""Facts about every task, and about the six that copy digits."""

import doctest
import inspect
import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relength.errors import RelengthError
from relength.streams import stream
from relength.tasks import TASKS
from relength.tasks.base import EOS, PAD, SPECIALS, Pair, TextTask
from relength.tasks.copying import (
    Copy,
    DigitTask,
    InvReCopy,
    InvReverseReCopy,
    ReCopy,
    ReverseCopy,
    ReverseReCopy,
    repeated,
)

SMALL = {"train_size": 40, "dev_size": 20, "test_size": 12, "validation_size": 10}
DIGITS = st.lists(st.sampled_from("0123456789"), min_size=1, max_size=40).map(tuple)
SEEDS = st.integers(0, 2**32)
# CFQ has no samples where its archive is not; tests/test_cfq.py makes a small one.
AT_HAND = {name: task for name, task in TASKS.items() if not task().lacks()}
every_task = pytest.mark.parametrize("name", AT_HAND)
every_text_task = pytest.mark.parametrize(
    "name", [name for name, task in AT_HAND.items() if issubclass(task, TextTask)]
)


def small(name: str):
    return TASKS[name](**SMALL)


# --- every task, and every one on text ----------------------------------------------------------


@every_task
def test_the_worked_example_in_the_docstring_is_true(name):
    module = inspect.getmodule(TASKS[name])
    found = doctest.DocTestFinder(recurse=False).find(
        TASKS[name], TASKS[name].__name__, module=module
    )
    results = [doctest.DocTestRunner().run(example) for example in found]
    assert sum(r.attempted for r in results) >= 1, f"{TASKS[name]} has no worked example"
    assert sum(r.failed for r in results) == 0


@every_task
def test_a_task_is_registered_under_its_own_name(name):
    assert TASKS[name]().name == name


@every_text_task
@settings(max_examples=10)
@given(seed=SEEDS)
def test_equal_seed_means_equal_data_and_another_seed_other_training_data(name, seed):
    task, again = small(name), small(name)
    assert task.pairs("train", seed) == again.pairs("train", seed)
    assert task.pairs("train", seed) != task.pairs("train", seed + 1)


@every_text_task
def test_evaluation_sets_belong_to_the_task_and_not_to_the_seed(name):
    task = small(name)
    for split in task.splits():
        if split != "train":
            assert task.pairs(split, 0) == task.pairs(split, 1)


@every_text_task
def test_no_source_occurs_twice_in_a_split(name):
    task = small(name)
    for split in task.splits():
        sources = [pair.source for pair in task.pairs(split, 0)]
        assert len(set(sources)) == len(sources)


@every_text_task
def test_every_split_has_the_size_it_says(name):
    task = TASKS[name]()
    if task.train_size >= 10**5:  # seconds of a core, up to a minute
        task = small(name)
    for split, (_, _, size) in task.splits().items():
        assert len(task.pairs(split, 0)) == size, split


@every_text_task
def test_tests_are_the_iid_set_and_then_growing_lengths(name):
    splits = small(name).splits()
    first, *others = small(name).tests
    lengths = [splits[test].shortest for test in others]
    assert first == "iid"
    assert lengths and lengths == sorted(lengths)
    # The two ranges of entropies of math_add_or_sub, which are no whole numbers, meet at 16. Sums
    # sorted by their digits are cut where there are more of as many digits.
    meets = name in ("math_add_or_sub", "bigbench_arithmetic")
    assert all(length + meets > splits["train"].longest for length in lengths)
    assert others in ([str(length) for length in lengths], ["length"])


@every_text_task
def test_a_batch_holds_the_text_of_its_pairs_and_nothing_else(name):
    task = small(name)
    for split in task.splits():
        pairs, batch = task.pairs(split, 3), task.dataset(split, 3)
        assert len(batch) == len(pairs)
        for i, (source, target) in enumerate(pairs):
            s, t = int(batch.input_lengths[i]), int(batch.target_lengths[i])
            # An end token is part of a target, and of a source where the task says so.
            assert (s, t) == (len(source) + task.source_ends, len(target) + 1)
            assert task.decode(batch.inputs[i, :s].tolist()) == source
            assert EOS not in batch.inputs[i, : len(source)]
            assert task.decode(batch.targets[i].tolist()) == target
            assert batch.targets[i, t - 1] == EOS
            assert (batch.inputs[i, s:] == PAD).all() and (batch.targets[i, t:] == PAD).all()
            assert batch.mask[i].tolist() == [j < t for j in range(batch.mask.shape[1])]


@every_text_task
def test_no_symbol_stands_for_a_special_token(name):
    vocabulary = TASKS[name]().vocabulary
    assert vocabulary[: len(SPECIALS)] == SPECIALS
    assert len(set(vocabulary)) == len(vocabulary)


@every_text_task
@settings(max_examples=10)
@given(seed=SEEDS, chunk=st.integers(1, 50))
def test_chunks_are_the_samples_in_order_without_needless_padding(name, seed, chunk):
    batch = small(name).dataset("train", seed)
    parts = batch.chunks(chunk)
    assert sum(map(len, parts)) == len(batch)
    for i, part in enumerate(parts):
        rows = slice(i * chunk, (i + 1) * chunk)
        assert part.inputs.shape[1] == part.input_lengths.max()
        assert part.targets.shape[1] == part.target_lengths.max()
        assert (part.inputs == batch.inputs[rows, : part.inputs.shape[1]]).all()
        assert (part.mask == batch.mask[rows, : part.targets.shape[1]]).all()


@every_text_task
@pytest.mark.parametrize(
    "length",
    [0, -3, 10**6, (5, 4), (0, 8), "30", 2.5, True, None, (1, 2, 3), (), (True, 2), (5, 6.0)],
    ids=repr,
)
def test_an_impossible_length_is_refused_by_name(name, length):
    with pytest.raises(RelengthError) as refusal:
        small(name).sample(stream(0, "data"), 2, length)
    assert name in str(refusal.value) and str(length) in str(refusal.value)
    assert "choose lengths" in str(refusal.value)


@every_task
def test_an_unknown_split_is_refused_with_those_there_are(name):
    with pytest.raises(RelengthError, match=r"no split 'tests': choose one of .*") as refusal:
        TASKS[name]().dataset("tests", 0)
    assert all(split in str(refusal.value) for split in TASKS[name]().splits())


# --- copying digits -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n, task in TASKS.items() if issubclass(task, DigitTask)])
def test_splits_are_those_of_the_released_generator(name):
    splits = TASKS[name]().splits()
    assert {n: tuple(split) for n, split in splits.items() if n != "validation"} == {
        "train": (5, 10, 10_001),
        "dev": (10, 15, 2_001),
        "iid": (5, 10, 2_001),
        "15": (15, 15, 2_001),
        "30": (30, 30, 2_001),
        "100": (100, 100, 2_001),
    }


@given(DIGITS)
def test_repetitions_follow_the_three_rules_of_recopy(digits):
    rest = repeated(digits)
    for digit in digits:
        times = 1 if digit <= "3" else 3 if digit <= "6" else 5
        assert rest[:times] == (digit,) * times
        rest = rest[times:]
    assert rest == ()


@given(DIGITS)
def test_inverted_tasks_are_the_others_turned_round(digits):
    for task, inverse in ((ReCopy(), InvReCopy()), (ReverseReCopy(), InvReverseReCopy())):
        source, target = task.pair(digits)
        assert inverse.pair(digits) == Pair(target, source)


@given(DIGITS)
def test_reversed_tasks_read_the_digits_from_the_end(digits):
    assert ReverseCopy().pair(digits) == Pair(digits, Copy().pair(digits).target[::-1])
    assert ReverseReCopy().pair(digits).target == ReCopy().pair(digits).target[::-1]
    assert ReverseReCopy().pair(digits).source == digits


@given(seed=SEEDS, length=st.integers(1, 60))
def test_length_counts_digits_before_expansion(seed, length):
    for task, side in (
        *((Copy(), "source"), (ReverseCopy(), "source"), (ReCopy(), "source")),
        *((ReverseReCopy(), "source"), (InvReCopy(), "target"), (InvReverseReCopy(), "target")),
    ):
        pair = task.draw(stream(seed, "data"), length)
        assert len(getattr(pair, side)) == length


@settings(max_examples=20)
@given(seed=SEEDS)
def test_lengths_cover_the_range_of_the_split_and_digits_are_uniform(seed):
    pairs = Copy(train_size=3000).pairs("train", seed)
    lengths = [len(pair.source) for pair in pairs]
    for length in range(5, 11):
        assert abs(lengths.count(length) - 500) < 5 * 20.5  # binomial standard error 20.4
    digits = [digit for pair in pairs for digit in pair.source]
    for digit in "0123456789":
        assert abs(digits.count(digit) / len(digits) - 0.1) < 5 * (0.09 / len(digits)) ** 0.5


@pytest.mark.parametrize("name", ["copy", "inv_recopy", "dedupe"])
def test_tests_beyond_the_papers_change_nothing_but_themselves(name):
    usual, far = TASKS[name](), TASKS[name](far_size=3)
    assert far.tests == (*usual.tests, "200", "500", "1000")
    assert [len(far.pairs(test, 0)) for test in ("200", "500", "1000")] == [3, 3, 3]
    digits = [len(pair.source if name == "copy" else pair.target) for pair in far.pairs("500", 0)]
    assert name == "dedupe" or digits == [500] * 3
    assert far.pairs("30", 0) == usual.pairs("30", 0)
    assert far.pairs("train", 1) == usual.pairs("train", 1)


def test_training_and_test_samples_of_the_same_length_are_drawn_apart():
    task = Copy()
    train, iid = ({pair.source for pair in task.pairs(split, 0)} for split in ("train", "iid"))
    assert len(train & iid) < 0.05 * len(iid)


def test_a_length_with_few_different_sources_gives_each_of_them_once():
    class Short(Copy):
        def splits(self):
            return super().splits() | {"1": super().splits()["15"]._replace(shortest=1, longest=1)}

    sources = [pair.source for pair in Short().pairs("1", 0)]
    assert sorted(sources) == [(digit,) for digit in "0123456789"]


# --- two further tasks of digits ----------------------------------------------------------------


@given(seed=SEEDS, length=st.integers(1, 60))
def test_dedupe_leaves_one_digit_of_every_run(seed, length):
    source, target = TASKS["dedupe"]().draw(stream(seed, "data"), length)
    assert all(a != b for a, b in itertools.pairwise(target))
    assert re.sub(r"(.)\1*", r"\1", "".join(source)) == "".join(target)
    assert len(target) <= length <= len(source) <= 5 * length
    assert (len(source) - length) % 2 == 0  # every repetition adds two or four digits


@given(digits=DIGITS)
def test_posretrieve_looks_up_each_place(digits):
    target = TASKS["posretrieve"]().pair(digits).target
    items = "".join(target).split(";")[:-1]
    assert len(items) == len(digits) and len(target) == 4 * len(digits)
    for digit, item in zip(digits, items, strict=True):
        expected = digits[int(digit)] if int(digit) < len(digits) else "n/a"
        assert item == f"{digit}:{expected}"
