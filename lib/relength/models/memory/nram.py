"""Neural Random-Access Machine: a controller wires up integer functions, registers and a memory.

Source: Kurach, Andrychowicz and Sutskever, "Neural random-access machines" (2016), Section 3.

| paper | here | shape |
| --- | --- | --- |
| r_1 … r_R, registers | ``registers`` | (B, R, M) |
| 𝓜, memory tape | ``memory`` | (B, M, M) |
| a_i, b_i, softmax over registers and earlier modules | ``chosen`` | (B, 1 or 2, ·) |
| o_i = m_i(a_i, b_i) | outputs of the modules | (B, M) each |
| c_i, softmax over registers and modules | new value of register i | (B, R, ·) |

The 14 modules are the paper's, in its order: READ, ZERO, ONE, TWO, :data:`FUNCTIONS`, WRITE.
Integers are distributions over {0, …, M-1} (relength.models.memory.nram_modules). Of the registers
the controller sees only P(r_i = 0), so that nothing that is learned depends on M.

That machine finds its input on the tape and leaves its answer there. How the authors of PANM gave
it sequences of vectors is not known; here

* the controller, an LSTM, also gets the input vector, and takes one step per vector;
* the symbol that is read is one more register, which modules can use and nothing can change; it
  holds 0 where no symbol is read;
* scores are linear in the controller's output and in P(r_i = symbol) for all registers and symbols;
* tape and registers begin with 0 everywhere, and the willingness to finish is left out, since the
  length of an answer is given.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.models.memory import nram_modules as modules
from relength.models.memory.configs import NRAMConfig
from relength.models.memory.machine import LearnedLSTMController, Machine
from relength.models.recurrence import LSTMState

# Between READ, ZERO, ONE and TWO on one side and WRITE on the other: the name of a module, how many
# integers it takes, and what it makes of them.
FUNCTIONS: tuple[tuple[str, int, Callable[..., Tensor]], ...] = (
    ("INC", 1, modules.increment),
    ("ADD", 2, modules.add),
    ("SUB", 2, modules.subtract),
    ("DEC", 1, modules.decrement),
    ("LESS-THAN", 2, modules.less_than),
    ("LESS-OR-EQUAL-THAN", 2, modules.less_or_equal),
    ("EQUALITY-TEST", 2, modules.equal),
    ("MIN", 2, modules.minimum),
    ("MAX", 2, modules.maximum),
)
CONSTANTS = (0, 1, 2)


class NRAMState(NamedTuple):
    """The state that the machine carries from step to step; symbols and shapes in the table
    above.
    """

    controller: LSTMState
    registers: Tensor
    memory: Tensor


class NRAM(Machine):
    """Controller, circuit, registers, tape."""

    def __init__(self, config: NRAMConfig, input_size: int, classes: int):
        super().__init__()
        if config.cells < classes:
            raise RelengthError(
                f"NRAM with {config.cells} cells has no integers for {classes} symbols: "
                f"choose at least {classes} cells."
            )
        self.config, self.classes = config, classes
        r = config.registers
        self.controller = LearnedLSTMController(input_size + r, config.hidden_size)
        sources, self.circuit = r + 1, []  # registers, symbol; then every module that has an output
        arities = [1, 0, 0, 0, *(arity for _, arity, _ in FUNCTIONS)]
        for arity in arities:
            self.circuit.append((arity, sources))
            sources += 1
        self.circuit += [(2, sources), (r, sources)]  # WRITE, the registers' new values
        self.wiring = nn.Linear(config.hidden_size, sum(n * k for n, k in self.circuit))
        self.output = nn.Linear(config.hidden_size + r * classes, classes)

    def start(self, batch: int) -> NRAMState:
        r, m = self.config.registers, self.config.cells
        zero = modules.constant(0, self.output.weight.new_zeros(batch, m, m))
        return NRAMState(self.controller.start(batch), zero[:, :1].expand(-1, r, -1), zero)

    def step(self, x: Tensor, state: NRAMState) -> tuple[Tensor, NRAMState]:
        seen = torch.cat([x, state.registers[:, :, 0]], dim=1)  # x_t, P(r_i = 0)
        h, controller = self.controller.step(seen, state.controller, self.linear)
        registers, memory = self.run(self.wiring(h), self.symbol(x), state)
        symbols = registers[:, :, : self.classes].flatten(1)
        return torch.cat([h, symbols], dim=1), NRAMState(controller, registers, memory)

    def symbol(self, x: Tensor) -> Tensor:
        """The symbol of an input vector as an integer (B, M), 0 where it has none."""
        known = F.pad(x[:, : self.classes], (0, self.config.cells - self.classes))
        zero = modules.constant(0, known)
        return known + (1 - known.sum(1, keepdim=True)) * zero

    def run(self, wiring: Tensor, symbol: Tensor, state: NRAMState) -> tuple[Tensor, Tensor]:
        """One pass through the circuit: new registers (B, R, M) and memory (B, M, M).

        wiring (B, ·): logits of every choice of an input
        """
        parts = iter(wiring.split([n * k for n, k in self.circuit], dim=1))
        values = [*state.registers.unbind(1), symbol]

        def chosen(arity: int) -> Tensor:
            """Inputs (B, arity, M) of the next module."""
            known = torch.stack(values, dim=1)
            choice = next(parts).unflatten(1, (arity, known.shape[1]))
            return torch.softmax(choice, dim=2) @ known

        values.append(modules.read(state.memory, *chosen(1).unbind(1)))
        for number in CONSTANTS:
            next(parts)  # takes no input
            values.append(modules.constant(number, symbol))
        for _, arity, function in FUNCTIONS:
            values.append(function(*chosen(arity).unbind(1)))
        memory = modules.write(state.memory, *chosen(2).unbind(1))
        return chosen(self.config.registers), memory
