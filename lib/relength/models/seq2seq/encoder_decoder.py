"""Sequence-to-sequence model of the Monotonic Location Attention paper (Section 3, Appendix E.1).

A bidirectional GRU encodes, a GRU decodes, an attention module stands between them. Wiring that the
paper leaves out is the released code's:

* learned START and END vectors (zero at first) surround the embedded source: a source of n tokens
  has n + 2 encodings, and positions are normalised over those;
* e_cls, the two final encoder states side by side, is the decoder's first state without projection;
  with several layers it is the last encoder layer's (the released code takes it from the wrong
  states), and every decoder layer starts from it;
* dropout acts on the encodings only, not on e_cls;
* values pass Linear, LeakyReLU, the value and the output projection; keys come from the encodings
  directly;
* output embeddings are tied to the input embeddings.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.kernels import fused as fast
from relength.kernels.hashing import dropout_mask
from relength.models.recurrence import GRU, BiGRU, reversal, take
from relength.models.seq2seq import attention
from relength.models.seq2seq.attention import Attention
from relength.models.seq2seq.attentions import ATTENTIONS, Score
from relength.models.seq2seq.configs import Seq2SeqConfig
from relength.models.seq2seq.location import BETA, LocationAttention
from relength.streams import stream
from relength.tasks.base import PAD, SOS
from relength.tasks.batch import Batch


class Seq2Seq(nn.Module):
    """Encoder, attention and decoder for token sequences.

    | paper | here |
    | --- | --- |
    | e_1:s, e_cls | ``encodings``, ``summary`` |
    | α_dir, e^dir (Eqs. 17, 18) | ``self.direction``, :meth:`interpolate` |
    | o_t | weights @ values |
    | h_t | ``h`` |

    vocabulary_size counts special tokens too. ``fused`` switches between two ways to the same
    values and gradients: hand-written kernels for a CPU, and plain operations that vmap can batch.
    """

    def __init__(self, config: Seq2SeqConfig, vocabulary_size: int, fused: bool = True):
        super().__init__()
        self.fused = fused
        e, d = config.embedding_size, config.hidden_size
        inner, more = config.inner_size or d, range(config.layers - 1)
        self.config = config
        self.embedding = nn.Embedding(vocabulary_size, e)
        self.marks = nn.Parameter(torch.zeros(2, e))  # START, END
        self.encoder = BiGRU(e, d // 2)
        self.encoder_above = nn.ModuleList(BiGRU(d, d // 2) for _ in more)
        self.attention = attention_of(config)
        self.direction = nn.Linear(d, 1) if self.attention.bidirectional else None
        self.inner_value = nn.Linear(d, inner)
        self.value = nn.Linear(inner, d, bias=False)
        self.output = nn.Linear(d, d, bias=False)
        self.decoder = GRU(d + e, d)
        self.decoder_above = nn.ModuleList(GRU(d, d) for _ in more)
        self.to_embedding = nn.Linear(d, e)
        self.token_bias = nn.Parameter(torch.zeros(vocabulary_size))

    def initialise(self, seed: int) -> "Seq2Seq":
        """Draw all weights from the run's own streams, one stream per parameter.

        As in the released code: embedding Kaiming normal (fan out), linear maps Xavier uniform, but
        the direction gate, all biases and the GRUs as PyTorch draws them; START, END, the biases of
        relative attention and of the tokens start at zero.
        """
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                random = stream(seed, "initialisation", name)
                if name == "embedding.weight":
                    _fill(parameter, random.normal(0, np.sqrt(2 / len(parameter)), parameter.shape))
                elif (bound := self._bound(name, parameter)) is not None:
                    _fill(parameter, random.uniform(-1, 1, parameter.shape) * bound)
        return self

    def _bound(self, name: str, parameter: Tensor) -> float | np.ndarray | None:
        """Half-width of the uniform distribution that a parameter starts from, by row if it varies.

        None for what starts at a constant.
        """
        module_name, _, kind = name.rpartition(".")
        module = self.get_submodule(module_name)
        if isinstance(module, GRU):
            return module.bound
        if not isinstance(module, nn.Linear):
            return None
        mix_as_pytorch = module_name == "attention.mix" and self.config.mix_start == "default"
        if kind == "bias" or module_name == "direction" or mix_as_pytorch:
            return 1 / np.sqrt(module.in_features)
        if module_name == "attention.heads":
            # Two tensors in the released code, one for the width, one for all that moves the
            # focus: Xavier counts (n, d, k) as fan in d·k and fan out n·k.
            d, moves = module.in_features, module.out_features - 1
            columns = np.array([1] + [moves] * moves)
            return np.sqrt(6 / ((d + 1) * columns))[:, None]
        return np.sqrt(6 / sum(parameter.shape))

    def encode(self, batch: Batch, dropout: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Encodings (B, S + 2, d), their lengths (B,) and the summary e_cls (B, d).

        dropout: scalar key of this step's mask (relength.kernels.hashing.step_key), None when
        evaluating.
        """
        lengths = batch.input_lengths + 2
        start, end = len(self.embedding.weight), len(self.embedding.weight) + 1
        tokens = F.pad(batch.inputs, (1, 1), value=PAD)
        i = torch.arange(tokens.shape[1], device=tokens.device)
        tokens = torch.where(i == lengths[:, None] - 1, end, tokens).where(i > 0, start)
        table = torch.cat([self.embedding.weight, self.marks])
        encodings, summary = self.encoder(table, tokens, lengths, self.fused)
        for layer in self.encoder_above:
            encodings, summary = layer.above(encodings, lengths, self.fused)
        if dropout is not None and self.config.dropout > 0:
            mask = fast.dropout_mask if self.fused else dropout_mask
            keep = mask(encodings.shape, self.config.dropout, dropout)
            encodings = encodings * keep / (1 - self.config.dropout)
        if self.direction is not None:
            encodings = self.interpolate(encodings, lengths, summary)
        return encodings, lengths, summary

    def interpolate(self, encodings: Tensor, lengths: Tensor, summary: Tensor) -> Tensor:
        """e^dir: the encodings and their reversal, mixed by a gate on the summary (Eqs. 17, 18)."""
        gate = torch.sigmoid(BETA * self.direction(summary))[:, :, None]  # (B, 1, 1)
        return torch.lerp(take(encodings, reversal(lengths, encodings.shape[1])), encodings, gate)

    def values(self, encodings: Tensor) -> Tensor:
        """Map encodings to the values that attention retrieves (B, S, inner): LeakyReLU of the
        inner map (Appendix E.1).

        The value, output and gate projections that follow are linear without bias, so they act on
        the attended sum, as one matrix: see :meth:`input_maps`.
        """
        inner = self.inner_value
        return F.leaky_relu(self.linear(encodings, inner.weight, inner.bias))

    @property
    def linear(self) -> Callable[..., Tensor]:
        return fast.linear if self.fused else F.linear

    def logits(self, h: Tensor) -> Tensor:
        """Scores (..., vocabulary) of the next token from decoder states (..., d)."""
        # Two linear maps in a row, of which the composition is the smaller.
        embedding, inner = self.embedding.weight, self.to_embedding
        bias = embedding @ inner.bias + self.token_bias
        return self.linear(h, embedding @ inner.weight, bias)

    def forward(self, batch: Batch, dropout: Tensor | None = None) -> Tensor:
        """Next-token scores (B, T, vocabulary) under teacher forcing."""
        encodings, lengths, h = self.encode(batch, dropout)
        memory = self.attention.prepare(encodings, lengths, batch.targets.shape[1])
        values = self.values(encodings)
        from_values, token_table = self.input_maps()
        previous = F.pad(batch.targets[:, :-1], (1, 0), value=SOS)
        if self.fused and not self.decoder_above:
            kernel, gru = self.attention.kernel(memory), self.decoder
            token_gates = F.embedding(previous.T, token_table)  # (T, B, 3d)
            states, _ = fast.decode(
                kernel, h, token_gates, values, from_values, gru.weight_hh, gru.bias_hh
            )
            return self.logits(states).transpose(0, 1)
        state, hidden, states = self.attention.start(memory), self._first(h), []
        for t, token_gate in enumerate(F.embedding(previous, token_table).unbind(1)):
            weights, state = self.attention(hidden[-1], t, memory, state)
            attended = torch.bmm(weights[:, None], values).squeeze(1)  # (B, inner)
            hidden = self._step(token_gate + attended @ from_values.T, hidden)
            states.append(hidden[-1])
        return self.logits(torch.stack(states, dim=1))

    def _first(self, summary: Tensor) -> list[Tensor]:
        """The state of every decoder layer before the first token, (B, d) each."""
        return [summary] * self.config.layers

    def _step(self, x_gates: Tensor, hidden: list[Tensor]) -> list[Tensor]:
        """New states of all decoder layers, the top one last, from the lowest one's input gates."""
        states = [self.decoder.step(x_gates, hidden[0])]
        for gru, h in zip(self.decoder_above, hidden[1:], strict=True):
            states.append(gru.step(F.linear(states[-1], gru.weight_ih, gru.bias_ih), h))
        return states

    def input_maps(self) -> tuple[Tensor, Tensor]:
        """The decoder's input map of [o_t, embedded token], in two parts.

        The first is the map (3d, inner) of the attended value, with the value and output
        projections that stand before it; the second is the map of every token of the vocabulary,
        (V, 3d) with the input bias, so that a token's share is a look-up.
        """
        d, e = self.config.hidden_size, self.config.embedding_size
        from_values, from_token = self.decoder.weight_ih.split((d, e), dim=1)
        projections = self.linear(self.output.weight, self.value.weight.T)
        return (
            self.linear(from_values, projections.T),
            F.linear(self.embedding.weight, from_token, self.decoder.bias_ih),
        )

    @torch.no_grad()
    def generate(
        self, batch: Batch, steps: int, keep_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Greedy decoding for exactly ``steps`` tokens, the model's own tokens fed back.

        Returns tokens (B, steps) and, on request, attention weights (B, steps, S).
        """
        encodings, lengths, h = self.encode(batch, dropout=None)
        memory = self.attention.prepare(encodings, lengths, steps)
        values = self.values(encodings)
        from_values, token_table = self.input_maps()
        state, hidden = self.attention.start(memory), self._first(h)
        token = torch.full((len(batch),), SOS, device=h.device)
        tokens, kept = [], []
        for t in range(steps):
            weights, state = self.attention(hidden[-1], t, memory, state)
            attended = torch.bmm(weights[:, None], values).squeeze(1)  # (B, inner)
            x_gates = torch.addmm(token_table[token], attended, from_values.T)
            hidden = self._step(x_gates, hidden)
            token = self.logits(hidden[-1]).argmax(1)
            tokens.append(token)
            if keep_weights:
                kept.append(weights)
        return torch.stack(tokens, dim=1), torch.stack(kept, dim=1) if keep_weights else None


def attention_of(config: Seq2SeqConfig) -> Attention:
    """The attention module that the name of a configuration stands for."""
    kind, d = ATTENTIONS[config.name], config.hidden_size
    if isinstance(kind, Score):
        return getattr(attention, kind.module)(d, kind.bidirectional)
    return LocationAttention(d, kind, config.arm, config.min_sigma, config.gate_start)


def _fill(parameter: Tensor, numbers: np.ndarray) -> None:
    parameter.copy_(torch.from_numpy(numbers))
