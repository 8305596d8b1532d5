"""Measure what an answer costs by the length of its context: seconds per input, and memory.

Table 6 has MemReasoner beside its base decoder; here the baselines of Table 2 stand beside them.
All answer one question of BABILong at a time on one core, with weights that nobody has trained,
since they do not change the time. MemReasoner also answers all questions of a length, as tests do,
where a sentence that several contexts share is encoded once. Each round goes through all lengths,
so that whatever else a machine does disturbs them alike. ``relength bench --paper memreasoner``
measures and keeps it beside the records; the page shows what is kept.
"""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from relength.models import MODELS
from relength.papers.memreasoner.experiments import one_fact
from relength.specs.spec import RunSpec
from relength.tasks.facts import ANSWER_WORDS, LENGTHS, OneFact

if TYPE_CHECKING:
    from torch import nn

    from relength.tasks.batch import FactsToAnswer

KIND = "contexts"  # what tells these measurements from others
OURS, PLAIN = "MemReasoner", "GPT"
# Each model of Table 2 at scale reduced, and the lengths that it can read.
SPECS: dict[str, RunSpec] = {
    spec.model.name: spec for spec in one_fact("reduced", 0) if spec.model.arm == "paper"
}
READ: dict[str, tuple[str, ...]] = {name: spec.task.lengths for name, spec in SPECS.items()}
INPUTS = 3  # per length, each in a round of its own, over and over
SET = SPECS[OURS].task.long_size  # questions of a length that are answered together, as in tests
TOGETHER = f"{OURS}, {SET} inputs"


def measure(rounds: int = 5) -> dict[str, Any]:
    """Seconds per input by model and length, in rounds, one thread.

    ``{"kind": "contexts", "seconds": {"MemReasoner": {"0k": [0.004, …], …}, …}, "lines":
    {"0k": 5.7, …}, "memory_bytes": {"MemReasoner": {"0k": 4e8, …}, …}, …}``, of a process of its
    own for each length of :func:`held_at`. Seconds of :data:`TOGETHER` are those of a whole set,
    over its questions, and its memory is that of the whole set.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        task = OneFact(long_size=INPUTS)
        inputs = {length: _alone(task, length) for length in LENGTHS}
        models = {name: _model(name, task) for name in READ}
        seconds = {name: {n: [] for n in lengths} for name, lengths in READ.items()}
        seconds[TOGETHER] = {n: [] for n in READ[OURS]}
        whole = OneFact(long_size=SET)
        sets = {n: whole.encode({n: whole.episodes(n, 0)})[n] for n in READ[OURS]}
        for turn in range(rounds + 1):
            for length, questions in sets.items():
                took = _timed(models[OURS], questions)
                if turn:
                    seconds[TOGETHER][length].append(took / SET)
            for name, lengths in READ.items():
                _timed(models[name], inputs[lengths[0]][0])  # another model was at work before
                for length in lengths:
                    took = _timed(models[name], inputs[length][turn % INPUTS])
                    if turn:  # the first round warms up
                        seconds[name][length].append(took)
    finally:
        torch.set_num_threads(threads)
    lines = {n: float(np.mean([one.inputs.shape[1] for one in inputs[n]])) for n in LENGTHS}
    memory = {
        name: {n: _in_a_process_of_its_own(name, n) for n in held_at(read)}
        for name, read in (*READ.items(), (TOGETHER, READ[OURS]))
    }
    return {
        **{"kind": KIND, "rounds": rounds, "seconds": seconds, "lines": lines},
        "memory_bytes": memory,
    }


def held_at(lengths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the shortest, the middle and the longest of some lengths: there memory is measured."""
    return tuple(dict.fromkeys((lengths[0], lengths[len(lengths) // 2], lengths[-1])))


def _in_a_process_of_its_own(name: str, length: str) -> int:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_most_memory, name, length).result()


def _most_memory(name: str, length: str) -> int:
    """Bytes that this process has held at most, once it has answered a question, or a set."""
    import torch

    from relength.bench.speed import most_held

    torch.set_num_threads(1)
    if name == TOGETHER:
        task = OneFact(long_size=SET)
        batch, name = task.encode({length: task.episodes(length, 0)})[length], OURS
    else:
        task = OneFact(long_size=1)
        batch = _alone(task, length)[0]
    _timed(_model(name, task), batch)
    return most_held()


def _alone(task: OneFact, length: str) -> "list[FactsToAnswer]":
    """The inputs of a length, each a batch with no sentences but its own."""
    episodes = task.episodes(length, 0)
    return [task.encode({length: [episode]})[length] for episode in episodes]


def _model(name: str, task: OneFact) -> "nn.Module":
    return MODELS[name].module(SPECS[name].model, *task.shape).initialise(0).eval()


def _timed(model: "nn.Module", batch: "FactsToAnswer") -> float:
    from relength.training.evaluate import unchanged

    with unchanged(model):  # codes are kept within a batch, as in tests
        started = time.perf_counter()
        model.generate(batch, ANSWER_WORDS)
        return time.perf_counter() - started


def slopes(measured: dict[str, Any]) -> np.ndarray:
    """The power of lines with which MemReasoner's time grows, per round: 1 is linear, 2 quadratic.

    The slope of logarithms by least squares, over the lengths from 4k on: below, what does not
    depend on length weighs as much.
    """
    lengths = LENGTHS[LENGTHS.index("4k") :]
    lines = np.log([measured["lines"][n] for n in lengths])
    seconds = np.log([measured["seconds"][OURS][n] for n in lengths])  # (lengths, rounds)
    return np.polyfit(lines, seconds, 1)[0]


def ratios(measured: dict[str, Any], length: str) -> np.ndarray:
    """MemReasoner's seconds over those of the plain decoder at a length, round by round."""
    own, other = (np.array(measured["seconds"][name][length]) for name in (OURS, PLAIN))
    return own / other
