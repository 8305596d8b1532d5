"""Many runs trained as one program: replicas stacked along a leading axis.

Models here are tiny and their runs many, so a GPU that trains one at a time is idle. Runs whose
models have equal shapes are stacked, and every operation of a step is done for all of them at once:
``torch.func.vmap`` over the model's plain path, and optimisers that know one rate per replica.
Nothing inside an epoch waits for the device. On a GPU whole steps are captured in CUDA graphs, one
per shape of batch, and replayed.

A replica in a stack is the run that trains alone: same data, same order, same dropout, same
protocol. It is frozen when it is finished or when its loss is no longer a number.
"""

import json
import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.kernels.hashing import step_key
from relength.specs.spec import RunSpec, Streaming
from relength.streams import EVALUATION_SEED, dropout_key, stream
from relength.tasks.algorithmic import Drawn
from relength.tasks.base import PAD, Task
from relength.tasks.batch import Batch
from relength.training import fresh, optimisers
from relength.training.alone import Trained, build
from relength.training.course import PROBE_ITEMS, PROBE_STEPS, Course, Scores, Snapshot
from relength.training.device import Graphs, out_of_memory
from relength.training.evaluate import BATCH_SIZE, judge, score
from relength.training.provenance import code_fingerprint

# Batches are padded up to a multiple of this on a GPU: few shapes mean few graphs.
BUCKET = 4
WIDTH_SAMPLES = 64
CHUNK = 20  # steps whose freshly drawn samples are sent to the device together

Lengths = tuple[int, int]
Samples = tuple[Tensor, ...]  # the fields of Batch but for the mask, (R, B, …)
DrawnTensors = tuple[Tensor, ...]  # the fields of Drawn, (R, B, …)
Weights = dict[str, Tensor]


def signature(spec: RunSpec) -> str:
    """Runs of equal signature can stack: they differ in seed, rate, and task of equal shape.

    Fixed samples may differ in length, as they are padded. Samples drawn afresh never are: there,
    lengths and widths belong to the signature.
    """
    task = spec.task
    shape = {
        "sizes": task.shape,
        "splits": {name: split.size for name, split in task.splits().items()},
        "dev": task.dev_splits,
        "watched": task.watched_split,
        "drawn": None if "train" in task.splits() else _drawn_widths(task),
    }
    training = spec.training.model_dump(exclude={"learning_rate"})
    return json.dumps([spec.scale, spec.model.model_dump(), training, shape], sort_keys=True)


def _drawn_widths(task: Task) -> tuple[int, ...]:
    batch = task.sample(stream(0, "data"), 1, task.train_lengths[1])
    return (*task.train_lengths, batch.inputs.shape[1], batch.targets.shape[1])


@lru_cache(maxsize=256)
def _width_class(task: Task) -> tuple[int, ...]:
    """Powers of two of the mean lengths of fixed samples; nothing for others."""
    if "train" not in task.splits():
        return ()
    train = task.splits()["train"]
    random = stream(EVALUATION_SEED, "evaluation", "widths")  # the same draw for related tasks
    batch = task.sample(random, WIDTH_SAMPLES, (train.shortest, train.longest))
    return tuple(
        round(math.log2(float(lengths.double().mean())))
        for lengths in (batch.input_lengths, batch.target_lengths)
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


@dataclass
class StackedData:
    """The same split of every replica: fields of Batch with a leading replica axis, (R, N, …)."""

    inputs: Tensor
    targets: Tensor
    input_lengths: Tensor
    target_lengths: Tensor

    @classmethod
    def of(cls, batches: Sequence[Batch], device: str) -> "StackedData":
        """Stack batches of equal size, padded to the longest of them."""

        def stacked(name: str) -> Tensor:
            tokens = [getattr(batch, name) for batch in batches]
            width = max(t.shape[1] for t in tokens)
            padding = [(0, 0) * (t.ndim - 2) + (0, width - t.shape[1]) for t in tokens]
            return torch.stack(
                [F.pad(t, pad, value=PAD) for t, pad in zip(tokens, padding, strict=True)]
            )

        lengths = (
            torch.stack([getattr(b, name) for b in batches])
            for name in ("input_lengths", "target_lengths")
        )
        return cls(*(t.to(device) for t in (stacked("inputs"), stacked("targets"), *lengths)))

    @cached_property
    def _host_lengths(self) -> tuple[np.ndarray, np.ndarray]:
        return self.input_lengths.cpu().numpy(), self.target_lengths.cpu().numpy()

    def widths(self, index: np.ndarray) -> Lengths:
        """Longest input and target of samples (R, B) of all replicas; looks at the host's copy."""
        return tuple(int(np.take_along_axis(x, index, 1).max()) for x in self._host_lengths)

    def gather(self, index: Tensor, widths: Lengths) -> tuple[Tensor, ...]:
        """Inputs (R, B, S, …), targets (R, B, T), both lengths (R, B) of samples (R, B)."""
        s, t = widths

        def rows(tokens: Tensor, width: int) -> Tensor:
            cut = tokens[:, :, :width]
            places = index.view(*index.shape, *[1] * (cut.ndim - 2))
            return cut.gather(1, places.expand(-1, -1, *cut.shape[2:]))

        return (
            rows(self.inputs, s),
            rows(self.targets, t),
            self.input_lengths.gather(1, index),
            self.target_lengths.gather(1, index),
        )

    @property
    def items(self) -> int:
        """Samples per replica."""
        return self.inputs.shape[1]

    @cached_property
    def _by_length(self) -> dict[int | None, list[tuple[Tensor, Lengths]]]:
        return {}

    def by_length(self, items: int | None = None) -> list[tuple[Tensor, Lengths]]:
        """Indices (R, B) of samples of similar input length, and their widths.

        All samples, or the first ``items`` by length. Sorted once: samples stay as they are.
        """
        if items not in self._by_length:
            order = self._host_lengths[0].argsort(axis=1, kind="stable")[:, :items]
            chunks = [order[:, i : i + BATCH_SIZE] for i in range(0, order.shape[1], BATCH_SIZE)]
            self._by_length[items] = [
                (torch.from_numpy(chunk).to(self.inputs.device), self.widths(chunk))
                for chunk in chunks
            ]
        return self._by_length[items]

    def keep(self, replicas: Tensor) -> "StackedData":
        return StackedData(*(getattr(self, name)[replicas] for name in self.__dataclass_fields__))


class _Call(torch.nn.Module):
    """Lets functional_call reach a model's other methods."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, method: str, *arguments: Any, **named: Any) -> Any:
        return getattr(self.model, method)(*arguments, **named)


def _batch(inputs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Batch:
    mask = torch.arange(targets.shape[1], device=targets.device) < target_lengths[:, None]
    return Batch(inputs, targets, mask, input_lengths, target_lengths)


class Unstackable(RelengthError):
    """A model with an operation that vmap cannot batch."""


def _place(error: BaseException) -> str:
    """The innermost line outside PyTorch and this file that an error passed, and what stands there.

    In a backward pass there is none.
    """
    library = str(Path(torch.__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(library) and frame.filename != __file__
    ]
    if not frames:
        return "in its backward pass"
    return f"line {frames[-1].lineno} of {Path(frames[-1].filename).name}, `{frames[-1].line}`"


class Stack:
    """Runs in progress together: :meth:`run_epoch` until :attr:`finished`, then :meth:`results`.

    Replicas need not be at the same epoch: a resumed one continues beside a new one.

    graphs: capture steps in CUDA graphs (default: on a GPU). The first step, evaluation and test
    raise Unstackable when the model has an operation that vmap cannot batch.
    """

    def __init__(self, specs: Sequence[RunSpec], device: str = "cpu", graphs: bool | None = None):
        if len({signature(spec) for spec in specs}) != 1:
            raise RelengthError(
                "These runs cannot share a stack: their models or protocols differ in shape."
            )
        self.device = device
        self.graphs = torch.device(device).type == "cuda" if graphs is None else graphs
        self.courses = [Course(spec) for spec in specs]
        self.failures: dict[str, str] = {}  # key -> what went wrong
        self.reached: dict[Lengths, frozenset[str]] = {}  # parameters, by the widths of a batch
        self.batched: set[str] = set()  # what vmap has been seen to batch
        self.put_aside: set[str] = set()  # keys of finished runs whose last state is saved
        self.training = specs[0].training
        models = [build(spec, device) for spec in specs]
        for model in models:
            model.fused = False
        self.call = _Call(models[0])
        self.params = _stacked([_Call(model).state_dict() for model in models])
        self.criterion = models[0].criterion
        self.streams = isinstance(self.training, Streaming)
        self.optimiser = self._optimiser()
        self.data = None if self.streams else self._split("train")
        self.dev = [self._split(name) for name in specs[0].task.dev_splits]
        self.validation = self._split("validation")
        watched = specs[0].task.watched_split
        self.watched = self._split(watched) if watched else None
        self._allocate()

    @property
    def specs(self) -> list[RunSpec]:
        """What the replicas train."""
        return [course.spec for course in self.courses]

    @property
    def finished(self) -> bool:
        return all(course.progress.finished for course in self.courses)

    @property
    def half_empty(self) -> bool:
        """Whether the replicas that go on would do better in a new stack, with others."""
        return 2 * sum(course.progress.finished for course in self.courses) >= len(self.courses)

    def _optimiser(self) -> optimisers.Adam | optimisers.RMSprop:
        params, training = list(self.params.values()), self.training
        if isinstance(training, Streaming):
            return optimisers.RMSprop(params, training.smoothing, training.momentum)
        return optimisers.Adam(params, weight_decay=training.weight_decay, decoupled=True)

    def _split(self, name: str) -> StackedData:
        return StackedData.of([s.task.dataset(name, s.seed) for s in self.specs], self.device)

    def _allocate(self) -> None:
        """Everything a step reads and writes, at addresses that stay: what a CUDA graph needs."""
        count = len(self.courses)
        dtype = next(iter(self.params.values())).dtype
        keys = [dropout_key(spec.seed, "encodings") for spec in self.specs]
        steps = [course.progress.step for course in self.courses]
        self.keys = torch.tensor(keys, dtype=torch.int32, device=self.device)
        self.step = torch.tensor(steps, dtype=torch.int32, device=self.device)
        self.rate = torch.zeros(count, dtype=dtype, device=self.device)
        self.active = torch.ones(count, dtype=torch.bool, device=self.device)
        self.index = torch.zeros(
            count, self.training.batch_size, dtype=torch.int64, device=self.device
        )
        self.fed: dict[Lengths, DrawnTensors] = {}  # samples drawn afresh, by their lengths
        self.loss = torch.zeros(count, dtype=dtype, device=self.device)
        self.loss_sum = torch.zeros(count, dtype=dtype, device=self.device)
        self.captured = Graphs(self.device)

    def run_epoch(self) -> None:
        """Train one epoch of every running replica, evaluate, and let each course decide."""
        started = time.perf_counter()
        running = self._running()
        steps = self.run_steps()
        losses = (self.loss_sum / steps).tolist()
        scores = self.evaluate()
        seconds = (time.perf_counter() - started) / len(running)
        for r, course in running:
            course.progress.seconds += seconds
            course.progress.step += steps
            course.progress.stacked = max(course.progress.stacked, len(self.courses))
            own = Scores(*(None if score is None else float(score[r]) for score in scores))
            try:
                course.end_epoch(losses[r], own, lambda r=r: self._weights(r))
            except RelengthError as diverged:  # its neighbours go on
                self.failures[course.spec.key] = str(diverged)

    def evaluate(self) -> tuple[np.ndarray | None, ...]:
        """What courses look at after an epoch: each of the Scores, for all replicas."""
        dev = sum(self._accuracy(data)[0] for data in self.dev) / len(self.dev)
        accuracy, loss = self._accuracy(self.validation)
        watched = None if self.watched is None else self._accuracy(self.watched)[0]
        return loss, dev, accuracy, watched

    def _running(self) -> list[tuple[int, Course]]:
        """The replicas that train in this epoch.

        Where batches are drawn afresh, their lengths belong to the epoch: replicas that are ahead
        of others, after a resume, wait for them.
        """
        running = [(r, c) for r, c in enumerate(self.courses) if not c.progress.finished]
        if self.streams:
            now = min(course.progress.epoch for _, course in running)
            running = [(r, c) for r, c in running if c.progress.epoch == now]
        return running

    def run_steps(self, most: int | None = None) -> int:
        """Train on the batches of this epoch, or on its first ones; returns how many."""
        self.rate.copy_(
            torch.tensor([c.progress.rate for c in self.courses], dtype=self.rate.dtype)
        )
        replicas = {r for r, _ in self._running()}
        self.active.copy_(torch.tensor([r in replicas for r in range(len(self.courses))]))
        probing = any(not course.progress.probe for course in self.courses)
        first: list[Tensor] = []
        self.loss_sum.zero_()
        for taken in self._steps(most):
            if probing and taken <= PROBE_STEPS:
                first.append(self.loss.clone())
            if probing and taken == PROBE_STEPS:
                after = self._judged(self.validation, PROBE_ITEMS)[1]
        if probing:
            if taken < PROBE_STEPS:  # an epoch of fewer steps than a probe has
                after = self._judged(self.validation, PROBE_ITEMS)[1]
            self._probe(first, after)
        return taken

    def _steps(self, most: int | None) -> Iterator[int]:
        """Take the steps of this epoch, or its first ones; count them after each."""
        if self.streams:
            interval = self._running()[0][1].progress.epoch
            feeds = [fresh.batches(spec, interval, most) for spec in self.specs]
            for taken, drawn in enumerate(self._uploaded(zip(*feeds, strict=True)), start=1):
                self._feed(drawn)
                yield taken
            return
        items, size = self.data.inputs.shape[1], self.training.batch_size
        order = np.stack(
            [
                stream(c.spec.seed, "order", c.progress.epoch).permutation(items)
                for c in self.courses
            ]
        )  # (R, N)
        on_device = torch.from_numpy(order).to(self.device)
        for taken, start in enumerate(range(0, items, size)[:most], start=1):
            chunk = slice(start, start + size)
            self._step(on_device[:, chunk], self._padded(self.data.widths(order[:, chunk])))
            yield taken

    def _padded(self, widths: Lengths) -> Lengths:
        """Widths rounded up so that few graphs serve all batches; exact without graphs."""
        if not self.graphs:
            return widths
        most = (self.data.inputs.shape[2], self.data.targets.shape[2])
        return tuple(min(-(-w // BUCKET) * BUCKET, m) for w, m in zip(widths, most, strict=True))

    def _step(self, index: Tensor, widths: Lengths) -> None:
        """One optimiser step of all replicas on the samples ``index`` (R, B)."""
        if (
            not self.graphs or index.shape != self.index.shape
        ):  # the last batch of an epoch is short
            self._train(self.data.gather(index, widths))
            return
        self.index.copy_(index)
        self._replay(widths, lambda: self.data.gather(self.index, widths))

    def _uploaded(self, steps: Iterable[Sequence[Drawn]]) -> Iterator[DrawnTensors]:
        """What all replicas draw for one step after the other, on the device: (R, B, …) each.

        Several steps are sent at once, without waiting for what the device is at: it works on some
        while the next are drawn.
        """
        steps = iter(steps)
        while some := list(islice(steps, CHUNK)):
            stacked = [[np.stack(part) for part in zip(*drawn, strict=True)] for drawn in some]
            parts = [self._sent(arrays) for arrays in zip(*stacked, strict=True)]
            yield from zip(*parts, strict=True)

    def _sent(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Arrays of one kind on the device, as views of one block."""
        block = torch.from_numpy(np.concatenate([array.ravel() for array in arrays]))
        if torch.device(self.device).type == "cuda":  # memory that a device reads by itself
            block = block.pin_memory().to(self.device, non_blocking=True)
        pieces = block.split([array.size for array in arrays])
        return [piece.view(x.shape) for piece, x in zip(pieces, arrays, strict=True)]

    def _feed(self, drawn: DrawnTensors) -> None:
        """One optimiser step of all replicas on the samples that each has drawn, (R, B, …)."""
        if not self.graphs:
            self._train(self._encoded(drawn))
            return
        lengths = drawn[0].shape[2], drawn[2].shape[2]  # of tokens and of places
        if lengths not in self.fed:
            self.fed[lengths] = tuple(torch.empty_like(tensor) for tensor in drawn)
        ours = self.fed[lengths]
        for old, new in zip(ours, drawn, strict=True):
            old.copy_(new)
        self._replay(lengths, lambda: self._encoded(ours))

    def _encoded(self, drawn: DrawnTensors) -> Samples:
        batch = self.specs[0].task.encode(Drawn(*drawn), self.device)
        return batch.inputs, batch.targets, batch.input_lengths, batch.target_lengths

    def _replay(self, widths: Lengths, samples: Callable[[], Samples]) -> None:
        """One step as a graph; ``samples`` is what it reads, at the same addresses each time."""
        changed = (
            *self.params.values(),
            *self.optimiser.state,
            self.step,
            self.loss,
            self.loss_sum,
        )
        self.captured.run(widths, lambda: self._train(samples()), changed)

    def _train(self, samples: Samples) -> None:
        keys = step_key(self.keys, self.step)
        grads, loss = self.gradients(samples, keys)
        if self.streams:
            used = self._used(samples, keys)
            grads = [
                grad if name in used else None
                for name, grad in zip(self.params, grads, strict=True)
            ]
            optimisers.clip_values_(grads, self.training.clip_value)
        else:
            optimisers.clip_(grads, self.training.clip_norm)
        self.optimiser.update_(grads, self.rate, self.active)
        self.step += self.active
        self.loss.copy_(loss)
        self.loss_sum += loss

    def _used(self, samples: Samples, keys: Tensor) -> frozenset[str]:
        """Names of the parameters that batches of this shape reach, as autograd sees it.

        A batch of length 1 may not come by the weights of a decoder, say. A run alone has no
        gradient there, and leaves them; in a stack there are zeros, which look like a gradient.
        """
        widths = samples[0].shape[2], samples[1].shape[2]
        if widths not in self.reached:
            names, weights = zip(*self.call.named_parameters(), strict=True)
            loss = self.call("loss", _batch(*(x[0] for x in samples)), keys[0])
            grads = torch.autograd.grad(loss, weights, allow_unused=True)
            self.reached[widths] = frozenset(
                name for name, grad in zip(names, grads, strict=True) if grad is not None
            )
        return self.reached[widths]

    def gradients(self, samples: Samples, keys: Tensor) -> tuple[list[Tensor], Tensor]:
        """Gradients, each (R, …), and losses (R,) of one batch per replica."""

        def loss_of(params: Weights, key: Tensor, *samples: Tensor) -> Tensor:
            return functional_call(self.call, params, ("loss", _batch(*samples), key))

        grads, loss = self._together("train", grad_and_value(loss_of), self.params, keys, *samples)
        return [grads[name] for name in self.params], loss

    def _together(self, what: str, function: Callable, *arguments: Any) -> Any:
        """A function of one run, for all of them. Fails the first time, or works for good."""
        try:
            outcome = vmap(function)(*arguments)
        except RuntimeError as error:
            broken = isinstance(error, torch.AcceleratorError) or out_of_memory(error)
            if broken or what in self.batched:
                raise
            raise Unstackable(
                f"Model {self.specs[0].model.name} has an operation that cannot be stacked "
                f"({_place(error)}: {str(error).splitlines()[0]}): train it with --stack 1, or "
                "write the operation so that torch.func.vmap can batch it."
            ) from error
        self.batched.add(what)
        return outcome

    def _accuracy(self, data: StackedData) -> tuple[np.ndarray, np.ndarray]:
        """Accuracy and mean loss (R,) on a split."""
        accuracy, loss = self._judged(data)
        return accuracy.cpu().numpy(), loss.cpu().numpy()

    @torch.no_grad()
    def _judged(self, data: StackedData, items: int | None = None) -> tuple[Tensor, Tensor]:
        """Accuracy and mean loss (R,) on a split, or on its shortest samples; waits for nothing."""

        def evaluate(params: Weights, *samples: Tensor) -> tuple[Tensor, Tensor]:
            batch = _batch(*samples)
            scores = functional_call(self.call, params, ("forward", batch))
            return judge(scores, batch, self.criterion, self.training.measure)

        hits = losses = 0
        for chunk in data.by_length(items):
            right, loss = self._together("evaluate", evaluate, self.params, *data.gather(*chunk))
            hits, losses = hits + right, losses + loss * chunk[0].shape[1]
        n = data.items if items is None else min(items, data.items)
        return hits.double() / n, losses.double() / n

    def _probe(self, first: list[Tensor], after: Tensor) -> None:
        """Take note of the first losses, and of the validation losses right after them."""
        losses = torch.stack(first).T.tolist()
        for course, mine, loss in zip(self.courses, losses, after.tolist(), strict=True):
            if not course.progress.probe:
                course.progress.probe = {"losses": mine, "validation_loss": loss}

    def _weights(self, replica: int) -> Weights:
        return {
            name.removeprefix("model."): tensor[replica].clone()
            for name, tensor in self.params.items()
        }

    def save(self, folder: Path) -> None:
        """Write what each run needs to resume, alone or in any stack; a finished one, its tests."""
        moments = self.optimiser.first, self.optimiser.second
        for r, course in enumerate(self.courses):
            if course.progress.finished:
                continue
            first, second = (
                {
                    name.removeprefix("model."): tensor[r].clone()
                    for name, tensor in zip(self.params, tensors, strict=True)
                }
                for tensors in moments
            )
            key, progress = course.spec.key, vars(course.progress)
            snapshot = Snapshot(key, code_fingerprint(), self._weights(r), first, second, progress)
            snapshot.save(folder / f"{key}.pt")
        for course in self.courses:
            key, progress = course.spec.key, course.progress
            if "last" not in progress.kept or key in self.put_aside:  # it goes on, or has failed
                continue
            self.put_aside.add(key)
            weights = progress.kept["last"][1]
            zeros = {name: torch.zeros_like(weight) for name, weight in weights.items()}
            snapshot = Snapshot(key, code_fingerprint(), weights, zeros, zeros, vars(progress))
            snapshot.save(folder / f"{key}.pt")

    def load(self, folder: Path) -> None:
        """Continue those runs that have a saved state in the folder: see Course.begin."""
        for r, course in enumerate(self.courses):
            snapshot = course.begin(folder / f"{course.spec.key}.pt", self.device)
            if snapshot is None:
                continue
            self.optimiser.resume(r, course.progress.step)
            for i, (name, tensor) in enumerate(self.params.items()):
                plain = name.removeprefix("model.")
                tensor[r] = snapshot.weights[plain]
                self.optimiser.first[i][r] = snapshot.first[plain]
                self.optimiser.second[i][r] = snapshot.second[plain]
        self._allocate()

    @torch.no_grad()
    def results(self) -> dict[str, Trained]:
        """What each run that is finished hands to its record, by key; tests them together.

        Runs that have failed, or go on, are left out.
        """
        started = time.perf_counter()
        courses = [
            c for c in self.courses if c.progress.finished and c.spec.key not in self.failures
        ]
        if not courses:
            return {}
        tested: list[dict[int, dict[str, Any]]] = [{} for _ in courses]
        names = courses[0].spec.task.tests
        for test in names:
            sets = [c.spec.task.dataset(test, c.spec.seed) for c in courses]
            data = StackedData.of(sets, self.device)
            for kept in ("selected", "best_iid", "last"):
                epochs = [c.progress.kept[kept][0] for c in courses]
                new = [r for r, e in enumerate(epochs) if test not in tested[r].get(e, {})]
                if not new:
                    continue
                weights = [courses[r].progress.kept[kept][1] for r in new]
                chosen = data.keep(torch.tensor(new, device=self.device))
                for r, metrics in zip(new, self._free_running(weights, chosen), strict=True):
                    tested[r].setdefault(epochs[r], {})[test] = metrics
        seconds = (time.perf_counter() - started) / len(courses)
        return {
            course.spec.key: self._trained(course, results, seconds)
            for course, results in zip(courses, tested, strict=True)
        }

    def _free_running(self, weights: list[Weights], data: StackedData) -> list[dict[str, Any]]:
        params = _stacked([{f"model.{k}": v for k, v in w.items()} for w in weights])
        steps = data.targets.shape[2]

        def decode(params: Weights, *samples: Tensor) -> Tensor:
            return functional_call(self.call, params, ("generate", _batch(*samples), steps))[0]

        predictions: list[list[tuple[Batch, Tensor]]] = [[] for _ in weights]
        for chunk in data.by_length():
            samples = data.gather(*chunk)
            tokens = self._together("decode", decode, params, *samples).cpu()
            for r in range(len(weights)):
                batch = _batch(*(x[r].cpu() for x in samples))
                predictions[r].append((batch, tokens[r]))
        end = self.specs[0].task.end
        return [score(mine, end)._asdict() for mine in predictions]

    def _trained(
        self, course: Course, tested: dict[int, dict[str, Any]], seconds: float
    ) -> Trained:
        progress = course.progress
        model = build(course.spec, self.device)
        model.load_state_dict(progress.kept["selected"][1])
        return Trained(
            model=model,
            checkpoints={
                name: {"epoch": epoch, "tests": tested[epoch]}
                for name, (epoch, _) in progress.kept.items()
            },
            parameters=sum(p.numel() for p in model.parameters()),
            curve=progress.curve,
            probe=progress.probe,
            cost={
                "steps": progress.step,
                "training_seconds": progress.seconds,
                "evaluation_seconds": seconds,
                "stacked": progress.stacked,
            },
            refused=progress.refused,
        )


def _stacked(states: list[Weights]) -> Weights:
    return {name: torch.stack([state[name] for state in states]) for name in states[0]}
