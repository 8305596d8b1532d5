"""Recounts of "MemReasoner: A Memory-Augmented LLM Architecture for Multi-Hop Reasoning"."""

from collections.abc import Callable

import pandas as pd

from relength.report.wording import decimal, grid, numbers, words
from relength.specs.published import name_of

OURS = "MemReasoner-1.4B (bAbi)"
SHORT, LONG = "avg<=8k", "avg>=16k"
WITH_QWEN = tuple(f"memreasoner-table-{number}" for number in (8, 9, 10, 11))


def _lengths(artifact: str) -> pd.DataFrame:
    """A table of BABILong accuracies with the lengths as columns: 0k, 1k, ..."""
    cells = grid(artifact)
    return cells.rename(columns=lambda column: column.rpartition("/")[2])


def averages() -> str:
    """The averages of Tables 2, 3, 8 and 9 that do not follow from their cells."""
    checked, wrong = 0, []
    for name in ("2", "3", "8", "9"):
        cells = _lengths(f"memreasoner-table-{name}")
        for average, lengths in (
            (SHORT, ["0k", "1k", "2k", "4k", "8k"]),
            (LONG, ["16k", "32k", "64k", "128k"]),
        ):
            for row in cells.index[cells[average].notna()]:
                checked += 1
                mean = cells.loc[row, lengths].mean()
                if abs(mean - cells.loc[row, average]) > 0.3:  # 97.25 is printed as 97
                    wrong.append(
                        f"{row} in Table {name}: printed {decimal(cells.loc[row, average])}, "
                        f"recounted {decimal(mean)} from {numbers(cells.loc[row, lengths])}"
                    )
    return f"{checked - len(wrong)} of {checked} averages agree. {'; '.join(wrong)}."


def task_2_at_1k() -> str:
    """RMT and Mamba at 1k on task 2."""
    cells = _lengths("memreasoner-table-3")["1k"]
    found = [
        f"{row} {decimal(cells[row])}" for row in cells.index if "(bAbi)" in row and row != OURS
    ]
    return f"Table 3 has at 1k: {words(found)}."


def half_the_window() -> str:
    """Accuracy at half the context window relative to that at 0k, task 1."""
    cells = _lengths("memreasoner-table-2")
    phi, llama = (
        next(cells.loc[row] for row in cells.index if name in row)
        for name in ("Phi-3", "Llama-3-8B")
    )
    return (
        f"Table 2 gives Phi-3 {decimal(100 * phi['64k'] / phi['0k'], 0)} % of its 0k accuracy at "
        f"64k, half its window, and {decimal(100 * phi['16k'] / phi['0k'], 0)} % at 16k; Llama-3 "
        f"has {decimal(100 * llama['4k'] / llama['0k'], 0)} % at 4k, as the text says."
    )


def near_perfect() -> str:
    """The fine-tuned models on bAbI."""
    cells = grid("memreasoner-table-1")
    tuned = [row for row in cells.index if "(bAbi)" in row]
    return (
        "Table 1, tasks 1 and 2: "
        + "; ".join(f"{row} {numbers(cells.loc[row])}" for row in tuned)
        + "."
    )


def larimar_on_task_1() -> str:
    """List where Larimar is not above RMT and Mamba on task 1 beyond 0k."""
    cells = _lengths("memreasoner-table-2").drop(columns=[SHORT, LONG, "0k"])
    larimar = cells.loc[next(row for row in cells.index if "Larimar" in row)]
    rivals = cells.loc[[r for r in cells.index if r.startswith(("RMT", "Mamba")) and "(bAbi)" in r]]
    best = rivals.max()
    found = [
        f"{length} ({decimal(larimar[length])} against {decimal(best[length])})"
        for length in cells.columns
        if larimar[length] <= best[length]
    ]
    return f"Larimar is not above the best of them at {words(found)}."


def larimar_on_task_2() -> str:
    """Larimar beside MemReasoner on task 2 from 16k on."""
    cells = _lengths("memreasoner-table-3")[["16k", "32k", "64k", "128k"]]
    larimar = cells.loc[next(row for row in cells.index if "Larimar" in row)]
    return (
        f"From 16k on Larimar has {numbers(larimar)} (mean {decimal(larimar.mean())}), MemReasoner "
        f"{numbers(cells.loc[OURS])} (mean {decimal(cells.loc[OURS].mean())})."
    )


def inference_time() -> str:
    """Compute how the time per input grows with length in Table 6."""
    seconds = _lengths("memreasoner-table-6").loc["MemReasoner"].dropna()
    factor = (seconds / seconds.shift()).dropna()
    each = [f"{length} {decimal(value)}" for length, value in factor.items()]
    return f"From each length to the next the time grows by factors: {', '.join(each)}."


def query_update() -> str:
    """Compute the difference between alpha = 1 and alpha = 8 on task 2 in Table 18."""
    cells = grid("memreasoner-table-18")
    at_1k = cells["babilong/task2/1k"]
    main = _lengths("memreasoner-table-3").loc[OURS, "1k"]
    return (
        f"Table 18 has {decimal(at_1k['alpha=1'])} at 1k with alpha = 1 and "
        f"{decimal(at_1k['alpha=8'])} with alpha = 8; Table 3 prints {decimal(main)}."
    )


def epochs() -> str:
    """Robustness to new locations by training epochs in Table 20."""
    cells = grid("memreasoner-table-20")
    found = [
        f"{row} {decimal(value)}"
        for row, value in cells["babi_location_change/task2"].dropna().items()
    ]
    return f"Table 20, new locations, legible cells: {words(found)}."


def qwen() -> str:
    """Cells with Qwen2.5, averages left out, in which it is above MemReasoner."""
    found = []
    for name in WITH_QWEN:
        cells = grid(name)
        cells = cells.loc[:, ~cells.columns.str.contains("avg")]
        for row in cells.index.drop(OURS):
            found += [
                f"{row.removesuffix(' (bAbi)')} in {name_of(name)}, {column.rpartition('/')[2]} "
                f"({decimal(value)} against {decimal(cells.loc[OURS, column])})"
                for column, value in cells.loc[row].items()
                if value > cells.loc[OURS, column]
            ]
    ends = f"{name_of(WITH_QWEN[0])} to {name_of(WITH_QWEN[-1])}"
    return f"In {ends}, averages left out, MemReasoner is below {words(found)}."


RECOUNTS: tuple[Callable[[], str], ...] = (
    averages,
    task_2_at_1k,
    half_the_window,
    near_perfect,
    larimar_on_task_1,
    larimar_on_task_2,
    inference_time,
    query_update,
    epochs,
    qwen,
)
