"""Counts of the lines, tokens and empty lines of bAbI that MemReasoner sees in training.

Source: Section 4.1 and Appendix A.2. Counting takes bAbI, which is not part of the package, so that
the counts are kept; the tests count again what ``training_text.json`` keeps.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from relength.report.computed import Computed
from relength.report.style import aligned, title
from relength.specs.margins import load_margins
from relength.tasks import bpe
from relength.tasks.facts import FactsTask, OneFact, TwoFacts
from relength.verdicts import rules

KEPT = Path(__file__).with_name("training_text.json")
PAGE = "memreasoner_babi"
TASKS: tuple[type[FactsTask], ...] = (OneFact, TwoFacts)
MARKS = 2  # tokens that BERT, the encoder, puts around each line
EMPTY = 2.0  # lines of earlier questions in a sample, on average
QUOTES = {
    "memreasoner-053": "Which means that MemReasoner has been exposed to a maximum of 90 and 573 "
    "tokens during finetuning on task 1 and task 2, respectively, whereas at test-time the model "
    "is exposed to contexts that are up to 128k tokens long.",
    "memreasoner-054": "On average, this leads to about 2 empty lines per training sample.",
}
SCOPES = {
    "memreasoner-053": "Counted, no training decides this: in all 10,000 training questions of "
    "each task the lines before a question with those of earlier questions, and GPT-2's tokens of "
    "these lines, once alone and once with the two marks that an encoder puts around each. The "
    "text does not say which it counts, so it holds if all numbers of both tasks are within the "
    "margin for lengths in one of the two ways. (The first rule counted without marks and "
    "contradicted it, the second counted marks and reproduced it, the third asked for both ways "
    "and left it open.)",
    "memreasoner-054": "Counted, no training decides this: in all 10,000 training questions of "
    "each task; both means have to be within the margin for lengths.",
}


# Claims whose rule was changed once their results were known; their scopes say how.
RULE_CHANGED = ("memreasoner-053",)


class Counts(NamedTuple):
    """Counts over a task's training questions.

    lines   the most of one question
    tokens  the most of one question, without marks
    marked  the same with marks
    empty   the mean number of empty lines
    """

    lines: int
    tokens: int
    marked: int
    empty: float


PRINTED = {"babi_one_fact": (14, 90), "babi_two_facts": (72, 573)}  # lines and tokens


def count(task: FactsTask) -> Counts:
    """Count all training questions. Raises RelengthError where bAbI is not at hand."""
    every = [*task.episodes("train", 0), *task.episodes("validation", 0)]
    return Counts(
        max(len(one.lines) for one in every),
        max(_tokens(one.lines, 0) for one in every),
        max(_tokens(one.lines, MARKS) for one in every),
        sum(line == "" for one in every for line in one.lines) / len(every),
    )


def _tokens(lines: Sequence[str], marks: int) -> int:
    told = [line for line in lines if line]
    return bpe.count(" ".join(told)) + marks * len(told)


@cache
def kept() -> dict[str, Counts]:
    """{task: its counts}"""
    return {task: Counts(**counts) for task, counts in json.loads(KEPT.read_text()).items()}


def decisions() -> list[tuple[str, rules.Decision, str]]:
    """(claim, what comes of it, what was counted)."""
    room, found = load_margins().measures["length"], kept()

    def near(counted: float, printed: float) -> bool:
        return abs(counted - printed) <= room.around(printed)

    def all_near(tokens: str) -> bool:
        return all(
            near(found[task].lines, lines) and near(getattr(found[task], tokens), most)
            for task, (lines, most) in PRINTED.items()
        )

    sizes = rules.fact(all_near("tokens") or all_near("marked"))
    empty = all(near(one.empty, EMPTY) for one in found.values())
    most = [
        f"{title(task)} {one.lines} and {one.tokens}, with marks {one.marked}"
        for task, one in found.items()
    ]
    mean = [f"{title(task)} {one.empty:.2f}" for task, one in found.items()]
    return [
        ("memreasoner-053", sizes, f"lines and tokens at most: {'; '.join(most)}"),
        ("memreasoner-054", rules.fact(empty), f"empty lines on average: {'; '.join(mean)}"),
    ]


def numbers() -> str:
    """The counts as plain text, in brackets the paper's."""
    rows = [("", "lines at most", "tokens at most", "empty lines, mean")]
    for task, one in kept().items():
        lines, tokens = PRINTED[task]
        both = f"{one.tokens} or {one.marked} ({tokens})"
        cells = f"{one.lines} ({lines})", both, f"{one.empty:.2f} ({EMPTY:g})"
        rows.append((title(task), *cells))
    return "\n".join([*aligned(*rows), "", lines_of_verdicts()])


def lines_of_verdicts() -> str:
    """The verdicts as plain text."""
    return "\n".join(f"{claim}: {one.outcome} ({seen})" for claim, one, seen in decisions())


def decided() -> list[Computed]:
    """Every claim that the counts decide."""
    return [
        Computed(
            claim=claim,
            quote=QUOTES[claim],
            page=PAGE,
            unit="calculation",
            decision=found,
            seen=seen,
            scope=SCOPES[claim],
            changed=("rule",) if claim in RULE_CHANGED else (),
        )
        for claim, found, seen in decisions()
    ]
