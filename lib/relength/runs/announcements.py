"""Let campaigns that record into one folder tell each other which runs they train now.

Each keeps a list of its runs in a file of that folder, and a lock beside it. The lock goes with the
process that holds it, so a campaign that was killed is in nobody's way.
"""

import json
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from relength.errors import RelengthError
from relength.runs.store import Store

_own: set[Path] = set()  # of this process: what it left unfinished, it may begin anew


@contextmanager
def announced(store: Store, keys: Collection[str]) -> Iterator[None]:
    """Keep other processes from training these runs into the store until the end of the block.

    Raises RelengthError when another process is at some of them, and as :meth:`Store.append`.
    """
    with store.locked(store.announcements / "runs"):
        if taken := set(keys) & _elsewhere(store.announcements):
            raise RelengthError(
                f"Another campaign that records into {store.path} trains {len(taken)} of these "
                f"{len(keys)} runs now: wait for it, or divide them with --shard 1/2 here and 2/2 "
                "there, or train them a second time into another folder with --out."
            )
        file = store.announcements / f"{uuid.uuid4().hex}.json"
        lock = FileLock(file.with_suffix(".lock"), timeout=0)
        lock.acquire()
        file.write_text(json.dumps(sorted(keys)))
        _own.add(file)
    try:
        yield
    finally:
        _own.discard(file)
        file.unlink(missing_ok=True)
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)


def _elsewhere(folder: Path) -> set[str]:
    """The keys of what other processes train; removes what ended ones have left."""
    keys: set[str] = set()
    for file in set(folder.glob("*.json")) - _own:
        lock = FileLock(file.with_suffix(".lock"), timeout=0)
        try:
            with lock:
                file.unlink(missing_ok=True)
            Path(lock.lock_file).unlink(missing_ok=True)
        except Timeout:
            keys.update(json.loads(file.read_text()))
    return keys
