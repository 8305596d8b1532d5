"""Paths of the repository's parts."""

from pathlib import Path

from relength.errors import RelengthError

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
NOTEBOOKS = ROOT / "notebooks"
EXECUTED = BOOK / "executed"  # written by papermill and the report, not tracked
RESULTS = ROOT / "results"


def check_checkout() -> None:
    """Raise RelengthError when the library lies somewhere without the repository around it."""
    if not NOTEBOOKS.is_dir():
        raise RelengthError(
            f"relength is installed in {Path(__file__).parents[1]} without its notebooks, book and "
            "records: clone the repository and install it from there with `python -m pip install "
            "--editable .`."
        )
