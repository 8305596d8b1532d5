"""One run trained alone, from its spec to the metrics of its checkpoints.

It stops and resumes at any interval with identical results, because every random number is a
function of (seed, purpose, step).
"""

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from relength.kernels.hashing import step_key
from relength.specs import registry
from relength.specs.spec import RunSpec
from relength.stopping import time_is_up
from relength.streams import dropout_key
from relength.tasks.batch import Batch
from relength.training import arithmetic, optimisers
from relength.training.course import (
    CHECKPOINT_SECONDS,
    PROBE_ITEMS,
    PROBE_STEPS,
    Course,
    Progress,
    Scores,
    Snapshot,
)
from relength.training.evaluate import Measured, by_length, free_running, unchanged, validate
from relength.training.optimisers import Moments
from relength.training.provenance import code_fingerprint


@dataclass
class Trained:
    """The results that a finished run hands to its record.

    model    with the selected checkpoint's weights, as it was tested
    refused  why a state saved before was not resumed, or empty
    origin   commit, margins and claims of when the run began, or empty
    places   as in relength.training.course.Progress
    """

    model: torch.nn.Module
    checkpoints: dict[str, dict[str, Any]]
    parameters: int
    curve: list[dict[str, float]]
    probe: dict[str, Any]
    cost: dict[str, float]
    refused: str = ""
    origin: dict[str, Any] = field(default_factory=dict)
    places: list[list[str]] = field(default_factory=list)


def build(spec: RunSpec, device: str = "cpu") -> torch.nn.Module:
    """The spec's model with its initial weights."""
    module = registry.models()[spec.model.name].module
    model = module(spec.model, *spec.task.shape).initialise(spec.seed)
    arithmetic.check(spec.training, device)
    if torch.device(device).type != "cpu":
        model.fused = False  # the fused loops are a CPU's
    return model.to(device, getattr(torch, spec.training.precision))


class Trainer:
    """One run in progress: :meth:`run_epoch` until ``progress.finished``, then :meth:`result`."""

    def __init__(self, spec: RunSpec, device: str = "cpu"):
        self.spec, self.protocol, self.device = spec, spec.training, device
        task = spec.task
        self.course = Course(spec)
        self.model = build(spec, device)
        self.optimiser, self.moments = self.protocol.moves, Moments.start(self.model)
        fresh = self.protocol.fresh
        self.data = None if fresh else task.dataset("train", spec.seed).to(device)
        self.splits = {
            name: by_length(task.dataset(name, spec.seed).to(device))
            for name in dict.fromkeys((*task.dev_splits, "validation", *task.watched_splits))
        }
        self.dropout = dropout_key(spec.seed, "encodings")

    @property
    def progress(self) -> Progress:
        return self.course.progress

    def run_epoch(self) -> None:
        """Train one interval, evaluate, keep checkpoints, and decide whether training is over."""
        started = time.perf_counter()
        self.course.trained_on(self.device)
        loss = self.run_steps()
        self.course.end_epoch(loss, self.evaluate(), self._weights)
        self.progress.seconds += time.perf_counter() - started

    def run_steps(self, most: int | None = None) -> float:
        """Train on the batches of this interval, or on its first ones; returns the mean loss."""
        losses: list[Tensor] = []
        for batch in islice(self.batches(), most):
            losses.append(self.train_step(batch))
            if not self.progress.probe and len(losses) == PROBE_STEPS:
                self._probe(losses)
        if not self.progress.probe:  # an interval of fewer steps than a probe has
            self._probe(losses)
        return float(torch.stack(losses).mean())

    def batches(self) -> Iterator[Batch]:
        """The training batches of this interval, one after the other."""
        interval = self.progress.epoch
        if self.data is None:
            for drawn in self.protocol.drawn(self.spec, interval):
                yield self.spec.task.encode(drawn, self.device)
            return
        for positions in self.protocol.order(self.spec, self.data, interval):
            yield self.data.select(torch.from_numpy(positions).to(self.device))

    def train_step(self, batch: Batch) -> Tensor:
        """One optimiser step; returns the loss without waiting for it."""
        loss = self.loss(batch)
        self.model.zero_grad()
        loss.backward()
        optimisers.clip_model_(self.model, self.protocol.clip)
        optimisers.move(self.optimiser, self.model, self.moments, self.progress.rate)
        self.progress.step += 1
        return loss.detach()

    def loss(self, batch: Batch) -> Tensor:
        """Return what the next step minimises on a batch."""
        key = step_key(self.dropout, self.progress.step).to(self.device)
        return self.protocol.loss(self.spec.task, self.model, batch, key)

    def evaluate(self) -> Scores:
        """Measure what a course looks at after an interval; each set of samples once."""
        measured = cache(lambda name: self._validate(self.splits[name]))
        dev = [measured(name) for name in self.spec.task.dev_splits]
        watched = self.spec.task.watched_splits if self.course.shown else ()
        return Scores(
            Measured(*(sum(numbers) / len(dev) for numbers in zip(*dev, strict=True))),
            measured("validation") if self.course.asks_iid else None,
            {name: measured(name).accuracy for name in watched},
        )

    def _validate(self, batches: list[Batch]) -> Measured:
        return validate(self.model, batches, self.spec.task)

    def _probe(self, losses: list[Tensor]) -> None:
        """Keep what freshness compares: the first losses, and a small evaluation right after
        them.
        """
        _, loss = self._validate([self.splits["validation"][0].select(slice(0, PROBE_ITEMS))])
        self.progress.probe = {
            "losses": [float(x) for x in losses[:PROBE_STEPS]],
            "validation_loss": loss,
        }

    def _weights(self) -> dict[str, Tensor]:
        return {name: w.detach().clone() for name, w in self.model.state_dict().items()}

    def _ready(self, weights: dict[str, Tensor]) -> torch.nn.Module:
        """A model with these weights, as the protocol has it tested."""
        model = copy.deepcopy(self.model)
        model.load_state_dict(weights)
        self.protocol.before_test(model)
        return model

    def result(self) -> Trained:
        """Test every kept checkpoint; those of the same epoch are tested once."""
        started = time.perf_counter()
        task, progress = self.spec.task, self.progress
        tests = {
            name: by_length(task.dataset(name, self.spec.seed).to(self.device))
            for name in task.tests
        }
        tested: dict[int, dict[str, Any]] = {}
        for epoch, weights in progress.kept.values():
            if epoch not in tested:
                model = self._ready(weights)
                with unchanged(model):
                    tested[epoch] = {
                        name: free_running(model, batches, task).model_dump()
                        for name, batches in tests.items()
                    }
        checkpoints = {
            name: {"epoch": epoch, "tests": tested[epoch]}
            for name, (epoch, _) in progress.kept.items()
        }
        for name, retest in self.protocol.retests(task).items():
            epoch, weights = progress.kept["selected"]
            model = self._ready(weights)
            retest.change(model)
            checkpoints[name] = {
                "epoch": epoch,
                "tests": {
                    test: free_running(
                        model, by_length(task.dataset(split, self.spec.seed).to(self.device)), task
                    ).model_dump()
                    for test, split in retest.tests.items()
                },
            }
        return Trained(
            model=self._ready(progress.kept["selected"][1]),
            checkpoints=checkpoints,
            parameters=sum(p.numel() for p in self.model.parameters()),
            curve=progress.curve,
            probe=progress.probe,
            cost={
                "steps": progress.step,
                "training_seconds": progress.seconds,
                "evaluation_seconds": time.perf_counter() - started,
                **({"stacked": progress.stacked} if progress.stacked > 1 else {}),
            },
            refused=progress.refused,
            origin=progress.origin,
            places=progress.places,
        )

    def save(self, path: Path) -> None:
        """Write everything a resume needs, atomically."""
        Snapshot(
            key=self.spec.key,
            code=code_fingerprint(),
            weights=self.model.state_dict(),
            **self.moments._asdict(),
            progress=vars(self.progress),
        ).save(path)

    def load(self, path: Path) -> None:
        """Continue from a saved state, if there is one that may be resumed: see Course.begin."""
        snapshot = self.course.begin(path, self.device)
        if snapshot is None:
            return
        self.model.load_state_dict(snapshot.weights)
        self.moments = Moments(snapshot.first, snapshot.second, snapshot.steps)


def train(
    spec: RunSpec,
    device: str = "cpu",
    checkpoint: Path | None = None,
    deadline: float | None = None,
    on_epoch: Callable[[Progress], None] | None = None,
) -> Trained | None:
    """Train a spec to the end, or until the time is up, which gives None.

    The time is up at the deadline (seconds since the epoch), or when somebody asks to stop. With a
    ``checkpoint`` path the run resumes from it and saves itself there.
    """
    with arithmetic.policy(spec.training, device):
        trainer = Trainer(spec, device)
        if checkpoint is not None:
            trainer.load(checkpoint)
        saved = time.monotonic()
        while not trainer.progress.finished:
            trainer.run_epoch()
            if on_epoch is not None:
                on_epoch(trainer.progress)
            late = time_is_up(deadline)
            if checkpoint is not None and (late or time.monotonic() - saved > CHECKPOINT_SECONDS):
                trainer.save(checkpoint)
                saved = time.monotonic()
            if late and not trainer.progress.finished:
                return None
        if checkpoint is not None:
            trainer.save(checkpoint)  # testing takes a while, too
            if time_is_up(deadline):
                return None
        return trainer.result()
