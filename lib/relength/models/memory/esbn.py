"""Emergent Symbol Binding Network: the controller never sees data, only keys bound to them.

Source: Webb, Sinha and Cohen, "Emergent symbols through binding in external memory" (2021); sizes
and first weights of the authors' code (taylorwwebb/emergent_symbols).

| paper | here | shape |
| --- | --- | --- |
| z_t = f_e(x_t) | ``encoder``, then :func:`context_normalised` | (B, S, 128) |
| M_v, M_k | the first t of ``z``, ``keys`` | (B, t, 128), (B, t, 256) |
| y_t, g_t, k_wt, h_t = f_s(h_{t-1}, k_{r t-1}) | ``controller``, ``gate``, ``key`` | |
| w_kt = softmax(M_v·z_t), c_kt = σ(γ·(M_v·z_t) + β) | :meth:`ESBN.retrieve` | (B, t) |
| k_rt = g_t·Σ_i w_kt(i)·(M_k(i) ‖ c_kt(i)) | :meth:`ESBN.retrieve` | (B, 257) |

That network classifies what it has read, and its y_t depends on keys alone: it could not write a
symbol. How the authors of PANM made it write is not known. Here it reads as its own authors say,
and answers by turning that round: the controller's key asks, w = softmax(M_k·k_wt), keys come back
as before, and with them the value Σ_i w(i)·M_v(i); scores are linear in it and in h_t. Nothing is
bound while answering. The convolutions of the authors' encoder, made for pictures, are left out;
its two linear layers stay. PANM's text says 1.2 million parameters; the default sizes, which it
says were used, give 1.75 million.
"""

import numpy as np
import torch
from torch import Tensor, nn

from relength.models.free_running import FreeRunning
from relength.models.memory.configs import ESBNConfig
from relength.models.memory.machine import LSTMController
from relength.models.recurrence import LSTMState


def context_normalised(z: Tensor) -> Tensor:
    """z (B, S, v) with mean 0 and variance 1 over each sequence (temporal context normalisation).

    Unbiased variances, as in the authors' code; a sequence of one becomes 0.
    """
    centred = z - z.mean(1, keepdim=True)
    variance = centred.square().sum(1, keepdim=True) / max(1, z.shape[1] - 1)
    return centred / (variance + 1e-8).sqrt()


class ESBN(FreeRunning):
    """Encoder, controller and a memory of pairs."""

    def __init__(self, config: ESBNConfig, input_size: int, classes: int):
        super().__init__()
        self.config = config
        d, k, v = config.hidden_size, config.key_size, config.value_size
        self.encoder = nn.Sequential(
            nn.Linear(input_size, config.inner_size),
            nn.ReLU(),
            nn.Linear(config.inner_size, v),
            nn.ReLU(),
        )
        self.scale, self.offset = nn.Parameter(torch.ones(v)), nn.Parameter(torch.zeros(v))
        self.controller = LSTMController(k + 1, d)
        self.key = nn.Linear(d, k)
        self.gate = nn.Linear(d, 1)
        self.gain = nn.Parameter(torch.ones(1))  # γ
        self.bias = nn.Parameter(torch.zeros(1))  # β
        self.output = nn.Linear(d + v, classes)

    def initial(self, name: str, random: np.random.Generator) -> None:
        return None  # scale and gain stay 1, offset and bias 0

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Draw as the ESBN authors do: biases 0, weights normal.

        The weights are Kaiming's before a ReLU, else Xavier's. Each block of the LSTM is drawn on
        its own, that of the candidate cell with gain 5/3.
        """
        shape = self.get_parameter(name).shape
        rows, columns = shape if len(shape) == 2 else (0, 0)
        if "bias" in name:
            return np.zeros(shape)
        if name.startswith(("encoder", "key")):
            return random.normal(0, np.sqrt(2 / columns), shape)
        if name.startswith(("gate", "output")):
            return random.normal(0, np.sqrt(2 / (rows + columns)), shape)
        d = self.config.hidden_size  # i and f are drawn as one block, then g, then o
        blocks = ((2 * d, 1), (d, 5 / 3), (d, 1))
        return np.concatenate(
            [
                random.normal(0, gain * np.sqrt(2 / (size + columns)), (size, columns))
                for size, gain in blocks
            ]
        )

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        z = context_normalised(self.encoder(inputs)) * self.scale + self.offset  # (B, S, v)
        keys, retrieved, state = self.bind(z)
        features = []
        for _ in range(steps):
            h, state = self.controller.step(retrieved, state, self.linear)
            asked = (torch.relu(self.key(h))[:, None] @ keys.mT).squeeze(1)  # M_k·k_w
            weights, retrieved = self.retrieve(asked, keys, h)
            features.append(torch.cat([h, (weights[:, None] @ z).squeeze(1)], dim=1))
        return self.output(torch.stack(features, dim=1))

    def bind(self, z: Tensor) -> tuple[Tensor, Tensor, LSTMState]:
        """The authors' algorithm: a key for every value of z (B, S, v).

        Returns keys (B, S, k), the key retrieved last, and the controller's state.
        """
        similar = z @ z.mT  # M_v·z_t for every t
        state = self.controller.start(len(z))
        retrieved = z.new_zeros(len(z), self.config.key_size + 1)
        keys: list[Tensor] = []
        for t in range(z.shape[1]):
            h, state = self.controller.step(retrieved, state, self.linear)
            if keys:
                _, retrieved = self.retrieve(similar[:, t, :t], torch.stack(keys, dim=1), h)
            keys.append(torch.relu(self.key(h)))
        return torch.stack(keys, dim=1), retrieved, state

    def retrieve(self, scores: Tensor, keys: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Weights w_k (B, t), and k_r (B, k + 1): the gated mean of keys and confidences."""
        weights = torch.softmax(scores, dim=1)
        confidence = torch.sigmoid(self.gain * scores + self.bias)
        known = torch.cat([keys, confidence[:, :, None]], dim=2)  # M_k ‖ c_k
        return weights, torch.sigmoid(self.gate(h)) * (weights[:, None] @ known).squeeze(1)
