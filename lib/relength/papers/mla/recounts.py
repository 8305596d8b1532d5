"""Recounts of "Monotonic Location Attention for Length Generalization"."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from relength.report.wording import decimal, grid, higher_lower, words
from relength.tasks import TASKS

PROBING = "mla-table-2"
VARIANTS = "mla-table-7"


def lookup_conflict() -> str:
    """Cells that are perfect in Table 2 and have an edit distance above 0 in Table 9."""
    accuracy, distance = grid(PROBING), grid("mla-table-9")
    found = (accuracy == 100) & (distance > 0)
    (row, column), *others = found.stack()[lambda cells: cells].index
    fair = accuracy[(distance >= 1) & (distance <= 1.4) & (accuracy < 100)].stack()
    rounded = accuracy[(distance == 0) & (accuracy < 100)].stack().dropna()
    return (
        f"{row} on {column} has an accuracy of {decimal(accuracy.loc[row, column])} and a distance "
        f"of {decimal(distance.loc[row, column])}; {len(others) or 'no'} other cells are in "
        "conflict. Other cells with distances of 1 to 1.4 have accuracies of "
        f"{decimal(fair.min())} to {decimal(fair.max())}. The other way round, a distance printed "
        f"as 0 stands beside accuracies of {decimal(rounded.min())} to "
        f"{decimal(rounded.max())} in {len(rounded)} cells, which is rounding."
    )


def six_of_eight() -> str:
    """Count the tasks that OneStepAttn and MonoAttn have at 100 % in Table 2."""
    cells = grid(PROBING)
    tasks = [column.partition("/")[0] for column in cells.columns]
    worst = cells.T.groupby(tasks, sort=False).min().T
    ours = worst.loc[["OneStepAttn", "MonoAttn"]]
    perfect, near = (ours == 100).sum(axis=1), (ours >= 98).sum(axis=1)
    short = cells.loc["MonoAttn"][lambda row: (row < 100) & (row >= 98)]
    inverted = [f"{decimal(v)} ({column})" for column, v in short.items() if "inv" in column]
    return (
        f"At 100 % at every length: {perfect['OneStepAttn']} tasks for OneStepAttn, "
        f"{perfect['MonoAttn']} for MonoAttn, which has {words(inverted)}. At 98 % or more: "
        f"{near['OneStepAttn']} and {near['MonoAttn']}."
    )


def better_than_all() -> str:
    """Cells of Table 2 in which another attention is above OneStepAttn or MonoAttn."""
    cells = grid(PROBING)
    found = []
    for ours in ("OneStepAttn", "MonoAttn"):
        above = (cells > cells.loc[ours]).drop(["OneStepAttn", "MonoAttn"]).sum(axis=1)
        found += [f"{row} is above {ours} in {count}" for row, count in above.items() if count]
    return f"Of {cells.shape[1]} cells, {words(found)}."


def rotary() -> str:
    """Bi-ROPE beside Bi-Relative, in the mean and where they differ by more than ten points."""
    rope, relative = grid(VARIANTS).loc["Bi-ROPE"], grid(PROBING).loc["Bi-Relative"]
    apart = [
        f"{column} ({decimal(rope[column])} against {decimal(relative[column])})"
        for column in rope.index
        if abs(rope[column] - relative[column]) > 10
    ]
    means = f"{decimal(rope.mean())} against {decimal(relative[rope.index].mean())}"
    return f"In the mean over all cells, {means}. More than ten points apart: {words(apart)}."


def relaxed() -> str:
    """RMonoAttn beside MonoAttn."""
    relaxed_row, gated = grid(VARIANTS).loc["RMonoAttn"], grid(PROBING).loc["MonoAttn"]
    better = relaxed_row.index[relaxed_row > gated]
    return f"RMonoAttn is {higher_lower(relaxed_row, gated)}; higher in {words(better)}."


def position_reference() -> str:
    """Mix models with and without PR in Table 7."""
    cells = grid(VARIANTS)
    found = [
        f"{row.removeprefix('Mix ')}: {higher_lower(cells.loc[f'{row} PR'], cells.loc[row])}"
        for row in cells.index
        if f"{row} PR" in cells.index
    ]
    return f"With PR, {'; '.join(found)}."


def mixing() -> str:
    """Mix models beside the same ones without content attention."""
    cells = pd.concat([grid(PROBING), grid(VARIANTS)])
    mixed = [row for row in cells.index if row.startswith("Mix") and not row.endswith("PR")]
    plain = [row.removeprefix("Mix ") for row in mixed]
    found = [
        f"{name}: {higher_lower(cells.loc[row], cells.loc[name])}"
        for row, name in zip(mixed, plain, strict=True)
    ]
    return f"Mixed, {'; '.join(found)}."


def scan() -> str:
    """SCAN with and without content attention, with and without PR: Tables 3 and 8."""
    cells = pd.concat(grid(f"mla-table-{n}")["scan/length"] for n in (3, 8)).to_dict()
    pr = [
        f"{row.removeprefix('Mix ')} ({decimal(cells[row + ' PR'], 2)} against {decimal(value, 2)})"
        for row, value in cells.items()
        if cells.get(f"{row} PR", value) < value
    ]
    unmixed = [
        f"{row.removeprefix('Mix ')} ({decimal(value, 2)} mixed, {decimal(plain, 2)} not)"
        for row, value in cells.items()
        if row.startswith("Mix ") and (plain := cells.get(row.removeprefix("Mix "), value)) > value
    ]
    return f"Mixing lowers {words(unmixed)}; PR lowers {words(pr)}."


def no_activation() -> str:
    """Steps without activation beside softstair in Table 4."""
    cells = grid("mla-table-4")
    compared = higher_lower(cells.loc["-Sigmoid"], cells.loc["-Step 3"])
    return f"Without activation OneStepAttn is {compared}."


def recopy_examples() -> str:
    """The printed ReCopy examples under the rule of Section 2."""
    source = tuple("4798")
    target = TASKS["recopy"]().pair(source).target
    counts = [f"{digit} {target.count(digit)} times" for digit in source]
    return (
        f"Under the rule the target of {' '.join(source)} has {words(counts)}: "
        f"{len(target)} symbols. Table 1 prints four 7s, Section 2 four 8s, and the Inv ReCopy "
        "example of Section 7 four 7s, four 9s and four 8s."
    )


def failure_example() -> str:
    """The first Inv ReCopy example of Table 10 under the rule of Section 2."""
    oracle = tuple("12557299379453340114")
    expands = len(TASKS["recopy"]().pair(oracle).target)
    printed = "1 2 555 555 77777 2 99999 99999 3 77777 7 99999 444 4 555 3 3 444 0 1 1 444"
    return (
        f"The printed oracle of {len(oracle)} digits expands to {expands} symbols, the printed "
        f"input has {len(printed.replace(' ', ''))}."
    )


def frozen_gate() -> str:
    """The gate of MonoAttn at the released first value, in single precision."""
    gate = 1 / (1 + np.exp(np.float32(-20)))
    gradient = gate * (1 - gate)
    return (
        f"In single precision the gate at 20 is {gate:g} and its gradient {gradient:g}: no step of "
        "any optimiser moves it."
    )


def reverse_gap() -> str:
    """Compute the difference between the two rows for one released function."""
    one, other = grid(PROBING).loc["MonoAttn"], grid(VARIANTS).loc["RMonoAttn"]
    gap = (one - other).abs().sort_values(ascending=False)
    largest = [
        f"{column} ({decimal(one[column])} and {decimal(other[column])})"
        for column in gap.index[:4]
    ]
    return (
        f"The printed rows differ in {int((gap > 0).sum())} of {len(gap)} cells, most in "
        f"{words(largest)}."
    )


RECOUNTS: tuple[Callable[[], str], ...] = (
    lookup_conflict,
    six_of_eight,
    better_than_all,
    rotary,
    relaxed,
    position_reference,
    mixing,
    scan,
    no_activation,
    recopy_examples,
    failure_example,
    frozen_gate,
    reverse_gap,
)
