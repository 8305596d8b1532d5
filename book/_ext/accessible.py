"""Add to pages what docutils and MathJax leave out: what readers need who use no mouse or do not
see. And take out one thing that it costs seconds to keep.

Entries of the bibliography have the role ``doc-biblioentry``, which its standard has since replaced
by plain list items; with the old role the list counts as empty. Boxes that scroll become stops of
the Tab key (``book/assets/scroll.js``). Formulas and words of code are boxes to the browser, which
would begin a line with the comma behind one; such signs are tied to them, and % to its number.
Buttons of the head of a page can be pressed twice by the keyboard, and the contents of a page close
when one of them is chosen (``book/assets/buttons.js``).

The theme's script measures every table of a page one by one, each after a change to the one before,
which lays out a long page hundreds of times. Tables get a box that ``scroll.js`` measures at once.
"""

import re

from docutils import nodes

OPENING, CLOSING = re.compile(r"[(\[“‘]+$"), re.compile(r"^[,.;:!?)\]’”]+")
WORD = 16  # letters of code that fit into one of four columns with what is tied to them


REPLACED = {
    'role="doc-biblioentry"': 'role="listitem"',
    'class="pst-scrollable-table-container"': 'class="scroll text-table"',
}


def _replace(app, pagename, templatename, context, doctree):
    for theirs, ours in REPLACED.items():
        if "body" in context:
            context["body"] = context["body"].replace(theirs, ours)


def _is_box(node):
    word = isinstance(node, nodes.literal) and len(node.astext()) <= WORD
    return isinstance(node, nodes.math) or (word and " " not in node.astext())


def _sign_beside(line, at, pattern):
    """Takes the signs from the text at this place of a line, and gives them; none or one node."""
    text = line[at] if 0 <= at < len(line) else None
    found = pattern.search(text) if isinstance(text, nodes.Text) else None
    if not found:
        return []
    line[at] = nodes.Text(text[: found.start()] + text[found.end() :])
    return [nodes.Text(found[0])]


def _tie_signs(app, doctree):
    for part in list(doctree.findall(nodes.TextElement)):
        if not isinstance(part, nodes.literal | nodes.FixedTextElement):
            for i, child in enumerate(part):
                if isinstance(child, nodes.Text) and " %" in child:
                    part[i] = nodes.Text(child.replace(" %", "\N{NO-BREAK SPACE}%"))
    for box in list(doctree.findall(_is_box)):
        line, at = box.parent, box.parent.index(box)
        signs = _sign_beside(line, at - 1, OPENING), _sign_beside(line, at + 1, CLOSING)
        if any(signs):
            line[at] = nodes.inline("", "", *signs[0], box, *signs[1], classes=["tied"])


def setup(app):
    app.connect("html-page-context", _replace)
    app.connect("doctree-read", _tie_signs, priority=400)  # before titles go to the contents
    app.add_js_file("scroll.js")
    app.add_js_file("buttons.js")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
