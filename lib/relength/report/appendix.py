"""Close a notebook: deviations from the paper's runs, costs, and the price of a rebuild."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import pandas as pd

from relength.report import exhibits
from relength.report.exhibits import Exhibit, csv, rows_table
from relength.report.html import fill
from relength.report.runs import Runs
from relength.report.scoreboard import costs as spent
from relength.report.scoreboard import priced
from relength.report.self_checks import pairs_of_scales
from relength.report.style import title
from relength.runs.plan import least_seeds
from relength.runs.prices import Prices, measured_on, own, timed
from relength.runs.store import accuracies, usable
from relength.specs.experiments import experiment
from relength.specs.margins import load_margins
from relength.specs.spec import RunSpec, Scale
from relength.verdicts.deviations import load, papers
from relength.verdicts.wording import number

# In the notebook's list; contradictions have a page of their own, book/deviations_<paper>.md.
LISTED = ("deviation", "omission", "assumption")


def deviations(paper: str) -> Exhibit:
    """Tabulate what we do differently or had to choose: what text and code of the paper do, what
    we do.
    """
    every = load(paper) if paper in papers() else []
    entries = [entry for entry in every if entry.kind in LISTED]
    columns = dict.fromkeys(("what", "the paper", "here, and why", "expected effect"), "prose")
    data = pd.DataFrame([e.model_dump(exclude={"measures", "recount"}) for e in entries])
    name = f"{paper}-deviations"
    caption = (
        f"<b>What we do differently, or had to choose, {len(entries)} points.</b> The book's page "
        "of deviations and contradictions has the measured effect of each point. It also has "
        f"{len(every) - len(entries)} points in which text, code and tables of the paper "
        "contradict each other."
    )
    body = fill("deviations", columns=columns, rows=entries)
    html = exhibits.table(body, caption, name, [csv(name, data)])
    return Exhibit(html, f"{len(entries)} deviations from the paper's runs.", data)


def costs(runs: Runs, *beside: Runs) -> Exhibit:
    """Tabulate what is recorded, by scale and device, and what a complete grid would take.

    beside  the page's further experiments: all are counted together
    """
    pages = (runs, *beside)
    every = list({record["run_id"]: record for one in pages for record in one.every}.values())
    recorded = spent(every, ("scale", "device"))
    rows = [
        (
            f"recorded, {row.scale}",
            escape(row.device),
            f"{row.trainings:,}",
            str(row.failed),
            f"{row.steps:,}",
            f"{row.hours:,.1f}",
        )
        for row in recorded.itertuples()
    ]
    own_runs = [run for one in pages for run in own(one.experiment, usable(one.every))]
    few = timed(runs.store)
    for device in measured_on([one.experiment for one in pages], every, few):
        prices = Prices(own_runs, device, few=few)
        for scale in ("reduced", "paper"):
            estimate = rebuild(pages, scale, prices)
            rows.append(
                (
                    f"<i>to rebuild, {scale}, {least_seeds()} seeds</i>",
                    escape(str(device)),
                    f"{estimate['trainings']:,}",
                    "–",
                    f"{estimate['steps']:,}",
                    priced(
                        f"{estimate['hours']:,.1f}", estimate["unpriced"], estimate["trainings"]
                    ),
                )
            )
    columns = {"what": "text", "device": "text"} | dict.fromkeys(
        ("trainings", "failed", "steps", "hours"), "number"
    )
    name = f"{runs.page}-costs"
    caption = (
        "<b>Trainings and their price.</b> Hours are wall-clock hours of one core or one GPU, with "
        "evaluation. Rows <i>recorded</i> count all of the store, also runs executed twice and "
        "runs of settings that were mended since. Rows <i>to rebuild</i> price a complete "
        "grid: its steps, times the seconds per step of the fastest run of the same kind on the "
        "device. Slower runs may have shared their core. Without such a run, the seconds are those "
        "of a few timed steps, or the median of other tasks of the family. Recorded kinds of "
        "runs are priced at the steps they took. Divide by the number of cores."
        f"{_shared(runs)}{runs.on_generated_data}"
    )
    command = exhibits.training(runs)
    if not rows:
        return exhibits.waiting(caption, name, command, recorded)
    if recorded.empty:  # a few steps were timed, here or elsewhere
        caption += f" <b>Not run yet</b>: {exhibits.typed(command)} trains them."
    html = exhibits.table(rows_table(columns, rows), caption, name, [csv(name, recorded)])
    trainings = int(recorded["trainings"].sum())
    return Exhibit(html, f"{trainings:,} trainings, {recorded['hours'].sum():.1f} hours.", recorded)


def _shared(runs: Runs) -> str:
    """A remark on runs that other pages count as well."""
    others = runs.experiment.files[1:]
    headings = ", ".join(experiment(name).heading for name in others)
    return f" Runs shared with {headings} count here, too." if others else ""


class Shorter(NamedTuple):
    """The effect of the shorter training: pairs of runs, and the row of the largest change."""

    within: int  # the margin of accuracies, at every test
    pairs: int
    most: pd.Series


def shorter_training(data: pd.DataFrame) -> Shorter:
    """Compare both scales seed by seed; data: of :func:`cap_check`."""
    margin = load_margins().measures["accuracy"].around(0)
    gain = (data["paper"] - data["reduced"]).abs()
    widest = gain.groupby([data[name] for name in ("task", "model", "arm", "seed")]).max()
    return Shorter(int((widest <= margin).sum()), len(widest), data.loc[gain.idxmax()])


def _what_shorter_training_changes(data: pd.DataFrame, runs: Runs) -> str:
    """:func:`shorter_training` in words."""
    found, margin = shorter_training(data), load_margins().measures["accuracy"].around(0)
    most = found.most
    split = "in distribution" if most.test == "iid" else f"on the {most.test} split"
    where = f"at length {most.test}" if most.test.isdigit() else split
    return (
        f"In {found.within} of {found.pairs} pairs no number moves by more than {margin:g} points. "
        f"The largest change is that of {runs.label(most.model, most.arm)} on {title(most.task)}, "
        f"seed {most.seed}, {where}: {escape(number(most.reduced))} becomes "
        f"{escape(number(most.paper))}."
    )


def rebuild(every: Sequence[Runs], scale: Scale, prices: Prices) -> dict[str, float]:
    """Trainings, steps and hours of complete grids, and how many runs have no price.

    A run that two experiments share counts once. The hours are those of the others.
    """
    total = Counter(trainings=0, steps=0, hours=0.0, unpriced=0)
    counted: set[str] = set()
    for runs in every:
        whole = runs.experiment.specs(scale, range(least_seeds()))
        grid = [spec for spec in whole if spec.key not in counted]
        counted |= {spec.key for spec in grid}
        seconds, unpriced = prices.total(grid)
        total["trainings"] += len(grid)
        total["steps"] += sum(map(prices.steps, grid))
        total["hours"] += seconds / 3600
        total["unpriced"] += unpriced
    return dict(total)


def _who(spec: RunSpec) -> tuple[str, str, str, int]:
    return spec.task.name, spec.row, spec.model.arm, spec.seed


def cap_check(runs: Runs) -> Exhibit:
    """Equal seeds trained at both scales: does the shorter training change the answer?"""
    rows, numbers = [], []
    pairs = pairs_of_scales(own(runs.experiment, usable(runs.every)))
    for short, long in sorted(pairs, key=lambda pair: _who(pair[0].spec)):
        (task, model, arm, seed), cells = _who(short.spec), []
        both = {"reduced": short.record, "paper": long.record}
        found = {scale: accuracies(record) for scale, record in both.items()}
        for test in found["reduced"]:
            values = {scale: 100 * found[scale][test] for scale in both}
            cells.append(escape(f"{number(values['reduced'])} | {number(values['paper'])}"))
            numbers.append(dict(task=task, model=model, arm=arm, seed=seed, test=test, **values))
        steps = " | ".join(f"{both[scale]['cost']['steps']:,}" for scale in ("reduced", "paper"))
        label = runs.label(model, arm)
        rows.append((title(task), label, str(seed), steps, *cells))
    data = pd.DataFrame(
        numbers, columns=["task", "model", "arm", "seed", "test", "reduced", "paper"]
    )
    # Tasks of unlike lengths share columns, which then have numbers instead of lengths.
    longer = {tuple(tests.unique()[1:]) for _, tests in data.groupby("task")["test"]}
    named = longer.pop() if len(longer) == 1 else None
    tests = max(map(len, longer), default=0)
    further = named or [f"test {i + 2}" for i in range(tests)]
    heads = ("steps", "lengths trained on", *further)
    columns = {"task": "text", "model": "text", "seed": "number"} | dict.fromkeys(heads, "number")
    rows = [(*row, *[""] * (len(columns) - len(row))) for row in rows]
    name = f"{runs.page}-cap"
    measure = runs.measured.words
    caption = (
        "<b>Does the shorter training matter?</b> A row is one seed trained at both scales. Each "
        "bar has the reduced scale on its left and the paper's, with its own batches, on its "
        f"right. After the steps come the test lengths, shortest first, with {measure} in percent."
    )
    if not rows:
        return exhibits.waiting(caption, name, exhibits.training(runs, scale="paper"), data)
    caption += f" {_what_shorter_training_changes(data, runs)}{_shared(runs)}"
    html = exhibits.table(rows_table(columns, rows), caption, name, [csv(name, data)])
    return Exhibit(html, f"{len(rows)} runs trained at both scales.", data)
