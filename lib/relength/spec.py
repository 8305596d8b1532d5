"""Everything that determines one training run, and the key that names it.

The key is a hash of the canonical JSON of the spec. A field that is added later declares, with
:func:`added`, the value that earlier records had; it stays out of the key while it has that value,
so old keys never change. Defaults may change freely: the spec that is hashed and stored always
spells out every value.
"""

import hashlib
import json
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
)

from relength.errors import RelengthError
from relength.models import MODELS
from relength.tasks import TASKS, Task

Scale = Literal["smoke", "reduced", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "reduced", "paper")
ARMS = ("released", "paper", "repaired")


def added(default: Any, *, before: Any, **constraints: Any) -> Any:
    """A pydantic field that older records lack: they had the value ``before``."""
    return Field(default, json_schema_extra={"before": before}, **constraints)


def _task(value: Any) -> Any:
    return _from_registry(value, {name: task for name, task in TASKS.items()}, "task")


def _model(value: Any) -> Any:
    return _from_registry(value, {name: config for name, (config, _) in MODELS.items()}, "model")


def _from_registry(value: Any, registry: dict[str, type[BaseModel]], what: str) -> Any:
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, dict):
        return value
    name = value.get("name")
    if not isinstance(name, str) or name not in registry:
        raise ValueError(f"unknown {what} {name!r}: choose one of {', '.join(registry)}")
    return registry[name].model_validate(value)


class Training(BaseModel):
    """Optimisation and selection. Defaults: Appendix E.2 and the released configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    epochs: int = Field(100, gt=0, description="most passes over the training data")
    batch_size: int = Field(32, gt=0)
    optimiser: Literal["adamw"] = "adamw"
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    clip_norm: float = Field(5.0, gt=0, description="global gradient norm")
    plateau_factor: float = Field(0.5, gt=0, lt=1)
    plateau_patience: int = Field(4, ge=0, description="bad epochs before the rate is cut")
    patience: int = Field(50, gt=0, description="epochs without a new best before training stops")
    tie: float = Field(
        1e-5,
        ge=0,
        description="dev scores (fractions) that differ by less count as equal, and the later "
        "checkpoint wins; the released code compares percentages with 0.001",
    )
    solved_accuracy: float | None = Field(
        None,
        ge=0,
        le=1,
        description="dev accuracy that counts as solved, if training may end early",
    )
    solved_epochs: int = Field(10, gt=0, description="solved epochs in a row that end training")
    precision: Literal["float32", "float64"] = "float32"


class RunSpec(BaseModel):
    """One training run: what is trained on what, how, at which scale, from which seed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: Annotated[SerializeAsAny[Task], BeforeValidator(_task)]
    model: Annotated[SerializeAsAny[BaseModel], BeforeValidator(_model)]
    training: Training = Training()
    scale: Scale
    seed: int = Field(ge=0)

    @property
    def key(self) -> str:
        """First 12 hex digits of the SHA-256 of the canonical JSON."""
        return _key(self)

    @property
    def label(self) -> str:
        """How logs name the run: model/arm on task, seed."""
        return (
            f"{self.model.name}/{self.model.arm} on {self.task.name}, "
            f"seed {self.seed} ({self.scale})"
        )

    @classmethod
    def recorded(cls, fields: dict[str, Any]) -> "RunSpec":
        """The spec of a record; a field that the record is too old for gets its earlier value."""
        kinds = {
            "task": TASKS[fields["task"]["name"]],
            "model": MODELS[fields["model"]["name"]][0],
            "training": cls.model_fields["training"].annotation,
        }
        parts = {part: _before(kind) | fields[part] for part, kind in kinds.items()}
        return cls.model_validate(_before(cls) | fields | parts)

    def canonical(self) -> dict[str, Any]:
        """What the key hashes: every field, less later additions that have their earlier value."""
        return _canonical(self)


def make_spec(**fields: Any) -> RunSpec:
    """A validated spec; a wrong field raises RelengthError that names it and what is allowed."""
    try:
        return RunSpec.model_validate(fields)
    except ValidationError as error:
        raise RelengthError(f"This run is not possible: {explain(error)}.") from None


def _before(model: type[BaseModel]) -> dict[str, Any]:
    """The values that fields added later had before they existed."""
    return {
        name: field.json_schema_extra["before"]
        for name, field in model.model_fields.items()
        if isinstance(field.json_schema_extra, dict) and "before" in field.json_schema_extra
    }


def explain(error: ValidationError) -> str:
    """The complaints of a validation in one line: each field, what is wrong, what was given."""
    parts = []
    for problem in error.errors():
        where = ".".join(str(p) for p in problem["loc"]) or "spec"
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            message = "there is no such field"
        given = (
            ""
            if isinstance(problem["input"], dict | BaseModel)
            else f" (given: {problem['input']!r})"
        )
        parts.append(f"{where}: {message}{given}")
    return "; ".join(parts)


@lru_cache(maxsize=4096)
def _key(spec: RunSpec) -> str:
    text = json.dumps(spec.canonical(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _canonical(model: BaseModel) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        extra = field.json_schema_extra
        if isinstance(extra, dict) and "before" in extra and value == extra["before"]:
            continue
        fields[name] = _canonical(value) if isinstance(value, BaseModel) else _plain(value)
    return fields


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value + 0.0)  # +0.0 turns -0.0 into 0.0; repr is exact and the same everywhere
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value
