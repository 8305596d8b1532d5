"""Shared by all commands: the application, its consoles, and options that several of them have."""

import gc
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from relength.errors import RelengthError
from relength.paths import RESULTS

app = typer.Typer(
    name="relength",
    help="Rebuild the tables and figures of papers on length generalisation.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
console, stderr = Console(), Console(stderr=True)

Results = Annotated[Path, typer.Option(help="Folder of recorded runs.", show_default="results/")]


def collect_garbage_again() -> None:
    """Collect garbage again, for commands that train; what is loaded by now stays."""
    gc.freeze()
    gc.enable()


def scales_of(given: Iterable[str], known: Sequence[str]) -> list[str]:
    for scale in given:
        if scale not in known:
            raise RelengthError(
                f"There is nothing to plan at scale {scale!r}: choose one of {', '.join(known)}."
            )
    return list(given)


def store_of(results: Path) -> Any:
    """A store to read from. One that is not there is empty, but its name may be misspelt."""
    from relength.runs.store import Store

    store = Store(results)
    if not store.path.is_dir():
        named = store.path != RESULTS
        stderr.print(
            f"Note: There is no folder {escape(str(store.path))}, so nothing counts as recorded"
            f"{': look at the name given to --results' if named else ''}.",
            soft_wrap=True,
            highlight=False,
        )
    return store


def device_of(name: str, store: Any) -> Any:
    """Return the device at whose prices to plan.

    Without a GPU here that is the GPU with the most records, if there is any: plans are also made
    for machines elsewhere.
    """
    from relength.report.agenda import most_recorded
    from relength.runs.executors import check_device, gpu_here
    from relength.runs.prices import Device
    from relength.training.provenance import device_kind, device_name

    check_device(name, elsewhere=not gpu_here())
    kind = device_kind(name)
    if kind == "cuda" and not gpu_here():
        return most_recorded(store, (kind,))
    return Device(kind, device_name(name))
