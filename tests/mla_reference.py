"""The Monotonic Location Attention model in NumPy: one sample, one token, one equation at a time.

Written from Sections 3-5 and Appendix E.1 of the paper, with its symbols, and with the released
code's choices where the paper makes none. It shares nothing with the library but the names of the
weights, and is the yardstick for its values.
"""

from typing import Any

import numpy as np

Array = np.ndarray


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def softmax(c: Array) -> Array:
    e = np.exp(c - c.max())
    return e / e.sum()


def norm(i: int, s: int) -> float:
    """Eq. 7, i from 1."""
    return (i - 1) / max(1, s - 1)


def clamp(mu: float, m: float = 0.01) -> float:
    """Eq. 8."""
    return max(0 + m * mu, min(1 + m * mu, mu))


def softstair(x: float, tau: float = 20) -> float:
    """Eq. 14."""
    return np.floor(x) + sigmoid(tau * (x - np.floor(x) - 0.5))


def location_weights(mu: float, sigma: float, s: int) -> Array:
    """λ' of Eqs. 5, 6 and 9 around a centre that has been clamped or not."""
    focus = np.array([np.exp(-((norm(i, s) - mu) ** 2) / (2 * sigma**2)) for i in range(1, s + 1)])
    return focus / (focus.sum() + 1e-20)


def sinusoid(k: int, d: int) -> Array:
    """pe_k, sines then cosines (Dai et al., 2019)."""
    angles = [k / 10000 ** (2 * j / d) for j in range(d // 2)]
    return np.array([*np.sin(angles), *np.cos(angles)])


def turned(x: Array, p: int) -> Array:
    """R_p x: the plane of coordinates (j, j + d/2) turned by p / 10000^(2j/d) (Su et al., 2021)."""
    d, y = len(x), np.empty_like(x)
    for j in range(d // 2):
        angle = p / 10000 ** (2 * j / d)
        y[j] = np.cos(angle) * x[j] - np.sin(angle) * x[j + d // 2]
        y[j + d // 2] = np.sin(angle) * x[j] + np.cos(angle) * x[j + d // 2]
    return y


FORWARDS = {"Content", "Relative"}  # over e, as all of LocAttn's kind; the others over e^dir


def gru(x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array) -> Array:
    """One GRU step as in the documentation of torch.nn.GRU."""
    x_r, x_z, x_n = np.split(w_ih @ x + b_ih, 3)
    h_r, h_z, h_n = np.split(w_hh @ h + b_hh, 3)
    r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
    n = np.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


class Reference:
    """The model with the weights of a library model, for one sample at a time."""

    def __init__(self, model: Any):
        self.name, self.arm = model.config.name, model.config.arm
        self.min_sigma = model.config.min_sigma
        self.w = {name: p.detach().double().numpy() for name, p in model.state_dict().items()}
        self.d, self.layers = model.config.hidden_size, model.config.layers

    def gru(self, name: str, x: Array, h: Array) -> Array:
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return gru(x, h, *(self.w[f"{name}.{part}"] for part in parts))

    def encode(self, tokens: list[int]) -> tuple[Array, Array]:
        """e (s, d), or e^dir, and e_cls (d,) of a source of s - 2 tokens."""
        start, end = self.w["marks"]
        e = [start, *(self.w["embedding.weight"][token] for token in tokens), end]
        for layer in ("encoder", *(f"encoder_above.{i}" for i in range(self.layers - 1))):
            left, right = [], []
            h = np.zeros(self.d // 2)
            for x_i in e:
                h = self.gru(f"{layer}.forwards", x_i, h)
                left.append(h)
            h = np.zeros(self.d // 2)
            for x_i in e[::-1]:
                h = self.gru(f"{layer}.backwards", x_i, h)
                right.insert(0, h)
            e = np.array([np.concatenate(pair) for pair in zip(left, right, strict=True)])
            e_cls = np.concatenate([left[-1], right[0]])
        if not (self.name in FORWARDS or "LocAttn" in self.name):
            f_dir = self.w["direction.weight"][0] @ e_cls + self.w["direction.bias"][0]
            alpha = sigmoid(5 * f_dir)  # Eq. 17
            e = alpha * e + (1 - alpha) * e[::-1]  # Eq. 18
        return e, e_cls

    def attend(self, h: Array, e: Array, t: int, pa: float) -> tuple[Array, Array]:
        """a_t (s,) from h_{t-1}, and the weights from which pa_t is computed.

        For relative distances t and i count from 0, as released.
        """
        if "Attn" not in self.name:
            a = self.by_score(h, e, t)
            return a, a
        located = self.located(h, e, t, pa)
        if "Mix" not in self.name:
            return located, located
        f_mix = self.w["attention.mix.weight"][0] @ h + self.w["attention.mix.bias"][0]
        w = {k.removeprefix("attention.content."): v for k, v in self.w.items()}
        q = w["query.weight"] @ h
        content = softmax(np.array([q @ (w["key.weight"] @ e_i) for e_i in e]) / np.sqrt(self.d))
        # Eqs. 15 and 16; as released without β, and the gate is that of the location part.
        mix = sigmoid(5 * f_mix) if self.arm == "paper" else 1 - sigmoid(f_mix)
        a = mix * content + (1 - mix) * located
        return a, located if self.name.endswith("PR") else a

    def by_score(self, h: Array, e: Array, t: int) -> Array:
        w = {k.removeprefix("attention."): v for k, v in self.w.items()}
        if self.name == "Content":
            q = w["query.weight"] @ h
            return softmax(np.array([q @ (w["key.weight"] @ e_i) for e_i in e]) / np.sqrt(self.d))
        if self.name == "Bi-ROPE":
            q = turned(w["query.weight"] @ h, t)
            k = [turned(w["key.weight"] @ e_i, i) for i, e_i in enumerate(e)]
            return softmax(np.array([q @ k_i for k_i in k]) / np.sqrt(self.d))
        q, c = w["query.weight"] @ h, []
        for i, e_i in enumerate(e):
            pe = w["distance.weight"] @ sinusoid(i - t, self.d)
            r = (q + w["position_bias"]) @ pe / np.sqrt(self.d)  # Eq. 3
            c.append((q + w["content_bias"]) @ (w["key.weight"] @ e_i) / np.sqrt(self.d) + r)  # 4
        return softmax(np.array(c))

    def located(self, h: Array, e: Array, t: int, pa: float) -> Array:
        """λ'_t (s,)."""
        s, w = len(e), {k.removeprefix("attention."): v for k, v in self.w.items()}
        f_l = w["hidden.weight"] @ h + w["hidden.bias"]
        f_sigma, *f = w["heads.weight"] @ f_l
        sigma = (relu(f_sigma) + self.min_sigma) / s  # Eq. 10
        mu = self.centre(f, pa, 1 / max(1, s - 1), t)
        clamped = "LocAttn" in self.name or "Step 2" in self.name or self.arm == "paper"
        return location_weights(clamp(mu) if clamped else mu, sigma, s)

    def centre(self, f: list[float], pa: float, stepsize: float, t: int) -> float:
        """μ_t of Eq. 11."""
        released = self.arm != "paper"
        name = self.name.removeprefix("Mix ").removesuffix(" PR")
        if name == "LocAttn":
            f_step, f_g, f_b = f
            return sigmoid(f_g) * pa + sigmoid(f_b) + stepsize * softstair(f_step)  # Eqs. 12 and 13
        if name == "LocAttn S":  # Appendix B.1
            f_step, f_b = f
            return (sigmoid(f_b) if t == 0 else pa) + stepsize * softstair(f_step)
        if name == "OneStepAttn -Step 2":
            f_step, f_g, f_b = f
            one = sigmoid(5 * f_step if released else f_step)
            return sigmoid(f_g) * pa + sigmoid(f_b) + stepsize * one
        [f_step] = f
        if name == "OneStepAttn":
            return pa + stepsize * sigmoid(5 * f_step if released else f_step)
        if name == "OneStepAttn -Step 3":
            return pa + stepsize * softstair(f_step)
        if name == "OneStepAttn -Sigmoid":
            return pa + stepsize * f_step
        if name == "RMonoAttn":
            return pa + stepsize * relu(f_step)
        assert name == "MonoAttn"
        g = sigmoid(self.w["attention.gate"])
        if released:
            return pa + stepsize * (g * relu(f_step) + (1 - g) * sigmoid(5 * f_step))
        return pa + stepsize * (g * sigmoid(f_step) + (1 - g) * relu(f_step))  # Eq. 19

    def decode(self, tokens: list[int], previous: list[int]) -> tuple[Array, Array]:
        """Scores (T, vocabulary) and weights (T, s); ``previous`` are the tokens fed back."""
        e, h = self.encode(tokens)
        above = [h] * (self.layers - 1)
        inner = e @ self.w["inner_value.weight"].T + self.w["inner_value.bias"]
        v = np.where(inner > 0, inner, 0.01 * inner) @ self.w["value.weight"].T
        pa, scores, weights = 0.0, [], []
        for t, token in enumerate(previous):
            a, tracked = self.attend(above[-1] if above else h, e, t, pa)
            pa = sum(a_i * norm(i, len(e)) for i, a_i in enumerate(tracked, start=1))
            o = self.w["output.weight"] @ (a @ v)  # Eq. 2
            h = self.gru("decoder", np.concatenate([o, self.w["embedding.weight"][token]]), h)
            top = h
            for i, h_i in enumerate(above):
                above[i] = top = self.gru(f"decoder_above.{i}", top, h_i)
            y = self.w["to_embedding.weight"] @ top + self.w["to_embedding.bias"]
            scores.append(self.w["embedding.weight"] @ y + self.w["token_bias"])
            weights.append(a)
        return np.array(scores), np.array(weights)
