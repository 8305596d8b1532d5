"""Drawings that explain the ideas of papers: SVG files in a paper's folder, shown as figures.

The folder ``papers/<paper>/drawings`` holds each drawing for wide pages and for narrow ones,
``<name>-wide.svg`` and ``<name>-narrow.svg``, what is said about them in ``captions.yml``, and the
paper's ``icon.svg``, 74 pixels square. The files have the colours of
:data:`relength.report.style.LIGHT` and common fonts, so that any editor shows what a light page
does. On a page they get the page's own colours and fonts.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import yaml

from relength.errors import RelengthError
from relength.report import exhibits
from relength.report.exhibits import Exhibit
from relength.report.style import LAYOUTS, themed
from relength.specs.registry import PAPERS

FONTS = {"sans-serif": "--rl-sans", "serif": "--rl-serif", "monospace": "--rl-mono"}
BADGE = '<span class="badge" title="explains an idea; no run stands behind it">schematic</span>'


def drawings() -> list[str]:
    """Names of all drawings, as pages include them: ``<paper>-mechanism``."""
    return [f"{paper}-{name}" for paper in PAPERS for name in _captions(paper)]


def drawing(name: str) -> Exhibit:
    """A drawing with its caption, for wide and narrow pages."""
    if name not in drawings():
        raise RelengthError(f"no drawing is called {name!r}; there are {', '.join(drawings())}.")
    paper, _, short = name.partition("-")
    said = _captions(paper)[short]
    shown = {
        layout.name: for_page(
            (_folder(paper) / f"{short}-{layout.name}.svg").read_text("utf-8"),
            f"{name}-{layout.name}",
        )
        for layout in LAYOUTS
    }
    drawn = f"drawn in <code>lib/relength/papers/{paper}/drawings/</code>"
    caption = f"<b>{said['title']}</b> {BADGE} {said['caption']}"
    html = exhibits.figure(shown, said["alt"], caption, name, [drawn])
    return Exhibit(html, f"{said['title']} {said['alt']}", data=None)


def icon(paper: str) -> str:
    """The small picture of a paper's idea as an ``<svg>`` element; empty if it has none."""
    path = _folder(paper) / "icon.svg"
    return for_page(path.read_text("utf-8"), f"{paper}-icon") if path.is_file() else ""


def for_page(drawing: str, name: str) -> str:
    """The text of an SVG file as an element of a page, in the page's colours and fonts.

    name: unlike that of any other drawing of the page; what refers to itself in it carries it.
    """
    text = drawing[drawing.index("<svg") :].strip()
    text = re.sub(r"\s*<title>.*?</title>", "", text, count=1, flags=re.DOTALL)
    used = set(re.findall(r"(?:url\(|href=\")#([\w-]+)", text))
    text = re.sub(
        r'\s+id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", text
    )
    text = re.sub(r"(url\(|href=\")#", rf"\g<1>#{name}-", text)
    for font, variable in FONTS.items():
        text = re.sub(rf"font-family: ?{font}\b", f"font-family: var({variable}, {font})", text)
    text = re.sub(r"\s*\n\s*", " ", re.sub(r">\s*\n\s*<", "><", text))
    return themed(text.replace("fill:#", "fill: #").replace("<svg", '<svg aria-hidden="true"', 1))


def _folder(paper: str) -> Traversable:
    return files(f"relength.papers.{paper}") / "drawings"


@cache
def _captions(paper: str) -> Mapping[str, dict[str, str]]:
    path = _folder(paper) / "captions.yml"
    return yaml.safe_load(path.read_text("utf-8")) if path.is_file() else {}
