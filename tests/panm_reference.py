"""PANM again, in NumPy: one sample, one head, one step at a time, in the words of the equations.

It shares no code with the library. The arms of the authors' code need the whole batch for one thing
only, the table of addresses whose axes they confuse.
"""

import numpy as np

Array = np.ndarray


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max())
    return e / e.sum()


def cosine(a: Array, b: Array) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def bits_of(address: int, bits: int) -> list[float]:
    """Lowest bit first."""
    text = format(address % 2**bits, f"0{bits}b")
    return [float(bit) for bit in reversed(text)]


def gru(w: dict[str, Array], x: Array, h: Array) -> Array:
    d = len(h)
    given = w["weight_ih"] @ x + w["bias_ih"].ravel()
    own = w["weight_hh"] @ h + w["bias_hh"].ravel()
    r = sigmoid(given[:d] + own[:d])
    z = sigmoid(given[d : 2 * d] + own[d : 2 * d])
    n = np.tanh(given[2 * d :] + r * own[2 * d :])
    return (1 - z) * n + z * h


def lstm(w: dict[str, Array], x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    i, f, g, o = np.split(w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"], 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


class Reference:
    """A model's weights, read under the names the library gives them, and what follows from them.

    weights  state_dict of an AlgorithmicPANM as arrays;  n_mode1, n_mode2: H^a, H^c
    single   where a Mode-1 pointer begins that is the only one
    """

    starts: tuple[str, ...]

    def __init__(
        self, weights: dict[str, Array], n_mode1: int, n_mode2: int, bits: int, single: str
    ):
        self.weights, self.bits = weights, bits
        self.n_mode1, self.n_mode2, self.single = n_mode1, n_mode2, single

    def begin(self) -> tuple[str, ...]:
        return (self.single,) if self.n_mode1 == 1 else self.starts[: self.n_mode1]

    def part(self, prefix: str, head: int | None = None) -> dict[str, Array]:
        """Parameters below a name; those of one head, if heads lie side by side."""
        found = {
            name.removeprefix(f"panm.{prefix}."): value
            for name, value in self.weights.items()
            if name.startswith(f"panm.{prefix}.")
        }
        return found if head is None else {name: v[head] for name, v in found.items()}

    def linear(self, prefix: str, x: Array, head: int | None = None) -> Array:
        w = self.part(prefix, head)
        return w["weight"] @ x + w["bias"].ravel()

    def mlp(self, prefix: str, x: Array, head: int | None = None) -> Array:
        hidden = self.linear(f"{prefix}.0", x, head)
        return self.linear(f"{prefix}.2", np.maximum(hidden, 0), head)

    def bank(self, base: int, length: int) -> Array:
        return np.array([bits_of(base + slot, self.bits) for slot in range(length)])


class TextReference(Reference):
    """Eqs. 1-7, with the temperature of arm repaired."""

    starts = ("base", "end", "middle")

    def __init__(self, *arguments, temperature: float):
        super().__init__(*arguments)
        self.temperature = temperature

    def memory(self, x: Array) -> Array:
        w = self.part("encoder.lstm")
        d = w["weight_hh"].shape[1]
        h, c, slots = np.zeros(d), np.zeros(d), []
        for vector in x:
            h, c = lstm(w, vector, h, c)
            slots.append(h)
        return np.array(slots)

    def run(self, x: Array, steps: int, base: int) -> dict[str, Array]:
        """Scores (T, classes), weights by head (H, T, L) and pointers (H^a, T, b) of one sample."""
        memory = self.memory(x)
        length = len(memory)
        bank = self.bank(base, length)
        first = {"base": 0, "end": length - 1, "middle": (length - 1) // 2}
        pointers = [bank[first[start]] for start in self.begin()]
        states = [np.zeros(self.part("pointers.gru")["weight_hh"].shape[2]) for _ in pointers]
        h = memory.sum(0)
        kept: dict[str, list] = {"scores": [], "mode1": [], "mode2": [], "pointers": []}
        for _ in range(steps):
            mode1_weights, values = [], []
            for i in range(self.n_mode1):
                states[i] = gru(self.part("pointers.gru", i), pointers[i], states[i])
                scores = [cosine(states[i], self.mlp("pointers.key", a, i)) for a in bank]
                w = softmax(np.array(scores) / self.temperature)
                pointers[i] = sum(w[n] * bank[n] for n in range(length))
                values.append(sum(w[n] * memory[n] for n in range(length)))
                mode1_weights.append(w)
            mode1 = np.concatenate([[], *values])
            mode2_weights = []
            for i in range(self.n_mode2):
                query = self.mlp("mode2.query", mode1, i)
                w = softmax(np.array([cosine(query, m) for m in memory]) / self.temperature)
                values.append(w @ memory)
                mode2_weights.append(w)
            both = np.concatenate([[], *values])
            h = gru(self.part("controller.gru"), both, h)
            inner = self.linear("controller.inner", np.concatenate([both, h]))
            kept["scores"].append(self.linear("controller.output", np.maximum(inner, 0)))
            kept["mode1"].append(mode1_weights)
            kept["mode2"].append(mode2_weights)
            kept["pointers"].append([p.copy() for p in pointers])
        return {
            "scores": np.array(kept["scores"]),
            **{
                name: np.array(kept[name]).swapaxes(0, 1) if kept[name][0] else np.array([])
                for name in ("mode1", "mode2", "pointers")
            },
        }


class CodeReference(Reference):
    """The authors' code; ``mended`` reads pointers from the right table.

    What else an arm changes is seen from the weights that there are.
    """

    starts = ("base", "end", "base")

    def __init__(self, *arguments, mended: bool):
        super().__init__(*arguments)
        self.mended = mended

    def encode(self, x: Array) -> tuple[Array, Array]:
        forwards, backwards = self.part("encoder.forwards"), self.part("encoder.backwards")
        d = forwards["weight_hh"].shape[1]
        h, left = np.zeros(d), []
        for vector in x:
            h = gru(forwards, vector, h)
            left.append(h)
        if not backwards:  # arm one-way
            return np.array(left), h
        g, right = np.zeros(d), []
        for vector in x[::-1]:
            g = gru(backwards, vector, g)
            right.append(g)
        return np.array(left) + np.array(right[::-1]), h

    def attend(self, prefix: str, query: Array, keys: list[Array], head: int) -> Array:
        asked = self.linear(f"{prefix}.ask", query, head)
        keys = [self.linear(f"{prefix}.key", k, head) for k in keys]
        return softmax(np.array([asked @ k for k in keys]) / np.sqrt(len(asked)))

    def run(
        self, xs: Array, steps: int, bases: list[int], keep: Array | None = None
    ) -> list[dict[str, Array]]:
        """As TextReference.run, of a whole batch (B, L, C).

        keep  (H^c, B, T, L): what Mode-2 weights are multiplied by, in training
        """
        size, length = xs.shape[:2]
        banks = [self.bank(base, length) for base in bases]
        tables = banks
        if not self.mended:  # tensor.view(B, L, b) of a tensor (L, B, b)
            rows = [banks[b][slot] for slot in range(length) for b in range(size)]
            tables = [np.array(rows[b * length : (b + 1) * length]) for b in range(size)]
        return [
            self.sample(x, steps, banks[b], tables[b], None if keep is None else keep[:, b])
            for b, x in enumerate(xs)
        ]

    def sample(self, x, steps, bank, table, keep) -> dict[str, Array]:
        memory, h = self.encode(x)
        first = {"base": bank[0], "end": bank[-1]}
        pointers = [first[start] for start in self.begin()]
        states = [np.zeros(memory.shape[1]) for _ in pointers]
        kept: dict[str, list] = {"scores": [], "mode1": [], "mode2": []}
        for t in range(steps):
            mode1_weights, values = [], []
            for i in range(self.n_mode1):
                states[i] = gru(self.part("pointers.gru", i), pointers[i], states[i])
                query = self.linear("pointers.state", states[i], i)
                keys = [self.linear("pointers.address", a, i) for a in bank]
                w = self.attend("pointers", query, keys, i)
                read = w @ np.array([self.linear("mode1.value", m, i) for m in memory])
                values.append(self.linear("mode1.output", read, i))
                pointers[i] = w @ table
                mode1_weights.append(w)
            mode1 = np.concatenate([[], *values])
            context = np.array([])
            if content := self.part("controller.attention"):  # none in the arm contentless
                pairs = [np.concatenate([h, m]) for m in memory]
                mapped = [content["map.weight"] @ pair + content["map.bias"] for pair in pairs]
                energies = [content["v"] @ np.maximum(m, 0) for m in mapped]
                context = softmax(np.array(energies)) @ memory
            h = gru(self.part("controller.gru"), np.concatenate([mode1, context]), h)
            written = self.linear("controller.mix", np.concatenate([h, context]))
            mode2, mode2_weights = [], []
            for i in range(self.n_mode2):
                query = self.linear("mode2.query", mode1, i)
                w = self.attend("mode2", query, list(memory), 0)
                if keep is not None:
                    w = w * keep[i, t]
                read = w @ np.array([self.linear("mode2.value", m, 0) for m in memory])
                mode2.append(self.linear("mode2.output", read, 0))
                mode2_weights.append(w)
            everything = np.concatenate([written, mode1, *mode2])
            kept["scores"].append(self.linear("controller.output", everything))
            kept["mode1"].append(mode1_weights)
            kept["mode2"].append(mode2_weights)
        return {
            "scores": np.array(kept["scores"]),
            **{
                name: np.array(kept[name]).swapaxes(0, 1) if kept[name][0] else np.array([])
                for name in ("mode1", "mode2")
            },
        }
