"""A sheet to draw diagrams on: boxes, arrows and words as SVG, in the colours of the page.

Units are CSS pixels, y grows downwards. Colours are those of :data:`relength.report.style.LIGHT`,
which the page replaces by its own.
"""

import re
from collections.abc import Sequence
from html import escape
from math import atan2, cos, sin

from relength.report.style import LIGHT, themed

Point = tuple[float, float]
SCRIPT = re.compile(r"([_^])(\{[^}]*\}|.)")
HEAD = 7.0  # length of an arrow's head


class Sheet:
    """An empty drawing of a width; its height follows from what is drawn."""

    def __init__(self, width: float):
        self.width, self.height = width, 0.0
        self._parts: list[str] = []

    def svg(self) -> str:
        """The drawing as an ``<svg>`` element for a page."""
        size = f'width="{_n(self.width)}" height="{_n(self.height)}"'
        box = f'viewBox="0 0 {_n(self.width)} {_n(self.height)}"'
        return themed(f'<svg {box} {size} aria-hidden="true">{"".join(self._parts)}</svg>')

    def _add(self, part: str, *depths: float) -> None:
        self._parts.append(part)
        self.height = max(self.height, *(depth + 2 for depth in depths))

    def box(self, x: float, y: float, width: float, height: float, *, fill: str = "none",
            line: str = LIGHT.rule, weight: float = 1.2, round: float = 5,
            dashed: bool = False, opacity: float = 1) -> None:  # fmt: skip
        """A rectangle with round corners."""
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{round:g}"'
        see = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
        look = f'style="fill: {fill}; stroke: {line}; stroke-width: {weight:g}"'
        self._add(f"<rect {place}{dash}{see} {look}/>", y + height)

    def dot(self, x: float, y: float, radius: float, *, fill: str = LIGHT.ink,
            line: str = "none", weight: float = 1.2) -> None:  # fmt: skip
        """A disc, or a ring with ``fill="none"``."""
        look = f'style="fill: {fill}; stroke: {line}; stroke-width: {weight:g}"'
        self._add(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" {look}/>', y + radius)

    def line(self, points: Sequence[Point], *, colour: str = LIGHT.muted, weight: float = 1.4,
             arrow: bool = False, dashed: bool = False, fill: str = "none",
             opacity: float = 1) -> None:  # fmt: skip
        """Straight pieces from point to point, with a head at the end if it is an arrow."""
        if arrow:
            (x0, y0), (x1, y1) = points[-2:]
            self._head(x1, y1, atan2(y1 - y0, x1 - x0), colour)
            points = [*points[:-1], _short_of((x1, y1), atan2(y1 - y0, x1 - x0))]
        way = " L ".join(f"{_n(x)} {_n(y)}" for x, y in points)
        self._path(f"M {way}", colour, weight, dashed, fill, opacity, *(y for _, y in points))

    def curve(self, start: Point, bend: Point, bend_2: Point, end: Point, *,
              colour: str = LIGHT.muted, weight: float = 1.4, arrow: bool = False,
              dashed: bool = False) -> None:  # fmt: skip
        """A Bézier curve with two control points, with a head at the end if it is an arrow."""
        if arrow:
            angle = atan2(end[1] - bend_2[1], end[0] - bend_2[0])
            self._head(*end, angle, colour)
            end = _short_of(end, angle)
        points = " ".join(f"{_n(x)} {_n(y)}" for x, y in (bend, bend_2, end))
        depth = max(start[1], end[1])
        way = f"M {_n(start[0])} {_n(start[1])} C {points}"
        self._path(way, colour, weight, dashed, "none", 1, depth)

    def arc(self, centre: Point, radius: float, start: float, end: float, *, colour: str,
            weight: float = 2, dashed: bool = False) -> None:  # fmt: skip
        """Part of a circle, clockwise between two angles in radians, 0 being at the top."""
        (x, y), way = centre, end - start
        ends = [(x + radius * sin(a), y - radius * cos(a)) for a in (start, end)]
        large = int(way > 3.141592653589793)
        (x0, y0), (x1, y1) = ends
        d = f"M {_n(x0)} {_n(y0)} A {_n(radius)} {_n(radius)} 0 {large} 1 {_n(x1)} {_n(y1)}"
        self._path(d, colour, weight, dashed, "none", 1, y + radius)

    def text(self, x: float, y: float, words: str, *, size: float = 12.5, colour: str = LIGHT.ink,
             anchor: str = "start", bold: bool = False, code: bool = False) -> None:  # fmt: skip
        """Words on a base line at y; ``\\n`` begins a new line below."""
        face = "var(--rl-mono, monospace)" if code else "var(--rl-sans, sans-serif)"
        look = f"font: {600 if bold else 400} {size:g}px {face}; fill: {colour}"
        for k, row in enumerate(words.split("\n")):
            down = y + 1.3 * size * k
            place = f'x="{_n(x)}" y="{_n(down)}" text-anchor="{anchor}"'
            self._add(f'<text {place} style="{look}">{escape(row)}</text>', down + 0.3 * size)

    def maths(self, x: float, y: float, formula: str, *, size: float = 14, anchor: str = "start",
              colour: str = LIGHT.ink) -> None:  # fmt: skip
        """A formula in one line: ``p_t^a``; braces hold longer scripts together, ``a_{ti}``."""
        look = f"font: italic 400 {size:g}px var(--rl-serif, serif); fill: {colour}"
        place = f'x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}" style="{look}"'
        self._add(f"<text {place}>{_scripts(formula, size)}</text>", y + 0.4 * size)

    def _path(self, d, colour, weight, dashed, fill, opacity, *depths) -> None:
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        see = f' opacity="{opacity:g}"' if opacity < 1 else ""
        look = f"fill: {fill}; stroke: {colour}; stroke-width: {weight:g}; stroke-linecap: round"
        self._add(f'<path d="{d}"{dash}{see} style="{look}; stroke-linejoin: round"/>', *depths)

    def _head(self, x: float, y: float, angle: float, colour: str) -> None:
        corners = [(x, y)]
        for side in (-0.42, 0.42):
            corners.append((x - HEAD * cos(angle + side), y - HEAD * sin(angle + side)))
        way = " ".join(f"{_n(a)},{_n(b)}" for a, b in corners)
        self._add(f'<polygon points="{way}" style="fill: {colour}; stroke: none"/>', y)


def _short_of(end: Point, angle: float) -> Point:
    """Where the line of an arrow stops, so that it does not show beside the tip."""
    return end[0] - 0.8 * HEAD * cos(angle), end[1] - 0.8 * HEAD * sin(angle)


def _scripts(formula: str, size: float) -> str:
    parts, last, height = [], 0, 0.0
    for found in SCRIPT.finditer(formula):
        if plain := formula[last : found.start()]:
            parts.append(_shifted(plain, -height, size))
            height = 0.0
        wanted = 0.26 * size if found[1] == "_" else -0.38 * size
        parts.append(_shifted(found[2].strip("{}"), wanted - height, 0.72 * size))
        height, last = wanted, found.end()
    parts.append(_shifted(formula[last:], -height, size))
    return "".join(parts)


def _shifted(words: str, down: float, size: float) -> str:
    if not words:
        return ""
    move = f' dy="{down:.1f}"' if down else ""
    return f'<tspan{move} font-size="{size:.3g}">{escape(words)}</tspan>'


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
