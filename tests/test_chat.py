"""Chat models: what they are asked, how replies are read and scored, and a service that fails."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from relength.errors import RelengthError
from relength.papers.panm import chat, chat_client, chat_page
from relength.papers.panm.chat_client import Endpoint
from relength.specs import published


def perfect(prompt: str) -> str:
    """Answer as the question has it, in words around it."""
    found = (q for task in (*chat.TASKS, *chat.SCAN_TASKS) for q in chat.questions(task))
    (question,) = {q.answer for q in found if q.prompt == prompt}
    return f"Sure! The output: {', '.join(question)}"


def wrong(prompt: str) -> str:
    """Answer with as many signs as there may be, all of them one that no question is made of."""
    return "output " + ")" * 20


def rude(prompt: str) -> str:
    return "Work it out yourself!"


class Server(ThreadingHTTPServer):
    """A service on the loopback interface that keeps what it was sent."""

    def __init__(self, reply, status=200):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply, self.status, self.sent = reply, status, []
        self.pause = 0.0  # seconds before each byte; 0: all at once

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(f"http://127.0.0.1:{self.server_port}/v1", "stand-in", seconds=5)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.sent.append(
            (self.path, dict(self.headers), json.loads(self.rfile.read(length)))
        )
        content = self.server.reply
        if callable(content):
            said = content(self.server.sent[-1][2]["messages"][0]["content"])
            content = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
        self.send_response(self.server.status)
        self.end_headers()
        for part in [content] if not self.server.pause else map(bytes, zip(content)):
            time.sleep(self.server.pause)
            try:
                self.wfile.write(part)
            except OSError:  # nobody waits any more
                return

    def log_message(self, *_):
        pass


@pytest.fixture
def serving():
    """Start stand-ins for a service; all end with the test."""
    running = []

    def start(reply, status=200) -> Server:
        server = Server(reply, status)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        running.append((server, thread))
        return server

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


# Questions


@pytest.mark.parametrize("task", chat.TASKS)
def test_a_question_has_twenty_examples_of_five_signs_and_asks_for_ten(task):
    questions = chat.questions(task)
    assert len(questions) == len({q.prompt for q in questions}) == 20
    more = task == "drecall"  # the query
    for question in questions:
        head, *examples, middle, asked = question.prompt.splitlines()
        assert (head, middle) == ("Examples:", "Question:")
        assert len(examples) == 20
        for line in examples:
            given, answer = line.removeprefix("input ").split(" output ")
            assert len(given.split(", ")) == 5 + more
            signs = given.replace(", ", "")
            assert answer.replace(", ", "") == chat.TASKS[task].answer(signs)
        signs = asked.removeprefix("input ").removesuffix(" output").replace(", ", "")
        assert len(signs) == 10 + more
        assert "".join(question.answer) == chat.TASKS[task].answer(signs)


def test_the_printed_failures_are_what_our_generators_answer():
    cells = published.table("panm-table-12").query("model == 'Chat-GPT'")
    found = [row for cell in cells.itertuples() if (row := chat_page._failure(cell))]
    assert [row[0] for row in found] == ["Reverse", "Mix", "Dynamic Recall"]
    for _, _, reply, right, ours, _ in found:
        assert right == ours != reply
    assert found[1][-1] == "10 %"  # the first sign of ten, counted by hand: $ of %#^&&$%$@%&, no


@pytest.mark.parametrize("task", chat.SCAN_TASKS)
def test_a_question_of_scan_is_not_among_its_examples(task):
    for question in chat.questions(task):
        *examples, _, asked = question.prompt.splitlines()[1:]
        assert len(examples) == 20
        assert asked.startswith("IN: ") and asked.endswith(" OUT:")
        assert not any(line.startswith(asked) for line in examples)
        assert max(len(line.split(" OUT: ")[1].split()) for line in examples) <= 40
        assert (len(question.answer) > 40) == (task == "scan/length")


# Replies


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ("$%&", "$%&"),
        ("$, %, &", "$%&"),
        ("output: $ % &", "$%&"),
        ("The input ~~~~ is given, so output $%&", "$%&"),
        ('The answer is "$", "%", "&".', "$%&"),
        ("I think ^ or rather $%&", "$%&"),
        ("```\n$%&\n```", "$%&"),
        ("[$, %, &]", "$%&"),
        ("Work it out yourself!", ""),
        ("", ""),
        ("$ then % then &", "&"),
    ],
)
def test_a_reply_is_its_longest_run_of_signs(reply, read):
    assert "".join(chat.read_signs(reply)) == read


def test_a_score_is_the_share_of_signs_at_their_places():
    question = chat.Question("copy", 0, "", tuple("~!@#$%^&*("))
    assert question.score("~!@#$%^&*(") == 1
    assert question.score("~!@#$") == 0.5
    assert question.score("(~!@#$%^&*") == 0
    assert question.score("~!@#$%^&*(~") == 1  # what follows is not asked for


def test_scan_is_right_as_a_whole_or_not():
    question = chat.Question("scan/iid", 0, "", ("I_WALK", "I_RUN"))
    assert question.score("OUT: I_WALK I_RUN") == question.score("I_WALK, I_RUN") == 1
    assert question.score("I_WALK") == question.score("I_WALK I_RUN I_RUN") == 0


# A service


@pytest.mark.parametrize(("model", "share"), [(perfect, 1), (wrong, 0), (rude, 0)])
def test_models_that_are_perfect_wrong_and_rude_get_what_they_deserve(
    serving, tmp_path, model, share
):
    server = serving(model)
    assert chat_client.ask(server.endpoint, tmp_path) == 80
    assert {path for path, _, _ in server.sent} == {"/v1/chat/completions"}
    assert all(sent["temperature"] == 0 for _, _, sent in server.sent)
    scores = chat_page.replied(tmp_path)["stand-in"]
    assert len(scores) == 80
    assert {score for _, score in scores} == {share}


def test_what_is_answered_is_not_asked_again(serving, tmp_path, capsys):
    server = serving(perfect)
    told = ["--endpoint", server.endpoint.address, "--model", "stand-in", "--results"]
    told += [str(tmp_path), "--tasks", "scan/iid"]
    assert chat_client.main(told) == chat_client.main(told) == 0
    assert len(server.sent) == 10
    assert "10 questions" in capsys.readouterr().out
    assert {score for _, score in chat_page.replied(tmp_path)["stand-in"]} == {1}


def test_a_key_is_sent_and_not_written(serving, tmp_path, monkeypatch):
    monkeypatch.setenv(chat_client.KEY, "a-secret")
    server = serving(rude)
    chat_client.ask(server.endpoint, tmp_path, ["copy"])
    assert server.sent[0][1]["Authorization"] == "Bearer a-secret"
    assert "a-secret" not in (tmp_path / chat_client.REPLIES).read_text()


@pytest.mark.parametrize(
    ("reply", "status", "sentence"),
    [
        (b"<html>no</html>", 200, "not with a chat completion"),
        (b'{"choices": []}', 200, "not with a chat completion"),
        (b'{"choices": [{"message": {"content": null}}]}', 200, "not with a chat completion"),
        (b"\xff\xfe", 200, "not with a chat completion"),
        (b"[" * 100_000, 200, "not with a chat completion"),
        (
            b'{"choices": [{"message": {"content": "%s"}}]}' % (b"x" * chat_client.LARGEST_REPLY),
            200,
            f"more than {chat_client.LARGEST_REPLY:,} bytes",
        ),
        (b'{"choices": [{"message": {"content": " "}}]}', 200, "an empty text"),
        (b"", 401, f"status 401.*{chat_client.KEY}"),
        (b"", 404, "status 404.*correct --endpoint"),
        (b"", 429, "status 429.*too often"),
        (b"", 500, "status 500.*ask again later"),
    ],
)
def test_a_service_that_refuses_or_talks_nonsense_is_one_sentence(
    serving, tmp_path, reply, status, sentence
):
    with pytest.raises(RelengthError, match=sentence) as caught:
        chat_client.ask(serving(reply, status).endpoint, tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / chat_client.REPLIES).exists()


@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "inf"])
def test_a_wait_that_cannot_be_waited_is_one_sentence(seconds, tmp_path, capsys):
    told = ["--endpoint", "http://127.0.0.1:9/v1", "--model", "x", "--results", str(tmp_path)]
    assert chat_client.main([*told, f"--seconds={seconds}"]) == 2
    said = capsys.readouterr().err
    assert "--seconds" in said and said.count("\n") == 1 and ". " not in said


def test_a_service_that_is_not_there_or_too_slow_is_one_sentence(serving, tmp_path, capsys):
    gone = serving(rude).endpoint
    slow = serving(lambda _: threading.Event().wait(0.5) or "late").endpoint
    with pytest.raises(RelengthError, match=r"no reply within 0\.1 seconds"):
        Endpoint(slow.address, "stand-in", seconds=0.1).ask("?")
    with pytest.raises(RelengthError, match="begin --endpoint with http"):
        Endpoint("localhost", "stand-in").ask("?")
    assert gone.ask("?") == rude("?")
    told = ["--endpoint", "http://127.0.0.1:9/v1", "--model", "x", "--results", str(tmp_path)]
    assert chat_client.main(told) == 2
    assert "cannot be reached" in capsys.readouterr().err


def test_a_service_that_drips_is_not_waited_for_longer_than_was_said(serving):
    slow = serving(b" " * 1000)
    slow.pause = 0.02
    with pytest.raises(RelengthError, match=r"within 0\.3 seconds"):
        Endpoint(slow.endpoint.address, "stand-in", seconds=0.3).ask("?")


def test_a_reply_with_half_a_character_is_recorded(serving, tmp_path):
    service = serving(b'{"choices": [{"message": {"content": "1 \\ud800 2"}}]}')
    chat_client.ask(service.endpoint, tmp_path, ["reverse"])
    assert {reply["reply"] for reply in chat_client.replies(tmp_path)} == {"1 ? 2"}


@pytest.mark.parametrize("key", ["secret\nkey", "€"])
def test_a_key_that_cannot_be_sent_is_one_sentence(serving, monkeypatch, key):
    monkeypatch.setenv(chat_client.KEY, key)
    with pytest.raises(RelengthError, match=chat_client.KEY):
        serving(perfect).endpoint.ask("?")


@pytest.mark.parametrize(
    "wrong",
    [
        {"trial": chat.TRIALS},
        {"trial": "0"},
        {"trial": True},
        {"trial": 1.0},
        {"task": "sort"},
        {"reply": 5},
        {"model": None},
    ],
)
def test_a_damaged_file_of_replies_names_its_line(tmp_path, wrong):
    path = tmp_path / chat_client.REPLIES
    path.parent.mkdir()
    right = {"model": "a", "task": "copy", "trial": 0, "reply": ""}
    path.write_text(f"{json.dumps(right)}\n{json.dumps(right | wrong)}\n")
    with pytest.raises(RelengthError, match="Line 2 of"):
        chat_client.replies(tmp_path)


@pytest.mark.parametrize("line", ["not json", "[" * 100_000, "5", '{"model": "a"}'])
def test_a_line_that_is_no_reply_at_all_is_named(tmp_path, line):
    path = tmp_path / chat_client.REPLIES
    path.parent.mkdir()
    path.write_text(f"{line}\n")
    with pytest.raises(RelengthError, match="Line 1 of"):
        chat_client.replies(tmp_path)
