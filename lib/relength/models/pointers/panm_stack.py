"""PANM with a stack network on Dyck languages (Sections 3.2 and D.2): what it sits on.

| arm | encoder, M | decoder, z_t |
| --- | --- | --- |
| paper, repaired, large | each symbol x_i by itself, through a linear map | state h_t of SRNN |
| encoder | state h_i of SRNN, through a linear map | symbol x_t |

M grows: at step t it has x_1 to x_t. What "has been written" before step t + 1 is the string's own
next symbol, so that z_t is made of x_1 to x_t. A linear map gives slots the controller's width, as
its first state is a slot; the text is silent on it. Outputs pass through a sigmoid, as SRNN's do.
"""

import torch
from torch import Tensor, nn

from relength.kernels.hashing import fork
from relength.models.memory.stack_rnn import StackRNN, step_by_step
from relength.models.pointers.attention import evaluation_key
from relength.models.pointers.panm import PANM
from relength.models.pointers.panm_tasks import OnPANM
from relength.models.pointers.stack_configs import StackPANMConfig
from relength.tasks.batch import Batch


class StackPANM(OnPANM):
    """After each symbol a number from 0 to 1 for each symbol that may follow."""

    def __init__(self, config: StackPANMConfig, channels: int, outputs: int):
        super().__init__()
        self.config, d = config, config.memory_size
        stack = StackRNN(channels, config.stack_hidden, config.stack_slots, config.stack_width)
        if config.arm == "encoder":
            encoder = nn.Sequential(stack, nn.Linear(config.stack_hidden, d))
            decoder, decoder_size = nn.Identity(), channels
        else:
            encoder = nn.Linear(channels, d)
            decoder, decoder_size = stack, config.stack_hidden
        self.panm = PANM(
            encoder,
            decoder,
            n_mode1=config.n_mode1,
            n_mode2=config.n_mode2,
            bits=config.bits,
            memory_size=d,
            classes=outputs,
            decoder_size=decoder_size,
            hidden_size=config.pointer_size,
            mlp_size=config.mlp_size,
            temperature=config.temperature,
            grows=True,
        )

    @property
    def starts(self) -> tuple[str, ...]:
        """The base for all: the first step's memory has one slot."""
        return ("base",) * len(self.panm.starts)

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        inputs, within = step_by_step(inputs, steps), None if key is None else fork(key, 1)
        base = self.base(inputs, key)
        return torch.sigmoid(self.panm(inputs, steps, base, written=inputs, key=within))

    def base(self, inputs: Tensor, key: Tensor | None) -> Tensor:
        if key is None and self.config.base_in_tests == "zero":
            return torch.zeros(1, dtype=torch.int64, device=inputs.device)
        key = evaluation_key(inputs.device) if key is None else fork(key, 0)
        return self.panm.bank.random_base(len(inputs), key)

    @torch.no_grad()
    def generate(
        self, batch: Batch, steps: int, keep_weights: bool = False
    ) -> tuple[Tensor, dict[str, Tensor] | None]:
        """Outputs (B, T, K), as training sees them, and on request what :meth:`trace` shows."""
        inputs = self._read(batch)
        outputs = self.decode(inputs, inputs.shape[1], None)
        return outputs, self.trace(inputs, inputs.shape[1]) if keep_weights else None
