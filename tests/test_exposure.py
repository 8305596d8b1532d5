"""Address exposure: the simulation is the process it stands for, the page says what it gave."""

import numpy as np
import pytest

from relength import kept
from relength.papers.panm import covering, exposure


def test_an_address_is_exposed_by_the_first_sequence_that_covers_it():
    """Against a loop over sequences and their addresses, one by one."""
    random, addresses = np.random.default_rng(0), 37
    for _ in range(20):
        draws = [(int(random.integers(addresses)), int(random.integers(1, 8))) for _ in range(60)]
        first = {n: np.full(addresses, covering.NEVER) for n in range(1, 8)}
        seen = np.full(addresses, covering.NEVER)
        for number, (base, length) in enumerate(draws, start=1):
            first[length][base] = min(first[length][base], number)
            covered = (base + np.arange(length)) % addresses
            seen[covered] = np.minimum(seen[covered], number)
        assert (covering.exposed(first) == seen).all()


def test_sequences_as_long_as_the_address_space_need_one():
    assert covering.sequences_needed(8, (8,), np.random.default_rng(0)) == 1


def test_single_addresses_are_coupons():
    """With length 1 the problem is the coupon collector's: N times the N-th harmonic number."""
    found = [covering.sequences_needed(64, (1,), np.random.default_rng(i)) for i in range(300)]
    expected = 64 * (1 / np.arange(1, 65)).sum()
    assert np.mean(found) == pytest.approx(expected, rel=0.05)


def test_overlapping_ranges_need_more_than_coupons():
    n, addresses = 400, 4000
    found = [
        covering.sequences_needed(addresses, (10,), np.random.default_rng(i)) for i in range(60)
    ]
    assert np.mean(found) == pytest.approx(exposure.arcs(n), rel=0.1)
    assert np.mean(found) > 1.15 * exposure.coupons(n)


def mean_number_of_arcs(n: int) -> float:
    """Arcs of the n-th part of a circle until it is covered, on average.

    Stevens (1939): k arcs of length a cover it with probability sum_j (-1)^j C(k,j) (1-ja)^(k-1).
    One minus that, summed over k, leaves a finite sum; its terms are huge and of both signs, so
    each is rounded to a multiple of 2^-200 and no sooner.
    """
    terms = (
        (-1) ** (j + 1) * ((n * n * (n - j) ** (j - 1) << 200) // j ** (j + 1)) for j in range(1, n)
    )
    return 1 + sum(terms) / (1 << 200)


def test_the_formula_for_arcs_tends_to_the_exact_mean_from_below():
    """Two arcs of half a circle never cover it, three do with 1/4: the mean is 5."""
    assert mean_number_of_arcs(2) == 5
    ratios = [exposure.arcs(n) / mean_number_of_arcs(n) for n in (30, 100, 300, 1000)]
    assert ratios == sorted(ratios) and ratios[0] > 0.9 and 0.96 < ratios[-1] < 1


@pytest.fixture(scope="module")
def simulated():
    return exposure.simulate(), exposure.in_training()


def test_what_is_kept_is_what_a_simulation_gives_again(simulated):
    data, training = simulated
    assert covering.simulated().equals(data[["addresses", "repeat", "sequences"]])
    needed = training[training["scale"] == "reduced"][["bits", "repeat", "needed"]]
    assert covering.simulated_in_training().equals(needed.reset_index(drop=True))


def test_pages_and_commands_simulate_once(monkeypatch, tmp_path):
    made, tables = [], {"simulated": covering.simulate(), "trained": covering.in_training()}
    monkeypatch.setattr(kept, "FOLDER", tmp_path / "empty")
    monkeypatch.setattr(covering, "simulated", lambda: made.append(1) or tables["simulated"])
    monkeypatch.setattr(
        covering, "simulated_in_training", lambda: made.append(2) or tables["trained"]
    )
    for _ in range(3):
        exposure.simulate(), exposure.in_training()
    assert sorted(made) == [1, 2]


def test_what_is_said_of_claims_is_what_was_computed(simulated):
    data, training = simulated
    found = {one.claim: one for one in exposure.checked(data, training)}
    extreme = data[data["addresses"] == exposure.EXTREME]["sequences"]
    assert extreme.median() > 1.1 * exposure.coupons(exposure.EXTREME / exposure.LENGTH)
    # A quarter more than n ln n, the margin for costs: some simulations are within it, some not.
    (n,) = data.loc[data["addresses"] == exposure.EXTREME, "n"].unique()
    near = (abs(extreme / exposure.coupons(n) - 1) <= 0.25).sum()
    assert 0 < near < exposure.REPEATS and found["panm-016"].decision.agree == near
    assert found["panm-016"].decision.outcome == "inconclusive"
    assert "panm-015" not in found  # of the order of anything is no claim that could fail
    assert all(found[c].decision.outcome == "reproduced" for c in ("panm-013", "panm-017"))
    # 1,000 letters are asked about after five examples as long: more than there are addresses.
    assert found["panm-018"].decision.outcome == "contradicted"
    assert (training["needed"] < training["seen"]).all()


@pytest.mark.parametrize(
    ("factors", "outcome"),
    [
        ((1, 1.2, 0.8, 1.24, 0.76), "reproduced"),  # a quarter is the margin, a tenth was
        ((1.26, 1.3, 1.4, 1.3, 1.3), "contradicted"),
        ((1, 1, 1, 1, 1.3), "inconclusive"),
    ],
)
def test_the_example_is_a_claim_of_cost(simulated, factors, outcome):
    data, training = simulated
    n = exposure.EXTREME / exposure.LENGTH
    made = data.copy()
    made["sequences"] = made["sequences"].astype(float)
    extreme = made["addresses"] == exposure.EXTREME
    made.loc[extreme, "sequences"] = [factor * exposure.coupons(n) for factor in factors]
    found = {one.claim: one for one in exposure.checked(made, training)}
    assert found["panm-016"].decision.outcome == outcome


def test_every_exhibit_has_its_alt_text_and_numbers(simulated):
    data, training = simulated
    shown = exposure.figure(data, 1)
    assert 'role="img"' in shown.html
    assert exposure.over_coupons(data)[exposure.EXTREME] == pytest.approx(1.25, abs=0.05)
    assert exposure.table(data).html.count("<tr>") == 1 + data["addresses"].nunique()
    assert exposure.training_table(training).html.count("<tr>") == 5
    text = exposure.lines(exposure.checked(data, training))
    assert len(text.splitlines()) == 4
    assert exposure.verdicts(exposure.checked(data, training)).text == text
