r"""Stories of bAbI's first two tasks, drawn from the same grammar, for where its files are missing.

Source: the published files (Weston et al., "Towards AI-Complete Question Answering", 2015; version
1.2, en-10k), whose grammar and shares were inferred from them; the tests compare both. Four persons
move between six places, in task 2 they also take three things along and drop them:

- Everybody and everything begins somewhere, which nobody tells.
- A person, an act and a place are drawn until they fit: nobody moves to where they are, takes what
  is not there, or drops what they have not.
- After every second fact there may be a question. One of the last five facts is drawn among those
  that let ask for a place: in task 1 the question is about whoever moved, in task 2 about the thing
  that was taken or dropped.
- Task 2 asks where a thing is if the lines tell it by two facts: who took it, and then moved; or
  who dropped it, and had moved before.
- A story ends with its fifth question.

>>> print(text("qa1_single-supporting-fact", "test")[:107])
1 Mary moved to the hallway.
2 Mary travelled to the garden.
3 Where is Mary? 	garden	2
4 Sandra journeyed
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from relength.streams import EVALUATION_SEED, stream

PLACES = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
PERSONS = ("Daniel", "John", "Mary", "Sandra")
THINGS = ("apple", "football", "milk")
VERBS = {
    "move": ("journeyed to", "moved to", "travelled to", "went back to", "went to"),
    "take": ("got", "grabbed", "picked up", "took"),
    "drop": ("discarded", "dropped", "left", "put down"),
}
DROPPED_THERE = 0.2  # share of drops that say "there"; all takes say it
BETWEEN = 2  # facts from one chance of a question to the next
RECENT = 5  # facts that a question may be about
QUESTIONS = 5  # of a story
STORIES = {"train": 2_000, "test": 200}

Pick = Callable[[Sequence[Any]], Any]


class Fact(NamedTuple):
    """A line of a story: who did what, to which place or with which thing; line: its number."""

    act: str
    who: str
    what: str
    line: int


class Asked(NamedTuple):
    """A question: about whom or what, the place that answers it, and the facts that tell."""

    subject: str
    place: str
    supports: tuple[Fact, ...]


class World:
    """The places of persons and things, and the holders of things.

    places   of every person, and of every thing that nobody has
    holders  of things that somebody has
    """

    def __init__(self, pick: Pick):
        self.pick = pick
        self.places = {each: pick(PLACES) for each in (*PERSONS, *THINGS)}
        self.holders: dict[str, str] = {}

    def next(self, acts: Sequence[str], line: int) -> Fact:
        """Let something happen, and tell it."""
        while True:
            who, act = self.pick(PERSONS), self.pick(acts)
            if options := self._options(who, act):
                what = self.pick(options)
                if act != "move" or what != self.places[who]:
                    break
        if act == "move":
            self.places[who] = what
        elif act == "take":
            self.holders[what] = who
            del self.places[what]
        else:
            del self.holders[what]
            self.places[what] = self.places[who]
        return Fact(act, who, what, line)

    def _options(self, who: str, act: str) -> Sequence[str]:
        if act == "move":  # to any place: whoever draws their own draws all anew
            return PLACES
        if act == "take":
            return [thing for thing in THINGS if self.places.get(thing) == self.places[who]]
        return [thing for thing in THINGS if self.holders.get(thing) == who]


def about_person(fact: Fact, told: list[Fact]) -> Asked:
    """Ask where the person of a fact is now."""
    last = _last_move(fact.who, told)
    return Asked(fact.who, last.what, (last,))


def about_thing(fact: Fact, told: list[Fact]) -> Asked | None:
    """Ask where the thing of a fact is now; None where no two facts tell it."""
    if fact.act == "move":
        return None
    had = next(one for one in reversed(told) if one.act != "move" and one.what == fact.what)
    if had.act == "take":
        place = _last_move(had.who, [one for one in told if one.line > had.line])
    else:
        place = _last_move(had.who, [one for one in told if one.line < had.line])
    return place and Asked(f"the {had.what}", place.what, (had, place))


def _last_move(who: str, told: list[Fact]) -> Fact | None:
    moves = (fact for fact in reversed(told) if fact.act == "move" and fact.who == who)
    return next(moves, None)


TASKS = {
    "qa1_single-supporting-fact": (("move",), about_person),
    "qa2_two-supporting-facts": (("move", "take", "drop"), about_thing),
}


def story(file: str, random: Any) -> list[str]:
    """The numbered lines of one story as a file of bAbI has them.

    random  a generator of NumPy's
    """

    def pick(options: Sequence[Any]) -> Any:
        return options[int(random.random() * len(options))]

    acts, ask = TASKS[file]
    world, told, lines, asked = World(pick), [], [], 0
    while asked < QUESTIONS:
        told.append(world.next(acts, len(lines) + 1))
        lines.append(_said(told[-1], random))
        if len(told) % BETWEEN:
            continue
        if possible := [found for fact in told[-RECENT:] if (found := ask(fact, told))]:
            subject, place, supports = pick(possible)
            numbers = " ".join(str(fact.line) for fact in supports)
            lines.append(f"Where is {subject}? \t{place}\t{numbers}")
            asked += 1
    return [f"{number} {line}" for number, line in enumerate(lines, start=1)]


def _said(fact: Fact, random: Any) -> str:
    verbs = VERBS[fact.act]
    verb = verbs[int(random.random() * len(verbs))]
    there = fact.act == "take" or (fact.act == "drop" and random.random() < DROPPED_THERE)
    return f"{fact.who} {verb} the {fact.what}{' there' * there}."


@cache
def text(file: str, part: str) -> str:
    """A file of generated stories, always the same, with as many as bAbI's own has.

    file  as bAbI names it, without the part
    part  ``train`` (10,000 questions) or ``test`` (1,000)
    """
    random = stream(EVALUATION_SEED, "data", "babi_stories", file, part)
    every = (story(file, random) for _ in range(STORIES[part]))
    return "".join(f"{line}\n" for lines in every for line in lines)
