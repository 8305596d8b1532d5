"""RMT: a decoder that reads segment after segment and hands a few vectors from each to the next.

Source: Bulatov et al., "Recurrent Memory Transformer" (2022), Section 3, in the form that Kuratov
et al., "BABILong" (2024), and "MemReasoner", Section 4.2, train.

============= ================= =====================================================
the paper     here              shape
============= ================= =====================================================
H^mem         ``memory``        (B, m, d); at first the learned ``first``
H_τ           ``words``         (B, S, d) vectors of a segment's words
[H^mem; H_τ; H^mem]             what the layers read: memory, words, memory again
H^write       what the places of the second memory give: the next segment's memory, in the arm
              released after the last norm
============= ================= =====================================================
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.models.language.baseline_configs import RMTConfig
from relength.models.language.texts import ending_together, parts
from relength.models.language.transformer import LanguageModel, Layer, rotations
from relength.tasks.base import PAD
from relength.tasks.batch import Answered, FactsToAnswer

ANSWER = 12  # words of the longest answer, which the last segment has beyond its size


class RMT(LanguageModel):
    """Segments are counted from the end of a text, so that its last one is full.

    Question and answer are in the last one. Errors go back through all segments.
    """

    small = ("first.weight",)

    def __init__(self, config: RMTConfig, words: int):
        super().__init__()
        self.config = config
        self.words = nn.Embedding(words, config.width)
        self.first = nn.Embedding(config.memory, config.width)
        sizes = config.width, config.heads, config.inner_size
        self.layers = nn.ModuleList(Layer(*sizes) for _ in range(config.layers))
        self.final = nn.LayerNorm(config.width)
        # Places of memory, of a segment's words, of an answer's, and of memory again.
        places = 2 * config.memory + config.segment + ANSWER
        turns = rotations(places, config.width // config.heads)
        for name, turn in zip(("cosine", "sine"), turns, strict=True):
            self.register_buffer(name, turn, persistent=False)

    def layered(
        self, tokens: Tensor, memory: Tensor, wanted: int, answered: int = 0, writes: bool = False
    ) -> Tensor:
        """Outputs (B, wanted, d) at the last places of [memory; words; memory].

        tokens    (B, S), padded at the left, which no place sees
        memory    (B, m, d)
        answered  words of an answer at their end
        writes    whether the second memory is there
        """
        (_, width), m = tokens.shape, self.config.memory
        x = torch.cat([memory, self.words(tokens), *[memory] * writes], dim=1)
        # Counted from the segment's end: a word's place is the same whatever the batch pads.
        start = m + self.config.segment - (width - answered)
        turns = [
            torch.cat([turn[:m], turn[start : start + width + m * writes]])
            for turn in (self.cosine, self.sine)
        ]
        there = F.pad(tokens != PAD, (m, m * writes), value=True)  # (B, S')
        place = torch.arange(x.shape[1], device=x.device)
        seen = there[:, None, None] & (place <= place[:, None])  # (B, 1, S', S')
        *lower, top = self.layers
        for layer in lower:
            x = layer(x, seen, rotation=turns)
        return top(x, seen[:, :, -wanted:], rotation=turns, only=place[-wanted:])

    def read(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The last segment of texts (B, S), and the memory (B, m, d) that comes to it."""
        memory = self.first.weight.expand(len(tokens), -1, -1)
        size = self.config.segment
        whole, begun = divmod(tokens.shape[1], size)
        *before, last = tokens.split([begun] * (begun > 0) + [size] * whole, dim=1)
        for segment in before:
            words = (segment != PAD).any(1)[:, None, None]
            written = self.layered(segment, memory, self.config.memory, writes=True)
            if self.config.arm == "released":
                written = self.final(written)
            memory = torch.where(words, written, memory)
        return last, memory

    def scores(self, tokens: Tensor, memory: Tensor, wanted: int, answered: int) -> Tensor:
        """Scores (B, wanted, words) of the words after the last of a segment's words (B, S)."""
        found = self.layered(tokens, memory, wanted, answered)
        return F.linear(self.final(found), self.words.weight)

    def forward(self, batch: FactsToAnswer, key: Tensor | None = None) -> Tensor:
        return self.by_length(batch, self._scores_of)

    def _scores_of(self, batch: FactsToAnswer) -> Tensor:
        """Scores (B, T, words) of the targets."""
        last, memory = self.read(ending_together(batch))
        given = torch.cat([last, batch.targets[:, :-1]], dim=1)
        wanted = batch.targets.shape[1]
        return self.scores(given, memory, wanted, wanted - 1)

    @torch.no_grad()
    def generate(
        self, batch: FactsToAnswer, steps: int, keep_weights: bool = False
    ) -> tuple[Answered, None]:
        return Answered(torch.cat([self._written(part, steps) for part in parts(batch)])), None

    def _written(self, batch: FactsToAnswer, steps: int) -> Tensor:
        given, memory = self.read(ending_together(batch))
        for step in range(steps):
            word = self.scores(given, memory, 1, step).argmax(2)  # (B, 1)
            given = torch.cat([given, word], dim=1)
        return given[:, given.shape[1] - steps :]
