"""Ask git about the project's own checkout, and about nothing else.

A copy without a repository may lie inside somebody else's, and a hook names its repository in the
environment. Neither is asked: git answers only where ``root`` is the top level of its repository.
"""

import os
import subprocess
from pathlib import Path


def output(root: Path, *arguments: str) -> bytes | None:
    """Output of a git command in the checkout ``root``; None where it fails. Times are UTC.

    It fails, too, where git is not installed and where ``root`` is not the top level.
    """
    if not _is_top_level(root, _run(root, "rev-parse", "--show-toplevel")):
        return None
    done = _run(root, *arguments)
    return done.stdout if done.returncode == 0 else None


def has_history(root: Path) -> bool:
    """Tell whether the checkout ``root`` has every commit before it, as a shallow clone has not."""
    return output(root, "rev-parse", "--is-shallow-repository") == b"false\n"


def trouble(root: Path) -> str | None:
    """Why git names no commit of the checkout ``root``, and the way out, to end a sentence.

    None where it names one.
    """
    found = _run(root, "rev-parse", "--show-toplevel")
    if found is None:
        return "git is not installed: install it"
    if not (root / ".git").exists():
        return f"{root} is no git checkout: clone the repository instead of copying it"
    if b"safe.directory" in found.stderr:
        return (
            f"git does not read {root}, which another user owns: allow it with "
            f"`git config --global --add safe.directory {root}`"
        )
    if output(root, "rev-parse", "--verify", "HEAD") is None:
        return f"the repository in {root} is damaged or has no commit: clone it again"
    return None


def _run(root: Path, *arguments: str) -> subprocess.CompletedProcess | None:
    """A git command that has ended; None where git is not installed."""
    # Variables that name a repository are left out, settings such as safe.directory are not.
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_")
    }
    kept |= {"TZ": "UTC", "LC_ALL": "C"}
    command = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=False, env=kept)
    except OSError:
        return None


def _is_top_level(root: Path, found: subprocess.CompletedProcess | None) -> bool:
    if found is None or found.returncode:
        return False
    return os.path.samefile(os.fsdecode(found.stdout.rstrip(b"\n")), root)
