"""Claims of the paper that pages measure or count, see :mod:`relength.report.computed`."""

from relength.papers.memreasoner import cost_page, training_text
from relength.report.computed import Computed
from relength.runs.store import Store


def decided(store: Store) -> list[Computed]:
    """Every claim that a page decides."""
    return [*cost_page.decided(store), *training_text.decided()]
