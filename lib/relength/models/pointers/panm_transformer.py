"""PANM as the last layer of a Transformer's decoder (Section 3.3 and Appendix D.3 of its paper).

The encoder is that of TRM or TRM+RPE, and its vectors are the memory M, one slot per token of the
source with its start and end marks. The decoder has a layer less than TRM's, attends to the same
vectors, and its vectors are z_t of Eq. 7; the controller writes.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from relength.kernels.hashing import fork
from relength.models.pointers.attention import evaluation_key, quick
from relength.models.pointers.panm import PANM, Reading
from relength.models.pointers.transformer_configs import TransformerPANMConfig
from relength.models.transformers.encoder_decoder import FromSource
from relength.models.transformers.layers import Decoder, Encoder, Written
from relength.tasks.batch import Batch


class Decoding(NamedTuple):
    """The state between two steps: of the decoder, what pointers read, and the controller's h."""

    written: Written
    reading: Reading
    h: Tensor


class TransformerPANM(FromSource):
    """Encoder, pointers over its vectors, decoder, controller."""

    def __init__(self, config: TransformerPANMConfig, vocabulary_size: int):
        super().__init__()
        self.config, d = config, config.width
        kind = {"tokens": vocabulary_size, "universal": False}
        self.encoder = Encoder(config, config.encoder_layers, relative=config.relative, **kind)
        self.decoder = Decoder(config, config.decoder_layers, relative=False, **kind)
        self.panm = PANM(
            nn.Identity(),  # the memory is made outside, where dropout has its keys
            n_mode1=config.n_mode1,
            n_mode2=config.n_mode2,
            bits=config.bits,
            memory_size=d,
            classes=vocabulary_size,
            decoder_size=d,
            hidden_size=config.pointer_size,
            mlp_size=config.mlp_size,
            temperature=config.temperature,
        )

    def forward(self, batch: Batch, key: Tensor | None = None) -> Tensor:
        """Next-token scores (B, T, vocabulary) under teacher forcing; see TransformerSeq2Seq.

        On a CPU, scores behind the end of a target are zero: they are not computed.
        """
        memory, mask, lengths = self.encode(batch, key)
        base, steps = self.base(batch, key), batch.targets.shape[1]
        z = self.decoder(batch.targets, memory, mask, None if key is None else fork(key, 1))
        if quick(self, memory):
            return self.panm.written(memory, mask[:, 0, 0], base, z, batch.target_lengths)
        reading, h = self.panm.read(memory, steps, base, lengths=lengths)
        return self.panm.controller(reading, z, h)[0]

    def base(self, batch: Batch, key: Tensor | None) -> Tensor:
        """Base addresses (B,); one for all would not do, as sources have lengths of their own."""
        device = batch.inputs.device
        if key is None and self.config.base_in_tests == "zero":
            return torch.zeros(len(batch), dtype=torch.int64, device=device)
        key = evaluation_key(device) if key is None else fork(key, 2)
        return self.panm.bank.random_base(len(batch), key)

    def start(self, batch: Batch, steps: int) -> Decoding:
        memory, mask, lengths = self.encode(batch, None)
        reading, h = self.panm.read(memory, steps, self.base(batch, None), lengths=lengths)
        return Decoding(self.decoder.start(memory, mask, steps), reading, h)

    def next(self, token: Tensor, t: int, state: Decoding) -> tuple[Tensor, Decoding]:
        z = self.decoder.step(token, state.written)
        scores, h = self.panm.controller(state.reading.at(t), z, state.h)
        return scores[:, 0], state._replace(h=h)

    def shown(self, batch: Batch, steps: int) -> dict[str, Tensor]:
        """The slots that pointers point at: by start for Mode 1, by number for Mode 2."""
        reading = self.start(batch, steps).reading
        batch_size = len(batch)
        mode1 = {
            f"mode 1, pointer {i} from the {start}": weights.expand(batch_size, -1, -1)
            for i, (start, weights) in enumerate(
                zip(self.panm.starts, reading.mode1_weights, strict=True), start=1
            )
        }
        mode2 = {
            f"mode 2, pointer {i}": weights
            for i, weights in enumerate(reading.mode2_weights, start=1)
        }
        return mode1 | mode2
