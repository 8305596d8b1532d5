"""The look of every figure: one colour per model through the whole book, two themes, two widths.

Figures are drawn on a transparent ground, once per theme and width, and the page shows the one that
fits (:mod:`relength.report.exhibits`). Models keep their colour in both themes, so the colours are
of middle lightness: each has a contrast of at least 3 to 1 with the light page and with the dark
one, and any two stay apart for readers with protan, deutan or tritan vision.
"""

from io import BytesIO
from typing import NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure
from PIL import Image

MODEL_COLOURS = {
    "Content": "#7d8791",
    "Relative": "#d17d08",
    "LocAttn": "#bd4ab8",
    "Bi-Relative": "#cf4632",
    "OneStepAttn": "#4d76f2",
    "MonoAttn": "#16a661",
}
ARM_LABELS = {"released": "", "paper": "as in the text", "repaired": "repaired"}
WORDS = {"recopy": "ReCopy", "iid": "IID"}


class Theme(NamedTuple):
    """Colours that depend on the page; they are those of book/assets/book.css."""

    name: str
    page: str
    ink: str
    muted: str
    rule: str
    warning: str


LIGHT = Theme("light", "#fdfcf9", "#1f2529", "#56626a", "#d9d5c8", "#b3400b")
DARK = Theme("dark", "#14191c", "#dfe3e4", "#a3afb5", "#3a454b", "#f59062")
THEMES = (LIGHT, DARK)


class Layout(NamedTuple):
    """Width of a drawing in inches, a CSS pixel being 1/96 inch, so that type has its true size."""

    name: str
    width: float
    narrow: bool


WIDE = Layout("wide", 8.0, narrow=False)
NARROW = Layout("narrow", 3.75, narrow=True)
LAYOUTS = (WIDE, NARROW)

TYPE = {"font.family": "DejaVu Sans", "font.size": 7.5, "axes.unicode_minus": True}
DOTS_PER_INCH = 192  # two device pixels per CSS pixel
SOLID_CAPS = {"lines.solid_capstyle": "round", "lines.solid_joinstyle": "round"}


def colour(model: str) -> str:
    """The colour of a model; one that has none yet gets the theme-neutral grey of text."""
    return MODEL_COLOURS.get(model, "#7d8791")


def title(task: str) -> str:
    """A task's name as the papers write it: ``inv_reverse_recopy`` is Inv Reverse ReCopy."""
    return " ".join(WORDS.get(word, word.capitalize()) for word in task.split("_"))


def row_label(model: str, arm: str, judged: str) -> str:
    """A row of a table: the model, and its arm where that is not the one that claims judge."""
    return model if arm == judged else f"{model}, {ARM_LABELS.get(arm) or arm}"


def verdict_kind(verdict: str) -> str:
    """The style class of a verdict: ``not-run``; where the runs were reduced it looks the same."""
    return verdict.removesuffix(" at reduced scale").split(" (")[0].replace(" ", "-")


def canvas(layout: Layout, height: float) -> Figure:
    """An empty figure of the layout's width; height in inches."""
    figure = Figure(figsize=(layout.width, height), dpi=DOTS_PER_INCH)
    figure.patch.set_alpha(0)
    return figure


def style():
    """Context in which figures are drawn and written."""
    return rc_context({**TYPE, **SOLID_CAPS})


def png(figure: Figure) -> bytes:
    """The figure as a transparent PNG with a palette, which makes it a third of the size."""
    raw = BytesIO()
    figure.savefig(raw, format="png", transparent=True)
    small = BytesIO()
    picture = Image.open(raw).quantize(256, method=Image.Quantize.FASTOCTREE)
    picture.save(small, format="png", optimize=True)
    return small.getvalue()


def beside(axes, words: str, place: tuple[float, float], points: float, **options) -> None:
    """Text next to an axes, in line with a value on its y axis.

    place: x as a fraction of the width of the axes, y in data. points: the gap, negative for a text
    to the left.
    """
    side = {"ha": "right" if points < 0 else "left", "va": "center", **options}
    axes.annotate(words, place, (points, 0), ("axes fraction", "data"), "offset points", **side)
