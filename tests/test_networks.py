"""MemReasoner of pretrained networks, by tiny ones of the same classes that lie in folders."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from relength.cli import main as cli
from relength.errors import RelengthError
from relength.models import MODELS
from relength.models.language.backbones import loaded
from relength.models.language.networks import Reader, Writer
from relength.runs.campaign import Campaign
from relength.runs.run import run_or_load
from relength.runs.store import Store
from relength.specs.experiments import experiment
from relength.specs.spec import make_spec
from relength.tasks import pretrained
from relength.tasks.base import EOS, PAD, SOS, SPECIALS
from relength.tasks.facts import NEW_PLACES, PLACES, Episode, OneFact
from relength.training.alone import Trainer

transformers = pytest.importorskip("transformers", reason="the extra `language` is not installed")

lacking = pytest.mark.skipif(bool(why := OneFact().lacks()), reason=f"bAbI and the books: {why}")
OWN = len(SPECIALS)
DECODERS = ("gpt2", "gptj", "qwen2")
PEOPLE = ("Mary", "John", "Sandra", "Daniel", "football", "apple", "milk")
VERBS = ("moved", "went", "back", "travelled", "journeyed", "to", "the", "is", "in", "Where")
WORDS = (*PLACES, *NEW_PLACES, *PEOPLE, *VERBS, "VAR", "=", "?", ".", "AAAAA", "BBBBB")
LINES = ("Mary moved to the bathroom.", "", "John went to the hallway.")
EPISODES = [
    Episode(LINES, "Where is Mary?", "bathroom", (0,)),
    Episode(LINES[::-1], "Where is John?", "hallway", (0,)),
    # Three tokens name her, where the others have one, and she went to the longest line.
    Episode((*LINES, "Wilhelmina went back to the kitchen."), "Where is Wilhelmina?", "kitchen",
            (3,)),
]  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """{class: folder} of tiny networks with tokenizers of their own, as pretrained ones lie."""
    import transformers as library

    torch.manual_seed(0)
    home = tmp_path_factory.mktemp("networks")
    narrow = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    narrow |= {"intermediate_size": 48}
    gpt = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
    sizes = {"bert": _pieces(home / "bert"), **{n: _bytes(home / n) for n in DECODERS}}
    # The larger two score more tokens than their tokenizers have, as the published ones do.
    whole = {
        "bert": library.BertModel(library.BertConfig(vocab_size=sizes["bert"], **narrow)),
        "gpt2": library.GPT2LMHeadModel(library.GPT2Config(vocab_size=sizes["gpt2"], **gpt)),
        "gptj": library.GPTJForCausalLM(
            library.GPTJConfig(vocab_size=sizes["gptj"] + 9, rotary_dim=4, **gpt)
        ),
        "qwen2": library.Qwen2ForCausalLM(
            library.Qwen2Config(vocab_size=sizes["qwen2"] + 5, num_key_value_heads=2, **narrow)
        ),
    }
    for name, network in whole.items():
        network.save_pretrained(home / name)
    return {name: str(home / name) for name in whole}


def _pieces(place) -> int:
    """A tokenizer of word pieces, as BERT's; how many tokens it has."""
    import transformers as library
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = [chr(c) for c in (*range(ord("a"), ord("z") + 1), *range(ord("A"), ord("Z") + 1))]
    signs = [*letters, *"0123456789", *(f"##{c}" for c in (*letters, *"0123456789"))]
    every = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *signs])
    cutter = Tokenizer(models.WordPiece({w: i for i, w in enumerate(every)}, unk_token="[UNK]"))
    cutter.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    library.PreTrainedTokenizerFast(tokenizer_object=cutter, **marks).save_pretrained(place)
    return len(every)


def _bytes(place) -> int:
    """A tokenizer of bytes and of some words with the blank before them, as GPT-2's."""
    import transformers as library
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    cutter = Tokenizer(models.BPE())
    cutter.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    cutter.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    cutter.train_from_iterator([f" {word}" for word in WORDS] * 3, trainer)
    marks = {"eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>"}
    library.PreTrainedTokenizerFast(tokenizer_object=cutter, **marks).save_pretrained(place)
    return cutter.get_vocab_size()


every_decoder = pytest.mark.parametrize("decoder", DECODERS)


def task(folders, decoder="gpt2", encoder="bert", **more):
    both = {"encoder": folders[encoder]} if encoder else {}
    return OneFact(**both, decoder=folders[decoder], **more)


def model(folders, decoder="gpt2", name="MemReasoner", **more):
    named = {"decoder": folders[decoder]}
    if name != "GPT":
        named["encoder"] = folders["bert"]
        more = {"latent_size": 12} | more
    if name not in ("GPT", "MemReasoner without memory"):
        more = {"slots": 8} | more
    config = MODELS[name].config(**named, **more)
    words = task(folders, decoder).shape
    return MODELS[name].module(config, *words).initialise(0).double()


def batch(folders, decoder="gpt2", encoder="bert", texts=True):
    beside = ["It was a bright cold day.", "Call me Ishmael.", "Mary"] if texts else None
    return task(folders, decoder, encoder).encode({"some": EPISODES}, beside)["some"]


# --- tokens ---------------------------------------------------------------------------------------


@every_decoder
def test_encoder_and_decoder_have_the_same_text_each_in_its_own_tokens(folders, decoder):
    asked, found = task(folders, decoder), batch(folders, decoder)
    cutter = pretrained.tokenizer(folders["bert"])
    for row, episode in enumerate(EPISODES):
        for place, line in enumerate(episode.lines):
            at = int(found.inputs[row, place])
            tokens = [t - OWN for t in found.sentences[at].tolist() if t != PAD]
            assert tokens == cutter(line, add_special_tokens=False)["input_ids"]
            assert " ".join(asked.spelled(found.spoken[at].tolist())) == line
        assert asked.spelled(found.targets[row].tolist()) == (episode.answer,)
        subject = episode.question.removeprefix("Where is ").removesuffix("?")
        prompt = [t for t in found.prompts[row].tolist() if t != PAD]
        assert prompt[0] == SOS and asked.spelled(prompt) == (subject, "is", "in", "the")
        assert found.prompts[row, -1] != PAD  # prompts end together
    assert (found.prompts[0] == PAD).any() and not (found.prompts[2] == PAD).any()
    assert asked.shape == (OWN + len(pretrained.tokenizer(folders[decoder])),)


def test_a_line_of_too_many_tokens_takes_several_rows_with_the_same_text(folders):
    whole = "Mary went back to the kitchen. John moved to the hallway."
    asked = task(folders, sentence_words=5)
    found = asked.encode({"a": [Episode((whole, *LINES), "Where is Mary?", "bathroom", (1,))]})["a"]
    assert asked.rows_of(whole) == 3 and int(found.input_lengths[0]) == 3 + 2 + 1 + 2
    parts = [" ".join(asked.spelled(found.spoken[i].tolist())) for i in found.inputs[0, :3]]
    assert "".join(parts).replace(" ", "") == whole.replace(" ", "")
    assert found.supports.tolist() == [[3]]


def test_answers_are_scored_as_text(folders):
    from relength.tasks.batch import Answered

    asked, found = task(folders), batch(folders)
    assert asked.score([(found, Answered(found.targets))]).answer_accuracy == 1
    assert asked.score([(found, Answered(found.targets.roll(1, 0)))]).answer_accuracy == 0


# --- the networks ---------------------------------------------------------------------------------


def test_the_encoder_sums_up_a_sentence_as_the_library_does_for_the_text(folders):
    import transformers as library

    reader, found = Reader(folders["bert"]), batch(folders)
    theirs = library.BertModel.from_pretrained(folders["bert"]).eval()
    cutter = pretrained.tokenizer(folders["bert"])
    begin, end = cutter.cls_token_id, cutter.sep_token_id
    for row, vector in zip(found.inputs[2].tolist(), reader(found.sentences[found.inputs[2]]),
                           strict=True):  # fmt: skip
        own = [t - OWN for t in found.sentences[row].tolist() if t != PAD]
        alone = theirs(torch.tensor([[begin, *own, end]])).pooler_output[0]
        torch.testing.assert_close(vector, alone)


@every_decoder
def test_without_a_past_the_decoder_scores_as_the_library_does(folders, decoder):
    import transformers as library

    asked = task(folders, decoder)
    writer = Writer(folders[decoder], *asked.shape)
    theirs = library.AutoModelForCausalLM.from_pretrained(folders[decoder]).eval()
    text = asked.table().ids("Mary went back to the kitchen")
    padded = torch.tensor([[PAD, PAD, *text], [*text, PAD, PAD]])
    wanted = theirs(torch.tensor([text]) - OWN).logits[0, :, : writer.tokens]
    scores = writer.scores(writer.features(padded))
    assert scores.shape[2] == asked.shape[0]
    torch.testing.assert_close(scores[0, 2:, OWN:], wanted)
    torch.testing.assert_close(scores[1, :-2, OWN:], wanted)


@every_decoder
def test_a_past_position_is_one_token_before_all_others(folders, decoder):
    """Keys and values of a real first token, given as the past, are as good as the token."""
    asked = task(folders, decoder)
    writer = Writer(folders[decoder], *asked.shape)
    text = torch.tensor([asked.table().ids("Mary went back")])
    cache = writer.network(text[:, :1] - OWN, use_cache=True).past_key_values
    whole = writer.features(text)[:, 1:]
    original = writer._cache
    writer._cache = lambda past: cache
    rest = writer.features(text[:, 1:], torch.zeros(1, writer.past))
    torch.testing.assert_close(rest, whole)
    key = original(torch.arange(float(writer.past))[None]).layers[1]
    per_layer = writer.past // writer.layers
    assert key.keys.equal(key.values)
    assert key.keys.shape == (1, writer.heads, 1, per_layer // writer.heads)
    assert key.keys.flatten().tolist() == list(range(per_layer, 2 * per_layer))


# --- the whole model ------------------------------------------------------------------------------


every_kind = pytest.mark.parametrize(
    "name", ["MemReasoner", "Larimar", "MemReasoner variant", "MemReasoner without memory", "GPT"]
)


@every_decoder
@pytest.mark.parametrize("arm", ["paper", "released", "repaired"])
def test_every_loss_reaches_encoder_decoder_and_memory(folders, decoder, arm):
    ours, found = model(folders, decoder, arm=arm), batch(folders, decoder)
    outputs, terms = ours.with_terms(found, None, ("facts", "autoencoded", "order", "text"))
    answer = task(folders, decoder).loss(outputs, found)
    (answer + sum(terms)).backward()
    reached = {name for name, p in ours.named_parameters() if p.grad is not None and p.grad.any()}
    parts = {"reader.network", "writer.network", "writer.marks", "to_latent", "to_past", "to_query"}
    for part in (*parts, "temporal", "first"):
        assert any(name.startswith(part) for name in reached), part
    both = arm == "released"
    assert hasattr(ours, "to_words") == both == ("to_words.weight" in reached)


@every_kind
@every_decoder
def test_a_sample_does_not_feel_the_others_and_writes_what_teacher_forcing_would(
    folders, name, decoder
):
    encoder = "" if name == "GPT" else "bert"
    # An exact inverse of few random codes is a matter of rounding.
    kept = {} if name in ("GPT", "MemReasoner without memory") else {"inverse": "ridge"}
    ours, found = model(folders, decoder, name, **kept), batch(folders, decoder, encoder)
    together, (written, _) = ours(found), ours.generate(found, 4)
    assert written.tokens.shape == (3, 4)
    for i in range(3):
        alone = found.select(slice(i, i + 1))
        width = alone.targets.shape[1]
        torch.testing.assert_close(ours(alone)[0], together[i, :width])
        assert ours.generate(alone, 4)[0].tokens[0].equal(written.tokens[i])
    said = {field: getattr(found, field) for field in found.names()}
    said |= {"targets": written.tokens, "target_lengths": torch.full((3,), 4)}
    said["mask"] = torch.ones_like(written.tokens, dtype=torch.bool)
    assert (ours(type(found)(**said)).argmax(2) == written.tokens).all()


def test_what_is_not_pretrained_belongs_to_the_seed_and_what_is_stays(folders):
    first, second = model(folders), model(folders)
    for (name, a), (_, b) in zip(first.named_parameters(), second.named_parameters(), strict=True):
        assert a.equal(b), name
    theirs = Writer(folders["gpt2"], *task(folders).shape).network.double().state_dict()
    assert all(
        value.equal(theirs[name]) for name, value in first.writer.network.state_dict().items()
    )
    assert first.writer.marks.weight.std() < 0.03


def spec(folders, name="MemReasoner", decoder="gpt2", of="babi_one_fact", **more):
    named = {"decoder": folders[decoder]} | ({} if name == "GPT" else {"encoder": folders["bert"]})
    sizes = {} if name == "GPT" else {"latent_size": 16}
    sizes |= {} if name in ("GPT", "MemReasoner without memory") else {"slots": 8}
    counts = {"train_size": 24, "validation_size": 4, "test_size": 4, "long_size": 2}
    if of.startswith("vt"):
        counts = {"train_size": 40, "validation_size": 5, "long_size": 5}
    terms = {"alpha": 0.0, "beta": 0.0, "delta": 0.0} if name == "Larimar" else {}
    training = {"epochs": 3, "batch_size": 8, "learning_rate": 3e-3}
    return make_spec(
        task={"name": of, **named, **counts, "lengths": ("0k",)},
        model={"name": name, **named, **sizes, **more},
        training={"name": "facts", **training, **terms},
        scale="smoke",
        seed=0,
    )


@lacking
@every_kind
def test_steps_lower_the_loss(folders, name):
    trainer = Trainer(spec(folders, name))
    some = trainer.data.select(slice(0, 8))
    losses = [float(trainer.train_step(some)) for _ in range(8)]
    assert losses[-1] < 0.9 * losses[0]


@lacking
@every_decoder
def test_a_run_goes_from_the_task_to_a_record(folders, decoder, tmp_path):
    asked, store = spec(folders, decoder=decoder), Store(tmp_path)
    (record,) = run_or_load([asked], store, experiment("memreasoner_babilong"), train=True)
    tests = record["checkpoints"]["selected"]["tests"]
    assert [*tests] == ["babi", "0k"] and tests["0k"]["items"] == 2
    assert {"answer_accuracy", "facts_found"} <= set(tests["0k"])
    assert record["spec"]["model"]["encoder"] == folders["bert"]
    assert [test["test"] for test in record["reads"]] == ["0k"]


@lacking
def test_names_of_several_tokens_have_equal_parts_for_the_hops(folders):
    asked = spec(folders, "MemReasoner each hop", of="vt_2hop", hops=2)
    data = asked.task.dataset("train", 0)
    ends = (data.targets == EOS).sum(1)
    assert data.targets.shape[1] % 2 == 0 and data.mask.all() and ends.max() > ends.min() >= 2
    for row in range(4):
        names = asked.task.spelled(data.targets[row].tolist())
        assert len(names) == 2 and all(len({*name}) == 1 and len(name) == 5 for name in names)
    trainer = Trainer(asked)
    trainer.run_epoch()
    assert set(trainer.result().checkpoints["selected"]["tests"]) == {"0k"}


# --- what cannot be ------------------------------------------------------------------------------


def test_task_and_model_have_the_same_networks(folders):
    with pytest.raises(RelengthError, match="encoder"):
        make_spec(
            task={"name": "babi_one_fact", "decoder": folders["gpt2"]},
            model={"name": "MemReasoner", "encoder": folders["bert"], "decoder": folders["gpt2"]},
            training="facts", scale="smoke", seed=0,
        )  # fmt: skip
    for fields in ({"encoder": folders["bert"]}, {"decoder": folders["gpt2"]}):
        with pytest.raises(ValueError, match="both"):
            MODELS["MemReasoner"].config(**fields)
    with pytest.raises(RelengthError, match="RMT"):
        make_spec(
            task={"name": "babi_one_fact", "decoder": folders["gpt2"]},
            model="RMT", training="facts", scale="smoke", seed=0,
        )  # fmt: skip


def test_networks_of_another_kind_are_one_sentence(folders, tmp_path):
    with pytest.raises(RelengthError, match="choose a BERT") as caught:
        Reader(folders["gpt2"])
    assert "\n" not in str(caught.value)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(RelengthError, match="cannot be read"):
        Writer(str(tmp_path), 20)
    with pytest.raises(RelengthError, match="give task and model the same decoder"):
        Writer(folders["gpt2"], 10_000)
    writer = Writer(folders["gpt2"], *task(folders).shape)
    with pytest.raises(RelengthError, match="300 tokens does not fit into the 256 positions"):
        writer.features(torch.full((1, 300), OWN + 1))


@lacking
def test_without_its_networks_nothing_of_scale_paper_is_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    found, store = experiment("memreasoner_babilong"), Store(tmp_path / "store")
    assert run_or_load(found.specs("paper", [0]), store, found, train=True) == []
    assert "weights: google-bert/bert-large-cased" in capsys.readouterr().out
    assert not [*tmp_path.rglob("*.jsonl")]


def test_weights_that_are_no_numbers_are_one_sentence(folders, tmp_path):
    network = transformers.GPT2LMHeadModel.from_pretrained(folders["gpt2"])
    with torch.no_grad():
        next(network.parameters())[0, 0] = torch.nan
    network.save_pretrained(tmp_path)
    with pytest.raises(RelengthError, match="are no numbers: fetch it again") as caught:
        loaded("AutoModelForCausalLM", str(tmp_path), "a causal language model")
    assert "\n" not in str(caught.value)


@lacking
def test_the_printed_command_trains_what_has_its_networks_and_names_the_rest(
    folders, tmp_path, monkeypatch
):
    """The networks are on this machine but for one decoder, and three baselines have none."""
    ran = []
    monkeypatch.setattr(Campaign, "records", lambda self: ran.append(self) or iter(()))
    monkeypatch.setattr(
        pretrained, "folder", lambda name: None if "gpt-j" in name else Path(folders["gpt2"])
    )
    words = ["run", "memreasoner_babilong", "--scale", "paper", "--seeds", "1"]
    outcome = CliRunner().invoke(cli.app, [*words, "--out", str(tmp_path / "out")])
    asked = {spec.row for spec in experiment("memreasoner_babilong").specs("paper", [0])}
    without = "RMT", "Mamba", "MemN2N", "MemReasoner (gpt-j-6b)"
    assert {run.spec.row for run in ran[0].runs} == asked - {*without}
    decoders = {run.spec.model.decoder for run in ran[0].runs}
    assert len(decoders) == 3 and not any("gpt-j" in name for name in decoders)
    assert outcome.output.count("Left out for want of data") == len(without)


@lacking
def test_a_command_that_can_train_nothing_at_all_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    words = ["run", "memreasoner_babilong", "--scale", "paper", "--out", str(tmp_path / "out")]
    for rows, said in ((["--model", "GPT"], "hf download"), (["--model", "RMT"], "not built")):
        outcome = CliRunner().invoke(cli.app, [*words, *rows])
        assert isinstance(outcome.exception, RelengthError) and said in str(outcome.exception)


def test_at_scale_paper_task_and_model_name_the_same_networks():
    asked = {
        (s.row, s.model.arm): s for s in experiment("memreasoner_babilong").specs("paper", [0])
    }
    ours = asked["MemReasoner", "paper"]
    assert (ours.model.latent_size, ours.model.slots) == (768, 512)  # Larimar's code; Section 4.1
    assert (ours.training.epochs, ours.training.batch_size) == (200, 10)
    assert ours.training.learning_rate == 5e-6
    assert ours.model.encoder.endswith("bert-large-cased")
    assert ours.model.decoder.endswith("gpt2-large")
    decoders = {spec.model.decoder for spec in asked.values() if hasattr(spec.model, "decoder")}
    assert {name.rpartition("/")[2] for name in decoders} == {
        *("gpt2-large", "gpt-j-6b", "Qwen2.5-0.5B", "Qwen2.5-1.5B")
    }
    for one in asked.values():
        assert one.task.decoder == getattr(one.model, "decoder", "")
        assert one.task.encoder == getattr(one.model, "encoder", "")
