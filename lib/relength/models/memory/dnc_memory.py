"""Memory of the Differentiable Neural Computer: one function for each of its equations.

Source: Graves et al., "Hybrid computing using a neural network with dynamic external memory",
Nature 538 (2016), Methods.

| paper | here | shape |
| --- | --- | --- |
| M_t, u_t | ``memory``, ``usage`` | (B, N, W), (B, N) |
| p_t, L_t | ``precedence``, ``link`` | (B, N), (B, N, N) |
| w^w_t, w^{r,i}_t | ``write_weighting``, ``read_weightings`` | (B, N), (B, R, N) |
| ξ_t | :class:`Interface` | see there |
| f_t, b_t, c_t | ``forward``, ``backward``, ``content`` | (B, R, N) |

No parameter depends on N: the memory of a trained model may be made larger. What the paper leaves
open is google-deepmind/dnc's: everything starts at zero, and usage is pushed from 0 to 1e-6 before
it is sorted. Where that code differs from the equations, :class:`Rules` says how.
"""

from functools import reduce
from operator import mul
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

from relength.kernels import dnc_fused, late
from relength.models.addressing import content_weighting

EPSILON = 1e-6


class Interface(NamedTuple):
    """The interface vector ξ_t in parts: what the controller tells the memory to do.

    For R read heads and words of W numbers; read modes are in the order backward, content, forward.
    """

    read_keys: Tensor  # k^{r,i} (B, R, W)
    read_strengths: Tensor  # β^{r,i} (B, R)
    write_key: Tensor  # k^w (B, W)
    write_strength: Tensor  # β^w (B, 1)
    erase_vector: Tensor  # e (B, W)
    write_vector: Tensor  # v (B, W)
    free_gates: Tensor  # f^i (B, R)
    allocation_gate: Tensor  # g^a (B, 1)
    write_gate: Tensor  # g^w (B, 1)
    read_modes: Tensor  # π^i (B, R, 3)


class MemoryState(NamedTuple):
    """The state that the memory carries from step to step; symbols and shapes in the table
    above.
    """

    memory: Tensor
    usage: Tensor
    precedence: Tensor
    link: Tensor
    write_weighting: Tensor
    read_weightings: Tensor


def empty(like: Tensor, batch: int, slots: int, width: int, read_heads: int) -> MemoryState:
    """A memory that nothing was written to, with the dtype and device of ``like``."""
    shapes = ((slots, width), (slots,), (slots,), (slots, slots), (slots,), (read_heads, slots))
    return MemoryState(*(like.new_zeros(batch, *shape) for shape in shapes))


def interface_size(width: int, read_heads: int) -> int:
    """Length of ξ_t: W·R + 3·W + 5·R + 3."""
    return width * read_heads + 3 * width + 5 * read_heads + 3


def split(vector: Tensor, width: int, read_heads: int) -> Interface:
    """The parts of ξ_t (B, W·R + 3·W + 5·R + 3) as the controller emits them, before squashing."""
    w, r = width, read_heads
    parts = Interface(*vector.split([w * r, r, w, 1, w, w, r, 1, 1, 3 * r], dim=1))
    return parts._replace(
        read_keys=parts.read_keys.unflatten(1, (r, w)),
        read_modes=parts.read_modes.unflatten(1, (r, 3)),
    )


class Rules(NamedTuple):
    """The places where google-deepmind/dnc computes something else than the equations.

    least_strength   added to log(1 + exp(x)), which makes a strength of a raw number x
    usage_learns     whether a gradient of the usage reaches the write weighting
    cosine_epsilon   added to the product of two lengths in a cosine similarity
    """

    least_strength: float = 1.0
    usage_learns: bool = True
    cosine_epsilon: float = 0.0


EQUATIONS = Rules()
DEEPMIND = Rules(least_strength=0.0, usage_learns=False, cosine_epsilon=EPSILON)


def interface(raw: Interface, rules: Rules = EQUATIONS) -> Interface:
    """ξ_t with every part in its domain: strengths above 0, gates in [0, 1], modes that sum to 1.

    By the equations a strength is oneplus(x) = 1 + log(1 + exp(x)), which is at least 1.
    """
    return raw._replace(
        read_strengths=rules.least_strength + F.softplus(raw.read_strengths),
        write_strength=rules.least_strength + F.softplus(raw.write_strength),
        erase_vector=torch.sigmoid(raw.erase_vector),
        free_gates=torch.sigmoid(raw.free_gates),
        allocation_gate=torch.sigmoid(raw.allocation_gate),
        write_gate=torch.sigmoid(raw.write_gate),
        read_modes=torch.softmax(raw.read_modes, dim=2),
    )


def orders_of(vector: Tensor, width: int, read_heads: int, rules: Rules = EQUATIONS) -> Interface:
    """:func:`interface` of ξ_t (B, W·R + 3·W + 5·R + 3); as one kernel of Triton if it is asked
    for.
    """
    if not late.triton_asked():
        return interface(split(vector, width, read_heads), rules)
    from relength.kernels import controller_triton

    inside = controller_triton.interface(vector, width, read_heads, rules.least_strength)
    return split(inside, width, read_heads)


def retention(free_gates: Tensor, read_weightings: Tensor) -> Tensor:
    """ψ_t = Π_i (1 - f^i_t·w^{r,i}_{t-1}): how much of each slot is not freed (B, N)."""
    return reduce(mul, (1 - free_gates[:, :, None] * read_weightings).unbind(1))


def usage_vector(usage: Tensor, write_weighting: Tensor, kept: Tensor) -> Tensor:
    """u_t = (u_{t-1} + w^w_{t-1} - u_{t-1}∘w^w_{t-1})∘ψ_t."""
    return (usage + write_weighting - usage * write_weighting) * kept


def allocation_weighting(usage: Tensor) -> Tensor:
    """a_t[φ_t[j]] = (1 - u_t[φ_t[j]])·Π_{i<j} u_t[φ_t[i]], φ_t the slots from least to most used.

    Of equally used slots the first comes first.

    >>> allocation_weighting(torch.tensor([[1.0, 0.5, 0.0]])).round(decimals=4)
    tensor([[0., 0., 1.]])
    """
    ascending, order = torch.sort(EPSILON + (1 - EPSILON) * usage, dim=1, stable=True)
    before = torch.cat([torch.ones_like(ascending[:, :1]), ascending[:, :-1]], dim=1)
    return torch.zeros_like(usage).scatter(1, order, (1 - ascending) * _Products.apply(before))


class _Products(Function):
    """Products of the first 1, 2, … of positive numbers (B, N): ``cumprod``, and its gradient.

    PyTorch's own gradient looks for zeros first. Where it cannot look, as in a stack of runs, it
    computes each of the N products anew. Here nothing is zero: usage is pushed away from it.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.cumprod(1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x, products = ctx.saved_tensors
        return (grad * products).flip(1).cumsum(1).flip(1) / x


def write_weighting(
    content: Tensor, allocation: Tensor, allocation_gate: Tensor, write_gate: Tensor
) -> Tensor:
    """w^w_t = g^w_t·(g^a_t·a_t + (1 - g^a_t)·c^w_t)."""
    return write_gate * (allocation_gate * allocation + (1 - allocation_gate) * content)


def write(memory: Tensor, weighting: Tensor, erase_vector: Tensor, write_vector: Tensor) -> Tensor:
    """M_t = M_{t-1}∘(E - w^w_t·e_tᵀ) + w^w_t·v_tᵀ."""
    w = weighting[:, :, None]
    return memory * (1 - w * erase_vector[:, None]) + w * write_vector[:, None]


def precedence_weighting(precedence: Tensor, weighting: Tensor) -> Tensor:
    """p_t = (1 - Σ_i w^w_t[i])·p_{t-1} + w^w_t: where was written last."""
    return (1 - weighting.sum(1, keepdim=True)) * precedence + weighting


def temporal_link(link: Tensor, weighting: Tensor, precedence: Tensor) -> Tensor:
    """L_t[i, j] = (1 - w^w_t[i] - w^w_t[j])·L_{t-1}[i, j] + w^w_t[i]·p_{t-1}[j], and L_t[i, i] = 0.

    L_t[i, j] tells how far slot i was written right after slot j.
    """
    i, j = weighting[:, :, None], weighting[:, None]
    others = 1 - torch.eye(link.shape[1], dtype=link.dtype, device=link.device)
    return ((1 - i - j) * link + i * precedence[:, None]) * others


def directional_weightings(link: Tensor, read_weightings: Tensor) -> tuple[Tensor, Tensor]:
    """f^i_t = L_t·w^{r,i}_{t-1} and b^i_t = L_tᵀ·w^{r,i}_{t-1}: one write later, one earlier."""
    return read_weightings @ link.mT, read_weightings @ link


def link_and_follow(
    link: Tensor, weighting: Tensor, precedence: Tensor, read_weightings: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """L_t, f_t and b_t, from L_{t-1}, w^w_t, p_{t-1} and w^r_{t-1}."""
    link = temporal_link(link, weighting, precedence)
    return link, *directional_weightings(link, read_weightings)


def read_weighting(modes: Tensor, backward: Tensor, content: Tensor, forward: Tensor) -> Tensor:
    """w^{r,i}_t = π^i_t[1]·b^i_t + π^i_t[2]·c^{r,i}_t + π^i_t[3]·f^i_t."""
    return modes[:, :, :1] * backward + modes[:, :, 1:2] * content + modes[:, :, 2:] * forward


def access(
    orders: Interface, state: MemoryState, fused: bool = False, rules: Rules = EQUATIONS
) -> tuple[Tensor, MemoryState]:
    """Free, allocate, write, link, read: read vectors r^i_t (B, R, W) and the next state.

    fused: take the faster way to the same links (relength.kernels.dnc_fused). If not, and Triton is
    asked for, one kernel of it computes all (relength.kernels.dnc_triton).
    """
    if not fused and late.triton_asked():
        from relength.kernels import dnc_triton

        packed = torch.cat([part.flatten(1) for part in orders], dim=1)
        reads, *parts = dnc_triton.access(packed, state, rules.usage_learns, rules.cosine_epsilon)
        return reads, MemoryState(*parts)
    kept = retention(orders.free_gates, state.read_weightings)
    last = state.write_weighting if rules.usage_learns else state.write_weighting.detach()
    usage = usage_vector(state.usage, last, kept)
    epsilon = rules.cosine_epsilon
    similar = content_weighting(
        state.memory, orders.write_key[:, None], orders.write_strength, epsilon
    )
    writing = write_weighting(
        similar.squeeze(1), allocation_weighting(usage), orders.allocation_gate, orders.write_gate
    )
    memory = write(state.memory, writing, orders.erase_vector, orders.write_vector)
    follow = dnc_fused.link_and_follow if fused else link_and_follow
    link, forward, backward = follow(state.link, writing, state.precedence, state.read_weightings)
    precedence = precedence_weighting(state.precedence, writing)
    content = content_weighting(memory, orders.read_keys, orders.read_strengths, epsilon)
    reading = read_weighting(orders.read_modes, backward, content, forward)
    return reading @ memory, MemoryState(memory, usage, precedence, link, writing, reading)
