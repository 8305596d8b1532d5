"""Instructions in words, and answers: the tasks of large language models, as text of any tokenizer.

Source: Le et al., "Plug, Play, and Generalize: Length Extrapolation with PANM", Section 3.5 and
Appendix D.5, which prints a prompt and its target for Copy and for Dynamic Recall. Not printed: how
the lengths of training are spread (here uniform from 1 to 10), whether a sequence may be repeated
(here not), and what BLEU is of answers of one letter (:class:`TextMetrics`).

With ``shots`` there are further tests, whose prompts begin with so many examples and their answers.
Table 11 has five. Its caption says that inputs overflow 4,096 tokens. This takes examples as long
as the question, which ours are; with examples of at most ten letters it would not happen.

Without a tokenizer each word of an instruction and each letter of a sequence is a token of its own,
much as in Llama's vocabulary, where a letter with the space before it is one token.
"""

from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from relength.specs.fields import added
from relength.streams import EVALUATION_SEED, stream
from relength.tasks import pretrained
from relength.tasks.algorithmic import DynamicRecall
from relength.tasks.base import EOS, PAD, Pair, Split, TextTask
from relength.tasks.batch import Batch, pad_tokens
from relength.tasks.metrics import Metrics, TokenMetrics, share, token_metrics, tokens_right

if TYPE_CHECKING:
    from torch import Tensor

LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
COPYING = "This is copy task. Given this:"
RECALLING = (
    "This is dynamic recall task. You are given a sequence of characters. The last character is "
    "the query and you need to retrieve the first character after or before the query in the "
    "sequence if the number of the characters in the sequence is odd or even, respectively. Given "
    "this:"
)
ASKED = ("\n", "Your", "answer:")


class Instruction(TextTask):
    """A prompt of words and letters, and what is to be answered.

    A subclass has ``between``, what stands between two symbols of its text. Everything is scored as
    text: what a tokenizer cuts an answer into does not matter.
    """

    dev_splits: ClassVar[tuple[str, ...]] = ("validation",)
    stacks: ClassVar[bool] = False  # a causal language model's own code is not for vmap
    between: ClassVar[str] = " "

    tokenizer: str = Field("", description="pretrained model whose tokenizer cuts the text: its "
                           "name or folder; empty for the task's own symbols")  # fmt: skip
    shots: int = added(0, before=0, ge=0, description="examples in the prompts of further tests")
    reads: int = added(4_096, before=4_096, gt=0, description="tokens of a prompt and its answer, "
                       "at most: a longer prompt loses its beginning")  # fmt: skip

    def lacks(self) -> str:
        absent = pretrained.lacks(self.tokenizer) if self.tokenizer else ""
        return absent or pretrained.lacks_libraries()

    @property
    def end(self) -> int:
        """The token that ends an answer."""
        return pretrained.end(self.tokenizer) if self.tokenizer else EOS

    @property
    def shape(self) -> tuple[int, ...]:
        return (pretrained.size(self.tokenizer),) if self.tokenizer else super().shape

    def encode(self, pairs: list[Pair]) -> Batch:
        if not self.tokenizer:
            kept = [
                pair._replace(source=pair.source[-self.room(len(pair.target)) :]) for pair in pairs
            ]
            return super().encode(kept)
        cut = pretrained.tokenizer(self.tokenizer)
        targets = [
            cut(self.text(pair.target), add_special_tokens=False)["input_ids"] for pair in pairs
        ]
        sources = [
            cut(self.text(pair.source))["input_ids"][-self.room(len(ids)) :]
            for pair, ids in zip(pairs, targets, strict=True)
        ]
        return pad_tokens(sources, [[*ids, self.end] for ids in targets], padding=PAD)

    def room(self, answer: int) -> int:
        """Tokens of a prompt that a model can read before an answer of so many, and its end."""
        return max(self.reads - answer - 1, 1)

    def decode(self, tokens: list[int]) -> tuple[str, ...]:
        if not self.tokenizer:
            return super().decode(tokens)
        if self.end in tokens:
            tokens = tokens[: tokens.index(self.end)]
        text = pretrained.tokenizer(self.tokenizer).decode(tokens, skip_special_tokens=True)
        return tuple(text.split(self.between) if self.between else text)

    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        if not self.tokenizer:
            return super().spelled(tokens)
        return tuple(pretrained.tokenizer(self.tokenizer).convert_ids_to_tokens(tokens))

    def text(self, symbols: tuple[str, ...]) -> str:
        """The symbols as one text."""
        return self.between.join(symbols)

    def loss(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        """Cross-entropy of the answers alone, the mean over all their tokens."""
        from relength.tasks.losses import cross_entropy

        return cross_entropy(outputs, batch)


class TextMetrics(TokenMetrics):
    """Texts that are written, of which tokens are a part.

    bleu  of all texts together, with n-grams of up to four words, or of as many as there are
    """

    bleu: float = share("BLEU", about="overlap with the wanted text, by BLEU")


class Letters(Instruction):
    """Sequences of letters of both cases, with an instruction in front of them.

    train        100,000 sequences of at most ten letters
    validation   others of these lengths; nothing is selected on them
    iid          sequences of ten letters, the longest of training: the first column of Table 7
    20 to 1000   letters, the other columns
    5-shot_10    and so on to 1000, if ``shots`` is 5: the same questions after examples (Table 11)

    >>> LetterCopy().text(LetterCopy().pair(tuple("FbPiP")).source)
    'This is copy task. Given this: F b P i P \\n Your answer:'
    """

    metrics: ClassVar[type[Metrics]] = TextMetrics
    measure: ClassVar[str] = "bleu"
    shortest: ClassVar[int] = 1
    instruction: ClassVar[tuple[str, ...]]

    train_size: int = Field(100_000, gt=0, description="training sequences")
    dev_size: int = Field(1_000, gt=0, description="not used: see validation_size")
    test_size: int = Field(1_000, gt=0, description="sequences per test set")
    validation_size: int = Field(1_000, gt=0, description="sequences that are held out")
    longest: int = Field(1_000, ge=20, description="letters of the longest test")

    def splits(self) -> dict[str, Split]:
        lengths = [n for n in (20, 40, 100, 200, 500, 1000) if n <= self.longest]
        return {
            "train": Split(self.shortest, 10, self.train_size),
            "validation": Split(self.shortest, 10, self.validation_size),
            "iid": Split(10, 10, self.test_size),
            **{str(n): Split(n, n, self.test_size) for n in lengths},
            **{
                self.shown_test(n): Split(n, n, self.test_size)
                for n in (10, *lengths)
                if self.shots
            },
        }

    def shown_test(self, length: int) -> str:
        """The name of a test with examples."""
        return f"{self.shots}-shot_{length}"

    def pairs(self, split: str, seed: int) -> list[Pair]:
        if "-shot_" not in split:
            return super().pairs(split, seed)
        self._split(split)
        length = split.rpartition("_")[2]
        asked = super().pairs("iid" if length == "10" else length, seed)
        return [self.after_examples(pair, int(length), place) for place, pair in enumerate(asked)]

    def after_examples(self, asked: Pair, length: int, place: int) -> Pair:
        """A question, its number in the test, after ``shots`` others of its length and their
        answers.
        """
        random = stream(EVALUATION_SEED, "evaluation", self.name, "shots", length, place)
        others = [self.draw(random, length) for _ in range(self.shots)]
        shown = chain.from_iterable((*one.source, *one.target, "\n", "\n") for one in others)
        return Pair((*shown, *asked.source), asked.target)

    def text_sizes(self) -> tuple[tuple[int, int], ...]:
        """Words and letters, of which a tokenizer may make more tokens, of each test."""
        random = stream(EVALUATION_SEED, "evaluation", self.name, "sizes")
        found = []
        for length in sorted({self.splits()[test].longest for test in self.tests}):
            pair = self.draw(random, length)
            if self.shots:
                pair = self.after_examples(pair, length, 0)
            answer = len(pair.target)
            found.append((min(len(pair.source), self.room(answer)), answer + 1))
        return tuple(found)

    def draw(self, random: np.random.Generator, length: int) -> Pair:
        return self.pair(tuple(LETTERS[i] for i in random.integers(0, len(LETTERS), length)))

    def prompt(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """The whole prompt about a sequence."""
        return (*self.instruction, *given, *ASKED)

    def score(self, answers: "list[tuple[Batch, Tensor]]") -> Metrics:
        from relength.tasks.text_scores import bleu

        written = chain.from_iterable(tokens.tolist() for _, tokens in answers)
        targets = chain.from_iterable(batch.targets.tolist() for batch, _ in answers)
        given, wanted = (
            [self.text(self.decode(row)) for row in rows] for rows in (written, targets)
        )
        known = token_metrics(answers, self.end).model_dump()
        return TextMetrics(bleu=bleu(given, wanted), **known)

    def right(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        """The share of right tokens: while it is trained, nothing is written that BLEU could
        score.
        """
        return tokens_right(outputs, batch)


class LetterCopy(Letters):
    """The letters again. The printed example:

    >>> print(*LetterCopy().pair(tuple("FbPiPBmsGj")).target)
    F b P i P B m s G j
    """

    instruction: ClassVar[tuple[str, ...]] = tuple(COPYING.split(" "))
    symbols: ClassVar[tuple[str, ...]] = (*LETTERS, *sorted({*instruction, *ASKED}))

    name: Literal["llm_copy"] = "llm_copy"

    def pair(self, letters: tuple[str, ...]) -> Pair:
        """Prompt and answer about these letters."""
        return Pair(self.prompt(letters), letters)


RECALL = DynamicRecall()


class LetterRecall(Letters):
    """The letter after a query, or before it. The printed example:

    >>> pair = LetterRecall().pair(tuple("EVyDmIeVuf"), "V")
    >>> print(*pair.source[-17:-3], "->", *pair.target)
    Given this: E V y D m I e V u f _ V -> E

    The rule is that of the algorithmic task, which says what the text leaves open: a letter that
    occurs twice counts where it is first, and after the last one comes the first.
    """

    shortest: ClassVar[int] = 2  # one letter alone would answer itself
    instruction: ClassVar[tuple[str, ...]] = tuple(RECALLING.split(" "))
    symbols: ClassVar[tuple[str, ...]] = (
        *LETTERS,
        *sorted({*instruction, "_", *ASKED} - {*LETTERS}),
    )

    name: Literal["llm_dynamic_recall"] = "llm_dynamic_recall"

    def draw(self, random: np.random.Generator, length: int) -> Pair:
        letters = tuple(LETTERS[i] for i in random.integers(0, len(LETTERS), length))
        return self.pair(letters, letters[int(random.integers(length))])

    def pair(self, letters: tuple[str, ...], query: str) -> Pair:
        """Prompt and answer about these letters and a query, which is one of them."""
        answer = RECALL.answer("".join((*letters, query)))
        return Pair(self.prompt((*letters, "_", query)), (answer,))


TASKS = {"llm_copy": LetterCopy, "llm_dynamic_recall": LetterRecall}
