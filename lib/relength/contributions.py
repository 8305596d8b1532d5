"""Records that a branch brings: are they only added, and do they come from the code they name?

A pull request with records is read by this before anybody trains them again. What it compares is
in git: the files of records as the base has them, and the code and the margins of the commit that
a record names.
"""

import hashlib
import io
import math
import subprocess
import tarfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from relength.errors import RelengthError
from relength.margins import MARGINS
from relength.papers import EXPERIMENTS
from relength.paths import ROOT
from relength.provenance import PACKAGE, TRAINING_CODE, fingerprint
from relength.store import SUFFIX, Record, Store


def added(store: Store, base: str, root: Path = ROOT) -> list[Record]:
    """The records that a checkout's store has and the commit ``base`` has not.

    Raises RelengthError where lines of the base were changed or removed, and where ``base`` is no
    commit of the repository.
    """
    if not store.path.is_relative_to(root):
        raise RelengthError(
            f"{store.path} is not in the repository {root}: name a folder of it with --results."
        )
    folder = store.path.relative_to(root).as_posix()
    listed = _git(root, "ls-tree", "-r", "--name-only", base, "--", folder)
    if listed is None:
        raise RelengthError(
            f"{base} is no commit of the repository {root}: fetch it, or name another."
        )
    then = {}
    for name in (line for line in listed.decode().splitlines() if line.endswith(SUFFIX)):
        then[root / name] = _git(root, "show", f"{base}:{name}") or b""
    for file, content in then.items():
        if not file.exists() or not file.read_bytes().startswith(content):
            raise RelengthError(
                f"{file.relative_to(root)} has lost or changed lines that {base} has: records are "
                f"only added, at the end; take the file of {base} and merge yours into it."
            )
    recorded = {}
    for file in store.files():
        lines = file.read_bytes().count(b"\n", 0, len(then.get(file, b"")))
        name = file.name.removesuffix(SUFFIX)
        recorded[name] = store.records(name)[lines:]
    return [record for records in recorded.values() for record in records]


def faults(record: Record, root: Path = ROOT) -> list[str]:
    """Why a record cannot be taken over: phrases, none if it can."""
    found, made = [], record["provenance"]
    experiment = EXPERIMENTS.get(record["experiment"])
    if experiment is None or not experiment.owns(record):
        found.append("is no run of its experiment as the code stands")
    commit = made.get("commit")
    if made.get("dirty") is not False:
        found.append("was made with code that differed from its commit")
    if not commit or _git(root, "cat-file", "-e", f"{commit}^{{commit}}") is None:
        found.append(f"names commit {commit}, which this repository does not have")
    else:
        if made["code"] != code_of(commit, root):
            found.append(f"has code {made['code']}, and its commit has {code_of(commit, root)}")
        if made["margins"] != _margins_of(commit, root):
            found.append("has other margins than its commit")
    if record["status"] == "ok" and not _possible(record):
        found.append("has numbers that no run can have")
    return found


def check(records: Iterable[Record], root: Path = ROOT) -> None:
    """Raises RelengthError that says what is wrong with the first few records, if anything is."""
    wrong = [(r["run_id"], said) for r in records for said in faults(r, root)]
    if wrong:
        shown = "; ".join(f"run {run_id} {said}" for run_id, said in wrong[:3])
        rest = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise RelengthError(
            f"These records cannot be taken over: {shown}{rest}. Train them with an unchanged "
            "commit of ours and send the new ones."
        )


@cache
def code_of(commit: str, root: Path = ROOT) -> str | None:
    """The fingerprint of the training code of a commit; None where it has none."""
    package = PACKAGE.relative_to(ROOT).as_posix()
    packed = _git(root, "archive", commit, package)
    if packed is None:
        return None
    files = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".py"):
                name = PurePosixPath(member.name).relative_to(package)
                if name.parts[0] in TRAINING_CODE:
                    files[name.as_posix()] = archive.extractfile(member).read()
    return fingerprint(files)


def _margins_of(commit: str, root: Path) -> str | None:
    content = _git(root, "show", f"{commit}:{MARGINS.relative_to(ROOT).as_posix()}")
    return None if content is None else hashlib.sha256(content).hexdigest()


def _possible(record: Record) -> bool:
    shares = [
        value
        for checkpoint in record["checkpoints"].values()
        for metrics in checkpoint["tests"].values()
        for name, value in metrics.items()
        if name in ("exact_match", "token_accuracy") and value is not None
    ]
    losses = record["first_losses"]
    return all(0 <= share <= 1 for share in shares) and all(map(math.isfinite, losses))


def _git(root: Path, *arguments: str) -> bytes | None:
    """What a git command prints; None where it fails."""
    command: list[Any] = ["git", "-C", root, *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None
