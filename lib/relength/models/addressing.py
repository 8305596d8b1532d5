"""Addressing by content, as the Neural Turing Machine and the Differentiable Neural Computer do it.

Source: Graves, Wayne and Danihelka, "Neural Turing Machines" (2014), Eqs. 5 and 6; Graves et al.,
"Hybrid computing using a neural network with dynamic external memory" (2016), Methods.
"""

import torch
from torch import Tensor

EPSILON = 1e-6


def cosine(memory: Tensor, keys: Tensor, epsilon: float = 0.0) -> Tensor:
    """Cosine similarity (B, H, N) of memory rows (B, N, W) and keys (B, H, W).

    The equations leave it open for a vector of zeros. Here, as in google-deepmind/dnc, 1e-6 is
    added to the squared norms, so that an empty row is like nothing and has a finite gradient.

    epsilon: added to the product of two lengths

    >>> memory, keys = torch.tensor([[[3.0, 4.0], [0.0, 0.0]]]), torch.tensor([[[0.0, 2.0]]])
    >>> cosine(memory, keys)
    tensor([[[0.8000, 0.0000]]])
    """
    lengths = [(x.square().sum(2) + EPSILON).sqrt() for x in (memory, keys)]
    products = lengths[0][:, None] * lengths[1][:, :, None]
    return (keys @ memory.mT) / (products + epsilon if epsilon else products)


def content_weighting(
    memory: Tensor, keys: Tensor, strengths: Tensor, epsilon: float = 0.0
) -> Tensor:
    """C(M, k, β)[i] = exp(β·cos(k, M[i])) / Σ_j exp(β·cos(k, M[j])), for H heads at once.

    memory (B, N, W), keys (B, H, W), strengths β (B, H); returns weightings (B, H, N)
    """
    return torch.softmax(strengths[:, :, None] * cosine(memory, keys, epsilon), dim=2)
