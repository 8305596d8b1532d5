"""Boxes on pages: claims with today's verdict, measured effects of differences, a page in short.

Pages of prose state no result of ours in words of their own. What they say of the runs stands in a
box, so that it changes when the runs do. A page made from a notebook gets one below its title.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import pandas as pd

from relength.report import computed
from relength.report.deviations import anchor, measured
from relength.report.markdown import badge, badges, grid, plain
from relength.report.outcomes import busiest
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import ARM_LABELS, title
from relength.report.tables import printed_cells
from relength.report.wording import sentences, span, words
from relength.runs.store import Store
from relength.specs import registry
from relength.specs.experiments import page_of, pages, shown_by
from relength.specs.margins import load_margins
from relength.verdicts import claims, deviations, stats
from relength.verdicts.claim_models import OrderPart, Part, PoolPart, SomePart, ValuePart
from relength.verdicts.claims import PartVerdict
from relength.verdicts.wording import plural, verb

NO_BREAK = "\N{NO-BREAK SPACE}"


def told(row: Any) -> str:
    """Word what our runs say of a claim, at the paper's own scale too, and what keeps it open."""
    scale = f" ({row.scale})" if row.scale else ""
    return sentences(f"{row.seen}{scale}{row.at_full_scale}", kept_open(row))


def open_parts(row: Any) -> list[PartVerdict]:
    """The parts that keep a claim of several parts open, the least supported first.

    row: of the ledger. Empty for other claims. A part that too few seeds decide, but all of them
    support, keeps nothing open.
    """
    if row.outcome != "inconclusive" or len(row.parts) < 2 or not row.seeds:
        return []
    unanimous = stats.majority_p(row.seeds, row.seeds)
    least = [p for p in row.parts if p.outcome != "reproduced" and p.p_for > unanimous]
    return sorted(least, key=lambda part: part.p_for, reverse=True)


def kept_open(row: Any) -> str:
    """A sentence that counts the :func:`open_parts` and names the least supported one."""
    least = open_parts(row)
    if not least:
        return ""
    first = least[0]
    agree = "" if first.agree is None else f", where {_agreement(first.agree, first.seeds)}"
    if len(least) == 1:
        return f"one part keeps it open: {name_of(first.part)}{agree}"
    return f"{len(least)} parts keep it open; the least supported is {name_of(first.part)}{agree}"


def _agreement(agree: int, seeds: int) -> str:
    """Word how many of some seeds agree; of a single one, whether it does."""
    if seeds == 1:
        return "the only seed agrees" if agree else "the only seed disagrees"
    return f"{agree or 'none'} of {seeds} seeds {verb(agree, 'agree')}"


def parts_table(rows: Iterable[Any]) -> str:
    """A row per part that keeps one of some claims open, folded; empty without any."""
    listed = [
        (f"{{ref}}`{row.name} <claim-{row.name}>`", plain(name_of(part.part)), plain(part.seen))
        for row in rows
        for part in open_parts(row)
    ]
    if not listed:
        return ""
    count = len(listed)
    heading = f"The {plural(count, 'part')} that {verb(count, 'keep')} claims open"
    body = grid(("claim", "part", "our runs"), listed)
    return f"\n\n:::{{dropdown}} {heading}\n\n{body}\n:::"


def name_of(part: Part) -> str:
    """Name a part of a claim: its model, whom it is compared with, and where, if that is one task.

    *A model on a task, 1k to 4k, against another task, 0k*
    """
    if isinstance(part, SomePart):
        where = _where({part.task: part.tests})
        return f"{part.at_least} of {len(part.models)} models{where}"
    if isinstance(part, PoolPart):
        return f"{words(part.models)} on {words(map(title, part.tests))}"
    if isinstance(part, ValuePart):
        return f"{part.model}{_where({part.task: part.tests or tuple(part.printed)})}"
    tests = getattr(part, "tests", ())
    on = _where(tests if isinstance(tests, dict) else {part.task: tests})
    if isinstance(part, OrderPart):
        others = " or ".join(part.best_of or (part.other,))
        if part.other_tests and others == part.model:
            return f"{part.model}{on}, against{_where(part.other_tests).removeprefix(' on')}"
        return f"{part.model} against {others}{on}"
    return f"{part.model}{on}"


def _where(tests: Mapping[str, Sequence[str]]) -> str:
    """Word where a part is judged: its task and tests. Of several tasks the claim tells which."""
    if len(tests) != 1:
        return ""
    ((task, named),) = tests.items()
    ends = dict.fromkeys((named[0], named[-1]) if named else ())
    return ", ".join(filter(None, (f" on {title(task)}", " to ".join(ends))))


def of_claims(shown: Iterable[str], survey: Survey) -> str:
    """Claims in short: what is said, whether it holds, what the runs look like."""
    ledger, said_of_all = survey.ledger.set_index("claim"), {"", *computed.HOW.values()}
    rows = [ledger.loc[claim] for claim in shown if claim in ledger.index]
    arms = _other_arms(rows)
    body = grid(
        ("claim", "verdict", "our runs"),
        (
            (
                f"{plain(row.statement)} {{ref}}`{row.name} <claim-{row.name}>`"
                + ("" if row.scope in said_of_all else f" *{plain(row.scope)}*"),
                " ".join([badges(row), *_in_other_readings(row, arms, survey)]),
                plain(told(row)),
            )
            for row in rows
        ),
    )
    return _box(body + parts_table(rows))


def by_reading(shown: Iterable[str], survey: Survey) -> str:
    """Tabulate for each claim the readings' verdicts and how many of their seeds agree.

    Empty where none of them is in the ledger.
    """
    ledger = survey.ledger.set_index("claim")
    rows = [ledger.loc[claim] for claim in shown if claim in ledger.index]
    if not rows:
        return ""
    arms = _other_arms(rows)
    return grid(
        ("claim", "verdict (judged reading)", *(ARM_LABELS[arm] for arm in arms)),
        (
            (
                f"{plain(row.statement)} {{ref}}`{row.name} <claim-{row.name}>`",
                _with_votes(badges(row), row.votes),
                *(_verdict_of(row, arm, survey) for arm in arms),
            )
            for row in rows
        ),
    )


def _other_arms(rows: Iterable[Any]) -> list[str]:
    """The readings in which some of the claims are judged besides their own."""
    return list(
        dict.fromkeys(
            arm
            for row in rows
            if isinstance(row.beside, dict)
            for arm, verdict in row.beside.items()
            if verdict.seeds
        )
    )


def _in_other_readings(row: Any, arms: Iterable[str], survey: Survey) -> list[str]:
    """A claim's verdict in each other reading that has runs, a line each below the judged one.

    A column per reading would leave the text of three columns no room.
    """
    found = {arm: _verdict_of(row, arm, survey) for arm in arms}
    return [
        f"[{ARM_LABELS[arm]}: {verdict}]{{.reading}}"
        for arm, verdict in found.items()
        if verdict not in ("", badge("not run"))
    ]


def _verdict_of(row: Any, arm: str, survey: Survey) -> str:
    """Word a claim's verdict in another reading, and how many seeds agree."""
    verdict = row.beside.get(arm) if isinstance(row.beside, dict) else None
    if verdict is None:
        return ""
    if verdict.outcome == "not run":
        claim = claims.by_id()[row.name]
        if failed := busiest(survey, claim.source.experiment).failed(claim, arm):
            return f"no result: {plural(failed, 'run')} failed"
    return _with_votes(badge(verdict.label), verdict.votes)


def _with_votes(shown: str, votes: str) -> str:
    """A badge and how many seeds agree, which no line breaks."""
    return f"{shown} {votes.replace(' ', NO_BREAK)}".rstrip()


def of_effects(paper: str, titles: Mapping[str, str], survey: Survey) -> str:
    """Tabulate differences between paper, code and us, and the measured effect of each.

    titles: of entries of the page of deviations, with what the box calls the difference
    """
    entries = {entry.title: entry for entry in deviations.load(paper)}
    body = grid(
        ("difference", "measured effect"),
        (
            (
                f"{{ref}}`{plain(called)} <{anchor(paper, entries[title])}>`",
                measured(entries[title], survey.runs),
            )
            for title, called in titles.items()
        ),
    )
    return _box(body)


def in_short(page: str, survey: Survey) -> str:
    """Sum up a notebook's page: how much smaller our models are, if they are; how its claims
    stand; how many printed numbers ours meet; two links.

    The links lead to labels that ``book/_ext/run_stamp.py`` gives the sections of that page.
    """
    judged, rows = verdicts_on(page, survey), claims_on(page, survey)
    said = [
        _sizes_on(page, survey.store),
        _verdicts_in_words(judged, int(rows.loc[rows["prose"], "fragile"].eq(True).sum())),
        _numbers_in_words(numbers_on(page, survey.store), claims.numbers(rows), runs_decide(rows)),
    ]
    links = [f"{{ref}}`Tables and figures <{page}-tables-and-figures>`"]
    links += [f"{{ref}}`verdicts <{page}-verdict>`"] if judged else []
    text = " ".join(filter(None, said))
    return f":::{{container}} in-short\n**In short.** {text} {', '.join(links)}.\n:::\n"


def runs_decide(rows: pd.DataFrame) -> bool:
    """Tell whether runs could decide any of a page's claims in prose, or it has none."""
    by_runs = rows.loc[rows["prose"] & (rows["page"] == ""), "verdict"]
    return by_runs.empty or not by_runs.eq("not testable").all()


def _sizes_on(page: str, store: Store) -> str:
    """Say how large our models and the paper's are, where the paper's size is out of reach."""
    papers = registry.papers()
    if (shown := shown_by(page)) is not None:
        found = shown[0]
    else:  # a page without runs: those of its paper's first experiment stand for all
        found = next(p.experiments[0] for p in papers.values() if page in p.borrowed)
    if not (printed := papers[found.paper].parameters):
        return ""
    runs = Runs.read(found, "reduced", load_margins().least_seeds, store)
    ours = [record["parameters"] for record in runs.records]
    return f"Ours are small models: {sizes_in_words(ours, printed)}." if ours else ""


def sizes_in_words(ours: Iterable[int], printed: float) -> str:
    """Compare numbers of parameters, ours by their median: a part of a sentence."""
    return (
        f"they have {median(ours) / 1e6:.2g} million parameters and are not pretrained, where the "
        f"paper's has {printed / 1e6:,.0f} million"
    )


def claims_on(page: str, survey: Survey) -> pd.DataFrame:
    """The rows of the ledger that a page shows: those of its runs, and those that it computes."""
    ids: list[str] = []
    if (shown := shown_by(page)) is not None:
        ids = [
            claim.id
            for claim in claims.load(shown[0].paper)
            if page_of(claim.artifact, claim.source.experiment) == page
        ]
    return survey.ledger[survey.ledger["claim"].isin(ids) | (survey.ledger["page"] == page)]


def verdicts_on(page: str, survey: Survey) -> dict[str, int]:
    """{label: claims} of a page, decided ones first, without those that single cells are."""
    rows = claims_on(page, survey)
    rows = rows[rows["prose"].astype(bool)]
    rows = rows.sort_values("verdict", key=lambda verdicts: verdicts.map(claims.VERDICTS.index))
    return dict(Counter(rows["label"]))


def _verdicts_in_words(judged: dict[str, int], fragile: int) -> str:
    if not judged:
        return "No claim is judged on this page."
    counts = ", ".join(f"{count} {label}" for label, count in judged.items())
    said = f"{plural(sum(judged.values()), 'claim')}: {counts}."
    if not fragile:
        return said
    return f"{said} {fragile} of these verdicts {verb(fragile, 'are')} fragile."


class Numbers(NamedTuple):
    """Printed numbers of a page at reduced scale: how many, with runs, and within the margin.

    between  of those with runs, percentages printed strictly between floor and ceiling
    """

    printed: int
    run: int
    near: int
    fewest: int  # seeds of those with runs
    most: int
    between: int = 0
    near_between: int = 0


def numbers_on(page: str, store: Store) -> Numbers | None:
    """Count the printed numbers that the runs of a page meet; None for a page without any."""
    shown = shown_by(page)
    if shown is None:
        return None
    experiment, artifacts = shown
    tables = [name for name in artifacts if name in experiment.tables]
    if not tables:
        return None
    runs = Runs.read(experiment, "reduced", load_margins().least_seeds, store, artifacts)
    cells = pd.concat([printed_cells(runs.part(artifact), artifact) for artifact in tables])
    run = cells[cells["seeds"] > 0]
    if run.empty:
        return Numbers(len(cells), 0, 0, 0, 0)
    near, fixed = run["apart"].eq(False), load_margins()
    between = run["paper"].map(fixed.is_between) & runs.shown.share
    return Numbers(
        printed=len(cells),
        run=len(run),
        near=int(near.sum()),
        fewest=run["seeds"].min(),
        most=run["seeds"].max(),
        between=int(between.sum()),
        near_between=int((near & between).sum()),
    )


def _numbers_in_words(found: Numbers | None, judged: claims.Numbers, tests: bool) -> str:
    """Count the printed numbers that have runs and, where the page tests any claim, come out."""
    if found is None:
        return ""
    if not found.run:
        return (
            f"None of the {found.printed} printed numbers that ours are compared with has a run at "
            "reduced scale yet."
        )
    of = "All" if found.run == found.printed else f"{found.run} of the"
    seeds = span((found.fewest, found.most), "seed")
    ran = (
        f"{of} {found.printed} printed numbers that ours are compared with have runs of {seeds} at "
        "reduced scale."
    )
    if not tests:
        return ran
    return (
        f"{ran} {found.near} of them {verb(found.near, 'are')} "
        "{doc}`within the margin </how_to_read>`."
        f"{_between_in_words(found)}{_told_beside(judged)}"
    )


def _between_in_words(found: Numbers) -> str:
    if not found.between:
        return ""
    low, high = load_margins().between
    return (
        f" Of the {found.between} printed strictly between {low:g} and {high:g} %, "
        f"{found.near_between} {verb(found.near_between, 'are')}."
    )


def _told_beside(judged: claims.Numbers) -> str:
    """Count the numbers that come out and could hardly fail, and the fragile verdicts."""
    words = ""
    if judged.hardly:
        some = f"{judged.hardly} of the {judged.reproduced} that are reproduced"
        some = "The one that is reproduced" if judged.reproduced == 1 else some
        words += f" {some} {{ref}}`could hardly fail <severity>`."
    if judged.fragile:
        be = verb(judged.fragile, "are")
        words += f" {judged.fragile} of the verdicts {be} {{ref}}`fragile <fragile>`."
    return words


def _box(body: str) -> str:
    return f"::::{{container}} measured\n**Measured here**\n\n{body}\n::::\n"


PASSAGES = {
    **{f"short_{page}": partial(in_short, page) for page in pages()},
    **{name: partial(of_claims, shown) for name, shown in registry.united("claims").items()},
    **{
        name: partial(of_effects, paper.name, titles)
        for paper in registry.papers().values()
        for name, titles in paper.effects.items()
    },
}
