"""From claim and store to verdict: loads the claims, judges them, keeps the ledger.

``judge(claim, frame)`` needs the frame of :func:`relength.runs.store.frame`; nothing about a
verdict is typed in.
"""

from collections.abc import Mapping, Sequence
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
from relength.specs import published
from relength.specs.margins import MARGINS, Margins, load_margins, margins_hash
from relength.tasks.data import downloads
from relength.verdicts import rules, stats, wording
from relength.verdicts.claim_models import (
    Claim,
    ClaimEntry,
    ClaimFile,
    LevelPart,
    Part,
    Sample,
    Source,
    parts,
    statistic_part,
    value_part,
)
from relength.verdicts.evidence import SCALES, Evidence, Reading
from relength.verdicts.wording import FullScale, Need, Tally, Votes, plural

__all__ = [
    "Claim",
    "PartVerdict",
    "Verdict",
    "judge",
    "ledger",
    "load",
    "load_margins",
    "margins_hash",
    "papers",
    "plural",
    "summary",
    "tally",
]

FOLDER = BOOK / "claims"
# Shown for negative outcomes at reduced scale, which decide nothing: results below what is claimed,
# for which missing training may be to blame, and results above it, for which it cannot.
NOT_REACHED = "not reached at reduced scale"
EXCEEDED = "exceeded at reduced scale"
DECIDED = ("reproduced", "contradicted")
LEFT_OPEN = ("inconclusive", "not run", "not testable")
VERDICTS = (*DECIDED, NOT_REACHED, EXCEEDED, *LEFT_OPEN)
CODE = ("verdicts", *RECORDS)  # that claims and verdicts follow from


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


# A page asks for them many times. They depend on nothing but the file and the package's own tables.
@lru_cache(maxsize=16)
def _claims(paper: str, path: Path, content: bytes) -> tuple[Claim, ...]:
    if path.parent != FOLDER:  # only those of the project are worth keeping
        return _parsed(paper, path, content)
    return kept(f"claims-{paper}", lambda: _parsed(paper, path, content), content, code=CODE)


def _parsed(paper: str, path: Path, content: bytes) -> tuple[Claim, ...]:
    try:
        file = ClaimFile.model_validate(yaml.load(content, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, ValidationError) as error:
        raise RelengthError(f"{path} is not a valid file of claims: {error}") from None
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
        spelt_out = tuple(
            part for line in entry.expect for part in parts(line, entry.artifact, source)
        )
        source = source.of(_tasks(spelt_out))
    except RelengthError as error:
        raise RelengthError(f"{where}: {error}") from None
    own: dict[str, object] = {} if entry.metric is None else {"metric": entry.metric}
    if entry.judged_arm is not None:
        own |= {"judged_arm": entry.judged_arm, "other_arms": {}}
    return Claim(
        id=entry.id,
        paper=file.paper,
        artifact=entry.artifact,
        kind=row["kind"],
        statement=row["claim"],
        quote=entry.quote,
        where=row["where"],
        source=source.model_copy(update=own),
        parts=spelt_out,
        scope=entry.scope,
        not_testable=entry.not_testable,
    )


def _cell_claims(paper: str, artifact: str, source: Source) -> list[Claim]:
    cells = published.table(artifact).dropna(subset="value")
    cells = cells[~cells["row"].isin(source.repeats)]
    if source.statistics:
        cells = cells[cells["statistic"].isin(list(source.statistics))]
    claims = []
    for row in cells.itertuples():
        task, test = row.task, row.test
        if source.statistics:
            part = statistic_part(artifact, row, source)
            (test,) = part.printed
        else:
            part = value_part(artifact, row.row, task, (test,))
        value = f"{row.value:g}" + (f" ± {part.spread:g}" if part.spread is not None else "")
        claims.append(
            Claim(
                id=f"{artifact}/{row.row}/{task}/{test}",
                paper=paper,
                artifact=artifact,
                kind="value",
                statement=f"{row.row} on {task}, {_where(source, test)}: {value} {row.unit}",
                source=source.of({task}),
                parts=(part,),
            )
        )
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


class Verdict(_Frozen):
    """The answer of the recorded runs to a claim, computed."""

    claim: str
    arm: str
    outcome: str  # reproduced, contradicted, inconclusive, not run, not testable
    shown: str = ""  # NOT_REACHED or EXCEEDED in place of the outcome, which is inconclusive
    scale: str | None = None
    seeds: int = 0  # the fewest in any cell needed
    seen: str = ""  # one sentence
    learnt: float | None = None  # of what is to fail: the lowest median on lengths trained on
    cautious: bool = False  # may hold only because training was cut
    full_scale: FullScale | None = None  # beside a verdict at reduced scale
    p_for: float | None = None
    p_against: float | None = None
    need: Need | None = None  # None where it is decided
    margins_changed: bool | None = None  # since the runs; None where the records do not say
    parts: tuple[PartVerdict, ...] = ()
    others: dict[str, "Verdict"] = {}  # arm: its verdict, beside the judged one

    @property
    def verdict(self) -> str:
        """The outcome as it is shown: negative ones at reduced scale have their own words."""
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
    def at_full_scale(self) -> str:
        """:attr:`full_scale` as the end of the sentence :attr:`seen`."""
        return wording.full_scale(self.full_scale)

    @property
    def label(self) -> str:
        """The same, with the scale where a decided verdict is not of the paper's."""
        decided = self.outcome in DECIDED
        return f"{self.verdict} (reduced)" if decided and self.scale == "reduced" else self.verdict


def judge(
    claim: Claim,
    frame: pd.DataFrame,
    margins: Margins | None = None,
    current_margins: str | None = None,
) -> Verdict:
    """The verdict on a claim from the runs of a frame (usable ones: one per spec).

    Judged at the highest scale with at least five seeds in every cell needed, else at the one with
    most seeds; scales are never mixed. The verdicts of other arms stand in `others`.

    margins, current_margins: default to margins.yml and its hash as they are now.
    """
    margins = margins or load_margins()
    current = current_margins or margins_hash()
    evidence = Evidence(claim.source, frame)
    return _judge_arms(claim, evidence, margins, current)


def _judge_arms(claim: Claim, evidence: Evidence, margins: Margins, current: str) -> Verdict:
    source = claim.source
    own = {source.arm_of(model) for model in claim.models}
    arm = own.pop() if len(own) == 1 else source.judged_arm
    verdict = _judge_arm(claim, arm, {}, evidence, margins, current)
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
    current: str,
) -> Verdict:
    """instead: {model: arm} for the models that have the arm; the others keep their judged one."""
    if claim.not_testable:
        return Verdict(claim=claim.id, arm=arm, outcome="not testable", seen=claim.not_testable)
    arms = {m: instead.get(m, claim.source.arm_of(m)) for m in claim.models}
    seeds_at = {
        scale: min(_common_seeds(sample, scale, arms, evidence) for sample in claim.samples)
        for scale in SCALES
    }
    enough = [scale for scale in SCALES if seeds_at[scale] >= margins.least_seeds]
    scale = enough[0] if enough else max(SCALES, key=seeds_at.__getitem__)
    seeds, total = seeds_at[scale], len(claim.cells)
    each = [len(evidence.seeds(scale, model, arms[model], task)) for model, task in claim.cells]
    if seeds == 0:
        begun = sum(
            any(evidence.seeds(scale, model, arms[model], task) for scale in SCALES)
            for model, task in claim.cells
        )
        lacking = min(
            sum(
                max(margins.least_seeds - len(evidence.seeds(s, m, arms[m], task)), 0)
                for m, task in claim.cells
            )
            for s in SCALES
        )
        seen = f"only {begun} of {total} cells have runs" if begun else _no_runs(claim)
        if begun == total:
            seen = "no seed at one scale in all of the cells"
        return Verdict(
            claim=claim.id,
            arm=arm,
            outcome="not run",
            seen=seen,
            need=Need("runs", margins.least_seeds, total, lacking if begun else None),
        )
    run = Reading(evidence, scale, arms, margins)
    decisions = [run.decide(part) for part in claim.parts]
    whole = rules.conjunction(decisions, margins)
    shown = ""
    if whole.outcome == "contradicted" and scale == "reduced":
        shown = EXCEEDED if whole.exceeds else NOT_REACHED
    learnt, cautious = _learnt(claim, run), _cautious(claim, run, whole)
    return Verdict(
        claim=claim.id,
        arm=arm,
        outcome="inconclusive" if shown else whole.outcome,
        shown=shown,
        scale=scale,
        seeds=seeds,
        seen=whole.seen + _better(whole, decisions, scale) + _trained(learnt, cautious),
        learnt=learnt,
        cautious=cautious,
        full_scale=_full_scale(claim, arms, evidence, margins) if scale == "reduced" else None,
        p_for=whole.p_for,
        p_against=whole.p_against,
        need=_need(whole, decisions, scale, each, margins),
        margins_changed=run.margins_changed(claim, current),
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
            )
            for part, d in zip(claim.parts, decisions, strict=True)
        ),
    )


def _no_runs(claim: Claim) -> str:
    fetched = sorted({task for _, task in claim.cells} & downloads())
    return f"no runs: they need the data of {' and '.join(fetched)}" if fetched else "no runs"


def _common_seeds(sample: Sample, scale: str, arms: dict[str, str], evidence: Evidence) -> int:
    seeds = [evidence.seeds(scale, model, arms[model], task) for model, task in sample]
    return len(frozenset.intersection(*seeds))


def _better(whole: rules.Decision, parts: Sequence[rules.Decision], scale: str) -> str:
    """For claims that are contradicted by results better than claimed: that it is so."""
    if not whole.exceeds:
        return ""
    count = sum(part.exceeds for part in parts)
    where = f" in {plural(count, 'part')}" if len(parts) > 1 else ""
    blame = ", for which missing training is not to blame" if scale == "reduced" else ""
    return f"; our runs do better than claimed{where}{blame}"


def _learnt(claim: Claim, run: Reading) -> float | None:
    """The lowest median on the lengths trained on, of the models that the claim says fail."""
    failed = [p for p in claim.parts if isinstance(p, LevelPart) and p.level == "failed"]
    known = [run.in_distribution(p.model, p.task) for p in failed]
    return None if not known or None in known else min(known)


def _cautious(claim: Claim, run: Reading, whole: rules.Decision) -> bool:
    """Tell whether a failure is reproduced at reduced scale, where too little training causes it
    too.
    """
    of_failure = any(map(run.is_failure, claim.parts))
    return of_failure and whole.outcome == "reproduced" and run.scale == "reduced"


def _trained(learnt: float | None, cautious: bool) -> str:
    words = ""
    if learnt is not None:
        words = f"; on the lengths trained on, the lowest median is {learnt:.1f} %"
    return words + ("; may hold only because training was cut" if cautious else "")


def _full_scale(
    claim: Claim, arms: dict[str, str], evidence: Evidence, margins: Margins
) -> FullScale | None:
    """Count the runs at the paper's own scale that agree, beside a verdict at reduced scale."""
    run = Reading(evidence, "paper", arms, margins)
    votes = [
        decision
        for part in claim.parts
        if all(_common_seeds(sample, "paper", arms, evidence) for sample in part.samples)
        and (decision := run.decide(part)).agree is not None
    ]
    if not votes:
        return None
    agree, runs = sum(vote.agree for vote in votes), sum(vote.n for vote in votes)
    return FullScale(agree, runs, len(votes), len(claim.parts))


def _need(
    whole: rules.Decision,
    parts: Sequence[rules.Decision],
    scale: str,
    seeds: Sequence[int],
    margins: Margins,
) -> Need | None:
    """Return what would decide a claim; ``seeds`` are those that each of its cells has."""
    if whole.outcome == "contradicted" and scale == "reduced":
        return Need("scale")
    if whole.outcome != "inconclusive":
        return None
    if whole.n < margins.least_seeds:
        more, uneven = margins.least_seeds - whole.n, len(set(seeds)) > 1
        runs = sum(max(margins.least_seeds - have, 0) for have in seeds) if uneven else None
        return Need("seeds", more, len(seeds), runs)
    lost = sum(part.outcome == "contradicted" for part in parts)
    if lost:
        enough = rules.seeds_for_parts(len(parts), margins)
        return Need("correction", enough, lost=lost, parts=len(parts))
    weakest = max(parts, key=lambda part: part.p_for)
    if weakest.agree is None:
        return Need("order")
    for n in range(whole.n + 1, 101):
        majority = stats.smallest_majority(n, margins.level)
        share = round(weakest.agree / weakest.n * n)
        if majority is not None and (share >= majority or n - share >= majority):
            return Need("majority", n)
    return Need("nothing")


# The ledger

COLUMNS = (
    *("paper", "claim", "artifact", "kind", "statement", "quote", "where", "scope"),
    *("arm", "verdict", "label", "outcome", "scale", "seeds", "seen", "at_full_scale", "needed"),
    *("p", "q", "margins_changed", "others", "beside", "votes", "parts"),
)


def ledger(claims: Sequence[Claim], frame: pd.DataFrame) -> pd.DataFrame:
    """One row per claim with its verdict; see :data:`COLUMNS`.

    verdict is :attr:`Verdict.verdict`; scale is "" without runs; p is Verdict.p_for; q, for order
    claims only, is p after Benjamini and Hochberg over the order claims of the same artifact that
    were judged; others lists the verdicts of the other arms, "paper: reproduced (reduced)", and
    beside has them as objects, {arm: Verdict}; votes is Verdict.votes; parts are the
    :class:`PartVerdict` objects behind a verdict.
    """
    margins, current = load_margins(), margins_hash()
    evidence: dict[str, Evidence] = {}
    rows = []
    for claim in claims:
        source = claim.source.model_dump_json()
        if source not in evidence:
            evidence[source] = Evidence(claim.source, frame)
        verdict = _judge_arms(claim, evidence[source], margins, current)
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
                        "needed",
                    )
                },
                "scale": verdict.scale or "",
                "p": np.nan if verdict.p_for is None else verdict.p_for,
                "q": np.nan,
                "margins_changed": verdict.margins_changed,
                "parts": verdict.parts,
                "others": "; ".join(f"{arm}: {v.label}" for arm, v in verdict.others.items()),
                "beside": verdict.others,
                "votes": verdict.votes,
            }
        )
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    orders = table[(table["kind"] == "order") & (table["seeds"] >= margins.least_seeds)]
    for _, group in orders.groupby("artifact"):
        table.loc[group.index, "q"] = stats.benjamini_hochberg(group["p"].to_list())
    return table


def counted(verdicts: Mapping[str, int]) -> str:
    """Verdict counts in the order of :data:`VERDICTS`: *3 reproduced, 2 not run*."""
    return wording.counted(verdicts, VERDICTS)


def tally(table: pd.DataFrame) -> Tally:
    """Count the claims of a ledger that were judged, and the verdicts that decide one."""
    margins = load_margins()
    judged = table[table["seeds"] >= margins.least_seeds]
    decided = judged["outcome"].isin(DECIDED)
    return Tally(
        claims=len(table),
        judged=len(judged),
        decided=judged.loc[decided, "verdict"].value_counts().to_dict(),
        left_open=judged.loc[~decided, "verdict"].value_counts().to_dict(),
        seeds=margins.least_seeds,
        level=margins.level,
    )


def summary(table: pd.DataFrame) -> str:
    """The :func:`tally` of a ledger in words."""
    return wording.tally(tally(table), VERDICTS)
