"""The chapter on MemReasoner, and the page on other decoders: what their passages count."""

import handmade
import pytest
from handmade import amounts

from relength.papers.memreasoner import findings, other_decoders
from relength.papers.memreasoner.experiments import terms_of
from relength.paths import BOOK
from relength.report import passages
from relength.report.outcomes import NOTHING, busiest
from relength.report.scoreboard import Survey
from relength.report.scoreboard import survey as made_of
from relength.runs.store import Store
from relength.specs import published, registry
from relength.specs.experiments import experiment
from relength.verdicts import claims

PAGES = (
    *("memreasoner_babilong", "memreasoner_losses", "memreasoner_locations"),
    "memreasoner_variable_tracking",
)
ALONE = {f"findings_memreasoner_{name}" for name in ("decoders", "large", "conclusion")}  # no run
LOSSES_PAGE = experiment("memreasoner_losses")


@pytest.fixture(scope="module")
def survey(tmp_path_factory) -> Survey:
    """Half of the questions, all without two terms of the loss, a tenth among new places."""
    store = Store(tmp_path_factory.mktemp("store"))

    def accuracy(spec, test):
        if test in ("moved", "babi"):
            return {"moved": 0.1, "babi": 1.0}[test]
        asked = spec.model.name == "MemReasoner" and LOSSES_PAGE.wants(spec)
        return 1.0 if asked and terms_of(spec).startswith("answer and ordering") else 0.5

    for page in PAGES:
        found = experiment(page)
        for spec in found.specs("reduced", range(2)):
            if found.keeper(spec) is found and spec.row == "MemReasoner":
                store.append("memreasoner", handmade.record(spec, accuracy, experiment=page))
    return made_of(store)


@pytest.fixture(scope="module")
def nothing(tmp_path_factory) -> Survey:
    return made_of(Store(tmp_path_factory.mktemp("empty")))


def test_every_passage_is_on_the_page_and_says_when_nothing_is_recorded(nothing):
    page = (BOOK / "findings_memreasoner.md").read_text()
    names = [name for name in passages.PASSAGES if name.startswith("findings_memreasoner_")]
    assert set(findings.PASSAGES) | set(registry.papers()["memreasoner"].claims) == set(names)
    assert all(f"executed/{name}.md" in page for name in names)
    for name in set(findings.PASSAGES) - ALONE:
        assert findings.PASSAGES[name](nothing) == NOTHING


def test_accuracy_by_length_stands_above_what_is_printed(survey):
    lines = findings.reach(survey).splitlines()
    ours = next(line for line in lines if line.startswith("| one fact | MemReasoner | 2 |"))
    said = next(line for line in lines if line.startswith("| one fact | *printed*"))
    assert ours.split("|")[4:-1] == [" 100 ", *[" 50 "] * 9]  # bAbI's own test first
    printed = published.table("memreasoner-table-2").set_index(["model", "test"])["value"]
    assert said.split("|")[5].strip() == f"{printed['MemReasoner', '0k']:g}"


def test_chains_of_variables_stand_above_what_is_legible_in_print(survey):
    lines = findings.chains(survey).splitlines()
    ours = next(line for line in lines if line.startswith("| two hops | MemReasoner |"))
    said = next(line for line in lines if line.startswith("| two hops | *printed*"))
    assert [float(cell) for cell in said.split("|")[4:-1]] == [98.4, 97.6, 97.0, 98.0]
    assert len(ours.split("|")) == len(said.split("|"))
    assert [float(cell) for cell in ours.split("|")[4:-1]] == [50] * 4


def test_what_the_terms_of_the_loss_are_worth_is_told_with_and_without_them(survey):
    lines = findings.terms(survey).splitlines()
    values = {line.split("|")[1].strip(): line.split("|")[3:-1] for line in lines if "|" in line}
    assert values["answer and ordering"] == [" 100 "] * 9
    assert values["all terms"] == [" 50 "] * 9
    beside = {line.split(":")[0]: line for line in lines if line.startswith("- ")}
    gains = amounts(beside["- answer and ordering"].replace("+", " "))
    assert gains == [50, 2, 2] * 2  # points, better in 2 of 2 seeds; at 1k and from 16k on
    assert amounts(beside["- without facts"].replace("+", " "))[0] == 0


def test_a_term_decides_where_the_runs_that_know_babi_agree(tmp_path):
    """No run learns without ordering; of the last choice one seed does not: so too few are left."""
    store = Store(tmp_path)
    long = {"all terms": 0.6, "without other text": 0.4, "without facts": 0.62}
    long |= {"without autoencoding": 0.8, "without facts and autoencoding": 0.61}
    long |= {"answer and ordering": 0.75}

    def accuracy(spec, test):
        terms = terms_of(spec)
        idle = terms == "without ordering" or (terms == "answer and ordering" and spec.seed == 1)
        if test == "babi":
            return 0.9 if idle else 1.0
        far = terms == "without facts and autoencoding" and test in ("16k", "32k", "64k", "128k")
        return 0.1 if idle else long[terms] + 0.15 * far

    for spec in LOSSES_PAGE.specs("reduced", range(5)):
        if not terms_of(spec).endswith("repaired"):
            store.append(
                "memreasoner", handmade.record(spec, accuracy, experiment=LOSSES_PAGE.name)
            )
    lines = findings.deciding(made_of(store)).replace("+", " ").replace("- ", "").strip()
    idle, fewer, more, doubt, *far = lines.splitlines()
    assert "without ordering" in idle and amounts(idle) == [5]
    assert "without other text" in fewer and amounts(fewer)[:2] == [-20, 5]
    assert "without autoencoding" in more and amounts(more)[:2] == [20, 5]
    # At 1k, points and pairs: without facts, without both, answer and ordering.
    assert amounts(doubt) == [2, 5, 1, 5, 15, 4]
    # From 16k on: without other text; without autoencoding and without both; the rest.
    assert [amounts(line)[:4] for line in far] == [[-20, 5], [20, 5, 16, 5], [2, 5, 15, 4]]


def test_what_goes_wrong_first_and_how_near_a_novel_comes_are_those_of_the_traces(tmp_path):
    """Of ten questions at 4k, 4 are right, and 3 read the novel, one of them luckily."""
    store, page = Store(tmp_path), experiment("memreasoner_babilong")
    for spec in page.specs("reduced", range(2)):
        if spec.row == "MemReasoner" and spec.model.arm == "paper":
            record = handmade.record(spec, lambda *_: 1.0, experiment=page.name)
            first = {"wanted": [4, 1], "text": [1, 2], "same": [0, 2]}
            lie = {"facts_spread": 2.0, "text_spread": 1.0, "between": 3.0}
            lie |= {"facts_dimensions": 2.0, "text_dimensions": 4.0}
            record["reads"] = [
                {
                    **{"test": test, "items": 10, "first": first, "codes": lie, "distances": []},
                    "room": [[room + spec.seed / 5] * 5],
                }
                for test, room in (("1k", 1.5), ("4k", 0.9))
            ]
            store.append("memreasoner", record)
    state = made_of(store)
    (said,) = findings.first_wrong(state).strip().splitlines()
    # at 4k, of two runs: right; retrieval, of which the novel; order; writing; right by luck
    assert amounts(said)[-6:] == [40, 30, 30, 20, 10, 10]
    near = findings._near(busiest(state, "memreasoner_losses"), {})
    # medians at both lengths, of two runs; of these, those in which the novel is nearer; spreads
    assert amounts(near) == [1.6, 1.0, 2, 2, 0, 1, 0.5, 1.5]
    beside = findings._near(
        busiest(state, "memreasoner_losses"), {"all terms": ["nothing changes"]}
    )
    assert amounts(beside) == [1.6, 1.0, 2, 1.6, 1.0, 2, 0, 1, 0.5, 1.5]


def test_an_accuracy_that_stays_is_named_with_its_length(tmp_path):
    store, page = Store(tmp_path), experiment("memreasoner_babilong")

    def accuracy(spec, test):
        return 0.2 + 0.1 * spec.seed if test in spec.task.lengths[3:] else 0.9 - 0.1 * spec.seed

    for spec in page.specs("reduced", range(2)):
        if spec.row in ("Larimar", "Mamba") and spec.model.arm == "paper":
            falls = 0.01 * (spec.row == "Mamba")

            def own(spec, test, falls=falls):
                return accuracy(spec, test) - falls * spec.task.tests.index(test)

            store.append("memreasoner", handmade.record(spec, own, experiment=page.name))
    said = findings.reach(made_of(store)).strip().splitlines()[-1]
    assert "Larimar on one fact from 4k on" in said and "Mamba" not in said
    assert amounts(said)[-3:] == [20, 30, 2]  # of two runs


def test_claims_of_large_models_stand_with_their_reasons(nothing):
    said = findings.large(nothing)
    own = [one for one in claims.load("memreasoner") if "/" not in one.id]
    idle = [one for one in own if one.not_testable]
    assert amounts(said.splitlines()[0])[0] == len(idle) < len(own)
    assert all(one.id in said for one in idle)


@pytest.mark.parametrize("after", [0.6, 0.3])
def test_what_a_novel_takes_is_told_with_an_order_of_lines_and_without(after, tmp_path):
    """The reason is given only where a novel takes nothing without an order."""
    store, page = Store(tmp_path), experiment("memreasoner_ablations")
    kinds = "No temporal encoding", "Positional Encoding"

    def accuracy(spec, test):
        if spec.row == kinds[0]:
            return 0.6 if test == "0k" else after
        return {"0k": 1.0, "1k": 0.7}.get(test, 0.4 - 0.1 * spec.seed)

    for spec in page.specs("reduced", range(2)):
        if page.keeper(spec) is page and spec.row in kinds:
            store.append("memreasoner", handmade.record(spec, accuracy, experiment=page.name))
    said = findings.orders(made_of(store)).strip().splitlines()[-1]
    # at most, of how many runs; the least and the largest median of the one order that has runs
    assert amounts(said) == pytest.approx([30, 2, 65, 65] if after < 0.6 else [2, 65, 65])
    assert ("code of each line" in said) == (after == 0.6)


def test_what_the_loss_tells_stands_beside_the_update_at_test(tmp_path):
    store, page = Store(tmp_path), experiment("memreasoner_ablations")
    answered = {"MemReasoner (weak)": 0.2, "MemReasoner (weak) alpha=1": 0.9, "Larimar": 0.5}
    for spec in page.specs("reduced", range(2)):
        if spec.row in answered:
            accuracy = answered[spec.row]
            record = handmade.record(spec, lambda *_, a=accuracy: a, experiment=page.name)
            store.append("memreasoner", record)
    lines = findings.supervision(made_of(store)).splitlines()
    *_, asked_with_8, asked_with_1 = (amounts(line) for line in lines if line.startswith("|"))
    assert sum(line.startswith("|") for line in lines) == 4  # with the head and its rule
    table = published.table("memreasoner-table-19").set_index("row")["value"]
    assert asked_with_8 == [8, 2, 20, 20, 20, 20, *table["MemReasoner (weak)"]]
    assert asked_with_1 == [1, 2, 90, 90, 90, 90]


def test_new_places_and_parts_of_questions_are_those_of_the_records(survey):
    places, parts = (said(survey).splitlines() for said in (findings.places, findings.parts))
    assert places and parts
    assert all(amounts(line)[-2:] == [10, 10] for line in places)  # read, and answered
    *parts, _, guess = parts
    # Read and answered, one of the two, the other, neither: at 1k and at 128k.
    assert all(amounts(line)[-8:] == [50, 0, 0, 50] * 2 for line in parts)
    assert amounts(guess) == [6, 16.7]


def test_leads_are_differences_of_printed_numbers():
    first = other_decoders.leads()[0]
    cells = published.table("memreasoner-table-8").set_index(["row", "test"])["value"]
    ours = cells[other_decoders.OURS]
    for length, points in first.points.items():
        assert points == pytest.approx(ours[length] - cells[first.row, length])
    assert first.ahead == sum(points > 0 for points in first.points.values())
    told = other_decoders.numbers().splitlines()
    assert len(told) == 3 + len(other_decoders.leads()) + len(other_decoders.with_gptj())
    for lead in other_decoders.with_gptj():
        assert len(lead.points) == 9


@pytest.mark.parametrize("table", list(other_decoders.BESIDE))
def test_our_models_of_equal_size_stand_below_the_printed_rows(table, tmp_path):
    found, store = experiment(other_decoders.BESIDE[table]), Store(tmp_path)
    for spec in found.specs("reduced", range(2)):
        if spec.row == "GPT":
            record = handmade.record(spec, lambda *_: 0.25, experiment=found.keeper(spec).name)
            store.append("memreasoner", record)
    runs = other_decoders.runs_beside(table, "reduced", 2, store)
    data = other_decoders.rows_beside(table, runs)
    said = data[data["source"] == other_decoders.PRINTED].set_index(["row", "task", "test"])
    for cell in published.table(table).dropna(subset="value").itertuples():
        if cell.test not in other_decoders.AVERAGES:
            assert said.loc[(cell.row, cell.task, cell.test), "value"] == cell.value
    ours = data[data["source"] == other_decoders.TRAINED]
    assert set(ours["row"]) == set(other_decoders.OF_EQUAL_SIZE)
    trained = ours[ours["seeds"] > 0]
    assert set(trained["row"]) == {"GPT"} and set(trained["value"]) == {25.0}
    assert {"16k", "32k"}.isdisjoint(trained["test"])  # beyond its window
    assert "Qwen" not in " ".join(runs.ledger["claim"])
    assert other_decoders.beside(table, runs).html.count("<tr") >= 2 + len(set(data["row"]))


def test_a_table_can_have_columns_of_its_own():
    """Equal names of columns in two tables can be two different tests here."""
    two = published.table("memreasoner-table-3").set_index("column")["task"]
    asked = published.table("memreasoner-table-18").set_index("column")["task"]
    assert set(two["babilong/task2/1k"]) == {"babi_two_facts"}
    assert set(asked["babilong/task2/1k"]) == {"babi_two_facts_new_places"}
