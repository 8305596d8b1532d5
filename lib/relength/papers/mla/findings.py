"""What is asked of Monotonic Location Attention alone: one function printed twice, mixtures, ways.

Like :mod:`relength.report.findings`, it counts and judges nothing.
"""

from collections.abc import Iterator
from functools import partial

import pandas as pd

from relength.papers.mla import failures, focus, lengths, mixtures
from relength.report.findings import other_tables, tasks_solved
from relength.report.markdown import table
from relength.report.outcomes import (
    NOTHING,
    beside_printed,
    busiest,
    ends,
    few_seeds,
    judged_rows,
)
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import ARM_LABELS, title
from relength.report.tables import printed, short
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.specs.margins import load_margins
from relength.verdicts.claims import plural

TWICE = "RMonoAttn"  # as released the same function as MonoAttn, printed in a row of its own
FAREST = "1000"  # the longest test beyond the paper's
SAME = ("MonoAttn", TWICE)


def discoveries(survey: Survey) -> str:
    """For the chapter in short: what no table of the paper shows, in numbers, a line each."""
    lines = (_ways, _bounds, _luck, _mixed, _far)
    found = [line for of in lines for line in of(survey)]
    return "\n".join(f"- {line}" for line in found) + "\n" if found else NOTHING


def _ways(survey: Survey) -> Iterator[str]:
    data = _free(survey, "reduced")
    if len(data):
        counts = [
            f"of {plural(len(own), 'run')} whose focus walks {way} **{own['solves'].sum()}** "
            "solve the longest test"
            for way in focus.WAYS[:2]
            for own in [data[data["way"] == way]]
        ]
        yield (
            "**Forward or back.** Without its sigmoid a step may also be negative, and a model "
            "that turns its source around can walk over it either way. At scale *reduced*, "
            f"{', '.join(counts)} (below: {{numref}}`{WAY}`)."
        )


def _bounds(survey: Survey) -> Iterator[str]:
    judged = survey.ledger
    for row in judged[judged["claim"] == "mla-057"].itertuples() if len(judged) else ():
        votes = [part for part in row.parts if part.agree is not None]
        if votes:
            runs = sum(part.seeds for part in votes)
            further = runs - sum(part.agree for part in votes)
            yield (
                "**Around a bound.** A sigmoid keeps the step of OneStepAttn below one position. "
                f"In the inverted tasks the focus of **{further} of {runs}** runs goes further, "
                "by the rule of {ref}`mla-057 <claim-mla-057>`. A wide spotlight makes it "
                "possible ({doc}`how </executed/mla_attention_paths>`)."
            )


def _luck(survey: Survey) -> Iterator[str]:
    data = same_function(survey.store)
    if len(data):
        margin = load_margins().measures["accuracy"].around
        far = abs(data["first"] - data["second"])
        apart = int((far > data["first"].map(margin)).sum())
        yield (
            f"**One function, two rows.** As released, {' and '.join(SAME)} compute the same, from "
            "the same first weights and data; only the last digit of a sum may differ. Of "
            f"{plural(len(far), 'pair')} of runs on one make of processor **{apart}** end more "
            f"than the margin apart at the longest test; the furthest are {far.max():.0f} points "
            "apart. How often one model trained again on another processor ends elsewhere, "
            "{doc}`self_checks` counts."
        )


def _mixed(survey: Survey) -> Iterator[str]:
    runs = busiest(survey, "mla_variants")
    if len(data := mixtures.comparable(runs)):
        near = mixtures.nearest(data)
        counts = [
            f"of **{', '.join(models)}** are nearest to ours *{mixtures.SOURCES[source]}*"
            for source, models in near.items()
        ]
        yield (
            "**Mixed or not.** As released, six Mix models never look at the content. At scale "
            f"*{runs.scale}* and on the tasks that were run, the printed numbers "
            f"{', and those '.join(counts)}.{few_seeds(data['seeds'])} "
            "({doc}`Model by model </executed/mla_variants>`.)"
        )


def same_function(store: Store) -> pd.DataFrame:
    """Pairs of runs of one function in two rows, of one seed on one make of processor.

    Columns: task, seed, device_name; first and second, exact match at the longest test in percent.
    Of several executions the earliest counts, whether tables use it or not.
    """
    found: dict[tuple[str, int, str], dict[str, float]] = {}
    executions = sorted(store.records(), key=lambda record: record["provenance"]["created"])
    for record in executions:
        spec, place = record["spec"], record["provenance"]["device_name"]
        same = spec["model"]["name"] in SAME and spec["model"]["arm"] == "released"
        if not same or record["status"] != "ok" or spec["scale"] != "reduced":
            continue
        if record["run_id"] in store.stale or spec["task"].get("far_size"):
            continue
        tests = record["checkpoints"]["selected"]["tests"]
        pair = found.setdefault((spec["task"]["name"], spec["seed"], place), {})
        pair.setdefault(spec["model"]["name"], 100 * list(tests.values())[-1]["exact_match"])
    rows = [
        (*cell, *(pair[name] for name in SAME)) for cell, pair in found.items() if len(pair) == 2
    ]
    return pd.DataFrame(rows, columns=["task", "seed", "device_name", "first", "second"])


def _far(survey: Survey) -> Iterator[str]:
    runs = busiest(survey, "mla_lengths")
    data = lengths.errors(runs)
    data = judged_rows(runs, data[data["test"] == FAREST])
    if len(data):
        share = (100 * data["right"] / data["items"]).groupby([data["model"], data["task"]])
        by_model: dict[str, list[str]] = {}
        for (model, task), value in share.median().items():
            by_model.setdefault(model, []).append(f"{title(task)} {short(value)}")
        said = "; ".join(f"{model}: {', '.join(cells)}" for model, cells in by_model.items())
        yield (
            "**A thousand digits,** before any are repeated, ten times the paper's longest test. "
            "Outputs without an error in percent, median of the seeds: "
            f"{said}.{few_seeds(share.size())} {{doc}}`The page </executed/mla_lengths>` tells "
            "noise from drift."
        )


def printed_twice(survey: Survey) -> str:
    """Two printed rows of what in the released code is one function, and our seeds of it."""
    runs, model, arm = busiest(survey, "mla_table2"), "MonoAttn", "released"
    data, other = beside_printed(runs), printed("mla-table-7")
    longest = data["test"] == data["task"].map(lambda task: runs.tests[task][-1])
    data = data[longest & (data["model"] == model) & (data["arm"] == arm)]
    data = data.assign(other=[other.get((TWICE, row.task, row.test)) for row in data.itertuples()])
    data = data.dropna(subset="other")
    if data.empty:
        return NOTHING
    margin = load_margins().measures["accuracy"].around
    pairs = (("paper", "other"), ("paper", "ours"), ("other", "ours"))
    near = {(one, two): abs(data[one] - data[two]) <= data[one].map(margin) for one, two in pairs}
    first, second = near["paper", "ours"], near["other", "ours"]
    body = table(
        ("task", "test", f"printed, {model}", f"printed, {TWICE}", "our median", "our seeds"),
        (
            (
                title(row.task),
                row.test,
                short(row.paper),
                short(row.other),
                short(row.ours),
                "; ".join(map(short, row.values)),
            )
            for row in data.itertuples()
        ),
        name="tab-findings-mla-twice",
        caption=f"{model} and {TWICE}, as released one function: two printed rows and our seeds, "
        "exact match in percent at the longest test.",
    )
    return (
        f"At the longest test the two rows differ by more than the margin in "
        f"**{int((~near['paper', 'other']).sum())} of {len(data)}** tasks. At scale "
        f"*{runs.scale}* our median is near "
        f"both in {int((first & second).sum())}, near {model}'s alone in "
        f"{int((first & ~second).sum())}, near {TWICE}'s alone in "
        f"{int((second & ~first).sum())}, and near neither in "
        f"{int((~first & ~second).sum())}.{few_seeds(data['seeds'])}\n\n"
        f"{body}"
    )


def whether_mixed(survey: Survey) -> str:
    """Which reading gives the printed numbers of the models that mix content in."""
    said = mixtures.in_words(busiest(survey, "mla_variants"))
    return f"{said}\n" if said else "*No mixed model has a run that counts yet.*\n"


FREE = ("-Sigmoid", "-Step 3")  # without their sigmoid, steps go either way
CONTROL = ("MonoAttn", "released")  # -Sigmoid with a ReLU: the same steps, but none back
UNREPEATED = ("copy", "reverse_copy")  # a source is as long as its digits are many


WAY = "tab-findings-mla-way"


def _free(survey: Survey, scale: str) -> pd.DataFrame:
    """:func:`relength.papers.mla.focus.walks` of the runs of Table 4 that may step back."""
    seeds = load_margins().least_seeds
    data = focus.walks(Runs.read(experiment("mla_ablations"), scale, seeds, survey.store))
    return data[data["model"].isin(FREE)]


def which_way(survey: Survey) -> str:
    """What becomes of runs whose focus may go either way, by the way that it walks."""
    data, full = _free(survey, "reduced"), _free(survey, "paper")
    if data.empty:
        return NOTHING
    first = (
        f"At scale *reduced*, of {plural(len(data), 'run')} of {' and '.join(FREE)}, "
        f"{_walking(data)}.{few_seeds(data.groupby(['model', 'arm', 'task']).size())}"
    )
    said = []
    cells = data.groupby(["model", "task"])
    both = data[cells["way"].transform(lambda ways: set(focus.WAYS[:2]) <= set(ways))]
    if len(both):
        said.append(f"In the cells of the table that have both ways alone, {_walking(both)}.")
    pairs = data.groupby(["model", "task", "seed"])["way"].agg(["size", "nunique"])
    pairs = pairs[pairs["size"] > 1]
    if len(pairs):
        said.append(
            "The two readings of a seed begin with the same weights, and in "
            f"{(pairs['nunique'] == 1).sum()} of {len(pairs)} pairs they walk the same way: they "
            "are not independent."
        )
    turning = data[data["task"].isin(UNREPEATED) & (data["way"] == "back")]
    if len(turning):
        specs = experiment("mla_ablations").specs("reduced", [0])
        known = max(
            spec.task.splits()["iid"].longest for spec in specs if spec.task.name in UNREPEATED
        )
        said.append(
            f"On {' and '.join(map(title, UNREPEATED))}, runs that walk back jump ahead first and "
            f"turn at position {turning['peak'].median():.1f} (median; "
            f"{turning['peak'].min():.1f} to {turning['peak'].max():.1f}). The sources that they "
            f"were trained on end at {known + 1} at the latest, this one at "
            f"{turning['end'].max()}."
        )
    if len(full):
        said.append(f"At the paper's own scale, of {plural(len(full), 'run')}, {_walking(full)}.")
    control = focus.walks(busiest(survey, "mla_table2"))
    control = control[(control["model"] == CONTROL[0]) & (control["arm"] == CONTROL[1])]
    heads = [f"{model}, {way}" for model in FREE for way in focus.WAYS[:2]]
    body = table(
        ("task", *heads, f"{CONTROL[0]}, {ARM_LABELS[CONTROL[1]]}"),
        (
            (
                title(task),
                *(
                    _solving(own[(own["model"] == model) & (own["way"] == way)])
                    for own in [data[data["task"] == task]]
                    for model in FREE
                    for way in focus.WAYS[:2]
                ),
                _solving(control[control["task"] == task]),
            )
            for task in dict.fromkeys(data["task"])
        ),
        name=WAY,
        caption="How many runs solve the longest test, of those whose focus walks forward and of "
        "those whose focus walks back over the source, in the order in which the model reads it: "
        f"the way of most of its moves, of those longer than {focus.ROOM:g} positions. Both "
        f"readings together. {CONTROL[0]} as released is {FREE[0]} without steps back.",
    )
    lines = "\n".join(f"- {line}" for line in said)
    return f"{first} {{numref}}`{WAY}` has it task by task.\n\n{lines}\n\n{body}"


def _walking(data: pd.DataFrame) -> str:
    """By way: how many runs, how many of them know the training's lengths and solve the longest."""
    parts = [
        f"{len(own)} walk {way} ({own['knows'].sum()} know their lengths), of which "
        f"**{own['solves'].sum()}** solve the longest test"
        if len(own)
        else f"none walks {way}"
        for way in focus.WAYS[:2]
        for own in [data[data["way"] == way]]
    ]
    neither = (data["way"] == focus.WAYS[2]).sum()
    return "; ".join([*parts, *([f"{neither} go neither way"] if neither else [])])


def _solving(runs: pd.DataFrame) -> str:
    return f"{runs['solves'].sum()} of {len(runs)}" if len(runs) else ""


def diverging(survey: Survey) -> str:
    """What the first error of failing outputs is, and how much of them is right before it."""
    runs = busiest(survey, "mla_table2")
    kinds = failures.diverging(runs)["then"].value_counts()
    shown = sum(bool(record.get("attention")) for record in runs.records)
    if kinds.empty:
        return "*No recorded output fails.*\n" if runs.records else NOTHING
    data, levels = ends(runs), load_margins().levels
    lost = data[data["known"].map(levels["solved"].holds) & (data["state"] == "failed")]
    shares = lost.merge(failures.shares(runs), on=["task", "model", "arm", "seed", "test"])
    right = judged_rows(runs, shares).groupby("model", sort=False)["right_before"].median()
    models = ", ".join(f"{model} {share:.0f} %" for model, share in right.items())
    said = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return (
        "Every run records its output for one test sample longer than those of training. Of these "
        f"{shown}, in all readings, {kinds.sum()} fail, by their first error: **{said}**. Where a "
        "run of a judged reading knows its lengths and fails the longest test, the first part of "
        f"its wrong outputs is right, in the median up to: {models}.\n"
    )


PASSAGES = {
    "findings_mla_diverging": diverging,
    "findings_mla_others": partial(other_tables, "mla"),
    "findings_mla_solved": partial(tasks_solved, "mla"),
    "findings_mla_discoveries": discoveries,
    "findings_mla_twice": printed_twice,
    "findings_mla_mixed": whether_mixed,
    "findings_mla_way": which_way,
}
