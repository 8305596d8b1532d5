"""The base of protocols that draw fresh samples at every step."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from relength.streams import EVALUATION_SEED, stream
from relength.training.protocols.counted import CountedSteps

if TYPE_CHECKING:
    from relength.specs.spec import RunSpec
    from relength.tasks.base import Task


class FreshSamples(CountedSteps):
    """A number of steps, each on samples of one length that nobody has seen before.

    A task draws them with ``draw(random, batch_size, length)`` and makes a batch of them, on the
    device, with ``encode(drawn, device)``. ``train_lengths`` are its shortest and longest.
    """

    fresh: ClassVar[bool] = True

    def lengths(self, task: "Task", interval: int) -> list[int]:
        """The length of each step's batch: uniform over the task's range, equal for all seeds.

        Equal, too, for all tasks of one range: stacked runs share the shapes of their batches.
        """
        shortest, longest = task.train_lengths
        steps = self.validate_every
        random = stream(EVALUATION_SEED, "lengths", shortest, longest, steps, interval)
        return random.integers(shortest, longest + 1, steps).tolist()

    def drawn(self, spec: "RunSpec", interval: int) -> Iterator[Any]:
        first = interval * self.validate_every
        for step, length in enumerate(self.lengths(spec.task, interval), start=first):
            random = stream(spec.seed, "data", spec.task.name, step)
            yield spec.task.draw(random, self.batch_size, length)
