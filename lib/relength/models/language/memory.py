"""An episodic memory that is written by solving linear equations, without a step of training.

Source: "MemReasoner", Section 3.2, after Das et al., "Larimar" (2024), and Pham et al.,
"Generative Pseudo-Inverse Memory" (2022).

========== ==================== ===========================================
the paper  here                 shape
========== ==================== ===========================================
Z_ξ        ``codes``            (B, E, D) what is written, a row per line
M_0        ``first``            (K, D) the memory before
M̂          ``memory``           (B, K, D) the memory after
z_q        ``query``            (B, D)
z_r        what :func:`read` returns (B, D)
A†         :func:`pseudo_inverse`
========== ==================== ===========================================

Nothing here grows faster than the number of lines: a matrix with E rows and K or D columns is
inverted by what costs E times a constant, and no E by E matrix is formed.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from relength.errors import RelengthError

if TYPE_CHECKING:
    from relength.models.language.configs import MemReasonerConfig

Inverse = Callable[[Tensor], Tensor]
ROUNDING = 1.01  # of a norm, more than float32's


class Diverged(RelengthError):
    """A pseudo-inverse whose iteration has left the numbers.

    samples  (…,) True for each matrix of which it is so
    """

    def __init__(self, said: str, samples: Tensor):
        super().__init__(said)
        self.samples = samples


def pseudo_inverse(config: "MemReasonerConfig") -> Inverse:
    """The pseudo-inverse that a model's arm computes."""
    match config.inverse:
        case "exact":
            return exact
        case "iterated":
            return partial(iterated, steps=config.iterations, start=config.first_step)
        case _:
            return partial(ridge, strength=config.ridge)


def exact(a: Tensor) -> Tensor:
    """The Moore-Penrose inverse (…, n, m) of matrices (…, m, n): σ becomes 1/σ, and 0 stays 0.

    What counts as 0: singular values below the largest times the precision times the larger side.
    """
    return torch.linalg.pinv(a)


def ridge(a: Tensor, strength: float) -> Tensor:
    """An inverse (…, n, m) in which σ becomes σ / (σ² + strength), at most 1 / (2·√strength)."""
    tall = a.shape[-2] > a.shape[-1]
    left = a.mT if tall else a
    gram = left @ left.mT  # of the smaller side
    eye = torch.eye(gram.shape[-1], dtype=a.dtype, device=a.device)
    solved = torch.linalg.solve(gram + strength * eye, left)  # (…, smaller, larger)
    return solved if tall else solved.mT


def iterated(a: Tensor, steps: int, start: float) -> Tensor:
    """Ben-Israel and Cohen's iteration from ``start`` times the transpose: (…, n, m).

    X_0 = start·Aᵀ, X_{i+1} = 2·X_i - X_i·A·X_i. After n steps σ becomes (1 - r)/σ, with
    r = (1 - start·σ²)^(2ⁿ): the largest are inverted, small ones are nearly 0.

    Raises Diverged where it does, which is where a σ² exceeds 2 / start: where the result is no
    number, or larger than that of any iteration that converges. Of such a one no singular value
    exceeds √(2ⁿ·start), since it is at most 1/σ and at most 2ⁿ·start·σ.
    """
    if a.shape[-1] < a.shape[-2]:
        # X_i = Y_i·Aᵀ with Y_{i+1} = 2·Y_i - Y_i·AᵀA·Y_i: a step no longer grows with the long
        # side. AᵀA squares what is small, so that it takes doubles.
        wide = a.mT.double()
        gram = wide @ wide.mT
        y = start * torch.eye(gram.shape[-1], dtype=gram.dtype, device=a.device).expand_as(gram)
        for _ in range(steps):
            y = 2 * y - y @ gram @ y
        x = (y @ wide).to(a.dtype)
    else:
        x = start * a.mT
        for _ in range(steps):
            x = 2 * x - x @ (a @ x)
    most = ROUNDING * (min(a.shape[-2:]) * 2**steps * start) ** 0.5
    kept = torch.linalg.matrix_norm(x.detach()) <= most  # False for what is no number, too
    if not kept.all():
        with torch.no_grad():
            largest = float(torch.linalg.matrix_norm(a, ord=2).max())
        raise Diverged(
            f"The pseudo-inverse diverges: the largest singular value is {largest:.4g}, and from "
            f"{start:g} times the transpose it may be {(2 / start) ** 0.5:.4g} at most; lower "
            "first_step, or choose the inverse 'exact' or 'ridge'.",
            ~kept,
        )
    return x


def write(codes: Tensor, first: Tensor, inverse: Inverse) -> Tensor:
    """M̂ = (Z·M_0†)†·Z, the memory (B, K, D) after one write of all lines.

    A row of zeros writes nothing. Raises RelengthError for an episode without lines.
    """
    if codes.shape[-2] == 0:
        raise RelengthError("An episode without a line leaves nothing to write: give it a fact.")
    addresses = codes @ inverse(first)  # W = Z·M_0†  (B, E, K)
    return inverse(addresses) @ codes


def read(query: Tensor, memory: Tensor, inverse: Tensor, noise: Tensor | None = None) -> Tensor:
    """z_r = (z_q·M̂† + η)·M̂, what a query (B, D) finds.

    inverse  M̂†, (B, D, K)
    noise    η, (B, K); None for none
    """
    weights = (query[:, None] @ inverse)[:, 0]  # (B, K)
    if noise is not None:
        weights = weights + noise
    return (weights[:, None] @ memory)[:, 0]
