"""The trace of one question in a memory that is read in hops."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


class Looked(NamedTuple):
    """The reads and the words of one question.

    tokens     (T,) the likeliest words
    read       the line nearest to each of H readouts; -1 where the memory diverges
    distances  (H, E) of each readout to each line; None where the memory diverges
    ordered    (E, D) the codes of the lines as they are written; None where the memory diverges
    """

    tokens: "Tensor"
    read: list[int]
    distances: "np.ndarray | None"
    ordered: "np.ndarray | None"
