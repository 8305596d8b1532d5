"""Table 2: PANM beside the best of the others in eight groups of tasks, from whatever is recorded.

A group's number is an average over the settings of its tables. Ours averages the same settings, as
far as both sides have runs in them; how many that are is said beside it. A setting counts at scale
paper where both sides have the seeds that a verdict takes there, else at scale reduced.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from relength.report import exhibits
from relength.report.exhibits import Exhibit, rows_table
from relength.report.figures import drawn
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import LIGHT, Layout, aligned, canvas, colour, frameless
from relength.report.tables import short
from relength.report.wording import span
from relength.runs.store import Store
from relength.specs import published, registry
from relength.specs.experiments import experiment
from relength.specs.margins import load_margins
from relength.specs.published import name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE, ARTIFACT = "panm_summary", "panm-table-2"
OURS, BEST = "PANM (Ours)", "Best Baseline"


class Source(NamedTuple):
    """The place of the settings of a group: an experiment and some of its artifacts.

    pointers  the row with PANM
    rivals    the rows it is compared with, in each setting with the best; none: all other rows
    """

    experiment: str
    artifacts: tuple[str, ...]
    pointers: str
    rivals: tuple[str, ...] = ()


class Group(NamedTuple):
    """A column of Table 2, and what it averages over.

    lower    whether less is better
    instead  the paper's pretrained model, where scale reduced has a small one from scratch instead
    """

    column: str
    words: str
    sources: tuple[Source, ...]
    lower: bool = False
    instead: str = ""

    @property
    def sign(self) -> int:
        return -1 if self.lower else 1


PLAIN = ("TRM", "TRM+RPE", "U. TRM", "U. TRM+RPE")  # of which some may have no runs
GROUPS = (
    Group(
        "algorithmic_reasoning",
        "Algorithms",
        (Source("panm_algorithmic", tuple(f"panm-table-{n}" for n in range(13, 19)), "PANM"),),
    ),
    Group(
        "dyck",
        "Dyck languages",
        (Source("panm_dyck", ("panm-fig-3a",), "PANM on SRNN", ("SRNN",)),),
    ),
    Group(
        "compositional",
        "SCAN and mathematics",
        (
            Source("panm_scan", ("panm-table-4",), "PANM on TRM", PLAIN),
            Source("panm_mathematics", ("panm-table-19",), "PANM on TRM+RPE", PLAIN),
        ),
    ),
    Group(
        "babi_qa",
        "bAbI",
        (Source("panm_babi", ("panm-table-5",), "PANM on TRM", ("TRM", "U. TRM+RPE")),),
    ),
    Group(
        "squad_qa",
        "SQuAD",
        (Source("panm_squad", ("panm-table-6",), "PANM on BERT", ("BERT",)),),
        instead="BERT",
    ),
    Group(
        "machine_translation",
        "Translation",
        tuple(
            Source("panm_translation", ("panm-fig-3b-left",), f"PANM on TRM{n}", (f"TRM{n}",))
            for n in (", 1 layer", ", 2 layers", "")
        ),
        lower=True,
    ),
    Group(
        "llm_algorithmic",
        "Language models, algorithms",
        (Source("panm_language", ("panm-table-7",), "PANM on Llama", ("Llama",)),),
        instead="Llama2-7B",
    ),
    Group(
        "big_bench",
        "Language models, BIG-bench",
        (Source("panm_bigbench", ("panm-table-8",), "PANM on Llama", ("Llama",)),),
        instead="Llama2-7B",
    ),
)


class Summary(NamedTuple):
    """One group: what the paper prints and what we have.

    settings  a row per setting in which both sides have runs. Columns: experiment, task, test,
              scale, seeds (the fewer of both), ours, best, rival (the row that is best), known
              (percent that the better of the two has right on the lengths of training; NaN where
              the measure counts nothing right)
    of        settings of the group in all, as many as the larger of the two scales has
    """

    group: Group
    printed: tuple[float, float]
    settings: pd.DataFrame
    of: int

    @property
    def found(self) -> tuple[float, float] | None:
        """Our averages with pointers and of the best others; None without runs."""
        if self.settings.empty:
            return None
        return float(self.settings["ours"].mean()), float(self.settings["best"].mean())


def summaries(store: Store, seeds: int) -> list[Summary]:
    """All eight groups, from the first ``seeds`` seeds that a store has."""
    said = published.table(ARTIFACT).set_index(["row", "column"])["value"]
    found = []
    for group in GROUPS:
        settings, of = [], 0
        for source in group.sources:
            cells = {
                scale: Runs.read(experiment(source.experiment), scale, seeds, store)
                for scale in ("paper", "reduced")
            }
            wanted = max((_settings(source, runs) for runs in cells.values()), key=len)
            of += len(wanted)
            settings += [row for cell in wanted if (row := _compared(source, cells, *cell, group))]
        columns = ["experiment", "task", "test", "scale", "seeds", "ours", "best", "rival", "known"]
        printed = tuple(float(said[row, group.column]) for row in (OURS, BEST))
        table = pd.DataFrame(settings, columns=columns)
        found.append(Summary(group, printed, table, of))
    return found


def _settings(source: Source, runs: Runs) -> list[tuple[str, str]]:
    """List (task, test) of the settings that a group averages over.

    Of a table these are the tests that it prints, of a figure all beyond the lengths trained on.
    """
    found: dict[tuple[str, str], None] = {}
    for artifact in source.artifacts:
        if published.prints_tests(artifact):
            cells = published.table(artifact)[["task", "test"]]
            printed = cells.itertuples(index=False, name=None)
            found |= dict.fromkeys((t, n) for t, n in printed if n in runs.tests.get(t, ()))
        else:
            made = {s.task.name for s in runs.specs if runs.experiment.makes(artifact, s)}
            longer = {task: tests[1:] for task, tests in runs.tests.items() if task in made}
            found |= dict.fromkeys((t, n) for t, tests in longer.items() for n in tests)
    return list(found)


def _compared(
    source: Source, at: dict[str, Runs], task: str, test: str, group: Group
) -> tuple[object, ...] | None:
    """One setting, as a row of :class:`Summary`; None where a side has no runs."""
    least = load_margins().least_seeds
    options = []
    for scale, runs in at.items():
        if test not in runs.tests.get(task, ()):
            continue
        arms, shown = runs.experiment.judged_arms, runs.experiment.shown
        values = {
            row: runs.values(row, arms[row], task, test, shown)
            for row in (source.pointers, *(source.rivals or arms))
        }
        ours = values.pop(source.pointers)
        others = {row: own for row, own in values.items() if own}
        if not ours or not others:
            continue
        best = max(others, key=lambda row: group.sign * runs.middle(others[row]))
        counted = min(len(ours), len(others[best]))
        numbers = counted, runs.middle(ours), runs.middle(others[best]), best
        trained = [
            runs.middle(own)
            for row in (source.pointers, best)
            if (own := runs.values(row, arms[row], task, runs.tests[task][0], shown))
        ]
        known = np.nan if group.lower else max(trained, default=np.nan)
        options.append((source.experiment, task, test, scale, *numbers, known))
    full = [option for option in options if option[4] >= least]
    return next(iter(full or sorted(options, key=lambda option: -option[4])), None)


def data(found: list[Summary]) -> pd.DataFrame:
    """A row per group. Columns: group, printed_panm, printed_best, panm, best (ours, NaN without
    runs), settings (with runs on both sides), of, seeds (fewest), scales.
    """
    rows = []
    for one in found:
        ours = one.found or (np.nan, np.nan)
        few = one.settings["seeds"].min() if len(one.settings) else 0
        scales = " and ".join(dict.fromkeys(one.settings["scale"]))
        rows.append((one.group.words, *one.printed, *ours, len(one.settings), one.of, few, scales))
    columns = ["group", "printed_panm", "printed_best", "panm", "best", "settings", "of", "seeds"]
    return pd.DataFrame(rows, columns=[*columns, "scales"])


def table(found: list[Summary]) -> Exhibit:
    """Printed and own averages, a row per group, and what stands behind ours."""
    rows = []
    for one in found:
        ours = [f"{value:.1f}" for value in one.found or ()] or [f"<small>{NOT_RUN}</small>"] * 2
        printed = [f"{value:.1f}" for value in one.printed]
        rows.append((one.group.words, *printed, *ours, _ahead(one), _basis(one)))
    columns = {
        "tasks": "text",
        "PANM, printed": "number",
        "best other, printed": "number",
        "PANM, ours": "number",
        "best other, ours": "number",
        "ahead": "text",
        "from": "prose",
    }
    caption = (
        f"<b>{name_of(ARTIFACT)} of the paper, beside ours.</b> {exhibits.COMPUTED} Percent; of "
        "translation, perplexity, where less is better. Ours averages the settings that both sides "
        "have runs in, so that it may stand for fewer than the paper's. <i>Ahead</i> compares the "
        "two averages, by the margin of verdicts, and judges nothing: verdicts stand on the pages "
        "of the groups. Where the paper "
        f"has {' or '.join(pretrained())}, ours at scale reduced are small networks from scratch, "
        "and say nothing of these."
    )
    links = [exhibits.csv(PAGE, data(found)), exhibits.notebook(PAGE)]
    html = exhibits.table(rows_table(columns, rows), caption, f"{PAGE}-table", links)
    return Exhibit(html, numbers(found), data(found))


def _ahead(one: Summary) -> str:
    """Name who is ahead in our runs by more than the margin; in the paper it is always PANM."""
    if one.found is None:
        return "–"
    panm, best = one.found
    shown = registry.metric(experiment(one.settings["experiment"].iloc[0]).shown)
    if abs(panm - best) <= load_margins().measures[shown.margin or "accuracy"].around(best):
        return "level"
    return "PANM" if one.group.sign * (panm - best) > 0 else "the other"


def _basis(one: Summary) -> str:
    """Say from how many settings, seeds and which scale our averages are."""
    if one.settings.empty:
        return f"none of {one.of} settings"
    seeds = span(one.settings["seeds"], "seed")
    scales = " and ".join(dict.fromkeys(one.settings["scale"]))
    rivals = ", ".join(dict.fromkeys(one.settings["rival"]))
    said = f"{len(one.settings)} of {one.of} settings, {seeds} at scale {scales}; {rivals}"
    if idle := int(_failed(one).sum()):
        best = short(one.settings["known"][_failed(one)].max())
        said += f"; in {idle} of these settings the better side has at most {best} % right even on "
        said += "the trained lengths"
    return f"{said}; small and from scratch, not {one.group.instead}" if small(one) else said


def unlearned(one: Summary) -> bool:
    """Tell whether no setting that ran is learnt: longer inputs then tell nothing of pointers."""
    return one.found is not None and bool(_failed(one).all())


def _failed(one: Summary) -> pd.Series:
    """Tell of each setting whether even the trained lengths fail, by the margins' own level."""
    return load_margins().levels["failed"].holds(one.settings["known"])


def small(one: Summary) -> bool:
    """Tell whether our averages have small networks where the paper has a pretrained model."""
    return bool(one.group.instead) and "reduced" in set(one.settings["scale"])


def pretrained() -> list[str]:
    """The pretrained models of the paper."""
    return list(dict.fromkeys(group.instead for group in GROUPS if group.instead))


def figure(found: list[Summary], number: int) -> Exhibit:
    """Draw one arrow per group from the best other to PANM: printed in grey, ours in colour."""

    def draw(layout: Layout) -> "Figure":
        left, row, head, foot = (0.1, 0.62, 0.3, 0.3) if layout.narrow else (2.1, 0.42, 0.3, 0.3)
        height = head + row * len(found) + foot
        drawing, size = canvas(layout, height), np.array([layout.width, height] * 2)
        place = np.array([left, foot, layout.width - left - 0.35, row * len(found)])
        axes = drawing.add_axes(place / size)
        axes.patch.set_visible(False)
        axes.set(xlim=(0, 100), ylim=(len(found) - 0.5, -0.5))
        axes.set_xticks([0, 25, 50, 75, 100])
        axes.set_yticks([])
        axes.tick_params(length=0, labelsize=7, labelcolor=LIGHT.muted)
        axes.grid(axis="x", color=LIGHT.rule, linewidth=0.6)
        frameless(axes)
        for y, one in enumerate(found):
            if layout.narrow:
                axes.text(0, y - 0.32, one.group.words, size=7.5, weight="bold", color=LIGHT.ink)
            else:
                side = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
                axes.text(-0.02, y, one.group.words, size=8, weight="bold", color=LIGHT.ink, **side)
            _arrow(axes, y - 0.13, one.printed, LIGHT.muted, "paper" if y == 0 else "")
            if one.found:
                _arrow(axes, y + 0.17, one.found, colour("PANM"), "ours" if y == 0 else "")
            else:
                words = {"size": 6.5, "style": "italic", "va": "center", "color": LIGHT.muted}
                axes.text(1, y + 0.17, NOT_RUN, **words)
        return drawing

    caption = (
        "What does PANM add? From the best other model (ring) to PANM (dot), averages over the "
        "settings of a group: grey as printed, coloured as we have it. Percent; of translation "
        "perplexity, where an arrow to the left is a gain."
    )
    parts = [
        f"{one.group.words}: {one.printed[1]:.1f} to {one.printed[0]:.1f} printed, "
        + (f"{one.found[1]:.1f} to {one.found[0]:.1f} ours" if one.found else NOT_RUN)
        for one in found
    ]
    alt = f"Averages of the best other model and of PANM. {'; '.join(parts)}."
    return drawn(draw, f"{PAGE}-figure", caption, alt, data(found), number, PAGE)


def _arrow(axes: "Axes", y: float, ends: tuple[float, float], shade: str, words: str) -> None:
    """A line from the best other's ring to PANM's dot, with words beside the one on the right."""
    panm, best = ends
    axes.plot([best, panm], [y, y], color=shade, linewidth=1.4, zorder=2)
    axes.scatter([best], [y], s=22, facecolors=LIGHT.page, edgecolors=shade, zorder=3)
    axes.scatter([panm], [y], s=26, color=shade, zorder=3)
    if words:
        axes.annotate(
            words,
            (max(ends), y),
            (6, 0),
            textcoords="offset points",
            va="center",
            size=7,
            color=shade,
        )


def numbers(found: list[Summary]) -> str:
    """The table as plain text; in brackets the paper's values."""
    rows = [["tasks", "PANM", "best other", "settings"]]
    for one in found:
        ours = [f"{value:.1f}" for value in one.found] if one.found else [NOT_RUN] * 2
        cells = [f"{own} ({said:.1f})" for own, said in zip(ours, one.printed, strict=True)]
        rows.append([one.group.words, *cells, f"{len(one.settings)} of {one.of}"])
    return "\n".join([f"{name_of(ARTIFACT)}: averages of ours (paper's)", *aligned(*rows)])


def leads(found: list[Summary]) -> str:
    """Count the groups in which PANM is ahead, of those with runs."""
    ran = [one for one in found if one.found]
    ahead = [one.group.words for one in ran if _ahead(one) == "PANM"]
    named = f": {', '.join(ahead)}" if ahead else ""
    idle = [one.group.words for one in ran if unlearned(one)]
    other = [one.group.words for one in ran if small(one)]
    learned, apart = "", ""
    if idle:
        learned = (
            f" The better side has less than {load_margins().levels['failed'].below:g} % right "
            "even on the lengths of training, so that longer ones tell nothing, in: "
            f"{', '.join(idle)}."
        )
    if other:
        apart = (
            " Small networks from scratch stand for the paper's pretrained ones in: "
            f"{', '.join(other)}."
        )
    return (
        f"The paper has PANM ahead in all {len(found)} groups. Of the {len(ran)} with runs, it is "
        f"ahead by more than the margin in {len(ahead) or 'none'}{named}.{learned}{apart}"
    )
