"""Recorded stays recorded: whole lines, one writer at a time, nothing overwritten."""

import errno
import json
import os
import tempfile
import warnings
from pathlib import Path

import handmade
import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from relength.errors import RelengthError
from relength.report import run_index
from relength.runs import progress
from relength.runs import store as store_module
from relength.runs.prices import Device, pace_of
from relength.runs.store import (
    Store,
    accuracies,
    device_seconds,
    frame,
    further,
    on_generated_data,
    usable,
)
from relength.specs.spec import make_spec
from relength.tasks import TASKS

HALF = lambda spec, test: 0.5  # noqa: E731
FILE = Path("mla") / "mla_table2.runs.jsonl"
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(max_size=20)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def filled(store: Store, records: list[dict]) -> Path:
    for record in records:
        store.append("mla", record)
    return store.path / FILE


# --- reading and writing ------------------------------------------------------------------------


@settings(max_examples=30)
@given(extras=st.lists(values, min_size=1, max_size=4))
def test_what_is_appended_is_read_back_in_order(extras):
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        records = [valid(i) | {"more": extra} for i, extra in enumerate(extras)]
        for i, record in enumerate(records):
            store.append("mla", record)
            assert store.records() == records[: i + 1]
        lines = (Path(folder) / FILE).read_bytes().split(b"\n")
        assert len(lines) == len(records) + 1 and lines[-1] == b""


def valid(number: int) -> dict:
    """A record of a run that raised; a number tells it apart."""
    spec = make_spec(task="copy", model="Content", training="epochs", scale="smoke", seed=number)
    return handmade.failed(spec) | {"run_id": f"{number:016x}"}


def test_a_store_that_does_not_exist_is_empty(store):
    assert store.records() == [] and not store.path.exists()


def test_records_of_one_experiment(store, make_record):
    store.append("mla", make_record(1))
    store.append("mla", make_record(2, experiment="mla_table3"))
    assert [r["run_id"] for r in store.records("mla_table3")] == [f"{2:016x}"]
    assert len(store.records()) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"key": "short"},
        {"run_id": None},
        {"status": "done"},
        {"checkpoints": None},
        {"status": "failed", "error": None},
        {"more": {"seconds": float("nan")}},
        {"more": {1, 2}},
    ],
    ids=str,
)
def test_a_malformed_record_is_refused_and_nothing_written(store, make_record, change):
    file = filled(store, [make_record(1)])
    before = file.read_bytes()
    with pytest.raises(RelengthError, match="new record"):
        store.append("mla", make_record(2, **change))
    assert file.read_bytes() == before


@pytest.mark.parametrize("counts", [[4, *[0] * 8], [3, *[0] * 9], [5, -1, *[0] * 8]])
def test_a_record_counts_a_first_error_for_every_wrong_output(store, make_record, counts):
    """Half of the eight outputs are wrong; their first errors are in tenths."""
    record = make_record(1)
    test = record["checkpoints"]["selected"]["tests"]["15"]
    test["first_errors"] = [0, 3, *[0] * 7, 1]
    store.append("mla", record)
    test["first_errors"] = counts
    with pytest.raises(RelengthError, match=r"new record .*first_errors"):
        store.append("mla", record | {"run_id": f"{2:016x}"})


# --- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_line_cut_off_while_written_is_left_out_and_then_set_aside(store, make_record, share):
    file = filled(store, [make_record(1), make_record(2)])
    whole = file.read_bytes()
    first, last = (line + b"\n" for line in whole.splitlines())
    torn = last[: max(1, int(share * len(last)))]
    file.write_bytes(first + torn)

    with pytest.warns(UserWarning, match=f"last line of .*{FILE.name} was cut off"):
        assert store.records() == [make_record(1)]
    with pytest.warns(UserWarning, match=r"moved to mla_table2\.runs\.jsonl\.torn-"):
        store.append("mla", make_record(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.records() == [make_record(1), make_record(3)]
    [aside] = file.parent.glob("*.torn-*")
    assert aside.read_bytes() == torn


def test_a_whole_last_line_without_newline_is_kept_and_the_next_record_gets_its_own(
    store, make_record
):
    file = filled(store, [make_record(1), make_record(2)])
    whole = file.read_bytes()
    file.write_bytes(whole.removesuffix(b"\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.records() == [make_record(1), make_record(2)]
        store.append("mla", make_record(3))
        assert store.records() == [make_record(number) for number in (1, 2, 3)]
    assert file.read_bytes().startswith(whole) and list(file.parent.glob("*.torn-*")) == []


def test_a_last_measurement_without_newline_is_kept_and_one_cut_off_is_set_aside(
    store, make_record
):
    one, two, three = (
        {"kind": kind, "provenance": make_record()["provenance"]} for kind in ("a", "b", "c")
    )
    file = store.path / "bench.jsonl"
    store.append_benchmark(one)
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    store.append_benchmark(two)
    assert store.benchmarks() == [one, two]

    file.write_bytes(file.read_bytes() + b'{"kind": "c')
    with pytest.warns(UserWarning, match="was cut off"):
        assert store.benchmarks() == [one, two]
    with pytest.warns(UserWarning, match=r"moved to bench\.jsonl\.torn-"):
        store.append_benchmark(three)
    assert store.benchmarks() == [one, two, three]


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"[]", b'{"schema": 1}', b"null"])
def test_damage_elsewhere_is_an_error_with_file_and_line(store, make_record, damage):
    file = filled(store, [make_record(i) for i in range(3)])
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([lines[0], damage, lines[2], b""]))
    with pytest.raises(RelengthError) as refusal:
        store.records()
    message = str(refusal.value)
    assert f"{file}, line 2," in message and "version control" in message and "\n" not in message


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b"[]", b"{}", b'{"provenance": {}}'])
def test_a_damaged_measurement_is_an_error_with_file_and_line(store, make_record, damage):
    good = {"kind": "a measurement", "provenance": make_record()["provenance"]}
    store.append_benchmark(good)
    assert store.benchmarks() == [good]
    file = store.path / "bench.jsonl"
    file.write_bytes(file.read_bytes() + damage + b"\n")
    with pytest.raises(RelengthError) as refusal:
        store.benchmarks()
    message = str(refusal.value)
    assert f"{file}, line 2," in message and "version control" in message and "\n" not in message


def edited(record: dict, path: str, value: object = ...) -> dict:
    """A copy of a record with one value replaced, or removed."""
    copy = json.loads(json.dumps(record))
    *parents, last = path.split("/")
    part = copy
    for name in parents:
        part = part[int(name) if isinstance(part, list) else name]
    part[last] = value
    if value is ...:
        del part[last]
    return copy


def refusal_of(store: Store, record: dict) -> str:
    """Return the refusal of a store whose second line is this record."""
    file = store.path / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    good = handmade.record(
        make_spec(task="copy", model="Content", training="epochs", scale="smoke", seed=9), HALF
    )
    file.write_text(f"{json.dumps(good)}\n{json.dumps(record)}\n")
    with pytest.raises(RelengthError) as refusal:
        store.records()
    message = str(refusal.value)
    assert message.startswith(f"{file}, line 2, is not ") and "\n" not in message
    assert "restore it from version control, or move " in message
    return message


@pytest.mark.parametrize(
    ("path", "value", "cause"),
    [
        ("spec/task/name", "cpoy", "unknown task 'cpoy'"),
        ("spec/model/name", "Foo", "unknown model 'Foo'"),
        ("spec/model/arm", "mine", "arm"),
        ("spec/scale", "tiny", "'smoke', 'reduced' or 'paper'"),
        ("spec/seed", "0", "seed: Input should be a valid integer"),
        ("spec/training/tie", ..., "does not spell out every value"),
        ("spec/training", [], "training is not laid out as in a record"),
        ("spec/training/name", "epoch", "unknown protocol 'epoch'"),
        ("spec/training/epochs", 7, "it is the spec of key"),
        ("spec/seed", 3, "it is the spec of key"),
        ("key", "0" * 12, "not of 000000000000"),
        ("provenance/created", "yesterday", "provenance.created"),
        ("curve", [], "curve"),
        ("checkpoints/selected/tests", {}, "needs its test iid"),
        ("checkpoints/selected/tests/iid", {}, "checkpoints.selected.tests.iid.items"),
        ("checkpoints/last/tests/iid/exact_match", 1.01, "less than or equal to 1"),
        ("checkpoints/selected/tests/100/token_accuracy", -0.1, "greater than or equal to 0"),
        ("checkpoints/selected/tests/100/token_accuracy", float("nan"), "is not JSON"),
        ("checkpoints/selected/tests/100/token_accuracy", "0.5", "valid number"),
        ("cost/steps", 0, "cost.steps"),
        ("parameters", "x" * 1000, "parameters"),
        ("experiment", "../elsewhere", "experiment"),
    ],
)
def test_a_line_that_is_json_but_no_record_is_an_error_with_file_and_line(
    store, path, value, cause
):
    spec = make_spec(task="copy", model="Content", training="epochs", scale="smoke", seed=0)
    message = refusal_of(store, edited(handmade.record(spec, HALF), path, value))
    assert cause in message and len(message) < 600
    mine = Store(store.path.parent / "mine")
    with pytest.raises(RelengthError, match="line 2"):
        mine.merge(store)
    assert not mine.path.exists(), "such a line is not taken over either"


def paths(value: object, before: str = "") -> list[str]:
    """List where a dictionary has values, those of dictionaries in it included."""
    found = []
    for name, part in value.items() if isinstance(value, dict) else enumerate(value[:1]):
        found += [f"{before}{name}"] if isinstance(value, dict) else []
        found += paths(part, f"{before}{name}/") if isinstance(part, dict | list) else []
    return found


WHOLE = {
    "ok": handmade.record(
        make_spec(task="copy", model="Content", training="epochs", scale="smoke", seed=0), HALF
    ),
    "failed": handmade.failed(
        make_spec(task="copy", model="Content", training="epochs", scale="smoke", seed=0)
    ),
}


@pytest.mark.parametrize(
    ("status", "path"), [(status, path) for status in WHOLE for path in paths(WHOLE[status])]
)
def test_whatever_a_line_lacks_it_is_refused_or_can_be_read(store, status, path):
    """Pages read what they read of a record without asking whether it is there."""
    record = edited(WHOLE[status], path)
    file = store.path / FILE
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(record) + "\n")
    try:
        (kept,) = store.records()
    except RelengthError as refusal:
        assert f"{file}, line 1, is not a valid record" in str(refusal)
        return
    assert kept == record
    frame(store.usable())
    assert progress.line(kept) and Device.of(kept) and device_seconds(kept) >= 0
    assert run_index.write(store, store.path / "static")
    if status == "ok":
        assert pace_of(kept) and accuracies(kept)


# --- a full disk --------------------------------------------------------------------------------

FULL_DISK = """
import json, resource, sys
from relength.errors import RelengthError
from relength.runs.store import Store
store, records = Store(sys.argv[1]), json.loads(sys.stdin.read())
store.append("mla", records[0])
[file] = store.files()
before = file.read_bytes()
for spare in (0, 100):  # no room for the line, or for a part of it
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + spare, resource.RLIM_INFINITY))
    try:
        store.append("mla", records[1])
    except RelengthError as error:
        print(error)
    assert file.read_bytes() == before
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.append("mla", records[1])
assert store.records() == records
"""


def test_a_file_that_may_not_grow_keeps_its_whole_lines(store, make_record, python):
    process = python("-W", "error", "-c", FULL_DISK, str(store.path))
    out, problems = process.communicate(json.dumps([make_record(1), make_record(2)]), timeout=60)
    assert process.returncode == 0, problems
    refused = out.splitlines()
    assert len(refused) == 2
    for sentence in refused:
        assert str(store.path / FILE) in sentence and "free space" in sentence


def test_a_disk_that_fills_in_the_middle_of_a_line_takes_it_back(store, make_record, monkeypatch):
    file = filled(store, [make_record(1)])
    before = file.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)  # everything was written, but does not reach the disk
    with pytest.raises(RelengthError, match=r"No space left on device.*free space"):
        store.append("mla", make_record(2))
    monkeypatch.undo()
    assert file.read_bytes() == before
    store.append("mla", make_record(2))
    assert store.records() == [make_record(1), make_record(2)]


def test_a_disk_too_full_to_set_a_torn_line_aside_loses_nothing(store, make_record, monkeypatch):
    file = filled(store, [make_record(1)])
    with file.open("ab") as stream:
        stream.write(b'{"schema": 1, "key"')
    before = file.read_bytes()

    def full(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RelengthError, match="No space left on device"):
        store.append("mla", make_record(2))
    assert file.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path, make_record):
    (tmp_path / "results").write_text("a file, not a folder")
    with pytest.raises(RelengthError, match=r"Cannot write to .*results.*--results"):
        Store(tmp_path / "results").append("mla", make_record(1))


# --- several writers ----------------------------------------------------------------------------

WRITER = """
import json, sys
from relength.runs.store import Store
store, first, record = Store(sys.argv[1]), int(sys.argv[2]), json.loads(sys.stdin.readline())
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + 40):
    store.append("mla", record | {"run_id": f"{number:016x}", "more": "x" * 50_000})
"""


def test_two_writers_at_once_leave_whole_lines(store, make_record, python):
    writers = [python("-W", "error", "-c", WRITER, str(store.path), str(n)) for n in (0, 40)]
    for writer in writers:
        writer.stdin.write(json.dumps(make_record(0)) + "\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.stdout.readline() == "ready\n", writer.stderr.read()
    for writer in writers:  # both have started: now they write at the same time
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, problems = writer.communicate(timeout=60)
        assert writer.returncode == 0, problems
    assert sorted(r["run_id"] for r in store.records()) == [f"{n:016x}" for n in range(80)]


def test_a_lock_that_is_not_given_up_is_an_error_in_one_sentence(store, make_record, monkeypatch):
    file = filled(store, [make_record(1)])
    monkeypatch.setattr(store_module, "LOCK_SECONDS", 0.1)
    lock = file.with_name(f".{file.name}.lock")
    with (
        FileLock(lock),
        pytest.raises(RelengthError, match=f"Another process .*{lock.name}"),
    ):
        store.append("mla", make_record(2))
    store.append("mla", make_record(2))
    assert len(store.records()) == 2


def test_an_append_gives_up_its_lock_even_when_it_fails(store, make_record, monkeypatch):
    monkeypatch.setattr(store_module, "LOCK_SECONDS", 0.5)
    file = filled(store, [make_record(1)])
    held = []
    original = store_module.FileLock
    monkeypatch.setattr(
        store_module, "FileLock", lambda *args, **kw: held.append(original(*args, **kw)) or held[-1]
    )
    store.append("mla", make_record(2))
    monkeypatch.setattr(store_module, "_append", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.append("mla", make_record(3))
    assert len(held) == 2 and not any(lock.is_locked for lock in held)
    with FileLock(file.with_name(f".{file.name}.lock"), timeout=0):
        pass


# --- merging ------------------------------------------------------------------------------------


def test_merging_twice_is_merging_once(tmp_path, make_record):
    mine, theirs = Store(tmp_path / "mine"), Store(tmp_path / "theirs")
    filled(mine, [make_record(1), make_record(2)])
    filled(theirs, [make_record(2), make_record(3)])
    theirs.append("dnc", make_record(4, experiment="dnc_figure1"))
    assert mine.merge(theirs) == 2
    assert sorted(r["run_id"][-1] for r in mine.records()) == ["1", "2", "3", "4"]
    assert (mine.path / "dnc" / "dnc_figure1.runs.jsonl").exists()
    contents = {file: file.read_bytes() for file in mine.files()}
    assert mine.merge(theirs) == 0 and mine.merge(mine) == 0
    assert {file: file.read_bytes() for file in mine.files()} == contents


def test_merging_both_ways_gives_both_the_same_runs(tmp_path, make_record):
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    filled(one, [make_record(1)])
    filled(other, [make_record(2)])
    assert one.merge(other) == 1 and other.merge(one) == 1
    assert {r["run_id"] for r in one.records()} == {r["run_id"] for r in other.records()}


def test_one_run_with_two_contents_is_an_error_before_anything_is_written(tmp_path, make_record):
    mine, theirs = Store(tmp_path / "mine"), Store(tmp_path / "theirs")
    file = filled(mine, [make_record(1)])
    filled(theirs, [make_record(5), make_record(1, parameters=7), make_record(6)])
    before = file.read_bytes()
    with pytest.raises(RelengthError, match=f"Run {1:016x} differs between"):
        mine.merge(theirs)
    assert file.read_bytes() == before


def test_a_store_that_contradicts_itself_is_not_merged(tmp_path, make_record):
    mine, theirs = Store(tmp_path / "mine"), Store(tmp_path / "theirs")
    filled(theirs, [make_record(1), make_record(1, parameters=7)])
    with pytest.raises(RelengthError, match="differs"):
        mine.merge(theirs)
    assert mine.records() == []


# --- what tables are made from ------------------------------------------------------------------


def at(record: dict, created: str, **changes) -> dict:
    return record | {"provenance": record["provenance"] | {"created": created}} | changes


def test_the_earliest_execution_counts_and_never_the_best(make_record):
    late = at(make_record(1), "2026-03-01T00:00:00Z", run_id="a" * 16)
    early = at(make_record(1), "2026-02-01T00:00:00Z", run_id="b" * 16)
    earliest = at(make_record(1), "2026-01-01T00:00:00Z", run_id="c" * 16)
    failed = at(
        make_record(1), "2025-01-01T00:00:00Z", run_id="d" * 16, status="failed", error="no"
    )
    records = [late, earliest, failed, early]
    assert usable(records) == [earliest]
    assert usable(records, stale=frozenset({earliest["run_id"]})) == [early]
    assert usable([failed]) == []
    assert further(records) == [early, late]
    assert further(records, stale=frozenset({earliest["run_id"]})) == [late]
    assert further(records, stale=frozenset({early["run_id"], late["run_id"]})) == []


@given(st.permutations(range(6)))
def test_what_counts_does_not_depend_on_the_order_of_lines(order):
    # Six executions of three keys, each at its own moment.
    records = [
        valid(n % 3)
        | {"status": "ok", "run_id": f"{n:016x}"}
        | {"provenance": {"created": f"2026-01-0{n + 1}T00:00:00Z", "data": DRAWN}}
        for n in range(6)
    ]
    chosen = usable(records[i] for i in order)
    assert {r["key"]: r["run_id"] for r in chosen} == {
        valid(n)["key"]: f"{n:016x}" for n in range(3)
    }


GENERATED = {"source": "generated", "reason": "there is no network", "sha256": {}}
PUBLISHED = {"source": "RELENGTH_DATA", "sha256": {}}
DRAWN = {"source": "generated"}  # of a task that has no published files


@given(
    st.lists(
        st.tuples(
            st.sampled_from([GENERATED, PUBLISHED, DRAWN]), st.sampled_from(["ok", "failed"])
        ),
        max_size=6,
    ),
    st.randoms(use_true_random=False),
)
def test_generated_data_count_only_where_nothing_else_was_trained_on(executions, random):
    records = [
        valid(0)
        | {"run_id": f"{n:016x}", "status": status}
        | {"provenance": {"created": f"2026-01-0{n + 1}T00:00:00Z", "data": data}}
        for n, (data, status) in enumerate(executions)
    ]
    good = [n for n, (_, status) in enumerate(executions) if status == "ok"]
    others = [n for n in good if executions[n][0] != GENERATED]
    random.shuffle(records)
    chosen = [int(record["run_id"], 16) for record in usable(records)]
    assert chosen == (others or good)[:1]
    stale = frozenset(f"{n:016x}" for n in others)
    rest = [n for n in good if n not in others]
    assert [int(r["run_id"], 16) for r in usable(records, stale)] == rest[:1]
    assert [int(r["run_id"], 16) for r in further(records)] == (others or good)[1:]


def test_runs_of_the_lookup_tasks_say_what_they_were_trained_on(monkeypatch):
    monkeypatch.delenv("RELENGTH_DATA", raising=False)
    monkeypatch.setenv("RELENGTH_OFFLINE", "1")
    of = {name: TASKS[name]().provenance() for name in ("copy", "lookup")}
    found = [on_generated_data({"provenance": {"data": data}}) for data in of.values()]
    assert found == [False, True]


def test_a_frame_has_a_row_for_each_checkpoint_and_test_in_percent(make_record):
    table = frame([make_record(1), make_record(2, status="failed", error="no")])
    assert list(table["test"]) == ["iid", "15", "30", "100"] and set(table["checkpoint"]) == {
        "selected"
    }
    row = table.iloc[0]
    assert (row.task, row.model, row.arm, row.seed) == ("copy", "OneStepAttn", "released", 1)
    assert (row.exact_match, row.exact_match_true_length, row.edit_distance) == (50, 62.5, 1.5)
    assert (row.epochs, row.steps, row.seconds) == (3, 9, 1.5)
    assert list(frame([]).columns) == list(table.columns)
