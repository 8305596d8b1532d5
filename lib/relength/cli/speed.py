"""The command that measures training speed."""

from typing import TYPE_CHECKING, Annotated

import typer

from relength.cli.app import Results, collect_garbage_again, console
from relength.cli.output import print_table
from relength.errors import RelengthError
from relength.paths import RESULTS

if TYPE_CHECKING:
    from relength.runs.store import Store


def bench(
    task: Annotated[list[str] | None, typer.Option(help="Tasks to train on (repeatable).")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Side-by-side repeats.")] = 5,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="Length of one measurement (4 unless said).")
    ] = None,
    device: Annotated[str, typer.Option(help="Where stacks are trained: cpu or cuda.")] = "cpu",
    paper: Annotated[
        str | None, typer.Option(help="Instead: what this paper says of speed, on its page.")
    ] = None,
    experiment: Annotated[
        list[str] | None,
        typer.Option(help="Instead: time a step of its runs that have no price (repeatable)."),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="Of the runs of --experiment: smoke, reduced or paper.")
    ] = "reduced",
    results: Results = RESULTS,
) -> None:
    """Measure training speed here, beside the frozen baseline loop, and keep the result."""
    from relength.bench import speed
    from relength.report.speeds import limit_share
    from relength.runs.executors import check_device
    from relength.runs.store import Store
    from relength.specs import registry

    collect_garbage_again()
    check_device(device)
    if (paper or experiment) and (task or seconds or device != "cpu"):
        raise RelengthError(
            f"--{'paper' if paper else 'experiment'} has a task and a length of its own and "
            "measures on a CPU: leave out --task, --seconds and --device."
        )
    if paper and experiment:
        raise RelengthError("--paper and --experiment measure other things: leave out one.")
    if paper:
        _of_paper(paper, rounds, Store(results))
        return
    if experiment:
        _steps(experiment, scale, Store(results))
        return

    rows = []
    names = task or [
        name
        for one in registry.papers().values()
        for name in (one.speed.tasks if one.speed else ())
    ]
    for name in names:  # all of them now: a measurement takes minutes
        speed.check_task(name)
    for name in names:
        outcome = speed.measure(name, rounds, seconds or speed.SECONDS, device=device)
        speed.keep(Store(results), outcome, device)
        for trainer, rate in outcome["steps_per_second"].items():
            row = name, trainer, f"{rate:.1f}", f"{outcome['ratio_to_baseline'][trainer]:.2f}"
            memory = f"{outcome['memory_bytes'][trainer] / 2**20:,.0f} MiB"
            rows.append((*row, memory, limit_share(outcome, trainer)))
    print_table(("task", "way", "steps/s", "× plain loop", "memory", "share of limit"), rows)


def _steps(asked: list[str], scale: str, store: "Store") -> None:
    """Time and keep steps of runs that have no price here; say which cannot be timed, and why."""
    from relength.bench import steps
    from relength.runs import plan
    from relength.specs.spec import SCALES

    if scale not in SCALES:
        raise RelengthError(f"There is no scale {scale!r}: choose one of {', '.join(SCALES)}.")
    runs, lacking = plan.at_hand(plan.choose(asked, scale, 1))
    for why in lacking:
        console.print(f"Not timed: {why}", highlight=False)
    rows = []
    for spec, pace, price in steps.measure(runs, store):
        console.print(f"{spec.label}: {pace.seconds:.3g} s a step", highlight=False)
        rows.append((spec.label, f"{pace.seconds:.3g}", f"{price / 3600:.2f}"))
    if rows:
        print_table(("run", "s/step", "hours of a run"), rows)
    else:
        console.print("Every run that can be timed has a price here.", highlight=False)


def _of_paper(name: str, rounds: int, store: "Store") -> None:
    """Measure and keep what a paper has of its own: pairs of ways, and its benchmark."""
    from relength.bench import pairs, speed
    from relength.report.speeds import PAIR_COLUMNS, pair_rows
    from relength.specs import registry

    measured = [one.name for one in registry.papers().values() if one.benchmark or one.pairs]
    if name not in measured:
        raise RelengthError(
            f"No benchmark belongs to a paper {name!r}: choose from {', '.join(measured)}."
        )
    own = registry.papers()[name]
    if own.pairs:
        outcome = pairs.measure(own.load(own.pairs), rounds) | {"paper": name}
        speed.keep(store, outcome | {"baseline_threads": 1})
        print_table(PAIR_COLUMNS, pair_rows(outcome))
    if own.benchmark:
        outcome, words = own.load(own.benchmark)(rounds)
        speed.keep(store, outcome | {"baseline_threads": 1})
        console.print(words, highlight=False)
