"""Pointer-Augmented Neural Memory."""

from relength.papers.panm.experiments import EXPERIMENTS
from relength.specs.paper import Paper

PAPER = Paper(
    name="panm",
    experiments=EXPERIMENTS,
    borrowed={
        "panm_pointers": ("panm_algorithmic", ("panm-fig-2c", "panm-fig-2d")),
        "panm_address_exposure": None,
        "panm_cost": None,
    },
)
