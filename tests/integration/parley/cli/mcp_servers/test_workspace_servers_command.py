"""`parley mcp workspace` against a scripted gateway."""

import io
import os
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

CHAT = "01890000-0000-7000-8000-000000000001"
SERVER: dict[str, Any] = {
    "name": "notes",
    "state": "untrusted",
    "reason": None,
    "command": "node",
    "arguments": ["a file.js", "-x"],
    "variable_names": ["NODE_OPTIONS"],
    "environment": {"NODE_OPTIONS": "--require ./other.js"},
    "digest": "0123",
    "tool_names": [],
}
LISTED = Answer(200, {"servers": [SERVER], "problem": None})
TRUSTED = Answer(200, SERVER | {"state": "trusted"})
SHOWN = "notes: NODE_OPTIONS='--require ./other.js' node 'a file.js' -x"


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("mcp", "workspace", *arguments), Invocation(environment, "parley"))


def trust(api: FakeApi, *arguments: str) -> int:
    return parley(api, "trust", CHAT, "notes", *arguments)


def test_trust_shows_all_that_decides_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(LISTED, TRUSTED) as api:
        assert trust(api, "--yes") == 0
    assert SHOWN in capsys.readouterr().err
    assert api.requests[1].body == {"digest": "0123"}


def test_trust_says_why_a_server_failed_before(capsys: pytest.CaptureFixture[str]) -> None:
    failed = SERVER | {"state": "failed", "reason": "it ended with code 1"}
    with fake_api(LISTED, Answer(200, failed)) as api:
        assert trust(api, "--yes") == 0
    told = capsys.readouterr()
    assert told.out == "failed\n"
    assert "It is trusted, and failed before: it ended with code 1" in told.err


def test_without_a_terminal_trust_needs_an_answer_in_its_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with fake_api(LISTED) as api:
        assert trust(api) == 2
    assert "add --digest 0123" in capsys.readouterr().err
    assert len(api.requests) == 1


def test_untrusting_a_server_that_is_not_defined_is_an_error_and_forgets_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(LISTED, Answer(204), LISTED, Answer(204)) as api:
        assert parley(api, "untrust", CHAT, "notes") == 0
        assert parley(api, "untrust", CHAT, "other") == 1
    told = capsys.readouterr()
    assert told.out == "notes is stopped, and not trusted any more.\n"
    assert "defines no server other" in told.err
    assert [each.method for each in api.requests] == ["GET", "DELETE", "GET", "DELETE"]


@pytest.mark.parametrize(("typed", "requests"), [(b"n\n", 1), (b"y\n", 2)])
def test_trust_asks_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: bytes,
    requests: int,
) -> None:
    screen, terminal = os.openpty()
    os.write(screen, typed)
    with os.fdopen(terminal) as stdin, fake_api(LISTED, TRUSTED) as api:
        monkeypatch.setattr("sys.stdin", stdin)
        assert (trust(api) == 0) == (requests == 2)
        assert "Trust it?" in capsys.readouterr().err
        assert len(api.requests) == requests
    os.close(screen)


def test_a_digest_answers_the_question() -> None:
    with fake_api(TRUSTED) as api:
        assert trust(api, "--digest", "0123") == 0
    assert api.requests[0].body == {"digest": "0123"}
