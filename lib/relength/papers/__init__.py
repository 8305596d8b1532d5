"""The experiments of the four papers: which runs each table and figure is made of."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from relength.errors import RelengthError
from relength.papers import mla
from relength.spec import RunSpec, Scale


@dataclass(frozen=True)
class Experiment:
    """A set of runs that share a notebook.

    artifacts   tables and figures that are made from these runs
    judged_arm  the reading that the claims judge
    grid        all specs of one seed at one scale, in the order in which they are worth running
    """

    name: str
    paper: str
    artifacts: tuple[str, ...]
    judged_arm: str
    grid: Callable[[Scale, int], list[RunSpec]]

    def specs(self, scale: Scale, seeds: Iterable[int]) -> list[RunSpec]:
        """Every run of these seeds: one seed of everything first."""
        return [spec for seed in seeds for spec in self.grid(scale, seed)]

    def cells(self, scale: Scale) -> list[tuple[str, str]]:
        """Distinct (row, task) pairs of the judged arm that need a run."""
        pairs = (
            (spec.model.name, spec.task.name)
            for spec in self.grid(scale, 0)
            if spec.model.arm == self.judged_arm
        )
        return list(dict.fromkeys(pairs))

    def owns(self, record: dict[str, Any]) -> bool:
        """Whether a record's run is one of this experiment's, and not one with other settings."""
        spec = record["spec"]
        return record["key"] in _keys(self, spec["scale"], spec["seed"])


@lru_cache(maxsize=1024)
def _keys(experiment: Experiment, scale: Scale, seed: int) -> frozenset[str]:
    return frozenset(spec.key for spec in experiment.grid(scale, seed))


EXPERIMENTS: dict[str, Experiment] = {
    "mla_table2": Experiment(
        name="mla_table2",
        paper="mla",
        artifacts=("mla-table-2",),
        judged_arm="released",
        grid=mla.table_2,
    ),
}


def experiment(name: str) -> Experiment:
    """The experiment of that name; RelengthError lists the known ones."""
    if name not in EXPERIMENTS:
        raise RelengthError(
            f"There is no experiment {name!r}: choose one of {', '.join(EXPERIMENTS)} "
            "(`relength list` describes them)."
        )
    return EXPERIMENTS[name]
