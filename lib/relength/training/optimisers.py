"""Optimisers for many runs at once: parameters stacked along a leading replica axis.

PyTorch's own optimisers know one learning rate for all replicas; here rate, clipping and freezing
are per replica and live on the device, so that a step needs no word from the host and fits into a
CUDA graph. With one replica each equals its namesake in ``torch.optim``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Tensors = Sequence[Tensor]  # each (R, ...)


def spread(per_replica: Tensor, like: Tensor) -> Tensor:
    """(R,) shaped to broadcast against (R, ...)."""
    return per_replica.view(-1, *[1] * (like.ndim - 1))


def clip_(grads: Tensors, most: float) -> Tensor:
    """Clip each replica's gradients in place to a global norm of ``most``; returns norms (R,)."""
    squares = [grad.reshape(len(grad), -1).square().sum(1) for grad in grads]
    norms = torch.stack(squares).sum(0).sqrt()
    scale = (most / (norms + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(list(grads), [spread(scale, grad) for grad in grads])
    return norms


def clip_values_(grads: Sequence[Tensor | None], most: float) -> None:
    """Clip each element of each gradient that there is in place to -most … most."""
    there = [grad for grad in grads if grad is not None]
    torch._foreach_clamp_min_(there, -most)
    torch._foreach_clamp_max_(there, most)


@dataclass
class Adam:
    """Adam (Kingma and Ba, 2015).

    ``decoupled`` weight decay makes it AdamW (Loshchilov and Hutter, 2019).
    """

    params: Tensors
    weight_decay: float = 0.0
    decoupled: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        replicas, device = len(self.params[0]), self.params[0].device
        self.step_count = torch.zeros(replicas, dtype=torch.float64, device=device)
        self.first = [torch.zeros_like(p) for p in self.params]
        self.second = [torch.zeros_like(p) for p in self.params]

    @property
    def state(self) -> list[Tensor]:
        """Everything that a checkpoint must keep; loading copies into these tensors."""
        return [self.step_count, *self.first, *self.second]

    def resume(self, replica: int, steps: int) -> None:
        """Take note of how many steps a replica has taken already."""
        self.step_count[replica] = steps

    @torch.no_grad()
    def update_(self, grads: Tensors, rate: Tensor, active: Tensor) -> None:
        """One step in place. rate (R,); replicas with ``active`` (R,) False stay as they are."""
        a, b = self.betas
        self.step_count += 1
        grads = list(grads)
        if self.weight_decay and not self.decoupled:
            grads = torch._foreach_add(grads, list(self.params), alpha=self.weight_decay)
        torch._foreach_lerp_(self.first, grads, 1 - a)
        torch._foreach_mul_(self.second, b)
        torch._foreach_addcmul_(self.second, grads, grads, 1 - b)
        dtype = self.params[0].dtype
        size = (rate.double() / (1 - a**self.step_count)).to(dtype)  # (R,)
        root = (1 - b**self.step_count).sqrt().to(dtype)  # (R,)
        for p, m, v in zip(self.params, self.first, self.second, strict=True):
            new = p
            if self.weight_decay and self.decoupled:
                new = new * (1 - spread(rate, p) * self.weight_decay)
            new = new - spread(size, p) * m / (v.sqrt() / spread(root, p) + self.epsilon)
            p.copy_(torch.where(spread(active, p), new, p))


@dataclass
class RMSprop:
    """RMSprop (Hinton's lecture, PyTorch's variant): square average, optional momentum.

    first, second  averages of the moves (with momentum) and of the squared gradient
    """

    params: Tensors
    alpha: float = 0.99
    momentum: float = 0.0
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        self.first = [torch.zeros_like(p) for p in self.params]
        self.second = [torch.zeros_like(p) for p in self.params]

    @property
    def state(self) -> list[Tensor]:
        """Everything that a checkpoint must keep; loading copies into these tensors."""
        return [*self.first, *self.second]

    def resume(self, replica: int, steps: int) -> None:
        """How many steps were taken makes no difference here."""

    @torch.no_grad()
    def update_(self, grads: Sequence[Tensor | None], rate: Tensor, active: Tensor) -> None:
        """One step in place. rate (R,); replicas with ``active`` (R,) False stay as they are.

        Their averages stay, too: such a replica may be one that waits for others. Parameters whose
        gradient is None are passed over, as by PyTorch: momentum would move them on.
        """
        for p, grad, m, v in zip(self.params, grads, self.first, self.second, strict=True):
            if grad is None:
                continue
            going = spread(active, p)
            square = torch.addcmul(v * self.alpha, grad, grad, value=1 - self.alpha)
            move = m * self.momentum + grad / (square.sqrt() + self.epsilon)
            v.copy_(torch.where(going, square, v))
            m.copy_(torch.where(going, move, m))
            p.copy_(torch.where(going, p - spread(rate, p) * move, p))
