"""Tests of bAbI whose answers are places that no training sample names.

Source: "MemReasoner: A Memory-Augmented LLM Architecture for Multi-Hop Reasoning", Section 4.3.3,
and Tables 18 and 20, which ask one model trained on two facts three things: answers among new
places, BABILong's second task and its first.
"""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from relength.tasks.base import Split
from relength.tasks.facts import (
    LENGTHS,
    Episode,
    FactsTask,
    Length,
    OneFact,
    TwoFacts,
    if_files,
)

# Section 4.3.3, in the order in which it is printed.
MOVED = {
    "office": "library",
    "garden": "garage",
    "kitchen": "cafe",
    "bathroom": "attic",
    "bedroom": "basement",
    "hallway": "gym",
}
NEW = "moved"
ONE_FACT = "one-fact-"  # before the length, where BABILong is asked for one fact


def moved(episode: Episode) -> Episode:
    """The episode with each of the six places exchanged, in its lines and in its answer.

    >>> moved(Episode(("John went to the office.",), "Where is John?", "office", (0,))).lines
    ('John went to the library.',)
    """
    return episode._replace(lines=tuple(map(_moved, episode.lines)), answer=_moved(episode.answer))


def _moved(text: str) -> str:
    return re.sub("|".join(MOVED), lambda place: MOVED[place[0]], text)


class _NewPlaces(FactsTask):
    """bAbI's test twice: as it is published, and with its places exchanged."""

    # An answer that still names an old place is wrong, also beside the right one.
    labels: ClassVar[tuple[str, ...]] = (*MOVED, *MOVED.values())

    lengths: Annotated[tuple[Length, ...], Field(strict=False)] = ()

    def splits(self) -> dict[str, Split]:
        known = super().splits()
        first = {name: known.pop(name) for name in ("train", "validation", "babi")}
        return {**first, NEW: Split(0, 0, self.test_size), **known}

    def episodes(self, split: str, seed: int) -> list[Episode]:
        if split != NEW:
            return super().episodes(split, seed)
        return [moved(episode) for episode in super().episodes("babi", seed)]


class OneFactNewPlaces(_NewPlaces, OneFact):
    """Questions where somebody is, at places that training never names.

    >>> from relength.tasks.facts import episodes
    >>> story = "1 John is in the bathroom.\\n2 John goes to the garden."
    >>> (episode,) = episodes(story + "\\n3 Where is John? \\tgarden\\t2")
    >>> moved(episode).lines[-1], moved(episode).answer
    ('John goes to the garage.', 'garage')
    """

    name: Literal["babi_one_fact_new_places"] = "babi_one_fact_new_places"


class TwoFactsNewPlaces(_NewPlaces, TwoFacts):
    r"""Questions where a thing is, asked in every way in which the paper's ablations ask.

    one_fact_lengths: of BABILong's first task, which asks for one fact

    >>> from relength.tasks.facts import episodes
    >>> story = "1 Mary got the milk.\n2 Mary went to the office."
    >>> (episode,) = episodes(story + "\n3 Where is the milk? \toffice\t1 2")
    >>> moved(episode).lines[-1], moved(episode).answer
    ('Mary went to the library.', 'library')
    """

    name: Literal["babi_two_facts_new_places"] = "babi_two_facts_new_places"
    lengths: Annotated[tuple[Length, ...], Field(strict=False)] = if_files(LENGTHS)
    one_fact_lengths: Annotated[tuple[Length, ...], Field(strict=False)] = if_files(LENGTHS[:4])

    @property
    def context_lengths(self) -> tuple[Length, ...]:
        return (*self.lengths, *self.one_fact_lengths)

    def splits(self) -> dict[str, Split]:
        of_one = (f"{ONE_FACT}{length}" for length in self.one_fact_lengths)
        return {**super().splits(), **dict.fromkeys(of_one, Split(0, 0, self.long_size))}

    def episodes(self, split: str, seed: int) -> list[Episode]:
        if not split.startswith(ONE_FACT):
            return super().episodes(split, seed)
        length = split.removeprefix(ONE_FACT)
        one = OneFact(source=self.source)
        return [one.long(length, i) for i in range(self._split(split).size)]
