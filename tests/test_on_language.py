"""Where a pointer helps on language: what a passage of the findings counts, from handmade runs."""

import handmade
import pytest

from relength.papers.panm import on_language
from relength.report.outcomes import busiest
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.scoreboard import survey as made_of
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.specs.margins import load_margins

# Accuracies on longer inputs; a handmade perplexity is ten times what a record lacks of accuracy.
BABI = {"TRM": 0.3, "PANM on TRM": 0.5, "U. TRM+RPE": 0.7}
MATHEMATICS = {
    **{"TRM": 0.2, "PANM on TRM": 0.5, "TRM+RPE": 0.4, "U. TRM": 0.3},
    **{"PANM on TRM+RPE": 0.2, "U. TRM+RPE": 0.42},
}
TRANSLATION = {"TRM": 0.4, "PANM on TRM": 0.8}


def fill(
    store: Store, name: str, accuracies: dict[str, float], seeds: int, repaired: float, known=()
):
    """Every model knows the lengths of training equally well but those in ``known``."""
    for spec in experiment(name).specs("reduced", range(seeds)):

        def accuracy(spec, test):
            if test == spec.task.tests[0]:
                return dict(known).get(spec.model.name, 0.9)
            return repaired if spec.model.arm == "repaired" else accuracies[spec.model.name]

        if spec.model.name in accuracies:
            store.append("panm", handmade.record(spec, accuracy, experiment=name))


@pytest.fixture(scope="module")
def survey(tmp_path_factory) -> Survey:
    store = Store(tmp_path_factory.mktemp("store"))
    fill(store, "panm_babi", BABI, 2, repaired=0.9)
    fill(store, "panm_mathematics", MATHEMATICS, 5, repaired=0.4)
    fill(store, "panm_translation", TRANSLATION, 2, repaired=0.1)
    return made_of(store)


def settings(survey: Survey, name: str) -> list[on_language.Setting]:
    kind = next(kind for kind in on_language.KINDS if kind.experiment == name)
    return on_language.settings(kind, busiest(survey, name))


def test_a_pointer_that_helps_may_help_less_than_another_network(survey):
    found = settings(survey, "panm_babi")
    assert [(one.row, one.other, one.seeds) for one in found] == [("TRM", "U. TRM+RPE", 2)] * 2
    for one in found:
        assert one.gain(one.pointers) == pytest.approx(20)
        assert one.gain(one.best) == pytest.approx(40)
        assert one.gain(one.repaired) == pytest.approx(60) and one.answer == "both"


def test_each_network_is_compared_with_its_own_pointers_and_the_best_of_the_others(survey):
    by_row = {}
    for one in settings(survey, "panm_mathematics"):
        by_row.setdefault(one.row, set()).add((one.other, one.answer))
    # TRM gains 30 by pointers and 22 by the best other; TRM+RPE loses 20 by pointers.
    assert by_row == {"TRM": {("U. TRM+RPE", "pointer")}, "TRM+RPE": {("U. TRM+RPE", "harm")}}


def test_less_perplexity_is_better_and_other_depths_are_other_networks(survey):
    found = settings(survey, "panm_translation")
    assert {(one.answer, bool(one.other)) for one in found} == {("pointer", True), ("helps", False)}
    assert {one.row for one in found} == {"TRM, 1 layer", "TRM, 2 layers", "TRM"}
    for one in found:
        assert one.pointers == pytest.approx(2) and one.gain(one.pointers) == pytest.approx(4)
    compared = [one for one in found if one.other]
    assert {one.task for one in compared} == {"multi30k_50", "multi30k_80"}  # of several depths
    for one in compared:
        assert one.gain(one.best) == pytest.approx(0) and one.other != one.row


def test_networks_alone_and_with_pointers_are_compared_by_the_seeds_that_both_have(tmp_path):
    """The third seed of PANM, which the network alone lacks, would bring it ahead by 40 points."""
    store = Store(tmp_path)
    for spec in experiment("panm_scan").specs("reduced", range(3)):
        pointers = spec.row == "PANM on TRM" and spec.model.arm == "paper"
        if spec.task.cut_off == 25 and (pointers or (spec.row == "TRM" and spec.seed == 0)):
            far = 0.9 if spec.seed else 0.3
            made = handmade.record(spec, lambda *_, far=far: far, experiment="panm_scan")
            store.append("panm", made | {"parameters": 3_000 if pointers else 2_000})
    (found,) = settings(made_of(store), "panm_scan")
    assert (found.alone, found.pointers, found.seeds) == (30, 30, 1)
    assert found.size == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("known", "answer"), [(0.9, "behind"), (0.86, "behind"), (0.84, "untrained")]
)
def test_without_runs_of_the_network_alone_the_best_other_is_what_pointers_are_compared_with(
    tmp_path, known, answer
):
    store, mathematics = Store(tmp_path), {"PANM on TRM": 0.3, "TRM+RPE": 0.4, "U. TRM": 0.2}
    fill(store, "panm_scan", mathematics, 1, repaired=0.3, known={"PANM on TRM": known})
    state = made_of(store)
    found = settings(state, "panm_scan")
    assert found and {(one.other, one.answer) for one in found} == {("TRM+RPE", answer)}
    if answer == "untrained":
        assert "| not run |" in on_language.on_language(state)


@pytest.mark.parametrize(
    ("pointers", "answer"), [(40, "untrained"), (54.5, "untrained"), (55.5, "helps")]
)
def test_pointers_that_help_count_even_if_trained_lengths_are_known_less_well(pointers, answer):
    nothing, margin = float("nan"), load_margins().measures["accuracy"].around(50)
    made = on_language.Setting(
        "babi_80", "length", "TRM", 50, pointers, nothing, "", nothing, 1, margin, 3, trained=-2
    )
    assert made.answer == answer
    alone = made._replace(alone=nothing, other="TRM+RPE", best=50)
    assert alone.answer == {"helps": "ahead"}.get(answer, answer)


@pytest.mark.parametrize(("known", "answer"), [(49.9, "unlearned"), (50, "helps"), (None, "helps")])
def test_networks_that_have_not_learned_the_lengths_of_training_tell_nothing(known, answer):
    nothing, margin = float("nan"), load_margins().measures["accuracy"].around(50)
    made = on_language.Setting(
        *("squad_80", "length", "BERT", 20, 40, nothing, "", nothing, 1, margin, 3),
        known=nothing if known is None else known,
    )
    assert made.answer == answer


@pytest.mark.parametrize(
    ("alone", "answer"),
    [
        ([0.9, 0.9, 0.9, 0.9, 0.9], "harm"),
        ([0.99, 0.31, 0.3, 0.3, 0.32], "seeds"),  # ahead of PANM by 14 points in the mean
        ([0.31, 0.31, 0.3, 0.3, 0.32], "nothing"),
    ],
)
def test_a_lead_of_one_seed_is_told_from_that_of_most(tmp_path, alone, answer):
    store = Store(tmp_path)
    for spec in experiment("panm_dyck").specs("paper", range(5)):

        def accuracy(spec, test):
            known = test == spec.task.tests[0]
            return 1 if known else alone[spec.seed] if spec.row == "SRNN" else 0.3

        store.append("panm", handmade.record(spec, accuracy, experiment="panm_dyck"))
    assert {one.answer for one in settings(made_of(store), "panm_dyck")} == {answer}


@pytest.mark.parametrize(
    ("pointers", "trained", "answer"),
    [
        (60, 3, "learned"),  # two margins ahead, three on trained lengths
        (57, 7 / 5.000000001, "learned"),  # seven points ahead on both
        (60, 1.5, "helps"),
        (60, 0.9, "helps"),  # within the margin
        (52, 3, "nothing"),
        (40, 3, "harm"),
    ],
)
def test_pointers_that_lead_as_far_on_trained_lengths_are_no_help_on_longer_ones(
    pointers, trained, answer
):
    nothing, margin = float("nan"), load_margins().measures["accuracy"].around(50)
    made = on_language.Setting(
        "babi_80", "length", "TRM", 50, pointers, nothing, "", nothing, 1, margin, 3, trained
    )
    assert margin == pytest.approx(5) and made.answer == answer


def test_seeds_are_the_fewest_of_all_that_are_compared(tmp_path):
    store = Store(tmp_path)
    fill(store, "panm_babi", {"TRM": 0.3, "PANM on TRM": 0.5}, 3, repaired=0.5)
    fill(store, "panm_babi", {"U. TRM+RPE": 0.7}, 1, repaired=0.5)
    (kind,) = (kind for kind in on_language.KINDS if kind.experiment == "panm_babi")
    runs = Runs.read(experiment(kind.experiment), "reduced", 5, store)
    found = on_language.settings(kind, runs)
    assert {(one.other, one.seeds) for one in found} == {("U. TRM+RPE", 1)}


@pytest.mark.parametrize(
    ("lead", "answer"), [(5.5, "ahead"), (4.5, "level"), (-4.5, "level"), (-5.5, "behind")]
)
def test_within_the_margin_pointers_and_another_network_are_level(lead, answer):
    nothing, margin = float("nan"), load_margins().measures["accuracy"].around(50)
    made = on_language.Setting(
        "scan_25", "length", "TRM", nothing, 50 + lead, nothing, "TRM+RPE", 50, 1, margin, 3
    )
    assert made.answer == answer


@pytest.mark.parametrize(
    ("pointers", "best", "answer"),
    [
        (60, float("nan"), "helps"),
        (52, float("nan"), "nothing"),
        (48, float("nan"), "nothing"),
        (40, float("nan"), "harm"),
        (60, 58, "pointer"),
        (60, 70, "both"),
        (52, 70, "network"),
        (52, 53, "neither"),
        (40, 70, "harm"),
    ],
)
def test_what_is_within_the_margin_counts_as_nothing(pointers, best, answer):
    margin = load_margins().measures["accuracy"].around(50)
    made = on_language.Setting(
        "babi_80", "length", "TRM", 50, pointers, 50, "other", best, 1, margin, 5
    )
    assert made.answer == answer
    worse = made._replace(alone=-50, pointers=-pointers, best=-best, sign=-1)
    assert worse.answer == answer


def test_the_passage_answers_from_what_is_recorded_and_names_what_is_not_run(survey):
    answered = {kind.words: settings(survey, kind.experiment) for kind in on_language.KINDS}
    assert on_language.by_answer(answered) == {
        "pointer": ["Translation"], "both": ["bAbI"], "mixed": ["Mathematics"]
    }  # fmt: skip
    assert set(on_language.HEADS) == {*on_language.ANSWERS, "mixed"}
    said = on_language.on_language(survey)
    first, rows = said.split("\n")[0], [line for line in said.splitlines() if "| bAbI" in line]
    assert len(rows) == 2 and all(on_language.ANSWERS["both"] in row for row in rows)
    for key, kinds in on_language.by_answer(answered).items():
        assert f"{on_language.HEADS[key]} {', '.join(kinds)}." in first
    missing = [kind for kind, found in answered.items() if not found]
    assert len(missing) == 5 and first.count(on_language.NOT_RUN.capitalize()) == 1
    assert all(kind in first and f"**{kind}:** {on_language.NOT_RUN}." in said for kind in missing)
    for name in ("TRM on bAbI 80 length", "TRM on bAbI 50 length"):  # repaired ones are far better
        assert name in first


def test_without_runs_everything_is_not_run(tmp_path):
    said = on_language.on_language(made_of(Store(tmp_path)))
    assert said.count(f":** {on_language.NOT_RUN}.") == len(on_language.KINDS) and "|" not in said
