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
import os
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

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

Scale = Literal["smoke", "reduced", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "reduced", "paper")
ARMS = ("released", "paper", "repaired")  # readings that models of any paper may have


def _task(value: Any) -> Any:
    return _from_registry(value, registry.tasks(), "task", registry.refused)


def _model(value: Any) -> Any:
    return _from_registry(
        value, {name: model.config for name, model in registry.models().items()}, "model"
    )


def _from_registry(
    value: Any,
    registry: dict[str, type[BaseModel]],
    what: str,
    refused: Callable[[str], str] = lambda _: "",
) -> Any:
    if isinstance(value, str):
        value = {"name": value}
    if isinstance(value, tuple(registry.values())):
        return value
    name = value.get("name") if isinstance(value, dict) else None
    if name is None:
        raise ValueError(f"name the {what}: one of {', '.join(registry)}")
    if not isinstance(name, str) or name not in registry:
        why, way_out = refused(str(name)), f"choose one of {', '.join(registry)}"
        raise ValueError(f"unknown {what} {name!r}: {why or way_out}")
    return registry[name].model_validate(value)


def _training(value: Any) -> Any:
    return _from_registry(value, registry.protocols(), "protocol")


_DRAWN: dict[type, bool] = {}  # to list splits, some tasks count through all of their data


def _is_drawn(task: Any) -> bool:
    """Tell whether samples of a kind of task are drawn afresh, for want of a training set."""
    kind = type(task)
    if kind not in _DRAWN:
        _DRAWN[kind] = "train" not in task.splits()
    return _DRAWN[kind]


def text_sizes(task: Any) -> tuple[tuple[int, int], ...]:
    """``task.text_sizes()``, counted once: many models read the same texts, from many seeds."""
    return _text_sizes(task, os.environ.get("RELENGTH_DATA"))


@lru_cache(maxsize=1000)
def _text_sizes(task: Any, data: str | None) -> tuple[tuple[int, int], ...]:
    return task.text_sizes()


def _named(training: Any) -> Any:
    """The fields of a record's protocol with its name: a record without one is older than names.

    There were two protocols then, and only one of them counted steps. Both names stay out of the
    key.
    """
    if not isinstance(training, dict) or "name" in training:
        return training
    return {"name": "streaming" if "steps" in training else "epochs", **training}


class RunSpec(BaseModel):
    """One training run: what is trained on what, how, at which scale, from which seed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    task: Annotated[SerializeAsAny[BaseModel], BeforeValidator(_task)]
    model: Annotated[SerializeAsAny[BaseModel], BeforeValidator(_model)]
    training: Annotated[SerializeAsAny[BaseModel], BeforeValidator(_training)]
    scale: Scale
    seed: int = Field(ge=0)

    @model_validator(mode="after")
    def _fits(self) -> "RunSpec":
        drawn = _is_drawn(self.task)
        if drawn != self.training.fresh:
            why = "draws samples afresh at every step" if drawn else "trains on a fixed set"
            fit = [name for name, other in registry.protocols().items() if other.fresh == drawn]
            raise ValueError(
                f"task {self.task.name} {why}, and protocol {self.training.name} does not: choose "
                f"one of {', '.join(fit)}"
            )
        takes, gives = self.model.kind, self.task.kind
        if takes != gives:
            fit = [n for n, other in registry.models().items() if other.config.kind == gives]
            raise ValueError(
                f"model {self.model.name} reads {takes.reads} and writes {takes.writes}, and task "
                f"{self.task.name} asks for {gives.writes} from {gives.reads}: choose one of "
                f"{', '.join(fit)}"
            )
        for size in text_sizes(self.task):
            if why := self.model.cannot(*size):
                said = f"model {self.model.name} cannot read task {self.task.name}"
                raise ValueError(f"{said}: {why}")
        if (only := self.model.only_protocol) and self.training.name != only:
            raise ValueError(
                f"model {self.model.name} takes protocol {only} only, and not "
                f"{self.training.name}: choose {only}, or another model"
            )
        self.training.check(self.task, self.model)
        return self

    @property
    def key(self) -> str:
        """First 12 hex digits of the SHA-256 of the canonical JSON."""
        # Computed once: a campaign has ten thousands, and asks for each many times.
        computed = self.__dict__
        if "_key" not in computed:
            computed["_key"] = _key(self)
        return computed["_key"]

    @property
    def row(self) -> str:
        """The model's name in tables."""
        return _row(self.model)

    def __hash__(self) -> int:
        return hash(self.key)

    def model_copy(self, **changes: Any) -> "RunSpec":
        """A copy as pydantic makes it, with a key of its own; what is changed is not validated."""
        copy = super().model_copy(**changes)
        copy.__dict__.pop("_key", None)
        return copy

    @property
    def label(self) -> str:
        """The run's name in logs: model/arm on task, seed."""
        return f"{self.row}/{self.model.arm} on {self.task.name}, seed {self.seed} ({self.scale})"

    @classmethod
    def recorded(cls, fields: dict[str, Any]) -> "RunSpec":
        """The spec of a record; a field that the record is too old for gets its earlier value."""
        return cls.model_validate(_with_earlier_values(cls, fields))

    def canonical(self) -> dict[str, Any]:
        """Return what the key hashes: every field, less later additions that have their earlier
        value.
        """
        return _canonical(self)


def make_spec(**fields: Any) -> RunSpec:
    """A validated spec; a wrong field raises RelengthError that names it and what is allowed."""
    seed = fields.get("seed")
    rest = {name: value for name, value in fields.items() if name != "seed"}
    if type(seed) is int and seed > 0 and not any(isinstance(v, BaseModel) for v in rest.values()):
        # Grids ask for the same run of seed after seed; whether it is possible, no seed decides.
        return _of_seed_0(_Fields(repr(rest), _classes(rest), rest)).model_copy(
            update={"seed": seed}
        )
    return _validated(fields)


class _Fields:
    """Fields of a spec, equal where their texts and the classes that they name are."""

    def __init__(self, text: str, classes: tuple[Any, ...], fields: dict[str, Any]):
        self.said, self.fields = (text, classes), fields

    def __hash__(self) -> int:
        return hash(self.said)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Fields) and self.said == other.said


def _classes(fields: dict[str, Any]) -> tuple[Any, ...]:
    known = {
        "task": registry.tasks(), "model": registry.models(), "training": registry.protocols()
    }  # fmt: skip
    names = {part: fields.get(part) for part in known}
    names = {part: v.get("name") if isinstance(v, dict) else v for part, v in names.items()}
    return tuple(known[part].get(n) if isinstance(n, str) else None for part, n in names.items())


@lru_cache(maxsize=10_000)
def _of_seed_0(rest: _Fields) -> RunSpec:
    return _validated({**rest.fields, "seed": 0})


def _validated(fields: dict[str, Any]) -> RunSpec:
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
    training = _named(fields.get("training"))
    if isinstance(training, dict) and training["name"] not in [*registry.protocols()]:
        raise ValueError(f"unknown protocol {training['name']!r}")
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


def measure_of(recorded: Mapping[str, Any]) -> str:
    """Return the meaning of accuracy for a recorded spec: the metric that its task is measured
    by.
    """
    return registry.tasks()[recorded["task"]["name"]].measure


def _with_earlier_values(kind: type[RunSpec], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a recorded spec, and those that it is too old for."""
    fields = fields | {"training": _named(fields["training"])}
    kinds = {
        "task": registry.tasks()[fields["task"]["name"]],
        "model": registry.models()[fields["model"]["name"]].config,
        "training": registry.protocols()[fields["training"]["name"]],
    }
    parts = {part: _before(of) | fields[part] for part, of in kinds.items()}
    return _before(kind) | fields | parts


def _before(model: type[BaseModel]) -> dict[str, Any]:
    """The values that fields added later had before they existed."""
    return {
        name: field.json_schema_extra["before"]
        for name, field in model.model_fields.items()
        if isinstance(field.json_schema_extra, dict) and "before" in field.json_schema_extra
    }


def explain(error: ValidationError) -> str:
    """The complaints of a validation in one line: each field, what is wrong, what was given.

    At most five of them: one mistake can be at fault in hundreds of fields.
    """
    parts, problems = [], error.errors()
    for problem in problems[:5]:
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
    if more := len(problems) - len(parts):
        parts.append(f"and {more} more")
    return "; ".join(parts)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]} …"


def row_name(model: Mapping[str, Any]) -> str:
    """Return a model's name in tables: its name, and whatever else tells the rows of a table
    apart.
    """
    config = registry.models()[model["name"]].config
    return config.row(model) if hasattr(config, "row") else model["name"]


@lru_cache(maxsize=10_000)
def _row(model: BaseModel) -> str:
    return row_name(model.model_dump())


def _key(spec: RunSpec) -> str:
    # The text of the whole, put together: specs of a grid have most of their parts in common.
    parts = sorted((name, _text(value)) for name, value in _hashed(spec))
    text = ",".join(f'"{name}":{part}' for name, part in parts)
    return hashlib.sha256(f"{{{text}}}".encode()).hexdigest()[:12]


@lru_cache(maxsize=10_000)
def _text(part: Any) -> str:
    """The canonical JSON of a part of a spec."""
    fields = _canonical(part) if isinstance(part, BaseModel) else _plain(part)
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def _canonical(model: BaseModel) -> dict[str, Any]:
    return {
        name: _canonical(value) if isinstance(value, BaseModel) else _plain(value)
        for name, value in _hashed(model)
    }


def _hashed(model: BaseModel) -> Iterator[tuple[str, Any]]:
    """The fields that count for the key: all but later additions that have their earlier value."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        extra = field.json_schema_extra
        if isinstance(extra, dict) and "before" in extra:
            written = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
            if written == extra["before"]:
                continue
        yield name, value


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value + 0.0)  # +0.0 turns -0.0 into 0.0; repr is exact and the same everywhere
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value
