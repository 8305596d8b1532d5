"""What readers need who do not see the page or use no mouse, and docutils and MathJax leave out.

Entries of the bibliography have the role ``doc-biblioentry``, which its standard has since replaced
by plain list items; with the old role the list counts as empty. Boxes that scroll become stops of
the Tab key (``book/assets/scroll.js``).
"""


def _list_references(app, pagename, templatename, context, doctree):
    if "body" in context:
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def setup(app):
    app.connect("html-page-context", _list_references)
    app.add_js_file("scroll.js")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
