"""Every attention of Monotonic Location Attention by name: a new one is one line here.

| paper | table |
| --- | --- |
| Content, Relative, LocAttn, Bi-Relative, OneStepAttn, MonoAttn | 2, 3, 6, 9 |
| OneStepAttn without its second change, without its third, without a sigmoid | 4 |
| Bi-ROPE and everything simplified (S), relaxed (R), mixed with content, or PR | 7, 8 |
"""

from collections.abc import Callable

from relength.models.seq2seq.attention import (
    Attention,
    ContentAttention,
    RelativeAttention,
    RotaryAttention,
)
from relength.models.seq2seq.location import Motion

BY_SCORE: dict[str, Callable[[int], Attention]] = {  # hidden size -> module
    "Content": ContentAttention,
    "Relative": RelativeAttention,
    "Bi-Relative": lambda d: RelativeAttention(d, bidirectional=True),
    "Bi-ROPE": RotaryAttention,
}

ONE = ("released",)  # text and released code agree, or their difference is listed as a deviation
# The released configurations of these switch content off, so that they are the unmixed model.
MENDED = ("repaired", "paper")

BY_LOCATION: dict[str, Motion] = {
    "LocAttn": Motion("gated", "softstair", clamped=True, bidirectional=False, arms=ONE),
    "OneStepAttn": Motion("last", "sigmoid"),
    "MonoAttn": Motion("last", "sigmoid or relu"),
    # Table 4: OneStepAttn with a part of LocAttn
    "OneStepAttn -Step 2": Motion("gated", "sigmoid", clamped=True),
    "OneStepAttn -Step 3": Motion("last", "softstair"),
    "OneStepAttn -Sigmoid": Motion("last", "free"),
    # Tables 7 and 8
    "LocAttn S": Motion("chosen once", "softstair", clamped=True, bidirectional=False, arms=ONE),
    "RMonoAttn": Motion("last", "relu"),
    "Mix LocAttn": Motion("gated", "softstair", clamped=True, bidirectional=False, mixed=True),
    "Mix LocAttn S": Motion(
        "chosen once", "softstair", clamped=True, bidirectional=False, mixed=True
    ),
    "Mix LocAttn S PR": Motion(
        "chosen once", "softstair", clamped=True, bidirectional=False, mixed=True, own_past=True
    ),
    "Mix OneStepAttn": Motion("last", "sigmoid", mixed=True, arms=MENDED),
    "Mix OneStepAttn PR": Motion("last", "sigmoid", mixed=True, own_past=True, arms=MENDED),
    "Mix MonoAttn": Motion("last", "sigmoid or relu", mixed=True, arms=MENDED),
    "Mix MonoAttn PR": Motion("last", "sigmoid or relu", mixed=True, own_past=True, arms=MENDED),
    "Mix RMonoAttn": Motion("last", "relu", mixed=True, arms=MENDED),
    "Mix RMonoAttn PR": Motion("last", "relu", mixed=True, own_past=True, arms=MENDED),
}

ATTENTIONS = (*BY_SCORE, *BY_LOCATION)


def arms_of(name: str) -> tuple[str, ...]:
    """The readings of an attention: the first is the one that claims judge."""
    return BY_LOCATION[name].arms if name in BY_LOCATION else ONE
