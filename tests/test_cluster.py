"""On Dask workers everything is as on one core: the same records, each once, whoever is lost."""

import gc
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType

import pytest
import torch

from relength.cli import main as cli
from relength.errors import RelengthError
from relength.paths import BOOK
from relength.runs import campaign
from relength.runs import cluster as cluster_module
from relength.runs.cluster import dask_executor, on_worker
from relength.runs.execute import Job, execute
from relength.runs.executors import SerialExecutor
from relength.runs.plan import Run
from relength.runs.run import run_or_load
from relength.runs.store import Store
from relength.training import provenance

distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
psutil = pytest.importorskip("psutil", reason="needs the extra cluster")


def plain(record: dict) -> dict:
    """Keep what two executions of a spec have in common, as it is read back: no times, no
    identity.
    """
    record = json.loads(json.dumps(record))
    return {k: v for k, v in record.items() if k not in ("run_id", "cost", "provenance")}


def job_of(store, *specs, **options) -> Job:
    return Job(specs, "mla_table2", "cpu", store.checkpoints, **options)


def assert_each_once(records: list[dict], specs: list) -> None:
    assert [record.get("error") for record in records] == [None] * len(specs)
    assert sorted(record["key"] for record in records) == sorted(spec.key for spec in specs)


def wait_until(condition: Callable[[], object], seconds: float = 30) -> object:
    """The first value of the condition that is true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return value


@pytest.fixture(scope="module")
def cluster():
    """A scheduler with two workers, as another command would have started them."""
    with cluster_module._local_cluster(2, "cpu") as started:
        yield started


# --- on this machine ----------------------------------------------------------------------------


@pytest.mark.smoke
def test_two_dask_workers_record_what_one_process_records_and_leave_nothing_behind(
    tiny, table_2, store
):
    before = set(psutil.Process().children(recursive=True))
    stacked = [tiny(epochs=1, seed=seed) for seed in range(2)]
    alone = tiny("copy", "Content", epochs=1)
    places: set[str] = set()
    workers: set[psutil.Process] = set()

    def look() -> None:
        new = set(psutil.Process().children(recursive=True)) - before
        workers.update(p for p in new if "resource_tracker" not in " ".join(p.cmdline()))
        for process in (psutil.Process(), *workers):
            connections = process.net_connections(kind="inet")
            places.update(c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN)

    specs = [*stacked, alone]
    runs, records = [Run(table_2, spec) for spec in specs], []
    for record in campaign.Campaign(runs, store, cluster="local", workers=2, stack=2).records():
        records.append(record)
        look()
    assert_each_once(store.records(), specs)
    found = {record["key"]: record for record in records}
    assert [found[spec.key]["cost"].get("stacked") for spec in specs] == [2, 2, None]
    assert list(store.checkpoints.iterdir()) == []
    for job in (job_of(store, *stacked), job_of(store, alone)):
        for record in execute(job):
            assert plain(found[record["key"]]) == plain(record)
    assert {record["provenance"]["threads"] for record in records} == {1}
    assert places == {"127.0.0.1"}  # nothing that another machine could reach
    assert len(workers) == 2 and psutil.wait_procs(workers, timeout=10)[1] == []


@pytest.mark.gpu
def test_on_a_gpu_one_dask_worker_trains_stacks_side_by_side(tiny, table_2, store):
    specs = [tiny(epochs=1, seed=seed) for seed in range(4)]
    options = {"train": True, "cluster": "local", "device": "cuda", "workers": 2, "stack": 2}
    run_or_load(specs, store, table_2, **options)
    assert_each_once(store.records(), specs)


# --- workers that are lost ----------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.weekly
def test_a_run_whose_worker_is_killed_is_finished_elsewhere_and_recorded_once(
    tiny, table_2, store, cluster
):
    specs = [tiny(seed=seed, epochs=60, patience=60) for seed in range(3)]
    killed: list[tuple[int, int]] = []

    def kill_one() -> None:
        with distributed.Client(cluster, set_as_default=False) as client:

            def busy() -> list[int]:
                seen = client.run(lambda dask_worker: (os.getpid(), dask_worker.state.executing))
                return [pid for pid, jobs in seen.values() if jobs]

            pid = wait_until(busy)[0]
            time.sleep(0.2)
            assert pid in busy()
            os.kill(pid, signal.SIGKILL)
            killed.append((pid, len(store.records()) if store.path.exists() else 0))

    killer = threading.Thread(target=kill_one)
    killer.start()
    run_or_load(specs, store, table_2, train=True, cluster=cluster.scheduler_address)
    killer.join()
    [(pid, recorded)] = killed
    assert not psutil.pid_exists(pid) and recorded < len(specs)
    assert_each_once(store.records(), specs)
    [serial] = execute(job_of(store, specs[0]))
    [ours] = [record for record in store.records() if record["key"] == specs[0].key]
    assert plain(ours) == plain(serial)


def test_a_run_that_ends_every_worker_is_said_in_one_sentence(cluster, monkeypatch, store, tiny):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with (
        pytest.raises(RelengthError, match=r"ended 1 Dask workers.*want of memory.*same command"),
        dask_executor(cluster.scheduler_address, 1) as pool,
    ):
        pool.submit(_end, job_of(store, tiny())).result(timeout=60)


def _end(_: Job) -> None:
    os._exit(1)


class Twice(SerialExecutor):
    """Does everything twice, as a cluster may that has lost sight of a worker for a while."""

    def submit(self, fn, /, *args, **kwargs):
        first = super().submit(fn, *args, **kwargs).result()
        return super().submit(lambda *_: [*first, *fn(*args, **kwargs)])


def test_a_run_that_completes_twice_is_recorded_once(tiny, table_2, store, monkeypatch):
    monkeypatch.setattr(campaign, "place", lambda *_: nullcontext(Twice()))
    records = run_or_load([tiny(epochs=1)], store, table_2, train=True)
    assert records == store.records() and len(records) == 1


# --- workers that are unlike this process -------------------------------------------------------


def test_a_worker_with_other_code_is_refused(tiny, table_2, store, cluster, monkeypatch):
    monkeypatch.setattr(provenance, "code_fingerprint", lambda: "0" * 12)
    with pytest.raises(RelengthError, match=r"has other code .*started with 0{12}.*one version"):
        run_or_load([tiny()], store, table_2, train=True, cluster=cluster.scheduler_address)
    assert store.records() == []


@pytest.mark.weekly  # a worker with other code is refused in the same place
def test_a_worker_without_the_package_says_so(cluster, store, tiny, monkeypatch):
    module = ModuleType("only_here")
    exec("def work(job): return []", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    with (
        pytest.raises(RelengthError, match=r"no module 'only_here': install"),
        dask_executor(cluster.scheduler_address, 1) as pool,
    ):
        pool.submit(module.work, job_of(store, tiny())).result(timeout=60)


def test_a_worker_that_does_not_share_the_store_keeps_states_to_itself(tiny, store):
    seen = []

    def work(job: Job) -> list:
        seen.append(job.checkpoints)
        assert job.checkpoints.is_dir()
        return execute(job)

    job = job_of(store, tiny(epochs=1))
    [record] = on_worker(provenance.code_fingerprint(), work, job)
    assert record["status"] == "ok"
    assert seen[0] != store.checkpoints and not seen[0].exists() and not store.path.exists()


def test_a_worker_begins_nothing_after_the_budget(tiny, store):
    late = job_of(store, tiny(), deadline=time.time() - 1)
    assert on_worker(provenance.code_fingerprint(), execute, late) == []
    assert not store.path.exists()


@pytest.mark.weekly
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_is_asked_of_the_workers_and_not_of_the_machine_that_starts_them(
    tiny, table_2, store, cluster
):
    options = {"train": True, "device": "cuda", "cluster": cluster.scheduler_address}
    with pytest.raises(RelengthError, match="no GPU here"):
        run_or_load([tiny()], store, table_2, **options)
    options["device"] = "gpu"
    with pytest.raises(RelengthError, match="Unknown device 'gpu'"):
        run_or_load([tiny()], store, table_2, **options)


# --- schedulers that are not there --------------------------------------------------------------


def test_a_scheduler_that_cannot_be_reached_is_one_sentence_and_exit_code_2(
    tmp_path, monkeypatch, capsys
):
    assert cluster_module.CONNECT_SECONDS <= 5
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    command = ["relength", "run", "mla_table2", "--scale", "smoke", "--results", str(tmp_path)]
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        monkeypatch.setattr(sys, "argv", [*command, "--executor", "dask", "--scheduler", address])
        with pytest.raises(SystemExit) as ending:
            cli.main()
    gc.enable()
    assert ending.value.code == 2
    problems = capsys.readouterr().err
    assert re.fullmatch(f"Error: No Dask scheduler answers at '{address}' .*\n", problems)
    assert "`dask scheduler`" in problems


@pytest.mark.parametrize("address", ["", "host", "http://host:80", "tcp://host:port"])
def test_what_is_no_address_is_refused(tiny, table_2, store, address):
    with pytest.raises(RelengthError, match="an address is written tcp://host:port"):
        run_or_load([tiny()], store, table_2, train=True, cluster=address)


def test_something_else_at_that_address_is_refused(tiny, table_2, store, cluster, monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 0.5)
    worker = next(iter(cluster.scheduler.workers))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for address, reason in (
            (worker, "it is a Dask worker"),
            (f"tcp://127.0.0.1:{port}", "no answer"),
        ):
            with pytest.raises(RelengthError, match=f"{address}.*{reason}"):
                run_or_load([tiny()], store, table_2, train=True, cluster=address)


def test_a_scheduler_that_goes_away_is_said_in_one_sentence(tiny, store, monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 1.0)
    with (
        cluster_module._local_cluster(0, "cpu") as idle,
        pytest.raises(RelengthError, match=r"has gone away.*same command"),
        dask_executor(idle.scheduler_address, 1) as pool,
    ):
        future = pool.submit(execute, job_of(store, tiny()))
        idle.close()
        future.result(timeout=30)


def test_without_dask_the_way_to_install_it_is_named(tiny, table_2, store, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(RelengthError, match=r"Dask is not installed.*\[cluster\]"):
        run_or_load([tiny()], store, table_2, train=True, cluster="local")


def test_nothing_to_train_needs_no_worker(table_2, store):
    assert run_or_load([], store, table_2, train=True, cluster="tcp://nowhere:1") == []


def test_dask_seldom_interrupts_the_workers_of_this_machine(cluster):
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        found = client.run(
            lambda dask_worker: {
                name: callback.callback_time  # milliseconds
                for name, callback in dask_worker.periodic_callbacks.items()
            }
        )
    for often in found.values():
        assert often["tick"] >= 1000 and often["monitor"] >= 5000
        assert not [name for name in often if name.startswith("profile")]
    assert len(found) == 2


# --- batch systems ------------------------------------------------------------------------------

SBATCH = """#!/bin/sh
sed 's/^\\(.* -m distributed\\)/exec \\1/' "$1" > job.sh
sh job.sh > job.log 2>&1 &
echo $! > job.pid
echo "Submitted batch job $!"
"""


@pytest.mark.smoke
@pytest.mark.weekly  # as all guides but those for builders
def test_the_script_for_slurm_trains_on_a_worker_that_it_submits(tmp_path, python):
    pytest.importorskip("dask_jobqueue", reason="needs the extra cluster")
    script = re.search(r"```python\n(.*?)```", (BOOK / "cluster.md").read_text(), re.DOTALL)[1]
    loopback = "lo" if sys.platform == "linux" else "lo0"
    changes = {"=16": "=1", '"32GB"': '"2GB"', "walltime": f'interface="{loopback}", walltime'}
    for text, instead in changes.items():
        assert text in script
        script = script.replace(text, instead)
    (tmp_path / "campaign.py").write_text(script)
    for name, text in {"sbatch": SBATCH, "scancel": '#!/bin/sh\nkill "$@"\n'}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    command = ["mla_table2", "--scale", "smoke", "--task", "copy", "--model", "Content"]
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    campaign = python("campaign.py", *command, "--results", "shared", cwd=tmp_path, PATH=path)
    _, problems = campaign.communicate(timeout=120)
    assert campaign.returncode == 0, problems
    [record] = Store(tmp_path / "shared").records()
    assert record["status"] == "ok"
    assert "#SBATCH -p short" in (tmp_path / "job.sh").read_text()
    worker = int((tmp_path / "job.pid").read_text())
    wait_until(lambda: not psutil.pid_exists(worker))
