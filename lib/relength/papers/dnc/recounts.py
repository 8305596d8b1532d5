"""Recounts of "State-Space Constraints Improve the Generalization of the DNC"."""

from collections.abc import Callable

import pandas as pd

from relength.report.wording import decimal, grid, numbers, words

STATEFUL, STATELESS = "STATEFUL-BASELINE", "STATELESS-BASELINE"
CONSTRAINED = ["COMPR", "REG", "COMPR&REG"]
SIGNIFICANT = 0.05


def statistic(artifact: str, name: str) -> pd.DataFrame:
    """One statistic of Table III or VI: a row per approach, a column per task."""
    cells = grid(artifact)
    chosen = [column for column in cells.columns if column.endswith(f"/{name}")]
    return cells[chosen].rename(columns=lambda column: column.partition("/")[0])


def best_stateful_trial() -> str:
    """The best stateful trial beside the medians of the others, in sort and copy."""
    best, median = (statistic("dnc-table-3", name) for name in ("max", "median"))
    found = []
    for task in ("sort", "copy"):
        others = median[task].drop(STATEFUL)
        below = others.index[others > best.loc[STATEFUL, task]]
        found.append(
            f"in {task} it is {decimal(best.loc[STATEFUL, task])}, below {len(below)} of "
            f"{len(others)} medians ({numbers(others)})"
        )
    return f"Table III: {words(found)}."


def ties_at_the_top() -> str:
    """The best trials in add and differentiation."""
    best = statistic("dnc-table-3", "max")
    return (
        f"Table III, best trials in the order of its columns: add {numbers(best['add'])}, "
        f"differentiation {numbers(best['differentiation'])}."
    )


def longer_with_memory() -> str:
    """Tasks in which the extended memory makes longer inputs possible: Tables II and V."""
    before, after = grid("dnc-table-2"), grid("dnc-table-5")
    constrained = before.loc[CONSTRAINED].max(), after.loc[CONSTRAINED].max()
    grew = [
        f"{task} ({decimal(constrained[0][task])} to {decimal(constrained[1][task])})"
        for task in before.columns
        if constrained[1][task] > constrained[0][task]
    ]
    sort = int((after["sort"] < before["sort"]).sum())
    return (
        f"The longest input of the constrained approaches grows in {len(grew)} tasks: "
        f"{words(grew)}. In sort it drops for {sort} of {len(before)} approaches."
    )


def baselines_with_memory() -> str:
    """Count what the baselines still do with the extended memory."""
    before, after = grid("dnc-table-2"), grid("dnc-table-5")
    gains = [
        f"{task} ({decimal(before.loc[STATEFUL, task])} to {decimal(after.loc[STATEFUL, task])})"
        for task in before.columns
        if after.loc[STATEFUL, task] > before.loc[STATEFUL, task]
    ]
    best = statistic("dnc-table-6", "max").loc[STATEFUL]
    high = [f"{decimal(value)} in {task}" for task, value in best.items() if value >= 95]
    none = int((after.loc[STATELESS] == 0).sum())
    return (
        f"The stateful baseline gains in {words(gains)}, and its best trials reach {words(high)}. "
        f"The stateless one has length 0 in {none} of {after.shape[1]} tasks."
    )


def stateless_in_sort() -> str:
    """The stateless controller beside the constrained approaches in sort."""
    length, median = grid("dnc-table-2")["sort"], statistic("dnc-table-3", "median")["sort"]
    return (
        f"Sort: longest input {decimal(length[STATELESS])} against {numbers(length[CONSTRAINED])}, "
        f"median accuracy {decimal(median[STATELESS])} against {numbers(median[CONSTRAINED])}."
    )


def significant_in_sort() -> str:
    """List the differences from the stateless controller that are significant in sort."""
    p = grid("dnc-table-4")["sort"]
    with_it = p[[row for row in p.index if STATELESS in row]]
    found = [f"{row} ({value:.2f})" for row, value in with_it.items() if value <= SIGNIFICANT]
    return f"Significant in Table IV: {words(found)}."


RECOUNTS: tuple[Callable[[], str], ...] = (
    best_stateful_trial,
    ties_at_the_top,
    longer_with_memory,
    baselines_with_memory,
    stateless_in_sort,
    significant_in_sort,
)
