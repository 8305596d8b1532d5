"""HTML of exhibits and passages, filled into the templates beside this file.

Templates escape what they are given, but for :class:`markupsafe.Markup`, which is HTML already.
"""

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template


def fill(template: str, /, **values: Any) -> str:
    """The HTML of ``templates/<template>.html.j2`` with these values."""
    return _template(f"{template}.html.j2").render(values)


@cache
def _template(name: str) -> Template:
    loader = FunctionLoader(_source)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template(name)


def _source(name: str) -> str:
    """A template without line breaks: an empty line would end a piece of HTML in Markdown."""
    text = (files("relength.report") / "templates" / name).read_text("utf-8")
    return "".join(line.strip() for line in text.splitlines())
