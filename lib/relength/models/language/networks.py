"""Pretrained networks as the parts of a model of episodes: an encoder of sentences, a decoder.

Source: "MemReasoner: A Memory-Augmented LLM Architecture for Multi-Hop Reasoning", Sections 3.2 and
4.1, Appendix A.5, and Das et al., "Larimar" (2024). The encoder is a BERT, the decoder any causal
language model of the library transformers: GPT-2, GPT-J and Qwen2.5 in the paper. Tokens are those
of a task: marks first, then the network's own (:mod:`relength.tasks.fact_tables`).

Dropout of the library is off: it draws from no stream of a run.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.models.language.backbones import check_causal, loaded
from relength.tasks import pretrained
from relength.tasks.base import EOS, PAD, SPECIALS

OWN = len(SPECIALS)  # the network's first token


class Reader(nn.Module):
    """Sentences to vectors, by a pretrained encoder.

    width  of a vector
    """

    def __init__(self, name: str):
        super().__init__()
        self.name = name
        self.network = loaded("AutoModel", name, "a BERT").eval()
        if getattr(self.network, "pooler", None) is None:
            raise RelengthError(
                f"The pretrained model {name} does not sum up a sentence in one vector: choose a "
                "BERT as encoder."
            )
        self.width = self.network.config.hidden_size
        cutter = pretrained.tokenizer(name)
        self.begins, self.ends = cutter.cls_token_id, cutter.sep_token_id

    def forward(self, sentences: Tensor) -> Tensor:
        """Vectors (N, d) of sentences (N, L), padded at the right.

        What is pooled is the vector of the token [CLS] before a sentence; [SEP] stands after it.
        Raises RelengthError for a sentence beyond the table of positions.
        """
        lengths = (sentences != PAD).sum(1)
        width = max(int(lengths.max()), 1) + 1
        _fits(self.network, width + 1, self.name)
        tokens = F.pad((sentences - OWN).clamp(min=0), (0, 1))[:, :width]
        place = torch.arange(width, device=tokens.device)
        tokens = torch.where(place == lengths[:, None], self.ends, tokens)
        return self.network(
            input_ids=F.pad(tokens, (1, 0), value=self.begins),
            attention_mask=F.pad(place <= lengths[:, None], (1, 0), value=True).long(),
        ).pooler_output


class Writer(nn.Module):
    """Tokens to scores of the next, by a pretrained causal language model.

    Marks of the beginning and the end are new tokens, as in Larimar; their vectors are those that
    score them, too, and start small.

    width  of a token's vector
    past   numbers of a past position of all layers, key or value
    """

    def __init__(self, name: str, words: int):
        super().__init__()
        self.name, self.tokens = name, words - OWN
        whole = loaded("AutoModelForCausalLM", name, "a causal language model").eval()
        check_causal(whole, name)
        self.network, self.scoring = whole.get_decoder(), whole.get_output_embeddings()
        config = whole.config
        self.width, self.layers = config.hidden_size, config.num_hidden_layers
        self.heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or self.width // config.num_attention_heads
        self.past = self.layers * self.heads * size
        self.marks = nn.Embedding(OWN, self.width)
        if self.scoring.weight.shape[0] < self.tokens:
            raise RelengthError(
                f"A text of {self.tokens} tokens is not for {name}, which has "
                f"{self.scoring.weight.shape[0]}: give task and model the same decoder."
            )

    def features(
        self, tokens: Tensor, past: Tensor | None = None, added: Tensor | None = None
    ) -> Tensor:
        """Vectors (B, T, d) after tokens (B, T), each of which sees those before it.

        Padding, at either side, is not seen.

        past   (B, self.past) one more position before all others, key and value at once per layer;
               it has position 0
        added  (B, d) to the vector of every token

        Raises RelengthError for a text beyond the table of positions.
        """
        there = tokens != PAD
        cache = None if past is None else self._cache(past)
        first = 0 if past is None else 1
        _fits(self.network, tokens.shape[1] + first, self.name)
        x = self.network.get_input_embeddings()((tokens - OWN).clamp(min=0))
        x = torch.where((tokens < OWN)[:, :, None], self.marks(tokens.clamp(max=OWN - 1)), x)
        if added is not None:
            x = x + added[:, None]
        return self.network(
            inputs_embeds=x,
            attention_mask=F.pad(there, (first, 0), value=True).long(),
            position_ids=(there.cumsum(1) - 1).clamp(min=0) + first,
            past_key_values=cache,
            use_cache=cache is not None,
        ).last_hidden_state

    def _cache(self, past: Tensor) -> object:
        """The library's own form of one past position (B, self.past)."""
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer, both in enumerate(past.chunk(self.layers, dim=1)):
            both = both.view(len(past), self.heads, 1, -1)  # (B, h, 1, d/h)
            cache.update(both, both, layer)
        return cache

    def scores(self, features: Tensor) -> Tensor:
        """Scores (…, words) of the next token, for vectors (…, d): marks, then the network's own.

        The beginning and padding are never next.
        """
        marks = F.linear(features, self.marks.weight)
        never = torch.tensor([mark != EOS for mark in range(OWN)], device=marks.device)
        marks = marks.masked_fill(never, torch.finfo(marks.dtype).min)
        return torch.cat([marks, self.scoring(features)[..., : self.tokens]], dim=-1)


def _fits(network: nn.Module, tokens: int, name: str) -> None:
    most = network.config.max_position_embeddings
    if tokens > most:
        raise RelengthError(
            f"A text of {tokens} tokens does not fit into the {most} positions of {name}: choose "
            "shorter contexts, or a model that reads more."
        )
