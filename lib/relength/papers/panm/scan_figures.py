"""Figures of SCAN with cut-offs: accuracy by cut-off (Table 4), and over training (Figure 6); and
the sizes of its splits, counted.
"""

from typing import TYPE_CHECKING

import pandas as pd

from relength.papers.panm.scan_experiments import CUT_OFFS, DRAWN, PANM
from relength.report.computed import Seen
from relength.report.exhibits import Exhibit
from relength.report.figures import exhibit
from relength.report.grid import NOT_RUN, say_not_run
from relength.report.runs import Runs
from relength.report.seeds import seed_lines, swarm
from relength.report.style import ARM_LABELS, LIGHT, Layout, colour, grid_of_panels, over_percent
from relength.report.tables import printed
from relength.tasks.scan import by_length, commands
from relength.verdicts import rules

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEST = "length"  # commands beyond the cut-off
PAGE = "panm_scan"
CLAIM, SAID = "panm-051", (16_990, 3_920)  # commands within the hardest cut-off and beyond it
SCOPE = (
    "Counted, no training decides this: at the cut-off 22, whose numbers these are. The cited code "
    "keeps a tenth of the training commands aside, and the other ten cut-offs have other numbers."
)


def sizes() -> tuple[rules.Decision, str]:
    """Decide by counting whether the splits have the sizes that the paper says, and say them."""
    hardest = min(CUT_OFFS)
    within = sum(len(those) for n, those in by_length().items() if n <= hardest)
    found = within, len(commands()) - within
    seen = f"{found[0]:,} commands lie within the cut-off {hardest} and {found[1]:,} beyond it"
    return rules.fact(found == SAID), seen


def counted() -> str:
    """The verdict on the sizes as plain text."""
    decision, seen = sizes()
    return str(Seen(CLAIM, seen, decision.outcome))


def by_cut_off(runs: Runs, number: int) -> Exhibit:
    """Table 4, left, as a picture: exact match beyond each cut-off, a panel per model."""
    paper, cut_offs = printed("panm-table-4"), sorted(CUT_OFFS)
    known = {f"scan_{n}": n for n in cut_offs}
    data = runs.selected.query("test == @TEST").assign(cut_off=lambda d: d["task"].map(known))
    data = data[["key", "run_id", "scale", "model", "arm", "seed", "cut_off", "accuracy"]]
    places = {n: i for i, n in enumerate(cut_offs)}

    def draw(layout: Layout) -> "Figure":
        across = 1 if layout.narrow else 2
        around = {"head": 0.2, "foot": 0.32, "left": 0.42, "right": 0.14, "top": 0.1}
        figure, panels, _ = grid_of_panels(layout, len(runs.rows), across, tall=0.83, **around)
        for axes, (model, arm) in zip(panels, runs.rows, strict=True):
            over_percent(axes)
            axes.set_xlim(-0.6, len(cut_offs) - 0.4)
            axes.set_xticks(range(len(cut_offs)), [str(n) for n in cut_offs])
            axes.set_title(
                runs.label(model, arm), loc="left", size=8, weight="bold", color=colour(model)
            )
            for n, place in places.items():
                height_there = paper.get((model, f"scan_{n}", TEST))
                if height_there is not None:
                    axes.plot(place, height_there, "o", ms=6.5, mfc="none", mew=0.9, c=LIGHT.ink)
            own = data[(data["model"] == model) & (data["arm"] == arm)]
            if own.empty:
                say_not_run(axes)
                continue
            medians = own.groupby("cut_off")["accuracy"].median().sort_index()
            axes.plot(medians.index.map(places), medians, lw=1.2, color=colour(model), alpha=0.8)
            x, shade = own["cut_off"].map(places), colour(model)
            swarm(axes, own["accuracy"], x, shade, size=2.8, orient="v", bar=None)
        return figure

    caption = (
        "Exact match on all commands beyond a cut-off, by the cut-off trained to. Dots are our "
        "seeds, the line is their median. Rings: what the paper prints. Steps between cut-offs "
        "need not be small: a longer training set may add a new kind of command."
    )
    said = [
        f"{runs.label(model, arm).replace(', ', ' ')}: "
        + (", ".join(f"{v:.0f} at {n}" for n, v in cell.groupby("cut_off")["accuracy"].median()
                     .items()) or NOT_RUN)
        for model, arm in runs.rows
        for cell in [data[(data["model"] == model) & (data["arm"] == arm)]]
    ]  # fmt: skip
    alt = f"Accuracy by cut-off, a panel per model. Medians in percent: {'; '.join(said)}."
    return exhibit(runs, number, draw, "by-cut-off", caption, alt, data)


def over_steps(runs: Runs, number: int) -> Exhibit:
    """Figure 6: PANM's exact match beyond the cut-off over training steps, in both readings."""
    data = _courses(runs)
    steps = max(spec.training.steps for spec in runs.specs)
    rows = [(model, arm) for model, arm in runs.rows if model == PANM["name"]]

    def draw(layout: Layout) -> "Figure":
        across = 2 if layout.narrow else len(DRAWN)
        around = {"head": 0.22, "foot": 0.38, "left": 0.42, "right": 0.2, "top": 0.1}
        shown = [(arm, n) for _, arm in rows for n in DRAWN]
        figure, panels, _ = grid_of_panels(layout, len(shown), across, tall=0.9, **around)
        for axes, (arm, n) in zip(panels, shown, strict=True):
            over_percent(axes)
            axes.set_xlim(0, steps)
            axes.set_xticks([0, steps], ["0", f"{steps:,}"])
            axes.set_title(f"{n}, {ARM_LABELS[arm]}", loc="left", size=7.5, color=LIGHT.ink)
            own = data[(data["arm"] == arm) & (data["cut_off"] == n)]
            if own.empty:
                say_not_run(axes)
            seed_lines(axes, own, "step", "held_out", LIGHT.ink, width=0.6, alpha=0.6)
            seed_lines(axes, own, "step", "beyond", colour(PANM["name"]), width=1.2)
        return figure

    caption = (
        "Learning curves of PANM at four cut-offs: exact match under teacher forcing, which is "
        "that of greedy decoding, over training steps, a line per seed. Coloured: commands beyond "
        "the cut-off. Thin: commands within it that were held out. Nothing is selected on either."
    )
    ends = data[data["step"] == data.groupby(["arm", "cut_off", "seed"])["step"].transform("max")]
    said = [
        f"cut-off {n} {arm}: {cell['beyond'].median():.0f} beyond, {cell['held_out'].median():.0f} "
        "held out"
        for (arm, n), cell in ends.groupby(["arm", "cut_off"], sort=False)
    ]
    alt = f"Accuracy over training. Medians at the end, percent: {'; '.join(said) or NOT_RUN}."
    return exhibit(runs.part("panm-fig-6"), number, draw, "over-steps", caption, alt, data)


def _courses(runs: Runs) -> pd.DataFrame:
    """One row per point of the curves of Figure 6."""
    rows = [
        (arm, n, record["spec"]["seed"], point["step"], 100 * point["watched_accuracy"],
         100 * point["iid_accuracy"])
        for model, arm in runs.rows
        if model == PANM["name"]
        for n in DRAWN
        for record in runs.cell(model, arm, f"scan_{n}")
        for point in record["curve"]
    ]  # fmt: skip
    names = ["arm", "cut_off", "seed", "step", "beyond", "held_out"]
    return pd.DataFrame(rows, columns=names)
