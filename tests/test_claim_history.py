"""Claims are dated like margins: a verdict says what of its claim is newer than its runs."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from relength.errors import RelengthError
from relength.specs import claim_files
from relength.verdicts import claim_history, wording
from relength.verdicts.claim_history import Origin, changed
from relength.verdicts.wording import NEW

SOURCE = {"experiment": "mla_table2", "judged_arm": "released", "claim_per_cell": True}
ENTRY = {
    "id": "mla-001",
    "artifact": "mla-table-2",
    "quote": "It solves\n  all tasks.",
    "scope": "The eight tasks.",
    "expect": [{"models": ["Content"], "is": "solved"}],
}
OTHER = ENTRY | {"id": "mla-002"}
CELL = "mla-table-2/Content/copy/15"


def content(*entries: dict, **source) -> str:
    file = {"paper": "mla", "artifacts": {"mla-table-2": SOURCE | source}, "claims": [*entries]}
    return yaml.safe_dump(file)


class Checkout:
    """A repository whose file of claims is committed on days that a test names."""

    def __init__(self, root: Path):
        self.root, self.file = root, root / "book" / "claims" / "mla.yml"
        self.file.parent.mkdir(parents=True)
        self.git("init", "--quiet")

    def git(self, *arguments: str, date: str = "") -> str:
        who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
        path = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.root)}
        command = ["git", "-C", str(self.root), *who, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, env=path | dates)
        return done.stdout.decode().strip()

    def commit(self, text: str, day: int) -> str:
        """Write the file and commit it; the commit's hash."""
        self.file.write_text(text)
        self.git("add", ".")
        at = f"2026-01-{day:02}T12:00:00+00:00"
        self.git("commit", "--quiet", "--message", f"Day {day}", date=at)
        return self.git("rev-parse", "HEAD")


def made(day: int, commit: str | None = None, claims: str | None = None) -> Origin:
    return Origin(f"2026-01-{day:02}T13:00:00Z", commit, claims)


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Checkout:
    found = Checkout(tmp_path)
    monkeypatch.setattr(claim_files, "CLAIMS", found.file.parent)
    for known in (claim_history._versions, claim_history._at):
        known.cache_clear()
    yield found
    for known in (claim_history._versions, claim_history._at):
        known.cache_clear()


# What counts as a change


def said(entry: dict, **source) -> claim_files.Said:
    return claim_files.said(content(entry, **source).encode())["mla-001"]


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"quote": "It solves all tasks."}, []),  # broken elsewhere
        ({"quote": "It solves most tasks."}, ["text"]),
        ({"expect": [{"models": ["Content"], "is": "failed"}]}, ["rule"]),
        ({"metric": "edit_distance"}, ["rule"]),
        ({"judged_arm": "paper"}, ["rule"]),
        ({"checkpoint": "last"}, ["rule"]),
        ({"runs_that": "learned"}, ["rule"]),
        ({"scope": "Seven tasks."}, ["scope"]),
        ({"scope": "Seven tasks.", "quote": "It solves seven."}, ["text", "scope"]),
    ],
)
def test_text_rule_and_scope_are_told_apart(change, fields):
    assert said(ENTRY).differs(said(ENTRY | change)) == fields


def test_the_runs_that_a_claim_is_judged_by_belong_to_its_rule():
    for change in ({"experiment": "mla_extra_tasks"}, {"judged_arm": "paper"}, {"metric": "x"}):
        assert said(ENTRY).differs(said(ENTRY, **change)) == ["rule"]
    beside = {"other_arms": {"paper": ["OneStepAttn"]}}  # decides no verdict of the judged arm
    assert said(ENTRY).differs(said(ENTRY, **beside)) == []


def test_the_digest_follows_what_is_said_and_not_how_it_is_written(checkout):
    def digest(text: str) -> str:
        checkout.file.write_text(text)
        return claim_files.claims_digest("mla")

    first = digest(content(ENTRY, OTHER))
    assert digest("# why\n" + content(OTHER, ENTRY)) == first and len(first) == 64
    assert digest(content(ENTRY | {"scope": "Less."}, OTHER)) != first
    assert claim_files.claims_digest("nobody") is None


@pytest.mark.parametrize("text", ["[]", "claims: 3", "paper: mla"])
def test_what_is_no_file_of_claims_is_refused(text):
    with pytest.raises(RelengthError, match="no file of claims"):
        claim_files.said(text.encode())


# What changed since a run


def test_a_record_with_todays_digest_needs_no_history(checkout):
    checkout.file.write_text(content(ENTRY))
    digest = claim_files.claims_digest("mla")
    shutil.rmtree(checkout.root / ".git")
    assert changed("mla-001", "mla", made(1, claims=digest), checkout.root) == ()
    assert changed("mla-001", "mla", made(1, claims="0" * 64), checkout.root) is None
    assert changed("mla-001", "mla", made(1), checkout.root) is None  # an old record


def test_an_old_record_is_dated_by_its_day(checkout):
    checkout.commit(content(ENTRY), 2)
    checkout.commit(content(ENTRY | {"scope": "Seven tasks."}, OTHER), 4)
    checkout.commit(content(ENTRY | {"scope": "Seven tasks."}, OTHER, judged_arm="paper"), 6)
    root = checkout.root
    first = [changed("mla-001", "mla", made(day), root) for day in (1, 2, 4, 6)]
    assert first == [(NEW,), ("rule", "scope"), ("rule",), ()]
    assert [changed("mla-002", "mla", made(day), root) for day in (3, 4)] == [(NEW,), ("rule",)]
    # A printed number is claimed by its artifact.
    assert [changed(CELL, "mla", made(day), root) for day in (1, 2, 6)] == [(NEW,), ("rule",), ()]


def test_the_commit_that_a_record_names_goes_before_its_day(checkout):
    """A checkout may lag behind: what a run could know is what its commit had."""
    old = checkout.commit(content(ENTRY), 2)
    checkout.commit(content(ENTRY | {"quote": "It solves some."}), 4)
    assert changed("mla-001", "mla", made(5, old), checkout.root) == ("text",)
    unknown = made(5, "0" * 40)
    assert changed("mla-001", "mla", unknown, checkout.root) == ()


def test_a_digest_finds_what_the_claims_said(checkout):
    checkout.commit(content(ENTRY, OTHER), 2)
    digest = claim_files.claims_digest("mla")
    checkout.commit(content(ENTRY, OTHER | {"scope": "Less."}), 4)
    first = made(9, claims=digest)  # made later, by a checkout that was not brought up to date
    assert changed("mla-001", "mla", first, checkout.root) == ()
    assert changed("mla-002", "mla", first, checkout.root) == ("scope",)


def test_a_change_that_is_not_committed_counts(checkout):
    checkout.commit(content(ENTRY), 2)
    checkout.file.write_text(content(ENTRY | {"scope": "Less."}))
    assert changed("mla-001", "mla", made(3), checkout.root) == ("scope",)


def test_a_shallow_checkout_dates_nothing(checkout, tmp_path_factory, monkeypatch):
    checkout.commit(content(ENTRY), 2)
    checkout.commit(content(ENTRY, OTHER), 4)
    clone = tmp_path_factory.mktemp("shallow") / "clone"
    source = checkout.root.as_uri()
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", source, str(clone)], check=True)
    monkeypatch.setattr(claim_files, "CLAIMS", clone / "book" / "claims")
    assert changed("mla-001", "mla", made(3), clone) is None


def test_the_state_of_the_history_changes_with_it(checkout):
    checkout.commit(content(ENTRY), 2)
    before = claim_history.state(checkout.root)
    checkout.commit(content(ENTRY, OTHER), 4)
    assert claim_history.state(checkout.root) != before


def test_words():
    assert wording.dated(()) == ""
    assert wording.dated(None) not in ("", wording.dated((NEW,)))
    every = ("text", "rule", "scope")
    for fields in (("rule",), every):
        assert {field for field in every if field in wording.dated(fields)} == set(fields)
