"""Traces of a memory that is read in hops: which lines each hop comes near to, by length."""

from typing import TYPE_CHECKING, Any

import numpy as np

from relength.tasks.fact_lines import KINDS, TEXT, WANTED, Kinds, kinds, known
from relength.training.evaluate import unchanged
from relength.training.traces import small_integers

if TYPE_CHECKING:
    from torch.nn import Module

    from relength.models.language.looked import Looked
    from relength.specs.spec import RunSpec

LENGTHS = ("0k", "1k", "4k", "16k", "64k")  # a third of the tokens that are tested
WHOLE = ("1k", "4k")  # lengths of which one question's distances to all lines are kept
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
LEAST = 1e-3  # of a distance that others are divided by
DIVERGED = "none"  # a memory that diverges has no line nearest to a readout


def reads(spec: "RunSpec", model: "Module", device: str) -> dict[str, Any]:
    """Trace what hops read in BABILong; nothing of a model that does not tell, or of another task.

    Each test of LENGTHS that a run has is a dictionary:

    test       its name
    items      questions
    read       per hop: {kind of the line that is read: questions}
    first      {kind of the first line read that is not the wanted one: [questions answered right,
               questions answered wrong]}; "wanted" where all are the wanted ones
    distances  per hop: {kind: QUANTILES over questions of the distance to the nearest line of it},
               of the questions that have such a line
    nearer     per hop that has a wanted line: QUANTILES of how many lines are nearer than it
    room       per hop: QUANTILES over questions of the distance to the nearest line of other text
               per distance to the wanted line, of the questions that have both
    codes      how the codes in the memory lie, see :func:`cloud`
    whole      at lengths of WHOLE, of the first question: its text, ``facts`` (row, text, kind for
               each hop), and per hop ``distances`` (E) to all lines: that of the nearest, and what
               the others are beyond it as small integers
    """
    task = spec.task
    if not known(task) or not getattr(model, "tells_lines", False):
        return {}
    with unchanged(model):
        tests = [test for test in LENGTHS if test in task.lengths]
        return {"reads": [_test(spec, model, test, device) for test in tests]}


def _test(spec: "RunSpec", model: "Module", test: str, device: str) -> dict[str, Any]:
    task = spec.task
    batch = task.dataset(test, spec.seed)
    looked = model.trace_reads(batch.to(device), batch.targets.shape[1])
    hops = len(looked[0].read)
    lines = [kinds(task, test, i, hops) for i in range(len(batch))]
    right = [_right(task, batch, i, look) for i, look in enumerate(looked)]
    found = {"test": test, **summed(looked, lines, right)}
    if test in WHOLE and looked[0].distances is not None:
        facts = [
            [row, text, [KINDS[kind] for kind in lines[0].kinds[:, row].tolist()]]
            for row, text in lines[0].facts.items()
        ]
        question = task.shown(batch, 0).source[-1]
        distances = [
            {"nearest": float(hop.min()), **small_integers(hop - hop.min())}
            for hop in looked[0].distances
        ]
        found["whole"] = {"question": question, "facts": facts, "distances": distances}
    return found


def _right(task: Any, batch: Any, i: int, look: "Looked") -> bool:
    from relength.tasks.batch import Answered

    answered = Answered(look.tokens[None].cpu())
    return bool(task.score([(batch.select(slice(i, i + 1)), answered)]).answer_accuracy)


def summed(looked: "list[Looked]", lines: list[Kinds], right: list[bool]) -> dict[str, Any]:
    """Sum the numbers of :func:`reads` over some questions.

    looked  what was read and written
    lines   what the lines are
    right   whether the answers are right
    """
    hops = len(looked[0].read)
    first: dict[str, list[int]] = {}
    read: list[dict[str, int]] = [{} for _ in range(hops)]
    near: list[dict[str, list[float]]] = [{name: [] for name in KINDS} for _ in range(hops)]
    nearer: list[list[int]] = [[] for _ in range(hops)]
    room: list[list[float]] = [[] for _ in range(hops)]
    for look, line, is_right in zip(looked, lines, right, strict=True):
        wrong = ""
        for hop, row in enumerate(look.read):
            kind = line.kinds[hop]
            name = DIVERGED if look.distances is None else KINDS[kind[row]]
            read[hop][name] = read[hop].get(name, 0) + 1
            asked = (kind == WANTED).any()
            if not wrong and name != KINDS[WANTED] and (asked or name == DIVERGED):
                wrong = name
            if look.distances is None:
                continue
            apart = look.distances[hop]
            for number, known_as in enumerate(KINDS):
                if (kind == number).any():
                    near[hop][known_as].append(float(apart[kind == number].min()))
            if asked and (kind == TEXT).any():
                wanted = max(float(apart[kind == WANTED].min()), LEAST)
                room[hop].append(float(apart[kind == TEXT].min()) / wanted)
            if asked:
                nearer[hop].append(int((apart < apart[kind == WANTED]).sum()))
        first.setdefault(wrong or KINDS[WANTED], [0, 0])[not is_right] += 1
    return {
        "items": len(looked),
        "read": read,
        "first": first,
        "distances": [{k: _quantiles(v) for k, v in hop.items() if v} for hop in near],
        "nearer": [_quantiles(hop) for hop in nearer if hop],
        "room": [_quantiles(hop) for hop in room if hop],
        "codes": _clouds(looked, lines),
    }


def _clouds(looked: "list[Looked]", lines: list[Kinds]) -> dict[str, float]:
    """The medians over questions of :func:`cloud`; empty where every memory diverges."""
    every = [
        cloud(look.ordered, line.kinds[0] == TEXT)
        for look, line in zip(looked, lines, strict=True)
        if look.ordered is not None
    ]
    names = dict.fromkeys(name for found in every for name in found)
    return {
        name: float(np.median([found[name] for found in every if name in found]).round(3))
        for name in names
    }


def cloud(codes: np.ndarray, is_text: np.ndarray) -> dict[str, float]:
    """Measure how codes (E, D) of lines lie, those of facts and those of other text (E,) apart.

    facts_spread, text_spread          root mean square of distances to their own mean
    facts_dimensions, text_dimensions  along how many axes they spread: (Σλ)² / Σλ² of the
                                       eigenvalues λ of their covariance; 1 on a line, D in a ball
    between                            distance of the two means

    A kind with fewer than two lines has no spread, and one with none no distance.
    """
    found, centre = {}, {}
    for name, rows in (("facts", ~is_text), ("text", is_text)):
        if not rows.any():
            continue
        some = codes[rows].astype(float)
        centre[name] = some.mean(0)
        apart = some - centre[name]
        inner = apart.T @ apart
        if (whole := float(np.trace(inner))) > 0:
            found[f"{name}_spread"] = (whole / len(some)) ** 0.5
            found[f"{name}_dimensions"] = whole**2 / float((inner**2).sum())
    if len(centre) == 2:
        found["between"] = float(np.linalg.norm(centre["text"] - centre["facts"]))
    return found


def _quantiles(values: list[float] | list[int]) -> list[float]:
    return np.quantile(values, QUANTILES).round(3).tolist()
