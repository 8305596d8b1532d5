"""Findings on PANM's readings, where tokens are counted and not outputs that are right as a whole.

Like :mod:`relength.report.findings`, it counts and judges nothing.
"""

from functools import cache, partial
from math import comb
from typing import NamedTuple

import numpy as np
import pandas as pd

from relength.papers.panm import pointing
from relength.papers.panm.readings import ALL_CHANGED, CONTRASTS, MAIN, SECOND, differences
from relength.report.findings import conclusion
from relength.report.findings_counts import is_solved
from relength.report.findings_readings import (
    at_full_scale,
    at_the_longest,
    counts_in_words,
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
from relength.specs.experiments import experiment
from relength.specs.margins import load_margins
from relength.tasks.algorithmic import CLASSES, AlgorithmicTask


class Away(NamedTuple):
    """Mean distance from print beyond L+1, in points, by task.

    arms   a column per reading that has the seeds of a verdict
    floor  that of a model which remembers the first symbol alone
    """

    arms: pd.DataFrame
    floor: pd.Series

    @property
    def nearest(self) -> pd.Series:
        """The arm that is nearest to print, by task."""
        return self.arms.idxmin(axis=1)


def away(runs: Runs) -> Away | None:
    """Measure how far each reading is from print; None without several readings."""
    data = _several(runs, load_margins().least_seeds)
    if data.empty:
        return None
    data = beyond_next(runs, data)
    by_arm = data.assign(away=abs(data["ours"] - data["paper"]))
    by_arm = by_arm.pivot_table(index="task", columns="arm", values="away", sort=False)
    by_arm = by_arm[[arm for arm in ARM_LABELS if arm in by_arm]]
    cells = data.drop_duplicates(["task", "test"])
    floor = abs(cells["floor"] - cells["paper"]).groupby(cells["task"]).mean()[by_arm.index]
    return Away(by_arm, floor)


def away_from_print(paper: str, runs: Runs) -> str:
    """Tabulate by task how far each reading is from print beyond L+1; say which is nearest."""
    found = away(runs)
    if found is None:
        return ""
    by_arm, floor, nearest = *found, found.nearest
    least = by_arm.min(axis=1)
    words = "; ".join(
        f"{ARM_LABELS[arm]} on {', '.join(title(task) for task in nearest.index[nearest == arm])}"
        for arm in by_arm
        if (nearest == arm).any()
    )
    luck = [title(task) for task in by_arm.index if floor[task] <= least[task]]
    beside = (
        f" On {' and '.join(luck)} a model that remembers the first symbol and guesses all others "
        "would be at least as near."
    )
    rows = [
        (
            title(task),
            f"{floor[task]:.1f}",
            *(
                "" if pd.isna(far) else f"**{far:.1f}**" if far == least[task] else f"{far:.1f}"
                for far in row
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
        "the tests beyond L+1. The nearest is **bold**. Shown are readings with "
        f"{load_margins().least_seeds} seeds at scale *{runs.scale}*. *First symbol alone* is a "
        "model that remembers the first symbol it read and guesses all others.",
        numbers=heads,
    )
    one = "One reading is" if (nearest == nearest.iloc[0]).all() else "No one reading is"
    return (
        f"**Which reading gives the printed numbers?** {one} nearest to them on all tasks. "
        f"Nearest beyond L+1, at scale *{runs.scale}*: {words}.{beside if luck else ''}\n\n{body}"
    )


def which_reading(survey: Survey) -> str:
    """Readings side by side with the printed numbers, at the longest test and at all tests.

    A longest test leaves few tokens right, so that all tests say more than that one.
    """
    runs = main_runs("panm", survey)
    frame = at_the_longest(runs, ends(runs))
    if frame.empty or _several(runs, seeds=1).empty:
        return NOTHING
    counts = f"{near_by_reading(runs)} {_best_by_task(runs)}"
    parts = (counts, _step_by_step(runs), at_full_scale("panm", survey))
    words = "\n\n".join(filter(None, map(str.strip, parts)))
    few = few_seeds(frame["values"].map(len)).strip()
    tables = f"{_at_every_test(runs)}\n{few}\n\n{_one_by_one(runs, survey)}"
    return f"{words}\n\n{drawn(runs, frame)}\n{tables}".strip() + "\n"


def at_twice(runs: Runs) -> pd.DataFrame:
    """The printed cells of several readings at 2(L+1)."""
    data = _several(runs, seeds=load_margins().least_seeds)
    there = [row.test == runs.tests[row.task][2] for row in data.itertuples()]
    return data[np.array(there, dtype=bool)]


def _step_by_step(runs: Runs) -> str:
    """Word how many points repair and code gain over the text at 2(L+1), task by task."""
    data = at_twice(runs)
    if data.empty:
        return ""
    gains, said = changes(data), []
    for arm, words in (("repaired", "the repair"), ("released", "the code")):
        own = gains[gains["arm"] == arm]
        points = [
            f"{title(row.task)} {f'**{signed(row.gain)}**' if row.apart else signed(row.gain)}"
            for row in own.itertuples()
        ]
        if points:
            said.append(f"Points that {words} gains over the text at 2(L+1): {', '.join(points)}.")
    if said:
        said.append(
            "A gain is **bold** where no seed of one reading reaches one of the other. By chance "
            f"alone that happens in {chance_apart(int(data['seeds'].min())):.1f} % of cells."
        )
    return " ".join(said)


def changes(data: pd.DataFrame) -> pd.DataFrame:
    """Tabulate what repair and code change of the text's reading: columns arm, task, gain and
    apart.

    data: rows of several readings at one test. gain is in points; apart: the seeds of one reading
    are all above those of the other.
    """
    cells, rows = data.set_index(["arm", "task"]), []
    for arm in ("repaired", "released"):
        for task in dict.fromkeys(data["task"]):
            if {(arm, task), ("paper", task)} <= set(cells.index):
                one, other = cells.loc[(arm, task)], cells.loc[("paper", task)]
                first, second = one["values"], other["values"]
                apart = min(first) > max(second) or max(first) < min(second)
                rows.append((arm, task, one["ours"] - other["ours"], apart))
    return pd.DataFrame(rows, columns=["arm", "task", "gain", "apart"])


def chance_apart(seeds: int) -> float:
    """Percent of cells in which so many seeds of two equal readings are apart by chance."""
    return 100 * 2 / comb(2 * seeds, seeds)


def _at_every_test(runs: Runs) -> str:
    """Tabulate each reading at every test, beside the printed number."""
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
        caption=f"Readings beside the printed numbers at every test. A cell has the "
        f"{runs.experiment.statistic} in percent and the number of seeds. It is "
        "**bold** within the margin. *First symbol alone* is a model that remembers the first "
        "symbol it read and guesses all others.",
        numbers=heads,
    )


def _one_by_one(runs: Runs, survey: Survey) -> str:
    """Effect of each single change of PANM at 2(L+1)."""
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
        caption="Effect of one change at 2(L+1), in points of tokens right: the median over pairs "
        "of runs of equal seed, and the number of pairs.",
        numbers=heads,
    )
    more = "{doc}`/executed/panm_readings` has the other lengths, and how far pairs differ."
    return f"{body}\n{more}{few_seeds(data['seeds']) if len(data) else ''}"


def best_by_task(runs: Runs) -> dict[str, dict[str, tuple[int, int]]]:
    """{task: {arm: (near, of)}} of the readings that meet most numbers that tell them apart."""
    data, found = _several(runs, load_margins().least_seeds), {}
    for task, cells in data[data["telling"] & data["earned"]].groupby("task", sort=False):
        counts = near_counts(cells)
        most = max(near / of for near, of in counts.values())
        found[task] = {arm: (near, of) for arm, (near, of) in counts.items() if near / of == most}
    return found


def _best_by_task(runs: Runs) -> str:
    parts = [
        f"on {title(task)} "
        + " and ".join(f"{ARM_LABELS[arm]} ({near} of {of})" for arm, (near, of) in counts.items())
        for task, counts in best_by_task(runs).items()
    ]
    return f"Most often they come out {', '.join(parts)}." if parts else ""


def _several(runs: Runs, seeds: int) -> pd.DataFrame:
    """The printed cells in which more than one reading has the seeds, a row per reading."""
    return _telling(of_several_readings(runs, seeds), runs)


def _telling(data: pd.DataFrame, runs: Runs) -> pd.DataFrame:
    """Add the columns `floor`, `telling` and `earned` to printed cells.

    floor    percent that knowing the first symbol alone gives
    telling  whether the printed number tells readings apart: it is of a length beyond L+1, and
             comes out with one reading and not with another. Up to L+1 it may only say which
             reading has learnt the task.
    earned   whether the printed number is above the floor by more than the margin
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
    """Count, for each reading, the printed numbers that come out and tell readings apart.

    data: of :func:`relength.report.findings_readings.of_several_readings`
    """
    counts, earned = near_where_told_apart(data, runs)
    return (
        "Some numbers beyond L+1 come out with one reading and not with another: "
        f"{counts_in_words(counts) or 'none'}. Remembering the first symbol gives some of these as "
        f"well; without them: **{counts_in_words(earned) or 'none'}**."
    )


def near_where_told_apart(
    data: pd.DataFrame, runs: Runs
) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
    """The counts of :func:`near` by reading: all, and those that the first symbol does not give."""
    data = _telling(data, runs)
    telling = data[data["telling"]]
    return near_counts(telling), near_counts(telling[telling["earned"]])


class KnownTokens(NamedTuple):
    """The runs that know their lengths by tokens, at the longest test.

    knows   their number
    median  percent of tokens right
    best    the run furthest above the floor, which is what the first symbol alone gives
    """

    knows: int
    median: float
    best: pd.Series | None
    floor: float


def known_tokens(data: pd.DataFrame, runs: Runs) -> KnownTokens:
    """Count the :func:`relength.report.outcomes.ends` that know their lengths."""
    knows = data[data["known"].map(is_solved)]
    if knows.empty:
        return KnownTokens(0, np.nan, None, np.nan)
    tasks = {spec.task.name: spec.task for spec in runs.specs}
    floors = [first_symbol_alone(tasks[t], runs.tests[t][-1]) for t in knows["task"]]
    best = int((knows["longest"] - floors).argmax())
    return KnownTokens(len(knows), knows["longest"].median(), knows.iloc[best], floors[best])


def known(data: pd.DataFrame, start: str, runs: Runs) -> str:
    """:func:`known_tokens` in words."""
    level, found = load_margins().levels["solved"].at_least, known_tokens(data, runs)
    said = (
        f"{start}{len(data)} runs, {found.knows} know the lengths they were trained on: at least "
        f"{level:g} % of their tokens are right."
    )
    run = found.best
    if run is None:
        return said
    above = run["longest"] > found.floor
    return (
        f"{said} At the longest test of their tasks, these have **{found.median:.0f} %** of their "
        f"tokens right in the median; guessing gives {100 / CLASSES:g} %. Remembering the first "
        "symbol alone gives more in some tasks. "
        f"{'Furthest above it' if above else 'No run is above it; nearest to it'} is a run of "
        f"{runs.label(run['model'], run['arm'])} on {title(run['task'])}, with "
        f"{run['longest']:.0f} % where it gives {found.floor:.0f} %."
    )


def _marked(cell: pd.Series) -> str:
    value = short(cell["ours"])
    return f"{f'**{value}**' if cell['near'] else value} ({cell['seeds']})"


PASSAGES = {
    "findings_panm_conclusion": partial(conclusion, "panm", further=away_from_print),
    "findings_panm_reading": which_reading,
}
