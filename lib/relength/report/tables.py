"""The tables of a notebook, made from recorded runs and published numbers; nothing is typed.

Most functions take :class:`relength.report.runs.Runs`. Where nothing is recorded the tables say
*not run*, and where all runs failed *failed*. Only runs of the scales ``reduced`` and ``paper`` get
verdicts.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from html import escape
from math import isnan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges
from relength.report.grid import FAILED, NOT_RUN, word_for_none
from relength.report.html import fill
from relength.report.runs import Runs
from relength.report.style import (
    ARM_LABELS,
    ARMS,
    aligned,
    marks,
    title,
    verdict_kind,
)
from relength.report.wording import capital, sentences, span, wrapped
from relength.specs import published, registry
from relength.specs.experiments import anchor_of
from relength.specs.margins import Margin, load_margins, margin_words
from relength.specs.published import name_of
from relength.tasks.metrics import Metric
from relength.verdicts import claims, stats
from relength.verdicts.wording import number, plural

VERDICT_COLUMNS = (
    *("claim", "kind", "statement", "verdict", "scale", "seeds", "seen", "needed"),
    *("p", "q", "others", "severity", "rivals", "hardly", "fragile", "between"),
)
FEW = 6  # columns that need not take the whole width
PRINTED_SIGNS = {"club": "♣", "diamond": "♦"}  # as rows spell them
HALF = 4  # tasks side by side: the paper's own table is broken in the same place
MARKS = {"reproduced": "✓", "contradicted": "≠", claims.NOT_REACHED: "↓", claims.EXCEEDED: "↑"}


def short(value: float) -> str:
    """Round to one decimal, for narrow columns: >99.9, <0.1."""
    if isnan(value):
        return "–"
    if 99.95 <= value < 100:
        return ">99.9"
    if 0 < value < 0.05:
        return "<0.1"
    return f"{value:.1f}".removesuffix(".0")


def signed(value: float) -> str:
    """A difference with its sign: +3.2, −0.5, 0."""
    return f"{value:+.1f}".replace("-", "−") if abs(value) >= 0.05 else "0"


@cache  # the callers of a page ask for the same tables, and none of them changes them
def printed(*artifacts: str) -> dict[tuple[str, str, str], float]:
    """{(model, task, test): value} of published tables."""
    tables = [published.table(artifact).dropna(subset="value") for artifact in artifacts]
    return {
        (cell.model, cell.task, cell.test): cell.value
        for cells in tables
        for cell in cells.itertuples()
    }


def compared_tasks(runs: Runs, artifacts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """{task: tests} of the runs, of the tasks that artifacts print; of all, if they print none."""
    known = {task for _, task, _ in printed(*artifacts)}
    return {task: tests for task, tests in runs.tests.items() if not known or task in known}


def comparison(runs: Runs, artifact: str | None = None) -> pd.DataFrame:
    """One row per task, test, model and arm: the paper's value and ours, as numbers.

    artifact  the printed table that ours stand beside; None for every table of the experiment, and
              where it has none, for ours alone

    Columns: task, test, model, arm, scale, paper (NaN where nothing is printed), seeds (how many),
    ours (the :attr:`relength.specs.experiments.Experiment.statistic` of them), apart (whether that
    is outside the margin around the paper's value; None where one of them is missing), mean,
    median, low, high and confidence (of the median,
    :func:`relength.verdicts.stats.median_interval`), solved (seeds at the level "solved"),
    solved_low, solved_high (percent, 95 %), the median of each of :func:`metrics_beside` (NaN where
    a task does not have it), values (every seed, in the order of seeds).
    """
    artifacts = runs.experiment.tables if artifact is None else (artifact,)
    paper, level = printed(*artifacts), load_margins().levels["solved"]
    statistic, rows = _statistic(runs, artifact), []
    room, others = _room(runs), metrics_beside(runs)
    for task, tests in compared_tasks(runs, artifacts).items():
        known = registry.tasks()[task].metrics.known()
        for test in tests:
            for model, arm in (row for row in runs.rows if runs.plans(*row, task)):
                if test not in runs.tested(model, arm, task):
                    continue
                values = runs.values(model, arm, task, test, runs.experiment.shown)
                solved = sum(map(level.holds, runs.values(model, arm, task, test)))
                summary = _summary(values, solved)
                said, ours = paper.get((model, task, test), np.nan), summary[statistic]
                rows.append(
                    {
                        **dict(task=task, test=test, model=model, arm=arm, scale=runs.scale),
                        **{"paper": said, "ours": ours},
                        "apart": _outside(room, said, ours),
                        **summary,
                        **{
                            name: _median(runs.values(model, arm, task, test, name))
                            if name in known
                            else np.nan
                            for name in others
                        },
                        "values": values,
                    }
                )
    return pd.DataFrame(rows)


def metrics_beside(runs: Runs) -> dict[str, Metric]:
    """The metrics of the runs' tasks that tables have beside the one that they are about."""
    kinds = dict.fromkeys(registry.tasks()[task].metrics for task in runs.tasks)
    known = [pair for kind in kinds for pair in kind.known().items()]
    shown = runs.experiment.shown
    return {name: metric for name, metric in known if metric.beside and name != shown}


def _room(runs: Runs) -> Margin | None:
    """The margin of an experiment's tables, if their metric has one."""
    margin = runs.shown.margin
    return load_margins().measures[margin] if margin else None


def _outside(room: Margin | None, said: float, ours: float) -> bool | None:
    if room is None or isnan(said) or isnan(ours):
        return None
    return bool(abs(ours - said) > room.around(said))


def _statistic(runs: Runs, artifact: str | None) -> str:
    """Say which statistic of the seeds the column ``ours`` of a :func:`comparison` is."""
    return runs.experiment.statistic if artifact is None else published.statistic(artifact)


def _summary(values: list[float], solved: int) -> dict[str, float]:
    if not values:
        nothing = (
            "mean",
            "median",
            "low",
            "high",
            "confidence",
            "solved",
            "solved_low",
            "solved_high",
        )
        return {"seeds": 0, **dict.fromkeys(nothing, np.nan)}
    interval, rate = stats.median_interval(values), stats.rate_interval(solved, len(values))
    return {
        "seeds": len(values),
        "mean": float(np.mean(values)),
        "median": _median(values),
        "low": interval.low,
        "high": interval.high,
        "confidence": interval.confidence,
        "solved": solved,
        "solved_low": 100 * rate.low,
        "solved_high": 100 * rate.high,
    }


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else np.nan


# The matrix: models down, tasks and lengths across, as the paper prints it


def published_table(artifact: str, name: str = "", note: str = "") -> Exhibit:
    """A table of the paper as printed, row by row, a group of columns per task.

    name, note: its anchor, if not the usual one, and what else its caption says, as HTML.
    """
    tests: dict[str, tuple[str, ...]] = {}
    cells = published.table(artifact)  # with those that are empty, which have their places, too
    cells["test"] = cells["test"].replace(registry.united("columns"))
    there = cells.dropna(subset="value")
    paper = there.set_index(["row", "task", "test"])[["value", "spread"]].to_dict("index")
    filled = {place[1:] for place in paper}
    for task, test in cells[["task", "test"]].itertuples(index=False, name=None):
        if (task, test) in filled:
            tests[task] = tuple(dict.fromkeys((*tests.get(task, ()), test)))
    rows = [(row, _as_printed(row), "") for row in dict.fromkeys(there["row"])]

    def cell(row: str, _: str, task: str, test: str) -> tuple[str, str, float]:
        found = paper.get((row, task, test), {})
        value, apart = found.get("value", np.nan), found.get("spread", np.nan)
        beside = "" if isnan(apart) else f"<i>± {escape(number(apart))}</i>"
        return f"<b>{escape(number(value))}</b>{beside}", "", value

    entry = published.artifacts().set_index("artifact").loc[artifact]
    caption = (
        f"<b>What the paper prints.</b> {escape(entry['title'])}: {escape(entry['metric'])}, "
        f"{escape(entry['protocol'])}. {note}".rstrip()
    )
    data = published.table(artifact).dropna(axis="columns", how="all")
    html = exhibits.table(
        matrix(rows, tests, cell),
        caption,
        name or f"{artifact}-printed",
        [exhibits.csv(artifact, data)],
    )
    return Exhibit(html, f"The numbers of {artifact} as printed: {len(paper)} cells.", data)


def _as_printed(row: str) -> str:
    for said, sign in PRINTED_SIGNS.items():
        row = row.replace(f"({said})", sign)
    return row


def _untouched(runs: Runs) -> bool:
    """Tell whether nothing of a grid is recorded, at any scale that counts."""
    places = itertools.product(runs.rows, runs.tasks)
    return not runs.records and not any(runs.elsewhere(*row, task) for row, task in places)


def side_by_side(runs: Runs, artifact: str) -> Exhibit:
    """The paper's table with ours in every cell: ours above, the printed value below.

    Ours are means where the paper prints means, and medians where it prints medians.
    """
    data, anchor = comparison(runs, artifact), anchor_of(artifact, runs.page)
    found = data.set_index(["model", "arm", "task", "test"]).to_dict("index")
    if _untouched(runs):
        command = exhibits.typed(exhibits.training(runs))
        note = f"<b>Not run yet</b>: ours will stand beside them, after {command}."
        return replace(published_table(artifact, f"{anchor}-side-by-side", note), waits=True)
    verdicts, beside = _cell_verdicts(runs, artifact), _beside_verdicts(runs, artifact)
    room = _room(runs)
    known = {(task, test) for _, task, test in printed(artifact)}
    tests = {
        task: tuple(test for test in names if (task, test) in known)
        for task, names in compared_tasks(runs, (artifact,)).items()
    }
    rows = [(model, runs.label(model, arm), arm) for model, arm in runs.rows]

    def cell(model: str, arm: str, task: str, test: str) -> tuple[str, str, float]:
        ours = found.get((model, arm, task, test))
        if ours is None:
            return '<b class="none">–</b>', "longer than this model can read", np.nan
        verdict = verdicts.get((model, arm, task, test), "")
        paper = f"<i>{escape(number(ours['paper']))}</i>"
        if not ours["seeds"]:
            others = runs.elsewhere(model, arm, task)
            without = word_for_none(runs, model, arm, task)
            words = f"{' and '.join(others)} only" if others else without
            hint = "; ".join(f"{plural(n, 'seed')} at scale {scale}" for scale, n in others.items())
            return f'<b class="none">{words}</b>{paper}', hint or without, np.nan
        told = beside.get((model, arm, task, test), Beside())
        mark = f"<s>{told.around(MARKS.get(verdict, ''))}</s>".replace("<s></s>", "")
        some = f"<small>{ours['solved']:.0f}/{ours['seeds']}</small> " if _disagree(ours) else ""
        kind = "apart" if ours["apart"] else "near"
        seeds = ", ".join(map(number, ours["values"]))
        solve = f"{ours['solved']:.0f} of {ours['seeds']} solve it"
        hint = f"scale {runs.scale}, seeds: {seeds}; {solve}; {verdict}".rstrip("; ")
        hint += told.hint
        return (
            f'<b class="{kind}">{some}{escape(_middle(ours))}{mark}</b>{paper}',
            hint,
            ours["ours"],
        )

    level = load_margins().levels["solved"].at_least
    cells = [cell for (_, _, task, test), cell in found.items() if test in tests[task]]
    some_solve = (
        "Where only some seeds solve a test, a small fraction counts them; solving takes "
        f"{level:g} % {runs.measured.words}. "
        if any(map(_disagree, cells))
        else ""
    )
    both = " Of two seeds both are shown." if any(cell["seeds"] == 2 for cell in cells) else ""
    one_symbol = (
        ", or one symbol of the input does, written over and over"
        if runs.ledger["one_symbol"].notna().any()
        else ""
    )
    coloured = (
        "A coloured number is outside the margin of the printed one, "
        f"{margin_words(room, runs.shown.margin)}. "
        if room
        else ""
    )
    caption = (
        f"<b>{name_of(artifact)} of the paper, side by side.</b> "
        f"{badges(runs.scale, runs.freshness)} {_seeds_phrase(data)}"
        f"{runs.on_generated_data} The upper number of a cell is our "
        f"{_statistic(runs, artifact)} {runs.shown.in_unit}.{both} The lower, smaller one is "
        f"what the paper prints. {coloured}{some_solve}✓ marks a reproduced claim, ≠ a "
        "contradicted one. ↓ and ↑ mark results at reduced scale that are worse or better than "
        "printed beyond chance, before stage two has judged them. Brackets mark what could "
        f"hardly fail: at least {load_margins().hardly_fails:.0%} of the other rows come out at "
        f"the printed number as well{one_symbol}; point at a cell to see how many. A question mark "
        "stands where other executions of the same runs change the verdict: it is fragile."
        f"{_readings(runs)}"
    )
    html = exhibits.table(
        matrix(rows, tests, cell),
        caption,
        f"{anchor}-side-by-side",
        [
            exhibits.csv(f"{artifact}-ours", flat(data)),
            exhibits.specs(artifact, runs.records),
            exhibits.notebook(runs.page),
        ],
    )
    run = runs.judged_rows(data).groupby(["model", "task"])["seeds"].max()
    return Exhibit(
        html, f"{artifact}: {(run > 0).sum()} of {len(run)} cells have runs.", flat(data)
    )


def printed_cells(runs: Runs, artifact: str) -> pd.DataFrame:
    """The rows of a :func:`comparison` with a printed number, in the judged reading."""
    return runs.judged_rows(comparison(runs, artifact).dropna(subset="paper"))


def _disagree(cell: dict) -> bool:
    """Tell whether of three seeds or more some solve a test and some do not, which a median
    hides.
    """
    return cell["seeds"] > 2 and 0 < cell["solved"] < cell["seeds"]


def _middle(cell: dict) -> str:
    """Our number in a cell; of two seeds both, as there is no middle between a few and many."""
    if cell["seeds"] == 2 and (shown := [*map(short, sorted(cell["values"]))])[0] != shown[1]:
        return "/".join(shown)
    return short(cell["ours"])


READINGS = {  # what a row is whose arm is not the judged one; Paper.released has the last one
    "paper": "the paper's equations where its released code differs",
    "repaired": "the equations with a stated repair",
    **{name: arm.row for name, arm in ARMS.items()},
}


def _readings(runs: Runs) -> str:
    """Say for a caption what the rows of other arms are."""
    others = dict.fromkeys(arm for row, arm in runs.rows if not runs.experiment.judges(row, arm))
    rows = READINGS | {"released": registry.papers()[runs.experiment.paper].released}
    said = [f" Rows <i>{ARM_LABELS.get(arm, arm)}</i> train {rows[arm]}." for arm in others]
    said += [
        f" Rows without a remark are {ARM_LABELS[runs.experiment.judged_arm]}; those of "
        f"{', '.join(models)} are <i>{ARM_LABELS.get(arm, arm)}</i>."
        for arm, models in runs.judged_otherwise.items()
    ]
    said += [" A reading without a finished run has no row."] if runs.waiting else []
    return "".join(said)


def matrix(
    rows: Sequence[tuple[str, str, str]],
    tests: dict[str, tuple[str, ...]],
    cell: Callable[[str, str, str, str], tuple[str, str, float]],
) -> str:
    """A table of HTML, tasks side by side and their tests below them.

    rows: (model, label, arm); cell: HTML, hint and value of (model, arm, task, test)
    """
    tasks = list(tests)
    halves = [tasks[i : i + HALF] for i in range(0, len(tasks), HALF)]
    return fill(
        "matrix", blocks=[_block(rows, {t: tests[t] for t in half}, cell) for half in halves]
    )


def _block(
    rows: Sequence[tuple[str, str, str]],
    tests: dict[str, tuple[str, ...]],
    cell: Callable[[str, str, str, str], tuple[str, str, float]],
) -> dict[str, Any]:
    """The tasks of a :func:`matrix` that stand side by side, as its template takes them."""
    body, previous = [], ""
    for model, label, arm in rows:
        cells = []
        for task, lengths in tests.items():
            for i, test in enumerate(lengths):
                html, hint, value = cell(model, arm, task, test)
                sort = "" if isnan(value) else f"{value:g}"
                cells.append({"first": i == 0, "value": sort, "hint": hint, "html": Markup(html)})
        name, _, reading = label.partition(", ")
        kind = "rule other-arm" if reading and not previous else "other-arm" if reading else ""
        previous = reading
        body.append(
            {"kind": kind, "name": Markup(name), "reading": Markup(reading), "cells": cells}
        )
    return {
        "few": sum(map(len, tests.values())) <= FEW,
        "tasks": [
            (Markup(title(task)), [Markup(_length(test)) for test in lengths])
            for task, lengths in tests.items()
        ],
        "rows": body,
    }


def _length(test: str) -> str:
    """Return the heading of a column; none is the mean over the tests."""
    return {"": "mean", "iid": "IID"}.get(test, test)


def _cell_verdicts(runs: Runs, artifact: str) -> dict[tuple[str, str, str, str], str]:
    """{(model, arm, task, test): verdict} of the claims that a single printed cell is."""
    verdicts = {}
    ledger = runs.ledger
    for row in ledger[ledger["claim"].str.startswith(f"{artifact}/")].itertuples():
        _, model, task, test = row.claim.split("/")
        verdicts[model, row.arm, task, test] = row.verdict
        for arm, other in row.beside.items():
            verdicts[model, arm, task, test] = other.verdict
    return verdicts


class Beside(NamedTuple):
    """Marks beside the verdict on a cell: see :func:`relength.verdicts.claims.ledger`."""

    hardly: bool = False
    fragile: bool = False
    hint: str = ""
    others: str = ""  # how many other rows come out as well; empty where the number does not

    def around(self, mark: str) -> str:
        """The mark of a verdict, in brackets and with a question mark where these apply."""
        return (f"({mark})" if self.hardly else mark) + ("?" if self.fragile else "")


def _beside_verdicts(runs: Runs, artifact: str) -> dict[tuple[str, str, str, str], Beside]:
    """{(model, arm, task, test): what stands beside the verdict} of the judged readings."""
    ledger, found = runs.ledger, {}
    for row in ledger[ledger["claim"].str.startswith(f"{artifact}/")].itertuples():
        _, model, task, test = row.claim.split("/")
        rivals = 0 if pd.isna(row.rivals) else int(row.rivals)
        others = "unknown" if row.verdict == "reproduced" else ""
        hint = ""
        if rivals:
            others = f"{round(row.severity * rivals)} of {rivals}"
            hint = f"; {others} other rows come out as well"
        if not pd.isna(row.one_symbol):
            hint += f"; one symbol alone gives {row.one_symbol:.1f} %"
        hint += f"; fragile: {row.otherwise}" if row.fragile else ""
        beside = Beside(row.hardly == 1, bool(row.fragile), hint, others)
        found[model, row.arm, task, test] = beside
    return found


def _seeds_phrase(data: pd.DataFrame) -> str:
    counts = data[data["seeds"] > 0]["seeds"]
    if counts.empty:
        return "Nothing is recorded at this scale yet."
    return f"{span(counts, 'seed')} per cell."


def flat(data: pd.DataFrame) -> pd.DataFrame:
    """Write the values of all seeds into one text column, for download."""
    return data.assign(values=[" ".join(f"{v:.6g}" for v in row) for row in data["values"]])


# The long table: one row per cell, everything that is known of it


def details(runs: Runs, artifact: str | None = None) -> Exhibit:
    """A sortable row per task, length, model and arm: every seed, intervals, success rate.

    artifact: as in :func:`comparison`.
    """
    data, name = comparison(runs, artifact), artifact or runs.page
    statistic, others = _statistic(runs, artifact), metrics_beside(runs)
    counted = not runs.shown.lower_is_better  # a level in percent says nothing of an error
    came_out = {
        cell: beside.others
        for table in ([artifact] if artifact else runs.experiment.tables)
        for cell, beside in _beside_verdicts(runs, table).items()
        if beside.others
    }
    columns = {
        "task": "text",
        "length": "number",
        "model": "text",
        "paper": "number",
        f"our {statistic}": "number",
        **({"other rows": "text"} if came_out else {}),
        "every seed": "text",
        "interval of the median": "text",
        **({"solved": "text", "95 % interval": "text"} if counted else {}),
        **{metric.beside: "number" for metric in others.values()},
    }
    rows = [
        [
            escape(cell)
            for cell in (
                title(row.task),
                _length(row.test),
                runs.label(row.model, row.arm, row.task),
                number(row.paper),
                number(row.ours)
                if row.seeds
                else word_for_none(runs, row.model, row.arm, row.task),
                *([came_out.get((row.model, row.arm, row.task, row.test), "–")] * bool(came_out)),
                ", ".join(map(number, row.values)) or "–",
                f"{number(row.low)}–{number(row.high)} ({row.confidence:.0%})"
                if row.seeds > 1
                else "–",
                *((_solved(row) if row.seeds else ("–", "–")) if counted else ()),
                *(number(getattr(row, name)) for name in others),
            )
        ]
        for row in data.itertuples()
    ]
    solved = (
        f" <i>Solved</i> counts seeds at {load_margins().levels['solved'].at_least:g} % or more, "
        "beside the exact interval of their share."
        if counted
        else ""
    )
    said = "".join(
        f" <i>{capital(metric.beside)}</i> is the median {metric.about}."
        for metric in others.values()
        if metric.about
    )
    if came_out:
        said += " <i>Other rows</i> stands beside each printed number that comes out: how many of "
        said += "the column's other rows, as we trained them, come out at it as well. Where "
        said += "all do, the number is weak evidence."
    caption = (
        f"<b>Every cell, every seed.</b> {badges(runs.scale, runs.freshness)} "
        f"{capital(runs.shown.in_unit)}. The shortest test, or IID, has lengths trained on. "
        "The interval is that of the median, from order statistics; its confidence stands in "
        f"brackets.{solved}{said}{runs.on_generated_data}"
    )
    if not runs.records:
        return exhibits.waiting(caption, f"{name}-details", exhibits.training(runs), flat(data))
    html = exhibits.table(
        exhibits.folded(columns, rows),
        caption,
        f"{name}-details",
        [
            exhibits.csv(f"{name}-ours", flat(data)),
            exhibits.notebook(runs.page),
        ],
    )
    return Exhibit(html, f"{name}: {len(rows)} rows, one per cell and length.", flat(data))


def _solved(row: Any) -> tuple[str, str]:
    """Count the seeds of a cell that solve its test, and give the exact interval of their share."""
    share = f"{row.solved_low:.0f}–{row.solved_high:.0f} %"
    return f"{row.solved:.0f} of {row.seeds}", share


def numbers(runs: Runs, artifact: str | None = None) -> str:
    """The comparison as plain text, a line per row and task; in brackets the paper's value.

    Ours are means or medians as in :func:`side_by_side`.

    artifact: as in :func:`comparison`.
    """
    data = comparison(runs, artifact)
    name = name_of(artifact) if artifact else runs.experiment.heading
    head = f"{name}, {runs.scale} scale: {_statistic(runs, artifact)} of our seeds "
    head += f"(paper's value), {runs.shown.unit or runs.shown.words}"
    lines = [head if data["paper"].notna().any() else head.replace(" (paper's value)", "")]
    by_row: dict[tuple[str, str, str], list] = {}
    for cell in data.itertuples():
        by_row.setdefault((cell.model, cell.arm, cell.task), []).append(cell)
    for task in data["task"].unique():
        rows = [[f"{title(task)}, length", "seeds", *map(_length, runs.tests[task])]]
        for model, arm in (row for row in runs.rows if runs.plans(*row, task)):
            cells = by_row.get((model, arm, task), [])
            by_test = {cell.test: _ours_and_paper(cell, runs) for cell in cells}
            shown = [by_test.get(test, "–") for test in runs.tests[task]]
            label = runs.label(model, arm, task)
            rows.append([f"  {label}", str(max((cell.seeds for cell in cells), default=0)), *shown])
        lines += ["", *aligned(*rows)]
    return "\n".join(lines)


def beside(runs: Runs, cell: tuple[str, str, str], artifacts: dict[str, str]) -> str:
    """Word one cell in several tables: equal runs seed by seed, beside what each table prints.

    cell: row, task and test, of the row's judged arm; artifacts: {table: its metric}
    """
    row, task, test = cell
    arm = runs.experiment.judged_arms[row]
    lines = [f"{row} on {title(task)}, test {test}, seed by seed:"]
    for artifact, metric in artifacts.items():
        seeds = ", ".join(map(short, runs.values(row, arm, task, test, metric))) or NOT_RUN
        said = number(printed(artifact)[row, task, test])
        words = registry.metric(metric).words
        lines.append(f"  {words}: {seeds} ({name_of(artifact)} prints {said})")
    return "\n".join(lines)


def _ours_and_paper(row, runs: Runs) -> str:
    ours = number(row.ours) if row.seeds else word_for_none(runs, row.model, row.arm, row.task)
    return ours if isnan(row.paper) else f"{ours} ({number(row.paper)})"


# Verdicts


def in_other_readings(runs: Runs, claim: claims.Claim | None, row: Any) -> str:
    """Word a claim's verdicts in other readings: *as in the text: not run; repaired: failed*."""
    said = []
    for arm, verdict in row.beside.items():
        lost = verdict.outcome == NOT_RUN and claim is not None and runs.failed(claim, arm)
        said.append(f"{ARM_LABELS.get(arm, arm)}: {FAILED if lost else verdict.label}")
    return "; ".join(said)


def verdicts(runs: Runs) -> Exhibit:
    """The claims of the paper's prose with their verdicts."""
    ledger, known = runs.ledger, claims.by_id()
    prose = ledger[~ledger["claim"].str.contains("/")]
    columns = {
        **{
            "claim": "text",
            "what the paper says": "prose wide",
            "verdict": "text",
            "seen": "prose",
        },
        "other readings": "prose",
    }
    rows = [
        {
            **row._asdict(),
            "seen": sentences(row.seen + row.at_full_scale),
            "others": in_other_readings(runs, known.get(row.claim), row),
            "shape": verdict_kind(row.label),
            "marks": marks(row),
        }
        for row in prose.itertuples()
    ]
    if ledger["margins_changed"].eq(True).any():
        basis = "<b>The margins have changed since some of these runs.</b>"
    elif runs.records:
        basis = "Computed from the runs above, with the margins that they were made under."
    else:
        basis = "No run is recorded yet."
    if late := int((ledger["claim_changed"] != "").sum()):
        basis += f" <b>{plural(late, 'claim')}, printed numbers included, changed after "
        basis += "the first run, or may have.</b>"
    besides = "".join(
        f" Claims about {', '.join(models)} are judged on <i>{ARM_LABELS.get(arm, arm)}</i>."
        for arm, models in runs.judged_otherwise.items()
    )
    besides += "".join(
        f" <i>{ARM_LABELS.get(arm, arm)}</i> alone decides {', '.join(names)}."
        for arm, names in judged_alone(runs).items()
    )
    judged = ARM_LABELS.get(runs.experiment.judged_arm, runs.experiment.judged_arm)
    caption = (
        f"<b>Verdicts on the claims of the prose.</b> {badges(runs.scale, runs.freshness)} "
        f"{basis} Claims are judged on the reading <i>{judged}</i>.{besides} "
        "The last column has the verdicts on other readings."
    )
    data = ledger[[*VERDICT_COLUMNS]]
    guest = runs.experiment.page  # whose page shows another experiment's verdicts, too
    name = f"{runs.experiment.name if guest else runs.page}-verdicts"
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    html = exhibits.table(fill("verdicts", columns=columns, rows=rows), caption, name, links)
    return Exhibit(html, verdict_counts(runs), data)


def judged_alone(runs: Runs) -> dict[str, list[str]]:
    """{arm: claims of the prose that it decides}, of arms that are not the experiment's own."""
    prose = runs.ledger[~runs.ledger["claim"].str.contains("/")]
    others = prose[~prose["arm"].isin([runs.experiment.judged_arm, ""])]
    return others.groupby("arm")["claim"].agg(list).to_dict()


def counts_of_verdicts(runs: Runs) -> dict[str, dict[str, int]]:
    """{kind of claim: {verdict: claims}}: of the prose, and those that single cells are."""
    ledger = runs.ledger
    of_cells = ledger["claim"].str.contains("/").astype(bool)
    return {
        name: part["verdict"].value_counts().to_dict()
        for name, part in (("prose claims", ledger[~of_cells]), ("printed cells", ledger[of_cells]))
        if len(part)
    }


def verdict_counts(runs: Runs) -> str:
    """:func:`counts_of_verdicts` as plain text, with the tally of all claims."""
    ledger = runs.ledger
    if ledger.empty:
        return "No claim of the paper is about these runs alone."
    lines = [
        f"{name:<16}{sum(verdicts.values()):>4}: {claims.counted(verdicts)}"
        for name, verdicts in counts_of_verdicts(runs).items()
    ]
    said = [claims.summary(ledger)]
    if ledger["claim"].str.contains("/").any():
        said.append(claims.numbers_in_words(ledger))
    return "\n".join([*lines, wrapped(" ".join(said))])
