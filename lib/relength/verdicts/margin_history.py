"""Find which margins were in force when: the versions of ``book/claims/margins.yml``.

Git knows them, where there is a checkout with its history. Without one (an archive, a shallow
clone) the fingerprints in the records still say how many versions runs were made under.
"""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from pydantic import ValidationError

from relength import git
from relength.paths import ROOT
from relength.specs.margins import MARGINS, Margins, margins_hash

FIELD = "\x1f"


class Version(NamedTuple):
    """One state of the margins file.

    commit, since, subject   None where git does not know them
    content                  None where only its fingerprint is known
    """

    fingerprint: str
    commit: str | None = None
    since: str | None = None  # ISO date
    subject: str | None = None
    content: Margins | None = None


class History(NamedTuple):
    """All known versions, oldest first, the one in force last.

    complete: whether git gave the whole history; if not, versions that no record was made under may
    be missing.
    """

    versions: tuple[Version, ...]
    complete: bool


def history(runs: pd.DataFrame, path: Path = MARGINS, root: Path = ROOT) -> History:
    """Versions that git, the records or the file itself show.

    runs: with the columns margins (a fingerprint or missing) and created, as
    :func:`relength.runs.store.frame` has them.
    """
    committed, complete = _from_git(path, root)
    known = {version.fingerprint for version in committed}
    dated = runs.dropna(subset="margins").groupby("margins")["created"].min().sort_values()
    only_in_records = [
        Version(fingerprint, since=created[:10])
        for fingerprint, created in dated.items()
        if fingerprint not in known
    ]
    versions = sorted([*only_in_records, *committed], key=lambda version: version.since or "")
    current = margins_hash(path)
    if versions and versions[-1].fingerprint == current:
        last = versions.pop()
    else:  # changed since the last commit, or known from older records
        last = next((v for v in only_in_records if v.fingerprint == current), Version(current))
        versions = [version for version in versions if version is not last]
    versions.append(last._replace(content=_parsed(path.read_bytes())))
    return History(tuple(versions), complete)


def _from_git(path: Path, root: Path) -> tuple[list[Version], bool]:
    """Committed versions, oldest first, and whether the checkout has its whole history."""
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    log = git.output(root, "log", f"--format=%H{FIELD}%cs{FIELD}%s", "--", name) or b""
    versions: list[Version] = []
    for line in reversed(log.decode().splitlines()):
        commit, date, subject = line.split(FIELD)
        content = git.output(root, "show", f"{commit}:./{name}")
        if content is None:
            return [], False
        fingerprint = hashlib.sha256(content).hexdigest()
        if not versions or versions[-1].fingerprint != fingerprint:
            versions.append(Version(fingerprint, commit, date, subject, _parsed(content)))
    return versions, bool(versions) and git.has_history(root)


def _parsed(content: bytes) -> Margins | None:
    try:
        return Margins.model_validate(yaml.load(content, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, ValidationError):
        return None  # an older form of the file: its fingerprint still counts


def changes(before: Version, after: Version) -> list[str] | None:
    """Word what a version changed: *measures accuracy absolute: 5.0 to 3.0*. The list of equal
    states is left out.

    Empty where only comments differ, None where the content of one of them is not known.
    """
    if before.content is None or after.content is None:
        return None
    # What a state of the file says of earlier ones is no rule.
    old, new = (
        _flat(version.content.model_dump(exclude_unset=True, exclude={"same_margins"}))
        for version in (before, after)
    )
    return [
        f"{' '.join(key)}: {old.get(key, 'nothing')} to {new.get(key, 'nothing')}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    ]


def _flat(tree: dict[str, Any], above: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    leaves: dict[tuple[str, ...], Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            leaves |= _flat(value, (*above, name))
        else:
            leaves[*above, name] = value
    return leaves
