"""Dyck languages: how many strings there are, how they are drawn, what may follow each prefix."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from relength.errors import RelengthError
from relength.specs.spec import make_spec
from relength.streams import stream
from relength.tasks.dyck import BRACKETS, KINDS, Dyck2, Dyck2Unique, Dyck3, Grammar, count, every

CATALAN = {2: 1, 4: 2, 6: 5, 8: 14, 10: 42, 12: 132}
PARTNER = dict(zip(BRACKETS[:KINDS], BRACKETS[KINDS:], strict=True))


def left_over(text: str) -> str:
    """Remove neighbours that match until nothing is left to remove."""
    while True:
        shorter = text
        for opening, closing in PARTNER.items():
            shorter = shorter.replace(opening + closing, "")
        if shorter == text:
            return text
        text = shorter


def balanced(text: str) -> bool:
    return not left_over(text)


def can_be_completed(prefix: str) -> bool:
    """Close what is open, last opened first, and see whether that is balanced."""
    still_open = [symbol for symbol in left_over(prefix) if symbol in PARTNER]
    return balanced(prefix + "".join(PARTNER[symbol] for symbol in reversed(still_open)))


def spelled(string: tuple[int, ...]) -> str:
    return "".join(BRACKETS[symbol] for symbol in string)


def test_brackets_are_in_pairs():
    assert PARTNER == {"(": ")", "[": "]", "{": "}", "<": ">"}


@pytest.mark.parametrize("kinds", [1, 2, 3])
@pytest.mark.parametrize("length", [2, 4, 6])
def test_all_strings_are_those_that_brute_force_finds(kinds, length):
    symbols = BRACKETS[:kinds] + BRACKETS[KINDS : KINDS + kinds]
    found = {text for text in map("".join, product(symbols, repeat=length)) if balanced(text)}
    strings = [spelled(string) for string in every(kinds, length)]
    assert set(strings) == found and len(strings) == len(found) == count(kinds, length)


@pytest.mark.parametrize("kinds", [2, 3])
def test_there_are_catalan_many_shapes_times_kinds_to_the_number_of_pairs(kinds):
    for length, shapes in CATALAN.items():
        assert count(kinds, length) == shapes * kinds ** (length // 2)


def test_of_two_kinds_and_at_most_ten_symbols_there_are_1618_strings():
    task = Dyck2Unique()
    assert task.splits()["train"].size == 1618
    strings = task.strings("train", 0)
    assert len(set(strings)) == len(strings) == 1618
    assert max(map(len, strings)) == 10 and all(balanced(spelled(s)) for s in strings)
    assert Dyck2().splits()["train"].size == 5000


@pytest.mark.parametrize("task", [Dyck2, Dyck3])
@pytest.mark.parametrize("repeats", [True, False])
def test_splits_have_their_lengths_and_sizes(task, repeats):
    task = task(repeats=repeats, train_size=60, test_size=50, validation_size=20)
    longest = task.train_length
    tests = (longest, longest + 2, 2 * longest, 4 * longest, 8 * longest)
    assert task.tests == tuple(map(str, tests))  # L, and Section 3.2: L + 2, 2L, 4L, 8L
    for name, (least, most, size) in task.splits().items():
        strings = task.strings(name, 0)
        assert len(strings) == size
        assert all(least <= len(s) <= most and balanced(spelled(s)) for s in strings), name
        if name in task.tests or not repeats:
            assert len(set(strings)) == size, name
    assert task.strings("train", 0) != task.strings("train", 1)
    assert task.strings("validation", 0) == task.strings("validation", 1)


def test_tests_are_the_same_whether_training_strings_repeat():
    sizes = {"test_size": 40, "train_size": 40}
    for test in Dyck2().tests:
        strings = Dyck2(**sizes).strings(test, 0)
        assert strings == Dyck2Unique(**sizes).strings(test, 0)
    assert Dyck2(**sizes).strings("train", 0) != Dyck2Unique(**sizes).strings("train", 0)


def test_a_test_that_asks_for_all_strings_has_each_once_and_one_less_is_found_too():
    for size in (8, 7):  # of eight; the grammar makes none of them rarely
        strings = Dyck2(train_length=4, test_size=size).strings("4", 0)
        assert len(set(strings)) == len(strings) == size


def test_strings_are_as_frequent_as_the_grammar_makes_them():
    """Against sentences that are drawn by the rules themselves, and kept if they are short."""
    random, p, q, most = stream(0, "data"), 0.5, 0.25, 6

    def sentence(room: int) -> str | None:
        """A sentence, None if it is longer than room (which nothing can mend)."""
        draw = random.random()
        if draw < p:
            inside = sentence(room - 2) if room >= 2 else None
            return None if inside is None else f"({inside})"
        if draw < p + q:
            left = sentence(room)
            right = None if left is None else sentence(room - len(left))
            return None if right is None else left + right
        return ""

    by_rule = Counter(s for s in (sentence(most) for _ in range(40_000)) if s)
    drawn = Grammar.of(p, q).draw(random, 1, range(2, most + 1, 2))
    ours = Counter(spelled(next(drawn)) for _ in range(20_000))
    texts = [spelled(s) for n in (2, 4, 6) for s in every(1, n)]
    table = np.array([[counter[text] for text in texts] for counter in (by_rule, ours)])
    assert table.sum() == by_rule.total() + ours.total() and (table > 10).all()
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_kinds_of_brackets_are_equally_likely():
    drawn = Grammar.of(0.5, 0.25).draw(stream(0, "data"), 3, [20])
    kinds = Counter(symbol for _ in range(500) for symbol in next(drawn) if symbol < KINDS)
    assert stats.chisquare([kinds[i] for i in range(3)]).pvalue > 1e-3 and kinds.total() == 5000


def test_the_weights_of_a_grammar_solve_its_equation_and_add_up_to_one():
    grammar = Grammar(0.3, 0.2)
    w = [grammar.weight(k) for k in range(400)]
    assert w[0] == pytest.approx(0.5 + 0.2 * w[0] ** 2)
    for k in (1, 2, 7):
        joined = sum(w[i] * w[k - i] for i in range(k + 1))
        assert w[k] == pytest.approx(0.3 * w[k - 1] + 0.2 * joined)
    assert sum(w) == pytest.approx(1)


def test_prefixes_that_can_be_completed_are_those_of_the_strings_there_are():
    """Every text of up to three symbols; six symbols are enough to complete any of them."""
    symbols = BRACKETS[:2] + BRACKETS[KINDS : KINDS + 2]
    strings = [spelled(s) for length in (2, 4, 6) for s in every(2, length)]
    for length in (1, 2, 3):
        for text in map("".join, product(symbols, repeat=length)):
            assert can_be_completed(text) == any(s.startswith(text) for s in strings), text


@settings(max_examples=25, deadline=None)
@given(pairs=st.integers(1, 5), kinds=st.integers(1, 3), seed=st.integers(0, 99))
def test_targets_are_the_symbols_after_which_a_prefix_can_still_be_completed(pairs, kinds, seed):
    task = {2: Dyck2, 3: Dyck3}.get(kinds, Dyck2)()
    symbols = BRACKETS[: task.kinds] + BRACKETS[KINDS : KINDS + task.kinds]
    string = next(Grammar.of(0.5, 0.25).draw(stream(seed, "data"), task.kinds, [2 * pairs]))
    batch = task.encode([string])
    text = spelled(string)

    for t in range(len(text)):
        wanted = [float(can_be_completed(text[: t + 1] + symbol)) for symbol in symbols]
        assert batch.targets[0, t].tolist() == wanted
        assert batch.inputs[0, t].tolist() == [float(symbol == text[t]) for symbol in symbols]


def test_padding_is_nothing_and_does_not_count():
    task = Dyck2()
    long, short = next(every(2, 8)), next(every(2, 2))
    both = task.encode([short, long])
    assert both.inputs[0, 2:].eq(0).all() and both.targets[0, 2:].eq(0).all()
    assert both.mask.sum(1).tolist() == both.target_lengths.tolist() == [2, 8]
    outputs = both.targets.clone()
    outputs[0, 2:] = 1
    assert task.loss(outputs, both) == 0 and task.right(outputs, both).tolist() == [1, 1]
    alone = both.select(slice(0, 1))
    torch.testing.assert_close(alone.targets, task.encode([short]).targets)


def test_a_string_is_right_only_if_every_set_is():
    """One of 4 prefixes wrong in one of two strings, first at the third: by hand."""
    task = Dyck2()
    a, b = list(every(2, 4))[:2]
    batch = task.encode([a, b])
    outputs = 0.5 * batch.targets + 0.25  # 0.75 and 0.25
    outputs[1, 2, 0] = 0.4
    assert task.right(outputs, batch).tolist() == [1, 0]
    scores = task.score([(batch, outputs)])
    assert (scores.items, scores.sequence_accuracy) == (2, 0.5)
    assert scores.set_accuracy == 7 / 8
    assert scores.correct_prefix == (1 + 2 / 4) / 2
    assert scores.squared_error == pytest.approx((0.25**2 * 31 + 0.6**2) / 32)
    assert float(task.loss(outputs, batch)) == pytest.approx(scores.squared_error)
    outputs[1, 2, 0] = 0.5  # the threshold itself says yes
    assert task.right(outputs, batch).tolist() == [1, 1]


def test_the_loss_is_the_mean_over_strings_however_long():
    task = Dyck2()
    long, short = next(every(2, 8)), next(every(2, 2))
    both = task.encode([short, long])
    outputs = both.targets.clone()
    outputs[0, 0] = 1 - outputs[0, 0]
    assert float(task.loss(outputs, both)) == pytest.approx((1 / 2 + 0) / 2)


@pytest.mark.parametrize("length", [0, 3, 2.0, True, -2, (2,), (4, 2), (2, 5)])
def test_lengths_that_no_string_has_are_refused(length):
    with pytest.raises(RelengthError, match=r"dyck_2 has no strings .* choose an even number"):
        Dyck2().sample(stream(0, "data"), 3, length)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"train_length": 9}, "train_length is even"),
        ({"nest": 0.6, "join": 0.4}, "together are below 1"),
        ({"kinds": 3}, "kinds"),
    ],
)
def test_impossible_settings_are_one_sentence(fields, words):
    with pytest.raises(RelengthError, match=words):
        make_spec(
            task={"name": "dyck_2", **fields},
            model="SRNN",
            training="plain_epochs",
            scale="smoke",
            seed=0,
        )


def test_plain_epochs_wants_a_task_that_selects_on_its_training_data():
    with pytest.raises(RelengthError, match=r"selects on training data.*choose the protocol"):
        make_spec(task="copy", model="Content", training="plain_epochs", scale="smoke", seed=0)


def test_samples_of_a_range_have_its_lengths():
    batch = Dyck2().sample(stream(0, "data"), 200, (4, 8))
    assert set(batch.input_lengths.tolist()) == {4, 6, 8}
    assert Dyck2().sample(stream(0, "data"), 5, 6).inputs.shape == (5, 6, 4)


def test_the_generator_of_the_cited_work_could_not_end():
    """Fewer strings than training samples, counted without the library."""
    there = sum(math.comb(2 * k, k) // (k + 1) * 2**k for k in range(1, 6))
    assert there == 1618 < Dyck2().train_size
    assert sum(math.comb(2 * k, k) // (k + 1) * 3**k for k in range(1, 11)) > Dyck3().train_size
