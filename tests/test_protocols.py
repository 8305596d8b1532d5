"""Protocols are general: one that no paper has, its task and its model go through everything."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pytest
import torch
from pydantic import Field
from torch import Tensor, nn

from relength.errors import RelengthError
from relength.models import MODELS, Model
from relength.models.config import ModelConfig
from relength.report import figures, tables
from relength.report.runs import Runs
from relength.report.self_checks import pairs_of_scales
from relength.runs.execute import Job, execute
from relength.runs.prices import Device, OwnRun, Prices
from relength.runs.store import Store, accuracies, frame
from relength.specs.experiments import Experiment
from relength.specs.kinds import CHANNELS, Kind
from relength.specs.spec import RunSpec, Scale, make_spec
from relength.streams import EVALUATION_SEED, stream
from relength.tasks import TASKS
from relength.tasks.base import Pair, Split, Task
from relength.tasks.batch import Batch, ChannelsToChannels
from relength.tasks.metrics import Metrics, amount, share
from relength.training.alone import Trainer, build, train
from relength.training.grouping import stacks
from relength.training.protocols import PROTOCOLS
from relength.training.protocols.base import Protocol, Selection
from relength.training.protocols.fresh import FreshSamples
from relength.training.protocols.optimiser import Adam, Optimiser, Settings
from relength.training.stack import Stack

pytestmark = pytest.mark.equality


class Bits(NamedTuple):
    """Drawn bits (B, S)."""

    bits: Any


class RoundedMetrics(Metrics):
    """Metrics of numbers that should be bits."""

    rounded_accuracy: float = share("accuracy after rounding")
    squared_error: float = amount("squared error", beside="squared error")


class Delay(Task):
    """Write what was read one step before; the first step does not count."""

    kind: ClassVar[Kind] = CHANNELS
    metrics: ClassVar[type[Metrics]] = RoundedMetrics
    measure: ClassVar[str] = "rounded_accuracy"

    name: Literal["delay"] = "delay"
    train_lengths: ClassVar[tuple[int, int]] = (2, 5)
    size: int = 12

    @property
    def shape(self) -> tuple[int, ...]:
        return 1, 1

    def splits(self) -> dict[str, Split]:
        lengths = {"validation": 5, "dev": 8, "5": 5, "12": 12}
        return {name: Split(n, n, self.size) for name, n in lengths.items()}

    def draw(self, random: np.random.Generator, batch_size: int, length: int) -> Bits:
        return Bits(random.integers(0, 2, (batch_size, length), dtype=np.uint8))

    def encode(self, drawn: Bits, device: str = "cpu") -> ChannelsToChannels:
        read = torch.as_tensor(drawn.bits, device=device).float()[..., None]  # (…, B, S, 1)
        mask = torch.ones_like(read[..., 0], dtype=torch.bool)
        mask[..., 0] = False
        lengths = torch.full(read.shape[:-2], read.shape[-2], device=device)
        return ChannelsToChannels(read, read.roll(1, -2), mask, lengths, lengths)

    def sample(self, random: np.random.Generator, batch_size: int, length: int) -> Any:
        return self.encode(self.draw(random, batch_size, length))

    def dataset(self, split: str, seed: int) -> ChannelsToChannels:
        length, _, size = self._split(split)
        random = stream(EVALUATION_SEED, "evaluation", self.name, split)
        return self.sample(random, size, length)

    def loss(self, outputs: Tensor, batch: ChannelsToChannels) -> Tensor:
        return (self._errors(outputs, batch) ** 2).sum() / batch.mask.sum()

    def right(self, outputs: Tensor, batch: ChannelsToChannels) -> Tensor:
        right = (self._errors(outputs, batch).abs() < 0.5) & batch.mask
        return right.sum(1).double() / batch.mask.sum(1)

    def score(self, answers: list[tuple[ChannelsToChannels, Tensor]]) -> RoundedMetrics:
        right = torch.cat([self.right(outputs, batch) for batch, outputs in answers])
        errors = torch.cat([self._errors(outputs, batch).flatten() for batch, outputs in answers])
        return RoundedMetrics(
            items=len(right),
            rounded_accuracy=float(right.mean()),
            squared_error=float((errors**2).mean()),
        )

    def _errors(self, outputs: Tensor, batch: ChannelsToChannels) -> Tensor:
        return (outputs - batch.targets)[..., 0] * batch.mask

    def shown(self, batch: ChannelsToChannels, row: int) -> Pair:
        return Pair(("bits",), ("bits",))

    def spelled(self, tokens: list[int]) -> tuple[str, ...]:
        return ("bits",)


class CellConfig(ModelConfig):
    kind: ClassVar[Kind] = CHANNELS

    name: Literal["Cell"] = "Cell"
    arm: Literal["paper"] = "paper"
    hidden_size: int = Field(4, gt=0)
    slots: int = Field(2, gt=0)


class Cell(nn.Module):
    """A recurrent cell beside a memory of as many recent states as it has slots."""

    fused = True

    def __init__(self, config: CellConfig, channels: int, outputs: int):
        super().__init__()
        self.config = config
        self.cell = nn.Linear(channels + config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, outputs)
        self.first = nn.Linear(config.hidden_size, outputs)  # which sequences of one step skip
        self.register_buffer("memory", torch.zeros(config.slots, config.hidden_size))

    def initialise(self, seed: int) -> "Cell":
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                random = stream(seed, "initialisation", name)
                parameter.copy_(torch.from_numpy(random.uniform(-0.7, 0.7, parameter.shape)))
        return self

    def forward(self, batch: ChannelsToChannels, key: Tensor | None = None) -> Tensor:
        inputs = batch.inputs.to(self.memory.dtype)
        h = inputs.new_zeros(len(batch), self.config.hidden_size)
        memory = self.memory[None].expand(len(batch), -1, -1)
        found = []
        for t, x in enumerate(inputs.unbind(1)):
            h = torch.tanh(self.cell(torch.cat([x, h], dim=1)))
            memory = torch.cat([memory[:, 1:], h[:, None]], dim=1)
            answer = self.output(h + memory.mean(1))
            found.append(answer if t == 0 else answer + self.first(h))
        return torch.stack(found, dim=1)

    def generate(self, batch: ChannelsToChannels, steps: int, keep_weights: bool = False) -> Any:
        return self(batch).detach(), None


class Tiny(FreshSamples):
    """Adam, an extra term, the lowest running mean of a loss, a larger memory in tests."""

    name: Literal["tiny"] = "tiny"
    batch_size: int = 6
    learning_rate: float = 0.05
    optimiser: Optimiser = Adam()
    shrink: float = 0.01
    larger: int = 5

    @property
    def moves(self) -> Settings:
        return self.optimiser

    @property
    def selection(self) -> Selection:
        return Selection("dev", "loss", mean_of=3)

    def extra_loss(self, model: nn.Module, batch: ChannelsToChannels, outputs: Tensor) -> Tensor:
        return self.shrink * outputs.square().mean()

    def before_test(self, model: Cell) -> None:
        model.memory = model.memory.new_zeros(self.larger, model.config.hidden_size)

    def traces(self, spec: RunSpec, model: Cell, device: str) -> dict[str, Any]:
        return {"slots_in_tests": len(model.memory)}


class ShortFirst(Protocol):
    """Intervals of a few steps on fixed samples, at first on short ones only, some of them twice.

    As no other protocol: its order has neither every sample nor each of them once.
    """

    fresh: ClassVar[bool] = False
    budget: ClassVar[tuple[str, ...]] = ("passes", "batch_size")

    name: Literal["short_first"] = "short_first"
    batch_size: int = 5
    learning_rate: float = 0.01
    decay: float = 0.0
    passes: int = 4

    @property
    def moves(self) -> Settings:
        return Adam(weight_decay=self.decay)

    @property
    def intervals(self) -> int:
        return self.passes

    @property
    def interval_steps(self) -> int:
        return 3

    def most_steps(self, task: Task) -> int:
        return 3 * self.passes

    def order(self, spec: RunSpec, data: Batch, interval: int) -> Iterator[np.ndarray]:
        by_length = data.input_lengths.argsort(stable=True).numpy()
        random = stream(spec.seed, "order", "short first", interval)
        for step in range(3):
            size = self.batch_size - step  # every step is smaller than the one before
            yield random.choice(by_length[: 6 * (interval + 1)], size)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """The registries have the task, the model and the protocols of this file."""
    monkeypatch.setitem(PROTOCOLS, "short_first", ShortFirst)
    monkeypatch.setitem(TASKS, "delay", Delay)
    monkeypatch.setitem(MODELS, "Cell", Model(CellConfig, f"{__name__}.Cell"))
    monkeypatch.setitem(PROTOCOLS, "tiny", Tiny)


def spec(seed: int = 0, **training) -> RunSpec:
    return make_spec(
        task="delay",
        model="Cell",
        training={
            "name": "tiny",
            **{"steps": 60, "validate_every": 5, "precision": "float64"},
            **training,
        },
        scale="smoke",
        seed=seed,
    )


def finish(runs: Trainer | Stack) -> Trainer | Stack:
    while not (runs.finished if isinstance(runs, Stack) else runs.progress.finished):
        runs.run_epoch()
    return runs


def assert_same(ours, theirs, rel: float) -> None:
    """Two results, but for their times."""
    for left, right in zip(ours.curve, theirs.curve, strict=True):
        assert left == pytest.approx(right, rel=rel)
    assert ours.probe["losses"] == pytest.approx(theirs.probe["losses"], rel=rel)
    assert ours.checkpoints.keys() == theirs.checkpoints.keys()
    for name, checkpoint in ours.checkpoints.items():
        other = theirs.checkpoints[name]
        assert checkpoint["epoch"] == other["epoch"]
        for test, metrics in checkpoint["tests"].items():
            assert metrics.keys() == other["tests"][test].keys()
            for metric, value in metrics.items():  # some are lists
                assert value == pytest.approx(other["tests"][test][metric], rel=rel)


def test_it_learns_and_selects_the_lowest_mean_of_its_latest_losses():
    result = train(spec())
    losses = [point["dev_loss"] for point in result.curve]
    means = [np.mean(losses[max(0, i - 2) : i + 1]) for i in range(len(losses))]
    assert len(losses) == 12 and losses[-1] < losses[0] / 2
    assert result.checkpoints["selected"]["epoch"] == int(np.argmin(means))
    assert int(np.argmin(means)) != int(np.argmin(losses)), "the rule makes no difference here"


def test_steps_are_adams_on_the_loss_of_the_task_and_the_extra_term():
    ours = Trainer(spec())
    twin, protocol, task = build(spec()), ours.protocol, ours.spec.task
    theirs = torch.optim.Adam(twin.parameters(), lr=0.05)
    for drawn in protocol.drawn(spec(), 0):
        batch = task.encode(drawn)
        loss = ours.train_step(batch)
        theirs.zero_grad()
        outputs = twin(batch)
        expected = task.loss(outputs, batch) + 0.01 * outputs.square().mean()
        expected.backward()
        theirs.step()
        assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    for left, right in zip(ours.model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "optimiser",
    ["adamw", *(pytest.param(o, marks=pytest.mark.weekly) for o in ("adam", "rmsprop"))],
)
def test_runs_in_a_stack_are_the_runs_alone(optimiser):
    specs = [spec(seed, optimiser=optimiser) for seed in (0, 1, 2)]
    assert stacks(specs, most=8) == [specs]
    together = finish(Stack(specs)).results()
    for own in specs:
        assert_same(together[own.key], train(own), rel=1e-8)


def short_first(seed: int, scale: Scale = "smoke", **training) -> RunSpec:
    sizes = {"train_size": 24, "dev_size": 8, "test_size": 8, "validation_size": 8}
    return make_spec(
        task={"name": "copy", **sizes},
        model={"name": "Content", "embedding_size": 6, "hidden_size": 8},
        training={"name": "short_first", "precision": "float64", **training},
        scale=scale,
        seed=seed,
    )


def test_a_protocol_chooses_from_fixed_samples_alone_and_in_a_stack():
    specs = [short_first(seed) for seed in (0, 1, 2)]
    alone = Trainer(specs[0])
    lengths = [[len(batch), batch.input_lengths.max().item()] for batch in alone.batches()]
    shortest = alone.data.input_lengths.sort().values[:6].max().item()
    assert [size for size, _ in lengths] == [5, 4, 3]
    assert max(length for _, length in lengths) <= shortest
    together = finish(Stack(specs)).results()
    for own in specs:
        assert together[own.key].cost["steps"] == 12
        assert_same(together[own.key], train(own), rel=1e-8)


def test_a_price_is_that_of_runs_with_equal_steps_in_any_protocol():
    device = Device("cpu", "a processor")
    cost = {"steps": 12, "training_seconds": 5.0, "evaluation_seconds": 1.0}
    made = {"cost": cost, "provenance": {"device": device.kind, "device_name": device.name}}
    prices = Prices([OwnRun(short_first(0, "reduced"), made)], device)
    assert prices.seconds(short_first(1, "reduced")) == 6
    assert prices.seconds(short_first(1, "paper", passes=8)) == 12
    assert prices.seconds(short_first(1, "reduced", decay=0.1)) is None


def test_runs_at_two_scales_are_a_pair_if_they_differ_in_their_protocols_budget_only():
    short = OwnRun(short_first(0, "reduced"), {})
    long = OwnRun(short_first(0, "paper", passes=8, batch_size=7), {})
    other = OwnRun(short_first(1, "paper", passes=8, decay=0.1), {})
    further = OwnRun(short_first(1, "reduced"), {})
    assert pairs_of_scales([short, other, long, further]) == [(short, long)]


def test_the_usual_orders_of_a_seed_have_every_sample_once_and_are_new_in_each_epoch(tiny):
    orders = {}
    for seed in (0, 1):
        own = tiny(seed=seed, batch_size=7)
        data = own.task.dataset("train", seed)
        for epoch in (0, 1):
            steps = list(own.training.order(own, data, epoch))
            assert list(map(len, steps)) == [7, 7, 7, 3]
            orders[seed, epoch] = np.concatenate(steps)
            assert sorted(orders[seed, epoch]) == list(range(24))
    assert len({order.tobytes() for order in orders.values()}) == 4


@pytest.mark.parametrize("lacking", ["order", "drawn"])
def test_a_protocol_without_samples_is_told_which_method_it_needs(monkeypatch, lacking):
    protocol, own = (ShortFirst, short_first(0)) if lacking == "order" else (Tiny, spec())
    monkeypatch.setattr(protocol, lacking, getattr(Protocol, lacking))
    with pytest.raises(RelengthError, match=rf"{own.training.name}.*`{lacking}`"):
        train(own)


def test_a_run_goes_on_after_an_interruption_alone_and_in_a_stack(tmp_path):
    specs = [spec(0), spec(1)]
    whole = [train(own) for own in specs]
    alone = Trainer(specs[0])
    for _ in range(4):
        alone.run_epoch()
    alone.save(tmp_path / f"{specs[0].key}.pt")
    again = Trainer(specs[0])
    again.load(tmp_path / f"{specs[0].key}.pt")
    assert again.progress.epoch == 4
    assert_same(finish(again).result(), whole[0], rel=0)
    stack = Stack(specs)
    stack.load(tmp_path)  # the first is four intervals ahead, and waits
    for _ in range(2):
        stack.run_epoch()
    stack.save(tmp_path)
    resumed = Stack(specs)
    resumed.load(tmp_path)
    assert [course.progress.epoch for course in resumed.courses] == [4, 2]
    results = finish(resumed).results()
    for own, expected in zip(specs, whole, strict=True):
        assert_same(results[own.key], expected, rel=1e-8)


def test_tests_are_of_the_changed_model_and_training_is_not():
    usual, larger = train(spec(larger=2)), train(spec(larger=9))
    assert usual.curve == larger.curve and usual.parameters == larger.parameters
    assert len(usual.model.memory) == 2 and len(larger.model.memory) == 9
    errors = [r.checkpoints["last"]["tests"]["12"]["squared_error"] for r in (usual, larger)]
    assert errors[0] != errors[1]


def test_a_record_of_it_is_read_back_with_its_own_metrics(tmp_path):
    own = spec()
    [record] = execute(Job((own,), "tiny", "cpu", tmp_path))
    assert record["status"] == "ok", record.get("error")
    assert record["slots_in_tests"] == 5 and record["attention"] is None
    store = Store(tmp_path / "results")
    store.append("mla", record)
    [kept] = store.records()
    assert RunSpec.recorded(kept["spec"]) == own and RunSpec.recorded(kept["spec"]).key == own.key
    table = frame([kept])
    selected = table[table["checkpoint"] == "selected"].set_index("test")
    tests = kept["checkpoints"]["selected"]["tests"]
    assert list(selected.index) == ["5", "12"]
    for test, metrics in tests.items():
        assert selected["squared_error"][test] == metrics["squared_error"]
        assert selected["rounded_accuracy"][test] == 100 * metrics["rounded_accuracy"]
        assert selected["accuracy"][test] == selected["rounded_accuracy"][test]
        assert np.isnan(selected["exact_match"][test])
    assert accuracies(kept) == {test: m["rounded_accuracy"] for test, m in tests.items()}
    broken = json.loads(json.dumps(kept))
    broken["checkpoints"]["selected"]["tests"]["12"]["rounded_accuracy"] = 1.5
    with pytest.raises(Exception, match=r"checkpoints.selected.tests.12.rounded_accuracy"):
        store.append("mla", broken)


def recorded(folder, shows: str = "") -> Runs:
    """Three recorded seeds of it, as a page shows them."""
    specs = tuple(_grid("smoke", seed)[0] for seed in range(3))
    store = Store(folder / "results")
    for record in execute(Job(specs, "tiny", "cpu", folder)):
        store.append("mla", record)
    made = Experiment("tiny", "mla", (), "paper", _grid, title="Delay", shows=shows)
    return Runs.of_specs(made, "smoke", specs, store)


def _grid(scale: str, seed: int) -> list[RunSpec]:
    return [spec(seed, steps=20)]


def test_tables_and_figures_have_its_own_metrics(tmp_path):
    runs = recorded(tmp_path)
    tests = [r["checkpoints"]["selected"]["tests"] for r in runs.cell("Cell", "paper", "delay")]
    assert len(tests) == 3
    data = tables.comparison(runs).set_index("test")
    shown = tables.details(runs).html
    drawn = figures.accuracy(runs, number=1).data
    for test in ("5", "12"):
        right = [100 * kept[test]["rounded_accuracy"] for kept in tests]
        error = float(np.median([kept[test]["squared_error"] for kept in tests]))
        assert data["values"][test] == right and data["ours"][test] == np.median(right)
        assert data["squared_error"][test] == error > 0
        assert f">{tables.number(error)}<" in shown
        assert drawn.loc[drawn["test"] == test, "accuracy"].tolist() == right
    assert "edit_distance" not in data and runs.shown.in_unit.endswith(" in percent")


def test_a_table_of_a_metric_without_unit_and_margin_shows_what_is_recorded(tmp_path):
    runs = recorded(tmp_path, shows="squared_error")
    row = tables.comparison(runs).set_index("test").loc["12"]
    cell = runs.cell("Cell", "paper", "delay")
    kept = [record["checkpoints"]["selected"]["tests"]["12"] for record in cell]
    assert row["values"] == [found["squared_error"] for found in kept]
    assert row["apart"] is None and runs.shown.in_unit == "squared error"
    assert row["solved"] == sum(found["rounded_accuracy"] >= 0.95 for found in kept)


def test_its_key_is_stable_and_has_its_name():
    assert spec().key == "0e408c2ccdba"
    assert spec().canonical()["training"]["name"] == "tiny"
    assert spec(shrink=0.02).key != spec().key != spec(optimiser="adamw").key
