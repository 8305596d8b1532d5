"""All twenty tasks of bAbI at once: trained on the shorter stories, tested on the longer ones.

Source: "Plug, Play, and Generalize: Length Extrapolation with PANM", Section 3.4 and Appendix D.4,
after Weston et al., "Towards AI-Complete Question Answering" (2015). Stories and questions are read
from where RELENGTH_DATA points (:mod:`relength.tasks.data`).

The length of a sample is that of its story, in words and full stops. Questions that an earlier line
of the story asks are left out of it. Where stories have equal lengths, those that come first in the
files count as shorter: training, validation and test file, one after the other.
"""

import re
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from relength.errors import RelengthError
from relength.specs.kinds import TOKENS, Kind
from relength.streams import EVALUATION_SEED, stream
from relength.tasks import data, likelihood
from relength.tasks.base import PAD, SPECIALS, Pair, Split, Task
from relength.tasks.batch import TokensToTokens, pad_tokens
from relength.tasks.facts import episodes
from relength.tasks.metrics import Metrics, amount, exactly_right, share

if TYPE_CHECKING:
    from torch import Tensor

NUMBERS = range(1, 21)  # of bAbI's tasks
PARTS = ("train", "valid", "test")
WORD = re.compile(r"[a-z]+|[.?]")
SYMBOLS = 182  # words of all stories, questions and answers; a test counts them
MOST = 11_000  # questions of a task
# Symbols of the longest story with its question, of tasks with long ones; a test counts them.
LONGEST = {2: 557, 3: 1_360, 5: 789}
LONGEST_OTHER = 363


class ChoiceMetrics(Metrics):
    """One symbol that is chosen as an answer.

    exact_match  share of answers that are right
    perplexity   e to the power of the mean -log p of the right answers: among so many symbols, each
                 as likely as the others, a model could choose as well
    """

    exact_match: float = share(
        "exact match", whole=True, about="share of outputs that are right to the last symbol"
    )
    perplexity: float = amount("perplexity", margin="length", beside="perplexity")


class BabiByLength(Task):
    """Questions about stories, with a single symbol as the answer, split by the story's length.

    train        the shorter stories, ``shorter`` percent of all, without those held out
    validation   a random part of the shorter ones, which is never trained on
    iid          the same again, as a test
    length       the longer stories, or a random part of them
    dev          the same again, for the learning curve; nothing is selected on them

    All samples belong to the task: seeds share them. An answer that is a list, *milk,football*, is
    one symbol. A size is the most that a set has.

    files  of the data index
    """

    kind: ClassVar[Kind] = TOKENS
    metrics: ClassVar[type[Metrics]] = ChoiceMetrics
    measure: ClassVar[str] = "exact_match"
    files: ClassVar[str] = "babi_by_length"

    name: str
    shorter: int
    sorted_within: Literal["task", "all"] = Field(
        "task",
        description="whether each task is sorted and split on its own, as Appendix D.4 says, or "
        "all of them together",
    )
    per_task: int = Field(MOST, gt=0, description="most questions of a task, a random part of them")
    without: Annotated[tuple[Annotated[int, Field(ge=1, le=20)], ...], Field(strict=False)] = Field(
        (), max_length=19, description="bAbI's tasks that are left out, by their numbers"
    )
    validation_size: int = Field(1_000, gt=0, description="questions that are held out")
    test_size: int = Field(len(NUMBERS) * MOST, gt=0, description="most questions of a test")

    @property
    def numbers(self) -> tuple[int, ...]:
        """bAbI's tasks that are asked."""
        return tuple(number for number in NUMBERS if number not in self.without)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(SPECIALS) + SYMBOLS,)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Special tokens, then words and lists of words; a token's id is its place here."""
        return SPECIALS + _symbols()

    def splits(self) -> dict[str, Split]:
        sizes = [min(self.per_task, _count(number)) for number in self.numbers]
        shorter = (
            sum(size * self.shorter // 100 for size in sizes)
            if self.sorted_within == "task"
            else sum(sizes) * self.shorter // 100
        )
        held_out = min(self.validation_size, shorter - 1)
        longer = min(self.test_size, sum(sizes) - shorter)
        return {
            "train": Split(0, 0, shorter - held_out),
            "dev": Split(0, 0, longer),
            "validation": Split(0, 0, held_out),
            "iid": Split(0, 0, min(self.test_size, held_out)),
            "length": Split(0, 0, longer),
        }

    def text_sizes(self) -> tuple[tuple[int, int], ...]:
        return ((max(LONGEST.get(number, LONGEST_OTHER) for number in self.numbers), 1),)

    def dataset(self, split: str, seed: int) -> TokensToTokens:
        return self.encode([pair for _, pair in self.samples(split)])

    def samples(self, split: str) -> list[tuple[int, Pair]]:
        """The samples of a split as text, each with the number of bAbI's task that it is of."""
        size = self._split(split).size
        shorter, longer = split_up(self)
        if split in ("dev", "length"):
            return [longer[i] for i in self.drawn("part", len(longer), size)]
        held_out = self.drawn("held out", len(shorter), self.splits()["validation"].size)
        if split == "train":
            kept = np.setdiff1d(np.arange(len(shorter)), held_out)
            return [shorter[i] for i in kept]
        chosen = self.drawn("iid", len(held_out), size)
        return [shorter[held_out[i]] for i in chosen]

    def kept(self, number: int) -> list[tuple[Pair, int]]:
        """Samples of one of bAbI's tasks, in the order of its files, and the lengths of stories."""
        found = _stories(number)
        # The same part for every way to split them.
        random = stream(EVALUATION_SEED, "evaluation", self.files, number)
        chosen = np.sort(random.permutation(len(found))[: self.per_task])
        return [told(*found[i]) for i in chosen]

    def encode(self, pairs: list[Pair]) -> TokensToTokens:
        """Token ids of the pairs. A target is its one symbol and has no end token."""
        index = _places()
        return pad_tokens(
            [[index[word] for word in pair.source] for pair in pairs],
            [[index[word] for word in pair.target] for pair in pairs],
            padding=PAD,
        )

    def loss(self, outputs: "Tensor", batch: TokensToTokens) -> "Tensor":
        """Cross-entropy of the answers, the mean over a batch."""
        from relength.tasks.losses import cross_entropy

        return cross_entropy(outputs, batch)

    def right(self, outputs: "Tensor", batch: TokensToTokens) -> "Tensor":
        return exactly_right(outputs, batch)

    def score(self, answers: "list[tuple[TokensToTokens, Tensor]]") -> ChoiceMetrics:
        items, loss, right, _ = likelihood.means(self.name, answers)
        return ChoiceMetrics(items=items, exact_match=right, perplexity=likelihood.perplexity(loss))

    def shown(self, batch: TokensToTokens, row: int) -> Pair:
        source = self.spelled(batch.inputs[row, : int(batch.input_lengths[row])].tolist())
        return Pair(("START", *source, "END"), self.spelled(batch.targets[row].tolist()))

    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        symbols = (self.vocabulary[token] for token in tokens)
        return tuple(s.strip("<>").upper() if s in SPECIALS else s for s in symbols)

    def provenance(self) -> dict[str, Any]:
        found = _found()
        return {"source": found.source, "sha256": found.sha256}

    def lacks(self) -> str:
        why, archive = data.lacks_files(self.files), data.index()[self.files]["archive"]
        return why if not why or archive in why else f"{why}, and bAbI's own {archive} is missing"


class Babi80(BabiByLength):
    """The shorter four fifths of every task are trained on.

    >>> pair, length = told(("Mary went home.", "John left."), "Where is Mary?", "home")
    >>> print(*pair.source, "->", *pair.target)
    mary went home . john left . where is mary ? -> home
    >>> length
    7
    """

    name: Literal["babi_80"] = "babi_80"
    shorter: Literal[80] = 80


class Babi50(BabiByLength):
    """The shorter half of every task is trained on.

    >>> pair, _ = told(("Mary got the milk.",), "What is Mary carrying?", "milk,apple")
    >>> len(pair.target)
    1
    """

    name: Literal["babi_50"] = "babi_50"
    shorter: Literal[50] = 50


class Babi80Joined(BabiByLength):
    """The shorter four fifths of all tasks, sorted as one, are trained on (Section 3.4).

    >>> Babi80Joined().splits()["length"] == Babi80().splits()["length"]
    True
    """

    name: Literal["babi_joined_80"] = "babi_joined_80"
    shorter: Literal[80] = 80
    sorted_within: Literal["all"] = "all"


class Babi50Joined(BabiByLength):
    """The shorter half of all tasks, sorted as one, is trained on.

    >>> Babi50Joined().splits()["length"] == Babi50().splits()["length"]
    True
    """

    name: Literal["babi_joined_50"] = "babi_joined_50"
    shorter: Literal[50] = 50
    sorted_within: Literal["all"] = "all"


@lru_cache(maxsize=4)
def split_up(task: BabiByLength) -> tuple[list[tuple[int, Pair]], list[tuple[int, Pair]]]:
    """The shorter and the longer samples of a task, each with the number of bAbI's task."""
    every = [[(number, *sample) for sample in task.kept(number)] for number in task.numbers]
    groups = every if task.sorted_within == "task" else [list(chain(*every))]
    shorter, longer = [], []
    for group in groups:
        cut = len(group) * task.shorter // 100
        ordered = [(k, pair) for k, pair, _ in sorted(group, key=lambda sample: sample[2])]
        shorter += ordered[:cut]
        longer += ordered[cut:]
    return shorter, longer


def told(lines: tuple[str, ...], question: str, answer: str) -> tuple[Pair, int]:
    """A question after its story, and the length of the story."""
    story = [word for line in lines for word in words(line)]
    return Pair((*story, *words(question)), (answer,)), len(story)


@lru_cache(maxsize=100_000)
def words(text: str) -> tuple[str, ...]:
    """The words of a line, and its stop, as symbols of their own."""
    return tuple(WORD.findall(text.lower()))


def _count(number: int) -> int:
    """Count the questions of one of bAbI's tasks in the files that there are."""
    known = data.index()[BabiByLength.files]["files"]
    names = (f"qa{number}_{part}.txt" for part in PARTS)
    return sum(known[name]["rows"] for name in names if name in known)


def _found() -> data.Found:
    found = data.find(BabiByLength.files)
    if found.source is None:
        raise RelengthError(
            f"bAbI has no data: {found.reason}; let RELENGTH_DATA name a folder with "
            f"{data.index()[BabiByLength.files]['archive']}."
        )
    return found


@lru_cache(maxsize=len(NUMBERS))
def _stories(number: int) -> list[tuple[tuple[str, ...], str, str]]:
    """Lines, question and answer of everything that one of bAbI's tasks asks, file by file."""
    texts = _found().texts
    names = (f"qa{number}_{part}.txt" for part in PARTS)
    return [
        (tuple(filter(None, episode.lines)), episode.question, episode.answer)
        for name in names
        if name in texts
        for episode in episodes(texts[name])
    ]


@lru_cache(maxsize=1)
def _symbols() -> tuple[str, ...]:
    found: set[str] = set()
    for number in NUMBERS:
        for lines, question, answer in _stories(number):
            found.update(words(question), (answer,))
            found.update(*map(words, lines))
    return tuple(sorted(found))


@lru_cache(maxsize=1)
def _places() -> dict[str, int]:
    return {symbol: i for i, symbol in enumerate(SPECIALS + _symbols())}


TASKS = {
    "babi_80": Babi80,
    "babi_50": Babi50,
    "babi_joined_80": Babi80Joined,
    "babi_joined_50": Babi50Joined,
}
