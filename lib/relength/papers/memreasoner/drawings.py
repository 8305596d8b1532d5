"""MemReasoner: facts in order, and a question that changes with what it has found."""

from relength.report.diagram import FIRST, GROUND, INK, MUTED, RULE, SECOND, exhibit
from relength.report.drawing import Sheet
from relength.report.exhibits import Exhibit

FACTS = (
    "Mary went to the kitchen.",
    "Mary took the football.",
    "John went to the hallway.",
    "Mary went to the garden.",
    "Sandra went to the office.",
)
QUESTION = "Where is the football?"
HOPS = (1, 3)  # the facts that the two readings should find, in the order of the chain
ANSWER = "garden"
ROW = 38.0


def reading() -> Exhibit:
    """The loop of reading and updating the query, on a question that takes two facts."""

    def draw(sheet: Sheet, narrow: bool) -> None:
        if narrow:
            _narrow(sheet)
        else:
            _wide(sheet)

    return exhibit(
        "memreasoner-mechanism",
        draw,
        "A question that takes two facts.",
        "Each sentence becomes one vector, z. A recurrent network puts them in order, z̃, and these "
        "are written to memory. The question reads (1), what it found is added to it, and it reads "
        "again (2): first who has the football, then where she went <i>last</i>, which only an "
        "ordered memory can tell from where she was before. The last reading is replaced by the "
        "unordered vector of the nearest sentence, from which the decoder writes the answer.",
        f"Five facts, one per row: {' '.join(FACTS)} Each is encoded as z, ordered as z tilde, and "
        f"written to memory. The question, {QUESTION} reads the second fact in its first hop, is "
        "updated with it, and reads the fourth in its second hop. That fact's unordered vector "
        f"goes to the decoder, which answers {ANSWER}.",
    )


def _wide(sheet: Sheet) -> None:
    top = 66.0
    z, order, hops, out = 236.0, 316.0, (438.0, 548.0), 676.0
    heads = ((0, "context", ""), (z, "encoded", "z_i"), (order, "in order", "z̃_i"))
    for x, name, sign in heads:
        sheet.text(x, 24, name, bold=True)
        sheet.maths(x, 44, sign, colour=MUTED)
    sheet.box(order - 12, top - 14, 64, ROW * len(FACTS) + 8, line=FIRST, dashed=True)
    sheet.text(order + 20, top + ROW * len(FACTS) + 10, "memory", size=11.5, colour=FIRST,
               anchor="middle")  # fmt: skip
    for k, fact in enumerate(FACTS):
        y = top + ROW * k
        _fact(sheet, 0, y, k, fact)
        sheet.line([(206, y), (z - 8, y)], colour=MUTED, arrow=True, weight=1)
        _vector(sheet, z, y, MUTED)
        sheet.line([(z + 46, y), (order - 14, y)], colour=MUTED, arrow=True, weight=1)
        _vector(sheet, order, y, FIRST)
        if k:
            sheet.line([(order + 20, y - ROW + 9), (order + 20, y - 9)], colour=FIRST, weight=1,
                       arrow=True)  # fmt: skip
    for hop, (x, found) in enumerate(zip(hops, HOPS, strict=True), start=1):
        sheet.text(x + 20, 24, f"hop {hop}", bold=True, anchor="middle", colour=SECOND)
        sheet.maths(x + 20, 44, f"z̃_r^{hop}", anchor="middle", colour=SECOND)
        for k in range(len(FACTS)):
            strength = 0.86 if k == found else 0.16 if k == 0 and hop == 2 else 0.06
            _weight(sheet, x, top + ROW * k, strength)
    low = top + ROW * len(FACTS) + 28
    _query(sheet, hops, low)
    sheet.curve((hops[1] + 44, top + ROW * HOPS[1]), (out - 60, top + ROW * HOPS[1]),
                (out - 40, top + 60), (out + 2, top + 60), colour=INK, arrow=True)  # fmt: skip
    sheet.box(out + 4, top + 38, 86, 44, fill=GROUND, line=MUTED)
    sheet.text(out + 47, top + 57, "decoder", size=12, bold=True, anchor="middle")
    sheet.text(out + 47, top + 73, "reads z, not z̃", size=10, colour=MUTED, anchor="middle")
    sheet.line([(out + 47, top + 84), (out + 47, top + 116)], colour=INK, arrow=True)
    sheet.text(out + 47, top + 134, f"“{ANSWER}”", size=14, bold=True, anchor="middle")


def _query(sheet: Sheet, hops: tuple[float, float], low: float) -> None:
    """The question below the columns, on its way to either reading."""
    first, second = hops
    sheet.text(first - 134, low + 26, QUESTION, size=12, bold=True)
    sheet.line([(first + 10, low + 21), (first + 20, low + 21), (first + 20, low - 10)],
               colour=SECOND, arrow=True, weight=2)  # fmt: skip
    sheet.curve((first + 26, low + 21), (first + 60, low + 21), (second + 20, low + 34),
                (second + 20, low - 9), colour=SECOND, arrow=True, weight=2)  # fmt: skip
    sheet.maths(first + 50, low + 50, "z_q ← z_q + α z̃_r", colour=SECOND, size=14)


def _narrow(sheet: Sheet) -> None:
    top, hops = 64.0, (206.0, 276.0)
    sheet.text(0, 20, "context", bold=True)
    for hop, x in enumerate(hops, start=1):
        sheet.text(x + 20, 20, f"hop {hop}", bold=True, anchor="middle", colour=SECOND)
        sheet.maths(x + 20, 38, f"z̃_r^{hop}", anchor="middle", colour=SECOND)
    for k, fact in enumerate(FACTS):
        y = top + ROW * k
        _fact(sheet, 0, y, k, fact)
        for hop, (x, found) in enumerate(zip(hops, HOPS, strict=True), start=1):
            strength = 0.86 if k == found else 0.16 if k == 0 and hop == 2 else 0.06
            _weight(sheet, x, y, strength)
    low = top + ROW * len(FACTS) + 14
    sheet.text(0, low + 26, QUESTION, size=12, bold=True)
    sheet.line([(148, low + 21), (hops[0] + 20, low + 21), (hops[0] + 20, low - 14)],
               colour=SECOND, arrow=True, weight=2)  # fmt: skip
    sheet.curve((hops[0] + 26, low + 21), (hops[0] + 50, low + 21), (hops[1] + 20, low + 30),
                (hops[1] + 20, low - 13), colour=SECOND, arrow=True, weight=2)  # fmt: skip
    sheet.maths(196, low + 52, "z_q ← z_q + α z̃_r", colour=SECOND, size=13)
    sheet.line([(40, low + 40), (40, low + 72)], colour=INK, arrow=True)
    sheet.box(0, low + 74, 200, 40, fill=GROUND, line=MUTED)
    sheet.text(12, low + 99, "decoder reads z, not z̃", size=12, bold=True)
    sheet.text(214, low + 99, f"“{ANSWER}”", size=14, bold=True)


def _fact(sheet: Sheet, x: float, y: float, number: int, words: str) -> None:
    found = number in HOPS
    sheet.text(x, y + 4, str(number + 1), size=11, colour=SECOND if found else MUTED, bold=found)
    sheet.text(x + 16, y + 4, words, size=12.5, bold=found)


def _vector(sheet: Sheet, x: float, y: float, shade: str) -> None:
    for k in range(4):
        sheet.box(x + 10 * k, y - 7, 10, 14, fill=GROUND, line=shade, weight=1, round=1)


def _weight(sheet: Sheet, x: float, y: float, strength: float) -> None:
    """How much of a reading comes from one fact, as a bar of at most 40 pixels."""
    sheet.box(x, y - 8, 40, 16, fill=GROUND, line=RULE, weight=0.8, round=3)
    sheet.box(x, y - 8, 40 * strength, 16, fill=SECOND, line=SECOND, weight=0.8, round=3)
