"""Ask a chat model behind any OpenAI-compatible endpoint what Table 12 asked Chat-GPT.

For example, for a server on this machine::

    python -m relength.papers.panm.chat_client --endpoint http://127.0.0.1:8000/v1 --model NAME

Replies go to ``results/panm/panm_chat.replies.jsonl``, one line each with prompt, reply and score;
what a model was asked already is not asked again. A key, where the service wants one, is taken from
the environment variable ``RELENGTH_CHAT_KEY`` and is written nowhere.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from relength.errors import RelengthError
from relength.papers.panm import chat
from relength.paths import RESULTS

KEY = "RELENGTH_CHAT_KEY"
LONGEST_WAIT = 86_400  # seconds
LARGEST_REPLY, PART = 1_000_000, 65_536  # bytes: in all, and read at once
REPLIES = Path("panm") / "panm_chat.replies.jsonl"  # below a folder of records


@dataclass(frozen=True)
class Endpoint:
    """A service that completes chats.

    address  up to and without ``/chat/completions``
    model    its name there
    seconds  after which a reply is no longer waited for
    """

    address: str
    model: str
    seconds: float = 60.0

    def __post_init__(self) -> None:
        """Raise RelengthError where nobody could wait so long."""
        if not 0 < self.seconds <= LONGEST_WAIT:
            raise RelengthError(
                f"A reply cannot be waited for during {self.seconds:g} seconds: choose more than 0 "
                f"and at most {LONGEST_WAIT:,} for --seconds."
            )

    def ask(self, prompt: str) -> str:
        """The model's reply to a prompt, which is a chat of its own.

        Raises RelengthError when the service refuses, takes too long, or gives what is no reply.
        """
        try:
            with urlopen(self._request(prompt), timeout=self.seconds) as response:
                content = self._read(response)
        except HTTPError as error:
            error.close()
            raise RelengthError(
                f"The endpoint refuses with status {error.code}: {self._way_out(error.code)}."
            ) from None
        except TimeoutError:
            raise self._late() from None
        except URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise self._late() from None
            raise RelengthError(
                f"The endpoint cannot be reached ({error.reason}): start the service, or correct "
                "--endpoint."
            ) from None
        except (OSError, HTTPException, ValueError) as error:
            raise RelengthError(
                f"The endpoint broke off ({type(error).__name__}): it may speak another protocol, "
                "so correct --endpoint."
            ) from None
        return self._reply(content)

    def _read(self, response: BinaryIO) -> bytes:
        """The content of a response. Each byte is waited for anew, so the whole has a time, too."""
        content, until = b"", time.monotonic() + self.seconds
        while len(content) <= LARGEST_REPLY and (part := response.read1(PART)):
            content += part
            if time.monotonic() > until:
                raise TimeoutError
        return content

    def _request(self, prompt: str) -> Request:
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
        }
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(KEY):
            if not (key.isascii() and key.isprintable()):
                raise RelengthError(
                    f"The key in the environment variable {KEY} has signs that no key has, such as "
                    "a line end: set it anew."
                )
            headers["Authorization"] = f"Bearer {key}"
        url = f"{self.address.rstrip('/')}/chat/completions"
        if not url.startswith(("http://", "https://")):
            raise RelengthError(
                f"{self.address!r} is no address of a service: begin --endpoint with http:// or "
                "https://."
            )
        return Request(url, json.dumps(body).encode(), headers)

    def _late(self) -> RelengthError:
        return RelengthError(
            f"The endpoint gave no reply within {self.seconds:g} seconds: ask again later, or "
            "raise --seconds."
        )

    @staticmethod
    def _way_out(status: int) -> str:
        if status in (401, 403):
            return f"put a valid key into the environment variable {KEY}"
        if status == 404:
            return "correct --endpoint, which ends before /chat/completions, or --model"
        if status == 429:
            return "it was asked too often; go on later, and what is answered is not asked again"
        return "ask again later, or choose another one"

    @staticmethod
    def _reply(content: bytes) -> str:
        try:
            said = json.loads(content)["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError, RecursionError):
            said = None
        if len(content) > LARGEST_REPLY:
            raise RelengthError(
                f"The endpoint answers with more than {LARGEST_REPLY:,} bytes: correct --endpoint, "
                "or choose a model that answers in short."
            )
        if not isinstance(said, str):
            raise RelengthError(
                "The endpoint answers, but not with a chat completion: correct --endpoint, which "
                "has to speak OpenAI's protocol."
            )
        if not said.strip():
            raise RelengthError(
                "The endpoint answers with an empty text: correct --model, or ask again later."
            )
        return said.encode(errors="replace").decode()  # half of a pair is no character


def replies(folder: Path) -> list[dict[str, Any]]:
    """The replies that a folder of records has; none where nobody was asked.

    Raises RelengthError where the file is damaged.
    """
    path = folder / REPLIES
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            reply = json.loads(line)
            found.append({name: reply[name] for name in ("model", "task", "trial", "reply")})
            _check_reply(found[-1])
        except (ValueError, LookupError, TypeError, RecursionError):
            raise RelengthError(
                f"Line {number} of {path} is no reply: remove it, and ask that model again."
            ) from None
    return found


def _check_reply(reply: dict[str, Any]) -> None:
    """Raise ValueError unless this is a model's text in reply to a question that exists."""
    trials = {task: chat.TRIALS for task in chat.TASKS}
    trials |= {task: chat.SCAN_TRIALS for task in chat.SCAN_TASKS}
    texts = all(isinstance(reply[name], str) for name in ("model", "task", "reply"))
    numbered = type(reply["trial"]) is int  # True and 1.0 are in a range, too
    if not (texts and numbered and reply["trial"] in range(trials.get(reply["task"], 0))):
        raise ValueError("no reply to a question")


def ask(endpoint: Endpoint, folder: Path, tasks: Sequence[str] = tuple(chat.TASKS)) -> int:
    """Ask everything that the folder has no reply to; returns how much that was.

    Each reply is written before the next question, so that an error loses none.
    """
    known = {(r["model"], r["task"], r["trial"]) for r in replies(folder)}
    path, asked = folder / REPLIES, 0
    for question in (question for task in tasks for question in chat.questions(task)):
        if (endpoint.model, question.task, question.trial) in known:
            continue
        reply = endpoint.ask(question.prompt)
        line = {
            "model": endpoint.model,
            **asdict(question),
            "reply": reply,
            "score": question.score(reply),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        asked += 1
    return asked


def main(arguments: Sequence[str] | None = None) -> int:
    """The command of the module's docstring; returns its exit code."""
    known = (*chat.TASKS, *chat.SCAN_TASKS)
    parser = argparse.ArgumentParser(
        prog="python -m relength.papers.panm.chat_client",
        description="Ask a chat model what Table 12 asked Chat-GPT.",
    )
    parser.add_argument("--endpoint", required=True, help="address of an OpenAI-compatible API")
    parser.add_argument("--model", required=True, help="the model's name there")
    parser.add_argument("--tasks", nargs="+", choices=known, default=list(chat.TASKS))
    parser.add_argument("--seconds", type=float, default=60.0, help="most to wait for a reply")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of records")
    given = parser.parse_args(arguments)
    try:
        endpoint = Endpoint(given.endpoint, given.model, given.seconds)
        asked = ask(endpoint, given.results, given.tasks)
    except RelengthError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{asked} questions were asked; the replies are in {given.results / REPLIES}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
