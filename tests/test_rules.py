"""Each verdict rule on numbers worked out by hand, and how often the rules are wrong."""

import numpy as np
import pytest
from handmade import amounts
from hypothesis import given, settings
from hypothesis import strategies as st

from relength.specs.margins import Level, Margin, Margins, load_margins
from relength.verdicts import rules, stats
from relength.verdicts.false_verdicts import PARTS, SITUATIONS, false_verdict_rates
from relength.verdicts.wording import number

MARGINS = load_margins()
POINTS = MARGINS.measures["accuracy"]
seeds = st.lists(st.sampled_from([0.0, 40.0, 60.0, 94.0, 96.0, 100.0]), min_size=1, max_size=6)


def test_a_verdict_never_shows_100_for_what_falls_short_of_it():
    """Two sequences of 50,000 are wrong, which two decimals do not show."""
    seen = rules.median_value([99.996] * 5, 100.0, POINTS, MARGINS).seen
    assert "median >99.99; printed 100" in seen
    assert [*map(number, (100, 99.994, 0.004, 0))] == ["100", "99.99", "<0.01", "0"]


def test_the_margins_are_those_of_the_design():
    assert Margin(absolute=5) == POINTS
    assert MARGINS.measures["edit_distance"] == Margin(absolute=0.5, relative=0.1)
    assert MARGINS.measures["length"] == Margin(relative=0.1)
    assert MARGINS.measures["cost_ratio"] == Margin(relative=0.25)
    assert MARGINS.levels["solved"] == Level(at_least=95)
    assert (MARGINS.level, MARGINS.least_seeds, MARGINS.sd_floor) == (0.05, 5, 0.5)
    assert MARGINS.stage_two == {"paper": 5, "reduced": 6}


def test_stage_two_is_never_smaller_than_stage_one():
    with pytest.raises(ValueError, match="4 seeds at scale paper, fewer than the 5"):
        Margins.model_validate(MARGINS.model_dump() | {"stage_two": {"paper": 4}})


def test_where_lower_is_better_the_lower_sample_is_better_and_numbers_keep_their_signs():
    few, many = [20.0] * 5, [40.0] * 5
    margin = MARGINS.measures["length"]
    for first, second, outcome in ((few, many, "reproduced"), (many, few, "contradicted")):
        found = rules.order(first, second, "better", margin, MARGINS, 0.0, lower_is_better=True)
        assert found.outcome == outcome and "-" not in found.seen
        turned = rules.order(second, first, "better", margin, MARGINS)
        assert (turned.outcome, turned.p_for) == (outcome, found.p_for)


@pytest.mark.parametrize(("value", "margin"), [(1.0, 0.5), (5.0, 0.5), (90.0, 9.0), (0.0, 0.5)])
def test_the_larger_of_two_margins_applies(value, margin):
    assert MARGINS.measures["edit_distance"].around(value) == pytest.approx(margin)


def test_a_share_of_a_count_meets_its_level_in_spite_of_rounding():
    assert MARGINS.levels["solved"].holds(100 * (1900 / 2000))
    assert not MARGINS.levels["solved"].holds(100 * (1899 / 2000))
    assert not MARGINS.levels["failed"].holds(50.0)


@pytest.mark.parametrize(
    ("agree", "n", "outcome"),
    [
        (3, 3, "inconclusive"),
        (4, 4, "inconclusive"),
        (5, 5, "reproduced"),
        (4, 5, "inconclusive"),
        (0, 5, "contradicted"),
        (7, 8, "reproduced"),
        (6, 8, "inconclusive"),
        (1, 8, "contradicted"),
        (9, 10, "reproduced"),
        (15, 20, "reproduced"),
        (14, 20, "inconclusive"),
        (5, 20, "contradicted"),
    ],
)
def test_majority(agree, n, outcome):
    decision = rules.majority([True] * agree + [False] * (n - agree), MARGINS)
    assert decision.outcome == outcome
    assert (decision.agree, decision.n) == (agree, n)


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([98, 99, 100, 96, 95], "reproduced"),
        ([98, 99, 100, 96, 94.9], "inconclusive"),
        ([0, 0, 10, 50, 94], "contradicted"),
        ([98, 99, 100, 96], "inconclusive"),
    ],
)
def test_value_printed_as_a_median_of_100(values, outcome):
    assert rules.median_value(values, 100, POINTS, MARGINS).outcome == outcome


def test_two_seeds_have_no_median_and_stay_themselves():
    assert rules.middle([[100, 80], [0, 90]]) == [[0, 90], [100, 80]]
    assert rules.middle([0, 100, 90]) == [[90]]


def test_a_value_is_contradicted_only_from_one_side():
    one_side, both = [0, 0, 10, 20, 30], [0, 0, 10, 100, 100]
    assert rules.median_value(one_side, 60, POINTS, MARGINS).outcome == "contradicted"
    assert rules.median_value(both, 60, POINTS, MARGINS).outcome == "inconclusive"


def test_a_seed_agrees_when_all_its_tests_do():
    values = np.array([[100, 100, 98]] * 4 + [[100, 100, 60]])
    decision = rules.median_value(values, [100, 100, 98.8], POINTS, MARGINS)
    assert (decision.agree, decision.n, decision.outcome) == (4, 5, "inconclusive")


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([60.1, 59.9, 60.5, 59.5, 60.0], "reproduced"),
        ([80.0, 81.0, 79.0, 80.5, 79.5], "contradicted"),
        ([60, 90, 20, 75, 40], "inconclusive"),
        ([60.1, 59.9, 60.5, 59.5], "inconclusive"),
    ],
)
def test_value_printed_as_mean_and_sd(values, outcome):
    printed = stats.Summary(60.0, 1.0, 5)
    assert rules.mean_value(values, printed, POINTS, MARGINS).outcome == outcome


@pytest.mark.parametrize(
    ("first", "second", "better", "on_par"),
    [
        ([100] * 5, [0] * 5, "reproduced", "contradicted"),
        ([0] * 5, [100] * 5, "contradicted", "contradicted"),
        ([100, 98, 97, 99, 100], [96, 96, 97, 98, 95.5], "contradicted", "reproduced"),
        ([100, 100, 0, 0, 0], [0, 0, 0, 0, 0], "inconclusive", "inconclusive"),
        ([100] * 4, [0] * 4, "inconclusive", "inconclusive"),
        ([0] * 5, [0] * 5, "contradicted", "reproduced"),
    ],
)
def test_order(first, second, better, on_par):
    assert rules.order(first, second, "better", POINTS, MARGINS).outcome == better
    assert rules.order(first, second, "on_par", POINTS, MARGINS).outcome == on_par


@pytest.mark.parametrize(
    ("ratios", "outcome"),
    [
        ([2.0, 1.6, 2.4, 2.5, 1.5], "reproduced"),
        ([2.0, 1.6, 2.4, 2.5, 3.0], "inconclusive"),
        ([3.0, 1.0, 4.0, 3.5, 2.6], "contradicted"),
        ([2.0, 2.0, 2.0, 2.0], "inconclusive"),
        ([], "inconclusive"),
    ],
)
def test_cost_ratio_of_two(ratios, outcome):
    assert rules.cost(ratios, 2.0, MARGINS.measures["cost_ratio"], MARGINS).outcome == outcome


def test_nearly_all_repeats_are_not_all():
    # 9 of 10 would be a majority beyond chance, but the rule for costs asks for every repeat.
    ratios = [2.0] * 9 + [9.0]
    decision = rules.cost(ratios, 2.0, MARGINS.measures["cost_ratio"], MARGINS)
    assert decision.outcome == "inconclusive"


def votes(*agreeing: int, n: int = 5) -> list[rules.Decision]:
    return [rules.majority([True] * k + [False] * (n - k), MARGINS) for k in agreeing]


def test_a_conjunction_needs_every_part():
    assert rules.conjunction(votes(5, 5, 5), MARGINS).outcome == "reproduced"
    assert rules.conjunction(votes(5, 5, 4), MARGINS).outcome == "inconclusive"


def test_parts_that_are_apart_lean_neither_way():
    """Samples that spread are never on par, so only the order counts as leaning to a claim."""
    low, high = [10.0, 20.0, 60.0, 70.0], [30.0, 50.0, 80.0, 90.0]
    better, apart = (
        rules.order(high, low, relation, POINTS, MARGINS) for relation in ("better", "on_par")
    )
    tie = rules.order([50.0] * 4, [51.0] * 4, "on_par", POINTS, MARGINS)
    assert [part.leans for part in (better, apart, tie)] == [True, False, True]
    assert amounts(rules.conjunction([better, apart, apart], MARGINS).seen) == [1, 1, 2]
    assert amounts(rules.conjunction([better, tie, apart], MARGINS).seen) == [2, 2, 1]
    assert amounts(rules.conjunction([apart, apart], MARGINS).seen) == [2]


def test_one_failing_part_contradicts_only_after_holm():
    # 0 of 5 has p = 1/32; over two parts that is 1/16. Six seeds make it 2/64, eight over eight
    # parts 8/256.
    assert rules.conjunction(votes(0), MARGINS).outcome == "contradicted"
    assert rules.conjunction(votes(5, 0), MARGINS).outcome == "inconclusive"
    assert rules.conjunction(votes(6, 0, n=6), MARGINS).outcome == "contradicted"
    assert rules.conjunction(votes(*[8] * 7, 0, n=8), MARGINS).outcome == "contradicted"
    assert [rules.seeds_for_parts(k, MARGINS) for k in (1, 2, 3, 4, 8)] == [5, 6, 6, 7, 8]


def test_stage_two_asks_for_what_holm_needs_and_at_least_what_its_scale_asks_for():
    for parts in range(1, 41):
        for scale, least in MARGINS.stage_two.items():
            n = rules.seeds_for_parts(parts, MARGINS, scale)
            assert n >= least and parts / 2**n <= MARGINS.level
            assert n == least or parts / 2 ** (n - 1) > MARGINS.level


def test_a_part_that_compares_two_samples_needs_fewer_seeds_than_votes_do():
    """5 against 5 have 252 splits, 6 against 6 have 924; the interval of a mean has no least p."""
    wanted = {("better", 12): 5, ("better", 13): 6, ("on_par", 6): 5, ("on_par", 7): 6}
    for (test, parts), n in wanted.items():
        assert rules.seeds_for_parts(parts, MARGINS, "paper", test) == n
    assert rules.seeds_for_parts(99, MARGINS, "paper", "mean") == 5
    assert rules.seeds_for_parts(99, MARGINS, "reduced", "mean") == 6


# Two stages


def claim(*seeds: str, enough: int = 6, given: tuple[int, ...] = ()) -> rules.Staged:
    """A claim whose parts have these seeds, in order: "1" agrees and "0" does not."""
    rule = [
        lambda first, part=part: rules.majority([seed == "1" for seed in part[:first]], MARGINS)
        for part in seeds
    ]
    return rules.staged(rule, [enough] * len(seeds), MARGINS, given)


@pytest.mark.parametrize(
    ("seeds", "outcome", "lost", "waiting"),
    [
        (["11111"], "reproduced", (), ()),
        (["1111"], "inconclusive", (), ()),
        (["11110"], "inconclusive", (), ()),
        # Seeds after the first five change nothing that stage one has said.
        (["1111100000"], "reproduced", (), ()),
        (["1111011111"], "inconclusive", (), ()),
        # What fails in all five waits for the sixth, which decides.
        (["00000"], "inconclusive", (0,), (0,)),
        (["000000"], "contradicted", (0,), ()),
        (["000001"], "inconclusive", (), ()),
        (["0000001111"], "contradicted", (0,), ()),
        # One part is enough, and those that disagree among their seeds have no part in it.
        (["11111", "00000"], "inconclusive", (1,), (1,)),
        (["11011", "000000"], "contradicted", (1,), ()),
        (["000000", "00000"], "contradicted", (0, 1), (1,)),
        (["000001", "00000"], "inconclusive", (1,), (1,)),
        (["11111", "11111"], "reproduced", (), ()),
    ],
)
def test_stage_one_reproduces_and_stage_two_contradicts(seeds, outcome, lost, waiting):
    found = claim(*seeds)
    assert (found.whole.outcome, found.lost, found.waiting) == (outcome, lost, waiting)


def test_what_a_claim_takes_for_granted_has_to_hold_and_never_contradicts_it():
    lost = claim("000000", "111111", given=(0,))
    assert (lost.whole.outcome, lost.lost, lost.waiting) == ("inconclusive", (), ())
    assert claim("11111", "11111", given=(0,)).whole.outcome == "reproduced"
    assert claim("000000", "111111").whole.outcome == "contradicted"
    # What it says beyond that is judged as ever, with the number of all its parts.
    assert claim("000000", "000000", given=(0,)).lost == (1,)
    assert claim("000000", "000000", given=(0,)).whole.outcome == "contradicted"


def test_where_stage_one_has_the_seeds_that_holm_needs_it_contradicts_at_once():
    assert claim("00000", enough=5).whole.outcome == "contradicted"
    assert claim("00000", "11111", enough=5).whole.outcome == "inconclusive"  # 2 / 32


def test_a_claim_of_many_parts_is_corrected_for_all_of_them():
    """Eight parts: seven seeds have p = 8 / 128, which is too much; eight have 8 / 256."""
    others = ["11111"] * 7
    assert claim(*others, "0000000", enough=7).whole.outcome == "inconclusive"
    assert claim(*others, "00000000", enough=8).whole.outcome == "contradicted"


def test_parts_without_votes_are_counted_by_what_they_would_be():
    one = rules.fact(True)
    kinds = ("reproduced", "reproduced", "contradicted", "inconclusive")
    parts = [one._replace(outcome=kind, agree=None) for kind in kinds]
    assert amounts(rules.conjunction(parts, MARGINS).seen) == [2, 4, 1]
    assert "none" in rules.conjunction(parts[:2], MARGINS).seen


@given(st.lists(st.text("01", min_size=5, max_size=10), min_size=1, max_size=5), st.data())
def test_seeds_beyond_the_stages_decide_nothing(parts, data):
    enough = rules.seeds_for_parts(len(parts), MARGINS, "reduced")
    more = [part + data.draw(st.text("01", max_size=5)) * (len(part) >= enough) for part in parts]
    found, longer = claim(*parts, enough=enough), claim(*more, enough=enough)
    assert found == longer
    if found.whole.outcome == "contradicted":
        assert any(part[:enough] == "0" * enough for part in parts)
    if found.whole.outcome == "reproduced":
        assert all(part.startswith("11111") for part in parts)


@settings(max_examples=50, deadline=None)
@given(st.lists(seeds, min_size=1, max_size=4))
def test_a_conjunction_is_never_surer_than_its_parts(cells):
    parts = [rules.median_value(cell, 100, POINTS, MARGINS) for cell in cells]
    whole = rules.conjunction(parts, MARGINS)
    outcomes = [part.outcome for part in parts]
    if whole.outcome == "reproduced":
        assert set(outcomes) == {"reproduced"}
    if whole.outcome == "contradicted":
        assert "contradicted" in outcomes


@settings(max_examples=50, deadline=None)
@given(seeds, st.sampled_from([0.0, 60.0, 100.0]), st.randoms())
def test_the_order_of_seeds_never_matters(values, printed, random):
    shuffled = random.sample(values, len(values))
    assert rules.median_value(values, printed, POINTS, MARGINS) == rules.median_value(
        shuffled, printed, POINTS, MARGINS
    )


@settings(max_examples=50, deadline=None)
@given(seeds, seeds)
def test_fewer_than_five_seeds_decide_nothing(first, second):
    decision = rules.order(first, second, "better", POINTS, MARGINS)
    if min(len(first), len(second)) < 5:
        assert decision.outcome == "inconclusive"


# How often they are wrong

REPEATS = 1000
THREE_ERRORS = 3 * np.sqrt(0.05 * 0.95 / REPEATS)


def outcomes(solved: list[float]) -> list[str]:
    """Simulated verdicts on claims whose parts are solved by these shares of seeds, for certain or
    not at all; stage two follows wherever stage one asks for it.
    """
    enough = rules.seeds_for_parts(len(solved), MARGINS, "reduced")
    rng = np.random.default_rng(len(solved))
    drawn = rng.random((REPEATS, len(solved), enough)) < np.array(solved)[:, None]
    found = []
    for one in drawn:
        parts = [lambda n, seeds=seeds: rules.majority(seeds[:n], MARGINS) for seeds in one]
        found.append(rules.staged(parts, [enough] * len(solved), MARGINS).whole.outcome)
    return found


@pytest.fixture(scope="module")
def rates():
    return false_verdict_rates(repeats=REPEATS).set_index(["rule", "situation", "verdict"])


def test_no_rule_breaks_its_promise(rates):
    promised = rates[rates["promised"]]
    assert promised["rate"].max() <= 0.05 + THREE_ERRORS
    assert {rule for rule, *_ in promised.index} == {situation.rule for situation in SITUATIONS}


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("solved", [0.5, 0.7, 0.95, 1.0])
def test_a_true_claim_is_contradicted_in_at_most_five_per_cent(parts, solved):
    """True: in every part at least half of all seeds solve the test. Half is the worst case."""
    found = outcomes([solved] * parts)
    assert found.count("contradicted") / REPEATS <= 0.05 + THREE_ERRORS
    if solved == 1.0:
        assert set(found) == {"reproduced"}


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("solved", [0.5, 0.3, 0.05, 0.0])
def test_a_false_claim_is_reproduced_in_at_most_five_per_cent(parts, solved):
    """False: in one part at most half of all seeds solve the test. That the others always do is
    the worst case.
    """
    found = outcomes([*[1.0] * (parts - 1), solved])
    assert found.count("reproduced") / REPEATS <= 0.05 + THREE_ERRORS
    if solved == 0.0:
        assert set(found) == {"contradicted"}


def test_cells_without_spread_are_never_judged_wrongly(rates):
    certain = rates[
        rates.index.get_level_values("situation").str.contains(r"(?:^|; )(?:both )?all at")
    ]
    assert len(certain) >= 6
    assert (certain["rate"] == 0).all()


@pytest.mark.parametrize(
    ("rule", "situation", "verdict", "exact"),
    [
        ("solves", "half of the seeds at 100, half at 0", "reproduced", 1 / 32),
        ("solves", "half of the seeds at 100, half at 0", "contradicted", 1 / 32),
        # All five on one side, and there are two sides.
        (
            *("median", "printed 60; half at 0, half at 100, so that 60 is a median"),
            *("contradicted", 2 / 32),
        ),
        # No seed shows the failure that one in twenty has.
        ("mean ± sd", "theirs all at 100, one in twenty of ours at 0", "reproduced", 0.95**5),
        # All ten at 100 (a tie), plus the test's own errors, which are far rarer.
        (
            *("better", "one in twenty against one in five at 0: often all at 100, a tie"),
            *("contradicted", 0.2536),
        ),
        # Both stages: any of n parts fails in all of its 6, 6, 7 or 8 seeds.
        *(
            (
                f"two stages, {n} part{'s' * (n > 1)}",
                "in each part half of the seeds at 100, half at 0",
                "contradicted",
                1 - (1 - 0.5**seeds) ** n,
            )
            for n, seeds in zip(PARTS, (6, 6, 7, 8), strict=True)
        ),
        *(
            (
                f"two stages, {n} parts",
                "one part half at 100, half at 0; the others at 100",
                "reproduced",
                1 / 32,
            )
            for n in PARTS[1:]
        ),
    ],
)
def test_simulated_rates_are_the_exact_ones(rates, rule, situation, verdict, exact):
    error = np.sqrt(exact * (1 - exact) / REPEATS)
    assert rates.loc[(rule, situation, verdict), "rate"] == pytest.approx(exact, abs=4 * error)


def test_the_simulation_is_the_same_on_every_call():
    first = false_verdict_rates(repeats=20)
    assert first.equals(false_verdict_rates(repeats=20))
