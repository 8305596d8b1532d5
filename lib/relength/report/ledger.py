"""The ledger of claims: every claim with its verdict, the question put to the store, and the runs.

Claims of the text are boxes that open; printed numbers are rows of a table per artifact. Both carry
what readers filter by as classes (``f-paper-<name>``, ``f-verdict-not-run``), which
``book/assets/ledger.js`` reads. Their tables are HTML: as Markdown, thousands of cells took two
fifths of all the time that Sphinx needed for the book.
"""

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import pandas as pd
import yaml
from markupsafe import Markup

from relength.report import margins
from relength.report.exhibits import csv
from relength.report.grid import NOT_RUN
from relength.report.html import fill
from relength.report.markdown import artifact_link, badges, plain, raw, slug
from relength.report.outcomes import busiest
from relength.report.scoreboard import Survey
from relength.report.style import marks, readings, verdict_kind
from relength.report.tables import in_other_readings
from relength.report.wording import from_to, sentences
from relength.specs import registry
from relength.specs.experiments import page_of, same_runs_as
from relength.specs.margins import Margins, load_margins
from relength.verdicts import claims
from relength.verdicts.claim_models import (
    Claim,
    CostPart,
    CountPart,
    LevelPart,
    LongestPart,
    OrderPart,
    Part,
    PoolPart,
    RangePart,
    SomePart,
    TrendPart,
    ValuePart,
)
from relength.verdicts.claims import PartVerdict, counted, numbers_in_words, summary
from relength.verdicts.wording import plural

DOWNLOAD = (
    *("paper", "claim", "artifact", "kind", "statement", "where", "scope", "arm", "label"),
    *("scale", "seeds", "seen", "needed", "p", "q", "claim_changed", "others"),
    *("severity", "rivals", "one_symbol", "hardly", "repeated", "fragile", "otherwise", "between"),
    "same_runs_as",
)


class UsedRun(NamedTuple):
    """A run behind a claim, as pages show it.

    The fields are columns of :attr:`relength.report.scoreboard.Survey.runs`.
    """

    experiment: str
    model: str
    arm: str
    task: str
    scale: str
    seed: int
    key: str
    run_id: str
    margins: str | None
    device: str
    device_name: str
    torch: str
    commit: str | None


class RunsByCell:
    """Runs by the cells of claims: there are a thousand claims, and each asks for its own.

    runs: rows of :attr:`relength.report.scoreboard.Survey.runs`, one per run and experiment
    """

    def __init__(self, runs: pd.DataFrame):
        # Plain tuples: a table of its own for each claim takes longer than all that is said of it.
        self._cells: dict[tuple[str, str, str, str], list[UsedRun]] = {}
        for run in map(UsedRun._make, runs[list(UsedRun._fields)].itertuples(index=False)):
            self._cells.setdefault((run.experiment, run.model, run.task, run.arm), []).append(run)

    def of(self, claim: Claim, parts: Sequence[PartVerdict] = ()) -> list[UsedRun]:
        """The runs of a claim's cells in its judged arm.

        parts: those judged, each at its own scale; without any, runs of every scale
        """
        source = claim.source
        scales: dict[tuple[str, str], set[str]] = {}
        for one in parts:
            for pair in (pair for sample in one.part.samples for pair in sample):
                scales.setdefault(pair, set()).add(one.scale)
        found = []
        for model, task in claim.cells:
            cell = self._cells.get((source.experiment, model, task, source.arm_of(model)), [])
            judged = scales.get((model, task))
            found += [run for run in cell if run.scale in judged] if judged else cell
        return found


def claims_list(survey: Survey) -> str:
    """The summary, the claims of the text paper by paper, then the printed numbers by artifact."""
    judged = survey.ledger
    known = claims.by_id()
    once = survey.runs.drop_duplicates(["experiment", "run_id"]).sort_values("seed", kind="stable")
    runs = RunsByCell(once)
    prose, cells = judged[judged["prose"]], judged[~judged["prose"]]
    data = csv("claims", judged[list(DOWNLOAD)])
    by_runs = judged["page"] == ""
    others = counted(Counter(judged[~by_runs]["verdict"]))
    names = {name: paper.short for name, paper in registry.papers().items()}
    parts = [
        f"{summary(judged[by_runs])} {numbers_in_words(judged)}\n\n"
        f"Another {(~by_runs).sum()} claims take no training, because "
        f"pages simulate, calculate or measure them: {others or 'none is judged yet'}.\n",
        raw(fill("ledger_filter", data=Markup(data), papers=json.dumps(names))),
    ]
    for name, paper in registry.papers().items():
        words = prose[prose["paper"] == name]
        printed = cells[cells["paper"] == name]
        if words.empty and printed.empty:
            continue
        parts.append(f":::::::{{container}} ledger-group\n**{paper.title}**\n")
        parts += [
            _computed(row) if row.page else _claim(row, known[row.claim], runs, survey)
            for row in words.itertuples()
        ]
        parts += [
            _numbers(artifact, rows, known, runs)
            for artifact, rows in printed.groupby("artifact", sort=False)
        ]
        parts.append(":::::::\n")
    return "\n".join(parts)


def facets(row: Any) -> str:
    """Return what a claim can be filtered by, as classes."""
    low, high = load_margins().between
    chosen = {
        "paper": row.paper,
        "kind": row.kind,
        "verdict": verdict_kind(row.label),
        "scale": row.scale or ("computed" if row.page else "none"),
        "what": "sentence" if row.prose else "number",
        "severity": "unknown"
        if row.rivals == 0 and pd.isna(row.hardly)
        else _facet(row.hardly, "could hardly fail", "could fail"),
        "executions": "fragile" if row.fragile else "stable" if row.repeated else "no others",
        "printed": _facet(row.between, f"between {low:g} and {high:g}", "floor or ceiling"),
    }
    return " ".join(["facets", *(f"f-{name}-{slug(value)}" for name, value in chosen.items())])


def _facet(holds: bool | None, yes: str, no: str) -> str:
    return "does not apply" if pd.isna(holds) else yes if holds else no


def _claim(row: Any, claim: Claim, runs: RunsByCell, survey: Survey) -> str:
    """One claim of the text: a line that opens."""
    fixed = load_margins()
    others = readings(row.others)
    if NOT_RUN in others:  # or all runs failed
        others = in_other_readings(busiest(survey, claim.source.experiment), claim, row)
    used = runs.of(claim, row.parts)
    facts = [
        ("The paper says" if row.quote else "In the paper", _quoted(row)),
        ("Here", plain(row.scope)),
        ("Seen", sentences(plain(row.seen + row.at_full_scale), *_changed(row))),
        ("Other rows", severity_words(row)),
        ("Other executions", executions_words(row)),
        ("To decide it", plain(row.needed)),
        ("Other readings", plain(others)),
        ("Artifact", artifact_link(row.artifact, page_of(row.artifact, claim.source.experiment))),
        ("Kind", f"{row.kind}, judged on the reading {row.arm}{_q(row)}"),
    ]
    if not claim.not_testable:
        facts += [
            ("Query", _query(claim)),
            ("Margins", f"{plain(_margin_words(claim, fixed))}. {_made_under(used)}"),
        ]
    body = fill(
        "ledger_parts",
        judged=[
            {
                "expected": _typeset(expected(p.part)),
                "seen": _typeset(p.seen),
                "badge": (p.outcome, verdict_kind(p.outcome)),
            }
            for p in row.parts
        ],
        waiting=[_typeset(expected(part)) for part in claim.parts],
        cells=_runs_by_cell(used),
        file=f"book/claims/{claim.paper}.yml",
        written=_written(claim.paper)[claim.id],
    )
    return _box(row, "seed", f"{_facts(facts)}\n{raw(body)}")


def _computed(row: Any) -> str:
    """A claim that no run decides."""
    facts = [
        ("The paper says" if row.quote else "In the paper", _quoted(row)),
        ("Here", plain(row.scope)),
        ("Seen", plain(row.seen)),
        ("To decide it", f"`{row.needed}`" if row.needed else ""),
        ("Page", f"{{doc}}`/executed/{row.page}`"),
        ("Kind", row.kind),
    ]
    return _box(row, row.unit, _facts(facts))


def _typeset(text: str) -> str:
    """Text with the signs that Sphinx sets: curved apostrophes, and % kept beside its number."""
    return text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}").replace(" %", "\N{NO-BREAK SPACE}%")


def severity_words(row: Any) -> str:
    """Say how many other rows of a number's column come out too, and what one symbol gives."""
    if pd.isna(row.rivals):
        return ""
    others = int(row.rivals)
    said = f"{round(row.severity * others)} of {others}" if others else "unknown"
    simple = "" if pd.isna(row.one_symbol) else f"; one symbol alone gives {row.one_symbol:.1f} %"
    return said + simple


def executions_words(row: Any) -> str:
    """Say what other executions of the runs behind a verdict do to it."""
    if not row.repeated:
        return ""
    runs = plural(int(row.repeated), "run")
    return f"{runs} executed more than once: {row.otherwise or 'the verdict stays'}"


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    listed = "\n\n".join(f"{term}\n: {text}" for term, text in facts if text)
    return f":::{{container}} facts\n{listed}\n:::\n"


def _box(row: Any, unit: str, body: str) -> str:
    """A line that opens: verdict, statement, and how many of a unit it was decided by."""
    count = plural(row.seeds, unit) + (row.scale and f", {row.scale}")
    head = (
        f"[{badges(row)}]{{.claim-badges}} [{plain(row.statement)}]{{.claim-says}} "
        f"[{row.claim} [{count}]{{.claim-seeds}}]{{.claim-id}}"
    )
    return (
        f"::::::{{dropdown}} {head}\n:name: claim-{row.claim}\n"
        f":class-container: claim {facets(row)}\n\n{body}::::::\n"
    )


def _quoted(row: Any) -> str:
    quote = f"“{plain(row.quote)}” " if row.quote else ""
    return f"{quote}({plain(row.where)})"


def _q(row: Any) -> str:
    return "" if pd.isna(row.q) else f", false-discovery rate *q* = {row.q:.3f}"


def _changed(row: Any) -> tuple[str, str]:
    margins_too = "the margins changed since these runs" if row.margins_changed else ""
    return margins_too, row.claim_changed


def _query(claim: Claim) -> str:
    source = claim.source
    return (
        f"records of `{source.experiment}`, metric `{source.metric}` of the checkpoint "
        f"`{source.checkpoint}`, reading `{source.judged_arm}`; recompute it with "
        f"`relength claims {claim.paper}`"
    )


def _runs_by_cell(used: Sequence[UsedRun]) -> list[dict[str, Any]]:
    cells: dict[tuple[str, str], list[UsedRun]] = {}
    for run in used:
        cells.setdefault((run.model, run.task), []).append(run)
    return [
        {"model": model, "task": task, "runs": _by_seed(cell)}
        for (model, task), cell in cells.items()
    ]


def _by_seed(cell: Sequence[UsedRun]) -> list[dict[str, str]]:
    """The runs of a cell with the words that link to them: the seed and, where there are runs of
    both scales, the scale.
    """
    mixed = len({run.scale for run in cell}) > 1
    return [
        {"key": run.key, "words": f"{run.seed} ({run.scale})" if mixed else str(run.seed)}
        for run in cell
    ]


def made_under(used: Iterable[UsedRun]) -> dict[str, int]:
    """{fingerprint of the margins: runs made under them}"""
    return dict(Counter(run.margins for run in used if pd.notna(run.margins)))


def _made_under(used: Iterable[UsedRun]) -> str:
    made = [
        f"{plural(n, 'run')} made under version {margins.link(fingerprint)}"
        for fingerprint, n in made_under(used).items()
    ]
    return "; ".join(made) or "No run yet; {ref}`history of the margins <margin-history>`"


def _margin_words(claim: Claim, fixed: Margins) -> str:
    """The margins that a claim's parts are judged by."""
    metric = claim.source.metric
    measure = registry.metric(metric).margin or ""
    solved = margins.level_words("solved", fixed, metric)
    said: dict[str, None] = {}
    for part in claim.parts:
        match part:
            case LongestPart():
                said[f"length {margins.measure_words('length', fixed)}"] = None
            case ValuePart() | OrderPart() if part.above is not None:
                said[f"length {margins.measure_words('length', fixed)}"] = None
            case ValuePart() | TrendPart() | RangePart() | PoolPart():
                said[f"{measure.replace('_', ' ')} {margins.measure_words(measure, fixed)}"] = None
            case LevelPart() | SomePart():
                word = part.level.removeprefix("not_")
                said[f"{word}: {margins.level_words(word, fixed, metric)}"] = None
            case CountPart():
                said[f"a task counts as solved at {solved}"] = None
            case OrderPart() if part.by == "tasks_solved":
                said[f"a task counts as solved at {solved}"] = None
            case OrderPart():
                said[f"{measure.replace('_', ' ')} {margins.measure_words(measure, fixed)}"] = None
            case CostPart():
                said[f"ratio {margins.measure_words('cost_ratio', fixed)}"] = None
    return "; ".join(said) or "None"


def expected(part: Part) -> str:
    """One part of a claim in words."""
    match part:
        case ValuePart():
            spread = f" ± {part.spread:g}" if part.spread is not None else ""
            values = ", ".join(f"{v:g}{spread} at {test}" for test, v in part.printed.items())
            if part.tests:
                what = "mean" if part.above is None else f"longest above {part.above:g} %"
                values = f"{part.printed_value:g}{spread}, {what} of the tests {_span(part.tests)}"
            return f"{part.model} on {part.task}: printed {values}"
        case LevelPart():
            level = part.level.replace("_", " ")
            return f"{part.model} on {part.task}: {level} at {', '.join(part.tests)}"
        case SomePart():
            level, where = part.level.replace("_", " "), ", ".join(part.tests)
            some = f"at least {part.at_least} of {len(part.models)} models"
            return f"{some} on {part.task}: {level} at {where}"
        case RangePart():
            bound = from_to(f"{part.low:g}", f"{part.high:g}")
            over = f", less {_others(part.over)}" if part.over else ""
            return f"{part.model}{over}: {bound}, mean over the tests of {', '.join(part.tests)}"
        case PoolPart():
            bound = from_to(f"{part.low:g}", f"{part.high:g}")
            runs = f"the runs of {', '.join(part.models)} with one seed, on {', '.join(part.tests)}"
            return f"{runs}: {bound}, mean over those of which the measure says something"
        case LongestPart():
            bound = from_to(f"{part.low:g}", f"{part.high:g}")
            what = f"longest test above {part.above:g} %"
            over = "" if part.than is None else f", times that of {part.than}"
            return f"{part.model} on {part.task}: {what} {bound}{over}"
        case TrendPart():
            return f"{part.model} on {part.task}: {part.direction} over {', '.join(part.tests)}"
        case CountPart():
            return f"{part.model}: solves {part.count} of {len(part.tests)} tasks"
        case OrderPart():
            relation = "better than" if part.relation == "better" else "on par with"
            by = {
                "tasks_solved": "tasks solved",
                "mean": "mean over the tests",
                "longest": f"longest test above {part.above or 0:g} %",
            }[part.by]
            tasks = plural(len(part.tests), "task")
            if part.by != "tasks_solved" and len(part.tests) == 1:
                tasks = next(iter(part.tests))
            if part.other_tests:
                here, there = ", ".join(part.tests), ", ".join(part.other_tests)
                return f"{part.model} {relation} itself: {here} against {there}, {by}"
            other = _others(part.best_of) if part.best_of else part.other
            return f"{part.model} {relation} {other}: {by}, {tasks}"
        case CostPart():
            return f"{part.model} on {part.task}: {part.ratio:g} times the seconds of {part.than}"


def _span(tests: tuple[str, ...]) -> str:
    return f"{tests[0]} to {tests[-1]}"


def _others(models: tuple[str, ...]) -> str:
    """One model, or the best of several."""
    return models[0] if len(models) == 1 else f"the best of {len(models)} others at each test"


@cache
def _written(paper: str) -> dict[str, str]:
    """{id: lines} of the claims as they stand in the file of a paper."""
    text = (claims.FOLDER / f"{paper}.yml").read_text(encoding="utf-8")
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    (entries,) = (value for key, value in root.value if key.value == "claims")
    lines = text.splitlines()
    found = {}
    for entry in entries.value:
        (name,) = (value.value for key, value in entry.value if key.value == "id")
        body = lines[entry.start_mark.line : entry.end_mark.line]
        found[name] = textwrap.dedent("\n".join(body).replace("- ", "  ", 1)).strip()
    return found


def _otherwise(row: Any) -> str:
    """Say what other executions of the same runs give; mostly nothing."""
    words = executions_words(row)
    return f"other executions: {words}" if words else ""


def _numbers(artifact: str, rows: pd.DataFrame, known: dict[str, Claim], runs: RunsByCell) -> str:
    """The printed numbers of one artifact, each a claim of its own, folded."""
    first = known[rows["claim"].iloc[0]]
    fixed = load_margins()
    used = {row.claim: runs.of(known[row.claim], row.parts) for row in rows.itertuples()}
    every = {run.key: run for found in used.values() for run in found}.values()
    body = fill(
        "ledger_numbers",
        artifact=artifact,
        rows=[
            {
                "facets": facets(row),
                "anchor": slug(row.claim),
                "statement": _typeset(row.statement),
                "badges": [
                    (row.label, verdict_kind(row.label)),
                    *((mark, "mark") for mark in marks(row)),
                ],
                "others": _typeset(severity_words(row)),
                "seen": _typeset(
                    sentences(row.seen + row.at_full_scale, *_changed(row), _otherwise(row))
                ),
                "seeds": f"{row.seeds} {row.scale}".rstrip(),
                "readings": readings(row.others),
                "runs": _by_seed(used[row.claim]),
                "claim": row.claim,
            }
            for row in rows.itertuples()
        ],
    )
    return (
        f"::::::{{dropdown}} {len(rows)} printed numbers of {artifact}: "
        f"{counted(Counter(rows['verdict']))}\n:name: numbers-{artifact}\n"
        ":class-container: claim ledger-numbers\n\n"
        f"Each is a claim: our runs give the same number within the margin, "
        f"{plain(_margin_words(first, fixed))}. "
        f"{artifact_link(artifact, first.source.experiment)}. Query: {_query(first)}. "
        f"{_made_under(every)}. {numbers_in_words(rows)} *Other rows* counts those of the same "
        f"column that come out at the same number.{_same_runs(artifact)}\n\n{raw(body)}::::::\n"
    )


def _same_runs(artifact: str) -> str:
    """Say of a table whose runs another table shows that summaries leave it out."""
    other = same_runs_as(artifact)
    told = f" These are the runs of {other}: no count over several tables has them again."
    return told if other else ""
