"""PANM on the algorithmic tasks (Section 3.1, Appendix D.1): its encoders, its arms, its sizes."""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from relength.kernels import fused as fast
from relength.models.free_running import FreeRunning
from relength.models.pointers.attention import evaluation_key, quick
from relength.models.pointers.panm import PANM
from relength.models.pointers.panm_released import ReleasedPANM
from relength.models.recurrence import GRU, LSTM
from relength.specs.fields import added
from relength.streams import fork

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


class PANMConfig(BaseModel):
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

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

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
        """How tables name such a model: with the numbers of its pointers where they are others."""
        heads = tuple(fields.get(name, cls.model_fields[name].default) for name in HEADS)
        usual = tuple(cls.model_fields[name].default for name in HEADS)
        row = "PANM" if heads == usual else "PANM {}+{}".format(*heads)
        return f"{row} from the end" if fields.get("single_from") == "end" else row

    @property
    def of_the_text(self) -> bool:
        """Whether the arm follows the paper's text, rather than the authors' code."""
        return self.arm in OF_THE_TEXT


class LSTMEncoder(nn.Module):
    """The text's encoder: the states of an LSTM are the memory."""

    fused = True

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.lstm = LSTM(input_size, hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        cell = self.lstm
        if quick(self, x):
            weights = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
            nothing = x.new_zeros(1, len(x), cell.hidden_size)
            # What torch.nn.LSTM calls: biases, 1 layer, no dropout, training, one way, batch first.
            return torch.lstm(x, (nothing, nothing), weights, True, 1, 0.0, True, False, True)[0]
        return cell.scan(F.linear(x, cell.weight_ih, cell.bias_ih))[0]


class SummedBiGRU(nn.Module):
    """The code's encoder: both directions of a GRU, added, and the forward one's last state."""

    fused = True

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.forwards, self.backwards = GRU(input_size, hidden_size), GRU(input_size, hidden_size)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        grus = (self.forwards, self.backwards)
        gates = [
            F.linear(sequence, gru.weight_ih, gru.bias_ih)
            for gru, sequence in zip(grus, (x, x.flip(1)), strict=True)
        ]
        if quick(self, x):
            together = torch.stack([x_gates.transpose(0, 1) for x_gates in gates], dim=1)
            weights, biases = (
                torch.stack([getattr(gru, name) for gru in grus])
                for name in ("weight_hh", "bias_hh")
            )
            left, right = fast.scan(together, weights, biases).transpose(0, 2).unbind(1)
        else:
            left, right = (gru.scan(x_gates) for gru, x_gates in zip(grus, gates, strict=True))
        return left + right.flip(1), left[:, -1]


class ForwardGRU(nn.Module):
    """The code's encoder without its backward direction: all states of a GRU, and the last."""

    fused = True

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.forwards = GRU(input_size, hidden_size)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        gru = self.forwards
        scan = gru.fast_scan if quick(self, x) else gru.scan
        states = scan(F.linear(x, gru.weight_ih, gru.bias_ih), x.new_zeros(len(x), gru.hidden_size))
        return states, states[:, -1]


class AlgorithmicPANM(FreeRunning):
    """PANM between one encoder and no decoder: the input of its controller is zero (z_t = 0)."""

    def __init__(self, config: PANMConfig, input_size: int, classes: int):
        super().__init__()
        self.config, d = config, config.hidden_size
        sizes = {
            "n_mode1": config.n_mode1,
            "n_mode2": config.n_mode2,
            "single_from": config.single_from,
            "bits": config.bits,
            "memory_size": d,
            "classes": classes,
        }
        if config.of_the_text:
            self.panm = PANM(
                LSTMEncoder(input_size, d),
                **sizes,
                hidden_size=d,
                mlp_size=config.mlp_size,
                temperature=config.temperature,
            )
        else:
            encoder = SummedBiGRU if config.both_ways else ForwardGRU
            self.panm = ReleasedPANM(
                encoder(input_size, d),
                **sizes,
                dropout=config.dropout,
                mended=config.arm == "mended",
                content=config.content,
            )

    @property
    def fused(self) -> bool:
        return self.panm.controller.fused

    @fused.setter
    def fused(self, value: bool) -> None:
        for module in self.panm.modules():
            if hasattr(module, "fused"):
                module.fused = value

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        within = None if key is None else fork(key, 1)
        return self.panm(inputs, steps, self.base(inputs, key), key=within)

    def base(self, inputs: Tensor, key: Tensor | None) -> Tensor:
        """Base addresses (B,), or one for all (1,): of a training step, without key of tests."""
        bank, count, code = self.panm.bank, len(inputs), not self.config.of_the_text
        config = self.config
        if (config.base_in_tests if key is None else config.base_in_training) == "zero":
            # The released read-back goes by the size of the batch.
            return torch.zeros(count if code else 1, dtype=torch.int64, device=inputs.device)
        key = evaluation_key(inputs.device) if key is None else fork(key, 0)
        return bank.random_base(count, key, bank.size + 1 if code else None)

    def trace(self, inputs: Tensor, steps: int) -> dict[str, Tensor]:
        """Where the pointers point: by where a Mode-1 pointer began, and by number for Mode 2."""
        base = self.base(inputs, None).expand(len(inputs))
        reading, _ = self.panm.read(inputs, steps, base)
        mode1 = {
            f"mode 1, pointer {i} from the {start}": weights
            for i, (start, weights) in enumerate(
                zip(self.panm.starts, reading.mode1_weights, strict=True), start=1
            )
        }
        mode2 = {
            f"mode 2, pointer {i}": weights
            for i, weights in enumerate(reading.mode2_weights, start=1)
        }
        return mode1 | mode2
