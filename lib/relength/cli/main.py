"""The command line: list, plan, run, status, merge, refresh, render, claims, verify, bench."""

import json
import re
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from relength.errors import RelengthError, warn_in_notes
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
    warn_in_notes()
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
    from relength.specs.experiments import experiments
    from relength.specs.spec import SCALES

    table = Table(
        "experiment", "paper", "artifacts", *(f"runs a seed, {scale}" for scale in SCALES)
    )
    for experiment in experiments().values():
        sizes = (str(len(experiment.specs(scale, [0]))) for scale in SCALES)
        table.add_row(experiment.name, experiment.paper, ", ".join(experiment.artifacts), *sizes)
    console.print(table)


@app.command()
def plan(
    results: Results = RESULTS,
    device: Annotated[
        str, typer.Option(help="At whose prices: cpu, cuda or cuda:<number>.")
    ] = "cpu",
    scale: Annotated[
        list[str] | None, typer.Option(help="Only these scales (repeatable).", show_default="both")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="How many lines.")] = 40,
) -> None:
    """What to run next: the cells whose runs could decide the most claims per hour.

    Cells that no open claim waits for come last. `relength run --plan` trains in this order.
    """
    from relength.report import agenda
    from relength.report.scoreboard import SCALES
    from relength.runs.store import Store

    wanted = _scales(scale or SCALES, SCALES)
    priced = _device(device, Store(results))
    steps = agenda.agenda(_store(results), priced, wanted)
    table = Table("", "cell", "seeds", "hours", "completes", expand=True)
    table.columns[1].ratio, table.columns[4].ratio = 2, 1  # what is left between cells and claims
    for number, step in enumerate(steps[:most], start=1):
        hours = "unknown" if step.hours is None else f"{step.hours:.2f}"
        table.add_row(str(number), step.label, step.seeds, hours, agenda.named(step.claims))
    console.print(table)
    rest = f"; --most {len(steps)} lists them all" if len(steps) > most else ""
    waited = sum(step.waited for step in steps)
    console.print(
        f"{waited} cells lack runs that could decide a claim, {len(steps) - waited} come after "
        f"them that no open claim waits for{rest}."
    )
    if priced is None:
        console.print("Hours are unknown: there is no GPU here, and no run of one is recorded.")
    elif priced.kind == "cuda" and not _gpu_here():
        console.print(f"There is no GPU here: hours are of {priced}, by recorded runs.")


def _scales(given: Iterable[str], known: Sequence[str]) -> list[str]:
    for scale in given:
        if scale not in known:
            raise RelengthError(
                f"There is nothing to plan at scale {scale!r}: choose one of {', '.join(known)}."
            )
    return list(given)


def _store(results: Path) -> Any:
    """A store to read from. One that is not there is empty, but its name may be misspelt."""
    from relength.runs.store import Store

    store = Store(results)
    if not store.path.is_dir():
        stderr.print(
            f"Note: There is no folder {escape(str(store.path))}, so nothing counts as recorded: "
            "look at the name given to --results.",
            soft_wrap=True,
            highlight=False,
        )
    return store


def _device(name: str, store: Any) -> Any:
    """At whose prices to plan. Without a GPU here, those of the one most recorded, if there is any:
    plans are also made for machines elsewhere.
    """
    import torch

    from relength.report.agenda import most_recorded
    from relength.runs.executors import check_device
    from relength.runs.prices import Device
    from relength.runs.provenance import device_name

    check_device(name, elsewhere=not _gpu_here())
    kind = torch.device(name).type
    if kind == "cuda" and not _gpu_here():
        return most_recorded(store, (kind,))
    return Device(kind, device_name(name))


def _gpu_here() -> bool:
    import torch

    return torch.cuda.is_available()


@app.command()
def run(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(help="Names of experiments, see `relength list`.", show_default="all"),
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke, reduced or paper.")] = "reduced",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many seeds, counted from 0.",
            show_default="5; at scale smoke 1; with --plan all in it",
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Folder of recorded runs; what is in it is not trained again.",
            show_default="results/; at scale smoke a temporary one",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to record into instead, for `relength merge` to take over.",
            show_default="the one of recorded runs",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:<number>.")] = "cpu",
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes; on a GPU threads.",
            show_default="one per core, at scale smoke 1; 4 on a GPU",
        ),
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only these tasks (repeatable).")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only these models (repeatable).")] = None,
    arm: Annotated[list[str] | None, typer.Option(help="Only these arms (repeatable).")] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="Only the runs of these keys (repeatable).")
    ] = None,
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
    follow_plan: Annotated[
        bool,
        typer.Option("--plan", help="In the order of `relength plan`."),
    ] = False,
) -> None:
    """Train runs that are not recorded yet, most valuable first: fewest seeds, then cheapest.

    Stop it at any moment; the same command resumes. Stopped by a signal with runs left, it exits
    with 130 (Ctrl-C) or 143 (SIGTERM).
    """
    from relength import stopping
    from relength.runs import plan, progress
    from relength.runs.campaign import Campaign
    from relength.runs.store import Store
    from relength.specs.spec import SCALES

    if scale not in SCALES:
        raise RelengthError(f"There is no scale {scale!r}: choose one of {', '.join(SCALES)}.")
    chosen = plan.choose(
        experiments or (),
        scale,
        seeds or _usual_seeds(scale, follow_plan),
        _shard(shard or "1/1"),
        **{"task": task, "model": model, "arm": arm, "key": key},
    )
    if results is None and out is None and scale == "smoke":
        results = Path(tempfile.mkdtemp(prefix="relength-smoke-"))
    known = Store(results or RESULTS) if out is None else _store(results or RESULTS)
    store = known if out is None else Store(out)
    missing = chosen if refresh else plan.missing(chosen, known, store)
    if not (experiments or task or key):
        missing, without = plan.at_hand(missing)
        for reason in without:
            console.print(f"Left out for want of data, {reason}.", soft_wrap=True)
    if follow_plan:
        from relength.report.agenda import agenda

        keys = {wanted.spec.key for wanted in missing}
        steps = agenda(known, _device(device, known), _scales([scale], ("reduced", "paper")))
        missing = [r for step in steps for r in step.runs if r.spec.key in keys]
    campaign = Campaign(
        missing,
        store,
        ranked=follow_plan,
        known=() if store.path == known.path else (known,),
        device=device,
        workers=workers,
        stack=stack,
        budget=None if budget is None else _seconds(budget),
        cluster=_cluster(executor, scheduler, workers),
    )
    console.print(progress.outlook(campaign, len(chosen)), soft_wrap=True)
    with stopping.on_signals():
        failed = progress.follow(campaign, console)
        console.print(progress.outcome(campaign, stopped=stopping.asked()), soft_wrap=True)
        code = stopping.exit_code(len(missing) - campaign.done)
    if failed:
        raise RelengthError(
            f"{failed} of {len(missing)} runs failed: their tracebacks are in {store.path}, "
            "under 'error'."
        )
    raise typer.Exit(code)


def _usual_seeds(scale: str, follow_plan: bool) -> int | None:
    """How many seeds where nobody says; None for all that anything asks for."""
    from relength.runs import plan

    if scale == "smoke":
        return 1
    return None if follow_plan else plan.SEEDS


def _cluster(executor: str, scheduler: str | None, workers: int | None) -> str | None:
    """Where to train, as a campaign takes it."""
    from relength.runs.executors import THIS_MACHINE

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


@app.command()
def status(
    results: Results = RESULTS,
    every: Annotated[bool, typer.Option("--all", help="What is not begun, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """The artifacts of the four papers: runs and seeds per scale, what the rest costs, verdicts."""
    from relength.report.coverage import table
    from relength.report.scoreboard import status as scoreboard

    state = scoreboard(_store(results))
    if as_json:
        print(json.dumps(state, indent=1))
        return
    for part in table(state, every):
        console.print(part)


@app.command()
def merge(
    other: Annotated[Path, typer.Argument(help="Folder of records from another machine.")],
    results: Results = RESULTS,
) -> None:
    """Take over the records of another store; merging twice changes nothing."""
    from relength.runs.store import Store

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
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Also print it as one PDF, with Chromium.")
    ] = False,
    archive: Annotated[
        bool, typer.Option("--archive", help="Also pack its pages into one file, with a checksum.")
    ] = False,
) -> None:
    """Execute every notebook from the recorded runs and build the book; trains nothing."""
    from relength.book import build as bookbuild
    from relength.book import editions

    if pdf:
        editions.chromium()  # missing, it is said now and not when all else is done
    index = bookbuild.render(_store(results).path, Path(out))
    console.print(f"The book is at {index}", soft_wrap=True)
    if pdf:
        console.print(f"The PDF is at {editions.pdf(Path(out))}", soft_wrap=True)
    if archive:
        packed = editions.archive(index.parent, Path(out))
        console.print(f"The archive is at {packed}", soft_wrap=True)


@app.command()
def refresh(
    notebooks: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Notebook files.", exists=True, dir_okay=False, show_default="all of notebooks/"
        ),
    ] = None,
) -> None:
    """Bring committed files up to date with results/: notebooks' outputs, exports for others.

    Part of every merge; tests compare them.
    """
    from relength.book import exports
    from relength.book.notebook import refresh as store_outputs
    from relength.paths import NOTEBOOKS
    from relength.runs.store import Store

    for path in notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        store_outputs(path)
        console.print(f"Refreshed {path}", soft_wrap=True)
    for path in exports.write(Store(RESULTS)):
        console.print(f"Refreshed {path}", soft_wrap=True)


@app.command()
def claims(
    paper: Annotated[str | None, typer.Argument(help="Only the claims of this paper.")] = None,
    results: Results = RESULTS,
) -> None:
    """Every claim with its verdict, computed now from the recorded runs."""
    from relength.report.scoreboard import ledger

    rows = ledger(_store(results))
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
        str | None,
        typer.Option(
            metavar="COUNT|KEY",
            help="Train records again and compare: so many chosen at random, or those of one key.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="COMMIT",
            help="Only the records added since then, which must come from the code they name.",
        ),
    ] = None,
) -> None:
    """Replay the first steps of recorded runs with today's code and say which records are stale.

    With --full KEY, only that run is trained again, from beginning to end. What --full trains is
    recorded as a further execution of its run.
    """
    from relength import stopping
    from relength.runs import contributions
    from relength.runs import verify as check
    from relength.runs.store import usable

    store = _store(results)

    def chosen(record: dict[str, Any]) -> bool:
        spec = record["spec"]
        return (not task or spec["task"]["name"] in task) and (
            not model or spec["model"]["name"] in model
        )

    if since is not None:
        if full is not None:
            raise RelengthError("--since and --full are two checks: ask for one at a time.")
        new = contributions.added(store, since)
        contributions.check(store, new, since)
        console.print(f"{len(new)} records were added since {since}.", soft_wrap=True)
        done = _probe(record for record in new if record["status"] == "ok" and chosen(record))
        _no_stale(done)
        return

    if full is None or not re.fullmatch("[0-9a-f]{12}", full):
        count = _count(full or "0")
        done = _probe(filter(chosen, usable(store.records())))
        if not done:
            raise RelengthError(
                f"No record of a table in {store.path} fits: name another folder with --results, "
                "or other tasks and models."
            )
        if not (task or model):
            console.print(f"Written to {check.write(store, done)}", soft_wrap=True)
        _no_stale(done)
        again = check.sample(store, count, chosen)
    else:
        again = check.of_key(store, full)
    done = []
    with stopping.on_signals():
        for comparison in check.retrain(store, again):
            done.append(comparison)
            console.print(comparison.sentence, soft_wrap=True, highlight=False)
        code = stopping.exit_code(len(again) - len(done))
    if apart := [c for c in done if not c.agrees]:
        raise RelengthError(
            f"{len(apart)} of {len(done)} comparisons with records failed, or differ by more than "
            "the margin for accuracies: see above where."
        )
    raise typer.Exit(code)


def _probe(records: Iterable[dict[str, Any]]) -> list[Any]:
    """Replay records, a line for each probe."""
    from relength.runs import verify as check

    done = []
    for number, total, probe in check.probes(records):
        done.append(probe)
        seen = "-" if probe.difference is None else f"{probe.difference:.1e}"
        console.print(
            f"{number}/{total} {probe.key} {probe.label}: {probe.outcome} "
            f"(largest difference {seen}), stands for {len(probe.run_ids)} records",
            soft_wrap=True,
            highlight=False,
        )
    return done


def _no_stale(done: list[Any]) -> None:
    from relength.runs import verify as check

    if stale := [probe for probe in done if probe.outcome == "stale"]:
        raise RelengthError(
            f"{len(stale)} of {len(done)} probes differ by more than {check.TOLERANCE}: "
            "tables leave their records out until `relength run --refresh` records them anew."
        )


def _count(text: str) -> int:
    """A number of records."""
    if not text.isdecimal():
        raise RelengthError(
            f"{text!r} is neither a number of records nor the key of one (12 hex digits)."
        )
    return int(text)


@app.command()
def bench(
    task: Annotated[list[str] | None, typer.Option(help="Tasks to train on (repeatable).")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Side-by-side repeats.")] = 5,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="Length of one measurement (4 unless said).")
    ] = None,
    device: Annotated[str, typer.Option(help="Where stacks are trained: cpu or cuda.")] = "cpu",
    pointers: Annotated[
        bool, typer.Option("--pointers", help="Instead: what PANM costs on top of its backbones.")
    ] = False,
    executors: Annotated[
        bool, typer.Option("--executors", help="Instead: what Dask costs beside plain processes.")
    ] = False,
    results: Results = RESULTS,
) -> None:
    """Measure training speed here, beside the frozen baseline loop, and keep the result."""
    from relength.bench import speed
    from relength.report.expenses import limit_share
    from relength.runs.executors import check_device
    from relength.runs.store import Store

    check_device(device)
    if pointers and executors:
        raise RelengthError("--pointers and --executors are two measurements: ask for one.")
    if (pointers or executors) and (task or seconds or device != "cpu"):
        raise RelengthError(
            "--pointers and --executors have a task and a length of their own and measure on a "
            "CPU: leave out --task, --seconds and --device."
        )
    if pointers:
        from relength.papers.panm import overhead
        from relength.papers.panm import overhead_page as page

        outcome = overhead.measure(rounds)
        speed.keep(Store(results), outcome | {"baseline_threads": 1})
        console.print(page.numbers(outcome), highlight=False)
        return
    if executors:
        from relength.bench import throughput
        from relength.report import expenses

        outcome = throughput.measure(rounds)
        store = Store(results)
        speed.keep(store, outcome | {"baseline_threads": 1})
        console.print(expenses.in_turns(store.benchmarks()[-1]), highlight=False, soft_wrap=True)
        return

    table = Table("task", "way", "steps/s", "× plain loop", "memory", "share of limit")
    names = task or ["copy", "recopy", "inv_recopy", "panm_copy"]
    for name in names:  # all of them now: a measurement takes minutes
        speed.check_task(name)
    for name in names:
        outcome = speed.measure(name, rounds, seconds or speed.SECONDS, device=device)
        speed.keep(Store(results), outcome, device)
        for trainer, rate in outcome["steps_per_second"].items():
            table.add_row(
                *(name, trainer, f"{rate:.1f}", f"{outcome['ratio_to_baseline'][trainer]:.2f}"),
                f"{outcome['memory_bytes'][trainer] / 2**20:,.0f} MiB",
                limit_share(outcome, trainer),
            )
    console.print(table)


if __name__ == "__main__":
    main()
