"""Figures and tables as they appear on a page: number, caption, badges, downloads.

An :class:`Exhibit` is plain HTML with everything inside it (drawings are SVG elements, downloads
are data URIs), so it looks the same in Jupyter, in an executed notebook and in the book, from a
server or from a folder. The book numbers exhibits and lets pages refer to them
(book/_ext/numbering.py); the number given here is the one that Jupyter shows.
"""

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import pandas as pd
from markupsafe import Markup

from relength.report.freshness import Freshness
from relength.report.html import fill
from relength.report.runs import Runs
from relength.report.style import DARK, LIGHT, PAPER, variables
from relength.specs.spec import Scale

SCALE_WORDS: dict[Scale, str] = {
    "smoke": "smoke: shows that the code runs, not a result",
    "reduced": "reduced scale",
    "paper": "paper's scale",
}
SCALE_HINTS: dict[Scale, str] = {
    "smoke": "seconds of training; no verdict rests on it",
    "reduced": "trained less than the paper did: more training may raise or lower a result",
    "paper": "the paper's own number of steps, seeds and sizes",
}
LARGE = 20_000  # bytes; more data are compressed, as each page carries its own

CSS = (
    f"""
.rl {{ {variables(LIGHT)} }}
html[data-theme="dark"] .rl, [data-jp-theme-light="false"] .rl {{ {variables(DARK)} }}
@media print {{ html .rl, html[data-theme="dark"] .rl {{ {variables(PAPER)} }} }}
"""
    + """
.rl { margin: 1.4rem 0 1.8rem; padding: 0; max-width: 100%; }
.rl figcaption { font-size: .88rem; line-height: 1.5; margin-top: .7rem; text-align: left;
  font-weight: 400; color: inherit; max-width: 52rem; }
.rl figcaption.above { margin: 0 0 .6rem; }
.rl .picture { container-type: inline-size; }
.rl .picture svg { display: block; width: 100%; max-width: 800px; height: auto; margin: 0;
  overflow: visible; }
.rl .picture > .narrow { display: none; }
@container (max-width: 560px) {
  .rl .picture > .wide { display: none; }
  .rl .picture > .narrow { display: block; }
}
.rl .badge { display: inline-block; font-size: .75rem; font-weight: 600; line-height: 1.5;
  border: 1px solid currentColor; border-radius: 1em; padding: 0 .6em; white-space: nowrap;
  color: var(--rl-muted); background: none; vertical-align: baseline; margin: 0 .15em 0 0; }
.rl .badge.scale-smoke { color: var(--rl-warning); white-space: normal; }
.rl .badge.scale-paper, .rl .badge.fresh { color: var(--rl-first); }
.rl .badge.fresh::before { content: "✓ "; }
.rl .badge.unchecked { border-style: dashed; }
.rl .links { font-size: .8rem; display: block; margin-top: .35rem; color: var(--rl-muted); }
.rl .scroll { overflow-x: auto; max-width: 100%; }
.rl table { border-collapse: collapse; margin: 0 0 .8rem !important;
  font-size: .8rem !important; line-height: 1.35; font-variant-numeric: tabular-nums; }
.rl td, .rl th { white-space: nowrap; padding: .3rem .8rem .3rem 0; vertical-align: top; }
.rl td.prose { white-space: normal; min-width: 11rem; }
.rl td.wide { min-width: 17rem; }
.rl td.prose > p { margin: 0 0 .35rem; }
.rl td small { color: var(--rl-muted); }
.rl table small { font-size: .9em; }
.rl td.text, .rl th.text, .rl td.prose, .rl th.prose { text-align: left; }
.rl td.number, .rl th.number { text-align: right; }
.rl table.matrix { width: 100%; }
.rl table.matrix.few { width: auto; min-width: 60%; }
.rl table.matrix thead th { padding: .2rem .22rem; text-align: center; }
.rl table.matrix thead tr:first-child th { border-bottom: 0; }
.rl table.matrix thead tr + tr th { text-align: right; }
.rl table.matrix thead tr + tr th:first-child { text-align: left; padding-left: 0; }
.rl table.matrix td { text-align: right; padding: .2rem .22rem; }
.rl table.matrix .first { padding-left: .8rem; }
.rl table.matrix tbody th { text-align: left; font-weight: 600; padding: .2rem .5rem .2rem 0;
  position: sticky; left: 0; z-index: 1; background: var(--rl-page); }
.rl table.matrix tbody th small { display: block; font-weight: 400; color: var(--rl-muted); }
.rl table.matrix td b, .rl table.matrix td i { display: block; font-style: normal; }
.rl table.matrix td b { font-weight: 500; }
.rl table.matrix td b s { text-decoration: none; font-size: .72em; color: var(--rl-muted); }
.rl table.matrix td b small { font-size: .76em; font-weight: 400; }
.rl table.matrix td i { font-size: .88em; color: var(--rl-muted); }
.rl table.matrix td b.apart { color: var(--rl-warning); font-weight: 700; }
.rl table.matrix td b.none { font-weight: 400; font-size: .8em; line-height: 1.65;
  color: var(--rl-muted); }
.rl table.matrix tr.other-arm th { font-weight: 500; }
.rl table.matrix tr.rule > * { border-top: 1px solid var(--rl-muted); }
.rl.waiting { border: 1px dashed var(--rl-muted); border-radius: 7px; padding: .5rem .9rem;
  max-width: 46rem; font-size: .88rem; color: var(--rl-muted); }
.rl.waiting p { margin: 0; }
.rl code { overflow-wrap: anywhere; }
.rl code .pre { display: inline-block; max-width: 100%; }
.rl details > summary { cursor: pointer; font-size: .9rem; margin: .3rem 0 .6rem; }
.rl details .scroll { max-height: 36rem; overflow-y: auto; }
"""
)


@dataclass(frozen=True)
class Exhibit:
    """A numbered figure or table.

    text   one line for places without HTML
    data   what is drawn or listed, as offered for download; numbers, not formatted
    waits  whether it stands in for one that has no runs yet
    """

    html: str
    text: str
    data: pd.DataFrame = field(repr=False)
    waits: bool = False

    def _repr_html_(self) -> str:
        return f"<style>{CSS}</style>{self.html}"

    def __repr__(self) -> str:
        return self.text


def typed(command: str) -> str:
    """A command to type, of which a narrow page does not break an option after its hyphens."""
    words = escape(command).split(" ")
    boxed = (f'<span class="pre">{word}</span>' if "-" in word else word for word in words)
    return f"<code>{' '.join(boxed)}</code>"


def badge(scale: Scale) -> str:
    """At which scale the runs were made that an exhibit shows."""
    hint = f'title="{SCALE_HINTS[scale]}"'
    return f'<span class="badge scale-{scale}" {hint}>{SCALE_WORDS[scale]}</span>'


def badges(scale: Scale, freshness: Freshness) -> str:
    """The scale of the runs that an exhibit shows, and whether today's code still makes them.

    Nothing where no run stands behind it.
    """
    if not freshness.runs:
        return ""
    state = "fresh" if freshness.fresh == freshness.runs else "unchecked"
    return (
        f'{badge(scale)} <span class="badge {state}" title="{escape(freshness.hint)}">'
        f"{freshness.words}</span>"
    )


COMPUTED = (
    '<span class="badge" title="computed on the page; no run stands behind it">computed</span>'
)
MEASURED = (
    '<span class="badge" title="measured by a command of its own; no run stands behind it">'
    "measured</span>"
)
BEGINNING = re.compile(r"(?:<b>)?(.*?)([.:?])(?:</b>)?(?=[ <]|$)")  # of a caption


def titled(caption: str, kind: str) -> str:
    """A caption with its beginning as the title, and badges after it."""
    first = BEGINNING.match(caption)
    rest = caption[first.end() :].strip()
    if first[2] == ":":
        rest = rest[0].upper() + rest[1:]
    return f"<b>{first[1]}{first[2].replace(':', '.')}</b> {kind} {rest}".strip()


def download(name: str, content: bytes, label: str, media: str) -> str:
    """A link that saves ``content`` under ``name``, without a server or a file beside the page."""
    address = f"data:{media};base64,{b64encode(content).decode()}"
    return f'<a download="{name}" href="{address}">{label}</a>'


def csv(name: str, data: pd.DataFrame) -> str:
    """A download link of a table's or figure's data, compressed when it is large; "" for none."""
    if data.empty:
        return ""
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


def notebook(name: str) -> str:
    """A link to the notebook that makes an exhibit, beside the page."""
    return f'<a href="{name}.ipynb">notebooks/{name}.ipynb</a>'


def drawn_from(name: str, module: str) -> str:
    """Links of an exhibit of prose pages: the notebook that has the same runs, and the code."""
    return (
        f'runs of <a href="executed/{name}.ipynb">notebooks/{name}.ipynb</a>, drawn by '
        f"<code>lib/{module.replace('.', '/')}.py</code>"
    )


def waiting(what: str, name: str, command: str, data: pd.DataFrame) -> Exhibit:
    """Show a box in place of an exhibit whose runs are missing.

    The box has no number, because nothing refers to it.

    what  the caption; its title names what is missing
    data  the exhibit's own table, without rows
    """
    first = BEGINNING.match(what)
    words = first[1] if first[1][:2].isupper() else first[1][0].lower() + first[1][1:]
    said = words + first[2].replace(":", ".")
    html = fill("waiting", name=name, said=Markup(said), command=Markup(typed(command)))
    return Exhibit(html, f"Not run yet: {said}", data, waits=True)


def training(*runs: Runs, scale: Scale | None = None) -> str:
    """The command that trains what some exhibit lacks, at the scale of the page or another."""
    names = " ".join(r.experiment.name for r in runs)
    return f"relength run {names} --scale {scale or runs[0].scale}"


def table(body: str, caption: str, name: str, links: Iterable[str]) -> str:
    """A table with its caption above it; the book puts its number in front of the caption."""
    return fill("table", body=Markup(body), caption=Markup(caption), name=name, links=_links(links))


def rows_table(columns: dict[str, str], rows: Iterable[Sequence[str]]) -> str:
    """A table that the book's script makes sortable. columns: {head: class of the column}."""
    kinds = columns.values()
    return fill(
        "rows",
        columns={Markup(name): kind for name, kind in columns.items()},
        rows=[[(kind, Markup(v)) for kind, v in zip(kinds, row, strict=True)] for row in rows],
    )


def folded(columns: dict[str, str], rows: Sequence[Sequence[str]]) -> str:
    """A :func:`rows_table` to look something up in: closed until somebody does."""
    return fill("folded", count=len(rows), table=Markup(rows_table(columns, rows)))


def figure(
    drawings: Mapping[str, str],
    alt: str,
    caption: str,
    name: str,
    links: Iterable[str],
    number: int | None = None,
) -> str:
    """A drawing with its caption below it.

    drawings: SVG by layout, wide and narrow; the page picks by the width it has. alt: what the
    figure shows, in words. number: what Jupyter calls it; the book has its own.
    """
    return fill(
        "figure",
        drawings={layout: Markup(svg) for layout, svg in drawings.items()},
        alt=alt,
        caption=Markup(caption),
        name=name,
        links=_links(links),
        number=number,
    )


def _links(links: Iterable[str]) -> list[Markup]:
    return [Markup(link) for link in links if link]
