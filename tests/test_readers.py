"""Baselines that read facts and a question: Larimar, RMT, Mamba and MemN2N."""

import math
from dataclasses import replace

import pytest
import torch
from test_memreasoner import LINE, WORDS, alone, assert_equal_scores_terms_and_slopes, batch
from torch import nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.kernels.selective import selective_scan
from relength.models.language.baseline_configs import (
    LarimarConfig,
    MambaConfig,
    MemN2NConfig,
    RMTConfig,
)
from relength.models.language.larimar import Larimar
from relength.models.language.mamba import Mamba, scan
from relength.models.language.memn2n import MemN2N, positions
from relength.models.language.rmt import RMT
from relength.models.language.texts import ending_together, texts
from relength.tasks.base import EOS, PAD
from relength.tasks.batch import FactsToAnswer

LAYERS = {"width": 8, "heads": 2, "inner_size": 12}
SIZES = {
    "Larimar": {**LAYERS, "latent_size": 10, "slots": 12, "inverse": "ridge"},
    "RMT": {**LAYERS, "segment": 12, "memory": 3},
    "Mamba": {"width": 6, "state_size": 3, "rank": 2},
    "MemN2N": {"width": 6, "lines": 20},
}
KINDS = {
    "Larimar": (Larimar, LarimarConfig),
    "RMT": (RMT, RMTConfig),
    "Mamba": (Mamba, MambaConfig),
    "MemN2N": (MemN2N, MemN2NConfig),
}


def model(name: str, **changed) -> nn.Module:
    module, config = KINDS[name]
    return module(config(**(SIZES[name] | changed)), WORDS).initialise(0).double()


def slope(loss, parameter: torch.Tensor, place: tuple[int, ...]) -> float:
    """The derivative of loss() by one number of a parameter, from both sides."""
    with torch.no_grad():
        ends = []
        for step in (1e-6, -1e-6):
            parameter[place] += step
            ends.append(float(loss()))
            parameter[place] -= step
    return (ends[0] - ends[1]) / 2e-6


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_what_a_sample_gives_does_not_depend_on_its_batch(name):
    ours, whole = model(name), batch(4, most=7)
    assert len({len(text) for text in texts(whole)}) > 1
    together = ours(whole)
    for i in range(4):
        torch.testing.assert_close(ours(alone(whole, i))[0], together[i])


@pytest.mark.equality
@pytest.mark.parametrize("name", KINDS)
def test_writing_word_by_word_is_what_training_sees(name):
    ours, whole = model(name), batch(4, most=7)
    written = ours.generate(whole, 2)[0].tokens
    forced = replace(whole, targets=written)
    assert (written == ours(forced).argmax(2)).all()


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("Larimar", "first"),
        ("Larimar", "to_latent.weight"),
        ("RMT", "first.weight"),
        ("RMT", "layers.0.to_heads.weight"),
        ("Mamba", "layers.0.log_rates"),
        ("Mamba", "layers.0.taps"),
        ("Mamba", "layers.1.to_step.bias"),
        ("Mamba", "layers.1.to_selection.weight"),
        ("MemN2N", "times.1.weight"),
        ("MemN2N", "words.0.weight"),
    ],
)
def test_slopes_are_those_of_finite_differences(name, parameter):
    ours, whole = model(name), batch(4, most=7)

    def loss() -> torch.Tensor:
        return F.cross_entropy(ours(whole).flatten(0, 1), whole.targets.flatten())

    loss().backward()
    own = ours.get_parameter(parameter)
    place = tuple(int(i) for i in (own.grad.abs() == own.grad.abs().max()).nonzero()[0])
    assert own.grad[place] != 0
    assert float(own.grad[place]) == pytest.approx(slope(loss, own, place), rel=1e-4)


@pytest.mark.parametrize("name", KINDS)
def test_at_its_own_size_a_baseline_has_about_as_many_parameters_as_memreasoner(name):
    from relength.models.language.configs import MemReasonerConfig
    from relength.models.language.memreasoner import MemReasoner

    def count(module, config) -> int:
        return sum(parameter.numel() for parameter in module(config(), 3_000).parameters())

    assert count(*KINDS[name]) == pytest.approx(count(MemReasoner, MemReasonerConfig), rel=0.15)


# --- texts ----------------------------------------------------------------------------------------


def test_a_text_is_its_lines_its_question_and_its_prompt():
    whole = batch(4, most=7)
    rows = ending_together(whole)
    for i, text in enumerate(texts(whole)):
        lines = whole.inputs[i, : int(whole.input_lengths[i])].tolist()
        wanted = [w for line in lines for w in whole.sentences[line].tolist() if w != PAD]
        wanted += [w for w in whole.sentences[whole.questions[i]].tolist() if w != PAD]
        wanted += whole.prompts[i].tolist()
        assert text.tolist() == wanted
        assert rows[i, rows.shape[1] - len(wanted) :].tolist() == wanted
        assert not rows[i, : rows.shape[1] - len(wanted)].any()


# --- Larimar --------------------------------------------------------------------------------------


@torch.no_grad()
def test_larimar_finds_the_part_of_a_question_that_lines_span():
    """With fewer lines than slots and exact inverses: z_q·M†·M projects on what was written."""
    ours, whole = model("Larimar", inverse="exact"), batch(4, most=7)
    codes = ours.codes(whole)
    (found,) = ours.iterative_read(whole).readouts
    for i, lines in enumerate(whole.input_lengths.tolist()):
        written = codes.unordered[i, :lines]
        wanted = torch.linalg.lstsq(written.T, codes.query[i]).solution @ written
        torch.testing.assert_close(found[i], wanted, atol=1e-6, rtol=1e-6)


def test_larimar_knows_no_order_and_writes_from_what_it_has_read():
    ours, own = model("Larimar"), alone(batch(4, most=7), 0)
    turned_round = replace(own, inputs=own.inputs.flip(1))
    torch.testing.assert_close(ours(own), ours(turned_round))
    (readout,) = ours.iterative_read(own).readouts
    heard = ours.decode(readout, torch.cat([own.prompts, own.targets[:, :-1]], dim=1))
    torch.testing.assert_close(ours(own), heard[:, own.prompts.shape[1] - 1 :])
    assert ours.generate(own, 2)[0].read is None


def test_larimar_learns_from_answers_and_other_text_alone():
    ours, whole = model("Larimar"), batch()
    outputs, terms = ours.with_terms(whole, None, ("text",))
    torch.testing.assert_close(outputs, ours(whole))
    words = whole.sentences[whole.texts]
    torch.testing.assert_close(terms.text, ours._reconstruction(ours.encode(words), words))
    assert float(terms.facts) == float(terms.order) == float(terms.autoencoded) == 0
    with pytest.raises(RelengthError, match="no loss of facts, order: set alpha, beta and delta"):
        ours.with_terms(whole, None, ("facts", "order", "text"))


# --- RMT ------------------------------------------------------------------------------------------


def plainly(ours: RMT, x: torch.Tensor, places: list[int]) -> torch.Tensor:
    """Outputs (S, d) of the layers for one sequence (S, d) at these places, each by hand."""
    heads, size = ours.config.heads, ours.config.width // ours.config.heads
    rates = 10_000.0 ** (-torch.arange(0, size, 2) / size)

    def turned(vector: torch.Tensor, place: int) -> torch.Tensor:
        pairs = torch.complex(vector[: size // 2], vector[size // 2 :])
        pairs = pairs * torch.exp(1j * place * rates.double())
        return torch.cat([pairs.real, pairs.imag])

    for layer in ours.layers:
        q, k, v = layer.to_heads(layer.before_attention(x)).chunk(3, dim=1)
        found = torch.zeros_like(x)
        for h in range(heads):
            own = slice(h * size, (h + 1) * size)
            keys = torch.stack([turned(k[s, own], place) for s, place in enumerate(places)])
            for s, place in enumerate(places):
                match = keys[: s + 1] @ turned(q[s, own], place) / math.sqrt(size)
                found[s, own] = match.softmax(0) @ v[: s + 1, own]
        x = x + layer.from_heads(found)
        x = x + layer.outer(F.gelu(layer.inner(layer.before_inner(x))))
    return x


@pytest.mark.parametrize("arm", ["paper", "released"])
@torch.no_grad()
def test_two_segments_by_hand(arm):
    """[memory; words; memory] of the first gives the memory of the second; as released, normed."""
    ours = model("RMT", arm=arm)
    size, m = ours.config.segment, ours.config.memory
    own = next(
        some
        for some in (alone(batch(4, most=7), i) for i in range(4))
        if size < len(texts(some)[0]) < 2 * size
    )
    (text,) = texts(own)
    first, last = text[:-size], torch.cat([text[-size:], own.targets[0, :-1]])
    memory = ours.first.weight
    start = m + size - len(first)
    places = [*range(m), *range(start, m + size), *range(m + size, 2 * m + size)]
    memory = plainly(ours, torch.cat([memory, ours.words(first), memory]), places)[-m:]
    memory = ours.final(memory) if arm == "released" else memory
    found = plainly(ours, torch.cat([memory, ours.words(last)]), list(range(m + len(last))))
    wanted = ours.final(found[-2:]) @ ours.words.weight.T
    torch.testing.assert_close(ours(own)[0], wanted, atol=2e-6, rtol=1e-5)


@torch.no_grad()
def test_only_a_normed_memory_stays_as_large_over_many_segments():
    """Else each segment adds to what the one before has handed on."""
    size = {}
    for arm in ("paper", "released"):
        ours = model("RMT", arm=arm)
        tokens = torch.randint(4, WORDS, (1, 40 * ours.config.segment))
        lengths = 2 * ours.config.segment, tokens.shape[1]
        size[arm] = [float(ours.read(tokens[:, :n])[1].norm()) for n in lengths]
    first, last = size["paper"]
    assert last > 5 * first
    first, last = size["released"]
    assert last == pytest.approx(first, rel=0.05)


def test_an_answer_may_be_longer_than_the_memory():
    """A chain of two hops has twelve words; there are places for them with one memory token."""
    ours = model("RMT", memory=1)
    last, memory = ours.read(torch.randint(4, WORDS, (2, ours.config.segment)))
    words = torch.cat([last, torch.randint(4, WORDS, (2, 11))], dim=1)
    assert ours.scores(words, memory, 1, 11).shape == (2, 1, WORDS)


def test_errors_go_back_through_all_segments():
    """The answer depends on the first word of a text of many segments, and learns from it."""
    whole = batch(4, most=7)
    own = max((alone(whole, i) for i in range(4)), key=lambda some: len(texts(some)[0]))
    ours = model("RMT", segment=6)
    assert len(texts(own)[0]) > 3 * 6
    seen = []
    vectors = ours.words.register_forward_hook(
        lambda _, __, out: seen.append(out) or out.retain_grad()
    )
    ours(own).sum().backward()
    vectors.remove()
    assert float(seen[0].grad.abs().max()) > 0


def test_what_no_segment_has_begun_with_leaves_the_memory_as_it_is():
    ours = model("RMT")
    tokens = torch.cat([torch.full((2, 24), PAD), torch.randint(4, WORDS, (2, 12))], dim=1)
    _, memory = ours.read(tokens)
    torch.testing.assert_close(memory, ours.first.weight.expand(2, -1, -1))


# --- Mamba ----------------------------------------------------------------------------------------


def sequences(batch: int, words: int, channels: int, n: int) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(words)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    x, step = drawn(batch, words, channels), drawn(batch, words, channels).abs()
    rates = -drawn(n, channels).abs()
    write, read, state = drawn(batch, words, n), drawn(batch, words, n), drawn(batch, n, channels)
    return [x, step, rates, write, read, state]


@pytest.mark.equality
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 7, 5, 3), (3, 40, 17, 8)])
def test_the_fast_scan_is_the_plain_one_in_values_and_slopes(shape):
    found = []
    for run in (scan, selective_scan):
        parts = [part.clone().requires_grad_() for part in sequences(*shape)]
        outputs, last = run(*parts)
        (outputs.sin().sum() + last.cos().sum()).backward()
        with torch.no_grad():
            alone = run(*parts)
        found.append([outputs, last, *alone, *(part.grad for part in parts)])
    for plain, fast in zip(*found, strict=True):
        torch.testing.assert_close(plain, fast)


def test_a_state_is_halved_and_added_to_by_hand():
    """Δ·A = -ln 2 halves; Δ·B·x is 1 at each word; the output is C times the state."""
    rates = torch.full((1, 1), -math.log(2.0))
    ones = torch.ones(1, 4, 1)
    outputs, last = scan(ones, ones, rates, ones, 3 * ones, torch.zeros(1, 1, 1))
    torch.testing.assert_close(outputs.flatten(), 3 * torch.tensor([1.0, 1.5, 1.75, 1.875]))
    torch.testing.assert_close(last.flatten(), torch.tensor([1.875]))


@pytest.mark.equality
@pytest.mark.parametrize("name", ["Larimar", "RMT", "Mamba"])
def test_the_fast_model_is_the_plain_one(name):
    plain, fast = model(name), model(name)
    plain.fused = False
    assert_equal_scores_terms_and_slopes(plain, fast)


@torch.no_grad()
def test_a_text_read_in_pieces_leaves_the_state_it_leaves_at_once():
    ours = model("Mamba")
    tokens = torch.randint(4, WORDS, (2, 23), generator=torch.Generator().manual_seed(3))
    tokens[1, :9] = PAD
    outputs, whole = ours.run(tokens, ours.start(2), last=23)
    torch.testing.assert_close(ours.run(tokens, ours.start(2), last=2)[0], outputs[:, -2:])
    states = ours.start(2)
    for words in tokens[:, :-1].split(4, dim=1):
        empty, states = ours.run(words, states, last=0)
        assert empty.shape[1] == 0
    last, states = ours.run(tokens[:, -1:], states, last=1)
    torch.testing.assert_close(last[:, 0], outputs[:, -1])
    for one, other in zip(states, whole, strict=True):
        assert one.state.shape == (2, 3, 12) and one.recent.shape == (2, 3, 12)
        torch.testing.assert_close(one.state, other.state)
        torch.testing.assert_close(one.recent, other.recent)


def test_mamba_begins_with_steps_between_its_slowest_and_its_fastest():
    ours = model("Mamba").layers[0]
    steps = F.softplus(ours.to_step.bias.detach())
    assert float(steps.min()) > 9e-4 and float(steps.max()) < 0.11
    rates = -ours.log_rates.exp()
    torch.testing.assert_close(rates[:, 0], torch.tensor([-1.0, -2.0, -3.0]).double())


# --- MemN2N ---------------------------------------------------------------------------------------


def test_words_are_weighed_by_their_place():
    """l_kj = (1 - j/J) - (k/d)(1 - 2j/J), with J = 2 and d = 4."""
    wanted = [[0.5, 0.5, 0.5, 0.5], [0.25, 0.5, 0.75, 1.0]]
    torch.testing.assert_close(positions(torch.tensor([2]), 2, 4)[0], torch.tensor(wanted))


@torch.no_grad()
def test_hops_by_hand():
    """p = softmax(u·m_i), o = Σ p_i c_i, u ← u + o, with C_k = A_{k+1} and W = C_K."""
    ours, whole = model("MemN2N"), batch(4, most=7)
    d, hops = ours.config.width, ours.config.hops

    def bag(row: int, k: int) -> torch.Tensor:
        words = [w for w in whole.sentences[row].tolist() if w != PAD]
        total = torch.zeros(d, dtype=torch.float64)
        for j, word in enumerate(words, start=1):
            share = j / len(words)
            units = torch.arange(1, d + 1) / d
            total += ((1 - share) - units * (1 - 2 * share)) * ours.words[k].weight[word]
        return total

    for i, count in enumerate(whole.input_lengths.tolist()):
        rows = whole.inputs[i, :count].tolist()
        u = bag(int(whole.questions[i]), 0)
        for k in range(hops):
            m, c = (
                [bag(row, k + s) + ours.times[k + s].weight[count - 1 - e]
                 for e, row in enumerate(rows)]
                for s in (0, 1)
            )  # fmt: skip
            p = torch.stack([u @ line for line in m]).softmax(0)
            u = u + sum(share * line for share, line in zip(p, c, strict=True))
        torch.testing.assert_close(ours.answer(whole)[i], ours.words[hops].weight @ u)


def test_the_newest_line_has_the_same_time_in_every_episode():
    """Lines before the last are told apart; empty lines at the beginning change their own alone."""
    ours, own = model("MemN2N"), alone(batch(4, most=7), 0)
    turned_round = replace(own, inputs=own.inputs.flip(1))
    assert not torch.allclose(ours.answer(own), ours.answer(turned_round))
    with torch.no_grad():
        for time in ours.times:
            time.weight.zero_()
    torch.testing.assert_close(ours.answer(own), ours.answer(turned_round))


def test_one_word_answers_and_ends_follow():
    ours, whole = model("MemN2N"), batch()
    assert (ours.generate(whole, 4)[0].tokens[:, 1:] == EOS).all()
    answer = F.cross_entropy(ours.answer(whole), whole.targets[:, 0])
    both = F.cross_entropy(ours(whole).flatten(0, 1), whole.targets.flatten())
    torch.testing.assert_close(both, answer / 2)


def test_more_lines_than_fit_are_refused():
    with pytest.raises(RelengthError, match=r"An episode of \d+ lines does not fit into a memory"):
        model("MemN2N", lines=2)(batch(4, most=7))


def test_lines_of_these_tests_are_unequal():
    whole: FactsToAnswer = batch(4, most=7)
    assert len(set(whole.input_lengths.tolist())) > 1 and whole.sentences.shape[1] == LINE
