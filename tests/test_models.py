"""The attention models compute what the paper's equations say, in every reading."""

import doctest
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mla_reference import Reference, location_weights
from torch import Tensor

from relength.kernels.hashing import step_key
from relength.models import recurrence
from relength.models.seq2seq import attention, location
from relength.models.seq2seq.attention import lay_out, sinusoid
from relength.models.seq2seq.attentions import ATTENTIONS, BY_LOCATION, Motion, arms_of
from relength.models.seq2seq.configs import Seq2SeqConfig
from relength.models.seq2seq.encoder_decoder import Seq2Seq
from relength.models.seq2seq.location import LocationAttention, clamp, softstair
from relength.streams import dropout_key
from relength.tasks import TASKS
from relength.tasks.base import EOS, PAD, SOS
from relength.tasks.batch import Batch, TokensToTokens, pad_tokens
from relength.tasks.losses import token_loss

VOCABULARY = 11
READINGS = [(name, arm) for name in ATTENTIONS for arm in arms_of(name)]
# Of the second readings of mixtures, which set their gate otherwise, one is tested each time.
every_reading = pytest.mark.parametrize(
    ("name", "arm"),
    [
        pytest.param(
            *(name, arm),
            marks=pytest.mark.weekly
            if name.startswith("Mix") and name != "Mix LocAttn" and arm != arms_of(name)[0]
            else (),
        )
        for name, arm in READINGS
    ],
)
BIDIRECTIONAL = [r for r in READINGS if r[0] in ("Bi-Relative", "Bi-ROPE", "OneStepAttn")]
SEEDS = st.integers(0, 2**32)


def build(name: str, arm: str = "released", seed: int = 0, fused: bool = True, **sizes) -> Seq2Seq:
    """A small model in float64 in which no parameter is zero, as after some training."""
    config = Seq2SeqConfig(
        name=name, arm=arm, **{"embedding_size": 6, "hidden_size": 8, "gate_start": 0.4} | sizes
    )
    model = Seq2Seq(config, VOCABULARY, fused).double().initialise(seed)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.empty_like(parameter).normal_(generator=random)
            parameter.add_(noise, alpha=0.3)
    return model


@st.composite
def batches(draw, least: int = 1, most: int = 4, longest: int = 7) -> Batch:
    """Token sequences of unequal, unrelated lengths."""
    pair = st.tuples(*[st.integers(1, longest)] * 2)
    lengths = draw(st.lists(pair, min_size=least, max_size=most))
    random = np.random.default_rng(draw(SEEDS))
    tokens = [[random.integers(4, VOCABULARY, n).tolist() for n in pair] for pair in lengths]
    return pad_tokens([s for s, _ in tokens], [[*t, EOS] for _, t in tokens], PAD)


def previous_tokens(batch: Batch, row: int) -> list[int]:
    """Return what teacher forcing feeds to the decoder for one sample."""
    return [SOS, *batch.targets[row, : batch.target_lengths[row] - 1].tolist()]


def tolerance(name: str) -> float:
    """The library's sinusoids of distances and angles are float32."""
    return 1e-5 if name in ("Relative", "Bi-Relative", "Bi-ROPE") else 1e-10


def source(batch: Batch, row: int) -> list[int]:
    return batch.inputs[row, : batch.input_lengths[row]].tolist()


def close(ours: Tensor, expected, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("module", [attention, location, recurrence])
def test_worked_examples_in_docstrings_are_true(module):
    assert doctest.testmod(module).failed == 0


# --- against the equations ----------------------------------------------------------------------


@every_reading
@settings(max_examples=8)
@given(batch=batches(), seed=SEEDS)
def test_scores_are_those_of_the_equations(name, arm, batch, seed):
    model = build(name, arm, seed)
    reference = Reference(model)
    scores = model(batch)
    for row in range(len(batch)):
        expected, _ = reference.decode(source(batch, row), previous_tokens(batch, row))

        close(scores[row, : len(expected)], expected, tolerance(name))


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", ["Content", "Mix MonoAttn"])
@settings(max_examples=8)
@given(batch=batches(), seed=SEEDS, layers=st.integers(1, 3), inner=st.integers(1, 20))
def test_layers_and_inner_width_are_those_of_the_equations(name, fused, batch, seed, layers, inner):
    arm, sizes = arms_of(name)[0], {"layers": layers, "inner_size": inner}
    model, reference = (build(name, arm, seed, way, **sizes) for way in (fused, True))
    scores, tokens = model(batch), model.generate(batch, 5)[0]
    for row in range(len(batch)):
        words = source(batch, row)
        expected, _ = Reference(reference).decode(words, previous_tokens(batch, row))
        close(scores[row, : len(expected)], expected)
        said = tokens[row].tolist()
        ours, _ = Reference(reference).decode(words, [SOS, *said[:-1]])
        np.testing.assert_allclose(ours[np.arange(5), said], ours.max(1), rtol=0, atol=1e-9)


@every_reading
@settings(max_examples=8)
@given(batch=batches(), seed=SEEDS, steps=st.integers(1, 12))
def test_generated_tokens_and_weights_are_those_of_the_equations(name, arm, batch, seed, steps):
    model = build(name, arm, seed)
    reference = Reference(model)
    tokens, weights = model.generate(batch, steps, keep_weights=True)
    for row in range(len(batch)):
        fed = [SOS, *tokens[row, :-1].tolist()]
        scores, expected = reference.decode(source(batch, row), fed)
        ours = weights[row, :, : expected.shape[1]]
        close(ours, expected, tolerance(name))
        chosen = scores[np.arange(steps), tokens[row].numpy()]
        np.testing.assert_allclose(chosen, scores.max(1), rtol=0, atol=1e-5)


@given(st.floats(-100, 100))
def test_clamp_is_equation_8(mu):
    expected = max(0.01 * mu, min(1 + 0.01 * mu, mu))
    assert clamp(torch.tensor(mu, dtype=torch.float64)).item() == pytest.approx(expected, abs=1e-12)


def test_clamp_leaves_positions_alone_and_leaks_outside():
    positions = torch.tensor([-2.0, 0.0, 0.25, 1.0, 3.0]).double()
    close(clamp(positions), [-0.02, 0, 0.25, 1.0, 1.03])


def test_softstair_has_flat_treads_and_steep_risers():
    x = torch.tensor([-0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 2.5]).double()
    riser = 1 / (1 + math.exp(-10.0))  # σ(20 · 0.5)
    quarter = 1 / (1 + math.exp(-5.0))  # σ(20 · 0.25)
    close(softstair(x), [-0.5, 1 - riser, 1 - quarter, 0.5, quarter, 2 - riser, 2.5], 1e-12)


def test_sinusoids_of_hand_made_distances():
    # size 4: frequencies 1 and 1/100, sines before cosines
    expected = [
        [math.sin(k), math.sin(k / 100), math.cos(k), math.cos(k / 100)] for k in (-2, 0, 3)
    ]
    close(sinusoid(torch.tensor([-2, 0, 3]), 4), expected, 1e-6)


def test_positions_run_from_0_to_1_over_each_sample():
    memory = lay_out(torch.zeros(3, 5, 2, dtype=torch.float64), torch.tensor([1, 3, 5]))
    close(memory.position[1, :3], [0, 0.5, 1])
    close(memory.position[2], [0, 0.25, 0.5, 0.75, 1])
    close(memory.step, [1, 0.5, 0.25])  # one position is its own neighbour: max(1, s - 1)
    assert memory.mask.sum(1).tolist() == [1, 3, 5]


# --- centres of focus ---------------------------------------------------------------------------


def heads(*values: float) -> list[Tensor]:
    return [torch.tensor([value], dtype=torch.float64) for value in values]


def moved(name: str, arm: str = "released", gate_start: float = 20.0) -> LocationAttention:
    return LocationAttention(4, BY_LOCATION[name], arm, 0.27, gate_start)


PAST, STEP = torch.tensor([0.25]).double(), torch.tensor([0.125]).double()


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_centre_of_location_attention():
    centre = moved("LocAttn").centre(heads(2.5, 0.0, -1.0), PAST, STEP)
    close(centre, [0.5 * 0.25 + logistic(-1.0) + 2.5 * 0.125])


@pytest.mark.parametrize(("arm", "sharpness"), [("paper", 1), ("released", 5)])
def test_centre_of_one_step_attention(arm, sharpness):
    centre = moved("OneStepAttn", arm).centre(heads(0.3), PAST, STEP)
    close(centre, [0.25 + 0.125 * logistic(sharpness * 0.3)])


@pytest.mark.parametrize(
    ("name", "factor", "clamped"),
    [
        *(("OneStepAttn", True, True), ("OneStepAttn -Step 2", True, False)),
        *(("OneStepAttn -Step 3", False, True), ("OneStepAttn -Sigmoid", False, True)),
    ],
)
def test_what_the_two_readings_of_an_ablation_differ_in(name, factor, clamped):
    """The factor in the sigmoid of the step, the clamp to the source, or both."""
    released, paper = moved(name), moved(name, "paper")
    scalars = heads(0.3, *([0.1] * released.reference.scalars))
    apart = released.centre(scalars, PAST, STEP) != paper.centre(scalars, PAST, STEP)
    assert apart.item() == factor
    assert (released.clamped != paper.clamped) == clamped


@pytest.mark.parametrize("r", [-0.3, 0.3])
def test_centre_of_monotonic_attention(r):
    g = logistic(0.4)
    paper = moved("MonoAttn", "paper", 0.4).double().centre(heads(r), PAST, STEP)
    close(paper, [0.25 + 0.125 * (g * logistic(r) + (1 - g) * max(r, 0))], 1e-8)
    released = moved("MonoAttn", "released", 0.4).double().centre(heads(r), PAST, STEP)
    close(released, [0.25 + 0.125 * (g * max(r, 0) + (1 - g) * logistic(5 * r))], 1e-8)


@given(r=st.floats(-50, 50))
def test_released_monotonic_attention_is_a_relu(r):
    steps = moved("MonoAttn").centre([torch.tensor([r])], torch.zeros(1), torch.ones(1))
    assert steps.item() == max(torch.tensor(r).item(), 0.0)


def test_released_gate_gets_no_gradient_and_the_papers_gate_does():
    batch = TASKS["copy"](train_size=8).dataset("train", 0)
    for arm, start in (("released", 20.0), ("paper", 0.0)):
        model = Seq2Seq(Seq2SeqConfig(name="MonoAttn", arm=arm, gate_start=start), 14).initialise(0)
        token_loss(model(batch), batch).backward()
        gradient = model.attention.gate.grad
        assert (gradient.abs().item() == 0) == (arm == "released")


def focus_on(module, scalar: float, s: int, tokens: int) -> Tensor:
    """Positions (tokens,) most attended when the step head always reads ``scalar``."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim:
                parameter.zero_()
        module.heads.weight[1] = 1.0
        module.hidden.bias[0] = scalar
    memory = module.prepare(torch.zeros(1, s, 4), torch.tensor([s]), tokens)
    state, places = module.start(memory), []
    for t in range(tokens):
        weights, state = module(torch.zeros(1, 4), t, memory, state)
        places.append(weights.argmax(1))
    return torch.cat(places)


@pytest.mark.parametrize("s", [6, 20, 200])
@pytest.mark.parametrize("arm", ["paper", "released"])
def test_one_step_attention_walks_one_position_a_token_at_any_length(arm, s):
    module = moved("OneStepAttn", arm)
    assert focus_on(module, 20.0, s, s - 2).tolist() == list(range(1, s - 1))
    assert focus_on(module, -20.0, s, s).tolist() == [0] * s


@pytest.mark.parametrize("arm", ["paper", "released"])
def test_one_step_bounds_the_centre_and_not_the_place_where_the_next_step_begins(arm):
    """A wide focus is cut off at the end of the source: its mean is not its centre."""
    module, s = moved("OneStepAttn", arm), 49
    memory = lay_out(torch.zeros(1, s, 4, dtype=torch.float64), torch.tensor([s]))
    means = []
    for spread in (0.0, 3.0, 15.0):
        aim = module.aim(memory, heads(spread, 1.0), torch.zeros(1, dtype=torch.float64))
        assert aim[0].item() * (s - 1) <= 1
        weights, _ = location.focus(memory.position, memory.mask, *aim)
        means.append((weights * memory.position).sum().item() * (s - 1))
    assert means[0] <= 1 < 2.5 < means[1] < 10 < means[2]


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_released_monotonic_attention_strides(stride):
    places = focus_on(moved("MonoAttn"), float(stride), 30, 9)
    assert places.tolist() == [stride * t for t in range(1, 10)]


def test_released_monotonic_attention_falls_back_to_start_after_it_ran_past_the_end():
    module = moved("MonoAttn")
    assert focus_on(module, 40.0, 30, 4).tolist() == [0, 0, 0, 0]
    kept_in = focus_on(moved("MonoAttn", "paper", -20.0), 40.0, 30, 4)
    assert kept_in.tolist() == [29, 29, 29, 29]


# --- every model --------------------------------------------------------------------------------


@every_reading
@settings(max_examples=8)
@given(batch=batches(), seed=SEEDS)
def test_weights_are_a_distribution_over_the_source(name, arm, batch, seed):
    _, weights = build(name, arm, seed).generate(batch, 6, keep_weights=True)
    positions = torch.arange(weights.shape[2])
    beyond = positions >= (batch.input_lengths + 2)[:, None, None]
    assert (weights >= 0).all()
    assert (weights.masked_select(beyond) == 0).all()
    sums = weights.sum(2)
    # Unclamped, a focus can run so far past the end that nothing is left to look at.
    unclamped = name in BY_LOCATION and arm != "paper" and not BY_LOCATION[name].clamped
    lost = (sums < 1) if unclamped else (sums < 0)
    assert (sums < 1 + 1e-9).all()
    assert torch.allclose(sums[~lost], torch.ones_like(sums[~lost]), atol=1e-9)


@given(
    mu=st.floats(-1, 2), sigma=st.floats(0.01, 1), s=st.integers(1, 30), padding=st.integers(0, 5)
)
def test_a_focus_is_a_discrete_gaussian(mu, sigma, s, padding):
    class At(location.LocationAttention):
        def centre(self, heads, past, step):
            return torch.full_like(past, mu)

    module = At(4, Motion(), "released", sigma * s, 0.0).double()
    torch.nn.init.zeros_(module.heads.weight)
    torch.nn.init.zeros_(module.hidden.weight)
    memory = module.prepare(torch.zeros(1, s + padding, 4).double(), torch.tensor([s]), 1)
    weights, past = module(torch.zeros(1, 4, dtype=torch.float64), 0, memory, module.start(memory))
    expected = location_weights(mu, sigma, s)
    close(weights[0, :s], expected)
    assert (weights[0, s:] == 0).all()
    close(past, [sum(w * i / max(1, s - 1) for i, w in enumerate(expected))])


@every_reading
@settings(max_examples=8)
@given(batch=batches(), seed=SEEDS, more=st.integers(1, 5))
def test_padding_changes_nothing(name, arm, batch, seed, more):
    model = build(name, arm, seed)
    pad = torch.nn.functional.pad
    # Whatever stands in the padding, and however much of it there is.
    beyond = torch.arange(batch.inputs.shape[1]) >= batch.input_lengths[:, None]
    wider = TokensToTokens(
        pad(batch.inputs.masked_fill(beyond, 9), (0, more), value=7),
        pad(batch.targets.masked_fill(~batch.mask, 6), (0, more), value=8),
        pad(batch.mask, (0, more)),
        batch.input_lengths,
        batch.target_lengths,
    )
    key = step_key(dropout_key(seed, "encodings"), 5)
    for dropout in (None, key):
        ours, padded = model(batch, dropout), model(wider, dropout)
        close(padded[:, : ours.shape[1]][batch.mask], ours[batch.mask].detach().numpy())
        close(token_loss(padded, wider), token_loss(ours, batch).item())


@every_reading
@settings(max_examples=8)
@given(batch=batches(least=2, most=3), seed=SEEDS)
def test_a_sample_is_treated_the_same_alone_and_in_company(name, arm, batch, seed):
    model = build(name, arm, seed)
    together, (tokens, _) = model(batch), model.generate(batch, 5)
    for row in range(len(batch)):
        single = batch.select(slice(row, row + 1))
        alone = model(single)
        close(together[row, : alone.shape[1]], alone[0].detach().numpy())
        assert torch.equal(model.generate(single, 5)[0][0], tokens[row])


@every_reading
@settings(max_examples=8)
@given(batch=batches(), seed=SEEDS, steps=st.integers(1, 10))
def test_teacher_forcing_with_the_models_own_tokens_is_generation(name, arm, batch, seed, steps):
    model = build(name, arm, seed)
    tokens, _ = model.generate(batch, steps)
    fed = TokensToTokens(
        batch.inputs,
        tokens,
        torch.ones_like(tokens, dtype=torch.bool),
        batch.input_lengths,
        torch.full((len(batch),), steps),
    )
    scores = model(fed)
    chosen = scores.gather(2, tokens[:, :, None]).squeeze(2)
    assert torch.allclose(chosen, scores.amax(2), rtol=0, atol=1e-9)


@every_reading
def test_dropout_zeroes_half_of_the_encodings_and_doubles_the_rest(name, arm):
    batch = pad_tokens([[5, 6, 7, 8]] * 8, [[EOS]] * 8, PAD)
    model = build(name, arm, dropout=0.5)
    model.direction = None
    encodings, _, summary = model.encode(batch, None)
    dropped, _, same = model.encode(batch, step_key(1, 1))
    kept = dropped != 0
    assert 0.35 < kept.double().mean() < 0.65
    close(dropped[kept], 2 * encodings[kept].detach().numpy())
    close(same, summary.detach().numpy())  # e_cls is never dropped


@pytest.mark.parametrize(("name", "arm"), BIDIRECTIONAL)
@settings(max_examples=10)
@given(batch=batches(), seed=SEEDS)
def test_encodings_turned_round_with_the_gate_turned_round_are_the_same(name, arm, batch, seed):
    # Eq. 18 does not know which direction is called forward.
    model, lengths = build(name, arm, seed), batch.input_lengths + 2
    encodings, _, summary = build("Content", seed=seed).encode(batch, None)
    ours = model.interpolate(encodings, lengths, summary)
    with torch.no_grad():
        for parameter in model.direction.parameters():
            parameter.neg_()  # σ(-x) = 1 - σ(x)
    turned = recurrence.take(encodings, recurrence.reversal(lengths, encodings.shape[1]))
    close(model.interpolate(turned, lengths, summary), ours.detach().numpy())


def test_relative_attention_knows_distances_only():
    # Without content, one token later everything is seen one position further on.
    model = build("Relative")
    with torch.no_grad():
        model.attention.key.weight.zero_()
    module, h = (
        model.attention,
        torch.randn(1, 8, generator=torch.Generator().manual_seed(0)).double(),
    )
    memory = module.prepare(torch.zeros(1, 9, 8).double(), torch.tensor([9]), 4)
    now, later = (module(h, t, memory, module.start(memory))[0].log() for t in (1, 2))
    close((later[:, 1:] - later[:, 1:2]), (now[:, :-1] - now[:, :1]).detach().numpy())


def test_loss_is_the_mean_surprise_of_the_target_tokens():
    batch = pad_tokens([[5, 6], [7]], [[5, 6, EOS], [EOS]], PAD)
    model = build("Content")
    p = torch.softmax(model(batch), 2)
    surprises = [
        -math.log(p[row, t, token].item() + 1e-9)
        for row, tokens in enumerate([[5, 6, EOS], [EOS]])
        for t, token in enumerate(tokens)
    ]
    assert token_loss(model(batch), batch).item() == pytest.approx(sum(surprises) / 4, rel=1e-12)


# --- parameters ---------------------------------------------------------------------------------


def test_one_step_attention_has_the_released_number_of_parameters():
    # 249,168 in the released code, where h_0 (128) and p (1) exist but are not used.
    config = Seq2SeqConfig(name="OneStepAttn")
    model = Seq2Seq(config, len(TASKS["copy"]().vocabulary))
    assert sum(p.numel() for p in model.parameters()) == 249_168 - 128 - 1


@pytest.mark.parametrize("layers", [1, 2])
@every_reading
def test_every_parameter_is_used(name, arm, layers):
    model = build(name, arm, layers=layers)
    batch = pad_tokens([[4, 5, 6, 7, 8, 9, 10]] * 2, [[4, 5, 6, 7, 8, 9, 10, EOS]] * 2, PAD)
    token_loss(model(batch), batch).backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


def test_equal_seeds_give_equal_weights_to_what_models_share():
    one, other, third = (
        Seq2Seq(Seq2SeqConfig(name=n), 14) for n in ("Content", "MonoAttn", "Content")
    )
    ours, theirs = one.initialise(3).state_dict(), other.initialise(3).state_dict()
    shared = [name for name in ours if name in theirs]
    assert "encoder.forwards.weight_hh" in shared and "embedding.weight" in shared
    assert all(torch.equal(ours[name], theirs[name]) for name in shared)
    assert not torch.equal(third.initialise(4).embedding.weight, one.embedding.weight)


# Half-widths of the uniform distributions in the released code, d = 128 (worked out by hand).
RELEASED_BOUNDS = {
    "encoder": 1 / math.sqrt(64),
    "decoder": 1 / math.sqrt(128),
    "direction": 1 / math.sqrt(128),  # weight and bias as PyTorch draws them
    "bias": 1 / math.sqrt(128),
    "square": math.sqrt(6 / 256),  # Xavier, 128 by 128
    "to_embedding.weight": math.sqrt(6 / 192),
    "attention.mix.weight": math.sqrt(6 / 129),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_weights_start_as_in_the_released_code(name):
    model = Seq2Seq(Seq2SeqConfig(name=name), 14).initialise(0)
    for which, parameter in model.named_parameters():
        values, count = parameter.detach(), parameter.numel()
        if which in ("marks", "token_bias", "attention.content_bias", "attention.position_bias"):
            assert not values.any(), which
        elif which == "attention.gate":
            assert values == (20 if model.config.arm == "released" else 0)
        elif which == "embedding.weight":  # normal, Kaiming with fan out 14
            assert values.std().item() == pytest.approx(math.sqrt(2 / 14), rel=5 / count**0.5)
        elif (
            which == "attention.heads.weight"
        ):  # (1, 128, 1) for the width, (1, 128, k) for the moves
            moves = len(values) - 1
            assert_uniform(values[0], math.sqrt(6 / 129))
            assert_uniform(values[1:], math.sqrt(6 / (129 * moves)))
        else:
            kind = next(
                key
                for key in (which.split(".")[0], which, which.rsplit(".")[-1], "square")
                if key in RELEASED_BOUNDS
            )
            assert_uniform(values, RELEASED_BOUNDS[kind])


def test_runs_recorded_before_keep_the_first_weights_that_they_had():
    """The map of the mixing gate started 2.4 times narrower, as PyTorch draws it."""
    old = Seq2SeqConfig(name="Mix LocAttn", mix_start="default")
    assert Seq2SeqConfig(name="Mix LocAttn").mix_start == "xavier"
    model = Seq2Seq(old, 14).initialise(0)
    assert_uniform(model.attention.mix.weight, 1 / math.sqrt(128))
    with pytest.raises(ValueError, match="mixes nothing"):
        Seq2SeqConfig(name="LocAttn", mix_start="xavier")


def assert_uniform(values, bound):
    count = values.numel()
    assert values.abs().max().item() <= bound * (1 + 1e-6)
    if count < 50:  # too few for statistics
        return
    assert values.abs().max().item() >= bound * (1 - 8 / count)
    assert values.std().item() == pytest.approx(bound / math.sqrt(3), rel=5 / count**0.5)
    assert abs(values.mean().item()) < 5 * bound / math.sqrt(3 * count)


# --- what the released configurations make equal ------------------------------------------------


@pytest.mark.parametrize("name", ["MonoAttn", "Mix MonoAttn", "Mix MonoAttn PR"])
def test_monotonic_attention_whose_gate_starts_as_released_is_the_relaxed_one(name):
    """The gate is stuck at exactly 1: two rows of the paper's tables, one model.

    So are those of the mixed models, if nothing but the switch of the released code is turned.
    """
    batch = TASKS["copy"](train_size=8).dataset("train", 0)
    scores, gradients = [], []
    for row in (name, name.replace("MonoAttn", "RMonoAttn")):
        model = Seq2Seq(Seq2SeqConfig(name=row, gate_start=20.0), 14).initialise(3)
        token_loss(model(batch), batch).backward()
        scores.append(model(batch))
        gradients.append({n: p.grad for n, p in model.named_parameters()})
    assert Seq2SeqConfig(name="MonoAttn").gate_start == 20
    assert torch.equal(*scores)
    assert not gradients[0].pop("attention.gate").any()
    assert all(torch.equal(g, gradients[1][n]) for n, g in gradients[0].items())


@pytest.mark.parametrize("name", [name for name in ATTENTIONS if name.startswith("Mix ")])
def test_a_mixture_whose_gate_is_open_is_its_location_attention(name):
    """This is how the released configurations, which switch content off, make them equal: in
    output and, but for what mixes, in gradient.
    """
    batch = pad_tokens([[4, 5, 6, 7], [8, 9]], [[5, 6, 7, EOS], [4, EOS]], PAD)
    mixed = build(name, Seq2SeqConfig(name=name).arm)
    alone = build(name.removeprefix("Mix ").removesuffix(" PR"))
    weights = mixed.state_dict()
    alone.load_state_dict({n: weights[n] for n in alone.state_dict()})
    with torch.no_grad():
        mixed.attention.mix.weight.zero_()
        mixed.attention.mix.bias.fill_(60.0)  # its sigmoid is 1
    close(mixed(batch), alone(batch).detach().numpy())
    for model in (mixed, alone):
        token_loss(model(batch), batch).backward()
    ours, theirs = (dict(model.named_parameters()) for model in (mixed, alone))
    for n, parameter in theirs.items():
        if parameter.grad is not None:
            close(ours[n].grad, parameter.grad.numpy())


@pytest.mark.parametrize("ending", ["", " PR"])
def test_a_repaired_mixture_with_monotonic_attention_is_not_the_relaxed_one(ending):
    """Its gate can learn, or the two would be rows of one function still."""
    batch = TASKS["copy"](train_size=8).dataset("train", 0)
    scores = []
    for name in (f"Mix MonoAttn{ending}", f"Mix RMonoAttn{ending}"):
        config = Seq2SeqConfig(name=name)
        assert config.arm == "repaired"
        model = Seq2Seq(config, 14).initialise(3)
        scores.append(model(batch))
    assert not torch.allclose(*scores)
