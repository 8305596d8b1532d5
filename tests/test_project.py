"""The repository's own files agree with each other and would work on somebody else's machine."""

import re
import subprocess
import tomllib
from importlib.metadata import distribution
from itertools import chain
from pathlib import Path

import pytest
import torch
import yaml

from relength.paths import BOOK, NOTEBOOKS, ROOT

MARKDOWN = ["README.md", "CONTRIBUTING.md", *(f"book/{p.name}" for p in BOOK.glob("*.md"))]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(file: str) -> list[str]:
    lines = (ROOT / file).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def lock() -> list[str]:
    """All pins: those of the book and its tests, and those of the extra ``language`` alone."""
    files = "requirements.lock", "requirements-language.lock"
    return sorted(
        chain.from_iterable(map(pins, files)), key=lambda pin: canonical(pin.split("==")[0])
    )


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def tracked() -> list[Path]:
    """Text files of the repository: those git knows, or would know."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = [ROOT / name.decode() for name in listed.stdout.split(b"\0") if name]
    return [p for p in paths if p.is_file() and b"\0" not in p.read_bytes()[:4096]]


def test_tests_compute_on_one_core():
    """Two processes test at the same time, and sums in one order can be compared."""
    assert torch.get_num_threads() == 1


def test_the_lock_pins_every_package_to_one_version_and_names_no_place():
    for line in lock():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line), line
    names = [canonical(line.split("==")[0]) for line in lock()]
    assert names == sorted(set(names))


def test_the_book_is_built_without_the_extra_language():
    from packaging.requirements import Requirement

    apart = {canonical(pin.split("==")[0]) for pin in pins("requirements-language.lock")}
    wanted = {
        canonical(Requirement(x).name) for x in project()["optional-dependencies"]["language"]
    }
    assert wanted <= apart
    others = [e for name, e in project()["optional-dependencies"].items() if name != "language"]
    needed = {canonical(Requirement(x).name) for x in chain(project()["dependencies"], *others)}
    assert not needed & apart


def test_every_dependency_that_the_project_declares_is_locked_within_its_bounds():
    from packaging.requirements import Requirement

    versions = {canonical(n): v for n, v in (line.split("==") for line in lock())}
    optional = project()["optional-dependencies"]
    for text in [*project()["dependencies"], *chain.from_iterable(optional.values())]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(versions[canonical(requirement.name)]), text


def test_every_locked_package_installs_on_the_oldest_python_that_is_promised():
    from packaging.specifiers import SpecifierSet

    oldest = f"{project()['requires-python'].removeprefix('>=')}.0"
    for name in (line.split("==")[0] for line in lock()):
        asked = distribution(name).metadata.get("Requires-Python") or ""
        assert SpecifierSet(asked).contains(oldest), f"{name} needs Python {asked}"


def test_conda_users_get_the_locked_versions():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    (pip,) = [d["pip"] for d in environment["dependencies"] if isinstance(d, dict)]
    assert pip == lock()


def test_every_page_of_the_table_of_contents_has_a_source():
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text())
    pages = [toc["root"], *(c["file"] for part in toc["parts"] for c in part["chapters"])]
    for page in pages:
        folder, name = (BOOK, f"{page}.md")
        if page.startswith("executed/"):
            folder, name = (NOTEBOOKS, f"{page.removeprefix('executed/')}.ipynb")
        assert (folder / name).is_file(), page


def test_every_notebook_is_a_page():
    toc = (BOOK / "_toc.yml").read_text()
    for notebook in NOTEBOOKS.glob("*.ipynb"):
        assert f"executed/{notebook.stem}\n" in toc, notebook.name


def test_every_passage_that_a_page_includes_is_generated_and_the_other_way_round():
    from relength.book import build as bookbuild
    from relength.report.passages import PASSAGES

    included = bookbuild.included()
    included += [f"short_{notebook.stem}" for notebook in NOTEBOOKS.glob("*.ipynb")]  # run_stamp.py
    assert sorted(included) == sorted(PASSAGES)


def test_no_tracked_file_names_a_place_on_one_machine_or_a_package_registry():
    # Put together here, so that this file does not contain what it looks for.
    machine = [f"/{folder}/" for folder in ("home", "root", "Users", "workspace", "work", "opt")]
    machine += ["file:" + "//" + "/", "C:" + "\\"]
    registries = ["py" + "pi.org", "python" + "hosted.org", "ana" + "conda."]
    for path in tracked():
        if path.name == Path(__file__).name:
            continue
        text = path.read_text(encoding="utf-8")
        found = [
            word
            for word in [*machine, *registries]
            if word in text and re.search(r"(?<![\w.*~])" + re.escape(word), text)
        ]
        assert not found, f"{path.relative_to(ROOT)}: {found}"


def test_the_source_root_is_not_ignored():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "check-ignore", "-q", "lib/relength/__init__.py"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 1


@pytest.mark.parametrize("page", MARKDOWN)
def test_make_commands_in_the_text_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:`|\$ )make ([a-z-]+)", (ROOT / page).read_text())
    assert set(named) <= targets


@pytest.mark.parametrize("page", MARKDOWN)
def test_relength_commands_in_the_text_exist(page):
    from typer.main import get_command

    from relength.cli.main import app

    commands = set(get_command(app).commands)
    named = re.findall(r"(?:`|\$ )relength ([a-z]+)", (ROOT / page).read_text())
    assert set(named) <= commands


def test_the_version_is_the_same_everywhere():
    import relength

    version = project()["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == relength.__version__ == version
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_examples_in_the_overview_are_what_the_tasks_produce():
    from relength.tasks import TASKS

    page = (BOOK / "mla_overview.md").read_text()
    rows = re.findall(r"^\| ([A-Z][\w ]+) \| `(.+?)` \| `(.+?)` \|", page, re.MULTILINE)
    shown = {name.lower().replace(" ", "_"): (s, t) for name, s, t in rows}
    assert set(shown) <= set(TASKS)
    assert len(shown) == 8
    for name, (source, target) in shown.items():
        task = TASKS[name]()
        if "lookup" in name:
            continue
        digits = tuple(target.split() if name.startswith("inv") else source.split())
        assert task.pair(digits) == (tuple(source.split()), tuple(target.split())), name


def test_the_lookup_example_in_the_overview_follows_the_published_tables():
    from relength.tasks.lookup import compose

    page = (BOOK / "mla_overview.md").read_text()
    pair = compose("010", ("t3", "t4", "t2", "t6", "t1"))
    backwards = (*pair.source[-2::-1], ".")
    for name, source in (("Lookup", pair.source), ("Reverse Lookup", backwards)):
        assert f"| {name} | `{' '.join(source)}` | `{' '.join(pair.target)}` |" in page
