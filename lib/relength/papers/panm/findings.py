"""Answer what is asked of PANM alone: its readings against the baselines, and how far its pointers
count.

Like :mod:`relength.report.findings`, it counts and judges nothing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from relength.papers.panm import address_bits
from relength.report.exhibits import Exhibit
from relength.report.markdown import raw, table
from relength.report.outcomes import (
    NOTHING,
    beside_printed,
    beyond_next,
    busiest,
    exhibit,
    few_seeds,
)
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import (
    ARM_LABELS,
    LIGHT,
    MARKS,
    Layout,
    beside,
    colour,
    frameless,
    grid_of_panels,
    spaced,
    title,
)
from relength.report.tables import short
from relength.specs.margins import load_margins

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Lead(NamedTuple):
    """Tests with both numbers, and those at which one is ahead or behind beyond the margin."""

    tests: int
    ahead: int
    behind: int


def lead(numbers: pd.Series, others: pd.Series) -> Lead:
    """Compare accuracies test by test."""
    apart = (numbers - others).dropna()
    margin = others[apart.index].map(load_margins().measures["accuracy"].around)
    return Lead(len(apart), int((apart > margin).sum()), int((apart < -margin).sum()))


class Beside(NamedTuple):
    """PANM and the best baseline with runs at every test beyond L+1, by task and test.

    readings            our numbers, a column per arm
    best, best_printed  the rows of the baseline that is best by ours, and by the printed numbers
    printed             PANM's printed number
    others              the rows of all baselines
    """

    readings: pd.DataFrame
    best: pd.DataFrame
    best_printed: pd.DataFrame
    printed: pd.Series
    others: pd.DataFrame


def beside_baselines(runs: Runs) -> Beside | None:
    """Set PANM beside the best baselines; None without runs of both."""
    data = beyond_next(runs, beside_printed(runs))
    own, others = data[data["model"] == "PANM"], data[data["model"] != "PANM"]
    cells = ["task", "test"]
    readings = own.pivot(index=cells, columns="arm", values="ours")
    beside = others.groupby(cells, sort=False)
    best, best_printed = (
        others.loc[beside[column].idxmax()].set_index(cells) for column in ("ours", "paper")
    )
    readings = readings.reindex(best.index).dropna(how="all")
    if readings.empty:
        return None
    readings = readings[[arm for arm in ARM_LABELS if arm in readings]]
    own = own.drop_duplicates(cells).set_index(cells)["paper"].loc[readings.index]
    best, best_printed = best.loc[readings.index], best_printed.loc[readings.index]
    return Beside(readings, best, best_printed, own, others)


def leads(found: Beside) -> dict[str, Lead]:
    """{arm, or "printed": its lead over the best baseline}"""
    ours = {arm: lead(found.readings[arm], found.best["ours"]) for arm in found.readings}
    return ours | {"printed": lead(found.printed, found.best_printed["paper"])}


def against_baselines(survey: Survey) -> str:
    """PANM beside the best of the baselines that have runs, at every test beyond L+1."""
    runs = busiest(survey, "panm_algorithmic")
    found = beside_baselines(runs)
    if found is None:
        return NOTHING
    readings, best, best_printed, printed_own, others = found
    arms, said = list(readings), []
    for name, own in leads(found).items():
        of = f" of {own.tests}" if own.tests < len(readings) else ""
        words = ARM_LABELS.get(name, "as printed")
        said.append(f"{words}, ahead in **{own.ahead}**{of}, behind in {own.behind}")
    heads = [*(ARM_LABELS[arm] for arm in arms), "best baseline", "PANM printed", "best printed"]
    rows = [
        (
            title(task),
            test,
            *(
                short(value) if pd.notna(value) else ""
                for value in readings.loc[(task, test), arms]
            ),
            f"{short(best.loc[(task, test), 'ours'])} ({best.loc[(task, test), 'model']})",
            short(printed_own[task, test]),
            f"{short(best_printed.loc[(task, test), 'paper'])} "
            f"({best_printed.loc[(task, test), 'model']})",
        )
        for task, test in readings.index
    ]
    body = table(
        ("task", "test", *heads),
        rows,
        name="tab-findings-panm-against",
        caption=f"PANM in its readings and the best baseline with runs of a task, first by our "
        f"numbers and then by the printed ones. Token accuracy, the "
        f"{runs.experiment.statistic} in percent.",
        numbers=heads,
    )
    have = others.groupby("task", sort=False)["model"].unique()
    same = {tuple(models): [t for t in have.index if (*have[t],) == (*models,)] for models in have}
    names = "; ".join(
        f"{', '.join(models)} on {' and '.join(map(title, tasks))}"
        for models, tasks in same.items()
    )
    every = beside_printed(runs)
    seeds = beyond_next(runs, every).set_index(["task", "test"])["seeds"]
    return (
        f"Baselines with runs: {names}. PANM is compared with the best of them at each of "
        f"{len(readings)} tests beyond L+1. A lead counts if it is larger than the margin. PANM "
        f"is: {'; '.join(said)}."
        f"{few_seeds(seeds.loc[readings.index])}\n\n"
        f"{raw(_by_length(runs, every[every['task'].isin(have.index)]).html)}\n{body}"
    )


def _by_length(runs: Runs, data: pd.DataFrame) -> Exhibit:
    """A panel per task: each reading of PANM over length, the printed numbers, all baselines."""
    tasks = [task for task in runs.tasks if task in set(data["task"])]
    own, others = data[data["model"] == "PANM"], data[data["model"] != "PANM"]
    arms = [arm for arm in MARKS if arm in set(own["arm"])]
    # At the right of each panel stand the names of its lines.
    around = {"head": 0.3, "foot": 0.36, "left": 0.34, "right": 0.92}

    def draw(layout: Layout) -> "Figure":
        across = 1 if layout.narrow else min(len(tasks), 3)
        figure, places, _ = grid_of_panels(layout, len(tasks), across, tall=1.55, **around)
        for axes, task in zip(places, tasks, strict=True):
            _by_length_panel(
                axes, runs.tests[task], own[own["task"] == task], others[others["task"] == task]
            )
            axes.set_title(title(task), loc="left", size=8.5, weight="bold", color=LIGHT.ink)
        return figure

    key = ", ".join(f"{MARKS[arm].sign} {ARM_LABELS[arm]}" for arm in arms)
    caption = (
        f"Which reading falls off as printed, and which like its neighbours? Lines show the share "
        f"of right tokens over the length of a test, the "
        f"{runs.experiment.statistic} of our seeds of PANM ({key}). Dashed: "
        "what the paper prints for it. Grey: from the lowest to the highest of the baselines that "
        "have runs."
    )
    told = "; ".join(
        f"{title(task)}, {runs.label(model, arm)}: "
        + ", ".join(
            f"{short(cell.ours)} at {cell.test}, printed {short(cell.paper)}"
            for cell in cells.itertuples()
        )
        for (task, model, arm), cells in data.groupby(["task", "model", "arm"], sort=False)
    )
    alt = f"Tokens right by length. {told}."
    return exhibit(draw, "findings-panm-lengths", caption, alt, data, runs)


def _by_length_panel(axes: "Axes", tests: Sequence[str], own: pd.DataFrame, others) -> None:
    axes.set_xlim(0, len(tests) - 1)
    axes.set_xticks(range(len(tests)), tests)
    axes.set_ylim(0, 104)
    axes.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    axes.tick_params(colors=LIGHT.muted, labelsize=7, length=0)
    axes.grid(axis="y", color=LIGHT.rule, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.patch.set_visible(False)
    frameless(axes)
    ends, shade = [], colour("PANM")
    band = others.groupby("test", sort=False)["ours"].agg(["min", "max"]).reindex(tests)
    axes.fill_between(range(len(tests)), *band.T.to_numpy(), color=LIGHT.muted, alpha=0.3, lw=0)
    ends.append((band.iloc[-1].mean(), "baselines", LIGHT.muted))
    look = {"color": LIGHT.ink, "linewidth": 1.4, "linestyle": (0, (3, 2)), "clip_on": False}
    line = own.drop_duplicates("test").set_index("test")["paper"].reindex(tests)
    axes.plot(range(len(tests)), line, **look)
    ends.append((line.iloc[-1], "printed", LIGHT.ink))
    for arm, cells in own.groupby("arm", sort=False):
        line, mark = cells.set_index("test")["ours"].reindex(tests), MARKS[arm]
        axes.plot(
            range(len(tests)),
            line,
            color=shade,
            linewidth=1.4,
            marker=mark.marker,
            markersize=4.5,
            markerfacecolor=shade if mark.filled else LIGHT.page,
            clip_on=False,
            zorder=3,
        )
        ends.append((line.iloc[-1], ARM_LABELS[arm], shade))
    ends.sort()
    for (_, words, tint), height in zip(ends, spaced([y for y, *_ in ends], 9.5), strict=True):
        weight = "bold" if tint == shade else "normal"
        beside(axes, words, (1, height), 7, color=tint, size=7.2, weight=weight)


def counting(survey: Survey) -> str:
    """Say what PANM's pointers have right where they are wrong, and how far they count."""
    runs = busiest(survey, "panm_algorithmic")
    found = address_bits.faults(runs)
    if found.empty:
        return NOTHING
    said = "On Copy and Reverse, at length 2(L+1). " + " ".join(map(_fault, found.itertuples()))
    made = address_bits.bits_drawing(runs)
    name = "findings-panm-bits"
    shown = exhibit(made.draw, name, made.caption, made.alt, made.data, made.runs)
    figure = raw(shown.html)
    return f"{said}\n\n{figure}\n\n{address_bits.outcome(busiest(survey, address_bits.PAGE))}\n"


def _fault(reading: NamedTuple) -> str:
    words = f"*{ARM_LABELS[reading.arm].capitalize()}*: {short(reading.wrong)} % of steps point at "
    if not reading.wrong:
        return f"{words}a wrong slot."
    return (
        f"{words}a wrong slot; {reading.low:.0f} % of these have every bit right that training "
        f"needs (by chance {reading.low_chance:.0f} %), and {reading.single:.0f} % have a single "
        f"bit wrong (by chance {reading.single_chance:.0f} %)."
    )


PASSAGES = {"findings_panm_counting": counting, "findings_panm_against": against_baselines}
