"""Compiled code is made once where it can be kept, and made anyway where it cannot."""

import tempfile
from pathlib import Path

import numba.core.caching
import pytest

from relength.kernels import jit


def double(x):
    return 2 * x


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """A folder of its own for what this test compiles."""
    monkeypatch.setattr(jit.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def read_only(monkeypatch):
    """Neither the folder of the source nor the user's home can be written; returns what can."""
    writable: list[Path] = []
    temporary_file = tempfile.TemporaryFile

    def file(*arguments, dir=None, **named):
        if not any(Path(dir).is_relative_to(folder) for folder in writable):
            raise PermissionError(13, "Permission denied", dir)
        return temporary_file(*arguments, dir=dir, **named)

    monkeypatch.setattr(numba.core.caching.tempfile, "TemporaryFile", file)
    monkeypatch.setattr(jit.config, "CACHE_DIR", "")
    return writable


def hits(function) -> int:
    """Call a function compiled here and count what came from the cache."""
    assert function(21) == 42
    return sum(function.stats.cache_hits.values())


def test_what_was_compiled_is_loaded_the_next_time(cache):
    assert [hits(jit.compiled(double)) for _ in range(2)] == [0, 1]


def test_it_is_compiled_again_when_any_file_of_kernels_was_changed(cache, monkeypatch, tmp_path):
    assert "lanes.py" in [name for name, *_ in jit.STAMPS]
    (tmp_path / ".#lock.py").symlink_to("nowhere")
    file = tmp_path / "helper.py"
    for text, expected in (("1", [0, 1]), ("22", [0, 1])):
        file.write_text(text)
        monkeypatch.setattr(jit, "STAMPS", jit.stamps(tmp_path))
        assert [hits(jit.compiled(double)) for _ in range(2)] == expected


def closing(number, times):
    """A function that closes over a compiled one and a number, as a step of a memory does."""
    inner = jit.compiled(times)
    return jit.compiled(lambda x: inner(x) + number)


def twice(x):
    return x + x


def squared(x):
    return x * x


def test_a_function_is_known_by_what_it_closes_over(cache):
    found = []
    for number, times in ((1, twice), (1, twice), (2, twice), (1, squared)):
        function = closing(number, times)
        found.append((function(5), sum(function.stats.cache_hits.values())))
    assert found == [(11, 0), (11, 1), (12, 0), (26, 0)]


# {what closes over compiled code: its first call}
CLOSURES = {
    "a function": """import test_jit
step = test_jit.closing(1, test_jit.twice)
step(5)""",
    "the step of a memory": """import torch
from relength.kernels import dnc_sequence
memory = dnc_sequence._Memory(dnc_sequence.Size(2, 1, 1), 1, torch.zeros(1), 1, True)
memory.forwards(0, torch.zeros(1, 4), torch.zeros(12, 4), torch.zeros(12).numpy())
step = memory.steps.forwards""",
}


@pytest.mark.parametrize(
    "name", ["a function", pytest.param("the step of a memory", marks=pytest.mark.weekly)]
)
def test_what_closes_over_compiled_code_is_compiled_in_one_process_and_loaded_in_the_next(
    name, python, tmp_path
):
    script = f"{CLOSURES[name]}\nprint(sum(step.stats.cache_hits.values()))"
    place = {"NUMBA_CACHE_DIR": str(tmp_path)}
    found = [
        python("-c", script, cwd=Path(__file__).parent, **place).communicate() for _ in range(2)
    ]
    assert found == [("0\n", ""), ("1\n", "")]


def test_code_that_another_function_left_under_the_same_name_is_not_run(cache):
    hits(jit.compiled(double))
    (file,) = cache.rglob("*double*.nbc")
    assert closing(1, twice)(5) == 11
    (other,) = (f for f in cache.rglob("*.nbc") if "lambda" in f.name)
    file.write_bytes(other.read_bytes())
    assert [hits(jit.compiled(double)) for _ in range(2)] == [0, 1]


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 0.999])
@pytest.mark.parametrize("rest", [b"", b"\0"], ids=["cut off", "zeros"])
def test_a_damaged_entry_is_compiled_again_and_replaced(cache, kind, share, rest):
    hits(jit.compiled(double))
    (file,) = cache.rglob(f"*.{kind}")
    whole = file.read_bytes()
    kept = whole[: int(share * len(whole))]
    file.write_bytes(kept + rest * (len(whole) - len(kept)))
    assert [hits(jit.compiled(double)) for _ in range(2)] == [0, 1]


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_machine_code_with_a_changed_bit_is_never_run(cache, share):
    hits(jit.compiled(double))
    (file,) = cache.rglob("*.nbc")
    data = bytearray(file.read_bytes())
    data[int(share * len(data))] ^= 1
    file.write_bytes(data)
    assert [hits(jit.compiled(double)) for _ in range(2)] == [0, 1]


def test_where_nothing_usual_can_be_written_a_temporary_folder_keeps_it(
    read_only, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    read_only.append(tmp_path)
    assert [hits(jit.compiled(double)) for _ in range(2)] == [0, 1]
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_temporary_folder_that_others_may_write_to_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = jit.temporary_folder()
    assert folder.parent == tmp_path and jit.temporary_folder() == folder
    folder.chmod(0o777)
    assert jit.temporary_folder() is None
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert jit.temporary_folder() is None


def test_where_nothing_at_all_can_be_written_functions_are_compiled_all_the_same(read_only):
    assert [hits(jit.compiled(double)) for _ in range(2)] == [0, 0]


def test_a_disk_too_full_to_keep_compiled_code_is_no_failure(cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "_save_data", full)
    assert hits(jit.compiled(double)) == 0


def test_without_compilation_the_fast_dnc_is_the_plain_one(python):
    script = """import torch
from relength.kernels import late
from relength.models.memory.configs import ConstrainedDNCConfig
from relength.models.memory.constrained import ConstrainedDNC
torch.manual_seed(0)
config = ConstrainedDNCConfig(
    controller="lstm", constraint="none", hidden_size=4, slots=5, width=3, read_heads=2
)
model = ConstrainedDNC(config, 2, 3).initialise(0).double()
inputs = torch.randn(9, 4, 2).double()
found = []
for model.fused in (True, False):
    model.zero_grad()
    outputs = model.decode(inputs, 3, None)
    outputs.square().sum().backward()
    found.append(torch.cat([outputs.flatten(), *(p.grad.flatten() for p in model.parameters())]))
print(type(late.dnc_steps.exp32).__name__, torch.allclose(*found, rtol=0, atol=1e-12))"""
    done = python("-c", script, NUMBA_DISABLE_JIT="1")
    assert done.communicate() == ("function True\n", "")


def test_without_compilation_the_mask_is_the_same_bit_for_bit(python):
    script = """import warnings; warnings.simplefilter("error")
import torch
from relength.kernels import fused, late
from relength.kernels.hashing import dropout_mask
key = torch.tensor(-1234567, dtype=torch.int32)
shape = torch.Size((4, 9, 33))
print(type(late.compiled.keep).__name__)
print(torch.equal(fused.dropout_mask(shape, 0.5, key), dropout_mask(shape, 0.5, key)))"""
    done = python("-c", script, NUMBA_DISABLE_JIT="1")
    assert done.communicate() == ("function\nTrue\n", "")
