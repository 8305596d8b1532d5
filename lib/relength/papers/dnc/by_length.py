"""Accuracy at each input length, with the memory of training and with a larger one.

A run is tested at every length from 2 to 100, and once more, at fewer lengths, after its memory of
50 slots was replaced by one of 500. For each memory the paper prints two tables: the longest inputs
at which the median over runs is above 95 %, and statistics of the runs' means over lengths.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from relength.papers.dnc.states import ABOVE, AVERAGED
from relength.report.runs import Runs
from relength.specs import published
from relength.specs.spec import RunSpec, measure_of

MEASURES = "search: hit rate, logic: truth values"  # accuracy where outputs are no digits


@dataclass(frozen=True)
class Memory:
    """The memory that runs were tested with, and where the paper prints their results.

    checkpoint  the recorded weights whose tests these are
    figure      accuracy against length
    longest     the table of longest inputs
    means       the table of means over lengths
    averaged    the shortest and the longest of these lengths; each that was tested counts once
    """

    checkpoint: str
    figure: str
    longest: str
    means: str
    averaged: tuple[int, int]

    def accuracies(self, record: Mapping[str, Any]) -> dict[int, float]:
        """{length: percent} of a run; empty if it was not tested with this memory."""
        kept, measure = record["checkpoints"].get(self.checkpoint), measure_of(record["spec"])
        tests = kept["tests"] if kept else {}
        return {int(test): 100 * metrics[measure] for test, metrics in tests.items()}

    def tested(self, spec: RunSpec) -> tuple[int, ...]:
        """The lengths that a run is tested at."""
        task = spec.task
        return task.extended_lengths if self is EXTENDED else tuple(map(int, task.tests))

    @property
    def span(self) -> str:
        """The lengths that are averaged, in words."""
        low, high = self.averaged
        return f"{low} to {high}"

    def ends(self, spec: RunSpec) -> tuple[int, int]:
        """The shortest and the longest length that a run is tested at, of those averaged."""
        low, high = self.averaged
        inside = [length for length in self.tested(spec) if low <= length <= high]
        return min(inside), max(inside)

    def slots(self, spec: RunSpec) -> int:
        """Slots of this memory."""
        return spec.training.test_slots if self is EXTENDED else spec.model.slots


TRAINED = Memory("selected", "dnc-fig-1", "dnc-table-2", "dnc-table-3", AVERAGED)
LAST = replace(TRAINED, checkpoint="last")  # the weights at the end, whatever length 30 says
EXTENDED = Memory("extended", "dnc-fig-2", "dnc-table-5", "dnc-table-6", (2, 450))


def curves(runs: Runs, memory: Memory = TRAINED) -> pd.DataFrame:
    """The accuracy of each run at each length. Columns: task, model, seed, length, accuracy (%)."""
    rows = [
        (task, model, record["spec"]["seed"], length, reached)
        for task in runs.tasks
        for model, arm in runs.rows
        for record in runs.cell(model, arm, task)
        for length, reached in memory.accuracies(record).items()
    ]
    data = pd.DataFrame(rows, columns=["task", "model", "seed", "length", "accuracy"])
    return data.astype({"seed": int, "length": int, "accuracy": float})


def longest(curve: pd.Series) -> int:
    """The longest length of a curve, accuracy by length, that is above ABOVE; 0 for none."""
    return int(max(curve.index[curve > ABOVE], default=0))


def summaries(runs: Runs, memory: Memory = TRAINED) -> pd.DataFrame:
    """Describe the runs of each controller and task, a row each; NaN where there are none.

    longest   of the median over runs
    each      the same of every run, in the order of seeds
    means     every run's mean over the lengths of the memory that are averaged
    printed   the longest input that the paper prints; the others, its statistics of means
    """
    data = curves(runs, memory)
    lengths, averages = _printed(memory.longest), _printed(memory.means)
    rows = []
    for task in runs.tasks:
        for model, _ in runs.rows:
            own = data[(data["task"] == task) & (data["model"] == model)]
            runs_of = own.pivot(index="length", columns="seed", values="accuracy")
            means = runs_of[runs_of.index.to_series().between(*memory.averaged)].mean()
            rows.append(
                {
                    "task": task,
                    "model": model,
                    "seeds": runs_of.shape[1],
                    "longest": longest(runs_of.median(axis=1)) if len(own) else np.nan,
                    "each": [longest(runs_of[seed]) for seed in runs_of],
                    "means": means.tolist(),
                    "median": means.median(),
                    "max": means.max(),
                    "mean": means.mean(),
                    "sd": means.std(),
                    "printed": lengths.get((model, task, ""), np.nan),
                    **{
                        f"printed_{name}": averages.get((model, task, name), np.nan)
                        for name in ("median", "max", "mean", "sd")
                    },
                }
            )
    return pd.DataFrame(rows)


@cache
def _printed(artifact: str) -> dict[tuple[str, str, str], float]:
    """{(row, task, statistic): value}; the spread of a mean is its sd."""
    found = {}
    for cell in published.table(artifact).itertuples():
        found[cell.row, cell.task, cell.statistic] = cell.value
        if cell.statistic == "mean":
            found[cell.row, cell.task, "sd"] = cell.spread
    return found


def gains(runs: Runs) -> pd.DataFrame:
    """The gain in length from the larger memory, a row per task and controller.

    Columns: task, model, seeds; small and large (longest inputs, of the median); small_below and
    large_below (the next length that was tested, infinite for none: the limit is below it); ratio
    (large over small); each (the ratio of every run); printed_small, printed_large, printed_ratio.
    A ratio to a length of 0 is NaN.
    """
    small, large = (summaries(runs, memory) for memory in (TRAINED, EXTENDED))
    specs = {spec.task.name: spec for spec in runs.specs}
    data = small[["task", "model", "seeds"]].assign(
        small=small["longest"],
        large=large["longest"],
        printed_small=small["printed"],
        printed_large=large["printed"],
        each=[
            [_ratio(*pair) for pair in zip(few, many, strict=True)] if len(few) == len(many) else []
            for few, many in zip(small["each"], large["each"], strict=True)
        ],
    )
    return data.assign(
        small_below=[_next(TRAINED, specs[c.task], c.small) for c in data.itertuples()],
        large_below=[_next(EXTENDED, specs[c.task], c.large) for c in data.itertuples()],
        ratio=[_ratio(cell.small, cell.large) for cell in data.itertuples()],
        printed_ratio=[
            _ratio(cell.printed_small, cell.printed_large) for cell in data.itertuples()
        ],
    )


def _next(memory: Memory, spec: RunSpec, length: float) -> float:
    """The next length that is tested with a memory, infinite for none; NaN of NaN."""
    longer = (float(n) for n in memory.tested(spec) if n > length)
    return length if np.isnan(length) else min(longer, default=np.inf)


def _ratio(small: float, large: float) -> float:
    return large / small if small else np.nan
