"""Experiments of "Plug, Play, and Generalize: Length Extrapolation with PANM", Section 3.1.

Source: Le et al., TMLR version: Tables 3 and 13-18, Figures 2, 7 (left), 8 and 9.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale, make_spec

# The order in which runs are worth most: tasks that ask for pointers alone, and for ids, first.
FIRST_TASKS = ("panm_copy", "panm_reverse", "panm_id_sort")
OTHER_TASKS = ("panm_mix", "panm_priority_sort", "panm_dynamic_recall")
TASKS = (*FIRST_TASKS, *OTHER_TASKS)
PANM_ARMS = ("released", "repaired", "paper")
# The code with one thing as the text has it.
ONE_CHANGED = ("mended", "contentless", "one-way", "undropped", "ten-bit", "wide")
CODE_ARMS = ("released", *ONE_CHANGED)  # these put start and end marks around an input

# In the order of Tables 13 to 18.
TABLED_TASKS = (
    *("panm_copy", "panm_reverse", "panm_mix"),
    *("panm_dynamic_recall", "panm_priority_sort", "panm_id_sort"),
)


def _is_of(spec: RunSpec, task: str, **model: Any) -> bool:
    """Tell whether a run is on this task, with a model that has these fields."""
    has = (getattr(spec.model, name) == value for name, value in model.items())
    return spec.task.name == task and all(has)


BASELINES: tuple[dict[str, Any], ...] = (
    {"name": "LSTM", "arm": "released"},
    {"name": "Location Attention", "arm": "paper"},
    {"name": "Content Attention", "arm": "released"},
    {"name": "Transformer", "arm": "released"},
    {"name": "DNC", "arm": "released"},
    {"name": "NTM", "arm": "released"},
    {"name": "Hybrid Attention", "arm": "paper"},
    {"name": "Neural Stack", "arm": "paper"},
    {"name": "PtrNet", "arm": "paper"},
    {"name": "NRAM", "arm": "paper"},
    {"name": "ESBN", "arm": "paper"},
)

# Baselines whose released code is another model than their text; tables have the code.
OF_TWO_READINGS = ("Content Attention", "Transformer", "NTM", "DNC")

# Which runs a table or figure is made from (figures 2c and 2d show pointers, so those of PANM).
PARTS: dict[str, Callable[[RunSpec], bool]] = {
    **{
        f"panm-table-{number}": partial(_is_of, task=task)
        for number, task in enumerate(TABLED_TASKS, start=13)
    },
    "panm-table-12": lambda spec: spec.model.name == "PANM" and spec.task.name in TABLED_TASKS[:4],
    "panm-fig-2a": partial(_is_of, task="panm_copy"),
    "panm-fig-2b": partial(_is_of, task="panm_id_sort"),
    "panm-fig-2c": partial(_is_of, task="panm_copy", name="PANM"),
    "panm-fig-2d": partial(_is_of, task="panm_id_sort", name="PANM"),
    "panm-fig-8-copy": partial(_is_of, task="panm_copy", n_mode2=0),
    "panm-fig-8-reverse": partial(_is_of, task="panm_reverse", n_mode2=0),
    "panm-fig-9-copy": partial(_is_of, task="panm_copy", n_mode1=2),
    "panm-fig-9-priority-sort": partial(_is_of, task="panm_priority_sort", n_mode1=2),
    "panm-fig-9-id-sort": partial(_is_of, task="panm_id_sort", n_mode1=2),
}

TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"name": "streaming", "steps": 20, "validate_every": 20, "batch_size": 8},
    "reduced": {"name": "streaming", "steps": 10_000, "batch_size": 32},
    "paper": {"name": "streaming", "steps": 50_000, "batch_size": 128},
}
LONGER = {"panm_id_sort": 100_000}  # steps at scale paper (Section 3.1)
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"dev_size": 16, "test_size": 16, "validation_size": 16},
    "reduced": {},
    "paper": {},
}


def spec(scale: Scale, seed: int, model: dict[str, Any], task: str, **fields: Any) -> RunSpec:
    """One run under the paper's protocol; ``fields`` are further ones of the task."""
    training = dict(TRAINING[scale])
    if scale == "paper":
        training["steps"] = LONGER.get(task, training["steps"])
    flags = {"flags": model.get("arm") in CODE_ARMS}
    return make_spec(
        task={"name": task, **SIZES[scale], **flags, **fields},
        model=model,
        training=training,
        scale=scale,
        seed=seed,
    )


def timed(task: str, scale: Scale, seed: int) -> RunSpec:
    """The run on which training speed is measured."""
    model = {"name": "PANM", "arm": "released"}
    if scale != "smoke":
        return spec(scale, seed, model, task)
    return make_spec(
        task={"name": task, "flags": True, "validation_size": 1},
        model=model,
        training={"name": "streaming", "steps": 200},
        scale=scale,
        seed=seed,
    )


def panm(arms: Iterable[str], **fields: Any) -> list[dict[str, Any]]:
    """PANM in several readings."""
    return [{"name": "PANM", "arm": arm, **fields} for arm in arms]


def algorithmic(scale: Scale, seed: int) -> list[RunSpec]:
    """Tables 13-18, and with them Table 3 and Figure 2: twelve models on six tasks."""
    models = [*panm(PANM_ARMS), *BASELINES]
    return [
        spec(scale, seed, model, task)
        for tasks in (FIRST_TASKS, OTHER_TASKS)
        for model in models
        for task in tasks
    ]


def pointer_heads(scale: Scale, seed: int) -> list[RunSpec]:
    """Figures 8 and 9: from no Mode-1 pointer to three without Mode 2; from no Mode 2 to two.

    A single Mode-1 pointer begins at the base or at the end. The figures show the test at 2(L+1)
    over training time, so that is watched; of the model with two and one pointers in its first
    seed alone, since its other runs are those of the main table.
    """
    arms = ("released", "repaired")
    counts = [{"n_mode1": heads, "n_mode2": 0} for heads in range(4)]
    counts.insert(2, {"n_mode1": 1, "n_mode2": 0, "single_from": "end"})
    mode1 = [
        _watched(scale, seed, model, task)
        for heads in counts
        for model in panm(arms, **heads)
        for task in ("panm_copy", "panm_reverse")
    ]
    mode2 = [
        _watched(scale, seed, model, task)
        for heads in range(3)
        for model in panm(arms, n_mode2=heads)
        for task in ("panm_copy", "panm_priority_sort", "panm_id_sort")
    ]
    return list({run.key: run for run in [*mode1, *mode2]}.values())  # Copy without Mode 2 is both


def _watched(scale: Scale, seed: int, model: dict[str, Any], task: str) -> RunSpec:
    """Specify a run whose learning curve has the test at 2(L+1), too.

    After the first seed it is the main table's run, without that curve, where that table has one.
    """
    plain = spec(scale, seed, model, task)
    if seed and (plain.model.n_mode1, plain.model.n_mode2) == (2, 1):
        return plain
    return spec(scale, seed, model, task, watched=int(plain.task.tests[2]))


def long_to_short(scale: Scale, seed: int) -> list[RunSpec]:
    """Figure 7, left: Mix, trained on lengths 20 to 30 and tested on 10."""
    models = panm(("released", "repaired"))
    models += [model for model in BASELINES if model["name"] == "Location Attention"]
    fields = {"train_lengths": (20, 30), "lengths": (30, 10)}
    return [spec(scale, seed, model, "panm_mix", **fields) for model in models]


def readings(scale: Scale, seed: int) -> list[RunSpec]:
    """Return the runs that the main table lacks to price each difference between text and code.

    The code with one thing as in the text; base addresses in tests as the other arms have them, and
    in training never drawn; the second readings of Mix and Dynamic Recall; those baselines that
    have two readings, with the flags of the first, so that nothing but the model is another.
    """
    zero, random = {"base_in_tests": "zero"}, {"base_in_tests": "random"}
    pairs = [
        *((model, task) for task in (*FIRST_TASKS, *OTHER_TASKS) for model in panm(["mended"])),
        *((model, task) for task in FIRST_TASKS[:2] for model in panm(ONE_CHANGED[1:])),
        *((model, task) for task in FIRST_TASKS[:2] for model in panm(["repaired"], **random)),
        *((model, task) for task in FIRST_TASKS[:2] for model in panm(["fixed-base"])),
        *((model, task) for task in FIRST_TASKS[:2] for model in panm(["released"], **zero)),
    ]
    arms = panm(("released", "repaired"))
    other = [{"name": name, "arm": "paper"} for name in OF_TWO_READINGS]
    return [
        *(spec(scale, seed, model, task) for model, task in pairs),
        *(spec(scale, seed, m, task, flags=True) for task in FIRST_TASKS[:2] for m in other),
        *(spec(scale, seed, model, "panm_mix", rule="example") for model in arms),
        *(spec(scale, seed, model, "panm_dynamic_recall", writes="all") for model in arms),
    ]


def otherwise(spec: RunSpec) -> str:
    """Say what a run of :func:`readings` has otherwise than the main table's of equal name."""
    task, model = spec.task, spec.model
    if task.name == "panm_mix" and task.rule == "example":
        return "the rule of the example"
    if task.name == "panm_dynamic_recall" and task.writes == "all":
        return "all tokens"
    if model.name == "PANM" and model.arm in PANM_ARMS:
        return {"zero": "base 0 in tests", "random": "random base in tests"}[model.base_in_tests]
    return "as in the text" if model.name in OF_TWO_READINGS else ""


LONGEST_TRAINED = (4, 5, 8, 9, 16, 17)  # pairs with a power of two between them


def training_lengths(scale: Scale, seed: int) -> list[RunSpec]:
    """Return runs on Copy that learn lengths from 1 to a limit, which differs; beyond the paper.

    Among n addresses in a row, those bits tell one from another that count to the next power of
    two, and no further bit ever has to. If a pointer learns these bits alone, it is right at as
    many steps of a long copy as that power says: 4, 8, 8, 16, 16 and 32.
    """
    (model,) = panm(["repaired"])
    return [
        spec(scale, seed, model, "panm_copy", train_lengths=(1, n), lengths=(n, n + 1, 20, 40, 80))
        for n in LONGEST_TRAINED
    ]


EXPERIMENTS = (
    Experiment(
        name="panm_algorithmic",
        paper="panm",
        artifacts=(
            *("panm-table-3", *(f"panm-table-{number}" for number in range(13, 19))),
            *(f"panm-fig-2{panel}" for panel in "abcd"),
            "panm-table-2",  # its first column; the others are from other experiments
            "panm-table-12",
        ),
        judged_arm="released",
        grid=algorithmic,
        parts=PARTS,
        title="Tables 3 and 13 to 18",
    ),
    Experiment(
        name="panm_pointer_heads",
        paper="panm",
        artifacts=(
            *("panm-fig-8-copy", "panm-fig-8-reverse"),
            *("panm-fig-9-copy", "panm-fig-9-priority-sort", "panm-fig-9-id-sort"),
        ),
        judged_arm="released",
        grid=pointer_heads,
        parts=PARTS,
        title="Figures 8 and 9",
    ),
    Experiment(
        name="panm_long_to_short",
        paper="panm",
        artifacts=("panm-fig-7-left",),
        judged_arm="released",
        grid=long_to_short,
        title="Figure 7, left",
    ),
    Experiment(
        name="panm_readings",
        paper="panm",
        artifacts=(),
        judged_arm="released",
        grid=readings,
        title="Text against code",
        remark=otherwise,
    ),
    Experiment(
        name="panm_address_bits",
        paper="panm",
        artifacts=(),
        judged_arm="repaired",
        grid=training_lengths,
        title="What a pointer learns of an address",
    ),
)
