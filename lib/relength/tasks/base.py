"""The base of all tasks: a vocabulary, named splits, samples drawn from a random stream."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from relength.errors import RelengthError
from relength.specs.kinds import TOKENS, Kind
from relength.streams import EVALUATION_SEED, stream
from relength.tasks.batch import Batch, pad_tokens
from relength.tasks.metrics import Metrics, TokenMetrics, exactly_right, token_metrics

if TYPE_CHECKING:
    from torch import Tensor

PAD, SOS, EOS, UNK = range(4)
SPECIALS = ("<pad>", "<sos>", "<eos>", "<unk>")


class Split(NamedTuple):
    """One named set of samples: shortest and longest length in it, and how many samples it has.

    The lengths are 0 where only the data could tell.
    """

    shortest: int
    longest: int
    size: int


class Pair(NamedTuple):
    """One sample as text: source and target symbols, without start and end marks."""

    source: tuple[str, ...]
    target: tuple[str, ...]


def is_whole(number: Any) -> bool:
    """Tell whether something can count: an integer of Python or numpy, and not a yes or no."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


class Task(BaseModel, ABC):
    """A frozen config that draws samples, knows the paper's splits, and owns its loss and score.

    A task knows nothing of models. What most subclasses need is in :class:`TextTask`.

    kind     of its batches
    metrics  what its tests give
    measure  the one of them that tables call accuracy, a share; :meth:`right` estimates it
    stacks   whether runs of it can be trained as one program
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: ClassVar[Kind]
    metrics: ClassVar[type[Metrics]]
    measure: ClassVar[str]
    dev_splits: ClassVar[tuple[str, ...]] = ("dev",)
    stacks: ClassVar[bool] = True

    name: str

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Sizes a model is built for: (vocabulary,), or (channels of an input, classes)."""

    @abstractmethod
    def splits(self) -> dict[str, Split]:
        """Every split: ``train``, the dev splits, ``validation`` (in distribution), then tests.

        A task whose training samples are drawn afresh at every step has no split ``train``.
        """

    @abstractmethod
    def dataset(self, split: str, seed: int) -> Batch:
        """All samples of a split. Training data belong to the run's seed, other splits to the task.

        Raises RelengthError when there is no such split.
        """

    @abstractmethod
    def loss(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        """Return what training minimises, a mean over the batch, of a model's outputs for it.

        It may be computed for many runs at once: vmap must be able to batch it.
        """

    @abstractmethod
    def right(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        """Score each sample (B,) from 0 to 1 while a model is trained; for vmap, too."""

    @abstractmethod
    def score(self, answers: "list[tuple[Batch, Tensor]]") -> Metrics:
        """The metrics of a whole test set, of batches and what a model has written for them."""

    @abstractmethod
    def shown(self, batch: Batch, row: int) -> Pair:
        """One sample of a batch as figures print it: what a model reads, and what it should write.

        Start and end marks that take a place of their own are symbols here.
        """

    @abstractmethod
    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        """Written tokens as figures print them."""

    @property
    def watched_splits(self) -> tuple[str, ...]:
        """Names of tests that the learning curve shows."""
        return ()

    @property
    def tests(self) -> tuple[str, ...]:
        """Names of the test splits, shortest first: as a rule in distribution, then the unseen
        lengths.
        """
        return tuple(n for n in self.splits() if n not in ("train", "validation", *self.dev_splits))

    @property
    def known_test(self) -> str:
        """The test that tells whether lengths trained on were learned."""
        return self.tests[0]

    def text_sizes(self) -> tuple[tuple[int, int], ...]:
        """Count the tokens of the longest source, and of its target with its end.

        There is one pair for all tests, or one of each where they differ; none where only the data
        or a pretrained tokenizer could tell.
        """
        return ()

    def provenance(self) -> dict[str, Any]:
        """Name the source of the samples, for the record of a run.

        Raises RelengthError where there are none.
        """
        return {"source": "generated"}

    def lacks(self) -> str:
        """Say what it lacks on this machine to have samples, and why; nothing if it has them."""
        return ""

    def drawn(self, purpose: str, among: int, size: int) -> np.ndarray:
        """Places of ``size`` samples among so many, in ascending order: the same for all seeds."""
        random = stream(EVALUATION_SEED, "evaluation", self.name, purpose)
        return np.sort(random.permutation(among)[:size])

    def _split(self, name: str) -> Split:
        if name not in self.splits():
            raise RelengthError(
                f"Task {self.name} has no split {name!r}: choose one of {', '.join(self.splits())}."
            )
        return self.splits()[name]


class TokenTask(Task):
    """A task that writes tokens, each of them right or wrong.

    end  id of the token that ends every target; None where a target's length is given instead
    """

    metrics: ClassVar[type[Metrics]] = TokenMetrics
    end: ClassVar[int | None] = None

    def score(self, answers: "list[tuple[Batch, Tensor]]") -> TokenMetrics:
        return token_metrics(answers, self.end)


class TextTask(TokenTask):
    """A task on sequences of symbols, of mixed lengths, with an end token.

    A subclass sets ``name``, ``symbols`` and ``max_length`` and implements :meth:`draw` and
    :meth:`splits`. source_ends: whether a source, too, ends with the end token.
    """

    kind: ClassVar[Kind] = TOKENS
    measure: ClassVar[str] = "exact_match"
    symbols: ClassVar[tuple[str, ...]]
    source_ends: ClassVar[bool] = False
    max_length: ClassVar[int] = 1000
    end: ClassVar[int | None] = EOS

    train_size: int = Field(10_001, gt=0, description="training samples")
    dev_size: int = Field(2_001, gt=0, description="samples per development set")
    test_size: int = Field(2_001, gt=0, description="samples per test set")
    validation_size: int = Field(1_000, gt=0, description="in-distribution validation samples")

    @abstractmethod
    def draw(self, random: np.random.Generator, length: int) -> Pair:
        """One sample of the given length, in the task's own measure of length."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.vocabulary),)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Special tokens, then the task's symbols; a token's id is its place here."""
        return SPECIALS + self.symbols

    def loss(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        from relength.tasks.losses import token_loss

        return token_loss(outputs, batch)

    def right(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        return exactly_right(outputs, batch)

    def sample(
        self, random: np.random.Generator, batch_size: int, length: int | tuple[int, int]
    ) -> Batch:
        """``batch_size`` samples of one length, or of lengths uniform over an inclusive range.

        Raises RelengthError when a length is no whole number, below 1 or above ``max_length``.
        """
        return self.encode(self._draw_pairs(random, batch_size, length, unique=False))

    def dataset(self, split: str, seed: int) -> Batch:
        """All samples of a split. Training data belong to the run's seed, other splits to the task.

        No two samples of a split have the same source, as in the authors' generator; a length too
        short for that many different sources gives as many as there are.
        """
        return self.encode(self.pairs(split, seed))

    def pairs(self, split: str, seed: int) -> list[Pair]:
        """The samples of a split as text."""
        shortest, longest, size = self._split(split)
        random = (
            stream(seed, "data", self.name, split)
            if split == "train"
            else stream(EVALUATION_SEED, "evaluation", self.name, split)
        )
        return self._draw_pairs(random, size, (shortest, longest), unique=True)

    def encode(self, pairs: list[Pair]) -> Batch:
        """Token ids of the pairs; every target ends with the end token."""
        index = {symbol: i for i, symbol in enumerate(self.vocabulary)}
        return pad_tokens(
            [[index[s] for s in pair.source] + [EOS] * self.source_ends for pair in pairs],
            [[index[s] for s in pair.target] + [EOS] for pair in pairs],
            padding=PAD,
        )

    def decode(self, tokens: list[int]) -> tuple[str, ...]:
        """Symbols of token ids up to, and without, the first end token."""
        if EOS in tokens:
            tokens = tokens[: tokens.index(EOS)]
        return tuple(self.vocabulary[token] for token in tokens)

    def shown(self, batch: Batch, row: int) -> Pair:
        source = self.spelled(batch.inputs[row].tolist())
        return Pair(("START", *source, "END"), self.spelled(batch.targets[row].tolist()))

    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        symbols = (self.vocabulary[token] for token in tokens)
        return tuple(s.strip("<>").upper() if s in SPECIALS else s for s in symbols)

    def _draw_pairs(
        self, random: np.random.Generator, size: int, length: int | tuple[int, int], unique: bool
    ) -> list[Pair]:
        bounds = length if isinstance(length, tuple | list) else (length, length)
        if not (
            len(bounds) == 2
            and all(map(is_whole, bounds))
            and 1 <= bounds[0] <= bounds[1] <= self.max_length
        ):
            raise RelengthError(
                f"Task {self.name} has no samples of length {length!r}: choose lengths between 1 "
                f"and {self.max_length}, as a whole number or as two, shortest first."
            )
        shortest, longest = bounds
        pairs: list[Pair] = []
        seen: set[tuple[str, ...]] = set()
        fruitless = 0
        # A thousand duplicates in a row: the source space of these lengths is exhausted.
        while len(pairs) < size and fruitless < 1000:
            pair = self.draw(random, int(random.integers(shortest, longest + 1)))
            if unique and pair.source in seen:
                fruitless += 1
                continue
            fruitless = 0
            seen.add(pair.source)
            pairs.append(pair)
        return pairs
