"""What all runs of a paper's main table say together: numbers and figures of the findings chapters.

Nothing here judges a claim. It counts: which runs know what they were trained on and fail beyond
it, which cells depend on the seed, and which reading of a paper comes close to what it prints.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.stats import fisher_exact

from relength import pointing
from relength.claims import LEFT_OPEN, VERDICTS, counted, plural
from relength.margins import load_margins
from relength.papers import EXPERIMENTS, experiment, published
from relength.report import address_bits, exhibits, failures, figures
from relength.report.boxes import by_reading, of_claims
from relength.report.exhibits import Exhibit, badges
from relength.report.markdown import badge, plain, table
from relength.report.pointers import apart
from relength.report.readings import ALL_CHANGED, CONTRASTS, differences
from relength.report.runs import Runs
from relength.report.scoreboard import PAPERS, SCALES, Survey
from relength.report.style import (
    ARM_LABELS,
    LIGHT,
    Layout,
    beside,
    canvas,
    colour,
    title,
)
from relength.report.tables import MEASURE_WORDS, comparison, printed, short, signed
from relength.spec import row_name
from relength.tasks.algorithmic import CLASSES, AlgorithmicTask

TABLES = {"mla": "mla_table2", "panm": "panm_algorithmic"}  # the experiment of the main table
MORE = {
    "panm": ("panm_readings", "mended")
}  # a further reading: the experiment that has it, and it
SHOWN = {  # claims by which a paper would be quoted
    "mla": ("mla-001", "mla-002", "mla-003", "mla-015", "mla-016"),
    "panm": ("panm-020", "panm-025", "panm-027", "panm-028"),
}
MAIN = {  # and those that a reader of its chapter asks about first
    "mla": (
        *("mla-010", "mla-011", "mla-012", "mla-014", "mla-017", "mla-016", "mla-052"),
        *("mla-001", "mla-002", "mla-003", "mla-007", "mla-024", "mla-055", "mla-057"),
    ),
    "panm": ("panm-020", "panm-021", "panm-025", "panm-026", "panm-027", "panm-028"),
}
NOTHING = "*Nothing is recorded yet.*\n"
RIGHT = {
    "exact_match": "outputs right to the last symbol",
    "token_accuracy": "tokens right",
}


class Mark(NamedTuple):
    """How a reading is drawn: its sign in words, matplotlib's, filled or not, and how far below."""

    sign: str
    marker: str
    filled: bool
    shift: float


MARKS = {
    "released": Mark("●", "o", True, -0.14),
    "paper": Mark("◇", "D", False, 0.14),
    "repaired": Mark("△", "^", False, 0.0),
    "mended": Mark("□", "s", False, -0.28),
}
ROW, STRIP, FOOT = 0.34, 0.19, 0.3  # inches: of a row, of the dots in it, below the last row


def busiest(survey: Survey, name: str) -> Runs:
    """An experiment's first seeds at the scale that has most runs."""
    own = survey.runs[survey.runs["experiment"] == name].drop_duplicates("run_id")
    counts = own["scale"].value_counts()
    scale = max(reversed(SCALES), key=lambda s: counts.get(s, 0))
    return Runs.read(experiment(name), scale, load_margins().least_seeds, survey.store)


def readings(paper: str, survey: Survey) -> Runs:
    """The runs of the main table, with those of a reading that it does not have."""
    runs = busiest(survey, TABLES[paper])
    if paper not in MORE:
        return runs
    name, arm = MORE[paper]
    more = Runs.read(experiment(name), runs.scale, load_margins().least_seeds, survey.store)
    return replace(
        runs,
        specs=runs.specs + tuple(spec for spec in more.specs if spec.model.arm == arm),
        records=runs.records
        + tuple(record for record in more.records if record["spec"]["model"]["arm"] == arm),
        states={**runs.states, **more.states},
    )


def ends(runs: Runs, metric: str = "exact_match") -> pd.DataFrame:
    """A row per run: how it does on the lengths trained on and at the longest, in percent.

    Columns: task, model, arm, seed, known, test (name of the longest), longest, state (the longest
    by the levels of the margins file: "solved", "failed" or "between").
    """
    rows = []
    for model, arm in runs.rows:
        for task, tests in runs.tests.items():
            pairs = zip(
                runs.cell(model, arm, task),
                runs.values(model, arm, task, tests[0], metric),
                runs.values(model, arm, task, tests[-1], metric),
                strict=True,
            )
            for record, known, longest in pairs:
                seed = record["spec"]["seed"]
                rows.append((task, model, arm, seed, known, tests[-1], longest, _state(longest)))
    names = ["task", "model", "arm", "seed", "known", "test", "longest", "state"]
    return pd.DataFrame(rows, columns=names)


def _state(value: float) -> str:
    for name, level in load_margins().levels.items():
        if level.holds(value):
            return name
    return "between"


def _counted(states: pd.Series) -> str:
    counts = states.value_counts()
    words = {
        "solved": "solved the longest test",
        "failed": "failed at it",
        "between": "ended in between",
    }
    return ", ".join(f"**{counts.get(name, 0)}** {said}" for name, said in words.items())


def _cells(count: int) -> str:
    return "One cell has" if count == 1 else f"{count} cells have"


def conclusion(paper: str, survey: Survey) -> str:
    """The chapter in short: the claims in words that are decided, by verdict, and how many are not.

    Of a table of token accuracies also how far each reading is from the printed numbers.
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
    silent = int((said["quote"] == "").sum())
    kinds = [plural(len(said) - silent, "sentence") + " of the paper"]
    kinds += [f"{silent} that its tables and figures make without words"] if silent else []
    rest = counted(said["verdict"][still_open].value_counts())
    parts = [
        f"Of {plural(len(said), 'claim')} ({' and '.join(kinds)}) {len(decided)} "
        f"{'has' if len(decided) == 1 else 'have'} an answer. The others: {rest or 'none'}."
    ]
    if main := by_reading(MAIN[paper], survey):
        parts.append(
            "Those that a reader asks about first, with how many seeds agree (of several parts: in "
            f"the least and in the most agreed with):\n\n:::{{container}} measured\n{main}\n:::"
        )
    if lists:
        listed = "\n".join(lists[:-1])
        parts.append(f":::{{dropdown}} All that have an answer\n{listed}\n:::")
    runs = readings(paper, survey)
    if runs.experiment.measure == "token_accuracy":
        parts.append(_away(paper, runs))
    return "\n\n".join(filter(None, parts)) + "\n"


def _away(paper: str, runs: Runs) -> str:
    """By task, how far each reading is from print beyond L+1, and whose numbers are nearest."""
    data = _of_several_readings(runs, load_margins().least_seeds)
    if data.empty:
        return ""
    far = [row.test not in runs.tests[row.task][:2] for row in data.itertuples()]
    data = data[np.array(far, dtype=bool)]
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


def printed_numbers(paper: str, survey: Survey) -> str:
    """How many printed numbers come out, by the paper's own statistic, and which do not."""
    runs = busiest(survey, TABLES[paper])
    data = _judged(runs, beside_printed(runs))
    if data.empty:
        return NOTHING
    near, levels, found = data["near"], load_margins().levels, runs.experiment
    between = data["paper"].map(lambda x: not any(level.holds(x) for level in levels.values()))
    by_model = near.groupby(data["model"], sort=False).agg(["sum", "size"])
    models = ", ".join(f"{row.Index} {row.sum} of {row.size}" for row in by_model.itertuples())
    said = (
        f"{_come_out(runs, data)}{few_seeds(data['seeds'])} By model: {models}. "
        f"{between.sum()} of the printed numbers lie between {levels['failed'].below:g} % and "
        f"{levels['solved'].at_least:g} %, where it takes more to meet them than to succeed or to "
        f"fail as the paper does; {near[between].sum()} of these come out. (To come out takes the "
        f"printed {MEASURE_WORDS[found.measure]}, be it high or low; to *solve* a test, below, "
        f"takes {levels['solved'].at_least:g} % of {RIGHT[found.measure]}.)"
    )
    far = data[~near]
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


def beside_printed(runs: Runs) -> pd.DataFrame:
    """The printed cells that have runs, each reading in its own row, and whether ours are near."""
    data = comparison(runs)
    data = data[data["paper"].notna() & (data["seeds"] > 0)]
    return data.assign(near=data["apart"].eq(False))


def _judged(runs: Runs, data: pd.DataFrame) -> pd.DataFrame:
    rows = zip(data["model"], data["arm"], strict=True)
    return data[np.array([runs.experiment.judges(*row) for row in rows], dtype=bool)]


def _come_out(runs: Runs, data: pd.DataFrame) -> str:
    last = data["test"] == data["task"].map(lambda task: runs.tests[task][-1])
    return (
        f"At scale *{runs.scale}*, the {published.statistic(*runs.experiment.tables)} of our seeds "
        f"is the printed number, within the margin, in **{data['near'].sum()} of {len(data)}** "
        f"cells that have runs, and in {data['near'][last].sum()} of {last.sum()} at the longest "
        "test of a task."
    )


def few_seeds(seeds: pd.Series) -> str:
    """A warning where a cell has fewer seeds than verdicts take."""
    if seeds.min() >= load_margins().least_seeds:
        return ""
    least = load_margins().least_seeds
    return (
        f" (Some cells have fewer seeds than the {least} that a verdict takes, at least "
        f"{seeds.min()}: there it may be chance.)"
    )


def other_tables(paper: str, survey: Survey) -> str:
    """How many numbers of the other tables come out, and where ours say the opposite of print."""
    main = {cell[:2] for cell in printed(*experiment(TABLES[paper]).tables)}
    said, opposed, seeds = [], [], []
    for name, found in EXPERIMENTS.items():
        if found.paper != paper or not found.tables or found.distance or name == TABLES[paper]:
            continue
        runs = busiest(survey, name)
        data = beside_printed(runs)
        data = data[[cell not in main for cell in zip(data["model"], data["task"], strict=True)]]
        if data.empty:
            continue
        numbers = " and ".join(map(published.name_of, found.tables))
        counts = _near_counts(data)
        page = f"{{doc}}`{numbers} </executed/{runs.page}>`"
        said.append(f"- {page} (scale *{runs.scale}*): {counts}")
        seeds.append(data["seeds"])
        opposed.extend(_opposed(runs, data))
    if not said:
        return NOTHING
    lines = "\n".join(said)
    told = (
        "Of the numbers that the main table does not have, so many come out, within the margin."
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


def _opposed(runs: Runs, data: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    """Rows of a table: per cell and reading the tests that only one, print or we, solves."""
    states = [{_state(row.paper), _state(row.ours)} for row in data.itertuples()]
    data = data[[state == {"solved", "failed"} for state in states]]
    for (task, model, arm), cells in data.groupby(["task", "model", "arm"], sort=False):
        paper, ours = ("; ".join(map(short, cells[column])) for column in ("paper", "ours"))
        tests, seeds = "; ".join(cells["test"]), str(cells["seeds"].min())
        yield title(task), runs.label(model, arm), tests, paper, ours, seeds


def known_is_not_enough(paper: str, survey: Survey) -> str:
    """What success on the lengths trained on says about the longest test, counted and drawn."""
    runs = busiest(survey, TABLES[paper])
    data = ends(runs, runs.experiment.measure)
    if data.empty:
        return NOTHING
    figure = f"```{{raw}} html\n{_strips(runs, data).html}\n```\n"
    return "\n\n".join([*_known(data, runs), figure])


def _known(data: pd.DataFrame, runs: Runs) -> list[str]:
    """How many runs know the lengths trained on, and what they are worth at the longest.

    A paragraph on the readings that are judged, and, where there are others, one on those.
    """
    judged = data["arm"] == data["model"].map(runs.experiment.judged_arms)
    parts = [(data[judged], f"At scale *{runs.scale}*, of ")]
    if not judged.all():
        parts.append((data[~judged], "In other readings, of "))
    if runs.experiment.measure == "token_accuracy":
        return [_tokens_in_words(part, start, runs) for part, start in parts]
    return [_outputs_in_words(part, start) for part, start in parts]


def _is_solved(value: float) -> bool:
    return load_margins().levels["solved"].holds(value)


def _outputs_in_words(data: pd.DataFrame, start: str) -> str:
    """How many runs know their lengths to the last symbol, and what becomes of them."""
    solved = load_margins().levels["solved"]
    knows = data[data["known"].map(_is_solved)]
    perfect = knows[knows["known"] == 100]
    said = (
        f"{start}{len(data)} runs, {len(knows)} know the lengths they were trained on: at least "
        f"{solved.at_least:g} % of their outputs are right to the last symbol."
    )
    flawed = knows[knows["known"] < 100]
    if perfect.empty or flawed.empty:
        return f"{said} Of these, {_counted(knows['state'])}."
    solves = knows["state"] == "solved"
    can = solves.groupby([knows["task"], knows["model"], knows["arm"]]).transform("any")
    first, second = (int((own["state"] == "solved").sum()) for own in (perfect, flawed))
    said += (
        f" {len(perfect)} of them make no error there, and **{first}** of these solve the longest "
        f"test; {len(flawed)} make one or more, and **{second}** of these."
    )
    within = [
        f"{solves[can & own].sum()} of {(can & own).sum()} {which}"
        for which, own in (
            ("without an error", knows["known"] == 100),
            ("with one", knows["known"] < 100),
        )
        if (can & own).any()
    ]
    if within:
        said += f" In the cells that some seed solves: {', '.join(within)}."
    return said


def _tokens_in_words(data: pd.DataFrame, start: str, runs: Runs) -> str:
    """How many runs know their lengths by tokens, and what these have right at the longest test."""
    level = load_margins().levels["solved"].at_least
    knows = data[data["known"].map(_is_solved)]
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


def in_short(survey: Survey) -> str:
    """For the landing page: a few claims of each paper that has findings, and what they rest on."""
    parts = []
    for paper, name in TABLES.items():
        runs = busiest(survey, name)
        data = ends(runs, runs.experiment.measure)
        nothing = "Of its main table no training is recorded yet."
        known = nothing if data.empty else _known(data, runs)[0]
        said = f"{known} {_near_by_reading(readings(paper, survey))}".rstrip()
        parts += [
            f"**{PAPERS[paper]}.** {said} More in {{doc}}`its chapter <findings_{paper}>`.",
            of_claims(SHOWN[paper], survey),
        ]
    return "\n\n".join(parts)


def _strips(runs: Runs, data: pd.DataFrame) -> Exhibit:
    """A row per model: a dot per run, once on known lengths and once at the longest."""
    name = f"findings-{runs.experiment.paper}-ends"
    rows = [row for row in runs.rows if len(_of(data, *row))]

    def draw(layout: Layout) -> Figure:
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

    measured = runs.experiment.measure
    outcomes = data.groupby(["model", "arm"], sort=False)["state"]
    enough = f"{load_margins().levels['solved'].at_least:g} %"
    alt = (
        f"{MEASURE_WORDS[measured].capitalize()} of every run on the lengths trained on and at the "
        f"longest test. Runs with at least {enough} there: "
        + "; ".join(
            f"{runs.label(model, arm)} {(states == 'solved').sum()} of {len(states)}"
            for (model, arm), states in outcomes
        )
    )
    caption = (
        f"Right on what it knows. {MEASURE_WORDS[measured].capitalize()} of every run, a dot per "
        "task and seed, on the lengths that it was trained on and at the longest test of its task. "
        f"At the right, how many runs have at least {enough} there."
    )
    return _exhibit(draw, name, caption, f"{alt}.", data, runs)


def _of(data: pd.DataFrame, model: str, arm: str) -> pd.DataFrame:
    return data[(data["model"] == model) & (data["arm"] == arm)]


def _percent(axes: Axes, top: float, bottom: float) -> None:
    """Rows of marks over a scale of percent."""
    axes.patch.set_visible(False)
    axes.set(xlim=(-3, 103), ylim=(bottom, top))
    axes.set_yticks([])
    axes.set_xticks([0, 50, 100], ["0", "50", "100 %"])
    axes.tick_params(length=0, labelsize=7, labelcolor=LIGHT.muted)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for value in (0, 50, 100):
        axes.axvline(value, color=LIGHT.rule, linewidth=0.6, zorder=0)


def _panel(axes: Axes, runs: Runs, data, rows, column: str, head: str, named: bool) -> None:
    _percent(axes, top=-0.9, bottom=len(rows) - 0.4)
    axes.text(0, -0.62, head, size=8, weight="bold", color=LIGHT.ink, va="center")
    for i, (model, arm) in enumerate(rows):
        own = _of(data, model, arm).sort_values(column, kind="stable")
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
    runs = busiest(survey, TABLES[paper])
    whole = runs.experiment.measure == "exact_match"
    data = ends(runs) if whole else _furthest_apart(runs)
    cells = [cell for _, cell in data.groupby(["task", "model", "arm"], sort=False)]
    repeated = [cell for cell in cells if len(cell) > 1]
    if not repeated:
        return "*No cell has more than one seed yet.*\n"
    margin = load_margins().measures["accuracy"].around(0)
    spread = [c for c in repeated if c["longest"].max() - c["longest"].min() > margin]
    where = "at the longest test" if whole else "at every test beyond the lengths trained on"
    said = (
        f"{_cells(len(repeated))} two seeds or more. The seeds lie within {margin:g} points of "
        f"each other {where} in {len(repeated) - len(spread)} of them"
    )
    if whole:
        split = [c for c in repeated if {"solved", "failed"} <= set(c["state"])]
        said += f"; in **{len(split)}**, one seed solves what another fails at"
    if not spread:
        return f"{said}.\n"
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
        f"{MEASURE_WORDS[runs.experiment.measure]} in percent, a number per seed.",
    )
    if not whole:
        most = max(spread, key=lambda cell: np.ptp(cell["longest"]))
        task, model, arm, test = most[["task", "model", "arm", "test"]].iloc[0]
        said += (
            f". The furthest apart are those of {runs.label(model, arm)} on {title(task)} at "
            f"{test}, {'; '.join(map(short, most['longest']))}"
        )
        if (model, task, test) in there:
            said += f", where {short(there[model, task, test])} is printed"
    return f"{said}; {{numref}}`tab-findings-{paper}-luck` has all that differ.\n\n{body}"


def _furthest_apart(runs: Runs) -> pd.DataFrame:
    """As :func:`ends`, with the test beyond training whose seeds are furthest apart as longest."""
    measure, parts = runs.experiment.measure, []
    for (task, model, arm), cell in ends(runs, measure).groupby(["task", "model", "arm"]):
        values = {test: runs.values(model, arm, task, test, measure) for test in runs.tests[task]}
        test = max(list(values)[1:], key=lambda test: np.ptp(values[test]))
        parts.append(cell.assign(test=test, longest=values[test]).drop(columns="state"))
    return pd.concat(parts).sort_index() if parts else ends(runs)


def which_reading(paper: str, survey: Survey) -> str:
    """Readings of a model side by side with the printed number, at the longest test."""
    runs = readings(paper, survey)
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
        counts = f"{_near_by_reading(runs)} {_best_by_task(runs)}"
        parts = (counts, _step_by_step(runs), _at_full_scale(paper, survey))
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
        f"{_cells(len(near))} runs of more than one reading. The {kind} of our seeds is the "
        f"printed number within the margin at the longest test, {'; '.join(counts)}.{few}"
    )
    solved = (both["state"] == "solved").groupby(both["arm"]).agg(["sum", "size"])
    counts = ", ".join(
        f"{ARM_LABELS[arm]} {solved.loc[arm, 'sum']} of {solved.loc[arm, 'size']}"
        for arm in ARM_LABELS
        if arm in solved.index
    )
    words = f"{_near_by_reading(runs)} {words} Runs that solve the longest test: {counts}.".strip()
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


def _at_full_scale(paper: str, survey: Survey) -> str:
    """What runs at the paper's own scale have beyond L+1, where the table is of shorter ones."""
    runs = Runs.read(experiment(TABLES[paper]), "paper", load_margins().least_seeds, survey.store)
    data = beside_printed(runs)
    far = [row.test not in runs.tests[row.task][:2] for row in data.itertuples()]
    data = data[np.array(far, dtype=bool)]
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
    far = np.array([r.test not in runs.tests[r.task][:2] for r in data.itertuples()], dtype=bool)
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


def against_baselines(survey: Survey) -> str:
    """PANM beside the best of the baselines that have runs, at every test beyond L+1."""
    runs = busiest(survey, TABLES["panm"])
    every = beside_printed(runs)
    far = [row.test not in runs.tests[row.task][:2] for row in every.itertuples()]
    data = every[np.array(far, dtype=bool)]
    own, others = data[data["model"] == "PANM"], data[data["model"] != "PANM"]
    cells = ["task", "test"]
    readings = own.pivot(index=cells, columns="arm", values="ours")
    beside = others.groupby(cells, sort=False)
    best, best_printed = (
        others.loc[beside[column].idxmax()].set_index(cells) for column in ("ours", "paper")
    )
    readings = readings.reindex(best.index).dropna(how="all")
    if readings.empty:
        return NOTHING
    best, best_printed = best.loc[readings.index], best_printed.loc[readings.index]
    margin = load_margins().measures["accuracy"].around
    printed_own = own.drop_duplicates(cells).set_index(cells)["paper"].loc[readings.index]
    arms = [arm for arm in ARM_LABELS if arm in readings]
    said = []
    for words, numbers, least in (
        *((ARM_LABELS[arm], readings[arm], best["ours"]) for arm in arms),
        ("as printed", printed_own, best_printed["paper"]),
    ):
        lead = (numbers - least).dropna()
        level = least[lead.index].map(margin)
        ahead, behind = int((lead > level).sum()), int((lead < -level).sum())
        of = f" of {len(lead)}" if len(lead) < len(readings) else ""
        said.append(f"{words}, ahead in **{ahead}**{of}, behind in {behind}")
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
        caption=f"PANM in its readings and the best of the baselines that have runs of a task, "
        f"first by ours and then by the printed numbers: token accuracy, the "
        f"{published.statistic(*runs.experiment.tables)} in percent.",
        numbers=heads,
    )
    have = others.groupby("task", sort=False)["model"].unique()
    same = {tuple(models): [t for t in have.index if (*have[t],) == (*models,)] for models in have}
    names = "; ".join(
        f"{', '.join(models)} on {' and '.join(map(title, tasks))}"
        for models, tasks in same.items()
    )
    return (
        f"Baselines with runs: {names}. Against the best of them at each of {len(readings)} tests "
        f"beyond L+1, by more than the margin, PANM is: {'; '.join(said)}."
        f"{few_seeds(data.set_index(cells).loc[readings.index, 'seeds'])}\n\n```{{raw}} html\n"
        f"{_by_length(runs, every[every['task'].isin(have.index)]).html}\n```\n\n{body}"
    )


def _by_length(runs: Runs, data: pd.DataFrame) -> Exhibit:
    """A panel per task: each reading of PANM over length, the printed numbers, all baselines."""
    tasks = [task for task in runs.tasks if task in set(data["task"])]
    own, others = data[data["model"] == "PANM"], data[data["model"] != "PANM"]
    arms = [arm for arm in MARKS if arm in set(own["arm"])]
    tall, foot, head, names = 1.55, 0.36, 0.3, 0.92  # inches; names: those at the lines' ends

    def draw(layout: Layout) -> Figure:
        across = 1 if layout.narrow else min(len(tasks), 3)
        down = -(-len(tasks) // across)
        pitch, block = layout.width / across, tall + foot + head
        figure = canvas(layout, down * block)
        for k, task in enumerate(tasks):
            row, column = divmod(k, across)
            box = (column * pitch + 0.34, (down - 1 - row) * block + foot)
            size = (layout.width, down * block) * 2
            box = (*box, pitch - 0.34 - names, tall)
            axes = figure.add_axes(tuple(a / b for a, b in zip(box, size, strict=True)))
            _by_length_panel(
                axes, runs.tests[task], own[own["task"] == task], others[others["task"] == task]
            )
            axes.set_title(title(task), loc="left", size=8.5, weight="bold", color=LIGHT.ink)
        return figure

    key = ", ".join(f"{MARKS[arm].sign} {ARM_LABELS[arm]}" for arm in arms)
    caption = (
        f"Which reading falls off as printed, and which like its neighbours? Tokens right over the "
        f"length of a test, the {published.statistic(*runs.experiment.tables)} of our seeds: PANM "
        f"({key}), what the paper prints for it (dashed), and from the lowest to the highest of "
        "the baselines that have runs (grey)."
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
    return _exhibit(draw, "findings-panm-lengths", caption, alt, data, runs)


def _by_length_panel(axes: Axes, tests: Sequence[str], own: pd.DataFrame, others) -> None:
    axes.set_xlim(0, len(tests) - 1)
    axes.set_xticks(range(len(tests)), tests)
    axes.set_ylim(0, 104)
    axes.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    axes.tick_params(colors=LIGHT.muted, labelsize=7, length=0)
    axes.grid(axis="y", color=LIGHT.rule, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.patch.set_visible(False)
    for spine in axes.spines.values():
        spine.set_visible(False)
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
    for (_, words, tint), height in zip(ends, apart([y for y, *_ in ends], gap=9.5), strict=True):
        weight = "bold" if tint == shade else "normal"
        beside(axes, words, (1, height), 7, color=tint, size=7.2, weight=weight)


def _near_by_reading(runs: Runs) -> str:
    """How many printed numbers come out with each reading that has the seeds of a verdict."""
    seeds = load_margins().least_seeds
    data = _of_several_readings(runs, seeds)
    if data.empty:
        return ""
    models = " or ".join(dict.fromkeys(data["model"]))
    said = (
        f"Where more than one reading of {models} has {seeds} seeds, so many of the printed "
        f"numbers come out, within the margin: {_near_counts(data)}."
    )
    if "telling" in data:
        telling = data[data["telling"]]
        said += (
            " Of those beyond L+1 that come out with one reading and not with another: "
            f"{_near_counts(telling) or 'none'}; without those that remembering the first symbol "
            f"gives as well: **{_near_counts(telling[telling['earned']]) or 'none'}**."
        )
    return said


def _near_counts(data: pd.DataFrame) -> str:
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


def tasks_solved(paper: str, survey: Survey) -> str:
    """How many tasks each reading solves at every length: as printed, by our medians, by seed."""
    runs = busiest(survey, TABLES[paper])
    data = beside_printed(runs)
    if data.empty:
        return NOTHING
    level, kind = load_margins().levels["solved"], published.statistic(*runs.experiment.tables)
    rows, said = [], []
    for (model, arm), own in data.groupby(["model", "arm"], sort=False):
        solved = own[["paper", "ours"]].map(level.holds).groupby(own["task"]).all()
        there, ours, count = int(solved["paper"].sum()), int(solved["ours"].sum()), len(solved)
        alone = "; ".join(map(str, _solved_alone(runs, model, arm, own)))
        rows.append((runs.label(model, arm), there, ours, alone, count))
        if runs.experiment.judges(model, arm):
            said.append(f"{model} {ours} of {count} (printed {there})")
    body = table(
        ("model", "printed", f"our {kind}s", "seed by seed", "tasks with runs"),
        rows,
        name=f"tab-findings-{paper}-solved",
        caption=f"In how many of the tasks that have runs {level.at_least:g} % or more are right "
        f"at every test: by the printed numbers, by the {kind}s of our seeds, and in each seed.",
        numbers=("printed", f"our {kind}s", "tasks with runs"),
    )
    ours = f" By {kind}s, at {level.at_least:g} % or more: {', '.join(said)}." if said else ""
    return (
        f"Solved tasks can be counted by the {kind} of the seeds, as one would in the printed "
        f"tables, or in each seed alone, as our verdicts do.{ours}{few_seeds(data['seeds'])} "
        f"{{numref}}`tab-findings-{paper}-solved` has both, and the other readings; "
        f"{{numref}}`fig-findings-{paper}-seeds` has the seeds, task by task.\n\n{body}\n"
        f"```{{raw}} html\n{_solved_map(runs, data).html}\n```\n"
    )


def _solved_map(runs: Runs, data: pd.DataFrame) -> Exhibit:
    """A cell per row and task: seeds that solve the longest test, framed if it is printed so."""
    name, level = f"findings-{runs.experiment.paper}-seeds", load_margins().levels["solved"]
    data = data[data["test"] == data["task"].map(lambda task: runs.tests[task][-1])]
    rows = [row for row in runs.rows if len(_of(data, *row))]
    tasks = [task for task in runs.tasks if task in set(data["task"])]

    def draw(layout: Layout) -> Figure:
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
            for cell in _of(data, *row).itertuples():
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
            for cell in _of(data, *row).itertuples()
        )
        for row in rows
    )
    caption = (
        f"Who solves the longest test? How many of {plural(most, 'seed')} have at least "
        f"{level.at_least:g} % of the outputs of a task's longest test right to the last symbol "
        "(fewer seeds are named). Framed: the paper prints as much."
    )
    return _exhibit(draw, name, caption, f"Seeds that solve the longest test. {alt}.", data, runs)


def _solved_alone(runs: Runs, model: str, arm: str, cells: pd.DataFrame) -> pd.Series:
    """By seed, in how many tasks every test of these cells is solved; of the seeds of all tasks."""
    level, tasks = load_margins().levels["solved"], []
    for task, tests in cells.groupby("task")["test"]:
        seeds = [record["spec"]["seed"] for record in runs.cell(model, arm, task)]
        values = zip(*(runs.values(model, arm, task, test) for test in tests), strict=True)
        tasks.append(pd.Series([all(map(level.holds, of)) for of in values], index=seeds))
    return pd.concat(tasks, axis=1, join="inner").sum(axis=1).sort_index()


RULES = {
    "selected": "by the rule of the paper",
    "best_iid": "at the best checkpoint on known lengths",
    "last": "at the last checkpoint",
}
RULE = {
    "mla": "The paper's rule looks at a development set that reaches up to the first length beyond "
    "training, and not further.",
    "panm": "The paper's rule looks at the first length beyond training, L+1, and not further.",
}


def selection(paper: str, survey: Survey) -> str:
    """What the choice of the checkpoint is worth, at the first length beyond training and later."""
    runs = busiest(survey, TABLES[paper])
    judged = [
        record
        for record in runs.records
        for model in [record["spec"]["model"]]
        if runs.experiment.judges(row_name(model), model["arm"])
    ]
    if not judged:
        return NOTHING
    metric, level = runs.experiment.measure, load_margins().levels["solved"]

    def results(rule: str, place: int) -> np.ndarray:
        tests = (r["checkpoints"][rule]["tests"] for r in judged)
        return 100 * np.array([list(test.values())[place][metric] for test in tests])

    solved = (f"{sum(map(level.holds, results(rule, -1)))} {said}" for rule, said in RULES.items())
    unit = RIGHT[metric]
    margin = load_margins().measures["accuracy"].around(0)
    parts = []
    tests = min(len(spec.task.tests) for spec in runs.specs)
    for place, where in enumerate(("first", "second", "third", "fourth")[: tests - 1], start=1):
        gain = results("selected", place) - results("best_iid", place)
        parts.append(
            f"at the {where} {signed(gain.mean())} points in the mean (more than {margin:g} points "
            f"gained in {plural((gain > margin).sum(), 'run')}, lost in {(gain < -margin).sum()})"
        )
    return (
        f"Of {len(judged)} runs, so many solve the longest test ({level.at_least:g} % of {unit}): "
        f"{', '.join(solved)}. {RULE[paper]} Against the best checkpoint on known lengths, the one "
        f"that it chooses is better by so much, at the lengths beyond training: {'; '.join(parts)}."
        "\n"
    )


def diverging(paper: str, survey: Survey) -> str:
    """What the first error of failing outputs is, and how much of them is right before it."""
    runs = busiest(survey, TABLES[paper])
    kinds = failures.diverging(runs)["then"].value_counts()
    shown = sum(bool(record.get("attention")) for record in runs.records)
    if kinds.empty:
        return "*No recorded output fails.*\n" if runs.records else NOTHING
    data, levels = ends(runs), load_margins().levels
    lost = data[data["known"].map(levels["solved"].holds) & (data["state"] == "failed")]
    shares = lost.merge(failures.shares(runs), on=["task", "model", "arm", "seed", "test"])
    judged = [
        runs.experiment.judges(*row) for row in zip(shares["model"], shares["arm"], strict=True)
    ]
    right = shares[judged].groupby("model", sort=False)["right_before"].median()
    models = ", ".join(f"{model} {share:.0f} %" for model, share in right.items())
    said = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return (
        "Every run records its output for one test sample longer than those of training. Of these "
        f"{shown}, in all readings, {kinds.sum()} fail, by their first error: **{said}**. Where a "
        "run of a judged reading knows its lengths and fails the longest test, the first part of "
        f"its wrong outputs is right, in the median up to: {models}.\n"
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
    return _exhibit(draw, name, caption, f"Readings against the paper. {told}.", frame, shown)


def _reading_panel(axes: Axes, frame: pd.DataFrame, tasks: Sequence[str], named: bool) -> None:
    _percent(axes, top=-0.5, bottom=len(tasks) - 0.5)
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


SPEED = "about speed, on a processor's core"


def standing(paper: str, survey: Survey) -> str:
    """Where a paper's claims stand today: a table of verdicts, and what stands behind it."""
    judged = survey.ledger[survey.ledger["paper"] == paper]
    by_runs = judged[judged["page"] == ""]
    kinds = {
        "in words": by_runs[by_runs["prose"]],
        "printed numbers": by_runs[~by_runs["prose"]],
        "computed or simulated": judged[judged["unit"].isin(("simulation", "calculation"))],
        SPEED: judged[judged["unit"] == "round"],
    }
    kinds = {kind: Counter(rows["label"]) for kind, rows in kinds.items() if len(rows)}
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
    parts, runs = [], busiest(survey, TABLES[paper])
    if len(beside := _judged(runs, beside_printed(runs))):
        tables = runs.experiment.tables
        names = dict.fromkeys(published.name_of(tables[place]) for place in (0, -1))
        parts.append(f"{' to '.join(names)}: {_come_out(runs, beside)}{few_seeds(beside['seeds'])}")
    parts.append(_near_by_reading(readings(paper, survey)))
    parts.append(_at_full_scale(paper, survey))
    own = [name for name, found in EXPERIMENTS.items() if found.paper == paper]
    used = survey.runs[survey.runs["experiment"].isin(own) & survey.runs["scale"].isin(SCALES)]
    used = used.drop_duplicates("run_id")
    hours = used["seconds"].sum() / 3600
    trained = f"Behind all of this stand {len(used):,} trainings, which took {hours:,.1f} hours."
    parts.append(trained if len(used) else "No training is recorded yet.")
    return f"{body}\n{' '.join(filter(None, parts))}\n"


def counting(survey: Survey) -> str:
    """What PANM's pointers have right where they are wrong, and how far they count."""
    runs = busiest(survey, TABLES["panm"])
    found = address_bits.faults(runs)
    if found.empty:
        return NOTHING
    said = "On Copy and Reverse, at length 2(L+1). " + " ".join(map(_fault, found.itertuples()))
    made = address_bits.bits_drawing(runs)
    name = "findings-panm-bits"
    shown = _exhibit(made.draw, name, made.caption, made.alt, made.data, made.runs)
    figure = f"```{{raw}} html\n{shown.html}\n```\n"
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


def _exhibit(
    draw: Callable[[Layout], Figure],
    name: str,
    caption: str,
    alt: str,
    data: pd.DataFrame,
    runs: Runs,
) -> Exhibit:
    return figures.drawn(
        draw,
        name,
        caption,
        alt,
        data,
        1,
        runs.page,
        exhibits.specs(name, runs.records),
        kind=badges(runs.scale, runs.freshness),
        prose=True,
    )


PASSAGES = {
    f"findings_{paper}_{name}": partial(passage, paper)
    for name, passage in (
        ("conclusion", conclusion),
        ("printed", printed_numbers),
        ("known", known_is_not_enough),
        ("luck", luck),
        ("reading", which_reading),
    )
    for paper in TABLES
} | {
    **{f"findings_{paper}_chosen": partial(selection, paper) for paper in TABLES},
    "findings_mla_diverging": partial(diverging, "mla"),
    "findings_mla_others": partial(other_tables, "mla"),
    "findings_mla_solved": partial(tasks_solved, "mla"),
    "findings_panm_counting": counting,
    "findings_panm_against": against_baselines,
    **{f"letter_{paper}": partial(standing, paper) for paper in TABLES},
    "in_short": in_short,
}
