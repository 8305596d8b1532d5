"""Transformers for sequences, the baselines of PANM on SCAN (Section 3.3 of its paper, Table 4).

Source: Vaswani et al. (2017) in the form in which Csordás et al., "The devil is in the detail"
(2021), train it: normalised after each sum, ReLU, attention without biases, a source between start
and end marks, a table of vectors for sources and another for targets, of which the second gives the
scores of tokens, too. Positions are those that their "embedding scaling" calls down, or distances
as in Transformer-XL (Dai et al. 2019); in a universal Transformer (Dehghani et al. 2018) all layers
are one, which is applied as often as there would be layers.

Sources and targets are numbered by one vocabulary here. So both tables have rows that are never
read, and the scores some tokens that are never right.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.kernels.hashing import fork
from relength.models.free_running import first_values
from relength.models.transformers.attention import Switched
from relength.models.transformers.configs import TransformerSeq2SeqConfig
from relength.models.transformers.layers import Decoder, Encoder, Written
from relength.streams import stream
from relength.tasks.base import EOS, PAD, SOS
from relength.tasks.batch import Batch


class FromSource(Switched, ABC):
    """A model of tokens with an encoder of this kind: what is the same whatever decodes."""

    encoder: Encoder

    @property
    def fused(self) -> bool:
        return self.encoder.fused

    @fused.setter
    def fused(self, value: bool) -> None:
        for module in self.modules():
            if module is not self and hasattr(module, "fused"):
                module.fused = value

    def initialise(self, seed: int) -> "FromSource":
        """Draw all weights from the run's own streams, one stream per parameter, as released."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                numbers = first_values(self, name, stream(seed, "initialisation", name))
                if numbers is not None:
                    parameter.copy_(torch.as_tensor(numbers))
        return self

    def encode(self, batch: Batch, key: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors of the source (B, S, d), the mask (B, 1, 1, S) of its tokens, and their numbers
        (B,).
        """
        tokens, lengths = marked(batch)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        mask = (places < lengths[:, None])[:, None, None]
        return self.encoder(tokens, mask, None if key is None else fork(key, 0)), mask, lengths

    @abstractmethod
    def start(self, batch: Batch, steps: int) -> Any:
        """The state before the first of ``steps`` tokens."""

    @abstractmethod
    def next(self, token: Tensor, t: int, state: Any) -> tuple[Tensor, Any]:
        """Scores (B, vocabulary) after the token (B,) before step t, and the state then."""

    @torch.no_grad()
    def generate(
        self, batch: Batch, steps: int, keep_weights: bool = False
    ) -> tuple[Tensor, dict[str, Tensor] | None]:
        """Greedy decoding for exactly ``steps`` tokens, the model's own tokens fed back.

        Nothing is computed twice: keys and values of what is written are kept. Returns tokens
        (B, steps) and, on request, the weights that :meth:`shown` has.
        """
        state = self.start(batch, steps)
        token = torch.full((len(batch),), SOS, device=batch.inputs.device)
        tokens = []
        for t in range(steps):
            scores, state = self.next(token, t, state)
            token = scores.argmax(1)
            tokens.append(token)
        return torch.stack(tokens, dim=1), self.shown(batch, steps) if keep_weights else None

    def shown(self, batch: Batch, steps: int) -> dict[str, Tensor]:
        """Attention weights (B, steps, S) by name, for figures; none of many heads and layers."""
        return {}


def marked(batch: Batch) -> tuple[Tensor, Tensor]:
    """Sources between start and end marks (B, S + 2), and their lengths (B,)."""
    lengths = batch.input_lengths + 2
    tokens = F.pad(batch.inputs, (1, 1), value=PAD)
    places = torch.arange(tokens.shape[1], device=tokens.device)
    tokens = torch.where(places == lengths[:, None] - 1, EOS, tokens)
    return torch.where(places == 0, SOS, tokens), lengths


class TransformerSeq2Seq(FromSource):
    """An encoder, and a decoder whose table of vectors scores the tokens, with a bias."""

    def __init__(self, config: TransformerSeq2SeqConfig, vocabulary_size: int):
        super().__init__()
        self.config = config
        kind = config.relative, config.universal
        self.encoder = Encoder(config, config.encoder_layers, vocabulary_size, *kind)
        self.decoder = Decoder(config, config.decoder_layers, vocabulary_size, *kind)
        self.token_bias = nn.Parameter(torch.zeros(vocabulary_size))

    def initial(self, name: str, random: Any) -> None:
        """The bias of the tokens starts at zero."""

    def forward(self, batch: Batch, key: Tensor | None = None) -> Tensor:
        """Next-token scores (B, T, vocabulary) under teacher forcing.

        key: of this step's dropout (relength.kernels.hashing), None when evaluating
        """
        memory, mask, _ = self.encode(batch, key)
        h = self.decoder(batch.targets, memory, mask, None if key is None else fork(key, 1))
        return self.scores(h)

    def scores(self, h: Tensor) -> Tensor:
        """Scores (…, vocabulary) of the decoder's vectors (…, d)."""
        return F.linear(h, self.decoder.embedding.weight, self.token_bias)

    def start(self, batch: Batch, steps: int) -> Written:
        memory, mask, _ = self.encode(batch, None)
        return self.decoder.start(memory, mask, steps)

    def next(self, token: Tensor, t: int, state: Written) -> tuple[Tensor, Written]:
        return self.scores(self.decoder.step(token, state)[:, 0]), state
