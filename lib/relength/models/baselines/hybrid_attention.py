"""Attention by content and by location at once.

Source: "Pointer-Augmented Neural Memory", Section 3.1, which joins the contexts of Bahdanau et al.
(2015) and Luong et al. (2015): c_t = [c_t^content; c_t^location], both over the same annotations.
Nothing else of it is written or released; the rest is as in Content and Location Attention.
"""

from relength.models.baselines.attention_decoder import AttentionDecoder, BidirectionalEncoder
from relength.models.baselines.configs import HybridAttentionConfig
from relength.models.baselines.content_attention import AdditiveScore
from relength.models.baselines.location_attention import LocationScore


class HybridAttention(AttentionDecoder):
    """The frame of relength.models.baselines.attention_decoder with two scores."""

    def __init__(self, config: HybridAttentionConfig, input_size: int, classes: int):
        d = config.hidden_size
        scores = {"content": AdditiveScore(d), "location": LocationScore(d, config.positions)}
        super().__init__(BidirectionalEncoder(input_size, d), scores, d, classes)
        self.config = config
