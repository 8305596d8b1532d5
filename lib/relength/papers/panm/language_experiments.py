"""Experiments of Section 3.5: language models on letters, with and without PANM on top.

Source: Le et al., TMLR version: Tables 7 and 8; Table 11, whose numbers are not in the text;
Appendix D.5. A run of scale paper is asked without examples and after five; at scale reduced runs
that are also asked after five are an experiment of their own.

At scale paper the model is Llama2-7B, whose weights have to be on the machine. At scale reduced it
is Llama's network with fewer than a million weights, from scratch, and the claims are not about it.
"""

from typing import Any

from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale, make_spec

PRETRAINED = "meta-llama/Llama-2-7b-hf"
TASKS = ("llm_copy", "llm_dynamic_recall")
UNTUNED: dict[str, Any] = {"name": "Pretrained Llama"}
MODELS: tuple[dict[str, Any], ...] = (
    {"name": "Llama"},
    {"name": "PANM on Llama", "arm": "paper"},
    {"name": "PANM on Llama", "arm": "repaired"},
)
TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"steps": 20, "validate_every": 10, "curve_every": 10, "batch_size": 8, "warm_up": 5},
    "reduced": {
        **{"steps": 2_000, "curve_every": 200, "validate_every": 50, "clip_norm": 1.0},
        **{"highest_rate": 1e-3, "learning_rate": 2.5e-4},
    },
    "paper": {},
}
SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"train_size": 40, "test_size": 4, "validation_size": 8, "longest": 40, "shots": 5},
    "reduced": {"train_size": 32_000, "validation_size": 64},
    "paper": {"tokenizer": PRETRAINED, "shots": 5},
}
TESTED = {"llm_copy": 16, "llm_dynamic_recall": 200}  # sequences per test, at scale reduced
WIDTHS: dict[Scale, dict[str, Any]] = {
    "smoke": {"width": 16, "heads": 2, "inner_size": 16, "layers": 1},
    "reduced": {},
    "paper": {"weights": PRETRAINED},
}


def models(scale: Scale, seed: int) -> tuple[dict[str, Any], ...]:
    """List the models of a table, the pretrained one that is not fine-tuned last.

    It is the same for all seeds, so that one has it. At scale reduced nothing is pretrained; at
    scale smoke first weights at random stand for it.
    """
    return MODELS if seed or scale == "reduced" else (*MODELS, UNTUNED)


def training(model: dict[str, Any], tuning: dict[str, Any]) -> dict[str, Any]:
    """Return how a model is trained: as given, or not at all."""
    return {"name": "untrained"} if model == UNTUNED else tuning


def spec(scale: Scale, seed: int, model: dict[str, Any], task: str, **fields: Any) -> RunSpec:
    """One run as Appendix D.5 trains it; ``fields`` are further ones of the task."""
    tested = {"test_size": TESTED[task]} if scale == "reduced" else {}
    return make_spec(
        task={"name": task, **SIZES[scale], **tested, **fields},
        model=model | WIDTHS[scale],
        training=training(model, {"name": "fine_tuning", **TRAINING[scale]}),
        scale=scale,
        seed=seed,
    )


def letters(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 7: Copy first, and repaired PANM last."""
    return [spec(scale, seed, model, task) for model in models(scale, seed) for task in TASKS]


# Scale paper has examples anyway, and these are its runs.
SHOWN: dict[Scale, dict[str, int]] = {
    "smoke": {"longest": 20},
    "reduced": {"shots": 5},
    "paper": {},
}


def letters_shown(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 11: the same models, asked after five examples, too."""
    return [
        spec(scale, seed, model, task, **SHOWN[scale])
        for model in models(scale, seed)
        for task in TASKS
    ]


QUESTIONS = ("bigbench_arithmetic", "bigbench_abstract")
BIG_TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": TRAINING["smoke"],
    "reduced": TRAINING["reduced"]
    | {"steps": 300, "curve_every": 150, "warm_up": 50, "batch_size": 8},
    "paper": {},
}
# Three passes at scale paper. At scale reduced short prompts take more steps, long ones as above.
BIG_STEPS: dict[Scale, dict[str, int]] = {
    "smoke": {},
    "reduced": {"bigbench_arithmetic": 2_000},
    "paper": {"bigbench_arithmetic": 174, "bigbench_abstract": 15},
}
BIG_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"train_size": 16, "test_size": 2, "validation_size": 4},
    "reduced": {"test_size": 100},
    "paper": {"tokenizer": PRETRAINED, "shots": 5},
}


def question_spec(scale: Scale, seed: int, model: dict[str, Any], task: str) -> RunSpec:
    """One run on a task of BIG-bench."""
    tuning = {"name": "fine_tuning", **BIG_TRAINING[scale]}
    if task in BIG_STEPS[scale]:
        tuning["steps"] = BIG_STEPS[scale][task]
    if scale == "paper":  # validated after each pass, and on the test at the end
        tuning |= {"validate_every": tuning["steps"] // 3, "curve_every": tuning["steps"]}
    return make_spec(
        task={"name": task, **BIG_SIZES[scale]},
        model=model | WIDTHS[scale],
        training=training(model, tuning),
        scale=scale,
        seed=seed,
    )


def big_bench(scale: Scale, seed: int) -> list[RunSpec]:
    """Table 8; at scale reduced without examples in the prompts."""
    return [
        question_spec(scale, seed, model, task)
        for model in models(scale, seed)
        for task in QUESTIONS
    ]


EXPERIMENTS = (
    Experiment(
        name="panm_language",
        paper="panm",
        artifacts=("panm-table-7",),
        judged_arm="paper",
        grid=letters,
        title="Table 7",
        ordered=TASKS,
    ),
    Experiment(
        name="panm_language_shots",
        paper="panm",
        artifacts=("panm-table-11",),
        judged_arm="paper",
        grid=letters_shown,
        title="Table 11, after five examples",
        page="panm_language",
        ordered=TASKS,
        remark=lambda run: f"asked after {run.task.shots} examples, too",
    ),
    Experiment(
        name="panm_bigbench",
        paper="panm",
        artifacts=("panm-table-8",),
        judged_arm="paper",
        grid=big_bench,
        title="Table 8",
        ordered=QUESTIONS,
    ),
)
