"""Many runs trained as one program: replicas stacked along a leading axis.

Models here are tiny and their runs many, so a GPU that trains one at a time is idle. Runs whose
models have equal shapes are stacked, and every operation of a step is done for all of them at once:
``torch.func.vmap`` over the model's plain path, and optimisers that know one rate per replica.
Nothing inside an epoch waits for the device. On a GPU whole steps are captured in CUDA graphs, one
per shape of batch, and replayed; so is what is measured after an interval.

A replica in a stack is the run that trains alone: same data, same order, same dropout, same
protocol. It is frozen when it is finished or when its loss is no longer a number.
"""

import copy
import time
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from relength.errors import RelengthError
from relength.kernels.hashing import step_key
from relength.specs.spec import RunSpec
from relength.streams import dropout_key
from relength.tasks.batch import Batch
from relength.training import optimisers
from relength.training.alone import Trained, build
from relength.training.course import PROBE_ITEMS, PROBE_STEPS, Course, Scores, Snapshot
from relength.training.device import Graphs, out_of_memory
from relength.training.evaluate import Measured
from relength.training.grouping import signature
from relength.training.provenance import code_fingerprint
from relength.training.stacked_data import Samples, StackedData, Widths

# Batches are padded up to a multiple of this on a GPU: few shapes mean few graphs.
BUCKET = 4
CHUNK = 20  # steps whose freshly drawn samples are sent to the device together

Drawn = tuple[Any, ...]  # what a task draws for a step: a NamedTuple of arrays or tensors
Weights = dict[str, Tensor]
Shapes = tuple[torch.Size, ...]


class _Call(torch.nn.Module):
    """Lets functional_call reach any function of a model."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, function: Callable, *arguments: Any) -> Any:
        return function(self.model, *arguments)


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
        if not specs[0].task.stacks:
            raise Unstackable(f"Runs of {specs[0].task.name} train alone: give them no stack.")
        self.device = device
        self.graphs = torch.device(device).type == "cuda" if graphs is None else graphs
        self.courses = [Course(spec) for spec in specs]
        self.failures: dict[str, str] = {}  # key -> what went wrong
        self.reached: dict[Shapes, frozenset[str]] = {}  # parameters, by the shapes of a batch
        self.batched: set[str] = set()  # what vmap has been seen to batch
        self.put_aside: set[str] = set()  # keys of finished runs whose last state is saved
        self.protocol, self.task = specs[0].training, specs[0].task
        models = [build(spec, device) for spec in specs]
        for model in models:
            model.fused = False
        self.call = _Call(models[0])
        self.params = _stacked([_Call(model).state_dict() for model in models])
        self.trained = [name for name, _ in self.call.named_parameters()]
        weights = [self.params[name] for name in self.trained]
        self.optimiser = optimisers.stacked(self.protocol.moves, weights)
        self.data = None if self.protocol.fresh else self._split("train")
        names = dict.fromkeys((*self.task.dev_splits, "validation", *self.task.watched_splits))
        self.splits = {name: self._split(name) for name in names}
        self.kind = type(self.splits["validation"].all)
        self._allocate()

    @property
    def specs(self) -> list[RunSpec]:
        """The specs that the replicas train."""
        return [course.spec for course in self.courses]

    @property
    def finished(self) -> bool:
        return all(course.progress.finished for course in self.courses)

    @property
    def half_empty(self) -> bool:
        """True when the replicas that go on would do better in a new stack, with others."""
        return 2 * sum(course.progress.finished for course in self.courses) >= len(self.courses)

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
            count, self.protocol.batch_size, dtype=torch.int64, device=self.device
        )
        self.fed: dict[Shapes, Drawn] = {}  # samples drawn afresh, by their shapes
        self.found: dict[Hashable, Tensor] = {}  # accuracies and losses, by what was scored
        self.loss = torch.zeros(count, dtype=dtype, device=self.device)
        self.loss_sum = torch.zeros(count, dtype=dtype, device=self.device)
        self.captured = Graphs(self.device)

    def run_epoch(self) -> None:
        """Train one interval of every running replica, evaluate, and let each course decide."""
        started = time.perf_counter()
        running = self._running()
        steps = self.run_steps()
        losses = (self.loss_sum / steps).tolist()
        scores = self.evaluate()
        seconds = (time.perf_counter() - started) / len(running)
        for r, course in running:
            course.trained_on(self.device)
            course.progress.seconds += seconds
            course.progress.step += steps
            course.progress.stacked = max(course.progress.stacked, len(self.courses))
            try:
                course.end_epoch(losses[r], scores[r], lambda r=r: self._weights(r))
            except RelengthError as diverged:  # its neighbours go on
                self.failures[course.spec.key] = str(diverged)

    def evaluate(self) -> list[Scores]:
        """Measure what the course of each replica looks at after an interval; each set once."""
        measured = cache(lambda name: self._measured(self.splits[name]))
        dev = zip(*map(measured, self.task.dev_splits), strict=True)
        iid: list[Measured | None] = [None] * len(self.courses)
        if any(course.asks_iid for course in self.courses):
            iid = measured("validation")
        shown = any(course.shown for course in self.courses)
        watched: list[dict[str, float]] = [{} for _ in iid]
        for name in self.task.watched_splits if shown else ():
            for seen, found in zip(watched, measured(name), strict=True):
                seen[name] = found.accuracy
        means = (
            Measured(*(sum(numbers) / len(sets) for numbers in zip(*sets, strict=True)))
            for sets in dev
        )
        return [Scores(*own) for own in zip(means, iid, watched, strict=True)]

    def _running(self) -> list[tuple[int, Course]]:
        """The replicas that train in this interval.

        Where batches are drawn afresh, their lengths belong to the interval: replicas that are
        ahead of others, after a resume, wait for them.
        """
        running = [(r, c) for r, c in enumerate(self.courses) if not c.progress.finished]
        if self.protocol.fresh:
            now = min(course.progress.epoch for _, course in running)
            running = [(r, c) for r, c in running if c.progress.epoch == now]
        return running

    def run_steps(self, most: int | None = None) -> int:
        """Train on the batches of this interval, or on its first ones; returns how many."""
        self.rate.copy_(
            torch.tensor([c.progress.rate for c in self.courses], dtype=self.rate.dtype)
        )
        replicas = {r for r, _ in self._running()}
        self.active.copy_(torch.tensor([r in replicas for r in range(len(self.courses))]))
        waiting = self._waiting(replicas)
        probing = any(not course.progress.probe for course in self.courses)
        first: list[Tensor] = []
        self.loss_sum.zero_()
        for taken in self._steps(most):
            if probing and taken <= PROBE_STEPS:
                first.append(self.loss.clone())
            if probing and taken == PROBE_STEPS:
                after = self._scores(self.splits["validation"], PROBE_ITEMS)[1]
        if probing:
            if taken < PROBE_STEPS:  # an interval of fewer steps than a probe has
                after = self._scores(self.splits["validation"], PROBE_ITEMS)[1]
            self._probe(first, after)
        for tensor, replica, before in waiting:
            tensor[replica] = before
        return taken

    def _waiting(self, training: set[int]) -> list[tuple[Tensor, int, Tensor]]:
        """The optimiser's memory of replicas that wait: a tensor, a replica, and its value now.

        Weights of replicas that do not train stay as they are, and these averages do not.
        """
        remembered = (*self.optimiser.first, *self.optimiser.second, *self.optimiser.steps)
        return [
            (tensor, r, tensor[r].clone())
            for r, course in enumerate(self.courses)
            if r not in training and not course.progress.finished
            for tensor in remembered
        ]

    def _steps(self, most: int | None) -> Iterator[int]:
        """Take the steps of this interval, or its first ones; count them after each."""
        steps = islice(self._fresh_steps() if self.data is None else self._chosen_steps(), most)
        for taken, _ in enumerate(steps, start=1):
            yield taken

    def _fresh_steps(self) -> Iterator[None]:
        """Steps on samples that every replica draws for itself."""
        interval = self._running()[0][1].progress.epoch
        feeds = [self.protocol.drawn(spec, interval) for spec in self.specs]
        for drawn in self._uploaded(zip(*feeds, strict=True)):
            yield self._feed(drawn)

    def _chosen_steps(self) -> Iterator[None]:
        """Steps on the training data, each replica's in an order of its own."""
        orders = [
            self.protocol.order(course.spec, self.data.of_replica(r), course.progress.epoch)
            for r, course in enumerate(self.courses)
        ]
        steps = [np.stack(positions) for positions in zip(*orders, strict=True)]  # (R, B) each
        for positions, on_device in zip(steps, self._sent(steps), strict=True):
            yield self._step(on_device, self._padded(self.data.widths(positions)))

    def _padded(self, widths: Widths) -> Widths:
        """Widths rounded up so that few graphs serve all batches; exact without graphs."""
        if not self.graphs:
            return widths
        most = self.data.most
        return tuple(min(-(-w // BUCKET) * BUCKET, m) for w, m in zip(widths, most, strict=True))

    def _step(self, index: Tensor, widths: Widths) -> None:
        """One optimiser step of all replicas on the samples ``index`` (R, B)."""
        if (
            not self.graphs or index.shape != self.index.shape
        ):  # the last batch of an epoch is short
            self._train(self.data.gather(index, widths))
            return
        self.index.copy_(index)
        self._replay(widths, lambda: self.data.gather(self.index, widths))

    def _uploaded(self, steps: Iterable[Sequence[Drawn]]) -> Iterator[Drawn]:
        """Draw the samples of all replicas step after step, on the device: (R, B, …) each.

        Several steps are sent at once, without waiting for what the device is at: it works on some
        while the next are drawn.
        """
        steps = iter(steps)
        while some := list(islice(steps, CHUNK)):
            stacked = [[np.stack(part) for part in zip(*drawn, strict=True)] for drawn in some]
            parts = [self._sent(arrays) for arrays in zip(*stacked, strict=True)]
            yield from map(type(some[0][0]), *parts)

    def _sent(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Arrays of one kind on the device, as views of one block."""
        block = torch.from_numpy(np.concatenate([array.ravel() for array in arrays]))
        if torch.device(self.device).type == "cuda":  # memory that a device reads by itself
            block = block.pin_memory().to(self.device, non_blocking=True)
        pieces = block.split([array.size for array in arrays])
        return [piece.view(x.shape) for piece, x in zip(pieces, arrays, strict=True)]

    def _feed(self, drawn: Drawn) -> None:
        """One optimiser step of all replicas on the samples that each has drawn, (R, B, …)."""
        if not self.graphs:
            self._train(self._encoded(drawn))
            return
        shapes = tuple(tensor.shape for tensor in drawn)
        if shapes not in self.fed:
            self.fed[shapes] = type(drawn)(*(torch.empty_like(tensor) for tensor in drawn))
        ours = self.fed[shapes]
        for old, new in zip(ours, drawn, strict=True):
            old.copy_(new)
        self._replay(shapes, lambda: self._encoded(ours))

    def _encoded(self, drawn: Drawn) -> Samples:
        return self.task.encode(drawn, self.device).tensors

    def _replay(self, shape: Widths | Shapes, samples: Callable[[], Samples]) -> None:
        """One step as a graph; ``samples`` is what it reads, at the same addresses each time."""
        changed = (
            *self.params.values(),
            *self.optimiser.state,
            self.step,
            self.loss,
            self.loss_sum,
        )
        self.captured.run(shape, lambda: self._train(samples()), changed)

    def _train(self, samples: Samples) -> None:
        keys = step_key(self.keys, self.step)
        grads, loss = self.gradients(samples, keys)
        used = self._used(samples, keys)
        grads = [g if name in used else None for name, g in zip(self.trained, grads, strict=True)]
        optimisers.clip_(grads, self.protocol.clip)
        self.optimiser.update_(grads, self.rate, self.active)
        self.step += self.active
        self.loss.copy_(loss)
        self.loss_sum += loss

    def _used(self, samples: Samples, keys: Tensor) -> frozenset[str]:
        """Names of the parameters that batches of this shape reach, as autograd sees it.

        A batch of length 1 may not come by the weights of a decoder, say. A run alone has no
        gradient there, and leaves them; in a stack there are zeros, which look like a gradient.
        """
        shapes = tuple(tensor.shape for tensor in samples)
        if shapes not in self.reached:
            names, weights = zip(*self.call.named_parameters(), strict=True)
            loss = self.call(self._loss, self.kind(*(x[0] for x in samples)), keys[0])
            grads = torch.autograd.grad(loss, weights, allow_unused=True)
            self.reached[shapes] = frozenset(
                name for name, grad in zip(names, grads, strict=True) if grad is not None
            )
        return self.reached[shapes]

    def _loss(self, model: torch.nn.Module, batch: Batch, key: Tensor) -> Tensor:
        return self.protocol.loss(self.task, model, batch, key)

    def gradients(self, samples: Samples, keys: Tensor) -> tuple[list[Tensor], Tensor]:
        """Gradients, each (R, …), and losses (R,) of one batch per replica."""

        def loss_of(trained: Weights, rest: Weights, key: Tensor, *samples: Tensor) -> Tensor:
            arguments = (self._loss, self.kind(*samples), key)
            return functional_call(self.call, trained | rest, arguments)

        trained = {name: self.params[name] for name in self.trained}
        rest = {name: self.params[name] for name in self.params.keys() - trained.keys()}
        step = grad_and_value(loss_of)
        grads, loss = self._together("train", step, trained, rest, keys, *samples)
        return [grads[name] for name in self.trained], loss

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

    def _measured(self, data: StackedData) -> list[Measured]:
        """Accuracy and mean loss of each replica on a split."""
        accuracy, loss = (numbers.tolist() for numbers in self._scores(data))
        return [Measured(*own) for own in zip(accuracy, loss, strict=True)]

    @torch.no_grad()
    def _scores(self, data: StackedData, items: int | None = None) -> tuple[Tensor, Tensor]:
        """Accuracy and mean loss (R,) on a split, or on its shortest samples; waits for nothing.

        As a graph where steps are: a split is scored after every interval.
        """
        if not self.graphs:
            return self._scores_eagerly(data, items)
        place = "scores", data, items
        if place not in self.found:
            shape = 2, len(self.courses)
            self.found[place] = torch.zeros(shape, dtype=torch.float64, device=self.device)
        found = self.found[place]
        self.captured.run(
            place, lambda: found.copy_(torch.stack(self._scores_eagerly(data, items))), [found]
        )
        right, loss = found.clone()
        return right, loss

    def _scores_eagerly(self, data: StackedData, items: int | None) -> tuple[Tensor, Tensor]:
        def measure(model: torch.nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
            outputs = model(batch)
            return self.task.right(outputs, batch).sum(), self.task.loss(outputs, batch)

        def evaluate(params: Weights, *samples: Tensor) -> tuple[Tensor, Tensor]:
            return functional_call(self.call, params, (measure, self.kind(*samples)))

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
        for r, course in enumerate(self.courses):
            if course.progress.finished:
                continue
            memory = (
                {
                    name.removeprefix("model."): tensor[r].clone()
                    for name, tensor in zip(self.trained, tensors, strict=True)
                }
                for tensors in (self.optimiser.first, self.optimiser.second, self.optimiser.steps)
            )
            self._save(folder, course, self._weights(r), *memory)
        for course in self.courses:
            key, kept = course.spec.key, course.progress.kept
            if "last" not in kept or key in self.put_aside:  # it goes on, or has failed
                continue
            self.put_aside.add(key)
            nothing = dict.fromkeys(kept["last"][1], torch.zeros(()))
            self._save(folder, course, kept["last"][1], nothing, nothing, nothing)

    def _save(self, folder: Path, course: Course, weights: Weights, *memory: Weights) -> None:
        key, progress = course.spec.key, vars(course.progress)
        Snapshot(key, code_fingerprint(), weights, *memory, progress).save(folder / f"{key}.pt")

    def load(self, folder: Path) -> None:
        """Continue those runs that have a saved state in the folder: see Course.begin."""
        ours = self.optimiser
        for r, course in enumerate(self.courses):
            snapshot = course.begin(folder / f"{course.spec.key}.pt", self.device)
            if snapshot is None:
                continue
            for name, tensor in self.params.items():
                tensor[r] = snapshot.weights[name.removeprefix("model.")]
            for i, name in enumerate(self.trained):
                plain = name.removeprefix("model.")
                ours.first[i][r] = snapshot.first[plain]
                ours.second[i][r] = snapshot.second[plain]
                ours.steps[i][r] = snapshot.steps[plain]
        self._allocate()

    @torch.no_grad()
    def results(self) -> dict[str, Trained]:
        """Test the finished runs together; return what each hands to its record, by key.

        Runs that have failed, or go on, are left out.
        """
        started = time.perf_counter()
        courses = [
            c for c in self.courses if c.progress.finished and c.spec.key not in self.failures
        ]
        if not courses:
            return {}
        tested: list[dict[int, dict[str, Any]]] = [{} for _ in courses]
        ready: dict[tuple[int, int], torch.nn.Module] = {}  # by replica and epoch
        for r, course in enumerate(courses):
            for epoch, weights in course.progress.kept.values():
                if (r, epoch) not in ready:
                    ready[r, epoch] = self._ready(weights)
        for test in self.task.tests:
            sets = [c.spec.task.dataset(test, c.spec.seed) for c in courses]
            data = StackedData.of(sets, self.device)
            for kept in courses[0].progress.kept:
                epochs = [c.progress.kept[kept][0] for c in courses]
                new = [r for r, e in enumerate(epochs) if test not in tested[r].get(e, {})]
                if not new:
                    continue
                models = [ready[r, epochs[r]] for r in new]
                chosen = data.keep(torch.tensor(new, device=self.device))
                answers = self._free_running(models, chosen)
                for r, mine in zip(new, answers, strict=True):
                    metrics = courses[r].spec.task.score(mine).model_dump()
                    tested[r].setdefault(epochs[r], {})[test] = metrics
        checkpoints = [
            {
                name: {"epoch": epoch, "tests": mine[epoch]}
                for name, (epoch, _) in course.progress.kept.items()
            }
            for course, mine in zip(courses, tested, strict=True)
        ]
        for name, retest in self.protocol.retests(self.task).items():
            models = [self._ready(course.progress.kept["selected"][1]) for course in courses]
            for model, course, mine in zip(models, courses, checkpoints, strict=True):
                retest.change(model)
                mine[name] = {"epoch": course.progress.kept["selected"][0], "tests": {}}
            for test, split in retest.tests.items():
                sets = [c.spec.task.dataset(split, c.spec.seed) for c in courses]
                answers = self._free_running(models, StackedData.of(sets, self.device))
                for course, mine, written in zip(courses, checkpoints, answers, strict=True):
                    metrics = course.spec.task.score(written).model_dump()
                    mine[name]["tests"][test] = metrics
        seconds = (time.perf_counter() - started) / len(courses)
        return {
            course.spec.key: self._trained(course, mine, seconds)
            for course, mine in zip(courses, checkpoints, strict=True)
        }

    def _ready(self, weights: Weights) -> torch.nn.Module:
        """A model with these weights, as the protocol has it tested."""
        model = copy.deepcopy(self.call.model)
        model.load_state_dict(weights)
        self.protocol.before_test(model)
        return model

    def _free_running(
        self, models: list[torch.nn.Module], data: StackedData
    ) -> list[list[tuple[Batch, Tensor]]]:
        """Let each model write: return its batches and its answers to them, on the host."""
        call, steps = _Call(models[0]), data.all.targets.shape[2]
        params = _stacked([_Call(model).state_dict() for model in models])

        def written(model: torch.nn.Module, batch: Batch) -> Tensor:
            return model.generate(batch, steps)[0]

        def decode(params: Weights, *samples: Tensor) -> Tensor:
            return functional_call(call, params, (written, self.kind(*samples)))

        answers: list[list[tuple[Batch, Tensor]]] = [[] for _ in models]
        for chunk in data.by_length():
            samples = data.gather(*chunk)
            tokens = self._together("decode", decode, params, *samples).cpu()
            host = self.kind(*samples).to("cpu")
            for r, mine in enumerate(answers):
                mine.append((host.map(lambda tensor, r=r: tensor[r]), tokens[r]))
        return answers

    def _trained(
        self, course: Course, checkpoints: dict[str, dict[str, Any]], seconds: float
    ) -> Trained:
        progress = course.progress
        model = build(course.spec, self.device)
        parameters = sum(p.numel() for p in model.parameters())
        model.load_state_dict(progress.kept["selected"][1])
        self.protocol.before_test(model)
        return Trained(
            model=model,
            checkpoints=checkpoints,
            parameters=parameters,
            curve=progress.curve,
            probe=progress.probe,
            cost={
                "steps": progress.step,
                "training_seconds": progress.seconds,
                "evaluation_seconds": seconds,
                "stacked": progress.stacked,
            },
            refused=progress.refused,
            origin=progress.origin,
            places=progress.places,
        )


def _stacked(states: list[Weights]) -> Weights:
    return {name: torch.stack([state[name] for state in states]) for name in states[0]}
