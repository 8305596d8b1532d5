"""Read where papers, their code and our runs differ (``book/deviations/<paper>.yml``), and measure
by how much.

An entry is prose, except for its last two fields: `recount` names arithmetic that is done again
from the paper's own numbers (:mod:`relength.report.recounts`), `measure` says which recorded runs
show what a difference changes (:func:`effect`), once or in a list.
"""

from pathlib import Path
from typing import Literal, NamedTuple

import pandas as pd
import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from relength.errors import RelengthError
from relength.paths import BOOK
from relength.specs import registry
from relength.specs.spec import explain

FOLDER = BOOK / "deviations"

Kind = Literal["deviation", "contradiction", "omission", "assumption"]
# What runs of a pair may differ in; whatever of it a measure does not name is equal.
COLUMNS = ("experiment", "scale", "task", "model", "arm", "checkpoint")
READINGS = {"paper": "the text's reading", "released": "the code's"}  # arms, to a reader
METRICS = tuple(name for name, metric in registry.test_metrics().items() if metric.margin)


class Side(BaseModel):
    """One side of a comparison: what its runs have in common, and the other side's have not.

    name  what a reader calls it, where the columns do not say it
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    experiment: str | None = None
    scale: str | None = None
    task: str | None = None
    model: str | None = None
    arm: str | None = None
    checkpoint: str | None = None
    metric: Literal[METRICS] | None = None
    name: str | None = None

    @property
    def columns(self) -> dict[str, str]:
        """Columns of the store's frame with their value."""
        return {name: value for name in COLUMNS if (value := getattr(self, name)) is not None}

    def __str__(self) -> str:
        told = self.name or self.metric or list(self.columns.values())[-1]
        if told == self.arm:
            told = READINGS.get(told, told)
        return told.replace("_", " ")


class Measure(BaseModel):
    """The pairs of runs that show an effect: `from` and `to` say what they differ in.

    metric  what is compared, unless the sides are two metrics of the same runs; by default what
            each run's task is measured by
    where   further columns and their values, for both sides
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    first: Side = Field(alias="from")
    second: Side = Field(alias="to")
    metric: Literal[*METRICS, registry.ACCURACY] = registry.ACCURACY
    where: dict[Literal[COLUMNS], tuple[str, ...]] = {}

    @property
    def judged(self) -> str:
        """The metric whose margin and unit are those of the difference."""
        return self.second.metric or self.metric

    @model_validator(mode="after")
    def _compares_two_things(self) -> "Measure":
        if self.first.columns == self.second.columns and self.first.metric == self.second.metric:
            raise ValueError("from and to are the same")
        if set(self.first.columns) != set(self.second.columns) or (
            (self.first.metric is None) != (self.second.metric is None)
        ):
            raise ValueError("from and to name the same columns")
        if not (self.first.columns or self.first.metric):
            raise ValueError("from and to name what they differ in")
        return self


class Deviation(BaseModel):
    """One difference; the fields are described at the head of each file.

    kind    deviation: we do otherwise than the authors; contradiction: text against released code,
            or the paper against itself; omission: the text is silent and the released code decides;
            assumption: neither says, so we had to choose
    """

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    title: str = Field(min_length=1)
    kind: Kind = "deviation"
    where: str = ""
    applies: str = Field(min_length=1)
    paper: str = Field(min_length=1)
    released: str = Field(min_length=1)
    here: str = Field(min_length=1)
    why: str = Field(min_length=1)
    effect: str = Field(min_length=1)
    recount: str | None = None
    measures: tuple[Measure, ...] = Field((), alias="measure")

    @field_validator("measures", mode="before")
    @classmethod
    def _one_or_several(cls, given: object) -> object:
        return [given] if isinstance(given, dict) else given


def papers(folder: Path = FOLDER) -> list[str]:
    """Short names of the papers that have a file of deviations."""
    return sorted(path.stem for path in folder.glob("*.yml"))


def load(paper: str, folder: Path = FOLDER) -> list[Deviation]:
    """The entries of a paper. RelengthError where the file is missing or says something wrong."""
    path = folder / f"{paper}.yml"
    try:
        entries = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
        return TypeAdapter(list[Deviation]).validate_python(entries)
    except (OSError, yaml.YAMLError) as error:
        raise RelengthError(
            f"The deviations cannot be read: {error}. They belong in {path}."
        ) from None
    except ValidationError as error:
        raise RelengthError(f"{path} is no file of deviations: {explain(error)}.") from None


class Effect(NamedTuple):
    """The difference of pairs of runs, second side minus first, in the metric's own unit.

    table   a row per pair of runs and test: task, model, arm, scale, seed, test, the two values,
            difference
    longest the rows of each task's longest test
    """

    measure: Measure
    table: pd.DataFrame
    longest: pd.DataFrame


def effect(measure: Measure, runs: pd.DataFrame) -> Effect | None:
    """The measured effect, or None where no pair of runs is recorded yet.

    runs: rows of :func:`relength.runs.store.frame`, one usable run per spec. Runs at scale smoke
    show nothing but that code works, and are left out; so is every checkpoint but the selected one,
    unless checkpoints are what is compared.
    """
    chosen = runs[runs["scale"] != "smoke"]
    if "checkpoint" not in measure.first.columns:
        chosen = chosen[chosen["checkpoint"] == "selected"]
    for column, values in measure.where.items():
        chosen = chosen[chosen[column].isin(values)]
    first = _values(measure.first, measure.metric, chosen).rename(columns={"value": "first"})
    second = _values(measure.second, measure.metric, chosen).rename(columns={"value": "second"})
    same = [c for c in (*COLUMNS, "seed", "test") if c not in measure.first.columns]
    table = first.merge(second.drop(columns=list(measure.first.columns)), on=same)
    table = table.drop_duplicates([c for c in same if c != "experiment"])  # runs that pages share
    if table.empty:
        return None
    table = table.assign(difference=table["second"] - table["first"]).reset_index(drop=True)
    longest = table.groupby([*COLUMNS, "seed"], sort=False).tail(1)
    return Effect(measure, table, longest)


def _values(side: Side, metric: str, runs: pd.DataFrame) -> pd.DataFrame:
    """The metric of the runs on one side, as `value`."""
    for column, value in side.columns.items():
        runs = runs[runs[column] == value]
    return runs[[*COLUMNS, "seed", "test"]].assign(value=runs[side.metric or metric])
