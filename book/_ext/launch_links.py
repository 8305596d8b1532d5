"""Notebook pages open elsewhere: links to Colab, Binder and the source, at the built commit.

The links lead to ``notebooks/``, not to the executed copy, and they are links and nothing else: a
page asks no one for anything until a reader follows one. Where the repository lies on the web is
written down nowhere: it is the address of the checkout's remote ``origin``, so a fork's book opens
the fork. A commit that no remote branch has cannot be opened, and then there are no links;
nor are there any where git is missing, or knows no repository of the book's own.
"""

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

from relength import git

GITHUB = re.compile(
    r"(?:https://(?:[^/@]+@)?|ssh://git@|git@)github\.com[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?"
)
CELL = re.compile(r"```ipython\n(.*?)```", re.DOTALL)  # the only one in guide_colab.md


def _git(root, *arguments):
    return (git.output(root, *arguments) or b"").decode().strip()


@cache
def published(root):
    """(owner/repository, commit) of a checkout if GitHub has that commit, else None."""
    address = GITHUB.fullmatch(_git(root, "config", "--get", "remote.origin.url"))
    commit = _git(root, "rev-parse", "HEAD")
    if not address or not _git(root, "branch", "--remotes", "--contains", commit):
        return None
    return address[1], commit


def install_cell(root, repository, commit):
    """The cell that Colab needs before a notebook's own: as the guide has it, filled in."""
    (cell,) = CELL.findall((root / "book" / "guide_colab.md").read_text(encoding="utf-8"))
    return cell.replace("OWNER/REPOSITORY", repository).replace("COMMIT", commit)


def _links(root, name):
    if not (found := published(root)):
        return None
    repository, commit = found
    path = f"notebooks/{name}.ipynb"
    colab = f"https://colab.research.google.com/github/{repository}/blob/{commit}/{path}"
    binder = (
        f"https://mybinder.org/v2/gh/{repository}/{commit}?urlpath={quote(f'lab/tree/{path}', '')}"
    )
    source = f"https://github.com/{repository}/blob/{commit}/{path}"
    return (
        f"::::{{container}} launch\n[Open in Colab]({colab}) · [Open in Binder]({binder}) · "
        f"[Source of this notebook]({source})\n\n"
        ":::{admonition} On Colab, run this first\n:class: tip dropdown run-stamp\n"
        "Nothing of the book is installed there. Paste this into a new cell at the top; "
        "{doc}`the guide </guide_colab>` explains it.\n\n"
        f"```ipython\n{install_cell(root, repository, commit)}```\n:::\n::::\n"
    )


def _on_source_read(app, docname, source):
    if not str(app.env.doc2path(docname)).endswith(".ipynb"):
        return
    text = _links(Path(app.confdir).resolve().parent, Path(docname).name)
    if text:
        notebook = json.loads(source[0])
        cell = {"cell_type": "markdown", "id": "launch-links", "metadata": {}, "source": text}
        notebook["cells"].insert(1, cell)
        source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", _on_source_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
