"""Sizes and arms of the models that find a span in a text."""

from typing import ClassVar, Literal

from pydantic import Field

from relength.models.config import WithHeads
from relength.models.pointers.plugin_configs import PlugInConfig
from relength.specs.kinds import SPANS, Kind


class BertConfig(WithHeads):
    """BERT, pretrained (``weights``; all of it is trained on) or from scratch with these sizes."""

    kind: ClassVar[Kind] = SPANS

    name: Literal["BERT"] = "BERT"
    arm: Literal["paper"] = "paper"
    weights: str = Field("", description="pretrained model, by its name or folder; empty for none")
    width: int = Field(64, gt=0, description="d, of a token's vector")
    heads: int = Field(4, gt=0)
    inner_size: int = Field(128, gt=0, description="hidden units of a layer's feed-forward part")
    layers: int = Field(2, gt=0)
    positions: int = Field(512, gt=0, description="tokens that are read, at most")

    def cannot(self, read: int, written: int) -> str:
        if read <= self.positions:
            return ""
        return (
            f"a text of {read:,} tokens does not fit into {self.positions:,} positions, so lower "
            "the task's positions"
        )


class BertPANMConfig(PlugInConfig, BertConfig):
    """BERT with PANM's controller in place of the layer that scores places.

    How a controller predicts a place is not said (Section 3.4, Appendix D.4). Here it takes two
    steps, one for the first token and one for the last; what it writes is compared with the vector
    of every place, by a dot product.
    """

    name: Literal["PANM on BERT"] = "PANM on BERT"
    n_mode1: int = Field(2, ge=1, le=3, description="H^a")
