"""Define what a line of the store must hold, so that whatever reads records finds what it reads.

The rest of a record is free to grow.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from relength.specs.spec import spec_of_key
from relength.training.recorded import PARTS

# What a run that ended well has, and one that failed has not.
OUTCOME = {"checkpoints", "parameters", "curve", "first_losses", "probe", "cost"}

Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class _Metrics(_Part):
    items: int = Field(gt=0)
    exact_match: Share
    exact_match_true_length: Share
    token_accuracy: Share
    correct_prefix: Share
    edit_distance: Amount
    # What records made before this was counted do not have.
    first_errors: list[Annotated[int, Field(ge=0)]] | None = Field(
        None, min_length=PARTS, max_length=PARTS
    )

    @model_validator(mode="after")
    def _each_wrong_output_has_a_first_error(self) -> "_Metrics":
        wrong = round(self.items * (1 - self.exact_match))
        if self.first_errors is not None and sum(self.first_errors) != wrong:
            raise ValueError(f"{wrong} outputs are wrong, and first_errors counts another number")
        return self


class _Checkpoint(_Part):
    epoch: int = Field(ge=0)
    tests: dict[str, _Metrics]


class _Checkpoints(_Part):
    """The selected one, which tables show, and any number of others."""

    __pydantic_extra__: dict[str, _Checkpoint]

    selected: _Checkpoint


class _Point(_Part):
    """A point of the learning curve."""

    epoch: int = Field(ge=0)
    train_loss: float
    dev_accuracy: Share
    iid_accuracy: Share
    learning_rate: float
    watched_accuracy: Share | None = None


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
    checkpoints: _Checkpoints | None = None
    parameters: int | None = Field(None, gt=0)
    curve: list[_Point] | None = Field(None, min_length=1)
    first_losses: list[float] | None = None
    probe: _Probe | None = None
    attention: _Sample | None = None
    traces: list[_Trace] = []
    cost: _Cost | None = None

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
