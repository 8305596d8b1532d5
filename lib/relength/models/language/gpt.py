"""GPT: a decoder alone, which reads lines and question as one text and writes the answer after it.

Source: Radford et al. (2019), in the form of the Qwen2.5 models that "MemReasoner" fine-tunes on
answers (Appendix A.4): norms before each part, positions by rotation. Small and from nothing,
unless a pretrained network is named.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from relength.errors import RelengthError
from relength.models.language.configs import GPTConfig
from relength.models.language.texts import texts
from relength.models.language.transformer import LanguageModel, Layer, at, rotations
from relength.tasks.base import PAD
from relength.tasks.batch import Answered, FactsToAnswer

WORDS = 2**14  # that are read at once when nothing is learned


class GPT(LanguageModel):
    """Words of lines, question, prompt and answer in one sequence; each sees those before it.

    With a pretrained decoder it is that network, and all of it is trained on.
    """

    small = ("writer.marks.weight",)

    def __init__(self, config: GPTConfig, words: int):
        super().__init__()
        self.config = config
        if config.decoder:
            from relength.models.language.networks import Writer

            self.writer = Writer(config.decoder, words)
            return
        sizes = config.width, config.heads, config.inner_size
        self.words = nn.Embedding(words, config.width)
        self.layers = nn.ModuleList(Layer(*sizes) for _ in range(config.layers))
        self.last = nn.LayerNorm(config.width)
        for name in ("cosine", "sine"):  # as many as were needed so far, see _turns
            empty = torch.empty(0, config.width // config.heads)
            self.register_buffer(name, empty, persistent=False)

    def context(self, batch: FactsToAnswer) -> tuple[Tensor, Tensor]:
        """Words (B, S) of lines, question and prompt, padded at the right, and how many (B,).

        Raises RelengthError where they are more than the window.
        """
        found = texts(batch)
        lengths = torch.tensor([len(text) for text in found], device=batch.inputs.device)
        longest = int(lengths.max())
        if longest > self.config.window:
            raise RelengthError(
                f"A text of {longest} words does not fit into a window of {self.config.window}: "
                "choose shorter contexts, or a larger window."
            )
        return pad_sequence(found, batch_first=True, padding_value=PAD), lengths

    def scores(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Scores (B, T, words) of the words after the places (B, T) of tokens (B, S)."""
        if self.config.decoder:
            return self._scores(at(self.writer.features(tokens), places))
        x, turns = self.words(tokens), self._turns(tokens.shape[1])
        *lower, top = self.layers
        for layer in lower:
            x = layer(x, causal=True, rotation=turns)
        place = torch.arange(tokens.shape[1], device=tokens.device)
        seen = (place <= places[:, :, None])[:, None]  # (B, 1, T, S)
        return self._scores(top(x, seen, rotation=turns, only=places))

    def _scores(self, x: Tensor) -> Tensor:
        """Scores (…, words) for vectors (…, d)."""
        if self.config.decoder:
            return self.writer.scores(x)
        return F.linear(self.last(x), self.words.weight)

    def _turns(self, positions: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines (positions, d/heads), computed anew only for a longer text."""
        if len(self.cosine) < positions:
            turns = rotations(positions, self.config.width // self.config.heads)
            self.cosine, self.sine = (turn.to(self.words.weight) for turn in turns)
        return self.cosine[:positions], self.sine[:positions]

    def forward(self, batch: FactsToAnswer, key: Tensor | None = None) -> Tensor:
        return self.by_length(batch, self._scores_of)

    def _scores_of(self, batch: FactsToAnswer) -> Tensor:
        """Scores (B, T, words) of the targets."""
        tokens, lengths = self.context(batch)
        step = torch.arange(batch.targets.shape[1], device=tokens.device)
        given = F.pad(tokens, (0, len(step) - 1), value=PAD)
        places = lengths[:, None] + step[:-1]
        given = given.scatter(1, places, batch.targets[:, :-1])
        return self.scores(given, lengths[:, None] - 1 + step)

    @torch.no_grad()
    def generate(
        self, batch: FactsToAnswer, steps: int, keep_weights: bool = False
    ) -> tuple[Answered, None]:
        tokens, lengths = self.context(batch)
        size = max(WORDS // (tokens.shape[1] + steps), 1)
        parts = zip(tokens.split(size), lengths.split(size), strict=True)
        return Answered(torch.cat([self._written(*part, steps) for part in parts])), None

    def _written(self, tokens: Tensor, lengths: Tensor, steps: int) -> Tensor:
        """The likeliest words (B, steps) after texts (B, S) of these lengths (B,)."""
        tokens = F.pad(tokens[:, : int(lengths.max())], (0, steps), value=PAD)
        written = []
        for step in range(steps):
            place = lengths[:, None] + step
            word = self.scores(tokens, place - 1).argmax(2)  # (B, 1)
            tokens = tokens.scatter(1, place, word)
            written.append(word)
        return torch.cat(written, dim=1)
