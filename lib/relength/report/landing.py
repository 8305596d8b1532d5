"""The landing page: what held and what did not, one picture, the papers, and answers to questions.

A stranger who asks about one claim finds here in a minute whether it held, with how many seeds, on
which machine, with which code, and the command that trains it again.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from relength import __version__
from relength.paths import BOOK, NOTEBOOKS
from relength.report.agenda import most_recorded
from relength.report.boxes import kept_open, sentences, told
from relength.report.drawings import icon
from relength.report.exhibits import typed
from relength.report.freshness import freshness_of
from relength.report.html import fill
from relength.report.ledger import RunsByCell
from relength.report.markdown import run_link, slug
from relength.report.outcomes import busiest
from relength.report.reach import reach
from relength.report.scoreboard import BEGUN, SCALES, Survey
from relength.report.style import readings, title, verdict_kind
from relength.runs.prices import Device, Prices, own_runs
from relength.runs.progress import clock
from relength.specs import published, registry
from relength.specs.experiments import anchor_of, borrowed, experiment, experiments, page_of
from relength.specs.paper import Front, Paper
from relength.specs.published import name_of
from relength.specs.spec import Scale
from relength.verdicts import claims
from relength.verdicts.claim_models import Claim
from relength.verdicts.claims import DECIDED, VERDICTS, counted

LISTED = 6  # answers that are there before anything is asked
SHOWN = 4  # claims named in words in each column of outcomes
LEANS = {"towards": ", leaning towards it", "away": ", a part of it leaning away"}
NICKNAMES = registry.united("nicknames")


def front() -> Front | None:
    """The paper's part that the page shows: of the first paper that has one."""
    return next((paper.front for paper in registry.papers().values() if paper.front), None)


def raw(html: str) -> str:
    """HTML as it is, for a page in Markdown."""
    return f"```{{raw}} html\n{html}\n```\n"


# What held and what did not


class Standing(NamedTuple):
    """The state of the claims that runs decide.

    words, numbers  claims in words and printed numbers that have runs
    waiting         claims of both kinds without runs
    untestable      in words; no run could test them
    later           sentences of the papers that are not set up for judging
    trainings       that count, with their hours
    """

    words: int
    numbers: int
    waiting: int
    untestable: int
    later: int
    trainings: int
    hours: float


def standing(survey: Survey) -> Standing:
    """Count claims and trainings."""
    ledger, used = survey.ledger, survey.runs.drop_duplicates("run_id")
    ledger = ledger[ledger["page"] == ""]
    tested = ledger[_tested(ledger)]
    stated = published.prose_claims()["claim_id"]
    return Standing(
        words=int(tested["prose"].sum()),
        numbers=int((~tested["prose"].astype(bool)).sum()),
        waiting=int((ledger["verdict"] == "not run").sum()),
        untestable=int((ledger["verdict"] == "not testable").sum()),
        later=int((~stated.isin(survey.ledger["claim"])).sum()),
        trainings=len(used),
        hours=used["seconds"].sum() / 3600 if len(used) else 0.0,
    )


def outcomes(survey: Survey) -> str:
    """Three columns: the claims reproduced, those contradicted, those that are open."""
    by_runs = survey.ledger["page"] == ""
    prose = survey.ledger[survey.ledger["prose"] & by_runs]
    reproduced, contradicted = (prose[prose["verdict"] == word] for word in DECIDED)
    undecided = prose[~prose["verdict"].isin((*DECIDED, "not testable"))]
    seeds, counts = claims.load_margins().least_seeds, standing(survey)
    made = f"{counts.trainings:,} trainings ({counts.hours:,.1f} hours)"
    made = made if counts.trainings else "no runs yet"
    tested = survey.ledger[_tested(survey.ledger) & by_runs]
    cells = tested[~tested["prose"]]
    tables = "; ".join(
        f"{', '.join(map(name_of, rows['artifact'].unique()))} of "
        f"*{registry.papers()[paper].title}*"
        for paper, rows in cells.groupby("paper", sort=False)
    )
    columns = (
        _column(reproduced, "reproduced", f"A verdict takes {seeds} seeds."),
        _column(
            contradicted,
            "contradicted",
            "Of trained claims. Only runs at the paper's own scale can contradict one.",
        ),
        _column(undecided, "open", _leanings(undecided)),
    )
    return raw(f'<div class="outcomes">{"".join(columns)}</div>') + (
        f"\n**{counts.words} claims in words and {counts.numbers} printed numbers** "
        f"({tables or 'of no table yet'}) have been put to the test so far, with {made}. Of the "
        f"numbers: {counted(Counter(cells['verdict'])) or 'none is judged'}. {counts.waiting} more "
        f"claims and numbers are written down and wait for runs. {counts.untestable} are such that "
        f"no run can test them. {counts.later} sentences of the four papers are not set up for "
        "judging yet. The {doc}`ledger </claims_ledger>` has each of them.\n"
        f"\n{_without_training(survey.ledger[~by_runs])}"
    )


def _without_training(rows: pd.DataFrame) -> str:
    """The claims that pages calculate, simulate or measure: they are no results of training."""
    done = rows[_tested(rows)]
    if done.empty:
        return ""
    named = ", ".join(
        f"{{ref}}`{row.claim} <claim-{row.claim}>` {row.verdict}" for row in done.itertuples()
    )
    return (
        "Claims that take no training are counted apart. Calculated, simulated or measured: "
        f"{named}.\n"
    )


def _tested(rows: pd.DataFrame) -> pd.Series:
    """Tell which claims have a run."""
    return ~rows["verdict"].isin(("not run", "not testable"))


def _column(rows: pd.DataFrame, word: str, note: str) -> str:
    shown = rows.assign(lean=[_lean(row) for row in rows.itertuples()])
    shown = shown.sort_values(["lean", "seeds"], ascending=[True, False], kind="stable")
    first = shown.groupby("lean", sort=True).head(2) if word == "open" else shown
    listed = [
        {
            "claim": row.claim,
            "statement": row.statement,
            "label": row.label,
            "leaning": LEANS.get(row.lean, "") if word == "open" else "",
            "said": sentences(row.seen, kept_open(row)),
        }
        for row in first.head(SHOWN).itertuples()
    ]
    return fill(
        "outcome",
        word=word,
        count=len(rows),
        note=note if word == "open" or not listed else "",
        claims=listed,
        more=word != "open" and len(rows) > SHOWN,
    )


def _lean(row: Any) -> str:
    """Say where the seeds of an open claim point so far: away if they do so in any of its parts."""
    sides = [(part.p_for, part.p_against) for part in row.parts]
    if not sides or row.seeds == 0:
        return "unknown"
    if any(against < towards for towards, against in sides):
        return "away"
    return "towards" if all(towards < against for towards, against in sides) else "unknown"


def _leanings(rows: pd.DataFrame) -> str:
    counts = Counter(_lean(row) for row in rows.itertuples())
    said = [
        f"{counts[lean]} {words}"
        for lean, words in (
            ("towards", "lean towards the claim so far"),
            ("away", "have a part that leans away from it"),
            ("unknown", "show nothing yet"),
        )
        if counts[lean]
    ]
    return f"{', '.join(said)}." if said else ""


# The picture


def picture(survey: Survey) -> str:
    """Draw how far the models reach, at the scale with the most runs; empty without a front."""
    if (shown := front()) is None:
        return ""
    return raw(reach(busiest(survey, shown.experiment), shown.artifact, shown.tasks).html)


# The papers


def papers(survey: Survey) -> str:
    """A row per paper: its idea, and a square for each claim that it makes."""
    rows = "".join(_paper(paper, survey) for paper in registry.papers().values())
    verdicts = [(verdict_kind(word), word.removesuffix(" at reduced scale")) for word in VERDICTS]
    key = raw(fill("claims_key", verdicts=verdicts))
    return f"::::::{{container}} papers\n{rows}::::::\n\n{key}"


def _paper(paper: Paper, survey: Survey) -> str:
    made = published.prose_claims().query("paper == @paper.name")
    judged = survey.ledger[survey.ledger["prose"] & (survey.ledger["paper"] == paper.name)]
    labels = dict(zip(judged["claim"], judged["label"], strict=True))
    squares = [
        {
            "name": c.claim_id,
            "says": c.claim,
            "label": labels.get(c.claim_id, "not begun"),
            "kind": verdict_kind(labels[c.claim_id]) if c.claim_id in labels else "",
        }
        for c in made.itertuples()
    ]
    board = survey.board[survey.board["paper"] == paper.name]
    begun = int(board["state"].isin(BEGUN).sum())
    tested = judged[_tested(judged)]
    verdicts = counted(Counter(tested["verdict"]))
    says = f"{len(tested)} of {len(made)} claims tested" + (f": {verdicts}" if verdicts else "")
    count = f"{says}. {begun} of {len(board)} tables and figures have runs."
    overview = f"{paper.name}_overview"
    return (
        ":::::{container} paper\n"
        + raw(f'<div class="paper-icon" aria-hidden="true">{icon(paper.name)}</div>')
        + "\n::::{container} paper-idea\n:::{container} paper-name\n"
        + f"{{doc}}`{paper.title} </{overview}>`\n:::\n\n{paper.idea}\n\n"
        + f":::{{container}} paper-links\n{' · '.join(links(paper.name))}\n:::\n::::\n\n"
        + raw(fill("claims_map", says=says, claims=squares, count=count))
        + ":::::\n"
    )


def links(paper: str) -> Iterable[str]:
    """The paper itself, then the pages about it that there are, in Markdown."""
    yield f"{{cite:t}}`{registry.papers()[paper].cited}`"
    if (BOOK / f"findings_{paper}.md").exists():
        yield f"{{doc}}`what we found </findings_{paper}>`"
    for name, found in experiments().items():
        if found.paper == paper and (NOTEBOOKS / f"{name}.ipynb").exists():
            yield f"{{doc}}`{found.heading} </executed/{name}>`"
    for name in borrowed():
        if name.startswith(f"{paper}_"):
            yield f"{{doc}}`/executed/{name}`"
    if (BOOK / f"deviations_{paper}.md").exists():
        yield f"{{doc}}`contradictions and deviations </deviations_{paper}>`"
    if (BOOK / "letters" / f"{paper}.md").exists():
        yield f"{{doc}}`our letter to the authors </letters/{paper}>`"


# Answers


def answers(survey: Survey) -> str:
    """A box to ask in, and an answer for every claim: the numbers' and those in words."""
    known = {claim.id: claim for paper in claims.papers() for claim in claims.load(paper)}
    once = survey.runs.drop_duplicates(["experiment", "run_id"]).sort_values("seed", kind="stable")
    runs, priced = RunsByCell(once), _priced(survey)
    rows = sorted(survey.ledger.itertuples(), key=_importance)
    items = [Markup(_answer(row, known.get(row.claim), runs, priced, survey)) for row in rows]
    questions = shown.questions if (shown := front()) else ()
    return raw(fill("ask", questions=questions, answers=items, listed=LISTED))


def _answered_first() -> str:
    shown = front()
    return shown.claim if shown else ""


def _importance(row: Any) -> tuple[bool, bool, bool, str]:
    """The order without a question: the example, then claims in words, then numbers; with runs
    before those without.
    """
    return row.claim != _answered_first(), not row.prose, row.seeds == 0, row.claim


def _answer(
    row: Any, claim: Claim | None, runs: RunsByCell, priced: "Priced", survey: Survey
) -> str:
    """claim: None for one that no run decides."""
    says, words = _question(row, claim)
    page = f"executed/{page_of(row.artifact, claim.source.experiment) if claim else row.page}.html"
    where, where_words = page, "the page that shows it"
    if claim and row.artifact in experiment(claim.source.experiment).tables:
        table = anchor_of(row.artifact, page_of(row.artifact, claim.source.experiment))
        where, where_words = f"{page}#{table}-side-by-side", "the table, side by side"
    facts = [
        ("the paper", _printed(row, claim)),
        ("our runs" if claim else f"{row.seeds} {row.unit}s", told(row)),
        *(_provenance(runs.of(claim, row.scale), survey) if claim else ()),
        ("to decide it", row.needed),
        ("other readings", readings(row.others)),
        ("train it again", _again(claim, row.scale, priced) if claim else ""),
    ]
    return fill(
        "answer",
        open=row.claim == _answered_first(),
        words=words,
        says=says,
        kind=verdict_kind(row.label),
        label=row.label,
        facts=facts,
        where=where,
        where_words=where_words,
        anchor=slug(row.claim),
    )


def _question(row: Any, claim: Claim | None) -> tuple[str, str]:
    """Word a claim in a line, and list the words by which it is found."""
    if row.prose:
        return row.statement, f"{row.statement} {row.quote or ''} {row.claim}".lower()
    _, model, task, test = row.claim.split("/")
    verb, value = _verb(claim, test), _value(claim, test)
    at = f"at length {test}" if test.isdigit() else f"at {test}"
    says = f"{model} {verb} {title(task)} {at} ({value})"
    return says, f"{says} {NICKNAMES.get(model, '')} {row.paper}".lower()


def _verb(claim: Claim, test: str) -> str:
    """Word a printed number, by the levels of the margins file."""
    levels, value = claims.load_margins().levels, claim.parts[0].printed[test]
    if claim.source.metric == "edit_distance":
        return "on"
    if levels["solved"].holds(value):
        return "solves"
    return "fails on" if levels["failed"].holds(value) else "partly solves"


def _value(claim: Claim, test: str) -> str:
    unit = " edits" if claim.source.metric == "edit_distance" else " %"
    return f"{claim.parts[0].printed[test]:g}{unit}"


def _printed(row: Any, claim: Claim | None) -> str:
    if not row.prose:
        value = _value(claim, row.claim.rsplit("/", 1)[1])
        return f"prints {value} in {name_of(row.artifact)}"
    quote = f"“{row.quote}” " if row.quote else ""
    return f"{quote}({row.where})"


def _provenance(used: pd.DataFrame, survey: Survey) -> list[tuple[str, str]]:
    """Seeds, machine and code of some runs; nothing where there are none."""
    if used.empty:
        return []
    cells = used.groupby(["model", "task"])["key"].size()
    seeds = f"{cells.min()}" if cells.min() == cells.max() else f"{cells.min()} to {cells.max()}"
    scales = " and ".join(sorted(used["scale"].unique()))
    listed = f"{seeds} per cell, {len(used)} runs in all"
    if len(cells) == 1:
        listed = ", ".join(run_link(run.key, str(run.seed)) for run in used.itertuples())
        listed = Markup(f"{len(used)} (number {listed})")
    machines = sorted(
        {f"{Device(r.device, r.device_name)}, PyTorch {r.torch}" for r in used.itertuples()}
    )
    made = {
        (run.commit or "unknown")[:8] + (f" for {run.seed}" if len(cells) == 1 else ""): None
        for run in used.itertuples()
    }
    checked = freshness_of(survey.store, dict(zip(used["run_id"], used["code"], strict=True)))
    return [
        ("seeds", listed + f", at {scales} scale"),
        ("machine", "; ".join(machines)),
        ("code version", f"commit {', '.join(made)} ({checked.words})"),
    ]


Priced = Callable[[Claim, str], str]  # what training a claim's runs at a scale takes, in words


def _priced(survey: Survey) -> Priced:
    """Prices on the device that most records are from; "" where one is unknown."""
    device = most_recorded(survey.store)
    prices = Prices(own_runs(survey.store), device)

    @cache
    def cells(name: str, scale: Scale) -> dict[tuple[str, str, str], float | None]:
        grid = experiment(name).specs(scale, [0])
        return {(s.row, s.model.arm, s.task.name): prices.seconds(s) for s in grid}

    def price(claim: Claim, scale: str) -> str:
        known, source = cells(claim.source.experiment, scale), claim.source
        each = [known.get((row, source.arm_of(row), task)) for row, task in claim.cells]
        if not each or None in each:
            return ""
        return f", about {clock(sum(each) * claims.load_margins().least_seeds)} of {device}"

    return price


def _again(claim: Claim, scale: str, priced: Priced) -> str:
    """The command that trains a claim's runs again, and what it takes."""
    scale = scale or SCALES[0]
    needs = Markup('<small>needs <a href="rerun.html">an installation</a>{}</small>')
    return Markup(typed(command(claim, scale))) + needs.format(priced(claim, scale))


def command(claim: Claim, scale: str) -> str:
    """Return the command that trains the runs of a claim again, into a folder of its own."""
    rows = dict.fromkeys(row for row, _ in claim.cells)
    grid = experiment(claim.source.experiment).specs("reduced", [0])
    named = {
        "model": [spec.model.name for spec in grid if spec.row in rows],
        "task": [task for _, task in claim.cells],
        "arm": map(claim.source.arm_of, rows),
    }
    words = ["relength", "run", claim.source.experiment, "--scale", scale]
    for kind, names in named.items():
        words += [word for name in dict.fromkeys(names) for word in (f"--{kind}", name)]
    words += ["--seeds", str(claims.load_margins().least_seeds)]
    return shlex.join([*words, "--results", "again"])


def cited(survey: Survey) -> str:
    """Show how to cite the verdict on one number, as it stands today."""
    rows = survey.ledger[survey.ledger["claim"] == _answered_first()]
    if rows.empty:
        return "*No claim on a printed number is judged yet.*\n"
    (row,) = rows.itertuples()
    (claim,) = (claim for claim in claims.load(row.paper) if claim.id == row.claim)
    says = f"“{_question(row, claim)[0]}” is *{row.label}*"
    at = f" at {row.scale} scale" if row.scale else ""
    return (
        f"> {says}{at} in ReLength {__version__} (commit `…`, claim `{row.claim}`, "
        f"{row.seeds} seeds).\n"
    )


PASSAGES = {
    "outcomes": outcomes,
    "picture": picture,
    "papers": papers,
    "answers": answers,
    "cited": cited,
}
