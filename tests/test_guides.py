"""The guides work: their commands are pasted into a shell, their code into a copy of the package.

A block of commands is run as it stands, at scale smoke, unless a comment above it says why not:
``% help only: …`` asks the command's help whether its options exist, ``% not run: …`` leaves it
out. A block with a caption is a file; in the language ``diff`` it is an edit of one, whose context
has to be there.
"""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from relength.paths import BOOK, ROOT
from relength.training.protocols import PROTOCOLS

FILES = [ROOT / "README.md", *sorted(BOOK.glob("guide_*.md"))]
FILES += [BOOK / "rerun.md", BOOK / "cluster.md"]
PAGES = {path.stem: path for path in FILES}
FENCE = re.compile(
    r"(?:^ *% (?P<how>help only|not run): .+\n)?"
    r"^(?P<edge> *)(?P<fence>```|~~~)(?P<info>[^`\n]+)\n(?P<text>(?:.*\n)*?)(?P=edge)(?P=fence)$",
    re.MULTILINE,
)
CAPTION = re.compile(r":caption: `(.+)`\n\n")
# Machine code goes along, in __pycache__: to compile it for each copy would take longest of all.
NOT_COPIED = shutil.ignore_patterns(
    *(".git", ".venv", "_build", "executed", "results", ".*cache", ".hypothesis", ".relength"),
    *(".test-output", "*.egg-info"),
)
# What a command would do for hours, it does here for seconds.
SMALLER = {
    r"(--|-p )scale (reduced|paper)": r"\1scale smoke",
    r"\brefresh$": "refresh notebooks/mla_table2.ipynb",
    r"^make ": "make --dry-run ",
    r"-m pytest -m gpu$": "-m pytest -m gpu tests/test_gpu.py --collect-only",
}
if not torch.cuda.is_available():
    SMALLER[r"\bdevice cuda\b"] = "device cpu"


class Block(NamedTuple):
    """One fenced block of a page: its language, its text, how a test treats it, its file."""

    language: str
    text: str
    how: str
    file: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, those inside of list items too."""
    found = []
    for match in FENCE.finditer(PAGES[page].read_text()):
        edge = len(match["edge"])
        text = "".join(line[edge:] or "\n" for line in match["text"].splitlines(keepends=True))
        caption = CAPTION.match(text)
        found.append(
            Block(
                language=match["info"].removeprefix("{code-block} "),
                text=text[caption.end() :] if caption else text,
                how=match["how"] or "",
                file=caption[1] if caption else "",
            )
        )
    return found


def code_of(page: str) -> list[Block]:
    """The Python files that a page adds or edits."""
    return [block for block in blocks(page) if block.file.endswith(".py")]


def commands(block: Block) -> list[str]:
    """The commands of a console block without their prompts."""
    lines = re.sub(r"\\\n +", "", block.text).splitlines()
    assert all(line.startswith("$ ") for line in lines), block
    return [line.removeprefix("$ ") for line in lines]


def smaller(text: str) -> str:
    for long, short in SMALLER.items():
        text = re.sub(long, short, text, flags=re.MULTILINE)
    return text


def save(block: Block, folder: Path) -> None:
    """Write the file that a block is, or make the edit that it shows."""
    path = folder / block.file
    if block.language != "diff":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
        return
    for hunk in filter(None, re.split(r"^@@.*\n", block.text, flags=re.MULTILINE)):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        after = "".join(line[1:] for line in lines if line[0] in " +")
        text = path.read_text()
        if not before:  # nothing but new lines: at the end of the file
            path.write_text(text + after)
            continue
        assert text.count(before) == 1, f"{block.file} has not once, as the guide says:\n{before}"
        path.write_text(text.replace(before, after))


def shell(folder: Path, *lines: str) -> str:
    """Run lines in one shell as a user of the checkout would; returns what they print."""
    programs = [str(folder.parent / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {
        "PATH": os.pathsep.join(programs),
        "PYTHONPATH": str(folder / "lib"),
        "COLUMNS": "200",
        # An installation is only rehearsed: the tests' own environment stays as it is.
        **{"PIP_DRY_RUN": "1", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's way of saying without
    }
    done = subprocess.run(
        ["bash", "-c", "set -euxo pipefail\n" + "\n".join(lines)],
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


# Three runs in place of 64, where they are trained.
SMALL_TABLE = """
whole_table_2 = table_2


def table_2(scale: Scale, seed: int) -> list[RunSpec]:
    if scale != "smoke":
        return whole_table_2(scale, seed)
    return grid(scale, seed, ("OneStepAttn",), ("copy", "recopy", "lookup"))
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the repository with a small Table 2, and without records."""
    copy = tmp_path_factory.mktemp("guides") / "relength"
    shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
    file = copy / "lib" / "relength" / "papers" / "mla" / "experiments.py"
    before, listed, after = file.read_text().partition("\nEXPERIMENTS = (")
    file.write_text(before + SMALL_TABLE + listed + after)
    activate = copy / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.touch()  # the environment is active already
    return copy


@pytest.fixture(scope="module")
def records(checkout) -> Path:
    """The records of what that copy has trained."""
    shell(checkout, smaller("relength run mla_table2 --scale smoke --results ../records"))
    return checkout.with_name("records")


@pytest.fixture
def here(checkout, tmp_path) -> Path:
    """A copy of that copy for one page, with stand-ins for what is not on this machine."""
    shutil.copytree(checkout, tmp_path / "relength")
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text(SBATCH)
    sbatch.chmod(0o755)
    return tmp_path / "relength"


# The first task of the array, at once and here.
SBATCH = """#!/bin/sh
export SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=16 SLURM_CPUS_PER_TASK=1
exec bash "$1"
"""


FOR_BUILDERS = ("guide_task", "guide_model", "guide_attention", "guide_paper")


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page in FOR_BUILDERS else pytest.mark.weekly)
        for page in PAGES
    ],
)
def test_what_a_page_says_can_be_pasted_in_its_order(page, here, request):
    if page not in FOR_BUILDERS:  # whose commands train what they show
        for name in ("results", "my-results"):
            shutil.copytree(request.getfixturevalue("records"), here / name)
    for block in blocks(page):
        if block.file:
            save(block._replace(text=smaller(block.text)), here)
        elif block.language == "console" and not block.how:
            shell(here, *map(smaller, commands(block)))


@pytest.mark.slow
@pytest.mark.weekly
def test_a_project_with_the_guides_paper_passes_the_tests_that_know_every_paper(tmp_path):
    """A paper that is added as the guide says needs no mending afterwards."""
    here = tmp_path / "relength"
    shutil.copytree(ROOT, here, ignore=NOT_COPIED)
    for block in blocks("guide_paper"):
        if block.file:
            save(block, here)
        elif "relength refresh" in block.text:
            shutil.copytree(ROOT / "results", here / "results", dirs_exist_ok=True)
            shell(here, *commands(block))
    about = "project house exports published notebook deviations landing report publication"
    about += " recounts ledger facts spec protocols claims"
    files = " ".join(f"tests/test_{name}.py" for name in about.split())
    shell(here, f"python -m pytest -q -m 'not weekly and not slow' {files}")


@pytest.mark.parametrize("page", [page for page in PAGES if code_of(page)])
def test_what_a_guide_adds_to_the_package_is_as_tidy_as_the_package(page, tmp_path):
    shutil.copytree(ROOT / "lib", tmp_path / "lib", ignore=NOT_COPIED)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in ("book", "notebooks", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=NOT_COPIED)
    for block in code_of(page):
        save(block, tmp_path)
    tidy(tmp_path, *{block.file for block in code_of(page)})


def test_the_guide_to_protocols_names_all_of_them():
    listed = PAGES["guide_protocol"].read_text().partition("## The file")[0]
    assert [name for name in PROTOCOLS if f"`{name}`" not in listed] == []


def test_code_is_tidy():
    tidy(ROOT, "lib", "tests", "notebooks", "book/_ext")


def tidy(folder: Path, *paths: str) -> None:
    """Ruff has no complaint, by the rules in pyproject.toml."""
    for rule in (("check",), ("format", "--check")):
        command = [sys.executable, "-m", "ruff", *rule, "--no-cache", *sorted(paths)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@cache  # many pages have the same few
def help_of(program: str, command: str) -> str:
    asked = [Path(sys.executable).parent / program, command, "--help"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("page", PAGES)
def test_options_of_commands_that_are_not_run_exist(page):
    for block in blocks(page):
        for command in commands(block) if block.how == "help only" else ():
            said = help_of(*command.split()[:2])
            for option in re.findall(r"--[a-z-]+", command):
                assert re.search(rf"{option}\b", said), command


def test_commands_stand_in_blocks_that_are_tested():
    for page in PAGES:
        for block in blocks(page):
            assert block.file or block.language not in ("bash", "sh", "shell", "text"), page


def test_scripts_for_bash_are_sound(tmp_path):
    scripts = [ROOT / ".ci" / "run", ROOT / "binder" / "postBuild"]
    for page in PAGES:
        for block in blocks(page):
            if block.language == "bash":
                save(block, tmp_path)
                scripts.append(tmp_path / block.file)
    assert len(scripts) >= 3
    for script in scripts:
        subprocess.run(["bash", "-n", script], check=True)
    if shellcheck := shutil.which("shellcheck"):
        command = [shellcheck, "--exclude=SC1091", *scripts]  # SC1091: sources the environment
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
