"""Compare an answer in words with those that people gave, by the rules of SQuAD's own scores.

Source: Rajpurkar et al., "SQuAD: 100,000+ questions for machine comprehension of text" (2016),
Section 6.1.
"""

import re
import string
from collections import Counter


def normalised(answer: str) -> str:
    """An answer as it is compared: small letters, no punctuation, no articles, single spaces.

    >>> normalised("The  Broncos, of Denver!")
    'broncos of denver'
    """
    kept = "".join(sign for sign in answer.lower() if sign not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def exact(given: str, answers: tuple[str, ...]) -> float:
    """1 if an answer is one of those that people gave, as they are compared; else 0."""
    return float(any(normalised(given) == normalised(answer) for answer in answers))


def f1(given: str, answers: tuple[str, ...]) -> float:
    """The best of the overlaps with what people gave: of words, precision and recall as one.

    >>> f1("the Denver Broncos", ("Broncos",))
    0.6666666666666666
    """
    return max(_overlap(normalised(given).split(), normalised(a).split()) for a in answers)


def _overlap(given: list[str], wanted: list[str]) -> float:
    same = sum((Counter(given) & Counter(wanted)).values())
    if not same:
        return 0.0
    precision, recall = same / len(given), same / len(wanted)
    return 2 * precision * recall / (precision + recall)
