"""Beside a number that comes out: how many other rows come out as well, and whether it is between
floor and ceiling."""

import numpy as np
import pandas as pd
import pytest

from relength.paths import BOOK
from relength.report import style, tables
from relength.report.ledger import severity_words
from relength.specs import published
from relength.specs.experiments import experiments, same_runs_as
from relength.specs.margins import Margins, load_margins, margins_hash
from relength.verdicts import claims
from relength.verdicts.claim_models import (
    Claim,
    LevelPart,
    Source,
    ValuePart,
    printed_rows,
    value_part,
)
from relength.verdicts.evidence import Evidence
from relength.verdicts.severity import Severity, severity

TABLE = "mla-table-2"
SOURCE = Source(experiment="mla_table2", judged_arm="released")
MARGINS = load_margins()


def cell(values, model, task="copy", test="100", scale="reduced", **columns) -> pd.DataFrame:
    """Rows of one cell as the store's frame has them: one per seed."""
    return pd.DataFrame(
        {
            **{"experiment": "mla_table2", "checkpoint": "selected", "scale": scale},
            **{"model": model, "task": task, "arm": "released", "test": test},
            "seed": range(len(values)),
            "exact_match": [float(value) for value in values],
            **{"seconds": 60.0, "device_name": "a machine", "margins": margins_hash()},
        }
        | columns
    )


def claim(*parts, source=SOURCE, artifact=TABLE, name="x", where="") -> Claim:
    return Claim(
        id=name,
        paper="mla",
        artifact=artifact,
        kind="value",
        statement="x",
        where=where,
        source=source,
        parts=parts,
    )


CONTENT = claim(ValuePart(model="Content", task="copy", printed={"100": 0.0}))
FAILS = pd.concat(cell([0, 0, 0, 0, 60], model) for model in ("Content", "LocAttn", "MonoAttn"))
SOLVES = cell([100] * 5, "OneStepAttn")


def found(of: Claim, *runs: pd.DataFrame) -> Severity | None:
    return severity(of, Evidence(of.source, pd.concat(runs)), MARGINS)


# The other rows


def test_the_share_is_of_the_other_rows_whose_median_is_within_the_margin():
    assert found(CONTENT, FAILS, SOLVES) == Severity(2, 3)
    assert found(CONTENT, FAILS, SOLVES).hardly_fails(MARGINS) is True
    near, far = cell([5] * 5, "Relative"), cell([5.1] * 5, "Relative")
    assert found(CONTENT, FAILS, SOLVES, near) == Severity(3, 4)
    assert found(CONTENT, FAILS, SOLVES, far) == Severity(2, 4)
    solved = claim(ValuePart(model="OneStepAttn", task="copy", printed={"100": 100.0}))
    alone = found(solved, FAILS, SOLVES)
    assert alone == Severity(0, 3) and alone.hardly_fails(MARGINS) is False


def test_no_other_row_with_enough_seeds_leaves_it_unknown():
    few = FAILS[(FAILS["model"] == "Content") | (FAILS["seed"] < 4)]
    for runs in (few, FAILS[FAILS["model"] == "Content"]):
        one = found(CONTENT, runs)
        assert one == Severity(0, 0) and one.share is None and one.hardly_fails(MARGINS) is None


def test_rows_count_at_their_own_judged_scale_and_in_their_judged_reading():
    full = cell([100] * 5, "LocAttn", scale="paper")
    assert found(CONTENT, FAILS, full) == Severity(1, 2)
    other = cell([0] * 5, "Relative", arm="paper")
    assert found(CONTENT, FAILS, other) == Severity(2, 2)
    stranger = cell([0] * 5, "a row of another table")
    assert found(CONTENT, FAILS, stranger) == Severity(2, 2)
    elsewhere = cell([0] * 5, "Relative", test="30")
    assert found(CONTENT, FAILS, elsewhere) == Severity(2, 2)


def test_a_printed_mean_is_compared_with_means():
    of = claim(ValuePart(model="Content", task="copy", printed={"100": 12.0}, spread=1.0, n=5))
    assert found(of, FAILS, SOLVES) == Severity(2, 3)  # means of 12, medians of 0


def test_several_numbers_are_as_hard_to_meet_as_the_hardest():
    fails = ValuePart(model="Content", task="copy", printed={"100": 0.0})
    solves = ValuePart(model="OneStepAttn", task="copy", printed={"100": 100.0})
    assert found(claim(fails, solves), FAILS, SOLVES) == Severity(0, 3)
    level = LevelPart(model="Content", task="copy", tests=("100",), level="failed")
    assert found(claim(fails, level), FAILS, SOLVES) is None


# What a model that remembers one symbol has


# Token accuracy at two lengths of the five recorded runs of PANM as released on Mix, reduced.
MIX = {
    "40": (54.8, 55.3, 54.8, 55.6, 55.8),
    "80": (55.0, 55.1, 54.4, 54.4, 55.0),
}


def mix(test: str) -> pd.DataFrame:
    ledger = claims.ledger(
        [c for c in claims.load("panm") if c.id == f"panm-table-15/PANM/panm_mix/{test}"],
        cell(MIX[test], "PANM", "panm_mix", test, experiment="panm_algorithmic").rename(
            columns={"exact_match": "token_accuracy"}
        ),
    )
    assert len(ledger) == 1
    return ledger.iloc[0]


@pytest.mark.parametrize("test", ["40", "80"])
def test_mix_comes_out_for_a_model_that_remembers_its_first_symbol(test):
    row = mix(test)
    assert row["verdict"] == "reproduced" and bool(row["between"])
    assert row["one_symbol"] == pytest.approx(55, abs=1) and row["rivals"] == 0
    assert bool(row["hardly"]) and style.marks(row) == ["could hardly fail"]
    assert severity_words(row).split()[-2] == f"{row['one_symbol']:.1f}"


def test_what_one_symbol_does_not_give_is_left_to_the_other_rows():
    table = published.table("panm-table-15").set_index(["row", "test"])["value"]
    of = claim(
        value_part("panm-table-15", "PANM", "panm_mix", ("10",)),
        source=Source(
            experiment="panm_algorithmic", judged_arm="released", metric="token_accuracy"
        ),
        artifact="panm-table-15",
    )
    runs = cell(
        [table["PANM", "10"]] * 5, "PANM", "panm_mix", "10", experiment="panm_algorithmic"
    ).rename(columns={"exact_match": "token_accuracy"})
    one = found(of, runs)
    assert not one.suffices and one.hardly_fails(MARGINS) is None
    assert one.one_symbol < table["PANM", "10"] - 5


# In the ledger


@pytest.fixture(scope="module")
def judged() -> pd.DataFrame:
    """Copy at 100 of Table 2, and its distances of Table 9, as five seeds of the paper would be."""
    runs = []
    for artifact, name in ((TABLE, "mla_table2"), ("mla-table-9", "mla_edit_distance")):
        metric = "edit_distance" if artifact == "mla-table-9" else "exact_match"
        own = published.table(artifact).query("task == 'copy' and test == '100'")
        for row in own.itertuples():
            one = cell([row.value] * 5, row.row, experiment=name)
            runs.append(one.rename(columns={"exact_match": metric}))
    wanted = [c for c in claims.load("mla") if c.id.endswith("/copy/100")]
    wanted = [c for c in wanted if c.artifact in (TABLE, "mla-table-9")]
    return claims.ledger(wanted, pd.concat(runs, ignore_index=True))


def test_the_ledger_has_the_share_of_every_number_that_comes_out(judged):
    table = judged[judged["artifact"] == TABLE].set_index("claim")
    printed = published.table(TABLE).query("task == 'copy' and test == '100'").set_index("row")
    for row, value in printed["value"].items():
        others = printed["value"].drop(row)
        share = (np.abs(others - value) <= 5).mean()
        entry = table.loc[f"{TABLE}/{row}/copy/100"]
        assert (entry["severity"], entry["rivals"]) == (share, len(printed_rows(TABLE)) - 1)
        assert entry["hardly"] == (share >= 0.5)
        assert entry["between"] == (5 < value < 95)
    distances = judged[judged["artifact"] != TABLE]
    assert distances["between"].isna().all() and len(distances) == len(table)


def test_runs_are_counted_once_however_many_tables_show_them(judged):
    both, one = claims.numbers(judged), claims.numbers(judged[judged["artifact"] == TABLE])
    assert both == one and both.judged == both.reproduced == len(printed_rows(TABLE))
    assert claims.tally(judged).judged == both.judged
    alone = judged[judged["artifact"] == "mla-table-9"]
    assert claims.numbers(alone).judged == len(alone) and claims.numbers(alone).between == 0
    assert claims.numbers(judged.assign(seeds=4)).judged == 0


def test_what_does_not_come_out_has_no_share():
    (content,) = (c for c in claims.load("mla") if c.id == f"{TABLE}/Content/copy/100")
    row = claims.ledger([content], cell([100] * 5, "Content")).iloc[0]
    assert row["verdict"] != "reproduced"
    assert row[["severity", "rivals", "hardly"]].isna().all() and not style.marks(row)


def test_marks_stand_around_the_sign_of_a_verdict():
    marked = [
        tables.Beside(hardly, fragile).around("✓")
        for hardly in (False, True)
        for fragile in (False, True)
    ]
    assert marked == ["✓", "✓?", "(✓)", "(✓)?"]


# Tables of the same runs


def test_a_table_has_the_runs_of_another_when_all_of_its_runs_are_kept_there():
    shared = {}
    for found in experiments().values():
        for artifact in found.tables:
            if other := same_runs_as(artifact):
                shared[artifact] = other
                rows, others = (
                    set(zip(t["row"], t["column"], strict=True))
                    for t in map(published.table, (artifact, other))
                )
                assert rows == others  # else a number would be left out that is nowhere else
    assert shared == {"mla-table-9": "mla-table-2"}


# The margins file


def test_between_excludes_floor_and_ceiling():
    low, high = MARGINS.between
    percents = [0, low, low + 0.01, high - 0.01, high, 100]
    assert [*map(MARGINS.is_between, percents)] == [False, False, True, True, False, False]
    assert f"between {low:g} and {high:g} %" in (BOOK / "how_to_read.md").read_text()


def test_the_first_form_of_the_file_is_still_read():
    old = MARGINS.model_dump(exclude={"hardly_fails", "between", "same_margins"})
    assert Margins.model_validate(old).model_dump(exclude_unset=True).keys() == old.keys()
