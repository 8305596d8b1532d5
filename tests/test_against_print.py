"""Printed against ours: every printed accuracy with runs once, beside what our runs give."""

import dataclasses
import itertools
import json
import re
from pathlib import Path

import handmade
import numpy as np
import pandas as pd
import pytest

from relength.paths import BOOK
from relength.report import against_print, landing
from relength.report.scoreboard import Survey, survey
from relength.runs.store import Store
from relength.specs import registry
from relength.specs.experiments import experiment
from relength.specs.published import table
from relength.verdicts import claims

pytestmark = pytest.mark.usefixtures("claimed")
# What the seeds of a run of LocAttn on ReCopy give; all others are perfect.
LOCATION = (0.7, 0.8, 0.9)


def accuracy(spec, test: str) -> float:
    if spec.row == "LocAttn" and spec.task.name == "recopy" and test != "iid":
        return LOCATION[spec.seed]
    return 1.0


@pytest.fixture(scope="module")
def state(tmp_path_factory, claimed) -> Survey:
    folder = tmp_path_factory.mktemp("print")
    found = experiment("mla_table2")
    file: Path = folder / "mla" / "mla_table2.runs.jsonl"
    file.parent.mkdir(parents=True)
    specs = found.specs("reduced", range(len(LOCATION)))
    file.write_text("".join(f"{json.dumps(handmade.record(s, accuracy))}\n" for s in specs))
    return survey(Store(folder))


def test_a_number_stands_beside_the_median_and_every_seed(state):
    rows = against_print.numbers("mla", state).set_index(["model", "task", "test"])
    row = rows.loc["LocAttn", "recopy", "15"]
    cells = table("mla-table-2").set_index(["row", "task", "test"])["value"]
    assert row["printed"] == cells["LocAttn", "recopy", "15"]
    assert row["values"] == pytest.approx([70, 80, 90]) and row["ours"] == pytest.approx(80)
    assert row["near"] and row["between"]  # 79.6 is printed
    off = rows.loc["Content", "copy", "100"]
    assert (off["printed"], off["ours"], bool(off["near"])) == (0, 100, False)


def test_numbers_are_accuracies_and_each_counts_once(state):
    data = against_print.numbers("mla", state)
    assert not data.duplicated(["model", "task", "test"]).any()
    assert "mla-table-9" not in set(data["artifact"])  # edit distances of the same runs
    mine = state.ledger[~state.ledger["prose"].astype(bool) & (state.ledger["seeds"] > 0)]
    accuracies = mine[mine["artifact"] != "mla-table-9"]
    assert set(data["claim"]) <= set(accuracies["claim"])


def test_few_seeds_are_no_answer(state):
    data = against_print.numbers("mla", state)
    enough = pd.concat([data] * against_print.FEWEST, ignore_index=True).assign(seeds=5)
    assert not against_print.sentence("mla", enough).startswith(f"**{against_print.BEGUN}")
    few = data.assign(seeds=3)
    assert against_print.sentence("mla", few).startswith(f"**{against_print.BEGUN}")


def test_numbers_without_the_seeds_of_a_verdict_do_not_choose_the_word(state):
    """None of 25 numbers with five seeds comes out. Numbers with fewer seeds change nothing."""
    data = against_print.numbers("mla", state)
    off, near = (pd.concat([data[data["near"] == held]] * 60) for held in (False, True))
    off, near = off.head(25), near.head(60)
    mixed = pd.concat([off.assign(seeds=5), near.assign(seeds=3)], ignore_index=True)
    said = against_print.sentence("mla", mixed)
    *_, hardly = against_print.WORDS
    assert said.startswith(f"**{hardly}")
    numbers = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", said)]
    assert numbers[:3] == [25, 5, 0]  # of 25 numbers, with so many seeds, none comes out
    assert not against_print.sentence("mla", mixed.assign(seeds=5)).startswith(f"**{hardly}")
    few = mixed.drop(mixed.index[:10])  # 15 are too few for a word
    assert against_print.sentence("mla", few).startswith(f"**{against_print.BEGUN}.**")


def test_a_paper_of_larger_models_has_no_word(state, monkeypatch):
    data = against_print.numbers("mla", state)
    data = pd.concat([data] * against_print.FEWEST, ignore_index=True).assign(seeds=5)
    papers = registry.papers()
    small = dataclasses.replace(papers["mla"], parameters=1e9)
    monkeypatch.setattr(registry, "papers", lambda: {**papers, "mla": small})
    assert against_print.sentence("mla", data).startswith(f"**{against_print.OTHER}.**")
    assert claims.caution("mla", "contradicted") != claims.caution("panm", "contradicted")
    sizes = re.search(r"has? ([\d,]+) million", against_print.asides("mla", data, state))
    assert sizes[1] == "1,000"


def test_a_length_stands_behind_at_and_another_test_behind_a_comma():
    names = [against_print._at(test) for test in ("1k", "128", "median", "")]
    assert names == [" at 1k", " at 128", ", median", ""]


def test_training_is_counted_in_samples(state):
    data = against_print.numbers("mla", state)
    one = data[data["experiment"] == "mla_table2"].head(1)
    (spec, paper) = (
        next(
            s
            for s in experiment("mla_table2").specs(scale, [0])
            if (s.row, s.model.arm, s.task.name) == tuple(one[["model", "arm", "task"]].iloc[0])
        )
        for scale in ("reduced", "paper")
    )
    seen, wanted = (s.training.most_steps(s.task) * s.training.batch_size for s in (spec, paper))
    assert against_print.effort(one.assign(scale="reduced")) == pytest.approx(seen / wanted)
    assert against_print.effort(one.assign(scale="paper")) is None


def test_what_weakens_a_verdict_stands_beside_a_named_number(state):
    data = against_print.numbers("mla", state)
    off = data[~data["near"].astype(bool)].head(1)
    plain, weak = (
        against_print.listed(off.assign(marks=[[]])),
        against_print.listed(off.assign(marks=[["fragile"]])),
    )
    assert "fragile" in weak and "fragile" not in plain
    assert off["label"].iloc[0] in plain and "own scale" not in plain
    assert "12 at the paper" in against_print.listed(off.assign(marks=[[]], full=12.0))


def test_numbers_that_guessing_gives_are_no_hard_ones(state, monkeypatch):
    """Numbers printed near 80 % are counted apart where one answer gives 80 %."""
    papers = registry.papers()
    small = dataclasses.replace(papers["mla"], guessed={"recopy": 80.0})
    monkeypatch.setattr(registry, "papers", lambda: {**papers, "mla": small})
    data = against_print.numbers("mla", state)
    apart = data[data["guessed"].astype(bool)]
    assert set(apart["task"]) == {"recopy"} and apart["printed"].between(75, 85).all()
    hard = data[data["between"].astype(bool) & ~data["guessed"].astype(bool)]
    said = handmade.amounts(against_print.sentence("mla", data))
    hard_ones = [len(hard), 5, 95, int(hard["near"].sum())]
    assert said[3:7] == hard_ones
    assert said[7:11] == [len(apart), 5, 80, int(apart["near"].sum())]


@pytest.mark.parametrize(
    ("every", "middle", "word"),
    [
        ((95, 100), (9, 10), "Largely"),
        ((95, 100), (3, 10), "In part"),  # floor and ceiling alone come out
        ((40, 100), (6, 10), "In part"),
        ((40, 100), (3, 10), "Hardly"),
        ((95, 100), (0, 0), "Largely"),
    ],
)
def test_the_word_needs_the_hard_numbers_as_well(every, middle, word):
    assert against_print.held(*(against_print.Count(*some) for some in (every, middle))) == word


def test_corners_count_the_numbers_that_the_sentence_counts(state):
    data = against_print.numbers("mla", state)
    half = data.assign(seeds=np.where(np.arange(len(data)) % 2, 5, 3))
    wide = against_print.figure("mla", half, state, "front").html.split('class="narrow"')[0]
    counts = [tuple(map(int, pair)) for pair in re.findall(r"(\d+) of (\d+) come out", wide)]
    enough = against_print.decided(half)
    ends = [enough[enough["printed"] <= 5], enough[enough["printed"] >= 95]]
    assert counts == [(int(rows["near"].sum()), len(rows)) for rows in ends if len(rows) > 1]
    assert counts


def test_decided_numbers_lie_above_undecided_ones(state):
    data = against_print.numbers("mla", state).assign(label="inconclusive", seeds=5)
    data.loc[data.index[0], "label"] = "reproduced (reduced)"
    wide = against_print.figure("mla", data, state, "front").html.split('class="narrow"')[0]
    marks = re.findall(r"<(?:use|g) [^>]*fill: var\(--rl-(\w+)\)[^>]*fill-opacity: 0\.75", wide)
    assert marks[-1] == "first" and set(marks[:-1]) == {"muted"}


def test_the_only_model_is_not_named_as_the_one_that_most_are_of(state):
    data = against_print.numbers("mla", state)
    tasks = list(itertools.islice(itertools.cycle(["copy", "recopy", "copy"]), len(data)))
    one = data.assign(near=False, model="LocAttn", task=tasks)
    assert against_print.mostly(one)[0] == "Copy"
    assert against_print.mostly(one.assign(task="copy")) is None
    even = one.head(2).assign(task=["copy", "recopy"])
    assert against_print.mostly(even) is None  # neither has most


def test_contradicted_numbers_are_named_first_and_those_of_few_seeds_last(state):
    data = against_print.numbers("mla", state)
    off = data[~data["near"].astype(bool)].drop_duplicates("model")
    nearest = (off["ours"] - off["printed"]).abs().idxmin()
    against = data.assign(seeds=5)
    against.loc[nearest, "label"] = "contradicted (reduced)"
    assert against_print.outliers(against).iloc[0]["claim"] == data.loc[nearest, "claim"]
    alone = data.assign(seeds=3)
    alone.loc[nearest, "seeds"] = 5
    assert against_print.outliers(alone).iloc[0]["claim"] == data.loc[nearest, "claim"]


def test_the_sentence_counts_what_the_table_has(state):
    data = against_print.numbers("mla", state)
    near = (data["ours"] - data["printed"]).abs() <= 5
    middle = (data["printed"] > 5) & (data["printed"] < 95)
    said = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", against_print.sentence("mla", data))]
    assert said[:2] == [len(data), near.sum()]
    assert said[3] == middle.sum() and said[6] == (near & middle).sum()
    above = ~near & (data["ours"] > data["printed"])
    assert said[7:9] == [(~near).sum(), above.sum()]
    more = re.search(r"(\d+) more", against_print.asides("mla", data, state))
    assert int(more[1]) == against_print.printed("mla") - len(data)
    assert near.to_list() == data["near"].to_list()


def test_outliers_are_the_furthest_of_their_model_and_outside_the_margin(state):
    data = against_print.numbers("mla", state)
    apart = (data["ours"] - data["printed"]).abs()
    found = against_print.outliers(data)
    assert 0 < len(found) <= against_print.LABELLED and not found["model"].duplicated().any()
    for row in found.itertuples():
        assert row.apart == apart[data["model"] == row.model].max() > 5
    assert against_print.outliers(data[data["near"].astype(bool)]).empty


def test_the_drawing_has_a_mark_per_number_and_a_dot_per_seed(state):
    data = against_print.numbers("mla", state)
    exhibit = against_print.figure("mla", data, state, "front")
    wide = exhibit.html.split('class="narrow"')[0]
    assert len(re.findall("<use ", wide)) >= len(data)
    dots = re.findall(r"M([\d.]+ [\d.]+) \1(?=[M\"])", wide)  # lines of no length
    assert len(dots) == data["seeds"].sum()
    assert exhibit.data["claim"].to_list() == data["claim"].to_list()
    assert np.array_equal(exhibit.data["seeds"], data["seeds"])


def test_the_specs_behind_it_are_those_of_the_judged_runs(state):
    data = against_print.numbers("mla", state)
    used = set(against_print._used(data, state))
    cells = {tuple(row) for row in data[["model", "arm", "task"]].to_numpy()}
    assert len(used) == len(LOCATION) * len(cells)
    shown = state.runs[state.runs["run_id"].isin(used)]
    assert {tuple(row) for row in shown[["model", "arm", "task"]].to_numpy()} == cells


def test_each_chapter_of_findings_begins_with_it_and_the_landing_page_has_it(state):
    for paper in registry.PAPERS:
        page = (BOOK / f"findings_{paper}.md").read_text()
        assert page.index(f"executed/print_{paper}.md") < page.index("executed/findings_")
    assert f'id="front-{registry.PAPERS[0]}-print"' in landing.outcomes(state)
