"""The papers' arithmetic, done again from the numbers that they print.

A recount takes the printed cells (:mod:`relength.specs.published`) or a formula of the paper and
says in a sentence or two what follows from them. The book's pages on deviations show the sentences;
no number in them is typed. One module per paper, one function per recount.
"""

from collections.abc import Callable

from relength.errors import RelengthError
from relength.papers.dnc import recounts as dnc
from relength.papers.memreasoner import recounts as memreasoner
from relength.papers.mla import recounts as mla
from relength.papers.panm import recounts as panm

RECOUNTS: dict[str, dict[str, Callable[[], str]]] = {
    module.__name__.split(".")[2]: {recount.__name__: recount for recount in module.RECOUNTS}
    for module in (mla, panm, dnc, memreasoner)
}


def recount(paper: str, name: str) -> str:
    """What a recount finds, as plain text. RelengthError for a name that the paper has none of."""
    known = RECOUNTS.get(paper, {})
    if name not in known:
        raise RelengthError(
            f"There is no recount {name!r} of {paper!r}: choose one of {', '.join(known)}."
        )
    return known[name]()
