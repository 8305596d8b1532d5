"""Every attention of Monotonic Location Attention by name: a new one is one line here.

| paper | table |
| --- | --- |
| Content, Relative, LocAttn, Bi-Relative, OneStepAttn, MonoAttn | 2, 3, 6, 9 |
| OneStepAttn without its second change, without its third, without a sigmoid | 4 |
| Bi-ROPE and everything simplified (S), relaxed (R), mixed with content, or PR | 7, 8 |
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Motion:
    """The parts of a location attention; relength.models.seq2seq.location defines them.

    reference      ref_t, of ``REFERENCES``: gated (Eq. 12), chosen once (Appendix B.1), or last
                   (Section 5.3, second change)
    steps          steps_t, of ``STEPS``: softstair (Eq. 13), sigmoid (third change), sigmoid or
                   relu (Eq. 19), relu (Appendix B.1), or free: the readout itself
    clamped        whether the released code keeps centres within the source (Eq. 8); the text does
    bidirectional  over e^dir (Eq. 18, first change) instead of e
    mixed          content attention is mixed in (Eq. 15)
    own_past       pa_{t-1} is what the location part attended to, not the mixture (PR)
    arms           readings that there are, see :class:`LocationAttention`
    """

    reference: str = "last"
    steps: str = "sigmoid"
    clamped: bool = False
    bidirectional: bool = True
    mixed: bool = False
    own_past: bool = False
    arms: tuple[str, ...] = ("released", "paper")


@dataclass(frozen=True)
class Score:
    """An attention by content or by distance.

    module         its class in relength.models.seq2seq.attention
    bidirectional  over e^dir (Eq. 18, first change) instead of e
    """

    module: str
    bidirectional: bool = False


BY_SCORE: dict[str, Score] = {
    "Content": Score("ContentAttention"),
    "Relative": Score("RelativeAttention"),
    "Bi-Relative": Score("RelativeAttention", bidirectional=True),
    "Bi-ROPE": Score("RotaryAttention", bidirectional=True),
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

ATTENTIONS: dict[str, Score | Motion] = BY_SCORE | BY_LOCATION


def arms_of(name: str) -> tuple[str, ...]:
    """The readings of an attention: the first is the one that claims judge."""
    return BY_LOCATION[name].arms if name in BY_LOCATION else ONE


def mixes(name: str) -> bool:
    """True when an attention weighs content and location."""
    return name in BY_LOCATION and BY_LOCATION[name].mixed
