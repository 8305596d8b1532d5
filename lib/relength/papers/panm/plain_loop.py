"""The plain loop that the training speed of PANM is measured against. Frozen: a yardstick is never
made faster.

PANM (released arm) as its authors' loop goes about it: addresses laid out sample by sample, modules
of PyTorch called for every pointer at every step, tensors time-major. It has the sizes and the
arithmetic of that arm, the confused read-back included.

Nothing but :mod:`relength.bench.speed` uses it.
"""

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.tasks.batch import Batch


class PlainPANM(nn.Module):
    """PANM as released, one pointer, one step, one sample's addresses at a time."""

    def __init__(self, input_size: int, classes: int, size: int = 128, bits: int = 8):
        super().__init__()
        d, self.bits = size, bits
        self.encoder = nn.GRU(input_size, d, bidirectional=True)
        self.cells = nn.ModuleList(nn.GRU(bits, d) for _ in range(2))
        self.addresses = nn.ModuleList(nn.Linear(bits, bits) for _ in range(2))
        self.queries = nn.ModuleList(nn.Linear(d, d) for _ in range(2))
        self.attentions = nn.ModuleList(
            nn.MultiheadAttention(d, 1, kdim=bits, vdim=d) for _ in range(2)
        )
        self.relate = nn.Linear(2 * d, d)
        self.relation = nn.MultiheadAttention(d, 1, dropout=0.5)
        self.content, self.v = nn.Linear(2 * d, d), nn.Parameter(torch.rand(d))
        self.controller = nn.GRU(input_size + 3 * d, d)
        self.mix, self.output = nn.Linear(2 * d, d), nn.Linear(4 * d, classes)
        self.table = torch.tensor(
            [[float(address >> bit & 1) for bit in range(bits)] for address in range(2**bits)]
        )

    def bank(self, length: int, batch: int) -> Tensor:
        """Addresses (length, batch, bits), laid out for one sample after the other."""
        bank = torch.zeros(length, batch, self.bits)
        for b in range(batch):
            shift = random.randint(0, len(self.table))
            bank[:, b] = torch.roll(self.table, shift, dims=0)[:length]
        return bank

    def forward(self, inputs: Tensor, steps: int) -> Tensor:
        """Scores (steps, B, classes) for inputs (S, B, C)."""
        length, batch, _ = inputs.shape
        both, last = self.encoder(inputs)
        d = both.shape[2] // 2
        memory, h = both[:, :, :d] + both[:, :, d:], last[:1]
        bank = self.bank(length, batch)
        table = bank.view(batch, length, -1)
        pointers = [bank[0], bank[-1]]
        states = [torch.zeros(1, batch, d) for _ in range(2)]
        nothing, scores = torch.zeros(1, batch, inputs.shape[2]), []
        for _ in range(steps):
            values = []
            for i in range(2):
                _, states[i] = self.cells[i](pointers[i][None], states[i])
                value, weights = self.attentions[i](
                    self.queries[i](states[i]), self.addresses[i](bank), memory
                )
                pointers[i] = (weights @ table).squeeze(1)
                values.append(value)
            mode1 = torch.cat(values, dim=2)
            asked = torch.cat([h.expand(length, -1, -1), memory], dim=2).transpose(0, 1)
            energies = torch.relu(self.content(asked)) @ self.v
            context = torch.softmax(energies, dim=1)[:, None] @ memory.transpose(0, 1)
            context = context.transpose(0, 1)
            _, h = self.controller(torch.cat([nothing, mode1, context], dim=2), h)
            mode2, _ = self.relation(self.relate(mode1), memory, memory)
            written = self.mix(torch.cat([h, context], dim=2))
            scores.append(self.output(torch.cat([written, mode1, mode2], dim=2)).squeeze(0))
        return torch.stack(scores)


class PlainPANMLoop:
    """Trains :class:`PlainPANM`, one batch per call of :meth:`train_step`."""

    def __init__(self, input_size: int, classes: int):
        self.model = PlainPANM(input_size, classes)
        self.optimiser = torch.optim.RMSprop(
            self.model.parameters(), lr=1e-4, alpha=0.95, momentum=0.9
        )

    def train_step(self, batch: Batch) -> tuple[float, float]:
        """Loss and token accuracy of the batch, fetched to Python."""
        targets = batch.targets.T
        self.optimiser.zero_grad()
        scores = self.model(batch.inputs.transpose(0, 1), len(targets))
        loss = F.cross_entropy(scores.flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_value_(self.model.parameters(), 10.0)
        self.optimiser.step()
        return loss.item(), (scores.argmax(2) == targets).float().mean().item()
