"""The margins of every verdict: `book/claims/margins.yml`, read and fingerprinted.

A module of its own because each training run stores the fingerprint: it must not cost the import of
the statistics.
"""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from relength.errors import RelengthError
from relength.paths import BOOK

MARGINS = BOOK / "claims" / "margins.yml"

# Results are shares of a count, and 100 * (1900 / 2000) must not miss 95 by a rounding error.
ROUNDING = 1e-9

Measure = Literal["accuracy", "edit_distance", "length", "cost_ratio", "tasks_solved"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Margin(_Frozen):
    """The distance from a printed value that still counts as the same."""

    absolute: float = Field(default=0.0, ge=0)
    relative: float = Field(default=0.0, ge=0)

    def around(self, value: float) -> float:
        """Half-width of the interval around `value`: the larger of the two margins, in its unit."""
        return max(self.absolute, self.relative * abs(value)) + ROUNDING


class Level(_Frozen):
    """The meaning of a word such as "solves", in percent of what a metric counts as right."""

    at_least: float | None = Field(default=None, ge=0, le=100)
    below: float | None = Field(default=None, ge=0, le=100)

    @model_validator(mode="after")
    def _one_side(self) -> "Level":
        if (self.at_least is None) == (self.below is None):
            raise ValueError("a level has either at_least or below")
        return self

    def holds(self, value: float) -> bool:
        """Tell whether a result, in percent, is at this level; of a table of them, which are."""
        if self.at_least is not None:
            return value >= self.at_least - ROUNDING
        return value < self.below - ROUNDING


class Margins(_Frozen):
    """Everything that a verdict compares results with, see the comments in the file.

    least_seeds   of stage one, which can reproduce a claim
    stage_two     {scale: the fewest seeds of stage two, which can contradict one}; old states of
                  the file have none
    hardly_fails, between
                  say something beside a verdict and change none; old states have none of them
    same_margins  fingerprints of earlier states of the file that had every margin of this one
    """

    measures: dict[Measure, Margin]
    levels: dict[Literal["solved", "failed"], Level]
    sd_floor: float = Field(gt=0)
    level: float = Field(gt=0, lt=0.5)
    least_seeds: int = Field(ge=5)
    stage_two: dict[Literal["paper", "reduced"], int] = {}
    hardly_fails: float = Field(default=1.0, gt=0, le=1)
    between: tuple[float, float] = (0.0, 100.0)
    same_margins: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _stage_two_is_no_smaller(self) -> "Margins":
        for scale, seeds in self.stage_two.items():
            if seeds < self.least_seeds:
                raise ValueError(
                    f"stage_two has {seeds} seeds at scale {scale}, fewer than the "
                    f"{self.least_seeds} of stage one"
                )
        return self

    def equal_versions(self, current: str) -> frozenset[str]:
        """Fingerprints of the states of the file that have these margins."""
        return frozenset((current, *self.same_margins))

    def is_between(self, percent: float) -> bool:
        """Tell whether a printed percentage is neither at the floor nor at the ceiling."""
        low, high = self.between
        return low + ROUNDING < percent < high - ROUNDING


def margin_words(margin: Margin, measure: str) -> str:
    """Word the distance from the printed value that still counts as the same: *± 5 points*."""
    unit = " points" if measure == "accuracy" else ""
    parts = [f"± {margin.absolute:g}{unit}"] if margin.absolute else []
    parts += [f"± {100 * margin.relative:g} %"] if margin.relative else []
    if not parts:
        return "none: the same or not the same"
    return " or ".join(parts) + (", whichever is larger" if len(parts) > 1 else "")


def load_margins() -> Margins:
    """The margins. RelengthError where their file is missing or says something impossible."""
    try:
        return _parsed(MARGINS.read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise RelengthError(
            f"The margins cannot be read: {error}. They belong in {MARGINS}."
        ) from error
    except ValidationError as error:
        from relength.specs.spec import explain  # which a run that is trained does not need

        raise RelengthError(f"{MARGINS} is no file of margins: {explain(error)}.") from None


@lru_cache(maxsize=8)  # every claim asks
def _parsed(content: bytes) -> Margins:
    return Margins.model_validate(yaml.load(content, Loader=yaml.CSafeLoader))


def margins_hash(path: Path = MARGINS) -> str:
    """SHA-256 of the margins file in hex, which each record stores as `provenance.margins`."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RelengthError(f"The margins file is missing: {error}. Restore {path}.") from error
