"""One run trained alone, from its spec to the metrics of its checkpoints.

It stops and resumes at any epoch with identical results, because every random number is a function
of (seed, purpose, step).
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from relength.batch import Batch
from relength.engine.course import (
    CHECKPOINT_SECONDS,
    PROBE_ITEMS,
    PROBE_STEPS,
    Course,
    Progress,
    Snapshot,
    SnapshotRefused,
)
from relength.evaluate import by_length, free_running, teacher_forced
from relength.models import MODELS
from relength.provenance import code_fingerprint
from relength.spec import RunSpec
from relength.streams import dropout_key, step_key, stream


@dataclass
class Trained:
    """What a finished run hands to its record; ``model`` has the selected checkpoint's weights."""

    model: torch.nn.Module
    checkpoints: dict[str, dict[str, Any]]
    parameters: int
    curve: list[dict[str, float]]
    probe: dict[str, Any]
    cost: dict[str, float]


def build(spec: RunSpec, device: str = "cpu") -> torch.nn.Module:
    """The spec's model with its initial weights."""
    _, constructor = MODELS[spec.model.name]
    model = constructor(spec.model, len(spec.task.vocabulary)).initialise(spec.seed)
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
        self.data = task.dataset("train", spec.seed).to(device)
        self.dev = [by_length(task.dataset(name, spec.seed).to(device)) for name in task.dev_splits]
        self.validation = by_length(task.dataset("validation", spec.seed).to(device))
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(),
            lr=training.learning_rate,
            weight_decay=training.weight_decay,
            fused=True,
        )
        self.dropout = dropout_key(spec.seed, "encodings")

    @property
    def progress(self) -> Progress:
        return self.course.progress

    def run_epoch(self) -> None:
        """Train one epoch, evaluate, keep checkpoints, and decide whether the run is finished."""
        started = time.perf_counter()
        loss = self.run_steps()
        dev = sum(teacher_forced(self.model, batches)[0] for batches in self.dev) / len(self.dev)
        validation, loss_after = teacher_forced(self.model, self.validation)
        self.course.end_epoch(loss, loss_after, dev, validation, self._weights)
        self.progress.seconds += time.perf_counter() - started

    def run_steps(self, most: int | None = None) -> float:
        """Train on the batches of this epoch, or on its first ones; returns the mean loss."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.progress.rate
        order = stream(self.spec.seed, "order", self.progress.epoch).permutation(len(self.data))
        losses: list[Tensor] = []
        for indices in torch.from_numpy(order).split(self.spec.training.batch_size)[:most]:
            losses.append(self.train_step(self.data.select(indices.to(self.device))))
            if not self.progress.probe and len(losses) == PROBE_STEPS:
                self._probe(losses)
        if not self.progress.probe:  # an epoch of fewer steps than a probe has
            self._probe(losses)
        return float(torch.stack(losses).mean())

    def train_step(self, batch: Batch) -> Tensor:
        """One optimiser step; returns the loss without waiting for it."""
        loss = self.model.loss(batch, step_key(self.dropout, self.progress.step).to(self.device))
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.spec.training.clip_norm)
        self.optimiser.step()
        self.progress.step += 1
        return loss.detach()

    def _probe(self, losses: list[Tensor]) -> None:
        """What freshness compares: the first losses, and a small evaluation right after them."""
        _, loss = teacher_forced(self.model, [self.validation[0].select(slice(0, PROBE_ITEMS))])
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
                    name: free_running(self.model, batches)._asdict()
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
        )

    def save(self, path: Path) -> None:
        """Write everything a resume needs, atomically."""

        def moment(kind: str) -> dict[str, Tensor]:
            return {
                name: self.optimiser.state[p].get(kind, torch.zeros_like(p))
                for name, p in self.model.named_parameters()
            }

        Snapshot(
            key=self.spec.key,
            code=code_fingerprint(),
            weights=self.model.state_dict(),
            first=moment("exp_avg"),
            second=moment("exp_avg_sq"),
            progress=vars(self.progress),
        ).save(path)

    def load(self, path: Path) -> None:
        """Continue from a saved state; one that belongs to another spec is refused."""
        snapshot = Snapshot.load(path, self.spec, self.device)
        self.course.resume(snapshot)
        self.model.load_state_dict(snapshot.weights)
        steps = torch.tensor(float(self.progress.step))
        for name, parameter in self.model.named_parameters():
            self.optimiser.state[parameter] = {
                "step": steps.clone(),
                "exp_avg": snapshot.first[name],
                "exp_avg_sq": snapshot.second[name],
            }


def train(
    spec: RunSpec,
    device: str = "cpu",
    checkpoint: Path | None = None,
    deadline: float | None = None,
    on_epoch: Callable[[Progress], None] | None = None,
) -> Trained | None:
    """Train a spec to the end, or until the deadline (seconds since the epoch), which gives None.

    With a ``checkpoint`` path the run resumes from it, saves itself there, and removes it when
    done.
    """
    trainer = Trainer(spec, device)
    if checkpoint is not None and checkpoint.exists():
        try:
            trainer.load(checkpoint)
        except SnapshotRefused as reason:
            warnings.warn(f"{reason} This run starts anew.", stacklevel=2)
    saved = time.monotonic()
    while not trainer.progress.finished:
        trainer.run_epoch()
        if on_epoch is not None:
            on_epoch(trainer.progress)
        late = deadline is not None and time.time() > deadline
        if checkpoint is not None and (late or time.monotonic() - saved > CHECKPOINT_SECONDS):
            trainer.save(checkpoint)
            saved = time.monotonic()
        if late and not trainer.progress.finished:
            return None
    if checkpoint is not None:
        trainer.save(checkpoint)  # testing takes a while, too
    return trainer.result()
