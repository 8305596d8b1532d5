"""Commands that show what there is: experiments, the plan, coverage, claims."""

import json
from typing import Annotated

import typer

from relength.cli.app import Results, console, device_of, scales_of, store_of
from relength.cli.output import print_table
from relength.paths import RESULTS

Json = Annotated[bool, typer.Option("--json", help="Machine-readable.")]


def list_experiments(as_json: Json = False) -> None:
    """The experiments, the artifacts they rebuild, and how many runs each scale needs."""
    from relength.specs.experiments import experiments
    from relength.specs.spec import SCALES

    found = [
        {
            "experiment": experiment.name,
            "paper": experiment.paper,
            "artifacts": list(experiment.artifacts),
            "runs_a_seed": {scale: len(experiment.specs(scale, [0])) for scale in SCALES},
        }
        for experiment in experiments().values()
    ]
    if as_json:
        print(json.dumps(found, indent=1))
        return
    print_table(
        ("experiment", "paper", "artifacts", *(f"runs a seed, {scale}" for scale in SCALES)),
        [
            (
                *(row["experiment"], row["paper"], ", ".join(row["artifacts"])),
                *map(str, row["runs_a_seed"].values()),
            )
            for row in found
        ],
    )


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
    """List what to run next: stage two of claims that fail, then what decides most claims per hour.

    Cells that no open claim waits for come last. `relength run --plan` trains in this order.
    """
    from relength.report import agenda
    from relength.report.scoreboard import SCALES
    from relength.report.wording import words
    from relength.runs.executors import gpu_here
    from relength.runs.store import Store

    wanted = scales_of(scale or SCALES, SCALES)
    priced = device_of(device, Store(results))
    store = store_of(results)
    steps = agenda.agenda(store, priced, wanted)
    print_table(
        ("cell", "seed", "hours", "completes", "why"),
        [
            (
                *(step.label, step.seeds),
                "unknown" if step.hours is None else f"{step.hours:.2f}",
                *(agenda.named(step.claims), step.why),
            )
            for step in steps[:most]
        ],
    )
    rest = f"; --most {len(steps)} lists them all" if len(steps) > most else ""
    counts = agenda.missing(steps)
    console.print(
        f"{counts.deciding} cells lack runs that could decide a claim, {counts.others} come after "
        f"them that no open claim waits for, {counts.absent} of these without their data or "
        f"weights here{rest}."
    )
    if priced is None:
        console.print("Hours are unknown: there is no GPU here, and no run of one is recorded.")
    elif priced.kind == "cuda" and not gpu_here():
        console.print(f"There is no GPU here: hours are of {priced}, by recorded runs.")
    elif others := [str(one) for one in agenda.instead(store, priced) if one != priced]:
        console.print(f"What this machine has never run has the hours of {words(others[::-1])}.")


def status(
    results: Results = RESULTS,
    every: Annotated[bool, typer.Option("--all", help="What is not begun, too.")] = False,
    as_json: Json = False,
) -> None:
    """The artifacts of all papers: runs and seeds per scale, what the rest costs, verdicts."""
    from relength.report import coverage
    from relength.report.scoreboard import status as scoreboard

    state = scoreboard(store_of(results))
    if as_json:
        print(json.dumps(state, indent=1))
        return
    print_table(coverage.HEADERS, coverage.rows(state, every))
    for note in coverage.notes(state, every):
        console.print(note)


def claims(
    paper: Annotated[str | None, typer.Argument(help="Only the claims of this paper.")] = None,
    results: Results = RESULTS,
    as_json: Json = False,
) -> None:
    """Every claim with its verdict, computed now from the recorded runs."""
    from relength.report.scoreboard import ledger

    rows = ledger(store_of(results), paper or "")
    if as_json:
        from relength.report.ledger import expected
        from relength.verdicts.claims import load

        papers = dict.fromkeys(rows["paper"])
        waiting = {claim.id: claim.parts for name in papers for claim in load(name)}
        columns = ["claim", "paper", "statement", "verdict", "scale", "seeds", "seen"]
        columns += ["severity", "hardly", "fragile", "between"]
        found = rows[columns].astype(object)
        shown = found.where(found.notna(), None).to_dict("records")
        for one, parts in zip(shown, rows["parts"], strict=True):
            one["parts"] = [
                {
                    "expected": expected(judged.part),
                    "verdict": judged.outcome,
                    "scale": judged.scale,
                    "seeds": judged.seeds,
                    "seen": judged.seen,
                }
                for judged in parts
            ] or [{"expected": expected(part)} for part in waiting.get(one["claim"], ())]
        print(json.dumps(shown, indent=1))
        return
    print_table(
        ("claim", "verdict", "scale", "seeds", "seen"),
        [
            (row.claim, row.label, row.scale or "–", str(row.seeds), row.seen)
            for row in rows.itertuples()
        ],
    )
