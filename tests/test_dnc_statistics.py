"""Mann-Whitney tests of the DNC's runs, and what printed p values tell of the tests behind them."""

import re
from itertools import combinations, permutations
from math import comb

import handmade
import numpy as np
import pandas as pd
import pytest
from handmade import amounts
from scipy import stats

from relength.papers.dnc import comparisons, printed_p
from relength.papers.dnc.by_length import EXTENDED, TRAINED
from relength.papers.dnc.experiments import EXPERIMENTS
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs import published

FOUND = EXPERIMENTS[0]
SEEDS = 3
LEVEL = {
    "STATEFUL-BASELINE": 0.3, "STATELESS-BASELINE": 0.32, "COMPR": 0.6, "REG": 0.6, "COMPR&REG": 0.9
}  # fmt: skip
BOTH = pytest.mark.parametrize("memory", [TRAINED, EXTENDED], ids=["trained", "extended"])


def accuracy(spec, test: str) -> float:
    """Levels that are apart, but for the baselines, whose runs alternate; REG equals COMPR."""
    step = 0.04 if spec.row.endswith("BASELINE") else 0.01
    return LEVEL[spec.row] + step * spec.seed


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    store = Store(tmp_path_factory.mktemp("store"))
    for spec in FOUND.specs("reduced", range(SEEDS)):
        if spec.task.name == "dnc_sort":
            store.append("dnc", handmade.record(spec, accuracy, experiment=FOUND.name))
    return Runs.read(FOUND, "reduced", 5, store)


@pytest.fixture(scope="module")
def nothing(tmp_path_factory) -> Runs:
    return Runs.read(FOUND, "reduced", 5, Store(tmp_path_factory.mktemp("nothing")))


def by_hand(first: list[float], second: list[float]) -> float:
    """The one-sided p without SciPy: the share of orders with a U as far from the middle."""

    def u(a, b):
        return sum((x > y) + (x == y) / 2 for x in a for y in b)

    every, here = [*first, *second], u(first, second)
    found = []
    for chosen in combinations(range(len(every)), len(first)):
        rest = [every[i] for i in range(len(every)) if i not in chosen]
        found.append(u([every[i] for i in chosen], rest))
    return min(np.mean(np.array(found) >= here), np.mean(np.array(found) <= here))


def test_three_runs_that_are_all_above_three_others_are_one_order_of_twenty():
    one, two = comparisons.both([7.0, 8.0, 9.0], [1.0, 2.0, 3.0])
    assert one == pytest.approx(1 / 20) == printed_p.least(3, 3)
    assert two == pytest.approx(2 / 20)
    assert comparisons.both([1.0, 2.0, 3.0], [7.0, 8.0, 9.0]) == pytest.approx((one, two))


@pytest.mark.parametrize("first", [*permutations([1.0, 4.0, 5.0, 8.0], 3)][:6])
def test_p_values_are_shares_of_orders(first):
    second = [2.0, 3.0, 6.0, 7.0]
    one, two = comparisons.both(list(first), second)
    assert one == pytest.approx(by_hand(list(first), second))
    assert two == pytest.approx(min(1, 2 * one))


@pytest.mark.parametrize(
    ("first", "second"),
    [([100.0] * 3, [90.0, 91.0, 92.0]), ([100.0] * 3, [90.0] * 3), ([1.0, 2, 2], [2.0, 3, 3, 4])],
)
def test_orders_of_equal_runs_are_counted_too(first, second):
    assert comparisons.both(first, second)[0] == pytest.approx(by_hand(first, second))
    assert comparisons.both(first, second)[0] >= printed_p.least(len(first), len(second)) - 1e-12


def test_ten_runs_against_ten_are_counted_and_not_approximated():
    one, _ = comparisons.both([*range(10, 20)], [*range(10)])
    assert one == pytest.approx(1 / comb(20, 10))


def test_equal_runs_tell_nothing():
    assert comparisons.both([100.0] * 5, [100.0] * 5) == (1.0, 1.0)


@BOTH
def test_each_p_value_is_that_of_the_records(runs, memory):
    """Straight from the records, without the tables in between; SciPy's where no runs are equal."""
    reached = {}
    low, high = memory.averaged
    for record in runs.records:
        tests = record["checkpoints"][memory.checkpoint]["tests"]
        kept = [m["digit_accuracy"] for n, m in tests.items() if low <= int(n) <= high]
        model = next(spec.row for spec in runs.specs if spec.key == record["key"])
        reached.setdefault(model, []).append(100 * np.mean(kept))
    table = comparisons.compared(runs, memory).set_index(["task", "pair"]).loc["dnc_sort"]
    assert len(table) == 10
    for pair, row in table.iterrows():
        first, second = (reached[model] for model in printed_p.split(pair))
        assert row["one"] == pytest.approx(by_hand(first, second))
        assert row["two"] == pytest.approx(min(1, 2 * row["one"]))
        if len({*first, *second}) == len(first) + len(second):
            assert row["two"] == pytest.approx(stats.mannwhitneyu(first, second).pvalue)
    together = stats.false_discovery_control(table["one"], method="bh")
    assert table["one_task"].to_numpy() == pytest.approx(together)
    assert table["one_table"].to_numpy() == pytest.approx(together)  # one task is all there is
    assert table.loc["STATEFUL-BASELINE vs COMPR", "one"] == pytest.approx(1 / 20)
    assert table.loc["STATEFUL-BASELINE vs COMPR", "sign"] == "<"
    assert table.loc["COMPR vs REG", "sign"] == "="


def test_the_correction_is_that_of_benjamini_and_hochberg_and_passes_over_gaps():
    """By hand: 0.01 · 3/1, 0.04 · 3/2 and 0.05 · 3/3, none larger than the next."""
    p = pd.Series([0.04, np.nan, 0.01, 0.05])
    expected = pytest.approx([0.05, np.nan, 0.03, 0.05], nan_ok=True)
    assert comparisons.corrected(p).tolist() == expected
    assert comparisons.corrected(pd.Series([np.nan])).isna().all()


def test_a_task_is_corrected_apart_from_another(runs, tmp_path):
    store = Store(tmp_path)
    for record in runs.records:
        store.append("dnc", record)
    for spec in FOUND.specs("reduced", range(SEEDS)):
        if spec.task.name == "dnc_copy" and spec.row in ("COMPR", "REG"):
            store.append("dnc", handmade.record(spec, accuracy, experiment=FOUND.name))
    table = comparisons.compared(Runs.read(FOUND, "reduced", 5, store)).set_index(["task", "pair"])
    alone = table.loc["dnc_copy", "COMPR vs REG"]
    assert alone["one_task"] == alone["one"]
    assert table["one"].notna().sum() == 11
    whole = stats.false_discovery_control(table["one"].dropna(), method="bh")
    assert table["one_table"].dropna().to_numpy() == pytest.approx(whole)
    assert (table.loc["dnc_sort", "one_task"] != table.loc["dnc_sort", "one_table"]).any()


@BOTH
def test_the_pairs_are_those_that_the_paper_prints(nothing, memory):
    table = comparisons.compared(nothing, memory)
    assert len(table) == 70 and table["printed"].notna().all() and table["one"].isna().all()
    assert set(table["pair"]) == set(published.table("dnc-table-4")["row"])


def test_exhibits_say_not_run_where_there_is_none(runs, nothing):
    full = comparisons.p_values(runs)
    assert full.html.count("not run") == 60 and not full.waits
    assert "&lt; 0." in full.html and "COMPR&amp;REG" in full.html
    assert "not run" not in comparisons.p_values(runs).data.to_csv()
    for family in comparisons.OURS:
        assert comparisons.p_values(nothing, EXTENDED, family).waits
    assert comparisons.numbers(nothing).count("not run") == 70
    assert amounts(comparisons.decided(nothing)) == [4]  # the number of the table alone


def test_numbers_and_counts_are_those_of_the_comparisons(runs):
    table = comparisons.compared(runs).set_index(["task", "pair"])
    row = table.loc["dnc_sort", "STATEFUL-BASELINE vs COMPR"]
    said = comparisons.numbers(runs)
    line = next(line for line in said.splitlines() if line.startswith("  STATEFUL vs COMPR "))
    assert line.split()[3:8] == ["3:3", "0.050", "0.050", "/", "0.100"]
    assert line.split()[-1] == "0.00" and f"{row['one_table']:.3f}" in line
    counted = (table["one_table"] <= 0.05).sum(), (table["two_task"] <= 0.05).sum()
    words = comparisons.decided(runs).splitlines()
    assert amounts(words[0])[1:] == [10, 70, 3]  # pairs with runs, of all, seeds
    assert [int(words[2].split()[-1]), int(words[5].split()[-1])] == list(counted)


# Printed p values


def test_possible_p_values_are_those_of_every_order_of_a_few_runs():
    """Two runs against two have six equally likely orders, with a U of 0, 1, 2, 2, 3 and 4."""
    exact = printed_p.possible("one", "exact", 2)
    assert exact == pytest.approx([4 / 6, 2 / 6, 1 / 6])  # U of at least 2, 3, 4
    assert printed_p.possible("two", "exact", 2) == pytest.approx([1, 4 / 6, 2 / 6])


def test_the_samples_behind_a_u_have_it_and_no_equal_values():
    for u in range(101):
        first, second = printed_p._samples(u, 10)
        assert np.greater.outer(first, second).sum() == u
        assert len({*first, *second}) == 20


def old_p(first: np.ndarray, second: np.ndarray) -> float:
    """As SciPy had it before version 1.7: of a standardised U without its sign."""
    p = stats.mannwhitneyu(first, second, alternative="less", method="asymptotic").pvalue
    q = stats.mannwhitneyu(first, second, alternative="greater", method="asymptotic").pvalue
    return min(p, q, 1 - p, 1 - q)


def simulated(corrects, seed: int) -> pd.DataFrame:
    """A table of printed p values: ten runs against ten, one-sided, approximated, corrected."""
    random = np.random.default_rng(seed)
    levels = random.normal(size=(5, 7))
    runs = levels[:, :, None] + random.normal(size=(5, 7, 10))
    p = np.array(
        [[old_p(runs[a, t], runs[b, t]) for t in range(7)] for a, b in combinations(range(5), 2)]
    )
    table = printed_p.grid("dnc-table-4")
    return pd.DataFrame(corrects(p).round(2), index=table.index, columns=table.columns)


def bh(p: np.ndarray, axis: int | None) -> np.ndarray:
    return stats.false_discovery_control(p, axis=axis, method="bh")


@pytest.mark.parametrize("seed", range(3))
def test_numbers_of_a_known_test_are_possible_in_its_reading_and_in_no_other(monkeypatch, seed):
    right = {
        "table": lambda p: bh(p.ravel(), None).reshape(p.shape),
        "task": lambda p: bh(p, 0),
        "pair": lambda p: bh(p, 1),
    }
    monkeypatch.setattr(
        printed_p, "_maybe_equal", lambda name: printed_p.grid(name).astype(bool) & False
    )
    for family, corrects in right.items():
        made = simulated(corrects, seed)
        monkeypatch.setattr(printed_p, "grid", lambda name, made=made: made)
        counts = {
            (test, other): len(printed_p.impossible("dnc-table-4", test, other)[0])
            for test in printed_p.TESTS
            for other in printed_p.FAMILIES
        }
        assert counts.pop(("one-sided, normal", family)) == 0
        assert min(counts.values()) > 0


def test_one_reading_alone_gives_all_printed_numbers():
    """The paper's tables: one-sided, approximated, corrected over the whole table."""
    counts = printed_p.readings().groupby(["test", "family"])["impossible"].sum()
    assert counts[counts == 0].index.tolist() == [("one-sided, normal", "table")]
    assert counts.drop(("one-sided, normal", "table")).min() >= 5
    assert "one-sided, normal, whole table" in printed_p.readings_in_words().splitlines()[1]
    assert re.search(r"<b [^>]*>0 of ", printed_p.readings_table().html)


def test_p_values_twice_as_large_are_counted_within_their_rounding(monkeypatch):
    """0.02 doubled is at most 0.05 however it was rounded, 0.03 may be, 0.04 is not."""
    cells = pd.DataFrame({"sort": [0.02, 0.03, 0.04, 0.06]}, index=["A vs B", "A", "B", "C"])
    monkeypatch.setattr(printed_p, "grid", lambda name: cells)
    lines = printed_p.two_sided().splitlines()
    assert amounts(lines[0]) == [4, 3, 4, 0.05, 1, 2]  # table; of all; twice as large, 1 to 2
    assert amounts(lines[1]) == [0.04] and "sort" in lines[1] and "B" in lines[1]


def test_directions_are_those_of_the_printed_medians_and_means():
    said = printed_p.directions().splitlines()
    for line, (artifact, memory) in zip(said, printed_p.TABLES.items(), strict=True):
        of = published.table(memory.means).set_index(["statistic", "row", "task"])["value"]
        agreeing = 0
        for cell in published.table(artifact).query("value <= 0.05").itertuples():
            first, second = printed_p.split(cell.row)
            apart = [of[n, first, cell.task] - of[n, second, cell.task] for n in ("median", "mean")]
            agreeing += np.prod(apart) > 0
        _, total, one_winner, equal, others = map(int, re.findall(r"\d+", line))
        assert one_winner == agreeing and total == one_winner + equal + others


@pytest.mark.parametrize(("seeds", "family"), [(3, 10), (4, 10), (5, 70), (6, 70)])
def test_so_many_separated_pairs_are_significant_and_one_less_is_not(seeds, family):
    p = printed_p.least(seeds, seeds)
    needed = int(printed_p.separated(p, family))
    for count in (needed, needed - 1):
        values = [p] * count + [1.0] * (family - count)
        significant = stats.false_discovery_control(values, method="bh") <= 0.05 + 1e-12
        assert significant.sum() == (count if count == needed else 0)


def test_two_seeds_can_show_nothing():
    assert np.isnan(printed_p.separated(printed_p.least(2, 2), 10))
    data = printed_p.reach_table().data.set_index("seeds")
    assert data.loc[3, "one_sided"] == 0.05 and data.loc[5, "one_sided"] == pytest.approx(1 / 252)
