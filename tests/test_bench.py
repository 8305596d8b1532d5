"""The yardstick of speed: the frozen loop trains the same model; rates are taken side by side."""

import torch

from relength.engine import bench
from relength.engine.baseline import PlainOneStep
from relength.models import MODELS
from relength.spec import make_spec
from relength.store import Store

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


def test_the_frozen_loop_and_the_library_compute_the_same_function():
    spec = make_spec(task="recopy", model="OneStepAttn", scale="smoke", seed=1)
    config, build = MODELS["OneStepAttn"]
    ours = build(config(name="OneStepAttn"), len(spec.task.vocabulary)).initialise(1)
    plain = PlainOneStep(len(spec.task.vocabulary)).eval()
    weights = ours.state_dict()
    state = {name: weights[same] for name, same in SAME.items()}
    state["start"], state["end"] = weights["marks"]
    state["sigma.weight"], state["step.weight"] = weights["attention.heads.weight"].split(1)
    plain.load_state_dict(state)
    batch = spec.task.dataset("15", 0).select(slice(0, 6))
    torch.testing.assert_close(plain(batch), ours(batch), rtol=1e-4, atol=1e-5)


def test_a_measurement_is_kept_with_the_machine_it_was_made_on(tmp_path):
    outcome = bench.measure("copy", rounds=1, seconds=0.05, workers=2)
    assert outcome["ratio_to_baseline"]["baseline"] == 1
    assert all(rate > 0 for rate in outcome["steps_per_second"].values())
    store = Store(tmp_path / "results")
    bench.keep(store, outcome)
    bench.keep(store, outcome)
    lines = (store.path / "bench.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert '"device_name"' in lines[0]
