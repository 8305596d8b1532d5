"""Beyond the paper: which terms of the loss decide what is left of accuracy in long contexts.

No table of the paper leaves a term out. Of each ablation the recorded runs tell, length by length,
how many answers are right, and how often the memory is read at the wanted line.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from relength.papers.memreasoner.experiments import LOSSES, terms_of, with_all_terms
from relength.papers.memreasoner.split import framed
from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.figures import exhibit
from relength.report.grid import NOT_RUN, say_not_run
from relength.report.runs import Runs
from relength.report.seeds import seed_lines
from relength.report.style import LIGHT, Layout, aligned, colour, grid_of_panels
from relength.report.tables import signed
from relength.report.wording import words, wrapped
from relength.specs.margins import load_margins
from relength.specs.spec import RunSpec
from relength.tasks.facts import LENGTHS, PLACES
from relength.verdicts.wording import noun_for, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHANCE = 100 / len(PLACES)
# Where choices of terms are compared: the shortest context with a novel, and the mean over the long
# ones, which Tables 2 and 3 have as a column, too.
CONTEXTS = {"at 1k": ("1k",), "from 16k on": LENGTHS[LENGTHS.index("16k") :]}
# Shares of questions that a record has, and what they are called here.
SHARES = {"answer_accuracy": "accuracy", "facts_found": "found", "answer_and_facts": "both"}


def accuracies(runs: Runs) -> pd.DataFrame:
    """A row per run and length.

    Columns: terms, seed, length, in percent accuracy, found and both (answered, and from the wanted
    line), knows (whether the run solves bAbI's own test, without which a novel tells nothing).
    """
    rows, solved = [], load_margins().levels["solved"]
    for record in runs.records:
        spec = RunSpec.recorded(record["spec"])
        tests = record["checkpoints"]["selected"]["tests"]
        knows = solved.holds(100 * tests["babi"]["answer_accuracy"])
        for length in spec.task.lengths:
            shares = (100 * tests[length][name] for name in SHARES)
            rows.append((terms_of(spec), spec.seed, length, *shares, knows))
    columns = ["terms", "seed", "length", *SHARES.values(), "knows"]
    kinds = {"seed": int, **dict.fromkeys(SHARES.values(), float), "knows": bool}
    return pd.DataFrame(rows, columns=columns).astype(kinds)


def unlearned(runs: Runs) -> dict[str, list[int]]:
    """{choice of terms: seeds that do not solve bAbI's own test}, of those that have any."""
    data = accuracies(runs)
    idle = data[~data["knows"]].drop_duplicates(["terms", "seed"])
    found = idle.groupby("terms")["seed"].agg(sorted).to_dict()
    return {terms: found[terms] for terms in LOSSES if terms in found}


def gains(
    data: pd.DataFrame, terms: str, lengths: "Sequence[str]", learned: bool = False
) -> pd.Series:
    """Accuracy of a choice of terms less that of all terms in the same reading, by seed.

    data     of :func:`accuracies`
    lengths  over which accuracy is a mean
    learned  only seeds of which both runs solve bAbI's own test

    It is empty without runs of both. A seed counts if both runs have all lengths.
    """
    data = data[data["length"].isin(lengths) & (data["knows"] | (not learned))]
    wide = data.pivot(index=["seed", "length"], columns="terms", values="accuracy")
    pair = [terms, with_all_terms(terms)]
    if not {*pair} <= set(wide.columns):
        return pd.Series(dtype=float)
    both = wide[pair].dropna()
    gain = (both[pair[0]] - both[pair[1]]).groupby("seed")
    return gain.mean()[gain.size() == len(lengths)]


def medians(runs: Runs, of: str = "accuracy") -> pd.DataFrame:
    """Medians over seeds, a row per choice of terms that has runs, a column per length."""
    data = accuracies(runs)
    found = data.groupby(["terms", "length"])[of].median().unstack()
    names = [name for name in LOSSES if name in found.index]
    lengths = [length for length in LENGTHS if length in found.columns]
    return found.loc[names, lengths]


def figure(runs: Runs, number: int) -> Exhibit:
    """Accuracy against length, a panel per choice of terms: every seed, their median, and the
    median with all terms in the same reading.
    """
    data = accuracies(runs)
    middle = medians(runs)
    lengths = list(runs.specs[0].task.lengths)

    def draw(layout: Layout) -> "Figure":
        def panel(axes: "Axes", terms: str) -> None:
            _panel(axes, terms, data[data["terms"] == terms], middle, lengths)

        return in_panels(layout, panel)

    caption = (
        "What is each term of the loss worth? Percent of questions answered, against the length of "
        "the context in thousand tokens; titles name what is left out, or what is kept. A thin "
        "line with dots is a run, the thick one their median. The grey line is the median with all "
        "terms in the same reading of the memory. Dashed: one of six places, guessed."
    )
    told = "; ".join(
        f"{terms}: " + ", ".join(f"{length} {value:.0f} %" for length, value in row.items())
        for terms, row in middle.iterrows()
    )
    alt = f"Accuracy against length without some terms of the loss. Medians: {told or NOT_RUN}."
    return exhibit(runs, number, draw, "lengths", caption, alt, data)


def in_panels(layout: Layout, panel: "Callable[[Axes, str], None]") -> "Figure":
    """A drawing with a panel per choice of terms, two in a row and one on a phone.

    panel  draws into axes what is known of a choice
    """
    around = {"head": 0.34, "foot": 0.3, "left": 0.42, "right": 0.2}
    across = 1 if layout.narrow else 2
    drawing, places, _ = grid_of_panels(layout, len(LOSSES), across, tall=1.05, **around)
    for axes, terms in zip(places, LOSSES, strict=True):
        axes.patch.set_visible(False)
        panel(axes, terms)
        framed(axes, terms)
    return drawing


def _panel(
    axes: "Axes", terms: str, data: pd.DataFrame, middle: pd.DataFrame, lengths: list[str]
) -> None:
    x = np.arange(len(lengths))
    axes.set(xlim=(-0.3, len(lengths) - 0.7), ylim=(-4, 104))
    for level in (0, 50, 100):
        axes.axhline(level, color=LIGHT.rule, linewidth=0.6, zorder=0)
    axes.axhline(CHANCE, color=LIGHT.muted, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
    axes.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    axes.set_xticks(x, [length.removesuffix("k") for length in lengths])
    whole = with_all_terms(terms)
    if terms != whole and whole in middle.index:
        axes.plot(x, middle.loc[whole, lengths], color=LIGHT.muted, lw=1.2, alpha=0.6, zorder=2)
    every_seed(axes, data, "length", "accuracy", lengths)


def every_seed(
    axes: "Axes", data: pd.DataFrame, test: str, value: str, tests: "Sequence[str]"
) -> None:
    """Draw a thin line per seed and, of more than two, their median; words where there is none.

    test, value  columns of data: where a point stands among ``tests``, and its height
    """
    if data.empty:
        say_not_run(axes)
        return
    placed = data.assign(place=data[test].map({name: k for k, name in enumerate(tests)}))
    thin = {"width": 0.5, "alpha": 0.7, "marker": "o", "markersize": 2, "markeredgewidth": 0}
    seed_lines(
        axes, placed, "place", value, colour("MemReasoner"), median=1.7, clip_on=False, zorder=3,
        **thin,
    )  # fmt: skip


def table(runs: Runs) -> Exhibit:
    """Medians of accuracy by length, below each the share of questions whose line was read, and of
    those of which both hold.
    """
    right, found, both = (medians(runs, of) for of in SHARES.values())
    seeds = accuracies(runs).groupby("terms")["seed"].nunique()
    lengths = list(runs.specs[0].task.lengths)
    rows = []
    for terms in LOSSES:
        cells = [f"<small>{NOT_RUN}</small>"] * len(lengths)
        if terms in right.index:
            cells = [
                f"<b>{right.loc[terms, n]:.0f}</b><br><small>{found.loc[terms, n]:.0f} · "
                f"{both.loc[terms, n]:.0f}</small>"
                for n in lengths
            ]
        rows.append((terms, str(seeds.get(terms, 0)), *cells))
    caption = (
        f"<b>Right answers, and right lines.</b> {badges(runs.scale, runs.freshness)} Medians over "
        "seeds, in percent, by length of the context: questions answered, and below, smaller, "
        "questions for which the memory was read at the wanted line, and those of which both hold."
    )
    name, data = f"{runs.page}-table", accuracies(runs)
    if not runs.records:
        return exhibits.waiting(caption, name, exhibits.training(runs), data)
    columns = {"terms": "text", "seeds": "number", **dict.fromkeys(lengths, "number")}
    links = [exhibits.csv(name, data), exhibits.notebook(runs.page)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    return Exhibit(html, f"{len(right)} of {len(LOSSES)} choices of terms have runs.", data)


def numbers(runs: Runs) -> str:
    """The medians as plain text, a line per choice of terms."""
    lengths, lines = list(runs.specs[0].task.lengths), []
    seeds = accuracies(runs).groupby("terms")["seed"].nunique()
    words = "answers right", "lines found", "both"
    for of, said in zip(SHARES.values(), words, strict=True):
        middle = medians(runs, of)
        rows = [[said, "seeds", *lengths]]
        for terms in LOSSES:
            known = terms in middle.index
            cells = [f"{middle.loc[terms, n]:.0f}" if known else "–" for n in lengths]
            rows.append([f"  {terms}", str(seeds.get(terms, 0)), *cells])
        lines += ["", *aligned(*rows)]
    head = f"Without terms of the loss, {runs.scale} scale: medians over seeds, percent"
    return "\n".join([head, *lines])


def outcome(runs: Runs) -> str:
    """Word the effect of leaving out each term, seed by seed beside the run with all terms in the
    same reading.

    It is told of all seeds, and of those of which both runs solve bAbI's own test.
    """
    data, said = accuracies(runs), []
    for terms in LOSSES:
        if terms == with_all_terms(terms):
            continue
        parts = []
        for where, lengths in CONTEXTS.items():
            every, learned = (gains(data, terms, lengths, known) for known in (False, True))
            if every.empty:
                continue
            parts.append(f"{_points(every)} {where} ({_better(every)})")
            if 0 < len(learned) < len(every):
                parts[-1] += f", {_points(learned)} where both know bAbI ({_better(learned)})"
        if parts:
            said.append(f"{terms}: {'; '.join(parts)}.")
    if not said:
        return "Not run yet: a choice of terms beside the run of its seed with all of them."
    head = "Against the run of the same seed and reading with all terms, median over seeds:"
    return "\n".join([head, *said, *_idle(runs)])


def told(runs: Runs) -> str:
    """Wrap the :func:`outcome`, for a notebook to print."""
    return "\n".join(map(wrapped, outcome(runs).splitlines()))


def _points(gain: pd.Series) -> str:
    return f"{signed(gain.median())} points"


def _better(gain: pd.Series) -> str:
    return f"better in {int((gain > 0).sum())} of {plural(len(gain), 'seed')}"


def _idle(runs: Runs) -> list[str]:
    """Name the runs that do not know bAbI itself: a novel tells nothing of these."""
    found = [
        f"{terms} ({noun_for(len(seeds), 'seed')} {words(map(str, seeds))})"
        for terms, seeds in unlearned(runs).items()
    ]
    level = load_margins().levels["solved"].at_least
    return [f"Below {level:g} % of bAbI's own test: {'; '.join(found)}."] if found else []
