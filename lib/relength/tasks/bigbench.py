"""Two tasks of BIG-bench, trained on the shortest questions and tested on the longest.

Source: Srivastava et al., "Beyond the imitation game" (2023), as "Plug, Play, and Generalize:
Length Extrapolation with PANM" uses it (Section 3.5, Appendix D.5, Table 8). How small the part is
that is trained on, and how large the one that is tested, is not said: here a fifth each. The prompt
of arithmetic is not printed either: ours is "What is 3 plus 5?".

Arithmetic has numbers of one to five digits and four operations, as the benchmark has; it is not
the benchmark's own sample. It is sorted by the digits of its numbers. Sorted by characters, its
longest fifth would have no addition and its shortest no division: a model would be tested on an
operation that it was never shown, and "1" would answer two questions in five.

Of abstract narratives a third of the benchmark's items is at hand, with five proverbs to choose
from instead of a hundred. Each character is a token, unless a pretrained tokenizer cuts the text.
"""

import hashlib
import json
import os
from abc import abstractmethod
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from relength.errors import RelengthError
from relength.streams import EVALUATION_SEED, stream
from relength.tasks.base import Pair, Split
from relength.tasks.instructions import Instruction

FILE = "bigbench/abstract_narrative_understanding_1000.jsonl"
SHA256 = "2a3a5270a9aec4a571826f25ffe5e8d23868b6c4125d76fad5a0f46c56fb58f2"
PER_KIND = 750  # questions of one operation and one number of digits, at most
OPERATIONS = {"plus": "+", "minus": "-", "times": "*", "divided by": "/"}
SHARE = 5  # one part in so many is trained on, and one tested
PRINTABLE = tuple(chr(code) for code in range(32, 127))


class BigBench(Instruction):
    """Questions by length: an arithmetic one's is that of its numbers, else that of its prompt.

    train       most of the shortest fifth
    validation  the rest of it; nothing is selected on it
    iid         the same, as a test
    length      the longest fifth
    5-shot      if ``shots`` is 5: the same after five questions of training and their answers
    """

    measure: ClassVar[str] = "exact_match"
    symbols: ClassVar[tuple[str, ...]] = ("\n", *PRINTABLE)
    between: ClassVar[str] = ""

    train_size: int = Field(10_000, gt=0, description="most questions to train on")
    dev_size: int = Field(1_000, gt=0, description="not used: see validation_size")
    test_size: int = Field(1_000, gt=0, description="most questions per test")
    validation_size: int = Field(40, gt=0, description="questions that are held out")
    shots: int = Field(0, ge=0, description="examples in the prompts of a further test")

    @abstractmethod
    def items(self) -> tuple[tuple[str, str], ...]:
        """Every prompt with its answer, the shortest first."""

    def _parts(self) -> dict[str, np.ndarray]:
        count = len(self.items())
        fifth = count // SHARE
        order = stream(EVALUATION_SEED, "evaluation", self.name, "held out").permutation(fifth)
        held = min(self.validation_size, fifth // 2)
        longest = np.arange(count - fifth, count)[-self.test_size :]
        return {
            "train": order[held:][: self.train_size],
            "validation": order[:held],
            "iid": order[:held][: self.test_size],
            "length": longest,
            **({f"{self.shots}-shot": longest} if self.shots else {}),
        }

    def splits(self) -> dict[str, Split]:
        try:
            self.items()
        except RelengthError:  # missing or damaged: whoever reads the questions is told
            shown = [f"{self.shots}-shot"] if self.shots else []
            return dict.fromkeys(("train", "validation", "iid", "length", *shown), Split(0, 0, 1))
        lengths = [len(prompt) for prompt, _ in self.items()]
        return {
            name: Split(min(lengths[i] for i in part), max(lengths[i] for i in part), len(part))
            for name, part in self._parts().items()
        }

    def text_sizes(self) -> tuple[tuple[int, int], ...]:
        """Characters of the longest prompt without examples; none where a tokenizer cuts it."""
        longest = max(split.longest for split in self.splits().values())
        if self.tokenizer or not longest:
            return ()
        answer = max(len(answer) for _, answer in self.items())
        return ((min(longest, self.room(answer)), answer + 1),)

    def pairs(self, split: str, seed: int) -> list[Pair]:
        self._split(split)
        parts, items = self._parts(), self.items()
        chosen = parts[split]
        if split == "train":
            chosen = stream(seed, "data", self.name, split).permutation(chosen)
        found = []
        for place in chosen:
            prompt, answer = items[place]
            if split.endswith("-shot"):
                random = stream(EVALUATION_SEED, "evaluation", self.name, "shots", int(place))
                shown = random.choice(parts["train"], self.shots, replace=False)
                examples = [" ".join(items[other]) for other in shown]
                prompt = "\n\n".join([*examples, prompt])
            found.append(Pair(tuple(prompt), tuple(answer)))
        return found

    def draw(self, random: np.random.Generator, length: int) -> Pair:
        """A question whose prompt has about this length. Raises RelengthError if none has."""
        near = [item for item in self.items() if len(item[0]) == length]
        if not near:
            lengths = sorted({len(prompt) for prompt, _ in self.items()})
            raise RelengthError(
                f"Task {self.name} has no prompt of length {length}: choose lengths from "
                f"{lengths[0]} to {lengths[-1]} that there are."
            )
        prompt, answer = near[int(random.integers(len(near)))]
        return Pair(tuple(prompt), tuple(answer))


class Arithmetic(BigBench):
    """Two whole numbers of equally many digits, and one of four operations.

    What is divided is a multiple, up to nine times, with equally many digits.

    >>> asked("plus", 3, 5), asked("divided by", 12, 4)
    (('What is 3 plus 5?', '8'), ('What is 12 divided by 4?', '3'))
    """

    name: Literal["bigbench_arithmetic"] = "bigbench_arithmetic"
    validation_size: int = Field(500, gt=0, description="questions that are held out")

    def items(self) -> tuple[tuple[str, str], ...]:
        return _arithmetic()


def asked(operation: str, first: int, second: int) -> tuple[str, str]:
    """A question and its answer; what is divided is divided without a rest."""
    compute = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": int.__floordiv__}
    answer = compute[OPERATIONS[operation]](first, second)
    return f"What is {first} {operation} {second}?", str(answer)


@lru_cache(maxsize=1)
def _arithmetic() -> tuple[tuple[str, str], ...]:
    """Every question, by the digits of its numbers; those of equally many in random order."""
    found: list[tuple[str, str]] = []
    for digits in range(1, 6):
        alike = []
        for operation in OPERATIONS:
            random = stream(EVALUATION_SEED, "data", "bigbench_arithmetic", operation, digits)
            least, most = 10 ** (digits - 1) if digits > 1 else 0, 10**digits
            made = {}
            for _ in range(2 * PER_KIND):
                if operation == "divided by":
                    times = int(random.integers(1, 10))
                    second = int(random.integers(max(least, 1), (most - 1) // times + 1))
                    first = second * times
                else:
                    first, second = (int(n) for n in random.integers(least, most, 2))
                made |= [asked(operation, first, second)]
            alike += list(made.items())[:PER_KIND]
        random = stream(EVALUATION_SEED, "data", "bigbench_arithmetic", "order", digits)
        found += [alike[place] for place in random.permutation(len(alike))]
    return tuple(found)


class Abstract(BigBench):
    """A short narrative, and the proverb that it illustrates, one of five.

    >>> question("A. Time is money\\nB. Silence is golden", "They talked.")[:41]
    'Given the choice: Time is money\\nSilence i'
    """

    name: Literal["bigbench_abstract"] = "bigbench_abstract"

    def lacks(self) -> str:
        named = os.environ.get("RELENGTH_DATA", "")
        if not named:
            return "RELENGTH_DATA is not set, and the narratives are in the folder that it names"
        if not (Path(named).expanduser() / FILE).is_file():
            return f"RELENGTH_DATA names {named}, which has no {FILE}"
        return super().lacks()

    def provenance(self) -> dict[str, Any]:
        self.items()
        return {"source": "RELENGTH_DATA", "sha256": {FILE: SHA256}}

    def items(self) -> tuple[tuple[str, str], ...]:
        """Raises RelengthError where the file is missing or another one."""
        path = Path(os.environ.get("RELENGTH_DATA", "")).expanduser() / FILE
        if not path.is_file():
            raise RelengthError(f"{self.name} has no data: {self.lacks()} (put the file there).")
        return _narratives(path)


def question(options: str, narrative: str) -> str:
    """The prompt of Appendix D.5, without the letters before the options."""
    listed = "\n".join(line.partition(". ")[2] for line in options.splitlines())
    return (
        f"Given the choice: {listed}\n. In what follows, we provide short narratives, each of "
        f"which illustrates a common proverb. \nNarrative: {narrative}\nThis narrative is a good "
        "illustration of the following proverb:"
    )


@lru_cache(maxsize=1)
def _narratives(path: Path) -> tuple[tuple[str, str], ...]:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise RelengthError(
            f"{path} is damaged or another version (its SHA-256 is not {SHA256}): replace it, or "
            "correct RELENGTH_DATA."
        )
    known, found = {"\n", *PRINTABLE}, {}
    for line in content.decode("utf-8").splitlines():
        item = json.loads(line)
        prompt = question(item["options"], item["question"])
        answer = item["answer"].partition(". ")[2]
        kept = ("".join(c if c in known else "'" for c in text) for text in (prompt, answer))
        found |= [tuple(kept)]
    return tuple(sorted(found.items(), key=lambda item: (len(item[0]), item)))


TASKS = {"bigbench_arithmetic": Arithmetic, "bigbench_abstract": Abstract}
