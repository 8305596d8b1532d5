"""Set every printed accuracy of a paper that has runs against ours: one figure and one sentence.

The landing page and the head of each chapter of findings show them. A number counts once, in the
reading that claims judge, and tables of other metrics (edit distances) do not count: they are about
the same runs.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from relength.paths import BOOK
from relength.report.boxes import sizes_in_words
from relength.report.exhibits import Exhibit, specs
from relength.report.figures import drawn
from relength.report.html import fill
from relength.report.markdown import raw
from relength.report.outcomes import NOTHING
from relength.report.scoreboard import Survey
from relength.report.style import (
    ARM_LABELS,
    LIGHT,
    Layout,
    canvas,
    frameless,
    marks,
    spaced,
    title,
    verdict_kind,
)
from relength.specs import registry
from relength.specs.experiments import anchor_of, experiment, page_of
from relength.specs.margins import load_margins
from relength.specs.spec import Scale
from relength.verdicts import claims
from relength.verdicts.claim_models import Claim, ValuePart
from relength.verdicts.evidence import Evidence, Reading
from relength.verdicts.wording import plural, verb

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELLED = 5  # outliers that are named
# The sentence begins with the last word if fewer than half come out, with the first if nearly all
# do: of all printed numbers, and of those between floor and ceiling. Else it holds in part.
HALF, NEARLY_ALL = 0.5, 0.9
WORDS = "Largely", "In part", "Hardly"
BEGUN = "Too few runs yet"  # instead, where fewer numbers have the seeds of a verdict
FEWEST = 20
OTHER = "Tested at small size only"  # instead, where no model is what the paper's is
SHADES = {
    "reproduced": LIGHT.first,
    "contradicted": LIGHT.warning,
    "not-reached": LIGHT.second,
    "exceeded": LIGHT.second,
}
KEY = (
    (LIGHT.first, "reproduced"),
    (LIGHT.warning, "contradicted"),
    (LIGHT.second, "not reached or exceeded at reduced scale"),
    (LIGHT.muted, "seeds disagree"),
)
FEW = "○ fewer seeds than a verdict takes"
LAYERS = (LIGHT.muted, LIGHT.first, LIGHT.second, LIGHT.warning)  # from below
MARKERS = {"reduced": "o", "paper": "s"}


def numbers(paper: str, survey: Survey) -> pd.DataFrame:
    """One row per printed accuracy of a paper that has runs, in the judged reading.

    Columns: claim, artifact, experiment, model, task, test, printed and ours (percent; ours by the
    statistic of the table), values (of the seeds that are judged), seeds (how many), arm, scale,
    label (the verdict), marks (what weakens it), full (where the scale is reduced, the median of
    runs at the paper's own; NaN without any), near (ours is within the margin), between (printed
    strictly between floor and ceiling), guessed (of these: within the margin of what one answer
    gives, always the same), eased (reproduced, and it is known how easily), hardly (of these: could
    hardly fail).
    """
    known = claims.by_id()
    mine = survey.ledger[(survey.ledger["paper"] == paper) & ~survey.ledger["prose"].astype(bool)]
    evidence: dict[str, Evidence] = {}
    rows = []
    for row in mine[mine["seeds"] > 0].itertuples():
        claim = known.get(row.claim)
        if claim is None or not _prints_a_share(claim):
            continue
        source = claim.source.model_dump_json()
        if source not in evidence:
            evidence[source] = Evidence(claim.source, survey.runs)
        rows.append(_number(row, claim, evidence[source]))
    names = ["claim", "artifact", "experiment", "model", "task", "test", "printed", "ours"]
    names += ["values", "seeds", "arm", "scale", "label", "marks", "full", "near", "between"]
    names += ["guessed", "eased", "hardly"]
    table = pd.DataFrame(rows, columns=names)
    return table.drop_duplicates(["experiment", "model", "task", "test"], ignore_index=True)


def printed(paper: str) -> int:
    """Count the accuracies that a paper prints and claims judge, with runs or without."""
    known = claims.load(paper) if paper in claims.papers() else ()
    return len(
        {
            (claim.source.experiment, part.model, part.task, test)
            for claim in known
            if "/" in claim.id and _prints_a_share(claim)
            for part in claim.parts
            for test in part.printed
        }
    )


def effort(data: pd.DataFrame) -> float | None:
    """Compute the median share of the paper's training samples that runs at reduced scale saw.

    data: some :func:`numbers`. None where none is of that scale.
    """
    reduced = data[data["scale"] == "reduced"]
    cells = reduced.groupby(["experiment", "model", "arm", "task"], sort=False).size()
    shares = [_samples(cell, "reduced") / _samples(cell, "paper") for cell in cells.index]
    return float(np.median(np.repeat(shares, cells))) if shares else None


@cache
def _samples(cell: tuple[str, str, str, str], scale: Scale) -> int:
    """Samples that a training goes through, to its last step."""
    name, *who = cell
    for spec in experiment(name).specs(scale, [0]):
        if [spec.row, spec.model.arm, spec.task.name] == who:
            return spec.training.most_steps(spec.task) * spec.training.batch_size
    raise KeyError(cell)


def _prints_a_share(claim: Claim) -> bool:
    """Tell whether a printed number is a percentage; others are edits, or lengths."""
    return registry.metric(claim.source.metric).share and claim.parts[0].above is None


def _number(row: Any, claim: Claim, evidence: Evidence) -> tuple[Any, ...]:
    (part,), (judged,) = claim.parts, row.parts
    assert isinstance(part, ValuePart)
    ((test, said),), fixed = part.printed.items(), load_margins()
    arms = {part.model: claim.source.arm_of(part.model)}
    seeds = max(judged.seeds, fixed.least_seeds)  # stage two has more
    found, margin = Reading(evidence, judged.scale, arms, fixed, seeds).ours(part)
    values = found[:, 0].tolist()
    ours = float(np.mean(values) if part.spread is not None else np.median(values))
    near = abs(ours - said) <= margin.around(said)
    full = np.nan
    cell = "paper", part.model, arms[part.model], part.task
    if judged.scale != "paper" and evidence.seeds(*cell):
        whole = Reading(evidence, "paper", arms, fixed).ours(part)[0][:, 0]
        full = float(np.median(whole)) if len(whole) else np.nan
    where = (row.artifact, claim.source.experiment, part.model, part.task, test)
    return (row.claim, *where, said, ours, values, len(values), arms[part.model], judged.scale,
            row.label, marks(row), full, near, row.between,
            bool(row.between) and _is_guessed(row.paper, part.task, said),
            pd.notna(row.hardly), row.hardly == 1)  # fmt: skip


def _is_guessed(paper: str, task: str, printed: float) -> bool:
    """Tell whether a printed percentage is within the margin of giving one answer, always."""
    guess = guessing(paper, task)
    return guess is not None and load_margins().measures["accuracy"].around(guess) >= abs(
        printed - guess
    )


def guessing(paper: str, task: str) -> float | None:
    """Percent right of who always gives one answer; None where nobody says."""
    known = registry.papers()[paper].guessed
    return next((value for name, value in known.items() if task.startswith(name)), None)


class Count(NamedTuple):
    """Numbers that come out within the margin, of how many."""

    near: int
    of: int


def count(rows: pd.DataFrame) -> Count:
    """Count the numbers of some rows of :func:`numbers`."""
    return Count(int(rows["near"].sum()), len(rows))


def outliers(data: pd.DataFrame) -> pd.DataFrame:
    """The numbers that are named: at most LABELLED, none of them near.

    Contradicted ones come first, one per model and task, then those with the seeds of a verdict,
    then others, one per model; of these the furthest.
    """
    apart = (data["ours"] - data["printed"]).abs()
    against = data["label"].map(verdict_kind).eq("contradicted")
    few = ~data.index.isin(decided(data).index)
    far = data.assign(apart=apart, against=against, few=few)[~data["near"].astype(bool)]
    order = {"by": ["against", "few", "apart"], "ascending": [False, True, False]}
    far = far.sort_values(**order, kind="stable").drop_duplicates(["model", "task"])
    again = far["model"].duplicated() & ~far["against"]
    return far[~again].head(LABELLED).drop(columns=["against", "few"])


def mostly(data: pd.DataFrame) -> tuple[str, int] | None:
    """Name the model or task with most of the numbers that do not come out, and their count.

    None where neither has a third of them, or two have as many; a model or a task that all numbers
    are of says nothing.
    """
    off = data[~data["near"].astype(bool)]
    groups: Counter[str] = Counter()
    if data["model"].nunique() > 1:
        groups.update(off["model"])
    if data["task"].nunique() > 1:
        groups.update(map(title, off["task"]))
    if not groups:
        return None
    (name, most), *others = groups.most_common(2)
    ahead = not others or most > others[0][1]
    return (name, most) if ahead and 3 * most >= len(off) else None


def decided(data: pd.DataFrame) -> pd.DataFrame:
    """The rows of :func:`numbers` that have the seeds of a verdict."""
    return data[data["seeds"] >= load_margins().least_seeds]


def held(every: Count, middle: Count) -> str:
    """Choose a paper's word from the shares of all numbers and of hard numbers that come out.

    Numbers at the floor, the ceiling and the share of guesses come out easily, so that they alone
    make no word.

    >>> held(Count(95, 100), Count(3, 10))
    'In part'
    """
    shares = [some.near / some.of for some in (every, middle) if some.of]
    if min(shares) >= NEARLY_ALL:
        return WORDS[0]
    return WORDS[2] if max(shares) < HALF else WORDS[1]


def sentence(paper: str, data: pd.DataFrame) -> str:
    """Say in a word whether the printed numbers come out, and count which do not.

    Counted are those with the seeds of a verdict, if there are any.
    """
    enough = decided(data)
    shown = enough if len(enough) else data
    guessed = shown["guessed"].astype(bool)
    every, easy = count(shown), count(shown[guessed])
    middle = count(shown[shown["between"].astype(bool) & ~guessed])
    room, (low, high) = load_margins().measures["accuracy"].around(0), load_margins().between
    word = held(every, middle)
    if not (shown["scale"] == "paper").any():
        word += ", at reduced scale"
    if len(enough) < FEWEST:
        word = BEGUN
    elif registry.papers()[paper].parameters:
        word = OTHER
    have = f"{load_margins().least_seeds} seeds here" if len(enough) else "runs here"
    said = (
        f"**{word}.** Of the {every.of} printed accuracies with {have}, {every.near} "
        f"{verb(every.near, 'come')} out within {room:g} points."
    )
    if middle.of:
        said += (
            f" Of the {middle.of} hard ones, printed between {low:g} and {high:g} %"
            f"{' and not at guessing' if easy.of else ''}, "
            f"{middle.near} {verb(middle.near, 'do')}."
        )
    if easy.of:
        (share,) = {guessing(paper, task) for task in shown["task"][guessed]}
        said += (
            f" {easy.of} more {verb(easy.of, 'are')} printed within {room:g} points of "
            f"{share:.3g} %, which a model that always gives the same answer has on average; "
            f"{easy.near} of them {verb(easy.near, 'do')}."
        )
    far = shown[~shown["near"].astype(bool)]
    if len(far):
        above = int((far["ours"] > far["printed"]).sum())
        told = f"{above or 'none'} {verb(above or 1, 'are')} above print"
        if group := mostly(shown):
            told += f", and {group[1]} {verb(group[1], 'are')} of {group[0]}"
        said += f" Of the {len(far)} that {verb(len(far), 'do')} not come out, {told}."
    return said


def asides(paper: str, data: pd.DataFrame, survey: Survey) -> str:
    """Say what one has to know to weigh the :func:`sentence`, as a small paragraph in Markdown."""
    enough = decided(data)
    shown = enough if len(enough) else data
    facts = [f"{printed(paper) - len(shown)} more have too few runs", _trained(shown)]
    if reproduced := int(shown["label"].map(verdict_kind).eq("reproduced").sum()):
        facts.append(f"{reproduced} of the {count(shown).near} have the verdict *reproduced*")
    if hardly := int(shown["hardly"].sum()):
        facts.append(f"{hardly} of these {{ref}}`could hardly fail <severity>`")
    if size := registry.papers()[paper].parameters:
        runs = set(_used(shown, survey))
        ours = [r["parameters"] for r in survey.store.records() if r["run_id"] in runs]
        facts.append(f"our models are small: {sizes_in_words(ours, size)}")
    return f":::{{container}} asides\n{' · '.join(facts)}\n:::\n"


def _trained(data: pd.DataFrame) -> str:
    """Word the share of the paper's training that numbers were made with."""
    share, at_paper = effort(data), int((data["scale"] == "paper").sum())
    if share is None:
        return "all trained at the paper's own scale"
    some = f"{at_paper} trained at the paper's own scale, the others" if at_paper else "trained"
    return f"{some} on {100 * share:.2g} % of the paper's samples in the median"


def figure(paper: str, data: pd.DataFrame, survey: Survey, place: str) -> Exhibit:
    """Printed against ours, a mark per number.

    data   the :func:`numbers` of the paper, not empty
    place  the page it stands on; names the figure there
    """
    named = outliers(data)
    every = count(decided(data) if len(decided(data)) else data)
    room = load_margins().measures["accuracy"].around(0)
    about = registry.papers()[paper]
    caption = (
        f"{about.short}, printed against ours. A mark is one printed accuracy. Across: what the "
        "paper prints. Upwards: ours, by the paper's statistic where it says one, each seed a "
        "faint dot. A hollow mark has too few seeds for a verdict. "
        f"Marks in the band come out within {room:g} points. Circles are runs at reduced scale, "
        "squares at the paper's."
    )
    alt = (
        f"Our accuracy against the printed one for {len(data)} numbers. Of {every.of} with the "
        f"seeds of a verdict {every.near} are within {room:g} points. "
        f"Furthest away: {'; '.join(map(_told, named.itertuples())) or 'none'}."
    )
    anchor = f"{place}-{paper}-print"
    records = {record["run_id"]: record for record in survey.store.records()}
    used = _used(data, survey)
    links = specs(anchor, (records[run] for run in used if run in records))
    return drawn(
        lambda layout: _draw(data, named, layout),
        anchor,
        caption,
        alt,
        data.drop(columns="values").assign(seeds_are=[" ".join(f"{v:.1f}" for v in row)
                                                      for row in data["values"]]),
        1,
        str(about.main or data["experiment"].iloc[0]),
        links,
        kind="",
        prose=True,
    )  # fmt: skip


def _used(data: pd.DataFrame, survey: Survey) -> list[str]:
    """Ids of the runs behind the numbers: in each cell the first seeds, which are judged."""
    cell = ["experiment", "model", "arm", "task", "scale"]
    found = survey.runs.drop_duplicates(["experiment", "run_id"]).sort_values("seed")
    found = found.merge(data[[*cell, "seeds"]].drop_duplicates(cell), on=cell)
    first = found.groupby(cell).cumcount() < found["seeds"]
    return list(dict.fromkeys(found.loc[first, "run_id"]))


def _at(test: str) -> str:
    """Name a test behind its task: *at 1k* if it is a length, else *, median*."""
    return (f" at {test}" if test[0].isdigit() else f", {test}") if test else ""


def _told(row: Any) -> str:
    """One number in words: who, on what, printed and ours."""
    reading = f" ({ARM_LABELS[row.arm]})" if row.arm != "released" else ""
    usual = row.seeds == load_margins().least_seeds  # what tables show, even after stage two
    seeds = "" if usual else f" ({plural(row.seeds, 'seed')})"
    whole = "" if np.isnan(row.full) else f", {row.full:.0f} at the paper's own scale"
    verdict = "; ".join([row.label, *row.marks])
    return (
        f"{row.model}{reading} on {title(row.task)}{_at(row.test)}: printed {row.printed:g}, ours "
        f"{row.ours:.0f}{seeds}{whole} ({verdict})"
    )


def listed(data: pd.DataFrame) -> str:
    """The outliers as a list of links to the tables that show them, in HTML; empty for none."""
    rows = [(_told(row), _address(row)) for row in outliers(data).itertuples()]
    return fill("outliers", rows=rows) if rows else ""


def _address(row: Any) -> str:
    """The page of a number, at the table that has it beside the printed one."""
    page = page_of(row.artifact, row.experiment)
    beside = row.artifact in experiment(row.experiment).tables
    return f"executed/{page}.html" + f"#{anchor_of(row.artifact, page)}-side-by-side" * beside


def shown(paper: str, data: pd.DataFrame, survey: Survey, place: str) -> str:
    """The figure of some :func:`numbers` and the list of outliers, in Markdown; empty for none."""
    if data.empty:
        return ""
    exhibit = figure(paper, data, survey, place)
    return raw(exhibit.html + listed(data))


def head(paper: str, survey: Survey) -> str:
    """The beginning of a paper's chapter of findings: the sentence, the figure, the outliers."""
    data = numbers(paper, survey)
    if data.empty:
        return NOTHING
    said = f"{sentence(paper, data)}\n\n{asides(paper, data, survey)}"
    return f"{said}\n{shown(paper, data, survey, 'findings')}"


# The drawing

SIDE = {"wide": 4.4, "narrow": 2.75}  # inches of the square
LEFT, BELOW, ABOVE = 0.55, 0.55, 0.1
KEY_LINE = 0.16  # inches between two lines of the key
DOT = 2.2  # points of a seed's dot from side to side
TOUCHING = 5  # points between marks whose numbers would lie on one another


def _draw(data: pd.DataFrame, named: pd.DataFrame, layout: Layout) -> "Figure":
    side = SIDE[layout.name]
    enough = decided(data)
    known = {_shade(label) for label in enough["label"]}
    keys = [(shade, f"● {words}") for shade, words in KEY if shade in known]
    keys += [(LIGHT.muted, FEW)] * (len(enough) < len(data))
    above = ABOVE + KEY_LINE * len(keys)
    height = above + side + BELOW
    figure = canvas(layout, height)
    axes = figure.add_axes(
        (LEFT / layout.width, BELOW / height, side / layout.width, side / height)
    )
    _frame(axes)
    few = data.drop(enough.index)
    for scale, rows in few.groupby("scale"):
        _dots(axes, rows, LIGHT.muted)
        axes.scatter(
            rows["printed"], rows["ours"], s=12, marker=MARKERS[scale], facecolor="none",
            edgecolor=LIGHT.muted, alpha=0.45, linewidth=0.6, clip_on=False, zorder=2,
        )  # fmt: skip
    data = enough
    shades = data["label"].map(_shade)
    for shade, rows in data.groupby(shades, sort=False):
        _dots(axes, rows, shade)
    # What is undecided lies below what is decided.
    layers = pd.Categorical(shades, LAYERS, ordered=True)
    for (shade, scale), rows in data.groupby([layers, "scale"], observed=True):
        axes.scatter(
            rows["printed"], rows["ours"], s=19, marker=MARKERS[scale], color=shade, alpha=0.75,
            linewidth=0, clip_on=False, zorder=3,
        )  # fmt: skip
    _corners(axes, data)
    _names(axes, named, layout)
    _key(figure, keys, layout, height)
    return figure


def _dots(axes: "Axes", rows: pd.DataFrame, shade: str) -> None:
    """Every seed of some numbers, as one path: thousands of marks would make a page slow.

    A dot is a line of no length with round ends.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    seeds = rows.explode("values")[["printed", "values"]].to_numpy(float)
    path = Path(seeds.repeat(2, axis=0), [Path.MOVETO, Path.LINETO] * len(seeds))
    path.should_simplify = False  # which would leave out lines of no length
    axes.add_patch(
        PathPatch(
            path, fill=False, edgecolor=shade, alpha=0.2, linewidth=DOT, capstyle="round",
            clip_on=False, zorder=2,
        )
    )  # fmt: skip


def _frame(axes: "Axes") -> None:
    room = load_margins().measures["accuracy"].around(0)
    axes.patch.set_visible(False)
    axes.set(xlim=(-4, 104), ylim=(-12, 112))  # room for the counts of floor and ceiling
    ends = np.array([0.0, 100.0])
    axes.fill_between(ends, ends - room, ends + room, color=LIGHT.surface, linewidth=0, zorder=0)
    axes.plot(ends, ends, color=LIGHT.rule, linewidth=0.8, zorder=1)
    ticks = [0, 25, 50, 75, 100]
    axes.set_xticks(ticks, [*map(str, ticks[:-1]), "100 %"])
    axes.set_yticks(ticks, [*map(str, ticks[:-1]), "100 %"])
    axes.tick_params(length=0, labelsize=7, labelcolor=LIGHT.muted)
    frameless(axes)
    axes.set_xlabel("printed in the paper", size=7.5, color=LIGHT.muted)
    axes.set_ylabel("trained again here", size=7.5, color=LIGHT.muted)


def _corners(axes: "Axes", data: pd.DataFrame) -> None:
    """Count the numbers at floor and ceiling, which lie on one another; as in :func:`sentence`."""
    floor, ceiling = load_margins().between
    data = decided(data) if len(decided(data)) else data
    for low, place, side in ((True, (-2, -8.5), "left"), (False, (102, 108.5), "right")):
        printed = data["printed"]
        rows = data[printed <= floor if low else printed >= ceiling]
        if len(rows) > 1:
            near = count(rows)
            axes.annotate(
                f"printed {'at most' if low else 'at least'} {floor if low else ceiling:g} %: "
                f"{near.near} of {near.of} {verb(near.near, 'come')} out",
                place, size=7, color=LIGHT.muted, ha=side, va="center",
            )  # fmt: skip


def _names(axes: "Axes", named: pd.DataFrame, layout: Layout) -> None:
    """Name the outliers: in words beside a wide drawing, by number in a narrow one."""
    order = named.reset_index(drop=True)
    if layout.narrow:
        near = [(order["printed"] / TOUCHING).round(), (order["ours"] / TOUCHING).round()]
        for _, rows in order.groupby(near):
            axes.annotate(
                ", ".join(str(place + 1) for place in rows.index),
                (rows["printed"].iloc[0], rows["ours"].iloc[0]),
                (-4 if rows["printed"].iloc[0] > 50 else 4, 3),
                textcoords="offset points",
                ha="right" if rows["printed"].iloc[0] > 50 else "left",
                size=7,
                weight="bold",
                color=LIGHT.ink,
            )
        return
    order = order.sort_values("ours", kind="stable")
    heights = spaced([row.ours for row in order.itertuples()], 13.0, low=4.0, high=100.0)
    for row, height in zip(order.itertuples(), heights, strict=True):
        words = f"{row.model} on {title(row.task)}{_at(row.test)}"
        axes.annotate(
            f"{words}\n{row.printed:g} printed, {row.ours:.0f} here",
            (row.printed, row.ours),
            (108, height),
            annotation_clip=False,
            va="center",
            size=7.2,
            color=LIGHT.ink,
            arrowprops={
                "arrowstyle": "-", "color": LIGHT.muted, "linewidth": 0.5, "shrinkA": 1,
                "shrinkB": 3, "relpos": (0, 0.5),
            },
        )  # fmt: skip


def _key(figure: "Figure", keys: Sequence[tuple[str, str]], layout: Layout, height: float) -> None:
    """A line above the drawing for each colour in it."""
    for k, (shade, words) in enumerate(keys):
        place = (LEFT / layout.width, 1 - KEY_LINE * (k + 0.5) / height)
        figure.text(*place, words, size=7, color=shade, va="center")


def _shade(label: str) -> str:
    kind = verdict_kind(label)
    return next((shade for name, shade in SHADES.items() if kind.startswith(name)), LIGHT.muted)


PASSAGES = {
    f"print_{paper}": partial(head, paper)
    for paper in registry.papers()
    if (BOOK / f"findings_{paper}.md").exists()  # the page that shows it
}
