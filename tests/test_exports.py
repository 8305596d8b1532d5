"""The files that describe the project to other services say what the store says."""

import re

import handmade
import pytest
import yaml
from handmade import amounts, in_a_row

from relength.book import exports, notebook
from relength.book.notebook import Parameters
from relength.paths import BOOK, NOTEBOOKS, RESULTS, ROOT
from relength.report import scoreboard
from relength.runs.store import Store
from relength.specs import registry
from relength.specs.experiments import experiments


@pytest.fixture(scope="module")
def committed(tmp_path_factory) -> dict[str, str]:
    written = exports.write(Store(RESULTS), tmp_path_factory.mktemp("exports"))
    return {path.name: path.read_text(encoding="utf-8") for path in written}


@pytest.mark.parametrize("name", ["codecheck.yml", "metadata.yaml"])
def test_the_committed_file_is_what_the_recorded_runs_give(committed, name):
    shown = (ROOT / name).read_text(encoding="utf-8")
    assert shown == committed[name], "run `relength refresh` and commit what it changes"


def test_a_codecheck_lists_files_that_exist_and_claims_no_check_that_nobody_made(committed):
    text = committed["codecheck.yml"]
    assert "\n---\n" in text, "the format asks for an explicit document"
    content = yaml.safe_load(text)
    assert content["version"].startswith("https://codecheck.org.uk/spec/config/")
    assert content["manifest"] and all((ROOT / e["file"]).is_file() for e in content["manifest"])
    assert content["paper"]["title"] and content["paper"]["authors"][0]["name"]
    assert not content.keys() & {"codechecker", "report", "certificate", "check_time"}


def test_a_codecheck_has_every_notebook_and_says_what_it_is_about(committed):
    manifest = yaml.safe_load(committed["codecheck.yml"])["manifest"]
    comments = {entry["file"]: entry["comment"] for entry in manifest}
    assert set(comments) == {f"notebooks/{path.name}" for path in NOTEBOOKS.glob("*.ipynb")}
    assert all(comment[0].isalpha() and comment.endswith(".") for comment in comments.values())
    text = "\n".join(comments.values())
    for name in (name for found in experiments().values() for name in found.artifacts):
        makers = [e for e in experiments().values() if name in e.artifacts]
        assert text.count(f"{name}: ") == len(makers), name


def test_a_replication_names_the_papers_it_is_of(committed):
    content = yaml.safe_load(committed["metadata.yaml"])
    assert content["title"].startswith("[Re] ") and content["type"] == "Replication"
    assert [paper["bib"] for paper in content["replication"]] == [
        paper.cited for paper in registry.papers().values()
    ]
    assert all(paper["cite"].endswith(".") for paper in content["replication"])
    addresses = [paper["url"] for paper in content["replication"]]
    assert all(address.startswith("https://") for address in addresses)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    assert [paper["url"] for paper in cited] == addresses
    assert "{" not in committed["metadata.yaml"].split("---", 1)[1]


def test_a_reference_that_names_its_number_in_an_archive_has_the_address():
    entries = re.findall(
        r"@\w+\{(\w+),\n(.*?)\n\}", (BOOK / "references.bib").read_text(), re.DOTALL
    )
    named = {key: re.search(r"arXiv:(\d{4}\.\d{5})", body) for key, body in entries}
    assert sum(map(bool, named.values())) >= 7
    for key, body in entries:
        assert not named[key] or f"{{https://arxiv.org/abs/{named[key][1]}}}" in body, key


def test_the_counts_follow_the_store(tmp_path):
    content = yaml.safe_load(exports.codecheck(Store(tmp_path)))
    comments = {entry["file"]: entry["comment"] for entry in content["manifest"]}
    assert amounts(comments["notebooks/mla_table2.ipynb"])[-2:] == [0, 320]
    assert re.search(r"\b0 trainings", exports.rescience(Store(tmp_path)))


@pytest.mark.parametrize(
    "name",
    [
        "mla_ablations",
        *(pytest.param(n, marks=pytest.mark.weekly) for n in ("mla_variants", "mla_extra_tasks")),
    ],
)
def test_scoreboard_notebook_and_codecheck_count_the_same_runs(name, tmp_path, capsys):
    """A seed of Table 2 is recorded: pages that share it say so, and none counts it as its own."""
    experiment, store = experiments()[name], Store(tmp_path)
    for number, spec in enumerate(experiments()["mla_table2"].grid("reduced", 0)):
        record = handmade.record(spec, lambda *_: 0.5)
        store.append("mla", record | {"run_id": f"{number:016x}"})
    notebook.runs(name, Parameters(results=str(tmp_path)))
    printed = " ".join(capsys.readouterr().out.split())  # it breaks lines
    grid = experiment.specs("reduced", range(5))
    own = [spec for spec in grid if experiment.keeper(spec) == experiment]
    shared = len(grid) - len(own)
    counted = [0, len(own), shared // 5, shared]  # its own runs, and those of Table 2
    assert amounts(printed)[:4] == counted and "mla_table2" in printed
    manifest = yaml.safe_load(exports.codecheck(store))["manifest"]
    (comment,) = (e["comment"] for e in manifest if e["file"] == f"notebooks/{name}.ipynb")
    assert in_a_row(counted, comment)
    board = scoreboard.survey(store).board
    (row,) = board[board["artifact"] == experiment.artifacts[0]].itertuples()
    makes = [spec for spec in grid if experiment.makes(row.artifact, spec)]
    assert (row.state == "planned") == all(experiment.keeper(s) == experiment for s in makes)


def test_numbers_of_a_sentence_are_read_with_their_signs():
    assert amounts("3,000 steps; −1.5 at 16k, +2 of 3, 2.3k.") == [3000, -1.5, 2, 3]
