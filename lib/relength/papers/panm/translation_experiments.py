"""Experiment of Sections 3.4 and D.6: PANM on a Transformer, and the Transformer, in translation.

Source: Le et al., TMLR version: Figure 3b, Figure 7 (right), and a column of Table 2.
"""

from typing import Any

from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale, make_spec

PANM: dict[str, Any] = {"name": "PANM on TRM", "arm": "paper"}
TRM: dict[str, Any] = {"name": "TRM"}
CURVE, TURNED = "multi30k_50", "multi30k_longer_50"  # tasks of Figure 3b right, of Figure 7 right
SPLITS = ("multi30k_80", CURVE)
LAYERS = (2, 1, 3)

TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 2, "batch_size": 8},
    "reduced": {"epochs": 15, "batch_size": 64, "learning_rate": 1e-3, "clip_norm": 1.0},
    "paper": {"epochs": 50, "batch_size": 128, "learning_rate": 1e-4, "clip_norm": 1.0},
}
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"sentences": 60, "words": 60, "validation_size": 8, "test_size": 8},
    "reduced": {"sentences": 8_000, "words": 3_000, "validation_size": 400, "test_size": 1_000},
    "paper": {},
}
WIDTHS: dict[Scale, dict[str, int]] = {
    "smoke": {"width": 16, "heads": 2, "inner_size": 16},
    "reduced": {},
    "paper": {"width": 512, "inner_size": 2_048},
}


def spec(scale: Scale, seed: int, model: dict[str, Any], task: str, layers: int) -> RunSpec:
    """One run; PANM's controller takes the place of the decoder's last layer, if it has several."""
    panm = model["name"].startswith("PANM")
    depth = {"encoder_layers": layers, "decoder_layers": max(layers - panm, 1)}
    return make_spec(
        task={"name": task, **SIZES[scale]},
        model=model | depth | WIDTHS[scale],
        training={"name": "epochs_by_length", "tested": "lowest", **TRAINING[scale]},
        scale=scale,
        seed=seed,
    )


def translation(scale: Scale, seed: int) -> list[RunSpec]:
    """The curves of two layers first, then the other numbers of layers, then repaired PANM."""
    both = (TRM, PANM)
    curves = [(model, task, 2) for task in (CURVE, TURNED, SPLITS[0]) for model in both]
    others = [(model, task, n) for n in LAYERS[1:] for task in SPLITS for model in both]
    repaired = [(PANM | {"arm": "repaired"}, task, 2) for task in (CURVE, TURNED)]
    return [
        spec(scale, seed, model, task, layers)
        for model, task, layers in (*curves, *others, *repaired)
    ]


def _curve(run: RunSpec) -> bool:
    return run.task.name == CURVE and run.model.encoder_layers == 2


EXPERIMENT = Experiment(
    name="panm_translation",
    paper="panm",
    artifacts=("panm-fig-3b-left", "panm-fig-3b-right", "panm-fig-7-right"),
    judged_arm="paper",
    grid=translation,
    parts={
        "panm-fig-3b-left": lambda run: run.task.name in SPLITS,
        "panm-fig-3b-right": _curve,
        "panm-fig-7-right": lambda run: run.task.name == TURNED,
    },
    title="Figures 3b and 7, right",
    shows="perplexity",
    ordered=(*SPLITS, TURNED),
)
