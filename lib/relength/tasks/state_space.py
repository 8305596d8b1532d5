"""Seven tasks that are read whole and then written: those of the state-space constraints for DNCs.

Source: Ofner and Kern, "State-Space Constraints Improve the Generalization of the Differentiable
Neural Computer in some Algorithmic Tasks", Table I, Section IV and Supplement A. Steps are counted
from 1, as there. An input of N steps is followed by a flag in a control channel of its own; then
the input is blank, all channels 0, and the result is written. A signal channel of the output is 1
at the step after the last result, and 0 before.

What the paper leaves open is an assumption here, named where it is made:

* the result's channels have target 0 at the step of the signal, where nothing is said of them;
* a written number is right if rounding gives the wanted numeral; others are wrong;
* where a result has two channels, each counts as a number (add): guessing then gives 62.5 %, near
  what Table VI prints for the stateless baseline.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from relength.errors import RelengthError
from relength.specs.kinds import CHANNELS, Kind
from relength.streams import EVALUATION_SEED, stream
from relength.tasks.base import Pair, Split, Task, is_whole
from relength.tasks.batch import Batch, ChannelsToChannels
from relength.tasks.metrics import Metrics, amount, share

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SHORTEST = 2  # one number alone has no difference and no relative position
Length = Annotated[int, Field(ge=SHORTEST)]
# Tuples that are not strict: in a record they are lists.
Range = Annotated[tuple[Length, Length], Field(strict=False)]
Lengths = Annotated[tuple[Length, ...], Field(strict=False)]
END_SIGNAL = 0.8  # a signal above it ends an answer (Section IV-C)
OPERATORS = "∧∨→↔"
SYMBOLS = "⊤⊥¬" + OPERATORS + "()"  # channels of a formula, in this order


class StateSpaceTask(Task):
    """One length per batch, drawn afresh at every step.

    train_lengths     shortest and longest of training, drawn uniformly
    test_lengths      shortest and longest test; every length between them is one
    iid_length        of the validation samples in distribution
    dev_length        of the samples that the checkpoint is selected on
    extended_lengths  tested once more where a protocol enlarges a model's memory
    watched           lengths of tests that enter the learning curve; nothing is selected by them
    """

    kind: ClassVar[Kind] = CHANNELS

    train_lengths: Range = (5, 15)
    test_lengths: Range = (2, 100)
    iid_length: Length = 15
    dev_length: Length = 30
    extended_lengths: Lengths = ()
    watched: Lengths = ()
    dev_size: int = Field(64, gt=0, description="samples that the checkpoint is selected on")
    test_size: int = Field(640, gt=0, description="samples per test set")
    extended_size: int = Field(192, gt=0, description="samples per test of the larger memory")
    validation_size: int = Field(64, gt=0, description="in-distribution validation samples")

    @model_validator(mode="after")
    def _lengths_fit(self) -> Self:
        for name in ("train_lengths", "test_lengths"):
            shortest, longest = getattr(self, name)
            if shortest > longest:
                raise ValueError(f"the shortest of the {name} comes first")
        known = {"iid_length": (self.iid_length,), "dev_length": (self.dev_length,)}
        for name, lengths in (known | {"watched": self.watched}).items():
            if not set(map(str, lengths)) <= set(self.tests):
                raise ValueError(f"{name} is one of the lengths of the tests")
        return self

    @property
    def tests(self) -> tuple[str, ...]:
        shortest, longest = self.test_lengths
        return tuple(str(n) for n in range(shortest, longest + 1))

    @property
    def known_test(self) -> str:
        return str(self.iid_length)

    @property
    def watched_splits(self) -> tuple[str, ...]:
        return tuple(map(str, self.watched))

    @property
    def extended_tests(self) -> dict[str, str]:
        """{length: its split}, the tests of a larger memory."""
        return {str(n): f"extended-{n}" for n in self.extended_lengths}

    def splits(self) -> dict[str, Split]:
        dev, known = self.dev_length, self.iid_length
        return {
            "dev": Split(dev, dev, self.dev_size),
            "validation": Split(known, known, self.validation_size),
            **{test: Split(int(test), int(test), self.test_size) for test in self.tests},
            **{
                split: Split(int(n), int(n), self.extended_size)
                for n, split in self.extended_tests.items()
            },
        }

    @abstractmethod
    def least_steps(self, length: int) -> int:
        """The fewest steps that a sample of a length takes."""

    @abstractmethod
    def draw(self, random: np.random.Generator, batch_size: int, length: int) -> Any:
        """Samples of one length, a NamedTuple of arrays; further axes may stand in front of (B, …).

        Raises RelengthError when the length is no whole number or too short.
        """

    @abstractmethod
    def encode(self, drawn: Any, device: "torch.device | str" = "cpu") -> Batch:
        """Drawn samples, on the host or the device, as channels built on the device.

        Nothing here waits for the device: it may be part of a CUDA graph.
        """

    def sample(self, random: np.random.Generator, batch_size: int, length: int) -> Batch:
        """``batch_size`` samples of one length. Raises RelengthError for an impossible one."""
        return self.encode(self.draw(random, batch_size, length))

    def dataset(self, split: str, seed: int) -> Batch:
        length, _, size = self._split(split)
        random = stream(EVALUATION_SEED, "evaluation", self.name, split, length)
        return self.sample(random, size, length)

    def loss(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        """Mean squared error over the output's channels and the steps that count (Supplement B)."""
        from relength.tasks.losses import squared_errors

        return squared_errors(outputs, batch).mean()

    def score(self, answers: "list[tuple[Batch, Tensor]]") -> Metrics:
        import torch

        from relength.tasks.losses import squared_errors

        right = torch.cat([self.right(outputs, batch) for batch, outputs in answers])
        errors = torch.cat([squared_errors(outputs, batch) for batch, outputs in answers])
        shares = {self.measure: float(right.mean())}
        return self.metrics(items=len(right), squared_error=float(errors.mean()), **shares)

    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        return tuple(str(token) for token in tokens)

    def _check(self, length: int) -> None:
        if not is_whole(length) or length < SHORTEST:
            raise RelengthError(
                f"Task {self.name} has no samples of length {length!r}: choose lengths from "
                f"{SHORTEST}, one whole number at a time."
            )


# --- a result as long as its input ----------------------------------------------------------------


class Numerals(NamedTuple):
    """Numerals as they are read (B, N, C), and as they are to be written (B, N, K)."""

    read: "np.ndarray | Tensor"
    written: "np.ndarray | Tensor"


class DigitMetrics(Metrics):
    """Numbers that are rounded to numerals.

    digit_accuracy  mean share of a result's numbers that round to the wanted numeral
    squared_error   mean over outputs and steps, as the loss is
    """

    digit_accuracy: float = share(
        "accuracy after rounding", about="share of numbers that round to the wanted numeral"
    )
    squared_error: float = amount("squared error")


class NumeralTask(StateSpaceTask):
    """Uniform numerals, scaled to [-1, 1]; N + 1 steps of reading and N + 1 of writing.

    The flag is at step N + 1, results at N + 2 to 2N + 1, the signal at 2N + 2.

    base      how many numerals there are
    channels  numerals that are read and written at a step
    """

    metrics: ClassVar[type[Metrics]] = DigitMetrics
    measure: ClassVar[str] = "digit_accuracy"
    base: ClassVar[int] = 5
    channels: ClassVar[int] = 1

    @abstractmethod
    def result(self, read: np.ndarray) -> np.ndarray:
        """The numerals to be written (B, N, K) for those that were read (B, N, C)."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.channels + 1, self.channels + 1

    def least_steps(self, length: int) -> int:
        return 2 * length + 2

    def answer(self, *rows: str) -> str:
        """Write what is wanted for one input, a string of numerals per channel."""
        read = np.array([[int(numeral) for numeral in row] for row in rows]).T[None]
        return " ".join("".join(map(str, channel)) for channel in self.result(read)[0].T)

    def draw(self, random: np.random.Generator, batch_size: int, length: int) -> Numerals:
        self._check(length)
        shape = batch_size, length, self.channels
        read = random.integers(0, self.base, shape, dtype=np.int8)
        return Numerals(read, self.result(read))

    def encode(self, drawn: Numerals, device: "torch.device | str" = "cpu") -> Batch:
        import torch
        from torch.nn import functional as F

        n = drawn.read.shape[-2]
        read, written = (
            torch.as_tensor(x, device=device).to(torch.float32) * (2 / (self.base - 1)) - 1
            for x in drawn
        )
        inputs = F.pad(read, (0, 1, 0, n + 2))  # (…, B, 2N + 2, C + 1)
        inputs[..., n, -1].fill_(1)
        targets = F.pad(written, (0, 1, 0, 1))  # (…, B, N + 1, K + 1)
        targets[..., n, -1].fill_(1)
        return _whole(inputs, targets)

    def right(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        """Share (B,) of the result's numbers that round to their numeral; no signal counts."""
        wrong_by = (outputs - batch.targets)[..., :-1, :-1].abs()
        return (wrong_by < 1 / (self.base - 1)).double().mean((-2, -1))

    def shown(self, batch: Batch, row: int) -> Pair:
        n = batch.targets.shape[1] - 1
        texts = []
        for coded in (batch.inputs[row, :n, :-1], batch.targets[row, :n, :-1]):
            numerals = ((coded + 1) * (self.base - 1) / 2).round().int().tolist()
            texts.append(tuple("".join(map(str, step)) for step in numerals))
        return Pair(*texts)


class Sort(NumeralTask):
    """The numerals in ascending order.

    >>> Sort().answer("25213")
    '12235'
    """

    name: Literal["dnc_sort"] = "dnc_sort"

    def result(self, read: np.ndarray) -> np.ndarray:
        return np.sort(read, axis=1)


class Copy(NumeralTask):
    """The numerals as they were read.

    >>> Copy().answer("25213")
    '25213'
    """

    name: Literal["dnc_copy"] = "dnc_copy"

    def result(self, read: np.ndarray) -> np.ndarray:
        return read.copy()


class Differentiation(NumeralTask):
    """The absolute differences of neighbours, after a constant, so that nothing gets shorter.

    The constant's value is not in the paper: the numeral 0 is assumed.

    >>> Differentiation().answer("25213")
    '03312'
    """

    name: Literal["dnc_differentiation"] = "dnc_differentiation"

    def result(self, read: np.ndarray) -> np.ndarray:
        return np.abs(np.diff(read, axis=1, prepend=read[:, :1]))


class Shift(NumeralTask):
    """The numerals moved to the right in a circle, by half of their number, rounded down.

    Direction and rounding are those of the paper's example.

    >>> Shift().answer("25213")
    '13252'
    """

    name: Literal["dnc_shift"] = "dnc_shift"

    def result(self, read: np.ndarray) -> np.ndarray:
        return np.roll(read, read.shape[1] // 2, axis=1)


class Add(NumeralTask):
    """The sum of two bits at each step, as two bits; nothing is carried on.

    >>> Add().answer("00111", "10100")  # sums 1, 0, 2, 1, 1: the high bits, and the low ones
    '00100 10011'
    """

    name: Literal["dnc_add"] = "dnc_add"
    base: ClassVar[int] = 2
    channels: ClassVar[int] = 2

    def result(self, read: np.ndarray) -> np.ndarray:
        total = read.sum(axis=2, dtype=read.dtype)
        return np.stack([total // 2, total % 2], axis=2)


# --- results of other lengths ---------------------------------------------------------------------


class Searched(NamedTuple):
    """Numerals (B, N) and the queried one (B,)."""

    numerals: "np.ndarray | Tensor"
    query: "np.ndarray | Tensor"


class HitMetrics(Metrics):
    """Places found in a sequence.

    hit_rate       mean share of the wanted places that are among the written ones
    squared_error  mean over outputs and steps, as the loss is
    """

    hit_rate: float = share("hit rate", about="share of wanted places that are found")
    squared_error: float = amount("squared error")


class Search(StateSpaceTask):
    """The places of a queried numeral, from 0 (first) to 1 (last), one per step.

    Flags stand at the steps N + 1 and N + 3, the query at N + 2 between them; the places follow,
    and after the last of them the signal. Numerals are scaled to [0, 1], as the supplement says.

    Samples are uniform numerals, and the query is the numeral of a uniform place: how they are
    drawn is not in the paper. So it occurs at least once, and at each other place with probability
    1/5: 1 + (N - 1)/5 times on average. A written place counts as the nearest one; what is written
    from the first signal above 0.8 on, or after the last step of the sample, does not count.

    >>> Search().answer("25212", "2")
    (0.0, 0.5, 1.0)
    """

    name: Literal["dnc_search"] = "dnc_search"
    metrics: ClassVar[type[Metrics]] = HitMetrics
    measure: ClassVar[str] = "hit_rate"
    base: ClassVar[int] = 5

    @property
    def shape(self) -> tuple[int, ...]:
        return 2, 2

    def least_steps(self, length: int) -> int:
        return length + 5

    def answer(self, numerals: str, query: str) -> tuple[float, ...]:
        """The relative places of a numeral."""
        found = [i for i, numeral in enumerate(numerals) if numeral == query]
        return tuple(i / (len(numerals) - 1) for i in found)

    def draw(self, random: np.random.Generator, batch_size: int, length: int) -> Searched:
        self._check(length)
        numerals = random.integers(0, self.base, (batch_size, length), dtype=np.int8)
        place = random.integers(0, length, (batch_size, 1))
        return Searched(numerals, np.take_along_axis(numerals, place, 1)[:, 0])

    def encode(self, drawn: Searched, device: "torch.device | str" = "cpu") -> Batch:
        """Answers are padded to the longest of the batch, on a device to the longest possible."""
        import torch
        from torch.nn import functional as F

        n = drawn.numerals.shape[-1]
        most = n
        if isinstance(drawn.numerals, np.ndarray):
            most = int((drawn.numerals == drawn.query[..., None]).sum(-1).max())
        numerals, query = (torch.as_tensor(x, device=device) for x in drawn)
        here = numerals == query[..., None]  # (…, B, N)
        hits = here.sum(-1)
        places = (~here).to(torch.int8).sort(dim=-1, stable=True).indices[..., :most]
        step = torch.arange(most + 1, device=device)
        answers = F.pad(places / (n - 1), (0, 1)) * (step < hits[..., None])
        signal = (step == hits[..., None]).to(answers.dtype)
        inputs = torch.zeros(*numerals.shape[:-1], n + 4 + most, 2, device=device)
        inputs[..., :n, 0] = numerals / (self.base - 1)
        inputs[..., n + 1, 0] = query / (self.base - 1)
        inputs[..., n, 1].fill_(1)
        inputs[..., n + 2, 1].fill_(1)
        return ChannelsToChannels(
            inputs,
            torch.stack([answers, signal], -1),
            step <= hits[..., None],
            hits + n + 4,
            hits + 1,
        )

    def right(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        """Share (B,) of the places that are among those written before the signal."""
        n = batch.inputs.shape[-2] - batch.targets.shape[-2] - 3
        ended = (outputs[..., 1] > END_SIGNAL).cumsum(-1) > 0
        given = batch.mask & ~ended  # (B, T)
        asked = batch.mask & (batch.targets[..., 1] < 0.5)
        written, wanted = ((x[..., 0] * (n - 1)).round() for x in (outputs, batch.targets))
        met = (written[..., None, :] == wanted[..., None]) & given[..., None, :]  # (B, T, T)
        return (met.any(-1) & asked).sum(-1).double() / asked.sum(-1)

    def shown(self, batch: Batch, row: int) -> Pair:
        n = batch.inputs.shape[1] - batch.targets.shape[1] - 3
        coded = (batch.inputs[row, :, 0] * (self.base - 1)).round().int().tolist()
        asked = int(batch.target_lengths[row]) - 1
        places = (batch.targets[row, :asked, 0] * (n - 1)).round().int().tolist()
        return Pair((*map(str, coded[:n]), f"{coded[n + 1]}?"), tuple(map(str, places)))


class Formulas(NamedTuple):
    """Symbols (B, N) of formulas, and whether each is true (B,)."""

    symbols: "np.ndarray | Tensor"
    truth: "np.ndarray | Tensor"


class TruthMetrics(Metrics):
    """Statements that are true or false.

    truth_accuracy  share of them that is judged right
    """

    truth_accuracy: float = share(
        "accuracy of truth values", about="share of formulas whose truth value is right"
    )


class Logic(StateSpaceTask):
    """Tell whether a formula of truth values is true, at the step after the flag.

    An input has a channel per symbol (one-hot) and the control channel. The output is the log-odds
    that the formula is true; the loss is the cross-entropy of its single step.

    The generator is not in the paper; ours has formulas of every length n. Operators join two
    formulas, in parentheses unless the whole formula is meant. A formula of length 1 is true or
    false. A longer one is, with probability 1/4 or where nothing else fits, the negation of one
    that is a symbol shorter, else joined by a uniform operator from two parts of uniform lengths
    that sum up to what is left. Of lengths 5 to 100, between 0.535 and 0.553 of them are true.

    >>> Logic().answer("((¬(⊤∧⊥)→⊤)∨⊥)↔⊤")
    True
    """

    name: Literal["dnc_logic"] = "dnc_logic"
    metrics: ClassVar[type[Metrics]] = TruthMetrics
    measure: ClassVar[str] = "truth_accuracy"
    negated: ClassVar[float] = 0.25

    @property
    def shape(self) -> tuple[int, ...]:
        return len(SYMBOLS) + 1, 1

    def least_steps(self, length: int) -> int:
        return length + 2

    def answer(self, formula: str) -> bool:
        """Evaluate a formula. Raises RelengthError where it is none."""
        symbols = iter(formula)
        try:
            value, after = self._read(symbols)
            if after:
                raise ValueError("it has too many parentheses")
        except ValueError as why:
            raise RelengthError(
                f"{formula!r} is no formula, since {why}: write ⊤, ⊥, ¬ before an operand, and "
                f"one of {' '.join(OPERATORS)} between two, in parentheses inside others."
            ) from None
        return value

    def _read(self, symbols: Iterator[str]) -> tuple[bool, str]:
        """The value of what stands up to a closing parenthesis or the end, and that symbol."""
        value = self._operand(symbols)
        symbol = next(symbols, "")
        if symbol and symbol in OPERATORS:
            value = _joined(symbol, value, self._operand(symbols))
            symbol = next(symbols, "")
        if symbol not in ("", ")"):
            raise ValueError(f"{symbol!r} follows an operand")
        return value, symbol

    def _operand(self, symbols: Iterator[str]) -> bool:
        symbol = next(symbols, "")
        if symbol == "¬":
            return not self._operand(symbols)
        if symbol == "(":
            value, closing = self._read(symbols)
            if not closing:
                raise ValueError("a parenthesis is left open")
            return value
        if symbol and symbol in "⊤⊥":
            return symbol == "⊤"
        raise ValueError(f"an operand is missing at {repr(symbol) if symbol else 'its end'}")

    def draw(self, random: np.random.Generator, batch_size: int, length: int) -> Formulas:
        self._check(length)
        numbers = random.random((batch_size, 3 * length)).tolist()
        made = [self._formula(iter(row), length, whole=True) for row in numbers]
        symbols = np.array([[SYMBOLS.index(s) for s in text] for text, _ in made], dtype=np.int8)
        return Formulas(symbols, np.array([value for _, value in made]))

    def _formula(self, uniform: Iterator[float], length: int, whole: bool) -> tuple[str, bool]:
        """One formula and its value, from uniform numbers.

        whole  whether it stands alone, and so needs no parentheses
        """
        if length == 1:
            value = next(uniform) < 0.5
            return ("⊤" if value else "⊥"), value
        around = 0 if whole else 2
        parts = length - 1 - around  # symbols of both parts of a joined formula
        if parts < 2 or next(uniform) < self.negated:
            text, value = self._formula(uniform, length - 1, whole=False)
            return "¬" + text, not value
        operator = OPERATORS[int(next(uniform) * len(OPERATORS))]
        first = 1 + int(next(uniform) * (parts - 1))
        left, a = self._formula(uniform, first, whole=False)
        right, b = self._formula(uniform, parts - first, whole=False)
        text = left + operator + right
        return (text if whole else f"({text})"), _joined(operator, a, b)

    def encode(self, drawn: Formulas, device: "torch.device | str" = "cpu") -> Batch:
        import torch
        from torch.nn import functional as F

        symbols, truth = (torch.as_tensor(x, device=device) for x in drawn)
        n = symbols.shape[-1]
        one_hot = symbols[..., None] == torch.arange(len(SYMBOLS), device=device)
        inputs = F.pad(one_hot.to(torch.float32), (0, 1, 0, 2))  # (…, B, N + 2, 10)
        inputs[..., n, -1].fill_(1)
        return _whole(inputs, truth.to(torch.float32)[..., None, None])

    def loss(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        from torch.nn import functional as F

        targets = batch.targets.to(outputs.dtype)
        return F.binary_cross_entropy_with_logits(outputs, targets)

    def right(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        return ((outputs > 0) == (batch.targets > 0.5)).double().mean((-2, -1))

    def score(self, answers: "list[tuple[Batch, Tensor]]") -> Metrics:
        import torch

        right = torch.cat([self.right(outputs, batch) for batch, outputs in answers])
        return TruthMetrics(items=len(right), truth_accuracy=float(right.mean()))

    def shown(self, batch: Batch, row: int) -> Pair:
        symbols = batch.inputs[row, :-2, :-1].argmax(1).tolist()
        truth = "⊤" if batch.targets[row].item() else "⊥"
        return Pair(tuple(SYMBOLS[i] for i in symbols), (truth,))


def _joined(operator: str, a: bool, b: bool) -> bool:
    match operator:
        case "∧":
            return a and b
        case "∨":
            return a or b
        case "→":
            return not a or b
        case _:
            return a == b


def _whole(inputs: "Tensor", targets: "Tensor") -> ChannelsToChannels:
    """A batch whose samples are all as long as the batch, (…, B, S, C) and (…, B, T, K)."""
    import torch

    leading, device = targets.shape[:-2], targets.device
    steps = targets.shape[-2]
    return ChannelsToChannels(
        inputs,
        targets,
        torch.ones((*leading, steps), dtype=torch.bool, device=device),
        torch.full(leading, inputs.shape[-2], device=device),
        torch.full(leading, steps, device=device),
    )
