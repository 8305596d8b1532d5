"""Translation by length: what falls into which part, and which words are known."""

import gzip
import math
import os
import re
from collections import Counter
from pathlib import Path

import handmade
import numpy as np
import pytest
from handmade import amounts
from test_claims import cells_of

from relength.errors import RelengthError
from relength.papers.panm import translation_figures
from relength.papers.panm.translation_experiments import EXPERIMENT
from relength.report import tables
from relength.report.runs import Runs
from relength.runs.store import Store
from relength.specs.spec import make_spec
from relength.tasks import TASKS, multi30k
from relength.tasks.base import EOS, UNK
from relength.tasks.multi30k import Multi30K50, Multi30K80, Multi30KLonger50, tokens
from relength.training import train
from relength.verdicts import claims

FOLDER = Path(os.environ.get("RELENGTH_DATA") or "/nowhere") / "multi30k"
needs_data = pytest.mark.skipif(bool(why := Multi30K80().lacks()), reason=f"Multi30K: {why}")
FEW = {"sentences": 300, "words": 200, "validation_size": 20, "test_size": 40}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("A man's T-shirt, red.", "a man 's t-shirt , red ."),
        ("Zwei Männer („Müller“) grüßen!", "zwei männer ( „ müller “ ) grüßen !"),
        ("A 4-wheeler - fast", "a 4-wheeler - fast"),
        ("dogs' bones", "dogs ' bones"),
    ],
)
def test_words_and_marks_are_tokens(sentence, expected):
    assert " ".join(tokens(sentence)) == expected


@needs_data
@pytest.mark.parametrize("every", [25, pytest.param(1, marks=pytest.mark.weekly)])
def test_a_pre_tokenizer_of_the_library_with_our_pattern_cuts_the_files_as_we_do(every):
    library = pytest.importorskip("tokenizers", reason="the extra `language` is not installed")
    pattern = library.Regex(multi30k.WORD.pattern)
    cutter = library.pre_tokenizers.Split(pattern, behavior="removed", invert=True)
    texts = multi30k._found().texts.values()
    lines = [line for text in texts for line in text.splitlines()][::every]
    assert len(lines) >= 2 * multi30k.ALL // every
    for line in lines:
        theirs = tuple(word for word, _ in cutter.pre_tokenize_str(line.lower()))
        assert multi30k.tokens(line) == theirs


@needs_data
def test_the_pre_tokenizer_of_bert_is_a_second_reading_with_keys_of_its_own():
    pytest.importorskip("tokenizers", reason="the extra `language` is not installed")
    few = {"sentences": 300, "words": 400, "validation_size": 20, "test_size": 40}
    words, bert = Multi30K50(**few), Multi30K50(cut_by="bert", **few)
    assert words.splits() == bert.splits()
    read = {" ".join(pair.source) for pair in bert.samples("train")}
    assert any(" - " in line or " ' s " in line for line in read)
    symbols = {word for pair in bert.samples("train") for word in (*pair.source, *pair.target)}
    assert all(word.isalnum() or len(word) == 1 for word in symbols)
    lengths = [len(pair.source) for pair in bert.samples("train") + bert.samples("validation")]
    assert max(lengths) <= min(len(pair.source) for pair in bert.samples("length"))
    batch = bert.dataset("length", 0)
    ((read, written),) = bert.text_sizes()
    assert batch.inputs.shape[1] <= read and batch.targets.shape[1] <= written


@needs_data
@pytest.mark.parametrize("cut_by", ["words", pytest.param("bert", marks=pytest.mark.weekly)])
def test_no_sentence_is_longer_than_the_task_says(cut_by):
    if cut_by == "bert":
        pytest.importorskip("tokenizers", reason="the extra `language` is not installed")
    every, ((read, written),) = multi30k._pairs(cut_by), Multi30K80(cut_by=cut_by).text_sizes()
    assert max(len(pair.source) for pair in every) == read
    assert max(len(pair.target) for pair in every) + 1 == written


def test_sizes_are_known_without_the_files():
    sizes = {name: split.size for name, split in Multi30K80().splits().items()}
    assert sizes["train"] + sizes["validation"] == 24_811 and sizes["length"] == 6_203
    shorter, longer = Multi30K50().splits(), Multi30KLonger50().splits()
    assert shorter["length"].size + longer["length"].size == 31_014


def test_missing_files_are_said_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path))
    assert "has no multi30k/train.en.gz" in Multi30K80().lacks()
    multi30k._found.cache_clear()
    with pytest.raises(RelengthError, match=r"^Multi30K has no data: train\.en\.gz could not"):
        Multi30K80().provenance()
    monkeypatch.delenv("RELENGTH_DATA")
    monkeypatch.setenv("RELENGTH_OFFLINE", "1")
    assert Multi30K80().lacks() == "RELENGTH_DATA is not set"
    with pytest.raises(RelengthError, match="RELENGTH_OFFLINE forbids"):
        Multi30K80().provenance()


def test_a_damaged_file_is_refused(monkeypatch, tmp_path):
    (tmp_path / "multi30k").mkdir()
    for name in multi30k.data.index()["multi30k"]["files"]:
        (tmp_path / "multi30k" / name).write_bytes(gzip.compress(b"A dog.\n"))
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path))
    multi30k._found.cache_clear()
    with pytest.raises(RelengthError, match=r"train\.en\.gz is damaged or another version"):
        Multi30K80().provenance()
    multi30k._found.cache_clear()


@needs_data
def test_every_line_of_the_files_is_a_pair():
    lines = {
        tongue: [line for part in multi30k.PARTS for line in gzip.decompress(
            (FOLDER / f"{part}.{tongue}.gz").read_bytes()).decode().splitlines()]
        for tongue in ("en", "de")
    }  # fmt: skip
    pairs = multi30k._pairs("words")
    assert len(pairs) == len(lines["en"]) == len(lines["de"]) == multi30k.ALL
    for i in (0, 29_000, 31_013):
        assert pairs[i].source == tokens(lines["en"][i])
        assert pairs[i].target == tokens(lines["de"][i])


@needs_data
@pytest.mark.parametrize("name", multi30k.TASKS)
def test_lengths_trained_on_and_tested_meet_and_do_not_cross(name):
    task = TASKS[name](sentences=2_000, validation_size=100)
    known = [len(p.source) for s in ("train", "validation") for p in task.samples(s)]
    other = [len(p.source) for p in task.samples("length")]
    below, above = (other, known) if task.longer_trained else (known, other)
    assert max(below) <= min(above) and len(below) == 2_000 * task.shorter // 100
    assert task.samples("dev") == task.samples("length")
    assert task.samples("iid") == task.samples("validation")


@needs_data
def test_the_vocabulary_has_the_commonest_training_words_and_none_of_the_test_alone():
    task = Multi30K50(**FEW)
    counts = Counter(w for pair in task.samples("train") for side in pair for w in side)
    known, left_out = set(task.vocabulary[4:]), set(counts) - set(task.vocabulary)
    assert len(task.vocabulary) == 200 and known <= set(counts)
    assert min(counts[w] for w in known) >= max(max(counts[w] for w in left_out), 2)
    batch = task.dataset("length", 0)
    for i, pair in enumerate(task.samples("length")[:10]):
        row = batch.targets[i, : int(batch.target_lengths[i])].tolist()
        assert row[-1] == EOS and len(row) == len(pair.target) + 1
        assert [t == UNK for t in row[:-1]] == [w not in known for w in pair.target]


@needs_data
def test_the_epoch_with_the_lowest_test_loss_is_tested():
    spec = make_spec(
        task={"name": "multi30k_50", **FEW},
        model={"name": "TRM", "width": 8, "heads": 2, "inner_size": 8, "encoder_layers": 1,
               "decoder_layers": 1},
        training={"name": "epochs_by_length", "epochs": 3, "batch_size": 32, "tested": "lowest",
                  "learning_rate": 0.01},
        scale="smoke",
        seed=0,
    )  # fmt: skip
    run = train(spec)
    losses = [point["dev_loss"] for point in run.curve]
    assert spec.row == "TRM, 1 layer"
    selected = run.checkpoints["selected"]
    assert selected["epoch"] == int(np.argmin(losses))
    # One batch of 40 sentences: the curve's mean over sentences is not that over tokens.
    assert selected["tests"]["length"]["perplexity"] == pytest.approx(
        math.exp(min(losses)), rel=1e-4
    )


@needs_data
def test_as_many_german_words_are_unknown_as_the_deviations_say():
    for task, share in ((Multi30K80(), 5), (Multi30K50(), 7)):
        known = set(task.vocabulary)
        german = [word for pair in task.samples("length") for word in pair.target]
        assert round(100 * np.mean([word not in known for word in german])) == share


# --- the experiment -------------------------------------------------------------------------------


def test_the_grid_has_both_models_with_every_split_and_depth():
    grid = EXPERIMENT.grid("reduced", 0)
    cells = {(s.row, s.task.name) for s in grid if s.model.arm != "repaired"}
    names = [f"{model}{n}" for model in ("TRM", "PANM on TRM") for n in ("", ", 1 layer")]
    assert {(n, t) for n in names for t in ("multi30k_80", "multi30k_50")} < cells
    assert len(cells) == 2 * (2 * 3 + 1)
    for spec in grid:
        less = spec.model.name != "TRM" and spec.model.encoder_layers > 1
        assert spec.model.decoder_layers == spec.model.encoder_layers - less
    drawn = {n: sum(EXPERIMENT.makes(n, s) for s in grid) for n in EXPERIMENT.artifacts}
    assert drawn == {"panm-fig-3b-left": 13, "panm-fig-3b-right": 3, "panm-fig-7-right": 3}


def named(text: str) -> list[tuple[str, str]]:
    """The models of a picture's words, each with what is said of it."""
    return re.findall(r"((?:PANM on )?TRM, 2 layers): ([^;]*)", text)


def test_figures_have_perplexities_of_the_curves(tmp_path):
    store = Store(tmp_path)
    for own in EXPERIMENT.specs("reduced", [0, 1]):
        if own.model.arm == "repaired":
            continue
        record = handmade.record(own, lambda s, test: 0.5, experiment=EXPERIMENT.name)
        best = math.log(40 if own.model.name == "TRM" else 30)
        record["curve"] = [
            {"epoch": e, "step": e, "train_loss": 1.0, "dev_accuracy": 0.5, "iid_accuracy": 0.6,
             "learning_rate": 1.0, "dev_loss": best + math.log(2) * (e != 1)}
            for e in range(3)
        ]  # fmt: skip
        # Over tokens the loss is another than the curve's, over batches.
        record["checkpoints"]["selected"]["tests"]["length"]["perplexity"] = 1.05 * math.exp(best)
        store.append("panm", record)
    runs = Runs.read(EXPERIMENT, "reduced", 2, store)
    assert set(tables.metrics_beside(runs)) == {"next_token"}  # perplexity is what is shown
    details = tables.details(runs).html.lower()
    assert "solved" not in details and "next token" in details
    left = translation_figures.by_layers(runs, 1)
    drawn = left.data.groupby("family")["lowest"].unique().to_dict()  # the table's, not the curve's
    assert drawn == {"TRM": pytest.approx([42]), "PANM on TRM": pytest.approx([31.5])}
    medians = re.findall(r"(PANM on )?TRM, \d layers?: ([\d.]+)", left.text)
    assert set(medians) == {("PANM on ", "31.5"), ("", "42.0")}
    assert set(left.data["layers"]) == {1, 2, 3} and len(left.data) == 2 * 12
    right = translation_figures.over_epochs(runs, 2, "panm-fig-3b-right", "longer")
    ends = {"TRM, 2 layers": [40, 80], "PANM on TRM, 2 layers": [30, 60]}  # lowest, at the end
    assert {name: amounts(end)[:2] for name, end in named(right.text)} == ends
    assert re.search(r"\+5\b %", right.html)  # the tested one is 5 % above the curve
    turned = translation_figures.over_epochs(runs, 3, "panm-fig-7-right", "shorter")
    assert {name: amounts(end)[:2] for name, end in named(turned.text)} == ends


@pytest.mark.parametrize(
    ("claim_id", "transformer", "panm", "outcome"),
    [
        ("panm-063", 42.7, 32.7, "reproduced"),  # Table 2's means
        ("panm-063", 32.7, 42.7, "contradicted"),  # lower is better
        ("panm-064", 42.7, 32.7, "reproduced"),
        ("panm-064", 33.0, 32.9, "contradicted"),  # a tie is not better
        ("panm-093", 60.0, 35.0, "reproduced"),
        ("panm-093", 35.0, 60.0, "contradicted"),
        ("panm-093", 60.0, 50.0, "contradicted"),  # 10 below, where 25 are said
    ],
)
def test_claims_on_translation_hold_and_fail_as_they_say(claim_id, transformer, panm, outcome):
    (claim,) = [c for c in claims.load("panm") if c.id == claim_id]

    def value(model: str, task: str, test: str) -> float:
        assert test == "length"
        return panm if model.startswith("PANM") else transformer

    seeds = 5 if outcome == "reproduced" else 10
    assert claims.judge(claim, cells_of(claim, value, spread=0.1, seeds=seeds)).outcome == outcome
