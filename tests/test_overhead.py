"""The pairs that measure what PANM costs differ in the pointers, and the page shows what was
measured.
"""

import re

import numpy as np
import pytest
import torch

from relength.papers.panm import overhead, weights
from relength.papers.panm import overhead_page as page
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.tasks.algorithmic import Copy

ORIGIN = {"created": "2026-11-21T12:00:00Z", "device": "cpu", "device_name": "a processor"}


def measured(share: float = 0.75, rounds: int = 5) -> dict:
    """A measurement in which every backbone keeps this share of its speed, in every round."""
    pairs = {
        pair.name: {
            "bare": [10.0] * rounds,
            "with": [10.0 * share] * rounds,
            "parameters": [1000, 1200],
            "printed": pair.printed,
        }
        for pair in overhead.PAIRS
    }
    origin = {"provenance": ORIGIN | {"torch": "2.13.0"}, "batch_size": 128, "length": 9}
    return {"kind": overhead.KIND, "rounds": rounds, "pairs": pairs} | origin


@pytest.mark.parametrize("pair", overhead.PAIRS, ids=lambda pair: pair.name)
def test_both_models_of_a_pair_train_on_copy(pair):
    task = Copy()
    batch = task.sample(np.random.default_rng(0), 2, 5)
    for build in (pair.bare, pair.with_pointers):
        model = build(*task.shape).initialise(0)
        before = [p.detach().clone() for p in model.parameters()]
        overhead._trainer(model, batch)()
        moved = [not torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True)]
        assert sum(moved) > len(moved) / 2


def test_without_a_measurement_the_page_says_so(tmp_path):
    nothing = page.latest(Store(tmp_path))
    assert nothing is None
    assert page.numbers(nothing).count("not run") == 3 * len(overhead.PAIRS)
    for waits in (page.figure(nothing, 1), page.table(nothing)):
        words = re.sub("<[^>]*>", "", waits.html)
        assert waits.waits and "relength bench --paper panm" in words
    verdicts = page.verdicts(nothing).data.set_index("claim")["verdict"]
    assert set(verdicts.drop("panm-039")) == {"not run"}  # sizes are counted, not measured
    older = measured()
    del older["pairs"][overhead.MORE_POINTERS]  # a measurement from before that pair was asked for
    said = dict(page.decisions(older))
    assert said["panm-090"] is None and said["panm-076"].outcome == "reproduced"


def test_the_last_measurement_of_its_kind_is_shown(tmp_path):
    store = Store(tmp_path)
    other = {"task": "copy", "steps_per_second": {}, "provenance": measured(1.0)["provenance"]}
    for outcome in (measured(0.9), measured(0.75), other):
        store.append_benchmark(outcome)
    found = page.latest(store)
    assert overhead.share(found["pairs"][overhead.LSTM]) == pytest.approx(0.75)
    shown = page.figure(found, 1)
    shares = shown.data.groupby("backbone")["share"].median()
    assert shares[overhead.LSTM] == pytest.approx(75) and "a core of a processor" in shown.html
    assert overhead.MORE_POINTERS not in shares  # the paper's band is about backbones
    assert page.table(found).html.count("75 %") > len(overhead.PAIRS)
    assert page.before(store).count(" 90 %") == len(overhead.PAIRS)
    store.append_benchmark(measured(0.6))
    assert page.before(store).count(" 75 to 90 %") == len(overhead.PAIRS)


def test_five_rounds_within_the_margin_reproduce_and_outside_of_it_contradict():
    verdicts = dict(page.decisions(measured(0.75)))
    assert verdicts["panm-076"].outcome == verdicts["panm-077"].outcome == "reproduced"
    assert verdicts["panm-080"].outcome == "contradicted"  # the larger one gains nothing
    large = measured(0.75)  # PANM with six layers a third faster than they are alone
    large["pairs"]["Transformer, 6 layers"]["with"] = [
        rate / 0.75 for rate in large["pairs"]["Transformer, 6 layers"]["bare"]
    ]
    assert dict(page.decisions(large))["panm-080"].outcome == "contradicted"
    assert verdicts["panm-074"].outcome == "reproduced"  # a third more, claimed 20 to 30 %
    assert dict(page.decisions(measured(1.0)))["panm-074"].outcome == "contradicted"  # nothing more
    assert verdicts["panm-090"].outcome == "reproduced"
    assert dict(page.decisions(measured(1.1)))["panm-090"].outcome == "contradicted"
    assert dict(page.decisions(measured(0.3)))["panm-077"].outcome == "contradicted"
    wide = measured(0.75)
    pair = wide["pairs"][overhead.OF_THE_TABLES]
    pair["with"] = [3 * rate for rate in pair["with"]]
    assert dict(page.decisions(wide))["panm-076"].outcome == "reproduced", "it is no backbone"
    # Of two LSTMs the sentence may be about either: it is decided if both say the same.
    assert dict(page.decisions(wide))["panm-077"].outcome == "inconclusive"
    seen = dict(page.decisions(wide))["panm-077"].seen
    assert "0.75" in seen and "2.25" in seen and overhead.OF_THE_TABLES in seen
    apart = measured(0.3)  # one below the printed ratio and one above: it may be a third one's
    pair = apart["pairs"][overhead.OF_THE_TABLES]
    pair["with"] = [6 * rate for rate in pair["with"]]
    assert dict(page.decisions(apart))["panm-077"].outcome == "inconclusive"
    assert dict(page.decisions(measured(0.75, rounds=4)))["panm-077"].outcome == "inconclusive"


def test_sizes_are_counted_and_compared_with_those_of_the_paper():
    """The LSTM by hand: four gates, a learned first state, and an output layer of ten."""
    found = page.sizes().set_index(["model", "arm"])
    per_gate = 512 * (12 + 512 + 2)  # ten digits and two marks, the state, two biases
    assert found.loc[("LSTM", "released"), "weights"] == 4 * per_gate + 2 * 512 + 512 * 10 + 10
    assert set(found.query("judged").reset_index()["arm"]) == {"released"}
    assert found.loc[("NTM", "released"), "near"] and not found.loc[("PANM", "released"), "near"]
    assert page.sized().outcome == "contradicted"
    assert found.loc[("PANM", "released"), "weights"] == pytest.approx(0.72e6, rel=0.01)
    words = re.sub("<[^>]*>", " ", page.sizes_table().html)
    assert "1.2 million" in words and "1 to 3 million" in words


def test_kept_counts_of_weights_are_those_of_the_models():
    """Every reading of the tables is kept: a page that counts would have to build it."""
    specs = experiments()["panm_algorithmic"].specs("reduced", [0])
    models = {(s.model, s.task.shape) for s in specs if s.task.name == Copy().name}
    assert len(models) == len(weights.kept())
    for config, shape in models:
        assert weights.kept()[weights.name(config, shape)] == weights.count(config, shape)
