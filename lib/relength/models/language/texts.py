"""Episodes as running text, for models that read word after word."""

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from relength.tasks.base import PAD
from relength.tasks.batch import FactsToAnswer

ROWS = 2**16  # lines of all episodes that are laid out at once when nothing is learned


def texts(batch: FactsToAnswer) -> list[Tensor]:
    """The words of each episode's lines, its question and its prompt, one after the other."""
    line = torch.arange(batch.inputs.shape[1], device=batch.inputs.device)
    lines = line < batch.input_lengths[:, None]
    words = batch.for_decoder[batch.inputs] * lines[:, :, None]  # (B, E, L)
    asked = batch.for_decoder[batch.questions]
    tokens = torch.cat([words.flatten(1), asked, batch.prompts], dim=1)
    there = tokens != PAD
    return list(tokens[there].split(there.sum(1).tolist()))


def ending_together(batch: FactsToAnswer) -> Tensor:
    """Put the :func:`texts` into rows (B, S) of words, padded at the left."""
    backwards = [text.flip(0) for text in texts(batch)]
    return pad_sequence(backwards, batch_first=True, padding_value=PAD).flip(1)


def parts(batch: FactsToAnswer) -> list[FactsToAnswer]:
    """The samples in order, so many at a time that their texts fit into memory."""
    return batch.chunks(max(ROWS // batch.inputs.shape[1], 1))
