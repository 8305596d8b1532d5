"""What only a GPU can show; each fact has a twin on the CPU in test_stack.py or test_run.py."""

import pytest
import torch

from relength.engine import Stack, train
from relength.papers.mla import MODELS, TWO_ARMED
from relength.run import run_or_load
from relength.spec import make_spec

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"),
]

ARMS = [(name, "released") for name in MODELS] + [(name, "paper") for name in TWO_ARMED]


@pytest.mark.parametrize(("model", "arm"), ARMS)
def test_captured_steps_are_the_eager_steps(tiny, model, arm):
    specs = [tiny("recopy", model, arm, seed=seed) for seed in range(3)]
    stacks = [Stack(specs, "cuda", graphs=graphs) for graphs in (False, True)]
    for stack in stacks:
        stack.run_steps()
    eager, captured = stacks
    torch.testing.assert_close(captured.loss_sum, eager.loss_sum, rtol=1e-4, atol=1e-5)
    for name, weight in eager.params.items():
        torch.testing.assert_close(captured.params[name], weight, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize(("model", "arm"), ARMS)
def test_a_gpu_trains_the_run_that_a_cpu_trains(tiny, model, arm):
    """In double precision, where the first steps leave no room for chaos."""
    specs = [tiny("copy", model, arm, seed=seed, precision="float64", epochs=1) for seed in (0, 1)]
    stack = Stack(specs, "cuda")
    stack.run_epoch()
    for course, spec in zip(stack.courses, specs, strict=True):
        alone = train(spec)
        assert course.progress.probe["losses"] == pytest.approx(alone.probe["losses"], rel=1e-6)


@pytest.mark.parametrize("arm", ["paper", "repaired", "released", "mended"])
def test_captured_steps_on_fresh_samples_are_the_eager_steps(arm):
    specs = [
        make_spec(
            task={"name": "panm_copy", "train_lengths": (1, 4), "lengths": (4, 5, 7)},
            model={"name": "PANM", "arm": arm, "hidden_size": 8, "bits": 4},
            training={"steps": 20, "validate_every": 20, "batch_size": 4},
            scale="smoke",
            seed=seed,
        )
        for seed in range(3)
    ]
    eager, captured = (Stack(specs, "cuda", graphs=graphs) for graphs in (False, True))
    for stack in (eager, captured):
        stack.run_steps()
    torch.testing.assert_close(captured.loss_sum, eager.loss_sum, rtol=1e-4, atol=1e-5)
    for name, weight in eager.params.items():
        torch.testing.assert_close(captured.params[name], weight, rtol=1e-2, atol=1e-4)


def test_several_stacks_at_once_are_recorded_with_their_device(tiny, table_2, store):
    specs = [tiny(task, epochs=1, seed=s) for task in ("copy", "recopy") for s in range(3)]
    records = run_or_load(specs, store, table_2, train=True, device="cuda", workers=2)
    assert len(records) == 6
    assert {r["provenance"]["device"] for r in records} == {"cuda"}
    assert all(r["cost"]["stacked"] == 3 for r in records)
