"""From specs to records: nothing is trained unasked, nothing is lost, and a failure is a record."""

import json
import math
import os
import re
import shutil
import sys
import time
import weakref
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext

import pytest
import torch

from relength import stopping
from relength.errors import RelengthError
from relength.models.seq2seq.encoder_decoder import Seq2Seq
from relength.paths import ROOT
from relength.runs import campaign
from relength.runs import execute as execute_module
from relength.runs.execute import Job, execute, rounded
from relength.runs.executors import check_device, executor
from relength.runs.plan import Run, missing
from relength.runs.progress import line
from relength.runs.run import run_or_load
from relength.runs.store import usable
from relength.specs.claim_files import claims_digest
from relength.specs.experiments import experiments
from relength.specs.spec import RunSpec, make_spec
from relength.training import Stack, provenance, traces
from relength.training import alone as training
from relength.training.alone import Trainer
from relength.training.course import Course
from relength.training.device import out_of_memory

GRIDS = {found.grid: name for name, found in reversed(experiments().items())}  # pages share some
# Without CFQ, whose data are not here: it has tests of its own.
AT_HAND = sorted({*GRIDS.values()} - {"mla_cfq"})


def takes_a_step_and_answers(spec: RunSpec) -> None:
    trainer = Trainer(spec)
    before = {n: w.clone() for n, w in trainer.model.state_dict().items()}
    assert math.isfinite(trainer.run_steps(1)), spec.label
    moved = [n for n, w in trainer.model.state_dict().items() if not w.equal(before[n])]
    assert bool(moved) == (spec.training.learning_rate > 0), spec.label
    batch = spec.task.dataset(spec.task.tests[1], 0).select(slice(0, 2))
    written, _ = trainer.model.generate(batch, batch.targets.shape[1])
    written = getattr(written, "tokens", written)  # what reads facts says more than tokens
    assert written.shape == batch.targets.shape, spec.label  # tokens, or channels of each step


def with_data(experiment: str) -> list[RunSpec]:
    """An experiment's runs at scale smoke whose data are at hand: all, given ``RELENGTH_DATA``."""
    specs = experiments()[experiment].specs("smoke", [0])
    here = [spec for spec in specs if not spec.task.lacks()]
    assert here == specs or "RELENGTH_DATA" not in os.environ
    return here


def one_of_each() -> list[RunSpec]:
    """Specs that have each model in each of its readings once, and each task once."""
    chosen, seen = [], set()
    for name in AT_HAND:
        for spec in with_data(name):
            if {(spec.row, spec.model.arm), spec.task.name} - seen:
                seen |= {(spec.row, spec.model.arm), spec.task.name}
                chosen.append(spec)
    return chosen


def test_each_model_in_each_reading_and_each_task_takes_a_step_and_answers():
    with execute_module.small_numbers_are_zero():
        for spec in one_of_each():
            takes_a_step_and_answers(spec)


@pytest.mark.weekly
@pytest.mark.parametrize("name", AT_HAND)
def test_every_run_of_every_experiment_takes_a_step_and_answers(name):
    with execute_module.small_numbers_are_zero():
        for spec in with_data(name):
            takes_a_step_and_answers(spec)


def plain(record: dict) -> dict:
    """Keep what two executions of a spec have in common: no times, no identity."""
    return {k: v for k, v in record.items() if k not in ("run_id", "cost", "provenance")}


def job_of(store, *specs, **options) -> Job:
    return Job(specs, "mla_table2", "cpu", store.checkpoints, **options)


def pending(specs, store, experiment) -> list:
    return [run.spec for run in missing([Run(experiment, spec) for spec in specs], store)]


# --- loading ------------------------------------------------------------------------------------


def test_an_empty_store_is_shown_without_an_optimiser_step(tiny, table_2, store, monkeypatch):
    def never(*_, **__):
        raise AssertionError("something was trained")

    monkeypatch.setattr(torch.optim.AdamW, "step", never)
    monkeypatch.setattr(torch.Tensor, "backward", never)
    monkeypatch.setattr(training.Trainer, "__init__", never)
    assert run_or_load([tiny(), tiny(seed=1)], store, table_2) == []
    assert not store.path.exists()


def test_what_is_recorded_is_loaded_and_only_what_is_missing_trained(tiny, table_2, store):
    specs = [tiny(epochs=1, seed=seed) for seed in range(3)]
    first = run_or_load(specs[:2], store, table_2, train=True, workers=1)
    assert [r["key"] for r in first] == [s.key for s in specs[:2]]
    assert list(store.checkpoints.iterdir()) == []  # recorded, so nothing is left to resume
    assert run_or_load(specs, store, table_2) == first
    assert pending(specs, store, table_2) == [specs[2]]
    all_three = run_or_load(specs, store, table_2, train=True, workers=1)
    assert all_three == store.records()
    assert [r["key"] for r in all_three] == [s.key for s in specs]
    assert run_or_load(specs[1:2], store, table_2) == first[1:]


def test_refresh_appends_an_execution_and_overwrites_nothing(tiny, table_2, store):
    spec = tiny(epochs=1)
    [first] = run_or_load([spec], store, table_2, train=True, workers=1)
    [still] = run_or_load([spec], store, table_2, train=True, refresh=True, workers=1)
    once, again = store.records()
    assert first == still == once  # the earliest counts
    assert once["run_id"] != again["run_id"] and plain(once) == plain(again)


# --- the record ---------------------------------------------------------------------------------


def test_a_record_says_what_was_trained_how_well_and_where(tiny, table_2, store):
    spec = tiny("inv_recopy", "MonoAttn", "paper")
    [record] = run_or_load([spec], store, table_2, train=True, workers=1)
    assert make_spec(**record["spec"]) == spec and record["key"] == spec.key
    assert set(record["checkpoints"]) == {"selected", "last", "best_iid"}
    assert list(record["checkpoints"]["last"]["tests"]) == ["iid", "15", "30", "100"]
    assert [point["epoch"] for point in record["curve"]] == [0, 1, 2]
    assert len(record["first_losses"]) == 3 and record["probe"].keys() == {"validation_loss"}
    assert record["cost"]["steps"] == 9 and record["parameters"] > 1000
    provenance = record["provenance"]
    assert provenance["device"] == "cpu" and provenance["data"] == {"source": "generated"}
    assert provenance["torch"] == torch.__version__.split("+")[0]
    assert all(provenance[name] for name in ("created", "code", "margins", "python", "device_name"))
    assert provenance["claims"] == claims_digest("mla")


def test_the_attention_of_a_record_is_that_of_a_sample_of_unseen_length(tiny, table_2, store):
    spec = tiny("copy")
    [record] = run_or_load([spec], store, table_2, train=True, workers=1)
    attention, [sample, *_] = record["attention"], spec.task.pairs("15", 0)
    assert attention["test"] == "15"
    assert tuple(attention["source"]) == ("START", *sample.source, "END")
    assert tuple(attention["target"]) == (*sample.target, "EOS")
    assert len(attention["weights"]) == len(attention["prediction"]) == 16
    for row in attention["weights"]:
        assert len(row) == 17 and sum(row) == pytest.approx(1, abs=0.02)


def test_numbers_of_a_record_have_six_digits(tiny, table_2, store):
    assert rounded({"a": [1 / 3, 2e-9 / 3], "n": 1234567, "t": (0.5,)}) == {
        "a": [0.333333, 6.66667e-10],
        "n": 1234567,
        "t": [0.5],
    }


# --- failures -----------------------------------------------------------------------------------


def test_a_failed_run_is_a_record_with_its_traceback_and_the_grid_goes_on(
    tiny, table_2, store, monkeypatch
):
    specs = [tiny(epochs=1, seed=seed) for seed in range(3)]
    train = execute_module.train

    def fragile(spec, *args):
        if spec.seed == 1:
            raise ZeroDivisionError("the second run breaks")
        return train(spec, *args)

    monkeypatch.setattr(execute_module, "train", fragile)
    good = run_or_load(specs, store, table_2, train=True, workers=1)
    assert [r["spec"]["seed"] for r in good] == [0, 2]
    broken = store.records()[1]
    assert broken["status"] == "failed" and "checkpoints" not in broken
    assert "Traceback" in broken["error"] and "the second run breaks" in broken["error"]
    assert 'File "relength/runs/execute.py"' in broken["error"]  # records are published
    assert not re.search(r'File "[/~]', broken["error"])
    assert pending(specs, store, table_2) == [specs[1]]

    monkeypatch.undo()
    assert len(run_or_load(specs, store, table_2, train=True, workers=1)) == 3
    assert [r["status"] for r in store.records()] == ["ok", "failed", "ok", "ok"]


@pytest.mark.parametrize(
    "fault",
    [
        PermissionError(13, "Permission denied", "/nowhere/numba"),
        ModuleNotFoundError("No module named 'llvmlite'"),
        ImportError("libgomp.so.1: cannot open shared object file"),
    ],
    ids=lambda fault: type(fault).__name__,
)
@pytest.mark.parametrize("together", [1, 2], ids=["alone", "stacked"])
def test_a_fault_of_the_machine_ends_the_campaign_and_is_no_result_of_a_run(
    tiny, table_2, store, monkeypatch, together, fault
):
    specs = [tiny(epochs=1, seed=seed) for seed in range(3)]
    run_or_load(specs[:1], store, table_2, train=True, workers=1)

    def broken(*_):
        raise fault

    monkeypatch.setattr(execute_module, "train", broken)
    monkeypatch.setattr(Stack, "run_epoch", broken)
    with pytest.raises(RelengthError) as refusal:
        run_or_load(specs, store, table_2, train=True, workers=1, stack=together)
    assert str(fault) in str(refusal.value) and "\n" not in str(refusal.value)
    assert [record["status"] for record in store.records()] == ["ok"]
    monkeypatch.undo()
    assert len(run_or_load(specs, store, table_2, train=True, workers=1)) == 3


def test_data_that_the_training_machine_lacks_are_no_result_of_a_run(tiny, store, monkeypatch):
    def missing(self):
        raise RelengthError("copy has no data: put them there.")

    spec = tiny(epochs=1)
    monkeypatch.setattr(type(spec.task), "provenance", missing)
    with pytest.raises(RelengthError, match="has no data"):
        execute(job_of(store, spec))


@pytest.mark.parametrize("samples", [24, 8])  # diverges within the epoch, or in its last step
def test_a_run_that_diverges_is_recorded_and_the_grid_goes_on(tiny, table_2, store, samples):
    fields = tiny(epochs=1, learning_rate=1e30).model_dump()
    fields["task"]["train_size"] = samples
    specs = [make_spec(**fields), tiny(epochs=1)]
    trainer = training.Trainer(specs[0])
    losses = [trainer.train_step(batch).item() for batch in trainer.data.chunks(8)]
    after = trainer.loss(trainer.data.select(slice(0, 8))).item()
    assert not all(map(math.isfinite, [*losses, after]))
    run_or_load(specs, store, table_2, train=True, workers=1)
    assert [r["key"] for r in store.records()] == [s.key for s in specs]
    for text in store.files()[0].read_text().splitlines():
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize("together", [1, 2], ids=["alone", "stacked"])
def test_a_probe_that_is_no_number_is_a_divergence(tiny, table_2, store, monkeypatch, together):
    """The loss of the run is a number again by the end of the epoch."""
    end_epoch = Course.end_epoch

    def probed(self, *arguments):
        if self.spec.seed == 0:
            self.progress.probe["validation_loss"] = math.nan
        end_epoch(self, *arguments)

    monkeypatch.setattr(Course, "end_epoch", probed)
    specs = [tiny(epochs=1, seed=seed) for seed in range(2)]
    [good] = run_or_load(specs, store, table_2, train=True, workers=1, stack=together)
    assert good["key"] == specs[1].key
    [bad] = [record for record in store.records() if record["key"] == specs[0].key]
    assert bad["status"] == "failed" and "nan in the probe" in bad["error"]


def test_results_that_cannot_be_written_are_a_failure_and_the_grid_goes_on(
    tiny, table_2, store, monkeypatch
):
    sample = traces.attention_sample
    monkeypatch.setattr(
        traces,
        "attention_sample",
        lambda spec, *rest: {"weights": math.nan} if spec.seed == 0 else sample(spec, *rest),
    )
    specs = [tiny(epochs=1, seed=seed) for seed in range(2)]
    assert len(run_or_load(specs, store, table_2, train=True, workers=1)) == 1
    bad, good = store.records()
    assert (bad["key"], bad["status"]) == (specs[0].key, "failed")
    assert "cannot be written as JSON" in bad["error"] and "checkpoints" not in bad
    assert (good["key"], good["status"]) == (specs[1].key, "ok")
    assert list(store.checkpoints.iterdir()) == []


def test_a_full_disk_ends_the_campaign_in_one_sentence_and_keeps_what_was_recorded(
    tiny, table_2, store, monkeypatch
):
    specs = [tiny(epochs=1, seed=seed) for seed in range(3)]
    run_or_load(specs[:1], store, table_2, train=True, workers=1)
    before = store.records()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("relength.runs.store.os.fsync", full)
    with pytest.raises(RelengthError, match="No space left on device"):
        run_or_load(specs, store, table_2, train=True, workers=1)
    monkeypatch.undo()
    assert store.records() == before
    assert len(run_or_load(specs, store, table_2, train=True, workers=1)) == 3


class Killed(Executor):
    """A pool whose processes the system has ended."""

    def submit(self, fn, /, *args, **kwargs):
        future: Future = Future()
        future.set_exception(BrokenProcessPool("a process in the pool was terminated"))
        return future


def test_a_worker_ended_from_outside_is_said_in_one_sentence(tiny, table_2, store, monkeypatch):
    monkeypatch.setattr(campaign, "place", lambda *_: nullcontext(Killed()))
    with pytest.raises(RelengthError, match=r"ended from outside.*same command again"):
        run_or_load([tiny()], store, table_2, train=True)


# --- executors and devices ----------------------------------------------------------------------


@pytest.mark.smoke
def test_two_processes_record_what_one_records(tiny, table_2, store):
    specs = [tiny("copy", model) for model in ("Content", "Bi-Relative", "LocAttn")]
    serial = {spec.key: execute(job_of(store, spec))[0] for spec in specs}
    records = run_or_load(specs, store, table_2, train=True, workers=2)
    assert len(usable(records)) == 3
    for record in records:
        assert plain(record) == plain(json.loads(json.dumps(serial[record["key"]])))
    assert not list((store.path / ".checkpoints").glob("*"))


def test_no_workers_are_refused():
    with pytest.raises(RelengthError, match="0 workers cannot train anything"), executor(0):
        pass


def test_devices_that_exist_are_accepted():
    check_device("cpu")
    if torch.cuda.is_available():
        check_device("cuda")


@pytest.mark.parametrize("device", ["gpu", "tpu", "", "cuda:x", "meta", "cpu:cuda"])
def test_an_unknown_device_is_refused(device):
    with pytest.raises(RelengthError, match=r"Unknown device .*choose cpu, cuda or cuda:<number>"):
        check_device(device)


@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_a_gpu_where_there_is_none_is_refused_before_anything_is_trained(
    tiny, table_2, store, device, no_gpu
):
    with pytest.raises(RelengthError, match=f"'{device}' was asked for.*no GPU here.*--device cpu"):
        run_or_load([tiny()], store, table_2, train=True, device=device)
    assert not store.path.exists()


# --- stacks, budgets, shards --------------------------------------------------------------------


def test_a_stacked_job_gives_the_records_of_its_runs_trained_alone(tiny, store):
    specs = [tiny(epochs=2, seed=seed, precision="float64") for seed in range(3)]
    stacked = {record["key"]: record for record in execute(job_of(store, *specs))}
    assert stacked.keys() == {spec.key for spec in specs}
    for spec in specs:
        [alone] = execute(job_of(store, spec))
        ours = stacked[spec.key]
        assert ours["cost"]["stacked"] == 3
        assert ours["checkpoints"] == alone["checkpoints"]
        assert ours["attention"]["prediction"] == alone["attention"]["prediction"]
        assert ours["first_losses"] == pytest.approx(alone["first_losses"], rel=1e-4)


def masked(error: Exception) -> Exception:
    """As from a capture that failed, and then could not be ended."""
    second = RuntimeError("CUDA error: operation failed due to a previous error during capture")
    second.__context__ = error
    return second


def test_a_lack_of_memory_is_known_by_whatever_name():
    no_room = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    cause = RelengthError("the step cannot be stacked")
    cause.__cause__ = no_room
    for error in (
        no_room,
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        masked(no_room),
        cause,
    ):
        assert out_of_memory(error)
    for error in (RuntimeError("CUDA error: device-side assert"), masked(ValueError("no"))):
        assert not out_of_memory(error)


def test_a_stack_too_large_for_the_memory_is_split_and_nothing_is_lost(tiny, store, monkeypatch):
    sizes, stacks = [], []
    train_epoch = Stack.run_epoch

    def crowded(self):
        assert all(earlier() in (None, self) for earlier in stacks), "its memory is still held"
        stacks.append(weakref.ref(self))
        sizes.append(len(self.courses))
        if len(self.courses) > 2:
            raise masked(torch.OutOfMemoryError("no room"))
        train_epoch(self)

    monkeypatch.setattr(Stack, "run_epoch", crowded)
    specs = [tiny(epochs=1, seed=seed) for seed in range(5)]
    records = execute(job_of(store, *specs))
    assert [r["key"] for r in records] == [s.key for s in specs]
    assert all(r["status"] == "ok" for r in records)
    assert max(sizes) == 5 and sizes.count(5) == 1


def test_a_run_whose_model_cannot_be_stacked_is_trained_alone_also_on_a_gpu(
    tiny, store, monkeypatch
):
    """A second, nameless device stands for the GPU: there, a single run is a stack of one."""
    encode = Seq2Seq.encode

    def unbatched(self, batch, dropout):
        return encode(self, batch, None if batch.input_lengths.sum().item() < 0 else dropout)

    monkeypatch.setattr(Seq2Seq, "encode", unbatched)
    monkeypatch.setattr(execute_module, "_as_loop", lambda job: False)
    [record] = execute(job_of(store, tiny(epochs=1)))
    assert record["status"] == "ok" and "stacked" not in record["cost"]
    for record in execute(job_of(store, tiny(epochs=1), tiny(epochs=1, seed=1))):
        assert record["status"] == "failed"
        assert "cannot be stacked" in record["error"] and "--stack 1" in record["error"]


def test_a_stacked_replica_that_diverges_is_the_only_failed_record(tiny, store):
    good, bad = tiny(epochs=1), tiny(epochs=1, seed=1, learning_rate=1e30)
    records = {record["key"]: record for record in execute(job_of(store, good, bad))}
    assert records[good.key]["status"] == "ok"
    assert records[bad.key]["status"] == "failed" and "diverged" in records[bad.key]["error"]


def execute_one_epoch(store, *specs) -> list:
    """Execute a job whose deadline passes during its first epoch, however fast the machine is."""
    deadline, end_epoch = time.time() + 3600, Course.end_epoch
    with pytest.MonkeyPatch.context() as patch:

        def late(self, *arguments):
            end_epoch(self, *arguments)
            patch.setattr(time, "time", lambda: deadline)

        patch.setattr(Course, "end_epoch", late)
        return execute(job_of(store, *specs, deadline=deadline))


@pytest.mark.parametrize("together", [1, 2], ids=["alone", "stacked"])
def test_what_the_budget_does_not_cover_resumes_later(tiny, table_2, store, together):
    specs = [tiny(epochs=3, seed=seed) for seed in range(2)]
    for i in range(0, 2, together):
        assert execute_one_epoch(store, *specs[i : i + together]) == []
    assert {path.stem for path in store.checkpoints.iterdir()} == {spec.key for spec in specs}
    assert run_or_load(specs, store, table_2, train=True, workers=1, stack=together, budget=0) == []
    done = run_or_load(specs, store, table_2, train=True, workers=1, stack=together)
    assert [r["key"] for r in done] == [s.key for s in specs]
    assert [len(r["curve"]) for r in done] == [3, 3]
    assert list(store.checkpoints.iterdir()) == []


@pytest.mark.parametrize("together", [1, 2], ids=["alone", "stacked"])
def test_a_run_that_was_stopped_before_its_tests_needs_only_those(
    tiny, store, monkeypatch, together
):
    specs = [tiny(epochs=1, seed=seed) for seed in range(together)]
    assert execute_one_epoch(store, *specs) == []

    def never(*_, **__):
        raise AssertionError("something was trained again")

    monkeypatch.setattr(training.Trainer, "run_epoch", never)
    monkeypatch.setattr(Stack, "run_epoch", never)
    records = execute(job_of(store, *specs))
    assert [r["status"] for r in records] == ["ok"] * together
    assert [len(r["curve"]) for r in records] == [1] * together


@pytest.mark.parametrize("together", [1, 2], ids=["alone", "stacked"])
def test_a_record_names_where_its_run_was_trained(tiny, store, monkeypatch, together):
    """One that is trained in two places, and tested in a third, has the last it was trained in."""
    specs = [tiny(epochs=2, seed=seed) for seed in range(together)]
    monkeypatch.setattr(provenance, "place", lambda device: ("cuda", "first", "2.11.0"))
    assert execute_one_epoch(store, *specs) == []
    monkeypatch.setattr(provenance, "place", lambda device: ("cuda", "second", "2.12.0"))
    assert execute_one_epoch(store, *specs) == []
    monkeypatch.setattr(provenance, "place", lambda device: ("cpu", "third", "2.13.0"))
    for record in execute(job_of(store, *specs)):
        made = record["provenance"]
        assert (made["device"], made["device_name"], made["torch"]) == ("cuda", "second", "2.12.0")
        assert made["other_devices"] == ["first"] and made["tested_on"] == "third"


def test_a_record_names_another_pytorch_on_the_same_device(tiny, store, monkeypatch):
    spec = tiny(epochs=2)
    monkeypatch.setattr(provenance, "place", lambda device: ("cpu", "one", "2.11.0"))
    assert execute_one_epoch(store, spec) == []
    monkeypatch.setattr(provenance, "place", lambda device: ("cpu", "one", "2.13.0"))
    (record,) = execute(job_of(store, spec))
    made = record["provenance"]
    assert made["torch"] == "2.13.0" and made["other_devices"] == ["one, PyTorch 2.11.0"]
    assert "tested_on" not in made


def test_a_run_that_was_trained_in_a_stack_says_so_wherever_it_is_tested(tiny, store):
    """Its seconds of training are a share of the stack's."""
    specs = [tiny(epochs=1, seed=seed) for seed in range(2)]
    assert execute_one_epoch(store, *specs) == []
    (record,) = execute(job_of(store, specs[0]))
    assert record["cost"]["stacked"] == 2


def test_a_run_that_is_done_before_its_stack_survives_the_end_of_the_process(
    tiny, store, monkeypatch
):
    specs = [tiny(epochs=3, seed=seed) for seed in range(3)]
    end_epoch = Course.end_epoch

    def early(self, *arguments):
        end_epoch(self, *arguments)
        if self.spec.seed == 1:
            self.progress.kept["last"] = self.progress.kept["selected"]
            self.progress.finished = True

    monkeypatch.setattr(Course, "end_epoch", early)
    assert execute_one_epoch(store, *specs) == []
    monkeypatch.undo()
    records = {r["spec"]["seed"]: r for r in execute(job_of(store, *specs))}
    assert {seed: len(r["curve"]) for seed, r in records.items()} == {0: 3, 1: 1, 2: 3}


def test_half_a_stack_that_is_done_is_recorded_and_the_rest_goes_on_in_another(
    tiny, table_2, store, monkeypatch
):
    specs = [tiny(epochs=4, seed=seed, precision="float64") for seed in range(4)]
    end_epoch, sizes = Course.end_epoch, []

    def early(self, *arguments):
        end_epoch(self, *arguments)
        if self.progress.epoch == self.spec.seed + 1:
            self.progress.kept["last"] = self.progress.kept["selected"]
            self.progress.finished = True

    load = Stack.load
    monkeypatch.setattr(Course, "end_epoch", early)
    monkeypatch.setattr(Stack, "load", lambda s, f: sizes.append(len(s.courses)) or load(s, f))
    run_or_load(specs, store, table_2, train=True, workers=1, stack=4)
    told = store.records()  # in the order in which they were done
    assert sizes == [4, 2]  # the last one goes on alone
    assert [len(record["curve"]) for record in told] == [1, 2, 3, 4]
    assert [record["cost"]["stacked"] for record in told] == [4, 4, 4, 4], "its first epochs"
    assert list(store.checkpoints.iterdir()) == []
    monkeypatch.undo()
    whole = training.train(specs[3])
    for ours, theirs in zip(told[3]["curve"], whole.curve, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_a_stack_whose_states_nobody_could_find_is_not_given_back_half_done(
    tiny, store, monkeypatch
):
    end_epoch = Course.end_epoch

    def early(self, *arguments):
        end_epoch(self, *arguments)
        self.progress.finished |= self.spec.seed < 2
        self.progress.kept["last"] = self.progress.kept["selected"]

    monkeypatch.setattr(Course, "end_epoch", early)
    specs = [tiny(epochs=2, seed=seed) for seed in range(3)]
    kept = [r["spec"]["seed"] for r in execute(job_of(store, *specs, handed_on=False))]
    assert kept == [0, 1, 2]


def test_nothing_is_begun_when_somebody_has_asked_to_stop(tiny, store, monkeypatch):
    monkeypatch.setattr(stopping, "asked", lambda: True)
    assert execute(job_of(store, tiny())) == []
    assert not store.path.exists()


@pytest.mark.parametrize("together", [1, 2], ids=["alone", "stacked"])
def test_a_state_of_other_code_is_put_aside_and_the_log_says_why_the_run_starts_anew(
    tiny, store, monkeypatch, together
):
    specs = [tiny(epochs=2, seed=seed) for seed in range(together)]
    assert execute_one_epoch(store, *specs) == []
    other, *same = (store.checkpoints / f"{spec.key}.pt" for spec in specs)
    state = torch.load(other)
    torch.save(state | {"code": "0" * 12}, other)
    before = other.read_bytes()
    with pytest.warns(UserWarning, match="comes from other code.*starts anew"):
        whole = job_of(store, *specs, handed_on=False)
        records = {record["key"]: record for record in execute(whole)}
    assert all([p["epoch"] for p in record["curve"]] == [0, 1] for record in records.values())
    refused = records.pop(specs[0].key)
    assert "anew: its saved state comes from other code (000000000000; now" in line(refused)
    assert str(store.path) not in line(refused)
    assert other.with_name(f"{other.name}.refused").read_bytes() == before
    assert len(same) == len(records) and all("anew" not in line(r) for r in records.values())


@pytest.mark.parametrize("together", [1, 2], ids=["alone", "stacked"])
def test_a_disk_too_full_for_a_state_does_not_fail_the_run(tiny, store, monkeypatch, together):
    def full(path, data):
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device", str(path))

    specs = [tiny(epochs=1, seed=seed) for seed in range(together)]
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.write_bytes", full)
        patch.setattr("relength.runs.execute.CHECKPOINT_SECONDS", 0.0)
        said = r"pt \(No space left on device\): free space there.*training goes on"
        with pytest.warns(UserWarning, match=said):
            records = execute(job_of(store, *specs, handed_on=False))
    assert [record["status"] for record in records] == ["ok"] * together
    assert list(store.checkpoints.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits on the size of files")
def test_what_the_system_says_against_a_file_is_told_and_the_state_before_it_stays(tiny, store):
    import resource

    spec = tiny(epochs=3)
    trainer, path = Trainer(spec), store.checkpoints / f"{spec.key}.pt"
    trainer.run_epoch()
    trainer.save(path)
    before = path.read_bytes()
    trainer.run_epoch()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, hard))
    try:
        with pytest.warns(UserWarning, match=r"\(File too large\)"):
            trainer.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(store.checkpoints.iterdir()) == [path] and path.read_bytes() == before


def test_workers_print_warnings_as_the_command_does(python):
    script = """import warnings
from relength.runs.executors import executor
with executor(2) as pool:
    pool.submit(warnings.warn, "the disk is full").result()"""
    assert python("-c", script).communicate() == ("", "Note: the disk is full\n")


FROM_A_SCRIPT = """import os
from relength.runs.executors import executor

LOADED = "__import__('sys').modules.keys() >= {'torch', 'numba', 'relength.runs.warm'}"

if __name__ == "__main__":
    for number in "12":
        os.environ["RELENGTH_TEST"] = number
        with executor(2) as pool:
            print(pool.submit(os.getenv, "RELENGTH_TEST").result(), end=" ")
            print(pool.submit(eval, LOADED).result(), end=" ")
            print(pool.submit(os.getenv, "PYTHONSAFEPATH").result(), end=" ")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
@pytest.mark.parametrize(
    ("temporary", "loaded"),
    [("", True), pytest.param("long" * 30, False, id="no room", marks=pytest.mark.weekly)],
)
def test_workers_start_with_libraries_and_the_campaigns_environment(
    python, tmp_path, temporary, loaded
):
    """And with no module of the folder in which the campaign was started by chance."""
    for name in ("scripts", "here", *filter(None, [temporary])):
        (tmp_path / name).mkdir()
    (tmp_path / "scripts" / "run.py").write_text(FROM_A_SCRIPT)
    (tmp_path / "here" / "secrets.py").write_text("raise ValueError('not for everyone')")
    elsewhere = {"TMPDIR": str(tmp_path / temporary)} if temporary else {}
    done = python(tmp_path / "scripts" / "run.py", cwd=tmp_path / "here", **elsewhere)
    assert done.communicate() == (f"1 {loaded} None 2 {loaded} None ", "")


CHANGED = """import sys
from pathlib import Path
from relength.runs.executors import executor
from relength.training import course, provenance

def told():
    from relength.training import course, provenance
    return course.CHECKPOINT_SECONDS, provenance.code_fingerprint()

if __name__ == "__main__":
    found = []
    for seconds in ("20.0", "777.0"):
        file = Path(course.__file__)
        file.write_text(file.read_text().replace("SECONDS = 20.0", f"SECONDS = {seconds}"))
        with executor(2) as pool:
            found.append(pool.submit(told).result())
    print(len(set(found)), found[0][0])
"""


@pytest.mark.weekly
def test_the_code_that_a_record_names_is_the_code_that_its_worker_has_loaded(python, tmp_path):
    for part in ("lib", "book/claims"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "run.py").write_text(CHANGED)
    done = python(tmp_path / "run.py", PYTHONPATH=str(tmp_path / "lib"))
    assert done.communicate() == ("1 20.0\n", "")
