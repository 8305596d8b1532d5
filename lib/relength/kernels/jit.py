"""Compilation by Numba, whose machine code is kept in a folder so that it is made only once.

The folder is a help, never a condition: where it cannot be written, or what lies in it cannot be
read, the code is compiled anew.
"""

import os
import pickle
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numba import config, njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps

OPTIONS = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function at its first call, or load what was compiled before.

    options  of numba.njit, beside those that all functions have

    With NUMBA_DISABLE_JIT=1 it stays plain Python, whose integers wrap around in silence as well.
    """
    if config.DISABLE_JIT:
        return np.errstate(over="ignore")(function)
    dispatcher = njit(**OPTIONS, **options)(function)
    if (cache := _cache(function)) is not None:
        dispatcher._cache = cache  # where njit(cache=True) puts Numba's own
    return dispatcher


class Checked(CompileResultCacheImpl):
    """Keep a compiled function with its digest, as changed machine code ends a process."""

    def reduce(self, cres: Any) -> tuple[bytes, bytes]:
        """Digest and bytes of a compiled function."""
        code = dumps(super().reduce(cres))
        return sha256(code).digest(), code

    def rebuild(self, target_context: Any, payload: tuple[bytes, bytes]) -> Any:
        """The function of such bytes. Raises ValueError when they are not what was kept."""
        digest, code = payload
        if sha256(code).digest() != digest:
            raise ValueError("the kept machine code was changed")
        return super().rebuild(target_context, pickle.loads(code))


class Cache(FunctionCache):
    """Numba's cache of one function; a damaged entry is compiled again and replaced."""

    _impl_class = Checked

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        # What a function calls may lie in other files of this folder, of which Numba knows nothing.
        self._cache_file._source_stamp = self._cache_file._source_stamp, *stamps()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None if it was not kept or cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # bytes that were cut off or changed fail in as many ways as pickles can
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function; on a full disk it serves this process only."""
        with suppress(OSError):
            super().save_overload(sig, data)


def stamps() -> tuple[tuple[str, float, int], ...]:
    """Name, time and size of every file of kernels."""
    found = ((file.name, file.stat()) for file in sorted(Path(__file__).parent.glob("*.py")))
    return tuple((name, state.st_mtime, state.st_size) for name, state in found)


def _cache(function: Callable[..., Any]) -> Cache | None:
    """A cache where Numba would have it, else in a temporary folder; None if neither is writable.

    Numba looks at NUMBA_CACHE_DIR, then beside the source, then in the user's home.
    """
    with suppress(RuntimeError):  # no place can be written
        return Cache(function)
    folder = temporary_folder()
    if folder is None:
        return None
    config.CACHE_DIR = str(folder)  # as NUMBA_CACHE_DIR, which was read when Numba was imported
    with suppress(RuntimeError):
        return Cache(function)
    return None


def temporary_folder() -> Path | None:
    """A folder for compiled code that the next process of this user finds again; None without one.

    It is used only if it is the user's own and nobody else may write to it: what lies in it is run.
    """
    try:
        folder = Path(tempfile.gettempdir()) / f"relength-numba-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    own = found.st_uid == os.getuid() and not found.st_mode & 0o022  # a link counts as open to all
    return folder if own else None
