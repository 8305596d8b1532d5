"""Define claims: the entries of `book/claims/<paper>.yml`, validated, and what they consist of.

An entry says in few words what a paper claims of which models and cells; :func:`parts` spells it
out into parts that one rule each can judge, one per model and task because a training run is one
model on one task.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from relength.errors import RelengthError
from relength.specs import published, registry
from relength.specs.experiments import Experiment, experiments
from relength.specs.spec import ARMS
from relength.verdicts.rules import Relation

Kind = Literal["value", "threshold", "solves", "trend", "property", "order", "cost", "conjunction"]
Metric = Literal[*registry.test_metrics(), *registry.metrics(), registry.ACCURACY]
Level = Literal["solved", "failed", "not_solved"]
Arm = Literal[*ARMS, *registry.united("arms")]
Cell = tuple[str, str]  # model, task
Sample = tuple[Cell, ...]  # cells that make one number per seed, so that each seed must be in all


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


# The paper's own rule; or one of those of Protocol.retests.
Checkpoint = Literal["selected", "last", "best_iid", "extended"]


class Source(_Frozen):
    """The place of the runs behind one artifact, and which of them its claims judge.

    metric     what is judged; by default what the experiment's tables show
    runs_that  a metric of the paper: runs that it says nothing of, at any test, are no seeds
    """

    experiment: str
    metric: Metric = registry.ACCURACY
    checkpoint: Checkpoint = "selected"
    runs_that: Literal[*registry.metrics()] | None = None
    judged_arm: Arm
    other_arms: dict[str, tuple[str, ...]] = {}  # arm: the models that have it
    claim_per_cell: bool = False  # each printed cell is a value claim of its own
    rows: tuple[str, ...] = ()  # models whose cells are claims; all, if none are named
    without: tuple[str, ...] = ()  # tasks or tests whose cells are none: averages of others
    repeats: tuple[str, ...] = ()  # rows whose cells are claims of another table already
    elsewhere: dict[str, str] = {}  # task: the experiment that its runs are of, if another
    # Printed statistic, "" for a column without one: what it is of a run's results at its tests.
    # Cells of other statistics are no claims.
    statistics: dict[str, Literal["mean", "longest"]] = {}
    over: tuple[int, int] | None = None  # the tests of these statistics, by length
    longest_above: float | None = None  # percent that the longest test of a run is to exceed

    @model_validator(mode="before")
    @classmethod
    def _judges_what_tables_show(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("experiment") in experiments():
            return {"metric": experiments()[given["experiment"]].shown} | given
        return given

    def of(self, tasks: set[str]) -> "Source":
        """The source of a claim about these tasks; RelengthError if they are of two experiments."""
        found = {self.elsewhere.get(task, self.experiment) for task in tasks} or {self.experiment}
        if len(found) > 1:
            raise RelengthError(
                f"{', '.join(sorted(tasks))} are tasks of {' and '.join(sorted(found))}: a claim "
                "has its runs in one experiment."
            )
        return self.model_copy(update={"experiment": found.pop()})

    @model_validator(mode="after")
    def _knows_its_statistics(self) -> "Source":
        if self.statistics and self.over is None:
            raise ValueError("statistics need the lengths that they are over")
        if "longest" in self.statistics.values() and self.longest_above is None:
            raise ValueError("the longest test needs longest_above")
        return self

    def arm_of(self, model: str) -> str:
        """The arm of a model that is judged: ``judged_arm``, or the one it has if it lacks that."""
        found = experiments().get(self.experiment)
        if found is None or self.judged_arm != found.judged_arm:
            return self.judged_arm
        return found.judged_arms.get(model, self.judged_arm)


class Expectation(_Frozen):
    """One line of a claim: these models, in these cells, are or do this.

    cells: patterns over task/test of the tables that the experiment prints, or of its runs where it
    prints none: "copy/*", "*/longest"; what only its runs have is named in full. Exactly one of the
    others says what is expected:

    is            "published": the printed values, within the margin, those of the tasks named where
                  a statistic over tests is printed; "solved" or "failed": the levels of
                  margins.yml, at every test length named; "not_solved": at none of them
    at_least      with a level: that so many of the models are at it suffices, whichever they are
    trend         "falls" or "rises": from the first test length named to the last
    mean          the mean over all cells named, within the margin; or [least, most] of it. If
                  `pooled`, one number per seed for all models together: the mean over those of
                  their runs that the metric says something of
    lead          [least, most]: the mean over each task's cells less that of the models `over`, of
                  whom the best counts at each test; within the margin of that range
    tasks_solved  in how many of the tasks named a seed is "solved" at every length
    better_than, on_par_with
                  other models, in the number of tasks solved, the mean over cells, or the longest
                  test as above
    harder_than   other cells in which the same model is better, in the mean of each
    longest       [least, most]: the longest test whose result is above longest_above of the
                  artifact, 0 for none; within the margin of that range
    length_ratio  [least, most]: that length over the one of the model `than`, seed by seed
    better_than_best_of
                  several models of whom the best counts at each test, in the mean over each task's
    cost_ratio    seconds of a run relative to those of the model `than`

    A line that is `given` says what the claim takes for granted, such as that a model has learned
    its task: the claim needs it to be reproduced, and is not contradicted where it fails.
    """

    models: tuple[str, ...] = Field(min_length=1)
    cells: tuple[str, ...] = ("*/*",)
    given: bool = False
    is_: Literal["published", Level] | None = Field(default=None, alias="is")
    at_least: int | None = Field(default=None, gt=0)  # only for a level
    trend: Literal["falls", "rises"] | None = None
    tasks_solved: int | None = Field(default=None, ge=0)
    better_than: tuple[str, ...] | None = None
    on_par_with: tuple[str, ...] | None = None
    better_than_best_of: tuple[str, ...] | None = None
    harder_than: tuple[str, ...] | None = None
    mean: float | tuple[float, float] | None = None
    pooled: bool = False  # only for a mean
    lead: tuple[float, float] | None = None
    over: tuple[str, ...] | None = None  # only for lead
    # only for better_than and on_par_with
    by: Literal["tasks_solved", "mean", "longest"] = "tasks_solved"
    longest: tuple[float, float] | None = None
    length_ratio: tuple[float, float] | None = None
    cost_ratio: float | None = Field(default=None, gt=0)
    than: str | None = None  # only for the ratios

    @model_validator(mode="after")
    def _says_one_thing(self) -> "Expectation":
        said = [
            name
            for name in (
                *("is_", "trend", "tasks_solved"),
                *("better_than", "on_par_with", "better_than_best_of", "harder_than"),
                *("mean", "lead", "longest", "length_ratio", "cost_ratio"),
            )
            if getattr(self, name) is not None
        ]
        if len(said) != 1:
            raise ValueError(f"a line expects exactly one thing, this one expects {len(said)}")
        if (self.cost_ratio is None and self.length_ratio is None) != (self.than is None):
            raise ValueError("a ratio and than go together")
        if (self.lead is None) != (self.over is None):
            raise ValueError("lead and over go together")
        if self.pooled and self.mean is None:
            raise ValueError("pooled goes with a mean")
        if self.at_least and (self.is_ in (None, "published") or self.at_least > len(self.models)):
            raise ValueError("at_least counts models at a level, and no more than there are")
        return self


class ClaimEntry(_Frozen):
    """A claim as written in the file; statement and kind come from the published prose claims."""

    id: str
    artifact: str
    quote: str | None = None  # at most one sentence of the paper, verbatim
    expect: tuple[Expectation, ...] = ()
    metric: Metric | None = None  # if it is not the artifact's
    # Whose runs decide, if not the artifact's: those of two tables, or of a reading beside them.
    experiment: str | None = None
    checkpoint: Checkpoint | None = None  # if not the artifact's
    # A metric that says something of every run that counts.
    runs_that: Literal[*registry.metrics()] | None = None
    judged_arm: Arm | None = None  # where the artifact's cannot decide; then alone
    scope: str | None = None  # what of the claim is left out here, and why
    not_testable: str | None = None  # why no run could decide it

    @model_validator(mode="after")
    def _has_something_to_judge(self) -> "ClaimEntry":
        if bool(self.expect) == bool(self.not_testable):
            raise ValueError("a claim has either expect or not_testable")
        if self.expect and all(line.given for line in self.expect):
            raise ValueError("a claim says more than what is given")
        return self


class ClaimFile(_Frozen):
    """`book/claims/<paper>.yml`."""

    paper: str
    artifacts: dict[str, Source]
    claims: tuple[ClaimEntry, ...]


class ValuePart(_Frozen):
    """The printed values of one model on one task, {test: value}; with a spread, one test.

    tests  where a statistic over several tests is printed, {statistic: value}: these tests
    above  the statistic is the longest of them with a result above it, and not their mean
    """

    rule: Literal["value"] = "value"
    model: str
    task: str
    printed: dict[str, float]
    spread: float | None = None
    n: int | None = None  # runs behind the printed value
    tests: tuple[str, ...] = ()
    above: float | None = None

    @property
    def printed_value(self) -> float:
        """The only value that is printed."""
        (value,) = self.printed.values()
        return value

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (((self.model, self.task),),)


class LevelPart(_Frozen):
    """One model on one task is solved, or failed, at these tests; or solved at none of them."""

    rule: Literal["level"] = "level"
    model: str
    task: str
    tests: tuple[str, ...]
    level: Level

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (((self.model, self.task),),)


class SomePart(_Frozen):
    """So many of several models, whichever they are, are at a level on one task at these tests."""

    rule: Literal["some"] = "some"
    models: tuple[str, ...]
    task: str
    tests: tuple[str, ...]
    level: Level
    at_least: int

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (tuple((model, self.task) for model in self.models),)


class TrendPart(_Frozen):
    """The result of one model on one task falls, or rises, along these tests."""

    rule: Literal["trend"] = "trend"
    model: str
    task: str
    tests: tuple[str, ...]
    direction: Literal["falls", "rises"]

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (((self.model, self.task),),)


class CountPart(_Frozen):
    """In how many tasks a seed is solved at every test named."""

    rule: Literal["count"] = "count"
    model: str
    tests: dict[str, tuple[str, ...]]  # task: tests
    count: int

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (tuple((self.model, task) for task in self.tests),)


class OrderPart(_Frozen):
    """One model is better than another, or on par with it, in one number per seed.

    best_of      the models behind `other`, if it is several: the best of them at each test
    other_tests  where the other's number comes from, if not from the same tests
    above        by the longest test: what its result is to exceed
    """

    rule: Literal["order"] = "order"
    model: str
    other: str
    best_of: tuple[str, ...] = ()
    relation: Relation
    by: Literal["tasks_solved", "mean", "longest"]
    tests: dict[str, tuple[str, ...]]
    other_tests: dict[str, tuple[str, ...]] = {}
    above: float | None = None

    @property
    def samples(self) -> tuple[Sample, ...]:
        tasks = self.other_tests or self.tests
        others = tuple((m, task) for m in self.best_of or (self.other,) for task in tasks)
        return (tuple((self.model, task) for task in self.tests), others)


class RangePart(_Frozen):
    """A mean over tests lies in a range; or its lead over that of others, the best at each test."""

    rule: Literal["range"] = "range"
    model: str
    over: tuple[str, ...] = ()
    tests: dict[str, tuple[str, ...]]
    low: float
    high: float

    @property
    def samples(self) -> tuple[Sample, ...]:
        models = (self.model, *self.over)
        return (tuple((m, task) for m in models for task in self.tests),)


class PoolPart(_Frozen):
    """The mean over runs of one seed, of several models and tasks, lies in a range.

    Runs that the metric says nothing of are left out. A seed needs one that it says something of.
    """

    rule: Literal["pool"] = "pool"
    models: tuple[str, ...]
    tests: dict[str, tuple[str, ...]]
    low: float
    high: float

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (tuple((model, task) for model in self.models for task in self.tests),)


class LongestPart(_Frozen):
    """The longest test with a result above a level lies in a range; or its ratio to another's."""

    rule: Literal["longest"] = "longest"
    model: str
    than: str | None = None
    task: str
    tests: tuple[str, ...]
    above: float
    low: float
    high: float

    @property
    def samples(self) -> tuple[Sample, ...]:
        models = (self.model,) if self.than is None else (self.model, self.than)
        return (tuple((model, self.task) for model in models),)


class CostPart(_Frozen):
    """Seconds of a run of one model over those of another, same task, seed and device."""

    rule: Literal["cost"] = "cost"
    model: str
    than: str
    task: str
    ratio: float

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (((self.model, self.task), (self.than, self.task)),)


Part = Annotated[
    ValuePart
    | LevelPart
    | SomePart
    | TrendPart
    | CountPart
    | OrderPart
    | RangePart
    | PoolPart
    | LongestPart
    | CostPart,
    Field(discriminator="rule"),
]


class Claim(_Frozen):
    """One checkable statement with everything that its verdict needs except the runs."""

    id: str  # "<paper>-001", or for a cell of a table "<paper>-table-2/<model>/copy/15"
    paper: str
    artifact: str
    kind: Kind  # the rule: where there are several parts, each is judged by it
    statement: str  # in our words
    quote: str | None = None
    where: str = ""  # section of the paper
    source: Source
    parts: tuple[Part, ...]
    given: tuple[int, ...] = ()  # places of the parts that it takes for granted
    scope: str | None = None
    not_testable: str | None = None

    @model_validator(mode="after")
    def _has_a_margin(self) -> "Claim":
        free = (LevelPart, CountPart, CostPart)  # judged by words of the margins file instead
        metric = registry.metric(self.source.metric)
        if metric.margin is None and not all(isinstance(part, free) for part in self.parts):
            raise RelengthError(
                f"Claim {self.id} is about {metric.words}, which has no margin: name one where "
                "lib/relength/tasks/metrics.py or the task says what this metric is."
            )
        return self

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Every sample that one of its parts needs, once."""
        return tuple(dict.fromkeys(sample for part in self.parts for sample in part.samples))

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every (model, task) that it needs, once."""
        return tuple(dict.fromkeys(cell for sample in self.samples for cell in sample))

    @property
    def models(self) -> frozenset[str]:
        """Every model that it speaks of."""
        return frozenset(model for model, _ in self.cells)


OTHER_MAX = "Other Max"  # the best of several models at each test


def parts(line: Expectation, artifact: str, source: Source) -> list[Part]:
    """The parts of one line of a claim. RelengthError for an unknown model or cell."""
    others = (line.better_than, line.on_par_with, line.better_than_best_of, line.over)
    named = set(line.models).union(*(models or () for models in others))
    runs = source.experiment, source.checkpoint
    _known(named | ({line.than} - {None}), known_rows(artifact, *runs))
    tests = lengths_by_task(line.cells, _with_those_named(line.cells, artifact, *runs), artifact)
    by_longest = line.longest or line.length_ratio or line.by == "longest"
    if by_longest and source.longest_above is None:
        raise RelengthError(f"{artifact} has no longest_above, which the longest test needs.")
    if line.longest or line.length_ratio:
        low, high = line.longest or line.length_ratio
        return [
            LongestPart(
                model=model,
                than=line.than,
                task=task,
                tests=tests[task],
                above=source.longest_above,
                low=low,
                high=high,
            )
            for model in line.models
            for task in tests
        ]
    if line.harder_than:
        easier = lengths_by_task(line.harder_than, run_cells(artifact, *runs), artifact)
        order = {"relation": "better", "by": "mean", "tests": easier, "other_tests": tests}
        return [OrderPart(model=model, other=model, **order) for model in line.models]
    if line.better_than_best_of:
        best = {"other": OTHER_MAX, "best_of": line.better_than_best_of}
        return [
            OrderPart(model=m, relation="better", by="mean", tests={task: tests[task]}, **best)
            for m in line.models
            for task in tests
        ]
    if line.mean is not None:
        low, high = line.mean if isinstance(line.mean, tuple) else (line.mean, line.mean)
        if line.pooled:
            return [PoolPart(models=line.models, tests=tests, low=low, high=high)]
        return [RangePart(model=m, tests=tests, low=low, high=high) for m in line.models]
    if line.at_least:
        some = {"models": line.models, "level": line.is_, "at_least": line.at_least}
        return [SomePart(task=task, tests=lengths, **some) for task, lengths in tests.items()]
    if line.lead:
        low, high = line.lead
        return [
            RangePart(model=m, over=line.over, tests={task: tests[task]}, low=low, high=high)
            for m in line.models
            for task in tests
        ]
    if line.better_than or line.on_par_with:
        relation: Relation = "better" if line.better_than else "on_par"
        above = source.longest_above if line.by == "longest" else None
        return [
            OrderPart(
                model=model, other=other, relation=relation, by=line.by, tests=tests, above=above
            )
            for model in line.models
            for other in line.better_than or line.on_par_with or ()
        ]
    if line.tasks_solved is not None:
        return [CountPart(model=m, tests=tests, count=line.tasks_solved) for m in line.models]
    if line.is_ == "published" and source.statistics:
        return [
            statistic_part(artifact, cell, source)
            for model in line.models
            for cell in published.table(artifact).itertuples()
            if cell.row == model and cell.task in tests and cell.statistic in source.statistics
        ]
    return [_part_of_one_task(line, artifact, m, t, tests[t]) for m in line.models for t in tests]


def _part_of_one_task(
    line: Expectation, artifact: str, model: str, task: str, tests: tuple[str, ...]
) -> Part:
    if line.is_ == "published":
        return value_part(artifact, model, task, tests)
    if line.is_:
        return LevelPart(model=model, task=task, tests=tests, level=line.is_)
    if line.trend:
        return TrendPart(model=model, task=task, tests=tests, direction=line.trend)
    return CostPart(model=model, than=line.than, task=task, ratio=line.cost_ratio)


def value_part(artifact: str, model: str, task: str, tests: tuple[str, ...]) -> ValuePart:
    """The printed values of some cells of one row and task. RelengthError where one is missing."""
    rows = [cell for cell in _printed_cells(artifact).get((model, task), ()) if cell.test in tests]
    if len(rows) != len(tests) or any(pd.isna(cell.value) for cell in rows):
        raise RelengthError(
            f"{artifact} prints no value for {model} on {task} at {', '.join(tests)}."
        )
    if len(rows) > 1 and not all(pd.isna(cell.spread) for cell in rows):
        raise RelengthError(
            f"{artifact} prints mean ± sd: claim {model} on {task} one cell at a time."
        )
    return ValuePart(
        model=model,
        task=task,
        printed={cell.test: cell.value for cell in rows},
        spread=None if pd.isna(rows[0].spread) else rows[0].spread,
        n=None if any(pd.isna(cell.n) for cell in rows) else int(rows[0].n),
    )


@cache
def _printed_cells(artifact: str) -> dict[Cell, list[Any]]:
    """The printed cells of a table by row and task: there are hundreds of claims about them."""
    found: dict[Cell, list[Any]] = {}
    for cell in published.table(artifact).itertuples():
        found.setdefault((cell.model, cell.task), []).append(cell)
    return found


@cache
def printed_rows(artifact: str) -> tuple[str, ...]:
    """The rows of a table, in its order."""
    return tuple(dict.fromkeys(row for row, _ in _printed_cells(artifact)))


def statistic_part(artifact: str, cell: Any, source: Source) -> ValuePart:
    """A printed statistic over the tests of one row and task."""
    shortest, longest = source.over
    of = source.statistics[cell.statistic]
    runs = _tests_run(artifact, source.experiment, source.checkpoint)
    tests = runs.get((cell.row, cell.task), ())
    return ValuePart(
        model=cell.row,
        task=cell.task,
        printed={cell.statistic or of: cell.value},
        spread=None if pd.isna(cell.spread) else cell.spread,
        n=None if pd.isna(cell.n) else int(cell.n),
        tests=tuple(test for test in tests if shortest <= int(test) <= longest),
        above=source.longest_above if of == "longest" else None,
    )


def lengths_by_task(
    patterns: tuple[str, ...], cells: pd.DataFrame, artifact: str
) -> dict[str, tuple[str, ...]]:
    """Return {task: tests} of the cells of an artifact that match a pattern, in their order.

    "*" stands for anything; the test "longest" is the last one of each task. Raises RelengthError
    for a pattern that matches no cell.
    """
    tests: dict[str, list[str]] = {}
    columns = cells["task"].to_numpy(), cells["test"].to_numpy()
    for task, test in dict.fromkeys(zip(*columns, strict=True)):
        tests.setdefault(task, []).append(test)
    names = {
        (task, test): [f"{task}/{test}"] + [f"{task}/longest"] * (test == known[-1])
        for task, known in tests.items()
        for test in known
    }
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for both in names.values() for name in both):
            known = ", ".join(name for both in names.values() for name in both)
            raise RelengthError(f"{artifact} has no column {pattern!r}: there are {known}.")
    chosen: dict[str, tuple[str, ...]] = {}
    for (task, test), both in names.items():
        if any(fnmatchcase(name, pattern) for name in both for pattern in patterns):
            chosen[task] = (*chosen.get(task, ()), test)
    return chosen


def _with_those_named(
    patterns: tuple[str, ...], artifact: str, experiment: str, checkpoint: str
) -> pd.DataFrame:
    """known_cells, and before them those that a pattern names in full and only runs have."""
    known = known_cells(artifact, experiment, checkpoint)
    if not (named := _only_run(artifact, experiment, checkpoint).intersection(patterns)):
        return known
    run = run_cells(artifact, experiment, checkpoint)
    return pd.concat([run[(run["task"] + "/" + run["test"]).isin(named)], known])


@cache  # hundreds of claims ask
def _only_run(artifact: str, experiment: str, checkpoint: str) -> frozenset[str]:
    """The names "task/test" of run_cells that are not among known_cells."""
    run = run_cells(artifact, experiment, checkpoint)
    known = known_cells(artifact, experiment, checkpoint)
    return frozenset(run["task"] + "/" + run["test"]) - {*(known["task"] + "/" + known["test"])}


@cache
def known_cells(artifact: str, experiment: str = "", checkpoint: str = "selected") -> pd.DataFrame:
    """The cells that claims about an artifact can name: the columns are row, task and test.

    All that the tables of its experiment print; where these print nothing, what its runs have.

    experiment  whose runs decide; if it does not make the artifact, all that they have, too
    """
    found, judging = _maker(artifact), experiments().get(experiment)
    if found and not found.tables:
        return run_cells(artifact, experiment, checkpoint)
    tables = [published.table(name) for name in (found.tables if found else (artifact,))]
    cells = pd.concat(tables)[["model", "task", "test"]].rename(columns={"model": "row"})
    if judging is None or artifact in judging.artifacts:
        return cells
    return pd.concat([cells, run_cells(artifact, experiment, checkpoint)]).drop_duplicates()


@cache
def run_cells(artifact: str, experiment: str = "", checkpoint: str = "selected") -> pd.DataFrame:
    """The cells of the runs that decide, or else of the artifact's experiment, as known_cells."""
    found = experiments().get(experiment) or _maker(artifact)
    cells = []
    for spec in found.specs("reduced", [0]) if found else ():
        retest = spec.training.retests(spec.task).get(checkpoint)
        tests = spec.task.tests if retest is None else retest.tests
        cells += [(spec.row, spec.task.name, test) for test in tests]
    return pd.DataFrame(cells, columns=["row", "task", "test"]).drop_duplicates()


@cache  # hundreds of claims ask
def _tests_run(artifact: str, experiment: str, checkpoint: str) -> dict[Cell, list[str]]:
    """The tests of run_cells by row and task."""
    found: dict[Cell, list[str]] = {}
    for row, task, test in run_cells(artifact, experiment, checkpoint).itertuples(index=False):
        found.setdefault((row, task), []).append(test)
    return found


def check_runs(source: Source, needed: Iterable[Part]) -> None:
    """Raise RelengthError where parts of a claim name what no run of their experiment could be.

    Without this a misspelt name reads "not run" forever.
    """
    found = experiments().get(source.experiment)
    if found is None:
        known = ", ".join(experiments())
        raise RelengthError(f"There is no experiment {source.experiment!r}: choose from {known}.")
    arms, cells = _planned(found)
    if source.judged_arm not in arms:
        raise RelengthError(
            f"{found.name} has no run in the reading {source.judged_arm!r}: "
            f"it has {', '.join(arms)}."
        )
    for model, task in (cell for part in needed for sample in part.samples for cell in sample):
        if (model, task) not in cells:
            known = ", ".join(dict.fromkeys(row for row, other in cells if other == task))
            raise RelengthError(
                f"{found.name} has no run of {model!r} on {task!r}: "
                + (f"on this task it has {known}." if known else "it has no such task.")
            )


@cache  # printed cells ask for it one by one
def _planned(found: Experiment) -> tuple[dict[str, None], dict[Cell, None]]:
    """The arms and the cells of an experiment's runs, in their order."""
    specs = found.specs("reduced", [0])
    arms = dict.fromkeys(spec.model.arm for spec in specs)
    return arms, dict.fromkeys((spec.row, spec.task.name) for spec in specs)


@cache
def known_rows(
    artifact: str, experiment: str = "", checkpoint: str = "selected"
) -> tuple[str, ...]:
    """The models that claims about an artifact can name: of its tables, and of its runs."""
    runs = artifact, experiment, checkpoint
    return tuple(pd.concat((known_cells(*runs)["row"], run_cells(*runs)["row"])).unique())


def _maker(artifact: str) -> Experiment | None:
    """The experiment that makes an artifact, if one does."""
    return next((e for e in experiments().values() if artifact in e.artifacts), None)


def _known(models: set[str], known: tuple[str, ...]) -> None:
    for model in sorted(models - set(known)):
        raise RelengthError(f"There is no row {model!r}: choose from {', '.join(known)}.")
