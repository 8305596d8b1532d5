"""BLEU, as sacrebleu computes it."""

from collections.abc import Sequence

from relength.errors import RelengthError
from relength.tasks.pretrained import EXTRA


def bleu(given: Sequence[str], wanted: Sequence[str]) -> float:
    """BLEU of a whole set of texts against one reference each, from 0 to 1.

    It looks at n-grams of up to four words, and at none longer than the longest reference:
    otherwise right answers of fewer than four words would get nothing.

    >>> bleu(["F b P i"], ["F b P i"])
    1.0

    Without a reference there is nothing to score: 0. Raises RelengthError where sacrebleu is not
    installed.
    """
    if not wanted:
        return 0.0
    try:
        from sacrebleu.metrics import BLEU
    except ImportError:
        raise RelengthError(f"BLEU needs the library sacrebleu: {EXTRA}.") from None
    order = min(4, max(len(text.split()) for text in wanted)) or 1
    score = BLEU(max_ngram_order=order).corpus_score(list(given), [list(wanted)]).score
    return min(max(score / 100, 0.0), 1.0)  # 100.00000000000004 is rounding
