"""Find whether a claim changed after the first run that it judges.

Records store the digest of their paper's claims. For older ones, which have none, git knows what
the file of claims said at the commit that the record names, or else on its date. Without its
history, claims are not dated.
"""

from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from relength import git
from relength.errors import RelengthError
from relength.kept import digest, kept
from relength.paths import ROOT
from relength.specs import claim_files
from relength.specs.claim_files import Said, digest_of, file_of, said
from relength.verdicts.wording import NEW

CODE = ("verdicts.claim_history", "verdicts.wording", "specs.claim_files", "git")
FIELD = "\x1f"


class Origin(NamedTuple):
    """The time of a record, as it says; old ones lack the digest of the claims."""

    created: str
    commit: str | None
    claims: str | None

    @classmethod
    def of(cls, run: Any) -> "Origin":
        """From a row of :func:`relength.runs.store.frame`."""
        given = (run["created"], run["commit"], run["claims"])
        return cls(*(value if isinstance(value, str) else None for value in given))


class State(NamedTuple):
    """The text of a file of claims at some time, and its digest."""

    said: dict[str, Said]
    digest: str


NOTHING = State({}, "")  # before there was a file


def changed(claim: str, paper: str, first: Origin, root: Path = ROOT) -> tuple[str, ...] | None:
    """Name what of a claim changed after its first run, of "text", "rule" and "scope".

    Empty where nothing did; (:data:`NEW`,) where the claim was written later; None where nobody
    knows.
    """
    now = _now(paper)
    if now is None:
        return None
    then = now if first.claims == now.digest else _then(paper, first, root)
    key = claim if claim in now.said else claim.split("/")[0]  # cells are claimed by their artifact
    if then is None or key not in now.said:
        return None
    return tuple(then.said[key].differs(now.said[key])) if key in then.said else (NEW,)


def state(root: Path = ROOT) -> bytes:
    """16 bytes that change when the history of the files of claims does."""
    folder = _name(claim_files.CLAIMS, root)
    return digest(git.output(root, "log", "--format=%H", "--", folder) or b"")


def _then(paper: str, first: Origin, root: Path) -> State | None:
    """Return the claims as they were when a run was made; None where nobody knows."""
    versions = _versions(paper, root)
    if first.claims:
        return next((one for _, one in versions if one and one.digest == first.claims), None)
    if first.commit and (found := _at(first.commit, paper, root)):
        return found
    if not versions:
        return None
    before = [one for date, one in versions if date <= first.created]
    return before[-1] if before else NOTHING


@cache
def _versions(paper: str, root: Path) -> tuple[tuple[str, State | None], ...]:
    """Committed states of a file of claims with their dates, oldest first; none without history."""
    if not git.has_history(root):
        return ()
    shown = ("log", "--reverse", f"--format=%H{FIELD}%cd", "--date=format-local:%FT%TZ")
    log = git.output(root, *shown, "--", _name(file_of(paper), root)) or b""
    rows = [line.split(FIELD) for line in log.decode().splitlines()]

    def read() -> tuple[tuple[str, State | None], ...]:
        return tuple((date, _at(commit, paper, root)) for commit, date in rows)

    # A second for all papers, in each process that judges. A commit's name stands for its content.
    return kept(f"claims-then-{paper}", read, log, code=CODE) if root == ROOT else read()


@cache
def _at(commit: str, paper: str, root: Path) -> State | None:
    """Return the claims of a commit; None where git or this code cannot read it."""
    content = git.output(root, "show", f"{commit}:{_name(file_of(paper), root)}")
    return None if content is None else _read(content)


def _now(paper: str) -> State | None:
    try:
        return _read(file_of(paper).read_bytes())
    except OSError:
        return None


@lru_cache(maxsize=64)
def _read(content: bytes) -> State | None:
    try:
        found = said(content)
    except RelengthError:
        return None
    return State(found, digest_of(found))


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
