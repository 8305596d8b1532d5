"""The differentiable neural computer with a constrained controller state."""

from math import cos, pi, sin

import numpy as np

from relength.report.diagram import FIRST, GROUND, INK, MUTED, PAGE, RULE, SECOND, exhibit
from relength.report.drawing import Sheet
from relength.report.exhibits import Exhibit


def machine() -> Exhibit:
    """The controller, its memory and heads, and three ways to carry a state over time."""

    def draw(sheet: Sheet, narrow: bool) -> None:
        _computer(sheet, 0 if narrow else 16, 24)
        for k, kind in enumerate(("LSTM", "peephole LSTM", "with compression")):
            x, y = (0, 340 + 118 * k) if narrow else (440, 14 + 100 * k)
            _cell(sheet, x, y, kind, 116 if narrow else 140)

    return exhibit(
        "dnc-mechanism",
        draw,
        "Which state travels from step to step.",
        "A controller reads and writes a memory through heads, and keeps a state of its own (the "
        "loop). That state is what the paper constrains. An LSTM carries two vectors, c and h. The "
        "peephole LSTM carries c alone, so that whatever is done to c is done to all that the "
        "controller remembers; h only drives the heads and the output. Compression sends c through "
        "a tanh before it travels on.",
        "On one side, a controller with a loop for its state: input and what was read last go in, "
        "a write head and four read heads connect it to a memory matrix, the output goes out. On "
        "the other, three cells: in the LSTM both c and h travel to the next step, in the peephole "
        "LSTM only c does, and with compression c passes a tanh on its way.",
    )


def _computer(sheet: Sheet, x: float, y: float) -> None:
    box, top = 122, y + 70
    sheet.box(x, top, box, 92, fill=GROUND, line=INK, weight=1.6)
    sheet.text(x + box / 2, top + 42, "controller", bold=True, anchor="middle")
    sheet.maths(x + box / 2, top + 64, "h_t", anchor="middle", colour=MUTED)
    sheet.curve((x + 92, top - 2), (x + 92, top - 58), (x + 30, top - 58), (x + 30, top - 3),
                colour=FIRST, weight=2.6, arrow=True)  # fmt: skip
    sheet.text(x + box / 2, top - 53, "its state", size=12, colour=FIRST, bold=True,
               anchor="middle")  # fmt: skip
    memory, cell = x + 236, 13
    for row in range(9):
        for column in range(6):
            shade = SECOND if row == 2 else FIRST if row in (4, 5, 7) else GROUND
            strength = {2: 0.55, 4: 0.5, 5: 0.22, 7: 0.35}.get(row, 1)
            sheet.box(memory + cell * column, top - 18 + cell * row, cell, cell, fill=shade,
                      opacity=strength, weight=0.8, round=0)  # fmt: skip
    sheet.text(memory, top - 26, "memory", size=12.5, bold=True)
    sheet.maths(memory + 58, top - 26, "M_t", colour=MUTED)
    sheet.line([(x + box + 2, top + 15), (memory - 4, top + 15)], colour=SECOND, weight=2,
               arrow=True)  # fmt: skip
    sheet.text(x + box + 12, top + 7, "1 write head", size=11.5, colour=SECOND)
    sheet.line([(memory - 4, top + 60), (x + box + 3, top + 60)], colour=FIRST, weight=2,
               arrow=True)  # fmt: skip
    sheet.text(x + box + 12, top + 78, "4 read heads", size=11.5, colour=FIRST)
    sheet.line([(x + 30, top + 136), (x + 30, top + 95)], colour=INK, arrow=True)
    sheet.maths(x + 24, top + 154, "x_t")
    sheet.text(x, top + 172, "input", size=11.5, colour=MUTED)
    sheet.line([(x + 92, top + 94), (x + 92, top + 134)], colour=INK, arrow=True)
    sheet.maths(x + 86, top + 154, "y_t")
    sheet.text(x + 74, top + 172, "output, from", size=11.5, colour=MUTED)
    sheet.text(x + 146, top + 172, "h", size=11.5, colour=MUTED)
    sheet.text(x + 157, top + 172, "and what was read", size=11.5, colour=MUTED)


def _cell(sheet: Sheet, x: float, y: float, kind: str, width: float) -> None:
    """One step of a controller, with the vectors that enter and leave it."""
    left, high = x + 86, 62
    two, squeezed = kind == "LSTM", kind == "with compression"
    sheet.text(x, y + 10, kind, size=12.5, bold=True)
    sheet.box(left, y + 20, width, high, fill=GROUND, line=MUTED)
    upper, lower = y + 38, y + 66
    sheet.maths(x + 20, upper + 5, "c_{t−1}", colour=FIRST)
    out = left + width + 46
    sheet.line([(x + 54, upper), (out, upper)], colour=FIRST, weight=2.4, arrow=True)
    if squeezed:
        sheet.box(left + 78, upper - 11, 40, 22, fill=PAGE, line=FIRST, weight=1.6, round=11)
        sheet.text(left + 98, upper + 4, "tanh", size=11.5, anchor="middle", colour=FIRST)
    sheet.maths(out + 8, upper + 5, "c_t", colour=FIRST)
    if two:
        sheet.maths(x + 20, lower + 5, "h_{t−1}", colour=SECOND)
        sheet.line([(x + 54, lower), (left - 2, lower)], colour=SECOND, weight=2.4, arrow=True)
        sheet.line([(left + width, lower), (out, lower)], colour=SECOND, weight=2.4, arrow=True)
        sheet.maths(out + 8, lower + 5, "h_t", colour=SECOND)
    else:
        sheet.line([(left + width, lower), (left + width + 22, lower)], colour=MUTED, arrow=True)
        sheet.maths(left + width + 28, lower + 5, "h_t", colour=MUTED)
        sheet.text(left + width + 48, lower + 4, "heads only", size=10.5, colour=MUTED)
    sheet.maths(left + 12, lower + 4, "gates", size=12.5, colour=MUTED)


# Trajectories of a made-up state of two numbers

TRAINED, STEPS, NEAREST = 15, 30, 5  # steps in training, steps shown, pairs of the penalty (K)


def drifting() -> np.ndarray:
    """A state (STEPS, 2) that counts: it turns once in five steps and moves on a little in each."""
    t = np.arange(STEPS)
    turn = 2 * pi * t / 5
    return np.stack([0.135 * t - 0.9 + 0.3 * np.cos(turn), 0.045 * t - 0.6 + 0.3 * np.sin(turn)], 1)


def compressed() -> np.ndarray:
    """A state (STEPS, 2) that turns by a fifth in each step and passes a tanh."""
    angle = 2 * pi / 5
    turn = np.array([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]])
    states = [np.array([0.1, 0.25])]
    for _ in range(STEPS - 1):
        states.append(np.tanh(1.45 * turn @ states[-1]))
    return np.array(states)


def nearest_pairs(states: np.ndarray) -> list[tuple[int, int]]:
    """The K pairs of states with the largest cosine similarity: the penalty pulls them together."""
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    pairs = [(i, j) for i in range(len(states)) for j in range(i)]
    return sorted(pairs, key=lambda pair: -float(unit[pair[0]] @ unit[pair[1]]))[:NEAREST]


def states() -> Exhibit:
    """Three ways a state may go on after the training lengths."""
    panels = (
        ("no constraint", "the state drifts on", drifting()),
        ("compression", "tanh holds it in (−1, 1)", compressed()),
        ("regularisation", f"the {NEAREST} nearest pairs attract", drifting()),
    )

    def draw(sheet: Sheet, narrow: bool) -> None:
        for k, (name, says, path) in enumerate(panels):
            x, y = (38, 22 + 286 * k) if narrow else (262 * k, 22)
            _trajectory(sheet, x, y, name, says, path, k == 1, k == 2)

    return exhibit(
        "dnc-states",
        draw,
        "Why a smaller space of states may help.",
        f"Paths of a made-up state of two numbers, computed here. Filled: the first {TRAINED} "
        "steps, as long as in training; open: the steps after. Without a constraint a state that "
        "counts steps leaves the region that training has seen. Squeezed by a tanh it goes round "
        "in a loop, and later steps fall among earlier ones. Regularisation adds to the loss one "
        f"minus the mean cosine similarity of the K = {NEAREST} most similar pairs of states "
        "(linked): it rewards coming back.",
        "Three panels of a path through a plane. Without constraint the open points of later "
        "steps move away from the filled ones of training. With compression they stay inside a "
        "square and fall among the filled ones. With regularisation the five most similar pairs of "
        "points are linked by lines.",
    )


def _trajectory(sheet: Sheet, x: float, y: float, name: str, says: str, path: np.ndarray,
                square: bool, pairs: bool) -> None:  # fmt: skip
    size, half = 236.0, 3.6
    sheet.text(x, y, name, bold=True)
    sheet.text(x, y + 17, says, size=11.5, colour=MUTED)
    top = y + 28
    sheet.box(x, top, size, size - 34, fill=GROUND, line=RULE)

    def place(state: np.ndarray) -> tuple[float, float]:
        scale, shift = (86, 0) if square else (50, -1.05)
        return (
            x + size / 2 + scale * (float(state[0]) + shift),
            top + (size - 34) / 2 - scale * (float(state[1]) + shift * 0.13),
        )

    if square:
        (left, low), (right, high) = place(np.array([-1, -1])), place(np.array([1, 1]))
        sheet.box(left, high, right - left, low - high, line=FIRST, dashed=True, round=0)
    points = [place(state) for state in path]
    sheet.line(points, colour=MUTED, weight=0.8, opacity=0.7)
    if pairs:
        for i, j in nearest_pairs(path[:TRAINED]):
            sheet.line([points[i], points[j]], colour=SECOND, weight=3)
    for k, point in enumerate(points):
        known = k < TRAINED
        sheet.dot(*point, half, fill=FIRST if known else GROUND, line=FIRST, weight=1.3)
