"""Training is the protocol of the paper, and the same again after any interruption."""

import math
from functools import partial
from itertools import islice

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from relength.errors import RelengthError
from relength.kernels.hashing import step_key
from relength.specs.experiments import experiment, experiments
from relength.specs.spec import make_spec
from relength.streams import dropout_key
from relength.training import alone as training
from relength.training import train
from relength.training.alone import Trainer, build
from relength.training.course import Snapshot
from relength.training.evaluate import Measured
from relength.training.stack import Stack

# The paper's sizes of everything but the data: what a rule does is seen after seconds.
RULES = {"epochs": 30, "plateau_patience": 2, "patience": 5, "solved_epochs": 3}


def finish(trainer: Trainer) -> Trainer:
    while not trainer.progress.finished:
        trainer.run_epoch()
    return trainer


def outcome(trainer: Trainer) -> dict:
    """Everything a record takes from a run, without times."""
    result = trainer.result()
    return {
        "checkpoints": result.checkpoints,
        "curve": result.curve,
        "probe": result.probe,
        "steps": result.cost["steps"],
        "weights": {name: p.tolist() for name, p in result.model.state_dict().items()},
    }


# --- reproducibility ----------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "arm"), [("LocAttn", "released"), ("MonoAttn", "paper")])
def test_equal_specs_give_identical_runs_and_another_seed_another(tiny, model, arm):
    runs = [outcome(finish(Trainer(tiny("copy", model, arm, seed)))) for seed in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert runs[0]["curve"] != runs[2]["curve"]


@pytest.mark.equality
@settings(max_examples=6)
@given(
    stops=st.sets(st.integers(1, 5), min_size=1),
    reading=st.sampled_from(
        [("OneStepAttn", "released"), ("MonoAttn", "paper"), ("Relative", "released")]
    ),
)
def test_a_run_stopped_at_any_epoch_and_resumed_is_bit_identical(
    tiny, tmp_path_factory, stops, reading
):
    # At this rate and patience the schedule and every checkpoint have moved by the end.
    spec = tiny("copy", *reading, epochs=6, plateau_patience=0, learning_rate=0.01)
    uninterrupted = outcome(finish(Trainer(spec)))
    path = tmp_path_factory.mktemp("checkpoints") / "run.pt"
    trainer = Trainer(spec)
    for epoch in range(1, 7):
        trainer.run_epoch()
        if epoch in stops:
            trainer.save(path)
            trainer = Trainer(spec)
            trainer.load(path)
    assert outcome(trainer) == uninterrupted


def test_an_interrupted_training_goes_on_where_it_was_saved(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", -1.0)
    spec, path, epochs = tiny(epochs=4), tmp_path / "folder" / "run.pt", []

    def watch(progress, stop_at=None):
        epochs.append(progress.epoch)
        if progress.epoch == stop_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(spec, checkpoint=path, on_epoch=partial(watch, stop_at=3))
    resumed = train(spec, checkpoint=path, on_epoch=watch)
    assert epochs == [1, 2, 3, 3, 4]  # the third epoch was not saved yet
    assert list(path.parent.iterdir()) == [path]  # until whoever records the run removes it
    whole = train(spec)
    assert (resumed.curve, resumed.checkpoints) == (whole.curve, whole.checkpoints)


@pytest.mark.parametrize("stacked", [False, True])
def test_a_run_that_goes_on_after_a_further_commit_names_the_one_it_began_with(
    tiny, tmp_path, monkeypatch, stacked
):
    spec = tiny()
    path = tmp_path / f"{spec.key}.pt"

    def at(commit: str) -> Trainer | Stack:
        began = {"commit": commit * 40, "dirty": False, "margins": commit * 64}
        monkeypatch.setattr("relength.training.course.origin", lambda: began)
        return Stack([spec]) if stacked else Trainer(spec)

    first = at("a")
    first.run_epoch()
    first.save(tmp_path if stacked else path)
    later = at("b")
    later.load(tmp_path if stacked else path)
    while not (later.finished if stacked else later.progress.finished):
        later.run_epoch()
    result = later.results()[spec.key] if stacked else later.result()
    assert result.origin == {"commit": "a" * 40, "dirty": False, "margins": "a" * 64}
    alone = at("b")
    assert (alone.courses[0] if stacked else alone).progress.origin["commit"] == "b" * 40


def test_a_checkpoint_of_another_run_is_refused(tiny, tmp_path):
    ours, other = tiny(seed=0), tiny(seed=1)
    Trainer(ours).save(tmp_path / "run.pt")
    with pytest.raises(RelengthError) as refusal:
        Snapshot.load(tmp_path / "run.pt", other, "cpu")
    message = str(refusal.value)
    assert all(
        part in message for part in (str(tmp_path / "run.pt"), ours.key, other.key, "remove")
    )


@pytest.mark.parametrize("kept", [0, 10, 2000, -1])
def test_a_damaged_checkpoint_is_refused_with_the_way_out(tiny, tmp_path, kept):
    path = tmp_path / "run.pt"
    Trainer(tiny()).save(path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(RelengthError, match=rf"{path} cannot be read .*remove it"):
        Snapshot.load(path, tiny(), "cpu")
    with pytest.warns(UserWarning, match="starts anew.*kept as run.pt.refused"):
        again = train(tiny(), checkpoint=path)
    assert len(again.curve) == 3 and "cannot be read" in again.refused


def test_equal_seeds_show_every_model_the_same_batches(tiny, monkeypatch):
    seen: dict[str, list] = {}
    for model in ("Content", "MonoAttn"):
        batches = seen.setdefault(model, [])
        monkeypatch.setattr(
            Trainer,
            "train_step",
            lambda self, batch, batches=batches: batches.append(batch) or torch.zeros(()),
        )
        finish(Trainer(tiny("inv_recopy", model)))
    assert len(seen["Content"]) == len(seen["MonoAttn"]) == 9
    for ours, theirs in zip(*seen.values(), strict=True):
        assert torch.equal(ours.inputs, theirs.inputs) and torch.equal(ours.targets, theirs.targets)


def test_an_epoch_shows_every_sample_once_and_the_next_in_another_order(tiny, monkeypatch):
    rows = []
    monkeypatch.setattr(
        Trainer,
        "train_step",
        lambda self, batch: (
            rows.extend(batch.targets[batch.mask].split(batch.target_lengths.tolist()))
            or torch.zeros(())
        ),
    )
    trainer = finish(Trainer(tiny(epochs=2)))
    texts = [tuple(row.tolist()) for row in rows]
    assert sorted(texts[:24]) == sorted(texts[24:]) and texts[:24] != texts[24:]
    assert len(set(texts)) == len(trainer.data) == 24


# --- one optimiser step -------------------------------------------------------------------------


@pytest.mark.parametrize(("clip_norm", "decay"), [(1e-3, 0.0), (1e3, 0.1)])
def test_a_step_is_adamw_on_the_clipped_gradient_of_the_loss(tiny, clip_norm, decay):
    spec = tiny(precision="float64", clip_norm=clip_norm, weight_decay=decay)
    trainer, model = Trainer(spec), build(spec)
    batch = trainer.data.select(slice(0, 8))
    key = step_key(dropout_key(spec.seed, "encodings"), 0)
    loss = spec.task.loss(model(batch, key), batch)
    loss.backward()
    norm = math.sqrt(sum(float((p.grad**2).sum()) for p in model.parameters()))
    assert trainer.train_step(batch).item() == pytest.approx(loss.item(), rel=1e-12)
    scale = min(1.0, clip_norm / (norm + 1e-6))
    for ours, start in zip(trainer.model.parameters(), model.parameters(), strict=True):
        g = start.grad * scale
        # In the first step both corrected moments are the gradient and its square.
        expected = start * (1 - 1e-3 * decay) - 1e-3 * g / (g.abs() + 1e-8)
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("samples", "parts"), [(8, 1), (5, 1), (4, 2), (3, 2), (2, 4), (1, 8)])
def test_the_loss_of_a_short_batch_is_divided_as_in_the_released_trainer(tiny, samples, parts):
    """By hand: of batches of 8, one of 3 samples is half a batch to it, since 8 // 3 is 2."""
    losses, gradients = [], []
    for short_batch in ("mean", "part"):
        spec = tiny(precision="float64", batch_size=8, short_batch=short_batch)
        alone, stack = Trainer(spec), Stack([spec])
        loss = alone.loss(alone.data.select(slice(0, samples)))
        loss.backward()
        index = torch.arange(samples)[None]
        stacked, of_stack = stack.gradients(
            stack.data.gather(index, stack.data.widths(index.numpy())),
            step_key(stack.keys, 0),
        )
        assert of_stack.item() == pytest.approx(loss.item(), rel=1e-12)
        losses.append(loss.item())
        gradients.append([p.grad for p in alone.model.parameters()])
        for ours, theirs in zip(stacked, gradients[-1], strict=True):
            torch.testing.assert_close(ours[0], theirs, rtol=0, atol=1e-12)
    assert losses[0] == pytest.approx(parts * losses[1], rel=1e-12)
    for whole, part in zip(*gradients, strict=True):
        torch.testing.assert_close(whole, parts * part, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "scale", "left", "parts"),
    [("mla_scan", "paper", 14, 2), ("mla_cfq", "paper", 46, 2), ("mla_cfq", "reduced", 32, 4)],
)
def test_short_batches_of_scan_and_cfq_count_as_released_but_in_the_texts_arm(
    name, scale, left, parts
):
    for spec in experiment(name).specs(scale, [0]):
        rest = spec.task.splits()["train"].size % spec.training.batch_size
        assert (rest, spec.training.batch_size // rest) == (left, parts)
        assert spec.training.short_batch == ("mean" if spec.model.arm == "paper" else "part")


def test_runs_that_were_recorded_before_keep_their_keys():
    """SCAN at scale reduced has runs; in the other tasks a last batch is more than half a batch."""
    names = [name for name, found in experiments().items() if found.paper == "mla"]
    for name in (name for name in names if name != "mla_cfq"):
        for spec in experiment(name).specs("reduced", [0]):
            rest = spec.task.splits()["train"].size % spec.training.batch_size
            assert spec.training.short_batch == "mean"
            assert "short_batch" not in spec.canonical()["training"]
            assert spec.task.name == "scan" or 2 * rest > spec.training.batch_size


def test_dropout_differs_from_step_to_step(tiny):
    # A learning rate too small to matter: only the mask can change the loss of the same batch.
    trainer = Trainer(tiny(learning_rate=1e-30))
    batch = trainer.data.select(slice(0, 8))
    assert len({trainer.train_step(batch).item() for _ in range(6)}) == 6


@pytest.mark.parametrize(("samples", "steps"), [(24, 3), (200, 20)])
def test_the_probe_is_the_first_losses_and_an_evaluation_right_after_them(
    tiny, monkeypatch, samples, steps
):
    losses, evaluated_after = [], []
    step, evaluate = Trainer.train_step, training.validate

    def counted(trainer, batch):
        losses.append(step(trainer, batch))
        return losses[-1]

    monkeypatch.setattr(Trainer, "train_step", counted)
    monkeypatch.setattr(
        training,
        "validate",
        lambda *args: evaluated_after.append(len(losses)) or evaluate(*args),
    )
    fields = tiny(epochs=2).model_dump()
    fields["task"]["train_size"] = samples
    probe = finish(Trainer(make_spec(**fields))).progress.probe
    assert probe["losses"] == [float(loss) for loss in losses[:steps]]
    assert evaluated_after[0] == steps and math.isfinite(probe["validation_loss"])


# --- samples drawn afresh -----------------------------------------------------------------------


def streaming(seed: int = 0, arm: str = "repaired", task: str = "panm_copy", **training):
    sizes = {"dev_size": 12, "test_size": 12, "validation_size": 12}
    return make_spec(
        task={"name": task, "train_lengths": (2, 5), "lengths": (5, 6, 9), **sizes},
        model={"name": "PANM", "arm": arm, "hidden_size": 8, "bits": 4},
        training={
            "name": "streaming",
            **{"steps": 60, "validate_every": 20, "batch_size": 8},
            **training,
        },
        scale="smoke",
        seed=seed,
    )


def shown(spec, monkeypatch) -> list:
    """Every batch that a run trains on."""
    batches = []
    monkeypatch.setattr(
        Trainer, "train_step", lambda self, batch: batches.append(batch) or torch.zeros(())
    )
    finish(Trainer(spec))
    return batches


def test_no_sample_is_shown_twice_and_each_batch_has_one_length(monkeypatch):
    batches = shown(streaming(), monkeypatch)
    assert len(batches) == 60 and all(len(batch) == 8 for batch in batches)
    lengths = [batch.targets.shape[1] for batch in batches]
    assert set(lengths) == {2, 3, 4, 5}
    long = [
        tuple(row)
        for batch in batches
        if batch.targets.shape[1] == 5
        for row in batch.targets.tolist()
    ]
    assert len(set(long)) > 0.98 * len(long)


def test_equal_seeds_show_every_arm_and_other_seeds_none_the_same_samples(monkeypatch):
    one, other, third = (
        shown(spec, monkeypatch)
        for spec in (streaming(arm="paper"), streaming(arm="mended"), streaming(seed=1))
    )
    for a, b, c in zip(one, other, third, strict=True):
        assert torch.equal(a.inputs, b.inputs)
        assert a.inputs.shape == c.inputs.shape  # lengths belong to the task, not to the seed
    assert not all(torch.equal(a.inputs, c.inputs) for a, c in zip(one, third, strict=True))


def test_lengths_are_uniform_over_the_whole_range():
    spec = streaming(steps=4000, validate_every=1000)
    lengths = [spec.training.lengths(spec.task, interval) for interval in range(4)]
    drawn = [length for interval in lengths for length in interval]
    assert set(drawn) == {2, 3, 4, 5}
    assert all(abs(drawn.count(length) - 1000) < 5 * 27.4 for length in (2, 3, 4, 5))
    assert lengths[0] != lengths[1]


@pytest.mark.equality
@settings(max_examples=4)
@given(stops=st.sets(st.integers(1, 2), min_size=1), arm=st.sampled_from(["repaired", "released"]))
def test_a_streaming_run_stopped_at_any_interval_and_resumed_is_bit_identical(
    tmp_path_factory, stops, arm
):
    spec = streaming(arm=arm, learning_rate=1e-3)
    uninterrupted = outcome(finish(Trainer(spec)))
    path = tmp_path_factory.mktemp("checkpoints") / "run.pt"
    trainer = Trainer(spec)
    for interval in range(1, 4):
        trainer.run_epoch()
        if interval in stops:
            trainer.save(path)
            trainer = Trainer(spec)
            trainer.load(path)
    assert outcome(trainer) == uninterrupted


def test_a_streaming_run_is_optimised_as_released():
    """RMSprop with momentum, gradients clipped by value: the same steps by hand."""
    rules = {"learning_rate": 0.01, "clip_value": 1e-3, "smoothing": 0.8, "momentum": 0.7}
    spec = streaming(precision="float64", **rules)
    trainer, twin = Trainer(spec), build(spec)
    averages = {
        name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in twin.named_parameters()
    }
    for step, drawn in enumerate(islice(spec.training.drawn(spec, 0), 5)):
        batch = spec.task.encode(drawn)
        trainer.train_step(batch)
        twin.zero_grad()
        key = step_key(dropout_key(0, "encodings"), step)
        spec.task.loss(twin(batch, key), batch).backward()
        for name, p in twin.named_parameters():
            grad, (square, move) = p.grad.clamp(-1e-3, 1e-3), averages[name]
            square.mul_(0.8).addcmul_(grad, grad, value=0.2)
            move.mul_(0.7).add_(grad / (square.sqrt() + 1e-8))
            p.data.sub_(0.01 * move)
    for ours, theirs in zip(trainer.model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


def test_the_checkpoint_is_the_last_of_the_best_at_the_second_length(monkeypatch):
    dev, validation = [0.5, 0.9, 0.9, 0.8, 0.9 - 1e-6, 0.1], [0.2, 0.3, 0.7, 0.7, 0.1, 0.0]
    spec = streaming(steps=120)
    progress = finish(Scripted(spec, dev, validation, monkeypatch)).progress
    kept = {name: interval for name, (interval, _) in progress.kept.items()}
    assert kept == {"selected": 2, "best_iid": 3, "last": 5}
    assert [point["step"] for point in progress.curve] == [20, 40, 60, 80, 100, 120]
    assert {point["learning_rate"] for point in progress.curve} == {1e-4}  # no schedule, no end


def test_a_streaming_result_has_three_checkpoints_tested_at_every_length():
    result = train(streaming())
    assert set(result.checkpoints) == {"selected", "last", "best_iid"}
    for checkpoint in result.checkpoints.values():
        assert list(checkpoint["tests"]) == ["5", "6", "9"]
        for metrics in checkpoint["tests"].values():
            assert metrics["items"] == 12
            assert metrics["exact_match"] == metrics["exact_match_true_length"]
            assert metrics["exact_match"] <= metrics["token_accuracy"] <= 1
    assert result.cost["steps"] == 60 and len(result.curve) == 3
    assert len(result.probe["losses"]) == 20


# --- schedule, selection and the end of training ------------------------------------------------


class Scripted(Trainer):
    """A run whose scores are given; it takes no steps."""

    def __init__(self, spec, dev: list[float], validation: list[float], monkeypatch):
        super().__init__(spec)
        scores = {id(self.splits["dev"]): dev, id(self.splits["validation"]): validation}
        monkeypatch.setattr(
            training,
            "validate",
            lambda model, batches, _: Measured(
                scores.get(id(batches), [0.0] * 99)[self.progress.epoch],
                0.0,
            ),
        )

    def train_step(self, batch):
        self.progress.step += 1
        return torch.zeros(())


SCORES = st.lists(st.integers(0, 2000).map(lambda n: n / 2000), min_size=30, max_size=30)
# Scores that climb slowly meet ties, plateaus and new bests far more often than arbitrary ones.
SLOW = st.lists(
    st.sampled_from([-0.0015, -0.0005, 0.0, 0.0005, 0.0025]), min_size=30, max_size=30
).map(lambda steps: [round(0.5 + sum(steps[: i + 1]), 4) for i in range(30)])


def by_the_rules(dev: list[float], validation: list[float], solved_at: float | None) -> dict:
    """The released protocol as the facts tell it, plus the early end of solved runs."""
    best, impatience, solved = -math.inf, 0, 0
    kept: dict[str, int] = {}
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.AdamW([parameter], lr=1e-3)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, mode="max", factor=0.5, patience=RULES["plateau_patience"]
    )
    rates = []
    for epoch in range(RULES["epochs"]):
        rates.append(optimiser.param_groups[0]["lr"])
        if epoch > 0:
            schedule.step(dev[epoch])
        if dev[epoch] >= best - 1e-9:  # an equal score is as good, and later
            best, impatience = dev[epoch], 0
            kept["selected"] = epoch
        else:
            impatience += 1
        if validation[epoch] >= max(validation[: epoch + 1]):
            kept["best_iid"] = epoch
        solved = solved + 1 if solved_at is not None and dev[epoch] >= solved_at else 0
        if impatience > RULES["patience"] or solved >= RULES["solved_epochs"]:
            break
    return {"kept": kept | {"last": epoch}, "rates": rates}


@settings(max_examples=30)
@given(
    dev=st.one_of(SCORES, SLOW),
    validation=st.one_of(SCORES, SLOW),
    solved_at=st.sampled_from([None, 0.505, 0.9]),
)
def test_schedule_selection_patience_and_end_follow_the_rules(tiny, dev, validation, solved_at):
    spec = tiny(**RULES, solved_accuracy=solved_at)
    with pytest.MonkeyPatch.context() as patch:
        progress = finish(Scripted(spec, dev, validation, patch)).progress
    expected = by_the_rules(dev, validation, solved_at)
    assert {name: epoch for name, (epoch, _) in progress.kept.items()} == expected["kept"]
    assert [point["learning_rate"] for point in progress.curve] == expected["rates"]
    assert [point["dev_accuracy"] for point in progress.curve] == dev[: len(progress.curve)]


def test_the_rate_halves_on_the_fifth_bad_epoch_and_the_first_epoch_does_not_count(
    tiny, monkeypatch
):
    # 0.9 in epoch 0 is not shown to the schedule: 0.5 is its first best score.
    dev = [0.9, 0.5, *[0.4] * 12]
    progress = finish(Scripted(tiny(epochs=14), dev, [0.0] * 14, monkeypatch)).progress
    rates = [point["learning_rate"] for point in progress.curve]
    assert rates == [1e-3] * 7 + [5e-4] * 5 + [2.5e-4] * 2


def test_of_equal_scores_the_last_is_kept_and_one_sample_less_is_not_equal(tiny, monkeypatch):
    """The released code compares percentages with 0.001; one of 2,001 samples is 0.05 of them."""
    dev = [0.9, 0.9, 0.9 - 1 / 2001, 0.8]
    progress = finish(Scripted(tiny(epochs=4), dev, [0.0] * 4, monkeypatch)).progress
    assert progress.kept["selected"][0] == 1 and progress.best == 0.9 and progress.impatience == 2


def test_patience_must_be_exceeded(tiny, monkeypatch):
    progress = finish(
        Scripted(tiny(epochs=99, patience=4), [0.9] + [0.1] * 98, [0.0] * 99, monkeypatch)
    ).progress
    assert len(progress.curve) == 6  # the best epoch and five without a new best


def test_solved_epochs_count_only_in_a_row(tiny, monkeypatch):
    dev = [1.0, 1.0, 0.5, 1.0, 0.999, 0.9995, 0.2]
    spec = tiny(epochs=7, solved_accuracy=0.999, solved_epochs=3)
    assert len(finish(Scripted(spec, dev, [0.0] * 7, monkeypatch)).progress.curve) == 6


def test_lookup_averages_its_two_development_sets(tiny, monkeypatch):
    trainer = Trainer(tiny("lookup", epochs=1))
    scores = {id(trainer.splits["validation"]): 0.2, id(trainer.splits["dev"]): 0.6}
    monkeypatch.setattr(
        training, "validate", lambda _, batches, __: Measured(scores.get(id(batches), 0.0), 0.0)
    )
    trainer.run_epoch()
    assert trainer.progress.curve[0]["dev_accuracy"] == pytest.approx(0.4)
    assert trainer.progress.curve[0]["iid_accuracy"] == 0.2


def test_a_set_that_is_asked_for_twice_is_measured_once(tiny, monkeypatch):
    """The validation set of lookup is a development set, too."""
    trainer, seen = Trainer(tiny("lookup")), []
    validate = training.validate
    monkeypatch.setattr(
        training, "validate", lambda *given: seen.append(id(given[1])) or validate(*given)
    )
    scores = trainer.evaluate()
    assert scores.iid is not None
    assert len(seen) == len(set(seen)) == len(trainer.splits)


# --- the result ---------------------------------------------------------------------------------


def test_a_result_has_three_checkpoints_with_every_test(tiny):
    spec = tiny(epochs=4)
    result = train(spec)
    assert set(result.checkpoints) == {"selected", "last", "best_iid"}
    for checkpoint in result.checkpoints.values():
        assert list(checkpoint["tests"]) == ["iid", "15", "30", "100"]
        assert all(metrics["items"] == 8 for metrics in checkpoint["tests"].values())
    assert result.checkpoints["last"]["epoch"] == 3
    assert [point["step"] for point in result.curve] == [3, 6, 9, 12]
    assert result.cost["steps"] == 12
    assert result.parameters == sum(p.numel() for p in build(spec).parameters())


def test_a_result_brings_the_weights_of_the_selected_checkpoint(tiny, monkeypatch):
    # Development scores that make the second of four epochs the best.
    dev = [0.1, 0.9, 0.2, 0.2]
    spec, weights = tiny(epochs=4), []
    trainer = Trainer(spec)
    original = training.validate
    monkeypatch.setattr(
        training,
        "validate",
        lambda model, batches, task: (
            Measured(dev[trainer.progress.epoch], 0.0)
            if batches is trainer.splits["dev"]
            else original(model, batches, task)
        ),
    )
    while not trainer.progress.finished:
        trainer.run_epoch()
        weights.append(trainer.model.embedding.weight.detach().clone())
    result = trainer.result()
    assert result.checkpoints["selected"]["epoch"] == 1
    assert torch.equal(result.model.embedding.weight, weights[1])
    assert not torch.equal(weights[1], weights[3])


def test_a_model_learns_something(tiny):
    fields = tiny(epochs=12, learning_rate=0.01).model_dump()
    fields["task"]["train_size"] = 200
    curve = train(make_spec(**fields)).curve
    assert curve[-1]["train_loss"] < 0.95 * curve[0]["train_loss"]
