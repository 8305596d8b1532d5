"""Sum up all runs of a paper's main table: numbers and figures of the findings chapters.

Nothing here judges a claim. It counts: which runs know what they were trained on and fail beyond
it, which cells depend on the seed, and which printed numbers come out.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from relength.report.boxes import by_reading
from relength.report.exhibits import Exhibit
from relength.report.findings_counts import (
    RULES,
    SPEED,
    answered,
    beside_other_tables,
    by_kind,
    checkpoints,
    known,
    known_by_reading,
    near_print,
    opposite,
    solved_by_reading,
    trainings,
    unequal_seeds,
)
from relength.report.findings_readings import (
    at_full_scale,
    counts_in_words,
    near_by_reading,
    near_counts,
)
from relength.report.markdown import badge, plain, table
from relength.report.outcomes import (
    FOOT,
    NOTHING,
    beside_printed,
    busiest,
    cells_have,
    ends,
    exhibit,
    few_seeds,
    judged_rows,
    main_runs,
    main_table,
    percent_axis,
    rows_of,
    tabled,
)
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import LIGHT, Layout, beside, canvas, colour, title
from relength.report.tables import printed, short, signed
from relength.specs import published, registry
from relength.specs.margins import load_margins
from relength.verdicts.claims import LEFT_OPEN, VERDICTS, counted, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW, STRIP = 0.34, 0.19  # inches: of a row, of the dots in it


def _counted(counts: dict[str, int]) -> str:
    words = {
        "solved": "solved the longest test",
        "failed": "failed at it",
        "between": "ended in between",
    }
    return ", ".join(f"**{counts.get(name, 0)}** {said}" for name, said in words.items())


def conclusion(
    paper: str, survey: Survey, further: Callable[[str, Runs], str] | None = None
) -> str:
    """The chapter in short: the claims in words that are decided, by verdict, and how many are not.

    further: what a paper adds about the runs of its main table
    """
    if survey.ledger.empty:
        return NOTHING
    said = survey.ledger[(survey.ledger["paper"] == paper) & survey.ledger["prose"]]
    still_open = said["verdict"].isin(LEFT_OPEN)
    decided = said[~still_open]
    order = sorted(
        decided.drop_duplicates("label").itertuples(),
        key=lambda row: (VERDICTS.index(row.verdict), row.scale or ""),
    )
    lists = []
    for first in order:
        own = decided[decided["label"] == first.label]
        lists.append(f"{badge(first.label)}\n")
        lists += [
            f"- {plain(row.statement)} {{ref}}`{row.claim} <claim-{row.claim}>`"
            for row in own.itertuples()
        ]
        lists.append("")
    counts = answered(paper, survey)
    kinds = [plural(counts.sentences, "sentence") + " of the paper"]
    if counts.silent:
        kinds += [f"{counts.silent} that its tables and figures make without words"]
    parts = [
        f"Of {plural(len(said), 'claim')} ({' and '.join(kinds)}) {len(decided)} "
        f"{'has' if len(decided) == 1 else 'have'} an answer. The others: "
        f"{counted(counts.open) or 'none'}."
    ]
    if main := by_reading(registry.papers()[paper].asked_first, survey):
        parts.append(
            "The table has the claims that a reader asks about first. Beside each verdict it says "
            "how many seeds agree; of a claim of several parts, in the least and in the most "
            f"supported one.\n\n:::{{container}} measured\n{main}\n:::"
        )
    if lists:
        listed = "\n".join(lists[:-1])
        parts.append(f":::{{dropdown}} All that have an answer\n{listed}\n:::")
    if further:
        parts.append(further(paper, main_runs(paper, survey)))
    return "\n\n".join(filter(None, parts)) + "\n"


def printed_numbers(paper: str, survey: Survey) -> str:
    """Say how many printed numbers come out, by the paper's own statistic, and which do not."""
    runs = busiest(survey, main_table(paper))
    data = judged_rows(runs, beside_printed(runs))
    if data.empty:
        return NOTHING
    counts, levels = near_print(runs, data), load_margins().levels
    models = ", ".join(f"{model} {near} of {of}" for model, (near, of) in counts.by_model.items())
    said = (
        f"{_come_out(runs, data)}{few_seeds(data['seeds'])} By model: {models}. "
        f"{counts.between} of the printed numbers lie between {levels['failed'].below:g} % and "
        f"{levels['solved'].at_least:g} %; {counts.near_between} of these come out. Such numbers "
        "are harder to meet than success or failure. (A number comes out if ours has the printed "
        f"{runs.measured.words}, high or low. To *solve* a test, below, takes "
        f"{levels['solved'].at_least:g} % of {runs.measured.right}.)"
    )
    far = data[~data["near"]]
    if far.empty:
        return f"{said}\n"
    body = table(
        ("task", "model", "test", "printed", "ours", "seeds"),
        (
            (
                title(row.task),
                row.model,
                row.test,
                short(row.paper),
                short(row.ours),
                "; ".join(map(short, row.values)),
            )
            for row in far.itertuples()
        ),
        name=f"tab-findings-{paper}-far",
        caption="Printed numbers that ours miss by more than the margin, in percent.",
    )
    return f"{said} {{numref}}`tab-findings-{paper}-far` has those that do not.\n\n{body}"


def _come_out(runs: Runs, data: pd.DataFrame) -> str:
    counts = near_print(runs, data)
    return (
        f"At scale *{runs.scale}*, the {published.statistic(*runs.experiment.tables)} of our seeds "
        f"is the printed number, within the margin, in **{counts.near} of {counts.cells}** cells "
        f"that have runs. At the longest test of a task it is in {counts.near_longest} of "
        f"{counts.longest}."
    )


def other_tables(paper: str, survey: Survey) -> str:
    """Say how many numbers of the other tables come out, and where ours say the opposite of
    print.
    """
    said, opposed, seeds = [], [], []
    for runs, data in beside_other_tables(paper, survey):
        numbers = " and ".join(map(published.name_of, runs.experiment.tables))
        page = f"{{doc}}`{numbers} </executed/{runs.page}>`"
        said.append(f"- {page} (scale *{runs.scale}*): {counts_in_words(near_counts(data))}")
        seeds.append(data["seeds"])
        opposed.extend(
            (
                title(row.task),
                runs.label(row.model, row.arm),
                "; ".join(row.tests),
                "; ".join(map(short, row.paper)),
                "; ".join(map(short, row.ours)),
                str(row.seeds),
            )
            for row in opposite(data).itertuples()
        )
    if not said:
        return NOTHING
    lines = "\n".join(said)
    told = (
        "These numbers are not in the main table. So many of them come out within the margin:"
        f"{few_seeds(pd.concat(seeds))}\n\n{lines}\n"
    )
    if not opposed:
        return f"{told}\nNowhere do ours fail where the paper succeeds, or the other way round.\n"
    name = f"tab-findings-{paper}-opposed"
    body = table(
        ("task", "model", "tests", "printed", "ours", "seeds"),
        opposed,
        name=name,
        caption="Where ours fail and the printed numbers succeed, or the other way round, percent.",
    )
    where = f"{{numref}}`{name}` has the tests at which one succeeds and the other fails."
    return f"{told}\n{where}\n\n{body}"


def known_is_not_enough(paper: str, survey: Survey) -> str:
    """Show what success on the lengths trained on says about the longest test, counted and
    drawn.
    """
    runs = busiest(survey, main_table(paper))
    data = ends(runs)
    if data.empty:
        return NOTHING
    figure = f"```{{raw}} html\n{_strips(runs, data).html}\n```\n"
    return "\n\n".join([*_known(runs), figure])


def _known(runs: Runs) -> list[str]:
    """Count the runs that know the lengths trained on, and say what they are worth at the longest.

    A paragraph on the readings that are judged, and, where there are others, one on those.
    """
    judged, others = known_by_reading(runs)
    parts = [(judged, f"At scale *{runs.scale}*, of ")]
    if len(others):
        parts.append((others, "In other readings, of "))
    paper = registry.papers()[runs.experiment.paper]
    told = paper.load(paper.known) if paper.known else _outputs_in_words
    return [told(part, start, runs) for part, start in parts]


def _outputs_in_words(data: pd.DataFrame, start: str, runs: Runs) -> str:
    """Word the counts of runs that know their lengths, by outputs right to the last symbol."""
    level, counts = load_margins().levels["solved"].at_least, known(data)
    said = (
        f"{start}{len(data)} runs, {counts.knows} know the lengths they were trained on: at least "
        f"{level:g} % of their outputs are right to the last symbol."
    )
    if not counts.perfect or not counts.flawed:
        return f"{said} Of these, {_counted(counts.states)}."
    said += (
        f" {counts.perfect} of them make no error there, and **{counts.perfect_solve}** of these "
        f"solve the longest test. {counts.flawed} make one or more, and "
        f"**{counts.flawed_solve}** of these solve it."
    )
    within = [
        f"{solve} of {of} {which}"
        for which, (solve, of) in (
            ("without an error", counts.perfect_where_solved),
            ("with one", counts.flawed_where_solved),
        )
        if of
    ]
    if within:
        said += f" In the cells that some seed solves, {' and '.join(within)} solve it."
    return said


def _strips(runs: Runs, data: pd.DataFrame) -> Exhibit:
    """A row per model: a dot per run, once on known lengths and once at the longest."""
    name = f"findings-{runs.experiment.paper}-ends"
    rows = [row for row in runs.rows if len(rows_of(data, *row))]

    def draw(layout: Layout) -> "Figure":
        panels = (("known", "lengths trained on"), ("longest", "longest test"))
        tall = len(rows) * ROW + 0.2
        down = 2 if layout.narrow else 1
        height = down * (tall + FOOT + 0.2)
        figure = canvas(layout, height)
        left, right = (1.25, 0.65) if layout.narrow else (1.5, 1.0)
        wide = layout.width - left - right
        wide = wide if layout.narrow else (wide - 0.35) / 2
        for k, (column, head) in enumerate(panels):
            x = left if layout.narrow else left + k * (wide + 0.35)
            y = (down - 1 - (k if layout.narrow else 0)) * (tall + FOOT + 0.2) + FOOT
            axes = figure.add_axes(
                (x / layout.width, y / height, wide / layout.width, tall / height)
            )
            named = layout.narrow or k == 0
            _panel(axes, runs, data, rows, column, head, named)
        return figure

    measured = runs.measured.words
    outcomes = data.groupby(["model", "arm"], sort=False)["state"]
    enough = f"{load_margins().levels['solved'].at_least:g} %"
    alt = (
        f"{measured.capitalize()} of every run on the lengths trained on and at the "
        f"longest test. Runs with at least {enough} there: "
        + "; ".join(
            f"{runs.label(model, arm)} {(states == 'solved').sum()} of {len(states)}"
            for (model, arm), states in outcomes
        )
    )
    caption = (
        f"Right on what it knows. A dot is the {measured} of one run, on the "
        "lengths that it was trained on and at the longest test of its task. The numbers at the "
        f"right count the runs with at least {enough} there."
    )
    return exhibit(draw, name, caption, f"{alt}.", data, runs)


def _panel(axes: "Axes", runs: Runs, data, rows, column: str, head: str, named: bool) -> None:
    percent_axis(axes, top=-0.9, bottom=len(rows) - 0.4)
    axes.text(0, -0.62, head, size=8, weight="bold", color=LIGHT.ink, va="center")
    for i, (model, arm) in enumerate(rows):
        own = rows_of(data, model, arm).sort_values(column, kind="stable")
        values = own[column].to_numpy()
        axes.scatter(
            values,
            i + _jitter(values),
            s=13,
            color=colour(model),
            alpha=0.6,
            linewidth=0,
            clip_on=False,
        )
        if named:
            words = runs.label(model, arm).replace(", ", "\n")
            look = {"color": colour(model), "weight": "bold", "multialignment": "right"}
            beside(axes, words, (0, i), -9, size=7.2, **look)
        if column == "longest":
            solved = int((own["state"] == "solved").sum())
            beside(axes, f"{solved} of {len(own)}", (1, i), 7, color=LIGHT.muted, size=7.2)


def _jitter(values: np.ndarray) -> np.ndarray:
    """Heights that keep equal values apart: the k-th of n, spread over a strip of fixed height."""
    heights = np.zeros(len(values))
    groups = np.round(values / 4)
    for group in np.unique(groups):
        inside = np.flatnonzero(groups == group)
        if len(inside) > 1:
            heights[inside] = np.linspace(-1, 1, len(inside))
    return heights * STRIP / ROW / 1.4


def luck(paper: str, survey: Survey) -> str:
    """Cells whose seeds are far apart, and of which one seed solves what another fails at.

    At the longest test where outputs are right or wrong as a whole. Where they are right in parts,
    of which the longest test leaves few to all, at the test at which seeds are furthest apart.
    """
    runs = busiest(survey, main_table(paper))
    found, whole = unequal_seeds(runs), runs.measured.whole
    if not found.repeated:
        return "*No cell has more than one seed yet.*\n"
    margin, spread = load_margins().measures["accuracy"].around(0), found.apart
    where = "at the longest test" if whole else "at every test beyond the lengths trained on"
    said = (
        f"{cells_have(found.repeated)} two seeds or more. In {found.repeated - len(spread)} of "
        f"them the seeds lie within {margin:g} points of each other {where}."
    )
    if whole:
        said += f" In **{found.opposed}**, one seed solves what another fails at."
    if not spread:
        return f"{said}\n"
    there = printed(*runs.experiment.tables)
    body = table(
        ("task", "model", "lengths trained on", "test", "seeds there", "printed"),
        (
            (
                title(task),
                runs.label(model, arm),
                "; ".join(map(short, c["known"])),
                test,
                "; ".join(map(short, c["longest"])),
                short(there[model, task, test]) if (model, task, test) in there else "",
            )
            for c in spread
            for task, model, arm, test in [c[["task", "model", "arm", "test"]].iloc[0]]
        ),
        name=f"tab-findings-{paper}-luck",
        caption=f"Cells whose seeds are more than {margin:g} points apart "
        f"{'at the longest test' if whole else 'somewhere, at the test where they are furthest'}: "
        f"{runs.measured.words} in percent, a number per seed.",
    )
    if not whole:
        most = max(spread, key=lambda cell: np.ptp(cell["longest"]))
        task, model, arm, test = most[["task", "model", "arm", "test"]].iloc[0]
        print_ = there.get((model, task, test))
        said += (
            f" The furthest apart are those of {runs.label(model, arm)} on {title(task)} at "
            f"{test}: {'; '.join(map(short, most['longest']))}"
            f"{'' if print_ is None else f', where {short(print_)} is printed'}."
        )
    return f"{said} {{numref}}`tab-findings-{paper}-luck` has all that differ.\n\n{body}"


def tasks_solved(paper: str, survey: Survey) -> str:
    """Count the tasks each reading solves at every length: as printed, by our medians, by seed."""
    runs = busiest(survey, main_table(paper))
    data = beside_printed(runs)
    if data.empty:
        return NOTHING
    level, kind = load_margins().levels["solved"], published.statistic(*runs.experiment.tables)
    counts = solved_by_reading(runs, data)
    rows = [
        (runs.label(r.model, r.arm), r.printed, r.ours, "; ".join(map(str, r.alone)), r.tasks)
        for r in counts.itertuples()
    ]
    said = [
        f"{r.model} {r.ours} of {r.tasks} (printed {r.printed})"
        for r in counts.itertuples()
        if runs.experiment.judges(r.model, r.arm)
    ]
    body = table(
        ("model", "printed", f"our {kind}s", "seed by seed", "tasks with runs"),
        rows,
        name=f"tab-findings-{paper}-solved",
        caption=f"Tasks with runs that are solved: {level.at_least:g} % or more are right at every "
        f"test. Counted by the printed numbers, by the {kind}s of our seeds, and in each seed.",
        numbers=("printed", f"our {kind}s", "tasks with runs"),
    )
    ours = f" By {kind}s, at {level.at_least:g} % or more: {', '.join(said)}." if said else ""
    return (
        f"Solved tasks can be counted by the {kind} of the seeds, as in the printed tables, or in "
        f"each seed alone, as our verdicts do.{ours}{few_seeds(data['seeds'])} "
        f"{{numref}}`tab-findings-{paper}-solved` has both counts for all readings. "
        f"{{numref}}`fig-findings-{paper}-seeds` has the seeds, task by task.\n\n{body}\n"
        f"```{{raw}} html\n{_solved_map(runs, data).html}\n```\n"
    )


def _solved_map(runs: Runs, data: pd.DataFrame) -> Exhibit:
    """A cell per row and task: seeds that solve the longest test, framed if it is printed so."""
    name, level = f"findings-{runs.experiment.paper}-seeds", load_margins().levels["solved"]
    data = data[data["test"] == data["task"].map(lambda task: runs.tests[task][-1])]
    rows = [row for row in runs.rows if len(rows_of(data, *row))]
    tasks = [task for task in runs.tasks if task in set(data["task"])]

    def draw(layout: Layout) -> "Figure":
        from matplotlib.patches import Rectangle

        left, head, turned = (1.15, 1.05, 70) if layout.narrow else (2.1, 0.85, 45)
        wide = min(layout.width - left - 0.35, 0.62 * len(tasks))
        height = head + len(rows) * ROW + 0.05
        figure = canvas(layout, height)
        box = (left, 0.05, wide, len(rows) * ROW)
        size = (layout.width, height) * 2
        axes = figure.add_axes(tuple(a / b for a, b in zip(box, size, strict=True)))
        axes.set(xlim=(0, len(tasks)), ylim=(len(rows), 0))
        axes.axis("off")
        for j, task in enumerate(tasks):
            look = {
                "rotation": turned,
                "ha": "left",
                "va": "bottom",
                "size": 7.2,
                "color": LIGHT.ink,
            }
            axes.text(j + 0.35, -0.15, title(task), **look)
        for i, row in enumerate(rows):
            shade = colour(row[0])
            words = runs.label(*row).replace(", ", "\n" if layout.narrow else ", ")
            look = {"color": shade, "weight": "bold", "multialignment": "right", "size": 7.2}
            beside(axes, words, (0, i + 0.5), -6, **look)
            for cell in rows_of(data, *row).itertuples():
                j = tasks.index(cell.task)
                share = cell.solved / cell.seeds
                tile = partial(Rectangle, (j + 0.05, i + 0.08), 0.9, 0.84, clip_on=False)
                axes.add_patch(tile(facecolor=shade, alpha=0.04 + 0.5 * share, linewidth=0))
                if level.holds(cell.paper):
                    axes.add_patch(tile(fill=False, edgecolor=LIGHT.ink, linewidth=1))
                count = str(cell.solved) if cell.seeds == most else f"{cell.solved}/{cell.seeds}"
                look = {"color": LIGHT.ink if cell.solved else LIGHT.muted, "size": 7.5}
                axes.text(j + 0.5, i + 0.5, count, ha="center", va="center", **look)
        return figure

    most = int(data["seeds"].max())
    alt = "; ".join(
        f"{runs.label(*row)}: "
        + ", ".join(
            f"{title(cell.task)} {cell.solved} of {cell.seeds}"
            + " (printed as solved)" * level.holds(cell.paper)
            for cell in rows_of(data, *row).itertuples()
        )
        for row in rows
    )
    caption = (
        f"Who solves the longest test? A cell counts the seeds, of {most}, with at least "
        f"{level.at_least:g} % of a task's outputs right to the last symbol at its longest test. "
        "Cells with fewer seeds say how many. Framed: the paper prints as much."
    )
    return exhibit(draw, name, caption, f"Seeds that solve the longest test. {alt}.", data, runs)


def selection(paper: str, survey: Survey) -> str:
    """Say what the choice of the checkpoint is worth, at the first length beyond training and
    later.
    """
    runs = busiest(survey, main_table(paper))
    found = checkpoints(runs)
    if found is None:
        return NOTHING
    level, unit = load_margins().levels["solved"], runs.measured.right
    margin = load_margins().measures["accuracy"].around(0)
    solved = [f"{found.solve[rule]} {said}" for rule, said in RULES.items()]
    parts = [
        f"{signed(gain.mean)} points at the {where} ({plural(gain.gained, 'run')} gained more than "
        f"{margin:g} points, {gain.lost} lost more)"
        for where, gain in zip(("first", "second", "third", "fourth"), found.gains, strict=False)
    ]
    return (
        f"Of {found.runs} runs, so many solve the longest test ({level.at_least:g} % of {unit}): "
        f"{', '.join(solved)}. {registry.papers()[paper].selection} Its checkpoint is compared "
        "here with the best one on known lengths. The mean gain at the lengths beyond training is "
        f"{', '.join(parts)}.\n"
    )


def standing(paper: str, survey: Survey) -> str:
    """Show where a paper's claims stand today: a table of verdicts, and what stands behind it."""
    judged, kinds = survey.ledger[survey.ledger["paper"] == paper], by_kind(paper, survey)
    found = judged.drop_duplicates("label")
    order = sorted(
        found["label"],
        key=dict(zip(found["label"], found["verdict"].map(VERDICTS.index), strict=True)).get,
    )
    body = table(
        ("verdict", *kinds),
        [
            *(
                (badge(label), *(counts[label] or "" for counts in kinds.values()))
                for label in order
            ),
            ("all", *(counts.total() for counts in kinds.values())),
        ],
        name=f"tab-letter-{paper}",
        caption="Your claims, by their verdicts; *reduced* is a verdict from shorter training."
        + " A ratio of speeds on a core need not carry over to a GPU." * (SPEED in kinds),
        numbers=tuple(kinds),
    )
    parts, runs = [], busiest(survey, main_table(paper))
    if len(beside := judged_rows(runs, beside_printed(runs))):
        tables = runs.experiment.tables
        names = dict.fromkeys(published.name_of(tables[place]) for place in (0, -1))
        parts.append(f"{' to '.join(names)}: {_come_out(runs, beside)}{few_seeds(beside['seeds'])}")
    parts.append(near_by_reading(main_runs(paper, survey)))
    parts.append(at_full_scale(paper, survey))
    count, hours = trainings(paper, survey)
    trained = f"Behind all of this stand {count:,} trainings, which took {hours:,.1f} hours."
    parts.append(trained if count else "No training is recorded yet.")
    return f"{body}\n{' '.join(filter(None, parts))}\n"


PASSAGES = {
    f"findings_{paper}_{name}": partial(passage, paper)
    for name, passage in (
        ("conclusion", conclusion),
        ("printed", printed_numbers),
        ("known", known_is_not_enough),
        ("luck", luck),
        ("chosen", selection),
    )
    for paper in tabled()
} | {
    **{f"letter_{paper}": partial(standing, paper) for paper in tabled()},
}
