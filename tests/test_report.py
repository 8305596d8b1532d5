"""Tables and figures say what the store says, from an empty store to a full one."""

import base64
import csv
import gzip
import io
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import handmade
import numpy as np
import pandas as pd
import pytest
import torch

from relength.models import MODELS
from relength.papers.mla.spans import answer_spans
from relength.paths import BOOK, ROOT
from relength.report import appendix, exhibits, figures, reach, style, tables
from relength.report.exhibits import CSS, Exhibit
from relength.report.freshness import freshness_of
from relength.report.grid import FAILED
from relength.report.runs import Runs
from relength.report.style import (
    DARK,
    LIGHT,
    MODEL_COLOURS,
    NARROW,
    TEXT_SHARE,
    VARIANTS,
    canvas,
    colour,
    variables,
)
from relength.runs import execute
from relength.runs.prices import Device, Prices, own
from relength.runs.store import Store, cause
from relength.specs import published, registry
from relength.specs.experiments import experiment, experiments
from relength.specs.margins import load_margins
from relength.specs.spec import make_spec
from relength.tasks import TASKS
from relength.training.protocols import Epochs
from relength.training.protocols.base import Selection
from relength.training.provenance import code_fingerprint
from relength.verdicts import claims, judged

ARTIFACT = "mla-table-2"
EXPERIMENT = experiment("mla_table2")
CELL = ("recopy", "MonoAttn")


def accuracy(spec, test: str) -> float:
    """Accuracies of the hand-made runs: no two of a cell alike, some perfect, some hopeless."""
    if test == "iid":
        return 1.0
    if spec.model.name in ("OneStepAttn", "MonoAttn"):
        return 1.0 if spec.seed else 0.9996
    return round(0.05 * spec.seed, 2) if spec.task.tests.index(test) == 1 else 0.0


def store_of(folder: Path, specs) -> Store:
    file = folder / "mla" / "mla_table2.runs.jsonl"
    file.parent.mkdir(parents=True)
    lines = (json.dumps(handmade.record(spec, accuracy)) for spec in specs)
    file.write_text("".join(f"{line}\n" for line in lines))
    return Store(folder)


def runs_of(store: Store, scale: str = "reduced") -> Runs:
    return Runs.read(EXPERIMENT, scale, 5, store)


@pytest.fixture(scope="module")
def full(tmp_path_factory) -> Runs:
    return runs_of(store_of(tmp_path_factory.mktemp("full"), EXPERIMENT.specs("reduced", range(5))))


@pytest.fixture(scope="module")
def partial(tmp_path_factory) -> Runs:
    """Two seeds of some cells, one of them failed, and one run with other hyperparameters."""
    store = store_of(
        tmp_path_factory.mktemp("partial"), EXPERIMENT.specs("reduced", range(2))[:37:3]
    )
    store.append("mla", handmade.failed(EXPERIMENT.specs("reduced", [0])[1]))
    training = {"name": "epochs", "epochs": 3}
    other = make_spec(task="copy", model="Content", training=training, scale="reduced", seed=0)
    store.append("mla", handmade.record(other, lambda *_: 0.5))
    return runs_of(store)


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Runs:
    return runs_of(Store(tmp_path_factory.mktemp("empty") / "nothing"))


@pytest.fixture(scope="module")
def smoke(tmp_path_factory) -> Runs:
    store = store_of(tmp_path_factory.mktemp("smoke"), EXPERIMENT.specs("smoke", range(5)))
    return runs_of(store, "smoke")


LOOKED_AT = ("recopy", "inv_recopy"), ("LocAttn", "OneStepAttn", "MonoAttn")


class LowestLoss(Epochs):
    """A protocol that selects by another number than those of the papers."""

    @property
    def selection(self) -> Selection:
        return Selection("iid", "loss", mean_of=7)


def test_a_caption_of_learning_curves_says_what_their_protocol_does(tmp_path):
    streamed = experiments()["panm_algorithmic"]
    shown = {}
    for name, found, scale in (
        ("short", EXPERIMENT, "reduced"),
        ("long", EXPERIMENT, "paper"),
        ("streamed", streamed, "reduced"),
    ):
        spec, store = found.specs(scale, [0])[0], Store(tmp_path / name)
        store.append(found.paper, handmade.record(spec, lambda *_: 0.5, experiment=found.name))
        shown[name] = Runs.of_specs(found, scale, [spec], store)
    fields = shown["long"].specs[0].training.model_dump()
    lowest = shown["long"].specs[0].model_copy(update={"training": LowestLoss(**fields)})
    shown["lowest"] = replace(shown["long"], specs=(lowest,))
    html = {name: figures.learning(runs, 3).html for name, runs in shown.items()}

    def saying(words: str) -> set[str]:
        return {name for name in html if words in html[name]}

    assert saying("teacher-forced") == {"short", "long", "lowest"}
    assert saying("ended early") == {"short"}
    assert saying("every 200 steps") == {"streamed"}
    by_accuracy, by_loss = (
        shown[name].specs[0].training.selection.words for name in ("long", "lowest")
    )
    assert saying(by_accuracy) == {"short", "long", "streamed"} and saying(by_loss) == {"lowest"}
    assert "7" in by_loss


def all_tables(runs: Runs) -> list[Exhibit]:
    return [
        tables.side_by_side(runs, ARTIFACT),
        tables.details(runs, ARTIFACT),
        tables.verdicts(runs),
        appendix.cap_check(runs),
        appendix.costs(runs),
    ]


def all_figures(runs: Runs) -> list[Exhibit]:
    return [
        figures.accuracy(runs, ARTIFACT, number=1),
        figures.attention(runs, 2, *LOOKED_AT),
        figures.learning(runs, 3),
        figures.cost(runs, 4),
    ]


@pytest.fixture(scope="module")
def pictures(full) -> list[Exhibit]:
    """The figures of a full store, drawn once."""
    return all_figures(full)


class Page(HTMLParser):
    """The pictures, links and table rows of some HTML."""

    def __init__(self, html: str):
        super().__init__()
        self.pictures, self.links, self.rows, self._cell = [], [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if dict(attrs).get("role") == "img":
            self.pictures.append(dict(attrs))
        elif tag == "a":
            self.links.append(dict(attrs))
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._cell = tag

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._cell = None

    def handle_data(self, data):
        if self._cell:
            self.rows[-1][-1] += data


def download(link: dict[str, str]) -> list[dict[str, str]]:
    content = base64.b64decode(link["href"].partition("base64,")[2])
    text = gzip.decompress(content) if link["download"].endswith(".gz") else content
    return list(csv.DictReader(io.StringIO(text.decode())))


@pytest.mark.parametrize(
    "state",
    ["empty", *(pytest.param(s, marks=pytest.mark.weekly) for s in ("partial", "smoke")), "full"],
)
def test_every_figure_and_table_can_be_shown_without_an_optimiser_step(state, request, monkeypatch):
    def no_step(*_, **__):
        raise AssertionError("rendering trained something")

    for optimiser in (torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD):
        monkeypatch.setattr(optimiser, "step", no_step)
    runs = request.getfixturevalue(state)
    drawn = request.getfixturevalue("pictures") if state == "full" else all_figures(runs)
    for shown in [*all_tables(runs), *drawn]:
        assert shown.html
        assert "\n\n" not in repr(shown)


def test_every_figure_has_number_title_alt_text_badges_data_specs_and_notebook(full, pictures):
    landing = reach.reach(full, ARTIFACT, ("copy", "recopy", "inv_recopy"))
    for number, shown in [(1, landing), *enumerate(pictures, start=1)]:
        page = Page(shown.html)
        (picture,) = page.pictures
        assert len(picture["aria-label"]) > 40
        begins = (
            rf'<b class="number">Figure {number}\.</b> <b>[A-Z][^<>]{{8,}}[.?]</b> <span class="b'
        )
        assert re.search(begins, shown.html)
        assert exhibits.badge("reduced") in shown.html
        assert 'class="badge unchecked"' in shown.html
        saved = [link["download"] for link in page.links if "download" in link]
        assert any(".csv" in name for name in saved)
        assert any(".specs.jsonl" in name for name in saved)
        made = [link["href"] for link in page.links if link["href"].endswith(".ipynb")]
        assert made == ["executed/mla_table2.ipynb" if shown is landing else "mla_table2.ipynb"]


def test_every_figure_gets_its_furniture_in_one_of_three_places():
    """Notebooks' figures, the landing page's, schematic drawings: nobody else makes a figure."""
    made = re.compile(r"\bexhibits\.figure\(")
    files = [f for f in (ROOT / "lib").rglob("*.py") if made.search(f.read_text("utf-8"))]
    assert sorted(file.name for file in files) == ["drawings.py", "figures.py", "reach.py"]


def test_what_no_run_stands_behind_is_called_computed():
    shown = figures.drawn(
        lambda layout: canvas(layout, 1), "a", "One thing: b.", "words", pd.DataFrame({"x": [1]}),
        number=1, page="page",
    )  # fmt: skip
    assert f"<b>One thing.</b> {exhibits.COMPUTED} B." in shown.html
    assert {link["href"].partition(",")[0] for link in Page(shown.html).links} == {
        "data:text/csv;base64",
        "page.ipynb",
    }


@pytest.mark.parametrize("models", [1, 3, 6, 18])
def test_lines_are_known_to_stand_as_far_from_their_numbers_as_they_do(models):
    data = pd.DataFrame({"task": "copy", "model": [f"m{k}" for k in range(models)], "paper": 1.0})
    assert reach.furthest(data) == max(map(abs, reach.lifts(models)))
    assert sum(reach.lifts(models)) == pytest.approx(0, abs=1e-9)


def test_a_figure_is_drawn_for_wide_and_for_narrow_pages(pictures):
    for shown in pictures:
        drawings = re.findall(r"<svg.*?</svg>", shown.html, flags=re.DOTALL)
        wide, narrow = (int(re.search(r' width="(\d+)"', svg)[1]) for svg in drawings)
        assert wide == 768 and narrow <= 328  # a page of 360 pixels has margins


def test_a_figure_takes_its_colours_and_type_from_the_page(pictures):
    """So one drawing serves light pages, dark pages and paper: no colour of a theme is left in."""
    for shown in pictures:
        drawings = "".join(re.findall(r"<svg.*?</svg>", shown.html, flags=re.DOTALL)).lower()
        assert "var(--rl-ink)" in drawings and "var(--rl-sans" in drawings
        for shade in (*LIGHT, *DARK, "#000000", "#ffffff"):
            assert shade not in drawings, shade
        assert "<text" in drawings and "dejavu" not in drawings


def test_marks_that_share_a_style_have_it_once():
    from matplotlib.figure import Figure

    figure = Figure()
    figure.add_axes((0, 0, 1, 1)).set_axis_off()
    for shade, alpha in (("#ff0000", 1), ("#0000ff", 0.5)):
        figure.axes[0].scatter(range(4), range(4), c=shade, alpha=alpha)
    drawing = style.svg(figure, "marks")
    groups = re.findall('<g style="([^"]*)">((?:<use [^>]*/>)+)</g>', drawing)
    fills = [re.search("fill: (#[0-9a-f]+)", shared)[1] for shared, _ in groups]
    assert fills == ["#ff0000", "#0000ff"] and "fill-opacity: 0.5" in groups[1][0]
    assert [marks.count("<use") for _, marks in groups] == [4, 4] and drawing.count("<use") == 8
    assert not any("style" in marks for _, marks in groups)


def test_marks_of_other_styles_or_seen_through_by_themselves_share_none():
    red, blue, pale = (
        f'<use style="{look}"/>' for look in ("fill: red", "fill: blue", "opacity: 0.5")
    )
    for row in (red + blue + red, pale + pale, "<use/><use/>"):
        assert style.sharing(row) == row
    assert style.sharing(red + red + blue) == f'<g style="fill: red"><use/><use/></g>{blue}'


def test_what_drawings_of_one_page_refer_to_is_theirs_alone(pictures):
    """Two drawings with equal identifiers would share their clips and marks."""
    page = "".join(shown.html for shown in pictures)
    identifiers = re.findall(r' id="([^"]*)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(identifiers)


@pytest.mark.parametrize(
    ("code", "replayed", "fresh"),
    [("same", [], 2), ("other", ["a", "b"], 2), ("other", ["a"], 1), ("other", [], 0)],
)
def test_a_run_is_fresh_if_todays_code_made_it_or_reproduced_it(tmp_path, code, replayed, fresh):
    store = Store(tmp_path)
    today = code_fingerprint()
    probes = [{"outcome": "fresh", "run_ids": replayed}, {"outcome": "stale", "run_ids": ["b"]}]
    store.freshness.write_text(json.dumps({"code": today, "probes": probes[: len(replayed) or 2]}))
    made = {name: today if code == "same" else "other code" for name in ("a", "b")}
    assert freshness_of(store, made) == (2, fresh, 0)


@pytest.mark.parametrize("replayed", [["a", "b"], [], ["a"]])
def test_a_check_with_other_code_says_nothing_of_todays(tmp_path, replayed):
    store = Store(tmp_path)
    probes = [{"outcome": "fresh", "run_ids": replayed}]
    store.freshness.write_text(json.dumps({"code": "other code", "probes": probes}))
    found = freshness_of(store, {"a": "other code", "b": "other code"})
    assert found == (2, 0, len(replayed))


def test_a_store_without_runs_says_not_run_everywhere(empty):
    for shown in [*all_tables(empty), *all_figures(empty)]:
        assert " 0 rows" not in shown.html and " 0 runs" not in shown.html
    for waits in [*all_figures(empty), tables.details(empty), appendix.costs(empty)]:
        assert waits.waits and "<table" not in waits.html
        words = re.sub("<[^>]+>", "", waits.html)
        assert "relength run mla_table2 --scale reduced" in words
    printed = tables.side_by_side(empty, ARTIFACT)
    assert printed.waits and len(Page(printed.html).rows) > 6
    # The judged readings:
    assert tables.numbers(empty, ARTIFACT).count(tables.NOT_RUN) == 8 * 6 * 4
    assert set(empty.ledger["verdict"]) == {"not run", "not testable"}


def test_a_smoke_run_is_labelled_and_judges_nothing(smoke):
    assert len(smoke.records) == 320
    for shown in [tables.side_by_side(smoke, ARTIFACT), *all_figures(smoke)]:
        assert exhibits.badge("smoke") in shown.html
    assert set(smoke.ledger["verdict"]) == {"not run", "not testable"}


def test_runs_of_other_hyperparameters_and_failed_runs_are_not_shown(partial):
    assert partial.values("Content", "released", "copy", "15") == [0.0]
    assert partial.cell("Content", "released", "reverse_copy") == []
    costs = appendix.costs(partial).data
    assert costs["failed"].sum() == 1
    assert costs["trainings"].sum() == len(partial.records) + 1


def test_the_table_shows_the_medians_of_the_frame_and_the_numbers_of_the_paper(full):
    page = Page(tables.side_by_side(full, ARTIFACT).html)
    medians = full.selected.groupby(["model", "arm", "task", "test"])["exact_match"].median()
    paper = published.table(ARTIFACT).set_index(["row", "column"])["value"]
    body = [row for row in page.rows if row[0] not in ("", "length")]
    assert len(body) == 16
    for half, row in itertools.product(range(2), range(8)):
        model, arm = full.rows[row]
        shown = body[8 * half + row][1:]
        wanted = [
            (medians[model, arm, task, test], paper[model, f"{task}/{test}"])
            for task in full.tasks[4 * half : 4 * half + 4]
            for test in full.tests[task][1:]
        ]
        for cell, (ours, theirs) in zip(shown, wanted, strict=True):
            text = re.sub("[✓≠↓↑()?]", " ", cell)
            assert text.replace(" ", "") == tables.short(ours) + tables.number(theirs)


def test_a_reading_that_is_not_judged_has_a_row_from_its_first_run_on(tmp_path, empty, full):
    judged = [row for row in full.rows if full.experiment.judges(*row)]
    assert empty.rows == judged and sorted([*judged, *empty.waiting]) == sorted(full.rows)
    assert not full.waiting
    first = {("paper", "MonoAttn", "paper"), ("reduced", "Content", "released")}
    store = Store(tmp_path / "results")
    for scale, model, arm in first:
        shown = [(spec.model.name, spec.model.arm) for spec in EXPERIMENT.specs(scale, [0])]
        spec = EXPERIMENT.specs(scale, [0])[shown.index((model, arm))]
        store.append("mla", handmade.record(spec, lambda *_: 1.0))
    runs = runs_of(store)
    assert runs.rows == [*judged, ("MonoAttn", "paper")]  # from another scale, which its cells name
    assert runs.waiting == [("OneStepAttn", "paper")]
    task = EXPERIMENT.specs("paper", [0])[0].task.name
    assert runs.elsewhere("MonoAttn", "paper", task) == {"paper": 1}


def test_where_all_runs_of_a_cell_failed_it_is_said_how_many_and_why(tmp_path):
    store, row = Store(tmp_path / "results"), ("OneStepAttn", "paper")
    specs = [s for s in runs_of(store).specs if (s.row, s.model.arm) == row]
    whole, some, sound = dict.fromkeys(spec.task.name for spec in specs[:3])
    for spec in specs:
        if spec.task.name == whole or (spec.task.name, spec.seed) == (some, 0):
            error = f"Traceback\n  of 7\nour.Odd: all: {spec.seed}.5; 8\n9\n"
            store.append("mla", handmade.failed(spec) | {"error": error})
    runs = runs_of(store)
    assert {cell: len(made) for cell, made in runs.broken.items()} == {
        (*row, whole): 5, (*row, some): 1
    }  # fmt: skip
    assert handmade.amounts(runs.gaps) == [5, 5, 0.5, 1, 5, 0.5]
    *_, waiting = runs.gaps.rpartition(": ")
    assert {*waiting.rstrip(".").split(", ")} == {model for model, _ in runs.waiting}
    assert FAILED not in tables.numbers(runs)  # the row is left out until a run is finished
    for spec in specs:
        if spec.task.name == sound:
            store.append("mla", handmade.record(spec, lambda *_: 1.0))
    runs = runs_of(store)
    columns = sum(len(runs.tests[task]) for task in (whole, some))
    assert tables.numbers(runs).count(FAILED) == columns
    store.append("mla", handmade.record(specs[0], lambda *_: 1.0))
    assert {task for _, _, task in runs_of(store).broken} == {some}


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("Traceback\n  line 1\n    code\nValueError: 2: 3\nmore: 4", "ValueError: 2: 3"),
        ("Traceback\n  line 1\nMemoryError", "MemoryError"),
        ("KeyError: 'a'\n", "KeyError: 'a'"),
        ("Traceback\n  line 1", "  line 1"),
    ],
)
def test_the_cause_of_a_failure_is_the_line_after_its_traceback(error, line):
    assert cause({"error": error}) == line


def test_a_cell_tells_how_many_seeds_solve_a_test_where_only_some_do(tmp_path):
    shares = {"Content": (1.0, 1.0, 1.0), "Relative": (1.0, 0.0, 1.0)}
    store = Store(tmp_path / "results")
    for spec in EXPERIMENT.specs("reduced", range(3)):
        if spec.model.name in shares and spec.task.name == "copy":
            record = handmade.record(spec, lambda s, _: shares[s.model.name][s.seed])
            store.append("mla", record)
    shown = tables.side_by_side(runs_of(store), ARTIFACT)
    rows = {row[0]: row[1:] for row in reversed(Page(shown.html).rows)}  # first half
    assert rows["Relative"][0].startswith("2/3 100") and rows["Content"][0].startswith("100")
    cells = tables.printed_cells(runs_of(store), ARTIFACT)
    apart = cells.set_index(["model", "task", "test"])["apart"]
    assert len(cells) == 144 and apart.notna().sum() == 6
    assert apart["Content", "copy", "15"] and not apart["Relative", "copy", "15"]  # 0 and 100


def test_seeds_that_agree_need_no_fraction(full):
    assert not re.search(r"<small>\d+/\d+", tables.side_by_side(full, ARTIFACT).html)


def test_a_reading_that_one_claim_is_judged_on_has_a_row_before_it_has_runs(tmp_path):
    variants = Runs.read(experiment("mla_variants"), "reduced", 1, Store(tmp_path))
    assert ("RMonoAttn", "paper") in variants.rows and ("Mix LocAttn", "paper") in variants.waiting


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(59, "59 s"), (90, "1.5 min"), (3560, "59 min"), (3580, "1 h"), (45_000, "12 h"),
     (432_000, "120 h")],
)  # fmt: skip
def test_durations_are_in_the_unit_that_suits_them(seconds, words):
    assert figures._clock(seconds) == words


@pytest.mark.parametrize("spread", [(40, 420), (0.1, 20000), (60, 61)])
def test_labels_of_an_axis_of_time_keep_apart_on_a_phone(spread):
    figure = canvas(NARROW, 1.0)
    axes = figure.add_axes((0.5, 0.3, 0.3, 0.6), xscale="log")
    figures._seconds_axis(axes, pd.Series(spread))
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert boxes and all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_marks_say_which_side_an_undecided_cell_is_on(full):
    page = Page(tables.side_by_side(full, ARTIFACT).html)
    rows = {row[0]: row[1:] for row in page.rows if row[0] not in ("", "length")}  # second half
    # Inv ReCopy at 30 and 100 is printed as 0; ours is perfect for OneStepAttn, 0 for Content.
    inv = full.tasks[4:].index("inv_recopy") * 3
    assert rows["OneStepAttn"][inv + 1].startswith("100↑")
    hardly = full.ledger.set_index("claim").loc[f"{ARTIFACT}/Content/inv_recopy/30", "hardly"]
    assert rows["Content"][inv + 1].startswith("0(✓)" if hardly else "0✓") and hardly is not None
    # Printed as 43.1 for Relative on ReCopy at length 15; ours are 0 to 20.
    recopy = full.tasks[4:].index("recopy") * 3
    assert rows["Relative"][recopy].startswith("10↓")
    assert not any("≠" in cell for row in rows.values() for cell in row)


def test_a_run_that_failed_costs_nothing_and_breaks_nothing(tmp_path):
    spec = EXPERIMENT.specs("reduced", [0])[0]
    store = Store(tmp_path / "results")
    store.append("mla", handmade.failed(spec))
    runs = runs_of(store)
    (row,) = appendix.costs(runs).data.itertuples()
    assert (row.trainings, row.failed, row.steps, row.hours) == (0, 1, 0, 0.0)
    for shown in [*all_tables(runs), *all_figures(runs)]:
        assert shown.html


def test_records_made_by_hand_have_the_fields_of_real_ones(tiny, tmp_path, monkeypatch):
    spec = tiny(epochs=1)
    job = execute.Job((spec,), "mla_table2", "cpu", tmp_path)
    (done,) = execute.execute(job)
    assert set(done) == set(handmade.record(spec, accuracy))
    monkeypatch.setattr(execute, "train", lambda *_: 1 / 0)
    (broken,) = execute.execute(job)
    assert broken["status"] == "failed"
    assert set(broken) == set(handmade.failed(spec))


def test_the_download_holds_every_seed_and_agrees_with_the_frame(full):
    (link, *_) = Page(tables.details(full, ARTIFACT).html).links
    rows = download(link)
    assert len(rows) == 8 * 8 * 4
    cells = ["model", "arm", "task", "test", "seed"]
    frame = full.selected.set_index(cells)["exact_match"].sort_index()
    for row in rows[::17]:
        seeds = [float(value) for value in row["values"].split()]
        cell = frame.loc[row["model"], row["arm"], row["task"], row["test"]]
        assert seeds == pytest.approx(cell.to_list(), rel=1e-5)
        assert float(row["median"]) == pytest.approx(np.median(seeds), rel=1e-5)
        assert int(float(row["solved"])) == sum(value >= 95 for value in seeds)


def test_the_long_table_can_be_sorted_and_has_one_head_per_column(full):
    html = tables.details(full, ARTIFACT).html
    page = Page(html)
    assert '<table class="sortable">' in html
    assert {len(row) for row in page.rows} == {len(page.rows[0])}


def test_the_long_table_counts_the_other_rows_that_come_out_at_a_number(full):
    head, *rows = Page(tables.details(full, ARTIFACT).html).rows
    column, room = head.index("other rows"), load_margins().measures["accuracy"]
    printed = tables.printed(ARTIFACT)
    judged = full.experiment.judged_arms
    seen = 0
    for row in full.ledger[full.ledger["claim"].str.startswith(f"{ARTIFACT}/")].itertuples():
        _, model, task, test = row.claim.split("/")
        if row.verdict != "reproduced":
            continue
        said = printed[model, task, test]
        others = [
            abs(np.median(full.values(other, arm, task, test)) - said) <= room.around(said)
            for other, arm in judged.items()
            if other != model
        ]
        label = full.label(model, row.arm, task)
        (shown,) = [
            line[column] for line in rows if line[:3] == [tables.title(task), test or "mean", label]
        ]
        assert shown == f"{sum(others)} of {len(others)}"
        seen += 1
    assert seen > 80


def test_the_text_version_has_the_same_numbers(full):
    text = tables.numbers(full, ARTIFACT)
    block = text.split("Inv ReCopy, length")[1].split("\n\n")[0]
    (line,) = [line for line in block.splitlines() if line.startswith("  OneStepAttn  ")]
    assert line.split() == ["OneStepAttn", "5", "100", "100", "(0.1)", "100", "(0)", "100", "(0)"]


def test_verdicts_shown_are_those_of_the_claims_engine(full):
    about = [claim for claim in claims.load("mla") if claim.artifact == ARTIFACT]
    ledger = claims.ledger(about, full.frame)
    assert full.ledger["verdict"].tolist() == ledger["verdict"].tolist()
    cells = ledger[ledger["claim"].str.contains("/")]["verdict"].value_counts()
    assert tables.counts_of_verdicts(full)["printed cells"] == cells.to_dict()
    shown = Page(tables.verdicts(full).html)
    assert len(shown.rows) == 1 + (~ledger["claim"].str.contains("/")).sum()


def test_a_page_of_five_seeds_judges_stage_two_as_the_ledger_does(tmp_path):
    """A sixth seed of cells that fail in all five contradicts them on the page, too."""
    store = store_of(tmp_path, EXPERIMENT.specs("reduced", range(6)))
    page = runs_of(store)
    assert {record["spec"]["seed"] for record in page.records} == set(range(5))
    whole = judged.ledger("mla", store).set_index("claim")
    mine = page.ledger.set_index("claim")
    assert len(mine) and mine["verdict"].equals(whole.loc[mine.index, "verdict"])
    assert (mine["verdict"] == "contradicted").any()
    few = Runs.read(EXPERIMENT, "reduced", 3, store).ledger
    assert not few["verdict"].isin(("contradicted", "reproduced")).any()


def test_claims_that_another_arm_decides_are_found_for_the_caption():
    def alone(name):
        return tables.judged_alone(Runs.read(experiment(name), "reduced", 5, Store("nowhere")))

    assert alone("mla_variants")["paper"] == ["mla-043"] and alone("mla_table2") == {}


def test_rows_that_are_judged_as_repaired_are_named_in_captions(tmp_path):
    found = experiment("mla_scan")
    runs = Runs.read(found, "reduced", 1, Store(tmp_path))
    specs = [spec for spec in runs.specs if spec.model.name in ("Content", "Mix OneStepAttn")]
    records = [handmade.record(spec, lambda *_: 1.0, experiment="mla_scan") for spec in specs]
    states = dict.fromkeys((record["run_id"] for record in records), "unchecked")
    runs = replace(runs, specs=tuple(specs), records=tuple(records), states=states)
    assert runs.judged_otherwise == {"repaired": ["Mix OneStepAttn"]}
    for shown in (tables.side_by_side(runs, "mla-table-3"), tables.verdicts(runs)):
        assert "Mix OneStepAttn" in shown.html.partition("</figcaption>")[0]


def test_a_cell_of_two_tables_is_shown_seed_by_seed(full, empty):
    cell, asked = ("Content", "copy", "15"), {"mla-table-2": "exact_match"}
    (record, *_) = full.cell("Content", "released", "copy")
    first = 100 * record["checkpoints"]["selected"]["tests"]["15"]["exact_match"]
    head, line = tables.beside(full, cell, asked).splitlines()
    assert all(name in head for name in ("Content", "Copy", "15"))
    assert tables.short(first) in line and re.findall(r"\d+", line)[-1] == "0"  # as printed
    assert tables.NOT_RUN in tables.beside(empty, cell, asked)


def test_numbers_short_of_the_whole_are_not_rounded_to_it():
    assert [tables.short(x) for x in (100, 99.96, 99.94, 0.04, 0, 33.33)] == [
        *("100", ">99.9", "99.9", "<0.1", "0", "33.3"),
    ]
    assert [tables.number(x) for x in (100, 99.996, 99.95, 0.004, 0, np.nan)] == [
        *("100", ">99.99", "99.95", "<0.01", "0", "–"),
    ]


def prices_of(runs: Runs, device: Device) -> Prices:
    return Prices(own(runs.experiment, runs.records), device)


def test_a_rebuild_costs_what_the_recorded_runs_cost(full):
    prices = prices_of(full, Device.of(full.records[0]))
    estimate = appendix.rebuild([full], "reduced", prices)
    assert estimate["trainings"] == 320 and estimate["unpriced"] == 0
    assert estimate["steps"] == sum(record["cost"]["steps"] for record in full.records)
    assert estimate["hours"] == pytest.approx(320 * 128 / 3600, rel=1e-6)
    paper = appendix.rebuild([full], "paper", prices)
    assert paper["steps"] == 5 * sum(
        100 * -(-spec.task.train_size // 32) for spec in EXPERIMENT.specs("paper", [0])
    )


def test_what_two_experiments_of_a_page_share_counts_once(full):
    prices = prices_of(full, Device.of(full.records[0]))
    assert appendix.rebuild([full, full], "reduced", prices) == appendix.rebuild(
        [full], "reduced", prices
    )
    assert appendix.costs(full, full).data.equals(appendix.costs(full).data)


def test_what_was_never_run_on_a_device_has_no_price_there(full):
    estimate = appendix.rebuild([full], "reduced", prices_of(full, Device("cuda", "a GPU")))
    assert estimate["unpriced"] == estimate["trainings"] and estimate["hours"] == 0


def test_the_shorter_training_is_compared_where_both_scales_have_the_seed(tmp_path):
    specs = [*EXPERIMENT.specs("reduced", [0, 1])[:3], *EXPERIMENT.specs("paper", [0])[:2]]
    shown = appendix.cap_check(runs_of(store_of(tmp_path, specs)))
    assert set(shown.data["task"]) == {"copy", "reverse_copy"}
    assert set(shown.data["seed"]) == {0}
    assert all(f">{test}<" in shown.html for test in (15, 30, 100)) and ">test 2<" not in shown.html


def test_the_caption_says_what_the_shorter_training_changed(tmp_path):
    short, long = (EXPERIMENT.specs(scale, [0])[:2] for scale in ("reduced", "paper"))
    store = store_of(tmp_path, [*short, long[0]])
    store.append("mla", handmade.record(long[1], lambda *_: 0.125))
    found = appendix.shorter_training(appendix.cap_check(runs_of(store)).data)
    assert (found.within, found.pairs) == (1, 2)
    most = found.most[["task", "seed", "test", "reduced", "paper"]].tolist()
    assert most == [long[1].task.name, 0, "iid", 100, 12.5]


def test_pairs_of_tasks_with_other_lengths_share_columns_with_numbers(tmp_path):
    """A page about some of an experiment's tasks does so, too."""
    both = [
        spec
        for scale in ("reduced", "paper")
        for spec in EXPERIMENT.specs(scale, [0])
        if spec.task.name in ("copy", "lookup")
    ]
    shown = runs_of(store_of(tmp_path, both))
    html = appendix.cap_check(shown).html
    assert all(f">test {number}<" in html for number in (2, 3, 4)) and ">15<" not in html
    some = replace(shown, specs=tuple(spec for spec in shown.specs if spec.task.name == "recopy"))
    assert appendix.cap_check(some).html == html


def test_numbers_close_to_nothing_are_text_and_no_tags(tmp_path):
    specs = [*EXPERIMENT.specs("reduced", range(3))[:4], *EXPERIMENT.specs("paper", [0])[:4]]
    store = store_of(tmp_path, specs[:0])
    for spec in specs:
        store.append("mla", handmade.record(spec, lambda *_: 0.00004))
    for shown in all_tables(runs_of(store)):
        assert not re.search(r"<[\d.]", shown.html)
    assert "&lt;0.01" in tables.details(runs_of(store), ARTIFACT).html


def test_the_attention_figure_shows_a_run_of_median_accuracy(tmp_path):
    specs = [
        next(s for s in EXPERIMENT.specs("reduced", [seed]) if (s.task.name, s.model.name) == CELL)
        for seed in range(5)
    ]
    store = store_of(tmp_path, [])
    for spec, reached, seed in zip(specs, (0, 1, 0.5, 1, 1), (0, 0, 2, 2, 1), strict=True):
        store.append("mla", handmade.record(spec, lambda *_, reached=reached: reached))
        task, model = CELL
        shown = figures.runs_to_look_at(runs_of(store), [task], [model])[task, model]
        assert shown["spec"]["seed"] == seed


@pytest.mark.parametrize("task", ["copy", "recopy", "inv_recopy"])
def test_the_boxes_of_the_attention_figure_hold_the_answer(task):
    for pair in TASKS[task](test_size=20).pairs("15", 0):
        source, target = ["START", *pair.source, "END"], [*pair.target, "EOS"]
        spans = answer_spans(task, source, target)
        assert len(spans) == len(target)
        assert spans[-1] == (len(source) - 1, len(source) - 1)
        for (first, last), symbol in zip(spans[:-1], target[:-1], strict=True):
            assert set(source[first : last + 1]) == {symbol}


# Colour


def linear(colour: str) -> np.ndarray:
    """Linear RGB, 0 to 1 (IEC 61966-2-1)."""
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(a: str, b: str) -> float:
    """Contrast ratio of the Web Content Accessibility Guidelines."""
    low, high = sorted(float(linear(x) @ [0.2126, 0.7152, 0.0722]) for x in (a, b))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB of linear RGB, D65."""
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    x, y, z = np.cbrt((to_xyz @ rgb.clip(0, 1)) / [0.95047, 1.0, 1.08883])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# Full colour vision deficiency (Machado, Oliveira and Fernandes 2009, severity 1).
VISION = {
    "typical": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def test_every_model_has_a_colour_of_its_own_or_that_of_the_one_it_varies():
    assert len(set(MODEL_COLOURS.values())) == len(MODEL_COLOURS)
    grey = {name for name in MODELS if colour(name) == MODEL_COLOURS["Content"]}
    assert grey == {"Content"}
    for variant in ("Mix MonoAttn PR", "RMonoAttn", "Mix RMonoAttn", "MonoAttn, as in the text"):
        assert colour(variant) == MODEL_COLOURS["MonoAttn"]
    assert colour("-Step 2") == MODEL_COLOURS["OneStepAttn"]
    # What a paper says of a whole name counts, whatever models of other papers its words name.
    assert {name: colour(name) for name in VARIANTS} == {
        name: MODEL_COLOURS[varied] for name, varied in VARIANTS.items()
    }


@pytest.mark.parametrize("vision", VISION)
def test_model_colours_can_be_told_apart(vision):
    """Models of one paper share figures, so their colours are further apart than those of two,
    which never stand side by side.
    """
    seen = {m: lab(np.array(VISION[vision]) @ linear(c)) for m, c in MODEL_COLOURS.items()}
    papers = registry.papers().values()
    of = {model: paper.name for paper in papers for model in paper.colours}
    for a, b in itertools.combinations(seen, 2):
        least = 13 if of[a] == of[b] else 6
        assert np.linalg.norm(seen[a] - seen[b]) > least, (a, b)


def test_model_colours_stand_out_on_light_and_dark_pages():
    for theme, (model, shade) in itertools.product((LIGHT, DARK), MODEL_COLOURS.items()):
        assert contrast(shade, theme.page) >= 3, (theme.page, model)


def mixed(a: str, b: str, share: float) -> str:
    """CSS color-mix in sRGB: a share of ``a``, the rest ``b``."""
    parts = [(int(a[i : i + 2], 16), int(b[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(share * x + (1 - share) * y):02x}" for x, y in parts)


def test_text_is_legible_on_light_and_dark_pages():
    for theme in (LIGHT, DARK):
        for shade in MODEL_COLOURS.values():
            assert contrast(mixed(shade, theme.ink, TEXT_SHARE / 100), theme.page) >= 4.5, shade
        for shade in (theme.ink, theme.muted, theme.first, theme.second, theme.warning):
            for ground in (theme.page, theme.surface):
                assert contrast(shade, ground) >= 4.5, (ground, shade)


def test_figures_and_pages_have_the_same_colours():
    sheet = (BOOK / "assets" / "book.css").read_text()
    for name, theme in (("light", LIGHT), ("dark", DARK)):
        (block,) = re.findall(rf'html\[data-theme="{name}"\] {{(.*?)}}', sheet, flags=re.DOTALL)[:1]
        for declaration in variables(theme).split("; "):
            assert declaration.strip(";") in block, (name, declaration)
        assert variables(theme) in CSS


def test_what_the_paper_prints_is_shown_as_printed():
    """0.05 is one of the paper's numbers; a column of one decimal would turn it into 0.1."""
    text = tables.published_table("mla-table-2").html
    assert "<b>0.05</b>" in text and "<b>98.8</b>" in text and "<b>100</b>" in text


def test_of_two_seeds_both_are_shown_as_they_have_no_middle():
    def cell(*values):
        return {"seeds": len(values), "values": values, "ours": float(np.median(values))}

    assert tables._middle(cell(100.0, 0.0)) == "0/100"
    assert tables._middle(cell(99.96, 99.97)) == ">99.9"
    assert tables._middle(cell(0.0, 50.0, 100.0)) == "50"


def test_runs_on_generated_data_are_counted_below_tables_and_only_if_there_are_any(tmp_path, full):
    lookups = [spec for spec in EXPERIMENT.specs("reduced", [0]) if spec.task.name == "lookup"]
    store = store_of(tmp_path, EXPERIMENT.specs("reduced", [1])[:4])
    for number, spec in enumerate(lookups[:2]):
        record = handmade.record(spec, accuracy)
        record["provenance"]["data"] |= {"reason": "there is no network"}
        store.append("mla", record | {"run_id": f"{number:016x}"})
        some = runs_of(store)
        assert (some.generated, len(some.records)) == (number + 1, number + 5)
    for page in (
        lambda runs: tables.side_by_side(runs, "mla-table-2"),
        tables.details,
        appendix.costs,
    ):
        assert some.on_generated_data.strip() in page(some).html
    assert full.on_generated_data == "" and full.generated == 0
