"""The DNC whose controller's states are kept small, or close to one another.

Source: Ofner and Kern, "State-Space Constraints Improve the Generalization of the Differentiable
Neural Computer in some Algorithmic Tasks", Secs. II, III and supplement B. Its memory is
google-deepmind/dnc's, as are the three clips at ±20: of the controller's output, of its cell state
and of what the DNC writes.

| paper | here | shape |
| --- | --- | --- |
| χ_t = [x_t; r^1_{t-1}; …; r^R_{t-1}] | ``x`` of a controller's step | (B, X + R·W) |
| h_t, c_t | ``h``, ``c`` | (B, H) |
| c̃_t | ``uncompressed`` | (B, H) |
| W_i, W_f, W_o, W_c one below the other | ``weight`` | (4·H, X + R·W + H) |
| ξ_t = W_ξ·h_t + b_ξ | ``core.to_interface`` | |
| y_t = W_y·h_t + W_r·[r^1_t; …; r^R_t] + b_y | ``output``, both matrices side by side | |
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.kernels import dnc_sequence, late
from relength.models.free_running import FreeRunning
from relength.models.memory import dnc_memory
from relength.models.memory.configs import ConstrainedDNCConfig
from relength.models.memory.dnc import DNCCore
from relength.models.recurrence import Linear
from relength.tasks.batch import Batch


class Cells(NamedTuple):
    """State of a gated controller, (B, H) each.

    uncompressed  what c was before it was compressed or clipped, for portraits
    """

    h: Tensor
    c: Tensor
    uncompressed: Tensor


class GatedController(nn.Module):
    """An LSTM or, with peepholes, one that only its cell state leads from step to step.

    i, f, o = σ(W·[χ_t; s] + b);  c̃_t = f·c_{t-1} + i·tanh(W_c·[χ_t; s] + b_c);  h_t = o·tanh(c̃_t),
    where s is h_{t-1}, or c_{t-1} with peepholes. c_t is tanh(c̃_t) if compressed, else c̃_t.
    """

    def __init__(
        self, input_size: int, hidden_size: int, peepholes: bool, compressed: bool, clip: float
    ):
        super().__init__()
        self.peepholes, self.compressed, self.clip = peepholes, compressed, clip
        self.weight = nn.Parameter(torch.empty(4 * hidden_size, input_size + hidden_size))
        self.bias = nn.Parameter(torch.empty(4 * hidden_size))
        self.first_c = nn.Parameter(torch.empty(hidden_size))
        self.first_h = None if peepholes else nn.Parameter(torch.empty(hidden_size))

    def initial(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Weights by LeCun, biases 0, first states from N(0, 1)."""
        parameter = self.get_parameter(name)
        match name:
            case "weight":
                return lecun(parameter, random)
            case "bias":
                return np.zeros(parameter.shape)
        return random.normal(size=parameter.shape)

    def start(self, batch: int) -> Cells:
        c = self.first_c.expand(batch, -1)
        h = torch.zeros_like(c) if self.first_h is None else self.first_h.expand(batch, -1)
        return Cells(h, c, c)

    def step(self, x: Tensor, state: Cells, linear: Linear = F.linear) -> tuple[Tensor, Cells]:
        last = state.c if self.peepholes else state.h
        gates = linear(torch.cat([x, last], dim=1), self.weight, self.bias)
        if late.triton_asked():
            from relength.kernels import controller_triton

            h, *cells = controller_triton.gates(gates, state.c, self.compressed, self.clip)
            return h, Cells(h, *cells)
        i, f, o, candidate = gates.chunk(4, dim=1)
        new = torch.sigmoid(f) * state.c + torch.sigmoid(i) * torch.tanh(candidate)
        squashed = torch.tanh(new)
        h = torch.sigmoid(o) * squashed  # below 1, so that no clip touches it
        return h, Cells(h, squashed if self.compressed else new.clamp(-self.clip, self.clip), new)

    def control(self) -> dnc_sequence.Control:
        """Make the form of this controller that takes whole sequences, on a CPU."""
        return dnc_sequence.Gated(
            self.weight, self.bias, self.first_c, self.first_h, self.compressed, self.clip
        )


class FeedforwardController(nn.Module):
    """Three layers without a state, the first two with tanh."""

    def __init__(self, input_size: int, hidden_size: int, clip: float):
        super().__init__()
        self.clip = clip
        sizes = (input_size, hidden_size, hidden_size)
        self.layers = nn.ModuleList(nn.Linear(size, hidden_size) for size in sizes)

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        """Weights by Glorot, biases 0."""
        parameter = self.get_parameter(name)
        if parameter.ndim == 1:
            return np.zeros(parameter.shape)
        bound = math.sqrt(6 / sum(parameter.shape))
        return random.uniform(-bound, bound, parameter.shape)

    def start(self, batch: int) -> tuple[()]:
        return ()

    def step(self, x: Tensor, state: tuple[()], linear: Linear = F.linear) -> tuple[Tensor, Any]:
        first, second, third = self.layers
        x = torch.tanh(linear(x, first.weight, first.bias))
        x = torch.tanh(linear(x, second.weight, second.bias))
        return linear(x, third.weight, third.bias).clamp(-self.clip, self.clip), state

    def control(self) -> dnc_sequence.Control:
        """Make the form of this controller that takes whole sequences, on a CPU."""
        return dnc_sequence.Feedforward([*self.parameters()], self.clip)


def lecun(weight: Tensor, random: np.random.Generator) -> np.ndarray:
    """Normal numbers with variance 1 / (inputs of a unit), LeCun et al., 1998."""
    return random.normal(0, 1 / math.sqrt(weight.shape[1]), weight.shape)


class ConstrainedDNC(FreeRunning):
    """A DNC that gets a whole sequence, and of whose outputs the last ones count.

    slots        N; may be made larger, see :meth:`enlarge`
    regularised  whether its row of the paper adds a term on the cell states to the loss
    """

    def __init__(self, config: ConstrainedDNCConfig, channels: int, outputs: int):
        super().__init__()
        self.config, self.slots = config, config.slots
        self.regularised = config.regularised
        d, reads = config.hidden_size, config.read_heads * config.width
        if config.controller == "ffnn":
            controller = FeedforwardController(channels + reads, d, config.clip)
        else:
            controller = GatedController(
                channels + reads,
                d,
                peepholes=config.controller == "peephole",
                compressed=config.constraint in ("compression", "both"),
                clip=config.clip,
            )
        self.core = DNCCore(controller, d, config.width, config.read_heads, dnc_memory.DEEPMIND)
        self.output = nn.Linear(d + reads, outputs)

    def initial_of(self, name: str, random: np.random.Generator) -> np.ndarray:
        """W_y, W_r and W_ξ by LeCun, biases 0."""
        if name.startswith("core.controller."):
            return NotImplemented
        parameter = self.get_parameter(name)
        return np.zeros(parameter.shape) if parameter.ndim == 1 else lecun(parameter, random)

    def enlarge(self, slots: int) -> None:
        """Set the number of slots from now on. No parameter depends on it.

        Raises RelengthError when it is no whole number, or below what the model was trained with.
        """
        if slots != int(slots) or slots < self.config.slots:
            raise RelengthError(
                f"A memory trained with {self.config.slots} slots cannot be made smaller: choose "
                f"{self.config.slots} slots or more, not {slots}."
            )
        self.slots = int(slots)

    def decode(self, inputs: Tensor, steps: int, key: Tensor | None) -> Tensor:
        return self._written(*self._features(inputs)[:2], steps)

    def with_states(self, batch: Batch, key: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Outputs (B, T, K), and c_1, c_2, … of all steps (B, S, H), with gradients.

        Raises RelengthError for a controller without states.
        """
        if self.config.controller == "ffnn":
            raise RelengthError(
                "A feed-forward controller has no cell states: choose the controller lstm or "
                "peephole."
            )
        h, reads, cells = self._features(self._read(batch))
        return self._written(h, reads, batch.targets.shape[1]), cells.transpose(0, 1)

    @torch.no_grad()
    def generate(
        self, batch: Batch, steps: int, keep_weights: bool = False
    ) -> tuple[Tensor, dict[str, Tensor] | None]:
        """Outputs (B, T, K), as training sees them; ``steps`` of a whole set say nothing here."""
        return self(batch), {} if keep_weights else None

    @torch.no_grad()
    def trace_memory(self, batch: Batch) -> dict[str, Tensor]:
        """Trace every step inside, in the plain form; S steps, batch first.

        cells              (B, S, H) c̃_t, as in the paper's portraits; none without a state
        read_modes         (B, S, R, 3) weights of backward, content and forward
        allocation_gates   (B, S), and write_gates
        usage              (B, S, N), and write_weightings
        read_weightings    (B, S, R, N)
        outputs            (B, S, K)
        """
        inputs = self._read(batch)
        state, found = self.core.start(len(inputs), self.slots), []
        for x in inputs.unbind(1):
            features, state = self.core.step(x, state, fused=False)
            orders = self.core.interface(features[:, : self.config.hidden_size])
            shown = {
                "read_modes": orders.read_modes,
                "allocation_gates": orders.allocation_gate[:, 0],
                "write_gates": orders.write_gate[:, 0],
                "usage": state.memory.usage,
                "write_weightings": state.memory.write_weighting,
                "read_weightings": state.memory.read_weightings,
                "outputs": self._clipped(features),
            }
            if state.controller:
                shown["cells"] = state.controller.uncompressed
            found.append(shown)
        return {name: torch.stack([step[name] for step in found], dim=1) for name in found[0]}

    def _features(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """h_t, reads and c_t of all steps, (S, B, ·), for inputs (B, S, X)."""
        config, core = self.config, self.core
        inputs = inputs.transpose(0, 1)
        if self.fused and not late.triton_asked():
            size = dnc_sequence.Size(self.slots, config.width, config.read_heads)
            to = core.to_interface
            return dnc_sequence.sequence(
                core.controller.control(), size, inputs, to.weight, to.bias
            )
        state, found, cells = core.start(inputs.shape[1], self.slots), [], []
        for x in inputs:
            features, state = core.step(x, state, fused=False)
            found.append(features)
            cells.append(state.controller.c if state.controller else features[:, :0])
        h, reads = torch.stack(found).split([config.hidden_size, core.width * core.read_heads], 2)
        return h, reads, torch.stack(cells)

    def _written(self, h: Tensor, reads: Tensor, steps: int) -> Tensor:
        """Outputs (B, steps, K) of the last steps."""
        if steps > len(h):
            raise RelengthError(
                f"A sequence of {len(h)} steps has no {steps} outputs: give targets of {len(h)} "
                "steps or fewer."
            )
        last = slice(len(h) - steps, None)
        return self._clipped(torch.cat([h[last], reads[last]], dim=2)).transpose(0, 1)

    def _clipped(self, features: Tensor) -> Tensor:
        return self.output(features).clamp(-self.config.clip, self.config.clip)
