"""The page of checks on ourselves: runs that were made twice, and beginnings that were replayed."""

import json
from collections.abc import Iterable, Sequence

from relength.margins import load_margins
from relength.report.freshness import freshness
from relength.report.markdown import badge, run_link, table
from relength.report.scoreboard import Survey
from relength.report.style import title
from relength.spec import row_name
from relength.store import Record, accuracies
from relength.verify import Comparison, repeats

NOTHING = (
    "*Not run*: no run has been trained twice yet. `relength verify --full 10` draws ten at "
    "random, trains them again and keeps the outcome.\n"
)
NUMBERS = ("known lengths", "longest test", "largest difference")
SCALE_NUMBERS = ("epochs, reduced", "epochs, paper", "reduced", "paper", "difference")
OUTCOMES = {"identical": "reproduced", "agrees": "reproduced", "differs": "contradicted"}


def trained_again(survey: Survey) -> str:
    """Every run of the store that was made more than once, execution beside execution."""
    found = repeats(survey.store)
    if not found:
        return NOTHING
    return f"{_in_words(found)}\n\n" + table(
        ("run", "arm", "task", "scale", "seed", "first", "again", "outcome", *NUMBERS),
        map(_row, found),
        name="tab-repeats",
        caption="Runs that were trained again from their first step. *First* and *again*: date, "
        "version of the training code, and, where it was another one, the device. Numbers are "
        "points by which the later execution is better; the *largest difference* is over all "
        "tests.",
        numbers=NUMBERS,
    )


def _in_words(found: Sequence[Comparison]) -> str:
    agreeing, alike = sum(c.agrees for c in found), sum(c.identical for c in found)
    other_code = sum(_code(c.earlier) != _code(c.later) for c in found)
    elsewhere = [c for c in found if c.elsewhere]
    margin = load_margins().measures["accuracy"].around(0)
    words = (
        f"**{agreeing} of {len(found)}** executions agree with the first one of their run, which "
        f"means that no test differs by more than {margin:g} points, the margin of the verdicts. "
        f"{alike} took exactly the same way, epoch by epoch; {other_code} were made with another "
        "version of the training code, whose results may differ by rounding. "
    )
    if elsewhere:
        spread = max(abs(_largest(c)) for c in elsewhere)
        agreed = sum(c.agrees for c in elsewhere)
        return words + (
            f"{len(elsewhere)} were made on another device or with another version of PyTorch: "
            f"{agreed} of these agree, and the largest difference is {spread:.1f} points."
        )
    return words + "None was made on another device or with another version of PyTorch yet."


def _row(one: Comparison) -> tuple[object, ...]:
    spec, points = one.earlier["spec"], list(one.points.values())
    outcome = "identical" if one.identical else "agrees" if one.agrees else "differs"
    return (
        run_link(one.earlier["key"], row_name(spec["model"])),
        spec["model"]["arm"],
        title(spec["task"]["name"]),
        spec["scale"],
        spec["seed"],
        _made(one.earlier),
        _made(one.later) + (f", {_place(one.later)}" if one.elsewhere else ""),
        badge(outcome, OUTCOMES[outcome]),
        *(f"{difference:+.1f}" for difference in (points[0], points[-1], _largest(one))),
    )


def _largest(one: Comparison) -> float:
    return max(one.points.values(), key=abs)


def _code(record: Record) -> str:
    return record["provenance"]["code"]


def _made(record: Record) -> str:
    return f"{record['provenance']['created'][:10]} `{_code(record)[:8]}`"


def _place(record: Record) -> str:
    made = record["provenance"]
    return f"{made['device_name']}, PyTorch {made['torch']}"


def replayed(survey: Survey) -> str:
    """How many records today's code was seen to begin, in a sentence."""
    usable, stale = survey.store.usable(), len(survey.store.stale)
    if not usable:
        return "*Not run*: the store is empty.\n"
    seen = freshness(survey.store, usable)
    return (
        f"Of {len(usable):,} runs that tables use, {seen.fresh:,} are *fresh*: made by the "
        "training code as it is now, or begun by it with the recorded losses. "
        f"{seen.earlier:,} were seen to be so by an earlier version of it. Records that are "
        f"*stale*, and left out of all tables: {stale:,}.\n"
    )


def scales(survey: Survey) -> str:
    """Runs of both scales that are equal in everything but their training, side by side."""
    pairs = _pairs(survey.store.usable())
    if not pairs:
        return (
            "*Not run*: no run exists at both scales yet. `relength run mla_table2 --scale paper "
            "--seeds 1 --task copy` trains the first ones.\n"
        )
    rows = [_scale_row(*pair) for pair in pairs]
    margin = load_margins().measures["accuracy"].around(0)
    close = sum(abs(float(row[-1])) <= margin for row in rows)
    words = (
        f"**{close} of {len(rows)}** pairs of runs, equal in everything but the amount of "
        f"training, are within {margin:g} points of each other at the longest test. Both go the "
        "same way until the shorter one ends, but for rounding, so a difference is what the rest "
        "of the training did."
    )
    return f"{words}\n\n" + table(
        ("task", "model", "arm", "seed", *SCALE_NUMBERS),
        rows,
        name="tab-scales",
        caption="The same spec and seed at scale *reduced* and at scale *paper*. Percent at the "
        "longest test; epochs are those that the run took, *difference* is paper less reduced.",
        numbers=SCALE_NUMBERS,
    )


def _pairs(records: Iterable[Record]) -> list[tuple[Record, Record]]:
    by_scale: dict[str, dict[str, Record]] = {}
    for record in records:
        same = {k: v for k, v in record["spec"].items() if k not in ("scale", "training")}
        by_scale.setdefault(json.dumps(same), {})[record["spec"]["scale"]] = record
    return [(made["reduced"], made["paper"]) for made in by_scale.values() if len(made) > 1]


def _scale_row(reduced: Record, paper: Record) -> tuple[object, ...]:
    spec = reduced["spec"]
    longest = [100 * list(accuracies(record).values())[-1] for record in (reduced, paper)]
    return (
        title(spec["task"]["name"]),
        row_name(spec["model"]),
        spec["model"]["arm"],
        spec["seed"],
        *(len(record["curve"]) for record in (reduced, paper)),
        *(f"{value:.1f}" for value in longest),
        f"{longest[1] - longest[0]:+.1f}",
    )


PASSAGES = {
    "self_checks_again": trained_again,
    "self_checks_replayed": replayed,
    "self_checks_scales": scales,
}
