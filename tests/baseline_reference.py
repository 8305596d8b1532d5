"""The baselines of PANM once more, from their papers: NumPy, one sample, one step, one slot a time.

Nothing is shared with the library but the names of the weights. Each function takes the weights of
a model, by name, and one source (S, C), and returns the scores (steps, classes).
"""

from itertools import product
from typing import Any

import numpy as np
import torch
from torch import nn

from relength.models import MODELS

Weights = dict[str, np.ndarray]

SIZES: dict[str, dict[str, Any]] = {
    "LSTM": {"hidden_size": 5},
    "Location Attention": {"hidden_size": 6, "positions": 4},
    "Content Attention": {"hidden_size": 6},
    "Hybrid Attention": {"hidden_size": 6, "positions": 9},
    "Transformer": {"hidden_size": 8, "heads": 2, "inner_size": 7, "layers": 2},
    "NTM": {"hidden_size": 5, "slots": 6, "width": 3},
    "DNC": {"hidden_size": 5, "slots": 6, "width": 3, "read_heads": 2},
    "Neural Stack": {"hidden_size": 5, "value_size": 3},
    "PtrNet": {"hidden_size": 6},
    "NRAM": {"hidden_size": 5, "registers": 3, "cells": 6},
    "ESBN": {"hidden_size": 5, "key_size": 4, "value_size": 8, "inner_size": 7},
}
TWO_ARMED = ("Content Attention", "Transformer", "NTM", "DNC")
READINGS = [
    (name, arm)
    for name in SIZES
    for arm in (("released", "paper") if name in TWO_ARMED else (MODELS[name].config().arm,))
]
CLASSES, CHANNELS = 4, 6


def build(name: str, arm: str, seed: int = 0, noise: float = 0.3, **sizes: Any) -> nn.Module:
    """A small model in float64 in which no parameter is zero, as after some training."""
    model = MODELS[name]
    fields = SIZES[name] | sizes | {"arm": arm}
    return moved(model.module(model.config(**fields), CHANNELS, CLASSES).double(), seed, noise)


def moved(model: nn.Module, seed: int, noise: float) -> nn.Module:
    """A model at its first weights and a little beside them, so that none of them is zero."""
    model = model.initialise(seed)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            draw = torch.empty_like(parameter).normal_(generator=random)
            parameter.add_(draw, alpha=noise)
    return model


def weights_of(model: nn.Module) -> Weights:
    return {name: p.detach().numpy().copy() for name, p in model.named_parameters()}


def sources(batch: int, length: int, seed: int = 0) -> torch.Tensor:
    """Inputs (B, S, C): one-hot symbols, and two channels of real numbers."""
    random = np.random.default_rng(seed)
    symbols = np.eye(CLASSES)[random.integers(CLASSES, size=(batch, length))]
    extra = random.normal(size=(batch, length, CHANNELS - CLASSES))
    return torch.from_numpy(np.concatenate([symbols, extra], axis=2))


def close(ours: torch.Tensor, expected, tolerance: float = 1e-10) -> None:
    expected = expected.detach() if isinstance(expected, torch.Tensor) else expected
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=0, atol=tolerance)


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def distributions(*shape: int, seed: int = 0) -> torch.Tensor:
    """Random distributions over the last axis."""
    return torch.softmax(2 * numbers(*shape, seed=seed), dim=-1)


# --- what several models need -------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def softplus(x):
    return np.log1p(np.exp(x))


def linear(w: Weights, name: str, x):
    y = w[f"{name}.weight"] @ x
    return y + w[f"{name}.bias"] if f"{name}.bias" in w else y


def lstm_step(w: Weights, name: str, x, h, c):
    a = w[f"{name}.weight_ih"] @ x + w[f"{name}.weight_hh"] @ h
    i, f, g, o = np.split(a + w[f"{name}.bias_ih"] + w[f"{name}.bias_hh"], 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(w: Weights, name: str, x, h):
    x_r, x_z, x_n = np.split(w[f"{name}.weight_ih"] @ x + w[f"{name}.bias_ih"], 3)
    h_r, h_z, h_n = np.split(w[f"{name}.weight_hh"] @ h + w[f"{name}.bias_hh"], 3)
    r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
    return (1 - z) * np.tanh(x_n + r * h_n) + z * h


def gru(w: Weights, name: str, xs):
    h, states = np.zeros(w[f"{name}.weight_hh"].shape[1]), []
    for x in xs:
        h = gru_step(w, name, x, h)
        states.append(h)
    return np.array(states)


def cosine(a, b):
    """With 1e-6 added to the squared norms, as google-deepmind/dnc does it."""
    return a @ b / (np.sqrt(a @ a + 1e-6) * np.sqrt(b @ b + 1e-6))


def by_content(memory, key, strength):
    return softmax(np.array([strength * cosine(row, key) for row in memory]))


def then_nothing(source, steps):
    return np.concatenate([source, np.zeros((steps, source.shape[1]))])


# --- attention ------------------------------------------------------------------------------------


def attend(name: str, arm: str, w: Weights, source, steps):
    """Scores of the attention baselines, and the attention weights, by score."""
    if arm == "released":
        xs = np.array([linear(w, "encoder.embedding", x) for x in source])
    else:
        xs = source
    left = gru(w, "encoder.forwards", xs)
    right = gru(w, "encoder.backwards", xs[::-1])[::-1]
    if arm == "released":
        annotations, s = left + right, left[-1]
    else:
        annotations = np.concatenate([left, right], axis=1)
        s = np.tanh(w["encoder.first.weight"] @ right[0])

    def score(kind, s):
        if kind == "location":
            rows = w["scores.location.rows.weight"][: len(source)]
            seen = softmax(rows @ s)
            return np.concatenate([seen, np.zeros(len(source) - len(seen))])
        squash = (lambda x: np.maximum(x, 0)) if arm == "released" else np.tanh
        return softmax(
            np.array(
                [
                    w[f"scores.{kind}.weight"]
                    @ squash(
                        w[f"scores.{kind}.from_state.weight"] @ s
                        + linear(w, f"scores.{kind}.from_annotation", h)
                    )
                    for h in annotations
                ]
            )
        )

    kinds = {
        "Content Attention": ["content"],
        "Location Attention": ["location"],
        "Hybrid Attention": ["content", "location"],
        "PtrNet": ["pointer"],
    }[name]
    scores, weights = [], []
    for _ in range(steps):
        weights.append({kind: score(kind, s) for kind in kinds})
        context = np.concatenate([weights[-1][kind] @ annotations for kind in kinds])
        s = gru_step(w, "decoder", context, s)
        if name == "PtrNet":
            p = sum(a * x[:CLASSES] for a, x in zip(weights[-1]["pointer"], source, strict=True))
            scores.append(np.log(p + 1e-9))
        else:
            scores.append(linear(w, "output", np.concatenate([s, context])))
    return np.array(scores), weights


# --- Neural Turing Machine ------------------------------------------------------------------------


def ntm(w: Weights, first_memory, first_read, source, steps):
    memory, read = first_memory.copy(), first_read
    slots, width = memory.shape
    h, c = w["controller.first_h"], w["controller.first_c"]
    previous, scores = {"read": np.zeros(slots), "write": np.zeros(slots)}, []
    for x in then_nothing(source, steps):
        h, c = lstm_step(w, "controller.lstm", np.concatenate([x, read]), h, c)
        weighting = {}
        for head in ("read", "write"):
            emitted = linear(w, f"{head}_head", h)
            key, (strength, gate, *shift, gamma) = emitted[:width], emitted[width : width + 6]
            content = by_content(memory, key, softplus(strength))
            gated = sigmoid(gate) * content + (1 - sigmoid(gate)) * previous[head]
            shares = dict(zip((-1, 0, 1), softmax(np.array(shift)), strict=True))
            moved = np.zeros(slots)
            for i, j in product(range(slots), range(slots)):  # Eq. 8, literally
                distance = (i - j + 1) % slots - 1
                moved[i] += gated[j] * shares.get(distance, 0)
            powers = moved ** (1 + softplus(gamma))
            weighting[head] = powers / powers.sum()
        read = weighting["read"] @ memory
        erase, add = sigmoid(emitted[width + 6 : 2 * width + 6]), emitted[2 * width + 6 :]
        for i in range(slots):
            memory[i] = (
                memory[i] * (1 - weighting["write"][i] * erase) + weighting["write"][i] * add
            )
        previous = weighting
        scores.append(linear(w, "output", np.concatenate([h, read])))
    return np.array(scores[-steps:])


# --- Differentiable Neural Computer ---------------------------------------------------------------


def dnc_memory(xi: dict[str, Any], state: dict[str, np.ndarray]) -> np.ndarray:
    """One step of memory from the interface's parts, in place; returns read vectors (R, W)."""
    memory, usage, link = state["memory"], state["usage"], state["link"]
    slots, heads = len(memory), len(xi["free_gates"])
    kept = np.ones(slots)
    for i in range(heads):
        kept *= 1 - xi["free_gates"][i] * state["reading"][i]
    usage[:] = (usage + state["writing"] - usage * state["writing"]) * kept
    u = 1e-6 + (1 - 1e-6) * usage
    free_list = sorted(range(slots), key=lambda i: u[i])
    allocation = np.zeros(slots)
    for j, slot in enumerate(free_list):
        allocation[slot] = (1 - u[slot]) * np.prod([u[free_list[i]] for i in range(j)])
    content = by_content(memory, xi["write_key"], xi["write_strength"])
    ga, gw = xi["allocation_gate"], xi["write_gate"]
    writing = gw * (ga * allocation + (1 - ga) * content)
    for i in range(slots):
        memory[i] = (
            memory[i] * (1 - writing[i] * xi["erase_vector"]) + writing[i] * xi["write_vector"]
        )
    for i, j in product(range(slots), range(slots)):
        if i != j:
            link[i, j] = (1 - writing[i] - writing[j]) * link[i, j]
            link[i, j] += writing[i] * state["precedence"][j]
    state["precedence"] = (1 - writing.sum()) * state["precedence"] + writing
    state["writing"] = writing
    for i in range(heads):
        forward, backward = link @ state["reading"][i], link.T @ state["reading"][i]
        content = by_content(memory, xi["read_keys"][i], xi["read_strengths"][i])
        mode = xi["read_modes"][i]
        state["reading"][i] = mode[0] * backward + mode[1] * content + mode[2] * forward
    return state["reading"] @ memory


def dnc_start(slots: int, width: int, heads: int) -> dict[str, np.ndarray]:
    return {
        "memory": np.zeros((slots, width)),
        "usage": np.zeros(slots),
        "link": np.zeros((slots, slots)),
        "precedence": np.zeros(slots),
        "writing": np.zeros(slots),
        "reading": np.zeros((heads, slots)),
    }


def dnc_interface(emitted, width: int, heads: int, arm: str) -> dict[str, Any]:
    """The interface vector in parts, in the order of the Nature paper."""
    sizes = [width * heads, heads, width, 1, width, width, heads, 1, 1, 3 * heads]
    keys, strengths, write_key, write_strength, erase, write, free, ga, gw, modes = np.split(
        emitted, np.cumsum(sizes)[:-1]
    )
    keys, modes = keys.reshape(heads, width), modes.reshape(heads, 3)
    xi = {
        "erase_vector": sigmoid(erase),
        "free_gates": sigmoid(free),
        "allocation_gate": sigmoid(ga[0]),
        "write_gate": sigmoid(gw[0]),
    }
    if arm == "paper":
        return xi | {
            "read_keys": keys,
            "read_strengths": 1 + softplus(strengths),
            "write_key": write_key,
            "write_strength": 1 + softplus(write_strength[0]),
            "write_vector": write,
            "read_modes": np.array([softmax(mode) for mode in modes]),
        }
    return xi | {
        "read_keys": np.tanh(keys),
        "read_strengths": softplus(strengths) / width,
        "write_key": np.tanh(write_key),
        "write_strength": softplus(write_strength[0]) / width,
        "write_vector": np.tanh(write),
        "read_modes": np.array([softmax(mode) for mode in modes.T]).T,
    }


def dnc(w: Weights, arm: str, slots: int, width: int, heads: int, source, steps):
    state = dnc_start(slots, width, heads)
    h = c = np.zeros(w["core.controller.lstm.weight_hh"].shape[1])
    reads, fed, scores = np.zeros(heads * width), np.zeros(heads * width), []
    for t, x in enumerate(then_nothing(source, steps)):
        if arm == "paper" or t == len(source):
            fed = reads
        h, c = lstm_step(w, "core.controller.lstm", np.concatenate([x, fed]), h, c)
        xi = dnc_interface(linear(w, "core.to_interface", h), width, heads, arm)
        reads = dnc_memory(xi, state).flatten()
        scores.append(linear(w, "output", np.concatenate([h, reads])))
    return np.array(scores[-steps:])


# --- Neural Stack ---------------------------------------------------------------------------------


def stack_update(strengths: list[float], pop: float, push: float) -> list[float]:
    t, new = len(strengths), []
    for i in range(t):
        above = sum(strengths[j] for j in range(i + 1, t))
        new.append(max(0, strengths[i] - max(0, pop - above)))
    return [*new, push]


def stack_top(values, strengths: list[float]):
    t = len(strengths)
    return sum(
        min(strengths[i], max(0, 1 - sum(strengths[j] for j in range(i + 1, t)))) * values[i]
        for i in range(t)
    )


def neural_stack(w: Weights, source, steps):
    h, c = w["controller.first_h"], w["controller.first_c"]
    read, values, strengths, scores = np.zeros(len(w["value.bias"])), [], [], []
    for x in then_nothing(source, steps):
        h, c = lstm_step(w, "controller.lstm", np.concatenate([x, read]), h, c)
        push, pop = sigmoid(linear(w, "gates", h))
        values.append(np.tanh(linear(w, "value", h)))
        strengths = stack_update(strengths, pop, push)
        read = stack_top(values, strengths)
        scores.append(linear(w, "output", np.tanh(linear(w, "answer", h))))
    return np.array(scores[-steps:])


# --- Neural Random-Access Machine -----------------------------------------------------------------

INTEGER_FUNCTIONS = {
    "increment": lambda m, a: (a + 1) % m,
    "decrement": lambda m, a: (a - 1) % m,
    "add": lambda m, a, b: (a + b) % m,
    "subtract": lambda m, a, b: (a - b) % m,
    "less_than": lambda m, a, b: int(a < b),
    "less_or_equal": lambda m, a, b: int(a <= b),
    "equal": lambda m, a, b: int(a == b),
    "minimum": lambda m, a, b: min(a, b),
    "maximum": lambda m, a, b: max(a, b),
}


def uncertain(function: str, *distributions):
    """P(m(A, B) = c), by going through all pairs of integers."""
    m = len(distributions[0])
    result = np.zeros(m)
    for numbers in product(range(m), repeat=len(distributions)):
        p = np.prod([d[n] for d, n in zip(distributions, numbers, strict=True)])
        result[INTEGER_FUNCTIONS[function](m, *numbers)] += p
    return result


def nram(w: Weights, registers: int, cells: int, source, steps):
    h, c = w["controller.first_h"], w["controller.first_c"]
    certain = np.eye(cells)
    r = [certain[0]] * registers
    memory, scores = np.array([certain[0]] * cells), []
    for x in then_nothing(source, steps):
        seen = np.concatenate([x, [register[0] for register in r]])
        h, c = lstm_step(w, "controller.lstm", seen, h, c)
        wiring = linear(w, "wiring", h)
        read_symbol = x[:CLASSES].any()
        known = [*r, certain[x[:CLASSES].argmax() if read_symbol else 0]]
        place = 0

        def chosen(count):
            nonlocal place
            inputs = []
            for _ in range(count):
                choice = softmax(wiring[place : place + len(known)])  # noqa: B023
                place += len(known)  # noqa: B023
                inputs.append(sum(p * value for p, value in zip(choice, known, strict=True)))  # noqa: B023
            return inputs

        (pointer,) = chosen(1)
        known.append(sum(pointer[i] * memory[i] for i in range(cells)))
        known += [certain[0], certain[1], certain[2]]
        for function, count in (
            *(("increment", 1), ("add", 2), ("subtract", 2), ("decrement", 1), ("less_than", 2)),
            *(("less_or_equal", 2), ("equal", 2), ("minimum", 2), ("maximum", 2)),
        ):
            known.append(uncertain(function, *chosen(count)))
        pointer, value = chosen(2)
        memory = np.array(
            [(1 - p) * row + p * value for p, row in zip(pointer, memory, strict=True)]
        )
        r = chosen(registers)
        symbols = np.concatenate([register[:CLASSES] for register in r])
        scores.append(linear(w, "output", np.concatenate([h, symbols])))
    return np.array(scores[-steps:])


# --- Emergent Symbol Binding Network --------------------------------------------------------------


def esbn(w: Weights, source, steps):
    relu = lambda x: np.maximum(x, 0)  # noqa: E731
    z = np.array([relu(linear(w, "encoder.2", relu(linear(w, "encoder.0", x)))) for x in source])
    z = (z - z.mean(0)) / np.sqrt(z.var(0, ddof=1) + 1e-8) * w["scale"] + w["offset"]
    h = c = np.zeros(w["controller.lstm.weight_hh"].shape[1])
    retrieved = np.zeros(len(w["key.bias"]) + 1)
    keys, values, scores = [], [], []

    def retrieve(similarity):
        weights = softmax(similarity)
        confidence = sigmoid(w["gain"] * similarity + w["bias"])
        pairs = [np.append(k, c) for k, c in zip(keys, confidence, strict=True)]
        mixed = sum(weight * pair for weight, pair in zip(weights, pairs, strict=True))
        return weights, sigmoid(linear(w, "gate", h)) * mixed

    for z_t in z:
        h, c = lstm_step(w, "controller.lstm", retrieved, h, c)
        if keys:
            _, retrieved = retrieve(np.array([z_t @ value for value in values]))
        keys.append(relu(linear(w, "key", h)))
        values.append(z_t)
    for _ in range(steps):
        h, c = lstm_step(w, "controller.lstm", retrieved, h, c)
        asked = relu(linear(w, "key", h))
        weights, retrieved = retrieve(np.array([asked @ key for key in keys]))
        value = sum(weight * v for weight, v in zip(weights, values, strict=True))
        scores.append(linear(w, "output", np.concatenate([h, value])))
    return np.array(scores)
