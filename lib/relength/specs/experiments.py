"""Experiments: which runs each table and figure of a paper is made of."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Literal, get_args

from relength.errors import RelengthError
from relength.specs import published, registry
from relength.specs.spec import RunSpec, Scale


@dataclass(frozen=True)
class Experiment:
    """A set of runs that share a notebook.

    artifacts   tables and figures that are made from these runs
    judged_arm  the reading that the claims judge, see :attr:`judged_arms`
    grid        all specs of one seed at one scale, in the order in which they are worth running
    parts       which of the runs an artifact is made from, where that is not all of them
    title       what pages call it, if not by its first artifact
    page        the notebook that shows it, if that is another experiment's
    shows       the metric of its tables, if it is not what its tasks are measured by
    many        models whose success rate is asked for, which takes more seeds than verdicts do
    ordered     its tasks in the order of pages, where that is not the order of the grid
    usual       scale of the runs that its page shows unless asked for others
    remark      what a run has otherwise than runs of the paper's main experiment with equal model,
                arm and task have; empty for most
    """

    name: str
    paper: str
    artifacts: tuple[str, ...]
    judged_arm: str
    grid: Callable[[Scale, int], list[RunSpec]]
    parts: Mapping[str, Callable[[RunSpec], bool]] = field(
        default_factory=dict, hash=False, compare=False
    )
    title: str = ""
    page: str = ""
    shows: str = ""
    many: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    usual: Scale = "reduced"
    remark: Callable[[RunSpec], str] = field(default=lambda _: "", hash=False, compare=False)

    @property
    def shown(self) -> str:
        """The metric of its tables."""
        return self.shows or self.measure

    @property
    def heading(self) -> str:
        """The experiment's name on pages."""
        return self.title or published.name_of(self.artifacts[0])

    @property
    def measure(self) -> str:
        """The meaning of accuracy in its runs: the metric that its tasks are measured by."""
        return _measure(self)

    @property
    def judged_arms(self) -> dict[str, str]:
        """{row: arm that claims judge}: ``judged_arm`` where the row has it, else its first arm."""
        return _judged_arms(self)

    @property
    def tables(self) -> tuple[str, ...]:
        """Its artifacts that print a number per test, in order."""
        return tuple(name for name in self.artifacts if published.prints_tests(name))

    @property
    def statistic(self) -> Literal["mean", "median"]:
        """Name what its pages show of the seeds: as in its tables, else as in its figures."""
        return published.statistic(*(self.tables or self.artifacts))

    def makes(self, artifact: str, spec: RunSpec) -> bool:
        """Tell whether a run of this experiment is one of those that an artifact is made from."""
        return artifact not in self.parts or self.parts[artifact](spec)

    def specs(self, scale: Scale, seeds: Iterable[int]) -> list[RunSpec]:
        """Every run of these seeds: one seed of everything first."""
        return [spec for seed in seeds for spec in _by_key(self, scale, seed).values()]

    def cells(self, scale: Scale, artifact: str | None = None) -> list[tuple[str, str]]:
        """Distinct (row, task) pairs of the judged arms that need a run.

        artifact  only the pairs that this one is made from
        """
        pairs = (
            (spec.row, spec.task.name)
            for spec in self.specs(scale, [0])
            if self.judges(spec.row, spec.model.arm)
            and (artifact is None or self.makes(artifact, spec))
        )
        return list(dict.fromkeys(pairs))

    def judges(self, row: str, arm: str) -> bool:
        """Tell whether claims judge this arm of a row."""
        return self.judged_arms.get(row) == arm

    def spec_of(self, record: dict[str, Any]) -> RunSpec | None:
        """Return this experiment's spec of a record; None if the record has other settings."""
        spec = record["spec"]
        return _by_key(self, spec["scale"], spec["seed"]).get(record["key"])

    def owns(self, record: dict[str, Any]) -> bool:
        """Tell whether a record's run is one of this experiment's, and not one with other
        settings.
        """
        return self.spec_of(record) is not None

    def own(self, records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Keep the records whose runs are this experiment's, in its name whoever keeps them."""
        return [record | {"experiment": self.name} for record in records if self.owns(record)]

    def keeper(self, spec: RunSpec) -> "Experiment":
        """Return the experiment whose file keeps the records of a run: the paper's first one
        that wants it.
        """
        return _keepers(self.paper, spec.scale, spec.seed).get(spec.key, self)

    @property
    def files(self) -> tuple[str, ...]:
        """The experiments whose files keep its runs, itself first: pages may share runs."""
        return _files(self)

    @property
    def borrows(self) -> str:
        """The experiment that keeps all of its runs, if it has none of its own; else empty."""
        return _borrows(self)

    def wants(self, spec: RunSpec) -> bool:
        """Tell whether a run is one of this experiment's."""
        return spec.key in _by_key(self, spec.scale, spec.seed)


@lru_cache(maxsize=1024)
def _by_key(experiment: Experiment, scale: Scale, seed: int) -> dict[str, RunSpec]:
    return {spec.key: spec for spec in experiment.grid(scale, seed)}


@lru_cache(maxsize=1024)
def _keepers(paper: str, scale: Scale, seed: int) -> dict[str, Experiment]:
    keepers: dict[str, Experiment] = {}
    for found in experiments().values():
        if found.paper == paper:
            keepers = dict.fromkeys(_by_key(found, scale, seed), found) | keepers
    return keepers


@lru_cache(maxsize=64)
def _files(experiment: Experiment) -> tuple[str, ...]:
    # Two seeds: in its first a run may be watched that is another page's in all others.
    grids = (experiment.specs(scale, [0, 1]) for scale in get_args(Scale))
    keepers = (experiment.keeper(spec).name for grid in grids for spec in grid)
    return tuple(dict.fromkeys((experiment.name, *keepers)))


@lru_cache(maxsize=64)
def _borrows(experiment: Experiment) -> str:
    others = experiment.files[1:]
    grid = experiment.specs("smoke", [0])
    return others[0] if others and all(experiment.keeper(s) != experiment for s in grid) else ""


@lru_cache(maxsize=64)
def _measure(experiment: Experiment) -> str:
    return experiment.specs("smoke", [0])[0].task.measure


@lru_cache(maxsize=64)
def _judged_arms(experiment: Experiment) -> dict[str, str]:
    arms: dict[str, str] = {}
    for spec in experiment.specs("smoke", [0]):
        if spec.model.arm == experiment.judged_arm:
            arms[spec.row] = spec.model.arm
        arms.setdefault(spec.row, spec.model.arm)
    return arms


@cache
def experiments() -> dict[str, Experiment]:
    """Every experiment by name, paper by paper."""
    return {made.name: made for paper in registry.papers().values() for made in paper.experiments}


@cache
def borrowed() -> dict[str, tuple[str, tuple[str, ...]] | None]:
    """Notebooks without runs of their own: ``Paper.borrowed`` of all papers."""
    every = [paper.borrowed for paper in registry.papers().values()]
    return {page: shown for pages in every for page, shown in pages.items()}


def pages() -> tuple[str, ...]:
    """Every notebook: those of experiments that have one, and the borrowing ones."""
    return (*(name for name, found in experiments().items() if not found.page), *borrowed())


def experiment(name: str) -> Experiment:
    """The experiment of that name; RelengthError lists the known ones."""
    known = experiments()
    if name not in known:
        raise RelengthError(
            f"There is no experiment {name!r}: choose one of {', '.join(known)} "
            "(`relength list` describes them)."
        )
    return known[name]


def shown_by(notebook: str) -> tuple[Experiment, tuple[str, ...]] | None:
    """The experiment whose runs a notebook shows, and which of its artifacts; None if it has none.

    RelengthError for a notebook that is named after nothing.
    """
    if notebook not in borrowed():
        return experiment(notebook), experiment(notebook).artifacts
    shown = borrowed()[notebook]
    return None if shown is None else (experiment(shown[0]), shown[1])


def anchor_of(artifact: str, page: str) -> str:
    """Return the anchor of an artifact on a page.

    It is the artifact's name on the first page that shows it; elsewhere the page's name follows.
    """
    makers = [found.name for found in experiments().values() if artifact in found.artifacts]
    return f"{artifact}-{page.partition('_')[2]}" if page in makers[1:] else artifact


def page_of(artifact: str, experiment: str) -> str:
    """The notebook that shows an artifact: that of its experiment, unless another borrows it."""
    lenders = (page for page, runs in borrowed().items() if runs and artifact in runs[1])
    found = experiments().get(experiment)
    return next(lenders, found.page if found and found.page else experiment)


def _printed(artifact: str) -> set[tuple[str, str]]:
    """The rows and columns that a table prints; none of what prints no numbers per test."""
    if not published.prints_tests(artifact):
        return set()
    return set(published.table(artifact)[["row", "column"]].itertuples(index=False, name=None))


@cache
def same_runs_as(artifact: str) -> str:
    """Name the table that prints another number of the same runs; empty if there is none.

    Whoever counts printed numbers over several tables counts such runs once, for that other table.
    """
    makers = [found for found in experiments().values() if artifact in found.artifacts]
    if not makers or not all(found.borrows for found in makers):
        return ""
    cells = {cell for found in makers for cell in found.cells("smoke", artifact)}
    for lender in (experiment(found.borrows) for found in makers):
        for table in lender.tables:
            if cells <= set(lender.cells("smoke", table)) and _printed(artifact) <= _printed(table):
                return table
    return ""
