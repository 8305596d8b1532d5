"""Workflows, launch links, other editions and citation make the book public."""

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner
from pypdf import PdfReader

from relength.book import build as bookbuild
from relength.book import editions
from relength.errors import RelengthError
from relength.paths import BOOK, NOTEBOOKS, ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def run(*command, **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def tool(name: str) -> Path:
    """A program that is installed beside this Python."""
    return Path(sys.executable).with_name(name)


# --- GitHub -------------------------------------------------------------------------------------


def test_zizmor_finds_nothing_unsafe_in_the_workflows():
    done = run(tool("zizmor"), "--offline", "--persona=pedantic", GITHUB)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("citation-file-format", [ROOT / "CITATION.cff"]),
        ("github-workflows", WORKFLOWS),
        ("dependabot", [GITHUB / "dependabot.yml"]),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
        (
            "github-issue-forms",
            [p for p in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if p.name != "config.yml"],
        ),
    ],
)
def test_files_that_github_reads_follow_their_schema(schema, files):
    assert files
    command = ["--builtin-schema", f"vendor.{schema}", *map(str, files)]
    done = CliRunner().invoke(check_jsonschema, command)
    assert done.exit_code == 0, done.output


@every_workflow
def test_actions_are_named_by_commit_and_the_history_is_fetched_whole(path):
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    for step in (step for job in jobs for step in job["steps"] if "uses" in step):
        action, _, version = step["uses"].partition("@")
        assert re.fullmatch("[0-9a-f]{40}", version), step
        assert re.search(rf"{action}@{version} # v\d+\.\d+\.\d+$", path.read_text(), re.MULTILINE)
        if action == "actions/checkout":
            assert step["with"] == {"fetch-depth": 0, "persist-credentials": False}


@every_workflow
def test_a_workflow_may_do_nothing_and_a_job_only_what_it_says(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        assert job["permissions"], name
        writes = {scope for scope, what in job["permissions"].items() if what == "write"}
        may = {"deploy": {"pages", "id-token"}, "editions": {"contents"}}
        assert writes == may.get(name, set()), name
        assert job["timeout-minutes"] <= 90


def test_one_action_has_one_version_in_all_workflows():
    named = {use for p in WORKFLOWS for use in re.findall(r"uses: (\S+)", p.read_text())}
    assert len({use.partition("@")[0] for use in named}) == len(named)


def test_what_workflows_call_exists():
    text = "".join(path.read_text() for path in WORKFLOWS)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = set(re.findall(r"run: make ([\w-]+)", text))
    assert {"env", "pdf", "editions", "test-all"} <= called <= targets
    assert "run: .ci/run\n" in text
    for program in re.findall(r"\.venv/bin/([\w-]+)", text):
        assert tool(program).exists()


def test_a_notebook_that_fails_keeps_no_other_from_being_executed(tmp_path):
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "weekly.yml").read_text())
    steps = workflow["jobs"]["notebooks"]["steps"]
    (script,) = (step["run"] for step in steps if "papermill" in step.get("run", ""))
    papermill = tmp_path / ".venv" / "bin" / "papermill"
    papermill.parent.mkdir(parents=True)
    papermill.write_text('#!/bin/sh\necho "$1" >> executed\ntest ! -s "$1"\n')
    papermill.chmod(0o755)
    (tmp_path / "notebooks").mkdir()
    names = [f"notebooks/{name}.ipynb" for name in "abcd"]

    def execute(*failing: str) -> subprocess.CompletedProcess:
        (tmp_path / "executed").unlink(missing_ok=True)
        for name in names:
            (tmp_path / name).write_text("fails" if name in failing else "")
        return run("bash", "-e", "-c", script, cwd=tmp_path)

    for failing in ((), names[:1], names[1:3]):
        done = execute(*failing)
        assert (tmp_path / "executed").read_text().split() == names
        assert done.returncode == bool(failing), done.stderr
        assert done.stdout == (f"::error::failed: {' '.join(failing)}\n" if failing else "")


def test_forms_and_checklists_speak_of_commands_that_exist():
    from typer.main import get_command

    from relength.cli.main import app

    commands = set(get_command(app).commands)
    for path in GITHUB.rglob("*"):
        if path.suffix in (".md", ".yml"):
            assert set(re.findall(r"(?:`|: )relength ([a-z]+)", path.read_text())) <= commands, path


# --- launch links -------------------------------------------------------------------------------


def extension():
    spec = importlib.util.spec_from_file_location("launch_links", BOOK / "_ext" / "launch_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git(folder, *arguments) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main")
    done = run("git", "-C", folder, *who, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def published(tmp_path) -> Path:
    """A checkout whose commit is on GitHub, as far as git can tell."""
    folder = tmp_path / "checkout"
    (folder / "book").mkdir(parents=True)
    (folder / "book" / "guide_colab.md").write_text((BOOK / "guide_colab.md").read_text())
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    git(folder, "remote", "add", "origin", "https://github.com/someone/a-book.git")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    return folder


def page(module, root, name="executed/mla_table2", suffix=".ipynb") -> list[str]:
    """Sources of a page's cells after the extension has read it."""

    class App:
        confdir = root / "book"

        class env:
            doc2path = staticmethod(lambda name: f"{name}{suffix}")

    title = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Title"}
    text = [json.dumps({"cells": [title], "metadata": {}})]
    module._on_source_read(App, name, text)
    return [cell["source"] for cell in json.loads(text[0])["cells"]]


def test_links_open_the_notebook_at_the_built_commit_and_not_its_executed_copy(published):
    commit = git(published, "rev-parse", "HEAD")
    _, links = page(extension(), published)
    place = f"someone/a-book/blob/{commit}/notebooks/mla_table2.ipynb"
    assert f"(https://colab.research.google.com/github/{place})" in links
    assert f"(https://github.com/{place})" in links
    assert (
        f"(https://mybinder.org/v2/gh/someone/a-book/{commit}"
        "?urlpath=lab%2Ftree%2Fnotebooks%2Fmla_table2.ipynb)" in links
    )
    assert f"checkout --quiet {commit}" in links and "someone/a-book relength-book" in links
    assert "executed/" not in links and "<script" not in links and "<img" not in links
    assert not re.search("OWNER|REPOSITORY|COMMIT", links)


@pytest.mark.parametrize(
    ("address", "repository"),
    [
        ("https://github.com/some-one/a.book", "some-one/a.book"),
        ("https://token@github.com/someone/book.git", "someone/book"),
        ("git@github.com:someone/book.git", "someone/book"),
        ("ssh://git@github.com/someone/book", "someone/book"),
        ("https://example.org/someone/book.git", None),
        ("https://github.com.example.org/someone/book", None),
        ("/srv/git/book.git", None),
    ],
)
def test_the_remote_says_where_the_repository_is(published, address, repository):
    git(published, "remote", "set-url", "origin", address)
    found = extension().published(published)
    assert (found and found[0]) == repository


def test_nothing_is_linked_that_nobody_could_open(published):
    git(published, "commit", "--quiet", "--allow-empty", "--message", "not pushed")
    assert page(extension(), published) == ["# Title"]
    git(published, "remote", "remove", "origin")
    assert page(extension(), published) == ["# Title"]


def test_without_git_or_a_repository_of_its_own_a_page_has_no_links(published, monkeypatch):
    copy = published / "copy"
    shutil.copytree(published / "book", copy / "book")
    assert page(extension(), copy) == ["# Title"]
    monkeypatch.setenv("PATH", str(published))
    assert page(extension(), published) == ["# Title"]


def test_only_notebooks_have_links(published):
    assert page(extension(), published, "guide_colab", ".md") == ["# Title"]


@pytest.mark.slow
@pytest.mark.weekly
def test_the_cell_for_colab_makes_the_package_importable(tmp_path, monkeypatch):
    """With a clone from the disk, and an installation that is only rehearsed."""
    if run("git", "-C", ROOT, "rev-parse", "HEAD").returncode:
        pytest.skip("not a git checkout")
    cell = extension().install_cell(ROOT, "someone/book", git(ROOT, "rev-parse", "HEAD"))
    cell = cell.replace("https://github.com/someone/book", ROOT.as_uri())
    (tmp_path / "colab.ipy").write_text(f"{cell}\nimport relength\nprint(relength.__file__)\n")
    rehearsal = {"PIP_DRY_RUN": "1", "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}
    for name, value in {**rehearsal, "PIP_NO_BUILD_ISOLATION": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    done = run(sys.executable, "-m", "IPython", "colab.ipy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    package = Path(done.stdout.splitlines()[-1])
    assert package == tmp_path / "relength-book" / "lib" / "relength" / "__init__.py"


def test_binder_installs_the_locked_versions():
    binder = ROOT / "binder"
    lines = (binder / "requirements.txt").read_text().splitlines()
    (included,) = [line for line in lines if not line.startswith("#")]
    assert (binder / included.removeprefix("-r ")).resolve() == ROOT / "requirements.lock"
    assert (binder / "runtime.txt").read_text() == "python-3.11\n"
    assert (binder / "postBuild").stat().st_mode & 0o111


# --- editions -----------------------------------------------------------------------------------


def checked(path: Path) -> None:
    digest, name = path.with_name(f"{path.name}.sha256").read_text().split()
    assert (digest, name) == (hashlib.sha256(path.read_bytes()).hexdigest(), path.name)


def test_an_archive_holds_every_page_and_equal_pages_give_an_equal_archive(tmp_path):
    html = tmp_path / "html"
    (html / "_static").mkdir(parents=True)
    pages = {"index.html": b"<p>one</p>", "_static/book.css": b"p {}"}
    for name, content in pages.items():
        (html / name).write_bytes(content)
    first = editions.archive(html, tmp_path / "first")
    checked(first)
    with zipfile.ZipFile(first) as packed:
        assert packed.testzip() is None
        assert {n.partition("/")[2]: packed.read(n) for n in packed.namelist()} == pages
        assert {n.partition("/")[0] for n in packed.namelist()} == {first.stem}
    for name, content in pages.items():  # the same, written later
        (html / name).write_bytes(content)
    assert editions.archive(html, tmp_path / "second").read_bytes() == first.read_bytes()
    (html / "index.html").write_bytes(b"<p>two</p>")
    assert editions.archive(html, tmp_path / "third").read_bytes() != first.read_bytes()


def test_without_chromium_the_pdf_is_refused_before_anything_is_built(monkeypatch, tmp_path):
    from relength.cli import pages

    monkeypatch.setattr(editions.shutil, "which", lambda name: None)
    monkeypatch.setattr(bookbuild, "render", lambda *_: pytest.fail("it went on"))
    with pytest.raises(RelengthError, match=r"Chromium prints the PDF, and none was found.*--pdf"):
        pages.render(results=tmp_path, out=tmp_path, pdf=True)


@pytest.fixture
def small_book(tmp_path, monkeypatch) -> Path:
    """A book of two pages, in place of ours."""
    book = tmp_path / "book"
    book.mkdir()
    (tmp_path / "_config.yml").write_text("title: Small\nonly_build_toc_files: true\n")
    (book / "_toc.yml").write_text("format: jb-book\nroot: intro\nchapters:\n  - file: second\n")
    (book / "intro.md").write_text("# First page\n\nSee {doc}`second`.\n")
    (book / "second.md").write_text("# Second page\n\nIts text.\n")
    monkeypatch.setattr(bookbuild, "BOOK", book)
    return tmp_path


@pytest.mark.slow
@pytest.mark.browser
def test_the_pdf_holds_all_pages(small_book):
    made = editions.pdf(small_book / "out")
    checked(made)
    assert made.read_bytes().startswith(b"%PDF-")
    text = "\n".join(page.extract_text() for page in PdfReader(made).pages)
    assert text.index("First page") < text.index("Second page") < text.index("Its text.")


def test_a_browser_that_prints_nothing_is_named_with_its_reason(tmp_path, monkeypatch):
    browser = tmp_path / "chromium"
    browser.write_text("#!/bin/sh\necho 'no display' >&2\nexit 3\n")
    browser.chmod(0o755)
    monkeypatch.setattr(editions, "chromium", lambda: browser)
    monkeypatch.setattr(editions, "jupyter_book", lambda *_: tmp_path)
    (tmp_path / "book.html").touch()
    with pytest.raises(RelengthError, match="printed no PDF: no display"):
        editions.pdf(tmp_path / "out")


# --- citing -------------------------------------------------------------------------------------


def test_the_guide_cites_what_the_citation_file_says():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    guide = (BOOK / "guide_cite.md").read_text().replace("{", "").replace("}", "")
    assert f"= {citation['title']},\n" in guide
    assert f"version = {citation['version']},\n" in guide
    assert f"license = {citation['license']}\n" in guide
    (author,) = citation["authors"]
    assert f"author  = {author['name']},\n".lower() in guide.lower()


def test_a_version_has_a_date_when_it_is_released_and_not_before():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    (newest,) = re.findall(r"^## (.+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[:1]
    date = str(citation.get("date-released", "unreleased"))
    assert newest == f"{citation['version']} ({date})"
    year = re.search(r"year    = \{(\d+)\}", (BOOK / "guide_cite.md").read_text())[1]
    assert date in ("unreleased", f"{year}{date[4:]}")


def test_the_licence_is_the_one_that_is_named_everywhere():
    licence = (ROOT / "LICENSE").read_text()
    assert licence.startswith("MIT License\n")
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["license"] == "MIT"
    assert 'license = "MIT"' in (ROOT / "pyproject.toml").read_text()
    assert "[MIT](LICENSE)" in (ROOT / "README.md").read_text()


def test_committed_notebooks_open_on_colab_with_the_kernel_that_is_there():
    for path in NOTEBOOKS.glob("*.ipynb"):
        assert nbformat.read(path, as_version=4).metadata.kernelspec.name == "python3"
