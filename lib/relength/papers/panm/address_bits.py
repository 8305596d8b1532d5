"""Ask what a pointer learns of an address: which of its bits are wrong, and how far it can count.

Beyond the paper. Addresses in a row differ in their low bits; how many bits training needs
follows from its longest sequence (:func:`relength.papers.panm.pointing.told_apart`). Pages here
hold that against the traces and the accuracies of recorded runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from math import factorial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from relength.papers.panm import pointing
from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.figures import exhibit
from relength.report.grid import NOT_RUN, say_not_run
from relength.report.runs import Runs
from relength.report.seeds import swarm
from relength.report.style import (
    ARM_LABELS,
    LIGHT,
    Layout,
    aligned,
    canvas,
    colour,
    frameless,
    title,
)
from relength.report.tables import printed, short
from relength.report.wording import span, words
from relength.specs.spec import RunSpec
from relength.tasks.algorithmic import CLASSES
from relength.training.traces import TRACED
from relength.verdicts.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE = "panm_address_bits"
TASKS = tuple(pointing.WALKS)
IDEA = 9  # the longest training length of the runs that the prediction was made from
SHOWN_BITS = 8  # as many as the released code has; the text's further two are never set in tests
ARMS = ("repaired", "paper", "released")


def expected(most: int, length: int, mixed: bool = False) -> float:
    """Token accuracy, in percent, of a walk by a pointer that counts to ``most`` and starts again.

    To it, slots look alike whose addresses differ by a multiple of most. Where k of them do, it
    reads one of the k, each as likely as another; or, ``mixed``, their mixture, of which the best
    guess is the most frequent symbol.
    """
    alike = [len(range(slot % most, length, most)) for slot in range(length)]
    guess = _most_frequent if mixed else _any_of
    return 100 * float(np.mean([guess(k) for k in alike]))


def _any_of(k: int) -> float:
    """Compute the chance that one of k symbols is the one wanted: it is, or is equal by chance."""
    return (1 + (k - 1) / CLASSES) / k


@cache
def _most_frequent(k: int) -> float:
    """Compute the chance that the most frequent of k symbols is the one wanted: E[largest count] /
    k.

    That no count is above m has the probability k! [x^k] (Σ x^j / j!, j ≤ m)^10.
    """
    largest = 0.0
    for m in range(k):
        few = np.polynomial.Polynomial([1 / factorial(j) for j in range(m + 1)]) ** CLASSES
        within = few.coef[k] * factorial(k) / CLASSES**k if k < len(few.coef) else 0.0
        largest += 1 - within
    return largest / k


def steps_right(accuracy: float, length: int) -> float:
    """Compute the number of known steps from a token accuracy in percent; others are guesses."""
    return length * (CLASSES * accuracy / 100 - 1) / (CLASSES - 1)


# Which bits are wrong


def wrong(runs: Runs) -> pd.DataFrame:
    """A row per run, traced test and bit. Columns: task, arm, trained (longest length), test,
    seed, bit (its value: 1, 2, 4, …), wrong (percent of steps) and needed (whether training has to
    tell by it).
    """
    rows = []
    for record in runs.records:
        spec = RunSpec.recorded(record["spec"])
        found = pointing.wrong_bits(record)
        if not found or spec.model.n_mode1 != 2:
            continue
        trained = spec.task.train_lengths[1]
        needed = pointing.told_apart(trained)
        for test, bits in found.items():
            for bit, share in enumerate(100 * bits.mean((0, 1))):
                place = [spec.task.name, spec.model.arm, trained, test, spec.seed, 2**bit]
                rows.append([*place, float(share), 2**bit < needed])
    names = ["task", "arm", "trained", "test", "seed", "bit", "wrong", "needed"]
    return pd.DataFrame(rows, columns=names)


class Drawing(NamedTuple):
    """A figure that more than one page shows, with what is said of it and what it is made from."""

    draw: Callable[[Layout], "Figure"]
    caption: str
    alt: str
    data: pd.DataFrame
    runs: Runs


def bits(main: Runs, number: int) -> Exhibit:
    """Draw how often each bit of an address is wrong at 2(L+1)."""
    made = bits_drawing(replace(main, page=PAGE))
    return exhibit(made.runs, number, made.draw, "bits", made.caption, made.alt, made.data)


def bits_drawing(runs: Runs) -> Drawing:
    """A panel per reading and task, in it a mark per bit and seed."""
    data = wrong(runs)
    longest = {task: runs.tests[task][2] for task in TASKS}
    data = data[(data["test"] == data["task"].map(longest)) & (data["bit"] < 2**SHOWN_BITS)]
    lost = {
        (spec.model.arm, spec.task.name): _lost(spec)
        for spec in map(RunSpec.recorded, (record["spec"] for record in runs.records))
        if spec.model.name == "PANM" and spec.task.name in TASKS
    }
    panels = [
        [
            Panel(
                data[(data["arm"] == arm) & (data["task"] == task)],
                lost.get((arm, task), ()),
                pointing.told_apart(_longest(runs, task)),
                "" if j else ARM_LABELS[arm],
            )
            for j, task in enumerate(TASKS)
        ]
        for arm in ARMS
    ]
    heads = [f"{title(task)}, {longest[task]} symbols" for task in TASKS]

    def draw(layout: Layout) -> "Figure":
        return _panels(layout, panels, heads)

    caption = (
        "Which bits of an address are wrong? At length 2(L+1), the address with the largest weight "
        "is compared with that of the slot to be read. A mark is the percent of decoding steps at "
        "which a bit differs, one mark per seed. The bar is their median; the tick on it is what a "
        "slot chosen at random would give. Left of the dashed line are the bits that tell the "
        "addresses of a training sequence apart. Training does not need those right of it. The "
        "code is tested from random base addresses, the other readings from 0. From 0, no address "
        "of 20 slots has a bit from 32 on, and all samples of a run point alike."
    )
    medians = data.groupby(["arm", "task", "bit"], sort=False)["wrong"].median()
    told = "; ".join(
        f"{title(task)}, {ARM_LABELS[arm]}: "
        + ", ".join(f"bit {bit} {medians[arm, task, bit]:.0f} %" for bit in own.index)
        for (arm, task), own in medians.groupby(level=[0, 1], sort=False)
        for own in [own.droplevel([0, 1])]
    )
    alt = f"How often each bit of an address is wrong. {told or NOT_RUN}."
    shown = runs.only(r for r in runs.records if r["spec"]["task"]["name"] in TASKS)
    return Drawing(draw, caption, alt, data, shown)


def _lost(spec: RunSpec) -> list[float]:
    """Compute how often each bit would be wrong, in percent, if slots were chosen at random."""
    wanted = pointing.places(spec.task, spec.task.tests[2], TRACED)
    bases = pointing.bases(spec, len(wanted))[:, None, None]
    slots = np.arange(wanted.shape[1] + 2 * spec.task.flags)
    apart = (bases + slots) ^ (bases + wanted[..., None])
    return [100 * float((apart >> i & 1).mean()) for i in range(SHOWN_BITS)]


class Panel(NamedTuple):
    """One panel of the figure of bits.

    data    rows of :func:`wrong`
    chance  how often each bit would be wrong by chance
    apart   the number of addresses that training has to tell apart
    label   what stands over the panel
    """

    data: pd.DataFrame
    chance: Sequence[float]
    apart: int
    label: str


def _panels(layout: Layout, rows: Sequence[Sequence[Panel]], heads: Sequence[str] = ()) -> "Figure":
    """Panels of bits in rows, under the heads of their columns."""
    row, head, foot, left = 0.95, 0.42 if heads else 0.2, 0.42, 0.42
    height = row * len(rows) + head + foot
    figure = canvas(layout, height)
    wide = (layout.width - left - 0.1) / len(rows[0])
    dot = 2.7 if layout.narrow else 3.6  # points
    for i, panels in enumerate(rows):
        for j, panel in enumerate(panels):
            x, y = left + j * wide, foot + (len(rows) - 1 - i) * row
            size = (wide - 0.16) / layout.width, (row - 0.34) / height
            axes = figure.add_axes((x / layout.width, y / height, *size))
            _bits_panel(axes, panel, dot, last=i == len(rows) - 1, first=j == 0)
            where = {"transform": axes.transAxes, "color": LIGHT.ink}
            axes.text(0, 1.09, panel.label, size=7.5, **where)
            if heads and i == 0:
                axes.text(0, 1.42, heads[j], size=8.2, weight="bold", **where)
    return figure


def _bits_panel(axes: "Axes", panel: Panel, dot: float, last: bool, first: bool) -> None:
    values = [2**i for i in range(SHOWN_BITS)]
    axes.set_facecolor(LIGHT.surface)
    axes.set(xlim=(-0.6, SHOWN_BITS - 0.4), ylim=(-6, 66))
    axes.set_xticks(range(SHOWN_BITS), [str(v) for v in values] if last else [])
    axes.set_yticks([0, 50], ["0", "50 %"] if first else [])
    axes.tick_params(colors=LIGHT.muted, labelsize=6.8, length=0)
    axes.grid(axis="y", color=LIGHT.rule, linewidth=0.6)
    axes.set_axisbelow(True)
    frameless(axes)
    axes.axvline(np.log2(panel.apart) - 0.5, color=LIGHT.ink, lw=0.9, ls=(0, (4, 3)))
    if panel.data.empty:
        say_not_run(axes)
    places = np.log2(panel.data["bit"].to_numpy(dtype=float))
    look = {"size": dot, "alpha": 0.65, "clip_on": False}
    swarm(axes, panel.data["wrong"], places, colour("PANM"), orient="v", **look)
    for i, share in enumerate(panel.chance):
        axes.plot([i - 0.12, i + 0.12], [share] * 2, color=LIGHT.second, lw=1.6, zorder=2)
    if last:
        axes.set_xlabel("value of the bit", size=7, color=LIGHT.muted, labelpad=2)


def faults(main: Runs) -> pd.DataFrame:
    """Tabulate by reading which bits wrong pointers have right, at 2(L+1) on both tasks.

    Columns: arm, seeds, wrong (percent of steps), low (percent of the wrong ones that have every
    bit right that training needs), low_chance (the same, if they pointed at any other slot alike),
    single (percent that have one bit wrong), single_chance. NaN of no wrong steps.
    """
    rows = []
    for arm in ARMS:
        seeds, steps = set(), []
        for record in main.records:
            spec = RunSpec.recorded(record["spec"])
            found = pointing.wrong_bits(record) if spec.model.arm == arm else {}
            bits = found.get(spec.task.tests[2])
            if bits is None or spec.model.n_mode1 != 2:
                continue
            seeds.add(spec.seed)
            most = pointing.told_apart(spec.task.train_lengths[1])
            steps.append(_steps(spec, bits, most))
        if seeds:
            own = np.concatenate(steps)  # (steps, 5)
            off = own[own[:, 0] == 1]
            shares = [100 * off[:, k].mean() if len(off) else np.nan for k in range(1, 5)]
            rows.append([arm, len(seeds), 100 * own[:, 0].mean(), *shares])
    names = ["arm", "seeds", "wrong", "low", "low_chance", "single", "single_chance"]
    return pd.DataFrame(rows, columns=names)


def _steps(spec: RunSpec, bits: np.ndarray, most: int) -> np.ndarray:
    """Tell five things of each step (samples * T, 5).

    Whether it is wrong, whether its low bits are right, how likely that is by chance, whether one
    bit is wrong, how likely that is.
    """
    asked = most.bit_length() - 1
    bases = pointing.bases(spec, len(bits))
    slots = np.arange(bits.shape[1] + 2 * spec.task.flags)
    addresses = (bases[:, None] + slots) % 2**spec.model.bits
    wanted = bases[:, None] + pointing.places(spec.task, spec.task.tests[2], len(bits))
    apart = addresses[:, None, :] ^ (wanted % 2**spec.model.bits)[..., None]  # (samples, T, slots)
    others = len(slots) - 1
    low = ((apart % most == 0).sum(-1) - 1) / others
    single = ((apart & (apart - 1) == 0).sum(-1) - 1) / others
    columns = (bits.any(-1), ~bits[..., :asked].any(-1), low, bits.sum(-1) == 1, single)
    return np.stack([np.ravel(column).astype(float) for column in columns], axis=1)


def what_is_left(main: Runs) -> Exhibit:
    """:func:`faults` as a table."""
    runs = replace(main, page=PAGE)
    data = faults(runs)
    heads = ("wrong slot", "needed bits right", "by chance", "one bit wrong", "chance of that")
    columns = {"reading": "text", "seeds": "number", **dict.fromkeys(heads, "number")}
    rows = [
        (
            *(ARM_LABELS[row.arm], str(row.seeds)),
            *("–" if np.isnan(share) else f"{share:.0f} %" for share in row[3:]),
        )
        for row in data.itertuples()
    ]
    caption = (
        f"<b>What is left of an address that is wrong?</b> {badges(runs.scale, runs.freshness)} "
        "Steps of Copy and Reverse at length 2(L+1). <i>Wrong slot</i> is the percent of steps "
        "that point at one. The other columns are percent of these wrong steps: those with every "
        "bit right that training needs, and those with a single bit wrong. Beside each stands "
        "what a random other slot would give."
    )
    name = f"{PAGE}-left"
    if data.empty:
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    links = [exhibits.csv(name, data), exhibits.notebook(PAGE)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    return Exhibit(html, f"{len(rows)} readings.", data)


# What so many right steps would give


def table(main: Runs) -> Exhibit:
    """Printed accuracies of Copy and Reverse beside those of 16 right steps, and ours."""
    runs = replace(main, page=PAGE)
    paper = printed(*runs.experiment.tables)
    data, rows = [], []
    for task in TASKS:
        right = pointing.told_apart(_longest(runs, task))
        for test in runs.tests[task][2:]:
            limits = [expected(right, int(test), mixed) for mixed in (False, True)]
            cell = [task, int(test), *limits, paper["PANM", task, test]]
            ours = {arm: runs.values("PANM", arm, task, test) for arm in ARMS}
            means = [float(np.mean(ours[arm])) if ours[arm] else np.nan for arm in ARMS]
            data.append([*cell, *means])
            shown = [f"{m:.0f}" if m == m else f"<i>{NOT_RUN}</i>" for m in means]
            said = (f"<b>{limit:.0f}</b>" for limit in limits)
            rows.append((title(task), test, *said, short(cell[4]), *shown))
    names = ["task", "length", "one_of", "mixture", "printed", *ARMS]
    frame = pd.DataFrame(data, columns=names)
    heads = ("length", "reads one", "reads the mixture", "printed")
    columns = {"task": "text", **dict.fromkeys(heads, "number")}
    columns |= {ARM_LABELS[arm]: "number" for arm in ARMS}
    caption = (
        f"<b>What counting to {right} would give.</b> {badges(runs.scale, runs.freshness)} Suppose "
        f"that a pointer cannot tell slots apart that are {right} apart. It then reads one of "
        "them, or their mixture: both give a token accuracy, in percent. Beside them stand what "
        "the paper prints for PANM and the mean of our seeds in three readings."
    )
    name = f"{PAGE}-sixteen"
    links = [exhibits.csv(name, frame), exhibits.notebook(PAGE)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    return Exhibit(html, f"{len(rows)} printed numbers of two tasks.", frame)


def _longest(runs: Runs, task: str) -> int:
    """The longest sequence that the runs of a task are trained on."""
    return max(s.task.train_lengths[1] for s in runs.specs if s.task.name == task)


# How far it can count


def counted(runs: Runs) -> pd.DataFrame:
    """A row per run and unseen test. Columns: trained (longest length), test, seed, accuracy,
    right (steps, chance taken off), predicted (by the power of two) and mixed (if the mixture of
    what looks alike is read).
    """
    rows = []
    for record in runs.records:
        spec = RunSpec.recorded(record["spec"])
        trained = spec.task.train_lengths[1]
        for test in spec.task.tests[1:]:
            accuracy = 100 * record["checkpoints"]["selected"]["tests"][test]["token_accuracy"]
            right, limits = steps_right(accuracy, int(test)), _limits(trained, int(test))
            rows.append([trained, int(test), spec.seed, accuracy, right, *limits])
    names = ["trained", "test", "seed", "accuracy", "right", "predicted", "mixed"]
    return pd.DataFrame(rows, columns=names)


def _limits(trained: int, test: int) -> tuple[int, float]:
    """Steps right if one of the slots that look alike is read, and if their mixture is."""
    most = pointing.told_apart(trained)
    return min(most, test), steps_right(expected(most, test, mixed=True), test)


def steps(runs: Runs, number: int) -> Exhibit:
    """Steps right of the longest copy against the longest training length, and the prediction."""
    data = counted(runs)
    longest = max(int(spec.task.tests[-1]) for spec in runs.specs)
    lengths = sorted({spec.task.train_lengths[1] for spec in runs.specs})

    def draw(layout: Layout) -> "Figure":
        figure = canvas(layout, 2.7)
        left, right = 0.42, 0.15 if layout.narrow else 1.5
        size = (layout.width - left - right) / layout.width, 0.68
        axes = figure.add_axes((left / layout.width, 0.19, *size))
        _steps_axes(axes, data[data["test"] == longest], lengths, longest)
        return figure

    caption = (
        f"How far does a pointer count? A mark is a seed: its steps right in copies of {longest} "
        "symbols, without those right by chance, against the longest sequence in training. The "
        "line is the prediction, the next power of two: of the slots that look alike, the pointer "
        "reads one. The band reaches to what their mixture would give; it was added when the "
        f"first of these runs was in. The runs up to {IDEA} gave the idea. The others test it."
    )
    medians = data[data["test"] == longest].groupby(["trained", "predicted"])["right"].median()
    told = "; ".join(
        f"trained to {n}: {value:.0f} steps right, predicted {most}"
        for (n, most), value in medians.items()
    )
    alt = f"Steps right against the longest training length. {told or NOT_RUN}."
    return exhibit(runs, number, draw, "steps", caption, alt, data)


def _steps_axes(axes: "Axes", data: pd.DataFrame, lengths: Sequence[int], longest: int) -> None:
    axes.patch.set_visible(False)
    n = np.arange(2, max(lengths) + 4)
    one, mixed = np.transpose([_limits(int(v), longest) for v in n])
    axes.fill_between(n, one, mixed, step="mid", color=LIGHT.second, alpha=0.16, linewidth=0)
    axes.step(n, one, where="mid", color=LIGHT.second, lw=1.4)
    words = {"ha": "right", "size": 7.5, "color": LIGHT.second}
    axes.text(n[-1], one[-1] - 1, "one is read", va="top", **words)
    axes.text(n[-1], mixed[-1] + 0.7, "the mixture", va="bottom", **words)
    look = {"s": 26, "color": colour("PANM"), "alpha": 0.75, "linewidths": 0, "zorder": 3}
    axes.scatter(data["trained"], data["right"], clip_on=False, **look)
    top = max(mixed.max(), data["right"].max() if len(data) else 0)
    axes.set(xlim=(2, n[-1]), ylim=(0, 1.12 * top))
    axes.set_xticks(lengths, [str(v) for v in lengths])
    axes.set_yticks([0, *sorted({pointing.told_apart(length) for length in lengths})])
    axes.tick_params(colors=LIGHT.muted, labelsize=7, length=3)
    axes.grid(axis="y", color=LIGHT.rule, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("longest sequence in training", size=7.2, color=LIGHT.muted, loc="right")
    axes.set_title(f"steps right of {longest}", size=7.5, color=LIGHT.muted, loc="left", pad=5)
    frameless(axes, base=True)


def bits_by_length(runs: Runs, number: int) -> Exhibit:
    """Draw how often each bit of an address is wrong, by the longest sequence in training."""
    data = wrong(runs)
    lengths = sorted({spec.task.train_lengths[1] for spec in runs.specs})
    traced = runs.specs[0].task.tests[2]  # the longest that is traced, of all training lengths
    data = data[(data["test"] == traced) & (data["bit"] < 2**SHOWN_BITS)]
    lost = _lost(runs.specs[0])
    panels = [
        Panel(data[data["trained"] == n], lost, pointing.told_apart(n), f"trained up to {n}")
        for n in lengths
    ]
    columns = 2
    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]

    def draw(layout: Layout) -> "Figure":
        return _panels(layout, rows)

    caption = (
        f"Which bits are wrong in copies of {traced} symbols, by the longest sequence in training? "
        "Marks and lines are those of the first figure. Training needs the bits left of the dashed "
        "line, and none right of it."
    )
    medians = data.groupby(["trained", "bit"])["wrong"].median()
    told = "; ".join(
        f"trained up to {n}: "
        + (", ".join(f"bit {bit} {share:.0f} %" for bit, share in own.items() if share) or "none")
        for n, own in medians.groupby(level=0)
        for own in [own.droplevel(0)]
    )
    alt = f"Which bits are wrong by training length. {told or NOT_RUN}."
    return exhibit(runs, number, draw, "by-length", caption, alt, data)


def numbers(main: Runs, runs: Runs) -> str:
    """The medians of both figures as plain text."""
    data = wrong(main)
    lines = [f"Address bits, {main.scale} scale: median over seeds, percent of steps wrong"]
    for (task, test), cells in data[data["bit"] < 64].groupby(["task", "test"], sort=False):
        rows = [[f"{title(task)}, length {test}", "seeds", *map(str, cells["bit"].unique())]]
        for arm, cell in cells.groupby("arm", sort=False):
            medians = cell.groupby("bit")["wrong"].median()
            seeds = str(cell["seed"].nunique())
            rows.append([f"  {ARM_LABELS[arm]}", seeds, *(f"{m:.0f}" for m in medians)])
        lines += ["", *aligned(*rows)]
    own = counted(runs)
    rows = [["Copy, trained up to", "seeds", "test", "right", "predicted", "mixture"]]
    for (trained, test), cell in own.groupby(["trained", "test"]):
        found = (cell["right"].median(), cell["predicted"].max(), cell["mixed"].max())
        shown = (f"{value:.1f}" for value in found)
        rows.append([f"  {trained}", str(len(cell)), str(test), *shown])
    lines += ["", f"Steps right, {runs.scale} scale, chance taken off", *aligned(*rows)]
    return "\n".join(lines)


class Outcome(NamedTuple):
    """Counts that say how the prediction fares.

    runs, fewest, most  runs that test it, and seeds per training length
    agree               {test: runs whose steps right are nearest to the run's own prediction}
    right               {(longest training length, predicted): steps right of each seed} in the
                        longest copy
    """

    runs: int
    fewest: int
    most: int
    agree: dict[int, int]
    right: dict[tuple[int, int], list[float]]


def tested(runs: Runs) -> Outcome | None:
    """Count the runs that test the prediction; None without any.

    A run agrees in a test if, of the powers of two that are predicted, its steps right are nearest
    to its own (by ratio). The runs that gave the idea are not counted.
    """
    data = counted(runs)
    shared = set.intersection(*(set(spec.task.tests) for spec in runs.specs))
    data = data[(data["trained"] != IDEA) & data["test"].isin(map(int, shared))]
    if data.empty:
        return None
    powers = {pointing.told_apart(spec.task.train_lengths[1]) for spec in runs.specs}
    near = [_nearest(row.right, powers, row.test) == row.predicted for row in data.itertuples()]
    agree = data.assign(near=near).groupby("test")["near"].sum()
    last = data[data["test"] == data["test"].max()]
    seeds = last.groupby("trained")["seed"].nunique()
    right = last.groupby(["trained", "predicted"])["right"].agg(list)
    return Outcome(len(last), seeds.min(), seeds.max(), agree.to_dict(), right.to_dict())


def outcome(runs: Runs) -> str:
    """:func:`tested` in words: no verdict, a count of the runs that test the prediction."""
    found = tested(runs)
    if found is None:
        return "No run of another training length is recorded yet."
    agree = [f"{n} in copies of {test} symbols" for test, n in found.agree.items()]
    parts = [
        f"up to {trained}: {', '.join(f'{steps:.0f}' for steps in right)} (predicted {most})"
        for (trained, most), right in found.right.items()
    ]
    each = span((found.fewest, found.most), "seed")
    count = plural(found.runs, "run")
    return (
        f"{count} test the prediction, {each} per training length. It names for each training "
        "length how many symbols of a copy are written right. So many runs are nearest, by ratio, "
        f"to the number of their own training length: {words(agree)}. Symbols "
        f"written right in the longest copy, chance taken off, after training {'; '.join(parts)}."
    )


def _nearest(right: float, powers: set[int], test: int) -> int:
    """The step count, of those that the prediction has for a test, that is nearest by ratio."""
    predicted = {min(power, test) for power in powers}
    return min(predicted, key=lambda count: abs(np.log2(max(right, 0.5) / count)))
