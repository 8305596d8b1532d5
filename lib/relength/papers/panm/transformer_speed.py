"""Two ways to train and to decode Transformers on SCAN: ours, PyTorch's own, and without a cache.

PANM's pair is of another kind: it says what share of its backbone's speed is left under it.
"""

from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from relength.bench.pairs import Pair, Ways
from relength.papers.panm.scan_experiments import PANM, TRAINING, spec
from relength.specs.spec import RunSpec
from relength.tasks.scan_cut_offs import LONGEST

if TYPE_CHECKING:
    from torch import Tensor, nn

    from relength.tasks.batch import TokensToTokens

CUT_OFF = 26
BATCHES = 16
DECODED = TRAINING["reduced"]["batch_size"]
MORE = 0.4  # the most that PANM may add to a step's time


def _run(name: str) -> RunSpec:
    return spec("reduced", 0, PANM if name == PANM["name"] else {"name": name}, CUT_OFF)


def _trainer(run: RunSpec) -> Any:
    from relength.training.alone import Trainer

    # What a run is evaluated on is not used here, and takes seconds to encode.
    sizes = {"test_size": 1, "validation_size": 1}
    return Trainer(run.model_copy(update={"task": run.task.model_copy(update=sizes)}))


def beside_pytorch() -> Ways:
    """A step of training, ours and that of ``torch.nn.Transformer`` of equal size."""
    trainer = _trainer(_run("TRM"))
    batches = list(islice(trainer.batches(), BATCHES))
    loop = PyTorchLoop(trainer.spec)
    return _in_turns(batches, trainer.train_step, loop.train_step)


def under_pointers() -> Ways:
    """A step of training, with PANM in place of the last layer of the decoder and without."""
    with_pointers, without = _trainer(_run(PANM["name"])), _trainer(_run("TRM"))
    batches = list(islice(without.batches(), BATCHES))
    return _in_turns(batches, with_pointers.train_step, without.train_step)


def _in_turns(batches: "list[TokensToTokens]", ours: Any, other: Any) -> Ways:
    first, second = cycle(batches), cycle(batches)
    return Ways(lambda: ours(next(first)), lambda: other(next(second)))


def decoding() -> Ways:
    """Greedy decoding of a batch, with kept keys and values, and anew from every prefix."""
    trainer = _trainer(_run("TRM"))
    model = trainer.model.eval()
    batch = next(trainer.batches())
    return Ways(
        lambda: model.generate(batch, LONGEST), lambda: from_prefixes(model, batch, LONGEST)
    )


def from_prefixes(model: "nn.Module", batch: "TokensToTokens", steps: int) -> "Tensor":
    """Tokens (B, steps) by greedy decoding that reads everything written so far at every step."""
    import torch

    from relength.tasks.base import PAD
    from relength.tasks.batch import TokensToTokens

    size = len(batch)
    written = torch.empty((size, 0), dtype=torch.long)
    with torch.no_grad():
        for t in range(1, steps + 1):
            targets = torch.cat([written, torch.full((size, 1), PAD)], dim=1)
            mask, lengths = torch.ones_like(targets, dtype=torch.bool), torch.full((size,), t)
            prefix = TokensToTokens(batch.inputs, targets, mask, batch.input_lengths, lengths)
            written = torch.cat([written, model(prefix)[:, -1:].argmax(2)], dim=1)
    return written


class PyTorchLoop:
    """Trains ``torch.nn.Transformer`` of a run's sizes, between tables of vectors as in the run."""

    def __init__(self, run: RunSpec):
        import torch
        from torch import nn

        sizes, (vocabulary,) = run.model, run.task.shape
        self.run, self.width = run, sizes.width
        self.model = nn.ModuleDict(
            {
                "source": nn.Embedding(vocabulary, sizes.width),
                "target": nn.Embedding(vocabulary, sizes.width),
                "layers": nn.Transformer(
                    sizes.width,
                    sizes.heads,
                    sizes.encoder_layers,
                    sizes.decoder_layers,
                    sizes.inner_size,
                    sizes.dropout,
                    batch_first=True,
                ),
            }
        )
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=run.training.learning_rate)

    def scores(self, batch: "TokensToTokens") -> "Tensor":
        """Next-token scores (B, T, vocabulary) under teacher forcing."""
        import torch
        from torch import nn
        from torch.nn import functional as F

        from relength.models.seq2seq.attention import sinusoid
        from relength.models.transformers.encoder_decoder import marked
        from relength.tasks.base import SOS

        tokens, lengths = marked(batch)
        told = F.pad(batch.targets, (1, -1), value=SOS)
        padding = torch.arange(tokens.shape[1]) >= lengths[:, None]
        ahead = nn.Transformer.generate_square_subsequent_mask(told.shape[1]) < 0

        def placed(name: str, ids: "Tensor") -> "Tensor":
            return self.model[name](ids) + sinusoid(torch.arange(ids.shape[1]).float(), self.width)

        h = self.model["layers"](
            placed("source", tokens),
            placed("target", told),
            tgt_mask=ahead,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return h @ self.model["target"].weight.T

    def train_step(self, batch: "TokensToTokens") -> "Tensor":
        """One optimiser step; returns the loss."""
        from torch.nn.utils import clip_grad_norm_

        loss = self.run.task.loss(self.scores(batch), batch)
        self.optimiser.zero_grad()
        loss.backward()
        clip_grad_norm_(self.model.parameters(), self.run.training.clip_norm)
        self.optimiser.step()
        return loss.detach()


PAIRS = (
    Pair("TRM on SCAN: a step", "ours", "torch.nn.Transformer", 1.0, beside_pytorch),
    Pair(
        f"TRM on SCAN: {LONGEST} tokens of {DECODED} samples",
        "keys and values kept",
        "every prefix read anew",
        5.0,
        decoding,
    ),
    Pair("a step on SCAN", "PANM on TRM", "TRM", 1 / (1 + MORE), under_pointers),
)
