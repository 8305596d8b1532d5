"""Ask a chat model as in Table 12, read its reply and score it.

Source: Le et al., TMLR version: Appendix D.7. Four algorithmic tasks on ten signs that are no
digits: twenty examples of length 5, one question of length 10, twenty trials. Of SCAN twenty
examples within the cut-off 40 and ten questions. The prompt is "Examples: input … output …
Question: input … output". The rest is ours:

- the signs of a sequence are separated by commas, as the printed format has them
- Dynamic Recall writes its query as the last sign of the input
- Mix follows the rule of the worked example that stands with the table
- a reply is read as :func:`read_signs` and :func:`read_actions` say

What is asked is the same for every model and on every day: it is drawn from the evaluation's own
random streams.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from relength.streams import EVALUATION_SEED, stream
from relength.tasks.algorithmic import AlgorithmicTask, Copy, DynamicRecall, Mix, Reverse
from relength.tasks.scan_cut_offs import TASKS as SCAN

SIGNS = "~!@#$%^&*("
EXAMPLES, TRIALS = 20, 20
SHORT, LONG = 5, 10  # lengths of examples and of questions
TASKS: dict[str, AlgorithmicTask] = {
    "copy": Copy(),
    "reverse": Reverse(),
    "mix": Mix(rule="example"),
    "drecall": DynamicRecall(),
}
# As many SCAN questions as the paper has, within the cut-off and beyond it.
SCAN_TASKS, SCAN_TRIALS = {"scan/iid": "iid", "scan/length": "length"}, 10
SCAN_NAME = "scan_40"


@dataclass(frozen=True)
class Question:
    """One thing that a model is asked.

    task    of the table, or one of SCAN
    trial   its number
    prompt  the whole text
    answer  the symbols that are right
    """

    task: str
    trial: int
    prompt: str
    answer: tuple[str, ...]

    def read(self, reply: str) -> tuple[str, ...]:
        """The symbols that a reply gives as its answer; none where it gives none."""
        return read_actions(reply) if self.task in SCAN_TASKS else read_signs(reply)

    def score(self, reply: str) -> float:
        """The share of right symbols at their places; of SCAN 1 or 0, for all of them or not."""
        given = self.read(reply)
        if self.task in SCAN_TASKS:
            return float(given == self.answer)
        pairs = zip(given, self.answer, strict=False)
        return sum(one == other for one, other in pairs) / len(self.answer)


def prompt(examples: Iterable[tuple[Sequence[str], Sequence[str]]], asked: Sequence[str]) -> str:
    """Examples and a question in the printed format.

    >>> print(prompt([("$%", "%$")], "&#"))
    Examples:
    input $, % output %, $
    Question:
    input &, # output
    """
    lines = (f"input {', '.join(given)} output {', '.join(wanted)}" for given, wanted in examples)
    return "\n".join(["Examples:", *lines, "Question:", f"input {', '.join(asked)} output"])


@cache
def questions(task: str) -> tuple[Question, ...]:
    """Every question of a task, always the same."""
    if task in SCAN_TASKS:
        return _of_scan(task)
    found = []
    for trial in range(TRIALS):
        random = stream(EVALUATION_SEED, "chat", task, trial)
        *examples, asked = (
            _drawn(TASKS[task], random, length) for length in (*[SHORT] * EXAMPLES, LONG)
        )
        found.append(Question(task, trial, prompt(examples, asked[0]), tuple(asked[1])))
    return tuple(found)


def _drawn(task: AlgorithmicTask, random: np.random.Generator, length: int) -> tuple[str, str]:
    digits = task.tokens(random, 1, length)[0]
    text = "".join(SIGNS[digit] for digit in digits)
    return text, task.answer(text)


def _of_scan(task: str) -> tuple[Question, ...]:
    scan, found = SCAN[SCAN_NAME](), []
    known, asked = scan.pairs("train", seed=0), scan.pairs(SCAN_TASKS[task], seed=0)
    for trial in range(SCAN_TRIALS):
        random = stream(EVALUATION_SEED, "chat", task, trial)
        places = random.choice(len(known), EXAMPLES, replace=False)
        lines = [f"IN: {_words(known[i].source)} OUT: {_words(known[i].target)}" for i in places]
        question = asked[int(random.integers(len(asked)))]
        text = ["Examples:", *lines, "Question:", f"IN: {_words(question.source)} OUT:"]
        found.append(Question(task, trial, "\n".join(text), question.target))
    return tuple(found)


def _words(symbols: Sequence[str]) -> str:
    return " ".join(symbols)


def read_signs(reply: str) -> tuple[str, ...]:
    """The signs of a reply: its longest run of nothing but signs, the last of equally long ones.

    Commas, quotes, brackets and spaces separate; a word ends a run, with the sign that is part of
    it. What stands before the last "output" is not read.

    >>> read_signs("output: $, %, &"), read_signs('The answer is "$%&".')
    (('$', '%', '&'), ('$', '%', '&'))
    >>> read_signs("Do it yourself!")
    ()
    """
    runs: list[list[str]] = [[]]
    for word in re.split(r"[\s,;.:`'\"\[\]{}<>|]+", re.split("output", reply, flags=re.I)[-1]):
        if word and set(word) <= set(SIGNS):
            runs[-1] += word
        elif word:
            runs.append([])
    return tuple(max(reversed(runs), key=len))


def read_actions(reply: str) -> tuple[str, ...]:
    """The actions of a reply: all words after the last "OUT:" that are written as SCAN writes them.

    >>> read_actions("OUT: I_TURN_RIGHT I_WALK"), read_actions("Sorry, I WALK away.")
    (('I_TURN_RIGHT', 'I_WALK'), ())
    """
    return tuple(re.findall(r"\bI_[A-Z_]+\b", reply.rpartition("OUT:")[2]))
