"""Questions about facts: bAbI, and BABILong, which hides its facts in pages of books.

Source: "MemReasoner: A Memory-Augmented LLM Architecture for Multi-Hop Reasoning", Section 4.1,
Appendix A.2, after Weston et al., "Towards AI-Complete Question Answering" (2015), and Kuratov et
al., "BABILong" (2024). Both files and books are read from where RELENGTH_DATA points
(:mod:`relength.tasks.data`). A task whose source is ``generated`` needs neither.

Pretrained networks cut texts by tokenizers of their own. Small ones know the words of bAbI, the new
places that some tests use, and the commonest words of the training books.
"""

import re
from abc import ABC
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from pydantic import Field, model_validator

from relength.errors import RelengthError
from relength.specs.fields import added
from relength.specs.kinds import FACTS, Kind
from relength.streams import EVALUATION_SEED, stream
from relength.tasks import babi_stories, books, bpe, data, pretrained
from relength.tasks.babi_stories import PLACES
from relength.tasks.base import EOS, PAD, SOS, SPECIALS, UNK, Pair, Split, Task
from relength.tasks.batch import Answered, FactsToAnswer, SpokenFacts
from relength.tasks.fact_tables import Table, TokenTable, WordTable, text_of, token_parts
from relength.tasks.metrics import Metrics, exactly_right, share

if TYPE_CHECKING:
    from torch import Tensor

NEW_PLACES = ("attic", "basement", "cafe", "garage", "gym", "library")  # Section 4.3.3
ALLOWANCE = 300  # tokens of a nominal length that BABILong leaves to prompts
ANSWER_WORDS = 2  # an answer and its end
QUESTION = re.compile(r"Where is (?:the )?(\w+)\?")

Source = Literal["files", "generated"]
Length = Literal["0k", "1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k"]
LENGTHS: tuple[Length, ...] = get_args(Length)
# Without books there is nothing to hide facts in.
WITHOUT_BOOKS: tuple[Length, ...] = LENGTHS[:1]


def if_files(lengths: tuple[Length, ...]) -> Any:
    """The default of a field of lengths, of which generated stories have the first alone."""

    def chosen(fields: dict[str, Any]) -> tuple[Length, ...]:
        if fields.get("source") != "generated":
            return lengths
        return tuple(length for length in lengths if length in WITHOUT_BOOKS)

    return Field(default_factory=chosen)


class Episode(NamedTuple):
    """One question and what it is about, as text.

    lines     facts in their order; empty where an earlier question stood
    supports  places in ``lines`` of the facts that answer it, in the order of hops
    """

    lines: tuple[str, ...]
    question: str
    answer: str
    supports: tuple[int, ...]


def episodes(text: str) -> list[Episode]:
    """Every question of a bAbI file, with all lines of its story before it.

    Raises RelengthError for a line that is neither a fact nor a question.
    """
    found: list[Episode] = []
    lines: list[str] = []
    for line in text.splitlines():
        number, _, rest = line.partition(" ")
        if not number.isdecimal():
            raise RelengthError(f"{line!r} is no line of bAbI: each begins with its number.")
        if number == "1":
            lines = []
        question, *answer = rest.split("\t")
        if not answer:
            lines.append(rest.strip())
            continue
        if len(answer) != 2:
            raise RelengthError(
                f"{line!r} is no question of bAbI: an answer and the numbers of its facts follow "
                "it, with tabs between."
            )
        if not answer[1].replace(" ", "").isdecimal():
            raise RelengthError(
                f"{answer[1]!r} in {line!r} is no list of numbers: name lines of its story."
            )
        supports = tuple(int(n) - 1 for n in answer[1].split())
        found.append(Episode(tuple(lines), question.strip(), answer[0].strip(), supports))
        lines.append("")
    return found


def subject(question: str) -> str:
    """Whom or what a question is about. RelengthError where it does not ask for a place.

    >>> subject("Where is the football?")
    'football'
    """
    found = QUESTION.fullmatch(question)
    if found is None:
        raise RelengthError(
            f"{question!r} has no known subject: ask 'Where is Mary?' or 'Where is the football?'."
        )
    return found[1]


def named(written: str, question: str, labels: tuple[str, ...]) -> set[str]:
    """Find the labels of BABILong's rule in what was written.

    It reads to the first full stop, and leaves out labels that the question names already.

    >>> sorted(named("the garden, not the office. Kitchen", "Where is Mary?", PLACES))
    ['garden', 'office']
    """
    first = written.lower().partition(".")[0]
    return {label for label in labels if label in first and label not in question.lower()}


def without_questions(episode: Episode) -> Episode:
    """The episode without the empty lines of earlier questions, as BABILong has it."""
    kept = [i for i, line in enumerate(episode.lines) if line]
    lines = tuple(episode.lines[i] for i in kept)
    return episode._replace(lines=lines, supports=tuple(map(kept.index, episode.supports)))


def filled(episode: Episode, lines: int) -> Episode:
    """The episode with empty lines before it, so that it has at least so many."""
    missing = max(lines - len(episode.lines), 0)
    return episode._replace(
        lines=("",) * missing + episode.lines,
        supports=tuple(place + missing for place in episode.supports),
    )


def hidden(
    episode: Episode, random: np.random.Generator, tokens: int, among: tuple[books.Background, ...]
) -> Episode:
    """The episode with its facts spread over a passage, so that both have so many GPT-2 tokens.

    Each fact draws one of the gaps around the sentences; several may draw the same. Facts keep
    their order. Raises RelengthError where the facts alone are longer.
    """
    facts = sum(bpe.count(f" {line}") for line in episode.lines)
    if facts > tokens:
        raise RelengthError(
            f"{len(episode.lines)} facts have {facts} tokens and do not fit into {tokens}: choose "
            "a longer context."
        )
    background = books.passage(among, random, tokens - facts)
    gaps = np.sort(random.integers(0, len(background) + 1, len(episode.lines)))
    lines, places = [], []
    for i, fact in enumerate(episode.lines):
        lines += background[gaps[i - 1] if i else 0 : gaps[i]]
        places.append(len(lines))
        lines.append(fact)
    lines += background[gaps[-1] if len(gaps) else 0 :]
    return Episode(
        tuple(lines),
        episode.question,
        episode.answer,
        tuple(places[place] for place in episode.supports),
    )


class AnswerMetrics(Metrics):
    """Answers to questions about facts.

    answer_accuracy   share of answers that name the wanted thing and no other
    facts_found       share of samples in which every read finds the fact that it should; None for a
                      model that does not tell what it reads
    answer_and_facts  share in which both are right
    diverged          share whose memory could not be computed, and which have no answer
    """

    answer_accuracy: float = share(
        "answer accuracy", whole=True, about="share of answers that name the right thing alone"
    )
    facts_found: float | None = share(
        "facts found",
        default=None,
        whole=True,
        beside="facts found",
        about="share of questions whose facts are all read",
    )
    answer_and_facts: float | None = share("answer and facts", default=None, whole=True)
    diverged: float | None = share("memory diverged", default=None)


class FactsTask(Task, ABC):
    """A task of bAbI. A test set of bAbI itself, then the same questions with facts among pages.

    train       9,000 questions of the 10,000 that are published for training
    validation  the other 1,000, of the last stories
    babi        1,000 test questions; as in training, earlier questions are empty lines
    0k … 128k   the 100 test questions that BABILong asks, facts only (0k) or spread over pages of
                test books, at so many thousand GPT-2 tokens, less 300 for a prompt

    A size below the full one takes a random part: the training part, and the sentence of other text
    beside each training sample, belong to the run's seed, every other one to the task.

    With source ``generated`` the stories are those of :mod:`relength.tasks.babi_stories`, sizes and
    choice as above. There are no books then: lengths end with 0k, and the other text is a line of
    the stories.

    file        of bAbI, without ``_train.txt``
    asked       the key of the questions in BABILong
    asked_file  of bAbI, that has these questions, if it is another one
    """

    kind: ClassVar[Kind] = FACTS
    metrics: ClassVar[type[Metrics]] = AnswerMetrics
    measure: ClassVar[str] = "answer_accuracy"
    dev_splits: ClassVar[tuple[str, ...]] = ("validation",)
    stacks: ClassVar[bool] = False  # the table of sentences is shared within a run
    labels: ClassVar[tuple[str, ...]] = PLACES
    file: ClassVar[str]
    asked: ClassVar[str]
    asked_file: ClassVar[str] = ""

    train_size: int = Field(9_000, gt=0, le=9_000, description="training questions")
    validation_size: int = Field(1_000, gt=0, le=1_000, description="validation questions")
    test_size: int = Field(1_000, gt=0, le=1_000, description="test questions of bAbI")
    long_size: int = Field(100, gt=0, le=100, description="questions per length of BABILong")
    source: Source = added(
        "files", before="files", description="bAbI's files and books, or stories drawn alike"
    )
    lengths: Annotated[tuple[Length, ...], Field(strict=False)] = if_files(LENGTHS)
    words: int = Field(3_000, gt=200, description="size of the vocabulary")
    sentence_words: int = Field(64, gt=0, description="words of a line; longer ones are cut up")
    window_words: int = added(0, before=0, ge=0, description="words of a piece of other text, one "
                              "of them exchanged for any of the vocabulary; 0: whole sentences as "
                              "they are")  # fmt: skip
    windows: int = added(
        1, before=1, gt=0, description="pieces of other text beside a training sample"
    )
    least_lines: int = Field(0, ge=0, description="lines of an episode of bAbI, filled up with "
                             "empty ones at its beginning; 0 fills none")  # fmt: skip
    networks: str = added(
        "",
        before="",
        description="pretrained networks that it is meant for and nothing here loads; none: ''",
    )
    encoder: str = added(
        "",
        before="",
        description="pretrained model whose tokenizer cuts lines and questions: its name or "
        "folder; empty for words, or where the decoder reads them",
    )
    decoder: str = added(
        "",
        before="",
        description="pretrained model whose tokenizer cuts what is written; empty for words",
    )

    @model_validator(mode="after")
    def _an_encoder_has_a_decoder(self) -> "FactsTask":
        if self.encoder and not self.decoder:
            raise ValueError(f"encoder {self.encoder} is pretrained: name a decoder that is, too")
        return self

    @model_validator(mode="after")
    def _tokens_are_of_files(self) -> "FactsTask":
        if self.decoder and (self.window_words or self.source == "generated"):
            raise ValueError(
                "pretrained networks learn from bAbI's files and whole sentences of books: leave "
                "window_words at 0 and source at 'files'"
            )
        return self

    @model_validator(mode="after")
    def _windows_fit(self) -> "FactsTask":
        if self.window_words > self.sentence_words:
            raise ValueError(
                f"a window of {self.window_words} words is longer than a line, which has at most "
                f"{self.sentence_words}"
            )
        return self

    @model_validator(mode="after")
    def _hidden_in_books(self) -> "FactsTask":
        if self.source == "generated" and (more := set(self.context_lengths) - {*WITHOUT_BOOKS}):
            raise ValueError(
                f"generated stories have no books to be hidden in: leave out {', '.join(more)}, or "
                "choose source 'files'"
            )
        return self

    @property
    def context_lengths(self) -> tuple[Length, ...]:
        """Every length of BABILong that is asked for."""
        return self.lengths

    @property
    def shape(self) -> tuple[int, ...]:
        if self.decoder:
            return (len(SPECIALS) + pretrained.size(self.decoder),)
        # Few words are known without books; to count those of files takes the files.
        return (len(self.vocabulary) if self.source == "generated" else self.words,)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Special tokens, then words; a token's id is its place here. For small networks."""
        return _vocabulary(self.words, self.source)

    def table(self) -> Table:
        """Return a table that turns texts into numbers, without any sentence so far."""
        if self.decoder:
            return TokenTable(self.encoder, self.decoder)
        return WordTable(self.vocabulary)

    def rows_of(self, line: str) -> int:
        """Count the rows of a batch that a line takes."""
        if self.encoder:
            return len(token_parts(self.encoder, line, self.sentence_words))
        return 1 if self.decoder else max(-(-len(books.words(line)) // self.sentence_words), 1)

    def splits(self) -> dict[str, Split]:
        return {
            "train": Split(0, 0, self.train_size),
            "validation": Split(0, 0, self.validation_size),
            "babi": Split(0, 0, self.test_size),
            **dict.fromkeys(self.lengths, Split(0, 0, self.long_size)),
        }

    def episodes(self, split: str, seed: int) -> list[Episode]:
        """The samples of a split as text."""
        size = self._split(split).size
        if split in LENGTHS:
            return [self.long(split, i) for i in range(size)]
        known = _read(self.source, self.file, "test" if split == "babi" else "train")
        pool = {"babi": known, "train": known[:9_000], "validation": known[9_000:]}[split]
        own = seed, "data" if split == "train" else "evaluation"
        random = stream(*(own if split == "train" else (EVALUATION_SEED, own[1])), self.name, split)
        chosen = np.sort(random.permutation(len(pool))[:size])
        return [filled(pool[i], self.least_lines) for i in chosen]

    def long(self, length: Length, i: int) -> Episode:
        """One of the questions of BABILong at a nominal length."""
        question = data.index()["babilong"]["questions"][self.asked][i]
        asked = _read(self.source, self.asked_file or self.file, "test")
        episode = without_questions(asked[question])
        if length == "0k":
            return episode
        tokens = 1000 * int(length.removesuffix("k")) - ALLOWANCE
        random = stream(EVALUATION_SEED, "evaluation", self.name, length, i)
        return hidden(episode, random, tokens, books.backgrounds("test"))

    def dataset(self, split: str, seed: int) -> FactsToAnswer:
        self._split(split)
        if split == "train":
            episodes = self.episodes(split, seed)
            texts = self._texts(len(episodes) * self.windows, seed)
            return self.encode({split: episodes}, texts)[split]
        return _evaluation(self)[split]

    def _texts(self, size: int, seed: int) -> list[str] | list[tuple[str, ...]]:
        """Lines of the training books, for :attr:`windows` beside each training sample; without
        books, of the stories. Of one that is too long for a pretrained encoder, its beginning.
        """
        if self.source == "generated":
            lines = _story_lines(self.file)
        else:
            lines = _book_sentences() if self.decoder else _book_lines(self.sentence_words)
        random = stream(seed, "data", self.name, "texts")
        if self.window_words:
            return self._windows(lines, size, random)
        chosen = random.integers(len(lines), size=size)
        if not self.encoder:
            return [lines[i] for i in chosen]
        return [token_parts(self.encoder, lines[i], self.sentence_words)[0] for i in chosen]

    def _windows(
        self, lines: tuple[tuple[str, ...], ...], size: int, random: np.random.Generator
    ) -> list[tuple[str, ...]]:
        """Short pieces of lines. One word of each is exchanged for any of the vocabulary, so that
        every word, new places among them, is written now and then.
        """
        width, words = self.window_words, self.vocabulary[len(SPECIALS) :]
        long = [line for line in lines if len(line) >= width]
        found = []
        for line in random.integers(len(long), size=size).tolist():
            start = int(random.integers(len(long[line]) - width + 1))
            piece = list(long[line][start : start + width])
            piece[int(random.integers(width))] = words[int(random.integers(len(words)))]
            found.append(tuple(piece))
        return found

    def encode(
        self,
        sets: dict[str, list[Episode]],
        texts: list[str] | list[tuple[str, ...]] | None = None,
    ) -> dict[str, FactsToAnswer]:
        """Sets of episodes as batches that share one table of sentences.

        texts  pieces of other text, or their words, as many per sample, if there is only one set
        """
        table = self.table()
        rows = {name: self._rows(episodes, table) for name, episodes in sets.items()}
        beside = [table.row(text) for text in texts or ()]
        sentences = table.tensors(self.sentence_words)
        return {
            name: _batch(sentences, *found, beside or [0] * len(found[0]))
            for name, found in rows.items()
        }

    def _rows(self, episodes: list[Episode], table: Table) -> tuple[list[Any], ...]:
        """Lines, question, supports, prompt and target of each episode in numbers."""
        inputs, questions, supports, prompts, targets = [], [], [], [], []
        for episode in episodes:
            self._check(episode, table)
            lines: list[int] = []
            first: list[int] = []  # the row of each line's beginning: a long line takes several
            for line in episode.lines:
                first.append(len(lines))
                lines += table.rows(line, self.sentence_words)
            inputs.append(lines)
            questions.append(table.row(episode.question))
            supports.append([first[place] for place in episode.supports])
            prompts.append([SOS, *table.ids(f"{subject(episode.question)} is in the")])
            targets.append([*table.ids(episode.answer), EOS])
        return inputs, questions, supports, prompts, targets

    def _check(self, episode: Episode, table: Table) -> None:
        asked = subject(episode.question)
        if asked in self.labels:
            raise RelengthError(
                f"{episode.question!r} asks where a place is, and places are answers: ask for a "
                "person or thing of the lines."
            )
        if UNK in table.ids(asked):
            raise RelengthError(
                f"The vocabulary has no word for {asked}, which {episode.question!r} asks for, so "
                "that it could be told from no other: ask for a person or thing of bAbI."
            )
        if not episode.lines:
            raise RelengthError(
                f"The question {episode.question!r} has no line to read: give it one or more."
            )
        whole = re.compile(rf"\b{re.escape(asked)}\b", re.IGNORECASE)
        if not any(map(whole.search, episode.lines)):
            raise RelengthError(
                f"No line says anything of {asked}, which {episode.question!r} asks for: ask for "
                "a person or thing of the lines."
            )
        if episode.answer not in self.labels:
            raise RelengthError(
                f"The answer {episode.answer!r} is none of the places that {self.name} knows: "
                f"choose one of {', '.join(self.labels)}."
            )
        if not all(0 <= place < len(episode.lines) for place in episode.supports):
            raise RelengthError(
                f"The facts {episode.supports} of {episode.question!r} are not among its lines, of "
                f"which there are {len(episode.lines)}, counted from 0: name lines that are there."
            )
        last = episode.lines[episode.supports[-1]] if episode.supports else ""
        if episode.supports and episode.answer not in last:
            raise RelengthError(
                f"The fact {last!r} does not name the answer {episode.answer!r}: let the last "
                "supporting fact have the place that is asked for."
            )

    def loss(self, outputs: "Tensor", batch: FactsToAnswer) -> "Tensor":
        """Mean cross-entropy of the answers' words, from scores (B, T, words)."""
        from relength.tasks.losses import cross_entropy

        return cross_entropy(outputs, batch)

    def right(self, outputs: "Tensor", batch: FactsToAnswer) -> "Tensor":
        return exactly_right(outputs, batch)

    def score(self, answers: "list[tuple[FactsToAnswer, Answered]]") -> AnswerMetrics:
        """Score answers by BABILong's strict rule, and where models tell it, what they have read.

        An answer is right if the wanted label is the only one that it names.
        """
        right: list[bool] = []
        found: list[bool] = []
        diverged = 0
        for batch, written in answers:
            for i, tokens in enumerate(written.tokens.tolist()):
                question = self._text(batch.for_decoder[batch.questions[i]].tolist())
                (label,) = self.spelled(batch.targets[i].tolist())
                said = named(self._text(tokens), question, self.labels)
                right.append(said == {label})
            if written.read is not None:
                diverged += int((written.read < 0).any(1).sum())
                found += _all_found(written.read, batch.supports).tolist()
        both = [a and b for a, b in zip(right, found, strict=False)]
        return AnswerMetrics(
            items=len(right),
            answer_accuracy=sum(right) / len(right),
            facts_found=sum(found) / len(found) if found else None,
            answer_and_facts=sum(both) / len(both) if both else None,
            diverged=diverged / len(found) if found else None,
        )

    def shown(self, batch: FactsToAnswer, row: int) -> Pair:
        lines = batch.inputs[row, : int(batch.input_lengths[row])].tolist()
        rows = [*lines, int(batch.questions[row])]
        source = tuple(self._text(batch.for_decoder[i].tolist()) for i in rows)
        return Pair(source, self.spelled(batch.targets[row].tolist()))

    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        if EOS in tokens:
            tokens = tokens[: tokens.index(EOS)]
        if self.decoder:
            return tuple(text_of(self.decoder, tokens).split())
        return tuple(self.vocabulary[token] for token in tokens if token != PAD)

    def _text(self, tokens: list[int]) -> str:
        return " ".join(self.spelled(tokens))

    def provenance(self) -> dict[str, Any]:
        """Name the place where bAbI was found, and the SHA-256 of its files and of the books.

        Of generated stories it says so, and why if the files are not here.
        """
        self._check_networks()
        if self.source == "generated":
            why = lacks_published()
            return {"source": "generated", **({"reason": why} if why else {})}
        found = data.find("babi")
        if found.source is None or (why := data.lacks_books()):
            raise RelengthError(
                f"Task {self.name} has no data ({found.reason or why}): let RELENGTH_DATA name a "
                "folder with bAbI and the books that data_index.json lists, or let the task's "
                "source be 'generated', as it is at scale smoke where they are missing."
            )
        files = self.file, self.asked_file or self.file
        own = {name: sha for name, sha in found.sha256.items() if name.startswith(files)}
        splits = data.index()["books"]["splits"]
        known = {name: book["sha256"] for split in splits.values() for name, book in split.items()}
        return {"source": found.source, "sha256": own | known}

    def lacks(self) -> str:
        return self._lacks_networks() or ("" if self.source == "generated" else lacks_published())

    def _lacks_networks(self) -> str:
        """Say which pretrained networks are not here, or that nothing loads them."""
        if self.networks:
            return f"pretrained networks ({self.networks}), which are not built here"
        for name in (self.encoder, self.decoder):
            if name and (why := pretrained.lacks(name) or pretrained.lacks_libraries()):
                return why
        return ""

    def _check_networks(self) -> None:
        if self.networks:
            raise RelengthError(
                f"Task {self.name} is to be learned by {self._lacks_networks()}: train it at scale "
                "reduced, by small networks that start from nothing."
            )
        for name in (self.encoder, self.decoder):
            if name:
                pretrained.place(name)


class OneFact(FactsTask):
    """Questions where somebody is: bAbI's task 1, the last of their moves.

    >>> story = "1 John is in the bathroom.\\n2 John goes to the garden."
    >>> (episode,) = episodes(story + "\\n3 Where is John? \\tgarden\\t2")
    >>> episode.lines[episode.supports[0]], subject(episode.question), episode.answer
    ('John goes to the garden.', 'John', 'garden')
    """

    file: ClassVar[str] = "qa1_single-supporting-fact"
    asked: ClassVar[str] = "qa1"

    name: Literal["babi_one_fact"] = "babi_one_fact"


class TwoFacts(FactsTask):
    r"""Questions where a thing is: bAbI's task 2. Who had it last, then where they went.

    >>> story = "1 Mary got the milk.\n2 John moved to the hall.\n3 Mary went to the garden."
    >>> (episode,) = episodes(story + "\n4 Where is the milk? \tgarden\t1 3")
    >>> [episode.lines[place] for place in episode.supports], subject(episode.question)
    (['Mary got the milk.', 'Mary went to the garden.'], 'milk')
    """

    file: ClassVar[str] = "qa2_two-supporting-facts"
    asked: ClassVar[str] = "qa2"

    name: Literal["babi_two_facts"] = "babi_two_facts"


class TwoFactsThenOne(FactsTask):
    """Trained on two facts as :class:`TwoFacts`, and asked in BABILong for one (Section 4.3.3).

    The last line that is read should be that fact; nothing is asked of those before.

    >>> TwoFactsThenOne().tests
    ('babi', '0k', '1k', '2k', '4k')
    """

    file: ClassVar[str] = TwoFacts.file
    asked: ClassVar[str] = OneFact.asked
    asked_file: ClassVar[str] = OneFact.file

    name: Literal["babi_two_facts_then_one"] = "babi_two_facts_then_one"
    lengths: Annotated[tuple[Length, ...], Field(strict=False)] = if_files(LENGTHS[:4])


def _batch(
    sentences: "tuple[Tensor, ...]",
    inputs: list[list[int]],
    questions: list[int],
    supports: list[list[int]],
    prompts: list[list[int]],
    targets: list[list[int]],
    texts: list[int],
) -> FactsToAnswer:
    """A batch of rows; sentences in the encoder's numbers, and in the decoder's if they differ."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    def padded(rows: list[list[int]]) -> "tuple[Tensor, Tensor]":
        lengths = torch.tensor([len(row) for row in rows])
        return pad_sequence([torch.tensor(row) for row in rows], batch_first=True), lengths

    lines, input_lengths = padded(inputs)
    answers, target_lengths = padded(targets)
    begun = max(map(len, prompts))
    table, *spoken = sentences
    return (SpokenFacts if spoken else FactsToAnswer)(
        table,
        lines,
        torch.tensor(questions),
        torch.tensor(supports),
        torch.tensor([[PAD] * (begun - len(prompt)) + prompt for prompt in prompts]),
        answers,
        answers != PAD,
        torch.tensor(texts).unflatten(0, (len(questions), -1)).squeeze(1),
        input_lengths,
        target_lengths,
        *spoken,
    )


def _all_found(read: "Tensor", supports: "Tensor") -> "Tensor":
    """Samples (B,) in which the last reads (B, H') are the wanted ones (B, H), in order."""
    hops = min(read.shape[1], supports.shape[1])
    return (read[:, -hops:] == supports[:, -hops:]).all(1)


def lacks_published() -> str:
    """Why bAbI's files or the books are not on this machine; empty if they are."""
    return data.lacks_files("babi") or data.lacks_books()


def _read(source: Source, file: str, part: str) -> tuple[Episode, ...]:
    """The questions of a file of bAbI. Raises RelengthError where it cannot be found."""
    if source == "generated":
        return _parsed(babi_stories.text(file, part))
    found = data.find("babi")
    if found.source is None:
        raise RelengthError(
            f"bAbI has no data ({found.reason}): let RELENGTH_DATA name a folder that has it, or "
            "the task's source be 'generated'."
        )
    return _parsed(found.texts[f"{file}_{part}.txt"])


@lru_cache(maxsize=8)
def _parsed(text: str) -> tuple[Episode, ...]:
    return tuple(episodes(text))


@lru_cache(maxsize=4)
def _vocabulary(size: int, source: Source) -> tuple[str, ...]:
    """Special tokens, the words of bAbI, the new places, then the commonest of training books."""
    if source == "generated":
        texts = [babi_stories.text(file, "test") for file in babi_stories.TASKS]
    else:
        texts = [*data.find("babi").texts.values()]
    facts = {word for text in texts for word in books.words(text)}
    facts = sorted(word for word in facts if not word.isdecimal()) + list(NEW_PLACES)
    if source == "generated":
        return (*SPECIALS, *facts)
    return tuple(dict.fromkeys([*SPECIALS, *facts, *books.commonest("train")]))[:size]


@lru_cache(maxsize=2)
def _book_lines(most: int) -> tuple[tuple[str, ...], ...]:
    """Sentences of the training books as words, cut up after every ``most``."""
    return tuple(line[i : i + most] for line in _book_words() for i in range(0, len(line), most))


@cache
def _book_words() -> tuple[tuple[str, ...], ...]:
    """Sentences of the training books as words. Tasks cut them at different lengths."""
    return tuple(map(books.words, _book_sentences()))


@lru_cache(maxsize=2)
def _story_lines(file: str) -> tuple[tuple[str, ...], ...]:
    """Every line of generated training stories as words."""
    told = babi_stories.text(file, "train").splitlines()
    return tuple(books.words(line.partition(" ")[2]) for line in told if "\t" not in line)


@lru_cache(maxsize=1)
def _book_sentences() -> tuple[str, ...]:
    """Sentences of the training books."""
    return tuple(line for text in books.read("train") for _, line in books.sentences(text))


@lru_cache(maxsize=4)
def _evaluation(task: FactsTask) -> dict[str, FactsToAnswer]:
    """All sets of a task but that of training, with one table of sentences."""
    names = [name for name in task.splits() if name != "train"]
    return task.encode({name: task.episodes(name, EVALUATION_SEED) for name in names})
