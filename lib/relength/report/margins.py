"""Say of margins which are in force, their versions, and which ones runs were made under."""

import pandas as pd

from relength.report.against_print import BEGUN, FEWEST, HALF, NEARLY_ALL, WORDS
from relength.report.markdown import plain, table
from relength.report.scoreboard import Survey
from relength.specs import registry
from relength.specs.margins import Margins, load_margins, margin_words
from relength.verdicts import margin_history, rules
from relength.verdicts.margin_history import History, Version
from relength.verdicts.wording import plural

MOST_PARTS = 24  # of a claim; more take more seeds by the same rule
SHORT = 8  # digits of a fingerprint that tell versions apart


def in_force(survey: Survey) -> str:
    """The margins in force, from ``book/claims/margins.yml``."""
    fixed = load_margins()
    rows = [(m.replace("_", " "), measure_words(m, fixed)) for m in fixed.measures]
    rows += [(f'"{word}"', level_words(word, fixed, registry.ACCURACY)) for word in fixed.levels]
    rows.append(("standard deviations", f"counted as at least {fixed.sd_floor:g} points"))
    rows.append(("seeds of stage one", f"{fixed.least_seeds}"))
    rows += [
        (f"seeds of stage two, scale {scale}, each a yes or a no", stage_two_words(scale, fixed))
        for scale in fixed.stage_two
    ]
    low, high = fixed.between
    rows += [
        (
            '"could hardly fail"',
            f"at least {fixed.hardly_fails:.0%} of the other rows come out too",
        ),
        ('"between"', f"printed strictly between {low:g} and {high:g} %"),
    ]
    both = "of a paper's printed accuracies come out, and of the hard ones"
    rows += [
        (f'"{WORDS[0].lower()}"', f"at least {NEARLY_ALL:.0%} {both}"),
        (f'"{WORDS[2].lower()}"', f"fewer than {HALF:.0%} {both}"),
        (f'"{WORDS[1].lower()}"', "anything between the two"),
        (f'"{BEGUN.lower()}"', f"fewer than {FEWEST} of its printed accuracies have these seeds"),
    ]
    return table(
        ("measure", "margin"),
        rows,
        name="tab-margins",
        caption="What counts as the same value, what the words mean, how many seeds are judged. "
        "The rows below the seeds change no verdict. The last four were chosen when most of these "
        "runs were known.",
    )


def stage_two_words(scale: rules.Scale, fixed: Margins) -> str:
    """Word the seeds of stage two by the parts of a claim: *6 for 1 to 3 parts, 7 for 4 to 6*."""
    by_seeds: dict[int, list[int]] = {}
    for parts in range(1, MOST_PARTS + 1):
        by_seeds.setdefault(rules.seeds_for_parts(parts, fixed, scale), []).append(parts)
    words = [
        f"{seeds} for {parts[0]}" + (f" to {parts[-1]}" if parts[1:] else "")
        for seeds, parts in by_seeds.items()
    ]
    return f"{', '.join(words)} parts of a claim"


def level_words(word: str, fixed: Margins, metric: str) -> str:
    """Word the meaning of "solved" or "failed" for a metric: *exact match ≥ 95 %*."""
    level = fixed.levels[word]
    bound = f"≥ {level.at_least:g} %" if level.at_least is not None else f"< {level.below:g} %"
    return f"{registry.metric(metric).words} {bound}"


def measure_words(measure: str, fixed: Margins) -> str:
    """Word how far from the printed value still counts as the same: *± 5 points*."""
    return margin_words(fixed.measures[measure], measure)


def link(fingerprint: str) -> str:
    """A link to a version's row in the history."""
    short = fingerprint[:SHORT]
    return f'<a href="#margins-{short}"><code>{short}</code></a>'


def versions(survey: Survey) -> str:
    """Every known version of the margins, what it changed, and the runs made under it."""
    found = margin_history.history(survey.runs)
    runs = survey.runs.drop_duplicates("run_id")["margins"].value_counts()
    rows = [
        _row(version, before, version is found.versions[-1], runs)
        for before, version in zip((None, *found.versions), found.versions, strict=False)
    ]
    return f"{_source(found)}\n\n" + table(
        ("version", "since", "commit", "what it changed", "runs judged"),
        rows,
        name="tab-margin-history",
        caption="Versions of <code>book/claims/margins.yml</code>, by the first digits of their "
        "fingerprint, and how many of the runs that verdicts use were made under each.",
        numbers=("runs judged",),
        classes="ids versions",
    )


def _source(found: History) -> str:
    current = found.versions[-1]
    if found.complete:
        committed = sum(version.commit is not None for version in found.versions)
        source = (
            f"Taken from the repository's history, which has {plural(committed, 'version')} of "
            "the file."
        )
    else:
        source = (
            "This copy of the book was built without the repository's whole history: versions are "
            "known by the fingerprints in the records, and one that no run was made under may be "
            "missing."
        )
    state = (
        ""
        if current.commit or not found.complete
        else " The version in force is not committed yet."
    )
    return source + state


def _row(version: Version, before: Version | None, last: bool, runs: pd.Series) -> tuple:
    short = version.fingerprint[:SHORT]
    force = " (in force)" if last else ""
    said = (
        f"{version.commit[:SHORT]}: {plain(version.subject or '')}" if version.commit else "unknown"
    )
    changed = before and margin_history.changes(before, version)
    if before is None:
        what = "the first known"
    else:
        what = "unknown" if changed is None else plain("; ".join(changed)) or "comments only"
    return (
        f'<code id="margins-{short}">{short}</code>{force}',
        version.since or "unknown",
        said,
        what,
        int(runs.get(version.fingerprint, 0)),
    )
