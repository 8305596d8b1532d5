"""Passages of the chapter on what the runs of this paper show."""

from collections.abc import Iterable, Mapping
from functools import partial
from math import log
from statistics import median
from typing import NamedTuple

import pandas as pd

from relength.models.language.configs import MemReasonerConfig
from relength.papers.memreasoner import codes, hops_read, losses, mechanism, split
from relength.papers.memreasoner.ablation_experiments import COMPARED, WEAK_LENGTHS, WINDOWS
from relength.papers.memreasoner.experiments import LOSSES, with_all_terms
from relength.papers.memreasoner.other_decoders import gptj_in_words
from relength.papers.memreasoner.recounts import qwen
from relength.report.findings import conclusion
from relength.report.grid import FAILED
from relength.report.markdown import plain, table
from relength.report.outcomes import NOTHING, busiest
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.tables import printed, short, signed
from relength.report.wording import capital, words
from relength.specs.margins import load_margins
from relength.tasks.facts import PLACES
from relength.tasks.new_places import NEW
from relength.verdicts.wording import number, plural

ONE, LONG = "memreasoner_babilong", "memreasoner_two_facts"
ORDERS, SUPERVISION = "memreasoner-table-17", "memreasoner-table-19"
TASKS = {ONE: "one fact", LONG: "two facts"}
TRACED = "1k"  # with a novel, where the ablations record what is read
LEVEL = 3  # lengths that have to agree before an accuracy is said to stay


class Asked(NamedTuple):
    """A task whose accuracy by length stands beside printed tables, and what readers call it."""

    experiment: str
    task: str
    said: str
    artifacts: tuple[str, ...]


READ = (
    Asked(ONE, "babi_one_fact", TASKS[ONE], ("memreasoner-table-1", "memreasoner-table-2")),
    Asked(LONG, "babi_two_facts", TASKS[LONG], ("memreasoner-table-1", "memreasoner-table-3")),
)
CHAINS = (
    Asked("memreasoner_variable_tracking", "vt_1hop", "one hop", ("memreasoner-table-13",)),
    Asked("memreasoner_variable_tracking", "vt_2hop", "two hops", ("memreasoner-table-14",)),
)


def _medians(runs: Runs, row: str, arm: str, task: str, tests: Iterable[str]) -> dict[str, float]:
    """{test: median of a row's runs in percent}, without tests that have none."""
    values = {test: runs.values(row, arm, task, test) for test in tests}
    return {test: median(found) for test, found in values.items() if found}


def _by_length(survey: Survey, asked: Iterable[Asked], name: str, caption: str) -> str:
    """Tabulate accuracy by length on some tasks, which have equal lengths."""
    rows, lengths = [], ()
    for one in asked:
        runs = busiest(survey, one.experiment)
        lengths = lengths or runs.tests[one.task]
        rows += _beside_print(runs, one)
    if not any(row[2] for row in rows):
        return NOTHING
    head = ("task", "model", "seeds", *lengths)
    return table(head, rows, name=name, caption=caption, numbers=("seeds", *lengths))


def _beside_print(runs: Runs, asked: Asked) -> list[tuple]:
    """Rows of accuracy by length on a task: one per reading, and MemReasoner's printed one."""
    _, task, said, artifacts = asked
    rows, lengths, paper = [], runs.tests[task], printed(*artifacts)
    for row, arm in runs.rows:
        found = _medians(runs, row, arm, task, runs.tested(row, arm, task))
        if found:
            shown = (short(found[test]) if test in found else "" for test in lengths)
            label = runs.label(row, arm)
            rows.append((said, label, len(runs.cell(row, arm, task)), *shown))
    for (row, arm, other), broken in runs.broken.items():
        if other == task:
            failed = f"{FAILED}: {len(broken)}"
            rows.append((said, runs.label(row, arm), failed, *[""] * len(lengths)))
    known = (paper.get(("MemReasoner", task, test)) for test in lengths)
    shown = ("" if value is None else number(value) for value in known)
    return [*rows, (said, "*printed*", "", *shown)]


def reach(survey: Survey) -> str:
    """Accuracy by length in each reading, and what the paper prints."""
    body = _by_length(
        survey,
        READ,
        name="tab-findings-memreasoner-reach",
        caption="How much is left in a novel: questions answered in percent, medians over seeds, "
        "by length of the context; *babi* is bAbI's own test. The printed rows are the large "
        f"model's. A guess among {len(PLACES)} places is right for {short(losses.CHANCE)} %; a "
        "model that names no such place has less.",
    )
    level = [said for one in READ for said in _level(busiest(survey, one.experiment), one)]
    if level:
        body += (
            "\nWhere each run has one number from some length on, its answers seem not to "
            f"depend on the context any more: {words(level)}.\n"
        )
    return body


def _level(runs: Runs, asked: Asked) -> list[str]:
    """Name the rows each of whose runs has one accuracy, above 0, from some length on.

    At least three lengths have to agree. A row of one run is not named.
    """
    found, lengths = [], runs.tests[asked.task]
    for row, arm in runs.rows:
        tested = [n for n in lengths if n in runs.tested(row, arm, asked.task)]
        by_seed = list(zip(*(runs.values(row, arm, asked.task, n) for n in tested), strict=True))
        first = max((_first_level(values) for values in by_seed), default=0)
        if len(by_seed) > 1 and len(tested) - first >= LEVEL and any(v[-1] for v in by_seed):
            found.append(
                f"{runs.label(row, arm)} on {asked.said} from {tested[first]} on "
                f"({words(sorted({short(v[-1]) for v in by_seed}, key=float))} % in "
                f"{plural(len(by_seed), 'run')})"
            )
    return found


def _first_level(values: tuple[float, ...]) -> int:
    """Return the place from which on some values are all equal."""
    return next(i for i in range(len(values)) if len(set(values[i:])) == 1)


def parts(survey: Survey) -> str:
    """Say where answers go wrong at the shortest and the longest context with a novel."""
    said = []
    for name, task in TASKS.items():
        runs = busiest(survey, name)
        middle = split.means(runs)
        for model, arm in runs.rows:
            where = middle.index[(middle.index.get_level_values(0) == model)
                                 & (middle.index.get_level_values(1) == arm)]  # fmt: skip
            lengths = [cell for cell in where if cell[3] in ("1k", "128k")]
            told = [
                f"at {cell[3]} {short(one['both'])} % are read and answered right, "
                f"{short(one['read'])} % read, but answered wrongly, "
                f"{short(one['answer'])} % answered right from another line, "
                f"{short(one['neither'])} % answered wrongly from another line{_diverged(one)}"
                for cell in lengths
                for one in [middle.loc[cell]]
            ]
            if told:
                (asked,) = runs.tasks
                count = plural(len(runs.cell(model, arm, asked)), "run")
                said.append(f"- **{task.capitalize()}, {runs.label(model, arm)}, means over "
                            f"{count}:** {'; '.join(told)}.")  # fmt: skip
    if not said:
        return NOTHING
    guess = (
        f"A guess among {len(PLACES)} places is right for {short(losses.CHANCE)} % of the "
        "questions, whatever was read."
    )
    return "\n".join([*said, "", guess, ""])


def _diverged(one: pd.Series) -> str:
    """Name the share of the questions whose memory diverged, if there are any."""
    share = one["diverged"]
    return f", {short(share)} % not read, since the memory diverged" if share else ""


def terms(survey: Survey) -> str:
    """Accuracy without terms of the loss, and the effect of each in runs of the same seed."""
    runs = busiest(survey, "memreasoner_losses")
    middle = losses.medians(runs)
    if len(middle) < 2:
        return NOTHING
    seeds = losses.accuracies(runs).groupby("terms")["seed"].nunique()
    rows = [(name, seeds[name], *map(short, row)) for name, row in middle.iterrows()]
    lengths = list(middle.columns)
    head, *effects = losses.outcome(runs).splitlines()
    beside = "\n".join([f"\n{head}\n", *(f"- {effect}" for effect in effects)])
    body = table(
        ("loss", "seeds", *lengths),
        rows,
        name="tab-findings-memreasoner-losses",
        caption="What each term of the loss is worth: questions of one fact answered in percent, "
        "medians over seeds, by length of the context. The effects below are medians of "
        "differences between runs of the same seed, not differences of these medians.",
        numbers=("seeds", *lengths),
    )
    return f"{body}{beside}\n"


def deciding(survey: Survey) -> str:
    """Say which terms of the loss decide, by the runs that know bAbI itself."""
    runs = busiest(survey, "memreasoner_losses")
    data = losses.accuracies(runs)
    found: dict[tuple[int, int, str], list[str]] = {}  # what is said, in order, of which choices
    decisive: dict[str, list[str]] = {}  # {choice of terms: what every seed of it does}
    for terms in LOSSES:
        if terms == with_all_terms(terms):
            continue
        for place, (where, lengths) in enumerate(losses.CONTEXTS.items()):
            every = losses.gains(data, terms, lengths)
            if every.empty:
                continue
            gain = losses.gains(data, terms, lengths, learned=True)
            if gain.empty:
                idle = "not even bAbI's own test is known in any run, so that a novel tells nothing"
                found.setdefault((-1, 0, idle), []).append(
                    f"*{terms}* ({plural(len(every), 'run')})"
                )
                break
            does = {
                "fewer": f"every seed answers fewer questions {where}",
                "more": f"every seed answers more questions {where}",
                "open": f"{where}, seeds disagree, are too few, or differ by less than the margin",
            }
            side = _agreed(gain)
            said = does[side] + " than with all terms" * (side != "open")
            found.setdefault((place, [*does].index(side), said), []).append(
                f"*{terms}* ({signed(gain.median())} points, {plural(len(gain), 'pair')} of runs)"
            )
            if side != "open":
                decisive.setdefault(terms, []).append(does[side])
    lines = [f"- {words(choices)}: {said}." for (_, _, said), choices in sorted(found.items())]
    return "\n".join([*lines, "", _near(runs, decisive)]).rstrip() + "\n" if lines else NOTHING


def _agreed(gain: pd.Series) -> str:
    """*fewer* or *more* if all of enough seeds say so, by more than the margin in the median; else
    *open*.
    """
    margins = load_margins()
    margin = margins.measures["accuracy"].around(0)
    for side, by in (("fewer", -gain), ("more", gain)):
        if len(by) >= margins.least_seeds and by.median() > margin and (by > 0).all():
            return side
    return "open"


def _near(runs: Runs, decisive: Mapping[str, list[str]]) -> str:
    """Say how near the lines of a novel come, with all terms and with the choices of terms that
    decide in the same reading; empty without traces.

    decisive  {choice of terms: what every seed of it does}
    """
    whole, data = next(iter(LOSSES)), codes.codes(runs)
    own = data[data["terms"] == whole]
    if own.empty:
        return ""
    by_length = {length: part["room"] for length, part in own.groupby("test", sort=False)}
    far = _room(own)
    beside = "".join(
        f" {capital(terms)}, where {words(does)}, it is {_room(part)}."
        for terms, does in decisive.items()
        if with_all_terms(terms) == whole and len(part := data[data["terms"] == terms])
    )
    nearer = words(f"{(room < 1).sum()} at {length}" for length, room in by_length.items())
    first = own[own["test"] == next(iter(by_length))][["between", "spread"]].median()
    seeds = plural(own["seed"].nunique(), "run")
    return (
        f"With *{whole}* the distance from what the first hop reads to the nearest line of a "
        f"novel, over that to the wanted line, is {far}: medians over questions, then over "
        f"{seeds}.{beside} Of {seeds} with *{whole}* the novel is nearer in the median question in "
        f"{nearer}. At {next(iter(by_length))} the novel's codes spread "
        f"{first['spread']:.2f} times as far as those of the facts, and the two means are "
        f"{first['between']:.2f} times that spread of the facts apart."
    )


def _room(data: pd.DataFrame) -> str:
    """The medians over runs of :func:`relength.papers.memreasoner.codes.codes`, by length."""
    by_length = data.groupby("test", sort=False)["room"].median()
    return words(f"{room:.2f} at {length}" for length, room in by_length.items())


def first_wrong(survey: Survey) -> str:
    """Say what goes wrong first at the longest context with traces: retrieval, order, writing.

    Shares are of all questions; some are answered right from a line that was read wrongly.
    """
    said = []
    for name, task in TASKS.items():
        runs = busiest(survey, name)
        middle = hops_read.means(runs)
        seeds = hops_read.firsts(runs).groupby(["model", "arm"])["seed"].nunique()
        for (model, arm, asked), part in split.cells(middle):
            length, last = part.index[-1], part.iloc[-1]
            retrieval = last["text"] + last["fact"]
            said.append(
                f"- **{task.capitalize()}, {runs.label(model, arm, asked)}, at {length}, means "
                f"over {plural(seeds[model, arm], 'run')}:** {short(last['answered'])} % of the "
                f"questions are read and answered right; retrieval fails first for "
                f"{short(retrieval)} % ({short(last['text'])} % read a line of the novel), order "
                f"for {short(last['order'])} %, and writing for {short(last['writing'])} %"
                f"{_diverged(last)}. {short(last['lucky'])} % are answered right from a line that "
                "was read wrongly."
            )
    return "\n".join(said) + "\n" if said else NOTHING


def large(survey: Survey) -> str:
    """List the claims that no run here can test, each with its reason."""
    known = survey.ledger
    if known.empty:
        return NOTHING
    own = known[(known["paper"] == "memreasoner") & known["prose"]]
    idle = own[own["verdict"] == "not testable"]
    listed = "\n".join(
        f"- {plain(row.statement)} {{ref}}`{row.claim} <claim-{row.claim}>` {row.seen}"
        for row in idle.itertuples()
    )
    return (
        f"{len(idle)} of the {plural(len(own), 'claim')} cannot be tested by any run of ours, and "
        "no verdict is given on them; each is listed with its reason.\n\n"
        f":::{{dropdown}} Claims without a verdict\n{listed}\n:::\n"
    )


def places(survey: Survey) -> str:
    """Say whether new places are read, and whether they are named."""
    runs = busiest(survey, "memreasoner_locations")
    middle = split.means(runs)
    said = [
        f"- **{runs.label(model, arm, task)}, {'one fact' if 'one' in task else 'two facts'}, "
        f"means over {plural(len(runs.cell(model, arm, task)), 'run')}:** "
        f"the right lines are read for {short(one['both'] + one['read'])} % of the questions, and "
        f"{short(one['both'] + one['answer'])} % are answered right."
        for (model, arm, task, test), one in middle.iterrows()
        if test == NEW
    ]
    if not said:
        return NOTHING
    ends = [
        record["curve"][-1]["train_loss"]
        for model, arm in runs.rows
        if model == "MemReasoner windows"
        for task in runs.tasks
        for record in runs.cell(model, arm, task)
    ]
    if ends:
        said += [
            "",
            "*MemReasoner windows* has new places in what it writes while training: at the end all "
            f"terms of its loss together are {max(ends):.2g} or less, in "
            f"{plural(len(ends), 'run')}. Not to know the exchanged word of a window would alone "
            f"cost {log(runs.specs[0].task.words) / (WINDOWS['window_words'] + 1):.2g}.",
        ]
    return "\n".join(said) + "\n"


def orders(survey: Survey) -> str:
    """Accuracy with every temporal encoding, ours beside print."""
    runs, lengths = busiest(survey, "memreasoner_ablations").part(ORDERS), ("0k", "1k", "2k")
    found = {row: _and_printed(runs, row, arm, ORDERS, lengths) for row, arm in runs.rows}
    ends, data = (lengths[0], TRACED), hops_read.distances(runs)
    rows = [
        (row, *cells, mechanism.further(data, row, ends)) for row, cells in found.items() if cells
    ]
    if len(rows) < 2:
        return NOTHING
    body = table(
        ("order", "seeds", *lengths, "printed", "further"),
        rows,
        name="tab-findings-memreasoner-orders",
        caption="What puts lines in order: questions of one fact answered in percent, medians "
        "over seeds. MemReasoner itself has one recurrent layer in both directions. "
        "<i>Further</i>: by how many times what is read is further from the wanted line at "
        f"{ends[1]} than at {ends[0]}, in the median run.",
        numbers=("seeds", *lengths, "further"),
    )
    return f"{body}{_cost_of_order(runs, lengths[0], lengths[-1])}"


def _and_printed(
    runs: Runs, row: str, arm: str, artifact: str, lengths: Iterable[str]
) -> tuple[str | int, ...]:
    """Seeds of a row, medians by length, and what the paper prints; empty without a run."""
    (task,), paper = runs.tasks, printed(artifact)
    found = _medians(runs, row, arm, task, lengths)
    said = words([number(paper[row, task, n]) for n in lengths if (row, task, n) in paper])
    shown = (short(found[length]) for length in lengths if found)
    return (len(runs.cell(row, arm, task)), *shown, said or "not printed") if found else ()


def _cost_of_order(runs: Runs, short_one: str, long_one: str) -> str:
    """Compare what a novel takes from runs with an order of lines and from runs without any.

    It is empty unless both have runs.
    """
    (task,) = runs.tasks
    unordered = {s.row for s in runs.specs if getattr(s.model, "temporal", "") == "none"}
    lost, none = {}, []
    for row, arm in runs.rows:
        ends = (runs.values(row, arm, task, length) for length in (short_one, long_one))
        if drops := [before - after for before, after in zip(*ends, strict=True)]:
            if row in unordered:
                none += drops
            else:
                lost[row] = drops
    if not (none and lost):
        return ""
    least, most = (pick(median(drops) for drops in lost.values()) for pick in (min, max))
    said = (
        f"\nFrom {short_one} to {long_one} {_loses(max(none))} without any order "
        f"({plural(len(none), 'run')}); with an order the median run "
        f"loses {short(least)} to {short(most)}, by its kind. "
    )
    if max(none) < load_margins().measures["accuracy"].around(0) < least:
        said += (
            "An order changes the code of each line with its place, so that a question has more "
            "codes to know a line by. But without an order, a person's last line is not told from "
            "the earlier ones."
        )
    return f"{said}\n"


def _loses(points: float) -> str:
    """Word the most that some runs lose, in points."""
    return f"a run loses at most {short(points)} points" if points > 0 else "no run loses anything"


def supervision(survey: Survey) -> str:
    """Accuracy where the loss tells of each fact or of the last alone, by the update at test."""
    runs, lengths = busiest(survey, "memreasoner_ablations").part(SUPERVISION), WEAK_LENGTHS
    models = {spec.row: spec.model for spec in runs.specs if spec.row not in COMPARED}
    found = {row: _and_printed(runs, row, m.arm, SUPERVISION, lengths) for row, m in models.items()}
    rows = [(*_told(models[row]), *cells) for row, cells in found.items() if cells]
    if len(rows) < 2:
        return NOTHING
    return table(
        ("the loss tells of", "update at test", "seeds", *lengths, "printed"),
        rows,
        name="tab-findings-memreasoner-supervision",
        caption="What the loss tells, and how strong the update is at test; in training it is "
        f"{words(sorted({f'{m.update:g}' for m in models.values()}))}. Questions of two facts "
        "answered in percent, medians over seeds. The paper does not say with which update it "
        "asked the model that was told of the last fact.",
        numbers=("update at test", "seeds", *lengths),
    )


def _told(model: MemReasonerConfig) -> tuple[str, str]:
    """The facts that the loss tells a model of, and its update at test."""
    last = getattr(model, "supervised", "every") == "last"
    return "the last fact" if last else "each fact", f"{model.test_update:g}"


def chains(survey: Survey) -> str:
    """Accuracy of variable tracking by length in each reading, and what the paper prints."""
    return _by_length(
        survey,
        CHAINS,
        name="tab-findings-memreasoner-chains",
        caption="Which variables have a value: questions answered with all names and no other, in "
        "percent, medians over seeds, by length of the context. The printed rows are the large "
        "model's, as far as they are legible.",
    )


def decoders(survey: Survey) -> str:
    """Say what the printed numbers tell of larger decoders; no run is needed."""
    return "\n".join(f"- {line}" for line in (*gptj_in_words().splitlines(), qwen())) + "\n"


PASSAGES = {
    "findings_memreasoner_reach": reach,
    "findings_memreasoner_parts": parts,
    "findings_memreasoner_conclusion": partial(conclusion, "memreasoner"),
    "findings_memreasoner_first": first_wrong,
    "findings_memreasoner_deciding": deciding,
    "findings_memreasoner_terms": terms,
    "findings_memreasoner_places": places,
    "findings_memreasoner_orders": orders,
    "findings_memreasoner_supervision": supervision,
    "findings_memreasoner_chains": chains,
    "findings_memreasoner_large": large,
    "findings_memreasoner_decoders": decoders,
    **mechanism.PASSAGES,
}
