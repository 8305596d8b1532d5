"""Help with words: printed tables as grids, numbers in a sentence, and lines of a page."""

import textwrap
from collections.abc import Iterable
from typing import Any

import pandas as pd

from relength.specs import published
from relength.verdicts.wording import noun_for

WIDTH = 66  # letters of a line that a page shows without scrolling
MOST_DIGITS = 9  # beyond these a mean of printed numbers differs from its decimal form by rounding


def wrapped(said: str) -> str:
    """Wrap sentences at WIDTH letters, for a notebook to print; a longer word has its own line."""
    return textwrap.fill(said, WIDTH, break_long_words=False, break_on_hyphens=False)


def grid(artifact: str, of: str = "value") -> pd.DataFrame:
    """A printed table as rows and columns, in the order in which it is printed.

    of: "value" or "spread". Cells that are not printed or not legible are NaN.
    """
    cells = published.table(artifact)
    wide = cells.pivot(index="row", columns="column", values=of)
    return wide.loc[cells["row"].unique(), cells["column"].unique()]


def decimal(value: float, digits: int = 1) -> str:
    """A number with at most so many digits after the point, halves away from zero: 74.4, 60."""
    exact = round(float(value), MOST_DIGITS)
    shift = 10**digits
    rounded = int(abs(exact) * shift + 0.5 + 10**-MOST_DIGITS) / shift * (-1 if exact < 0 else 1)
    return f"{rounded:g}"


def span(counts: Iterable[int], noun: str) -> str:
    """Counts of something from the fewest to the most: *5 seeds*, *1 to 5 seeds*, *1 seed*."""
    listed = sorted(counts)
    return f"{from_to(listed[0], listed[-1])} {noun_for(listed[-1], noun)}"


def from_to(low: Any, high: Any) -> str:
    """Two ends, or the one value that both are: *1 to 5*, *5*."""
    return f"{low}" if low == high else f"{low} to {high}"


def numbers(values: Iterable[float], digits: int = 1) -> str:
    """Several numbers: *53, 33 and 22*."""
    return words(decimal(value, digits) for value in values)


def words(items: Iterable[str]) -> str:
    """Items in a sentence: *a*, *a and b*, *a, b and c*."""
    listed = list(items)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} and {listed[-1]}"


def higher_lower(one: pd.Series, other: pd.Series) -> str:
    """Compare two rows cell by cell: *higher in 8, lower in 4, equal in 12 of 24 cells*."""
    more, less = int((one > other).sum()), int((one < other).sum())
    equal = len(one) - more - less
    return f"higher in {more}, lower in {less}, equal in {equal} of {len(one)} cells"


def capital(text: str) -> str:
    """A text with a capital at its beginning, and the rest as it is: *BLEU in percent*."""
    return text[:1].upper() + text[1:]


def sentences(*said: str) -> str:
    """Each text that is not empty as a sentence.

    >>> sentences("two of five agree", "the third was counted (as a test.)")
    'Two of five agree. The third was counted (as a test.)'
    """
    ended = (text if text.endswith((".", ".)")) else f"{text}." for text in said if text)
    return " ".join(map(capital, ended))
