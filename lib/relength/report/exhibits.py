"""Figures and tables as they appear on a page: number, caption, scale badge, downloads.

An :class:`Exhibit` is plain HTML with everything inside it (pictures and downloads are data URIs),
so it looks the same in Jupyter, in an executed notebook and in the book, from a server or from a
folder.
"""

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import pandas as pd

from relength.spec import Scale

SCALE_WORDS: dict[Scale, str] = {
    "smoke": "smoke: shows that the code runs, not a result",
    "reduced": "reduced scale",
    "paper": "paper's scale",
}
LARGE = 200_000  # bytes
NARROW_PAGE = "(max-width: 600px)"

# The first rule undoes the theme's light card around HTML outputs on dark pages.
CSS = """
.text_html:has(> .rl) { background: none !important; color: inherit !important;
  padding: 0 !important; }
.rl { margin: 1rem 0; max-width: 100%; }
.rl figcaption { font-size: .88rem; line-height: 1.45; margin-top: .5rem; text-align: left;
  font-weight: 400; color: inherit; }
.rl figcaption.above { margin: 0 0 .5rem; }
.rl picture img { display: block; width: 100%; max-width: 800px; height: auto; margin: 0 auto;
  background: none !important; padding: 0 !important; filter: none !important; border-radius: 0
  !important; }
.rl picture.only-dark { display: none; }
html[data-theme="dark"] .rl picture.only-dark,
[data-jp-theme-light="false"] .rl picture.only-dark {
  display: block !important; }
html[data-theme="dark"] .rl picture.only-light,
[data-jp-theme-light="false"] .rl picture.only-light {
  display: none !important; }
.rl .scale { font-size: .78rem; font-weight: 600; border: 1px solid currentColor; border-radius:
1em;
  padding: 0 .55em; white-space: nowrap; opacity: .8; }
.rl .scale-smoke { color: #d2561c; opacity: 1; }
.rl .links { font-size: .8rem; opacity: .85; display: block; margin-top: .25rem; }
.rl .scroll { overflow-x: auto; max-width: 100%; }
.rl table { border-collapse: collapse; margin: 0 0 .8rem !important;
  font-size: .8rem !important; line-height: 1.35; font-variant-numeric: tabular-nums; }
.rl td, .rl th { white-space: nowrap; padding: .3rem .8rem .3rem 0; vertical-align: top; }
.rl td.prose { white-space: normal; min-width: 11rem; }
.rl td.wide { min-width: 17rem; }
.rl td.prose > p { margin: 0 0 .35rem; }
.rl td small { opacity: .8; }
.rl table small { font-size: .9em; }
.rl td.text, .rl th.text, .rl td.prose, .rl th.prose { text-align: left; }
.rl td.number, .rl th.number { text-align: right; }
.rl table.matrix { width: 100%; }
.rl table.matrix thead th { padding: .2rem .22rem; text-align: center; }
.rl table.matrix thead tr:first-child th { border-bottom: 0; }
.rl table.matrix thead tr + tr th { text-align: right; }
.rl table.matrix thead tr + tr th:first-child { text-align: left; padding-left: 0; }
.rl table.matrix td { text-align: right; padding: .2rem .22rem; }
.rl table.matrix .first { padding-left: .8rem; }
.rl table.matrix tbody th { text-align: left; font-weight: 600; padding: .2rem .5rem .2rem 0;
  position: sticky; left: 0; z-index: 1;
  background: var(--pst-color-background, var(--jp-layout-color0, Canvas)); }
.rl table.matrix tbody th small { display: block; font-weight: 400; opacity: .75; }
.rl table.matrix td b, .rl table.matrix td i { display: block; font-style: normal; }
.rl table.matrix td b { font-weight: 500; }
.rl table.matrix td b s { text-decoration: none; font-size: .72em; opacity: .65; }
.rl table.matrix td i { font-size: .85em; opacity: .7; }
.rl table.matrix td b.apart { color: var(--rl-contradicted, #c8541a); font-weight: 700; }
.rl table.matrix td b.none { font-weight: 400; font-size: .76em; line-height: 1.7; opacity: .6; }
.rl table.matrix tr.other-arm th { font-weight: 500; }
.rl table.matrix tr.rule > * { border-top: 1px solid var(--pst-color-text-muted, currentColor); }
.rl details > summary { cursor: pointer; font-size: .9rem; margin: .3rem 0 .6rem; }
.rl details .scroll { max-height: 36rem; overflow-y: auto; }
"""


@dataclass(frozen=True)
class Exhibit:
    """A numbered figure or table.

    text  one line for places without HTML
    data  what is drawn or listed, as offered for download; numbers, not formatted
    """

    html: str
    text: str
    data: pd.DataFrame = field(repr=False)

    def _repr_html_(self) -> str:
        return f"<style>{CSS}</style>{self.html}"

    def __repr__(self) -> str:
        return self.text


def badge(scale: Scale) -> str:
    """At which scale the runs were made that an exhibit shows."""
    return f'<span class="scale scale-{scale}">{SCALE_WORDS[scale]}</span>'


def download(name: str, content: bytes, label: str, media: str) -> str:
    """A link that saves ``content`` under ``name``, without a server or a file beside the page."""
    address = f"data:{media};base64,{b64encode(content).decode()}"
    return f'<a download="{name}" href="{address}">{label}</a>'


def csv(name: str, data: pd.DataFrame) -> str:
    """A download link of a table's or figure's data, compressed when it is large."""
    text = data.to_csv(index=False, lineterminator="\n").encode()
    label = f"data (CSV, {len(data):,} rows)"
    if len(text) > LARGE:
        return download(f"{name}.csv.gz", gzip.compress(text, mtime=0), label, "application/gzip")
    return download(f"{name}.csv", text, label, "text/csv")


def specs(name: str, records: Iterable[Mapping]) -> str:
    """A download link of the specs of the runs shown: JSON lines, compressed."""
    lines = [json.dumps({"key": r["key"], "run_id": r["run_id"], **r["spec"]}) for r in records]
    if not lines:
        return ""
    packed = gzip.compress("\n".join(lines).encode(), mtime=0)
    return download(
        f"{name}.specs.jsonl.gz", packed, f"specs of {len(lines):,} runs (JSON)", "application/gzip"
    )


def table(body: str, caption: str, name: str, links: Iterable[str]) -> str:
    """A table with its caption above it."""
    return (
        f'<figure class="rl" id="{name}">'
        f'<figcaption class="above">{caption}{_links(links)}</figcaption>'
        f"{body}</figure>"
    )


def rows_table(columns: dict[str, str], rows: Iterable[Sequence[str]]) -> str:
    """A table that the book's script makes sortable. columns: {head: class of the column}."""
    head = "".join(f'<th scope="col" class="{kind}">{name}</th>' for name, kind in columns.items())
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{k}">{v}</td>' for k, v in zip(columns.values(), row, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def figure(
    pictures: Mapping[tuple[str, str], bytes],
    alt: str,
    caption: str,
    name: str,
    links: Iterable[str],
    size: tuple[int, int],
) -> str:
    """A picture with its caption below it.

    pictures: PNG by (theme, layout); the page picks by its theme and by the width of the window.
    alt: what the figure shows, in words. size: pixels of the wide picture, so that the page does
    not jump.
    """
    width, height = size
    shown = []
    for theme in ("light", "dark"):
        address = {
            layout: f"data:image/png;base64,{b64encode(pictures[theme, layout]).decode()}"
            for layout in ("wide", "narrow")
        }
        shown.append(
            f'<picture class="only-{theme}">'
            f'<source media="{NARROW_PAGE}" srcset="{address["narrow"]}">'
            f'<img class="only-{theme}" src="{address["wide"]}" width="{width}" height="{height}" '
            f'alt="{escape(alt, quote=True)}"></picture>'
        )
    # In a box of their own: the theme hides captions beside a picture that it hides.
    return (
        f'<figure class="rl" id="{name}"><div>{"".join(shown)}</div>'
        f"<figcaption>{caption}{_links(links)}</figcaption></figure>"
    )


def _links(links: Iterable[str]) -> str:
    kept = [link for link in links if link]
    return f'<span class="links">{" · ".join(kept)}</span>' if kept else ""
