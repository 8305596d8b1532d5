"""Passages on why answers get lost in a novel, and on what the ablations change, seed by seed.

Verdicts ask each sentence of the paper for itself; here stand what traces of reads show of the
reason, and effects that no sentence of the paper is about. Everything is computed from whatever is
recorded.
"""

from statistics import median

import pandas as pd

from relength.papers.memreasoner import hops_read
from relength.report.grid import NOT_RUN
from relength.report.markdown import table
from relength.report.outcomes import NOTHING, busiest
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import title
from relength.report.tables import short, signed
from relength.report.wording import words
from relength.verdicts.wording import plural

OURS, ARM = "MemReasoner", "paper"
ABLATIONS = "memreasoner_ablations"
WITHOUT = "MemReasoner\\memory"
FARTHER = 1.5  # by how many times a distance changes that is said to have changed
COMPARED = ("0k", "1k", "2k")  # lengths that runs without the memory have
# Of two runs that differ in one thing alone: what it is, the rows with and without it.
PAIRS = (
    ("update 8 at test in place of 1", OURS, "alpha=1"),
    ("all epochs in place of a quarter", OURS, "epochs=50"),
)


def near(data: pd.DataFrame, row: str, kind: str) -> pd.DataFrame:
    """Distance of what the last hop reads to the nearest line of a kind: a row per seed, a column
    per test.

    data  of :func:`hops_read.distances`
    """
    own = data[(data["model"] == row) & (data["arm"] == ARM) & (data["kind"] == kind)]
    own = own[own["hop"] == own["hop"].max()]
    tests = list(dict.fromkeys(own["test"]))
    return own.pivot(index="seed", columns="test", values="half")[tests]


def moved(survey: Survey) -> str:
    """Say of one fact what moves as a context grows: the wanted line, or the novel."""
    data = hops_read.distances(busiest(survey, "memreasoner_babilong"))
    wanted, novel = (near(data, OURS, kind).median() for kind in ("wanted", "text"))
    if len(wanted) < 2 or novel.empty:
        return NOTHING
    away = wanted.iloc[-1] / wanted.iloc[0] >= FARTHER
    closer = novel.min() / novel.iloc[0] <= 1 / FARTHER
    seen = {
        (True, False): " So what is read moves away, and the novel comes no nearer.",
        (False, True): " So the novel comes nearer, and what is read does not move away.",
        (True, True): " So both happen.",
    }.get((away, closer), "")
    return (
        "**Why does a longer novel hide a line?** What is read may move away from the wanted line, "
        "or a line of the novel may come near by chance. In the traces of MemReasoner's reads on "
        f"one fact, the distance to the wanted line is {_course(wanted)}, that to the nearest line "
        f"of the novel {_course(novel)}.{seen}\n"
    )


def _course(values: pd.Series) -> str:
    return words(f"{value:.1f} at {test}" for test, value in values.items())


def further(data: pd.DataFrame, row: str, tests: tuple[str, str]) -> str:
    """By how many times the wanted line is further away at the second of two lengths, in the
    median run.
    """
    found, (first, last) = near(data, row, "wanted"), tests
    if not {*tests} <= {*found.columns}:
        return ""
    return f"{(found[last] / found[first]).median():.1f}"


def one_after_two(survey: Survey) -> str:
    """Say what the first read finds where one fact is asked after training on two."""
    runs = busiest(survey, "memreasoner_hops")
    middle, (task,) = hops_read.means(runs), runs.tasks
    data, said = hops_read.firsts(runs), []
    seeds = data.loc[(data["model"] == OURS) & (data["arm"] == ARM), "seed"].nunique()
    for (model, arm, _, test), one in middle.iterrows():
        if (model, arm) == (OURS, ARM):
            said.append(
                f"at {test} {short(one['answered'])} % are read and answered right, the first "
                f"wrong read finds a fact about another in {short(one['fact'])} % and a line of "
                f"the novel in {short(one['text'])} %"
            )
    if not said:
        return NOTHING
    updates = {spec.model.test_update for spec in runs.specs if spec.row == OURS}
    return (
        f"**What goes wrong where one fact is asked of a model of two** ({title(task)}; of the "
        f"questions, means over {plural(seeds, 'run')}): {'; '.join(said)}. A read that is not "
        "wanted is added to the question all the same, with an update of "
        f"{words(f'{update:g}' for update in sorted(updates))} at test.\n"
    )


def paired(runs: Runs, task: str, with_it: str, without: str, test: str) -> list[float]:
    """Points of one row above another at a test, by the seeds that both have."""
    ours, other = (runs.by_seed(row, ARM, task, test) for row in (with_it, without))
    return [ours[seed] - other[seed] for seed in ours if seed in other]


def effects(survey: Survey) -> str:
    """What the strength of the update and the number of epochs change, seed by seed."""
    runs = busiest(survey, ABLATIONS)
    cells: dict[str, dict[str, str]] = {}
    for said, with_it, without in PAIRS:
        for task in runs.tasks:
            if not (runs.cell(with_it, ARM, task) and runs.cell(without, ARM, task)):
                continue
            for test in runs.tested(without, ARM, task):
                if points := sorted(paired(runs, task, with_it, without, test)):
                    ends = f"{signed(points[0])} to {signed(points[-1])}"
                    cells.setdefault(test, {})[said] = f"{signed(median(points))} ({ends})"
    if not cells:
        return NOTHING
    heads = [said for said, *_ in PAIRS]
    return table(
        ("test", *heads),
        [(test, *(found.get(said, "") for said in heads)) for test, found in cells.items()],
        name="tab-findings-memreasoner-effects",
        caption="What the strength of the update and the number of epochs change, in points of "
        "questions answered: the median of seeds, and from the least to the most of them. Trained "
        "on two facts; <i>babi</i> and <i>moved</i> are bAbI's own questions with places of "
        "training and with new ones, <i>one-fact</i> those of task 1 after a novel of that length.",
        numbers=heads,
    )


def memory(survey: Survey) -> str:
    """Accuracy with and without the memory, by task and length."""
    runs, rows = busiest(survey, ABLATIONS), []
    for task in runs.tasks:
        if not runs.cell(WITHOUT, ARM, task):
            continue
        for row in (OURS, WITHOUT):
            found = (runs.values(row, ARM, task, test) for test in COMPARED)
            shown = [short(median(ran)) if ran else NOT_RUN for ran in found]
            rows.append((title(task), row, len(runs.cell(row, ARM, task)), *shown))
    if not rows:
        return NOTHING
    return table(
        ("task", "model", "seeds", *COMPARED),
        rows,
        name="tab-findings-memreasoner-memory",
        caption="With and without the memory: questions answered in percent, medians over seeds.",
        numbers=("seeds", *COMPARED),
    )


PASSAGES = {
    "findings_memreasoner_moved": moved,
    "findings_memreasoner_one_after_two": one_after_two,
    "findings_memreasoner_effects": effects,
    "findings_memreasoner_memory": memory,
}
