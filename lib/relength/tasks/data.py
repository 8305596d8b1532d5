"""Finds published data: in a folder the user names, else by download, else says why there is none.

``data_index.json`` beside this file lists what can be found: each file's address, SHA-256 and rows.
Files come from the first place that applies:

1. the folder in the environment variable ``RELENGTH_DATA``, which must then hold them undamaged;
2. pooch's cache of this package, filled from the files' own addresses (``RELENGTH_OFFLINE=1``
   leaves out this place, the cache included);
3. nowhere: the caller generates data by the published procedure, or stops.

Small sets are read whole by :func:`find`. A large one is a single file, found by :func:`archive`,
which downloads it only where a run is asked for that needs it.
"""

import gzip
import hashlib
import json
import os
import threading
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from relength.errors import RelengthError

FIRST_ANSWER_SECONDS = 5.0
READ_SECONDS = 10.0

Index = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Found:
    """The place where a data set was found, and its files.

    source  ``RELENGTH_DATA``, ``download``, or None when there is no published copy to be had
    texts   file name -> text; empty without a source
    sha256  file name -> SHA-256 of the file as published; empty without a source
    reason  why there is no published copy; empty with a source
    """

    source: Literal["RELENGTH_DATA", "download"] | None
    texts: dict[str, str]
    sha256: dict[str, str]
    reason: str = ""


def find(name: str) -> Found:
    """The published data set ``name`` of the index, every file checked against its SHA-256.

    A place is searched once per process: without a network only the first call waits.

    Raises RelengthError when the data in the folder of ``RELENGTH_DATA`` are missing or damaged.
    """
    folder = _folder()
    return _find(name, "" if folder is None else str(folder), _offline())


@dataclass(frozen=True)
class Archive:
    """A published archive on this machine; sha256 is that of the file as it is here."""

    source: Literal["RELENGTH_DATA", "download"]
    path: Path
    sha256: str


def archive(name: str) -> Archive:
    """The archive ``name`` of the index, checked against its SHA-256; downloaded if need be.

    Raises RelengthError when it cannot be had, or is another file than the index describes.
    """
    entry = index()[name]
    source, path = _place(entry)
    if why := lacks(name):
        if source == "RELENGTH_DATA" or _offline():
            raise RelengthError(
                f"{name} has no data: {why}; put {entry['url']} there as {entry['archive']}, in a "
                "folder that RELENGTH_DATA names, or unset RELENGTH_DATA and RELENGTH_OFFLINE to "
                "download it."
            )
        path = _download(name, entry)
    found = _sha256(path, path.stat().st_mtime_ns)
    if found != entry["sha256"]:
        raise RelengthError(
            f"{path} is damaged or another version (its SHA-256 is {found}): replace it with "
            f"{entry['url']}, whose SHA-256 is {entry['sha256']}."
        )
    return Archive(source, path, found)


def downloads() -> set[str]:
    """Names of the data sets that are fetched when a run needs them."""
    return {name for name, entry in index().items() if "url" in entry}


def way_in(name: str) -> str:
    """Say how large an archive is and how a run comes by it here, for pages: no folder is named."""
    entry = index()[name]
    said = f"{name} is an archive of {entry['bytes'] / 1e6:.0f} MB, which "
    if _folder() is not None:
        return (
            f"{said}is not in the folder that RELENGTH_DATA names: put {entry['url']} there as "
            f"{entry['archive']}, or unset RELENGTH_DATA to download it."
        )
    if _offline():
        return f"{said}RELENGTH_OFFLINE forbids fetching from {entry['url']}."
    return f"{said}is fetched from {entry['url']} and checked when it is trained on."


def lacks(name: str) -> str:
    """Why the archive ``name`` of the index is not on this machine; empty if it is."""
    entry = index()[name]
    source, path = _place(entry)
    if path.is_file():
        return ""
    if source == "RELENGTH_DATA":
        return f"RELENGTH_DATA names {path.parents[1]}, which has no {entry['archive']}"
    if _offline():
        return "RELENGTH_DATA is not set and RELENGTH_OFFLINE forbids downloads"
    return f"RELENGTH_DATA is not set and {entry['url']} was not downloaded"


def lacks_files(name: str) -> str:
    """Why a small data set of the index is not at hand without a download; empty if it is."""
    folder, archive = _folder(), index()[name]["archive"]
    if folder is None:
        return "RELENGTH_DATA is not set"
    return (
        ""
        if (folder / archive).is_file()
        else f"RELENGTH_DATA names {folder}, which has no {archive}"
    )


def lacks_unpacked(name: str) -> str:
    """Why one of the files of a data set without an archive is not at hand; empty if all are."""
    folder, entry = _folder(), index()[name]
    if folder is None:
        return "RELENGTH_DATA is not set"
    for file in entry["files"]:
        if not (folder / entry["folder"] / file).is_file():
            return f"RELENGTH_DATA names {folder}, which has no {entry['folder']}/{file}"
    return ""


def lacks_books() -> str:
    """Why the books of the index are not on this machine; empty if they are."""
    entry, folder = index()["books"], _folder()
    if folder is None:
        return "RELENGTH_DATA is not set, and the books are in the folder that it names"
    for known in entry["splits"].values():
        for name in known:
            if not (folder / entry["folder"] / name).is_file():
                return f"RELENGTH_DATA names {folder}, which has no {entry['folder']}/{name}"
    return ""


def books(split: str) -> dict[str, str]:
    """The books of a split, {file: text}, each checked against its SHA-256.

    Raises RelengthError where they are missing, damaged or another edition.
    """
    if why := lacks_books():
        raise RelengthError(
            f"The books have no data: {why}; put the texts that data_index.json lists there, and "
            "let RELENGTH_DATA name the folder."
        )
    entry, found = index()["books"], {}
    for name, book in entry["splits"][split].items():
        path = _folder() / entry["folder"] / name
        packed = path.read_bytes()
        if hashlib.sha256(packed).hexdigest() != book["sha256"]:
            raise RelengthError(
                f"{path} is damaged or another edition (its SHA-256 is not {book['sha256']}): "
                "replace it, or correct RELENGTH_DATA."
            )
        found[name] = gzip.decompress(packed).decode("utf-8")
    return found


@cache
def index() -> dict[str, Index]:
    """Map each data set that can be found to its archive, licence and files; to be read only."""
    return json.loads(
        files("relength.tasks").joinpath("data_index.json").read_text(encoding="utf-8")
    )


def _folder() -> Path | None:
    named = os.environ.get("RELENGTH_DATA", "")
    return Path(named).expanduser().resolve() if named else None


def _offline() -> bool:
    return os.environ.get("RELENGTH_OFFLINE", "") not in ("", "0")


def _place(entry: Index) -> tuple[Literal["RELENGTH_DATA", "download"], Path]:
    """Return the file where an archive is looked for."""
    folder = _folder()
    if folder is not None:
        return "RELENGTH_DATA", folder / entry["archive"]
    return "download", _cache() / Path(entry["archive"]).name


@lru_cache
def _find(name: str, folder: str, offline: bool) -> Found:
    entry = index()[name]
    if folder:
        return _found("RELENGTH_DATA", _from_folder(Path(folder), entry))
    if offline:
        why = "RELENGTH_DATA is not set and RELENGTH_OFFLINE forbids downloads"
        return Found(None, {}, {}, why)
    try:
        return _found("download", _from_network(entry))
    except OSError as error:  # those of requests are OSErrors too
        why = f"the download failed ({type(error).__name__})"
    except ValueError:  # pooch's complaint about a checksum, which it keeps out of its cache
        why = "a downloaded file had another SHA-256"
    return Found(None, {}, {}, f"RELENGTH_DATA is not set and {why}")


def _found(source: Literal["RELENGTH_DATA", "download"], contents: dict[str, bytes]) -> Found:
    return Found(
        source,
        {name: content.decode("utf-8") for name, content in contents.items()},
        {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    )


def _from_folder(folder: Path, entry: Index) -> dict[str, bytes]:
    archive = folder / entry["archive"]
    way_out = "correct RELENGTH_DATA, or unset it to download the data"
    if not folder.is_dir():
        raise RelengthError(f"RELENGTH_DATA names {folder}, which is not a folder: {way_out}.")
    if not archive.is_file():
        raise RelengthError(
            f"RELENGTH_DATA names {folder}, which has no {entry['archive']}: {way_out}."
        )
    contents = {}
    try:
        with zipfile.ZipFile(archive) as opened:
            for name, file in entry["files"].items():
                contents[name] = opened.read(file["member"])
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, OSError) as error:
        raise RelengthError(f"{archive} cannot be read ({error}): {way_out}.") from None
    for name, content in contents.items():
        if hashlib.sha256(content).hexdigest() != entry["files"][name]["sha256"]:
            raise RelengthError(f"{archive} is damaged ({name} has another SHA-256): {way_out}.")
    return contents


def _from_network(entry: Index) -> dict[str, bytes]:
    smallest_first = sorted(entry["files"].items(), key=lambda item: item[1]["rows"])
    (name, file), *others = smallest_first
    # A name server that never answers outlasts every timeout of requests, hence the deadline.
    contents = {name: _within(FIRST_ANSWER_SECONDS, lambda: _fetch(file))}
    return contents | {name: _fetch(file) for name, file in others}


def _fetch(file: Index) -> bytes:
    """The file's content from pooch's cache, downloaded if it is not there or damaged."""
    return _retrieve(file, file["member"].replace("/", "-")).read_bytes()


def _download(name: str, entry: Index) -> Path:
    """An archive in pooch's cache. RelengthError where it cannot be had."""
    try:
        return _retrieve(entry, Path(entry["archive"]).name)
    except (OSError, ValueError) as error:  # the second is pooch's complaint about a checksum
        raise RelengthError(
            f"{name} has no data: the download of {entry['url']} failed ({type(error).__name__}); "
            f"put the file as {entry['archive']} into a folder that RELENGTH_DATA names."
        ) from None


def _retrieve(file: Index, name: str) -> Path:
    pooch = _pooch()
    pooch.get_logger().setLevel("WARNING")  # its notes on standard error would enter notebooks
    path = pooch.retrieve(
        file["url"],
        known_hash=f"sha256:{file['sha256']}",
        fname=name,
        path=_cache(),
        downloader=pooch.HTTPDownloader(timeout=(FIRST_ANSWER_SECONDS, READ_SECONDS)),
    )
    return Path(path)


def _cache() -> Path:
    return Path(_pooch().os_cache("relength"))


def _pooch() -> ModuleType:
    """Pooch, loaded late and in silence: its bar of progress warns where a notebook has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pooch
    return pooch


@lru_cache
def _sha256(path: Path, changed: int) -> str:
    """SHA-256 of a file; changed: when it was, so that a changed one is read again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _within(seconds: float, call: Callable[[], bytes]) -> bytes:
    """The result of ``call``, or TimeoutError if it takes longer; it then ends unheard."""
    outcome: list[bytes | Exception] = []

    def work() -> None:
        try:
            outcome.append(call())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TimeoutError
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]
