"""Figures and tables made by code are numbered, and can be referred to, like those typed by hand.

An exhibit (relength.report.exhibits) reaches Sphinx as plain HTML: the output of a cell, or an
included passage. Here it becomes a node of its own that takes part in the numbering and is the
target of ``{numref}`` by the id it has in the HTML, with ``fig-`` or ``tab-`` before it; the style
sheet that it carries for Jupyter is written once, as a file. The directive ``drawing`` puts a
drawing of a mechanism on a page.

Prose refers to what passages write once there are records. Where that is not there, a reference
becomes words: the text that it has, or *Table (not run)*. Only one without a text is an error. The
tests see to it that our own book has no such words.

Notebooks are copied beside the pages that show them, where exhibits link to them.
"""

import re
import shutil
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.transforms import SphinxTransform

FIGURE = re.compile(r'<figure class="rl rl-(figure|table)" id="([\w-]+)">')
NUMBER = re.compile(r'<b class="number">[^<]*</b>')
STYLE = re.compile(r"\s*<style>.*?</style>", re.DOTALL)
SHEET = "exhibits.css"


class FigureExhibit(nodes.General, nodes.Element):
    """A drawing with its caption."""


class TableExhibit(nodes.General, nodes.Element):
    """A table with its caption."""


NUMBERED = {"fig": "Figure", "tab": "Table"}
KINDS = {"figure": (FigureExhibit, "fig-"), "table": (TableExhibit, "tab-")}


class Exhibits(SphinxTransform):
    """Turns the HTML of an exhibit into a node before labels and numbers are collected."""

    default_priority = 210

    def apply(self):
        for html in list(self.document.findall(nodes.raw)):
            found = FIGURE.search(html.astext())
            if not found or html.get("format") != "html":
                continue
            kind, name = found.groups()
            node, label = KINDS[kind]
            node = node("", html=STYLE.sub("", html.astext()), ids=[name], names=[label + name])
            self.document.note_explicit_target(node)
            html.replace_self(node)


class Drawing(Directive):
    """``{drawing} name``: a drawing of :mod:`relength.report.drawings`."""

    required_arguments = 1

    def run(self):
        from relength.report.drawings import drawing

        return [nodes.raw("", drawing(self.arguments[0]).html, format="html")]


def _visit(translator, node):
    start = len(translator.body)
    translator.add_fignumber(node)
    number = "".join(translator.body[start:])
    del translator.body[start:]
    shown = f'<b class="number">{re.sub("<[^>]*>", "", number).strip()}.</b>' if number else ""
    html = NUMBER.sub(shown, node["html"], count=1)
    anchor = f'<a class="headerlink" href="#{node["ids"][0]}" title="Link to this">#</a>'
    translator.body.append(html.replace("</figcaption>", f"{anchor}</figcaption>", 1))
    raise nodes.SkipNode


def _skip(translator, node):
    raise nodes.SkipNode


def _title(node):
    return "exhibit"


def _in_words(app, env, node, contnode):
    kind = NUMBERED.get(node["reftarget"].partition("-")[0])
    if node["reftype"] == "numref" and kind:
        return nodes.inline("", f"{kind} (not run)", classes=["absent"])
    if node["reftype"] in ("ref", "doc") and node.get("refexplicit"):
        return nodes.inline("", contnode.astext(), classes=["absent"])
    return None


def _write_style_sheet(app):
    from relength.report.exhibits import CSS

    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SHEET).write_text(CSS.strip() + "\n", encoding="utf-8")
    app.add_css_file(SHEET, priority=400)


def _copy_notebooks(app, exception):
    if exception is None and app.builder.name == "html":
        for page in (Path(app.srcdir) / "executed").glob("*.ipynb"):
            notebook = Path(app.srcdir).resolve().parent / "notebooks" / page.name
            shutil.copy(notebook, Path(app.outdir) / "executed" / page.name)


def setup(app):
    for figtype, node in (("figure", FigureExhibit), ("table", TableExhibit)):
        app.add_enumerable_node(
            node, figtype, _title, html=(_visit, None), latex=(_skip, None), text=(_skip, None)
        )
    app.add_transform(Exhibits)
    app.add_directive("drawing", Drawing)
    app.connect("missing-reference", _in_words)
    app.connect("builder-inited", _write_style_sheet)
    app.connect("build-finished", _copy_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
