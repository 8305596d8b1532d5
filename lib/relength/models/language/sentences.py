"""Sentences become codes, and codes become sentences again: what an autoencoder learns from.

Source: "MemReasoner: A Memory-Augmented LLM Architecture for Multi-Hop Reasoning", Section 3: the
encoder e and the loss of the decoder d in Eq. 1.
"""

from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn import functional as F

from relength.kernels.surprise import surprises
from relength.models.language.transformer import LanguageModel, alike, in_batch_order
from relength.tasks.base import EOS, PAD, SOS
from relength.tasks.batch import FactsToAnswer

POSITIONS = 128  # words of a line, and the mark before them, at most


class Autoencoder(LanguageModel):
    """A model with an encoder of sentences, and a decoder that hears a code.

    A class that inherits from this one makes the parts of both.
    """

    def encode(self, sentences: Tensor) -> Tensor:
        """e: codes (N, D) of sentences (N, L); a mark stands before the words and sums them up."""
        if self.config.encoder:
            return self.to_latent(self.reader(sentences))
        if self.fused:
            groups = alike((sentences != PAD).sum(1))
            parts = [self.states(sentences[some], marks=True)[:, 0] for some in groups]
            marks = in_batch_order(parts, groups)
        else:
            marks = self.states(sentences, marks=True)[:, 0]
        return self.to_latent(torch.tanh(self.encoded(marks)))

    def states(self, sentences: Tensor, marks: bool = False) -> Tensor:
        """Vectors (N, 1 + L', d) of the mark and of the words of sentences (N, L), L' ≤ L long.

        marks  whether those (N, 1, d) of the marks are all that is asked for
        """
        sentences = sentences[:, : max(int((sentences != PAD).sum(1).max()), 1)]
        marked = F.pad(sentences, (1, 0), value=SOS)  # (N, L' + 1)
        x = self.encoder_words(marked) + self.encoder_positions.weight[: marked.shape[1]]
        seen = (marked != PAD)[:, None, None]  # (N, 1, 1, L' + 1)
        *lower, top = self.encoder
        for layer in lower:
            x = layer(x, seen)
        mark = torch.zeros(1, dtype=torch.int64, device=x.device)
        return top(x, seen, only=mark if marks else None)

    @abstractmethod
    def _features(self, latents: Tensor, tokens: Tensor) -> Tensor:
        """Vectors (B, T, d) of tokens (B, T) that the decoder reads, given codes (B, D)."""

    @abstractmethod
    def _scores(self, features: Tensor) -> Tensor:
        """Scores (…, words) for vectors (…, d)."""

    def _reconstruction(self, latents: Tensor, sentences: Tensor) -> Tensor:
        """-ln p of sentences (B, L) and their ends, given codes (B, D).

        The mean over each sentence's words, then over sentences.
        """
        return self._surprise(latents, sentences).mean()

    def _of_other_text(self, batch: FactsToAnswer) -> Tensor:
        """-ln p of the batch's sentences of other text, each given its own code."""
        rows = batch.texts.flatten()
        return self._reconstruction(self.encode(batch.sentences[rows]), batch.for_decoder[rows])

    def _surprise(self, latents: Tensor, sentences: Tensor) -> Tensor:
        """The mean -ln p (B,) of the words of each sentence (B, L) and its end, given codes."""
        lengths = (sentences != PAD).sum(1)
        groups = alike(lengths)
        each = [self._surprise_alike(latents[g], sentences[g], lengths[g]) for g in groups]
        return in_batch_order(each, groups)

    def _surprise_alike(self, latents: Tensor, sentences: Tensor, lengths: Tensor) -> Tensor:
        """The same of sentences of like lengths (B,)."""
        sentences = sentences[:, : max(int(lengths.max()), 1)]
        given = F.pad(sentences, (1, 0), value=SOS)
        place = torch.arange(given.shape[1], device=given.device)
        wanted = torch.where(place == lengths[:, None], EOS, F.pad(sentences, (0, 1), value=PAD))
        counted = place <= lengths[:, None]
        # Scores are the largest thing here: padding gets none.
        scores = self._scores(self._features(latents, given)[counted])
        if self.fused:
            losses = surprises(scores, wanted[counted])
        else:
            losses = F.cross_entropy(scores, wanted[counted], reduction="none")
        of_words = losses.new_zeros(counted.shape).masked_scatter(counted, losses)
        return of_words.sum(1) / (lengths + 1)
