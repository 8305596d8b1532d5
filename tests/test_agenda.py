"""The ranking of missing runs completes claims in the order of claims per hour."""

from collections import Counter

import handmade
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relength.report import agenda
from relength.report.agenda import Wish, _ordered
from relength.report.scoreboard import SCALES, survey
from relength.runs import plan
from relength.runs.campaign import Campaign
from relength.runs.prices import Device
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.tasks import TASKS
from relength.verdicts import claims

pytestmark = pytest.mark.usefixtures("claimed")

TABLE_2 = experiments()["mla_table2"]
HERE = Device("cpu", "a processor")


def stored(folder, chosen, accuracy=lambda *_: 1.0) -> Store:
    store = Store(folder)
    for seed in range(5):
        for spec in TABLE_2.grid("reduced", seed):
            if chosen(spec):
                made = handmade.record(spec, accuracy)
                made["provenance"] |= {"device": HERE.kind, "device_name": HERE.name}
                store.append("mla", made)
    return store


# --- the order ------------------------------------------------------------------------------------


def test_a_set_is_worth_all_claims_inside_it():
    wishes = [
        Wish("lone", frozenset("a")),
        Wish("pair", frozenset("bc")),
        *(Wish(f"printed {i}", frozenset("b")) for i in range(3)),
    ]
    cost = {"a": (3600.0, 0), "b": (3600.0, 0), "c": (3600.0, 0)}
    # b alone: 3 claims in an hour; b and c: 4 in two; then c completes the pair, as a the lone one.
    assert dict(_ordered(wishes, cost)) == {
        "b": ["printed 0", "printed 1", "printed 2"],
        "a": ["lone"],
        "c": ["pair"],
    }
    assert next(iter(_ordered(wishes, cost)))[0] == "b"


def test_what_has_no_price_comes_last():
    wishes = [Wish("cheap", frozenset("a")), *(Wish(f"{i}", frozenset("b")) for i in range(9))]
    cost = {"a": (360_000.0, 0), "b": (0.0, 5)}
    assert [name for name, _ in _ordered(wishes, cost)] == ["a", "b"]


CELLS = st.frozensets(st.sampled_from("abcdef"), min_size=1, max_size=4)


@given(st.lists(CELLS, max_size=12), st.lists(st.floats(0, 1e5), min_size=6, max_size=6))
def test_every_claim_is_completed_once_and_when_its_last_cell_is_run(sets, seconds):
    wishes = [Wish(f"claim {i}", cells) for i, cells in enumerate(sets)]
    cost = {name: (s, 0) for name, s in zip("abcdef", seconds, strict=True)}
    done, completed = set(), []
    for name, claimed in _ordered(wishes, cost):
        assert name not in done
        done.add(name)
        completed += claimed
        for wish in wishes:
            if wish.claim in claimed:
                assert wish.cells <= done
    assert sorted(completed) == sorted(wish.claim for wish in wishes)


# --- from a store ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def four_seeds(tmp_path_factory) -> Store:
    """Four seeds of Bi-Relative, solved, on all tasks; of Content one that fails, on Copy."""
    folder = tmp_path_factory.mktemp("four")
    stored(folder, lambda s: s.model.name == "Bi-Relative" and s.seed < 4)
    return stored(
        folder,
        lambda s: s.model.name == "Content" and s.task.name == "copy" and s.seed < 1,
        lambda spec, test: 1.0 if test in ("iid", "100") else 0.0,
    )


def test_runs_that_complete_claims_soonest_come_first(four_seeds, claimed):
    steps = agenda.agenda(four_seeds, HERE, ["reduced"])
    first = steps[0].runs
    assert {run.spec.model.name for run in first} == {"Bi-Relative"}
    assert [run.spec.seed for run in first] == [4]
    assert all(run.spec.seed == 4 for step in steps[:4] for run in step.runs)
    assert any(step.claims for step in steps[:4])  # several cells may complete one claim together
    assert steps[0].hours == pytest.approx(128 / 3600)
    every = [claim for step in steps for claim in step.claims]
    assert len(every) == len(set(every)) > claimed / 4


def test_nothing_is_asked_of_claims_that_five_seeds_cannot_decide_any_more(tmp_path):
    """A claim whose seeds disagree can neither hold in all five nor fail in all five."""
    store = stored(
        tmp_path,
        lambda s: s.model.name == "Content" and s.task.name == "copy" and s.seed < 2,
        # Printed as 0 at 30 and at 100: at 30 one seed agrees and one does not, at 100 none does.
        lambda spec, test: 0.0 if test == "15" or (test == "30" and spec.seed == 0) else 1.0,
    )
    reduced = {c for step in agenda.agenda(store, HERE, ["reduced"]) for c in step.claims}
    paper = {c for step in agenda.agenda(store, HERE, ["paper"]) for c in step.claims}
    split, failing = (f"mla-table-2/Content/copy/{test}" for test in ("30", "100"))
    assert split not in reduced and split in paper
    assert failing in reduced  # it may fail in all five, and then stage two can contradict it


@pytest.fixture(scope="module")
def failing(tmp_path_factory) -> Store:
    """Five seeds of OneStepAttn that solve all tasks at all lengths, and stay where they are."""
    return stored(tmp_path_factory.mktemp("failing"), lambda s: s.model.name == "OneStepAttn")


def test_stage_two_comes_first_with_its_price_and_says_why(failing):
    """Printed at 100 for two inverted tasks is a median of OneStepAttn that fails there."""
    steps = agenda.agenda(failing, HERE)
    waiting = survey(failing).ledger.set_index("claim")["parts"]
    waiting = {c: [p for p in parts if p.stage_two] for c, parts in waiting.items()}
    waiting = {c for c, parts in waiting.items() if parts}
    second = [bool(step.fails) for step in steps]
    assert any(second) and second == sorted(second, reverse=True)
    first = steps[: sum(second)]
    named = {claim for step in first for claim in step.fails}
    assert named == waiting and "mla-table-2/OneStepAttn/inv_recopy/100" in named
    # All are completed there, each once, by seeds that stage one had not.
    done = Counter(claim for step in first for claim in step.claims)
    assert done.keys() == waiting and set(done.values()) == {1}
    assert {run.spec.seed for step in first for run in step.runs} <= set(range(5, 10))
    assert all(run.spec.scale == "reduced" for step in first for run in step.runs)
    assert [step.hours for step in first] == pytest.approx(
        [len(step.runs) * 128 / 3600 for step in first]
    )
    assert all(step.fails[0] in step.why or "number" in step.why for step in first)
    many = ["mla-1", "mla-2", "mla-3", "t/a", "t/b"]
    assert agenda.named(many, most=1) == "mla-1, 2 more, 2 numbers"
    assert agenda.named(["mla-1", "t/a"], most=1) == "mla-1, 1 number"


def test_what_stage_two_has_run_is_not_asked_for_again(failing, tmp_path):
    store = Store(tmp_path)
    for record in failing.records():
        store.append("mla", record)
    first = agenda.agenda(failing, HERE)[0]
    for run in first.runs:
        store.append("mla", handmade.record(run.spec, lambda *_: 1.0))
    left = agenda.agenda(store, HERE)
    ours = {run.spec.key for run in first.runs}
    assert not ours & {run.spec.key for step in left for run in step.runs}
    verdicts = survey(store).ledger.set_index("claim")["label"]
    assert first.claims
    assert {verdicts[claim] for claim in first.claims} == {"contradicted (reduced)"}


def test_claims_that_nothing_decides_are_left_out(four_seeds):
    every = {c for step in agenda.agenda(four_seeds, HERE) for c in step.claims}
    no_rule = {c.id for paper in claims.papers() for c in claims.load(paper) if c.not_testable}
    assert no_rule and not every & no_rule
    assert not any(claim.startswith("mla-table-3/") and "/cfq/" in claim for claim in every)


def test_what_no_claim_waits_for_comes_last_and_is_all_there(four_seeds, monkeypatch):
    """Each missing run of each page has one place, the seeds of success rates among them.

    Last are the runs whose data or weights are not here: those of CFQ, whatever this machine has.
    """
    monkeypatch.setattr(TASKS["cfq"], "lacks", lambda self: "data: no archive")
    steps = agenda.agenda(four_seeds, HERE)
    waited = [step.waited for step in steps]
    assert waited == sorted(waited, reverse=True) and not any(
        s.claims for s in steps if not s.waited
    )
    places = Counter(run.spec.key for step in steps for run in step.runs)
    assert set(places.values()) == {1}
    every = [run for scale in SCALES for run in plan.choose((), scale, plan.least_seeds())]
    wanted = plan.missing(every, four_seeds)
    away = [step for step in steps if step.lacks]
    assert steps[-len(away) :] == away
    assert {s.lacks for s in away if s.runs[0].spec.task.name == "cfq"} == {"data"}
    assert all(bool(run.spec.task.lacks()) == bool(s.lacks) for s in steps for run in s.runs)
    enough, more = plan.least_seeds(), plan.choose(("mla_table2",), "reduced", plan.MANY_SEEDS)
    many = {run.spec.key for run in more
            if run.spec.model.name in TABLE_2.many and run.spec.seed >= enough}  # fmt: skip
    assert many and {run.spec.key for run in wanted} | many <= places.keys()
    assert any(step.runs[0].experiment.name == "mla_lengths" for step in steps)


def test_a_campaign_follows_the_plan(four_seeds, tmp_path):
    runs = [run for step in agenda.agenda(four_seeds, HERE, ["reduced"])[:3] for run in step.runs]
    campaign = Campaign(runs[::-1], Store(tmp_path), known=(four_seeds,), ranked=True)
    assert campaign.runs == runs[::-1]


def test_the_page_says_what_the_ranking_says(four_seeds):
    page = agenda.to_run_next(survey(four_seeds))
    steps = agenda.agenda(four_seeds, HERE)
    counts = agenda.missing(steps)
    assert counts.deciding == sum(step.waited for step in steps) > 0 < counts.priced
    assert counts.deciding + counts.others == len(steps)
    for shown in (str(HERE), agenda.plain(steps[0].label), *(f"{count:,}" for count in counts)):
        assert shown in page


def test_an_empty_store_has_no_prices(tmp_path):
    steps = agenda.agenda(Store(tmp_path), None, ["reduced"])
    assert steps and all(step.hours is None for step in steps)
    assert {step.seeds for step in steps} == {"0", "0–4", "5–19"}
    assert agenda.missing(steps).priced == 0
