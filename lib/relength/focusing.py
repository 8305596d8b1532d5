"""Where recorded attention looks: the centre of focus, and two shares of its steps.

A record keeps the weights of one decoded sample, the first of the shortest unseen test
(:func:`relength.execute.attention_sample`). Of its steps are counted, in percent:

focus_forward  those that do not take the centre of focus back
focus_single   those that take it no further than the next position, either way
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

METRICS = ("focus_forward", "focus_single")
ROOM = 0.75  # positions: less than that is no step, and beside a path still on it


def shares(record: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """{test: {metric: percent}} of a recorded run; empty if it has no sample of two steps."""
    sample = record.get("attention")
    if not sample or len(places := centre(sample)) < 2:
        return {}
    moves = np.diff(places)  # no number where the focus has left the source: then neither holds
    forward, single = moves >= -ROOM, np.abs(moves) <= 1 + ROOM
    return {
        sample["test"]: {
            "focus_forward": 100 * float(forward.mean()),
            "focus_single": 100 * float(single.mean()),
        }
    }


def attended(sample: Mapping[str, Any]) -> np.ndarray:
    """Weights of each step (steps, positions), up to the model's own end; rows sum to one."""
    weights = np.array(sample["weights"], dtype=float)
    written = sample["prediction"]
    steps = written.index("EOS") + 1 if "EOS" in written else len(written)
    weights = weights[: min(steps, len(sample["target"]))]
    total = weights.sum(1, keepdims=True)  # recorded with three digits
    return weights / np.where(total > 0, total, np.nan)


def centre(sample: Mapping[str, Any]) -> np.ndarray:
    """Mean position of the attention at each step, START being 0, up to the model's own end."""
    weights = attended(sample)
    return weights @ np.arange(weights.shape[1])
