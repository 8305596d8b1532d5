"""The page of Table 12: what Chat-GPT was asked, what is printed of it, what PANM does here."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from relength.papers.panm import chat, chat_client
from relength.report import exhibits
from relength.report.exhibits import COMPUTED, Exhibit, badges, rows_table, titled
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import aligned, title
from relength.specs import published, registry
from relength.verdicts.wording import number

ARTIFACT = "panm-table-12"
GONE = "not testable"
PRINTED_AT = "20"  # the test that the printed numbers of PANM are those of (recounts.py)
ASKED_AT = str(chat.LONG)  # the length that Chat-GPT was asked at


def questions(task: str = "reverse") -> Exhibit:
    """The first question of a task, whole, as a model is asked it."""
    question = chat.questions(task)[0]
    caption = (
        f"<b>What a model is asked.</b> {COMPUTED} The first of {chat.TRIALS} questions of "
        f"{escape(_called(task))}: {chat.EXAMPLES} examples of {chat.SHORT} signs and one input of "
        f"{chat.LONG}. Right is <code>{escape(' '.join(question.answer))}</code>."
    )
    body = f"<pre>{escape(question.prompt)}</pre>"
    name = "panm_chat_gpt-question"
    data = pd.DataFrame(
        [(q.task, q.trial, q.prompt, " ".join(q.answer)) for q in _every()],
        columns=["task", "trial", "prompt", "answer"],
    )
    html = exhibits.table(body, caption, name, [exhibits.csv(name, data)])
    return Exhibit(html, f"The first question of {_called(task)}.", data)


def _every() -> list[chat.Question]:
    return [question for task in chat.TASKS for question in chat.questions(task)]


def _called(task: str) -> str:
    return title(registry.papers()["panm"].task_names[task])


def data(runs: Runs) -> pd.DataFrame:
    """One row per model and task.

    Columns: model, task, length, printed (NaN where nothing is), seeds (of trained models; trials
    of chat models), ours (percent; NaN where nothing is recorded), testable.
    """
    printed = published.table(ARTIFACT).set_index(["row", "column"])["value"]
    rows = [
        ("Chat-GPT", task, ASKED_AT, printed["Chat-GPT", task], 0, float("nan"), False)
        for task in chat.TASKS
    ]
    for model, arm in (pair for pair in runs.rows if pair[0] == "PANM"):
        for task in chat.TASKS:
            for test in (PRINTED_AT, ASKED_AT):
                found = runs.values(model, arm, runs_task(task), test)
                said = printed["PANM", task] if test == PRINTED_AT else float("nan")
                ours = fmean(found) if found else float("nan")
                rows.append((runs.label(model, arm), task, test, said, len(found), ours, True))
    for model, scores in replied(runs.store.path).items():
        for task in chat.TASKS:
            found = [100 * score for asked, score in scores if asked == task]
            ours = fmean(found) if found else float("nan")
            rows.append((model, task, ASKED_AT, float("nan"), len(found), ours, True))
    names = ["model", "task", "length", "printed", "seeds", "ours", "testable"]
    return pd.DataFrame(rows, columns=names)


def runs_task(task: str) -> str:
    """The task of our runs that a column of the table is about."""
    return registry.papers()["panm"].task_names[task]


def replied(folder: Path) -> dict[str, list[tuple[str, float]]]:
    """{chat model: (task, score) of each recorded reply}, scored as replies are scored today."""
    scores: dict[str, list[tuple[str, float]]] = {}
    for line in chat_client.replies(folder):
        questions = chat.questions(line["task"])
        score = questions[line["trial"]].score(line["reply"])
        scores.setdefault(line["model"], []).append((line["task"], score))
    return scores


def table(runs: Runs) -> Exhibit:
    """Table 12 with ours beside it; of the model that is gone, the printed numbers alone."""
    found = data(runs)
    columns = {"model": "text", "length": "number"}
    columns |= {_called(task): "number" for task in chat.TASKS}
    rows = []
    for (model, length), cells in found.groupby(["model", "length"], sort=False):
        by_task = cells.set_index("task").to_dict("index")
        rows.append((escape(model), length, *(_cell(by_task[task]) for task in chat.TASKS)))
    caption = (
        f"<b>Table 12, and ours.</b> {badges(runs.scale, runs.freshness)} Token accuracy in "
        "percent: ours, and in brackets what is printed. PANM's printed numbers are those of "
        f"length {PRINTED_AT}, Chat-GPT's of length {ASKED_AT}, so PANM stands at both. The "
        f"Chat-GPT of September 2023 is no longer offered: {GONE}. PANM is trained on each task; a "
        f"chat model sees {chat.EXAMPLES} examples."
    )
    name = ARTIFACT
    links = [exhibits.csv(name, found), exhibits.notebook(runs.page)]
    html = exhibits.table(rows_table(columns, rows), caption, name, links)
    return Exhibit(html, f"{len(rows)} rows of Table 12.", found)


def _cell(cell: dict[str, Any]) -> str:
    said = "" if pd.isna(cell["printed"]) else f" ({number(cell['printed'])})"
    if not cell["testable"]:
        return f"{GONE}{said}"
    return (NOT_RUN if pd.isna(cell["ours"]) else number(cell["ours"])) + said


def numbers(runs: Runs) -> str:
    """Write the table as plain text."""
    found = data(runs)
    rows: list[Sequence[str]] = [["model", "length", *map(_called, chat.TASKS)]]
    for (model, length), cells in found.groupby(["model", "length"], sort=False):
        by_task = cells.set_index("task").to_dict("index")
        rows.append([model, length, *(_cell(by_task[task]) for task in chat.TASKS)])
    lead = f"Table 12, {runs.scale} scale: ours (paper's value), percent of tokens"
    return "\n".join([lead, "", *aligned(*rows)])


def worked_examples() -> Exhibit:
    """The failures that Table 12 prints, scored by our rules."""
    cells = published.table(ARTIFACT).query("model == 'Chat-GPT'")
    found = [row for cell in cells.itertuples() if (row := _failure(cell)) is not None]
    columns = ["task", "input", "Chat-GPT", "right", "by our rule", "share"]
    listed = pd.DataFrame(found, columns=columns)
    rows = [tuple(escape(str(value)) for value in row) for row in found]
    caption = titled(
        "<b>Printed failures, scored.</b> One per task that failed. <i>Right</i> is what the table "
        "says; <i>by our rule</i> is what our generator answers.",
        COMPUTED,
    )
    kinds = dict.fromkeys(columns[:-1], "text") | {"share": "number"}
    name = "panm_chat_gpt-failures"
    html = exhibits.table(rows_table(kinds, rows), caption, name, [exhibits.csv(name, listed)])
    return Exhibit(html, f"{len(rows)} printed failures.", listed)


def _failure(cell: Any) -> tuple[str, ...] | None:
    """Input, reply and right answer of a cell's printed example; None where it has none."""
    _, there, example = cell.note.partition("example: input ")
    if not there:
        return None
    given, reply, right = (part.strip() for part in example.split(" ; "))
    reply, right = reply.removeprefix("Chat-GPT "), right.removeprefix("true ")
    given = given.replace(" then query ", "")
    task = cell.column
    ours = chat.TASKS[task].answer(given)
    score = chat.Question(task, 0, "", tuple(right)).score(reply)
    return _called(task), given, reply, right, ours, f"{100 * score:.0f} %"
