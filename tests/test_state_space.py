"""The tasks that are read whole and then written, and the protocol that trains them."""

from dataclasses import fields
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import torch
from handmade import in_a_row
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from relength.errors import RelengthError
from relength.models.free_running import FreeRunning
from relength.specs import published, registry
from relength.specs.spec import RunSpec, make_spec
from relength.streams import stream
from relength.tasks import TASKS
from relength.tasks.batch import Batch
from relength.tasks.state_space import (
    SYMBOLS,
    Formulas,
    Logic,
    Numerals,
    NumeralTask,
    Search,
    Searched,
    StateSpaceTask,
)
from relength.training import traces
from relength.training.alone import train
from relength.training.course import Course, Scores
from relength.training.evaluate import Measured
from relength.training.grouping import stacks
from relength.training.protocols.state_space import closest_pairs
from relength.training.stack import Stack

NAMES = [name for name, task in TASKS.items() if issubclass(task, StateSpaceTask)]
NUMERAL = [name for name in NAMES if issubclass(TASKS[name], NumeralTask)]
every_task = pytest.mark.parametrize("name", NAMES)
every_numeral_task = pytest.mark.parametrize("name", NUMERAL)
SEEDS = st.integers(0, 2**32)
LENGTHS = st.integers(2, 40)
TINY = {
    **{"train_lengths": (2, 5), "test_lengths": (2, 8), "iid_length": 5, "dev_length": 8},
    **{"dev_size": 3, "test_size": 5, "validation_size": 3, "extended_size": 2},
}


def sampled(name: str, seed: int, length: int, size: int = 6) -> Batch:
    return TASKS[name]().sample(stream(seed, "data"), size, length)


def perfect(batch: Batch, name: str) -> torch.Tensor:
    """Outputs without a fault; a truth value is written as log-odds."""
    return 20 * batch.targets - 10 if name == "dnc_logic" else batch.targets.clone()


# --- what a sample looks like ---------------------------------------------------------------------


@every_task
def test_the_papers_tables_have_a_column_for_each_task(name):
    tasks = {*published.table("dnc-table-2")["task"]}
    assert tasks == set(NAMES)
    assert tasks == set(registry.papers()["dnc"].task_names.values())
    assert TASKS[name]().tests == tuple(str(n) for n in range(2, 101))


@every_numeral_task
@settings(max_examples=15)
@given(seed=SEEDS, length=LENGTHS)
def test_a_batch_holds_input_flag_result_and_signal_and_nothing_else(name, seed, length):
    task = TASKS[name]()
    drawn = task.draw(stream(seed, "data"), 4, length)
    batch = task.encode(drawn)
    n, k = length, task.channels
    assert batch.inputs.shape == (4, 2 * n + 2, k + 1) and batch.targets.shape == (4, n + 1, k + 1)
    assert task.shape == (k + 1, k + 1)
    inputs, targets = batch.inputs.numpy(), batch.targets.numpy()
    codes = np.linspace(-1, 1, task.base)
    np.testing.assert_allclose(inputs[:, :n, :k], codes[drawn.read], atol=1e-6)
    np.testing.assert_allclose(targets[:, :n, :k], codes[drawn.written], atol=1e-6)
    assert (inputs[:, n:, :k] == 0).all() and (targets[:, n, :k] == 0).all()
    assert (inputs[:, :, k] == (np.arange(2 * n + 2) == n)).all()
    assert (targets[:, :, k] == (np.arange(n + 1) == n)).all()
    assert batch.mask.all() and (batch.input_lengths == 2 * n + 2).all()
    assert (batch.target_lengths == n + 1).all()
    assert task.least_steps(n) == 2 * n + 2


def test_sorting_two_numerals_by_hand():
    batch = TASKS["dnc_sort"]().encode(Numerals(np.array([[[4], [0]]]), np.array([[[0], [4]]])))
    assert batch.inputs[0].tolist() == [[1, 0], [-1, 0], [0, 1], [0, 0], [0, 0], [0, 0]]
    assert batch.targets[0].tolist() == [[-1, 0], [1, 0], [0, 1]]


def test_searching_three_numerals_by_hand():
    """Two answers beside one: the shorter is padded, and its padding counts for nothing."""
    drawn = Searched(np.array([[2, 1, 2], [4, 0, 3]]), np.array([2, 0]))
    batch = Search().encode(drawn)
    assert batch.inputs[0].tolist() == [
        [0.5, 0], [0.25, 0], [0.5, 0], [0, 1], [0.5, 0], [0, 1], [0, 0], [0, 0], [0, 0]
    ]  # fmt: skip
    assert batch.targets.tolist() == [[[0, 0], [1, 0], [0, 1]], [[0.5, 0], [0, 1], [0, 0]]]
    assert batch.mask.tolist() == [[True] * 3, [True, True, False]]
    assert batch.input_lengths.tolist() == [9, 8] and batch.target_lengths.tolist() == [3, 2]
    assert Search().least_steps(3) == 8


def test_a_formula_by_hand():
    drawn = Formulas(np.array([[SYMBOLS.index(s) for s in "¬⊥"]]), np.array([True]))
    batch = Logic().encode(drawn)
    inputs = batch.inputs[0]
    assert inputs.shape == (4, 10) == (Logic().least_steps(2), Logic().shape[0])
    assert inputs.argmax(1).tolist()[:3] == [SYMBOLS.index("¬"), SYMBOLS.index("⊥"), 9]
    assert inputs.sum() == 3 and inputs[3].sum() == 0
    assert batch.targets.tolist() == [[[1.0]]]


@every_task
@settings(max_examples=10, deadline=None)
@given(seeds=st.lists(SEEDS, min_size=1, max_size=3), length=LENGTHS)
def test_samples_of_several_runs_are_encoded_together_as_they_are_alone(name, seeds, length):
    """On a device answers are padded to the longest possible: the rest is equal."""
    task = TASKS[name]()
    samples = [task.draw(stream(seed, "data"), 4, length) for seed in seeds]
    stacked = (np.stack(part) for part in zip(*samples, strict=True))
    together = task.encode(type(samples[0])(*map(torch.from_numpy, stacked)))
    for r, sample in enumerate(samples):
        alone = task.encode(sample)
        for field in (part.name for part in fields(alone)):
            mine, own = getattr(together, field)[r], getattr(alone, field)
            if field in alone.LENGTHS:
                assert not mine[:, own.shape[1] :].any()
                mine = mine[:, : own.shape[1]]
            assert torch.equal(mine, own), field


@every_task
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_equal_streams_mean_equal_samples(name, seed):
    one, same, other = (sampled(name, s, 12) for s in (seed, seed, seed + 1))
    assert all(torch.equal(a, b) for a, b in zip(one.tensors, same.tensors, strict=True))
    assert not torch.equal(one.inputs[:, :12], other.inputs[:, :12])


@every_task
def test_splits_have_their_lengths_and_sizes(name):
    task = TASKS[name](**TINY | {"extended_lengths": (4, 12), "watched": (6, 7)})
    assert task.tests == tuple("2345678") and task.known_test == "5"
    assert task.watched_splits == ("6", "7")
    assert task.extended_tests == {"4": "extended-4", "12": "extended-12"}
    sizes = {"dev": 3, "validation": 3, **dict.fromkeys(task.tests, 5)}
    assert {n: s.size for n, s in task.splits().items()} == sizes | dict.fromkeys(
        task.extended_tests.values(), 2
    )
    for split, (shortest, longest, size) in task.splits().items():
        batch = task.dataset(split, 0)
        assert len(batch) == size and shortest == longest
        assert int(batch.input_lengths.min()) >= task.least_steps(longest)
        assert torch.equal(batch.inputs, task.dataset(split, 1).inputs)


@every_task
@pytest.mark.parametrize("length", [1, 0, -3, "30", 2.5, True, None, (5, 6)], ids=repr)
def test_an_impossible_length_is_refused_by_name(name, length):
    with pytest.raises(RelengthError) as refusal:
        TASKS[name]().sample(stream(0, "data"), 2, length)
    assert name in str(refusal.value) and repr(length) in str(refusal.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"train_lengths": (15, 5)}, "shortest of the train_lengths comes first"),
        ({"test_lengths": (2, 20)}, "dev_length is one of the lengths"),
        ({"iid_length": 101}, "iid_length is one of the lengths"),
        ({"watched": (45, 101)}, "watched is one of the lengths"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        TASKS["dnc_sort"](**given)


# --- how samples are drawn ------------------------------------------------------------------------


@settings(max_examples=20)
@given(seed=SEEDS, length=st.integers(2, 60))
def test_formulas_have_their_length_and_the_value_that_reading_them_gives(seed, length):
    drawn = Logic().draw(stream(seed, "data"), 5, length)
    assert drawn.symbols.shape == (5, length)
    for symbols, truth in zip(drawn.symbols, drawn.truth, strict=True):
        assert Logic().answer("".join(SYMBOLS[s] for s in symbols)) == truth


@pytest.mark.parametrize("text", ["", "¬", "(⊤", "⊤)", "⊤⊥", "⊤∧", "∧⊤", "()", "⊤∧⊤∧⊤", "x"])
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(RelengthError):
        Logic().answer(text)


@pytest.mark.parametrize(
    ("formula", "truth"),
    [("⊤∧⊥", False), ("⊥→⊥", True), ("⊤→⊥", False), ("⊥↔⊥", True), ("¬(⊤∨⊥)", False)],
)
def test_operators_mean_what_they_mean(formula, truth):
    assert Logic().answer(formula) is truth


@cache
def share_true(length: int, whole: bool) -> Fraction:
    """Probability that a drawn formula is true, by the rule of the docstring."""
    if length == 1:
        return Fraction(1, 2)
    parts = length - 1 - 2 * (not whole)
    negation = 1 - share_true(length - 1, False)
    if parts < 2:
        return negation
    pairs = [(share_true(a, False), share_true(parts - a, False)) for a in range(1, parts)]
    # ∧, ∨, → and ↔ of independent parts, a quarter each.
    joined = sum((2 - a + 3 * a * b) / 4 for a, b in pairs) / len(pairs)
    return negation / 4 + 3 * joined / 4


def test_formulas_are_true_as_often_as_their_task_says():
    text = Logic.__doc__
    assert in_a_row([5, 100, 0.535, 0.553], text)
    shares = [float(share_true(n, True)) for n in range(5, 101)]
    assert round(min(shares), 3) >= 0.535 and round(max(shares), 3) <= 0.553
    for length in (5, 15):
        truth = Logic().draw(stream(0, "data"), 4000, length).truth
        assert abs(truth.mean() - float(share_true(length, True))) < 4 * 0.008


def test_a_queried_numeral_occurs_once_and_by_chance_at_other_places():
    drawn = Search().draw(stream(0, "data"), 4000, 21)
    hits = (drawn.numerals == drawn.query[:, None]).sum(1)
    assert hits.min() == 1
    assert abs(hits.mean() - (1 + 20 / 5)) < 5 * (20 * 0.16 / 4000) ** 0.5


@every_numeral_task
def test_numerals_are_uniform(name):
    task = TASKS[name]()
    read = task.draw(stream(0, "data"), 500, 20).read
    counts = np.bincount(read.ravel(), minlength=task.base) / read.size
    assert len(counts) == task.base and abs(counts - 1 / task.base).max() < 0.02


@given(st.lists(st.integers(0, 4), min_size=2, max_size=30))
def test_results_are_what_their_names_say(numerals):
    read = np.array(numerals)[None, :, None]

    def result(name: str) -> list[int]:
        return TASKS[name]().result(read)[0, :, 0].tolist()

    n = len(numerals)
    assert result("dnc_sort") == sorted(numerals) and result("dnc_copy") == numerals
    assert result("dnc_differentiation")[0] == 0
    assert result("dnc_differentiation")[1:] == [
        abs(numerals[i + 1] - numerals[i]) for i in range(n - 1)
    ]
    assert result("dnc_shift") == numerals[n - n // 2 :] + numerals[: n - n // 2]


# --- loss and metrics -----------------------------------------------------------------------------


@every_task
def test_outputs_without_a_fault_have_the_best_score(name):
    batch = sampled(name, 0, 12)
    task, outputs = TASKS[name](), perfect(batch, name)
    assert task.right(outputs, batch).tolist() == [1.0] * 6
    assert float(task.loss(outputs, batch)) < 1e-4
    metrics = task.score([(batch, outputs)])
    assert getattr(metrics, task.measure) == 1.0 and metrics.items == 6
    assert task.measure in task.metrics.shares()


def test_a_number_is_right_up_to_half_of_the_distance_to_the_next():
    task = TASKS["dnc_copy"]()
    batch = task.sample(stream(0, "data"), 1, 4)
    for off, right in ((0.24, 1.0), (-0.24, 1.0), (0.26, 0.75), (-0.26, 0.75)):
        outputs = batch.targets.clone()
        outputs[0, 1, 0] += off
        outputs[..., 1] = 7.0  # the signal does not count
        outputs[0, -1, 0] = 7.0  # nor does the result's channel at its step
        assert task.right(outputs, batch).tolist() == [right]


def test_both_numbers_of_a_sum_count():
    task = TASKS["dnc_add"]()
    batch = task.sample(stream(0, "data"), 1, 5)
    outputs = batch.targets.clone()
    outputs[0, 2, 0] *= -1
    outputs[0, 3, :2] *= -1
    assert task.right(outputs, batch).item() == pytest.approx(7 / 10)


def test_the_loss_is_the_mean_over_channels_and_the_steps_that_count():
    batch = Search().encode(Searched(np.array([[2, 1, 2], [4, 0, 3]]), np.array([2, 0])))
    outputs = batch.targets.clone()
    outputs[0, 0, 0] += 3.0  # 9 of 3 steps and 2 channels
    outputs[1, 1, 1] += 2.0  # 4 of 2 steps and 2 channels
    outputs[1, 2] += 100.0  # padding
    assert float(Search().loss(outputs, batch)) == pytest.approx((9 / 6 + 4 / 4) / 2)
    assert Search().score([(batch, outputs)]).squared_error == pytest.approx((9 / 6 + 4 / 4) / 2)


def test_hits_are_the_wanted_places_written_before_the_signal():
    """Places 0, 2 and 4 of five are wanted."""
    batch = Search().encode(Searched(np.array([[2, 1, 2, 0, 2]]), np.array([2])))
    for places, signals, hits in (
        ([0.0, 0.5, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], 3),
        ([1.0, 0.0, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0], 3),  # in any order
        ([0.1, 0.6, 0.9, 0.0], [0.0, 0.0, 0.0, 1.0], 3),  # nearest places
        ([0.13, 0.6, 0.9, 0.0], [0.0, 0.0, 0.0, 1.0], 2),  # 0.52 of a place away
        ([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], 1),  # a place once
        ([0.0, 0.5, 1.0, 0.0], [0.0, 0.9, 0.0, 1.0], 1),  # the signal is too early
        ([0.0, 0.5, 1.0, 0.0], [0.7, 0.7, 0.7, 0.7], 3),  # no signal
        ([0.7, 0.3, 0.2, 1.0], [0.0, 0.0, 0.0, 0.0], 1),  # a place where the signal should be
    ):
        outputs = torch.tensor([[*zip(places, signals, strict=True)]])
        assert Search().right(outputs, batch).item() == pytest.approx(hits / 3), places


@every_task
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, length=st.integers(2, 20))
def test_scores_do_not_depend_on_how_samples_are_batched(name, seed, length):
    batch = sampled(name, seed, length, size=7)
    task = TASKS[name]()
    noise = torch.from_numpy(stream(seed, "order").normal(0, 0.3, batch.targets.shape)).float()
    outputs = batch.targets + noise
    pieces = [slice(0, 2), slice(2, 3), slice(3, 7)]
    parts = [(p, outputs[s, : p.targets.shape[1]]) for s in pieces for p in [batch.select(s)]]
    whole, cut = task.score([(batch, outputs)]), task.score(parts)
    assert cut.model_dump() == pytest.approx(whole.model_dump())


@every_task
def test_loss_and_score_can_be_batched_over_runs(name):
    task = TASKS[name]()
    batch = sampled(name, 0, 6)
    kind = type(batch)
    outputs = batch.targets + torch.tensor([0.0, 0.2, 0.5])[:, None, None, None]

    def of(outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return task.loss(outputs, kind(*batch.tensors)), task.right(outputs, batch)

    losses, rights = torch.vmap(of)(outputs)
    for r in range(3):
        torch.testing.assert_close(losses[r], task.loss(outputs[r], batch))
        assert torch.equal(rights[r], task.right(outputs[r], batch))


@every_task
def test_a_sample_is_shown_as_it_was_drawn(name):
    task = TASKS[name]()
    batch = sampled(name, 3, 9)
    source, target = task.shown(batch, 2)
    if name == "dnc_search":
        asked = source[-1].removesuffix("?")
        assert target == tuple(str(i) for i, s in enumerate(source[:-1]) if s == asked)
    elif name == "dnc_logic":
        assert target == ("⊤" if task.answer("".join(source)) else "⊥",)
    else:
        rows = ["".join(step[c] for step in source) for c in range(task.channels)]
        wanted = ["".join(step[c] for step in target) for c in range(task.channels)]
        assert task.answer(*rows) == " ".join(wanted)


# --- the term for close states --------------------------------------------------------------------


def test_the_closest_pairs_of_four_states_by_hand():
    """Cosines 1 (1, 2), 0.6 (1, 3 and 2, 3), 0.8 (3, 4), 0 (1, 4 and 2, 4)."""
    states = torch.tensor([[[1.0, 0.0], [2.0, 0.0], [0.6, 0.8], [0.0, 5.0]]])
    whole = torch.tensor([4])
    for pairs, cosines in ((1, [1]), (2, [1, 0.8]), (4, [1, 0.8, 0.6, 0.6]), (6, [3, 0, 0])):
        expected = 1 - sum(cosines) / pairs
        assert closest_pairs(states, whole, pairs).item() == pytest.approx(expected, abs=1e-6)
    assert closest_pairs(states, torch.tensor([3]), 2).item() == pytest.approx(1 - 1.6 / 2)
    both = torch.cat([states, states])
    mean = closest_pairs(both, torch.tensor([4, 3]), 2).item()
    assert mean == pytest.approx((0.1 + 0.2) / 2)


def test_close_states_have_the_gradient_of_finite_differences():
    states = torch.from_numpy(stream(0, "data").normal(size=(2, 6, 3))).requires_grad_()
    lengths = torch.tensor([6, 5])
    assert torch.autograd.gradcheck(lambda x: closest_pairs(x, lengths, 5), (states,))
    closest_pairs(states, lengths, 5).backward()
    assert states.grad[1, 5].abs().max() == 0  # padding
    # A step along the gradient draws the closest pairs together.
    nearer = (states - 0.01 * states.grad).detach()
    assert closest_pairs(nearer, lengths, 5) < closest_pairs(states, lengths, 5)


def test_close_states_can_be_batched_over_runs():
    states = torch.from_numpy(stream(0, "data").normal(size=(3, 2, 6, 4)))
    lengths = torch.tensor([6, 4])
    together = torch.vmap(lambda x: closest_pairs(x, lengths, 5))(states)
    alone = torch.stack([closest_pairs(x, lengths, 5) for x in states])
    torch.testing.assert_close(together, alone)


def test_more_pairs_than_there_are_is_an_error():
    with pytest.raises(RelengthError, match="4 steps has 6 pairs of states, and the 7 closest"):
        closest_pairs(torch.ones(1, 4, 2), torch.tensor([4]), 7)


# --- the protocol ---------------------------------------------------------------------------------

SHORT = {
    **{"steps": 400, "batch_size": 2, "mean_of": 5, "select_from": 200, "curve_every": 100},
    "test_slots": 60,
}
SMALL = {"hidden_size": 8, "slots": 6, "width": 4, "read_heads": 2}


def spec(
    name: str = "dnc_sort", controller: str = "peephole", constraint: str = "both", seed: int = 0,
    **training,
) -> RunSpec:  # fmt: skip
    return make_spec(
        task={"name": name, **TINY, "extended_lengths": (4, 12), "watched": (6, 7)},
        model={
            **{"name": "Constrained DNC", **SMALL},
            **{"controller": controller, "constraint": constraint},
        },
        training={"name": "state_space", **SHORT, **training},
        scale="smoke",
        seed=seed,
    )


def told(course: Course, losses: list[float]) -> None:
    """Take a course through intervals with these losses on longer samples."""
    for i, loss in enumerate(losses):
        course.progress.step += 10
        watched = {"6": 0.5, "7": 0.25} if course.shown else {}
        scores = Scores(Measured(0.5, loss), Measured(0.9, 1.0 + i), watched)
        course.end_epoch(float(i), scores, lambda i=i: {"at": torch.tensor(i)})


@pytest.mark.parametrize(("select_from", "first"), [(0, 0), (10, 0), (11, 1), (200, 19), (400, 39)])
def test_the_lowest_running_mean_from_a_step_on_selects(select_from, first):
    course = Course(spec(select_from=select_from))
    losses = stream(1, "data").uniform(0.1, 1.0, 40)
    losses[3:9] = [0.015, 0.014, 0.013, 0.012, 0.011, 0.01]  # lowest before anything is learned
    told(course, losses.tolist())
    means = [losses[max(0, i - 4) : i + 1].mean() for i in range(40)]
    selected = first + int(np.argmin(means[first:]))
    assert course.progress.kept["selected"][0] == selected
    assert course.progress.kept["selected"][1]["at"] == selected
    assert course.progress.kept["last"][0] == 39 and course.progress.finished
    assert (selected < 20) == (select_from < 200)


def test_the_curve_has_a_point_per_hundred_steps_and_means_of_what_lies_between():
    course = Course(spec())
    told(course, [0.5] * 40)
    curve = course.progress.curve
    assert [point["step"] for point in curve] == [100, 200, 300, 400]
    assert [point["train_loss"] for point in curve] == [4.5, 14.5, 24.5, 34.5]
    assert curve[0]["watched_accuracy"] == {"6": 0.5, "7": 0.25}
    assert course.progress.kept["best_iid"][0] == 9, "looked at for these points alone"
    assert len(course.progress.latest) == 5


def test_the_curve_ends_with_the_last_interval():
    course = Course(spec(steps=250))
    told(course, [0.5] * 25)
    assert [point["step"] for point in course.progress.curve] == [100, 200, 250]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"select_from": 410}, "nothing could be selected from step 410 on, of 400"),
        ({"curve_every": 25}, "curve_every is a multiple of validate_every, which is 10"),
        ({"pairs": 16}, "6 steps has 15 pairs of states, and the 16 closest are asked for"),
        ({"test_slots": 5}, "memory of 6 slots can be enlarged for a test, and not become one of"),
        ({"alpha": 1.5}, "alpha"),
    ],
)
def test_impossible_settings_are_refused_before_anything_is_trained(given, said):
    with pytest.raises(RelengthError, match=said):
        spec(**given)


def test_inputs_longer_than_the_memory_are_not_trained_on():
    """They are tested, for what a full memory does."""

    def made(longest):
        sizes = {"train_lengths": (2, longest), "test_lengths": (2, 8), "iid_length": 5}
        return make_spec(
            task={"name": "dnc_copy", **sizes, "dev_length": 8},
            model={"name": "Constrained DNC", **SMALL, "slots": 6},
            training={"name": "state_space", "test_slots": None},
            scale="smoke",
            seed=0,
        )

    assert made(6).task.tests[-1] == "8"
    with pytest.raises(RelengthError, match="6 slots has no room for inputs of length 7"):
        made(7)


def test_a_memory_is_enlarged_in_models_alone_that_can():
    task, training = {"name": "dnc_copy"}, {"name": "state_space", "test_slots": 500}
    with pytest.raises(RelengthError, match="test_slots: model SRNN has no memory"):
        make_spec(task=task, model="SRNN", training=training, scale="smoke", seed=0)


def test_pairs_are_asked_for_in_regularised_models_alone():
    assert spec(constraint="compression", pairs=16).training.pairs == 16


def test_other_tasks_are_refused():
    with pytest.raises(RelengthError, match="panm_copy is none"):
        make_spec(
            task="panm_copy", model="LSTM", training={"name": "state_space"}, scale="paper", seed=0
        )


class Plain(nn.Module):
    """Outputs and states that are given."""

    def __init__(self, outputs: torch.Tensor, states: torch.Tensor, regularised: bool):
        super().__init__()
        self.outputs, self.states, self.regularised = outputs, states, regularised

    def forward(self, batch: Batch, key: object = None) -> torch.Tensor:
        return self.outputs

    def with_states(self, batch: Batch, key: object = None) -> tuple[torch.Tensor, torch.Tensor]:
        return self.outputs, self.states


def test_a_regularised_model_minimises_the_weighted_mean_of_two_losses():
    own = spec(alpha=0.75, pairs=2)
    batch = own.task.sample(stream(0, "data"), 2, 3)
    outputs = batch.targets + 0.5
    states = torch.from_numpy(stream(1, "data").normal(size=(2, 8, 5)))
    close = closest_pairs(states, batch.input_lengths, 2)
    for regularised, expected in ((True, 0.75 * 0.25 + 0.25 * close.item()), (False, 0.25)):
        model = Plain(outputs, states, regularised)
        loss = own.training.loss(own.task, model, batch, None)
        assert loss.item() == pytest.approx(expected, abs=1e-6)


# --- whole runs -----------------------------------------------------------------------------------

ROWS = {
    "STATEFUL-BASELINE": ("lstm", "none"),
    "STATELESS-BASELINE": ("ffnn", "none"),
    "COMPR": ("peephole", "compression"),
    "REG": ("peephole", "regularisation"),
    "COMPR&REG": ("peephole", "both"),
}


@pytest.fixture
def plain(monkeypatch):
    """Models in their readable form: kernels have tests of their own, and are slow to compile."""
    monkeypatch.setattr(FreeRunning, "fused", False)


QUICK = {"steps": 20, "select_from": 10, "curve_every": 10, "test_slots": 9}


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row, marks=() if row in ("STATELESS-BASELINE", "COMPR&REG") else pytest.mark.weekly
        )
        for row in ROWS
    ],
)
def test_a_run_tests_two_memories_and_records_what_they_do(row, plain):
    own = spec("dnc_copy", *ROWS[row], **QUICK)
    assert own.row == row
    result = train(own)
    kept = result.checkpoints
    assert set(kept) == {"selected", "best_iid", "last", "extended"}
    assert set(kept["selected"]["tests"]) == set(own.task.tests)
    assert set(kept["extended"]["tests"]) == {"4", "12"}
    assert kept["extended"]["epoch"] == kept["selected"]["epoch"]
    assert result.model.slots == 6, "the larger memory is of the further tests alone"
    memory = own.training.traces(own, result.model, "cpu")["memory"]
    modes = memory["modes"]
    steps = 5 * (5 + 1)  # samples, and steps of each phase
    for gate, values in (("write", 1), ("read", 2)):
        assert {phase: sum(bins) for phase, bins in modes[gate].items()} == {
            "encoding": steps * values, "decoding": steps * values
        }  # fmt: skip
    assert ("states" in memory) == (row != "STATELESS-BASELINE")
    if "states" in memory:
        assert memory["states"]["shape"] == [5, 18, 8] and memory["states"]["read_steps"] == 9


def test_runs_in_a_stack_are_the_runs_alone(plain):
    specs = [spec("dnc_search", seed=seed, precision="float64", **QUICK) for seed in (0, 1)]
    assert stacks(specs, most=4) == [specs]
    together = Stack(specs)
    while not together.finished:
        together.run_epoch()
    results = together.results()
    for own in specs:
        alone, stacked = train(own), results[own.key]
        assert [p["train_loss"] for p in stacked.curve] == pytest.approx(
            [p["train_loss"] for p in alone.curve], rel=1e-8
        )
        assert [p["watched_accuracy"] for p in stacked.curve] == [
            p["watched_accuracy"] for p in alone.curve
        ]
        assert set(stacked.checkpoints) == set(alone.checkpoints)
        for name, checkpoint in alone.checkpoints.items():
            for test, metrics in checkpoint["tests"].items():
                assert stacked.checkpoints[name]["tests"][test] == pytest.approx(metrics, rel=1e-8)


def test_recorded_states_are_the_models_up_to_their_rounding():
    import base64

    states = torch.from_numpy(stream(0, "data").normal(size=(4, 6, 5)) * [5.0, 3, 2, 1, 0.5])
    kept = traces._principal(states)
    values = np.frombuffer(base64.b64decode(kept["values"]), np.int8).reshape(kept["shape"])
    assert kept["shape"] == [4, 6, 5] and kept["explained"] == pytest.approx(1)
    points = torch.from_numpy(values.astype(float) * kept["unit"]).flatten(0, 1)
    apart = torch.cdist(states.flatten(0, 1), states.flatten(0, 1))
    assert (torch.cdist(points, points) - apart).abs().max() < 5**0.5 * kept["unit"]


def test_histograms_count_every_value_once():
    values = torch.tensor([0.0, 0.01, 0.49, 0.51, 0.99, 1.0])
    bins = traces._histogram(values)
    assert sum(bins) == 6 and bins[0] == 2 and bins[-1] == 2 and bins[9] == bins[10] == 1
