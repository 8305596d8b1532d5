"""The changes of the ablations of "MemReasoner", its way to answer with several names, and a
decoder that it does not have, which copies.

Source: "MemReasoner: A Memory-Augmented LLM Architecture for Multi-Hop Reasoning", Appendices A.6,
A.8 and A.9. Everything else is :class:`relength.models.language.memreasoner.MemReasoner`.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.models.language.memreasoner import Found, MemReasoner, Reading, Terms
from relength.models.language.order import Recurrent
from relength.models.language.variant_configs import CopyingConfig, VariantConfig
from relength.tasks.base import EOS, PAD
from relength.tasks.batch import FactsToAnswer


class Stacked(nn.Module):
    """Recurrent layers, each of which reads what the one before it gives."""

    def __init__(self, size: int, directions: int, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(Recurrent(size, directions) for _ in range(layers))

    def forward(self, latents: Tensor, lengths: Tensor, fused: bool) -> Tensor:
        """Ordered latents (B, E, D) of latents (B, E, D); lengths (B,) are the episodes' lines."""
        for layer in self.layers:
            latents = layer(latents, lengths, fused)
        return latents


class Variant(MemReasoner):
    """MemReasoner with one change.

    With supervision of the last read alone the reads before it are free, and there may be more of
    them than lines.
    """

    config: VariantConfig

    def __init__(self, config: VariantConfig, words: int):
        super().__init__(config, words)
        if config.recurrent_layers > 1:
            directions = 2 if config.temporal == "bigru" else 1
            self.temporal = Stacked(config.latent_size, directions, config.recurrent_layers)

    def iterative_read(self, batch: FactsToAnswer, key: Tensor | None = None) -> Reading:
        """Every hop, or the last one where it alone is supervised."""
        codes, *hops = super().iterative_read(batch, key)
        if self.config.supervised == "every":
            return Reading(codes, *hops)
        return Reading(codes, *(each[-1:] for each in hops))

    def _check_lines(self, fewest: int) -> None:
        if self.config.supervised == "every":
            super()._check_lines(fewest)

    def with_terms(
        self, batch: FactsToAnswer, key: Tensor | None, asked: tuple[str, ...]
    ) -> tuple[Tensor, Terms]:
        if self.config.supervised == "last":
            batch = replace(batch, supports=batch.supports[:, -1:])
        return super().with_terms(batch, key, asked)


class EachHop(MemReasoner):
    """MemReasoner whose answer has an equal part from every hop, one after the other.

    A part is written after the prompt, as if it were the whole answer.
    """

    def _answer(self, batch: FactsToAnswer, found: list[Found]) -> Tensor:
        parts = batch.targets.chunk(len(found), dim=1)
        scores = [
            self._after(batch.prompts, part, one) for part, one in zip(parts, found, strict=True)
        ]
        return torch.cat(scores, dim=1)

    def _words(self, prompts: Tensor, steps: int, found: list[Found]) -> Tensor:
        parts = [super(EachHop, self)._words(prompts, steps // len(found), [one]) for one in found]
        return torch.cat(parts, dim=1)


class Copying(MemReasoner):
    """MemReasoner whose answers are words of the line that was read, pointed at by the decoder.

    The decoder of MemReasoner hears one code of a line and has to spell out what is in it, so that
    it can name no word that training has never asked for. This one chooses among the line's words
    and the end, as pointer networks do (Vinyals et al., 2015). No paper has it. What reconstructs
    lines is MemReasoner's decoder as it is.
    """

    def __init__(self, config: CopyingConfig, words: int):
        super().__init__(config, words)
        self.to_place = nn.Linear(config.width, config.width, bias=False)
        self.to_end = nn.Linear(config.width, 1)

    def _from(self, found: Found, tokens: Tensor) -> Tensor:
        """Log-probabilities (B, T, words): 0 for words that the line has not."""
        features = self._features(found.code, tokens)
        states = self.encoded(self.states(found.line))[:, 1:]  # without the mark
        line = found.line[:, : states.shape[1]]
        places = self.to_place(features) @ states.mT / math.sqrt(states.shape[2])  # (B, T, L)
        places = places.masked_fill((line == PAD)[:, None], -torch.inf)
        chances = torch.cat([places, self.to_end(features)], dim=2).softmax(2)
        chosen = F.pad(line, (0, 1), value=EOS)[:, None].expand_as(chances)
        said = chances.new_zeros(*tokens.shape, len(self.words.weight))
        said = said.scatter_add(2, chosen, chances)
        return (said + torch.finfo(said.dtype).tiny).log()
