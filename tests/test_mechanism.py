"""Why answers get lost in a novel, and what ablations change: passages on handmade runs."""

import handmade
import pytest
from handmade import amounts

from relength.papers.memreasoner import hops_read, mechanism
from relength.report.outcomes import NOTHING, busiest
from relength.report.scoreboard import Survey
from relength.report.scoreboard import survey as made_of
from relength.runs.store import Store
from relength.specs.experiments import experiment


def survey_of(folder, name: str, accuracy, reads=None) -> Survey:
    """Two seeds of a page.

    accuracy  of a spec at a test; None for no run
    reads     the traces of a spec's run
    """
    store, page = Store(folder), experiment(name)
    for spec in page.specs("reduced", range(2)):
        kept = page.keeper(spec).name
        if accuracy(spec, "0k") is not None:
            record = handmade.record(spec, accuracy, experiment=kept)
            store.append("memreasoner", record | ({"reads": reads(spec)} if reads else {}))
    return made_of(store)


def trace(test: str, near: float, novel: float | None, **first: list[int]) -> dict:
    """Ten questions whose one hop reads so far from the wanted line and from the novel."""
    found = {"wanted": [near] * 5} | ({} if novel is None else {"text": [novel] * 5})
    return {"test": test, "items": 10, "first": first, "distances": [found]}


def plain(spec) -> bool:
    return (spec.row, spec.model.arm) == ("MemReasoner", "paper")


def test_nothing_is_said_without_runs(tmp_path):
    empty = made_of(Store(tmp_path))
    assert [say(empty) for say in mechanism.PASSAGES.values()] == [NOTHING] * 4


def test_the_distances_to_the_wanted_line_and_to_the_novel_stand_side_by_side(tmp_path):
    """Seeds 0 and 1 are 2 and 4 away from the wanted line at 1k, so 3 in the median."""

    def reads(spec):
        far = 2.0 + 2 * spec.seed
        return [trace("0k", 1.0, None, wanted=[10, 0]), trace("1k", far, 9.0, wanted=[10, 0])]

    survey = survey_of(
        tmp_path, "memreasoner_babilong", lambda spec, _: 0.5 if plain(spec) else None, reads
    )
    said = mechanism.moved(survey)
    assert amounts(said) == [1, 3, 9] and "the novel comes no nearer" in said


def test_the_first_wrong_read_is_told_of_one_fact_after_two(tmp_path):
    def reads(_):
        return [trace("0k", 1.0, None, wanted=[4, 1], fact=[1, 2], text=[0, 2])]

    survey = survey_of(
        tmp_path, "memreasoner_hops", lambda spec, _: 0.5 if plain(spec) else None, reads
    )
    # runs; answered, a fact about another and the novel in percent; the update at test
    assert amounts(mechanism.one_after_two(survey)) == [2, 40, 30, 20, 8]


def test_effects_are_those_of_runs_of_one_seed(tmp_path):
    """An update of 8 gains 10 points in seed 0 and loses 20 in seed 1; of epochs there is one."""

    def accuracy(spec, _):
        if spec.task.name != "babi_two_facts_new_places":
            return None
        if plain(spec):
            return 0.5
        return {"alpha=1": 0.4 + 0.3 * spec.seed}.get(spec.row)

    found = mechanism.effects(survey_of(tmp_path, "memreasoner_ablations", accuracy))
    rows = [line.replace("−", "-").split("|") for line in found.splitlines() if "to +10" in line]
    assert len(rows) > 10
    for row in rows:
        assert amounts(row[2]) == [-5, -20, 10] and row[3].strip() == "–"


def test_with_and_without_the_memory(tmp_path):
    rows = {"MemReasoner": 0.8, mechanism.WITHOUT: 0.2}
    survey = survey_of(
        tmp_path, "memreasoner_ablations",
        lambda spec, _: rows.get(spec.row) if spec.model.arm == "paper" else None,
    )  # fmt: skip
    lines = [x.split("|")[3:] for x in mechanism.memory(survey).splitlines() if "bAbI" in x]
    # seeds, and percent of three lengths, on two tasks
    assert [amounts("|".join(x)) for x in lines] == [[2, 80, 80, 80], [2, 20, 20, 20]] * 2


def test_how_far_the_wanted_line_moves_is_told_for_each_order(tmp_path):
    def reads(spec):
        far = 1.0 if spec.row == "No temporal encoding" else 4.0
        return [trace("0k", 1.0, None, wanted=[10, 0]), trace("1k", far, 9.0, wanted=[10, 0])]

    kinds = "No temporal encoding", "Positional Encoding"
    survey = survey_of(
        tmp_path, "memreasoner_ablations",
        lambda spec, _: 0.5 if spec.row in kinds else None, reads,
    )  # fmt: skip
    runs = busiest(survey, "memreasoner_ablations").part("memreasoner-table-17")
    data = hops_read.distances(runs)
    assert [mechanism.further(data, kind, ("0k", "1k")) for kind in kinds] == ["1.0", "4.0"]
    assert mechanism.further(data, kinds[0], ("0k", "2k")) == ""


@pytest.mark.parametrize(("seeds", "points"), [((0, 1), [10, -20]), ((1,), [-20])])
def test_pairs_have_equal_seeds(tmp_path, seeds, points):
    def accuracy(spec, _):
        if spec.task.name != "babi_two_facts_new_places" or spec.seed not in seeds:
            return None if not plain(spec) else 0.5
        return 0.5 if plain(spec) else {"alpha=1": 0.4 + 0.3 * spec.seed}.get(spec.row)

    runs = busiest(survey_of(tmp_path, "memreasoner_ablations", accuracy), "memreasoner_ablations")
    found = mechanism.paired(runs, "babi_two_facts_new_places", "MemReasoner", "alpha=1", "1k")
    assert found == pytest.approx(points)
