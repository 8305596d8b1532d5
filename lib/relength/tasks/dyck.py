"""Dyck languages: strings of matching brackets of several kinds, and what may follow each prefix.

Source: Suzgun et al., "Memory-Augmented Recurrent Neural Networks Can Learn Generalized Dyck
Languages" (2019), as "Plug, Play, and Generalize: Length Extrapolation with PANM" uses it (Sections
3.2 and D.2). The grammar, with n kinds of brackets:

    S → (_i S )_i  with probability p/n;  S → S S  with probability q;  S → ε  otherwise

A model reads a string symbol by symbol and says after each which symbols may come next: every
opening bracket, and the closing one of the bracket that was opened last and is still open.

What the papers leave open is an assumption here:

* a string of a given length is drawn as the grammar draws it, on the condition that it has this
  length. (The cited generator draws until a length fits, and cuts expansions that get too long.)
* tests have strings of exactly their length, all different from each other; a test that asks for as
  many strings as there are, or more, has each of them once.
"""

from bisect import bisect
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, islice
from math import comb
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from relength.errors import RelengthError
from relength.specs.kinds import CHANNELS, Kind
from relength.streams import EVALUATION_SEED, stream
from relength.tasks.base import Pair, Split, Task, is_whole
from relength.tasks.batch import Batch, ChannelsToChannels
from relength.tasks.metrics import Metrics, amount, share

if TYPE_CHECKING:
    from torch import Tensor

BRACKETS = "([{<)]}>"  # opening ones, then the closing ones in the same order
KINDS = len(BRACKETS) // 2
# Draws in a row that give nothing new; then strings that the grammar hardly makes fill up a set.
FRUITLESS = 10_000
POSSIBLE = 0.5  # an output from here on says that its symbol may follow
String = tuple[int, ...]  # kind i opens as i, and closes as i + KINDS
Length = Annotated[int, Field(ge=2, description="L, longest training string")]


class SetMetrics(Metrics):
    """Sets of symbols, one after each prefix of a sequence.

    sequence_accuracy  share of sequences of which every set is right
    set_accuracy       share of all sets that are right
    correct_prefix     mean share of a sequence that is right before the first wrong set
    squared_error      mean over symbols and prefixes, as the loss is
    """

    sequence_accuracy: float = share(
        "sequence accuracy", whole=True, about="share of strings of which every set is right"
    )
    set_accuracy: float = share(
        "set accuracy", beside="sets right", about="share of prefixes whose set is right"
    )
    correct_prefix: float = share(
        "right before first error",
        beside="before the first error",
        about="share of a string before the first wrong set",
    )
    squared_error: float = amount("squared error")


class DyckTask(Task):
    """Strings of a Dyck language, and the symbols that may follow each of their prefixes.

    Lengths count symbols and are even. Training strings have 2 to ``train_length``; their lengths
    are as frequent as in the grammar.

    kinds    n, of brackets
    repeats  whether a training string may occur again. The cited generator makes different ones;
             of two kinds and at most ten symbols there are 1,618, fewer than the 5,000 of the
             paper. Without repeats a set has as many as there are
    """

    kind: ClassVar[Kind] = CHANNELS
    metrics: ClassVar[type[Metrics]] = SetMetrics
    measure: ClassVar[str] = "sequence_accuracy"
    dev_splits: ClassVar[tuple[str, ...]] = ("train",)  # the checkpoint is selected on them

    kinds: int
    train_length: Length
    nest: float = Field(0.5, gt=0, lt=1, description="p of the grammar; not in the PANM paper")
    join: float = Field(0.25, gt=0, lt=1, description="q of the grammar; not in the PANM paper")
    repeats: bool
    train_size: int = Field(5_000, gt=0, description="training strings")
    validation_size: int = Field(1_000, gt=0, description="in-distribution validation strings")
    test_size: int = Field(5_000, gt=0, description="strings per test")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.train_length % 2:
            raise ValueError("train_length is even: every bracket that opens also closes")
        if self.nest + self.join >= 1:
            raise ValueError("nest and join together are below 1, so that strings can end")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return 2 * self.kinds, 2 * self.kinds

    @property
    def test_lengths(self) -> tuple[int, ...]:
        """The lengths of the tests: the longest of training, then L + 2, 2L, 4L and 8L."""
        longest = self.train_length
        return tuple(sorted({longest, longest + 2, 2 * longest, 4 * longest, 8 * longest}))

    def text_sizes(self) -> tuple[tuple[int, int], ...]:
        longest = self.test_lengths[-1]
        return ((longest, longest),)

    def splits(self) -> dict[str, Split]:
        longest = self.train_length
        there = sum(count(self.kinds, n) for n in range(2, longest + 1, 2))

        def possible(size: int) -> int:
            return size if self.repeats else min(size, there)

        return {
            "train": Split(2, longest, possible(self.train_size)),
            "validation": Split(2, longest, possible(self.validation_size)),
            **{
                str(n): Split(n, n, min(self.test_size, count(self.kinds, n)))
                for n in self.test_lengths
            },
        }

    def dataset(self, split: str, seed: int) -> Batch:
        return self.encode(self.strings(split, seed))

    def strings(self, split: str, seed: int) -> list[String]:
        """The strings of a split: of training for the run's seed, of others for the task."""
        shortest, longest, size = self._split(split)
        language = f"dyck_{self.kinds}"  # tests are the same whether training strings repeat
        random = (
            stream(seed, "data", language, split)
            if split == "train"
            else stream(EVALUATION_SEED, "evaluation", language, split)
        )
        lengths = range(shortest, longest + 1, 2)
        drawn = self._drawn(random, lengths)
        if self.repeats and split in ("train", "validation"):
            return list(islice(drawn, size))
        everything = (string for n in lengths for string in every(self.kinds, n))
        if size == sum(count(self.kinds, n) for n in lengths):
            return list(everything)
        found: dict[String, None] = {}
        fruitless = 0
        while len(found) < size and fruitless < FRUITLESS:
            before = len(found)
            found[next(drawn)] = None
            fruitless = 0 if len(found) > before else fruitless + 1
        missing = (string for string in everything if string not in found)
        return [*found, *islice(missing, size - len(found))]

    def sample(
        self, random: np.random.Generator, batch_size: int, length: int | tuple[int, int]
    ) -> Batch:
        """``batch_size`` strings of one length, or of the lengths in an inclusive range.

        Raises RelengthError for lengths that no string has.
        """
        bounds = length if isinstance(length, tuple | list) else (length, length)
        if not (
            len(bounds) == 2
            and all(is_whole(n) and n >= 2 and n % 2 == 0 for n in bounds)
            and bounds[0] <= bounds[1]
        ):
            raise RelengthError(
                f"Task {self.name} has no strings of length {length!r}: choose an even number "
                "from 2, or two of them, shortest first."
            )
        drawn = self._drawn(random, range(bounds[0], bounds[1] + 1, 2))
        return self.encode(list(islice(drawn, batch_size)))

    def _drawn(self, random: np.random.Generator, lengths: range) -> Iterator[String]:
        return Grammar.of(self.nest, self.join).draw(random, self.kinds, lengths)

    def encode(self, strings: list[String]) -> Batch:
        """One-hot symbols (B, T, 2n), and zeros and ones (B, T, 2n) for what may follow."""
        import torch

        lengths = torch.tensor([len(string) for string in strings])
        steps = int(lengths.max())
        symbols = np.full((len(strings), steps), -1, dtype=np.int64)
        for row, string in zip(symbols, strings, strict=True):
            row[: len(string)] = string
        closing = symbols >= KINDS
        channels = np.where(closing, symbols - KINDS + self.kinds, symbols)
        inputs = channels[:, :, None] == np.arange(2 * self.kinds)
        targets = np.zeros_like(inputs)
        targets[:, :, : self.kinds] = symbols[:, :, None] >= 0
        wanted = innermost(symbols)
        rows, places = (wanted >= 0).nonzero()
        targets[rows, places, self.kinds + wanted[rows, places]] = True
        inputs, targets = (torch.from_numpy(x).to(torch.float32) for x in (inputs, targets))
        mask = torch.arange(steps) < lengths[:, None]
        return ChannelsToChannels(inputs, targets, mask, lengths, lengths.clone())

    def follow(self, text: str) -> str:
        """Write what may follow each prefix of a text of brackets."""
        string = tuple(self._symbols.index(c) for c in text)
        string = tuple(s if s < self.kinds else s - self.kinds + KINDS for s in string)
        return " ".join(self.shown(self.encode([string]), 0).target)

    def loss(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        """Mean squared error over symbols and the prefixes of a string, then over strings."""
        from relength.tasks.losses import squared_errors

        return squared_errors(outputs, batch).mean()

    def right(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        """Strings (B,) of which every set is right, after every prefix."""
        return (self._sets_right(outputs, batch) | ~batch.mask).all(-1).double()

    def score(self, answers: "list[tuple[Batch, Tensor]]") -> SetMetrics:
        from relength.tasks.losses import squared_errors

        items = whole = sets = sets_right = 0
        before = errors = 0.0
        for batch, outputs in answers:
            outputs = outputs[:, : batch.targets.shape[1]]
            right = self._sets_right(outputs, batch)
            items += len(batch)
            whole += int((right | ~batch.mask).all(1).sum())
            sets += int(batch.mask.sum())
            sets_right += int((right & batch.mask).sum())
            until = (right & batch.mask).int().cumprod(1).sum(1).double()
            before += float((until / batch.target_lengths).sum())
            errors += float(squared_errors(outputs, batch).sum())
        return SetMetrics(
            items=items,
            sequence_accuracy=whole / items,
            set_accuracy=sets_right / sets,
            correct_prefix=before / items,
            squared_error=errors / items,
        )

    def shown(self, batch: Batch, row: int) -> Pair:
        n = int(batch.target_lengths[row])
        source = self.spelled(batch.inputs[row, :n].tolist())
        return Pair(source, self.spelled(batch.targets[row, :n].tolist()))

    def spelled(self, tokens: list[list[float]]) -> tuple[str, ...]:
        return tuple(
            "".join(c for c, x in zip(self._symbols, step, strict=True) if x >= POSSIBLE)
            for step in tokens
        )

    @property
    def _symbols(self) -> str:
        return BRACKETS[: self.kinds] + BRACKETS[KINDS : KINDS + self.kinds]

    @staticmethod
    def _sets_right(outputs: "Tensor", batch: Batch) -> "Tensor":
        return ((outputs >= POSSIBLE) == (batch.targets >= POSSIBLE)).all(-1)


class Dyck2(DyckTask):
    """D2: two kinds of brackets, learnt on strings of at most 10 symbols.

    After "([" comes an opening bracket or "]", the paper's own example.

    >>> Dyck2().follow("([])")
    '([) ([] ([) (['
    """

    name: Literal["dyck_2"] = "dyck_2"
    kinds: Literal[2] = 2
    train_length: Length = 10
    repeats: bool = True


class Dyck3(DyckTask):
    """D3: three kinds of brackets, learnt on strings of at most 20 symbols.

    >>> Dyck3().follow("({}[])")
    '([{) ([{} ([{) ([{] ([{) ([{'
    """

    name: Literal["dyck_3"] = "dyck_3"
    kinds: Literal[3] = 3
    train_length: Length = 20
    repeats: bool = True


class Dyck2Unique(Dyck2):
    """D2 with training strings that are all different: the 1,618 that there are.

    >>> Dyck2Unique().splits()["train"].size, Dyck2().splits()["train"].size
    (1618, 5000)
    """

    name: Literal["dyck_2_unique"] = "dyck_2_unique"
    repeats: Literal[False] = False


class Dyck3Unique(Dyck3):
    """D3 with training strings that are all different.

    >>> train = Dyck3Unique().strings("train", seed=0)
    >>> len(train), len(set(train))
    (5000, 5000)
    """

    name: Literal["dyck_3_unique"] = "dyck_3_unique"
    repeats: Literal[False] = False


# --- the language ---------------------------------------------------------------------------------


def count(kinds: int, length: int) -> int:
    """The number of strings of a length: a Catalan number times kinds^(length/2).

    >>> [count(2, length) for length in (2, 4, 6, 8, 10)]
    [2, 8, 40, 224, 1344]
    """
    pairs = length // 2
    return comb(2 * pairs, pairs) // (pairs + 1) * kinds**pairs


def every(kinds: int, length: int) -> Iterator[String]:
    """All strings of a length, each once.

    >>> list(every(1, 4))
    [(0, 4, 0, 4), (0, 0, 4, 4)]
    """
    if not length:
        yield ()
        return
    for inside in range(0, length, 2):  # of the first bracket
        for kind in range(kinds):
            for within in every(kinds, inside):
                for after in every(kinds, length - 2 - inside):
                    yield (kind, *within, kind + KINDS, *after)


def innermost(symbols: np.ndarray) -> np.ndarray:
    """The kind of the bracket opened last and still open after each symbol (B, T); -1 for none.

    symbols  (B, T), rows of a Dyck language, -1 behind their ends
    """
    batch, steps = symbols.shape
    rows = np.arange(batch)
    stack = np.full((batch, steps // 2 + 2), -1)  # its lowest place stays empty
    depth = np.zeros(batch, dtype=np.int64)
    found = np.full((batch, steps), -1)
    for t, now in enumerate(symbols.T):
        opens = (now >= 0) & (now < KINDS)
        depth += opens
        stack[rows[opens], depth[opens]] = now[opens]
        depth -= now >= KINDS
        found[:, t] = np.where(now >= 0, stack[rows, depth], -1)
    return found


class Grammar:
    """The grammar, on the condition that a string has a given length.

    A sentence of k > 0 pairs is one in brackets, with weight p·w(k - 1), or two sentences that are
    not empty, of i and k - i pairs, with weight q·w(i)·w(k - i). w(k) is the probability of k
    pairs; joining a sentence with an empty one changes nothing, and is left out of both.
    """

    def __init__(self, nest: float, join: float):
        self.nest, self.join = nest, join
        # That of no pairs is the smaller root of w = (1 - p - q) + q·w².
        empty = (1 - (1 - 4 * join * (1 - nest - join)) ** 0.5) / (2 * join)
        self.weights = [empty]
        self._rules: list[list[float]] = [[]]

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, nest: float, join: float) -> "Grammar":
        """The grammar of these probabilities; it keeps what it has worked out."""
        return cls(nest, join)

    def weight(self, pairs: int) -> float:
        """The probability that a sentence has that many pairs."""
        w = self.weights
        while len(w) <= pairs:
            k = len(w)
            rules = [self.nest * w[k - 1], *(self.join * w[i] * w[k - i] for i in range(1, k))]
            self._rules.append([x / sum(rules) for x in accumulate(rules)])
            w.append(sum(rules) / (1 - 2 * self.join * w[0]))
        return w[pairs]

    def draw(
        self, random: np.random.Generator, kinds: int, lengths: Iterable[int]
    ) -> Iterator[String]:
        """Strings without end, of lengths as frequent as the grammar makes them."""
        pairs = [length // 2 for length in lengths]
        shares = list(accumulate(self.weight(k) for k in pairs))
        chances = _chances(random)
        while True:
            place = bisect(shares, next(chances) * shares[-1], hi=len(pairs) - 1)
            yield self._string(pairs[place], kinds, chances)

    def _string(self, pairs: int, kinds: int, chances: Iterator[float]) -> String:
        written: list[int] = []
        left = [pairs]  # sentences to be expanded, by their pairs, and below 0 closing brackets
        while left:
            k = left.pop()
            if k < 0:
                written.append(-k)
                continue
            first = bisect(self._rules[k], next(chances), hi=k - 1) if k > 1 else 0
            if first:  # two sentences
                left += [k - first, first]
                continue
            kind = int(next(chances) * kinds)
            written.append(kind)
            left.append(-(kind + KINDS))
            if k > 1:
                left.append(k - 1)
        return tuple(written)


def _chances(random: np.random.Generator) -> Iterator[float]:
    """Numbers from 0 to 1, drawn by the thousand."""
    while True:
        yield from random.random(1024).tolist()
