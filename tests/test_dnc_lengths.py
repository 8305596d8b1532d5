"""The page on input lengths: Tables II and III from curves that are known."""

import re
from functools import partial
from html import escape

import handmade
import numpy as np
import pytest
from handmade import amounts, in_a_row

from relength.papers.dnc import by_length, lengths
from relength.papers.dnc.by_length import EXTENDED, TRAINED
from relength.papers.dnc.experiments import CONTROLLERS, EXPERIMENTS, TASKS
from relength.report.runs import Runs
from relength.runs.store import Store, frame
from relength.specs import published
from relength.verdicts import claims

FOUND = EXPERIMENTS[0]
SEEDS = 5
# Accuracy is 1 up to a length, and 0.4 beyond it.
REACHED = {
    "STATEFUL-BASELINE": 23, "STATELESS-BASELINE": 39, "COMPR": 45, "REG": 46, "COMPR&REG": 48
}  # fmt: skip


def accuracy(spec, test: str) -> float:
    """Sort as the paper prints it; every fifth run of it, and every other task, is useless."""
    known = spec.task.name == "dnc_sort" and spec.seed < SEEDS - 1
    return 1.0 if known and int(test) <= REACHED[spec.row] else 0.4


def with_more(spec, test: str) -> float:
    """Five times as far as with the small memory, but for COMPR&REG, which does nothing more."""
    if spec.row == "COMPR&REG":
        return 0.4
    return accuracy(spec, str(-(-int(test) // 5)))


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    store = Store(tmp_path_factory.mktemp("store"))
    for spec in FOUND.specs("reduced", range(SEEDS)):
        if spec.task.name in ("dnc_sort", "dnc_search"):
            made = handmade.record(spec, accuracy, experiment=FOUND.name, extended=with_more)
            store.append("dnc", made)
    return Runs.read(FOUND, "reduced", SEEDS, store)


@pytest.fixture
def nothing(tmp_path) -> Runs:
    return Runs.read(FOUND, "reduced", SEEDS, Store(tmp_path))


def test_rows_and_columns_are_those_of_the_papers_tables():
    table = published.table("dnc-table-2")
    specs = FOUND.specs("paper", [0])
    assert {spec.row for spec in specs} == set(table["row"]) and len(CONTROLLERS) == 5
    assert {spec.task.name for spec in specs} == set(table["task"]) == set(TASKS)
    assert len(specs) == 35 and len({spec.key for spec in specs}) == 35
    assert [spec.task.name for spec in specs[:10]] == ["dnc_sort"] * 5 + ["dnc_copy"] * 5


def test_the_papers_scale_is_the_papers():
    for spec in FOUND.specs("paper", [0]):
        training = spec.training
        assert (training.steps, training.batch_size, training.validate_every) == (300_000, 64, 10)
        assert (training.mean_of, training.learning_rate, training.alpha) == (500, 1e-3, 0.9)
        assert (training.pairs, training.test_slots, spec.model.slots) == (5, 500, 50)
        assert spec.task.test_size == 640 and spec.task.extended_size == 192
        assert spec.task.extended_lengths[-1] == 1000 and spec.task.train_lengths == (5, 15)


def test_every_printed_length_with_more_memory_is_tested():
    printed = set(published.table("dnc-table-5")["value"].astype(int)) - {0}
    for scale in ("reduced", "paper"):
        assert printed <= set(FOUND.specs(scale, [0])[0].task.extended_lengths)


def test_the_longest_length_is_that_of_the_median_curve(runs):
    table = by_length.summaries(runs).set_index(["task", "model"])
    for model, reached in REACHED.items():
        cell = table.loc["dnc_sort", model]
        assert (cell["longest"], cell["seeds"], cell["printed"]) == (reached, SEEDS, reached)
        assert cell["each"] == [reached] * 4 + [0]
        # Of lengths 2 to 45 those up to the reached one are right.
        share = 100 * np.mean([1.0 if n <= reached else 0.4 for n in range(2, 46)])
        assert cell["median"] == cell["max"] == pytest.approx(share)
        assert cell["means"] == pytest.approx([share] * 4 + [40.0])
        assert cell["mean"] == pytest.approx((4 * share + 40) / 5)
    assert table.loc["dnc_search", "REG"]["longest"] == 0
    assert table.loc["dnc_copy", "REG"]["seeds"] == 0 and np.isnan(
        table.loc["dnc_copy", "REG"]["longest"]
    )


def test_table_3_stands_beside_what_is_printed(runs):
    cell = by_length.summaries(runs).set_index(["task", "model"]).loc["dnc_sort", "REG"]
    printed = [cell[f"printed_{name}"] for name in ("median", "max", "mean", "sd")]
    assert printed == [99, 100, 93, 9]


def test_a_length_counts_above_the_level_and_wherever_it_lies():
    import pandas as pd

    curve = pd.Series([100.0, 95.0, 95.1, 20.0], index=[2, 3, 4, 5])
    assert by_length.longest(curve) == 4
    assert by_length.longest(curve * 0.9) == 0


def test_a_larger_memory_is_summed_up_on_its_own_lengths(runs):
    """The grid has 100 for 23 by 5, which is 115; 150 for 195; and 200 for 225 and 230."""
    table = by_length.summaries(runs, EXTENDED).set_index(["task", "model"])
    grid = FOUND.specs("reduced", [0])[0].task.extended_lengths
    far = {"STATEFUL-BASELINE": 100, "STATELESS-BASELINE": 150, "COMPR": 200, "REG": 200}
    for model, reached in (far | {"COMPR&REG": 0}).items():
        cell = table.loc["dnc_sort", model]
        assert (cell["longest"], cell["each"]) == (reached, [reached] * 4 + [0])
        right = [0.4 if n > 5 * REACHED[model] or not reached else 1.0 for n in grid if n <= 450]
        assert cell["means"] == pytest.approx([100 * np.mean(right)] * 4 + [40.0])
    assert table.loc["dnc_sort", "REG"]["printed"] == 0  # Table 5
    printed = [
        table.loc["dnc_sort", "REG"][f"printed_{n}"] for n in ("median", "max", "mean", "sd")
    ]
    assert printed == [74, 98, 68, 23]  # Table 6


def test_lengths_gained_are_those_with_the_larger_memory_over_the_others(runs):
    table = by_length.gains(runs).set_index(["task", "model"])
    cell = table.loc["dnc_sort", "REG"]
    assert (cell["small"], cell["small_below"]) == (46, 47)
    assert (cell["large"], cell["large_below"]) == (200, 250)
    assert cell["ratio"] == pytest.approx(200 / 46)
    assert cell["each"][:4] == pytest.approx([200 / 46] * 4) and np.isnan(cell["each"][4])
    lost = table.loc["dnc_sort", "COMPR&REG"]
    assert (lost["large"], lost["large_below"], lost["ratio"]) == (0, 5, 0)
    copy = table.loc["dnc_copy", "COMPR&REG"]
    assert copy["seeds"] == 0 and np.isnan(copy["ratio"])
    assert copy["printed_ratio"] == pytest.approx(150 / 39)
    assert np.isnan(table.loc["dnc_logic", "STATELESS-BASELINE"]["printed_ratio"])  # 0 of 0


def test_a_limit_lies_between_lengths_that_were_tested_or_beyond_the_last():
    spec = FOUND.specs("reduced", [0])[0]
    beyond = [by_length._next(TRAINED, spec, n) for n in (0, 46, 99, 100, np.nan)]
    assert beyond[:4] == [2, 47, 100, np.inf] and np.isnan(beyond[4])
    assert [by_length._next(EXTENDED, spec, n) for n in (0, 200, 500)] == [5, 250, np.inf]
    words = [lengths._reached(n, to) for n, to in ((46, 47), (200, 250), (100, np.inf), (0, 5))]
    assert words == ["46", "[200, 250)", "≥ 100", "0"]


def test_a_run_that_was_not_tested_with_a_larger_memory_has_no_gain(runs, tmp_path):
    store = Store(tmp_path)
    for record in runs.records[:3]:
        kept = {n: c for n, c in record["checkpoints"].items() if n != "extended"}
        store.append("dnc", record | {"checkpoints": kept})
    table = by_length.gains(Runs.read(FOUND, "reduced", SEEDS, store))
    assert (table["seeds"].sum(), table["ratio"].notna().sum()) == (3, 0)
    assert table.loc[table["seeds"] > 0, "each"].map(len).eq(0).all()


def ends(figure, model: str) -> list[float]:
    """A model's longest inputs in the words of a figure's first panel: ours, and printed."""
    parts = re.split(r"[:;,] ", figure.text)
    return amounts(next(part for part in parts if part.startswith(f"{model} ")))


def test_exhibits_are_drawn_from_runs_and_wait_without_them(runs, nothing):
    figures = ("figure_1", "figure_2")
    made = {}
    for name in (*figures, "table_2", "table_3", "table_5", "table_6", "gains_table"):
        make = partial(getattr(lengths, name), **({"number": 1} if name in figures else {}))
        made[name], empty = make(runs), make(nothing)
        assert not made[name].waits and len(made[name].data)
        assert empty.waits and "Not run yet" in empty.html
    assert ends(made["figure_1"], "COMPR&REG") == [48, 48]  # ours and printed
    assert len(lengths.printed_table().data) == len(lengths.printed_table(EXTENDED).data) == 35
    assert ends(made["figure_2"], "REG") == [200, 0]
    assert in_a_row([21, 5, 500], made["table_5"].html)  # the thinned grid
    for table in (lengths.printed_table(), made["table_3"], made["gains_table"]):
        assert "COMPR&amp;REG" in table.html and "COMPR&REG" not in table.html  # it would be COMPR®
    assert re.search(r"×4\.3\b.*\b46\b.*\[200, 250\)", made["gains_table"].html)


def test_figure_5_has_a_panel_per_constraint_with_both_kinds_of_lstm(tmp_path):
    found, store = next(e for e in EXPERIMENTS if e.name == "dnc_peephole"), Store(tmp_path)
    specs = found.specs("reduced", [0])
    for spec in specs:
        made = handmade.record(spec, lambda s, test: float(int(test) <= REACHED.get(s.row, 20)))
        store.append("dnc", made | {"experiment": found.keeper(spec).name})
    figure = lengths.figure_5(Runs.read(found, "reduced", 1, store), number=1)
    kinds = {(spec.model.constraint, spec.model.controller) for spec in specs}
    assert len(kinds) == 2 * 4
    twins = figure.data.groupby("constraint")["model"].unique().map(set).to_dict()
    assert twins["compression"] == {"COMPR", "van. LSTM + COMPR"}
    assert twins["none"] == {"STATEFUL-BASELINE", "Peephole LSTM"}
    assert set(map(len, twins.values())) == {2}
    assert all(figure.html.count(name) for name in map(escape, lengths.CONSTRAINTS.values()))


def test_numbers_and_words_say_what_the_runs_say(runs, nothing):
    said = lengths.numbers(runs)
    line = next(line for line in said.splitlines() if line.startswith("  REG"))
    assert line.split() == ["REG", "5", "46", "(46)", "100", "(99)", "88", "(93)"]
    assert lengths.numbers(nothing).count("not run") == 3 * 35
    said = lengths.numbers(runs, EXTENDED)
    assert amounts(said)[:2] == [5, 6]  # tables
    line = next(line for line in said.splitlines() if line.startswith("  STATELESS"))
    assert line.split()[:4] == ["STATELESS-BASELINE", "5", "150", "(0)"]
    line = next(line for line in lengths.gained(runs).splitlines() if line.startswith("  REG"))
    assert line.split() == ["REG", "5", "46", "(46)", "[200,", "250)", "(0)", "×4.3", "(×0.0)"]
    assert lengths.gained(nothing).count("not run") == 3 * 35
    assert amounts(lengths.catching_up(runs).splitlines()[1])[-2:] == [3, 3]  # ahead, of so many
    assert lengths.catching_up(nothing).startswith("Not run yet")


def test_claims_are_judged_on_these_runs(runs):
    """Four runs of five as printed decide nothing yet; a claim that a run contradicts is open."""
    table = claims.ledger(
        [c for c in claims.load("dnc") if c.source.experiment == FOUND.name], frame(runs.records)
    ).set_index("claim")
    sort = table.loc["dnc-table-2/REG/dnc_sort/longest"]
    assert (sort["outcome"], sort["seeds"]) == ("inconclusive", SEEDS)
    assert "4 of 5" in sort["seen"]
    search = table.loc["dnc-014"]
    assert search["outcome"] == "not run"
    assert table.loc["dnc-table-5/REG/dnc_search/longest"]["outcome"] == "reproduced"  # 0
