"""The base of all models' configurations."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from relength.specs.kinds import CLASSES, Kind


class ModelConfig(BaseModel):
    """Sizes and reading of a model: frozen and checked. Every field enters the key of a run.

    A configuration imports no torch, so that recorded runs can be read without it; its module lies
    in another file.

    kind      of the batches that it takes
    enlarges  whether its memory can have more ``slots`` in a test than in training
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    kind: ClassVar[Kind] = CLASSES
    enlarges: ClassVar[bool] = False

    @property
    def regularised(self) -> bool:
        """Tell whether its row of a paper adds a term on its controller's states to the loss."""
        return False

    def cannot(self, read: int, written: int) -> str:
        """Why it cannot read so many tokens and write so many, ends included; empty if it can."""
        return ""
