"""The loops of :mod:`relength.kernels.selective`, compiled by Numba.

x, step      (B, S, C)
kept         (B, S, N, C) exp(step·rates)
write, read  (B, S, N)
states       (B, S, N, C) after each word

Channels lie side by side, so that an inner loop takes many of them at once.
"""

from relength.kernels.jit import compiled


@compiled
def forwards_only(x, step, kept, write, read, state, outputs):
    """Outputs (B, S, C), 0 before; ``state`` (B, N, C) goes from the first to the last."""
    batch, words, n, channels = kept.shape
    for b in range(batch):
        for t in range(words):
            for i in range(n):
                into, out = write[b, t, i], read[b, t, i]
                for c in range(channels):
                    h = kept[b, t, i, c] * state[b, i, c] + into * step[b, t, c] * x[b, t, c]
                    state[b, i, c] = h
                    outputs[b, t, c] += out * h


@compiled
def forwards(x, step, kept, write, read, state, states, outputs):
    """Compute what :func:`forwards_only` does, and keep all states (B, S, N, C)."""
    batch, words, n, channels = kept.shape
    for b in range(batch):
        for t in range(words):
            for i in range(n):
                into, out = write[b, t, i], read[b, t, i]
                for c in range(channels):
                    h = kept[b, t, i, c] * state[b, i, c] + into * step[b, t, c] * x[b, t, c]
                    state[b, i, c] = h
                    states[b, t, i, c] = h
                    outputs[b, t, c] += out * h


@compiled
def backwards(
    x, step, rates, write, read, first, kept, states,
    grad, x_grad, step_grad, rate_grad, write_grad, read_grad, carried,
):  # fmt: skip
    """Gradients, 0 before, from those of the outputs (B, S, C).

    carried  (B, N, C) the gradient of the last state, which becomes that of the first
    """
    batch, words, n, channels = kept.shape
    for b in range(batch):
        for t in range(words - 1, -1, -1):
            for i in range(n):
                into, out = write[b, t, i], read[b, t, i]
                old = states[b, t - 1, i] if t else first[b, i]
                outwards, inwards = out * 0, into * 0
                for c in range(channels):
                    size, value, slope = step[b, t, c], x[b, t, c], grad[b, t, c]
                    dh = carried[b, i, c] + slope * out
                    outwards += slope * states[b, t, i, c]
                    inwards += dh * size * value
                    x_grad[b, t, c] += dh * into * size
                    after = dh * kept[b, t, i, c]
                    carried[b, i, c] = after
                    after *= old[c]
                    step_grad[b, t, c] += after * rates[i, c] + dh * into * value
                    rate_grad[i, c] += after * size
                read_grad[b, t, i], write_grad[b, t, i] = outwards, inwards
