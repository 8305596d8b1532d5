"""A causal language model that reads a prompt and writes the answer after it, and PANM on top.

Source: Le et al., "Plug, Play, and Generalize: Length Extrapolation with PANM", Section 3.5 and
Appendix D.5, on Llama-2 (Touvron et al., 2023). The network is that of the library transformers,
the adapters are those of peft. Prompts of a batch end at one place: what is shorter begins later,
and its mask says so.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.kernels.hashing import fork
from relength.models.free_running import first_values
from relength.models.language.backbones import backbone
from relength.models.language.causal_configs import CausalConfig, CausalPANMConfig
from relength.models.pointers.attention import evaluation_key
from relength.models.pointers.panm import PANM, Reading
from relength.streams import stream
from relength.tasks.base import PAD
from relength.tasks.batch import Batch

TOKENS = 2**15  # that are read and written at once when nothing is learned
SMALL = 0.02  # sd of the first values, as Llama's own


class Writing(NamedTuple):
    """The state between two steps.

    cache  keys and values of what was read and written, the library's own
    mask   (B, S + t), True where there is a token
    last   (B, 1, d) the last vector
    head   what the subclass keeps
    """

    cache: Any
    mask: Tensor
    last: Tensor
    head: Any


class CausalModel(nn.Module):
    """Scores of the next token (B, T, vocabulary), by the language model's own last layer.

    fused  has no effect: the library chooses its kernels
    """

    fused = True

    def __init__(self, config: CausalConfig, vocabulary_size: int):
        super().__init__()
        self.config = config
        self.network, self.scoring, self.width, self.end = backbone(config, vocabulary_size)
        self.frozen = bool(config.weights)
        table = getattr(self.network.config, "max_position_embeddings", None)  # Bloom has none
        self.most = min(config.positions, table or config.positions)

    def initialise(self, seed: int) -> "CausalModel":
        """Draw all weights that are trained from the run's own streams, one per parameter.

        Maps and vectors of tokens from N(0, 0.02²), adapters as peft has them, PANM as ever.
        """
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                numbers = self._first(name, parameter, stream(seed, "initialisation", name))
                if numbers is not None:
                    parameter.copy_(torch.as_tensor(numbers))
        return self

    def _first(
        self, name: str, parameter: Tensor, random: np.random.Generator
    ) -> np.ndarray | None:
        if not name.startswith(("network", "scoring")):
            return first_values(self, name, random)
        if "lora_B" in name:
            return np.zeros(parameter.shape)
        if "lora_A" in name:
            bound = 1 / np.sqrt(parameter.shape[1])
            return random.uniform(-bound, bound, parameter.shape)
        return random.normal(0, SMALL, parameter.shape) if parameter.ndim > 1 else None

    def named_parameters(self, *given: Any, **asked: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters that are trained: of a pretrained network adapters and the head alone."""
        every = super().named_parameters(*given, **asked)
        return ((name, weight) for name, weight in every if weight.requires_grad)

    def state_dict(self, *given: Any, **asked: Any) -> dict[str, Any]:
        """Return what a checkpoint keeps: nothing of a pretrained network but its adapters."""
        every = super().state_dict(*given, **asked)
        if not self.frozen:
            return every
        trained = {name for name, _ in self.named_parameters()}
        return {name: value for name, value in every.items() if name in trained}

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> Any:
        return super().load_state_dict(state, strict=strict and not self.frozen)

    def forward(self, batch: Batch, key: Tensor | None = None) -> Tensor:
        """Next-token scores (B, T, vocabulary) under teacher forcing.

        key: of this step's base addresses, None when evaluating
        """
        steps = batch.targets.shape[1]
        prompt, mask = at_the_end(batch.inputs, batch.input_lengths)
        tokens = torch.cat([prompt, batch.targets[:, :-1]], dim=1)
        vectors = self.read(tokens, F.pad(mask, (0, steps - 1), value=True)).last_hidden_state
        size = prompt.shape[1]
        return self.scores(vectors[:, :size], vectors[:, size - 1 :], batch.input_lengths, key)

    def read(self, tokens: Tensor, mask: Tensor, cache: Any = None) -> Any:
        """The library's output for tokens (B, T) after those in the cache; mask of all of them.

        Raises RelengthError where the text is longer than the table of positions.
        """
        if mask.shape[1] > self.most:
            raise RelengthError(
                f"A text of {mask.shape[1]} tokens does not fit into {self.most} "
                "positions: choose shorter tests, or a model that reads more."
            )
        places = (mask.cumsum(1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
        return self.network(
            input_ids=tokens,
            attention_mask=mask.long(),
            position_ids=places,
            past_key_values=cache,
            use_cache=cache is not None,
        )

    def scores(
        self, prompt: Tensor, vectors: Tensor, lengths: Tensor, key: Tensor | None
    ) -> Tensor:
        """Score the vocabulary (B, T, vocabulary).

        vectors  (B, T, d), those before each token
        prompt   (B, S, d), the prompt's vectors; the last ones of each row count
        """
        return self.scoring(vectors)

    @torch.no_grad()
    def generate(
        self, batch: Batch, steps: int, keep_weights: bool = False
    ) -> tuple[Tensor, dict[str, Tensor] | None]:
        """The likeliest tokens (B, steps), each fed back; the model's keys and values are kept.

        After an end token nothing but end tokens is written.
        """
        size = max(TOKENS // (batch.inputs.shape[1] + steps), 1)
        parts = [self._written(part, steps) for part in batch.chunks(size)]
        return torch.cat(parts), {} if keep_weights else None

    def _written(self, batch: Batch, steps: int) -> Tensor:
        state = self.start(batch, steps)
        tokens = torch.full((len(batch), steps), self.end, device=batch.inputs.device)
        ended = torch.zeros(len(batch), dtype=torch.bool, device=batch.inputs.device)
        for t in range(steps):
            scores, state = self.next(t, state)
            tokens[:, t] = torch.where(ended, self.end, scores.argmax(1))
            ended |= tokens[:, t] == self.end
            if t + 1 == steps or bool(ended.all()):
                break
            state = self.heard(tokens[:, t], state)
        return tokens

    def start(self, batch: Batch, steps: int) -> Writing:
        """The state after a prompt, before the first of ``steps`` tokens."""
        from transformers import DynamicCache

        prompt, mask = at_the_end(batch.inputs, batch.input_lengths)
        read = self.read(prompt, mask, DynamicCache())
        vectors = read.last_hidden_state
        head = self.begin(vectors, batch.input_lengths, steps)
        return Writing(read.past_key_values, mask, vectors[:, -1:], head)

    def heard(self, token: Tensor, state: Writing) -> Writing:
        """The state once a token (B,) is read, too."""
        mask = F.pad(state.mask, (0, 1), value=True)
        read = self.read(token[:, None], mask, state.cache)
        return state._replace(mask=mask, last=read.last_hidden_state)

    def begin(self, prompt: Tensor, lengths: Tensor, steps: int) -> Any:
        """The state of the head between steps."""

    def next(self, t: int, state: Writing) -> tuple[Tensor, Writing]:
        """Scores (B, vocabulary) of the token of step t, and the state then."""
        return self.scoring(state.last)[:, 0], state


class CausalPANM(CausalModel):
    """A causal model with pointers over the prompt's vectors; PANM's controller scores tokens."""

    config: CausalPANMConfig

    def __init__(self, config: CausalPANMConfig, vocabulary_size: int):
        super().__init__(config, vocabulary_size)
        self.scoring = None  # the controller's g^o is in its place
        self.panm = PANM(
            nn.Identity(),
            n_mode1=config.n_mode1,
            n_mode2=config.n_mode2,
            bits=config.bits,
            memory_size=self.width,
            classes=vocabulary_size,
            decoder_size=self.width,
            hidden_size=config.pointer_size,
            mlp_size=config.mlp_size,
            temperature=config.temperature,
        )

    def scores(
        self, prompt: Tensor, vectors: Tensor, lengths: Tensor, key: Tensor | None
    ) -> Tensor:
        reading, h = self.pointed(prompt, lengths, vectors.shape[1], key)
        return self.panm.controller(reading, vectors, h)[0]

    def pointed(
        self, prompt: Tensor, lengths: Tensor, steps: int, key: Tensor | None
    ) -> tuple[Reading, Tensor]:
        """Return what pointers read of a prompt (B, S, d), and the controller's first state."""
        memory = at_the_beginning(prompt, lengths)
        return self.panm.read(memory, steps, self.base(memory, key), lengths=lengths)

    def base(self, memory: Tensor, key: Tensor | None) -> Tensor:
        """Base addresses (B,)."""
        if key is None and self.config.base_in_tests == "zero":
            return torch.zeros(len(memory), dtype=torch.int64, device=memory.device)
        key = evaluation_key(memory.device) if key is None else fork(key, 0)
        return self.panm.bank.random_base(len(memory), key)

    def begin(self, prompt: Tensor, lengths: Tensor, steps: int) -> tuple[Reading, Tensor]:
        return self.pointed(prompt, lengths, steps, None)

    def next(self, t: int, state: Writing) -> tuple[Tensor, Writing]:
        reading, h = state.head
        scores, h = self.panm.controller(reading.at(t), state.last, h)
        return scores[:, 0], state._replace(head=(reading, h))


def at_the_end(tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens (B, S) moved so that all rows end at the last place, and a mask of where they are.

    >>> at_the_end(torch.tensor([[5, 6, 0]]), torch.tensor([2]))[0].tolist()
    [[0, 5, 6]]
    """
    places = torch.arange(tokens.shape[1], device=tokens.device) - (
        tokens.shape[1] - lengths[:, None]
    )
    mask = places >= 0
    return torch.where(mask, tokens.gather(1, places.clamp(min=0)), PAD), mask


def at_the_beginning(vectors: Tensor, lengths: Tensor) -> Tensor:
    """Vectors (B, S, d) of which the last ``lengths`` count, moved so that these come first."""
    size = vectors.shape[1]
    places = torch.arange(size, device=vectors.device) + (size - lengths[:, None])
    return vectors.gather(1, places.clamp(max=size - 1)[:, :, None].expand_as(vectors))
