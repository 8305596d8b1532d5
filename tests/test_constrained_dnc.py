"""The constrained DNC computes what its paper says, as does its fast form, gradients included."""

import numpy as np
import pytest
import torch
from baseline_reference import moved
from numba import njit
from pydantic import ValidationError
from torch.func import functional_call, stack_module_state, vmap

from relength.errors import RelengthError
from relength.kernels import dnc_steps
from relength.kernels.lanes import get, put
from relength.models.memory import dnc_memory
from relength.models.memory.configs import ConstrainedDNCConfig
from relength.models.memory.constrained import ConstrainedDNC
from relength.tasks.batch import ChannelsToChannels

pytestmark = pytest.mark.equality

CHANNELS, OUTPUTS = 2, 3
SMALL = {"hidden_size": 6, "slots": 7, "width": 5, "read_heads": 3}
ROWS = {
    ("lstm", "none"): "STATEFUL-BASELINE",
    ("ffnn", "none"): "STATELESS-BASELINE",
    ("peephole", "compression"): "COMPR",
    ("peephole", "regularisation"): "REG",
    ("peephole", "both"): "COMPR&REG",
    ("peephole", "none"): "Peephole LSTM",
    ("lstm", "compression"): "van. LSTM + COMPR",
    ("lstm", "regularisation"): "van. LSTM + REG",
    ("lstm", "both"): "van. LSTM + COMPR&REG",
}
# One of each computation: a regulariser changes the loss alone.
COMPUTED = [
    ("lstm", "none"), ("lstm", "compression"), ("peephole", "none"), ("peephole", "compression"),
    ("ffnn", "none"),
]  # fmt: skip
GATED = COMPUTED[:-1]


def build(row=("peephole", "compression"), seed=0, noise=0.5, dtype=torch.float64, **sizes):
    """A model in which no parameter is zero, as after some training."""
    config = ConstrainedDNCConfig(controller=row[0], constraint=row[1], **(SMALL | sizes))
    return moved(ConstrainedDNC(config, CHANNELS, OUTPUTS).to(dtype), seed, noise)


def draw(length: int, answers: int, batch: int = 2, seed: int = 0) -> ChannelsToChannels:
    random = np.random.default_rng(seed)
    inputs = torch.from_numpy(random.normal(size=(batch, length, CHANNELS)))
    targets = torch.from_numpy(random.normal(size=(batch, answers, OUTPUTS)))
    lengths = torch.full((2, batch), length)
    lengths[1] = answers
    return ChannelsToChannels(inputs, targets, torch.ones(batch, answers).bool(), *lengths)


def close(ours, expected, tolerance: float = 1e-10) -> None:
    ours, expected = (x.detach().numpy() if torch.is_tensor(x) else x for x in (ours, expected))
    np.testing.assert_allclose(ours, expected, rtol=0, atol=tolerance)


# --- the paper once more: NumPy, one sample, one step, one slot at a time -------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def alike(memory, key, strength):
    """Weighting by content, with both of deepmind/dnc's epsilons."""
    lengths = np.array([np.sqrt(np.sum(word * word) + 1e-6) for word in memory])
    length = np.sqrt(np.sum(key * key) + 1e-6)
    return softmax(np.log1p(np.exp(strength)) * (memory @ key) / (lengths * length + 1e-6))


def memory_step(emitted, state, width, heads):
    """Reads (R, W) of one step, and the memory's state changed in place."""
    sizes = [width] * heads + [1] * heads + [width, 1, width, width] + [1] * (heads + 2)
    *parts, modes = np.split(emitted, np.cumsum(sizes))
    keys, strengths, (key, strength, erase, write) = (
        parts[:heads], parts[heads : 2 * heads], parts[2 * heads : 2 * heads + 4],
    )  # fmt: skip
    free, (allocate, gate) = parts[2 * heads + 4 : -2], parts[-2:]
    slots = len(state["memory"])
    for n in range(slots):
        usage, written = state["usage"][n], state["writing"][n]
        usage = usage + (1 - usage) * written
        for r in range(heads):
            usage *= 1 - sigmoid(free[r][0]) * state["reading"][r, n]
        state["usage"][n] = usage
    raised = 1e-6 + (1 - 1e-6) * state["usage"]
    allocation, product = np.zeros(slots), 1.0
    for n in sorted(range(slots), key=lambda n: (raised[n], n)):
        allocation[n] = (1 - raised[n]) * product
        product *= raised[n]
    found = alike(state["memory"], key, strength)
    share = sigmoid(allocate)
    writing = sigmoid(gate) * (share * allocation + (1 - share) * found)
    for n in range(slots):
        state["memory"][n] *= 1 - writing[n] * sigmoid(erase)
        state["memory"][n] += writing[n] * write
    link, old = np.zeros((slots, slots)), state["link"]
    for i in range(slots):
        for j in range(slots):
            if i != j:
                kept = 1 - writing[i] - writing[j]
                link[i, j] = kept * old[i, j] + writing[i] * state["precedence"][j]
    state["link"], state["writing"] = link, writing
    state["precedence"] = (1 - writing.sum()) * state["precedence"] + writing
    for r in range(heads):
        back, content, on = softmax(modes[3 * r : 3 * r + 3])
        before = state["reading"][r].copy()
        state["reading"][r] = (
            back * (before @ link)
            + content * alike(state["memory"], keys[r], strengths[r])
            + on * (link @ before)
        )
    return state["reading"] @ state["memory"]


def outputs_of(model: ConstrainedDNC, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outputs (S, K) and cell states (S, H) of one sample (S, X)."""
    w = {name: p.detach().numpy() for name, p in model.named_parameters()}
    config, slots = model.config, model.slots
    width, heads, compressed = config.width, config.read_heads, "compr" in config.constraint
    state = {
        "memory": np.zeros((slots, width)), "usage": np.zeros(slots), "writing": np.zeros(slots),
        "precedence": np.zeros(slots), "link": np.zeros((slots, slots)),
        "reading": np.zeros((heads, slots)),
    }  # fmt: skip
    own = {name.removeprefix("core.controller."): p for name, p in w.items()}
    c, h = own.get("first_c"), own.get("first_h")
    reads, outputs, cells = np.zeros(heads * width), [], []
    for x in inputs:
        chi = np.concatenate([x, reads])
        if config.controller == "ffnn":
            for k in range(3):
                chi = own[f"layers.{k}.weight"] @ chi + own[f"layers.{k}.bias"]
                chi = np.tanh(chi) if k < 2 else chi
            h = np.clip(chi, -config.clip, config.clip)
        else:
            seen = np.concatenate([chi, c if config.controller == "peephole" else h])
            i, f, o, g = np.split(own["weight"] @ seen + own["bias"], 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            c = np.tanh(c) if compressed else np.clip(c, -config.clip, config.clip)
            cells.append(c)
        emitted = w["core.to_interface.weight"] @ h + w["core.to_interface.bias"]
        reads = memory_step(emitted, state, width, heads).flatten()
        y = w["output.weight"] @ np.concatenate([h, reads]) + w["output.bias"]
        outputs.append(np.clip(y, -config.clip, config.clip))
    return np.array(outputs), np.array(cells)


@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fast"])
@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: ROWS[row])
def test_outputs_and_cells_are_those_of_the_equations(row, fused):
    """Over more steps than there are slots, and with cells that the clip at 1 touches."""
    for seed, clip in ((0, 20.0), (1, 1.0)):
        model, batch = build(row, seed, clip=clip), draw(11, 4, seed=seed)
        model.fused = fused
        outputs = model(batch)
        states = model.with_states(batch)[1] if row in GATED else None
        for sample in range(2):
            expected, cells = outputs_of(model, batch.inputs[sample].numpy())
            close(outputs[sample], expected[-4:], 1e-9)
            if states is not None:
                close(states[sample], cells, 1e-9)


# --- the fast form --------------------------------------------------------------------------------


def learned(model: ConstrainedDNC, batch: ChannelsToChannels, fused: bool):
    """Outputs, states, and the gradients of a loss that all of them enter."""
    model.fused = fused
    model.zero_grad()
    if model.config.controller == "ffnn":
        outputs, states = model(batch), torch.zeros(1)
    else:
        outputs, states = model.with_states(batch)
    targets = batch.targets.to(outputs.dtype)
    loss = (outputs - targets).square().mean() + states.sin().mean()
    loss.backward()
    return outputs, states, {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("clip", [1.0, 20.0])
@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: ROWS[row])
def test_the_fast_form_has_the_values_and_gradients_of_the_plain_one(row, clip):
    touched = 0
    # Batches that fill no group of eight samples, one, and more than one.
    for seed, length, size in ((0, 1, 3), (1, 4, 8), (2, 12, 17)):
        model, batch = (
            build(row, seed, noise=0.8, clip=clip),
            draw(length, 1 + length // 3, size, seed),
        )
        plain, fast = (learned(model, batch, fused) for fused in (False, True))
        close(fast[0], plain[0])
        close(fast[1], plain[1])
        touched += int((plain[1].abs() == clip).sum())
        for name, grad in plain[2].items():
            close(fast[2][name], grad, 1e-10 * max(1, grad.abs().max().item()))
    assert (touched > 0) == (clip == 1 and row in (("lstm", "none"), ("peephole", "none")))


def test_the_fast_form_holds_in_single_precision_at_the_sizes_of_the_paper():
    for row in COMPUTED:
        sizes = {name: ConstrainedDNCConfig.model_fields[name].default for name in SMALL}
        model, batch = build(row, noise=0, dtype=torch.float32, **sizes), draw(22, 10, 4)
        plain, fast = (learned(model, batch, fused) for fused in (False, True))
        close(fast[0], plain[0], 1e-4)
        close(fast[1], plain[1], 1e-4)
        for name, grad in plain[2].items():
            close(fast[2][name], grad, 1e-3 * grad.abs().max().item())


@njit
def exponentials(numbers, out):
    """exp32 of rows of eight numbers."""
    for k in range(len(numbers)):
        put(out, k, dnc_steps.exp32(get(numbers, k)))


def test_the_exponential_of_vectors_is_as_right_as_it_says_and_bounded():
    for most, error in ((20, 2**-22), (87, 2**-21)):
        numbers = np.linspace(-most, most, 20_000, dtype=np.float32)
        alone = np.array([dnc_steps.exp32(x) for x in numbers])
        together = np.empty((2500, 8), np.float32)
        exponentials(numbers.reshape(2500, 8), together)
        for ours in (alone, together.flatten()):
            np.testing.assert_allclose(ours.astype(float), np.exp(numbers.astype(float)), error)
    assert dnc_steps.exp32(np.float32(1e4)) == pytest.approx(np.exp(88), rel=1e-6, abs=0)
    assert [dnc_steps.exp32(np.float32(x)) for x in (-88, -1e4, -np.inf)] == [0, 0, 0]
    assert np.isnan(dnc_steps.exp32(np.float32(np.nan)))


@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: ROWS[row])
def test_without_gradients_the_fast_form_keeps_no_history_and_gives_the_same(row):
    model = build(row)
    for size, tolerance in ((2, 0), (17, 1e-13)):  # a product of 17 rows is rounded as it lies
        batch = draw(9, 5, size)
        kept = model(batch)
        with torch.no_grad():
            close(model(batch), kept, tolerance)
        assert kept.requires_grad
        close(model.generate(batch, 99)[0], kept, tolerance)


@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: ROWS[row])
def test_the_fast_form_goes_back_once_and_with_the_weights_that_it_came_with(row):
    model = build(row)
    loss = model(draw(5, 2)).square().sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()
    loss = model(draw(5, 2)).square().sum()
    with torch.no_grad():
        next(model.core.controller.parameters()).mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_only_the_states_may_enter_a_loss_and_only_the_outputs():
    batch = draw(5, 2)
    for chosen in (0, 1):
        grads = []
        for fused in (False, True):
            model = build()
            model.fused = fused
            model.with_states(batch)[chosen].square().sum().backward()
            grads.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
        assert grads[0].keys() == grads[1].keys()
        for name, grad in grads[0].items():
            close(grads[1][name], grad)


def test_inputs_get_a_gradient_too():
    grads = []
    for row in COMPUTED:
        for fused in (False, True):
            model, batch = build(row), draw(5, 2)
            model.fused = fused
            batch.inputs.requires_grad_()
            model(batch).square().sum().backward()
            grads.append(batch.inputs.grad)
        close(*grads[-2:])


@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: ROWS[row])
def test_gradients_are_slopes_if_usage_is_held(row, monkeypatch):
    """No gradient goes from usage to write weightings, so they are held there to measure slopes."""
    model, batch = build(row, seed=3), draw(6, 3, seed=3)
    model.fused = False
    plain, held = dnc_memory.usage_vector, []

    def usage(before, writing, kept):
        held.append(writing.detach())
        return plain(before, writing, kept)

    monkeypatch.setattr(dnc_memory, "usage_vector", usage)
    _, _, grads = learned(model, batch, fused=False)
    written = list(held)
    monkeypatch.setattr(dnc_memory, "usage_vector", lambda u, _, kept: plain(u, held.pop(0), kept))

    def loss() -> float:
        held[:] = written
        outputs = model(batch) if row[0] == "ffnn" else model.with_states(batch)[0]
        held[:] = written
        states = torch.zeros(1) if row[0] == "ffnn" else model.with_states(batch)[1]
        return float((outputs - batch.targets).square().mean() + states.sin().mean())

    fast = learned(model, batch, fused=True)[2]
    random, model.fused = torch.Generator().manual_seed(0), False
    for name, parameter in model.named_parameters():
        way = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
        sides = []
        for step in (1e-5, -2e-5):
            with torch.no_grad():
                parameter.add_(way, alpha=step)
                sides.append(loss())
        with torch.no_grad():
            parameter.add_(way, alpha=1e-5)
        slope = (sides[0] - sides[1]) / 2e-5
        for gradient in (grads[name], fast[name]):
            assert (gradient * way).sum().item() == pytest.approx(slope, rel=1e-5, abs=1e-8), name


# --- what is said of its memory and its states ----------------------------------------------------


def test_weightings_usage_and_links_are_what_the_nature_paper_says():
    for seed in range(5):
        model, batch = build(seed=seed, noise=1.5), draw(15, 1, seed=seed)
        trace = model.trace_memory(batch)
        assert ((trace["usage"] >= 0) & (trace["usage"] <= 1 + 1e-12)).all()
        for name in ("write_weightings", "read_weightings"):
            assert (trace[name] >= 0).all() and (trace[name].sum(-1) <= 1 + 1e-12).all()
        close(trace["read_modes"].sum(-1), np.ones((2, 15, 3)))
        state = model.core.start(2, model.slots)
        for x in batch.inputs.unbind(1):
            _, state = model.core.step(x, state, fused=False)
            link = state.memory.link
            assert not link.diagonal(dim1=1, dim2=2).any() and (link >= -1e-12).all()
            assert (link.sum(1) <= 1 + 1e-12).all() and (link.sum(2) <= 1 + 1e-12).all()


def test_usage_teaches_the_write_weighting_in_the_equations_and_not_here():
    size = dnc_memory.interface_size(5, 3)
    for rules in (dnc_memory.DEEPMIND, dnc_memory.EQUATIONS):
        emitted = torch.randn(2, 1, size, dtype=torch.float64, requires_grad=True)
        state = dnc_memory.empty(emitted, 1, 7, 5, 3)
        for vector in emitted:
            orders = dnc_memory.interface(dnc_memory.split(vector, 5, 3), rules)
            orders = orders._replace(free_gates=torch.zeros_like(orders.free_gates))
            _, state = dnc_memory.access(orders, state, rules=rules)
        state.usage.sum().backward()
        assert bool(emitted.grad[0].any()) == rules.usage_learns


def test_strengths_are_softplus_alone():
    model = build()
    h = torch.zeros(1, 6, dtype=torch.float64)
    raw = dnc_memory.split(model.core.to_interface(h), 5, 3)
    orders = model.core.interface(h)
    close(orders.read_strengths, torch.log1p(raw.read_strengths.exp()))
    close(orders.write_strength, torch.log1p(raw.write_strength.exp()))


@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: ROWS[row])
def test_traces_are_of_the_same_pass(row):
    model, batch = build(row), draw(8, 3)
    trace = model.trace_memory(batch)
    close(trace["outputs"][:, -3:], model(batch))
    assert trace["allocation_gates"].shape == (2, 8) and trace["usage"].shape == (2, 8, 7)
    if row[0] == "ffnn":
        assert "cells" not in trace
        return
    states = model.with_states(batch)[1]
    close(trace["cells"].tanh() if row[1] == "compression" else trace["cells"], states)
    if row[1] == "compression":
        assert (states.abs() < 1).all() and (trace["cells"].abs() > 1).any()


def test_a_peephole_lstm_leads_nothing_but_its_cell_state_on():
    controller, x = build().core.controller, torch.ones(1, 17, dtype=torch.float64)
    _, state = controller.step(x, controller.start(1))
    other = state._replace(h=state.h + 1)
    assert torch.equal(controller.step(x, state)[0], controller.step(x, other)[0])
    assert controller.first_h is None


# --- a larger memory, many runs at once, first weights, errors ------------------------------------


@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fast"])
def test_a_larger_memory_computes_the_same_equations(fused):
    model, batch = build(), draw(12, 3)
    model.fused = fused
    before = model(batch)
    model.enlarge(17)
    close(model(batch)[0], outputs_of(model, batch.inputs[0].numpy())[0][-3:], 1e-9)
    assert not torch.allclose(model(batch), before)
    with pytest.raises(RelengthError, match="trained with 7 slots"):
        model.enlarge(6)


@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: ROWS[row])
def test_many_runs_at_once_are_the_runs_alone(row):
    models = [build(row, seed) for seed in range(3)]
    for model in models:
        model.fused = False
    batch, (weights, _) = draw(5, 2), stack_module_state(models)
    stateless = row[0] == "ffnn"

    class Pair(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, batch):
            return (self.model(batch),) if stateless else self.model.with_states(batch)

    def one(own):
        own = {f"model.{name}": weight for name, weight in own.items()}
        return functional_call(Pair(models[0]), own, (batch,))

    together = vmap(one)(weights)
    for k, model in enumerate(models):
        for ours, theirs in zip(together, Pair(model)(batch), strict=True):
            close(ours[k], theirs, 1e-12)


def test_first_weights_are_drawn_as_the_paper_says():
    model = ConstrainedDNC(ConstrainedDNCConfig(controller="lstm", constraint="none"), 2, 2)
    model.initialise(0)
    fans = {"core.controller.weight": 2 + 64 + 128, "core.to_interface.weight": 128}
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif name in fans:
            assert parameter.std().item() == pytest.approx(fans[name] ** -0.5, rel=0.02)
            assert parameter.mean().item() == pytest.approx(0, abs=3e-3)
    for first in (model.core.controller.first_c, model.core.controller.first_h):
        assert first.std().item() == pytest.approx(1, rel=0.2) and first.requires_grad
    model = ConstrainedDNC(ConstrainedDNCConfig(controller="ffnn", constraint="none"), 2, 2)
    layers = model.initialise(0).core.controller.layers
    assert len(layers) == 3
    for layer, fan in zip(layers, (66 + 128, 256, 256), strict=True):
        bound = (6 / fan) ** 0.5
        assert bound * 0.99 < layer.weight.abs().max() < bound and not layer.bias.any()


def test_sizes_and_rows_are_the_papers():
    for (controller, constraint), row in ROWS.items():
        config = ConstrainedDNCConfig(controller=controller, constraint=constraint)
        assert config.row(config.model_dump()) == row
        model = ConstrainedDNC(config, 2, 2)
        assert model.regularised == ("REG" in row)
        assert model.core.to_interface.weight.shape == (135, 128)
    with pytest.raises(ValidationError, match="no states to constrain"):
        ConstrainedDNCConfig(controller="ffnn", constraint="both")


def test_what_cannot_be_asked_for_is_said():
    with pytest.raises(RelengthError, match="no cell states"):
        build(("ffnn", "none")).with_states(draw(4, 2))
    with pytest.raises(RelengthError, match="has no 5 outputs"):
        build()(draw(4, 5))
