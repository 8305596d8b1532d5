"""Experiments of "Monotonic Location Attention for Length Generalization".

Source: Ray Chowdhury and Caragea (2023).
"""

from collections.abc import Iterable
from typing import Any

from relength.models.seq2seq.attentions import arms_of
from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale, make_spec

TASKS = (
    *("copy", "reverse_copy", "lookup", "reverse_lookup"),
    *("recopy", "reverse_recopy", "inv_recopy", "inv_reverse_recopy"),
)
MODELS = ("Content", "Relative", "LocAttn", "Bi-Relative", "OneStepAttn", "MonoAttn")
TWO_ARMED = tuple(name for name in MODELS if len(arms_of(name)) > 1)  # text and code differ
TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"name": "epochs", "epochs": 1},
    "reduced": {"name": "epochs", "epochs": 25, "solved_accuracy": 0.999, "solved_epochs": 10},
    "paper": {"name": "epochs", "epochs": 100},
}
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"train_size": 128, "dev_size": 16, "test_size": 16, "validation_size": 16},
    "reduced": {},
    "paper": {},
}


ABLATIONS = ("OneStepAttn -Step 2", "OneStepAttn -Step 3", "OneStepAttn -Sigmoid")
TOLD_APART = ("copy", "lookup", "recopy", "inv_recopy")  # where most variants differ: first
VARIANTS = (
    *("LocAttn S", "Mix OneStepAttn PR", "Mix MonoAttn PR", "RMonoAttn", "Bi-ROPE"),
    *("Mix LocAttn S", "Mix LocAttn S PR", "Mix OneStepAttn", "Mix MonoAttn", "Mix RMonoAttn PR"),
    *("Mix RMonoAttn", "Mix LocAttn"),
)
EXTRA_TASKS = ("dedupe", "posretrieve")
EXTRA_MODELS = ("Content", "Bi-Relative", "LocAttn", "OneStepAttn", "MonoAttn")
SCAN_MODELS = (
    *("Content", "Relative", "Bi-Relative"),
    *("Mix LocAttn", "Mix OneStepAttn", "Mix MonoAttn"),
)
CFQ_MODEL = {
    **{"embedding_size": 128, "hidden_size": 256, "dropout": 0.4},
    **{"layers": 2, "inner_size": 512},
}
CFQ_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": SIZES["smoke"],
    "reduced": {"train_size": 20_000, "dev_size": 2_000, "test_size": 2_000},
    "paper": {},
}
FAR_TASKS = {  # tasks without lookup that are printed as solved at length 100
    "OneStepAttn": ("copy", "reverse_copy", "recopy", "reverse_recopy"),
    "MonoAttn": (
        *("copy", "reverse_copy", "recopy", "reverse_recopy"),
        *("inv_recopy", "inv_reverse_recopy"),
    ),
    "Bi-Relative": ("copy", "reverse_copy"),
    "Relative": ("copy",),
}
FAR_SIZES: dict[Scale, int] = {"smoke": 2, "reduced": 200, "paper": 200}

# What a table is made from, where its experiment has other runs, too.
PARTS = {
    "mla-table-3": lambda spec: spec.model.name in SCAN_MODELS,
    "mla-table-6": lambda spec: spec.task.name in EXTRA_TASKS,
    "mla-table-7": lambda spec: spec.model.name in VARIANTS,
    "mla-table-8": lambda spec: spec.model.name not in SCAN_MODELS,
}


def timed(task: str, scale: Scale, seed: int) -> RunSpec:
    """The run on which training speed is measured."""
    sizes = {"dev_size": 1, "validation_size": 1} if scale == "smoke" else {}
    fields = {"task": {"name": task, **sizes}, "model": "OneStepAttn", "training": "epochs"}
    return make_spec(**fields, scale=scale, seed=seed)


def grid(
    scale: Scale, seed: int, models: Iterable[str], tasks: Iterable[str], arm: int = 0
) -> list[RunSpec]:
    """Every model on every task, in its first reading or, with ``arm`` 1, in its second one.

    A model with one reading only is left out of the second.
    """
    return [
        make_spec(
            task={"name": task, **SIZES[scale]},
            model={"name": model, "arm": arms_of(model)[arm]},
            training=TRAINING[scale],
            scale=scale,
            seed=seed,
        )
        for model in models
        if arm < len(arms_of(model))
        for task in tasks
    ]


def table_2(scale: Scale, seed: int) -> list[RunSpec]:
    """Tables 2 and 9: six attention mechanisms on eight probing tasks, two in two readings."""
    return [*grid(scale, seed, MODELS, TASKS), *grid(scale, seed, TWO_ARMED, TASKS, arm=1)]


def table_4(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 4: OneStepAttn, and what is left of it without each of its changes."""
    models = ("OneStepAttn", *ABLATIONS)
    return [*grid(scale, seed, models, TASKS), *grid(scale, seed, models, TASKS, arm=1)]


def table_6(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 6: five attention mechanisms on two further tasks; and what DeDupe is compared with."""
    first = grid(scale, seed, EXTRA_MODELS, EXTRA_TASKS)
    compared = [
        spec for arm in (0, 1) for spec in grid(scale, seed, ("MonoAttn",), ("inv_recopy",), arm)
    ]
    return [*first, *grid(scale, seed, EXTRA_MODELS, EXTRA_TASKS, arm=1), *compared]


def table_7(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 7: twelve variants on the eight probing tasks, the telling tasks first.

    Last come the models of Table 2, which the variants are compared with, in each reading.
    """
    others = tuple(task for task in TASKS if task not in TOLD_APART)
    variants = [
        spec
        for tasks in (TOLD_APART, others)
        for arm in (0, 1)
        for spec in grid(scale, seed, VARIANTS, tasks, arm)
    ]
    compared = [*grid(scale, seed, MODELS, TASKS), *grid(scale, seed, TWO_ARMED, TASKS, arm=1)]
    return [*variants, *compared]


def lengths(scale: Scale, seed: int) -> list[RunSpec]:
    """Beyond the paper: the best attentions, tested at lengths up to 1,000."""
    far = {"far_size": FAR_SIZES[scale]}
    pairs = [(model, task) for model, tasks in FAR_TASKS.items() for task in tasks]
    return [
        make_spec(**spec.model_dump() | {"task": spec.task.model_dump() | far})
        for arm in (0, 1)
        for model, task in pairs
        for spec in grid(scale, seed, (model,), (task,), arm)
    ]


def scan(scale: Scale, seed: int) -> list[RunSpec]:
    """Tables 3 (left) and 8: the length split of SCAN."""
    models = tuple(dict.fromkeys((*SCAN_MODELS, "LocAttn", "OneStepAttn", "MonoAttn", *VARIANTS)))
    return [*grid(scale, seed, models, ("scan",)), *grid(scale, seed, models, ("scan",), arm=1)]


def cfq(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 3, right: the length split of CFQ, with the released code's sizes for it."""
    return [
        make_spec(
            task={"name": "cfq", **CFQ_SIZES[scale]},
            model={"name": model, "arm": arms_of(model)[arm], **CFQ_MODEL},
            training=TRAINING[scale] | {"batch_size": 128},
            scale=scale,
            seed=seed,
        )
        for arm in (0, 1)
        for model in SCAN_MODELS
        if arm < len(arms_of(model))
    ]


EXPERIMENTS = (
    Experiment(
        name="mla_table2",
        paper="mla",
        artifacts=("mla-table-2",),
        judged_arm="released",
        grid=table_2,
        many=TWO_ARMED,
    ),
    Experiment(
        name="mla_ablations",
        paper="mla",
        artifacts=("mla-table-4",),
        judged_arm="released",
        grid=table_4,
    ),
    Experiment(
        name="mla_extra_tasks",
        paper="mla",
        artifacts=("mla-table-6",),
        judged_arm="released",
        grid=table_6,
        parts=PARTS,
    ),
    Experiment(
        name="mla_scan",
        paper="mla",
        artifacts=("mla-table-3", "mla-table-8"),
        judged_arm="released",
        grid=scan,
        parts=PARTS,
        title="Tables 3 and 8",
    ),
    Experiment(
        name="mla_variants",
        paper="mla",
        artifacts=("mla-table-7",),
        judged_arm="released",
        grid=table_7,
        parts=PARTS,
    ),
    Experiment(
        name="mla_cfq",
        paper="mla",
        artifacts=("mla-table-3",),
        judged_arm="released",
        grid=cfq,
        title="Table 3, CFQ",
    ),
    Experiment(
        name="mla_edit_distance",
        paper="mla",
        artifacts=("mla-table-9",),
        judged_arm="released",
        grid=table_2,
        distance=True,
    ),
    Experiment(
        name="mla_failures",
        paper="mla",
        artifacts=("mla-table-10",),
        judged_arm="released",
        grid=table_2,
    ),
    Experiment(
        name="mla_lengths",
        paper="mla",
        artifacts=(),
        judged_arm="released",
        grid=lengths,
        title="Ten times as far",
    ),
    Experiment(
        name="mla_attention_paths",
        paper="mla",
        artifacts=(),
        judged_arm="released",
        grid=table_2,
        title="Paths of attention",
    ),
)
