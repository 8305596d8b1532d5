"""From claim and store to verdict: loads the claims, judges them, keeps the ledger.

``judge(claim, frame)`` needs the frame of :func:`relength.runs.store.frame`; nothing about a
verdict is typed in.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from relength.errors import RelengthError
from relength.kept import digest, kept
from relength.paths import BOOK
from relength.runs.store import CODE as RECORDS
from relength.specs import published, registry
from relength.specs.experiments import same_runs_as
from relength.specs.margins import MARGINS, Margins, load_margins, margins_hash
from relength.specs.spec import explain
from relength.tasks.data import downloads
from relength.verdicts import claim_history, rules, severity, stability, stats, wording
from relength.verdicts.claim_models import (
    Cell,
    Claim,
    ClaimEntry,
    ClaimFile,
    LevelPart,
    Part,
    PoolPart,
    Source,
    check_runs,
    parts,
    statistic_part,
    value_part,
)
from relength.verdicts.evidence import SCALES, Evidence, Reading, test_of
from relength.verdicts.wording import FullScale, Need, Numbers, Tally, Votes, plural, verb

FOLDER = BOOK / "claims"
# Shown at reduced scale for claims that stage one speaks against and stage two has not judged yet:
# results below what is claimed, and results above it.
NOT_REACHED = "not reached at reduced scale"
EXCEEDED = "exceeded at reduced scale"
DECIDED = ("reproduced", "contradicted")
LEFT_OPEN = ("inconclusive", "not run", "not testable")
VERDICTS = (*DECIDED, NOT_REACHED, EXCEEDED, *LEFT_OPEN)
CODE = ("verdicts", "git", *RECORDS)  # that claims and verdicts follow from


# Loading


def papers(folder: Path = FOLDER) -> list[str]:
    """Short names of the papers that have a file of claims."""
    return sorted(p.stem for p in folder.glob("*.yml") if p.stem != "margins")


def written(paper: str = "*") -> bytes:
    """16 bytes over the margins and the claims of a paper, or of all."""
    files = sorted({*FOLDER.glob(f"{paper}.yml"), MARGINS})
    return digest(*(part for file in files for part in (file.name, file.read_bytes())))


def load(paper: str, folder: Path = FOLDER) -> list[Claim]:
    """The claims of a paper: those of the prose first, then one per printed cell.

    Raises RelengthError that names file and claim when the file says something impossible.
    """
    path = folder / f"{paper}.yml"
    try:
        content = path.read_bytes()
    except OSError:
        known = ", ".join(papers(folder))
        raise RelengthError(f"There are no claims of {paper!r}: {folder} has {known}.") from None
    return list(_claims(paper, path, content))


def by_id() -> dict[str, Claim]:
    """The claims of all papers, each by its id."""
    return {claim.id: claim for paper in papers() for claim in load(paper)}


# A page asks for them many times. They depend on nothing but the file and the package's own tables.
@lru_cache(maxsize=16)
def _claims(paper: str, path: Path, content: bytes) -> tuple[Claim, ...]:
    if path.parent != FOLDER:  # only those of the project are worth keeping
        return _parsed(paper, path, content)
    return kept(f"claims-{paper}", lambda: _parsed(paper, path, content), content, code=CODE)


def _parsed(paper: str, path: Path, content: bytes) -> tuple[Claim, ...]:
    try:
        file = ClaimFile.model_validate(yaml.load(content, Loader=yaml.CSafeLoader))
    except yaml.YAMLError as error:
        raise RelengthError(f"{path} is not a valid file of claims: {error}") from None
    except ValidationError as error:
        raise RelengthError(f"{path} is not a valid file of claims: {explain(error)}.") from None
    prose = published.prose_claims().set_index("claim_id")
    claims = [_prose_claim(entry, file, prose, path) for entry in file.claims]
    for artifact, source in file.artifacts.items():
        if source.claim_per_cell:
            claims += _cell_claims(paper, artifact, source)
    names = pd.Series([claim.id for claim in claims])
    if names.duplicated().any():
        raise RelengthError(f"{path} has two claims named {names[names.duplicated()].iloc[0]!r}.")
    return tuple(claims)


def _prose_claim(entry: ClaimEntry, file: ClaimFile, prose: pd.DataFrame, path: Path) -> Claim:
    where = f"{path}, claim {entry.id}"
    if entry.id not in prose.index:
        raise RelengthError(f"{where}: the published claims of the package have no such id.")
    if entry.artifact not in file.artifacts:
        known = ", ".join(file.artifacts)
        raise RelengthError(f"{where}: {entry.artifact!r} is not among its artifacts: {known}.")
    row = prose.loc[entry.id]
    try:
        source = file.artifacts[entry.artifact]
        for name in ("experiment", "checkpoint", "runs_that"):
            if (instead := getattr(entry, name)) is not None:
                source = source.model_copy(update={name: instead})
        lines = [(line, parts(line, entry.artifact, source)) for line in entry.expect]
        spelt_out = tuple(part for _, of_line in lines for part in of_line)
        given = [line.given for line, of_line in lines for _ in of_line]
        own: dict[str, object] = {} if entry.metric is None else {"metric": entry.metric}
        if entry.judged_arm is not None:
            own |= {"judged_arm": entry.judged_arm, "other_arms": {}}
        source = source.of(_tasks(spelt_out)).model_copy(update=own)
        check_runs(source, spelt_out)
    except RelengthError as error:
        raise RelengthError(f"{where}: {error}") from None
    return Claim(
        id=entry.id,
        paper=file.paper,
        artifact=entry.artifact,
        kind=row["kind"],
        statement=row["claim"],
        quote=entry.quote,
        where=row["where"],
        source=source,
        parts=spelt_out,
        given=tuple(i for i, is_given in enumerate(given) if is_given),
        scope=entry.scope,
        not_testable=entry.not_testable,
    )


def _cell_claims(paper: str, artifact: str, source: Source) -> list[Claim]:
    cells = published.table(artifact).dropna(subset="value")
    cells = cells[~cells["row"].isin(source.repeats)]
    if source.rows:
        cells = cells[cells["model"].isin(source.rows)]
    cells = cells[~cells[["task", "test"]].isin(source.without).any(axis=1)]
    if source.statistics:
        cells = cells[cells["statistic"].isin(list(source.statistics))]
    claims = []
    for row in cells.itertuples():
        task, test = row.task, row.test
        own = source.of({task})
        if source.statistics:
            part = statistic_part(artifact, row, source)
            (test,) = part.printed
        else:
            part = value_part(artifact, row.model, task, (test,))
        value = f"{row.value:g}" + (f" ± {part.spread:g}" if part.spread is not None else "")
        claims.append(
            Claim(
                id=f"{artifact}/{row.row}/{task}/{test}",
                paper=paper,
                artifact=artifact,
                kind="value",
                statement=f"{row.row} on {task}, {_where(source, test)}: {value} {row.unit}",
                source=own,
                parts=(part,),
            )
        )
        try:
            check_runs(own, (part,))
        except RelengthError as error:
            raise RelengthError(f"{artifact}, printed cell {row.row} on {task}: {error}") from None
    return claims


def _where(source: Source, test: str) -> str:
    if not source.statistics:
        return f"test {test}"
    of = source.statistics.get(test, test)
    what = "mean" if of == "mean" else f"longest input above {source.longest_above:g} %"
    trials = "" if test == of else f", {test} over trials"
    return f"{what} of lengths {source.over[0]} to {source.over[1]}{trials}"


def _tasks(parts: Sequence[Part]) -> set[str]:
    return {task for part in parts for sample in part.samples for _, task in sample}


# Verdicts


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class PartVerdict(_Frozen):
    """One part of a claim and what its rule said."""

    part: Part
    outcome: rules.Outcome
    p_for: float
    p_against: float
    seen: str
    seeds: int = 0
    agree: int | None = None  # of the seeds, where each is a yes or a no
    exceeds: bool = False  # contradicted by results better than claimed
    scale: str = ""  # of its runs
    stage_two: int = 0  # seeds that it waits for, in all: its rule speaks against it so far


class Verdict(_Frozen):
    """The answer of the recorded runs to a claim, computed."""

    claim: str
    arm: str
    outcome: str  # reproduced, contradicted, inconclusive, not run, not testable
    shown: str = ""  # NOT_REACHED or EXCEEDED in place of the outcome, which is inconclusive
    scale: str | None = None  # "paper" where all parts that decide are judged there
    in_part: bool = False  # "reduced", and some of these parts are judged at scale paper
    seeds: int = 0  # judged in every cell needed, of what contradicts a claim where it is
    seen: str = ""  # one sentence
    learnt: float | None = None  # of what is to fail: the lowest median on lengths trained on
    cautious: bool = False  # may hold, or may fail, only for what :func:`caution` names
    full_scale: FullScale | None = None  # beside a verdict at reduced scale
    p_for: float | None = None
    p_against: float | None = None
    need: Need | None = None  # None where it is decided
    margins_changed: bool | None = None  # since the runs; None where the records do not say
    claim_changed: tuple[str, ...] | None = None  # since its first run; None where nobody knows
    parts: tuple[PartVerdict, ...] = ()
    others: dict[str, "Verdict"] = {}  # arm: its verdict, beside the judged one

    @property
    def verdict(self) -> str:
        """The outcome as it is shown: where stage two is missing, some have their own words."""
        return self.shown or self.outcome

    @property
    def support(self) -> Votes | None:
        """Count the seeds that agree in the least and in the most supported part.

        Where parts compare samples: how many parts hold on their own. None without runs.
        """
        voted = [(part.agree, part.seeds) for part in self.parts if part.agree is not None]
        if voted and len(voted) == len(self.parts):
            least, most = (
                choose(voted, key=lambda vote: vote[0] / vote[1]) for choose in (min, max)
            )
            return Votes(least, most)
        if self.seeds < load_margins().least_seeds:
            return None
        held = sum(part.outcome == "reproduced" for part in self.parts), len(self.parts)
        return Votes(held, held, "parts")

    @property
    def votes(self) -> str:
        """:attr:`support` in words: *3 to 5 of 5*."""
        return wording.votes(self.support)

    @property
    def needed(self) -> str:
        """:attr:`need` in words; empty where the claim is decided."""
        return wording.needed(self.need)

    @property
    def dated(self) -> str:
        """:attr:`claim_changed` in words; empty where nothing changed, and without runs."""
        return wording.dated(self.claim_changed) if self.seeds else ""

    @property
    def at_full_scale(self) -> str:
        """:attr:`full_scale` in words, which follow :attr:`seen`."""
        return wording.full_scale(self.full_scale)

    @property
    def label(self) -> str:
        """Name the outcome, with the scale of the runs where they decide."""
        if self.outcome not in DECIDED:
            return self.verdict
        return f"{self.verdict} ({self.scale}{' in part' if self.in_part else ''})"


def judge(claim: Claim, frame: pd.DataFrame) -> Verdict:
    """The verdict on a claim from the runs of a frame (usable ones: one per spec).

    Judged in two stages (:func:`relength.verdicts.rules.staged`). A part whose cells have five
    seeds at scale paper is judged by these alone. The other parts are judged at the scale that has
    more seeds of them. Runs of two scales are never compared. The verdicts of other arms stand in
    `others`.
    """
    evidence = Evidence(claim.source, frame)
    return _judge_arms(claim, evidence, load_margins(), margins_hash())


def _judge_own(claim: Claim, evidence: Evidence, margins: Margins, current: str | None) -> Verdict:
    """The verdict of the arm that is judged."""
    own = {claim.source.arm_of(model) for model in claim.models}
    arm = own.pop() if len(own) == 1 else claim.source.judged_arm
    return _judge_arm(claim, arm, {}, evidence, margins, current)


def _judge_arms(claim: Claim, evidence: Evidence, margins: Margins, current: str) -> Verdict:
    source = claim.source
    verdict = _judge_own(claim, evidence, margins, current)
    others = {
        arm: _judge_arm(claim, arm, dict.fromkeys(models, arm), evidence, margins, current)
        for arm, models in source.other_arms.items()
        if claim.models & set(models)
    }
    return verdict.model_copy(update={"others": others})


def _judge_arm(
    claim: Claim,
    arm: str,
    instead: dict[str, str],
    evidence: Evidence,
    margins: Margins,
    current: str | None,
) -> Verdict:
    """Judge a claim in one arm.

    instead: {model: arm} for the models that have the arm; the others keep their judged one
    current: the hash of the margins; None where nobody asks what has changed since the runs
    """
    if claim.not_testable:
        return Verdict(claim=claim.id, arm=arm, outcome="not testable", seen=claim.not_testable)
    arms = {m: instead.get(m, claim.source.arm_of(m)) for m in claim.models}
    scales = _scales(claim, arms, evidence, margins)
    by_scale = list(zip(claim.parts, scales, strict=True))
    common = min(_common_seeds(part, scale, arms, evidence) for part, scale in by_scale)
    if common == 0:
        return _not_run(claim, arm, arms, evidence, margins)
    cells = {
        ((model, task), scale): None
        for part, scale in by_scale
        for sample in part.samples
        for model, task in sample
        if evidence.seeds(scale, model, arms[model], task)  # of pooled ones, some may have none
    }
    each = [len(evidence.seeds(scale, m, arms[m], task)) for (m, task), scale in cells]
    enough = [
        rules.seeds_for_parts(len(scales), margins, scale, test_of(part))
        for part, scale in by_scale
    ]

    def rule(part: Part, scale: str) -> Callable[[int], rules.Decision]:
        return lambda first: Reading(evidence, scale, arms, margins, first).decide(part)

    judged = rules.staged(
        [rule(part, scale) for part, scale in by_scale],
        enough,
        margins,
        claim.given,
    )
    whole, negative = judged.whole, [i for i in judged.waiting if scales[i] == "reduced"]
    shown = ""
    if whole.outcome == "inconclusive" and negative:
        shown = EXCEEDED if any(judged.parts[i].exceeds for i in negative) else NOT_REACHED
    deciding, seeds = range(len(scales)), min(common, margins.least_seeds)
    if whole.outcome == "contradicted":
        deciding = [i for i in judged.lost if i not in judged.waiting]
        seeds = min(judged.parts[i].n for i in deciding)
    scale = "paper" if all(scales[i] == "paper" for i in deciding) else "reduced"
    run = Reading(evidence, scale, arms, margins)
    learnt = _learnt(claim, evidence, scales, arms, margins)
    cautious = _cautious(claim, run, whole)
    return Verdict(
        claim=claim.id,
        arm=arm,
        outcome=whole.outcome,
        shown=shown,
        scale=scale,
        in_part=scale == "reduced" and any(scales[i] == "paper" for i in deciding),
        seeds=seeds,
        seen=whole.seen
        + _not_given(judged)
        + _better(judged)
        + _trained(claim, learnt, cautious, whole),
        learnt=learnt,
        cautious=cautious,
        full_scale=_full_scale(claim, arms, evidence, margins) if scale == "reduced" else None,
        p_for=whole.p_for,
        p_against=whole.p_against,
        need=_need(judged, scale, each, enough, margins),
        margins_changed=current and _margins_changed(cells, arms, evidence, margins, current),
        claim_changed=current and _claim_changed(claim, cells, arms, evidence),
        parts=tuple(
            PartVerdict(
                part=part,
                outcome=d.outcome,
                p_for=d.p_for,
                p_against=d.p_against,
                seen=d.seen,
                seeds=d.n,
                agree=d.agree,
                exceeds=d.exceeds,
                scale=scales[i],
                stage_two=enough[i] if i in judged.waiting else 0,
            )
            for i, (part, d) in enumerate(zip(claim.parts, judged.parts, strict=True))
        ),
    )


def _scales(claim: Claim, arms: dict[str, str], evidence: Evidence, margins: Margins) -> list[str]:
    """The scale at which each part is judged."""
    common = [
        {scale: _common_seeds(part, scale, arms, evidence) for scale in SCALES}
        for part in claim.parts
    ]
    others = [seeds for seeds in common if seeds["paper"] < margins.least_seeds]
    most = max(SCALES, key=lambda scale: min((seeds[scale] for seeds in others), default=0))
    return ["paper" if seeds["paper"] >= margins.least_seeds else most for seeds in common]


def _not_run(
    claim: Claim, arm: str, arms: dict[str, str], evidence: Evidence, margins: Margins
) -> Verdict:
    """The verdict where some part has no seed at one scale in all of its cells."""
    seeds = [
        {scale: len(evidence.seeds(scale, m, arms[m], task)) for scale in SCALES}
        for m, task in claim.cells
    ]
    begun, total = sum(any(cell.values()) for cell in seeds), len(claim.cells)
    silent = sum(evidence.silent(m, arms[m], task) for m, task in claim.cells)
    lacking = min(sum(max(margins.least_seeds - cell[s], 0) for cell in seeds) for s in SCALES)
    others = plural(silent, "recorded run")
    if begun == total:
        seen = "no seed at one scale in all of the cells"
    elif begun:
        seen = f"only {begun} of {total} cells have runs"
        seen += f"; of {others} besides the claim does not speak" if silent else ""
    else:
        seen = f"of {others} it speaks of none" if silent else _no_runs(claim)
    need = Need("runs", margins.least_seeds, total, lacking if begun else None)
    return Verdict(claim=claim.id, arm=arm, outcome="not run", seen=seen, need=need)


def _margins_changed(
    cells: Iterable[tuple[Cell, str]],
    arms: dict[str, str],
    evidence: Evidence,
    margins: Margins,
    current: str,
) -> bool | None:
    """Tell whether a run was made under other margins; None where the records do not say."""
    used = [evidence.margins(scale, m, arms[m], task) for (m, task), scale in cells]
    if None in used:
        return None
    return not frozenset().union(*used) <= margins.equal_versions(current)


def _claim_changed(
    claim: Claim, cells: Iterable[tuple[Cell, str]], arms: dict[str, str], evidence: Evidence
) -> tuple[str, ...] | None:
    """Name what of a claim changed after its first run: see :func:`claim_history.changed`."""
    origins = [evidence.first_run(scale, m, arms[m], task) for (m, task), scale in cells]
    if None in origins:
        return None
    first = min(origins, key=lambda origin: origin.created)
    return claim_history.changed(claim.id, claim.paper, first)


def _no_runs(claim: Claim) -> str:
    fetched = sorted({task for _, task in claim.cells} & downloads())
    return f"no runs: they need the data of {' and '.join(fetched)}" if fetched else "no runs"


def _common_seeds(part: Part, scale: str, arms: dict[str, str], evidence: Evidence) -> int:
    """Count the seeds that a part has in every cell of a sample; of pooled cells, in any."""
    join = frozenset.union if isinstance(part, PoolPart) else frozenset.intersection
    return min(
        len(join(*(evidence.seeds(scale, model, arms[model], task) for model, task in sample)))
        for sample in part.samples
    )


def _not_given(judged: rules.Staged) -> str:
    """Note that a seed has not what a claim takes for granted."""
    given = [judged.parts[i] for i in judged.given]
    lost = sum(one.agree is not None and one.agree < one.n for one in given)
    if not lost:
        return ""
    of = plural(len(given), "part")
    return f"; it takes {of} for granted, of which {lost} {verb(lost, 'do')} not hold in every seed"


def _better(judged: rules.Staged) -> str:
    """Note results that are better than claimed, where they contradict the claim."""
    if not judged.whole.exceeds:
        return ""
    count = sum(judged.parts[i].exceeds for i in judged.lost)
    where = f" in {plural(count, 'part')}" if len(judged.parts) > 1 else ""
    return f". Our runs do better than claimed{where}"


def _learnt(
    claim: Claim,
    evidence: Evidence,
    scales: Sequence[str],
    arms: dict[str, str],
    margins: Margins,
) -> float | None:
    """The lowest median on the lengths trained on, of the models that the claim says fail."""
    known = [
        Reading(evidence, scale, arms, margins).in_distribution(part.model, part.task)
        for part, scale in zip(claim.parts, scales, strict=True)
        if isinstance(part, LevelPart) and part.level == "failed"
    ]
    return None if not known or None in known else min(known)


def _cautious(claim: Claim, run: Reading, whole: rules.Decision) -> bool:
    """Tell whether the scale alone may have decided: a failure is reproduced at reduced scale, or
    a claim is contradicted there.
    """
    if run.scale != "reduced":
        return False
    of_failure = any(map(run.is_failure, claim.parts))
    return whole.outcome == "contradicted" or (of_failure and whole.outcome == "reproduced")


def _trained(claim: Claim, learnt: float | None, cautious: bool, whole: rules.Decision) -> str:
    words = ""
    if learnt is not None:
        words = f". On the lengths trained on, the lowest median is {learnt:.1f} %"
    return words + (f". It {caution(claim.paper, whole.outcome)}" if cautious else "")


def caution(paper: str, outcome: str) -> str:
    """Say what alone may have decided, where :attr:`Verdict.cautious` is set."""
    known = registry.papers().get(paper)
    small = "the model is small or " if known and known.parameters else ""
    why = f"{small}training was cut"
    return f"may {'hold' if outcome == 'reproduced' else 'fail'} only because {why}"


def _full_scale(
    claim: Claim, arms: dict[str, str], evidence: Evidence, margins: Margins
) -> FullScale | None:
    """Count the runs at the paper's own scale that agree, beside a verdict at reduced scale."""
    run = Reading(evidence, "paper", arms, margins)
    votes = [
        decision
        for part in claim.parts
        if _common_seeds(part, "paper", arms, evidence)
        and (decision := run.decide(part)).agree is not None
    ]
    if not votes:
        return None
    agree, runs = sum(vote.agree for vote in votes), sum(vote.n for vote in votes)
    return FullScale(agree, runs, len(votes), len(claim.parts))


def _need(
    judged: rules.Staged,
    scale: str,
    seeds: Sequence[int],
    enough: Sequence[int],
    margins: Margins,
) -> Need | None:
    """Return what would decide a claim; ``seeds`` are those that each of its cells has."""
    whole = judged.whole
    if whole.outcome != "inconclusive":
        return None
    if judged.waiting:
        most = max(enough[i] for i in judged.waiting)
        return Need("stage two", most, lost=len(judged.waiting), parts=len(judged.parts))
    if whole.n < margins.least_seeds:
        more, uneven = margins.least_seeds - whole.n, len(set(seeds)) > 1
        runs = sum(max(margins.least_seeds - have, 0) for have in seeds) if uneven else None
        return Need("seeds", more, len(seeds), runs)
    around = sum(
        one.agree == 0 and one.outcome == "inconclusive" and i not in judged.given
        for i, one in enumerate(judged.parts)
    )
    want = "scale" if scale == "reduced" else "nothing"
    return Need(want, parts=len(judged.parts), around=around) if around else Need(want)


# The ledger

COLUMNS = (
    *("paper", "claim", "artifact", "kind", "statement", "quote", "where", "scope"),
    *("arm", "verdict", "label", "outcome", "scale", "seeds", "seen", "at_full_scale", "needed"),
    *("p", "q", "margins_changed", "claim_changed", "others", "beside", "votes", "parts"),
    *("severity", "rivals", "one_symbol", "hardly", "repeated", "fragile", "otherwise", "between"),
    *("same_runs_as", "cautious"),
)


def ledger(
    claims: Sequence[Claim], frame: pd.DataFrame, further: pd.DataFrame | None = None
) -> pd.DataFrame:
    """One row per claim with its verdict; see :data:`COLUMNS`.

    verdict is :attr:`Verdict.verdict`; scale is "" without runs; p is Verdict.p_for; q, for order
    claims only, is p after Benjamini and Hochberg over the order claims of the same artifact that
    were judged; claim_changed is Verdict.dated; others lists the verdicts of the other arms,
    "paper: reproduced (reduced)", and beside has them as objects, {arm: Verdict}; votes is
    Verdict.votes; parts are the :class:`PartVerdict` objects behind a verdict.

    Of printed numbers that come out, severity is the share of the other rows of the column that
    come out as well, rivals how many other rows there are, one_symbol the percent that one symbol
    of the input gives, and hardly whether the number could hardly fail
    (:mod:`relength.verdicts.severity`); None where it is unknown or does not apply. repeated counts
    the runs behind a verdict that were executed more than once, fragile says whether another choice
    of executions changes it, otherwise what it then is (:mod:`relength.verdicts.stability`).
    between says of a single printed percentage whether it is neither at the floor nor at the
    ceiling; None for anything else. same_runs_as names the table that has another number of the
    same runs; see :func:`once`. cautious is Verdict.cautious.

    further: later usable executions of runs of the frame
    """
    margins, current = load_margins(), margins_hash()
    evidence: dict[str, Evidence] = {}
    rows, judged = [], []
    for claim in claims:
        source = claim.source.model_dump_json()
        if source not in evidence:
            evidence[source] = Evidence(claim.source, frame)
        verdict = _judge_arms(claim, evidence[source], margins, current)
        behind = _cells_behind(claim, verdict, evidence[source])
        judged.append(stability.Judged(claim, verdict.verdict, behind, evidence[source]))
        rows.append(
            {
                **{
                    name: getattr(claim, name)
                    for name in ("paper", "artifact", "kind", "statement")
                },
                "claim": claim.id,
                "quote": claim.quote or "",
                "where": claim.where,
                "scope": claim.scope or "",
                **{
                    name: getattr(verdict, name)
                    for name in (
                        *("arm", "verdict", "label", "outcome", "seeds", "seen", "at_full_scale"),
                        *("needed", "cautious"),
                    )
                },
                "scale": verdict.scale or "",
                "p": np.nan if verdict.p_for is None else verdict.p_for,
                "q": np.nan,
                "margins_changed": verdict.margins_changed,
                "claim_changed": verdict.dated,
                "parts": verdict.parts,
                "others": "; ".join(f"{arm}: {v.label}" for arm, v in verdict.others.items()),
                "beside": verdict.others,
                "votes": verdict.votes,
                **_how_telling(claim, verdict, evidence[source], margins),
            }
        )

    def again(claim: Claim, other: Evidence) -> str:
        return _judge_own(claim, other, margins, None).verdict

    found = stability.stability(judged, pd.DataFrame() if further is None else further, again)
    for row, one, stable in zip(rows, judged, found, strict=True):
        row["repeated"], row["fragile"] = stable.repeated, stable.fragile(one.verdict)
        row["otherwise"] = stable.words(one.verdict)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    orders = table[(table["kind"] == "order") & (table["seeds"] >= margins.least_seeds)]
    for _, group in orders.groupby("artifact"):
        table.loc[group.index, "q"] = stats.benjamini_hochberg(group["p"].to_list())
    return table


def _cells_behind(
    claim: Claim, verdict: Verdict, evidence: Evidence
) -> tuple[tuple[str, str, str, str], ...]:
    """The cells whose runs are judged: (scale, model, arm, task)."""
    arm_of = claim.source.arm_of
    cells = (
        (one.scale, model, arm_of(model), task)
        for one in verdict.parts
        for sample in one.part.samples
        for model, task in sample
    )
    return tuple(cell for cell in dict.fromkeys(cells) if evidence.seeds(*cell))


def _how_telling(
    claim: Claim, verdict: Verdict, evidence: Evidence, margins: Margins
) -> dict[str, object]:
    """Say what a claim's printed numbers tell of it, beside the verdict."""
    reproduced = verdict.outcome == "reproduced"
    found = severity.severity(claim, evidence, margins) if reproduced else None
    percent = registry.metric(claim.source.metric).share and not claim.where
    return {
        "severity": found and found.share,
        "rivals": found and found.others,
        "one_symbol": found and found.one_symbol,
        "hardly": found and found.hardly_fails(margins),
        "between": severity.between(claim, margins) if percent else None,
        "same_runs_as": "" if claim.where else same_runs_as(claim.artifact),
    }


def once(table: pd.DataFrame) -> pd.DataFrame:
    """Drop printed numbers of a ledger whose runs another table in it counts already."""
    return table[~table["same_runs_as"].isin(table.loc[table["where"] == "", "artifact"])]


def numbers(table: pd.DataFrame) -> Numbers:
    """Count the printed numbers of a ledger that were judged."""
    rows = once(table)
    rows = rows[(rows["where"] == "") & (rows["seeds"] >= load_margins().least_seeds)]
    held, between = rows["outcome"] == "reproduced", rows["between"].eq(True)
    hardly = rows["hardly"].eq(True)
    return Numbers(
        judged=len(rows),
        reproduced=int(held.sum()),
        hardly=int(hardly.sum()),
        unknown=int((held & rows["hardly"].isna()).sum()),
        between=int(between.sum()),
        between_reproduced=int((between & held).sum()),
        between_hardly=int((between & hardly).sum()),
        repeated=int((rows["repeated"] > 0).sum()),
        fragile=int(rows["fragile"].eq(True).sum()),
        share=load_margins().hardly_fails,
        bounds=load_margins().between,
    )


def numbers_in_words(table: pd.DataFrame) -> str:
    """The :func:`numbers` of a ledger in words."""
    return wording.numbers(numbers(table))


def counted(verdicts: Mapping[str, int]) -> str:
    """Verdict counts in the order of :data:`VERDICTS`: *3 reproduced, 2 not run*."""
    return wording.counted(verdicts, VERDICTS)


def tally(table: pd.DataFrame) -> Tally:
    """Count the claims of a ledger that were judged, and the verdicts that decide one.

    Each run is counted once: see :func:`once`.
    """
    margins, table = load_margins(), once(table)
    judged = table[table["seeds"] >= margins.least_seeds]
    decided = judged["outcome"].isin(DECIDED)
    return Tally(
        claims=len(table),
        judged=len(judged),
        decided=judged.loc[decided, "verdict"].value_counts().to_dict(),
        left_open=judged.loc[~decided, "verdict"].value_counts().to_dict(),
        seeds=margins.least_seeds,
        level=margins.level,
        fragile=int(judged["fragile"].eq(True).sum()),
    )


def summary(table: pd.DataFrame) -> str:
    """The :func:`tally` of a ledger in words."""
    return wording.tally(tally(table), VERDICTS)
