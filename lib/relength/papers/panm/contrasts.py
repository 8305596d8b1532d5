"""What the paper stresses most on language, said of our runs: a passage of the findings.

Verdicts ask each sentence of the paper for itself. What stands beside it, such as that PANM loses
most where the paper says that the others do, is told here, from whatever is recorded.
"""

from functools import partial

import numpy as np

from relength.papers.panm import translation_figures
from relength.report.grid import NOT_RUN
from relength.report.outcomes import NOTHING, busiest
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import title
from relength.report.tables import short
from relength.report.wording import words
from relength.specs import published
from relength.verdicts.wording import number, plural

STOPPED = "exact_match_true_length"


def ending(runs: Runs) -> str:
    """SCAN: how many points each model would have more if it were told where to end."""
    said = []
    for model, arm in runs.rows:
        if not runs.experiment.judges(model, arm):
            continue
        more = {}
        for task in runs.tasks:
            ran = np.array(runs.values(model, arm, task, "length", "exact_match"))
            told = np.array(runs.values(model, arm, task, "length", STOPPED))
            if len(ran):
                more[task] = float(np.median(told - ran))
        if more:
            most = max(more, key=lambda task: more[task])
            said.append(
                f"{model} {short(float(np.mean([*more.values()])))} (at most {short(more[most])}, "
                f"on {title(most)}; {plural(len(more), 'cut-off')})"
            )
    if not said:
        return f"**Where an answer ends, on SCAN:** {NOT_RUN}."
    return (
        "**Where an answer ends, on SCAN.** The paper explains its lead by the others' failure to "
        "end at the right place. If decoding stopped there, so many points more would be right, "
        f"as a mean over cut-offs of medians of seeds: {words(said)}."
    )


def each_seed(runs: Runs, task: str, test: str) -> str:
    """One test of a task: what is printed of each judged row, and what each seed of ours has."""
    cells = published.table("panm-table-19")
    printed = cells[(cells["task"] == task) & (cells["test"] == test)].set_index("model")["value"]
    said = []
    for model, arm in runs.rows:
        if not runs.experiment.judges(model, arm) or model not in printed.index:
            continue
        if ran := runs.values(model, arm, task, test):
            paper = printed[model] if np.ndim(printed[model]) == 0 else printed[model].iloc[0]
            said.append(f"{model} {words(map(short, ran))} (printed {number(paper)})")
    if not said:
        return f"**The crash on {title(task)}:** {NOT_RUN}."
    return (
        f"**The crash on {title(task)}.** In print the Transformer below PANM names no digit of "
        f"longer numbers, and PANM most. Ours, a number per seed: {'; '.join(said)}."
    )


def overfitting(runs: Runs) -> str:
    """Translation: the lowest perplexity on sentences of other lengths, and that at the end."""
    data = runs.judged_rows(translation_figures.perplexities(runs))
    if data.empty:
        return f"**Overfitting, in translation:** {NOT_RUN}."
    own = ["task", "model", "arm", "seed"]
    last = data[data["epoch"] == data.groupby(own)["epoch"].transform("max")]
    last = last.assign(lowest=np.exp(last["best"].astype(float)))
    last["rise"] = last["test"] / last["lowest"]
    family = last["model"].str.partition(",")[0]
    said = []
    for model, cells in last.groupby(family, sort=False):
        said.append(
            f"{model} {short(cells['rise'].median())} in the median of "
            f"{plural(len(cells), 'run')}, at most {short(cells['rise'].max())}"
        )
    return (
        "**Overfitting, in translation.** The paper says that the Transformer overfits and PANM "
        "does so less. At the end of training the perplexity on sentences of other lengths is so "
        f"many times the lowest that it had: {'; '.join(said)}."
    )


def letters(runs: Runs, task: str) -> str:
    """The language model: BLEU beyond the trained lengths, alone and with repaired pointers."""
    specs = [spec for spec in runs.specs if spec.task.name == task]
    rows: list[tuple[str, str, str]] = []
    for test in runs.tests.get(task, ())[1:]:
        alone, with_it = (
            runs.values(model, arm, task, test, "bleu")
            for model, arm in (("Llama", "paper"), ("PANM on Llama", "repaired"))
        )
        if alone and with_it:
            rows.append((test, *(short(runs.middle(ran)) for ran in (alone, with_it))))
    if not rows:
        return f"**Letters, by a language model on {title(task)}:** {NOT_RUN}."
    listed = words(f"{test} letters {one} and {two}" for test, one, two in rows)
    return (
        f"**Letters, by a small language model on {title(task)}.** BLEU without pointers and with "
        f"repaired ones, {runs.experiment.statistic}s of seeds, "
        f"{plural(specs[0].task.test_size, 'sequence')} a test: "
        f"{listed}."
    )


SAID = (
    ("panm_scan", ending),
    ("panm_mathematics", partial(each_seed, task="math_place_value", test="length")),
    ("panm_translation", overfitting),
    ("panm_language", partial(letters, task="llm_copy")),
)


def contrasts(survey: Survey) -> str:
    """Everything above, a line each."""
    shown = [(say, busiest(survey, name)) for name, say in SAID]
    if not any(runs.records for _, runs in shown):
        return NOTHING
    return "".join(f"- {say(runs)}\n" for say, runs in shown)


PASSAGES = {"findings_panm_contrasts": contrasts}
