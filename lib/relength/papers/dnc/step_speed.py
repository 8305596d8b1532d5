"""Two ways to train the DNC for a step: sequences as one compiled node, and the readable form."""

from functools import partial
from itertools import cycle

from relength.bench.pairs import Pair, Ways
from relength.papers.dnc.experiments import COMPRESSED, grid
from relength.specs.spec import RunSpec

LENGTH = 10  # of all sequences, the middle of the lengths that training has
BATCHES = 8
AIMS = {16: 5.0, 64: 3.5}  # times the readable form's speed, by samples of a batch


def steps(spec: RunSpec) -> Ways:
    """A step of training in both ways, on the same samples and each on weights of its own."""
    from relength.bench.speed import limits_of
    from relength.streams import stream
    from relength.training.alone import Trainer

    random, size = stream(0, "data", "speed"), spec.training.batch_size
    batches = [spec.task.sample(random, size, LENGTH) for _ in range(BATCHES)]
    compiled, readable = Trainer(spec), Trainer(spec)
    readable.model.fused = False
    ours, other = cycle(batches), cycle(batches)
    return Ways(
        ours=lambda: compiled.train_step(next(ours)),
        other=lambda: readable.train_step(next(other)),
        limits=lambda: limits_of([partial(readable.train_step, b) for b in batches], readable),
    )


def _pair(size: int, aim: float) -> Pair:
    (spec,) = grid("smoke", 0, [COMPRESSED], ["dnc_sort"], batch_size=size)
    return Pair(
        work=f"{spec.row} on sort: a step, {size} samples of length {LENGTH}",
        ours="compiled sequences",
        other="the readable form",
        aim=aim,
        build=partial(steps, spec),
    )


PAIRS = tuple(_pair(size, aim) for size, aim in AIMS.items())
