"""The base of models that write without hearing what they wrote: their decoder's input is zero.

The PANM paper trains all its algorithmic models so (Appendix D.1), after Graves et al. (2014). How
long a target is, is given. Training, testing and writing are then one computation.
"""

import math
from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.kernels import fused as fast
from relength.models.recurrence import GRU, LSTM, Linear
from relength.streams import stream
from relength.tasks.batch import Batch


class FreeRunning(nn.Module, ABC):
    """A model of channels (B, S, C), all of one length, that gives scores (B, T, classes).

    A subclass implements :meth:`decode`, and :meth:`trace` if it has something to look at.

    fused  whether a faster way to the same numbers may be taken, one that vmap cannot batch
    """

    fused = True

    @abstractmethod
    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        """Scores (B, steps, classes) for inputs (B, S, C) of the model's own precision.

        key: of what is drawn inside this optimiser step (relength.kernels.hashing), None when
        evaluating
        """

    @property
    def linear(self) -> Linear:
        """torch.nn.functional.linear, or on a CPU a faster equal of it if ``fused`` allows."""
        return fast.linear if self.fused else F.linear

    def trace(self, inputs: Tensor, steps: int) -> dict[str, Tensor]:
        """Attention weights (B, steps, S) by name, for figures; evaluated, not trained."""
        return {}

    def forward(self, batch: Batch, key: Tensor | None = None) -> Tensor:
        """Scores (B, T, classes) of every token of the targets."""
        return self.decode(self._read(batch), batch.targets.shape[1], key)

    @torch.no_grad()
    def generate(
        self, batch: Batch, steps: int, keep_weights: bool = False
    ) -> tuple[Tensor, dict[str, Tensor] | None]:
        """The likeliest tokens (B, steps) and, on request, what :meth:`trace` shows."""
        inputs = self._read(batch)
        tokens = self.decode(inputs, steps, None).argmax(2)
        return tokens, self.trace(inputs, steps) if keep_weights else None

    def _read(self, batch: Batch) -> Tensor:
        return batch.inputs.to(next(self.parameters()).dtype)

    def initialise(self, seed: int) -> "FreeRunning":
        """Draw all weights from the run's own streams, one stream per parameter.

        Linear maps and recurrent cells as PyTorch draws them. A module that owns other parameters
        says in ``initial(name, random)`` how they start, None where they stay as constructed; one
        that wants its children to start otherwise says so in ``initial_of(name, random)``, with
        NotImplemented for those that should not.
        """
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                numbers = first_values(self, name, stream(seed, "initialisation", name))
                if numbers is not None:
                    parameter.copy_(torch.from_numpy(np.asarray(numbers)))
        return self


def first_values(module: nn.Module, name: str, random: np.random.Generator) -> np.ndarray | None:
    """First values of the parameter ``name`` below ``module``; None where it stays as it is made.

    How a module says what they are, is in :meth:`FreeRunning.initialise`.
    """
    child, _, rest = name.partition(".")
    if rest:
        if hasattr(module, "initial_of"):
            numbers = module.initial_of(name, random)
            if numbers is not NotImplemented:
                return numbers
        return first_values(getattr(module, child), rest, random)
    if hasattr(module, "initial"):
        return module.initial(name, random)
    parameter = getattr(module, name)
    match module:
        case nn.Linear():
            bound = 1 / math.sqrt(module.in_features)
        case GRU() | LSTM():
            bound = module.bound
        case nn.LayerNorm():
            return None
        case _:
            raise TypeError(f"{type(module).__name__} does not say how {name} starts")
    return random.uniform(-bound, bound, parameter.shape)
