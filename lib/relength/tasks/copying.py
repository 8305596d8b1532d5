"""Copying digits, forwards and backwards, with and without repetition, and by place.

Source: "Monotonic Location Attention for Length Generalization", Section 2 and Table 1; for DeDupe
and PosRetrieve Appendix A and Table 5.
What the text leaves out (sizes, uniqueness, what counts as length) is in the released code.
"""

from abc import abstractmethod
from itertools import groupby
from typing import ClassVar, Literal

import numpy as np

from relength.specs.fields import added
from relength.tasks.base import Pair, Split, TextTask

DIGITS = tuple("0123456789")
FAR = (200, 500, 1000)


def repeated(digits: tuple[str, ...]) -> tuple[str, ...]:
    """Each digit as often as the ReCopy rule says: 0-3 once, 4-6 three times, 7-9 five times."""
    return tuple(
        d for digit in digits for d in digit * (1 + 2 * (int(digit) > 3) + 2 * (int(digit) > 6))
    )


class DigitTask(TextTask):
    """Digits drawn uniformly; lengths uniform over a range, counted in digits *before* expansion.

    Training has lengths 5-10, the development set 10-15, the tests are in distribution ("iid") and
    of length 15, 30 and 100. The released generator stops one sample late: 10,001 and 2,001. With a
    ``far_size`` there are tests beyond the paper's, at lengths 200, 500 and 1,000.
    """

    symbols: ClassVar[tuple[str, ...]] = DIGITS

    far_size: int = added(0, before=0, ge=0, description="samples per test beyond length 100")

    def splits(self) -> dict[str, Split]:
        far = FAR if self.far_size else ()
        return {
            "train": Split(5, 10, self.train_size),
            "dev": Split(10, 15, self.dev_size),
            "validation": Split(5, 10, self.validation_size),
            "iid": Split(5, 10, self.test_size),
            "15": Split(15, 15, self.test_size),
            "30": Split(30, 30, self.test_size),
            "100": Split(100, 100, self.test_size),
            **{str(length): Split(length, length, self.far_size) for length in far},
        }

    def draw(self, random: np.random.Generator, length: int) -> Pair:
        return self.pair(tuple(DIGITS[d] for d in random.integers(0, 10, length)))

    @abstractmethod
    def pair(self, digits: tuple[str, ...]) -> Pair:
        """Source and target made of the drawn digits."""


class Copy(DigitTask):
    """The output is the input.

    >>> print(*Copy().pair(tuple("4798")).target)
    4 7 9 8
    """

    name: Literal["copy"] = "copy"

    def pair(self, digits: tuple[str, ...]) -> Pair:
        return Pair(digits, digits)


class ReverseCopy(DigitTask):
    """The output is the input, last digit first.

    >>> print(*ReverseCopy().pair(tuple("4798")).target)
    8 9 7 4
    """

    name: Literal["reverse_copy"] = "reverse_copy"

    def pair(self, digits: tuple[str, ...]) -> Pair:
        return Pair(digits, digits[::-1])


class ReCopy(DigitTask):
    """Each digit is written as often as its value says (:func:`repeated`).

    Table 1 prints four 7s in this example; rule and released code give five.

    >>> print(*ReCopy().pair(tuple("4798")).target)
    4 4 4 7 7 7 7 7 9 9 9 9 9 8 8 8 8 8
    """

    name: Literal["recopy"] = "recopy"

    def pair(self, digits: tuple[str, ...]) -> Pair:
        return Pair(digits, repeated(digits))


class ReverseReCopy(DigitTask):
    """ReCopy with the digits taken last first.

    >>> print(*ReverseReCopy().pair(tuple("4798")).target)
    8 8 8 8 8 9 9 9 9 9 7 7 7 7 7 4 4 4
    """

    name: Literal["reverse_recopy"] = "reverse_recopy"

    def pair(self, digits: tuple[str, ...]) -> Pair:
        return Pair(digits, repeated(digits[::-1]))


class InvReCopy(DigitTask):
    """ReCopy turned around: the repetitions are read, the digits are written.

    Length counts the digits of the *output*; inputs are about 2.8 times longer.

    >>> print(*InvReCopy().pair(tuple("4798")).source)
    4 4 4 7 7 7 7 7 9 9 9 9 9 8 8 8 8 8
    >>> print(*InvReCopy().pair(tuple("4798")).target)
    4 7 9 8
    """

    name: Literal["inv_recopy"] = "inv_recopy"

    def pair(self, digits: tuple[str, ...]) -> Pair:
        return Pair(repeated(digits), digits)


class InvReverseReCopy(DigitTask):
    """Reverse ReCopy turned around: repetitions are read last digit first, digits written in order.

    >>> print(*InvReverseReCopy().pair(tuple("4798")).source)
    8 8 8 8 8 9 9 9 9 9 7 7 7 7 7 4 4 4
    >>> print(*InvReverseReCopy().pair(tuple("4798")).target)
    4 7 9 8
    """

    name: Literal["inv_reverse_recopy"] = "inv_reverse_recopy"

    def pair(self, digits: tuple[str, ...]) -> Pair:
        return Pair(repeated(digits[::-1]), digits)


class DeDupe(DigitTask):
    """Runs of equal digits are read, one digit of each is written.

    Each drawn digit is repeated one, three or five times at random; equal digits that were drawn
    one after the other are one run. Length counts drawn digits. A source ends with the end token,
    as in the released code.

    >>> print(*DeDupe().pair(tuple("44477779999988888")).target)
    4 7 9 8
    """

    source_ends: ClassVar[bool] = True

    name: Literal["dedupe"] = "dedupe"

    def draw(self, random: np.random.Generator, length: int) -> Pair:
        digits = random.integers(0, 10, length)
        repeats = random.choice((1, 3, 5), length)
        return self.pair(tuple(DIGITS[d] for d in np.repeat(digits, repeats)))

    def pair(self, digits: tuple[str, ...]) -> Pair:
        return Pair(digits, tuple(digit for digit, _ in groupby(digits)))


class PosRetrieve(DigitTask):
    """Each digit is a place, counted from 0, and the digit that stands there is retrieved.

    Where the input is too short for a place, n/a is written. The example of Table 5:

    >>> print(*PosRetrieve().pair(tuple("5427969573")).target[:8])
    5 : 6 ; 4 : 9 ;
    >>> print(*PosRetrieve().pair(tuple("07")).target)
    0 : 0 ; 7 : n/a ;
    """

    symbols: ClassVar[tuple[str, ...]] = (*DIGITS, ":", ";", "n/a")

    name: Literal["posretrieve"] = "posretrieve"

    def pair(self, digits: tuple[str, ...]) -> Pair:
        there = dict(zip(DIGITS, digits, strict=False))
        return Pair(digits, tuple(s for d in digits for s in (d, ":", there.get(d, "n/a"), ";")))
