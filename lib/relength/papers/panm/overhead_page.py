"""The page on PANM's speed: what ``relength bench --paper panm`` measured, beside the claims."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relength.papers.panm import overhead
from relength.papers.panm.weights import weights
from relength.report import computed, exhibits
from relength.report.computed import Seen
from relength.report.exhibits import COMPUTED, MEASURED, Exhibit, rows_table, titled
from relength.report.figures import drawn
from relength.report.grid import NOT_RUN
from relength.report.seeds import swarm
from relength.report.style import LIGHT, Layout, beside, canvas, colour, frameless
from relength.runs.prices import Device
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.specs.margins import load_margins
from relength.tasks.algorithmic import Copy
from relength.verdicts import rules

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = "panm_cost"
COMMAND = "relength bench --paper panm"
ALLOWED = (70, 80)  # percent: what the paper says overall
BACKBONES = [pair.name for pair in overhead.PAIRS if pair.name not in overhead.NO_BACKBONE]
COLUMNS = ("backbone", "round", "bare", "with_pointers", "share", "printed")


def latest(store: Store) -> dict[str, Any] | None:
    """The last measurement that a store has; None if there is none."""
    return store.latest_benchmark(overhead.KIND)


def before(store: Store) -> str:
    """Say what the measurements before the :func:`latest` gave, which older code made."""
    older = [one for one in store.benchmarks() if one.get("kind") == overhead.KIND][:-1]
    if not older:
        return ""
    shares = pd.concat(map(data, older), keys=range(len(older)), names=["measurement"])
    medians = shares.groupby(["backbone", "measurement"], sort=False)["share"].median()
    ranges = medians.groupby("backbone", sort=False).agg(["min", "max"])
    said = "; ".join(
        f"{name} {' to '.join(dict.fromkeys(f'{end:.0f}' for end in ends))} %"
        for name, *ends in ranges.itertuples()
    )
    return (
        f" A share belongs to the code as much as to the machine: {len(older)} earlier "
        f"measurements, each of its day's code, have medians of {said}."
    )


def benchmark(rounds: int) -> tuple[dict[str, Any], str]:
    """Measure what ``relength bench --paper panm`` asks for, and word it."""
    outcome = overhead.measure(rounds)
    return outcome, numbers(outcome)


def data(measured: dict[str, Any] | None) -> pd.DataFrame:
    """One row per backbone and round; share and printed in percent."""
    pairs = measured["pairs"] if measured else {}
    rows = [
        (
            *(name, number, bare, own, 100 * own / bare),
            np.nan if pair["printed"] is None else 100 * pair["printed"],
        )
        for name, pair in pairs.items()
        for number, (bare, own) in enumerate(zip(pair["bare"], pair["with"], strict=True), start=1)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def figure(measured: dict[str, Any] | None, number: int) -> Exhibit:
    """Share of the backbone's speed that is left with PANM, every round a dot."""
    found, names = data(measured), [pair.name for pair in overhead.PAIRS]
    names.remove(overhead.MORE_POINTERS)  # no backbone, so that the paper's band is not about it
    found = found[found["backbone"].isin(names)]

    def draw(layout: Layout) -> "Figure":
        drawing = canvas(layout, 0.75 + 0.36 * len(names))
        height, left = drawing.get_size_inches()[1], 1.95 if layout.narrow else 2.0
        size = (1 - (left + 0.5) / layout.width, 0.36 * len(names) / height)
        axes = drawing.add_axes((left / layout.width, 0.42 / height, *size))
        axes.set_facecolor(LIGHT.surface)
        axes.axvspan(*ALLOWED, color=LIGHT.rule, linewidth=0, zorder=0)
        axes.text(75, -0.62, "the paper", ha="center", va="bottom", size=7, color=LIGHT.muted)
        for i, name in enumerate(names):
            beside(axes, name, (0, i), -6, size=7.5, weight="bold", color=LIGHT.ink)
            rounds = found[found["backbone"] == name]
            if rounds.empty:
                axes.text(60, i, NOT_RUN, size=7, style="italic", va="center", color=LIGHT.muted)
                continue
            axes.scatter(rounds["printed"][:1], [i], s=44, facecolors="none", edgecolors=LIGHT.ink,
                         linewidths=0.9)  # fmt: skip
            beside(axes, f"{rounds['share'].median():.0f} %", (1, i), 6, color=LIGHT.muted, size=7)
        places = found["backbone"].map(names.index)
        swarm(axes, found["share"], places, colour("PANM"), size=3.5, bar=None)
        high = max(100, found["share"].max() * 1.05) if len(found) else 100
        axes.set(xlim=(0, high), ylim=(len(names) - 0.5, -0.5), yticks=[])
        ticks = [0, 50, 100] if layout.narrow else [0, 25, 50, 75, 100]
        axes.set_xticks(ticks, [*map(str, ticks[:-1]), "100 %"])
        axes.tick_params(colors=LIGHT.muted, labelsize=7, length=3)
        frameless(axes, base=True)
        return drawing

    caption = (
        "Training speed with PANM, in percent of the backbone's. A dot is a round; the median "
        "stands at the right. Band: what the paper says overall. Rings: its examples, measured on "
        f"a GPU. {_where(measured)}"
    )
    if measured is None:
        return exhibits.waiting(caption, f"{PAGE}-shares", COMMAND, found)
    medians = found.groupby("backbone", sort=False)["share"].median()
    said = "; ".join(f"{name} {value:.0f} %" for name, value in medians.items()) or NOT_RUN
    alt = f"Share of the backbone's training speed that is left with PANM. Medians: {said}."
    return drawn(draw, f"{PAGE}-shares", caption, alt, found, number, PAGE, kind=MEASURED)


def _where(measured: dict[str, Any] | None) -> str:
    if measured is None:
        return ""
    origin = measured["provenance"]
    return (
        f"{measured['rounds']} rounds on {Device.of(measured)}, PyTorch {origin['torch']}, batches "
        f"of {measured['batch_size']} sequences of length {measured['length']}, measured "
        f"{origin['created'][:10]}."
    )


def table(measured: dict[str, Any] | None, older: str = "") -> Exhibit:
    """Steps per second and sizes of both models of every pair.

    older: what :func:`before` says
    """
    found = data(measured)
    columns = {"backbone": "text"} | dict.fromkeys(
        ("steps/s alone", "steps/s with PANM", "share", "printed", "weights", "weights with PANM"),
        "number",
    )
    rows = []
    for pair in overhead.PAIRS:
        printed = "–" if pair.printed is None else f"{100 * pair.printed:.0f} %"
        rounds = found[found["backbone"] == pair.name]
        if rounds.empty:
            rows.append((pair.name, NOT_RUN, NOT_RUN, NOT_RUN, printed, "–", "–"))
            continue
        sizes = (f"{size:,}" for size in measured["pairs"][pair.name]["parameters"])
        middle = rounds[["bare", "with_pointers", "share"]].median()
        speeds = (f"{middle['bare']:.1f}", f"{middle['with_pointers']:.1f}")
        rows.append((pair.name, *speeds, f"{middle['share']:.0f} %", printed, *sizes))
    caption = (
        f"<b>Medians of the rounds.</b> {_where(measured)} In the last row both models are PANM: "
        f"alone, it has two Mode-1 pointers and one of Mode 2; beside it, three and two.{older}"
    )
    name = f"{PAGE}-table"
    if measured is None:
        return exhibits.waiting(caption, name, COMMAND, found)
    links = [exhibits.csv(name, found), exhibits.notebook(PAGE)]
    html = exhibits.table(rows_table(columns, rows), titled(caption, MEASURED), name, links)
    return Exhibit(html, f"{found['backbone'].nunique()} of {len(rows)} pairs measured.", found)


def numbers(measured: dict[str, Any] | None) -> str:
    """The medians as plain text."""
    found = data(measured)
    lines = [f"{'backbone':<30}{'rounds':>7}{'alone':>10}{'with PANM':>12}{'share, %':>10}"]
    for pair in overhead.PAIRS:
        rounds = found[found["backbone"] == pair.name]
        head = f"{pair.name:<30}{len(rounds):>7}"
        if rounds.empty:
            lines.append(head + f"{NOT_RUN:>10}{NOT_RUN:>12}{NOT_RUN:>10}")
            continue
        middle = rounds[["bare", "with_pointers", "share"]].median()
        values = f"{middle['bare']:>10.1f}{middle['with_pointers']:>12.1f}{middle['share']:>10.0f}"
        lines.append(head + values)
    return "\n".join(lines)


# Claim, backbone (None for all of them), the share that it states.
STATED = (
    ("panm-076", None, 0.75),
    ("panm-077", overhead.LSTM, 15 / 20),
    ("panm-078", "Transformer, 2 layers", 77 / 90),
)
# The other model that a sentence may be about.
EITHER = dict.fromkeys(("panm-074", "panm-077"), overhead.OF_THE_TABLES)
EXTRA = ("panm-074", overhead.LSTM, (20, 30))  # percent of computing that pointers add
SIZED = "panm-039"
# What the verdicts on these claims leave out.
HALF = (
    "Alone, a Transformer reads the input and as many empty places of the answer; under pointers "
    "it reads the input only, and is cheaper for it, the more so the deeper it is."
)
SCOPES = {
    "panm-076": HALF,
    "panm-078": HALF,
    "panm-080": f"{HALF} The difference is how far the share is from one, whichever model is the "
    "faster. (At first a larger share was asked for, which PANM also has where it is the faster "
    "one.)",
    "panm-077": "Which LSTM is meant is not said. That of 256 units is PANM's own encoder, as in "
    "the text; that of 512 is the baseline of the tables, and slower than PANM. Decided only if "
    "both say the same. (Until after the measurement the second was shown and not judged.)",
    "panm-074": "For an LSTM as the backbone; no language model is measured. As in panm-077, both "
    "LSTMs have to say the same. (Until after the measurement that of 256 units alone was asked.)",
    SIZED: "Counted for the models whose code is public, as that code has them, without weights "
    "that it never uses.",
}


# Millions of weights that Appendix D.1 gives each model: the least and the most.
SIZES = (
    dict.fromkeys(("LSTM", "Location Attention", "Content Attention", "Hybrid Attention"), (1, 3))
    | dict.fromkeys(("Transformer", "PtrNet"), (1, 3))
    | dict.fromkeys(("NTM", "DNC", "ESBN"), (1.2, 1.2))
    | dict.fromkeys(("Neural Stack", "NRAM", "PANM"), (1.1, 1.1))
)


@cache
def sizes() -> pd.DataFrame:
    """Weights of every model of the tables, in each of its readings, and what the paper says.

    Columns: model, arm, weights, least, most (as printed, in millions), judged (whether the arm is
    public code: others have sizes that were chosen to be the paper's), near (whether the weights
    are within the margin for costs of what is printed).
    """
    experiment, room = experiments()["panm_algorithmic"], load_margins().measures["cost_ratio"]
    rows = []
    for spec in experiment.specs("reduced", [0]):
        if spec.task.name != Copy().name:
            continue
        size, (least, most) = weights(spec.model, spec.task.shape), SIZES[spec.row]
        near = least - room.around(least) <= size / 1e6 <= most + room.around(most)
        public = spec.model.arm == "released"
        rows.append((spec.row, spec.model.arm, size, least, most, public, near))
    columns = ["model", "arm", "weights", "least", "most", "judged", "near"]
    return pd.DataFrame(rows, columns=columns)


def sized() -> rules.Decision:
    """Decide whether the models of the public code have the sizes that the paper says."""
    judged = sizes().query("judged")
    other = [f"{one.model} {one.weights / 1e6:.2f}" for one in judged.query("~near").itertuples()]
    seen = f"{judged['near'].sum()} of {len(judged)} models of the public code have the size said"
    seen += f"; in millions, {', '.join(other)}" if other else ""
    return rules.fact(not other)._replace(seen=seen)


def decisions(measured: dict[str, Any] | None) -> list[tuple[str, rules.Decision | None]]:
    """Decide the claims by the measured rounds or sizes; None where nothing is measured.

    The margin is that for ratios of costs. Where a claim is about every backbone, each is a part,
    but not the baseline of the tables, which is twice as wide as the encoder of the PANM beside it;
    that a larger backbone loses less (panm-080) is asked of the Transformers' rounds, and that
    pointers are slow (panm-090) of PANM with two more of them: by a majority of rounds. Where a
    sentence does not say which of two models it is about (EITHER), both have to say the same.
    """
    margins = load_margins()
    room, pairs = margins.measures["cost_ratio"], measured["pairs"] if measured else {}

    def of(names: Sequence[str], rule: Callable[..., rules.Decision]) -> rules.Decision | None:
        known = all(name in pairs for name in names)
        return rule(*(np.array(overhead.shares(pairs[name])) for name in names)) if known else None

    found = []
    for claim, backbone, share in STATED:
        asked = [backbone] if backbone else BACKBONES

        def near(*shares: np.ndarray, share: float = share) -> rules.Decision:
            parts = [rules.cost(one, share, room, margins) for one in shares]
            return rules.conjunction(parts, margins, unit="round")

        decision, other = of(asked, near), EITHER.get(claim)
        if decision and other in pairs:
            decision = either(decision, near(np.array(overhead.shares(pairs[other]))), other)
        found.append((claim, decision))
    claim, backbone, (low, high) = EXTRA

    def added(left: np.ndarray) -> rules.Decision:
        return rules.inside(100 * (1 / left - 1), low, high, room, margins)

    more, other = of([backbone], added), EITHER[claim]
    if more and other in pairs:
        more = either(more, added(np.array(overhead.shares(pairs[other]))), other)
    two_and_six = [f"Transformer, {layers} layers" for layers in (2, 6)]
    less = of(
        two_and_six,
        lambda small, large: rules.majority(abs(1 - large) < abs(1 - small), margins),
    )
    slower = of([overhead.MORE_POINTERS], lambda shares: rules.majority(shares < 1, margins))
    said = [(SIZED, sized()), (claim, more), *found]
    return [*said, ("panm-080", less), ("panm-090", slower)]


def either(judged: rules.Decision, other: rules.Decision, name: str) -> rules.Decision:
    """Decide only what is decided the same way of both models that a sentence may be about.

    A printed ratio between both is not contradicted: it may be that of a third one.
    """
    same = judged.outcome == other.outcome
    if judged.outcome == "contradicted":
        same = same and judged.exceeds == other.exceeds
    seen = f"{judged.seen}; {name}, as in the tables: {other.seen}"
    return judged._replace(outcome=judged.outcome if same else "inconclusive", seen=seen)


def sizes_table() -> Exhibit:
    """Weights of every reading of every model, beside what the paper says."""
    found, name = sizes(), f"{PAGE}-sizes"
    columns = {"model": "text", "arm": "text"} | dict.fromkeys(("weights", "printed"), "number")
    rows = []
    for one in found.itertuples():
        printed = " to ".join(f"{n:g}" for n in dict.fromkeys((one.least, one.most)))
        rows.append((one.model, one.arm, f"{one.weights:,}", f"{printed} million"))
    caption = (
        "<b>Weights of each model of Tables 13 to 18 on Copy.</b> We count them in every reading "
        "that a model has. Printed are those of Appendix D.1."
    )
    links = [exhibits.csv(name, found), exhibits.notebook(PAGE)]
    html = exhibits.table(rows_table(columns, rows), titled(caption, COMPUTED), name, links)
    return Exhibit(html, f"{sized().seen}.", found)


def verdicts(measured: dict[str, Any] | None) -> Exhibit:
    """Tabulate the verdicts on the claims about speed, by measurement, and on that about size."""
    caption = (
        "<b>Verdicts on the claims about speed and size.</b> The rule is that for costs: a claim "
        "is reproduced if every round lies within the margin of the stated share, contradicted "
        "if every round lies outside. A majority of rounds decides whether one model is slower. "
        "Sizes have the same margin and need no rounds."
    )
    return computed.verdicts(_seen(decisions(measured)), "seen", PAGE, caption, MEASURED)


def lines(found: Sequence[tuple[str, rules.Decision | None]]) -> str:
    """The verdicts as plain text."""
    return "\n".join(map(str, _seen(found)))


def _seen(found: Sequence[tuple[str, rules.Decision | None]]) -> list[Seen]:
    return [Seen(claim, *judged(decision)) for claim, decision in found]


def judged(decision: rules.Decision | None) -> tuple[str, str]:
    """Say what was seen, and the verdict."""
    return (
        ("nothing is measured", NOT_RUN) if decision is None else (decision.seen, decision.outcome)
    )
