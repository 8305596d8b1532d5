"""The fields that every line of the store must have; a record may have others."""

from functools import cache
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from relength.specs import registry
from relength.specs.spec import spec_of_key
from relength.tasks.metrics import Metrics

# What a run that ended well has, and one that failed has not.
OUTCOME = {"checkpoints", "parameters", "curve", "first_losses", "probe", "cost"}

Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


@cache
def _checkpoints(metrics: type[Metrics]) -> type[BaseModel]:
    """Checkpoints whose tests have a task's metrics."""

    class Checkpoint(_Part):
        epoch: int = Field(ge=0)
        tests: dict[str, metrics]

    class Checkpoints(_Part):
        """The selected one, which tables show, and any number of others."""

        __pydantic_extra__: dict[str, Checkpoint]

        selected: Checkpoint

    return Checkpoints


class _Point(_Part):
    """A point of the learning curve."""

    epoch: int = Field(ge=0)
    train_loss: float
    dev_accuracy: Share
    iid_accuracy: Share
    learning_rate: float
    watched_accuracy: Share | dict[str, Share] | None = None  # by test, where there are several


class _Sample(_Part):
    """A recorded sample of attention; how far its weights reach in is left to what draws them."""

    test: str
    source: list[Any]
    target: list[Any]
    prediction: list[Any]
    weights: list[Any]


class _Trace(_Sample):
    weights: dict[str, list[Any]]
    slots: dict[str, list[Any]]


class _Probe(_Part):
    validation_loss: float


class _Cost(_Part):
    steps: int = Field(gt=0)
    training_seconds: Amount
    evaluation_seconds: Amount


class _Origin(_Part):
    created: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    device: str
    device_name: str
    torch: str


class _Provenance(_Origin):
    commit: str | None
    code: str
    margins: str
    claims: str | None = None  # old records lack it
    data: dict[str, Any]


class Line(_Part):
    """A record, of a run that ended well or of one that failed."""

    schema_version: int = Field(alias="schema", ge=1, le=1)
    key: str = Field(pattern="^[0-9a-f]{12}$")
    run_id: str = Field(pattern="^[0-9a-f]{16}$")
    experiment: str = Field(pattern=r"^\w+$")
    status: str = Field(pattern="^(ok|failed)$")
    spec: dict[str, Any]
    provenance: _Provenance
    error: str | None = Field(None, pattern=r"\S")
    checkpoints: Any = None
    parameters: int | None = Field(None, gt=0)
    curve: list[_Point] | None = Field(None, min_length=1)
    first_losses: list[float] | None = None
    probe: _Probe | None = None
    attention: _Sample | None = None
    traces: list[_Trace] = []
    cost: _Cost | None = None

    @field_validator("checkpoints")
    @classmethod
    def _have_the_metrics_of_their_task(cls, value: Any, info: ValidationInfo) -> BaseModel | None:
        known = registry.tasks()
        task = info.data.get("spec", {}).get("task")
        name = task.get("name") if isinstance(task, dict) else None
        if value is None or name not in known:  # which the spec is refused for
            return None
        return _checkpoints(known[name].metrics).model_validate(value)

    @model_validator(mode="after")
    def _is_a_run_with_its_outcome(self) -> "Line":
        spec = spec_of_key(self.spec, self.key)
        if self.status == "failed" and not self.error:
            raise ValueError("a run that failed needs its error")
        if self.status == "ok":
            if lost := OUTCOME - {name for name, value in self if value is not None}:
                raise ValueError(f"a run that is ok needs its {min(lost)}")
            if "attention" not in self.model_fields_set:
                raise ValueError("a run that is ok needs its attention, or null for none")
            tests = self.checkpoints.selected.tests
            if lost := [test for test in spec.task.tests if test not in tests]:
                raise ValueError(f"a run that is ok needs its test {lost[0]}")
        return self


class Measurement(_Part):
    """A line of what `relength bench` measured; each kind of measurement has numbers of its own."""

    provenance: _Origin
