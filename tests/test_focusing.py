"""Shares of recorded attention, on samples whose path is known."""

import handmade
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relength.papers.mla import focusing
from relength.runs.store import frame
from relength.specs import registry
from relength.specs.experiments import experiment
from relength.tasks.copying import repeated

SOURCE = ["START", *"479812", "END"]


def sample(places: list[int]) -> dict:
    """A sample whose attention is on one position at each step."""
    written = [*"4" * (len(places) - 1), "EOS"]
    return {
        **{"test": "15", "source": SOURCE, "target": written, "prediction": written},
        "weights": np.eye(len(SOURCE))[places].tolist(),
    }


def looking(places: list[int], task: str = "copy") -> dict:
    """Make the part of a record that holds such a sample."""
    return {"spec": {"task": {"name": task}}, "attention": sample(places)}


@pytest.mark.parametrize(
    ("places", "forward", "single", "onwards"),
    [
        ([1, 2, 3, 4, 5], 100, 100, 100),
        ([1, 1, 1, 2, 2], 100, 100, 25),  # waiting is not going back
        ([1, 4, 5, 7, 7], 100, 50, 25),
        ([7, 6, 5, 4, 3], 0, 100, 0),  # back, one at a time
        ([1, 5, 4, 3, 2], 25, 75, 0),
        ([7, 2, 3, 7, 1], 50, 75, 25),  # far back is not far forward
    ],
)
def test_shares_of_steps_by_hand(places, forward, single, onwards):
    shares = {"focus_forward": forward, "focus_single": single, "focus_next": onwards}
    assert focusing.shares(looking(places)) == {"15": {**shares, "end_right": 100}}


@pytest.mark.parametrize(
    ("places", "waits"),
    [
        ([1, 2, 2, 2, 3, 3, 3, 4], 100),
        ([1, 2, 2, 3, 3, 3, 3, 4], 100),  # on before the digit is done, from where it was told of
        ([0, 1, 2, 3, 4, 5, 6, 7], 0),  # a step for every symbol, as in Copy
        ([1, 2, 2, 3, 4, 4, 5, 6], 50),
        ([1, 1, 1, 1, 1, 1, 1, 1], 100 * 4 / 7),  # more than is asked for is not better
    ],
)
def test_a_focus_waits_as_often_as_a_digit_is_written_once_more(places, waits):
    record = looking(places, "recopy")
    record["attention"]["target"] = [*"1444555", "EOS"]
    assert focusing.shares(record)["15"]["focus_waits"] == pytest.approx(waits)


def test_a_focus_that_glides_does_not_wait():
    record = looking([1, 2, 3], "recopy")
    record["attention"]["target"] = ["4", "4", "4", "EOS"]
    record["attention"]["weights"] = [[0, 1 - s, s, 0, 0, 0, 0, 0] for s in (0.0, 0.4, 0.8)]
    assert focusing.shares(record)["15"]["focus_waits"] == 0


def test_where_no_digit_is_written_twice_the_focus_is_not_to_wait():
    record = looking([1, 2, 3], "recopy")
    record["attention"]["target"] = ["1", "2", "EOS"]
    assert focusing.shares(record)["15"]["focus_waits"] == 100


def test_what_is_written_once_more_is_what_the_rule_repeats():
    for digits in ("4", "7798", "0123", "55"):
        target = repeated(tuple(digits))
        assert (~focusing.once_more(target)).sum() == len(digits)


@given(st.lists(st.integers(0, len(SOURCE) - 1), min_size=2, max_size=12))
def test_the_centre_of_one_position_is_that_position(places):
    assert focusing.centre(sample(places)).tolist() == places
    (shares,) = focusing.shares(looking(places)).values()
    assert (shares["focus_forward"] == 100) == (places == sorted(places))
    moves = np.diff(places)
    assert shares["focus_single"] == pytest.approx(100 * (moves <= 1).mean())
    (turned,) = focusing.shares(looking(places[::-1])).values()  # what went back goes forward
    assert turned["focus_single"] == pytest.approx(100 * (moves >= -1).mean())


def test_a_focus_that_has_left_the_source_goes_nowhere():
    lost = looking([1, 2, 3])
    lost["attention"]["weights"][2] = [0.0] * len(SOURCE)
    (shares,) = focusing.shares(lost).values()
    assert {**shares, "end_right": 50} == dict.fromkeys(shares, 50)


@pytest.mark.parametrize("record", [{}, {"attention": None}])
def test_without_a_sample_there_are_no_shares(record):
    assert focusing.shares(record) == {}


def test_an_output_that_ends_at_once_has_no_share_of_any_step():
    (shares,) = focusing.shares(looking([1], "recopy")).values()
    assert set(shares) == set(registry.papers()["mla"].metrics)
    steps = {name: share for name, share in shares.items() if name.startswith("focus")}
    assert {name for name, share in steps.items() if share} == {"focus_waits"}  # EOS is asked for


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("1 2 3 EOS", 100),
        ("1 2 EOS", 0),  # too early
        ("1 2 3 3 EOS", 0),  # too late
        ("1 2 3", 0),  # cut off while it goes on
        ("1 3 EOS", 100),  # its first error is another
    ],
)
def test_an_end_is_wrong_where_the_first_error_is_one(written, right):
    record = looking([1, 2, 3])
    record["attention"] |= {"target": [*"123", "EOS"], "prediction": written.split()}
    assert focusing.shares(record)["15"]["end_right"] == right


def test_claims_find_them_at_the_test_that_the_sample_is_of():
    spec = next(iter(experiment("mla_table2").specs("reduced", [0])))
    found = frame([handmade.record(spec, lambda *_: 1.0)])
    there = found[found["focus_forward"].notna()]
    assert set(there["test"]) == {"15"} and set(there["checkpoint"]) == {"selected"}
