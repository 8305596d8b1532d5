"""Read the files of claims as plain data: each claim's text, rule and scope, and one digest.

A module of its own because each training run stores the digest: it must not cost the import of what
judges. :mod:`relength.verdicts.claim_models` reads the same files to judge them.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from relength.errors import RelengthError
from relength.paths import BOOK

CLAIMS = BOOK / "claims"
# What an entry says of how it is judged.
RULE = (
    *("expect", "metric", "experiment", "checkpoint", "runs_that"),
    *("judged_arm", "not_testable"),
)
# What an artifact's source says of that. Other arms stand beside a verdict and decide none.
SOURCE = ("experiment", "metric", "checkpoint", "judged_arm", "elsewhere")


class Said(NamedTuple):
    """A claim in canonical form: JSON with sorted keys, white space in texts as single spaces.

    text   the sentence quoted
    rule   what is expected of which models and cells, and the runs and metric it is judged by
    scope  what of the claim is left out
    """

    text: str
    rule: str
    scope: str

    def differs(self, other: "Said") -> list[str]:
        """Name the fields in which two forms of a claim differ."""
        return [name for name in self._fields if getattr(self, name) != getattr(other, name)]


def file_of(paper: str) -> Path:
    """The file of a paper's claims, which need not exist."""
    return CLAIMS / f"{paper}.yml"


def said(content: bytes) -> dict[str, Said]:
    """Map each claim to its text, from the content of an old or new file.

    Each printed cell is a claim of its own where an artifact says so. They all have one rule, which
    stands under the artifact's name.

    Raises RelengthError where the content is no file of claims.
    """
    try:
        file = yaml.load(content, Loader=yaml.CSafeLoader)
        sources = {
            name: {field: source[field] for field in SOURCE if source.get(field)}
            for name, source in file["artifacts"].items()
        }
        found = {
            name: Said("", _canonical({"source": source}), "") for name, source in sources.items()
        }
        for entry in file["claims"]:
            rule = {field: entry[field] for field in RULE if entry.get(field)}
            rule |= {"artifact": entry["artifact"], "source": sources.get(entry["artifact"])}
            text, scope = (_canonical(entry.get(field)) for field in ("quote", "scope"))
            found[entry["id"]] = Said(text, _canonical(rule), scope)
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise RelengthError(f"This is no file of claims: {error!r}.") from None
    return found


def claims_digest(paper: str) -> str | None:
    """SHA-256 in hex of all that a paper's claims say; None for a paper without any.

    Each record stores it as `provenance.claims`. It covers the paper's claims and not only those of
    the run's own experiment, because a run can belong to several.
    """
    try:
        content = file_of(paper).read_bytes()
    except OSError:
        return None
    return digest_of(said(content))


def digest_of(claims: dict[str, Said]) -> str:
    """SHA-256 in hex of claims, in whatever order they are written."""
    return hashlib.sha256(_canonical(claims).encode()).hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(_spaced(value), sort_keys=True, ensure_ascii=False)


def _spaced(value: Any) -> Any:
    """Put single spaces between the words of all texts: how lines are broken says nothing."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, dict):
        return {str(key): _spaced(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_spaced(one) for one in value]
    return value
