"""The page on the cost of a long context: what was measured, beside Table 6 and its claims."""

from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from relength.papers.memreasoner import reading_time
from relength.papers.memreasoner.reading_time import OURS, PLAIN, READ, SET, TOGETHER
from relength.report import exhibits
from relength.report.computed import Computed
from relength.report.exhibits import MEASURED, Exhibit, rows_table, titled
from relength.report.grid import NOT_RUN
from relength.report.style import ARM_LABELS, aligned, title
from relength.report.wording import grid, words
from relength.runs.prices import Device
from relength.runs.store import Store, device_seconds
from relength.specs.experiments import experiments
from relength.specs.margins import load_margins
from relength.specs.spec import RunSpec
from relength.verdicts import judged, rules
from relength.verdicts.wording import NEW

PAGE = "memreasoner_cost"
COMMAND = "relength bench --paper memreasoner"
PRINTED = {OURS: "MemReasoner", PLAIN: "gpt2-large"}
LINEAR = 0.1  # how far a slope may be above 1
# What an answer, and a run of scale reduced on a core, are meant to take, so that a reader can make
# them again.
SECONDS_AT_MOST, MEMORY_AT_MOST = 0.5, 2 * 2**30
MINUTES_AT_MOST = {"babi_one": ("one fact", 5), "babi_two": ("two facts", 15)}  # by task
MINUTES_UNTIL_LEARNT = 20  # on both, where training goes on until something is learnt
SECONDS = (
    "Overall, we observe that the increase in inference time for MemReasoner is very small for 0k "
    "and MemReasoner is more efficient for 1k context length."
)
QUOTES = {
    "memreasoner-027": SECONDS,
    "memreasoner-028": SECONDS,
    "memreasoner-030": "The inference-time computational complexity for MemReasonr can be "
    "estimated by the encoder complexity O(H₁((EL² + L₁²)d₁ + (EL + L₁)d₁²)), temporal encoding "
    "complexity O(Ed²), memory operation complexity O(Edm²), decoding complexity O(H₂(|P_a|²d₂ + "
    "|P_a|d₂²)), and broadcasting complexity O(d₁dE) and O(d₂dH₂).",
}
SCOPES = {
    "memreasoner-027": "The first half of the sentence, with a plain decoder of equal size in "
    "place of GPT2-large, on a core: seconds at 0k over those of the decoder, as printed within "
    "the margin for ratios of cost, in every round.",
    "memreasoner-028": "The second half of the sentence, with a plain decoder of equal size in "
    "place of GPT2-large, on a core: a majority of rounds decides.",
    "memreasoner-030": "MemReasoner's part alone, as measured: in a majority of rounds the slope "
    f"of time by lines, in logarithms from 4k on, is at most {1 + LINEAR:g}. An order of growth is "
    "an upper bound, so that a slope below 1 agrees.",
}
CHANGED = {"memreasoner-027": (NEW,), "memreasoner-030": ("rule",)}  # after the first measurement


def latest(store: Store) -> dict[str, Any] | None:
    """The last measurement that a store has; None if there is none."""
    return store.latest_benchmark(reading_time.KIND)


def benchmark(rounds: int) -> tuple[dict[str, Any], str]:
    """Measure what ``relength bench --paper memreasoner`` asks for, and word it."""
    outcome = reading_time.measure(rounds)
    return outcome, numbers(outcome)


def data(measured: dict[str, Any] | None) -> pd.DataFrame:
    """A row per model, length and round: seconds, and what Table 6 prints."""
    rows = [
        (name, n, number, seconds, _printed(name).get(f"babilong/{n}", np.nan))
        for name, lengths in (measured["seconds"] if measured else {}).items()
        for n, rounds in lengths.items()
        for number, seconds in enumerate(rounds, start=1)
    ]
    return pd.DataFrame(rows, columns=["model", "length", "round", "seconds", "printed"])


def _printed(model: str) -> pd.Series:
    """The row of Table 6 that stands for a model; empty if none does."""
    cells = grid("memreasoner-table-6")
    return cells.loc[PRINTED[model]] if model in PRINTED else pd.Series(dtype=float)


def _rows(measured: dict[str, Any] | None) -> list[tuple[str, ...]]:
    """Per model and length: lines, milliseconds, times those at 0k, memory, and times as printed.

    Memory is that of some lengths, see :func:`relength.papers.memreasoner.reading_time.held_at`.
    """
    rows = []
    for name, lengths in (*READ.items(), (TOGETHER, READ[OURS])):
        printed = _printed(name)
        for n in lengths:
            said = printed.get(f"babilong/{n}", np.nan)
            times = "–" if np.isnan(said) else f"{said / printed['babilong/0k']:.2f}"
            own = (NOT_RUN,) * 4
            if measured and name in measured["seconds"]:
                seconds = measured["seconds"][name]
                took, first = median(seconds[n]), median(seconds["0k"])
                held = _held(measured, name).get(n)
                own = (
                    *(f"{measured['lines'][n]:.0f}", f"{1000 * took:.1f}", f"{took / first:.2f}"),
                    "–" if held is None else f"{held / 2**20:.0f}",
                )
            rows.append((name, n, *own, times))
    return rows


def _as_planned(measured: dict[str, Any] | None) -> str:
    """Say what the longest context takes of a test's question, of one alone, and of memory."""
    if measured is None or TOGETHER not in measured["seconds"]:
        return NOT_RUN
    longest = READ[OURS][-1]
    together, alone = (median(measured["seconds"][name][longest]) for name in (TOGETHER, OURS))
    held = max(
        (most for name in measured["seconds"] for most in _held(measured, name).values()),
        default=np.nan,
    )
    return (
        f"at {longest} it takes {together:.2g} s there, one input alone {alone:.2g} s, and "
        f"{held / 2**30:.2g} GiB is the most that any process held"
    )


def trained(store: Store) -> pd.DataFrame:
    """Minutes that runs of scale reduced took on a core, training and tests together.

    A row per record of an experiment's own specs, on the page that keeps it. Columns: page (its
    heading), model (the row, with the reading), task, most (minutes that a run is meant to take;
    NaN if nothing is said), minutes.
    """
    rows = []
    for found in experiments().values():
        if found.paper != "memreasoner":
            continue
        for record in judged.own_records(found, store):
            spec = RunSpec.recorded(record["spec"])
            on_core = spec.scale == "reduced" and record["provenance"]["device"] == "cpu"
            if on_core and found.keeper(spec) is found:
                arm = "" if spec.model.arm == "paper" else f", {ARM_LABELS[spec.model.arm]}"
                minutes = device_seconds(record) / 60
                most = minutes_at_most(spec)
                rows.append((found.heading, f"{spec.row}{arm}", spec.task.name, most, minutes))
    return pd.DataFrame(rows, columns=["page", "model", "task", "most", "minutes"])


def minutes_at_most(spec: RunSpec) -> float:
    """Minutes that a run of scale reduced is meant to take; NaN if nothing is said of its task."""
    for start, (_, most) in MINUTES_AT_MOST.items():
        if spec.task.name.startswith(start):
            until_learnt = spec.training.solved_accuracy is not None or spec.task.window_words
            return MINUTES_UNTIL_LEARNT if until_learnt else most
    return np.nan


def trained_table(store: Store) -> Exhibit:
    """Minutes per run by page, task and model, beside what a run is meant to take."""
    data, name = trained(store), f"{PAGE}-trained"
    meant = words(f"{most} minutes with {kind}" for kind, most in MINUTES_AT_MOST.values())
    caption = (
        "<b>What a run takes.</b> Minutes of a core, training and tests together, of all recorded "
        "runs of scale reduced that a page asks for, by the page that keeps them. Machines differ, "
        f"and were shared. <i>At most</i> is what a run is meant to take: {meant}; "
        f"{MINUTES_UNTIL_LEARNT} where training goes on until a baseline knows its samples, or "
        "<i>MemReasoner windows</i> words that no answer has. <i>Within</i> counts the runs that "
        "keep to it."
    )
    if data.empty:
        return exhibits.waiting(caption, name, "relength run memreasoner_babilong", data)
    rows, slow = [], []
    kinds = ["page", "task", "model", "most"]
    for (page, task, model, most), own in data.groupby(kinds, sort=False, dropna=False)["minutes"]:
        limit, within = "–", "–"
        if not np.isnan(most):
            limit, within = f"{most:g}", f"{(own <= most).sum()} of {len(own)}"
        if own.min() > most:
            slow.append(f"{model} on {title(task)}")
        minutes = (f"{value:.1f}" for value in (own.min(), own.median(), own.max()))
        rows.append((page, title(task), model, str(len(own)), *minutes, limit, within))
    columns = dict.fromkeys(("kept by", "task", "model"), "text") | dict.fromkeys(
        ("runs", "least", "median", "most", "at most"), "number"
    )
    if slow:
        caption += (
            f" Of {words(dict.fromkeys(slow))} the fastest run takes longer, too: there the limit "
            "is not met."
        )
    links = [exhibits.csv(name, data), exhibits.notebook(PAGE)]
    html = exhibits.table(rows_table(columns | {"within": "text"}, rows), caption, name, links)
    return Exhibit(html, f"{len(rows)} kinds of runs.", data)


def _held(measured: dict[str, Any], name: str) -> dict[str, int]:
    """{length: bytes that a process held at most}; the first measurements had the longest alone."""
    held = measured.get("memory_bytes", {}).get(name, {})
    return held if isinstance(held, dict) else {READ[name][-1]: held}


HEADS = ("lines", "ms per input", "times 0k", "MiB at most", "printed, times 0k")


def table(measured: dict[str, Any] | None) -> Exhibit:
    """Time per input by length, ours and as printed."""
    where, found, name = "", data(measured), f"{PAGE}-table"
    if measured:
        origin = measured["provenance"]
        where = (
            f"Medians of {measured['rounds']} rounds on {Device.of(measured)}, PyTorch "
            f"{origin['torch']}, measured {origin['created'][:10]}. One input at a time, or the "
            f"{SET} of a length together, which share sentences. "
        )
    caption = (
        f"<b>Seconds and memory by the length of a context.</b> {where}GPT is a plain decoder of "
        "equal size, in place of the printed GPT2-large; only ratios can be compared with print. "
        "Memory is that of a whole process, PyTorch and books included, measured at three lengths. "
        f"A question of a long context is to take {SECONDS_AT_MOST:g} s at most in tests, which "
        f"answer a set together, and memory is to stay below {MEMORY_AT_MOST / 2**30:g} GiB: "
        f"{_as_planned(measured)}."
    )
    if measured is None:
        return exhibits.waiting(caption, name, COMMAND, found)
    columns = {"model": "text", "length": "text"} | dict.fromkeys(HEADS, "number")
    links = [exhibits.csv(name, found), exhibits.notebook(PAGE)]
    html = exhibits.table(
        rows_table(columns, _rows(measured)), titled(caption, MEASURED), name, links
    )
    return Exhibit(html, f"{len(found)} measurements.", found)


def numbers(measured: dict[str, Any] | None) -> str:
    """Write the table as plain text, and the slope."""
    rows = [(f"{name}, {n}", *cells) for name, n, *cells in _rows(measured)]
    lines = aligned(("", *HEADS), *rows)
    if measured:
        found = reading_time.slopes(measured)
        lines.append(f"Slope of MemReasoner's time by lines, from 4k on: {median(found):.2f}")
    return "\n".join(lines)


def decisions(measured: dict[str, Any] | None) -> list[tuple[str, rules.Decision | None]]:
    """(claim, what its rule says of the rounds); None where nothing is measured."""
    if measured is None:
        return [(claim, None) for claim in QUOTES]
    margins = load_margins()
    plain, ours = (_printed(name)["babilong/0k"] for name in (PLAIN, OURS))
    increase = rules.cost(
        reading_time.ratios(measured, "0k"), ours / plain, margins.measures["cost_ratio"], margins
    )
    faster = rules.majority(reading_time.ratios(measured, "1k") < 1, margins)
    linear = rules.majority(reading_time.slopes(measured) <= 1 + LINEAR, margins)
    return [
        ("memreasoner-027", increase),
        ("memreasoner-028", faster),
        ("memreasoner-030", linear),
    ]


def lines(measured: dict[str, Any] | None) -> str:
    """The verdicts as plain text."""
    return "\n".join(
        f"{claim}: {NOT_RUN} (nothing is measured)"
        if found is None
        else f"{claim}: {found.outcome} ({found.seen})"
        for claim, found in decisions(measured)
    )


def decided(store: Store) -> list[Computed]:
    """Every claim that this page decides."""
    return [
        Computed(
            claim=claim,
            quote=QUOTES[claim],
            page=PAGE,
            unit="round",
            decision=found,
            seen=found.seen if found else "nothing is measured",
            scope=SCOPES[claim],
            needed=COMMAND,
            changed=CHANGED.get(claim, ()),
        )
        for claim, found in decisions(latest(store))
    ]
