"""MemN2N: lines as bags of words in a memory, which a question reads in hops of soft attention.

Source: Sukhbaatar et al., "End-To-End Memory Networks" (2015), Sections 2 and 4.1, with adjacent
sharing of weights, position encoding of words and temporal encoding of lines.

============= =================== ===============================================
the paper     here                shape
============= =================== ===============================================
x_i, q        ``sentences``       (N, J) words of each distinct sentence
A_1, …, A_K   ``words[:K]``       (words, d), of what is compared with a question
C_1, …, C_K   ``words[1:]``       (words, d), of what is read: C_k is A_{k+1}
B, Wᵀ         ``words[0]``, ``words[K]``
T_A, T_C      ``times``           (lines, d), shared as A and C are
l_kj          :func:`positions`   (J, d) per number of words
m_i, c_i      ``lines[k]``        (B, E, d) of hop k, and of hop k + 1
u_k           ``state``           (B, d)
============= =================== ===============================================

Left out of the original: training without softmax at first, and random empty lines.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.models.language.baseline_configs import MemN2NConfig
from relength.models.language.transformer import LanguageModel
from relength.tasks.base import EOS, PAD
from relength.tasks.batch import Answered, FactsToAnswer


def positions(lengths: Tensor, width: int, size: int) -> Tensor:
    """l_kj = (1 - j/J) - (k/d)·(1 - 2j/J), (N, width, size), of sentences with J (N,) words.

    j counts words and k counts units, both from 1.
    """
    j = torch.arange(1, width + 1, device=lengths.device)[:, None]
    k = torch.arange(1, size + 1, device=lengths.device)
    share = j / lengths.clamp(min=1)[:, None, None]  # (N, width, 1)
    return (1 - share) - k / size * (1 - 2 * share)


class MemN2N(LanguageModel):
    """One word answers; an end always follows it."""

    def __init__(self, config: MemN2NConfig, words: int):
        super().__init__()
        self.config = config
        tables = config.hops + 1
        self.words = nn.ModuleList(nn.Embedding(words, config.width) for _ in range(tables))
        self.times = nn.ModuleList(nn.Embedding(config.lines, config.width) for _ in range(tables))

    def bags(self, sentences: Tensor) -> list[Tensor]:
        """Σ_j l_j · w_j of sentences (N, J), by each table of words: (N, d)."""
        there = sentences != PAD
        lengths = there.sum(1)
        width = max(int(lengths.max()), 1)
        weights = positions(lengths, width, self.config.width) * there[:, :width, None]
        weights = weights.to(self.words[0].weight.dtype)
        return [(weights * table(sentences[:, :width])).sum(1) for table in self.words]

    def answer(self, batch: FactsToAnswer) -> Tensor:
        """Scores (B, words) of the answer.

        Raises RelengthError where an episode has more lines than fit.
        """
        _, width = batch.inputs.shape
        if width > self.config.lines:
            raise RelengthError(
                f"An episode of {width} lines does not fit into a memory of {self.config.lines}: "
                "choose shorter contexts, or more lines."
            )
        rows = torch.cat([batch.inputs, batch.questions[:, None]], dim=1)
        distinct, place = rows.unique(return_inverse=True)
        found = [F.embedding(place, bags) for bags in self.bags(batch.sentences[distinct])]
        step = torch.arange(width, device=rows.device)
        ago = (batch.input_lengths[:, None] - 1 - step).clamp(min=0)  # 0 for the last line
        lines = [bag[:, :width] + time(ago) for bag, time in zip(found, self.times, strict=True)]
        padding = step >= batch.input_lengths[:, None]
        state = found[0][:, width]  # u_1 = B·q
        for k in range(self.config.hops):
            match = (lines[k] @ state[:, :, None])[:, :, 0].masked_fill(padding, -math.inf)
            read = match.softmax(1)  # p
            state = state + (read[:, None] @ lines[k + 1])[:, 0]  # u_{k+1} = u_k + o_k
        return F.linear(state, self.words[-1].weight)

    def forward(self, batch: FactsToAnswer, key: Tensor | None = None) -> Tensor:
        answer = self.answer(batch)
        end = torch.full_like(answer, -math.inf)
        end[:, EOS] = 0
        return torch.stack([answer, *[end] * (batch.targets.shape[1] - 1)], dim=1)

    @torch.no_grad()
    def generate(
        self, batch: FactsToAnswer, steps: int, keep_weights: bool = False
    ) -> tuple[Answered, None]:
        """The likeliest word and ends (B, steps). Soft reads are no lines, so that none is told."""
        answer = self.answer(batch)
        ends = batch.questions.new_full((len(batch), steps - 1), EOS)
        return Answered(torch.cat([answer.argmax(1, keepdim=True), ends], dim=1)), None
