"""Variable tracking: its chains on both readings, and a model that answers hop by hop."""

import numpy as np
import pytest
import torch
from handmade import amounts
from test_memreasoner import SIZES as SMALL
from test_memreasoner import WORDS, alone, batch

from relength.models import MODELS
from relength.models.language.rmt import ANSWER
from relength.models.language.texts import ending_together
from relength.models.language.variant_configs import EachHopConfig
from relength.models.language.variants import EachHop
from relength.papers.memreasoner.variable_experiments import EPOCHS, variable_tracking
from relength.paths import BOOK, NOTEBOOKS
from relength.tasks import bpe
from relength.tasks.base import EOS, PAD
from relength.tasks.batch import Answered
from relength.tasks.variable_tracking import (
    LETTERS,
    NOISE,
    ROOM,
    SIZES,
    Chain,
    OneHop,
    TwoHops,
    words,
)

OWN = (
    "<pad>",
    "<sos>",
    "<eos>",
    "<unk>",
    *words(f"VAR = Which variables have the value ? {NOISE}"),
)
EVERY = [(task, reading) for task in ("1", "2") for reading in ("text", "ruler")]


class One(OneHop):
    """The task with a vocabulary that needs no data."""

    @property
    def vocabulary(self):
        return tuple(dict.fromkeys((*OWN, *LETTERS, *"0123456789")))


class Two(TwoHops):
    """The same of two hops."""

    vocabulary = One.vocabulary


TASKS = {"1": One, "2": Two}


def episode(task, size=6, tokens=0, seed=0):
    return task.episode(np.random.default_rng(seed), size, tokens)


def followed(lines: tuple[str, ...], value: str) -> list[str]:
    """The variables of a value, found by following assignments from the top."""
    known, names = {value}, []
    for line in lines:
        if line != NOISE:
            name, of = line.removeprefix("VAR ").split(" = ")
            if of.removeprefix("VAR ") in known:
                known.add(name)
                names.append(name)
    return names


@pytest.mark.parametrize(("name", "reading"), EVERY)
@pytest.mark.parametrize("tokens", [0, 700])
def test_the_answer_is_what_following_the_lines_gives(name, reading, tokens):
    task = TASKS[name](reading=reading)
    for seed in range(5):
        for size in SIZES:
            found = episode(task, size, tokens, seed)
            value = found.question.split()[-2]
            assert found.answer.split() == followed(found.lines, value)
            assert [found.lines[i] for i in found.supports] == [
                line for line in found.lines if line[4:9] in found.answer.split()
            ]


def test_both_readings_have_the_lines_that_they_say():
    for size in SIZES:
        assert len(episode(One(), size).lines) == len(episode(Two(), size).lines) == size
        assert len(episode(One(reading="ruler"), size).lines) == 2 * size
        assert len(episode(Two(reading="ruler"), size).lines) == 3 * size
    assert Chain("16438", ("ABCDE", "FGHIJ")).lines("VAR ")[1] == "VAR FGHIJ = VAR ABCDE"
    assert [task(reading=r).reads for task in (One, Two) for r in ("text", "ruler")] == [1, 2, 2, 3]


def test_names_are_one_letter_in_the_text_any_letters_in_ruler_and_never_the_same():
    for reading, most in (("text", 1), ("ruler", 5)):
        for seed in range(20):
            found = episode(Two(reading=reading), 10, seed=seed)
            names = [line[4:9] for line in found.lines]
            assert len(set(names)) == len(names)
            assert max(len(set(name)) for name in names) <= most
    assert any(len(set(line[4:9])) == 5 for line in found.lines)


@pytest.mark.parametrize("reading", ["text", "ruler"])
def test_noise_fills_a_context_and_lines_stand_anywhere_in_it(reading):
    task, places = One(reading=reading), []
    for seed in range(40):
        found = episode(task, 4, 1000 - ROOM, seed)
        tokens = sum(bpe.count(f"{line}\n") for line in found.lines)
        assert 1000 - ROOM - bpe.count(f"{NOISE}\n") < tokens <= 1000 - ROOM
        places += [i / len(found.lines) for i in found.supports]
    assert min(places) < 0.1 and max(places) > 0.9
    assert NOISE not in episode(task, 4).lines


def test_a_split_has_equal_parts_of_every_size():
    sizes = [len(found.lines) for found in One(long_size=50).episodes("0k", 0)]
    assert [sizes.count(size) for size in SIZES] == [10] * 5
    again = One(long_size=50).episodes("0k", 3)
    assert [len(found.lines) for found in again] == sizes and again == One(long_size=50).episodes(
        "0k", 0
    )
    assert One(train_size=5).episodes("train", 0) != One(train_size=5).episodes("train", 1)


def test_a_batch_by_hand():
    task = Two()
    found = episode(task, 2)
    whole = task.encode({"some": [found]})["some"]
    shown = task.shown(whole, 0)
    assert shown.target == tuple(found.answer.split())
    assert shown.source[0] == " ".join(words(found.lines[0]))
    assert whole.targets.shape == (1, 12) and whole.targets[0, 5] == EOS == whole.targets[0, 11]


def test_an_answer_is_right_with_all_names_and_no_other_in_any_order():
    task = Two()
    whole = task.encode({"some": [episode(task, 4, seed=s) for s in range(3)]})["some"]
    first, second = whole.targets[:, :6], whole.targets[:, 6:]
    said = torch.cat([first, second], dim=1)
    said[1] = torch.cat([second[1], first[1]])  # in another order
    said[2] = torch.cat([first[2], first[2]])  # one name twice
    score = task.score([(whole, Answered(said, whole.supports))])
    assert score.answer_accuracy == pytest.approx(2 / 3)
    assert score.names_found == pytest.approx(2.5 / 3)
    assert score.facts_found == 1 and score.answer_and_facts == score.answer_accuracy


def test_names_are_found_anywhere_in_an_answer_as_ruler_counts(monkeypatch):
    """An answer that goes on after a name is wrong for us, but it holds the name all the same."""
    task = Two()
    whole = task.encode({"some": [episode(task, 4)]})["some"]
    names = task.spelled(whole.targets[0].tolist())
    word = {text: number for number, text in enumerate(task.vocabulary)}
    goes_on = [*(word[letter] for letter in names[0]), word["="], word["1"], EOS]
    said = torch.tensor([goes_on + [PAD] * (whole.targets.shape[1] - len(goes_on))])
    score = task.score([(whole, Answered(said, None))])
    assert score.answer_accuracy == 0 and score.names_found == 0.5
    spelled, answer = Two.spelled, said[0].tolist()

    def small(self, tokens):
        names = spelled(self, tokens)
        return tuple(map(str.lower, names)) if tokens == answer else names

    monkeypatch.setattr(Two, "spelled", small)
    assert task.score([(whole, Answered(said, None))]).names_found == 0.5


@pytest.mark.parametrize("reading", ["text", "ruler"])
def test_no_line_begins_as_an_answer_does(reading):
    """Else a decoder that can write lines could not end a name."""
    task = Two(reading=reading)
    whole = task.encode({"some": [episode(task, 4, tokens=200)]})["some"]
    _, *begun = whole.prompts[0].tolist()  # after the start symbol
    lines = whole.for_decoder[whole.inputs[0]].tolist()
    assert begun and not any(line[: len(begun)] == begun for line in lines)
    assert any(line[0] == task.vocabulary.index("var") for line in lines)


# --- a name from every hop ------------------------------------------------------------------------


def each_hop(**changed) -> EachHop:
    return EachHop(EachHopConfig(**(SMALL | changed)), WORDS).initialise(0).double()


def test_every_part_of_an_answer_is_written_from_its_own_hop():
    ours, whole = each_hop(hops=2), batch(hops=2, most=5)
    found = ours.iterative_read(whole).found
    scores = ours(whole)
    for hop, one in enumerate(found):
        token = whole.targets[:, hop : hop + 1]
        wanted = ours._after(whole.prompts, token, one)
        torch.testing.assert_close(scores[:, hop : hop + 1], wanted)
    torch.testing.assert_close(ours.with_terms(whole, None, ("order",))[0], scores)
    written, _ = ours.generate(whole, 2)
    assert (written.tokens == scores.argmax(2)).all()
    assert written.read.shape == (3, 2)
    for i in range(3):
        torch.testing.assert_close(ours(alone(whole, i))[0], scores[i])


def test_with_one_hop_it_is_memreasoner():
    from test_memreasoner import model

    torch.testing.assert_close(each_hop()(batch()), model()(batch()), rtol=0, atol=0)


def test_runs_read_as_often_as_chains_have_lines():
    every = variable_tracking("reduced", 0)
    specs = [spec for spec in every if spec.row == "MemReasoner"]
    assert [(s.task.name, s.model.arm, s.task.reading) for s in specs] == [
        ("vt_1hop", "paper", "text"),
        ("vt_2hop", "paper", "text"),
        ("vt_1hop", "ruler", "ruler"),
        ("vt_2hop", "ruler", "ruler"),
    ]
    assert all(spec.model.hops == spec.task.reads for spec in specs)
    others = {(s.row, s.task.name, s.task.reading) for s in every if s not in specs}
    assert others == {(m, t, "text") for m in ("RMT", "Larimar") for t in ("vt_1hop", "vt_2hop")}


def test_rulers_names_with_one_hop_are_trained_longer_at_scale_reduced_alone():
    for scale in ("smoke", "reduced", "paper"):
        epochs = {
            (s.task.hops, s.task.reading): s.training.epochs
            for s in variable_tracking(scale, 0)
            if s.row == "MemReasoner"
        }
        longer = {who for who, most in epochs.items() if most > epochs[who[0], "text"]}
        assert longer == ({(1, "ruler")} if scale == "reduced" else set())


def test_the_page_and_the_deviation_say_how_long_each_reading_is_trained():
    one, two = (EPOCHS[task] for task in ("vt_1hop", "vt_2hop"))
    assert two["text"] == two["ruler"]
    page = (NOTEBOOKS / "memreasoner_variable_tracking.ipynb").read_text()
    listed = (BOOK / "deviations" / "memreasoner.yml").read_text()
    for text in (page, " ".join(listed.split())):
        said = text.index(f"{one['text']} epochs with one hop and {two['text']} with two, but ")
        assert amounts(text[said : said + 60])[:3] == [one["text"], two["text"], one["ruler"]]


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.skipif(bool(why := TwoHops().lacks()), reason=f"the books: {why}")
def test_a_segment_is_the_median_question_and_two_hold_each(hops):
    every = (s for s in variable_tracking("reduced", 0) if s.row == "RMT")
    spec = next(s for s in every if s.task.hops == hops)
    batch = spec.task.model_copy(update={"train_size": 1000}).dataset("train", 0)
    lengths = (ending_together(batch) != PAD).sum(1)
    assert int(lengths.median()) == spec.model.segment
    assert spec.model.segment < int(lengths.max()) <= 2 * spec.model.segment


@pytest.mark.skipif(bool(why := TwoHops().lacks()), reason=f"the books: {why}")
def test_an_answer_fits_beside_the_last_segment():
    """RMT's two segments on two hops, as in the text; its places end with an answer's."""
    spec = next(s for s in variable_tracking("smoke", 0) if s.row == "RMT" and s.task.hops == 2)
    task = spec.task.model_copy(update={"train_size": 200})
    batch = task.dataset("train", 0)
    lengths = (ending_together(batch) != PAD).sum(1)
    made = MODELS["RMT"].module(spec.model, *task.shape).initialise(0)
    longest = batch.select(lengths.topk(4).indices)
    # Two names letter by letter; places of memory that an answer's segment lacks are left for it.
    assert 10 < int(longest.target_lengths.max()) <= ANSWER + spec.model.memory
    scores = made(longest)
    scores[longest.mask].sum().backward()
    assert scores.shape[:2] == longest.targets.shape
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in made.parameters())
