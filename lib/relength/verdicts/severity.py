"""Measure how easily a number comes out: would other rows of its column have come out as well?

A model that fails everywhere has every 0 of a table reproduced. So beside a number that comes out
stands how many of the other rows, as we trained them, give it too. Where symbols are counted one by
one, a model that writes one symbol of its input over and over is asked as well: half of what Mix
wants is the first symbol. Nothing of this changes a verdict.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from relength.specs import registry
from relength.specs.experiments import experiment
from relength.specs.margins import Margin, Margins
from relength.streams import EVALUATION_SEED, stream
from relength.tasks.algorithmic import AlgorithmicTask
from relength.verdicts.claim_models import Claim, ValuePart, printed_rows
from relength.verdicts.evidence import SCALES, Evidence, Reading


class Severity(NamedTuple):
    """The other rows of a column that we trained, and how many come out at the printed number.

    one_symbol  percent that one symbol of the input gives, written over and over, the mean over the
                tests; None where symbols are not counted one by one
    suffices    whether that comes out as well
    """

    come_out: int
    others: int
    one_symbol: float | None = None
    suffices: bool = False

    @property
    def share(self) -> float | None:
        """Near 1 where coming out says little; None without other rows."""
        return self.come_out / self.others if self.others else None

    def hardly_fails(self, margins: Margins) -> bool | None:
        """Tell whether the number could hardly fail; None if that is unknown.

        It could not if one symbol suffices, or if enough other rows come out.
        """
        if self.suffices:
            return True
        return None if self.share is None else self.share >= margins.hardly_fails


def severity(claim: Claim, evidence: Evidence, margins: Margins) -> Severity | None:
    """Return what the other rows say of a claim about printed numbers; None for any other claim.

    A claim of several parts is as hard to meet as its hardest one. It is unknown where one is.

    Orders, levels, trends and counts have none: they name no number that another row could give
    within a margin, and many name the other rows themselves.
    """
    if not claim.parts or not all(isinstance(part, ValuePart) for part in claim.parts):
        return None
    found = [_of_part(part, claim.artifact, evidence, margins) for part in claim.parts]
    unknown = [one for one in found if one.hardly_fails(margins) is None]
    return min(unknown or found, key=lambda one: (one.suffices, one.share or 0.0))


def between(claim: Claim, margins: Margins) -> bool | None:
    """Tell whether a printed percentage is between floor and ceiling; None for a printed length."""
    (part,) = claim.parts
    return None if part.above is not None else margins.is_between(part.printed_value)


def _of_part(part: ValuePart, artifact: str, evidence: Evidence, margins: Margins) -> Severity:
    printed = np.array(list(part.printed.values()))
    middle = np.median if part.spread is None else np.mean  # the rule's own statistic

    def comes_out(ours: np.ndarray, margin: Margin) -> bool:
        room = np.array([margin.around(value) for value in printed])
        return bool((np.abs(ours - printed) <= room).all())

    near = []
    for row in printed_rows(artifact):
        other = part.model_copy(update={"model": row})
        run = None if row == part.model else _judged_runs(other, evidence, margins)
        if run is not None:
            ours, margin = run.ours(other)
            near.append(comes_out(middle(ours, axis=0), margin))
    found = Severity(sum(near), len(near))
    source = evidence.source
    if part.tests or source.metric not in (
        registry.ACCURACY,
        experiment(source.experiment).measure,
    ):
        return found
    simple = [_one_symbol(source.experiment, part.task, test) for test in part.printed]
    if None in simple:
        return found
    suffices = comes_out(np.array(simple), margins.measures["accuracy"])
    return found._replace(one_symbol=float(np.mean(simple)), suffices=suffices)


@cache
def _one_symbol(name: str, task: str, test: str) -> float | None:
    """Compute the percent of a test set that knowing one place of the input gives, at best.

    The task is as the experiment has it. None for a task that does not copy symbols.
    """
    config = next(s.task for s in experiment(name).specs("reduced", [0]) if s.task.name == task)
    if not isinstance(config, AlgorithmicTask):
        return None
    length, _, size = config.splits()[test]
    random = stream(EVALUATION_SEED, "evaluation", task, test, length)
    tokens, _, places = config.draw(random, size, length)
    targets = np.take_along_axis(tokens, places, axis=1)
    return 100 * max(float((targets == symbols[:, None]).mean()) for symbols in tokens.T)


def _judged_runs(part: ValuePart, evidence: Evidence, margins: Margins) -> Reading | None:
    """The runs by which a row's own number is judged; None where they are too few for that."""
    arms = {part.model: evidence.source.arm_of(part.model)}
    for scale in SCALES:
        cell = scale, part.model, arms[part.model], part.task
        if len(evidence.seeds(*cell)) >= margins.least_seeds:
            there = evidence.tests(*cell) >= set(part.tests or part.printed)
            return Reading(evidence, scale, arms, margins, margins.least_seeds) if there else None
    return None
