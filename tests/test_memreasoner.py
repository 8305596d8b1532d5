"""MemReasoner and the plain decoder beside it: what they compute, and what their loss says."""

import json
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.kernels import surprise
from relength.kernels.surprise import surprises
from relength.models.language import memory
from relength.models.language.configs import GPTConfig, MemReasonerConfig
from relength.models.language.gpt import GPT
from relength.models.language.larimar import Larimar
from relength.models.language.memreasoner import MemReasoner, Terms
from relength.models.language.transformer import (
    Layer,
    _rotated,
    alike,
    at,
    in_batch_order,
    rotations,
)
from relength.specs.spec import make_spec, spec_of_key
from relength.tasks import TASKS
from relength.tasks.base import EOS, PAD, SOS
from relength.tasks.batch import FactsToAnswer
from relength.training.course import Course, Scores
from relength.training.evaluate import Measured, unchanged

WORDS, LINE = 30, 6
SIZES = {"width": 8, "heads": 2, "inner_size": 12, "latent_size": 10, "slots": 12}
TEMPORAL = ("bigru", "gru", "sinusoid", "sinusoid_from_end", "none")


def model(**changed) -> MemReasoner:
    return MemReasoner(MemReasonerConfig(**(SIZES | changed)), WORDS).initialise(0).double()


def gpt(**changed) -> GPT:
    sizes = {"width": 8, "heads": 2, "inner_size": 12, "layers": 2}
    return GPT(GPTConfig(**(sizes | changed)), WORDS).initialise(0).double()


def readouts(ours: MemReasoner, of: FactsToAnswer, key=None) -> list[torch.Tensor]:
    """z̃_r (B, D) of each hop."""
    return ours.iterative_read(of, key).readouts


@cache
def batch(samples: int = 3, hops: int = 1, most: int = 5) -> FactsToAnswer:
    """Episodes of 2 to ``most`` lines; the wanted facts are their last ones."""
    draw = torch.Generator().manual_seed(samples + 10 * hops)
    sentences = torch.randint(4, WORDS, (20, LINE), generator=draw)
    lengths = torch.randint(1, LINE + 1, (20, 1), generator=draw)
    sentences = sentences * (torch.arange(LINE) < lengths)
    sentences[0] = 0  # the empty line
    lines = torch.randint(2, most + 1, (samples,), generator=draw)
    inputs = torch.randint(0, 20, (samples, int(lines.max())), generator=draw)
    inputs[:, 0] = 0
    inputs = inputs * (torch.arange(inputs.shape[1]) < lines[:, None])
    targets = torch.stack(
        [torch.randint(4, WORDS, (samples,), generator=draw), torch.full((samples,), EOS)], dim=1
    )
    return FactsToAnswer(
        sentences,
        inputs,
        torch.randint(1, 20, (samples,), generator=draw),
        torch.stack([lines - 1 - hop for hop in range(hops)], dim=1),
        torch.tensor([[SOS, 5, 6]]).expand(samples, -1),
        targets,
        torch.ones(samples, 2, dtype=torch.bool),
        torch.randint(1, 20, (samples,), generator=draw),
        lines,
        torch.full((samples,), 2),
    )


def alone(whole: FactsToAnswer, i: int) -> FactsToAnswer:
    return whole.select(slice(i, i + 1))


# --- what does not matter -------------------------------------------------------------------------


@pytest.mark.parametrize("temporal", TEMPORAL)
def test_memreasoner_answers_a_sample_alike_in_any_batch(temporal):
    ours = model(temporal=temporal)
    together = ours(batch())
    for i in range(3):
        torch.testing.assert_close(ours(alone(batch(), i))[0], together[i])


def test_a_plain_decoder_answers_a_sample_alike_in_any_batch():
    together = gpt()(batch())
    for i in range(3):
        torch.testing.assert_close(gpt()(alone(batch(), i))[0], together[i])


@pytest.mark.equality
@pytest.mark.parametrize("temporal", ["bigru", "gru"])
def test_fused_order_is_the_plain_one_in_values_and_slopes(temporal):
    found = []
    for fused in (True, False):
        ours = model(temporal=temporal)
        ours.fused = fused
        codes = ours.codes(batch())
        codes.ordered.sin().sum().backward()
        found.append((codes.ordered.detach(), ours.encoder_words.weight.grad))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def assert_equal_scores_terms_and_slopes(one, other) -> None:
    """Two models answer episodes, texts and answers of many lengths, and learn from them, alike."""
    whole = batch(9, most=20)
    long = torch.tensor([2, 3, 4] * 3)
    place = torch.arange(4)
    words = torch.where(place < long[:, None] - 1, 4 + place, EOS)
    mask = place < long[:, None]
    of = replace(whole, targets=words * mask, mask=mask, target_lengths=long)
    for lengths in (of.input_lengths, (of.sentences[of.texts] > 0).sum(1)):
        assert len(alike(lengths)) > 1
    found = []
    for ours in (one, other):
        asked = ("text",) if isinstance(ours, Larimar) else Terms._fields
        scores, terms = ours.with_terms(of, None, asked) if ours.supervised else (ours(of), ())
        scores = scores * mask[:, :, None]
        (scores.sin().sum() + sum(terms)).backward()
        slopes = {n: p.grad for n, p in ours.named_parameters() if p.grad is not None}
        assert slopes
        found.append([scores, *terms, *slopes.values()])
    for mine, yours in zip(*found, strict=True):
        torch.testing.assert_close(mine, yours)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.equality
def test_fast_surprises_are_those_of_pytorch_in_values_and_slopes(monkeypatch):
    """More rows than are gone over at once, and scores whose exponentials are beyond a float."""
    monkeypatch.setattr(surprise, "CACHED", 17 * 128)
    scores, words = 5 * drawn(300, 17), torch.arange(300) % 17
    scores[0] += 1e4
    scores[1, 3], weights, found = -1e4, drawn(300), []
    for losses_of in (partial(F.cross_entropy, reduction="none"), surprises):
        leaf = scores.clone().requires_grad_()
        losses = losses_of(1 * leaf, words)
        (losses @ weights).backward()
        found.append((losses.detach(), leaf.grad))
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_large_scores_do_not_round_surprises():
    scores, words = 1000 + drawn(200, 50).float(), torch.zeros(200, dtype=torch.int64)
    exact = F.cross_entropy(scores.double(), words, reduction="none")
    off = (surprises(scores, words) / exact - 1).abs().max()
    assert off < 4 * torch.finfo(torch.float32).eps


def test_scores_that_became_their_gradient_are_not_gone_back_through_again():
    leaf = drawn(3, 5).requires_grad_()
    loss = surprises(2 * leaf, torch.arange(3)).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="inplace"):
        loss.backward()
    with pytest.raises(RelengthError):
        surprises(leaf, torch.arange(3))
    scores = 2 * leaf
    slope = torch.autograd.grad(surprises(scores, torch.arange(3)).sum(), scores)[0]
    assert not slope.requires_grad


@pytest.mark.equality
@pytest.mark.parametrize("only", [[3, 5], [[3, 5], [0, 6], [6, 2]]], ids=["all", "each"])
def test_a_layer_gives_some_positions_what_it_gives_them_among_all(only):
    layer, x, turns = Layer(8, 2, 12).double(), drawn(3, 7, 8), rotations(7, 4)
    only, place = torch.tensor(only), torch.arange(7)
    found = []
    for asked in (None, only):
        leaf = x.clone().requires_grad_()
        seen = place <= (place if asked is None else asked)[..., None]
        seen = seen[:, None] if seen.ndim == 3 else seen
        seen = F.pad(seen, (1, 0), value=True)
        outputs = layer(leaf, seen, past=drawn(3, 8), rotation=turns, only=asked)
        outputs = at(outputs, only) if asked is None else outputs
        slopes = torch.autograd.grad(outputs.sin().sum(), (leaf, *layer.parameters()))
        found.append([outputs, *slopes])
    for all_of_them, some in zip(*found, strict=True):
        torch.testing.assert_close(some, all_of_them)


def test_a_query_and_a_key_meet_by_the_distance_between_them():
    """The first position turns nothing; two that are turned have a product of their distance."""
    q, k, turns = drawn(1, 1, 1, 6), drawn(1, 1, 1, 6).flip(3), rotations(9, 6)

    def product(i: int, j: int) -> torch.Tensor:
        (a, b), (c, d) = ([turn[n : n + 1] for turn in turns] for n in (i, j))
        return (_rotated(q, a, b) * _rotated(k, c, d)).sum()

    torch.testing.assert_close(product(0, 0), (q * k).sum())
    torch.testing.assert_close(product(2, 5), product(4, 7), rtol=1e-6, atol=1e-6)
    # Pairs of elements i and i + 3 are complex numbers, turned by the position times their rate.
    paired = torch.complex(q[..., :3], q[..., 3:])
    rates = 10_000.0 ** (-torch.arange(3.0) / 3)
    angle = (5 * rates).double()
    turned = paired * torch.polar(torch.ones(3, dtype=torch.float64), angle)
    found = _rotated(q, turns[0][5:6], turns[1][5:6])
    expected = torch.cat([turned.real, turned.imag], dim=3)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@torch.no_grad()
@pytest.mark.equality
def test_a_plain_decoder_scores_a_place_as_with_all_places_computed():
    ours, tokens = gpt(), torch.randint(1, WORDS, (3, 9))
    places = torch.tensor([[8, 3], [0, 5], [2, 2]])
    x, turns = ours.words(tokens), rotations(9, ours.config.width // ours.config.heads)
    for layer in ours.layers:
        x = layer(x, causal=True, rotation=turns)
    expected = F.linear(ours.last(at(x, places)), ours.words.weight)
    torch.testing.assert_close(ours.scores(tokens, places), expected)


@torch.no_grad()
@pytest.mark.equality
def test_a_sentence_has_the_code_of_its_mark_among_all_words():
    ours = model()
    sentences = torch.tensor([[5, 6, 7, 8], [9, 4, PAD, PAD], [6, PAD, PAD, PAD]])
    marks = ours.states(sentences)[:, 0]
    expected = ours.to_latent(torch.tanh(ours.encoded(marks)))
    torch.testing.assert_close(ours.encode(sentences), expected)


@pytest.mark.equality
@pytest.mark.parametrize("make", [partial(model, inverse="ridge"), gpt], ids=["MemReasoner", "GPT"])
def test_samples_of_like_length_have_together_what_all_have(make):
    plain, fast = make(), make()
    plain.fused = False
    assert_equal_scores_terms_and_slopes(plain, fast)


def test_in_a_group_the_longest_is_less_than_twice_as_long_as_the_shortest():
    lengths = torch.tensor([0, 64, 1, 33, 32, 7, 8, 63, 1, 16])
    groups = alike(lengths)
    assert sorted(torch.cat(groups).tolist()) == [*range(10)] and len(groups) == 5
    assert all(max(them) < 2 * max(min(them), 1) for them in (lengths[g].tolist() for g in groups))
    together = in_batch_order([lengths[g] for g in groups], groups)
    assert together.tolist() == lengths.tolist()


@pytest.mark.equality
def test_sentences_that_are_kept_have_the_codes_they_have():
    ours = model()
    with torch.no_grad():
        fresh = ours.codes(batch())
        with unchanged(ours):
            ours.codes(batch())
            kept = ours.codes(batch())
    torch.testing.assert_close(fresh.unordered, kept.unordered)
    with torch.no_grad():
        ours.encoder_words.weight.mul_(2)
        assert not torch.allclose(ours.codes(batch()).unordered, kept.unordered)


@pytest.mark.equality
def test_writing_step_by_step_is_what_training_sees():
    for ours in (model(), gpt()):
        wanted = ours(batch()).argmax(2)
        written, _ = ours.generate(batch(), 2)
        assert (written.tokens[:, 0] == wanted[:, 0]).all()
        forced = replace(batch(), targets=torch.stack([wanted[:, 0], wanted[:, 1]], 1))
        assert (written.tokens[:, 1] == ours(forced).argmax(2)[:, 1]).all()


def test_where_the_memory_of_a_sample_diverges_the_others_are_answered():
    ours = model(arm="released")
    wanted, _ = ours.generate(batch(), 2)
    with torch.no_grad():
        largest = [float(torch.linalg.matrix_norm(m, ord=2)) for m in addresses(ours)]
    limit = sorted(largest)[1:]
    ours.inverse = partial(memory.iterated, steps=40, start=8 / sum(limit) ** 2)
    found, _ = ours.generate(batch(), 2)
    worst = largest.index(max(largest))
    assert found.read[worst].tolist() == [-1] and found.tokens[worst].tolist() == [EOS, EOS]
    others = [i for i in range(3) if i != worst]
    assert (found.read[others] >= 0).all() and wanted.read.shape == found.read.shape


def addresses(ours: MemReasoner) -> torch.Tensor:
    """W = Z·M_0†, (B, E, K)."""
    codes = ours.codes(batch())
    return codes.ordered * codes.lines[:, :, None] @ memory.exact(ours.first)


# --- order ----------------------------------------------------------------------------------------


def test_without_order_a_memory_reads_the_same_however_lines_are_arranged():
    ours, own = model(temporal="none", inverse="ridge"), alone(batch(), 0)
    turned = replace(own, inputs=own.inputs.flip(1))
    torch.testing.assert_close(readouts(ours, own)[-1], readouts(ours, turned)[-1])
    ours = model(inverse="ridge")
    assert not torch.allclose(readouts(ours, own)[-1], readouts(ours, turned)[-1], atol=1e-4)


def test_counted_from_the_end_the_last_lines_of_all_episodes_are_alike():
    ours = model(temporal="sinusoid_from_end")
    codes = ours.codes(batch())
    added = codes.ordered - codes.unordered
    last = [added[i, n - 1] for i, n in enumerate(batch().input_lengths.tolist())]
    for one in last[1:]:
        torch.testing.assert_close(one, last[0])


# --- Algorithm 1 ----------------------------------------------------------------------------------


def test_two_hops_by_hand():
    """z̃_r = read(W_q z_q); z_q ← z_q + α z̃_r; read again. With test_update after for_test."""
    ours = model(hops=2, update=0.5, test_update=3.0, inverse="ridge", temporal="none")
    codes = ours.codes(batch())
    for i, lines in enumerate(batch().input_lengths.tolist()):
        z = codes.ordered[i, :lines]
        w = z @ ours.inverse(ours.first)
        m = ours.inverse(w) @ z
        back = ours.inverse(m)
        for alpha in (0.5, 3.0):
            ours.update = alpha
            first = ours.to_query(codes.query[i]) @ back @ m
            second = ours.to_query(codes.query[i] + alpha * first) @ back @ m
            found = readouts(ours, batch())
            torch.testing.assert_close(found[0][i], first)
            torch.testing.assert_close(found[1][i], second)
    ours.for_test()
    assert ours.update == 3.0


@torch.no_grad()
def test_reading_stops_once_readouts_are_closer_than_the_threshold():
    own = alone(batch(), int(batch().input_lengths.argmax()))
    lines = int(own.input_lengths)
    assert lines > 2
    every = readouts(model(hops=lines), own)
    for threshold, reads in ((1e9, 2), (1e-12, lines)):
        ours = model(hops=lines, threshold=threshold)
        found = readouts(ours, own)
        assert len(found) == lines
        for hop, readout in enumerate(found):
            torch.testing.assert_close(readout, every[min(hop, reads - 1)])
        moves = [float((b - a).norm()) for a, b in pairwise(found)]
        assert min(moves[: reads - 1]) > 0 == sum(moves[reads - 1 :])


@torch.no_grad()
def test_when_a_sample_stops_reading_does_not_depend_on_its_batch():
    whole = batch(6, most=9)
    hops = int(whole.input_lengths.min())
    free = model(hops=hops, inverse="ridge")
    free = torch.stack(readouts(free, whole))  # (hops, B, D)
    first = (free[1] - free[0]).norm(dim=1)
    between = float(first.sort().values[2:4].mean())  # three stop after two reads, the others later
    ours = model(hops=hops, threshold=between, inverse="ridge")
    together = torch.stack(readouts(ours, whole))
    stopped = (together[-1] == together[1]).all(1)
    assert hops > 2 and stopped.tolist() == (first < between).tolist() and int(stopped.sum()) == 3
    for i in range(6):
        torch.testing.assert_close(
            torch.stack(readouts(ours, alone(whole, i)))[:, 0], together[:, i]
        )
    written, _ = ours.generate(whole, 2)
    assert written.read.shape == (6, hops)
    for i in range(6):
        own, _ = ours.generate(alone(whole, i), 2)
        assert (own.tokens[0] == written.tokens[i]).all()
        assert (own.read[0] == written.read[i]).all()


def test_more_hops_than_lines_are_refused():
    with pytest.raises(RelengthError, match="7 hops are more than the"):
        model(hops=7)(batch())


def test_a_context_without_a_line_is_refused_wherever_it_is_read():
    whole = batch()
    empty = replace(
        whole, inputs=whole.inputs[:, :0], input_lengths=torch.zeros_like(whole.input_lengths)
    )
    for read in (lambda: model()(empty), lambda: model().generate(empty, 2)):
        with pytest.raises(RelengthError, match="no line to read"):
            read()


def test_the_answer_is_written_from_the_unordered_code_of_the_nearest_line():
    ours = model()
    codes = ours.codes(batch())
    readout = codes.ordered[torch.arange(3), batch().supports[:, 0]] + 1e-6
    place, found = ours.nearest(codes, readout)
    assert (place == batch().supports[:, 0]).all()
    assert (found == codes.unordered[torch.arange(3), place]).all()
    assert ours.distances(codes, readout)[~codes.lines].isinf().all()


# --- the loss -------------------------------------------------------------------------------------


def test_terms_of_the_loss_by_hand():
    ours, whole = model(temporal="sinusoid"), batch()
    outputs, terms = ours.with_terms(whole, None, ("facts", "autoencoded", "order", "text"))
    torch.testing.assert_close(outputs, ours(whole))
    codes, order, autoencoded, text = ours.codes(whole), [], [], []
    readout = readouts(ours, whole)[-1]
    for i, lines in enumerate(whole.input_lengths.tolist()):
        s = int(whole.supports[i, 0])
        apart = (codes.ordered[i, :lines] - readout[i]).norm(dim=1)
        order.append(apart[s] + torch.logsumexp(-apart, 0))  # Eq. 2
        autoencoded.append(written(ours, whole.sentences[whole.inputs[i, s]]))
        text.append(written(ours, whole.sentences[whole.texts[i]]))
    for name, wanted in (("order", order), ("autoencoded", autoencoded), ("text", text)):
        torch.testing.assert_close(getattr(terms, name), torch.stack(wanted).mean())
    none = ours.with_terms(whole, None, ())[1]
    assert [float(term) for term in none] == [0, 0, 0, 0]


def test_facts_of_two_hops_are_written_from_the_lines_that_were_read():
    """-ln p(c_s | z_i*) of each hop: from the line nearest to its readout, not the wanted one."""
    ours, whole = model(hops=2, inverse="ridge"), batch(hops=2)
    terms = ours.with_terms(whole, None, ("facts", "autoencoded", "order"))[1]
    codes = ours.codes(whole)
    sums = {"facts": 0.0, "autoencoded": 0.0, "order": 0.0}
    astray = 0
    for hop, readout in enumerate(readouts(ours, whole)):
        for i, lines in enumerate(whole.input_lengths.tolist()):
            s = int(whole.supports[i, hop])
            apart = (codes.ordered[i, :lines] - readout[i]).norm(dim=1)
            read = int(apart.argmin())
            astray += read != s
            fact = whole.sentences[whole.inputs[i, s]]
            sums["facts"] += written(ours, fact, codes.unordered[i, read])
            sums["autoencoded"] += written(ours, fact, codes.unordered[i, s])
            sums["order"] += apart[s] + torch.logsumexp(-apart, 0)
    assert 0 < astray < 6  # so that both kinds are among them
    for name, total in sums.items():
        torch.testing.assert_close(getattr(terms, name), total / 3)
    assert not torch.isclose(terms.facts, terms.autoencoded)


def written(
    ours: MemReasoner, sentence: torch.Tensor, code: torch.Tensor | None = None
) -> torch.Tensor:
    """Mean -ln p of a sentence's words and its end, given a code (D,), its own if there is none."""
    words = sentence[sentence > 0]
    own = words if len(words) else sentence
    codes = ours.encode(own[None]) if code is None else code[None]
    given = torch.cat([torch.tensor([SOS]), words])[None]
    wanted = torch.cat([words, torch.tensor([EOS])])
    return F.cross_entropy(ours.decode(codes, given)[0], wanted)


def test_slopes_of_the_whole_loss_are_those_of_finite_differences():
    ours = model(inverse="ridge", temporal="bigru")
    asked = ("facts", "autoencoded", "order", "text")

    def loss() -> torch.Tensor:
        outputs, terms = ours.with_terms(batch(), None, asked)
        return F.cross_entropy(outputs.flatten(0, 1), batch().targets.flatten()) + sum(terms)

    loss().backward()
    for name in ("to_query.weight", "first", "to_latent.weight", "temporal.units.1.weight_hh"):
        parameter = ours.get_parameter(name)
        place = tuple(size // 2 for size in parameter.shape)
        with torch.no_grad():
            ends = []
            for step in (1e-6, -1e-6):
                parameter[place] += step
                ends.append(float(loss()))
                parameter[place] -= step
        slope = (ends[0] - ends[1]) / 2e-6
        assert float(parameter.grad[place]) == pytest.approx(slope, rel=1e-4, abs=1e-8), name


def test_supervision_needs_as_many_facts_as_reads():
    with pytest.raises(RelengthError, match="cannot supervise"):
        model(hops=2).with_terms(batch(), None, ("order",))


def test_noise_is_a_function_of_its_key():
    ours = model(noise=0.1, inverse="ridge")
    keys = [torch.tensor(k, dtype=torch.int32) for k in (1, 1, 2)]
    one, same, other = (readouts(ours, batch(), key)[-1] for key in keys)
    assert (one == same).all() and not torch.allclose(one, other)


# --- specs ----------------------------------------------------------------------------------------


def test_protocol_weighs_the_terms_and_leaves_out_those_without_weight():
    task = {"name": "babi_one_fact"}
    training = {"name": "facts", "alpha": 2.0, "rho": 0.0}
    spec = make_spec(task=task, model="MemReasoner", training=training, scale="smoke", seed=0)
    assert spec.training.weights == {"facts": 2.0, "autoencoded": 1.0, "order": 1.0}
    ours, key = model(inverse="ridge"), torch.tensor(1, dtype=torch.int32)
    loss = spec.training.loss(spec.task, ours, batch(), key)
    outputs, terms = ours.with_terms(batch(), key, ("facts", "autoencoded", "order"))
    wanted = spec.task.loss(outputs, batch()) + 2 * terms.facts + terms.autoencoded + terms.order
    torch.testing.assert_close(loss, wanted)
    plain = gpt()
    torch.testing.assert_close(
        spec.training.loss(spec.task, plain, batch(), key), spec.task.loss(plain(batch()), batch())
    )


STAGES = ((2, 1), (4, 2))  # most lines, epochs


def staged(**changed):
    training = {"name": "facts", "epochs": 4, "batch_size": 2, "shortest_first": STAGES} | changed
    return make_spec(task="babi_one_fact", model="GPT", training=training, scale="smoke", seed=0)


def test_in_early_stages_only_short_samples_are_trained_on_each_once():
    data = batch(8, most=9)
    lines = data.input_lengths
    plain = staged(shortest_first=None)
    for interval, most in enumerate((4, 6, 6, 9)):
        spec = staged(shortest_first=((4, 1), (6, 2)))
        steps = list(spec.training.order(spec, data, interval))
        taken = torch.from_numpy(np.concatenate(steps))
        assert sorted(taken.tolist()) == (lines <= most).nonzero().flatten().tolist()
        assert all(len(step) == 2 for step in steps[:-1])
        every = np.concatenate(list(plain.training.order(plain, data, interval)))
        assert taken.tolist() == [i for i in every if lines[i] <= most]  # else as without stages
    assert 0 < int((lines <= 4).sum()) < int((lines <= 6).sum()) < len(data)


def test_stages_that_cannot_be_are_refused():
    for stages, epochs, why in (
        (((4, 1), (2, 1)), 4, "more and more lines"),
        (((2, 0),), 4, "an epoch each"),
        (STAGES, 3, "leave none of the 3"),
    ):
        with pytest.raises(RelengthError, match=why):
            staged(shortest_first=stages, epochs=epochs)
    with pytest.raises(RelengthError, match="No training sample has 1 lines or fewer"):
        list(staged(shortest_first=((1, 1),)).training.order(staged(), batch(8, most=9), 0))


def test_without_stages_the_key_is_that_of_runs_from_before_there_were_any():
    with_none, with_some = staged(shortest_first=None), staged()
    assert "shortest_first" not in with_none.canonical()["training"]
    assert with_some.canonical()["training"]["shortest_first"] == [[2, 1], [4, 2]]
    assert with_some.key != with_none.key
    fields = json.loads(json.dumps(with_some.model_dump(mode="json")))
    assert spec_of_key(fields, with_some.key) == with_some


def test_the_last_weights_are_selected_whatever_they_score():
    task, training = {"name": "babi_one_fact"}, {"name": "facts", "epochs": 3}
    spec = make_spec(task=task, model="GPT", training=training, scale="smoke", seed=0)
    course = Course(spec)
    for epoch, accuracy in enumerate((0.5, 0.9, 0.1)):
        scores = Measured(accuracy, 1.0)
        course.end_epoch(1.0, Scores(scores, scores), lambda epoch=epoch: {"at": epoch})
    assert course.progress.kept["selected"] == (2, {"at": 2})
    assert course.progress.kept == dict.fromkeys(("selected", "last"), (2, {"at": 2}))
    assert spec.training.selection.words == "the longest training"


def test_a_model_of_other_samples_is_refused_with_those_that_fit():
    with pytest.raises(RelengthError, match="choose one of MemReasoner, GPT"):
        make_spec(
            task="babi_one_fact", model="LSTM", training={"name": "facts"}, scale="smoke", seed=0
        )
    assert TASKS["babi_one_fact"]().shape == (3000,)


def test_a_text_beyond_the_window_is_refused():
    with pytest.raises(RelengthError, match="does not fit into a window of 6"):
        gpt(window=6)(batch())
