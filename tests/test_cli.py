"""A mistake of the user is one sentence and exit code 2; a command that is killed has lost
nothing.
"""

import errno
import gc
import io
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import typer
from handmade import record

from relength.book import build as bookbuild
from relength.cli import main as cli
from relength.cli import output
from relength.cli.app import console
from relength.paths import RESULTS, ROOT
from relength.report.scoreboard import ledger
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.specs.spec import make_spec
from relength.verdicts import claims

ONE_CELL = [
    "run",
    "mla_table2",
    "--scale",
    "smoke",
    "--seeds",
    "1",
    "--task",
    "copy",
    "--model",
    "Content",
]


@pytest.fixture
def relength(monkeypatch, capsys):
    """Runs the command in this process; returns exit code, output and errors."""
    handler, formatting = signal.getsignal(signal.SIGTERM), warnings.formatwarning

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["relength", *map(str, arguments)])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        out, problems = capsys.readouterr()
        return ending.value.code or 0, out, problems

    yield command
    signal.signal(signal.SIGTERM, handler)
    warnings.formatwarning = formatting
    gc.enable()


@pytest.mark.smoke
def test_garbage_is_collected_where_something_is_trained_and_nowhere_else(relength, tmp_path):
    try:
        relength("list")
        assert not gc.isenabled()
        relength(*ONE_CELL, "--results", tmp_path)
        assert gc.isenabled()
    finally:
        gc.enable()


def test_what_trains_nothing_waits_for_no_compiler(python):
    script = """import sys, relength.runs.campaign, relength.book.notebook
import relength.report.scoreboard
print({"numba", "torch._dynamo"} & set(sys.modules))
from relength.kernels import late
late.compiled.softmax, print("numba" in sys.modules)"""
    done = python("-c", script)
    assert done.communicate() == ("set()\nTrue\n", "")


@pytest.mark.parametrize(
    ("arguments", "cause", "way_out"),
    [
        (["run", "mla_table9"], "no experiment 'mla_table9'", "mla_table2"),
        (["run", "mla_table2", "--scale", "large"], "no scale 'large'", "reduced"),
        (["run", "mla_table2", "--task", "cpoy"], "no task 'cpoy'", "reverse_copy"),
        (["run", "mla_table2", "--model", "OneStep"], "no model 'OneStep'", "OneStepAttn"),
        (["run", "mla_table2", "--arm", "papers"], "no arm 'papers'", "released"),
        ([*ONE_CELL, "--device", "gpu"], "Unknown device 'gpu'", "cuda"),
        (["plan", "--device", "tpu"], "Unknown device 'tpu'", "cuda"),
        (["run", "--plan", "--device", "tpu"], "Unknown device 'tpu'", "cuda"),
        (["run", "[/red]"], "no experiment '[/red]'", "mla_table2"),
        ([*ONE_CELL, "--executor", "ray"], "no executor 'ray'", "local or dask"),
        ([*ONE_CELL, "--scheduler", "tcp://host:8786"], "executor is local", "--executor dask"),
        (
            [*ONE_CELL, "--executor", "dask", "--scheduler", "tcp://host:8786", "--workers", "2"],
            "those of a scheduler are its own",
            "leave out --workers",
        ),
        (["bench", "--task", "copy", "--task", "cpoy"], "no task 'cpoy'", "reverse_copy"),
        (["bench", "--device", "tpu"], "Unknown device 'tpu'", "cuda"),
        (["merge", "nowhere"], "nowhere is not a folder", "--results"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_does_not_exist_is_one_sentence_and_exit_code_2(
    relength, tmp_path, arguments, cause, way_out
):
    code, _, problems = relength(*arguments, "--results", tmp_path / "results")
    assert code == 2
    assert problems.startswith("Error: ") and problems.count("\n") == 1
    assert cause in problems and way_out in problems
    assert not (tmp_path / "results").exists()


def test_a_gpu_where_there_is_none_is_one_sentence_and_exit_code_2(relength, tmp_path, no_gpu):
    code, _, problems = relength(*ONE_CELL, "--device", "cuda", "--results", tmp_path)
    assert code == 2 and problems.count("\n") == 1
    assert "no GPU here" in problems and "--device cpu" in problems


@pytest.mark.usefixtures("claimed")
def test_a_plan_for_a_gpu_elsewhere_has_the_prices_of_one_that_is_recorded_or_none(
    relength, tmp_path, no_gpu, make_record
):
    command = ["plan", "--device", "cuda", "--scale", "paper", "--most", "1"]
    code, out, problems = relength(*command, "--results", tmp_path)
    assert code == 0, problems
    assert "Hours are unknown" in out
    record = make_record(1)
    record["provenance"] |= {"device": "cuda", "device_name": "a GPU"}
    Store(tmp_path).append("mla", record)
    code, out, problems = relength(*command, "--results", tmp_path)
    assert code == 0, problems
    assert "Hours are unknown" not in out


@pytest.mark.parametrize(
    "arguments", [["--seeds", "0"], ["--workers", "0"], ["--sedes", "1"]], ids=str
)
def test_an_impossible_option_is_exit_code_2(relength, tmp_path, arguments):
    code, _, problems = relength(*ONE_CELL, "--results", tmp_path, *arguments)
    assert code == 2 and arguments[0] in problems


def test_a_damaged_store_is_named_with_file_and_line(relength, tmp_path, make_record):
    store = Store(tmp_path)
    store.append("mla", make_record(1))
    [file] = store.files()
    file.write_bytes(file.read_bytes() + b"{}\n")
    code, _, problems = relength(*ONE_CELL, "--results", tmp_path)
    assert code == 2 and f"{file}, line 2," in problems and "Traceback" not in problems


@pytest.mark.parametrize("place", ["/proc/nowhere", "a file"])
def test_a_place_that_cannot_be_written_is_found_before_anything_is_trained(
    relength, tmp_path, monkeypatch, place
):
    monkeypatch.setattr(
        "relength.runs.execute.train", lambda *_: pytest.fail("something was trained")
    )
    (tmp_path / "a file").touch()
    command = [*ONE_CELL, "--workers", "1", "--results", tmp_path / place]
    code, _, problems = relength(*command)
    assert code == 2 and problems.startswith("Error: Cannot write to ")
    assert "name another folder with --results" in problems and problems.count("\n") == 1


@pytest.mark.usefixtures("claimed")
@pytest.mark.parametrize("command", [["status", "--json"], ["claims"], ["plan"]], ids=str)
def test_a_folder_that_is_not_there_is_empty_and_said_once(relength, tmp_path, command):
    code, out, problems = relength(*command, "--results", tmp_path / "reslts")
    assert code == 0 and out
    assert problems == (
        f"Note: There is no folder {tmp_path / 'reslts'}, so nothing counts as recorded: look at "
        "the name given to --results.\n"
    )
    (tmp_path / "reslts").mkdir()
    assert relength(*command, "--results", tmp_path / "reslts") == (0, out, "")


def test_a_book_of_a_folder_that_is_not_there_is_built_and_that_is_said(
    relength, tmp_path, monkeypatch
):
    built = []
    monkeypatch.setattr(
        "relength.book.build.render",
        lambda *places: built.append(places) or tmp_path / "index.html",
    )
    code, _, problems = relength("render", "--results", tmp_path / "reslts")
    assert code == 0 and built[0][0] == tmp_path / "reslts"
    assert "There is no folder" in problems and problems.count("\n") == 1


def test_a_smoke_run_is_recorded_where_it_says_and_not_in_the_results(
    relength, tmp_path, monkeypatch
):
    before = [file.read_bytes() for file in Store(RESULTS).files()]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code, out, _ = relength(*ONE_CELL, "--workers", "1")
    assert code == 0 and "1 of 1 runs to train" in out
    folder = Path(re.search(r"recorded in (\S+)", out)[1])
    assert folder.is_relative_to(tmp_path)
    [record] = Store(folder).records()
    assert record["spec"]["scale"] == "smoke" and record["key"] in out
    assert [file.read_bytes() for file in Store(RESULTS).files()] == before

    code, out, _ = relength(*ONE_CELL, "--results", folder)
    assert code == 0 and "0 of 1 runs to train" in out
    assert Store(folder).records() == [record]


def test_runs_that_fail_are_counted_and_the_command_says_so(relength, tmp_path, monkeypatch):
    def broken(*_):
        raise ValueError("the message [/bold] of the failure")

    monkeypatch.setattr("relength.runs.execute.train", broken)
    code, out, problems = relength(*ONE_CELL, "--workers", "1", "--results", tmp_path)
    assert code == 2 and "1 of 1 runs failed" in problems
    assert "failed, ValueError: the message [/bold] of the failure" in out
    assert Store(tmp_path).records()[0]["status"] == "failed"


def test_a_part_is_recorded_beside_what_is_known_and_merged_later(relength, tmp_path):
    mine, part = tmp_path / "mine", tmp_path / "results.part"
    code, out, _ = relength(*ONE_CELL, "--workers", "1", "--results", mine)
    assert code == 0 and "1 of 1 runs to train" in out
    command = [*ONE_CELL, "--seeds", "2", "--workers", "1", "--results", mine, "--out", part]
    for missing in (1, 0):
        code, out, _ = relength(*command)
        assert code == 0 and f"{missing} of 2 runs to train" in out
    assert [len(Store(folder).records()) for folder in (mine, part)] == [1, 1]
    code, out, _ = relength("merge", part, "--results", mine)
    assert code == 0 and out.startswith("1 new record ")


def test_one_run_is_trained_again_by_its_key(relength, tmp_path):
    command = [*ONE_CELL, "--workers", "1", "--results", tmp_path]
    relength(*command)
    [first] = Store(tmp_path).records()
    code, out, _ = relength(
        "run", "--scale", "smoke", "--key", first["key"], "--refresh", "--workers", "1",
        "--results", tmp_path,
    )  # fmt: skip
    assert code == 0 and "1 of 1 runs to train" in out
    once, again = Store(tmp_path).records()
    assert once == first and again["key"] == first["key"] and again["run_id"] != first["run_id"]

    code, out, _ = relength("verify", "--full", first["key"], "--results", tmp_path)
    assert code == 0 and out.count("agrees with its record") == 2


def test_a_run_that_differs_from_its_record_is_an_error(relength, tmp_path, make_record):
    relength(*ONE_CELL, "--workers", "1", "--results", tmp_path)
    [file] = Store(tmp_path).files()
    record = json.loads(file.read_text())
    solved = {"exact_match": 1.0, "first_errors": [0] * 10}
    record["checkpoints"]["selected"]["tests"]["iid"].update(solved)
    file.write_text(json.dumps(record) + "\n")
    code, out, problems = relength("verify", "--full", record["key"], "--results", tmp_path)
    assert code == 2 and "differs from its record" in out and "1 of 1 comparisons" in problems


@pytest.mark.parametrize("other", [("--task", "copy"), ("--seconds", "2")])
def test_a_measurement_with_a_task_of_its_own_takes_no_other(relength, other):
    code, _, problems = relength("bench", "--paper", "panm", *other)
    assert code == 2 and "--paper" in problems and problems.count("\n") == 1


@pytest.mark.parametrize("full", ["0" * 12, "many", "0a1b"])
def test_a_key_that_nothing_has_and_what_is_no_key_are_refused(relength, tmp_path, full):
    code, _, problems = relength("verify", "--full", full, "--results", tmp_path)
    assert code == 2 and full in problems and problems.count("\n") == 1


@pytest.mark.usefixtures("claimed")
def test_status_shows_what_is_begun_and_counts_the_rest(relength, tmp_path):
    code, out, _ = relength("status", "--results", tmp_path)
    assert code == 0 and "mla-table-2" in out and "0/320" in out and "unknown" in out
    assert "panm-table-10 " not in out and "of their own: panm" in out
    code, out, _ = relength("status", "--results", tmp_path, "--all")
    assert code == 0 and "panm-table-10" in out and "of their own" not in out
    code, out, _ = relength("status", "--results", tmp_path, "--json")
    row = json.loads(out)["artifacts"]["mla-table-2"]
    assert row["rest"]["paper"] == {"runs": 320, "hours": 0.0, "unpriced": 320}
    assert row["cells"] == 48 and row["min_seeds"] == {"reduced": 0, "paper": 0}


EXPERIMENTS = {experiment.name: experiment for experiment in experiments().values()}


@pytest.fixture(params=["a pipe", 140, 80, 20], ids=str)
def place(request, monkeypatch):
    """A pipe, or a terminal of some width."""
    monkeypatch.setenv("COLUMNS", "80" if request.param == "a pipe" else str(request.param))
    monkeypatch.setattr(console, "_force_terminal", request.param != "a pipe")
    return request.param


def test_list_cuts_no_name_of_an_experiment_or_artifact(relength, place):
    code, out, _ = relength("list")
    words = set(re.findall(r"[^\s│,]+", out))
    assert code == 0
    for experiment in EXPERIMENTS.values():
        assert {experiment.name, *experiment.artifacts} <= words
    if place in (140, 80):
        assert max(map(len, out.splitlines())) <= place
    if place == "a pipe":
        (line,) = [line for line in out.splitlines() if "panm_algorithmic" in line]
        assert all(name in line for name in EXPERIMENTS["panm_algorithmic"].artifacts)


def test_claims_cut_no_name_of_a_claim(relength, place, tmp_path, monkeypatch):
    names = ["mla-001", "mla-table-3-a-name-as-long-as-the-longest-of-all-names"]
    seen = "5 of 5 agree in each of 8 parts; on the lengths trained on, the lowest median is 98.8 %"
    rows = pd.DataFrame(
        [
            {"claim": name, "paper": "mla", "label": "reproduced (reduced)", "seen": seen}
            | {"scale": "reduced", "seeds": 5, "statement": "It is so.", "verdict": "reproduced"}
            for name in names
        ]
    )
    monkeypatch.setattr("relength.report.scoreboard.ledger", lambda *_: rows)
    code, out, _ = relength("claims", "--results", tmp_path)
    words = set(re.findall(r"[^\s│:;,]+", out))
    assert code == 0 and {*names, "98.8", "reproduced"} <= words
    if place in (140, 80):
        assert max(map(len, out.splitlines())) <= place
    if place == "a pipe":
        assert all(
            any(name in line and seen in line for line in out.splitlines()) for name in names
        )


def test_plan_cuts_no_cell_and_no_claim(relength, place, tmp_path, monkeypatch):
    cells = ["mla_table2: a-model-of-a-long-name (released) on copy, reduced", "short"]
    claims = ("mla-001", "mla-table-2/a/copy/30")
    steps = [
        SimpleNamespace(
            label=cell,
            seeds="0–4, 7",
            hours=1.234,
            claims=claims,
            waited=True,
            why="stage two",
            lacks="",
        )
        for cell in cells
    ]
    monkeypatch.setattr("relength.report.agenda.agenda", lambda *given: steps)
    code, out, _ = relength("plan", "--results", tmp_path)
    words = set(re.findall(r"[^\s│:;,]+", out))
    assert code == 0
    assert {"mla_table2", "a-model-of-a-long-name", "1.23", "0–4", "mla-001", "number"} <= words
    if place in (140, 80):
        table = [line for line in out.splitlines() if line[:1] in "┏┃┡│└"]
        assert max(map(len, table)) <= place
    if place == "a pipe":
        (line,) = [line for line in out.splitlines() if cells[0] in line]
        assert "1.23" in line and "mla-001, 1 number" in line


def test_refresh_executes_nothing_where_one_notebook_is_read_only(relength, tmp_path, monkeypatch):
    paths = [tmp_path / "a.ipynb", tmp_path / "b.ipynb"]
    for path in paths:
        path.touch()
    # Root may write anything.
    monkeypatch.setattr(os, "access", lambda *asked: asked != (paths[1], os.W_OK))
    code, _, problems = relength("refresh", *paths)
    assert code == 2 and f"{paths[1]} is read-only" in problems.replace("\n", "")
    assert all(path.read_bytes() == b"" for path in paths)


def test_list_and_claims_are_machine_readable(relength, tmp_path, monkeypatch):
    code, out, _ = relength("list", "--json")
    listed = {row["experiment"]: row for row in json.loads(out)}
    assert code == 0 and listed.keys() == EXPERIMENTS.keys()
    table_2 = listed["mla_table2"]
    assert (table_2["paper"], table_2["artifacts"]) == ("mla", ["mla-table-2"])
    assert table_2["runs_a_seed"] == {"smoke": 64, "reduced": 64, "paper": 64}

    found = EXPERIMENTS["panm_algorithmic"]
    spec = next(s for s in found.specs("reduced", [0]) if s.model.name == "PANM")
    Store(tmp_path).append("panm", record(spec, lambda *_: 0.5, experiment=found.name))
    code, out, _ = relength("claims", "panm", "--json", "--results", tmp_path)
    rows = json.loads(out)
    assert code == 0 and {row["paper"] for row in rows} == {"panm"}
    names = [row["claim"] for row in rows]
    assert len(set(names)) == len(names) and {c.id for c in claims.load("panm")} <= set(names)
    assert all(type(row["seeds"]) is int and row["verdict"] for row in rows)
    parts = {row["claim"]: row["parts"] for row in rows}
    [part] = parts[f"panm-table-13/PANM/{spec.task.name}/20"]
    assert (part["seeds"], part["verdict"]) == (1, "inconclusive") and "50" in part["seen"]
    assert spec.task.name in part["expected"]
    [waits] = parts["panm-004"]  # for the other tasks
    assert list(waits) == ["expected"] and "PANM" in waits["expected"]


@pytest.mark.parametrize(
    "encoding",
    ["ascii", *(pytest.param(name, marks=pytest.mark.weekly) for name in ("latin-1", "utf-8"))],
)
def test_tables_can_be_read_in_any_encoding(python, encoding):
    """Claims have dashes and signs that only some encodings have."""
    done = python("-m", "relength", "claims", "mla", PYTHONIOENCODING=encoding)
    out, problems = done.communicate()
    assert done.returncode == 0, problems
    assert ("┃" in out) == ("–" in out) == (encoding == "utf-8")
    assert re.search(r"^[│|] mla-001 ", out, re.M)


def test_signs_that_an_encoding_lacks_become_the_nearest(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    output.accept_any_encoding()
    stream.write("3–5 × ≥ 2 … é ﬁ 中 \udcff")
    stream.flush()
    assert stream.buffer.getvalue().decode("latin-1") == "3-5 × >= 2 ... é fi ? ?"


@pytest.mark.parametrize(
    "command", ["relength", pytest.param("relength.cli.main", marks=pytest.mark.weekly)]
)
def test_the_command_line_is_a_module_too(python, command):
    done = python("-m", command, "list", "--json")
    out, problems = done.communicate()
    assert done.returncode == 0, problems
    assert len(json.loads(out)) == len(EXPERIMENTS)


def test_without_the_repository_around_it_one_sentence_says_how_to_install_it(python, tmp_path):
    shutil.copytree(ROOT / "lib" / "relength", tmp_path / "relength")
    done = python("-m", "relength", "list", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    out, problems = done.communicate()
    assert (done.returncode, out, problems.count("\n")) == (2, "", 1)
    assert str(tmp_path) in problems and "--editable" in problems


def test_without_the_repository_around_it_every_command_says_so(relength, tmp_path, monkeypatch):
    monkeypatch.setattr("relength.paths.NOTEBOOKS", tmp_path / "notebooks")
    for command in COMMANDS:
        code, out, problems = relength(command)
        assert (code, out, problems.count("\n")) == (2, "", 1) and "--editable" in problems


def test_merge_refuses_records_of_a_commit_that_is_not_here(relength, tmp_path, make_record):
    record = make_record(1)
    record["provenance"]["commit"] = "0" * 40
    Store(tmp_path / "other").append("mla", record)
    code, _, problems = relength("merge", tmp_path / "other", "--results", tmp_path / "mine")
    assert code == 2 and "no branch here has" in problems and problems.count("\n") == 1
    assert Store(tmp_path / "mine").records() == []


def test_merge_counts_what_is_new(relength, tmp_path, make_record):
    Store(tmp_path / "other").append("mla", make_record(1))
    for new in (1, 0):
        code, out, _ = relength("merge", tmp_path / "other", "--results", tmp_path / "mine")
        assert code == 0 and out.startswith(f"{new} new record")
    code, out, _ = relength("merge", tmp_path / "other" / "mla", "--results", tmp_path / "mine")
    assert code == 0 and out.startswith(f"{tmp_path / 'other' / 'mla'} has no records")


COMMANDS = typer.main.get_command(cli.app).commands


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_on_itself_and_each_of_its_options(relength, monkeypatch, command):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 200)
    code, out, _ = relength(command, "--help")
    assert code == 0 and f"relength {command}" in out
    assert COMMANDS[command].help.splitlines()[0] in out
    for parameter in COMMANDS[command].params:
        assert parameter.help and max(parameter.opts, key=len).lower() in out.lower()


def test_the_help_lists_every_command(relength):
    code, out, _ = relength("--help")
    assert code == 0 and all(re.search(rf"│ {name} ", out) for name in COMMANDS)
    assert {"plan", "claims", "verify", "bench", "refresh"} < COMMANDS.keys()


# --- killed -------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_campaign_killed_at_a_random_moment_and_run_again_has_every_run_once(tmp_path, python):
    command = ["-m", "relength.cli.main", "run", "mla_table2", "--scale", "smoke", "--seeds", "1"]
    command += [
        "--task",
        "copy",
        "--task",
        "inv_recopy",
        "--model",
        "Content",
        "--model",
        "LocAttn",
    ]
    command += ["--results", str(tmp_path), "--workers", "1"]
    file = tmp_path / "mla" / "mla_table2.runs.jsonl"

    killed = python(*command)
    deadline = time.monotonic() + 60
    while not (file.exists() and file.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(random.SystemRandom().uniform(0, 1))  # anywhere within the following runs
    killed.kill()
    killed.communicate()
    survived = file.read_bytes()
    assert survived, "nothing was recorded within a minute"

    again = python("-W", "error::RuntimeWarning", *command)
    out, problems = again.communicate(timeout=120)
    assert again.returncode == 0, problems
    whole = survived[: survived.rfind(b"\n") + 1]
    assert file.read_bytes().startswith(whole), "what was recorded before has changed"
    records = Store(tmp_path).records()
    keys = [make_spec(**record["spec"]).key for record in records]
    assert len(keys) == len(set(keys)) == 4 and keys == [r["key"] for r in records]
    assert all(record["status"] == "ok" for record in records)
    missing = 4 - len(whole.splitlines())
    assert f"{missing} of 4 runs to train" in out
    assert json.loads(file.read_bytes().splitlines()[-1]) == records[-1]


@pytest.mark.smoke
@pytest.mark.parametrize(
    "all_of_them",
    [
        pytest.param(False, id="command", marks=pytest.mark.weekly),
        pytest.param(True, id="whole job"),
    ],
)
def test_terminating_a_campaign_ends_its_workers_too(tmp_path, python, all_of_them):
    """A shell ends the command; Slurm and systemd send the signal to every process of the job."""
    command = [*ONE_CELL, "--task", "recopy", "--results", str(tmp_path), "--workers", "2"]
    process = python("-m", "relength.cli.main", *command)
    if not Path(f"/proc/{process.pid}/task/{process.pid}/children").exists():
        process.kill()
        process.communicate()
        pytest.skip("this system does not list the children of a process")
    deadline, helpers, workers = time.monotonic() + 30, [], []
    while len(workers) < 2 and process.poll() is None and time.monotonic() < deadline:
        helpers = children(process.pid)
        workers = [pid for helper in helpers for pid in children(helper)]
        time.sleep(0.05)
    assert len(workers) == 2
    for pid in [process.pid, *(helpers + workers if all_of_them else [])]:
        os.kill(pid, signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 143
    deadline = time.monotonic() + 10  # the last of them ends when it sees that the others have
    while any(map(is_running, helpers + workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in helpers + workers if is_running(pid)] == []


def children(pid: int) -> list[int]:
    """The processes that a process has started, or forked, and that have not ended."""
    try:
        return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_running(pid: int) -> bool:
    """Tell whether a process exists and is more than an entry that waits to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_shards_are_disjoint_and_together_everything(relength, tmp_path):
    for number in (1, 2):
        code, out, _ = relength(
            *ONE_CELL, "--seeds", 3, "--shard", f"{number}/2", "--workers", "1", "--results",
            tmp_path / str(number),
        )  # fmt: skip
        assert code == 0, out
    keys = [{r["key"] for r in Store(tmp_path / str(number)).records()} for number in (1, 2)]
    assert len(keys[0]) == 2 and len(keys[1]) == 1 and not keys[0] & keys[1]


@pytest.mark.parametrize("option", [("--shard", "3/2"), ("--shard", "half"), ("--budget", "soon")])
def test_a_shard_or_a_budget_that_makes_no_sense_is_refused(relength, tmp_path, option):
    code, _, problems = relength(*ONE_CELL, *option, "--results", tmp_path)
    assert code == 2 and repr(option[1]) in problems and "as in" in problems


def test_a_budget_too_short_for_anything_says_so_and_is_no_failure(relength, tmp_path):
    code, out, _ = relength(*ONE_CELL, "--budget", "0s", "--workers", "1", "--results", tmp_path)
    assert code == 0 and "The budget of 0 s is too short for anything" in out
    assert "Nothing was trained." in out and Store(tmp_path).records() == []


def test_missing_data_are_found_before_anything_is_trained(relength, tmp_path, monkeypatch):
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path / "nowhere"))
    for option in (("--task", "lookup"), ("--task", "copy", "--task", "lookup")):
        code, _, problems = relength(
            "run", "mla_table2", "--scale", "smoke", *option, "--results", tmp_path / "results"
        )
        assert code == 2 and "RELENGTH_DATA names" in problems and "unset it" in problems
    assert Store(tmp_path / "results").records() == []
    code, _, problems = relength("bench", "--task", "lookup", "--results", tmp_path / "results")
    assert code == 2 and "RELENGTH_DATA names" in problems and "unset it" in problems


@pytest.mark.parametrize("paper", [(), pytest.param(("mla",), marks=pytest.mark.weekly)], ids=str)
def test_every_claim_is_shown_with_its_verdict_from_the_recorded_runs(relength, monkeypatch, paper):
    monkeypatch.setattr(console, "width", 400)
    code, out, problems = relength("claims", *paper)
    assert code == 0, problems
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    shown = {row[0]: row[1:] for row in rows if len(row) == 5 and row[0]}
    judged = ledger(Store(RESULTS))
    judged = judged[judged["paper"].isin(paper)] if paper else judged
    assert shown.keys() == set(judged["claim"])
    assert {scale for _, scale, _, _ in shown.values()} <= {"–", "reduced", "paper"}
    assert all(shown[claim][1] == "–" for claim in judged[judged["seeds"] == 0]["claim"])


@pytest.mark.usefixtures("claimed")
def test_a_paper_without_claims_and_a_damaged_freshness_file_are_named(relength, tmp_path):
    code, _, problems = relength("claims", "pnam", "--results", tmp_path)
    assert code == 2 and "'pnam'" in problems and "mla" in problems
    code, _, problems = relength("claims", "mla-001", "--results", tmp_path)
    assert code == 2 and "mla-001 names a claim" in problems
    (tmp_path / "freshness.json").write_text("{")
    code, _, problems = relength("claims", "--results", tmp_path)
    assert code == 2 and "freshness.json is damaged: remove it" in problems


def test_what_is_not_permitted_is_one_sentence_with_its_name(relength, tmp_path, monkeypatch):
    def forbidden(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "book/executed")

    monkeypatch.setattr(bookbuild, "render", forbidden)
    code, _, problems = relength("render", "--out", tmp_path)
    assert code == 2 and "book/executed" in problems and "Traceback" not in problems
    file = tmp_path / "a file"
    file.touch()
    code, _, problems = relength("render", "--out", file)
    assert code == 2 and f"{file} is a file" in problems.replace("\n", "")
    code, _, problems = relength("refresh", file)
    assert code == 2 and f"{file} is no notebook" in problems.replace("\n", "")
    (tmp_path / "mla" / "mla_table2.runs.jsonl").mkdir(parents=True)
    code, _, problems = relength("status", "--results", tmp_path)
    assert code == 2 and "mla_table2.runs.jsonl is in the way" in problems.replace("\n", "")

    def none(**_):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "mkdtemp", none)
    code, _, problems = relength(*ONE_CELL, "--scale", "smoke")
    assert code == 2 and "TMPDIR" in problems and "--results" in problems
