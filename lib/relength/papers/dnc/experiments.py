"""Experiments of "State-Space Constraints Improve the Generalization of the DNC", Section V.

Source: Ofner and Kern (2021): Tables II to VII, Figures 1 to 19.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale, make_spec

# The order in which runs are worth most: tasks in which the constraints are said to help, first.
TASKS = (
    *("dnc_sort", "dnc_copy"),
    *("dnc_differentiation", "dnc_add"),
    *("dnc_shift", "dnc_search", "dnc_logic"),
)
STATEFUL, COMPRESSED = (
    {"controller": "lstm", "constraint": "none"},
    {"controller": "peephole", "constraint": "compression"},
)
CONTROLLERS: tuple[dict[str, str], ...] = (
    STATEFUL,  # STATEFUL-BASELINE
    {"controller": "ffnn", "constraint": "none"},  # STATELESS-BASELINE
    COMPRESSED,  # COMPR
    {"controller": "peephole", "constraint": "regularisation"},  # REG
    {"controller": "peephole", "constraint": "both"},  # COMPR&REG
)
# Figure 5 has these, too, and all of the others but the stateless one.
WITHOUT_PEEPHOLES: tuple[dict[str, str], ...] = (
    {"controller": "lstm", "constraint": "compression"},
    {"controller": "lstm", "constraint": "regularisation"},
    {"controller": "lstm", "constraint": "both"},
    {"controller": "peephole", "constraint": "none"},
)
TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {
        **{"steps": 20, "batch_size": 4, "mean_of": 2, "select_from": 10, "curve_every": 10},
        "test_slots": 60,
    },
    "reduced": {
        **{"steps": 50_000, "batch_size": 16, "mean_of": 100, "select_from": 25_000},
    },
    "paper": {},
}
BUDGETS = (0.5, 1, 2)  # of a scale's steps
# Lengths with the larger memory: the paper's grid grows from steps of 5 to steps of 100.
SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {
        **{"train_lengths": (2, 5), "test_lengths": (2, 8), "iid_length": 5, "dev_length": 8},
        **{"extended_lengths": (4, 12), "watched": (6, 7)},
        **{"dev_size": 4, "test_size": 4, "validation_size": 4, "extended_size": 2},
    },
    "reduced": {
        "extended_lengths": (
            *(*range(5, 55, 5), 60, 80),
            *range(100, 501, 50),
        ),
        "watched": (20, 45),
        **{"dev_size": 16, "test_size": 64, "validation_size": 16, "extended_size": 16},
    },
    "paper": {
        "extended_lengths": (
            *(2, *range(5, 50, 5), *range(50, 100, 10)),
            *(*range(100, 500, 50), *range(500, 1001, 100)),
        ),
        "watched": (20, 45),
    },
}
# An answer of theirs is one decision: of few samples, some length is above 95 percent by luck.
DECISIONS = ("dnc_search", "dnc_logic")
MORE: dict[Scale, dict[str, int]] = {
    "smoke": {},
    "reduced": {"test_size": 256, "extended_size": 64},
    "paper": {},
}
# Figures of states and of gates, and the tasks of their runs.
PORTRAITS = {
    **{"dnc-fig-3": "dnc_sort", "dnc-fig-4": "dnc_copy"},
    **{"dnc-fig-10": "dnc_sort", "dnc-fig-11": "dnc_copy"},
    **{"dnc-fig-12": "dnc_differentiation", "dnc-fig-13": "dnc_differentiation"},
    **{"dnc-fig-14": "dnc_shift", "dnc-fig-15": "dnc_shift"},
    **{"dnc-fig-16": "dnc_add", "dnc-fig-17": "dnc_add"},
    **{"dnc-fig-18": "dnc_search", "dnc-fig-19": "dnc_logic"},
}
GATES = {
    **{"dnc-fig-6": "dnc_sort", "dnc-fig-7": "dnc_sort"},
    **{"dnc-fig-8": "dnc_copy", "dnc-fig-9": "dnc_copy"},
}


def _is_of(spec: RunSpec, task: str) -> bool:
    return spec.task.name == task


def _portrayed(spec: RunSpec, task: str) -> bool:
    """Tell whether a run is of the task, and its controller has states."""
    return spec.task.name == task and spec.model.controller != "ffnn"


def grid(
    scale: Scale, seed: int, models: Iterable[dict[str, str]], tasks: Iterable[str], **training: Any
) -> list[RunSpec]:
    """Every controller on every task; ``training`` changes the protocol's fields."""
    return [
        make_spec(
            task={"name": task, **SIZES[scale], **(MORE[scale] if task in DECISIONS else {})},
            model={"name": "Constrained DNC", **model},
            training={"name": "state_space", **TRAINING[scale], **training},
            scale=scale,
            seed=seed,
        )
        for task in tasks
        for model in models
    ]


def generalization(scale: Scale, seed: int) -> list[RunSpec]:
    """Figures 1 and 2, Tables II to VII: five controllers on seven tasks."""
    return grid(scale, seed, CONTROLLERS, TASKS)


def peephole(scale: Scale, seed: int) -> list[RunSpec]:
    """Figure 5: constraints on a vanilla LSTM, a Peephole LSTM without any, and the others."""
    stateful = [model for model in CONTROLLERS if model["controller"] != "ffnn"]
    return grid(scale, seed, (*stateful, *WITHOUT_PEEPHOLES), ["dnc_sort"])


def budgets(scale: Scale, seed: int) -> list[RunSpec]:
    """Sort, trained half as long, as long and twice as long: one seed of two controllers."""
    if seed:
        return []
    models, tasks = (STATEFUL, COMPRESSED), ["dnc_sort"]
    usual = grid(scale, seed, models, tasks)[0].training
    specs: list[RunSpec] = []
    for times in BUDGETS:
        steps, first = round(times * usual.steps), round(times * usual.select_from)
        specs += grid(scale, seed, models, tasks, steps=steps, select_from=first)
    return specs


EXPERIMENTS = (
    Experiment(
        name="dnc_generalization",
        paper="dnc",
        artifacts=(
            *("dnc-fig-1", "dnc-table-2", "dnc-table-3", "dnc-table-4"),
            *("dnc-fig-2", "dnc-table-5", "dnc-table-6", "dnc-table-7"),
            *PORTRAITS,
            *GATES,
        ),
        judged_arm="paper",
        grid=generalization,
        parts={
            **{figure: partial(_portrayed, task=task) for figure, task in PORTRAITS.items()},
            **{figure: partial(_is_of, task=task) for figure, task in GATES.items()},
        },
        title="Figure 1, Tables 2 and 3",
    ),
    Experiment(
        name="dnc_peephole",
        paper="dnc",
        artifacts=("dnc-fig-5",),
        judged_arm="paper",
        grid=peephole,
        title="Figure 5",
    ),
    Experiment(
        name="dnc_when",
        paper="dnc",
        artifacts=(),
        judged_arm="paper",
        grid=budgets,
        title="The length of training",
        remark=lambda spec: f"{spec.training.steps:,} steps",
    ),
)
