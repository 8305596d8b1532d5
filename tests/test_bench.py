"""The yardstick of speed: the frozen loop trains the same model; rates are taken side by side."""

import hashlib
import inspect
import subprocess
import sys
from itertools import groupby

import pytest
import torch

from relength.bench import pairs, steps
from relength.bench import speed as bench
from relength.bench.workload import plain_loop
from relength.models import MODELS
from relength.papers.dnc import experiments as dnc
from relength.papers.dnc import step_speed
from relength.papers.mla.plain_loop import PlainLoop, PlainOneStep
from relength.papers.panm import scan_experiments as scan
from relength.papers.panm import transformer_speed
from relength.papers.panm.plain_loop import PlainPANM, PlainPANMLoop
from relength.report import speeds
from relength.runs import plan
from relength.runs.prices import Prices, timed
from relength.runs.store import Store
from relength.specs.spec import make_spec

# Names in the frozen loop -> names in the library's model.
SAME = {
    "embedding.weight": "embedding.weight",
    "direction.weight": "direction.weight",
    "direction.bias": "direction.bias",
    "hidden.weight": "attention.hidden.weight",
    "hidden.bias": "attention.hidden.bias",
    "inner_value.weight": "inner_value.weight",
    "inner_value.bias": "inner_value.bias",
    "value.weight": "value.weight",
    "output.weight": "output.weight",
    "to_embedding.weight": "to_embedding.weight",
    "to_embedding.bias": "to_embedding.bias",
    "token_bias": "token_bias",
    **{
        f"{cell}.{kind}": f"{gru}.{kind}"
        for cell, gru in (
            ("forward_cell", "encoder.forwards"),
            ("backward_cell", "encoder.backwards"),
            ("decoder", "decoder"),
        )
        for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    },
}


@pytest.fixture(autouse=True)
def short_measurements(monkeypatch):
    """Count the products of two batches only, and time a device for a hundredth of a second.

    Counts stay the same, and rates stay above 0.
    """
    monkeypatch.setattr(bench, "COUNTED", 2)
    monkeypatch.setattr(bench, "LIMIT_SECONDS", 0.01)


def test_the_yardstick_is_frozen():
    """Ratios of different days compare only while they have the same denominator."""
    loops = (PlainOneStep, PlainLoop, PlainPANM, PlainPANMLoop)
    code = "".join(map(inspect.getsource, loops))
    assert hashlib.sha256(code.encode()).hexdigest()[:16] == "c0f5b5287c3e8aa3"


def test_a_task_is_measured_against_the_loop_of_its_paper():
    assert {task: plain_loop(task) for task in ("copy", "inv_recopy", "panm_mix")} == {
        "copy": PlainLoop, "inv_recopy": PlainLoop, "panm_mix": PlainPANMLoop
    }  # fmt: skip


@pytest.fixture
def in_double_precision():
    """In single, two orders of summation part within the longer outputs."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_the_frozen_loop_and_the_library_compute_the_same_function(in_double_precision):
    spec = make_spec(task="recopy", model="OneStepAttn", training="epochs", scale="smoke", seed=1)
    model = MODELS["OneStepAttn"]
    ours = model.module(model.config(name="OneStepAttn"), len(spec.task.vocabulary)).initialise(1)
    plain = PlainOneStep(len(spec.task.vocabulary)).eval()
    weights = ours.state_dict()
    state = {name: weights[same] for name, same in SAME.items()}
    state["start"], state["end"] = weights["marks"]
    state["sigma.weight"], state["step.weight"] = weights["attention.heads.weight"].split(1)
    plain.load_state_dict(state)
    batch = spec.task.dataset("15", 0).select(slice(0, 6))
    torch.testing.assert_close(plain(batch), ours(batch), rtol=0, atol=1e-11)


@pytest.mark.smoke
@pytest.mark.weekly
def test_panm_is_measured_beside_a_frozen_loop_of_its_own(monkeypatch):
    """Without its stack, whose steps of 8 × 128 samples would take minutes."""
    alone = [way for way in bench.ways("cpu") if "stack" not in way.name]
    monkeypatch.setattr(bench, "ways", lambda device: alone)
    outcome = bench.measure("panm_copy", rounds=1, seconds=0.05, workers=1)
    assert (outcome["model"], outcome["batch_size"]) == ("PANM", 128)
    assert {row[1] for row in speeds._ways(outcome)} >= {"plain loop", "one core"}
    assert all(rate > 0 for rate in outcome["steps_per_second"].values())


@pytest.mark.weekly
def test_the_memory_of_a_process_is_its_own_and_not_its_parents():
    code = "from relength.bench import speed as b; b._way = b.Way('', 'cpu', 'alone'); "
    command = [sys.executable, "-c", f"{code}print(b._memory())"]
    held, needed = b"", []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        needed.append(int(done.stdout))
        held += b"x" * (needed[0] + 300 * 2**20)
    assert needed[1] < needed[0] + 200 * 2**20


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("stacks", "workers"), [((), 1), pytest.param((2,), 2, marks=pytest.mark.weekly)]
)
def test_a_measurement_is_kept_with_the_machine_it_was_made_on(
    tmp_path, monkeypatch, stacks, workers
):
    monkeypatch.setattr(bench, "STACKS", {**bench.STACKS, "cpu": stacks})  # a process each
    monkeypatch.setattr(bench, "COPIED", {"cpu": 2**20})
    outcome = bench.measure("copy", rounds=1, seconds=0.05, workers=workers)
    names = {way.name for way in bench.ways("cpu")} | {f"{workers} cores"}
    for measured in ("steps_per_second", "ratio_to_baseline", "memory_bytes"):
        assert outcome[measured].keys() == names
        assert all(value > 0 for value in outcome[measured].values())
    assert outcome["ratio_to_baseline"]["baseline"] == 1
    store = Store(tmp_path / "results")
    bench.keep(store, outcome)
    bench.keep(store, outcome)
    lines = (store.path / "bench.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert '"device_name"' in lines[0]


@pytest.mark.smoke
def test_a_run_without_a_price_is_timed_once_and_has_one(tmp_path):
    store = Store(tmp_path / "results")
    runs = plan.choose(["dnc_when"], "reduced", 1)[:1]
    measured = [*steps.measure(runs, store)]
    assert len(measured) == len(timed(store)) == 1
    known = Prices.on("cpu", [], timed(store))
    for spec, pace, price in measured:
        assert pace.seconds > 0
        assert (known.pace(spec), known.seconds(spec)) == (pace, price)
    assert [*steps.measure(runs, store)] == []


def test_on_a_gpu_everything_is_compared_with_the_frozen_loop_on_that_gpu():
    names = [way.name for way in bench.ways("cuda")]
    assert {bench.yardstick(name) for name in names} <= set(names)
    assert bench.yardstick("stack of 40 on cuda") == "baseline on cuda"
    assert bench.yardstick("one core") == "baseline"
    graphs = [way for way in bench.ways("cuda") if way.graphs]
    assert [way.replicas for way in graphs] == [1, 5, 10, 40]


@pytest.mark.parametrize(("device", "steps"), [("cpu", 5), ("cuda", 100)])
def test_a_call_of_a_stack_on_a_gpu_is_long_enough_to_be_an_epoch(monkeypatch, device, steps):
    """Drawing an order and uploading it is paid once an epoch, not once in five steps."""
    taken = []

    class Watched:
        def __init__(self, *_):
            pass

        def run_steps(self, most):
            taken.append(most)

    monkeypatch.setattr(bench, "Stack", Watched)
    monkeypatch.setattr(bench, "wait", lambda device: None)
    clock = iter(range(1000))
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    monkeypatch.setattr(torch, "set_flush_denormal", lambda on: None)
    bench._build(bench.Way("a stack", device, "stack", 3), "copy")
    rate = bench._rate(1.0)
    warm_up, *timed = taken
    assert warm_up == steps and timed
    assert rate == pytest.approx(3 * sum(timed) / (2 * len(timed) + 1), rel=0.5)


def test_the_limits_count_the_products_of_the_model_and_the_traffic_of_its_optimiser(monkeypatch):
    monkeypatch.setattr(bench, "_multiplied", lambda device: 1.0)
    monkeypatch.setattr(bench, "_copied", lambda device: 2.0)
    limits = bench.limits("copy")
    model = MODELS["OneStepAttn"]
    weights = sum(
        p.numel() for p in model.module(model.config(name="OneStepAttn"), 14).parameters()
    )
    assert limits["bytes_per_step"] == 6 * 4 * weights
    # Each recurrent step multiplies 32 states of 128 with a matrix of 384 rows, forwards and twice
    # backwards; a batch of copies has up to eleven such steps in the decoder.
    one = 3 * 2 * 32 * 128 * 384
    assert 11 * one < limits["flops_per_step"] < 100 * one
    assert limits["flops_per_second"] == {"cpu": 1.0}


@pytest.mark.gpu
def test_a_gpu_is_measured_in_every_way():
    outcome = bench.measure("copy", rounds=1, seconds=0.1, device="cuda")
    assert {way.name for way in bench.ways("cuda")} <= outcome["steps_per_second"].keys()
    assert all(value > 0 for value in outcome["memory_bytes"].values())
    assert outcome["limits"]["flops_per_second"].keys() == {"cpu", "cuda"}


def test_both_ways_of_a_pair_are_called_in_turns():
    calls = []
    ways = pairs.Ways(lambda: calls.append("ours"), lambda: calls.append("other"), lambda: {"a": 1})
    found = pairs.measure([pairs.Pair("work", "quick", "plain", 2.0, lambda: ways)], 3, 0.0)
    assert [name for name, _ in groupby(calls)] == ["ours", "other"] * 3
    assert found["rounds"] == 3 and found["pairs"].keys() == {"work"}
    measured = found["pairs"]["work"]
    assert [len(rates) for rates in measured["rates"]] == [3, 3] and measured["limits"] == {"a": 1}
    assert min(map(min, measured["rates"])) > 0


def test_both_ways_to_train_the_dnc_compute_the_same_losses():
    (spec,) = dnc.grid("smoke", 0, [dnc.COMPRESSED], ["dnc_sort"], batch_size=4)
    ways = step_speed.steps(spec)
    ours, other = ([float(way()) for _ in range(4)] for way in (ways.ours, ways.other))
    assert ours == pytest.approx(other, rel=1e-4)
    assert len(set(ours)) == 4  # samples of their own, and weights that move


def test_decoding_anew_from_every_prefix_writes_the_same_tokens():
    spec = scan.spec("smoke", 0, {"name": "TRM"}, 26)
    model = MODELS["TRM"].module(spec.model, *spec.task.shape).initialise(0).eval()
    batch = spec.task.dataset("validation", 0)
    tokens, _ = model.generate(batch, 12)
    assert torch.equal(transformer_speed.from_prefixes(model, batch, 12), tokens)
    assert len(tokens.unique()) > 1


def test_the_transformer_of_pytorch_has_our_sizes_learns_and_never_looks_ahead():
    spec = scan.spec("smoke", 0, {"name": "TRM"}, 26)
    loop = transformer_speed.PyTorchLoop(spec)
    ours = MODELS["TRM"].module(spec.model, *spec.task.shape)

    def matrices(model):
        """Sizes of the matrices of an encoder's and a decoder's layers, the fused ones apart."""
        counted = (p for name, p in model.named_parameters() if p.ndim == 2 and "layers" in name)
        return sum(p.numel() for p in counted)

    assert matrices(loop.model) == matrices(ours) > 0
    batch = spec.task.dataset("train", 0).select(torch.arange(8))
    loop.model.eval()
    before = loop.scores(batch)
    changed = batch.map(torch.clone)
    changed.targets[:, 3:] = 5
    assert torch.allclose(loop.scores(changed)[:, :4], before[:, :4], atol=1e-5)
    assert not torch.allclose(loop.scores(changed)[:, 4:], before[:, 4:], atol=1e-3)
    loop.model.train()
    losses = [float(loop.train_step(batch)) for _ in range(30)]
    assert losses[-1] < 0.8 * losses[0]
