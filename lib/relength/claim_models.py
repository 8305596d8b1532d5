"""What a claim is: the entries of `book/claims/<paper>.yml`, validated, and what they consist of.

An entry says in few words what a paper claims of which models and cells; :func:`parts` spells it
out into parts that one rule each can judge, one per model and task because a training run is one
model on one task.
"""

from fnmatch import fnmatchcase
from typing import Annotated, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from relength.errors import RelengthError
from relength.papers import published
from relength.rules import Relation

Kind = Literal["value", "threshold", "solves", "trend", "property", "order", "cost", "conjunction"]
Metric = Literal["exact_match", "exact_match_true_length", "token_accuracy", "edit_distance"]
Cell = tuple[str, str]  # model, task
Sample = tuple[Cell, ...]  # cells that make one number per seed, so that each seed must be in all


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Source(_Frozen):
    """Where the runs behind one artifact are, and which of them its claims judge."""

    experiment: str
    metric: Metric = "exact_match"
    checkpoint: Literal["selected", "last", "best_iid"] = "selected"  # the paper's own rule
    judged_arm: Literal["released", "paper", "repaired"]
    other_arms: dict[str, tuple[str, ...]] = {}  # arm: the models that have it
    claim_per_cell: bool = False  # each printed cell is a value claim of its own


class Expectation(_Frozen):
    """One line of a claim: these models, in these cells, are or do this.

    cells: patterns over the columns of the printed table, "copy/*", "*/longest". Exactly one of the
    others says what is expected:

    is            "published": the printed values, within the margin; "solved" or "failed": the
                  levels of margins.yml, at every test length named
    trend         "falls" or "rises": from the first test length named to the last
    tasks_solved, tasks_solved_at_most
                  in how many of the tasks named a seed is "solved" at every length
    better_than, on_par_with
                  other models, in the number of tasks solved or the mean over cells
    cost_ratio    seconds of a run relative to those of the model `than`
    """

    models: tuple[str, ...] = Field(min_length=1)
    cells: tuple[str, ...] = ("*/*",)
    is_: Literal["published", "solved", "failed"] | None = Field(default=None, alias="is")
    trend: Literal["falls", "rises"] | None = None
    tasks_solved: int | None = Field(default=None, ge=0)
    tasks_solved_at_most: int | None = Field(default=None, ge=0)
    better_than: tuple[str, ...] | None = None
    on_par_with: tuple[str, ...] | None = None
    by: Literal["tasks_solved", "mean"] = "tasks_solved"  # only for better_than and on_par_with
    cost_ratio: float | None = Field(default=None, gt=0)
    than: str | None = None  # only for cost_ratio

    @model_validator(mode="after")
    def _says_one_thing(self) -> "Expectation":
        said = [
            name
            for name in (
                *("is_", "trend", "tasks_solved", "tasks_solved_at_most"),
                *("better_than", "on_par_with", "cost_ratio"),
            )
            if getattr(self, name) is not None
        ]
        if len(said) != 1:
            raise ValueError(f"a line expects exactly one thing, this one expects {len(said)}")
        if (self.cost_ratio is None) != (self.than is None):
            raise ValueError("cost_ratio and than go together")
        return self


class ClaimEntry(_Frozen):
    """A claim as written in the file; statement and kind come from the published prose claims."""

    id: str
    artifact: str
    quote: str | None = None  # at most one sentence of the paper, verbatim
    expect: tuple[Expectation, ...] = ()
    scope: str | None = None  # what of the claim is left out here, and why
    not_testable: str | None = None  # why no run could decide it

    @model_validator(mode="after")
    def _has_something_to_judge(self) -> "ClaimEntry":
        if bool(self.expect) == bool(self.not_testable):
            raise ValueError("a claim has either expect or not_testable")
        return self


class ClaimFile(_Frozen):
    """`book/claims/<paper>.yml`."""

    paper: str
    artifacts: dict[str, Source]
    claims: tuple[ClaimEntry, ...]


class ValuePart(_Frozen):
    """The printed values of one model on one task, {test: value}; with a spread, one test."""

    rule: Literal["value"] = "value"
    model: str
    task: str
    printed: dict[str, float]
    spread: float | None = None
    n: int | None = None  # runs behind the printed value

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (((self.model, self.task),),)


class LevelPart(_Frozen):
    """One model on one task is solved, or failed, at these tests."""

    rule: Literal["level"] = "level"
    model: str
    task: str
    tests: tuple[str, ...]
    level: Literal["solved", "failed"]

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (((self.model, self.task),),)


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
    """In how many tasks a seed is solved at every test named: exactly so many, or at most."""

    rule: Literal["count"] = "count"
    model: str
    tests: dict[str, tuple[str, ...]]  # task: tests
    count: int
    at_most: bool = False

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (tuple((self.model, task) for task in self.tests),)


class OrderPart(_Frozen):
    """One model is better than another, or on par with it, in one number per seed."""

    rule: Literal["order"] = "order"
    model: str
    other: str
    relation: Relation
    by: Literal["tasks_solved", "mean"]
    tests: dict[str, tuple[str, ...]]

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(
            tuple((model, task) for task in self.tests) for model in (self.model, self.other)
        )


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
    ValuePart | LevelPart | TrendPart | CountPart | OrderPart | CostPart,
    Field(discriminator="rule"),
]


class Claim(_Frozen):
    """One checkable statement with everything that its verdict needs except the runs."""

    id: str  # "mla-001", or for a cell of a table "mla-table-2/Content/copy/15"
    paper: str
    artifact: str
    kind: Kind  # the rule: where there are several parts, each is judged by it
    statement: str  # in our words
    quote: str | None = None
    where: str = ""  # section of the paper
    source: Source
    parts: tuple[Part, ...]
    scope: str | None = None
    not_testable: str | None = None

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


def parts(line: Expectation, artifact: str) -> list[Part]:
    """The parts of one line of a claim. RelengthError for a model or cell that the table lacks."""
    table = published.table(artifact)
    _known(set(line.models) | {*(line.better_than or ()), *(line.on_par_with or ())}, table["row"])
    tests = lengths_by_task(line.cells, artifact)
    if line.better_than or line.on_par_with:
        relation: Relation = "better" if line.better_than else "on_par"
        return [
            OrderPart(model=model, other=other, relation=relation, by=line.by, tests=tests)
            for model in line.models
            for other in line.better_than or line.on_par_with or ()
        ]
    count = line.tasks_solved if line.tasks_solved is not None else line.tasks_solved_at_most
    if count is not None:
        at_most = line.tasks_solved is None
        return [
            CountPart(model=model, tests=tests, count=count, at_most=at_most)
            for model in line.models
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
    table = published.table(artifact)
    rows = table[(table["row"] == model) & table["column"].isin([f"{task}/{t}" for t in tests])]
    if len(rows) != len(tests) or rows["value"].isna().any():
        raise RelengthError(
            f"{artifact} prints no value for {model} on {task} at {', '.join(tests)}."
        )
    spread = rows["spread"].iloc[0]
    if len(rows) > 1 and rows["spread"].notna().any():
        raise RelengthError(
            f"{artifact} prints mean ± sd: claim {model} on {task} one cell at a time."
        )
    return ValuePart(
        model=model,
        task=task,
        printed={
            c.rpartition("/")[2]: v for c, v in zip(rows["column"], rows["value"], strict=True)
        },
        spread=None if spread != spread else spread,
        n=None if rows["n"].isna().any() else int(rows["n"].iloc[0]),
    )


def lengths_by_task(patterns: tuple[str, ...], artifact: str) -> dict[str, tuple[str, ...]]:
    """{task: tests} of the table's columns that match a pattern, in the table's order.

    "*" stands for anything; the test "longest" is the last one of each task.
    """
    tests: dict[str, list[str]] = {}
    for column in published.table(artifact)["column"].unique():
        task, _, test = column.rpartition("/")
        tests.setdefault(task, []).append(test)
    names = {
        (task, test): [f"{task}/{test}"] + [f"{task}/longest"] * (test == known[-1])
        for task, known in tests.items()
        for test in known
    }
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for both in names.values() for name in both):
            known = ", ".join(name for both in names.values() for name in both)
            raise RelengthError(f"{artifact} has no column {pattern!r}: it has {known}.")
    chosen: dict[str, tuple[str, ...]] = {}
    for (task, test), both in names.items():
        if any(fnmatchcase(name, pattern) for name in both for pattern in patterns):
            chosen[task] = (*chosen.get(task, ()), test)
    return chosen


def _known(models: set[str], rows: pd.Series) -> None:
    known = list(dict.fromkeys(rows))
    for model in sorted(models - set(known)):
        raise RelengthError(f"The table has no row {model!r}: it has {', '.join(known)}.")
