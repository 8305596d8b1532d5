"""Notebook pages say how they were made.

papermill leaves its own cells and metadata in an executed notebook. On the page, the injected
parameters disappear, and cells that hide their source stay folded. Below the title stands what the
page says in short, written beside it as ``short_<name>.md``, which links to two sections by labels
that they get here; then a folded box that tells when and with which parameters papermill ran it.
Only what Sphinx reads is changed, no file.
"""

import json
import os
from pathlib import Path

LABELLED = {"## Tables and figures": "tables-and-figures", "## Verdict": "verdict"}
PAPERMILL_CELLS = {"injected-parameters", "papermill-error-cell-tag"}


def _shown(value, root):
    """A parameter as a reader should see it: paths inside the repository relative to it."""
    if isinstance(value, str) and os.path.isabs(value):
        path = Path(value)
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    return value


def _box(papermill, root):
    parameters = {k: _shown(v, root) for k, v in papermill["parameters"].items()}
    name = Path(papermill["input_path"]).name
    listed = ", ".join(f"`{k} = {v!r}`" for k, v in parameters.items()) or "its defaults"
    finished = papermill["end_time"][:16].replace("T", " ")
    return (
        ":::{admonition} How this page was made\n:class: tip dropdown run-stamp\n"
        f"papermill {papermill['version']} executed `notebooks/{name}` in "
        f"{papermill['duration']:.0f} s (finished {finished} UTC) with {listed}. "
        "Nothing was trained: the page shows recorded runs. To make your own version:\n\n"
        f"```console\n$ papermill notebooks/{name} out.ipynb --help-notebook\n"
        f"$ papermill notebooks/{name} out.ipynb -p scale smoke -p seeds 1\n```\n:::\n"
    )


def _cell(name, text):
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text}


def _on_source_read(app, docname, source):
    if not str(app.env.doc2path(docname)).endswith(".ipynb"):
        return
    notebook = json.loads(source[0])
    page = Path(app.env.doc2path(docname))
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if label := LABELLED.get(text.partition("\n")[0]):
            cell["source"] = f"({page.stem}-{label})=\n{text}"
        tags = cell.setdefault("metadata", {}).setdefault("tags", [])
        if PAPERMILL_CELLS & set(tags):
            tags.append("remove-cell")
        elif cell["metadata"].get("jupyter", {}).get("source_hidden"):
            tags.append("hide-input")
    papermill = notebook["metadata"].get("papermill")
    if papermill:
        text = _box(papermill, Path(app.confdir).resolve().parent)
        notebook["cells"].insert(1, _cell("run-stamp", text))
    short = page.with_name(f"short_{page.stem}.md")
    if short.exists():
        notebook["cells"].insert(1, _cell("in-short", short.read_text(encoding="utf-8")))
    source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", _on_source_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
