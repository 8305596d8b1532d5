"""The command that replays recorded runs with today's code."""

import re
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from relength.cli.app import Results, collect_garbage_again, console, store_of
from relength.errors import RelengthError
from relength.paths import RESULTS


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
    from relength.verdicts.wording import plural

    collect_garbage_again()
    store = store_of(results)

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
        if not (task or model) and store.path.exists():
            with store.locked(store.freshness):  # nobody waits for what could not be kept
                pass
        asked = [*filter(chosen, usable(store.records()))]
        left_out = check.without_data(asked)
        if left_out:
            console.print(
                f"Left out: {plural(len(left_out), 'record')} whose data are not on this machine.",
                soft_wrap=True,
            )
        done = _probe(asked)
        if not done and left_out:
            raise RelengthError(
                "No record can be replayed: let RELENGTH_DATA name the folder that has their data."
            )
        if not done:
            raise RelengthError(
                f"No record of a table in {store.path} fits: name another folder with --results, "
                "or other tasks and models."
            )
        if not (task or model):
            written = check.write(store, done, left_out)
            console.print(f"Written to {written}", soft_wrap=True)
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
