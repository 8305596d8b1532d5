"""The page of checks on ourselves: runs that were made twice and the verdicts that hang on them,
beginnings that were replayed, and what the shorter of the two scales is worth."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from relength.report.freshness import Freshness, freshness
from relength.report.markdown import badge, badges, plain, run_link, slug, table
from relength.report.scoreboard import Survey
from relength.report.style import title
from relength.runs.prices import OwnRun, own_runs
from relength.runs.store import Record, accuracies
from relength.runs.verify import Comparison, repeats
from relength.specs import registry
from relength.specs.experiments import experiment, experiments
from relength.specs.margins import load_margins
from relength.specs.spec import row_name
from relength.verdicts.claims import once

NOTHING = "*Not run*: no run has been trained twice yet.\n"
NUMBERS = ("known lengths", "longest test", "largest difference")
SCALE_NUMBERS = ("steps, reduced", "steps, paper", "reduced", "paper", "difference", "largest")
STALE = "first is stale"
OUTCOMES = {  # the verdict whose colours an outcome takes
    "identical": "reproduced",
    "agrees": "reproduced",
    "differs": "contradicted",
    STALE: "not run",
}


def _margin() -> float:
    return load_margins().measures["accuracy"].around(0)


# --- trained again --------------------------------------------------------------------------------


def trained_again(survey: Survey) -> str:
    """Every run of the store that was made more than once, execution beside execution."""
    found = _executions(survey)
    if not found:
        return NOTHING
    return f"{_in_words(_counted(found))}\n\n" + table(
        ("run", "arm", "task", "scale", "seed", "first", "again", "outcome", *NUMBERS),
        (_row(*pair) for pair in found),
        name="tab-again",
        caption="Runs that were trained again from their first step. *First* and *again* have the "
        "date, the version of the training code, and the device if it was another one. Numbers "
        "are points by which the later execution is better. The *largest difference* is over all "
        "tests.",
        numbers=NUMBERS,
        classes="sortable dated",
    )


def _executions(survey: Survey) -> list[tuple[Comparison, str]]:
    """Every further execution beside the first one, with its outcome."""
    return [(one, _outcome(one, survey.store.stale)) for one in repeats(survey.store)]


def _outcome(one: Comparison, stale: frozenset[str]) -> str:
    if one.earlier["run_id"] in stale:
        return STALE
    return "identical" if one.identical else "agrees" if one.agrees else "differs"


class Again(NamedTuple):
    """Further executions of runs, and how many of them agree with the first one.

    fair, agree, identical  those whose first execution is not stale
    same, same_agree        of these, by the same version of the training code
    elsewhere, …            on another device or with another PyTorch; furthest: in points
    stale                   not counted above
    """

    fair: int
    agree: int
    identical: int
    same: int
    same_agree: int
    elsewhere: int
    elsewhere_agree: int
    furthest: float
    stale: int


def again(survey: Survey) -> Again:
    """Count the executions of runs that were made more than once."""
    return _counted(_executions(survey))


def _counted(found: Sequence[tuple[Comparison, str]]) -> Again:
    fair = [one for one, outcome in found if outcome != STALE]
    same = [one for one in fair if _code(one.earlier) == _code(one.later)]
    elsewhere = [one for one in fair if one.elsewhere]
    return Again(
        fair=len(fair),
        agree=sum(one.agrees for one in fair),
        identical=sum(one.identical for one in fair),
        same=len(same),
        same_agree=sum(one.agrees for one in same),
        elsewhere=len(elsewhere),
        elsewhere_agree=sum(one.agrees for one in elsewhere),
        furthest=max((abs(_largest(one)) for one in elsewhere), default=0.0),
        stale=len(found) - len(fair),
    )


def _in_words(counts: Again) -> str:
    sentences = [
        f"**{counts.agree} of {counts.fair}** further executions agree with the first one of their "
        f"run: no test differs by more than {_margin():g} points, the margin of the verdicts.",
        f"{counts.identical} went exactly the same way, epoch by epoch.",
        f"The same version of the training code made {counts.same}, and {counts.same_agree} of "
        f"these agree. Another version made {counts.fair - counts.same}, and "
        f"{counts.agree - counts.same_agree} of these agree; where they differ, it may be "
        "rounding, or the code.",
    ]
    if counts.stale:
        sentences.append(
            f"{counts.stale} are not counted, because their first execution is stale: a difference "
            "is known."
        )
    if counts.elsewhere:
        sentences.append(
            f"{counts.elsewhere} were made on another device or with another version of PyTorch. "
            f"{counts.elsewhere_agree} of these agree; the largest difference is "
            f"{counts.furthest:.1f} points."
        )
    else:
        sentences.append("None was made on another device or with another version of PyTorch yet.")
    return " ".join(sentences)


def _row(one: Comparison, outcome: str) -> tuple[object, ...]:
    spec, points = one.earlier["spec"], list(one.points.values())
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


# --- fragile --------------------------------------------------------------------------------------


class Fragile(NamedTuple):
    """Verdicts that another choice among the executions of their runs changes.

    judged    verdicts with the seeds that one takes, each run counted once
    repeated  those of them with a run that was executed more than once
    fragile   those of these that change
    headline  fragile ones among the claims by which a paper is quoted or asked about first
    """

    judged: int
    repeated: int
    fragile: int
    headline: tuple[str, ...]


def fragility(ledger: pd.DataFrame) -> Fragile:
    """Count the verdicts of a ledger that depend on the execution."""
    rows = once(ledger[ledger["page"] == ""])
    rows = rows[rows["seeds"] >= load_margins().least_seeds]
    changed = rows[rows["fragile"].eq(True)]
    first = {c for paper in registry.papers().values() for c in (*paper.quoted, *paper.asked_first)}
    return Fragile(
        judged=len(rows),
        repeated=int((rows["repeated"] > 0).sum()),
        fragile=len(changed),
        headline=tuple(changed.loc[changed["claim"].isin(first), "claim"]),
    )


def fragile(survey: Survey) -> str:
    """Every verdict that another execution of a run changes, with what it changes to."""
    counts = fragility(survey.ledger)
    if not counts.repeated:
        return "*Not run*: no run behind a verdict has been trained twice yet.\n"
    headline = ", ".join(f"{{ref}}`{claim} <claim-{claim}>`" for claim in counts.headline)
    said = (
        f"{counts.repeated} of {counts.judged} verdicts have a run that was executed more than "
        f"once. **{counts.fragile}** of them ({counts.fragile / counts.repeated:.0%}) change with "
        "the execution: they are fragile. The others may "
        "only look steadier, because nobody has trained their runs again. Of the claims that a "
        f"reader asks about first, these are fragile: {headline or 'none'}."
    )
    rows = survey.ledger[survey.ledger["fragile"].eq(True)].sort_values(
        "prose", ascending=False, kind="stable"
    )
    if rows.empty:
        return f"{said}\n"
    return f"{said}\n\n" + table(
        ("claim", "verdict", "runs executed again", "with other executions"),
        (
            (
                f"{plain(row.statement)} {_claim_link(row)}",
                badges(row),
                row.repeated,
                row.otherwise,
            )
            for row in rows.itertuples()
        ),
        name="tab-fragile",
        caption="Verdicts that change with another choice among the executions of their runs: the "
        "latest of each run, or in one run the next. Tables of the same runs are listed, but "
        "counted once.",
        numbers=("runs executed again",),
    )


def _claim_link(row: Any) -> str:
    """A link to a claim in the ledger: those that are rows of a table are no targets for {ref}."""
    if row.prose:
        return f"{{ref}}`{row.claim} <claim-{row.claim}>`"
    return f'<a href="claims_ledger.html#claim-{slug(row.claim)}">{row.claim}</a>'


# --- replayed -------------------------------------------------------------------------------------


def replayed(survey: Survey) -> str:
    """Say how many of the runs that enter tables today's code was seen to begin."""
    seen, stale = seen_again(survey)
    if not survey.store.records():
        return "*Not run*: the store is empty.\n"
    return (
        f"Experiments use {seen.runs:,} runs. {seen.fresh:,} of them are *fresh*: today's training "
        "code made them, or began them again with the recorded losses. An earlier version of the "
        f"code began {seen.earlier:,} more, which were not looked at since. "
        f"{seen.runs - seen.fresh - seen.earlier:,} are not replayed yet. {stale:,} are *stale* "
        "and left out.\n"
    )


def seen_again(survey: Survey) -> tuple[Freshness, int]:
    """Count how many runs that experiments use are fresh, and how many recorded runs are stale."""
    own = [record for _, record in own_runs(survey.store)]
    stale = sum(record["run_id"] in survey.store.stale for record in survey.store.records())
    return freshness(survey.store, own), stale


# --- scales ---------------------------------------------------------------------------------------


def scales(survey: Survey) -> str:
    """Runs that exist at both scales, side by side."""
    pairs = pairs_of_scales(own_runs(survey.store))
    if not pairs:
        return (
            "*Not run*: no run exists at both scales yet. `relength run "
            f"{next(iter(experiments()))} --scale paper --seeds 1` trains the first ones.\n"
        )
    counts, ends = both_scales(pairs), [_longest(*pair) for pair in pairs]
    words = (
        f"{counts.pairs} pairs of runs exist at both scales. {counts.fail} of them fail at the "
        "longest test at both, which says little. "
    )
    if telling := counts.pairs - counts.fail:
        words += (
            f"Of the other {telling}, **{telling - counts.ahead - counts.behind}** are within "
            f"{_margin():g} points of each other there. The longer training ends ahead in "
            f"**{counts.ahead}** and behind in **{counts.behind}**. {_widest(*counts.widest)}A "
            "difference is not only that of the budgets: the two executions are also two throws of "
            "the dice above. "
        )
    words += (
        f"Over all their tests, **{counts.moved}** of the {counts.pairs} pairs are somewhere more "
        f"than {_margin():g} points apart."
    )
    return f"{words}\n\n" + table(
        ("task", "model", "arm", "seed", "batch", *SCALE_NUMBERS, "at test"),
        (_scale_row(*pair, *both) for pair, both in zip(pairs, ends, strict=True)),
        name="tab-scales",
        caption="The same task, model and seed at scale *reduced* and at scale *paper*. The table "
        "has the optimiser steps that the runs took and percent at the longest test "
        f"({_measures()}). *Difference* is paper less reduced there, *largest* where it is "
        "largest.",
        numbers=SCALE_NUMBERS,
    )


class BothScales(NamedTuple):
    """Pairs of runs at both scales, compared at the longest test.

    fail           both fail there
    ahead, behind  of the others, where the longer training is better or worse than the margin
    widest         of the others, the run and its gain in points; None without any
    moved          pairs that are more than the margin apart at some test
    """

    pairs: int
    fail: int
    ahead: int
    behind: int
    widest: tuple[OwnRun, float] | None
    moved: int


def both_scales(pairs: Sequence[tuple[OwnRun, OwnRun]]) -> BothScales:
    """Compare the runs of :func:`pairs_of_scales`."""
    failed, ends = load_margins().levels["failed"], [_longest(*pair) for pair in pairs]
    telling = [
        (run, paper - reduced)
        for (run, _), (reduced, paper) in zip(pairs, ends, strict=True)
        if not (failed.holds(reduced) and failed.holds(paper))
    ]
    return BothScales(
        pairs=len(pairs),
        fail=len(pairs) - len(telling),
        ahead=sum(gain > _margin() for _, gain in telling),
        behind=sum(-gain > _margin() for _, gain in telling),
        widest=max(telling, key=lambda pair: abs(pair[1]), default=None),
        moved=sum(abs(_furthest(*pair)[1]) > _margin() for pair in pairs),
    )


def _measures() -> str:
    """Say what each paper's main table is measured by: *token accuracy for* a paper."""
    papers = [paper for paper in registry.papers().values() if paper.main]
    measures = [registry.metric(experiment(paper.main).measure).words for paper in papers]
    return ", ".join(
        f"{words} for {paper.short}" for words, paper in zip(measures, papers, strict=True)
    )


def pairs_of_scales(runs: Iterable[OwnRun]) -> list[tuple[OwnRun, OwnRun]]:
    """Runs at scale reduced with those at scale paper that share all but their budget."""
    by_scale: dict[str, dict[str, OwnRun]] = {}
    for run in runs:
        spec = run.spec.model_dump(mode="json")
        scale = spec.pop("scale")
        for name in run.spec.training.budget:
            del spec["training"][name]
        by_scale.setdefault(json.dumps(spec, sort_keys=True), {})[scale] = run
    return [
        (m["reduced"], m["paper"]) for m in by_scale.values() if m.keys() >= {"reduced", "paper"}
    ]


def _longest(*pair: OwnRun) -> tuple[float, ...]:
    return tuple(100 * list(accuracies(run.record).values())[-1] for run in pair)


def _furthest(reduced: OwnRun, paper: OwnRun) -> tuple[str, float]:
    """The test at which two runs are furthest apart, and by how many points paper is better."""
    short, long = (accuracies(run.record) for run in (reduced, paper))
    apart = {test: 100 * (long[test] - value) for test, value in short.items()}
    return max(apart.items(), key=lambda pair: abs(pair[1]))


def _widest(run: OwnRun, gain: float) -> str:
    """Say what the longer training changed most, in a sentence with a space behind."""
    return (
        f"The widest gap is {gain:+.1f}: {row_name(run.record['spec']['model'])} "
        f"({run.spec.model.arm}) on {title(run.spec.task.name)}, seed {run.spec.seed}. "
    )


def _scale_row(reduced: OwnRun, paper: OwnRun, short: float, long: float) -> tuple[object, ...]:
    spec = reduced.spec
    test, furthest = _furthest(reduced, paper)
    batches = dict.fromkeys(run.spec.training.batch_size for run in (reduced, paper))
    return (
        title(spec.task.name),
        row_name(reduced.record["spec"]["model"]),
        spec.model.arm,
        spec.seed,
        " → ".join(map(str, batches)),
        *(f"{run.record['cost']['steps']:,}" for run in (reduced, paper)),
        *(f"{value:.1f}" for value in (short, long)),
        f"{long - short:+.1f}",
        f"{furthest:+.1f}",
        test,
    )


PASSAGES = {
    "self_checks_again": trained_again,
    "self_checks_fragile": fragile,
    "self_checks_replayed": replayed,
    "self_checks_scales": scales,
}
