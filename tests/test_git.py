"""git is asked about the project's own checkout: not another's, and not where there is none."""

import shutil
import subprocess
from pathlib import Path

import pytest

from relength import git
from relength.errors import RelengthError
from relength.paths import ROOT
from relength.runs import contributions
from relength.runs.run import run_or_load
from relength.runs.store import Store
from relength.training import provenance

NOBODY = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")


def repository(folder: Path) -> Path:
    """A repository with one commit, which has a file below lib/."""
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "a.py").write_text("")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "a"]):
        subprocess.run(["git", "-C", folder, *NOBODY, *words], check=True)
    return folder


def head(folder: Path) -> str:
    command = ["git", "-C", folder, "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def recorded(monkeypatch):
    """Commit and dirty of a record that is made in a checkout now."""

    def of(root: Path) -> tuple[str | None, bool | None]:
        monkeypatch.setattr(provenance, "ROOT", root)
        provenance.commit.cache_clear()
        found = provenance.commit()
        return found["commit"], found["dirty"]

    yield of
    provenance.commit.cache_clear()


@pytest.fixture
def of_another(tmp_path, monkeypatch) -> Path:
    """A repository that git takes for another user's, and that nobody has allowed."""
    root, wrapper = repository(tmp_path / "another"), tmp_path / "bin" / "git"
    variables = "GIT_TEST_ASSUME_DIFFERENT_OWNER=1 GIT_CONFIG_GLOBAL=/dev/null"
    wrapper.parent.mkdir()
    wrapper.write_text(
        f'#!/bin/sh\n{variables} GIT_CONFIG_NOSYSTEM=1 exec {shutil.which("git")} "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", str(wrapper.parent))
    return root


def test_a_record_names_the_commit_of_its_checkout_and_whether_the_code_differs(tmp_path, recorded):
    root = repository(tmp_path)
    assert recorded(root) == (head(root), False)
    (root / "notes.txt").write_text("not code")
    assert recorded(root) == (head(root), False)
    (root / "lib" / "a.py").write_text("1")
    assert recorded(root) == (head(root), True)
    assert git.trouble(root) is None


def test_a_copy_inside_another_repository_has_no_commit(tmp_path, recorded):
    copy = repository(tmp_path) / "copy"
    (copy / "lib").mkdir(parents=True)
    assert recorded(copy) == (None, None)
    assert git.output(copy, "rev-parse", "HEAD") is None and "no git checkout" in git.trouble(copy)
    (copy / ".git").mkdir()  # what is no repository is passed over on the way up
    assert recorded(copy) == (None, None)


def test_a_repository_that_a_hook_names_is_not_asked(tmp_path, recorded, monkeypatch):
    own, other = repository(tmp_path / "own"), repository(tmp_path / "other")
    (other / "lib" / "a.py").write_text("1")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert recorded(own)[1] is False
    assert git.output(own, "rev-parse", "--show-toplevel").decode().strip() == str(own)


def test_a_linked_worktree_is_a_checkout_of_its_own(tmp_path, recorded):
    root = repository(tmp_path / "main")
    command = ["git", "-C", root, "worktree", "add", "--quiet", tmp_path / "linked"]
    subprocess.run(command, check=True, capture_output=True)
    assert recorded(tmp_path / "linked") == (head(root), False)


def test_without_git_there_is_no_commit_and_no_traceback(tmp_path, recorded, monkeypatch):
    root = repository(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert recorded(root) == (None, None)
    assert "git is not installed" in git.trouble(root)
    with pytest.raises(RelengthError, match="added since main, and git is not installed"):
        contributions.added(Store(root / "results"), "main", root)


def test_what_was_added_cannot_be_told_without_a_repository(tmp_path):
    with pytest.raises(RelengthError, match="no git checkout"):
        contributions.added(Store(tmp_path / "results"), "main", tmp_path)


def test_a_repository_without_a_commit_is_told_from_none(tmp_path):
    subprocess.run(["git", "-C", tmp_path, "init", "--quiet"], check=True)
    assert "has no commit" in git.trouble(tmp_path)


def test_a_checkout_of_another_user_is_told_before_training(
    of_another, recorded, tiny, table_2, store
):
    assert recorded(of_another) == (None, None)
    with pytest.warns(UserWarning, match=f"config --global --add safe.directory {of_another}"):
        run_or_load([tiny(epochs=1)], store, table_2, train=True, workers=1)
    [record] = store.records()
    assert record["status"] == "ok" and record["provenance"]["commit"] is None


def test_a_clone_that_converts_line_ends_has_the_bytes_of_the_repository(tmp_path):
    source = repository(tmp_path / "source")
    shutil.copy(ROOT / ".gitattributes", source)
    files = {"run": b"#!/bin/sh\nexit\n", "a.runs.jsonl": b'{"a": 1}\n{}\n', "a.woff2": b"\0\r\n\n"}
    for name, content in files.items():
        (source / name).write_bytes(content)
    for words in (["add", "."], ["commit", "--quiet", "--message", "b"]):
        subprocess.run(["git", "-C", source, *NOBODY, *words], check=True)
    clone = ["git", "-c", "core.autocrlf=true", "clone", "--quiet", source, tmp_path / "clone"]
    subprocess.run(clone, check=True)
    assert {name: (tmp_path / "clone" / name).read_bytes() for name in files} == files
