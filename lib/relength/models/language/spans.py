"""BERT that finds the first and the last token of an answer, and PANM's controller in its place.

Source: Devlin et al. (2019), Section 4.2, and Le et al., "Plug, Play, and Generalize: Length
Extrapolation with PANM", Section 3.4 and Appendix D.4. The network is that of transformers.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from relength.errors import RelengthError
from relength.kernels.hashing import fork
from relength.models.free_running import first_values
from relength.models.language.backbones import loaded
from relength.models.language.span_configs import BertConfig, BertPANMConfig
from relength.models.pointers.panm import PANM
from relength.streams import stream
from relength.tasks.pretrained import transformers
from relength.tasks.span_batch import Spans, TokensToSpan
from relength.tasks.squad import LONGEST_ANSWER

SMALL = 0.02  # sd of the first values, as BERT's own


class SpanModel(nn.Module):
    """Scores (B, 2, S) of every place as an answer's first token and as its last."""

    fused = True

    def __init__(self, config: BertConfig, vocabulary_size: int):
        super().__init__()
        self.config = config
        if config.weights:
            self.network = loaded("BertModel", config.weights, "a BERT", add_pooling_layer=False)
        else:
            library = transformers()
            sizes = library.BertConfig(
                vocab_size=vocabulary_size,
                hidden_size=config.width,
                intermediate_size=config.inner_size,
                num_hidden_layers=config.layers,
                num_attention_heads=config.heads,
                max_position_embeddings=config.positions,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            )
            self.network = library.BertModel(sizes, add_pooling_layer=False)
        self.network.eval()  # dropout of the library draws from no stream of a run
        self.width = self.network.config.hidden_size
        self.scoring = nn.Linear(self.width, 2)

    def initialise(self, seed: int) -> "SpanModel":
        """Draw what is not pretrained from the run's own streams, one per parameter."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                random = stream(seed, "initialisation", name)
                if name.startswith("network"):
                    if not self.config.weights and parameter.ndim > 1:
                        parameter.copy_(torch.as_tensor(random.normal(0, SMALL, parameter.shape)))
                    continue
                parameter.copy_(torch.as_tensor(np.asarray(first_values(self, name, random))))
        return self

    def read(self, batch: TokensToSpan) -> Tensor:
        """Vectors (B, S, d). Raises RelengthError for a text beyond the table of positions."""
        size, most = batch.inputs.shape[1], self.network.config.max_position_embeddings
        if size > most:
            raise RelengthError(
                f"A text of {size} tokens does not fit into {most} positions: lower the task's "
                "positions."
            )
        places = torch.arange(size, device=batch.inputs.device)
        return self.network(
            input_ids=batch.inputs,
            attention_mask=(places < batch.input_lengths[:, None]).long(),
            token_type_ids=(places >= batch.begins[:, None]).long(),
        ).last_hidden_state

    def forward(self, batch: TokensToSpan, key: Tensor | None = None) -> Tensor:
        """Scores (B, 2, S), minus infinity outside of the paragraph; key of a step's draws."""
        scores = self.places(self.read(batch), batch, key)
        at = torch.arange(batch.inputs.shape[1], device=scores.device)
        # A span that was cut off has its target at 0, which no loss counts: it must be finite.
        inside = (at >= batch.begins[:, None]) & (at < batch.input_lengths[:, None] - 1)
        return scores.masked_fill(~(inside | (at == 0))[:, None], -math.inf)

    def places(self, vectors: Tensor, batch: TokensToSpan, key: Tensor | None) -> Tensor:
        """Scores (B, 2, S) of vectors (B, S, d)."""
        return self.scoring(vectors).transpose(1, 2)

    @torch.no_grad()
    def generate(
        self, batch: TokensToSpan, steps: int, keep_weights: bool = False
    ) -> tuple[Spans, dict[str, Any] | None]:
        """The likeliest span that does not end before it begins and is not too long."""
        first, last = self(batch).unbind(1)
        size = first.shape[1]
        sums = first[:, :, None] + last[:, None]
        ahead = (
            torch.arange(size, device=sums.device) - torch.arange(size, device=sums.device)[:, None]
        )
        sums = sums.masked_fill((ahead < 0) | (ahead >= LONGEST_ANSWER), -math.inf)
        sums[:, 0], sums[:, :, 0] = -math.inf, -math.inf
        best = sums.flatten(1).argmax(1)
        found = torch.stack([best // size, best % size], dim=1)
        return Spans(found, sums.flatten(1).amax(1)), {} if keep_weights else None


class SpanPANM(SpanModel):
    """Two steps of PANM over BERT's vectors; what its controller writes is looked for in them."""

    config: BertPANMConfig

    def __init__(self, config: BertPANMConfig, vocabulary_size: int):
        super().__init__(config, vocabulary_size)
        self.scoring = None
        self.panm = PANM(
            nn.Identity(),
            n_mode1=config.n_mode1,
            n_mode2=config.n_mode2,
            bits=config.bits,
            memory_size=self.width,
            classes=self.width,
            hidden_size=config.pointer_size,
            mlp_size=config.mlp_size,
            temperature=config.temperature,
        )

    def places(self, vectors: Tensor, batch: TokensToSpan, key: Tensor | None) -> Tensor:
        if key is None:
            base = torch.zeros(len(batch), dtype=torch.int64, device=vectors.device)
        else:
            base = self.panm.bank.random_base(len(batch), fork(key, 0))
        reading, h = self.panm.read(vectors, 2, base, lengths=batch.input_lengths)
        wanted, _ = self.panm.controller(reading, None, h)  # (B, 2, d)
        return wanted @ vectors.mT / math.sqrt(self.width)
