"""Which reading of a paper gives its printed numbers: text, code, repaired, side by side.

Where tokens are counted, as in PANM, also what each single change is worth. Like
:mod:`relength.report.findings`, it counts and judges nothing.
"""

from collections.abc import Sequence
from functools import cache, partial
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import fisher_exact

from relength.papers.panm import pointing
from relength.papers.panm.readings import ALL_CHANGED, CONTRASTS, differences
from relength.report.exhibits import Exhibit
from relength.report.markdown import table
from relength.report.outcomes import (
    FOOT,
    MORE,
    NOTHING,
    TABLES,
    beside_printed,
    beyond_next,
    busiest,
    cells_have,
    ends,
    exhibit,
    few_seeds,
    main_runs,
    percent_axis,
)
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import ARM_LABELS, LIGHT, MARKS, Layout, beside, canvas, colour, title
from relength.report.tables import MEASURE_WORDS, printed, short, signed
from relength.specs import published
from relength.specs.experiments import experiment
from relength.specs.margins import load_margins
from relength.tasks.algorithmic import CLASSES, AlgorithmicTask
from relength.verdicts.claims import plural


def away_from_print(paper: str, runs: Runs) -> str:
    """By task, how far each reading is from print beyond L+1, and whose numbers are nearest."""
    data = _of_several_readings(runs, load_margins().least_seeds)
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


def which_reading(paper: str, survey: Survey) -> str:
    """Readings of a model side by side with the printed number, at the longest test."""
    runs = main_runs(paper, survey)
    data = ends(runs, runs.experiment.measure)
    arms = data.groupby("model")["arm"].nunique()
    both = data[data["model"].isin(arms.index[arms > 1])]
    tokens = runs.experiment.measure == "token_accuracy"
    if both.empty or (tokens and _of_several_readings(runs, seeds=1).empty):
        return NOTHING
    said, kind = printed(*runs.experiment.tables), published.statistic(*runs.experiment.tables)
    margin, shown = load_margins().measures["accuracy"], []
    for (task, model, test), cell in both.groupby(["task", "model", "test"], sort=False):
        value = said.get((model, task, test), np.nan)
        for arm, own in cell.groupby("arm", sort=False):
            ours = own["longest"].agg(kind)
            near = bool(abs(ours - value) <= margin.around(value))
            shown.append((task, model, test, arm, value, tuple(own["longest"]), near))
    names = ["task", "model", "test", "arm", "paper", "values", "near"]
    frame = pd.DataFrame(shown, columns=names)
    frame = frame.dropna(subset="paper")
    few = few_seeds(frame["values"].map(len))
    figure = f"```{{raw}} html\n{_readings(runs, frame).html}\n```\n"
    if tokens:  # where a longest test leaves few tokens right, all tests say more than that one
        counts = f"{near_by_reading(runs)} {_best_by_task(runs)}"
        parts = (counts, _step_by_step(runs), at_full_scale(paper, survey))
        words = "\n\n".join(filter(None, map(str.strip, parts)))
        tables = f"{_at_every_test(paper, runs)}\n{few.strip()}\n\n{_one_by_one(runs, survey)}"
        return f"{words}\n\n{figure}\n{tables}".strip() + "\n"
    near = frame.pivot(index=["task", "model"], columns="arm", values="near")
    near = near[near.notna().sum(axis=1) > 1].eq(True)
    alone = near[near.sum(axis=1) == 1]
    counts = [
        f"{ARM_LABELS[arm]} in {int(near[arm].sum())}, alone in {int(alone[arm].sum())}"
        for arm in ARM_LABELS
        if arm in near
    ]
    words = (
        f"{cells_have(len(near))} runs of more than one reading. The {kind} of our seeds is the "
        f"printed number within the margin at the longest test, {'; '.join(counts)}.{few}"
    )
    solved = (both["state"] == "solved").groupby(both["arm"]).agg(["sum", "size"])
    counts = ", ".join(
        f"{ARM_LABELS[arm]} {solved.loc[arm, 'sum']} of {solved.loc[arm, 'size']}"
        for arm in ARM_LABELS
        if arm in solved.index
    )
    words = f"{near_by_reading(runs)} {words} Runs that solve the longest test: {counts}.".strip()
    return f"{words}\n\n{figure}\n{_apart(paper, runs, data)}"


def _step_by_step(runs: Runs) -> str:
    """By task, what the repair and the code change of the text's reading at 2(L+1)."""
    data = _of_several_readings(runs, seeds=load_margins().least_seeds)
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


def at_full_scale(paper: str, survey: Survey) -> str:
    """What runs at the paper's own scale have beyond L+1, where the table is of shorter ones."""
    runs = Runs.read(experiment(TABLES[paper]), "paper", load_margins().least_seeds, survey.store)
    data = beside_printed(runs)
    data = beyond_next(runs, data)
    several = data.groupby(["model", "task"])["arm"].transform("nunique") > 1
    if data.empty or busiest(survey, TABLES[paper]).scale == "paper" or not several.any():
        return ""
    parts = []
    for (model, task), cells in data[several].groupby(["model", "task"], sort=False):
        tests = cells.drop_duplicates("test")
        arms = "; ".join(
            f"{ARM_LABELS[arm]} {', '.join(map(short, own['ours']))} "
            f"({plural(int(own['seeds'].min()), 'seed')})"
            for arm, own in cells.groupby("arm", sort=False)
        )
        parts.append(
            f"{model} on {title(task)} at {', '.join(tests['test'])}: {arms}; printed "
            f"{', '.join(map(short, tests['paper']))}"
        )
    return f"At the paper's own scale there are {'. '.join(parts)}."


def _at_every_test(paper: str, runs: Runs) -> str:
    """What each reading gives at every test, beside the printed number."""
    data = _of_several_readings(runs, seeds=1)
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
        name=f"tab-findings-{paper}-arms",
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
        for name in (TABLES["panm"], MORE["panm"][0])
    )
    main_table = TABLES["panm"]  # the differences within it are told before, of all six tasks
    further = [c.what for c in CONTRASTS if c.second["experiment"] != main_table]
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
    data, parts = _of_several_readings(runs, load_margins().least_seeds), []
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


def _of_several_readings(runs: Runs, seeds: int) -> pd.DataFrame:
    """The printed cells in which more than one reading has the seeds; a row per reading."""
    data = beside_printed(runs)
    data = data[data["seeds"] >= seeds]
    data = data[data.groupby(["model", "task", "test"])["arm"].transform("nunique") > 1]
    return _telling(data, runs) if runs.experiment.measure == "token_accuracy" else data


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


def near_by_reading(runs: Runs) -> str:
    """How many printed numbers come out with each reading that has the seeds of a verdict."""
    seeds = load_margins().least_seeds
    data = _of_several_readings(runs, seeds)
    if data.empty:
        return ""
    models = " or ".join(dict.fromkeys(data["model"]))
    said = (
        f"Where more than one reading of {models} has {seeds} seeds, so many of the printed "
        f"numbers come out, within the margin: {near_counts(data)}."
    )
    if "telling" in data:
        telling = data[data["telling"]]
        said += (
            " Of those beyond L+1 that come out with one reading and not with another: "
            f"{near_counts(telling) or 'none'}; without those that remembering the first symbol "
            f"gives as well: **{near_counts(telling[telling['earned']]) or 'none'}**."
        )
    return said


def near_counts(data: pd.DataFrame) -> str:
    """Of each reading, how many of its rows are near the printed numbers."""
    near = data.groupby("arm")["near"].agg(["sum", "size"])
    return ", ".join(
        f"{words} {near['sum'][arm]} of {near['size'][arm]}"
        for arm, words in ARM_LABELS.items()
        if arm in near.index
    )


def _marked(cell: pd.Series) -> str:
    value = short(cell["ours"])
    return f"{f'**{value}**' if cell['near'] else value} ({cell['seeds']})"


def _apart(paper: str, runs: Runs, data: pd.DataFrame) -> str:
    """The cells in which readings differ in how many seeds solve the longest test."""
    solves = (data["state"] == "solved").groupby([data["task"], data["model"], data["arm"]])
    counts = solves.agg(["sum", "size"]).unstack("arm").dropna()
    arms = [arm for arm in ARM_LABELS if ("sum", arm) in counts]
    differ = counts[counts["sum"].nunique(axis=1) > 1].astype(int)
    if differ.empty:
        return ""
    rows, least = [], 1.0
    for cell, row in differ.iterrows():
        tables = [[row["sum", arm], row["size", arm] - row["sum", arm]] for arm in arms]
        p = min(float(fisher_exact(pair).pvalue) for pair in combinations(tables, 2))
        least = min(least, p)
        shown = (f"{row['sum', arm]} of {row['size', arm]}" for arm in arms)
        rows.append((title(cell[0]), cell[1], *shown, f"{p:.2f}"))
    body = table(
        ("task", "model", *(ARM_LABELS[arm] for arm in arms), "p"),
        rows,
        name=f"tab-findings-{paper}-apart",
        caption="Cells in which the readings differ in how many seeds solve the longest test. "
        "*p* is that of Fisher's exact test, two-sided, of that cell alone.",
    )
    level = load_margins().level
    beyond = "at least one is" if least <= level else "none of them is"
    seeds = int(counts["size"].to_numpy().min())
    enough = [k for k in range(seeds + 1) if fisher_exact([[0, seeds], [k, seeds - k]])[1] <= level]
    power = f"which takes 0 against {enough[0]}" if enough else "and none can be"
    power += f" of {plural(seeds, 'seed')}"
    return (
        f"In {len(differ)} of {len(counts)} cells one reading has more seeds that solve the "
        f"longest test than another; {beyond} beyond chance by itself, {power} (smallest p "
        f"{least:.2f}).\n\n{body}"
    )


def _readings(runs: Runs, frame: pd.DataFrame) -> Exhibit:
    name = f"findings-{runs.experiment.paper}-readings"
    models = list(dict.fromkeys(frame["model"]))
    tasks = [task for task in runs.tasks if task in set(frame["task"])]

    def draw(layout: Layout) -> Figure:
        row, head = 0.3, 0.34
        across = 1 if layout.narrow else len(models)
        block = len(tasks) * row + head + FOOT
        height = block * (len(models) if layout.narrow else 1)
        figure = canvas(layout, height)
        left, gap = 1.3, 0.4
        wide = (layout.width - left - 0.2 - gap * (across - 1)) / across
        for k, model in enumerate(models):
            x = left if layout.narrow else left + k * (wide + gap)
            y = (len(models) - 1 - k) * block + FOOT if layout.narrow else FOOT
            box = (x / layout.width, y / height, wide / layout.width, len(tasks) * row / height)
            axes = figure.add_axes(box)
            _reading_panel(axes, frame[frame["model"] == model], tasks, layout.narrow or k == 0)
            axes.set_title(model, size=8.5, weight="bold", color=colour(model), loc="left", pad=9)
        return figure

    arms = [arm for arm in MARKS if arm in set(frame["arm"])]
    measured = MEASURE_WORDS[runs.experiment.measure]
    key = ", ".join(f"{MARKS[arm].sign} {ARM_LABELS[arm]}" for arm in arms)
    caption = (
        f"Which reading gives the printed numbers? "
        f"{measured.capitalize()} at the longest test of each task, a mark per seed ({key}); the "
        "bar is what the paper prints."
    )
    told = "; ".join(
        f"{row.model} on {title(row.task)}, {row.arm}: "
        f"{', '.join(map(short, row.values))}, printed {row.paper:g}"
        for row in frame[["model", "task", "arm", "paper"]]
        .assign(values=frame["values"])
        .itertuples(index=False, name="Row")
    )
    shown = runs.of([row for row in runs.rows if row[0] in models], tasks)
    return exhibit(draw, name, caption, f"Readings against the paper. {told}.", frame, shown)


def _reading_panel(axes: Axes, frame: pd.DataFrame, tasks: Sequence[str], named: bool) -> None:
    percent_axis(axes, top=-0.5, bottom=len(tasks) - 0.5)
    for i, task in enumerate(tasks):
        cells = frame[frame["task"] == task]
        for row in cells.to_dict("records"):
            shade = colour(row["model"])
            mark = MARKS[row["arm"]]
            axes.scatter(
                row["values"],
                np.full(len(row["values"]), i + mark.shift),
                s=17,
                marker=mark.marker,
                facecolors=shade if mark.filled else "none",
                edgecolors=shade,
                linewidths=1.1 * (not mark.filled),
                clip_on=False,
                zorder=3,
            )
        bar = {"color": LIGHT.ink, "linewidth": 2, "zorder": 2, "clip_on": False}
        for value in cells["paper"].dropna().unique():
            axes.plot([value, value], [i - 0.34, i + 0.34], **bar)
        if named:
            beside(axes, title(task), (0, i), -9, color=LIGHT.ink, size=7.2)


PASSAGES = {f"findings_{paper}_reading": partial(which_reading, paper) for paper in TABLES}
