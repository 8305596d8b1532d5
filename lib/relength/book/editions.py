"""The book in other forms than a folder of pages: one PDF, one archive, each with a checksum."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

from relength.book.build import jupyter_book
from relength.errors import RelengthError

# Under which names Chromium and its relatives are installed; first the one without windows, which
# does the same with a sixth less of a processor.
BROWSERS = (
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable", "chrome"),
)
# No profile of the user's, no network; a budget of virtual time lets MathJax finish first.
QUIET = (
    *("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND"),
    *("--virtual-time-budget=60000", "--no-pdf-header-footer"),
    "--generate-pdf-document-outline",
)
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip file can name


def chromium() -> Path:
    """The program of an installed Chromium or Chrome; RelengthError when there is none."""
    for name in BROWSERS:
        if found := shutil.which(name):
            return Path(found)
    raise RelengthError(
        "Chromium prints the PDF, and none was found on the PATH (looked for "
        f"{', '.join(BROWSERS)}): install it (on Debian: apt-get install chromium), or leave out "
        "--pdf; the HTML book needs no browser to build."
    )


def pdf(out: Path) -> Path:
    """Print the whole book, as it was last executed, into ``out/relength-<version>.pdf``.

    Jupyter Book sets all pages as one, Chromium prints it. Raises RelengthError when Chromium is
    missing or prints nothing.
    """
    browser = chromium()  # before the pages are built: a minute later nobody is watching
    target = _named(out, ".pdf")
    with tempfile.TemporaryDirectory(prefix="relength-") as folder:
        pages = jupyter_book(Path(folder), "singlehtml")
        # One page with everything, and an index that forwards to it.
        (page,) = (page for page in pages.glob("*.html") if page.name != "index.html")
        printed = Path(folder) / "book.pdf"
        command = [
            browser,
            *QUIET,
            f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={printed}",
        ]
        if os.geteuid() == 0:  # Chromium's sandbox refuses the superuser
            command.append("--no-sandbox")
        done = subprocess.run(
            [*command, page.as_uri()], capture_output=True, text=True, check=False, timeout=300
        )
        if done.returncode or not printed.is_file():
            lines = done.stderr.strip().splitlines() or ["it gave no reason"]
            raise RelengthError(f"{browser} printed no PDF: {lines[-1]}")
        shutil.move(printed, target)
    _checksum(target)
    return target


def archive(html: Path, out: Path) -> Path:
    """Pack a built book into ``out/relength-<version>-html.zip``.

    Equal pages give an equal archive, byte by byte: files come in order and without their times.
    """
    target = _named(out, "-html.zip")
    top = target.name.removesuffix(".zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(html.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(f"{top}/{path.relative_to(html).as_posix()}", EARLIEST)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                packed.writestr(entry, path.read_bytes(), compresslevel=9)
    _checksum(target)
    return target


def _named(out: Path, ending: str) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    return out / f"relength-{version('relength')}{ending}"


def _checksum(path: Path) -> None:
    """Beside a file, its SHA-256 in the form that ``sha256sum --check`` reads."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(f"{path.name}.sha256").write_text(f"{digest}  {path.name}\n")
