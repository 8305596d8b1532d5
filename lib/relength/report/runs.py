"""The runs that a page shows: those of one experiment at one scale, laid out as rows and cells."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from relength import claims
from relength.papers import Experiment
from relength.report.freshness import Freshness, freshness
from relength.spec import RunSpec, Scale, row_name
from relength.store import Record, Store, frame


@dataclass(frozen=True)
class Runs:
    """What is recorded of an experiment's own specs; specs without a record are simply missing.

    records    the usable ones of ``specs``: one execution per spec, none that is stale
    every      all of the experiment in the store: other scales, repeated executions, failures
    freshness  how many of ``records`` today's code is known to reproduce
    """

    experiment: Experiment
    scale: Scale
    specs: tuple[RunSpec, ...]
    records: tuple[Record, ...]
    every: tuple[Record, ...]
    freshness: Freshness

    @classmethod
    def read(cls, experiment: Experiment, scale: Scale, seeds: int, store: Store) -> "Runs":
        """The runs of the first ``seeds`` seeds that a store has."""
        specs = tuple(experiment.specs(scale, range(seeds)))
        wanted = {spec.key for spec in specs}
        every = tuple(store.records(experiment.name))
        records = tuple(r for r in store.usable(experiment.name) if r["key"] in wanted)
        return cls(experiment, scale, specs, records, every, freshness(store, records))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per run, checkpoint and test (:func:`relength.store.frame`)."""
        return frame(self.records)

    @cached_property
    def selected(self) -> pd.DataFrame:
        """The rows of the checkpoint that the paper's rule selects, which claims judge."""
        return self.frame[self.frame["checkpoint"] == "selected"]

    @cached_property
    def ledger(self) -> pd.DataFrame:
        """Claims on the experiment's artifacts with the verdicts that exactly these runs give."""
        every = claims.ledger(claims.load(self.experiment.paper), self.frame)
        return every[every["artifact"].isin(self.experiment.artifacts)]

    @cached_property
    def rows(self) -> list[tuple[str, str]]:
        """(model, arm) of every row, the judged arm's first."""
        pairs = dict.fromkeys((spec.row, spec.model.arm) for spec in self.specs)
        return sorted(pairs, key=lambda pair: pair[1] != self.experiment.judged_arm)

    @cached_property
    def tests(self) -> dict[str, tuple[str, ...]]:
        """{task: names of its tests}, in distribution first."""
        return {spec.task.name: spec.task.tests for spec in self.specs}

    @property
    def tasks(self) -> list[str]:
        """Tasks in the order of the experiment's grid."""
        return list(self.tests)

    @cached_property
    def _cells(self) -> dict[tuple[str, str, str], list[Record]]:
        cells: dict[tuple[str, str, str], list[Record]] = {}
        for record in sorted(self.records, key=lambda r: r["spec"]["seed"]):
            spec = record["spec"]
            cell = (row_name(spec["model"]), spec["model"]["arm"], spec["task"]["name"])
            cells.setdefault(cell, []).append(record)
        return cells

    def cell(self, model: str, arm: str, task: str) -> list[Record]:
        """The runs of one cell by seed; empty where nothing is recorded."""
        return self._cells.get((model, arm, task), [])

    def values(
        self, model: str, arm: str, task: str, test: str, metric: str = "exact_match"
    ) -> list[float]:
        """One metric of one cell at one test, a number per seed; accuracies in percent."""
        scale = 1 if metric == "edit_distance" else 100
        return [
            scale * r["checkpoints"]["selected"]["tests"][test][metric]
            for r in self.cell(model, arm, task)
        ]

    def panels(self) -> Iterator[tuple[int, int, list[Record]]]:
        """Row number, column number and runs of every cell."""
        for i, (model, arm) in enumerate(self.rows):
            for j, task in enumerate(self.tasks):
                yield i, j, self.cell(model, arm, task)
