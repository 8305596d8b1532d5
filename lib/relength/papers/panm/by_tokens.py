"""Findings on PANM's readings, where tokens are counted and not outputs that are right as a whole.

Like :mod:`relength.report.findings`, it counts and judges nothing.
"""

from functools import cache, partial
from math import comb

import numpy as np
import pandas as pd

from relength.papers.panm import pointing
from relength.papers.panm.readings import ALL_CHANGED, CONTRASTS, MAIN, SECOND, differences
from relength.report.findings import conclusion, is_solved
from relength.report.findings_readings import (
    at_full_scale,
    at_the_longest,
    drawn,
    near_by_reading,
    near_counts,
    of_several_readings,
)
from relength.report.markdown import table
from relength.report.outcomes import NOTHING, beyond_next, ends, few_seeds, main_runs
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import ARM_LABELS, title
from relength.report.tables import short, signed
from relength.specs import published
from relength.specs.experiments import experiment
from relength.specs.margins import load_margins
from relength.tasks.algorithmic import CLASSES, AlgorithmicTask


def away_from_print(paper: str, runs: Runs) -> str:
    """By task, how far each reading is from print beyond L+1, and whose numbers are nearest."""
    data = _several(runs, load_margins().least_seeds)
    if data.empty:
        return ""
    data = beyond_next(runs, data)
    by_arm = data.assign(away=abs(data["ours"] - data["paper"]))
    by_arm = by_arm.pivot_table(index="task", columns="arm", values="away", sort=False)
    by_arm = by_arm[[arm for arm in ARM_LABELS if arm in by_arm]]
    cells = data.drop_duplicates(["task", "test"])
    floor = abs(cells["floor"] - cells["paper"]).groupby(cells["task"]).mean()[by_arm.index]
    nearest, least = by_arm.idxmin(axis=1), by_arm.min(axis=1)
    words = "; ".join(
        f"{ARM_LABELS[arm]} on {', '.join(title(task) for task in nearest.index[nearest == arm])}"
        for arm in by_arm
        if (nearest == arm).any()
    )
    luck = [title(task) for task in by_arm.index if floor[task] <= least[task]]
    beside = (
        f" On {' and '.join(luck)} a model that remembers the first symbol and guesses all others "
        "would be as near."
    )
    rows = [
        (
            title(task),
            f"{floor[task]:.1f}",
            *(
                "" if pd.isna(away) else f"**{away:.1f}**" if away == least[task] else f"{away:.1f}"
                for away in row
            ),
        )
        for task, row in zip(by_arm.index, by_arm.to_numpy(), strict=True)
    ]
    whole = by_arm.mean().where(by_arm.notna().all())
    if len(rows) > 1:
        rows.append(
            (
                "all tasks",
                f"{floor.mean():.1f}",
                *("" if pd.isna(x) else f"{x:.1f}" for x in whole),
            )
        )
    heads = ("first symbol alone", *(ARM_LABELS[arm] for arm in by_arm))
    body = table(
        ("task", *heads),
        rows,
        name=f"tab-findings-{paper}-away",
        caption="How far from print? Points between ours and the printed number, in the mean over "
        "the tests beyond L+1; **bold** the nearest. Readings with "
        f"{load_margins().least_seeds} seeds at scale *{runs.scale}*. *First symbol alone*: what "
        "a model would have that remembers the first symbol it read and guesses all others.",
        numbers=heads,
    )
    one = "One reading is" if (nearest == nearest.iloc[0]).all() else "No one reading is"
    return (
        f"**Which reading gives the printed numbers?** {one} nearest to them on all tasks. "
        f"Nearest beyond L+1: {words}.{beside if luck else ''}\n\n{body}"
    )


def which_reading(survey: Survey) -> str:
    """Readings side by side with the printed numbers, at the longest test and at all tests.

    A longest test leaves few tokens right, so that all tests say more than that one.
    """
    runs = main_runs("panm", survey)
    frame = at_the_longest(runs, ends(runs, runs.experiment.measure))
    if frame.empty or _several(runs, seeds=1).empty:
        return NOTHING
    counts = f"{near_by_reading(runs)} {_best_by_task(runs)}"
    parts = (counts, _step_by_step(runs), at_full_scale("panm", survey))
    words = "\n\n".join(filter(None, map(str.strip, parts)))
    few = few_seeds(frame["values"].map(len)).strip()
    tables = f"{_at_every_test(runs)}\n{few}\n\n{_one_by_one(runs, survey)}"
    return f"{words}\n\n{drawn(runs, frame)}\n{tables}".strip() + "\n"


def _step_by_step(runs: Runs) -> str:
    """By task, what the repair and the code change of the text's reading at 2(L+1)."""
    data = _several(runs, seeds=load_margins().least_seeds)
    there = [row.test == runs.tests[row.task][2] for row in data.itertuples()]
    data = data[np.array(there, dtype=bool)]
    if data.empty:
        return ""
    cells = data.set_index(["arm", "task"])
    said = []
    for arm, words in (("repaired", "The repair"), ("released", "The code")):
        points = []
        for task in runs.tasks:
            if {(arm, task), ("paper", task)} <= set(cells.index):
                one, other = cells.loc[(arm, task)], cells.loc[("paper", task)]
                first, second = one["values"], other["values"]
                apart = min(first) > max(second) or max(first) < min(second)
                gain = signed(one["ours"] - other["ours"])
                points.append(f"{title(task)} {f'**{gain}**' if apart else gain}")
        if points:
            said.append(f"{words}, over the text, gives at 2(L+1), in points: {', '.join(points)}.")
    seeds = int(data["seeds"].min())
    chance = 100 * 2 / comb(2 * seeds, seeds)
    if said:
        said.append(
            "**Bold**: no seed of the one reaches one of the other, which by chance alone happens "
            f"in {chance:.1f} % of cells."
        )
    return " ".join(said)


def _at_every_test(runs: Runs) -> str:
    """What each reading gives at every test, beside the printed number."""
    data = _several(runs, seeds=1)
    arms = [arm for arm in ARM_LABELS if arm in set(data["arm"])]
    rows = []
    for (task, model, test), cell in data.groupby(["task", "model", "test"], sort=False):
        own = cell.set_index("arm")
        ours = (_marked(own.loc[arm]) if arm in own.index else "" for arm in arms)
        what = title(task) if data["model"].nunique() == 1 else f"{model} on {title(task)}"
        rows.append((what, test, *(short(own[n].iloc[0]) for n in ("floor", "paper")), *ours))
    heads = ("first symbol alone", "printed", *(ARM_LABELS[arm] for arm in arms))
    return table(
        ("task", "test", *heads),
        rows,
        name="tab-findings-panm-arms",
        caption=f"Readings beside the printed numbers at every test: the "
        f"{published.statistic(*runs.experiment.tables)} in percent, **bold** within the margin, "
        "and how many seeds. *First symbol alone*: what a model has that remembers the first "
        "symbol it read and guesses all others.",
        numbers=heads,
    )


def _one_by_one(runs: Runs, survey: Survey) -> str:
    """What is worth how much at 2(L+1), of all that was changed of PANM on its own."""
    main, second = (
        Runs.read(experiment(name), runs.scale, load_margins().least_seeds, survey.store)
        for name in (MAIN, SECOND)
    )
    # The differences within the main table are told before, of all six tasks.
    further = [c.what for c in CONTRASTS if c.second["experiment"] != MAIN]
    data = differences(main, second)
    data = data[data["what"].isin(further) & (data["seeds"] > 0)]
    there = [r.task in ALL_CHANGED and r.test == runs.tests[r.task][2] for r in data.itertuples()]
    data = data[np.array(there, dtype=bool)]
    heads = tuple(f"{title(task)}{unit}" for task in ALL_CHANGED for unit in ("", ", pairs"))
    rows = []
    for what, cells in data.groupby("what", sort=False):
        own = cells.set_index("task")
        rows.append([what])
        for task in ALL_CHANGED:
            found = own.loc[task] if task in own.index else None
            rows[-1] += ["", ""] if found is None else [signed(found["median"]), found["seeds"]]
    body = table(
        ("one thing changed", *heads),
        rows,
        name="tab-findings-panm-one-by-one",
        caption="What one thing is worth at 2(L+1), in points of tokens right: the median over "
        "pairs of runs of equal seed, and how many pairs.",
        numbers=heads,
    )
    more = "{doc}`/executed/panm_readings` has the other lengths, and how far pairs differ."
    return f"{body}\n{more}{few_seeds(data['seeds']) if len(data) else ''}"


def _best_by_task(runs: Runs) -> str:
    """Of every task the readings with which most of the numbers come out that tell them apart."""
    data, parts = _several(runs, load_margins().least_seeds), []
    for task, cells in data[data["telling"] & data["earned"]].groupby("task", sort=False):
        near = cells.groupby("arm")["near"].agg(["sum", "size", "mean"])
        first = near[near["mean"] == near["mean"].max()]
        words = (
            f"{words} ({first.loc[arm, 'sum']:g} of {first.loc[arm, 'size']:g})"
            for arm, words in ARM_LABELS.items()
            if arm in first.index
        )
        parts.append(f"on {title(task)} {' and '.join(words)}")
    return f"These come out most often, {'; '.join(parts)}." if parts else ""


def _several(runs: Runs, seeds: int) -> pd.DataFrame:
    """The printed cells in which more than one reading has the seeds, a row per reading."""
    return _telling(of_several_readings(runs, seeds), runs)


def _telling(data: pd.DataFrame, runs: Runs) -> pd.DataFrame:
    """With columns `floor`, what knowing the first symbol gives, `telling`, and `earned`.

    A printed number tells readings apart if it is of a length beyond L+1 and comes out with one
    reading and not with another. Up to L+1 it may only say which reading has learnt the task. It is
    earned if it is above the floor by more than the margin.
    """
    tasks = {spec.task.name: spec.task for spec in runs.specs}
    floors = [first_symbol_alone(tasks[row.task], row.test) for row in data.itertuples()]
    far = data.index.isin(beyond_next(runs, data).index)
    differ = data.groupby(["model", "task", "test"])["near"].transform("nunique") > 1
    margin = data["paper"].map(load_margins().measures["accuracy"].around)
    earned = data["paper"] - floors > margin
    return data.assign(floor=floors, telling=far & differ, earned=earned)


@cache
def first_symbol_alone(task: AlgorithmicTask, test: str) -> float:
    """Percent of tokens right by who remembers the first symbol read and guesses the others."""
    places = pointing.places(task, test, task.splits()[test].size)
    share = float((places == task.flags).mean())
    return 100 * (share + (1 - share) / CLASSES)


def near(data: pd.DataFrame, runs: Runs) -> str:
    """How many of the printed numbers come out that tell readings apart, with each reading.

    data: of :func:`relength.report.findings_readings.of_several_readings`
    """
    data = _telling(data, runs)
    telling = data[data["telling"]]
    return (
        "Of those beyond L+1 that come out with one reading and not with another: "
        f"{near_counts(telling) or 'none'}; without those that remembering the first symbol "
        f"gives as well: **{near_counts(telling[telling['earned']]) or 'none'}**."
    )


def known(data: pd.DataFrame, start: str, runs: Runs) -> str:
    """How many runs know their lengths by tokens, and what these have right at the longest test."""
    level = load_margins().levels["solved"].at_least
    knows = data[data["known"].map(is_solved)]
    said = (
        f"{start}{len(data)} runs, {len(knows)} know the lengths they were trained on: at least "
        f"{level:g} % of their tokens are right."
    )
    if knows.empty:
        return said
    tasks = {spec.task.name: spec.task for spec in runs.specs}
    floors = [first_symbol_alone(tasks[t], runs.tests[t][-1]) for t in knows["task"]]
    best = (knows["longest"] - floors).argmax()
    run = knows.iloc[best]
    above = "Furthest above" if run["longest"] > floors[best] else "None is above, and nearest to"
    return (
        f"{said} At the longest test of their tasks, where guessing gives {100 / CLASSES:g} %, "
        f"these have right **{knows['longest'].median():.0f} %** in the median. {above} "
        f"what remembering the first symbol alone gives, {floors[best]:.0f} %, is a run of "
        f"{runs.label(run['model'], run['arm'])} on {title(run['task'])}, with "
        f"{run['longest']:.0f} %."
    )


def _marked(cell: pd.Series) -> str:
    value = short(cell["ours"])
    return f"{f'**{value}**' if cell['near'] else value} ({cell['seeds']})"


PASSAGES = {
    "findings_panm_conclusion": partial(conclusion, "panm", further=away_from_print),
    "findings_panm_reading": which_reading,
}
