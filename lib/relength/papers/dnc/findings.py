"""Passages of the chapter on what the runs of this paper show."""

from collections import Counter

import numpy as np
import pandas as pd

from relength.papers.dnc import budget, portraits, printed_p, states, when
from relength.papers.dnc.by_length import (
    ABOVE,
    EXTENDED,
    LAST,
    MEASURES,
    TRAINED,
    curves,
    summaries,
)
from relength.papers.dnc.lengths import CONSTRAINED, STATEFUL, Beside, beside_stateful
from relength.papers.dnc.recounts import STATELESS
from relength.report.markdown import table
from relength.report.outcomes import NOTHING, busiest
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import title
from relength.report.tables import short
from relength.report.wording import sentences, words
from relength.verdicts.wording import number, plural, verb

EXPERIMENT = "dnc_generalization"
BUDGETS = "dnc_when"


def reach(survey: Survey) -> str:
    """Say how far each controller gets, ours beside print, where there are runs.

    The seeds are those of verdicts; what later ones change is said once.
    """
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
        caption=f"How far our runs get: for each seed the longest input above {ABOVE:.0f} % (0 if "
        f"none is), and the mean accuracy in percent ({MEASURES}) over lengths {TRAINED.span}, "
        f"at scale *{runs.scale}*, of the weights that length 30 selects; then the mean with the "
        "last weights, and what the paper prints of ten runs.",
        numbers=("seeds", "longest", "printed", over, last, "printed mean"),
    )  # fmt: skip
    return f"{_ahead(runs)}\n\n{_later_seeds(runs)}{body}"


def _ahead(runs: Runs) -> str:
    """Say which constrained controllers are ahead of the stateful one, after equal training."""
    selected, at_the_end = beside_stateful(runs), beside_stateful(runs, LAST)
    if not selected:
        return "The stateful baseline and a constrained controller have no task in common yet."
    leaders = {task: (_leaders(selected[task]), _leaders(at_the_end[task])) for task in selected}
    changed = [title(task) for task, (chosen, last) in leaders.items() if chosen != last]
    choice = f" For {words(changed)}, this choice decides which are." if changed else ""
    on_trained = _on_the_longest_trained(runs)
    choice += _known_by_choice(on_trained)
    single = sum(found.seeds == 1 for found in selected.values())
    alone = f" On {plural(single, 'task')} the baseline has one run." if single else ""
    known = _learned(on_trained)
    lost = [title(task) for task in selected if task not in known]
    weak = (
        f" On {words(lost)} no run knows the longest inputs trained on, so that a lead says little."
        if lost
        else ""
    )
    lines = "\n".join(
        f"- **{title(task)}:** {_who(found)} With the last weights, {_who(at_the_end[task])}"
        for task, found in selected.items()
    )
    return (
        "**After equal training, is a constrained controller better than the stateful baseline?** "
        f"With the weights that length 30 selects, the median run is ahead {_ahead_on(selected)}. "
        f"With the last weights, it is {_ahead_on(at_the_end)}.{choice} Were all controllers "
        f"alike, each would be ahead on half of the tasks.{alone}{weak} Medians of the mean "
        f"accuracy over lengths {TRAINED.span}:\n\n{lines}"
    )


def _known_by_choice(on_trained: "pd.Series[bool]") -> str:
    """Count the runs of which one choice of weights knows the trained lengths, the other not."""
    data, said = on_trained.unstack("weights", sort=False), []
    last = LAST.checkpoint, "the last weights"
    chosen = TRAINED.checkpoint, "those that length 30 selects"
    for (better, these), (worse, those) in (last, chosen), (chosen, last):
        lost = data.index[data[better] & ~data[worse]]
        if len(lost):
            of = Counter((task, model) for task, model, _ in lost)
            listed = words(f"{n} of {model} on {title(task)}" for (task, model), n in of.items())
            said.append(
                f"in {len(lost)} of {plural(len(data), 'run')} {these} know the longest inputs "
                f"trained on, and {those} do not ({listed})"
            )
    return f" {sentences(*said)}" if said else ""


def _on_the_longest_trained(runs: Runs) -> "pd.Series[bool]":
    """Tell whether a run is above ABOVE there, by task, model, seed and weights."""
    longest = {spec.task.name: spec.task.iid_length for spec in runs.specs}
    both = pd.concat(
        [curves(runs, memory).assign(weights=memory.checkpoint) for memory in (TRAINED, LAST)]
    )
    there = both[both["length"] == both["task"].map(longest)]
    return there.set_index(["task", "model", "seed", "weights"])["accuracy"] > ABOVE


def stateless(survey: Survey) -> str:
    """Compare the stateless baseline with the stateful one, by either choice of weights."""
    runs = busiest(survey, EXPERIMENT)
    said = []
    for weights, memory in ("that length 30 selects", TRAINED), ("of the last step", LAST):
        found = summaries(runs, memory).set_index(["model", "task"])
        own, other = (found.loc[model].dropna(subset="median") for model in (STATELESS, STATEFUL))
        tasks = [task for task in runs.tasks if task in own.index and task in other.index]
        if not tasks:
            return NOTHING
        ahead = [task for task in tasks if own["median"][task] > other["median"][task]]
        named = f" ({words(map(title, ahead))})" if ahead else ""
        said.append(
            f"on {len(ahead)} of {plural(len(tasks), 'task')} with the weights {weights}{named}"
        )
    single = sum(min(own["seeds"][task], other["seeds"][task]) == 1 for task in tasks)
    alone = f" On {plural(single, 'task')} one of them has a single run." if single else ""
    return (
        f"The median run of {STATELESS} has a higher mean accuracy over lengths {TRAINED.span} "
        f"than that of {STATEFUL} {words(said)}.{alone}\n"
    )


def _learned(on_trained: "pd.Series[bool]") -> set[str]:
    """The tasks on which a run of the stateful baseline or of a constrained controller knows the
    longest inputs that it was trained on, by either choice of weights.
    """
    asked = on_trained.index.get_level_values("model").isin([STATEFUL, *CONSTRAINED])
    return set(on_trained.index[on_trained & asked].get_level_values("task"))


def _later_seeds(runs: Runs) -> str:
    """Tell the medians of controllers that have runs beyond the seeds of verdicts."""
    few, every = summaries(runs), summaries(runs.with_later_seeds())
    more = every[every["seeds"].to_numpy() > few["seeds"].to_numpy()]
    if more.empty:
        return ""
    parts = []
    for task, own in more.groupby("task", sort=False):
        medians = (
            f"{row.model} {short(row.median)} % ({plural(row.seeds, 'run')})"
            for row in own.itertuples()
        )
        parts.append(f"{title(task)}, {words(medians)}")
    return (
        "Some have further seeds, which verdicts take in their second stage alone. With these, "
        f"medians are: {'; '.join(parts)}.\n\n"
    )


def _ahead_on(beside: dict[str, Beside]) -> str:
    """Count the tasks on which each controller is ahead of the stateful one: *on 4 of 7 tasks with
    COMPR*.
    """
    said = []
    for model in CONSTRAINED:
        there = [found for found in beside.values() if model in found.rivals.index]
        ahead = sum(model in _leaders(found) for found in there)
        if there:
            said.append(f"on {ahead} of {plural(len(there), 'task')} with {model}")
    return words(said)


def _leaders(found: Beside) -> list[str]:
    """The constrained controllers that are ahead of the stateful one."""
    return [row.Index for row in found.rivals.itertuples() if row.median > found.baseline]


def _who(found: Beside) -> str:
    """Name the constrained controllers that are ahead of the stateful one, and the others."""
    said = {
        row.Index: f"{row.Index} {short(row.median)} % ({plural(row.seeds, 'run')})"
        for row in found.rivals.itertuples()
    }
    ahead = _leaders(found)
    behind = [name for name in said if name not in ahead]
    parts = [f"the baseline reaches {short(found.baseline)} % ({plural(found.seeds, 'run')})"]
    if ahead:
        parts.append(f"ahead of it: {words(said[name] for name in ahead)}")
    if behind:
        parts.append(f"not ahead: {words(said[name] for name in behind)}")
    return f"{'; '.join(parts)}."


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
    return f"{_arrivals(runs, found)}\n\n{_leads(runs)}" + table(
        ("task", "controller", *heads),
        rows,
        name="tab-findings-dnc-when",
        caption=f"When does it come? Median of the first of {when.HELD} recorded steps in a row "
        f"with an accuracy above {ABOVE:.0f} %, at the longest length trained on and the one that "
        f"selects, of {runs.specs[0].training.steps:,} steps.",
        numbers=heads,
    )


def _leads(runs: Runs) -> str:
    """Say at how many points of training a constrained controller is ahead, and from when on."""
    found = when.leads(runs)
    if found.empty:
        return ""
    lines = []
    for task, rows in found.groupby("task", sort=False):
        parts = [
            f"{row.model} at {row.ahead} of {row.points} points"
            + (f", and always from step {row.since:,.0f} on" if np.isfinite(row.since) else "")
            for row in rows.itertuples()
        ]
        lines.append(f"- **{title(task)}:** {'; '.join(parts)}.")
    further = runs.specs[0].task.dev_length
    return (
        "**Since when is a constrained controller ahead of the stateful baseline?** Compared are "
        f"medians of runs at length {further}, point by point of the recorded training:\n\n"
        + "\n".join(lines)
        + "\n\n"
    )


def _arrivals(runs: Runs, found: pd.DataFrame) -> str:
    """Say, task by task, how many runs arrive at the trained lengths and at those that select."""
    first, said = runs.specs[0], []
    known, further = first.task.iid_length, first.task.dev_length
    for task, rows in found.groupby("task", sort=False):
        total = int(rows["seeds"].sum())
        there = rows[rows[f"reached_{further}"] > 0]
        who = words(f"{r.model} {getattr(r, f'reached_{further}')}" for r in there.itertuples())
        said.append(
            f"**{title(task)}**: {int(rows[f'reached_{known}'].sum())} of {plural(total, 'run')} "
            f"arrive at length {known}, {int(there[f'reached_{further}'].sum())} at length "
            f"{further}{f' ({who})' if who else ''}."
        )
    return f"Within {first.training.steps:,} steps: {' '.join(said)}"


def longer(survey: Survey) -> str:
    """Say who leads after half, once and twice the steps, where there are runs."""
    runs = busiest(survey, BUDGETS)
    if not runs.records:
        return NOTHING
    lines = "\n".join(f"- {line}" for line in budget.ahead(runs).splitlines())
    return (
        "Sort, one run of each controller and budget, the weights that length 30 selects: mean "
        f"accuracy in percent over lengths {TRAINED.span}.\n\n{lines}\n\n{_catches_up(runs)}"
        f"{_among_others(runs, busiest(survey, EXPERIMENT).with_later_seeds())}\n"
    )


def _catches_up(runs: Runs) -> str:
    """Say whether the baseline is ahead after the most steps that it and a rival have."""
    found = budget.by_steps(runs).dropna(subset="mean")
    means = found.pivot_table(index="steps", columns="model", values="mean")
    rivals = [model for model in CONSTRAINED if model in means]
    if STATEFUL not in means or not rivals:
        return ""
    both = means.dropna(subset=[STATEFUL, *rivals])
    if both.empty:
        return ""
    most = both.iloc[-1]
    ahead = most[STATEFUL] >= most[rivals].max()
    courses = words(
        f"{model} {', '.join(map(short, both[model]))} %" for model in (STATEFUL, *rivals)
    )
    steps = ", ".join(f"{count:,}" for count in both.index)
    return (
        f"**In this seed the stateful baseline {'catches' if ahead else 'does not catch'} up:** "
        f"{courses} after {steps} steps. {budget.elsewhere(runs)} "
    )


def _among_others(few: Runs, runs: Runs) -> str:
    """Say where the one seed of a budget stands among all that were trained for so many steps."""
    shown, said = budget.by_steps(few).dropna(subset="mean"), []
    usual = {spec.training.steps for spec in runs.specs}
    every = summaries(runs, TRAINED)
    for row in shown[shown["steps"].isin(usual)].itertuples():
        own = every[(every["task"] == few.specs[0].task.name) & (every["model"] == row.model)]
        means = np.array(own["means"].iloc[0])
        if len(means):
            # Its own mean is one of these, summed in another order.
            better = (means > row.mean) & ~np.isclose(means, row.mean)
            said.append(
                f"{row.model}'s is number {better.sum() + 1} of {plural(len(means), 'run')} "
                f"(median {short(own['median'].iloc[0])})"
            )
    if not said:
        return ""
    return (
        "This is one seed. Among all runs of the usual number of steps, from the best down, "
        f"{words(said)}."
    )


def extended(survey: Survey) -> str:
    """Say how far any run gets with either memory, and which gets farthest with the larger one."""
    runs = busiest(survey, EXPERIMENT).with_later_seeds()
    small, large = (
        summaries(runs, memory).assign(
            farthest=lambda found: found["each"].map(lambda each: max(each, default=np.nan))
        )
        for memory in (TRAINED, EXTENDED)
    )
    if small["farthest"].isna().all() or large["farthest"].isna().all():
        return NOTHING
    tried = sum(map(len, small["each"]))
    said = []
    for task, rows in large.dropna(subset="farthest").groupby("task", sort=False):
        most = rows["farthest"].max()
        best = rows[(rows["farthest"] == most) & (most > 0)]
        named = words(
            row.model + ("" if np.isnan(row.printed) else f" (printed {number(row.printed)})")
            for row in best.itertuples()
        )
        said.append(f"{title(task)}, {f'{named} with {most:.0f}' if named else 'none'}")
    slots = TRAINED.slots(runs.specs[0])
    return (
        f"With the memory of training, which has {slots} slots, no input of {plural(tried, 'run')} "
        f"above {ABOVE:.0f} % is longer than {small['farthest'].max():.0f}. With the larger one "
        "the longest input of any run is that of these controllers, beside which stands what the "
        f"paper prints of their median run: {'; '.join(said)}.\n"
    )


def loops(survey: Survey) -> str:
    """In how many runs loops, and clusters, come together with generalisation, by task."""
    data = portraits.numbers(busiest(survey, EXPERIMENT).with_later_seeds())
    data = data[data["state_returns"].notna()]
    if data.empty:
        return NOTHING
    rows = []
    good = data[data["accuracy"] >= states.GENERALISES]
    looping = data[data["state_returns"] >= states.LOOPS]
    clustered = data[data["state_neighbours"] >= states.CLUSTERED]
    circling = data.loc[good.index.intersection(looping.index)]
    both = len(circling)
    near = len(good.index.intersection(clustered.index))
    said = (
        f"Of {plural(len(good), 'run')} that generalise (a mean accuracy of "
        f"{short(states.GENERALISES)} % or more), {both} {verb(both, 'have')} loops; "
        f"of {plural(len(looping), 'run')} with loops, {both} "
        f"{verb(both, 'generalise')}{_on_tasks(circling)}. The stateless baseline has no state to "
        f"come back to and is left out.\n\n**Clusters.** {near} of the {len(good)} that generalise "
        f"have clusters, and {len(clustered) - near} of the {len(data) - len(good)} others. A run "
        f"has clusters if {short(states.CLUSTERED)} % or more of the nearest states were reached "
        "by the same symbol, where 0 is chance. This was asked after the runs were seen, so no "
        "claim judges it."
    )
    for task, own in data.groupby("task", sort=False):
        counts = []
        for part in (
            own[own["accuracy"] >= states.GENERALISES], own[own["accuracy"] < states.GENERALISES]
        ):  # fmt: skip
            returns = part["state_returns"].sort_values()
            span = f"{short(returns.iloc[0])} to {short(returns.iloc[-1])}" if len(part) else "–"
            near = int((part["state_neighbours"] >= states.CLUSTERED).sum())
            counts += [len(part), near, int((returns >= states.LOOPS).sum()), span]
        rows.append((title(task), *counts))
    heads = (
        *("generalise", "with clusters", "with loops", "returns"),
        *("do not", "those with clusters", "those with loops", "their returns"),
    )
    return f"{said}\n\n" + table(
        ("task", *heads),
        rows,
        name="tab-findings-dnc-loops",
        caption="Do clusters and loops come with generalisation? Runs that generalise and runs "
        "that do not, how many of each have clusters and how many loops (returns of "
        f"{short(states.LOOPS)} or more), and their returns from the lowest to the highest, in "
        "percent of those of shuffled states.",
        numbers=heads,
    )


def _on_tasks(runs: pd.DataFrame) -> str:
    """Name the tasks of some runs with their numbers; empty without any."""
    counts = runs["task"].value_counts(sort=False)
    return f" ({words(f'{title(task)}: {n}' for task, n in counts.items())})" if len(runs) else ""


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
    "findings_dnc_without_state": stateless,
    "findings_dnc_when": when_it_comes,
    "findings_dnc_longer": longer,
    "findings_dnc_extended": extended,
    "findings_dnc_loops": loops,
    "findings_dnc_significance": significance,
}
