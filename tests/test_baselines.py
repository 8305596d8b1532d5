"""Facts about all eleven baselines of PANM, in every reading."""

import doctest
import importlib

import numpy as np
import pytest
import torch
from baseline_reference import (
    CHANNELS,
    CLASSES,
    READINGS,
    SIZES,
    TWO_ARMED,
    build,
    sources,
)
from pydantic import ValidationError
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

from relength.kernels.hashing import step_key
from relength.models import MODELS
from relength.models.free_running import FreeRunning
from relength.streams import dropout_key
from relength.tasks.batch import ChannelsToClasses
from relength.tasks.losses import cross_entropy

every_reading = pytest.mark.parametrize(("name", "arm"), READINGS)
FILES = (
    *("addressing", "baselines.content_attention", "baselines.location_attention"),
    *("baselines.lstm", "baselines.pointer_network", "baselines.transformer"),
    *("memory.dnc", "memory.dnc_memory", "memory.esbn", "memory.machine", "memory.neural_stack"),
    *("memory.nram", "memory.nram_modules", "memory.ntm"),
)


def batch_of(inputs: torch.Tensor, steps: int, seed: int = 0) -> ChannelsToClasses:
    """Inputs (B, S, C) with targets (B, steps)."""
    n, length, _ = inputs.shape
    targets = torch.from_numpy(np.random.default_rng(seed).integers(CLASSES, size=(n, steps)))
    lengths = (torch.full((n,), length), torch.full((n,), steps))
    return ChannelsToClasses(inputs, targets, torch.ones(n, steps, dtype=torch.bool), *lengths)


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("file", FILES)
def test_worked_examples_in_docstrings_are_true(file):
    assert doctest.testmod(importlib.import_module(f"relength.models.{file}")).failed == 0


@every_reading
@pytest.mark.parametrize(("length", "steps"), [(1, 1), (1, 3), (4, 1), (5, 5), (9, 6)])
def test_every_token_has_a_score_for_every_class_at_any_length(name, arm, length, steps):
    scores = build(name, arm).decode(sources(3, length), steps, None)
    assert scores.shape == (3, steps, CLASSES)
    assert scores.isfinite().all()


@every_reading
def test_a_sample_does_not_depend_on_its_neighbours(name, arm):
    model, inputs = build(name, arm), sources(4, 5)
    together = model.decode(inputs, 4, None)
    for row in range(4):
        alone = model.decode(inputs[row : row + 1], 4, None)
        torch.testing.assert_close(together[row : row + 1], alone, rtol=1e-10, atol=1e-12)


# The Transformer sees all places of the answer at once.
@pytest.mark.parametrize(("name", "arm"), [r for r in READINGS if r[0] != "Transformer"])
def test_what_is_written_first_does_not_depend_on_how_much_follows(name, arm):
    model, inputs = build(name, arm), sources(2, 5)
    torch.testing.assert_close(
        model.decode(inputs, 6, None)[:, :3], model.decode(inputs, 3, None), rtol=0, atol=1e-12
    )


@every_reading
def test_every_part_of_the_source_can_change_the_answer(name, arm):
    model, inputs = build(name, arm), sources(1, 4).requires_grad_()
    model.decode(inputs, 3, None).square().sum().backward()
    assert (inputs.grad.abs().sum(2) > 0).all()


@every_reading
def test_no_weight_is_idle(name, arm):
    model = build(name, arm)
    batch = batch_of(sources(4, 5), 5)
    cross_entropy(model(batch), batch).backward()
    idle = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert idle == []


@every_reading
def test_gradients_are_those_of_finite_differences(name, arm):
    model = build(name, arm, seed=1)
    names, values = zip(*model.named_parameters(), strict=True)

    def decode(inputs, *values):
        weights = dict(zip(names, values, strict=True))
        return functional_call(model, weights, (batch_of(inputs, 3),))

    # Inside the simplex: the logarithm of a symbol that PtrNet cannot point at has a kink there.
    inputs = (sources(2, 4) + 0.1).requires_grad_()
    assert torch.autograd.gradcheck(decode, (inputs, *values), fast_mode=True, atol=1e-6)


@pytest.mark.equality
@every_reading
@pytest.mark.parametrize("step", [None, 7])
def test_a_stack_of_three_has_the_losses_and_gradients_of_lone_models(name, arm, step):
    """Batched by vmap, as relength.training.stack does it; with and without dropout."""
    replicas = [build(name, arm, seed) for seed in range(3)]
    batches = [batch_of(sources(4, 5, seed), 5, seed) for seed in range(3)]
    keys = torch.tensor([dropout_key(seed, "encodings") for seed in range(3)], dtype=torch.int32)
    keys = None if step is None else step_key(keys, step)
    states = [model.state_dict() for model in replicas]
    stacked = {n: torch.stack([state[n] for state in states]) for n in states[0]}
    lone = build(name, arm)
    lone.fused = False

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = lone

        def forward(self, batch, key):
            return cross_entropy(self.model(batch, key), batch)

    def loss_of(weights, key, inputs, targets):
        mask = torch.ones_like(targets, dtype=torch.bool)
        batch = ChannelsToClasses(inputs, targets, mask, None, None)
        weights = {f"model.{n}": w for n, w in weights.items()}
        return functional_call(Loss(), weights, (batch, key))

    arguments = (
        torch.stack([b.inputs for b in batches]),
        torch.stack([b.targets for b in batches]),
    )
    grads, losses = vmap(grad_and_value(loss_of), in_dims=(0, None if keys is None else 0, 0, 0))(
        stacked, keys, *arguments
    )
    for r, model in enumerate(replicas):
        loss = cross_entropy(model(batches[r], None if keys is None else keys[r]), batches[r])
        loss.backward()
        assert abs(losses[r].item() - loss.item()) < 1e-12
        for parameter, value in model.named_parameters():
            torch.testing.assert_close(grads[parameter][r], value.grad, rtol=0, atol=1e-12)


@pytest.mark.equality
@every_reading
def test_the_fast_way_has_the_values_and_gradients_of_the_readable_one(name, arm):
    batch, results = batch_of(sources(3, 6), 5), []
    for fused in (True, False):
        model = build(name, arm)
        model.fused = fused
        loss = cross_entropy(model(batch), batch)
        loss.backward()
        results.append((loss.item(), torch.cat([p.grad.flatten() for p in model.parameters()])))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-12)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=0, atol=1e-12)


@pytest.mark.equality
@every_reading
def test_the_fast_way_is_the_readable_one_up_to_rounding_at_real_sizes_in_float32(name, arm):
    found = MODELS[name]
    inputs = sources(32, 5).float()
    scores = []
    for fused in (True, False):
        model = found.module(found.config(arm=arm), CHANNELS, CLASSES).initialise(0)
        model.fused = fused
        with torch.no_grad():
            scores.append(model.decode(inputs, 5, None))
    torch.testing.assert_close(*scores, rtol=1e-3, atol=1e-4)


# --- first weights --------------------------------------------------------------------------------

# Parameters that start at a constant, whatever the seed.
CONSTANT = ("norm_attention", "norm_forward", "scale", "offset", "gain", "bias")


@every_reading
def test_first_weights_belong_to_the_seed(name, arm):
    found = MODELS[name]

    def first(seed):
        model = found.module(found.config(**SIZES[name], arm=arm), CHANNELS, CLASSES)
        with torch.no_grad():
            for parameter, value in model.named_parameters():
                if not parameter.split(".")[-2:][0].startswith(CONSTANT):
                    value.fill_(torch.nan)  # whatever is not drawn will show
        return dict(model.initialise(seed).named_parameters())

    one, again, other = first(1), first(1), first(2)
    for parameter, value in one.items():
        assert value.isfinite().all(), parameter
        assert torch.equal(value, again[parameter])
        constant = (value == value.flatten()[0]).all()
        assert constant or not torch.equal(value, other[parameter]), parameter


@every_reading
def test_a_state_dict_has_parameters_only(name, arm):
    # Whatever else it had would be trained as one in a stack.
    model = build(name, arm)
    assert set(model.state_dict()) == {n for n, _ in model.named_parameters()}


# --- sizes ----------------------------------------------------------------------------------------


def size_of(name: str, arm: str, channels: int) -> int:
    found = MODELS[name]
    return parameters(found.module(found.config(arm=arm), channels, 10))


def test_sizes_are_those_of_the_released_code_with_its_two_flag_channels():
    assert size_of("LSTM", "released", 12) == 1_083_402
    assert size_of("Transformer", "released", 12) == 1_060_106
    # 6.3 million with two embeddings of symbols that are not used, and the decoder's input weights
    # for a previous token that is always zero.
    unused = 512 * 512 + 10 * 512
    multiply_zero = 3 * 512 * 512
    assert size_of("Content Attention", "released", 12) + unused + multiply_zero == 6_323_722


@pytest.mark.parametrize(
    ("name", "arm", "millions"),
    [
        ("NTM", "released", 1.2),
        ("DNC", "released", 1.2),
        ("Neural Stack", "paper", 1.1),
        ("NRAM", "paper", 1.1),
    ],
)
def test_machines_are_as_large_as_the_paper_says(name, arm, millions):
    assert round(size_of(name, arm, 12) / 1e6, 1) == millions


def test_the_default_sizes_of_esbn_are_not_the_stated_million_and_a_fifth():
    assert round(size_of("ESBN", "paper", 12) / 1e6, 2) == 1.75


def test_512_units_give_attention_models_the_size_that_the_paper_states():
    # "around 1-3 millions"
    for name in ("Location Attention", "Content Attention", "PtrNet", "Transformer"):
        assert 1e6 < size_of(name, "paper", 12) < 3e6


@pytest.mark.parametrize("name", ["NTM", "DNC"])
def test_256_units_do_not_give_the_stated_million_parameters(name):
    assert size_of(name, "paper", 12) < 0.4e6


def test_sizes_of_the_arms_are_those_of_text_and_code():
    sizes = {
        (n, a): MODELS[n].config(arm=a).hidden_size
        for n in TWO_ARMED
        for a in ("paper", "released")
    }
    assert sizes == {
        ("Content Attention", "paper"): 512,
        ("Content Attention", "released"): 512,
        ("Transformer", "paper"): 512,
        ("Transformer", "released"): 256,
        ("NTM", "paper"): 256,
        ("NTM", "released"): 512,
        ("DNC", "paper"): 256,
        ("DNC", "released"): 512,
    }


# --- configs --------------------------------------------------------------------------------------


@every_reading
def test_a_config_names_its_model_and_survives_json(name, arm):
    found = MODELS[name]
    config = found.config
    fields = config(arm=arm)
    assert fields.name == name and issubclass(found.module, FreeRunning)
    assert config.model_validate_json(fields.model_dump_json()) == fields


@pytest.mark.parametrize("name", SIZES)
def test_impossible_sizes_are_refused(name):
    with pytest.raises(ValidationError, match="hidden_size"):
        MODELS[name].config(hidden_size=0)
    with pytest.raises(ValidationError, match="arm"):
        MODELS[name].config(arm="best")
