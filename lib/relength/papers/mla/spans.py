"""Find where in its source the answer of a task can be read off, symbol by symbol."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from relength.tasks.copying import repeated


def answer_spans(task: str, source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
    """First and last source position, per output token, where that token can be read off.

    Only for tasks that keep the order of the source: repeated digits in the output (ReCopy) or in
    the source (Inv ReCopy, DeDupe), or neither (Copy); and for PosRetrieve, whose answers stand at
    the place that a digit names. The end of sequence is read off at END.
    """
    end = len(source) - 1
    digits = [token for token in source[1:-1] if token != "EOS"]
    if task == "dedupe":
        runs = [list(run) for _, run in groupby(enumerate(digits, start=1), key=itemgetter(1))]
        return [*((run[0][0], run[-1][0]) for run in runs), (len(digits) + 1, end)]
    if task == "posretrieve":
        named = [int(digit) + 1 if int(digit) < len(digits) else i + 1
                 for i, digit in enumerate(digits)]  # fmt: skip
        places = [p for i, place in enumerate(named, start=1) for p in (i, i, place, i)]
        return [*((place, place) for place in places), (end, end)]
    spans, position = [], 1
    for digit in target[:-1] if task == "inv_recopy" else source[1:-1]:
        times = len(repeated((digit,)))
        if task == "inv_recopy":
            spans.append((position, position + times - 1))
            position += times
        else:
            spans += [(position, position)] * (times if task == "recopy" else 1)
            position += 1
    return [*spans, (end, end)]
