"""SCAN: simple commands, compositions of them, and the actions they ask for; split by length.

Source: Lake and Baroni, "Generalization without systematicity" (2018), Supplement: the phrase
structure grammar and the interpretation function, from which all 20,910 commands follow. A test
compares every line with the published file. How the length split is used is that of "Monotonic
Location Attention for Length Generalization", Section 6, and its released code.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from relength.errors import RelengthError
from relength.streams import EVALUATION_SEED, stream
from relength.tasks.base import Pair, Split, TextTask

ACTIONS = {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP"}
TURNS = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
TIMES = {"twice": 2, "thrice": 3}
LONGEST_TRAINED = 22  # actions
HELD_OUT = 3_920  # of the 16,990 commands up to that length, for validation


def verb_phrases() -> Iterator[Pair]:
    """V: an action, with or without a direction, *opposite* it, or *around* it."""
    for word, action in ACTIONS.items():
        yield Pair((word,), (action,))
    for word in (*ACTIONS, "turn"):
        acted = (ACTIONS[word],) if word in ACTIONS else ()
        for direction, turn in TURNS.items():
            yield Pair((word, direction), (turn, *acted))
            yield Pair((word, "opposite", direction), (turn, turn, *acted))
            yield Pair((word, "around", direction), (turn, *acted) * 4)


def sentences() -> Iterator[Pair]:
    """S: a verb phrase, once, twice or thrice."""
    for phrase in verb_phrases():
        yield phrase
        for word, times in TIMES.items():
            yield Pair((*phrase.source, word), phrase.target * times)


@lru_cache(maxsize=1)
def commands() -> tuple[Pair, ...]:
    """C, every command there is: a sentence, or two of them joined by *and* or *after*.

    >>> len(commands())
    20910
    """
    simple = tuple(sentences())
    joined = [
        Pair(
            (*a.source, word, *b.source),
            a.target + b.target if word == "and" else b.target + a.target,
        )
        for a in simple
        for b in simple
        for word in ("and", "after")
    ]
    return (*simple, *joined)


class Scan(TextTask):
    """The length split: trained on commands of at most 22 actions, tested on those of 24 to 48.

    train        13,070 of the 16,990 short commands
    validation   the other 3,920; the development set. It is in distribution, as in the released
                 configuration. The authors' are a published file; ours are drawn once
    iid          the validation commands again: there are no others of the training distribution, so
                 ``best_iid`` is selected on the commands that it is tested on
    length       all 3,920 long commands

    A source ends with the end token, as in the released code. A size below the full one takes a
    random part of a set: the training part belongs to the run's seed, every other one to the task.

    >>> (sample,) = [pair for pair in commands() if pair.source == ("jump", "around", "left")]
    >>> print(*sample.target)
    I_TURN_LEFT I_JUMP I_TURN_LEFT I_JUMP I_TURN_LEFT I_JUMP I_TURN_LEFT I_JUMP
    """

    symbols: ClassVar[tuple[str, ...]] = (
        *(*ACTIONS, "turn", *TURNS, "opposite", "around", *TIMES, "and", "after"),
        *(*ACTIONS.values(), *TURNS.values()),
    )
    dev_splits: ClassVar[tuple[str, ...]] = ("validation",)
    max_length: ClassVar[int] = 48
    source_ends: ClassVar[bool] = True

    name: Literal["scan"] = "scan"
    train_size: int = Field(13_070, gt=0, le=13_070, description="training commands")
    dev_size: int = Field(HELD_OUT, gt=0, le=HELD_OUT, description="not used: see validation_size")
    test_size: int = Field(HELD_OUT, gt=0, le=HELD_OUT, description="commands per test set")
    validation_size: int = Field(
        HELD_OUT, gt=0, le=HELD_OUT, description="commands of the validation set"
    )

    def splits(self) -> dict[str, Split]:
        return {
            "train": Split(1, LONGEST_TRAINED, self.train_size),
            "validation": Split(1, LONGEST_TRAINED, self.validation_size),
            "iid": Split(1, LONGEST_TRAINED, min(self.test_size, self.validation_size)),
            "length": Split(24, 48, self.test_size),
        }

    def draw(self, random: np.random.Generator, length: int) -> Pair:
        """One of the commands with this many actions, at random."""
        those = by_length().get(length)
        if those is None:
            raise RelengthError(
                f"Task {self.name} has no command of {length} actions: choose one of "
                f"{', '.join(map(str, sorted(by_length())))}."
            )
        return those[random.integers(len(those))]

    def pairs(self, split: str, seed: int) -> list[Pair]:
        size = self._split(split).size
        if split == "length":
            pool = [pair for pair in commands() if len(pair.target) > LONGEST_TRAINED]
        else:
            short = [pair for pair in commands() if len(pair.target) <= LONGEST_TRAINED]
            order = stream(EVALUATION_SEED, "evaluation", self.name, "validation").permutation(
                len(short)
            )
            chosen = order[HELD_OUT:] if split == "train" else order[:HELD_OUT]
            pool = [short[i] for i in np.sort(chosen)]
        random = (
            stream(seed, "data", self.name, split)
            if split == "train"
            else stream(EVALUATION_SEED, "evaluation", self.name, "part")
        )
        return [pool[i] for i in np.sort(random.permutation(len(pool))[:size])]


@lru_cache(maxsize=1)
def by_length() -> dict[int, list[Pair]]:
    found: dict[int, list[Pair]] = {}
    for pair in commands():
        found.setdefault(len(pair.target), []).append(pair)
    return found
