"""Count tokens as GPT-2 does: the unit in which the lengths of long contexts are given.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), Section 2.2.
A text is cut into pieces (words with the space before them, numbers, marks); in each piece the pair
of neighbours that was merged first in training is joined, until no known pair is left. The merges
lie beside this file, with their licence.
"""

import gzip
import re
import sys
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise


def count(text: str) -> int:
    """Count the GPT-2 tokens of a text.

    >>> count("Mary went back to the bathroom.")
    7
    """
    return sum(len(_piece(piece)) for piece in _pieces().findall(text))


def beginning(text: str, tokens: int) -> str:
    """The first tokens of a text, as text; a character that is cut in two is left out.

    >>> beginning("Mary went back to the bathroom.", 3)
    'Mary went back'
    """
    found = [token for piece in _pieces().findall(text) for token in _piece(piece)]
    return b"".join(found[:tokens]).decode("utf-8", errors="ignore")


@lru_cache(maxsize=2**18)
def _piece(piece: str) -> tuple[bytes, ...]:
    """The tokens of a piece."""
    parts = [bytes([byte]) for byte in piece.encode()]
    ranks = _ranks()
    while len(parts) > 1:
        known = [ranks.get(pair, len(ranks)) for pair in pairwise(parts)]
        first = min(known)
        if first == len(ranks):
            break
        joined, i = [], 0
        while i < len(parts):
            whole = i < len(known) and known[i] == first
            joined.append(parts[i] + parts[i + 1] if whole else parts[i])
            i += 1 + whole
        parts = joined
    return tuple(parts)


def merges() -> bytes:
    """GPT-2's list of merges, as it lies beside this file: packed."""
    return files("relength.tasks").joinpath("gpt2_merges.txt.gz").read_bytes()


@cache
def _ranks() -> dict[tuple[bytes, bytes], int]:
    """The place of each pair among the merges."""
    letters = {letter: byte for byte, letter in _letters().items()}
    # The first line names the version.
    _, *lines = gzip.decompress(merges()).decode("utf-8").splitlines()
    pairs = [line.split(" ") for line in lines if line]
    read = {tuple(bytes(letters[c] for c in part) for part in pair): i
            for i, pair in enumerate(pairs)}  # fmt: skip
    return read


def _letters() -> dict[int, str]:
    """The letter that each byte is written as in the list of merges: none is a blank."""
    shown = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1)]
    shown += range(ord("®"), ord("ÿ") + 1)
    hidden = [byte for byte in range(256) if byte not in set(shown)]
    return {byte: chr(byte) for byte in shown} | {b: chr(256 + i) for i, b in enumerate(hidden)}


@cache
def _pieces() -> re.Pattern[str]:
    """GPT-2's pattern for cutting a text; Python's own have no classes of letters and numbers."""
    numeric = filter(str.isnumeric, map(chr, range(sys.maxunicode + 1)))  # letters among them
    digits = re.escape("".join(c for c in numeric if unicodedata.category(c).startswith("N")))
    letter, other = rf"[^\W_{digits}]", rf"(?:(?![^\W_{digits}])[^\s{digits}])"
    return re.compile(
        rf"'s|'t|'re|'ve|'m|'ll|'d| ?{letter}+| ?[{digits}]+| ?{other}+|\s+(?!\S)|\s+"
    )
