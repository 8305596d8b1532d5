"""Pointer Network: what is written is what is pointed at.

Source: Vinyals, Fortunato and Jaitly, "Pointer networks" (2015), Section 2.3:

u^i_j = v·tanh(W_1·e_j + W_2·d_i);  p(C_i | …) = softmax(u^i) (Eq. 3)

| paper | here |
| --- | --- |
| e_j, d_i | annotations, decoder state before token i |
| W_1, W_2, v | ``from_annotation``, ``from_state``, ``weight`` of the score |

PANM trains it on symbols instead of positions (Appendix D.1): the weights sum the one-hot inputs,
p(y_i) = Σ_j p(C_i = j)·x_j, and the scores returned are their logarithms. Weight on a start or end
mark is on no symbol; the cross-entropy's softmax then divides by what is on symbols. The next
decoder input is the annotation that was pointed at, Σ_j p(C_i = j)·e_j, in place of the input that
was (Vinyals et al. feed one; here nothing is chosen). No code was released; the frame is Content
Attention's, whose sizes PANM says it shares.
"""

from torch import Tensor

from relength.models.baselines.attention_decoder import Attending, BidirectionalEncoder
from relength.models.baselines.configs import PtrNetConfig
from relength.models.baselines.content_attention import AdditiveScore


class PtrNet(Attending):
    """The frame of relength.models.baselines.attention_decoder, read out by pointing."""

    def __init__(self, config: PtrNetConfig, input_size: int, classes: int):
        d = config.hidden_size
        super().__init__(BidirectionalEncoder(input_size, d), {"pointer": AdditiveScore(d)}, d)
        self.config, self.classes = config, classes

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        _, weights = self.attend(inputs, steps)
        p = weights["pointer"] @ inputs[:, :, : self.classes]  # (B, steps, classes)
        return (p + self.config.least_probability).log()
