"""Variable tracking: which variables have a value, if some are set to others.

Source: "MemReasoner: A Memory-Augmented LLM Architecture for Multi-Hop Reasoning", Appendix A.6,
after Hsieh et al., "RULER: What's the Real Context Size of Your Long-Context Language Models?"
(2024). The paper's words and RULER's generator are two readings:

========================= ============================= ==================================
what                      text                          ruler
========================= ============================= ==================================
a name                    one letter, five times        five letters, drawn one by one
a variable set to another ``VAR BBBBB = AAAAA``         ``VAR KQZPD = VAR ABXCE``
lines of a chain          as many as hops               one more than hops
2, 4, 6, 8 or 10          lines of all chains together  chains
========================= ============================= ==================================

In the text a hop is a read of one line, as for bAbI, and even numbers can count the lines of chains
of two. Ten chains of three lines, as RULER has them in two hops, would need 30 names; there are 26
of one letter.
"""

import re
from abc import ABC
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from relength.specs.fields import added
from relength.streams import EVALUATION_SEED, stream
from relength.tasks import books, bpe, data
from relength.tasks.base import EOS, PAD, SOS, SPECIALS, Pair, Split
from relength.tasks.batch import Answered, FactsToAnswer
from relength.tasks.fact_tables import Table, WordTable, text_of
from relength.tasks.facts import AnswerMetrics, Episode, FactsTask, Length
from relength.tasks.metrics import Metrics, share

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NAME = 5  # letters of a name, as many as digits of a value
SIZES = (2, 4, 6, 8, 10)  # Appendix A.6: "chains of length"
# Padding of a context, a line each; Appendix A.6.
NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
ROOM = 30  # tokens of a nominal length that RULER leaves to the answer
SYMBOLS = re.compile(f"[A-Z]{{{NAME}}}|[0-9]{{{NAME}}}")


class Chain(NamedTuple):
    """A value, and the variables that have it: the first is set to it, the others one by one."""

    value: str
    names: tuple[str, ...]

    def lines(self, before: str = "") -> list[str]:
        """Write the chain as lines; ``before`` stands before a variable that is assigned.

        >>> Chain("16438", ("AAAAA", "BBBBB")).lines()
        ['VAR AAAAA = 16438', 'VAR BBBBB = AAAAA']
        """
        known = [self.value, *(f"{before}{name}" for name in self.names)]
        return [f"VAR {name} = {of}" for name, of in zip(self.names, known, strict=False)]


def words(text: str) -> tuple[str, ...]:
    """Words of a line; names and values letter by letter, digit by digit.

    >>> words("VAR AAAAA = 16438")
    ('var', 'A', 'A', 'A', 'A', 'A', '=', '1', '6', '4', '3', '8')
    """
    found: list[str] = []
    for part in text.split():
        found += part if SYMBOLS.fullmatch(part) else books.words(part)
    return tuple(found)


class NameMetrics(AnswerMetrics):
    """Answers that are several names.

    answer_accuracy  share of answers with all the wanted names and no other
    names_found      mean share of the wanted names that stand anywhere in an answer, in capital or
                     small letters: RULER's measure
    """

    names_found: float = share(
        "names found",
        beside="names found",
        about="share of the wanted names that stand in an answer",
    )


class VariableTracking(FactsTask, ABC):
    """Chains of assignments, mixed; a question asks for the variables of one value.

    train, validation, 0k  assignments alone
    1k, 4k, 16k            the same, spread over lines of noise, at so many thousand GPT-2 tokens,
                           less 30 for an answer

    Each size of :data:`SIZES` has equal parts of a split, so that accuracy is the mean over them.

    hops  as the paper counts them
    """

    metrics: ClassVar[type[Metrics]] = NameMetrics
    hops: ClassVar[int]

    source: Literal["files"] = added(
        "files", before="files", description="of the other text: the books; chains are drawn"
    )
    lengths: Annotated[tuple[Length, ...], Field(strict=False)] = ("0k", "1k", "4k", "16k")
    long_size: int = Field(500, gt=0, le=10_000, description="questions per length")
    reading: Literal["text", "ruler"] = Field(
        "text", description="of names, lines and chain lengths: the paper's words, or RULER's code"
    )
    # Lines begin with VAR. After it a decoder that can write lines goes on with one, past the name.
    prompt: Literal["variables", "VAR"] = added(
        "variables", before="VAR", description="the word that an answer is written after"
    )

    @property
    def reads(self) -> int:
        """Lines of a chain, each of which has a name of the answer."""
        return self.hops + (self.reading == "ruler")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return _vocabulary(self.words)

    def splits(self) -> dict[str, Split]:
        return {
            "train": Split(0, 0, self.train_size),
            "validation": Split(0, 0, self.validation_size),
            **dict.fromkeys(self.lengths, Split(0, 0, self.long_size)),
        }

    def episodes(self, split: str, seed: int) -> list[Episode]:
        size = self._split(split).size
        own = (seed, "data") if split == "train" else (EVALUATION_SEED, "evaluation")
        random = stream(*own, self.name, self.reading, split)
        blocks = 0
        if split in self.lengths and split != "0k":
            blocks = 1000 * int(split.removesuffix("k")) - ROOM
        return [self.episode(random, SIZES[i % len(SIZES)], blocks) for i in range(size)]

    def episode(self, random: np.random.Generator, size: int, tokens: int = 0) -> Episode:
        """One question on chains of a size, with lines of noise up to so many GPT-2 tokens."""
        chains = self._chains(random, size)
        said = [chain.lines("VAR " if self.reading == "ruler" else "") for chain in chains]
        needed = sum(bpe.count(f"{line}\n") for lines in said for line in lines)
        noise = max(tokens - needed, 0) // bpe.count(f"{NOISE}\n")
        lines, places = _spread(random, said, noise)
        asked = chains[0]
        return Episode(
            tuple(lines),
            f"Which variables have the value {asked.value} ?",
            " ".join(asked.names),
            tuple(places[0]),
        )

    def _chains(self, random: np.random.Generator, size: int) -> list[Chain]:
        count = size if self.reading == "ruler" else size // self.reads
        names = self._names(random, count * self.reads)
        values = 10_000 + random.choice(90_000, count, replace=False)
        return [
            Chain(str(value), tuple(names[i * self.reads : (i + 1) * self.reads]))
            for i, value in enumerate(values.tolist())
        ]

    def _names(self, random: np.random.Generator, count: int) -> list[str]:
        if self.reading == "text":
            return [NAME * LETTERS[i] for i in random.permutation(len(LETTERS))[:count]]
        found: dict[str, None] = {}
        while len(found) < count:
            found["".join(LETTERS[i] for i in random.integers(len(LETTERS), size=NAME))] = None
        return list(found)

    def table(self) -> Table:
        return super().table() if self.decoder else WordTable(self.vocabulary, words)

    def _rows(self, episodes: list[Episode], table: Table) -> tuple[list[Any], ...]:
        inputs, questions, supports, prompts, targets = [], [], [], [], []
        known: dict[str, int] = {}  # noise is the same line over and over
        answers = [[[*table.ids(name), EOS] for name in e.answer.split()] for e in episodes]
        longest = max(len(name) for names in answers for name in names)
        for episode, names in zip(episodes, answers, strict=True):
            for line in episode.lines:
                if line not in known:
                    known[line] = table.row(line)
            inputs.append([known[line] for line in episode.lines])
            questions.append(table.row(episode.question))
            supports.append(list(episode.supports))
            prompts.append([SOS, *table.ids(self.prompt)])
            # Equal parts, for models that have one from each hop; the end stands in for what lacks.
            targets.append([t for n in names for t in n + [EOS] * (longest - len(n))])
        return inputs, questions, supports, prompts, targets

    def score(self, answers: "list[tuple[FactsToAnswer, Answered]]") -> NameMetrics:
        """Score answers by all of their names, in whatever order, and by each of them."""
        right: list[bool] = []
        shares: list[float] = []
        found: list[bool] = []
        for batch, written in answers:
            for wanted, said in zip(batch.targets.tolist(), written.tokens.tolist(), strict=True):
                names, ours = set(self.spelled(wanted)), self.spelled(said)
                right.append(names == set(ours))
                text = " ".join(ours).lower()
                shares.append(sum(name.lower() in text for name in names) / len(names))
            if written.read is not None:
                found += (written.read == batch.supports).all(1).tolist()
        both = [a and b for a, b in zip(right, found, strict=False)]
        return NameMetrics(
            items=len(right),
            answer_accuracy=sum(right) / len(right),
            names_found=sum(shares) / len(shares),
            facts_found=sum(found) / len(found) if found else None,
            answer_and_facts=sum(both) / len(both) if both else None,
            diverged=0.0 if found else None,
        )

    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        """The names that are written, each up to its end."""
        found, name = [], ""
        for token in tokens:
            if token == EOS:
                found += [name] * bool(name)
                name = ""
            elif token != PAD:
                name += self._letters(token)
        return tuple(found + [name] * bool(name))

    def _letters(self, token: int) -> str:
        return text_of(self.decoder, [token]).strip() if self.decoder else self.vocabulary[token]

    def shown(self, batch: FactsToAnswer, row: int) -> Pair:
        lines = batch.inputs[row, : int(batch.input_lengths[row])].tolist()
        texts = (batch.for_decoder[i].tolist() for i in (*lines, int(batch.questions[row])))
        source = tuple(" ".join(super(VariableTracking, self).spelled(text)) for text in texts)
        return Pair(source, self.spelled(batch.targets[row].tolist()))

    def provenance(self) -> dict[str, Any]:
        """Chains are drawn; the sentences of other text beside them are those of the books."""
        self._check_networks()
        data.books("train")  # an error where they are missing
        known = data.index()["books"]["splits"]["train"]
        return {"source": "generated", "sha256": {n: book["sha256"] for n, book in known.items()}}

    def lacks(self) -> str:
        return self._lacks_networks() or data.lacks_books()


class OneHop(VariableTracking):
    """One hop. As the text reads it, each line is a chain of its own.

    >>> drawn = OneHop().episode(np.random.default_rng(0), size=2)
    >>> drawn.lines[drawn.supports[0]], drawn.question, drawn.answer
    ('VAR TTTTT = 46291', 'Which variables have the value 46291 ?', 'TTTTT')
    """

    hops: ClassVar[int] = 1

    name: Literal["vt_1hop"] = "vt_1hop"


class TwoHops(VariableTracking):
    """Two hops.

    >>> drawn = TwoHops().episode(np.random.default_rng(0), size=2)
    >>> drawn.lines, drawn.answer
    (('VAR TTTTT = 48041', 'VAR EEEEE = TTTTT'), 'TTTTT EEEEE')
    """

    hops: ClassVar[int] = 2

    name: Literal["vt_2hop"] = "vt_2hop"


def _spread(
    random: np.random.Generator, said: list[list[str]], noise: int
) -> tuple[list[str], list[list[int]]]:
    """Lines of chains among lines of noise, and where those of each chain stand.

    Lines of one chain keep their order, and each draws a gap of its own in the noise while there
    are enough; lines of several chains in one gap are mixed.
    """
    whose = [chain for chain, lines in enumerate(said) for _ in lines]
    mixed = random.permutation(whose)
    if noise:
        gaps = [
            random.choice(noise + 1, len(lines), replace=len(lines) > noise + 1) for lines in said
        ]
        left = [sorted(chain.tolist(), reverse=True) for chain in gaps]
        drawn = [(left[chain].pop(), chain) for chain in mixed]
        drawn.sort(key=lambda one: one[0])
    else:
        drawn = [(0, chain) for chain in mixed]
    waiting = [iter(lines) for lines in said]
    found: list[str] = []
    places: list[list[int]] = [[] for _ in said]
    for before, (gap, chain) in enumerate(drawn):
        found += [NOISE] * (gap - (len(found) - before))
        places[chain].append(len(found))
        found.append(next(waiting[chain]))
    return found + [NOISE] * (noise - (len(found) - len(drawn))), places


@lru_cache(maxsize=4)
def _vocabulary(size: int) -> tuple[str, ...]:
    """Special tokens, what lines and questions are made of, then the commonest of books."""
    own = (*words(f"VAR = Which variables have the value ? {NOISE}"), *LETTERS, *"0123456789")
    return tuple(dict.fromkeys([*SPECIALS, *own, *books.commonest("train")]))[:size]
