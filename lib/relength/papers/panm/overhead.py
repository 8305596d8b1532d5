"""Measure what PANM costs on top of its backbone: ratios of training speed, side by side.

The paper says 70 to 80 % of the backbone's speed (Appendix D). Both models of a pair train on Copy,
one batch of the paper's at a time, in one process and one thread, taking turns, so that a noisy
machine disturbs them alike. ``relength bench --paper panm`` measures and keeps it beside the
records; pages show what is kept, because a page must not depend on the machine that renders it.
"""

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from relength.models import MODELS
from relength.models.baselines.configs import TransformerConfig
from relength.streams import stream
from relength.tasks.algorithmic import Copy
from relength.tasks.batch import Batch

if TYPE_CHECKING:
    from relength.models.free_running import FreeRunning

KIND = "pointers"  # what tells these measurements from those of training speed
LENGTH, BATCH_SIZE = 9, 128
STEPS = 3  # of each model in turn, in every round after one that warms up
Build = Callable[[int, int], "FreeRunning"]  # from channels of an input and classes


class Pair(NamedTuple):
    """A model without pointers, one with them on the same encoder, and the printed share."""

    name: str
    bare: Build
    with_pointers: Build
    printed: float | None


def _named(name: str, **fields: Any) -> Build:
    model = MODELS[name]
    config = model.config(name=name, **fields)
    return lambda channels, classes: model.module(config, channels, classes)


def _transformer(layers: int) -> Pair:
    config = TransformerConfig(layers=layers, dropout=0.0)

    def with_pointers(channels: int, classes: int) -> "FreeRunning":
        from relength.papers.panm.transformer_panm import TransformerPANM

        return TransformerPANM(config, channels, classes)

    return Pair(
        f"Transformer, {layers} layers",
        _named("Transformer", layers=layers, dropout=0.0),
        with_pointers,
        77 / 90 if layers == 2 else None,
    )


LSTM = "LSTM, 256 units"  # the text's encoder of PANM
OF_THE_TABLES = "LSTM, 512 units"  # the baseline, which is no backbone of the PANM beside it
MORE_POINTERS = "PANM, 3 + 2 pointers for 2 + 1"  # of Mode 1 and Mode 2; PANM is its own backbone
PAIRS = (
    Pair(LSTM, _named("LSTM", hidden_size=256), _named("PANM", arm="paper"), 15 / 20),
    Pair(OF_THE_TABLES, _named("LSTM"), _named("PANM", arm="paper"), None),
    Pair(
        "GRU with attention, 128 units",
        _named("Content Attention", hidden_size=128),
        _named("PANM"),
        None,
    ),
    _transformer(2),
    _transformer(6),
    Pair(
        MORE_POINTERS,
        _named("PANM", arm="paper"),
        _named("PANM", arm="paper", n_mode1=3, n_mode2=2),
        None,
    ),
)
NO_BACKBONE = (OF_THE_TABLES, MORE_POINTERS)


def measure(rounds: int = 5) -> dict[str, Any]:
    """Steps per second of both models of every pair, in ``rounds`` rounds, one thread.

    ``{"kind": "pointers", "pairs": {"LSTM, 256 units": {"bare": [20.1, …], "with": [15.2, …],
    "parameters": [1083402, 1107210], "printed": 0.75}, …}, …}``
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        pairs = {pair.name: _measured(pair, rounds) for pair in PAIRS}
    finally:
        torch.set_num_threads(threads)
    return {
        "kind": KIND,
        "task": Copy().name,
        "length": LENGTH,
        "batch_size": BATCH_SIZE,
        "rounds": rounds,
        "pairs": pairs,
    }


def _measured(pair: Pair, rounds: int) -> dict[str, Any]:
    task = Copy()
    batch = task.sample(stream(0, "data", "overhead"), BATCH_SIZE, LENGTH)
    models = [build(*task.shape).initialise(0) for build in (pair.bare, pair.with_pointers)]
    steps = [_trainer(model, batch) for model in models]
    rates: list[list[float]] = [[], []]
    for number in range(rounds + 1):
        for step, kept in zip(steps, rates, strict=True):
            started = time.perf_counter()
            for _ in range(STEPS):
                step()
            if number:  # the first round compiles and warms up
                kept.append(STEPS / (time.perf_counter() - started))
    return {
        "bare": rates[0],
        "with": rates[1],
        "parameters": [sum(p.numel() for p in model.parameters()) for model in models],
        "printed": pair.printed,
    }


def _trainer(model: "FreeRunning", batch: Batch) -> Callable[[], None]:
    """One optimiser step as the released protocol takes it."""
    import torch

    from relength.tasks.losses import cross_entropy

    optimiser = torch.optim.RMSprop(model.parameters(), lr=1e-4, alpha=0.95, momentum=0.9)

    def step() -> None:
        optimiser.zero_grad()
        cross_entropy(model(batch), batch).backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 10.0)
        optimiser.step()

    return step


def shares(pair: dict[str, Any]) -> list[float]:
    """Divide the time with pointers by the time without, round by round."""
    return [own / bare for own, bare in zip(pair["with"], pair["bare"], strict=True)]


def share(pair: dict[str, Any]) -> float:
    """The median of :func:`shares`."""
    return statistics.median(shares(pair))
