"""Stories drawn in place of bAbI's files: what their questions rest on, and shares as published."""

import re
from collections import Counter

import pytest

from relength.errors import RelengthError
from relength.papers.memreasoner import experiments
from relength.runs.store import on_generated_data
from relength.specs.spec import make_spec
from relength.tasks import data
from relength.tasks.babi_stories import PERSONS, PLACES, RECENT, THINGS, text
from relength.tasks.babi_stories import TASKS as FILES
from relength.tasks.facts import (
    OneFact,
    TwoFacts,
    episodes,
    lacks_published,
    subject,
    without_questions,
)

ONE, TWO = FILES
PARTS = re.compile(r"(\w+) ((?:\w+ )+?)(?:to )?the (\w+)( there)?\.")
TAKES, DROPS = {"got", "grabbed", "picked up", "took"}, {"discarded", "dropped", "left", "put down"}
GENERATED = {"source": "generated", "train_size": 64, "validation_size": 16, "test_size": 16}
GENERATED |= {"long_size": 4}
lacking = pytest.mark.skipif(bool(why := data.lacks_files("babi")), reason=f"bAbI: {why}")


def parts(line: str) -> tuple[str, str, str]:
    """A line taken apart: who did it, what they did, and the place or thing."""
    who, verb, what, _ = PARTS.fullmatch(line).groups()
    verb = verb.strip()
    return who, "take" if verb in TAKES else "drop" if verb in DROPS else "move", what


def answers(lines: tuple[str, ...]) -> dict[str, str]:
    """Where everybody and everything is, as far as lines tell: a world of its own."""
    at: dict[str, str] = {}
    holds: dict[str, set[str]] = {who: set() for who in PERSONS}
    for who, act, what in map(parts, lines):
        if act == "move":
            at |= dict.fromkeys((who, *holds[who]), what)
        elif act == "take":
            assert not any(what in held for held in holds.values())
            assert at.get(what) == at.get(who) or None in (at.get(what), at.get(who))
            holds[who].add(what)
            at |= {what: at[who]} if who in at else {}
        else:
            assert what in holds[who]  # nobody drops what they have not
            holds[who].remove(what)
    return at


def test_nobody_moves_to_where_they_are():
    for file in FILES:
        for story in stories(text(file, "test")):
            at: dict[str, str] = {}
            for line in story:
                if "\t" not in line:
                    who, act, what = parts(line)
                    assert act != "move" or at.get(who) != what
                    at |= {who: what} if act == "move" else {}


@pytest.mark.parametrize("file", FILES)
def test_lines_answer_every_question_and_the_supporting_facts_suffice(file):
    asked = episodes(text(file, "test"))
    assert len(asked) == 1_000
    for episode in asked:
        short = without_questions(episode)
        about = subject(short.question)
        assert answers(short.lines)[about] == short.answer
        facts = [short.lines[place] for place in short.supports]
        assert len(facts) == (1 if file == ONE else 2)
        assert answers_from(facts) == short.answer
        assert about in (*PERSONS, *THINGS) and about in facts[0]
        # One of the last facts is about what is asked for.
        assert any(about in line for line in short.lines[-RECENT:])
        assert len(short.lines) % 2 == 0


def answers_from(facts: list[str]) -> str:
    """The place that supporting facts name, in the order of hops: who had it, where they were."""
    told = list(map(parts, facts))
    assert len({who for who, *_ in told}) == 1 and told[-1][1] == "move"
    return told[-1][2]


@pytest.mark.parametrize("file", FILES)
def test_stories_are_the_same_in_every_process_and_other_ones_in_every_part(file):
    first, other = text(file, "test"), text.__wrapped__(file, "test")
    assert first == other and not text(file, "train").startswith(first[:200])
    assert len(episodes(text(file, "train"))) == 10_000


@pytest.mark.parametrize("task", [OneFact, TwoFacts])
def test_a_task_on_stories_needs_neither_files_nor_books(task, monkeypatch):
    monkeypatch.delenv("RELENGTH_DATA", raising=False)
    made = task(**GENERATED)
    assert not made.lacks() and made.tests == ("babi", "0k")
    assert made.provenance()["source"] == "generated" and lacks_published()
    train = made.dataset("train", 0)
    assert made.shape == (len(made.vocabulary),) and int(train.sentences.max()) < made.shape[0]
    unknown = made.vocabulary.index("<unk>")
    assert not (train.sentences == unknown).any()
    assert (train.sentences[train.texts] > 0).any(1).all()  # other text is there
    for length, size in (("babi", 16), ("0k", 4)):
        assert len(made.dataset(length, 0)) == size
    asked = data.index()["babilong"]["questions"][task.asked][0]
    known = episodes(text(task.file, "test"))
    assert made.episodes("0k", 0)[0] == without_questions(known[asked])


def test_generated_stories_are_not_hidden_in_books():
    with pytest.raises(RelengthError, match="books"):
        make_spec(
            task={"name": "babi_one_fact", "source": "generated", "lengths": ("1k",)},
            model="MemReasoner", training="facts", scale="smoke", seed=0,
        )  # fmt: skip


def test_the_source_is_part_of_the_key_and_files_leave_it_as_it_was():
    def key(**fields):
        return make_spec(
            task={"name": "babi_one_fact", "lengths": ("0k",), **fields},
            model="MemReasoner", training="facts", scale="smoke", seed=0,
        ).key  # fmt: skip

    assert key() == key(source="files") != key(source="generated")


@pytest.mark.parametrize("here", [True, False])
def test_only_smoke_runs_fall_back_on_stories(here, monkeypatch):
    """And none of them lacks data."""
    monkeypatch.setattr(experiments, "lacks_published", lambda: "" if here else "nothing is here")
    for found in experiments.EXPERIMENTS:
        sources = {s: {run.task.source for run in found.grid(s, 0)} for s in ("smoke", "reduced")}
        assert sources == {"smoke": {"files" if here else "generated"}, "reduced": {"files"}}
        if not here:
            assert not any(run.task.lacks() for run in found.grid("smoke", 0))


def test_a_record_says_that_its_stories_were_generated(monkeypatch):
    monkeypatch.delenv("RELENGTH_DATA", raising=False)
    found = OneFact(source="generated").provenance()
    assert on_generated_data({"provenance": {"data": found}})


# --- beside the published files -------------------------------------------------------------------


def stories(file: str) -> list[list[str]]:
    found: list[list[str]] = []
    for line in file.splitlines():
        number, _, rest = line.partition(" ")
        if number == "1":
            found.append([])
        found[-1].append(rest)
    return found


def published(file: str) -> str:
    return data.find("babi").texts[f"{file}_train.txt"]


def shares(file: str) -> dict[str, Counter[str | int]]:
    """Count what the stories of a file have, over all of them."""
    found: dict[str, Counter[str | int]] = {
        name: Counter() for name in ("sentences", "persons", "waits", "first", "answers", "age")
    }
    for story in stories(file):
        facts: list[str] = []
        since, first = 0, True
        for line in story:
            if "\t" in line:
                question, answer, _ = line.split("\t")
                found["first" if first else "waits"][since] += 1
                found["answers"][answer] += 1
                about = subject(question.strip())
                age = next(i for i, fact in enumerate(reversed(facts)) if about in fact)
                found["age"][age] += 1
                since, first = 0, False
                continue
            since += 1
            facts.append(line)
            who, rest = line.split(" ", 1)
            found["persons"][who] += 1
            found["sentences"][re.sub("|".join((*PLACES, *THINGS)), "…", rest)] += 1
    return found


@lacking
@pytest.mark.parametrize("file", FILES)
def test_shares_are_those_of_the_published_files(file):
    """Total variation between both is what two samples of one distribution of this size have."""
    ours, theirs = shares(text(file, "train")), shares(published(file))
    for name, counted in theirs.items():
        most = 0.05 if name in ("first", "waits") else 0.025
        n, m = counted.total(), ours[name].total()
        apart = sum(abs(counted[k] / n - ours[name][k] / m) for k in counted | ours[name]) / 2
        assert apart < most, (name, apart)
    assert set(ours["sentences"]) == set(theirs["sentences"])
    lengths = [sum(map(len, stories(f))) for f in (text(file, "train"), published(file))]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.03)


@lacking
def test_words_are_those_of_the_published_files():
    def facts(texts: list[str]) -> set[str]:
        return {word for one in texts for word in re.findall("[a-z]+", one.lower())}

    assert facts([text(file, "train") for file in FILES]) == facts(
        [*data.find("babi").texts.values()]
    )
