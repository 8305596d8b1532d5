"""The landing page: whether each paper held up, how far its models reach, and answers to questions.

A stranger who asks about one claim finds here in a minute whether it held, with how many seeds, on
which machine, with which code, and the command that trains it again.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from relength import __version__
from relength.paths import BOOK, NOTEBOOKS
from relength.report import against_print
from relength.report.agenda import most_recorded
from relength.report.boxes import told
from relength.report.drawings import icon
from relength.report.exhibits import typed
from relength.report.freshness import Freshness, State, states
from relength.report.html import fill, packed
from relength.report.ledger import RunsByCell, UsedRun, executions_words, severity_words
from relength.report.markdown import grid, raw, run_link, slug
from relength.report.outcomes import busiest
from relength.report.reach import reach
from relength.report.scoreboard import BEGUN, SCALES, Survey
from relength.report.style import marks, readings, title, verdict_kind
from relength.report.wording import from_to
from relength.runs.prices import Device, Prices, own_runs, timed
from relength.runs.progress import clock
from relength.specs import published, registry
from relength.specs.experiments import anchor_of, borrowed, experiment, experiments, page_of
from relength.specs.paper import Front, Paper
from relength.specs.published import name_of
from relength.specs.spec import Scale
from relength.verdicts import claims
from relength.verdicts.claim_models import Claim
from relength.verdicts.claims import VERDICTS, counted
from relength.verdicts.wording import plural

LISTED = 6  # answers that are there before anything is asked
SHOWN = 5  # claims named in each column of outcomes
UNRUN = "main claims without runs"
NICKNAMES = registry.united("nicknames")


def front() -> Front | None:
    """The paper's part that the page shows: of the first paper that has one."""
    return next((paper.front for paper in registry.papers().values() if paper.front), None)


# What held and what did not


class Standing(NamedTuple):
    """The state of the claims that runs decide; printed numbers of the same runs count once.

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
    ledger, used = claims.once(survey.ledger), survey.runs.drop_duplicates("run_id")
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
    """Tell of each paper whether it held up: printed against ours, and its claims by verdict."""
    parts = [_held(paper, survey) for paper in registry.papers().values()]
    by_runs, counts = survey.ledger["page"] == "", standing(survey)
    made = f"{counts.trainings:,} trainings ({counts.hours:,.1f} hours)"
    made = made if counts.trainings else "no runs yet"
    others = survey.ledger[~by_runs & survey.ledger["prose"]]
    decided = survey.ledger[survey.ledger["outcome"].isin(claims.DECIDED)]
    later = int(decided["claim_changed"].fillna("").ne("").sum())
    body = grid(
        ("claims", "what for"),
        [
            (counts.words, f"in words, put to the test with {made}"),
            (counts.numbers, "printed numbers, put to the same test; lengths among them"),
            (int(_tested(others).sum()), "in words, by measurement or calculation"),
            (counts.waiting, "wait for runs"),
            (counts.untestable, "could not be tested by any run"),
            (counts.later, "in words are not set up for judging yet"),
        ],
        numbers=("claims",),
    )
    total = (
        f"**In all.** The {{doc}}`ledger </claims_ledger>` has every claim; {{doc}}`how to read it "
        f"</how_to_read>` says what the words mean. Of {len(decided)} verdicts that decide one, "
        f"{later} rest on a claim that was written or changed after its first run.\n\n{body}\n\n"
        f"{claims.numbers_in_words(survey.ledger[by_runs])}\n"
    )
    return "\n".join([*parts, total])


def _held(paper: Paper, survey: Survey) -> str:
    """A paper's sentence, its figure, and what is contradicted, reproduced and open."""
    data = against_print.numbers(paper.name, survey)
    mine = survey.ledger[survey.ledger["prose"] & (survey.ledger["paper"] == paper.name)]
    tested = mine[_tested(mine)]
    said = against_print.sentence(paper.name, data) if len(data) else _waiting(paper, survey)
    aside = f"{against_print.asides(paper.name, data, survey)}\n" if len(data) else ""
    if (BOOK / f"findings_{paper.name}.md").exists():
        said += f" {{doc}}`What we found </findings_{paper.name}>` tells the rest."
    waiting = mine[(mine["verdict"] == "not run") & mine["claim"].isin(paper.quoted)]
    columns = _columns(paper, pd.concat([tested, waiting])) if len(tested) else ""
    drawn = against_print.shown(paper.name, data, survey, "front")
    if not drawn:
        return f"### {paper.title}\n\n{said}\n\n{columns}\n"
    return (
        f"### {paper.title}\n\n{said}\n\n{aside}::::{{container}} held\n"
        f":::{{container}} held-print\n{drawn}:::\n\n"
        f":::{{container}} held-said\n{columns}:::\n::::\n"
    )


def _waiting(paper: Paper, survey: Survey) -> str:
    """Say that no printed accuracy of a paper has runs, and how much there is to be run."""
    board = survey.board[survey.board["paper"] == paper.name]
    begun = int(board["state"].isin(BEGUN).sum())
    made = len(published.prose_claims().query("paper == @paper.name"))
    return (
        f"**Not run.** {begun} of its {len(board)} tables and figures have runs, and it makes "
        f"{plural(made, 'claim')} in words."
    )


def _columns(paper: Paper, rows: pd.DataFrame) -> str:
    """Claims in words that were tested: contradicted, reproduced, open; most telling first. Then
    those that the paper rests on and no run has tested.

    What trainings decide comes before measurements of speed and size. Reproduced are first those
    with no word beside their verdict that weakens it. Then come those that the paper rests on. Of
    the open ones those follow of which seeds speak against a part: they may be contradicted next.
    """
    rows = rows.assign(
        rests=[
            paper.quoted.index(claim) if claim in paper.quoted else len(paper.quoted)
            for claim in rows["claim"]
        ],
        lean=[_lean(row) for row in rows.itertuples()],
        weak=[bool(row.cautious) + len(marks(row)) for row in rows.itertuples()],
        computed=rows["page"] != "",
    )
    by = {
        "contradicted": ["computed", "rests", "weak", "lean", "seeds"],
        "reproduced": ["computed", "weak", "rests", "lean", "seeds"],
        "open": ["computed", "rests", "lean", "seeds"],
        "not run": ["rests"],
    }
    outcome = rows["outcome"].where(rows["outcome"].isin(by), "open")
    outcome = outcome.where(rows["verdict"] != "not run", "not run")
    kinds = [
        (
            word,
            rows[outcome == word].sort_values(
                keys, ascending=[key != "seeds" for key in keys], kind="stable"
            ),
        )
        for word, keys in by.items()
    ]
    filled = (
        fill(
            "outcome",
            kind=word.replace(" ", "-"),
            word=UNRUN if word == "not run" else word,
            count=len(some),
            claims=[
                {
                    **{"claim": row.claim, "statement": row.statement},
                    "beside": _beside(row, word),
                }
                for row in some.head(SHOWN).itertuples()
            ],
            paper=paper.name,
            verdicts=",".join(dict.fromkeys(map(verdict_kind, some["label"]))),
            more=len(some) > SHOWN,
        )
        for word, some in kinds
        if len(some) or word != "not run"
    )
    return raw(f'<div class="outcomes">{"".join(filled)}</div>')


def _beside(row: Any, word: str) -> str:
    """The verdict beside a claim in the column of a word, and what weakens it."""
    said = {
        row.label: row.label not in (word, "not run"),
        claims.caution(row.paper, row.outcome): row.cautious,
        "measured on a CPU core, where the paper has a GPU": row.unit == "round",
        "measured or calculated, without training": row.page != "" and row.unit != "round",
        **dict.fromkeys(marks(row), True),
    }
    return "; ".join(words for words, holds in said.items() if holds)


def _tested(rows: pd.DataFrame) -> pd.Series:
    """Tell which claims have a run, or another answer."""
    return ~rows["verdict"].isin(("not run", "not testable"))


def _lean(row: Any) -> str:
    """Say where the seeds of a claim point: away if they do so in any of its parts."""
    sides = [(part.p_for, part.p_against) for part in row.parts]
    if not sides or row.seeds == 0:
        return "unknown"
    if any(against < towards for towards, against in sides):
        return "away"
    return "towards" if all(towards < against for towards, against in sides) else "unknown"


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
    if cited := registry.papers()[paper].cited:
        yield f"{{cite:t}}`{cited}`"
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
    known = claims.by_id()
    once = survey.runs.drop_duplicates(["experiment", "run_id"]).sort_values("seed", kind="stable")
    runs, priced = RunsByCell(once), _priced(survey)
    seen = states(survey.store, dict(zip(once["run_id"], once["code"], strict=True)))
    rows = sorted(survey.ledger.itertuples(), key=_importance)
    items = [Markup(_answer(row, known.get(row.claim), runs, priced, seen)) for row in rows]
    questions = shown.questions if (shown := front()) else ()
    return raw(
        fill(
            "ask",
            questions=questions,
            answers=items[:LISTED],
            waiting=packed("".join(items[LISTED:])),
        )
    )


def _answered_first() -> str:
    shown = front()
    return shown.claim if shown else ""


def _importance(row: Any) -> tuple[bool, bool, bool, str]:
    """Return the key that sorts claims without a question: example, claims in words, numbers.

    Claims with runs come before those without.
    """
    return row.claim != _answered_first(), not row.prose, row.seeds == 0, row.claim


def _answer(
    row: Any,
    claim: Claim | None,
    runs: RunsByCell,
    priced: "Priced",
    seen: Mapping[str, State],
) -> str:
    """claim: None for one that no run decides; seen: what is known of each run's code."""
    says, words = _question(row, claim)
    page = f"executed/{page_of(row.artifact, claim.source.experiment) if claim else row.page}.html"
    where, where_words = page, "the page that shows it"
    if claim and row.artifact in experiment(claim.source.experiment).tables:
        table = anchor_of(row.artifact, page_of(row.artifact, claim.source.experiment))
        where, where_words = f"{page}#{table}-side-by-side", "the table, side by side"
    facts = [
        ("the paper", _printed(row, claim)),
        ("our runs" if claim else plural(row.seeds, row.unit), told(row)),
        *(_provenance(runs.of(claim, row.parts), seen) if claim else ()),
        ("other rows", severity_words(row)),
        ("other executions", executions_words(row)),
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
    verb, value = (
        _verb(claim, test),
        _value(claim, test) + _which(row.artifact, claim.source.experiment),
    )
    at = f"at length {test}" if test.isdigit() else f"at {test}"
    says = f"{model} {verb} {title(task)} {at} ({value})"
    if claim.parts[0].above is not None:
        says = f"{model} {verb} {title(task)} ({value})"
    return says, f"{says} {NICKNAMES.get(model, '')} {row.paper}".lower()


@cache
def _which(artifact: str, source: str) -> str:
    """Name the table of a number if another of its experiment prints the same rows and columns."""
    printed = published.artifacts().set_index("artifact")["values"]
    tables = {
        name: set(published.table(name)[["row", "column"]].itertuples(index=False, name=None))
        for name in experiment(source).artifacts
        if printed[name]
    }
    mine = tables.get(artifact, set())
    alike = any(mine & cells for name, cells in tables.items() if name != artifact)
    return f", {name_of(artifact)}" if alike else ""


def _verb(claim: Claim, test: str) -> str:
    """Word a printed number, by the levels of the margins file."""
    levels, value = claims.load_margins().levels, claim.parts[0].printed[test]
    if claim.parts[0].above is not None:
        return "reaches its longest input on"
    if not registry.metric(claim.source.metric).share:
        return "on"
    if levels["solved"].holds(value):
        return "solves"
    return "fails on" if levels["failed"].holds(value) else "partly solves"


def _value(claim: Claim, test: str) -> str:
    if claim.parts[0].above is not None:
        return f"length {claim.parts[0].printed[test]:g}"
    return registry.metric(claim.source.metric).sized(claim.parts[0].printed[test])


def _printed(row: Any, claim: Claim | None) -> str:
    if not row.prose:
        value = _value(claim, row.claim.rsplit("/", 1)[1])
        return f"prints {value} in {name_of(row.artifact)}"
    quote = f"“{row.quote}” " if row.quote else ""
    return f"{quote}({row.where})"


def _provenance(used: Sequence[UsedRun], seen: Mapping[str, State]) -> list[tuple[str, str]]:
    """Seeds, machine and code of some runs; nothing where there are none."""
    if not used:
        return []
    cells = Counter((run.model, run.task) for run in used).values()
    seeds = from_to(min(cells), max(cells))
    scales = " and ".join(sorted({run.scale for run in used}))
    listed = f"{seeds} per cell, {len(used)} runs in all"
    if len(cells) == 1:
        listed = ", ".join(run_link(run.key, str(run.seed)) for run in used)
        listed = Markup(f"{len(used)} (number {listed})")
    machines = sorted({f"{Device(r.device, r.device_name)}, PyTorch {r.torch}" for r in used})
    made = {
        (run.commit or "unknown")[:8] + (f" for {run.seed}" if len(cells) == 1 else ""): None
        for run in used
    }
    checked = Freshness.of(seen[run] for run in dict.fromkeys(run.run_id for run in used))
    return [
        ("seeds", listed + f", at {scales} scale"),
        ("machine", "; ".join(machines)),
        ("code version", f"commit {', '.join(made)} ({checked.words})"),
    ]


Priced = Callable[[Claim, str], str]  # what training a claim's runs at a scale takes, in words


def _priced(survey: Survey) -> Priced:
    """Prices on the device that most records are from; "" where one is unknown."""
    device = most_recorded(survey.store)
    prices = Prices(own_runs(survey.store), device, few=timed(survey.store))

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
    says = f"“{_question(row, claims.by_id()[row.claim])[0]}” is *{row.label}*"
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
