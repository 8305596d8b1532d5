"""Paths of the repository's parts."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
NOTEBOOKS = ROOT / "notebooks"
EXECUTED = BOOK / "executed"  # written by papermill and the report, not tracked
RESULTS = ROOT / "results"
