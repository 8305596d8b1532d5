"""Sizes and arms of the models with a memory."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from relength.models.config import ModelConfig
from relength.specs.kinds import CHANNELS, Kind


class NTMConfig(ModelConfig):
    """Sizes.

    The text of PANM says 256 hidden units and 1.2 million parameters; only the released 512 give
    that many. The arms differ in this number alone.
    """

    name: Literal["NTM"] = "NTM"
    arm: Literal["released", "paper"] = "released"
    hidden_size: int = Field(
        default_factory=lambda fields: 256 if fields.get("arm") == "paper" else 512,
        gt=0,
        description="units of the controller: 512 released, 256 in the paper's text",
    )
    slots: int = Field(128, gt=1, description="N, rows of the memory")
    width: int = Field(32, gt=0, description="W, numbers per row; released, not in the paper")


class DNCConfig(ModelConfig):
    """Sizes and arm.

    The text of PANM says 256 hidden units and 1.2 million parameters; only the released 512 give
    that many.

    paper      the equations, with 256 units
    released   what the authors' public code computes; it differs from the equations in five places:

    * read vectors are not fed back step by step: the controller gets zeros instead while it reads,
      and, while it answers, always those of the last step of reading;
    * read modes are normalised over the read heads instead of over the three modes, so that with
      one head each mode has weight 1;
    * cosine similarities are divided by the width of a word;
    * strengths are softplus instead of oneplus;
    * keys and write vectors pass a tanh.

    Its read weightings need not sum to 1 or less, and feed on one another along the links: they can
    grow from step to step until, on inputs longer than those of training, they are no numbers.
    """

    name: Literal["DNC"] = "DNC"
    arm: Literal["released", "paper"] = "released"
    hidden_size: int = Field(
        default_factory=lambda fields: 256 if fields.get("arm") == "paper" else 512,
        gt=0,
        description="units of the controller: 512 released, 256 in the paper's text",
    )
    slots: int = Field(128, gt=0, description="N, rows of the memory")
    width: int = Field(32, gt=0, description="W, numbers per row; released, not in the paper")
    read_heads: int = Field(1, gt=0, description="R; released, not in the paper")


CONSTRAINTS = {"compression": "COMPR", "regularisation": "REG", "both": "COMPR&REG"}


class ConstrainedDNCConfig(ModelConfig):
    """Controller and constraint, which make a row of the paper's tables, and sizes.

    lstm, ffnn   without a constraint: STATEFUL-BASELINE and STATELESS-BASELINE
    peephole     with compression, regularisation or both: COMPR, REG and COMPR&REG

    The other pairs are the arms of Figure 5; a feed-forward controller has no state to constrain.
    Regularisation is a term of the loss, which the paper's protocol adds.

    The authors' code could not be obtained, so there is no arm ``released``. What the text leaves
    open is google-deepmind/dnc's, which they say they extended, or the plain reading: word width
    and clips are its defaults; LeCun weights are normal with variance 1 / inputs, Glorot weights
    uniform, biases 0, and no 1 is added to the forget gate.
    """

    kind: ClassVar[Kind] = CHANNELS
    enlarges: ClassVar[bool] = True

    name: Literal["Constrained DNC"] = "Constrained DNC"
    arm: Literal["paper"] = "paper"
    controller: Literal["lstm", "peephole", "ffnn"] = "peephole"
    constraint: Literal["none", "compression", "regularisation", "both"] = "compression"
    hidden_size: int = Field(128, gt=0, description="H, units of the controller, of each layer")
    slots: int = Field(50, gt=0, description="N, rows of the memory")
    width: int = Field(16, gt=0, description="W, numbers per row; not in the paper")
    read_heads: int = Field(4, gt=0, description="R")
    clip: float = Field(
        20.0,
        ge=1,
        description="bound of the controller's output and cells and of the DNC's output; not in "
        "the paper",
    )

    @model_validator(mode="after")
    def _has_states(self) -> "ConstrainedDNCConfig":
        if self.controller == "ffnn" and self.constraint != "none":
            raise ValueError(
                "the controller ffnn has no states to constrain: choose the constraint none, or "
                "the controller peephole"
            )
        return self

    @property
    def regularised(self) -> bool:
        return self.constraint in ("regularisation", "both")

    @staticmethod
    def row(model: Mapping[str, Any]) -> str:
        """Name the model as the paper's tables and Figure 5 do."""
        constraint = CONSTRAINTS.get(model["constraint"])
        match model["controller"]:
            case "ffnn":
                return "STATELESS-BASELINE"
            case "lstm":
                return f"van. LSTM + {constraint}" if constraint else "STATEFUL-BASELINE"
        return constraint or "Peephole LSTM"


class NeuralStackConfig(ModelConfig):
    """Sizes. PANM's text says only that there are about 1.1 million parameters, as with these."""

    name: Literal["Neural Stack"] = "Neural Stack"
    arm: Literal["paper"] = "paper"
    hidden_size: int = Field(
        352, gt=0, description="units of the LSTM controller, not in the paper"
    )
    value_size: int = Field(256, gt=0, description="m, numbers per item, not in the paper")


class NRAMConfig(ModelConfig):
    """Sizes. PANM's text says only that there are about 1.1 million parameters, as with these."""

    name: Literal["NRAM"] = "NRAM"
    arm: Literal["paper"] = "paper"
    hidden_size: int = Field(
        448, gt=0, description="units of the LSTM controller, not in the paper"
    )
    registers: int = Field(8, gt=0, description="R, not in the paper")
    cells: int = Field(128, gt=2, description="M, cells and integers, not in the paper")


class ESBNConfig(ModelConfig):
    """Sizes, the defaults of the ESBN authors' code, which PANM's text says were used."""

    name: Literal["ESBN"] = "ESBN"
    arm: Literal["paper"] = "paper"
    hidden_size: int = Field(512, gt=0, description="units of the LSTM controller")
    key_size: int = Field(256, gt=0)
    value_size: int = Field(128, gt=0, description="size of z")
    inner_size: int = Field(256, gt=0, description="first layer of the encoder")


class SRNNConfig(ModelConfig):
    """Sizes, the defaults of its authors' code, which PANM's text says were used."""

    kind: ClassVar[Kind] = CHANNELS

    name: Literal["SRNN"] = "SRNN"
    arm: Literal["paper"] = "paper"
    hidden_size: int = Field(8, gt=0, description="H")
    slots: int = Field(104, gt=0, description="N, rows of the stack")
    width: int = Field(5, gt=0, description="m, numbers per row")
