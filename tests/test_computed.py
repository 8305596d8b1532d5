"""Claims that pages decide: the ledger says of them what the pages say."""

import re

import pytest
from pages import unpacked

from relength.papers.memreasoner import cost_page as cost
from relength.papers.memreasoner import training_text
from relength.papers.panm import exposure, scan_figures, shots
from relength.papers.panm import overhead_page as overhead
from relength.papers.panm.computed import QUOTES
from relength.report import computed, landing, scoreboard
from relength.report.ledger import claims_list
from relength.runs.store import Store
from relength.specs import published
from relength.tasks import data
from relength.training.provenance import collect
from relength.verdicts import claims


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """Without runs, but with a measurement of speeds: every backbone keeps 75 % of its own."""
    made = Store(tmp_path_factory.mktemp("measured"))
    pairs = {
        pair.name: {
            "bare": [20.0] * 5, "with": [15.0] * 5, "printed": pair.printed, "parameters": [1, 2],
        }
        for pair in overhead.overhead.PAIRS
    }  # fmt: skip
    made.append_benchmark(
        {"kind": overhead.overhead.KIND, "rounds": 5, "pairs": pairs}
        | {"provenance": collect("cpu", {})}
    )
    return made


@pytest.fixture(scope="module")
def survey(store) -> scoreboard.Survey:
    return scoreboard.survey(store)


def test_the_ledger_says_what_the_pages_say(survey, store):
    rows = survey.ledger[survey.ledger["page"] != ""].set_index("claim")
    on_pages = [
        *exposure.lines(exposure.checked(exposure.simulate(), exposure.in_training())).split("\n"),
        *overhead.lines(overhead.decisions(overhead.latest(store))).split("\n"),
        shots.numbers(shots.prompts()).split("\n")[-1],
        scan_figures.counted(),
        *cost.lines(cost.latest(store)).split("\n"),
        *training_text.numbers().split("\n")[-2:],
    ]
    said = [f"{row.Index}: {row.verdict} ({row.seen})" for row in rows.itertuples()]
    assert said == on_pages


@pytest.mark.parametrize(
    ("one", "two", "outcome"),
    [
        ((14, 71, 91), (72, 437, 573), "reproduced"),  # with marks
        ((14, 90, 110), (72, 573, 700), "reproduced"),  # without
        ((14, 90, 110), (72, 437, 573), "contradicted"),  # a way of its own per task
        ((14, 71, 110), (72, 437, 573), "contradicted"),
        ((20, 71, 91), (72, 437, 573), "contradicted"),
    ],
)
def test_sizes_are_the_papers_if_one_way_of_counting_gives_them_all(one, two, outcome, monkeypatch):
    found = {
        task: training_text.Counts(*counts, empty=2.0)
        for task, counts in zip(training_text.PRINTED, (one, two), strict=True)
    }
    monkeypatch.setattr(training_text, "kept", lambda: found)
    (sizes, _) = training_text.decisions()
    assert (sizes[0], sizes[1].outcome) == ("memreasoner-053", outcome)


def test_what_no_training_decides_is_read_from_no_run(store, monkeypatch):
    """It is kept by what was measured alone."""

    def asked(*_: object) -> None:
        raise AssertionError("a run was read")

    for name in ("records", "usable", "further"):
        monkeypatch.setattr(type(store), name, asked)
    assert computed.decided(store)


def test_no_claim_is_decided_twice_and_each_is_one_of_the_paper(survey, store):
    assert not survey.ledger["claim"].duplicated().any()
    known = set(published.prose_claims()["claim_id"])
    assert {one.claim for one in computed.decided(store)} <= known
    judged = {claim.id for paper in claims.papers() for claim in claims.load(paper)}
    on_pages = {one.claim for one in computed.decided(store)}
    assert not judged & on_pages
    assert known <= judged | on_pages  # and none is left out


def test_each_stands_beside_the_papers_own_sentence(survey):
    rows = survey.ledger[survey.ledger["page"] != ""].set_index("claim")
    quotes = QUOTES | cost.QUOTES | training_text.QUOTES
    assert rows["quote"].to_dict() == quotes
    for quote in quotes.values():
        assert quote.endswith(".") and not re.search(r"[.!?] [A-Z]", quote)
    assert "“This ensures any address in the address space" in claims_list(survey)


@pytest.mark.weekly  # it counts the words of all training sets
@pytest.mark.skipif(bool(why := data.lacks_files("babi")), reason=f"bAbI: {why}")
def test_what_training_shows_is_what_its_data_have():
    found = {kind().name: training_text.count(kind()) for kind in training_text.TASKS}
    assert found == training_text.kept() and set(found) == set(training_text.PRINTED)


def test_what_is_not_measured_is_not_run_and_says_how_it_would_be(tmp_path):
    rows = computed.ledger(Store(tmp_path)).set_index("claim")
    assert rows.loc["panm-077", ["verdict", "seeds"]].tolist() == ["not run", 0]
    assert rows.loc["panm-077", "needed"] == "relength bench --paper panm"
    assert rows.loc["panm-018", "verdict"] == "contradicted"  # arithmetic needs no measurement
    assert rows.loc[["panm-018", "panm-039"], "unit"].tolist() == ["calculation"] * 2


def test_pages_link_to_the_page_that_decides(survey):
    listed = claims_list(survey)
    for claim, page in (("panm-016", exposure.PAGE), ("panm-077", overhead.PAGE)):
        box = listed.split(f":name: claim-{claim}\n")[1].split("::::::\n")[0]
        assert f"{{doc}}`/executed/{page}`" in box
    assert "5 simulations" in listed and "5 rounds" in listed
    answers = unpacked(landing.answers(survey))
    assert f'<a href="executed/{exposure.PAGE}.html">the page that shows it</a>' in answers
    assert "<dt>5 rounds</dt>" in answers


def test_a_rule_that_was_changed_after_its_results_is_said_to_be(survey):
    rows = survey.ledger[survey.ledger["page"] != ""].set_index("claim")
    changed = set(rows.index[rows["claim_changed"] != ""])
    assert {"panm-016", "panm-077", "memreasoner-053"} <= changed
    assert "panm-013" not in changed
