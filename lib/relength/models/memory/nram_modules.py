"""The modules of the Neural Random-Access Machine: integer functions of uncertain integers.

Source: Kurach, Andrychowicz and Sutskever, "Neural random-access machines" (2016).

An integer of {0, …, M-1} is a distribution p over them (..., M). A module m of two integers gives

P(m(A, B) = c) = Σ_{a,b} P(A = a)·P(B = b)·[m(a, b) = c]

written here without the sum over all pairs. Truth values are the integers 0 and 1.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def constant(number: int, like: Tensor) -> Tensor:
    """The certain integer ``number``, shaped like a distribution ``like``."""
    places = torch.arange(like.shape[-1], device=like.device)
    return (places == number).to(like.dtype).expand_as(like)


def truth(probability: Tensor, cells: int) -> Tensor:
    """The integer that is 1 with a probability (..., 1), and 0 otherwise."""
    return F.pad(torch.cat([1 - probability, probability], dim=-1), (0, cells - 2))


def increment(a: Tensor) -> Tensor:
    """a + 1 modulo M."""
    return a.roll(1, -1)


def decrement(a: Tensor) -> Tensor:
    """a - 1 modulo M."""
    return a.roll(-1, -1)


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b modulo M: a circular convolution, a product of Fourier transforms."""
    return torch.fft.irfft(torch.fft.rfft(a) * torch.fft.rfft(b), n=a.shape[-1])


def subtract(a: Tensor, b: Tensor) -> Tensor:
    """a - b modulo M: adds -b, whose distribution is that of b read backwards from 0."""
    return add(a, b.flip(-1).roll(1, -1))


def at_most(a: Tensor) -> Tensor:
    """P(A ≤ c) for every c."""
    return a.cumsum(-1)


def less_than(a: Tensor, b: Tensor) -> Tensor:
    """[a < b]."""
    return truth((a * (1 - at_most(b))).sum(-1, keepdim=True), a.shape[-1])


def less_or_equal(a: Tensor, b: Tensor) -> Tensor:
    """[a ≤ b]."""
    return truth((b * at_most(a)).sum(-1, keepdim=True), a.shape[-1])


def equal(a: Tensor, b: Tensor) -> Tensor:
    """[a = b]."""
    return truth((a * b).sum(-1, keepdim=True), a.shape[-1])


def maximum(a: Tensor, b: Tensor) -> Tensor:
    """max(a, b): P(max ≤ c) = P(A ≤ c)·P(B ≤ c)."""
    return a * at_most(b) + b * (at_most(a) - a)


def minimum(a: Tensor, b: Tensor) -> Tensor:
    """min(a, b): P(min = c) = P(A = c)·P(B ≥ c) + P(B = c)·P(A > c)."""
    return a * (1 - at_most(b) + b) + b * (1 - at_most(a))


def read(memory: Tensor, pointer: Tensor) -> Tensor:
    """Mᵀ·p (..., M): what is in the cell that p points at. memory (..., M, M), a cell per row."""
    return (pointer[..., None, :] @ memory).squeeze(-2)


def write(memory: Tensor, pointer: Tensor, value: Tensor) -> Tensor:
    """(J - p)·Jᵀ∘M + p·aᵀ: cell i becomes (1 - p_i)·M_i + p_i·a."""
    return torch.lerp(memory, value[..., None, :], pointer[..., None])
