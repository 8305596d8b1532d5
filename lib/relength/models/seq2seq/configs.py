"""Sizes and arms of the models of Monotonic Location Attention."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from relength.models.config import ModelConfig
from relength.models.seq2seq.attentions import ATTENTIONS, arms_of, mixes
from relength.specs.fields import added
from relength.specs.kinds import TOKENS, Kind
from relength.specs.spec import ARMS


class Seq2SeqConfig(ModelConfig):
    """Sizes and arm of a model. Defaults are the paper's (Appendix E.2) and the released code's."""

    kind: ClassVar[Kind] = TOKENS

    name: Literal[tuple(ATTENTIONS)]
    arm: Literal[ARMS] = "released"
    embedding_size: int = Field(64, gt=0)
    hidden_size: int = Field(128, gt=0, multiple_of=2, description="d; half per encoder direction")
    layers: int = added(1, before=1, gt=0, description="of GRUs in the encoder and in the decoder")
    inner_size: int | None = added(
        None, before=None, gt=0, description="of the map that values pass first; none: hidden_size"
    )
    dropout: float = Field(0.5, ge=0, lt=1, description="share of encoding elements set to zero")
    min_sigma: float = Field(0.27, gt=0, description="least width of the focus; not in the paper")
    gate_start: float = Field(
        description="first value of MonoAttn's p: 20 in the released code, where the gate never "
        "moves; the paper gives none, and 0 starts it half open, where it can learn",
    )
    mix_start: Literal["default", "xavier"] = added(
        "default",
        before="default",
        description="first weights of the map that weighs content and location: as PyTorch draws "
        "them, or Xavier uniform, as in the released code; the latter for all that mix",
    )

    @model_validator(mode="before")
    @classmethod
    def _starts_of_model_and_arm(cls, fields: Any) -> Any:
        if isinstance(fields, dict):
            if fields.get("name") in ATTENTIONS:
                fields = {"arm": arms_of(fields["name"])[0]} | fields
                if mixes(fields["name"]):
                    fields = {"mix_start": "xavier"} | fields
            return {"gate_start": 20.0 if fields.get("arm") == "released" else 0.0} | fields
        return fields

    @model_validator(mode="after")
    def _arm_exists(self) -> "Seq2SeqConfig":
        arms = arms_of(self.name)
        if self.arm not in arms:
            there = (
                f"only the arm {arms[0]}" if len(arms) == 1 else f"the arms {' and '.join(arms)}"
            )
            raise ValueError(f"{self.name} has {there}, not {self.arm}")
        if self.mix_start != "default" and not mixes(self.name):
            raise ValueError(f"{self.name} mixes nothing, so its mix_start is default")
        return self

    @staticmethod
    def row(model: Mapping[str, Any]) -> str:
        """Name the model as tables do: in Table 4 by what OneStepAttn is without."""
        return model["name"].removeprefix("OneStepAttn ")
