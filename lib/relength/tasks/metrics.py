"""Metrics of a trained model on one test: each is one field of a class, and known everywhere by it.

Records, tables, claims and pages find names, units and words in the class of a task's metrics. This
file has what all metrics share, the metrics of decoded tokens, and the scores of single samples
while training. Other metrics stand in the file of their task, which computes them.
"""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

if TYPE_CHECKING:
    from torch import Tensor

    from relength.tasks.batch import Sequences

PARTS = 10  # of a target, in which first errors are counted


class Metric(NamedTuple):
    """The facts that pages and verdicts know of a metric.

    words            its name in tables
    share            whether it is from 0 to 1, and shown in percent
    unit             of a shown number; "" for none
    lower_is_better  whether less of it is better
    margin           what it is judged by, of :data:`relength.specs.margins.Measure`; None: by
                     nothing, so that no number of it counts as the printed one or as another
    whole            whether each output is right or wrong as a whole
    beside           its heading in tables of another metric; "" keeps it to the downloads
    about            what it is, for captions; "" where its name says it
    """

    words: str
    share: bool
    unit: str
    lower_is_better: bool
    margin: str | None
    whole: bool = False
    beside: str = ""
    about: str = ""

    def shown(self, value: float | None) -> float:
        """A recorded number as it is shown: a share in percent; NaN if a model does not have it."""
        if value is None:
            return float("nan")
        return 100 * value if self.share else value

    @property
    def in_unit(self) -> str:
        """Its name and unit: *exact match in percent*."""
        return f"{self.words} in {self.unit}" if self.unit else self.words

    @property
    def change(self) -> str:
        """The unit of a difference."""
        return "points" if self.share else self.unit

    def sized(self, value: float) -> str:
        """A shown number with its unit: *95 %*."""
        return f"{value:g} {'%' if self.share else self.unit}".rstrip()


def share(words: str, default: Any = ..., **known: Any) -> Any:
    """A metric from 0 to 1: shown in percent, judged by the margin for accuracies.

    words    its name in tables
    default  None for a metric that only some models have
    known    further fields of :class:`Metric`
    """
    metric = percentage(words, **known)._asdict()
    return Field(default, ge=0, le=1, json_schema_extra={"metric": metric})


def amount(
    words: str,
    unit: str = "",
    margin: str | None = None,
    **known: Any,
) -> Any:
    """A metric from 0 upwards, shown as it is: of an error, less is better.

    words  its name in tables
    known  further fields of :class:`Metric`
    """
    metric = Metric(words, False, unit, True, margin, **known)
    return Field(ge=0, json_schema_extra={"metric": metric._asdict()})


def percentage(words: str, **known: Any) -> Metric:
    """The facts about a share."""
    return Metric(words, True, "percent", False, "accuracy", **known)


class Metrics(BaseModel):
    """A checkpoint on one test set. Each kind of task has a subclass with its metrics.

    items  samples
    """

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    items: int = Field(gt=0)

    @classmethod
    def known(cls) -> dict[str, Metric]:
        """{name: what is known of it} of the metrics that are one number."""
        return {
            name: Metric(**field.json_schema_extra["metric"])
            for name, field in cls.model_fields.items()
            if field.json_schema_extra
        }

    @classmethod
    def shares(cls) -> tuple[str, ...]:
        """The metrics from 0 to 1."""
        return tuple(name for name, metric in cls.known().items() if metric.share)

    @classmethod
    def amounts(cls) -> tuple[str, ...]:
        """The others that are one number."""
        return tuple(name for name, metric in cls.known().items() if not metric.share)


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

    exact_match: float = share(
        "exact match", whole=True, about="share of outputs that are right to the last symbol"
    )
    exact_match_true_length: float = share(
        "exact match at true length",
        whole=True,
        beside="true length",
        about="exact match if decoding stops at the right place",
    )
    token_accuracy: float = share("token accuracy", about="share of tokens that are right")
    correct_prefix: float = share("right before first error")
    edit_distance: float = amount(
        "edit distance", "symbols", margin="edit_distance", beside="edit distance"
    )
    first_errors: list[Annotated[int, Field(ge=0)]] | None = Field(
        None, min_length=PARTS, max_length=PARTS
    )

    @model_validator(mode="after")
    def _each_wrong_output_has_a_first_error(self) -> "TokenMetrics":
        wrong = round(self.items * (1 - self.exact_match))
        if self.first_errors is not None and sum(self.first_errors) != wrong:
            raise ValueError(f"{wrong} outputs are wrong, and first_errors counts another number")
        return self


def token_metrics(answers: "list[tuple[Sequences, Tensor]]", end: int | None) -> TokenMetrics:
    """Metrics of decoded tokens (B, steps) against the targets of their batches.

    end  the task's end token; None where the length of a target is given
    """
    import torch
    from rapidfuzz.distance import Levenshtein

    items = exact = true_length = 0
    right_tokens = all_tokens = edits = 0
    prefix, parts = 0.0, torch.zeros(PARTS, dtype=torch.long)
    for batch, tokens in answers:
        items += len(batch)
        width = batch.targets.shape[1]
        right = (tokens[:, :width] == batch.targets) & batch.mask
        exact += int((right | ~batch.mask).all(1).sum())
        body = batch.mask if end is None else batch.mask & (batch.targets != end)
        true_length += int((right | ~body).all(1).sum())
        right_tokens += int(right.sum())
        all_tokens += int(batch.mask.sum())
        before = (right | ~batch.mask).int().cumprod(1).mul(batch.mask).sum(1)  # the first error
        prefix += float((before / batch.target_lengths).sum())
        wrong = before < batch.target_lengths
        place = PARTS * before[wrong] // batch.target_lengths[wrong]
        parts += place.bincount(minlength=PARTS)
        for given, wanted, n in zip(
            tokens.tolist(), batch.targets.tolist(), batch.target_lengths.tolist(), strict=True
        ):
            given = given[: given.index(end)] if end in given else given
            edits += Levenshtein.distance(given, wanted[:n] if end is None else wanted[: n - 1])
    return TokenMetrics(
        items=items,
        exact_match=exact / items,
        exact_match_true_length=true_length / items,
        token_accuracy=right_tokens / all_tokens,
        correct_prefix=prefix / items,
        edit_distance=edits / items,
        first_errors=parts.tolist(),
    )


# --- of single samples, while training -----------------------------------------------------------


def exactly_right(scores: "Tensor", batch: "Sequences") -> "Tensor":
    """Samples (B,) whose every token has the highest of the scores (B, T, classes)."""
    return (_right(scores, batch) | ~batch.mask).all(1)


def tokens_right(scores: "Tensor", batch: "Sequences") -> "Tensor":
    """Share (B,) of each sample's tokens that have the highest of the scores (B, T, classes)."""
    return _right(scores, batch).sum(1).double() / batch.mask.sum(1)


def _right(scores: "Tensor", batch: "Sequences") -> "Tensor":
    return (scores.argmax(2) == batch.targets) & batch.mask
