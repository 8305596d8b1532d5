"""A built page asks nothing of the network, from a server or opened as a file.

Equations are set by the one-file MathJax inside the ``sphinx-mathjax-offline`` wheel, copied into
the book. Left out are the theme's script for live code (thebe, fetched from a content network),
MathJax's menu (its explorer would be fetched, too), and, where pages are files, the excerpts below
search results: a browser lets no page read another file.
"""

import importlib.util
import json
from pathlib import Path

from sphinx.util.fileutil import copy_asset

SCRIPT = "mathjax/tex-svg.js"
NO_EXCERPTS = (
    'if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;'
)


def _use_local_mathjax(app, config):
    config.mathjax_path = SCRIPT
    config.mathjax3_config = {"options": {"enableMenu": False}}


def _copy_mathjax(app, exception):
    if exception is None and app.builder.format == "html":
        # The wheel's module name has hyphens, so it can be located but not imported.
        package = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent
        target = Path(app.outdir) / "_static" / SCRIPT
        copy_asset(str(package / "static" / SCRIPT), str(target.parent))


def _drop_what_no_reader_loads(app, exception):
    """Remove maps for the developers of the theme, and fonts that lie in a smaller format, too.

    Styles name the smaller one first; a browser that cannot read it runs none of the scripts.
    """
    if exception is None and app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        larger = (font for font in static.rglob("*.ttf") if font.with_suffix(".woff2").is_file())
        for file in [*static.rglob("*.map"), *larger]:
            file.unlink()


def _drop_outputs_of_downloads(app, exception):
    """Leave each notebook's outputs to its page alone; a download is there to be executed.

    They would be a third of the book.
    """
    if exception is None and app.builder.format == "html":
        for file in (Path(app.outdir) / "_sources").rglob("*.ipynb"):
            downloaded = json.loads(file.read_text("utf-8"))
            for cell in downloaded["cells"]:
                if cell["cell_type"] == "code":
                    cell.update(outputs=[], execution_count=None)
            file.write_text(json.dumps(downloaded, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _drop_thebe(app, pagename, templatename, context, doctree):
    kept, seen = [], set()
    for script in context["script_files"]:
        body = (getattr(script, "attributes", None) or {}).get("body") or ""
        name = str(getattr(script, "filename", script))
        if "thebe" in name or "THEBE" in body or (name, body) in seen:
            continue
        seen.add((name, body))
        kept.append(script)
    context["script_files"][:] = kept


def _search_files(app, pagename, templatename, context, doctree):
    if pagename == "search":
        app.add_js_file(None, body=NO_EXCERPTS)


def setup(app):
    app.connect("config-inited", _use_local_mathjax)
    app.connect("html-page-context", _drop_thebe)
    app.connect("html-page-context", _search_files)
    app.connect("build-finished", _copy_mathjax)
    app.connect("build-finished", _drop_what_no_reader_loads)
    app.connect("build-finished", _drop_outputs_of_downloads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
