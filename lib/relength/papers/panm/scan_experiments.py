"""Experiment of Section 3.3: PANM on a Transformer, and four Transformers, on SCAN with cut-offs.

Source: Le et al., TMLR version: Table 4 (left) and Figure 6.
"""

from functools import cache
from typing import Any

from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale, make_spec

# In the order in which runs are worth most: where the printed rows part, the ends, the rest.
CUT_OFFS = (26, 25, 24, 22, 40, 27, 28, 30, 32, 33, 36)
DRAWN = (22, 24, 25, 26)  # in Figure 6
RIVALS = ("TRM+RPE", "U. TRM+RPE")
PANM: dict[str, Any] = {"name": "PANM on TRM", "arm": "paper"}
REPAIRED: dict[str, Any] = {"name": "PANM on TRM", "arm": "repaired"}
FAILING = ("TRM", "U. TRM")  # in the paper, at every cut-off
LONGER = 26  # the cut-off that is also trained twice as long: there the printed rows part
BUDGETS = (1, 2)  # of a scale's steps

TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"steps": 20, "validate_every": 10, "batch_size": 8},
    "reduced": {"steps": 3_000, "validate_every": 300, "batch_size": 64},
    "paper": {"steps": 50_000, "validate_every": 2_500, "batch_size": 256},
}
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"train_size": 40, "test_size": 8, "validation_size": 8},
    "reduced": {},
    "paper": {},
}
WIDTHS: dict[Scale, dict[str, int]] = {
    "smoke": {"width": 16, "heads": 2, "inner_size": 16},
    "reduced": {},
    "paper": {},
}


def spec(scale: Scale, seed: int, model: dict[str, Any], cut_off: int, times: int = 1) -> RunSpec:
    """One run under the protocol of the cited code (Section 3.3), or ``times`` as many steps."""
    made = _of_seed_0(scale, tuple(model.items()), cut_off, times)
    return made.model_copy(update={"seed": seed})


@cache  # a new spec counts the commands of SCAN within its cut-off, for each seed the same ones
def _of_seed_0(
    scale: Scale, model: tuple[tuple[str, Any], ...], cut_off: int, times: int
) -> RunSpec:
    training = TRAINING[scale]
    return make_spec(
        task={"name": f"scan_{cut_off}", **SIZES[scale]},
        model=dict(model) | WIDTHS[scale],
        training={"name": "fixed_steps", **training, "steps": times * training["steps"]},
        scale=scale,
        seed=0,
    )


def cut_offs(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 4, left: eleven cut-offs; models that fail in the paper, and repaired PANM, last."""
    first = [*({"name": name} for name in RIVALS), PANM]
    last = [*({"name": name} for name in FAILING), REPAIRED]
    return [
        *(spec(scale, seed, model, n) for n in CUT_OFFS for model in first),
        *(spec(scale, seed, model, n) for model in last for n in CUT_OFFS),
    ]


def budgets(scale: Scale, seed: int) -> list[RunSpec]:
    """One cut-off, trained as long and twice as long: one seed of two models."""
    if seed:
        return []
    models = ({"name": RIVALS[0]}, PANM)
    return [spec(scale, seed, model, LONGER, times) for times in BUDGETS for model in models]


def _drawn(run: RunSpec) -> bool:
    return run.model.name == PANM["name"] and run.task.cut_off in DRAWN


EXPERIMENTS = (
    Experiment(
        name="panm_scan",
        paper="panm",
        artifacts=("panm-table-4", "panm-fig-6"),
        judged_arm="paper",
        grid=cut_offs,
        parts={"panm-fig-6": _drawn},
        title="Table 4, left, and Figure 6",
        ordered=tuple(f"scan_{n}" for n in sorted(CUT_OFFS)),
    ),
    Experiment(
        name="panm_scan_budget",
        paper="panm",
        artifacts=(),
        judged_arm="paper",
        grid=budgets,
        title="Twice the steps on SCAN",
        page="panm_scan",
        remark=lambda run: f"{run.training.steps:,} steps",
    ),
)
