"""What is kept on disk: computed once, never out of date, and nothing depends on it."""

import pytest

from relength import kept as module
from relength.kept import kept


@pytest.fixture
def made(monkeypatch, tmp_path):
    """A function that keeps a list and counts how often it is made, in a folder of its own."""
    monkeypatch.setattr(module, "FOLDER", tmp_path / "kept")
    calls = []

    def ask(*given: str) -> list[int]:
        return kept("test", lambda: calls.append(given) or [1, 2], *given)

    ask.calls = calls
    return ask


def test_a_value_is_computed_once_for_what_it_follows_from(made):
    assert made("a") == made("a") == [1, 2]
    assert made("b") == [1, 2]
    assert made("a", "b") == made("ab") == [1, 2]  # not the same: parts are told apart
    assert made.calls == [("a",), ("b",), ("a", "b"), ("ab",)]


def test_each_reader_gets_a_value_of_its_own(made):
    made("a").append(3)
    assert made("a") == [1, 2]


@pytest.mark.parametrize("content", [b"", b"damaged", b"\x80\x04."])
def test_a_damaged_file_is_computed_again(made, content):
    made("a")
    (file,) = module.FOLDER.iterdir()
    whole = file.read_bytes()
    file.write_bytes(content)
    assert made("a") == [1, 2] and len(made.calls) == 2
    assert file.read_bytes() == whole


def test_where_nothing_can_be_written_it_is_computed_each_time(made, tmp_path):
    module.FOLDER.write_text("a file where the folder would be")
    assert made("a") == made("a") == [1, 2] and len(made.calls) == 2


def test_changed_code_computes_anew(made, monkeypatch):
    made("a")
    monkeypatch.setattr(module, "code", lambda: b"another")
    made("a")
    assert len(made.calls) == 2


def test_files_that_nobody_reads_are_removed(made, monkeypatch):
    made("a")
    monkeypatch.setattr(module, "UNUSED_DAYS", -1)
    made("b")
    assert not list(module.FOLDER.iterdir())
