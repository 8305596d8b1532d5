"""Cost, environment and provenance: every number on these pages is one of the records'."""

import json
import re

import handmade
import pandas as pd
import pytest
import yaml
from browser import View, Window

from relength.bench import speed as bench
from relength.errors import RelengthError
from relength.paths import BOOK, ROOT
from relength.report import appendix, environment, expenses, run_index, self_checks, speeds
from relength.report.runs import Runs
from relength.report.scoreboard import Survey, costs
from relength.runs.prices import TIMED, Device, Prices, measured_on, own_runs, timed
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.specs.spec import make_spec
from relength.training.provenance import code_fingerprint
from relength.verdicts import claims

TABLE_2 = experiments()["mla_table2"]
COPY, REVERSE, *_ = TABLE_2.grid("reduced", 0)
CORE = Device("cpu", "a processor")


def survey(folder, *records) -> Survey:
    """Survey a store of these records, without verdicts."""
    store = Store(folder)
    for number, record in enumerate(records):
        store.append("mla", record | {"run_id": f"{number:016x}"})
    nothing = pd.DataFrame()
    return Survey(nothing, nothing, costs(store.records()), nothing, store)


def record(spec, hours=1.0, **provenance):
    made = handmade.record(spec, lambda *_: 0.5)
    made["cost"] |= {"training_seconds": 3600 * hours, "evaluation_seconds": 0.0}
    made["provenance"] |= {"device_name": "a processor", **provenance}
    return made


def rows(passage: str, first: str, columns: int | None = None) -> list[list[str]]:
    """The cells of a Markdown table's lines that begin with a word.

    columns: only of tables with so many
    """
    lines = [line for line in passage.splitlines() if line.startswith(f"| {first}")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if columns in (None, len(row))]


def priced(passage: str, first: str) -> list[list[str]]:
    """:func:`rows` of the table of prices."""
    return rows(passage, first, columns=9)


# --- cost ---------------------------------------------------------------------------------------


def test_a_price_counts_runs_steps_and_hours_and_says_what_it_does_not_know(tmp_path):
    passage = expenses.prices(survey(tmp_path, record(COPY, hours=2.0)))
    reduced, paper = priced(passage, "MLA Tables 2, 9, 10")
    assert reduced == [
        *("MLA Tables 2, 9, 10", "reduced", "320", "240", "1", "a core of a processor"),
        # The other five tasks of the family at its pace.
        *("2.0", "58.0 + 290 runs unknown", "60.0 + 290 runs unknown"),
    ]
    state = survey(tmp_path / "again", record(COPY, hours=2.0))
    found = expenses.at_the_papers_scale(TABLE_2, Prices(own_runs(state.store), CORE))
    assert (found.trainings, found.unpriced, found.seconds) == (240, 210, pytest.approx(864_000))
    assert found.steps == pytest.approx(7.3e6, rel=0.01)
    [at_scale] = rows(passage, "MLA Tables 2, 9, 10", columns=6)
    assert at_scale[1] == "240" and at_scale[3:] == ["a core of a processor", "240", "210"]
    assert int(at_scale[2].replace(",", "")) == found.steps
    # Four times as many epochs at the same seconds per step.
    assert paper[1] == "paper" and paper[6:] == ["–", *["240 + 290 runs unknown"] * 2]


def test_runs_that_no_claim_is_about_are_not_called_judged(tmp_path):
    passage = expenses.prices(survey(tmp_path))
    claimed = {claim.source.experiment for name in claims.papers() for claim in claims.load(name)}
    own = [found for found in experiments().values() if not found.borrows]
    free = [expenses.rebuilds(found) for found in own if found.name not in claimed]
    counts = [row[3] for name in free for row in priced(passage, f"{name} |")]
    assert free and counts == ["0"] * len(expenses.SCALES) * len(free)


def test_each_device_has_prices_of_its_own(tmp_path):
    gpu = {"device": "cuda", "device_name": "a GPU"}
    passage = expenses.prices(survey(tmp_path, record(COPY, 2.0), record(REVERSE, 0.5, **gpu)))
    devices = {
        row[5]: row[6] for row in priced(passage, "MLA Tables 2, 9, 10") if row[1] == "reduced"
    }
    assert devices == {"a core of a processor": "2.0", "a GPU": "0.5"}


def test_steps_that_were_timed_are_a_price_on_their_device_without_any_record(tmp_path):
    state = survey(tmp_path)
    by = {"device": "cpu", "device_name": "a processor", "torch": "2.13.0"}
    by |= {"created": "2026-01-01T00:00:00Z"}
    for spec in (COPY, COPY.model_copy(update={"scale": "smoke"})):  # a smoke run's count nowhere
        fields = {"key": spec.key, "spec": spec.model_dump(mode="json"), "seconds": 0.01}
        state.store.append_benchmark({"kind": TIMED, **fields, "provenance": by})
    few = timed(state.store)
    assert [one.device for one in few] == [CORE] * 2
    assert measured_on([TABLE_2], [], few) == [CORE] and measured_on([TABLE_2], [], few[1:]) == []
    lines = priced(expenses.prices(state), "MLA Tables 2, 9, 10")
    assert {row[5] for row in lines} == {"a core of a processor"}
    assert "unknown" not in lines[0][8].split("+")[0] and lines[0][6] == "–"  # nothing is spent
    costs = appendix.costs(Runs.read(TABLE_2, "reduced", 1, state.store))
    assert not costs.waits and costs.data.empty and "a processor" in costs.html


def test_what_was_never_run_is_listed_and_has_no_price(tmp_path):
    passage = expenses.prices(survey(tmp_path))
    listed = [line for line in passage.splitlines() if " | unknown | unknown |" in line]
    assert len(listed) == 2 * sum(not found.borrows for found in experiments().values())


def test_what_an_experiment_rebuilds_is_named_as_in_the_paper():
    assert expenses.rebuilds(TABLE_2) == "MLA Tables 2, 9, 10"
    if "panm_algorithmic" in experiments():
        assert expenses.rebuilds(experiments()["panm_algorithmic"]).startswith("PANM Tables 3, 13")


def test_the_time_of_a_notebook_is_papermills(tmp_path, monkeypatch):
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": "words"},
        *(
            {
                "cell_type": "code",
                "metadata": {"papermill": {"duration": seconds}},
                "source": ["import this\n", f"call({seconds})"],
            }
            for seconds in (0.5, 7.25, 1.0)
        ),
    ]
    made = {"papermill": {"duration": 9.5, "end_time": "2026-11-20T17:30:00"}}
    (tmp_path / "some_table.ipynb").write_text(json.dumps({"cells": cells, "metadata": made}))
    monkeypatch.setattr(expenses, "EXECUTED", tmp_path)
    (row,) = rows(expenses.notebooks(survey(tmp_path / "store")), "{doc}")
    assert row == ["{doc}`/executed/some_table`", "2026-11-20", "9.5", "`call(7.25)`", "7.2"]


OUTCOME = {
    "task": "copy",
    "model": "OneStepAttn",
    "batch_size": 32,
    "rounds": 5,
    "baseline_threads": 2,
    "steps_per_second": {"baseline": 10.0, "one core": 31.3, "2 cores": 60.0},
    "ratio_to_baseline": {"baseline": 1.0, "one core": 3.13, "2 cores": 6.0},
    "memory_bytes": {"baseline": 2**28, "one core": 2**28, "2 cores": 2**29},
    "limits": {
        "flops_per_step": 2e8,
        "bytes_per_step": 6e6,
        "flops_per_second": {"cpu": 2e10},
        "bytes_per_second": {"cpu": 6e9},
    },
}


def measured(folder, *outcomes, **provenance) -> Survey:
    store = Store(folder)
    for commit, outcome in zip("abc", outcomes, strict=False):
        origin = {"device": "cpu", "device_name": "a processor", "torch": "2.13.0"}
        origin |= {"created": "2026-11-20T17:30:00Z", "commit": commit * 40, **provenance}
        store.append_benchmark(outcome | {"provenance": origin})
    nothing = pd.DataFrame()
    return Survey(nothing, nothing, nothing, nothing, store)


def test_measured_speed_is_shown_with_its_machine_and_the_latest_counts(tmp_path):
    assert "relength bench" in speeds.speed(survey(tmp_path / "nothing"))
    earlier = OUTCOME | {"steps_per_second": dict.fromkeys(OUTCOME["steps_per_second"], 1.0)}
    text = speeds.speed(measured(tmp_path, earlier, OUTCOME))
    assert (
        "on a processor, PyTorch 2.13.0" in text and "bbbbbbbb" in text and "aaaaaaaa" not in text
    )
    # 31.3 steps a second are 3.6 trainings of 31,300 steps an hour; a step of 10 ms at the least.
    assert rows(text, "copy | one core") == [
        ["copy", "one core", "31", "3.13", "3.6", "256 MiB", "31 % (products)"]
    ]
    assert rows(text, "copy | 2 cores")[0][-1] == "30 % (products)"  # of both cores together
    assert rows(text, "copy | plain loop")[0][-1] == "5 % (products)"


def test_work_done_in_two_ways_is_compared_round_by_round(tmp_path):
    assert "relength bench" in speeds.pairs(measured(tmp_path / "nothing"))
    step = {"ours": "quick", "other": "plain", "aim": 3.0, "limits": OUTCOME["limits"]}
    share = {"ours": "more", "other": "less", "aim": 0.8, "limits": None}
    outcome = {
        **{"kind": "pairs", "paper": "dnc", "rounds": 3},
        "pairs": {
            "a step": step | {"rates": [[30.0, 10.0, 40.0], [10.0, 5.0, 8.0]]},
            "a second one": share | {"rates": [[7.0, 7.0, 7.0], [10.0, 10.0, 10.0]]},
        },
    }
    text = speeds.pairs(measured(tmp_path, outcome))
    # Ratios of 3, 2 and 5; 30 steps a second, of which none can take less than 10 ms.
    assert rows(text, "a step") == [
        ["a step", "quick", "plain", "3.00", "3.00, reached", "30 % (products)"]
    ]
    assert rows(text, "a second")[0][3:] == ["0.70", "0.80, missed", "–"]
    (title,) = (line for line in text.splitlines() if line.startswith("```{table}"))
    assert "`" not in title.removeprefix("```")  # or Markdown takes it for a line of text
    later = outcome | {"pairs": {"a step": step | {"rates": [[2.0], [1.0]]}}}
    latest = speeds.pairs(measured(tmp_path / "twice", outcome, later))
    assert rows(latest, "a step")[0][3] == "2.00" and not rows(latest, "a second")


def test_what_speed_was_aimed_at_is_said_to_be_reached_or_missed(tmp_path):
    aims = speeds.aims([OUTCOME])
    assert aims == {"one core": (2, {"copy": 3.13}), "2 cores": (3.5, {"copy": 6.0})}
    assert not any(aim.missed for aim in aims.values())
    slow = OUTCOME | {
        "task": "recopy",
        "ratio_to_baseline": {"baseline": 1.0, "one core": 1.999, "2 cores": 3.5},
    }
    aims = speeds.aims([OUTCOME, slow])
    assert aims["one core"].ratios == {"copy": 3.13, "recopy": 1.999}
    assert aims["one core"].missed == 1 and aims["2 cores"].missed == 0
    text = speeds.speed(measured(tmp_path, OUTCOME, slow))
    goals = [re.findall(r"\d[\d.]*", words) for words in re.findall(r"\*\*(.*?\))", text)]
    assert goals == [["1", "2", "3.13", "2.00"], ["6.00", "3.50"]]  # missed on 1 of 2, and reached


def test_an_older_measurement_says_what_it_lacks(tmp_path):
    older = {k: v for k, v in OUTCOME.items() if k not in ("memory_bytes", "limits")}
    text = speeds.speed(measured(tmp_path, older))
    assert rows(text, "copy | one core")[0][-2:] == ["not measured"] * 2


def test_the_nearer_of_the_two_limits_is_named():
    limits = OUTCOME["limits"] | {"bytes_per_second": {"cpu": 6e7}}
    assert speeds.limit_share(OUTCOME | {"limits": limits}, "one core") == "313 % (memory)"


def test_a_gpu_that_nobody_has_measured_is_said_to_be_missing(tmp_path):
    assert "--device cuda" in speeds.speed(measured(tmp_path / "cpu", OUTCOME))
    ways = {way.name: 100.0 for way in bench.ways("cuda")}
    limits = OUTCOME["limits"] | {
        "flops_per_second": {"cpu": 2e10, "cuda": 4e13},
        "bytes_per_second": {"cpu": 6e9, "cuda": 3e12},
    }
    outcome = OUTCOME | {"steps_per_second": ways, "ratio_to_baseline": ways, "limits": limits}
    text = speeds.speed(measured(tmp_path, outcome, device="cuda", device_name="a GPU"))
    assert "--device cuda" not in text and "| stack of 40 on cuda, without graphs |" in text


def test_measurements_of_a_kind_that_is_no_longer_made_are_read_and_not_shown(tmp_path):
    other = {"kind": "executors", "runs": 8, "seconds": {"processes": [100.0], "Dask": [200.0]}}
    alone, both = measured(tmp_path / "one", OUTCOME), measured(tmp_path / "two", OUTCOME, other)
    assert len(both.store.benchmarks()) == 2
    assert speeds.speed(both) == speeds.speed(alone)


# --- environment --------------------------------------------------------------------------------


def test_every_package_of_the_lock_file_is_listed_once(tmp_path):
    text = "\n".join(file.read_text() for file in ROOT.glob("requirements*.lock"))
    pins = re.findall(r"^([^#=\s]+)==(\S+)$", text, re.M)
    text = environment.locked(survey(tmp_path))
    for name, version in pins:
        shown = re.sub(r"[-_.]+", "-", name).lower()
        assert (
            len(re.findall(rf"^\| {re.escape(shown)} \| {re.escape(version)} \|", text, re.M)) == 1
        )
    assert "| torch | " in text.split("dropdown")[0]


def test_records_are_counted_by_machine_and_by_code(tmp_path):
    state = survey(
        tmp_path,
        record(COPY, code="1" * 12, commit="a" * 40, dirty=True),
        record(REVERSE, code="1" * 12, commit="a" * 40, dirty=True),
        record(TABLE_2.grid("reduced", 1)[0], torch="2.11.0", created="2026-03-01T00:00:00Z"),
    )
    (usual, other) = rows(environment.machines(state), "cpu")
    assert usual[:2] == ["cpu", "a processor"] and usual[4] == "2.13.0" and usual[7] == "2"
    assert other[4] == "2.11.0" and other[7:] == ["1", "2026-03-01"]
    (row,) = rows(environment.code(state), "`111111111111`")
    assert (row[1], row[3]) == ("`aaaaaaaa`", "2") and row[2]  # there were uncommitted changes


# --- provenance ---------------------------------------------------------------------------------


def test_every_key_has_one_row_with_an_anchor_and_its_executions(tmp_path):
    again = record(COPY, created="2026-02-01T00:00:00Z")
    page = run_index.index(survey(tmp_path, record(COPY), again, record(REVERSE)))
    anchors = re.findall(r'<tr id="run-([0-9a-f]{12})" data-runs="mla_table2">', page)
    assert sorted(anchors) == sorted([COPY.key, REVERSE.key])
    (row,) = re.findall(rf'<tr id="run-{COPY.key}".*?</tr>', page)
    assert "</a> ×2</td>" in row and "2026-02-01" in row and "50.0 %" in row and "unchecked" in row
    assert "<td>MLA Tables 2, 9, 10; MLA Table 7</td>" in row
    other = make_spec(**COPY.model_dump() | {"training": {"name": "epochs", "epochs": 3}})
    assert "<td>nothing</td>" in run_index.index(survey(tmp_path / "other", record(other)))
    assert "http" not in page


def data_of(folder) -> dict:
    (file,) = run_index.write(Store(folder), folder / "static")
    text = file.read_text()
    assert text.startswith('(window.relengthRuns ??= {})["mla_table2"] = {')
    return json.loads(text.split(" = ", 1)[1].rstrip(";\n"))


def test_the_details_of_a_run_are_those_of_its_record(tmp_path):
    made = record(COPY)
    survey(tmp_path, made, handmade.failed(REVERSE))
    runs = data_of(tmp_path)
    assert runs[COPY.key]["spec"] == made["spec"]
    (execution,) = runs[COPY.key]["executions"]
    assert [test[0] for test in execution["checkpoints"]["selected"]["tests"]] == list(
        COPY.task.tests
    )
    assert execution["checkpoints"]["selected"]["tests"][0][1:3] == [2001, 0.5]
    assert execution["provenance"] == made["provenance"]
    assert len(execution["curve"]["epoch"]) == 25
    (failed,) = runs[REVERSE.key]["executions"]
    assert failed["status"] == "failed" and failed["error"] == "ValueError: no"


def test_a_note_on_records_stands_with_them_and_on_top_of_the_page(tmp_path):
    state = survey(tmp_path, record(COPY, commit="a" * 40), record(REVERSE, commit="b" * 40))
    assert "beyond them" not in run_index.index(state)
    assert data_of(tmp_path)[COPY.key]["executions"][0]["note"] == ""
    both = ", ".join(f'"{number:016x}"' for number in (0, 1))
    state.store.notes_file.write_text(
        f"- {{commit: {'a' * 40}, said: One.}}\n- {{run_ids: [{both}], said: Two.}}\n"
    )
    page = run_index.index(state)
    assert "- 1 record: One.\n- 2 records: Two.\n" in page
    runs = data_of(tmp_path)
    notes = [runs[spec.key]["executions"][0]["note"] for spec in (COPY, REVERSE)]
    assert notes == ["One. Two.", "Two."]


@pytest.mark.parametrize("wrong", ["- {said: Of nothing.}", "- {commit: abc, said: x.}", "a: b"])
def test_wrong_notes_are_refused_with_the_file(tmp_path, wrong):
    store = Store(tmp_path)
    store.notes_file.write_text(wrong)
    with pytest.raises(RelengthError, match=r"notes\.yml is no list of notes"):
        store.notes()


def test_a_long_learning_curve_is_thinned_and_keeps_its_ends(tmp_path):
    made = record(COPY)
    made["curve"] = [{**made["curve"][0], "epoch": epoch} for epoch in range(1000)]
    survey(tmp_path, made)
    epochs = data_of(tmp_path)[COPY.key]["executions"][0]["curve"]["epoch"]
    assert len(epochs) == run_index.POINTS and (epochs[0], epochs[-1]) == (0, 999)


def test_data_of_runs_that_are_gone_do_not_stay(tmp_path):
    store = Store(tmp_path / "empty")
    left_over = tmp_path / "static" / "runs" / "gone.js"
    left_over.parent.mkdir(parents=True)
    left_over.touch()
    assert run_index.write(store, tmp_path / "static") == [] and not left_over.exists()


def test_the_command_of_a_run_finds_exactly_that_run():
    from relength.runs.plan import choose

    for spec in (COPY, TABLE_2.grid("reduced", 7)[3], TABLE_2.grid("smoke", 2)[0]):
        found = run_index.commands(record(spec))
        assert found["compare"] == f"relength verify --full {spec.key}"
        words = found["record"].split()
        options = dict(zip(words[3:9:2], words[4:9:2], strict=False))
        seeds = int(options.get("--seeds", 5 if spec.scale != "smoke" else 1))
        runs = choose((words[2],), options["--scale"], seeds, key=[spec.key])
        assert [run.spec for run in runs] == [spec] and words[-1] == "--refresh"
    other = make_spec(**COPY.model_dump() | {"training": {"name": "epochs", "epochs": 3}})
    assert run_index.commands(record(other)).keys() == {"compare"}


def test_a_run_made_on_a_gpu_is_made_again_on_one():
    gpu = record(COPY, device="cuda", device_name="a GPU")
    assert run_index.commands(gpu)["record"].endswith("--refresh --device cuda")
    assert str(Device("cuda", "a GPU")) == "a GPU"


def test_the_page_of_provenance_warns_of_code_changed_since_the_last_replay(tmp_path):
    state = survey(tmp_path, record(COPY))
    for code in ("000000000000", code_fingerprint()):
        state.store.freshness.write_text(json.dumps({"code": code, "stale": [], "probes": []}))
        warned = not run_index.index(state).startswith("```{raw} html")
        assert warned == (code != code_fingerprint())


@pytest.fixture
def page(chromium, tmp_path):
    """The page of provenance as a folder of files, opened at one run."""
    state = survey(tmp_path / "store", *map(record, TABLE_2.grid("reduced", 0)[:10]))
    static = tmp_path / "_static"
    run_index.write(state.store, static)
    for asset in ("runs.js", "runs.css", "tables.js"):
        (static / asset).write_text((BOOK / "assets" / asset).read_text())
    body = run_index.index(state).removeprefix("```{raw} html\n").removesuffix("```\n")
    (tmp_path / "provenance.html").write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><body><main>'
        f'{body}</main><script src="_static/tables.js"></script></body></html>'
    )
    address = (tmp_path / "provenance.html").as_uri() + f"#run-{COPY.key}"
    window = Window(chromium, View("light", 1440))
    window.open(address)
    yield window.page
    seen = window.look()
    assert not (seen.complaints or seen.outside or seen.nameless)
    window.context.close()


@pytest.mark.browser
def test_the_address_of_a_run_opens_it_from_a_folder(page):
    entry = page.locator("#run-entry")
    entry.get_by_role("heading", name="Content (released) on Copy, seed 0, reduced").wait_for()
    words = entry.inner_text()
    assert COPY.key in words and f"relength verify --full {COPY.key}" in words
    assert "a processor (cpu, 1 threads)" in words and "50.00" in words
    tests = entry.locator("table").first.locator("tbody th").all_inner_texts()
    assert tests == list(COPY.task.tests)
    page.locator(f"#run-{REVERSE.key} a").click()
    entry.get_by_role("heading", name="on Reverse Copy").wait_for()
    page.get_by_role("button", name="Close").click()
    assert not entry.is_visible() and "#" not in page.url


@pytest.mark.browser
def test_an_address_of_no_run_says_so(page):
    for key in ("0123456789ab", "nonsense"):
        page.evaluate(f"location.hash = 'run-{key}'")
        page.get_by_role("heading", name=f"No run has the key {key}").wait_for()
        page.get_by_role("button", name="Close").click()
        assert not page.locator("#run-entry").is_visible()


@pytest.mark.browser
def test_a_key_is_found_by_the_filter(page):
    rows = page.locator("table.runs tbody tr:visible")
    assert rows.count() == 10
    page.get_by_label("Filter").fill(REVERSE.key)
    assert rows.count() == 1 and rows.first.get_attribute("id") == f"run-{REVERSE.key}"


@pytest.mark.browser
def test_learning_curves_have_words_for_those_who_do_not_see_them(page):
    page.locator("#run-entry svg").first.wait_for()
    drawings = page.locator("#run-entry svg").all()
    labels = [drawing.get_attribute("aria-label") for drawing in drawings]
    assert labels == ["Accuracy over the epochs, 0 to 100 %", "Training loss over the epochs"]
    captions = page.locator("#run-entry figcaption").all_inner_texts()
    assert "in distribution, 50.0 % at the end" in captions[0] and "at the highest" in captions[1]


# --- pages --------------------------------------------------------------------------------------


def test_evidence_named_on_the_checklist_exists():
    text = (BOOK / "checklist.md").read_text()
    toc = (BOOK / "_toc.yml").read_text()
    for name in re.findall(r"\{doc\}`(?:[^`<]*<)?/?([\w/]+)>?`", text):
        assert (BOOK / f"{name}.md").is_file(), name
    for path in re.findall(r"`((?:lib/|[\w.]*\.(?:lock|yml|toml|yaml|md)|LICENSE)[\w/.]*)`", text):
        assert (ROOT / path).exists(), path
    for name in ("cost", "environment", "provenance", "checklist"):
        assert f"file: {name}\n" in toc
    assert yaml.safe_load(toc)["root"] == "intro"


# --- checks on ourselves ------------------------------------------------------------------------


STATE = {"code": "0" * 12, "probes": []}  # of a replay with other code


def executed(spec, day: int, longest: float, **provenance):
    made = handmade.record(spec, lambda task, length: 1.0 if length == "iid" else longest)
    made["provenance"] |= {"device_name": "a processor", "code": "a" * 12, **provenance}
    made["provenance"]["created"] = f"2026-11-0{day}T12:00:00Z"
    return made


def test_executions_of_a_run_stand_side_by_side(tmp_path):
    assert "Not run" in self_checks.trained_again(survey(tmp_path / "none", record(COPY)))
    elsewhere = {"device_name": "another processor", "code": "b" * 12}
    shown = survey(
        tmp_path / "some",
        *(executed(COPY, day, 0.5) for day in (1, 2)),
        executed(REVERSE, 1, 0.5),
        executed(REVERSE, 2, 0.52, **elsewhere),
        executed(REVERSE, 3, 0.2, **elsewhere),
    )
    text = self_checks.trained_again(shown)
    counts = self_checks.again(shown)
    assert (counts.fair, counts.agree, counts.identical) == (3, 2, 1)
    assert (counts.same, counts.same_agree) == (1, 1)
    assert (counts.elsewhere, counts.elsewhere_agree) == (2, 1)
    assert counts.furthest == pytest.approx(30)
    outcomes = [(row[7].split("]")[0][1:], row[-1]) for row in rows(text, "<a href")]
    assert outcomes == [("identical", "+0.0"), ("agrees", "+2.0"), ("differs", "-30.0")]
    assert "another processor" not in rows(text, "<a href")[0][6]

    stale = [r["run_id"] for r in shown.store.records() if r["key"] == REVERSE.key][:1]
    shown.store.freshness.write_text(json.dumps(STATE | {"stale": stale}))
    text = self_checks.trained_again(shown)
    counts = self_checks.again(shown)
    assert (counts.fair, counts.agree, counts.stale) == (1, 1, 2)
    outcomes = [row[7].split("]")[0][1:] for row in rows(text, "<a href")]
    assert outcomes == ["identical", "first is stale", "first is stale"]


def test_replayed_runs_are_those_that_experiments_use(tmp_path):
    assert "Not run" in self_checks.replayed(survey(tmp_path / "none"))
    now = {"code": code_fingerprint()}
    other = make_spec(
        **COPY.model_dump() | {"training": {"name": "epochs", "epochs": 1, "tie": 0.5}}
    )
    shown = survey(
        tmp_path / "some",
        executed(COPY, 1, 0.5, **now),
        executed(REVERSE, 1, 0.5),
        executed(other, 1, 0.5, **now),
    )
    assert self_checks.seen_again(shown) == ((2, 1, 0), 0)
    (stale,) = (r["run_id"] for r in shown.store.records() if r["key"] == REVERSE.key)
    shown.store.freshness.write_text(json.dumps(STATE | {"stale": [stale, "f" * 16]}))
    assert self_checks.seen_again(shown) == ((1, 1, 0), 1)
    assert re.findall(r"\d+", self_checks.replayed(shown)) == ["1", "1", "0", "0", "1"]


def test_both_scales_of_a_run_stand_side_by_side(tmp_path):
    assert "Not run" in self_checks.scales(survey(tmp_path / "none", record(COPY)))
    pairs = [
        [TABLE_2.grid(scale, 0)[number] for scale in ("reduced", "paper")] for number in (0, 1, 2)
    ]
    made = [
        executed(spec, 1, value)
        for both, values in zip(pairs, ((0.5, 0.5504), (1.0, 0.98), (0.0, 0.1)), strict=True)
        for spec, value in zip(both, values, strict=True)
    ]
    del made[0]["spec"]["task"]["far_size"]  # as records were before the field was added
    second, *_ = list(made[3]["checkpoints"]["selected"]["tests"].values())[1:]
    second["exact_match"] = 0.9  # two points apart at the longest test, ten at another
    shown = survey(tmp_path / "some", *made, executed(REVERSE, 1, 1.0))
    counts = self_checks.both_scales(self_checks.pairs_of_scales(own_runs(shown.store)))
    assert (counts.pairs, counts.fail, counts.ahead, counts.behind, counts.moved) == (3, 1, 1, 0, 3)
    assert counts.widest[1] == pytest.approx(5.04)
    text = self_checks.scales(shown)
    assert [
        row[-5:-2] for task in ("Copy", "Reverse Copy", "Lookup") for row in rows(text, task)
    ] == [
        ["50.0", "55.0", "+5.0"],
        ["100.0", "98.0", "-2.0"],
        ["0.0", "10.0", "+10.0"],
    ]


def test_a_batch_that_differs_between_the_scales_is_shown(tmp_path):
    panm = experiments()["panm_algorithmic"]
    both = [next(s for s in panm.grid(scale, 0) if s.model.name == "PANM") for scale in
            ("reduced", "paper")]  # fmt: skip
    store = Store(tmp_path)
    for number, spec in enumerate(both):
        made = executed(spec, 1, 0.9) | {"experiment": panm.name, "run_id": f"{number:016x}"}
        store.append("panm", made)
    nothing = pd.DataFrame()
    text = self_checks.scales(Survey(nothing, nothing, nothing, nothing, store))
    assert len(self_checks.pairs_of_scales(own_runs(store))) == 1 and "32 → 128" in text
