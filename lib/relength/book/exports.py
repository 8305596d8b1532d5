"""Machine-readable descriptions for others, made from the store: CODECHECK and ReScience.

``codecheck.yml`` follows the CODECHECK configuration file, version 1.0 (codecheck.org.uk), the part
that authors fill in: what a check has to recreate. ``metadata.yaml`` follows ReScience C's article
template, likewise up to what editors add. ``relength refresh`` writes both; a test compares them.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
import yaml

from relength.errors import RelengthError
from relength.paths import BOOK, NOTEBOOKS, ROOT
from relength.report.scoreboard import SCALES, ledger
from relength.runs.plan import Run, choose, in_words, least_seeds, missing
from relength.runs.store import Store
from relength.specs import registry
from relength.specs.experiments import Experiment, borrowed, experiments, page_of, shown_by
from relength.specs.published import artifacts
from relength.specs.spec import Scale
from relength.verdicts.claims import counted

NOTE = (
    "# Made by `relength refresh` from the recorded runs: edit lib/relength/book/exports.py "
    "instead.\n"
)


def write(store: Store, folder: Path = ROOT) -> list[Path]:
    """Write both files below a folder; returns where they are."""
    written = []
    for name, text in {
        "codecheck.yml": codecheck(store),
        "metadata.yaml": rescience(store),
    }.items():
        written.append(folder / name)
        written[-1].write_text(text, encoding="utf-8")
    return written


def codecheck(store: Store) -> str:
    """The manifest of a CODECHECK: the notebooks, and what each of them shows.

    Codechecker, report and certificate are left out: they are for whoever checks to add.
    """
    return _yaml(
        {
            "version": "https://codecheck.org.uk/spec/config/1.0/",
            "manifest": [
                {"file": f"notebooks/{path.name}", "comment": _shows(path, store)}
                for path in sorted(NOTEBOOKS.glob("*.ipynb"))
            ],
            "paper": {"title": _cff()["title"], "authors": _authors()},
            "source": "The runs that the notebooks show are recorded in results/, one line of JSON "
            "per training; `relength refresh` recreates the notebooks from them, `relength run` "
            "the runs.",
        }
    )


def _shows(path: Path, store: Store) -> str:
    """Describe a notebook: its subject, the artifacts it rebuilds, the number of its runs."""
    heading, *_ = nbformat.read(path, as_version=4).cells[0].source.splitlines()
    parts, shown = [heading.removeprefix("# ")], shown_by(path.stem)
    if shown is None:
        return _sentences([*parts, "Needs no recorded runs"])
    experiment, named = shown
    titles = artifacts().set_index("artifact")["title"]
    guests = [one for one in experiments().values() if one.page == path.stem]
    every = (*named, *(name for guest in guests for name in guest.artifacts))
    here = [name for name in every if page_of(name, experiment.name) == path.stem]
    if here:
        parts.append("; ".join(f"{name}: {titles[name]}" for name in here))
    counts = []
    for scale in SCALES:
        runs = [
            run
            for run in choose((experiment.name,), scale, least_seeds())
            if path.stem not in borrowed()
            or not named
            or any(experiment.makes(name, run.spec) for name in named)
        ]
        counts.append(_recorded(experiment, runs, scale, store))
    parts.append(f"Runs recorded: {', '.join(counts)}")
    for guest in guests:
        if guest.artifacts:
            runs = choose((guest.name,), guest.usual, least_seeds())
            said = _recorded(guest, runs, guest.usual, store)
            parts.append(f"{said} are those of {', '.join(guest.artifacts)}")
    return _sentences(parts)


def _recorded(experiment: Experiment, runs: list[Run], scale: Scale, store: Store) -> str:
    """Say how many of an experiment's runs at a scale a store has."""
    there = {run.spec.key for run in runs} - {run.spec.key for run in missing(runs, store)}
    return f"{in_words(experiment, (run.spec for run in runs), there)} at scale {scale}"


def _sentences(parts: list[str]) -> str:
    return " ".join(part if part.endswith("?") else f"{part}." for part in parts)


def rescience(store: Store) -> str:
    """Build the metadata of an article in ReScience C; its abstract is counted from the store."""
    from pybtex.database import parse_file  # comes with Jupyter Book

    bibliography = parse_file(str(BOOK / "references.bib")).entries
    cited = [paper.cited for paper in registry.papers().values() if paper.cited]
    if missing := [key for key in cited if key not in bibliography]:
        raise RelengthError(f"book/references.bib has no entry {missing[0]!r}: write it there.")
    cff = _cff()
    return _yaml(
        {
            "title": f"[Re] {cff['title']}",
            "authors": [
                author | {"orcid": None, "email": None, "affiliations": "*"}
                for author in _authors()
            ],
            "keywords": ", ".join([*cff["keywords"], "Python"]),
            "code": [{"url": cff.get("repository-code")}, {"doi": cff.get("doi")}, {"swh": None}],
            "data": [{"url": None}, {"doi": None}],
            "replication": [
                {
                    "cite": _cited(bibliography[key]),
                    "bib": key,
                    "url": bibliography[key].fields.get("url"),
                    "doi": bibliography[key].fields.get("doi"),
                }
                for key in cited
            ],
            "abstract": _abstract(store),
            "bibliography": "book/references.bib",
            "type": "Replication",
            "domain": "Machine learning",
            "language": "Python",
        }
    )


def _cited(entry: Any) -> str:
    """Authors, title, where, year: one line without markup."""
    fields = entry.fields
    authors = " and ".join(str(person) for person in entry.persons["author"])
    where = next((fields[name] for name in ("booktitle", "journal", "note") if name in fields), "")
    parts = [authors, fields["title"], where, fields.get("year", "")]
    return ". ".join(part.replace("{", "").replace("}", "") for part in parts if part) + "."


def _abstract(store: Store) -> str:
    judged = ledger(store)
    prose = judged[judged["prose"]]
    by_runs = prose["page"] == ""
    trained = sum(record["status"] == "ok" for record in store.records())
    papers = "; ".join(registry.papers()[paper].title for paper in judged["paper"].unique())
    return (
        f"We train the models of {len(registry.papers())} papers on length generalisation again, "
        "from scratch and in one library, and compute from the recorded runs which of the papers' "
        f"claims hold, by margins that were fixed before the runs. So far {trained} trainings are "
        "recorded, those of settings mended since among them. Of "
        f"{by_runs.sum()} claims in the texts ({papers}) "
        f"that take training, the verdicts are: {counted(Counter(prose[by_runs]['verdict']))}. Of "
        f"{(~by_runs).sum()} that are calculated, simulated or measured: "
        f"{counted(Counter(prose[~by_runs]['verdict']))}."
    )


def _cff() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def _authors() -> list[dict[str, str]]:
    return [{"name": author["name"]} for author in _cff()["authors"]]


def _yaml(content: dict[str, Any]) -> str:
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
    return f"{NOTE}---\n{body}"
