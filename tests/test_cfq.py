"""CFQ is read as its authors published it; where it is not, nothing that needs it is trained."""

import hashlib
import io
import json
import os
import re
import tarfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
from typer.testing import CliRunner

from relength.book import notebook
from relength.cli import main as cli
from relength.errors import RelengthError
from relength.runs import plan
from relength.specs.experiments import experiment
from relength.specs.spec import make_spec
from relength.tasks import TASKS, cfq, data
from relength.tasks.base import EOS, UNK
from relength.tasks.cfq import Cfq, query_tokens, question_tokens
from relength.training import train

# Four samples of our own in the form of the archive's: placeholders for entities, line breaks in
# queries, other fields between the two, some of them naming the two.
TEXTS = [
    ("Did M0 's editor direct M1", "SELECT count(*) WHERE {\n?x0 ns:film.editor.film M0 .\n}"),
    ("Who edited M0", "SELECT DISTINCT ?x0 WHERE {\n?x0 a ns:people.person .\n}"),
    ('What "film" did M0\'s sister edit', "SELECT ?x0 WHERE {\n?x0 ns:film.film.x m.05zppz .\n}"),
    ("Was M0 a zebra", "SELECT count(*) WHERE {\nM0 a ns:zoo.zebra .\n}"),
]
PARTS = {"trainIdxs": [2, 0, 1], "devIdxs": [3], "testIdxs": [3, 0]}


def members(texts=TEXTS, parts=PARTS, **instead) -> dict[str, bytes]:
    samples = [
        {
            "complexityMeasures": {"parseTreeLeafCount": 5},
            "question": question.replace("M0", "Alien"),
            cfq.QUESTION: question,
            "ruleTree": f'{{"subRules": ["\\"{cfq.QUERY}\\": \\"none of this\\""]}}',
            "sparql": query,
            cfq.QUERY: query,
        }
        for question, query in texts
    ]
    found = {cfq.SAMPLES: samples, cfq.SPLIT: parts, "cfq/LICENSE": "CC BY"}
    return {name: json.dumps(content, indent=2).encode() for name, content in found.items()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder where the data are looked for; nothing is there yet."""
    monkeypatch.setenv("RELENGTH_DATA", str(tmp_path))
    for remembered in (cfq.samples, cfq._symbols, data._sha256):
        remembered.cache_clear()
    return tmp_path


@pytest.fixture
def put(folder, monkeypatch):
    """Puts an archive with these members where the data are looked for, and into the index."""

    def make(contents: dict[str, bytes]) -> None:
        path = folder / "cfq" / "cfq.tar.gz"
        path.parent.mkdir(exist_ok=True)
        with tarfile.open(path, "w:gz") as archive:
            for name, content in contents.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        entry = data.index()["cfq"] | {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        monkeypatch.setattr(data, "index", lambda: {"cfq": entry})

    return make


def test_questions_and_queries_are_cut_into_the_tokens_of_the_released_code():
    assert " ".join(question_tokens("Did M0's editor, M1, edit?")) == (
        "Did M0 ' s editor , M1 , edit ?"
    )
    query = "SELECT count(*) WHERE {\nM0 ns:a.b ?x0 .\nFILTER ( ?x0 != ns:m.05zppz )\n}"
    assert " ".join(query_tokens(query)) == (
        "SELECT count ( * ) WHERE { M0 a.b ?x0 . FILTER ( ?x0 != m_05zppz ) }"
    )


def test_samples_are_those_of_the_published_split_in_its_order(put):
    put(members())
    task = Cfq()
    assert [pair.source for pair in task.pairs("length", 0)] == [
        question_tokens(TEXTS[i][0]) for i in PARTS["testIdxs"]
    ]
    (dev,) = task.pairs("dev", 0)
    assert dev.target == query_tokens(TEXTS[3][1])
    assert len(task.pairs("train", 0)) == 3


def test_a_field_that_the_end_of_a_chunk_cuts_in_two_is_read_whole(put, monkeypatch):
    put(members())
    whole = cfq.samples(data.archive("cfq").path)
    for size in (7, 50, 333):
        cfq.samples.cache_clear()
        monkeypatch.setattr(cfq, "CHUNK", size)
        assert cfq.samples(data.archive("cfq").path) == whole


def test_the_vocabulary_is_that_of_training_and_the_rest_is_unknown(put):
    put(members())
    task = Cfq()
    assert "zebra" not in task.vocabulary and "editor" in task.vocabulary
    assert task.shape == (len(task.vocabulary),)
    batch = task.dataset("dev", 0)
    assert UNK in batch.inputs.tolist()[0]
    assert batch.inputs[0, int(batch.input_lengths[0]) - 1] == EOS
    assert batch.targets[0, int(batch.target_lengths[0]) - 1] == EOS
    assert UNK not in task.dataset("train", 0).targets


def test_training_samples_belong_to_the_seed_and_test_sets_to_the_task(put):
    numbered = [(f"Did M{i} win", f"SELECT M{i}") for i in range(50)]
    parts = {"trainIdxs": list(range(40)), "devIdxs": [40], "testIdxs": list(range(40, 50))}
    put(members(numbered, parts))
    task = Cfq(train_size=10, test_size=5, validation_size=5)
    assert task.pairs("train", 0) != task.pairs("train", 1)
    assert task.pairs("length", 0) == task.pairs("length", 1)
    for split in ("iid", "validation", "length"):
        assert len(task.pairs(split, 0)) == 5


def test_what_is_validated_on_is_of_the_questions_that_the_run_trains_on(put):
    numbered = [(f"Did M{i} win", f"SELECT M{i}") for i in range(50)]
    parts = {"trainIdxs": list(range(40)), "devIdxs": [40], "testIdxs": list(range(40, 50))}
    put(members(numbered, parts))
    task = Cfq(train_size=10, test_size=5, validation_size=5)
    for seed in (0, 1):
        for split in ("iid", "validation"):
            assert set(task.pairs(split, seed)) < set(task.pairs("train", seed))
    assert len(Cfq(train_size=3, validation_size=5).dataset("validation", 0).inputs) == 3


def test_a_sample_of_a_length_has_a_query_of_that_many_tokens(put):
    put(members())
    length = len(query_tokens(TEXTS[1][1]))
    batch = Cfq().sample(np.random.default_rng(0), 3, length)
    assert batch.target_lengths.tolist() == [length + 1] * 3
    with pytest.raises(RelengthError, match="no query of 99 tokens"):
        Cfq().sample(np.random.default_rng(0), 1, 99)


def test_a_record_names_the_archive_and_its_checksum(put):
    put(members())
    assert Cfq().lacks() == ""
    found = Cfq().provenance()
    assert found["source"] == "RELENGTH_DATA"
    assert found["sha256"] == {"cfq.tar.gz": data.index()["cfq"]["sha256"]}


@pytest.mark.parametrize("spec", experiment("mla_cfq").grid("smoke", 0), ids=lambda s: s.label)
def test_every_model_of_the_table_trains_on_it(put, spec):
    put(members())
    result = train(spec, "cpu")
    assert result.checkpoints["selected"]["tests"]["length"]["items"] == 2


# Where it is not, or is not what was published


def test_without_the_archive_the_error_names_cause_and_way_out(folder, monkeypatch):
    with pytest.raises(RelengthError, match=r"no cfq/cfq.tar.gz; put https://\S+ there"):
        Cfq().provenance()
    monkeypatch.delenv("RELENGTH_DATA")
    monkeypatch.setenv("RELENGTH_OFFLINE", "1")
    monkeypatch.setattr(data, "_cache", lambda: folder / "nothing")
    with pytest.raises(RelengthError, match="RELENGTH_OFFLINE forbids downloads"):
        Cfq().dataset("length", 0)


def test_a_download_that_fails_is_one_sentence(folder, monkeypatch):
    monkeypatch.delenv("RELENGTH_DATA")
    monkeypatch.delenv("RELENGTH_OFFLINE", raising=False)
    monkeypatch.setattr(data, "_cache", lambda: folder / "cache")
    entry = data.index()["cfq"] | {"url": "http://127.0.0.1:9/cfq.tar.gz"}
    monkeypatch.setattr(data, "index", lambda: {"cfq": entry})
    assert "was not downloaded" in Cfq().lacks()
    with pytest.raises(RelengthError, match=r"the download of http://127\S+ failed"):
        Cfq().provenance()


def test_another_file_of_that_name_is_refused(put, monkeypatch):
    put(members())
    entry = data.index()["cfq"] | {"sha256": "0" * 64}
    monkeypatch.setattr(data, "index", lambda: {"cfq": entry})
    with pytest.raises(RelengthError, match="damaged or another version"):
        Cfq().provenance()


@pytest.mark.parametrize(
    "changed",
    [
        {cfq.SPLIT: b"[]"},
        {cfq.SPLIT: json.dumps(PARTS | {"testIdxs": [99]}).encode()},
        {cfq.SAMPLES: json.dumps([{cfq.QUESTION: "Did M0 win"}]).encode()},
        {cfq.SAMPLES: b"\xff\xfe" + b'"' * 9},
    ],
)
def test_an_archive_in_another_format_is_refused(put, changed):
    put(members() | changed)
    with pytest.raises(RelengthError, match="not in CFQ's format"):
        Cfq().pairs("length", 0)


def test_an_archive_that_is_cut_off_is_refused(put, folder, monkeypatch):
    put(members())
    path = folder / "cfq" / "cfq.tar.gz"
    path.write_bytes(path.read_bytes()[:-60])
    monkeypatch.setattr(data, "_sha256", lambda *_: data.index()["cfq"]["sha256"])
    with pytest.raises(RelengthError, match=r"cfq\.tar\.gz (cannot be read|is not in)"):
        Cfq().pairs("length", 0)


# Campaigns


def test_runs_that_nobody_named_are_left_out_where_their_data_are_not_here(folder):
    copy = make_spec(task="copy", model="Content", training="epochs", scale="smoke", seed=0)
    runs = [plan.Run(experiment("mla_cfq"), experiment("mla_cfq").grid("smoke", 0)[0])]
    runs.append(plan.Run(experiment("mla_table2"), copy))
    there, without = plan.at_hand(runs)
    assert there == runs[1:]
    assert without == [f"cfq: RELENGTH_DATA names {folder}, which has no cfq/cfq.tar.gz"]


@pytest.mark.parametrize("named", [["mla_cfq"], ["--task", "cfq"]])
def test_runs_that_are_named_are_an_error_where_their_data_are_not_here(folder, named, tmp_path):
    words = ["run", *named, "--scale", "smoke", "--results", str(tmp_path / "results")]
    outcome = CliRunner().invoke(cli.app, words)
    assert outcome.exit_code != 0
    assert isinstance(outcome.exception, RelengthError) or "cfq has no data" in outcome.output
    assert not list((tmp_path / "results").glob("*/*.jsonl"))


def test_the_campaign_over_everything_says_what_it_leaves_out(folder, tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(
        "relength.runs.campaign.Campaign.records", lambda self: ran.append(self) or iter(())
    )
    words = [
        "run",
        "--scale",
        "smoke",
        "--model",
        "Content",
        "--results",
        str(tmp_path / "results"),
    ]
    outcome = CliRunner().invoke(cli.app, words)
    assert "Left out for want of data, cfq: RELENGTH_DATA names" in outcome.output
    tasks = {run.spec.task.name for run in ran[0].runs}
    assert "cfq" not in tasks and {"copy", "scan"} <= tasks


def test_a_notebook_says_what_it_cannot_train(folder, tmp_path, capsys, monkeypatch):
    chosen = notebook.Parameters(scale="smoke", seeds=1, results=str(tmp_path / "results"))
    shown = notebook.runs("mla_cfq", chosen)
    assert shown.records == ()
    assert "Not trained for want of data, cfq: RELENGTH_DATA names" in capsys.readouterr().out
    shown = notebook.runs("mla_cfq", notebook.Parameters(results=str(tmp_path / "results")))
    assert shown.records == ()
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"Not run: data\. cfq is an archive of \d+ MB", said)
    assert "not in the folder that RELENGTH_DATA names" in said and str(folder) not in said
    monkeypatch.delenv("RELENGTH_DATA")
    monkeypatch.delenv("RELENGTH_OFFLINE", raising=False)
    assert "is fetched from https://" in data.way_in("cfq")
    monkeypatch.setenv("RELENGTH_OFFLINE", "1")
    assert "RELENGTH_OFFLINE forbids" in data.way_in("cfq")


@pytest.fixture
def served(put, folder, tmp_path, monkeypatch):
    """An archive behind an address of this machine, and no folder of data; gives its entry."""
    put(members())
    handler = partial(QuietHandler, directory=str(folder / "cfq"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/cfq.tar.gz"
        entry = data.index()["cfq"] | {"url": url}
        monkeypatch.setattr(data, "index", lambda: {"cfq": entry})
        monkeypatch.setattr(data, "_cache", lambda: tmp_path / "cache")
        monkeypatch.delenv("RELENGTH_DATA")
        monkeypatch.delenv("RELENGTH_OFFLINE", raising=False)
        yield entry
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.parametrize(("asked", "count"), [({"train": True}, 9), ({"scale": "smoke"}, 0)])
def test_a_notebook_that_is_told_to_train_fetches_the_archive(
    served, tmp_path, monkeypatch, asked, count
):
    """A miniature, which a notebook trains unasked, fetches nothing."""
    trained = []

    class Untrained:
        def __init__(self, runs, *_, **__):
            trained.extend(runs)

        def records(self):
            return iter(())

    monkeypatch.setattr("relength.runs.campaign.Campaign", Untrained)
    notebook.runs("mla_cfq", notebook.Parameters(seeds=1, results=str(tmp_path / "r"), **asked))
    assert len(trained) == count and (Cfq().lacks() == "") == bool(count)
    if count:
        assert Cfq().provenance()["source"] == "download"
        assert len(Cfq().pairs("train", 0)) > 0


def test_what_comes_is_checked(served):
    served["sha256"] = "0" * 64
    with pytest.raises(RelengthError, match=r"the download of http://127\S+ failed \(ValueError\)"):
        Cfq().provenance()


@pytest.mark.skipif(
    Cfq().lacks() != "" or not os.environ.get("RELENGTH_DATA"),
    reason="RELENGTH_DATA names no folder with the published archive of CFQ",
)
def test_the_published_archive_has_the_sizes_of_the_released_configuration():
    task = TASKS["cfq"]()
    sizes = {name: len(task.pairs(name, 0)) for name in ("train", "dev", "length")}
    assert sizes == {"train": 100_654, "dev": 9_512, "length": 9_512}
