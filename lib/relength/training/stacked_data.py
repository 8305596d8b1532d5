"""The samples of many runs on one device, with a leading replica axis."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from relength.tasks.base import PAD
from relength.tasks.batch import Batch
from relength.training.evaluate import BATCH_SIZE

Widths = tuple[int, ...]  # of a batch's padded axes, in the order of Batch.counts
Samples = tuple[Tensor, ...]  # the fields of a batch in order, (R, B, …) each


class StackedData:
    """One split of the data, of all replicas.

    all  a batch whose fields have a leading replica axis, (R, N, …)
    """

    def __init__(self, all: Batch):
        self.all = all

    @classmethod
    def of(cls, batches: Sequence[Batch], device: str) -> "StackedData":
        """Stack batches of equal size, padded to the longest of them."""
        kind = type(batches[0])

        def stacked(name: str) -> Tensor:
            tensors = [getattr(batch, name) for batch in batches]
            if name in kind.LENGTHS:
                width = max(t.shape[1] for t in tensors)
                tensors = [
                    F.pad(t, (0, 0) * (t.ndim - 2) + (0, width - t.shape[1]), value=PAD)
                    for t in tensors
                ]
            return torch.stack(tensors)

        return cls(kind(*(stacked(name) for name in kind.names())).to(device))

    @property
    def items(self) -> int:
        """Samples per replica."""
        return self.all.tensors[0].shape[1]

    @property
    def most(self) -> Widths:
        """The widths that hold every sample."""
        axes = {count: getattr(self.all, name).shape[2] for name, count in self.all.LENGTHS.items()}
        return tuple(axes[count] for count in self.all.counts())

    @cached_property
    def _host_lengths(self) -> tuple[np.ndarray, ...]:
        return tuple(getattr(self.all, name).cpu().numpy() for name in self.all.counts())

    def widths(self, index: np.ndarray) -> Widths:
        """Longest of samples (R, B) of all replicas; looks at the host's copy."""
        return tuple(int(np.take_along_axis(x, index, 1).max()) for x in self._host_lengths)

    def gather(self, index: Tensor, widths: Widths) -> Samples:
        """The fields of samples (R, B), padded to widths."""
        width = dict(zip(self.all.counts(), widths, strict=True))

        def rows(name: str) -> Tensor:
            field = getattr(self.all, name)
            if name in self.all.LENGTHS:
                field = field[:, :, : width[self.all.LENGTHS[name]]]
            places = index.view(*index.shape, *[1] * (field.ndim - 2))
            return field.gather(1, places.expand(-1, -1, *field.shape[2:]))

        return tuple(rows(name) for name in self.all.names())

    @cached_property
    def _by_length(self) -> dict[int | None, list[tuple[Tensor, Widths]]]:
        return {}

    def by_length(self, items: int | None = None) -> list[tuple[Tensor, Widths]]:
        """Indices (R, B) of samples of similar input length, and their widths.

        All samples, or the first ``items`` by length. Sorted once: samples stay as they are.
        """
        if items not in self._by_length:
            lengths = self.all.input_lengths
            order = lengths.cpu().numpy().argsort(axis=1, kind="stable")[:, :items]
            chunks = [order[:, i : i + BATCH_SIZE] for i in range(0, order.shape[1], BATCH_SIZE)]
            self._by_length[items] = [
                (torch.from_numpy(chunk).to(lengths.device), self.widths(chunk)) for chunk in chunks
            ]
        return self._by_length[items]

    def of_replica(self, replica: int) -> Batch:
        """The samples of one replica, padded as in the stack."""
        return self.all.map(lambda tensor: tensor[replica])

    def keep(self, replicas: Tensor) -> "StackedData":
        """The data of some replicas."""
        return StackedData(self.all.map(lambda tensor: tensor[replicas]))
