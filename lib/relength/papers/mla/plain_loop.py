"""The plain loop that the training speed of OneStepAttn is measured against. Frozen: a yardstick
is never made faster.

OneStepAttn (released arm) the straightforward way: ``GRUCell`` stepped in Python in both encoder
directions and in the decoder, attention and every projection per token, loss and accuracy fetched
with ``.item()`` after each step, PyTorch's default number of threads. It has the sizes and the
arithmetic of :class:`relength.models.Seq2Seq`.

Nothing but :mod:`relength.bench.speed` uses it.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.tasks.base import SOS
from relength.tasks.batch import Batch


class PlainOneStep(nn.Module):
    """Sequence-to-sequence model with OneStepAttn, one token at a time."""

    def __init__(self, vocabulary_size: int, embedding_size: int = 64, hidden_size: int = 128):
        super().__init__()
        e, d = embedding_size, hidden_size
        self.embedding = nn.Embedding(vocabulary_size, e)
        self.start, self.end = nn.Parameter(torch.zeros(e)), nn.Parameter(torch.zeros(e))
        self.forward_cell, self.backward_cell = nn.GRUCell(e, d // 2), nn.GRUCell(e, d // 2)
        self.direction = nn.Linear(d, 1)
        self.hidden = nn.Linear(d, d)
        self.sigma, self.step = nn.Linear(d, 1, bias=False), nn.Linear(d, 1, bias=False)
        self.inner_value = nn.Linear(d, d)
        self.value, self.output = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.decoder = nn.GRUCell(d + e, d)
        self.to_embedding = nn.Linear(d, e)
        self.token_bias = nn.Parameter(torch.zeros(vocabulary_size))
        self.dropout = nn.Dropout(0.5)

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        n = batch.input_lengths + 2
        embedded = self.embedding(batch.inputs)
        size, width = len(n), int(n.max())
        x = torch.zeros(size, width, embedded.shape[2])
        x[:, 0] = self.start
        x[:, 1:-1] = embedded
        x[torch.arange(size), n - 1] = self.end
        mask = torch.arange(width) < n[:, None]
        left, h = [], torch.zeros(size, self.forward_cell.hidden_size)
        for t in range(width):
            h = torch.where(mask[:, t, None], self.forward_cell(x[:, t], h), h)
            left.append(h)
        right, g = [], torch.zeros(size, self.backward_cell.hidden_size)
        for t in reversed(range(width)):
            g = torch.where(mask[:, t, None], self.backward_cell(x[:, t], g), g)
            right.append(g)
        e = torch.cat([torch.stack(left, 1), torch.stack(right[::-1], 1)], dim=2)
        return e, mask, torch.cat([h, g], dim=1)

    def forward(self, batch: Batch) -> Tensor:
        e, mask, h = self.encode(batch)
        n = batch.input_lengths + 2
        e = self.dropout(e)
        i = torch.arange(e.shape[1])
        turned = torch.where(mask, n[:, None] - 1 - i, i)
        gate = torch.sigmoid(5 * self.direction(h))[:, :, None]
        e = gate * e + (1 - gate) * e.gather(1, turned[:, :, None].expand_as(e))
        v = self.value(F.leaky_relu(self.inner_value(e)))
        position = i / (n - 1)[:, None]
        past = torch.zeros(len(n))
        token = torch.full((len(n),), SOS)
        logits = []
        for t in range(batch.targets.shape[1]):
            hidden = self.hidden(h)
            sigma = (F.relu(self.sigma(hidden)) + 0.27) / n[:, None]
            centre = past + torch.sigmoid(5 * self.step(hidden)).squeeze(1) / (n - 1)
            focus = torch.exp(-((position - centre[:, None]) ** 2) / (2 * sigma**2)) * mask
            weights = focus / (focus.sum(1, keepdim=True) + 1e-20)
            past = (weights * position).sum(1)
            attended = self.output(torch.bmm(weights[:, None], v).squeeze(1))
            h = self.decoder(torch.cat([attended, self.embedding(token)], dim=1), h)
            logits.append(self.to_embedding(h) @ self.embedding.weight.T + self.token_bias)
            token = batch.targets[:, t]
        return torch.stack(logits, dim=1)


class PlainLoop:
    """Trains :class:`PlainOneStep`, one batch per call of :meth:`train_step`."""

    def __init__(self, vocabulary_size: int):
        self.model = PlainOneStep(vocabulary_size)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.0)

    def train_step(self, batch: Batch) -> tuple[float, float]:
        """Loss and exact-match accuracy of the batch, fetched to Python."""
        logits = self.model(batch)
        p = torch.softmax(logits, 2).gather(2, batch.targets[:, :, None]).squeeze(2)
        loss = -((p + 1e-9).log() * batch.mask).sum() / batch.mask.sum()
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimiser.step()
        right = (logits.argmax(2) == batch.targets) | ~batch.mask
        return loss.item(), right.all(1).float().mean().item()
