"""How the baselines of "MemReasoner" are trained: Larimar, RMT, Mamba and MemN2N.

An entry is a model, what its training has, and further fields of its task.
"""

from typing import Any

from relength.specs.spec import Scale

Entry = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]

# What is read at most by a model whose lines have learned times: see its memory's size.
WITHIN_LINES = ("0k", "1k", "2k")
# Answers and other text, the first and the fifth term of Eq. 1 (Section 4.2).
LARIMAR = {"alpha": 0.0, "beta": 0.0, "delta": 0.0}
# Words of a segment (Section 4.2). No training sample of task 1 has more than two of these.
SEGMENT = {"babi_one_fact": 64, "babi_two_facts": 128}
# Epochs at most, until the training distribution is known.
UNTIL_KNOWN: dict[Scale, dict[str, Any]] = {
    "smoke": {},
    "reduced": {"epochs": 20, "solved_accuracy": 0.99},
    "paper": {},
}


def one_fact(scale: Scale, training: dict[str, Any], in_stages: dict[str, Any]) -> list[Entry]:
    """The baselines on task 1 of bAbI.

    training   what MemReasoner's has
    in_stages  what the plain decoder's has beside it: samples grow longer for others that read
               word after word, too
    """
    return _all(scale, training, in_stages, SEGMENT["babi_one_fact"])


def two_facts(scale: Scale, training: dict[str, Any], in_stages: dict[str, Any]) -> list[Entry]:
    """The same on task 2."""
    return _all(scale, training, in_stages, SEGMENT["babi_two_facts"])


def _all(
    scale: Scale, training: dict[str, Any], in_stages: dict[str, Any], segment: int
) -> list[Entry]:
    return [
        ({"name": "RMT", "segment": segment}, training | in_stages, {}),
        ({"name": "Mamba"}, training | in_stages, {}),
        ({"name": "Larimar"}, training | LARIMAR, {}),
        ({"name": "MemN2N"}, training | UNTIL_KNOWN[scale], {"lengths": WITHIN_LINES}),
    ]
