"""Attention by location: where to look follows from the decoder's state alone.

Source: Luong, Pham and Manning, "Effective approaches to attention-based neural machine
translation" (2015), Section 3.1: a_t = softmax(W_a·h_t) (Eq. 8), one row of W_a for each source
position; a shorter source uses the first rows, and of a longer one the end is not seen.

Not to be confused with relength.models.seq2seq.location, whose Gaussian focus moves along the
source.

The authors of PANM released no code for it. Encoder and decoder around the score are those of
Content Attention, so that the two models differ in the score and in nothing else; Luong's own
decoder attends with its present state h_t, this one with the last, s_{t-1}.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.models.baselines.attention_decoder import (
    AttentionDecoder,
    BidirectionalEncoder,
    Score,
)
from relength.models.baselines.configs import LocationAttentionConfig
from relength.models.recurrence import Linear


class LocationScore(Score):
    """a_t = softmax(W_a·s_{t-1}), and 0 beyond the last row of W_a."""

    def __init__(self, hidden_size: int, positions: int):
        super().__init__()
        self.rows = nn.Linear(hidden_size, positions, bias=False)  # W_a

    def prepare(self, annotations: Tensor, linear: Linear) -> Tensor:
        return annotations  # only their number counts

    def forward(self, state: Tensor, prepared: Tensor, linear: Linear) -> Tensor:
        length = prepared.shape[1]
        seen = torch.softmax(linear(state, self.rows.weight[:length], None), dim=1)
        return F.pad(seen, (0, length - seen.shape[1]))


class LocationAttention(AttentionDecoder):
    """The attention decoder with a score of the position alone."""

    def __init__(self, config: LocationAttentionConfig, input_size: int, classes: int):
        d = config.hidden_size
        score = LocationScore(d, config.positions)
        super().__init__(BidirectionalEncoder(input_size, d), {"location": score}, d, classes)
        self.config = config
