"""PANM on the algorithmic tasks (Section 3.1, Appendix D.1): its encoders, its arms, its sizes."""

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.kernels import fused as fast
from relength.kernels.hashing import fork
from relength.models.free_running import FreeRunning
from relength.models.pointers.attention import evaluation_key, quick
from relength.models.pointers.configs import PANMConfig
from relength.models.pointers.panm import PANM
from relength.models.pointers.panm_released import ReleasedPANM
from relength.models.recurrence import GRU, LSTM


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


class OnPANM(FreeRunning):
    """A model that is a PANM, ``panm``, with an encoder and perhaps a decoder of its own."""

    panm: PANM

    @property
    def fused(self) -> bool:
        return self.panm.controller.fused

    @fused.setter
    def fused(self, value: bool) -> None:
        for module in self.panm.modules():
            if hasattr(module, "fused"):
                module.fused = value

    @property
    def starts(self) -> tuple[str, ...]:
        """Say where each pointer of Mode 1 begins."""
        return self.panm.starts

    @abstractmethod
    def base(self, inputs: Tensor, key: Tensor | None) -> Tensor:
        """Base addresses (B,), or one for all (1,): of a training step, without key of tests."""

    def trace(self, inputs: Tensor, steps: int) -> dict[str, Tensor]:
        """Return the slots that the pointers point at: by start for Mode 1, by number for Mode
        2.
        """
        base = self.base(inputs, None).expand(len(inputs))
        reading, _ = self.panm.read(inputs, steps, base)
        mode1 = {
            f"mode 1, pointer {i} from the {start}": weights
            for i, (start, weights) in enumerate(
                zip(self.starts, reading.mode1_weights, strict=True), start=1
            )
        }
        mode2 = {
            f"mode 2, pointer {i}": weights
            for i, weights in enumerate(reading.mode2_weights, start=1)
        }
        return mode1 | mode2


class AlgorithmicPANM(OnPANM):
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

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        within = None if key is None else fork(key, 1)
        return self.panm(inputs, steps, self.base(inputs, key), key=within)

    def base(self, inputs: Tensor, key: Tensor | None) -> Tensor:
        bank, count, code = self.panm.bank, len(inputs), not self.config.of_the_text
        config = self.config
        if (config.base_in_tests if key is None else config.base_in_training) == "zero":
            # The released read-back goes by the size of the batch.
            return torch.zeros(count if code else 1, dtype=torch.int64, device=inputs.device)
        key = evaluation_key(inputs.device) if key is None else fork(key, 0)
        return bank.random_base(count, key, bank.size + 1 if code else None)
