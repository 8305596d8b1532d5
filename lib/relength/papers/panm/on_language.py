"""Find where a pointer helps on language, and where the network below it does more.

A network is compared with the same one that has PANM on top, and with other networks that have no
pointers: longer than those of training, test by test. What differs by no more than the margin of
verdicts counts as nothing. The two have other numbers of weights, so a gain may be one of size,
which stands beside it. Where PANM knows even the lengths of training less well and is no better
on longer ones, these tell nothing of pointers; nor do they where it is better on longer ones by no
more than on the lengths of training. Where neither has half of the lengths of training right, there
is nothing that could carry over to longer ones.
"""

from itertools import product
from typing import NamedTuple

import numpy as np

from relength.papers.panm.translation_experiments import LAYERS
from relength.report.grid import NOT_RUN
from relength.report.markdown import table
from relength.report.outcomes import busiest
from relength.report.runs import Runs
from relength.report.scoreboard import Survey
from relength.report.style import title
from relength.report.tables import short
from relength.report.wording import words
from relength.specs.margins import ROUNDING, load_margins
from relength.verdicts.wording import plural


class Kind(NamedTuple):
    """Tasks of one page, and the rows of its runs that are compared.

    pairs   a network with PANM, and the same without
    others  networks without pointers
    """

    experiment: str
    words: str
    pairs: tuple[tuple[str, str], ...]
    others: tuple[str, ...] = ()


DEPTHS = tuple(f", {n} layer{'s' * (n > 1)}" if n < max(LAYERS) else "" for n in sorted(LAYERS))
KINDS = (
    Kind("panm_dyck", "Dyck", (("PANM on SRNN", "SRNN"),)),
    Kind("panm_scan", "SCAN", (("PANM on TRM", "TRM"),), ("TRM+RPE", "U. TRM", "U. TRM+RPE")),
    Kind(
        "panm_mathematics",
        "Mathematics",
        (("PANM on TRM", "TRM"), ("PANM on TRM+RPE", "TRM+RPE")),
        ("TRM", "TRM+RPE", "U. TRM", "U. TRM+RPE"),
    ),
    Kind("panm_babi", "bAbI", (("PANM on TRM", "TRM"),), ("U. TRM+RPE",)),
    Kind(
        "panm_translation",
        "Translation",
        tuple((f"PANM on TRM{depth}", f"TRM{depth}") for depth in DEPTHS),
        tuple(f"TRM{depth}" for depth in DEPTHS),
    ),
    Kind("panm_squad", "SQuAD", (("PANM on BERT", "BERT"),)),
    Kind("panm_language", "Language model, letters", (("PANM on Llama", "Llama"),)),
    Kind("panm_bigbench", "Language model, BIG-bench", (("PANM on Llama", "Llama"),)),
)


class Setting(NamedTuple):
    """One test of one network: means or medians of seeds, as the paper has them; NaN without runs.

    alone, pointers, repaired  the network, with PANM as in the text, and with repaired PANM; the
                               first two of the seeds that both have
    other, best                the best of the other networks without pointers, and its number
    sign                       -1 where less is better
    margin                     a difference that counts as nothing
    seeds                      the fewest of PANM, of the network alone and of the best other
    trained                    by how many margins PANM is better on the lengths of training than
                               the network alone or, without runs of that, the best other
    known                      percent right on the lengths of training, of the better of these
                               two; NaN where the measure counts nothing right
    typical                    by how much the median seed of PANM is better than that of the
                               network alone or, without runs of that, of the best other
    size                       weights with PANM over those of the network alone or, without runs of
                               that, of the best other
    """

    task: str
    test: str
    row: str
    alone: float
    pointers: float
    repaired: float
    other: str
    best: float
    sign: int
    margin: float
    seeds: int
    trained: float = 0.0
    known: float = np.nan
    typical: float = np.nan
    size: float = np.nan

    def gain(self, value: float) -> float:
        """Return by how much a number is better than that of the network alone."""
        return self.sign * (value - self.alone)

    @property
    def answer(self) -> str:
        """The answer of the test: a key of ANSWERS."""
        if load_margins().levels["failed"].holds(self.known):
            return "unlearned"
        unknown = np.isnan(self.alone)
        lead = self.sign * (self.pointers - (self.best if unknown else self.alone))
        if self.trained < -1 and lead <= self.margin:
            return "untrained"
        if self.trained > 1 and self.margin < lead <= self.trained * self.margin + ROUNDING:
            return "learned"
        if not np.isnan(self.typical) and self._beyond(lead) != self._beyond(self.typical):
            return "seeds"
        if unknown:
            return "level" if abs(lead) <= self.margin else "ahead" if lead > 0 else "behind"
        pointers, network = self.gain(self.pointers), self.gain(self.best)
        if np.isnan(network) and pointers >= -self.margin:
            return "helps" if pointers > self.margin else "nothing"
        if pointers > self.margin:
            return "both" if network > pointers else "pointer"
        if pointers < -self.margin:
            return "harm"
        return "network" if network > self.margin else "neither"

    def _beyond(self, lead: float) -> int:
        """Return 1 for a lead beyond the margin, -1 for one behind it, and 0 within it."""
        return int(lead > self.margin) - int(lead < -self.margin)


ANSWERS = {
    "pointer": "the pointer helps most",
    "both": "the pointer helps, another network more",
    "network": "another network helps, the pointer does not",
    "harm": "the pointer harms",
    "neither": "neither helps beyond the margin",
    "helps": "the pointer helps; no other network has run",
    "nothing": "the pointer does not help beyond the margin; no other network has run",
    "ahead": "PANM is ahead of the best other network",
    "behind": "another network is ahead of PANM",
    "level": "PANM and the best other network are level",
    "seeds": "means and medians say different things",
    "unlearned": "neither has half of even the trained lengths right",
    "untrained": "PANM is behind even on trained lengths",
    "learned": "PANM is as far ahead on trained lengths",
}
HEADS = {
    "pointer": "The pointer helps most on",
    "both": "The pointer helps, but another network without pointers more, on",
    "network": "Another network without pointers helps, and the pointer does not, on",
    "harm": "The pointer harms on",
    "neither": "Neither the pointer nor another network helps beyond the margin on",
    "helps": "The pointer helps, and no other network has run, on",
    "nothing": "The pointer does not help beyond the margin, and no other network has run, on",
    "ahead": "PANM is ahead of every other network that has run on",
    "behind": "Another network without pointers is ahead of PANM on",
    "level": "PANM is level with the best other network that has run on",
    "seeds": "Means and medians say different things, so that a few seeds decide, on",
    "unlearned": "Neither PANM nor the network without it has half of even the lengths of "
    "training right, so that longer ones tell nothing of pointers, on",
    "untrained": "PANM is behind even on the test of trained lengths, so that longer ones tell "
    "nothing of pointers, on",
    "learned": "PANM is as far ahead on the lengths of training, so that longer ones tell nothing "
    "of pointers, on",
    "mixed": "Tests disagree on",
}


def settings(kind: Kind, runs: Runs) -> list[Setting]:
    """Every test beyond the lengths of training in which PANM has runs, and something beside it."""
    arms, metric = runs.experiment.judged_arms, runs.experiment.shown
    sign = -1 if runs.shown.lower_is_better else 1
    room = load_margins().measures[runs.shown.margin or "accuracy"]

    def values(row: str, task: str, test: str, arm: str = "", beside: str = "") -> list[float]:
        """Of all seeds, or of those that another row has, too."""
        arm = arm or arms.get(row, "")
        if (row, arm) not in runs.rows:
            return []
        ran = runs.by_seed(row, arm, task, test, metric=metric)
        there = runs.by_seed(beside, arms[beside], task, test, metric=metric) if beside else ran
        return [value for seed, value in ran.items() if seed in there]

    def number_of(*cell: str, beside: str = "") -> tuple[float, int]:
        ran = values(*cell, beside=beside)
        return (runs.middle(ran), len(ran)) if ran else (np.nan, 0)

    def weights(row: str, task: str) -> float:
        ran = runs.cell(row, arms[row], task)
        return ran[0]["parameters"] if ran else np.nan

    def best(rows: list[str], task: str, test: str) -> tuple[str, float, int]:
        ran = {row: found for row in rows if (found := number_of(row, task, test))[1]}
        if not ran:
            return "", np.nan, 0
        row = max(ran, key=lambda row: sign * ran[row][0])
        return row, *ran[row]

    found = []
    for task, tests in runs.tests.items():
        for test, (pointers, row) in product(tests[1:], kind.pairs):
            alone, fewer = number_of(row, task, test, beside=pointers)
            same = row if fewer else ""
            ours, seeds = number_of(pointers, task, test, beside=same)
            others = [name for name in kind.others if name != row]
            other, rival, least = best(others, task, test)
            if not seeds or not (fewer or least):
                continue
            known = number_of(pointers, task, tests[0], beside=same)[0]
            beside = (
                number_of(row, task, tests[0], beside=pointers)[0]
                if fewer
                else best(others, task, tests[0])[1]
            )
            rivals = (
                values(row, task, test, beside=pointers) if fewer else values(other, task, test)
            )
            lead = np.median(values(pointers, task, test, beside=same)) - np.median(rivals)
            found.append(
                Setting(
                    task,
                    test,
                    row,
                    alone,
                    ours,
                    number_of(pointers, task, test, "repaired")[0],
                    other,
                    rival,
                    sign,
                    room.around(alone if fewer else rival),
                    min(ran for ran in (seeds, fewer, least) if ran),
                    sign * (known - beside) / room.around(beside),
                    max(known, beside) if sign > 0 else np.nan,
                    sign * float(lead),
                    weights(pointers, task) / weights(row if fewer else other, task),
                )
            )
    return found


def summary(kind: Kind, runs: Runs, found: list[Setting]) -> str:
    """One kind of task in a sentence or two."""
    if not found:
        return f"**{kind.words}:** {NOT_RUN}."
    counts = {answer: sum(one.answer == answer for one in found) for answer in ANSWERS}
    said = [f"in {count} {ANSWERS[answer]}" for answer, count in counts.items() if count]
    compared = len([one for one in found if one.other])
    without = f"; in {len(found) - compared} no other network without pointers has run"
    fewest = plural(min(one.seeds for one in found), "seed")
    return (
        f"**{kind.words}** ({plural(len(found), 'test')}, at least {fewest} of each network, "
        f"scale *{runs.scale}*): {', '.join(said)}"
        f"{without if compared < len(found) else ''}."
    )


def by_answer(answered: dict[str, list[Setting]]) -> dict[str, list[str]]:
    """{answer: kinds of tasks}, by what more than half of their tests say, else *mixed*.

    Kinds without settings are left out.
    """
    named: dict[str, list[str]] = {}
    for kind, found in answered.items():
        if found:
            given = [one.answer for one in found]
            most = max(ANSWERS, key=given.count)
            tied = given.count(most) * 2 <= len(given)
            named.setdefault("mixed" if tied else most, []).append(kind)
    return named


def conclusion(answered: dict[str, list[Setting]]) -> str:
    """Group the kinds of tasks by the answer that most of their tests give."""
    named = by_answer(answered)
    parts = [f"{head} {words(named[key])}." for key, head in HEADS.items() if key in named]
    absent = [kind for kind, found in answered.items() if not found]
    if absent:
        parts.append(f"Not run: {words(absent)}.")
    return " ".join(parts)


def on_language(survey: Survey) -> str:
    """Answer from whatever is recorded: does a pointer help, or is it the network below it?"""
    said, rows, answered, few = [], [], {}, False
    for kind in KINDS:
        runs = busiest(survey, kind.experiment)
        found = settings(kind, runs)
        answered[kind.words] = found
        said.append(f"- {summary(kind, runs, found)}")
        few |= any(one.seeds < load_margins().least_seeds for one in found)
        rows += [
            (
                title(one.task),
                one.test,
                one.row,
                NOT_RUN if np.isnan(one.alone) else short(one.alone),
                short(one.pointers),
                NOT_RUN if np.isnan(one.repaired) else short(one.repaired),
                f"{short(one.best)} ({one.other})" if one.other else NOT_RUN,
                f"{one.size:.1f}",
                ANSWERS[one.answer],
            )
            for one in found
        ]
    least = load_margins().least_seeds
    warning = (
        f" Some have fewer seeds than the {least} that a verdict takes: there it may be chance."
        if few
        else ""
    )
    every = [one for found in answered.values() for one in found]
    body = f"{conclusion(answered)}{repairs(every)}{warning}\n\n" + "\n".join(said)
    if not rows:
        return f"{body}\n"
    heads = ("alone", "PANM", "repaired", "best other", "size")
    return f"{body}\n\n" + table(
        ("task", "test", "network", *heads, "what it says"),
        rows,
        name="tab-findings-panm-language",
        caption="Networks alone and with PANM, as in the text and repaired, and the best other "
        "network without pointers, on inputs longer than those of training: means or medians of "
        "seeds, as the paper has them, in percent; of translation, perplexity, where less is "
        "better. The network alone and with PANM have equal seeds. Where no number of layers is "
        "named, TRM has three; a network of another depth is another one. <i>Size</i>: weights "
        "with PANM over those of the network alone or, without runs of that, of the best other: "
        "a gain may be one of size. The last column judges PANM as in the text.",
        numbers=(*heads[:3], heads[4]),
    )


def repairs(every: list[Setting]) -> str:
    """Say in how many tests repaired PANM differs from the network alone."""
    ran = [one for one in every if not np.isnan(one.repaired + one.alone)]
    if not ran:
        return ""
    better = [one for one in ran if one.gain(one.repaired) > one.margin]
    worse = sum(one.gain(one.repaired) < -one.margin for one in ran)
    named = ", ".join(f"{one.row} on {title(one.task)} {one.test}" for one in better)
    return (
        f" This judges pointers as in the text. With repaired ones, which {len(ran)} of "
        f"{len(every)} tests have, a network is better than alone in {len(better)}"
        f"{f' ({named})' if better else ''} and worse in {worse}."
    )


PASSAGES = {"findings_panm_language": on_language}
