"""Numbers behind the findings chapters, counted from the runs of a paper's tables.

:mod:`relength.report.findings` puts them into words; nothing here judges a claim.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from relength.report.outcomes import ends, level_name
from relength.report.runs import Runs
from relength.report.scoreboard import SCALES, Survey
from relength.specs.experiments import experiments
from relength.specs.margins import load_margins
from relength.specs.spec import row_name
from relength.verdicts.claims import LEFT_OPEN, once

RULES = {
    "selected": "by the rule of the paper",
    "best_iid": "at the best checkpoint on known lengths",
    "last": "at the last checkpoint",
}

SPEED = "about speed, on a processor's core"


class Answered(NamedTuple):
    """A paper's claims in words: how many are quoted, and which have an answer."""

    quoted: int  # with the paper's sentence in the ledger
    decided: dict[str, list[str]]  # {label: claims}
    open: dict[str, int]  # {verdict: claims}


def answered(paper: str, survey: Survey) -> Answered:
    """Count the claims in words of a paper, in a ledger that is not empty."""
    said = survey.ledger[(survey.ledger["paper"] == paper) & survey.ledger["prose"]]
    still_open = said["verdict"].isin(LEFT_OPEN)
    return Answered(
        quoted=int((said["quote"] != "").sum()),
        decided=said[~still_open].groupby("label")["claim"].agg(list).to_dict(),
        open=said["verdict"][still_open].value_counts().to_dict(),
    )


class NearPrint(NamedTuple):
    """Printed numbers with runs, and how many of them ours meet within the margin."""

    near: int
    cells: int
    near_longest: int  # at the longest test of a task
    longest: int
    by_model: dict[str, tuple[int, int]]  # (near, cells)
    near_between: int  # of those printed strictly between floor and ceiling
    between: int


def near_print(runs: Runs, data: pd.DataFrame) -> NearPrint:
    """Count the rows of :func:`relength.report.outcomes.beside_printed` that are near."""
    near, fixed = data["near"], load_margins()
    last = data["test"] == data["task"].map(lambda task: runs.tests[task][-1])
    between = data["paper"].map(fixed.is_between).astype(bool) & runs.shown.share
    models = {model: own for model, own in near.groupby(data["model"], sort=False)}
    return NearPrint(
        near=int(near.sum()),
        cells=len(data),
        near_longest=int(near[last].sum()),
        longest=int(last.sum()),
        by_model={model: (int(own.sum()), len(own)) for model, own in models.items()},
        near_between=int(near[between].sum()),
        between=int(between.sum()),
    )


def is_solved(value: float) -> bool:
    """Tell whether a percentage is at the level of the margins file from which a test is solved."""
    return load_margins().levels["solved"].holds(value)


class Known(NamedTuple):
    """The runs that know the lengths they were trained on, by what they do at the longest test.

    knows                           their number
    states                          {state of :func:`relength.report.outcomes.ends`: runs}
    perfect, flawed                 of those, runs without an error on known lengths, and with one
    perfect_solve, flawed_solve     how many of each solve the longest test
    perfect_where_solved, flawed_…  the same, (solve, runs), in cells that some seed solves
    """

    knows: int
    states: dict[str, int]
    perfect: int
    perfect_solve: int
    flawed: int
    flawed_solve: int
    perfect_where_solved: tuple[int, int]
    flawed_where_solved: tuple[int, int]


def known(data: pd.DataFrame) -> Known:
    """Count the runs of :func:`relength.report.outcomes.ends` that know their lengths."""
    knows = data[data["known"].map(is_solved)]
    solves, perfect = knows["state"] == "solved", knows["known"] == 100
    can = solves.groupby([knows["task"], knows["model"], knows["arm"]]).transform("any")
    can = can.astype(bool)
    return Known(
        knows=len(knows),
        states=knows["state"].value_counts().to_dict(),
        perfect=int(perfect.sum()),
        perfect_solve=int(solves[perfect].sum()),
        flawed=int((~perfect).sum()),
        flawed_solve=int(solves[~perfect].sum()),
        perfect_where_solved=(int(solves[can & perfect].sum()), int((can & perfect).sum())),
        flawed_where_solved=(int(solves[can & ~perfect].sum()), int((can & ~perfect).sum())),
    )


def known_by_reading(runs: Runs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The :func:`relength.report.outcomes.ends` of judged readings, and those of the others."""
    data = ends(runs)
    judged = data["arm"] == data["model"].map(runs.experiment.judged_arms)
    return data[judged], data[~judged]


class UnequalSeeds(NamedTuple):
    """The cells of several seeds, by how far their seeds are apart.

    repeated  the number of cells
    apart     the rows of each cell whose seeds are further apart than the margin
    opposed   the number of cells of which one seed solves what another fails at
    """

    repeated: int
    apart: list[pd.DataFrame]
    opposed: int


def unequal_seeds(runs: Runs) -> UnequalSeeds:
    """Compare the seeds of each cell at its longest test, or where they are furthest apart."""
    data = ends(runs) if runs.measured.whole else _furthest_apart(runs)
    cells = [cell for _, cell in data.groupby(["task", "model", "arm"], sort=False)]
    repeated = [cell for cell in cells if len(cell) > 1]
    margin = load_margins().measures["accuracy"].around(0)
    spread = [c for c in repeated if c["longest"].max() - c["longest"].min() > margin]
    opposed = [c for c in repeated if {"solved", "failed"} <= set(c["state"])]
    return UnequalSeeds(len(repeated), spread, len(opposed))


def _furthest_apart(runs: Runs) -> pd.DataFrame:
    """Tabulate :func:`ends` with the test beyond training at which a cell's seeds differ most."""
    parts = []
    for (task, model, arm), cell in ends(runs).groupby(["task", "model", "arm"]):
        values = {test: runs.values(model, arm, task, test) for test in runs.tests[task]}
        test = max(list(values)[1:], key=lambda test: np.ptp(values[test]))
        states = [*map(level_name, values[test])]
        parts.append(cell.assign(test=test, longest=values[test], state=states))
    return pd.concat(parts).sort_index() if parts else ends(runs)


class Gain(NamedTuple):
    """The gain of the paper's checkpoint at one test over the best one on known lengths."""

    mean: float  # points
    gained: int  # runs that gain more than the margin
    lost: int


class Checkpoints(NamedTuple):
    """The effect of the choice of the checkpoint in runs of judged readings.

    solve  {rule of RULES: runs that solve the longest test}
    gains  at each test beyond training, the shortest first
    """

    runs: int
    solve: dict[str, int]
    gains: list[Gain]


def checkpoints(runs: Runs) -> Checkpoints | None:
    """Compare the checkpoints of the runs of judged readings; None without such runs."""
    judged = [
        record
        for record in runs.records
        for model in [record["spec"]["model"]]
        if runs.experiment.judges(row_name(model), model["arm"])
    ]
    if not judged:
        return None
    metric, level = runs.experiment.measure, load_margins().levels["solved"]
    margin = load_margins().measures["accuracy"].around(0)

    def results(rule: str, place: int) -> np.ndarray:
        tests = (r["checkpoints"][rule]["tests"] for r in judged)
        return 100 * np.array([list(test.values())[place][metric] for test in tests])

    solve = {rule: sum(map(level.holds, results(rule, -1))) for rule in RULES}
    gains = []
    for place in range(1, min(len(spec.task.tests) for spec in runs.specs)):
        gain = results("selected", place) - results("best_iid", place)
        more, less = int((gain > margin).sum()), int((gain < -margin).sum())
        gains.append(Gain(float(gain.mean()), more, less))
    return Checkpoints(len(judged), solve, gains)


def by_kind(paper: str, survey: Survey) -> dict[str, Counter[str]]:
    """{kind of claim: {label: claims}} of a paper, without kinds that it has none of.

    Printed numbers of the same runs count once.
    """
    judged = once(survey.ledger[survey.ledger["paper"] == paper])
    by_runs = judged[judged["page"] == ""]
    kinds = {
        "in words": by_runs[by_runs["prose"]],
        "printed numbers": by_runs[~by_runs["prose"]],
        "computed or simulated": judged[judged["unit"].isin(("simulation", "calculation"))],
        SPEED: judged[judged["unit"] == "round"],
    }
    return {kind: Counter(rows["label"]) for kind, rows in kinds.items() if len(rows)}


def trainings(paper: str, survey: Survey) -> tuple[int, float]:
    """Count a paper's trainings, and their hours."""
    own = [name for name, found in experiments().items() if found.paper == paper]
    used = survey.runs[survey.runs["experiment"].isin(own) & survey.runs["scale"].isin(SCALES)]
    used = used.drop_duplicates("run_id")
    return len(used), used["seconds"].sum() / 3600
