"""Transformers for sequences, and PANM on one: attention by hand, places, prefixes, decoding."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.kernels.hashing import step_key
from relength.models import MODELS
from relength.models.pointers.transformer_configs import BACKBONES
from relength.models.seq2seq.attention import sinusoid
from relength.models.transformers import attention as attention_module
from relength.models.transformers.attention import MultiHead, Remembered, skewed
from relength.models.transformers.configs import VARIANTS
from relength.models.transformers.encoder_decoder import marked
from relength.specs.spec import make_spec
from relength.streams import dropout_key, stream
from relength.tasks import TASKS
from relength.tasks.base import EOS, PAD, SOS
from relength.training import Stack, train

TASK = TASKS["scan_22"]()
SMALL = {"width": 12, "heads": 2, "inner_size": 10}
SMALL_PANM = SMALL | {"pointer_size": 6, "mlp_size": 7, "bits": 7}
EVERY = [*VARIANTS, *BACKBONES]
every_model = pytest.mark.parametrize("name", EVERY)


def built(name: str, arm: str = "", **sizes):
    sizes = sizes or (SMALL_PANM if "PANM" in name else SMALL)
    config = MODELS[name].config(name=name, **({"arm": arm} if arm else {}), **sizes)
    return MODELS[name].module(config, *TASK.shape).initialise(3).double()


def stirred(model):
    """The model with weights so large that attention and pointers look somewhere."""
    for i, weight in enumerate(model.parameters()):
        weight.data += 0.3 * numbers(*weight.shape, seed=i)
    return model


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(stream(seed, "data").normal(size=shape))


def batch(items: int = 5, seed: int = 0):
    return TASK.sample(stream(seed, "data"), items, (1, 22))


# --- attention ------------------------------------------------------------------------------------


def test_relative_attention_is_the_sum_written_out():
    """Two heads, three queries at places 2 to 4, five keys: every score by loops over numbers."""
    d, heads, first, steps, size = 4, 2, 2, 3, 5
    e = d // heads
    attention = MultiHead(d, heads, 0.0, relative=True).double()
    for i, weight in enumerate(attention.parameters()):
        weight.data = numbers(*weight.shape, seed=i)
    x, others = numbers(1, steps, d, seed=20), numbers(1, size, d, seed=21)
    w = {name: p.detach().numpy() for name, p in attention.named_parameters()}
    keys, values = (others[0].numpy() @ part.T for part in np.split(w["key_value.weight"], 2))
    queries = x[0].numpy() @ w["query.weight"].T
    found = np.zeros((steps, d))
    for t in range(steps):
        for h in range(heads):
            own = slice(h * e, (h + 1) * e)
            scores = []
            for s in range(size):
                away = first + t - s
                waves = [away / 10000 ** (2 * j / d) for j in range(d // 2)]
                r = w["distance.weight"] @ [*np.sin(waves), *np.cos(waves)]
                u, v = w["content_bias"][h, 0], w["distance_bias"][h, 0]
                q = queries[t, own]
                scores.append(((q + u) @ keys[s, own] + (q + v) @ r[own]) / math.sqrt(e))
            weights = np.exp(scores) / np.exp(scores).sum()
            found[t, own] = weights @ values[:, own]
    ours = attention(x, attention.remember(others), None, None, first=first)
    np.testing.assert_allclose(
        ours[0].detach(), found @ w["merged.weight"].T, rtol=1e-6, atol=1e-6  # sines are float32
    )  # fmt: skip


@pytest.mark.parametrize(("steps", "size"), [(1, 1), (1, 4), (2, 1), (3, 5), (5, 3), (4, 4)])
def test_skewing_puts_each_distance_at_its_place(steps, size):
    away = torch.arange(steps - 1, -size, -1)  # first = 0
    placed = skewed(away.expand(2, steps, -1), size)
    wanted = torch.arange(steps)[:, None] - torch.arange(size)
    assert torch.equal(placed, wanted.expand(2, -1, -1))


@pytest.mark.parametrize("relative", [False, True])
def test_attention_to_absolute_places_is_that_of_pytorch(relative):
    """With W_R, u and v at zero, relative attention is the same as without."""
    d, heads = 8, 2
    attention = MultiHead(d, heads, 0.0, relative).double()
    for weight in attention.parameters():
        nn.init.zeros_(weight)
    for i, name in enumerate(("query", "key_value", "merged")):
        attention.get_submodule(name).weight.data = numbers(
            *attention.get_submodule(name).weight.shape, seed=i
        )
    theirs = nn.MultiheadAttention(d, heads, bias=False, batch_first=True).double()
    theirs.in_proj_weight.data = torch.cat([attention.query.weight, attention.key_value.weight])
    theirs.out_proj.weight.data = attention.merged.weight.data
    x, others = numbers(3, 4, d), numbers(3, 6, d, seed=1)
    mask = torch.arange(6) < torch.tensor([6, 2, 5])[:, None]
    there = attention.remember(others)
    for fused in (True, False):
        attention.fused = fused
        ours = attention(x, there, mask[:, None, None], None)
        wanted, _ = theirs(x, others, others, key_padding_mask=~mask)
        torch.testing.assert_close(ours, wanted)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("samples_at_once", [1, 2, 3])
def test_samples_that_are_read_in_parts_find_what_they_find_at_once(
    monkeypatch, samples_at_once, own
):
    torch.manual_seed(0)
    attention = MultiHead(8, 2, 0.0, relative=True).double()
    x = numbers(5, 4, 8)
    mask = torch.rand(5, 1, 1, 4) < 0.7 if own else torch.ones(4, 4, dtype=torch.bool).tril()
    mask = mask | torch.eye(4, dtype=torch.bool)
    there = attention.remember(x)
    at_once = attention(x, there, mask, None)
    shapes, weights = [], attention.weights
    monkeypatch.setattr(
        attention, "weights", lambda q, *rest: shapes.append(len(q)) or weights(q, *rest)
    )
    monkeypatch.setattr(attention_module, "SCORES", samples_at_once * 2 * 4 * 4)
    with torch.no_grad():
        torch.testing.assert_close(attention(x, there, mask, None), at_once)
    assert max(shapes) == samples_at_once and sum(shapes) == 5


def test_weights_depend_on_distances_alone():
    """Moving queries and keys together changes nothing; moving the queries alone does."""
    attention = MultiHead(8, 2, 0.0, relative=True).double()
    for i, weight in enumerate(attention.parameters()):
        weight.data = numbers(*weight.shape, seed=i)
    q, keys = numbers(1, 2, 3, 4), numbers(1, 2, 6, 4, seed=1)
    weights = attention.weights(q, keys, None, 0)
    rolled = torch.cat([numbers(1, 2, 5, 4, seed=2), keys], dim=2)
    seen = (torch.arange(11) >= 5).expand(1, 1, 3, -1)
    moved = attention.weights(q, rolled, seen, 5)
    torch.testing.assert_close(moved[..., 5:], weights, rtol=1e-5, atol=1e-6)
    assert not torch.allclose(attention.weights(q, keys, None, 1), weights, atol=1e-3)


def test_relative_positions_make_an_encoder_forget_where_a_source_begins():
    """Behind tokens that it may not see, a source has the same vectors; absolute ones differ."""
    for name in ("TRM+RPE", "TRM"):
        encoder = stirred(built(name)).encoder
        tokens = torch.tensor([[SOS, 7, 9, 5, EOS]])
        alone = encoder(tokens, torch.ones(1, 1, 1, 5, dtype=torch.bool), None)
        later = F.pad(tokens, (3, 0), value=4)
        seen = (torch.arange(8) >= 3).view(1, 1, 1, 8)
        moved = encoder(later, seen, None)[:, 3:]
        assert torch.allclose(moved, alone, atol=1e-5) == (name == "TRM+RPE")


# --- models ---------------------------------------------------------------------------------------


def test_a_model_is_the_encoder_and_decoder_of_pytorch():
    """TRM in evaluation, layer by layer in torch.nn's own Transformer, whose biases are zero."""
    model, b = stirred(built("TRM")), batch()
    d, h, n = 12, 2, 10
    options = {"dropout": 0.0, "batch_first": True, "dtype": torch.double}
    tokens, lengths = marked(b)
    padding = torch.arange(tokens.shape[1]) >= lengths[:, None]

    def given(layer: nn.Module, ours: nn.Module, norms: list[str]) -> nn.Module:
        pairs = [(layer.self_attn, ours.attention)]
        if hasattr(ours, "source_attention"):
            pairs.append((layer.multihead_attn, ours.source_attention))
        for theirs, mine in pairs:
            theirs.in_proj_weight.data = torch.cat([mine.query.weight, mine.key_value.weight])
            theirs.out_proj.weight.data = mine.merged.weight.data
            nn.init.zeros_(theirs.in_proj_bias)
            nn.init.zeros_(theirs.out_proj.bias)
        layer.linear1.load_state_dict(ours.forwards.inner.state_dict())
        layer.linear2.load_state_dict(ours.forwards.outer.state_dict())
        for number, name in enumerate(norms, start=1):
            getattr(layer, f"norm{number}").load_state_dict(getattr(ours, name).state_dict())
        return layer

    def embedded(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return table[ids] + sinusoid(torch.arange(ids.shape[1]), d) / math.sqrt(d)

    x = embedded(model.encoder.embedding.weight, tokens)
    for ours in model.encoder.layers:
        layer = nn.TransformerEncoderLayer(d, h, n, **options)
        x = given(layer, ours, ["norm_attention", "norm_forward"])(x, src_key_padding_mask=padding)
    written = F.pad(b.targets[:, :-1], (1, 0), value=SOS)
    y = embedded(model.decoder.embedding.weight, written)
    unseen = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).triu(1)
    for ours in model.decoder.layers:
        layer = nn.TransformerDecoderLayer(d, h, n, **options)
        layer = given(layer, ours, ["norm_attention", "norm_source", "norm_forward"])
        y = layer(y, x, tgt_mask=unseen, memory_key_padding_mask=padding)
    scores = y @ model.decoder.embedding.weight.T + model.token_bias
    torch.testing.assert_close(model(b), scores, rtol=1e-6, atol=1e-6)


def test_sources_stand_between_marks():
    pairs = [(("jump",), ("I_JUMP",)), (("turn", "left"), ("I_TURN_LEFT",))]
    from relength.tasks.base import Pair

    tokens, lengths = marked(TASK.encode([Pair(*pair) for pair in pairs]))
    (jump,), turn = ([TASK.vocabulary.index(word) for word in source] for source, _ in pairs)
    assert tokens.tolist() == [[SOS, jump, EOS, PAD], [SOS, *turn, EOS]]
    assert lengths.tolist() == [3, 4]


@every_model
def test_what_follows_a_prefix_says_nothing_of_it(name):
    model, b = stirred(built(name)), batch()
    whole = model(b)
    other = b.targets.clone()
    other[:, 4:] = torch.where(other[:, 4:] == 17, 18, 17)
    changed = model(type(b)(b.inputs, other, b.mask, b.input_lengths, b.target_lengths))
    torch.testing.assert_close(changed[:, :5], whole[:, :5])
    assert not torch.allclose(changed[:, 5:], whole[:, 5:])


@every_model
def test_padding_changes_no_score_of_a_sample(name):
    model, b = stirred(built(name)), batch()
    together = model(b)
    for row in range(len(b)):
        alone = b.select(slice(row, row + 1))
        n = int(alone.target_lengths)
        torch.testing.assert_close(model(alone)[0], together[row, :n], rtol=1e-6, atol=1e-6)


@pytest.mark.equality
@every_model
def test_decoding_gives_the_scores_of_running_each_prefix_again(name):
    model, b = stirred(built(name)), batch(7)
    steps = b.targets.shape[1]
    state = model.start(b, steps)
    # PANM gives no scores behind the end of a target, so all of them are as long as the longest.
    mask = torch.ones_like(b.mask)
    whole = model(type(b)(b.inputs, b.targets, mask, b.input_lengths, mask.sum(1)))
    for t, token in enumerate(F.pad(b.targets[:, :-1], (1, 0), value=SOS).unbind(1)):
        scores, state = model.next(token, t, state)
        torch.testing.assert_close(scores, whole[:, t], rtol=1e-6, atol=1e-6)
    assert len(b.targets.unique()) > 5


@pytest.mark.equality
@every_model
def test_decoding_writes_the_likeliest_token_after_its_own(name):
    """Against teacher forcing on what was written, further than any target."""
    model, b = stirred(built(name)), batch(7)
    tokens, _ = model.generate(b, 30)
    mask = torch.ones(len(b), 30, dtype=torch.bool)
    scores = model(type(b)(b.inputs, tokens, mask, b.input_lengths, mask.sum(1)))
    assert torch.equal(tokens, scores.argmax(2))


@every_model
def test_decoding_computes_each_place_once(name, monkeypatch):
    """Rows that pass a feed-forward network of the decoder: one per sample, step and layer."""
    model, b = built(name), batch(3)
    rows = []
    for layer in model.decoder.layers:
        layer.forwards.register_forward_hook(lambda _, x, y: rows.append(x[0].shape[:2].numel()))
    model.generate(b, 20)
    assert sum(rows) == 3 * 20 * model.config.decoder_layers


@every_model
def test_the_first_samples_score_is_that_of_a_smaller_batch(name):
    model, b = stirred(built(name)), batch(6)
    key = step_key(dropout_key(0, "encodings"), 3)
    one = b.select(slice(0, 1))
    n = int(one.target_lengths)
    torch.testing.assert_close(model(b, key)[0, :n], model(one, key)[0], rtol=1e-6, atol=1e-6)
    assert not torch.allclose(model(b, key), model(b))


@pytest.mark.equality
@every_model
def test_the_fast_way_is_the_plain_one(name):
    """Scores and slopes, with dropout and without."""
    model, b = stirred(built(name)), batch()
    for key in (None, step_key(dropout_key(0, "encodings"), 3)):
        found = []
        for fused in (True, False):
            model.fused = fused
            loss = TASK.loss(model(b, key), b)
            found.append([loss, *torch.autograd.grad(loss, [*model.parameters()])])
        for quick, plain in zip(*found, strict=True):
            torch.testing.assert_close(quick, plain)


@pytest.mark.equality
def test_samples_that_have_ended_cost_pointers_nothing():
    """Any target lengths, in any order: the scores are those of all steps, where there are any."""
    model, b = stirred(built("PANM on TRM")), batch(5)
    for lengths in ([1, 1, 1, 1, 1], [3, 1, 4, 1, 2], [2, 2, 2, 2, 5], [5, 4, 3, 2, 1]):
        ends = torch.tensor(lengths)
        mask = torch.arange(max(lengths)) < ends[:, None]
        short = type(b)(b.inputs, b.targets[:, : max(lengths)], mask, b.input_lengths, ends)
        found = []
        for fused in (True, False):
            model.fused = fused
            scores = model(short)
            loss = TASK.loss(scores, short)
            found.append([scores[mask], *torch.autograd.grad(loss, [*model.parameters()])])
            assert fused == bool((scores[~mask] == 0).all()) or mask.all()
        for quick, plain in zip(*found, strict=True):
            torch.testing.assert_close(quick, plain)


# The universal models have the layers of TRM and TRM+RPE; PANM on TRM+RPE has the pointers of
# PANM on TRM.
WEEKLY_SLOPES = ("TRM", "TRM+RPE", "PANM on TRM")


@pytest.mark.equality
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.weekly if n in WEEKLY_SLOPES else ()) for n in EVERY],
)
def test_slopes_are_those_of_finite_differences(name):
    model, b = stirred(built(name)), batch(3)
    names, weights = zip(*model.named_parameters(), strict=True)
    here = [w.detach() for w in weights]
    key = step_key(dropout_key(0, "encodings"), 3)

    def loss(*values: torch.Tensor) -> torch.Tensor:
        parameters = dict(zip(names, values, strict=True))
        return TASK.loss(torch.func.functional_call(model, parameters, (b, key)), b)

    slopes = torch.autograd.grad(loss(*(w.requires_grad_() for w in here)), here)
    for place, slope in enumerate(slopes):  # each parameter along a direction of its own
        way = numbers(*slope.shape, seed=100)

        def at(size: float, place: int = place, way: torch.Tensor = way) -> float:
            moved = [w + size * way if i == place else w for i, w in enumerate(here)]
            with torch.no_grad():
                return float(loss(*moved))

        measured = (at(1e-6) - at(-1e-6)) / 2e-6
        assert float((slope * way).sum()) == pytest.approx(measured, rel=1e-4, abs=1e-7), names[
            place
        ]


@pytest.mark.parametrize(("name", "layers"), [("TRM", 3), ("U. TRM+RPE", 1)])
def test_a_universal_model_has_one_layer_and_applies_it_as_often(name, layers):
    model, applied = built(name), []
    assert len(model.encoder.layers) == len(model.decoder.layers) == layers
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.register_forward_hook(lambda *_: applied.append(1))
    model(batch())
    assert len(applied) == 3 + 3


def test_a_universal_model_is_the_other_with_equal_layers():
    for positions in ("", "+RPE"):
        one, three = stirred(built(f"U. TRM{positions}")), built(f"TRM{positions}")
        for side in ("encoder", "decoder"):
            source, target = getattr(one, side), getattr(three, side)
            target.embedding.load_state_dict(source.embedding.state_dict())
            for layer in target.layers:
                layer.load_state_dict(source.layers[0].state_dict())
        three.token_bias.data = one.token_bias.data
        torch.testing.assert_close(one(batch()), three(batch()))


def test_sizes_are_those_of_the_cited_code():
    """0.99 million weights in the layers of TRM, counted by hand: maps, then norms."""
    sizes = {name: built(name, width=128, heads=8, inner_size=256) for name in VARIANTS}
    layers = {
        name: sum(p.numel() for n, p in model.named_parameters() if "layers" in n)
        for name, model in sizes.items()
    }
    attention, forwards, norm = 4 * 128**2, 2 * 128 * 256 + 256 + 128, 2 * 128
    encoder, decoder = attention + forwards + 2 * norm, 2 * attention + forwards + 3 * norm
    assert layers["TRM"] == 3 * (encoder + decoder) == 989_184
    assert layers["U. TRM"] == encoder + decoder
    distances = 128**2 + 2 * 128  # of each self-attention
    assert layers["TRM+RPE"] == layers["TRM"] + 6 * distances
    assert layers["U. TRM+RPE"] == layers["U. TRM"] + 2 * distances


def test_first_weights_are_those_of_the_cited_code():
    trm, rpe = (MODELS[n].module(MODELS[n].config(name=n), 400).initialise(0) for n in EVERY[:2])
    table = trm.decoder.embedding.weight.detach()
    assert float(table.std()) == pytest.approx(math.sqrt(2 / 128), rel=0.02)
    bound = math.sqrt(6 / (400 + 128))
    assert 0.99 * bound < float(rpe.decoder.embedding.weight.detach().abs().max()) <= bound
    layer = rpe.decoder.layers[0]
    for weight in (layer.attention.key_value.weight, layer.source_attention.query.weight):
        assert 0.99 * math.sqrt(6 / 256) < float(weight.detach().abs().max()) <= math.sqrt(6 / 256)
    inner = layer.forwards.inner.weight.detach()
    assert 0.99 * math.sqrt(12 / 384) < float(inner.abs().max()) <= math.sqrt(12 / 384)
    assert not layer.attention.content_bias.any() and not rpe.token_bias.any()


@pytest.mark.parametrize("arm", ["paper", "repaired"])
def test_panm_is_its_own_module_above_two_layers(arm):
    """The scores are those of Algorithm 1, asked step by step of the parts."""
    model, b = stirred(built("PANM on TRM", arm)), batch()
    assert len(model.decoder.layers) == 2 and len(model.encoder.layers) == 3
    assert model.panm.pointers.temperature == {"paper": 1.0, "repaired": 0.1}[arm]
    memory, mask, lengths = model.encode(b, None)
    kept = torch.arange(memory.shape[1]) < lengths[:, None]
    reading, h = model.panm.read(memory, 3, torch.zeros(5, dtype=torch.int64), lengths=lengths)
    torch.testing.assert_close(h, (memory * kept[:, :, None]).sum(1))
    z = model.decoder(b.targets, memory, mask, None)
    for t in range(3):
        scores, h = model.panm.controller(reading.at(t), z[:, t : t + 1], h)
        torch.testing.assert_close(scores[:, 0], model(b)[:, t])


def test_pointers_of_panm_begin_at_both_marks_and_see_no_padding():
    model, b = stirred(built("PANM on TRM", "repaired")), batch()
    _, weights = model.generate(b, 6, keep_weights=True)
    _, lengths = marked(b)
    assert [*weights] == [
        "mode 1, pointer 1 from the base",
        "mode 1, pointer 2 from the end",
        "mode 2, pointer 1",
    ]
    padding = torch.arange(weights["mode 2, pointer 1"].shape[2]) >= lengths[:, None]
    for found in weights.values():
        assert found.shape[:2] == (len(b), 6)
        torch.testing.assert_close(found.sum(2), torch.ones(len(b), 6, dtype=torch.double))
        assert not found[padding[:, None].expand_as(found)].any()


def test_where_the_addresses_begin_is_drawn_in_training_alone():
    model, b = built("PANM on TRM"), batch(50)
    assert model.base(b, None).tolist() == [0] * 50
    drawn = model.base(b, step_key(dropout_key(0, "encodings"), 0))
    assert len(drawn.unique()) > 20 and int(drawn.max()) < 2**7
    other = model.base(b, step_key(dropout_key(0, "encodings"), 1))
    assert not torch.equal(drawn, other)


# --- configurations and runs ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"name": "TRM", "heads": 5}, "width 128 is not a multiple of the 5 heads"),
        ({"name": "TRM", "relative": True}, "choose another name"),
        ({"name": "PANM on TRM", "n_mode1": 0}, "n_mode2 needs an n_mode1 above 0"),
        ({"name": "PANM on TRM", "temperature": 0.5}, "only repaired has one"),
    ],
)
def test_impossible_sizes_are_one_sentence(model, words):
    with pytest.raises(RelengthError, match=words):
        make_spec(task="scan_22", model=model, training="epochs", scale="smoke", seed=0)


def run(name: str, seed: int, **fields):
    sizes = {"train_size": 24, "validation_size": 6, "test_size": 6}
    return make_spec(
        task={"name": "scan_22", **sizes},
        model={"name": name, **(SMALL_PANM if "PANM" in name else SMALL)},
        training={"name": "epochs", "epochs": 2, "batch_size": 8, "precision": "float64"} | fields,
        scale="smoke",
        seed=seed,
    )


@pytest.mark.smoke
@pytest.mark.parametrize(
    "name",
    [*(pytest.param(n, marks=pytest.mark.weekly) for n in ("TRM", "U. TRM+RPE")), "PANM on TRM"],
)
def test_a_run_in_a_stack_is_the_run_alone(name):
    stack = Stack([run(name, 0), run(name, 1)])
    while not stack.finished:
        stack.run_epoch()
    for seed in (0, 1):
        together, alone = stack.results()[run(name, seed).key], train(run(name, seed))
        assert together.probe["losses"] == pytest.approx(alone.probe["losses"], rel=1e-9)
        tests = [r.checkpoints["last"]["tests"]["length"] for r in (together, alone)]
        assert tests[0]["token_accuracy"] == tests[1]["token_accuracy"]


@pytest.mark.smoke
@pytest.mark.parametrize("name", [pytest.param("TRM+RPE", marks=pytest.mark.weekly), "PANM on TRM"])
def test_a_few_commands_are_learnt_by_heart(name):
    """Eight commands in a hundred steps: the loss falls to a tenth."""
    steps = {"steps": 100, "validate_every": 20, "batch_size": 8, "learning_rate": 3e-3}
    made = train(
        make_spec(
            task={"name": "scan_22", "train_size": 8, "validation_size": 4, "test_size": 4},
            model={"name": name, "width": 32, "heads": 4, "inner_size": 64, "dropout": 0.0},
            training={"name": "fixed_steps", **steps},
            scale="smoke",
            seed=0,
        )
    )
    losses = [point["train_loss"] for point in made.curve]
    assert losses[-1] < losses[0] / 10


def test_keys_and_values_are_of_the_same_vectors():
    attention = MultiHead(8, 2, 0.0).double()
    x = numbers(2, 3, 8)
    there = attention.remember(x)
    assert isinstance(there, Remembered)
    both = F.linear(x, attention.key_value.weight)
    torch.testing.assert_close(there.keys.transpose(1, 2).flatten(2), both[..., :8])
    torch.testing.assert_close(there.values.transpose(1, 2).flatten(2), both[..., 8:])
