"""The centre of focus over decoding steps: the path that an attention takes through the source.

The centre is the mean position under the attention weights, the paper's ``pa_t`` (Section 4.3),
here in positions instead of shares of the source. It is read from the sample that each record
keeps, the first of the shortest unseen length, which is the same for all models and seeds of a
task. Beside it stands the path that the task asks for: where each output symbol can be read off.
"""

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from relength.models.seq2seq.attentions import ATTENTIONS, BY_LOCATION
from relength.papers.mla.focusing import ROOM, attended, centre
from relength.papers.mla.spans import answer_spans
from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges
from relength.report.figures import exhibit
from relength.report.grid import BAND, NOT_RUN, Grid
from relength.report.runs import Runs
from relength.report.style import LIGHT, Layout, aligned, colour, title
from relength.runs.store import Record
from relength.specs.margins import load_margins
from relength.verdicts.wording import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = ("forward", "back", "neither")
MEASURES = {
    "needed": "step needed",
    "taken": "step taken",
    "spread": "spread",
    "back": "steps back",
    "offset": "offset",
    "on_path": "on path",
}


def spread(sample: dict) -> np.ndarray:
    """Standard deviation of the attended position at each step, as long as :func:`centre`."""
    weights = attended(sample)
    places = np.arange(weights.shape[1])
    return np.sqrt(np.maximum(0, weights @ places**2 - (weights @ places) ** 2))


def path(task: str, source: list[str], target: list[str]) -> np.ndarray:
    """First and last position (steps, 2) from which each symbol of the target can be read off.

    In a task that asks for the source backwards it runs backwards, and ends at START.

    >>> path("copy", ["START", "4", "7", "END"], ["4", "7", "EOS"])[:, 0].tolist()
    [1, 2, 3]
    >>> path("reverse_copy", ["START", "4", "7", "END"], ["7", "4", "EOS"])[:, 0].tolist()
    [2, 1, 0]
    """
    last = len(source) - 1
    if task == "reverse_lookup":  # the input stands before "."; the first table, read last, at 1
        return np.array([(place, place) for place in range(last - 2, -1, -1)])
    if "reverse_" in task:
        forward = path(task.replace("reverse_", ""), _turned(source), target)
        return last - forward[:, ::-1]
    if task == "lookup":  # the input, then one table a step; "." asks for the end
        return np.array([(place, place) for place in range(1, last)])
    return np.array(answer_spans(task, source, target))


def _turned(source: list[str]) -> list[str]:
    """The source read backwards, its marks in their places."""
    return [source[0], *source[-2:0:-1], source[-1]]


def wanted(model: str, task: str, sample: dict, focus: np.ndarray) -> np.ndarray:
    """The path for a model: where it may read the source in both directions, the nearer of the two.

    A model that turns its encodings counts positions in the turned order.
    """
    asked = path(task, sample["source"], sample["target"])
    if not _turns(model):
        return asked
    turned = len(sample["source"]) - 1 - asked[:, ::-1]
    return min((asked, turned), key=lambda way: _distance(way, focus).mean())


def as_asked(model: str, task: str, sample: dict) -> tuple[np.ndarray, np.ndarray, bool]:
    """The focus and the path in the direction of the task, and whether the model took the other.

    Seeds of one model may turn differently; turned back they can be compared with one path.
    """
    focus, asked = centre(sample), path(task, sample["source"], sample["target"])
    if np.array_equal(wanted(model, task, sample, focus), asked):
        return focus, asked, False
    return len(sample["source"]) - 1 - focus, asked, True


def _turns(model: str) -> bool:
    """Tell whether a model interpolates its encodings with their reversal (Section 5.2)."""
    return ATTENTIONS[model].bidirectional


def _distance(way: np.ndarray, focus: np.ndarray) -> np.ndarray:
    """Positions between the focus and the answer, 0 on it."""
    way = way[: len(focus)]
    return np.maximum(0, np.maximum(way[:, 0] - focus, focus - way[:, 1]))


def _samples(runs: Runs) -> Iterator[tuple[str, str, str, Record, dict]]:
    for model, arm in runs.rows:
        for task in runs.tasks:
            for record in runs.cell(model, arm, task):
                if record.get("attention"):
                    yield model, arm, task, record, record["attention"]


def _over_steps(runs: Runs, layout: Layout, key: list[tuple[str, str]]) -> Grid:
    """An empty panel per model and task: positions over the decoding steps of its sample."""
    grid = Grid(runs, layout, key)
    lengths = {task: len(sample["target"]) for _, _, task, _, sample in _samples(runs)}
    for j, task in enumerate(runs.tasks):
        if task in lengths:
            grid.ticks(j, (0.04, 0.94), ("1", str(lengths[task])), "step")
    for i, j, records in runs.panels():
        if not any(record.get("attention") for record in records):
            grid.not_run(i, j)
    return grid


def paths(runs: Runs, number: int) -> Exhibit:
    """The centre of focus over decoding steps, a panel per model and task, a line per seed."""
    rows = []

    def draw(layout: Layout) -> "Figure":
        key = [("line", "centre of focus, a line per seed"), ("bar", "answer")]
        grid = _over_steps(runs, layout, key)
        places = {pair: k for k, pair in enumerate(runs.rows)}
        for model, arm, task, record, sample in _samples(runs):
            i, j = places[model, arm], runs.tasks.index(task)
            (focus, way, _), last = as_asked(model, task, sample), len(sample["source"]) - 1
            steps = np.linspace(0, 1, len(sample["target"]))
            if record is runs.cell(model, arm, task)[0]:  # the same for every seed
                x, y = grid.points(i, j, steps, way.mean(1) / last)
                grid.axes.plot(x, y, color=LIGHT.ink, lw=BAND, alpha=0.2, zorder=1)
            x, y = grid.points(i, j, steps[: len(focus)], focus / last)
            grid.axes.plot(x, y, color=colour(model), lw=1.1, alpha=0.85, zorder=2)
        return grid.figure

    for model, arm, task, record, sample in _samples(runs):
        focus, way, turned = as_asked(model, task, sample)
        who = {"task": task, "model": model, "arm": arm, "seed": record["spec"]["seed"]}
        who["turned"] = turned
        rows += [
            {**who, "step": t, "centre": round(float(place), 3), "first": a, "last": b}
            for t, (place, (a, b)) in enumerate(zip(focus, way[: len(focus)], strict=True))
        ]
    names = ["task", "model", "arm", "seed", "turned", "step", "centre", "first", "last"]
    data = pd.DataFrame(rows, columns=names)
    caption = (
        "The paths of attention through one sample of the shortest unseen length. Decoding steps "
        "run from left to right, source positions from the start (0) to the end (100). Grey marks "
        "where the answer stands. A model on the grey path reads each symbol as it writes it. A "
        "model on a parallel line reads at a fixed distance. A line ends where the model ends its "
        "output. Some models may turn the source around; a line that fits the answer better "
        "backwards is drawn backwards."
    )
    alt = (
        "Grid of the centre of attention against decoding step, a column per task and a row per "
        f"model. {_in_words(runs)}."
    )
    return exhibit(runs, number, draw, "paths", caption, alt, data)


def steps(runs: Runs) -> pd.DataFrame:
    """One row per run: what its focus does on its sample.

    Columns: task, model, arm, seed; needed and taken, the longest step forward that the answer asks
    for and that the focus takes, in positions; spread, the standard deviation of the weights that
    it arrives at with this step; back, percent of steps that go back by more than ROOM; offset, how
    far ahead of the answer the focus is, its median over the steps; on_path, percent of steps
    within ROOM of the answer moved by that offset, since an encoder that reads in both directions
    may tell of a symbol at its neighbour's place; right, whether the sample is.
    """
    rows = []
    for model, arm, task, record, sample in _samples(runs):
        focus, width = centre(sample), spread(sample)
        way = wanted(model, task, sample, focus)
        if way[0, 0] > way[-1, 0]:  # asked for backwards: counted as steps forward
            last = len(sample["source"]) - 1
            focus, way = last - focus, last - way[:, ::-1]
        moves = np.diff(focus) if len(focus) > 1 else np.zeros(1)
        offset = float(np.median(focus - way[: len(focus)].mean(1)))
        rows.append(
            {
                **{"task": task, "model": model, "arm": arm, "seed": record["spec"]["seed"]},
                "needed": float(np.diff(way.mean(1)).max()),
                "taken": float(moves.max()),
                "spread": float(width[1:][moves.argmax()] if len(focus) > 1 else width[0]),
                "back": 100 * float((moves < -ROOM).mean()),
                "offset": offset,
                "on_path": 100 * float((_distance(way + offset, focus) <= ROOM).mean()),
                "right": sample["prediction"][: len(sample["target"])] == sample["target"],
            }
        )
    return pd.DataFrame(rows, columns=["task", "model", "arm", "seed", *MEASURES, "right"])


def walks(runs: Runs) -> pd.DataFrame:
    """One row per run with a focus: which way it walks over the source, from its first step on.

    Counted in the order in which the model reads the source, turned around where it turned it.
    Columns: task, model, arm, seed; ahead and back, how many moves of more than ROOM go either way
    on its sample; way (of WAYS: the one that more of them go; neither, too, if the focus has left
    the source); peak, the furthest position that it comes to, and end, where the source ends; knows
    and solves, whether the lengths trained on and the longest test are solved.
    """
    level, rows = load_margins().levels["solved"].holds, []
    for model, arm, task, record, sample in _samples(runs):
        if record["spec"]["model"]["name"] not in BY_LOCATION:
            continue
        places = centre(sample)
        moves = np.diff(places)  # not the jump to the first place, which is where the walk begins
        ahead, back = int((moves > ROOM).sum()), int((moves < -ROOM).sum())
        way = WAYS[0] if ahead > back else WAYS[1] if back > ahead else WAYS[2]
        way = WAYS[2] if np.isnan(places).any() else way
        tests = record["checkpoints"]["selected"]["tests"]
        ends = (runs.tests[task][0], runs.tests[task][-1])
        knows, solves = (level(100 * tests[name]["exact_match"]) for name in ends)
        who = (task, model, arm, record["spec"]["seed"])
        path = (ahead, back, way, np.nanmax(places), len(sample["source"]) - 1)
        rows.append((*who, *path, knows, solves))
    who = ["task", "model", "arm", "seed"]
    data = pd.DataFrame(
        rows, columns=[*who, "ahead", "back", "way", "peak", "end", "knows", "solves"]
    )
    return data.astype({"knows": bool, "solves": bool})


def by_way(data: pd.DataFrame) -> dict[tuple[str, str], dict[str, int]]:
    """Count runs by (model, arm) and way of :data:`WAYS`; data: of :func:`walks`."""
    cells = data.groupby(["model", "arm"], sort=False)["way"]
    return {row: {way: int((own == way).sum()) for way in WAYS} for row, own in cells}


def without_a_walk(runs: Runs) -> list[str]:
    """Tasks without a run of a model with a focus; none where there is no run at all."""
    records = (r for r in runs.records if r["spec"]["model"]["name"] in BY_LOCATION)
    begun = {record["spec"]["task"]["name"] for record in records}
    return [task for task in runs.tasks if task not in begun] if begun else []


def ways(runs: Runs, number: int) -> Exhibit:
    """The paths that :func:`walks` counts, as the models walk them: a panel per model and task.

    Tasks without a run have no column, but where there is no run at all.
    """
    records = [r for r in runs.records if r["spec"]["model"]["name"] in BY_LOCATION]
    waiting = without_a_walk(runs)
    begun = [task for task in runs.tasks if task not in waiting]
    runs = replace(
        runs,
        specs=tuple(
            spec
            for spec in runs.specs
            if spec.model.name in BY_LOCATION and spec.task.name in begun
        ),
        records=tuple(records),
    )
    data = walks(runs)
    solves = data.set_index(["task", "model", "arm", "seed"])["solves"]

    def draw(layout: Layout) -> "Figure":
        key = [("line", "in colour: solves the longest test"), ("thin", "thin: does not")]
        grid = _over_steps(runs, layout, key)
        places = {pair: k for k, pair in enumerate(runs.rows)}
        for model, arm, task, record, sample in _samples(runs):
            who = (task, model, arm, record["spec"]["seed"])
            focus, last = centre(sample), len(sample["source"]) - 1
            steps = np.linspace(0, 1, len(sample["target"]))[: len(focus)]
            i, j = places[model, arm], runs.tasks.index(task)
            x, y = grid.points(i, j, steps, focus / last)
            look = {"color": colour(model), "lw": 1.3, "zorder": 2}
            grid.axes.plot(x, y, **(look if solves[who] else {"color": LIGHT.ink, "lw": 0.8}))
        return grid.figure

    caption = (
        "Which way they walk. A line is the centre of focus of one run on the first sample of the "
        "shortest unseen length. Decoding steps run from left to right, positions of the source "
        "from the first (0) to the last (100). Where a model turned the source around, so is it "
        "here. A line that rises walks forward; a line that falls walks back."
        + (f" Not run yet: {', '.join(map(title, waiting))}." if waiting else "")
    )
    counts = [
        f"{runs.label(*row).replace(', ', ' ')}: "
        + ", ".join(f"{count} {way}" for way, count in own.items())
        for row, own in by_way(data).items()
    ]
    alt = (
        "Grid of the centre of attention against decoding step, a column per task and a row per "
        f"model. Runs by the way that they walk: {'; '.join(counts) or NOT_RUN}."
    )
    return exhibit(runs, number, draw, "ways", caption, alt, data)


def table(runs: Runs) -> Exhibit:
    """The medians of :func:`steps`, a row per task and model."""
    data = steps(runs)
    columns = {"task": "text", "model": "text", "seeds": "number"}
    columns |= dict.fromkeys((*MEASURES.values(), "right"), "number")
    cells = dict(list(data.groupby(["task", "model", "arm"])))
    rows = [
        (title(task), runs.label(*row), str(len(cell)), *map(escape, _medians(cell)))
        for task in runs.tasks
        for row in runs.rows
        if (cell := cells.get((task, *row))) is not None
    ]
    caption = (
        f"<b>Steps of the focus.</b> {badges(runs.scale, runs.freshness)} Medians over seeds, on "
        "the sample of the figure. <i>Step needed</i> is the longest step that the answer asks "
        "for, <i>step taken</i> the longest that the focus takes, in positions. <i>Spread</i> is "
        "the standard deviation of the attention after that step. <i>Steps back</i> is the percent "
        f"of steps back by more than {ROOM:g}. <i>Offset</i> is how far ahead of the answer the "
        f"focus is, <i>on path</i> the percent of steps within {ROOM:g} of a path with that "
        "offset. <i>Right</i> counts the seeds that write the sample correctly."
    )
    name = f"{runs.page}-steps"
    body = exhibits.folded(columns, rows) if rows else f"<p>{NOT_RUN}</p>"
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    return Exhibit(
        exhibits.table(body, caption, name, links), f"{len(rows)} cells with a path.", data
    )


def numbers(runs: Runs) -> str:
    """Write the table of steps as plain text."""
    data = steps(runs)
    lines = [f"Centre of focus, {runs.scale} scale: median over seeds; steps in positions"]
    for task in runs.tasks:
        rows = [[title(task), "seeds", *MEASURES.values(), "right"]]
        for model, arm in (row for row in runs.rows if runs.plans(*row, task)):
            cell = data.query("task == @task and model == @model and arm == @arm")
            shown = _medians(cell) if len(cell) else [NOT_RUN] * (len(MEASURES) + 1)
            rows.append([f"  {runs.label(model, arm)}", str(len(cell)), *shown])
        lines += ["", *aligned(*rows)]
    return "\n".join(lines)


def _medians(cell: pd.DataFrame) -> list[str]:
    medians = [number(float(cell[name].median())) for name in MEASURES]
    return [*medians, f"{int(cell['right'].sum())} of {len(cell)}"]


def _in_words(runs: Runs) -> str:
    data = steps(runs)
    said = [
        f"{runs.label(model, arm).replace(', ', ' ')}: {cell['on_path'].median():.0f} percent"
        for (model, arm), cell in data.groupby(["model", "arm"], sort=False)
    ]
    return f"Steps on the path, median over tasks and seeds: {'; '.join(said) or NOT_RUN}"
