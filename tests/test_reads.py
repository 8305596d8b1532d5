"""Traces of reads: what kind of line each hop comes to, and what goes wrong first."""

import json

import numpy as np
import pytest
import torch
from test_memreasoner import alone, batch, gpt, model

from relength.models.language.larimar import Larimar
from relength.models.language.looked import Looked
from relength.specs.spec import make_spec
from relength.tasks import TASKS
from relength.tasks.base import EOS
from relength.tasks.fact_lines import FACT, SAME, TEXT, WANTED, Kinds, known, of_lines, sought
from relength.tasks.facts import Episode, OneFact, TwoFacts, TwoFactsThenOne
from relength.training import train
from relength.training.traces import decoded
from relength.training.traces_of_reads import DIVERGED, QUANTILES, WHOLE, cloud, reads, summed

lacking = pytest.mark.skipif(bool(why := OneFact().lacks()), reason=f"bAbI and the books: {why}")
NOVEL = "It was the best of times, it was the worst of times."
FACTS = (
    "Mary went to the kitchen.",
    "Mary got the milk.",
    "John moved to the garden.",
    "Mary went to the hallway.",
)
LINES = (NOVEL, FACTS[0], FACTS[1], NOVEL, FACTS[2], FACTS[3])
EPISODE = Episode(LINES, "Where is the milk?", "hallway", (2, 5))


# --- kinds of lines -------------------------------------------------------------------------------


def test_lines_by_hand():
    """A line of the novel has 14 words and marks, so it takes two rows of ten."""
    first, second = of_lines(EPISODE, FACTS, 2, OneFact(sentence_words=10).rows_of).kinds.tolist()
    assert first == [TEXT, TEXT, FACT, WANTED, TEXT, TEXT, FACT, FACT]
    assert second == [TEXT, TEXT, SAME, SAME, TEXT, TEXT, FACT, WANTED]
    assert of_lines(EPISODE, FACTS, 2, OneFact(sentence_words=10).rows_of).facts == dict(
        zip((2, 3, 6, 7), FACTS, strict=True)
    )


def test_a_read_before_the_first_fact_is_after_the_question_and_has_no_wanted_line():
    one = Episode(FACTS, "Where is Mary?", "hallway", (3,))
    assert [s.place for s in sought(one, 2)] == [None, 3]
    first, second = of_lines(one, FACTS, 2, OneFact(sentence_words=64).rows_of).kinds.tolist()
    assert first == [SAME, SAME, FACT, SAME] and second == [SAME, SAME, FACT, WANTED]
    # Of two facts the last alone, where one read is told.
    assert sought(EPISODE, 1) == sought(EPISODE, 2)[1:]


def test_equal_facts_are_told_apart_by_their_order():
    lines = (FACTS[0], NOVEL, FACTS[2], FACTS[0])
    episode = Episode(lines, "Where is Mary?", "kitchen", (3,))
    (kinds,) = of_lines(
        episode, (FACTS[0], FACTS[2], FACTS[0]), 1, OneFact().rows_of
    ).kinds.tolist()
    assert kinds == [SAME, TEXT, FACT, WANTED]


def test_only_babi_in_babilong_has_kinds():
    found = {name for name, task in TASKS.items() if known(task())}
    assert {"babi_one_fact", "babi_two_facts", "babi_two_facts_new_places"} <= found
    assert not any("variable" in name for name in found)


@lacking
@pytest.mark.parametrize("task", [OneFact(), TwoFacts(), TwoFactsThenOne()])
def test_wanted_rows_are_the_supports_of_the_batch(task):
    from relength.tasks.fact_lines import kinds

    task = task.model_copy(update={"long_size": 6, "lengths": ("0k", "1k"), "test_size": 2})
    for test in task.lengths:
        data = task.dataset(test, 0)
        for i, supports in enumerate(data.supports.tolist()):
            found = kinds(task, test, i, reads=2).kinds
            assert found.shape == (2, data.input_lengths[i])
            for row, place in zip(found[-len(supports) :], supports, strict=True):
                assert np.flatnonzero(row == WANTED).tolist() == [place]
            assert (found == TEXT).any() == (test == "1k")


# --- sums -----------------------------------------------------------------------------------------


# A line of text, and two facts four away from it, as in the kinds of the first hop below.
ORDERED = np.array([[0.0, 1.0], [4.0, 0.0], [4.0, 2.0]])


def looked(read: list[int], distances: list[list[float]] | None) -> Looked:
    if distances is None:
        return Looked(torch.tensor([EOS]), read, None, None)
    return Looked(torch.tensor([EOS]), read, np.array(distances), ORDERED)


def test_what_goes_wrong_first_by_hand():
    """Two hops. All right; an older line first; right first, then the novel, and a lucky answer;
    a memory that diverges."""
    kinds = Kinds(np.array([[TEXT, SAME, WANTED], [TEXT, FACT, WANTED]]), {})
    near = [[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]
    some = [
        looked([2, 2], near),
        looked([1, 2], [[3.0, 0.5, 1.0], near[1]]),
        looked([2, 0], [near[0], [0.2, 2.0, 1.0]]),
        looked([-1, -1], None),
    ]
    found = summed(some, [kinds] * 4, [True, False, True, False])
    assert found["first"] == {
        **{"wanted": [1, 0], "same": [0, 1]},
        **{"text": [1, 0], DIVERGED: [0, 1]},
    }
    assert found["read"] == [
        {"wanted": 2, "same": 1, DIVERGED: 1},
        {"wanted": 2, "text": 1, DIVERGED: 1},
    ]
    median = QUANTILES.index(0.5)
    (first, second) = found["distances"]
    assert first["same"][median] == 2.0 and first["wanted"] == [1.0] * len(QUANTILES)
    assert second["text"][-1] == 3.0 and "same" not in second
    assert [hop[median] for hop in found["nearer"]] == [0, 0]
    assert found["nearer"][0][-1] == pytest.approx(0.8)  # 0, 0, 1 at nine tenths
    # Three questions whose nearest line of text is 3, 3 and 0.2 or 3 away, per wanted line at 1.
    assert found["room"][0][median] == 3.0
    assert found["room"][1] == pytest.approx(np.quantile([3, 3, 0.2], QUANTILES), abs=1e-3)
    assert found["codes"]["between"] == pytest.approx(4.0)
    assert found["codes"]["facts_spread"] == pytest.approx(1.0)


def test_how_codes_lie_by_hand():
    """Facts at the corners of a square, text on a line beside it."""
    square = np.array([[0, 0], [0, 2], [2, 0], [2, 2]], float)
    line = np.array([[5, 1], [7, 1]], float)
    is_text = np.arange(6) > 3
    found = cloud(np.concatenate([square, line]), is_text)
    assert found["facts_spread"] == pytest.approx(2**0.5)
    assert found["facts_dimensions"] == pytest.approx(2.0)
    assert found["text_spread"] == pytest.approx(1.0)
    assert found["text_dimensions"] == pytest.approx(1.0)
    assert found["between"] == pytest.approx(5.0)
    # A turn, a shift: nothing changes. A larger scale changes lengths alone.
    turned = np.concatenate([square, line]) @ np.array([[0, 1], [-1, 0]]) + 3
    assert cloud(turned, is_text) == pytest.approx(found)
    larger = cloud(3 * turned, is_text)
    assert larger["between"] == pytest.approx(15.0)
    assert larger["facts_dimensions"] == pytest.approx(2.0)


def test_codes_of_one_line_have_no_spread_and_without_text_no_distance():
    assert cloud(np.ones((1, 3)), np.array([False])) == {}
    assert set(cloud(np.eye(3), np.zeros(3, bool))) == {"facts_spread", "facts_dimensions"}


# --- a model --------------------------------------------------------------------------------------


@pytest.mark.equality
@pytest.mark.parametrize("hops", [1, 2])
def test_what_is_traced_is_what_is_generated(hops):
    ours = model(hops=hops)
    answered, _ = ours.generate(batch(), 2)
    for i, look in enumerate(ours.trace_reads(batch(), 2)):
        assert torch.equal(look.tokens, answered.tokens[i])
        assert look.read == answered.read[i].tolist()
        assert look.distances.shape == (hops, batch().input_lengths[i])
        assert look.distances.argmin(1).tolist() == look.read
        (again,) = ours.trace_reads(alone(batch(), i), 2)
        assert again.distances == pytest.approx(look.distances)


def test_where_a_memory_diverges_there_are_no_distances():
    ours = model(inverse="iterated", first_step=1e-9)
    assert all(look.distances is not None for look in ours.trace_reads(batch(), 2))
    ours = model(inverse="iterated", first_step=1e9)
    for look in ours.trace_reads(batch(), 2):
        assert look.read == [-1] and look.distances is None and set(look.tokens.tolist()) == {EOS}
    assert ours.generate(batch(), 2)[0].read.tolist() == [[-1]] * 3


def test_larimar_and_a_plain_decoder_tell_nothing():
    assert model().tells_lines and not Larimar.tells_lines
    assert not hasattr(gpt(), "tells_lines")
    spec = make_spec(task={"name": "babi_one_fact"}, model="GPT",
                     training={"name": "facts"}, scale="smoke", seed=0)  # fmt: skip
    assert reads(spec, gpt(), "cpu") == {}


@lacking
@pytest.mark.smoke
def test_traces_of_a_trained_model_count_what_its_tests_count():
    spec = make_spec(
        task={
            **{"name": "babi_two_facts", "train_size": 64, "validation_size": 8, "test_size": 8},
            **{"long_size": 12, "lengths": ("0k", "1k"), "words": 500},
        },
        model={"name": "MemReasoner", "hops": 2, "width": 16, "inner_size": 16, "latent_size": 16},
        training={"name": "facts", "epochs": 2, "batch_size": 16, "learning_rate": 1e-3},
        scale="smoke",
        seed=0,
    )
    result = train(spec)
    found = spec.training.traces(spec, result.model, "cpu")["reads"]
    tests = result.checkpoints["selected"]["tests"]
    assert [one["test"] for one in found] == ["0k", "1k"]
    for one in found:
        test = tests[one["test"]]
        both = one["first"].get("wanted", [0, 0])
        assert one["items"] == test["items"] == sum(sum(n) for n in one["first"].values())
        assert both[0] / 12 == pytest.approx(test["answer_and_facts"])
        assert sum(both) / 12 == pytest.approx(test["facts_found"])
        right = sum(n[0] for n in one["first"].values())
        assert right / 12 == pytest.approx(test["answer_accuracy"])
        assert all(sum(hop.values()) == 12 for hop in one["read"])
        assert ("whole" in one) == (one["test"] in WHOLE)
        if "whole" in one:
            lines = int(spec.task.dataset(one["test"], 0).input_lengths[0])
            apart = one["whole"]["distances"]
            assert [hop["shape"] for hop in apart] == [[lines]] * 2
            assert all(hop["nearest"] > 0 and decoded(hop).min() == 0 for hop in apart)
    assert len(json.dumps(found)) < 8_000
