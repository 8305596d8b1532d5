"""List the runs to train: everything that the experiments want, or what is chosen of it."""

import re
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from relength.errors import RelengthError
from relength.runs.store import Store
from relength.specs.experiments import Experiment, experiment, experiments
from relength.specs.margins import load_margins
from relength.specs.spec import RunSpec, Scale

MANY_SEEDS = 20  # where a success rate says something

# How a run can be chosen: by what, and how that is read off its spec.
NAMES: dict[str, Callable[[RunSpec], str]] = {
    "task": lambda spec: spec.task.name,
    "model": lambda spec: spec.model.name,
    "arm": lambda spec: spec.model.arm,
    "key": lambda spec: spec.key,
}


def least_seeds() -> int:
    """Return how many seeds verdicts need at least."""
    return load_margins().least_seeds


class Run(NamedTuple):
    """A run and the experiment that wants it."""

    experiment: Experiment
    spec: RunSpec


def choose(
    asked: Sequence[str],
    scale: Scale,
    seeds: int | None,
    shard: tuple[int, int] = (1, 1),
    **names: Sequence[str] | None,
) -> list[Run]:
    """Runs of the experiments asked for (of all when none is), one seed of everything first.

    asked  names of experiments
    seeds  None for all that anything asks for: those of verdicts, and more where a success rate is
           wanted
    shard  (i, n): only every n-th run, from the i-th
    names  only runs of these names, by the kinds of :data:`NAMES`

    Raises RelengthError for a name that nothing has.
    """
    few = seeds or least_seeds()
    named = [experiment(name) for name in asked or experiments()]
    runs = wanted(
        (found, spec)
        for seed in range(seeds or MANY_SEEDS)
        for found in named
        if seed < few or found.many
        for spec in found.specs(scale, [seed])
        if seed < few or spec.model.name in found.many
    )
    for kind, chosen in names.items():
        known = dict.fromkeys(NAMES[kind](run.spec) for run in runs)
        if unknown := [name for name in chosen or () if name not in known]:
            where = f"{', '.join(asked)}: no" if asked else "No experiment has a"
            way_out = f"choose from {', '.join(known)}"
            if kind == "key":
                way_out = (
                    "its entry on the book's page of provenance has the command that finds it"
                    if re.fullmatch("[0-9a-f]{12}", unknown[0])
                    else "a key has 12 hex digits, and the book's page of provenance lists them"
                )
            raise RelengthError(f"{where} {kind} {unknown[0]!r} at scale {scale}: {way_out}.")
        runs = [run for run in runs if not chosen or NAMES[kind](run.spec) in chosen]
    number, of = shard
    return runs[number - 1 :: of]


def wanted(pairs: Iterable[tuple[Experiment, RunSpec]]) -> list[Run]:
    """The runs that experiments want, each once and for the experiment that keeps its records."""
    runs = {spec.key: Run(found.keeper(spec), spec) for found, spec in pairs}
    return list(runs.values())


def missing(runs: Iterable[Run], *stores: Store) -> list[Run]:
    """Keep the runs without a successful record in any of the stores, in the order given."""
    runs = list(runs)
    files = {name for run in runs for name in run.experiment.files}
    done = {record["key"] for store in stores for record in store.usable(*files)} if files else ()
    return [run for run in runs if run.spec.key not in done]


def in_words(
    found: Experiment, specs: Iterable[RunSpec], recorded: Container[str], noun: str = ""
) -> str:
    """Word how many of an experiment's runs are recorded: *30 of 320*.

    Where another experiment's file keeps a part of them: *0 of 880 of its own and 90 of 240 shared
    with another*.

    recorded  keys of runs
    noun      what is counted, as " runs"
    """
    kept: dict[str, list[bool]] = {}
    for spec in dict.fromkeys(specs):
        kept.setdefault(found.keeper(spec).name, []).append(spec.key in recorded)
    words = {name: f"{sum(there)} of {len(there)}" for name, there in kept.items()}
    if len(words) == 1:
        return f"{words.popitem()[1]}{noun}"
    own = words.pop(found.name, "")
    shared = [f"{count} shared with {name}" for name, count in words.items()]
    return " and ".join([f"{own}{noun} of its own", *shared] if own else shared)


def at_hand(runs: Sequence[Run], fetch: bool = False) -> tuple[list[Run], list[str]]:
    """The runs whose tasks have their data on this machine; and of the others, task and reason.

    fetch  download what is missing, where that is possible. Not for runs that nobody asked for by
           name: hundreds of megabytes are no by-product
    """
    tasks = {run.spec.task for run in runs}
    if fetch:
        for task in tasks:
            with suppress(RelengthError):  # the reason is told below
                task.provenance()
    # At one scale a task may need what it does not at another, such as pretrained weights.
    reasons = {task: task.lacks() for task in tasks}
    there = [run for run in runs if not reasons[run.spec.task]]
    told = {(task.name, why) for task, why in reasons.items() if why}
    return there, [f"{name}: {why}" for name, why in sorted(told)]
