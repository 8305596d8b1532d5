"""Measure two ways to do the same work, which take turns on one core: ours and a plain one.

Papers name their pairs (``Paper.pairs``). ``relength bench --paper`` measures and keeps them.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from relength.bench.speed import Step

KIND = "pairs"  # what tells these measurements from others
SECONDS = 2.0


class Ways(NamedTuple):
    """Two functions to time, ready to be called.

    ours    calls our way once
    other   calls the other way once
    limits  the least work of a call (:func:`relength.bench.speed.limits_of`), if of interest
    """

    ours: "Step"
    other: "Step"
    limits: Callable[[], dict[str, Any]] | None = None


class Pair(NamedTuple):
    """Two ways to do the same work.

    work   as tables print it
    ours   the way that should be fast
    other  what it is measured against
    aim    how many times as fast as the other it should be; below 1 where it does more
    build  makes both ready to be called
    """

    work: str
    ours: str
    other: str
    aim: float
    build: Callable[[], Ways]


def measure(pairs: Iterable[Pair], rounds: int, seconds: float = SECONDS) -> dict[str, Any]:
    """Calls per second of both ways of every pair, round after round, one thread.

    ``{"kind": "pairs", "rounds": 5, "pairs": {"a step": {"ours": "fused", "other": "plain",
    "aim": 5.0, "rates": [[31.2, …], [5.9, …]], "limits": …}, …}}``
    """
    from relength.bench import speed

    found = {}
    with speed.one_thread():
        for pair in pairs:
            ways = pair.build()
            rates: list[list[float]] = [[], []]
            for _ in range(rounds):
                for call, kept in zip(ways[:2], rates, strict=True):
                    kept.append(speed.repeated(call, seconds, "cpu"))
            found[pair.work] = {
                **{"ours": pair.ours, "other": pair.other, "aim": pair.aim, "rates": rates},
                "limits": ways.limits() if ways.limits else None,
            }
    return {"kind": KIND, "rounds": rounds, "pairs": found}
