"""Experiments of "Monotonic Location Attention for Length Generalization".

Source: Ray Chowdhury and Caragea (2023).
"""

from typing import Any

from relength.models.seq2seq import TWO_ARMED
from relength.spec import RunSpec, Scale, make_spec

TASKS = (
    *("copy", "reverse_copy", "lookup", "reverse_lookup"),
    *("recopy", "reverse_recopy", "inv_recopy", "inv_reverse_recopy"),
)
MODELS = ("Content", "Relative", "LocAttn", "Bi-Relative", "OneStepAttn", "MonoAttn")
TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 1},
    "reduced": {"epochs": 25, "solved_accuracy": 0.999, "solved_epochs": 10},
    "paper": {"epochs": 100},
}
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"train_size": 128, "dev_size": 16, "test_size": 16, "validation_size": 16},
    "reduced": {},
    "paper": {},
}


def table_2(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 2: six attention mechanisms on eight probing tasks, two of them in both readings."""
    models = [{"name": name} for name in MODELS] + [
        {"name": name, "arm": "paper"} for name in TWO_ARMED
    ]
    return [
        make_spec(
            task={"name": task, **SIZES[scale]},
            model=model,
            training=TRAINING[scale],
            scale=scale,
            seed=seed,
        )
        for model in models
        for task in TASKS
    ]
