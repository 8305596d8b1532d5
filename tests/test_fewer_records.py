"""A book of no records, or of very few, is built without a warning and says *not run*."""

import json
import shutil
from pathlib import Path

import handmade
import pytest
from lxml import html

from relength.paths import ROOT
from relength.runs.store import Store
from relength.specs.experiments import experiment


def empty(results: Path) -> None:
    results.mkdir()


def two_smoke_runs(results: Path) -> None:
    found = experiment("mla_table2")
    file = Store(results).file(found.paper, found.name)
    file.parent.mkdir(parents=True)
    records = [handmade.record(spec, lambda *_: 0.5) for spec in found.specs("smoke", [0])[:2]]
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))


@pytest.mark.slow
@pytest.mark.weekly
@pytest.mark.parametrize("fill", [empty, two_smoke_runs])
def test_a_book_of_fewer_records_is_built(fill, tmp_path, python):
    """In a copy, as a build replaces the executed notebooks that other tests read."""
    copy, results = tmp_path / "copy", tmp_path / "results"
    ignore = shutil.ignore_patterns("__pycache__", "executed", "*.egg-info")
    for name in ("lib", "book", "notebooks"):
        shutil.copytree(ROOT / name, copy / name, ignore=ignore)
    for path in filter(Path.is_file, ROOT.glob("*.*")):
        shutil.copy(path, copy)
    fill(results)
    command = ["-m", "relength.cli.main", "render", "--results", str(results), "--out", "built"]
    done = python(*command, cwd=copy, PYTHONPATH=str(copy / "lib"))
    said = "".join(done.communicate())
    assert done.returncode == 0, said
    pages = copy / "built" / "html"
    shown = {
        name: html.fromstring((pages / f"{name}.html").read_bytes()).text_content()
        for name in ("findings_panm", "claims_ledger", "executed/mla_table2")
    }
    assert "Table (not run)" in shown["findings_panm"]
    assert "not run" in shown["claims_ledger"] and "not run" in shown["executed/mla_table2"]
