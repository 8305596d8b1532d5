"""In the book, figures and tables made by code are numbered, and prose can refer to them."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from sphinx.application import Sphinx

from relength.paths import BOOK
from relength.report import exhibits
from relength.report.exhibits import CSS, Exhibit

CONF = """
import sys
sys.path.insert(0, {ext!r})
extensions = ["myst_nb", "numbering"]
nb_execution_mode = "off"
numfig = True
numfig_format = {{"figure": "Figure %s", "table": "Table %s"}}
"""
PAGE = """# A page

See {{numref}}`fig-second` and {{numref}}`tab-third`.

Nothing was run: no {{numref}}`tab-fourth`, no {{numref}}`fig-fifth`, neither
{{ref}}`what they *show* <sixth>` nor {{doc}}`a page <seventh>`.

```{{raw}} html
{first}
```

```{{include}} passage.md
```

```{{drawing}} mla-mechanism
```

| a | b |
| --- | --- |
| 1 | 2 |
"""


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """A page with a raw figure, one from a passage, a drawing, and a notebook with a table."""
    root = tmp_path_factory.mktemp("project")
    source, out = root / "book", root / "out"
    (source / "executed").mkdir(parents=True)
    (root / "notebooks").mkdir()
    svg = {"wide": "<svg></svg>", "narrow": "<svg></svg>"}
    first = exhibits.figure(svg, "words", "The first.", "first", [], 7)
    second = exhibits.figure(svg, "words", "The second.", "second", [])
    (source / "passage.md").write_text(f"```{{raw}} html\n{second}\n```\n")
    body = "<table><tr><td>1</td></tr></table>"
    third = Exhibit(exhibits.table(body, "The third.", "third", []), "third", pd.DataFrame())
    shown = nbformat.v4.new_output("display_data", {"text/html": third._repr_html_()})
    cell = nbformat.v4.new_code_cell("table", outputs=[shown])
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Notes"), cell])
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    nbformat.write(notebook, source / "executed" / "notes.ipynb")
    (root / "notebooks" / "notes.ipynb").write_text("as committed")
    toctree = "\n```{toctree}\nexecuted/notes\n```\n"
    (source / "index.md").write_text(PAGE.format(first=first) + toctree)
    (root / "conf.py").write_text(CONF.format(ext=str(BOOK / "_ext")))
    where, trees = {"exclude_patterns": ["passage.md"]}, root / "tree"
    Sphinx(source, root, out, trees, "html", where, warningiserror=True, status=None).build()
    return out


def test_figures_and_tables_are_numbered_in_the_order_of_the_pages(book):
    page = (book / "index.html").read_text()
    numbers = re.findall(r'<b class="number">([^<]*)</b>', page)
    assert numbers == ["Figure 1.", "Figure 2.", "Figure 3."]
    assert "Figure 7." not in page  # the number that Jupyter shows
    assert '<b class="number">Table 1.</b>' in (book / "executed" / "notes.html").read_text()


def test_prose_can_refer_to_them(book):
    page = (book / "index.html").read_text()
    assert re.search(r'href="#second"[^>]*><span class="std std-numref">Figure 2<', page)
    assert re.search(r'href="executed/notes.html#third"[^>]*><span[^>]*>Table 1<', page)


def test_references_to_what_is_not_there_become_words(book):
    """The fixture has built the page, warnings being errors."""
    absent = re.findall(r'<span class="absent">([^<]*)</span>', (book / "index.html").read_text())
    assert absent == ["Table (not run)", "Figure (not run)", "what they *show*", "a page"]


def test_a_reference_without_words_to_what_is_not_there_is_an_error(tmp_path):
    (tmp_path / "conf.py").write_text(CONF.format(ext=str(BOOK / "_ext")))
    asked = [f"{{{role}}}`no{role}`" for role in ("ref", "doc", "numref")]
    (tmp_path / "index.md").write_text("# A page\n\n" + "\n\n".join(asked) + "\n")
    # In a process of its own: what Sphinx logs depends on what was built in this one before.
    build = [sys.executable, "-m", "sphinx", "-q", "-b", "html", tmp_path, tmp_path / "out"]
    done = subprocess.run(build, capture_output=True, text=True, check=True)
    assert all(name in done.stderr for name in ("noref", "nodoc", "nonumref"))


def test_the_style_of_exhibits_is_a_file_and_not_in_every_output(book):
    assert (book / "_static" / "exhibits.css").read_text().strip() == CSS.strip()
    for page in ("index.html", "executed/notes.html"):
        text = (book / page).read_text()
        assert "exhibits.css" in text and ".rl .picture" not in text


def test_the_committed_notebook_lies_beside_its_page(book):
    assert (book / "executed" / "notes.ipynb").read_text() == "as committed"
