"""MemReasoner without its memory: a decoder that reads everything, and hears the question's code.

Source: "MemReasoner: A Memory-Augmented LLM Architecture for Multi-Hop Reasoning", Appendix A.8.1.
Encoder and decoder are kept. The encoder reads the question alone, and its code enters the decoder
as a past position of each layer; lines and question are words of the decoder's own text. The loss
asks for answers and for other text.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.models.language.gpt import GPT, WORDS
from relength.models.language.memreasoner import Terms
from relength.models.language.sentences import POSITIONS, Autoencoder
from relength.models.language.transformer import Layer, at
from relength.models.language.variant_configs import WithoutMemoryConfig
from relength.tasks.base import PAD
from relength.tasks.batch import Answered, FactsToAnswer


class WithoutMemory(GPT, Autoencoder):
    """A plain decoder with one past position per layer, from the code of the question."""

    supervised = True
    small = ("encoder_words.weight", "encoder_positions.weight", "writer.marks.weight")

    def __init__(self, config: WithoutMemoryConfig, words: int):
        super().__init__(config, words)
        if config.encoder:
            from relength.models.language.networks import Reader

            self.reader = Reader(config.encoder)
            self.to_latent = nn.Linear(self.reader.width, config.latent_size, bias=False)
            self.to_past = nn.Linear(config.latent_size, self.writer.past, bias=False)
            return
        d = config.width
        self.encoder_words = nn.Embedding(words, d)
        self.encoder_positions = nn.Embedding(POSITIONS, d)
        self.encoder = nn.ModuleList(
            Layer(d, config.heads, config.inner_size) for _ in range(config.encoder_layers)
        )
        self.encoded = nn.LayerNorm(d)
        self.to_latent = nn.Linear(d, config.latent_size, bias=False)
        self.to_past = nn.Linear(config.latent_size, config.layers * d, bias=False)

    def for_test(self) -> None:
        """Nothing changes at test: there is no query update."""

    def scores_after(self, codes: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
        """Scores (B, T, words) of the words after the places (B, T) of tokens (B, S).

        codes  (B, D), heard at every place
        """
        return self._scores(self._features(codes, tokens, places))

    def _features(self, codes: Tensor, tokens: Tensor, places: Tensor | None = None) -> Tensor:
        """Vectors (B, S, d) of tokens (B, S), or (B, T, d) of those at places (B, T)."""
        if self.config.decoder:
            found = self.writer.features(tokens, self.to_past(codes))
            return found if places is None else at(found, places)
        turns, place = self._turns(tokens.shape[1]), torch.arange(tokens.shape[1]).to(tokens)
        seen = F.pad(place <= place[:, None], (1, 0), value=True)  # (S, 1 + S), the code first
        x = self.words(tokens)
        *lower, top = zip(self.layers, self.to_past(codes).chunk(len(self.layers), 1), strict=True)
        for layer, past in lower:
            x = layer(x, seen, past=past, rotation=turns)
        layer, past = top
        if places is not None:
            seen = F.pad(place <= places[:, :, None], (1, 0), value=True)[:, None]
        return layer(x, seen, past=past, rotation=turns, only=places)

    def _scores_of(self, batch: FactsToAnswer) -> Tensor:
        tokens, lengths = self.context(batch)
        step = torch.arange(batch.targets.shape[1], device=tokens.device)
        given = F.pad(tokens, (0, len(step) - 1), value=PAD)
        given = given.scatter(1, lengths[:, None] + step[:-1], batch.targets[:, :-1])
        codes = self.encode(batch.sentences[batch.questions])
        return self.scores_after(codes, given, lengths[:, None] - 1 + step)

    def with_terms(
        self, batch: FactsToAnswer, key: Tensor | None, asked: tuple[str, ...]
    ) -> tuple[Tensor, Terms]:
        """Scores (B, T, words), and of the terms of Eq. 1 that of other text; the rest are 0."""
        terms = dict.fromkeys(Terms._fields, self.to_past.weight.new_zeros(()))
        if "text" in asked:
            terms["text"] = self._of_other_text(batch)
        return self(batch, key), Terms(**terms)

    @torch.no_grad()
    def generate(
        self, batch: FactsToAnswer, steps: int, keep_weights: bool = False
    ) -> tuple[Answered, None]:
        tokens, lengths = self.context(batch)
        codes = self.encode(batch.sentences[batch.questions])
        size = max(WORDS // (tokens.shape[1] + steps), 1)
        parts = zip(*(whole.split(size) for whole in (codes, tokens, lengths)), strict=True)
        return Answered(torch.cat([self._written_after(*part, steps) for part in parts])), None

    def _written_after(self, codes: Tensor, tokens: Tensor, lengths: Tensor, steps: int) -> Tensor:
        """The likeliest words (B, steps) after texts (B, S) of these lengths (B,)."""
        tokens = F.pad(tokens[:, : int(lengths.max())], (0, steps), value=PAD)
        written = []
        for step in range(steps):
            place = lengths[:, None] + step
            word = self.scores_after(codes, tokens, place - 1).argmax(2)  # (B, 1)
            tokens = tokens.scatter(1, place, word)
            written.append(word)
        return torch.cat(written, dim=1)
