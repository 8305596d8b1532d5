"""Two tasks of the mathematics dataset, against questions that the published generator made."""

import math
import re
from collections import Counter
from decimal import Decimal

import handmade
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relength.models import MODELS
from relength.papers.panm.mathematics_experiments import EXPERIMENT
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs import published
from relength.tasks import TASKS, mathematics
from relength.tasks.mathematics import DIFFERENCES, DISTANCES, PLACES, SUMS, written
from relength.verdicts import claims

# Questions and answers of the package mathematics_dataset 1.0.1, trained on and extrapolated to.
SUMS_AND_DIFFERENCES = (
    ("What is -0.0949 - 35648?", "-35648.0949"),
    ("What is -10880 take away 5?", "-10885"),
    ("What is 199127394687856 plus 0.04?", "199127394687856.04"),
    ("Total of -2133 and -7.", "-2140"),
    ("What is the difference between 6502652211.283 and -2?", "6502652213.283"),
    ("Put together 3 and 90.", "93"),
    ("-5898847518166+111", "-5898847518055"),
    ("-0.0436961 + 1304506026", "1304506025.9563039"),
    ("What is 49458 less than 21?", "-49437"),
    ("Calculate -11503 - -19.2175.", "-11483.7825"),
    ("What is -5 minus -0.0481063913804?", "-4.9518936086196"),
    ("Subtract -366 from 0.05.", "366.05"),
    ("Add together -5 and -0.60000013792.", "-5.60000013792"),
    ("5 - -1254025.51233", "1254030.51233"),
    ("What is the distance between 269832339 and 0.06?", "269832338.94"),
)
PLACES_OF_DIGITS = (
    ("What is the units digit of 32616?", "6"),
    ("What is the ten thousands digit of 5346307?", "4"),
    ("What is the tens digit of 18289?", "8"),
    ("What is the hundred thousands digit of 51165913326?", "9"),
    ("What is the hundred millions digit of 453328289612?", "3"),
)
# Of 4,000 questions of the package per split: mean and spread of a question's characters, of an
# answer's, and shares: answers with a point, negative answers, distances, questions with a plus.
MEASURED = {
    ("math_add_or_sub", "train"): (27.00, 9.11, 9.28, 3.38, 0.746, 0.508, 0.085, 0.220),
    ("math_add_or_sub", "length"): (34.68, 8.45, 15.80, 2.89, 0.736, 0.501, 0.082, 0.235),
    ("math_place_value", "train"): (38.08, 5.02, 1, 0, 0, 0, 0, 0),
    ("math_place_value", "length"): (45.54, 4.16, 1, 0, 0, 0, 0, 0),
}
COUNT = 4_000
NUMBER = r"(-?\d+(?:\.\d+)?)"


def task(name: str, **sizes: int):
    few = {"train_size": COUNT, "test_size": COUNT, "validation_size": 500}
    return TASKS[name](**few | sizes)


def asked(phrase: str, question: str) -> dict[str, Decimal] | None:
    """The numbers of a question that is put in this phrase."""
    pattern = re.escape(phrase)
    for name in "pq":
        pattern = pattern.replace(rf"\{{{name}\}}", NUMBER.replace("(", f"(?P<{name}>", 1))
    found = re.fullmatch(pattern, question)
    return found and {name: Decimal(number) for name, number in found.groupdict().items()}


def result(question: str) -> Decimal:
    """The answer, computed from the numbers and from nothing else."""
    for phrases, sign in ((SUMS, 1), (DIFFERENCES, -1), (DISTANCES, None)):
        for phrase in phrases:
            if numbers := asked(phrase, question):
                p, q = numbers["p"], numbers["q"]
                return abs(p - q) if sign is None else p + sign * q
    raise AssertionError(f"put in no known phrase: {question}")


@pytest.mark.parametrize(("question", "answer"), SUMS_AND_DIFFERENCES)
def test_published_questions_are_put_and_answered_like_ours(question, answer):
    assert written(result(question)) == answer
    assert set(question + answer) <= set(task("math_add_or_sub").symbols)


@pytest.mark.parametrize(("question", "answer"), PLACES_OF_DIGITS)
def test_published_places_are_named_like_ours(question, answer):
    place, number = re.fullmatch(r"What is the (.+) digit of (\d+)\?", question).groups()
    assert number[-1 - PLACES.index(place)] == answer
    assert set(question + answer) <= set(task("math_place_value").symbols)


@pytest.mark.parametrize("split", ["train", "iid", "length"])
def test_every_sum_and_difference_is_right(split):
    pairs = task("math_add_or_sub", train_size=600, test_size=600).pairs(split, 0)
    for pair in pairs:
        assert written(result("".join(pair.source))) == "".join(pair.target)


@pytest.mark.parametrize(("name", "split"), MEASURED)
def test_questions_are_drawn_as_published_ones_are(name, split):
    """Means and shares of two random samples of 4,000 differ by less than five standard errors."""
    pairs = task(name).pairs(split, 0)
    questions = np.array([len(pair.source) for pair in pairs])
    answers = np.array([len(pair.target) for pair in pairs])
    asked_mean, asked_sd, answer_mean, answer_sd, *shares = MEASURED[name, split]
    error = math.sqrt(2 / COUNT)
    assert abs(questions.mean() - asked_mean) <= 5 * error * asked_sd
    assert abs(answers.mean() - answer_mean) <= 5 * error * answer_sd
    assert questions.std() == pytest.approx(asked_sd, rel=0.1)
    ours = (
        np.mean(["." in pair.target for pair in pairs]),
        np.mean([pair.target[0] == "-" for pair in pairs]),
        np.mean(["between" in "".join(pair.source) for pair in pairs]),
        np.mean(["+" in pair.source for pair in pairs]),
    )
    for mine, theirs in zip(ours, shares, strict=True):
        assert abs(mine - theirs) <= 5 * error * math.sqrt(theirs * (1 - theirs))


def test_phrases_are_equally_likely():
    """Each of eleven phrases has an eleventh of 2,000 sums, within five standard errors."""
    pairs = task("math_add_or_sub").pairs("train", 0)
    questions = ["".join(pair.source) for pair in pairs]
    counts = Counter(p for q in questions for p in SUMS if asked(p, q))
    total = sum(counts.values())
    assert abs(total / COUNT - 0.5) < 5 * 0.5 / math.sqrt(COUNT)
    assert set(counts) == set(SUMS)
    expected = total / len(SUMS)
    assert all(abs(n - expected) < 5 * math.sqrt(expected) for n in counts.values())


@pytest.mark.parametrize("name", ["math_add_or_sub", "math_place_value"])
def test_no_question_is_in_two_sets_and_all_seeds_share_the_tests(name):
    few = task(name, train_size=3_000, test_size=400)
    parts = [few.pairs(n, 0) for n in ("train", "validation", "length")]
    questions = [pair.source for part in parts for pair in part]
    assert len(questions) == len(set(questions)) == 3_000 + 500 + 400
    assert few.pairs("length", 7) == parts[2] and few.pairs("train", 7) != parts[0]
    assert few.pairs("iid", 0) == parts[1][:400]
    fewer = task(name, train_size=50, test_size=400)
    assert fewer.pairs("length", 0) == parts[2]


def test_extrapolation_has_larger_numbers():
    """Twelve digits where at most ten are trained on."""
    few = task("math_place_value", test_size=300)

    def digits(pair) -> int:
        return len(re.search(r"\d+", "".join(pair.source)).group())

    assert max(map(digits, few.pairs("train", 0))) <= 11  # 10 to the power of 10 has eleven
    assert max(map(digits, few.pairs("length", 0))) <= 13
    assert np.mean([digits(pair) == 12 for pair in few.pairs("length", 0)]) > 0.8


def test_sizes_are_those_of_the_published_files():
    whole = TASKS["math_add_or_sub"]()
    assert (whole.splits()["train"].size, whole.validation_size) == (1_969_998, 30_000)
    assert whole.splits()["length"].size == 10_000


@given(st.integers(0, 10**6), st.floats(1, 20))
def test_integers_stay_in_their_range(seed, entropy):
    random = np.random.default_rng(seed)
    signed = mathematics.integer(random, entropy)
    assert abs(signed) <= math.ceil(10**entropy / 2)
    assert 1 <= mathematics.integer(random, entropy, signed=False, least=1) <= 10**entropy + 2


@given(st.integers(0, 10**6), st.floats(1, 20))
def test_half_of_the_numbers_have_a_fraction_and_all_are_written_exactly(seed, entropy):
    value = mathematics.integer_or_decimal(np.random.default_rng(seed), entropy)
    text = written(value)
    assert Decimal(text) == value
    assert "E" not in text and not ("." in text and text.endswith("0"))


# --- the experiment -------------------------------------------------------------------------------


def test_the_grid_has_every_printed_cell_that_is_judged_once():
    """Table 19 prints shares, and two rows of a baseline where one is cited, one their own."""
    cells = {(spec.row, spec.task.name) for spec in EXPERIMENT.specs("reduced", [0])}
    printed = published.table("panm-table-19")
    mine = printed[printed["model"].isin({model for model, _ in cells})]
    assert set(zip(mine["model"], mine["task"], strict=True)) == cells and len(mine) == 12
    assert set(mine["test"]) == {"length"} and set(mine["unit"]) == {"%"}
    value = mine.set_index(["model", "task"])["value"]
    assert value["PANM on TRM+RPE", "math_place_value"] == 86
    assert value["TRM", "math_add_or_sub"] == 86  # the authors' own run; 89 is cited
    judged = [c.id for c in claims.load("panm") if c.id.startswith("panm-table-19/")]
    assert len(judged) == 12


def test_panm_has_a_decoder_layer_less_and_only_its_encoder_may_be_relative():
    for scale in ("reduced", "paper"):
        for spec in EXPERIMENT.specs(scale, [0]):
            less = spec.model.name.startswith("PANM")
            assert spec.model.decoder_layers == spec.model.encoder_layers - less
    spec = next(s for s in EXPERIMENT.specs("smoke", [0]) if s.row == "PANM on TRM+RPE")
    module = MODELS[spec.model.name].module(spec.model, *spec.task.shape)
    names = [name for name, _ in module.named_parameters()]
    far = [name for name in names if "distance" in name or "relative" in name or "places" in name]
    assert far and all(name.startswith("encoder.") for name in far), names


@pytest.mark.parametrize(("panm", "plain", "outcome"), [(86, 0, "reproduced"), (0, 86, "failed")])
def test_the_claim_on_places_follows_the_runs(tmp_path, panm, plain, outcome):
    share = {"PANM on TRM+RPE": panm / 100, "TRM+RPE": plain / 100}
    store = Store(tmp_path)
    for spec in EXPERIMENT.specs("paper", range(8)):
        if spec.row in share and spec.task.name == "math_place_value":
            made = handmade.record(
                spec, lambda s, _: share[s.row] + 0.001 * s.seed, experiment=EXPERIMENT.name
            )
            store.append("panm", made)
    runs = Runs.read(EXPERIMENT, "paper", 8, store)
    row = runs.ledger.set_index("claim").loc["panm-054"]
    assert row["outcome"] == {"reproduced": "reproduced", "failed": "contradicted"}[outcome]
