"""Records in a pull request: only added, and from the code that they name."""

import json
import subprocess
from pathlib import Path

import handmade
import pytest
from typer.testing import CliRunner

from relength import contributions
from relength.cli import app
from relength.errors import RelengthError
from relength.margins import margins_hash
from relength.papers import experiment
from relength.paths import ROOT
from relength.provenance import TRAINING_CODE, code_fingerprint
from relength.store import Store

EXPERIMENT = experiment("mla_table2")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", folder, "-c", "user.name=A", "-c", "user.email=a@b", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


HEAD = git(ROOT, "rev-parse", "HEAD")
USED = [*(f"lib/relength/{name}" for name in TRAINING_CODE), "book/claims"]
COMMITTED = bool(HEAD) and not git(ROOT, "status", "--porcelain", "--", *USED)
in_a_checkout = pytest.mark.skipif(
    not COMMITTED, reason="there is no checkout here, or its code differs from its commit"
)


def made(seed: int, **provenance) -> dict:
    """A record as a contributor makes it, from the commit at hand."""
    spec = next(s for s in EXPERIMENT.specs("reduced", range(seed + 1)) if s.seed == seed)
    record = handmade.record(spec, lambda *_: 0.5)
    own = {"commit": HEAD, "dirty": False, "code": code_fingerprint(), "margins": margins_hash()}
    record["provenance"] |= own | provenance
    return record


@pytest.fixture
def branch(tmp_path) -> Path:
    """A repository whose base has one record; its working tree has one more."""
    file = tmp_path / "results" / "mla" / "mla_table2.runs.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(made(0)) + "\n")
    git(tmp_path, "init", "--initial-branch", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "Records")
    with file.open("a") as lines:
        lines.write(json.dumps(made(1)) + "\n")
    return file


def root_of(file: Path) -> Path:
    return file.parents[2]


def added(file: Path, base: str = "main") -> list[int]:
    root = root_of(file)
    return [r["spec"]["seed"] for r in contributions.added(Store(root / "results"), base, root)]


def test_what_is_added_are_the_lines_that_the_base_has_not(branch):
    assert added(branch) == [1]
    git(root_of(branch), "commit", "--all", "--message", "More")
    assert added(branch) == [] and added(branch, "HEAD~1") == [1]


@pytest.mark.parametrize("change", ["edit", "remove", "reorder"])
def test_a_line_of_the_base_that_is_not_there_any_more_is_refused(branch, change):
    first, second = branch.read_text().splitlines()
    branch.write_text(
        {
            "edit": f"{first.replace('0.5', '0.6', 1)}\n{second}\n",
            "remove": f"{second}\n",
            "reorder": f"{second}\n{first}\n",
        }[change]
    )
    with pytest.raises(RelengthError, match="lost or changed lines that main has: records are"):
        added(branch)


def test_a_file_that_is_gone_is_lost_lines_and_a_new_one_is_added(branch):
    record = made(2)
    other = branch.with_name("mla_scan.runs.jsonl")
    other.write_text(json.dumps(record) + "\n")
    assert sorted(added(branch)) == [1, 2]
    branch.unlink()
    with pytest.raises(RelengthError, match=r"mla_table2\.runs\.jsonl has lost"):
        added(branch)


def test_a_base_that_is_none_is_named(branch):
    with pytest.raises(RelengthError, match=r"^nowhere is no commit of the repository"):
        added(branch, "nowhere")


@in_a_checkout
def test_the_code_of_a_commit_has_the_fingerprint_that_runs_of_it_record():
    assert contributions.code_of(HEAD) == code_fingerprint()


@in_a_checkout
def test_an_honest_record_has_no_faults():
    assert contributions.faults(made(0)) == []
    contributions.check([made(0), made(1)])


@in_a_checkout
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"dirty": True}, "was made with code that differed from its commit"),
        ({"dirty": None}, "was made with code that differed from its commit"),
        ({"commit": "0" * 40}, "which this repository does not have"),
        ({"commit": None}, "which this repository does not have"),
        ({"code": "0" * 12}, "has code 000000000000, and its commit has"),
        ({"margins": "0" * 64}, "has other margins than its commit"),
    ],
)
def test_a_record_of_other_code_or_margins_is_refused(change, fault):
    with pytest.raises(RelengthError, match=r"^These records cannot be taken over: run ") as raised:
        contributions.check([made(0, **change)])
    assert fault in str(raised.value)


@in_a_checkout
def test_a_record_of_another_spec_or_with_impossible_numbers_is_refused():
    other = made(0)
    other["key"] = "0" * 12
    assert contributions.faults(other) == ["is no run of its experiment as the code stands"]
    better = made(0)
    better["checkpoints"]["selected"]["tests"]["iid"]["exact_match"] = 1.5
    assert contributions.faults(better) == ["has numbers that no run can have"]
    lost = made(0)
    lost["first_losses"][0] = float("nan")
    assert contributions.faults(lost) == ["has numbers that no run can have"]


@in_a_checkout
def test_the_command_has_nothing_to_do_where_nothing_was_added():
    done = CliRunner().invoke(app, ["verify", "--since", "HEAD"])
    assert done.exit_code == 0 and "0 records were added since HEAD." in done.output
