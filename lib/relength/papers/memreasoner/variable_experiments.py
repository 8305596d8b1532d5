"""Experiments of "MemReasoner", Appendix A.6: variable tracking on two readings of its task."""

from typing import Any

from relength.papers.memreasoner.baseline_experiments import LARIMAR
from relength.papers.memreasoner.experiments import TRAINING, runs
from relength.papers.memreasoner.pretrained_experiments import run
from relength.specs.experiments import Experiment
from relength.specs.spec import RunSpec, Scale

# Reading of the task, and the arm that stands for it: the paper's words first.
READINGS = {"paper": "text", "ruler": "ruler"}
HOPS = {"vt_1hop": 1, "vt_2hop": 2}
# At scale reduced: two hops take longer to learn than one, as in bAbI. A name of RULER's is five
# letters, of which a trial had the first ones right from the ninth epoch on. One hop has what fits
# in 20 minutes of a core that does nothing else; so many epochs of two hops take three times that.
EPOCHS = {"vt_1hop": {"text": 4, "ruler": 24}, "vt_2hop": {"text": 8, "ruler": 8}}
# Words of a segment of RMT, letters and digits being a word each: the median length of a training
# sample (Appendix A.6).
SEGMENT = 85
# RMT is trained until it knows the training distribution, or as long as MemReasoner.
KNOWN: dict[Scale, dict[str, Any]] = {
    "smoke": {},
    "reduced": {"solved_accuracy": 0.99},
    "paper": {},
}
SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"train_size": 64, "validation_size": 20, "long_size": 5, "words": 500},
    "reduced": {},
    "paper": {},
}


def variable_tracking(scale: Scale, seed: int) -> list[RunSpec]:
    """Tables 13 and 14. Each read finds one line, of which RULER's chains have one more.

    Baselines are trained on the paper's words alone.
    """
    ours = [
        run(
            {"name": task, "reading": reading, **SIZES[scale]},
            {"name": "MemReasoner each hop", "arm": arm, "hops": hops + (arm == "ruler")},
            _training(scale, task, reading),
            scale,
            seed,
        )
        for arm, reading in READINGS.items()
        for task, hops in HOPS.items()
    ]
    fields = {"reading": READINGS["paper"], **SIZES[scale]}
    usual = {task: _training(scale, task, READINGS["paper"]) for task in HOPS}
    others = [
        spec
        for task in HOPS
        for spec in runs(
            task,
            scale,
            seed,
            [
                ({"name": "RMT", "segment": SEGMENT}, usual[task] | KNOWN[scale], fields),
                ({"name": "Larimar"}, usual[task] | LARIMAR, fields),
            ],
        )
    ]
    return [*ours, *others]


def _training(scale: Scale, task: str, reading: str) -> dict[str, Any]:
    return TRAINING[scale] | ({"epochs": EPOCHS[task][reading]} if scale == "reduced" else {})


EXPERIMENTS = (
    Experiment(
        name="memreasoner_variable_tracking",
        paper="memreasoner",
        artifacts=("memreasoner-table-13", "memreasoner-table-14"),
        judged_arm="paper",
        grid=variable_tracking,
        title="Tables 13 and 14",
    ),
)
