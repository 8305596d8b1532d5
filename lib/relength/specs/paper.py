"""What the rest of the project must know of a paper: one object per folder of relength.papers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from relength.specs.experiments import Experiment


@dataclass(frozen=True)
class Paper:
    """One reproduced paper.

    name         short name: of its folder, of its claims, deviations and results
    experiments  in the order in which their runs are worth having
    borrowed     notebooks without runs of their own: the experiment and the artifacts whose runs
                 they show; None where they show what is computed on the page, or measured by
                 another command
    """

    name: str
    experiments: tuple[Experiment, ...] = ()
    borrowed: Mapping[str, tuple[str, tuple[str, ...]] | None] = field(default_factory=dict)
