"""`parley llm-mock`, as it is called."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run

COMMAND = (sys.executable, "-m", "parley.cli", "llm-mock")
ANSWER_S_MAX = 30


@contextmanager
def serving(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", dict[str, str]]]:
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline().strip() for _ in range(4)]
            yield process, dict(line.split("=", 1) for line in lines)
        finally:
            process.kill()


def ask(base_url: str, model: str) -> str:
    body = {"model": model, "messages": [{"role": "user", "content": "repeat after me: yes"}]}
    request = Request(
        f"{base_url}/chat/completions",
        json.dumps(body).encode(),
        {"authorization": "Bearer k", "content-type": "application/json"},
    )
    with urlopen(request, timeout=ANSWER_S_MAX) as response:
        return str(json.load(response)["choices"][0]["message"]["content"])


def test_it_prints_where_it_is_and_stops_when_told() -> None:
    with serving("--seed", "3") as (process, urls):
        assert [*urls] == [
            "ANTHROPIC_BASE_URL",
            "OPENAI_BASE_URL",
            "AZURE_OPENAI_BASE_URL",
            "ANTHROPIC_BEDROCK_BASE_URL",
        ]
        assert ask(urls["OPENAI_BASE_URL"], "mock") == "yes"
        process.send_signal(signal.SIGINT)
        assert process.wait(ANSWER_S_MAX) == 0


def test_it_replays_files(tmp_path: Path) -> None:
    answer = {"choices": [{"message": {"content": "recorded"}}]}
    file = tmp_path / "a.json"
    file.write_text(
        json.dumps(
            {
                "path": "/v1/chat/completions",
                "status": 200,
                "headers": {"content-type": "application/json"},
                "body": json.dumps(answer),
            }
        )
    )
    with serving("--replay", str(file)) as (_, urls):
        assert ask(urls["OPENAI_BASE_URL"], "mock") == "recorded"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--behaviour", "nonsense=1"],
        ["--replay"],
        ["file.json"],
        ["--replay", "missing.json"],
    ],
)
def test_what_cannot_be_served_is_said_at_once(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["llm-mock", *arguments], Invocation({}, "parley")) == 2
    assert capsys.readouterr().err.startswith("parley: ")


def test_the_help_explains_every_word(capsys: pytest.CaptureFixture[str]) -> None:
    run(["llm-mock", "--help"], Invocation({}, "parley"))
    assert "fail=STATUSES" in capsys.readouterr().out


def test_it_does_not_outlive_whom_it_belongs_to() -> None:
    # The init process is nobody's mock's parent.
    ended = subprocess.run(
        [*COMMAND, "--parent-pid", "1"], capture_output=True, timeout=ANSWER_S_MAX, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, b"")
