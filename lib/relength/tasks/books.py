"""Sentences of books: what facts are hidden in, and what a language model is to be able to write.

Books are those of the index (:mod:`relength.tasks.data`), split into training, validation and test.
How a long context is drawn from them is that of Kuratov et al., "BABILong" (2024), and its public
generator.
"""

import re
from collections import Counter
from functools import cache
from typing import NamedTuple

import numpy as np

from relength.kept import kept
from relength.tasks import bpe, data

CODE = ("tasks.books", "tasks.bpe")
LEAST_TOKENS = 10  # of a background sentence, as BABILong has it
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|\d+|[^\w\s]|_")
END = re.compile(r"""[.!?]+["'”’)\]]*\s+(?=["'“‘(\[]*[A-Z])""")
# After these a full stop ends no sentence.
TITLES = {
    *("mr", "mrs", "ms", "dr", "st", "messrs", "prof", "rev", "hon", "capt", "col", "gen", "lieut"),
    *("esq", "no", "vol", "etc", "viz"),
}


class Background(NamedTuple):
    """One book's sentences that may stand between facts.

    sentences  texts, in order
    starts     (n,) where each begins in the book, in characters
    tokens     (n,) GPT-2 tokens of each, with the blank before it
    length     of the book, in characters
    """

    sentences: tuple[str, ...]
    starts: np.ndarray
    tokens: np.ndarray
    length: int


def words(text: str) -> tuple[str, ...]:
    """Lower-case words, numbers and marks.

    >>> words("Mary's book, 1851.")
    ("mary's", 'book', ',', '1851', '.')
    """
    return tuple(WORD.findall(text.lower().replace("’", "'")))


def sentences(text: str) -> list[tuple[int, str]]:
    """The sentences of a text whose blanks are single, each with the place where it begins.

    A sentence ends at a mark before a blank and a capital, but not after a title or an initial.

    >>> [sentence for _, sentence in sentences("Mr. Bell left. “Why?” I asked J. Bell.")]
    ['Mr. Bell left.', '“Why?”', 'I asked J. Bell.']
    """
    found, start = [], 0
    for end in END.finditer(text):
        *_, last = re.split(r"[\s“‘(\[]", text[start : end.start()])
        initial = len(last) == 1 and last.isalpha() and last != "I"
        if end[0].startswith(".") and (initial or last.lower() in TITLES):
            continue
        found.append((start, text[start : end.end()].rstrip()))
        start = end.end()
    if start < len(text):
        found.append((start, text[start:]))
    return found


@cache
def read(split: str) -> tuple[str, ...]:
    """The texts of a split, line ends as blanks. Raises RelengthError where they are missing."""
    return tuple(" ".join(text.split()) for text in data.books(split).values())


@cache
def commonest(split: str) -> tuple[str, ...]:
    """The words of a split, those that occur most often first; of two as common, by letters."""
    texts = read(split)
    return kept(f"commonest-{split}", lambda: _commonest(texts), *texts, code=CODE)


def _commonest(texts: tuple[str, ...]) -> tuple[str, ...]:
    counts = Counter(word for text in texts for word in words(text))
    return tuple(sorted(counts, key=lambda word: (-counts[word], word)))


@cache
def backgrounds(split: str) -> tuple[Background, ...]:
    """The books of a split as background; the first and the last sentence of each are left out."""
    texts = read(split)
    # Counting takes seconds, and every process that trains on long contexts wants the same counts.
    given = bpe.merges(), *texts
    return kept(f"backgrounds-{split}", lambda: tuple(map(_background, texts)), *given, code=CODE)


def _background(text: str) -> Background:
    whole = [
        (start, sentence, tokens)
        for start, sentence in sentences(text)[1:-1]
        if (tokens := bpe.count(f" {sentence}")) >= LEAST_TOKENS
    ]
    starts, found, tokens = zip(*whole, strict=True)
    return Background(found, np.array(starts), np.array(tokens), len(text))


def passage(books: tuple[Background, ...], random: np.random.Generator, tokens: int) -> list[str]:
    """Sentences in their order from a random place of a random book, of exactly so many tokens.

    The sentence that stands at that place is left out, since it is cut; the last one is cut to fit.
    Where a book ends too early, another random place goes on.
    """
    found: list[str] = []
    while tokens > 0:
        book = books[random.integers(len(books))]
        first = int(np.searchsorted(book.starts, random.integers(book.length), side="right"))
        ends = np.cumsum(book.tokens[first:])
        whole = int(np.searchsorted(ends, tokens, side="right"))
        found += book.sentences[first : first + whole]
        tokens -= int(ends[whole - 1]) if whole else 0
        if tokens > 0 and whole < len(ends):
            found.append(bpe.beginning(f" {book.sentences[first + whole]}", tokens).strip())
            tokens = 0
    return found
