"""SCAN follows from a grammar: every command, every action, and the split by length."""

import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from relength.errors import RelengthError
from relength.streams import stream
from relength.tasks.base import EOS
from relength.tasks.scan import LONGEST_TRAINED, Scan, commands

PUBLISHED_LINES = "b3e98e121df6eabee1c885fb0b3d890e755af1e3d0807be31e28087b37051d84"
PUBLISHED = Path(os.environ.get("RELENGTH_DATA") or "/nowhere") / "scan"
needs_the_published_files = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="RELENGTH_DATA names no folder with the published SCAN files"
)


def published(name: str) -> set[tuple[str, str]]:
    lines = gzip.decompress((PUBLISHED / name).read_bytes()).decode().splitlines()
    assert len(set(lines)) == len(lines)
    return {tuple(line.removeprefix("IN: ").split(" OUT: ")) for line in lines}


def lines(pairs) -> set[tuple[str, str]]:
    return {(" ".join(pair.source), " ".join(pair.target)) for pair in pairs}


@needs_the_published_files
def test_the_grammar_gives_the_published_file_line_by_line():
    assert lines(commands()) == published("tasks.txt.gz")


def test_the_grammar_gives_the_published_commands_where_the_files_are_not_at_hand():
    """SHA-256 of the published lines, command and actions with a tab between, sorted."""
    written = "\n".join(sorted("\t".join(line) for line in lines(commands())))
    assert hashlib.sha256(written.encode()).hexdigest() == PUBLISHED_LINES


@needs_the_published_files
def test_the_split_is_the_published_one():
    task = Scan()
    short = [*task.pairs("train", 0), *task.pairs("validation", 0)]
    assert lines(short) == published("length_split/tasks_train_length.txt.gz")
    assert lines(task.pairs("length", 0)) == published("length_split/tasks_test_length.txt.gz")


def test_sizes_and_lengths_are_those_of_the_paper():
    task = Scan()
    sizes = {name: len(task.pairs(name, 0)) for name in task.splits()}
    assert sizes == {"train": 13_070, "validation": 3_920, "iid": 3_920, "length": 3_920}
    actions = {n: [len(p.target) for p in task.pairs(n, 0)] for n in ("train", "length")}
    assert max(actions["train"]) == LONGEST_TRAINED
    assert (min(actions["length"]), max(actions["length"])) == (24, 48)


def test_no_validation_command_is_trained_on_and_all_seeds_share_the_split():
    task = Scan()
    train, validation = (lines(task.pairs(name, 3)) for name in ("train", "validation"))
    assert not train & validation
    assert lines(task.pairs("train", 4)) == train


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("jump", "I_JUMP"),
        ("turn left", "I_TURN_LEFT"),
        ("look opposite right", "I_TURN_RIGHT I_TURN_RIGHT I_LOOK"),
        ("turn around left", "I_TURN_LEFT " * 4),
        ("walk twice after run left", "I_TURN_LEFT I_RUN I_WALK I_WALK"),
        ("walk twice and run left", "I_WALK I_WALK I_TURN_LEFT I_RUN"),
    ],
)
def test_worked_examples(command, actions):
    found = [pair for pair in commands() if pair.source == tuple(command.split())]
    assert [pair.target for pair in found] == [tuple(actions.split())]


def test_sources_end_with_the_end_token():
    batch = Scan().sample(stream(0, "data"), 3, 4)
    ends = batch.inputs[np.arange(3), batch.input_lengths.numpy() - 1]
    assert ends.tolist() == [EOS] * 3


def test_a_length_without_commands_is_refused_with_those_there_are():
    with pytest.raises(RelengthError, match=r"no command of 23 actions: choose one of 1, 2, .* 48"):
        Scan().sample(stream(0, "data"), 1, 23)
