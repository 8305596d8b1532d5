"""Arithmetic inside a CPU's recurrent loops, compiled by Numba: one pass instead of ten operations.

At the sizes of these models an operation of PyTorch takes as long to call as to compute. What is
here is everything between two matrix products of a loop of :mod:`relength.kernels.fused`, for one
step ``t`` of arrays that hold all steps. Sums may be reordered; nothing else about the arithmetic
is relaxed, so a value that is no number stays one.

(T, N, …) is a time-major array; N counts samples, of both directions where there are two.
"""

import math

import numpy as np

from relength.kernels.hashing import GOLDEN, LOW_BITS, MIX_A, MIX_B
from relength.kernels.jit import compiled

SHORTEST = 1e-12  # what a vector's length counts at least, as in torch.nn.functional.normalize
WORD = 0xFFFFFFFF  # the bits of an unsigned 32-bit integer


@compiled
def gate_gradients(t, carried, grads, rz, n, h_gates, states, x_grads, h_grads, direct):
    """One step backwards through relength.models.recurrence.gru_update.

    carried, direct  (N, d) gradient of the new state from later steps; of the old one through z
    grads            (T, N, d) gradient of the new states from outside the loop
    rz, n            (T, N, 2·d), (T, N, d) activations;  h_gates (T, N, 3·d);  states (T + 1, N, d)
    x_grads, h_grads (T, N, 3·d), written: gradients of both gate pre-activations
    """
    samples, d = carried.shape
    grad, n_grad = np.empty(d, carried.dtype), np.empty(d, carried.dtype)
    for b in range(samples):
        # Short loops: a compiler takes eight numbers at once only where it can ask whether arrays
        # overlap, and it does not ask of more than a few.
        for j in range(d):
            grad[j] = grads[t, b, j] + carried[b, j]
        for j in range(d):
            direct[b, j] = grad[j] * rz[t, b, d + j]
        for j in range(d):
            change = grad[j] - direct[b, j]  # (1 - z)·grad
            n_grad[j] = change - change * n[t, b, j] * n[t, b, j]  # tanh' = 1 - n²
        for j in range(d):  # σ' = σ - σ²
            r = rz[t, b, j]
            x_grads[t, b, j] = n_grad[j] * h_gates[t, b, 2 * d + j] * (r - r * r)
        for j in range(d):
            z = rz[t, b, d + j]
            x_grads[t, b, d + j] = grad[j] * (states[t, b, j] - n[t, b, j]) * (z - z * z)
        for j in range(2 * d):
            h_grads[t, b, j] = x_grads[t, b, j]
        for j in range(d):
            x_grads[t, b, 2 * d + j] = n_grad[j]
            h_grads[t, b, 2 * d + j] = n_grad[j] * rz[t, b, j]


@compiled
def retrieve(t, weights, values, start, out):
    """out (N, c) = start + Σ_s weights[t, :, s]·values[:, s]; start (N, c), values (N, S, c)."""
    samples, places, channels = values.shape
    for b in range(samples):
        for c in range(channels):
            out[b, c] = start[b, c]
        for s in range(places):
            weight = weights[t, b, s]
            if weight != 0:  # masked, or too far from the focus for this precision
                for c in range(channels):
                    out[b, c] += weight * values[b, s, c]


@compiled
def retrieved_gradient(t, weights, values, grads, out):
    """out (N, S) = Σ_c grads[t, :, c]·values[:, s, c]: the gradient of the weights.

    Zero where a weight is zero: it is about to be multiplied by the weight.
    """
    samples, places, channels = values.shape
    for b in range(samples):
        for s in range(places):
            total = values.dtype.type(0)
            if weights[t, b, s] != 0:
                for c in range(channels):
                    total += grads[t, b, c] * values[b, s, c]
            out[b, s] = total


@compiled
def focus(t, position, mask, centre, width, weights, distances, pasts):
    """relength.kernels.fused_attention.focus, for one step, and the position it attends to.

    position, mask (N, S);  centre, width (N,);  written: weights, distances (T, N, S), pasts (T, N)
    """
    samples, places = position.shape
    for b in range(samples):
        total = 1e-20
        for s in range(places):
            distance = (position[b, s] - centre[b]) / width[b]
            distances[t, b, s] = distance
            density = math.exp(-0.5 * distance * distance) if mask[b, s] else 0.0
            weights[t, b, s] = density
            total += density
        attended = 0.0
        for s in range(places):
            weight = weights[t, b, s] / total
            weights[t, b, s] = weight
            attended += weight * position[b, s]
        pasts[t + 1, b] = attended


@compiled
def focus_gradient(
    t, grad, position, weights, distances, widths, past_grad,
    centre_slope, width_slope, past_slope, readout,
    centre_grads, width_grads, readout_grads, h_grad,
):  # fmt: skip
    """One step backwards through a focus, down to the decoder state.

    grad (N, S) of the weights;  past_grad (N,) of the position attended to, replaced by that of the
    step before;  centre_slope, width_slope (T, N, k), past_slope (T, N) derivatives of centre and
    width;  readout (d, k);  written: centre_grads, width_grads (T, N), readout_grads (T, N, k);
    h_grad (N, d) is added to
    """
    samples, places = position.shape
    d, scalars = readout.shape
    for b in range(samples):
        mean = 0.0
        for s in range(places):
            mean += weights[t, b, s] * (grad[b, s] + past_grad[b] * position[b, s])
        centre_grad = 0.0
        width_grad = 0.0
        for s in range(places):
            distance = distances[t, b, s]
            whole = grad[b, s] + past_grad[b] * position[b, s]
            moved = weights[t, b, s] * (whole - mean) * distance
            centre_grad += moved
            width_grad += moved * distance
        centre_grad /= widths[t, b]
        width_grad /= widths[t, b]
        centre_grads[t, b] = centre_grad
        width_grads[t, b] = width_grad
        past_grad[b] = centre_grad * past_slope[t, b]
        for k in range(scalars):
            scalar_grad = centre_grad * centre_slope[t, b, k] + width_grad * width_slope[t, b, k]
            readout_grads[t, b, k] = scalar_grad
            for j in range(d):
                h_grad[b, j] += scalar_grad * readout[j, k]


@compiled
def softmax(t, h, keys, scores, weights):
    """weights[t] (N, S) = softmax of scores (N, S) + Σ_j h[:, j]·keys[:, j]; keys (N, d, S)."""
    samples, d, places = keys.shape
    for b in range(samples):
        for s in range(places):
            weights[t, b, s] = scores[b, s]
        for j in range(d):
            for s in range(places):
                weights[t, b, s] += h[b, j] * keys[b, j, s]
        _normalise(weights[t, b])


@compiled
def _normalise(row):
    """Softmax of a row in place; -inf becomes exactly 0."""
    most = row[0]
    for s in range(len(row)):
        most = max(most, row[s])
    total = 0.0
    for s in range(len(row)):
        row[s] = math.exp(row[s] - most)
        total += row[s]
    for s in range(len(row)):
        row[s] /= total


@compiled
def softmax_gradient(t, grad, weights, keys, score_grads, h_grad):
    """One step backwards through :func:`softmax`.

    grad (N, S) of the weights;  written: score_grads (T, N, S);  h_grad (N, d) is added to
    """
    samples, d, places = keys.shape
    for b in range(samples):
        mean = 0.0
        for s in range(places):
            mean += weights[t, b, s] * grad[b, s]
        for s in range(places):
            score_grads[t, b, s] = weights[t, b, s] * (grad[b, s] - mean)
        for j in range(d):
            total = h_grad[b, j]
            for s in range(places):
                total += score_grads[t, b, s] * keys[b, j, s]
            h_grad[b, j] = total


@compiled
def attend(t, h, keys, scores, lengths, weights, cosine):
    """weights[t] (N, S) = softmax of scores (N, S) + Σ_j h[:, j]·keys[:, :, j]; keys (N, S, d).

    cosine  whether the sum is divided by each state's length, which is written to lengths (T, N)
    """
    samples, places, d = keys.shape
    for b in range(samples):
        length = 1.0
        if cosine:
            total = 0.0
            for j in range(d):
                total += h[b, j] * h[b, j]
            length = max(math.sqrt(total), SHORTEST)
            lengths[t, b] = length
        for s in range(places):
            total = keys.dtype.type(0)
            if scores[b, s] != -np.inf:
                for j in range(d):
                    total += h[b, j] * keys[b, s, j]
            weights[t, b, s] = scores[b, s] + total / length
        _normalise(weights[t, b])


@compiled
def attend_gradient(t, grad, h, keys, lengths, weights, score_grads, h_grad, cosine):
    """One step backwards through :func:`attend`.

    grad (N, S) of the weights;  written: score_grads (T, N, S);  h_grad (N, d) is added to
    """
    samples, places, d = keys.shape
    change = np.empty(d, keys.dtype)  # of the state, were its length 1
    for b in range(samples):
        length, mean = lengths[t, b], 0.0
        for s in range(places):
            mean += weights[t, b, s] * grad[b, s]
        change[:] = 0
        for s in range(places):
            score_grad = weights[t, b, s] * (grad[b, s] - mean)
            score_grads[t, b, s] = score_grad
            if weights[t, b, s] == 0:  # masked
                continue
            share = keys.dtype.type(score_grad / length)
            for j in range(d):
                change[j] += share * keys[b, s, j]
        along = keys.dtype.type(0)
        if cosine:  # the part along the state, which its length takes out
            for j in range(d):
                along += h[b, j] * change[j]
            along /= length * length
        for j in range(d):
            h_grad[b, j] += change[j] - along * h[b, j]


@compiled
def additive(t, asked, memory, v, scores, weights):
    """weights[t] (N, S) = softmax of scores (N, S) + Σ_j v[j]·max(0, asked[j] + memory[j]).

    asked (N, d), memory (N, S, d), v (d,)
    """
    samples, places, d = memory.shape
    for b in range(samples):
        for s in range(places):
            total = scores[b, s]
            for j in range(d):
                total += v[j] * max(0, asked[b, j] + memory[b, s, j])
            weights[t, b, s] = total
        _normalise(weights[t, b])


@compiled
def additive_gradient(
    t, grad, asked, memory, v, weights, score_grads, asked_grads, memory_grad, v_grad
):
    """One step backwards through :func:`additive`.

    grad (N, S) of the weights;  written: score_grads (T, N, S), asked_grads (T, N, d); memory_grad
    and v_grad are added to
    """
    samples, places, d = memory.shape
    for b in range(samples):
        mean = 0.0
        for s in range(places):
            mean += weights[t, b, s] * grad[b, s]
        for j in range(d):
            asked_grads[t, b, j] = 0
        for s in range(places):
            score_grad = weights[t, b, s] * (grad[b, s] - mean)
            score_grads[t, b, s] = score_grad
            for j in range(d):
                sum_ = asked[b, j] + memory[b, s, j]
                if sum_ > 0:
                    v_grad[j] += score_grad * sum_
                    asked_grads[t, b, j] += score_grad * v[j]
                    memory_grad[b, s, j] += score_grad * v[j]


@compiled
def keep(rows, least, out):
    """The last axis of relength.kernels.hashing.dropout_mask, bit for bit.

    rows (N,) int32 hashes of batch and position;  out (N, C) bool, written: hash at least ``least``
    """
    samples, channels = out.shape
    for b in range(samples):
        for c in range(channels):
            x = np.uint32(np.uint32(rows[b]) + np.uint32((c * GOLDEN) & WORD))
            x = np.uint32((x ^ ((x >> 16) & LOW_BITS)) * MIX_A)
            x = np.uint32((x ^ ((x >> 16) & LOW_BITS)) * MIX_B)
            x = np.uint32(x ^ ((x >> 16) & LOW_BITS))
            out[b, c] = np.int32(x) >= least
