"""Find where wrong outputs go wrong: the first divergence from the target, in every recorded run.

Three sources. Every record has, for each test set, the mean share of an output that is right before
its first error; with the share of outputs that are right to the end, this gives the same for the
wrong ones alone, over all of them. Part of the records also counts in which tenth of its target
each wrong output first errs. And every record has one decoded sample, the first of the shortest
unseen length, which can be shown symbol by symbol.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import scipy

from relength.papers.mla.focusing import END, divergence
from relength.papers.mla.lengths import symbols
from relength.report import exhibits
from relength.report.exhibits import Exhibit, badges, rows_table
from relength.report.figures import exhibit
from relength.report.grid import NOT_COUNTED, NOT_RUN, Grid
from relength.report.html import fill
from relength.report.runs import Runs
from relength.report.style import LIGHT, TEXT_SHARE, Layout, aligned, colour, title
from relength.runs.store import Record, usable
from relength.specs import published
from relength.verdicts.wording import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = "mla-table-10"
NONE_FAILS = "none fails"
EXPECTED = ("thin", "if errors were independent")
FEWEST = 20  # failing outputs that tell the chance of an error
SEQUENCES = {"right": "number", "then": "text", "written, and below it what was asked for": "text"}
HOW_TO_READ = (
    "Upper line: what the model wrote, right up to the bar. Lower line: the target. E is the end."
)


# Over all failing samples


def shares(runs: Runs) -> pd.DataFrame:
    """One row per run and unseen test: how much fails, and how far wrong outputs are right.

    Columns: task, test, model, arm, seed, and in percent failing (outputs), right_before (of a
    failing output's symbols, those before its first error; the mean over all of them), only_end
    (failing outputs in which only the end is wrong) and if_independent (what right_before would be
    if every symbol went wrong with the same chance, see :func:`if_independent`). The last three are
    NaN where nothing fails, the last one also where too little does to tell the chance.
    """
    rows = []
    for model, arm, task, records in _cells(runs):
        lengths = {test: round(symbols(task, test)) for test in runs.tests[task][1:]}
        for record in records:
            expected = if_independent(record, lengths)
            for test in lengths:
                found = _share(record, test)
                if found["failing"] and test in expected:
                    found["if_independent"] = expected[test]
                rows.append({"task": task, "test": test, "model": model, "arm": arm, **found})
    measured = ("failing", "right_before", "only_end", "if_independent")
    return pd.DataFrame(rows, columns=["task", "test", "model", "arm", "seed", *measured])


def _cells(runs: Runs) -> Iterator[tuple[str, str, str, list[Record]]]:
    for model, arm in runs.rows:
        for task in runs.tasks:
            yield model, arm, task, runs.cell(model, arm, task)


def _share(record: Record, test: str) -> dict[str, float]:
    found = record["checkpoints"]["selected"]["tests"][test]
    exact, seed = found["exact_match"], {"seed": record["spec"]["seed"]}
    failing = 1 - exact
    if failing <= 0:
        return {**seed, "failing": 0.0, "right_before": np.nan, "only_end": np.nan}
    # The share of an output that is right before its first error is 1 for those that are right.
    right = (found["correct_prefix"] - exact) / failing
    only_end = (found["exact_match_true_length"] - exact) / failing
    return {
        **seed,
        "failing": 100 * failing,
        "right_before": 100 * float(np.clip(right, 0, 1)),
        "only_end": 100 * float(np.clip(only_end, 0, 1)),
    }


def if_independent(record: Record, lengths: Mapping[str, int]) -> dict[str, float]:
    """Compute a run's right_before at each test, in percent, if its errors were independent.

    lengths  symbols of an output of each unseen test, the shortest first

    If a symbol is right with chance q whatever came before, the mean share of n symbols that is
    right before the first error is (q + q² + … + qⁿ) / n. The shortest test at which at least
    :data:`FEWEST` outputs fail gives q, and q what to expect of the failing outputs there and at
    longer tests; empty where there is no such test.
    """
    found = record["checkpoints"]["selected"]["tests"]
    failing = [t for t in lengths if found[t]["items"] * (1 - found[t]["exact_match"]) >= FEWEST]
    if not failing:
        return {}
    first = failing[0]
    measured, n = found[first]["correct_prefix"], lengths[first]
    q = float(scipy.optimize.brentq(lambda q: _right_before(q, n) - measured, 0.0, 1.0))
    return {
        test: 100 * (_right_before(q, n) - q**n) / (1 - q**n)
        for test, n in lengths.items()
        if n >= lengths[first]
    }


def _right_before(q: float, n: int) -> float:
    """The mean share of n symbols before the first error, if each is right with chance q."""
    return float(np.mean(q ** np.arange(1, n + 1)))


def where(runs: Runs, number: int) -> Exhibit:
    """Draw how much of a wrong output is right before its first error: a panel per model and
    task.
    """
    data = shares(runs)

    def draw(layout: Layout) -> "Figure":
        grid = Grid(runs, layout, [("dot", "one seed"), ("line", "median"), EXPECTED])
        for j, task in enumerate(runs.tasks):
            tests = runs.tests[task][1:]
            grid.ticks(j, _places(len(tests)), tests)
        for i, j, records in runs.panels():
            if not records:
                grid.not_run(i, j)
                continue
            (model, arm), task = runs.rows[i], runs.tasks[j]
            cell = data[(data["model"] == model) & (data["arm"] == arm) & (data["task"] == task)]
            _panel(grid, i, j, model, [cell[cell["test"] == t] for t in runs.tests[task][1:]])
        return grid.figure

    caption = (
        "How far wrong outputs are right. Each dot is a run: of the outputs that it gets wrong at "
        "that length, the mean percentage of symbols before the first error. The end counts as a "
        "symbol. Just below 100, only the end is wrong; at 0, nothing is right. A panel without "
        "dots has no wrong output. The thin line shows what independent errors would give, each "
        f"symbol with the same chance. The shortest test with {FEWEST} wrong outputs sets that "
        "chance; the line is the median over seeds."
    )
    parts = []
    for (model, arm), shown in right_at_longest(runs).items():
        words = "nothing fails" if np.isnan(shown) else f"{shown:.0f} percent"
        parts.append(f"{runs.label(model, arm).replace(', ', ' ')}: {words}")
    alt = (
        "Grid of the share of symbols right before the first error against length, a column per "
        "task and a row per model. Median over tasks and seeds at the longest length: "
        f"{'; '.join(parts) or NOT_RUN}."
    )
    return exhibit(runs, number, draw, "where", caption, alt, data)


def right_at_longest(runs: Runs) -> pd.Series:
    """Median right_before of :func:`shares` at the longest length, by model and arm."""
    data = shares(runs)
    longest = data[data["test"] == data["task"].map(lambda task: runs.tests[task][-1])]
    return longest.groupby(["model", "arm"], sort=False)["right_before"].median()


def _places(count: int) -> np.ndarray:
    return np.linspace(0.12, 0.88, count) if count > 1 else np.array([0.5])


def _panel(grid: Grid, i: int, j: int, model: str, tests: list[pd.DataFrame]) -> None:
    places, shade = _places(len(tests)), colour(model)
    kept = [
        (place, cell["right_before"].dropna() / 100)
        for place, cell in zip(places, tests, strict=True)
    ]
    kept = [(place, values) for place, values in kept if len(values)]
    if not kept:
        x, y = grid.points(i, j, 0.5, 0.5)
        words = {"ha": "center", "va": "center", "size": 6.5}
        grid.text(float(x), float(y), NONE_FAILS, **words)
        return
    medians = [float(values.median()) for _, values in kept]
    x, y = grid.points(i, j, [place for place, _ in kept], medians)
    grid.axes.plot(x, y, lw=1.3, color=shade, alpha=0.8, zorder=2)
    expected = [float(cell["if_independent"].median()) / 100 for cell in tests]
    x, y = grid.points(i, j, places, expected)
    grid.axes.plot(x, y, lw=0.8, color=LIGHT.ink, zorder=1)
    for place, values in kept:
        spread = place + 0.05 * (np.arange(len(values)) - (len(values) - 1) / 2)
        x, y = grid.points(i, j, spread, values)
        grid.axes.scatter(x, y, s=7, color=shade, linewidth=0, zorder=3)


def tenths(runs: Runs) -> pd.DataFrame:
    """Tabulate where first errors are at the longest test: a row per run and tenth of the target.

    Of each run the first execution that counted them. Columns: task, model, arm, seed, test, part
    (tenths that are written, 0 to 10) and failed (percent of the outputs that fail, whose first
    error lies there or before; NaN where none fails).
    """
    every = (r for r in runs.every if r["status"] == "ok" and _counts_first_errors(r))
    counted = {record["key"]: record for record in usable(every)}
    rows = []
    for spec in runs.specs:
        if spec.key not in counted:
            continue
        test = spec.task.tests[-1]
        found = counted[spec.key]["checkpoints"]["selected"]["tests"][test]
        sums = np.cumsum([0, *found["first_errors"]])
        who = (spec.task.name, spec.row, spec.model.arm, spec.seed, test)
        rows += [
            (*who, part, 100 * count / sums[-1] if sums[-1] else np.nan)
            for part, count in enumerate(sums)
        ]
    names = ["task", "model", "arm", "seed", "test", "part", "failed"]
    return pd.DataFrame(rows, columns=names)


def _counts_first_errors(record: Record) -> bool:
    tests = record["checkpoints"]["selected"]["tests"]
    return all("first_errors" in found for found in tests.values())


def where_exactly(runs: Runs, number: int) -> Exhibit:
    """The distribution of first errors over the outputs of the longest test that fail."""
    data = tenths(runs)

    def draw(layout: Layout) -> "Figure":
        grid = Grid(runs, layout, [("line", "one seed"), ("thin", "anywhere alike")])
        for j in range(len(runs.tasks)):
            grid.ticks(j, (0.13, 0.89), ("start", "end"), "output")
        for i, j, records in runs.panels():
            (model, arm), task = runs.rows[i], runs.tasks[j]
            own = data[(data["model"] == model) & (data["arm"] == arm) & (data["task"] == task)]
            if own["failed"].isna().all():
                none = NONE_FAILS if len(own) else NOT_COUNTED
                grid.not_run(i, j, none if records else NOT_RUN)
                continue
            x, y = grid.points(i, j, [0, 1], [0, 1])
            grid.axes.plot(x, y, lw=0.8, color=LIGHT.ink, zorder=1)
            for _, line in own.groupby("seed"):
                x, y = grid.points(i, j, line["part"] / 10, line["failed"] / 100)
                grid.axes.plot(x, y, lw=1.3, color=colour(model), zorder=2)
        return grid.figure

    caption = (
        "Where the first error lies. Each line is a run at the longest test. It shows the "
        "percentage of its wrong outputs whose first error has come by then, from the first symbol "
        "(left) to the end (right). A line that rises early goes wrong at once. A line along the "
        "thin one goes wrong anywhere alike. A line that rises late holds for long. Only part of "
        "the records counts first errors, so some runs are missing here."
    )
    said = "; ".join(
        f"{runs.label(model, arm).replace(', ', ' ')} "
        + (NONE_FAILS if np.isnan(percent) else f"{percent:.0f}")
        for (model, arm), percent in failed_by_middle(data).items()
    )
    alt = (
        "Grid of the share of failing outputs that have gone wrong against how much is written, a "
        "column per task and a row per model. Percent by the middle of the output, median over "
        f"tasks and seeds: {said or NOT_COUNTED}."
    )
    return exhibit(runs, number, draw, "where-exactly", caption, alt, data)


def failed_by_middle(data: pd.DataFrame) -> pd.Series:
    """Percent of wrong outputs that err in their first half, by model and arm.

    data: of :func:`tenths`. A value is the median over tasks and seeds, NaN where none fails.
    """
    return data[data["part"] == 5].groupby(["model", "arm"], sort=False)["failed"].median()


def numbers(runs: Runs) -> str:
    """The medians of :func:`shares` as plain text."""
    data = shares(runs)
    lines = [
        f"Wrong outputs, {runs.scale} scale: percent right before the first error",
        "(percent of outputs that are wrong), median over seeds",
    ]
    for task in runs.tasks:
        tests = runs.tests[task][1:]
        rows = [[f"{title(task)}, length", "seeds", *tests]]
        for model, arm in (row for row in runs.rows if runs.plans(*row, task)):
            cell = data.query("task == @task and model == @model and arm == @arm")
            shown = (_median(cell[cell["test"] == test]) for test in tests)
            rows.append([f"  {runs.label(model, arm)}", str(cell["seed"].nunique()), *shown])
        lines += ["", *aligned(*rows)]
    kinds = diverging(runs)["then"].value_counts()
    said = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or without_errors(runs)
    return "\n".join([*lines, f"\nFirst test samples that fail, by their first error: {said}."])


def without_errors(runs: Runs) -> str:
    """State of runs without a failing sample: :data:`NONE_FAILS` if a sample is recorded."""
    recorded = any(record.get("attention") for *_, records in _cells(runs) for record in records)
    return NONE_FAILS if recorded else NOT_RUN


def _median(cell: pd.DataFrame) -> str:
    if cell.empty:
        return NOT_RUN
    failing = number(float(cell["failing"].median()))
    right = cell["right_before"].dropna()
    return f"{number(float(right.median())) if len(right) else '–'} ({failing})"


# One sample at a time


def diverging(runs: Runs) -> pd.DataFrame:
    """The recorded samples that fail, one row each, with their first divergence.

    Columns: model, arm, task, test, seed, right (symbols before the divergence), of (symbols of the
    target), then (:data:`relength.papers.mla.focusing.Kind`), target and prediction (lists, up to
    their ends).
    """
    rows = []
    for model, arm, task, records in _cells(runs):
        for record in records:
            sample = record.get("attention")
            found = sample and divergence(sample["target"], sample["prediction"])
            if found:
                who = {"model": model, "arm": arm, "task": task, "test": sample["test"]}
                both = {"target": sample["target"], "prediction": _until_end(sample["prediction"])}
                counted = {"right": found.right, "of": len(sample["target"]), "then": found.kind}
                rows.append({**who, "seed": record["spec"]["seed"], **counted, **both})
    names = ["model", "arm", "task", "test", "seed", "right", "of", "then", "target", "prediction"]
    return pd.DataFrame(rows, columns=names)


def samples(runs: Runs) -> Exhibit:
    """The recorded samples that fail, each with its first divergence: of each cell the lowest
    seed."""
    data = diverging(runs)
    rows = [
        (
            *(runs.label(row.model, row.arm), title(row.task), row.test, str(row.seed)),
            *_shown(row.model, row.target, row.prediction),
        )
        for row in data.drop_duplicates(["model", "arm", "task"]).itertuples()
    ]
    columns = {"model": "text", "task": "text", "length": "number", "seed": "number"}
    caption = (
        f"<b>Where the first test sample fails.</b> {badges(runs.scale, runs.freshness)} The "
        "sample is the first of the shortest unseen length. A row shows the lowest seed that gets "
        f"it wrong; the data have every seed. {HOW_TO_READ}"
    )
    name = f"{runs.page}-samples"
    listed = data.assign(**{key: data[key].map(" ".join) for key in ("target", "prediction")})
    links = [exhibits.csv(name, listed), exhibits.specs(name, runs.records)]
    body = rows_table(columns | SEQUENCES, rows) if rows else f"<p>{without_errors(runs)}</p>"
    html = exhibits.table(body, caption, name, [*links, exhibits.notebook(runs.page)])
    return Exhibit(html, f"{len(data)} failing samples.", listed)


def printed() -> pd.DataFrame:
    """The paper's four failures: model, task, target and prediction, both with an end token.

    The sequences stand in the notes of the published table; the numbers beside them were counted
    by hand and are ``oracle_length``, ``prediction_length`` and ``correct_prefix_length``.
    """
    rows = []
    for name, cells in published.table(EXAMPLES).groupby("row", sort=False):
        notes = dict(
            part.strip().split(" ", 1)
            for part in ";".join(cells["note"]).replace(":", "").split(";")
        )
        counts = cells.set_index("task")["value"].astype(int)
        rows.append(
            {
                "model": name.split(" (")[0],
                "task": notes["task"],
                "target": (*notes["oracle"].split(), END),
                "prediction": (*notes["prediction"].split(), END),
                **counts.to_dict(),
            }
        )
    return pd.DataFrame(rows)


def examples() -> Exhibit:
    """The paper's four failures, their first divergence found by the same code as ours."""
    data = printed()
    rows = [
        (row.model, title(row.task), *_shown(row.model, row.target, row.prediction))
        for row in data.itertuples()
    ]
    caption = f"<b>The paper's failures.</b> {HOW_TO_READ}"
    name = f"{EXAMPLES}-printed"
    listed = data.assign(**{key: data[key].map(" ".join) for key in ("target", "prediction")})
    body = rows_table({"model": "text", "task": "text"} | SEQUENCES, rows)
    html = exhibits.table(body, caption, name, [exhibits.csv(name, listed)])
    return Exhibit(html, f"The {len(rows)} failures that the paper prints.", listed)


def _shown(model: str, target: Sequence[str], prediction: Sequence[str]) -> tuple[str, str, str]:
    """Cells of a table: how many symbols are right, what comes then, and both sequences."""
    found, written = divergence(target, prediction), _until_end(prediction)
    shade = f"color-mix(in srgb, {colour(model)} {TEXT_SHARE}%, var(--rl-ink))"
    sequences = fill(
        "sequences",
        shade=shade,
        right=_spelled(written[: found.right]),
        wrong=_spelled(written[found.right :]),
        wanted_right=_spelled(target[: found.right]),
        wanted_wrong=_spelled(target[found.right :]),
    )
    return f"{found.right} of {len(target)}", found.kind, sequences


def _until_end(tokens: Sequence[str]) -> list[str]:
    tokens = list(tokens)
    return tokens[: tokens.index(END) + 1] if END in tokens else tokens


def _spelled(tokens: Sequence[str]) -> str:
    return " ".join("E" if token == END else token for token in tokens)
