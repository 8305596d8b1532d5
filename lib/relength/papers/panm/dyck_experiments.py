"""Experiment of Section 3.2: PANM with a stack network on Dyck languages.

Source: Le et al., TMLR version: Figures 3 (a) and 5 (left), Table 2.
"""

from typing import Any

from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale, make_spec

LANGUAGES = ("dyck_2", "dyck_3")
UNIQUE = ("dyck_2_unique", "dyck_3_unique")  # the other way to read the training sets
MODELS: tuple[dict[str, str], ...] = (
    {"name": "SRNN"},
    {"name": "PANM on SRNN", "arm": "paper"},
    {"name": "PANM on SRNN", "arm": "repaired"},
)
ENCODER = {"name": "PANM on SRNN", "arm": "encoder"}
LARGE = {"name": "PANM on SRNN", "arm": "large"}

EPOCHS: dict[Scale, int] = {"smoke": 1, "reduced": 2, "paper": 5}
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"train_size": 40, "test_size": 10, "validation_size": 10},
    "reduced": {"train_size": 2_500, "test_size": 1_000},
    "paper": {},
}


def spec(scale: Scale, seed: int, model: dict[str, Any], task: str) -> RunSpec:
    """One run under the protocol that Section 3.2 and Appendix D.2 describe."""
    return make_spec(
        task={"name": task, **SIZES[scale]},
        model=model,
        training={"name": "plain_epochs", "epochs": EPOCHS[scale]},
        scale=scale,
        seed=seed,
    )


def languages(scale: Scale, seed: int) -> list[RunSpec]:
    """D2 and D3: SRNN alone and under PANM; then with training strings that are all different.

    Readings from the appendix come last, those of 256 units in the first seed alone.
    """
    last = [ENCODER, LARGE] if seed == 0 else [ENCODER]
    return [
        *(spec(scale, seed, model, task) for model in MODELS for task in LANGUAGES),
        *(spec(scale, seed, model, task) for model in MODELS for task in UNIQUE),
        *(spec(scale, seed, model, task) for model in last for task in LANGUAGES),
    ]


def _as_printed(spec: RunSpec) -> bool:
    return spec.task.name in LANGUAGES


EXPERIMENT = Experiment(
    name="panm_dyck",
    paper="panm",
    artifacts=("panm-fig-3a", "panm-fig-5-left"),
    judged_arm="paper",
    grid=languages,
    parts={"panm-fig-3a": _as_printed, "panm-fig-5-left": _as_printed},
    title="Figures 3a and 5, left",
    usual="paper",  # a run takes minutes
)
