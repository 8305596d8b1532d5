"""Pages are read and written on all cores, for which Jupyter Book has no option, and no garbage is
collected.

Documents are large graphs that live until their page is written. To walk through all of them again
and again in search of garbage takes almost half of a build, and finds little; a build ends soon,
and its memory with it (about a gigabyte). Python would search it once more before it ends, for four
seconds: what is frozen it leaves alone.

Sphinx reads on several only where every extension says that it may. Some of Jupyter Book's own say
nothing: they write LaTeX, copy files, or number chapters when all pages have been read.
"""

import gc
import os

SILENT = ("sphinx_jupyterbook_latex", "sphinx_multitoc_numbering", "sphinx-mathjax-offline")


def _declare(app, env, docnames):
    for name in SILENT:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


def _freeze(app, exception):
    gc.freeze()


def setup(app):
    app.parallel = os.cpu_count()
    gc.disable()
    app.connect("env-before-read-docs", _declare)
    app.connect("build-finished", _freeze, priority=900)  # the last to be called
    return {"parallel_read_safe": True, "parallel_write_safe": True}
