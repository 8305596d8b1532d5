"""The course of one run: learning curve, learning rate, checkpoints to keep, and when to stop.

The rules are the protocol's. They look at a few numbers per interval and know nothing of tensors on
devices, so they are the same for a run that trains alone and for one in a stack.
"""

import copy
import io
import math
import os
import pickle
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from relength.errors import RelengthError
from relength.specs.spec import RunSpec
from relength.training import provenance
from relength.training.evaluate import Measured
from relength.training.provenance import code_fingerprint, origin

CHECKPOINT_SECONDS = 20.0
PROBE_STEPS = 20
PROBE_ITEMS = 64

State = dict[str, Tensor]


@dataclass
class Progress:
    """Everything of a run that changes besides its weights; saved whole, so that a resume is exact.

    best     score of the selected checkpoint; as all scores, the higher, the better
    latest   the numbers that select the checkpoint, as many of the latest as the rule looks at
    since    training losses of the intervals since the last point of the curve
    kept     name of a checkpoint -> (epoch, weights)
    stacked  how many runs were trained as one program, at most
    refused  why a state of this run, saved before, was not resumed; empty if there was none
    origin   commit, margins and claims of when the run began; empty in states saved by older code
    places   where intervals were trained, in order: relength.training.provenance.place of each
    """

    rate: float
    epoch: int = 0
    step: int = 0
    best: float = -math.inf
    best_validation: float = -math.inf
    impatience: int = 0
    plateau_best: float = -math.inf
    bad_epochs: int = 0
    solved: int = 0
    finished: bool = False
    seconds: float = 0.0
    curve: list[dict[str, Any]] = field(default_factory=list)
    latest: list[float] = field(default_factory=list)
    since: list[float] = field(default_factory=list)
    probe: dict[str, Any] = field(default_factory=dict)
    kept: dict[str, tuple[int, State]] = field(default_factory=dict)
    stacked: int = 1
    refused: str = ""
    origin: dict[str, Any] = field(default_factory=dict)
    places: list[list[str]] = field(default_factory=list)


class SnapshotRefused(RelengthError):
    """A saved state that must not be resumed: damaged, of another run, or of other code.

    reason  in a few words, without the path
    """

    def __init__(self, path: Path, reason: str):
        super().__init__(f"The saved state {path} {reason}: remove it to start the run anew.")
        self.reason = reason


@dataclass
class Snapshot:
    """A run between two epochs, saved whole.

    Runs alone and runs in a stack share one format: either resumes either.

    code                  fingerprint of the code that trained so far
    weights               name of a parameter -> its value
    first, second, steps  as in relength.training.optimisers.Moments
    """

    key: str
    code: str
    weights: State
    first: State
    second: State
    steps: State
    progress: dict[str, Any]

    def save(self, path: Path) -> None:
        """Write atomically: a reader sees the old file or the new one. A full disk is a warning."""
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        state = io.BytesIO()  # writing to a file itself, torch would hide why that fails
        torch.save(vars(self), state)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(state.getbuffer())
            temporary.replace(path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            reason = error.strerror or error
            warnings.warn(
                f"The state of run {self.key} cannot be saved to {path} ({reason}): free space "
                "there, or allow writing; training goes on, but would start anew if it were "
                "interrupted.",
                stacklevel=3,
            )

    @classmethod
    def load(cls, path: Path, spec: RunSpec, device: str) -> "Snapshot":
        """Read a snapshot of this spec; SnapshotRefused when it must not be resumed."""
        try:
            snapshot = cls(**torch.load(path, map_location=device, weights_only=True))
        except (OSError, RuntimeError, TypeError, EOFError, pickle.UnpicklingError) as error:
            raise SnapshotRefused(path, f"cannot be read ({type(error).__name__})") from error
        if snapshot.key != spec.key:
            raise SnapshotRefused(path, f"belongs to run {snapshot.key}, not to {spec.key}")
        if snapshot.code != code_fingerprint():
            raise SnapshotRefused(
                path,
                f"comes from other code ({snapshot.code}; now {code_fingerprint()}), and no run is "
                "finished by two versions",
            )
        return snapshot


class Scores(NamedTuple):
    """The measurements after an interval.

    dev      on the samples that are longer, as a rule: mean over the development sets
    iid      on the validation samples, in distribution; needed where the curve has a point, or
             where they select the checkpoint
    watched  accuracy on the tests that the curve shows, by name
    """

    dev: Measured
    iid: Measured | None
    watched: Mapping[str, float] = MappingProxyType({})


class Course:
    """The training of one run: applies the protocol of its spec, interval by interval.

    An interval is what lies between two evaluations; records and progress call it epoch.
    """

    def __init__(self, spec: RunSpec):
        self.spec, self.protocol = spec, spec.training
        self.progress = Progress(rate=spec.training.learning_rate, origin=origin())

    def resume(self, snapshot: Snapshot) -> None:
        """Continue where a snapshot was taken."""
        self.progress = Progress(**copy.deepcopy(snapshot.progress))

    def begin(self, path: Path, device: str) -> Snapshot | None:
        """Resume from the state saved at a path, and return it; None if there is none to resume.

        One that is refused is put aside, with a warning, and the run remembers why.
        """
        if not path.exists():
            return None
        try:
            snapshot = Snapshot.load(path, self.spec, device)
        except SnapshotRefused as refusal:
            kept = path.with_name(f"{path.name}.refused")
            path.replace(kept)
            self.progress.refused = refusal.reason
            warnings.warn(
                f"The saved state {path} {refusal.reason}: the run starts anew, and the state is "
                f"kept as {kept.name}.",
                stacklevel=3,
            )
            return None
        self.resume(snapshot)
        return snapshot

    def trained_on(self, device: str) -> None:
        """Take note of the device that trains the interval under way."""
        this = [*provenance.place(device)]
        if self.progress.places[-1:] != [this]:
            self.progress.places.append(this)

    def end_epoch(
        self,
        loss: float,
        scores: Scores,
        weights: Callable[[], State],
    ) -> None:
        """Take note of an interval, and of its weights if they are to be kept.

        loss    mean over the training steps
        scores  what was measured after them

        Raises RelengthError when a loss, that of the probe too, is no number: the run has diverged
        and is over.
        """
        progress, rule = self.progress, self.protocol.selection
        probe = progress.probe.get("validation_loss", 0.0)
        selecting = {f"{rule.split}_loss": getattr(scores, rule.split).loss}
        selecting = selecting if rule.by == "loss" else {}
        after = (scores.iid or scores.dev).loss
        if not all(map(math.isfinite, (loss, after, probe, *selecting.values()))):
            progress.finished = True
            raise RelengthError(
                f"Training diverged: the loss is {loss} in epoch {progress.epoch}, "
                f"{after} after it, {probe:.6g} in the probe; lower the learning rate "
                f"({progress.rate:g}) or the gradient clip."
            )
        progress.since.append(loss)
        if self.shown:
            progress.curve.append(
                {
                    "epoch": progress.epoch,
                    "step": progress.step,
                    "train_loss": fmean(progress.since),
                    "dev_accuracy": scores.dev.accuracy,
                    "iid_accuracy": scores.iid.accuracy,
                    "learning_rate": progress.rate,
                    **_watched(scores.watched),
                    **selecting,
                }
            )
            progress.since = []
        measured, by_loss = getattr(scores, rule.split), rule.by == "loss"
        deciding = measured.loss if by_loss else measured.accuracy
        progress.latest = [*progress.latest, deciding][-rule.mean_of :]
        score = fmean(progress.latest) * (-1 if by_loss else 1)
        # Of equal scores the last one is kept.
        better = score > progress.best or abs(score - progress.best) < rule.tie
        better = better or rule.by == "last"
        if progress.epoch < rule.first:
            progress.impatience = 0
        elif better:
            progress.best = score
            progress.impatience = 0
            progress.kept["selected"] = (progress.epoch, weights())
        else:
            progress.impatience += 1
        # What a rule selects can be compared with the best known; the last weights are no choice.
        if self.asks_iid and rule.by != "last":
            known = -scores.iid.loss if by_loss else scores.iid.accuracy
            if known >= progress.best_validation:
                progress.best_validation = known
                progress.kept["best_iid"] = (progress.epoch, weights())
        self.protocol.schedule(progress, score)
        ends = self.protocol.ends_early(progress, score)
        progress.finished = ends or progress.epoch + 1 >= self.protocol.intervals
        if progress.finished:
            progress.kept["last"] = (progress.epoch, weights())
        progress.epoch += 1

    @property
    def shown(self) -> bool:
        """Tell whether the interval under way is a point of the learning curve; the last is."""
        done, protocol = self.progress.epoch + 1, self.protocol
        every = protocol.curve_steps // protocol.interval_steps if protocol.curve_steps else 1
        return done % every == 0 or done == protocol.intervals

    @property
    def asks_iid(self) -> bool:
        """Tell whether the samples in distribution are looked at after the interval under way."""
        return self.shown or self.protocol.selection.split == "iid"


def _watched(accuracies: Mapping[str, float]) -> dict[str, Any]:
    """A curve point's entry for watched tests: a number, or one by test of several."""
    if not accuracies:
        return {}
    single = len(accuracies) == 1
    return {"watched_accuracy": next(iter(accuracies.values())) if single else dict(accuracies)}
