"""The runs behind a claim, found in the store's frame and reduced to what the rules take."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
import pandas as pd

from relength.errors import RelengthError
from relength.specs import registry
from relength.specs.margins import ROUNDING, Level, Margin, Margins
from relength.tasks.metrics import Metric
from relength.verdicts import rules, stats
from relength.verdicts.claim_history import Origin
from relength.verdicts.claim_models import (
    CostPart,
    CountPart,
    LevelPart,
    LongestPart,
    OrderPart,
    Part,
    PoolPart,
    RangePart,
    SomePart,
    Source,
    TrendPart,
    ValuePart,
)

SCALES = ("paper", "reduced")  # highest first; smoke is not among them and never judges anything
CELL = ("scale", "model", "arm", "task")


class BySeed(NamedTuple):
    """Numbers of some seeds, which ascend: values (S,), or (S, T) of T tests."""

    seeds: np.ndarray
    values: np.ndarray

    def over_tests(self, how: Callable[..., np.ndarray]) -> "BySeed":
        """One number of each seed, from those of its tests: np.mean, np.all."""
        return BySeed(self.seeds, how(self.values, axis=1))


def joined(parts: Sequence[BySeed]) -> BySeed:
    """The columns (S, sum of T) of the seeds that all parts have, a column for a part of one."""
    seeds = reduce(np.intersect1d, (part.seeds for part in parts))
    rows = (part.values[np.searchsorted(part.seeds, seeds)] for part in parts)
    return BySeed(seeds, np.concatenate([row.reshape(len(seeds), -1) for row in rows], axis=1))


class Evidence:
    """The runs of one experiment, as one small table of seeds per cell.

    frame: of :func:`relength.runs.store.frame`, any columns beyond those needed are ignored. Raises
    RelengthError when a cell has two runs of one seed: two protocols are never mixed silently.
    """

    def __init__(self, source: Source, frame: pd.DataFrame):
        self.source = source
        every = frame[
            (frame["experiment"] == source.experiment)
            & (frame["checkpoint"] == source.checkpoint)
            & frame["scale"].isin(SCALES)
        ]
        self._runs = self._counted(every)
        self._silent = Counter[tuple[str, ...]]()
        if len(self._runs) < len(every):
            of_runs = [*CELL, "seed"]
            counted, all_runs = (
                set(runs[of_runs].itertuples(index=False, name=None))
                for runs in (self._runs, every)
            )
            self._silent.update(tuple(cell) for _, *cell, _ in all_runs - counted)
        twice = self._runs[self._runs.duplicated([*CELL, "seed", "test"])]
        if len(twice):
            run = twice.iloc[0]
            raise RelengthError(
                f"{source.experiment} has two runs of {run['model']} ({run['arm']}) on "
                f"{run['task']}, seed {run['seed']}, scale {run['scale']}: pass only the usable "
                "records of the experiment's own specs."
            )

        positions = self._runs.groupby(list(CELL)).indices
        self._seeds, self._tests = self._runs["seed"].to_numpy(), self._runs["test"].to_numpy()
        self._cells = {
            cell: (frozenset(self._seeds[rows].tolist()), rows) for cell, rows in positions.items()
        }
        self._instead: dict[tuple[str, ...], list[pd.DataFrame]] = {}
        # Many claims need the same cell, and some cells no claim.
        self._tables: dict[tuple[str, ...], pd.DataFrame] = {}
        self._wide: dict[tuple[str, ...], tuple[BySeed, dict[str, int]]] = {}
        self._complete: dict[tuple[str, ...], frozenset[str]] = {}
        self._picked: dict[tuple[tuple[str, ...], ...], BySeed] = {}
        self._solved: dict[tuple[tuple[str, ...], ...], BySeed] = {}
        self._margins: dict[tuple[str, ...], frozenset[str] | None] = {}
        self._origins: dict[tuple[str, ...], Origin | None] = {}

    def _counted(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Leave out runs of which a paper's own metric says nothing: they are no seeds.

        Of the metric judged each test has to say something, of `runs_that` one.
        """
        if self.source.runs_that:
            one = [*CELL, "seed", *({"run_id"} & {*runs.columns})]  # several executions of a run
            runs = runs[runs.groupby(one)[self.source.runs_that].transform("count") > 0]
        if self.source.metric in registry.metrics():
            return runs[runs[self.source.metric].notna()]
        return runs

    def runs(self, scale: str, model: str, arm: str, task: str) -> pd.DataFrame:
        """Rows of one cell that has runs."""
        cell = scale, model, arm, task
        if cell not in self._tables:
            found = self._runs.iloc[self._cells[cell][1]]
            if others := self._instead.get(cell):
                seeds = {run["seed"].iloc[0] for run in others}
                found = pd.concat([found[~found["seed"].isin(seeds)], *others])
            self._tables[cell] = found
        return self._tables[cell]

    def with_executions(self, runs: pd.DataFrame) -> "Evidence":
        """Copy it with other executions of some runs; cells without any share their tables.

        runs: the rows of these executions, of this experiment, checkpoint and scale
        """
        other = copy(self)
        each = self._counted(runs).groupby([*CELL, "run_id"], sort=False)
        other._instead = {}
        for (*cell, _), run in each:
            other._instead.setdefault(tuple(cell), []).append(run)
        for name in ("_tables", "_wide", "_complete", "_margins", "_origins"):
            made = getattr(self, name).items()
            setattr(other, name, {cell: v for cell, v in made if cell not in other._instead})
        for name in ("_picked", "_solved"):
            made = getattr(self, name).items()
            setattr(other, name, {pick: v for pick, v in made if pick[0] not in other._instead})
        return other

    def seeds(self, scale: str, model: str, arm: str, task: str) -> frozenset[int]:
        """Seeds of one cell that ended well; a failed run has no rows and so is missing."""
        return self._cells.get((scale, model, arm, task), (frozenset(),))[0]

    def silent(self, model: str, arm: str, task: str) -> int:
        """Count the runs of a cell, at any scale, that the metric says nothing of."""
        return self._silent[model, arm, task]

    def values(self, scale: str, model: str, arm: str, task: str, tests: Sequence[str]) -> BySeed:
        """Metric of one cell at some tests.

        Raises RelengthError where a test is missing.
        """
        cell, tests_there = (scale, model, arm, task), self.tests(scale, model, arm, task)
        for test in tests:
            if test not in tests_there:
                raise RelengthError(
                    f"Runs of {model} ({arm}) on {task} have no result at test {test!r}: "
                    "claim and experiment must name the same test lengths."
                )
        picked = cell, tuple(tests)
        if picked not in self._picked:
            (seeds, values), columns = self._wide[cell]
            self._picked[picked] = BySeed(seeds, values[:, [columns[test] for test in tests]])
        return self._picked[picked]

    def at(self, test: str, *cell: str) -> np.ndarray:
        """Metric of one cell that has runs at a test, of those seeds that have a result there."""
        self.tests(*cell)
        (_, values), columns = self._wide[cell]
        found = values[:, columns[test]] if test in columns else np.empty(0)
        return found[~np.isnan(found)]

    def solved(self, *cell: str, tests: Sequence[str], level: Level) -> BySeed:
        """Tell which seeds of one cell are solved, as `level` says, at every test named."""
        picked = cell, tuple(tests)
        if picked not in self._solved:
            seeds, values = self.values(*cell, tests)
            self._solved[picked] = BySeed(seeds, level.holds(values)).over_tests(np.all)
        return self._solved[picked]

    def tests(self, scale: str, model: str, arm: str, task: str) -> frozenset[str]:
        """Tests at which every seed of a cell that has runs has a result."""
        cell = scale, model, arm, task
        if cell not in self._complete:
            (_, values), columns = self._wide[cell] = self._by_seed_and_test(cell)
            there = ~np.isnan(values).any(axis=0)
            self._complete[cell] = frozenset(test for test, at in columns.items() if there[at])
        return self._complete[cell]

    def _by_seed_and_test(self, cell: tuple[str, ...]) -> tuple[BySeed, dict[str, int]]:
        """Metric of one cell at every test, NaN without a result, and {test: column}."""
        rows = self._cells[cell][1]
        seeds, row = np.unique(self._seeds[rows], return_inverse=True)
        tests, column = np.unique(self._tests[rows], return_inverse=True)
        values = np.full((len(seeds), len(tests)), np.nan)
        values[row, column] = self._runs[self.source.metric].to_numpy()[rows]
        for run in self._instead.get(cell, ()):
            of_run = run.set_index("test")[self.source.metric].reindex(tests).to_numpy()
            values[seeds == run["seed"].iloc[0]] = of_run
        return BySeed(seeds, values), {test: at for at, test in enumerate(tests.tolist())}

    def first_run(self, scale: str, model: str, arm: str, task: str) -> Origin | None:
        """The origin of a cell's earliest run; None where the records do not say."""
        cell = scale, model, arm, task
        if cell not in self._origins:
            runs = self.runs(*cell)
            there = {"created", "commit", "claims"} <= {*runs.columns}
            first = runs.sort_values("created", kind="stable").iloc[0] if there else None
            self._origins[cell] = None if first is None else Origin.of(first)
        return self._origins[cell]

    def margins(self, scale: str, model: str, arm: str, task: str) -> frozenset[str] | None:
        """Hashes of the margins that a cell's runs were made under; None if one is unknown."""
        cell = scale, model, arm, task
        if cell not in self._margins:
            hashes = self.runs(*cell).get("margins")
            known = hashes is not None and not hashes.isna().any()
            self._margins[cell] = frozenset(hashes) if known else None
        return self._margins[cell]


def test_of(part: Part) -> rules.Test:
    """The test that judges a part."""
    match part:
        case OrderPart():
            return part.relation
        case ValuePart() if part.spread is not None:
            return "mean"
        case _:
            return "votes"


class Reading:
    """The runs of one scale and one choice of arms, with the rules applied to them.

    first: rules read only so many seeds, the lowest that a part has in all of its cells
    """

    def __init__(
        self,
        evidence: Evidence,
        scale: str,
        arms: dict[str, str],
        margins: Margins,
        first: int | None = None,
    ):
        self.evidence, self.scale, self.arms, self.margins = evidence, scale, arms, margins
        self.first = first

    def values(self, model: str, task: str, tests: Iterable[str]) -> BySeed:
        """:meth:`Evidence.values` at this scale, in the chosen arm of the model."""
        return self.evidence.values(self.scale, model, self.arms[model], task, list(tests))

    def decide(self, part: Part) -> rules.Decision:
        """Apply the rule of a part to it."""
        match part:
            case ValuePart():
                return self._value(part)
            case LevelPart():
                return self._level(part)
            case SomePart():
                return self._some(part)
            case TrendPart():
                return self._trend(part)
            case CountPart():
                return self._count(part)
            case OrderPart():
                return self._order(part)
            case RangePart():
                return self._range(part)
            case PoolPart():
                return self._pool(part)
            case LongestPart():
                return self._length(part)
            case CostPart():
                margin = self.margins.measures["cost_ratio"]
                ratios = self._ratios(part).iloc[: self.first]
                return rules.cost(ratios, part.ratio, margin, self.margins)

    @cached_property
    def _metric(self) -> Metric:
        return registry.metric(self.evidence.source.metric)

    @property
    def _margin(self) -> Margin:
        return self.margins.measures[self._metric.margin]

    @property
    def _lower_is_better(self) -> bool:
        return self._metric.lower_is_better

    @property
    def _best(self) -> float:
        """The best result that a run can have."""
        return 0.0 if self._lower_is_better else 100.0

    def ours(self, part: ValuePart) -> tuple[np.ndarray, Margin]:
        """Return what stands beside printed values, (seeds, values), and their margin."""
        if part.above is not None:
            found = self._longest(part.model, part.task, part.tests, part.above)
            return found.values[: self.first, None], self.margins.measures["length"]
        if part.tests:
            means = self._mean(part.model, {part.task: part.tests})
            return means.values[: self.first, None], self._margin
        return self.values(part.model, part.task, part.printed).values[: self.first], self._margin

    def _value(self, part: ValuePart) -> rules.Decision:
        values, margin = self.ours(part)
        printed = list(part.printed.values())
        if part.spread is None:
            decision = rules.median_value(values, printed, margin, self.margins)
        else:
            summary = stats.Summary(printed[0], part.spread, part.n or self.margins.least_seeds)
            decision = rules.mean_value(values[:, 0], summary, margin, self.margins)
        return self._turned(decision)

    def _turned(self, decision: rules.Decision) -> rules.Decision:
        """Swap the side of a contradiction where lower is better."""
        if self._lower_is_better and decision.outcome == "contradicted":
            return decision._replace(exceeds=not decision.exceeds)
        return decision

    def _level(self, part: LevelPart) -> rules.Decision:
        holds = self._at_level(part.model, part).values[: self.first]
        return rules.majority(holds, self.margins, exceeds=part.level != "solved")

    def _some(self, part: SomePart) -> rules.Decision:
        """Count per seed how many models reach the level; which ones may differ between seeds."""
        each = joined([self._at_level(model, part) for model in part.models])
        holds = each.values.sum(axis=1)[: self.first] >= part.at_least
        return rules.majority(holds, self.margins, exceeds=part.level != "solved")

    def _at_level(self, model: str, part: LevelPart | SomePart) -> BySeed:
        """Tell of each seed of a model whether it is at the level that a part names."""
        negated = part.level == "not_solved"
        level = self.margins.levels["solved" if negated else part.level]
        seeds, values = self.values(model, part.task, part.tests)
        reached = level.holds(values)
        return BySeed(seeds, ~reached.any(axis=1) if negated else reached.all(axis=1))

    def _range(self, part: RangePart) -> rules.Decision:
        """Seeds are compared one by one: models of one seed see equal data."""
        own = self._mean(part.model, part.tests)
        means = own.values
        if part.over:
            means, best = joined([own, self._best_mean(part.over, part.tests)]).values.T
            means = best - means if self._lower_is_better else means - best
        means = means[: self.first]
        decision = rules.inside(means, part.low, part.high, self._margin, self.margins)
        return decision if part.over else self._turned(decision)

    def _pool(self, part: PoolPart) -> rules.Decision:
        found = [
            self.values(model, task, tests)
            for model in part.models
            for task, tests in part.tests.items()
            if self.evidence.seeds(self.scale, model, self.arms[model], task)
        ]
        seeds = reduce(np.union1d, (one.seeds for one in found))
        pools = [  # of each seed, from the cells that have it
            np.concatenate([one.values[one.seeds == seed].ravel() for one in found])
            for seed in seeds[: self.first]
        ]
        means = np.array([*map(np.mean, pools)])
        return self._turned(rules.inside(means, part.low, part.high, self._margin, self.margins))

    def _trend(self, part: TrendPart) -> rules.Decision:
        """A seed follows: no step against the trend, more than the margin from first to last."""
        values = self.values(part.model, part.task, part.tests).values[: self.first]
        rise = values if part.direction == "rises" else -values
        room = self._margin.absolute + ROUNDING
        follows = (np.diff(rise, axis=1) >= -room).all(axis=1) & (rise[:, -1] - rise[:, 0] > room)
        # A seed that starts at the best there is and does not fall is better than claimed; one that
        # starts lower has not learned enough to have something to lose.
        from_best = np.abs(values[~follows, 0] - self._best) <= room
        exceeds = bool(from_best.sum() > from_best.size / 2)
        return rules.majority(follows, self.margins, exceeds=exceeds)

    def _count(self, part: CountPart) -> rules.Decision:
        solved = self._tasks_solved(part.model, part.tests).values[: self.first]
        margin = self.margins.measures["tasks_solved"]
        return rules.median_value(solved, part.count, margin, self.margins)

    def _order(self, part: OrderPart) -> rules.Decision:
        others_tests, lower = part.other_tests or part.tests, False
        if part.by == "tasks_solved":
            samples = [
                self._tasks_solved(part.model, part.tests),
                self._tasks_solved(part.other, others_tests),
            ]
            margin, best = self.margins.measures["tasks_solved"], len(part.tests)
        elif part.by == "longest":
            samples = [
                self._longest_of(model, asked, part.above)
                for model, asked in ((part.model, part.tests), (part.other, others_tests))
            ]
            margin = self.margins.measures["length"]
            best = sum(max(map(int, tests)) for tests in part.tests.values())
        else:
            others = part.best_of or (part.other,)
            samples = [self._mean(part.model, part.tests), self._best_mean(others, others_tests)]
            margin, best, lower = self._margin, self._best, self._lower_is_better
        first, second = (sample.values[: self.first] for sample in samples)
        return rules.order(first, second, part.relation, margin, self.margins, best, lower)

    def _longest_of(self, model: str, tests: dict[str, tuple[str, ...]], above: float) -> BySeed:
        """The sum over tasks of the longest, seed by seed."""
        each = [self._longest(model, task, asked, above) for task, asked in tests.items()]
        return joined(each).over_tests(np.sum)

    def _longest(self, model: str, task: str, tests: Sequence[str], above: float) -> BySeed:
        """The longest of the tests with a result above a level, seed by seed; 0 for none."""
        seeds, values = self.values(model, task, tests)
        return BySeed(seeds, ((values > above) * np.array([*map(int, tests)])).max(axis=1))

    def _length(self, part: LongestPart) -> rules.Decision:
        """Two models are compared seed by seed: those of one seed see equal data."""
        own = self._longest(part.model, part.task, part.tests, part.above)
        longest = own.values
        if part.than is not None:
            other = self._longest(part.than, part.task, part.tests, part.above)
            longest, others = joined([own, other]).values.T
            longest = longest[others > 0] / others[others > 0]
        margin = self.margins.measures["length"]
        longest = longest[: self.first]
        return rules.inside(longest, part.low, part.high, margin, self.margins)

    def _tasks_solved(self, model: str, tests: dict[str, tuple[str, ...]]) -> BySeed:
        level = self.margins.levels["solved"]
        solved = [
            self.evidence.solved(
                self.scale, model, self.arms[model], task, tests=lengths, level=level
            )
            for task, lengths in tests.items()
        ]
        return joined(solved).over_tests(np.sum)

    def _mean(self, model: str, tests: dict[str, tuple[str, ...]]) -> BySeed:
        each = [self.values(model, task, lengths) for task, lengths in tests.items()]
        return joined(each).over_tests(np.mean)

    def _best_mean(self, models: Sequence[str], tests: dict[str, tuple[str, ...]]) -> BySeed:
        """Mean over tests of what the best of several models has at each test, seed by seed."""
        best, found = np.min if self._lower_is_better else np.max, []
        for task, lengths in tests.items():
            seeds, columns = joined([self.values(model, task, lengths) for model in models])
            each = columns.reshape(len(seeds), len(models), len(lengths))
            found.append(BySeed(seeds, best(each, axis=1)))
        return joined(found).over_tests(np.mean)

    def _ratios(self, part: CostPart) -> pd.Series:
        first, second = (
            self.evidence.runs(self.scale, model, self.arms[model], part.task)
            .groupby(["seed", "device_name"])["seconds"]
            .first()
            for model in (part.model, part.than)
        )
        return (first / second).dropna()

    def in_distribution(self, model: str, task: str) -> float | None:
        """Median result on the lengths trained on, if recorded."""
        known = registry.tasks()[task]().known_test
        values = self.evidence.at(known, self.scale, model, self.arms[model], task)
        return float(np.median(values)) if values.size else None

    def is_failure(self, part: Part) -> bool:
        """Tell whether a part says that something fails, so that too little training makes it
        true.
        """
        match part:
            case LevelPart() | SomePart():
                return part.level != "solved"
            case ValuePart() if part.above is not None:
                task = registry.tasks()[part.task]()
                longest = task.splits()[task.known_test].longest
                return any(value < longest for value in part.printed.values())
            case LongestPart():  # some length that is tested is to be too long
                return part.than is None and part.high < max(map(int, part.tests))
            case ValuePart() if self._metric.share:
                return any(map(self.margins.levels["failed"].holds, part.printed.values()))
            case ValuePart() if self._lower_is_better:
                return any(value > self._margin.around(0) for value in part.printed.values())
            case _:
                return False
