"""PANM: addresses, pointers that move over them, and two ways to read."""

from collections.abc import Sequence
from math import pi

import numpy as np

from relength.report.diagram import FIRST, GROUND, INK, MUTED, RULE, SECOND, WARNING, exhibit
from relength.report.drawing import Sheet
from relength.report.exhibits import Exhibit

BITS = 4  # of the addresses in the drawing; the paper has 10
BASE = 5


def binary(number: int, bits: int = BITS) -> str:
    """An address as the bank holds it, most significant bit first; it wraps around."""
    return format(number % 2**bits, f"0{bits}b")


def reading() -> Exhibit:
    """One step of decoding: two pointers, their addresses, and the two ways to read."""

    def draw(sheet: Sheet, narrow: bool) -> None:
        if narrow:
            _pointer_machine(sheet, left=8, cell=52, labels=False)
        else:
            _pointer_machine(sheet, left=132, cell=66, labels=True)

    return exhibit(
        "panm-mechanism",
        draw,
        "One step of PANM.",
        f"The input lies in memory; beside each slot stands its address, here of {BITS} bits. Two "
        "pointers start at the first and the last address and are moved by a network that sees "
        "addresses only. <b>Mode 1</b> reads what a pointer points at. <b>Mode 2</b> takes that "
        "value as a question and reads what resembles it, wherever it lies. The controller gets "
        "both and writes the next symbol.",
        "A row of six memory slots with the digits 7 2 9 2 4 1, below it their binary addresses "
        f"{binary(BASE)} to {binary(BASE + 5)}. A pointer unit that started at the first address "
        "now points at the third, another that started at the last at the fourth. Mode 1 carries "
        "the digits there to the controller. Mode 2 goes from the second pointer's digit 2 to the "
        "other 2 in memory, and from there to the controller, which writes the output.",
    )


def _pointer_machine(sheet: Sheet, left: float, cell: float, labels: bool) -> None:
    digits, wide = "729241", 6 * cell
    middle = [left + cell * (k + 0.5) for k in range(6)]
    memory, bank, unit = 92.0, 150.0, 240.0
    if labels:
        for y, name, sign in (
            (memory + 24, "memory", "M"),
            (bank + 20, "address bank", "A"),
            (unit + 22, "pointer units", ""),
        ):
            sheet.text(0, y, name, size=12.5, bold=True)
            sheet.maths(104, y, sign, size=14, colour=MUTED)
    else:
        sheet.text(left, 16, "memory, and its addresses", size=12, bold=True)
    for k, digit in enumerate(digits):
        x = middle[k] - cell / 2 + 2
        shade = FIRST if k == 2 else SECOND if k == 3 else RULE
        weight = 2 if k in (2, 3) else 1.2
        sheet.box(x, memory, cell - 4, 38, fill=GROUND, line=shade, weight=weight)
        sheet.text(middle[k], memory + 25, digit, size=17, anchor="middle", bold=True)
        address = binary(BASE + k)
        sheet.line([(middle[k], memory + 40), (middle[k], bank - 2)], colour=RULE, weight=1)
        sheet.box(x, bank, cell - 4, 28, line=shade, weight=weight)
        sheet.text(middle[k], bank + 19, address, size=12, anchor="middle", code=True)
    _units(sheet, middle, bank, unit, cell)
    # Mode 2: from the second pointer's value to the slot that resembles it
    sheet.curve((middle[3] - 8, memory - 3), (middle[3] - 14, memory - 46),
                (middle[1] + 14, memory - 46), (middle[1], memory - 3),
                colour=SECOND, arrow=True, dashed=True)  # fmt: skip
    where = (middle[1] + middle[3]) / 2
    sheet.text(where, memory - 44, "Mode 2: what resembles it?", size=11.5, colour=SECOND,
               anchor="middle")  # fmt: skip
    if labels:
        x, y = left + wide + 44, memory - 6
        sheet.box(x, y, 188, 96, fill=GROUND, line=MUTED)
        sheet.text(x + 14, y + 22, "controller", bold=True)
        sheet.text(x + 14, y + 44, "gets what Mode 1 read", size=11.5, colour=MUTED)
        sheet.text(x + 14, y + 61, "and what Mode 2 read,", size=11.5, colour=MUTED)
        sheet.text(x + 14, y + 78, "writes the next symbol", size=11.5, colour=MUTED)
        sheet.line([(left + wide + 4, y + 26), (x - 3, y + 26)], colour=INK, arrow=True)
        sheet.line([(x + 94, y + 98), (x + 94, unit + 2)], colour=INK, arrow=True)
        sheet.maths(x + 94, unit + 22, "y_t", size=17, anchor="middle")
    else:
        y = unit + 92
        sheet.line([(left + wide / 2, unit + 62), (left + wide / 2, y - 3)], arrow=True, colour=INK)
        sheet.box(left, y, wide, 52, fill=GROUND, line=MUTED)
        sheet.text(left + 12, y + 21, "controller", bold=True)
        sheet.text(left + 12, y + 39, "gets both, writes the next symbol", size=11.5, colour=MUTED)


def _units(sheet: Sheet, middle: Sequence[float], bank: float, unit: float, cell: float) -> None:
    for first, at, shade, starts, sign in (
        (0, 2, FIRST, "starts at the first address", "p^1_t"),
        (5, 3, SECOND, "starts at the last address", "p^2_t"),
    ):
        x = min(middle) - cell / 2 + 2 if first == 0 else middle[3] - cell / 2 + 2
        centre = x + 1.5 * cell - 2
        sheet.box(x, unit, 3 * cell - 4, 56, line=shade, weight=1.6)
        sheet.maths(x + 12, unit + 22, sign, size=15, colour=shade)
        words = starts.split(" at ")
        sheet.text(x + 44, unit + 21, "pointer unit", size=12, bold=True)
        sheet.text(x + 12, unit + 44, f"{words[0]} at\u00a0{words[1]}", size=min(11, cell / 5),
                   colour=MUTED)  # fmt: skip
        sheet.curve((centre, unit - 2), (centre, unit - 30), (middle[at], bank + 62),
                    (middle[at], bank + 31), colour=shade, arrow=True, weight=2)  # fmt: skip
        sheet.dot(middle[first], bank + 40, 3, fill=shade)


# Addresses, the longest training sequence, how many of them, and the test sequence
RING, TRAINED, SAMPLES, TESTED = 64, 10, 24, 48


def _arcs(random_base: bool) -> np.ndarray:
    """Base and length (SAMPLES, 2) of training sequences, from a numbered stream."""
    stream = np.random.Generator(np.random.Philox(key=7))
    lengths = stream.integers(5, TRAINED + 1, SAMPLES)
    bases = stream.integers(0, RING, SAMPLES)
    return np.stack([bases if random_base else 0 * bases, lengths], axis=1)


def _seen(arcs: np.ndarray) -> set[int]:
    return {(base + k) % RING for base, length in arcs.tolist() for k in range(length)}


def _tested(random_base: bool) -> list[int]:
    """The addresses of the test sequence."""
    start = 9 if random_base else 0
    return [(start + k) % RING for k in range(TESTED)]


def addresses() -> Exhibit:
    """Why the first address is drawn at random: what of a long test sequence has been seen."""

    def draw(sheet: Sheet, narrow: bool) -> None:
        for k, random_base in enumerate((False, True)):
            x, y = (165, 150 + 330 * k) if narrow else (192 + 384 * k, 150)
            _ring(sheet, x, y, random_base)

    seen = [len(_seen(_arcs(random_base))) for random_base in (False, True)]
    new = [len(set(_tested(r)) - _seen(_arcs(r))) for r in (False, True)]
    return exhibit(
        "panm-addresses",
        draw,
        "Why the first address is drawn at random.",
        f"A ring of {RING} addresses (the paper has 1,024); thin arcs are {SAMPLES} training "
        f"sequences of 5 to {TRAINED} slots, the broad arc is a test sequence of {TESTED}. If "
        f"addresses always began at 0, training would show {seen[0]} of them, and {new[0]} of the "
        f"test's {TESTED} would be new (broken line). With the first address drawn at random, the "
        f"same sequences show {seen[1]}, and {new[1] or 'none'} would be new. First addresses and "
        "lengths come from a seeded generator.",
        f"Two rings of {RING} addresses. With a fixed first address all training arcs lie on the "
        f"same {seen[0]} addresses, and a test arc of {TESTED} runs on into unseen ones. With a "
        f"random first address the training arcs are spread around the ring, cover {seen[1]} "
        "addresses, and the test arc lies on addresses that have been seen.",
    )


def _ring(sheet: Sheet, x: float, y: float, random_base: bool) -> None:
    arcs, inner = _arcs(random_base), 58.0
    seen = _seen(arcs)
    turn = 2 * pi / RING
    for k, (base, length) in enumerate(arcs.tolist()):
        radius = inner + 2.6 * (k % 12)
        sheet.arc((x, y), radius, base * turn, (base + length - 1) * turn, colour=FIRST, weight=1.4)
    for address in range(RING):
        at = address * turn
        end = (x + 102 * np.sin(at), y - 102 * np.cos(at))
        sheet.dot(*end, 2.6, fill=FIRST if address in seen else "none",
                  line=FIRST if address in seen else MUTED, weight=1)  # fmt: skip
    _test_arc(sheet, (x, y), _tested(random_base), seen, turn)
    sheet.text(x, y - 2, f"{len(seen)} of {RING}", size=16, bold=True, anchor="middle")
    sheet.text(x, y + 15, "addresses seen", size=11.5, colour=MUTED, anchor="middle")
    says = "first address drawn at random" if random_base else "first address always 0"
    sheet.text(x, y + 146, says, bold=True, anchor="middle")


def _test_arc(sheet: Sheet, centre: tuple[float, float], places: list[int], seen: set[int],
              turn: float) -> None:  # fmt: skip
    start = 0
    for k in range(1, len(places) + 1):
        known = places[start] in seen
        if k == len(places) or (places[k] in seen) != known:
            first = places[start]
            sheet.arc(centre, 116, first * turn, (first + k - start - 0.6) * turn,
                      colour=SECOND if known else WARNING, weight=5 if known else 2.4,
                      dashed=not known)  # fmt: skip
            start = k
