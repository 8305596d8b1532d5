"""MemReasoner: lines are written into a memory in their order, and a question reads it in hops.

Source: "MemReasoner: A Memory-Augmented LLM Architecture for Multi-Hop Reasoning", Section 3 and
Algorithm 1, which is :meth:`MemReasoner.iterative_read`.

============= ========================== ========================================
the paper     here                       shape
============= ========================== ========================================
c_1 … c_E, q  rows of ``sentences``      (N, L) words
e             :meth:`Autoencoder.encode` (N, L) -> (N, D)
z_i, z_q      ``Codes.unordered``        (B, E, D), and ``Codes.query`` (B, D)
z̃_i           ``Codes.ordered``          (B, E, D)
P             :meth:`in_order`           (B, E, D) -> (B, E, D)
M_0, M̂        ``first``, ``memory``      (K, D), (B, K, D)
W_q           ``to_query``               (D, D)
α             ``update``                 a number
τ             ``config.threshold``       a number
z̃_r           a readout                  (B, D), one per hop
i*            ``place``                  (B,) the nearest line
W_M, h_k^m    ``to_past``                D -> L·d: one past position per layer of the decoder
d             :meth:`decode`             (B, D), (B, T) -> (B, T, words)
============= ========================== ========================================
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.kernels.hashing import fork, hashed_normal
from relength.models.language import memory as episodic
from relength.models.language.configs import MemReasonerConfig
from relength.models.language.looked import Looked
from relength.models.language.order import Recurrent, sinusoids
from relength.models.language.sentences import POSITIONS, Autoencoder
from relength.models.language.transformer import Layer
from relength.tasks.base import EOS, PAD
from relength.tasks.batch import Answered, FactsToAnswer

ROWS = 2**16  # lines of all episodes that are read at once, and
SENTENCES = 512  # sentences that are encoded at once, when nothing is learned


def _at_once(batch: FactsToAnswer) -> int:
    """Return how many episodes are read at once, when nothing is learned."""
    return max(ROWS // max(batch.inputs.shape[1], 1), 1)


class Codes(NamedTuple):
    """The codes of some episodes.

    unordered  (B, E, D) z_i
    ordered    (B, E, D) z̃_i
    lines      (B, E) True for a line, False for padding
    query      (B, D) z_q
    """

    unordered: Tensor
    ordered: Tensor
    lines: Tensor
    query: Tensor


class Found(NamedTuple):
    """The line that a hop finds: its code (B, D), which the decoder hears, and its words (B, L)."""

    code: Tensor
    line: Tensor


class Reading(NamedTuple):
    """The results of Algorithm 1 before it decodes.

    Each list has an item per hop: the readout z̃_r (B, D), the place i* (B,) of the nearest line,
    and what is found there.
    """

    codes: Codes
    readouts: list[Tensor]
    places: list[Tensor]
    found: list[Found]


class Terms(NamedTuple):
    """The terms of Eq. 1 beside the answer's, each a mean over the batch; 0 where not asked for.

    facts             -ln p(c_s | z_r, P_s): a supporting fact, from what a hop has read
    autoencoded       -ln p(d(e(c_s))): the same, from its own code
    order             -ln v(z̃_r)_s, Eq. 2: the hop should read this line
    text              -ln p(d(e(x))): a sentence of other text, from its own code
    """

    facts: Tensor
    autoencoded: Tensor
    order: Tensor
    text: Tensor


class MemReasoner(Autoencoder):
    """An encoder of sentences, a memory, and a decoder that hears one code.

    update       α: 1 in training; see :meth:`for_test`
    tells_lines  whether a read is of one line
    """

    supervised = True
    tells_lines = True
    small = (
        *("encoder_words.weight", "encoder_positions.weight", "decoder_positions.weight"),
        "writer.marks.weight",
    )

    def __init__(self, config: MemReasonerConfig, words: int):
        super().__init__()
        self.config, self.update = config, config.update
        self.inverse = episodic.pseudo_inverse(config)
        latent = config.latent_size
        width, written, past = self._pretrained(words) if config.encoder else self._small(words)
        self.to_latent = nn.Linear(width, latent, bias=False)
        self.to_past = nn.Linear(latent, past, bias=False)
        if config.conditioning == "past_and_words":
            self.to_words = nn.Linear(latent, written, bias=False)
        if config.temporal in ("gru", "bigru"):
            self.temporal = Recurrent(latent, 2 if config.temporal == "bigru" else 1)
        self.to_query = nn.Linear(latent, latent, bias=False)
        self.first = nn.Parameter(torch.eye(config.slots, latent))  # M_0, a truncated identity
        self._kept: tuple[Tensor, Tensor, Tensor] | None = None
        self._keeps = False

    def _small(self, words: int) -> tuple[int, int, int]:
        """Make encoder and decoder; how wide both are, and a past position of all layers is."""
        config = self.config
        d, sizes = config.width, (config.width, config.heads, config.inner_size)
        self.encoder_words = nn.Embedding(words, d)
        self.words = nn.Embedding(words, d)  # of the decoder, and of what it writes
        self.encoder_positions = nn.Embedding(POSITIONS, d)
        self.decoder_positions = nn.Embedding(POSITIONS, d)
        self.encoder = nn.ModuleList(Layer(*sizes) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(Layer(*sizes) for _ in range(config.decoder_layers))
        self.encoded, self.decoded = nn.LayerNorm(d), nn.LayerNorm(d)
        return d, d, config.decoder_layers * d

    def _pretrained(self, words: int) -> tuple[int, int, int]:
        """Make both of pretrained networks; their widths, and that of a past position."""
        from relength.models.language.networks import Reader, Writer

        self.reader = Reader(self.config.encoder)
        self.writer = Writer(self.config.decoder, words)
        return self.reader.width, self.writer.width, self.writer.past

    def for_test(self) -> None:
        """Set α to its value at test from now on."""
        self.update = self.config.test_update

    # Codes

    def codes_of(self, sentences: Tensor, rows: Tensor) -> Tensor:
        """Codes (…, D) of rows (…) of a table of sentences; each distinct one is encoded once."""
        if self._keeps:
            return self._kept_codes(sentences, rows)
        distinct, place = rows.unique(return_inverse=True)
        return F.embedding(place, self.encode(sentences[distinct]))

    def _kept_codes(self, sentences: Tensor, rows: Tensor) -> Tensor:
        if self._kept is None or self._kept[0] is not sentences:
            count = len(sentences)
            codes = self.first.new_zeros(count, self.config.latent_size)
            self._kept = sentences, codes, torch.zeros(count, dtype=torch.bool, device=codes.device)
        _, codes, known = self._kept
        distinct = rows.unique()
        new = distinct[~known[distinct]]
        new = new[(sentences[new] != PAD).sum(1).argsort(stable=True)]  # alike in length
        for start in range(0, len(new), SENTENCES):
            some = new[start : start + SENTENCES]
            codes[some] = self.encode(sentences[some])
        known[new] = True
        return F.embedding(rows, codes)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Context in which no weight changes: codes of sentences are kept and used again."""
        self._keeps = True
        try:
            yield
        finally:
            self._keeps, self._kept = False, None

    # Order and memory

    def in_order(self, latents: Tensor, lengths: Tensor) -> Tensor:
        """P: ordered codes (B, E, D) of codes (B, E, D) of episodes with ``lengths`` (B,) lines."""
        match self.config.temporal:
            case "gru" | "bigru":
                return self.temporal(latents, lengths, self.fused)
            case "none":
                return latents
        place = torch.arange(latents.shape[1], device=latents.device).expand(len(latents), -1)
        if self.config.temporal == "sinusoid_from_end":
            place = (lengths[:, None] - 1 - place).clamp(min=0)
        return latents + sinusoids(place, latents.shape[2]).to(latents.dtype)

    def codes(self, batch: FactsToAnswer) -> Codes:
        """Encode lines and questions, and put the lines in order."""
        width = batch.inputs.shape[1]
        rows = torch.cat([batch.inputs, batch.questions[:, None]], dim=1)
        latents = self.codes_of(batch.sentences, rows)  # (B, E + 1, D)
        unordered, query = latents[:, :width], latents[:, width]
        ordered = self.in_order(unordered, batch.input_lengths)
        place = torch.arange(width, device=rows.device)
        return Codes(unordered, ordered, place < batch.input_lengths[:, None], query)

    def iterative_read(self, batch: FactsToAnswer, key: Tensor | None = None) -> Reading:
        """Run Algorithm 1, IterativeRead, without its line 9, which decodes.

        With the answer given :meth:`_answer` decodes, without it :meth:`_words`.

        There are always ``hops`` reads; the paper's loop has τ alone. A sample whose readouts have
        come closer than τ reads no more, whatever the others of its batch do: its last readout is
        repeated. Letters are those of Algorithm 1, whose line 24 calls α γ.

        key: of the noise ξ and η; None for none

        Raises RelengthError where there are more hops than lines.
        """
        codes = self.codes(batch)  # lines 2 to 5: z_q, z_i and z̃_i
        self._check_lines(int(codes.lines.sum(1).min()))
        memory = self._write(codes, key)  # line 6: M̂
        inverse = self.inverse(memory)
        # Lines 18 to 27, queryUpdate.
        query, readouts, threshold = codes.query, [], self.config.threshold
        reading = torch.ones(len(query), dtype=torch.bool, device=query.device)
        for hop in range(self.config.hops):
            if readouts:
                query = query + self.update * readouts[-1]  # lines 20 and 24: z_q + α z̃_r
            noise = self._noise(query, (len(query), 1, memory.shape[1]), key, hop + 1)  # η
            # Lines 19, 21 and 25: z̃_r = read(W_q z_q, M̂).
            found = episodic.read(
                self.to_query(query), memory, inverse, None if noise is None else noise[:, 0]
            )
            if threshold is not None and readouts:
                found = torch.where(reading[:, None], found, readouts[-1])
                # Line 26. One that has ended moves no more, so it stays below the threshold.
                reading = (found - readouts[-1]).norm(dim=-1) >= threshold
            readouts.append(found)
        places, found = self.found(batch, codes, readouts)  # line 8: i* and z_{i*}
        return Reading(codes, readouts, places, found)

    def _write(self, codes: Codes, key: Tensor | None) -> Tensor:
        """M̂ (B, K, D) of the ordered codes, with noise ξ."""
        written = codes.ordered
        if (noise := self._noise(written, tuple(written.shape), key, 0)) is not None:
            written = written + noise  # Z_ξ
        return episodic.write(written * codes.lines[:, :, None], self.first, self.inverse)

    def _noise(
        self, like: Tensor, shape: tuple[int, int, int], key: Tensor | None, part: int
    ) -> Tensor | None:
        """Noise of a shape (B, S, C) in the numbers of a tensor, another one per part of a key.

        None without a key.
        """
        if key is None or not self.config.noise:
            return None
        return self.config.noise * hashed_normal(shape, fork(key, part)).to(like.dtype)

    def _check_lines(self, fewest: int) -> None:
        if not fewest:
            raise RelengthError("An episode has no line to read: give it a fact.")
        if self.config.hops > fewest:
            lines = "only line" if fewest == 1 else f"{fewest} lines"
            raise RelengthError(
                f"{self.config.hops} hops are more than the {lines} of an episode: choose fewer "
                "hops, or give it more facts."
            )

    @staticmethod
    def distances(codes: Codes, readout: Tensor) -> Tensor:
        """‖z̃_r - z̃_j‖ (B, E) to each line; infinite to padding."""
        apart = torch.linalg.vector_norm(codes.ordered - readout[:, None], dim=-1)
        return apart.masked_fill(~codes.lines, torch.inf)

    # Writing

    def decode(self, latents: Tensor, tokens: Tensor) -> Tensor:
        """d: scores (B, T, words) of the word after each of tokens (B, T), given a code (B, D)."""
        return self._scores(self._features(latents, tokens))

    def _scores(self, features: Tensor) -> Tensor:
        """Scores (…, words) for vectors (…, d)."""
        if self.config.decoder:
            return self.writer.scores(features)
        return F.linear(features, self.words.weight)

    def _features(self, latents: Tensor, tokens: Tensor) -> Tensor:
        if self.config.decoder:
            both = self.config.conditioning == "past_and_words"
            added = self.to_words(latents) if both else None
            return self.writer.features(tokens, self.to_past(latents), added)
        length = tokens.shape[1]
        # Position 0 is that of the code.
        x = self.words(tokens) + self.decoder_positions.weight[1 : length + 1]
        if self.config.conditioning == "past_and_words":
            x = x + self.to_words(latents)[:, None]
        seen = torch.ones(length, length + 1, dtype=torch.bool, device=x.device).tril(1)
        for layer, past in zip(
            self.decoder, self.to_past(latents).chunk(len(self.decoder), dim=1), strict=True
        ):
            x = layer(x, seen, past=past)
        return self.decoded(x)

    def _answer(self, batch: FactsToAnswer, found: list[Found]) -> Tensor:
        """Scores (B, T, words) of the words of the answers, from what each hop found.

        An answer is written from the last.
        """
        return self._after(batch.prompts, batch.targets, found[-1])

    def _after(self, prompts: Tensor, targets: Tensor, found: Found) -> Tensor:
        """Scores (B, T, words) of targets (B, T) that follow prompts."""
        tokens = torch.cat([prompts, targets[:, :-1]], dim=1)
        return self._from(found, tokens)[:, prompts.shape[1] - 1 :]

    def _from(self, found: Found, tokens: Tensor) -> Tensor:
        """Scores (B, T, words) of the word after each of tokens (B, T), in an answer."""
        return self.decode(found.code, tokens)

    def _words(self, prompts: Tensor, steps: int, found: list[Found]) -> Tensor:
        """The likeliest words (B, steps) after prompts, from what each hop found."""
        tokens = prompts
        for _ in range(steps):
            scores = self._from(found[-1], tokens)[:, -1]
            tokens = torch.cat([tokens, scores.argmax(1, keepdim=True)], dim=1)
        return tokens[:, prompts.shape[1] :]

    # What training and tests ask for

    def nearest(self, codes: Codes, readout: Tensor) -> tuple[Tensor, Tensor]:
        """i* (B,) and z_{i*} (B, D): the line nearest to a readout, and its unordered code."""
        place = self.distances(codes, readout).argmin(1)
        return place, codes.unordered[torch.arange(len(place), device=place.device), place]

    def found(
        self, batch: FactsToAnswer, codes: Codes, readouts: list[Tensor]
    ) -> tuple[list[Tensor], list[Found]]:
        """Return i* (B,) of each readout, and what is found there."""
        places, codes_there = zip(*(self.nearest(codes, r) for r in readouts), strict=True)
        rows = (batch.inputs.gather(1, place[:, None])[:, 0] for place in places)
        lines = [batch.sentences[row] for row in rows]
        return list(places), list(map(Found, codes_there, lines))

    def forward(self, batch: FactsToAnswer, key: Tensor | None = None) -> Tensor:
        return self._answer(batch, self.iterative_read(batch, key).found)

    def with_terms(
        self, batch: FactsToAnswer, key: Tensor | None, asked: tuple[str, ...]
    ) -> tuple[Tensor, Terms]:
        """Scores (B, T, words) as from :meth:`forward`, and the terms of Eq. 1 that are asked for.

        Sums over the supporting facts are as in the equation. Raises RelengthError where a sample
        has another number of facts than the model has hops.
        """
        codes, readouts, _, found = self.iterative_read(batch, key)
        if len(readouts) != batch.supports.shape[1]:
            raise RelengthError(
                f"{batch.supports.shape[1]} supporting facts cannot supervise {len(readouts)} "
                "reads: set hops to the number of facts."
            )
        terms = dict.fromkeys(Terms._fields, codes.query.new_zeros(()))
        rebuilt: list[tuple[str, Tensor, Tensor]] = []  # a term, codes, and sentences
        sample = torch.arange(len(batch), device=batch.inputs.device)
        for hop, support in enumerate(batch.supports.unbind(1)):
            facts = batch.for_decoder[batch.inputs[sample, support]]
            rebuilt.append(("facts", found[hop].code, facts))
            rebuilt.append(("autoencoded", codes.unordered[sample, support], facts))
            if "order" in asked:
                nearness = -self.distances(codes, readouts[hop])
                terms["order"] = terms["order"] + F.cross_entropy(nearness, support)
        if "text" in asked:
            rows = batch.texts.flatten()
            rebuilt.append(("text", self.encode(batch.sentences[rows]), batch.for_decoder[rows]))
        if wanted := [one for one in rebuilt if one[0] in asked]:
            names, latents, sentences = zip(*wanted, strict=True)
            surprise = self._surprise(torch.cat(latents), torch.cat(sentences))
            for name, one in zip(names, surprise.split([*map(len, latents)]), strict=True):
                terms[name] = terms[name] + one.mean()
        return self._answer(batch, found), Terms(**terms)

    @torch.no_grad()
    def generate(
        self, batch: FactsToAnswer, steps: int, keep_weights: bool = False
    ) -> tuple[Answered, None]:
        """The likeliest words (B, steps), and the nearest line of each read.

        A sample whose memory diverges gets no words, and -1 for its lines.
        """
        size = _at_once(batch)
        parts = [self._written(some, steps) for some in batch.chunks(size)]
        tokens, read = (torch.cat(part) for part in zip(*parts, strict=True))
        return Answered(tokens, read), None

    def _written(self, batch: FactsToAnswer, steps: int) -> tuple[Tensor, Tensor]:
        try:
            return self._generate(batch, steps)
        except episodic.Diverged as error:
            lost = error.samples.expand(len(batch))
        tokens = batch.questions.new_full((len(batch), steps), EOS)
        read = batch.questions.new_full((len(batch), self.config.hops), -1)
        if not lost.all():
            tokens[~lost], read[~lost] = self._written(batch.select(~lost), steps)
        return tokens, read

    def _generate(self, batch: FactsToAnswer, steps: int) -> tuple[Tensor, Tensor]:
        reading = self.iterative_read(batch)
        words = self._words(batch.prompts, steps, reading.found)
        return words, torch.stack(reading.places, dim=1)

    @torch.no_grad()
    def trace_reads(self, batch: FactsToAnswer, steps: int) -> list[Looked]:
        """Words and lines of each sample as from :meth:`generate`, with what they rest on."""
        size = _at_once(batch)
        return [look for some in batch.chunks(size) for look in self._looked(some, steps)]

    def _looked(self, batch: FactsToAnswer, steps: int) -> list[Looked]:
        try:
            codes, readouts, places, found = self.iterative_read(batch)
        except episodic.Diverged as error:
            lost = error.samples.expand(len(batch))
            rest = iter(() if lost.all() else self._looked(batch.select(~lost), steps))
            tokens = batch.questions.new_full((steps,), EOS)
            nothing = Looked(tokens, [-1] * self.config.hops, None, None)
            return [nothing if gone else next(rest) for gone in lost.tolist()]
        words = self._words(batch.prompts, steps, found)
        read = torch.stack(places, dim=1).tolist()
        apart = torch.stack([self.distances(codes, r) for r in readouts], dim=1).cpu().numpy()
        ordered = codes.ordered.cpu().numpy()
        return [
            Looked(words[i], read[i], apart[i, :, :length], ordered[i, :length])
            for i, length in enumerate(batch.input_lengths.tolist())
        ]
