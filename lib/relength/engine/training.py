"""One training run, from spec to the metrics of its checkpoints.

The loop is the released code's: shuffled epochs, development score after each, plateau schedule, patience,
and a best checkpoint that near-ties replace. It stops and resumes at any epoch with identical results,
because every random number is a function of (seed, purpose, step).
"""

import copy
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from relength.batch import Batch
from relength.errors import RelengthError
from relength.evaluate import by_length, free_running, teacher_forced
from relength.models import MODELS
from relength.spec import RunSpec
from relength.streams import dropout_key, step_key, stream

PROBE_STEPS = 20
PROBE_ITEMS = 64
CHECKPOINT_SECONDS = 20.0

State = dict[str, Tensor]


@dataclass
class Trained:
    """What a finished run hands to its record; the weights of the selected checkpoint stay in ``model``."""

    model: torch.nn.Module
    checkpoints: dict[str, dict[str, Any]]
    parameters: int
    curve: list[dict[str, float]]
    probe: dict[str, Any]
    cost: dict[str, float]


@dataclass
class Progress:
    """Everything that changes while a run trains; saved whole, so that a resume continues exactly."""

    epoch: int = 0
    step: int = 0
    best: float = -1.0
    best_validation: float = -1.0
    impatience: int = 0
    solved: int = 0
    finished: bool = False
    seconds: float = 0.0
    curve: list[dict[str, float]] = field(default_factory=list)
    probe: dict[str, Any] = field(default_factory=lambda: {"losses": []})
    kept: dict[str, tuple[int, State]] = field(default_factory=dict)  # name -> (epoch, weights)


def build(spec: RunSpec, device: str = "cpu") -> torch.nn.Module:
    """The spec's model with its initial weights."""
    _, constructor = MODELS[spec.model.name]
    model = constructor(spec.model, len(spec.task.vocabulary)).initialise(spec.seed)
    return model.to(device, getattr(torch, spec.training.precision))


class Trainer:
    """One run in progress: :meth:`run_epoch` until ``progress.finished``, then :meth:`result`."""

    def __init__(self, spec: RunSpec, device: str = "cpu"):
        self.spec, self.device = spec, device
        task, training = spec.task, spec.training
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
        self.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimiser,
            mode="max",
            factor=training.plateau_factor,
            patience=training.plateau_patience,
        )
        self.dropout = dropout_key(spec.seed, "encodings")
        self.progress = Progress()

    def run_epoch(self) -> None:
        """Train one epoch, evaluate, keep checkpoints, and decide whether the run is finished."""
        started = time.perf_counter()
        progress, epoch = self.progress, self.progress.epoch
        order = stream(self.spec.seed, "order", epoch).permutation(len(self.data))
        losses = []
        for indices in torch.from_numpy(order).split(self.spec.training.batch_size):
            losses.append(self.train_step(self.data.select(indices.to(self.device))))
            if progress.step == PROBE_STEPS:
                self._probe(losses)
        if progress.step < PROBE_STEPS:
            self._probe(losses)
        dev = sum(teacher_forced(self.model, batches)[0] for batches in self.dev) / len(self.dev)
        validation, _ = teacher_forced(self.model, self.validation)
        progress.curve.append(
            {
                "epoch": epoch,
                "step": progress.step,
                "train_loss": float(torch.stack(losses).mean()),
                "dev_accuracy": dev,
                "iid_accuracy": validation,
                "learning_rate": self.optimiser.param_groups[0]["lr"],
            }
        )
        self._select(dev, validation)
        progress.epoch += 1
        progress.seconds += time.perf_counter() - started

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
        if "validation_loss" in self.progress.probe:
            return
        _, loss = teacher_forced(self.model, [self.validation[0].select(slice(0, PROBE_ITEMS))])
        self.progress.probe = {
            "losses": [float(x) for x in losses[:PROBE_STEPS]],
            "validation_loss": loss,
        }

    def _select(self, dev: float, validation: float) -> None:
        progress, training = self.progress, self.spec.training
        if progress.epoch > 0:  # the released code does not step the schedule after the first epoch
            self.schedule.step(dev)
        # A near-tie replaces the kept weights, but the bar stays at the best score seen.
        if dev >= progress.best - training.tie:
            progress.best = max(progress.best, dev)
            progress.impatience = 0
            self._keep("selected")
        else:
            progress.impatience += 1
        if validation >= progress.best_validation:
            progress.best_validation = validation
            self._keep("best_iid")
        solved = training.solved_accuracy is not None and dev >= training.solved_accuracy
        progress.solved = progress.solved + 1 if solved else 0
        progress.finished = (
            progress.epoch + 1 >= training.epochs
            or progress.impatience > training.patience
            or (training.solved_accuracy is not None and progress.solved >= training.solved_epochs)
        )
        if progress.finished:
            self._keep("last")

    def _keep(self, name: str) -> None:
        weights = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.progress.kept[name] = (self.progress.epoch, weights)

    def result(self) -> Trained:
        """Test every kept checkpoint; those of the same epoch are tested once."""
        started = time.perf_counter()
        task = self.spec.task
        tests = {
            name: by_length(task.dataset(name, self.spec.seed).to(self.device)) for name in task.tests
        }
        tested: dict[int, dict[str, Any]] = {}
        for epoch, weights in self.progress.kept.values():
            if epoch not in tested:
                self.model.load_state_dict(weights)
                tested[epoch] = {
                    name: free_running(self.model, batches)._asdict() for name, batches in tests.items()
                }
        self.model.load_state_dict(self.progress.kept["selected"][1])
        return Trained(
            model=self.model,
            checkpoints={
                name: {"epoch": epoch, "tests": tested[epoch]}
                for name, (epoch, _) in self.progress.kept.items()
            },
            parameters=sum(p.numel() for p in self.model.parameters()),
            curve=self.progress.curve,
            probe=self.progress.probe,
            cost={
                "steps": self.progress.step,
                "training_seconds": self.progress.seconds,
                "evaluation_seconds": time.perf_counter() - started,
            },
        )

    def save(self, path: Path) -> None:
        """Write everything a resume needs, atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        state = {
            "key": self.spec.key,
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "progress": vars(self.progress),
        }
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        torch.save(state, temporary)
        temporary.replace(path)

    def load(self, path: Path) -> None:
        """Continue from a saved state; one that belongs to another spec is refused."""
        state = torch.load(path, map_location=self.device, weights_only=True)
        if state["key"] != self.spec.key:
            raise RelengthError(
                f"{path} belongs to run {state['key']}, not to {self.spec.key}: remove it to start anew."
            )
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.progress = Progress(**copy.deepcopy(state["progress"]))


def train(
    spec: RunSpec,
    device: str = "cpu",
    checkpoint: Path | None = None,
    on_epoch: Callable[[Progress], None] | None = None,
) -> Trained:
    """Train a spec to the end. With a ``checkpoint`` path the run resumes from it and removes it when done."""
    trainer = Trainer(spec, device)
    if checkpoint is not None and checkpoint.exists():
        trainer.load(checkpoint)
    saved = time.monotonic()
    while not trainer.progress.finished:
        trainer.run_epoch()
        if on_epoch is not None:
            on_epoch(trainer.progress)
        if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
            trainer.save(checkpoint)
            saved = time.monotonic()
    result = trainer.result()
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    return result
