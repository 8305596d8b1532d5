"""Give every notebook what it needs around its results: checked parameters, runs, glue.

A notebook declares its parameters in one cell tagged ``parameters``, where papermill finds them,
and hands its names over right after it::

    parameters = notebook.parameters(globals())
    runs = notebook.runs("<experiment>", parameters)

:func:`refresh` renders a notebook file anew from the recorded runs.
"""

import ast
import difflib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from tqdm import tqdm

from relength.book import execution
from relength.errors import RelengthError
from relength.paths import RESULTS, ROOT
from relength.report.runs import Runs, wanted_specs
from relength.report.wording import wrapped
from relength.runs.executors import check_device
from relength.runs.plan import MANY_SEEDS, in_words
from relength.runs.run import run_or_load
from relength.runs.store import Record, Store
from relength.specs.experiments import experiment as find_experiment
from relength.specs.spec import Scale, explain
from relength.tasks.data import downloads, way_in

if TYPE_CHECKING:
    from nbformat import NotebookNode

CHECKED = "nbval-check-output"  # cells with this tag keep their outputs, and the tests compare them
INJECTED = "# Parameters"  # the first line of the cell that papermill adds


class Parameters(BaseModel):
    """The parameters of a notebook. Text is converted: papermill hands over ``true`` as 'true'."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scale: Scale = "reduced"
    seeds: int = Field(5, ge=1, description="how many, counted from 0")
    train: bool = False
    refresh: bool = False
    device: str = "cpu"
    workers: int = Field(0, ge=0, description="processes; 0 is one per core, and one at smoke")
    results: str = ""

    @field_validator("seeds", "workers", mode="before")
    @classmethod
    def _no_yes_or_no(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("a whole number is needed, not a yes or no")
        return value

    @property
    def trains(self) -> bool:
        """True when missing runs are trained: when asked for, and always at scale smoke."""
        return self.train or self.refresh or self.scale == "smoke"

    def store(self) -> Store:
        """The store that is read and written; a smoke run leaves the recorded results alone."""
        if self.results:
            return Store(self.results)
        if self.scale == "smoke":
            return Store(tempfile.mkdtemp(prefix="relength-smoke-"))
        return Store(RESULTS)


def parameters(namespace: Mapping[str, Any]) -> Parameters:
    """The notebook's parameters, converted and checked.

    namespace: the notebook's ``globals()``, right after its parameters cell. Raises RelengthError
    that names the parameter: one of a wrong type or value, and one that no notebook has. papermill
    adds what it is given as a cell of assignments and only warns when a name is unknown; the cells
    executed so far tell.
    """
    known = Parameters.model_fields
    for name in _assigned(namespace.get("In", ())):
        if name not in known:
            raise RelengthError(_unknown(name))
    given = {name: namespace[name] for name in known if name in namespace}
    try:
        chosen = Parameters.model_validate(given)
    except ValidationError as error:
        raise RelengthError(f"Parameter {explain(error)}. {_allowed()}") from None
    check_device(chosen.device)
    return chosen


def _assigned(cells: Any) -> list[str]:
    """Public names that the executed cells with parameters assign, in their order.

    Such a cell begins with papermill's mark, or assigns at least one parameter; so a name misspelt
    in the notebook's own cell is found too, and a variable of a later cell is not mistaken for a
    parameter.
    """
    names: dict[str, None] = {}
    for source in cells:
        try:
            body = ast.parse(source).body
        except SyntaxError:  # a cell with shell or magic commands
            continue
        targets = [t for s in body if isinstance(s, ast.Assign) for t in s.targets]
        targets += [s.target for s in body if isinstance(s, ast.AnnAssign)]
        here = [t.id for t in targets if isinstance(t, ast.Name) and not t.id.startswith("_")]
        if source.startswith(INJECTED) or set(here) & set(Parameters.model_fields):
            names |= dict.fromkeys(here)
    return list(names)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, Parameters.model_fields, n=1, cutoff=0.5)
    hint = f": did you mean {near[0]!r}?" if near else "."
    return f"There is no parameter {name!r}{hint} {_allowed()}"


def _allowed() -> str:
    names = ", ".join(Parameters.model_fields)
    return f"Parameters are {names} (papermill --help-notebook explains them)."


def runs(
    name: str,
    chosen: Parameters,
    artifacts: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    page: str = "",
) -> Runs:
    """Read the runs of an experiment that the parameters ask for.

    What is missing is trained only if the parameters say so.

    artifacts  only the runs that these tables and figures are made from
    models     only runs of these models
    page       the notebook that shows them, if it is about no artifact of the paper

    Prints what is shown: how many runs are recorded and how many were trained now; whose runs all
    failed, and why; which readings have no finished run and are left out; and what cannot be
    trained here for want of data. Runs that another experiment's file keeps are counted apart, but
    for those at scale smoke, which the notebook trains itself.

    Raises RelengthError if runs failed now, once all are recorded: a notebook that lacks them must
    not pass for a whole one.
    """
    found, store = find_experiment(name), chosen.store()
    specs = wanted_specs(found, chosen.scale, chosen.seeds, artifacts, models)
    watch = _Watch()
    run_or_load(
        specs,
        store,
        found,
        **{"train": chosen.trains, "refresh": chosen.refresh, "fetch": chosen.train},
        **{"watch": watch, "device": chosen.device, "workers": chosen.workers or None},
    )
    shown = Runs.of_specs(found, chosen.scale, specs, store, artifacts)
    if page:
        shown = replace(shown, artifacts=(), page=page)
    said = f"{_counted(shown)} at scale {chosen.scale} ({found.heading}) are in {_place(store)}."
    print(wrapped(said))
    if shown.gaps and (shown.records or shown.broken):
        print(wrapped(shown.gaps))
    if shown.on_generated_data:
        print(wrapped(shown.on_generated_data.strip()))
    if watch.failed:
        raise RelengthError(
            f"{watch.failed} of {watch.trained} runs failed: their tracebacks are in {store.path}, "
            "under 'error'."
        )
    if not shown.records and not chosen.trains:
        print(wrapped("Nothing is shown as a result; -p train true trains what is missing."))
        lacking = {spec.task.name for spec in specs if spec.task.lacks()}
        for name in sorted(lacking & downloads()):
            print(wrapped(f"Not run: data. {way_in(name)}"))
    return shown


class _Watch:
    """Shows a line while runs train; knows then how many they were, and how many failed."""

    trained = failed = 0

    def __call__(self, records: Iterator[Record], total: int) -> Iterator[Record]:
        self.trained = total
        with TrainingLine(total) as line:
            for record in records:
                line.advance(record)
                yield record
        self.failed = line.failed


def _counted(shown: Runs) -> str:
    if shown.scale == "smoke":
        return f"{len(shown.records)} of {len(shown.specs)} runs"
    keys = {record["key"] for record in shown.records}
    return in_words(shown.experiment, shown.specs, keys, " runs")


def many_seeds(name: str, chosen: Parameters, page: str) -> Runs:
    """Read the recorded runs of models whose success rate is asked for; train nothing.

    page  the notebook that shows it
    """
    found = find_experiment(name)
    shown = Runs.read(found, chosen.scale, MANY_SEEDS, chosen.store(), None, found.many)
    counts = f"{len(shown.records)} of {len(shown.specs)} runs"
    print(wrapped(f"{counts} at scale {chosen.scale} are recorded."))
    return replace(shown, page=page)


def _place(store: Store) -> str:
    """A folder as a reader of the page can use it."""
    if store.path.is_relative_to(ROOT):
        return f"{store.path.relative_to(ROOT).as_posix()}/"
    if store.path.is_relative_to(Path(tempfile.gettempdir()).resolve()):
        return f"the temporary folder {store.path.name}"
    return f"{store.path.name}/"


class TrainingLine(tqdm):
    """One line below the cell that counts finished runs and says how long the rest will take.

    The cell keeps only the last state of the line, and nothing where no run is to be trained.
    """

    monitor_interval = 0  # seconds; tqdm would start a thread, and training forks processes

    def __init__(self, total: int):
        self.failed, self._shown = 0, None
        super().__init__(
            total=total,
            disable=not total,
            file=StringIO(),  # tqdm ends its line there
            mininterval=0,
            smoothing=0,  # the mean of all runs: the last ones may be short
            bar_format="{n} of {total} runs trained, {elapsed} so far, {remaining} left{postfix}",
        )

    def advance(self, record: Record) -> None:
        """Count one finished run."""
        if record["status"] == "failed":
            self.failed += 1
            self.set_postfix_str(f"{self.failed} failed", refresh=False)
        self.update()

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Show the line as it stands now in place of the one shown before."""
        from IPython.display import display

        content = {"text/plain": msg or str(self)}
        if self._shown is None:
            self._shown = display(content, raw=True, display_id=True)
        else:
            self._shown.update(content, raw=True)


def glue(name: str, value: Any) -> None:
    """Keep a value under a name, so that pages of the book can quote it; shows nothing.

    What ``myst_nb.glue`` does, with IPython alone: notebooks run where the book's tools are
    missing.
    """
    from IPython.core.formatters import format_display_data
    from IPython.display import display

    prefix = "application/papermill.record/"
    data, metadata = format_display_data(value)
    display(
        {prefix + kind: content for kind, content in data.items()},
        raw=True,
        metadata={**metadata, "scrapbook": {"name": name, "mime_prefix": prefix}},
    )


# Notebook files


def refresh(paths: Sequence[Path]) -> None:
    """Execute notebook files in place on their own records and bring them into the form that is
    committed.

    Raises RelengthError when a cell fails; all files are then left as they were.
    """
    import nbformat

    folder = Path(tempfile.mkdtemp(prefix="relength-"))
    executed = execution.execute_all(paths, folder)  # if one fails, its traceback stays there
    for path, made in zip(paths, executed, strict=True):
        notebook = nbformat.read(made, as_version=4)
        normalise(notebook)
        nbformat.write(notebook, path)
    shutil.rmtree(folder)


def normalise(notebook: "NotebookNode") -> None:
    """Drop the outputs that are not compared: a committed notebook is small, its diffs readable.

    Outputs stay in cells tagged :data:`CHECKED`; their count is always 1, so that a cell added
    above changes nothing here (without a count nbval compares nothing).
    """
    import nbformat

    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": kernel, "language_info": {"name": "python"}}
    )
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type == "code":
            kept = CHECKED in tags
            cell.execution_count = 1 if kept else None
            cell.outputs = _joined(cell.outputs) if kept else []
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = 1


def _joined(outputs: "list[NotebookNode]") -> "list[NotebookNode]":
    """The outputs with neighbouring pieces of one stream in one: where a kernel cuts is chance."""
    whole: list[NotebookNode] = []
    for output in outputs:
        if whole and output.output_type == "stream" and output.get("name") == whole[-1].get("name"):
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole
