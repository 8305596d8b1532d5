"""Two tasks of the mathematics dataset, character by character, with longer numbers in the test.

Source: Saxton et al., "Analysing mathematical reasoning abilities of neural models" (2019), and the
generator published with it, version 1.0: what is drawn, and how it is put. Trained and tested on as
Csordás et al. (2021) do, whom "Plug, Play, and Generalize: Length Extrapolation with PANM" follows
(Section 3.3, Table 4). Tests compare with questions that the published generator has made.

How large numbers are is told by an *entropy*, in decimal digits: a number is drawn from 10 to the
power of its entropy. A question of two numbers divides its entropy between them at random.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from relength.streams import EVALUATION_SEED, stream
from relength.tasks.base import Pair, Split, TextTask
from relength.tasks.batch import Batch

if TYPE_CHECKING:
    from torch import Tensor

LEVELS, PER_LEVEL, HELD_OUT = 3, 666_666, 10_000  # published questions; of each level
LONGEST_QUESTION, LONGEST_ANSWER = 160, 30  # characters

SUMS = (
    *("{p} + {q}", "{p}+{q}", "Work out {p} + {q}.", "Calculate {p} + {q}.", "What is {p} + {q}?"),
    *("Add {p} and {q}.", "Add together {p} and {q}.", "Put together {p} and {q}."),
    *("Sum {p} and {q}.", "Total of {p} and {q}.", "What is {p} plus {q}?"),
)
DIFFERENCES = (
    *("{p} - {q}", "Work out {p} - {q}.", "Calculate {p} - {q}.", "What is {p} - {q}?"),
    *("What is {p} minus {q}?", "What is {p} take away {q}?", "What is {q} less than {p}?"),
    "Subtract {q} from {p}.",
)
DISTANCES = tuple(  # asked for where p is the larger one
    f"What is the {word} between {pair}?"
    for word in ("distance", "difference")
    for pair in ("{p} and {q}", "{q} and {p}")
)
PLACE = "What is the {place} digit of {number}?"
GROUPS = ("thousands", "millions", "billions", "trillions")
PLACES = (
    *("units", "tens", "hundreds"),
    *(f"{part}{group}" for group in GROUPS for part in ("", "ten ", "hundred ")),
)
PHRASES = (*SUMS, *DIFFERENCES, *DISTANCES, PLACE)
LETTERS = "".join((*(p.format(p="", q="", place="", number="") for p in PHRASES), *PLACES))


class Mathematics(TextTask):
    """Questions and answers; each character is a token.

    train        questions with the entropies of training; each seed draws its own
    validation   others with these entropies; nothing is selected on them
    iid          the first of them, as a test
    length       larger entropies: the published split *extrapolate*, which is reported

    No question occurs twice, in one split or in two. A length is a whole entropy.
    """

    symbols: ClassVar[tuple[str, ...]] = tuple(sorted({*LETTERS, *"0123456789.-"}))
    dev_splits: ClassVar[tuple[str, ...]] = ("validation",)
    max_length: ClassVar[int] = 20
    trained: ClassVar[tuple[int, int]]
    beyond: ClassVar[tuple[int, int]]

    train_size: int = Field(LEVELS * (PER_LEVEL - HELD_OUT), gt=0, description="training questions")
    dev_size: int = Field(HELD_OUT, gt=0, description="not used: see validation_size")
    test_size: int = Field(HELD_OUT, gt=0, description="questions per test set")
    validation_size: int = Field(LEVELS * HELD_OUT, gt=0, description="questions that are held out")

    def splits(self) -> dict[str, Split]:
        return {
            "train": Split(*self.trained, self.train_size),
            "validation": Split(*self.trained, self.validation_size),
            "iid": Split(*self.trained, min(self.test_size, self.validation_size)),
            "length": Split(*self.beyond, self.test_size),
        }

    def text_sizes(self) -> tuple[tuple[int, int], ...]:
        return ((LONGEST_QUESTION, LONGEST_ANSWER + 1),)

    def pairs(self, split: str, seed: int) -> list[Pair]:
        size = self._split(split).size
        if split == "iid":
            return self.pairs("validation", seed)[:size]
        # A test set is the same however many questions are trained on: training gives way.
        earlier = {"length": (), "validation": ("length",)}.get(split, ("length", "validation"))
        taken = {pair.source for name in earlier for pair in self.pairs(name, seed)}
        found: list[Pair] = []
        for pair in self._questions(split, seed):
            if pair.source not in taken:
                taken.add(pair.source)
                found.append(pair)
                if len(found) == size:
                    return found
        raise AssertionError("questions never end")

    def _questions(self, split: str, seed: int) -> Iterator[Pair]:
        """Questions of a split without end, entropies uniform over its range."""
        shortest, longest, _ = self._split(split)
        random = (
            stream(seed, "data", self.name, split)
            if split == "train"
            else stream(EVALUATION_SEED, "evaluation", self.name, split)
        )
        while True:
            yield self.question(random, random.uniform(shortest, longest))

    def draw(self, random: np.random.Generator, length: int) -> Pair:
        return self.question(random, float(length))

    def question(self, random: np.random.Generator, entropy: float) -> Pair:
        """A question of this entropy that is not too long, and its answer."""
        while True:
            asked, answer = self.asked(random, entropy)
            if len(asked) <= LONGEST_QUESTION and len(answer) <= LONGEST_ANSWER:
                return Pair(tuple(asked), tuple(answer))

    @abstractmethod
    def asked(self, random: np.random.Generator, entropy: float) -> tuple[str, str]:
        """A question and its answer, as text."""

    def loss(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        """Cross-entropy, the mean over all tokens of a batch."""
        from relength.tasks.losses import cross_entropy

        return cross_entropy(outputs, batch)


class AddOrSub(Mathematics):
    """Two integers or decimals are added, or one is taken from the other.

    >>> AddOrSub().asked(np.random.default_rng(0), 4)
    ('What is -2 minus -0.03?', '-1.97')
    """

    trained: ClassVar[tuple[int, int]] = (4, 16)
    beyond: ClassVar[tuple[int, int]] = (16, 20)

    name: Literal["math_add_or_sub"] = "math_add_or_sub"

    def asked(self, random: np.random.Generator, entropy: float) -> tuple[str, str]:
        adds = random.random() < 0.5
        first = max(1.0, random.uniform(0, entropy))
        p, q = (integer_or_decimal(random, part) for part in (first, max(1.0, entropy - first)))
        if adds:
            phrases, answer = SUMS, p + q
        else:
            phrases, answer = (*DIFFERENCES, *(DISTANCES if p >= q else ())), p - q
        phrase = phrases[random.integers(len(phrases))]
        return phrase.format(p=written(p), q=written(q)), written(answer)


class PlaceValue(Mathematics):
    """The digit of a number at a named place.

    >>> random = np.random.default_rng(0)
    >>> question, answer = PlaceValue().asked(random, 4)
    >>> question
    'What is the tens digit of 2304?'
    >>> answer
    '0'
    """

    trained: ClassVar[tuple[int, int]] = (3, 10)
    beyond: ClassVar[tuple[int, int]] = (12, 12)

    name: Literal["math_place_value"] = "math_place_value"

    def asked(self, random: np.random.Generator, entropy: float) -> tuple[str, str]:
        digits = str(integer(random, entropy, signed=False, least=1))
        place = int(random.integers(len(digits)))
        return PLACE.format(place=PLACES[place], number=digits), digits[-1 - place]


def integer(
    random: np.random.Generator, entropy: float, signed: bool = True, least: int = 0
) -> int:
    """A whole number, uniform over about 10 to the power of the entropy of them.

    signed  around zero; else from ``least`` on
    """
    count = 10**entropy + least
    largest = math.ceil(count / 2) if signed else math.ceil(count)
    smallest = -largest if signed else least
    # 128 bits: numpy's own integers have 63, and the largest numbers more.
    return smallest + int.from_bytes(random.bytes(16), "little") % (largest - smallest + 1)


def integer_or_decimal(random: np.random.Generator, entropy: float) -> Decimal:
    """An integer or, as often, a number with at least one digit after the point."""
    if random.random() < 0.5:
        return Decimal(integer(random, entropy))
    while True:
        digits = integer(random, entropy)
        after = int(random.integers(1, math.ceil(entropy), endpoint=True))
        if digits % 10**after:
            return Decimal(digits).scaleb(-after)


def written(value: Decimal) -> str:
    """A number in digits, without a power of ten and without zeros at the end of its fraction.

    >>> written(Decimal("-0.50")), written(Decimal("1E+3")), written(Decimal("0.00"))
    ('-0.5', '1000', '0')
    """
    return format(value.normalize(), "f") if value else "0"


TASKS = {"math_add_or_sub": AddOrSub, "math_place_value": PlaceValue}
