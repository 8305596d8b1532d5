"""LSTM, the attention models, PtrNet, Transformer and ESBN compute what their papers say."""

import numpy as np
import pytest
import torch
from baseline_reference import (
    CHANNELS,
    CLASSES,
    attend,
    build,
    close,
    esbn,
    sources,
    weights_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from relength.kernels.hashing import step_key
from relength.models.baselines.content_attention import AdditiveScore
from relength.models.baselines.location_attention import LocationScore
from relength.models.memory.esbn import context_normalised
from relength.streams import dropout_key

pytestmark = pytest.mark.equality

SEEDS = st.integers(0, 2**32)
ATTENDING = [
    ("Content Attention", "released"),
    ("Content Attention", "paper"),
    ("Location Attention", "paper"),
    ("Hybrid Attention", "paper"),
    ("PtrNet", "paper"),
]


# --- LSTM -----------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(seed=SEEDS, length=st.integers(1, 6), steps=st.integers(1, 6))
def test_the_lstm_is_pytorchs_in_scores_and_gradients(seed, length, steps):
    model, inputs = build("LSTM", "released", seed), sources(3, length, seed)
    lstm = model.controller.lstm
    theirs = torch.nn.LSTM(CHANNELS, lstm.hidden_size, batch_first=True).double()
    for name, parameter in lstm.named_parameters():
        getattr(theirs, f"{name}_l0").data = parameter.detach().clone()
    h, c = (x.detach()[None] for x in model.start(3))
    states, _ = theirs(F.pad(inputs, (0, 0, 0, steps)), (h.contiguous(), c.contiguous()))
    expected = model.output(states[:, -steps:])
    scores = model.decode(inputs, steps, None)
    close(scores, expected)
    direction = torch.from_numpy(np.random.default_rng(seed).normal(size=scores.shape))
    (scores * direction).sum().backward()
    (expected * direction).sum().backward()
    for name, parameter in lstm.named_parameters():
        close(parameter.grad, getattr(theirs, f"{name}_l0").grad)


def test_step_by_step_the_lstm_gives_what_it_gives_in_one_scan():
    model, inputs = build("LSTM", "released"), sources(2, 4)
    by_steps = super(type(model), model).decode(inputs, 3, None)
    close(model.decode(inputs, 3, None), by_steps, 1e-12)


# --- attention ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "arm"), ATTENDING)
@settings(max_examples=6)
@given(seed=SEEDS, length=st.integers(1, 6), steps=st.integers(1, 5))
def test_scores_and_weights_are_those_of_the_equations(name, arm, seed, length, steps):
    model, inputs = build(name, arm, seed), sources(2, length, seed)
    scores, traced = model.decode(inputs, steps, None), model.trace(inputs, steps)
    for row in range(2):
        expected, weights = attend(name, arm, weights_of(model), inputs[row].numpy(), steps)
        close(scores[row], expected)
        for kind, ours in traced.items():
            close(ours[row], np.array([w[kind] for w in weights]))


@given(seed=SEEDS, length=st.integers(1, 9), rows=st.integers(1, 9))
def test_location_weights_are_luongs_for_shorter_and_longer_sources(seed, length, rows):
    """The top of a_t for a short source; of a long one, the positions beyond W_a are not seen."""
    torch.manual_seed(seed)
    score = LocationScore(5, rows).double()
    state = torch.randn(3, 5, dtype=torch.float64)
    weights = score(state, torch.zeros(3, length, 5).double(), F.linear)
    close(weights.sum(1), np.ones(3))
    assert (weights[:, :rows] > 0).all() and not weights[:, rows:].any()
    full = state @ score.rows.weight[:length].T
    close(weights[:, : min(rows, length)], torch.softmax(full, dim=1))


@given(seed=SEEDS, length=st.integers(1, 6))
def test_content_weights_follow_the_annotations_when_these_change_places(seed, length):
    torch.manual_seed(seed)
    score = AdditiveScore(4).double()
    torch.nn.init.normal_(score.weight)
    state, annotations = (torch.randn(2, *s, dtype=torch.float64) for s in ((4,), (length, 4)))
    order = torch.randperm(length)
    weights = score(state, score.prepare(annotations, F.linear), F.linear)
    moved = score(state, score.prepare(annotations[:, order], F.linear), F.linear)
    close(moved, weights[:, order])


@given(seed=SEEDS, length=st.integers(1, 6))
def test_a_pointer_network_writes_only_symbols_that_it_has_read(seed, length):
    model, inputs = build("PtrNet", "paper", seed), sources(2, length, seed)
    p = model.decode(inputs, 4, None).exp()
    read = inputs[:, :, :CLASSES].sum(1) > 0  # (B, classes)
    assert (p[~read[:, None].expand_as(p)] < 1e-8).all()
    close(p.sum(2), np.ones((2, 4)), 1e-8)  # all weight is on symbols


def test_weight_that_a_pointer_network_spends_on_marks_is_on_no_symbol():
    model, inputs = build("PtrNet", "paper"), sources(1, 5)
    inputs[:, 0, :CLASSES] = inputs[:, -1, :CLASSES] = 0  # start and end mark
    weights = model.trace(inputs, 3)["pointer"]
    close(model.decode(inputs, 3, None).exp().sum(2), weights[:, :, 1:-1].sum(2), 1e-8)


# --- Transformer ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arm", ["released", "paper"])
@pytest.mark.parametrize(("length", "steps"), [(1, 1), (5, 5), (7, 2)])
def test_the_transformer_is_pytorchs_encoder_in_scores_and_gradients(arm, length, steps):
    model, inputs = build("Transformer", arm), sources(3, length)
    d, config = model.config.hidden_size, model.config
    layer = torch.nn.TransformerEncoderLayer(
        d, config.heads, config.inner_size, dropout=0.0, batch_first=True, dtype=torch.float64
    )
    theirs = torch.nn.TransformerEncoder(layer, len(model.layers), enable_nested_tensor=False)
    names = {
        "query_key_value": "self_attn.in_proj_",
        "attended": "self_attn.out_proj.",
        "inner": "linear1.",
        "outer": "linear2.",
        "norm_attention": "norm1.",
        "norm_forward": "norm2.",
    }
    pairs = []
    for ours, other in zip(model.layers, theirs.layers, strict=True):
        parameters = dict(other.named_parameters())
        for name, parameter in ours.named_parameters():
            module, kind = name.split(".")
            peer = parameters[names[module] + kind]
            peer.data = parameter.detach().clone()
            pairs.append((parameter, peer))
    angles = np.arange(length + steps)[:, None] / 10_000 ** (np.arange(0, d, 2) / d)
    places = torch.from_numpy(np.concatenate([np.sin(angles), np.cos(angles)], axis=1))
    expected = model.output(
        theirs(model.embedding(F.pad(inputs, (0, 0, 0, steps))) + places)[:, -steps:]
    )
    scores = model.decode(inputs, steps, None)
    close(scores, expected, 1e-5)  # the library's sinusoids are float32
    scores.square().sum().backward()
    expected.square().sum().backward()
    for ours, peer in pairs:
        scale = peer.grad.abs().max().item()
        close(ours.grad / scale, peer.grad / scale, 1e-5)


def test_dropout_belongs_to_the_step_and_spares_evaluation():
    model, inputs = build("Transformer", "released"), sources(2, 5)
    keys = [step_key(dropout_key(0, "encodings"), step) for step in (0, 0, 1)]
    first, again, later = (model.decode(inputs, 3, key) for key in keys)
    assert torch.equal(first, again) and not torch.allclose(first, later)
    sure = build("Transformer", "released", dropout=0.0)
    close(model.decode(inputs, 3, None), sure.decode(inputs, 3, keys[0]), 1e-12)


def test_on_average_dropout_changes_no_attention_weight():
    model = build("Transformer", "released", dropout=0.2)
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 4, 8)))
    layer = model.layers[0]
    keys = [step_key(7, step) for step in range(4000)]
    mean = sum(layer.attend(x, key, F.linear) for key in keys) / len(keys)
    close(mean, layer.attend(x, None, F.linear), 0.1)


# --- ESBN -----------------------------------------------------------------------------------------


@settings(max_examples=8)
@given(seed=SEEDS, length=st.integers(2, 6), steps=st.integers(1, 5))
def test_esbn_reads_by_its_authors_algorithm_and_answers_by_its_reversal(seed, length, steps):
    model, inputs = build("ESBN", "paper", seed), sources(2, length, seed)
    scores = model.decode(inputs, steps, None)
    for row in range(2):
        close(scores[row], esbn(weights_of(model), inputs[row].numpy(), steps))


@given(seed=SEEDS)
def test_the_esbn_controller_knows_symbols_only_by_which_of_them_are_alike(seed):
    """Turned round, values look different and are as similar to one another as before."""
    model = build("ESBN", "paper", seed)
    random = np.random.default_rng(seed)
    z = torch.from_numpy(random.normal(size=(2, 5, 8)))
    turn, _ = np.linalg.qr(random.normal(size=(8, 8)))
    for ours, turned in zip(
        model.bind(z)[:2], model.bind(z @ torch.from_numpy(turn))[:2], strict=True
    ):
        close(ours, turned)


@given(seed=SEEDS, length=st.integers(2, 8))
def test_normalised_contexts_have_mean_0_and_variance_1(seed, length):
    drawn = torch.from_numpy(np.random.default_rng(seed).normal(size=(2, length, 3)))
    z = context_normalised(drawn)
    close(z.mean(1), np.zeros((2, 3)))
    close(z.var(1), drawn.var(1) / (drawn.var(1) + 1e-8))


def test_the_context_of_a_single_vector_is_zero():
    close(context_normalised(torch.full((1, 1, 3), 5.0)), np.zeros((1, 1, 3)))
