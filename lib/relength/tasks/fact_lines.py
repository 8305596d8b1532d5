"""Tell the lines of a BABILong context apart for each read: wanted, near at hand, or a novel.

With this a wrong read says what went wrong: an earlier line about the same person is a matter of
order, any other line one of retrieval. No paper defines these kinds.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from relength.tasks import books
from relength.tasks.facts import (
    Episode,
    Length,
    OneFact,
    TwoFacts,
    TwoFactsThenOne,
    subject,
    without_questions,
)

# The number of a kind is its place here.
#   text    a sentence of a book
#   fact    a line of bAbI about somebody or something else
#   same    another line about whom or what the read is after
#   wanted  the line that the read should find
KINDS = ("text", "fact", "same", "wanted")
TEXT, FACT, SAME, WANTED = range(len(KINDS))


class Sought(NamedTuple):
    """The aim of a read: whom or what, and the place of the wanted line, if there is one."""

    subject: str
    place: int | None


class Kinds(NamedTuple):
    """The lines of one context.

    kinds  (H, E) of each read and row, numbers of :data:`KINDS`
    facts  rows that hold lines of bAbI, and their texts
    """

    kinds: np.ndarray
    facts: dict[int, str]


def known(task: Any) -> bool:
    """Tell whether lines of a task's contexts have kinds: those of bAbI in BABILong."""
    return isinstance(task, OneFact | TwoFacts | TwoFactsThenOne)


def sought(episode: Episode, reads: int) -> list[Sought]:
    """Return the aim of each of so many reads: the last ones the supporting facts, in their order.

    The first fact is about the subject of the question, a later one about who is in the fact before
    it. A read before the first fact has no wanted line.

    >>> lines = "Mary got the milk.", "John moved to the hall.", "Mary went to the garden."
    >>> sought(Episode(lines, "Where is the milk?", "garden", (0, 2)), 2)
    [Sought(subject='milk', place=0), Sought(subject='Mary', place=2)]
    """
    asked = subject(episode.question)
    found = [Sought(asked, None)] * max(reads - len(episode.supports), 0)
    for i, place in enumerate(episode.supports):
        about = episode.lines[episode.supports[i - 1]].split()[0] if i else asked
        found.append(Sought(about, place))
    return found[-reads:]


def kinds(task: OneFact | TwoFacts | TwoFactsThenOne, length: Length, i: int, reads: int) -> Kinds:
    """The rows of question ``i`` of a test of BABILong as a batch has them."""
    facts = without_questions(task.long("0k", i)).lines
    return of_lines(task.long(length, i), facts, reads, task.rows_of)


def of_lines(
    episode: Episode, facts: tuple[str, ...], reads: int, rows_of: Callable[[str], int]
) -> Kinds:
    """The rows of an episode with such facts among its lines, in the same order.

    rows_of  how many rows a line takes
    """
    rows = [rows_of(line) for line in episode.lines]
    first = np.concatenate([[0], np.cumsum(rows)])
    places, line = [], 0
    for fact in facts:
        line = episode.lines.index(fact, line)
        places.append(line)
        line += 1
    found = np.full((reads, int(first[-1])), TEXT)
    for read, (about, wanted) in enumerate(sought(episode, reads)):
        for place in places:
            same = about.lower() in books.words(episode.lines[place])
            found[read, first[place]] = SAME if same else FACT
        if wanted is not None:
            found[read, first[wanted]] = WANTED
    return Kinds(found, {int(first[place]): episode.lines[place] for place in places})
