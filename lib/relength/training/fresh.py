"""Training samples that are drawn afresh at every step."""

from collections.abc import Iterator

from relength.specs.spec import RunSpec
from relength.streams import EVALUATION_SEED, stream
from relength.tasks.algorithmic import Drawn


def lengths(spec: RunSpec, interval: int) -> list[int]:
    """The length of each step's batch: uniform over the task's range, equal for all seeds.

    Equal, too, for all tasks of one range: runs that are stacked share the shapes of their batches.
    """
    shortest, longest = spec.task.train_lengths
    steps = spec.training.validate_every
    random = stream(EVALUATION_SEED, "lengths", shortest, longest, steps, interval)
    return random.integers(shortest, longest + 1, steps).tolist()


def batches(spec: RunSpec, interval: int, most: int | None = None) -> Iterator[Drawn]:
    """The samples of each step of an interval, or of its first ones."""
    first = interval * spec.training.validate_every
    for step, length in enumerate(lengths(spec, interval)[:most], start=first):
        random = stream(spec.seed, "data", spec.task.name, step)
        yield spec.task.draw(random, spec.training.batch_size, length)
