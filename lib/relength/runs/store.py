"""The folder of recorded runs: one JSON line per execution, appended and never changed.

``results/<paper>/<experiment>.runs.jsonl`` is the only thing tables, figures and verdicts are made
from.
"""

import errno
import json
import os
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from filelock import FileLock, Timeout
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from relength.errors import RelengthError
from relength.kept import digest, recall, remember
from relength.paths import RESULTS
from relength.runs.schema import Line, Measurement
from relength.specs import registry
from relength.specs.spec import explain, measure_of, row_name

if TYPE_CHECKING:
    import pandas as pd

Record = dict[str, Any]
CODE = (  # that it follows from whether a line is a record, and what a record says
    *("runs.schema", "runs.store", "specs", "tasks", "streams"),
    *("models.__init__", "models.config", "models.*.__init__", "models.*.*configs"),
    *("models.seq2seq.attentions", "training.__init__", "training.protocols"),
    *("papers.*.__init__", "papers.*.*experiments", "papers.*.published"),
    *("papers.*.tasks", "papers.*.models", "papers.*.protocols"),
)
SUFFIX = ".runs.jsonl"
LOCK_SECONDS = 30.0
SETTLED = 2 * 10**9  # nanoseconds: written again within a clock's tick, a file would look the same

_known: dict[bytes, Record] = {}  # by digest of their lines: pages read the same over and over
_names: dict[int, bytes] = {}  # these digests, by the identity of the records
_read_before: dict[Path, tuple[tuple[int, ...], list[bytes]]] = {}  # a file's state, its digests


class Unwritable(RelengthError):
    """A record that is malformed, or that JSON has no words for."""


class Note(BaseModel):
    """A remark on the records of one commit, or on some runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    commit: str = Field("", pattern="^([0-9a-f]{40})?$")
    run_ids: tuple[str, ...] = ()
    said: str = Field(min_length=1)

    @model_validator(mode="after")
    def _about_something(self) -> "Note":
        if bool(self.commit) == bool(self.run_ids):
            raise ValueError("a note is about a commit or about run_ids")
        return self

    def about(self, record: Record) -> bool:
        """Tell whether the note is about a record."""
        named = self.commit and record["provenance"].get("commit") == self.commit
        return bool(named) or record["run_id"] in self.run_ids


class Store:
    """Reads and appends records below one folder, which need not exist yet."""

    def __init__(self, path: Path | str):
        self.path = Path(path).expanduser().resolve()

    def file(self, paper: str, experiment: str) -> Path:
        """Return the file of an experiment's records."""
        return self.path / paper / f"{experiment}{SUFFIX}"

    def files(self) -> list[Path]:
        """Every file of records, in a fixed order."""
        return sorted(self.path.glob(f"*/*{SUFFIX}"))

    def records(self, *experiments: str) -> list[Record]:
        """All records, or those in the files of the named experiments, in the order of writing.

        Raises RelengthError naming file and line when a line is damaged. A last line that was cut
        off while it was written is left out with a warning.
        """
        return [
            record
            for file in self.files()
            if not experiments or file.name.removesuffix(SUFFIX) in experiments
            for record in read(file)
        ]

    @property
    def checkpoints(self) -> Path:
        """States of unfinished runs, each removed once its run is recorded; never committed.

        A state that was not resumed stays beside them as ``.refused``.
        """
        return self.path / ".checkpoints"

    @property
    def announcements(self) -> Path:
        """The folder of announcements of what is trained now
        (:mod:`relength.runs.announcements`); never committed.
        """
        return self.path / ".campaigns"

    @property
    def freshness(self) -> Path:
        """The file of what `relength verify` found, written beside the records."""
        return self.path / "freshness.json"

    def digest(self, paper: str | None = None) -> bytes:
        """16 bytes over everything that is recorded here: runs, measurements, what was replayed.

        paper  only over its runs, and which of them are stale
        """
        parts: list[str | bytes] = []
        for file in (*self.files(), self.path / "bench.jsonl"):
            if file.exists() and paper in (None, file.parent.name):
                parts += [file.relative_to(self.path).as_posix(), *_read(file)[0]]
        if paper is not None:
            parts += ["stale", *sorted(self.stale)]
        elif self.freshness.exists():
            parts += [self.freshness.name, self.freshness.read_bytes()]
        return digest(*parts)

    def measured(self) -> bytes:
        """16 bytes over what `relength bench` measured."""
        file = self.path / "bench.jsonl"
        return digest(*_read(file)[0]) if file.exists() else b""

    def named(self, what: str) -> str:
        """A name to keep something of this store under: the project's own has names of its own."""
        return what if self.path == RESULTS else f"{what}-elsewhere"

    def benchmarks(self) -> list[dict[str, Any]]:
        """Read what `relength bench` measured, in the order of measuring; of several kinds.

        Raises RelengthError naming file and line when a line is damaged. A last line that was cut
        off while it was written is left out with a warning.
        """
        file = self.path / "bench.jsonl"
        found = []
        for number, line in enumerate(_lines(file) if file.exists() else [], start=1):
            where = f"{file}, line {number},"
            found.append(_json(line, where))
            _check(found[-1], where, Measurement)
        return found

    def latest_benchmark(self, kind: str) -> dict[str, Any] | None:
        """The last measurement of a kind; None if there is none."""
        return next((one for one in self.benchmarks()[::-1] if one.get("kind") == kind), None)

    def append_benchmark(self, outcome: dict[str, Any]) -> None:
        """Add a measurement, as safely as a record."""
        file = self.path / "bench.jsonl"
        with self.locked(file):
            _append_line(file, (json.dumps(outcome) + "\n").encode())

    @property
    def stale(self) -> frozenset[str]:
        """The run_ids of records that today's code was seen not to reproduce."""
        try:
            return frozenset(self.replayed()["stale"])
        except (KeyError, TypeError):
            raise self._damaged() from None

    def replayed(self) -> dict[str, Any]:
        """The last findings of `relength verify`; parsed once per process and content."""
        if not self.freshness.exists():
            return {"code": None, "stale": [], "probes": []}
        try:
            return _replayed(self.freshness.read_bytes())
        except ValueError:
            raise self._damaged() from None

    def _damaged(self) -> RelengthError:
        return RelengthError(
            f"{self.freshness} is damaged: remove it and run `relength verify` again."
        )

    def usable(self, *experiments: str) -> list[Record]:
        """Read the records that tables, figures and verdicts are made from: see :func:`usable`."""
        return usable(self.records(*experiments), self.stale)

    def further(self, *experiments: str) -> list[Record]:
        """Read the later executions of usable records: see :func:`further`."""
        return further(self.records(*experiments), self.stale)

    def append(self, paper: str, record: Record) -> None:
        """Add one record: one write and one fsync under a lock, or nothing.

        Raises RelengthError when the lock is taken or the disk refuses; Unwritable when the record
        is malformed, or holds something that is no finite number, text, list or dictionary.
        """
        try:
            line = (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()
        except (TypeError, ValueError) as error:
            raise Unwritable(
                f"The new record cannot be written as JSON ({error}): give it finite numbers, "
                "text, lists and dictionaries only."
            ) from None
        try:
            _check(record, "The new record")
        except RelengthError as error:
            raise Unwritable(str(error)) from None
        file = self.file(paper, record["experiment"])
        with self.locked(file):
            _append_line(file, line)

    def check_writable(self, paper: str, experiment: str) -> None:
        """Raises RelengthError when records of an experiment could not be appended now."""
        file = self.file(paper, experiment)
        with self.locked(file):
            if file.exists():
                _append(file, b"")

    @property
    def notes_file(self) -> Path:
        """The file of what is known of records beyond their lines, written beside them."""
        return self.path / "notes.yml"

    def note_of(self, record: Record) -> str:
        """Return what a note says of where a record comes from; nothing, as a rule."""
        return " ".join(note.said for note in self.notes() if note.about(record))

    def notes(self) -> "tuple[Note, ...]":
        """Read the notes on records; RelengthError where the file says something wrong."""
        file = self.notes_file
        return _noted(file, file.read_bytes()) if file.exists() else ()

    def lacking(self, other: "Store") -> list[tuple[str, Record]]:
        """List the records of another store that are not here yet, each with its paper.

        Raises RelengthError when one run_id has two contents.
        """
        known = {record["run_id"]: record for record in self.records()}
        new: list[tuple[str, Record]] = []
        for file in other.files():
            for record in read(file):
                mine = known.get(record["run_id"])
                if mine is None:
                    known[record["run_id"]] = record
                    new.append((file.parent.name, record))
                elif mine != record:
                    raise RelengthError(
                        f"Run {record['run_id']} differs between {self.path} and {file}: one of "
                        "them was edited; restore the original line and merge again."
                    )
        return new

    def merge(self, other: "Store") -> int:
        """Take over every record of another store that is not here yet; returns how many were new.

        Raises RelengthError, before anything is written, when one run_id has two contents.
        """
        new = self.lacking(other)
        for paper, record in new:
            self.append(paper, record)
        return len(new)

    @contextmanager
    def locked(self, file: Path) -> Iterator[None]:
        """Keep other processes from a file of the store; its folder is made if need be.

        Raises RelengthError when the lock is taken, or the folder cannot be written to.
        """
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(file.with_name(f".{file.name}.lock"), timeout=LOCK_SECONDS)
            lock.acquire()
        except Timeout:
            raise RelengthError(
                f"Another process has been writing to {file} for {LOCK_SECONDS:.0f} s: wait for "
                f"it, or end it and remove {file.with_name(f'.{file.name}.lock')}."
            ) from None
        except OSError as error:
            raise RelengthError(
                f"Cannot write to {file.parent} ({error.strerror}): free space or rights there, "
                "or name another folder with --results."
            ) from None
        try:
            yield
        finally:
            lock.release()


@lru_cache(maxsize=4)
def _noted(file: Path, content: bytes) -> tuple[Note, ...]:
    try:
        return tuple(TypeAdapter(list[Note]).validate_python(yaml.safe_load(content)))
    except (yaml.YAMLError, ValidationError) as error:
        raise RelengthError(f"{file} is no list of notes: {error}.") from None


@lru_cache(maxsize=4)
def _replayed(content: bytes) -> dict[str, Any]:
    return json.loads(content)


def read(file: Path) -> Iterator[Record]:
    """The records of one file in order; damage is reported as by :meth:`Store.records`.

    Equal lines give the same object: whoever changes a record copies it first.
    """
    names, lines = _read(file)
    if _known.keys() >= {*names}:
        yield from (_known[name] for name in names)
        return
    if not lines:
        lines = _lines(file)
        names = [digest(line) for line in lines]
    valid = _valid_before(file)
    for number, (name, line) in enumerate(zip(names, lines, strict=True), start=1):
        where = f"{file}, line {number},"
        if name not in _known:
            record = _json(line, where)
            if name not in valid:
                _check(record, where)
            _known[name] = record
            _names[id(record)] = name
        yield _known[name]
    if file.is_relative_to(RESULTS) and not valid >= {*names}:
        remember(f"valid-{file.stem}", frozenset(names), code=CODE)


def _valid_before(file: Path) -> frozenset[bytes]:
    """Digests of the lines that the file had when it was last read, by this code."""
    return recall(f"valid-{file.stem}", code=CODE) or frozenset()


def digest_of(records: Iterable[Record]) -> bytes:
    """16 bytes over some records in their order."""
    return digest(*(_names.get(id(r)) or json.dumps(r, sort_keys=True) for r in records))


def _read(file: Path) -> tuple[list[bytes], list[bytes]]:
    """Return the digests of a file's lines, and the lines.

    There are no lines where the file is as it was when it was last read here.
    """
    state = file.stat()
    mark = (state.st_mtime_ns, state.st_size, state.st_ino)
    if _read_before.get(file, ((), ()))[0] == mark:
        return _read_before[file][1], []
    lines = _lines(file)
    names = [digest(line) for line in lines]
    whole = state.st_size == sum(map(len, lines)) + len(lines)  # of a torn one is warned each time
    if whole and time.time_ns() - state.st_mtime_ns > SETTLED:
        _read_before[file] = mark, names
    return names, lines


def _lines(file: Path) -> list[bytes]:
    """The lines of a file. A last one that was cut off is left out with a warning."""
    data = file.read_bytes()
    end = data.rfind(b"\n") + 1
    if end == len(data) or _is_complete(data[end:]):
        return data.splitlines()
    warnings.warn(
        f"The last line of {file} was cut off while it was written and is left out; the run it "
        "belonged to counts as not run.",
        stacklevel=5,
    )
    return data[:end].splitlines()


def _is_complete(line: bytes) -> bool:
    """Tell whether a line without newline lacks nothing else: no beginning of an object is JSON."""
    try:
        return isinstance(JSON.decode(line.decode("utf-8")), dict)
    except ValueError:
        return False


def _json(line: bytes, where: str) -> Any:
    try:
        return JSON.decode(line.decode("utf-8"))
    except ValueError:
        raise RelengthError(
            f"{where} is not JSON: restore it from version control, or move the line "
            "to another file."
        ) from None


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


JSON = json.JSONDecoder(parse_constant=_no_number)  # Python's own takes NaN and Infinity


def _check(record: Any, where: str, kind: type[BaseModel] = Line) -> None:
    try:
        kind.model_validate(record)
    except ValidationError as error:
        raise RelengthError(
            f"{where} is not a valid record ({explain(error)}): restore it from version control, "
            "or move it to another file."
        ) from None


def _append_line(file: Path, line: bytes) -> None:
    """Add a line after the last one, whether or not that ends with a newline.

    A last line that was cut off is moved into a file beside.
    """
    data = file.read_bytes() if file.exists() else b""
    end = data.rfind(b"\n") + 1
    if end == len(data):
        _append(file, line)
    elif _is_complete(data[end:]):
        _append(file, b"\n" + line)
    else:
        _set_aside(file, data[end:], end)
        _append(file, line)


def _set_aside(file: Path, torn: bytes, end: int) -> None:
    """Move what a file holds from ``end`` on into a file beside."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = file.with_name(f"{file.name}.torn-{stamp}")
    try:
        aside.write_bytes(torn)
        os.truncate(file, end)
    except OSError as error:
        raise RelengthError(
            f"The cut-off last line of {file} cannot be moved aside ({error.strerror}): free "
            "space on that disk and run the same command again, what is recorded is kept."
        ) from None
    warnings.warn(f"A line cut off at the end of {file} was moved to {aside.name}.", stacklevel=5)


def _append(file: Path, line: bytes) -> None:
    size = file.stat().st_size if file.exists() else 0
    try:
        with open(file, "ab", buffering=0) as stream:
            if stream.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(stream.fileno())
    except OSError as error:
        if file.exists():
            os.truncate(file, size)  # whatever part was written is taken back
        raise RelengthError(
            f"Cannot write a record to {file} ({error.strerror}): free space on that disk and run "
            "the same command again, what is recorded is kept."
        ) from None


def columns() -> list[str]:
    """The columns of :func:`frame`."""
    found = registry.test_metrics()
    shares = [name for name, metric in found.items() if metric.share]
    amounts = [name for name, metric in found.items() if not metric.share]
    return [
        *("key", "run_id", "experiment", "scale", "task", "model", "arm", "seed"),
        *("checkpoint", "test", "items", *shares, "accuracy", *amounts),
        *("epochs", "steps", "seconds", "parameters"),
        *("device", "device_name", "torch", "created", "commit", "code", "margins", "claims"),
        *registry.metrics(),
    ]


def cause(record: Record) -> str:
    """The line of a failed run's error that names the exception: the first after its traceback."""
    lines = record["error"].strip().splitlines()
    stack = [i for i, line in enumerate(lines) if line.startswith(("  ", "Traceback"))]
    return lines[min(max(stack, default=-1) + 1, len(lines) - 1)]


def usable(records: Iterable[Record], stale: frozenset[str] = frozenset()) -> list[Record]:
    """The earliest successful execution of each key whose run_id is not among the stale ones.

    One on generated data (:func:`on_generated_data`) counts only where there is no other.
    """
    return _in_time(of_key[0] for of_key in _executions(records, stale))


def further(records: Iterable[Record], stale: frozenset[str] = frozenset()) -> list[Record]:
    """The executions that could stand in the place of :func:`usable` ones: later ones of a key.

    Those on generated data take the place of such ones only.
    """
    return _in_time(
        record
        for first, *others in _executions(records, stale)
        for record in others
        if on_generated_data(record) == on_generated_data(first)
    )


def _executions(records: Iterable[Record], stale: frozenset[str]) -> Iterable[list[Record]]:
    """The executions of each key that ended well and are not stale, the one to use first."""
    by_key: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda r: (on_generated_data(r), r["provenance"]["created"])):
        if record["status"] == "ok" and record["run_id"] not in stale:
            by_key.setdefault(record["key"], []).append(record)
    return by_key.values()


def _in_time(records: Iterable[Record]) -> list[Record]:
    return sorted(records, key=lambda r: r["provenance"]["created"])


def on_generated_data(record: Record) -> bool:
    """Tell whether a run was trained on data made in place of published files that were not at
    hand.

    Such a run has the key of those on the published files, unless its task names the source of its
    samples. Tasks without published files draw all their samples and give no reason for it.
    """
    data = record["provenance"]["data"]
    return data.get("source") == "generated" and "reason" in data


def accuracies(record: Record) -> dict[str, float]:
    """{test: what its task is measured by} of the selected checkpoint of a run that ended well.

    Fractions, in the order of the tests.
    """
    measure, tests = measure_of(record["spec"]), record["checkpoints"]["selected"]["tests"]
    return {test: metrics[measure] for test, metrics in tests.items()}


def epochs_of(record: Record) -> int:
    """The intervals that a run was trained for; its curve need not have a point for each."""
    return record["curve"][-1]["epoch"] + 1


def device_seconds(record: Record) -> float:
    """Return the seconds that a run took of a core, or its share of a GPU's; 0 if it failed.

    Evaluation is included.
    """
    cost = record.get("cost", {})
    seconds = cost.get("training_seconds", 0.0) + cost.get("evaluation_seconds", 0.0)
    return seconds / cost.get("sharing", 1)


def frame(records: Iterable[Record]) -> "pd.DataFrame":
    """One row per run, checkpoint and test; accuracies in percent. Failed runs have no rows.

    accuracy  the metric that the run's task is measured by
    (:func:`relength.specs.spec.measure_of`). The last columns are the papers' own metrics, NaN
    where nothing was recorded that they could be read from.
    """
    import pandas as pd  # a quarter of a second, for which training does not wait

    rows = []
    for record in records:
        if record["status"] != "ok":
            continue
        spec, provenance = record["spec"], record["provenance"]
        run = {
            **{name: record[name] for name in ("key", "run_id", "experiment", "parameters")},
            **{name: spec[name] for name in ("scale", "seed")},
            "task": spec["task"]["name"],
            "model": row_name(spec["model"]),
            "arm": spec["model"]["arm"],
            "epochs": epochs_of(record),
            "steps": record["cost"]["steps"],
            "seconds": device_seconds(record),
            **{
                name: provenance[name]
                for name in (
                    "device",
                    "device_name",
                    "torch",
                    "created",
                    "commit",
                    "code",
                    "margins",
                )
            },
            "claims": provenance.get("claims"),
        }
        kind, measure = registry.tasks()[spec["task"]["name"]].metrics, measure_of(spec)
        shares, amounts = kind.shares(), kind.amounts()
        looks = _shares(record)
        for checkpoint, kept in record["checkpoints"].items():
            for test, metrics in kept["tests"].items():
                percent = {
                    name: nan if metrics[name] is None else 100 * metrics[name] for name in shares
                }
                rows.append(
                    {
                        **run,
                        "checkpoint": checkpoint,
                        "test": test,
                        "items": metrics["items"],
                        **percent,
                        "accuracy": percent[measure],
                        **{name: metrics[name] for name in amounts},
                        **(looks.get(test, {}) if checkpoint == "selected" else {}),
                    }
                )
    return pd.DataFrame(rows, columns=columns())


def _shares(record: Record) -> dict[str, dict[str, float]]:
    """{test: {metric: percent}} that the papers read from what a record keeps beside metrics."""
    found: dict[str, dict[str, float]] = {}
    for paper in registry.papers().values():
        shares = paper.load(paper.shares)(record) if paper.shares else {}
        for test, percents in shares.items():
            found[test] = found.get(test, {}) | percents
    return found
