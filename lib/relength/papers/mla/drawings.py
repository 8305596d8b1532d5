"""Monotonic location attention: a spot of light on a ruler, and who may move it."""

import numpy as np

from relength.report.diagram import FIRST, INK, MUTED, PAGE, RULE, exhibit
from relength.report.drawing import Sheet
from relength.report.exhibits import Exhibit
from relength.report.style import colour

SIGMA = 0.27 + 0.7  # the released code's least width plus a read-out of 0.7; divided by s (Eq. 10)


def light(length: int, centre: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions (s,) in [0, 1] and attention weights (s,) of a focus there (Eqs. 5-10)."""
    position = np.linspace(0, 1, length)
    density = np.exp(-0.5 * ((position - centre) * length / SIGMA) ** 2)
    return position, density / density.sum()


def location_attention() -> Exhibit:
    """A spot of light on a ruler: its width over short and long sources, and who may move it."""

    def draw(sheet: Sheet, narrow: bool) -> None:
        ruler = 311 if narrow else 330
        _rulers(sheet, 10, 20, ruler)
        if narrow:
            _steps(sheet, 10, 336, ruler)
        else:
            _steps(sheet, 418, 20, 340)

    lit = [int((light(s, 0.42)[1] > 0.05).sum()) for s in (6, 24)]
    return exhibit(
        "mla-mechanism",
        draw,
        "Attention as a spot of light on a ruler.",
        "The bars are attention weights, computed from Eqs. 5–10 for a source of 6 and one of 24 "
        "positions with equal read-outs. The light's width is a constant over s, so it falls on "
        f"as few neighbours however long the source is: {lit[0]} and {lit[1]} positions get more "
        "than 5 %. The coloured ranges say where the centre may go in the next step. Counted in "
        "positions, each rule is the same for every length.",
        "Two rulers from 0 to 1 with a bell curve over them: over 6 positions it is broad, over 24 "
        f"narrow, and it lights {lit[0]} and {lit[1]} positions. Beside them three rulers show "
        "where the centre may move from its last place: LocAttn anywhere, OneStepAttn from there "
        "to one position on, MonoAttn from there to the end.",
    )


def _rulers(sheet: Sheet, x: float, y: float, length: float) -> None:
    for k, (positions, says) in enumerate(((6, "6 positions"), (24, "24 positions"))):
        top = y + 152 * k
        sheet.text(x, top, says, bold=True)
        sheet.maths(x + 94, top, f"s = {positions}", size=13, colour=MUTED)
        base, shade = top + 96, FIRST
        place, weights = light(positions, 0.42)
        bell = np.linspace(0, 1, 161)
        height = np.exp(-0.5 * ((bell - 0.42) / (SIGMA / positions)) ** 2)
        curve = [(x + length * a, base - 74 * b) for a, b in zip(bell, height, strict=True)]
        sheet.line(curve, colour=shade, weight=1, fill=shade, opacity=0.22)
        sheet.line([(x, base), (x + length, base)], colour=MUTED, weight=1)
        top_weight = weights.max()
        for n, w in zip(place, weights, strict=True):
            at = x + length * float(n)
            if w > 0.005:
                tall = 68 * float(w / top_weight)
                sheet.line([(at, base), (at, base - tall)], colour=shade, weight=4)
            sheet.line([(at, base), (at, base + 5)], colour=MUTED, weight=1)
        sheet.text(x, base + 19, "0", size=11, colour=MUTED, anchor="middle")
        sheet.text(x + length, base + 19, "1", size=11, colour=MUTED, anchor="middle")
        sheet.maths(x + length * 0.42, base + 20, "μ_t", size=13, anchor="middle", colour=shade)


def _steps(sheet: Sheet, x: float, y: float, length: float) -> None:
    rules = (
        ("LocAttn", 0.0, 1.0, "anywhere on the ruler"),
        ("OneStepAttn", 0.4, 0.52, "stay, or step one position on"),
        ("MonoAttn", 0.4, 1.0, "any number of positions on, none back"),
    )
    sheet.text(x, y, "Where may the centre go next?", bold=True)
    for k, (model, low, high, says) in enumerate(rules):
        top = y + 30 + 78 * k
        shade = colour(model)
        sheet.text(x, top, model, bold=True, colour=shade)
        sheet.text(x, top + 17, says, size=11.5, colour=MUTED)
        base = top + 36
        sheet.line([(x, base), (x + length, base)], colour=RULE, weight=1)
        for n in np.linspace(0, 1, 9):
            sheet.line([(x + length * n, base - 3), (x + length * n, base + 3)], colour=RULE)
        sheet.line([(x + length * low, base), (x + length * high, base)], colour=shade, weight=8)
        sheet.dot(x + length * 0.4, base, 5.5, fill=PAGE, line=INK, weight=2)
    sheet.dot(x + 7, y + 272, 5.5, fill=PAGE, line=INK, weight=2)
    sheet.text(x + 20, y + 276, "where it looked last", size=11.5, colour=MUTED)
