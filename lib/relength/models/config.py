"""The base of all models' configurations."""

from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from relength.specs.kinds import CLASSES, Kind


class ModelConfig(BaseModel):
    """Sizes and reading of a model: frozen and checked. Every field enters the key of a run.

    A configuration imports no torch, so that recorded runs can be read without it; its module lies
    in another file.

    kind           of the batches that it takes
    enlarges       whether its memory can have more ``slots`` in a test than in training
    only_protocol  the one protocol of its runs; empty where any will do
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    kind: ClassVar[Kind] = CLASSES
    enlarges: ClassVar[bool] = False
    only_protocol: ClassVar[str] = ""

    @property
    def regularised(self) -> bool:
        """Tell whether its row of a paper adds a term on its controller's states to the loss."""
        return False

    def cannot(self, read: int, written: int) -> str:
        """Why it cannot read so many tokens and write so many, ends included; empty if it can."""
        return ""


class WithHeads(ModelConfig):
    """Sizes of a network whose vectors are cut into as many equal parts as attention has heads."""

    width: int = Field(gt=0)
    heads: int = Field(gt=0)

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of the {self.heads} heads")
        return self
