"""Tests with new places and the pages that show them: what is asked, and what is judged."""

from collections import Counter

import handmade
import pytest
import torch

from relength.models import MODELS
from relength.papers.memreasoner import split
from relength.papers.memreasoner.ablation_experiments import PARTS, UPDATES, locations
from relength.report import tables
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs import published
from relength.specs.experiments import experiment
from relength.tasks import TASKS
from relength.tasks.facts import NEW_PLACES, PLACES, Episode, OneFact
from relength.tasks.new_places import MOVED, NEW, OneFactNewPlaces, TwoFactsNewPlaces, moved

PAGES = ("memreasoner_locations", "memreasoner_ablations")
lacking = pytest.mark.skipif(bool(why := OneFact().lacks()), reason=f"bAbI and the books: {why}")


def test_every_place_has_a_new_one_and_no_two_have_the_same():
    assert sorted(MOVED) == sorted(PLACES)
    assert sorted(MOVED.values()) == sorted(NEW_PLACES)


def test_nothing_but_places_moves():
    before = Episode(
        ("Mary got the milk.", "", "Mary went to the garden."),
        *("Where is the milk?", "garden", (0, 2)),
    )
    assert moved(before) == before._replace(
        lines=("Mary got the milk.", "", "Mary went to the garage."), answer="garage"
    )


@pytest.mark.parametrize("task", [OneFactNewPlaces(), TwoFactsNewPlaces()])
def test_training_is_as_published_and_its_test_comes_first(task):
    usual = TASKS[task.name.removesuffix("_new_places")]()
    for part in ("train", "validation", "babi"):
        assert task.splits()[part] == usual.splits()[part]
    assert task.tests[:2] == ("babi", NEW) and task.known_test == "babi"
    assert set(task.labels) == {*PLACES, *NEW_PLACES}


@lacking
def test_the_questions_are_those_of_the_published_test():
    task = OneFactNewPlaces(test_size=40)
    old, new = task.episodes("babi", 0), task.episodes(NEW, 0)
    assert [episode.question for episode in new] == [episode.question for episode in old]
    assert [episode.answer for episode in new] == [MOVED[episode.answer] for episode in old]
    told = " ".join(line for episode in new for line in episode.lines)
    assert not [place for place in PLACES if place in told]
    batch = task.encode({NEW: new})[NEW]
    assert {task.spelled(row)[0] for row in batch.targets.tolist()} <= set(NEW_PLACES)


@lacking
def test_one_model_is_asked_for_one_fact_as_babilong_asks():
    task = TwoFactsNewPlaces(long_size=3)
    assert task.episodes("one-fact-0k", 0) == OneFact(long_size=3).episodes("0k", 0)
    assert all(len(episode.supports) == 1 for episode in task.episodes("one-fact-1k", 0))
    assert all(len(episode.supports) == 2 for episode in task.episodes("1k", 0))


@pytest.mark.parametrize("windows", [1, 3])
def test_windows_are_short_and_name_what_no_answer_does(windows):
    """Every one has as many words; the new places are among them, and in no training answer."""
    made = OneFactNewPlaces(
        source="generated", train_size=400, window_words=4, windows=windows, test_size=4
    )
    train = made.dataset("train", 0)
    assert train.texts.shape == ((400,) if windows == 1 else (400, windows))
    pieces = train.sentences[train.texts].flatten(0, -2)
    assert ((pieces > 0).sum(1) == 4).all() and len(pieces) == 400 * windows
    new = {made.vocabulary.index(place) for place in NEW_PLACES}
    assert new <= set(pieces.flatten().tolist())
    assert not new & set(train.targets.flatten().tolist())
    assert len(train.select(slice(0, 2)).texts) == 2


def test_windows_change_the_key_and_train_a_model(monkeypatch):
    monkeypatch.delenv("RELENGTH_DATA", raising=False)
    specs = {s.row: s for s in locations("smoke", 0) if s.task.name == "babi_one_fact_new_places"}
    ours = specs["MemReasoner windows"]
    assert ours.task.window_words and ours.task.source == "generated"
    fields = specs["MemReasoner"].task.model_dump() | {"windows": ours.task.windows}
    assert fields | {"window_words": ours.task.window_words} == ours.task.model_dump()
    train = ours.task.dataset("train", 0).select(slice(0, 8))
    model = MODELS[ours.model.name].module(ours.model, *ours.task.shape).initialise(0)
    outputs, terms = model.with_terms(train, None, ("text",))
    texts = train.sentences[train.texts].flatten(0, 1)
    wanted = model._reconstruction(model.encode(texts), texts)
    assert torch.equal(terms.text, wanted) and outputs.isfinite().all()


# --- pages ----------------------------------------------------------------------------------------


def test_each_run_changes_one_thing_and_the_part_of_the_epochs_is_what_its_row_says():
    specs = experiment("memreasoner_ablations").specs("reduced", [0])
    assert max(Counter((spec.row, spec.task.name) for spec in specs).values()) == 1
    (whole,) = {s.training.epochs for s in specs if s.row.startswith("alpha")}
    for scale in ("reduced", "paper"):
        for spec in experiment("memreasoner_ablations").specs(scale, [0]):
            epochs, part = spec.training.epochs, getattr(spec.model, "trained", "whole")
            if part != "whole":
                assert epochs * PARTS[part] == (whole if scale == "reduced" else 200)
                assert scale == "reduced" or spec.row == f"epochs={epochs}"
    assert {s.model.test_update for s in specs if s.row.startswith("alpha")} == {*UPDATES}
    usual, asked_with_1 = (s for s in specs if s.row.startswith("MemReasoner (weak)"))
    assert asked_with_1.model.test_update == 1
    changed = {"model": usual.model.model_copy(update={"test_update": 1.0})}
    assert usual.model_copy(update=changed) == asked_with_1


def test_tables_find_their_columns_among_the_tests_of_their_own_runs():
    for page in PAGES:
        found = experiment(page)
        specs = found.specs("reduced", [0])
        for artifact in found.tables:
            tests = {
                (spec.task.name, test)
                for spec in specs
                if found.makes(artifact, spec)
                for test in spec.task.tests
            }
            cells = published.table(artifact)
            assert set(zip(cells["task"], cells["test"], strict=True)) <= tests, artifact


@pytest.mark.parametrize("name", PAGES)
def test_runs_that_are_as_printed_reproduce_what_is_judged(name, tmp_path):
    """Every claim of the printed numbers holds of them, but one that its own table contradicts."""
    found = experiment(name)
    paper = tables.printed(*found.tables)
    store = Store(tmp_path)
    # Illegible cells of 50 epochs: what the text says of them, and what they have to be.
    paper.setdefault(("epochs=50", "babi_two_facts_new_places", "moved"), 79.0)
    paper.setdefault(("epochs=50", "babi_two_facts_new_places", "1k"), 60.0)
    paper.setdefault(("epochs=50", "babi_two_facts_new_places", "one-fact-2k"), 44.0)

    def accuracy(spec, test):
        known = 100.0 if test in ("0k", "babi") else 50.0  # where nothing is printed
        printed = paper.get((spec.row, spec.task.name, test), known)
        return min(max(printed + spec.seed / 5 - 0.4, 0), 100) / 100

    for spec in found.specs("reduced", range(5)):
        record = handmade.record(spec, accuracy, experiment=found.keeper(spec).name)
        store.append("memreasoner", record)
    ledger = Runs.read(found, "reduced", 5, store).ledger
    verdicts = ledger.set_index("claim")["verdict"]
    judged = verdicts[verdicts != "not testable"]
    wrong = judged[~judged.str.startswith("reproduced")].to_dict()
    assert len(judged) > 1 and not wrong, wrong


def test_right_lines_are_told_from_right_answers(tmp_path):
    found, store = experiment("memreasoner_locations"), Store(tmp_path)
    for spec in found.specs("reduced", range(3)):
        record = handmade.record(spec, lambda *_: 0.9, experiment=found.name)
        tests = record["checkpoints"]["selected"]["tests"]
        read = {"facts_found": 0.8, "answer_and_facts": 0.16}
        if spec.row != "MemReasoner":  # of the others no record says where they read
            read = dict.fromkeys(read)
        for test in tests.values():
            test |= {"answer_accuracy": 0.2, **read}
        store.append("memreasoner", record)
    runs = Runs.read(found, "reduced", 3, store)
    middle = split.means(runs).loc[:, :, :, NEW]
    assert len(middle) == 2
    for _, row in middle.iterrows():
        assert row.tolist() == pytest.approx([16, 4, 64, 16, 0])
    assert split.figure(runs, number=1).html
