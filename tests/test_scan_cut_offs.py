"""SCAN with cut-offs: sizes of the cited benchmark, and parts that share nothing."""

import gzip
import os
from collections import Counter
from pathlib import Path

import pytest
import torch

from relength.errors import RelengthError
from relength.streams import stream
from relength.tasks import TASKS
from relength.tasks.scan import commands
from relength.tasks.scan_cut_offs import CUT_OFFS, ScanCutOff

# Counted once in the published lines: trained on, held out within the cut-off, beyond it.
SIZES = {
    22: (15292, 1698, 3920),
    24: (15594, 1732, 3584),
    25: (15997, 1777, 3136),
    26: (16458, 1828, 2624),
    27: (16861, 1873, 2176),
    28: (17264, 1918, 1728),
    30: (17783, 1975, 1152),
    32: (18186, 2020, 704),
    33: (18416, 2046, 448),
    36: (18474, 2052, 384),
    40: (18704, 2078, 128),
}
PUBLISHED = Path(os.environ.get("RELENGTH_DATA") or "/nowhere") / "scan" / "tasks.txt.gz"
every_cut_off = pytest.mark.parametrize("cut_off", CUT_OFFS)


def task(cut_off: int, **sizes) -> ScanCutOff:
    return TASKS[f"scan_{cut_off}"](**sizes)


def test_there_are_eleven_cut_offs():
    assert tuple(SIZES) == CUT_OFFS
    assert [name for name, kind in TASKS.items() if issubclass(kind, ScanCutOff)] == [
        f"scan_{n}" for n in CUT_OFFS
    ]


@every_cut_off
def test_sizes_are_those_of_the_cited_benchmark(cut_off):
    pairs = {name: task(cut_off).pairs(name, 0) for name in task(cut_off).splits()}
    assert tuple(len(pairs[name]) for name in ("train", "validation", "length")) == SIZES[cut_off]
    assert pairs["iid"] == pairs["validation"]
    assert max(len(pair.target) for pair in pairs["train"]) == cut_off
    assert max(len(pair.target) for pair in pairs["validation"]) <= cut_off
    assert min(len(pair.target) for pair in pairs["length"]) > cut_off


@pytest.mark.skipif(
    not PUBLISHED.is_file(), reason="RELENGTH_DATA names no folder with the published SCAN files"
)
@every_cut_off
def test_the_published_lines_fall_into_the_same_parts(cut_off):
    """Actions are counted in the file itself; a tenth less a line is held out."""
    lines = gzip.decompress(PUBLISHED.read_bytes()).decode().splitlines()
    lengths = Counter(len(line.split(" OUT: ")[1].split()) for line in lines)
    within = sum(count for length, count in lengths.items() if length <= cut_off)
    train, held_out, beyond = SIZES[cut_off]
    assert (train + held_out, beyond) == (within, lengths.total() - within)
    published = {line.split(" OUT: ")[0].removeprefix("IN: ") for line in lines}
    ours = [" ".join(p.source) for n in ("train", "validation", "length")
            for p in task(cut_off).pairs(n, 0)]  # fmt: skip
    assert set(ours) == published and len(ours) == len(published)


@every_cut_off
def test_every_command_is_in_one_part_and_all_seeds_share_them(cut_off):
    parts = [task(cut_off).pairs(name, 3) for name in ("train", "validation", "length")]
    together = [pair for part in parts for pair in part]
    assert set(together) == set(commands()) and len(together) == len(commands())
    assert task(cut_off).pairs("train", 4) == parts[0]


def test_what_is_held_out_is_as_long_as_what_is_trained_on():
    """The means differ by less than four standard errors, so the tenth is a random one."""
    small, large = (
        torch.tensor([float(len(p.target)) for p in task(26).pairs(name, 0)])
        for name in ("validation", "train")
    )
    assert abs(small.mean() - large.mean()) < 4 * large.std() / len(small) ** 0.5


def test_a_size_is_the_most_that_a_set_has():
    few = task(40, train_size=100, test_size=500, validation_size=50)
    sizes = {name: len(few.pairs(name, 0)) for name in few.splits()}
    assert sizes == {"train": 100, "validation": 50, "iid": 50, "length": 128}
    assert few.pairs("train", 0) != few.pairs("train", 1)  # a part belongs to the run's seed
    assert few.pairs("iid", 0) == few.pairs("iid", 1)


def test_a_cut_off_is_its_name():
    with pytest.raises(ValueError, match="cut_off"):
        TASKS["scan_22"](cut_off=24)


def test_samples_of_a_range_have_the_lengths_that_commands_have():
    batch = task(40).sample(stream(0, "data"), 300, (22, 25))
    assert set(batch.target_lengths.tolist()) == {22 + 1, 24 + 1, 25 + 1}
    with pytest.raises(RelengthError, match="no command of 23 actions"):
        task(40).sample(stream(0, "data"), 1, 23)


def test_the_loss_is_the_cross_entropy_of_all_tokens():
    """Two targets of 1 and 3 tokens with ends: six tokens, each worth as much."""
    pairs = [p for p in commands() if " ".join(p.source) in ("jump", "turn left thrice")]
    batch = task(22).encode(pairs)
    scores = torch.randn(2, 4, 23, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    each = [
        -scores[i, t].log_softmax(0)[batch.targets[i, t]]
        for i in range(2)
        for t in range(int(batch.target_lengths[i]))
    ]
    assert len(each) == 6
    torch.testing.assert_close(task(22).loss(scores, batch), torch.stack(each).mean())
