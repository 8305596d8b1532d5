"""Experiment of Section 3.3: PANM on two Transformers, and four Transformers, on mathematics.

Source: Le et al., TMLR version: Table 19, and Table 4 (right), which has some of its rows.
"""

from typing import Any

from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale, make_spec

TASKS = ("math_place_value", "math_add_or_sub")  # the first tells the printed rows apart
PANM: dict[str, Any] = {"name": "PANM on TRM+RPE", "arm": "paper"}
REPAIRED = PANM | {"arm": "repaired"}
OTHERS: tuple[dict[str, Any], ...] = (
    *({"name": name} for name in ("TRM", "U. TRM+RPE", "U. TRM")),
    {"name": "PANM on TRM", "arm": "paper"},
    REPAIRED,
)

TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"steps": 20, "validate_every": 10, "batch_size": 8},
    "reduced": {"steps": 3_000, "validate_every": 300, "batch_size": 64, "learning_rate": 1e-3},
    "paper": {
        **{"steps": 50_000, "validate_every": 2_500, "batch_size": 256},
        **{"learning_rate": 1e-4, "clip_norm": 0.1},
    },
}
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"train_size": 40, "test_size": 8, "validation_size": 8},
    "reduced": {"train_size": 200_000, "test_size": 1_000, "validation_size": 2_000},
    "paper": {},
}
WIDTHS: dict[Scale, dict[str, int]] = {
    "smoke": {"width": 16, "heads": 2, "inner_size": 16},
    "reduced": {},
    "paper": {"width": 512, "inner_size": 2_048, "encoder_layers": 6, "decoder_layers": 6},
}


def spec(scale: Scale, seed: int, model: dict[str, Any], task: str) -> RunSpec:
    """One run under the protocol of the cited code; PANM has a decoder layer less."""
    sizes = dict(WIDTHS[scale])
    if "decoder_layers" in sizes and model["name"].startswith("PANM"):
        sizes["decoder_layers"] -= 1
    return make_spec(
        task={"name": task, **SIZES[scale]},
        model=model | sizes,
        training={"name": "fixed_steps", **TRAINING[scale]},
        scale=scale,
        seed=seed,
    )


def mathematics(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 19: first PANM and what it is built on."""
    models = ({"name": "TRM+RPE"}, PANM, *OTHERS)
    return [spec(scale, seed, model, task) for model in models for task in TASKS]


EXPERIMENT = Experiment(
    name="panm_mathematics",
    paper="panm",
    artifacts=("panm-table-19",),
    judged_arm="paper",
    grid=mathematics,
    title="Mathematics",
)
