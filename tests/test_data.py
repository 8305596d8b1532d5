"""Published data are used undamaged or not at all, and their absence is said in one sentence."""

import functools
import hashlib
import http.server
import os
import threading
import time
import zipfile
from pathlib import Path

import pooch
import pytest

from relength.errors import RelengthError
from relength.tasks import data
from relength.tasks.lookup import Lookup

PUBLISHED = os.environ.get("RELENGTH_DATA", "")
CONTENTS = {"short.tsv": b"000 t1 .\t000 011\t0 1 2\r\n", "long.tsv": b"one\r\ntwo\r\nthree\r\n"}


@pytest.fixture(autouse=True)
def little_index(monkeypatch, request):
    """A set of two small files takes the place of the real index; nothing found is remembered."""
    monkeypatch.delenv("RELENGTH_DATA", raising=False)
    monkeypatch.setenv("RELENGTH_OFFLINE", "1")
    if "real_index" not in request.fixturenames:
        monkeypatch.setattr(data, "index", lambda: entry_at("http://127.0.0.1:9/"))
    data._find.cache_clear()
    yield
    data._find.cache_clear()


@pytest.fixture
def real_index():
    """Marks a test that looks for the real data set."""


def entry_at(address: str) -> dict:
    described = {
        name: {
            "member": f"set/{name}",
            "url": address + name,
            "sha256": hashlib.sha256(content).hexdigest(),
            "rows": content.count(b"\n"),
        }
        for name, content in CONTENTS.items()
    }
    return {"little": {"archive": "set/set.zip", "files": described}}


def make_archive(folder: Path, contents: dict[str, bytes]) -> Path:
    path = folder / "set" / "set.zip"
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(f"set/{name}", content)
    return path


def test_named_folder_is_used(tmp_path, monkeypatch):
    make_archive(tmp_path, CONTENTS)
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path))
    found = data.find("little")
    assert found.source == "RELENGTH_DATA" and found.reason == ""
    assert found.texts == {name: content.decode() for name, content in CONTENTS.items()}
    assert found.sha256 == {n: hashlib.sha256(c).hexdigest() for n, c in CONTENTS.items()}


def remove(path: Path) -> None:
    path.unlink()


def change_content(path: Path) -> None:
    make_archive(path.parents[1], CONTENTS | {"long.tsv": b"one\r\ntwo\r\nthrea\r\n"})


def leave_out_member(path: Path) -> None:
    make_archive(path.parents[1], {"short.tsv": CONTENTS["short.tsv"]})


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def flip_bit(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"three", b"thrde"))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (remove, "has no set/set.zip"),
        (change_content, "is damaged \\(long.tsv has another SHA-256\\)"),
        (leave_out_member, "cannot be read"),
        (truncate, "cannot be read"),
        (flip_bit, "cannot be read"),
    ],
)
def test_damaged_copy_is_refused(tmp_path, monkeypatch, damage, complaint):
    damage(make_archive(tmp_path, CONTENTS))
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path))
    with pytest.raises(RelengthError, match=complaint) as error:
        data.find("little")
    assert "correct RELENGTH_DATA, or unset it" in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_folder_is_an_error_of_the_task(tmp_path, monkeypatch, real_index):
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(RelengthError, match="nowhere, which is not a folder: correct"):
        Lookup().dataset("train", seed=0)


def test_offline_never_downloads(monkeypatch):
    monkeypatch.setattr(pooch, "retrieve", lambda *_, **__: pytest.fail("tried to download"))
    found = data.find("little")
    assert found.source is None and found.texts == {} and "RELENGTH_OFFLINE" in found.reason


def test_lookup_without_data_generates_and_says_so(real_index):
    provenance = Lookup().provenance()
    assert provenance["source"] == "generated"
    assert "RELENGTH_OFFLINE" in provenance["reason"]
    assert len(Lookup().pairs("train", seed=0)) == 9_081


class Server:
    """A web server on this machine that serves one folder and counts what it is asked."""

    def __init__(self, folder: Path):
        self.requests: list[str] = []
        server = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                server.requests.append(self.path)

        self.http = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=folder)
        )
        self.address = f"http://127.0.0.1:{self.http.server_port}/"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def online(tmp_path, monkeypatch):
    """Downloads are allowed, from a server on this machine into an empty cache."""
    (tmp_path / "served").mkdir()
    for name, content in CONTENTS.items():
        (tmp_path / "served" / name).write_bytes(content)
    server = Server(tmp_path / "served")
    monkeypatch.delenv("RELENGTH_OFFLINE")
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(data, "index", lambda: entry_at(server.address))
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    yield server
    server.close()


def test_download_is_checked_and_kept(online):
    found = data.find("little")
    assert found.source == "download"
    assert found.texts == {name: content.decode() for name, content in CONTENTS.items()}
    assert sorted(online.requests) == ["/long.tsv", "/short.tsv"]
    data._find.cache_clear()  # as in a new process
    assert data.find("little").texts == found.texts
    assert len(online.requests) == 2


def test_damaged_cache_is_downloaded_again(online, tmp_path):
    data.find("little")
    (tmp_path / "cache" / "relength" / "set-long.tsv").write_bytes(b"damaged")
    data._find.cache_clear()
    assert data.find("little").texts["long.tsv"] == CONTENTS["long.tsv"].decode()
    assert online.requests.count("/long.tsv") == 2


def test_download_with_another_checksum_is_not_used(online, tmp_path):
    (tmp_path / "served" / "long.tsv").write_bytes(b"a login page")
    found = data.find("little")
    assert found.source is None and found.texts == {}
    assert "another SHA-256" in found.reason
    assert not (tmp_path / "cache" / "relength" / "set-long.tsv").exists()


def test_without_network_only_the_first_call_tries(online, monkeypatch):
    tries = []
    retrieve = pooch.retrieve
    monkeypatch.setattr(pooch, "retrieve", lambda *a, **k: (tries.append(1), retrieve(*a, **k))[1])
    monkeypatch.setattr(data, "index", lambda: entry_at("http://127.0.0.1:9/"))  # nobody listens
    started = time.monotonic()
    assert "download failed (ConnectionError)" in data.find("little").reason
    assert data.find("little").source is None
    assert len(tries) == 1
    assert time.monotonic() - started < data.FIRST_ANSWER_SECONDS


def test_name_server_that_never_answers_is_given_up(online, monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(pooch, "retrieve", lambda *_, **__: answered.wait() and "nothing")
    monkeypatch.setattr(data, "FIRST_ANSWER_SECONDS", 0.05)
    assert "download failed (TimeoutError)" in data.find("little").reason
    answered.set()


def test_index_lists_what_the_lookup_tasks_need(real_index):
    files = data.index()["lookup_tables"]["files"]
    rows = {name: file["rows"] for name, file in files.items()}
    longer = {f"longer_seen_{k}.tsv": 5_000 for k in (1, 3, 5)}
    assert rows == {"train.tsv": 9_081, "validation.tsv": 475, **longer}
    assert all(len(file["sha256"]) == 64 for file in files.values())


@pytest.mark.skipif(not PUBLISHED, reason="RELENGTH_DATA is not set")
def test_published_files_have_the_rows_of_the_index(monkeypatch, real_index):
    monkeypatch.setenv("RELENGTH_DATA", PUBLISHED)
    found = data.find("lookup_tables")
    rows = {name: file["rows"] for name, file in data.index()["lookup_tables"]["files"].items()}
    assert {name: len(text.splitlines()) for name, text in found.texts.items()} == rows
