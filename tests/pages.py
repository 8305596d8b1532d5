"""The pages of the book, as tests find them."""

import gzip
import re
from base64 import b64decode
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from relength.paths import BOOK

# One page of each kind. `make test` opens these in Chromium and `make test-all` opens all.
TEMPLATES = {
    "intro": "the first page",
    "mla_overview": "what a paper is about",
    "findings_memreasoner": "what was found of a paper",
    "executed/mla_extra_tasks": "a notebook with every kind of table and figure",
    "deviations_mla": "entries that unfold",
    "claims_ledger": "the claims and their filter",
    "environment": "tables that a phone shows as cards",
    "guide_task": "commands and files to paste",
    "search": "what only a script fills",
}


def is_current(made: Path, results: Path) -> bool:
    """Tell whether `make book` would make the pages or notebooks in a folder as they are."""
    from relength.book import build as bookbuild  # a second to import

    sources = made / bookbuild.SOURCES
    return sources.exists() and sources.read_text() == bookbuild.fingerprint(results)


def unpacked(text: str) -> str:
    """HTML with what waits in it to be asked for, in the place where it waits."""
    script = r'<script type="application/gzip">(.*?)</script>'
    return re.sub(script, lambda found: gzip.decompress(b64decode(found[1])).decode(), text)


def toc() -> list[str]:
    """Every page of the table of contents, and the one that shows search results."""
    found = yaml.safe_load((BOOK / "_toc.yml").read_text())
    chapters = [c["file"] for part in found["parts"] for c in part["chapters"]]
    return [f"{name}.html" for name in (found["root"], *chapters, "search")]


def pages(often: Iterable[str]) -> list:
    """Every page as a parameter of a test; those that are not of these names weekly."""
    return [
        pytest.param(f"{name}.html", id=name, marks=() if name in often else pytest.mark.weekly)
        for name in (page.removesuffix(".html") for page in PAGES)
    ]


PAGES = toc()
TO_OPEN = pages(TEMPLATES)
# Their tables and downloads are of all kinds; in the ledger, and among all runs, a click takes a
# second.
TO_USE = pages(("intro", "executed/mla_extra_tasks"))
