"""Words for what a verdict counts: its numbers are computed elsewhere and tested as numbers."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Literal, NamedTuple

NEW = "written"  # what happened to a claim that was not there before its first run


class Votes(NamedTuple):
    """Agreement in the least and in the most supported part of a claim, as (agree, of)."""

    least: tuple[int, int]
    most: tuple[int, int]
    of: Literal["seeds", "parts"] = "seeds"  # parts, where a part compares two samples


class FullScale(NamedTuple):
    """Agreement of the runs at the paper's own scale, beside a verdict at reduced scale."""

    agree: int
    runs: int
    parts: int  # that have such runs
    of: int  # parts of the claim


class Need(NamedTuple):
    """The runs that would decide a claim.

    for_want_of  "runs" (it was never run), "seeds" (fewer than stage one takes), "stage two" (parts
                 fail in stage one), "scale" (both stages are over, and full training may tell),
                 "nothing" (they are over at the paper's own scale)
    seeds        per cell: more of them for "seeds", in all otherwise
    cells        of the claim; 0 where it does not matter
    runs         missing; None where every cell lacks the same number
    lost, parts  of the claim: how many wait for stage two
    around       parts that fail in every seed, but some above and some below, so that no rule
                 speaks against them
    """

    for_want_of: Literal["runs", "seeds", "stage two", "scale", "nothing"]
    seeds: int = 0
    cells: int = 0
    runs: int | None = None
    lost: int = 0
    parts: int = 0
    around: int = 0


class Tally(NamedTuple):
    """Claims of a ledger, those that were judged, and their verdicts by whether they decide."""

    claims: int
    judged: int
    decided: dict[str, int]
    left_open: dict[str, int]
    seeds: int  # that judging takes
    level: float  # of a single verdict
    fragile: int = 0  # of those judged: another execution of their runs changes the verdict

    @property
    def wrong(self) -> float:
        """Wrong verdicts of either kind to be expected at most."""
        return self.level * self.judged


def number(value: float) -> str:
    """At most two decimals, no trailing zeros; what falls short of 100 is never shown as 100."""
    if isnan(value):
        return "–"
    if (value := float(value)).is_integer():  # most are 0 or 100; to round takes ten times as long
        return f"{value + 0.0:.0f}"
    rounded = round(value, 2) + 0.0
    if rounded == 100 and value < 100:
        return ">99.99"
    if rounded == 0 and value > 0:
        return "<0.01"
    return f"{rounded:.2f}".rstrip("0").rstrip(".")


class Numbers(NamedTuple):
    """Counts of the printed numbers that are judged, each run counted once.

    reproduced  that come out; of these, hardly: that could hardly fail
    unknown     that come out, and no other row tells how easily
    between     printed strictly between floor and ceiling; between_reproduced: that come out;
                between_hardly: of these, that could hardly fail
    repeated    with a run that was executed more than once; fragile: whose verdict then changes
    """

    judged: int
    reproduced: int
    hardly: int
    unknown: int
    between: int
    between_reproduced: int
    between_hardly: int
    repeated: int
    fragile: int
    share: float
    bounds: tuple[float, float]


def plural(count: int, noun: str) -> str:
    """1 run, 5 runs."""
    return f"{count} {noun_for(count, noun)}"


def noun_for(count: int, noun: str) -> str:
    """The form of a noun that a count asks for: *run*, *runs*."""
    return noun if count == 1 else f"{noun}s"


SINGULAR = {"are": "is", "have": "has", "do": "does"}


def verb(count: int, word: str) -> str:
    """The form of a verb that a count asks for: *is*, *are*."""
    return word if count != 1 else SINGULAR.get(word) or f"{word}s"


def votes(found: Votes | None) -> str:
    """*3 of 5*, *3 to 5 of 5*, *1 of 2 parts*; empty without votes."""
    if found is None:
        return ""
    (least, of), (most, of_most) = found.least, found.most
    if found.of == "parts":
        return f"{least} of {plural(of, 'part')}"
    if (least, of) == (most, of_most):
        return f"{least} of {of}"
    return f"{least} to {most} of {of}" if of == of_most else f"{least} of {of} at least"


def full_scale(found: FullScale | None) -> str:
    """A sentence that follows another one; empty without runs at the paper's own scale."""
    if found is None:
        return ""
    parts = "" if found.of == 1 else f", in {found.parts} of the {found.of} parts"
    agree = (
        f"{found.agree} of {plural(found.runs, 'run')} {'agrees' if found.runs == 1 else 'agree'}"
    )
    return f". At the paper's own scale {agree}{parts}"


def needed(need: Need | None) -> str:
    """Word what would decide a claim; empty where it is decided."""
    if need is None:
        return ""
    around = ""
    if need.around:
        where = f" in {need.around} of its {need.parts} parts" if need.parts > 1 else ""
        around = f"; every seed fails{where}, some above the margin and some below"
    match need.for_want_of:
        case "runs":
            missing = f", {plural(need.runs, 'run')} of which are missing" if need.runs else ""
            return f"{need.seeds} seeds of {plural(need.cells, 'cell')}{missing}"
        case "seeds":
            more = plural(need.seeds, "more seed")
            if need.runs is not None:
                return f"up to {more} per cell, {plural(need.runs, 'run')} in all"
            return more if need.cells == 1 else f"{more} in every cell"
        case "stage two":
            where = f" in {need.lost} of its {need.parts} parts" if need.parts > 1 else ""
            return (
                f"stage two: the seeds so far speak against it{where}, and {need.seeds} seeds "
                "there could contradict it"
            )
        case "scale":
            return f"runs at scale paper, as all seeds that are judged here leave it open{around}"
        case "nothing":
            open_ = "nothing, as all seeds that are judged leave it open"
            return open_ + around


def dated(changed: Sequence[str] | None) -> str:
    """Name the fields of a claim that changed after its first run: *its rule changed …*."""
    if changed is None:
        return "the claim is not dated"
    if changed == (NEW,):
        return "the claim was written after its first run"
    listed = " and ".join(filter(None, (", ".join(changed[:-1]), *changed[-1:])))
    return f"its {listed} changed after its first run" if listed else ""


def counted(verdicts: Mapping[str, int], order: Sequence[str]) -> str:
    """Verdict counts in a given order: *3 reproduced, 2 not run*."""
    return ", ".join(f"{verdicts[v]} {v}" for v in order if verdicts.get(v))


def tally(found: Tally, order: Sequence[str]) -> str:
    """Count the claims that were judged, those whose verdict is a decision, and how many may be
    wrong.
    """
    groups = [
        f"{sum(verdicts.values())} {word} ({counted(verdicts, order)})"
        for word, verdicts in (("decided", found.decided), ("left open", found.left_open))
        if verdicts
    ]
    came_out = f": {', '.join(groups)}" if groups else ""
    wrong = (
        f" No correction is made across claims: at {found.level:.0%} each, up to {found.wrong:.1f} "
        "wrong verdicts of either kind are to be expected."
        if found.judged
        else ""
    )
    fragile = (
        f" {found.fragile} of the verdicts {verb(found.fragile, 'are')} fragile: with "
        "other executions of the same runs, another verdict."
        if found.fragile
        else ""
    )
    return (
        f"{found.judged} of {found.claims} claims have the {found.seeds} seeds that judging "
        f"takes{came_out}.{wrong}{fragile}"
    )


def numbers(found: Numbers) -> str:
    """Count the printed numbers that come out, how easily, and those between floor and ceiling."""
    if not found.judged:
        return "No printed number has the seeds that a verdict takes."
    low, high = found.bounds
    said = [
        f"{plural(found.judged, 'printed number')} {verb(found.judged, 'are')} judged; "
        f"{found.reproduced} {verb(found.reproduced, 'are')} reproduced."
    ]
    if found.hardly:
        said.append(
            f"{found.hardly} of these could hardly fail, and are weak evidence: at least "
            f"{found.share:.0%} of the other rows of the column match as well, or one symbol of "
            "the input does, written over and over."
        )
    if found.unknown:
        said.append(
            f"Of {found.unknown} it is unknown, as no other row of their columns has the seeds "
            "that a verdict takes."
        )
    if found.between:
        said.append(
            f"{found.between} {verb(found.between, 'are')} printed strictly between "
            f"{low:g} and {high:g} %, neither at the floor nor at the ceiling; "
            f"{found.between_reproduced} of them "
            f"{verb(found.between_reproduced, 'are')} reproduced"
            + _hardly_of(found.between_reproduced, found.between_hardly)
        )
    if found.fragile:
        said.append(f"{found.fragile} of the verdicts {verb(found.fragile, 'are')} fragile.")
    return " ".join(said)


def _hardly_of(reproduced: int, hardly: int) -> str:
    """The end of a sentence: how many of the reproduced numbers could hardly fail."""
    if not hardly:
        return "."
    some = "all" if hardly == reproduced else f"{hardly}"
    return f", {'which' if reproduced == 1 else f'{some} of which'} could hardly fail."
