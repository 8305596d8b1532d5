"""One run trained alone, from its spec to the metrics of its checkpoints.

It stops and resumes at any epoch with identical results, because every random number is a function
of (seed, purpose, step).
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from torch.optim.rmsprop import rmsprop

from relength.kernels.hashing import step_key
from relength.models import MODELS
from relength.specs.spec import RunSpec, Streaming
from relength.stopping import time_is_up
from relength.streams import dropout_key, stream
from relength.tasks.batch import Batch
from relength.training import arithmetic, fresh
from relength.training.course import (
    CHECKPOINT_SECONDS,
    PROBE_ITEMS,
    PROBE_STEPS,
    Course,
    Progress,
    Scores,
    Snapshot,
)
from relength.training.evaluate import by_length, free_running, validate
from relength.training.optimisers import Adam, RMSprop
from relength.training.provenance import code_fingerprint


@dataclass
class Trained:
    """What a finished run hands to its record.

    model    with the selected checkpoint's weights
    refused  why a state saved before was not resumed, or empty
    """

    model: torch.nn.Module
    checkpoints: dict[str, dict[str, Any]]
    parameters: int
    curve: list[dict[str, float]]
    probe: dict[str, Any]
    cost: dict[str, float]
    refused: str = ""


def build(spec: RunSpec, device: str = "cpu") -> torch.nn.Module:
    """The spec's model with its initial weights."""
    model = MODELS[spec.model.name].module(spec.model, *spec.task.shape).initialise(spec.seed)
    arithmetic.check(spec.training, device)
    if torch.device(device).type != "cpu":
        model.fused = False  # the fused loops are a CPU's
    return model.to(device, getattr(torch, spec.training.precision))


class Trainer:
    """One run in progress: :meth:`run_epoch` until ``progress.finished``, then :meth:`result`."""

    def __init__(self, spec: RunSpec, device: str = "cpu"):
        self.spec, self.device = spec, device
        task, training = spec.task, spec.training
        self.course = Course(spec)
        self.model = build(spec, device)
        self.streams = isinstance(training, Streaming)
        self.data = None if self.streams else task.dataset("train", spec.seed).to(device)
        self.dev = [by_length(task.dataset(name, spec.seed).to(device)) for name in task.dev_splits]
        self.validation = by_length(task.dataset("validation", spec.seed).to(device))
        seen = task.watched_split
        self.watched = by_length(task.dataset(seen, spec.seed).to(device)) if seen else None
        # Of each parameter: averages of its gradient (with RMSprop: of its moves) and of the
        # gradient's square, and the number of its steps.
        named = dict(self.model.named_parameters())
        self.first = {name: torch.zeros_like(weight) for name, weight in named.items()}
        self.second = {name: torch.zeros_like(weight) for name, weight in named.items()}
        self.steps = {name: torch.zeros((), device=w.device) for name, w in named.items()}
        self.dropout = dropout_key(spec.seed, "encodings")

    @property
    def progress(self) -> Progress:
        return self.course.progress

    def run_epoch(self) -> None:
        """Train one epoch, evaluate, keep checkpoints, and decide whether the run is finished."""
        started = time.perf_counter()
        loss = self.run_steps()
        self.course.end_epoch(loss, self.evaluate(), self._weights)
        self.progress.seconds += time.perf_counter() - started

    def run_steps(self, most: int | None = None) -> float:
        """Train on the batches of this epoch, or on its first ones; returns the mean loss."""
        losses: list[Tensor] = []
        for batch in self._batches(most):
            losses.append(self.train_step(batch))
            if not self.progress.probe and len(losses) == PROBE_STEPS:
                self._probe(losses)
        if not self.progress.probe:  # an epoch of fewer steps than a probe has
            self._probe(losses)
        return float(torch.stack(losses).mean())

    def evaluate(self) -> Scores:
        """What a course looks at after an epoch."""
        dev = sum(self._validate(batches)[0] for batches in self.dev) / len(self.dev)
        accuracy, loss = self._validate(self.validation)
        watched = None if self.watched is None else self._validate(self.watched)[0]
        return Scores(loss, dev, accuracy, watched)

    def _batches(self, most: int | None) -> Iterator[Batch]:
        """The training batches of this epoch, or its first ones."""
        spec, epoch = self.spec, self.progress.epoch
        if self.streams:
            for drawn in fresh.batches(spec, epoch, most):
                yield spec.task.encode(drawn, self.device)
            return
        order = stream(spec.seed, "order", epoch).permutation(len(self.data))
        for indices in torch.from_numpy(order).split(spec.training.batch_size)[:most]:
            yield self.data.select(indices.to(self.device))

    def _validate(self, batches: list[Batch]) -> tuple[float, float]:
        return validate(self.model, batches, self.spec.training.measure)

    def train_step(self, batch: Batch) -> Tensor:
        """One optimiser step; returns the loss without waiting for it."""
        loss = self.model.loss(batch, step_key(self.dropout, self.progress.step).to(self.device))
        self.model.zero_grad()
        loss.backward()
        if self.streams:
            torch.nn.utils.clip_grad_value_(self.model.parameters(), self.spec.training.clip_value)
        else:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.spec.training.clip_norm)
        self._move()
        self.progress.step += 1
        return loss.detach()

    @torch.no_grad()
    def _move(self) -> None:
        """Move the weights that have a gradient, by one step of the optimiser.

        These are torch.optim.RMSprop and AdamW as functions. As objects they import PyTorch's
        compiler, to tell it to leave them alone, which takes a second of every process.
        """
        training, rate = self.spec.training, self.progress.rate
        moving = [
            (weight, weight.grad, self.first[name], self.second[name], self.steps[name])
            for name, weight in self.model.named_parameters()
            if weight.grad is not None
        ]
        weights, grads, first, second, steps = map(list, zip(*moving, strict=True))
        if self.streams:
            rmsprop(
                weights,
                grads,
                square_avgs=second,
                grad_avgs=[],
                momentum_buffer_list=first,
                state_steps=steps,
                foreach=True,
                lr=rate,
                alpha=training.smoothing,
                eps=RMSprop.epsilon,
                weight_decay=0.0,
                momentum=training.momentum,
                centered=False,
            )
        else:
            adamw(
                weights,
                grads,
                exp_avgs=first,
                exp_avg_sqs=second,
                max_exp_avg_sqs=[],
                state_steps=steps,
                fused=True,
                amsgrad=False,
                beta1=Adam.betas[0],
                beta2=Adam.betas[1],
                lr=rate,
                weight_decay=training.weight_decay,
                eps=Adam.epsilon,
                maximize=False,
            )

    def _probe(self, losses: list[Tensor]) -> None:
        """What freshness compares: the first losses, and a small evaluation right after them."""
        _, loss = self._validate([self.validation[0].select(slice(0, PROBE_ITEMS))])
        self.progress.probe = {
            "losses": [float(x) for x in losses[:PROBE_STEPS]],
            "validation_loss": loss,
        }

    def _weights(self) -> dict[str, Tensor]:
        return {name: w.detach().clone() for name, w in self.model.state_dict().items()}

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
                self.model.load_state_dict(weights)
                tested[epoch] = {
                    name: free_running(self.model, batches, task.end)._asdict()
                    for name, batches in tests.items()
                }
        self.model.load_state_dict(progress.kept["selected"][1])
        return Trained(
            model=self.model,
            checkpoints={
                name: {"epoch": epoch, "tests": tested[epoch]}
                for name, (epoch, _) in progress.kept.items()
            },
            parameters=sum(p.numel() for p in self.model.parameters()),
            curve=progress.curve,
            probe=progress.probe,
            cost={
                "steps": progress.step,
                "training_seconds": progress.seconds,
                "evaluation_seconds": time.perf_counter() - started,
            },
            refused=progress.refused,
        )

    def save(self, path: Path) -> None:
        """Write everything a resume needs, atomically."""
        Snapshot(
            key=self.spec.key,
            code=code_fingerprint(),
            weights=self.model.state_dict(),
            first=self.first,
            second=self.second,
            progress=vars(self.progress),
        ).save(path)

    def load(self, path: Path) -> None:
        """Continue from a saved state, if there is one that may be resumed: see Course.begin."""
        snapshot = self.course.begin(path, self.device)
        if snapshot is None:
            return
        self.model.load_state_dict(snapshot.weights)
        self.first, self.second = snapshot.first, snapshot.second
        for steps in self.steps.values():
            steps.fill_(self.progress.step)


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
