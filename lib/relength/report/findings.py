"""Sum up all runs of a paper's main table: numbers and figures of the findings chapters.

Nothing here judges a claim. It counts: which runs know what they were trained on and fail beyond
it, which cells depend on the seed, and which printed numbers come out.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from relength.paths import BOOK
from relength.report.boxes import by_reading
from relength.report.findings_counts import (
    RULES,
    SPEED,
    answered,
    by_kind,
    checkpoints,
    near_print,
    trainings,
    unequal_seeds,
)
from relength.report.findings_known import known_is_not_enough
from relength.report.findings_readings import (
    at_full_scale,
    near_by_reading,
)
from relength.report.markdown import badge, plain, table
from relength.report.outcomes import (
    NOTHING,
    beside_printed,
    busiest,
    cells_have,
    few_seeds,
    main_runs,
    main_table,
    tabled,
)
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import marks, title
from relength.report.tables import printed, short, signed
from relength.specs import published, registry
from relength.specs.margins import load_margins
from relength.verdicts.claims import (
    DECIDED,
    LEFT_OPEN,
    VERDICTS,
    caution,
    counted,
    numbers_in_words,
    once,
)
from relength.verdicts.wording import plural, verb


def conclusion(
    paper: str, survey: Survey, further: Callable[[str, Runs], str] | None = None
) -> str:
    """Sum up the chapter: the decided claims in words by verdict, and the number of open ones.

    further: what a paper adds about the runs of its main table
    """
    if survey.ledger.empty:
        return NOTHING
    said = survey.ledger[(survey.ledger["paper"] == paper) & survey.ledger["prose"]]
    told = said[~said["verdict"].isin(LEFT_OPEN)]
    decided = said["verdict"].isin(DECIDED)
    order = sorted(
        told.drop_duplicates("label").itertuples(),
        key=lambda row: (VERDICTS.index(row.verdict), row.scale or ""),
    )
    lists = []
    for first in order:
        own = told[told["label"] == first.label]
        lists.append(f"{badge(first.label)}\n")
        lists += [
            f"- {plain(row.statement)} {{ref}}`{row.claim} <claim-{row.claim}>`"
            + "".join(f" {badge(mark, 'mark')}" for mark in marks(row))
            for row in own.itertuples()
        ]
        lists.append("")
    counts = answered(paper, survey)
    quoted = f" ({counts.quoted} with the paper's sentence beside it in the ledger)"
    parts = [
        f"Of {plural(len(said), 'claim')}{quoted if counts.quoted else ''} {int(decided.sum())} "
        f"{verb(decided.sum(), 'are')} decided. The others: "
        f"{counted(said['verdict'][~decided].value_counts().to_dict()) or 'none'}."
    ]
    if main := by_reading(registry.papers()[paper].asked_first, survey):
        parts.append(
            "The table has the claims that a reader asks about first. Beside each verdict it says "
            "how many seeds agree; of a claim of several parts, in the least and in the most "
            f"supported one.\n\n:::{{container}} measured\n{main}\n:::"
        )
    if lists:
        listed = "\n".join(lists[:-1])
        parts.append(f":::{{dropdown}} All that are decided, or wait for stage two\n{listed}\n:::")
    if further:
        parts.append(further(paper, main_runs(paper, survey)))
    return "\n\n".join(filter(None, parts)) + "\n"


def printed_numbers(paper: str, survey: Survey) -> str:
    """Say how many printed numbers come out, by the paper's own statistic, and which do not."""
    runs = busiest(survey, main_table(paper))
    data = runs.judged_rows(beside_printed(runs))
    if data.empty:
        return NOTHING
    counts, fixed = near_print(runs, data), load_margins()
    (low, high), levels = fixed.between, fixed.levels
    models = ", ".join(f"{model} {near} of {of}" for model, (near, of) in counts.by_model.items())
    said = (
        f"{_come_out(runs, data)}{few_seeds(data['seeds'])} By model: {models}. "
        f"{counts.between} of the printed numbers lie strictly between {low:g} % and {high:g} %; "
        f"{counts.near_between} of these come out. Such numbers are harder to meet than success or "
        f"failure. By the verdicts: {numbers_in_words(runs.ledger)} ({{ref}}`What these words mean "
        "<severity>`. A number comes out if ours has the printed "
        f"{runs.measured.words}, high or low. To *solve* a test, below, takes "
        f"{levels['solved'].at_least:g} % {runs.measured.words}.)"
    )
    far = data[~data["near"]]
    if far.empty:
        return f"{said}\n"
    body = table(
        ("task", "model", "test", "printed", "ours", "seeds"),
        (
            (
                title(row.task),
                row.model,
                row.test,
                short(row.paper),
                short(row.ours),
                "; ".join(map(short, row.values)),
            )
            for row in far.itertuples()
        ),
        name=f"tab-findings-{paper}-far",
        caption="Printed numbers that ours miss by more than the margin, in percent.",
    )
    return f"{said} {{numref}}`tab-findings-{paper}-far` has those that do not.\n\n{body}"


def _come_out(runs: Runs, data: pd.DataFrame) -> str:
    counts = near_print(runs, data)
    return (
        f"At scale *{runs.scale}*, the {runs.experiment.statistic} of our seeds "
        f"is the printed number, within the margin, in **{counts.near} of {counts.cells}** cells "
        f"that have runs. At the longest test of a task it is in {counts.near_longest} of "
        f"{counts.longest}."
    )


def luck(paper: str, survey: Survey) -> str:
    """Show the cells whose seeds are far apart, and those where one seed solves and one fails.

    At the longest test where outputs are right or wrong as a whole. Where they are right in parts,
    of which the longest test leaves few to all, at the test at which seeds are furthest apart.
    """
    runs = busiest(survey, main_table(paper))
    found = unequal_seeds(runs)
    if not found.repeated:
        return "*No cell has more than one seed yet.*\n"
    margin, spread = load_margins().measures["accuracy"].around(0), found.apart
    where, place = "at every test beyond the lengths trained on", "at the test that parts them most"
    if runs.measured.whole:
        where = place = "at the longest test"
    said = (
        f"{cells_have(found.repeated)} two seeds or more. In {found.repeated - len(spread)} of "
        f"them the seeds lie within {margin:g} points of each other {where}. In "
        f"**{found.opposed}**, one seed solves what another fails at."
    )
    if not spread:
        return f"{said}\n"
    there = printed(*runs.experiment.tables)
    rows = []
    for cell in spread:
        task, model, arm, test = cell[["task", "model", "arm", "test"]].iloc[0]
        print_ = there.get((model, task, test))
        rows.append(
            (
                title(task),
                runs.label(model, arm),
                "; ".join(map(short, cell["known"])),
                test,
                "; ".join(map(short, cell["longest"])),
                "" if print_ is None else short(print_),
            )
        )
    furthest = max(range(len(spread)), key=lambda place: np.ptp(spread[place]["longest"]))
    task, model, _, test, seeds, print_ = rows[furthest]
    said += (
        f" Among the furthest apart are those of {model} on {task} at {test}: {seeds}"
        f"{f', where {print_} is printed' if print_ else ''}."
    )
    body = table(
        ("task", "model", "lengths trained on", "test", "seeds there", "printed"),
        rows,
        name=f"tab-findings-{paper}-luck",
        caption=f"Cells whose seeds are more than {margin:g} points apart {place}: "
        f"{runs.measured.words} in percent, a number per seed.",
    )
    return f"{said} {{numref}}`tab-findings-{paper}-luck` has all that differ.\n\n{body}"


def selection(paper: str, survey: Survey) -> str:
    """Say what the choice of the checkpoint is worth, at the first length beyond training and
    later.
    """
    runs = busiest(survey, main_table(paper))
    found = checkpoints(runs)
    if found is None:
        return NOTHING
    level = load_margins().levels["solved"]
    margin = load_margins().measures["accuracy"].around(0)
    solved = [f"{found.solve[rule]} {said}" for rule, said in RULES.items()]
    parts = [
        f"{signed(gain.mean)} points at the {where} ({plural(gain.gained, 'run')} gained more than "
        f"{margin:g} points, {gain.lost} lost more)"
        for where, gain in zip(("first", "second", "third", "fourth"), found.gains, strict=False)
    ]
    return (
        f"Of {found.runs} runs, so many solve the longest test ({level.at_least:g} % "
        f"{runs.measured.words}): "
        f"{', '.join(solved)}. {registry.papers()[paper].selection} Its checkpoint is compared "
        "here with the best one on known lengths. The mean gain at the lengths beyond training is "
        f"{', '.join(parts)}.\n"
    )


def standing(paper: str, survey: Survey) -> str:
    """Show where a paper's claims stand today: a table of verdicts, and what stands behind it."""
    judged, kinds = survey.ledger[survey.ledger["paper"] == paper], by_kind(paper, survey)
    found = judged.drop_duplicates("label")
    order = sorted(
        found["label"],
        key=dict(zip(found["label"], found["verdict"].map(VERDICTS.index), strict=True)).get,
    )
    body = table(
        ("verdict", *kinds),
        [
            *(
                (badge(label), *(counts[label] or "" for counts in kinds.values()))
                for label in order
                if any(counts[label] for counts in kinds.values())
            ),
            ("all", *(counts.total() for counts in kinds.values())),
        ],
        name=f"tab-letter-{paper}",
        caption="Your claims, by their verdicts; *reduced* is a verdict from shorter training."
        + " A ratio of speeds on a core need not carry over to a GPU." * (SPEED in kinds),
        numbers=tuple(kinds),
    )
    parts: list[str] = []
    if registry.papers()[paper].main:
        parts += _of_main_table(paper, survey, judged)
    else:
        parts.append(numbers_in_words(judged))
    count, hours = trainings(paper, survey)
    trained = f"Behind all of this stand {count:,} trainings, which took {hours:,.1f} hours."
    parts.append(trained if count else "No training is recorded yet.")
    return f"{body}\n{_contradicted(judged)}{' '.join(filter(None, parts))}\n"


def _of_main_table(paper: str, survey: Survey, judged: pd.DataFrame) -> list[str]:
    """Say how near to print the runs of a paper's main table come."""
    parts, runs = [], busiest(survey, main_table(paper))
    if len(beside := runs.judged_rows(beside_printed(runs))):
        tables = runs.experiment.tables
        names = dict.fromkeys(published.name_of(tables[place]) for place in (0, -1))
        parts.append(f"{' to '.join(names)}: {_come_out(runs, beside)}{few_seeds(beside['seeds'])}")
    parts.append(numbers_in_words(judged))
    parts.append(near_by_reading(main_runs(paper, survey)))
    parts.append(at_full_scale(paper, survey))
    return parts


def _contradicted(judged: pd.DataFrame) -> str:
    """Quote a paper's contradicted sentences, and count its contradicted numbers, runs once."""
    rows = once(judged[judged["outcome"] == "contradicted"])
    if rows.empty:
        return ""
    said = [
        f"- {row.statement} {{ref}}`{row.claim} <claim-{row.claim}>`, {_beside(row)}"
        for row in rows[rows["prose"]].itertuples()
    ]
    if numbers := int((~rows["prose"].astype(bool)).sum()):
        said.append(f"- {plural(numbers, 'printed number')}")
    return "Contradicted, so far:\n\n" + "\n".join(said) + "\n\n"


def _beside(row: Any) -> str:
    """A verdict, and what alone may have made it so."""
    if row.unit == "round":
        return f"{row.label}; measured on a core of a CPU"
    return "; ".join([row.label, *([caution(row.paper, row.outcome)] if row.cautious else [])])


PASSAGES = {
    f"findings_{paper}_{name}": partial(passage, paper)
    for name, passage in (
        ("conclusion", conclusion),
        ("printed", printed_numbers),
        ("known", known_is_not_enough),
        ("luck", luck),
        ("chosen", selection),
    )
    for paper in tabled()
} | {
    f"letter_{paper}": partial(standing, paper)
    for paper in registry.papers()
    if (BOOK / "letters" / f"{paper}.md").exists()
}
