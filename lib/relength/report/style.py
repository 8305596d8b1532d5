"""The look of every figure: one colour per model through the whole book, two themes, two widths.

A figure is drawn once per width, as SVG that lies in the page itself: its text is text, in the
page's own type, and the colours that depend on the theme are the page's variables, so it is light
on a light page, dark on a dark one and light again on paper. Models keep their colour everywhere,
so those are of middle lightness: each has a contrast of at least 3 to 1 with the light page and
with the dark one, and any two stay apart for readers with protan, deutan or tritan vision, those of
one paper further than others.
"""

import re
from collections.abc import Sequence
from io import BytesIO
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from relength.specs import registry
from relength.specs.paper import Arm
from relength.verdicts.wording import NEW

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEUTRAL = "#7d8791"  # grey that suits light pages and dark ones
# Of all papers: each model has one colour, each of a paper's own arms one label.
MODEL_COLOURS: dict[str, str] = registry.united("colours")
VARIANTS: dict[str, str] = registry.united("variants")  # not named after what they vary
ARMS: dict[str, Arm] = registry.united("arms")
ARM_LABELS = {
    "released": "as in the code",
    "paper": "as in the text",
    "repaired": "repaired",
    **{name: arm.label for name, arm in ARMS.items()},
}


class Mark(NamedTuple):
    """The mark of a reading: its sign in words, matplotlib's, filled or not, and how far below."""

    sign: str
    marker: str
    filled: bool
    shift: float


MARKS = {
    "released": Mark("●", "o", True, -0.14),
    "paper": Mark("◇", "D", False, 0.14),
    "repaired": Mark("△", "^", False, 0.0),
    **{name: Mark(*arm.mark) for name, arm in ARMS.items() if arm.mark},
}
WORDS = {"iid": "IID", **registry.united("words")}
# A task whose plain name is another paper's begins with its own paper's.
PREFIX = re.compile(rf"^({'|'.join(registry.PAPERS)})_")


class Theme(NamedTuple):
    """Colours that depend on the page. Figures are drawn with those of :data:`LIGHT`."""

    page: str
    ink: str
    muted: str
    rule: str
    surface: str
    first: str  # two accents, where something other than a model needs a colour
    second: str
    warning: str


LIGHT = Theme(
    page="#fdfcf9",
    ink="#1f2529",
    muted="#56626a",
    rule="#d9d5c8",
    surface="#f3f1ea",
    first="#17677f",
    second="#a5500b",
    warning="#b3400b",
)
DARK = Theme(
    page="#14191c",
    ink="#dfe3e4",
    muted="#a3afb5",
    rule="#3a454b",
    surface="#1e2529",
    first="#6fc0d8",
    second="#f0a35e",
    warning="#f59062",
)
PAPER = LIGHT._replace(page="#ffffff")


def variables(theme: Theme) -> str:
    """The theme as CSS declarations: ``--rl-ink: #1f2529; …``."""
    return " ".join(f"--rl-{name}: {value};" for name, value in theme._asdict().items())


class Layout(NamedTuple):
    """Width of a drawing in inches, a CSS pixel being 1/96 inch, so that type has its true size."""

    name: str
    width: float
    narrow: bool


WIDE = Layout("wide", 8.0, narrow=False)
NARROW = Layout("narrow", 3.4, narrow=True)
LAYOUTS = (WIDE, NARROW)

FONT = "DejaVu Sans"  # only its widths count: the page sets the text in its own type
TYPE = {"font.family": FONT, "font.size": 7.5, "axes.unicode_minus": True}
SOLID_CAPS = {"lines.solid_capstyle": "round", "lines.solid_joinstyle": "round"}
TEXT_AS_TEXT = {"svg.fonttype": "none"}


def colour(model: str) -> str:
    """The colour of a model, or of the one it varies: as its paper says, or the first in its name.

    One that has none yet is :data:`NEUTRAL`.
    """
    model = VARIANTS.get(model, model)
    if model in MODEL_COLOURS:
        return MODEL_COLOURS[model]
    words = (VARIANTS.get(word, word) for word in re.split("[ ,]", model))
    return next((MODEL_COLOURS[word] for word in words if word in MODEL_COLOURS), NEUTRAL)


def title(task: str) -> str:
    """A task's name as the papers write it: ``some_task`` is Some Task."""
    words = PREFIX.sub("", task).split("_")
    return " ".join(WORDS.get(word, word.capitalize()) for word in words)


def aligned(*lines: Sequence[str]) -> list[str]:
    """Rows of a table as lines of plain text, as narrow as they can be: a page is not wide.

    The first column is on the left, the others are on the right.
    """
    first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
    return [
        f"{name:<{first}}" + "".join(f"  {c:>{w}}" for c, w in zip(cells, others, strict=True))
        for name, *cells in lines
    ]


def row_label(model: str, arm: str, judged: str) -> str:
    """A row of a table: the model, and its arm where that is not the one that claims judge."""
    return model if arm == judged else f"{model}, {ARM_LABELS.get(arm, arm)}"


def readings(others: str) -> str:
    """A ledger's verdicts on other arms, by what pages call these: *as in the text: not run*."""
    pairs = (one.partition(": ") for one in others.split("; ") if one)
    return "; ".join(f"{ARM_LABELS.get(arm, arm)}: {verdict}" for arm, _, verdict in pairs)


def verdict_kind(verdict: str) -> str:
    """The style class of a verdict: ``not-run``; where the runs were reduced it looks the same."""
    return verdict.removesuffix(" at reduced scale").split(" (")[0].replace(" ", "-")


def marks(row: Any) -> list[str]:
    """Marks beside a verdict of the ledger: that it could hardly fail, that it is fragile,
    that the claim was put into rules when its first runs were known already.
    """
    late = NEW in (row.claim_changed or ())
    told = {
        "could hardly fail": row.hardly,
        "fragile": row.fragile,
        "rule written after its runs": late,
    }
    return [mark for mark, holds in told.items() if holds == 1]  # None where it is unknown


def canvas(layout: Layout, height: float) -> "Figure":
    """An empty figure of the layout's width; height in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(layout.width, height))
    figure.patch.set_visible(False)
    return figure


def grid_of_panels(
    layout: Layout,
    count: int,
    across: int,
    tall: float,
    *,
    head: float,
    foot: float,
    left: float,
    right: float,
    top: float = 0.0,
) -> "tuple[Figure, list[Axes], float]":
    """An empty figure with a grid of panels, row by row; the panels, and its height in inches.

    count       panels, of which so many stand ``across``
    tall        inches of a panel
    head, foot, left, right
                inches around each panel, for what is written there
    top         inches above all of them, for a key
    """
    down = -(-count // across)
    pitch, block = layout.width / across, head + tall + foot
    height = down * block + top
    figure, places = canvas(layout, height), []
    wide, high = (pitch - left - right) / layout.width, tall / height
    for k in range(count):
        row, column = divmod(k, across)
        x, y = column * pitch + left, (down - 1 - row) * block + foot
        places.append(figure.add_axes((x / layout.width, y / height, wide, high)))
    return figure, places, height


def spaced(
    wanted: Sequence[float], gap: float, low: float = -4.0, high: float = 104.0
) -> list[float]:
    """Heights of labels near the wanted ones, which ascend: a gap apart, and from low to high.

    Too many labels for that begin below low.
    """
    placed = list(wanted)
    for i in range(len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + gap if i else low)
    ceiling = high
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return placed


def over_percent(axes: "Axes") -> None:
    """Give a panel the look of one whose heights are percent."""
    axes.set_facecolor(LIGHT.surface)
    axes.set_ylim(-4, 106)
    axes.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    axes.tick_params(colors=LIGHT.muted, labelsize=6.5, length=0)
    axes.grid(axis="y", color=LIGHT.rule, linewidth=0.6)
    axes.set_axisbelow(True)
    frameless(axes)


def frameless(axes: "Axes", base: bool = False) -> None:
    """Take the frame off a panel; with ``base`` its lower edge stays, in the colour of rules."""
    axes.spines[:].set_visible(False)
    if base:
        axes.spines["bottom"].set(visible=True, color=LIGHT.rule)


def style():
    """Context in which figures are drawn and written."""
    from matplotlib import rc_context

    return rc_context({**TYPE, **SOLID_CAPS, **TEXT_AS_TEXT})


TAG = re.compile(r"<[^>]*>")
USES = re.compile(r"(?:<use [^>]*/>){2,}")
STYLE = re.compile(r' style="([^"]*)"')
DECIMALS = re.compile(r"-?\d+\.\d{3,}")
IDENTIFIER = re.compile(r' id="([^"]*)"')
PATH = re.compile(r'\bd="([^"]*)"')
BENDS = re.compile("[CQ]")
HUNDREDTHS = re.compile(r"-?\d+\.\d\d")
TEXT_SHARE = 62  # percent of a model's colour in its label, the rest being ink: 4.5 to 1 or more


def svg(figure: "Figure", name: str) -> str:
    """The figure as an ``<svg>`` element for a page, drawn with the colours of :data:`LIGHT`.

    name: unlike that of any other drawing of the page; what refers to itself in it carries it.
    """
    from matplotlib import rc_context

    raw = BytesIO()
    silent = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(raw, format="svg", metadata=silent)
    text = raw.getvalue().decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    used = set(re.findall(r"#([\w-]+)", text))
    text = IDENTIFIER.sub(lambda found: found[0] if found[1] in used else "", text)
    text = TAG.sub(lambda tag: _compact(tag[0]), text)
    text = re.sub(r">\s+<", "><", text).replace(f"'{FONT}'", "var(--rl-sans, sans-serif)")
    text = USES.sub(lambda found: sharing(found[0]), text)
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    box = f"0 0 {72 * width / 96:g} {72 * height / 96:g}"
    body = text[text.index(">") + 1 :]
    return (
        f'<svg viewBox="{box}" width="{width}" height="{height}" aria-hidden="true" '
        f'stroke-linejoin="round">{themed(body)}'
    )


def themed(drawing: str) -> str:
    """A drawing with the colours of :data:`LIGHT` replaced by the page's variables."""
    for name, value in LIGHT._asdict().items():
        drawing = drawing.replace(value, f"var(--rl-{name})")
    return re.sub(r"<text[^>]*>", lambda tag: _legible(tag[0]), drawing)


def _legible(tag: str) -> str:
    for shade in MODEL_COLOURS.values():
        mixed = f"color-mix(in srgb, {shade} {TEXT_SHARE}%, var(--rl-ink))"
        tag = tag.replace(f"fill: {shade}", f"fill: {mixed}")
    return tag


def _compact(tag: str) -> str:
    """A tag without line breaks and without digits that nobody sees."""
    short = DECIMALS.sub(lambda n: f"{float(n[0]):.2f}".rstrip("0").rstrip("."), tag)
    short = re.sub(r"\s*\n\s*", " ", short)
    return PATH.sub(lambda found: f'd="{short_path(found[1])}"', short)


def short_path(path: str) -> str:
    """A path without the letters and blanks that mean nothing: points after a move are lines.

    A path of straight lines alone is one of data, of which a tenth of a point is all that is seen;
    bends are those of small marks.

    >>> short_path("M 1 2 L 3 4 L 5 6 C 7 8 9 9 8.25 7 L 1 2 z M 0 1 L 1 0 ")
    'M1 2 3 4 5 6C7 8 9 9 8.25 7L1 2zM0 1 1 0'
    >>> short_path("M 1 2.04 L 3.25 14.36 ")
    'M1 2 3.2 14.4'
    """
    if not BENDS.search(path):
        path = HUNDREDTHS.sub(lambda n: f"{float(n[0]):.1f}".removesuffix(".0"), path)
    written, last = [], ""
    for command, points in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        goes_on = command == "L" and last in ("M", "L")
        written.append(f"{' ' if goes_on else command}{points.strip()}")
        last = command
    return "".join(written)


def sharing(marks: str) -> str:
    """Write the style of marks in a row once: they form a group that has it.

    A scatter has hundreds of them. A style with ``opacity`` stays where it is: of a group it would
    mean the group as a whole.
    """
    written = []
    for style, run in groupby(re.findall(r"<[^>]*>", marks), key=_style):
        some = [*run]
        if len(some) > 1 and style and not re.search(r"(^|[; ])opacity:", style):
            some = [f'<g style="{style}">', *(STYLE.sub("", mark) for mark in some), "</g>"]
        written += some
    return "".join(written)


def _style(mark: str) -> str:
    found = STYLE.search(mark)
    return found[1] if found else ""


def beside(axes, words: str, place: tuple[float, float], points: float, **options) -> None:
    """Text next to an axes, in line with a value on its y axis.

    place: x as a fraction of the width of the axes, y in data. points: the gap, negative for a text
    to the left.
    """
    side = {"ha": "right" if points < 0 else "left", "va": "center", **options}
    axes.annotate(words, place, (points, 0), ("axes fraction", "data"), "offset points", **side)
