"""The pages of the book, as tests find them."""

import pytest
import yaml

from relength.paths import BOOK

# One page of each kind. `make test` opens these in Chromium and `make test-all` opens all.
TEMPLATES = {
    "intro": "the first page",
    "mla_overview": "what a paper is about",
    "findings_mla": "what was found of it",
    "executed/mla_extra_tasks": "a notebook with every kind of table and figure",
    "deviations_mla": "entries that unfold",
    "claims_ledger": "the claims and their filter",
    "provenance": "the runs and their filter",
    "guide_task": "commands and files to paste",
    "search": "what only a script fills",
}


def toc() -> list[str]:
    """Every page of the table of contents, and the one that shows search results."""
    found = yaml.safe_load((BOOK / "_toc.yml").read_text())
    chapters = [c["file"] for part in found["parts"] for c in part["chapters"]]
    return [f"{name}.html" for name in (found["root"], *chapters, "search")]


PAGES = toc()
TO_OPEN = [
    pytest.param(
        page,
        id=page.removesuffix(".html"),
        marks=() if page.removesuffix(".html") in TEMPLATES else pytest.mark.weekly,
    )
    for page in PAGES
]
