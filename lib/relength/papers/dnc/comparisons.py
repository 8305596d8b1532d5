"""Tests of which approaches differ by more than chance: Tables 4 and 7, our p values beside theirs.

A Mann-Whitney U test compares the runs of two approaches by their means over lengths. It counts
all orders, those of equal runs too: the difference of mean ranks is U on another scale. SciPy does
so where no two runs are equal, and else approximates by a normal distribution, which with three
runs gives a p that they cannot have. What the paper does not say is here in every reading of it:

* one-sided is the smaller p of the two directions, two-sided twice as much;
* corrected together (Benjamini and Hochberg) are the ten comparisons of a task, or all comparisons
  of the table. Those without runs are not among them.
"""

from html import escape
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import scipy

from relength.papers.dnc.by_length import TRAINED, Memory, summaries
from relength.papers.dnc.printed_p import (
    FAMILIES,
    TABLES,
    least,
    p_value,
    short_pair,
)
from relength.papers.dnc.recounts import SIGNIFICANT
from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import aligned, title
from relength.report.wording import from_to
from relength.specs import published
from relength.verdicts.stats import permutation_order
from relength.verdicts.wording import number

OURS = ("table", "task")  # corrected together; the printed numbers speak for the first
SIDES = ("one", "two")


def both(first: list[float], second: list[float]) -> tuple[float, float]:
    """The one- and the two-sided p of two samples; 1 where all values are equal.

    >>> both([1, 2, 3], [4, 5, 6])
    (0.05, 0.1)
    """
    ranks = scipy.stats.rankdata([*first, *second])
    one = min(permutation_order(ranks[: len(first)], ranks[len(first) :]))
    return one, min(1.0, 2 * one)


def compared(runs: Runs, memory: Memory = TRAINED) -> pd.DataFrame:
    """Every pair of approaches on every task, a row each; NaN where one of them has no runs.

    Columns: task, pair ("A vs B"), few and many (seeds of A and of B), sign (">" where A is ahead:
    more often the larger of two runs; "<" where B is, "=" where neither), one and two (p), least
    (the smallest one-sided p of so many runs), one_task, one_table, two_task and two_table (p,
    corrected), printed.
    """
    means = summaries(runs, memory).set_index(["task", "model"])["means"]
    printed = published.table(artifact_of(memory)).set_index(["row", "task"])["value"]
    rows = []
    for task in runs.tasks:
        for a, b in combinations([model for model, _ in runs.rows], 2):
            pair, first, second = f"{a} vs {b}", means[task, a], means[task, b]
            found = {"task": task, "pair": pair, "few": len(first), "many": len(second)}
            found |= {"sign": "", "one": np.nan, "two": np.nan, "least": np.nan}
            if first and second:
                ahead = np.sign(np.subtract.outer(first, second)).sum()
                found |= dict(zip(SIDES, both(first, second), strict=True))
                found |= {"sign": "<=>"[int(np.sign(ahead)) + 1]}
                found |= {"least": least(len(first), len(second))}
            rows.append(found | {"printed": printed.get((pair, task), np.nan)})
    data = pd.DataFrame(rows)
    for side in SIDES:
        data[f"{side}_table"] = corrected(data[side])
        data[f"{side}_task"] = data.groupby("task", sort=False)[side].transform(corrected)
    return data


def corrected(p: pd.Series) -> pd.Series:
    """P values corrected together by the false discovery rate; NaN stays and does not count."""
    there = p.dropna()
    if there.empty:
        return p
    adjusted = scipy.stats.false_discovery_control(there.to_numpy(), method="bh")
    return pd.Series(adjusted, index=there.index).reindex(p.index)


def artifact_of(memory: Memory) -> str:
    """The table that prints the p values of these means."""
    return next(artifact for artifact, shown in TABLES.items() if shown is memory)


def p_values(runs: Runs, memory: Memory = TRAINED, family: str = "table") -> Exhibit:
    """Tables 4 and 7, pairs down and tasks across: ours above, the printed p below.

    family  what is corrected together, "table" or "task"
    """
    artifact, data = artifact_of(memory), compared(runs, memory)
    low, high = memory.ends(runs.specs[0])
    over = {"table": "over the whole table", "task": "task by task"}[family]
    together = {
        "table": f"All {int(data['one'].notna().sum())} comparisons that have runs are corrected "
        "together.",
        "task": "The comparisons of a task are corrected together.",
    }[family]
    caption = (
        f"<b>{published.name_of(artifact)} of the paper, corrected {over}.</b> "
        f"{badges(runs.scale, runs.freshness)} P values of a Mann-Whitney U test on the runs' "
        f"means over lengths {low} to {high}, one-sided / two-sided. {together} &gt; says that the "
        f"first approach of a row is ahead, &lt; the second. Bold: at most {SIGNIFICANT}, "
        "one-sided. Below, smaller: what the paper prints, of ten runs each. Point at a cell to "
        "see how many runs there are, p before the correction, and the smallest that so many runs "
        "can reach."
    )
    name = f"{runs.page}-{artifact}-{family}"
    if not data["one"].notna().any():
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    columns = {"": "text"} | {title(task): "number" for task in runs.tasks}
    rows = [
        [escape(short_pair(pair)), *(_cell(cell, family) for cell in cells.itertuples())]
        for pair, cells in data.groupby("pair", sort=False)
    ]
    html = exhibits.table(
        rows_table(columns, rows),
        caption,
        name,
        [exhibits.csv(name, data), exhibits.notebook(runs.page)],
    )
    done = int(data["one"].notna().sum())
    return Exhibit(html, f"{artifact}, {family}: {done} of {len(data)} pairs have runs.", data)


def _cell(cell: Any, family: str) -> str:
    said = f"<small>{cell.printed:.2f}</small>"
    if np.isnan(cell.one):
        return f"<small>{NOT_RUN}</small><br>{said}"
    one, two = (getattr(cell, f"{side}_{family}") for side in SIDES)
    shown = escape(f"{cell.sign} {p_value(one)} / {p_value(two)}")
    hint = (
        f"{cell.few} against {cell.many} runs; before the correction {p_value(cell.one)} / "
        f"{p_value(cell.two)}, at least {p_value(cell.least)}"
    )
    tag = "b" if one <= SIGNIFICANT else "span"
    return f'<{tag} title="{escape(hint)}">{shown}</{tag}><br>{said}'


def numbers(runs: Runs, memory: Memory = TRAINED) -> str:
    """Every comparison as plain text, a line each, one- / two-sided."""
    data = compared(runs, memory)
    head = f"{published.name_of(artifact_of(memory))}, {runs.scale} scale: p, one- / two-sided"
    lines = [f"{head}; the last column is printed"]
    for task, cells in data.groupby("task", sort=False):
        rows = [[title(task), "runs", "least", "plain", "per task", "whole table", "paper"]]
        for cell in cells.itertuples():
            if np.isnan(cell.one):
                shown = [f"{cell.few}:{cell.many}", "", "", "", NOT_RUN]
            else:
                shown = [
                    *(f"{cell.few}:{cell.many}", p_value(cell.least)),
                    *(
                        f"{p_value(getattr(cell, 'one' + of))} / "
                        f"{p_value(getattr(cell, 'two' + of))}"
                        for of in ("", "_task", "_table")
                    ),
                ]
            rows.append([f"  {short_pair(cell.pair)}", *shown, f"{cell.printed:.2f}"])
        lines += ["", *aligned(*rows)]
    return "\n".join(lines)


def decided(runs: Runs, memory: Memory = TRAINED) -> str:
    """Count in every reading how many differences are significant, beside the printed ones."""
    data = compared(runs, memory)
    there = data.dropna(subset="one")
    name = published.name_of(artifact_of(memory))
    if there.empty:
        return f"{name}: no pair of approaches has runs yet."
    seeds = from_to(there[["few", "many"]].min().min(), there[["few", "many"]].max().max())
    lines = [
        f"{name}: {len(there)} of {len(data)} comparisons have runs, {seeds} of each approach.",
        f"Significant at {number(SIGNIFICANT)} of these {len(there)}:",
    ]
    for side in SIDES:
        for family in OURS:
            count = int((there[f"{side}_{family}"] <= SIGNIFICANT).sum())
            lines.append(f"  {f'{side}-sided, {FAMILIES[family]}':<24}{count:>3}")
    lines.append(f"  {'printed':<24}{int((there['printed'] <= SIGNIFICANT).sum()):>3}")
    return "\n".join(lines)
