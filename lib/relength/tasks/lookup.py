"""Composing lookup tables, read forwards and backwards: two probing tasks.

Source: "Monotonic Location Attention for Length Generalization", Section 2 and Tables 1 and 10,
after the "Long Lookup Tables" of Liska et al. (2018). The published files are used where they can
be found (:mod:`relength.tasks.data`); else :func:`generate` makes data by the same procedure.
"""

import hashlib
import math
from abc import abstractmethod
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from relength.errors import RelengthError
from relength.streams import EVALUATION_SEED, stream
from relength.tasks.base import Pair, Split, TextTask
from relength.tasks.data import Found, find

BITS = tuple("".join(bits) for bits in product("01", repeat=3))

# t_i as the octal digits of t_i(000), t_i(001), ... t_i(111). These are the eight random
# permutations behind the published data, read off from their three-token samples; the paper's
# examples (Tables 1 and 10) use the same ones.
TABLES: dict[str, dict[str, str]] = {
    name: {bits: BITS[int(digit)] for bits, digit in zip(BITS, digits, strict=True)}
    for name, digits in {
        "t1": "31625047",
        "t2": "14356027",
        "t3": "04365127",
        "t4": "34721605",
        "t5": "41620537",
        "t6": "50712346",
        "t7": "74123065",
        "t8": "32615074",
    }.items()
}
COMPOSED = ("t1", "t2", "t3", "t4", "t5", "t6")  # t7 and t8 occur in training, but never composed
MOST_COMPOSED = 4  # tables per training sample

HELD_OUT_COMPOSITIONS = 50  # of MOST_COMPOSED tables, with every input
HELD_OUT_INPUTS = 2  # of every other composition of MOST_COMPOSED tables
VALIDATION_SHARE = 0.05
LONGER_COMPOSITIONS = 625  # per longer set, each with all eight inputs: 5,000 samples
LONGER_DEV_SIZE = 500  # samples of longer_seen_1 set apart for development

# Split -> the set that it is, or is a part of.
FILES = {
    "train": "train",
    "validation": "validation",
    "dev": "longer_seen_1",
    "iid": "validation",
    "7": "longer_seen_1",
    "9": "longer_seen_3",
    "11": "longer_seen_5",
}

Rows = dict[str, list[Pair]]


def compose(bits: str, names: tuple[str, ...]) -> Pair:
    """The sample that applies the tables from left to right and writes every value on the way."""
    values = [bits]
    for name in names:
        values.append(TABLES[name][values[-1]])
    return Pair((bits, *names, "."), tuple(values))


class LookupTask(TextTask):
    """Look up an input in a table, the result in the next table, and so on.

    Length counts *source* tokens, the input and the final "." included: length 7 is five tables.

    train         train.tsv, 9,081 samples of lengths 3-6
    validation    validation.tsv, 475 samples of lengths 4-6; first development set
    dev           500 samples of longer_seen_1.tsv; second development set. Which 500 the authors
                  drew is not known; ours are drawn once, the same for both tasks and every seed
    iid           the validation samples again, so both checkpoints are selected on samples that it
                  measures. What the authors' preprocessing calls normal, heldout_inputs.tsv, is no
                  sample of the training distribution: 2,492 samples of length 6 alone, of inputs
                  that training withholds from compositions it has
    7, 9, 11      the other 4,500 samples of longer_seen_1.tsv; longer_seen_3.tsv; longer_seen_5.tsv

    A size below the full one takes a random part of a set, in file order: the training part belongs
    to the run's seed, every other part to the task.
    """

    symbols: ClassVar[tuple[str, ...]] = (*BITS, *TABLES, ".")
    dev_splits: ClassVar[tuple[str, ...]] = ("validation", "dev")

    train_size: int = Field(9_081, gt=0, le=9_081, description="training samples")
    dev_size: int = Field(500, gt=0, le=500, description="samples of the longer development set")
    test_size: int = Field(5_000, gt=0, le=5_000, description="samples per test set, at most")
    validation_size: int = Field(475, gt=0, le=475, description="samples of the validation set")

    def splits(self) -> dict[str, Split]:
        return {
            "train": Split(3, 6, self.train_size),
            "validation": Split(4, 6, self.validation_size),
            "dev": Split(7, 7, self.dev_size),
            "iid": Split(4, 6, min(self.test_size, 475)),
            "7": Split(7, 7, min(self.test_size, 5_000 - LONGER_DEV_SIZE)),
            "9": Split(9, 9, self.test_size),
            "11": Split(11, 11, self.test_size),
        }

    def draw(self, random: np.random.Generator, length: int) -> Pair:
        """A uniform composition of ``length - 2`` of the tables t1-t6, with a uniform input."""
        if length < 3:
            raise RelengthError(
                f"Task {self.name} has no samples of length {length}: an input, a table and the "
                "final '.' make 3 tokens, choose lengths from 3."
            )
        bits = BITS[random.integers(len(BITS))]
        names = tuple(COMPOSED[i] for i in random.integers(len(COMPOSED), size=length - 2))
        return self.pair(bits, names)

    def pairs(self, split: str, seed: int) -> list[Pair]:
        if split not in self.splits():
            return super().pairs(split, seed)  # which names the splits there are
        file = FILES[split]
        rows = _rows(find("lookup_tables"))[file]
        random = (
            stream(seed, "data", "lookup", file)
            if split == "train"
            else stream(EVALUATION_SEED, "evaluation", "lookup", file)
        )
        # "dev" takes the front of the order that it shares with "7", whatever their sizes.
        order = random.permutation(len(rows))[LONGER_DEV_SIZE if split == "7" else 0 :]
        return [self.arrange(rows[i]) for i in np.sort(order[: self.splits()[split].size])]

    def provenance(self) -> dict[str, Any]:
        """Name the source of the samples, for a run's record: source and SHA-256 of each file.

        Generated data are hashed in the published layout, without its third column.
        """
        found = find("lookup_tables")
        if found.source is not None:
            return {"source": found.source, "sha256": found.sha256}
        return {
            "source": "generated",
            "reason": found.reason,
            "sha256": {f"{name}.tsv": _sha256(rows) for name, rows in _rows(found).items()},
        }

    def pair(self, bits: str, names: tuple[str, ...]) -> Pair:
        """The sample that applies the named tables to ``bits``, first name first."""
        return self.arrange(compose(bits, names))

    @abstractmethod
    def arrange(self, pair: Pair) -> Pair:
        """This task's form of a sample whose source is in the order of application."""


class Lookup(LookupTask):
    """The source begins with the input; tables follow in the order in which they are applied.

    The example of Table 1:

    >>> sample = Lookup().pair("010", ("t3", "t4", "t2", "t6", "t1"))
    >>> print(*sample.source)
    010 t3 t4 t2 t6 t1 .
    >>> print(*sample.target)
    010 011 010 011 001 001
    """

    name: Literal["lookup"] = "lookup"

    def arrange(self, pair: Pair) -> Pair:
        return pair


class ReverseLookup(LookupTask):
    """Lookup with the source reversed up to its final "."; the target is the same.

    The target begins with the input, as Tables 1 and 10 print it; the text of Section 2 numbers the
    values the other way round (v_4 is the input).

    >>> sample = ReverseLookup().pair("010", ("t3", "t4", "t2", "t6", "t1"))
    >>> print(*sample.source)
    t1 t6 t2 t4 t3 010 .
    >>> print(*sample.target)
    010 011 010 011 001 001
    """

    name: Literal["reverse_lookup"] = "reverse_lookup"

    def arrange(self, pair: Pair) -> Pair:
        return Pair((*pair.source[-2::-1], "."), pair.target)


def generate(random: np.random.Generator) -> Rows:
    """Data by the procedure behind the published files, inferred from these files.

    All compositions of up to four of t1-t6 are taken with all eight inputs. Of the 1,296 longest,
    50 are held out, and of each of the others two inputs. 5 % of what has more than one table
    becomes the validation set, stratified by the set of tables used; the rest and the single tables
    t1-t8 are the training set. A longer set has 625 random compositions of its length, with all
    eight inputs.

    As published: the tables, and the size of every set (9,081 training samples, 64 of them with one
    table; 475 for validation; 2,492 and 400 held out; 5,000 longer). Drawn anew: what is held out,
    which samples validate, and with them how many training samples have two, three and four tables
    (published: 273, 1,644 and 7,100), and the longer compositions.
    """
    singles = [compose(bits, (name,)) for name in TABLES for bits in BITS]
    pool = [
        compose(bits, names)
        for n in range(2, MOST_COMPOSED)
        for names in product(COMPOSED, repeat=n)
        for bits in BITS
    ]
    longest = list(product(COMPOSED, repeat=MOST_COMPOSED))
    held_out = set(random.permutation(len(longest))[:HELD_OUT_COMPOSITIONS].tolist())
    rows: Rows = {"heldout_compositions": [], "heldout_inputs": []}
    for i, names in enumerate(longest):
        if i in held_out:
            rows["heldout_compositions"] += [compose(bits, names) for bits in BITS]
            continue
        order = random.permutation(len(BITS))
        rows["heldout_inputs"] += [compose(BITS[b], names) for b in order[:HELD_OUT_INPUTS]]
        pool += [compose(BITS[b], names) for b in order[HELD_OUT_INPUTS:]]
    pool = [pool[i] for i in random.permutation(len(pool))]
    validation = _stratified(pool, math.ceil(VALIDATION_SHARE * len(pool)))
    rows["validation"] = [pool[i] for i in sorted(validation)]
    rows["train"] = singles + [pair for i, pair in enumerate(pool) if i not in validation]
    for extra in (1, 3, 5):
        n = MOST_COMPOSED + extra
        chosen = random.choice(len(COMPOSED) ** n, LONGER_COMPOSITIONS, replace=False)
        digits = np.stack(np.unravel_index(chosen, (len(COMPOSED),) * n), axis=1)
        longer = [compose(b, tuple(COMPOSED[d] for d in row)) for row in digits for b in BITS]
        rows[f"longer_seen_{extra}"] = [longer[i] for i in random.permutation(len(longer))]
    return rows


def _stratified(pairs: list[Pair], size: int) -> set[int]:
    """Places of ``size`` pairs: of every set of tables its share, largest remainders rounded up."""
    strata: dict[frozenset[str], list[int]] = {}
    for i, pair in enumerate(pairs):
        strata.setdefault(frozenset(pair.source[1:-1]), []).append(i)
    shares = {tables: size * len(places) / len(pairs) for tables, places in strata.items()}
    short = size - sum(map(int, shares.values()))
    by_remainder = sorted(shares, key=lambda tables: int(shares[tables]) - shares[tables])
    rounded_up = set(by_remainder[:short])
    return {
        i
        for tables, places in strata.items()
        for i in places[: int(shares[tables]) + (tables in rounded_up)]
    }


@lru_cache(maxsize=2)
def _rows(found: Found) -> Rows:
    """Samples of every set, in the order of application, from the published texts or generated."""
    if found.source is None:
        return generate(stream(EVALUATION_SEED, "data", "long_lookup_tables"))
    rows = {}
    for name, text in found.texts.items():
        rows[name.removesuffix(".tsv")] = [
            Pair(*(tuple(column.split()) for column in line.split("\t")[:2]))
            for line in text.splitlines()
        ]
    return rows


def _sha256(rows: list[Pair]) -> str:
    text = "".join(f"{' '.join(pair.source)}\t{' '.join(pair.target)}\n" for pair in rows)
    return hashlib.sha256(text.encode()).hexdigest()
