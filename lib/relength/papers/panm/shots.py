"""Table 11: language models asked after five examples, of which the text has the caption alone.

Source: Le et al., TMLR version: Section 3.5 and the caption of Table 11. Its numbers are not in the
text, so nothing stands beside ours. What its caption says of long inputs is counted here without
any model: in Llama's vocabulary no token joins two letters that a space parts, so that a prompt has
at least as many tokens as letters.
"""

from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import NamedTuple

import pandas as pd

from relength.report import exhibits
from relength.report.exhibits import Exhibit, rows_table, titled
from relength.report.grid import NOT_RUN
from relength.report.runs import Runs
from relength.report.style import title
from relength.specs.experiments import experiment
from relength.specs.spec import RunSpec
from relength.tasks.instructions import LETTERS
from relength.verdicts import rules

ARTIFACT, PAGE, CLAIM = "panm-table-11", "panm_language", "panm-070"
SHOTS = "panm_language_shots"
COMMAND = f"relength run {SHOTS} --scale paper --seeds 1 --device cuda"
REDUCED = f"relength run {SHOTS} --scale reduced --seeds 1"


class Prompt(NamedTuple):
    """The longest prompt of a test.

    length   letters of the question
    letters  letters of the prompt
    symbols  words and letters of the prompt
    """

    task: str
    length: int
    letters: int
    symbols: int


@cache  # to write them takes longer than to count them, and two pages ask
def prompts() -> list[Prompt]:
    """The longest of ten prompts of each test that Table 11 has, at scale paper."""
    found = []
    for task in dict.fromkeys(spec.task for spec in at_the_papers_scale()):
        small = task.model_copy(update={"test_size": 10})
        for test in small.tests:
            if "-shot_" in test:
                length = int(test.rpartition("_")[2])
                sources = [pair.source for pair in small.pairs(test, 0)]
                letters = max(sum(symbol in LETTERS for symbol in one) for one in sources)
                found.append(Prompt(task.name, length, letters, max(map(len, sources))))
    return found


def at_the_papers_scale() -> list[RunSpec]:
    """One seed of the runs that Table 11 would be made from."""
    return experiment(SHOTS).specs("paper", [0])


def reads() -> int:
    """Tokens that the pretrained model reads."""
    return at_the_papers_scale()[0].task.reads


def after_short_examples() -> dict[str, int]:
    """{task: words and letters of a longest prompt, if examples are as long as in training}."""
    found = {}
    for task in dict.fromkeys(spec.task for spec in at_the_papers_scale()):
        small = task.model_copy(update={"test_size": 1})
        length = max(int(test) for test in small.tests if test.isdigit())
        asked = small.pairs(str(length), 0)[0]
        shown = small.after_examples(asked, small.splits()["train"].longest, 0)
        found[task.name] = len(shown.source)
    return found


def overflow(found: list[Prompt], short: dict[str, int]) -> rules.Decision:
    """Tell whether the longest inputs of both tasks have more tokens than the model reads.

    The text does not say how long the examples are. If they are as long as the question, letters
    are counted, each of which is a token at least; if they are as long as those of training, words
    and letters, each of which is hardly more than one token. Open where the two differ.
    """
    longest = max(one.length for one in found)
    long = all(one.letters > reads() for one in found if one.length == longest)
    if long != all(symbols > reads() for symbols in short.values()):
        return rules.Decision("inconclusive", 1, 1.0, 1.0, "")
    return rules.fact(long)


SCOPE = (
    "Counted, no training decides this. The text does not say how long the examples are, so two "
    "lengths are tried, and it is decided where they agree."
)


def seen(found: list[Prompt], short: dict[str, int]) -> str:
    """Say what was counted."""
    longest = max(one.length for one in found)
    long = {one.task: one.letters for one in found if one.length == longest}
    counted = (
        " and ".join(f"{n:,} ({title(task)})" for task, n in counts.items())
        for counts in (long, short)
    )
    return (
        f"{reads():,} tokens are read; after examples as long as the question, a prompt about "
        f"{longest:,} letters has {next(counted)} letters; after examples as long as those of "
        f"training, {next(counted)} words and letters"
    )


def table(runs: Runs, seeds: int, found: list[Prompt]) -> Exhibit:
    """A row per model and task of Table 11, a column per length: our BLEU, or why there is none.

    runs  of the page's scale; those of scale paper are looked up beside them
    """
    lengths = sorted({one.length for one in found})
    over = {(one.task, one.length) for one in found if one.letters > reads()}
    scales = {runs.scale: runs}
    scales.setdefault("paper", Runs.read(runs.experiment, "paper", seeds, runs.store))
    data = [cell for at in scales.values() for cell in _cells(at, lengths)]
    rows = []
    for (scale, model, arm, task), cells in groupby(data, key=lambda cell: cell[:4]):
        said = [
            cell.said + (" *" if cell.said and (task, cell.letters) in over else "")
            for cell in cells
        ]
        rows.append((scale, runs.label(model, arm), title(task), *said))
    columns = {
        **{"scale": "text", "model": "text", "task": "text"},
        **{f"{n:,}": "number" for n in lengths},
    }
    caption = (
        f"<b>Table 11 of the paper, as far as it can be rebuilt.</b> BLEU in percent after "
        f"{runs.specs[0].task.shots} examples, by the letters of the "
        "question. The paper's own numbers are not in its text. A star marks prompts with more "
        f"letters than the {reads():,} tokens that are read; they lose their beginning. One seed "
        f"of the small network is <code>{REDUCED}</code>; one of the pretrained model is "
        f"<code>{COMMAND}</code>, which makes Table 7 as well."
    )
    kept = pd.DataFrame(data).drop(columns="said")
    name = f"{ARTIFACT}-rebuilt"
    links = [exhibits.csv(name, kept), exhibits.notebook(PAGE)]
    html = exhibits.table(rows_table(columns, rows), titled(caption, ""), name, links)
    return Exhibit(html, f"{len(rows)} rows, {kept['bleu'].notna().sum()} cells with runs.", kept)


class Cell(NamedTuple):
    """A cell of the table: the mean of our seeds, None without any, and what is shown of it."""

    scale: str
    model: str
    arm: str
    task: str
    letters: int
    bleu: float | None
    seeds: int
    said: str


def _cells(runs: Runs, lengths: list[int]) -> Iterator[Cell]:
    """The cells of one scale; nothing is said of a length that it does not ask."""
    shown = runs.experiment.shown
    for spec in runs.experiment.specs(runs.scale, [0]):
        row, arm, task = spec.row, spec.model.arm, spec.task
        absent = task.lacks().partition(":")[0]
        for length in lengths:
            test = task.shown_test(length)
            asked = test in task.tests
            values = runs.values(row, arm, task.name, test, shown) if asked else []
            mean = sum(values) / len(values) if values else None
            why = f"{NOT_RUN}: {absent}" if absent else NOT_RUN
            said = f"{mean:.0f}" if values else why * asked
            yield Cell(runs.scale, row, arm, task.name, length, mean, len(values), said)


def numbers(found: list[Prompt]) -> str:
    """Write what was counted, and what comes of it, as plain text."""
    short = after_short_examples()
    decision = overflow(found, short)
    lines = [f"{'':20}{'letters asked':>15}{'letters in all':>16}{'with words':>12}"]
    lines += [f"{title(p.task):20}{p.length:>15,}{p.letters:>16,}{p.symbols:>12,}" for p in found]
    return "\n".join([*lines, "", f"{CLAIM}: {decision.outcome} ({seen(found, short)})"])
