"""Freshness: a probe tells code that gives a record from code that does not, and other data."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch

from relength.errors import RelengthError
from relength.paths import BOOK
from relength.runs import execute, verify
from relength.runs import store as store_module
from relength.runs.campaign import Campaign
from relength.runs.run import run_or_load
from relength.runs.store import Store, usable
from relength.specs.experiments import experiments
from relength.specs.spec import RunSpec, make_spec
from relength.training import provenance

EXPERIMENT = experiments()["mla_table2"]


def recorded(folder, task="copy", **changes):
    """A store with one run of the experiment, or with one like it when something is changed."""
    spec = next(
        s
        for s in EXPERIMENT.grid("smoke", 3)
        if (s.model.name, s.model.arm, s.task.name) == ("OneStepAttn", "released", task)
    )
    spec = make_spec(**spec.model_dump() | changes)
    store = Store(folder)
    (record,) = run_or_load([spec], store, EXPERIMENT, train=True, workers=1)
    return store, record


def rewrite(store, change):
    """Put a changed copy of the only record in its place."""
    (file,) = store.files()
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record) + "\n")


def test_todays_code_reproduces_what_it_recorded(tmp_path):
    store, _ = recorded(tmp_path)
    ((number, total, probe),) = verify.probes(usable(store.records()))
    assert (number, total, probe.outcome) == (1, 1, "fresh")
    assert probe.difference < verify.TOLERANCE / 10


def test_a_loss_that_is_off_by_one_percent_is_stale_and_leaves_the_tables(tmp_path):
    store, record = recorded(tmp_path)
    rewrite(store, lambda r: r["first_losses"].__setitem__(2, r["first_losses"][2] * 1.01))
    done = [probe for _, _, probe in verify.probes(usable(store.records()))]
    assert [probe.outcome for probe in done] == ["stale"]
    assert done[0].difference == pytest.approx(0.01, rel=0.05)
    assert [r["run_id"] for r in store.usable()] == [record["run_id"]]
    verify.write(store, done)
    assert store.usable() == []
    assert len(store.records()) == 1, "nothing recorded is lost"


@pytest.mark.parametrize("parting", [1, 2, 4])
@pytest.mark.parametrize(("wrong_at", "outcome"), [(3, "stale"), (12, "fresh")])
def test_numbers_count_until_rounding_alone_drives_a_run_apart(
    tmp_path, monkeypatch, wrong_at, outcome, parting
):
    store, _ = recorded(tmp_path)
    length = 20
    first = [2.0] * length
    # One twin parts at the seventh number: a rounding error has grown to more than PARTING. By
    # chance the others stay close.
    twin = [2.0 + 1e-8 * 4**step for step in range(length)]
    wrong = [x * 1.1 if i >= wrong_at else x for i, x in enumerate(first)]
    monkeypatch.setattr(
        verify, "first_numbers", lambda spec, larger_by=0: twin if larger_by == parting else first
    )
    rewrite(store, lambda r: r.update(first_losses=wrong[:-1]))
    rewrite(store, lambda r: r["probe"].update(validation_loss=wrong[-1]))
    ((_, _, probe),) = verify.probes(usable(store.records()))
    assert probe.outcome == outcome


def test_a_run_whose_losses_come_out_is_replayed_once(tmp_path, monkeypatch):
    _, record = recorded(tmp_path)
    asked = []
    then = [*record["first_losses"], record["probe"]["validation_loss"]]
    monkeypatch.setattr(
        verify, "first_numbers", lambda spec, larger_by=0: asked.append(larger_by) or then
    )
    assert verify.replay(record) == 0 and asked == [0]


def test_a_twin_whose_pseudo_inverse_does_not_converge_says_nothing(tmp_path, monkeypatch):
    """The second twin parts before the number that is wrong, which so tells nothing of the code."""
    _, record = recorded(tmp_path)

    now = [2.0] * 20
    record["first_losses"] = [*now[:12], 3.0, *now[13:-1]]
    record["probe"]["validation_loss"] = now[-1]

    def numbers(spec, larger_by=0):
        if larger_by == verify.TWINS[0]:
            raise torch.linalg.LinAlgError("the algorithm failed to converge")
        return [x + (larger_by > 0 and step > 5) for step, x in enumerate(now)]

    monkeypatch.setattr(verify, "first_numbers", numbers)
    assert verify.replay(record) == 0
    monkeypatch.setattr(verify, "TWINS", verify.TWINS[:1])
    assert verify.replay(record) is None  # without a twin nobody knows what rounding does


def test_records_made_from_other_data_are_neither_fresh_nor_stale(tmp_path):
    store, _ = recorded(tmp_path, task="lookup")
    rewrite(store, lambda r: r["provenance"]["data"].update(sha256={"train.tsv": "0" * 64}))
    done = [probe for _, _, probe in verify.probes(usable(store.records()))]
    assert [probe.outcome for probe in done] == ["not comparable"]
    verify.write(store, done)
    assert len(store.usable()) == 1


def test_an_arithmetic_that_a_cpu_does_not_have_is_not_comparable(tmp_path):
    store, _ = recorded(tmp_path)

    def on_a_gpu(record):
        record["spec"]["training"]["products"] = "tf32"
        record["key"] = RunSpec.recorded(record["spec"]).key

    rewrite(store, on_a_gpu)
    (record,) = store.records()
    assert verify.replay(record) is None
    with pytest.raises(RelengthError, match="arithmetic that needs a GPU"):
        list(verify.retrain(store, [record]))


def test_training_again_agrees_with_the_record_and_is_kept(tmp_path):
    store, record = recorded(tmp_path)
    (done,) = verify.retrain(store, verify.sample(store, 1))
    assert done.agrees and "agrees with its record" in done.sentence
    assert done.identical and not done.elsewhere
    assert [r["run_id"] for r in store.records()] == [record["run_id"], done.later["run_id"]]
    assert [r["run_id"] for r in store.usable()] == [record["run_id"]], "tables keep the first one"
    (kept,) = verify.repeats(store)
    assert (kept.earlier["run_id"], kept.later["run_id"]) == (
        record["run_id"],
        done.later["run_id"],
    )


def test_training_again_says_where_it_differs(tmp_path):
    store, _ = recorded(tmp_path)

    def solved(record):
        right = {"exact_match": 1.0, "first_errors": [0] * 10}
        record["checkpoints"]["selected"]["tests"]["30"].update(right)

    rewrite(store, solved)
    (done,) = verify.retrain(store, verify.sample(store, 1))
    assert not done.agrees and not done.identical and done.points["30"] == -100
    assert "differs from its record" in done.sentence and "30 -100.0" in done.sentence


def test_all_executions_of_one_run_are_compared_with_one_training(tmp_path):
    store, record = recorded(tmp_path)
    store.append("mla", record | {"run_id": "f" * 16})
    done = list(verify.retrain(store, verify.of_key(store, record["key"])))
    assert [comparison.agrees for comparison in done] == [True, True]
    assert len(store.records()) == 3
    with pytest.raises(RelengthError, match="No run of key 000000000000 is recorded"):
        verify.of_key(store, "0" * 12)


def test_a_run_that_fails_the_second_time_is_kept_and_named(tmp_path, monkeypatch):
    store, record = recorded(tmp_path)

    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(execute, "train", broken)
    monkeypatch.setattr("relength.runs.campaign.Campaign", partial(Campaign, workers=1))
    (done,) = verify.retrain(store, verify.of_key(store, record["key"]))
    assert not done.agrees and not done.identical and done.points == {}
    assert done.sentence.endswith("failed when it was trained again (ZeroDivisionError)")
    assert [r["status"] for r in store.records()] == ["ok", "failed"]
    assert verify.repeats(store) == []


def test_executions_are_compared_with_the_first(tmp_path, make_record):
    store = Store(tmp_path)
    for day in (3, 1, 2, 4):
        record = make_record(run_id=f"{day}" * 16)
        record["provenance"] |= {"created": f"2026-11-0{day}T00:00:00Z", "torch": f"2.{day}"}
        store.append("mla", record)
    seen = [(c.earlier["run_id"][0], c.later["run_id"][0]) for c in verify.repeats(store)]
    assert seen == [("1", "2"), ("1", "3"), ("1", "4")]
    assert all(c.elsewhere for c in verify.repeats(store))


def test_a_processor_that_may_not_use_all_its_instructions_is_another_device(monkeypatch):
    def named() -> str:
        provenance.device_name.cache_clear()
        return provenance.device_name("cpu")

    def has(flags: str) -> None:
        told = {"flags": flags, "model name": "Some Processor"}
        monkeypatch.setattr(provenance, "_described", told.get)

    for variable in provenance.INSTRUCTION_LIMITS:
        monkeypatch.delenv(variable, raising=False)
    has("sse avx2 avx512f")
    whole = named()
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    assert named() == f"{whole} limited to AVX2"
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert named() == f"{whole} limited to AVX2"
    monkeypatch.setenv("MKL_ENABLE_INSTRUCTIONS", "SSE4_2")
    assert named() == f"{whole} limited to AVX2/SSE4_2"
    monkeypatch.delenv("MKL_ENABLE_INSTRUCTIONS")
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA")
    assert named() == f"{whole} limited to DEFAULT", "of PyTorch it is the least"
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx512")
    for unlimited in ("", "all", "DEFAULT"):
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", unlimited)
        assert named() == whole, "of oneDNN it is all there is"
    for asked in ("AVX2", "AVX512_CORE"):
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", asked)
        has("sse avx2 avx512f")
        assert named() == f"{whole} limited to {asked}"
        has("sse avx2")
        assert named() == whole, "it has none of those that it is told to do without"
    monkeypatch.undo()
    provenance.device_name.cache_clear()


def test_pytorch_computes_with_the_instructions_that_the_guide_limits_it_to():
    guide = (BOOK / "guide_verify.md").read_text()
    (limit,) = re.findall(r"ATEN_CPU_CAPABILITY=(\w+)", guide)
    ask = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    done = subprocess.run(
        [sys.executable, "-c", ask],
        env=os.environ | {"ATEN_CPU_CAPABILITY": limit},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() in (limit.upper(), "DEFAULT")


def test_executions_on_generated_data_are_not_compared_with_others(tmp_path, make_record):
    store = Store(tmp_path)
    for day in (1, 2, 3, 4):
        record = make_record(run_id=f"{day}" * 16)
        data = {"source": "generated", "reason": "no network"} if day in (1, 3) else {}
        record["provenance"] |= {"created": f"2026-11-0{day}T00:00:00Z", "data": data}
        store.append("mla", record)
    seen = [(c.earlier["run_id"][0], c.later["run_id"][0]) for c in verify.repeats(store)]
    assert seen == [("1", "3"), ("2", "4")]


def test_what_was_executed_least_often_is_drawn_first(tmp_path):
    store, one = recorded(tmp_path)
    spec = next(s for s in EXPERIMENT.grid("smoke", 4) if s.key != one["key"])
    (other,) = run_or_load([spec], store, EXPERIMENT, train=True, workers=1)
    for number, (again, left) in enumerate([(one, other), (other, None), (other, one)]):
        store.append("mla", again | {"run_id": f"{number:016x}"})
        if left is not None:
            assert [r["key"] for r in verify.sample(store, 1)] == [left["key"]]


def test_runs_with_other_settings_enter_no_table_and_need_no_probe(tmp_path):
    store, _ = recorded(tmp_path, training={"name": "epochs", "epochs": 1, "tie": 0.5})
    assert list(verify.probes(usable(store.records()))) == []
    assert verify.sample(store, 1) == []


def test_what_lacks_its_data_here_keeps_its_earlier_outcome(tmp_path, monkeypatch):
    store, record = recorded(tmp_path)
    rewrite(store, lambda r: r["first_losses"].__setitem__(2, r["first_losses"][2] * 1.01))
    done = [probe for _, _, probe in verify.probes(usable(store.records()))]
    verify.write(store, done)
    assert store.stale == {record["run_id"]}
    task = type(EXPERIMENT.spec_of(record).task)
    monkeypatch.setattr(task, "lacks", lambda self: "it was deleted")
    every = usable(store.records())
    (left_out,) = verify.without_data(every)
    assert left_out["run_id"] == record["run_id"] and not [*verify.probes(every)]
    verify.write(store, [], [left_out])
    assert store.stale == {record["run_id"]}
    monkeypatch.setattr(verify, "code_fingerprint", lambda: "another")
    verify.write(store, [], [left_out])
    assert store.stale == {record["run_id"]}, "seen to be stale, and not seen otherwise"
    (fresh,) = [replace(probe, difference=0.0) for probe in done]
    verify.write(store, [fresh])
    verify.write(store, [], [left_out])
    (kept,) = store.replayed()["probes"]
    assert kept["outcome"] == "fresh" and kept["run_ids"] == [record["run_id"]]
    monkeypatch.setattr(verify, "code_fingerprint", lambda: "a third one")
    verify.write(store, [], [left_out])
    assert store.replayed()["probes"][0]["outcome"] == "not comparable"


def test_nothing_is_replayed_whose_outcome_could_not_be_kept(store, make_record, monkeypatch):
    from relength.cli.check import verify as command

    def never(_):
        raise AssertionError("something was replayed")

    store.append("mla", make_record())
    monkeypatch.setattr(verify, "probes", never)
    monkeypatch.setattr(store_module, "LOCK_SECONDS", 0.1)
    with store.locked(store.freshness), pytest.raises(RelengthError, match="freshness"):
        command(store.path)
