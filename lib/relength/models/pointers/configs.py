"""Sizes and arms of PANM."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from relength.models.config import ModelConfig
from relength.specs.fields import added

# What the arms have in common with the text, or with the code.
TEXT = {"bits": 10, "hidden_size": 256, "base_in_tests": "zero", "dropout": 0.0}
CODE = {"bits": 8, "hidden_size": 128, "base_in_tests": "random", "dropout": 0.5}
CODE |= {"temperature": 1.0}
ARMS = {
    "paper": TEXT | {"temperature": 1.0},
    "repaired": TEXT | {"temperature": 0.1},
    "fixed-base": TEXT | {"temperature": 0.1, "base_in_training": "zero"},
    "released": CODE,
    "mended": CODE,
    "contentless": CODE | {"content": False},
    "one-way": CODE | {"both_ways": False},
    "undropped": CODE | {"dropout": 0.0},
    "ten-bit": CODE | {"bits": TEXT["bits"]},
    "wide": CODE | {"hidden_size": TEXT["hidden_size"]},
}
OF_THE_TEXT = ("paper", "repaired", "fixed-base")


HEADS = ("n_mode1", "n_mode2")


class PANMConfig(ModelConfig):
    """Reading and sizes of a PANM.

    paper        the text's equations as printed
    repaired     the same with a temperature below 1, so that its softmaxes can point sharply
    fixed-base   repaired, but the base address is never drawn, neither in training nor in tests
    released     the authors' code

    and the code with one thing as the text has it:

    mended       pointers are read from their own sample's addresses
    contentless  the controller does not attend to the memory by content
    one-way      the encoder reads from the beginning only
    undropped    no dropout
    ten-bit      10 bits
    wide         256 units
    """

    name: Literal["PANM"] = "PANM"
    arm: Literal[tuple(ARMS)] = "released"
    n_mode1: int = Field(2, ge=0, le=3, description="H^a")
    n_mode2: int = Field(1, ge=0, description="H^c")
    single_from: Literal["base", "end"] = added(
        "base", before="base", description="where a Mode-1 pointer begins that is the only one"
    )
    bits: int = Field(gt=0, le=30, description="of an address: 10 in the text, 8 in the code")
    hidden_size: int = Field(gt=0, description="of all recurrent states: 256; 128 in the code")
    mlp_size: int = Field(128, gt=0, description="hidden layer of the text's MLPs")
    temperature: float = Field(gt=0, description="of the text's softmaxes; the text has none, 1")
    dropout: float = Field(
        ge=0, lt=1, description="share of Mode-2 weights set to zero in the code"
    )
    content: bool = added(
        True, before=True, description="whether the code's controller attends by content"
    )
    both_ways: bool = added(
        True, before=True, description="whether the code's encoder reads from the end, too"
    )
    base_in_tests: Literal["zero", "random"] = Field(
        description="base address in tests: the text says that it can be 0, the code leaves it as "
        "random as in training"
    )
    base_in_training: Literal["zero", "random"] = added(
        "random", before="random", description="base address in training (Section 2.2: random)"
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_arm(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and isinstance(arm := fields.get("arm", "released"), str):
            return ARMS.get(arm, {}) | fields
        return fields

    @model_validator(mode="after")
    def _possible(self) -> "PANMConfig":
        if self.n_mode2 and not self.n_mode1:
            raise ValueError(
                "Mode-2 pointers ask with Mode-1 values: n_mode2 needs an n_mode1 above 0"
            )
        if self.temperature != 1 and self.arm not in ("repaired", "fixed-base"):
            raise ValueError(
                f"arm {self.arm} has no temperature, only repaired and fixed-base have one"
            )
        if (self.base_in_training == "zero") != (self.arm == "fixed-base"):
            raise ValueError("the arm fixed-base and no other trains with base_in_training zero")
        if self.arm == "fixed-base" and self.base_in_tests != "zero":
            raise ValueError("the arm fixed-base draws no base in tests either: choose repaired")
        if self.dropout and self.of_the_text:
            raise ValueError(f"arm {self.arm} has no dropout, only the code's arms have it")
        if self.single_from != "base" and self.n_mode1 != 1:
            raise ValueError("single_from is of a pointer that is the only one: n_mode1 of 1")
        for name, arm in (("content", "contentless"), ("both_ways", "one-way")):
            if getattr(self, name) == (self.arm == arm):
                way = "leave the field out" if self.arm == arm else "choose that arm instead"
                raise ValueError(f"the arm {arm} and no other is without {name}: {way}")
        return self

    @classmethod
    def row(cls, fields: Mapping[str, Any]) -> str:
        """Return the model's name in tables: with the numbers of its pointers where they are
        others.
        """
        heads = tuple(fields.get(name, cls.model_fields[name].default) for name in HEADS)
        usual = tuple(cls.model_fields[name].default for name in HEADS)
        row = "PANM" if heads == usual else "PANM {}+{}".format(*heads)
        return f"{row} from the end" if fields.get("single_from") == "end" else row

    @property
    def of_the_text(self) -> bool:
        """True when the arm follows the paper's text, rather than the authors' code."""
        return self.arm in OF_THE_TEXT
