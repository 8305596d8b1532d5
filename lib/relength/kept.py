"""Results of long computations, kept on disk and shared by commands, pages, kernels and tests.

A value is kept under the digest of everything that it follows from, the package itself included, so
that none is out of date: what changes is computed anew under another name. Where nothing can be
written, and where a file is damaged, it is computed as if nothing had been kept.
"""

import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from relength.paths import ROOT

Value = TypeVar("Value")

FOLDER = ROOT / ".relength" / "kept"
PACKAGE = Path(__file__).parent
UNUSED_DAYS = 14  # after which a file is removed when another is written
LIBRARIES = ("numpy", "pandas", "pydantic", "scipy")


def kept(name: str, make: Callable[[], Value], *given: str | bytes) -> Value:
    """Return what ``make()`` returns, from disk if it was computed before.

    given  everything that the value depends on, beside the package and its libraries
    """
    file = FOLDER / f"{name}-{digest(code(), *given).hex()}.pickle"
    try:
        with file.open("rb") as opened:
            value = pickle.load(opened)
        os.utime(file)
        return value
    except Exception:  # a damaged pickle can raise anything
        value = make()
    with suppress(OSError):
        _write(file, pickle.dumps(value))
    return value


def digest(*parts: str | bytes) -> bytes:
    """16 bytes over texts in their order."""
    found = blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little") + data)
    return found.digest()


@cache
def code() -> bytes:
    """Digest of every file of the package, and of the versions of what it computes with."""
    files = sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".json", ".csv"))
    texts = (part for path in files for part in (str(path.relative_to(PACKAGE)), path.read_bytes()))
    return digest(sys.version, *map(version, LIBRARIES), *texts)


def _write(file: Path, data: bytes) -> None:
    """Write a file whole or not at all, and remove those that nobody has read for a while."""
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
    for other in file.parent.iterdir():
        with suppress(OSError):  # another process may have removed it
            if time.time() - other.stat().st_mtime > UNUSED_DAYS * 86400:
                other.unlink()
