"""Where recorded attention looks, on samples whose path is known."""

import handmade
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relength import focusing
from relength.papers import experiment
from relength.store import frame

SOURCE = ["START", *"479812", "END"]


def sample(places: list[int]) -> dict:
    """A sample whose attention is on one position at each step."""
    written = [*"4" * (len(places) - 1), "EOS"]
    return {
        **{"test": "15", "source": SOURCE, "target": written, "prediction": written},
        "weights": np.eye(len(SOURCE))[places].tolist(),
    }


@pytest.mark.parametrize(
    ("places", "forward", "single"),
    [
        ([1, 2, 3, 4, 5], 100, 100),
        ([1, 1, 1, 2, 2], 100, 100),  # waiting is not going back
        ([1, 4, 5, 7, 7], 100, 50),
        ([7, 6, 5, 4, 3], 0, 100),  # back, one at a time
        ([1, 5, 4, 3, 2], 25, 75),
    ],
)
def test_shares_of_steps_by_hand(places, forward, single):
    found = focusing.shares({"attention": sample(places)})
    assert found == {"15": {"focus_forward": forward, "focus_single": single}}


@given(st.lists(st.integers(0, len(SOURCE) - 1), min_size=2, max_size=12))
def test_the_centre_of_one_position_is_that_position(places):
    assert focusing.centre(sample(places)).tolist() == places
    (shares,) = focusing.shares({"attention": sample(places)}).values()
    assert (shares["focus_forward"] == 100) == (places == sorted(places))
    # Read from its end, what went back goes forward, and a step is as long as it was.
    (turned,) = focusing.shares({"attention": sample(places[::-1])}).values()
    assert turned["focus_single"] == pytest.approx(shares["focus_single"])


def test_a_focus_that_has_left_the_source_goes_nowhere():
    lost = sample([1, 2, 3])
    lost["weights"][2] = [0.0] * len(SOURCE)
    (shares,) = focusing.shares({"attention": lost}).values()
    assert shares == {"focus_forward": 50, "focus_single": 50}


@pytest.mark.parametrize("record", [{}, {"attention": None}, {"attention": sample([1])}])
def test_without_two_steps_there_are_no_shares(record):
    assert focusing.shares(record) == {}


def test_claims_find_them_at_the_test_that_the_sample_is_of():
    spec = next(iter(experiment("mla_table2").specs("reduced", [0])))
    found = frame([handmade.record(spec, lambda *_: 1.0)])
    there = found[found["focus_forward"].notna()]
    assert set(there["test"]) == {"15"} and set(there["checkpoint"]) == {"selected"}
