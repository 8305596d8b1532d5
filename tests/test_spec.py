"""A spec is complete, validated, and named by a key that never changes."""

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from relength.errors import RelengthError
from relength.models import MODELS
from relength.papers.mla import experiments as mla
from relength.papers.panm import experiments as panm
from relength.paths import RESULTS
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.specs.fields import added
from relength.specs.spec import SCALES, RunSpec, make_spec, spec_of_key
from relength.tasks import TASKS
from relength.training import stacks
from relength.training.protocols import PROTOCOLS, Epochs
from relength.training.protocols.optimiser import OPTIMISERS

GOLDEN = json.loads((Path(__file__).parent / "golden_keys.json").read_text())
LATER_TASKS = ("dedupe", "posretrieve", "scan", "cfq")
TWO_ARMED = ("OneStepAttn", "MonoAttn")
STREAMING = {"name": "streaming", "steps": 400}


def spec(**fields) -> RunSpec:
    return make_spec(
        **{"task": "copy", "model": "Content", "training": "epochs", "scale": "smoke", "seed": 0}
        | fields
    )


def by_epochs(**fields) -> dict:
    return {"name": "epochs", **fields}


specs = st.builds(
    spec,
    task=st.fixed_dictionaries(
        {"name": st.sampled_from(mla.TASKS)}, optional={"dev_size": st.integers(1, 500)}
    ),
    model=st.fixed_dictionaries(
        {"name": st.sampled_from(mla.MODELS)},
        optional={
            "hidden_size": st.integers(1, 64).map(lambda n: 2 * n),
            "dropout": st.floats(0, 1, exclude_max=True),
            "gate_start": st.floats(allow_nan=False, allow_infinity=False),
        },
    ),
    training=st.fixed_dictionaries(
        {"name": st.just("epochs")},
        optional={
            "learning_rate": st.floats(1e-9, 10),
            "solved_accuracy": st.none() | st.floats(0, 1),
            "epochs": st.integers(1, 1000),
        },
    ),
    scale=st.sampled_from(SCALES),
    seed=st.integers(0, 2**40),
)


# --- keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", GOLDEN, ids=lambda entry: entry["key"])
def test_the_key_of_a_recorded_spec_never_changes(entry):
    # Recorded specs spell out every field but those that were added later, which then had the
    # value from before: so a default may change and the key does not.
    assert RunSpec.recorded(entry["spec"]).key == entry["key"]


def test_the_golden_file_covers_tasks_models_arms_and_scales():
    assert len({entry["key"] for entry in GOLDEN}) == len(GOLDEN)
    pointers = [entry["spec"] for entry in GOLDEN if entry["spec"]["model"]["name"] == "PANM"]
    assert {s["task"]["name"] for s in pointers} == set(panm.TASKS)
    assert {s["model"]["arm"] for s in pointers} == {*panm.PANM_ARMS, "mended"}
    recorded = [
        entry["spec"]
        for entry in GOLDEN
        if entry["spec"]["task"]["name"] in mla.TASKS
        and entry["spec"]["model"]["name"] in mla.MODELS
    ]
    assert len(recorded) == 20 and {s["task"]["name"] for s in recorded} == set(mla.TASKS)
    assert {s["model"]["name"] for s in recorded} == set(mla.MODELS)
    assert {s["model"]["arm"] for s in recorded} == {"released", "paper"}
    assert {s["scale"] for s in recorded} == set(SCALES)
    later = [entry["spec"] for entry in GOLDEN if entry["spec"]["task"]["name"] in LATER_TASKS]
    assert {s["task"]["name"] for s in later} == set(LATER_TASKS)
    assert {s["model"]["arm"] for s in later} == {"released", "paper", "repaired"}
    for s in (*recorded, *later, *pointers):  # every field but those that were added later
        canonical = RunSpec.recorded(s).canonical()
        for part in ("task", "model", "training"):
            missing = canonical[part].keys() - s[part].keys()
            assert not missing, f"a golden spec leaves out {missing}"


@given(specs)
def test_a_spec_survives_its_record(ours):
    recorded = json.loads(json.dumps(ours.model_dump(mode="json")))
    again = make_spec(**recorded)
    assert again == ours and again.key == ours.key


@given(specs, specs)
def test_equal_keys_mean_equal_specs(ours, other):
    assert (ours.key == other.key) == (ours == other)


def test_a_number_has_one_key_however_it_is_written():
    written = [
        {"name": "epochs", "learning_rate": value, "weight_decay": zero}
        for value in (1e-3, 0.001, 10**-3, 1 / 1000)
        for zero in (0, 0.0, -0.0)
    ]
    assert len({spec(training=training).key for training in written}) == 1
    # Equal specs share a cached key, so what is hashed is compared as well.
    assert len({str(spec(training=training).canonical()) for training in written}) == 1
    neighbour = 0.0010000000000000002  # the next float: different numbers never share a key
    rates = [by_epochs(learning_rate=rate) for rate in (neighbour, 1e-3)]
    assert len({spec(training=training).key for training in rates}) == 2


def test_a_name_alone_stands_for_the_defaults():
    assert spec(task="copy", model="Content").key == spec().key


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"scale": "paper"},
        {"task": "recopy"},
        {"task": {"name": "copy", "train_size": 10_000}},
        {"model": "Relative"},
        {"model": {"name": "Content", "dropout": 0.4}},
        {"training": by_epochs(epochs=99)},
    ],
    ids=str,
)
def test_every_field_is_part_of_the_key(change):
    assert spec(**change).key != spec().key


class LaterEpochs(Epochs):
    """A later version of the protocol, with a field that older records lack."""

    warm_up: int = added(200, before=0, ge=0)


@pytest.fixture
def warm_up(monkeypatch):
    """Today is later: the protocol has got a field."""
    monkeypatch.setitem(PROTOCOLS, "epochs", LaterEpochs)


def later(recorded: dict, **training) -> RunSpec:
    fields = {"name": "epochs", **recorded["training"], **training}
    return RunSpec.model_validate(recorded | {"training": fields})


@pytest.mark.parametrize("entry", GOLDEN[:3], ids=lambda entry: entry["key"])
def test_a_field_added_later_leaves_old_keys_alone(entry, warm_up):
    assert later(entry["spec"], warm_up=0).key == entry["key"]
    assert later(entry["spec"], warm_up=1).key != entry["key"]
    fresh = later(entry["spec"])  # a new spec has today's default, and says so in its key
    assert fresh.training.warm_up == 200 and fresh.key != entry["key"]


@pytest.mark.parametrize("entry", GOLDEN[:3], ids=lambda entry: entry["key"])
def test_a_record_older_than_a_field_is_read_as_the_run_it_was(entry, warm_up):
    spec = RunSpec.recorded(entry["spec"])
    assert spec.training.warm_up == 0 and spec.key == entry["key"]


def test_every_recorded_key_is_that_of_its_spec_today():
    lines = [line for file in Store(RESULTS).files() for line in file.read_text().splitlines()]
    specs = {record["key"]: record["spec"] for record in map(json.loads, lines)}
    assert len(specs) > 1000
    assert {key: RunSpec.recorded(spec).key for key, spec in specs.items()} == {
        key: key for key in specs
    }


def test_a_record_older_than_the_names_of_protocols_gets_its_own_and_keeps_its_key():
    for training in ({"name": "epochs", "epochs": 7}, {"name": "streaming", "steps": 400}):
        parts = {} if "epochs" in training else {"task": "panm_copy", "model": "PANM"}
        ours = spec(**parts, training=training)
        fields = ours.model_dump(mode="json")
        del fields["training"]["name"]
        assert RunSpec.recorded(fields) == spec_of_key(fields, ours.key) == ours
        assert "name" not in ours.canonical()["training"]
        with pytest.raises(RelengthError, match="training: name the protocol: one of epochs, "):
            make_spec(**fields)


def test_protocols_whose_records_name_no_optimiser_had_adam():
    for name in ("facts", "fixed_steps", "epochs_by_length", "state_space"):
        before = PROTOCOLS[name].model_fields["optimiser"].json_schema_extra["before"]
        assert before == {"name": "adam", "weight_decay": 0.0}  # whatever the default is one day


@pytest.fixture(scope="module")
def by_protocol() -> dict[str, RunSpec]:
    """A run of each protocol, as an experiment has it."""
    every = (e.specs("smoke", [0]) for e in experiments().values() if not e.borrows)
    return {one.training.name: one for specs in every for one in (specs[0], specs[-1])}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", OPTIMISERS)
def test_any_protocol_takes_any_optimiser_and_its_settings_enter_the_key(
    protocol, name, by_protocol
):
    usual = by_protocol[protocol]

    def with_(optimiser: str | dict) -> RunSpec:
        training = usual.training.model_dump() | {"optimiser": optimiser}
        parts = {"task": usual.task, "model": usual.model, "scale": "smoke", "seed": 0}
        return make_spec(**parts, training=training)

    fields = {"name": name, "momentum" if name == "rmsprop" else "weight_decay": 0.25}
    if usual.training.moves.name == name and isinstance(usual.training.optimiser, str):
        assert with_(name) == usual
        with pytest.raises(RelengthError, match=name):  # its settings stand beside it
            with_(fields)
        return
    other, third = with_(name), with_(fields)
    assert other.training.moves.name == third.training.moves.name == name
    assert (other.key == usual.key) == (usual.training.moves.name == name)
    assert third.key not in (usual.key, other.key)
    assert RunSpec.recorded(json.loads(json.dumps(third.model_dump(mode="json")))) == third


def test_every_cell_of_an_experiment_has_its_own_key():
    for experiment in experiments().values():
        keys = [s.key for scale in SCALES for s in experiment.specs(scale, range(3))]
        assert len(set(keys)) == len(keys)


def test_a_spec_can_be_sent_to_the_process_that_trains_it():
    for found in experiments().values():
        for scale in ("smoke", "reduced"):
            specs = found.specs(scale, [0])
            assert pickle.loads(pickle.dumps(specs)) == specs


def test_every_experiment_of_a_small_machine_falls_into_groups_that_train_together():
    for found in experiments().values():
        specs = [s for s in found.specs("reduced", range(2)) if not s.task.lacks()]
        for most in (1, 40):
            groups = stacks(specs, most)
            assert sorted(s.key for group in groups for s in group) == sorted(s.key for s in specs)
            assert max((len(group) for group in groups), default=0) <= most


def test_table_2_is_six_models_on_eight_tasks_and_two_second_readings():
    for scale in SCALES:
        grid = experiments()["mla_table2"].grid(scale, 0)
        cells = {(s.model.name, s.model.arm, s.task.name) for s in grid}
        released = {(model, "released", task) for model in mla.MODELS for task in mla.TASKS}
        assert cells == released | {
            (model, "paper", task) for model in TWO_ARMED for task in mla.TASKS
        }
        assert len(experiments()["mla_table2"].cells(scale)) == 48


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "named", "way_out"),
    [
        ({"task": "cpoy"}, "cpoy", "reverse_copy"),
        ({"task": {"nmae": "copy"}}, "task", "reverse_copy"),
        ({"task": {"name": ["copy"]}}, "task", "reverse_copy"),
        ({"task": 5}, "task", "5"),
        ({"task": {"name": "copy", "lenght": 5}}, "task.lenght", "no such field"),
        ({"task": {"name": "copy", "train_size": 0}}, "task.train_size", "greater than 0"),
        ({"task": {"name": "lookup", "train_size": 10_001}}, "task.train_size", "9081"),
        ({"model": "OneStep"}, "OneStep", "OneStepAttn"),
        ({"model": {"name": "Content", "hidden": 8}}, "model.hidden", "no such field"),
        ({"model": {"name": "Content", "hidden_size": 9}}, "model.hidden_size", "multiple of 2"),
        ({"model": {"name": "Content", "dropout": 1.0}}, "model.dropout", "less than 1"),
        ({"model": {"name": "MonoAttn", "gate_start": float("nan")}}, "model.gate_start", "finite"),
        ({"model": {"name": "MonoAttn", "arm": "papers"}}, "model.arm", "'paper'"),
        ({"training": by_epochs(epochs=0)}, "training.epochs", "greater than 0"),
        ({"training": by_epochs(epochs="many")}, "training.epochs", "integer"),
        ({"training": by_epochs(epochs=2.5)}, "training.epochs", "integer"),
        ({"training": by_epochs(learning_rate=-1)}, "training.learning_rate", "greater than 0"),
        ({"training": by_epochs(learning_rate=float("inf"))}, "training.learning_rate", "finite"),
        ({"training": by_epochs(optimizer="adam")}, "training.optimizer", "no such field"),
        ({"training": by_epochs(optimiser="sgd")}, "training.optimiser", "'adamw'"),
        (
            {"training": by_epochs(optimiser={"name": "adam", "beta": 1})},
            "optimiser.beta",
            "no such",
        ),
        ({"training": by_epochs(optimiser={"name": "adamw"})}, "training.optimiser", "name alone"),
        ({"training": by_epochs(optimiser="adam", weight_decay=0.1)}, "weight_decay", "inside"),
        ({"training": {"name": "epoch"}}, "epoch", "epochs, streaming"),
        ({"training": "epoch"}, "epoch", "epochs, streaming"),
        ({"training": by_epochs(plateau_factor=1)}, "training.plateau_factor", "less than 1"),
        ({"scale": "large"}, "scale", "'reduced'"),
        ({"seed": -1}, "seed", "greater than or equal to 0"),
        ({"seeds": 1}, "seeds", "no such field"),
        # of a wrong type: nothing is converted
        ({"seed": True}, "seed", "integer (given: True)"),
        ({"seed": 2.0}, "seed", "integer (given: 2.0)"),
        ({"seed": "2"}, "seed", "integer (given: '2')"),
        ({"task": {"name": "copy", "train_size": True}}, "task.train_size", "integer"),
        ({"model": {"name": "Content", "hidden_size": "64"}}, "model.hidden_size", "integer"),
        ({"model": {"name": "Content", "dropout": False}}, "model.dropout", "number"),
        ({"training": by_epochs(epochs="25")}, "training.epochs", "integer (given: '25')"),
        ({"training": by_epochs(learning_rate="0.001")}, "training.learning_rate", "number"),
        ({"training": by_epochs(solved_accuracy=True)}, "training.solved_accuracy", "number"),
        ({"training": 5}, "training", "epochs, streaming"),
        # nothing tells a protocol but its name
        ({"training": {"epochs": 25}}, "training", "epochs, streaming"),
        ({"training": {"steps": 200}}, "training", "epochs, streaming"),
        ({"training": {}}, "training", "epochs, streaming"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_impossible_is_refused_by_name_with_what_is_allowed(fields, named, way_out):
    with pytest.raises(RelengthError) as refusal:
        spec(**fields)
    message = str(refusal.value)
    assert named in message and way_out in message
    assert "\n" not in message and "Value error" not in message


LANGUAGE = [
    ("llm_copy", {"name": "Llama", "positions": 2_000}, "fine_tuning", 2_009),
    ("llm_copy", {"name": "PANM on Llama", "bits": 9}, "fine_tuning", 1_009),
    ("llm_dynamic_recall", {"name": "Llama", "positions": 1_000}, "fine_tuning", 1_056),
    ("bigbench_arithmetic", {"name": "Llama", "positions": 30}, "fine_tuning", 41),
    ("squad_80", {"name": "BERT", "positions": 256}, "fine_tuning", 384),
    ("squad_80", {"name": "PANM on BERT", "bits": 8}, "fine_tuning", 384),
    ("scan_26", {"name": "PANM on TRM", "bits": 3}, "fixed_steps", 11),
    ("math_add_or_sub", {"name": "PANM on TRM+RPE", "bits": 7}, "fixed_steps", 162),
    ("multi30k_80", {"name": "PANM on TRM", "bits": 5}, "epochs_by_length", 42),
    ("babi_80", {"name": "PANM on TRM", "bits": 10}, "epochs_by_length", 1_362),
    ("dyck_2", {"name": "PANM on SRNN", "bits": 4}, "plain_epochs", 80),
]


@pytest.mark.parametrize(("task", "model", "training", "size"), LANGUAGE, ids=str)
def test_a_text_beyond_positions_or_addresses_is_refused_before_a_run(task, model, training, size):
    with pytest.raises(RelengthError, match="does not fit into") as refusal:
        spec(task=task, model=model, training=training)
    message = str(refusal.value)
    assert f"{size:,} " in message and ". " not in message
    field, most = next((n, v) for n, v in model.items() if n != "name")
    enough = model | {field: most * 3 if field == "positions" else most + 3}
    assert spec(task=task, model=enough, training=training).model.name == model["name"]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("scan_22", {}),
        ("math_add_or_sub", {"train_size": 50, "validation_size": 50}),
        ("llm_copy", {"train_size": 50, "test_size": 2}),
        ("llm_copy", {"train_size": 50, "test_size": 2, "shots": 5}),
        ("llm_dynamic_recall", {"train_size": 50, "test_size": 2, "shots": 5}),
        ("bigbench_arithmetic", {}),
    ],
)
def test_no_sample_of_a_language_task_is_longer_than_it_says(name, fields):
    task = TASKS[name](**fields)
    read, written = (max(sizes) for sizes in zip(*task.text_sizes(), strict=True))
    made = [task.dataset(split, 0) for split in task.tests]
    longest = max(batch.inputs.shape[1] for batch in made)
    assert longest <= read and max(batch.targets.shape[1] for batch in made) <= written
    if name != "math_add_or_sub":  # whose limit is the published dataset's own
        assert longest == read


@pytest.mark.parametrize(
    ("name", "why"), [("scan_48", "48"), ("scan_99", "48"), ("scan_0", "1"), ("scan_23", "22, 24")]
)
def test_a_cut_off_that_does_not_exist_is_one_sentence_that_says_why(name, why):
    with pytest.raises(RelengthError, match=name) as refusal:
        spec(task=name, model="TRM", training="fixed_steps")
    message = str(refusal.value)
    assert why in message.partition(name)[2] and "reverse_copy" not in message
    assert ". " not in message


def test_every_field_of_a_task_a_model_and_a_protocol_is_strict():
    parts = [*TASKS.values(), *(model.config for model in MODELS.values()), *PROTOCOLS.values()]
    assert all(part.model_config["strict"] for part in (RunSpec, *parts))


def test_an_integer_may_stand_for_a_float():
    same = [spec(training=by_epochs(clip_norm=value)) for value in (5, 5.0)]
    assert same[0] == same[1] and same[0].key == same[1].key


def test_a_missing_part_is_named():
    with pytest.raises(
        RelengthError, match=r"model: Field required.*training: Field required.*scale: F"
    ):
        make_spec(task="copy", seed=0)


def streaming(**fields) -> RunSpec:
    return spec(
        **{"task": "panm_copy", "model": "PANM", "training": STREAMING} | fields,
    )


@pytest.mark.parametrize(
    ("fields", "named", "way_out"),
    [
        ({"training": {"name": "streaming", "steps": 0}}, "training.steps", "greater than 0"),
        ({"training": {"name": "streaming", "steps": 300}}, "300 steps", "intervals of 200"),
        (
            {"training": {"name": "streaming", "steps": 400, "epochs": 3}},
            "training.epochs",
            "no such field",
        ),
        (
            {"training": {"name": "streaming", "steps": 400, "momentum": 1}},
            "training.momentum",
            "less than 1",
        ),
        ({"training": by_epochs(epochs=3)}, "panm_copy draws", "one of streaming"),
        ({"training": "epochs"}, "panm_copy draws", "one of streaming"),
        ({"task": "copy"}, "copy trains on a fixed set", "one of epochs"),
        ({"task": {"name": "panm_copy", "flags": 1}}, "task.flags", "boolean"),
        ({"task": {"name": "panm_copy", "lengths": [9, True]}}, "task.lengths.1", "integer"),
        ({"task": {"name": "panm_copy", "lengths": "91"}}, "task.lengths", "tuple"),
        ({"training": {"name": "streaming", "steps": "400"}}, "training.steps", "integer"),
        ({"model": {"name": "PANM", "arm": ["paper"]}}, "model.arm", "'paper'"),
        ({"model": "MonoAttn"}, "MonoAttn reads tokens", "PANM"),
        ({"task": "copy", "training": "epochs"}, "PANM reads channels", "MonoAttn"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_tasks_models_and_protocols_that_do_not_fit_are_refused(fields, named, way_out):
    with pytest.raises(RelengthError) as refusal:
        streaming(**fields)
    assert named in str(refusal.value) and way_out in str(refusal.value)


def test_a_streaming_spec_survives_its_record_and_has_no_field_of_the_other_protocol():
    ours = streaming(training=STREAMING | {"momentum": 0.5})
    recorded = json.loads(json.dumps(ours.model_dump(mode="json")))
    assert make_spec(**recorded) == RunSpec.recorded(recorded) == ours
    assert "epochs" not in recorded["training"] and recorded["training"]["clip_value"] == 10
    assert ours.training.intervals == 2 and ours.training.most_steps(ours.task) == 400
    assert ours.key != streaming().key


def test_rows_are_told_apart_by_their_pointers():
    rows = [
        streaming(model={"name": "PANM", "arm": "paper", **heads}).row
        for heads in ({}, {"n_mode2": 0}, {"n_mode1": 3, "n_mode2": 2})
    ]
    assert rows == ["PANM", "PANM 2+0", "PANM 3+2"] and spec().row == "Content"


@pytest.mark.parametrize("name", sorted(set(mla.MODELS) - set(TWO_ARMED)))
def test_the_second_reading_exists_only_where_text_and_code_differ(name):
    with pytest.raises(RelengthError) as refusal:
        spec(model={"name": name, "arm": "paper"})
    assert "arm" in str(refusal.value) and "released" in str(refusal.value)


def test_a_changed_copy_has_the_key_and_the_row_of_its_own_values():
    ours, wanted = spec(model="Content"), spec(model="LocAttn", seed=9)
    assert (ours.key, ours.row) != (wanted.key, wanted.row)
    copy = ours.model_copy(update={"seed": 9, "model": wanted.model})
    assert (copy.key, copy.row, hash(copy)) == (wanted.key, wanted.row, hash(wanted))


def test_several_mistakes_are_all_named():
    with pytest.raises(RelengthError) as refusal:
        spec(seed=-1, scale="large", training=by_epochs(epochs=0))
    assert all(field in str(refusal.value) for field in ("seed", "scale", "training.epochs"))


def test_a_spec_cannot_be_changed():
    with pytest.raises(ValidationError):
        spec().seed = 1


def test_of_many_mistakes_five_are_named_and_the_others_counted():
    wrong = {f"lenght_{k}": 5 for k in range(9)}
    with pytest.raises(RelengthError, match="and 4 more") as refused:
        spec(task={"name": "copy", **wrong})
    assert str(refused.value).count("no such field") == 5
