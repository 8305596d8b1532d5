"""Experiment of Section 3.4: PANM on a Transformer, and two Transformers, on bAbI split by length.

Source: Le et al., TMLR version: Table 5 and Figure 5 (right).
"""

from typing import Any

from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale, make_spec

TASKS = ("babi_80", "babi_50")
JOINED = ("babi_joined_80", "babi_joined_50")  # the second reading: all tasks sorted as one
LONG_STORIES = (2, 3, 5)  # bAbI's tasks whose stories have up to 550, 1,350 and 780 words
PANM: dict[str, Any] = {"name": "PANM on TRM", "arm": "paper"}
OTHERS: tuple[dict[str, Any], ...] = ({"name": "U. TRM+RPE"}, PANM | {"arm": "repaired"})

TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 2, "batch_size": 8},
    "reduced": {"epochs": 15, "batch_size": 64, "learning_rate": 1e-3},
    "paper": {"epochs": 100, "batch_size": 128, "learning_rate": 6e-4, "halve_below": 0.1},
}
SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"per_task": 5, "without": LONG_STORIES, "validation_size": 8, "test_size": 8},
    "reduced": {"per_task": 400, "without": LONG_STORIES, "validation_size": 400,
                "test_size": 1_360},
    "paper": {},
}  # fmt: skip
WIDTHS: dict[Scale, dict[str, int]] = {
    "smoke": {"width": 16, "heads": 2, "inner_size": 16},
    "reduced": {},
    "paper": {"width": 512, "inner_size": 2_048},
}


BITS = 11  # of an address, for stories of more than a thousand words


def spec(scale: Scale, seed: int, model: dict[str, Any], task: str) -> RunSpec:
    """One run; PANM has a decoder layer less than TRM (Appendix D.4)."""
    long = {"bits": BITS} if scale == "paper" and model["name"] == PANM["name"] else {}
    return make_spec(
        task={"name": task, **SIZES[scale]},
        model=model | WIDTHS[scale] | long,
        training={"name": "epochs_by_length", **TRAINING[scale]},
        scale=scale,
        seed=seed,
    )


def babi(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 5: first PANM and what it is built on."""
    return [
        *(spec(scale, seed, model, task) for task in TASKS for model in ({"name": "TRM"}, PANM)),
        *(spec(scale, seed, model, task) for model in OTHERS for task in TASKS),
    ]


def joined(scale: Scale, seed: int) -> list[RunSpec]:
    """The second reading, of PANM and what it is built on."""
    return [spec(scale, seed, model, task) for task in JOINED for model in ({"name": "TRM"}, PANM)]


def _drawn(run: RunSpec) -> bool:
    return run.model.name in ("TRM", PANM["name"])


EXPERIMENTS = (
    Experiment(
        name="panm_babi",
        paper="panm",
        artifacts=("panm-table-5", "panm-fig-5-right"),
        judged_arm="paper",
        grid=babi,
        parts={"panm-fig-5-right": _drawn},
        title="Table 5 and Figure 5, right",
    ),
    Experiment(
        name="panm_babi_joined",
        paper="panm",
        artifacts=(),
        judged_arm="paper",
        grid=joined,
        title="bAbI, all tasks sorted as one",
        page="panm_babi",
    ),
)
