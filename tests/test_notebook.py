"""Notebooks: what they can be told, what they refuse, and the form that all of them share."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest
from nbclient import NotebookClient
from notebook_form import SECTIONS, problems

from relength.book import notebook
from relength.book.notebook import Parameters, TrainingLine, normalise, parameters
from relength.errors import RelengthError
from relength.paths import NOTEBOOKS, RESULTS, ROOT
from relength.report import runs as runs_of_pages
from relength.report.runs import wanted_specs
from relength.runs import execute, run
from relength.runs.campaign import Campaign
from relength.specs.experiments import borrowed, shown_by
from relength.specs.spec import RunSpec

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
DECLARED = "scale: str = 'reduced'\nseeds: int = 5"


def told(**given) -> Parameters:
    """Parameters of a notebook in which papermill has set these values."""
    cell = "\n".join(["# Parameters", *(f"{name} = {value!r}" for name, value in given.items())])
    return parameters({"In": ["", DECLARED, cell, "parameters(globals())"], **given})


# Parameters


def test_without_parameters_the_defaults_hold_and_nothing_is_trained():
    chosen = parameters({})
    assert chosen == Parameters()
    assert (chosen.scale, chosen.seeds, chosen.trains) == ("reduced", 5, False)
    assert chosen.store().path == RESULTS


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"train": "true"}, {"train": True}),
        ({"train": "True"}, {"train": True}),
        ({"refresh": "false"}, {"refresh": False}),
        ({"seeds": "3", "workers": 2.0}, {"seeds": 3, "workers": 2}),
        ({"results": "2026"}, {"results": "2026"}),
        ({"scale": "paper", "device": "cpu"}, {"scale": "paper", "device": "cpu"}),
    ],
)
def test_text_that_papermill_hands_over_is_converted(given, expected):
    assert told(**given).model_dump() | expected == told(**given).model_dump()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scale": "tiny"}, "scale.*smoke.*reduced.*paper.*tiny"),
        ({"seeds": "five"}, "seeds.*integer.*five"),
        ({"seeds": 2.5}, "seeds.*integer"),
        ({"seeds": 0}, "seeds.*greater than or equal to 1"),
        ({"seeds": True}, "seeds.*whole number"),
        ({"train": "perhaps"}, "train.*boolean.*perhaps"),
        ({"workers": -1}, "workers.*greater than or equal to 0"),
        ({"results": ["a"]}, "results.*string"),
        ({"results": 5}, "results.*string.*5"),
        ({"device": 0}, "device.*string.*0"),
        ({"device": "tpu"}, "device 'tpu'.*cpu, cuda"),
        ({"sclae": "smoke"}, "no parameter 'sclae': did you mean 'scale'"),
        ({"Seeds": 1}, "no parameter 'Seeds': did you mean 'seeds'"),
        ({"xyzzy": 1, "seeds": 1}, "no parameter 'xyzzy'.*scale, seeds, train"),
    ],
)
def test_a_wrong_parameter_is_an_error_that_names_it_and_what_is_allowed(given, message):
    with pytest.raises(RelengthError, match=message):
        told(**given)


def test_a_gpu_where_there_is_none_is_an_error(no_gpu):
    with pytest.raises(RelengthError, match=r"no GPU here.*-p device cpu"):
        told(device="cuda")


def test_a_name_misspelt_in_the_notebooks_own_cell_is_found():
    cells = ["", "scale: str = 'smoke'\nsede: int = 1", "parameters(globals())"]
    with pytest.raises(RelengthError, match="'sede': did you mean 'seeds'"):
        parameters({"In": cells, "scale": "smoke", "sede": 1})


def test_variables_of_other_cells_are_no_parameters_when_a_cell_is_run_again():
    later = ["runs = notebook.runs('mla_table2', parameters)", "%time 1", "n = len(runs.records)"]
    chosen = parameters({"In": ["", DECLARED, *later], "scale": "reduced", "seeds": 5, "n": 3})
    assert chosen.seeds == 5


def test_smoke_trains_into_a_temporary_folder_unless_one_is_named(tmp_path):
    smoke = told(scale="smoke")
    assert smoke.trains
    assert not smoke.store().path.is_relative_to(ROOT)
    assert told(scale="smoke", results=str(tmp_path)).store().path == tmp_path


def test_reading_an_empty_store_trains_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Campaign, "records", lambda *_: pytest.fail("it trained"))
    shown = notebook.runs("mla_table2", told(results=str(tmp_path)))
    assert shown.records == ()
    assert "0 of 320 runs at scale reduced" in capsys.readouterr().out


@pytest.fixture
def two_runs(monkeypatch, tiny) -> list[RunSpec]:
    """Two tiny runs in place of the experiment's, of which the second fails."""
    specs = [tiny(epochs=1, seed=seed) for seed in range(2)]
    train = execute.train

    def fragile(spec, *others):
        if spec.seed == 1:
            raise ZeroDivisionError("the second run breaks")
        return train(spec, *others)

    monkeypatch.setattr(execute, "train", fragile)
    monkeypatch.setattr(notebook, "wanted_specs", lambda *_: specs)
    return specs


@pytest.mark.parametrize("asked", [{"scale": "smoke"}, {"train": True}, {"refresh": True}])
def test_a_notebook_whose_runs_failed_stops_with_their_count(two_runs, tmp_path, asked):
    chosen = told(results=str(tmp_path), workers=1, **asked)
    with pytest.raises(RelengthError, match="1 of 2 runs failed"):
        notebook.runs("mla_table2", chosen)
    assert [record["status"] for record in chosen.store().records()] == ["ok", "failed"]
    again = "1 of 2" if chosen.refresh else "1 of 1"  # the failed one is still missing
    with pytest.raises(RelengthError, match=f"{again} runs failed"):
        notebook.runs("mla_table2", chosen)


def test_plan_and_missing_runs_are_computed_once(two_runs, tmp_path, monkeypatch):
    asked = []

    def counted(module, name):
        function = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *these, **those: asked.append(name) or function(*these, **those)
        )

    counted(notebook, "wanted_specs")
    counted(run, "wanted")
    counted(run, "missing")
    monkeypatch.setattr(runs_of_pages, "wanted_specs", lambda *_: pytest.fail("planned again"))
    with pytest.raises(RelengthError):
        notebook.runs("mla_table2", told(scale="smoke", results=str(tmp_path), workers=1))
    assert sorted(asked) == ["missing", "wanted", "wanted_specs"]


def test_the_training_line_counts_runs_and_says_how_long_the_rest_takes():
    with TrainingLine(3) as line:
        line.advance({"status": "ok"})
        line.advance({"status": "failed"})
        line.start_t -= 100  # seconds
        assert re.findall(r"[\d:]+", str(line)) == ["2", "3", "01:40", "00:50", "1"]
        line.advance({"status": "ok"})
    assert line.failed == 1


def test_the_training_line_leaves_one_output_and_none_where_nothing_is_trained():
    code = (
        "from relength.book.notebook import TrainingLine\n"
        "for total in (0, 3):\n"
        "    with TrainingLine(total) as line:\n"
        "        for _ in range(total):\n"
        "            line.advance({'status': 'failed'})"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(book, kernel_name="python3").execute()
    (shown,) = book.cells[0].outputs
    assert shown["data"]["text/plain"].startswith("3 of 3 runs trained")
    assert shown["data"]["text/plain"].endswith("3 failed")


# Files


def a_notebook(**changes) -> nbformat.NotebookNode:
    """A small notebook of the right form."""
    cells = [nbformat.v4.new_markdown_cell(f"## {name}") for name in SECTIONS]
    names = (f"{name} = {field.default!r}" for name, field in Parameters.model_fields.items())
    cell = nbformat.v4.new_code_cell("\n".join(names))
    cell.metadata.tags = ["parameters"]
    code = nbformat.v4.new_code_cell(changes.get("code", "1"))
    return nbformat.v4.new_notebook(cells=[*cells, cell, code])


def test_a_notebook_of_the_right_form_has_no_problems():
    assert problems(a_notebook()) == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class A:\n    pass", "class A"),
        ("def f():\n" + "    x = 1\n" * 9, "function f"),
    ],
)
def test_code_that_belongs_into_the_library_is_a_problem(code, message):
    assert any(message in problem for problem in problems(a_notebook(code=code)))


def test_missing_sections_parameters_and_outputs_are_problems():
    changed = a_notebook()
    del changed.cells[3]
    changed.cells[-2].metadata.tags = []
    changed.cells[-1].metadata.tags = [notebook.CHECKED]
    found = " ".join(problems(changed))
    assert "its sections are" in found
    assert "0 cells tagged 'parameters'" in found
    assert "no stored output" in found


def test_normalising_keeps_compared_outputs_and_drops_everything_else():
    whole = a_notebook(code="print(1)")
    whole.metadata = {"papermill": {"duration": 1.0}, "language_info": {"version": "3.11.7"}}
    output = nbformat.v4.new_output("stream", text="1\n")
    for cell in whole.cells:
        cell.metadata["execution"] = {"start": "now"}
        if cell.cell_type == "code":
            cell.update(outputs=[output], execution_count=9)
    whole.cells[-1].metadata["tags"] = [notebook.CHECKED]
    normalise(whole)
    kept, other = whole.cells[-1], whole.cells[-2]
    assert (kept.outputs, kept.execution_count) == ([output], 1)
    assert (other.outputs, other.execution_count) == ([], None)
    assert other.metadata == {"tags": ["parameters"]}
    assert "papermill" not in whole.metadata
    assert "version" not in whole.metadata.language_info
    once = json.dumps(whole)
    normalise(whole)
    assert json.dumps(whole) == once


def test_a_stream_is_stored_in_one_piece_however_the_kernel_cut_it():
    pieces = [("stdout", "1\n"), ("stdout", "2\n"), ("stderr", "no\n"), ("stdout", "3\n")]
    whole = a_notebook()
    cell = whole.cells[-1]
    cell.metadata["tags"] = [notebook.CHECKED]
    cell.outputs = [nbformat.v4.new_output("stream", name=n, text=text) for n, text in pieces]
    normalise(whole)
    joined = [("stdout", "1\n2\n"), ("stderr", "no\n"), ("stdout", "3\n")]
    assert [(output.name, output.text) for output in cell.outputs] == joined


PICTURE = nbformat.v4.new_output("display_data", data={"image/png": "", "text/plain": "a figure"})
WARNING = nbformat.v4.new_output("stream", name="stderr", text="a warning")
TRACEBACK = nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])


@pytest.mark.parametrize("output", [PICTURE, WARNING, TRACEBACK])
def test_only_text_can_be_compared(output):
    changed = a_notebook()
    changed.cells[-1].update(outputs=[output], execution_count=1)
    changed.cells[-1].metadata["tags"] = [notebook.CHECKED]
    (found,) = problems(changed)
    assert "shows more than text" in found


@pytest.mark.parametrize("wish", ["nbval-skip", "nbval-ignore-output", "raises-exception"])
def test_no_cell_is_left_out_of_the_comparison(wish):
    tagged, written = a_notebook(), a_notebook(code=f"# {wish.upper().replace('-', '_')}\n1")
    tagged.cells[-1].metadata["tags"] = [wish]
    for changed in (tagged, written) if wish.startswith("nbval") else (tagged,):
        assert any("not to be compared" in problem for problem in problems(changed))


def test_two_figures_of_a_notebook_cannot_have_one_number():
    given = a_notebook(code="figures.cost(runs, number=2)\nfigures.learning(runs, number=2)")
    assert any("[2, 2]" in problem for problem in problems(given))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_committed_notebook_has_the_common_form(path):
    assert problems(nbformat.read(path, as_version=4)) == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_committed_notebook_is_stored_as_refresh_stores_it(path, tmp_path):
    again = nbformat.read(path, as_version=4)
    normalise(again)
    nbformat.write(again, tmp_path / path.name)
    assert (tmp_path / path.name).read_text() == path.read_text()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_cell_to_be_compared_has_something_to_compare(path):
    """nbval passes over a cell without a count or without outputs, and says nothing."""
    cells = nbformat.read(path, as_version=4).cells
    checked = [cell for cell in cells if notebook.CHECKED in cell.metadata.get("tags", [])]
    assert checked
    for cell in checked:
        assert cell.cell_type == "code" and cell.execution_count == 1 and cell.outputs
        assert all(output.output_type == "stream" and output.text for output in cell.outputs)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_parameters_of_a_notebook_are_typed_and_explained(path):
    found = papermill.inspect_notebook(str(path))
    assert set(found) == set(Parameters.model_fields)
    usual = {name: field.default for name, field in Parameters.model_fields.items()}
    if shown := shown_by(path.stem):
        usual["scale"] = shown[0].usual
    for parameter in found.values():
        assert parameter["help"]
        assert parameter["inferred_type_name"] != "None"
        default = usual[parameter["name"]]
        assert parameter["default"].strip("\"'") == str(default)


def run_papermill(path, folder, *options) -> subprocess.CompletedProcess:
    """papermill from a working directory that is not the repository's."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "lib"), *sys.path[1:]])}
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", "-k", "python3"]
    return subprocess.run(
        [*command, str(path), str(folder / "out.ipynb"), *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def smoke_runs(path: Path) -> int:
    own = shown_by(path.stem)
    # A page's own runs are all shown, and those of a page about no artifact.
    artifacts = (own[1] or None) if own and path.stem in borrowed() else None
    return len(wanted_specs(own[0], "smoke", 1, artifacts)) if own else 0


def lacks_data(path: Path) -> bool:
    own = shown_by(path.stem)
    return bool(own and any(spec.task.lacks() for spec in own[0].grid("smoke", 0)))


# The one that is soonest done where nothing is compiled; the others are trained weekly. A second
# one is trained by the guide to a new paper. Scale smoke takes one process unless told otherwise,
# as one notebook is: a kernel that starts processes is a case of its own.
OFTEN = TWO_PROCESSES = "panm_pointers"
SOON = 30  # runs


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem == OFTEN else pytest.mark.weekly)
        for path in PATHS
    ],
)
def test_papermill_trains_a_notebook_at_smoke_scale_from_any_folder(path, tmp_path):
    if path.stem != "mla_table2" and smoke_runs(path) > SOON:
        pytest.skip("takes minutes: the weekly workflow executes it")
    if lacks_data(path):
        pytest.skip("its data are not here")
    before = {file: file.read_bytes() for file in RESULTS.glob("*/*.jsonl")}
    processes = ["-p", "workers", "2"] * (path.stem == TWO_PROCESSES)
    done = run_papermill(path, tmp_path, "-p", "scale", "smoke", "-p", "seeds", "1", *processes)
    assert done.returncode == 0, done.stderr
    executed = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    shown = json.dumps(executed)
    if runs := smoke_runs(path):
        assert f"{runs} of {runs} runs at scale smoke" in shown
        assert "not a result" in shown
    assert {file: file.read_bytes() for file in RESULTS.glob("*/*.jsonl")} == before


@pytest.mark.slow
def test_papermill_fails_where_trainings_failed(tmp_path):
    """Every run ends in an error, as the kernel has nothing to train with."""
    whole = NOTEBOOKS / "mla_attention_paths.ipynb"
    broken = nbformat.read(whole, as_version=4)
    cell = "from relength.runs import execute\n\nexecute.train = None"
    broken.cells.insert(0, nbformat.v4.new_code_cell(cell))
    nbformat.write(broken, tmp_path / whole.name)
    done = run_papermill(
        tmp_path / whole.name, tmp_path, "-p", "scale", "smoke", "-p", "seeds", "1"
    )
    assert done.returncode == 1
    assert f"{smoke_runs(whole)} of {smoke_runs(whole)} runs failed" in done.stderr


@pytest.mark.slow
@pytest.mark.weekly
def test_papermill_stops_at_a_misspelt_parameter(tmp_path):
    done = run_papermill(PATHS[0], tmp_path, "-p", "sede", "1")
    assert done.returncode == 1
    assert "There is no parameter 'sede': did you mean 'seeds'?" in done.stderr
