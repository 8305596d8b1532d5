"""Experiments of "MemReasoner: A Memory-Augmented LLM Architecture", Section 4.

The paper's models have pretrained weights and 1.4 billion parameters. Those of scales smoke and
reduced are small and start from nothing.
"""

from typing import Any

from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale, make_spec

ARMS = ("paper", "released", "repaired")
# What a plain decoder of our size can read in its window.
WITHIN_WINDOW = ("0k", "1k", "2k")
TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 1, "batch_size": 8, "learning_rate": 1e-3},
    "reduced": {"epochs": 2, "batch_size": 32, "learning_rate": 1e-3, "clip_norm": 1.0},
    "paper": {},
}
# Trained until they know the training distribution, as the paper trains its baselines, or to
# the last epoch.
UNTIL_FITTED: dict[Scale, dict[str, Any]] = {
    "smoke": {},
    "reduced": {"epochs": 10, "solved_accuracy": 0.99},
    "paper": {},
}
SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {
        **{"train_size": 64, "validation_size": 16, "test_size": 16, "long_size": 2},
        "words": 500,
    },
    "reduced": {},
    "paper": {},
}

# Beyond the paper: Eq. 1 without some of its terms, by the weights that are 0.
LOSSES: dict[str, dict[str, float]] = {
    "all terms": {},
    "without facts": {"alpha": 0.0},
    "without autoencoding": {"beta": 0.0},
    "without ordering": {"delta": 0.0},
    "without other text": {"rho": 0.0},
    "answer and ordering": {"alpha": 0.0, "beta": 0.0, "rho": 0.0},
}


def one_fact(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 2: trained on task 1 of bAbI, tested on BABILong to 128 thousand tokens."""
    ours = [({"name": "MemReasoner", "arm": arm}, TRAINING[scale], {}) for arm in ARMS]
    plain = ({"name": "GPT"}, TRAINING[scale] | UNTIL_FITTED[scale], {"lengths": WITHIN_WINDOW})
    return [
        make_spec(
            task={"name": "babi_one_fact", **SIZES[scale], **lengths},
            model=model,
            training={"name": "facts", **training},
            scale=scale,
            seed=seed,
        )
        for model, training, lengths in (*ours, plain)
    ]


def losses(scale: Scale, seed: int) -> list[RunSpec]:
    """Beyond the paper: task 1 of bAbI without some terms of the loss, tested as in Table 2.

    With all terms it is the run of Table 2.
    """
    return [
        make_spec(
            task={"name": "babi_one_fact", **SIZES[scale]},
            model={"name": "MemReasoner", "arm": "paper"},
            training={"name": "facts", **TRAINING[scale], **weights},
            scale=scale,
            seed=seed,
        )
        for weights in LOSSES.values()
    ]


def terms_of(spec: RunSpec) -> str:
    """Name the terms of the loss that a run of :func:`losses` is trained with."""
    zero = {
        name: 0.0 for name in ("alpha", "beta", "delta", "rho") if not getattr(spec.training, name)
    }
    return next(name for name, weights in LOSSES.items() if weights == zero)


def without_terms(spec: RunSpec) -> str:
    """Say what a run of :func:`losses` has otherwise than that of Table 2."""
    said = terms_of(spec)
    return "" if not LOSSES[said] else said


EXPERIMENTS = (
    Experiment(
        name="memreasoner_babilong",
        paper="memreasoner",
        artifacts=("memreasoner-table-2",),
        judged_arm="paper",
        grid=one_fact,
        title="Table 2",
    ),
    Experiment(
        name="memreasoner_losses",
        paper="memreasoner",
        artifacts=(),
        judged_arm="paper",
        grid=losses,
        title="What each term of the loss is worth",
        remark=without_terms,
    ),
)
