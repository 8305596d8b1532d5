"""Questions about facts: bAbI as it is published, BABILong's contexts, the batch and its score."""

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
import torch

from relength.errors import RelengthError
from relength.papers.memreasoner.pretrained_experiments import REFUSED
from relength.specs.experiments import experiments
from relength.tasks import TASKS, books, bpe, data
from relength.tasks.base import EOS, SOS
from relength.tasks.batch import Answered, FactsToAnswer
from relength.tasks.facts import (
    NEW_PLACES,
    PLACES,
    Episode,
    OneFact,
    TwoFacts,
    TwoFactsThenOne,
    episodes,
    hidden,
    named,
    subject,
    without_questions,
)

STORY = "\n".join(
    (
        "1 Mary moved to the bathroom.",
        "2 John went to the hallway.",
        "3 Where is Mary? \tbathroom\t1",
        "4 Mary went back to the garden.",
        "5 Where is Mary? \tgarden\t4",
        "1 Sandra travelled to the office.",
        "2 Where is Sandra? \toffice\t1",
    )
)
SENTENCES = ("It was the best of times, it was the worst of times. ", "Call me. ") * 40
WORDS = ("<pad>", "<sos>", "<eos>", "<unk>", ".", "?", "mary", "moved", "to", "the", "bathroom",
         "john", "went", "hallway", "where", "is", "in", "garden", "back", "milk")  # fmt: skip
lacking = pytest.mark.skipif(bool(why := OneFact().lacks()), reason=f"bAbI and the books: {why}")


@cache
def background():
    """The sentences that facts are hidden in. Counting their tokens takes a second."""
    return books._background(" ".join(" ".join(SENTENCES).split()))


class Told(OneFact):
    """The task with a vocabulary that needs no data."""

    @property
    def vocabulary(self):
        return WORDS


class Told2(TwoFacts):
    """The same of two facts."""

    @property
    def vocabulary(self):
        return WORDS


# --- text -----------------------------------------------------------------------------------------


def test_a_file_of_babi_by_hand():
    first, second, third = episodes(STORY)
    assert first == Episode(
        ("Mary moved to the bathroom.", "John went to the hallway."),
        *("Where is Mary?", "bathroom", (0,)),
    )
    assert second.lines == (*first.lines, "", "Mary went back to the garden.")
    assert (second.answer, second.supports) == ("garden", (3,))
    assert third.lines == ("Sandra travelled to the office.",)
    assert without_questions(second) == second._replace(
        lines=(*first.lines, "Mary went back to the garden."), supports=(2,)
    )


@pytest.mark.parametrize(
    "line", ["Mary moved.", "1 Where is Mary?\tgarden", "1 Where is Mary?\tgarden\tx"]
)
def test_what_is_no_file_of_babi_is_refused_by_its_line(line):
    with pytest.raises(RelengthError, match=r"is no (line|question|list of numbers)") as caught:
        episodes(line)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "answer", "place", "said"),
    [
        ((), "garden", 0, "no line to read"),
        (("Mary went to the market.",), "market", 0, "'market'"),
        (("John went to the garden.",), "garden", 0, "says anything of Mary"),
        (("Mary went to the garden.",), "garden", 1, "are not among its lines"),
        (("Mary went to the market.",), "garden", 0, "does not name the answer 'garden'"),
    ],
)
def test_a_question_that_its_lines_cannot_answer_is_refused(lines, answer, place, said):
    asked = Episode(lines, "Where is Mary?", answer, (place,))
    with pytest.raises(RelengthError, match=said) as caught:
        OneFact().encode({"babi": [asked]})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "question", "said"),
    [
        ("Zorblax went to the garden.", "Where is Zorblax?", "no word for Zorblax"),
        ("Mary went to the garden.", "Where is he?", "says anything of he,"),
        ("Mary went to the garden.", "Where is the garden?", "where a place is"),
    ],
)
def test_a_subject_that_no_model_could_look_for_is_refused(line, question, said):
    with pytest.raises(RelengthError, match=said) as caught:
        OneFact().encode({"babi": [Episode((line,), question, "garden", (0,))]})
    assert "\n" not in str(caught.value)


def test_nothing_of_scale_paper_begins_without_the_networks_that_it_is_about(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    refused = set()
    for found in experiments().values():
        if found.paper == "memreasoner":
            for spec in found.specs("paper", [0]):
                assert spec.task.lacks().startswith(("weights: ", "pretrained networks ("))
                if spec.task.networks:
                    refused.add(spec.model.name)
                with pytest.raises(RelengthError, match=r"scale reduced|hf download") as caught:
                    spec.task.provenance()
                assert "\n" not in str(caught.value)
    assert refused == set(REFUSED)


def test_a_question_without_a_known_subject_is_refused():
    assert subject("Where is Mary?") == "Mary"
    with pytest.raises(RelengthError, match="no known subject"):
        subject("Who is in the garden?")


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        ("garden", {"garden"}),
        ("Garden. The kitchen", {"garden"}),
        ("garden or kitchen", {"garden", "kitchen"}),
        ("the office is where she is", set()),
        ("nowhere", set()),
    ],
)
def test_the_strict_rule_names_labels_before_the_first_full_stop(written, labels):
    assert named(written, "Is Mary in the office?", PLACES) == labels


# --- long contexts --------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [60, 200, 1500])
@pytest.mark.parametrize("seed", range(5))
def test_facts_are_hidden_in_order_in_exactly_so_many_tokens(tokens, seed):
    episode = episodes(STORY)[0]
    found = hidden(episode, np.random.default_rng(seed), tokens, (background(),))
    assert sum(bpe.count(f" {line}") for line in found.lines) == tokens
    assert [line for line in found.lines if line in episode.lines] == list(episode.lines)
    assert found.lines[found.supports[0]] == episode.lines[0]
    others = [line for line in found.lines if line not in episode.lines]
    *whole, _ = others  # the last is cut
    assert all(line in background().sentences for line in whole)
    assert all(bpe.count(f" {line}") >= books.LEAST_TOKENS for line in whole)
    assert (found.question, found.answer) == (episode.question, episode.answer)


def test_facts_stand_everywhere_in_a_passage():
    """A fact draws each gap, before the first and after the last sentence included."""
    episode = episodes(STORY)[2]
    places = [
        (hidden(episode, np.random.default_rng(seed), 80, (background(),)), seed)
        for seed in range(60)
    ]
    shares = {found.supports[0] / (len(found.lines) - 1) for found, _ in places}
    assert {0, 1} <= shares and len(shares) > 3


def test_facts_that_do_not_fit_are_refused():
    with pytest.raises(RelengthError, match="choose a longer context"):
        hidden(episodes(STORY)[0], np.random.default_rng(0), 5, (background(),))


# --- batches and scores ---------------------------------------------------------------------------


@cache
def told() -> FactsToAnswer:
    return Told().encode({"some": episodes(STORY)[:2]})["some"]


def spelled(row: torch.Tensor) -> str:
    return " ".join(WORDS[i] for i in row.tolist() if i)


def test_a_batch_by_hand():
    batch = told()
    assert batch.input_lengths.tolist() == [2, 4] and batch.target_lengths.tolist() == [2, 2]
    lines = [[spelled(batch.sentences[row]) for row in rows] for rows in batch.inputs.tolist()]
    assert lines[0][:2] == lines[1][:2]
    assert lines[1] == [
        "mary moved to the bathroom .",
        "john went to the hallway .",
        "",
        "mary went back to the garden .",
    ]
    assert batch.inputs[0].tolist()[:2] == batch.inputs[1].tolist()[:2]  # once in the table
    assert [spelled(batch.sentences[row]) for row in batch.questions] == ["where is mary ?"] * 2
    assert batch.supports.tolist() == [[0], [3]]
    assert batch.prompts[0, 0] == SOS
    assert spelled(batch.prompts[0, 1:]) == "mary is in the"
    assert [spelled(row) for row in batch.targets] == ["bathroom <eos>", "garden <eos>"]
    assert batch.mask.all()


def test_selected_samples_share_the_table_and_are_padded_no_further_than_they_need():
    batch = told()
    one = batch.select(slice(0, 1))
    assert one.sentences is batch.sentences and one.inputs.shape == (1, 2) and len(one) == 1
    assert [len(part) for part in batch.chunks(1)] == [1, 1]


def test_a_long_line_takes_several_rows_and_supports_count_rows():
    lines = ("mary moved to the hallway to the garden .", "mary went back to the bathroom .")
    episode = Episode(lines, "Where is Mary?", "bathroom", (1,))
    batch = Told(sentence_words=7).encode({"some": [episode]})["some"]
    assert [spelled(batch.sentences[row]) for row in batch.inputs[0]] == [
        *("mary moved to the hallway to the", "garden .", lines[1])
    ]
    assert batch.supports.tolist() == [[2]]


def test_answers_and_reads_are_scored_apart():
    batch = told()
    garden, bathroom = WORDS.index("garden"), WORDS.index("bathroom")
    wrong = torch.tensor([[garden, EOS], [garden, bathroom]])
    scored = Told().score([(batch, Answered(batch.targets, torch.tensor([[0], [2]])))])
    assert (scored.answer_accuracy, scored.facts_found, scored.answer_and_facts) == (1, 0.5, 0.5)
    assert scored.diverged == 0
    scored = Told().score([(batch, Answered(wrong))])
    assert (scored.answer_accuracy, scored.facts_found, scored.answer_and_facts) == (0, None, None)


def test_two_facts_are_found_in_the_order_of_hops():
    """The line on who had it is found first, wherever it stands; then the line on their place."""
    story = "\n".join(
        (
            "1 John went to the garden.",
            "2 Where is John? \tgarden\t1",
            "3 John moved the milk.",
            "4 Where is the milk? \tgarden\t3 1",
        )
    )
    last = episodes(story)[-1]
    batch = Told2().encode({"some": [last, without_questions(last)]})["some"]
    assert batch.supports.tolist() == [[2, 0], [1, 0]]
    for places, rows in zip(batch.supports, batch.inputs, strict=True):
        assert [spelled(batch.sentences[rows[place]]) for place in places] == [
            *("john moved the milk .", "john went to the garden .")
        ]
    assert spelled(batch.prompts[0, 1:]) == "milk is in the"
    both, one = torch.tensor([[2, 0], [1, 0]]), torch.tensor([[0, 0], [1, 1]])
    scores = [Told2().score([(batch, Answered(batch.targets, read))]) for read in (both, one)]
    assert [scored.facts_found for scored in scores] == [1, 0]


# --- the published data ---------------------------------------------------------------------------


@lacking
def test_two_of_the_new_places_are_in_no_training_book():
    words = Counter(re.findall("[a-z]+", " ".join(data.books("train").values()).lower()))
    never = {place for place in NEW_PLACES if not words[place]}
    assert never == {"garage", "gym"}


@lacking
def test_samples_are_those_that_are_published():
    task = OneFact(train_size=50, test_size=20, long_size=4, lengths=("0k", "1k"))
    assert task.episodes("train", 0) != task.episodes("train", 1)
    assert task.episodes("1k", 0) == task.episodes("1k", 1)
    test = {(e.question, e.answer, without_questions(e).lines) for e in _read("test")}
    short, long = task.episodes("0k", 0), task.episodes("1k", 0)
    for few, many in zip(short, long, strict=True):
        assert (few.question, few.answer, few.lines) in test
        assert [line for line in many.lines if line in few.lines] == list(few.lines)
        assert sum(bpe.count(f" {line}") for line in many.lines) == 700
        assert few.lines[few.supports[0]] == many.lines[many.supports[0]]
    asked = data.index()["babilong"]["questions"]["qa1"]
    assert len(set(asked)) == 100 and max(asked) < 1000
    assert max(len(e.lines) for e in _read("train")) == 14  # Section 4.1
    empty = [e.lines.count("") for e in _read("train")]
    assert np.mean(empty) == 2  # Appendix A.2


def _read(part: str) -> list[Episode]:
    return episodes(data.find("babi").texts[f"{OneFact.file}_{part}.txt"])


@lacking
def test_every_question_of_two_facts_has_two_and_fits_into_a_thousand_tokens():
    task = TwoFacts(train_size=200, test_size=200)
    for split in ("train", "babi", "0k", "1k"):
        for episode in task.episodes(split, seed=0):
            first, second = (episode.lines[place] for place in episode.supports)
            thing = subject(episode.question)
            assert thing in first and thing not in second and episode.answer in second
            who = first.split()[0]
            assert second.startswith(who) and max(episode.supports) < len(episode.lines)


@lacking
def test_after_two_facts_the_questions_asked_are_those_of_one():
    task, sizes = TwoFactsThenOne(train_size=20, test_size=20, long_size=4), {"long_size": 4}
    one, two = OneFact(**sizes), TwoFacts(train_size=20, test_size=20, **sizes)
    assert task.episodes("0k", 0) == one.episodes("0k", 0)
    assert {len(e.supports) for e in task.episodes("1k", 0)} == {1}
    for split in ("train", "babi", "validation"):
        assert {len(e.supports) for e in task.episodes(split, 0)} == {2}
    known = set(episodes(data.find("babi").texts[f"{TwoFacts.file}_train.txt"]))
    assert set(task.episodes("train", 0)) <= known
    found = set(task.provenance()["sha256"])
    assert set(one.provenance()["sha256"]) | set(two.provenance()["sha256"]) == found
    batch = task.dataset("0k", 0)
    last = torch.cat([torch.zeros_like(batch.supports), batch.supports], dim=1)
    assert task.score([(batch, Answered(batch.targets, last))]).facts_found == 1


@lacking
def test_books_of_training_and_test_are_others():
    splits = data.index()["books"]["splits"]
    authors = {s: {b["title"].rpartition(" by ")[2] for b in splits[s].values()} for s in splits}
    assert not authors["train"] & authors["test"]


@lacking
def test_sentences_of_books_that_were_kept_are_those_of_counting_again():
    kept, text = books.backgrounds("test")[0], books.read("test")[0]
    again = books._background(text[:30_000])
    count = len(again.sentences)
    assert count > 20 and kept.sentences[:count] == again.sentences and kept.length == len(text)
    for name in ("starts", "tokens"):
        assert (getattr(kept, name)[:count] == getattr(again, name)).all()


def test_without_data_a_task_says_what_it_lacks(monkeypatch, tmp_path):
    monkeypatch.delenv("RELENGTH_DATA", raising=False)
    assert "RELENGTH_DATA is not set" in TASKS["babi_one_fact"]().lacks()
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path))
    assert "has no babi/tasks_1-20_v1-2_en.zip" in TASKS["babi_one_fact"]().lacks()
    with pytest.raises(RelengthError, match="RELENGTH_DATA"):
        TASKS["babi_one_fact"]().provenance()
