"""The recurrences equal PyTorch's own, and their fused forms, in values and gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_models import SEEDS, batches, build, every_reading
from torch import Tensor

from relength.kernels import fused
from relength.kernels.hashing import dropout_mask, step_key
from relength.models.recurrence import GRU, BiGRU, reversal, take
from relength.models.seq2seq.configs import Seq2SeqConfig
from relength.models.seq2seq.encoder_decoder import Seq2Seq
from relength.streams import dropout_key
from relength.tasks import TASKS
from relength.tasks.base import EOS, PAD
from relength.tasks.batch import pad_tokens
from relength.tasks.losses import token_loss

pytestmark = pytest.mark.equality
both_forms = pytest.mark.parametrize("fused_loop", [True, False])


def numbers(*shape: int, seed: int = 0, grad: bool = False) -> Tensor:
    random = np.random.default_rng(seed).normal(size=shape)
    return torch.tensor(random, dtype=torch.float64, requires_grad=grad)


def small_gru(input_size: int, hidden_size: int, seed: int) -> GRU:
    gru = GRU(input_size, hidden_size).double()
    for i, parameter in enumerate(gru.parameters()):
        parameter.data = numbers(*parameter.shape, seed=seed + i)
    return gru


def as_torch(ours: list[GRU]) -> torch.nn.GRU:
    """PyTorch's GRU with the weights of one direction, or of two."""
    d, inputs = ours[0].hidden_size, ours[0].weight_ih.shape[1]
    theirs = torch.nn.GRU(inputs, d, batch_first=True, bidirectional=len(ours) == 2).double()
    for gru, suffix in zip(ours, ("_l0", "_l0_reverse"), strict=False):
        for name, parameter in gru.named_parameters():
            getattr(theirs, name + suffix).data = parameter.detach().clone()
    return theirs


def same(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@both_forms
@settings(max_examples=30)
@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=5),
    inputs=st.integers(1, 4),
    d=st.integers(1, 4),
    seed=SEEDS,
)
def test_two_directions_over_unequal_lengths_are_pytorchs_packed_gru(
    fused_loop, lengths, inputs, d, seed
):
    ours = BiGRU(inputs, d).double()
    ours.forwards, ours.backwards = small_gru(inputs, d, seed), small_gru(inputs, d, seed + 10)
    peer = as_torch([ours.forwards, ours.backwards])
    n, width = torch.tensor(lengths), max(lengths)
    tokens = torch.from_numpy(np.random.default_rng(seed).integers(0, 6, (len(n), width)))
    table, peer_table = (numbers(6, inputs, seed=seed, grad=True) for _ in range(2))
    encodings, final = ours(table, tokens, n, fused_loop)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        peer_table[tokens], n, batch_first=True, enforce_sorted=False
    )
    output, last = peer(packed)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(output, batch_first=True)
    valid = (torch.arange(width) < n[:, None])[:, :, None]
    same(encodings * valid, expected)
    same(final, torch.cat([last[0], last[1]], dim=1))
    direction, end = numbers(*encodings.shape, seed=seed + 1), numbers(*final.shape, seed=seed + 2)
    ((encodings * valid * direction).sum() + (final * end).sum()).backward()
    ((expected * direction).sum() + (last.transpose(0, 1).flatten(1) * end).sum()).backward()
    same(table.grad, peer_table.grad)
    for gru, suffix in ((ours.forwards, "_l0"), (ours.backwards, "_l0_reverse")):
        for name, parameter in gru.named_parameters():
            same(parameter.grad, getattr(peer, name + suffix).grad)


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5), more=st.integers(0, 3))
def test_reversal_turns_the_valid_part_round_and_twice_gives_the_original(lengths, more):
    n, width = torch.tensor(lengths), max(lengths) + more
    places = torch.arange(width).expand(len(n), -1)[:, :, None]
    turned = take(places, reversal(n, width))
    for row, length in enumerate(lengths):
        expected = [*reversed(range(length)), *range(length, width)]
        assert turned[row, :, 0].tolist() == expected
    assert torch.equal(take(turned, reversal(n, width)), places)


# --- fused forms --------------------------------------------------------------------------------


@every_reading
@settings(max_examples=8)
@given(batch=batches(), seed=SEEDS, dropped=st.booleans())
def test_the_fused_model_has_the_loss_and_gradients_of_the_readable_one(
    name, arm, batch, seed, dropped
):
    key = step_key(dropout_key(seed, "encodings"), 3) if dropped else None
    losses, gradients = [], []
    for fast in (True, False):
        model = build(name, arm, seed, fast)
        loss = token_loss(model(batch, key), batch)
        loss.backward()
        losses.append(loss.item())
        gradients.append({n: p.grad for n, p in model.named_parameters()})
    assert losses[0] == pytest.approx(losses[1], rel=1e-12, abs=1e-12)
    for parameter, gradient in gradients[0].items():
        # 1e-12 of the largest element: gradients are sums in which much cancels.
        scale = max(1.0, gradients[1][parameter].abs().max().item())
        error = (gradient - gradients[1][parameter]).abs().max().item()
        assert error < 1e-12 * scale, parameter


@every_reading
@pytest.mark.parametrize("task", ["recopy", "inv_recopy"])
def test_fused_and_readable_agree_on_real_samples(name, arm, task):
    # Targets longer than sources, and shorter: values are mapped before attending, and after.
    # At first weights: wilder ones, thirty steps on, magnify any rounding beyond comparison.
    data = TASKS[task](train_size=12).dataset("train", 0)
    losses, gradients = [], []
    for fast in (True, False):
        config = Seq2SeqConfig(name=name, arm=arm, hidden_size=16)
        model = Seq2Seq(config, 14, fast).double().initialise(1)
        loss = token_loss(model(data, step_key(5, 1)), data)
        loss.backward()
        losses.append(loss.item())
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)


@pytest.mark.parametrize("onednn", [False, True])  # on any processor both must be right
@pytest.mark.parametrize("size", [3, 200])  # on both sides of where oneDNN takes over
def test_products_of_single_precision_are_right_however_the_operands_lie_in_memory(
    monkeypatch, size, onednn
):
    assert 3**3 < fused.WORTH_ONEDNN <= 200**3
    monkeypatch.setattr(fused, "_ONEDNN", onednn)
    a, b = numbers(size, size, seed=1), numbers(size, size, seed=2)

    def lying(x: Tensor) -> list[Tensor]:
        gaps = torch.zeros(size, size + 5)
        gaps[:, :size] = x
        return [x.float(), x.T.float().contiguous().T, gaps[:, :size]]

    for left in lying(a):
        for right in lying(b):
            close = fused.product(left, right).double()
            torch.testing.assert_close(close, a @ b, rtol=0, atol=1e-5 * size)


@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 40), st.integers(1, 130)),
    rate=st.floats(0, 0.999),
    seed=st.integers(0, 2**31 - 1),
    step=st.integers(0, 10**6),
)
def test_the_compiled_mask_is_the_readable_one_bit_for_bit(shape, rate, seed, step):
    shape, key = torch.Size(shape), step_key(seed, step)
    compiled, readable = (mask(shape, rate, key) for mask in (fused.dropout_mask, dropout_mask))
    assert torch.equal(compiled, readable)


def test_gradient_of_the_fused_linear_map_is_that_of_finite_differences():
    x, weight, bias = (numbers(*s, seed=3, grad=True) for s in ((2, 3, 4), (5, 4), (5,)))
    assert torch.autograd.gradcheck(fused.linear, (x, weight, bias))
    assert torch.autograd.gradcheck(fused.linear, (x, weight, None))
    torch.testing.assert_close(
        fused.linear(x, weight, bias), torch.nn.functional.linear(x, weight, bias)
    )


def test_gradient_of_the_fused_scan_is_that_of_finite_differences():
    x_gates, weight = numbers(2, 2, 4, 9, seed=1, grad=True), numbers(2, 9, 3, seed=2, grad=True)
    bias = numbers(2, 9, seed=3, grad=True)
    assert torch.autograd.gradcheck(fused.scan, (x_gates, weight, bias))


@every_reading
@pytest.mark.parametrize(
    "steps", [2, 6]
)  # fewer and more than positions: values mapped late and early
def test_gradient_of_the_fused_decoder_is_that_of_finite_differences(name, arm, steps):
    model = build(name, arm, seed=1, hidden_size=4)
    attention, gru = model.attention, model.decoder
    lengths = torch.tensor([4, 3])

    def decode(h, token_gates, values, encodings, *_):
        # gradcheck moves the parameters in place, so they need not be handed on.
        kernel = attention.kernel(attention.prepare(encodings, lengths, steps))
        from_values = gru.weight_ih[:, :4]
        return fused.decode(kernel, h, token_gates, values, from_values, gru.weight_hh, gru.bias_hh)

    shapes = ((2, 4), (steps, 2, 12), (2, 4, 4), (2, 4, 4))
    inputs = [numbers(*shape, seed=i, grad=True) for i, shape in enumerate(shapes)]
    parameters = [*attention.parameters(), gru.weight_ih, gru.weight_hh, gru.bias_hh]
    strict = {"fast_mode": True, "atol": 1e-7, "rtol": 1e-6}  # along random directions
    assert torch.autograd.gradcheck(decode, (*inputs, *parameters), **strict)


@every_reading
def test_a_second_backward_pass_adds_the_same_gradient_again(name, arm):
    model = build(name, arm)
    batch = pad_tokens([[4, 5, 6], [7]], [[4, 5, 6, EOS], [7, EOS]], PAD)
    loss = token_loss(model(batch), batch)
    loss.backward(retain_graph=True)
    once = [p.grad.clone() for p in model.parameters()]
    loss.backward()
    for parameter, gradient in zip(model.parameters(), once, strict=True):
        torch.testing.assert_close(parameter.grad, 2 * gradient)


@pytest.mark.gpu
@every_reading
def test_loss_and_gradients_are_the_same_on_a_gpu(name, arm):
    data = TASKS["copy"](train_size=8).dataset("train", 0)
    data.inputs.clamp_(max=10), data.targets.clamp_(max=10)
    losses, gradients = [], []
    for device in ("cpu", "cuda"):
        model = build(name, arm).to(device)
        there = data.to(device)
        loss = token_loss(model(there, step_key(5, 1).to(device)), there)
        loss.backward()
        losses.append(loss.item())
        gradients.append(torch.cat([p.grad.flatten().cpu() for p in model.parameters()]))
    assert losses[0] == pytest.approx(losses[1], rel=1e-10)
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-9)
