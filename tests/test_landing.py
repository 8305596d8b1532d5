"""The landing page tells in ten seconds what held, and answers questions about single claims."""

import html
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import handmade
import pytest
import typer
from pages import unpacked

from relength.cli import main as cli
from relength.errors import RelengthError
from relength.paths import BOOK
from relength.report import (
    boxes,
    exhibits,
    expenses,
    findings_counts,
    landing,
    outcomes,
    overviews,
    reach,
    run_index,
    scoreboard,
)
from relength.report.grid import NOT_RUN
from relength.report.markdown import slug
from relength.report.runs import Runs
from relength.report.scoreboard import Survey, survey
from relength.report.style import marks, readings, verdict_kind
from relength.runs.store import Store
from relength.specs import published, registry
from relength.specs.experiments import experiment
from relength.verdicts import claims
from relength.verdicts.claims import VERDICTS

pytestmark = pytest.mark.usefixtures("claimed")

EXPERIMENT = experiment("mla_table2")


def accuracy(spec, test: str) -> float:
    """OneStepAttn and MonoAttn perfect on everything, the others on the lengths trained on only."""
    good = test == "iid" or spec.model.name in ("OneStepAttn", "MonoAttn")
    return 1.0 if good else 0.0


def recorded(folder: Path, seeds: int, scale: str = "paper", result=accuracy) -> Survey:
    file = folder / "mla" / "mla_table2.runs.jsonl"
    file.parent.mkdir(parents=True)
    specs = EXPERIMENT.specs(scale, range(seeds))
    lines = (json.dumps(handmade.record(spec, result)) for spec in specs)
    file.write_text("".join(f"{line}\n" for line in lines))
    return survey(Store(folder))


@pytest.fixture(scope="module")
def full(tmp_path_factory, claimed) -> Survey:
    return recorded(tmp_path_factory.mktemp("full"), 5)


@pytest.fixture(scope="module")
def begun(tmp_path_factory, claimed) -> Survey:
    return recorded(tmp_path_factory.mktemp("begun"), 2, "reduced")


@pytest.fixture(scope="module")
def empty(tmp_path_factory, claimed) -> Survey:
    return survey(Store(tmp_path_factory.mktemp("empty") / "nothing"))


def held(state: Survey, paper: str) -> str:
    """The part of the landing page that one paper has."""
    parts = re.split(r"^### ", landing.outcomes(state), flags=re.MULTILINE)
    (part,) = (part for part in parts if part.startswith(registry.papers()[paper].title))
    return part


def answers(state: Survey) -> dict[str, dict[str, str]]:
    """{anchor of a claim: {term: text}} of every answer, in order."""
    found, text = {}, unpacked(landing.answers(state))
    for body in re.findall(r'<details class="answer".*?</details>', text):
        says = html.unescape(re.search(r'class="says">(.*?)</span>', body)[1])
        pairs = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", body)
        verdict = re.search(r'<summary>.*class="verdict [^"]*">(.*?)</span>', body)[1]
        facts = {term: html.unescape(re.sub("<[^>]*>", "", text)) for term, text in pairs}
        anchor = re.search(r'href="claims_ledger\.html#claim-(.*?)"', body)[1]
        found[anchor] = {"says": says, "verdict": verdict, **facts}
    return found


def test_every_page_counts_the_same_trainings(begun):
    """The landing page, the letter to the authors, the findings and the page of provenance."""
    runs = len(EXPERIMENT.specs("reduced", range(2)))
    assert landing.standing(begun).trainings == findings_counts.trainings("mla", begun)[0] == runs
    judged, others = findings_counts.known_by_reading(outcomes.busiest(begun, "mla_table2"))
    assert len(judged) + len(others) == runs
    assert run_index.index(begun).count('<tr id="run-') == runs
    assert f"{runs} trainings" in expenses.spent(begun)


def test_the_picture_counts_only_the_runs_that_it_draws(begun):
    shown = landing.picture(begun)
    drawn = 3 * 6 * 2  # tasks, models in the judged arm, seeds
    assert re.search(r"of (\d+) runs", shown)[1] == str(drawn)


def test_the_columns_count_what_the_ledger_says(full, begun):
    for state in (full, begun):
        mine = state.ledger[state.ledger["prose"] & (state.ledger["paper"] == "mla")]
        tested = mine[~mine["verdict"].isin(("not run", "not testable"))]
        decided = [(tested["outcome"] == word).sum() for word in ("contradicted", "reproduced")]
        counts = [int(n) for n in re.findall(r"<b>(\d+)</b> (?:con|rep|open)", held(state, "mla"))]
        assert counts == [*decided, len(tested) - sum(decided)]
    assert 4 <= held(full, "mla").count("claims_ledger.html#claim-") <= 3 * landing.SHOWN


def test_what_a_paper_rests_on_comes_first_and_strong_answers_before_weak_ones(full):
    rows = full.ledger.set_index("claim")
    named = re.findall(r"#claim-(mla-\d+)", held(full, "mla"))
    for outcome in ("reproduced", "contradicted"):
        column = [claim for claim in named if rows.loc[claim].outcome == outcome]
        rests = [claim not in registry.papers()["mla"].quoted for claim in column]
        weak = [bool(rows.loc[c].cautious) + len(marks(rows.loc[c])) for c in column]
        order = [*zip(weak, rests, strict=True)]
        if outcome == "contradicted":
            order = [*zip(rests, weak, strict=True)]
        assert order == sorted(order)


def test_every_claim_is_counted_once(full, begun, empty):
    for state in (full, begun, empty):
        every = claims.once(state.ledger[state.ledger["page"] == ""])["verdict"]
        standing = landing.standing(state)
        assert standing.untestable == (every == "not testable").sum()
        assert standing.words + standing.numbers + standing.waiting + standing.untestable == len(
            every
        )
    assert landing.standing(empty).trainings == 0
    set_up = set(full.ledger["claim"])
    later = sum(claim not in set_up for claim in published.prose_claims()["claim_id"])
    assert landing.standing(full).later == later


def test_a_paper_without_runs_says_so_first(empty):
    for paper in registry.PAPERS:
        _, said, *_ = held(empty, paper).split("\n\n")
        assert said.startswith("**Not run.** 0 of its"), paper


def test_what_takes_no_training_stands_with_the_other_claims_of_its_paper(full):
    apart = full.ledger[(full.ledger["page"] != "") & (full.ledger["outcome"] == "contradicted")]
    said = held(full, "panm")
    assert len(apart) and set(apart["paper"]) == {"panm"}
    assert re.search(r"<b>(\d+)</b> contradicted", said)[1] == str(len(apart))
    assert said.count("without training") >= min(len(apart), landing.SHOWN)


def test_a_paper_without_runs_has_no_figure_and_no_verdict(full, empty):
    for state, papers in ((empty, registry.PAPERS), (full, ("dnc", "memreasoner"))):
        for paper in papers:
            said = held(state, paper)
            tested = said.partition("outcome-not-run")[0]
            named = tested.count("claims_ledger.html#claim-")
            assert "<svg" not in said and named == said.count("without training")


def test_every_claim_of_every_paper_has_a_square(full):
    text = landing.papers(full)
    made = published.prose_claims()
    assert re.findall(r'title="([\w-]+):', text) == [
        claim for paper in registry.PAPERS for claim in made[made["paper"] == paper]["claim_id"]
    ]
    judged = full.ledger[full.ledger["prose"]]
    for label, count in judged["label"].value_counts().items():
        assert text.count(f"({label})") == count


def test_every_verdict_has_a_square_of_its_own():
    css = (BOOK / "assets" / "book.css").read_text()
    for word in VERDICTS:
        assert f".square.verdict-{verdict_kind(word)}" in css


def test_a_stranger_finds_the_example_first_and_everything_about_it(full):
    anchor, facts = next(iter(answers(full).items()))
    row = full.ledger.set_index("claim").loc[landing.front().claim]
    assert anchor == slug("mla-table-2/OneStepAttn/recopy/100") == slug(row.name)
    assert re.findall(r"\d+", facts["says"]) == ["100", "100"]  # length, percent
    assert facts["verdict"] == "reproduced (paper)"
    assert re.findall(r"\d+", facts["seeds"]) == ["5", *"01234"] and "paper" in facts["seeds"]
    assert "hand" in facts["machine"] and facts["code version"]
    assert "--model OneStepAttn --task recopy --arm released" in facts["train it again"]
    assert " 11 min" in facts["train it again"] and 'href="rerun.html"' in landing.answers(full)
    assert facts["other readings"] == readings(row["others"]) != ""


def test_every_claim_has_an_answer_and_numbers_say_what_the_paper_prints(full):
    found = answers(full)
    assert len(found) == len(full.ledger)
    numbers = {
        "Content/recopy/15": ["15", "19.1"],
        "LocAttn/recopy/15": ["15", "79.6"],
        "OneStepAttn/inv_recopy/100": ["100", "0"],
        "LocAttn/copy/15": ["15", "99.8"],
    }
    said = {cell: found[slug(f"mla-table-2/{cell}")] for cell in numbers}
    assert {c: re.findall(r"[\d.]+", facts["says"]) for c, facts in said.items()} == numbers
    assert said["LocAttn/copy/15"]["verdict"] == "contradicted (paper)"


def test_without_runs_an_answer_names_no_machine_but_says_how_to_train(empty):
    facts = next(iter(answers(empty).values()))
    assert facts["verdict"] == "not run"
    assert "machine" not in facts and "seeds" not in facts
    assert "relength run mla_table2 --scale reduced" in facts["train it again"]


def test_the_command_of_every_answer_is_one_that_the_command_line_takes(full):
    program = typer.main.get_command(cli.app).commands["run"]
    for claim in (claim for claim in claims.load("mla") if not claim.not_testable):
        words = shlex.split(landing.command(claim, "paper"))
        assert words[:2] == ["relength", "run"]
        given = program.make_context("run", words[2:]).params
        assert set(claim.cells) <= {
            (spec.row, spec.task.name)
            for spec in experiment(claim.source.experiment).grid("paper", 0)
            if spec.model.name in given["model"] and spec.task.name in given["task"]
        }


def test_the_command_names_models_not_rows_and_every_arm_that_is_judged():
    known = {claim.id: claim for claim in claims.load("panm")}
    heads = shlex.split(landing.command(known["panm-084"], ""))
    assert heads[5:] == [
        *("--model", "PANM", "--task", "panm_copy", "--task", "panm_reverse"),
        *("--arm", "released", "--seeds", "5", "--results", "again"),
    ]
    both = landing.command(known["panm-092"], "paper")
    assert "--model 'Location Attention'" in both and "--arm released --arm paper" in both


def test_the_picture_shows_the_scale_with_most_runs_and_without_any_says_not_run(
    full, begun, empty
):
    assert exhibits.badge("paper") in landing.picture(full)
    assert exhibits.badge("reduced") in landing.picture(begun)
    picture = landing.picture(empty)
    assert picture.count(NOT_RUN) > 18  # every model of three panels, twice


def test_the_picture_draws_what_the_runs_say(full):
    runs = Runs.read(EXPERIMENT, "paper", 5, full.store)
    shown = reach.reach(runs, "mla-table-2", landing.front().tasks)
    assert set(shown.data["task"]) == set(landing.front().tasks)
    assert set(shown.data["arm"]) == {"released"}
    ends = shown.data.query("task == 'recopy' and test == '100'").set_index("model")["median"]
    assert (ends["Content"], ends["OneStepAttn"]) == (0, 100)


@pytest.mark.parametrize("paper", registry.PAPERS)
def test_the_page_of_a_paper_has_its_facts_and_what_the_paper_prints(paper, full):
    assert f"{{cite:t}}`{registry.papers()[paper].cited}`" in overviews.facts(paper, full)
    page = (BOOK / f"{paper}_overview.md").read_text()
    assert f"executed/facts_{paper}.md" in page
    for artifact in registry.papers()[paper].headlines:
        assert f"executed/headline_{paper}.md" in page
        text = overviews.headline(paper, full)
        values = published.table(artifact)["value"].dropna()
        assert all(f"| {value:g} |" in text for value in values)


def test_every_word_of_a_verdict_is_explained():
    words = (BOOK / "how_to_read.md").read_text()
    for verdict in VERDICTS:
        assert f"*{verdict.lower()}" in words.lower(), verdict


def test_claims_of_a_paper_without_a_folder_say_where_it_would_be(tmp_path, monkeypatch):
    monkeypatch.setattr(scoreboard.claims, "papers", lambda: ["mla", "nobody"])
    with pytest.raises(RelengthError, match=r"claims/nobody\.yml.*papers/nobody.*registry\.py"):
        survey(Store(tmp_path))


def test_of_an_open_claim_the_parts_are_named_that_keep_it_open(tmp_path):
    def result(spec, test: str) -> float:
        lost = {"lookup": (0, 1), "reverse_lookup": (4,)}.get(spec.task.name, ())
        return 0.0 if test != "iid" and spec.seed in lost else accuracy(spec, test)

    found = recorded(tmp_path, 5, "reduced", result)
    rows = found.ledger.set_index("claim")
    parts = rows.loc["mla-010"].parts
    assert len(parts) == 6 and sum(part.agree == part.seeds for part in parts) == 4
    least = boxes.open_parts(rows.loc["mla-010"])
    assert [(part.part.task, part.agree, part.seeds) for part in least] == [
        *(("lookup", 3, 5), ("reverse_lookup", 4, 5)),
    ]
    assert boxes.open_parts(rows.loc["mla-003"]) == []  # reproduced
    shown = boxes.sentences(boxes.kept_open(rows.loc["mla-010"]))
    assert shown in boxes.of_claims(["mla-010"], found)
    table = boxes.parts_table([rows.loc["mla-010"], rows.loc["mla-003"]])
    assert table.count("claim-mla-010") == 2 and "claim-mla-003" not in table


def test_parts_of_one_order_on_several_tasks_have_names_that_tell_them_apart():
    for claim in claims.load("dnc"):
        named = [boxes.name_of(part) for part in claim.parts]
        assert len(set(named)) == len(named), claim.id


def test_parts_that_too_few_seeds_agree_on_are_not_what_keeps_a_claim_open(begun):
    rows = begun.ledger.set_index("claim")
    assert rows.loc["mla-010"].outcome == "inconclusive"
    assert boxes.open_parts(rows.loc["mla-010"]) == []


def test_a_column_that_does_not_name_all_its_claims_leads_to_all_of_them(full):
    shown = held(full, "mla")
    count = int(re.search(r"<b>(\d+)</b> reproduced", shown)[1])
    assert count > landing.SHOWN
    address = 'href="claims_ledger.html#what=sentence&amp;paper=mla&amp;verdict=reproduced"'
    assert f"<a {address}>all {count}</a>" in shown
    kinds = {
        verdict_kind(row.label)
        for row in full.ledger[full.ledger["prose"] & (full.ledger["paper"] == "mla")].itertuples()
        if row.outcome not in ("reproduced", "contradicted")
        and row.verdict not in ("not run", "not testable")
    }
    left_open = shown.split("outcome-open")[1]
    every = int(re.search(r"<b>(\d+)</b> open", left_open)[1])
    addresses = re.findall(r"verdict=([\w,-]+)\">all", left_open)
    assert len(addresses) == (every > landing.SHOWN)
    assert all(set(address.split(",")) == kinds for address in addresses)


def test_a_decided_claim_says_whether_its_runs_were_cut_and_whether_that_may_be_why():
    plain = {
        "hardly": None,
        "fragile": False,
        "claim_changed": "",
        "page": "",
        "unit": "",
        "paper": "mla",
    }
    row = plain | {"outcome": "reproduced", "label": "reproduced", "cautious": True}
    assert "hold only because" in landing._beside(SimpleNamespace(**row), "reproduced")
    lost = row | {"outcome": "contradicted", "label": "contradicted"}
    assert "fail only because" in landing._beside(SimpleNamespace(**lost), "contradicted")
    sure = row | {"cautious": False}
    assert landing._beside(SimpleNamespace(**sure), "reproduced") == ""
    both = landing._beside(SimpleNamespace(**row | {"fragile": True}), "reproduced")
    assert len(both.split("; ")) == 2


def test_the_scale_of_a_verdict_stands_on_the_first_page(begun):
    """Claims of few seeds at scale reduced are open, and say with which label."""
    rows = begun.ledger[begun.ledger["prose"] & (begun.ledger["paper"] == "mla")]
    rows = rows[rows["seeds"] > 0]
    shown = held(begun, "mla")
    assert len(rows) and all(f"<small>{label}</small>" in shown for label in set(rows["label"]))
