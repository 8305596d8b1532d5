"""Numbers of a controller's states and a memory's gates, against paths and gates made by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relength.papers.dnc import states
from relength.specs import registry

STEPS, SAMPLES, WIDTH = 31, 8, 6


def noise(seed: int, scale: float, shape: tuple[int, ...] = (SAMPLES, STEPS, WIDTH)) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape) * scale


def numerals(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 5, (SAMPLES, STEPS))


def spots(seed: int) -> np.ndarray:
    """Paths that jump between five places, one per numeral."""
    return noise(seed, 5, (5, WIDTH))[numerals(seed)] + noise(seed, 0.2)


@pytest.mark.parametrize("seed", range(3))
def test_a_straight_path_and_a_random_walk_never_return(seed):
    assert states.returns(np.cumsum(noise(seed, 0.3) + 1, axis=1)) == (0, None)
    assert states.returns(np.cumsum(noise(seed, 1) + 0.3, axis=1)).often < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_coming_to_rest_is_no_return(seed):
    shrinking = np.exp(-np.arange(STEPS) / 4)[:, None] * noise(seed, 1, (SAMPLES, 1, WIDTH))
    assert states.returns(shrinking + noise(seed, 0.005)).often < 0.02


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("trembling", [0.01, 0.05, 0.2])
def test_trembling_at_one_place_is_no_return_and_jumping_still_is(seed, trembling):
    """Relative to the spread of states that have been elsewhere before."""
    settled = noise(seed, 1)
    settled[:, 5:] = noise(seed + 9, trembling)[:, 5:]
    far = states.LEFT * states._spread(np.concatenate([spots(seed), settled], axis=1))
    assert states.returns(settled, far).often < 0.05
    assert states.returns(spots(seed), far).often == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_states_without_an_order_return_as_often_as_shuffled_ones(seed):
    assert states.returns(noise(seed, 1)).often == pytest.approx(1, abs=0.1)
    assert states.returns(spots(seed)).often == pytest.approx(1, abs=0.1)
    assert states.returns(noise(seed, 1)).late == pytest.approx(1, abs=0.1)


def circle(turns_of: int) -> np.ndarray:
    turn = 2 * np.pi * np.arange(STEPS) / turns_of
    return np.stack([np.cos(turn), np.sin(turn)], -1)[None] + noise(0, 0.05, (1, STEPS, 2))


def test_a_circle_returns_more_often_than_chance():
    assert states.returns(circle(7)).often > 1


def test_states_on_a_circle_return_after_a_turn():
    step = np.exp(2j * np.pi * np.arange(STEPS) / 7)
    apart = np.abs(step[:, None] - step)
    assert set(states.first_returns(states.returned(apart, 0.1, 1.0))) == {7}
    assert states.returns(circle(4)).late < states.returns(circle(10)).late


def test_a_path_that_never_comes_back_has_no_return_time():
    apart = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6)))
    assert states.first_returns(states.returned(apart, 0.5, 2.0)) == []


def test_the_more_steady_movement_the_fewer_returns():
    drift = np.arange(STEPS)[:, None] * np.ones(WIDTH)
    found = [states.returns(spots(1) + speed * drift).often for speed in (0, 0.1, 0.4, 4)]
    assert found == sorted(found, reverse=True) and found[-1] == 0


@given(st.integers(0, 50), st.floats(0.01, 100))
def test_returns_have_no_unit_no_origin_and_no_direction(seed, unit):
    path = spots(seed)[:2]
    there = states.returns(path).often
    assert states.returns(path * unit + 3).often == pytest.approx(there, rel=1e-6)
    turned = path @ np.linalg.qr(noise(seed, 1, (WIDTH, WIDTH)))[0]
    assert states.returns(turned).often == pytest.approx(there, rel=1e-6)


def letters(digits: np.ndarray) -> list[str]:
    return ["".join("abcde"[digit] for digit in row) for row in digits]


def test_a_place_per_numeral_is_explained_by_it_and_another_order_is_not():
    assert states.explained(spots(2), letters(numerals(2))) > 0.98
    assert states.explained(spots(2), letters(numerals(3))) < 0.1
    # two places, one sample: total variance 2 · 1, within the letter a 2/3, within b 0
    path = np.array([[[0.0], [0], [2], [2]]])
    assert states.explained(path, ["aaab"]) == pytest.approx(1 - (8 / 3) / 4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("drift", [0, 1, 30])
def test_neighbours_have_the_same_numeral_in_clusters_however_far_they_drift(seed, drift):
    """Drift far beyond the spread of clusters hides them from the share of variance."""
    read = np.random.default_rng(seed).integers(0, 5, (32, STEPS))
    places = noise(seed, 5, (5, WIDTH))[read] + noise(seed, 0.2, (32, STEPS, WIDTH))
    places += drift * np.arange(STEPS)[:, None]
    assert states.neighbours(places, letters(read)) > 0.6
    assert abs(states.neighbours(places, letters(np.roll(read, 1, axis=0)))) < 0.1
    assert (states.explained(places, letters(read)) > 0.9) == (drift == 0)


def test_equal_letters_tell_nothing_of_neighbours():
    assert states.neighbours(noise(1, 1), ["a" * STEPS] * SAMPLES) == 0


def kept(values: np.ndarray) -> dict:
    from relength.training.traces import small_integers

    return small_integers(values)


def test_an_array_comes_back_up_to_half_a_unit():
    values = noise(4, 3)
    small = kept(values)
    assert np.abs(states.decoded(small) - values).max() <= small["unit"] * 0.5001


def test_movement_of_paths_that_settle_at_one_place():
    reading = spots(5)
    reading[:, -1] = noise(5, 0.01, (SAMPLES, WIDTH))  # all samples end at the origin
    writing = np.zeros((SAMPLES, 10, WIDTH))
    writing[:, :4] = noise(6, 5, (SAMPLES, 4, WIDTH))
    record = {
        **kept(np.concatenate([reading, writing], axis=1)),
        "read_steps": STEPS,
        "read": letters(numerals(5)),
        "portraits": {"decoding": ...},
    }
    found = states.movement(record)
    assert found["state_ends"] < 5 and found["state_scatter"] > 60
    assert found["state_moves"] < 5 and found["state_returns"] > 80
    # No digit is left that a sum in another order would change.
    assert all(value == round(value, states.DIGITS) for value in found.values())
    del record["portraits"]["decoding"]
    assert set(states.movement(record)) == set(found) - {"state_moves", "state_returns_writing"}


def bins(*filled: tuple[int, int]) -> list[int]:
    counts = [0] * 20
    for place, count in filled:
        counts[place] = count
    return counts


def modes(test: str = "15") -> dict:
    """Allocation while reading and content while writing; reads half and half, spread."""
    return {
        "test": test,
        "write": {"encoding": bins((19, 10)), "decoding": bins((0, 10))},
        "read": {"encoding": [1] * 20, "decoding": bins((0, 5), (19, 5))},
    }


def test_gates_of_histograms_by_hand():
    found = states.gates(modes())
    assert found["write_gate_reading"] == pytest.approx(97.5)
    assert found["write_gate_writing"] == pytest.approx(2.5)
    assert found["write_by_phase"] == 100  # allocation while reading, content while writing
    assert found["write_mixed"] == pytest.approx(2.5)
    assert found["read_gate_reading"] == found["read_gate_writing"] == pytest.approx(50)
    assert found["read_by_phase"] == 0  # half and half in both
    assert found["modes_mixed"] == 0  # reads are, writes are not
    both = modes() | {"write": {"encoding": [1] * 20, "decoding": [1] * 20}}
    assert states.gates(both)["modes_mixed"] == 100
    along = {"encoding": bins((2, 10)), "decoding": bins((17, 10))}
    assert states.gates(modes() | {"read": along})["read_by_phase"] == 100
    assert found["gates_peaked"] == pytest.approx((100 + 100 + 10 + 50) / 4)


def record_of(values: dict, accuracy: float) -> dict:
    """A run with these states and one accuracy up to length 45."""
    tests = {str(n): {"digit_accuracy": accuracy if n <= 45 else 0.0} for n in range(2, 101)}
    return {
        "spec": {"task": {"name": "dnc_sort"}},
        "checkpoints": {"selected": {"tests": tests}},
        "memory": {
            "modes": modes(),
            "states": {
                **values,
                **{"test": "30", "read_steps": STEPS, "read": letters(numerals(7))},
                "portraits": {"encoding": ...},
            },
        },
    }


def test_what_neither_generalises_nor_has_loops_says_nothing_of_either():
    drift = kept(np.cumsum(noise(3, 0.3) + 1, axis=1))
    assert "loops_accompany" not in states.shares(record_of(drift, 0.5))["30"]
    assert states.shares(record_of(drift, 0.95))["30"]["loops_accompany"] == 0


@pytest.mark.parametrize(
    ("small", "large", "numbers"),
    [(14, 40, None), (15, 45, {"memory_gain": 300}),  # not learned; nothing beyond training to keep
     (20, 40, {"memory_gain": 200, "memory_keeps": 500}),
     (30, 18, {"memory_gain": 60, "memory_keeps": 20}),
     (30, 0, {"memory_gain": 0, "memory_keeps": 0})],
)  # fmt: skip
def test_what_a_larger_memory_gives_is_asked_of_runs_that_have_learned(small, large, numbers):
    record = record_of(kept(spots(7)), 0.5)
    reached = {"selected": small, "extended": large}
    for name, last in reached.items():
        tests = {str(n): {"digit_accuracy": float(n <= last)} for n in range(2, 51)}
        record["checkpoints"][name] = {"tests": tests}
    found = states.shares(record)["15"]
    assert {name: found[name] for name in found if name.startswith("memory")} == (numbers or {})
    assert found.get("learned") == (None if numbers is None else 100)
    assert set(found) <= set(registry.papers()["dnc"].metrics)


@pytest.mark.parametrize(("accuracy", "together"), [(0.95, 100), (0.5, 0)])
def test_loops_accompany_runs_that_generalise(accuracy, together):
    record = record_of(kept(spots(7)), accuracy)
    found = states.shares(record)
    assert set(found) == {"15", "30"}
    assert found["30"]["loops_accompany"] == found["15"]["peaks_accompany"] == together
    assert ("generalises" in found["15"]) == ("poor" not in found["15"]) == (accuracy > 0.9)
    assert "perfect" not in found["15"]
    settles = found["30"]["state_ends"] <= 50
    assert found["30"]["perfect_and_settles"] == 100 * (settles and accuracy >= 0.95)
    sure = states.shares(record_of(kept(spots(7)), 0.995))
    assert sure["15"]["perfect"] == 100 and sure["30"]["perfect_and_settles"] == 100 * settles
    assert set(found["15"]) | set(found["30"]) <= set(registry.papers()["dnc"].metrics)
    assert states.shares({"spec": record["spec"]}) == {}
