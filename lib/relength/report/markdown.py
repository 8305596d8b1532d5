"""MyST Markdown that generated passages are made of."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from relength.paths import NOTEBOOKS
from relength.report.style import marks, verdict_kind


def raw(html: str) -> str:
    """HTML as it is, for a page in Markdown."""
    return f"```{{raw}} html\n{html}\n```\n"


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    name: str,
    caption: str,
    numbers: Sequence[str] = (),
    classes: str = "sortable",
) -> str:
    """A numbered Markdown table that readers can sort; numbers: columns aligned at the right."""
    body = grid(columns, rows, numbers)
    return f"```{{table}} {caption}\n:name: {name}\n:class: {classes}\n\n{body}\n```\n"


def grid(columns: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Sequence[str] = ()) -> str:
    """The lines of a Markdown table, without number and caption."""
    lines = [
        "| " + " | ".join(columns) + " |",
        "| " + " | ".join("---:" if c in numbers else "---" for c in columns) + " |",
        *("| " + " | ".join(_cell(value) for value in row) + " |" for row in rows),
    ]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text.replace("|", "\\|").replace("\n", " ").strip() or "–"


def badge(verdict: str, looks: str | None = None) -> str:
    """A verdict as an inline badge: coloured, and readable without colour.

    looks: the verdict whose colours other words take
    """
    return f"[{verdict}]{{.verdict .verdict-{verdict_kind(looks or verdict)}}}"


def badges(row: Any) -> str:
    """The verdict of a row of the ledger, and what marks it."""
    return " ".join([badge(row.label), *(badge(mark, "mark") for mark in marks(row))])


def plain(text: str) -> str:
    """Text in which nothing is markup."""
    return re.sub(r"([\\`*_{}\[\]$<>])", r"\\\1", text)


def slug(text: str) -> str:
    """Text as part of an anchor: lower case, hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def artifact_link(artifact: str, experiment: str | None) -> str:
    """An artifact as a link to the notebook that shows it, if there is one."""
    if experiment and (NOTEBOOKS / f"{experiment}.ipynb").exists():
        return f"{{doc}}`{artifact} </executed/{experiment}>`"
    return artifact


def run_link(key: str, text: str) -> str:
    """A link to a run's entry on the page of provenance, whose anchors are ``run-<key>``."""
    return f'<a href="provenance.html#run-{key}">{text}</a>'
