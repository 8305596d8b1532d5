"""Optimisers, for one run and for many at once.

:func:`move` takes a step of a run that trains alone, with PyTorch's own functions. The classes are
for parameters stacked along a leading replica axis. PyTorch's optimisers know one learning rate for
all replicas; here rate, clipping and freezing are per replica and live on the device, so that a
step needs no word from the host and fits into a CUDA graph. With one replica each equals its
namesake in ``torch.optim``.

Settings by name are in :mod:`relength.training.protocols.optimiser`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.adamw import adamw
from torch.optim.rmsprop import rmsprop

from relength.training.protocols.base import Clip
from relength.training.protocols.optimiser import Settings

Tensors = Sequence[Tensor]  # each (R, ...)
Gradients = Sequence[Tensor | None]  # None for a parameter that a loss does not depend on
BETAS, EPSILON = (0.9, 0.999), 1e-8


def spread(per_replica: Tensor, like: Tensor) -> Tensor:
    """(R,) shaped to broadcast against (R, ...)."""
    return per_replica.view(-1, *[1] * (like.ndim - 1))


# --- many runs ------------------------------------------------------------------------------------


def clip_norms_(grads: Gradients, most: float) -> Tensor:
    """Clip each replica's gradients in place to a global norm of ``most``; returns norms (R,)."""
    there = [grad for grad in grads if grad is not None]
    squares = [grad.reshape(len(grad), -1).square().sum(1) for grad in there]
    norms = torch.stack(squares).sum(0).sqrt()
    scale = (most / (norms + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(there, [spread(scale, grad) for grad in there])
    return norms


def clip_values_(grads: Gradients, most: float) -> None:
    """Clip each element of each gradient that there is in place to -most … most."""
    there = [grad for grad in grads if grad is not None]
    torch._foreach_clamp_min_(there, -most)
    torch._foreach_clamp_max_(there, most)


@dataclass
class Adam:
    """Adam (Kingma and Ba, 2015).

    ``decoupled`` weight decay makes it AdamW (Loshchilov and Hutter, 2019).

    first, second  averages of the gradient and of its square
    steps          of each parameter, (R,) each: those that a loss did not reach count no step
    """

    params: Tensors
    weight_decay: float = 0.0
    decoupled: bool = False

    def __post_init__(self) -> None:
        replicas, device = len(self.params[0]), self.params[0].device
        counts = torch.zeros(len(self.params), replicas, dtype=torch.float64, device=device)
        self.step_counts = counts  # in one block, so that corrections are few operations
        self.steps = list(counts.unbind())
        self.first = [torch.zeros_like(p) for p in self.params]
        self.second = [torch.zeros_like(p) for p in self.params]

    @property
    def state(self) -> list[Tensor]:
        """Everything that a checkpoint must keep; loading copies into these tensors."""
        return [self.step_counts, *self.first, *self.second]

    @torch.no_grad()
    def update_(self, grads: Gradients, rate: Tensor, active: Tensor) -> None:
        """One step in place. rate (R,); replicas with ``active`` (R,) False keep their weights.

        Parameters whose gradient is None are passed over, as by PyTorch.
        """
        a, b = BETAS
        reached = [i for i, grad in enumerate(grads) if grad is not None]
        params, first, second, steps, there = (
            [those[i] for i in reached]
            for those in (self.params, self.first, self.second, self.steps, grads)
        )
        torch._foreach_add_(steps, 1)
        if self.weight_decay and not self.decoupled:
            there = torch._foreach_add(there, params, alpha=self.weight_decay)
        torch._foreach_lerp_(first, there, 1 - a)
        torch._foreach_mul_(second, b)
        torch._foreach_addcmul_(second, there, there, 1 - b)
        dtype = params[0].dtype
        taken = self.step_counts.clamp(min=1)  # what was never reached is not moved, either
        sizes = (rate.double() / (1 - a**taken)).to(dtype)  # (P, R)
        roots = (1 - b**taken).sqrt().to(dtype)  # (P, R)
        for i, p, m, v in zip(reached, params, first, second, strict=True):
            new = p
            if self.weight_decay and self.decoupled:
                new = new * (1 - spread(rate, p) * self.weight_decay)
            new = new - spread(sizes[i], p) * m / (v.sqrt() / spread(roots[i], p) + EPSILON)
            p.copy_(torch.where(spread(active, p), new, p))


@dataclass
class RMSprop:
    """RMSprop (Hinton's lecture, PyTorch's variant): square average, optional momentum.

    first, second  averages of the moves (with momentum) and of the squared gradient
    steps          kept as for the others, and without effect
    """

    params: Tensors
    alpha: float = 0.99
    momentum: float = 0.0

    def __post_init__(self) -> None:
        self.first = [torch.zeros_like(p) for p in self.params]
        self.second = [torch.zeros_like(p) for p in self.params]
        self.steps = [p.new_zeros(len(p)) for p in self.params]

    @property
    def state(self) -> list[Tensor]:
        """Everything that a checkpoint must keep; loading copies into these tensors."""
        return [*self.first, *self.second]

    @torch.no_grad()
    def update_(self, grads: Gradients, rate: Tensor, active: Tensor) -> None:
        """One step in place. rate (R,); replicas with ``active`` (R,) False keep their weights.

        Parameters whose gradient is None are passed over, as by PyTorch: momentum would move them
        on.
        """
        for p, grad, m, v in zip(self.params, grads, self.first, self.second, strict=True):
            if grad is None:
                continue
            v.mul_(self.alpha).addcmul_(grad, grad, value=1 - self.alpha)
            m.mul_(self.momentum).add_(grad / (v.sqrt() + EPSILON))
            p.copy_(torch.where(spread(active, p), p - spread(rate, p) * m, p))


# --- one run --------------------------------------------------------------------------------------


class Moments(NamedTuple):
    """The memory of an optimiser: its averages for each parameter of one run, by name.

    first, second  averages of the gradient (of the moves, in RMSprop) and of its square
    steps          how many it has taken
    """

    first: dict[str, Tensor]
    second: dict[str, Tensor]
    steps: dict[str, Tensor]

    @classmethod
    def start(cls, model: torch.nn.Module) -> "Moments":
        """Before the first step."""
        named = dict(model.named_parameters())
        zeros = ({name: torch.zeros_like(w) for name, w in named.items()} for _ in range(2))
        return cls(*zeros, {name: torch.zeros((), device=w.device) for name, w in named.items()})


Lists = list[Tensor]


def _adam(
    function: Callable[..., None],
    settings: Any,
    rate: float,
    weights: Lists,
    grads: Lists,
    first: Lists,
    second: Lists,
    steps: Lists,
) -> None:
    function(
        weights,
        grads,
        exp_avgs=first,
        exp_avg_sqs=second,
        max_exp_avg_sqs=[],
        state_steps=steps,
        fused=True,
        amsgrad=False,
        beta1=BETAS[0],
        beta2=BETAS[1],
        lr=rate,
        weight_decay=settings.weight_decay,
        eps=EPSILON,
        maximize=False,
    )


def _rmsprop(
    settings: Any,
    rate: float,
    weights: Lists,
    grads: Lists,
    first: Lists,
    second: Lists,
    steps: Lists,
) -> None:
    rmsprop(
        weights,
        grads,
        square_avgs=second,
        grad_avgs=[],
        momentum_buffer_list=first,
        state_steps=steps,
        foreach=True,
        lr=rate,
        alpha=settings.smoothing,
        eps=EPSILON,
        weight_decay=0.0,
        momentum=settings.momentum,
        centered=False,
    )


# --- by name --------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """The two forms of an optimiser: a class for many runs, and a step of one run."""

    stacked: Callable[[Tensors, Any], Adam | RMSprop]
    alone: Callable[..., None]


KINDS = {
    "adam": Kind(lambda params, its: Adam(params, its.weight_decay), partial(_adam, adam)),
    "adamw": Kind(
        lambda params, its: Adam(params, its.weight_decay, decoupled=True), partial(_adam, adamw)
    ),
    "rmsprop": Kind(lambda params, its: RMSprop(params, its.smoothing, its.momentum), _rmsprop),
}


def stacked(settings: Settings, params: Tensors) -> Adam | RMSprop:
    """The optimiser of many runs."""
    return KINDS[settings.name].stacked(params, settings)


@torch.no_grad()
def move(settings: Settings, model: torch.nn.Module, moments: Moments, rate: float) -> None:
    """Move the weights of one run that have a gradient by one step.

    PyTorch's optimisers as functions. As objects they import PyTorch's compiler, to tell it to
    leave them alone, which takes a second of every process.
    """
    moving = [
        (weight, weight.grad, *(of[name] for of in moments))
        for name, weight in model.named_parameters()
        if weight.grad is not None
    ]
    if moving:
        KINDS[settings.name].alone(settings, rate, *map(list, zip(*moving, strict=True)))


class Clipping(NamedTuple):
    """The two forms of a limit: on the gradients of many runs, and on those of one model."""

    stacked: Callable[[Gradients, float], Any]
    alone: Callable[[Iterable[Tensor], float], Any]


CLIPPING = {
    "norm": Clipping(clip_norms_, torch.nn.utils.clip_grad_norm_),
    "value": Clipping(clip_values_, torch.nn.utils.clip_grad_value_),
}


def clip_(grads: Gradients, clip: Clip | None) -> None:
    """Clip each replica's gradients in place, as a protocol says."""
    if clip is not None:
        CLIPPING[clip.by].stacked(grads, clip.most)


def clip_model_(model: torch.nn.Module, clip: Clip | None) -> None:
    """Clip the gradients of a model in place, as a protocol says."""
    if clip is not None:
        CLIPPING[clip.by].alone(model.parameters(), clip.most)
