"""Everything that determines one training run, and the key that names it.

The key is a hash of the canonical JSON of the spec. A field that is added later declares, with
:func:`relength.specs.fields.added`, the value that earlier records had; it stays out of the key
while it has that value, so old keys never change. Defaults may change freely: the spec that is
hashed and stored always spells out every value. Nothing is converted: a number in quotes, a yes or
no for a number and 2.0 for a whole number are errors; only an integer may stand where a float is
asked for.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    model_validator,
)

from relength.errors import RelengthError
from relength.specs import registry
from relength.specs.fields import added

if TYPE_CHECKING:
    from relength.tasks.base import Task

Scale = Literal["smoke", "reduced", "paper"]
Measure = Literal["exact_match", "token_accuracy"]
SCALES: tuple[Scale, ...] = ("smoke", "reduced", "paper")
ARMS = ("released", "paper", "repaired")


def _task(value: Any) -> Any:
    return _from_registry(value, registry.tasks(), "task")


def _model(value: Any) -> Any:
    return _from_registry(
        value, {name: model.config for name, model in registry.models().items()}, "model"
    )


def _from_registry(value: Any, registry: dict[str, type[BaseModel]], what: str) -> Any:
    if isinstance(value, str):
        value = {"name": value}
    if isinstance(value, tuple(registry.values())):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"give the {what} by its name, or as a mapping with a name")
    name = value.get("name")
    if not isinstance(name, str) or name not in registry:
        raise ValueError(f"unknown {what} {name!r}: choose one of {', '.join(registry)}")
    return registry[name].model_validate(value)


class Arithmetic(BaseModel):
    """What a protocol computes in."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    precision: Literal["float32", "float64"] = "float32"
    products: Literal["exact", "tf32", "bfloat16"] = added(
        "exact",
        before="exact",
        description="what matrix products compute in; exact is the precision above, the others "
        "need a GPU",
    )

    @model_validator(mode="after")
    def _one_policy(self) -> "Arithmetic":
        if self.precision == "float64" and self.products != "exact":
            raise ValueError(f"products in {self.products} make no sense with precision float64")
        return self


class Training(Arithmetic):
    """Epochs over fixed samples, with a schedule and an early end, selected on exact match.

    Defaults: Monotonic Location Attention, Appendix E.2, and its released configuration.
    """

    measure: ClassVar[Measure] = "exact_match"

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

    @property
    def intervals(self) -> int:
        """How often training is evaluated, at most: after each epoch."""
        return self.epochs

    def most_steps(self, task: "Task") -> int:
        """Optimiser steps if training does not end early."""
        return self.epochs * -(-task.splits()["train"].size // self.batch_size)


class Streaming(Arithmetic):
    """Samples drawn afresh at every step, all of one length; selected on token accuracy.

    The length of a step's batch is uniform over the task's range, and the same for all seeds.
    Defaults: the released PANM code.
    """

    measure: ClassVar[Measure] = "token_accuracy"
    tie: ClassVar[float] = 1e-9  # equal scores, but for rounding

    steps: int = Field(gt=0, description="optimiser steps, whole intervals of them")
    validate_every: int = Field(200, gt=0, description="steps of an interval")
    batch_size: int = Field(128, gt=0)
    optimiser: Literal["rmsprop"] = "rmsprop"
    learning_rate: float = Field(1e-4, gt=0)
    smoothing: float = Field(0.95, ge=0, lt=1, description="of the squared gradient, alpha")
    momentum: float = Field(0.9, ge=0, lt=1)
    clip_value: float = Field(10.0, gt=0, description="largest element of a gradient")

    @model_validator(mode="after")
    def _whole_intervals(self) -> "Streaming":
        if self.steps % self.validate_every:
            raise ValueError(
                f"{self.steps} steps are no whole number of intervals of {self.validate_every}"
            )
        return self

    @property
    def intervals(self) -> int:
        """How often training is evaluated."""
        return self.steps // self.validate_every

    def most_steps(self, task: "Task") -> int:
        """Optimiser steps."""
        return self.steps


def _training(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value
    if not isinstance(value, dict):
        raise ValueError("give its fields, as in {'epochs': 25}")
    return (Streaming if "steps" in value else Training).model_validate(value)


class RunSpec(BaseModel):
    """One training run: what is trained on what, how, at which scale, from which seed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    task: Annotated[SerializeAsAny[BaseModel], BeforeValidator(_task)]
    model: Annotated[SerializeAsAny[BaseModel], BeforeValidator(_model)]
    training: Annotated[Training | Streaming, BeforeValidator(_training)] = Training()
    scale: Scale
    seed: int = Field(ge=0)

    @model_validator(mode="after")
    def _fits(self) -> "RunSpec":
        streams = "train" not in self.task.splits()
        if streams != isinstance(self.training, Streaming):
            ask = "a number of steps" if streams else "epochs, not steps"
            kind = "draws samples afresh at every step" if streams else "has a fixed training set"
            raise ValueError(f"task {self.task.name} {kind}: give training {ask}")
        has = "channels" if streams else "tokens"
        if self.model.reads != has:
            raise ValueError(
                f"model {self.model.name} reads {self.model.reads}, and task {self.task.name} has "
                f"{has}: choose one of "
                + ", ".join(n for n, m in registry.models().items() if m.config.reads == has)
            )
        return self

    @property
    def key(self) -> str:
        """First 12 hex digits of the SHA-256 of the canonical JSON."""
        return _key(self)

    @property
    def row(self) -> str:
        """How tables name the model."""
        return row_name(self.model.model_dump())

    @property
    def label(self) -> str:
        """How logs name the run: model/arm on task, seed."""
        return f"{self.row}/{self.model.arm} on {self.task.name}, seed {self.seed} ({self.scale})"

    @classmethod
    def recorded(cls, fields: dict[str, Any]) -> "RunSpec":
        """The spec of a record; a field that the record is too old for gets its earlier value."""
        return cls.model_validate(_with_earlier_values(cls, fields))

    def canonical(self) -> dict[str, Any]:
        """What the key hashes: every field, less later additions that have their earlier value."""
        return _canonical(self)


def make_spec(**fields: Any) -> RunSpec:
    """A validated spec; a wrong field raises RelengthError that names it and what is allowed."""
    try:
        return RunSpec.model_validate(fields)
    except ValidationError as error:
        raise RelengthError(f"This run is not possible: {explain(error)}.") from None


def spec_of_key(fields: dict[str, Any], key: str) -> RunSpec:
    """:meth:`RunSpec.recorded`; ValueError says why the fields are not the spec of the key."""
    for part, known in (("task", registry.tasks()), ("model", registry.models())):
        given = fields.get(part)
        name = given.get("name") if isinstance(given, dict) else given
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"unknown {part} {name!r}")
    try:
        whole = _with_earlier_values(RunSpec, fields)
        spec = RunSpec.model_validate(whole)
    except ValidationError as error:
        raise ValueError(explain(error)) from None
    except (KeyError, TypeError, AttributeError, StopIteration):
        raise ValueError("its task, model or training is not laid out as in a record") from None
    if spec.key != key:
        raise ValueError(f"it is the spec of key {spec.key}, not of {key}")
    if spec.model_dump(mode="json") != whole:  # a default of today stood in, or text for a number
        raise ValueError("it does not spell out every value as runs record it")
    return spec


def measure_of(recorded: Mapping[str, Any]) -> Measure:
    """What accuracy means for a recorded spec: what its protocol selects checkpoints by."""
    return (Streaming if "steps" in recorded.get("training", ()) else Training).measure


def _with_earlier_values(kind: type[RunSpec], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a recorded spec, and those that it is too old for."""
    kinds = {
        "task": registry.tasks()[fields["task"]["name"]],
        "model": registry.models()[fields["model"]["name"]].config,
        "training": _protocol(kind.model_fields["training"].annotation, fields["training"]),
    }
    parts = {part: _before(of) | fields[part] for part, of in kinds.items()}
    return _before(kind) | fields | parts


def _protocol(annotation: Any, fields: dict[str, Any]) -> type[BaseModel]:
    """Which of the protocols a record's fields are of."""
    known = (kind for kind in get_args(annotation) or (annotation,))
    return next(kind for kind in known if fields.keys() <= kind.model_fields.keys())


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
            else f" (given: {_short(problem['input'])})"
        )
        parts.append(f"{where}: {message}{given}")
    return "; ".join(parts)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]} …"


def row_name(model: Mapping[str, Any]) -> str:
    """How tables name a model: its name, and whatever else tells the rows of a table apart."""
    config = registry.models()[model["name"]].config
    return config.row(model) if hasattr(config, "row") else model["name"]


@cache  # a campaign has ten thousands, and asks for each many times
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
