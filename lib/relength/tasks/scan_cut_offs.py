"""SCAN with eleven cut-offs: trained on commands of at most so many actions, tested on all others.

Source: Newman et al., "The EOS decision and length extrapolation" (2020), as Csordás et al., "The
devil is in the detail" (2021), train on it and "Plug, Play, and Generalize: Length Extrapolation
with PANM" takes it over (Section 3.3, Table 4). A tenth of the commands within the cut-off is held
out and tested, too. The cited code draws it with another generator; the sizes are the same.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, create_model

from relength.streams import EVALUATION_SEED, stream
from relength.tasks.base import Pair, Split, is_whole
from relength.tasks.batch import Batch
from relength.tasks.scan import Scan, by_length, commands

if TYPE_CHECKING:
    from torch import Tensor

CUT_OFFS = (22, 24, 25, 26, 27, 28, 30, 32, 33, 36, 40)  # actions
LONGEST = 48


class ScanCutOff(Scan):
    """Trained on nine tenths of the commands of at most ``cut_off`` actions.

    train        nine in ten commands within the cut-off, the same ones for all seeds
    validation   the others. Nothing is selected on them
    iid          the others again, as a test: there are no more of the training distribution
    length       all commands beyond the cut-off. The learning curve has their accuracy, too

    A model puts start and end marks around a source itself. A size is the most that a set has;
    where there are more commands, it has a random part of them.
    """

    source_ends: ClassVar[bool] = False

    name: str
    cut_off: int
    train_size: int = Field(len(commands()), gt=0, description="most training commands")
    dev_size: int = Field(len(commands()), gt=0, description="not used: see validation_size")
    test_size: int = Field(len(commands()), gt=0, description="most commands per test set")
    validation_size: int = Field(len(commands()), gt=0, description="most validation commands")

    @property
    def watched_splits(self) -> tuple[str, ...]:
        return ("length",)

    def splits(self) -> dict[str, Split]:
        within = sum(len(those) for n, those in by_length().items() if n <= self.cut_off)
        held_out, beyond = held(within), len(commands()) - within
        shortest = min(n for n in by_length() if n > self.cut_off)
        validation = min(self.validation_size, held_out)
        return {
            "train": Split(1, self.cut_off, min(self.train_size, within - held_out)),
            "validation": Split(1, self.cut_off, validation),
            "iid": Split(1, self.cut_off, min(self.test_size, validation)),
            "length": Split(shortest, LONGEST, min(self.test_size, beyond)),
        }

    def text_sizes(self) -> tuple[tuple[int, int], ...]:
        return ((longest_source(), LONGEST + 1),)

    def pairs(self, split: str, seed: int) -> list[Pair]:
        size = self._split(split).size
        if split == "length":
            pool = [pair for pair in commands() if len(pair.target) > self.cut_off]
        else:
            within = [pair for pair in commands() if len(pair.target) <= self.cut_off]
            order = stream(EVALUATION_SEED, "evaluation", self.name, "held out")
            places, held_out = order.permutation(len(within)), held(len(within))
            chosen = places[held_out:] if split == "train" else places[:held_out]
            pool = [within[i] for i in np.sort(chosen)]
        random = (
            stream(seed, "data", self.name, split)
            if split == "train"
            else stream(EVALUATION_SEED, "evaluation", self.name, "part")
        )
        return [pool[i] for i in np.sort(random.permutation(len(pool))[:size])]

    def sample(
        self, random: np.random.Generator, batch_size: int, length: int | tuple[int, int]
    ) -> Batch:
        """``batch_size`` commands of one length, or of the lengths of a range that commands have.

        Raises RelengthError for a length that no command has.
        """
        bounds = length if isinstance(length, tuple | list) else ()
        if len(bounds) == 2 and all(map(is_whole, bounds)) and 1 <= min(bounds) <= LONGEST:
            there = [n for n in by_length() if bounds[0] <= n <= bounds[1]]
            if there and bounds[1] <= LONGEST:
                chosen = (there[i] for i in random.integers(len(there), size=batch_size))
                return self.encode([self.draw(random, n) for n in chosen])
        return super().sample(random, batch_size, length)

    def loss(self, outputs: "Tensor", batch: Batch) -> "Tensor":
        """Cross-entropy, the mean over all tokens of a batch."""
        from relength.tasks.losses import cross_entropy

        return cross_entropy(outputs, batch)


@cache
def longest_source() -> int:
    """The most words that a command has."""
    return max(len(pair.source) for pair in commands())


def held(within: int) -> int:
    """The number of commands within a cut-off that are not trained on: the most below a tenth.

    The cited code takes a share of 1 - 0.9, which in floating point is a little less than a tenth.

    >>> held(16_990), held(18_286)
    (1698, 1828)
    """
    return (within - 1) // 10


def refused(name: str) -> str:
    """Why there is no task of this name, if it names a cut-off; empty for any other name.

    >>> refused("scan_48")
    'no command asks for more than 48 actions, so that nothing would be tested'
    """
    asked = re.fullmatch(r"scan_(-?\d+)", name)
    if not asked or name in TASKS:
        return ""
    if int(asked[1]) >= LONGEST:
        return f"no command asks for more than {LONGEST} actions, so that nothing would be tested"
    if int(asked[1]) < min(by_length()):
        return f"no command asks for fewer than {min(by_length())} actions, to be trained on"
    return f"the paper cuts after {', '.join(map(str, CUT_OFFS))} actions: choose one of these"


def _cut_off(n: int) -> type[ScanCutOff]:
    fields: dict[str, Any] = {
        "name": (Literal[f"scan_{n}"], f"scan_{n}"),
        "cut_off": (Literal[n], n),
    }
    made = create_model(f"Scan{n}", __base__=ScanCutOff, __module__=__name__, **fields)
    made.__doc__ = f"""Cut-off {n}.

    >>> max(len(pair.target) for pair in TASKS["scan_{n}"]().pairs("train", seed=0))
    {n}
    """
    return made


TASKS = {f"scan_{n}": _cut_off(n) for n in CUT_OFFS}
# Processes that train are sent a task by the name of its class.
globals().update({made.__name__: made for made in TASKS.values()})
