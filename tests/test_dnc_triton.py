"""The Triton kernels of a DNC's memory, gates and orders compute the equations, gradients included.

On a GPU where there is one, else in Triton's interpreter.
"""

import os

import pytest
import torch
from torch.func import grad, vmap

from relength.errors import RelengthError
from relength.kernels import late
from relength.models.memory import dnc_memory as equations
from relength.models.memory.constrained import Cells, GatedController
from relength.runs.executors import check_device
from relength.specs.experiments import experiment
from relength.training import Stack

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # the kernels ask for it when they are imported

pytestmark = [pytest.mark.gpu] if DEVICE == "cuda" else []
needs_triton = pytest.mark.skipif(
    late.find_spec("triton") is None, reason="Triton is not installed: `make test-all` installs it"
)
RULES = {"equations": equations.EQUATIONS, "deepmind": equations.DEEPMIND}
SIZES = [(7, 5, 3), (33, 16, 1), (50, 16, 4)]


def random(*shape: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(DEVICE)


def after(steps: int, slots: int, width: int, heads: int, rules, batch: int = 2):
    """The memory after steps with random orders."""
    state = equations.empty(random(1, seed=0), batch, slots, width, heads)
    for t in range(steps):
        raw = 2 * random(batch, equations.interface_size(width, heads), seed=10 + t)
        orders = equations.orders_of(raw, width, heads, rules)
        _, state = equations.access(orders, state, rules=rules)
    return state


def step(raw: torch.Tensor, state, width: int, heads: int, rules) -> list[torch.Tensor]:
    orders = equations.orders_of(raw, width, heads, rules)
    reads, new = equations.access(orders, equations.MemoryState(*state), rules=rules)
    return [reads, *new]


@pytest.fixture
def asked(monkeypatch):
    monkeypatch.setenv("RELENGTH_TRITON", "1")


@needs_triton
@pytest.mark.equality
@pytest.mark.parametrize("steps", [0, 4])
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize(("slots", "width", "heads"), SIZES)
def test_values_and_gradients_are_those_of_the_equations(
    slots, width, heads, rules, steps, monkeypatch
):
    """Also of an empty memory, in which all slots are equally used."""
    sizes = width, heads, rules
    raw = random(2, equations.interface_size(width, heads), seed=1)
    inputs = [raw, *after(steps, slots, *sizes)]
    found = []
    for asked in ("0", "1"):
        monkeypatch.setenv("RELENGTH_TRITON", asked)
        given = [x.clone().requires_grad_() for x in inputs]
        outputs = step(given[0], given[1:], *sizes)
        weights = [random(*x.shape, seed=k) for k, x in enumerate(outputs)]
        grads = torch.autograd.grad(outputs, given, weights, allow_unused=True)
        found.append(
            [*outputs, *(0 * x if g is None else g for g, x in zip(grads, given, strict=True))]
        )
    for plain, kernel in zip(*found, strict=True):
        torch.testing.assert_close(kernel, plain, rtol=1e-12, atol=1e-12)


@needs_triton
@pytest.mark.equality
@pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # σ(-100) is 1 / (1 + ∞), 0
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_strengths_far_from_0_are_those_of_the_equations(rules, dtype, monkeypatch):
    """Where softplus(x) is x, and where it is nearly 0: to a few digits less than there are."""
    raw = (40 * random(3, equations.interface_size(5, 3), seed=1)).to(dtype).requires_grad_()
    digits = 1e-12 if dtype == torch.float64 else 2e-5
    found = []
    for asked in ("0", "1"):
        monkeypatch.setenv("RELENGTH_TRITON", asked)
        orders = equations.orders_of(raw, 5, 3, rules)
        loss = sum((k * part).sin().sum() for k, part in enumerate(orders, start=1))
        found.append([*orders, *torch.autograd.grad(loss, raw)])
    assert (raw > 20).any() and (raw < -20).any()
    for plain, kernel in zip(*found, strict=True):
        torch.testing.assert_close(kernel, plain, rtol=digits, atol=1e-30)


@needs_triton
@pytest.mark.equality
def test_shorter_numbers_are_widened(asked):
    raw = random(2, equations.interface_size(5, 3), seed=1).bfloat16()
    assert {part.dtype for part in equations.orders_of(raw, 5, 3)} == {torch.float32}


@needs_triton
@pytest.mark.equality
@pytest.mark.parametrize("compressed", [False, True], ids=["clipped", "compressed"])
@pytest.mark.parametrize("peepholes", [False, True], ids=["lstm", "peephole"])
def test_gates_are_those_of_the_equations(peepholes, compressed, monkeypatch):
    """Cell states on both sides of the clip."""
    controller = GatedController(4, 5, peepholes, compressed, clip=0.5).double().to(DEVICE)
    sizes = {"weight": (20, 9), "bias": (20,), "first_c": (5,), "first_h": (5,)}
    for k, (name, parameter) in enumerate(controller.named_parameters()):
        parameter.data = random(*sizes[name], seed=k)
    inputs, found = random(3, 2, 4, seed=9), []
    for asked in ("0", "1"):
        monkeypatch.setenv("RELENGTH_TRITON", asked)
        state, outputs = controller.start(2), []
        for x in inputs:
            h, state = controller.step(x, state)
            outputs += [h, state.c, state.uncompressed]
        loss = sum((k * x).sin().sum() for k, x in enumerate(outputs, start=1))
        found.append([*outputs, *torch.autograd.grad(loss, [*controller.parameters()])])

        def step(c: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            h, state = controller.step(x, Cells(c, c, c))
            return (h + 2 * state.c).sin().sum()

        found[-1].append(vmap(grad(step))(random(3, 2, 5, seed=7), inputs))
    assert 0 < (found[0][2].abs() > 0.5).sum() < 10
    for plain, kernel in zip(*found, strict=True):
        torch.testing.assert_close(kernel, plain, rtol=1e-12, atol=1e-12)


@needs_triton
@pytest.mark.equality
def test_slots_and_links_stay_what_they_are(asked):
    sizes = 5, 3, equations.DEEPMIND
    for t in range(3):
        state = after(3 + t, 7, *sizes)
        assert ((state.usage >= 0) & (state.usage <= 1)).all()
        for weighting in (state.write_weighting[:, None], state.read_weightings):
            assert (weighting >= 0).all() and (weighting.sum(2) <= 1 + 1e-12).all()
        assert (state.link.diagonal(dim1=1, dim2=2) == 0).all()
        assert (state.link.sum(1) <= 1 + 1e-12).all() and (state.link.sum(2) <= 1 + 1e-12).all()


@needs_triton
@pytest.mark.equality
def test_a_batch_of_batches_has_the_gradients_of_each(monkeypatch):
    sizes = 5, 3, equations.DEEPMIND
    raw, state = random(3, 2, equations.interface_size(5, 3), seed=1), after(2, 7, *sizes)

    def loss(raw: torch.Tensor) -> torch.Tensor:
        return sum(x.sin().sum() for x in step(raw, state, *sizes))

    expected = torch.stack([grad(loss)(one) for one in raw])
    monkeypatch.setenv("RELENGTH_TRITON", "1")
    torch.testing.assert_close(vmap(grad(loss))(raw), expected, rtol=0, atol=1e-12)


@needs_triton
@pytest.mark.smoke
@pytest.mark.weekly
def test_a_stack_trains_with_the_kernel_as_without(monkeypatch):
    specs = [experiment("dnc_generalization").specs("smoke", [seed])[0] for seed in (0, 1)]
    fields = {"precision": "float64", "batch_size": 2}
    specs = [s.model_copy(update={"training": s.training.model_copy(update=fields)}) for s in specs]
    weights = []
    for asked in ("0", "1"):
        monkeypatch.setenv("RELENGTH_TRITON", asked)
        stack = Stack(specs, DEVICE, graphs=False)
        stack.run_steps(2)
        weights.append(stack.params)
    for name, plain in weights[0].items():
        torch.testing.assert_close(weights[1][name], plain, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("installed", "interpreted", "said"),
    [(False, "1", "not installed"), (True, "0", "needs a GPU")],
)
def test_where_there_is_no_triton_that_is_said_before_training(
    asked, monkeypatch, installed, interpreted, said
):
    monkeypatch.setattr(late, "find_spec", lambda _: object() if installed else None)
    monkeypatch.setenv("TRITON_INTERPRET", interpreted)
    with pytest.raises(RelengthError, match=said) as problem:
        check_device("cpu")
    assert "\n" not in str(problem.value)
    monkeypatch.delenv("RELENGTH_TRITON")
    check_device("cpu")
