"""Deviations are complete data, and their effects are read off pairs of recorded runs."""

import re
from collections import Counter

import handmade
import numpy as np
import pandas as pd
import pytest

from relength.errors import RelengthError
from relength.paths import BOOK, RESULTS
from relength.report import appendix
from relength.report.deviations import NOT_MEASURED, SECTIONS, anchor, in_words, moves, page
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.runs.store import Store, cause, frame
from relength.specs import registry
from relength.specs.experiments import experiment, experiments
from relength.specs.margins import load_margins
from relength.verdicts import deviations
from relength.verdicts.deviations import Measure, effect

EXPERIMENT = experiment("mla_table2")
EVERY = {paper: deviations.load(paper) for paper in deviations.papers()}


def survey(runs: pd.DataFrame) -> Survey:
    nothing = pd.DataFrame()
    return Survey(nothing, nothing, nothing, runs, Store("nowhere"))


def test_every_paper_has_its_deviations_and_a_page_for_them():
    assert set(EVERY) == set(registry.PAPERS)
    for paper in registry.PAPERS:
        text = (BOOK / f"deviations_{paper}.md").read_text()
        assert f"```{{include}} executed/deviations_{paper}.md\n" in text


@pytest.mark.parametrize("paper", EVERY)
def test_entries_have_a_name_of_their_own_and_say_where_the_paper_speaks(paper):
    entries = EVERY[paper]
    twice = [a for a, n in Counter(anchor(paper, e) for e in entries).items() if n > 1]
    assert twice == []
    for entry in entries:
        if entry.kind == "contradiction":
            assert re.search(r"Section|Eq|Table|Appendix|Supplement|Figure|Algorithm", entry.where)
        for said in (entry.paper, entry.released, entry.here, entry.why, entry.effect):
            assert said.endswith((".", "…", '"')) or said == "0.27", (entry.title, said)


def test_what_is_measured_names_papers_own_models_and_known_columns():
    for paper, entries in EVERY.items():
        own = {e.name for e in experiments().values() if e.paper == paper}
        for measure in (measure for entry in entries for measure in entry.measures):
            named = set(measure.where.get("experiment", ()))
            assert {measure.first.experiment, measure.second.experiment, *named} - {None} <= own


def test_what_is_said_of_the_longest_run_of_tracking_is_in_its_record():
    (entry,) = (e for e in EVERY["memreasoner"] if e.title == "Baselines of variable tracking")
    _, key, said = re.split(r"\(([0-9a-f]{12})\)", entry.effect)
    (record,) = (r for r in Store(RESULTS).records() if r["key"] == key)
    known = [round(100 * point["iid_accuracy"]) for point in record["curve"]]
    # One of five chains of two lines is asked for: any of 2 to 10 names, or of 1 to 5 chains.
    guesses = [round(100 * np.mean([1 / (names * k) for k in range(1, 6)])) for names in (2, 1)]
    told = [known[3], max(known), known[-1], *guesses]
    assert [int(n) for n in re.findall(r"(\d+) %", said)] == told
    assert f"{len(known)} epochs" in entry.effect
    # The first runs of two hops, of shorter segments and fewer epochs, and those of today.
    by_setting: dict[tuple, dict[str, list[float]]] = {}
    for record in Store(RESULTS).records():
        model, task = record["spec"]["model"], record["spec"]["task"]["name"]
        if (model["name"], task) == ("RMT", "vt_2hop"):
            setting = model["segment"], record["spec"]["training"]["epochs"]
            for test, found in record["checkpoints"]["selected"]["tests"].items():
                of = by_setting.setdefault(setting, {}).setdefault(test, [])
                of.append(100 * found["answer_accuracy"])
    first, today = by_setting[64, 4], by_setting[85, 8]
    margin = load_margins().measures["accuracy"].around(0)
    for test in first:
        assert len(first[test]) == len(today[test]) == 3
        assert abs(np.median(first[test]) - np.median(today[test])) <= margin


def test_what_is_said_of_equal_trainings_that_differ_is_in_their_records():
    (entry,) = (e for e in EVERY["memreasoner"] if e.title == "One model for every question of an "
                "ablation")  # fmt: skip
    medians = [
        round(float(np.median(Runs.read(experiment(name), "reduced", 5, Store(RESULTS)).values(
            "Larimar", "paper", task, "babi"))))
        for name, task in (
            ("memreasoner_babilong", "babi_one_fact"),
            ("memreasoner_locations", "babi_one_fact_new_places"),
        )
    ]  # fmt: skip
    assert [int(n) for n in re.findall(r"(\d+) %", entry.effect)] == medians


def test_what_is_said_of_the_iteration_that_diverges_is_in_its_records():
    said = r"diverges for (\d+) to (\d+) % of the questions at (\w+) and for all .* from (\w+) on"
    (found,) = filter(None, (re.search(said, entry.effect) for entry in EVERY["memreasoner"]))
    least, most, length, always = found.groups()
    cell = ("MemReasoner", "released")
    runs = Runs.read(experiment("memreasoner_babilong"), "reduced", 5, Store(RESULTS))
    shares = [
        {test: found["diverged"] for test, found in r["checkpoints"]["selected"]["tests"].items()}
        for r in runs.cell(*cell, "babi_one_fact")
    ]
    assert len(shares) == 5
    there = [round(100 * seed[length]) for seed in shares]
    assert (min(there), max(there)) == (int(least), int(most))
    tests = runs.tests["babi_one_fact"]
    all_lost = [test for test in tests if all(seed[test] == 1 for seed in shares)]
    assert all_lost == list(tests[tests.index(always) :])
    for page_of_two in ("memreasoner_two_facts", "memreasoner_hops"):
        runs = Runs.read(experiment(page_of_two), "reduced", 5, Store(RESULTS))
        ((_, failed),) = ((c, made) for c, made in runs.broken.items() if c[:2] == cell)
        assert len(failed) == 5 and all("singular value" in cause(record) for record in failed)


@pytest.mark.parametrize(
    ("sides", "why"),
    [
        ({"from": {"arm": "paper"}, "to": {"arm": "paper"}}, "the same"),
        ({"from": {"arm": "paper"}, "to": {"scale": "paper"}}, "the same columns"),
        ({"from": {"name": "a"}, "to": {"name": "b"}}, "the same"),
        ({"from": {"metric": "exact_match"}, "to": {"metric": "beauty"}}, "exact_match"),
    ],
)
def test_a_comparison_of_nothing_is_refused(sides, why):
    with pytest.raises(ValueError, match=why):
        Measure(**sides)


def test_an_incomplete_file_is_refused(tmp_path):
    (tmp_path / "mla.yml").write_text("- title: Something\n")
    with pytest.raises(RelengthError, match="applies"):
        deviations.load("mla", tmp_path)
    with pytest.raises(RelengthError, match=r"belong in .*nobody\.yml"):
        deviations.load("nobody", tmp_path)


def records(accuracy, scales=("reduced",), seeds=range(5)):
    """Runs of OneStepAttn in both readings on two tasks."""
    return [
        handmade.record(spec, accuracy)
        for scale in scales
        for spec in EXPERIMENT.specs(scale, seeds)
        if spec.model.name == "OneStepAttn" and spec.task.name in ("copy", "recopy")
    ]


def by_arm(spec, test):
    """The arm paper loses a fifth at the longest test, and half of it on ReCopy."""
    if spec.model.arm == "released" or test != spec.task.tests[-1]:
        return 1.0
    return 0.8 if spec.task.name == "copy" else 0.5


ARMS = Measure(
    **{"from": {"arm": "paper"}, "to": {"arm": "released"}, "where": {"model": ["OneStepAttn"]}}
)


def test_an_effect_is_the_difference_between_runs_equal_in_everything_else():
    found = effect(ARMS, frame(records(by_arm)))
    assert len(found.table) == 2 * 5 * 4 and len(found.longest) == 2 * 5
    assert set(found.longest["test"]) == {"100"}
    difference = found.longest.groupby("task")["difference"].unique().to_dict()
    assert difference["copy"] == pytest.approx([20.0])
    assert difference["recopy"] == pytest.approx([50.0])
    counts = moves(found)
    assert counts.pairs == {"reduced": 10} and set(counts.seeds) == {5}
    assert (counts.same, counts.more, counts.fewer) == (0, 10, 0)
    assert (counts.median, counts.low, counts.high) == pytest.approx((35, 20, 50))
    assert counts.most[["model", "task", "test"]].tolist() == ["OneStepAttn", "recopy", "100"]
    assert counts.lacking(5) == 0


def test_runs_that_two_tables_share_are_one_pair():
    once = records(by_arm)
    twice = [*once, *(record | {"experiment": "mla_ablations"} for record in once)]
    assert len(effect(ARMS, frame(twice)).table) == len(effect(ARMS, frame(once)).table)


def test_cells_with_few_seeds_are_counted():
    one = moves(effect(ARMS, frame(records(by_arm, seeds=[0]))))
    assert set(one.seeds) == {1} and one.lacking(5) == len(one.seeds) == 2
    uneven = [
        r for r in records(by_arm) if r["spec"]["task"]["name"] == "copy" or r["spec"]["seed"] < 2
    ]
    counts = moves(effect(ARMS, frame(uneven)))
    assert counts.pairs == {"reduced": 7} and sorted(counts.seeds) == [2, 5]
    assert counts.lacking(5) == 1


def test_runs_without_a_partner_show_no_effect():
    one_arm = [r for r in records(by_arm) if r["spec"]["model"]["arm"] == "paper"]
    assert effect(ARMS, frame(one_arm)) is None
    assert effect(ARMS, frame([])) is None


def test_a_smoke_run_is_no_effect():
    assert effect(ARMS, frame(records(by_arm, scales=["smoke"]))) is None


def between(column, first, second) -> Measure:
    return Measure(**{"from": {column: first}, "to": {column: second}})


def test_settings_that_only_the_experiment_tells_are_compared_across_experiments():
    runs = frame(records(by_arm))
    other = runs.assign(experiment="other", accuracy=runs["accuracy"] - 7)
    found = effect(
        between("experiment", "mla_table2", "other"), pd.concat([runs, other], ignore_index=True)
    )
    assert (found.table["difference"].round(6) == -7).all()


def test_scales_checkpoints_and_metrics_are_compared_within_one_seed():
    def by_scale(spec, _):
        return 1.0 if spec.scale == "paper" else 0.9 - 0.1 * spec.seed

    runs = frame(records(by_scale, scales=["reduced", "paper"], seeds=[0, 1]))
    scales = effect(between("scale", "reduced", "paper"), runs)
    assert sorted(scales.longest["difference"].round(6).unique()) == [10.0, 20.0]
    checkpoints = effect(between("checkpoint", "best_iid", "selected"), runs)
    assert (checkpoints.table["difference"] == 0).all()
    assert moves(scales).pairs == {"reduced": 8} and set(moves(scales).seeds) == {2}
    counts = moves(checkpoints)
    assert counts.pairs == {"reduced": 8, "paper": 8} and set(counts.seeds) == {2}
    assert (counts.same, counts.more, counts.fewer, counts.median) == (16, 0, 0, 0)
    metrics = effect(between("metric", "exact_match_true_length", "exact_match"), runs)
    assert len(metrics.table) == 2 * 2 * 2 * 2 * 4 and (metrics.table["difference"] == 0).all()


@pytest.mark.parametrize("paper", EVERY)
def test_a_page_shows_every_entry_once_in_the_section_of_its_kind(paper):
    text = page(paper, survey(frame([])))
    for entry in EVERY[paper]:
        assert text.count(f"({anchor(paper, entry)})=\n") == 1, entry.title
    measurable = sum(bool(entry.measures) for entry in EVERY[paper])
    assert text.count("Measured effect\n:") == text.count(NOT_MEASURED) == measurable
    assert text.count("Expected effect\n:") == len(EVERY[paper]) - measurable
    present = [kind for kind in SECTIONS if any(e.kind == kind for e in EVERY[paper])]
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert heads == [SECTIONS[kind][0] for kind in present]


def test_a_page_shows_what_runs_measured():
    text = page("mla", survey(frame(records(by_arm))))
    entry = text[text.index("### Steepness of OneStepAttn's step") :]
    entry = entry[: entry.index("###", 5)]
    (measure,) = [e for e in EVERY["mla"] if e.title.startswith("Steepness of OneStepAttn")]
    found = [effect(each, frame(records(by_arm))) for each in measure.measures]
    assert in_words(next(filter(None, found))) in entry.replace("\\", "")


def test_the_notebooks_list_has_what_we_do_and_leaves_contradictions_to_the_page():
    shown = appendix.deviations("mla")
    assert "Training budget at scale reduced" in set(shown.data["title"])
    assert set(shown.data["kind"]) == {"deviation", "omission", "assumption"}
    assert len(shown.data) + sum(e.kind == "contradiction" for e in EVERY["mla"]) == len(
        EVERY["mla"]
    )
