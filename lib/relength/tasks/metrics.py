"""Metrics of a trained model on one test: each is one field here, and known everywhere by it.

Records, tables, claims and pages find names, units and words in the model of a task's metrics.
"""

from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

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


class DigitMetrics(Metrics):
    """Numbers that are rounded to numerals.

    digit_accuracy  mean share of a result's numbers that round to the wanted numeral
    squared_error   mean over outputs and steps, as the loss is
    """

    digit_accuracy: float = share(
        "accuracy after rounding", about="share of numbers that round to the wanted numeral"
    )
    squared_error: float = amount("squared error")


class HitMetrics(Metrics):
    """Places found in a sequence.

    hit_rate       mean share of the wanted places that are among the written ones
    squared_error  mean over outputs and steps, as the loss is
    """

    hit_rate: float = share("hit rate", about="share of wanted places that are found")
    squared_error: float = amount("squared error")


class TruthMetrics(Metrics):
    """Statements that are true or false.

    truth_accuracy  share of them that is judged right
    """

    truth_accuracy: float = share(
        "accuracy of truth values", about="share of formulas whose truth value is right"
    )


class SetMetrics(Metrics):
    """Sets of symbols, one after each prefix of a sequence.

    sequence_accuracy  share of sequences of which every set is right
    set_accuracy       share of all sets that are right
    correct_prefix     mean share of a sequence that is right before the first wrong set
    squared_error      mean over symbols and prefixes, as the loss is
    """

    sequence_accuracy: float = share(
        "sequence accuracy", whole=True, about="share of strings of which every set is right"
    )
    set_accuracy: float = share(
        "set accuracy", beside="sets right", about="share of prefixes whose set is right"
    )
    correct_prefix: float = share(
        "right before first error",
        beside="before the first error",
        about="share of a string before the first wrong set",
    )
    squared_error: float = amount("squared error")


class AnswerMetrics(Metrics):
    """Answers to questions about facts.

    answer_accuracy   share of answers that name the wanted thing and no other
    facts_found       share of samples in which every read finds the fact that it should; None for a
                      model that does not tell what it reads
    answer_and_facts  share in which both are right
    diverged          share whose memory could not be computed, and which have no answer
    """

    answer_accuracy: float = share(
        "answer accuracy", whole=True, about="share of answers that name the right thing alone"
    )
    facts_found: float | None = share(
        "facts found",
        default=None,
        whole=True,
        beside="facts found",
        about="share of questions whose facts are all read",
    )
    answer_and_facts: float | None = share("answer and facts", default=None, whole=True)
    diverged: float | None = share("memory diverged", default=None)


class ChoiceMetrics(Metrics):
    """One symbol that is chosen as an answer.

    exact_match  share of answers that are right
    perplexity   e to the power of the mean -log p of the right answers: among so many symbols, each
                 as likely as the others, a model could choose as well
    """

    exact_match: float = share(
        "exact match", whole=True, about="share of outputs that are right to the last symbol"
    )
    perplexity: float = amount("perplexity", margin="length", beside="perplexity")


class NextTokenMetrics(Metrics):
    """Tokens of a text, each after the right ones before it.

    next_token  share of tokens that have the highest score
    perplexity  e to the power of the mean -log p of the right tokens
    """

    next_token: float = share(
        "next-token accuracy",
        beside="next token",
        about="share of tokens that have the highest score",
    )
    perplexity: float = amount("perplexity", margin="length", beside="perplexity")


class TextMetrics(TokenMetrics):
    """Texts that are written, of which tokens are a part.

    bleu  of all texts together, with n-grams of up to four words, or of as many as there are
    """

    bleu: float = share("BLEU", about="overlap with the wanted text, by BLEU")


class SpanMetrics(Metrics):
    """Answers that are a part of a text, by SQuAD's own rules.

    f1           mean overlap of an answer's words with those of a right one
    exact_match  share of answers that are a right one, but for case, articles and punctuation
    """

    f1: float = share("F1", about="overlap of an answer's words with a right one's")
    exact_match: float = share("exact match", whole=True, beside="exact match")
