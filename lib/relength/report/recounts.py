"""The papers' arithmetic, done again from the numbers that they print.

A recount takes the printed cells (:mod:`relength.specs.published`) or a formula of the paper and
says in a sentence or two what follows from them. The book's pages on deviations show the sentences;
no number in them is typed. One module per paper, one function per recount.
"""

from collections.abc import Callable
from functools import cache

from relength.errors import RelengthError
from relength.specs import registry


@cache
def recounts() -> dict[str, dict[str, Callable[[], str]]]:
    """{paper: {name: recount}} of every paper that has some."""
    return {
        name: {recount.__name__: recount for recount in paper.load(paper.recounts)}
        for name, paper in registry.papers().items()
        if paper.recounts
    }


def recount(paper: str, name: str) -> str:
    """Run a recount and return its finding as plain text. RelengthError for a name that the
    paper has none of.
    """
    known = recounts().get(paper, {})
    if name not in known:
        raise RelengthError(
            f"There is no recount {name!r} of {paper!r}: choose one of {', '.join(known)}."
        )
    return known[name]()
