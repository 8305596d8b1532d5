"""Metrics of a trained model on one test: each is one field here, and known everywhere by it.

Records, tables, claims and pages find names, units and words in the model of a task's metrics.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

PARTS = 10  # of a target, in which first errors are counted


def share(words: str, **more: Any) -> Any:
    """A metric from 0 to 1: shown in percent, judged by the margin for accuracies.

    words  its name in tables
    """
    return Field(
        ge=0, le=1, title=words, json_schema_extra={"share": True, "margin": "accuracy"}, **more
    )


def amount(words: str, margin: str | None = None, **more: Any) -> Any:
    """A metric from 0 upwards, shown as it is.

    margin  what it is judged by, of :data:`relength.specs.margins.Measure`; None where claims say
    """
    return Field(ge=0, title=words, json_schema_extra={"share": False, "margin": margin}, **more)


class Metrics(BaseModel):
    """A checkpoint on one test set. Each kind of task has a subclass with its metrics.

    items  samples
    """

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    items: int = Field(gt=0)

    @classmethod
    def shares(cls) -> tuple[str, ...]:
        """The metrics from 0 to 1."""
        return tuple(name for name, field in _metrics(cls) if _is_share(field))

    @classmethod
    def amounts(cls) -> tuple[str, ...]:
        """The others that are one number."""
        return tuple(name for name, field in _metrics(cls) if not _is_share(field))

    @classmethod
    def margins(cls) -> dict[str, str | None]:
        """{metric: what it is judged by}."""
        return {name: field.json_schema_extra["margin"] for name, field in _metrics(cls)}

    @classmethod
    def words(cls) -> dict[str, str]:
        """{metric: its name in tables}."""
        return {name: field.title for name, field in _metrics(cls)}


def _metrics(kind: type[Metrics]) -> list[tuple[str, Any]]:
    return [(n, f) for n, f in kind.model_fields.items() if f.json_schema_extra]


def _is_share(field: Any) -> bool:
    return field.json_schema_extra["share"]


class TokenMetrics(Metrics):
    """Greedy decoding from the model's own tokens. Where the length of a target is given there is
    no end token to count or to stop at.

    exact_match              share of outputs equal to the target, end token included
    exact_match_true_length  the same when decoding is stopped at the target's true length
    token_accuracy           share of target tokens (end included) that are right at their place
    correct_prefix           mean share of a target that is right before the first error
    edit_distance            mean Levenshtein distance of output and target, both without end token
    first_errors             outputs that are wrong, by the tenth of the target with the first
                             error; None in records from before this was counted
    """

    exact_match: float = share("exact match", description="outputs right to the last symbol")
    exact_match_true_length: float = share("exact match at true length")
    token_accuracy: float = share("token accuracy", description="tokens right")
    correct_prefix: float = share("right before first error")
    edit_distance: float = amount("edit distance", margin="edit_distance")
    first_errors: list[Annotated[int, Field(ge=0)]] | None = Field(
        None, min_length=PARTS, max_length=PARTS
    )

    @model_validator(mode="after")
    def _each_wrong_output_has_a_first_error(self) -> "TokenMetrics":
        wrong = round(self.items * (1 - self.exact_match))
        if self.first_errors is not None and sum(self.first_errors) != wrong:
            raise ValueError(f"{wrong} outputs are wrong, and first_errors counts another number")
        return self
