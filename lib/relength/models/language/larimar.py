"""Larimar: MemReasoner's encoder, memory and decoder, read once, by the question as it is.

Source: Das et al., "Larimar: Large Language Models with Episodic Memory Control" (2024), in the
form that "MemReasoner", Sections 3.1 and 4.2, compares with.
"""

import torch
from torch import Tensor, nn

from relength.errors import RelengthError
from relength.models.language.baseline_configs import LarimarConfig
from relength.models.language.memreasoner import Codes, MemReasoner, Terms
from relength.tasks.batch import Answered, FactsToAnswer


class Larimar(MemReasoner):
    """z_read = read(M̂, z_q) goes to the decoder: no order, no W_q, no line that is looked up.

    It does not learn from supporting facts, and does not tell what it reads: a mixture of lines.
    """

    tells_lines = False

    def __init__(self, config: LarimarConfig, words: int):
        super().__init__(config, words)
        self.to_query = nn.Identity()

    def nearest(self, codes: Codes, readout: Tensor) -> tuple[Tensor, Tensor]:
        """The line nearest to a readout (B,), and the readout itself (B, D)."""
        return self.distances(codes, readout).argmin(1), readout

    def with_terms(
        self, batch: FactsToAnswer, key: Tensor | None, asked: tuple[str, ...]
    ) -> tuple[Tensor, Terms]:
        """Scores (B, T, words) as from :meth:`forward`, and the loss of other text if asked for.

        Raises RelengthError where a term about supporting facts is asked for.
        """
        if wrong := [term for term in asked if term != "text"]:
            raise RelengthError(
                f"Larimar has no loss of {', '.join(wrong)}: set alpha, beta and delta to 0."
            )
        terms = dict.fromkeys(Terms._fields, self.first.new_zeros(()))
        if asked:
            terms["text"] = self._of_other_text(batch)
        return self(batch, key), Terms(**terms)

    @torch.no_grad()
    def generate(
        self, batch: FactsToAnswer, steps: int, keep_weights: bool = False
    ) -> tuple[Answered, None]:
        answered, _ = super().generate(batch, steps)
        return Answered(answered.tokens), None
