"""The figures of a notebook, drawn from recorded runs.

Every seed is drawn, and beside the seeds their median.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median_low
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relength.report import attention as heatmaps
from relength.report import exhibits, reach
from relength.report.exhibits import Exhibit, badges
from relength.report.grid import BAND, NOT_RUN, Grid
from relength.report.runs import Runs
from relength.report.seeds import swarm
from relength.report.style import (
    LAYOUTS,
    LIGHT,
    Layout,
    beside,
    canvas,
    colour,
    frameless,
    style,
    svg,
    title,
)
from relength.report.tables import flat, printed
from relength.report.wording import capital
from relength.runs.store import Record, accuracies, device_seconds, epochs_of
from relength.specs import published, registry
from relength.specs.kinds import TOKENS
from relength.specs.margins import load_margins
from relength.specs.paper import Paper
from relength.specs.spec import row_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOT_A_RESULT = "smoke run: not a result"
Draw = Callable[[Layout], "Figure"]


def exhibit(
    runs: Runs,
    number: int,
    draw: Draw,
    name: str,
    caption: str,
    alt: str,
    data: pd.DataFrame,
    waits: bool = True,
) -> Exhibit:
    """A drawing of runs in both widths, with caption, badges, alt text and downloads.

    caption  its beginning, up to the first full stop, question mark or colon, is the title
    waits    whether without runs there is nothing to be seen
    """
    if waits and not runs.records:
        return exhibits.waiting(caption, f"{runs.page}-{name}", exhibits.training(runs), data)
    return drawn(
        draw,
        f"{runs.page}-{name}",
        caption,
        alt,
        data,
        number,
        runs.page,
        exhibits.specs(f"{runs.page}-{name}", runs.records),
        kind=badges(runs.scale, runs.freshness) or exhibits.COMPUTED,
        smoke=runs.scale == "smoke",
    )


def drawn(
    draw: Draw,
    anchor: str,
    caption: str,
    alt: str,
    data: pd.DataFrame,
    number: int,
    page: str,
    *links: str,
    kind: str = exhibits.COMPUTED,
    smoke: bool = False,
    prose: bool = False,
) -> Exhibit:
    """A drawing in both widths, with caption, badges, alt text and downloads.

    page   the notebook that makes it, or has the same runs
    prose  whether it stands on a page of prose instead of there
    kind   badges that say what it is made from
    smoke  whether it is to be marked as no result
    """
    drawings = {}
    with style():
        for layout in LAYOUTS:
            figure = draw(layout)
            if smoke:
                _watermark(figure)
            drawings[layout.name] = svg(figure, f"{anchor}-{layout.name}")
    made = exhibits.drawn_from(page, draw.__module__) if prose else exhibits.notebook(page)
    every = [exhibits.csv(anchor, data), *links, made]
    said = exhibits.titled(caption, kind)
    html = exhibits.figure(drawings, alt, said, anchor, every, number)
    return Exhibit(html, f"Figure {number}. {alt}", data)


def _watermark(figure: "Figure") -> None:
    place = {"ha": "right", "va": "top", "size": 8, "weight": "bold"}
    figure.text(0.995, 0.998, NOT_A_RESULT, color=LIGHT.warning, **place)


# Accuracy against length


def accuracy(runs: Runs, artifact: str | None = None, *, number: int) -> Exhibit:
    """Accuracy at each test length: every seed, their median, and what the paper prints.

    artifact  the printed table; None for every table of the experiment
    """
    paper = printed(*(runs.experiment.tables if artifact is None else (artifact,)))

    def draw(layout: Layout) -> "Figure":
        from matplotlib.collections import LineCollection

        key = [("dot", "one seed"), ("line", "median"), ("bar", "paper")]
        grid = Grid(runs, layout, key)
        dots: dict[str, list[np.ndarray]] = {}
        bars = []
        for j, tests in enumerate(runs.tests.values()):
            labels = [runs.test_label(runs.tasks[j], test).replace(" ", "") for test in tests]
            grid.ticks(j, _places(tests), labels)
        for i, j, records in runs.panels():
            model, task = runs.rows[i][0], runs.tasks[j]
            tests = runs.tests[task]
            places = _places(tests)
            room = float(np.diff(places).min(initial=1))  # between two tests
            half = min(0.11, 0.45 * room)
            for place, test in zip(places, tests, strict=True):
                if (model, task, test) in paper:
                    ends = [place - half, place + half]
                    bars.append(
                        np.column_stack(
                            grid.points(i, j, ends, [paper[model, task, test] / 100] * 2)
                        )
                    )
            if not records:
                grid.not_run(i, j)
                continue
            # A model that cannot read the longest inputs has no result there.
            shares = [accuracies(record) for record in records]
            values = np.array([[share.get(test, np.nan) for test in tests] for share in shares])
            lines = values if len(values) == 2 else [np.median(values, axis=0)]
            for line in lines:  # two seeds have no median: a line each
                x, y = grid.points(i, j, places, line)
                grid.axes.plot(x, y, lw=1.3 / len(lines), color=colour(model), alpha=0.8, zorder=2)
            for column, place in enumerate(places):
                apart = min(0.05, 0.9 * room / len(records))
                spread = place + apart * (np.arange(len(records)) - (len(records) - 1) / 2)
                dots.setdefault(model, []).append(
                    np.column_stack(grid.points(i, j, spread, values[:, column]))
                )
        band = {"linewidths": BAND, "alpha": 0.3, "capstyle": "butt", "zorder": 1}
        grid.axes.add_collection(LineCollection(bars, colors=LIGHT.ink, **band))
        for model, groups in dots.items():
            x, y = np.concatenate(groups).T
            grid.axes.scatter(x, y, s=7, color=colour(model), linewidth=0, zorder=3)
        return grid.figure

    data = runs.selected[
        ["key", "run_id", "scale", "task", "model", "arm", "seed", "test", "accuracy", "epochs"]
    ]
    seeds = data.groupby(["model", "arm", "task"])["seed"].nunique()
    both = "; of two seeds both are lines" if (seeds == 2).any() else ""
    caption = (
        f"{capital(runs.measured.words)} against length. Read along a row: "
        "the first point is the range of lengths trained on, the others are longer. A model that "
        "generalises keeps a flat line at 100. The usual picture is a cliff. Dots of a cell that "
        f"lie apart are seeds that disagree{both}.{of_means(runs)}"
    )
    return exhibit(runs, number, draw, "accuracy", caption, _accuracy_in_words(runs), data)


def of_means(runs: Runs) -> str:
    """Remark for the caption of a figure of medians whose tables have means; else nothing."""
    if runs.experiment.statistic == "median":
        return ""
    return " The figure has medians; our tables have means, as the paper does."


def _places(tests: Sequence[str]) -> np.ndarray:
    """Horizontal places of the tests, a little room between the lengths trained on and the
    others."""
    return np.array([0.1, *np.linspace(0.4, 0.9, len(tests) - 1)])


def _accuracy_in_words(runs: Runs) -> str:
    level = load_margins().levels["solved"]
    parts = []
    for model, arm in runs.rows:
        done = [t for t in runs.tasks if runs.cell(model, arm, t)]
        solved = [
            title(t)
            for t in done
            if runs.tests[t][-1] in runs.tested(model, arm, t)
            and level.holds(float(np.median(runs.values(model, arm, t, runs.tests[t][-1]))))
        ]
        name = runs.label(model, arm).replace(", ", " ")
        said = ", ".join(solved) if solved else "no task"
        parts.append(f"{name}: {said}" if done else f"{name}: {NOT_RUN}")
    return (
        "Grid of accuracy against length, a column per task and a row per model. Tasks whose "
        f"longest length the median seed solves: {'; '.join(parts)}."
    )


def by_length(runs: Runs, tasks: Sequence[str], number: int) -> Exhibit:
    """Accuracy against length for a few tasks, a line per model in the arm that claims judge."""
    data = reach.judged(runs, None, tasks)
    words = runs.measured.words

    def draw(layout: Layout) -> "Figure":
        return reach.draw(runs, data, tasks, layout)

    rings = " Rings: what the paper prints." if data["paper"].notna().any() else ""
    caption = (
        f"{capital(words)} in percent against length, all models. Lines: the median of our "
        f"seeds, each seed a dot.{rings} The shaded length was trained on. "
        f"{reach.apart(data)}{of_means(runs)}"
    )
    alt = reach.in_words(data, tasks)
    return exhibit(
        reach.judged_runs(runs, tasks), number, draw, "by-length", caption, alt, flat(data)
    )


def seeds(runs: Runs, artifact: str, test: str, number: int) -> Exhibit:
    """Accuracy at one test of one task, a row per model: every seed, our mean and the paper's.

    For tables that print means with their spread.
    """
    (task,) = runs.tasks
    cells = published.table(artifact).query("task == @task and test == @test").set_index("row")
    data = pd.DataFrame(
        [
            {"model": model, "arm": arm, "seeds": runs.values(model, arm, task, test)}
            | cells[["value", "spread"]].reindex([model]).iloc[0].to_dict()
            for model, arm in runs.rows
        ]
    )

    def draw(layout: Layout) -> "Figure":
        high, row = 0.42, 0.25
        tall = high + row * len(data) + 0.3
        left = (1.55 if layout.narrow else 2.05) / layout.width
        figure = canvas(layout, tall)
        axes = figure.add_axes(
            (left, 0.3 / tall, 0.97 - left - (0.62 / layout.width), row * len(data) / tall)
        )
        axes.patch.set_visible(False)
        axes.set(xlim=(0, 100), ylim=(len(data) - 0.5, -0.5), yticks=[])
        axes.set_xticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100 %"])
        axes.tick_params(length=0, labelsize=7, labelcolor=LIGHT.muted)
        axes.grid(axis="x", color=LIGHT.rule, linewidth=0.6)
        axes.set_axisbelow(True)
        frameless(axes)
        for i, cell in enumerate(data.itertuples()):
            shade, label = colour(cell.model), runs.label(cell.model, cell.arm)
            name, _, reading = label.partition(", ")
            words = f"{name}, text" if reading and layout.narrow else label
            heavy = "normal" if reading else "bold"
            beside(axes, words, (0, i), -6, color=shade, size=7.5, weight=heavy)
            ends = [cell.value - cell.spread, cell.value + cell.spread]
            axes.hlines(i, *ends, color=LIGHT.ink, linewidth=BAND, alpha=0.18)
            axes.vlines(cell.value, i - 0.26, i + 0.26, color=LIGHT.ink, linewidth=1, alpha=0.6)
            mean = f"{np.mean(cell.seeds):.1f}" if cell.seeds else NOT_RUN
            beside(axes, mean, (1, i), 6, color=LIGHT.muted, size=7)
        dots = data[["model", "seeds"]].explode("seeds").dropna()
        swarm(axes, dots["seeds"], dots.index, dots["model"].map(colour), size=3.3, bar=None)
        return figure

    caption = (
        f"{title(task)}, {published.name_of(artifact)}: {runs.measured.words} "
        "in percent. Each dot is a seed of ours, their mean stands at the right. Grey: the mean "
        "that the paper prints, and one standard deviation to either side."
    )
    said = "; ".join(
        f"{runs.label(cell.model, cell.arm).replace(', ', ' ')}: "
        f"{f'{np.mean(cell.seeds):.1f}' if cell.seeds else NOT_RUN}, printed {cell.value:g}"
        for cell in data.itertuples()
    )
    alt = f"Every seed and the means, a row per model. Our mean and the printed one: {said}."
    flattened = data.assign(seeds=[" ".join(f"{v:.6g}" for v in found) for found in data["seeds"]])
    return exhibit(runs, number, draw, f"{artifact}-seeds", caption, alt, flattened)


# Learning


def learning(runs: Runs, number: int) -> Exhibit:
    """Development and in-distribution accuracy by epoch, a line per seed.

    Where samples are drawn afresh, an epoch is what lies between two evaluations.
    """
    longest = max(map(epochs_of, runs.records), default=runs.specs[0].training.intervals)
    steps = runs.specs[0].training.interval_steps
    first, last, unit = ("0", longest * steps, "step") if steps else ("1", longest, "epoch")

    def draw(layout: Layout) -> "Figure":
        from matplotlib.collections import LineCollection

        key = [("line", "development set"), ("thin", "lengths trained on")]
        grid = Grid(runs, layout, key)
        for j in range(len(runs.tasks)):
            grid.ticks(j, (0.02, 0.9 if steps else 0.96), (first, f"{last:,}"), unit)
        trained, developed = [], {}
        for i, j, records in runs.panels():
            if not records:
                grid.not_run(i, j)
            for record in records:
                epoch, iid, dev = np.array(
                    [(p["epoch"], p["iid_accuracy"], p["dev_accuracy"]) for p in record["curve"]]
                ).T
                x = (epoch + 0.5) / longest
                trained.append(np.column_stack(grid.points(i, j, x, iid)))
                lines = developed.setdefault(runs.rows[i][0], [])
                lines.append(np.column_stack(grid.points(i, j, x, dev)))
        grid.axes.add_collection(
            LineCollection(trained, colors=LIGHT.ink, linewidths=0.55, alpha=0.6, zorder=1)
        )
        for model, lines in developed.items():
            grid.axes.add_collection(
                LineCollection(lines, colors=colour(model), linewidths=1.1, zorder=2)
            )
        return grid.figure

    data = _curves(runs)
    selected = f"The selected checkpoint has {runs.specs[0].training.selection.words}."
    if all(set(spec.task.dev_splits) == {"validation"} for spec in runs.specs):
        said = f"Held-out samples like those trained on: none is longer. {selected}"
    else:
        said = (
            "Thin: the lengths trained on. Coloured: the development set, at least part of which "
            f"is longer. {selected} The gap between the two is what length generalisation costs."
        )
    caption = f"Learning curves, {_course(runs)}, a line per seed. {said}"
    return exhibit(runs, number, draw, "learning", caption, _learning_in_words(runs), data)


def _course(runs: Runs) -> str:
    """Word what learning curves show, and how often it was measured."""
    first, measure = runs.specs[0], runs.measured.words
    forced = "teacher-forced " if first.task.kind == TOKENS else ""  # others read no targets
    return first.training.course(f"{forced}{measure}")


def _curves(runs: Runs) -> pd.DataFrame:
    """One row per run and epoch."""
    names = ("epoch", "train_loss", "dev_accuracy", "iid_accuracy", "learning_rate")
    rows = [
        {"key": record["key"], **_who(record), **{name: point[name] for name in names}}
        for record in runs.records
        for point in record["curve"]
    ]
    return pd.DataFrame(rows, columns=["key", "task", "model", "arm", "seed", *names])


def _who(record: Record) -> dict[str, object]:
    spec = record["spec"]
    model = spec["model"]
    return {
        "task": spec["task"]["name"],
        "model": row_name(model),
        "arm": model["arm"],
        "seed": spec["seed"],
    }


def _learning_in_words(runs: Runs) -> str:
    parts, solved = [], load_margins().levels["solved"]
    for model, arm in runs.rows:
        last = [
            record["curve"][-1] for task in runs.tasks for record in runs.cell(model, arm, task)
        ]
        name = runs.label(model, arm).replace(", ", " ")
        if last:
            trained = sum(solved.holds(100 * point["iid_accuracy"]) for point in last)
            developed = sum(solved.holds(100 * point["dev_accuracy"]) for point in last)
            parts.append(f"{name}: {trained} and {developed} of {len(last)}")
        else:
            parts.append(f"{name}: {NOT_RUN}")
    return (
        "Grid of learning curves, a column per task and a row per model. Runs that end at "
        f"{solved.at_least:g} percent or more on the lengths trained on, and on the development "
        f"set: {'; '.join(parts)}."
    )


# Attention


def attention(
    runs: Runs,
    number: int,
    tasks: Sequence[str],
    models: Sequence[str],
) -> Exhibit:
    """Draw where models look while they write one sample of unseen length.

    Each cell shows a run of median accuracy at that length.
    """
    records = runs_to_look_at(runs, tasks, models)
    paper = registry.papers()[runs.experiment.paper]
    panels = {cell: _with_spans(run, paper) if run else None for cell, run in records.items()}

    def draw(layout: Layout) -> "Figure":
        return heatmaps.draw(panels, layout)

    asked = "".join(f"{paper.asked[task]} " for task in tasks if task in paper.asked)
    caption = (
        "Where the models look on the first test sample of the shortest unseen length, in a run of "
        "median accuracy there. The source runs from left to right; S and E are its learned start "
        "and end. The output runs from top to bottom. Labels at the left show what was written, "
        "with E for the end; wrong tokens stand out. Depth of colour is attention weight. Boxes "
        f"mark where the answer can be read. {asked}A row that is pale all over has a focus as "
        f"wide as the source.{_seeds_of(records)}"
    )
    said = "; ".join(heatmaps.in_words(*cell, sample) for cell, sample in panels.items())
    alt = f"Attention weights as heat maps, a panel per model and task. {said}."
    shown = runs.only(run for run in records.values() if run)
    return exhibit(shown, number, draw, "attention", caption, alt, heatmaps.weights(panels))


def _with_spans(run: Record, paper: Paper) -> dict[str, Any]:
    """The recorded sample of a run, with the places of its answer if its paper tells them."""
    sample = run["attention"]
    if not paper.spans:
        return sample | {"spans": []}
    task = run["spec"]["task"]["name"]
    return sample | {"spans": paper.load(paper.spans)(task, sample["source"], sample["target"])}


def runs_to_look_at(
    runs: Runs, tasks: Sequence[str], models: Sequence[str]
) -> dict[tuple[str, str], Record | None]:
    """The run that stands for each (task, model) in a figure of attention; None without any."""
    arm = runs.experiment.judged_arm
    return {
        (task, model): _middle_run(runs.cell(model, arm, task))
        for task in tasks
        for model in models
    }


def _middle_run(cell: Sequence[Record]) -> Record | None:
    """Pick the first run with recorded attention whose accuracy is the (lower) median."""
    reached = [(list(accuracies(run).values())[1], run) for run in cell if run.get("attention")]
    if not reached:
        return None
    middle = median_low(accuracy for accuracy, _ in reached)
    return next(run for accuracy, run in reached if accuracy == middle)


def _seeds_of(records: Mapping[tuple[str, str], Record | None]) -> str:
    """Name the seed that stands for each cell, with a space before: Seeds shown: a model, 0 on
    a task.
    """
    said = [
        f"{model} {run['spec']['seed']} on {title(task)}"
        for (task, model), run in records.items()
        if run
    ]
    return f" Seeds shown: {', '.join(said)}." if said else ""


# Cost


def cost(runs: Runs, number: int) -> Exhibit:
    """Wall-clock time of every run, a row per model."""
    data = pd.DataFrame(
        [
            {
                "key": record["key"],
                **_who(record),
                "epochs": epochs_of(record),
                "steps": record["cost"]["steps"],
                "seconds": device_seconds(record),
                "device": record["provenance"]["device_name"],
            }
            for record in runs.records
        ],
        columns=["key", "task", "model", "arm", "seed", "epochs", "steps", "seconds", "device"],
    )

    def draw(layout: Layout) -> "Figure":
        rows = len(runs.rows)
        figure = canvas(layout, 0.56 + 0.27 * rows)
        left = 1.75 if layout.narrow else 2.05
        height = figure.get_size_inches()[1]
        axes = figure.add_axes(
            (
                left / layout.width,
                0.36 / height,
                1 - (left + 0.55) / layout.width,
                0.27 * rows / height,
            )
        )
        axes.patch.set_alpha(0)
        axes.set(xscale="log", ylim=(rows - 0.5, -0.5), yticks=[])
        for i, (model, arm) in enumerate(runs.rows):
            label = runs.label(model, arm)
            beside(axes, label, (0, i), -6, color=colour(model), size=7.5, weight="bold")
            seconds = data["seconds"][(data["model"] == model) & (data["arm"] == arm)]
            words = _clock(seconds.sum()) if len(seconds) else NOT_RUN
            beside(axes, words, (1, i), 6, color=LIGHT.muted, size=7)
        _seconds_axis(axes, data["seconds"])
        places = [runs.rows.index((run.model, run.arm)) for run in data.itertuples()]
        swarm(axes, data["seconds"], places, data["model"].map(colour), size=3.2, alpha=0.75)
        return figure

    hours = data["seconds"].sum() / 3600
    medians = data.groupby(["model", "arm"], sort=False)["seconds"].median()
    said = "; ".join(f"{m} ({a}): {_clock(s)}" for (m, a), s in medians.items()) or NOT_RUN
    caption = (
        "What a training takes. A dot is the wall-clock time of a run with its evaluation, on a "
        "logarithmic axis. The bar marks the median; the total stands at the right. All runs "
        f"together took {hours:.1f} hours of a core or of a GPU."
        if len(data)
        else "What a training takes. Nothing is recorded at this scale yet."
    )
    alt = f"Wall-clock time of every run, a row per model. Medians: {said}."
    return exhibit(runs, number, draw, "cost", caption, alt, data)


# Seconds that an axis may be labelled at.
LADDER = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 2400),
    *(3600, 7200, 21600),
)
LABEL = 0.48  # inches from one label to the next: "1.5 min" and a gap


def _seconds_axis(axes, seconds: pd.Series) -> None:
    low, high = (seconds.min(), seconds.max()) if len(seconds) else (30, 1200)
    low, high = low / 1.3, high * 1.3
    axes.set_xlim(low, high)
    inches = axes.get_position().width * axes.figure.get_figwidth() / np.log(high / low)
    ticks: list[float] = []
    for step in LADDER:
        room = not ticks or np.log(step / ticks[-1]) * inches >= LABEL
        if low <= step <= high and room:
            ticks.append(step)
    axes.set_xticks(ticks, [_clock(s) for s in ticks])
    axes.set_xticks([], minor=True)
    axes.tick_params(colors=LIGHT.muted, labelsize=7, length=3)
    axes.grid(axis="x", color=LIGHT.rule, linewidth=0.6)
    axes.set_axisbelow(True)
    frameless(axes, base=True)


def _clock(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2g} s"
    if seconds < 3570:
        return f"{seconds / 60:.2g} min"
    hours = max(seconds / 3600, 1)  # from 59.5 minutes on, which would be rounded to 60
    return f"{hours:.2g} h" if hours < 10 else f"{hours:.0f} h"
