"""Addressing by content, NTM and DNC compute what their papers say."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from baseline_reference import (
    SIZES,
    build,
    close,
    distributions,
    dnc,
    dnc_interface,
    dnc_memory,
    dnc_start,
    ntm,
    numbers,
    sources,
    weights_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import grad, vmap
from torch.utils._python_dispatch import TorchDispatchMode

from relength.kernels import dnc_fused
from relength.models.addressing import content_weighting, cosine
from relength.models.memory import dnc_memory as memory
from relength.models.memory.dnc import DNCCore
from relength.models.memory.machine import LSTMController
from relength.models.memory.ntm import interpolate, rotate, sharpen

pytestmark = pytest.mark.equality

SEEDS = st.integers(0, 2**32)


# --- addressing by content ------------------------------------------------------------------------


@given(seed=SEEDS)
def test_cosines_are_cosines(seed):
    rows, keys = numbers(2, 5, 3, seed=seed), numbers(2, 4, 3, seed=seed + 1)
    expected = torch.cosine_similarity(rows[:, None], keys[:, :, None], dim=3)
    shortest = min(x.norm(dim=2).min().item() for x in (rows, keys))
    close(cosine(rows, keys), expected, 1e-6 / shortest**2)


@given(seed=SEEDS)
def test_a_strong_key_finds_the_one_row_it_is_like(seed):
    rows = numbers(1, 5, 8, seed=seed)
    weighting = content_weighting(rows, 3 * rows[:, 2:3], torch.tensor([[500.0]]).double())
    close(weighting[0, 0], np.eye(5)[2], 1e-2)


def test_without_strength_all_rows_are_alike():
    weighting = content_weighting(numbers(1, 5, 3), numbers(1, 1, 3), torch.zeros(1, 1).double())
    close(weighting, np.full((1, 1, 5), 0.2))


# --- Neural Turing Machine ------------------------------------------------------------------------


@settings(max_examples=8)
@given(seed=SEEDS, length=st.integers(1, 6), steps=st.integers(1, 6))
def test_ntm_scores_are_those_of_the_equations(seed, length, steps):
    model, inputs = build("NTM", "released", seed), sources(2, length, seed)
    scores = model.decode(inputs, steps, None)
    first = model.first_memory.numpy(), model.first_read.numpy()
    for row in range(2):
        close(scores[row], ntm(weights_of(model), *first, inputs[row].numpy(), steps))


@given(seed=SEEDS, by=st.sampled_from([-1, 0, 1]))
def test_a_certain_shift_moves_a_weighting_round_the_memory(seed, by):
    weighting = distributions(2, 6, seed=seed)
    shift = torch.zeros(2, 3).double()
    shift[:, by + 1] = 1
    close(rotate(weighting, shift), np.roll(weighting.numpy(), by, axis=1))


@given(seed=SEEDS, sharpness=st.floats(1, 8))
def test_sharpening_keeps_the_sum_and_the_order_and_raises_the_peak(seed, sharpness):
    weighting = distributions(3, 6, seed=seed)
    sharp = sharpen(weighting, torch.tensor(sharpness).double())
    close(sharp.sum(1), np.ones(3))
    assert torch.equal(sharp.argsort(1), weighting.argsort(1))
    assert (sharp.amax(1) >= weighting.amax(1) - 1e-12).all()


def test_closed_and_open_gates_keep_the_old_weighting_or_take_the_new():
    new, old = distributions(2, 5, seed=1), distributions(2, 5, seed=2)
    close(interpolate(new, old, torch.tensor(0.0)), old)
    close(interpolate(new, old, torch.tensor(1.0)), new)


# --- Differentiable Neural Computer ---------------------------------------------------------------

WIDTH, HEADS, SLOTS = 3, 2, 6


@settings(max_examples=8)
@given(arm=st.sampled_from(["paper", "released"]), seed=SEEDS, length=st.integers(1, 6))
def test_dnc_scores_are_those_of_the_equations(arm, seed, length):
    model, inputs = build("DNC", arm, seed), sources(2, length, seed)
    scores = model.decode(inputs, 5, None)
    sizes = [SIZES["DNC"][name] for name in ("slots", "width", "read_heads")]
    for row in range(2):
        close(scores[row], dnc(weights_of(model), arm, *sizes, inputs[row].numpy(), 5), 1e-9)


def orders(vectors: np.ndarray) -> memory.Interface:
    """The interface that emitted vectors (B, ·) are read as."""
    return memory.interface(memory.split(torch.from_numpy(vectors), WIDTH, HEADS))


def emitted(seed: int, steps: int) -> np.ndarray:
    size = memory.interface_size(WIDTH, HEADS)
    return np.random.default_rng(seed).normal(0, 3, size=(steps, size))


@settings(max_examples=15)
@given(seed=SEEDS, fused=st.booleans())
def test_every_part_of_the_memory_is_that_of_the_equations(seed, fused):
    expected = dnc_start(SLOTS, WIDTH, HEADS)
    state = memory.empty(torch.zeros(1).double(), 1, SLOTS, WIDTH, HEADS)
    for vector in emitted(seed, 8):
        reads, state = memory.access(orders(vector[None]), state, fused)
        close(reads[0], dnc_memory(dnc_interface(vector, WIDTH, HEADS, "paper"), expected), 1e-9)
        pairs = {
            "memory": state.memory,
            "usage": state.usage,
            "link": state.link,
            "precedence": state.precedence,
            "writing": state.write_weighting,
            "reading": state.read_weightings,
        }
        for name, ours in pairs.items():
            close(ours[0], expected[name], 1e-9)


@settings(max_examples=15)
@given(seed=SEEDS, steps=st.integers(1, 10))
def test_what_the_nature_paper_says_of_its_weightings_is_true(seed, steps):
    """They are in Δ_N (none negative, sum at most 1), rows and columns of L, too."""
    state = memory.empty(torch.zeros(1).double(), 1, SLOTS, WIDTH, HEADS)
    for vector in emitted(seed, steps):
        _, state = memory.access(orders(vector[None]), state)
        assert (state.usage >= 0).all() and (state.usage <= 1 + 1e-12).all()
        allocation = memory.allocation_weighting(state.usage)
        weightings = (state.write_weighting, state.precedence, allocation, state.read_weightings)
        for weighting in (*weightings, state.link, state.link.mT):
            assert (weighting >= -1e-12).all() and (weighting.sum(-1) <= 1 + 1e-12).all()
        assert not state.link.diagonal(dim1=1, dim2=2).any()


def told(key=(0, 0, 0), strength=0.0, write=(0, 0, 0), gates=(0, 1, 1), modes=(0, 1, 0), free=0.0):
    """An interface by hand, for one read head: gates are erase, allocation and write gate."""
    erase, allocation, writing = (torch.tensor([[float(g)]]).double() for g in gates)
    return memory.Interface(
        read_keys=torch.tensor([[key]]).double(),
        read_strengths=torch.tensor([[strength]]).double(),
        write_key=torch.zeros(1, 3).double(),
        write_strength=torch.ones(1, 1).double(),
        erase_vector=erase.expand(1, 3),
        write_vector=torch.tensor([write]).double(),
        free_gates=torch.tensor([[free]]).double(),
        allocation_gate=allocation,
        write_gate=writing,
        read_modes=torch.tensor([[modes]]).double(),
    )


WORDS = ((1, 0, 0), (0, 2, 0), (0, 0, 3))


def written(slots: int = 5) -> tuple[memory.MemoryState, list[int]]:
    """A memory to which the words were written, each to a free slot; and their slots."""
    state, places = memory.empty(torch.zeros(1).double(), 1, slots, 3, 1), []
    for word in WORDS:
        _, state = memory.access(told(write=word), state)
        places.append(int(state.write_weighting.argmax()))
    return state, places


def test_allocation_writes_each_word_to_a_free_slot():
    state, places = written()
    assert len(set(places)) == 3
    close(state.memory[0, places], np.array(WORDS), 1e-5)
    close(state.precedence[0], np.eye(5)[places[2]], 1e-5)
    # Usage lags behind: a step learns of the write before it.
    close(state.usage[0, places], [1, 1, 0], 1e-5)


def test_links_lead_from_what_was_written_to_what_was_written_next():
    state, (first, second, third) = written()
    expected = np.zeros((5, 5))
    expected[second, first] = expected[third, second] = 1
    close(state.link[0], expected, 1e-5)


def test_a_word_is_found_by_its_key_and_its_neighbours_by_links():
    """Read by content, then forwards twice, then backwards once."""
    reads, state = memory.access(told((1, 0, 0), 500.0, gates=(0, 0, 0)), written()[0])
    close(reads[0, 0], WORDS[0], 1e-3)
    for modes, word in (((0, 0, 1), 1), ((0, 0, 1), 2), ((1, 0, 0), 1)):
        reads, state = memory.access(told(modes=modes, gates=(0, 0, 0)), state)
        close(reads[0, 0], WORDS[word], 1e-3)


def test_a_slot_that_was_read_and_freed_is_written_next():
    state, (first, second, _) = written(slots=3)  # which are all in use
    _, state = memory.access(told(WORDS[1], 500.0, gates=(0, 0, 0)), state)
    _, state = memory.access(told(write=(9, 9, 9), gates=(1, 1, 1), free=1.0), state)
    close(state.memory[0, second], (9, 9, 9), 1e-3)
    close(state.memory[0, first], WORDS[0], 1e-3)


@given(seed=SEEDS)
def test_allocation_prefers_the_least_used_slot(seed):
    usage = torch.rand(3, 6, generator=torch.Generator().manual_seed(seed)).double()
    allocation = memory.allocation_weighting(usage)
    assert torch.equal(allocation.argmax(1), usage.argmin(1))
    close(allocation.sum(1), 1 - usage.prod(1), 1e-4)


class Counted(TorchDispatchMode):
    """Counts the operations inside its context."""

    count = 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self.count += 1
        return function(*arguments, **(named or {}))


def allocated(slots: int) -> tuple[torch.Tensor, int]:
    """Gradients of the allocation of two stacked runs, and the operations they took."""
    usage, weight = torch.sigmoid(numbers(2, 3, slots)), numbers(3, slots, seed=1)
    usage[0, 0, :2] = 0  # slots that nothing was written to
    with Counted() as operations:
        grads = vmap(grad(lambda u: (memory.allocation_weighting(u) * weight).sum()))(usage)
    return grads, operations.count


def test_the_gradient_of_the_allocation_is_that_of_its_products_in_a_stack_too(monkeypatch):
    grads, _ = allocated(5)
    monkeypatch.setattr(memory, "_Products", SimpleNamespace(apply=lambda x: x.cumprod(1)))
    torch.testing.assert_close(grads, allocated(5)[0], rtol=1e-12, atol=1e-12)


def test_a_stack_takes_as_many_operations_for_many_slots_as_for_few():
    assert allocated(64)[1] == allocated(4)[1]


@settings(max_examples=10)
@given(seed=SEEDS)
def test_the_memory_of_a_trained_dnc_may_be_made_larger(seed):
    """No parameter depends on the number of slots."""
    torch.manual_seed(seed)
    core = DNCCore(LSTMController(4 + 6, 5), 5, WIDTH, HEADS).double()
    torch.nn.init.normal_(core.to_interface.weight)
    for parameter in core.controller.parameters():
        torch.nn.init.normal_(parameter)
    for slots in (3, 30):
        state = core.start(2, slots)
        for x in sources(2, 4, seed)[:, :, :4].unbind(1):
            features, state = core.step(x, state, fused=False)
        assert features.shape == (2, 5 + HEADS * WIDTH) and features.isfinite().all()
        assert state.memory.link.shape == (2, slots, slots)


@settings(max_examples=10)
@given(seed=SEEDS)
def test_fused_links_have_the_values_and_gradients_of_the_equations(seed):
    def inputs():
        weightings = distributions(2, 2 + HEADS, 5, seed=seed) * 0.9
        link = distributions(2, 5, 5, seed=seed + 1)
        parts = (link, weightings[:, 0], weightings[:, 1], weightings[:, 2:])
        return [part.clone().requires_grad_() for part in parts]

    ours, theirs = inputs(), inputs()
    results = dnc_fused.link_and_follow(*ours), memory.link_and_follow(*theirs)
    for result in results:
        sum((x * numbers(*x.shape, seed=seed + 2)).sum() for x in result).backward()
    for mine, expected in zip(*results, strict=True):
        close(mine, expected.detach(), 1e-14)
    for mine, expected in zip(ours, theirs, strict=True):
        close(mine.grad, expected.grad, 1e-13)
    assert torch.autograd.gradcheck(dnc_fused.link_and_follow, inputs())


def test_the_released_dnc_gets_back_what_it_read_only_once():
    model, inputs = build("DNC", "released"), sources(1, 4)
    state, fed = model.start(1), []
    for x in inputs.unbind(1):
        fed.append(state.fed)
        _, state = model.step(x, state)
    last = state.reads
    state = model.turn(state)
    for _ in range(3):
        fed.append(state.fed)
        _, state = model.step(torch.zeros_like(inputs[:, 0]), state)
    assert not torch.cat(fed[:4]).any()
    assert all(torch.equal(reads, last) for reads in fed[4:]) and last.any()


def test_with_one_head_every_read_mode_of_the_released_dnc_has_weight_1():
    core = build("DNC", "released", read_heads=1).core
    modes = core.interface(numbers(7, 5)).read_modes
    close(modes, np.ones((7, 1, 3)))


def test_with_all_modes_at_1_read_weightings_grow_from_step_to_step():
    """So in the released DNC they do not stay in Δ_N, and may overflow on a long input."""
    (state, _), totals = written(), []
    for _ in range(20):
        _, state = memory.access(told(WORDS[1], 500.0, gates=(0, 0, 0), modes=(1, 1, 1)), state)
        totals.append(state.read_weightings.sum().item())
    assert totals == sorted(totals) and totals[0] > 1 and totals[-1] > 100
