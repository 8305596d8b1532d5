"""CFQ: English questions and the SPARQL queries that answer them; split by the queries' length.

Source: Keysers et al., "Measuring Compositional Generalization: A Comprehensive Method on Realistic
Data" (2020). The archive is the authors' own, ``cfq.tar.gz``; of it are read the questions and
queries with placeholders for entities (``cfq/dataset.json``) and one split
(``cfq/splits/query_complexity_split.json``). How they are used is that of "Monotonic Location
Attention for Length Generalization", Section 6, and its released code, which loads the same archive
through TensorFlow Datasets.
"""

import io
import json
import re
import string
import tarfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from relength.errors import RelengthError
from relength.streams import EVALUATION_SEED, stream
from relength.tasks import data
from relength.tasks.base import SPECIALS, UNK, Pair, Split, TextTask
from relength.tasks.batch import Batch

SAMPLES, SPLIT = "cfq/dataset.json", "cfq/splits/query_complexity_split.json"
QUESTION, QUERY = "questionPatternModEntities", "sparqlPatternModEntities"
FIELD = re.compile(rf'"({QUESTION}|{QUERY})"\s*:\s*("(?:[^"\\]|\\.)*")')
CHUNK, LONGEST_FIELD = 2**20, 2**16  # characters; a field may be cut in two by the end of a chunk
PUNCTUATION = re.compile(f"([{re.escape(string.punctuation)}])")

# Split of the task -> key of the published split, which numbers the samples.
PARTS = {
    "train": "trainIdxs",
    "validation": "trainIdxs",  # of these, the ones that the run trains on
    "dev": "devIdxs",
    "iid": "trainIdxs",
    "length": "testIdxs",
}
SIZES = {"trainIdxs": 100_654, "devIdxs": 9_512, "testIdxs": 9_512}
SEEN = 2_000  # training questions that tell how well the training set itself is learned

Samples = dict[str, list[Pair]]  # by key of the published split


class Cfq(TextTask):
    """The length split (query complexity): short queries are trained on, long ones tested.

    train              100,654 questions
    dev                9,512 questions with long queries, of the distribution of the test set, as in
                       the released configuration
    validation, iid    2,000 of the questions that the run trains on. The archive has no others of
                       their distribution, so they tell whether the training set was learned
    length             9,512 questions with long queries

    A source ends with the end token, as in the released code; the vocabulary is that of the
    training samples. A size below the full one takes a random part of a set: the training part, and
    so what is validated on, belongs to the run's seed, every other one to the task. Reading the
    archive takes minutes, once per process.

    >>> print(*question_tokens("Did M0's editor direct M1?"))
    Did M0 ' s editor direct M1 ?
    >>> print(*query_tokens("SELECT count(*) WHERE {\\nM0 ns:film.film.edited_by m.0x }"))
    SELECT count ( * ) WHERE { M0 film.film.edited_by m_0x }
    """

    dev_splits: ClassVar[tuple[str, ...]] = ("dev",)
    source_ends: ClassVar[bool] = True

    name: Literal["cfq"] = "cfq"
    train_size: int = Field(100_654, gt=0, le=100_654, description="training samples")
    dev_size: int = Field(9_512, gt=0, le=9_512, description="samples of the development set")
    test_size: int = Field(9_512, gt=0, le=9_512, description="samples of the test set")
    validation_size: int = Field(SEEN, gt=0, le=SEEN, description="training samples looked at")

    def splits(self) -> dict[str, Split]:
        return {
            "train": Split(0, 0, self.train_size),
            "dev": Split(0, 0, self.dev_size),
            "validation": Split(0, 0, min(self.validation_size, self.train_size)),
            "iid": Split(0, 0, min(self.test_size, self.validation_size, self.train_size)),
            "length": Split(0, 0, self.test_size),
        }

    @property
    def symbols(self) -> tuple[str, ...]:
        """Every token of the training samples."""
        return _symbols(data.archive("cfq").path)

    def draw(self, random: np.random.Generator, length: int) -> Pair:
        """One of the samples whose query has so many tokens, at random."""
        those = [
            pair
            for part in SIZES
            for pair in samples(data.archive("cfq").path)[part]
            if len(pair.target) == length
        ]
        if not those:
            raise RelengthError(
                f"Task {self.name} has no query of {length} tokens: choose another length."
            )
        return those[random.integers(len(those))]

    def pairs(self, split: str, seed: int) -> list[Pair]:
        size, part = self._split(split).size, PARTS[split]
        if split in ("validation", "iid"):
            pool = self.pairs("train", seed)
        else:
            pool = samples(data.archive("cfq").path)[part]
        if split == "train":
            random = stream(seed, "data", self.name, split)
        else:
            random = stream(EVALUATION_SEED, "evaluation", self.name, part)
        return [pool[i] for i in np.sort(random.permutation(len(pool))[:size])]

    def encode(self, pairs: list[Pair]) -> Batch:
        """Token ids of the pairs; symbols that training never shows are the unknown one."""
        known = frozenset(self.vocabulary)

        def shown(text: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(symbol if symbol in known else SPECIALS[UNK] for symbol in text)

        return super().encode([Pair(shown(p.source), shown(p.target)) for p in pairs])

    def provenance(self) -> dict[str, Any]:
        """Name the place where the archive was found, and its SHA-256. RelengthError where it is
        not.
        """
        found = data.archive("cfq")
        return {"source": found.source, "sha256": {found.path.name: found.sha256}}

    def lacks(self) -> str:
        return data.lacks("cfq")


def question_tokens(text: str) -> tuple[str, ...]:
    """Words and, each on its own, the marks of punctuation."""
    return tuple(PUNCTUATION.sub(r" \1 ", text).split())


def query_tokens(text: str) -> tuple[str, ...]:
    """A query in tokens: ``count(*)`` in four, without ``ns:``, with ``m_`` for ``m.``"""
    tokens = (t.removeprefix("ns:") for t in text.replace("count(*)", "count ( * )").split())
    return tuple("m_" + t.removeprefix("m.") if t.startswith("m.") else t for t in tokens)


@lru_cache(maxsize=1)
def samples(archive: Path) -> Samples:
    """The samples of each part of the split. RelengthError where the file is not as published."""
    way_out = "replace it, or remove it to download it again"
    try:
        with tarfile.open(archive, "r:gz") as opened:
            found = {
                name: _read(name, opened.extractfile(member))
                for member in opened
                if (name := member.name.removeprefix("./")) in (SAMPLES, SPLIT)
            }
        every, parts = found[SAMPLES], found[SPLIT]
        return {key: [every[i] for i in parts[key]] for key in SIZES}
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise RelengthError(f"{archive} cannot be read ({error}): {way_out}.") from None
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise RelengthError(
            f"{archive} is not in CFQ's format ({type(error).__name__}: {error}): {way_out}."
        ) from None


def _read(name: str, file: IO[bytes]) -> Any:
    return json.load(file) if name == SPLIT else _pairs(file)


def _pairs(file: IO[bytes]) -> list[Pair]:
    """Every question with its query, in the order of the file."""
    texts: dict[str, list[str]] = {QUESTION: [], QUERY: []}
    for name, text in _fields(io.TextIOWrapper(file, encoding="utf-8")):
        texts[name].append(text)
    return [
        Pair(question_tokens(question), query_tokens(query))
        for question, query in zip(*texts.values(), strict=True)
    ]


def _fields(file: IO[str]) -> Iterator[tuple[str, str]]:
    """Name and text of the two fields of every sample, in order.

    The file has gigabytes, nearly all of them in other fields: as one JSON document it would take
    ten times its size in memory.
    """
    rest = ""
    while chunk := file.read(CHUNK):
        rest, end = rest + chunk, 0
        for found in FIELD.finditer(rest):
            yield found[1], json.loads(found[2])
            end = found.end()
        rest = rest[max(end, len(rest) - LONGEST_FIELD) :]


@lru_cache(maxsize=1)
def _symbols(archive: Path) -> tuple[str, ...]:
    train = samples(archive)["trainIdxs"]
    return tuple(sorted({symbol for pair in train for text in pair for symbol in text}))
