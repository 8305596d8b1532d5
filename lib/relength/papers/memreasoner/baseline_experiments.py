"""The training of the baselines of "MemReasoner": Larimar, RMT, Mamba and MemN2N.

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
# Epochs at most, until the training distribution is known; the paper has 20 for Mamba.
UNTIL_KNOWN: dict[Scale, dict[str, Any]] = {
    "smoke": {},
    "reduced": {"epochs": 20, "solved_accuracy": 0.99},
    "paper": {},
}
# Samples of task 2 are longer, and what reads them word after word takes longer, too.
MAMBA_ON_TASK_2: dict[Scale, dict[str, Any]] = {
    "smoke": {},
    "reduced": {"epochs": 12},
    "paper": {},
}


def one_fact(scale: Scale, training: dict[str, Any], in_stages: dict[str, Any]) -> list[Entry]:
    """The baselines on task 1 of bAbI.

    training   what MemReasoner's has
    in_stages  what the plain decoder's has beside it: RMT's samples grow longer, too
    """
    return _all(scale, training, in_stages, UNTIL_KNOWN[scale], SEGMENT["babi_one_fact"])


def two_facts(scale: Scale, training: dict[str, Any], in_stages: dict[str, Any]) -> list[Entry]:
    """Runs of the baselines on task 2."""
    mamba = UNTIL_KNOWN[scale] | MAMBA_ON_TASK_2[scale]
    return _all(scale, training, in_stages, mamba, SEGMENT["babi_two_facts"])


def _all(
    scale: Scale,
    training: dict[str, Any],
    in_stages: dict[str, Any],
    mamba: dict[str, Any],
    segment: int,
) -> list[Entry]:
    return [
        ({"name": "RMT", "segment": segment}, training | in_stages, {}),
        ({"name": "RMT", "arm": "released", "segment": segment}, training | in_stages, {}),
        ({"name": "Mamba"}, training | mamba, {}),
        ({"name": "Larimar"}, training | LARIMAR, {}),
        ({"name": "MemN2N"}, training | UNTIL_KNOWN[scale], {"lengths": WITHIN_LINES}),
    ]
