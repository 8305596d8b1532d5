"""Causal language models, and PANM on one: padding, decoding, adapters, BLEU, what is missing."""

import re
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec

import pytest
import torch

from relength.errors import RelengthError
from relength.kernels.hashing import step_key
from relength.models import MODELS
from relength.papers.panm import shots
from relength.report.runs import Runs
from relength.runs.prices import Device, Pace, Prices, Timed
from relength.runs.run import run_or_load
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.specs.spec import make_spec
from relength.streams import dropout_key, stream
from relength.tasks import TASKS, bigbench, pretrained
from relength.tasks.base import EOS
from relength.tasks.instructions import LETTERS
from relength.tasks.text_scores import bleu
from relength.training.alone import Trainer, build, train
from relength.training.protocols import PROTOCOLS

if not all(map(find_spec, ("transformers", "peft", "sacrebleu"))):  # seconds to import
    pytest.skip("the extra `language` is not installed", allow_module_level=True)

SIZES = {"width": 16, "heads": 2, "inner_size": 12, "layers": 2}
SMALL = {"train_size": 40, "test_size": 6, "validation_size": 6, "longest": 20}
NAMES = ("Llama", "PANM on Llama")
every_model = pytest.mark.parametrize("name", NAMES)


def task(name: str = "llm_copy", **fields):
    return TASKS[name](**(SMALL | fields))


def built(name: str, **fields):
    """A model in which everything has some weight, in double precision."""
    more = {"pointer_size": 5, "mlp_size": 6} if "PANM" in name else {}
    config = MODELS[name].config(**(SIZES | more | fields))
    model = MODELS[name].module(config, *task().shape).initialise(3).double()
    for i, (_, weight) in enumerate(model.named_parameters()):
        weight.data += 0.3 * torch.from_numpy(stream(i, "data").normal(size=weight.shape))
    return model


def batch():
    """Copies of three to ten letters."""
    random = stream(1, "data")
    return task().encode([task().draw(random, n) for n in (3, 10, 7, 4)])


# --- the network ------------------------------------------------------------------------------


def test_scores_are_those_of_the_library_on_each_text_alone():
    from transformers import LlamaForCausalLM

    model, samples = built("Llama"), batch()
    whole = LlamaForCausalLM(model.network.config).double()
    whole.model, whole.lm_head = model.network, model.scoring
    scores = model(samples)
    for i in range(len(samples)):
        n, steps = int(samples.input_lengths[i]), int(samples.target_lengths[i])
        text = torch.cat([samples.inputs[i, :n], samples.targets[i, : steps - 1]])
        theirs = whole(text[None]).logits[0, n - 1 :]
        torch.testing.assert_close(scores[i, :steps], theirs)


@every_model
def test_a_sample_does_not_feel_the_others_of_its_batch(name):
    model, samples = built(name), batch()
    together = model(samples)
    for i in range(len(samples)):
        alone = samples.select(slice(i, i + 1))
        torch.testing.assert_close(model(alone)[0], together[i, : alone.targets.shape[1]])


@every_model
def test_what_is_written_step_by_step_is_what_teacher_forcing_would_choose(name):
    model, samples = built(name), batch()
    written, _ = model.generate(samples, samples.targets.shape[1])
    assert len({tuple(row) for row in written.tolist()}) > 1
    heard = type(samples)(samples.inputs, written, *samples.tensors[2:])
    open_ = (written == EOS).cumsum(1) - (written == EOS).long() == 0  # up to the end token
    assert open_.sum() > len(samples)
    assert (model(heard).argmax(2) == written)[open_].all()


@every_model
def test_after_an_end_token_nothing_else_is_written(name):
    model, samples = built(name), batch()
    last = model.scoring if name == "Llama" else model.panm.controller.output
    before, _ = model.generate(samples, 12)
    swapped = [EOS, int(before[0, 3])]  # what was written there ends the text now
    for weights in last.parameters():
        weights.data[swapped] = weights.data[swapped[::-1]]
    written, _ = model.generate(samples, 12)
    ended = (written == EOS).cumsum(1) > 0
    assert ended.any() and (written[ended] == EOS).all()


@every_model
def test_decoding_in_parts_changes_nothing(name, monkeypatch):
    from relength.models.language import causal

    model, samples = built(name), batch()
    whole, _ = model.generate(samples, 5)
    monkeypatch.setattr(causal, "TOKENS", 1)  # one sample at a time
    assert (model.generate(samples, 5)[0] == whole).all()


def test_pointers_see_the_prompt_and_the_controller_every_step():
    """Scores by hand: PANM's own forward pass on the vectors of one prompt."""
    model, samples = built("PANM on Llama"), batch().select(slice(2, 3))
    n, steps = int(samples.input_lengths[0]), samples.targets.shape[1]
    text = torch.cat([samples.inputs, samples.targets[:, :-1]], dim=1)
    vectors = model.network(text).last_hidden_state
    reading, h = model.panm.read(vectors[:, :n], steps, torch.zeros(1, dtype=torch.int64))
    theirs, _ = model.panm.controller(reading, vectors[:, n - 1 :], h)
    torch.testing.assert_close(model(samples), theirs)
    assert model.scoring is None


def test_base_addresses_are_drawn_in_training_and_zero_in_tests():
    model, samples = built("PANM on Llama"), batch()
    keys = [step_key(dropout_key(0, "encodings"), step) for step in range(2)]
    first, second, tested = *(model(samples, key) for key in keys), model(samples)
    assert not torch.allclose(first, second) and not torch.allclose(first, tested)
    torch.testing.assert_close(model(samples), tested)


def test_a_text_that_is_too_long_is_one_sentence():
    samples = batch()
    with pytest.raises(RelengthError, match=r"29 tokens does not fit into 12 positions"):
        built("Llama", positions=12)(samples)
    with pytest.raises(RelengthError, match=r"19 slots does not fit into 16 addresses of 4 bits"):
        built("PANM on Llama", bits=4)(samples)


# --- training -----------------------------------------------------------------------------------


def spec(name: str, seed: int = 0, model: dict | None = None, more: dict | None = None):
    training = {
        "steps": 40,
        "validate_every": 10,
        "curve_every": 20,
        "batch_size": 8,
        "warm_up": 10,
    }
    return make_spec(
        task={"name": "llm_copy", **SMALL, **(more or {})},
        model={"name": name, **SIZES, **(model or {})},
        training={"name": "fine_tuning", "highest_rate": 1e-2, **training},
        scale="smoke",
        seed=seed,
    )


@every_model
def test_a_run_learns_something_and_has_every_metric(name):
    run = train(spec(name))
    first, last = (point["train_loss"] for point in (run.curve[0], run.curve[-1]))
    assert last < first - 0.1
    tests = run.checkpoints["selected"]["tests"]
    assert [*tests] == ["iid", "20"]
    assert {"bleu", "exact_match", "edit_distance"} <= set(tests["iid"])
    assert run.checkpoints["selected"]["epoch"] == 3


def test_the_rate_rises_and_falls_as_the_appendix_says():
    tuned = PROTOCOLS["fine_tuning"]()
    assert tuned.steps == 3 * 100_000 // 32
    assert tuned.rate(0) == pytest.approx(3e-6)
    assert tuned.rate(99) == tuned.rate(100) == pytest.approx(3e-4)
    assert tuned.rate(100 + (9_375 - 100) // 2) == pytest.approx(1.5e-4, rel=1e-3)
    assert tuned.rate(9_374) < 1e-9


# --- a pretrained model -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny Llama with a tokenizer of its own, as a pretrained model lies on a disk."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    place = tmp_path_factory.mktemp("llama")
    words = ["<unk>", "<s>", "</s>", *task().symbols, "_"]
    cutter = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    cutter.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    kinds = {"eos_token": "</s>", "bos_token": "<s>", "unk_token": "<unk>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=cutter, **kinds).save_pretrained(place)
    sizes = {"hidden_size": 16, "intermediate_size": 12, "num_hidden_layers": 2}
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(
        transformers.LlamaConfig(vocab_size=len(words), num_attention_heads=2, **sizes)
    ).save_pretrained(place)
    return str(place)


def test_a_pretrained_tokenizer_cuts_the_text_and_answers_are_scored_as_text(folder):
    cut = task(tokenizer=folder)
    assert not cut.lacks()
    samples, pairs = cut.dataset("iid", 0), cut.pairs("iid", 0)
    assert cut.shape == (len(task().symbols) + 4,)
    for row, pair in enumerate(pairs):
        n = int(samples.input_lengths[row])
        assert cut.decode(samples.inputs[row, :n].tolist()) == pair.source
        assert cut.decode(samples.targets[row].tolist()) == pair.target
        assert samples.targets[row, int(samples.target_lengths[row]) - 1] == cut.end
    scored = cut.score([(samples, samples.targets)])
    assert scored.bleu == scored.exact_match == 1


@every_model
def test_of_a_pretrained_model_adapters_and_the_head_are_trained_and_nothing_else(name, folder):
    from transformers import LlamaForCausalLM

    adapted = {"weights": folder, "lora_rank": 3}
    trainer = Trainer(spec(name, model=adapted, more={"tokenizer": folder}))
    model = trainer.model
    original = LlamaForCausalLM.from_pretrained(folder)
    trained = {key for key, _ in model.named_parameters()}
    network = {key for key in trained if key.startswith("network")}
    assert network and all("lora" in key for key in network)
    assert {key.split(".")[-4] for key in network} == {"q_proj", "v_proj"}
    assert set(model.state_dict()) == trained
    samples = trainer.splits["validation"][0].select(slice(0, 1))
    if name == "Llama":  # an adapter that has learned nothing changes nothing
        text = torch.cat([samples.inputs, samples.targets[:, :-1]], dim=1)
        theirs = original(text).logits[:, samples.inputs.shape[1] - 1 :]
        torch.testing.assert_close(model(samples), theirs)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    trainer.run_epoch()
    moved = {key for key, value in model.state_dict().items() if not value.equal(before[key])}
    assert {key for key in moved if "lora_B" in key} == {k for k in network if "lora_B" in k}
    kept = dict(torch.nn.Module.named_parameters(model))
    assert kept["network.layers.0.self_attn.q_proj.base_layer.weight"].equal(
        original.model.layers[0].self_attn.q_proj.weight
    )


def test_a_finished_run_of_a_pretrained_model_is_tested_with_its_own_adapters(folder):
    run = train(spec("Llama", model={"weights": folder}, more={"tokenizer": folder}))
    assert run.parameters == 2 * 2 * 2 * 8 * 16  # layers, maps, halves, rank, width
    assert set(run.checkpoints["selected"]["tests"]) == {"iid", "20"}
    assert any(value.abs().max() > 0 for key, value in run.model.state_dict().items() if "B" in key)


def test_an_untrained_model_answers_as_it_was_published(folder):
    published = {"weights": folder}
    untrained = make_spec(
        task={"name": "llm_copy", **SMALL, "tokenizer": folder},
        model={"name": "Pretrained Llama", **SIZES, **published},
        training={"name": "untrained"},
        scale="smoke",
        seed=0,
    )
    run = train(untrained)
    assert [point["learning_rate"] for point in run.curve] == [0.0]
    first = build(untrained)
    for name, weight in run.model.state_dict().items():
        assert weight.equal(first.state_dict()[name])
    samples = untrained.task.dataset("iid", 0)
    scored = untrained.task.score([(samples, first.generate(samples, samples.targets.shape[1])[0])])
    assert run.checkpoints["selected"]["tests"]["iid"]["edit_distance"] == scored.edit_distance > 0
    for setting in ({"steps": 2}, {"learning_rate": 1e-3}):
        with pytest.raises(ValueError):
            PROTOCOLS["untrained"](**setting)
    assert spec("Llama").training.name != "untrained"
    with pytest.raises(RelengthError, match="takes protocol untrained only"):
        spec("Pretrained Llama")


def tiny(kind: str):
    """A causal language model of some kind, with random weights and 70 tokens."""
    import transformers

    same = {"vocab_size": 70, "bos_token_id": 1, "eos_token_id": 1}
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.AutoConfig.for_model(kind, **sizes, **same)
    if kind != "gpt2":
        config.intermediate_size = 12
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config)


@pytest.mark.parametrize(
    ("kind", "maps"),
    [("gpt2", {"c_attn"}), ("gpt_neox", {"query_key_value"}), ("llama", {"q_proj", "v_proj"})],
)
def test_any_causal_language_model_gets_adapters_where_its_queries_and_values_are(
    kind, maps, tmp_path
):
    original = tiny(kind).eval()
    original.save_pretrained(tmp_path)
    adapted, samples = {"weights": str(tmp_path), "lora_rank": 2}, batch()
    model = MODELS["Llama"].module(MODELS["Llama"].config(**adapted), 70).initialise(0)
    trained = {name for name, _ in model.named_parameters()}
    assert {name.split(".")[-4] for name in trained} == maps
    assert all("lora" in name for name in trained)
    scores, row = model(samples), 2  # not the longest: it begins with padding
    n, steps = int(samples.input_lengths[row]), int(samples.target_lengths[row])
    text = torch.cat([samples.inputs[row, :n], samples.targets[row, : steps - 1]])
    theirs = original(text[None]).logits[0, n - 1 :]
    torch.testing.assert_close(scores[row, :steps], theirs, rtol=1e-4, atol=1e-5)
    written, _ = model.generate(samples, 3)
    assert written[row, 0] == theirs[0].argmax()
    task().loss(scores, samples).backward()
    assert all(w.grad.abs().max() > 0 for name, w in model.named_parameters() if "lora_B" in name)


def test_a_network_whose_maps_nobody_knows_is_one_sentence(tmp_path, monkeypatch):
    from peft.utils import constants

    tiny("gpt2").save_pretrained(tmp_path)
    known = constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
    monkeypatch.delitem(known, "gpt2")
    with pytest.raises(RelengthError, match="gpt2") as caught:
        MODELS["Llama"].module(MODELS["Llama"].config(weights=str(tmp_path)), 70)
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize(
    ("kind", "field"), [("cohere", "logit_scale"), ("gemma2", "final_logit_softcapping")]
)
def test_a_network_that_changes_its_scores_afterwards_is_refused(kind, field, tmp_path):
    tiny(kind).save_pretrained(tmp_path)
    with pytest.raises(RelengthError, match=field):
        MODELS["Llama"].module(MODELS["Llama"].config(weights=str(tmp_path)), 70)


def test_weights_in_half_precision_are_read_in_single(tmp_path):
    tiny("llama").to(torch.bfloat16).save_pretrained(tmp_path)
    model = (
        MODELS["PANM on Llama"]
        .module(MODELS["PANM on Llama"].config(weights=str(tmp_path)), 70)
        .initialise(0)
    )
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert model(batch()).isfinite().all()


def test_a_pretrained_model_reads_no_more_than_its_own_table_of_positions(tmp_path):
    import transformers

    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 20, "vocab_size": 70}
    made = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**sizes, bos_token_id=1, eos_token_id=1)
    )
    made.save_pretrained(tmp_path)
    model = MODELS["Llama"].module(MODELS["Llama"].config(weights=str(tmp_path)), 70)
    with pytest.raises(RelengthError, match="20 positions"):
        model(batch())


def test_weights_that_are_not_here_are_told_before_a_run_and_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    name = "meta-llama/Llama-2-7b-hf"
    assert task(tokenizer=name).lacks().startswith(f"weights: {name}")
    with pytest.raises(RelengthError, match=f"{name} is not on this machine: fetch it") as caught:
        MODELS["Llama"].module(MODELS["Llama"].config(weights=name), 10)
    assert "\n" not in str(caught.value)
    kept = tmp_path / "models--meta-llama--Llama-2-7b-hf" / "snapshots" / "1"
    kept.mkdir(parents=True)
    (kept / "config.json").write_text("{}")
    assert pretrained.folder(name) == kept
    with pytest.raises(RelengthError, match=f"{name} cannot be read"):
        MODELS["Llama"].module(MODELS["Llama"].config(weights=name), 10)
    for commit in ("0", "9"):
        (kept.with_name(commit)).mkdir()
        (kept.with_name(commit) / "config.json").write_text("{}")
    assert pretrained.folder(name) == kept.with_name("9")
    refs = kept.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text("0")
    assert pretrained.folder(name) == kept.with_name("0")


def test_weights_that_are_cut_off_or_missing_are_one_sentence(tmp_path):
    network = tiny("llama")
    network.save_pretrained(tmp_path / "cut")
    (file,) = (tmp_path / "cut").glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-100])
    network.model.save_pretrained(tmp_path / "headless")  # without the layer that scores tokens
    for folder, said in (("cut", "cannot be read"), ("headless", "has no weights lm_head.weight")):
        with pytest.raises(RelengthError, match=said) as caught:
            MODELS["Llama"].module(MODELS["Llama"].config(weights=str(tmp_path / folder)), 70)
        assert "\n" not in str(caught.value)


def test_a_network_that_reads_ahead_is_refused(tmp_path):
    tiny("bert").save_pretrained(tmp_path)
    with pytest.raises(RelengthError, match="reads ahead"):
        MODELS["Llama"].module(MODELS["Llama"].config(weights=str(tmp_path)), 70)


# --- BLEU ---------------------------------------------------------------------------------------


def test_right_answers_of_one_letter_have_no_bleu_by_the_call_of_the_harness():
    from sacrebleu import corpus_bleu

    answers = list(LETTERS[:20])
    assert corpus_bleu(answers, [answers]).score == 0
    assert bleu(answers, answers) == 1
    assert bleu(answers[:5] + answers[6:], answers[:5] + answers[5:-1]) == pytest.approx(5 / 19)


@pytest.mark.parametrize(
    ("last", "right"), [("A", 1), ("b", 189 / 190), ("A b", 190 / 191), ("A b c d e", 190 / 194)]
)
def test_one_answer_that_goes_on_weighs_no_more_than_its_letters(last, right):
    wanted = ["A"] * 190
    assert bleu([*wanted[1:], last], wanted) == pytest.approx(right)


def test_bleu_of_longer_texts_is_that_of_the_harness():
    from sacrebleu import corpus_bleu

    given, wanted = ["a b c d e f", "g h i j k"], ["a b c d x f", "g h i j k"]
    assert bleu(given, wanted) == pytest.approx(corpus_bleu(given, [wanted]).score / 100)


# --- reading is light -----------------------------------------------------------------------------


def test_specs_and_pages_import_no_library_of_the_extra():
    """In a process of its own, which also says that no torch is needed."""
    code = (
        "import sys; from relength.specs.experiments import experiment; "
        "found = experiment('panm_language'); specs = found.specs('paper', [0]); "
        "print([spec.task.lacks() != '' for spec in specs], "
        "[name for name in ('torch', 'transformers', 'peft', 'sacrebleu') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("] ")[1].strip() == "[]"


# --- BIG-bench ------------------------------------------------------------------------------------


def test_at_scale_paper_training_passes_three_times_over_the_shortest_questions():
    here = experiment("panm_bigbench").specs("paper", [0])
    assert {spec.task.name for spec in here} == {"bigbench_arithmetic", "bigbench_abstract"}
    for spec in here:
        if spec.training.name != "untrained" and not TASKS[spec.task.name]().lacks():
            passes = 3 * TASKS[spec.task.name]().splits()["train"].size
            batch, steps = spec.training.batch_size, spec.training.steps
            assert (steps - 1) * batch < passes <= steps * batch == steps * 32


def test_arithmetic_is_right_and_its_longest_questions_are_tested():
    made = TASKS["bigbench_arithmetic"]()
    operations = {"plus": "+", "minus": "-", "times": "*", "divided by": "//"}
    for prompt, answer in made.items():
        first, operation, second = re.fullmatch(r"What is (\d+) (\D+) (\d+)\?", prompt).groups()
        assert eval(f"{first} {operations[operation]} {second}") == int(answer), prompt
        assert operation != "divided by" or int(first) % int(second) == 0
        assert len(first) == len(second)
    asked = {n: [made.text(p.source).split() for p in made.pairs(n, 0)] for n in made.splits()}
    digits = {n: {len(words[2]) for words in found} for n, found in asked.items()}
    assert max(digits["train"]) < min(digits["length"])
    for found in asked.values():  # or an operation would be tested that was never trained on
        assert {words[3] for words in found} == {"plus", "minus", "times", "divided"}
    assert not {p.source for p in made.pairs("train", 0)} & {p.source for p in made.pairs("iid", 0)}


@pytest.mark.parametrize("name", ["llm_copy", "llm_dynamic_recall"])
def test_shots_are_other_sequences_of_the_same_length_with_right_answers(name):
    plain, shown = (TASKS[name](shots=n, test_size=20) for n in (0, 5))
    assert set(shown.tests) - set(plain.tests) == {
        f"5-shot_{n}" for n in (10, 20, 40, 100, 200, 500, 1000)
    }
    for test, split in (("iid", "5-shot_10"), ("40", "5-shot_40")):
        assert plain.pairs(test, 0) == shown.pairs(test, 0)
        for bare, asked in zip(plain.pairs(test, 0), shown.pairs(split, 0), strict=True):
            *examples, last = shown.text(asked.source).split(" \n \n ")
            assert last == plain.text(bare.source) and asked.target == bare.target
            assert len(set(examples) | {last}) == 6
            for example in examples:
                prompt, _, answer = example.partition(" Your answer: ")
                given = prompt.split("Given this: ")[1].removesuffix(" \n").split(" ")
                if name == "llm_copy":
                    assert answer.split(" ") == given and len(given) == len(bare.target)
                else:
                    letters, query = given[:-2], given[-1]
                    assert plain.pair(tuple(letters), query).target == (answer,)


def test_a_prompt_too_long_to_be_read_loses_its_beginning():
    task = TASKS["llm_copy"](shots=5, test_size=2, reads=150)
    batch = task.dataset("5-shot_40", 0)
    assert batch.inputs.shape[1] + batch.targets.shape[1] == 150
    whole = task.pairs("5-shot_40", 0)[0]
    assert task.spelled(batch.inputs[0].tolist()) == whole.source[-109:]
    short = task.dataset("iid", 0)
    assert task.spelled(short.inputs[0].tolist()) == task.pairs("iid", 0)[0].source


def test_one_answer_to_all_questions_is_hardly_ever_right():
    made = TASKS["bigbench_arithmetic"]()
    for name in ("iid", "length"):
        answers = Counter(p.target for p in made.pairs(name, 0))
        assert max(answers.values()) <= 0.05 * answers.total()


def test_shots_stand_before_questions_of_tests_and_come_from_training():
    plain, shown = (TASKS["bigbench_arithmetic"](shots=n, test_size=5) for n in (0, 5))
    known = {(plain.text(s), plain.text(t)) for s, t in plain.pairs("train", 0)}
    assert plain.pairs("train", 0) == shown.pairs("train", 0)
    assert shown.pairs("length", 0) == plain.pairs("length", 0)
    for bare, asked in zip(plain.pairs("length", 0), shown.pairs("5-shot", 0), strict=True):
        *examples, last = shown.text(asked.source).split("\n\n")
        assert last == plain.text(bare.source) and asked.target == bare.target
        assert len(examples) == 5
        for example in examples:
            question, answer = re.fullmatch(r"(.*\?) (\S+)", example).groups()
            assert (question, answer) in known


def test_the_answer_of_a_narrative_is_one_of_its_proverbs():
    told = TASKS["bigbench_abstract"]()
    if told.lacks():
        pytest.skip(told.lacks())
    assert len(told.items()) == 1_000
    for prompt, answer in told.items():
        proverbs = prompt.removeprefix("Given the choice: ").split("\n. In what follows")[0]
        assert answer in proverbs.split("\n") and len(proverbs.split("\n")) == 5


def test_narratives_that_are_missing_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path))
    assert "which has no bigbench/" in TASKS["bigbench_abstract"]().lacks()
    with pytest.raises(RelengthError, match=r"bigbench_abstract has no data: .*put the file"):
        TASKS["bigbench_abstract"]().items()


def test_damaged_narratives_are_one_sentence_and_stop_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path))
    path = tmp_path / bigbench.FILE
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(RelengthError, match="damaged or another version"):
        TASKS["bigbench_abstract"]().items()
    assert {split.size for split in TASKS["bigbench_abstract"]().splits().values()} == {1}
    assert TASKS["bigbench_abstract"]().text_sizes() == ()


# --- five examples at scale reduced ------------------------------------------------------------


def test_runs_of_a_small_network_after_five_examples_are_trained_as_those_without():
    plain, shown = experiment("panm_language"), experiment("panm_language_shots")
    for bare, asked in zip(plain.specs("reduced", [0]), shown.specs("reduced", [0]), strict=True):
        assert asked.key != bare.key and shown.keeper(asked) == shown
        assert (asked.model, asked.training) == (bare.model, bare.training)
        assert asked.task.model_copy(update={"shots": 0}) == bare.task
        assert {"5-shot_10", "5-shot_1000"} <= set(asked.task.tests)
    assert shown.specs("paper", [0]) == plain.specs("paper", [0])
    assert not shown.borrows  # its runs have a price of their own


def test_long_prompts_overflow_where_both_lengths_of_examples_say_so():
    def outcome(long: int, short: int) -> str:
        found = [shots.Prompt(task, n, n * long, 0) for task in ("a", "b") for n in (10, 1000)]
        return shots.overflow(found, dict.fromkeys("ab", short)).outcome

    assert shots.reads() == 4096
    assert outcome(long=5, short=5000) == "reproduced"
    assert outcome(long=4, short=4000) == "contradicted"
    assert outcome(long=5, short=4000) == "inconclusive"


def test_prompts_of_another_length_are_no_estimate_of_a_price():
    found = {spec.task.name: spec for spec in experiment("panm_language").specs("reduced", [0])}
    here, long = Device("cpu", "a processor"), found["llm_copy"]  # an answer as long as the prompt
    prices = Prices([], here, few=[Timed(here, long, Pace(0.1))])
    assert prices.pace(long) == Pace(0.1)
    assert prices.pace(found["llm_dynamic_recall"]) is None


def test_a_miniature_of_the_five_shot_runs_is_trained_and_shown(tmp_path):
    found, store = experiment("panm_language_shots"), Store(tmp_path)
    chosen = [s for s in found.specs("smoke", [0]) if s.task.name == "llm_copy"][:2]
    run_or_load(chosen, store, found, train=True, workers=1)
    counted = [shots.Prompt("llm_copy", n, 6 * n, 10 * n) for n in (10, 20, 1000)]
    made = shots.table(Runs.read(found, "smoke", 1, store), 1, counted)
    cells = made.data.query("scale == 'smoke' and arm == 'paper' and task == 'llm_copy'").set_index(
        ["model", "letters"]
    )
    ran = [(spec.row, n) for spec in chosen for n in (10, 20)]
    assert len(ran) == 4 and (cells.loc[ran, "seeds"] == 1).all()
    assert cells.loc[ran, "bleu"].between(0, 100).all()
    assert made.data.query("scale == 'paper'")["seeds"].sum() == 0
