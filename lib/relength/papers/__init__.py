"""The experiments of the four papers: which runs each table and figure is made of."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from relength.errors import RelengthError
from relength.papers import mla, panm
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
            (spec.row, spec.task.name)
            for spec in self.grid(scale, 0)
            if spec.model.arm == self.judged_arm
        )
        return list(dict.fromkeys(pairs))

    def spec_of(self, record: dict[str, Any]) -> RunSpec | None:
        """Which of this experiment's specs a record is of; None if it has other settings."""
        spec = record["spec"]
        return _by_key(self, spec["scale"], spec["seed"]).get(record["key"])

    def owns(self, record: dict[str, Any]) -> bool:
        """Whether a record's run is one of this experiment's, and not one with other settings."""
        return self.spec_of(record) is not None


@lru_cache(maxsize=1024)
def _by_key(experiment: Experiment, scale: Scale, seed: int) -> dict[str, RunSpec]:
    return {spec.key: spec for spec in experiment.grid(scale, seed)}


EXPERIMENTS: dict[str, Experiment] = {
    "mla_table2": Experiment(
        name="mla_table2",
        paper="mla",
        artifacts=("mla-table-2",),
        judged_arm="released",
        grid=mla.table_2,
    ),
    "panm_algorithmic": Experiment(
        name="panm_algorithmic",
        paper="panm",
        artifacts=(
            *("panm-table-3", *(f"panm-table-{number}" for number in range(13, 19))),
            *(f"panm-fig-2{panel}" for panel in "abcd"),
        ),
        judged_arm="released",
        grid=panm.algorithmic,
    ),
    "panm_pointer_heads": Experiment(
        name="panm_pointer_heads",
        paper="panm",
        artifacts=(
            *("panm-fig-8-copy", "panm-fig-8-reverse"),
            *("panm-fig-9-copy", "panm-fig-9-priority-sort", "panm-fig-9-id-sort"),
        ),
        judged_arm="released",
        grid=panm.pointer_heads,
    ),
    "panm_long_to_short": Experiment(
        name="panm_long_to_short",
        paper="panm",
        artifacts=("panm-fig-7-left",),
        judged_arm="released",
        grid=panm.long_to_short,
    ),
    "panm_readings": Experiment(
        name="panm_readings",
        paper="panm",
        artifacts=(),
        judged_arm="released",
        grid=panm.readings,
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
