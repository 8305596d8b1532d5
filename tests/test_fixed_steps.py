"""A number of steps over fixed samples: every sample as often as any other, the last weights."""

from itertools import islice

import numpy as np
import pytest

from relength.errors import RelengthError
from relength.specs.spec import make_spec
from relength.training import train
from relength.training.protocols.fixed_steps import FixedSteps


def spec(seed: int = 0, **fields):
    sizes = {"train_size": 20, "validation_size": 6, "test_size": 6}
    return make_spec(
        task={"name": "scan_40", **sizes},
        model={"name": "U. TRM", "width": 8, "heads": 2, "inner_size": 8},
        training={"name": "fixed_steps", "steps": 8, "validate_every": 4, "batch_size": 6} | fields,
        scale="smoke",
        seed=seed,
    )


def taken(protocol: FixedSteps, samples: int, seed: int = 0) -> list[np.ndarray]:
    """The positions of every step."""
    run, data = spec(seed), range(samples)
    steps = (protocol.order(run, data, i) for i in range(protocol.intervals))
    return [positions for interval in steps for positions in interval]


@pytest.mark.parametrize("samples", [7, 20, 24, 300])
@pytest.mark.parametrize("every", [1, 5, 30])
def test_every_sample_is_taken_as_often_as_any_other(samples, every):
    """30 steps of 8: after each pass no sample was taken twice more than another."""
    steps = taken(FixedSteps(steps=30, validate_every=every, batch_size=8), samples)
    assert [len(positions) for positions in steps] == [8] * 30
    together = np.concatenate(steps)
    for start in range(0, len(together) - samples + 1, samples):
        assert len(set(together[start : start + samples])) == samples
    passes = [tuple(together[i * samples :][:samples]) for i in range(len(together) // samples)]
    assert len(set(passes)) == len(passes)  # each in an order of its own


def test_evaluations_change_nothing_of_the_order():
    often, never = (FixedSteps(steps=30, validate_every=n, batch_size=8) for n in (3, 30))
    for one, other in zip(taken(often, 50), taken(never, 50), strict=True):
        assert np.array_equal(one, other)
    assert not np.array_equal(taken(never, 50)[0], taken(never, 50, seed=1)[0])


def test_a_late_interval_begins_where_those_before_it_ended():
    late = FixedSteps(steps=10**6, validate_every=10, batch_size=8)
    steps = list(islice(late.order(spec(), range(100), 99_999), 10))
    assert len(steps) == 10
    place = 99_999 * 80 % 100  # samples of the pass that were taken before
    assert len(set(np.concatenate(steps)[: 100 - place])) == min(80, 100 - place)


def test_the_last_weights_are_tested_however_good_others_were():
    run = train(spec(learning_rate=1.0))  # so high that later weights are no better
    assert run.checkpoints["selected"]["epoch"] == run.checkpoints["last"]["epoch"] == 1
    assert run.checkpoints["selected"]["tests"] == run.checkpoints["last"]["tests"]
    assert run.cost["steps"] == 8
    assert FixedSteps().selection.words == "the longest training"


def test_the_curve_has_the_test_beyond_the_cut_off():
    points = train(spec()).curve
    assert [point["step"] for point in points] == [4, 8]
    assert all(0 <= point["watched_accuracy"] <= 1 for point in points)


@pytest.mark.parametrize("fields", [{"steps": 9}, {"clip_norm": 0.0}, {"epochs": 3}])
def test_impossible_settings_are_refused(fields):
    with pytest.raises(RelengthError, match=next(iter(fields))):
        spec(**fields)
