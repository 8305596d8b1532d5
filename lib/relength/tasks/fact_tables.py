"""Tables of the distinct sentences of some episodes in numbers: of words, or of tokenizers.

Numbers below that of the specials are marks, in both; a pretrained tokenizer's own numbers follow.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import numpy as np

from relength.tasks import books, pretrained
from relength.tasks.base import PAD, SPECIALS, UNK

if TYPE_CHECKING:
    from torch import Tensor


class Table(ABC):
    """Rows of a table of sentences, in the order in which they come; row 0 is the empty line.

    known  {sentence: its row}
    """

    def __init__(self, empty: Hashable):
        self.known: dict[Hashable, int] = {empty: 0}
        self.cut: dict[str, list[int]] = {}

    @abstractmethod
    def ids(self, text: str) -> list[int]:
        """A text in the decoder's numbers."""

    @abstractmethod
    def row(self, text: str | tuple[str, ...]) -> int:
        """The row of a sentence that is not cut up; a tuple is what it is cut into."""

    @abstractmethod
    def parts(self, line: str, most: int) -> list[Hashable]:
        """Cut a line into parts of ``most`` words or tokens, in the form of ``known``."""

    @abstractmethod
    def tensors(self, width: int) -> "tuple[Tensor, ...]":
        """Sentences (N, L) in the encoder's numbers; those in the decoder's, where they differ."""

    def rows(self, line: str, most: int) -> list[int]:
        """The rows of a line: one for every ``most`` words of it, and one for an empty line."""
        if line not in self.cut:
            self.cut[line] = [self._place(part) for part in self.parts(line, most)]
        return self.cut[line]

    def _place(self, part: Hashable) -> int:
        return self.known.setdefault(part, len(self.known))


class WordTable(Table):
    """Sentences as words of a vocabulary; a word that it lacks is the unknown one."""

    def __init__(
        self,
        vocabulary: tuple[str, ...],
        words: Callable[[str], tuple[str, ...]] = books.words,
    ):
        super().__init__(())
        self.index = {word: i for i, word in enumerate(vocabulary)}
        self.words = words

    def ids(self, text: str) -> list[int]:
        return self._numbers(self.words(text))

    def _numbers(self, words: tuple[str, ...]) -> list[int]:
        return [self.index.get(word, UNK) for word in words]

    def row(self, text: str | tuple[str, ...]) -> int:
        words = self.words(text) if isinstance(text, str) else text
        return self._place(tuple(self._numbers(words)))

    def parts(self, line: str, most: int) -> list[Hashable]:
        words = self.words(line)
        cut = [words[i : i + most] for i in range(0, len(words), most)] or [()]
        return [tuple(self._numbers(part)) for part in cut]

    def tensors(self, width: int) -> "tuple[Tensor, ...]":
        return (_padded(list(self.known), width),)


class TokenTable(Table):
    """Sentences as tokens of pretrained networks.

    The decoder has a blank before each text, as inside of a longer one. Without an encoder lines
    are parts of the decoder's own text, and none is cut up.

    encoder, decoder  names or folders of the networks
    """

    def __init__(self, encoder: str, decoder: str):
        super().__init__("")
        self.encoder, self.decoder = encoder, decoder

    def ids(self, text: str) -> list[int]:
        return _tokens(self.decoder, f" {text}") if text else []

    def row(self, text: str | tuple[str, ...]) -> int:
        return self._place(text)

    def parts(self, line: str, most: int) -> list[Hashable]:
        return list(token_parts(self.encoder, line, most)) if self.encoder else [line]

    def tensors(self, width: int) -> "tuple[Tensor, ...]":
        spoken = _padded([self.ids(text) for text in self.known])
        if not self.encoder:
            return (spoken,)
        return _padded([_tokens(self.encoder, text) for text in self.known]), spoken


def token_parts(network: str, line: str, most: int) -> tuple[str, ...]:
    """A line cut up after every ``most`` tokens of a network; an empty one is one part."""
    cut = pretrained.tokenizer(network)
    places = cut(line, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    if len(places) <= most:
        return (line,)
    starts = [places[i][0] for i in range(0, len(places), most)]
    return tuple(line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True))


def text_of(network: str, tokens: list[int]) -> str:
    """The text of tokens, without marks."""
    own = [token - len(SPECIALS) for token in tokens if token >= len(SPECIALS)]
    return pretrained.tokenizer(network).decode(own, skip_special_tokens=True)


def _tokens(network: str, text: str) -> list[int]:
    found = pretrained.tokenizer(network)(text, add_special_tokens=False)["input_ids"]
    return [len(SPECIALS) + token for token in found]


def _padded(rows: list[list[int]], width: int = 0) -> "Tensor":
    import torch

    table = np.full((len(rows), width or max(map(len, rows))), PAD)
    for row, numbers in enumerate(rows):
        table[row, : len(numbers)] = numbers
    return torch.from_numpy(table)
