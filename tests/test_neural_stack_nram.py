"""Neural Stack and NRAM compute what their papers say."""

import numpy as np
import pytest
import torch
from baseline_reference import (
    CLASSES,
    INTEGER_FUNCTIONS,
    SIZES,
    build,
    close,
    distributions,
    neural_stack,
    nram,
    numbers,
    sources,
    stack_top,
    stack_update,
    uncertain,
    weights_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from relength.errors import RelengthError
from relength.models.memory import nram_modules
from relength.models.memory.configs import NRAMConfig
from relength.models.memory.neural_stack import top, update
from relength.models.memory.nram import NRAM

pytestmark = pytest.mark.equality

SEEDS = st.integers(0, 2**32)


def certain(*values: float) -> list[Tensor]:
    """Numbers as batches of one (1, 1)."""
    return [torch.tensor([[value]], dtype=torch.float64) for value in values]


def test_the_stack_of_figure_1_of_grefenstette_et_al():
    """Three steps: push v1 with 0.8; pop 0.1, push v2 with 0.5; pop 0.9, push v3 with 0.9."""
    values = torch.eye(3).double()
    strengths = torch.zeros(1, 0).double()
    steps = (
        (0.0, 0.8, [0.8], [0.8, 0, 0]),
        (0.1, 0.5, [0.7, 0.5], [0.5, 0.5, 0]),
        (0.9, 0.9, [0.3, 0, 0.9], [0.1, 0, 0.9]),
    )
    for t, (pop, push, expected, read) in enumerate(steps, start=1):
        strengths = update(strengths, *certain(pop, push))
        close(strengths[0], expected)
        close(top(values[None, :t], strengths)[0], read)


@given(
    actions=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=7),
    seed=SEEDS,
)
def test_stacks_are_those_of_the_equations(actions, seed):
    values, strengths, expected = numbers(7, 2, seed=seed), torch.zeros(1, 0).double(), []
    for t, (pop, push) in enumerate(actions, start=1):
        strengths = update(strengths, *certain(pop, push))
        expected = stack_update(expected, pop, push)
        close(strengths[0], expected)
        close(top(values[None, :t], strengths)[0], stack_top(values[:t].numpy(), expected))


@given(items=st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_a_sure_controller_gets_back_what_it_pushed_in_reverse(items):
    values, strengths = torch.zeros(1, 0, 1).double(), torch.zeros(1, 0).double()

    def act(pop, push, value):
        new = torch.cat([values, *(x[None] for x in certain(value))], dim=1)
        return new, update(strengths, *certain(pop, push))

    for item in items:
        values, strengths = act(0, 1, item)
    popped = []
    for _ in items:
        popped.append(int(top(values, strengths)))
        values, strengths = act(1, 0, -1)
    assert popped == items[::-1]
    assert not strengths.any()


@settings(max_examples=8)
@given(seed=SEEDS, length=st.integers(1, 6), steps=st.integers(1, 5))
def test_neural_stack_scores_are_those_of_the_equations(seed, length, steps):
    model, inputs = build("Neural Stack", "paper", seed), sources(2, length, seed)
    scores = model.decode(inputs, steps, None)
    for row in range(2):
        close(scores[row], neural_stack(weights_of(model), inputs[row].numpy(), steps))


# --- Neural Random-Access Machine -----------------------------------------------------------------


@pytest.mark.parametrize("name", INTEGER_FUNCTIONS)
@settings(max_examples=10)
@given(seed=SEEDS, cells=st.integers(3, 7))
def test_modules_are_integer_functions_of_uncertain_integers(name, seed, cells):
    unary = name in ("increment", "decrement")
    inputs = [distributions(2, cells, seed=seed + i) for i in range(1 if unary else 2)]
    ours = getattr(nram_modules, name)(*inputs)
    for row in range(2):
        close(ours[row], uncertain(name, *(x[row].numpy() for x in inputs)))


@given(seed=SEEDS, cell=st.integers(0, 5))
def test_what_is_written_to_a_certain_cell_is_read_there_and_nowhere_else(seed, cell):
    before, value = distributions(1, 6, 6, seed=seed), distributions(1, 6, seed=seed + 1)
    pointer = nram_modules.constant(cell, value)
    after = nram_modules.write(before, pointer, value)
    close(nram_modules.read(after, pointer), value)
    others = [i for i in range(6) if i != cell]
    close(after[:, others], before[:, others])


@settings(max_examples=5)
@given(seed=SEEDS, length=st.integers(1, 4), steps=st.integers(1, 3))
def test_nram_scores_are_those_of_the_circuit(seed, length, steps):
    model, inputs = build("NRAM", "paper", seed), sources(2, length, seed)
    inputs[:, 0, :CLASSES] = 0  # a start mark has no symbol
    scores = model.decode(inputs, steps, None)
    sizes = SIZES["NRAM"]["registers"], SIZES["NRAM"]["cells"]
    for row in range(2):
        close(scores[row], nram(weights_of(model), *sizes, inputs[row].numpy(), steps))


@settings(max_examples=5)
@given(seed=SEEDS)
def test_registers_and_memory_of_an_nram_remain_distributions(seed):
    model = build("NRAM", "paper", seed)
    state = model.start(2)
    for x in sources(2, 5, seed).unbind(1):
        _, state = model.step(x, state)
        for integers in (state.registers, state.memory):
            assert (integers > -1e-12).all()
            close(integers.sum(-1), np.ones(integers.shape[:-1]))


def test_an_nram_needs_an_integer_for_every_symbol():
    with pytest.raises(RelengthError, match="at least 10 cells"):
        NRAM(NRAMConfig(cells=6), 10, 10)
