"""Six tasks on digits that permute, pick and sort: the algorithmic reasoning of the PANM paper.

Source: "Pointer-Augmented Neural Memory", Section 3.1, Appendix D.1 and Tables 13-18. The released
code has Copy and Reverse only; what is not stated for the others is a field with the readings that
the text allows, or a rule of ours that the docstring names.

Every task writes tokens that it has read, so a task is the places that it reads them from: the
place of token t is what a pointer has to find.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from relength.errors import RelengthError
from relength.specs.fields import added
from relength.specs.kinds import CLASSES as CHANNELS_TO_CLASSES
from relength.specs.kinds import Kind
from relength.streams import EVALUATION_SEED, stream
from relength.tasks.base import Pair, Split, TokenTask, is_whole
from relength.tasks.batch import Batch, ChannelsToClasses
from relength.tasks.metrics import tokens_right

if TYPE_CHECKING:
    import torch
    from torch import Tensor

CLASSES = 10
Length = Annotated[int, Field(gt=0)]
# Tuples that are not strict: in a record they are lists.
Range = Annotated[tuple[Length, Length], Field(strict=False)]
Lengths = Annotated[tuple[Length, ...], Field(min_length=2, strict=False)]


class Drawn(NamedTuple):
    """Samples of one length before they are encoded; several axes may stand in front of the batch.

    tokens    (B, S) digits as they are read
    features  (B, S, k) what is coupled to them: a score, an id, or nothing (k = 0)
    places    (B, T) where the tokens to write are read
    """

    tokens: "np.ndarray | Tensor"
    features: "np.ndarray | Tensor"
    places: "np.ndarray | Tensor"


class AlgorithmicTask(TokenTask):
    """Uniform digits, one length per batch, drawn afresh at every step; no end token.

    An input has 10 channels for the digit (one-hot), those of the task's features, and with
    ``flags`` one each for a start and an end mark, which then stand around the sequence, as in the
    released code. The length of a target is given, not learned.

    train_lengths  shortest and longest of training, drawn uniformly
    lengths        of the tests. On the first, in distribution, and on the second, where the
                   checkpoint is selected, there are validation sets, too
    watched        a length whose test enters the learning curve, where a figure shows that; nothing
                   is selected by it
    """

    kind: ClassVar[Kind] = CHANNELS_TO_CLASSES
    measure: ClassVar[str] = "token_accuracy"

    train_lengths: Range = (1, 9)
    lengths: Lengths = (9, 10, 20, 40, 80)
    watched: Length | None = added(
        None, before=None, description="length of a test that the learning curve shows"
    )
    flags: bool = Field(False, description="start and end marks around an input")
    dev_size: int = Field(1_280, gt=0, description="samples that the checkpoint is selected on")
    test_size: int = Field(1_280, gt=0, description="samples per test set")
    validation_size: int = Field(1_280, gt=0, description="in-distribution validation samples")

    @model_validator(mode="after")
    def _shortest_first(self) -> Self:
        if self.train_lengths[0] > self.train_lengths[1]:
            raise ValueError("the shortest of the train_lengths comes first")
        if self.watched is not None and self.watched not in self.lengths:
            raise ValueError("watched is one of the lengths of the tests")
        return self

    @property
    def feature_size(self) -> int:
        """Channels of an input besides digit and flags."""
        return 0

    @property
    def shape(self) -> tuple[int, ...]:
        return CLASSES + self.feature_size + 2 * self.flags, CLASSES

    @property
    def watched_splits(self) -> tuple[str, ...]:
        return () if self.watched is None else (str(self.watched),)

    @abstractmethod
    def places(self, tokens: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Return where the written tokens are read: (B, T) for tokens (B, S) and features (B, S,
        k).
        """

    def tokens(self, random: np.random.Generator, batch_size: int, length: int) -> np.ndarray:
        """The digits that are read (B, S)."""
        return random.integers(0, CLASSES, (batch_size, length), dtype=np.uint8)

    def features(self, random: np.random.Generator, tokens: np.ndarray) -> np.ndarray:
        """Features that are coupled to the tokens (B, S), as (B, S, k)."""
        return np.empty((*tokens.shape, 0))

    def answer(self, text: str, features: np.ndarray | None = None) -> str:
        """Return what is to be written for one input, a character a token; features (S, k)."""
        tokens = np.array(list(text))[None]
        coupled = np.empty((1, len(text), 0)) if features is None else np.asarray(features)[None]
        return "".join(tokens[0, self.places(tokens, coupled)[0]])

    def splits(self) -> dict[str, Split]:
        known, unseen = self.lengths[:2]
        return {
            "dev": Split(unseen, unseen, self.dev_size),
            "validation": Split(known, known, self.validation_size),
            **{str(n): Split(n, n, self.test_size) for n in self.lengths},
        }

    def loss(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        from relength.tasks.losses import cross_entropy

        return cross_entropy(outputs, batch)

    def right(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        return tokens_right(outputs, batch)

    def draw(self, random: np.random.Generator, batch_size: int, length: int) -> Drawn:
        """Samples of one length. Raises RelengthError when it is no whole number or below 1."""
        if not is_whole(length) or length < 1:
            raise RelengthError(
                f"Task {self.name} has no samples of length {length!r}: choose lengths from 1, one "
                "whole number at a time."
            )
        tokens = self.tokens(random, batch_size, length)
        features = self.features(random, tokens)
        return Drawn(tokens, features, self.places(tokens, features))

    def encode(self, drawn: Drawn, device: "torch.device | str" = "cpu") -> Batch:
        """Drawn samples, on the host or the device, as channels and classes built on the device.

        Nothing here waits for the device: it may be part of a CUDA graph.
        """
        import torch
        from torch.nn import functional as F

        tokens, features, places = (torch.as_tensor(x, device=device) for x in drawn)
        tokens = tokens.long()
        one_hot = tokens[..., None] == torch.arange(CLASSES, device=device)
        inputs = torch.cat([c.to(torch.float32) for c in (one_hot, features)], dim=-1)
        if self.flags:
            inputs = F.pad(inputs, (0, 2, 1, 1))
            inputs[..., 0, -2].fill_(1)
            inputs[..., -1, -1].fill_(1)
        targets = tokens.gather(-1, places.long())
        leading = targets.shape[:-1]
        return ChannelsToClasses(
            inputs,
            targets,
            torch.ones_like(targets, dtype=torch.bool),
            torch.full(leading, inputs.shape[-2], device=device),
            torch.full(leading, targets.shape[-1], device=device),
        )

    def sample(self, random: np.random.Generator, batch_size: int, length: int) -> Batch:
        """``batch_size`` samples of one length. Raises RelengthError when it is no whole number or
        below 1.
        """
        return self.encode(self.draw(random, batch_size, length))

    def dataset(self, split: str, seed: int) -> Batch:
        length, _, size = self._split(split)
        return self.sample(
            stream(EVALUATION_SEED, "evaluation", self.name, split, length), size, length
        )

    def shown(self, batch: Batch, row: int) -> Pair:
        n = batch.inputs.shape[1]
        inner = batch.inputs[row, 1 : n - 1] if self.flags else batch.inputs[row]
        source = self.spelled(inner[:, :CLASSES].argmax(1).tolist())
        if self.flags:
            source = ("START", *source, "END")
        return Pair(source, self.spelled(batch.targets[row].tolist()))

    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        return tuple(str(token) for token in tokens)


class Copy(AlgorithmicTask):
    """First in, first out.

    >>> Copy().answer("$%&&$%^@%#")
    '$%&&$%^@%#'
    """

    name: Literal["panm_copy"] = "panm_copy"

    def places(self, tokens: np.ndarray, features: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape).copy()


class Reverse(AlgorithmicTask):
    """Last in, first out.

    >>> Reverse().answer("$%&&$%^@%#")
    '#%@^%$&&%$'
    """

    name: Literal["panm_reverse"] = "panm_reverse"

    def places(self, tokens: np.ndarray, features: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.arange(tokens.shape[1])[::-1], tokens.shape).copy()


class Mix(AlgorithmicTask):
    """Two places in turn. Section 3.1 and the worked example of Table 12 give different rules.

    text     odd t: the token in the middle, x_⌈n/2⌉; even t: the first, x_1. This one depends on
             the length, as the section says
    example  odd t: the first token; even t: token t

    >>> Mix().answer("123456789"), Mix().answer("ab")
    ('515151515', 'aa')
    >>> Mix(rule="example").answer("$%&&$%^@%#")
    '$%$&$%$@$#'
    """

    name: Literal["panm_mix"] = "panm_mix"
    rule: Literal["text", "example"] = "text"

    def places(self, tokens: np.ndarray, features: np.ndarray) -> np.ndarray:
        n = tokens.shape[1]
        t = np.arange(1, n + 1)
        odd = t % 2 == 1
        at_odd, at_even = ((n + 1) // 2, 1) if self.rule == "text" else (1, t)
        return np.broadcast_to(np.where(odd, at_odd, at_even) - 1, tokens.shape).copy()


class DynamicRecall(AlgorithmicTask):
    """Find the query, the last token read, among the others and write its neighbour.

    The length n does not count the query, a copy of one of the n tokens. If several are equal to
    it, the first is meant, as in both printed examples: were it the one that was drawn, no model
    could reach the printed accuracies. The tokens before the query are taken as a ring: where the
    neighbour would lie outside, the other end answers. That rule is ours.

    odd     which neighbour at odd lengths, the one ``after`` the query's token (the prompt of
            Appendix D.5, and both printed examples) or the one ``before`` it (the word order of
            Appendix D.1); even lengths take the other one
    writes  ``one``, the neighbour alone, as in both examples; or the neighbour and its successors
            round the ring, ``all`` n tokens, which Appendix D.1 may mean

    >>> DynamicRecall().answer("$(&&$#^@%#" + "%")
    '@'
    >>> DynamicRecall().answer("EVyDmIeVuf" + "V"), DynamicRecall().answer("EVyDmIeVu" + "V")
    ('E', 'y')
    >>> DynamicRecall().answer("abcde" + "e"), DynamicRecall(writes="all").answer("abcde" + "c")
    ('a', 'deabc')
    """

    name: Literal["panm_dynamic_recall"] = "panm_dynamic_recall"
    odd: Literal["after", "before"] = "after"
    writes: Literal["one", "all"] = "one"

    def tokens(self, random: np.random.Generator, batch_size: int, length: int) -> np.ndarray:
        tokens = super().tokens(random, batch_size, length)
        query = random.integers(0, length, (batch_size, 1))
        return np.concatenate([tokens, np.take_along_axis(tokens, query, 1)], axis=1)

    def places(self, tokens: np.ndarray, features: np.ndarray) -> np.ndarray:
        n = tokens.shape[1] - 1
        met = (tokens[:, :n] == tokens[:, n:]).argmax(1)
        after = (n % 2 == 1) == (self.odd == "after")
        further = np.arange(n if self.writes == "all" else 1)
        return (met[:, None] + (1 if after else -1) + further) % n


class PrioritySort(AlgorithmicTask):
    """The tokens in ascending order of a score that is coupled to each, from a normal distribution.

    >>> PrioritySort().answer("abcd", [[0.3], [-1.2], [2.0], [-0.5]])
    'bdac'
    """

    name: Literal["panm_priority_sort"] = "panm_priority_sort"
    train_lengths: Range = (1, 10)
    lengths: Lengths = (10, 11, 21, 41, 81)

    @property
    def feature_size(self) -> int:
        return 1

    def features(self, random: np.random.Generator, tokens: np.ndarray) -> np.ndarray:
        return random.standard_normal((*tokens.shape, 1))

    def places(self, tokens: np.ndarray, features: np.ndarray) -> np.ndarray:
        return features[:, :, 0].argsort(axis=1, kind="stable")


class IDSort(AlgorithmicTask):
    """Every two tokens share an id; token t written is the one that shares the id of token t read.

    Ids are vectors from a normal distribution, whose size the paper does not say. Nor does it say
    what becomes of the token that is left over at an odd length: ours has an id of its own, and
    answers itself.

    >>> IDSort().answer("abcd", [[0.1], [0.7], [0.7], [0.1]])
    'dcba'
    >>> IDSort().answer("abc", [[0.1], [0.7], [0.1]])
    'cba'
    """

    name: Literal["panm_id_sort"] = "panm_id_sort"
    train_lengths: Range = (1, 10)
    lengths: Lengths = (10, 11, 21, 41, 81)
    id_size: int = Field(10, gt=0, description="numbers in an id; not in the paper")

    @property
    def feature_size(self) -> int:
        return self.id_size

    def features(self, random: np.random.Generator, tokens: np.ndarray) -> np.ndarray:
        batch_size, length = tokens.shape
        ids = random.standard_normal((batch_size, (length + 1) // 2, self.id_size))
        owners = random.permuted(np.tile(np.arange(length) // 2, (batch_size, 1)), axis=1)
        return np.take_along_axis(ids, owners[:, :, None], 1)

    def places(self, tokens: np.ndarray, features: np.ndarray) -> np.ndarray:
        n = tokens.shape[1]
        id_ = features[:, :, 0]  # real numbers: one is enough to tell ids apart
        same = (id_[:, :, None] == id_[:, None]) & ~np.eye(n, dtype=bool)
        return np.where(same.any(2), same.argmax(2), np.arange(n))
