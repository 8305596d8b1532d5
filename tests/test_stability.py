"""A verdict that changes with the execution of a run is fragile, and the checks on ourselves count
it."""

import json

import handmade
import numpy as np
import pandas as pd
import pytest
from handmade import amounts
from hypothesis import given
from hypothesis import strategies as st

from relength.report import self_checks, style
from relength.report.ledger import executions_words
from relength.report.runs import Runs
from relength.report.scoreboard import survey
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.specs.margins import margins_hash
from relength.verdicts import claims
from relength.verdicts.claim_models import Claim, Source, ValuePart
from relength.verdicts.evidence import BySeed, Evidence, joined
from relength.verdicts.stability import Judged, Stability, stability

SOURCE = Source(experiment="mla_table2", judged_arm="released")


def runs(values, day=1, **columns) -> pd.DataFrame:
    """Rows of one cell, a run per seed: {seed: value}. Each day is another execution of them."""
    whose = {"experiment": "mla_table2", "scale": "reduced", "model": "Content"}
    whose |= {"arm": "released", "task": "copy"} | columns
    named = "-".join(map(str, whose.values()))
    return pd.DataFrame(
        {
            **whose,
            "key": [f"{named}-{seed}" for seed in values],
            "run_id": [f"{named}-{seed}-{day}" for seed in values],
            **{"checkpoint": "selected", "test": "100", "seed": list(values)},
            "exact_match": [float(value) for value in values.values()],
            **{"seconds": 60.0, "device_name": "a machine", "margins": margins_hash()},
            "created": f"2026-01-0{day}T00:00:00Z",
        }
    )


def claim(model="Content", printed=0.0) -> Claim:
    part = ValuePart(model=model, task="copy", printed={"100": printed})
    return Claim(
        id="x",
        paper="mla",
        artifact="mla-table-2",
        kind="value",
        statement="x",
        source=SOURCE,
        parts=(part,),
    )


def row(first: pd.DataFrame, *later: pd.DataFrame) -> pd.Series:
    return claims.ledger([claim()], first, pd.concat(later) if later else None).iloc[0]


CELL = ("reduced", "Content", "released", "copy")
ZEROS = runs(dict.fromkeys(range(5), 0))


def test_one_other_execution_can_change_a_verdict():
    one = row(ZEROS, runs({3: 60}, day=2))
    assert one["verdict"] == "reproduced"
    assert (bool(one["fragile"]), one["repeated"]) == (True, 1)
    assert one["otherwise"].split()[0] == "inconclusive"
    assert "fragile" in style.marks(one) and one["otherwise"] in executions_words(one)
    steady = row(ZEROS, runs({3: 4}, day=2))
    assert (steady["fragile"], steady["repeated"], steady["otherwise"]) == (False, 1, "")
    assert style.marks(steady) == []


def test_without_further_executions_nothing_is_fragile():
    one = row(ZEROS)
    assert (one["fragile"], one["repeated"], executions_words(one)) == (False, 0, "")


def test_the_latest_and_each_one_left_out_are_different_questions():
    (found,) = stable(ZEROS, runs({3: 60}, day=2), runs({3: 0}, day=3))
    assert found.repeated == 1 and found.latest == "reproduced"
    assert list(found.without.values()) == ["inconclusive"] and found.fragile("reproduced")
    mixed = runs({0: 60, 1: 60, 2: 0, 3: 0, 4: 0})
    (found,) = stable(mixed, runs({0: 0, 1: 0}, day=2))
    assert (found.repeated, found.latest, found.without) == (2, "reproduced", {})
    assert found.fragile("inconclusive")


def test_what_a_verdict_would_be_is_told_with_the_executions_that_make_it_so():
    """Three runs have second executions; leaving out the first of two of them opens the claim."""
    first, zeros = runs({**dict.fromkeys(range(5), 0), 3: 3}), runs({0: 60, 1: 60, 2: 0}, day=2)
    one = row(first, zeros, runs({0: 0, 1: 0}, day=3))
    assert (one["verdict"], one["repeated"]) == ("reproduced", 3)
    assert amounts(one["otherwise"]) == [2] and one["otherwise"].startswith("inconclusive")
    last = row(first, runs({0: 60}, day=2), runs({0: 0, 1: 0, 2: 60}, day=3))
    latest, after = last["otherwise"].split("; ")
    assert all(said.startswith("inconclusive") for said in (latest, after))
    assert (amounts(latest), amounts(after)) == ([], [2])


def stable(first: pd.DataFrame, *later: pd.DataFrame) -> list[Stability]:
    evidence = Evidence(SOURCE, first)
    verdict = claims.judge(claim(), first)
    judged = [Judged(claim(), verdict.verdict, (CELL,), evidence)]
    return stability(judged, pd.concat(later), again)


def again(one: Claim, evidence: Evidence) -> str:
    return claims._judge_own(one, evidence, claims.load_margins(), margins_hash()).verdict


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"arm": "paper"},
        {"scale": "paper"},
        {"task": "lookup"},
        {"model": "LocAttn"},
        {"experiment": "mla_edit_distance"},
    ],
    ids=str,
)
def test_executions_of_runs_that_are_not_behind_a_verdict_change_nothing(elsewhere):
    first = pd.concat([ZEROS, runs({0: 0}, **elsewhere)])
    assert row(first, runs({0: 100}, day=2, **elsewhere))["repeated"] == 0
    assert row(ZEROS, runs({7: 100}, day=2))["repeated"] == 0  # a run that is not counted


def test_claims_without_further_executions_are_not_judged_again():
    asked = []
    first = pd.concat([ZEROS, runs(dict.fromkeys(range(5), 0), model="LocAttn")])
    evidence = Evidence(SOURCE, first)
    both = [
        Judged(claim(model), "reproduced", (("reduced", model, "released", "copy"),), evidence)
        for model in ("Content", "LocAttn")
    ]

    def judge(one: Claim, other: Evidence) -> str:
        asked.append(one.parts[0].model)
        return "reproduced"

    stability(both, runs({0: 1, 1: 1}, day=2), judge)
    assert asked == ["Content"] * 3  # the latest of both runs, and each alone


TESTS = ("15", "100")
EXECUTIONS = st.lists(
    st.tuples(st.sampled_from(["Content", "LocAttn"]), st.integers(0, 3), st.integers(0, 100)),
    unique_by=lambda one: one[:2],
)


def both_tests(values: dict[int, float], **columns) -> pd.DataFrame:
    one = runs(values, **columns)
    return pd.concat(
        [
            one.assign(test=test, exact_match=one["exact_match"] / n)
            for n, test in enumerate(TESTS, 1)
        ]
    )


@given(EXECUTIONS, st.booleans())
def test_evidence_with_other_executions_is_that_of_a_store_with_only_these(exchanged, warm):
    first = pd.concat(
        both_tests({seed: 10 * seed for seed in range(4)}, model=model)
        for model in ("Content", "LocAttn")
    )
    others = [both_tests({seed: value}, day=2, model=model) for model, seed, value in exchanged]
    base = Evidence(SOURCE, first)
    cells = [("reduced", model, "released", "copy") for model in ("Content", "LocAttn")]
    before = [BySeed(*map(np.copy, base.values(*cell, TESTS))) for cell in cells] if warm else []
    later = pd.concat(others) if others else first.iloc[:0]
    kept = first[~first["key"].isin(later["key"])]
    found, wanted = base.with_executions(later), Evidence(SOURCE, pd.concat([kept, later]))
    for cell in cells:
        assert equal(found.values(*cell, TESTS), wanted.values(*cell, TESTS))
        by = ["seed", "test"]
        pd.testing.assert_frame_equal(
            found.runs(*cell).sort_values(by).reset_index(drop=True),
            wanted.runs(*cell).sort_values(by).reset_index(drop=True),
        )
        assert found.seeds(*cell) == wanted.seeds(*cell)
        assert found.margins(*cell) == wanted.margins(*cell)
        assert found.tests(*cell) == wanted.tests(*cell)
    for cell, values in zip(cells, before, strict=False):
        assert equal(base.values(*cell, TESTS), values)


def equal(first: BySeed, second: BySeed) -> bool:
    return all(map(np.array_equal, first, second))


def test_numbers_are_joined_by_seed_and_a_seed_that_one_part_lacks_is_left_out():
    two = BySeed(np.array([0, 1, 3]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    one = BySeed(np.array([1, 2, 3]), np.array([7.0, 8.0, 9.0]))
    wanted = BySeed(np.array([1, 3]), np.array([[3.0, 4.0, 7.0], [5.0, 6.0, 9.0]]))
    assert equal(joined([two, one]), wanted)


# From the store to the pages


@pytest.fixture(scope="module")
def twice(claimed, tmp_path_factory) -> Store:
    """Content on Copy and Recopy, all wrong; one run of Copy was trained again and is all right."""
    store = Store(tmp_path_factory.mktemp("twice"))
    specs = [
        spec
        for spec in experiment("mla_table2").specs("reduced", range(5))
        if spec.model.name == "Content" and spec.task.name in ("copy", "recopy")
    ]
    for spec in specs:
        store.append("mla", handmade.record(spec, lambda *_: 0.0))
    again = next(spec for spec in specs if spec.task.name == "copy" and spec.seed == 2)
    made = handmade.record(again, lambda *_: 1.0, created="2026-02-01T00:00:00Z")
    store.append("mla", made | {"run_id": "f" * 16})
    return store


def test_the_page_of_checks_counts_fragile_verdicts(twice):
    found = survey(twice)
    table = found.ledger.set_index("claim")
    copies = [f"mla-table-2/Content/copy/{test}" for test in (15, 30, 100)]
    assert table.loc[copies, "verdict"].eq("reproduced").all()
    assert table.loc[copies, "fragile"].all() and table.loc[copies, "repeated"].eq(1).all()
    assert not table.loc["mla-table-2/Content/recopy/15", "fragile"]
    counts = self_checks.fragility(found.ledger)
    once = claims.once(found.ledger)
    once = once[(once["page"] == "") & (once["seeds"] >= 5)]
    assert counts.repeated == (once["repeated"] > 0).sum()
    assert counts.repeated >= counts.fragile == once["fragile"].sum() >= 3
    assert counts.judged == len(once) > counts.repeated
    assert counts.headline == ()
    said = self_checks.fragile(found)
    assert said.count('<a href="claims_ledger.html#claim-mla-table-2-content-copy-') == 3
    numbers = claims.numbers(found.ledger)
    printed = once[once["where"] == ""]  # a claim in words may rest on the same runs
    assert (numbers.fragile, numbers.repeated) == (3, 3)
    assert (printed["fragile"].sum(), (printed["repeated"] > 0).sum()) == (3, 3)


def test_a_page_of_these_runs_says_the_same(twice):
    page = Runs.read(experiment("mla_table2"), "reduced", 5, twice)
    assert len(page.records) == 10 and [r["run_id"] for r in page.further] == ["f" * 16]
    here, there = (
        table.set_index("claim")["fragile"] for table in (page.ledger, survey(twice).ledger)
    )
    assert here.sum() >= 3
    assert here.astype(bool).to_dict() == there[here.index].astype(bool).to_dict()


def test_a_stale_execution_is_no_alternative(twice, tmp_path):
    store = Store(tmp_path)
    for record in twice.records():
        store.append("mla", record)
    store.freshness.write_text(json.dumps({"code": "0" * 12, "probes": [], "stale": ["f" * 16]}))
    assert not survey(store).ledger["fragile"].any()
