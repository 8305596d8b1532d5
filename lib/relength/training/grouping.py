"""Groups of runs that can be trained as one program."""

import json
import math
from collections.abc import Iterable
from functools import lru_cache

from relength.specs.spec import RunSpec
from relength.streams import EVALUATION_SEED, stream
from relength.tasks.base import Task

WIDTH_SAMPLES = 64


def signature(spec: RunSpec) -> str:
    """Runs of equal signature can stack: they differ in seed, rate, and task of equal shape.

    Their tasks share the methods that compute loss and score. Fixed samples may differ in length,
    as they are padded. Samples drawn afresh never are: there, lengths and widths belong to the
    signature.
    """
    task = spec.task
    shape = {
        "sizes": task.shape,
        "kind": task.kind,
        "computed": [type(task).loss.__qualname__, type(task).right.__qualname__],
        "splits": {name: split.size for name, split in task.splits().items()},
        "dev": task.dev_splits,
        "watched": task.watched_splits,
        "alone": None if task.stacks else spec.key,
        "drawn": _drawn_widths(task) if spec.training.fresh else None,
    }
    training = spec.training.model_dump(exclude={"learning_rate"})
    return json.dumps([spec.scale, spec.model.model_dump(), training, shape], sort_keys=True)


def _drawn_widths(task: Task) -> tuple[int, ...]:
    batch = task.sample(stream(0, "data"), 1, task.train_lengths[1])
    return (*task.train_lengths, *(getattr(batch, name).shape[1] for name in batch.LENGTHS))


@lru_cache(maxsize=256)
def _width_class(task: Task) -> tuple[int, ...]:
    """Powers of two of the mean lengths of fixed samples.

    Nothing for samples drawn afresh, nor for those of a file, whose lengths only the data could
    tell: no other task is like theirs, so that one class has them all.
    """
    train = task.splits().get("train")
    if train is None or not train.longest or not task.stacks:
        return ()
    random = stream(EVALUATION_SEED, "evaluation", "widths")  # the same draw for related tasks
    batch = task.sample(random, WIDTH_SAMPLES, (train.shortest, train.longest))
    return tuple(
        round(math.log2(float(getattr(batch, lengths).double().mean())))
        for lengths in batch.counts()
    )


def stacks(specs: Iterable[RunSpec], most: int) -> list[list[RunSpec]]:
    """Specs in groups of at most ``most`` that can train together, in order of first members.

    Long samples pad short ones to waste, so runs of similar lengths come together first. What does
    not fill a stack shares one with its neighbours in length: a step takes as long as the longest
    sample, whoever else is in it.
    """
    place = {spec: i for i, spec in enumerate(dict.fromkeys(specs))}
    alike: dict[str, dict[tuple[int, ...], list[RunSpec]]] = {}
    for spec in place:
        alike.setdefault(signature(spec), {}).setdefault(_width_class(spec.task), []).append(spec)
    groups: list[list[RunSpec]] = []
    for classes in alike.values():
        shared: list[RunSpec] = []
        for _, same in sorted(classes.items()):
            full = len(same) - len(same) % most
            groups += [same[i : i + most] for i in range(0, full, most)]
            if len(shared) + len(same[full:]) > most:
                groups.append(shared)
                shared = []
            shared = shared + same[full:]
        groups.append(shared)
    groups = [sorted(group, key=place.get) for group in groups if group]
    return sorted(groups, key=lambda group: place[group[0]])
