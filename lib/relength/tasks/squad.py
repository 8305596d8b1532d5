"""Questions about paragraphs, whose answer is a part of the paragraph: SQuAD 1.1, by length.

Source: Rajpurkar et al., "SQuAD: 100,000+ questions for machine comprehension of text" (2016);
sorted by the length of the paragraph and cut in two, as "Plug, Play, and Generalize: Length
Extrapolation with PANM" does (Section 3.4, Table 6). Scores are those of
:mod:`relength.tasks.answer_scores`. Ours, where the text is silent: lengths are counted in
characters; a question whose answer lies beyond the table of positions is not trained on; an answer
that a paragraph has more than once is looked for at its first place.

Only the published development set is at hand, without the places of its answers.
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
from relength.specs.kinds import SPANS, Kind
from relength.streams import EVALUATION_SEED, stream
from relength.tasks import pretrained
from relength.tasks.answer_scores import exact, f1
from relength.tasks.base import PAD, SPECIALS, UNK, Pair, Split, Task
from relength.tasks.metrics import SpanMetrics
from relength.tasks.span_batch import TokensToSpan, spans

if TYPE_CHECKING:
    from torch import Tensor

FILE = "squad/dev-v1.1.no-answer-start.json.gz"
SHA256 = "1bf2f5f03cef8670dca6740bada883c21b57f4655878c57753767436a7acb701"
BEGIN, BETWEEN = 1, 2  # without a tokenizer: the marks before a question and after its parts
LONGEST_ANSWER = 30  # tokens, as in BERT's own evaluation


class Question(NamedTuple):
    """A paragraph, a question about it, and the answers that people gave."""

    context: str
    question: str
    answers: tuple[str, ...]


class Cut(NamedTuple):
    """A text in tokens: their numbers, and where each begins and ends."""

    ids: list[int]
    places: list[tuple[int, int]]


# The data


def lacks() -> str:
    """Why the questions are not on this machine; empty if they are."""
    named = os.environ.get("RELENGTH_DATA", "")
    if not named:
        return "RELENGTH_DATA is not set, and the questions are in the folder that it names"
    if not (Path(named).expanduser() / FILE).is_file():
        return f"RELENGTH_DATA names {named}, which has no {FILE}"
    return ""


def questions() -> tuple[Question, ...]:
    """Every question, those about short paragraphs first.

    Raises RelengthError where the file is missing or another one.
    """
    if why := lacks():
        raise RelengthError(f"SQuAD has no data: {why}. Put the file there, or correct the folder.")
    return _read(Path(os.environ["RELENGTH_DATA"]).expanduser() / FILE)


@lru_cache(maxsize=1)
def _read(path: Path) -> tuple[Question, ...]:
    packed = path.read_bytes()
    if hashlib.sha256(packed).hexdigest() != SHA256:
        raise RelengthError(
            f"{path} is damaged or another version (its SHA-256 is not {SHA256}): replace it, or "
            "correct RELENGTH_DATA."
        )
    found = [
        Question(part["context"], asked["question"], tuple(a["text"] for a in asked["answers"]))
        for article in json.loads(gzip.decompress(packed))["data"]
        for part in article["paragraphs"]
        for asked in part["qas"]
    ]
    return tuple(sorted(found, key=lambda q: (len(q.context), q.context, q.question)))


class Squad(Task):
    """Trained on the shorter paragraphs, tested on the longer ones.

    train        questions about the shortest ``share`` of paragraphs, in the seed's own order
    validation   some of them that are held out; nothing is selected on them
    iid          the same, as a test
    length       questions about all longer paragraphs

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

    def lacks(self) -> str:
        absent = pretrained.lacks(self.tokenizer) if self.tokenizer else ""
        return lacks() or absent or pretrained.lacks_libraries()

    def provenance(self) -> dict[str, Any]:
        questions()
        return {"source": "RELENGTH_DATA", "sha256": {FILE: SHA256}}

    @property
    def shape(self) -> tuple[int, ...]:
        if self.tokenizer:
            return (pretrained.size(self.tokenizer),)
        return (len(SPECIALS) + self.words,)

    def _places(self, split: str) -> np.ndarray:
        """The numbers of a split's questions, of :func:`questions`."""
        short = len(questions()) * self.percent // 100
        order = stream(EVALUATION_SEED, "evaluation", self.name, "held out").permutation(short)
        held = min(self.validation_size, short // 2)
        if split == "length":
            return np.arange(short, len(questions()))[: self.test_size]
        return order[held:][: self.train_size] if split == "train" else order[:held]

    def splits(self) -> dict[str, Split]:
        if lacks():
            sizes = {name: 1 for name in ("train", "validation", "iid", "length")}
        else:
            sizes = {n: len(self._places(n)) for n in ("train", "validation", "iid", "length")}
            sizes["iid"] = min(sizes["iid"], self.test_size)
        return {name: Split(0, 0, size) for name, size in sizes.items()}

    def dataset(self, split: str, seed: int) -> TokensToSpan:
        size = self._split(split).size
        places, rows = self._places(split)[:size], []
        if split == "train":
            places = stream(seed, "data", self.name, split).permutation(places)
        for place in places:
            row = self.row(questions()[place], int(place))
            if split != "train" or row[2] is not None:
                rows.append(row)
        return spans(rows, PAD)

    def row(
        self, question: Question, number: int
    ) -> tuple[list[int], int, tuple[int, int] | None, int]:
        """Tokens, the place of the paragraph's first, first and last of the answer, the number.

        No places where the answer was cut off.
        """
        asked, read = self.cut(question.question), self.cut(question.context)
        begin, end = self.marks
        head = [begin, *asked.ids[: self.positions // 2], end]
        kept = read.ids[: self.positions - len(head) - 1]
        answer = question.answers[0]
        first = question.context.find(answer)
        inside = [
            len(head) + i
            for i, (left, right) in enumerate(read.places[: len(kept)])
            if left < first + len(answer) and right > first
        ]
        whole = (
            first >= 0 and inside and read.places[inside[-1] - len(head)][1] >= first + len(answer)
        )
        span = (inside[0], inside[-1]) if whole else None
        return [*head, *kept, end], len(head), span, number

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
        known, parts = _vocabulary(self.words), [*re.finditer(r"\w+|[^\w\s]", text)]
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

    def score(self, answers: "list[tuple[TokensToSpan, Tensor]]") -> SpanMetrics:
        pairs = [
            (self.answer(int(number), *span, int(begin)), questions()[number].answers)
            for batch, written in answers
            for number, begin, span in zip(
                batch.numbers.tolist(), batch.begins.tolist(), written.tolist(), strict=True
            )
        ]
        return SpanMetrics(
            items=len(pairs),
            f1=sum(f1(*pair) for pair in pairs) / len(pairs),
            exact_match=sum(exact(*pair) for pair in pairs) / len(pairs),
        )

    def answer(self, number: int, first: int, last: int, begin: int) -> str:
        """The text between two tokens, of a question's paragraph that begins at ``begin``."""
        context = questions()[number].context
        places = self.cut(context).places[max(first - begin, 0) : last - begin + 1]
        return context[places[0][0] : places[-1][1]] if places else ""

    def shown(self, batch: TokensToSpan, row: int) -> Pair:
        question = questions()[int(batch.numbers[row])]
        return Pair((question.question, question.context), question.answers[:1])

    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        return tuple(map(str, tokens))


@lru_cache(maxsize=2)
def _vocabulary(size: int) -> dict[str, int]:
    """{word: token} of the commonest words of the shorter half of all paragraphs."""
    texts = {q.context for q in questions()[: len(questions()) // 2]}
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
