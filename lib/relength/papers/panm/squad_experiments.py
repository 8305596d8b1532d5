"""Experiment of Section 3.4: BERT and PANM's controller on BERT, on SQuAD cut by length.

Source: Le et al., TMLR version: Table 6, Appendix D.4.

Scale paper takes bert-base-uncased, whose weights have to be on the machine, and both published
sets, read in windows as BERT's own code does. Scale reduced is a small network from scratch on the
development set alone, and says nothing of BERT.
"""

from typing import Any

from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale, make_spec

PRETRAINED = "google-bert/bert-base-uncased"
TASKS = ("squad_50", "squad_80")
MODELS: tuple[dict[str, Any], ...] = (
    {"name": "BERT"},
    {"name": "PANM on BERT", "arm": "paper"},
    {"name": "PANM on BERT", "arm": "repaired"},
)
EVERY: dict[str, Any] = {"batch_size": 16, "decay": "linear"}
TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"steps": 4, "validate_every": 2, "curve_every": 4, "warm_up": 2},
    "reduced": {
        **{"steps": 1_500, "validate_every": 50, "curve_every": 300, "warm_up": 150},
        **{"highest_rate": 5e-4, "learning_rate": 1e-4, "clip_norm": 1.0},
    },
    "paper": {
        **{"validate_every": 25, "curve_every": 300, "warm_up": 0},
        **{"highest_rate": 5e-5, "learning_rate": 5e-5},
    },
}
PASSES = {"squad_50": 9_100, "squad_80": 14_625}  # steps of three over questions, at scale paper
SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"train_size": 48, "test_size": 6, "validation_size": 6, "positions": 96},
    "reduced": {"positions": 256},
    "paper": {"tokenizer": PRETRAINED, "part": "all", "stride": 128},
}
WIDTHS: dict[Scale, dict[str, Any]] = {
    "smoke": {"width": 16, "heads": 2, "inner_size": 16, "layers": 1},
    "reduced": {},
    "paper": {"weights": PRETRAINED},
}


def spec(scale: Scale, seed: int, model: dict[str, Any], task: str) -> RunSpec:
    """One run as Appendix D.4 trains it, as far as it says."""
    steps = {"steps": PASSES[task]} if scale == "paper" else {}
    return make_spec(
        task={"name": task, **SIZES[scale]},
        model=model | WIDTHS[scale],
        training={"name": "fine_tuning", **EVERY, **TRAINING[scale], **steps},
        scale=scale,
        seed=seed,
    )


def squad(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 6."""
    return [spec(scale, seed, model, task) for model in MODELS for task in TASKS]


EXPERIMENT = Experiment(
    name="panm_squad",
    paper="panm",
    artifacts=("panm-table-6",),
    judged_arm="paper",
    grid=squad,
    title="Table 6",
    ordered=TASKS,
)
