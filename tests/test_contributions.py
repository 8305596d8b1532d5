"""Records in a pull request: only added, and of the code that they name."""

import json
import shutil
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import handmade
import pytest
from typer.testing import CliRunner

from relength.cli import main as cli
from relength.errors import RelengthError
from relength.paths import RESULTS, ROOT
from relength.runs import contributions
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.specs.margins import margins_hash
from relength.training.provenance import code_fingerprint

EXPERIMENT = experiment("mla_table2")
NOW = "2099-01-01T00:00:00Z"  # after any commit


class Repository(NamedTuple):
    """A small repository of ours: the code, the margins, one record; and a branch off it."""

    root: Path

    @property
    def store(self) -> Store:
        return Store(self.root / "results")

    @property
    def file(self) -> Path:
        return self.root / "results" / "mla" / "mla_table2.runs.jsonl"

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", "-C", self.root, *who, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--message", message)
        return self.git("rev-parse", "HEAD")

    def record(self, seed: int = 0, number: int = 0, **provenance) -> dict:
        """A record as a contributor makes it from the commit at hand."""
        spec = EXPERIMENT.specs("reduced", [seed])[0]
        record = handmade.record(spec, lambda *_: 0.5) | {"run_id": f"{16 * seed + number:016x}"}
        own = {"commit": self.git("rev-parse", "HEAD"), "dirty": False, "created": NOW}
        own |= {"code": code_fingerprint(), "margins": margins_hash()}
        record["provenance"] |= own | provenance
        return record

    def add(self, *records: dict, file: Path | None = None) -> None:
        file = file or self.file
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as lines:
            lines.writelines(json.dumps(record) + "\n" for record in records)

    def added(self, base: str = "main") -> list[int]:
        found = contributions.added(self.store, base, self.root)
        return [record["spec"]["seed"] for record in found]

    def faults(self, record: dict, **also) -> list[str]:
        return contributions.faults(record, "main", self.root, **also)


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> Path:
    repository = Repository(tmp_path_factory.mktemp("repository"))
    for name in ("lib/relength", "book/claims"):
        leave = shutil.ignore_patterns("__pycache__", "published")
        shutil.copytree(ROOT / name, repository.root / name, ignore=leave)
    repository.git("init", "--initial-branch", "main")
    repository.commit("Code")
    repository.add(repository.record(0))
    repository.commit("A record")
    return repository.root


@pytest.fixture
def branch(ours, tmp_path) -> Repository:
    shutil.copytree(ours, tmp_path / "ours")
    repository = Repository(tmp_path / "ours")
    repository.git("switch", "--create", "records")
    return repository


# Only added


def test_what_is_added_are_the_lines_that_the_base_has_not(branch):
    branch.add(branch.record(1))
    assert branch.added() == [1]
    branch.commit("More")
    assert branch.added() == [1] and branch.added("HEAD") == []


def test_what_the_base_got_since_then_is_not_missed(branch):
    """A branch of last week, and the merge of it that a pull request checks out."""
    branch.add(branch.record(1))
    branch.commit("More")
    branch.git("switch", "main")
    other = branch.root / "results" / "mla" / "mla_scan.runs.jsonl"
    scan = experiment("mla_scan").specs("reduced", [0])[0]
    branch.add(handmade.record(scan, lambda *_: 0.5, experiment="mla_scan"), file=other)
    branch.commit("Others")
    branch.git("switch", "records")
    assert branch.added("main") == [1]
    branch.git("switch", "main")
    branch.git("merge", "--no-ff", "--no-edit", "records")
    assert branch.added("HEAD^1") == [1]


@pytest.mark.parametrize("change", ["edit", "remove", "reorder", "delete"])
def test_a_line_of_the_base_that_is_not_there_any_more_is_refused(branch, change):
    branch.add(branch.record(1))
    first, second = branch.file.read_text().splitlines()
    new = {
        "edit": f"{first.replace('0.5', '0.6', 1)}\n{second}\n",
        "remove": f"{second}\n",
        "reorder": f"{second}\n{first}\n",
    }
    branch.file.unlink() if change == "delete" else branch.file.write_text(new[change])
    with pytest.raises(RelengthError, match="lost or changed lines that main has: records are"):
        branch.added()


@pytest.mark.parametrize("place", ["aaa/mla_table2", "mla/mla_scan", "mla/unheard_of"])
def test_a_record_in_another_file_than_its_own_is_refused(branch, place):
    branch.add(branch.record(1), file=branch.root / "results" / f"{place}.runs.jsonl")
    with pytest.raises(RelengthError, match="let `relength merge` put records into their files"):
        branch.added()


def test_a_run_that_is_recorded_twice_is_refused(branch):
    branch.add(branch.record(0))
    with pytest.raises(RelengthError, match="is recorded twice"):
        branch.added()


def test_a_base_that_is_none_is_named(branch):
    with pytest.raises(RelengthError, match=r"^nowhere is no commit that the branch in "):
        branch.added("nowhere")


# Of the code that they name


def test_the_code_of_a_commit_has_the_fingerprint_that_runs_of_it_record(branch):
    head = branch.git("rev-parse", "HEAD")
    assert contributions.code_of(head, branch.root) == code_fingerprint()


def test_honest_records_have_no_faults(branch):
    """A new run, a second execution, and one made after the branch had a commit of its own."""
    branch.add(branch.record(1), branch.record(0, number=1))
    branch.commit("Records")
    branch.add(branch.record(2))
    new = contributions.added(branch.store, "main", branch.root)
    assert len(new) == 3
    contributions.check(branch.store, new, "main", branch.root)


def test_a_fork_that_changed_the_training_code_is_found_out(branch):
    (branch.root / "lib" / "relength" / "losses.py").write_text("# better than theirs\n")
    branch.commit("Better")
    changed = contributions.code_of(branch.git("rev-parse", "HEAD"), branch.root)
    assert changed != code_fingerprint()
    (fault,) = branch.faults(branch.record(1, code=changed))
    assert fault == f"has code {changed}, where ours was {code_fingerprint()}"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"dirty": True}, "was made with code that differed from its commit"),
        ({"dirty": None}, "was made with code that differed from its commit"),
        ({"commit": "0" * 40}, "which this repository does not have"),
        ({"commit": "HEAD"}, "names commit HEAD, which this repository does not have"),
        ({"commit": None}, "which this repository does not have"),
        ({"code": "0" * 12}, "has code 000000000000, where ours was"),
        ({"margins": "0" * 64}, "has other margins than ours were"),
        ({"claims": "0" * 64}, "has other claims than ours were"),
        ({"created": "2001-01-01T00:00:00Z"}, "began before its commit, on 2000-12-31T23:57:52Z"),
    ],
)
def test_a_record_of_other_code_margins_or_times_is_refused(branch, change, fault):
    with pytest.raises(RelengthError, match=r"^These records cannot be taken over: run ") as raised:
        contributions.check(branch.store, [branch.record(1, **change)], "main", branch.root)
    assert fault in str(raised.value)


def test_an_execution_cannot_come_before_the_one_that_it_repeats(branch):
    """Tables use the earliest: a later one with an early date would replace what was published."""
    early = branch.record(0, number=1, created="2098-01-01T00:00:00Z")
    with pytest.raises(RelengthError, match="before the record that it repeats, on 2098"):
        contributions.check(branch.store, [early], "main", branch.root)


def test_a_record_of_another_spec_is_refused(branch):
    assert branch.faults(branch.record(1) | {"key": "0" * 12}) == [
        "is no run of its experiment as the code stands"
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["checkpoints"]["selected"]["tests"]["iid"].update(exact_match=1.5),
        lambda r: r["checkpoints"]["last"]["tests"]["100"].update(correct_prefix=-0.1),
        lambda r: r["checkpoints"]["selected"]["tests"]["30"].update(edit_distance=float("inf")),
        lambda r: r["first_losses"].__setitem__(0, float("nan")),
        lambda r: r["cost"].update(training_seconds=float("nan")),
    ],
)
def test_a_record_with_impossible_numbers_is_refused(branch, change):
    record = branch.record(1)
    change(record)
    assert branch.faults(record) == ["has numbers that no run can have"]


@pytest.mark.parametrize("lost", ["first_losses", "provenance", "cost"])
def test_a_record_that_lacks_something_is_refused(branch, lost):
    record = branch.record(1)
    del record[lost]
    assert branch.faults(record) == [f"is not a whole record (KeyError: '{lost}')"]


def test_a_run_on_generated_data_is_refused_and_told_why(branch):
    data = {"source": "generated", "reason": "there is no network", "sha256": {}}
    with pytest.raises(RelengthError, match="was trained on generated data, where tables are made"):
        contributions.check(branch.store, [branch.record(1, data=data)], "main", branch.root)


def test_a_failed_run_can_be_taken_over(branch):
    record = handmade.failed(EXPERIMENT.specs("reduced", [1])[0])
    record["provenance"] = branch.record(1)["provenance"]
    assert branch.faults(record) == []


# Merged


def test_a_run_began_as_long_before_its_end_as_it_took(branch):
    record = branch.record(1, created="2026-03-01T00:01:00Z")
    assert contributions.began(record) == "2026-02-28T23:58:52Z"  # 120 s of training, 8 of tests
    failed = {name: record[name] for name in record if name != "cost"}
    assert contributions.began(failed) == "2026-03-01T00:01:00Z"


def test_records_of_commits_on_a_branch_are_merged_and_so_are_those_without_a_commit(branch):
    """Commits of this branch and of another count. A commit is older than a run right after it."""
    elsewhere = branch.record(1)
    branch.git("switch", "main")
    date = contributions.history(branch.root)[branch.git("rev-parse", "HEAD")]
    seconds = sum(v for k, v in elsewhere["cost"].items() if k.endswith("seconds"))
    at_once = datetime.fromisoformat(date) + timedelta(seconds=seconds)
    right_after = branch.record(2, created=at_once.isoformat())
    records = [elsewhere, right_after, branch.record(3, commit=None)]
    contributions.refuse_strangers(records, branch.root)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"commit": "0" * 40}, "names commit 0000000000000000000000000000000000000000, which no"),
        ({"created": "2001-01-01T00:00:00Z"}, "began on 2000-12-31T23:57:52Z, before its commit"),
    ],
)
def test_a_record_that_cannot_be_of_its_commit_is_not_merged(branch, change, why):
    good, bad = branch.record(1), branch.record(2, **change)
    with pytest.raises(RelengthError, match=f"^Nothing is merged: run {bad['run_id']} {why}"):
        contributions.refuse_strangers([good, bad], branch.root)
    with pytest.raises(RelengthError, match="and 1 more are like it; fetch"):
        contributions.refuse_strangers([bad, good, bad], branch.root)


def test_a_commit_that_was_made_anew_is_in_no_branch_any_more(branch):
    """Records name a commit that got another message before it was published."""
    branch.git("commit", "--allow-empty", "--message", "One thing")
    record = branch.record(1)
    contributions.refuse_strangers([record], branch.root)
    branch.git("commit", "--amend", "--allow-empty", "--message", "Another")
    with pytest.raises(RelengthError, match="which no branch here has"):
        contributions.refuse_strangers([record], branch.root)


def test_where_git_knows_no_history_nothing_is_refused(branch, tmp_path):
    (tmp_path / "copy").mkdir()
    contributions.refuse_strangers([branch.record(1, commit="0" * 40)], tmp_path / "copy")
    shallow = tmp_path / "shallow"
    command = ["git", "clone", "--quiet", "--depth", "1", branch.root.as_uri(), str(shallow)]
    subprocess.run(command, check=True)
    contributions.refuse_strangers([branch.record(1, commit="0" * 40)], shallow)


def test_every_record_of_ours_is_of_a_commit_of_this_history_or_a_note_says_why_not():
    known = contributions.history()
    if known is None:
        pytest.skip("only a checkout has a history")
    store = Store(RESULTS)
    strangers = [r for r in store.records() if contributions.astray(r, known)]
    assert [r["run_id"] for r in strangers if not store.note_of(r)] == []
    noted = {r["run_id"] for r in store.records() if store.note_of(r)}
    assert noted == {r["run_id"] for r in strangers}


# The command


def verify(repository: Repository, monkeypatch, *words: str):
    monkeypatch.setattr(contributions.added, "__defaults__", (repository.root,))
    monkeypatch.setattr(contributions.check, "__defaults__", (repository.root,))
    results = str(repository.root / "results")
    return CliRunner().invoke(cli.app, ["verify", "--since", "main", "--results", results, *words])


def test_the_command_has_nothing_to_do_where_nothing_was_added(branch, monkeypatch):
    done = verify(branch, monkeypatch)
    assert done.exit_code == 0 and "0 records were added since main." in done.output


def test_the_command_replays_what_was_added_and_nothing_else(branch, monkeypatch):
    """Its losses are made up, so the replay tells; a failed run has none to replay."""
    failed = handmade.failed(EXPERIMENT.specs("reduced", [2])[0])
    branch.add(failed | {"provenance": branch.record(2)["provenance"]})
    done = verify(branch, monkeypatch)
    assert done.exit_code == 0 and "1 records were added" in done.output
    branch.add(branch.record(0, number=1))
    done = verify(branch, monkeypatch)
    assert "1/1" in done.output and "stale" in done.output
    assert isinstance(done.exception, RelengthError)


def test_the_command_makes_one_check_at_a_time(branch, monkeypatch):
    done = verify(branch, monkeypatch, "--full", "1")
    assert "--since and --full are two checks" in str(done.exception)
