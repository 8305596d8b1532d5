"""Questions about paragraphs, whose answer is a part of the paragraph: SQuAD 1.1, by length.

Source: Rajpurkar et al., "SQuAD: 100,000+ questions for machine comprehension of text" (2016);
sorted by the length of the paragraph and cut in two, as "Plug, Play, and Generalize: Length
Extrapolation with PANM" does (Section 3.4, Table 6). Scores are those of
:mod:`relength.tasks.answer_scores`. Ours, where the text is silent: lengths are counted in
characters, and an answer whose place no file tells is looked for at its first place.

A paragraph beyond the table of positions is cut off, and a question whose answer is lost by that is
not trained on; or, with a ``stride``, it is read in windows (Devlin et al., 2019, their code): a
window without the answer has the first token as its target, and of all windows of a question the
span with the highest score answers it.

Of the published development set there is a copy without the places of its answers; the training
set is read as published, where RELENGTH_DATA names a folder that has it.
"""

import gzip
import hashlib
import json
import os
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from relength.errors import RelengthError
from relength.specs.fields import added
from relength.specs.kinds import SPANS, Kind
from relength.streams import EVALUATION_SEED, stream
from relength.tasks import pretrained
from relength.tasks.answer_scores import exact, f1
from relength.tasks.base import PAD, SPECIALS, UNK, Pair, Split, Task
from relength.tasks.metrics import Metrics, share
from relength.tasks.span_batch import Spans, TokensToSpan, Window, spans

if TYPE_CHECKING:
    from torch import Tensor

FILE = "squad/dev-v1.1.no-answer-start.json.gz"
SHA256 = "1bf2f5f03cef8670dca6740bada883c21b57f4655878c57753767436a7acb701"
TRAINING = "squad/train-v1.1.json"
TRAINING_SHA256 = "3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955"
TRAINING_URL = "https://rajpurkar.github.io/SQuAD-explorer/dataset/train-v1.1.json"
Part = Literal["development", "all"]
FILES: dict[str, dict[str, str]] = {
    "development": {FILE: SHA256},
    "all": {TRAINING: TRAINING_SHA256, FILE: SHA256},
}
BEGIN, BETWEEN = 1, 2  # without a tokenizer: the marks before a question and after its parts
LONGEST_ANSWER = 30  # tokens, as in BERT's own evaluation


class Question(NamedTuple):
    """A paragraph, a question about it, and the answers that people gave.

    start  the place of the first answer's first character; -1 where the file does not tell
    """

    context: str
    question: str
    answers: tuple[str, ...]
    start: int = -1


class Cut(NamedTuple):
    """A text in tokens: their numbers, and where each begins and ends."""

    ids: list[int]
    places: list[tuple[int, int]]


# The data


def lacks(part: Part = "development") -> str:
    """Why the questions are not on this machine; empty if they are."""
    named = os.environ.get("RELENGTH_DATA", "")
    if not named:
        return "RELENGTH_DATA is not set, and the questions are in the folder that it names"
    for file in FILES[part]:
        if not (Path(named).expanduser() / file).is_file():
            why = f"RELENGTH_DATA names {named}, which has no {file}"
            if file == TRAINING:
                return f"missing file: {why}, to be had from {TRAINING_URL}"
            return why
    return ""


def questions(part: Part = "development") -> tuple[Question, ...]:
    """Every question, those about short paragraphs first.

    Raises RelengthError where a file is missing or another one.
    """
    if why := lacks(part):
        raise RelengthError(
            f"SQuAD has no data: {why}; it is not downloaded, and the book's page on data says "
            "what the file is: put it there, or correct RELENGTH_DATA."
        )
    folder = Path(os.environ["RELENGTH_DATA"]).expanduser()
    return _read(folder, part)


@lru_cache(maxsize=2)
def _read(folder: Path, part: Part) -> tuple[Question, ...]:
    found = [
        question
        for file, sha256 in FILES[part].items()
        for question in _of_file(folder / file, sha256)
    ]
    return tuple(sorted(found, key=lambda q: (len(q.context), q.context, q.question)))


def _of_file(path: Path, known: str) -> list[Question]:
    packed = path.read_bytes()
    if hashlib.sha256(packed).hexdigest() != known:
        raise RelengthError(
            f"{path} is damaged or another version (its SHA-256 is not {known}): replace it, or "
            "correct RELENGTH_DATA."
        )
    text = gzip.decompress(packed) if path.suffix == ".gz" else packed
    return [
        Question(
            found["context"],
            asked["question"],
            tuple(answer["text"] for answer in asked["answers"]),
            asked["answers"][0].get("answer_start", -1),
        )
        for article in json.loads(text)["data"]
        for found in article["paragraphs"]
        for asked in found["qas"]
    ]


class SpanMetrics(Metrics):
    """Answers that are a part of a text, by SQuAD's own rules.

    f1           mean overlap of an answer's words with those of a right one
    exact_match  share of answers that are a right one, but for case, articles and punctuation
    """

    f1: float = share("F1", about="overlap of an answer's words with a right one's")
    exact_match: float = share("exact match", whole=True, beside="exact match")


class Squad(Task):
    """Trained on the shorter paragraphs, tested on the longer ones.

    train        questions about the shortest ``share`` of paragraphs, in the seed's own order
    validation   some of them that are held out; nothing is selected on them
    iid          the same, as a test
    length       questions about all longer paragraphs; with a smaller ``test_size``, about the
                 shortest of them

    A target is two places in the text: the first token of an answer, and its last.
    """

    kind: ClassVar[Kind] = SPANS
    metrics: ClassVar[type[SpanMetrics]] = SpanMetrics
    measure: ClassVar[str] = "f1"
    dev_splits: ClassVar[tuple[str, ...]] = ("validation",)
    stacks: ClassVar[bool] = False
    percent: ClassVar[int]

    train_size: int = Field(1_000_000, gt=0, description="most questions to train on")
    test_size: int = Field(1_000_000, gt=0, description="most questions per test")
    validation_size: int = Field(500, gt=0, description="questions that are held out")
    words: int = Field(4_000, gt=0, description="without a tokenizer: the commonest words")
    positions: int = Field(384, gt=8, description="tokens of question and paragraph, at most; what "
                           "follows is cut off")  # fmt: skip
    tokenizer: str = Field("", description="pretrained model whose tokenizer cuts the text: its "
                           "name or folder; empty for words")  # fmt: skip
    part: Part = added("development", before="development", description="the published sets that "
                       "are joined and sorted: the development set alone, or all")  # fmt: skip
    stride: int = added(0, before=0, ge=0, description="tokens from the beginning of a window to "
                        "that of the next; 0 for no windows: what follows is cut off")  # fmt: skip

    def lacks(self) -> str:
        absent = pretrained.lacks(self.tokenizer) if self.tokenizer else ""
        return lacks(self.part) or absent or pretrained.lacks_libraries()

    def provenance(self) -> dict[str, Any]:
        questions(self.part)
        return {"source": "RELENGTH_DATA", "sha256": FILES[self.part]}

    @property
    def shape(self) -> tuple[int, ...]:
        if self.tokenizer:
            return (pretrained.size(self.tokenizer),)
        return (len(SPECIALS) + self.words,)

    def text_sizes(self) -> tuple[tuple[int, int], ...]:
        return ((self.positions, 2),)

    def _places(self, split: str) -> np.ndarray:
        """The numbers of a split's questions, of :func:`questions`."""
        count = len(questions(self.part))
        short = count * self.percent // 100
        order = stream(EVALUATION_SEED, "evaluation", self.name, "held out").permutation(short)
        held = min(self.validation_size, short // 2)
        if split == "length":
            return np.arange(short, count)[: self.test_size]
        return order[held:][: self.train_size] if split == "train" else order[:held]

    def splits(self) -> dict[str, Split]:
        names = ("train", "validation", "iid", "length")
        try:
            sizes = {name: len(self._places(name)) for name in names}
        except RelengthError:  # missing or damaged: whoever reads the questions is told
            sizes = dict.fromkeys(names, 1)
        sizes["iid"] = min(sizes["iid"], self.test_size)
        return {name: Split(0, 0, size) for name, size in sizes.items()}

    def dataset(self, split: str, seed: int) -> TokensToSpan:
        size = self._split(split).size
        places, rows = self._places(split)[:size], []
        if split == "train":
            places = stream(seed, "data", self.name, split).permutation(places)
        for place in places:
            for row in self.windows(questions(self.part)[place], int(place)):
                if split != "train" or row.span is not None:
                    rows.append(row)
        return spans(rows, PAD)

    def windows(self, question: Question, number: int) -> list[Window]:
        """A question with its paragraph, or with each window of it.

        Without windows there is no span where the answer was cut off. A window that has not the
        whole answer has the first token of all as its span.
        """
        asked, read = self.cut(question.question), self.cut(question.context)
        begin, end = self.marks
        # BERT's own code has at most 64 tokens of a question; hardly any question has more.
        head = [begin, *asked.ids[: self.positions // 2], end]
        room = self.positions - len(head) - 1
        answer, first = question.answers[0], question.start
        if first < 0:
            first = question.context.find(answer)
        rows = []
        for skipped in _beginnings(len(read.ids), room, self.stride):
            kept = slice(skipped, skipped + room)
            span = within(read.places[kept], first, first + len(answer), whole=skipped == 0)
            if span is not None:
                span = span[0] + len(head), span[1] + len(head)
            elif self.stride:
                span = 0, 0
            tokens = [*head, *read.ids[kept], end]
            rows.append(Window(tokens, len(head), span, number, skipped))
        return rows

    @property
    def marks(self) -> tuple[int, int]:
        """The tokens before a question and after each part."""
        if not self.tokenizer:
            return BEGIN, BETWEEN
        cutter = pretrained.tokenizer(self.tokenizer)
        return cutter.cls_token_id, cutter.sep_token_id

    def cut(self, text: str) -> Cut:
        """A text in tokens."""
        if self.tokenizer:
            cutter = pretrained.tokenizer(self.tokenizer)
            found = cutter(text, add_special_tokens=False, return_offsets_mapping=True)
            return Cut(found["input_ids"], found["offset_mapping"])
        known, parts = _vocabulary(self.words, self.part), [*re.finditer(r"\w+|[^\w\s]", text)]
        ids = [known.get(part[0].lower(), UNK) for part in parts]
        return Cut(ids, [part.span() for part in parts])

    def loss(self, outputs: "Tensor", batch: TokensToSpan) -> "Tensor":
        """Cross-entropy of first and last token over all places (B, 2, S), the mean."""
        from torch.nn import functional as F

        losses = F.cross_entropy(outputs.flatten(0, 1), batch.targets.flatten(), reduction="none")
        counted = batch.mask.flatten()
        return (losses * counted).sum() / counted.sum().clamp(min=1)

    def right(self, outputs: "Tensor", batch: TokensToSpan) -> "Tensor":
        return ((outputs.argmax(2) == batch.targets) | ~batch.mask).all(1) & batch.mask.all(1)

    def score(self, answers: "list[tuple[TokensToSpan, Spans]]") -> SpanMetrics:
        best: dict[int, tuple[float, str]] = {}
        for batch, written in answers:
            rows = zip(
                *(batch.numbers.tolist(), batch.begins.tolist(), batch.skipped.tolist()),
                *(written.tokens.tolist(), written.scores.tolist()),
                strict=True,
            )
            for number, begin, skipped, (first, last), score in rows:
                if number not in best or score > best[number][0]:
                    best[number] = score, self.answer(number, first, last, begin - skipped)
        asked = questions(self.part)
        pairs = [(answer, asked[number].answers) for number, (_, answer) in best.items()]
        return SpanMetrics(
            items=len(pairs),
            f1=sum(f1(*pair) for pair in pairs) / len(pairs),
            exact_match=sum(exact(*pair) for pair in pairs) / len(pairs),
        )

    def answer(self, number: int, first: int, last: int, begin: int) -> str:
        """The text between two tokens, of a question's paragraph that begins at ``begin``."""
        context = questions(self.part)[number].context
        places = self.cut(context).places[max(first - begin, 0) : last - begin + 1]
        return context[places[0][0] : places[-1][1]] if places else ""

    def shown(self, batch: TokensToSpan, row: int) -> Pair:
        question = questions(self.part)[int(batch.numbers[row])]
        return Pair((question.question, question.context), question.answers[:1])

    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        return tuple(map(str, tokens))


def _beginnings(size: int, room: int, stride: int) -> list[int]:
    """List where the windows of a text begin: every ``stride`` tokens until one reaches its end.

    >>> _beginnings(10, 6, 3), _beginnings(9, 6, 3), _beginnings(10, 6, 0)
    ([0, 3, 6], [0, 3], [0])
    """
    step = min(stride, room)
    return [0] if not step else [0, *range(step, size - room + step, step)]


def within(
    places: list[tuple[int, int]], first: int, end: int, whole: bool
) -> tuple[int, int] | None:
    """The first and the last token of the characters from ``first`` on; None if they are not there.

    places  where each token begins and ends
    whole   whether these are the first tokens of a text, so that no part lies before them
    """
    inside = [i for i, (left, right) in enumerate(places) if left < end and right > first]
    if first < 0 or not inside or places[inside[-1]][1] < end:
        return None
    return (inside[0], inside[-1]) if whole or places[0][0] <= first else None


@lru_cache(maxsize=2)
def _vocabulary(size: int, part: Part) -> dict[str, int]:
    """{word: token} of the commonest words of the shorter half of all paragraphs."""
    asked = questions(part)
    texts = {q.context for q in asked[: len(asked) // 2]}
    counts = Counter(
        word for text in sorted(texts) for word in re.findall(r"\w+|[^\w\s]", text.lower())
    )
    return {word: len(SPECIALS) + i for i, (word, _) in enumerate(counts.most_common(size))}


class Squad80(Squad):
    """Four fifths are trained on.

    >>> exact("an answer", ("Answer!",)), f1("no", ("yes", "no"))
    (1.0, 1.0)
    """

    percent: ClassVar[int] = 80
    name: Literal["squad_80"] = "squad_80"


class Squad50(Squad):
    """Half are trained on.

    >>> exact("half", ("a half",))
    1.0
    """

    percent: ClassVar[int] = 50
    name: Literal["squad_50"] = "squad_50"


TASKS = {"squad_80": Squad80, "squad_50": Squad50}
