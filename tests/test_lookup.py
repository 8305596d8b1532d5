"""Facts about every lookup sample, published or generated."""

import doctest
import os
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from relength.errors import RelengthError
from relength.streams import stream
from relength.tasks import data, lookup
from relength.tasks.base import EOS, PAD, Pair
from relength.tasks.batch import Batch
from relength.tasks.lookup import BITS, COMPOSED, TABLES, Lookup, LookupTask, ReverseLookup

PUBLISHED = os.environ.get("RELENGTH_DATA", "")
needs_data = pytest.mark.skipif(not PUBLISHED, reason="RELENGTH_DATA is not set")
TASKS = [Lookup(), ReverseLookup()]
SEEDS = st.integers(0, 2**32)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    monkeypatch.delenv("RELENGTH_DATA", raising=False)
    monkeypatch.setenv("RELENGTH_OFFLINE", "1")


@pytest.fixture(
    params=[
        "generated",
        pytest.param("published", marks=needs_data),
    ]
)
def source(request, monkeypatch) -> str:
    if request.param == "published":
        monkeypatch.setenv("RELENGTH_DATA", PUBLISHED)
    return request.param


@pytest.fixture
def rows(source) -> lookup.Rows:
    return lookup._rows(data.find("lookup_tables"))


def tables_of(pair: Pair) -> tuple[str, ...]:
    return pair.source[1:-1]


def by_length(pairs: list[Pair]) -> Counter[int]:
    return Counter(len(pair.source) for pair in pairs)


def inputs_by_composition(pairs: list[Pair]) -> Counter[tuple[str, ...]]:
    return Counter(map(tables_of, pairs))


def test_worked_examples_of_the_paper():
    results = doctest.testmod(lookup)
    assert results.attempted >= 6 and results.failed == 0


def test_failure_cases_printed_in_table_10():
    pair = ReverseLookup().pair("100", ("t4", "t3", "t6", "t2", "t5", "t6", "t1", "t4", "t4"))
    assert " ".join(pair.source) == "t4 t4 t1 t6 t5 t2 t6 t3 t4 100 ."
    assert " ".join(pair.target) == "100 001 100 010 011 010 111 111 101 110"
    pair = ReverseLookup().pair("110", ("t3", "t2", "t2", "t4", "t5", "t6", "t2", "t4", "t4"))
    assert " ".join(pair.target) == "110 010 011 101 110 011 001 100 001 100"


def test_tables_are_those_of_the_single_table_samples(rows):
    seen: dict[str, dict[str, str]] = {}
    for pair in rows["train"]:
        if len(pair.source) == 3:
            seen.setdefault(pair.source[1], {})[pair.source[0]] = pair.target[1]
    assert seen == TABLES
    assert all(sorted(table.values()) == list(BITS) for table in TABLES.values())


def test_every_target_is_the_composition_of_its_tables(rows):
    for pairs in rows.values():
        for pair in pairs:
            value = pair.source[0]
            values = [value]
            for name in tables_of(pair):
                value = TABLES[name][value]
                values.append(value)
            assert pair.target == tuple(values) and pair.source[-1] == "."


def test_set_sizes(rows, source):
    train, validation = by_length(rows["train"]), by_length(rows["validation"])
    assert (train.total(), validation.total(), train[3]) == (9_081, 475, 64)
    # 36 x 8, 216 x 8, and 6 of 8 inputs of 1,296 - 50 compositions
    assert train + validation == {3: 64, 4: 288, 5: 1_728, 6: 7_476}
    for extra in (1, 3, 5):
        assert by_length(rows[f"longer_seen_{extra}"]) == {6 + extra: 5_000}
    if source == "published":
        assert train == {3: 64, 4: 273, 5: 1_644, 6: 7_100}


def test_no_sample_is_in_two_sets_or_twice_in_one(rows):
    sources = [pair.source for pairs in rows.values() for pair in pairs]
    assert len(set(sources)) == len(sources)


def test_fifty_compositions_and_two_inputs_of_the_others_are_held_out(rows):
    counts = inputs_by_composition(rows["train"] + rows["validation"])
    longest = {names: counts[names] for names in product(COMPOSED, repeat=4)}
    assert Counter(longest.values()) == {0: 50, 6: 1_246}
    for n in (2, 3):
        assert {counts[names] for names in product(COMPOSED, repeat=n)} == {8}


def test_tables_seven_and_eight_are_never_composed(rows):
    for pairs in rows.values():
        for pair in pairs:
            assert set(tables_of(pair)) <= set(COMPOSED) or len(tables_of(pair)) == 1


def test_validation_has_its_share_of_every_set_of_tables(rows):
    pool = [pair for pair in rows["train"] + rows["validation"] if len(pair.source) > 3]
    everywhere = Counter(frozenset(tables_of(pair)) for pair in pool)
    validation = Counter(frozenset(tables_of(pair)) for pair in rows["validation"])
    assert len(everywhere) == 56  # of one to four of six tables
    # The published split rounds twice, for training and for validation.
    assert all(abs(validation[s] - everywhere[s] * 475 / len(pool)) < 2 for s in everywhere)


def test_longer_compositions_come_with_every_input(rows):
    for extra in (1, 3, 5):
        counts = inputs_by_composition(rows[f"longer_seen_{extra}"])
        assert len(counts) == 625 and set(counts.values()) == {8}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_splits_are_those_of_the_paper(task, source):
    sizes = {name: len(task.pairs(name, seed=0)) for name in task.splits()}
    longer = {"dev": 500, "7": 4_500, "9": 5_000, "11": 5_000}
    assert sizes == {"train": 9_081, "validation": 475, "iid": 475, **longer}
    assert task.tests == ("iid", "7", "9", "11")
    assert task.dev_splits == ("validation", "dev")
    for name, split in task.splits().items():
        lengths = by_length(task.pairs(name, seed=0))
        assert (min(lengths), max(lengths)) == (split.shortest, split.longest)


def test_dev_and_test_7_part_the_first_longer_set(rows):
    task = Lookup()
    dev, test = task.pairs("dev", seed=0), task.pairs("7", seed=0)
    assert Counter(dev + test) == Counter(rows["longer_seen_1"])
    assert not set(dev) & set(test)


def test_small_dev_and_test_sets_do_not_meet():
    small = Lookup(dev_size=32, test_size=4_500)
    assert not set(small.pairs("dev", seed=0)) & set(small.pairs("7", seed=0))


def test_small_sets_are_parts_of_the_full_ones(source):
    small, full = Lookup(train_size=64, dev_size=32, test_size=16, validation_size=8), Lookup()
    for name, split in small.splits().items():
        part = small.pairs(name, seed=3)
        assert len(part) == split.size
        assert set(part) <= set(full.pairs(name, seed=3))


def test_only_the_training_part_depends_on_the_seed(source):
    small = Lookup(train_size=64, dev_size=32, test_size=16, validation_size=8)
    for name in small.splits():
        same = small.pairs(name, seed=0) == small.pairs(name, seed=1)
        assert same == (name != "train")
        assert small.pairs(name, seed=0) == small.pairs(name, seed=0)
    assert Lookup().pairs("train", seed=0) == Lookup().pairs("train", seed=1)


def test_reverse_lookup_is_lookup_with_reversed_words(source):
    for name in Lookup().splits():
        forward, backward = Lookup().pairs(name, seed=0), ReverseLookup().pairs(name, seed=0)
        for there, back in zip(forward, backward, strict=True):
            assert back.source == (*reversed(there.source[:-1]), ".")
            assert back.target == there.target


def test_generated_data_do_not_change():
    # Whoever has no published files must get the same samples on every machine.
    digests = Lookup().provenance()["sha256"]
    assert digests["train.tsv"][:16] == "7bd2adcf8163767c"
    assert digests["longer_seen_5.tsv"][:16] == "8681db343f46ec77"


@settings(max_examples=5, deadline=None)
@given(SEEDS)
def test_generated_training_data_never_show_what_is_held_out(seed):
    rows = lookup.generate(stream(seed, "data"))
    assert rows == lookup.generate(stream(seed, "data"))
    trained = inputs_by_composition(rows["train"] + rows["validation"])
    held_out = inputs_by_composition(rows["heldout_compositions"])
    assert set(held_out.values()) == {8} and len(held_out) == 50
    assert not set(held_out) & set(trained)
    seen = {pair.source for pair in rows["train"] + rows["validation"]}
    assert not seen & {pair.source for pair in rows["heldout_inputs"]}
    assert (len(rows["train"]), len(rows["validation"])) == (9_081, 475)


def words(task: LookupTask, batch: Batch, i: int) -> Pair:
    source = batch.inputs[i, : batch.input_lengths[i]].tolist()
    return Pair(tuple(task.vocabulary[t] for t in source), task.decode(batch.targets[i].tolist()))


@given(SEEDS, st.integers(3, 40), st.integers(1, 8))
def test_every_drawn_sample_obeys_the_tables(seed, length, size):
    forward = Lookup().sample(stream(seed, "data"), size, length)
    backward = ReverseLookup().sample(stream(seed, "data"), size, length)
    assert forward.inputs.shape == (size, length) and forward.targets.shape == (size, length)
    assert forward.inputs.equal(Lookup().sample(stream(seed, "data"), size, length).inputs)
    for i in range(size):
        there, back = words(Lookup(), forward, i), words(ReverseLookup(), backward, i)
        bits, *names, stop = there.source
        assert stop == "." and set(names) <= set(COMPOSED)
        assert there.target[0] == bits
        for name, before, after in zip(names, there.target[:-1], there.target[1:], strict=True):
            assert TABLES[name][before] == after
        assert back == Pair((*reversed(there.source[:-1]), "."), there.target)


@given(SEEDS)
def test_lengths_of_a_range_are_padded_at_the_right(seed):
    batch = Lookup().sample(stream(seed, "data"), 16, (3, 9))
    assert set(batch.input_lengths.tolist()) <= set(range(3, 10))
    # The "." of a source and the end token of a target take one place each.
    assert batch.target_lengths.equal(batch.input_lengths)
    for i, n in enumerate(batch.input_lengths.tolist()):
        assert (batch.inputs[i, n:] == PAD).all() and (batch.inputs[i, :n] != PAD).all()
        assert batch.targets[i, n - 1] == EOS and (batch.targets[i, n:] == PAD).all()


def test_source_and_target_share_a_vocabulary_without_repeats():
    vocabulary = Lookup().vocabulary
    assert vocabulary == ReverseLookup().vocabulary
    assert len(set(vocabulary)) == len(vocabulary) == 4 + 8 + 8 + 1


def test_drawn_tables_and_inputs_are_uniform():
    pairs = [Lookup().draw(stream(0, "data", i), 7) for i in range(3_000)]
    tables = Counter(name for pair in pairs for name in tables_of(pair))
    inputs = Counter(pair.source[0] for pair in pairs)
    assert set(tables) == set(COMPOSED) and set(inputs) == set(BITS)
    assert np.allclose(list(tables.values()), 15_000 / 6, rtol=0.1)
    assert np.allclose(list(inputs.values()), 3_000 / 8, rtol=0.25)


@pytest.mark.parametrize("length", [-1, 0, 1, 2, 1_001])
def test_impossible_length_is_refused(length):
    with pytest.raises(RelengthError, match=f"lookup has no samples of length {length}"):
        Lookup().sample(stream(0, "data"), 2, length)


def test_unknown_split_names_the_splits_there_are():
    with pytest.raises(RelengthError, match="no split '15': choose one of train, validation"):
        Lookup().pairs("15", seed=0)


@pytest.mark.parametrize(
    "sizes", [{"train_size": 9_082}, {"dev_size": 501}, {"test_size": 0}, {"validation_size": 476}]
)
def test_more_samples_than_there_are_is_refused(sizes):
    with pytest.raises(ValidationError, match=next(iter(sizes))):
        Lookup(**sizes)
