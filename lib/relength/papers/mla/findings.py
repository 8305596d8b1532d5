"""Answer what is asked of Monotonic Location Attention alone: one function printed twice, mixtures,
ways.

Like :mod:`relength.report.findings`, it counts and judges nothing.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd
from pandas.api.typing import SeriesGroupBy

from relength.papers.mla import failures, focus, lengths, mixtures
from relength.papers.mla.other_tables import other_tables
from relength.papers.mla.solved_tasks import tasks_solved
from relength.report.markdown import table
from relength.report.outcomes import (
    NOTHING,
    beside_printed,
    busiest,
    ends,
    few_seeds,
)
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import ARM_LABELS, title
from relength.report.tables import printed, short
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.specs.margins import load_margins
from relength.verdicts.wording import plural, verb

TWICE = "RMonoAttn"  # as released the same function as MonoAttn, printed in a row of its own
FAREST = "1000"  # the longest test beyond the paper's
SAME = ("MonoAttn", TWICE)


def discoveries(survey: Survey) -> str:
    """List the findings that no table of the paper shows: a line each, with its numbers."""
    lines = (_ways, _bounds, _luck, _mixed, _far)
    found = [line for of in lines for line in of(survey)]
    return "\n".join(f"- {line}" for line in found) + "\n" if found else NOTHING


def _ways(survey: Survey) -> Iterator[str]:
    """Keep cells that have both ways: elsewhere the task, not the way, may be the reason."""
    data = free(survey, "reduced")
    both = with_both_ways(data) if len(data) else data
    if len(both):
        counts = [
            f"**{way.solve}** of {plural(way.runs, 'run')} whose focus walks {name} solve the "
            f"longest test ({way.know} know their lengths)"
            for name, way in by_way(both).items()
            if name != focus.WAYS[2]
        ]
        yield (
            "**Forward or back.** Without its sigmoid a step may also be negative. A model that "
            "turns its source around can then walk over it either way. At scale *reduced*, in "
            f"those cells of the table that have both, {', and '.join(counts)}. All cells: "
            f"{{numref}}`{WAY}`."
        )


def _bounds(survey: Survey) -> Iterator[str]:
    further, runs = beyond_the_bound(survey)
    if runs:
        yield (
            "**Around a bound.** A sigmoid keeps the step of OneStepAttn below one position. "
            f"In the inverted tasks the focus of **{further} of {runs}** runs goes further, "
            "by the rule of {ref}`mla-057 <claim-mla-057>`. A wide spotlight makes it "
            "possible ({doc}`how </executed/mla_attention_paths>`)."
        )


def beyond_the_bound(survey: Survey) -> tuple[int, int]:
    """Runs of the inverted tasks whose focus steps further than a sigmoid lets it, and all."""
    judged = survey.ledger
    rows = judged[judged["claim"] == "mla-057"].itertuples() if len(judged) else ()
    votes = [part for row in rows for part in row.parts if part.agree is not None]
    runs = sum(part.seeds for part in votes)
    return runs - sum(part.agree for part in votes), runs


def _luck(survey: Survey) -> Iterator[str]:
    data, used = same_function(survey.store), same_function(survey.store, used=True)
    if len(data):
        (apart, furthest), (apart_used, _) = same_apart(data), same_apart(used)
        yield (
            f"**One function, two rows.** As released, {' and '.join(SAME)} compute the same, from "
            "the same first weights and data. Only the last digit of a sum may differ. Of "
            f"{plural(len(data), 'pair')} whose two runs were made on one kind of processor, "
            f"**{apart}** {verb(apart, 'end')} more than the margin apart at the longest test. The "
            f"furthest are {furthest:.0f} points apart. Of the {plural(len(used), 'pair')} that "
            f"tables are made from, whatever they ran on, **{apart_used}** "
            f"{verb(apart_used, 'are')} more than the margin apart. {{doc}}`self_checks` counts "
            "how often one model trained again on another processor ends elsewhere."
        )


def same_apart(data: pd.DataFrame) -> tuple[int, float]:
    """Pairs of :func:`same_function` beyond the margin, and the largest distance in points."""
    far = abs(data["first"] - data["second"])
    margin = data["first"].map(load_margins().measures["accuracy"].around)
    return int((far > margin).sum()), float(far.max())


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


def same_function(store: Store, used: bool = False) -> pd.DataFrame:
    """Pairs of runs of one function in two rows, of one seed on one make of processor.

    used: instead the pairs that tables are made from, which may be of two processors; their
    device_name is empty.

    Columns: task, seed, device_name; first and second, exact match at the longest test in percent.
    Of several executions the earliest counts, whether tables use it or not.
    """
    found: dict[tuple[str, int, str], dict[str, float]] = {}
    executions = store.usable() if used else store.records()
    for record in sorted(executions, key=lambda record: record["provenance"]["created"]):
        spec = record["spec"]
        place = "" if used else record["provenance"]["device_name"]
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
    share = at_a_thousand(runs)
    if len(share.size()):
        by_model: dict[str, list[str]] = {}
        for (model, task), value in share.median().items():
            by_model.setdefault(model, []).append(f"{title(task)} {short(value)}")
        said = "; ".join(f"{model}: {', '.join(cells)}" for model, cells in by_model.items())
        yield (
            "**A thousand digits,** before any are repeated, are ten times the paper's longest "
            "test. Outputs without an error, in percent, median of the seeds: "
            f"{said}.{few_seeds(share.size())} {{doc}}`The page </executed/mla_lengths>` tells "
            "noise from drift."
        )


def at_a_thousand(runs: Runs) -> SeriesGroupBy:
    """Percent of outputs right at the farthest test, by model and task; judged readings."""
    data = lengths.errors(runs)
    data = runs.judged_rows(data[data["test"] == FAREST])
    return (100 * data["right"] / data["items"]).groupby([data["model"], data["task"]])


class Twice(NamedTuple):
    """Tasks that both rows print, those in which the rows differ, and whose number ours meets."""

    tasks: int
    differ: int
    both: int
    first: int  # MonoAttn's alone
    second: int  # RMonoAttn's alone
    neither: int


def rows_printed_twice(runs: Runs) -> pd.DataFrame:
    """The longest tests of MonoAttn as released, with RMonoAttn's printed number as ``other``."""
    data, other = beside_printed(runs), printed("mla-table-7")
    longest = data["test"] == data["task"].map(lambda task: runs.tests[task][-1])
    data = data[longest & (data["model"] == "MonoAttn") & (data["arm"] == "released")]
    data = data.assign(other=[other.get((TWICE, row.task, row.test)) for row in data.itertuples()])
    return data.dropna(subset="other")


def met_twice(data: pd.DataFrame) -> Twice:
    """Count the rows of :func:`rows_printed_twice` by what is within the margin of what."""
    margin = load_margins().measures["accuracy"].around
    differ = abs(data["paper"] - data["other"]) > data["paper"].map(margin)
    first, second = (
        abs(data[row] - data["ours"]) <= data[row].map(margin) for row in ("paper", "other")
    )
    met = (first & second, first & ~second, ~first & second, ~first & ~second)
    return Twice(len(data), int(differ.sum()), *(int(tasks.sum()) for tasks in met))


def printed_twice(survey: Survey) -> str:
    """Two printed rows of what in the released code is one function, and our seeds of it."""
    runs, model = busiest(survey, "mla_table2"), "MonoAttn"
    data = rows_printed_twice(runs)
    if data.empty:
        return NOTHING
    counts = met_twice(data)
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
        "At the longest test the two rows differ by more than the margin in "
        f"**{counts.differ} of {counts.tasks}** tasks. At scale *{runs.scale}* our median is near "
        f"both in {counts.both}, near {model}'s alone in {counts.first}, near {TWICE}'s alone in "
        f"{counts.second}, and near neither in {counts.neither}.{few_seeds(data['seeds'])}\n\n"
        f"{body}"
    )


def whether_mixed(survey: Survey) -> str:
    """Say which reading gives the printed numbers of the models that mix content in."""
    said = mixtures.in_words(busiest(survey, "mla_variants"))
    return f"{said}\n" if said else "*No mixed model has a run that counts yet.*\n"


FREE = ("-Sigmoid", "-Step 3")  # without their sigmoid, steps go either way
CONTROL = ("MonoAttn", "released")  # -Sigmoid with a ReLU: the same steps, but none back
UNREPEATED = ("copy", "reverse_copy")  # a source is as long as its digits are many


WAY = "tab-findings-mla-way"


def free(survey: Survey, scale: str) -> pd.DataFrame:
    """:func:`relength.papers.mla.focus.walks` of the runs of Table 4 that may step back."""
    seeds = load_margins().least_seeds
    data = focus.walks(Runs.read(experiment("mla_ablations"), scale, seeds, survey.store))
    return data[data["model"].isin(FREE)]


def which_way(survey: Survey) -> str:
    """Say what becomes of runs whose focus may go either way, by the way that it walks."""
    data, full = free(survey, "reduced"), free(survey, "paper")
    if data.empty:
        return NOTHING
    first = (
        f"At scale *reduced* there are {plural(len(data), 'run')} of {' and '.join(FREE)}. "
        f"{_walking(data)}{few_seeds(data.groupby(['model', 'arm', 'task']).size())}"
    )
    said, both = [], with_both_ways(data)
    if len(both):
        said.append(f"Some cells of the table have both ways. In these alone: {_walking(both)}")
    same, pairs = same_way(data)
    if pairs:
        said.append(
            "The two readings of a seed begin with the same weights. They walk the same way in "
            f"{same} of {pairs} pairs, so they are not independent."
        )
    turning = data[data["task"].isin(UNREPEATED) & (data["way"] == "back")]
    if len(turning):
        peak = turning["peak"]
        said.append(
            f"On {' and '.join(map(title, UNREPEATED))}, runs that walk back jump ahead first. "
            f"They turn at position {peak.median():.1f} in the median ({peak.min():.1f} to "
            f"{peak.max():.1f}). The sources that they were trained on end at "
            f"{known_end()} at the latest, this one at {turning['end'].max()}."
        )
    if len(full):
        said.append(
            f"At the paper's own scale there are {plural(len(full), 'run')}. {_walking(full)}"
        )
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
        caption="How many runs solve the longest test, by the way that their focus walks over the "
        "source, in the order in which the model reads it. A run's way is that of most of its "
        f"moves longer than {focus.ROOM:g} positions. Both readings are counted together. "
        f"{CONTROL[0]} as released is {FREE[0]} without steps back.",
    )
    lines = "\n".join(f"- {line}" for line in said)
    return f"{first} {{numref}}`{WAY}` has it task by task.\n\n{lines}\n\n{body}"


class Way(NamedTuple):
    """Counts of the runs that walk one way.

    runs   all of them
    know   those that know the lengths of training
    solve  those that solve the longest test
    """

    runs: int
    know: int
    solve: int


def by_way(data: pd.DataFrame) -> dict[str, Way]:
    """{way: its runs} of :func:`relength.papers.mla.focus.walks`."""
    ways = {way: data[data["way"] == way] for way in focus.WAYS}
    return {
        way: Way(len(own), int(own["knows"].sum()), int(own["solves"].sum()))
        for way, own in ways.items()
    }


def with_both_ways(data: pd.DataFrame) -> pd.DataFrame:
    """The runs of those cells in which some walk forward and some back."""
    ways = data.groupby(["model", "task"])["way"]
    return data[ways.transform(lambda own: set(focus.WAYS[:2]) <= set(own)).astype(bool)]


def same_way(data: pd.DataFrame) -> tuple[int, int]:
    """Pairs of readings of one seed that walk the same way, and all pairs."""
    pairs = data.groupby(["model", "task", "seed"])["way"].agg(["size", "nunique"])
    pairs = pairs[pairs["size"] > 1]
    return int((pairs["nunique"] == 1).sum()), len(pairs)


def known_end() -> int:
    """The last position of the longest source in training, of the tasks without repetitions."""
    specs = experiment("mla_ablations").specs("reduced", [0])
    return 1 + max(
        spec.task.splits()["iid"].longest for spec in specs if spec.task.name in UNREPEATED
    )


def _walking(data: pd.DataFrame) -> str:
    """:func:`by_way` in sentences."""
    ways = by_way(data)
    parts = [
        f"{way.runs} walk {name}: {way.know} of them know their lengths, and **{way.solve}** solve "
        "the longest test."
        if way.runs
        else f"None walks {name}."
        for name, way in list(ways.items())[:2]
    ]
    neither = ways[focus.WAYS[2]].runs
    return " ".join([*parts, *([f"{neither} go neither way."] if neither else [])])


def _solving(runs: pd.DataFrame) -> str:
    return f"{runs['solves'].sum()} of {len(runs)}" if len(runs) else ""


def diverging(survey: Survey) -> str:
    """Say what the first error of failing outputs is, and how much of them is right before it."""
    runs = busiest(survey, "mla_table2")
    found = failing(runs)
    if not found.kinds:
        return "*No recorded output fails.*\n" if runs.records else NOTHING
    models = ", ".join(f"{model} {share:.0f} %" for model, share in found.right.items())
    said = ", ".join(f"{count} {kind}" for kind, count in found.kinds.items())
    return (
        "Every run records its output for one test sample longer than those of training. Of these "
        f"{found.samples}, in all readings, {sum(found.kinds.values())} fail. By their first error "
        f"they are: **{said}**. Runs of judged readings that know their lengths and fail the "
        "longest test begin well there. So much of their outputs is right before the first error, "
        f"in the median: {models}.\n"
    )


class Failing(NamedTuple):
    """Recorded samples, those that fail by kind of first error, and how far outputs are right.

    right  by model: percent right before the first error at the longest test, the median over runs
           of judged readings that know their lengths and fail there
    """

    samples: int
    kinds: dict[str, int]
    right: dict[str, float]


def failing(runs: Runs) -> Failing:
    """Count the first errors of recorded samples."""
    kinds = failures.diverging(runs)["then"].value_counts().to_dict()
    samples = sum(bool(record.get("attention")) for record in runs.records)
    if not kinds:
        return Failing(samples, {}, {})
    data, levels = ends(runs), load_margins().levels
    lost = data[data["known"].map(levels["solved"].holds) & (data["state"] == "failed")]
    shares = lost.merge(failures.shares(runs), on=["task", "model", "arm", "seed", "test"])
    right = runs.judged_rows(shares).groupby("model", sort=False)["right_before"].median()
    return Failing(samples, kinds, right.to_dict())


PASSAGES = {
    "findings_mla_diverging": diverging,
    "findings_mla_others": other_tables,
    "findings_mla_solved": tasks_solved,
    "findings_mla_discoveries": discoveries,
    "findings_mla_twice": printed_twice,
    "findings_mla_mixed": whether_mixed,
    "findings_mla_way": which_way,
}
