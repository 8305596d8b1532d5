"""Count the training sequences that it takes until every address was seen (PANM, Appendix B).

A sequence of length L uses the addresses from its base to L - 1 further, modulo the number N of all
addresses; its base is uniform. The paper likens this to collecting n = N/L coupons, which takes
n·ln n draws. But coupons do not overlap and ranges of addresses do: what is asked is when random
arcs first cover a circle, which takes n·(ln n + ln ln n + γ) for large n (Flatto, "A limit theorem
for random coverings of a circle", Israel Journal of Mathematics, 1973; the tests compare it with
the exact mean).

The simulations are those of :mod:`relength.papers.panm.covering`.
"""

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from relength.papers.panm import covering, shots
from relength.papers.panm import experiments as panm
from relength.papers.panm.covering import EXTREME, LENGTH, NEVER, REPEATS
from relength.report import computed, exhibits
from relength.report.computed import Seen
from relength.report.exhibits import COMPUTED, Exhibit, rows_table, titled
from relength.report.figures import drawn
from relength.report.style import LIGHT, Layout, canvas, frameless
from relength.specs.margins import load_margins
from relength.verdicts import rules

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = "panm_address_exposure"
# How a claim was decided, where the page alone does not say it.
SCOPES = {
    "panm-017": "Simulated for the six algorithmic tasks, as their trainings are set up here: no "
    "training decides this.",
    "panm-016": "Simulated on a page of its own. The paper names no base of its logarithm; the "
    "natural one is judged, which collecting coupons has. (The claim is one of cost, and so is its "
    "margin. Until after the simulations it was that for lengths, by which none was near.)",
    "panm-018": "Asked of every experiment, those with a language model among them, whose prompts "
    "are counted in words and letters. (At first the six algorithmic tasks alone were asked, by "
    "which it held.)",
}


def coupons(n: float) -> float:
    """The paper's estimate: n·ln n."""
    return n * log(n)


def arcs(n: float) -> float:
    """Arcs of the n-th part of a circle that cover it, on average, for large n."""
    return n * (log(n) + log(log(n)) + np.euler_gamma)


def simulate() -> pd.DataFrame:
    """Five simulations per number of addresses. Columns: addresses, n, repeat, sequences."""
    data = covering.simulate()
    data.insert(1, "n", data["addresses"] / LENGTH)
    return data


def over_coupons(data: pd.DataFrame) -> pd.Series:
    """Median of the sequences needed over n·ln n, by number of addresses."""
    return (data["sequences"] / data["n"].map(coupons)).groupby(data["addresses"]).median()


def figure(data: pd.DataFrame, number: int) -> Exhibit:
    """Sequences needed per n, in simulations and by both formulas."""

    def draw(layout: Layout) -> "Figure":
        drawing = canvas(layout, 2.8)
        left, right = (0.36, 0.1) if layout.narrow else (0.5, 1.9)
        size = (1 - (left + right) / layout.width, 0.68)
        axes = drawing.add_axes((left / layout.width, 0.19, *size))
        axes.patch.set_visible(False)
        n = np.geomspace(4, 2e5, 100)
        for rule, shade, words in (
            (coupons, LIGHT.second, "coupons: ln n"),
            (arcs, LIGHT.first, "arcs: ln n + ln ln n + γ"),
        ):
            heights = [rule(x) / x for x in n]
            axes.plot(n, heights, color=shade, linewidth=1.4)
            place = (9e4, heights[-1] - 3.1) if rule is coupons else (4e4, heights[-1] + 0.3)
            if layout.narrow:
                axes.text(*place, words, color=shade, size=7, ha="right")
            else:
                axes.text(2.4e5, heights[-1], words, color=shade, size=7.5, va="center")
        axes.scatter(data["n"], data["sequences"] / data["n"], s=9, color=LIGHT.ink, linewidth=0,
                     alpha=0.7, zorder=3)  # fmt: skip
        axes.set(xscale="log", xlim=(4, 2e5), ylim=(0, 19))
        axes.set_xticks([10, 100, 1000, 10_000, 100_000], ["10", "100", "1,000", "10⁴", "10⁵"])
        axes.set_xticks([], minor=True)
        axes.tick_params(colors=LIGHT.muted, labelsize=7, length=3)
        axes.grid(axis="y", color=LIGHT.rule, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.text(1, -0.2, "n: addresses over length", ha="right", size=7, color=LIGHT.muted,
                  transform=axes.transAxes)  # fmt: skip
        frameless(axes, base=True)
        return drawing

    caption = (
        "Sequences until every address was seen, divided by n, against n on a logarithmic axis. A "
        f"dot is a simulation with sequences of length {LENGTH}; each of "
        f"{data['addresses'].nunique()} sizes has {REPEATS}. The lower line is the paper's "
        "estimate, the upper one the estimate for ranges that may overlap."
    )
    said = ", ".join(f"{a:,}: {r:.2f}" for a, r in over_coupons(data).items())
    alt = f"Median of sequences needed over n ln n, by number of addresses. {said}."
    return drawn(draw, f"{PAGE}-needed", caption, alt, data, number, PAGE)


def table(data: pd.DataFrame) -> Exhibit:
    """A row per number of addresses: both estimates and what simulations give."""
    columns = dict.fromkeys(
        ("addresses", "n", "n ln n", "with overlap", "simulated, median", "least", "most"), "number"
    )
    rows = []
    for addresses, cell in data.groupby("addresses"):
        n, found = addresses / LENGTH, cell["sequences"]
        values = (coupons(n), arcs(n), found.median(), found.min(), found.max())
        rows.append((f"{addresses:,}", f"{n:,.1f}", *(f"{v:,.0f}" for v in values)))
    caption = (
        f"<b>Sequences until all addresses were seen.</b> Their length is {LENGTH}; {REPEATS} "
        "simulations per row."
    )
    name = f"{PAGE}-table"
    links = [exhibits.csv(name, data), exhibits.notebook(PAGE)]
    html = exhibits.table(rows_table(columns, rows), titled(caption, COMPUTED), name, links)
    return Exhibit(html, f"{len(rows)} numbers of addresses, {len(data)} simulations.", data)


def in_training() -> pd.DataFrame:
    """Tabulate the sequences that our runs see and need, by scale and bits, in 5 repeats.

    Lengths are uniform from 1 to L, as in training; every sequence counts as drawn alone, although
    those of one batch have one length.
    """
    arms = {8: "released, mended", 10: "paper, repaired"}
    rows = []
    for bits, found in covering.in_training().groupby("bits"):
        for scale in ("reduced", "paper"):
            training = panm.TRAINING[scale]
            seen = training["steps"] * training["batch_size"]
            pairs = zip(found["repeat"], found["needed"], strict=True)
            rows += [(arms[bits], bits, scale, seen, repeat, n) for repeat, n in pairs]
    return pd.DataFrame(rows, columns=["arms", "bits", "scale", "seen", "repeat", "needed"])


def training_table(training: pd.DataFrame) -> Exhibit:
    """Tabulate :func:`in_training`: a row per address space and scale."""
    columns = {"arms": "text", "addresses": "number", "scale": "text"}
    columns |= dict.fromkeys(("needed, at most", "seen", "seen over needed"), "number")
    rows = []
    for (arms, bits, scale), cell in training.groupby(["arms", "bits", "scale"], sort=False):
        needed, seen = cell["needed"].max(), cell["seen"].iloc[0]
        share = f"{seen / needed:,.0f}"
        rows.append((arms, f"{2**bits:,}", scale, f"{needed:,}", f"{seen:,}", share))
    caption = (
        "<b>Sequences until all addresses were seen, and sequences in a training.</b> Each row has "
        f"{REPEATS} simulations with lengths drawn as in training."
    )
    name = f"{PAGE}-training"
    links = [exhibits.csv(name, training), exhibits.notebook(PAGE)]
    html = exhibits.table(rows_table(columns, rows), titled(caption, COMPUTED), name, links)
    return Exhibit(html, f"{len(rows)} kinds of training.", training)


class Checked(NamedTuple):
    """A claim, what was computed for it, and how the five repeats stand to it."""

    claim: str
    computed: str
    decision: rules.Decision
    unit: str = "simulation"  # or a calculation, which is done once


def checked(data: pd.DataFrame, training: pd.DataFrame) -> list[Checked]:
    """The claims of Section 2.2 and Appendix B that can be computed, by the rules of verdicts."""
    margins = load_margins()
    extreme = data[data["addresses"] == EXTREME]["sequences"]
    estimate = coupons(EXTREME / LENGTH)
    bases = {"e": 1.0, "2": log(2), "10": log(10)}  # estimates of other bases are this divided
    room = margins.measures["cost_ratio"]
    ratios = {base: extreme / (estimate / factor) for base, factor in bases.items()}
    near = {base: int((abs(ratio - 1) <= room.around(1)).sum()) for base, ratio in ratios.items()}
    longest = max(max(spec.task.lengths) for spec in panm.algorithmic("paper", 0))
    prompt = max(shots.after_short_examples().values())
    enough = (training["needed"] <= training["seen"]).groupby(training["repeat"]).all()
    return [
        Checked(
            "panm-013",
            f"all {len(data)} simulations ended with every address seen",
            rules.fact(bool(data["sequences"].between(1, NEVER - 1).all())),
        ),
        Checked(
            "panm-016",
            f"{extreme.median():,.0f} sequences in the median, where n ln n is {estimate:,.0f}; "
            f"{near['e']} of {REPEATS} simulations are within the margin of that, {near['2']} with "
            f"a logarithm to the base 2 and {near['10']} to the base 10",
            rules.cost(ratios["e"], 1.0, room, margins),
        ),
        Checked(
            "panm-017",
            f"at most {training['needed'].max():,} sequences needed, and at least "
            f"{training['seen'].min():,} seen in the shortest training of the six tasks",
            rules.majority(enough, margins),
        ),
        Checked(
            "panm-018",
            f"2^10 = {2**10:,} addresses; the longest test of the six tasks has {longest} symbols, "
            f"the longest prompt of Table 11 has {prompt:,} words and letters even if its examples "
            "are as short as training",
            rules.fact(max(longest, prompt) < 2**10),
            "calculation",
        ),
    ]


def verdicts(found: Sequence[Checked]) -> Exhibit:
    """Tabulate what was computed for each claim, and what comes of it."""
    caption = (
        "<b>Verdicts on what can be computed.</b> The rules and margins are those of all claims. "
        f"Where chance has a part, {REPEATS} simulations stand in for {REPEATS} seeds. The number "
        "needed is n ln n if all simulations lie within the margin for ratios of costs, and is not "
        "if none does. That it is <i>of the order of</i> n ln n is no claim that they could test."
    )
    return computed.verdicts(_seen(found), "computed", PAGE, caption, COMPUTED)


def lines(found: Sequence[Checked]) -> str:
    """Write the checked claims as plain text."""
    return "\n".join(map(str, _seen(found)))


def _seen(found: Sequence[Checked]) -> list[Seen]:
    return [Seen(one.claim, one.computed, one.decision.outcome) for one in found]


def numbers(data: pd.DataFrame) -> str:
    """The medians as plain text."""
    text = [f"{'addresses':>12}{'n ln n':>12}{'with overlap':>14}{'simulated':>12}"]
    for addresses, cell in data.groupby("addresses"):
        n = addresses / LENGTH
        values = f"{coupons(n):>12,.0f}{arcs(n):>14,.0f}{cell['sequences'].median():>12,.0f}"
        text.append(f"{addresses:>12,}{values}")
    return "\n".join(text)
