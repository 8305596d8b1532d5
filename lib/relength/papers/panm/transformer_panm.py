"""PANM on a Transformer as its backbone, which the paper's appendix on speed measures."""

import torch
from torch import Tensor, nn

from relength.models.baselines.configs import TransformerConfig
from relength.models.baselines.transformer import Layer
from relength.models.free_running import FreeRunning
from relength.models.pointers.attention import AddressBank, evaluation_key
from relength.models.pointers.panm import PANM
from relength.models.seq2seq.attention import sinusoid


class TransformerMemory(nn.Module):
    """The layers of the Transformer baseline as an encoder: (B, L, C) to a memory (B, L, d)."""

    def __init__(self, config: TransformerConfig, input_size: int):
        super().__init__()
        self.size = config.hidden_size
        self.embedding = nn.Linear(input_size, self.size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1], device=x.device)
        x = self.embedding(x) + sinusoid(places, self.size).to(x.dtype)
        for layer in self.layers:
            x = layer(x, [None] * Layer.SITES, nn.functional.linear)
        return x


class TransformerPANM(FreeRunning):
    """PANM on the encoder of the Transformer baseline, with the text's sizes."""

    def __init__(self, config: TransformerConfig, input_size: int, classes: int):
        super().__init__()
        encoder = TransformerMemory(config, input_size)
        self.panm = PANM(encoder, memory_size=config.hidden_size, classes=classes)

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        bank: AddressBank = self.panm.bank
        base = bank.random_base(len(inputs), evaluation_key(inputs.device))
        return self.panm(inputs, steps, base)
