"""What the paper stresses on language, said of handmade runs."""

import handmade
import pytest
from handmade import amounts

from relength.papers.panm import contrasts
from relength.report.outcomes import NOTHING, busiest
from relength.report.scoreboard import Survey
from relength.report.scoreboard import survey as made_of
from relength.runs.store import Store
from relength.specs.experiments import experiment


def recorded(folder, name: str, accuracy, **changes) -> Survey:
    """Two seeds of everything that a page judges.

    accuracy  of a spec at a test; None for no run
    changes   of a record, by a field's name: a function of the record
    """
    store, found = Store(folder), experiment(name)
    for spec in found.specs("reduced", range(2)):
        if accuracy(spec, spec.task.tests[0]) is not None:
            made = handmade.record(spec, accuracy, experiment=name)
            store.append("panm", made | {field: new(made) for field, new in changes.items()})
    return made_of(store)


def test_without_runs_nothing_is_said(tmp_path):
    assert contrasts.contrasts(made_of(Store(tmp_path))) == NOTHING


def test_points_for_knowing_the_end_are_counted_for_each_model(tmp_path):
    """TRM has 50 % and would have 60, PANM twice as much more at one of two cut-offs."""

    def accuracy(spec, _):
        known = spec.row in ("TRM", "PANM on TRM") and spec.task.cut_off in (25, 26)
        return 0.5 if known else None

    def told(record):
        tests = record["checkpoints"]["selected"]["tests"]
        task, row = record["spec"]["task"], record["spec"]["model"]["name"]
        more = 0.2 if (row, task["cut_off"]) == ("PANM on TRM", 26) else 0.1
        longer = tests["length"] | {contrasts.STOPPED: tests["length"]["exact_match"] + more}
        return {"selected": {"epoch": 0, "tests": tests | {"length": longer}}}

    survey = recorded(tmp_path, "panm_scan", accuracy, checkpoints=told)
    said = contrasts.ending(busiest(survey, "panm_scan"))
    # the mean over cut-offs, the most and where it is, and how many cut-offs there are
    assert sorted([amounts(part)[:4] for part in said.split(": ")[1].split(" and ")]) == [
        [10, 10, 25, 2],
        [15, 20, 26, 2],
    ]


def test_every_seed_stands_beside_the_printed_number(tmp_path):
    rows = {"TRM+RPE": 0.7, "PANM on TRM+RPE": 0.6}
    survey = recorded(tmp_path, "panm_mathematics", lambda spec, _: rows.get(spec.row))
    runs = busiest(survey, "panm_mathematics")
    said = contrasts.each_seed(runs, task="math_place_value", test="length")
    assert sorted(amounts(part) for part in said.split(": ")[1].split("; ")) == [
        [60, 60, 86],
        [70, 70, 0],
    ]


def test_overfitting_is_how_far_perplexity_has_risen_from_its_lowest(tmp_path):
    def falling(record):
        """Losses 2 and 2, with PANM 2 and 3: perplexity rises by e."""
        last = 3.0 if "PANM" in record["spec"]["model"]["name"] else 2.0
        first, *_ = record["curve"]
        return [first | {"epoch": k, "dev_loss": loss} for k, loss in enumerate((2.0, last))]

    survey = recorded(tmp_path, "panm_translation", lambda spec, _: 0.5, curve=falling)
    said = contrasts.overfitting(busiest(survey, "panm_translation"))
    alone, pointers = said.split(": ")[1].split("; ")
    assert amounts(alone)[0] == amounts(alone)[-1] == 1
    assert amounts(pointers)[0] == amounts(pointers)[-1] == pytest.approx(2.7)


def test_bleu_without_pointers_and_with_repaired_ones(tmp_path):
    def accuracy(spec, _):
        if spec.task.name != "llm_copy":
            return None
        return 0.6 if spec.model.arm == "repaired" else 0.1

    survey = recorded(tmp_path, "panm_language", accuracy)
    said = contrasts.letters(busiest(survey, "panm_language"), task="llm_copy")
    listed = said.split(": ")[1].split(", ")
    # Letters of a test; its BLEU without pointers and with repaired ones.
    assert [amounts(x)[:3] for x in listed] == [[n, 10, 60] for n in (20, 40, 100, 200, 500)]
