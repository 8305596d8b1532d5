"""HTML of exhibits and passages, filled into the templates beside this file.

Templates escape what they are given, but for :class:`markupsafe.Markup`, which is HTML already.
"""

import gzip
from base64 import b64encode
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

TEMPLATES = files("relength.report") / "templates"


def fill(template: str, /, **values: Any) -> str:
    """The HTML of ``templates/<template>.html.j2`` with these values."""
    return _environment().get_template(f"{template}.html.j2").render(values)


def packed(html: str) -> str:
    """HTML for a script of the page to unpack when it is needed: compressed, in base64."""
    return b64encode(gzip.compress(html.encode(), mtime=0)).decode()


def compile_all() -> None:
    """Compile every template, which processes that are forked later need not do then."""
    for file in TEMPLATES.iterdir():
        _environment().get_template(file.name)


@cache
def _environment() -> Environment:
    loader = FunctionLoader(_source)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined)


def _source(name: str) -> str:
    """A template without line breaks: an empty line would end a piece of HTML in Markdown."""
    text = (TEMPLATES / name).read_text("utf-8")
    return "".join(line.strip() for line in text.splitlines())
