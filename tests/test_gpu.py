"""Facts that only a GPU can show; each has a twin on the CPU in test_stack.py or test_run.py."""

import pytest
import torch
from test_stack import STREAMING, assert_equal_runs, finished, run_spec, streaming_spec

from relength.papers.mla.experiments import MODELS, TWO_ARMED
from relength.runs.execute import Job, execute
from relength.runs.run import run_or_load
from relength.specs.spec import make_spec
from relength.training import Stack, train

pytestmark = pytest.mark.gpu

ARMS = [(name, "released") for name in MODELS] + [(name, "paper") for name in TWO_ARMED]


def assert_same_steps(specs):
    """In double precision, where rounding leaves no room for a wrong graph."""
    eager, captured = (Stack(specs, "cuda", graphs=graphs) for graphs in (False, True))
    for stack in (eager, captured):
        stack.run_steps()
    assert captured.captured.captured
    torch.testing.assert_close(captured.loss_sum, eager.loss_sum, rtol=1e-10, atol=1e-10)
    for name, weight in eager.params.items():
        torch.testing.assert_close(captured.params[name], weight, rtol=0, atol=1e-10)
    for ours, theirs in zip(captured.evaluate(), eager.evaluate(), strict=True):
        assert ours.dev == pytest.approx(theirs.dev, rel=1e-9)


@pytest.mark.parametrize(("model", "arm"), ARMS)
def test_captured_steps_are_the_eager_steps(tiny, model, arm):
    assert_same_steps([tiny("recopy", model, arm, seed=s, precision="float64") for s in range(3)])


@pytest.mark.parametrize("model", STREAMING, ids=lambda m: f"{m['name']}-{m['arm']}")
def test_captured_steps_on_fresh_samples_are_the_eager_steps(model):
    """This holds for PANM and all its baselines."""
    assert_same_steps([streaming_spec(model, seed, "panm_id_sort") for seed in range(3)])


@pytest.mark.parametrize(("model", "arm"), ARMS)
def test_a_gpu_trains_the_run_that_a_cpu_trains(tiny, model, arm):
    """In double precision, where the first steps leave no room for chaos."""
    specs = [tiny("copy", model, arm, seed=seed, precision="float64", epochs=1) for seed in (0, 1)]
    stack = Stack(specs, "cuda")
    stack.run_epoch()
    for course, spec in zip(stack.courses, specs, strict=True):
        alone = train(spec)
        assert course.progress.probe["losses"] == pytest.approx(alone.probe["losses"], rel=1e-6)


@pytest.mark.parametrize("resumed", [False, True], ids=["uninterrupted", "resumed"])
@pytest.mark.parametrize("fresh", [False, True], ids=["fixed samples", "fresh samples"])
def test_whole_runs_with_graphs_are_those_without(fresh, resumed, tmp_path):
    """Also when they were saved, and go on in other tensors than those of the first graphs."""
    specs = [streaming_spec("repaired", s) if fresh else run_spec("Content", s) for s in (0, 1)]
    captured = finished(specs, True, tmp_path if resumed else None, "cuda")
    assert_equal_runs(captured, finished(specs, False, place="cuda"))


def test_a_replica_that_diverges_in_a_graph_fails_alone():
    good, bad = run_spec("Content", 0), run_spec("Content", 1, learning_rate=1e200)
    together, alone = (
        finished([good, bad], True, place="cuda"),
        finished([good], True, place="cuda"),
    )
    assert list(together.failures) == [bad.key]
    together.courses = together.courses[:1]
    assert_equal_runs(together, alone)


def test_several_stacks_at_once_are_recorded_with_their_device(tiny, table_2, store):
    models = ("Content", "Relative")
    specs = [tiny("copy", model, epochs=1, seed=s) for model in models for s in range(3)]
    records = run_or_load(specs, store, table_2, train=True, device="cuda", workers=2)
    assert len(records) == 6
    assert {r["provenance"]["device"] for r in records} == {"cuda"}
    assert all(r["cost"]["stacked"] == 3 for r in records)


def test_four_workers_that_capture_several_shapes_each_train_what_a_cpu_trains(
    tiny, table_2, store
):
    """Three jobs for each of them, so that graphs are dropped while others are at work."""
    specs = [
        tiny(task, model, seed=seed, precision="float64", epochs=2, batch_size=4)
        for model in ("Content", "Relative", "LocAttn", "Bi-Relative")
        for task in ("copy", "recopy", "inv_recopy")
        for seed in range(2)
    ]
    options = {"train": True, "device": "cuda", "workers": 4, "stack": 2}
    records = {r["key"]: r for r in run_or_load(specs, store, table_2, **options)}
    assert records.keys() == {spec.key for spec in specs}
    for spec in specs[::6]:
        losses = train(spec).probe["losses"]
        assert records[spec.key]["first_losses"] == pytest.approx(losses, rel=1e-4)


def test_a_stack_that_does_not_fit_into_the_memory_is_split(tmp_path):
    specs = [
        make_spec(
            task={
                "name": "recopy",
                "train_size": 256,
                "dev_size": 8,
                "test_size": 8,
                "validation_size": 8,
            },
            model={"name": "Content", "embedding_size": 64, "hidden_size": 64},
            training={"name": "epochs", "epochs": 1, "batch_size": 64},
            scale="smoke",
            seed=seed,
        )
        for seed in range(32)
    ]

    def trained(specs):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return execute(Job(tuple(specs), "mla_table2", "cuda", tmp_path))

    trained(specs[:8])
    enough = torch.cuda.max_memory_reserved()
    trained(specs)
    too_much = torch.cuda.max_memory_reserved()
    assert too_much > 2 * enough
    room = (enough + too_much) / 2 / torch.cuda.get_device_properties(0).total_memory
    try:
        torch.cuda.set_per_process_memory_fraction(room)
        records = trained(specs)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert [record["status"] for record in records] == ["ok"] * 32
    assert max(record["cost"]["stacked"] for record in records) < 32
