"""Read recorded samples: where attention looks, and where the output goes wrong.

A record keeps one decoded sample with its weights, the first of the shortest unseen test
(:func:`relength.training.traces.attention_sample`). Of the steps of its focus are counted, in
percent:

focus_forward  those that do not take the centre of focus back
focus_single   those that take it no further forward than the next position
focus_next     those that take it to the next position, forward
focus_waits    how many leave it where it is, against how many write a digit once more: 100 where
               the numbers are equal, and less the further one exceeds the other; only in tasks
               that ask for it, as ReCopy does

A step leads from one written symbol to the next: the way to the first symbol is none. A model that
ends its output at once takes none, and no share of them. Of the output:

end_right      100, or 0 if its first error is where it ends: too early, or not where it should
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np

from relength.tasks.copying import DIGITS, repeated

END = "EOS"
Kind = Literal["wrong symbol", "ends too early", "goes on"]
REPEATING = ("recopy", "reverse_recopy")  # tasks that write some digits several times
ROOM = 0.75  # positions: less than that is no step, and beside a path still on it
STILL = 1 - ROOM  # positions: what moves the focus no further leaves it where it is


def shares(record: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """{test: {metric: percent}} of a recorded run; empty if it has no sample."""
    sample = record.get("attention")
    if not sample:
        return {}
    moves = np.diff(centre(sample))  # no number where the focus has left the source: none holds
    hits = {
        "focus_forward": moves >= -ROOM,
        "focus_single": moves <= 1 + ROOM,
        "focus_next": np.abs(moves - 1) <= ROOM,
    }
    found = {name: hit.mean() if len(hit) else 0.0 for name, hit in hits.items()}
    wrong = divergence(sample["target"], sample["prediction"])
    found["end_right"] = wrong is None or wrong.kind == "wrong symbol"
    if record["spec"]["task"]["name"] in REPEATING:
        waits, asked = (np.abs(moves) <= STILL).sum(), once_more(sample["target"]).sum()
        found["focus_waits"] = 1.0 if waits == asked else min(waits, asked) / max(waits, asked)
    return {sample["test"]: {name: 100 * float(share) for name, share in found.items()}}


class Divergence(NamedTuple):
    """The place where an output leaves its target: so many symbols are right, then this goes
    wrong.
    """

    right: int
    kind: Kind


def divergence(target: Sequence[str], prediction: Sequence[str]) -> Divergence | None:
    """The first place where a prediction is not its target; None where it is all of it.

    Both end with the end token, which counts as a symbol; what a prediction has after its own end
    means nothing. One that is cut off before its end goes on.

    >>> divergence(("4", "7", "9", "EOS"), ("4", "9", "EOS", "EOS"))
    Divergence(right=1, kind='wrong symbol')
    """
    for place, wanted in enumerate(target):
        given = prediction[place] if place < len(prediction) else ""
        if given != wanted:
            kind: Kind = "goes on" if wanted == END else "wrong symbol"
            return Divergence(place, "ends too early" if given == END else kind)
    return None


def once_more(target: Sequence[str]) -> np.ndarray:
    """Mark the symbols (steps,) of a target of ReCopy that repeat the digit before them.

    Of two equal digits in a row each is written as often as the rule says.

    >>> once_more(["1", "1", "4", "4", "4", "4", "4", "4", "EOS"]).astype(int).tolist()
    [0, 0, 0, 1, 1, 0, 1, 1, 0]
    """
    written = []
    for symbol, run in groupby(target):
        times = len(repeated((symbol,))) if symbol in DIGITS else 1
        written += [place % times > 0 for place in range(len(list(run)))]
    return np.array(written)


def attended(sample: Mapping[str, Any]) -> np.ndarray:
    """Weights of each step (steps, positions), up to the model's own end; rows sum to one."""
    weights = np.array(sample["weights"], dtype=float)
    written = sample["prediction"]
    steps = written.index(END) + 1 if END in written else len(written)
    weights = weights[: min(steps, len(sample["target"]))]
    total = weights.sum(1, keepdims=True)  # recorded with three digits
    return weights / np.where(total > 0, total, np.nan)


def centre(sample: Mapping[str, Any]) -> np.ndarray:
    """Mean position of the attention at each step, START being 0, up to the model's own end."""
    weights = attended(sample)
    return weights @ np.arange(weights.shape[1])
