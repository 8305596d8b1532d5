"""A small picture of each paper's idea, for lists of papers."""

from math import pi

import numpy as np

from relength.report.diagram import FIRST, GROUND, MUTED, RULE, SECOND
from relength.report.drawing import Sheet

SIZE = 74.0


def _mla(sheet: Sheet) -> None:
    """A spot of light on a ruler."""
    bell = np.linspace(0, 1, 41)
    curve = [(5 + 64 * x, 52 - 34 * np.exp(-0.5 * ((x - 0.42) / 0.13) ** 2)) for x in bell]
    sheet.line([(5, 52), *curve, (69, 52)], colour=FIRST, weight=1.6, fill=FIRST, opacity=0.3)
    sheet.line(curve, colour=FIRST, weight=1.6)
    for x in np.linspace(5, 69, 9):
        sheet.line([(x, 52), (x, 58)], colour=MUTED, weight=1.2)
    sheet.line([(36, 65), (56, 65)], colour=SECOND, weight=2, arrow=True)


def _panm(sheet: Sheet) -> None:
    """A ring of addresses with a few short arcs and a long one."""
    centre = (37.0, 37.0)
    for start, length, radius in ((0.1, 1.0, 22), (1.5, 0.9, 17), (2.9, 1.1, 22), (4.6, 1.2, 17)):
        sheet.arc(centre, radius, start, start + length, colour=FIRST, weight=2)
    for k in range(20):
        angle = 2 * pi * k / 20
        sheet.dot(37 + 28 * np.sin(angle), 37 - 28 * np.cos(angle), 1.5, fill=MUTED)
    sheet.arc(centre, 34, 0.6, 5.2, colour=SECOND, weight=3)


def _dnc(sheet: Sheet) -> None:
    """A controller with a loop beside its memory."""
    sheet.box(5, 34, 28, 28, fill=GROUND, line=FIRST, weight=1.8)
    sheet.curve((27, 33), (27, 8), (9, 8), (10, 32), colour=FIRST, weight=2.2, arrow=True)
    for row in range(5):
        for column in range(3):
            shade = SECOND if row == 2 else GROUND
            sheet.box(45 + 8 * column, 20 + 8 * row, 8, 8, fill=shade, weight=0.9, round=0)
    sheet.line([(34, 48), (44, 42)], colour=SECOND, weight=1.8)


def _memreasoner(sheet: Sheet) -> None:
    """Rows of facts, and two hops between them."""
    for k in range(5):
        found = k in (1, 3)
        sheet.box(6, 9 + 12.5 * k, 36, 7, fill=FIRST if found else GROUND,
                  line=FIRST if found else RULE, weight=1, round=3)  # fmt: skip
    sheet.curve((44, 25), (66, 25), (66, 50), (46, 50), colour=SECOND, weight=2.2, arrow=True)


DRAWN = {"mla": _mla, "panm": _panm, "dnc": _dnc, "memreasoner": _memreasoner}


def icon(paper: str) -> str:
    """The picture of a paper as an ``<svg>`` element, 74 pixels square."""
    sheet = Sheet(SIZE)
    DRAWN[paper](sheet)
    sheet.height = SIZE
    return sheet.svg()
