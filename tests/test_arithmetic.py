"""The precision policy of a spec: part of its key, applied in training, refused where unknown."""

import threading

import pytest
import torch

from relength.errors import RelengthError
from relength.models.seq2seq.attention import lay_out
from relength.runs.run import run_or_load
from relength.specs.spec import RunSpec
from relength.training import Stack, arithmetic, train
from relength.training.alone import Trainer

POLICIES = ["tf32", "bfloat16"]


def test_the_policy_is_part_of_the_key_and_old_records_had_none(tiny):
    exact = tiny()
    assert exact.training.products == "exact"
    assert "products" not in exact.canonical()["training"]
    assert len({exact.key, *(tiny(products=policy).key for policy in POLICIES)}) == 3
    fields = exact.model_dump(mode="json")
    del fields["training"]["products"]
    assert RunSpec.recorded(fields) == exact


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_needs_single_precision(tiny, policy):
    with pytest.raises(RelengthError, match=f"products in {policy} make no sense with .*float64"):
        tiny(products=policy, precision="float64")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_cpu_refuses_what_it_does_not_have_before_anything_is_trained(
    tiny, table_2, store, policy
):
    spec = tiny(products=policy)
    match = f"Matrix products in {policy} need a GPU.*--device cuda"
    for trained in (lambda: train(spec), lambda: Trainer(spec), lambda: Stack([spec])):
        with pytest.raises(RelengthError, match=match):
            trained()
    with pytest.raises(RelengthError, match=match):
        run_or_load([tiny(), spec], store, table_2, train=True, workers=1)
    assert not store.path.exists()


@pytest.fixture
def everywhere(monkeypatch):
    """Lets a CPU pass for a device with all policies."""
    monkeypatch.setattr(arithmetic, "check", lambda *_: None)


def inside(training) -> tuple[str, bool]:
    with arithmetic.policy(training, "cpu"):
        return torch.get_float32_matmul_precision(), torch.is_autocast_enabled("cpu")


def test_a_policy_holds_inside_its_context_and_nowhere_else(tiny, everywhere):
    seen = {p: inside(tiny(products=p).training) for p in ("exact", *POLICIES)}
    assert seen == {
        "exact": ("highest", False),
        "tf32": ("high", False),
        "bfloat16": ("highest", True),
    }
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.is_autocast_enabled("cpu")


def test_runs_of_two_policies_take_turns_in_one_process(tiny, everywhere):
    """PyTorch's setting is one for the process: whoever relies on another one has to wait."""
    exact, tf32 = tiny().training, tiny(products="tf32").training
    done: list[str] = []
    with arithmetic.policy(exact, "cpu"):
        other = threading.Thread(target=lambda: done.append(inside(tf32)[0]))
        same = threading.Thread(target=lambda: done.append(inside(exact)[0]))
        other.start()
        same.start()
        same.join(30)
        assert done == ["highest"], "runs of one policy do not wait for each other"
    other.join(30)
    assert done == ["highest", "high"]


@pytest.mark.parametrize(
    "model",
    [
        "Content",
        "OneStepAttn",
        *(
            pytest.param(name, marks=pytest.mark.weekly)
            for name in ("Relative", "Bi-Relative", "LocAttn", "MonoAttn")
        ),
    ],
)
def test_models_train_in_stacks_with_products_in_bfloat16(tiny, everywhere, model):
    specs = [tiny("recopy", model, seed=seed) for seed in range(2)]
    losses = []
    for policy in ("exact", "bfloat16"):
        with arithmetic.policy(tiny(products=policy).training, "cpu"):
            stack = Stack(specs)
            stack.run_steps()
            assert all(weight.dtype == torch.float32 for weight in stack.params.values())
            losses.append(stack.loss_sum)
    exact, rounded = losses
    assert not torch.equal(exact, rounded)
    torch.testing.assert_close(rounded, exact, rtol=0.02, atol=0)


def test_positions_are_exact_when_products_are_in_bfloat16():
    """bfloat16 can tell apart about half of 100 places; the lengths are no product."""
    encodings, lengths = torch.zeros(1, 100, 4, dtype=torch.bfloat16), torch.tensor([100])
    memory = lay_out(encodings, lengths)
    exact = lay_out(encodings.float(), lengths)
    for name in ("position", "step", "length"):
        assert getattr(memory, name).dtype == torch.float32
        assert torch.equal(getattr(memory, name), getattr(exact, name))
    assert lay_out(encodings.double(), lengths).position.dtype == torch.float64


@pytest.mark.gpu
@pytest.mark.parametrize("policy", POLICIES)
def test_a_gpu_trains_by_every_policy_with_graphs_and_without(tiny, policy):
    specs = [tiny("recopy", seed=seed, products=policy) for seed in range(3)]
    with arithmetic.policy(specs[0].training, "cuda"):
        stacks = [Stack(specs, "cuda", graphs=graphs) for graphs in (False, True)]
        for stack in stacks:
            stack.run_steps()
    eager, captured = stacks
    torch.testing.assert_close(captured.loss_sum, eager.loss_sum, rtol=1e-2, atol=1e-3)
    exact = Stack([tiny("recopy", seed=seed) for seed in range(3)], "cuda")
    exact.run_steps()
    torch.testing.assert_close(captured.loss_sum, exact.loss_sum, rtol=0.05, atol=0)
