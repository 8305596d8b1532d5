"""The chapter on the DNC: what its passages count, on runs made by hand."""

import random
from itertools import repeat

import handmade
import pytest
from handmade import amounts

from relength.papers.dnc import findings, printed_p
from relength.papers.dnc.experiments import EXPERIMENTS
from relength.papers.dnc.recounts import STATELESS
from relength.paths import BOOK
from relength.report import passages
from relength.report.outcomes import NOTHING
from relength.report.scoreboard import Survey
from relength.report.scoreboard import survey as made_of
from relength.runs.store import Store
from relength.specs import registry

FOUND = EXPERIMENTS[0]
ABILITY = {"STATEFUL-BASELINE": 0.5, "COMPR": 0.97, "REG": 0.3}


@pytest.fixture(scope="module")
def survey(tmp_path_factory) -> Survey:
    store = Store(tmp_path_factory.mktemp("store"))
    for spec in FOUND.specs("reduced", range(2)):
        if spec.task.name == "dnc_sort" and spec.row in ABILITY:
            record = handmade.record(spec, lambda s, _: ABILITY[s.row], experiment=FOUND.name)
            store.append("dnc", record)
    return made_of(store)


@pytest.fixture(scope="module")
def nothing(tmp_path_factory) -> Survey:
    return made_of(Store(tmp_path_factory.mktemp("empty")))


def test_every_passage_is_on_the_page_and_says_when_nothing_is_recorded(nothing):
    page = (BOOK / "findings_dnc.md").read_text()
    names = [name for name in passages.PASSAGES if name.startswith("findings_dnc_")]
    assert set(findings.PASSAGES) | set(registry.papers()["dnc"].claims) == set(names)
    assert all(f"executed/{name}.md" in page for name in names)
    for name in set(findings.PASSAGES) - {"findings_dnc_significance"}:
        assert findings.PASSAGES[name](nothing) == NOTHING


def test_who_is_ahead_after_equal_training(survey):
    said, sort, rows = findings.reach(survey).split("\n\n", 2)
    # COMPR and REG: tasks on which they are ahead, of how many; the same with the last weights;
    # the averaged lengths
    assert amounts(said)[1:] == [1, 1, 0, 1] * 2 + [2, 45] and "For Sort" not in said
    # the baseline, the one ahead and the one that is not, each with its runs; with both weights
    assert amounts(sort) == [50, 2, 97, 2, 30, 2] * 2
    assert sort.index("COMPR 97") < sort.index("not ahead") < sort.index("REG 30")
    row = next(line for line in rows.splitlines() if "| COMPR |" in line)
    assert amounts(row)[:4] == [2, 100, 100, 45]  # seeds, the longest of each, and printed


def test_whom_the_choice_of_weights_brings_ahead_is_said(tmp_path):
    store = Store(tmp_path)
    for spec in FOUND.specs("reduced", [0]):
        if spec.task.name == "dnc_sort" and spec.row in ("STATEFUL-BASELINE", "COMPR"):
            record = handmade.record(spec, lambda s, _: ABILITY[s.row], experiment=FOUND.name)
            if spec.row == "COMPR":
                last = record["checkpoints"]["last"]
                for name, metrics in last["tests"].items():
                    worse = {k: 0.1 for k, v in metrics.items() if isinstance(v, float)}
                    last["tests"] = {**last["tests"], name: metrics | worse}
            store.append("dnc", record)
    said, sort, _ = findings.reach(made_of(store)).split("\n\n", 2)
    # the tasks with COMPR ahead, by either weights; one with a single run
    assert amounts(said)[1:6] == [1, 1, 0, 1, 1] and "For Sort" in said
    assert amounts(sort) == [50, 1, 97, 1, 50, 1, 10, 1]


def test_who_leads_after_longer_training(tmp_path):
    """The baseline catches up in the longest of the budgets alone."""
    store = Store(tmp_path)
    experiment = next(found for found in EXPERIMENTS if found.name == "dnc_when")
    specs = experiment.specs("reduced", [0])
    longest = max(spec.training.steps for spec in specs)
    for spec in specs:
        behind = spec.row == "STATEFUL-BASELINE" and spec.training.steps < longest
        reached = repeat(0.5 if behind else 0.9)
        kept = experiment.keeper(spec).name
        record = handmade.record(spec, lambda *_, each=reached: next(each), experiment=kept)
        store.append("dnc", record)
    for spec in FOUND.specs("reduced", [1, 2]):  # more seeds of the usual budget
        if spec.task.name == "dnc_sort" and spec.row == "COMPR":
            reached = 0.95 if spec.seed == 1 else 0.8
            record = handmade.record(spec, lambda *_, r=reached: r, experiment=FOUND.name)
            store.append("dnc", record)
    _, lines, others = findings.longer(made_of(store)).strip().split("\n\n")
    assert [amounts(line)[1:] for line in lines.splitlines()] == [[90, 50], [90, 50], [90, 90]]
    budgets = sorted({spec.training.steps for spec in specs})
    # the courses of both; then the place of the seed, of how many, and their median
    assert amounts(others) == [50, 50, 90, 90, 90, 90, *budgets, 1, 1, 50, 2, 3, 90]
    assert "does not catch up" not in others


def test_who_gets_farthest_with_either_memory(tmp_path):
    """COMPR to 30 and 200, REG to 20 and as far; nobody solves copy with the larger memory."""
    store, far = Store(tmp_path), {"COMPR": (30, 200), "REG": (20, 200)}
    for spec in FOUND.specs("reduced", [0]):
        if spec.row in far and spec.task.name in ("dnc_sort", "dnc_copy"):
            small, large = far[spec.row] if spec.task.name == "dnc_sort" else (15, 0)
            made = handmade.record(
                spec,
                lambda _, test, most=small: float(int(test) <= most),
                experiment=FOUND.name,
                extended=lambda _, test, most=large: float(int(test) <= most),
            )
            store.append("dnc", made)
    said = findings.extended(made_of(store)).strip()
    # slots, runs, percent, the longest; printed of both in Table V, how far ours get
    assert amounts(said) == [50, 4, 95, 30, 40, 0, 200]
    assert said.endswith("Copy, none.")


def test_weights_that_know_trained_lengths_are_counted_by_their_choice(tmp_path):
    """Of two stateless runs on Sort one knows nothing by its selected weights, the other by its
    last ones; so does one run of COMPR. No run of the stateful baseline knows them.
    """
    store, forget = Store(tmp_path), {(STATELESS, 1): "selected", (STATELESS, 0): "last"}
    forget |= {("COMPR", 0): "last"}
    for spec in FOUND.specs("reduced", range(2)):
        if spec.task.name == "dnc_sort" and spec.row in ("STATEFUL-BASELINE", STATELESS, "COMPR"):
            able = 0.6 if spec.row == "STATEFUL-BASELINE" else 0.97
            record = handmade.record(spec, lambda *_, a=able: a, experiment=FOUND.name)
            if kept := record["checkpoints"].get(forget.get((spec.row, spec.seed), "")):
                worse = {k: 0.1 for k, v in kept["tests"]["15"].items() if isinstance(v, float)}
                kept["tests"] = {n: m | worse for n, m in kept["tests"].items()}
            store.append("dnc", record)
    state = made_of(store)
    assert "In 1 of 6 runs the last weights" in findings.reach(state)
    assert "In 2 of 6 runs those that length 30 selects" in findings.reach(state)
    assert f"1 of {STATELESS} on Sort and 1 of COMPR on Sort" in findings.reach(state)
    # lengths averaged; of one task ahead on none, as the median of 97 and 10 is below 60, twice
    assert amounts(findings.stateless(state)) == [2, 45, 0, 1, 30, 0, 1]


def test_a_task_counts_as_learned_by_either_choice_of_weights(tmp_path):
    store = Store(tmp_path)
    for spec in FOUND.specs("reduced", [0]):
        if spec.task.name == "dnc_sort" and spec.row in ("STATEFUL-BASELINE", "COMPR", STATELESS):
            record = handmade.record(spec, lambda *_: 0.1, experiment=FOUND.name)
            if spec.row != "STATEFUL-BASELINE":
                last = record["checkpoints"]["last"]
                better = {k: 0.97 for k, v in last["tests"]["15"].items() if isinstance(v, float)}
                last["tests"] = {n: m | better for n, m in last["tests"].items()}
            store.append("dnc", record)
    state = made_of(store)
    assert "On Sort no run knows" not in findings.reach(state)
    # ahead by the last weights alone, with a single run of each
    assert amounts(findings.stateless(state)) == [2, 45, 0, 1, 30, 1, 1, 1]


def test_what_later_seeds_change_is_told_apart_from_the_seeds_of_verdicts(tmp_path):
    store = Store(tmp_path)
    for spec in FOUND.specs("reduced", range(7)):
        if spec.task.name == "dnc_sort" and spec.row in ("STATEFUL-BASELINE", "COMPR"):
            reached = ABILITY[spec.row] if spec.seed < 5 else 0.6
            record = handmade.record(spec, lambda *_, r=reached: r, experiment=FOUND.name)
            store.append("dnc", record)
    _, sort, later, _ = findings.reach(made_of(store)).split("\n\n", 3)
    assert amounts(sort) == [50, 5, 97, 5] * 2
    assert amounts(later) == [50, 7, 97, 7]


def test_loops_are_counted_where_runs_generalise_and_where_not(survey):
    """All of these runs have loops, and those of COMPR alone generalise."""
    said, clusters, rows = findings.loops(survey).split("\n\n", 2)
    # those that generalise, from where on, and how many of them loop; then the reverse, on Sort
    assert amounts(said) == [2, 90, 2, 6, 2, 2] and "Sort: 2" in said
    row = next(line for line in rows.splitlines() if line.startswith("| Sort"))
    good, near, good_loops, _, poor, poor_near, poor_loops, _ = row.split("|")[2:-1]
    assert list(map(int, (good, near, good_loops))) == [2, 2, 2]
    assert list(map(int, (poor, poor_near, poor_loops))) == [4, 4, 4]
    assert amounts(clusters)[:4] == [2, 2, 4, 4]


def test_states_that_lie_by_no_symbol_are_no_clusters(tmp_path):
    store, drawn = Store(tmp_path), random.Random(0)
    for spec in FOUND.specs("reduced", range(2)):
        if spec.task.name == "dnc_sort" and spec.row == "COMPR":
            record = handmade.record(spec, lambda *_: 0.97, experiment=FOUND.name)
            if spec.seed:  # other symbols than those at whose places the states lie
                read = record["memory"]["states"]["read"]
                record["memory"]["states"]["read"] = [
                    "".join(drawn.sample(row, len(row))) for row in read
                ]
            store.append("dnc", record)
    _, clusters, _ = findings.loops(made_of(store)).split("\n\n", 2)
    assert amounts(clusters)[:4] == [1, 2, 0, 0]


def test_one_reading_of_the_printed_p_values_is_left(nothing):
    said = findings.significance(nothing)
    tests, families = len(printed_p.TESTS), len(printed_p.FAMILIES)
    assert amounts(said) == [tests * families, 1] and "one-sided, normal" in said


def test_who_arrives_where_is_counted(survey):
    """One of three controllers is good enough to arrive."""
    said, asked, leads, rows = findings.when_it_comes(survey).split("\n\n", 3)
    assert amounts(asked) == [30]
    # At first all are alike. From the second point on COMPR is ahead, and REG never is.
    (record, *_) = survey.store.records()
    steps = [point["step"] for point in record["curve"]]
    assert amounts(leads) == [len(steps) - 1, len(steps), steps[1], 0, len(steps)]
    row = next(line for line in rows.splitlines() if "| COMPR |" in line)
    assert amounts(said) == [50_000, 2, 6, 15, 2, 30, 2]
    assert "| 2 of 2 |" in row
