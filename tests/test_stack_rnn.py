"""SRNN, and PANM with it: hand-computed steps, slopes, invariants of the stack, prefixes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from relength.errors import RelengthError
from relength.kernels.hashing import step_key
from relength.models import MODELS
from relength.models.memory.configs import SRNNConfig
from relength.models.memory.stack_rnn import SRNN, StackRNN, update
from relength.models.pointers.panm_stack import StackPANM
from relength.models.pointers.stack_configs import ARMS, StackPANMConfig
from relength.specs.spec import make_spec
from relength.streams import dropout_key, stream
from relength.tasks.dyck import Dyck2, Dyck3
from relength.training import Stack, train

SMALL = {"memory_size": 6, "pointer_size": 5, "mlp_size": 7, "bits": 7, "stack_hidden": 3}
MODELS_AT_TEST = [("SRNN", "paper"), *(("PANM on SRNN", arm) for arm in ARMS)]
every_model = pytest.mark.parametrize(("name", "arm"), MODELS_AT_TEST)


def built(name: str, arm: str = "paper", channels: int = 4, **sizes):
    config = MODELS[name].config(arm=arm, **(sizes or (SMALL if "PANM" in name else {})))
    model = MODELS[name].module(config, channels, channels).initialise(3)
    return model.double()


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(stream(seed, "data").normal(size=shape))


def test_the_stack_moves_down_and_up_by_hand():
    """Rows a, b, c under a new n: push 0.75 gives n, a, b; pop 0.25 gives b, c, 0."""
    stack = torch.tensor([[[8.0, 1.0], [4.0, 2.0], [16.0, 0.0]]])
    new = torch.tensor([[2.0, 0.4]])
    push, pop = torch.tensor([[[0.75]]]), torch.tensor([[[0.25]]])
    wanted = [[0.75 * 2 + 0.25 * 4, 0.75 * 0.4 + 0.25 * 2], [6 + 4, 0.75], [3, 1.5]]
    torch.testing.assert_close(update(stack, push, pop, new)[0], torch.tensor(wanted))


@settings(max_examples=25, deadline=None)
@given(moves=st.lists(st.booleans(), min_size=1, max_size=12), seed=st.integers(0, 99))
def test_a_stack_that_only_pushes_or_pops_is_a_list(moves, seed):
    slots, rows = 6, []
    stack, elements = torch.zeros(1, slots, 2).double(), numbers(len(moves), 1, 2, seed=seed)
    for push, new in zip(moves, elements, strict=True):
        weight = torch.full((1, 1, 1), float(push)).double()
        stack = update(stack, weight, 1 - weight, new)
        rows = [new[0], *rows][:slots] if push else rows[1:]
        wanted = torch.stack(rows + [torch.zeros(2).double()] * (slots - len(rows)))
        torch.testing.assert_close(stack[0], wanted)


@settings(max_examples=25, deadline=None)
@given(push=st.floats(0, 1), seed=st.integers(0, 99))
def test_no_number_of_a_stack_leaves_the_range_of_new_ones(push, seed):
    """Weights of push and pop add up to one, so that every row is a mean, or less."""
    weight = torch.full((1, 1, 1), push).double()
    stack = torch.zeros(1, 5, 3).double()
    for new in torch.sigmoid(numbers(20, 1, 3, seed=seed)):
        stack = update(stack, weight, 1 - weight, new)
        assert stack.min() >= 0 and stack.max() <= 1


def test_a_step_is_the_equations_of_the_table():
    """In numpy, symbol by symbol, without anything of the model but its weights."""
    model = built("SRNN", hidden_size=3, slots=4, width=2)
    w = {name: p.detach().numpy() for name, p in model.named_parameters()}
    inputs = numbers(1, 5, 4)
    h, s, outputs = np.zeros(3), np.zeros((4, 2)), []
    for x in inputs[0].numpy():
        h_bar = h + w["core.to_hidden.weight"] @ s[0] + w["core.to_hidden.bias"]
        h = np.tanh(
            w["core.weight_ih"] @ x + w["core.bias_ih"]
            + w["core.weight_hh"] @ h_bar + w["core.bias_hh"]
        )  # fmt: skip
        a = np.exp(w["core.action.weight"] @ h + w["core.action.bias"])
        push, pop = a / a.sum()
        new = 1 / (1 + np.exp(-w["core.element.weight"] @ h - w["core.element.bias"]))
        s = push * np.vstack([new, s[:-1]]) + pop * np.vstack([s[1:], np.zeros(2)])
        outputs.append(1 / (1 + np.exp(-w["output.weight"] @ h - w["output.bias"])))
    ours = model.decode(inputs, 5, None)[0].detach().numpy()
    np.testing.assert_allclose(ours, outputs, rtol=1e-12)


def test_the_cell_is_a_recurrent_network_of_pytorch_while_its_stack_says_nothing():
    core = built("SRNN").core
    torch.nn.init.zeros_(core.to_hidden.weight)
    torch.nn.init.zeros_(core.to_hidden.bias)
    theirs = torch.nn.RNN(4, 8, batch_first=True).double()
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(theirs, f"{name}_l0").data = getattr(core, name).data
    x = numbers(2, 6, 4)
    torch.testing.assert_close(core(x), theirs(x)[0])


def test_rows_that_no_step_can_reach_change_nothing():
    """As many rows as steps are enough; fewer lose what is pushed off the last."""
    many, few = (StackRNN(4, 3, slots, 2).double() for slots in (104, 2))
    for core in (many, few):
        core.load_state_dict(built("SRNN", hidden_size=3, width=2).core.state_dict())
    x = numbers(2, 9, 4)
    state, states = many.start(2, 104), []
    for x_part in torch.nn.functional.linear(x, many.weight_ih, many.bias_ih).unbind(1):
        state = many.step(x_part, state)
        states.append(state.h)
    torch.testing.assert_close(many(x), torch.stack(states, 1), rtol=1e-13, atol=1e-15)
    assert not torch.allclose(few(x), many(x))


@pytest.mark.equality
@every_model
def test_slopes_are_those_of_finite_differences(name, arm):
    sizes = {"hidden_size": 3, "slots": 3, "width": 2} if name == "SRNN" else SMALL
    model, batch = built(name, arm, **sizes), Dyck2().sample(stream(0, "data"), 2, 4)
    names, weights = zip(*model.named_parameters(), strict=True)
    here = [w.detach() + 0.3 * numbers(*w.shape, seed=i) for i, w in enumerate(weights)]

    def loss(*values: torch.Tensor) -> torch.Tensor:
        parameters = dict(zip(names, values, strict=True))
        outputs = torch.func.functional_call(model, parameters, (batch,))
        return Dyck2().loss(outputs, batch)

    slopes = torch.autograd.grad(loss(*(w.requires_grad_() for w in here)), here)
    for place, slope in enumerate(slopes):  # each parameter along directions of its own
        for seed in range(3):
            way = numbers(*slope.shape, seed=100 + seed)

            def at(size: float, place: int = place, way: torch.Tensor = way) -> float:
                moved = [w + size * way if i == place else w for i, w in enumerate(here)]
                return float(loss(*moved).detach())

            measured = (at(1e-5) - at(-1e-5)) / 2e-5
            assert float((slope * way).sum()) == pytest.approx(measured, rel=1e-5, abs=1e-9)
        assert slope.abs().max() > 1e-9, names[place]


@every_model
def test_what_follows_a_prefix_says_nothing_of_it(name, arm):
    """The memory of PANM grows with the string, so that an unfinished one reads as the whole."""
    model, inputs = built(name, arm), numbers(3, 8, 4)
    whole = model.decode(inputs, 8, None)
    for t in (1, 3, 7):
        torch.testing.assert_close(model.decode(inputs[:, :t], t, None), whole[:, :t])


@every_model
def test_padding_changes_no_output_of_a_string(name, arm):
    sizes = {"hidden_size": 3} if name == "SRNN" else SMALL
    model, task = built(name, arm, channels=6, **sizes), Dyck3()
    batch = task.encode([task.strings("20", 0)[0], *task.strings("validation", 0)[:5]])
    together = model(batch)
    for row in range(len(batch)):
        alone = batch.select(slice(row, row + 1))
        n = int(alone.target_lengths)
        torch.testing.assert_close(model(alone)[0], together[row, :n])
    assert (together > 0).all() and (together < 1).all()


@every_model
def test_outputs_in_tests_are_those_that_training_sees(name, arm):
    model, batch = built(name, arm), Dyck2().sample(stream(0, "data"), 3, 6)
    outputs, weights = model.generate(batch, 6, keep_weights=True)
    torch.testing.assert_close(outputs, model(batch).detach())
    for shown in weights.values():
        assert shown.shape == (3, 6, 6)
        torch.testing.assert_close(shown.sum(2), torch.ones(3, 6).double())
        assert shown.triu(1).eq(0).all()  # no slot is read before its symbol has been
    assert len(weights) == (0 if name == "SRNN" else 3)


def test_addresses_in_training_are_drawn_and_in_tests_are_0():
    model, inputs = built("PANM on SRNN"), numbers(64, 4, 4)
    key = step_key(dropout_key(0, "encodings"), 0)
    assert model.base(inputs, None).tolist() == [0]
    assert len(set(model.base(inputs, key).tolist())) > 30  # of 128
    random = built("PANM on SRNN", base_in_tests="random", **SMALL)
    assert len(set(random.base(inputs, None).tolist())) > 30


def test_what_panm_sits_on_is_what_its_arm_says():
    for arm in ARMS:
        panm = built("PANM on SRNN", arm).panm
        stacks = [isinstance(m, StackRNN) for m in panm.encoder.modules()]
        assert any(stacks) == (arm == "encoder")
        assert isinstance(panm.decoder, StackRNN) == (arm != "encoder") and panm.grows
    x = numbers(1, 5, 4)
    paper = built("PANM on SRNN").panm
    other = x.clone()
    other[0, 2] += 1
    changed = (paper.encoder(x) != paper.encoder(other)).any(2)
    assert changed.tolist() == [[False, False, True, False, False]]  # a slot is its own symbol's


def test_sizes_are_those_that_the_papers_name():
    for arm in ARMS:
        config = StackPANMConfig(arm=arm)
        sizes = (config.memory_size, config.pointer_size, config.mlp_size)
        assert sizes == ((256, 256, 128) if arm == "large" else (8, 8, 8))
        assert (config.bits, config.n_mode1, config.n_mode2) == (10, 2, 1)
    ours = SRNNConfig()
    assert (ours.hidden_size, ours.slots, ours.width) == (8, 104, 5)
    stack = (config.stack_hidden, config.stack_slots, config.stack_width)
    assert stack == (ours.hidden_size, ours.slots, ours.width)
    # x: 8·4 + 8·8 + 2·8; stack: 5·8 + 8, 8·2 + 2, 8·5 + 5; y: 8·4 + 4
    assert sum(p.numel() for p in SRNN(ours, 4, 4).parameters()) == 259


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"n_mode1": 0}, "n_mode2 needs an n_mode1 above 0"),
        ({"temperature": 0.5}, "paper has no temperature, only repaired"),
        ({"bits": 0}, "bits"),
    ],
)
def test_impossible_sizes_are_one_sentence(fields, words):
    with pytest.raises(RelengthError, match=words):
        make_spec(
            task="dyck_2",
            model={"name": "PANM on SRNN", **fields},
            training="plain_epochs",
            scale="smoke",
            seed=0,
        )


@every_model
def test_outputs_that_are_not_one_per_symbol_are_refused(name, arm):
    with pytest.raises(RelengthError, match="gives 4 outputs for 4 symbols, and 2 are wanted"):
        built(name, arm).decode(numbers(1, 4, 4), 2, None)


def test_a_string_beyond_the_address_space_is_refused():
    model = StackPANM(StackPANMConfig(**(SMALL | {"bits": 2})), 4, 4).initialise(0).double()
    with pytest.raises(RelengthError, match="does not fit into 4 addresses"):
        model.decode(numbers(1, 6, 4), 6, None)


def spec(name: str, arm: str, seed: int, **training):
    sizes = SMALL if "PANM" in name else {}
    return make_spec(
        task={"name": "dyck_2", "train_size": 12, "test_size": 6, "validation_size": 5},
        model={"name": name, "arm": arm, **sizes},
        training={"name": "plain_epochs", "epochs": 2, **training},
        scale="smoke",
        seed=seed,
    )


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "arm"),
    [
        pytest.param(*model, marks=() if model[1] in ("paper", "encoder") else pytest.mark.weekly)
        for model in MODELS_AT_TEST
    ],
)
def test_a_run_in_a_stack_is_the_run_alone(name, arm):
    specs = [spec(name, arm, seed, batch_size=3) for seed in (0, 1)]
    stack = Stack(specs)
    while not stack.finished:
        stack.run_epoch()
    for one in specs:
        together, alone = stack.results()[one.key], train(one)
        assert together.probe["losses"] == pytest.approx(alone.probe["losses"], rel=1e-9)
        for test, metrics in alone.checkpoints["last"]["tests"].items():
            assert together.checkpoints["last"]["tests"][test] == pytest.approx(metrics)


@pytest.mark.smoke
def test_the_epoch_that_is_best_on_the_training_data_is_kept():
    run = train(spec("SRNN", "paper", 0, epochs=4))
    on_training = [point["dev_accuracy"] for point in run.curve]
    assert len(on_training) == 4 and run.cost["steps"] == 48
    best = run.checkpoints["selected"]["epoch"]
    assert on_training[best] == max(on_training)
    assert all(score < max(on_training) for score in on_training[best + 1 :])
    assert spec("SRNN", "paper", 0).training.selection.words.endswith("on the training data")


@pytest.mark.smoke
def test_srnn_learns_the_brackets_of_short_strings():
    run = train(
        make_spec(
            task={"name": "dyck_2", "train_length": 6, "test_size": 20, "validation_size": 50}
            | {"repeats": False, "nest": 0.4},
            model="SRNN",
            training={"name": "plain_epochs", "epochs": 20, "learning_rate": 0.02},
            scale="smoke",
            seed=0,
        )
    )
    assert run.curve[-1]["dev_accuracy"] > 0.9 > run.curve[0]["dev_accuracy"]
