"""Runs in a stack are the runs that train alone: in gradients, after many steps, after a resume."""

import math
import os
import re
import signal
import time
from collections import Counter
from typing import get_args, get_type_hints

import numpy as np
import pytest
import torch
from baseline_reference import READINGS, SIZES
from hypothesis import given, settings
from hypothesis import strategies as st

from relength.errors import RelengthError
from relength.kernels.hashing import step_key
from relength.models.seq2seq.encoder_decoder import Seq2Seq
from relength.papers.mla.experiments import MODELS, TWO_ARMED
from relength.paths import ROOT
from relength.specs.spec import make_spec
from relength.streams import stream
from relength.tasks.algorithmic import Drawn
from relength.training import device, optimisers
from relength.training.alone import Trainer, train
from relength.training.course import Course
from relength.training.grouping import signature, stacks
from relength.training.protocols import optimiser as rules
from relength.training.protocols.base import Clip
from relength.training.stack import BUCKET, Stack, Unstackable

pytestmark = pytest.mark.equality

ARMS = [{"name": name} for name in MODELS] + [{"name": name, "arm": "paper"} for name in TWO_ARMED]
STEPS = 50
# Of whom fifty steps are compared each time; of the others weekly. What of a step is a model's own,
# its gradients, is compared for all of them each time; the rest of a step is the same code for all.
OFTEN = ("OneStepAttn-paper", "PANM-repaired")


def fifty_steps(models):
    """Models as a parameter of a test; those that are not of these names weekly."""
    named = {f"{model['name']}-{model.get('arm', 'released')}": model for model in models}
    return [
        pytest.param(model, id=name, marks=() if name in OFTEN else pytest.mark.weekly)
        for name, model in named.items()
    ]


def run_spec(model, seed, task="recopy", **training):
    model = {"name": model} if isinstance(model, str) else model
    return make_spec(
        task={
            "name": task,
            "train_size": 40,
            "dev_size": 6,
            "test_size": 6,
            "validation_size": 6,
        },
        model={**model, "embedding_size": 6, "hidden_size": 8},
        training={
            "name": "epochs",
            **({} if "name" in training else {"epochs": 2}),
            **{"batch_size": 8, "precision": "float64"},
            **training,
        },
        scale="smoke",
        seed=seed,
    )


def single_steps(spec, nudge=0.0):
    """A lone run's parameters after steps on the same batches, from weights moved by ``nudge``."""
    trainer = Trainer(spec)
    with torch.no_grad():
        for p in trainer.model.parameters():
            p += nudge
    batches = trainer.data.chunks(8)
    for i in range(STEPS):
        trainer.train_step(batches[i % len(batches)])
    return dict(trainer.model.named_parameters())


def apart(a, b):
    return max(float((a[name] - b[name]).detach().abs().max()) for name in a)


def drawn_for(name, tasks):
    """Seeds of 1 to 3 replicas and a task: other ones for each model, the same each time."""
    random = np.random.default_rng(list(name.encode()))
    seeds = random.choice(10**6, random.integers(1, 4), replace=False)
    return [int(seed) for seed in seeds], tasks[random.integers(len(tasks))]


def assert_rounding_alone(stack, lone):
    """After the same steps, weights as close as two lone runs that began 1e-15 apart; or closer."""
    for r, spec in enumerate(stack.specs):
        alone = lone(spec)
        gap = apart(alone, stack._weights(r))
        assert gap <= 1e-10 or gap <= 100 * apart(alone, lone(spec, nudge=1e-15))


@pytest.mark.parametrize("model", ARMS, ids=lambda m: f"{m['name']}-{m.get('arm', 'released')}")
@settings(max_examples=3)
@given(
    seeds=st.lists(st.integers(0, 10**6), min_size=1, max_size=4, unique=True),
    task=st.sampled_from(["copy", "recopy", "inv_recopy"]),
    step=st.integers(0, 10**6),
)
def test_first_gradients_equal_those_of_lone_runs(model, seeds, task, step):
    stack = Stack([run_spec(model, seed, task) for seed in seeds])
    index = torch.arange(8).expand(len(seeds), -1)
    widths = stack.data.widths(index.numpy())
    keys = step_key(stack.keys, step)
    grads, losses = stack.gradients(stack.data.gather(index, widths), keys)
    for r, spec in enumerate(stack.specs):
        lone = Trainer(spec)
        loss = spec.training.loss(spec.task, lone.model, lone.data.select(slice(0, 8)), keys[r])
        loss.backward()
        assert abs(float(losses[r]) - loss.item()) < 1e-12
        for grad, p in zip(grads, lone.model.parameters(), strict=True):
            torch.testing.assert_close(grad[r], p.grad, rtol=0, atol=1e-12)


@pytest.mark.parametrize("model", fifty_steps(ARMS))
def test_fifty_steps_stay_as_close_as_rounding_allows(model):
    seeds, task = drawn_for(str(model), ["copy", "reverse_copy", "recopy"])
    stack = Stack([run_spec(model, seed, task) for seed in seeds])
    stack.rate.fill_(stack.protocol.learning_rate)
    order = torch.arange(40).expand(len(seeds), -1).split(8, dim=1)
    for i in range(STEPS):
        index = order[i % len(order)]
        stack._step(index, stack.data.widths(index.numpy()))
    assert_rounding_alone(stack, single_steps)


@pytest.mark.parametrize(
    ("training", "kept"),
    [
        ({}, {"selected", "best_iid", "last"}),
        ({"name": "fixed_steps", "steps": 10, "validate_every": 5}, {"selected", "last"}),
    ],
    ids=["selected", "last"],
)
def test_whole_runs_agree_in_curve_selection_and_tests(training, kept):
    specs = [
        run_spec("Content", seed, task, **training)
        for task in ("copy", "reverse_copy")
        for seed in (0, 1)
    ]
    stack = Stack(specs)
    while not stack.finished:
        stack.run_epoch()
    results = stack.results()
    for spec in specs:
        alone, stacked = train(spec), results[spec.key]
        assert stacked.checkpoints == alone.checkpoints and set(alone.checkpoints) == kept
        assert stacked.probe["losses"] == pytest.approx(alone.probe["losses"], rel=1e-9)
        for ours, theirs in zip(stacked.curve, alone.curve, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-9)


def test_a_stack_resumes_where_it_stopped_and_takes_over_a_run_that_began_alone(tmp_path):
    specs = [run_spec("Relative", seed, epochs=3) for seed in (0, 1)]
    uninterrupted = Stack(specs)
    while not uninterrupted.finished:
        uninterrupted.run_epoch()
    stopped = Stack(specs)
    stopped.run_epoch()
    stopped.save(tmp_path)
    alone = Trainer(specs[1])  # one epoch further than its neighbour
    alone.run_epoch()
    alone.run_epoch()
    alone.save(tmp_path / f"{specs[1].key}.pt")
    resumed = Stack(specs)
    resumed.load(tmp_path)
    assert [c.progress.epoch for c in resumed.courses] == [1, 2]
    while not resumed.finished:
        resumed.run_epoch()
    for a, b in zip(uninterrupted.courses, resumed.courses, strict=True):
        for left, right in zip(a.progress.curve, b.progress.curve, strict=True):
            assert left == pytest.approx(right, rel=1e-8)


def assert_same_state(ours, theirs):
    assert [c.progress.curve for c in ours.courses] == [c.progress.curve for c in theirs.courses]
    assert torch.equal(ours.step, theirs.step)
    for a, b in zip(ours.optimiser.state, theirs.optimiser.state, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)
    for name, weight in theirs.params.items():
        torch.testing.assert_close(ours.params[name], weight, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "kind",
    [
        "PANM",
        *(pytest.param(k, marks=pytest.mark.weekly) for k in ("MonoAttn", "Bi-Relative", "DNC")),
    ],
)
def test_weights_and_moments_are_those_of_an_uninterrupted_stack_after_a_resume(kind, tmp_path):
    if kind in MODELS:
        specs = [run_spec(kind, seed, epochs=3) for seed in (0, 1, 2)]
    else:
        model = next(model for model in STREAMING if model["name"] == kind)
        specs = [streaming_spec(model, seed) for seed in (0, 1, 2)]
    uninterrupted, stopped, resumed = Stack(specs), Stack(specs), Stack(specs)
    for _ in range(2):
        uninterrupted.run_epoch()
    stopped.run_epoch()
    stopped.save(tmp_path)
    resumed.load(tmp_path)
    resumed.run_epoch()
    assert_same_state(resumed, uninterrupted)


KILLED = """
from pathlib import Path
from test_stack import Stack, run_spec
stack = Stack([run_spec("Content", seed, epochs=10**6) for seed in (0, 1)])
while True:
    stack.run_epoch()
    stack.save(Path("states"))
"""


@pytest.mark.smoke
@pytest.mark.weekly  # per change tests/test_cli.py kills a campaign of runs alone, not stacked
def test_a_stack_that_is_killed_at_any_moment_goes_on_as_if_nothing_had_happened(tmp_path, python):
    specs = [run_spec("Content", seed, epochs=10**6) for seed in (0, 1)]
    states = [tmp_path / "states" / f"{spec.key}.pt" for spec in specs]
    path = f"{ROOT / 'lib'}{os.pathsep}{ROOT / 'tests'}"
    process = python("-c", KILLED, cwd=tmp_path, PYTHONPATH=path)
    while not all(state.exists() for state in states) and process.poll() is None:
        time.sleep(0.01)
    process.kill()  # SIGKILL: in the middle of an epoch, or of a file
    problems = process.communicate()[1]
    assert process.returncode == -signal.SIGKILL, problems
    resumed, uninterrupted = Stack(specs), Stack(specs)
    resumed.load(tmp_path / "states")
    epochs = [course.progress.epoch for course in resumed.courses]
    assert min(epochs) >= 1 and max(epochs) - min(epochs) <= 1
    for stack in (resumed, uninterrupted):  # a replica that is behind keeps its distance
        while stack.courses[0].progress.epoch < max(epochs) + 1:
            stack.run_epoch()
    ours, theirs = (stack._weights(0) for stack in (resumed, uninterrupted))
    assert apart(ours, theirs) < 1e-12


def test_a_replica_does_not_notice_that_its_neighbours_are_finished(monkeypatch):
    """Three of four runs are done after the first epoch, and wait for their results."""
    specs = [run_spec("Content", seed, epochs=3) for seed in range(4)]
    end_epoch = Course.end_epoch

    def early(self, *arguments):
        end_epoch(self, *arguments)
        if self.spec.seed != 2:
            self.progress.kept["last"] = self.progress.kept["selected"]
            self.progress.finished = True

    monkeypatch.setattr(Course, "end_epoch", early)
    stack = Stack(specs)
    assert not stack.half_empty
    stack.run_epoch()
    assert stack.half_empty and not stack.finished
    assert set(stack.results()) == {spec.key for spec in specs if spec.seed != 2}
    while not stack.finished:
        stack.run_epoch()
    monkeypatch.undo()
    assert set(stack.results()) == {spec.key for spec in specs}
    expected = train(specs[2]).curve
    for ours, theirs in zip(stack.courses[2].progress.curve, expected, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-9)


def test_a_replica_that_diverges_fails_alone():
    good, bad = run_spec("Content", 0), run_spec("Content", 1, learning_rate=1e200)
    stack = Stack([good, bad])
    while not stack.finished:
        stack.run_epoch()
    assert list(stack.failures) == [bad.key]
    assert "diverged" in stack.failures[bad.key]
    results = stack.results()
    assert list(results) == [good.key]
    for ours, theirs in zip(results[good.key].curve, train(good).curve, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-9)


def test_only_runs_of_equal_shape_share_a_stack():
    recopy, copy = run_spec("Content", 0), run_spec("Content", 1, task="reverse_recopy")
    other = run_spec("Relative", 0)
    slower = run_spec("Content", 2, learning_rate=1e-4)
    assert signature(recopy) == signature(copy) == signature(slower) != signature(other)
    assert signature(run_spec("Content", 0, task="copy")) == signature(recopy)  # padded
    assert signature(run_spec("Content", 0, batch_size=4)) != signature(recopy)
    with pytest.raises(RelengthError, match="cannot share a stack"):
        Stack([recopy, other])
    grouped = stacks([recopy, other, copy, slower], most=2)
    assert [[s.key for s in g] for g in grouped] == [
        [recopy.key, copy.key],
        [other.key],
        [slower.key],
    ]


def test_runs_of_similar_lengths_come_together_and_the_rest_fills_the_stacks():
    by_task = {
        task: [run_spec("Content", seed, task) for seed in range(3)]
        for task in ("copy", "reverse_copy", "recopy", "inv_recopy")  # of three lengths
    }
    specs = [runs[seed] for seed in range(3) for runs in by_task.values()]

    def grouped(most):
        groups = stacks(specs, most)
        assert sorted(s.key for g in groups for s in g) == sorted(s.key for s in specs)
        return [Counter(s.task.name for s in g) for g in groups]

    assert grouped(40) == grouped(12) == [dict.fromkeys(by_task, 3)]
    short = {"copy": 3, "reverse_copy": 3}
    assert grouped(6) == [short, {"recopy": 3, "inv_recopy": 3}]
    assert grouped(4) == [
        {"copy": 2, "reverse_copy": 2},  # which leave one each
        {"recopy": 3},
        {"inv_recopy": 3},
        {"copy": 1, "reverse_copy": 1},
    ]
    assert [len(group) for group in stacks(specs, 1)] == [1] * 12
    assert stacks(specs, 1) == [[spec] for spec in specs]


@pytest.mark.parametrize("model", ["Relative", "MonoAttn"])
def test_padding_to_a_much_longer_task_changes_no_gradient(model):
    specs = [run_spec(model, 0, "copy"), run_spec(model, 1, "inv_reverse_recopy")]
    stack = Stack(specs)
    index = torch.arange(8).expand(2, -1)
    samples = stack.data.gather(index, stack.data.widths(index.numpy()))
    grads, _ = stack.gradients(samples, step_key(stack.keys, 0))
    for r, spec in enumerate(specs):
        lone = Trainer(spec)
        lone.loss(lone.data.select(slice(0, 8))).backward()
        for grad, p in zip(grads, lone.model.parameters(), strict=True):
            torch.testing.assert_close(grad[r], p.grad, rtol=0, atol=1e-12)


# --- models that cannot be stacked ---------------------------------------------------------------


def in_place(h):
    marks = torch.zeros(h.shape, dtype=h.dtype)
    marks[0] = h[0]
    return h + 0 * marks


UNBATCHED = {
    "gru": lambda h: torch.nn.GRU(8, 8, batch_first=True).double()(h[:, None])[0][:, 0],
    "in place": in_place,
    "numpy": lambda h: h + 0 * float(h.detach().numpy()[0, 0]),
    "list": lambda h: h + 0 * h.tolist()[0][0],
    "item": lambda h: h + 0 * h.sum().item(),
    "branch": lambda h: h if h.sum() > 0 else h + 0,
    "shape": lambda h: h + 0 * h[h > 0].sum(),
}


@pytest.fixture
def unbatched(monkeypatch):
    """Gives the decoder of every model an operation of that name."""

    def give(name):
        logits = Seq2Seq.logits
        monkeypatch.setattr(Seq2Seq, "logits", lambda self, h: logits(self, UNBATCHED[name](h)))

    return give


@pytest.mark.parametrize("name", UNBATCHED)
def test_an_operation_that_cannot_be_stacked_is_named_with_its_place(unbatched, name):
    unbatched(name)
    stack = Stack([run_spec("Content", seed) for seed in (0, 1)])
    with pytest.raises(Unstackable) as refusal:
        stack.run_steps(1)
    message = str(refusal.value)
    assert re.search(r"Model Content .* \(line \d+ of test_stack.py, `.*h.*`: .*--stack 1", message)
    assert "\n" not in message


@pytest.mark.parametrize("part", ["_scores", "_free_running"])
def test_operations_of_evaluation_and_decoding_are_named_too(unbatched, part):
    stack = Stack([run_spec("Content", seed) for seed in (0, 1)])
    unbatched("item")
    data = stack.splits["validation"]
    arguments = {"_scores": (data,), "_free_running": ([stack.call.model] * 2, data)}[part]
    with pytest.raises(Unstackable, match=r"Model Content .*test_stack.py, `.*item"):
        getattr(stack, part)(*arguments)


def test_an_operation_of_the_backward_pass_is_named(monkeypatch):
    class Double(torch.autograd.Function):
        generate_vmap_rule = False

        @staticmethod
        def forward(x):
            return 2 * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 if grad.sum() > 0 else grad + grad

        @staticmethod
        def vmap(info, in_dims, x):
            return Double.apply(x), in_dims[0]

    logits = Seq2Seq.logits
    monkeypatch.setattr(Seq2Seq, "logits", lambda self, h: Double.apply(logits(self, h)))
    stack = Stack([run_spec("Content", seed) for seed in (0, 1)])
    with pytest.raises(Unstackable, match=r"test_stack.py, `return grad"):
        stack.run_steps(1)


def test_what_goes_wrong_after_the_first_step_is_no_matter_of_stacking(monkeypatch):
    stack = Stack([run_spec("Content", seed) for seed in (0, 1)])
    stack.run_steps(1)

    def broken(*_):
        raise RuntimeError("the driver has gone away")

    monkeypatch.setattr(Seq2Seq, "logits", broken)
    with pytest.raises(RuntimeError, match="driver has gone"):
        stack.run_steps(1)


# --- steps as graphs -----------------------------------------------------------------------------


class Replayed:
    """A stand-in for a CUDA graph, on a CPU: takes the captured step again."""

    def __init__(self, step):
        self.step, self.times = step, 0
        self.judges = "_scores" in step.__qualname__

    def replay(self):
        self.times += 1
        self.step()


@pytest.fixture
def recorded(monkeypatch):
    """Lets stacks work with graphs on a CPU; the graphs made, in the order of capture."""
    graphs = []

    def record(step, place, beside):
        for _ in range(device.WARM_UP):
            step()
        graphs.append(Replayed(step))
        return graphs[-1]

    monkeypatch.setattr(device, "record", record)
    return graphs


def finished(specs, graphs, folder=None, place="cpu"):
    """A stack at its end; with a folder, one that was stopped after an epoch and resumed."""
    stack = Stack(specs, place, graphs)
    if folder is not None:
        stack.run_epoch()
        stack.save(folder)
        assert not graphs or stack.captured.captured
        stack.load(folder)
        assert not stack.captured.captured, "graphs of tensors that are no longer used"
    while not stack.finished:
        stack.run_epoch()
    return stack


def assert_equal_runs(ours, theirs):
    for a, b in zip(ours.courses, theirs.courses, strict=True):
        assert a.progress.step == b.progress.step
        assert a.progress.probe["losses"] == pytest.approx(b.progress.probe["losses"], rel=1e-9)
        for left, right in zip(a.progress.curve, b.progress.curve, strict=True):
            assert left == pytest.approx(right, rel=1e-9)
        for name, weight in b.progress.kept["last"][1].items():
            torch.testing.assert_close(a.progress.kept["last"][1][name], weight, atol=1e-9, rtol=0)


interrupted = pytest.mark.parametrize(
    "resumed",
    [
        pytest.param(False, marks=pytest.mark.weekly, id="uninterrupted"),
        pytest.param(True, id="resumed"),
    ],
)


@interrupted
def test_epochs_of_captured_steps_are_those_of_eager_ones(recorded, resumed, tmp_path):
    """Batches are padded to few shapes; the last one of an epoch is short, and is not captured."""
    specs = [run_spec("Content", seed, epochs=3, batch_size=12) for seed in (0, 1)]
    captured = finished(specs, True, tmp_path if resumed else None)
    steps = [graph for graph in recorded if not graph.judges]
    assert 1 <= len(steps) < sum(graph.times for graph in steps) == 3 * (40 // 12)
    assert_equal_runs(captured, finished(specs, False))


def test_a_shape_is_captured_once_and_its_graph_is_used_by_every_epoch(recorded):
    stack = finished([run_spec("Content", seed, epochs=2) for seed in (0, 1)], True)
    shapes = list(stack.captured.captured)
    assert len(recorded) == len(set(shapes)) == len(shapes)
    shapes = [shape for shape in shapes if shape[0] != "scores"]
    assert len(shapes) == sum(not graph.judges for graph in recorded)
    most = stack.data.all.inputs.shape[2], stack.data.all.targets.shape[2]
    assert all(w % BUCKET == 0 or w == m for s in shapes for w, m in zip(s, most, strict=True))


@interrupted
def test_captured_steps_on_fresh_samples_are_the_eager_ones(recorded, resumed, tmp_path):
    specs = [streaming_spec("released", seed, "panm_id_sort") for seed in (0, 1)]
    captured = finished(specs, True, tmp_path if resumed else None)
    steps = [graph for graph in recorded if not graph.judges]
    assert sum(graph.times for graph in steps) == 15
    assert len(steps) <= 4 * (1 + resumed)  # a graph for each length, 1 to 4
    assert_equal_runs(captured, finished(specs, False))


# --- samples drawn afresh -------------------------------------------------------------------------

PANM_ARMS = ("paper", "repaired", "released", "mended")
PANM_SIZES = {"hidden_size": 6, "bits": 4, "mlp_size": 5}
STREAMING = [{"name": "PANM", "arm": arm, **PANM_SIZES} for arm in PANM_ARMS]
STREAMING += [{"name": name, "arm": arm, **SIZES[name]} for name, arm in READINGS]
STREAMING = [m | {"cells": 10} if m["name"] == "NRAM" else m for m in STREAMING]  # for 10 digits
every_streaming_model = pytest.mark.parametrize(
    "model", STREAMING, ids=lambda m: f"{m['name']}-{m['arm']}"
)


def streaming_spec(model, seed, task="panm_copy", **training):
    if isinstance(model, str):
        model = {"name": "PANM", "arm": model, **PANM_SIZES}
    sizes = {"dev_size": 6, "test_size": 6, "validation_size": 6}
    return make_spec(
        task={"name": task, "train_lengths": (1, 4), "lengths": (4, 5, 7), **sizes},
        model=model,
        training={
            "name": "streaming",
            **{"steps": 15, "validate_every": 5, "batch_size": 4},
            **{"precision": "float64", "learning_rate": 1e-3},
            **training,
        },
        scale="smoke",
        seed=seed,
    )


def streamed(spec, steps):
    """A run's batches of the first intervals, one after the other."""
    drawn = [d for i in range(-(-steps // 5)) for d in spec.training.drawn(spec, i)]
    return drawn[:steps]


@every_streaming_model
@settings(max_examples=3)
@given(
    seeds=st.lists(st.integers(0, 10**6), min_size=1, max_size=3, unique=True),
    task=st.sampled_from(["panm_copy", "panm_id_sort", "panm_dynamic_recall"]),
    step=st.integers(0, 10**6),
    length=st.integers(1, 6),
)
def test_first_gradients_of_fresh_samples_equal_those_of_lone_runs(
    model, seeds, task, step, length
):
    stack = Stack([streaming_spec(model, seed, task) for seed in seeds])
    one = stack.specs[0].task
    drawn = [one.draw(stream(seed, "data"), 4, length) for seed in seeds]
    batch = one.encode(Drawn(*(np.stack(part) for part in zip(*drawn, strict=True))))
    keys = step_key(stack.keys, step)
    grads, losses = stack.gradients(batch.tensors, keys)
    for r, spec in enumerate(stack.specs):
        lone = Trainer(spec)
        loss = spec.training.loss(one, lone.model, one.encode(drawn[r]), keys[r])
        loss.backward()
        assert abs(float(losses[r]) - loss.item()) < 1e-12
        for grad, p in zip(grads, lone.model.parameters(), strict=True):
            expected = torch.zeros_like(p) if p.grad is None else p.grad
            torch.testing.assert_close(grad[r], expected, rtol=0, atol=1e-12)


def single_fresh_steps(spec, nudge=0.0):
    """A lone run's parameters after steps on what it draws, from weights moved by ``nudge``."""
    trainer = Trainer(spec)
    with torch.no_grad():
        for p in trainer.model.parameters():
            p += nudge
    for drawn in streamed(spec, STEPS):
        trainer.train_step(spec.task.encode(drawn))
    return dict(trainer.model.named_parameters())


@pytest.mark.parametrize(
    "model",
    # One reading of each baseline: their arms differ in sizes and first weights.
    fifty_steps({m["arm"] if m["name"] == "PANM" else m["name"]: m for m in STREAMING}.values()),
)
def test_fifty_steps_on_fresh_samples_stay_as_close_as_rounding_allows(model):
    seeds, task = drawn_for(str(model), ["panm_copy", "panm_reverse", "panm_id_sort"])
    stack = Stack([streaming_spec(model, seed, task, steps=50) for seed in seeds])
    stack.rate.fill_(stack.protocol.learning_rate)
    feeds = (streamed(spec, STEPS) for spec in stack.specs)
    for drawn in stack._uploaded(zip(*feeds, strict=True)):
        stack._feed(drawn)
    assert_rounding_alone(stack, single_fresh_steps)


def test_samples_are_sent_several_steps_at_a_time_each_as_it_was_drawn(monkeypatch):
    specs = [streaming_spec("paper", seed, "panm_id_sort", steps=50) for seed in (0, 1)]
    stack, sent = Stack(specs), []
    send = Stack._sent
    monkeypatch.setattr(
        Stack, "_sent", lambda self, parts: sent.append(len(parts)) or send(self, parts)
    )
    drawn = list(zip(*(streamed(spec, STEPS) for spec in specs), strict=True))
    received = list(stack._uploaded(drawn))
    assert sent == 3 * [20] + 3 * [20] + 3 * [10]  # tokens, features, places
    for step, ours in zip(drawn, received, strict=True):
        for part, tensor in zip(zip(*step, strict=True), ours, strict=True):
            assert np.array_equal(np.stack(part), tensor.numpy())


def test_a_stack_measures_a_set_that_is_asked_for_twice_once(monkeypatch):
    """The validation set of lookup is a development set, too."""
    stack, seen = Stack([run_spec("Content", seed, "lookup") for seed in (0, 1)]), []
    measured = Stack._measured
    monkeypatch.setattr(
        Stack, "_measured", lambda self, data: seen.append(id(data)) or measured(self, data)
    )
    first, second = stack.evaluate()
    assert first.iid is not None and second.iid is not None
    assert len(seen) == len(set(seen)) == len(stack.splits)


def test_a_split_is_captured_once_and_judged_after_every_interval(recorded):
    specs = [streaming_spec("paper", seed) for seed in (0, 1)]
    stack = finished(specs, True)
    judged = [graph for graph in recorded if graph.judges]
    intervals = stack.courses[0].progress.epoch
    assert len(judged) <= len(stack.splits) + 1  # and some samples for the probe
    assert sum(graph.times == intervals for graph in judged) >= len(stack.task.dev_splits)


def test_what_graphs_read_and_write_stays_where_it_was(recorded):
    """A CUDA graph knows addresses, and nothing of what has moved since it was captured."""
    stack = Stack([streaming_spec("paper", seed) for seed in (0, 1)], graphs=True)

    def places():
        changed = *stack.params.values(), *stack.optimiser.state, *stack.found.values()
        return [tensor.data_ptr() for tensor in (*changed, stack.loss, stack.loss_sum, stack.step)]

    stack.run_epoch()
    before, known = places(), dict(stack.captured.captured)
    while not stack.finished:
        stack.run_epoch()
    assert known.items() <= stack.captured.captured.items()
    assert len(stack.found) < len(known) and set(before) <= set(places())
    judged = stack._scores(stack.splits["validation"])
    for weight in stack.params.values():
        weight.mul_(0.0)
    assert not torch.equal(stack._scores(stack.splits["validation"])[1], judged[1])


def test_an_interval_waits_for_the_device_at_its_end_only(monkeypatch, recorded):
    """The losses that a probe takes note of are read after the last step, not amid them."""
    stack = Stack(
        [streaming_spec("paper", seed, steps=50, validate_every=50) for seed in (0, 1)], graphs=True
    )
    read, train = [], Stack._train
    monkeypatch.setattr(
        Stack, "_train", lambda self, samples: read.append("step") or train(self, samples)
    )
    for name in ("tolist", "cpu", "numpy", "item"):
        original = getattr(torch.Tensor, name)
        monkeypatch.setattr(
            torch.Tensor, name, lambda self, o=original, n=name: read.append(n) or o(self)
        )
    stack.splits["validation"].by_length(64)
    read.clear()
    stack.run_steps()
    assert (
        set(read[: read.index("tolist")]) == {"step"} and "step" not in read[read.index("tolist") :]
    )
    assert len(stack.courses[0].progress.probe["losses"]) == 20


@pytest.mark.parametrize(
    "arm", ["paper", *(pytest.param(arm, marks=pytest.mark.weekly) for arm in PANM_ARMS[1:])]
)
def test_whole_runs_on_fresh_samples_agree_in_curve_selection_and_tests(arm):
    specs = [
        streaming_spec(arm, seed, task) for task in ("panm_copy", "panm_reverse") for seed in (0, 1)
    ]
    stack = Stack(specs)
    while not stack.finished:
        stack.run_epoch()
    results = stack.results()
    for spec in specs:
        alone, stacked = train(spec), results[spec.key]
        assert stacked.checkpoints == alone.checkpoints
        assert stacked.probe["losses"] == pytest.approx(alone.probe["losses"], rel=1e-9)
        for ours, theirs in zip(stacked.curve, alone.curve, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-9)


def test_a_watched_test_is_in_the_curve_and_ends_as_the_last_checkpoint_does():
    plain = [streaming_spec("paper", seed) for seed in (0, 1)]
    fields = [spec.model_dump() for spec in plain]
    length = plain[0].task.lengths[2]
    specs = [make_spec(**f | {"task": f["task"] | {"watched": length}}) for f in fields]
    assert signature(specs[0]) == signature(specs[1]) != signature(plain[0])
    stack = Stack(specs)
    while not stack.finished:
        stack.run_epoch()
    results = stack.results()
    for spec, unwatched in zip(specs, plain, strict=True):
        alone, blind = train(spec), train(unwatched)
        seen = [point.pop("watched_accuracy") for point in alone.curve]
        assert alone.curve == blind.curve, "watching changes nothing"
        assert alone.checkpoints == blind.checkpoints
        last = alone.checkpoints["last"]["tests"][str(length)]["token_accuracy"]
        assert seen[-1] == pytest.approx(last)
        stacked = [point["watched_accuracy"] for point in results[spec.key].curve]
        assert stacked == pytest.approx(seen, rel=1e-9)


def test_a_test_that_is_not_there_cannot_be_watched():
    fields = streaming_spec("paper", 0).model_dump()
    with pytest.raises(RelengthError, match="watched is one of the lengths of the tests"):
        make_spec(**fields | {"task": fields["task"] | {"watched": 7777}})


@pytest.mark.parametrize("optimiser", ["rmsprop", pytest.param("adam", marks=pytest.mark.weekly)])
def test_replicas_that_are_ahead_wait_and_all_resume_as_if_nothing_had_happened(
    tmp_path, optimiser
):
    """Their batches have one length, which belongs to the interval."""
    rules = {"steps": 20, "optimiser": optimiser}
    specs = [streaming_spec("repaired", seed, **rules) for seed in (0, 1)]
    stopped = Stack(specs)
    stopped.run_epoch()
    stopped.save(tmp_path)
    alone = Trainer(specs[1])  # two intervals further than its neighbour
    for _ in range(3):
        alone.run_epoch()
    alone.save(tmp_path / f"{specs[1].key}.pt")
    resumed = Stack(specs)
    resumed.load(tmp_path)
    assert [c.progress.epoch for c in resumed.courses] == [1, 3]
    resumed.run_epoch()
    assert [c.progress.epoch for c in resumed.courses] == [2, 3]
    while not resumed.finished:
        resumed.run_epoch()
    for course in resumed.courses:
        expected = train(course.spec)
        assert len(expected.curve) == 4
        for ours, theirs in zip(course.progress.curve, expected.curve, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-8)


def test_only_runs_whose_batches_have_the_same_shapes_share_a_stack():
    copy, reverse, recall = (
        streaming_spec("paper", 0, f"panm_{name}") for name in ("copy", "reverse", "dynamic_recall")
    )
    fields = copy.model_dump()
    longer = make_spec(**fields | {"task": fields["task"] | {"train_lengths": (1, 5)}})
    flagged = make_spec(**fields | {"task": fields["task"] | {"flags": True}})
    assert signature(copy) == signature(reverse)
    assert len({signature(spec) for spec in (copy, recall, longer, flagged)}) == 4
    lengths = [s.training.lengths(s.task, 3) for s in (copy, reverse, longer)]
    assert lengths[0] == lengths[1] != lengths[2]


# --- optimisers ----------------------------------------------------------------------------------

PAIRS = {
    "adam": (rules.Adam(), torch.optim.Adam, {}),
    "adam with decay": (
        rules.Adam(weight_decay=0.1),
        torch.optim.Adam,
        {"weight_decay": 0.1},
    ),
    "adamw": (rules.AdamW(weight_decay=0.1), torch.optim.AdamW, {"weight_decay": 0.1}),
    "rmsprop": (rules.RMSprop(), torch.optim.RMSprop, {}),
    "rmsprop with another alpha": (
        rules.RMSprop(smoothing=0.95),
        torch.optim.RMSprop,
        {"alpha": 0.95},
    ),
    "rmsprop with momentum": (
        rules.RMSprop(momentum=0.9),
        torch.optim.RMSprop,
        {"momentum": 0.9},
    ),
}
CLIPS = {
    None: lambda parameters: None,
    Clip("norm", 2.0): lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 2.0),
    Clip("value", 1.5): lambda parameters: torch.nn.utils.clip_grad_value_(parameters, 1.5),
}


class Two(torch.nn.Module):
    """Two parameters; the second gets a gradient at every other step only."""

    def __init__(self, weights):
        super().__init__()
        self.first, self.second = (torch.nn.Parameter(w.clone()) for w in weights)


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=10)
@given(seed=st.integers(0, 1000), frozen=st.booleans(), clip=st.sampled_from(list(CLIPS)))
def test_a_run_alone_and_each_replica_is_optimised_as_by_torch(name, seed, frozen, clip):
    """Three replicas with their own rates, clipped like torch clips; the last one may be frozen."""
    ours, theirs, options = PAIRS[name]
    random = torch.Generator().manual_seed(seed)
    start = [
        torch.randn(3, *shape, dtype=torch.float64, generator=random) for shape in ((4, 2), (5,))
    ]
    rates = torch.tensor([1e-1, 1e-3, 1e-2], dtype=torch.float64)
    stacked = [p.clone() for p in start]
    optimiser = optimisers.stacked(ours, stacked)
    active = torch.tensor([True, True, not frozen])
    alone = [[p[r].clone().requires_grad_() for p in start] for r in range(3)]
    their = [theirs(alone[r], lr=float(rates[r]), **options) for r in range(3)]
    single = Two([p[0] for p in start])
    moments = optimisers.Moments.start(single)
    for step in range(6):
        grads = [3 * torch.randn(p.shape, dtype=p.dtype, generator=random) for p in start]
        if step % 2:
            grads[1] = None
        for r in range(3):
            for p, grad in zip(alone[r], grads, strict=True):
                p.grad = None if grad is None else grad[r].clone()
            CLIPS[clip](alone[r])
            if active[r]:
                their[r].step()
        for p, like in zip(single.parameters(), alone[0], strict=True):
            p.grad = None if like.grad is None else like.grad.clone()
        optimisers.move(ours, single, moments, float(rates[0]))
        optimisers.clip_(grads, clip)
        optimiser.update_(grads, rates, active)
    for r in range(3):
        for p, lone in zip(stacked, alone[r], strict=True):
            torch.testing.assert_close(p[r], lone.detach(), rtol=1e-12, atol=1e-12)
    for p, lone in zip(single.parameters(), alone[0], strict=True):
        torch.testing.assert_close(p, lone, rtol=1e-12, atol=1e-12)


def test_what_a_protocol_may_name_is_computed_and_nothing_else():
    assert optimisers.KINDS.keys() == rules.OPTIMISERS.keys()
    assert optimisers.CLIPPING.keys() == set(get_args(get_type_hints(Clip)["by"]))


def test_a_frozen_replica_keeps_its_weights_even_when_its_gradient_is_no_number():
    p = torch.ones(2, 3, dtype=torch.float64)
    optimiser = optimisers.Adam([p])
    grads = [torch.stack([torch.ones(3), torch.full((3,), math.nan)]).double()]
    optimiser.update_(grads, torch.tensor([0.1, 0.1]), torch.tensor([True, False]))
    assert (p[0] < 1).all() and (p[1] == 1).all()
