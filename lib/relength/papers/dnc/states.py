"""Numbers for what states, gates and a larger memory do: Tables II and V, Figures 3, 4, 6 to 19.

A record keeps cell states of 16 samples at length 30, before any compression, and histograms of
gates at length 15 (:func:`relength.training.traces.memory`). Reading includes the step of the flag.
All numbers are percentages, means over samples:

state_returns         loops: how often states return, against steps in an order of chance (below)
state_return_time     steps until a state first returns, against the same in an order of chance;
                      none where no state returns
state_symbols         variance of the states while reading that the symbol just read explains;
                      100 where each symbol has a place of its own; little where states also drift
state_neighbours      clusters: how many of the five nearest states of the samples were reached by
                      the same symbol; 0 where as many as if the samples' symbols at each step were
                      exchanged, 100 where all. Drift leaves it alone. Added after the first runs
state_ends            spread of the samples' states at the flag, against all states while reading;
                      small where samples end in a small region
state_scatter         the same at the tenth step
state_moves           length of the steps while writing, from the fifth on, against those while
                      reading; small where states settle
state_returns_writing as state_returns, while writing
write_gate_reading    mean of the allocation gate while reading: 100 writes by allocation, 0 by
                      content; write_gate_writing the same while writing
read_gate_reading     mean share of content in the read modes: 100 reads by content, 0 along the
                      links; read_gate_writing the same while writing
write_mixed           how far the allocation gate's mean is from the nearer end of its range, in the
                      phase in which it is nearer: 0 for one way alone, 50 for both in equal parts
modes_mixed           100 where both are mixed: write_mixed, and the same of the read modes, are 10
                      or more; else 0
write_by_phase        100 where more than half of the allocation gate's mean is allocation while
                      reading, and content while writing; else 0
read_by_phase         100 where more than half of the read modes go along the links while reading,
                      and by content while writing; else 0
gates_peaked          share of a histogram in its two fullest neighbouring bins, of 20; mean of the
                      four histograms
loops_accompany       100 where a run generalises and has loops, 0 where it does one of the two;
                      none where it does neither, which says nothing of what accompanies what
peaks_accompany       100 where a run generalises and has peaked gates, or does neither; else 0
perfect_and_settles   100 where a run is nearly perfect, and state_ends is at most 50; else 0
learned, generalises, 100 of runs that do, or are; none of others, so that claims can leave these
poor, perfect         out
memory_gain           the longest input above 95 % with the larger memory, against that with the
                      memory of training; none where this is shorter than the longest one trained on
memory_keeps          how much of what an input may exceed the longest one trained on by, with the
                      memory of training, it may with the larger one; none where that is nothing

A run has learned if its longest input above 95 % is no shorter than the longest one trained on. It
generalises if its mean accuracy over lengths 2 to 45 is at least 90 %, and is poor otherwise; from
95 % on it is nearly perfect, from 99 % on perfect. It has loops from 50 on, clusters from
state_neighbours of 80 on, and peaked gates from 50 on; its modes are mixed from 10 on, and it
settles where state_ends is at most 50: assumptions, as the paper says these words of pictures.

**Loops.** A state *returns* at a later step if both states are among the closest tenth of all pairs
of its phase, and a state between them, not that close to either, is at least as far from both as
half of all pairs are apart, and at least a quarter of the spread of all states of both phases, so
that the trembling of states that have come to rest is none. Steady movement never returns. The
count is compared with its mean over the same states in shuffled orders: 0 is a path that never
comes back, 100 one that comes back as often as if time played no role. The return time of a state
is the number of steps to its first return; its mean over the states that return is compared with
the same orders: at 100 they return as late as by chance, below it sooner.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from relength.kept import digest, kept
from relength.runs.store import CODE as RECORDS
from relength.runs.store import accuracies
from relength.specs.spec import measure_of
from relength.training.traces import decoded

AVERAGED = (2, 45)  # lengths of Table III
GENERALISES, NEARLY_PERFECT, PERFECT = 90.0, 95.0, 99.0  # percent, see above
LOOPS, CLUSTERED, PEAKED, MIXED, SETTLES = 50.0, 80.0, 50.0, 10.0, 50.0
CLOSE, FAR = 0.1, 0.5  # quantiles of the distances of all pairs
LEFT = 0.25  # of the spread of all states: nearer states have not been left
SHUFFLES = 20  # orders that the count of returns is compared with, and of symbols in a step
NEAREST = 5  # states that are asked for the symbol of a state
DIGITS = 6  # after the point, of a percentage: what rounding in other orders leaves alone
EARLY, SETTLED = 9, 4  # steps, counted from 0
ABOVE = 95.0  # percent, Tables II and V
PHASES = {"encoding": "reading", "decoding": "writing"}
CODE = ("papers.dnc.states", "training.traces", *RECORDS)  # that the numbers of states follow from


def shares(record: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """{test: {metric: percent}} of a recorded run; empty if it keeps neither gates nor states."""
    memory = record.get("memory")
    if not memory:
        return {}
    accuracy = mean_accuracy(record)
    generalises = accuracy >= GENERALISES
    modes = gates(memory["modes"])
    modes["peaks_accompany"] = 100.0 * ((modes["gates_peaked"] >= PEAKED) == generalises)
    modes["generalises" if generalises else "poor"] = 100.0
    if accuracy >= PERFECT:
        modes["perfect"] = 100.0
    found = {memory["modes"]["test"]: modes | reach(record, int(memory["modes"]["test"]))}
    if "states" in memory:
        states = movement(memory["states"])
        loops = states["state_returns"] >= LOOPS
        if loops or generalises:
            states["loops_accompany"] = 100.0 * (loops and generalises)
        settles = states["state_ends"] <= SETTLES
        states["perfect_and_settles"] = 100.0 * (settles and accuracy >= NEARLY_PERFECT)
        found[memory["states"]["test"]] = found.get(memory["states"]["test"], {}) | states
    return found


def mean_accuracy(record: Mapping[str, Any]) -> float:
    """A run's mean accuracy over lengths 2 to 45, in percent, as Table III averages it."""
    shortest, longest = AVERAGED
    reached = [x for n, x in accuracies(record).items() if shortest <= int(n) <= longest]
    return 100 * float(np.mean(reached))


def reach(record: Mapping[str, Any], trained: int) -> dict[str, float]:
    """Tell that a run has learned, and how long its inputs get with both memories; else nothing.

    trained: the longest length trained on
    """
    small = longest(record, "selected")
    if small < trained:
        return {}
    found = {"learned": 100.0}
    if "extended" not in record["checkpoints"]:
        return found
    large = longest(record, "extended")
    found |= {"memory_gain": 100 * large / small}
    if small > trained:
        found["memory_keeps"] = 100 * max(large - trained, 0) / (small - trained)
    return found


def longest(record: Mapping[str, Any], checkpoint: str) -> int:
    """A run's longest input above 95 % in tests of a checkpoint; 0 for none."""
    measure, tests = measure_of(record["spec"]), record["checkpoints"][checkpoint]["tests"]
    return max((int(n) for n, found in tests.items() if 100 * found[measure] > ABOVE), default=0)


def gates(modes: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of the histograms of one run."""
    found, peaked = {}, []
    for gate in ("write", "read"):
        for phase, name in PHASES.items():
            bins = np.array(modes[gate][phase], dtype=float)
            bins /= bins.sum()
            middle = (np.arange(len(bins)) + 0.5) / len(bins)
            found[f"{gate}_gate_{name}"] = 100 * float(bins @ middle)
            peaked.append(max(a + b for a, b in pairwise(bins)))
    mixed = {
        gate: min(
            min(mean, 100 - mean)
            for mean in (found[f"{gate}_gate_{phase}"] for phase in PHASES.values())
        )
        for gate in ("write", "read")
    }
    allocates = found["write_gate_reading"] > 50 > found["write_gate_writing"]
    follows = found["read_gate_reading"] < 50 < found["read_gate_writing"]
    return found | {
        "write_mixed": mixed["write"],
        "modes_mixed": 100.0 * (min(mixed.values()) >= MIXED),
        "write_by_phase": 100.0 * allocates,
        "read_by_phase": 100.0 * follows,
        "gates_peaked": 100 * float(np.mean(peaked)),
    }


def movement(states: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of the recorded states of one run."""
    recorded = Recorded(
        *(states["values"], tuple(states["shape"]), states["unit"], states["read_steps"]),
        *(tuple(states["read"]), "decoding" in states["portraits"]),
    )
    return dict(_movement(recorded))


class Recorded(NamedTuple):
    """The states that a record keeps of one run; has_path: whether writing has a path."""

    values: str
    shape: tuple[int, ...]
    unit: float
    read_steps: int
    read: tuple[str, ...]
    has_path: bool


@cache  # several figures and tables of a page ask for the same runs
def _movement(recorded: Recorded) -> dict[str, float]:
    """The numbers of a run, kept for other pages under a name that is a digest of its states."""
    name = f"movement-{digest(repr(recorded)).hex()}"
    return kept(name, lambda: _measured(recorded), code=CODE)


def _measured(recorded: Recorded) -> dict[str, float]:
    values, end = decoded(recorded._asdict()), recorded.read_steps
    reading, writing = values[:, :end], values[:, end:]
    least = LEFT * _spread(values)
    loops = returns(reading, least)
    found = {
        "state_returns": loops.often,
        **({"state_return_time": loops.late} if loops.late is not None else {}),
        "state_symbols": explained(reading, recorded.read),
        "state_neighbours": neighbours(reading, recorded.read),
        "state_ends": _spread(reading[:, -1]) / _spread(reading),
        "state_scatter": _spread(reading[:, min(EARLY, end - 1)]) / _spread(reading),
    }
    if recorded.has_path:  # answers of one step or of several lengths have no path
        still = writing[:, min(SETTLED, writing.shape[1] - 2) :]
        found["state_moves"] = _step(still) / _step(reading)
        found["state_returns_writing"] = returns(writing, least).often
    return {name: round(100 * value, DIGITS) for name, value in found.items()}


class Loops(NamedTuple):
    """The number of returns of states, and their time, per shuffled orders of the same states.

    often  returns; 1 is chance
    late   steps to the first return; None where no state returns, or none does by chance
    """

    often: float
    late: float | None


def returns(states: np.ndarray, least: float = 0.0) -> Loops:
    """Returns of the samples of states (B, S, D), per those of shuffled orders.

    least: a distance that a state has to have been left by
    """
    orders = _orders(states.shape[1])
    count = by_chance = 0.0
    times: list[int] = []
    times_by_chance: list[int] = []
    for sample in states:
        apart = np.linalg.norm(sample[:, None] - sample, axis=-1)
        pairs = apart[np.triu_indices(len(sample), 1)]
        close, far = np.quantile(pairs, [CLOSE, FAR])
        far = max(far, least)
        found = returned(apart[orders[:, :, None], orders[:, None]], close, far)
        own, shuffled = found[0], found[1:]
        count += own.sum()
        by_chance += shuffled.sum() / SHUFFLES
        times += first_returns(own)
        times_by_chance += first_returns(shuffled)
    often = float(count / by_chance) if by_chance else 0.0
    late = float(np.mean(times) / np.mean(times_by_chance)) if times and times_by_chance else None
    return Loops(often, late)


def returned(apart: np.ndarray, close: float, far: float) -> np.ndarray:
    """Tell of pairs of steps (..., S, S), the earlier first, whether the later one is a return.

    Both are at most `close`, with a step between them at least `far` from both. That step is never
    one that counts as close, as in paths whose states are mostly equal.

    apart: distances (..., S, S) of states, in the order of their steps

    >>> places = np.array([0, 5, 0, 0, 5])
    >>> pairs = returned(np.abs(places[:, None] - places), close=0, far=5)
    >>> int(pairs.sum()), first_returns(pairs)
    (3, [2, 3])
    """
    out = np.triu((apart >= far) & (apart > close), 1).astype(np.float32)
    left = out @ out > 0  # both ends were far from a step between them
    return left & (apart <= close)


def first_returns(pairs: np.ndarray) -> list[int]:
    """Steps to the first return of each state that has one, of pairs as from :func:`returned`."""
    with_any = pairs.any(axis=-1).nonzero()
    return (pairs[with_any].argmax(axis=-1) - with_any[-1]).tolist()


@cache
def _orders(steps: int) -> np.ndarray:
    """Orders (1 + SHUFFLES, S) of the steps: their own, then shuffled ones."""
    random = np.random.default_rng(0)
    return np.array([range(steps), *(random.permutation(steps) for _ in range(SHUFFLES))])


def explained(states: np.ndarray, letters: Sequence[str]) -> float:
    """Share of the variance of states (B, S, D) that the letter of each step explains."""
    flat = states.reshape(-1, states.shape[-1])
    names = np.array([letter for text in letters for letter in text])
    total = ((flat - flat.mean(0)) ** 2).sum()
    within = sum(
        ((flat[names == name] - flat[names == name].mean(0)) ** 2).sum()
        for name in np.unique(names)  # in one order: a sum in another differs in its last digits
    )
    return float(1 - within / total) if total else 0.0


def neighbours(states: np.ndarray, letters: Sequence[str]) -> float:
    """Share of the nearest states of states (B, S, D) that have their letter, beyond chance.

    1 if all have; 0 if as many as with the letters of each step in another order of the samples.
    """
    flat = states.reshape(-1, states.shape[-1])
    apart = np.linalg.norm(flat[:, None] - flat, axis=-1)
    np.fill_diagonal(apart, np.inf)
    near = apart.argsort(axis=1, kind="stable")[:, :NEAREST]  # ties as they come, on any machine
    names = np.array([[*text] for text in letters])  # (B, S)
    random = np.random.default_rng(0)
    share, *others = (
        float((given[near] == given[:, None]).mean())
        for given in (
            order.ravel()
            for order in (names, *(random.permuted(names, axis=0) for _ in range(SHUFFLES)))
        )
    )
    chance = float(np.mean(others))
    return (share - chance) / (1 - chance) if chance < 1 else 0.0


def _spread(states: np.ndarray) -> float:
    """Root mean square distance of states from their mean."""
    flat = states.reshape(-1, states.shape[-1])
    return float(np.sqrt(((flat - flat.mean(0)) ** 2).sum(-1).mean())) or 1e-12


def _step(states: np.ndarray) -> float:
    """Mean length of the steps of paths (B, S, D)."""
    return float(np.linalg.norm(np.diff(states, axis=1), axis=-1).mean()) or 1e-12
