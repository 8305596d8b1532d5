"""Records that a branch or a merge brings: are they of the code that they name?

A pull request with records is read by this before anybody trains them again. What it compares with
is in git: the files of records where the branch left the base, and the training code and the
margins of the commit of ours that a record was made from. A merge looks at the commit alone
(:func:`refuse_strangers`).
"""

import hashlib
import io
import math
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path, PurePosixPath

from relength import git
from relength.errors import RelengthError
from relength.paths import ROOT
from relength.runs.store import SUFFIX, Record, Store, on_generated_data, read
from relength.specs import registry
from relength.specs.claim_files import digest_of, file_of, said
from relength.specs.experiments import experiments
from relength.specs.margins import MARGINS
from relength.training.provenance import PACKAGE, fingerprint, trains


def added(store: Store, base: str, root: Path = ROOT) -> list[Record]:
    """The records that a checkout's store has and that its branch did not start with.

    base: a commit; what counts is where the branch left it. Raises RelengthError where lines from
    there were changed or removed, where a record lies in another experiment's file or repeats a
    run_id, where ``base`` is no commit of the repository, and where git knows no repository here.
    """
    if why := git.trouble(root):
        raise RelengthError(f"Only git can tell which records were added since {base}, and {why}.")
    start = git.output(root, "merge-base", "HEAD", base)
    if start is None:
        raise RelengthError(
            f"{base} is no commit that the branch in {root} has a history with: fetch it, or name "
            "another."
        )
    then = {root / name: content for name, content in _files(start.decode().strip(), store, root)}
    for file, content in then.items():
        if not file.exists() or not file.read_bytes().startswith(content):
            raise RelengthError(
                f"{file.relative_to(root)} has lost or changed lines that {base} has: records are "
                f"only added, at the end; take the file of {base} and merge yours into it."
            )
    new, known = [], set()
    for file in store.files():
        lines = len(then.get(file, b"").splitlines())
        for number, record in enumerate(read(file)):
            if record["run_id"] in known:
                raise RelengthError(f"Run {record['run_id']} is recorded twice: keep one of them.")
            known.add(record["run_id"])
            if number >= lines:
                _belongs(record, file)
                new.append(record)
    return new


def check(store: Store, new: Iterable[Record], base: str, root: Path = ROOT) -> None:
    """Raises RelengthError that says what is wrong with the first few records, if anything is."""
    new = list(new)
    fresh = {record["run_id"] for record in new}
    earliest: dict[str, str] = {}
    for record in store.records():
        if record["run_id"] not in fresh:
            made = record["provenance"]["created"]
            earliest[record["key"]] = max(earliest.get(record["key"], ""), made)
    wrong = [
        (record["run_id"], said)
        for record in new
        for said in faults(record, base, root, earliest.get(record["key"], ""))
    ]
    if wrong:
        shown = "; ".join(f"run {run_id} {said}" for run_id, said in wrong[:3])
        rest = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise RelengthError(
            f"These records cannot be taken over: {shown}{rest}. Train them with an unchanged "
            "commit of ours and send the new ones."
        )


def faults(record: Record, base: str, root: Path = ROOT, after: str = "") -> list[str]:
    """Why a record cannot be taken over: phrases, none if it can.

    after: when the last record of the same run was made. Tables use the earliest, so that a later
    one cannot take its place.
    """
    try:
        return list(_faults(record, base, root, after))
    except (KeyError, TypeError, ValueError) as error:
        return [f"is not a whole record ({type(error).__name__}: {error})"]


def _faults(record: Record, base: str, root: Path, after: str) -> Iterator[str]:
    made, commit = record["provenance"], str(record["provenance"]["commit"])
    if not experiments()[record["experiment"]].owns(record):
        yield "is no run of its experiment as the code stands"
    if on_generated_data(record):
        yield (
            "was trained on generated data, where tables are made from the published files (which "
            "RELENGTH_DATA or a download gives)"
        )
    if made["dirty"] is not False:
        yield "was made with code that differed from its commit"
    # The newest commit of ours in its history: a fork's own may hold records, but no other code.
    ours = git.output(root, "merge-base", commit, base) if _is_hash(commit) else None
    if ours is None:
        yield f"names commit {commit}, which this repository does not have"
    else:
        origin = ours.decode().strip()
        if made["code"] != code_of(origin, root):
            yield f"has code {made['code']}, where ours was {code_of(origin, root)}"
        if made["margins"] != _margins_of(origin, root):
            yield "has other margins than ours were"
        if made.get("claims") not in (None, _claims_of(origin, record["experiment"], root)):
            yield "has other claims than ours were"
        if (start := began(record)) < _date_of(origin, root):
            yield f"began before its commit, on {start}"
    if made["created"] < after:
        yield f"was made before the record that it repeats, on {made['created']}"
    if record["status"] == "ok" and not _possible(record):
        yield "has numbers that no run can have"


def began(record: Record) -> str:
    """Return when a run began at the latest, as records have times: its end less what it took.

    A run that was stopped for a while began earlier, and so did one that shared its device.
    """
    cost = record.get("cost") or {}
    parts = [cost.get(f"{name}_seconds", 0) for name in ("training", "evaluation")]
    took = timedelta(seconds=sum(filter(math.isfinite, parts)))
    start = datetime.fromisoformat(record["provenance"]["created"]) - took
    return start.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def history(root: Path = ROOT) -> dict[str, str] | None:
    """{commit: its date, as records have it} of all branches; None where git lacks some."""
    if not git.has_history(root):
        return None
    form = ("--format=%H %cd", "--date=format-local:%FT%TZ")
    shown = git.output(root, "log", *form, "HEAD", "--all")
    return None if shown is None else dict(line.split() for line in shown.decode().splitlines())


def astray(record: Record, known: Mapping[str, str]) -> str | None:
    """Say why a record cannot be of the commit that it names; None if it can, or names none.

    known: of :func:`history`
    """
    commit = record["provenance"].get("commit")
    if commit is None:
        return None
    if commit not in known:
        return f"names commit {commit}, which no branch here has"
    if (start := began(record)) < known[commit]:
        return f"began on {start}, before its commit {commit[:8]} was made on {known[commit]}"
    return None


def refuse_strangers(records: Iterable[Record], root: Path = ROOT) -> None:
    """Raises RelengthError if a record that is to be merged cannot be of the commit that it names.

    Where git knows no repository there is nothing to compare with, and nothing is refused.
    """
    known = history(root)
    if known is None:
        return
    wrong = [(r["run_id"], why) for r in records if (why := astray(r, known))]
    if wrong:
        (run_id, why), rest = wrong[0], len(wrong) - 1
        more = f", and {rest} more are like it" if rest else ""
        raise RelengthError(
            f"Nothing is merged: run {run_id} {why}{more}; fetch the branch that it was made from, "
            "or train it again from a commit that is in one."
        )


@cache
def code_of(commit: str, root: Path = ROOT) -> str | None:
    """The fingerprint of the training code of a commit, by its full hash; None if it has none."""
    package = PACKAGE.relative_to(ROOT).as_posix()
    packed = git.output(root, "archive", commit, package)
    if packed is None:
        return None
    files = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".py"):
                name = PurePosixPath(member.name).relative_to(package)
                if trains(name):
                    files[name.as_posix()] = archive.extractfile(member).read()
    return fingerprint(files)


@cache
def _margins_of(commit: str, root: Path) -> str | None:
    content = git.output(root, "show", f"{commit}:{MARGINS.relative_to(ROOT).as_posix()}")
    return None if content is None else hashlib.sha256(content).hexdigest()


@cache
def _claims_of(commit: str, experiment: str, root: Path) -> str | None:
    name = file_of(experiments()[experiment].paper).relative_to(ROOT).as_posix()
    content = git.output(root, "show", f"{commit}:{name}")
    return None if content is None else digest_of(said(content))


@cache
def _date_of(commit: str, root: Path) -> str:
    """Return the date of a commit, as records have it."""
    shown = git.output(root, "log", "-1", "--format=%cd", "--date=format-local:%FT%TZ", commit)
    return (shown or b"").decode().strip()


def _files(commit: str, store: Store, root: Path) -> Iterator[tuple[str, bytes]]:
    """The files of records that a commit has, by their names in the repository."""
    if not store.path.is_relative_to(root):
        raise RelengthError(
            f"{store.path} is not in the repository {root}: name a folder of it with --results."
        )
    folder = store.path.relative_to(root).as_posix()
    listed = git.output(root, "ls-tree", "-rz", "--name-only", commit, "--", folder) or b""
    for name in listed.decode().split("\0"):
        if name.endswith(SUFFIX):
            content = git.output(root, "show", f"{commit}:{name}")
            if content is None:
                raise RelengthError(f"git cannot read {name} of commit {commit}: run `git fsck`.")
            yield name, content


def _belongs(record: Record, file: Path) -> None:
    experiment = experiments().get(record["experiment"])
    place = f"{experiment.paper}/{experiment.name}{SUFFIX}" if experiment else ""
    if f"{file.parent.name}/{file.name}" != place:
        raise RelengthError(
            f"Run {record['run_id']} of {record['experiment']} lies in {file}: let `relength "
            "merge` put records into their files."
        )


def _is_hash(commit: str) -> bool:
    return len(commit) == 40 and set(commit) <= set("0123456789abcdef")


def _possible(record: Record) -> bool:
    """Tell whether every number of a record is finite, and every share one."""
    kept = record["checkpoints"].values()
    tests = [test for checkpoint in kept for test in checkpoint["tests"].values()]
    kind = registry.tasks()[record["spec"]["task"]["name"]].metrics
    shares, amounts = (
        [test[name] for test in tests for name in names if test.get(name) is not None]
        for names in (kind.shares(), kind.amounts())
    )
    others = [
        *record["first_losses"],
        *record["probe"].values(),
        *record["cost"].values(),
        *amounts,
    ]
    return all(0 <= share <= 1 for share in shares) and all(
        math.isfinite(value) for value in others
    )
