"""The command line: list, run, status, merge, refresh, render, claims, verify, bench."""

import json
import re
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.progress import TimeRemainingColumn as Remaining
from rich.table import Table

from relength.errors import RelengthError
from relength.paths import RESULTS, ROOT

app = typer.Typer(
    name="relength",
    help="Rebuild the tables and figures of four papers on length generalisation.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
console, stderr = Console(), Console(stderr=True)

Results = Annotated[Path, typer.Option(help="Folder of recorded runs.", show_default="results/")]


def main() -> NoReturn:
    """Entry point: what a user can mend is printed as one sentence, with exit code 2."""
    warnings.formatwarning = lambda message, *_: f"Note: {message}\n"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        app()
    except RelengthError as error:
        stderr.print("[bold red]Error:[/]", escape(str(error)), soft_wrap=True, highlight=False)
        sys.exit(2)
    sys.exit(0)


@app.command("list")
def list_experiments() -> None:
    """The experiments, the artifacts they rebuild, and how many runs each scale needs."""
    from relength.papers import EXPERIMENTS
    from relength.spec import SCALES

    table = Table(
        "experiment", "paper", "artifacts", *(f"runs a seed, {scale}" for scale in SCALES)
    )
    for experiment in EXPERIMENTS.values():
        sizes = (str(len(experiment.grid(scale, 0))) for scale in SCALES)
        table.add_row(experiment.name, experiment.paper, ", ".join(experiment.artifacts), *sizes)
    console.print(table)


@app.command()
def run(
    experiment: Annotated[str, typer.Argument(help="Name of the experiment, see `relength list`.")],
    scale: Annotated[str, typer.Option(help="smoke, reduced or paper.")] = "reduced",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many seeds, counted from 0.", show_default="5; at scale smoke 1"
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Folder to record into.", show_default="results/; at scale smoke a temporary one"
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:<number>.")] = "cpu",
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes; on a GPU threads.", show_default="one per core; 4 on a GPU"
        ),
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only these tasks (repeatable).")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only these models (repeatable).")] = None,
    arm: Annotated[list[str] | None, typer.Option(help="Only these arms (repeatable).")] = None,
    stack: Annotated[
        int | None,
        typer.Option(
            min=1, help="Runs trained as one program.", show_default="1 on a CPU, 40 on a GPU"
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Stop after this time, as in 90s, 25m or 2h; a later call resumes."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(help="Only every n-th run, as in 3/16; `relength merge` unites the shards."),
    ] = None,
    executor: Annotated[
        str,
        typer.Option(
            help="local (processes, or threads of a GPU) or dask (on one or many machines)."
        ),
    ] = "local",
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="With --executor dask: a running scheduler, as in tcp://host:8786.",
            show_default="workers on this machine",
        ),
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Train what is recorded, too.")
    ] = False,
) -> None:
    """Train an experiment's runs that are not recorded yet. Stop it at any moment; it resumes."""
    from relength.papers import experiment as find
    from relength.run import check_device, pending, run_or_load
    from relength.spec import SCALES
    from relength.store import Store

    if scale not in SCALES:
        raise RelengthError(f"There is no scale {scale!r}: choose one of {', '.join(SCALES)}.")
    chosen = find(experiment)
    specs = chosen.specs(scale, range(seeds or (1 if scale == "smoke" else 5)))
    named = (
        ("task", task, lambda spec: spec.task.name),
        ("model", model, lambda spec: spec.model.name),
        ("arm", arm, lambda spec: spec.model.arm),
    )
    for what, names, name_of in named:
        known = dict.fromkeys(map(name_of, specs))
        if unknown := [name for name in names or () if name not in known]:
            raise RelengthError(
                f"{experiment} has no {what} {unknown[0]!r}: choose from {', '.join(known)}."
            )
        specs = [s for s in specs if not names or name_of(s) in names]
    if shard is not None:
        number, of = _shard(shard)
        specs = specs[number - 1 :: of]
    cluster = _cluster(executor, scheduler, workers)
    check_device(device, elsewhere=scheduler is not None)
    if results is None:
        results = Path(tempfile.mkdtemp(prefix="relength-smoke-")) if scale == "smoke" else RESULTS
    seconds = None if budget is None else _seconds(budget)
    store = Store(results)
    missing = specs if refresh else pending(specs, store, chosen)
    console.print(
        f"{len(missing)} of {len(specs)} runs to train, recorded in {store.path}", soft_wrap=True
    )
    failed = done = 0
    with _progress(len(missing)) as advance:

        def finished(record: dict[str, Any]) -> None:
            nonlocal failed, done
            done += 1
            failed += record["status"] == "failed"
            advance(_line(record))

        run_or_load(
            specs,
            store,
            chosen,
            train=True,
            refresh=refresh,
            device=device,
            workers=workers,
            stack=stack,
            budget=seconds,
            cluster=cluster,
            on_record=finished,
        )
    if done < len(missing):
        console.print(
            f"{done} of {len(missing)} runs were trained within the budget; the same command "
            "continues with the rest."
        )
    if failed:
        raise RelengthError(
            f"{failed} of {len(missing)} runs failed: their tracebacks are in {store.path}, "
            "under 'error'."
        )


def _cluster(executor: str, scheduler: str | None, workers: int | None) -> str | None:
    """Where to train, as `run_or_load` takes it."""
    from relength.run import THIS_MACHINE

    if executor not in ("local", "dask"):
        raise RelengthError(f"There is no executor {executor!r}: choose local or dask.")
    if executor == "local":
        if scheduler is not None:
            raise RelengthError(
                "--scheduler names a Dask scheduler, and the executor is local: add "
                "--executor dask, or leave --scheduler out."
            )
        return None
    if scheduler is not None and workers is not None:
        raise RelengthError(
            "--workers counts workers on this machine, and those of a scheduler are its own: "
            "leave out --workers or --scheduler."
        )
    return THIS_MACHINE if scheduler is None else scheduler


def _seconds(text: str) -> float:
    """90s, 25m or 2h in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if not found:
        raise RelengthError(f"{text!r} is not a time: write a number and s, m or h, as in 25m.")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def _shard(text: str) -> tuple[int, int]:
    """3/16 as (3, 16)."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise RelengthError(f"{text!r} is not a shard: write i/n with 1 ≤ i ≤ n, as in 3/16.")
    return int(found[1]), int(found[2])


def _line(record: dict[str, Any]) -> str:
    """One finished run as one line of a log."""
    spec = record["spec"]
    name = (
        f"{spec['model']['name']}/{spec['model']['arm']} {spec['task']['name']} seed {spec['seed']}"
    )
    if record["status"] == "failed":
        return f"{record['key']} {name}: failed, {record['error'].strip().splitlines()[-1]}"
    tests = record["checkpoints"]["selected"]["tests"]
    accuracy = ", ".join(f"{test} {100 * m['exact_match']:.1f}" for test, m in tests.items())
    cost = record["cost"]
    seconds = cost["training_seconds"] + cost["evaluation_seconds"]
    return f"{record['key']} {name}: {accuracy} ({len(record['curve'])} epochs, {seconds:.0f} s)"


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """Bar with the time left on a terminal; one line per finished run everywhere."""
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), Elapsed(), Remaining())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("training", total=total)

        def advance(line: str) -> None:
            bar.advance(task)
            bar.console.print(line, soft_wrap=True, highlight=False, markup=False)

        yield advance


@app.command()
def status(
    results: Results = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Every artifact of the four papers: cells, seeds per scale, verdicts."""
    from relength.report.scoreboard import status as scoreboard
    from relength.store import Store

    state = scoreboard(Store(results))
    if as_json:
        print(json.dumps(state, indent=1))
        return
    table = Table("artifact", "cells", "seeds (reduced)", "seeds (paper)", "verdicts")
    for name, row in state["artifacts"].items():
        verdicts = ", ".join(f"{n} {verdict}" for verdict, n in row["verdicts"].items() if n)
        seeds = row["min_seeds"]
        table.add_row(
            name, str(row["cells"]), str(seeds["reduced"]), str(seeds["paper"]), verdicts or "–"
        )
    console.print(table)


@app.command()
def merge(
    other: Annotated[Path, typer.Argument(help="Folder of records from another machine.")],
    results: Results = RESULTS,
) -> None:
    """Take over the records of another store; merging twice changes nothing."""
    from relength.store import Store

    if not other.is_dir():
        raise RelengthError(
            f"{other} is not a folder of records: name the folder given to --results."
        )
    new = Store(results).merge(Store(other))
    console.print(f"{new} new records in {Store(results).path}", soft_wrap=True)


@app.command()
def render(
    results: Results = RESULTS,
    out: Annotated[
        Path, typer.Option(help="Folder for the built book.", show_default="_build/")
    ] = (ROOT / "_build"),
) -> None:
    """Execute every notebook from the recorded runs and build the book; trains nothing."""
    from relength import bookbuild

    index = bookbuild.render(Path(results), Path(out))
    console.print(f"The book is at {index}", soft_wrap=True)


@app.command()
def refresh(
    notebooks: Annotated[
        list[Path] | None, typer.Argument(help="Notebooks.", show_default="all of notebooks/")
    ] = None,
) -> None:
    """Execute notebooks on results/ and store the outputs tests compare; part of every merge."""
    from relength.notebook import refresh as store_outputs
    from relength.paths import NOTEBOOKS

    for path in notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        store_outputs(path)
        console.print(f"Refreshed {path}", soft_wrap=True)


@app.command()
def claims(
    paper: Annotated[str | None, typer.Argument(help="Only the claims of this paper.")] = None,
    results: Results = RESULTS,
) -> None:
    """Every claim with its verdict, computed now from the recorded runs."""
    from relength.report.scoreboard import ledger
    from relength.store import Store

    rows = ledger(Store(results))
    if paper and paper not in set(rows.paper):
        known = ", ".join(sorted(set(rows.paper)))
        raise RelengthError(f"There are no claims of {paper!r}: choose from {known}.")
    table = Table("claim", "verdict", "scale", "seeds", "seen")
    for row in rows[rows.paper == paper].itertuples() if paper else rows.itertuples():
        table.add_row(row.claim, row.label, row.scale or "–", str(row.seeds), row.seen)
    console.print(table)


@app.command()
def verify(
    results: Results = RESULTS,
    task: Annotated[list[str] | None, typer.Option(help="Only these tasks (repeatable).")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only these models (repeatable).")] = None,
    full: Annotated[
        int,
        typer.Option(min=0, help="Train this many records again, chosen at random, and compare."),
    ] = 0,
) -> None:
    """Replay the first steps of recorded runs with today's code and say which records are stale."""
    from relength import verify as check
    from relength.store import Store

    store = Store(results)

    def chosen(record: dict[str, Any]) -> bool:
        spec = record["spec"]
        return (not task or spec["task"]["name"] in task) and (
            not model or spec["model"]["name"] in model
        )

    done = []
    for number, total, probe in check.probes(store, chosen):
        done.append(probe)
        seen = "-" if probe.difference is None else f"{probe.difference:.1e}"
        console.print(
            f"{number}/{total} {probe.key} {probe.label}: {probe.outcome} "
            f"(largest difference {seen}), stands for {len(probe.run_ids)} records",
            soft_wrap=True,
            highlight=False,
        )
    if not done:
        raise RelengthError(
            f"No record of a table in {store.path} fits: name another folder with --results, or "
            "other tasks and models."
        )
    if not (task or model):
        console.print(f"Written to {check.write(store, done)}", soft_wrap=True)
    for line in check.retrain(store, full, chosen):
        console.print(line, soft_wrap=True, highlight=False)
    if stale := [probe for probe in done if probe.outcome == "stale"]:
        raise RelengthError(
            f"{len(stale)} of {len(done)} probes differ by more than {check.TOLERANCE}: "
            "tables leave their records out until `relength run --refresh` records them anew."
        )


@app.command()
def bench(
    task: Annotated[list[str] | None, typer.Option(help="Tasks to train on (repeatable).")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Side-by-side repeats.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of one measurement.")] = 4.0,
    device: Annotated[str, typer.Option(help="Where stacks are trained: cpu or cuda.")] = "cpu",
    results: Results = RESULTS,
) -> None:
    """Measure training speed here, beside the frozen baseline loop, and keep the result."""
    from relength.engine import bench as speed
    from relength.run import check_device
    from relength.store import Store

    check_device(device)

    table = Table("task", "trainer", "steps/s", "ratio to the frozen loop")
    for name in task or ["copy", "recopy", "inv_recopy"]:
        outcome = speed.measure(name, rounds, seconds, device=device)
        speed.keep(Store(results), outcome, device)
        for trainer, rate in outcome["steps_per_second"].items():
            table.add_row(
                name, trainer, f"{rate:.1f}", f"{outcome['ratio_to_baseline'][trainer]:.2f}"
            )
    console.print(table)


if __name__ == "__main__":
    main()
