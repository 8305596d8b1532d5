"""Campaigns: the most valuable run first, at measured prices, within a budget; nothing is lost."""

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import handmade
import pytest
from handmade import amounts

from relength import stopping
from relength.errors import RelengthError
from relength.report import scoreboard
from relength.report.runs import Runs
from relength.runs import campaign as campaign_module
from relength.runs import executors, pace, progress
from relength.runs.campaign import Campaign
from relength.runs.plan import Run, choose, missing
from relength.runs.prices import Device, Pace, Prices, Timed, own_runs, pace_of
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.specs.margins import load_margins
from relength.specs.spec import make_spec
from relength.training import alone as training
from relength.training.provenance import device_name

TABLE_2 = experiments()["mla_table2"]
HERE = device_name("cpu")


def spec_of(model="Content", task="copy", scale="reduced", seed=0, arm="released"):
    """One of the experiment's own specs."""
    return next(
        spec
        for spec in TABLE_2.grid(scale, seed)
        if (spec.model.name, spec.task.name, spec.model.arm) == (model, task, arm)
    )


def record(spec, seconds=128.0, steps=None, created="2026-01-01T00:00:00Z", **provenance):
    """A record of a run that took so long on this machine."""
    made = handmade.record(spec, lambda *_: 1.0, created)
    made["cost"] |= {"training_seconds": seconds, "evaluation_seconds": 0.0}
    made["cost"] |= {"steps": steps or 313 * 25}
    made["provenance"] |= {"device_name": HERE, **provenance}
    return made


def stored(folder, records) -> Store:
    store = Store(folder)
    for number, made in enumerate(records):
        store.append("mla", made | {"run_id": f"{number:016x}"})
    return store


def prices_of(*records) -> Prices:
    return Prices([(TABLE_2.spec_of(r), r) for r in records], Device("cpu", HERE))


# --- prices -------------------------------------------------------------------------------------


def test_a_price_is_what_such_runs_took_on_this_device_and_nothing_else_has_one():
    prices = prices_of(record(spec_of(), seconds=100.0, steps=1000))
    assert prices.seconds(spec_of(seed=4)) == pytest.approx(100)
    assert prices.seconds(spec_of(scale="paper")) == pytest.approx(0.1 * 100 * 313)
    assert prices.seconds(spec_of(task="lookup")) is None
    assert prices.seconds(spec_of("Relative")) is None
    assert prices.total([spec_of(), spec_of("Relative")]) == (pytest.approx(100), 1)


def test_runs_elsewhere_and_smoke_runs_tell_no_price_but_how_long_training_goes_on():
    elsewhere = record(spec_of(), device_name="another processor", steps=500)
    assert prices_of(elsewhere).seconds(spec_of(seed=1)) is None
    assert prices_of(elsewhere).steps(spec_of(seed=1)) == 500
    assert prices_of(record(spec_of(scale="smoke"))).seconds(spec_of()) is None


def test_a_run_of_two_devices_tells_no_price_of_either():
    """Its seconds are a stack's share on a GPU and a core's, say, in one number."""
    spec = spec_of()
    assert prices_of(record(spec, other_devices=["NVIDIA H100"])).seconds(spec) is None
    both = record(spec, other_devices=["NVIDIA H100"])
    assert pace_of(both) is None
    assert Device.of(both) not in {Device("cpu", HERE), Device("cuda", "NVIDIA H100")}
    assert str(Device.of(both)) == f"NVIDIA H100 and {HERE}"


def test_what_a_device_has_never_run_has_the_price_of_the_last_of_others_that_has():
    names = HERE, "a slow processor", "a fast processor"
    here, slow, fast = (Device("cpu", name) for name in names)
    made = [
        *(record(spec_of(task=t), 100.0, 1000, device_name=slow.name) for t in ("recopy", "copy")),
        record(spec_of(task="recopy", seed=1), 10.0, 1000, device_name=fast.name),
        record(spec_of(task="reverse_copy"), 1.0, 1000),
    ]
    prices = Prices([(TABLE_2.spec_of(r), r) for r in made], here, [slow, fast])
    assert prices.seconds(spec_of(task="recopy")) == pytest.approx(10)
    assert prices.seconds(spec_of(task="copy")) == pytest.approx(100)  # the fast one has none
    assert prices.seconds(spec_of(task="reverse_copy")) == pytest.approx(1)


def test_a_task_without_runs_has_the_pace_of_its_family_until_its_own_is_known():
    copied = prices_of(
        record(spec_of(), seconds=100.0, steps=1000),
        record(spec_of(task="recopy"), seconds=300.0, steps=1000),
        record(spec_of(task="recopy", seed=1), seconds=900.0, steps=1000),  # beside other programs
        record(spec_of(task="reverse_recopy"), seconds=700.0, steps=1000),
    )
    steps = copied.steps(spec_of(task="reverse_copy"))
    assert copied.seconds(spec_of(task="reverse_copy")) == pytest.approx(0.3 * steps)
    assert copied.knows(spec_of(seed=3)) and not copied.knows(spec_of(task="reverse_copy"))
    assert copied.seconds(spec_of(task="recopy")) == pytest.approx(300)
    copied.note(spec_of(task="reverse_copy"), Pace(0.2))
    assert copied.seconds(spec_of(task="reverse_copy")) == pytest.approx(0.2 * steps)


def test_a_few_steps_that_were_timed_are_a_price_where_no_run_is_one():
    here, spec, other = Device("cpu", HERE), spec_of(), spec_of(task="reverse_copy")
    few = [
        Timed(here, spec, Pace(0.5)),
        Timed(here, other, Pace(0.2)),
        Timed(Device("cpu", "another processor"), spec, Pace(1e-3)),
    ]
    assert Prices([], here, few=few).pace(spec) == Pace(0.5)
    assert Prices([], here, few=few).pace(spec_of(task="recopy")) == Pace(0.5)
    made = [(spec, record(spec, seconds=100.0, steps=1000))]
    known = Prices(made, here, few=few)
    assert (known.pace(spec), known.pace(other)) == (Pace(0.1), Pace(0.2))


def test_a_price_is_that_of_the_run_that_had_its_core_to_itself():
    made = [record(spec_of(seed=s), t, 100) for s, t in enumerate((30.0, 10.0, 900.0))]
    assert prices_of(*made).seconds(spec_of()) == pytest.approx(10)


def test_jobs_that_shared_a_gpu_share_its_time():
    spec = spec_of()
    made = record(spec, seconds=80.0, steps=100, device="cuda", device_name="a GPU")
    made["cost"] |= {"stacked": 40, "sharing": 4}
    prices = Prices([(spec, made)], Device("cuda", "a GPU"))
    assert prices.pace(spec) == Pace(80 / 4 / 100, together=40)


# --- order --------------------------------------------------------------------------------------


def test_the_cell_with_the_fewest_seeds_comes_first_then_the_cheapest_run(tmp_path):
    store = stored(
        tmp_path,
        [
            record(spec_of("Content"), seconds=200.0),
            record(spec_of("Relative", seed=3), seconds=50.0),
            record(spec_of("Relative", "recopy", seed=3), seconds=10.0),
            record(spec_of("Relative", "recopy", seed=4), seconds=10.0),
        ],
    )
    wanted = [
        *(spec_of("LocAttn", seed=seed) for seed in range(2)),
        *(spec_of("Content", seed=seed) for seed in range(1, 3)),
        *(spec_of("Relative", seed=seed) for seed in range(2)),
        spec_of("Relative", "recopy"),
    ]
    campaign = Campaign([Run(TABLE_2, spec) for spec in wanted], store)
    order = [(r.spec.model.name, r.spec.task.name, r.spec.seed) for r in campaign.runs]
    assert order == [
        ("LocAttn", "copy", 0),  # nothing is recorded of it
        ("Relative", "copy", 0),  # one seed each: the cheaper one first
        ("Content", "copy", 1),
        ("LocAttn", "copy", 1),  # its price is not known
        ("Relative", "recopy", 0),  # two seeds each
        ("Relative", "copy", 1),
        ("Content", "copy", 2),
    ]


def test_of_equally_valuable_runs_the_one_that_has_begun_comes_first(tmp_path):
    store = Store(tmp_path)
    specs = [spec_of("Content"), spec_of("Relative")]
    store.checkpoints.mkdir(parents=True)
    (store.checkpoints / f"{specs[1].key}.pt").touch()
    campaign = Campaign([Run(TABLE_2, spec) for spec in specs], store)
    assert [run.spec for run in campaign.runs] == specs[::-1]


def test_everything_is_wanted_unless_something_is_named(tmp_path):
    whole = choose((), "reduced", 2)
    wanted = {spec.key for e in experiments().values() for spec in e.specs("reduced", range(2))}
    assert {run.spec.key for run in whole} == wanted
    assert len({run.spec.key for run in whole}) == len(whole)
    assert [run.spec.seed for run in whole] == sorted(run.spec.seed for run in whole)
    key = spec_of(seed=1).key
    (one,) = choose(("mla_table2",), "reduced", 2, key=[key])
    assert one.spec.key == key
    with pytest.raises(RelengthError, match=r"key '000000000000'.*page of provenance"):
        choose((), "reduced", 2, key=["0" * 12])


def test_as_many_seeds_are_wanted_as_verdicts_need(monkeypatch):
    for number in (5, 7):
        margins = load_margins().model_copy(update={"least_seeds": number})
        monkeypatch.setattr("relength.runs.plan.load_margins", lambda margins=margins: margins)
        assert {run.spec.seed for run in choose(("mla_scan",), "smoke", None)} == {*range(number)}
        usual = [r for r in choose(("mla_table2",), "smoke", None) if r.spec.seed >= number]
        assert {run.spec.model.name for run in usual} == {*TABLE_2.many}


def test_a_run_that_two_tables_want_is_trained_once_and_shown_by_both(tmp_path):
    ablations = experiments()["mla_ablations"]
    both = choose(("mla_ablations", "mla_table2"), "reduced", 2, task=["copy"])
    assert len({run.spec.key for run in both}) == len(both)
    shared = [run for run in both if run.spec.model.name == "OneStepAttn"]
    assert {run.experiment for run in shared} == {TABLE_2} and len(shared) == 4
    store = stored(tmp_path, [record(run.spec) for run in shared])
    assert set(missing(both, store)) == set(both) - set(shared)
    assert len(own_runs(store)) == 4
    for found in (TABLE_2, ablations):
        shown = Runs.read(found, "reduced", 2, store, models=["OneStepAttn"])
        assert {r["key"] for r in shown.records} == {run.spec.key for run in shared}
        assert {r["experiment"] for r in shown.records} == {found.name}
    rows = scoreboard.runs(store).drop_duplicates(["experiment", "key"])
    asking = rows["experiment"].value_counts().to_dict()
    assert asking[TABLE_2.name] == asking[ablations.name] == 4


def test_what_is_recorded_in_any_of_the_stores_is_not_missing(tmp_path):
    runs = choose(("mla_table2",), "reduced", 1, task=["copy"])
    stores = [stored(tmp_path / str(i), [record(run.spec)]) for i, run in enumerate(runs[:2])]
    assert missing(runs, *stores) == runs[2:]


# --- budgets ------------------------------------------------------------------------------------


def planned(tmp_path, specs, budget, **seconds):
    """A campaign in which these models' runs have these prices, about to choose its first job."""
    campaign = Campaign(
        [Run(TABLE_2, spec) for spec in specs], Store(tmp_path), budget=budget, workers=1
    )
    for spec in specs:
        if spec.model.name in seconds:
            steps = campaign.prices.steps(spec)
            campaign.prices.note(spec, Pace(seconds[spec.model.name] / steps))
    campaign.deadline = time.time() + budget
    campaign.waiting = campaign._jobs()
    return campaign


def test_a_run_that_fits_comes_before_one_that_does_not(tmp_path):
    specs = [spec_of("Content"), spec_of("Relative")]
    campaign = planned(tmp_path, specs, 100, Content=1000, Relative=50)
    assert campaign._next().specs == (specs[1],)
    assert campaign._next().specs == (specs[0],)  # begun, and left to a resume
    assert campaign._next() is None


def test_a_run_whose_first_epoch_does_not_fit_is_not_begun(tmp_path):
    spec = spec_of()  # 25 epochs
    assert planned(tmp_path, [spec], 10, Content=1000)._next() is None
    assert planned(tmp_path, [spec], 50, Content=1000)._next().specs == (spec,)


def test_a_stack_takes_as_long_as_the_full_one_that_was_measured(tmp_path):
    specs = [spec_of(seed=seed) for seed in range(3)]
    campaign = Campaign([Run(TABLE_2, spec) for spec in specs], Store(tmp_path), stack=8)
    (job,) = campaign._jobs()
    campaign.prices.note(specs[0], Pace(0.01, together=40))
    assert campaign._wall(job) == pytest.approx(
        0.01 * 40 * specs[0].training.most_steps(specs[0].task)
    )


def test_a_campaign_takes_every_core_unless_all_of_it_is_of_scale_smoke(tmp_path, monkeypatch):
    monkeypatch.setattr(executors.os, "cpu_count", lambda: 8)
    smoke, reduced = Run(TABLE_2, spec_of(scale="smoke")), Run(TABLE_2, spec_of())
    assert Campaign([smoke], Store(tmp_path)).workers == 1
    assert Campaign([smoke, reduced], Store(tmp_path)).workers == 8
    assert Campaign([smoke], Store(tmp_path), workers=3).workers == 3


def test_the_time_left_is_that_of_the_runs_ahead_shared_by_the_workers(tmp_path):
    specs = [spec_of(name) for name in ("Content", "Relative", "LocAttn")]
    campaign = planned(tmp_path, specs, 1e6, Content=100, Relative=50)
    assert campaign.left() == pytest.approx(100 + 50 + 75)  # the third like the mean of the others
    campaign.workers = 3
    assert campaign.left() == pytest.approx(75)
    campaign.deadline = time.time() + 20
    assert campaign.left() == pytest.approx(20, abs=1)
    assert progress.clock(20) == "20 s" and progress.clock(5400) == "1.5 h"


def test_what_has_no_price_is_measured_before_it_is_planned(tmp_path, monkeypatch):
    specs = [spec_of(name, scale="smoke") for name in ("Content", "Relative", "LocAttn")]
    paces = {"Content": 3.0, "Relative": 1.0, "LocAttn": 2.0}
    monkeypatch.setattr(campaign_module, "warm_up", lambda job: paces[job.specs[0].model.name])
    seen = []
    monkeypatch.setattr(campaign_module, "execute", lambda job: seen.append(job) or [])
    campaign = Campaign(
        [Run(TABLE_2, spec) for spec in specs], Store(tmp_path), budget=1e6, workers=1
    )
    assert campaign.seconds() == (0.0, 3)
    assert list(campaign.records()) == []
    assert [job.specs[0].model.name for job in seen] == ["Relative", "LocAttn", "Content"]
    assert campaign.seconds() == (pytest.approx(6 * campaign.prices.steps(specs[0])), 0)


class Watched(ThreadPoolExecutor):
    """Takes note of how much it was given that is not done."""

    futures, most = (), 0

    def submit(self, *call):
        self.futures = (*self.futures, super().submit(*call))
        self.most = max(self.most, sum(not future.done() for future in self.futures))
        return self.futures[-1]


@pytest.mark.parametrize(("cluster", "ahead"), [("local", 2), ("tcp://elsewhere:1", 6)])
def test_dask_workers_of_this_machine_are_measured_and_get_no_more_than_they_can_do(
    tmp_path, monkeypatch, cluster, ahead
):
    measured = []
    monkeypatch.setattr(campaign_module, "warm_up", lambda job: measured.append(job) or 0.001)
    monkeypatch.setattr(campaign_module, "execute", lambda job: time.sleep(0.05) or [])
    pool = Watched(2)
    monkeypatch.setattr(campaign_module, "place", lambda *_: nullcontext(pool))
    specs = [spec_of("Content", scale="smoke", seed=seed) for seed in range(6)]
    runs = [Run(TABLE_2, spec) for spec in specs]
    campaign = Campaign(runs, Store(tmp_path), budget=1e6, workers=2, cluster=cluster)
    assert list(campaign.records()) == []
    assert bool(measured) == (cluster == "local")
    assert pool.most == ahead
    pool.shutdown()


def test_a_warm_up_measures_steps_and_evaluations_of_the_run_itself(tiny, monkeypatch):
    clock, evaluated = iter(range(1000)), []
    monkeypatch.setattr(pace.time, "perf_counter", lambda: next(clock))
    for runner in (pace.Trainer, pace.Stack):
        evaluate = runner.evaluate
        monkeypatch.setattr(
            runner, "evaluate", lambda self, e=evaluate: evaluated.append(self) or e(self)
        )
    alone, together = (tiny(),), tuple(tiny(seed=seed) for seed in range(4))
    # One tick of the clock passes while an epoch of three batches is timed, another one while it
    # is evaluated.
    assert pace.step_seconds(alone, "cpu") == pytest.approx((1 + 1) / 3)
    assert pace.step_seconds(together, "cpu") == pytest.approx((1 + 1) / 3 / 4)
    assert len(evaluated) == 4  # one of them warms up, each


def test_a_warm_up_trains_on_less():
    spec = spec_of()
    assert pace._small(spec).task.train_size == pace.PACED * spec.training.batch_size
    assert pace._small(spec).task.train_size < spec.task.train_size


@pytest.mark.parametrize(("seconds", "calls"), [(1, 2), (40, 1)])
def test_what_takes_long_is_timed_at_its_first_call(monkeypatch, seconds, calls):
    now, called = [0.0], []

    def call():
        called.append(now[0])
        now[0] += seconds

    monkeypatch.setattr(pace.time, "perf_counter", lambda: now[0])
    assert pace._timed(call, "cpu") == seconds
    assert len(called) == calls


def test_a_set_that_is_asked_for_twice_costs_one_evaluation(tiny):
    """The validation set of lookup is a development set, too."""
    spec = tiny("lookup")
    splits = spec.task.splits()
    assert pace._evaluated(spec) == splits["validation"].size + splits["dev"].size


@pytest.mark.parametrize("size", [10, 30])
def test_a_warm_up_evaluates_some_samples_of_many_and_takes_the_others_to_be_as_slow(
    tiny, monkeypatch, size
):
    clock, seen = iter(range(1000)), []
    monkeypatch.setattr(pace.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(pace, "SAMPLED", 10)
    evaluate = pace.Trainer.evaluate
    monkeypatch.setattr(
        pace.Trainer,
        "evaluate",
        lambda self: seen.append(sum(map(len, self.splits["validation"]))) or evaluate(self),
    )
    sizes = {"dev_size": 10, "validation_size": size}
    spec = tiny()
    task = spec.task.model_copy(update=sizes)
    # A tick for an epoch of three batches, and one for the evaluation of 20 samples.
    expected = (1 + (10 + size) / 20) / 3
    assert pace.step_seconds((spec.model_copy(update={"task": task}),), "cpu") == expected
    assert seen == [10, 10]


# --- stopping -----------------------------------------------------------------------------------


@pytest.fixture
def asked():
    """Sets and clears the request to stop, as a signal would."""
    yield lambda: setattr(stopping.shared(), "value", signal.SIGTERM)
    stopping.shared().value = 0


def test_a_campaign_that_is_asked_to_stop_saves_the_run_it_is_at_and_begins_no_other(
    tiny, store, monkeypatch, asked
):
    specs = [tiny(epochs=2, seed=seed) for seed in range(3)]
    epoch = training.Trainer.run_epoch

    def ask(self):
        epoch(self)
        if self.spec.seed == 1:
            asked()

    monkeypatch.setattr(training.Trainer, "run_epoch", ask)
    campaign = Campaign([Run(TABLE_2, spec) for spec in specs], store, workers=1)
    (only,) = campaign.records()
    assert only["key"] == specs[0].key and store.records() == [only]
    assert [path.stem for path in store.checkpoints.iterdir()] == [specs[1].key]
    assert amounts(progress.outcome(campaign, stopped=True)) == [1, 3, 1]


COMMAND = ["-m", "relength.cli.main", "run", "mla_table2", "--scale", "smoke"]
COMMAND += ["--task=copy", "--task=reverse_copy", "--model=Content", "--model=LocAttn"]


def first_record(file: Path, process) -> None:
    deadline = time.monotonic() + 120
    while not (file.exists() and file.stat().st_size) and process.poll() is None:
        assert time.monotonic() < deadline, "nothing was recorded in time"
        time.sleep(0.01)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("workers", "number", "code"),
    [(1, signal.SIGTERM, 143), (2, signal.SIGINT, 130)],
)
@pytest.mark.weekly  # tests/test_cli.py kills one and terminates another
def test_a_stopped_campaign_ends_in_good_order_says_so_and_loses_nothing(
    tmp_path, python, workers, number, code
):
    command = [*COMMAND, "--results", str(tmp_path / "mine"), "--out", str(tmp_path / "part")]
    command += ["--workers", str(workers)]
    process = python(*command)
    first_record(tmp_path / "part" / "mla" / "mla_table2.runs.jsonl", process)
    process.send_signal(number)
    out, problems = process.communicate(timeout=120)
    assert process.returncode == code, problems
    assert "Stopping: each run goes on to the end of its epoch" in problems
    recorded = [record["key"] for record in Store(tmp_path / "part").records()]
    (said,) = re.findall(r"(\d) of 4 runs", out)
    assert len(recorded) == int(said) < 4
    saved = {path.stem for path in Store(tmp_path / "part").checkpoints.glob("*.pt")}
    assert not saved & set(recorded)

    again = python(*command)
    out, problems = again.communicate(timeout=240)
    assert again.returncode == 0, problems
    assert f"{4 - len(recorded)} of 4 runs to train" in out and "All" in out
    keys = [record["key"] for record in Store(tmp_path / "part").records()]
    assert keys[: len(recorded)] == recorded and len(keys) == len(set(keys)) == 4
    assert not (tmp_path / "mine").exists(), "what is only read was written to"
    assert not list(Store(tmp_path / "part").checkpoints.glob("*.pt"))


def test_a_second_signal_ends_at_once():
    with pytest.raises(SystemExit) as ending, stopping.on_signals():
        signal.raise_signal(signal.SIGTERM)
        assert stopping.asked()
        signal.raise_signal(signal.SIGTERM)
    assert ending.value.code == 128 + signal.SIGTERM
    assert not stopping.asked()


def test_only_a_signal_that_leaves_something_undone_changes_the_exit_code():
    assert stopping.exit_code(3) == 0
    with stopping.on_signals():
        signal.raise_signal(signal.SIGINT)
        assert stopping.exit_code(0) == 0
        assert stopping.exit_code(1) == 130
    assert stopping.exit_code(1) == 0


# --- several campaigns ---------------------------------------------------------------------------

HOLDER = """
import sys, time
from relength.runs.announcements import announced
from relength.runs.store import Store
with announced(Store(sys.argv[1]), sys.argv[2:]):
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def at_work(python):
    """Starts another process that says it trains runs of these keys, and waits."""
    started = []

    def start(store, *keys):
        started.append(python("-c", HOLDER, str(store.path), *keys))
        assert started[-1].stdout.readline() == "ready\n", started[-1].stderr.read()
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_what_another_campaign_trains_into_the_folder_is_not_trained_a_second_time(
    tiny, store, at_work, tmp_path
):
    specs = [tiny(epochs=1, seed=seed) for seed in range(3)]
    other = at_work(store, specs[0].key)
    again = Campaign([Run(TABLE_2, spec) for spec in specs], store, workers=1)
    with pytest.raises(RelengthError, match=r"^Another campaign .* trains 1 of these 3 runs"):
        list(again.records())
    assert store.records() == []
    rest = Campaign([Run(TABLE_2, spec) for spec in specs[1:]], store, workers=1)
    assert len(list(rest.records())) == 2, "other runs are in nobody's way"
    elsewhere = Campaign([Run(TABLE_2, specs[0])], Store(tmp_path / "part"), workers=1)
    assert len(list(elsewhere.records())) == 1, "and neither is another folder"

    other.kill()
    other.communicate()
    (mine,) = Campaign([Run(TABLE_2, specs[0])], store, workers=1).records()
    assert mine["status"] == "ok", "a campaign that was killed blocks nobody"
    assert not list(store.announcements.glob("*.json"))


def test_a_campaign_that_was_left_half_way_does_not_block_its_own_process(tiny, store):
    runs = [Run(TABLE_2, tiny(epochs=1, seed=seed)) for seed in range(2)]
    left = Campaign(runs, store, workers=1).records()
    next(left)  # as after an error in a cell of a notebook, which keeps what it was at
    assert len(list(Campaign(runs[1:], store, workers=1).records())) == 1
    left.close()
    assert not list(store.announcements.glob("*.json"))


@pytest.mark.smoke
def test_a_second_campaign_on_a_folder_is_one_sentence_and_exit_code_2(tmp_path, python, at_work):
    store = Store(tmp_path / "mine")
    at_work(store, *(spec.key for spec in TABLE_2.grid("smoke", 0)))
    second = python(*COMMAND, "--results", str(store.path))
    _, problems = second.communicate(timeout=120)
    assert second.returncode == 2 and problems.count("\n") == 1
    assert "Another campaign" in problems and "trains 4 of these 4 runs" in problems
    assert str(store.path) in problems and "--shard" in problems and "--out" in problems
    assert store.records() == []


# --- what is known of a store -------------------------------------------------------------------


def test_only_the_experiments_own_runs_count(tmp_path):
    other = make_spec(**spec_of().model_dump() | {"training": {"name": "epochs", "epochs": 3}})
    store = stored(tmp_path, [record(spec_of()), record(other)])
    assert [spec.key for spec, _ in own_runs(store)] == [spec_of().key]
