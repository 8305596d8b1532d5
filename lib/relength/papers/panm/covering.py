"""Simulate how many training sequences it takes until every address was seen.

A sequence of length L uses the addresses from its base to L - 1 further, modulo the number of all
addresses; its base is uniform. The simulations are from fixed random streams, take seconds, and are
kept (:mod:`relength.kept`).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy

from relength.kept import kept
from relength.streams import stream

LENGTH = 10  # of the sequences, as in the example of Appendix B
BITS = (6, 8, 10, 12, 14, 16, 18)
EXTREME = 10**6  # addresses of the example
REPEATS = 5
NEVER = 2**52  # exact as a double, in which the filter computes
TRAINED = {8: range(3, 12), 10: range(1, 10)}  # lengths in training, by bits of an address
CODE = ("papers.panm.covering", "streams")


def sequences_needed(addresses: int, lengths: Sequence[int], random: np.random.Generator) -> int:
    """Count the sequences until each address was in one; lengths are uniform over `lengths`.

    Bases are drawn in blocks until all is covered.
    """
    first = {length: np.full(addresses, NEVER) for length in lengths}  # first draw with that base
    drawn_so_far, block = 0, 4 * addresses
    while True:
        base = random.integers(0, addresses, block)
        length = random.choice(lengths, block) if len(lengths) > 1 else np.full(block, lengths[0])
        index = drawn_so_far + 1 + np.arange(block)
        for n in lengths:
            mine = length == n
            np.minimum.at(first[n], base[mine], index[mine])
        drawn_so_far += block
        last = int(exposed(first).max())
        if last < NEVER:
            return last


def exposed(first: dict[int, np.ndarray]) -> np.ndarray:
    """Index of the draw that first exposes each address: its base is at most length - 1 before."""
    return np.min(
        [
            scipy.ndimage.minimum_filter1d(draws, size=n, origin=(n - 1) // 2, mode="wrap")
            if n > 1
            else draws
            for n, draws in first.items()
        ],
        axis=0,
    )


def simulate() -> pd.DataFrame:
    """Five simulations per number of addresses. Columns: addresses, repeat, sequences."""
    return kept("exposure", simulated, code=CODE)


def simulated() -> pd.DataFrame:
    """:func:`simulate`, computed anew."""
    rows = []
    for addresses in (*(2**bits for bits in BITS), EXTREME):
        for repeat in range(REPEATS):
            random = stream(repeat, "address exposure", addresses)
            rows.append((addresses, repeat, sequences_needed(addresses, (LENGTH,), random)))
    return pd.DataFrame(rows, columns=["addresses", "repeat", "sequences"])


def in_training() -> pd.DataFrame:
    """Sequences needed where lengths are drawn as in training. Columns: bits, repeat, needed."""
    return kept("exposure-training", simulated_in_training, code=CODE)


def simulated_in_training() -> pd.DataFrame:
    """:func:`in_training`, computed anew."""
    rows = []
    for bits, lengths in TRAINED.items():
        for repeat in range(REPEATS):
            random = stream(repeat, "address exposure", "training", bits)
            rows.append((bits, repeat, sequences_needed(2**bits, tuple(lengths), random)))
    return pd.DataFrame(rows, columns=["bits", "repeat", "needed"])
