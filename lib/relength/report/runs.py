"""The runs that a page shows: those of one experiment at one scale, laid out as rows and cells."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

import numpy as np
import pandas as pd

from relength.kept import digest, kept
from relength.report.freshness import Freshness, State, made_by, states
from relength.report.style import ARM_LABELS, row_label, title
from relength.runs.store import (
    Record,
    Store,
    accuracies,
    cause,
    digest_of,
    frame,
    on_generated_data,
    usable,
)
from relength.specs import registry
from relength.specs.experiments import Experiment, page_of
from relength.specs.margins import load_margins
from relength.specs.spec import RunSpec, Scale, row_name
from relength.tasks.base import Task
from relength.tasks.metrics import Metric
from relength.verdicts import claims, judged
from relength.verdicts.judged import own_records

MODULE = re.compile(r"^(\w+\.)+")  # before the name of an exception


def wanted_specs(
    experiment: Experiment,
    scale: Scale,
    seeds: int,
    artifacts: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
) -> list[RunSpec]:
    """The specs of an experiment's first seeds, or those for some artifacts and of some models."""
    return [
        spec
        for spec in experiment.specs(scale, range(seeds))
        if (artifacts is None or any(experiment.makes(name, spec) for name in artifacts))
        and (models is None or spec.model.name in models)
    ]


@lru_cache(maxsize=1000)  # to list splits, some tasks count through all of their data
def _tests_of(task: Task) -> tuple[str, ...]:
    return task.tests


@cache
def _shown(metric: str) -> Callable[[float], float]:
    return registry.metric(metric).shown


@dataclass(frozen=True)
class Runs:
    """The recorded runs of an experiment's own specs; specs without a record are simply missing.

    specs      those that the page is about, all of a grid or some
    records    the usable ones of ``specs``: one execution per spec, none that is stale
    every      all of the experiment in the store: other scales, repeated executions, failures
    further    of the same specs, later usable executions than those among ``records``
    states     {run_id: whether today's code is known to give it again} of ``records``
    artifacts  the tables and figures that they are shown for, and whose claims are judged
    page       the notebook that shows them
    store      where they are recorded
    """

    experiment: Experiment
    scale: Scale
    specs: tuple[RunSpec, ...]
    records: tuple[Record, ...]
    every: tuple[Record, ...]
    further: tuple[Record, ...]
    states: Mapping[str, State]
    artifacts: tuple[str, ...]
    page: str
    store: Store

    @classmethod
    def read(
        cls,
        experiment: Experiment,
        scale: Scale,
        seeds: int,
        store: Store,
        artifacts: Sequence[str] | None = None,
        models: Sequence[str] | None = None,
    ) -> "Runs":
        """The runs of the first ``seeds`` seeds that a store has.

        artifacts  only the runs that these are made from, and their claims; else the whole grid
        models     only runs of these models
        """
        specs = wanted_specs(experiment, scale, seeds, artifacts, models)
        return cls.of_specs(experiment, scale, specs, store, artifacts)

    @classmethod
    def of_specs(
        cls,
        experiment: Experiment,
        scale: Scale,
        specs: Iterable[RunSpec],
        store: Store,
        artifacts: Sequence[str] | None = None,
    ) -> "Runs":
        """The runs of these specs that a store has.

        artifacts  what they are shown for; else all that the experiment makes
        """
        specs = tuple(specs)
        wanted = {spec.key for spec in specs}
        every = tuple(
            record
            for record in store.records(*experiment.files)
            if record["experiment"] == experiment.name or experiment.owns(record)
        )
        records, further = (
            tuple(record for record in experiment.own(found) if record["key"] in wanted)
            for found in (store.usable(*experiment.files), store.further(*experiment.files))
        )
        shown = tuple(experiment.artifacts if artifacts is None else artifacts)
        own = experiment.page or experiment.name
        page = page_of(shown[0], own) if shown else own
        known = states(store, made_by(records))
        return cls(experiment, scale, specs, records, every, further, known, shown, page, store)

    def part(self, artifact: str) -> "Runs":
        """The runs that one of its tables is made from."""
        specs = tuple(spec for spec in self.specs if self.experiment.makes(artifact, spec))
        keys = {spec.key for spec in specs}
        records = tuple(record for record in self.records if record["key"] in keys)
        return replace(self, specs=specs, records=records, artifacts=(artifact,))

    def only(self, records: Iterable[Record]) -> "Runs":
        """Keep only some records of this page: those that an exhibit is made from."""
        return replace(self, records=tuple(records))

    def with_later_seeds(self) -> "Runs":
        """Add the runs of stage two to this page, for exhibits that choose among runs."""
        records = self.records + self._stage_two(own_records(self.experiment, self.store))
        return replace(self, records=records, states=states(self.store, made_by(records)))

    def of(self, rows: Container[tuple[str, str]], tasks: Container[str]) -> "Runs":
        """:meth:`only` the records of some rows, (model, arm), and tasks."""
        return self.only(
            record
            for (model, arm, task), cell in self._cells.items()
            if (model, arm) in rows and task in tasks
            for record in cell
        )

    @cached_property
    def freshness(self) -> Freshness:
        """Count those of ``records`` that today's code is known to reproduce."""
        return Freshness.of(self.states[record["run_id"]] for record in self.records)

    @cached_property
    def generated(self) -> int:
        """Count those of ``records`` that were trained on data made in place of published files."""
        return sum(map(on_generated_data, self.records))

    @property
    def on_generated_data(self) -> str:
        """A sentence that says how many are :attr:`generated`; "" for none.

        It begins with a space, to follow another.
        """
        if not self.generated:
            return ""
        return (
            f" {self.generated} of the {len(self.records)} runs shown here "
            f"{'was' if self.generated == 1 else 'were'} trained on generated data, because the "
            "published files were not at hand."
        )

    @property
    def shown(self) -> Metric:
        """The metric of its tables."""
        return registry.metric(self.experiment.shown)

    @property
    def measured(self) -> Metric:
        """The metric that its tasks are measured by."""
        return registry.metric(self.experiment.measure)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per run, checkpoint and test (:func:`relength.runs.store.frame`)."""
        return frame(self.records)

    @cached_property
    def selected(self) -> pd.DataFrame:
        """The rows of the checkpoint that the paper's rule selects, which claims judge."""
        return self.frame[self.frame["checkpoint"] == "selected"]

    @cached_property
    def ledger(self) -> pd.DataFrame:
        """Claims on the artifacts with the verdicts that these runs give.

        Further seeds count that stage two of a claim asks for, where the runs are those of stage
        one. They are rows of the paper's ledger, unless that is judged by other runs of the
        experiment, too, as those of another scale.
        """
        paper, every = self.experiment.paper, own_records(self.experiment, self.store)
        judging = self.records + self._stage_two(every)
        if {r["run_id"] for r in every} == {r["run_id"] for r in judging}:
            whole = judged.ledger(paper, self.store)
            mine = whole["claim"].isin([claim.id for claim in self._claims])
            return whole[mine].reset_index(drop=True)
        shown, keys = digest(*self.artifacts).hex()[:8], {record["key"] for record in judging}
        again = self.experiment.own(self.store.further(*self.experiment.files))
        again = tuple(record for record in again if record["key"] in keys)
        return kept(
            self.store.named(f"ledger-{self.experiment.name}-{shown}"),
            lambda: claims.ledger(self._claims, frame(judging), frame(again)),
            *(self.experiment.name, *self.artifacts, digest_of(judging), digest_of(again)),
            claims.written(paper),
            code=judged.code(),
        )

    def _stage_two(self, every: Sequence[Record]) -> tuple[Record, ...]:
        """Recorded runs of the same cells with later seeds, where stage one's are all asked for."""
        seeds = {spec.seed for spec in self.specs}
        if len(seeds) < load_margins().least_seeds:
            return ()

        def later(record: Record) -> bool:
            spec = self.experiment.spec_of(record)
            return (
                spec.scale == self.scale
                and spec.seed not in seeds
                and (spec.row, spec.model.arm, spec.task.name) in self._keys
            )

        return tuple(filter(later, every))

    @cached_property
    def _claims(self) -> list[claims.Claim]:
        """The claims that these runs decide on the artifacts that they are shown for.

        If these are all artifacts of the experiment, claims on other artifacts belong to them too.
        """
        made = self.experiment.artifacts
        whole = self.artifacts == made
        return [
            claim
            for claim in claims.load(self.experiment.paper)
            if claim.source.experiment == self.experiment.name
            and (claim.artifact in self.artifacts or (whole and claim.artifact not in made))
        ]

    @cached_property
    def rows(self) -> list[tuple[str, str]]:
        """(model, arm) of every row, those in the judged arm first.

        A reading that no claim is judged on has a row from its first run on; see :attr:`waiting`.
        """
        return [pair for pair in self._every_row if pair not in self.waiting]

    @cached_property
    def waiting(self) -> list[tuple[str, str]]:
        """Unjudged rows without usable runs.

        What counts is a usable run of the page's own specs, or of its tasks at another scale.
        """
        recorded = {record["key"] for record in (*usable(self.every), *self.records)}
        begun = {(spec.row, spec.model.arm) for spec in self.specs if spec.key in recorded}
        begun |= {(row, arm) for row, arm, task in self._elsewhere if task in self.tests}
        for claim in self._claims:
            begun |= {(row, claim.source.arm_of(row)) for row, _ in claim.cells}
        others = (pair for pair in self._every_row if not self.experiment.judges(*pair))
        return [pair for pair in others if pair not in begun]

    @cached_property
    def broken(self) -> dict[tuple[str, str, str], list[Record]]:
        """{(model, arm, task) whose runs all failed, of those that were made: their records}."""
        recorded = {record["key"] for record in self.records}
        failed = {r["key"]: r for r in self.every if r["status"] == "failed"}
        found = {}
        for cell, keys in self._keys.items():
            records = [failed[key] for key in keys if key in failed]
            if records and not recorded.intersection(keys):
                found[cell] = records
        return found

    def failed(self, claim: claims.Claim, arm: str) -> int:
        """Count the runs of a claim's cells that all failed in a reading."""
        return sum(len(self.broken.get((model, arm, task), ())) for model, task in claim.cells)

    def judged_rows(self, data: pd.DataFrame) -> pd.DataFrame:
        """Keep the rows of data that belong to the readings on which claims are judged."""
        rows = zip(data["model"], data["arm"], strict=True)
        judged = [self.experiment.judges(*row) for row in rows]
        return data[np.array(judged, dtype=bool)]

    @property
    def gaps(self) -> str:
        """Sentences on what has no results, "" for none: the :attr:`broken` cells, each with its
        first error, and the :attr:`waiting` rows.
        """
        said = []
        for (model, arm, task), records in self.broken.items():
            runs = len(self._keys[model, arm, task])
            others = "" if len(records) == runs else ", and the others are not run"
            name = f"{model} {ARM_LABELS.get(arm, arm)} on {title(task)}"
            error, _, _ = MODULE.sub("", cause(records[0])).partition("; ")
            said.append(
                f"{name}: {len(records)} of {runs} runs failed{others}. The first error: {error}"
            )
        rows: dict[str, list[str]] = {}
        for model, arm in self.waiting:
            rows.setdefault(ARM_LABELS.get(arm, arm), []).append(model)
        said += [f"No finished run {label}: {', '.join(names)}" for label, names in rows.items()]
        return " ".join(f"{sentence.rstrip('.')}." for sentence in said)

    @cached_property
    def _keys(self) -> dict[tuple[str, str, str], list[str]]:
        """{(model, arm, task): keys of its specs}."""
        found: dict[tuple[str, str, str], list[str]] = {}
        for spec in self.specs:
            found.setdefault((spec.row, spec.model.arm, spec.task.name), []).append(spec.key)
        return found

    @cached_property
    def _every_row(self) -> list[tuple[str, str]]:
        pairs = dict.fromkeys((spec.row, spec.model.arm) for spec in self.specs)
        return sorted(pairs, key=lambda pair: not self.experiment.judges(*pair))

    def label(self, model: str, arm: str, task: str | None = None) -> str:
        """Return a row's name in tables: the model, and its arm where that is not the judged
        one.

        task: of a table with rows of their own for each task, which may say more of the runs
        """
        name = row_label(model, arm, self.experiment.judged_arms.get(model, arm))
        remark = self._remarks.get((model, arm, task), "")
        return f"{name}, {remark}" if remark else name

    @cached_property
    def _remarks(self) -> dict[tuple[str, str, str], str]:
        return {
            (spec.row, spec.model.arm, spec.task.name): self.experiment.remark(spec)
            for spec in self.specs
        }

    @cached_property
    def judged_otherwise(self) -> dict[str, list[str]]:
        """{arm: rows that claims judge in it}, but for the arm of most rows and rows of one arm."""
        found: dict[str, list[str]] = {}
        arms = Counter(row for row, _ in self._every_row)
        for row, arm in self._every_row:
            own = self.experiment.judges(row, arm) and arms[row] > 1
            if own and arm != self.experiment.judged_arm:
                found.setdefault(arm, []).append(row)
        return found

    @cached_property
    def tests(self) -> dict[str, tuple[str, ...]]:
        """{task: names of its tests}, in distribution first; of the model with most of them."""
        found: dict[str, tuple[str, ...]] = {}
        for spec in self.specs:
            tests = found.get(spec.task.name, ())
            found[spec.task.name] = max(tests, _tests_of(spec.task), key=len)
        order = self.experiment.ordered or tuple(found)
        return {task: found[task] for task in order if task in found}

    def tested(self, model: str, arm: str, task: str) -> tuple[str, ...]:
        """The tests of one cell: a model that cannot read the longest inputs has fewer."""
        return self._tested[model, arm, task]

    @cached_property
    def _tested(self) -> dict[tuple[str, str, str], tuple[str, ...]]:
        cells = ((spec.row, spec.model.arm, spec.task) for spec in self.specs)
        return {(row, arm, task.name): _tests_of(task) for row, arm, task in cells}

    def test_label(self, task: str, test: str) -> str:
        """Return a test's name on axes: its length, or the longest that was trained on."""
        if test != "iid":
            return test
        config = next(spec.task for spec in self.specs if spec.task.name == task)
        longest = config.splits()["iid"].longest
        return f"≤ {longest}" if longest else "IID"

    @property
    def tasks(self) -> list[str]:
        """Tasks in the order of pages."""
        return list(self.tests)

    @cached_property
    def _cells(self) -> dict[tuple[str, str, str], list[Record]]:
        cells: dict[tuple[str, str, str], list[Record]] = {}
        for record in sorted(self.records, key=lambda r: r["spec"]["seed"]):
            spec = record["spec"]
            cell = (row_name(spec["model"]), spec["model"]["arm"], spec["task"]["name"])
            cells.setdefault(cell, []).append(record)
        return cells

    def plans(self, model: str, arm: str, task: str) -> bool:
        """Tell whether the grid has runs of a cell, recorded or not."""
        return (model, arm, task) in self._tested

    def cell(self, model: str, arm: str, task: str) -> list[Record]:
        """The runs of one cell by seed; empty where nothing is recorded."""
        return self._cells.get((model, arm, task), [])

    def values(
        self, model: str, arm: str, task: str, test: str, metric: str | None = None
    ) -> list[float]:
        """One metric of one cell at one test, a number per seed; shares in percent.

        metric  if it is not what the task is measured by
        """
        cell = self.cell(model, arm, task)
        if metric is None:
            return [100 * accuracies(r)[test] for r in cell]
        shown = _shown(metric)
        return [shown(r["checkpoints"]["selected"]["tests"][test][metric]) for r in cell]

    def by_seed(self, *cell: str, metric: str | None = None) -> dict[int, float]:
        """{seed: number} of :meth:`values`, whose arguments these are."""
        seeds = [record["spec"]["seed"] for record in self.cell(*cell[:3])]
        return dict(zip(seeds, self.values(*cell, metric), strict=True))

    def middle(self, values: Sequence[float]) -> float:
        """The mean or the median of some seeds, whichever the paper prints."""
        return float(np.mean(values) if self.experiment.statistic == "mean" else np.median(values))

    def elsewhere(self, model: str, arm: str, task: str) -> dict[str, int]:
        """{scale: seeds} of the cell's successful runs at other scales; smoke is none."""
        return self._elsewhere.get((model, arm, task), {})

    @cached_property
    def _elsewhere(self) -> dict[tuple[str, str, str], dict[str, int]]:
        cells: dict[tuple[str, str, str], dict[str, int]] = {}
        for record in usable(self.every):
            spec = record["spec"]
            if spec["scale"] not in ("smoke", self.scale) and self.experiment.owns(record):
                cell = (row_name(spec["model"]), spec["model"]["arm"], spec["task"]["name"])
                counts = cells.setdefault(cell, {})
                counts[spec["scale"]] = counts.get(spec["scale"], 0) + 1
        return cells

    def panels(self) -> Iterator[tuple[int, int, list[Record]]]:
        """Row number, column number and runs of every cell."""
        for i, (model, arm) in enumerate(self.rows):
            for j, task in enumerate(self.tasks):
                yield i, j, self.cell(model, arm, task)
