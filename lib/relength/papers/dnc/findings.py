"""Passages of the chapter on what the runs of this paper show."""

import numpy as np

from relength.papers.dnc import budget, portraits, printed_p, states, when
from relength.papers.dnc.by_length import ABOVE, LAST, TRAINED, summaries
from relength.papers.dnc.lengths import Beside, beside_stateful
from relength.report.markdown import table
from relength.report.outcomes import NOTHING, busiest
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import title
from relength.report.tables import number, short
from relength.report.wording import words
from relength.verdicts.wording import plural

EXPERIMENT = "dnc_generalization"
BUDGETS = "dnc_when"


def reach(survey: Survey) -> str:
    """Say how far each controller gets, ours beside print, where there are runs."""
    runs = busiest(survey, EXPERIMENT)
    found = summaries(runs, TRAINED)
    found = found[found["seeds"] > 0]
    if found.empty:
        return NOTHING
    over, last = f"mean {TRAINED.span}", "mean, last weights"
    at_the_end = summaries(runs, LAST).set_index(["task", "model"])["means"]
    body = table(
        ("task", "controller", "seeds", "longest", "printed", over, last, "printed mean"),
        (
            (
                title(row.task), row.model, row.seeds,
                ", ".join(map(str, row.each)), number(row.printed),
                ", ".join(map(short, row.means)),
                ", ".join(map(short, at_the_end[row.task, row.model])), number(row.printed_mean),
            )
            for row in found.itertuples()
        ),
        name="tab-findings-dnc-reach",
        caption=f"How far our runs get: for each seed the longest input above {ABOVE:.0f} %, and "
        f"the mean accuracy in percent over lengths {TRAINED.span}, at scale *{runs.scale}*, of "
        "the weights that length 30 selects; then the mean with the last weights, and what the "
        "paper prints of ten runs.",
        numbers=("seeds", "longest", "printed", over, last, "printed mean"),
    )  # fmt: skip
    return f"{_ahead(runs)}\n\n{body}"


def _ahead(runs: Runs) -> str:
    """Say which constrained controllers are ahead of the stateful one, after equal training."""
    at_the_end = beside_stateful(runs, LAST)
    said = [
        f"**{title(task)}:** {_who(selected)}. With the last weights {_who(at_the_end[task])}."
        for task, selected in beside_stateful(runs).items()
    ]
    if not said:
        return "The stateful baseline and a constrained controller have no task in common yet."
    return (
        "Does the stateful baseline catch up if it is trained as long? Medians of the mean "
        f"accuracy over lengths {TRAINED.span}, with the weights that length 30 selects. "
        f"{' '.join(said)}"
    )


def _who(found: Beside) -> str:
    """Name the constrained controllers that are ahead of the stateful one."""
    ahead = [
        f"{row.Index} ({short(row.median)} %, {plural(row.seeds, 'run')})"
        for row in found.rivals.itertuples()
        if row.median > found.baseline
    ]
    who = f"{words(ahead)} {'is' if len(ahead) == 1 else 'are'}" if ahead else "none is"
    return (
        f"the baseline reaches {short(found.baseline)} % ({plural(found.seeds, 'run')}); of "
        f"{plural(len(found.rivals), 'constrained controller')} with runs, {who} ahead of it"
    )


def when_it_comes(survey: Survey) -> str:
    """The step at which accuracy arrives at trained lengths, and at those that select."""
    runs = busiest(survey, EXPERIMENT)
    found = when.medians(runs)
    found = found[found["seeds"] > 0]
    if found.empty:
        return NOTHING
    task = runs.specs[0].task
    rows = []
    for row in found.itertuples():
        steps = (getattr(row, f"first_{length}") for length in (task.iid_length, task.dev_length))
        arrive = [getattr(row, f"reached_{n}") for n in (task.iid_length, task.dev_length)]
        shown = [
            f"{step:,.0f}" if np.isfinite(step) else "not within the training" for step in steps
        ]
        each = [f"{n} of {row.seeds}" for n in arrive]
        rows.append((title(row.task), row.model, shown[0], each[0], shown[1], each[1]))
    heads = (f"length {task.iid_length}", "arrive", f"length {task.dev_length}", "arrive there")
    return table(
        ("task", "controller", *heads),
        rows,
        name="tab-findings-dnc-when",
        caption=f"When does it come? Median step from which the accuracy is above {ABOVE:.0f} % "
        f"{when.HELD} times in a row, at the longest length trained on and the one that selects, "
        f"of {runs.specs[0].training.steps:,} steps.",
        numbers=heads,
    )


def longer(survey: Survey) -> str:
    """Say who leads after half, once and twice the steps, where there are runs."""
    runs = busiest(survey, BUDGETS)
    if not runs.records:
        return NOTHING
    lines = "\n".join(f"- {line}" for line in budget.ahead(runs).splitlines())
    return (
        "Sort, one run of each controller and budget, the weights that length 30 selects: mean "
        f"accuracy in percent over lengths {TRAINED.span}.\n\n{lines}\n"
    )


def loops(survey: Survey) -> str:
    """In how many runs loops and generalisation come together, by task."""
    data = portraits.numbers(busiest(survey, EXPERIMENT))
    data = data[data["state_returns"].notna()]
    if data.empty:
        return NOTHING
    rows = []
    for task, own in data.groupby("task", sort=False):
        counts = []
        for part in (
            own[own["accuracy"] >= states.GENERALISES], own[own["accuracy"] < states.GENERALISES]
        ):  # fmt: skip
            returns = part["state_returns"].sort_values()
            span = f"{short(returns.iloc[0])} to {short(returns.iloc[-1])}" if len(part) else "–"
            counts += [len(part), int((returns >= states.LOOPS).sum()), span]
        rows.append((title(task), *counts))
    heads = (
        *("generalise", "of these with loops", "their returns"),
        *("do not generalise", "of those with loops", "and their returns"),
    )
    return table(
        ("task", *heads),
        rows,
        name="tab-findings-dnc-loops",
        caption="Do loops come with generalisation? Runs that generalise and runs that do not, how "
        f"many of each have loops (returns of {short(states.LOOPS)} or more), and their returns "
        "from the lowest to the highest, in percent of those of shuffled states.",
        numbers=heads,
    )


def significance(survey: Survey) -> str:
    """Say what the printed p values tell of their own making; no run is needed."""
    found = (
        printed_p.readings()
        .groupby(["test", "family"], sort=False)[["impossible", "numbers"]]
        .sum()
    )
    fits = found[(found["impossible"] == 0) & (found["numbers"] > 0)]
    named = words([f"*{test}, {printed_p.FAMILIES[family]}*" for test, family in fits.index])
    return (
        f"Of {len(found)} readings of the test and of its correction, {len(fits)} can give every "
        f"printed p value that can be checked: {named}.\n"
    )


PASSAGES = {
    "findings_dnc_reach": reach,
    "findings_dnc_when": when_it_comes,
    "findings_dnc_longer": longer,
    "findings_dnc_loops": loops,
    "findings_dnc_significance": significance,
}
