"""The cost of a long context is measured, and the page computes ratios and a slope from it."""

import handmade
import numpy as np
import pytest

from relength.papers.memreasoner import cost_page as page
from relength.papers.memreasoner import reading_time
from relength.papers.memreasoner.reading_time import READ, TOGETHER
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.tasks.facts import LENGTHS, OneFact

lacking = pytest.mark.skipif(bool(why := OneFact().lacks()), reason=f"bAbI and the books: {why}")
ORIGIN = {"created": "2026-11-21T12:00:00Z", "device": "cpu", "device_name": "a processor"}


def measured(power: float = 1.0, decoder: float = 1.0, rounds: int = 5) -> dict:
    """Time grows with lines to a power; the decoder takes so many seconds whatever it reads."""
    lines = {n: 6.0 * 2**i for i, n in enumerate(LENGTHS)}
    own = {n: [(lines[n] / 100) ** power] * rounds for n in LENGTHS}
    others = {name: {n: [decoder] * rounds for n in READ[name]} for name in READ}
    others[TOGETHER] = {n: [decoder / 2] * rounds for n in LENGTHS}
    return {
        **{"kind": reading_time.KIND, "rounds": rounds, "lines": lines},
        "seconds": others | {"MemReasoner": own},
        "memory_bytes": {
            name: dict.fromkeys(reading_time.held_at(read), 700 * 2**20)
            for name, read in READ.items()
        },
        "provenance": ORIGIN | {"torch": "2.13.0"},
    }


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_slope_is_the_power_of_lines(power):
    np.testing.assert_allclose(reading_time.slopes(measured(power)), [power] * 5)


def test_linear_time_and_a_decoder_slow_at_length_reproduce_and_others_contradict():
    found = measured()
    found["seconds"]["GPT"]["0k"] = [0.056] * 5  # of 0.06 s, as printed: 0.28 s of 0.30 s
    good, bad = dict(page.decisions(found)), dict(page.decisions(measured(2.0, 0.001)))
    assert {one.outcome for one in good.values()} == {"reproduced"}
    assert {one.outcome for one in bad.values()} == {"contradicted"}


def test_without_a_measurement_the_page_says_so(tmp_path):
    nothing = page.latest(Store(tmp_path))
    assert nothing is None and page.table(nothing).waits
    assert page.lines(nothing).count("not run") == len(page.QUOTES)
    shown = [*READ.values(), LENGTHS]  # and MemReasoner on whole sets
    assert page.numbers(nothing).count("not run") == 4 * sum(map(len, shown))


def test_times_stand_beside_the_printed_ratios(tmp_path):
    store = Store(tmp_path)
    store.append_benchmark(measured())
    found = page.latest(store)
    line = next(x for x in page.numbers(found).splitlines() if x.startswith("MemReasoner, 128k"))
    assert line.split()[-3:] == ["256.00", "700", f"{13.77 / 0.30:.2f}"]
    line = next(x for x in page.numbers(found).splitlines() if x.startswith("RMT, 1k"))
    assert line.split()[-3:] == ["1.00", "–", "–"]  # not measured there; not in Table 6
    line = next(x for x in page.numbers(found).splitlines() if x.startswith(f"{TOGETHER}, 0k"))
    assert line.split()[-4] == "500.0"
    assert page.table(found).html.count("<tr>") > len(LENGTHS)
    assert [one.claim for one in page.decided(store)] == list(page.QUOTES)


def test_minutes_of_runs_stand_beside_what_a_run_is_meant_to_take(tmp_path):
    """Each run counts by itself; one that no page asks for counts nowhere.

    GPT is trained until it knows its samples, and has more time.
    """
    store, found = Store(tmp_path), experiment("memreasoner_babilong")
    for spec in found.specs("reduced", range(3)):
        if spec.row in ("MemReasoner", "GPT") and spec.model.arm == "paper":
            record = handmade.record(spec, lambda *_: 1.0, experiment=found.name)
            minutes = 20 + spec.seed if spec.row == "GPT" else 3 + spec.seed
            record["cost"] |= {"training_seconds": 60 * minutes, "evaluation_seconds": 30}
            store.append("memreasoner", record)
    ours = next(s for s in found.specs("reduced", [0]) if s.row == "MemReasoner")
    shorter = ours.training.model_copy(update={"epochs": 1})
    other = ours.model_copy(update={"training": shorter})
    store.append("memreasoner", handmade.record(other, lambda *_: 1.0, experiment=found.name))
    data = page.trained(store).groupby("model")["minutes"].agg(["min", "median", "count"])
    assert data.loc["MemReasoner"].tolist() == [3.5, 4.5, 3]
    assert data.loc["GPT"].tolist() == [20.5, 21.5, 3]
    html = page.trained_table(store).html
    assert html.count(">2 of 3<") == html.count(">0 of 3<") == 1
    assert "Of GPT on" in html and "Of MemReasoner on" not in html  # its fastest takes 20.5 of 20
    assert page.trained_table(Store(tmp_path / "none")).waits


def test_the_first_measurements_are_still_shown():
    """They had the memory of the longest context, and the very first neither it nor whole sets."""
    old = measured() | {"memory_bytes": dict.fromkeys(READ, 700 * 2**20)}
    line = next(x for x in page.numbers(old).splitlines() if x.startswith("MemReasoner, 128k"))
    assert line.split()[-2] == "700" and "0.68 GiB" in page.table(old).html
    del old["seconds"][TOGETHER], old["memory_bytes"]
    assert page.table(old).html


@pytest.mark.weekly  # a process for each length and model
@lacking
def test_an_input_is_measured_with_no_sentences_but_its_own(monkeypatch):
    monkeypatch.setattr(reading_time, "LENGTHS", ("0k", "1k"))
    monkeypatch.setattr(reading_time, "READ", {"MemReasoner": ("0k", "1k"), "GPT": ("0k",)})
    monkeypatch.setattr(reading_time, "INPUTS", 1)
    monkeypatch.setattr(reading_time, "SET", 10)
    found = reading_time.measure(rounds=2)
    assert found["lines"]["1k"] > found["lines"]["0k"]
    assert all(
        len(took) == 2 and min(took) > 0 for took in found["seconds"]["MemReasoner"].values()
    )
    assert len(found["seconds"][TOGETHER]["1k"]) == 2
    held = found["memory_bytes"]
    assert {name: {*own} for name, own in held.items()} == {
        **{"MemReasoner": {"0k", "1k"}, "GPT": {"0k"}, TOGETHER: {"0k", "1k"}}
    }
    assert all(100 * 2**20 < most < 2 * 2**30 for own in held.values() for most in own.values())
    (alone,) = reading_time._alone(OneFact(long_size=1), "1k")
    assert len(alone) == 1 and len(alone.sentences) <= alone.inputs.shape[1] + 2
