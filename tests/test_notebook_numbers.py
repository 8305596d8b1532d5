"""The numbers stored in committed notebooks are those of the recorded runs.

nbval compares the stored text with what today's code prints. Here the numbers are read back out of
the text and compared, within the rounding of the print, with ones computed from the records by
other means, so that text and code cannot be wrong together.
"""

import re
from collections import Counter, defaultdict
from functools import cache
from math import isnan
from statistics import fmean, median
from typing import NamedTuple

import nbformat
import numpy as np
import pytest
import torch

from relength.book.notebook import CHECKED, Parameters
from relength.models.pointers.attention import AddressBank, evaluation_key
from relength.paths import NOTEBOOKS, RESULTS
from relength.report import tables
from relength.report.grid import FAILED, NOT_RUN
from relength.report.runs import Runs
from relength.report.style import row_label, title
from relength.runs.store import Store
from relength.specs import published, registry
from relength.specs.experiments import Experiment, borrowed, experiments, shown_by
from relength.specs.spec import RunSpec
from relength.verdicts import claims

CALL = re.compile(r"tables\.numbers\((runs|shown)\b")
ROW = re.compile(
    r"  (?P<row>\S.*?) {2,}(?P<seeds>\d+)(?P<cells>( +(not run|failed|–|[<>]?[\d.]+)( \(\S+\))?)+)"
)
CELL = re.compile(r"(not run|failed|–|[<>]?[\d.]+)(?: \(([<>]?[\d.]+)\))?")
# Tests of their own are in test_failures.py, test_dnc_*.py, and at the end of this file.
OTHER_TABLES = {
    *("panm_chat_gpt", "panm_summary"),
    *("dnc_generalization", "dnc_memory_extension", "dnc_memory_modes", "dnc_peephole"),
    *("dnc_state_space", "dnc_statistics", "dnc_when"),
    *("mla_failures", "mla_attention_paths", "panm_address_bits", "memreasoner_losses"),
}
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
SHOWN = Parameters()  # a notebook is committed as its defaults show it


class Cell(NamedTuple):
    """One cell of a printed table: how many seeds, their median and the paper's value, as texts."""

    seeds: int
    ours: str
    paper: str


def stored(path) -> dict[str, str]:
    """{source: text} of the cells whose outputs are compared."""
    cells = nbformat.read(path, as_version=4).cells
    checked = [cell for cell in cells if CHECKED in cell.metadata.get("tags", [])]
    return {cell.source: "".join(output["text"] for output in cell.outputs) for cell in checked}


PRINTED = [
    pytest.param(*shown_by(path.stem), text, id=path.stem)
    for path in PATHS
    for source, text in stored(path).items()
    if CALL.search(source)
]


def read_back(text: str) -> dict[tuple[str, str, str], Cell]:
    """{(task, row, test): cell} of a table that tables.numbers has printed."""
    found, task, tests = {}, "", []
    for line in text.splitlines()[1:]:
        if head := re.fullmatch(r"(.+), length +seeds(.+)", line):
            task, tests = head[1], head[2].split()
        elif line:
            row = ROW.fullmatch(line)
            assert row, f"a line that is not of the table: {line!r}"
            cells = CELL.findall(row["cells"])
            for test, (ours, paper) in zip(tests, cells, strict=True):
                if ours != "–":  # longer than this model can read
                    found[task, row["row"], test] = Cell(int(row["seeds"]), ours, paper)
    return found


def specs_of(found: Experiment, artifacts: tuple[str, ...]) -> list[RunSpec]:
    """The specs that a page shows: those that its artifacts are made from, all if it has none.

    A page of figures without numbers in print may show more than they have.
    """
    specs = found.specs(found.usual, range(SHOWN.seeds))
    return [
        s
        for s in specs
        if not artifacts or not found.tables or any(found.makes(a, s) for a in artifacts)
    ]


def place(found: Experiment, spec: RunSpec, test: str) -> tuple[str, str, str]:
    """Task, row and column of a test of a run, as they are printed."""
    name = row_label(spec.row, spec.model.arm, found.judged_arms[spec.row])
    row = ", ".join(filter(None, (name, found.remark(spec))))
    return title(spec.task.name), row, "IID" if test == "iid" else test


@cache
def broken(found: Experiment, artifacts: tuple[str, ...]) -> set[tuple[str, str, str]]:
    """The cells of which a run failed."""
    failed = {record["key"] for record in Store(RESULTS).records() if record["status"] == "failed"}
    return {
        place(found, spec, test)
        for spec in specs_of(found, artifacts)
        if spec.key in failed
        for test in spec.task.tests
    }


@cache
def recorded(
    found: Experiment, artifacts: tuple[str, ...]
) -> dict[tuple[str, str, str], list[float]]:
    """{(task, row, test): values of all seeds}, read once from the records of any experiment.

    Readings that are not judged and have no run are left out, as pages do.
    """
    values = defaultdict(list)
    left_out = Runs.read(
        found, found.usual, SHOWN.seeds, Store(RESULTS), artifacts if found.tables else None
    ).waiting
    runs = {record["key"]: record for record in Store(RESULTS).usable()}
    for spec in specs_of(found, artifacts):
        if (spec.row, spec.model.arm) in left_out:
            continue
        for test in spec.task.tests:
            cell = values[place(found, spec, test)]
            if spec.key in runs:
                measured = runs[spec.key]["checkpoints"]["selected"]["tests"][test]
                # Tasks of one experiment may be measured in ways of their own.
                by = found.shown if found.shown in measured else spec.task.measure
                cell.append(registry.metric(by).shown(measured[by]))
    return dict(values)


def heading(part: claims.Part) -> str:
    """Return the heading of the column of a claim about one printed number."""
    (test,) = part.printed
    return "IID" if test == "iid" else test


def runs_of(part: claims.Part, values: dict[tuple[str, str, str], list[float]]) -> list:
    """The recorded results behind a printed number: of its test, or of all that it sums up."""
    cell = title(part.task), part.model
    return [
        found
        for (*where, test), found in values.items()
        if tuple(where) == cell and (part.tests or test == heading(part))
    ]


def agrees(text: str, value: float) -> bool:
    """Tell whether a printed number stands for a value: two decimals, but 0 and 100 are exact."""
    if text == ">99.99":
        return 99.99 < value < 100
    if text == "<0.01":
        return 0 < value < 0.01
    tolerance = 0 if float(text) in (0, 100) else 0.005
    return abs(float(text) - value) <= tolerance + 1e-9


def disagreements(found: Experiment, artifacts: tuple[str, ...], text: str) -> list[str]:
    """List where a printed table says something else than the records."""
    shown, values = read_back(text), recorded(found, artifacts)
    statistic = fmean if "mean of our seeds" in text.splitlines()[0] else median
    wrong = [f"{cell} is missing" for cell in values.keys() - shown.keys()]
    for cell, (seeds, ours, _) in shown.items():
        at_hand = values[cell]
        nothing = FAILED if cell in broken(found, artifacts) else NOT_RUN
        expected = agrees(ours, statistic(at_hand)) if at_hand else ours == nothing
        if seeds != len(at_hand) or not expected:
            wrong.append(f"{cell}: shown {ours} of {seeds} seeds, recorded {at_hand}")
    return wrong


def test_every_notebook_that_shows_runs_prints_a_table_that_is_read_back_here():
    without = {name for name, runs in borrowed().items() if runs is None} | OTHER_TABLES
    assert [parameter.id for parameter in PRINTED] == [
        path.stem for path in PATHS if path.stem not in without
    ]


@pytest.mark.parametrize(("found", "artifacts", "text"), PRINTED)
def test_printed_means_and_medians_are_those_of_the_records(found, artifacts, text):
    assert disagreements(found, artifacts, text) == []


@pytest.mark.parametrize(("found", "artifacts", "text"), PRINTED)
def test_a_number_that_is_off_by_its_last_digit_is_noticed(found, artifacts, text):
    numbers = [m for m in re.finditer(r" \d+\.(\d+) ", text) if 0 < float(m[0]) < 100]
    if not numbers:
        pytest.skip("nothing is recorded between 0 and 100")
    for match in numbers[:1] + numbers[-1:]:
        digits = len(match[1])
        off = 2 * 10**-digits * (1 if float(match[0]) < 50 else -1)  # towards the middle
        changed = f" {float(match[0]) + off:.{digits}f} "
        tampered = text[: match.start()] + changed + text[match.end() :]
        assert len(disagreements(found, artifacts, tampered)) == 1


@pytest.mark.parametrize(("found", "artifacts", "text"), PRINTED)
def test_values_in_brackets_are_the_papers(found, artifacts, text):
    printed = {
        (title(cell.task), cell.model, "IID" if cell.test == "iid" else cell.test): cell.value
        for artifact in found.tables
        for cell in published.table(artifact).dropna(subset="value").itertuples()
    }
    for (task, row, test), cell in read_back(text).items():
        model = row.partition(",")[0]
        if (task, model, test) in printed:
            assert agrees(cell.paper, printed[task, model, test]), (task, row, test)
        else:
            assert cell.paper == "", (task, row, test)


@pytest.mark.parametrize(("found", "artifacts", "text"), PRINTED)
def test_the_data_behind_tables_and_downloads_are_those_of_the_records(found, artifacts, text):
    values = recorded(found, artifacts)
    runs = Runs.read(
        found, found.usual, SHOWN.seeds, Store(RESULTS), artifacts if found.tables else None
    )
    data = tables.comparison(runs)
    assert len(data) == len(values)
    for row in data.itertuples():
        at_hand = values[
            title(row.task),
            runs.label(row.model, row.arm, row.task),
            "IID" if row.test == "iid" else row.test,
        ]
        assert row.values == pytest.approx(at_hand, abs=1e-9) and row.seeds == len(at_hand)
        if at_hand:
            assert row.median == pytest.approx(median(at_hand), abs=1e-9)
            assert row.low <= row.median <= row.high
            assert row.mean == pytest.approx(fmean(at_hand), abs=1e-9)
        else:
            assert isnan(row.median)


JUDGED = [
    path
    for path in PATHS
    if shown_by(path.stem) and shown_by(path.stem)[1] and path.stem != "panm_summary"
]


@pytest.mark.parametrize("path", JUDGED, ids=lambda path: path.stem)
def test_verdicts_are_counted_once_each_and_not_run_where_there_is_no_run(path):
    found, artifacts = shown_by(path.stem)
    (text,) = [t for source, t in stored(path).items() if "tables.verdict_counts(" in source]
    counted: dict[str, Counter] = {}
    for kind, total, verdicts in re.findall(r"^(.+?) +(\d+): (.+)$", text, re.MULTILINE):
        counts = {name: int(n) for n, name in re.findall(r"(\d+) ([^,]+)", verdicts)}
        assert sum(counts.values()) == int(total)
        counted.setdefault(kind, Counter()).update(counts)
    shown = {found.name, *(one.name for one in experiments().values() if one.page == path.stem)}
    about = [
        claim
        for claim in claims.load(found.paper)
        if claim.source.experiment in shown
        and (claim.artifact in artifacts or claim.artifact not in found.artifacts)
    ]
    assert sum(sum(counts.values()) for counts in counted.values()) == len(about)
    values = recorded(found, artifacts)
    cells = [claim.parts[0] for claim in about if "/" in claim.id]
    missing = [part for part in cells if not any(runs_of(part, values))]
    assert counted.get("printed cells", {}).get("not run", 0) == len(missing)


def test_every_notebook_belongs_to_an_experiment_or_is_said_to_have_no_own_runs():
    assert {path.stem for path in PATHS} >= set(borrowed())
    for path in PATHS:
        shown_by(path.stem)  # an error for a notebook that is named after nothing


# Tables of other kinds


def the_printed_lines(notebook: str, call: str) -> list[list[str]]:
    """The words of each line that a notebook's cell has printed."""
    (text,) = (t for source, t in stored(NOTEBOOKS / f"{notebook}.ipynb").items() if call in source)
    return [line.split() for line in text.splitlines()]


def of_the_store(name: str) -> list[dict]:
    store = Store(RESULTS)
    return [record for record in store.usable(name) if record["spec"]["scale"] == "reduced"]


def test_printed_steps_right_are_those_of_the_records():
    """Accuracy times length is the sum of steps that are known and of a tenth of the others."""
    found = defaultdict(dict)
    for record in of_the_store("panm_address_bits") + of_the_store("panm_algorithmic"):
        spec = record["spec"]
        kind = spec["model"]["name"], spec["model"]["arm"], spec["task"]["name"]
        if kind != ("PANM", "repaired", "panm_copy"):
            continue
        for test, measured in record["checkpoints"]["selected"]["tests"].items():
            length = int(test)
            right = (measured["token_accuracy"] * length - length / 10) / 0.9
            found[spec["task"]["train_lengths"][1], length][spec["seed"]] = right
    lines = the_printed_lines("panm_address_bits", "address_bits.numbers")
    start = next(i for i, words in enumerate(lines) if words[:3] == ["Copy,", "trained", "up"])
    assert lines[start][-5:] == ["seeds", "test", "right", "predicted", "mixture"]
    printed = {(int(n), int(test)): (seeds, *told) for n, seeds, test, *told in lines[start + 1 :]}
    assert printed.keys() == {(n, length) for n, length in found if length > n}
    for (n, length), (seeds, right, predicted, mixture) in printed.items():
        assert int(seeds) == len(found[n, length])
        assert float(right) == pytest.approx(median(found[n, length].values()), abs=0.051)
        power = next(2**k for k in range(10) if 2**k >= n)
        assert float(predicted) == min(power, length)
        assert float(mixture) == pytest.approx(drawn_mixture(power, length), abs=0.35)


def drawn_mixture(power: int, length: int, samples: int = 40_000) -> float:
    """Steps right if of slots that are ``power`` apart the most frequent symbol is said: drawn."""
    symbols = np.random.default_rng(0).integers(10, size=(samples, length))
    right = 0.0
    for first in range(min(power, length)):
        alike = symbols[:, first::power]
        right += max_count(alike).mean()
    return (right - length / 10) / 0.9


def max_count(symbols: np.ndarray) -> np.ndarray:
    return np.stack([(symbols == symbol).sum(axis=1) for symbol in range(10)]).max(axis=0)


def bases_of_the_code(count: int) -> list[int]:
    """Return where memories begin in tests: 8 bits, one number of 257 for each sample of a test."""
    key = evaluation_key(torch.device("cpu"))
    return AddressBank(8).random_base(count, key, 257).tolist()


def test_printed_bits_are_those_of_the_records():
    """In plain arithmetic: of the bits of two addresses those differ that differ."""
    walks = {"Copy": ("panm_copy", "base"), "Reverse": ("panm_reverse", "end")}
    arms = {"repaired": "repaired", "as in the text": "paper", "as in the code": "released"}
    shares = defaultdict(list)
    for record in of_the_store("panm_algorithmic"):
        spec = record["spec"]
        if spec["seed"] >= SHOWN.seeds:
            continue
        for task, (name, start) in walks.items():
            for label, arm in arms.items():
                kind = spec["model"]["name"], spec["model"]["arm"], spec["task"]["name"]
                if kind != ("PANM", arm, name):
                    continue
                for trace in record["traces"]:
                    (rows,) = (s for pointer, s in trace["slots"].items() if start in pointer)
                    # Base 0 but in the code, which has a start mark in the first slot, too.
                    bases, mark = [0] * len(rows), 0
                    if arm == "released":
                        bases, mark = bases_of_the_code(len(rows)), 1
                    last = len(rows[0]) - 1
                    for bit in (1, 2, 4, 8, 16, 32):
                        wrong = [
                            (base + slot) // bit % 2
                            != (base + mark + (t if start == "base" else last - t)) // bit % 2
                            for base, row in zip(bases, rows, strict=True)
                            for t, slot in enumerate(row)
                        ]
                        shares[task, trace["test"], label, bit].append(100 * fmean(wrong))
    lines, task, test, compared = (
        the_printed_lines("panm_address_bits", "address_bits.numbers"),
        "",
        "",
        0,
    )
    for words in lines:
        if len(words) > 3 and words[1] == "length":
            task, test = words[0].removesuffix(","), words[2]
        elif (label := " ".join(words[:-7])) in arms and task:
            for bit, shown in zip((1, 2, 4, 8, 16, 32), words[-6:], strict=True):
                assert float(shown) == pytest.approx(
                    median(shares[task, test, label, bit]), abs=0.51
                )
                compared += 1
    assert compared == 2 * 2 * 3 * 6  # tasks, lengths, readings, bits
