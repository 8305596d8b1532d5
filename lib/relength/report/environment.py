"""Versions: what this project is tested with, and what the recorded runs were made with."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from typing import Any

from relength.paths import ROOT
from relength.report.markdown import grid, table
from relength.report.scoreboard import Survey
from relength.runs.store import Record
from relength.training.provenance import code_fingerprint

LOCKS = ROOT / "requirements.lock", ROOT / "requirements-language.lock"
PROJECT = ROOT / "pyproject.toml"
EXTRAS = {
    **{"": "trainings and results", "book": "the book", "test": "tests", "cluster": "clusters"},
    "language": "language models",
}


def locked(survey: Survey) -> str:
    """The lock file: what the project asks for itself, then everything that comes with it."""
    versions = lock()
    asked = dependencies()
    direct = table(
        ("package", "version", "asked for", "needed by"),
        ((name, versions[name], bounds, needs) for name, (bounds, needs) in asked.items()),
        name="tab-locked",
        caption=f"The packages that this project names itself; the lock files pin {len(versions)} "
        "in all.",
    )
    rest = [(name, version) for name, version in versions.items() if name not in asked]
    title = f"The other {len(rest)} packages of the lock files"
    return f"{direct}\n````{{dropdown}} {title}\n\n{grid(('package', 'version'), rest)}\n````\n"


def lock() -> dict[str, str]:
    """{package: version} of both lock files, in the order of names."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in LOCKS)
    pins = re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE)
    return dict(sorted((_canonical(name), version) for name, version in pins))


def dependencies() -> dict[str, tuple[str, str]]:
    """{package: (bounds, what needs it)} of ``pyproject.toml``, extras included."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, tuple[str, list[str]]] = {}
    for group, requirements in groups.items():
        for text in requirements:
            name, bounds = re.fullmatch(r"([\w.-]+)\s*(.*)", text).groups()
            found.setdefault(_canonical(name), (bounds, []))[1].append(EXTRAS.get(group, group))
    return {name: (bounds, ", ".join(needs)) for name, (bounds, needs) in found.items()}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def machines(survey: Survey) -> str:
    """Tabulate the machines that made the recorded runs, and their versions."""
    records = survey.store.records()
    if not records:
        return "*Not run*: the store is empty.\n"
    rows = _counted(
        records,
        lambda p: (
            *(p["device"], p["device_name"], p.get("threads", "–"), p.get("python", "–")),
            *(p["torch"], p.get("relength", "–"), p.get("data", {}).get("source", "–")),
        ),
    )
    return table(
        (
            *("kind", "device", "threads", "Python", "PyTorch", "relength", "data", "records"),
            "when",
        ),
        rows,
        name="tab-machines",
        caption="Where the recorded runs were made. *Data* are generated, or come from published "
        "files: downloaded, or in the folder that the variable RELENGTH_DATA names.",
        numbers=("threads", "records"),
    )


def code(survey: Survey) -> str:
    """Tabulate the versions of the code that made the recorded runs."""
    records = survey.store.records()
    if not records:
        return "*Not run*: the store is empty.\n"
    now = code_fingerprint()
    rows = _counted(
        records,
        lambda p: (f"`{p['code']}`", f"`{(p['commit'] or 'unknown')[:8]}`", _clean(p)),
    )
    known = any(record["provenance"]["code"] == now for record in records)
    return table(
        ("training code", "commit", "working tree", "records", "when"),
        rows,
        name="tab-code",
        caption="Which code made the runs. *Training code* is a hash of the files that a trained "
        f"model depends on; today's is {now}, which made "
        + ("some of them." if known else "none of them."),
        numbers=("records",),
    )


def _clean(provenance: dict[str, Any]) -> str:
    dirty = provenance.get("dirty")
    return "–" if dirty is None else ("with uncommitted changes" if dirty else "as committed")


def _counted(records: Iterable[Record], group: Any) -> list[tuple]:
    """A row per group of provenances: how many records, and from when to when."""
    origins = [record["provenance"] for record in records]
    counts = Counter(map(group, origins))
    days: dict[tuple, list[str]] = {}
    for origin in origins:
        days.setdefault(group(origin), []).append(origin["created"][:10])
    return [(*g, n, " to ".join(sorted({min(days[g]), max(days[g])}))) for g, n in counts.items()]


PASSAGES = {"locked": locked, "machines": machines, "code": code}
