"""English sentences and their German translations, trained on at some lengths, tested on others.

Source: "Plug, Play, and Generalize: Length Extrapolation with PANM", Sections 3.4 and D.6, on
Multi30K (Elliott et al., 2016), whose sentences describe pictures. Files are read from where
RELENGTH_DATA points, or downloaded (:mod:`relength.tasks.data`).

A length is that of the English sentence, in words and marks. Pairs of equal length keep the order
of the files: training, validation and test file.

Sentences are cut in small letters by one of two readings: *words* keeps hyphens and genitives whole
and needs no library, though a pre-tokenizer of the library tokenizers that has its pattern gives
the same (a test); *bert* is that library's pre-tokenizer of BERT, which parts them.
"""

import gzip
import hashlib
import re
from collections import Counter
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from relength.errors import RelengthError
from relength.specs.fields import added
from relength.specs.kinds import TOKENS, Kind
from relength.streams import EVALUATION_SEED, stream
from relength.tasks import data, likelihood
from relength.tasks.base import EOS, PAD, SPECIALS, UNK, Pair, Split, Task
from relength.tasks.batch import TokensToTokens, pad_tokens
from relength.tasks.metrics import Metrics, amount, share, tokens_right
from relength.tasks.pretrained import EXTRA

if TYPE_CHECKING:
    from torch import Tensor

INDEX = "multi30k"
PARTS = ("train", "val", "test_2016_flickr")
ALL = 31_014  # pairs
# Words and marks of the longest sentences, a target's with its end; a test counts them.
MOST = {"words": (40, 45), "bert": (41, 46)}
# Words with their hyphens, an English genitive, any other mark on its own.
WORD = re.compile(r"\w+(?:-\w+)*|'s\b|[^\w\s]")


class NextTokenMetrics(Metrics):
    """Tokens of a text, each after the right ones before it.

    next_token  share of tokens that have the highest score
    perplexity  e to the power of the mean -log p of the right tokens
    """

    next_token: float = share(
        "next-token accuracy",
        beside="next token",
        about="share of tokens that have the highest score",
    )
    perplexity: float = amount("perplexity", margin="length", beside="perplexity")


class Multi30K(Task):
    """Translation into German, split by the length of the English sentence.

    train        the shorter sentences, or the longer ones, without those held out
    validation   a random part of the same lengths, which is never trained on
    iid          the same again, as a test
    length       the other lengths, or a random part of them
    dev          the same again, for the learning curve

    All samples belong to the task: seeds share them. The vocabulary has the commonest words of the
    training sentences of both languages; any other word is one and the same unknown. A size is the
    most that a set has.

    shorter  percent of the pairs that count as shorter
    longer_trained  whether the longer ones are trained on
    """

    kind: ClassVar[Kind] = TOKENS
    metrics: ClassVar[type[Metrics]] = NextTokenMetrics
    measure: ClassVar[str] = "next_token"
    shorter: ClassVar[int]
    longer_trained: ClassVar[bool] = False

    name: str
    cut_by: Literal["words", "bert"] = added(
        "words", before="words", description="what a sentence is cut into"
    )
    sentences: int = Field(
        ALL, gt=1, le=ALL, description="pairs of sentences, a random part of all"
    )
    words: int = Field(12_000, gt=len(SPECIALS), description="size of the vocabulary, at most")
    validation_size: int = Field(1_000, gt=0, description="pairs that are held out")
    test_size: int = Field(ALL, gt=0, description="most pairs of a test")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.words,)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Special tokens, then words; a token's id is its place here."""
        return _vocabulary(self)

    def splits(self) -> dict[str, Split]:
        shorter = self.sentences * self.shorter // 100
        known = self.sentences - shorter if self.longer_trained else shorter
        held_out = min(self.validation_size, known - 1)
        other = min(self.test_size, self.sentences - known)
        return {
            "train": Split(0, 0, known - held_out),
            "dev": Split(0, 0, other),
            "validation": Split(0, 0, held_out),
            "iid": Split(0, 0, min(self.test_size, held_out)),
            "length": Split(0, 0, other),
        }

    def dataset(self, split: str, seed: int) -> TokensToTokens:
        return self.encode(self.samples(split))

    def samples(self, split: str) -> list[Pair]:
        """The samples of a split as text."""
        size = self._split(split).size
        known, other = split_up(self)
        if split in ("dev", "length"):
            return [other[i] for i in self.drawn("part", len(other), size)]
        held_out = self.drawn("held out", len(known), self.splits()["validation"].size)
        if split == "train":
            return [known[i] for i in np.setdiff1d(np.arange(len(known)), held_out)]
        return [known[held_out[i]] for i in self.drawn("iid", len(held_out), size)]

    def encode(self, pairs: list[Pair]) -> TokensToTokens:
        """Token ids of the pairs; every target ends with the end token."""
        index = _places(self)
        return pad_tokens(
            [[index.get(word, UNK) for word in pair.source] for pair in pairs],
            [[*(index.get(word, UNK) for word in pair.target), EOS] for pair in pairs],
            padding=PAD,
        )

    def loss(self, outputs: "Tensor", batch: TokensToTokens) -> "Tensor":
        """Cross-entropy, the mean over all German tokens of a batch, its ends included."""
        from relength.tasks.losses import cross_entropy

        return cross_entropy(outputs, batch)

    def right(self, outputs: "Tensor", batch: TokensToTokens) -> "Tensor":
        """The share of each sentence's tokens that have the highest score."""
        return tokens_right(outputs, batch)

    def score(self, answers: "list[tuple[TokensToTokens, Tensor]]") -> NextTokenMetrics:
        items, loss, right, _ = likelihood.means(self.name, answers)
        return NextTokenMetrics(
            items=items, next_token=right, perplexity=likelihood.perplexity(loss)
        )

    def shown(self, batch: TokensToTokens, row: int) -> Pair:
        source = self.spelled(batch.inputs[row, : int(batch.input_lengths[row])].tolist())
        target = batch.targets[row, : int(batch.target_lengths[row])].tolist()
        return Pair(("START", *source, "END"), self.spelled(target))

    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        known = self.vocabulary
        symbols = (known[token] if token < len(known) else "<unk>" for token in tokens)
        return tuple(s.strip("<>").upper() if s in SPECIALS else s for s in symbols)

    def provenance(self) -> dict[str, Any]:
        found = _found()
        return {"source": found.source, "sha256": found.sha256}

    def text_sizes(self) -> tuple[tuple[int, int], ...]:
        return (MOST[self.cut_by],)

    def lacks(self) -> str:
        if self.cut_by == "bert" and find_spec("tokenizers") is None:
            return f"the library tokenizers is not installed ({EXTRA})"
        return data.lacks_unpacked(INDEX)


class Multi30K80(Multi30K):
    """The shorter four fifths are trained on.

    >>> tokens("Two young, White males.")
    ('two', 'young', ',', 'white', 'males', '.')
    """

    shorter: ClassVar[int] = 80

    name: Literal["multi30k_80"] = "multi30k_80"


class Multi30K50(Multi30K):
    """The shorter half is trained on.

    >>> tokens("A woman's T-shirt")
    ('a', 'woman', "'s", 't-shirt')
    """

    shorter: ClassVar[int] = 50

    name: Literal["multi30k_50"] = "multi30k_50"


class Multi30KLonger50(Multi30K):
    """The longer half is trained on (Appendix D.6).

    >>> Multi30KLonger50().splits()["length"].size == Multi30K50().sentences // 2
    True
    """

    shorter: ClassVar[int] = 50
    longer_trained: ClassVar[bool] = True

    name: Literal["multi30k_longer_50"] = "multi30k_longer_50"


def tokens(sentence: str, cut_by: str = "words") -> tuple[str, ...]:
    """The words and marks of a sentence, in small letters.

    >>> tokens("A boy's T-shirt.", "bert")
    ('a', 'boy', "'", 's', 't', '-', 'shirt', '.')
    """
    if cut_by == "words":
        return tuple(WORD.findall(sentence.lower()))
    return tuple(word for word, _ in _of_bert().pre_tokenize_str(sentence.lower()))


@lru_cache(maxsize=1)
def _of_bert() -> Any:
    """BERT's pre-tokenizer. Raises RelengthError where the library is not installed."""
    try:
        from tokenizers.pre_tokenizers import BertPreTokenizer
    except ImportError:
        raise RelengthError(
            f"Cutting sentences as BERT does needs the library tokenizers: {EXTRA}."
        ) from None
    return BertPreTokenizer()


def split_up(task: Multi30K) -> tuple[list[Pair], list[Pair]]:
    """Pairs of the lengths trained on, and of the others, the shortest first in both."""
    every = _pairs(task.cut_by)
    random = stream(EVALUATION_SEED, "evaluation", INDEX, "sentences")  # one part for every split
    chosen = [every[i] for i in np.sort(random.permutation(len(every))[: task.sentences])]
    ordered = sorted(chosen, key=lambda pair: len(pair.source))
    cut = len(ordered) * task.shorter // 100
    shorter, longer = ordered[:cut], ordered[cut:]
    return (longer, shorter) if task.longer_trained else (shorter, longer)


@lru_cache(maxsize=4)
def _vocabulary(task: Multi30K) -> tuple[str, ...]:
    """The commonest words of the training part; of equally common ones the first in the alphabet.

    A word that occurs once is left out.
    """
    counts = Counter(word for pair in task.samples("train") for side in pair for word in side)
    known = sorted((-count, word) for word, count in counts.items() if count > 1)
    return SPECIALS + tuple(word for _, word in known[: task.words - len(SPECIALS)])


@lru_cache(maxsize=4)
def _places(task: Multi30K) -> dict[str, int]:
    return {symbol: i for i, symbol in enumerate(_vocabulary(task))}


@lru_cache(maxsize=2)
def _pairs(cut_by: str) -> list[Pair]:
    """Every pair of sentences, file by file. RelengthError where the files do not fit together."""
    texts, found = _found().texts, []
    for part in PARTS:
        english, german = (texts[f"{part}.{tongue}.gz"].splitlines() for tongue in ("en", "de"))
        if len(english) != len(german):
            raise RelengthError(
                f"{part}.en.gz has {len(english)} lines and {part}.de.gz {len(german)}: replace "
                "them by the files that data_index.json lists."
            )
        found += [
            Pair(tokens(a, cut_by), tokens(b, cut_by)) for a, b in zip(english, german, strict=True)
        ]
    return found


@lru_cache(maxsize=1)
def _found() -> data.Found:
    """The texts of all files, each checked against its SHA-256.

    Raises RelengthError where they are missing or damaged.
    """
    entry, folder = data.index()[INDEX], data._folder()
    if folder is None and data._offline():
        raise RelengthError(
            "Multi30K has no data: RELENGTH_DATA is not set and RELENGTH_OFFLINE forbids "
            f"downloads; let RELENGTH_DATA name a folder with {entry['folder']}."
        )
    packed: dict[str, bytes] = {}
    for name, file in entry["files"].items():
        try:
            if folder is None:
                packed[name] = data._retrieve(file, name).read_bytes()
            else:
                packed[name] = (folder / entry["folder"] / name).read_bytes()
        except (OSError, ValueError) as error:
            raise RelengthError(
                f"Multi30K has no data: {name} could not be had ({type(error).__name__}); let "
                f"RELENGTH_DATA name a folder that has it in {entry['folder']}."
            ) from None
        if hashlib.sha256(packed[name]).hexdigest() != file["sha256"]:
            raise RelengthError(
                f"{entry['folder']}/{name} is damaged or another version: replace it with "
                f"{file['url']}."
            )
    return data.Found(
        "download" if folder is None else "RELENGTH_DATA",
        {name: gzip.decompress(content).decode("utf-8") for name, content in packed.items()},
        {name: file["sha256"] for name, file in entry["files"].items()},
    )


TASKS = {
    "multi30k_80": Multi30K80,
    "multi30k_50": Multi30K50,
    "multi30k_longer_50": Multi30KLonger50,
}
