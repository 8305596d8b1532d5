"""Commands that add records: training, and taking over what other machines trained."""

import re
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from relength.cli.app import Results, collect_garbage_again, console, device_of, scales_of, store_of
from relength.errors import RelengthError
from relength.paths import RESULTS


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
            max=1000,
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
    arm: Annotated[list[str] | None, typer.Option(help="Only these readings (repeatable).")] = None,
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
        results = _temporary()
    known = Store(results or RESULTS) if out is None else store_of(results or RESULTS)
    store = known if out is None else Store(out)
    missing = chosen if refresh else plan.missing(chosen, known, store)
    named = bool(experiments or task or key)  # what is asked for by name may be downloaded
    asked = missing
    missing, without = plan.at_hand(asked, fetch=named)
    left_out = len(asked) - len(missing)
    if named and asked and not missing:
        asked[0].spec.task.provenance()  # raises, and says the way out
    for reason in without:
        console.print(f"Left out for want of data, {reason}.", soft_wrap=True)
    if follow_plan:
        from relength.report.agenda import agenda

        keys = {wanted.spec.key for wanted in missing}
        steps = agenda(known, device_of(device, known), scales_of([scale], ("reduced", "paper")))
        here = (step for step in steps if not step.lacks)
        missing = [r for step in here for r in step.runs if r.spec.key in keys]
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
    collect_garbage_again()
    console.print(progress.outlook(campaign, len(chosen)), soft_wrap=True)
    with stopping.on_signals():
        failed = progress.follow(campaign, console)
        console.print(progress.outcome(campaign, stopping.asked(), left_out), soft_wrap=True)
        code = stopping.exit_code(len(missing) - campaign.done)
    if failed:
        raise RelengthError(
            f"{failed} of {len(missing)} runs failed: their tracebacks are in {store.path}, "
            "under 'error'."
        )
    raise typer.Exit(code)


def _temporary() -> Path:
    """A new folder for the records of smoke runs, which nobody keeps."""
    try:
        return Path(tempfile.mkdtemp(prefix="relength-smoke-"))
    except FileNotFoundError:
        raise RelengthError(
            "No folder for temporary files can be written: name one in the environment variable "
            "TMPDIR, or a folder of records with --results."
        ) from None


def _usual_seeds(scale: str, follow_plan: bool) -> int | None:
    """Return how many seeds a command takes unless told; None for all that anything asks for."""
    from relength.runs import plan

    if scale == "smoke":
        return 1
    return None if follow_plan else plan.least_seeds()


def _cluster(executor: str, scheduler: str | None, workers: int | None) -> str | None:
    """Return the place to train, as a campaign takes it."""
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


def merge(
    other: Annotated[Path, typer.Argument(help="Folder of records from another machine.")],
    results: Results = RESULTS,
) -> None:
    """Take over the records of another store; merging twice changes nothing.

    Refused where one of them names a commit that no branch here has, or began before its commit.
    """
    from relength.runs.contributions import refuse_strangers
    from relength.runs.store import Store
    from relength.verdicts.wording import plural

    if not other.is_dir():
        raise RelengthError(
            f"{other} is not a folder of records: name the folder given to --results."
        )
    refuse_strangers(record for _, record in Store(results).lacking(Store(other)))
    if not Store(other).files():
        console.print(
            f"{other} has no records in the form PAPER/EXPERIMENT.runs.jsonl: name the folder "
            "given to --results or --out.",
            soft_wrap=True,
        )
    new = Store(results).merge(Store(other))
    console.print(f"{plural(new, 'new record')} in {Store(results).path}", soft_wrap=True)
