"""Results of long computations, kept on disk and shared by commands, pages, kernels and tests.

A value is kept under the digest of everything that it follows from: what was given, and the files
of the package that compute it. So none is out of date: what changes is computed anew under another
name. Where nothing can be written, and where a file is damaged, it is computed as if nothing had
been kept. Of several processes that want the same value one computes it, and the others wait.
"""

import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from relength.paths import ROOT

Value = TypeVar("Value")

FOLDER = ROOT / ".relength" / "kept"
PACKAGE = Path(__file__).parent
PATIENCE = 120  # seconds that a process waits for another that computes what it wants
LATEST = 3  # values of one name that are kept: those read or written last
LIBRARIES = ("numpy", "pandas", "pydantic", "scipy")


def kept(name: str, make: Callable[[], Value], *given: str | bytes, code: tuple[str, ...]) -> Value:
    """Return what ``make()`` returns, from disk if it was computed before.

    given  everything that the value depends on, beside code and libraries
    code   the modules and rooms of the package that ``make`` may import, "verdicts.rules" or
           "papers.*.experiments"; tests/test_kept.py compares them with what it imports
    """
    value = recall(name, *given, code=code)
    if value is None:
        with _alone(_file(name, given, code)):
            value = recall(name, *given, code=code)  # of whoever was first
            if value is None:
                value = make()
                remember(name, value, *given, code=code)
    return value


def recall(name: str, *given: str | bytes, code: tuple[str, ...]) -> Any:
    """Read what was kept; None if there is nothing, or nothing that can be read."""
    file = _file(name, given, code)
    try:
        with file.open("rb") as opened:
            value = pickle.load(opened)
    except Exception:  # a damaged pickle can raise anything
        return None
    with suppress(OSError):  # a reader who may not write it can still use it
        os.utime(file)
    return value


def remember(name: str, value: Any, *given: str | bytes, code: tuple[str, ...]) -> None:
    """Keep a value, in place of the oldest of its name."""
    file = _file(name, given, code)
    with suppress(OSError):
        _write(file, pickle.dumps(value))
        same = [other for other in FOLDER.iterdir() if other.stem[:-33] == name]
        for other in sorted(same, key=_age)[LATEST:]:
            other.unlink(missing_ok=True)


def digest(*parts: str | bytes) -> bytes:
    """16 bytes over texts in their order."""
    found = blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little") + data)
    return found.digest()


def files(code: Iterable[str]) -> list[Path]:
    """The files of modules and of rooms, in a fixed order: their code, and the data beside it."""
    found = set()
    for name in code:
        path = name.replace(".", "/")
        found |= {*PACKAGE.glob(f"{path}.py")}
        for room in PACKAGE.glob(path):
            found |= {file for file in room.rglob("*") if file.suffix in (".py", ".json", ".csv")}
    return sorted(found)


def _file(name: str, given: tuple[str | bytes, ...], code: tuple[str, ...]) -> Path:
    return FOLDER / f"{name}-{digest(code_digest(code), *given).hex()}.pickle"


@cache
def code_digest(code: tuple[str, ...]) -> bytes:
    """Digest of files of the package, and of the versions of what they compute with."""
    texts = ((file.relative_to(PACKAGE).as_posix(), file.read_bytes()) for file in files(code))
    parts = (part for text in texts for part in text)
    return digest(sys.version, *map(version, LIBRARIES), *parts)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Let one process at a time compute a value; where no lock can be had, or not soon, all may."""
    lock = FileLock(FOLDER.with_name("locks") / f"{file.stem}.lock", timeout=PATIENCE)
    with suppress(OSError):  # a Timeout is one
        Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):
                Path(lock.lock_file).unlink()
            lock.release()


def _age(file: Path) -> float:
    try:
        return -file.stat().st_mtime
    except FileNotFoundError:  # another process has removed it
        return 0.0


def _write(file: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
        os.replace(name, file)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
