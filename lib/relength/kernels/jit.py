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
from numba.core.dispatcher import Dispatcher
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
    """Keep a compiled function with its digest, as changed machine code ends a process.

    The digest is of the key, too: two processes that keep a function for different sizes at the
    same moment may choose the same file.

    key  what is kept or loaded now
    """

    key: tuple[Any, ...] = ()

    def reduce(self, cres: Any) -> tuple[bytes, bytes]:
        """Digest and bytes of a compiled function."""
        code = dumps(super().reduce(cres))
        return self._digest(code), code

    def rebuild(self, target_context: Any, payload: tuple[bytes, bytes]) -> Any:
        """The function of such bytes. Raises ValueError when they are not what was kept."""
        digest, code = payload
        if self._digest(code) != digest:
            raise ValueError("the kept machine code was changed, or is another function's")
        return super().rebuild(target_context, pickle.loads(code))

    def _digest(self, code: bytes) -> bytes:
        return sha256(repr(self.key).encode() + code).digest()


def stamps(folder: Path) -> tuple[tuple[str, float, int], ...]:
    """Name, time and size of every module in a folder."""
    found = []
    for file in sorted(folder.glob("[!.]*.py")):
        with suppress(OSError):
            state = file.stat()
            found.append((file.name, state.st_mtime, state.st_size))
    return tuple(found)


# What a function calls may lie in other files of this folder, of which Numba knows nothing. They
# are looked at before any is loaded, so that old code is never kept as that of a new file.
STAMPS = stamps(Path(__file__).parent)


class Cache(FunctionCache):
    """Numba's cache of one function; a damaged entry is compiled again and replaced."""

    _impl_class = Checked

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        self._cache_file._source_stamp = self._cache_file._source_stamp, STAMPS

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Tell a function from others of its name by types, machine, and :func:`digest`."""
        self._impl.key = str(sig), codegen.magic_tuple(), digest(self._py_func)
        return self._impl.key

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


def digest(function: Callable[..., Any]) -> str:
    """Digest of a function's code and of what it closes over, the same in every process.

    Numba's own would differ where that is a compiled function, which it names by chance.
    """
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    parts = [digest(x.py_func).encode() if isinstance(x, Dispatcher) else dumps(x) for x in cells]
    return sha256(b"\0".join([function.__code__.co_code, *parts])).hexdigest()


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
